"""What is guaranteed of a run as it is executed, in floating point: the added delta is part of the budget.

The noise is sought for a delta that is smaller by what is set aside for rounding; a guarantee that the rounding cannot
keep within that is left out, and the case says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dpcalc.engine.ask import implied_gate, judged
from dpcalc.engine.attack.guess import guess_of_answer
from dpcalc.engine.gate import Gate
from dpcalc.engine.inputs import inputs_of
from dpcalc.engine.question import Question
from dpcalc.engine.rows import ranked
from dpcalc.errors import GateRefused, MissingParameter, NotApplicable
from dpcalc.model.loss import Loss
from dpcalc.model.quantities import Kind, Quantity
from dpcalc.model.run import Run
from dpcalc.notes import Rounded
from dpcalc.numerics.floats import down, up
from dpcalc.report import Case, Obstacle, Result
from dpcalc.theorems.record import lookup
from dpcalc.training.rule.accounting import account, accounted_run, described_run
from dpcalc.training.rule.draft import Draft
from dpcalc.training.run.plan import Plan, plan
from dpcalc.training.run.rounding import Cost, Rounding, assumption, stretch, sum_error, sum_miss
from dpcalc.training.run.rounding_errors import output_rounding

_SHARE = 2.0**-14  # of delta, set aside for rounding at first
_DEAR = 2.0**-4  # of delta: past this, a little epsilon is set aside instead, where that is enough
_MOST = 0.5  # of delta
_MOST_EPSILON = 0.01  # of epsilon
_LARGEST_HINTED = 100  # an epsilon beyond which rounding would cost too much in any run
_MOST_HINTED = 0.1  # a delta that nobody should be told to give is larger
_ROOM = 1.0625
_TRIES = 8
ROUNDED = "released numbers are rounded to a grid that does not depend on the records"


class Guaranteed(NamedTuple):
    """A case, and the run that its best guarantee is of.

    Attributes:
        case: what is guaranteed of the released numbers.
        run, plan, rounding: what is executed, and how it is rounded.
    """

    case: Case
    run: Run
    plan: Plan
    rounding: Rounding


class Carried(NamedTuple):
    """What is executed where a row is the guarantee: the run with its noise, and the plan of it."""

    run: Run
    plan: Plan


class _Ways(NamedTuple):
    """How a run is accounted and carried out.

    Attributes:
        account: from a budget to the case of the run on real numbers.
        carried: from a row of it to what is executed.
        loss: what is minimised; None of sums of products, which are accounted without one.
    """

    account: Callable[[Question], Case]
    carried: Callable[[Result], Carried]
    loss: Loss | None


class _Spare(NamedTuple):
    """What is set aside for rounding, of epsilon and of delta."""

    epsilon: float
    delta: float


class _Needs(Exception):
    """More has to be set aside for rounding."""

    def __init__(self, spare: _Spare) -> None:
        super().__init__()
        self.spare = spare


def guarantee(
    draft: Draft, question: Question, gates: Sequence[Gate], shape: tuple[int, int], *,
    account: Callable[[Question], Case] | None = None, carried: Callable[[Result], Carried] | None = None,
    loss: Loss | None = None,
) -> Guaranteed:  # fmt: skip
    """Return what is guaranteed of a run whose released numbers are rounded.

    Args:
        draft: the run; its noise may be sought.
        question: the budget.
        gates: parsed assertions.
        shape: the numbers of records and of columns.
        account, carried, loss: of a run that is not accounted as it is carried out; by default those of the draft.

    Raises:
        MissingParameter: neither epsilon nor delta is given.
        GateRefused: a gate speaks of attacks.
        SpecError, NotApplicable, Infeasible: see `account`; or no guarantee leaves room for rounding.
    """
    if question.epsilon is None and question.log_delta is None:
        raise MissingParameter(
            "released numbers are rounded, which adds to delta: no guarantee of them is one of mu or of orders alone",
            "give --epsilon or --delta; for example --delta 1e-5",
        )
    for gate in gates:
        if gate.of_attack:
            raise GateRefused(
                f"{gate.text!r} speaks of the run on real numbers, and what is released is rounded",
                "ask `dpcalc compare` with the same run",
            )
    ways = _Ways(account or _accounting(draft), carried or _carrying(draft, shape), loss or _loss_of(draft))
    spare = _Spare(0.0, 0.0 if question.log_delta is None else _SHARE * _delta(question))
    for _ in range(_TRIES):
        try:
            return _with_spare(ways, question, gates, spare)
        except _Needs as needs:
            spare = needs.spare
    raise _no_room(question, spare.delta)


def _accounting(draft: Draft) -> Callable[[Question], Case]:
    return lambda question: account(draft, question)


def _carrying(draft: Draft, shape: tuple[int, int]) -> Callable[[Result], Carried]:
    def carried(row: Result) -> Carried:
        run = accounted_run(draft, row)
        return Carried(run, plan(run, *shape))

    return carried


def _with_spare(ways: _Ways, question: Question, gates: Sequence[Gate], spare: _Spare) -> Guaranteed:
    """Return the case where so much of the budget is set aside.

    Raises:
        _Needs: it is too little for the best guarantee.
    """
    case = ways.account(_lessened(question, spare))
    rows: list[Result] = []
    obstacles, errors = list(case.obstacles), []
    chosen: dict[str, tuple[Run, Plan, Rounding]] = {}
    for row in case.results:
        if row.kind is Kind.LOWER:
            continue  # of the run on real numbers
        if not row.guarantee:
            rows.append(row._replace(**_asked(row, question)))
            continue
        try:
            run, planned = ways.carried(row)
            rounding = rounding_of(row.bound, planned, ways.loss)
            try:
                cost = _cost(row, rounding, question, spare)
            except _Needs:
                if not chosen:
                    raise
                raise NotApplicable(f"rounding costs it more than {next(iter(chosen))}", "use that") from None
        except NotApplicable as error:
            errors.append(error)
            obstacles.append(Obstacle(row.bound, error.message, error.hint or "", error.parameters))
            continue
        rows.append(_of_release(row, question, rounding, cost, planned))
        chosen[row.bound] = run, planned, rounding
    if not chosen:
        raise errors[0]
    inputs = {**case.inputs, **inputs_of({}, {}, question)}
    case = case._replace(
        results=ranked(rows, rows[0].quantity), obstacles=tuple(obstacles), inputs=inputs, tightness=None
    )
    best = case.best
    assert best is not None
    told = (best.details or {})["floating_point"]
    case = case._replace(
        guess=guess_of_answer(best),
        assertions=(*implied_gate(question, case), *judged(gates, case)),
        note_data=(*case.note_data, Rounded(**{name: told.get(name) for name in ("of", "grid", "epsilon", "delta")})),
    )
    return Guaranteed(case, *chosen[best.bound])


def _cost(row: Result, rounding: Rounding, question: Question, spare: _Spare) -> Cost:
    """Return what rounding costs a row: some delta, or where that is dear, a little epsilon.

    Raises:
        _Needs: more than is set aside.
        NotApplicable: more than may be.
    """
    epsilon, found, seeks = _epsilon(row, question), row.quantity == Quantity.EPSILON, question.log_delta is None
    plain, small = rounding.cost(epsilon), rounding.cost_in_epsilon(epsilon)
    least = 0.0 if found else plain.epsilon  # of slopes that are not exact
    if seeks:  # delta is found, and may rise
        delta = math.exp(row.log_delta) if row.log_delta is not None else 0.0
        if least <= spare.epsilon <= _ROOM * least and _more(plain, delta) <= _SHARE * delta:
            return plain
    elif least <= spare.epsilon and _more(plain, _delta(question)) <= spare.delta:
        return plain
    delta = 1.0 if seeks else _delta(question)
    more, added = _more(small, delta), _more(plain, delta)
    if (found or small.epsilon <= spare.epsilon) and (seeks or more <= spare.delta):
        return small
    affordable = (found or small.epsilon <= _MOST_EPSILON * epsilon) and more <= _MOST * delta
    if affordable and (seeks or plain.delta > _DEAR * delta):
        raise _Needs(_Spare(_ROOM * small.epsilon, max(spare.delta, _ROOM * more)))
    if not least <= _MOST_EPSILON * epsilon:
        raise NotApplicable(
            f"the errors of capped slopes add {least:.3g} to epsilon", "take more noise, or fewer steps"
        )
    if seeks and least <= spare.epsilon:
        return plain
    if not (seeks or added <= _MOST * delta):
        raise _no_room(question, added, rounding)
    raise _Needs(_Spare(_ROOM * least, spare.delta if seeks else _ROOM * added))


def leaves_room(draft: Draft, question: Question, columns: int) -> bool:
    """Return whether a hidden run, whose noise is given, can pay for its rounding.

    Args:
        draft, question: the run and the budget.
        columns: d, the number of weights of a score.
    """
    try:
        rounding = output_rounding(
            plan(described_run(draft), int(draft["records"]), columns * draft.loss.scores), draft.loss
        )
    except NotApplicable:
        return False
    return _affordable(rounding, float(question.epsilon or 0.0), _delta(question))


def _more(cost: Cost, delta: float) -> float:
    """Return what is added to a delta."""
    return cost.delta + (cost.factor - 1.0) * delta


def _loss_of(draft: Draft) -> Loss | None:
    """Return the loss; None of sums of products, which are accounted without one."""
    return draft.loss if "loss" in draft else None


def rounding_of(bound: str, planned: Plan, loss: Loss | None) -> Rounding:
    """Return how a run is rounded that a theorem is quoted of.

    Raises:
        NotApplicable: its iterates must stay hidden, and rounding errors of them have no bound.
    """
    if not lookup(bound).public_sums:
        if loss is None:
            raise NotApplicable(
                "its iterates stay hidden, and the sums of products are released", "take --solver descent"
            )
        return output_rounding(planned, loss)
    entries = float(planned.steps * planned.columns)
    log_factor, tail = stretch(planned.noise, entries, sum_error(planned.noise))
    return Rounding(up(entries * sum_miss(planned.noise), 4.0), log_factor, tail)


def _epsilon(row: Result, question: Question) -> float:
    """Return the epsilon of a row, that found or that asked."""
    return row.value if row.quantity == Quantity.EPSILON else float(question.epsilon or 0.0)


def _delta(question: Question) -> float:
    """Return the delta asked, rounded down; 0 where no double holds it."""
    assert question.log_delta is not None
    return math.exp(question.safe_log_delta)


def _lessened(question: Question, spare: _Spare) -> Question:
    """Return the question with a budget that is smaller by what is set aside, rounded down."""
    if question.epsilon is not None and spare.epsilon:
        question = question._replace(epsilon=down(question.epsilon - spare.epsilon, 2.0))
    if question.log_delta is None or not spare.delta:
        return question
    log_delta = question.log_delta + math.log1p(-spare.delta / _delta(question))
    log_delta -= 8.0 * 2.0**-53 * (1.0 + abs(log_delta))
    return question._replace(delta=math.exp(log_delta), log_delta=log_delta)


def _no_room(question: Question, added: float, rounding: Rounding | None = None) -> NotApplicable:
    least = None if rounding is None else _with_room(question, rounding)
    larger = f"a delta of {2.0 * added:.1g} or more, " if added < _MOST_HINTED else ""
    return NotApplicable(
        f"rounding in floating point adds {added:.3g} to delta, which is {question.delta!r}",
        f"give {larger}a smaller epsilon, or take fewer steps" if least is None
        else f"give an epsilon of {least} or less: what is guaranteed at it holds at larger ones too",
        parameters=("delta",) if least is None else ("epsilon",),
    )  # fmt: skip


def _with_room(question: Question, rounding: Rounding) -> int | None:
    """Return the largest whole epsilon below the one asked at which rounding costs little enough; None if none is.

    What it adds to delta grows with e^epsilon.
    """
    first = min(math.ceil(float(question.epsilon or 0.0)) - 1, _LARGEST_HINTED)
    return next((e for e in range(first, 0, -1) if _affordable(rounding, float(e), _delta(question))), None)


def _affordable(rounding: Rounding, epsilon: float, delta: float) -> bool:
    costs = rounding.cost(epsilon), rounding.cost_in_epsilon(epsilon)
    return any(c.epsilon <= _MOST_EPSILON * epsilon and _more(c, delta) <= _MOST * delta for c in costs)


def _asked(row: Result, question: Question) -> dict[str, Any]:
    """Return the budget asked as the fields of a row, but for what the row itself has found."""
    fields = dict(question.budget)
    if row.quantity == Quantity.EPSILON:
        del fields["epsilon"]
    if row.quantity == Quantity.DELTA:
        del fields["delta"], fields["log_delta"]
    return fields


def _most(question: Question) -> float:
    """Return the epsilon asked, of which no more is released; infinity where it is found."""
    return math.inf if question.epsilon is None else float(question.epsilon)


def _of_release(row: Result, question: Question, rounding: Rounding, cost: Cost, planned: Plan) -> Result:
    """Return the row of the released, rounded numbers: what they cost is part of its epsilon and delta."""
    told: dict[str, Any] = {
        "of": rounding.what, "probability": rounding.miss, "epsilon": cost.epsilon, "delta": cost.delta,
    }  # fmt: skip
    told.update({} if rounding.grid is None else {"grid": rounding.grid})
    told.update({} if row.mu is None else {"mu": row.mu})
    details = {**(row.details or {}), "floating_point": told}
    if (achieved := details.pop("achieved", None)) and "epsilon" in achieved:
        # What is asked holds too: the sum may be above it by its last digit.
        reached = min(
            up(achieved["epsilon"] + cost.epsilon, 2.0) if cost.epsilon else achieved["epsilon"], _most(question)
        )
        details["achieved"] = {"epsilon": reached}
    changed = _asked(row, question)
    if row.quantity == Quantity.EPSILON:
        value = up(row.value + cost.epsilon, 2.0) if cost.epsilon else row.value
        changed.update(value=value, epsilon=value)
    if row.quantity == Quantity.DELTA:
        ideal = math.exp(row.log_delta) if row.log_delta is not None else 0.0
        total = min(1.0, up(cost.factor * ideal + cost.delta, 8.0))
        changed.update(value=total, delta=total, log_delta=min(0.0, up(math.log(total), 4.0)))
    functions = () if rounding.functions is None else (rounding.functions,)
    return row._replace(
        kind=Kind.UPPER, mu=None, assumes=(*row.assumes, *functions, ROUNDED, assumption(planned.noise)),
        details=details, **changed,
    )  # fmt: skip
