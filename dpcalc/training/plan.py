"""What is executed, derived from what was accounted and from nothing else."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.bounds import online
from dpcalc.bounds.shuffle import layout
from dpcalc.errors import NotApplicable, SpecError
from dpcalc.numerics.floats import up
from dpcalc.spec.run import Run
from dpcalc.training.domain import Ball, Domain, Whole

Array = NDArray[np.float64]

_ORDERS = {
    "pnsgd": "fixed", "skip": "fixed", "stop": "fixed", "local": "fixed", "online": "fixed", "cyclic": "fixed",
    "rotation": "rotation", "shuffled": "shuffle", "shuffled-stop": "shuffle", "shuffled-epochs": "shuffle",
    "shuffle-once": "shuffle-once", "noisy-sgd": "sample", "dp-sgd-gradient": "sample", "dp-sgd-output": "draw",
    "noisy-gd": "full",
}  # fmt: skip
_PASSES = ("cyclic", "shuffle-once", "shuffled-epochs")
_STOPPED = ("stop", "shuffled-stop")
_SINGLE = ("skip", "stop", "shuffled-stop", "online", "dp-sgd-output")
_MAX_STEPS = 10**12
_TINY, _HUGE = 1e-290, 1e140  # noise below the one has no digits left; the square of a step above the other overflows


class Batch(NamedTuple):
    """``steps`` in a row on ``size`` records each, the sum of whose gradients is divided by ``divisor``."""

    steps: int
    size: int
    divisor: int


class Plan(NamedTuple):
    """A run as it is executed.

    Step t takes w to Pi(w - eta_t (g + scale_t Z)): g is the sum of the gradients of its batch, each with the
    regulariser's, over the divisor; Z has independent entries of scale 1; Pi is the projection onto ``domain``.

    Attributes:
        algorithm: as accounted.
        records, columns: shape of the data.
        order: ``fixed`` (that of the data), ``rotation`` (from a uniform record on), ``shuffle`` (a fresh uniform order
            each pass), ``shuffle-once`` (one for all), ``sample`` (fresh uniform batches without replacement),
            ``draw`` (single records with replacement), ``full``.
        passes: how often ``batches`` is gone through.
        batches: the steps of a pass (of the whole run, where there are no passes).
        step_size, scale: eta_t and the scale of Z: numbers, or arrays of shape (steps,).
        noise: ``gaussian`` or ``laplace``.
        output_scale: of Gaussian noise on what is released; 0 for none.
        domain: what iterates are projected onto after every step.
        longest_skip: a uniform number of records from 0 to this is skipped first.
        stops: whether the run ends after a uniform number of steps, from 1 on.
        stop_law: the law of that number where it is not uniform, shape (steps,).
        from_zero: whether the theorem needs the run to start at 0.
        release: ``last`` iterate, ``average`` of those that gradients were taken at, iterate after every ``pass`` or
            every ``step``.
        accounted: the constants of the loss that the accounting used, name -> value.
    """

    algorithm: str
    records: int
    columns: int
    order: str
    passes: int
    batches: tuple[Batch, ...]
    step_size: float | Array
    scale: float | Array
    noise: str
    output_scale: float
    domain: Domain
    longest_skip: int
    stops: bool
    stop_law: Array | None
    from_zero: bool
    release: str
    accounted: dict[str, Any]

    @property
    def steps_per_pass(self) -> int:
        """Steps of one pass."""
        return sum(batch.steps for batch in self.batches)

    @property
    def steps(self) -> int:
        """Steps of the whole run, if none is skipped and it does not stop early."""
        return self.passes * self.steps_per_pass

    @property
    def norm(self) -> int:
        """The norm in which features are bounded: 1 for Laplace noise in several dimensions, else 2."""
        return 1 if self.noise == "laplace" and self.columns > 1 else 2


def plan(run: Run, rows: int, columns: int, domain: Domain | None = None) -> Plan:
    """Return what the accounted run does to data of so many rows and columns.

    Args:
        run: as described to the accountant.
        rows, columns: of the data.
        domain: a convex set within the accounted radius and diameter; by default the largest ball about 0 that is.

    Raises:
        SpecError: run and data disagree, or something that the execution needs was not accounted.
        NotApplicable: the algorithm is not one that can be executed.
    """
    base = run.algorithm.removesuffix("-released")
    if base not in _ORDERS:
        raise NotApplicable(
            f"{run.algorithm} is no algorithm that can be executed", "train one of " + ", ".join(_ORDERS)
        )
    values = run.values
    _same_shape(run, rows, columns)
    batches = _batches(base, values, rows)
    passes = int(_given(values, "epochs")) if base in _PASSES else 1
    steps = passes * sum(batch.steps for batch in batches)
    if steps > _MAX_STEPS:
        raise SpecError(f"the run has {steps} steps; at most {_MAX_STEPS} are executed", "use fewer passes or steps")
    step_size, scale = _steps(base, values, steps)
    _refuse_extremes(step_size, scale, values.get("lipschitz", 0.0))
    on_output = base == "dp-sgd-output"
    law = getattr(values.get("schedule"), "probability", None)
    if law is not None and base != "stop":
        raise NotApplicable(
            "the schedule's column probability is a law that no order of all records follows", "leave it out"
        )
    return Plan(
        algorithm=run.algorithm, records=rows, columns=columns, order=_ORDERS[base], passes=passes, batches=batches,
        step_size=step_size, scale=0.0 if on_output else scale, noise=str(values.get("noise", "gaussian")),
        output_scale=float(np.max(scale)) if on_output else 0.0, domain=_domain(values, domain),
        longest_skip=rows // 2 if base == "skip" else 0, stops=base in _STOPPED, stop_law=law, from_zero=on_output,
        release=_release(run.algorithm), accounted=_accounted(values),
    )  # fmt: skip


def _release(algorithm: str) -> str:
    if algorithm.startswith("dp-sgd"):
        return "average"
    if algorithm in ("local", "noisy-sgd-released", "noisy-gd-released"):
        return "step"
    return "pass" if algorithm.endswith("-released") else "last"


def _given(values: Any, name: str) -> Any:
    value = values.get(name)
    if value is None:
        raise SpecError(f"the run has no {name}", f"give --{name.replace('_', '-')}")
    return value


def _same_shape(run: Run, rows: int, columns: int) -> None:
    records = _given(run.values, "records")
    # A message's privacy depends on no other record: there the number of records is not described.
    alone = run.algorithm == "local" and run.sources.get("records") == "default"
    if records != rows and not alone:
        raise SpecError(f"the run is of {records} records, and the data have {rows}", "they must be as many")
    laplace = run.values.get("noise") == "laplace"
    dimension = run.values.get("dimension", 1 if laplace else None)
    if dimension is not None and dimension != columns:
        raise SpecError(
            f"the run is of dimension {dimension}, and the data have {columns} columns",
            f"give --dimension {columns}" + (", and bounds in the 1-norm" if laplace and columns > 1 else ""),
        )


def _batches(base: str, values: Any, rows: int) -> tuple[Batch, ...]:
    """Return the steps of a pass, or of a run without passes, as the bounds count and divide them."""
    size = int(values.get("batch_size", 1))
    if base in _SINGLE and size != 1:
        raise SpecError(f"{base} takes single records, and the batch size is {size}", "leave out --batch-size")
    if base == "noisy-gd":
        return (Batch(int(_given(values, "steps")), rows, rows),)
    if _ORDERS[base] in ("sample", "draw"):
        return (Batch(int(_given(values, "steps")), size, size),)
    found = layout(rows, size, str(values.get("last_batch", "own")))
    held = min(found.size, rows)
    full = Batch(found.full, held, found.size)
    return (full, Batch(1, found.short, found.divisor)) if found.short else (full,)


def _steps(base: str, values: Any, steps: int) -> tuple[float | Array, float | Array]:
    """Return the step size and the scale of the noise: numbers, or one per step."""
    if base == "online":
        return float(_given(values, "step_size")), _stream(values, steps)
    scale = values.get("scale", values.get("noise_std"))
    if scale is None:
        raise SpecError("the run has no noise", "give --noise-std or --laplace-scale")
    chain = values.get("schedule")
    if chain is None:
        return float(_given(values, "step_size")), float(scale)
    if len(chain) != steps:
        raise SpecError(f"the schedule has {len(chain)} steps, and the run {steps}", "one step per record")
    # What is accounted is rounded down from the same product.
    return np.array(chain.step_size, dtype=np.float64), float(scale) * np.asarray(chain.noise, dtype=np.float64)


def _refuse_extremes(step_size: float | Array, scale: float | Array, lipschitz: float) -> None:
    """Refuse steps that double precision cannot take: the theorems speak of real numbers."""
    with np.errstate(over="ignore", under="ignore"):
        least = float(np.min(np.minimum(np.minimum(step_size, scale), np.multiply(step_size, scale))))
        most = float(np.max(np.multiply(step_size, np.add(scale, lipschitz))))
    if not (least >= _TINY and most <= _HUGE):
        raise SpecError(
            f"a step's noise, its factors or its length range from {least:g} to {most:g}",
            f"double precision is enough from {_TINY:g} to {_HUGE:g}: use other units",
        )


def _stream(values: Any, steps: int) -> Array:
    """Return each record's scale, never below the accounted one: that is rounded down by fewer than 32 units."""
    names = ("noise", "c1", "c2", "decay_exponent", "displacement", "diameter", "step_size", "noise_multiplier")
    stream = online.stream(**{name: _given(values, name) for name in names})
    return np.fromiter((up(scale, 32.0) for _, scale in online.scales(stream, 1, steps)), np.float64, steps)


def _domain(values: Any, domain: Domain | None) -> Domain:
    radius, diameter = values.get("radius", math.inf), values.get("diameter", math.inf)
    if domain is None:
        largest = min(radius, 0.5 * diameter)
        return Ball(largest) if math.isfinite(largest) else Whole()
    for name, accounted in (("radius", radius), ("diameter", diameter)):
        found = getattr(domain, name)
        if not found <= accounted:
            raise SpecError(f"the constraint set has {name} {found:g}, and {accounted:g} was accounted", "shrink it")
    return domain


_CONSTANTS = (
    "lipschitz", "smoothness", "strong_convexity", "regularisation", "holder_exponent", "holder_constant",
    "gradient_at_zero", "loss_at_zero", "loss_range",
)  # fmt: skip


def _accounted(values: Any) -> dict[str, Any]:
    return {name: values[name] for name in _CONSTANTS if values.get(name) is not None}
