"""One run of the accounted algorithm, and processes that share the blocks of an ensemble.

Threads would wait for each other between calls of numpy. A forked copy of this process already has all data, so nothing
is sent to it. `may_fork` says whether copies are safe.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import DpcalcError, SpecError
from dpcalc.model.algorithm import Release
from dpcalc.training.data.progress import Progress
from dpcalc.training.run import orders
from dpcalc.training.run.checks import starting_point
from dpcalc.training.run.correlation import released_by
from dpcalc.training.run.exact_sums import ExactSums, grid_of, rounded
from dpcalc.training.run.kernel import Kernel, PlainSums, Singly, Source, fill
from dpcalc.training.run.plan import Plan
from dpcalc.training.run.problem import Problem
from dpcalc.training.run.rounding import Rounding

Array = NDArray[np.float64]
_ENTRIES = 1 << 15  # noise drawn at once: 256 KiB
_STEPS = 512  # steps whose noise is drawn at once, at most: progress is not silent for longer


class Trained(NamedTuple):
    """The outcome of a run.

    Attributes:
        weights: the model, shape (d,), or (d K,) for K classes, with the K weights of a column in a row.
        released: all iterates that may be published, shape (k, d) or (k, d K); the last row is ``weights``, unless
            these are a mean (`Plan.tail`).
    """

    weights: Array
    released: Array


def train(
    plan: Plan, problem: Problem, source: Source, *, start: Array | None = None, progress: Progress | None = None,
    rounding: Rounding | None = None,
) -> Trained:  # fmt: skip
    """Execute a plan.

    Args:
        plan: what is executed.
        problem: data and loss, within the bounds accounted.
        source: of the order of records and of the noise.
        start: shape (d,), in the domain and chosen without looking at the data; by default 0.
        progress: called with (steps done or skipped, all steps) after every step, or after many short ones, and at the
            end.
        rounding: of the released numbers; None for plain doubles, whose low-order bits no guarantee covers.

    Raises:
        SpecError: data, loss or start are not as accounted, or too many iterates are to be released.
    """
    return _Run(plan, problem, source, starting_point(plan, problem, start), rounding).execute(progress)


class _Run:
    """A run that rounds its released numbers, or every noisy sum."""

    def __init__(self, plan: Plan, problem: Problem, source: Source, start: Array, rounding: Rounding | None) -> None:
        self.plan, self.generator = plan, source.generator
        self.grid, self.classified = None if rounding is None else rounding.grid, problem.loss.classified
        exact = rounding is not None and rounding.grid is None
        self.sums = ExactSums.of(plan, problem) if exact else PlainSums(plan, problem)
        if plan.strategy is not None:
            if not isinstance(self.sums, ExactSums):
                raise SpecError("correlated noise is drawn for sums that are rounded", "give their rounding")
            self.sums.released = released_by(plan.strategy, plan.columns, self._row_in_cells)
        self.kernel = Kernel(plan, problem.loss.regularisation, start, keep_unprojected=self.grid is not None)
        self.released: list[Array] = []

    def execute(self, progress: Progress | None) -> Trained:
        """Take all steps."""
        plan = self.plan
        within = orders.extent(plan, self.generator)
        with np.errstate(over="ignore"):  # of e^(y z), where the gradient is 0
            for step in self._taken(within):
                if plan.release is Release.STEP or (plan.release is Release.PASS and step.ends_pass):
                    self.released.append(self._rounded_iterate())
                if progress is not None:
                    progress(step.number + 1, plan.steps)
        if progress is not None and within.end < plan.steps:
            progress(plan.steps, plan.steps)
        return self._outcome()

    def _taken(self, within: orders.Extent) -> Iterator[orders.Step]:
        """Take all steps, with noise drawn for many at once; yield those after which the iterate may be used."""
        plan = self.plan
        block = max(1, min(_STEPS, _ENTRIES // plan.columns, plan.steps))
        singly = plan.sampling is None and not self.classified  # what is drawn from groups is of any size
        for stretch in orders.stretches(plan, self.generator, within):
            for part in stretch.parts(block):
                noise = np.zeros((part.steps, plan.columns))
                if not plan.output_scale:
                    fill(self.generator, plan.noise, noise)
                places = slice(part.first, part.first + part.steps)
                eta, scale = (
                    np.full(part.steps, value) if isinstance(value, float) else value[places]
                    for value in (plan.step_size, plan.scale)
                )
                if singly and part.size == 1 and part.rows is not None:
                    yield from self._singly(part, eta, self.sums.singly(part, eta, scale, noise))
                    continue
                for step, move in zip(part.each(), self.sums.moves(part, eta, scale, noise), strict=True):
                    self.kernel.take(step, move)
                    yield step

    def _singly(self, part: orders.Stretch, eta: Array, steps: Singly) -> Iterator[orders.Step]:
        """Take steps on single records; only the last is yielded where iterates stay hidden."""
        plan, kernel = self.plan, self.kernel
        keep = 1.0 - eta * (kernel.regularisation / part.divisor)
        start = kernel.weights if kernel.unprojected is None else kernel.unprojected  # projected exactly once
        iterates = steps.taken(start, keep, plan.domain)
        hidden = plan.release in (Release.LAST, Release.PASS) and plan.strategy is None
        first = part.steps - 1 if hidden else 0
        for step, w in zip(part.part(first, part.steps).each(), iterates[first:], strict=True):
            kernel.reach(step.number + 1, w)
            yield step

    def _row_in_cells(self) -> Array:
        """Return a fresh row of noise in units of the grid, which is the same for all steps."""
        row, scale = np.empty(self.plan.columns), self.plan.scale_at(0) * self.plan.batches[0].divisor
        fill(self.generator, self.plan.noise, row)
        row *= scale / grid_of(scale)
        return row

    def _rounded_iterate(self) -> Array:
        """Return the last iterate for release: rounded before the projection, since projections have atoms."""
        if self.grid is None or self.kernel.unprojected is None:
            return self.kernel.weights.copy()
        w = rounded(self.kernel.unprojected, self.grid)
        self.plan.domain.project(w)
        return w

    def _outcome(self) -> Trained:
        plan = self.plan
        average = plan.release is Release.AVERAGE
        weights = self.kernel.mean if average or plan.tail else self._rounded_iterate()
        if plan.output_scale:
            noise = np.empty(plan.columns)
            fill(self.generator, plan.noise, noise)
            weights = weights + plan.output_scale * noise
        if average and self.grid is not None:
            weights = rounded(weights, self.grid)
        released = np.array(self.released) if self.released else weights[np.newaxis].copy()
        return Trained(weights, released)


Block = Callable[[int], Array]


def may_fork() -> bool:
    """Return whether this process may fork: on Linux, with a single thread, and not as a daemonic worker."""
    from multiprocessing import current_process

    if sys.platform != "linux" or current_process().daemon:
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def by_processes(block: Block, count: int, workers: int, done: Callable[[int], None]) -> Array:
    """Compute all blocks in forked processes and return their outcomes, concatenated in order.

    Args:
        block: block number -> its outcome, an array; the function need not be picklable.
        count: number of blocks.
        workers: number of processes, >= 1.
        done: called with the number of each finished block.

    Raises:
        DpcalcError: a process died.
        Exception: as raised by a block.
    """
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import active_children, get_context

    others = active_children()
    pool = ProcessPoolExecutor(min(workers, count), get_context("fork"), _begin, (block,))
    try:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Python loses an interrupt during a fork
        try:
            places = {pool.submit(_outcome, place): place for place in range(count)}
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for future in as_completed(places):
            future.result()
            done(places[future])
        return np.concatenate([future.result() for future in places])
    except BrokenProcessPool:
        raise DpcalcError("a process that trained replicas was ended", "take fewer --workers") from None
    finally:
        for process in active_children():
            if process not in others:
                process.terminate()
        pool.shutdown(cancel_futures=True)


_BLOCKS: list[Block] = []
"""In a forked process: the function that computes a block."""


def _begin(block: Block) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the waiting process handles interrupts
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _BLOCKS.append(block)


def _outcome(place: int) -> Array:
    return _BLOCKS[-1](place)
