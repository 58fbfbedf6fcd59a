"""Work that the available cores share."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from dpcalc.files.row_file import Room

Piece = TypeVar("Piece")
Place = TypeVar("Place")


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
            for piece in waiting:
                piece.cancel()
