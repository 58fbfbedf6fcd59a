"""One case: the bound's value against the ball that its definition gives, for both readings of the inputs."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from flint import arb

from dpcalc.certify.guarantee import Gdp, Profile
from dpcalc.certify.numerics.balls import OutOfReach, Undecided, precision
from dpcalc.certify.numerics.sums import BELOW, PROVED, UNDECIDED, Enclosure, enclosed
from dpcalc.certify.risk.costs import PRICES, Price
from dpcalc.certify.runs.run import RunInputs
from dpcalc.certify.table import ROUNDING, Definition, definitions
from dpcalc.errors import Disproved, DpcalcError
from dpcalc.notions.conversions import Risk
from dpcalc.theorems.record import all_bounds
from tests.formulas import QUESTIONS, number, run_of
from tests.soundness import costs, front
from tests.soundness.conversions import CONVERSIONS, Conversion
from tests.soundness.generate import Case

ABOVE, FLOOR, REFUSED, UNREACHED = "above slack", "above floor", "refused", "out of reach"
OUTCOMES = (PROVED, FLOOR, ABOVE, UNDECIDED, REFUSED, UNREACHED, BELOW)
CAP = 2048
"""Bits at which a comparison is given up as undecided."""


class Verdict(NamedTuple):
    """How a case came out: one of `OUTCOMES`; how far above the truth, relatively; the reported value and the truth."""

    outcome: str
    excess: float = 0.0
    reported: float = math.nan
    truth: str = ""


def judged(case: Case) -> Verdict:
    """Return the verdict on a case: the worst of both readings of the inputs."""
    if case.subject.startswith("ask."):
        return _asked(case.subject.removeprefix("ask."), case.values)
    if case.subject in PRICES:
        return _priced(case)
    if case.subject in CONVERSIONS:
        return _converted(CONVERSIONS[case.subject], case.values)
    bound, definition = all_bounds()[case.subject], definitions()[case.subject]
    asked = {name: case.values[name] for name in QUESTIONS if name in case.values}
    run = {name: value for name, value in case.values.items() if name not in QUESTIONS}
    try:
        proved = bound.prove(run_of(run))
        reported = number(proved, **asked)
    except DpcalcError:
        return Verdict(REFUSED)
    values = {**case.values, **found(proved, asked)}
    judgement = worst(verdict(definition, values, reported, typed) for typed in (False, True))
    if judgement.outcome == ABOVE and any(
        verdict(definition, moved, reported, False).outcome != ABOVE for moved in _nudged(values)
    ):
        return judgement._replace(outcome=PROVED, excess=0.0)
    return judgement


def found(proved: Any, asked: Mapping[str, float]) -> dict[str, Any]:
    """Return the certificate of an answer as JSON, where a search left one."""
    if getattr(proved, "certificate", None) is None:
        return {}
    certificate = proved.certificate(asked["epsilon"] if "epsilon" in asked else asked["order"])
    return {} if certificate is None else {"certificate": json.loads(json.dumps(certificate.as_json()))}


def _asked(algorithm: str, values: dict[str, Any]) -> Verdict:
    """Return what came of a question asked through the front door: the worst of its guarantees."""
    try:
        proved, left = front.answered(algorithm, values)
    except Disproved as error:
        return Verdict(BELOW, 0.0, math.nan, error.report.splitlines()[-1])
    except DpcalcError:
        return Verdict(REFUSED)
    return Verdict(UNREACHED if left and not proved else PROVED)


def _priced(case: Case) -> Verdict:
    """Return whether a risk is at or above its formula at the run reported, and the noise of that run suffices."""
    price = PRICES[case.subject]
    try:
        cost = costs.priced(case.subject, case.values)
    except (DpcalcError, OverflowError):
        return Verdict(REFUSED)
    if not costs.speaks(cost):
        return Verdict(REFUSED)
    try:
        return worst(one for typed in (False, True) for one in _cost_verdicts(price, case, cost, typed))
    except OutOfReach:
        return Verdict(UNREACHED)


def _cost_verdicts(price: Price, case: Case, cost: Risk, typed: bool) -> Iterator[Verdict]:
    """Yield the verdicts on the risk, and on the noise that comes with it, in one reading of the inputs."""
    v = costs.inputs_of(case.values, cost, typed)
    enclosure = enclosed(lambda: price.risk(v), cost.excess_risk, cap=CAP)
    yield _placed(enclosure, cost.excess_risk, False, price.slack, False, False)
    private = price.private
    if private is not None and "log_delta" in case.values:
        log_delta = enclosed(lambda: private(v), case.values["log_delta"], cap=CAP)
        yield Verdict(log_delta.place, 0.0, cost.noise_std or 0.0, "ln delta in " + _shown(log_delta))


def _nudged(values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield values moved by some units in the last place to where less is private: what rounding must provide for.

    Where 1 - step_size smoothness cancels, or a sum of 1e15 steps turns on it, that is more than any fixed slack.
    """
    for longer in (math.inf, 0.0):
        moved = dict(values)
        for name, value in values.items():
            if not isinstance(value, float) or value == 0.0 or name in ("order", "log_delta"):
                continue
            towards = math.inf if name in _LESS_PRIVATE else longer if name == "step_size" else 0.0
            moved[name] = value
            for _ in range(16):
                moved[name] = math.nextafter(moved[name], towards)
        yield moved


_LESS_PRIVATE = (
    "sensitivity", "lipschitz", "smoothness", "diameter", "displacement", "radius", "start_distance", "contraction",
    "epoch_epsilon",
    "epoch_delta",
)  # fmt: skip


def verdict(definition: Definition, values: Mapping[str, Any], reported: float, typed: bool) -> Verdict:
    """Return how ``reported`` compares with the definition, for one reading of the inputs."""
    inputs = RunInputs(values, typed, exactly=QUESTIONS)
    logarithm = issubclass(definition.gives, Profile) and definition.gives is not Gdp

    def formula() -> arb:
        value = definition.formula(inputs)
        return value.min(arb(0)) if logarithm else value

    if logarithm and reported >= 0.0 and not definition.lower:
        return Verdict(PROVED, 0.0, reported, "at most 0")
    try:
        enclosure = enclosed(formula, reported, lower=definition.lower, cap=CAP)
    except OutOfReach:
        return Verdict(UNREACHED, reported=reported)
    except Undecided:
        return Verdict(UNDECIDED, reported=reported)
    if math.isnan(reported):
        return Verdict(BELOW, math.nan, reported, _shown(enclosure))
    return _placed(enclosure, reported, logarithm, definition.slack, definition.floor, definition.lower)


def _placed(enclosure: Enclosure, reported: float, logarithm: bool, slack: float, floor: bool, lower: bool) -> Verdict:
    excess = enclosure.excess(reported, logarithm) * (-1.0 if lower else 1.0)
    judgement = Verdict(enclosure.place, excess, reported, _shown(enclosure))
    if enclosure.place != PROVED:
        return judgement
    if floor:
        return judgement._replace(outcome=FLOOR)
    # Among subnormal numbers, and past what doubles can distinguish, a relative excess says nothing.
    tiny = reported < -1e190 if logarithm else abs(reported) < 1e-150
    if tiny or not math.isfinite(reported):
        return judgement._replace(excess=0.0)
    loose = excess > slack + ROUNDING
    return judgement._replace(outcome=ABOVE) if loose else judgement


def _shown(enclosure: Enclosure) -> str:
    low, high = enclosure.ends(20)
    return f"[{low}, {high}]"


_RANK = {outcome: rank for rank, outcome in enumerate((PROVED, FLOOR, ABOVE, REFUSED, UNREACHED, UNDECIDED, BELOW))}


def worst(verdicts: Any) -> Verdict:
    """Return the verdict that says the worst, and of these the one with the largest excess."""
    every = list(verdicts)
    comparable = [v for v in every if v.outcome != UNREACHED] or every
    worst_one: Verdict = max(
        comparable, key=lambda v: (_RANK[v.outcome], -v.excess if v.outcome == BELOW else v.excess)
    )
    return worst_one


# --- conversions -----------------------------------------------------------------------------------------------------


def _converted(conversion: Conversion, values: Mapping[str, Any]) -> Verdict:
    reported = conversion.function(**values)
    inputs = RunInputs(values, typed=False)
    if conversion.logarithm and reported >= 0.0:
        return Verdict(PROVED, 0.0, reported, "at most 0")
    if conversion.formula is not None:
        formula = conversion.formula
        try:
            enclosure = enclosed(lambda: formula(inputs), reported, cap=CAP)
        except Undecided:
            return Verdict(UNDECIDED, reported=reported)
        return _placed(enclosure, reported, conversion.logarithm, conversion.slack, False, False)
    return _inverted(conversion, inputs, reported)


def _inverted(conversion: Conversion, inputs: RunInputs, reported: float) -> Verdict:
    """Return whether the value passes the test that makes it safe, and a value a little less does not."""
    assert conversion.holds is not None
    if math.isinf(reported) or (reported == 0.0 and conversion.falling):
        return Verdict(PROVED, 0.0, reported)
    holds = conversion.holds
    passes = decided(lambda: holds(inputs, arb(reported)))
    if passes is not True:
        return Verdict(BELOW if passes is False else UNDECIDED, 0.0, reported, "the test fails")
    if reported == 0.0 or abs(reported) < 1e-290 or math.isinf(conversion.slack):
        return Verdict(PROVED, 0.0, reported)
    with precision(CAP):
        nearer = arb(reported) * (1 + arb(conversion.slack) * (1 if conversion.falling else -1))
    still = decided(lambda: holds(inputs, nearer))
    return Verdict(ABOVE if still else PROVED, conversion.slack, reported, "the test still passes" if still else "")


def decided(test: Callable[[], bool]) -> bool | None:
    """Return what a test says at the precision it needs; None where it is open even at the cap."""
    bits = 128
    while bits <= CAP:
        with precision(bits):
            try:
                return test()
            except Undecided:
                bits *= 2
    return None
