"""What must hold of every registered bound, driven by its record."""

# ruff: noqa: PT017 (a refusal is one of two good outcomes)
import itertools
import math
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from dpcalc import references
from dpcalc.engine.answer import answer
from dpcalc.engine.evaluate import guarantee_of
from dpcalc.engine.solving.search import DIRECTIONS
from dpcalc.errors import DpcalcError, NotApplicable, SpecError
from dpcalc.model.algorithm import Length
from dpcalc.model.chain import Chain
from dpcalc.model.draft import NOISE_SCALES
from dpcalc.model.parameter import PARAMETERS
from dpcalc.model.phases import Phases
from dpcalc.model.question import Question
from dpcalc.model.run import ALGORITHMS, Run, describe
from dpcalc.notions.guarantee import Composition, Gdp, Profile, Rdp
from dpcalc.report import Case
from dpcalc.theorems.conditions import BALANCED, EQUAL_MAPS
from dpcalc.theorems.lower.curved_orders import PUBLISHED, SECRET
from dpcalc.theorems.lower.linear_losses import FLAT
from dpcalc.theorems.record import FAMILIES, GIVES, KINDS, Theorem, all_bounds, for_algorithm, lookup
from tests.formulas import run_of
from tests.oracles import draws, log_uniform, whole
from tests.oracles.correlated import matrix_of

BOUNDS = {
    name: bound for name, bound in all_bounds().items() if not name.startswith("shifted.") and bound.notion != "cost"
}
EVERY = pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS.keys())
SEARCHED = (
    "contraction.laplace_mixture", "contraction.laplace_shift", "dp_sgd.gradient_lemma", "shuffle.laplace_mixture",
    "shuffled_epochs.fresh", "shuffled_epochs.once", "sampled.hidden_shuffle",
)  # fmt: skip
EVERY_BUT_SLOW = pytest.mark.parametrize(
    "bound",
    [
        pytest.param(b, marks=pytest.mark.campaign if b.slow or name in SEARCHED else (), id=name)
        for name, b in BOUNDS.items()
    ],
)
"""Slow bounds, and those in which a search takes seconds, are left to the campaign."""
SOLVED_SLOWLY = ("expanding.once", "expanding.cyclic", "released.shuffle_once", "iteration.linear_model")
EVERY_BUT_SLOWLY_SOLVED = pytest.mark.parametrize(
    "bound",
    [
        pytest.param(b, marks=pytest.mark.campaign if b.slow or name in (*SEARCHED, *SOLVED_SLOWLY) else (), id=name)
        for name, b in BOUNDS.items()
    ],
)
SIGNS = {
    "noise_std": -1,
    "laplace_scale": -1,
    "sensitivity": 1,
    "lipschitz": 1,
    "index": 1,
    "epochs": 1,
    "epoch_epsilon": 1,
    "epoch_delta": 1,
    "steps": 1,
    "clean_steps": -1,
    "requests": 1,
    "start_distance": 1,
    "gradient_norm": 1,
    "diameter": 1,
    "strong_convexity": -1,
    "scale": -1,
    "displacement": 1,
    "c1": -1,
    "radius": 1,
    "gradient_at_zero": 1,
    "loss_at_zero": 1,
    "schedule_factor": -1,
    "noise_multiplier": -1,
    "sample_rate": 1,
}
"""How the promised loss moves when a parameter grows (and all else stays)."""
FALLS_WITH_INDEX = ("stop",)
SINGLE = ("skip", "stop", "shuffled-stop", "online")


def chain_of(r: random.Random, steps: int) -> Chain:
    draw = lambda low, high: np.array([r.uniform(low, high) for _ in range(steps)])  # noqa: E731
    return Chain(
        step_size=draw(0.1, 1.0),
        noise=draw(0.5, 2.0),
        contraction=draw(0.5, 1.0),
        shift=draw(0.0, 1.0),
        spend=None,
        path="",
        displacement=draw(0.5, 1.5),
        probability=None,
    )


class Unmapped:
    """A schedule whose maps have no Lipschitz factor."""

    lipschitz = False


def noise_of(bound: Theorem) -> str:
    return "laplace" if "laplace" in bound.id else "gaussian"


def parameters(bound: Theorem, r: random.Random) -> dict[str, Any]:
    """Parameters that meet every requirement of the bound."""
    n = whole(r, 1, r.choice((5, 100, 1000 if bound.slow else 10**6)))
    beta = log_uniform(r, 0.1, 10.0)
    values: dict[str, Any] = {
        "records": n,
        "index": whole(r, 1, n),
        "batch_size": 1 if bound.algorithms[0] in SINGLE else r.choice((1, whole(r, 1, n))),
        "last_batch": r.choice(("own", "nominal", "drop")),
        "adjacency": r.choice(("replace-one", "null-record")),
        "epochs": whole(r, 1, 1000),
        "steps": whole(r, 1, 1000),
        "sensitivity": log_uniform(r, 0.1, 10.0),
        "noise_std": log_uniform(r, 0.1, 100.0),
        "laplace_scale": log_uniform(r, 0.1, 100.0),
        "smoothness": beta,
        "step_size": r.uniform(0.1, 1.99) / beta,
        "strong_convexity": beta * r.uniform(0.01, 0.99),
        "diameter": log_uniform(r, 0.1, 100.0),
        "start_distance": 0.0,
        "lipschitz": log_uniform(r, 0.1, 10.0),
        "epoch_epsilon": log_uniform(r, 1e-3, 1.0),
        "epoch_delta": 0.0 if bound.id == "released.pure" else log_uniform(r, 1e-12, 1e-3),
        "noise": noise_of(bound),
        "scale": log_uniform(r, 0.3, 30.0),
        "loss_class": "convex-smooth",
        "displacement": r.uniform(0.1, 2.0),
        "dimension": 1,
        "c1": log_uniform(r, 0.1, 1e4),
        "c2": log_uniform(r, 1.0, 1e3),
        "decay_exponent": r.uniform(1.5, 3.0),
        "schedule_factor": r.uniform(0.9, 1.05),
        "noise_multiplier": 1.0,
        "sample_rate": 0.1,
        "sampling": bound.id.removeprefix("sampled.").removesuffix("_lower").replace("_", "-"),
        "permutation": "secret",
        "holder_exponent": r.choice((0.0, 1.0, r.random())),
        "holder_constant": log_uniform(r, 0.1, 10.0),
        "gradient_at_zero": log_uniform(r, 0.1, 10.0),
        "loss_at_zero": log_uniform(r, 0.1, 10.0),
        "radius": log_uniform(r, 0.1, 10.0),
    }
    if EQUAL_MAPS in bound.conditions and values["last_batch"] == "nominal":
        values["last_batch"] = "own"
    if values["last_batch"] == "drop" and values["batch_size"] <= n:
        values["index"] = min(values["index"], n - n % values["batch_size"])
    if bound.id.startswith("dp_sgd.output"):
        total = values["holder_constant"] + 2.0 * values["strong_convexity"]
        values.update(batch_size=1, step_size=r.uniform(0.01, 0.99) / total)
    if bound.id == "contraction.paper_product" or BALANCED in bound.conditions:
        values["step_size"] *= 0.5
    if bound.family == "expanding":
        values["loss_class"] = "smooth"
    if bound.kind == "lower":
        del values["diameter"]
    if bound.family == "sampled":
        size, batches = whole(r, 1, 1000), whole(r, 2, 100)  # an epoch stays whole as records grow
        values.update(batch_size=size, records=size * batches, steps=batches * whole(r, 10, 50))
        values.update(noise_multiplier=log_uniform(r, 0.3, 10.0), sample_rate=log_uniform(r, 1e-4, 0.5))
    if bound.family == "correlated":
        sampling = {"correlated.banded_poisson": "poisson", "correlated.banded_balls": "balls-in-bins"}.get(bound.id)
        bands, bins = whole(r, 1, 8), whole(r, 2, 40)
        values.update(sampling=sampling, bands=bands, separation=bands * bins, participations=whole(r, 1, 5))
        values.update(mechanism=r.choice(("banded-sqrt",) if sampling else ("banded-sqrt", "bisr", "sqrt", "identity")))
        values.update(scaling=r.choice(("matrix", "columns")), steps=bands * bins * whole(r, 1, 5))
        values.update(noise_multiplier=log_uniform(r, 0.5, 10.0), sample_rate=log_uniform(r, 1e-4, 0.1))
    if bound.id == "linear.sampled_curved":
        values["step_size"] = min(values["step_size"], 1.0 / values["strong_convexity"])
    if bound.id == "sampled.scheduled":
        many = np.array([1.0, whole(r, 1, 100)])
        values.update(sampling="poisson", schedule=Phases(np.array([0.01, 0.02]), np.array([2.0, 1.5]), many, "test"))
    if bound.id == "sampled.truncated":
        values.update(sampling="poisson", max_batch_size=whole(r, 1, 2 * values["batch_size"]))
    if bound.id in ("sampled.known_places", "sampled.total_lower"):
        values.update(sampling="balls-in-bins", group_size=r.choice((2, 3)))
    if bound.id.startswith("sampled.hidden"):
        sampling = bound.id.removeprefix("sampled.hidden").removesuffix("_lower").removeprefix("_") or "poisson"
        values.update(sampling=sampling, release="last", model="linear", clip=log_uniform(r, 0.1, 10.0))
        values.update(regularisation=r.choice((0.0, 0.1 * r.random())) / values["step_size"])
        values.update(smoothness=beta + values["regularisation"], step_size=min(values["step_size"], 1.0 / beta))
    if bound.id.endswith("linear_model"):
        del values["diameter"]
        values.update(model="linear", adjacency="replace-one", step_size=0.5 * values["step_size"])
    if bound.kind == "heuristic":
        del values["diameter"]
        values.update(sampling="poisson", release="last", adjacency="add-remove")
    if FLAT in bound.conditions:
        values["strong_convexity"] = 0.0
    if PUBLISHED in bound.conditions:
        values["permutation"] = "public"
    if SECRET in bound.conditions:
        values["permutation"] = "secret"
    if "index" in bound.parameters:
        values["last_batch"] = "own"  # the record may be dropped, or moves into a batch of another size
    if bound.family == "unlearning":
        start = bound.id.removeprefix("unlearning.").removeprefix("whole_")
        known = start in ("minimiser", "run")
        values.update(start=start if known else "distance", start_distance=log_uniform(r, 0.1, 10.0), requests=1)
        if start == "minimiser":
            values["gradient_norm"] = 0.1 * r.random()
        if start != "run":
            values["adjacency"] = "replace-one" if start == "minimiser" else "null-record"
        values.update(clean_steps=whole(r, 1, 20), records=values["batch_size"] * whole(r, 1, 20))
    if "schedule" in bound.parameters and bound.family not in ("sampled", "correlated"):
        steps = r.randint(1, 12)
        values.update(schedule=chain_of(r, steps), records=steps, index=r.randint(1, steps))
        if bound.family == "unlearning":
            values["schedule"].shift *= 0.0
    if bound.id == "correlated.matrix":
        values.update(mechanism="file", bands=1, steps=whole(r, 1, 30), separation=whole(r, 1, 8))
        values.update(schedule=matrix_of(r, values["steps"]), epochs=1)
    return values


def losses(bound: Theorem, values: dict[str, Any]) -> list[float]:
    """The bound's number at a few of its own questions: larger is less private."""
    found = bound.prove(run_of(values))
    if isinstance(found, Gdp):
        return [found.mu]
    if isinstance(found, Rdp):
        return [found.curve(order) for order in (1.0, 1.5, 4.0)]
    if isinstance(found, Profile):
        return [found.profile(epsilon) for epsilon in (0.0, 0.3, 3.0)]
    if isinstance(found, Composition):
        return [found.log_delta(epsilon).value for epsilon in (0.3, 3.0)]
    return [found.rule(log_delta) for log_delta in (-1.0, -11.0, -300.0)]


def larger(values: dict[str, Any], name: str, r: random.Random) -> dict[str, Any] | None:
    """The values with one parameter grown, or None where it cannot grow."""
    value = values[name]
    if name == "index":
        top = len(values["schedule"]) if "schedule" in values else values["records"]
        return {**values, name: r.randint(value + 1, top)} if value < top else None
    if name == "strong_convexity":
        return {**values, name: value + (values["smoothness"] - value) * r.random()}
    if name == "schedule_factor":
        return {**values, name: value * r.uniform(1.0, 1.1)}  # a product without end tends to 0 with much more
    return {**values, name: value * r.randint(2, 9) if isinstance(value, int) else value * (1.0 + r.random() ** 4)}


def sign(bound: Theorem, name: str, values: dict[str, Any]) -> int:
    if name == "index" and bound.algorithms[0] in FALLS_WITH_INDEX:
        return -1
    if bound.algorithms[0] == "online" and name in ("displacement", "diameter"):
        return -1  # the schedule's noise is in proportion to them
    return SIGNS[name]


def moves(bound: Theorem, name: str, values: dict[str, Any]) -> bool:
    """Whether the theorem says that the bound is monotone in this parameter here."""
    if name == "index":
        # A short last batch, a schedule and contraction-free restarts break the order of positions.
        return values["batch_size"] == 1 and "schedule" not in bound.parameters
    return name not in bound.not_monotone_in


def room(bound: Theorem, *values: float) -> float:
    """How far apart two values may be that the theorem says are equal."""
    loose = {"shuffle.laplace_mixture": 0.08}.get(bound.id, 2e-3 if bound.slack else 0.0)
    return (loose or 1e-12) * max(map(abs, values)) + (loose or 1e-13)


def runs(
    bound: Theorem, default: int = 25, cost: int = 400, least: int = 2
) -> Iterator[tuple[random.Random, dict[str, Any]]]:
    weight = 10 if bound.slow else 1
    most = 3 if bound.slow else 10**6
    for r in itertools.islice(draws(bound.id, max(1, default // weight), cost * weight, least), most):
        yield r, parameters(bound, r)


def note(bound: Theorem, before: Any, after: Any) -> str:
    return f"{bound.id}: {before!r} -> {after!r}"


# --- monotone ------------------------------------------------------------------------------------------------


@EVERY_BUT_SLOW
def test_monotone_in_every_parameter(bound: Theorem) -> None:
    if bound.kind == "published":
        pytest.skip("what is printed wrongly need not be monotone")
    for r, values in runs(bound):
        here = losses(bound, values)
        for name in bound.parameters:
            grown = larger(values, name, r) if name in SIGNS and moves(bound, name, values) else None
            if grown is None:
                continue
            for before, after in zip(here, losses(bound, grown), strict=True):
                assert not math.isnan(before), note(bound, values, grown)
                if math.isinf(before) or math.isinf(after):
                    continue
                if bound.notion == "parts" and min(before, after) < -200.0:
                    continue  # rounding, which grows with the count, is what is left of delta
                change = (after - before) * sign(bound, name, values)
                assert change >= -room(bound, before, after), note(bound, (values, before), (name, grown[name], after))


@EVERY_BUT_SLOW
def test_monotone_in_records(bound: Theorem) -> None:
    """More records after the record's own help; the worst record is no better off with fewer."""
    if "records" not in bound.parameters or bound.id.endswith("published") or "records" in bound.not_monotone_in:
        pytest.skip("does not depend on records, or not in one direction")
    for r, values in runs(bound):
        if values["batch_size"] != 1:
            continue
        more = {**values, "records": values["records"] * r.randint(2, 5)}
        if "index" not in bound.parameters or bound.algorithms[0] == "stop":
            values, more = {**values, "index": 1}, {**more, "index": 1}
        if bound.algorithms[0] == "skip":
            continue  # more records also make it likelier that a late one is used
        for before, after in zip(losses(bound, values), losses(bound, more), strict=True):
            if math.isfinite(before) and math.isfinite(after):
                assert after <= before + room(bound, before), note(bound, (values, before), (more, after))


@EVERY_BUT_SLOW
def test_monotone_in_the_question(bound: Theorem) -> None:
    for _, values in runs(bound):
        found = losses(bound, values)
        down = bound.notion in ("log_delta", "parts")
        ordered = sorted(found, reverse=down)
        assert found == ordered or all(
            math.isinf(a) or abs(a - b) <= 1e-12 * abs(b) for a, b in zip(found, ordered, strict=True)
        ), note(bound, values, found)


# --- losses that are only weakly convex -----------------------------------------------------------------------


def expanding_chain(values: dict[str, Any]) -> dict[str, Any]:
    """The values with the factors 1 + eta m in the place of those of a schedule's steps."""
    if "schedule" not in values:
        return values
    chain, weak = values["schedule"], -values["strong_convexity"]
    return {**values, "schedule": Chain(
        step_size=chain.step_size, noise=chain.noise, contraction=1.0 + chain.step_size * weak, shift=chain.shift,
        spend=None, path="", displacement=chain.displacement, probability=None,
    )}  # fmt: skip


@pytest.mark.parametrize("bound", all_bounds().values(), ids=all_bounds().keys())
def test_every_theorem_holds_of_expanding_maps_or_refuses_them(bound: Theorem) -> None:
    """One that does not say that it holds for weakly convex losses refuses them, whatever else is said of the run."""
    for r in draws(f"weakly convex {bound.id}", 4, 50):
        values = {**parameters(bound, r), "strong_convexity": -(10.0 ** r.uniform(-300, 3))}
        for loss_class in ("smooth", "lipschitz", "convex-smooth", "convex", None):
            run = run_of({**values, "loss_class": loss_class})
            if not bound.weakly_convex:
                assert bound.obstacle(run) is not None, bound.id
                with pytest.raises(NotApplicable):
                    bound.prove(run)


HOLDING = [
    pytest.param(b, marks=pytest.mark.campaign if b.slow else (), id=name)
    for name, b in BOUNDS.items() if b.weakly_convex and not b.public_sums and b.kind == "upper"
]  # fmt: skip


@pytest.mark.parametrize("bound", HOLDING)
def test_weaker_convexity_is_no_more_private(bound: Theorem) -> None:
    """From a curvature just below 0 to -beta, beyond which smoothness says all, no bound falls."""
    for r in draws(f"weaker {bound.id}", 6, 600 if bound.slow else 50):
        loss_class = None if bound.family == "unlearning" else "smooth"
        values = {**parameters(bound, r), "loss_class": loss_class, "contraction": None}
        values["step_size"] = min(values["step_size"], 1.0 / values["smoothness"])
        before = None
        for share in (1e-12, 0.01, 0.3, 1.0, 7.0):
            weak = {**values, "strong_convexity": -share * values["smoothness"]}
            if bound.obstacle(run_of(weak)) is not None:
                continue
            now = losses(bound, expanding_chain(weak))
            for less, more in zip(before or now, now, strict=True):
                assert more >= less - room(bound, less, more), (bound.id, weak, less, more)
            before = now
        assert before is not None, bound.id


# --- there and back -------------------------------------------------------------------------------------------


COUNTED = tuple(name for name, record in ALGORITHMS.items() if record.length is Length.PASSES)
"""Algorithms whose runs are counted in epochs."""


def asked(bound: Theorem, values: dict[str, Any], question: Question) -> Case:
    algorithm = bound.algorithms[0]
    if bound.family in ("sampled", "correlated"):
        return answer(described(bound, values), question, [bound])
    given = {
        k: v for k, v in values.items() if k in bound.parameters and k not in ("sensitivity", "noise_std", "scale")
    }
    given.update({k: values[k] for k in ("records", "batch_size", "step_size", "smoothness", "permutation")})
    if algorithm.startswith("dp-sgd"):
        del given["smoothness"]
    if algorithm == "noisy-gd":
        del given["batch_size"]
    if algorithm in COUNTED:
        given.pop("steps", None)
    if algorithm == "unlearning":
        given["start"] = values["start"]
        if values["start"] == "minimiser":
            given.pop("start_distance", None)
    if not algorithm.startswith(("shuffled", "dp-sgd")):
        given["index"] = values["index"]
    given["lipschitz"] = values["sensitivity"] / (2.0 if values["adjacency"] == "replace-one" else 1.0)
    given.update({k: values[k] for k in ("noise_std", "laplace_scale", "adjacency", "noise") if k in values})
    return answer(describe(algorithm, given), question, [bound])


@pytest.mark.few(45)
@EVERY_BUT_SLOW
def test_solved_noise_meets_the_budget(bound: Theorem) -> None:
    if not bound.guarantee or "schedule" in bound.parameters or bound.algorithms[0] in ("online", "repeated"):
        pytest.skip("its noise is no parameter")
    solved, scale = 0, "laplace_scale" if noise_of(bound) == "laplace" else "noise_std"
    scale = "noise_multiplier" if bound.family in ("sampled", "correlated") else scale
    for r, values in runs(bound, default=4, cost=5000, least=4):
        del values["noise_std"], values["laplace_scale"], values["noise_multiplier"]
        epsilon, delta = log_uniform(r, 0.05, 20.0), log_uniform(r, 1e-12, 0.1)
        question = Question(epsilon, delta, math.log(delta))
        try:
            best = asked(bound, values, question).best
        except DpcalcError as error:
            assert error.message
            continue
        assert best is not None
        solved += 1
        back = asked(bound, {**values, scale: best.value}, Question(None, delta, math.log(delta))).best
        assert back is not None
        assert back.value <= epsilon, note(bound, values, (question, best.value, back.value))
        # ... and not needlessly large.
        if bound.notion == "mu" and best.value > 1e-140:  # the least that is tried is 1e-150
            less = {**values, scale: best.value * (1.0 - 1e-9)}
            tighter = asked(bound, less, Question(None, delta, math.log(delta))).best
            assert tighter is None or tighter.value > epsilon * (1.0 - 1e-8), note(bound, values, question)
    assert solved or bound.notion != "mu"


THROUGH = {"lipschitz": "sensitivity", "window": "index", "epochs": "steps"}


def solvable(bound: Theorem) -> list[str]:
    """The parameters that the bound depends on, is monotone in, and can be solved for; not its noise."""
    names = [name for name in DIRECTIONS if name in bound.parameters or THROUGH.get(name) in bound.parameters]
    others = {*bound.not_monotone_in, *NOISE_SCALES, "window" if bound.algorithms[0] != "online" else "",
              "epochs" if "steps" in bound.parameters else ""}  # fmt: skip
    return [name for name in names if name not in others]


def described(bound: Theorem, values: dict[str, Any]) -> Run:
    """The run in the terms of its user."""
    if bound.family == "correlated":
        follows = ("epochs", "bands", "steps") if bound.id == "correlated.matrix" else ()
        names = [name for name in bound.parameters if values.get(name) is not None and name not in follows]
        return describe("correlated", {name: values[name] for name in names})
    if bound.family == "sampled":
        names = ["records", "steps", "noise_multiplier", "sampling", "adjacency"]
        names += ["batch_size"] if values["sampling"] != "full" else []
        if bound.id.startswith("sampled.hidden"):
            names += ["release", "model", "clip", "smoothness", "step_size", "diameter"]
        if bound.kind == "heuristic":
            names += ["release"]
        return describe("dp-sgd", {name: values[name] for name in names if name in values})
    kept = {
        *bound.parameters,
        "records",
        "step_size",
        "smoothness",
        "permutation",
        "batch_size",
        "adjacency",
        "noise",
        "start",
    }
    given = {k: v for k, v in values.items() if k in kept - {"sensitivity", "scale", *NOISE_SCALES}}
    algorithm = bound.algorithms[0]
    if algorithm.startswith("noisy-gd"):
        del given["batch_size"]
    elif algorithm.startswith("noisy-sgd"):
        given["batch_size"] = min(given["batch_size"], given["records"])
    if algorithm in ("pnsgd", "skip", "stop", "cyclic", "cyclic-released", "online"):
        given["index"] = values["index"]
    if algorithm not in ("local", "repeated", "online"):
        given["last_batch"] = values["last_batch"] if algorithm.startswith("shuffle") else "own"
    if algorithm == "repeated":
        given = {k: v for k, v in values.items() if k in bound.parameters}
    else:
        given["lipschitz"] = values["sensitivity"] / (2.0 if values["adjacency"] == "replace-one" else 1.0)
        if algorithm != "online":
            scale = "laplace_scale" if values["noise"] == "laplace" else "noise_std"
            given[scale] = values["scale"] if "scale" in bound.parameters else values[scale]
    if algorithm in COUNTED and "epochs" in given:
        given.pop("steps", None)
    if bound.id.endswith("linear_model"):
        given.update(model="linear", clip=given.pop("lipschitz"), strong_convexity=None)
    return describe(algorithm, given)


def next_cheaper(name: str, value: float, run: Run) -> float | None:
    """The nearest value that asks for less, or None at the end of what there is."""
    more = -1 if DIRECTIONS[name].more_is_private else 1
    if not DIRECTIONS[name].integer:
        beta = run.values.get("smoothness", math.inf)
        limits = {"strong_convexity": beta, "step_size": 2.0 / beta}
        cheaper = value * (1.0 + 1e-6 * more)
        return cheaper if name not in limits or cheaper < limits[name] * (1.0 - 1e-5) else None
    if name == "batch_size":
        return max((b for b in range(1, int(value)) if run.values["records"] % b == 0), default=None)
    least = run.values["index"] if name == "records" and "index" in run.values else int(DIRECTIONS[name].low)
    most = {"index": run.values.get("records"), "window": run.values.get("records", 0) - 1}.get(name, 10**15)
    return value + more if least <= value + more <= most else None


@pytest.mark.few(42)
@EVERY_BUT_SLOWLY_SOLVED
def test_what_is_solved_for_meets_the_budget(bound: Theorem) -> None:
    """Asked back it does, and the next value, which asks for less, does not."""
    if not bound.guarantee or "schedule" in bound.parameters:
        pytest.skip("nothing is solved for here")
    if bound.id in ("shuffled_epochs.fresh_secret", "released.shuffled_epochs_rdp"):
        pytest.skip("takes tens of seconds, and its parts are solved for elsewhere")
    counted = 0
    sharp = bound.notion in ("mu", "log_delta") and not bound.slow
    default = 1 if "laplace" in bound.id or bound.id == "shuffled_epochs.fresh" else 4
    for r, values in runs(bound, default, cost=10000, least=4):
        names = solvable(bound)
        if values["records"] % values["batch_size"]:
            values["batch_size"] = 1
        if bound.algorithms[0] == "pnsgd" and "strong_convexity" in bound.parameters:  # else all is forgotten
            values["index"] = max(1, values["records"] - r.randint(1, 4) * values["batch_size"])
        if bound.slow:
            values["records"] = min(values["records"], 40)
            values["index"], values["steps"] = min(values["index"], values["records"]), min(values["steps"], 20)
            values["batch_size"], values["epochs"] = 1, min(values["epochs"], 5)
            names = r.sample(names, min(1, len(names)))
        try:
            run = described(bound, values)
            guarantee = guarantee_of(bound, run)
            tried = [(e, guarantee.log_delta(e * (1.0 - 1e-9)).value) for e in (log_uniform(r, 0.05, 5.0), 0.02, 20.0)]
        except DpcalcError:
            continue
        epsilon, own = next(((e, own) for e, own in tried if -200.0 < own < -1e-3), (0.0, 0.0))
        if not own:
            continue
        log_delta = own * (1.0 - 1e-6)
        asks = {"delta": math.exp(log_delta), "log_delta": log_delta}
        for name in names:
            inner = THROUGH.get(name, name)
            given = {k: v for k, v in run.values.items() if run.sources[k] in ("flag", "argument")}
            given = {k: v for k, v in given.items() if k not in (name, "index" if name == "window" else "")}
            if inner == "epochs":
                given.pop("steps", None)
            try:
                open_run = describe(run.algorithm.name, given)
                best = answer(open_run, Question(epsilon, solve=name, **asks), [bound]).best
            except DpcalcError as error:
                assert error.hint
                continue
            assert best is not None
            what = note(bound, given, (name, best.value, epsilon, log_delta))
            if best.details and best.details.get("any"):
                continue
            counted += 1
            solved = open_run.replacing(**{name: best.value})
            back = answer(solved, Question(None, **asks), [bound]).best
            assert back is not None, what
            if bound.slow and back.value > epsilon:  # a search over certificates: not monotone to its rounding
                back = answer(solved, Question(epsilon), [bound]).best
                assert back is not None, what
                assert back.log_delta is not None, what
                assert back.log_delta <= log_delta, what
                continue
            assert back.value <= epsilon, what
            cheaper = next_cheaper(name, best.value, open_run) if sharp else None
            if cheaper is None:
                continue
            try:
                worse = answer(open_run.replacing(**{name: cheaper}), Question(None, **asks), [bound]).best
            except (NotApplicable, SpecError):
                continue
            assert worse is None or worse.value > epsilon * (1.0 - 1e-9), what
    assert counted or bound.slow or bound.notion == "epsilon" or "laplace" in bound.id or not solvable(bound)


# --- never below what is true ---------------------------------------------------------------------------------


def test_gdp_form_is_never_worse_than_the_renyi_form() -> None:
    for pair in (("iteration.pnsgd", "iteration.pnsgd_rdp"), ("multi_epoch.cyclic", "multi_epoch.cyclic_rdp")):
        for r, values in runs(BOUNDS[pair[0]], default=10, cost=2000):
            log_delta = -log_uniform(r, 0.7, 300.0)
            sharp, loose = (guarantee_of(BOUNDS[name], run_of(values)).epsilon(log_delta).value for name in pair)
            assert sharp <= loose * (1.0 + 1e-12) + 1e-300, (pair, values, log_delta)


IMPLIED = [id for id, bound in all_bounds().items() if bound.implied_by]


@pytest.mark.parametrize("id", IMPLIED)
def test_what_a_bound_implies_is_never_better_and_requires_as_much(id: str) -> None:
    bound = lookup(id)
    stronger = lookup(bound.implied_by)
    assert stronger.guarantee
    assert set(stronger.conditions) <= set(bound.conditions)
    assert set(stronger.promises) <= set(bound.promises)
    assert set(stronger.parameters) <= set(bound.parameters)
    assert set(stronger.not_monotone_in) <= set(bound.not_monotone_in)
    assert set(bound.algorithms) <= set(stronger.algorithms)
    compared = 0
    for _, values in runs(bound, default=12, cost=500):
        for log_delta in (-1.0, -14.0, -200.0):
            question = Question(delta=math.exp(log_delta), log_delta=log_delta)
            try:
                case = answer(described(bound, values), question, [bound, stronger])
            except DpcalcError:
                continue
            epsilon = {result.bound: result.value for result in case.results}
            assert epsilon[stronger.id] <= epsilon.get(id, math.inf), note(bound, values, log_delta)
            compared += id in epsilon
    assert compared


def test_there_is_something_implied() -> None:
    assert len(IMPLIED) >= 4


# --- the record -----------------------------------------------------------------------------------------------


FOLLOWING = {"sensitivity", "scale", "log_delta", "schedule"}
"""What theorems read that follows from other parameters, or is a file."""


@EVERY
def test_record_is_well_formed(bound: Theorem) -> None:
    family, _, rest = bound.id.partition(".")
    assert family in FAMILIES
    assert re.fullmatch(r"[a-z][a-z0-9_]*", rest)
    assert bound.notion in GIVES.values()
    assert bound.kind in KINDS
    assert bound.guarantee == (bound.kind in ("upper", "exact"))
    assert bound.algorithms
    assert set(bound.algorithms) <= set(ALGORITHMS)
    assert all(bound in for_algorithm(algorithm) for algorithm in bound.algorithms)
    assert lookup(bound.id) is bound
    for text in (bound.title, bound.locator, bound.formula, bound.statement, *bound.assumes):
        assert text.strip() == text
        assert text
    assert bound.title[0].isupper()
    assert not bound.title.endswith(".")
    assert bound.statement.endswith(".")
    assert bound.kind in ("upper", "exact") or bound.function.__doc__
    assert bound.function.__annotations__ == {"run": bound.setting.__name__, "return": bound.gives.__name__}
    assert set(bound.reads) - FOLLOWING <= set(PARAMETERS)


@EVERY
def test_reference_is_in_the_bibliography(bound: Theorem) -> None:
    assert bound.reference in references.entries()
    assert bound.reference in references.SHORT


def test_a_family_comes_whole_in_its_order_and_alone() -> None:
    assert [id.partition(".")[2] for id in all_bounds(("noisy_gd",))] == [
        "contraction", "domain", "composition", "langevin", "langevin_refined", "quadratic", "langevin_lower",
        "langevin_published", "dynamics_published", "domain_published", "laplace",
    ]  # fmt: skip
    for family in FAMILIES:
        own = [id for id in all_bounds() if id.startswith(f"{family}.")]
        assert list(all_bounds((family,))) == own


def test_every_family_registers_and_unknown_ids_get_a_hint() -> None:
    assert {name.partition(".")[0] for name in all_bounds()} == set(FAMILIES)
    with pytest.raises(DpcalcError) as caught:
        lookup("iteration.pnsg")
    assert "iteration.pnsgd" in (caught.value.hint or "")


@EVERY
def test_missing_parameters_are_named(bound: Theorem) -> None:
    values = parameters(bound, random.Random(1))
    assert bound.obstacle(run_of(values)) is None
    for name in set(bound.parameters) - bound.optional:
        found = bound.obstacle(run_of({k: v for k, v in values.items() if k != name}))
        assert found is not None
        typed = {"sensitivity": "lipschitz", "scale": "noise_std", "sample_rate": "batch_size"}.get(name, name)
        assert typed in found.because
        assert "--" + typed.replace("_", "-") in found.cure
    with pytest.raises(NotApplicable):
        bound.prove(run_of({}))


BREAKS: tuple[Callable[[dict[str, Any]], dict[str, Any]], ...] = (
    lambda v: {"max_batch_size": 5, "sampling": "fixed"},
    lambda v: {"max_batch_size": 5, "group_size": 2, "adjacency": "add-remove"},
    lambda v: {"index": v["records"] + 1},
    lambda v: {"index": len(v["schedule"]) + 1 if "schedule" in v else v["records"] + 1, "records": v["records"]},
    lambda v: {"step_size": 3.0 / v["smoothness"]},
    lambda v: {"step_size": None},
    lambda v: {"model": None},
    lambda v: {"smoothness": None},
    lambda v: {"batch_size": 2},
    lambda v: {"batch_size": 2, "records": 5, "index": 1, "last_batch": "nominal"},
    lambda v: {"strong_convexity": v["smoothness"] * 1.5},
    lambda v: {"strong_convexity": 0.0},
    lambda v: {"laplace_scale": 1.0, "noise_std": 1.0},
    lambda v: {"noise": "laplace" if v["noise"] == "gaussian" else "gaussian"},
    lambda v: {"dimension": 2},
    lambda v: {"batch_size": v["records"] + 1},
    lambda v: {"batch_size": v["records"] + 1, "last_batch": "nominal"},
    lambda v: {"epoch_delta": 1e-6},
    lambda v: {"sampling": "full" if v["sampling"] == "shuffle" else "shuffle"},
    lambda v: {"adjacency": "add"},
    lambda v: {"adjacency": "replace-one"},
    lambda v: {"group_size": 1000},
    lambda v: {"group_size": None},
    lambda v: {"uses": 33},
    lambda v: {"sampling": "full"},
    lambda v: {"group_size": 1000, "adjacency": "add", "records": 1200, "batch_size": 600},
    lambda v: {"batch_size": 3, "records": 7},
    lambda v: {"permutation": "public"},
    lambda v: {"permutation": "secret"},
    lambda v: {"diameter": 1.0},
    lambda v: {"model": "any"},
    lambda v: {"release": "epoch"},
    lambda v: {"release": "last", "model": "linear", "diameter": 1.0, "smoothness": 1.0, "step_size": 1.0},
    lambda v: {"loss_class": "convex"},
    lambda v: {"loss_class": "convex-smooth"},
    lambda v: {"loss_class": "lipschitz", "smoothness": None, "diameter": None, "batch_size": 1},
    lambda v: {"regularisation": 2.0 / v["step_size"]},
    lambda v: {"epochs": None, "steps": None},
    lambda v: {"batch_size": 1, "records": 2 * v["steps"]},
    lambda v: {"start": "run" if v.get("start") == "distance" else "distance"},
    lambda v: {"requests": 2},
    lambda v: {"records": 10**12},
    lambda v: {"schedule": None},
    lambda v: {"contraction": 2.0},
    lambda v: {"loss_class": "convex", "schedule": Unmapped()},
    lambda v: {"holder_exponent": 1.0, "step_size": 3.0 / v["holder_constant"]},
    lambda v: {"mechanism": None},
    lambda v: {"mechanism": "sqrt"},
    lambda v: {"mechanism": "file"},
    lambda v: {"scaling": "sensitivity"},
    lambda v: {"bands": 8, "separation": 9, "sample_rate": 0.5},
    lambda v: {"holder_exponent": 0.5, "lipschitz": None, "radius": None, "loss_at_zero": None},
)


@EVERY
def test_every_requirement_fails_with_a_message_and_a_hint(bound: Theorem) -> None:
    values = parameters(bound, random.Random(2))
    for requirement in bound.conditions:
        assert requirement.text
        assert requirement.check(run_of(values)) is None, requirement.text
        failures = [requirement.check(run_of({**values, **change(values)})) for change in BREAKS]
        failures = [found for found in failures if found is not None]
        assert failures, f"{requirement.text} never fails"
        for found in failures:
            assert found.because
            assert found.cure
            assert "nan" not in found.because


@pytest.mark.parametrize("algorithm", ["pnsgd", "skip", "stop", "local"])
@pytest.mark.parametrize("asks", ["epsilon", "delta", "noise", "rdp"])
def test_only_guarantees_are_best(algorithm: str, asks: str) -> None:
    given = {"records": 50, "lipschitz": 1.0, "smoothness": 1.0, "step_size": 0.5}
    question = {
        "epsilon": Question(None, 1e-5, math.log(1e-5)),
        "delta": Question(0.5),
        "noise": Question(1.0, 1e-5, math.log(1e-5)),
        "rdp": Question(orders=(2.0, 4.0)),
    }[asks]
    if asks != "noise":
        given["noise_std"] = 8.0
    case = answer(describe(algorithm, given), question)
    marked = [result for result in case.results if result.best]
    assert marked
    for result in marked:
        assert all_bounds()[result.bound].guarantee
        rivals = [x for x in case.results if x.guarantee and (asks != "rdp" or x.order == result.order)]
        assert result.value <= min(x.value for x in rivals)
    for result in case.results:
        assert result.kind == all_bounds()[result.bound].kind
        assert not (result.best and result.kind in ("published", "asymptotic", "lower", "heuristic"))


# --- extremes through the front door ----------------------------------------------------------------------------


SUMMED = ("skip", "stop")
"""Algorithms whose bounds add up over the records: most questions of very many records take seconds."""
SCALES = list(itertools.product((1e-300, 1e-100, 1.0, 1e100, 1e300), (1e-300, 1e-12, 1.0, 1e12, 1e300)))
DIAGONAL = [SCALES[5 * row + (2 - row) % 5] for row in range(5)]
"""A scale of noise for every Lipschitz constant, each once."""


@pytest.mark.few(60)
@pytest.mark.parametrize(
    ("algorithm", "lipschitz", "noise_std", "records"),
    [
        *((algorithm, *scales, 1) for algorithm in ("pnsgd", "skip", "stop", "local") for scales in SCALES),
        *((algorithm, *scales, 10**15) for algorithm in ("pnsgd", "local") for scales in SCALES),
        *(
            pytest.param(algorithm, *scales, 10**15, marks=pytest.mark.campaign)
            for algorithm in SUMMED
            for scales in DIAGONAL
        ),
    ],
)
def test_extreme_runs_are_answered_or_refused(algorithm: str, lipschitz: float, noise_std: float, records: int) -> None:
    given = {
        "records": records,
        "lipschitz": lipschitz,
        "noise_std": noise_std,
        "smoothness": 1.0,
        "step_size": 0.5,
    }
    bounds = [
        bound for bound in for_algorithm(algorithm) if bound.notion != "rdp" and "schedule" not in bound.parameters
    ]
    for question in (
        Question(None, 5e-324, math.log(5e-324)),
        Question(None, 0.5, math.log(0.5)),
        Question(None, 5e-324, -1e6),
        Question(0.0),
        Question(1e-300),
        Question(1e300),
    ):
        try:
            case = answer(describe(algorithm, given), question, bounds)
        except DpcalcError as error:
            assert error.message
            assert error.hint
            continue
        for result in case.results:
            assert not math.isnan(result.value)
            assert result.value >= 0.0


BUDGETS = list(itertools.product((0.0, 1e-300, 1e-6, 1e4), (-0.01, -11.0, -744.0, -1e6)))


@pytest.mark.few(40)
@pytest.mark.parametrize(
    ("algorithm", "epsilon", "log_delta", "records"),
    [
        (algorithm, epsilon, log_delta, records)
        for algorithm in ("pnsgd", "skip", "stop", "local")
        for epsilon, log_delta in BUDGETS
        for records in (1, 10**15)
        if algorithm not in SUMMED or records == 1 or (epsilon == 1e4 and log_delta == -0.01)
    ],
)
def test_extreme_budgets_are_solved_or_refused(algorithm: str, epsilon: float, log_delta: float, records: int) -> None:
    check_budget(algorithm, epsilon, log_delta, records)


@pytest.mark.parametrize("algorithm", SUMMED)
@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 1e-6])
def test_small_budgets_of_thousands_of_records(algorithm: str, epsilon: float) -> None:
    check_budget(algorithm, epsilon, -0.01, 10**4)


@pytest.mark.campaign
@pytest.mark.parametrize("algorithm", SUMMED)
def test_small_budgets_of_many_records(algorithm: str) -> None:
    budgets = BUDGETS.copy()
    random.Random(algorithm).shuffle(budgets)
    for (epsilon, log_delta), _ in zip(budgets, draws(f"extreme budgets {algorithm}", 8, 4000), strict=False):
        check_budget(algorithm, epsilon, log_delta, 10**15)


def check_budget(algorithm: str, epsilon: float, log_delta: float, records: int) -> None:
    given = {"records": records, "lipschitz": 1.0, "smoothness": 1.0, "step_size": 0.5}
    delta = max(math.exp(log_delta), 5e-324)
    bounds = [
        bound
        for bound in for_algorithm(algorithm)
        if bound.notion != "rdp" and "schedule" not in bound.parameters and not (bound.slow and log_delta < -100.0)
    ]
    try:
        case = answer(describe(algorithm, given), Question(epsilon, delta, log_delta), bounds)
    except DpcalcError as error:
        assert error.message
        return
    assert case.best is not None
    assert 0.0 < case.best.value < math.inf
    back = answer(
        describe(algorithm, {**given, "noise_std": case.best.value}), Question(None, delta, log_delta), bounds
    )
    assert back.best is not None
    assert back.best.value <= epsilon
