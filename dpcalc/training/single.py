"""One run: the algorithm as accounted, on one set of data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.losses import Loss
from dpcalc.training import orders
from dpcalc.training.noise import Source, fill
from dpcalc.training.plan import Plan
from dpcalc.training.problem import Problem, verify

Array = NDArray[np.float64]
Progress = Callable[[int, int], None]

_ENTRIES = 1 << 15  # noise drawn at once: 256 KiB
_MAX_RELEASED = 1 << 28  # numbers


class Tally(NamedTuple):
    """What was really executed.

    Attributes:
        steps: number of steps.
        gradients: number of gradients of single records.
        batches: (size, divisor) -> number of steps.
        draws: noise variables drawn in steps.
        scales: least and largest scale of Z over the steps.
        projections: number of steps after which the projection moved the iterate.
    """

    steps: int
    gradients: int
    batches: dict[tuple[int, int], int]
    draws: int
    scales: tuple[float, float]
    projections: int


class Trained(NamedTuple):
    """The outcome of a run.

    Attributes:
        weights: what the algorithm is run for, shape (d,).
        released: all that it publishes, shape (k, d); the last row is ``weights``.
        tally: what was executed. With a random skip or stop it tells what must stay hidden: never publish it.
    """

    weights: Array
    released: Array
    tally: Tally


def train(
    plan: Plan, problem: Problem, source: Source, *, start: Array | None = None, progress: Progress | None = None
) -> Trained:
    """Execute a plan.

    Args:
        plan: what is executed.
        problem: data and loss, within the bounds accounted.
        source: of the order of records and of the noise.
        start: shape (d,), in the domain and chosen without looking at the data; 0 where not given.
        progress: called with (steps done, steps in all) after every block.

    Raises:
        SpecError: data, loss or start are not what was accounted, or the iterates to be released are too many.
    """
    w = prepared(plan, problem, start)
    return _Run(plan, problem, source, w, progress).execute()


def prepared(plan: Plan, problem: Problem, start: Array | None) -> Array:
    """Return the first iterate, all that must hold of data, loss and start checked.

    Raises:
        SpecError: see `train`.
    """
    if problem.shape != (plan.records, plan.columns):
        raise SpecError(f"the plan is for data of shape {plan.records, plan.columns}, not {problem.shape}", "plan anew")
    verify(problem, norm=plan.norm)
    check_loss(plan, problem.loss)
    count = {"step": plan.steps, "pass": plan.passes}.get(plan.release, 1)
    if count * plan.columns > _MAX_RELEASED:
        raise SpecError(f"{count} iterates of {plan.columns} numbers are released: too many to hold", "fewer steps")
    w = np.zeros(plan.columns) if start is None else np.array(start, dtype=np.float64)
    if w.shape != (plan.columns,) or not np.isfinite(w).all():
        raise SpecError(
            f"the start has shape {w.shape}; it must be {plan.columns} finite numbers", "leave it out for 0"
        )
    if plan.from_zero and w.any():
        raise SpecError("this algorithm starts at 0", "leave out the start")
    if start is None:
        plan.domain.project(w)
    if not plan.domain.contains(w):
        raise SpecError("the start lies outside the constraint set", "choose one within")
    if plan.from_zero and w.any():
        raise SpecError("this algorithm starts at 0, and the constraint set does not hold it", "choose one that does")
    return w


def check_loss(plan: Plan, loss: Loss) -> None:
    """Refuse a loss whose constants are not within those accounted.

    Raises:
        SpecError: one is not.
    """
    accounted = plan.accounted
    if np.isfinite(plan.domain.radius):
        loss = replace(loss, radius=plan.domain.radius if loss.radius is None else min(loss.radius, plan.domain.radius))
    elif loss.radius is not None:
        raise SpecError("the loss is bounded on a ball, and iterates are not projected", "give --radius")
    weight = accounted.get("regularisation", accounted.get("strong_convexity", 0.0))
    if loss.regularisation != weight:
        raise SpecError(
            f"the loss has regularisation {loss.regularisation:g}, accounted was {weight:g}", "use the same"
        )
    data = replace(loss, regularisation=0.0)
    found: dict[str, float | None] = {}
    if "lipschitz" in accounted:
        found["lipschitz"] = loss.lipschitz
    if "smoothness" in accounted:
        found["smoothness"] = loss.smoothness
    if "holder_constant" in accounted:
        found["holder_constant"] = data.hoelder_constant(accounted.get("holder_exponent"))
    for name in ("gradient_at_zero", "loss_at_zero"):
        if name in accounted:
            found[name] = getattr(data, name)
    for name, value in found.items():
        if value is None or not value <= accounted[name]:
            shown = "none" if value is None else f"{value:.17g}"
            raise SpecError(f"the {loss.name} loss has {name} {shown}, accounted was {accounted[name]:.17g}",
                            "describe the run by the loss that is trained")  # fmt: skip


class _Run:
    """The state of one run."""

    def __init__(self, plan: Plan, problem: Problem, source: Source, w: Array, progress: Progress | None) -> None:
        self.plan, self.problem, self.generator, self.w, self.progress = plan, problem, source.generator, w, progress
        self.batches: Counter[tuple[int, int]] = Counter()
        self.scales: list[float] = []
        self.steps = self.moved = 0
        self.sum = np.zeros_like(w)
        self.released: list[Array] = []

    def execute(self) -> Trained:
        plan = self.plan
        within = orders.extent(plan, self.generator)
        most = max(1, _ENTRIES // plan.columns)
        for stretch in orders.stretches(plan, self.generator, within):
            for done in range(0, stretch.steps, most):
                count = min(most, stretch.steps - done)
                rows = None if stretch.rows is None else stretch.rows[done : done + count]
                self._block(stretch._replace(first=stretch.first + done, rows=rows, steps=count))
                if self.progress is not None:
                    self.progress(self.steps, within.end - within.begin)
            if plan.release == "pass" and stretch.ends_pass:
                self.released.append(self.w.copy())
        return self._finished()

    def _block(self, stretch: orders.Stretch) -> None:
        plan, w, problem = self.plan, self.w, self.problem
        noise = np.empty((stretch.steps, plan.columns))
        noisy = not plan.output_scale
        if noisy:
            fill(self.generator, plan.noise, noise)
        for k in range(stretch.steps):
            t = stretch.first + k
            eta = plan.step_size if isinstance(plan.step_size, float) else plan.step_size[t]
            scale = plan.scale if isinstance(plan.scale, float) else plan.scale[t]
            if plan.release == "average":
                self.sum += w
            rows = slice(None) if stretch.rows is None else stretch.rows[k]
            step = problem.loss.gradient(w, problem.features[rows], problem.labels[rows]).sum(axis=0)
            step /= stretch.divisor
            if noisy:
                step += scale * noise[k]
            w -= eta * step
            self.moved += plan.domain.project(w)
            if plan.release == "step":
                self.released.append(w.copy())
            self.scales.append(float(scale))
        self.steps += stretch.steps
        self.batches[stretch.size, stretch.divisor] += stretch.steps

    def _finished(self) -> Trained:
        plan = self.plan
        weights = self.sum / self.steps if plan.release == "average" else self.w
        if plan.output_scale:
            noise = np.empty(plan.columns)
            fill(self.generator, plan.noise, noise)
            weights = weights + plan.output_scale * noise
        released = np.array(self.released) if self.released else weights[np.newaxis].copy()
        scales = (min(self.scales), max(self.scales))
        gradients = sum(size * count for (size, _), count in self.batches.items())
        draws = 0 if plan.output_scale else self.steps * plan.columns
        return Trained(weights, released, Tally(self.steps, gradients, dict(self.batches), draws, scales, self.moved))
