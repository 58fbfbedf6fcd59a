"""What is worth knowing beside an answer, as data: what would change it and by how much, what was left out, and why.

The engine, ``certify``, ``recipes`` and ``training`` make these records. `dpcalc.render.notes` alone puts them into
words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from dpcalc.model.draft import Frozen


class Note(Frozen):
    """Base of the notes. A field that does not apply is None.

    ``kind`` is the note's name in JSON: that of the class, with ``_`` between words in small letters. A class that is
    a base alone has none.
    """

    kind: ClassVar[str] = ""

    def __init_subclass__(cls, kind: str | None = None) -> None:
        super().__init_subclass__()
        cls.kind = re.sub(r"(?<=.)(?=[A-Z])", "_", cls.__name__).lower() if kind is None else kind

    def as_json(self) -> dict[str, Any]:
        """Return the kind and the fields that apply, as JSON types."""
        return {"kind": self.kind, **{name: value for name, value in self.to_dict().items() if value is not None}}


# --- what would change the answer ------------------------------------------------------------------------------------


class Alternative(Note, kind=""):
    """The best answer to the same question about another run, or under a promise that was not made.

    Attributes:
        changes: the parameters of the other run that differ, and their values there.
        options: the changes as they are typed on the command line.
        promise: what would have to be promised.
        quantity, value, bound: the answer and its bound; a guarantee is rounded to the safe side.
        log_delta: ln delta, where the quantity is delta.
        gain: how many times better the value is than the answer; at most e^700.
        any: True where every value of the quantity, a parameter that was solved for, meets the budget.
    """

    changes: Mapping[str, Any] | None = None
    options: str | None = None
    promise: tuple[str, ...] | None = None
    quantity: str
    value: float
    log_delta: float | None = None
    gain: float | None = None
    any: bool | None = None
    bound: str


class OtherIndex(Alternative):
    """The answer for a record at another position; the described run is that of the last one."""


class OtherOrder(Alternative):
    """The answer for the same passes with the records in another order: the one that gives the best."""


class OtherRelease(Alternative):
    """The answer where only the last iterate is released."""


class PromiseNotMade(Alternative):
    """A better value that a bound gives under a promise."""


class Improvement(Alternative):
    """The answer where more is known of the run, or can be arranged: the weakest change that is worth it.

    ``or_less`` is True where every smaller value of the parameter gives a value that is no worse.
    """

    or_less: bool | None = None


class ShortLastBatch(Alternative):
    """The answer in another split, where the short last batch, of ``size`` records, weighs each of them more."""

    size: int


class NewestRecord(Note):
    """The newest record of a stream, number ``newest``, which nothing amplifies; the answer is of those to ``covered``.

    What holds of the newest record is None where the answer is of it anyway, or where nothing does.
    """

    covered: int
    newest: int
    quantity: str | None = None
    value: float | None = None
    log_delta: float | None = None
    bound: str | None = None


# --- about the answer ------------------------------------------------------------------------------------------------


class BetterThanPublished(Note):
    """The best bound is far better than the one that the literature has, ``published``.

    ``value`` is that of the published bound, ``log_delta`` its logarithm where the quantity is delta.
    """

    bound: str
    published: str
    quantity: str
    value: float
    log_delta: float | None = None


class HidingPays(Note):
    """Composition, which lets every iterate be seen, is the best bound, and another one will be in a longer run.

    Attributes:
        parameter, value: the number of passes or steps from which hidden iterates help.
        bound: the one that is then below composition.
        about: whether the number is by an approximation, and no bound.
    """

    parameter: str
    value: int
    bound: str
    about: bool


class TunedNoise(Note):
    """The noise that the tuned schedule gives at this number of records, and how the bound nears its limit.

    Attributes:
        parameter, value: the scale of the noise.
        kappa: the constant Delta eta/(c D), which decides how the limit is neared.
        exponent: the difference falls as records^-exponent; None where it falls as 1/ln records.
    """

    parameter: str
    value: float
    kappa: float
    exponent: float | None = None


class Vacuous(Note):
    """Best bounds on the excess risk that exceed what any point of the domain can have, and whether these are all."""

    bounds: tuple[str, ...]
    all: bool


class OwnChoice(Note):
    """A bound that chooses parameters itself, so that it is of another run than the one described."""

    bound: str
    parameters: tuple[str, ...]


class NotCertified(Note):
    """A best guarantee that could not be certified, why, and the best one that was: ``instead``, with its value.

    ``log_delta`` is ln delta where the quantity is delta, ``any`` True where every value of a parameter will do.
    """

    bound: str
    because: str
    instead: str | None = None
    quantity: str | None = None
    value: float | None = None
    log_delta: float | None = None
    any: bool | None = None


# --- about a run of DP-SGD --------------------------------------------------------------------------------------------


class OtherAdjacencies(Note):
    """The best answers to the question under the other adjacencies.

    Attributes:
        quantity: epsilon or delta.
        answers: of each its ``adjacency``, ``value``, ``bound`` and, where that is a delta, ``log_delta``.
        at: the parameter that was solved for and its value; the answers are those of the run with it.
    """

    quantity: str
    answers: Sequence[Mapping[str, Any]]
    at: Mapping[str, Any] | None = None


class AccountantPrints(Note):
    """About what an accountant that assumes Poisson sampling and add-remove prints for the same words.

    This is no result: no gate sees it, and it is no guarantee unless ``covers_run`` is True.

    Attributes:
        quantity, value, log_delta: epsilon or delta there.
        sampling, adjacency: those of the described run.
        covers_run: whether the described run is one that such an accountant speaks of.
        at: as in `OtherAdjacencies`.
    """

    quantity: str
    value: float
    log_delta: float | None = None
    sampling: str
    adjacency: str
    covers_run: bool
    at: Mapping[str, Any] | None = None


DP_SGD = "dp-sgd"


class PrefixNoise(Note):
    """Standard deviations of the noise in iterates, in clipping norms times the learning rate; no guarantee.

    Attributes:
        rms, largest: root mean square over the steps, and that of the noisiest iterate.
        workload: what makes iterates of gradients, beside their sum: momentum, decay and cool_down.
        others: of other matrices and ways to draw batches, at the same guarantee, the least first: ``mechanism``,
            ``bands``, ``rms`` and, of sampled batches, ``sampling``, ``algorithm`` and ``noise_multiplier``.
    """

    rms: float
    largest: float
    workload: Mapping[str, float]
    others: Sequence[Mapping[str, Any]]

    @property
    def of_dp_sgd(self) -> float | None:
        """The root mean square with independent noise and Poisson batches; None if it is not known."""
        return next((other["rms"] for other in self.others if other.get("algorithm") == DP_SGD), None)


# --- about the description -------------------------------------------------------------------------------------------


class LeftOut(Note):
    """A parameter that was given and that the algorithm does not have."""

    algorithm: str
    parameter: str


class LossDomain(Note):
    """The ball in which the constants of the loss hold, and whether dpcalc itself projects every iterate onto it."""

    radius: float
    projected: bool = False


class LinearClip(Note):
    """Clipped gradients are those of a convex loss: what is asked of the clipping, and of the regulariser if any."""

    regularised: bool = False
    capped: bool = False


class Referenced(Note):
    """A parameter whose value was read from elsewhere."""

    parameter: str
    origin: str


class OnePass(Note):
    """One pass is accounted for, as the number of passes was not given."""

    algorithm: str


class RunRead(Note):
    """What a file of a training job was taken for, where each fact of the run stands, and the keys that were not used.

    Attributes:
        what: the kind of file.
        taken: fact -> where it was said.
        unused: keys.
    """

    what: str
    taken: Mapping[str, str]
    unused: Sequence[str] = ()


class OtherReading(Note):
    """What another reading of the same facts would account for, and why it is not what ran. It is no guarantee.

    Attributes:
        reading: in words.
        value: epsilon of it, at the same delta.
        truth: what ran instead, in words.
    """

    reading: str
    value: float
    truth: str


class RunRemark(Note):
    """A sentence about the run that a file describes."""

    says: str


# --- about a training run --------------------------------------------------------------------------------------------


class NotTrained(Note):
    """Nothing was trained, as a gate failed."""


class DefaultRule(Note):
    """What the default rule chose, in words, and kappa, the signal to noise of the run."""

    signal_to_noise: float
    picked: str


class SumsOfProducts(Note):
    """Least squares are solved by noisy sums of products: these are the gradient of the one step."""


class Forgets(Note):
    """A model has forgotten the records that are not among the data: which model, and in how many steps."""

    model: str
    steps: int


class Centred(Note):
    """Rows are centred: how many of the accounted steps are noisy sums of rows, and of distances from their mean."""

    mean_sums: int
    distance_sums: int
    accounted_steps: int


class Calibrated(Note):
    """Scores became log-odds: by which temperature, and how many accounted sums, the last, corrected it, and biases."""

    temperature: float
    sums: int
    class_sums: int = 0


class OfClasses(Note):
    """What was stated of the classes, in the order of their labels: it must be public.

    Attributes:
        class_weights: what their gradients were multiplied by, the largest 1.
        class_shares: their shares.
    """

    class_weights: tuple[float, ...] | None = None
    class_shares: tuple[float, ...] | None = None


class LabelReading(Note, kind="labels"):
    """How the labels were read, in words."""

    reading: str


class ColumnReading(LabelReading, kind="columns"):
    """How columns without ranges were read, in words that no record has a part in."""


class UnreadableCells(Note):
    """What a cell that is no number counts as."""


class NotPrivate(Note):
    """What was trained is not private, and why."""

    because: str


class Rounded(Note):
    """How the numbers that train releases are rounded, and what that costs.

    Attributes:
        of: ``every noisy sum``, or ``what is released``.
        grid: of what is released; a noisy sum has a grid of its own.
        epsilon, delta: what it adds, which is part of the guarantee.
    """

    of: str
    grid: float | None = None
    epsilon: float
    delta: float


class DearRounding(Rounded):
    """As `Rounded`, where it costs more than a hundredth of the budget."""


class Tuned(Note):
    """The release is the best of a random number of runs, and what that costs is part of the guarantee.

    Attributes:
        law, mean: of the number of runs.
        candidates: how many settings each run draws from.
        on, records: what runs are scored on, and how many records these are.
        score_epsilon: of the score of one run; None where it is on public records.
    """

    law: str
    mean: float
    candidates: int
    on: str
    records: int
    score_epsilon: float | None = None


class NothingDrawn(Note):
    """The number of runs that was drawn is 0, and nothing is released."""


class CostOfTries(Note):
    """What it would cost to release the best of several such runs.

    Attributes:
        runs: the mean of their number, which is random, geometric and secret; each is scored privately.
        epsilon: of one run.
        value: of the best of them, at the same delta.
        fixed_number: epsilon where their number is fixed, by composition; None where it is not finite.
        tunable: whether such runs can be tuned within a budget.
    """

    runs: int
    epsilon: float
    value: float
    fixed_number: float | None = None
    tunable: bool = True


class NotCovered(Note):
    """What is said of the records, and that the guarantee does not cover it."""

    because: str


class NotMeasured(Note):
    """How good the model is was not asked for."""


class ModelFile(Note):
    """Where the model was written, and its privacy card; nowhere if ``path`` or ``card`` is None."""

    path: str | None = None
    card: str | None = None


class Charged(Note):
    """A release was charged to a ledger before it was made.

    Attributes:
        file, entry: what it was charged to, and the name of its entry there.
        entries: how many there are with it.
        spent: epsilon of all of them together, at ``delta``; None where it is not known.
        epsilon, delta: the budget; None where there is none.
        group_size: of the records that all this is about.
        remaining: what one more release may take, as of a ledger's report; None where it is not known.
        begun: the other entries that were charged, and are not known to have been released.
    """

    file: str
    entry: str
    entries: int
    spent: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    group_size: int = 1
    remaining: Mapping[str, float] | None = None
    begun: Sequence[str] = ()


class SeveralModels(Note):
    """Several models were trained from the same records."""
