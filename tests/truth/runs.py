"""The runs whose truth is tabulated: small, and described by binary fractions, so that their losses fit exactly."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.oracles.chains import laplace_linear_delta
from tests.truth.laws import (
    average_and_noise,
    banded_draws,
    clipped_steps,
    correlated_steps,
    one_message,
    optimal,
    sampled_steps,
)
from tests.truth.lower import (
    Lower,
    Told,
    affine,
    closed,
    drawn,
    interval,
    label,
    linear_schedule,
    quadratics,
    scaled_start,
    scheduled,
    secret_position,
    steps_of_chain,
    stream,
)

EPSILONS = (0.125, 0.5)


class Run(NamedTuple):
    """A described run and the lower values that are known for it: of them the largest counts."""

    algorithm: str
    told: Told
    lowers: tuple[Lower, ...]

    def truths(self, epsilons: Sequence[float]) -> list[float]:
        """One proven lower value of delta for each epsilon, rounded down."""
        found = [lower(self.algorithm, self.told, epsilons) for lower in self.lowers]
        return [max(0.0, *column) for column in zip(*found, strict=True)]


BASE: Told = {"lipschitz": 0.75, "smoothness": 1.0, "step_size": 0.5, "noise_std": 1.5}
RESET: Told = {**BASE, "step_size": 1.0}
SLOPES: Told = {"clip": 0.75, "model": "linear", "smoothness": 0.00390625, "step_size": 0.5, "noise_std": 1.5}
CURVED: Told = {**BASE, "strong_convexity": 0.25}
DOMAIN: Told = {**BASE, "diameter": 2.0}
ROUND: Told = {**DOMAIN, "strong_convexity": 0.25}
LAPLACE: Told = {"lipschitz": 0.75, "smoothness": 1.0, "step_size": 0.5, "laplace_scale": 1.5, "diameter": 2.0}
FAR: Told = {"laplace_scale": 1.5, "lipschitz": 0.75, "smoothness": 1.0, "step_size": 0.5}
STEPS: Told = {"step_size": (0.5, 0.25, 0.5, 0.5), "noise_std": (1.5, 2.0, 1.0, 1.5)}
STOPS: Told = {**STEPS, "probability": (0.125, 0.25, 0.125, 0.5)}
SPENT: Told = {
    **STEPS,
    "shift": (0.0, 0.75, 0.0, 0.25),
    "contraction": (1.0, 1.0, 0.75, 1.0),
    "spend": (0.0, 0.25, 0.25, 0.375),
}
FORGETS: Told = {"step_size": 0.5, "noise_std": 1.5}
LINE: Told = {"lipschitz": 0.75, "smoothness": 1.0, "diameter": 2.0}
NOT_CONVEX: Told = {"loss_class": "smooth"}
NULL: Told = {"adjacency": "null-record"}
SAMPLED: Told = {"lipschitz": 0.75, "noise_std": 1.5}
CLIPPED: Told = {"records": 2, "batch_size": 1, "epochs": 1, "noise_multiplier": 1.0}
LAST: Told = {
    **CLIPPED, "epochs": 2, "release": "last", "model": "linear", "smoothness": 0.0625, "step_size": 1.0,
}  # fmt: skip
SIGNED: Told = {
    "row 1": (1.0, 0.0, 0.0, 0.0), "row 2": (-0.5, 1.0, 0.0, 0.0), "row 3": (0.25, -0.5, 1.0, 0.0),
    "row 4": (0.0, 0.25, -0.5, 1.0),
}  # fmt: skip
CORRELATED: Told = {"steps": 4, "epochs": 2, "bands": 2, "noise_multiplier": 2.0, "adjacency": "null-record"}
WIDE: Told = {"step_size": 0.5, "radius": 100.0, "holder_exponent": 1.0, "holder_constant": 1.0}
GROWING: Told = {
    "lipschitz": 1.0, "smoothness": 1.0, "strong_convexity": 0.25, "step_size": 0.5, "diameter": 2.0,
    "noise": "gaussian", "c1": 2.0, "c2": 1.5, "decay_exponent": 1.5, "schedule_factor": 1.0,
}  # fmt: skip


def laplace_sum(told: Told, epsilon: float) -> float:
    steps = told.get("steps") or told["records"]
    shift = told["shift"] / told["step_size"] if "shift" in told else 2.0 * told["lipschitz"]
    return laplace_linear_delta(steps, shift / told["laplace_scale"], epsilon)


def pulled_chain(_: str, told: Told, epsilons: Sequence[float]) -> list[float]:
    """A chain on an interval: a pass of records that pull either way."""
    level = told["shift"] / (2.0 * told["step_size"])
    same = {
        name: told[name] for name in ("index", "step_size", "noise_std", "laplace_scale", "diameter") if name in told
    }
    return interval()("pnsgd", {**same, "records": told["steps"], "lipschitz": level, "smoothness": 0.0}, epsilons)


def _run(algorithm: str, base: Told, *lowers: Lower, **more: Any) -> Run:
    return Run(algorithm, {**base, **more}, lowers)


RUNS: tuple[Run, ...] = (
    _run("pnsgd", BASE, affine, records=5, index=1),
    _run("pnsgd", BASE, affine, records=5, index=5),
    _run("pnsgd", RESET, affine, records=5, index=5),
    _run("pnsgd", SLOPES, label, records=5, index=5),
    _run("pnsgd", BASE, affine, records=7, index=2, batch_size=3),
    _run("pnsgd", CURVED, affine, quadratics, records=5, index=2),
    _run("pnsgd", CURVED, quadratics, records=6, index=4),
    _run("pnsgd", DOMAIN, interval(), records=4, index=2),
    _run("pnsgd", {**DOMAIN, **NULL}, interval(), records=6, index=1),
    _run("pnsgd", ROUND, interval(), records=6, index=3, batch_size=2),
    _run("pnsgd", LAPLACE, interval(), records=3, index=1),
    _run("pnsgd", FAR, closed(laplace_sum), records=4, index=1),
    _run("pnsgd", {"lipschitz": 0.75, "smoothness": 1.0}, linear_schedule, index=1, schedule=STEPS),
    _run("pnsgd", LINE, scheduled, index=2, schedule=STEPS),
    _run("skip", BASE, affine, records=6, index=1),
    _run("skip", BASE, affine, records=6, index=5),
    _run("skip", DOMAIN, interval(), records=6, index=4),
    _run("stop", BASE, affine, records=5, index=1),
    _run("stop", BASE, affine, records=5, index=4),
    _run("stop", DOMAIN, interval(), records=5, index=2),
    _run("stop", LAPLACE, interval(), records=3, index=2),
    _run("stop", LINE, scheduled, index=2, schedule=STOPS),
    _run("local", SAMPLED, closed(one_message)),
    _run("local", {**SAMPLED, **NULL}, closed(lambda told, e: one_message({**told, "lipschitz": 0.375}, e))),
    _run("shuffled", SLOPES, label, records=5),
    _run("shuffled", BASE, affine, records=5),
    _run("shuffled", RESET, affine, records=5),
    *(
        _run("shuffled", BASE, affine, records=5, batch_size=2, last_batch=last) for last in ("own", "nominal", "drop")
    ),
    _run("shuffled", BASE, secret_position, records=6, permutation="secret"),
    _run("shuffled", DOMAIN, interval(), records=4),
    _run("shuffled", DOMAIN, interval(False), records=4, permutation="secret"),
    _run("shuffled", {**ROUND, **NULL}, interval(), records=4, batch_size=2),
    _run("shuffled", LAPLACE, interval(), records=3),
    _run("shuffled", LINE, scheduled, schedule=STEPS),
    _run("rotation", SLOPES, label, records=5),
    _run("rotation", BASE, affine, records=6),
    _run("rotation", DOMAIN, interval(), records=5, batch_size=2),
    _run("rotation", LAPLACE, interval(), records=3),
    _run("shuffled-stop", BASE, affine, records=5),
    _run("shuffled-stop", DOMAIN, interval(), records=4),
    _run("online", GROWING, stream, records=4, index=2),
    _run("online", GROWING, stream, records=6, index=1),
    _run("online", {**GROWING, "noise": "laplace"}, stream, records=4, index=2),
    _run("cyclic", SLOPES, label, records=4, index=4, epochs=3),
    _run("cyclic", BASE, affine, records=4, index=1, epochs=3),
    _run("cyclic", BASE, affine, records=4, index=4, epochs=3),
    _run("cyclic", RESET, affine, records=4, index=4, epochs=3),
    _run("cyclic", CURVED, affine, records=4, index=2, epochs=3, batch_size=2),
    _run("cyclic", DOMAIN, interval(), records=3, index=2, epochs=3),
    _run("cyclic", ROUND, interval(), records=4, index=1, epochs=4),
    _run("cyclic", {**DOMAIN, **NOT_CONVEX}, interval(), records=3, index=2, epochs=3),
    _run("cyclic", LAPLACE, interval(count=60), records=2, index=1, epochs=2),
    _run("shuffle-once", SLOPES, label, records=4, epochs=3),
    _run("shuffle-once", BASE, affine, records=4, epochs=3),
    _run("shuffle-once", BASE, affine, records=5, epochs=2, batch_size=2, last_batch="nominal"),
    _run("shuffle-once", DOMAIN, interval(), records=3, epochs=3),
    _run("shuffle-once", ROUND, interval(False), records=3, epochs=2, permutation="secret"),
    _run("shuffle-once", {**DOMAIN, **NOT_CONVEX}, interval(), records=3, epochs=3),
    _run("shuffle-once", LAPLACE, interval(count=60), records=2, epochs=2),
    _run("rotation-epochs", SLOPES, label, records=4, epochs=3),
    _run("rotation-epochs", BASE, affine, records=4, epochs=3),
    _run("rotation-epochs", BASE, affine, records=5, epochs=2, batch_size=2, last_batch="nominal"),
    _run("rotation-epochs", ROUND, interval(), records=4, epochs=3),
    _run("shuffled-epochs", BASE, affine, records=4, epochs=2),
    _run("shuffled-epochs", BASE, affine, records=5, epochs=2, batch_size=2, last_batch="drop"),
    _run("shuffled-epochs", DOMAIN, interval(), records=3, epochs=2),
    _run("shuffled-epochs", ROUND, interval(False), records=3, epochs=2, permutation="secret"),
    _run("shuffled-epochs", {**DOMAIN, **NOT_CONVEX}, interval(), records=3, epochs=2),
    _run("noisy-sgd", BASE, drawn, records=4, batch_size=1, steps=6),
    _run("noisy-sgd", {**BASE, "noise_std": 3.0}, drawn, records=8, batch_size=2, steps=24),
    _run("noisy-sgd", DOMAIN, interval(), records=4, batch_size=2, steps=6),
    _run("noisy-sgd", DOMAIN, interval(), records=3, batch_size=1, steps=12),
    _run("noisy-sgd", {**DOMAIN, **NOT_CONVEX}, interval(), records=3, batch_size=1, steps=12),
    _run("noisy-gd", BASE, affine, records=3, steps=8),
    _run("noisy-gd", CURVED, affine, records=3, steps=20),
    _run("noisy-gd", DOMAIN, interval(), records=2, steps=12),
    _run("noisy-gd", ROUND, interval(), records=2, steps=12),
    _run("noisy-gd", {**DOMAIN, **NOT_CONVEX}, interval(), records=2, steps=12),
    _run("noisy-gd", {**LAPLACE, "strong_convexity": 0.25}, interval(count=60), records=2, steps=4),
    _run("cyclic-released", BASE, affine, records=4, index=1, epochs=3),
    _run("cyclic-released", BASE, affine, records=4, index=4, epochs=3),
    _run("cyclic-released", DOMAIN, interval(), records=3, index=1, epochs=2),
    _run("cyclic-released", LAPLACE, interval(count=60), records=2, index=1, epochs=2),
    _run("shuffle-once-released", BASE, affine, records=4, epochs=3),
    _run("shuffle-once-released", DOMAIN, interval(), records=3, epochs=2),
    _run("shuffle-once-released", DOMAIN, interval(False), records=2, epochs=2, permutation="secret"),
    _run("rotation-epochs-released", BASE, affine, records=4, epochs=3),
    _run("rotation-epochs-released", DOMAIN, interval(), records=3, epochs=2),
    _run("shuffled-epochs-released", BASE, affine, records=4, epochs=2),
    _run("shuffled-epochs-released", DOMAIN, interval(), records=3, epochs=2),
    _run("shuffled-epochs-released", DOMAIN, interval(False), records=2, epochs=2, permutation="secret"),
    _run("noisy-sgd-released", BASE, closed(sampled_steps), records=4, batch_size=1, steps=6),
    _run("noisy-sgd-released", BASE, closed(sampled_steps), records=8, batch_size=2, steps=24),
    _run("noisy-sgd-released", DOMAIN, interval(), records=3, batch_size=2, steps=2),
    _run("noisy-gd-released", BASE, affine, records=3, steps=8),
    _run("noisy-gd-released", DOMAIN, interval(), records=3, steps=2),
    _run("repeated", {"epoch_epsilon": 0.25, "epoch_delta": 0.0009765625}, closed(optimal), epochs=8),
    _run("repeated", {"epoch_epsilon": 0.125}, closed(optimal), epochs=60),
    *(
        _run("dp-sgd", CLIPPED, closed(clipped_steps), sampling=sampling, adjacency=adjacency)
        for sampling, adjacency in (
            ("poisson", "add-remove"), ("poisson", "replace-one"), ("fixed", "replace-one"), ("fixed", "null-record"),
            ("balls-in-bins", "add-remove"), ("balls-in-bins", "replace-one"), ("shuffle", "null-record"),
        )
    ),
    *(
        _run(
            "dp-sgd", {**CLIPPED, "records": 3, "batch_size": 2}, closed(clipped_steps), sampling="with-replacement",
            adjacency=adjacency,
        )
        for adjacency in ("add-remove", "replace-one", "null-record")
    ),
    _run(
        "dp-sgd", {**CLIPPED, "max_batch_size": 1}, closed(clipped_steps), sampling="poisson", adjacency="null-record"
    ),
    *(
        _run("dp-sgd", CLIPPED, closed(clipped_steps), sampling=sampling, adjacency=adjacency, group_size=2)
        for sampling, adjacency in (("balls-in-bins", "null-record"), ("shuffle", "replace-one"))
    ),
    _run("dp-sgd", {"noise_multiplier": 2.0, "epochs": 2}, closed(clipped_steps), sampling="full", adjacency="add"),
    _run("dp-sgd", LAST, closed(clipped_steps), sampling="poisson", adjacency="add-remove"),
    _run("dp-sgd", LAST, closed(clipped_steps), sampling="fixed", adjacency="replace-one"),
    _run("dp-sgd", LAST, closed(clipped_steps), sampling="shuffle", adjacency="replace-one"),
    _run(
        "dp-sgd", {name: value for name, value in LAST.items() if name != "batch_size"}, closed(clipped_steps),
        sampling="full", adjacency="null-record",
    ),
    *(
        _run("correlated", CORRELATED, closed(correlated_steps), mechanism=mechanism)
        for mechanism in ("identity", "tree", "sqrt", "banded-sqrt", "bisr")
    ),
    _run(
        "correlated", {"epochs": 2, "noise_multiplier": 2.0, "adjacency": "null-record"}, closed(correlated_steps),
        schedule=SIGNED,
    ),
    _run(
        "correlated", {"steps": 4, "bands": 2, "noise_multiplier": 2.0, "sample_rate": 0.25}, closed(banded_draws),
        mechanism="banded-sqrt", sampling="poisson", adjacency="add-remove", scaling="columns",
    ),
    _run(
        "correlated", {"steps": 4, "bands": 2, "noise_multiplier": 2.0, "epochs": 1}, closed(banded_draws),
        mechanism="banded-sqrt", sampling="balls-in-bins", adjacency="add-remove", scaling="columns",
    ),
    _run("dp-sgd-output", {**SAMPLED, **WIDE}, closed(average_and_noise), records=3, steps=5),
    _run("dp-sgd-output", {**SAMPLED, **WIDE}, closed(average_and_noise), records=1, steps=9),
    _run("dp-sgd-output", {**SAMPLED, **WIDE, "noise_std": 16.0}, closed(average_and_noise), records=2, steps=9),
    _run("dp-sgd-gradient", SAMPLED, closed(sampled_steps), records=4, batch_size=1, steps=6),
    _run("dp-sgd-gradient", SAMPLED, closed(sampled_steps), records=8, batch_size=2, steps=24),
    _run(
        "chain", {"shift": 1.0, "step_size": 0.5, "noise_std": 1.5}, steps_of_chain, steps=5, index=1, contraction=0.75
    ),
    _run(
        "chain", {"shift": 1.0, "step_size": 0.5, "noise_std": 1.5}, steps_of_chain, steps=5, index=4, contraction=1.0
    ),
    _run(
        "chain", {"shift": 0.75, "step_size": 0.5, "noise_std": 1.5, "diameter": 2.0}, pulled_chain,
        steps=4, index=2, contraction=1.0,
    ),
    _run(
        "chain", {"shift": 0.75, "step_size": 0.5, "laplace_scale": 1.5}, closed(laplace_sum),
        steps=4, index=1, contraction=1.0,
    ),
    _run(
        "chain", {"shift": 0.75, "step_size": 0.5, "laplace_scale": 1.5, "diameter": 2.0}, pulled_chain,
        steps=3, index=1, contraction=1.0,
    ),
    _run("chain", {}, steps_of_chain, schedule=SPENT),
    _run("unlearning", FORGETS, scaled_start, contraction=0.75, start_distance=0.75, clean_steps=3),
    _run("unlearning", FORGETS, scaled_start, contraction=1.0, start_distance=0.75, clean_steps=4, diameter=0.5),
    _run("unlearning", FORGETS, scaled_start, contraction=1.25, start_distance=0.25, clean_steps=2, requests=3),
    _run(
        "unlearning", {}, scaled_start, start_distance=0.75,
        schedule={**STEPS, "contraction": (1.0, 0.75, 1.25, 0.5)},
    ),
    _run(
        "unlearning", {**FORGETS, "start": "minimiser", "smoothness": 1.0, "strong_convexity": 0.25}, scaled_start,
        records=4, lipschitz=0.75, clean_steps=3,
    ),
    _run(
        "unlearning", {**FORGETS, "start": "run", "smoothness": 1.0, "strong_convexity": 0.25}, scaled_start,
        records=4, batch_size=2, epochs=2, lipschitz=0.75, clean_steps=3,
    ),
)  # fmt: skip
assert all(math.frexp(v)[0] * 2**12 % 1 == 0 for run in RUNS for v in run.told.values() if isinstance(v, float))
