"""The algorithms in numpy: exactly the accounted run is executed."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

_VARIABLE = "OPENBLAS_NUM_THREADS"
_SUFFIXES = ("", "64_", "_64", "64")


def one_blas_thread() -> bool:
    """Ask OpenBLAS for one thread, unless the user chose; return whether that works, since numpy is not loaded yet.

    Products here are small: several threads make them slower, and ensembles start their own threads.
    """
    os.environ.setdefault(_VARIABLE, "1")
    return "numpy" not in sys.modules


@contextlib.contextmanager
def with_one_blas_thread() -> Iterator[None]:
    """Limit OpenBLAS to one thread within the context, also after numpy is loaded, and restore its threads.

    This only affects time: without OpenBLAS, or if the user chose its threads, nothing changes.
    """
    before = [] if _VARIABLE in os.environ else [(put, int(get())) for get, put in _loaded()]
    for put, _ in before:
        put(1)
    try:
        yield
    finally:
        for put, threads in before:
            put(threads)


def _loaded() -> Iterator[tuple[Callable[[], Any], Callable[[int], Any]]]:
    """Yield the functions that get and set the number of threads, for each OpenBLAS of numpy or scipy."""
    import ctypes

    import numpy as np
    import scipy

    for package in (np, scipy):
        folder = os.path.dirname(str(package.__file__))
        for libraries in (folder + ".libs", os.path.join(folder, ".dylibs")):
            names = os.listdir(libraries) if os.path.isdir(libraries) else []
            for name in (name for name in names if "openblas" in name):
                with contextlib.suppress(OSError):
                    library = ctypes.CDLL(os.path.join(libraries, name))
                    for prefix in ("scipy_openblas", "openblas"):
                        for suffix in _SUFFIXES:
                            get = getattr(library, f"{prefix}_get_num_threads{suffix}", None)
                            put = getattr(library, f"{prefix}_set_num_threads{suffix}", None)
                            if get is not None and put is not None:
                                yield get, put
