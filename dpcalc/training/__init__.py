"""The algorithms themselves, in numpy: what was accounted is what is run."""

from __future__ import annotations

import os
import sys


def one_blas_thread() -> bool:
    """Ask OpenBLAS for one thread, unless the user chose; return whether it can still hear, numpy not being loaded.

    Products here are small: several threads make them slower, and ensembles have threads of their own.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    return "numpy" not in sys.modules
