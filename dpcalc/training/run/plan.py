"""The plan of an execution, derived from the accounted run alone."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import NotApplicable, SpecError
from dpcalc.model.algorithm import ALGORITHMS, Algorithm, Length, Order, Release, Source
from dpcalc.model.quantities import LastBatch, Mechanism, Model, Noise, Sampling, Scaling
from dpcalc.model.run import Run
from dpcalc.model.strategy import Strategy
from dpcalc.numerics.floats import up
from dpcalc.theorems.batch_layout import layout
from dpcalc.theorems.contraction.stream_noise import Stream
from dpcalc.training.run.domain import Ball

Array = NDArray[np.float64]

_MAX_STEPS = 10**12
_TINY, _HUGE = 1e-290, 1e140  # smaller noise loses its digits, and the square of a longer step overflows


class Batch(NamedTuple):
    """``steps`` consecutive steps on ``size`` records each, whose sum of gradients is divided by ``divisor``."""

    steps: int
    size: int
    divisor: int


class Plan(NamedTuple):
    """A run as executed.

    Step t takes w to Pi(w - eta_t (g + scale_t Z)): g is the sum of the gradients of its batch, each with the
    regulariser's, over the divisor; Z has independent entries of scale 1; Pi is the projection onto ``domain``.

    Attributes:
        algorithm: as accounted.
        records, columns: the numbers of records and of weights; K classes have K weights for each column of the data.
        order: ``fixed`` (that of the data), ``rotation`` (from a uniform record on), ``shuffle`` (a fresh uniform order
            each pass), ``shuffle-once`` (one for all), ``sample`` (fresh uniform batches without replacement),
            ``draw`` (single records with replacement), ``full``. With correlated noise see also ``sampling``.
        passes: how often ``batches`` is repeated.
        batches: the steps of a pass (of the whole run, where there are no passes).
        step_size, scale: eta_t and scale_t: numbers, or arrays of shape (steps,).
        noise: ``gaussian`` or ``laplace``.
        output_scale: of Gaussian noise on the released weights; 0 for none.
        domain: the set that iterates are projected onto after every step.
        longest_skip: a uniform number of records from 0 to this is skipped first.
        stops: whether the run ends after a uniform number of steps, from 1 on.
        stop_law: the distribution of that number where it is not uniform, shape (steps,).
        from_zero: whether the theorem needs the run to start at 0.
        release: the ``last`` iterate, the ``average`` of those that gradients were taken at, or the iterate after every
            ``pass`` or every ``step``.
        accounted: the constants of the loss that the accounting used, name -> value, with ``clip`` if gradients are
            clipped.
        tail: whether the model is the mean of the second half of the released iterates. All of them are accounted as
            public, so the mean is post-processing.
        started: whether the run starts from a model, which is projected first.
        capped: whether slopes of several classes are clipped by a capped softmax, not as vectors.
        strategy: the matrix C that correlates the noise of the steps, if one does: Z is then a row of C^-1 Z. Every
            iterate may be public, but only the last, or a mean, is kept.
        sampling: how batches are drawn from the groups of a banded matrix, if they are. A batch then has any size up to
            that of its group.
    """

    algorithm: str
    records: int
    columns: int
    order: Order
    passes: int
    batches: tuple[Batch, ...]
    step_size: float | Array
    scale: float | Array
    noise: str
    output_scale: float
    domain: Ball
    longest_skip: int
    stops: bool
    stop_law: Array | None
    from_zero: bool
    release: Release
    accounted: dict[str, float]
    tail: bool = False
    started: bool = False
    capped: bool = False
    strategy: Strategy | None = None
    sampling: Sampling | None = None

    @property
    def steps_per_pass(self) -> int:
        """The number of steps of one pass."""
        return sum(batch.steps for batch in self.batches)

    @property
    def steps(self) -> int:
        """The number of steps of the whole run, without skipping and early stopping."""
        return self.passes * self.steps_per_pass

    @property
    def iterates_released(self) -> int:
        """The number of released iterates."""
        return {Release.STEP: self.steps, Release.PASS: self.passes}.get(self.release, 1)

    @property
    def largest_sum(self) -> int:
        """The number of records in the largest noisy sum: a batch, or the largest node of a tree."""
        size = max(batch.size for batch in self.batches)
        tree = self.strategy is not None and self.strategy.mechanism == Mechanism.TREE
        return size << (self.steps.bit_length() - 1) if tree else size

    @property
    def clip(self) -> float | None:
        """The norm to which the gradient of every record is clipped; None without clipping."""
        return self.accounted.get("clip")

    def step_size_at(self, number: int) -> float:
        """Return eta_t of the step after this number of steps."""
        return self.step_size if isinstance(self.step_size, float) else float(self.step_size[number])

    def scale_at(self, number: int) -> float:
        """Return the scale of the noise of the step after this number of steps."""
        return self.scale if isinstance(self.scale, float) else float(self.scale[number])

    def averaged(self) -> Plan:
        """Return the plan whose model is the mean of the second half of the released iterates.

        Raises:
            SpecError: iterates stay hidden.
        """
        if self.release not in (Release.PASS, Release.STEP) and self.strategy is None:
            raise SpecError("a mean of iterates is covered only where each of them is", "give --release epoch")
        return self._replace(tail=True)

    def without(self, sums: int) -> Plan:
        """Return the plan of full batches without this number of steps, which are noisy sums of another kind."""
        [batch] = self.batches
        return self._replace(batches=(batch._replace(steps=batch.steps - sums),))

    def averages(self, steps: int) -> bool:
        """Return whether the iterate after this number of steps is part of the mean."""
        interval = 1 if self.release is Release.STEP or self.strategy is not None else self.steps_per_pass
        return self.tail and steps % interval == 0 and steps // interval > self.steps // interval // 2

    @property
    def norm(self) -> int:
        """The norm in which features are bounded: 1 for Laplace noise in several dimensions, else 2."""
        return 1 if self.noise == Noise.LAPLACE and self.columns > 1 else 2


def plan(run: Run, rows: int, columns: int) -> Plan:
    """Return the plan of the accounted run for data of this shape.

    Args:
        run: as described to the accountant.
        rows, columns: of the data.

    Raises:
        SpecError: run and data disagree, or the execution needs something that was not accounted.
        NotApplicable: the algorithm cannot be executed.
    """
    algorithm = run.algorithm
    refuse_unexecutable(algorithm)
    _refuse_other_shape(run, rows, columns)
    if run.mechanism is not None:
        return _correlated(run, rows, columns)
    batches = _batches(run, rows)
    passes = int(_need(run, "epochs")) if algorithm.length is Length.PASSES else 1
    step_size, scale = _step_sizes_and_scales(run, passes * sum(batch.steps for batch in batches))
    _refuse_extremes(step_size, scale, run.lipschitz or 0.0)
    stop_law = _stop_law(run)
    on_output = algorithm.noisy_output
    return Plan(
        algorithm=algorithm.name, records=rows, columns=columns, order=algorithm.order, passes=passes, batches=batches,
        step_size=step_size, scale=0.0 if on_output else scale, noise=run.noise or Noise.GAUSSIAN,
        output_scale=float(np.max(scale)) if on_output else 0.0, domain=_domain(run),
        longest_skip=rows // 2 if algorithm.skips else 0, stops=algorithm.stops, stop_law=stop_law,
        from_zero=on_output, release=algorithm.release, accounted=_constants(run),
        capped=run.model == Model.CAPPED,
    )  # fmt: skip


def _correlated(run: Run, rows: int, columns: int) -> Plan:
    """Return the plan of a run whose noise is correlated.

    Raises:
        SpecError: the steps are not whole passes, or the noise is not relative to the clip.
        NotApplicable: the matrix comes from a file.
    """
    if run.mechanism is Mechanism.FILE:
        raise NotApplicable("the matrix of a file is accounted for, and not carried out", "use another --mechanism")
    size, steps, sampling = min(int(_need(run, "batch_size")), rows), int(_need(run, "steps")), run.sampling
    passes, rest = divmod(steps, -(-rows // size))
    if rest or not passes:
        raise SpecError(f"{steps} steps on batches of {size} of {rows} records are no whole passes", "give --epochs")
    if run.scaling != Scaling.MATRIX:
        raise SpecError(f"a run is carried out with noise over the clip, not over {run.scaling}", "leave out --scaling")
    grouped = sampling in (Sampling.POISSON, Sampling.BALLS_IN_BINS)
    if grouped:
        batches: tuple[Batch, ...] = (Batch(steps // passes, -(-rows // (run.bands or 1)), size),)
    else:
        cut = layout(rows, size, LastBatch.NOMINAL)  # sums are divided by a constant
        batches = tuple(Batch(alike.steps, alike.size, size) for alike in reversed(cut.positions))
    step_size, clip = float(_need(run, "step_size")), float(_need(run, "clip"))
    scale = up(_need(run, "noise_multiplier") * clip / size, 4.0)
    _refuse_extremes(step_size, scale, clip)
    return Plan(
        algorithm=run.algorithm.name, records=rows, columns=columns,
        order=Order.SHUFFLE if sampling is Sampling.SHUFFLE else Order.FIXED, passes=passes, batches=batches,
        step_size=step_size, scale=scale, noise=Noise.GAUSSIAN, output_scale=0.0, domain=_domain(run), longest_skip=0,
        stops=False, stop_law=None, from_zero=False, release=Release.LAST, accounted=_constants(run),
        strategy=Strategy.of(run.value), sampling=sampling if grouped else None,
    )  # fmt: skip


def _constants(run: Run) -> dict[str, float]:
    """Return the constants of the loss that the accounting used."""
    return {name: run.value(name) for name in _CONSTANTS if run.value(name) is not None}


def _need(run: Run, name: str) -> Any:
    value = run.value(name)
    if value is None:
        raise SpecError(f"the run has no {name}", f"give --{name.replace('_', '-')}")
    return value


def refuse_unexecutable(algorithm: Algorithm) -> None:
    """Raise NotApplicable for an algorithm that cannot be executed."""
    if not algorithm.executed:
        names = [a.name for a in ALGORITHMS.values() if a.executed and a.name == a.base]
        raise NotApplicable(
            f"{algorithm.name} is no algorithm that can be executed", "train one of " + ", ".join(names)
        )


def _refuse_other_shape(run: Run, rows: int, columns: int) -> None:
    """Refuse data without the accounted number of records or the accounted dimension."""
    records = _need(run, "records")
    # The number of records is a default only where privacy does not depend on it: then any number will do.
    if records != rows and run.source("records") is not Source.DEFAULT:
        raise SpecError(f"the run is of {records} records, and the data have {rows}", "they must be as many")
    laplace = run.noise == Noise.LAPLACE
    dimension = 1 if run.dimension is None and laplace else run.dimension
    if dimension is not None and dimension != columns:
        raise SpecError(
            f"the run is of dimension {dimension}, and the data have {columns} columns",
            f"give --dimension {columns}" + (", and bounds in the 1-norm" if laplace and columns > 1 else ""),
        )


def _batches(run: Run, rows: int) -> tuple[Batch, ...]:
    """Return the steps of a pass, or of a run without passes, with sizes and divisors as in the bounds."""
    algorithm, size = run.algorithm, run.batch_size or 1
    if algorithm.single and size != 1:
        raise SpecError(
            f"{algorithm.base} takes single records, and the batch size is {size}", "leave out --batch-size"
        )
    if algorithm.full_batch:
        return (Batch(int(_need(run, "steps")), rows, rows),)
    if algorithm.order in (Order.SAMPLE, Order.DRAW):
        return (Batch(int(_need(run, "steps")), size, size),)
    cut = layout(rows, size, run.last_batch or LastBatch.OWN)
    return tuple(Batch(alike.steps, alike.size, alike.divisor) for alike in reversed(cut.positions))


def _step_sizes_and_scales(run: Run, steps: int) -> tuple[float | Array, float | Array]:
    """Return the step size and the scale of the noise: numbers, or one per step."""
    if steps > _MAX_STEPS:
        raise SpecError(f"the run has {steps} steps; at most {_MAX_STEPS} are executed", "use fewer passes or steps")
    if run.algorithm.length is Length.STREAM:
        stream = Stream(**{name: _need(run, name) for name in Stream.fields})
        # never below the accounted scales, which are rounded down by fewer than 32 ulps
        scales = np.fromiter((up(scale, 32.0) for _, scale in stream.scales(1, steps)), np.float64, steps)
        return float(_need(run, "step_size")), scales
    scale = run.noise_std if run.scale is None else run.scale
    if scale is None:
        raise SpecError("the run has no noise", "give --noise-std or --laplace-scale")
    chain = run.schedule
    if chain is None:
        return float(_need(run, "step_size")), float(scale)
    if len(chain) != steps:
        raise SpecError(f"the schedule has {len(chain)} steps, and the run {steps}", "one step per record")
    # The accounted noise is this product, rounded down.
    return np.array(chain.step_size, dtype=np.float64), float(scale) * np.asarray(chain.noise, dtype=np.float64)


def _refuse_extremes(step_size: float | Array, scale: float | Array, lipschitz: float) -> None:
    """Refuse steps that double precision cannot represent well: the theorems are about real numbers."""
    with np.errstate(over="ignore", under="ignore"):
        least = float(np.min(np.minimum(np.minimum(step_size, scale), np.multiply(step_size, scale))))
        most = float(np.max(np.multiply(step_size, np.add(scale, lipschitz))))
    if not (least >= _TINY and most <= _HUGE):
        raise SpecError(
            f"a step's noise, its factors or its length range from {least:g} to {most:g}",
            f"double precision is enough from {_TINY:g} to {_HUGE:g}: use other units",
        )


def _stop_law(run: Run) -> Array | None:
    """Return the distribution of the number of steps from the schedule, if it has one."""
    law: Array | None = getattr(run.schedule, "probability", None)
    if law is not None and not (run.algorithm.stops and run.algorithm.order is Order.FIXED):
        raise NotApplicable(
            "the schedule's column probability is a law that no order of all records follows", "leave it out"
        )
    return law


def _domain(run: Run) -> Ball:
    """Return the largest ball about 0 within the accounted radius and diameter.

    Without these it is the whole space; some bounds hold only there, since a projection may erase earlier noise.
    """
    radii = [run.radius, None if run.diameter is None else 0.5 * run.diameter]
    return Ball(min((radius for radius in radii if radius is not None), default=math.inf))


_CONSTANTS = (
    "lipschitz", "smoothness", "strong_convexity", "regularisation", "holder_exponent", "holder_constant",
    "gradient_at_zero", "loss_at_zero", "loss_range", "clip",
)  # fmt: skip
