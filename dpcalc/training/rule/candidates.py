"""The description of tuning: the candidates, the law of the number of runs, and how runs are scored."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from dpcalc.errors import SpecError
from dpcalc.model.numbers import parse_number
from dpcalc.model.parameter import PARAMETERS, check
from dpcalc.notions.tuning import Law, Tuning, tuning_of

TRAVEL = "travel"
"""The travel of the weights over kappa: see `dpcalc.training.rule.full_batches`."""

TUNABLE = ("clip", TRAVEL, "steps", "step_size", "regularisation", "batch_size", "epochs")
"""The parameters that may be tuned: those of the run's steps, not of reading the records."""

LAWS = (Law.GEOMETRIC, Law.LOGARITHMIC, Law.POISSON)

MEAN, HELD_OUT = 10.0, 0.2
MOST_RUNS, MOST_CANDIDATES = 1000.0, 99  # a card has a case for each candidate, and one for the total: 100 at most

Candidate = dict[str, Any]
"""Parameter -> value."""


class Tune(NamedTuple):
    """A choice among settings, whose privacy cost is accounted.

    Attributes:
        settings: parameter -> its values, all fixed before a record is read.
        mean: E K, the mean of the number of runs.
        law: of the number of runs.
        held_out: the share of the training records on which runs are scored with noise; None with a public file.
        public: path of public records on which runs are scored; None if records are held out.
    """

    settings: Mapping[str, tuple[Any, ...]]
    mean: float = MEAN
    law: Law = Law.GEOMETRIC
    held_out: float | None = HELD_OUT
    public: str | None = None

    @property
    def tuning(self) -> Tuning:
        """The law of the number of runs, as the theorems take it."""
        return tuning_of(self.law, self.mean)

    @property
    def accounted(self) -> Tuning:
        """The law as read back from a card: its mean was rounded up once more, so it costs slightly more."""
        return tuning_of(self.law, self.tuning.mean)

    @property
    def candidates(self) -> list[Candidate]:
        """Every combination of the values: each run draws one of them uniformly."""
        return [dict(zip(self.settings, values, strict=True)) for values in itertools.product(*self.settings.values())]


class TuneRequest(NamedTuple):
    """A user's request for tuning.

    Attributes:
        settings: parameter -> values; or texts such as ``clip=0.05,0.1; travel=10,30``.
        runs: the mean number of runs, from 1 to 1000; 10 by default.
        law: of the number of runs; geometric by default.
        score: the share of the training records that is held out for scoring, or the path of a public file.
    """

    settings: Mapping[str, Any] | Sequence[str]
    runs: Any = None
    law: str | None = None
    score: Any = None

    def tune(self) -> Tune | None:
        """Return the choice among settings, or None if none are given.

        Raises:
            SpecError: the request is malformed, or has no settings but other options of tuning.
        """
        if not self.settings:
            given = {"--tune-runs": self.runs, "--tune-law": self.law, "--tune-score": self.score}
            if strange := next((flag for flag, value in given.items() if value is not None), None):
                raise SpecError(f"{strange} is of a tuned run", "give --tune, for example --tune clip=0.05,0.1,0.3")
            return None
        settings: dict[str, tuple[Any, ...]] = {}
        for name, values in self._pairs():
            name = str(name).strip().replace("-", "_")
            if name in settings:
                raise SpecError(f"--tune has {name} twice", "give all its values at once")
            settings[name] = _values(name, values)
        if {TRAVEL, "step_size"} <= set(settings):
            raise SpecError("travel says how long the steps are, and so does step_size", "tune one of them")
        tune = Tune(settings, self._mean(), self._law(), *self._score())
        count = len(tune.candidates)
        if not 1 <= count <= MOST_CANDIDATES:
            raise SpecError(f"--tune describes {count} candidates", f"from 1 to {MOST_CANDIDATES} are taken")
        return tune

    def _pairs(self) -> Iterable[tuple[Any, Any]]:
        if isinstance(self.settings, Mapping):
            yield from self.settings.items()
            return
        for part in (part for text in self.settings for part in str(text).split(";") if part.strip()):
            name, sign, values = part.partition("=")
            if not sign:
                raise SpecError(f"--tune {part.strip()[:60]!r} names no values", "for example --tune clip=0.05,0.1,0.3")
            yield name, values

    def _mean(self) -> float:
        mean = MEAN if self.runs is None else _float(self.runs, "the mean number of runs")
        if not 1.0 <= mean <= MOST_RUNS:
            raise SpecError(f"the mean number of runs is {mean:g}; it must be from 1 to {MOST_RUNS:g}", "10 is usual")
        return mean

    def _law(self) -> Law:
        if self.law is not None and self.law not in LAWS:
            raise SpecError(f"the number of runs is {self.law!r}", f"one of {', '.join(LAWS)}")
        return Law(self.law or Law.GEOMETRIC)

    def _score(self) -> tuple[float | None, str | None]:
        """Return the share that is held out, or the public file."""
        score = self.score
        if score is None:
            return HELD_OUT, None
        if isinstance(score, os.PathLike):
            return None, os.fspath(score)
        try:
            share = _float(score, "what runs are scored on")
        except SpecError:
            if not isinstance(score, str):
                raise
            return None, score
        if not 0.0 < share < 1.0:
            raise SpecError(f"the share held out is {share:g}; it must be > 0 and < 1", "for example --tune-score 0.2")
        return share, None


def _values(name: str, values: Any) -> tuple[Any, ...]:
    """Return the values of a parameter, each within its domain.

    Raises:
        SpecError: the parameter cannot be tuned, or a value is outside its domain.
    """
    if name not in TUNABLE:
        raise SpecError(f"{name[:60]} cannot be tuned", f"--tune takes {', '.join(TUNABLE)}")
    listed = values.split(",") if isinstance(values, str) else values
    listed = list(listed) if isinstance(listed, Iterable) else [listed]
    numbers = [parse_number(value.strip()) if isinstance(value, str) else value for value in listed]
    if not numbers:
        raise SpecError(f"--tune {name} has no value", f"for example --tune {name}=1,2")
    if name == TRAVEL:
        if not all(isinstance(value, (int, float)) and 0.0 < value <= 1e6 for value in numbers):
            raise SpecError("travel must be > 0 and <= 1e6, in units of kappa", "for example --tune travel=10,30")
        return tuple(map(float, numbers))
    integer = PARAMETERS[name].integer
    numbers = [int(one) if integer and isinstance(one, float) and one == int(one) else one for one in numbers]
    return tuple(check(name, value) for value in numbers)


def _float(value: Any, name: str) -> float:
    if isinstance(value, str):
        return parse_number(value)
    try:
        return float(value)
    except (TypeError, ValueError):
        kind = type(value).__name__
        raise SpecError(f"{name} is given as a {kind}", "give a number, or for a score the path of a file") from None
