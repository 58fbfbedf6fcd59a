"""Thousands of independent runs as one array.

The runs are split into blocks, whose width depends on the plan and the number of runs alone. Each block has its own
generator, ``SeedSequence(seed, spawn_key=(0, block))``, so the results do not depend on the threads or processes that
share the blocks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import NotApplicable, SpecError
from dpcalc.model.algorithm import Order, Release
from dpcalc.training.data.progress import Progress
from dpcalc.training.run import orders
from dpcalc.training.run.checks import starting_point
from dpcalc.training.run.correlation import released_by
from dpcalc.training.run.kernel import Kernel, Move, PlainSums, fill, plain_move
from dpcalc.training.run.plan import Plan
from dpcalc.training.run.problem import Problem
from dpcalc.training.run.remote import Rows, There, answered, run_all
from dpcalc.training.run.single import by_processes, may_fork

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Statistic = Callable[[Array], Array]

_ENTRIES = 1 << 15  # of a block's state, and of the noise drawn at once: 256 KiB
_ORDERS = 1 << 24  # indices of a block's orders: 64 MiB
_MUCH = 1 << 22  # from this many noise variables on, forking processes pays off
_FINE = 2.0**20  # the grid of correlated noise is its scale over this, too fine to matter in an experiment
_BEATS = 1 << 22  # noise variables between two calls of progress


class Trace(Protocol):
    """A statistic of all iterates of some runs."""

    def see(self, number: int, weights: Array) -> None:
        """Take the iterates after step ``number``, from 0, shape (d, m); the array changes afterwards."""

    def result(self) -> Array:
        """Return one number for each run, shape (m,)."""


def train(
    plan: Plan, problem: Problem, replicas: int, seed: int | None = None, *, workers: int | None = None,
    progress: Progress | None = None, statistic: Statistic | None = None, trace: Callable[[], Trace] | None = None,
    there: There | None = None,
) -> Array:  # fmt: skip
    """Return the outcomes of independent runs of a plan.

    Args:
        plan, problem: as in `dpcalc.training.run.single.train`.
        replicas: number of runs, >= 1.
        seed: of all randomness; by default from the operating system.
        workers: number of processes; of threads if the process cannot fork (`may_fork`), there is little work, or a
            statistic or trace is given. By default one per available core.
        progress: called with (steps of runs done, in all), one call at a time, from any thread.
        statistic: maps the weights of some runs, shape (m, d), to an array whose first axis is m, which is returned in
            place of the weights. It may be called from several threads.
        trace: makes a `Trace` of all iterates of some runs; its result, shape (m, 1), replaces their weights.
        there: other machines to compute on; not with ``statistic`` or ``trace``.

    Returns:
        The weights of every run, shape (replicas, d); or the values of ``statistic``, joined.

    Raises:
        SpecError: as in `dpcalc.training.run.single.train`, or there is nothing to run.
    """
    runs = _Runs(plan, problem, replicas, seed, trace)
    report = _Progress(progress, plan.steps * replicas)
    workers = min(len(runs.widths), workers or _cores())
    plain = statistic is None and trace is None
    if there is not None:
        if not plain:
            raise SpecError("only the last iterates of independent runs are computed on other machines")
        return _run_remotely(there, runs, report)
    if workers > 1 and plain and plan.steps * replicas * plan.columns >= _MUCH and may_fork():
        return by_processes(
            runs.block, len(runs.widths), workers, lambda block: report.add(plan.steps * runs.widths[block])
        )

    def run(block: int) -> Array:
        report.add(0)
        try:
            weights = runs.block(block, report.add)
            return weights if statistic is None else np.asarray(statistic(weights))
        except BaseException as error:
            report.cause = report.cause or error
            raise

    if workers == 1:
        return np.concatenate([run(block) for block in range(len(runs.widths))])
    with ThreadPoolExecutor(workers) as pool:
        try:
            results = [pool.submit(run, block) for block in range(len(runs.widths))]
            return np.concatenate([result.result() for result in results])
        except BaseException as error:  # an interrupt also ends the blocks under way
            report.cause = report.cause or error
            raise


def _cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run_remotely(there: There, runs: _Runs, report: _Progress) -> Array:
    plan, widths = runs.plan, runs.widths
    common = plan, runs.problem, runs.replicas, str(runs.root.entropy)
    rows = [Rows((width, plan.columns), None) for width in widths]
    cost, steps = plan.steps * widths[0] * plan.columns, plan.steps * runs.replicas / len(rows)
    return run_all(there, run_blocks, common, rows, cost, lambda blocks: report.add(int(steps * blocks)))


def run_blocks(document: str) -> str:
    """Return the outcomes of some blocks of `train` as text, on another machine."""

    def outcomes(common: Any, blocks: range) -> list[Array]:
        plan, problem, replicas, entropy = common
        return list(train_some(plan, problem, replicas, int(entropy), blocks))

    return answered(document, outcomes)


def train_some(
    plan: Plan, problem: Problem, replicas: int, seed: int, blocks: range, trace: Callable[[], Trace] | None = None
) -> Iterator[Array]:
    """Yield the outcomes of some blocks of `train` with these arguments, one array for each block.

    Raises:
        SpecError: as in `train`.
    """
    runs = _Runs(plan, problem, replicas, seed, trace)
    return (runs.block(block) for block in blocks)


def widths(plan: Plan, replicas: int) -> list[int]:
    """Return the number of runs of each block of `train`."""
    return [b - a for a, b in pairwise(_edges(plan, replicas))]


def _generator(root: np.random.SeedSequence, *key: int) -> np.random.Generator:
    """Return the generator with this key; ``spawn`` would keep a count in the sequence and change later results."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(root.entropy, spawn_key=key)))


def _edges(plan: Plan, replicas: int) -> list[int]:
    """Return where blocks of runs begin, and the number of runs; blocks have about equal width and fit into caches."""
    widest = max(64, _ENTRIES // plan.columns)
    if plan.order in (Order.SHUFFLE, Order.SHUFFLE_ONCE):
        widest = max(1, min(widest, _ORDERS // plan.records))
    blocks = -(-replicas // widest)
    if blocks > 1 and blocks % 2 and replicas // (blocks + 1) >= 64:
        blocks += 1  # an even number is best for two threads
    return [replicas * block // blocks for block in range(blocks + 1)]


class _Progress:
    """The progress of all threads together; an error in one of them stops the others."""

    def __init__(self, report: Progress | None, total: int) -> None:
        self.report, self.total, self.done, self.lock = report, total, 0, threading.Lock()
        self.cause: BaseException | None = None

    def add(self, steps: int) -> None:
        if self.cause is not None:
            raise self.cause
        if self.report is not None and steps:
            with self.lock:
                self.done += steps
                self.report(self.done, self.total)


class _Runs:
    """The state shared by all blocks."""

    def __init__(
        self, plan: Plan, problem: Problem, replicas: int, seed: int | None, trace: Callable[[], Trace] | None
    ) -> None:
        if replicas < 1:
            raise SpecError(f"{replicas} runs are asked for", "ask for one or more")
        if seed is not None and seed < 0:
            raise SpecError(f"the seed is {seed}; it must be a whole number >= 0", "see --seed")
        if plan.sampling is not None:
            raise NotApplicable(
                "runs side by side draw no batches from groups of records", "leave out --sampling, or --replicas"
            )
        last = plan._replace(release=Release.LAST) if plan.release in (Release.PASS, Release.STEP) else plan
        self.start = starting_point(last, problem, None)
        self.plan, self.problem, self.replicas, self.trace = plan, problem, replicas, trace
        self.root = np.random.SeedSequence(seed)
        self.edges = _edges(plan, replicas)
        self.widths = [b - a for a, b in pairwise(self.edges)]
        self.sums = PlainSums(plan, problem, max(self.widths))

    def block(self, number: int, beat: Callable[[int], None] = lambda steps: None) -> Array:
        """Return the outcomes of the runs of a block, shape (runs, d), or their traces, shape (runs, 1).

        ``beat`` is called with the number of steps taken since it was last called.
        """
        trace = self.trace() if self.trace is not None else None
        weights = _Block(self, self.widths[number], _generator(self.root, 0, number)).execute(trace, beat)
        return weights if trace is None else trace.result()[:, np.newaxis]


class _Block:
    """The runs of one block; their iterates are the columns of an array of shape (d, runs)."""

    def __init__(self, runs: _Runs, width: int, generator: np.random.Generator) -> None:
        self.runs, self.plan, self.width, self.generator = runs, runs.plan, width, generator
        start = np.repeat(runs.start[:, np.newaxis], width, axis=1)
        self.kernel = Kernel(self.plan, runs.problem.loss.regularisation, start)

    def execute(self, trace: Trace | None, beat: Callable[[int], None]) -> Array:
        """Return the weights of every run, shape (runs, d)."""
        plan, kernel, width = self.plan, self.kernel, self.width
        skips, stops = orders.extents(plan, self.generator, width)
        last, longest = int(stops.max()), int(skips.max())
        ends = np.empty((width, plan.columns))  # the last iterates
        often, reported = max(1, _BEATS // (plan.columns * width)), 0
        with np.errstate(over="ignore"):  # of e^(y z), where the gradient is 0
            for step, noise in zip(self._steps(), self._noise(), strict=False):
                if step.number >= last:
                    break
                kernel.take(step, self._move(step, noise))
                if step.number < longest:
                    kernel.weights[:, skips > step.number] = self.runs.start[:, np.newaxis]
                if trace is not None:
                    trace.see(step.number, kernel.weights)
                done = step.number + 1
                if plan.stops or done == last:
                    ended = stops == done
                    ends[ended] = kernel.weights[:, ended].T
                if done % often == 0:
                    beat(often * width)
                    reported += often
        beat((plan.steps - reported) * width)
        if plan.tail or plan.release is Release.AVERAGE:
            ends = kernel.mean
        if plan.output_scale:
            noise = np.empty(ends.shape)
            fill(self.generator, plan.noise, noise)
            ends = ends + plan.output_scale * noise
        return ends

    def _steps(self) -> Iterator[orders.Step]:
        plan = self.plan
        if plan.order in (Order.FIXED, Order.FULL):
            return (step for stretch in orders.stretches(plan, self.generator) for step in stretch.each())
        return orders.own_steps(plan, self.generator, self.width)

    def _noise(self) -> Iterator[Array]:
        """Yield the noise of every step, of scale 1, shape (d, runs); the caller may overwrite it."""
        plan = self.plan
        many = max(1, min(plan.steps, _ENTRIES // (plan.columns * self.width))) if not plan.output_scale else 1
        noise = np.empty((many, plan.columns, self.width))
        correlated = None if plan.strategy is None else released_by(plan.strategy, noise[0].size, self._fine_row)
        while True:
            if plan.output_scale:
                noise.fill(0.0)
            else:
                fill(self.generator, plan.noise, noise)
            if correlated is None:
                yield from noise
                continue
            for fresh in noise:
                row = correlated(np.zeros(fresh.size), fresh.ravel() * _FINE)
                yield (row / _FINE).reshape(fresh.shape)

    def _fine_row(self) -> Array:
        row = np.empty(self.plan.columns * self.width)
        fill(self.generator, self.plan.noise, row)
        return row * _FINE

    def _move(self, step: orders.Step, noise: Array) -> Move:
        """Return the move of a step; the sign of the noise does not matter, since its law is symmetric."""
        eta = self.plan.step_size_at(step.number)
        noise *= eta * self.plan.scale_at(step.number)
        descent = partial(self.runs.sums.descent, rows=step.rows)
        return partial(plain_move, descent, noise, eta / step.divisor)
