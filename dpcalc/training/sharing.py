"""Work that the available cores share."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def summed(of: Callable[[int], Any], places: Sequence[int]) -> Any:
    """Return the sum of ``of(place)`` over one or more places, which some threads share.

    Which thread adds what does not follow from the arguments: the sum must not depend on the order, as that of doubles
    does unless it is exact.
    """
    workers = min(cores(), len(places))
    if workers == 1:
        return _total(of, places, threading.Event())
    over = threading.Event()
    with ThreadPoolExecutor(workers) as pool:
        try:
            shares = [pool.submit(_total, of, places[k::workers], over) for k in range(workers)]
            return sum(share.result() for share in shares)
        finally:
            over.set()  # an error, or an interrupt, ends the others too


def _total(of: Callable[[int], Any], places: Sequence[int], over: threading.Event) -> Any:
    total = of(places[0])
    for place in places[1:]:
        if over.is_set():
            break
        total = total + of(place)
    return total
