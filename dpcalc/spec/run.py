"""The description of a run: an algorithm and its parameters, validated, with where each value came from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from dpcalc.errors import SpecError
from dpcalc.numerics.floats import down, up
from dpcalc.spec import loss
from dpcalc.spec.symbols import SYMBOLS, check

ALGORITHMS: dict[str, str] = {
    "pnsgd": "one pass of projected noisy SGD in the given order; the last iterate is released",
    "skip": "as pnsgd, after skipping a uniformly random prefix of at most half the records",
    "stop": "as pnsgd, stopped after a uniformly random number of steps",
    "local": "one record's noisy gradient message; order and iterates may be public",
    "shuffled": "one pass of projected noisy SGD in a uniformly random order; the last iterate is released",
    "rotation": "one pass from a uniformly random record on, in cyclic order; the last iterate is released",
    "shuffled-stop": "one pass in a uniformly random order, stopped after a uniformly random number of steps",
    "online": "one pass over a growing stream, each record's noise below the last; the latest iterate is released once",
    "cyclic": "several passes in one fixed order; the last iterate is released",
    "shuffle-once": "several passes in one uniformly random order; the last iterate is released",
    "shuffled-epochs": "several passes, each in a fresh uniformly random order; the last iterate is released",
    "noisy-sgd": "steps on fresh uniform batches drawn without replacement; the last iterate is released",
    "noisy-gd": "steps on the mean gradient of all records; the last iterate is released",
    "cyclic-released": "several passes in one fixed order; the iterate after every pass is released",
    "shuffle-once-released": "several passes in one uniformly random order; the iterate after every pass is released",
    "shuffled-epochs-released": "several passes, each in a fresh uniformly random order; the iterate after every pass "
    "is released",
    "noisy-sgd-released": "steps on fresh uniform batches drawn without replacement; every iterate is released",
    "noisy-gd-released": "steps on the mean gradient of all records; every iterate is released",
    "repeated": "passes of which no more is known than the (epsilon, delta) of one; everything each gives is released",
    "dp-sgd-output": "steps on single records drawn with replacement, without noise; their average plus noise is "
    "released",
    "dp-sgd-gradient": "steps on fresh uniform batches, with noise; every iterate may be released, and the average is",
    "chain": "any sequence of noisy Lipschitz steps, described step by step; the last iterate is released",
}
"""What each algorithm name runs and releases."""

_WORST_IS_FIRST = ("stop",)
_ONE_PASS = ("shuffled", "rotation", "shuffled-stop")
_SHUFFLED_PASSES = ("shuffle-once", "shuffled-epochs", "shuffle-once-released", "shuffled-epochs-released")
_SAMPLED = ("dp-sgd-output", "dp-sgd-gradient")
_BY_STEPS = ("noisy-sgd", "noisy-gd", "noisy-sgd-released", "noisy-gd-released", *_SAMPLED)
FIXED_ORDER = ("pnsgd", "cyclic", "cyclic-released")
"""Where the order of batches is fixed, and their bounds divide a short last one by its own size."""
_NO_INDEX = (*_ONE_PASS, *_SHUFFLED_PASSES, *_BY_STEPS)
_DEFAULTS: dict[str, Any] = {"batch_size": 1, "adjacency": "replace-one"}
_OWN_DEFAULTS: dict[str, dict[str, Any]] = {
    "pnsgd": {**_DEFAULTS, "strong_convexity": 0.0},
    "chain": {"start_distance": 0.0},
    **{
        name: {**_DEFAULTS, "strong_convexity": 0.0, "last_batch": "own", "permutation": "public"}
        for name in (*_ONE_PASS, *_SHUFFLED_PASSES)
    },
    **{name: {**_DEFAULTS, "strong_convexity": 0.0} for name in ("cyclic", "cyclic-released", *_BY_STEPS)},
    "repeated": {"adjacency": "replace-one", "epoch_delta": 0.0},
    "online": {"adjacency": "replace-one", "strong_convexity": 0.0, "noise_multiplier": 1.0},
}


NOISE_SCALES = {"noise_std": "gaussian", "laplace_scale": "laplace"}
"""The kind of noise that each scale parameter speaks of."""


class Run(NamedTuple):
    """A described run. ``values`` holds every parameter (and derived ``sensitivity``), ``sources`` where it came from:
    ``flag``, ``argument``, ``loss``, ``default``, ``worst case``, ``derived``."""

    algorithm: str
    values: Mapping[str, Any]
    sources: Mapping[str, str]

    def replacing(self, **changes: Any) -> Run:
        """Return the run with some given values changed, checked and derived anew."""
        kept = ("flag", "argument", "file", "loss")
        also = ("schedule",) if "steps" in changes else ("schedule", "epochs")
        given = {k: v for k, v in self.values.items() if self.sources[k] in kept or k in also}
        sources = {k: v for k, v in self.sources.items() if k in given}
        given.update(changes)
        sources.update(dict.fromkeys(changes, "argument"))
        return describe(self.algorithm, given, sources)


def describe(algorithm: str, given: Mapping[str, Any], sources: Mapping[str, str] | None = None) -> Run:
    """Return the described run: every given value checked, defaults and the worst index filled in.

    Args:
        algorithm: a key of `ALGORITHMS`.
        given: parameter name -> value; None means not given. A ``schedule`` passes unchecked.
        sources: parameter name -> source; "argument" where absent.

    Raises:
        SpecError: a value is outside its domain, or the index is past the last record.
    """
    if algorithm not in ALGORITHMS:
        raise SpecError(f"algorithm is {algorithm!r}; it must be one of {', '.join(ALGORITHMS)}")
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for name, value in given.items():
        if value is None:
            continue
        values[name] = check(name, value) if name in SYMBOLS else value
        origin[name] = (sources or {}).get(name, "argument")
    for name, value in _OWN_DEFAULTS.get(algorithm, _DEFAULTS).items():
        if name not in values:
            values[name], origin[name] = value, "default"
    _refuse_contradictions(values)
    if algorithm == "local" and "records" not in values:
        values["records"], origin["records"] = 1, "default"  # a message depends on no other record
    if algorithm in FIXED_ORDER:
        _refuse_last_batch(values)
    _fill_index(algorithm, values, origin)
    if algorithm in _BY_STEPS:
        _fill_steps(algorithm, values, origin)
    if "lipschitz" in values:
        twice = values["adjacency"] == "replace-one"
        values["sensitivity"] = values["lipschitz"] * (2.0 if twice else 1.0)
        origin["sensitivity"] = "derived"
    if algorithm != "chain":
        _derive_loss(values, origin)
        _derive_noise(algorithm, values, origin)
    for name in ("sensitivity", "diameter"):
        if origin.get(name) == "derived" and math.isinf(values[name]):
            raise SpecError(f"the {name} would be larger than any number", "use other units")
    return Run(algorithm, values, origin)


def _refuse_contradictions(values: Mapping[str, Any]) -> None:
    if values.get("strong_convexity", 0.0) > values.get("smoothness", math.inf):
        raise SpecError(
            f"strong convexity {values['strong_convexity']:g} exceeds smoothness {values['smoothness']:g}",
            "a loss cannot curve more than its smoothness",
        )
    if values.get("regularisation") and values.get("adjacency") == "null-record":
        raise SpecError(
            "with a regulariser the gradient of a null record is not zero", "leave out --adjacency null-record"
        )


def _derive_loss(values: dict[str, Any], origin: dict[str, str]) -> None:
    """Fill in the loss class, and the displacement factor that follows from it on a bounded domain."""
    if "loss_class" not in values:
        values["loss_class"], origin["loss_class"] = loss.default_class(values.get("smoothness")), "derived"
    if "radius" in values and "diameter" not in values:
        values["diameter"], origin["diameter"] = 2.0 * values["radius"], "derived"
    if "displacement" in values or "diameter" not in values or "step_size" not in values:
        return
    known = {name: values[name] for name in ("lipschitz", "smoothness", "strong_convexity") if name in values}
    weight = values.get("regularisation", 0.0)
    if weight and "lipschitz" in known and values["step_size"] * weight > 1.0 - 1e-12:
        # A step this long turns the regulariser's part around: what counts is the bound on the whole gradient.
        del known["lipschitz"]
        if "radius" in values:
            known["lipschitz"] = up(values["lipschitz"] + up(weight * values["radius"]), 4.0)
    factor = loss.displacement(
        loss_class=values["loss_class"], step_size=values["step_size"], diameter=values["diameter"], **known
    )
    if factor is not None:
        values["displacement"], origin["displacement"] = factor, "derived"


def _derive_noise(algorithm: str, values: dict[str, Any], origin: dict[str, str]) -> None:
    """Fill in the kind of noise and its scale, from either flag or from a schedule tuned to the number of records.

    Raises:
        SpecError: two scales are given, or a scale and another kind of noise.
    """
    if "langevin_std" in values:
        _langevin_noise(values, origin)
    given = [name for name in NOISE_SCALES if name in values]
    if len(given) > 1:
        raise SpecError("both noise_std and laplace_scale are given", "give one of the two")
    kind = NOISE_SCALES[given[0]] if given else values.get("noise", "gaussian")
    if values.get("noise", kind) != kind:
        raise SpecError(f"noise is {values['noise']} and {given[0]} is given", "leave out --noise")
    if "noise" not in values:
        values["noise"], origin["noise"] = kind, "derived"
    if given:
        if "c1" in values:
            raise SpecError(f"{given[0]} is given and also follows from c1 and c2", "keep one of the two")
        values["scale"], origin["scale"] = values[given[0]], "derived"
    elif algorithm in _ONE_PASS and "c1" in values:
        _tuned_noise(values, origin)
    if kind == "laplace" and values.get("dimension", 1) > 1 and origin.get("displacement") == "derived":
        # What the table bounds is a Euclidean distance; the noise acts on the 1-norm.
        values["displacement"] = up(values["displacement"] * values["dimension"] ** 0.5, 4.0)


def _tuned_noise(values: dict[str, Any], origin: dict[str, str]) -> None:
    """Fill in the scale of the n-dependent schedule (Sordello et al., Theorems 3 and 4)."""
    from dpcalc.spec.noise import scale

    needed = ("c2", "records", "step_size", "diameter", "displacement")
    missing = [name for name in needed if name not in values]
    if missing:
        flags = ", ".join(SYMBOLS[name].flag for name in missing)
        raise SpecError(f"the noise schedule needs {', '.join(missing)}", f"give {flags}")
    if values["batch_size"] != 1:
        raise SpecError("the noise schedule is for batches of one record", "leave out --batch-size")
    found = scale(
        values["noise"], log_x=math.log(values["records"]), c1=values["c1"], c2=values["c2"],
        displacement=values["displacement"], diameter=values["diameter"], step_size=values["step_size"],
    )  # fmt: skip
    values["scale"], origin["scale"] = down(found, 4.0), "derived"


def _langevin_noise(values: dict[str, Any], origin: dict[str, str]) -> None:
    """Fill in noise_std from the noise of Langevin diffusion: eta noise_std = sqrt(2 eta) langevin_std.

    Raises:
        SpecError: noise_std is given as well, or the step size is not.
    """
    if "noise_std" in values:
        raise SpecError("both noise_std and langevin_std are given", "give one of the two")
    if "step_size" not in values:
        raise SpecError("langevin_std needs the step size", "give --step-size")
    from dpcalc.spec.noise import langevin_noise_std

    found = langevin_noise_std(langevin_std=values["langevin_std"], step_size=values["step_size"])
    values["noise_std"], origin["noise_std"] = check("noise_std", found), "derived"


def _fill_steps(algorithm: str, values: dict[str, Any], origin: dict[str, str]) -> None:
    """Fill in the batch of a full-batch step, and the number of steps from that of epochs.

    Raises:
        SpecError: both numbers are given, or the batch is larger than the records.
    """
    records = values.get("records")
    if algorithm.startswith("noisy-gd"):
        if origin["batch_size"] != "default":
            raise SpecError("a full-batch step uses all records", "leave out --batch-size, or use noisy-sgd")
        values.pop("batch_size")
    elif records is not None and values["batch_size"] > records:
        raise SpecError(f"batch size {values['batch_size']} exceeds the {records} records", "use a smaller one")
    if "epochs" not in values:
        if algorithm in _SAMPLED and "steps" not in values and records is not None:
            values["steps"], origin["steps"] = records, "default"
        return
    if "steps" in values:
        raise SpecError("both steps and epochs are given", "give one of the two")
    if records is not None:
        each = 1 if algorithm.startswith("noisy-gd") else -(-records // values["batch_size"])
        values["steps"], origin["steps"] = values["epochs"] * each, "derived"


def _refuse_last_batch(values: Mapping[str, Any]) -> None:
    """Raise SpecError where a short last batch is not divided by its own size: a dropped one leaves a step less of
    noise, and one divided by the nominal size contracts less, than the bounds for a fixed order take for granted.
    """
    records, size, last = values.get("records"), values["batch_size"], values.get("last_batch", "own")
    if records is None or last == "own" or not records % size:
        return
    if last == "drop" and records > size:
        whole = records - records % size
        raise SpecError(
            f"the {records % size} records of a short last batch are dropped in every pass of a fixed order",
            f"they tell nothing: describe the others, with --records {whole}",
        )
    if last == "nominal":
        raise SpecError(
            "in a fixed order a short last batch is divided by its own size",
            "leave out --last-batch: no bound for it is known here",
        )


def _fill_index(algorithm: str, values: dict[str, Any], origin: dict[str, str]) -> None:
    records = values.get("records")
    if records is None or algorithm in _NO_INDEX:
        return
    if "window" in values:
        _index_of_window(values, origin)
    if "schedule" in values and "index" not in values:
        return  # which is worst depends on the steps and on the question
    if "index" not in values:
        # Noise accumulates after a record's step, so the last record is worst; a random stop may never reach it.
        values["index"] = 1 if algorithm in _WORST_IS_FIRST else records
        origin["index"] = "worst case"
    elif values["index"] > records:
        raise SpecError(
            f"index {values['index']} is past the last record {records}", f"use --index between 1 and {records}"
        )


def _index_of_window(values: dict[str, Any], origin: dict[str, str]) -> None:
    """Fill in the youngest record that at least ``window`` others follow: the worst off of them all."""
    window, records = values["window"], values["records"]
    if "index" in values:
        raise SpecError("both index and window are given", "give one of the two")
    if window >= records:
        raise SpecError(f"no record is followed by {window} others: there are {records}", f"use --window < {records}")
    values["index"], origin["index"] = records - window, "worst case"
