"""Work that the available cores share."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

from dpcalc.files.row_file import Room

Piece = TypeVar("Piece")
Place = TypeVar("Place")


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
            shares = [
                pool.submit(copy_context().run, _total, of, places[k::workers], over) for k in range(workers)
            ]  # the context says which warnings of numpy are shown
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


def ahead(of: Callable[[Place, Room], Piece], places: Sequence[Place]) -> Iterator[Piece]:
    """Yield ``of(place, room)`` for all places in their order, while some threads compute what comes next.

    A piece may use the memory of its room; it is overwritten once the next piece is asked for.
    """
    workers = min(cores(), len(places))
    if workers <= 1:
        room = Room()
        yield from (of(place, room) for place in places)
        return
    rooms, waiting = [Room() for _ in range(workers + 1)], deque[Future[Piece]]()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for number, place in enumerate(places):
                if len(waiting) == len(rooms):
                    yield waiting.popleft().result()
                waiting.append(pool.submit(copy_context().run, of, place, rooms[number % len(rooms)]))
            while waiting:
                yield waiting.popleft().result()
        finally:
            for each in waiting:
                each.cancel()
