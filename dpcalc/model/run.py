"""The description of a run: an algorithm and its validated parameters, with the source of each value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpcalc.errors import SpecError
from dpcalc.model import loss_class as loss
from dpcalc.model import noise
from dpcalc.model.algorithm import ALGORITHMS, Algorithm, Length, Source
from dpcalc.model.draft import NOISE_SCALES, Description, Frozen, once
from dpcalc.model.numbers import plain
from dpcalc.model.parameter import PARAMETERS, check, to_give
from dpcalc.model.quantities import (
    Adjacency,
    Given,
    LastBatch,
    LossClass,
    LossName,
    Mechanism,
    Model,
    Noise,
    Permutation,
    Releases,
    Sampling,
    Scaling,
    Start,
)
from dpcalc.numerics.floats import down, up

if TYPE_CHECKING:
    pass


class Run(Frozen):
    """A described run; `describe` makes, checks and completes one.

    An unknown parameter is None. ``sources`` says where each of the others came from.
    """

    algorithm: Algorithm
    sources: Mapping[str, Source] = {}

    adjacency: Adjacency | None = None
    group_size: int | None = None
    records: int | None = None
    index: int | None = None
    window: int | None = None
    batch_size: int | None = None
    last_batch: LastBatch | None = None
    steps: int | None = None
    epochs: int | None = None
    release: Releases | None = None
    permutation: Permutation | None = None
    public_records: int | None = None
    tasks: int | None = None
    epoch_epsilon: float | None = None
    epoch_delta: float | None = None

    lipschitz: float | None = None
    sensitivity: float | None = None
    loss_class: LossClass | None = None
    smoothness: float | None = None
    strong_convexity: float | None = None
    holder_exponent: float | None = None
    holder_constant: float | None = None
    gradient_at_zero: float | None = None
    loss_at_zero: float | None = None
    loss_range: float | None = None
    loss: str | None = None
    feature_bound: float | None = None
    label_bound: float | None = None
    power: float | None = None
    huber_threshold: float | None = None
    tube: float | None = None
    classes: int | None = None
    regularisation: float | None = None

    diameter: float | None = None
    radius: float | None = None
    displacement: float | None = None
    dimension: int | None = None
    failure_probability: float | None = None

    step_size: float | None = None
    noise: Noise | None = None
    scale: float | None = None
    noise_std: float | None = None
    laplace_scale: float | None = None
    langevin_std: float | None = None
    c1: float | None = None
    c2: float | None = None
    decay_exponent: float | None = None
    schedule_factor: float | None = None
    sampling: Sampling | None = None
    sample_rate: float | None = None
    max_batch_size: int | None = None
    uses: int | None = None
    clip: float | None = None
    model: Model | None = None
    noise_multiplier: float | None = None

    epsilon: float | None = None  # the budget, if the excess risk depends on it
    log_delta: float | None = None

    schedule: Any = None  # `Phases` of sampled steps, the `Matrix` of correlated noise, otherwise a `Chain`
    shift: float | None = None
    contraction: float | None = None
    start_distance: float | None = None
    start: Start | None = None
    gradient_norm: float | None = None
    requests: int | None = None
    clean_steps: int | None = None

    mechanism: Mechanism | None = None
    bands: int | None = None
    momentum: float | None = None
    decay: float | None = None
    cool_down: float | None = None
    participations: int | None = None
    separation: int | None = None
    scaling: Scaling | None = None

    @once
    def values(self) -> Mapping[str, Any]:
        """The known parameters, name -> value, in the order in which they were given or derived."""
        known, sources = self.__dict__, self.sources
        rest = sorted((known.keys() & _PLACES.keys()) - sources.keys(), key=_PLACES.__getitem__)
        names = (*sources, *rest)
        return {name: value for name in names if name in _PLACES and (value := known.get(name)) is not None}

    def value(self, name: str) -> Any:
        """Return the value of a parameter; None if it is unknown or not a parameter of a run."""
        return self.__dict__.get(name) if name in _PLACES else None

    def source(self, name: str) -> Source | None:
        """Return where a value came from; None if it is unknown."""
        return self.sources.get(name)

    @property
    def clipped_gradients(self) -> bool:
        """Whether gradients are clipped and not known to be gradients of a convex loss."""
        return self.clip is not None and not self.convex_if_clipped

    @property
    def convex_if_clipped(self) -> bool:
        """Whether the clipped gradients are gradients of a convex loss."""
        return loss.convex_if_clipped(self.loss, self.model, self.classes)

    def typed(self, name: str) -> bool:
        """Return whether the user gave this parameter."""
        source = self.sources.get(name)
        return source is not None and source.typed

    def multiplier_at(self, noise_std: float, *, rounded_up: bool = True) -> float | None:
        """Return the noise multiplier of the run at this noise_std, rounded; None if it has none.

        Rounded up it gives this noise_std or more, rounded down this noise_std or less.
        """
        whole = self.algorithm.full_batch or self.sampling is Sampling.FULL
        norm = self.lipschitz if self.clip is None else self.clip
        size = self.records if whole else self.batch_size
        if norm is None or size is None or self.algorithm.noisy_output or self.algorithm.own_noise:
            return None
        value = noise_std / norm * size
        if not noise.LEAST < value < noise.MOST:
            return None
        return up(value, 16.0) if rounded_up else down(value, 16.0)

    def replacing(self, **changes: Any) -> Run:
        """Return the run with some values changed and derived values recomputed."""
        kept = ("schedule",) if "steps" in changes else ("schedule", "epochs")
        given = {k: v for k, v in self.values.items() if self.sources[k].given or k in kept}
        sources = {k: v for k, v in self.sources.items() if k in given}
        given.update(changes)
        sources.update(dict.fromkeys(changes, Source.ARGUMENT))
        return describe(self.algorithm.name, given, sources)


PARAMETER_FIELDS = Run.fields[2:]
"""The fields of a run that are parameters: all but its algorithm and the sources."""

_PLACES = dict(zip(PARAMETER_FIELDS, range(len(PARAMETER_FIELDS)), strict=True))


def describe(algorithm: str, given: Given, sources: Mapping[str, Source] | None = None) -> Run:
    """Return the described run: given values checked, defaults and the worst index filled in.

    Args:
        algorithm: a key of `ALGORITHMS`.
        given: parameter name -> value; None means not given. A ``schedule`` passes unchecked.
        sources: parameter name -> source; `Source.ARGUMENT` where absent.

    Raises:
        SpecError: a value is outside its domain, or the index is past the last record.
    """
    if algorithm not in ALGORITHMS:
        raise SpecError(f"algorithm is {algorithm!r}; it must be one of {', '.join(ALGORITHMS)}")
    record, draft = ALGORITHMS[algorithm], Description(given, sources or {})
    for name, value in draft.items():
        draft[name] = check(name, value) if name in PARAMETERS else value
    _fill_in(record, draft)
    for name in ("sensitivity", "diameter", "displacement"):
        if draft.sources.get(name) is Source.DERIVED and math.isinf(draft[name]):
            raise SpecError(f"the {name} would be larger than any number", "use other units")
    return Run(algorithm=record, sources=draft.sources, **draft)


def _fill_in(record: Algorithm, draft: Description) -> None:
    """Fill in the missing parameters: defaults, the worst index, the number of steps, and what follows from loss and
    noise."""
    if record.continues and not draft.has("adjacency") and draft.get("start", Start.DISTANCE) != Start.DISTANCE:
        draft.put("adjacency", Adjacency.REPLACE_ONE, Source.DEFAULT)  # a known distance is to the model without it
    for name, value in record.defaults.items():
        if name not in draft:
            draft.put(name, value, Source.DEFAULT)
    _refuse_contradictions(record, draft)
    if record.continues:
        _refuse_two_starts(draft)
    if not record.clipped and (draft.has("clip") or draft.has("model")):
        from dpcalc.model import clipping

        clipping.fill_in(draft)
    if record.clipped:
        from dpcalc.model import multiplier

        multiplier.fill_in(record, draft)
        return
    if record.local and not draft.has("records"):
        draft.put("records", 1, Source.DEFAULT)  # a message depends on no other record
    if record.indexed:
        _fill_index(record, draft)
    if record.length is Length.STEPS:
        _fill_steps(record, draft)
    if record.length is Length.PASSES and draft.has("steps"):
        _refuse_steps(record, draft)
    if draft.has("lipschitz"):
        twice = draft["adjacency"] is Adjacency.REPLACE_ONE
        draft.put("sensitivity", draft["lipschitz"] * (2.0 if twice else 1.0), Source.DERIVED)
    if record.length is not Length.UNKNOWN:
        _derive_loss(draft)
        _derive_noise(record, draft)


_ANALYSED = (None, Adjacency.REPLACE_ONE, Adjacency.NULL_RECORD)
"""Adjacencies with a known batch size."""


def _refuse_contradictions(record: Algorithm, draft: Description) -> None:
    if not record.clipped and draft.get("adjacency") not in _ANALYSED:
        raise SpecError(
            f"{record.name} is analysed for data sets of one size, and the adjacency is {draft['adjacency']}",
            "use --adjacency null-record (also called zero-out) or replace-one, or --algorithm dp-sgd",
        )
    if draft.get("strong_convexity", 0.0) > draft.get("smoothness", math.inf):
        raise SpecError(
            f"strong convexity {plain(draft['strong_convexity'])} exceeds smoothness {plain(draft['smoothness'])}",
            "a loss cannot curve more than its smoothness",
        )
    if draft.get("strong_convexity", 0.0) < 0.0 and not ("loss_class" in record.parameters or record.continues):
        raise SpecError(
            f"strong convexity {plain(draft['strong_convexity'])} is of losses that are not convex, and {record.name} "
            "is analysed for convex ones",
            "give --strong-convexity 0 or more",
        )
    after_clipping = record.clipped  # the regulariser then belongs to the step, not to a record
    if draft.get("regularisation") and draft.get("adjacency") is Adjacency.NULL_RECORD and not after_clipping:
        raise SpecError(
            "with a regulariser the gradient of a null record is not zero", "leave out --adjacency null-record"
        )


def _refuse_two_starts(draft: Description) -> None:
    start = draft["start"]
    if start != Start.DISTANCE and draft.has("start_distance"):
        raise SpecError(
            f"the start is {start}, from which the distance follows, and start_distance is given", "keep one of the two"
        )
    if start != Start.MINIMISER and draft.has("gradient_norm"):
        raise SpecError(
            f"gradient_norm is of a minimiser that is not exact, and the start is {start}",
            "give --start minimiser, or leave out --gradient-norm",
        )
    if start != Start.DISTANCE and draft["requests"] != 1:
        raise SpecError(
            f"several requests are covered for a known start distance, and the start is {start}",
            "give --start-distance, or leave out --requests",
        )


def _derive_loss(draft: Description) -> None:
    """Fill in the loss class, and its displacement factor on a bounded domain."""
    convexity = draft.get("strong_convexity", 0.0)
    draft.fill("loss_class", loss.default_class(draft.get("smoothness"), convexity), Source.DERIVED)
    if convexity < 0.0 and draft["loss_class"] in (LossClass.CONVEX, LossClass.CONVEX_SMOOTH):
        raise SpecError(
            f"the losses are {draft['loss_class']}, and strong convexity {plain(convexity)} is of losses that are not "
            "convex",
            "give --loss-class smooth or lipschitz, or leave out --strong-convexity",
        )
    if draft.has("radius") and not draft.has("diameter"):
        draft.put("diameter", 2.0 * draft["radius"], Source.DERIVED)
    if draft.has("displacement") or not draft.has("diameter") or not draft.has("step_size"):
        return
    constants = {name: draft[name] for name in ("lipschitz", "smoothness", "strong_convexity") if name in draft}
    weight = draft.get("regularisation", 0.0)
    if weight and "lipschitz" in constants and draft["step_size"] * weight > 1.0 - 1e-12:
        # A step this long reverses the regulariser's part, so the bound on the whole gradient is needed.
        del constants["lipschitz"]
        if draft.has("radius"):
            constants["lipschitz"] = up(draft["lipschitz"] + up(weight * draft["radius"]), 4.0)
    factor = loss.displacement(
        loss_class=draft["loss_class"], step_size=draft["step_size"], diameter=draft["diameter"],
        regularised=weight > 0.0, **constants,
    )  # fmt: skip
    if factor is not None:
        draft.put("displacement", factor, Source.DERIVED)


def _derive_noise(algorithm: Algorithm, draft: Description) -> None:
    """Fill in the kind of noise and its scale, from a flag or from a schedule tuned to the number of records.

    Raises:
        SpecError: two scales are given, or a scale that does not match the kind of noise.
    """
    if draft.has("langevin_std"):
        _langevin_noise(draft)
    if not algorithm.own_noise:
        noise.fill_in(algorithm, draft)
    scales = list(filter(draft.__contains__, NOISE_SCALES))
    if len(scales) > 1:
        raise SpecError("both noise_std and laplace_scale are given", "give one of the two")
    kind = NOISE_SCALES[scales[0]] if scales else draft.get("noise", Noise.GAUSSIAN)
    if draft.get("noise", kind) is not kind:
        other = next(name for name, noise in NOISE_SCALES.items() if noise is draft["noise"])
        cure = f"leave out --noise, or give {PARAMETERS[other].flag} in place of {PARAMETERS[scales[0]].flag}"
        raise SpecError(f"noise is {draft['noise']} and {scales[0]} is given", cure)
    if kind is Noise.LAPLACE and draft.get("loss") == LossName.SOFTMAX:
        raise SpecError("the constants of a softmax are for Gaussian noise", "use --noise-std, or describe the loss")
    draft.fill("noise", kind, Source.DERIVED)
    if scales:
        if draft.has("c1"):
            raise SpecError(f"{scales[0]} is given and also follows from c1 and c2", "keep one of the two")
        draft.put("scale", draft[scales[0]], Source.DERIVED)
    elif algorithm.tuned and draft.has("c1"):
        _tuned_noise(draft)
    if kind is Noise.LAPLACE and not draft.has("dimension") and "dimension" in algorithm.parameters:
        draft.put("dimension", 1, Source.DEFAULT)
    if kind is Noise.LAPLACE and draft.get("dimension", 1) > 1 and draft.sources.get("displacement") is Source.DERIVED:
        # The table bounds a Euclidean distance, but the noise acts on the 1-norm.
        draft.put("displacement", up(draft["displacement"] * draft["dimension"] ** 0.5, 4.0), Source.DERIVED)


def _tuned_noise(draft: Description) -> None:
    """Fill in the scale of the n-dependent schedule (Sordello et al., Theorems 3 and 4)."""
    from dpcalc.model.noise import scale

    missing = [name for name in ("c2", "records", "step_size", "diameter", "displacement") if name not in draft]
    if missing:
        missing = [name if name != "displacement" else "lipschitz" for name in missing]  # it follows from that
        missing = [name for name in missing if name not in draft]
        raise SpecError(f"the noise schedule needs {', '.join(missing)}", to_give(missing), parameters=tuple(missing))
    if draft["batch_size"] != 1:
        raise SpecError("the noise schedule is for batches of one record", "leave out --batch-size")
    tuned = scale(
        draft["noise"], log_x=math.log(draft["records"]), c1=draft["c1"], c2=draft["c2"],
        displacement=draft["displacement"], diameter=draft["diameter"], step_size=draft["step_size"],
    )  # fmt: skip
    draft.put("scale", down(tuned, 4.0), Source.DERIVED)


def _langevin_noise(draft: Description) -> None:
    """Fill in noise_std from the noise of Langevin diffusion: eta noise_std = sqrt(2 eta) langevin_std.

    Raises:
        SpecError: noise_std is given as well, or the step size is not.
    """
    if draft.has("noise_std"):
        raise SpecError("both noise_std and langevin_std are given", "give one of the two")
    if not draft.has("step_size"):
        raise SpecError("langevin_std needs the step size", "give --step-size")
    from dpcalc.model.noise import langevin_noise_std

    noise_std = langevin_noise_std(langevin_std=draft["langevin_std"], step_size=draft["step_size"])
    draft.put("noise_std", check("noise_std", noise_std), Source.DERIVED)


def _fill_steps(algorithm: Algorithm, draft: Description) -> None:
    """Fill in the batch size of a full-batch step, and the number of steps from the number of epochs.

    Raises:
        SpecError: both numbers are given, or the batch is larger than the records.
    """
    records = draft.get("records")
    if algorithm.full_batch:
        if draft.sources["batch_size"] is not Source.DEFAULT:
            raise SpecError("a full-batch step uses all records", "leave out --batch-size, or use noisy-sgd")
        draft.take("batch_size")
    elif records is not None and draft["batch_size"] > records:
        raise SpecError(f"batch size {draft['batch_size']} exceeds the {records} records", "use a smaller one")
    if not draft.has("epochs"):
        if algorithm.one_pass_by_default and not draft.has("steps") and records is not None:
            draft.put("steps", records, Source.DEFAULT)
        return
    if draft.has("steps"):
        raise SpecError("both steps and epochs are given", "give one of the two")
    if records is not None:
        steps_of_pass = 1 if algorithm.full_batch else -(-records // draft["batch_size"])
        draft.put("steps", draft["epochs"] * steps_of_pass, Source.DERIVED)


def _refuse_steps(algorithm: Algorithm, draft: Description) -> None:
    """Refuse a number of steps for a run that is counted in epochs: nothing would read it.

    Raises:
        SpecError: it is given.
    """
    cure = "leave out --steps" if draft.has("epochs") else "give --epochs in place of --steps"
    raise SpecError(f"{algorithm.base} is counted in epochs, and steps are given", cure)


def _fill_index(algorithm: Algorithm, draft: Description) -> None:
    records = draft.get("records")
    if records is None:
        return
    if draft.has("window"):
        _index_of_window(draft)
    if draft.has("schedule") and not draft.has("index"):
        return  # the worst position depends on the steps and on the question
    used = records - _dropped(draft)
    if not draft.has("index"):
        draft.put("index", algorithm.worst_index(used), Source.WORST_CASE)
    elif used < draft["index"] <= records:
        raise SpecError(
            f"the record at position {draft['index']} is dropped in every pass, and tells nothing",
            f"use --index between 1 and {used}",
        )
    elif draft["index"] > records:
        raise SpecError(
            f"index {draft['index']} is past the last record {records}", f"use --index between 1 and {records}"
        )


def _dropped(draft: Description | Given) -> int:
    """Return how many records at the end a fixed order never uses."""
    records, size = draft["records"], draft.get("batch_size", 1)
    return int(records % size) if draft.get("last_batch") is LastBatch.DROP and records > size else 0


def _index_of_window(draft: Description) -> None:
    """Fill in the last record that at least ``window`` others follow: the worst one."""
    window, records = draft["window"], draft["records"]
    if draft.has("index"):
        raise SpecError("both index and window are given", "give one of the two")
    if window >= records:
        raise SpecError(f"no record is followed by {window} others: there are {records}", f"use --window < {records}")
    draft.put("index", records - window, Source.WORST_CASE)
