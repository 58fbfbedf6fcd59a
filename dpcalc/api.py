"""The Python API: each function mirrors a command, takes its parameters as keywords and returns its report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dpcalc.commands import ask, report
from dpcalc.errors import SpecError
from dpcalc.gate import parse
from dpcalc.query import Question
from dpcalc.report import Report


def rdp(
    *,
    algorithm: str = "pnsgd",
    records: int | None = None,
    index: int | None = None,
    batch_size: int | None = None,
    lipschitz: float | None = None,
    smoothness: float | None = None,
    strong_convexity: float | None = None,
    step_size: float | None = None,
    noise_std: float | None = None,
    diameter: float | None = None,
    adjacency: str | None = None,
    schedule: str | None = None,
    epsilon: float | None = None,
    delta: float | str | None = None,
    order: float | Sequence[float] = (),
    solve: str | None = None,
    gates: Sequence[str] = (),
) -> Report:
    """Return what is true of one fixed-order pass of noisy SGD whose iterates stay hidden.

    Of ``epsilon``, ``delta`` and ``noise_std``, what is left out is solved for.

    Args:
        algorithm: ``pnsgd``, ``skip``, ``stop`` or ``local``.
        records, index, batch_size: n, the 1-based position of the differing record (None: the worst), records a step.
        lipschitz, smoothness, strong_convexity: constants of every loss.
        step_size, noise_std: of w - step_size (gradient + N(0, noise_std^2)).
        diameter: of the constraint set, if bounded.
        adjacency: ``replace-one`` (default) or ``null-record``.
        schedule: path of per-step values (CSV, NPY, NPZ, YAML) in place of step_size and noise_std.
        epsilon, delta: the budget; delta may be a string such as "1e-5000".
        order: order or orders of Renyi divergence.
        solve: a parameter to solve for instead, given both epsilon and delta.
        gates: assertions such as ``"epsilon<=1"``.

    Returns:
        A report with one case; ``report.cases[0].best`` is the number to quote.

    Raises:
        SpecError: malformed or incomplete parameters.
        NotApplicable: no theorem covers the run.
        Infeasible: no value of the unknown meets the budget.

    >>> round(rdp(records=100, index=1, lipschitz=1, smoothness=1, step_size=0.5, noise_std=1,
    ...           delta=1e-5).cases[0].best.value, 12)
    0.725521750858
    """
    given = {k: v for k, v in locals().items() if k not in ("epsilon", "delta", "order", "solve", "gates")}
    return _one("rdp", given, epsilon, delta, order, solve, gates)


def shifted(
    *,
    schedule: str | None = None,
    steps: int | None = None,
    index: int | None = None,
    shift: float | None = None,
    contraction: float | None = None,
    step_size: float | None = None,
    noise_std: float | None = None,
    laplace_scale: float | None = None,
    start_distance: float | None = None,
    diameter: float | None = None,
    epsilon: float | None = None,
    delta: float | str | None = None,
    order: float | Sequence[float] = (),
    solve: str | None = None,
    gates: Sequence[str] = (),
) -> Report:
    """Return what the general shifted-divergence theorem proves of a chain of noisy Lipschitz steps.

    Args:
        schedule: path of per-step values (CSV, NPY, NPZ, YAML); what it lacks is taken from the other arguments.
        steps: number of steps T, without a schedule.
        index: the only step at which the two runs' maps differ (None: every step).
        shift: how far apart the two maps can be in a step.
        contraction: Lipschitz factor of a step's map; 0 and > 1 are allowed.
        step_size, noise_std, laplace_scale: the parameter-space noise of a step has scale step_size times noise.
        start_distance, diameter: of the two starting points; of the constraint set.
        epsilon, delta, order, solve, gates: as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.
    """
    given = {k: v for k, v in locals().items() if k not in ("epsilon", "delta", "order", "solve", "gates")}
    return _one("shifted", given, epsilon, delta, order, solve, gates)


def _one(
    command: str,
    given: dict[str, Any],
    epsilon: float | None,
    delta: float | str | None,
    order: float | Sequence[float],
    solve: str | None,
    gates: Sequence[str],
) -> Report:
    orders = (float(order),) if isinstance(order, (int, float)) else tuple(float(a) for a in order)
    value, log_delta = _delta(delta)
    question = Question(epsilon, value, log_delta, orders, solve)
    return report(command, [ask(command, given, question, gates=[parse(text) for text in gates])])


def _delta(delta: float | str | None) -> tuple[float | None, float | None]:
    if delta is None:
        return None, None
    if isinstance(delta, str):
        from dpcalc.spec.numbers import parse_log

        log_delta = parse_log(delta)
        return max(math.exp(log_delta), 5e-324), log_delta
    if not 0.0 < delta < 1.0:
        raise SpecError(f"delta is {delta!r}; it must be a number > 0 and < 1", "1e-6 is a usual choice")
    return float(delta), math.log(delta)
