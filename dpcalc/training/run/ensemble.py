"""Independent runs by the thousand, as one array.

The runs are cut into blocks whose width follows from the plan and their number alone, and every block draws from a
generator of its own, ``SeedSequence(seed, spawn_key=(0, block))``: the numbers do not depend on how many threads or
processes share the blocks, nor on which takes which block.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.model.algorithm import Order, Release
from dpcalc.training.data.progress import Progress
from dpcalc.training.data.threads import cores
from dpcalc.training.run import orders
from dpcalc.training.run.domain import Ball, Box
from dpcalc.training.run.noise import fill
from dpcalc.training.run.plan import Plan
from dpcalc.training.run.problem import Problem, slope_caps
from dpcalc.training.run.remote import Rows, There, answered, run_all
from dpcalc.training.run.single import starting_point
from dpcalc.training.run.workers import by_processes, may_fork

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Statistic = Callable[[Array], Array]

_ENTRIES = 1 << 15  # of a block's state, and of the noise drawn at once: 256 KiB
_ORDERS = 1 << 24  # indices of a block's orders: 64 MiB
_PRODUCTS = 1 << 19  # records times replicas looked at together
_MUCH = 1 << 22  # numbers of noise, which take more time than the copies of a process
_BEATS = 1 << 22  # numbers of noise between two calls of progress


class Trace(Protocol):
    """What is made of all iterates of some runs."""

    def see(self, number: int, weights: Array, rows: Index | None) -> None:
        """Take the iterates after the step that ``number`` steps come before, shape (d, m); they change afterwards.

        ``rows`` are the records that the step used, as in `Step`.
        """

    def result(self) -> Array:
        """Return one number a run, shape (m,)."""


class Step(NamedTuple):
    """A step of all replicas of a block.

    Attributes:
        number: how many steps come before it.
        rows: indices of records: None for all; shape (size,) where all replicas use the same; else (size, replicas).
        size, divisor: of the batch.
    """

    number: int
    rows: Index | None
    size: int
    divisor: int


def train(
    plan: Plan, problem: Problem, replicas: int, seed: int | None = None, *, workers: int | None = None,
    common_order: bool = False, start: Array | None = None, progress: Progress | None = None,
    statistic: Statistic | None = None, trace: Callable[[], Trace] | None = None, there: There | None = None,
) -> Array:  # fmt: skip
    """Return what independent runs of a plan end with.

    Args:
        plan, problem, start: as in `dpcalc.training.run.single.train`.
        replicas: number of runs, >= 1.
        seed: of all randomness; by default from the operating system.
        workers: number of processes, or of threads where the process cannot be copied (`may_fork`), the work is little
            or there is a statistic; by default one per available core.
        common_order: whether all runs share one draw of the order of records, of the skip and of the stop, which is
            cheaper. Every run has noise of its own; the runs then follow the law conditional on the order.
        progress: called with (steps of runs done, in all), one call at a time, from any thread.
        statistic: a function of the weights of some runs, shape (m, d), to an array whose first axis is m, which is
            returned in place of the weights. It may be called from several threads.
        trace: makes what sees all iterates of some runs; its result, shape (m, 1), stands for their weights.
        there: other machines that compute; not with ``statistic``, ``trace`` or ``common_order``.

    Returns:
        The weights of every run, shape (replicas, d); or the values of ``statistic``, joined.

    Raises:
        SpecError: as in `dpcalc.training.run.single.train`, or there is nothing to run.
    """
    if replicas < 1:
        raise SpecError(f"{replicas} runs are asked for", "ask for one or more")
    last = plan._replace(release=Release.LAST) if plan.release in (Release.PASS, Release.STEP) else plan
    w = starting_point(last, problem, start)
    if seed is not None and seed < 0:
        raise SpecError(f"the seed is {seed}; it must be a whole number >= 0", "see --seed")
    root = np.random.SeedSequence(seed)
    edges = _edges(plan, replicas, common_order)
    report = _Progress(progress, plan.steps * replicas)
    caps = slope_caps(problem.features, plan.clip, plan.norm)
    result: list[Array] = [w] * (len(edges) - 1)
    workers = min(len(result), workers or cores())

    def weights_of(block: int, report: _Progress) -> Array:
        width = edges[block + 1] - edges[block]
        generator = _generator(root, 0, block)
        shared = _generator(root, 1) if common_order else None
        seeing = trace() if trace is not None else None
        weights = _Block(plan, problem, w, width, generator, shared, report, caps, seeing).execute()
        return weights if seeing is None else seeing.result()[:, np.newaxis]

    plain = statistic is None and trace is None
    if there is not None:
        if not plain or common_order or start is not None:
            raise SpecError("only the last iterates of independent runs are computed on other machines")
        common = plan, problem, replicas, str(root.entropy)
        rows = [Rows((b - a, plan.columns), None) for a, b in pairwise(edges)]
        cost = plan.steps * edges[1] * plan.columns
        return run_all(
            there, run_blocks, common, rows, cost, lambda n: report.add(plan.steps * replicas * n // len(rows))
        )
    if workers > 1 and plain and plan.steps * replicas * plan.columns >= _MUCH and may_fork():
        return by_processes(
            lambda block, beat: weights_of(block, _Progress(lambda done, _: beat(done), 0, apart=True)),
            edges, plan.columns, workers, report.add,
        )  # fmt: skip

    def run(block: int) -> None:
        report.add(0)
        try:
            weights = weights_of(block, report)
            result[block] = weights if statistic is None else np.asarray(statistic(weights))
        except BaseException as error:
            report.cause = report.cause or error
            raise

    if workers == 1:
        for block in range(len(result)):
            run(block)
        return np.concatenate(result)
    with ThreadPoolExecutor(workers) as pool:
        try:
            for done in [pool.submit(run, block) for block in range(len(result))]:
                done.result()
        except BaseException as error:  # an interrupt, too, is to end the blocks under way
            report.cause = report.cause or error
            raise
    return np.concatenate(result)


def run_blocks(document: str) -> str:
    """Return the outcomes of some blocks of `train` as text: nobody else has to call it."""

    def outcomes(common: Any, blocks: range) -> list[Array]:
        plan, problem, replicas, entropy = common
        return list(train_some(plan, problem, replicas, int(entropy), blocks))

    return answered(document, outcomes)


def train_some(
    plan: Plan, problem: Problem, replicas: int, seed: int, blocks: range, trace: Callable[[], Trace] | None = None
) -> Iterator[Array]:
    """Yield what the runs of some blocks end with, those of `train` with these arguments; one array for each.

    Raises:
        SpecError: as in `train`.
    """
    last = plan._replace(release=Release.LAST) if plan.release in (Release.PASS, Release.STEP) else plan
    w = starting_point(last, problem, None)
    root, edges = np.random.SeedSequence(seed), _edges(plan, replicas, False)
    caps = slope_caps(problem.features, plan.clip, plan.norm)
    for block in blocks:
        width, seeing = edges[block + 1] - edges[block], trace() if trace is not None else None
        generator, report = _generator(root, 0, block), _Progress(None, 0)
        weights = _Block(plan, problem, w, width, generator, None, report, caps, seeing).execute()
        yield weights if seeing is None else seeing.result()[:, np.newaxis]


def widths(plan: Plan, replicas: int) -> list[int]:
    """Return how many runs each block of `train` has."""
    return [b - a for a, b in pairwise(_edges(plan, replicas, False))]


def _generator(root: np.random.SeedSequence, *key: int) -> np.random.Generator:
    """Return the generator with this key; a sequence that is spawned from keeps a count, which no result may show."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(root.entropy, spawn_key=key)))


def _edges(plan: Plan, replicas: int, common: bool) -> list[int]:
    """Return where blocks of runs begin, and the number of runs: as equal as can be, and no wider than caches like."""
    widest = max(64, _ENTRIES // plan.columns)
    if plan.order in (Order.SHUFFLE, Order.SHUFFLE_ONCE) and not common:
        widest = max(1, min(widest, _ORDERS // plan.records))
    blocks = -(-replicas // widest)
    if blocks > 1 and blocks % 2 and replicas // (blocks + 1) >= 64:
        blocks += 1  # two threads share an even number best
    return [replicas * block // blocks for block in range(blocks + 1)]


class _Progress:
    """The steps that the threads have done together; an error in one of them stops the others.

    Told ``apart``, they are not added up.
    """

    def __init__(self, report: Progress | None, total: int, *, apart: bool = False) -> None:
        self.report, self.total, self.done, self.lock = report, total, 0, threading.Lock()
        self.apart = apart
        self.cause: BaseException | None = None

    def add(self, steps: int) -> None:
        if self.cause is not None:
            raise self.cause
        if self.report is not None and steps:
            with self.lock:
                self.done = steps if self.apart else self.done + steps
                self.report(self.done, self.total)


class _Block:
    """The runs of one block.

    Their iterates are the columns of ``state`` times ``unit``, shape (d, replicas). In units of the noise of a step,
    eta_t scale_t, noise is added as drawn.
    """

    def __init__(
        self, plan: Plan, problem: Problem, start: Array, width: int, generator: np.random.Generator,
        shared: np.random.Generator | None, report: _Progress, caps: Array | None, trace: Trace | None = None,
    ) -> None:  # fmt: skip
        from scipy.linalg.blas import dger  # adds an outer product in one pass, which numpy cannot

        self.plan, self.problem, self.start, self.generator, self.report = plan, problem, start, generator, report
        self.width, self.shared, self.trace = width, shared, trace
        self.overwrite, self.caps = problem.loss.array_descent(), caps
        shape = (plan.columns, width)
        self.noisy = not plan.output_scale
        self.unit = 1.0
        self.state = np.repeat(start[:, np.newaxis], width, axis=1)
        self.border = math.sqrt(plan.domain.inner(plan.columns)[1]) if isinstance(plan.domain, Ball) else math.inf
        self.noise = np.empty(
            (max(1, min(plan.steps if self.noisy else 1, _ENTRIES // (plan.columns * width))), *shape)
        )
        self.left = 0  # steps whose noise is drawn and not used
        self.z, self.norms = np.empty(width), np.empty(width)
        self.add_product = dger
        self.step_size = _per_step(plan.step_size)
        self.scale = _per_step(plan.scale)

    def execute(self) -> Array:
        """Return the weights of every run, shape (replicas, d)."""
        plan = self.plan
        drawing = self.shared or self.generator
        skips, stops = orders.extents(plan, drawing, 1 if self.shared else self.width)
        skips, stops = (np.broadcast_to(each, self.width) for each in (skips, stops))
        last, longest = int(stops.max()), int(skips.max())
        common = self.shared or plan.order in (Order.FIXED, Order.FULL)
        steps = _common_steps(plan, drawing) if common else self._independent_steps()
        ends = np.empty((self.width, plan.columns))  # the last iterates
        total, averaged = np.zeros((plan.columns, self.width)), 0
        beat = max(1, _BEATS // (plan.columns * self.width))
        with np.errstate(over="ignore"):  # of e^(y z), where the gradient is 0
            for step in steps:
                if step.number >= last:
                    break
                if plan.release is Release.AVERAGE:
                    total += self.unit * self.state
                self._take_step(step)
                done = step.number + 1
                if plan.averages(done):
                    total += self.unit * self.state
                    averaged += 1
                if step.number < longest:
                    idle = skips > step.number
                    self.state[:, idle] = self.start[:, np.newaxis] / self.unit
                if self.trace is not None:
                    self.trace.see(step.number, self.unit * self.state, step.rows)
                if plan.stops or done == last:
                    ended = stops == done
                    ends[ended] = (self.unit * self.state[:, ended]).T
                if done % beat == 0:
                    self.report.add(beat * self.width)
        self.report.add(plan.steps * self.width - last // beat * beat * self.width)
        if isinstance(plan.domain, Box):
            plan.domain.project(ends)  # the unit may have moved what lies on the border
        if plan.tail:
            return total.T / averaged
        return self._with_output_noise(total.T / last if plan.release is Release.AVERAGE else ends)

    def _with_output_noise(self, weights: Array) -> Array:
        if not self.plan.output_scale:
            return weights
        noise = np.empty(weights.shape)
        fill(self.generator, self.plan.noise, noise)
        return weights + self.plan.output_scale * noise

    def _take_step(self, step: Step) -> None:
        """Take a step of every run."""
        plan = self.plan
        eta, scale = self.step_size(step.number), self.scale(step.number)
        unit = eta * scale if self.noisy else 1.0
        moves = self._drawn_noise()
        self._add_descent(step, eta / (step.divisor * unit), moves)
        weight = self.problem.loss.regularisation
        kept = (1.0 - eta * (weight * step.size / step.divisor)) * (self.unit / unit)
        if kept != 1.0:
            self.state *= kept
        self.unit = unit
        np.add(self.state, moves, out=self.state)
        if isinstance(plan.domain, Ball):
            self._into_ball(moves)
        elif isinstance(plan.domain, Box):
            low, high = plan.domain.low[:, np.newaxis] / unit, plan.domain.high[:, np.newaxis] / unit
            np.clip(self.state, low, high, out=self.state)

    def _drawn_noise(self) -> Array:
        """Return the noise of a step, to be added (its law is symmetric), in an array that may be overwritten."""
        if not self.noisy:
            self.noise.fill(0.0)
            self.left = len(self.noise)
        elif not self.left:
            fill(self.generator, self.plan.noise, self.noise)
            self.left = len(self.noise)
        noise: Array = self.noise[-self.left]
        self.left -= 1
        return noise

    def _add_descent(self, step: Step, factor: float, out: Array) -> None:
        """Add to an array a multiple of minus the sum of the gradients of a batch, without the regulariser."""
        features, labels, _ = self.problem
        if step.rows is None:
            self._add_common_batch(features, labels, self.caps, factor, out)
        elif step.rows.ndim == 2:
            self._add_own_batches(step.rows, factor, out)
        elif step.size == 1:
            row = step.rows[0]
            x, z = features[row], self.z
            np.dot(self.unit * x, self.state, out=z)
            self.overwrite(z, float(labels[row]))
            self._cap(z, row)
            self.add_product(factor, z, x, a=out.T, overwrite_a=True)
        else:
            caps = None if self.caps is None else self.caps[step.rows]
            self._add_common_batch(features[step.rows], labels[step.rows], caps, factor, out)

    def _cap(self, slopes: Array, rows: Any) -> None:
        """Clip the slopes of these records, in place."""
        if self.caps is not None:
            np.clip(slopes, -self.caps[rows], self.caps[rows], out=slopes)

    def _add_common_batch(self, x: Array, y: Array, caps: Array | None, factor: float, out: Array) -> None:
        """As `_add_descent`, for a batch that all runs share."""
        most = max(1, _PRODUCTS // self.width)
        for first in range(0, len(x), most):
            some = x[first : first + most]
            z = some @ self.state
            z *= self.unit
            self.overwrite(z, y[first : first + most, np.newaxis])
            if caps is not None:
                cap = caps[first : first + most, np.newaxis]
                np.clip(z, -cap, cap, out=z)
            z *= factor
            out += some.T @ z

    def _add_own_batches(self, rows: Index, factor: float, out: Array) -> None:
        """As `_add_descent`, for batches of each run's own."""
        features, labels, _ = self.problem
        for chosen in rows:
            x: Array = np.ascontiguousarray(features[chosen].T)
            z = np.einsum("ij,ij->j", x, self.state, out=self.z)
            np.multiply(z, self.unit, out=z)
            self.overwrite(z, labels[chosen])
            self._cap(z, chosen)
            np.multiply(z, factor, out=z)
            np.multiply(x, z, out=x)
            out += x

    def _into_ball(self, spare: Array) -> None:
        """Project every run onto the ball; ``spare`` is overwritten on the way."""
        state, norms, border = self.state, self.norms, self.border / self.unit
        most = border * border
        np.multiply(state, state, out=spare)
        np.add.reduce(spare, axis=0, out=norms)
        if norms.max() > most:
            np.maximum(norms, most, out=norms)
            np.sqrt(norms, out=norms)
            np.divide(np.sqrt(most), norms, out=norms)  # exactly 1 for those inside
            np.multiply(state, norms, out=state)

    def _independent_steps(self) -> Iterator[Step]:
        """Yield the steps of runs that each have an order of their own."""
        plan, width, generator = self.plan, self.width, self.generator
        if plan.order in (Order.SAMPLE, Order.DRAW):
            total, size, divisor = plan.batches[0]
            for number in range(total):
                if plan.order is Order.DRAW or size == 1:
                    yield Step(number, generator.integers(0, plan.records, size=(size, width)), size, divisor)
                else:
                    yield Step(number, orders.subsets(generator, plan.records, size, width), size, divisor)
            return
        number, order = 0, np.empty((0, 0), dtype=np.int32)
        whole = np.arange(plan.records, dtype=np.int32 if plan.records < 2**31 else np.int64)
        shift = np.zeros(width, dtype=np.int64)
        if plan.order is Order.ROTATION:
            shift = generator.integers(plan.records, size=width)
        for _ in range(plan.passes):
            if plan.order is Order.SHUFFLE or (plan.order is Order.SHUFFLE_ONCE and not order.size):
                order = np.repeat(whole[np.newaxis], width, axis=0)
                generator.permuted(order, axis=1, out=order)
            used = 0
            for count, size, divisor in plan.batches:
                for _ in range(count):
                    if plan.order is Order.ROTATION:
                        rows = (shift + np.arange(used, used + size)[:, np.newaxis]) % plan.records
                    else:
                        rows = order[:, used : used + size].T
                    yield Step(number, rows, size, divisor)
                    used, number = used + size, number + 1


def _common_steps(plan: Plan, generator: np.random.Generator) -> Iterator[Step]:
    """Yield the steps of runs that share one order."""
    for stretch in orders.stretches(plan, generator):
        for k in range(stretch.steps):
            rows = None if stretch.rows is None else stretch.rows[k]
            yield Step(stretch.first + k, rows, stretch.size, stretch.divisor)


def _per_step(value: float | Array) -> Callable[[int], float]:
    """Return step -> value."""
    if isinstance(value, float):
        return lambda _: value
    numbers: list[Any] = value.tolist()
    return numbers.__getitem__
