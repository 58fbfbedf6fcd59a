"""Records that stay in a file: some of them at a time are read, and brought within their bounds.

What becomes of a record depends on it alone, so that records are the same here as in memory, in every bit.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.files.row_file import Chosen, Room
from dpcalc.training.data.bounds import NO_COUNTS, Bounds, Centre, Prepared, added, aside_of
from dpcalc.training.data.cells import MAX_CLASSES
from dpcalc.training.data.tables import Stored, ahead

Array = NDArray[np.float64]

_CELLS = 1 << 18  # of a piece: 2 MiB
_BYTES = 1 << 22  # of the file that are read at once


class Survey(NamedTuple):
    """What is known of records that have all been read once.

    Attributes:
        counts: see `dpcalc.training.data.bounds.Prepared`.
        least, most: of the labels.
        spread: the variance of the labels.
        commonest: how many records have the commonest label; None where the labels are too many to be counted.
    """

    counts: Mapping[str, int]
    least: float
    most: float
    spread: float
    commonest: int | None


class _Often:
    """How often every label occurs, unless there are too many."""

    def __init__(self) -> None:
        self.counts: Counter[float] | None = Counter()

    def add(self, labels: Array) -> None:
        """Count some more labels."""
        if self.counts is None:
            return
        values, counts = np.unique(labels, return_counts=True)
        if len(values) <= MAX_CLASSES:
            self.counts.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        if len(values) > MAX_CLASSES or len(self.counts) > MAX_CLASSES:
            self.counts = None

    @property
    def commonest(self) -> int | None:
        """How many have the commonest label."""
        return None if self.counts is None else max(self.counts.values())


class OnDisk:
    """Records in a file, within their bounds.

    Attributes:
        shape: (n, d).
    """

    def __init__(self, stored: Stored, bounds: Bounds, aside: NDArray[np.int64] | None = None) -> None:
        """Describe the records.

        Args:
            stored: their cells.
            bounds: how they are brought within their bounds.
            aside: rising numbers of records that are not among these; None for none.
        """
        self._stored, self._bounds = stored, bounds
        # The k-th record that is left is k + s, where s of those set aside have a gap of at most k before them.
        self._gaps = None if aside is None else aside - np.arange(len(aside))
        self.shape = (stored.shape[0] - (0 if aside is None else len(aside)), bounds.columns)
        self._survey: Survey | None = None

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def norm(self) -> int:
        """In which rows are within their bound, 1 or 2."""
        return self._bounds.norm

    def within(self, bound: float, norm: int) -> bool:
        """Return whether all rows, whatever they hold, are within a bound in the 1- or 2-norm, up to rounding."""
        return self._bounds.within(bound, norm)

    @property
    def step(self) -> int:
        """How many records are read at once where all are."""
        return max(1, min(_CELLS // self._bounds.width, self._most))

    @property
    def _most(self) -> int:
        return max(1, _BYTES // max(1, self._stored.bytes))

    def at(self, chosen: Chosen, room: Room | None = None) -> Prepared:
        """Return some records, in the order in which they are named.

        Args:
            chosen: a slice without a step, or whole numbers from 0 to n - 1.
            room: for them; by default they have memory of their own.

        Raises:
            SpecError: the file cannot be read, or has changed.
        """
        first, last, _ = chosen.indices(len(self)) if isinstance(chosen, slice) else (0, len(chosen), 1)
        if last - first <= self._most:
            return self._at(chosen, room)
        parts = (slice(start, min(start + self._most, last)) for start in range(first, last, self._most))
        return self._joined(last - first, (part if isinstance(chosen, slice) else chosen[part] for part in parts))

    def _joined(self, count: int, pieces: Iterable[Chosen]) -> Prepared:
        """Return so many records that are read in pieces."""
        features, labels = np.empty((count, self.shape[1])), np.empty(count)
        counts, done, room = NO_COUNTS, 0, Room()
        for piece in pieces:
            part = self._at(piece, room)
            there = slice(done, done + len(part.labels))
            features[there], labels[there] = part.features, part.labels
            counts, done = added(counts, part.counts), there.stop
        return Prepared(features, labels, counts)

    def _at(self, chosen: Chosen, room: Room | None = None) -> Prepared:
        """As `at`, at once."""
        if self._gaps is not None:
            places = np.arange(*chosen.indices(len(self))) if isinstance(chosen, slice) else chosen
            chosen = places + np.searchsorted(self._gaps, places, side="right")
        return self._bounds.kept(self._stored.rows(chosen, room), room)

    def split(self, fraction: float, generator: np.random.Generator) -> tuple[OnDisk, OnDisk | None]:
        """As `dpcalc.training.data.bounds.split`."""
        aside = aside_of(len(self), fraction, generator)
        if aside is None:
            return self, None
        return OnDisk(self._stored, self._bounds, aside), _Some(self._stored, self._bounds, aside)

    def centred(self, centre: Centre) -> OnDisk:
        """Return the same records, centred."""
        records = copy.copy(self)
        records._bounds, records._survey = self._bounds._replace(centre=centre), None
        return records

    def survey(self) -> Survey:
        """Return what is known of the records, which are read once, unless `pieces` has shown them all.

        Raises:
            SpecError: see `at`.
        """
        for _ in self.pieces(self.step) if self._survey is None else ():
            pass
        assert self._survey is not None
        return self._survey

    def pieces(
        self, step: int, check: Callable[[int, Prepared], None] = lambda first, part: None
    ) -> Iterator[Prepared]:
        """Yield all records in their order; when they have been seen, the survey of them is known.

        The memory of a piece is overwritten once the next one is asked for.

        Args:
            step: how many are in a piece.
            check: called with how many records come before a piece, and the piece, by any thread.

        Raises:
            SpecError: see `at`.
        """

        def checked(first: int, room: Room) -> Prepared:
            part = self.at(slice(first, first + step), room)
            check(first, part)
            return part

        counts, least, most, mean, squares = NO_COUNTS, math.inf, -math.inf, 0.0, 0.0
        starts, often = range(0, len(self), step), _Often()
        for first, part in zip(starts, ahead(checked, starts), strict=True):
            labels, counts = part.labels, added(counts, part.counts)
            least, most = min(least, float(labels.min())), max(most, float(labels.max()))
            often.add(labels)
            # The variance of what is known already, and of these (Chan, Golub and LeVeque 1983).
            ours, done = float(labels.mean()), first + len(labels)
            squares += float(np.square(labels - ours).sum()) + (ours - mean) ** 2 * first * len(labels) / done
            mean += (ours - mean) * len(labels) / done
            yield part
        self._survey = Survey(counts, least, most, squares / len(self), often.commonest)

    @property
    def counts(self) -> Mapping[str, int]:
        """See `dpcalc.training.data.bounds.Prepared`."""
        return self.survey().counts


class _Some(OnDisk):
    """The records of a file that were set aside."""

    def __init__(self, stored: Stored, bounds: Bounds, aside: NDArray[np.int64]) -> None:
        super().__init__(stored, bounds)
        self.shape, self._places = (len(aside), bounds.columns), aside

    def _at(self, chosen: Chosen, room: Room | None = None) -> Prepared:
        return self._bounds.kept(self._stored.rows(self._places[chosen], room), room)
