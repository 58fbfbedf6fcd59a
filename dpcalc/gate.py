"""Gates: assertions such as ``epsilon<=1`` on the best guarantee of a case."""

from __future__ import annotations

import math
from typing import NamedTuple

from dpcalc.errors import SpecError
from dpcalc.report import Assertion, Case, Result
from dpcalc.solve import DIRECTIONS
from dpcalc.spec.quantities import CHOSEN, RISKS
from dpcalc.spec.symbols import SYMBOLS

_OPERATORS = ("<=", ">=", "==", "<", ">")
_BOUNDED_ABOVE = ("epsilon", "delta", "log_delta", "mu", "rdp", "excess_risk", "empirical_excess_risk")
QUANTITIES = (*_BOUNDED_ABOVE, "bound", *DIRECTIONS)
"""What an assertion may speak of."""


class Gate(NamedTuple):
    """A parsed assertion: ``name operator limit``."""

    text: str
    name: str
    operator: str
    limit: float | str
    log_limit: float | None = None


def split(text: str) -> tuple[str, str, str]:
    """Return the quantity, the operator and the right side of an assertion, e.g. ``("epsilon", "<=", "1")``.

    Raises:
        SpecError: there is no operator, or the quantity is none that can be promised so.
    """
    operator = next((op for op in _OPERATORS if op in text), None)
    if operator is None:
        raise SpecError(f"{text!r} is not an assertion", "write, for example, 'epsilon<=1'")
    name, _, limit = (part.strip() for part in text.partition(operator))
    name = name.replace("-", "_")
    if name == "bound" and operator != "==":
        raise SpecError(f"{text!r}: bound takes == only", "write, for example, 'bound==iteration.pnsgd'")
    if name not in QUANTITIES:
        raise SpecError(f"{text!r}: cannot assert on {name!r}", f"one of {', '.join(QUANTITIES)}")
    if name in _BOUNDED_ABOVE and operator not in ("<=", "<"):
        raise SpecError(
            f"{text!r}: {name} is reported as an upper bound, so only <= and < can be promised", f"write {name}<=..."
        )
    return name, operator, limit


def parse(text: str) -> Gate:
    """Return the gate that ``text`` spells, e.g. ``epsilon<=1`` or ``bound==iteration.pnsgd``.

    Raises:
        SpecError: it does not parse, or asks an upper bound to be large.
    """
    from dpcalc.spec.numbers import parse_log, parse_number

    name, operator, limit = split(text)
    if name == "bound":
        return Gate(text, name, operator, limit)
    if name == "delta":
        log_limit = parse_log(limit)
        return Gate(text, name, operator, math.exp(log_limit) if log_limit < -700.0 else parse_number(limit), log_limit)
    return Gate(text, name, operator, parse_number(limit))


def judge(gate: Gate, case: Case) -> Assertion:
    """Return the verdict of a gate on the best guarantee of a case (of every order); unrounded values are compared.

    Raises:
        SpecError: the case reports no such quantity, or it is of another run than was described.
    """
    best = case.best
    if best is None:
        return Assertion(gate.text, False, "no guarantee", None)
    chosen = [result for result in case.results if result.best]
    if isinstance(gate.limit, str):
        other = next((result.bound for result in chosen if result.bound != gate.limit), None)
        return Assertion(gate.text, other is None, other or gate.limit, None)
    if gate.name in RISKS:
        chosen = [result for result in chosen if result.quantity == gate.name] or chosen
    for result in chosen:
        _refuse_another_run(result, case)
    value = max(quantity(result, gate.name) for result in chosen)
    limit, compared = gate.limit, value
    if gate.log_limit is not None and best.log_delta is not None and min(gate.log_limit, best.log_delta) < -690.0:
        limit, compared = gate.log_limit, best.log_delta
    slack = limit - compared if gate.operator in ("<=", "<") else compared - limit
    passed = {
        "<=": compared <= limit,
        "<": compared < limit,
        ">=": compared >= limit,
        ">": compared > limit,
        "==": compared == limit,
    }[gate.operator]
    return Assertion(gate.text, passed, value, slack)


def _refuse_another_run(result: Result, case: Case) -> None:
    """Raise SpecError where a cost is of a run with other noise or steps than those given."""
    if result.quantity not in RISKS:
        return
    ran = dict(result.details or {})
    if result.epsilon is not None:
        ran.setdefault("noise_std", None)  # chosen for the budget
    other = [name for name in CHOSEN if name in ran and name in case.inputs and case.inputs[name][0] != ran[name]]
    if other:
        raise SpecError(
            f"{result.bound} chooses {', '.join(other)} itself: no gate on it speaks of the run described",
            f"leave out {', '.join(other)}; or ask another command what the run's epsilon is",
        )


def quantity(result: Result, name: str) -> float:
    """Return a quantity of a result.

    Raises:
        SpecError: it reports no such quantity.
    """
    kept = name in Result._fields  # `index` is also a method of every tuple
    value = result.value if result.quantity == name else getattr(result, name) if kept else None
    if value is None:
        known = SYMBOLS[name].help if name in SYMBOLS else name
        raise SpecError(f"this query reports no {name} ({known})", f"it reports {result.quantity}")
    return float(value)
