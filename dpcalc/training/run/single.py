"""One run: the algorithm as accounted, on one set of data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import MissingParameter, SpecError
from dpcalc.model.algorithm import Order, Release
from dpcalc.model.loss import Loss
from dpcalc.training.data.progress import Progress
from dpcalc.training.run import orders
from dpcalc.training.run.domain import Ball, Box
from dpcalc.training.run.exact_sums import ExactSums, grid_of, rounded, rounded_cells
from dpcalc.training.run.noise import Source, fill
from dpcalc.training.run.plan import Plan
from dpcalc.training.run.problem import AnyProblem, Problem, slope_caps, verify
from dpcalc.training.run.rounding import Rounding
from dpcalc.training.run.softmax import descents
from dpcalc.training.run.vectors import vectors

Array = NDArray[np.float64]
Index = NDArray[np.int64]
_ENTRIES = 1 << 15  # noise drawn at once: 256 KiB
_CAPPED_ENTRIES = 1 << 20  # weights times records whose capped slopes are solved at once
_STACK = 1 << 15  # features gathered at once, where batches are small: 256 KiB
_LINE = 8  # numbers in a cache line
_STEPS = 512  # steps in a block
_MAX_RELEASED = 1 << 28  # numbers


class Tally(NamedTuple):
    """A count of what was executed.

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
        weights: what the algorithm is run for, shape (d,); of K classes (d K,), those of a column one after another.
        released: all that it may publish, shape (k, d) or (k, d K); the last row is ``weights``, unless these are the
            mean of the second half of them (`Plan.tail`).
        tally: what was executed. After a random skip or stop it tells what must stay hidden: never publish it.
    """

    weights: Array
    released: Array
    tally: Tally


def train(
    plan: Plan, problem: AnyProblem, source: Source, *, start: Array | None = None, progress: Progress | None = None,
    rounding: Rounding | None = None,
) -> Trained:  # fmt: skip
    """Execute a plan.

    Args:
        plan: what is executed.
        problem: data and loss, within the bounds accounted.
        source: of the order of records and of the noise.
        start: shape (d,), in the domain and chosen without looking at the data; by default 0.
        progress: called with (steps done or skipped, steps in all) after every block or full step, and at the end.
        rounding: of what is released; None for plain doubles, whose low-order bits no guarantee covers.

    Raises:
        SpecError: data, loss or start are not what was accounted, or the iterates to be released are too many.
    """
    w = starting_point(plan, problem, start)
    return _Run(plan, problem, source, w, progress, rounding).execute()


def starting_point(plan: Plan, problem: AnyProblem, start: Array | None) -> Array:
    """Return the first iterate, after a check that data, loss and start are what was accounted.

    Raises:
        SpecError: see `train`.
    """
    if problem.shape != (plan.records, plan.columns):
        raise SpecError(f"the plan is for data of shape {plan.records, plan.columns}, not {problem.shape}", "plan anew")
    check_loss(plan, problem.loss)
    verify(problem, norm=plan.norm)
    count = plan.iterates_released
    if count * plan.columns > _MAX_RELEASED:
        raise SpecError(f"{count} iterates of {plan.columns} numbers are released: too many to hold", "fewer steps")
    w = _checked_start(plan, start)
    if not plan.domain.contains(w):
        raise SpecError("the start lies outside the constraint set", "choose one within")
    if plan.from_zero and w.any():
        raise SpecError("this algorithm starts at 0, and the constraint set does not hold it", "choose one that does")
    return w


def _checked_start(plan: Plan, start: Array | None) -> Array:
    """Return the start, or the point of the domain that is nearest to 0."""
    w = np.zeros(plan.columns) if start is None else np.array(start, dtype=np.float64)
    if w.shape != (plan.columns,) or not np.isfinite(w).all():
        raise SpecError(
            f"the start has shape {w.shape}; it must be {plan.columns} finite numbers", "leave it out for 0"
        )
    if plan.from_zero and w.any():
        raise SpecError("this algorithm starts at 0", "leave out the start")
    if start is None:
        plan.domain.project(w)
    return w


def check_loss(plan: Plan, loss: Loss) -> None:
    """Refuse a loss whose constants are not within those accounted.

    Raises:
        SpecError: one is not.
        MissingParameter: one that was accounted is not finite for this loss on the domain.
    """
    accounted = plan.accounted
    weight = accounted.get("regularisation", accounted.get("strong_convexity", 0.0))
    if loss.regularisation != weight:
        raise SpecError(
            f"the loss has regularisation {loss.regularisation:g}, accounted was {weight:g}", "use the same"
        )
    for name, value in _constants(loss, plan).items():
        if value is None or not value <= accounted[name]:
            shown = "none" if value is None else f"{value:.17g}"
            raise SpecError(
                f"the {loss.name} loss has {name} {shown}, accounted was {accounted[name]:.17g}",
                "describe the run by the loss that is trained",
            )


def _constants(loss: Loss, plan: Plan) -> dict[str, float | None]:
    """Return the constants of the loss that were accounted, on the domain of the plan."""
    accounted, data = plan.accounted, loss.changed(regularisation=0.0)
    constants: dict[str, float | None] = {}
    if "lipschitz" in accounted:
        constants["lipschitz"] = gradient_bound(data, plan)
    if "smoothness" in accounted:
        constants["smoothness"] = loss.smoothness
    if "holder_constant" in accounted:
        constants["holder_constant"] = data.hoelder_constant(accounted.get("holder_exponent"))
    for name in ("gradient_at_zero", "loss_at_zero"):
        if name in accounted:
            constants[name] = getattr(data, name)
    return constants


def lipschitz_of(plan: Plan, loss: Loss) -> float:
    """Return the bound on the gradients of the data part that was accounted, else that of the loss on the domain."""
    return plan.accounted.get("lipschitz") or gradient_bound(loss.changed(regularisation=0.0), plan)


def gradient_bound(loss: Loss, plan: Plan) -> float:
    """Return the least bound on the gradients of single records, on the domain of the plan and clipped as it says.

    Raises:
        MissingParameter: no bound is finite.
    """
    try:
        bound = _lipschitz(loss, plan.domain.radius)
    except MissingParameter:
        if plan.clip is None:
            raise
        return plan.clip
    return bound if plan.clip is None else min(bound, plan.clip)


def _lipschitz(loss: Loss, radius: float) -> float:
    """Return the least bound on the gradients where |w| <= radius.

    Raises:
        MissingParameter: no bound is finite.
    """
    forms = [loss.changed(radius=radius)] if math.isfinite(radius) else []
    if loss.radius is not None and radius <= loss.radius:
        forms.append(loss)
    forms.append(loss.changed(radius=None))
    bounds = []
    for form in forms:
        try:
            bounds.append(form.lipschitz)
        except MissingParameter as error:
            missing = error
    if not bounds:
        raise missing
    return min(bounds)


def _exact_sums(plan: Plan, problem: AnyProblem) -> ExactSums:
    """Return the exact sums of a plan whose every step has noise.

    Raises:
        SpecError: the noise is too small, or the bounds on the data are.
    """
    passes = sum(batch.steps * batch.size for batch in plan.batches) / plan.records if plan.order is Order.FULL else 0.0
    if plan.order is Order.FIXED:
        passes = plan.passes
    size = max(batch.size for batch in plan.batches)
    sums = ExactSums(problem, lipschitz_of(plan, problem.loss), size, plan.norm, passes, plan.capped)
    sums.check_scale(float(np.min(plan.scale)) * min(batch.divisor for batch in plan.batches))
    return sums


def _cap(slopes: Array, caps: Array | None) -> None:
    """Clip slopes, in place."""
    if caps is not None:
        np.clip(slopes, -caps, caps, out=slopes)


class _Run:
    """The state of one run."""

    def __init__(
        self, plan: Plan, problem: AnyProblem, source: Source, w: Array, progress: Progress | None,
        rounding: Rounding | None,
    ) -> None:  # fmt: skip
        self.plan, self.problem, self.generator, self.w, self.progress = plan, problem, source.generator, w, progress
        self.batches: Counter[tuple[int, int]] = Counter()
        self.scales = (math.inf, 0.0)
        self.steps = self.moved = self.drawn = 0
        self.project = plan.domain.projector(plan.columns)
        self.sum = np.zeros_like(w)
        self.released: list[Array] = []
        self.caps = slope_caps(problem.features, plan.clip, plan.norm) if isinstance(problem, Problem) else None
        if not problem.loss.classified:
            self.descent, self.overwrite = problem.loss.scalar_descent(), problem.loss.array_descent()
        self.block = max(1, min(_STEPS, _ENTRIES // plan.columns, plan.steps))  # steps taken at once
        stacked = np.empty((self.block + 1, 3, plan.columns))
        self.stacked = stacked, list(stacked[:, 1:]), list(stacked[1:, 2])  # views are made once
        self.stacks: dict[int, tuple[Array, list[Array]]] = {}
        self.noise = np.zeros((self.block, plan.columns))
        self.sums = None if rounding is None or rounding.grid is not None else _exact_sums(plan, problem)
        self.grid = None if rounding is None else rounding.grid
        self.unprojected = w  # after the latest step, where that is to be rounded

    def execute(self) -> Trained:
        plan = self.plan
        within = orders.extent(plan, self.generator)
        with np.errstate(over="ignore"):  # of e^(y z), where the gradient is 0
            for stretch in orders.stretches(plan, self.generator, within):
                for done in range(0, stretch.steps, self.block):
                    count = min(self.block, stretch.steps - done)
                    rows = None if stretch.rows is None else stretch.rows[done : done + count]
                    self._take_block(stretch._replace(first=stretch.first + done, rows=rows, steps=count))
                    self._report(stretch.first + done + count)
                if plan.release is Release.PASS and stretch.ends_pass:
                    self.released.append(self._last())
        if within.end < plan.steps:
            self._report(plan.steps)
        return self._finished()

    def _take_block(self, stretch: orders.Stretch) -> None:
        """Take some equal steps, with their noise drawn at once."""
        plan = self.plan
        part = slice(stretch.first, stretch.first + stretch.steps)
        eta = np.broadcast_to(
            plan.step_size if isinstance(plan.step_size, float) else plan.step_size[part], stretch.steps
        )
        scale = np.broadcast_to(plan.scale if isinstance(plan.scale, float) else plan.scale[part], stretch.steps)
        noise = self.noise[: stretch.steps]
        if plan.output_scale:
            noise.fill(0.0)
        else:
            fill(self.generator, plan.noise, noise)
            self.drawn += noise.size
            if self.sums is None:
                noise *= (-eta * scale)[:, np.newaxis]
        if self.sums is not None:
            self._take_exact_sums(self.sums, stretch, eta, scale * stretch.divisor, noise)
        elif stretch.rows is None or stretch.size * plan.columns > _ENTRIES or self.problem.loss.classified:
            self._take_large_batches(stretch, eta, noise)
        elif stretch.size == 1:
            self._take_single_records(stretch, eta, noise)
        else:
            self._take_small_batches(stretch, eta, noise)
        self.scales = min(self.scales[0], float(scale.min())), max(self.scales[1], float(scale.max()))
        self.steps += stretch.steps
        self.batches[stretch.size, stretch.divisor] += stretch.steps

    def _take_exact_sums(
        self, sums: ExactSums, stretch: orders.Stretch, eta: Array, scale: Array, noise: Array
    ) -> None:
        """Take steps whose noisy sums of gradients are rounded to a grid; all else is computed from these."""
        of = vectors(short_steps=stretch.rows is not None)
        w, average = self.w, self.plan.release is Release.AVERAGE
        kept = (1.0 - eta * self.problem.loss.regularisation * stretch.size / stretch.divisor).tolist()
        grids = np.array([grid_of(each) for each in scale.tolist()])
        factors = (eta / stretch.divisor * grids).tolist()
        noise *= (-scale / grids)[:, np.newaxis]  # in cells of the grid
        given = zip(sums.of_steps(stretch.rows, stretch.steps), grids.tolist(), noise, kept, factors, strict=True)
        for k, (descent, grid, drawn, c, factor) in enumerate(given):
            before = w.copy() if average else w
            cells = rounded_cells(descent(w) / grid, drawn)
            if c != 1.0:
                of.scale(c, w)
            of.add(cells, w, len(w), factor)
            self._project(before, w)
            self._report(stretch.first + k + 1)

    def _take_single_records(self, stretch: orders.Stretch, eta: Array, noise: Array) -> None:
        """Take steps on single records.

        Noise, record and iterate of a step are stacked: one small product yields <w, x> and |w|^2, and another yields
        the next iterate, written to its place in the stack of the next step. A projection onto a ball waits for the
        next step, which knows |w|^2 and shrinks w by its weight in the product; a projection onto a box, or of an
        iterate that is released or averaged, does not wait.
        """
        assert stretch.rows is not None
        descent, dot, steps, moved = self.descent, np.dot, stretch.steps, 0
        rows = stretch.rows[:, 0]
        stacked, tails, nexts = self.stacked
        stacked[:steps, 0] = noise
        stacked[:steps, 1], y = self.problem.at(rows)
        stacked[0, 2] = self.w
        most, at_once, held = self._ball()
        kept = (1.0 - eta * (self.problem.loss.regularisation / stretch.divisor)).tolist()
        factors = (eta / stretch.divisor).tolist()
        both, weights, labels = np.empty(2), np.ones(3), y.tolist()
        steepest = self._caps(stacked[:steps, 1], rows)
        caps = repeat(math.inf) if steepest is None else steepest.tolist()
        rest = zip(labels, caps, factors, kept, strict=False)
        for whole, tail, after, (y, cap, factor, c) in zip(stacked, tails, nexts, rest, strict=False):
            dot(tail, tail[1], both)
            z, norm = both.tolist()
            if norm > most:
                shrunk = held / math.sqrt(norm)
                z, c, moved = z * shrunk, c * shrunk, moved + 1
            weights[1], weights[2] = factor * max(-cap, min(cap, descent(z, y))), c
            dot(weights, whole, after)
            if at_once:
                self._project(whole[2], after)
        self.w[:] = stacked[steps, 2]
        self.moved += moved
        self._project_last(at_once)

    def _project(self, before: Array, after: Array) -> None:
        """Project the iterate after a step, and keep what is averaged or released."""
        if self.grid is not None:
            self.unprojected = after.copy()
        self.moved += self.project(after)
        if self.plan.release is Release.AVERAGE:
            self.sum += before
        elif self.plan.release is Release.STEP:
            self.released.append(after.copy())

    def _project_last(self, done: bool) -> None:
        """Project the last iterate of a block, unless that is done."""
        if not done:
            self.unprojected = self.w.copy() if self.grid is not None else self.w
            self.moved += self.plan.domain.project(self.w)

    def _last(self) -> Array:
        """Return the last iterate as it is released: rounded before it is projected, as a projection has atoms."""
        if self.grid is None:
            return self.w.copy()
        w = rounded(self.unprojected, self.grid)
        self.plan.domain.project(w)
        return w

    def _take_small_batches(self, stretch: orders.Stretch, eta: Array, noise: Array) -> None:
        """Take steps on small batches: the noise of a step becomes the next iterate, in place.

        The product of the records and the iterate makes the scores, shrunk by a projection onto a ball that waited as
        in `_take_single_records`; that of the slopes and the records is added. Factors are left to the products.
        """
        from scipy.linalg.blas import daxpy, ddot, dgemv  # calls take less time than numpy's, and carry out factors

        assert stretch.rows is not None
        loss, columns, w, moved = self.problem.loss, self.plan.columns, self.w, 0
        inner, outer, overwrite = loss.scaled_descent()
        most, at_once, held = self._ball()
        kept = (1.0 - eta * (loss.regularisation * stretch.size / stretch.divisor)).tolist()
        factors, slopes = (eta * (outer / stretch.divisor)).tolist(), np.zeros(stretch.size)
        maximum, minimum = np.maximum, np.minimum
        given = zip(self._small_batches(stretch.rows, outer), noise, factors, kept, strict=True)
        for (records, y, cap), after, factor, c in given:
            scale, norm = inner, ddot(w, w)
            if norm > most:
                shrunk = held / math.sqrt(norm)
                scale, c, moved = inner * shrunk, c * shrunk, moved + 1
            dgemv(scale, records, w, 0.0, slopes, 0, 1, 0, 1, 1, 1)  # transposed, in place
            overwrite(slopes, y)
            if cap is not None:
                maximum(slopes, -cap, out=slopes)
                minimum(slopes, cap, out=slopes)
            daxpy(w, after, columns, c)
            dgemv(factor, records, slopes, 1.0, after, 0, 1, 0, 1, 0, 1)  # in place
            if at_once:
                self._project(w, after)
            w = after
        self.w[:] = w
        self.moved += moved
        self._project_last(at_once)

    def _small_batches(self, rows: Index, outer: float) -> Iterator[tuple[Array, Array, Array | None]]:
        """Yield the records of every step, gathered for some at once: each is used before the next one is yielded.

        Returns:
            Features, shape (d, size), by columns; labels, shape (size,); and how steep the losses may be, over
            ``outer``, if gradients are clipped.
        """
        problem, (stacked, places) = self.problem, self._stack(rows.shape[1])
        held = self._beside(problem, rows) if isinstance(problem, Problem) else None
        for first in range(0, len(rows), len(stacked)):
            some = slice(first, first + len(stacked))
            chosen = rows[some]
            x = stacked[: len(chosen)]
            if held is not None and isinstance(problem, Problem):
                problem.features.take(chosen, axis=0, out=x, mode="clip")  # indices are within, and need no check
                labels, caps = held[0][some], None if held[1] is None else held[1][some]
            else:
                read, labels = problem.at(chosen.reshape(-1))
                x[:] = read.reshape(x.shape)
                labels, caps = labels.reshape(chosen.shape), self._caps(read, chosen)
            bounds = repeat(None) if caps is None else caps.reshape(chosen.shape) / outer
            yield from zip(places, labels, bounds, strict=False)

    def _beside(self, problem: Problem, rows: Index) -> tuple[Array, Array | None]:
        """Return the labels of records in memory, and how steep their losses may be, if gradients are clipped."""
        return problem.labels[rows], None if self.caps is None else self.caps[rows]

    def _stack(self, size: int) -> tuple[Array, list[Array]]:
        """Return where the records of some steps are put, and the transpose of that of each step."""
        if size not in self.stacks:
            steps, columns = max(1, _STACK // (size * self.plan.columns)), self.plan.columns
            room = np.empty(steps * size * columns + _LINE)
            begin = -(room.ctypes.data // room.itemsize) % _LINE  # of a cache line: products are faster
            stacked = room[begin : begin + steps * size * columns].reshape(steps, size, columns)
            self.stacks = {size: (stacked, [records.T for records in stacked])}
        return self.stacks[size]

    def _take_large_batches(self, stretch: orders.Stretch, eta: Array, noise: Array) -> None:
        """Take steps on large batches, on all records or on several classes, in pieces that fit the cache."""
        w, loss = self.w, self.problem.loss
        most = max(1, (_CAPPED_ENTRIES if self.plan.capped else _ENTRIES) // self.plan.columns)
        piece = self.problem.piece(most)
        for k in range(stretch.steps):
            before, descent = w.copy(), np.zeros_like(w)
            chosen = [self._chosen(stretch, k, first, piece) for first in range(0, stretch.size, piece)]
            for choice, (x, y) in zip(chosen, self.problem.each(chosen), strict=True):
                caps = self._caps(x, choice)
                for first in range(0, len(y), most):
                    some = slice(first, first + most)
                    descent += self._descent_of(x[some], y[some], None if caps is None else caps[some])
            w *= 1.0 - eta[k] * loss.regularisation * stretch.size / stretch.divisor
            w += (eta[k] / stretch.divisor) * descent + noise[k]
            self._project(before, w)
            self._report(stretch.first + k + 1)

    def _chosen(self, stretch: orders.Stretch, k: int, first: int, count: int) -> Any:
        """Return which records some places of a batch hold."""
        some = slice(first, min(stretch.size, first + count))
        return some if stretch.rows is None else stretch.rows[k, some]

    def _descent_of(self, x: Array, y: Array, caps: Array | None) -> Array:
        """Return the sum of minus the gradients of some records, shape (d,), or (d K,) of K classes."""
        if self.problem.loss.classified:
            slopes = descents(x @ self.w.reshape(x.shape[1], -1), y, caps, capped=self.plan.capped)
            return (slopes @ x).T.reshape(-1)
        z = x @ self.w
        self.overwrite(z, y)
        _cap(z, caps)
        total: Array = z @ x
        return total

    def _report(self, done: int) -> None:
        if self.progress is not None:
            self.progress(done, self.plan.steps)

    def _caps(self, x: Array, rows: Any) -> Array | None:
        """Return how steep the loss of these records may be, if gradients are clipped; x has their features."""
        if self.caps is None:
            return slope_caps(x, self.plan.clip, self.plan.norm)
        caps: Array = self.caps[rows]
        return caps

    def _ball(self) -> tuple[float, bool, float]:
        """Return how iterates are projected.

        Returns:
            The square of the norm past which the next step shrinks an iterate, inf where none waits for that; whether
            every iterate is projected at once; and the norm that a shrunk iterate gets.
        """
        domain = self.plan.domain
        at_once = self.plan.release in (Release.AVERAGE, Release.STEP) or isinstance(domain, Box)
        held, most = domain.inner(self.plan.columns) if isinstance(domain, Ball) else (math.inf, math.inf)
        return math.inf if at_once else most, at_once, held

    def _finished(self) -> Trained:
        plan = self.plan
        average = plan.release is Release.AVERAGE
        weights = self.sum / self.steps if average else self._last()
        if plan.output_scale:
            noise = np.empty(plan.columns)
            fill(self.generator, plan.noise, noise)
            weights = weights + plan.output_scale * noise
        if average and self.grid is not None:
            weights = rounded(weights, self.grid)
        if plan.tail:
            weights = np.mean(self.released[len(self.released) // 2 :], axis=0)
        released = np.array(self.released) if self.released else weights[np.newaxis].copy()
        gradients = sum(size * count for (size, _), count in self.batches.items())
        return Trained(
            weights, released, Tally(self.steps, gradients, dict(self.batches), self.drawn, self.scales, self.moved)
        )
