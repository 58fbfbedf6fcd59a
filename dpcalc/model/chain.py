"""A chain of noisy Lipschitz steps, described step by step: the setting of the general shifted-divergence theorem."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.errors import NotApplicable, SpecError
from dpcalc.files.reading import SCHEDULE_STEPS
from dpcalc.model.algorithm import Source
from dpcalc.model.draft import NOISE_SCALES, Description
from dpcalc.model.loss_class import LIPSCHITZ_MAPS, default_class, exceeds_two, lowest_curvature, two_over
from dpcalc.model.numbers import plain, shown_below
from dpcalc.model.parameter import check, example_of, typed
from dpcalc.model.quantities import LossClass
from dpcalc.numerics.floats import MAX

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Table = Mapping[str, NDArray[np.float64]]


class Chain:
    """Arrays over the steps t = 1..T, all of shape (T,).

    Attributes:
        step_size: eta_t > 0.
        noise: scale of Z_t relative to the run's ``noise_std`` or ``laplace_scale``, > 0 (1 if that is the scale).
        contraction: Lipschitz factor c_t >= 0 of the step's map.
        shift: how far apart the two maps can be, s_t >= 0; None if it follows from a sensitivity and an index.
        spend: the user's own allocation a_t >= 0, or None.
        displacement: the largest distance of two points of the domain after a step, over its diameter; None if unknown.
        probability: that the record is used in the step, or that the run stops after it; None if uniform.
        lipschitz: whether the maps are Lipschitz with ``contraction``.
        path: the file that the chain came from, or "".
    """

    def __init__(
        self,
        *,
        step_size: NDArray[np.float64],
        noise: NDArray[np.float64],
        contraction: NDArray[np.float64],
        shift: NDArray[np.float64] | None,
        spend: NDArray[np.float64] | None,
        path: str,
        displacement: NDArray[np.float64] | None = None,
        probability: NDArray[np.float64] | None = None,
        lipschitz: bool = True,
    ) -> None:
        self.step_size, self.noise, self.contraction = step_size, noise, contraction
        self.shift, self.spend, self.path = shift, spend, path
        self.displacement, self.probability, self.lipschitz = displacement, probability, lipschitz

    def __len__(self) -> int:
        return len(self.step_size)

    def __str__(self) -> str:
        return self.path or f"{len(self)} equal steps"

    @functools.cached_property
    def one(self) -> Chain | None:
        """The first step, if all steps are equal and each column is described by one number; None otherwise."""
        columns = (self.step_size, self.noise, self.contraction, self.shift, self.displacement)
        told_apart = self.spend is not None or self.probability is not None
        if told_apart or any(column is not None and any(column.strides) for column in columns):
            return None
        first = [None if column is None else column[:1] for column in columns]
        return Chain(
            step_size=self.step_size[:1], noise=self.noise[:1], contraction=self.contraction[:1], shift=first[3],
            spend=None, path=self.path, displacement=first[4], lipschitz=self.lipschitz,
        )  # fmt: skip

    @functools.cached_property
    def scale(self) -> NDArray[np.float64]:
        """Parameter-space noise eta_t noise_t of each step, rounded down; finite, however large."""
        import numpy as np

        with np.errstate(over="ignore"):
            scaled = self.step_size * self.noise * (1.0 - 2.0**-51)
        return np.minimum(scaled, MAX)

    @functools.cached_property
    def variance(self) -> NDArray[np.float64]:
        """Square of `scale`, rounded down; a scale above 1e140 counts as 1e140, so that sums are finite."""
        import numpy as np

        least = np.minimum(self.scale, 1e140)
        squared: NDArray[np.float64] = least * least * (1.0 - 2.0**-52)
        return squared


class _Steps(NamedTuple):
    """The description of the steps: columns of a file, and parameters that are the same for all steps.

    Attributes:
        description: the parameters that do not change from step to step.
        table: the columns by name; empty without a file.
        length: the number of steps.
        path: of the file, or "".
    """

    description: Description
    table: Table
    length: int
    path: str

    def column(self, name: str) -> NDArray[np.float64]:
        """Return a column of the file, or the parameter of this name, repeated for every step.

        Raises:
            SpecError: there is neither, or a value is outside its domain.
        """
        import numpy as np

        if name in self.table:
            return self.table[name]
        if name not in self.description:
            flag, example = "--" + name.replace("_", "-"), typed({name: example_of(name)})
            raise SpecError(
                f"{name} is needed for every step", f"give {flag}, or a column {name}; for example {example}"
            )
        return np.broadcast_to(np.float64(check(name, self.description[name])), (self.length,))

    def noise(self) -> NDArray[np.float64]:
        """Return the column of noise scales; ones if there is none.

        Raises:
            SpecError: there are two such columns.
        """
        import numpy as np

        scales = [self.table[name] for name in NOISE_SCALES if name in self.table]
        if len(scales) > 1:
            raise SpecError(f"{self.path} has both noise_std and laplace_scale", "keep one of the two columns")
        return scales[0] if scales else np.broadcast_to(np.float64(1.0), (self.length,))


def resolve(description: Description, columns: tuple[str, ...], *, clean: bool = False) -> None:
    """Replace ``schedule`` (a path, or flags that describe equal steps) by a `Chain`.

    Args:
        description: changed in place.
        columns: the columns that the command allows in a schedule.
        clean: whether no step uses the record, so that both runs have the same maps.

    Raises:
        SpecError: a column is missing, given twice (in the file and as a flag), or outside its domain.
    """
    path = description.take("schedule")
    table = _read(path, columns) if path else {}
    for name in columns:
        if name in table and name in description:
            raise SpecError(f"{name} is a column of {path} and also given", "keep one of the two")
    if all(name in description for name in NOISE_SCALES):
        raise SpecError("both noise_std and laplace_scale are given", "give one of the two")
    length = len(next(iter(table.values()))) if table else _count(description)
    if table and description.get("steps", length) != length:
        raise SpecError(f"{path} has {length} steps and --steps says {description['steps']}", "leave out --steps")
    steps = _Steps(description, table, length, str(path or ""))
    if clean:
        chain = _clean(steps)
    else:
        chain = _shifted(steps) if "shift" in columns else _per_record(steps, "displacement" in columns)
    for noise in NOISE_SCALES:
        if noise in table:
            description.put(noise, 1.0, Source.FILE)
    if chain.shift is None and not description.has("step_size"):
        description.put("step_size", float(chain.step_size.max()), Source.FILE)
    description.put("schedule", chain, Source.FILE if path else Source.DERIVED)


def _read(path: str, columns: tuple[str, ...]) -> Table:
    from dpcalc.model.schedule_file import read_schedule

    table = read_schedule(path, columns=columns)
    for name, array in table.items():
        symbol = {"spend": "shift", "probability": "strong_convexity"}.get(name, name)  # any number >= 0
        for end in (array.min(), array.max()):
            try:
                check(symbol, float(end))
            except SpecError as error:
                row = int((array == end).argmax()) + 1
                raise SpecError(f"{path}: step {row}: {error.message}", error.hint) from None
    return table


def _count(description: Description) -> int:
    """Return the number of equal steps."""
    if not description.has("steps"):
        missing = [name for name in ("steps", "shift", "step_size") if name not in description]
        raise SpecError(
            "the number of steps is not known",
            f"give --steps, or --schedule FILE; for example {typed({name: example_of(name) for name in missing})}",
        )
    steps = int(check("steps", description["steps"]))
    if steps > SCHEDULE_STEPS:
        raise SpecError(f"steps is {steps}; at most {SCHEDULE_STEPS} can be described one by one", "use fewer steps")
    return steps


def _shifted(steps: _Steps) -> Chain:
    """Return the chain of maps that differ only by their shifts."""
    if not steps.table and not steps.description.has("contraction"):
        steps.description.put("contraction", 1.0, Source.DEFAULT)
    step_size, noise = steps.column("step_size"), steps.noise()
    shift = _shift(steps.column("shift"), steps.description.get("index"))
    return Chain(
        step_size=step_size, noise=noise, contraction=steps.column("contraction"), shift=shift,
        spend=steps.table.get("spend"), path=steps.path,
    )  # fmt: skip


def _clean(steps: _Steps) -> Chain:
    """Return the chain whose maps are the same in both runs."""
    import numpy as np

    step_size, noise = steps.column("step_size"), steps.noise()
    of_the_loss = steps.description.has("smoothness")
    if of_the_loss and ("contraction" in steps.table or steps.description.has("contraction")):
        raise SpecError("contraction is given and also follows from smoothness", "keep one of the two")
    contraction = _contractions(step_size, steps.description) if of_the_loss else steps.column("contraction")
    return Chain(
        step_size=step_size, noise=noise, contraction=contraction, shift=np.zeros(steps.length), spend=None,
        path=steps.path,
    )  # fmt: skip


def _per_record(steps: _Steps, with_displacements: bool) -> Chain:
    """Return the chain with one step for each record."""
    steps.description.put("records", _records(steps), Source.FILE)
    step_size, noise = steps.column("step_size"), steps.noise()
    if with_displacements:
        return _with_displacements(steps, step_size, noise)
    table = steps.table
    given = table.get("contraction")
    contraction = _contractions(step_size, steps.description) if given is None else given
    return Chain(
        step_size=step_size, noise=noise, contraction=contraction, shift=None, spend=table.get("spend"),
        path=steps.path, lipschitz=given is not None or steps.description.get("loss_class") != LossClass.LIPSCHITZ,
    )  # fmt: skip


def _records(steps: _Steps) -> int:
    if steps.description.get("batch_size", 1) != 1:
        raise SpecError("a schedule is per record; batches of several records are not combined with it",
                        "use `dpcalc shifted` with a shift column")  # fmt: skip
    records = steps.description.get("records", steps.length)
    if records != steps.length:
        raise SpecError(
            f"{steps.path} has {steps.length} steps for {records} records",
            "one step per record, or leave out -n",
        )
    return steps.length


def _with_displacements(steps: _Steps, step_size: NDArray[np.float64], noise: NDArray[np.float64]) -> Chain:
    """Return the chain with each step's displacement and Lipschitz factor, from columns or the loss class."""
    import numpy as np

    beta: Any = steps.description.get("smoothness")
    convexity = steps.description.get("strong_convexity") or 0.0
    loss_class = steps.description.get("loss_class") or default_class(beta, convexity)
    eta, least = step_size * (1.0 + 2.0**-50), lowest_curvature(loss_class, beta, convexity)
    contraction = steps.table.get("contraction")
    derived = contraction is None and beta is not None and loss_class in LIPSCHITZ_MAPS
    if derived and least < 0.0:
        contraction = np.maximum(1.0 - eta * least, eta * beta - 1.0) * (1.0 + 2.0**-50)
    elif derived:
        slowest = 1.0 - step_size * (least * (1.0 - 2.0**-50))
        contraction = np.maximum(slowest, eta * beta - 1.0) + (2.0**-50 if least else 0.0)
    return Chain(
        step_size=step_size, noise=noise, contraction=np.ones(len(step_size)) if contraction is None else contraction,
        shift=None, spend=None, path=steps.path, displacement=_displacements(steps, -least, eta, contraction),
        probability=_probability(steps), lipschitz=contraction is not None,
    )  # fmt: skip


def _displacements(
    steps: _Steps, weak: float, eta: NDArray[np.float64], contraction: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """Return the least factor that the loss class gives for each step (`loss_class`), None if there is none.

    ``weak`` is m if the losses are m-weakly convex, inf if no such number is known.
    """
    import numpy as np

    description = steps.description
    if (column := steps.table.get("displacement")) is not None:
        return column
    if description.has("displacement"):
        return np.broadcast_to(np.float64(description["displacement"]), eta.shape)
    rows = [contraction] if contraction is not None else []
    if description.has("lipschitz", "diameter"):
        spread = eta * (2.0 * description["lipschitz"] / description["diameter"])
        rows.append(1.0 + spread)
        if weak < math.inf:
            rows.append(np.hypot(np.sqrt(1.0 + 2.0 * eta * max(weak, 0.0)), spread))
    if not rows:
        return None
    least: NDArray[np.float64] = np.minimum.reduce(rows) * (1.0 + 2.0**-49)
    dimension = description.get("dimension", 1)
    if dimension > 1 and "laplace_scale" in {*description, *steps.table}:
        least = least * (math.sqrt(dimension) * (1.0 + 2.0**-50))
    exact = (contraction == 1.0) if contraction is not None and dimension == 1 else False
    return np.where(exact & (least <= 1.0 + 2.0**-48), 1.0, least)


def _probability(steps: _Steps) -> NDArray[np.float64] | None:
    """Return the column of probabilities, scaled to add up to at least 1; None if there is none.

    Raises:
        SpecError: it does not add up to 1 within 1e-9.
    """
    law = steps.table.get("probability")
    if law is None:
        return None
    total = math.fsum(law.tolist())
    if abs(total - 1.0) > 1e-9:
        raise SpecError(f"{steps.path}: the column probability adds up to {total:.12g}", "it must add up to 1")
    return law / min(total, 1.0) * (1.0 + 2.0**-50)


def _shift(shift: NDArray[np.float64], index: float | None) -> NDArray[np.float64]:
    """Return the shifts; if an index is given, only the shift of that step is not 0."""
    import numpy as np

    if index is None:
        return shift
    index = int(check("index", index))
    if index > len(shift):
        raise SpecError(f"index {index} is past the last step {len(shift)}", f"use --index between 1 and {len(shift)}")
    single = np.zeros(len(shift))
    single[index - 1] = shift[index - 1]
    return single


def _contractions(step_size: NDArray[np.float64], description: Description) -> NDArray[np.float64]:
    """Return max(|1 - eta_t m|, |1 - eta_t beta|), rounded up; 1 if the losses are only known to be convex."""
    import numpy as np

    beta, m = description.get("smoothness"), description.get("strong_convexity") or 0.0
    if beta is None:
        raise SpecError("smoothness is needed for the contraction of each step",
                        "give --smoothness, or a column contraction")  # fmt: skip
    largest = float(step_size.max())
    if beta > 0.0 and exceeds_two(largest, beta):
        most = shown_below(two_over(beta))
        raise NotApplicable(
            f"step size {plain(largest)} of step {int(step_size.argmax()) + 1} exceeds 2/smoothness = {most}",
            f"keep every step size <= {most}",
        )
    factor = np.maximum(np.abs(1.0 - step_size * m), np.abs(1.0 - step_size * beta))
    if m < 0.0:
        expanding: NDArray[np.float64] = factor * (1.0 + 2.0**-50)
        return expanding
    # Where |1 - eta beta| rounds to 1 it may be above 1; elsewhere a merely convex loss has exactly 1.
    at_edge = step_size * beta > 2.0 - 4e-15
    raised = np.where(at_edge, factor + 2.0**-50, np.minimum(1.0, factor + 2.0**-50))
    result: NDArray[np.float64] = np.where(~at_edge, 1.0, raised) if m == 0.0 else raised
    return result
