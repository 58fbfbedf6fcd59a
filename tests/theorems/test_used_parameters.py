"""Nothing told of a run is quietly ignored: what a bound reads changes its value, and what it leaves out is listed.

A parameter that a bound reads only to see whether it applies is listed with the reason, and so is one that its
algorithm takes and the bound leaves out: with the bound that uses it, or why none could.
"""

import math
import random
from typing import Any

import numpy as np
import pytest

from dpcalc.errors import DpcalcError
from dpcalc.model.algorithm import ALGORITHMS, Order
from dpcalc.model.phases import Phases
from dpcalc.model.quantities import LastBatch, Sampling
from dpcalc.notions.guarantee import Composition, Point, Rdp
from dpcalc.theorems.conditions import BALANCED
from dpcalc.theorems.record import Theorem, lookup
from tests.formulas import run_of
from tests.oracles import log_uniform, whole
from tests.oracles.correlated import matrix_of
from tests.theorems.test_registry import BOUNDS, EVERY, SINGLE, chain_of, losses, parameters

EVERY_BUT_SLOW = pytest.mark.parametrize(
    "bound",
    [pytest.param(b, marks=pytest.mark.campaign if b.slow else (), id=name) for name, b in BOUNDS.items()],
)
WORDS: dict[str, tuple[str, ...]] = {
    "last_batch": tuple(LastBatch), "adjacency": ("replace-one", "null-record"), "permutation": ("public", "secret"),
    "sampling": tuple(Sampling),
    "mechanism": ("identity", "sqrt", "banded-sqrt", "bisr"), "scaling": ("matrix", "columns", "sensitivity"),
    "noise": ("gaussian", "laplace"), "loss_class": ("convex-smooth", "convex", "smooth", "lipschitz"),
}  # fmt: skip
CLASSES = {
    "expanding.domain": ("smooth", "convex", "lipschitz"),
    "contraction.hybrid": ("convex-smooth", "smooth", "lipschitz"),
}
SIZES = ("records", "batch_size")
TRIES = 400


# --- what a bound reads -----------------------------------------------------------------------------------------------

SHORT_STEPS = "only says that the steps are short enough for 1-Lipschitz maps"
ONE_NOISE = "the theorem is about one law of noise"
SINGLES = "a random stop is proved for single records"
ALLOWS_ONLY: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    (SHORT_STEPS, ("smoothness", "step_size"), (
        "contraction.laplace_shift", "contraction.laplace_mixture", "shuffle.mixture", "shuffle.laplace_mixture",
        "shuffled_epochs.once_laplace",
    )),
    (SHORT_STEPS, ("smoothness",), ("online.shift", "online.laplace_shift", "online.hybrid")),
    ("the map with -eta m turns first, and a step past 2/(smoothness + strong_convexity) is refused", ("smoothness",), (
        "noisy_gd.langevin", "noisy_gd.langevin_refined", "noisy_gd.langevin_lower", "noisy_gd.langevin_published",
        "noisy_gd.quadratic", "multi_epoch.quadratic",
    )),
    (ONE_NOISE, ("noise",), (
        "contraction.shift", "contraction.laplace_shift", "contraction.laplace_mixture", "shuffle.mixture",
        "shuffle.laplace_mixture", "hidden_position.shuffled", "online.shift", "online.laplace_shift",
        "expanding.laplace", "released.own_noise", "released.cyclic", "released.shuffle_once", "multi_epoch.laplace",
        "shuffled_epochs.once_laplace", "noisy_gd.laplace",
        "released.shuffled_epochs_secret", "released.shuffled_epochs_secret_curve", "released.shuffle_once_secret",
    )),
    (SINGLES, ("batch_size", "last_batch"), (
        "contraction.stop_product", "contraction.stop_nonlinear", "contraction.stop_hybrid",
        "contraction.stop_published", "linear.shuffled_stop", "linear.shuffled_stop_curved",
    )),
    (SINGLES, ("batch_size",), ("shuffle.stop_product", "shuffle.stop_hybrid")),
    ("the published number is for every record", ("index",), ("contraction.stop_published",)),
    ("output perturbation is proved for single records", ("batch_size",), (
        "dp_sgd.output", "dp_sgd.output_split", "dp_sgd.output_published",
    )),
    ("limits do not depend on C2", ("c2",), ("shuffle.limit", "shuffle.nonlinear_limit")),
    ("only says that no better theorem speaks of the run", ("loss_class",), (
        "expanding.composition", "expanding.cyclic",
    )),
    ("only says how long a step may be for lipschitz to bound what it adds", ("regularisation",), (
        "expanding.domain", "expanding.cyclic", "expanding.once", "expanding.sampled",
    )),
    ("pure privacy has no delta", ("epoch_delta",), ("released.pure",)),
    ("follows from smoothness in these runs", ("contraction",), (
        "unlearning.distance", "unlearning.minimiser", "unlearning.run", "unlearning.whole_run",
    )),
    ("says that the matrix is from a file, and which order repeats", ("mechanism", "sampling", "epochs"), (
        "correlated.matrix",
    )),
    ("each is about one way to draw batches", ("sampling",), (
        "sampled.poisson", "sampled.fixed", "sampled.with_replacement", "sampled.full", "sampled.balls_in_bins",
        "sampled.truncated", "sampled.shuffle", "sampled.hidden_shuffle", "sampled.hidden_full",
        "sampled.shuffle_lower", "sampled.last_iterate_heuristic",
        "correlated.gaussian", "correlated.banded_poisson", "correlated.banded_balls",
    )),
)  # fmt: skip
"""(why, parameters, bounds): what a bound reads to see whether it applies, and that does not change its value."""


def allows_only(bound: Theorem) -> set[str]:
    """The parameters that the bound reads without its value depending on them."""
    return {name for _, names, bounds in ALLOWS_ONLY if bound.id in bounds for name in names} & set(bound.parameters)


def small(bound: Theorem, r: random.Random) -> dict[str, Any]:
    """A run in which much may happen: few records and passes, any split, steps of any length, or a tight domain."""
    values = parameters(bound, r)
    if "schedule" not in values:
        values["records"] = n = whole(r, 2, 10**5 if bound.family == "dp_sgd" else 8 if bound.slow else 12)
        values["index"] = whole(r, 1, n)
        values["batch_size"] = 1 if bound.algorithms[0] in SINGLE else whole(r, 1, n)
    if bound.family == "unlearning":
        values.update(
            records=values["batch_size"] * whole(r, 1, 4), clean_steps=whole(r, 1, 9), requests=whole(r, 1, 3)
        )
        if bound.id != "unlearning.distance":
            values["requests"] = 1
    values["last_batch"] = r.choice(WORDS["last_batch"])
    values["epochs"], values["steps"] = whole(r, 1, 4), whole(r, 1, 6)
    values["strong_convexity"] *= r.choice((0.0, 1.0, -1.0) if bound.family == "expanding" else (0.0, 1.0))
    if bound.family != "dp_sgd":
        most = 1.0 if BALANCED in bound.conditions else 1.9
        values["step_size"] = r.choice((0.02, 0.5, 1.0, most, most)) / values.get("smoothness", 1.0)
    values["noise_std"] = values["scale"] = values["laplace_scale"] = noise = log_uniform(r, 0.3, 10.0)
    if bound.id.startswith("sampled.hidden"):
        values.update(
            records=4 + values["batch_size"], steps=whole(r, 2, 200), regularisation=0.1 / values["step_size"]
        )
    if bound.id.endswith("linear_model"):
        values.update(model="linear", step_size=values["step_size"] / 4.0, adjacency=r.choice(WORDS["adjacency"]))
    if "group_size" in bound.parameters:
        values["group_size"] = whole(r, 1, 3)
    if bound.slow:  # where a use and the domain are about as large as the noise, all else matters
        values["sensitivity"] = log_uniform(r, 0.3, 3.0) * noise * values["batch_size"]
        values["lipschitz"] = values["sensitivity"] / 2.0
    values["diameter"] = log_uniform(r, 0.1, 5.0) * values["step_size"] * noise
    if bound.family == "sampled":
        draw_batches(bound, values, r)
    if bound.id.startswith("correlated.banded") and r.random() < 0.5:
        matrix = matrix_of(r, 8)
        values.update(mechanism="file", schedule=matrix, steps=8, bands=matrix.bands, separation=2 * matrix.bands)
    values["loss_class"] = r.choice(CLASSES.get(bound.id, (values["loss_class"],)))
    if "dimension" in bound.parameters and r.random() < 0.5:
        values["noise"] = "laplace"
    optional = sorted(bound.optional - {"loss_class", "bands", *(SIZES if bound.family == "sampled" else ())})
    unknown = r.sample(optional, k=min(len(optional), r.choice((0, 0, 1, 2))))
    if bound.id.startswith("dp_sgd"):  # one constant of the loss stands in for another
        unknown = r.choice(([], ["lipschitz"], ["lipschitz", "radius"]))
    if "diameter" not in bound.parameters:
        unknown.append("diameter")
    if "steps" in bound.optional and r.random() < 0.5:
        unknown.append("steps")
    return {name: value for name, value in values.items() if name not in unknown}


def draw_batches(bound: Theorem, values: dict[str, Any], r: random.Random) -> None:
    """Draw batches in any way that the bound speaks of, of so many records, at a rate that follows from the sizes."""
    n, b = values["records"], values["batch_size"]
    if bound.id == "sampled.total_lower":
        values["sampling"] = r.choice(WORDS["sampling"])
        values["group_size"] = r.choice((1, 2, 3))
    if "uses" in bound.parameters and values.get("group_size", 1) == 1:
        values["uses"] = whole(r, 1, 3)
    if bound.id in ("sampled.total_lower", "sampled.balls_in_bins"):
        values["steps"] = -(-values.get("uses", 1) * n // b) * whole(r, 1, 3)
    if bound.kind == "heuristic":
        values["adjacency"] = r.choice(("remove", "add", "add-remove"))
    if bound.id == "sampled.fixed":
        values["sample_rate"] = b / n
    if bound.id == "sampled.scheduled":
        values["schedule"] = phases_of(r)
        if r.random() < 0.5:
            values.update(records=20, max_batch_size=whole(r, 1, 4))


def phases_of(r: random.Random) -> Phases:
    """Two phases of steps."""
    rates, multipliers, counts = ([draw() for _ in range(2)] for draw in (
        lambda: r.uniform(0.01, 0.3), lambda: log_uniform(r, 0.5, 3.0), lambda: float(whole(r, 1, 20)),
    ))  # fmt: skip
    return Phases(np.array(rates), np.array(multipliers), np.array(counts), "test")


def changed(name: str, values: dict[str, Any], r: random.Random) -> dict[str, Any] | None:
    """The run with another value of a parameter, or None where there is none to try."""
    value = values.get(name)
    if value is None:
        return None
    if isinstance(value, Phases):
        return {**values, name: phases_of(r)}
    if name == "schedule":
        other = matrix_of if values.get("mechanism") == "file" else chain_of
        return {**values, name: other(r, len(value))}
    if name in WORDS:
        return {**values, name: r.choice([word for word in WORDS[name] if word != value])}
    if isinstance(value, int):
        top = values["records"] if name == "index" else 10**6
        return {**values, name: min(max(1, r.choice((1, value - 1, value + 1, 2 * value))), top)}
    if name == "strong_convexity":
        return {**values, name: math.copysign(values.get("smoothness", 1.0) * r.random(), value)}
    if name == "sample_rate":
        return {**values, name: min(1.0, value * r.choice((0.5, 0.9, 1.1, 2.0)))}
    if name in ("holder_exponent", "epoch_delta"):
        return {**values, name: r.choice((0.0, 1e-9, 0.3, 1.0)) if name == "holder_exponent" else r.choice((0.0, 1e-4))}
    return {**values, name: (value or 1.0) * r.choice((0.01, 0.5, 0.9, 1.1, 2.0, 100.0))}


def values_of(bound: Theorem, values: dict[str, Any]) -> list[float] | None:
    """What the bound says of a run at a few questions, or one; None where it does not speak of it."""
    try:
        if not bound.slow or bound.gives is Point:
            return losses(bound, values)
        found = bound.prove(run_of(values))
        if isinstance(found, Composition):
            return [found.log_delta(0.3).value]
        return [found.curve(4.0) if isinstance(found, Rdp) else found.profile(0.3)]
    except DpcalcError:
        return None


def differ(one: list[float], other: list[float]) -> bool:
    """Whether two answers differ by more than rounding."""
    return any(a != b and abs(a - b) > 1e-9 * min(abs(a), abs(b)) for a, b in zip(one, other, strict=True))


def unmoved(bound: Theorem, names: set[str], tries: int) -> set[str]:
    """The parameters of these that no try changes the value with."""
    r = random.Random(bound.id)
    for _ in range(tries):
        values = small(bound, r)
        base = values_of(bound, values)
        for name in sorted(names) if base is not None else ():
            other = changed(name, values, r)
            found = values_of(bound, other) if other is not None else None
            if found is not None and differ(base, found):
                names = names - {name}
        if not names:
            break
    return names


@EVERY_BUT_SLOW
def test_what_a_bound_reads_changes_its_value(bound: Theorem) -> None:
    names = set(bound.parameters) - allows_only(bound)
    assert not unmoved(bound, names, TRIES), f"{bound.id} reads these, and its value does not depend on them"


@EVERY_BUT_SLOW
def test_what_is_listed_as_unused_is_unused(bound: Theorem) -> None:
    names = allows_only(bound)
    assert unmoved(bound, names, 3 if bound.slow else 20) == names, f"{bound.id} uses it: strike it from the list"


# --- what a bound leaves out ------------------------------------------------------------------------------------------

SHARPENING = ("strong_convexity", "diameter", "index", "batch_size", "last_batch", "epochs")
"""What may make a run more private, or a record of it."""
THROUGH = {
    "strong_convexity": ("displacement", "schedule"), "batch_size": ("schedule", "sample_rate", "separation"),
    "last_batch": ("schedule",), "epochs": ("steps",),
}  # fmt: skip
"""Parameters from which others follow that a bound may read in their place."""
LEFT_TO: dict[str, dict[str, tuple[str, ...]]] = {
    "strong_convexity": {
        "iteration.pnsgd_contraction": ("iteration.pnsgd", "iteration.pnsgd_rdp"),
        "contraction.stop_hybrid": (
            "iteration.stop", "iteration.stop_rdp", "iteration.stop_harmonic", "iteration.stop_linear",
        ),
        "contraction.hybrid": ("contraction.laplace_shift", "contraction.laplace_mixture"),
        "multi_epoch.cyclic_contraction": (
            "multi_epoch.cyclic", "multi_epoch.cyclic_rdp", "multi_epoch.composition",
        ),
        "shuffle.hybrid": ("shuffle.mixture", "shuffle.laplace_mixture"),
    },
    "diameter": {
        "iteration.pnsgd_domain": ("iteration.pnsgd", "iteration.pnsgd_rdp", "iteration.pnsgd_contraction"),
        "stepwise.hybrid": ("scheduled.pnsgd",),
        "contraction.stop_hybrid": (
            "iteration.stop", "iteration.stop_rdp", "iteration.stop_harmonic", "iteration.stop_linear",
        ),
        "contraction.hybrid": ("contraction.laplace_shift", "contraction.laplace_mixture"),
        "multi_epoch.cyclic_domain": (
            "multi_epoch.cyclic", "multi_epoch.cyclic_rdp", "multi_epoch.cyclic_contraction",
            "multi_epoch.composition",
        ),
        "shuffle.hybrid": ("shuffle.mixture", "shuffle.laplace_mixture"),
        "noisy_gd.domain": ("noisy_gd.contraction", "noisy_gd.langevin", "noisy_gd.langevin_refined"),
        "expanding.domain": ("expanding.composition",),
        "unlearning.run": ("unlearning.whole_run",),
    },
    "index": {"iteration.stop": ("iteration.stop_linear",)},
}  # fmt: skip
"""parameter -> the bound that uses it -> those that leave it to that one."""
NOTHING_HIDES = "a use is hidden by its own noise alone: what follows may be seen"
UNKNOWN_PASS = "nothing is known of a pass but its guarantee"
NO_THEOREM = "maps that contract, and a domain, would sharpen it; no theorem here says how"
UNREAD: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    (NOTHING_HIDES, ("strong_convexity", "diameter"), (
        "iteration.local", "iteration.local_rdp", "iteration.local_classic", "noisy_gd.composition",
        "sampled.poisson", "sampled.fixed", "sampled.with_replacement", "sampled.full", "sampled.balls_in_bins",
        "sampled.shuffle", "sampled.truncated", "sampled.known_places", "sampled.scheduled",
        "noisy_sgd.composition", "released.own_noise", "expanding.composition", "expanding.laplace", "dp_sgd.gradient",
        "dp_sgd.gradient_renyi", "dp_sgd.gradient_lemma",
    )),
    (UNKNOWN_PASS, ("strong_convexity", "diameter", "index", "batch_size", "last_batch"), (
        "released.optimal", "released.pure", "released.advanced",
    )),
    (NO_THEOREM, ("strong_convexity", "diameter"), (
        "iteration.skip", "iteration.skip_rdp", "multi_epoch.laplace",
        "shuffled_epochs.once_laplace",
    )),
    ("a wall erases the noise before it", ("diameter",), (
        "iteration.linear_model", "shuffle.linear_model", "multi_epoch.linear_model",
        "shuffled_epochs.once_linear_model",
    )),
    ("the schedule says how many steps there are", ("epochs", "batch_size"), ("sampled.scheduled",)),
    ("a full batch is all records", ("batch_size",), ("sampled.full", "sampled.hidden_full")),
    ("all that counts is how far apart two models are before the steps", ("batch_size", "epochs"), (
        "unlearning.distance", "unlearning.schedule", "unlearning.minimiser",
    )),
    ("what is composed is the worst place", ("index",), (
        "released.own_noise", "expanding.laplace", "expanding.domain",
    )),
)  # fmt: skip
"""(why, parameters, bounds): what no bound uses for these runs."""


def takes(algorithm: str, name: str) -> bool:
    """Whether a run of the algorithm may have more than one value of the parameter."""
    record = ALGORITHMS[algorithm]
    if name not in record.parameters or (name == "index" and not record.indexed):
        return False
    if name == "last_batch" and record.order in (Order.SAMPLE, Order.DRAW, Order.FULL):
        return False
    return not (name in ("batch_size", "last_batch") and (record.single or record.full_batch))


def left_out(bound: Theorem) -> set[str]:
    """What some algorithm of the bound takes, and the bound does not read."""
    fields = set(bound.reads)
    return {
        name
        for name in SHARPENING
        if not fields & {name, *THROUGH.get(name, ())} and any(takes(a, name) for a in bound.algorithms)
    }


def explained(bound: Theorem) -> set[str]:
    """What is listed as left out, with the bound that uses it, or why there is none."""
    left = {name for name, users in LEFT_TO.items() for user, bounds in users.items() if bound.id in bounds}
    return left | {name for _, names, bounds in UNREAD if bound.id in bounds for name in names}


@EVERY
def test_what_a_guarantee_leaves_out_is_listed(bound: Theorem) -> None:
    if bound.guarantee:
        assert left_out(bound) <= explained(bound), bound.id


def test_whoever_is_left_a_parameter_uses_it_in_the_same_runs() -> None:
    for name, users in LEFT_TO.items():
        for user, bounds in users.items():
            sharper = lookup(user)
            assert sharper.guarantee
            assert {name, *THROUGH.get(name, ())} & set(sharper.reads) - allows_only(sharper), (name, user)
            for bound in map(lookup, bounds):
                assert name in left_out(bound), (name, bound.id)
                assert set(bound.algorithms) <= set(sharper.algorithms), (name, bound.id)


def test_the_lists_name_bounds_that_exist() -> None:
    for _, names, bounds in (*ALLOWS_ONLY, *UNREAD):
        for bound in bounds:
            assert set(names) & {*lookup(bound).reads, *left_out(lookup(bound))}, (names, bound)
