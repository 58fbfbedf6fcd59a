"""A chain of noisy Lipschitz steps, described step by step: what the general shifted-divergence theorem speaks of."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpcalc.errors import NotApplicable, SpecError
from dpcalc.spec.loss import default_class, exceeds_two
from dpcalc.spec.symbols import check

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_STEPS = 20_000_000


class Chain:
    """Arrays over the steps t = 1..T, all of shape (T,).

    Attributes:
        step_size: eta_t > 0.
        noise: scale of Z_t relative to the run's ``noise_std`` or ``laplace_scale``, > 0 (1 where that is the scale).
        contraction: Lipschitz factor c_t >= 0 of the step's map.
        shift: how far apart the two maps can be, s_t >= 0; None where a sensitivity and an index say it.
        spend: the user's own allocation a_t >= 0, or None.
        displacement: how far apart a step leaves two points of the domain, over its diameter; None where unknown.
        probability: of the record falling on the step, or of stopping after it; None where uniform.
        lipschitz: whether the maps are Lipschitz with ``contraction``.
        path: the file this came from, or "".
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
    def scale(self) -> NDArray[np.float64]:
        """Parameter-space noise eta_t noise_t of each step, rounded down."""
        scaled: NDArray[np.float64] = self.step_size * self.noise * (1.0 - 2.0**-51)
        return scaled

    @functools.cached_property
    def variance(self) -> NDArray[np.float64]:
        """Square of `scale`, rounded down."""
        squared: NDArray[np.float64] = self.scale * self.scale * (1.0 - 2.0**-52)
        return squared


def resolve(
    command: str, given: dict[str, Any], sources: Mapping[str, str], columns: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the parameters with ``schedule`` (a path, or flags that describe equal steps) replaced by a `Chain`.

    Raises:
        SpecError: a column is missing, given twice (in the file and as a flag), or outside its domain.
    """
    values, origin = dict(given), dict(sources)
    path = values.pop("schedule", None)
    table = _read(path, columns, values) if path else {}
    for name in columns:
        if name in table and values.get(name) is not None:
            raise SpecError(f"{name} is a column of {path} and also given", "keep one of the two")
    if values.get("noise_std") is not None and values.get("laplace_scale") is not None:
        raise SpecError("both noise_std and laplace_scale are given", "give one of the two")
    length = len(next(iter(table.values()))) if table else _steps(values)
    if table and values.get("steps") not in (None, length):
        raise SpecError(f"{path} has {length} steps and --steps says {values['steps']}", "leave out --steps")
    if command == "shifted" and not table and values.get("contraction") is None:
        values["contraction"], origin["contraction"] = 1.0, "default"
    if command != "shifted":
        values["records"], origin["records"] = _records(values, length, path), "file"
    chain = _assemble(command, values, table, length, str(path or ""))
    for noise in ("noise_std", "laplace_scale"):
        if noise in table:
            values[noise], origin[noise] = 1.0, "file"
    if command != "shifted":
        values["step_size"] = values.get("step_size", float(chain.step_size.max()))
        origin.setdefault("step_size", "file")
    values["schedule"], origin["schedule"] = chain, "file" if path else "derived"
    return values, origin


def _read(path: str, columns: tuple[str, ...], values: Mapping[str, Any]) -> dict[str, Any]:
    from dpcalc.spec.schedule import read_schedule

    table: dict[str, Any] = dict(read_schedule(path, columns=columns))
    for name, array in table.items():
        symbol = {"spend": "shift", "probability": "strong_convexity"}.get(name, name)  # any number >= 0
        for end in (array.min(), array.max()):
            try:
                check(symbol, float(end))
            except SpecError as error:
                row = int((array == end).argmax()) + 1
                raise SpecError(f"{path}: step {row}: {error.message}", error.hint) from None
    return table


def _steps(values: Mapping[str, Any]) -> int:
    steps = values.get("steps")
    if steps is None:
        raise SpecError("the number of steps is not known", "give --steps, or --schedule FILE")
    steps = int(check("steps", steps))
    if steps > MAX_STEPS:
        raise SpecError(f"steps is {steps}; at most {MAX_STEPS} can be described one by one", "use fewer steps")
    return steps


def _records(values: Mapping[str, Any], length: int, path: str | None) -> int:
    batch = values.get("batch_size")
    if batch not in (None, 1):
        raise SpecError("a schedule is per record; batches of several records are not combined with it",
                        "use `dpcalc shifted` with a shift column")  # fmt: skip
    records = values.get("records")
    if records is not None and records != length:
        raise SpecError(f"{path} has {length} steps for {records} records", "one step per record, or leave out -n")
    return length


def _assemble(command: str, values: Mapping[str, Any], table: Mapping[str, Any], length: int, path: str) -> Chain:
    import numpy as np

    def column(name: str, default: float | None = None) -> NDArray[np.float64]:
        if name in table:
            found: NDArray[np.float64] = table[name]
            return found
        value = values.get(name, default)
        if value is None:
            raise SpecError(f"{name} is needed for every step", f"give --{name.replace('_', '-')}, or a column {name}")
        return np.broadcast_to(np.float64(check(name, value)), (length,))

    step_size = column("step_size")
    noise = next((table[name] for name in ("noise_std", "laplace_scale") if name in table), None)
    if "noise_std" in table and "laplace_scale" in table:
        raise SpecError(f"{path} has both noise_std and laplace_scale", "keep one of the two columns")
    if noise is None:
        noise = np.broadcast_to(np.float64(1.0), (length,))
    shift = None
    if command == "shifted":
        shift = _shift(column("shift"), values.get("index"), "shift" in table)
        contraction = column("contraction")
    elif command != "rdp":
        return _with_displacements(values, table, step_size, noise, path)
    else:
        contraction = table["contraction"] if "contraction" in table else _contractions(step_size, values)
    return Chain(
        step_size=step_size, noise=noise, contraction=contraction, shift=shift, spend=table.get("spend"), path=path
    )


def _with_displacements(
    values: Mapping[str, Any],
    table: Mapping[str, Any],
    step_size: NDArray[np.float64],
    noise: NDArray[np.float64],
    path: str,
) -> Chain:
    """Return the chain with the displacement and the Lipschitz factor of each step, from columns or the loss class."""
    import numpy as np

    beta = values.get("smoothness")
    known = values.get("loss_class") or default_class(beta)
    eta = step_size * (1.0 + 2.0**-50)
    contraction = None
    if "contraction" in table:
        contraction = table["contraction"]
    elif beta is not None and known == "smooth":
        contraction = (1.0 + eta * beta) * (1.0 + 2.0**-50)
    elif beta is not None and known == "convex-smooth":
        m = values.get("strong_convexity") or 0.0
        contraction = np.maximum(1.0 - step_size * (m * (1.0 - 2.0**-50)), eta * beta - 1.0) + (2.0**-50 if m else 0.0)
    lipschitz = contraction is not None
    if contraction is None:
        contraction = np.ones(len(step_size))
    displacement = _displacements(values, table, known, eta, contraction if lipschitz else None)
    return Chain(
        step_size=step_size, noise=noise, contraction=contraction, shift=None, spend=None, path=path,
        displacement=displacement, probability=_probability(table, path), lipschitz=lipschitz,
    )  # fmt: skip


def _displacements(
    values: Mapping[str, Any], table: Mapping[str, Any], known: str, eta: Any, contraction: Any
) -> NDArray[np.float64] | None:
    """Return the least factor that the loss class gives for each step (`dpcalc.spec.loss`), None where none does."""
    import numpy as np

    if "displacement" in table:
        found: NDArray[np.float64] = table["displacement"]
        return found
    if values.get("displacement") is not None:
        return np.broadcast_to(np.float64(values["displacement"]), eta.shape)
    rows = [contraction] if contraction is not None else []
    if values.get("lipschitz") is not None and values.get("diameter") is not None:
        spread = eta * (2.0 * values["lipschitz"] / values["diameter"])
        rows.append(1.0 + spread)
        if known.startswith("convex"):
            rows.append(np.hypot(1.0, spread))
    if not rows:
        return None
    least: NDArray[np.float64] = np.minimum.reduce(rows) * (1.0 + 2.0**-49)
    if values.get("dimension", 1) > 1 and "laplace_scale" in {*values, *table}:
        least = least * (math.sqrt(values["dimension"]) * (1.0 + 2.0**-50))
    exact = (contraction == 1.0) if contraction is not None and values.get("dimension", 1) == 1 else False
    return np.where(exact & (least <= 1.0 + 2.0**-48), 1.0, least)


def _probability(table: Mapping[str, Any], path: str) -> NDArray[np.float64] | None:
    """Return the column of probabilities, scaled to add up to at least 1; None where there is none.

    Raises:
        SpecError: it does not add up to 1 within 1e-9.
    """
    if "probability" not in table:
        return None
    law: NDArray[np.float64] = table["probability"]
    total = math.fsum(law.tolist())
    if abs(total - 1.0) > 1e-9:
        raise SpecError(f"{path}: the column probability adds up to {total:.12g}", "it must add up to 1")
    return law / min(total, 1.0) * (1.0 + 2.0**-50)


def _shift(shift: NDArray[np.float64], index: Any, from_file: bool) -> NDArray[np.float64]:
    """Return the shifts, all but that of step ``index`` set to 0 where an index is given."""
    import numpy as np

    if index is None:
        return shift
    index = int(check("index", index))
    if index > len(shift):
        raise SpecError(f"index {index} is past the last step {len(shift)}", f"use --index between 1 and {len(shift)}")
    single = np.zeros(len(shift))
    single[index - 1] = shift[index - 1]
    return single


def _contractions(step_size: NDArray[np.float64], values: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return max(|1 - eta_t m|, |1 - eta_t beta|), rounded up; 1 where only smoothness is known."""
    import numpy as np

    beta, m = values.get("smoothness"), values.get("strong_convexity") or 0.0
    if beta is None:
        raise SpecError("smoothness is needed for the contraction of each step",
                        "give --smoothness, or a column contraction")  # fmt: skip
    largest = float(step_size.max())
    if beta > 0.0 and exceeds_two(largest, beta):
        raise NotApplicable(
            f"step size {largest:g} of step {int(step_size.argmax()) + 1} exceeds 2/smoothness = {2.0 / beta:g}",
            f"keep every step size <= {2.0 / beta:g}",
        )
    factor = np.maximum(np.abs(1.0 - step_size * m), np.abs(1.0 - step_size * beta))
    # Where |1 - eta beta| is 1 to rounding it may be above; elsewhere a merely convex loss has exactly 1.
    at_edge = step_size * beta > 2.0 - 4e-15
    raised = np.where(at_edge, factor + 2.0**-50, np.minimum(1.0, factor + 2.0**-50))
    result: NDArray[np.float64] = np.where(~at_edge, 1.0, raised) if m == 0.0 else raised
    return result
