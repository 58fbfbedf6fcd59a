"""Execution of an accounted run: it trains a model, or many independent ones, and measures them."""

from __future__ import annotations

import math
import random
import secrets
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.model.loss import Loss
from dpcalc.training.data.progress import Phases, silent
from dpcalc.training.release import calibration, metrics
from dpcalc.training.release.metrics import Optimum, Released
from dpcalc.training.rule.calibration import Calibrating
from dpcalc.training.rule.draft import Draft
from dpcalc.training.rule.records import Records
from dpcalc.training.rule.setup import NoiseSource, Setup, Solver
from dpcalc.training.run import ensemble, kernel, products, single
from dpcalc.training.run.checks import refuse_overflow
from dpcalc.training.run.plan import Plan
from dpcalc.training.run.problem import Problem
from dpcalc.training.run.remote import There
from dpcalc.training.run.rounding import Rounding

Array = NDArray[np.float64]
Parts = dict[str, Problem]
"""The problem on the training records, ``train``, and on the test records if there are any, ``test``."""

Metrics = dict[str, dict[str, float]]
"""Part -> metric -> value."""

EXPERIMENT = "an experiment: many models from the same records, which is not what was accounted; none is released"


class Randomness(NamedTuple):
    """Where the noise came from.

    Attributes:
        source: its name for reports.
        seed: if there was one.
        why_not_private: why the outcome is not private; None if it is.
    """

    source: str
    seed: int | None
    why_not_private: str | None

    @property
    def private(self) -> bool:
        """Whether the accounted guarantee holds for the outcome."""
        return self.why_not_private is None


class Trained(NamedTuple):
    """One model.

    Attributes:
        weights: shape (d,).
        released: shape (k, d), the iterates that may be public.
        temperature: the model divides both by it, so that scores are log-odds; None if it does not.
        randomness: where its noise came from.
        metrics: computed without noise.
        measured: metrics with noise, if a share of the budget is for them.
    """

    weights: Array
    released: Array
    randomness: Randomness
    metrics: Metrics
    temperature: float | None = None
    measured: Released | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report, JSON types only."""
        source, seed, because = self.randomness
        seeded = {} if seed is None else {"seed": seed}
        why = {} if because is None else {"why_not_private": because}
        return {"private": self.randomness.private, "noise_source": source, **seeded, **why}

    def uncovered(self) -> dict[str, Any]:
        """Return the metrics without noise, JSON types only."""
        return {"metrics": self.metrics} if self.metrics else {}


class Replicas(NamedTuple):
    """Many models, none of which is released.

    Attributes:
        number: how many.
        randomness: where their noise came from.
        seconds: their total time; the time of one run could reveal a random stopping time.
        metrics: their mean metrics.
        quantiles: part -> metric -> its quantiles.
    """

    number: int
    randomness: Randomness
    seconds: float
    metrics: Metrics
    quantiles: dict[str, dict[str, list[float]]]

    @classmethod
    def of(cls, columns: dict[str, dict[str, Array]], seed: int, begun: float) -> Replicas:
        """Return the summary of models with these metrics: part -> metric -> one number for each model."""
        means = {name: {metric: float(c.mean()) for metric, c in of.items()} for name, of in columns.items()}
        quantiles = {name: {metric: metrics.quantiles(c) for metric, c in of.items()} for name, of in columns.items()}
        count = len(next(iter(columns["train"].values())))
        seconds = round(time.perf_counter() - begun, 3)
        return cls(count, Randomness(f"seed {seed}", seed, EXPERIMENT), seconds, means, quantiles)

    def to_json(self) -> dict[str, Any]:
        """As `Trained.to_json`."""
        source, seed, because = self.randomness
        return {
            "private": self.randomness.private, "why_not_private": because, "noise_source": source, "seed": seed,
            "replicas": self.number,
        }  # fmt: skip

    def uncovered(self) -> dict[str, Any]:
        """As `Trained.uncovered`."""
        return {
            "metrics": self.metrics, "quantiles": {"probabilities": list(metrics.QUANTILES), **self.quantiles},
            "seconds": self.seconds,
        }  # fmt: skip


class NonPrivate(NamedTuple):
    """The non-private minimiser over the same domain, and its metrics."""

    optimum: Optimum
    metrics: Metrics

    def to_json(self) -> dict[str, Any]:
        """As `Trained.to_json`."""
        return {**self.metrics, "optimality_gap": self.optimum.gap}


class Execution(NamedTuple):
    """A run that is ready to be executed.

    Attributes:
        plan, records, draft, setup: the run.
        phases: makes the progress callback of each phase of the work.
        rounding: of the released numbers.
        source: of the noise; replicas use the seed instead.
        start: the first iterate, shape (d,); by default 0.
        calibrating: how scores become log-odds.
    """

    plan: Plan
    records: Records
    draft: Draft
    setup: Setup
    phases: Phases
    rounding: Rounding | None
    source: kernel.Source
    start: Array | None = None
    calibrating: Calibrating = Calibrating()

    def outcome(self) -> tuple[Trained | Replicas, NonPrivate | None]:
        """Return what was trained, and the non-private minimiser if asked for.

        Raises:
            SpecError: numbers could overflow on some records.
        """
        loss, setup = self.draft.loss, self.setup
        parts = parts_of(self.records, loss, setup.weights(int(self.draft.get("classes", 2))))
        if setup.solver != Solver.SUMS:
            refuse_overflow(self.plan, loss)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning would reveal something about the records
            trained = self._replicas(parts) if setup.replicas > 1 else self._trained(parts)
            if not setup.reference:
                return trained, None
            optimum = metrics.minimise(parts["train"], self.draft.radius)
            non_private = NonPrivate(optimum, measured(optimum.weights, parts, self.setup))
        _add_excess_risk(trained, optimum)
        return trained, non_private

    def _trained(self, parts: Parts) -> Trained:
        if self.setup.solver == Solver.SUMS:
            weights, _ = products.solved(self.plan, parts["train"], self.source)
            released = weights[np.newaxis]
        else:
            weights, released = single.train(
                self.plan, parts["train"], self.source, start=self.start, progress=self.phases("steps"),
                rounding=self.rounding,
            )  # fmt: skip
        given = self.calibrating, self.plan, parts["train"], weights, self.source, self.rounding
        temperature = calibration.temperature(*given)
        if self.calibrating.class_sums and temperature is not None:
            biases = calibration.biases(temperature, *given)  # moved by the last column, which is constant
            move = np.pad(biases * (temperature / self.records.constant), (len(weights) - len(biases), 0))
            weights, released = weights + move, released + move
        used = weights / (temperature or 1.0)
        randomness = randomness_of(self.setup, self.source.label)
        found = measured(used, parts, self.setup, self.phases)
        return Trained(weights, released, randomness, found, temperature, self._measured(used, parts))

    def _measured(self, weights: Array, parts: Parts) -> Released | None:
        """Return metrics with noise on the test records, or else on the training records."""
        if self.setup.evaluate_epsilon is None:
            return None
        width = self.records.target_width(float(self.draft.get("label_bound", 1.0)))
        part = parts.get("test", parts["train"])
        below = secrets.randbelow if self.setup.seed is None else random.Random(self.setup.seed).randrange
        return metrics.of_problem(weights, part, self.setup.evaluate_epsilon[0], width, below)

    def _replicas(self, parts: Parts) -> Replicas:
        setup, problem, seed = self.setup, parts["train"], self.setup.seed or 0
        begun = time.perf_counter()
        there = None if setup.executor is None else There.of(setup.executor)
        weights = ensemble.train(
            self.plan, problem, setup.replicas, seed, workers=setup.workers, progress=self.phases("replicas"),
            there=there,
        )  # fmt: skip
        weights = weights / (self.calibrating.temperature or 1.0)
        return Replicas.of({name: metrics.measure_all(weights, part) for name, part in parts.items()}, seed, begun)


def repeated(run: Callable[[Setup, kernel.Source], Execution], setup: Setup, phases: Phases) -> Replicas:
    """Execute, one after another, many runs that each take their own noisy sums before or after the descent.

    Args:
        run: from the setup of one run and its noise to the execution.
        setup: with the number of runs, and the seed.
        phases: as of `Execution`.

    Raises:
        SpecError: an executor is given; such runs are computed on this machine alone.
    """
    if setup.executor is not None:
        raise SpecError("replicas of such a run are computed on this machine", "leave out --cluster, or the executor")
    begun, seed, progress = time.perf_counter(), setup.seed or 0, phases("replicas")
    alone = setup._replace(replicas=1, show_unprotected_metrics=True)
    columns: dict[str, dict[str, list[float]]] = {}
    for number, one in enumerate(np.random.SeedSequence(seed).generate_state(setup.replicas, np.uint64).tolist()):
        trained, _ = run(alone, kernel.seeded(one)).outcome()
        assert isinstance(trained, Trained)
        for part, measures in trained.metrics.items():
            for name, value in measures.items():
                columns.setdefault(part, {}).setdefault(name, []).append(value)
        if progress is not None:
            progress(number + 1, setup.replicas)
    arrays = {part: {name: np.array(values) for name, values in of.items()} for part, of in columns.items()}
    return Replicas.of(arrays, seed, begun)


def parts_of(records: Records, loss: Loss, weights: tuple[float, ...] | None = None) -> Parts:
    """Return the problems on the training records and, if there are any, on the test records."""
    of_classes = None if weights is None else np.array(weights)
    parts = {"train": records.train, "test": records.test}
    return {
        name: Problem(part.features, part.labels, loss, of_classes) for name, part in parts.items() if part is not None
    }


def measured(weights: Array, parts: Parts, setup: Setup, phases: Phases = silent) -> Metrics:
    """Return metrics on the test records, and on the training records if that was asked for, without noise."""
    return {
        name: metrics.measure(weights, part, phases(f"measured {name} records"))
        for name, part in parts.items()
        if setup.unprotected or (name == "test" and setup.evaluate_epsilon is None)
    }


def source_of(setup: Setup) -> kernel.Source:
    """Return the source of the noise of a run."""
    if setup.seed is not None:
        return kernel.seeded(setup.seed)
    return kernel.secure() if setup.noise_source == NoiseSource.SECURE else kernel.from_os()


def why_seeded(setup: Setup) -> str | None:
    """Return why the outcome of a seeded run is not private; None where there is no seed."""
    return None if setup.seed is None else f"the noise can be drawn again from the seed {setup.seed}"


def randomness_of(setup: Setup, label: str) -> Randomness:
    """Return where the noise of one model came from."""
    because = why_seeded(setup)
    return Randomness(label, setup.seed, None if because is None else f"seeded: {because}")


def _add_excess_risk(trained: Trained | Replicas, optimum: Optimum) -> None:
    """Add the empirical excess risk: the loss minus its minimum over the domain."""
    measured = trained.metrics["train"]
    measured["excess_risk"] = measured["loss"] - optimum.loss
    if isinstance(trained, Replicas):
        spread = trained.quantiles["train"]
        spread["excess_risk"] = [loss - optimum.loss for loss in spread["loss"]]


def finite(tree: Any) -> Any:
    """Return a tree of JSON types with None for every number that is not finite."""
    if isinstance(tree, float):
        return tree if math.isfinite(tree) else None
    if isinstance(tree, dict):
        return {name: finite(value) for name, value in tree.items()}
    return [finite(value) for value in tree] if isinstance(tree, list) else tree
