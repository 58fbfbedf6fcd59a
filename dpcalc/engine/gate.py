"""Gates: assertions such as ``epsilon<=1`` on the best guarantee of a case."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from dpcalc.checked import Assertion
from dpcalc.engine.large_delta import large_delta_gate
from dpcalc.engine.solving.search import DIRECTIONS, HIGHEST
from dpcalc.errors import GateRefused, SpecError
from dpcalc.model.algorithm import Source
from dpcalc.model.parameter import PARAMETERS, meant_by
from dpcalc.model.quantities import ATTACKS, CHOSEN, RISKS, SUFFICIENT, Quantity
from dpcalc.model.question import NO_RISKS, RiskQuestion
from dpcalc.plain_enum import PlainEnum
from dpcalc.report import Case, Result


class Sign(PlainEnum):
    """The comparison of a quantity with its limit."""

    AT_MOST = "<="
    AT_LEAST = ">="
    EQUAL = "=="
    BELOW = "<"
    ABOVE = ">"

    @property
    def strict(self) -> bool:
        """Whether the limit itself does not pass."""
        return self in (Sign.BELOW, Sign.ABOVE)


_OPERATORS: dict[Sign, Callable[[float, float], bool]] = {
    Sign.AT_MOST: operator.le,
    Sign.AT_LEAST: operator.ge,
    Sign.EQUAL: operator.eq,
    Sign.BELOW: operator.lt,
    Sign.ABOVE: operator.gt,
}
_UPPER, _LOWER = (Sign.AT_MOST, Sign.BELOW), (Sign.AT_LEAST, Sign.ABOVE)
_BOUNDED_ABOVE = ("epsilon", "delta", "log_delta", "mu", "rdp", "rho", "pure", "excess_risk", "empirical_excess_risk")
BOUND = "bound"
_EXAMPLES = {"fpr": "0.01", "prior": "0.5", "baseline": "0.001"}
QUANTITIES = (*_BOUNDED_ABOVE, BOUND, *ATTACKS, *DIRECTIONS, *SUFFICIENT)
"""The quantities of assertions."""


class Gate(NamedTuple):
    """A parsed assertion: ``name sign limit``."""

    text: str
    name: str
    sign: Sign
    limit: float | str
    log_limit: float | None = None
    at: float | None = None

    @property
    def of_attack(self) -> bool:
        """Whether it is about attacks; ``at`` is then the rate or probability after @."""
        return self.name in ATTACKS

    @property
    def at_most(self) -> bool:
        """Whether the limit is an upper one."""
        return self.sign in _UPPER


def split(text: str) -> tuple[str, Sign, str]:
    """Return the quantity, the sign and the right side of an assertion, e.g. ``("epsilon", "<=", "1")``.

    Raises:
        SpecError: there is no sign, or the quantity cannot have such a limit.
    """
    sign = next((sign for sign in Sign if sign in text), None)
    if sign is None:
        raise SpecError(f"{text!r} is not an assertion", "write, for example, 'epsilon<=1'")
    name, _, limit = (part.strip() for part in text.partition(sign))
    name = name.replace("-", "_")
    base, _, at = name.partition("@")
    if base not in QUANTITIES or (at and base not in ATTACKS):
        from dpcalc.files.place import near

        meant = meant_by(base, QUANTITIES)
        hint = f"did you mean {meant}?" if meant else near(base, QUANTITIES)
        raise SpecError(f"{text!r}: cannot assert on {name!r}", hint)
    if bool(ATTACKS.get(base)) != bool(at):
        example = f"{base}@{_EXAMPLES[ATTACKS[base]]}" if ATTACKS[base] else base
        raise SpecError(f"{text!r}: what is {name} asked at?", f"write, for example, '{example}<=0.1'")
    _refuse_sign(text, base, sign)
    return name, sign, limit


def _refuse_sign(text: str, name: str, sign: Sign) -> None:
    """Raise SpecError if the quantity cannot have such a limit."""
    if name == BOUND and sign != Sign.EQUAL:
        raise SpecError(f"{text!r}: bound takes == only", "write, for example, 'bound==iteration.pnsgd'")
    if (name in _BOUNDED_ABOVE or name in ATTACKS) and sign not in _UPPER:
        raise SpecError(
            f"{text!r}: {name} is reported as an upper bound, so only <= and < can be promised", f"write {name}<=..."
        )
    if name in SUFFICIENT and sign in _UPPER:
        raise SpecError(
            f"{text!r}: {name} is the most that is enough, so only >= and > can be promised", f"write {name}>=..."
        )
    if name in DIRECTIONS and sign != Sign.EQUAL:
        meaning, allowed = ("enough", _UPPER) if DIRECTIONS[name].more_is_private else ("allowed", _LOWER)
        if sign not in allowed:
            why = f"the answer for {name} says that much is {meaning}"
            raise SpecError(
                f"{text!r}: {why}, so only {allowed[0]} and {allowed[1]} can be promised",
                f"write {name}{allowed[0]}...",
            )


def parse(text: str) -> Gate:
    """Parse a gate, e.g. ``epsilon<=1`` or ``bound==iteration.pnsgd``.

    Raises:
        SpecError: it does not parse, or asks an upper bound to be large.
    """
    from dpcalc.model.numbers import parse_log, parse_number
    from dpcalc.model.parameter import check

    name, sign, limit = split(text)
    if name == BOUND:
        return Gate(text, name, sign, limit)
    if name == Quantity.DELTA:
        log_limit = parse_log(limit)
        return Gate(text, name, sign, math.exp(log_limit) if log_limit < -700.0 else parse_number(limit), log_limit)
    base, _, at = name.partition("@")
    rate = parse_number(at) if at else None
    if rate is not None:
        check(ATTACKS[base], rate)
    return Gate(text, base, sign, parse_number(limit), at=rate)


def risks_of(gates: Iterable[Gate], asked: RiskQuestion | None = None) -> RiskQuestion | None:
    """Return the question about attacks, from ``asked`` and the gates; None if there is none."""
    spoken = [(gate.name, gate.at) for gate in gates if gate.of_attack]
    return asked if not spoken else (asked or NO_RISKS).adding(spoken)


def judge(gate: Gate, case: Case) -> Assertion:
    """Return the verdict of a gate on the best guarantee of a case (of every order); unrounded values are compared.

    Raises:
        GateRefused: the quantity was given, or no value of it could fail.
        SpecError: the case reports no such quantity, or it belongs to another run than described.
    """
    chosen = [result for result in case.results if result.best]
    if not chosen:
        return Assertion(gate.text, False, "no guarantee", None)
    best = chosen[0]
    if isinstance(gate.limit, str):
        other = next((result.bound for result in chosen if result.bound != gate.limit), None)
        return Assertion(gate.text, other is None, other or gate.limit, None)
    if gate.of_attack:
        return _judge_attack(gate, case)
    if gate.name in RISKS:
        chosen = [result for result in chosen if result.quantity == gate.name] or chosen
    for result in chosen:
        _refuse_another_run(result, case)
        _refuse_unproved(gate, result)
    value = max(gated_quantity(result, gate.name, case) for result in chosen)
    refuse_vacuous(gate)
    limit, compared = gate.limit, value
    if gate.log_limit is not None and best.log_delta is not None and min(gate.log_limit, best.log_delta) < -690.0:
        limit, compared = gate.log_limit, best.log_delta
    slack = limit - compared if gate.at_most else compared - limit
    return Assertion(gate.text, _OPERATORS[gate.sign](compared, limit), value, slack)


def _judge_attack(gate: Gate, case: Case) -> Assertion:
    """Return the verdict of a gate on attacks.

    Raises:
        GateRefused: every probability keeps the limit.
        SpecError: the answer has no such number.
    """
    refuse_vacuous(gate)
    value = case.risk_value(gate.name, gate.at)
    if value is None:
        raise SpecError(f"{gate.text!r}: this answer has no {gate.name}", "ask a query about one run")
    assert not isinstance(gate.limit, str)
    return Assertion(gate.text, _OPERATORS[gate.sign](value, gate.limit), value, gate.limit - value)


def _refuse_another_run(result: Result, case: Case) -> None:
    """Raise SpecError if a cost belongs to a run with other noise or steps than given."""
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


def _refuse_unproved(gate: Gate, result: Result) -> None:
    """Raise GateRefused if nothing is proved at the limit itself, as the range of the answer ends before.

    ``step_size <= 2`` is read as: a step size of 2 is enough. A limit below the range fails.
    """
    holds = result.details.get("holds") if result.details and result.quantity == gate.name else None
    if holds is None or isinstance(gate.limit, str) or gate.limit <= holds["to"]:
        return
    only = f"{gate.name} = {holds['from']!r} alone"
    if holds["from"] < holds["to"]:
        only = f"{gate.name} from {holds['from']!r} to {holds['end']} = {holds['to']!r}"
    raise GateRefused(
        f"{gate.text!r}: the answer is proved for {only}",
        f"a limit in this range, or give {PARAMETERS[gate.name].flag} and assert on epsilon",
    )


def refuse_vacuous(gate: Gate) -> None:
    """Raise GateRefused if every possible answer keeps the limit: every probability, or the whole search range."""
    if isinstance(gate.limit, str) or gate.sign == Sign.EQUAL:
        return
    least, most = _ends(gate.name)
    if gate.at_most and gate.limit >= most:
        raise GateRefused(f"{gate.text!r} cannot fail: {gate.name} is never above {most:g}", "give a smaller limit")
    if not gate.at_most and (gate.limit < least or (gate.limit == least and gate.sign == Sign.AT_LEAST)):
        raise GateRefused(f"{gate.text!r} cannot fail: {gate.name} is never below {least:g}", "give a larger limit")


def _ends(name: str) -> tuple[float, float]:
    """Return the least and the largest value that an answer can have, or that is meaningful."""
    direction = DIRECTIONS.get(name)
    return (direction.low, direction.high) if direction is not None else (0.0, _MOST.get(name, HIGHEST))


_MOST = {"delta": 1.0, "log_delta": 0.0, **dict.fromkeys(ATTACKS, 1.0)}
"""The largest value of an answer, if it is not `HIGHEST`."""


def gated_quantity(result: Result, name: str, case: Case) -> float:
    """Return a quantity of a result for a gate.

    Raises:
        GateRefused: it was given, or follows from given values.
        SpecError: the result reports no such quantity.
    """
    typed = "delta" if name == "log_delta" else name
    if result.quantity not in (name, typed) and typed in case.inputs:
        value, source = case.inputs[typed]
        how = "follows from what is given" if source in (Source.DERIVED, Source.LOSS) else "is given"
        raise GateRefused(
            f"{typed} {how} ({value}): this query finds {result.quantity}", f"assert on {result.quantity} instead"
        )
    if name == Quantity.MU and result.quantity in DIRECTIONS:
        raise GateRefused(
            f"mu follows from the budget given: this query finds {result.quantity}",
            f"assert on {result.quantity} instead",
        )
    return quantity(result, name)


def quantity(result: Result, name: str) -> float:
    """Return a quantity of a result.

    Raises:
        SpecError: it reports no such quantity.
    """
    is_field = name in Result._fields  # `index` is also a method of every tuple
    value = result.value if result.quantity == name else getattr(result, name) if is_field else None
    if value is None:
        meaning = PARAMETERS[name].help if name in PARAMETERS else name
        raise SpecError(f"this query reports no {name} ({meaning})", f"it reports {result.quantity}")
    return float(value)


def judged(gates: Sequence[Gate] | None, case: Case) -> tuple[Assertion, ...]:
    """Return the verdict on every gate; one more fails if delta is so large that the others are meaningless.

    Args:
        gates: asked for; None if the case is judged elsewhere.
        case: with the gates that its question implies.

    Raises:
        GateRefused, SpecError: as `dpcalc.engine.gate.judge`; or the noise of the case has two readings.
    """
    if gates is None or not (gates or case.assertions):
        return case.assertions
    from dpcalc.engine.advice.missing import refuse_misread

    refuse_misread(case)
    return (*case.assertions, *(judge(gate, case) for gate in gates), *large_delta_gate(case))
