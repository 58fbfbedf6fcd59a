"""Runs of realistic size, for which `compare` has a lower value beside its guarantees."""

import math
from typing import NamedTuple

from tests.truth.asking import flags, front
from tests.truth.lower import Told

SINGLE: Told = {
    "records": 60000, "lipschitz": 1.0, "smoothness": 1.0, "step_size": 0.1, "noise_std": 1.0, "delta": 1e-6,
}  # fmt: skip
BATCHES: Told = {**SINGLE, "batch_size": 240, "noise_std": 0.01}
PASSES: Told = {**BATCHES, "epochs": 20}
CLIPPED: Told = {"records": 60000, "batch_size": 240, "epochs": 10, "noise_multiplier": 0.5, "delta": 1e-6}


class Size(NamedTuple):
    """A run and its question, and what is known of the cause of the gap."""

    algorithm: str
    told: Told
    cause: str


_EARLIER = "no step of 0.1 forgets all noise before the record's own step, and the bound does not count it"
_PLACES = f"as for one place: {_EARLIER}"
_PASSES = f"{_EARLIER}; and no losses that are known forget it and remember earlier passes"

SIZES: tuple[Size, ...] = (
    Size("pnsgd", BATCHES, _EARLIER),
    Size("pnsgd", {**SINGLE, "index": 30000}, "none that shows: losses forget the noise before the record alone"),
    Size("pnsgd", {**BATCHES, "strong_convexity": 0.01}, "as without strong convexity: the last batch has none behind"),
    Size("skip", {**SINGLE, "index": 30000}, "none that shows: as pnsgd"),
    Size("stop", {**SINGLE, "index": 30000}, _EARLIER),
    Size("shuffled", SINGLE, _PLACES),
    Size("shuffled", BATCHES, _PLACES),
    Size("shuffled", {**BATCHES, "permutation": "secret"}, _PLACES),
    Size("rotation", BATCHES, _PLACES),
    Size("shuffled-stop", {**SINGLE, "records": 10000}, _PLACES),
    Size("cyclic", PASSES, _PASSES),
    Size("cyclic", {**PASSES, "strong_convexity": 0.01}, _PASSES),
    Size("cyclic", {**PASSES, "loss_class": "smooth", "strong_convexity": -0.01}, _PASSES),
    Size("shuffle-once", PASSES, _PLACES),
    Size("rotation-epochs", PASSES, _PLACES),
    Size("shuffled-epochs", PASSES, f"{_PLACES}; the lower value counts the shift of the last pass alone"),
    Size(
        "noisy-sgd", {**BATCHES, "steps": 5000},
        "the bound composes all steps, and the last iterate of linear losses is their sum",
    ),
    Size("cyclic-released", PASSES, _EARLIER),
    Size("shuffle-once-released", PASSES, _PLACES),
    Size("shuffled-epochs-released", PASSES, f"{_PLACES}; the lower value counts late places alone"),
    Size("noisy-sgd-released", {**BATCHES, "steps": 5000}, "the lower value is of the sum of all steps, not of each"),
    Size(
        "dp-sgd", {**CLIPPED, "sampling": "shuffle", "adjacency": "null-record"},
        "the bound takes every step of the record as known, and the lower value looks at the largest sum of each epoch",
    ),
    Size(
        "dp-sgd", {**CLIPPED, "sampling": "shuffle", "adjacency": "null-record", "group_size": 8},
        "the bound takes the places of the group as known, and the attacker adds up scores of single steps",
    ),
)  # fmt: skip


class Gap(NamedTuple):
    """What is promised of a run, and what nothing can be below.

    Attributes:
        size: the run.
        epsilon, bound: of the best guarantee.
        least, lower: the largest lower value of epsilon, and its name; 0 where there is none.
    """

    size: Size
    epsilon: float
    bound: str
    least: float
    lower: str

    @property
    def ratio(self) -> float:
        """How far the two are apart."""
        return self.epsilon / self.least if self.least else float("inf")

    def row(self) -> str:
        """The row of the table."""
        told = flags(self.size.algorithm, dict(self.size.told))
        least = f"{floor(self.least)} by `{self.lower}`" if self.least else "0"
        cells = [f"{self.ratio:.2f}", self.size.algorithm, f"{self.epsilon:.4g} by `{self.bound}`", least]
        return f"| {' | '.join([*cells, f'`dpcalc {told}`', self.size.cause])} |"


def floor(value: float) -> str:
    """Four digits, not above the value."""
    text = f"{value:.4g}"
    return text if float(text) <= value else f"{value - 0.5 * 10.0 ** (math.floor(math.log10(value)) - 3):.4g}"


def gap(size: Size) -> Gap:
    """Ask `compare` about a run."""
    told = dict(size.told)
    case = front(size.algorithm, {name: v for name, v in told.items() if name != "delta"}, delta=told["delta"])
    assert case.best is not None
    floors = [(result.value, result.bound) for result in case.results if result.kind == "lower"]
    return Gap(size, case.best.value, case.best.bound, *max(floors, default=(0.0, "")))
