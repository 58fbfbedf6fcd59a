"""Sampled steps whose rate and noise change: phases of equal steps, fixed before the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpcalc.errors import SpecError
from dpcalc.model.algorithm import Source
from dpcalc.model.draft import Description
from dpcalc.model.numbers import parse_number
from dpcalc.numerics.floats import up

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

COLUMNS = ("noise_multiplier", "sample_rate", "batch_size", "steps")
"""The columns of a schedule of dp-sgd; without ``steps`` a row is one step."""

MOST = 32  # kinds of steps of which each has a law of its own: each costs tenths of a second
_WIDTHS = [2.0 ** (k / 4.0) for k in range(-56, 44)]  # of cells of rate and noise, in their logarithms


class Phases:
    """Kinds of steps: rate, noise multiplier and count, arrays of shape (k,), each kind once.

    Attributes:
        rate: the probability that a record is used in such a step.
        multiplier: the noise multiplier.
        steps: how many such steps.
        path: the file or text that they came from.
    """

    def __init__(self, rate: Array, multiplier: Array, steps: Array, path: str) -> None:
        import numpy as np

        kinds, place = np.unique(rate + 1j * multiplier, return_inverse=True)
        self.rate, self.multiplier = kinds.real, kinds.imag
        self.steps = np.bincount(place, weights=steps)
        self.path = path

    def __str__(self) -> str:
        return self.path

    def __len__(self) -> int:
        return len(self.rate)

    @property
    def total(self) -> int:
        """The number of steps."""
        return int(self.steps.sum())

    def kinds(self, most: int = MOST) -> list[tuple[float, float, int]]:
        """Return (rate, noise multiplier, steps) of at most so many kinds that are no more private than these.

        Kinds in one cell of the (ln rate, ln noise) plane get its largest rate and least noise. Either makes a step
        less private, unless batches are cut: then a larger rate need not.
        """
        kinds = self if len(self.rate) <= most else self._in_cells(most)
        triples = zip(kinds.rate.tolist(), kinds.multiplier.tolist(), kinds.steps.tolist(), strict=True)
        return [(rate, multiplier, int(steps)) for rate, multiplier, steps in triples]

    def _in_cells(self, most: int) -> Phases:
        fine = self._rounded(_WIDTHS[0])  # of 1e6 kinds some thousands are left, and widths do not add up
        return next(kinds for width in _WIDTHS if len((kinds := fine._rounded(width)).rate) <= most)

    def _rounded(self, width: float) -> Phases:
        """Return phases of one kind for each cell of this width."""
        import numpy as np

        cells = np.floor(np.stack((np.log(self.rate), np.log(self.multiplier))) / width)
        _, place = np.unique(cells[0] + 1j * cells[1], return_inverse=True)
        rate, multiplier = np.zeros(place.max() + 1), np.full(place.max() + 1, np.inf)
        np.maximum.at(rate, place, self.rate)
        np.minimum.at(multiplier, place, self.multiplier)
        return Phases(rate, multiplier, np.bincount(place, weights=self.steps).astype(float), self.path)


def is_written(schedule: object) -> bool:
    """Return whether a schedule is given inline; otherwise it is a path.

    >>> is_written("steps=1000 noise_multiplier=1.5; steps=1000 noise_multiplier=0.9"), is_written("lr=1/noise.csv")
    (True, False)
    """
    return str(schedule).partition("=")[0].strip() in COLUMNS


def fill_in(draft: Description) -> None:
    """Replace ``schedule``, a path or ``steps=1000 noise_multiplier=1.5; steps=...``, by phases.

    Raises:
        SpecError: a rate or noise is missing or given twice, or a value is outside its domain.
    """
    import numpy as np

    path = str(draft.take("schedule"))
    table = _written(path) if is_written(path) else _read(path)
    if twice := [name for name in table if name in draft]:
        raise SpecError(f"{', '.join(twice)} is a column of {path} and also given", "keep one of the two")
    rows = len(next(iter(table.values())))
    rate = _rate(draft, table, rows)
    multiplier = _column(draft, table, "noise_multiplier", rows)
    steps = table.get("steps", np.ones(rows))
    valid = ((rate > 0.0) & (rate <= 1.0)).all() and (multiplier > 0.0).all()
    if not (valid and (steps >= 1.0).all() and (steps == np.floor(steps)).all() and steps.sum() < 2.0**53):
        raise SpecError(
            f"{path}: rates are in (0, 1], noise multipliers above 0, and steps whole numbers from 1",
            "for example 'steps=1000 sample_rate=0.01 noise_multiplier=1.1'",
        )
    phases = Phases(rate, multiplier, steps, path)
    if draft.has("epochs") or draft.get("steps", phases.total) != phases.total:
        raise SpecError(
            f"{path} has {phases.total} steps, and steps or epochs are also given",
            "leave them out; a column steps says how many steps a row stands for",
        )
    draft.put("schedule", phases, Source.FILE)
    draft.put("steps", phases.total, Source.DERIVED)
    draft.fill("noise_multiplier", float(multiplier.min()), Source.FILE)


def _read(path: str) -> dict[str, Array]:
    from dpcalc.model.schedule_file import read_schedule

    return read_schedule(path, columns=COLUMNS)


def _written(text: str) -> dict[str, Array]:
    """Return the columns of phases given inline."""
    import numpy as np

    phases = [dict(word.partition("=")[::2] for word in phase.split()) for phase in text.split(";") if phase.strip()]
    names = [name for name in phases[0] if name in COLUMNS]
    if any(set(phase) != set(names) for phase in phases):
        raise SpecError(
            f"schedule {text!r}: every phase must say the same of {', '.join(COLUMNS)}",
            "for example 'steps=1000 noise_multiplier=1.5; steps=1000 noise_multiplier=0.9'",
        )
    return {name: np.array([parse_number(phase[name]) for phase in phases]) for name in names}


def _rate(draft: Description, table: dict[str, Array], rows: int) -> Array:
    """Return the rate of every row: a column, the batch size over the records, rounded up, or the given rate."""
    sizes, rates = table.get("batch_size"), table.get("sample_rate")
    if sizes is None:
        rate = draft.get("sample_rate")
        if rate is None and draft.has("batch_size", "records") and rates is None:
            import numpy as np

            return np.full(rows, min(1.0, up(draft["batch_size"] / draft["records"])))
        return _column(draft, table, "sample_rate", rows)
    if not draft.has("records") or rates is not None or draft.has("sample_rate"):
        raise SpecError("a column batch_size needs --records, and no rate beside it", "give --records")
    import numpy as np

    return np.minimum(1.0, sizes / float(draft["records"]) * (1.0 + 2.0**-51))


def _column(draft: Description, table: dict[str, Array], name: str, rows: int) -> Array:
    import numpy as np

    if name in table:
        return table[name]
    value: Any = draft.get(name)
    if value is None:
        flag = "--" + name.replace("_", "-")
        raise SpecError(f"the schedule says no {name}", f"add a column {name}, or give {flag}")
    return np.full(rows, float(value))
