"""The guarantee of a run as executed, in floating point, and the noise that it needs.

Rounding adds to delta, and perhaps to epsilon. So a part of the budget is reserved for rounding, and the noise is found
for the rest. A guarantee whose rounding does not fit is left out, and the case says why.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from dpcalc.engine.answer import answer, ranked
from dpcalc.engine.ask import ask
from dpcalc.engine.attack.guess import guess_of_answer
from dpcalc.engine.commands import COMMANDS, inputs_of, taken_by
from dpcalc.engine.evaluate import implied_gate
from dpcalc.engine.gate import Gate, judged
from dpcalc.engine.question import run_of
from dpcalc.engine.solving.budget import likely_noise_std
from dpcalc.errors import DpcalcError, GateRefused, MissingParameter, NotApplicable
from dpcalc.model.algorithm import Algorithm
from dpcalc.model.draft import NOISE_SCALES, Description
from dpcalc.model.loss import Loss
from dpcalc.model.quantities import Kind, Quantity
from dpcalc.model.question import Question
from dpcalc.model.run import Run
from dpcalc.notes import DearRounding, LossDomain, Note, Rounded
from dpcalc.numerics.floats import down, up
from dpcalc.report import Case, Obstacle, Result
from dpcalc.theorems.conditions import ROUNDED
from dpcalc.theorems.record import for_algorithm, lookup
from dpcalc.training.rule.draft import Draft
from dpcalc.training.run.plan import Plan, plan
from dpcalc.training.run.rounding import Cost, Rounding, assumption, output_rounding, sums_rounding

_CURES = {
    "strong_convexity": "give --regularisation",
    "diameter": "leave out --radius",
    "smoothness": "take a smooth --loss: logistic, huber or squares",
    "schedule": "dpcalc compare takes schedules; they are not trained",
}
"""The hint for each parameter that train does not take: the loss and the radius determine these constants."""


def takes_dimension(algorithm: Algorithm) -> bool:
    """Return whether some bound for the algorithm depends on the dimension."""
    return "dimension" in taken_by(algorithm.name)


def account(draft: Draft, gates: Sequence[Gate] = ()) -> Case:
    """Return the case of a run on real numbers, with hints for the flags of train.

    Raises:
        SpecError, NotApplicable, Infeasible: see `dpcalc.engine.answer.answer`.
    """
    try:
        case = ask("compare", draft, draft.question, gates=gates or None, notes=False)
    except DpcalcError as error:
        error.hint = _cure(error.parameters, error.hint or "")
        raise
    obstacles = tuple(one._replace(hint=_cure(one.parameters, one.hint)) for one in case.obstacles)
    case = case._replace(obstacles=obstacles)
    notes: tuple[Note, ...] = tuple(note for note in case.note_data if not isinstance(note, LossDomain))
    if draft.radius is not None:
        notes += (LossDomain(radius=draft.radius, projected=True),)
    return case._replace(note_data=notes)


def _cure(parameters: Sequence[str], hint: str) -> str:
    """Return train's own hint if it does not take one of the parameters, else the given hint."""
    return next((cure for name, cure in _CURES.items() if name in parameters), hint)


def noise_scale(draft: Draft) -> float:
    """Return the scale of the noise that the described run has, or roughly needs for the budget.

    The value guides defaults only. It comes from the fast bounds, or from an approximation for sampled batches; the
    noise of the run comes from all bounds.
    """
    for name in NOISE_SCALES:
        if name in draft:
            return float(draft[name])
    run = described_run(draft)
    if run.noise_std is not None:  # of a noise multiplier
        return run.noise_std
    bounds = [b for b in for_algorithm(run.algorithm.name) if b.guarantee and not b.unpromised(run)]
    try:
        best = answer(run, draft.question, [bound for bound in bounds if not bound.slow]).best
    except DpcalcError:
        likely = [likely_noise_std(bound, run, draft.question) for bound in bounds]
        if known := [noise_std for noise_std in likely if noise_std is not None]:
            return min(known)
        best = account(draft).best
    assert best is not None
    return best.value if best.quantity in NOISE_SCALES else accounted_run(draft, best).noise_std or best.value


def accounted_run(draft: Draft, best: Result) -> Run:
    """Return the run as accounted, with its noise if that was solved for."""
    found = best.quantity in (*NOISE_SCALES, "noise_multiplier")
    return described_run(draft.replacing(**{best.quantity: best.value}) if found else draft)


def described_run(draft: Draft) -> Run:
    """Return the run of a description."""
    _, run, _ = run_of(COMMANDS["compare"], Description(draft))
    return run


_SHARE = 2.0**-14  # of delta, reserved for rounding at first: less than a ten-thousandth
_DELTAS = 16.0  # 1% of epsilon costs as much noise as about 16% of delta, since noise grows as sqrt(-2 ln delta)
_MOST = 0.5  # of delta and of epsilon may be reserved; the noise is found for the rest
_LITTLE = 0.01  # of epsilon: guarantees whose rounding costs more are compared with those whose rounding costs less
_SHARE_OF_EPSILON = 2.0**-24  # reserved at first: the usual cost of rounding hidden steps
_LARGEST_HINTED = 100  # at a larger epsilon rounding costs too much in any run
_MOST_HINTED = 0.1  # hints name no larger delta
_ROOM = 1.0625  # over the need: more noise needs slightly less, so the next try is likely to be the last
_TRIES = 8  # each reserves the need of the one before


class Guaranteed(NamedTuple):
    """A case, and the run that its best guarantee covers.

    Attributes:
        case: with guarantees for the released numbers.
        run, plan, rounding: what is executed, and how it is rounded.
    """

    case: Case
    run: Run
    plan: Plan
    rounding: Rounding


class Carried(NamedTuple):
    """The run that is executed if a row is the guarantee, with its noise, and its plan."""

    run: Run
    plan: Plan


class Accounting:
    """How a run is accounted on real numbers and executed.

    Attributes:
        draft: the run and the budget; its noise may be unknown.
        shape: the numbers of records and of columns.
        more: the number of released numbers in addition to one for each step and column.
    """

    def __init__(self, draft: Draft, shape: tuple[int, int], more: int = 0) -> None:
        self.draft, self.shape, self.more = draft, shape, more

    @property
    def loss(self) -> Loss | None:
        """The loss; None for sums of products, which are accounted without one."""
        return None if self.draft.get("loss") is None else self.draft.loss

    def case(self, question: Question) -> Case:
        """Return the case of the run on real numbers, for a budget."""
        return account(self.draft.asking(question))

    def carried(self, row: Result) -> Carried:
        """Return what is executed if a row of the case is the guarantee."""
        run = accounted_run(self.draft, row)
        return Carried(run, plan(run, *self.shape))


class _Spare(NamedTuple):
    """The part of epsilon and of delta that is reserved for rounding."""

    epsilon: float
    delta: float


class _Needs(Exception):
    """More of the budget must be reserved for rounding."""

    def __init__(self, spare: _Spare) -> None:
        super().__init__()
        self.spare = spare


def guarantee(accounting: Accounting, gates: Sequence[Gate] = ()) -> Guaranteed:
    """Return the guarantee of a run whose released numbers are rounded.

    Args:
        accounting: the run and the budget.
        gates: parsed assertions.

    Raises:
        MissingParameter: neither epsilon nor delta is given.
        GateRefused: a gate is about attacks.
        SpecError, NotApplicable, Infeasible: see `account`; or no guarantee leaves room for rounding.
    """
    question = accounting.draft.question
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
    try:
        made, dear = _within(accounting, question, gates, _LITTLE)
    except NotApplicable:
        return _within(accounting, question, gates, _MOST)[0]
    if not dear:
        return made
    with contextlib.suppress(NotApplicable):
        other, _ = _within(accounting, question, gates, _MOST)
        made = min(made, other, key=_noise_of)
    return made


def _noise_of(made: Guaranteed) -> float:
    """Return the noise that was found; 0 if the noise is given."""
    best = made.case.best
    assert best is not None
    return best.value if best.quantity in NOISE_SCALES else 0.0


def _within(accounting: Accounting, question: Question, gates: Sequence[Gate], most: float) -> tuple[Guaranteed, bool]:
    """Return the guarantee with at most a share of epsilon for rounding, and whether a larger share might improve it.

    Raises:
        SpecError, NotApplicable, Infeasible: as `guarantee`.
    """
    spare = _Spare(0.0, 0.0)
    if question.log_delta is not None:
        hidden = not accounting.draft.algorithm.full_batch
        spare = _Spare(_SHARE_OF_EPSILON * (question.epsilon or 0.0) * hidden, _SHARE * _delta(question))
    for _ in range(_TRIES):
        rounded = _Rounded(accounting, question, spare, most)
        try:
            return rounded.guaranteed(gates), rounded.dear
        except _Needs as needs:
            spare = needs.spare
    raise _no_room(question, Cost(spare.epsilon, 1.0, spare.delta))


class _Rounded:
    """The guarantees of a rounded run for a reserved part of the budget.

    Attributes:
        carried: bound -> what is executed if it is the guarantee.
        dear: whether a guarantee was left out whose rounding costs more than ``most`` of epsilon.
    """

    def __init__(self, accounting: Accounting, question: Question, spare: _Spare, most: float) -> None:
        self.accounting, self.question, self.spare, self.most = accounting, question, spare, most
        self.carried: dict[str, tuple[Run, Plan, Rounding]] = {}
        self.dear = False

    def guaranteed(self, gates: Sequence[Gate]) -> Guaranteed:
        """Return the case.

        Raises:
            _Needs: too little is reserved for the best guarantee.
        """
        case = self.accounting.case(self._lessened())
        rows: list[Result] = []
        obstacles, errors = list(case.obstacles), []
        for row in case.results:
            if row.kind is Kind.LOWER:
                continue  # lower bounds hold for the run on real numbers
            try:
                rows.append(self._released(row) if row.guarantee else row._replace(**self._asked(row)))
            except NotApplicable as error:
                errors.append(error)
                obstacles.append(Obstacle(row.bound, error.message, error.hint or "", error.parameters))
        if not self.carried:
            raise errors[0]
        inputs = {**case.inputs, **inputs_of({}, {}, self.question)}
        case = case._replace(
            results=ranked(rows, rows[0].quantity), obstacles=tuple(obstacles), inputs=inputs, tightness=None
        )
        best = case.best
        assert best is not None
        case = case._replace(
            guess=guess_of_answer(best),
            assertions=implied_gate(self.question, case),
            note_data=(*case.note_data, rounding_note(best)),
        )
        return Guaranteed(case._replace(assertions=judged(gates or None, case)), *self.carried[best.bound])

    def _lessened(self) -> Question:
        """Return the question with the budget minus the reserved part, rounded down."""
        question, spare = self.question, self.spare
        if question.epsilon is not None and spare.epsilon:
            question = question._replace(epsilon=down(question.epsilon - spare.epsilon, 2.0))
        if question.log_delta is None or not spare.delta:
            return question
        log_delta = question.log_delta + math.log1p(-spare.delta / _delta(question))
        log_delta -= 8.0 * 2.0**-53 * (1.0 + abs(log_delta))
        return question._replace(delta=math.exp(log_delta), log_delta=log_delta)

    def _released(self, row: Result) -> Result:
        """Return the row for the released, rounded numbers, with the cost of rounding in its epsilon and delta.

        Raises:
            _Needs: rounding costs more than is reserved, and no row before this one is a guarantee.
            NotApplicable: there is no room for rounding.
        """
        run, planned = self.accounting.carried(row)
        rounding = rounding_of(row.bound, planned, self.accounting.loss, self.accounting.more)
        try:
            cost = self._cost(row, rounding)
        except _Needs:
            if not self.carried:
                raise
            raise NotApplicable(f"rounding costs it more than {next(iter(self.carried))}", "use that") from None
        self.carried[row.bound] = run, planned, rounding
        functions = () if rounding.functions is None else (rounding.functions,)
        return row._replace(
            kind=Kind.UPPER, mu=None, assumes=(*row.assumes, *functions, ROUNDED, assumption(planned.noise)),
            details=self._details(row, rounding, cost), **self._asked(row), **_values(row, cost),
        )  # fmt: skip

    def _cost(self, row: Result, rounding: Rounding) -> Cost:
        """Return the cost of rounding for a row: some delta, or where that is expensive, a little epsilon.

        Raises:
            _Needs: it is more than is reserved.
            NotApplicable: it is more than may be reserved.
        """
        question, spare, finds = self.question, self.spare, row.quantity == Quantity.EPSILON
        epsilon, seeks = row.value if finds else float(question.epsilon or 0.0), question.log_delta is None
        delta = math.exp(row.log_delta or -math.inf) if seeks else _delta(question)
        plain, small = rounding.cost(epsilon), rounding.cost_in_epsilon(epsilon)
        ways = [
            way for way in (plain, small)
            if (finds or way.epsilon <= self.most * epsilon) and (seeks or _more(way, delta) <= _MOST * delta)
        ]  # fmt: skip
        if not ways:
            self.dear = self.dear or _pays(rounding, epsilon, delta, _MOST)
            raise _no_room(question, plain, rounding)
        if seeks:
            ways = [plain] if plain in ways and _more(plain, delta) <= _SHARE * delta else ways[-1:]
        for way in ways:
            if (finds or way.epsilon <= spare.epsilon) and (seeks or _more(way, delta) <= spare.delta):
                return way
        if epsilon and not seeks:
            ways.sort(key=lambda way: _DELTAS * way.epsilon / epsilon + _more(way, delta) / delta)
        more = 0.0 if seeks else _ROOM * _more(ways[0], delta)
        raise _Needs(_Spare(max(spare.epsilon, _ROOM * ways[0].epsilon), max(spare.delta, more)))

    def _asked(self, row: Result) -> dict[str, Any]:
        """Return the given budget as fields of a row, without the quantity that the row found."""
        fields = dict(self.question.budget)
        if row.quantity == Quantity.EPSILON:
            del fields["epsilon"]
        if row.quantity == Quantity.DELTA:
            del fields["delta"], fields["log_delta"]
        return fields

    def _details(self, row: Result, rounding: Rounding, cost: Cost) -> dict[str, Any]:
        finds = row.quantity == Quantity.EPSILON
        rounded: dict[str, Any] = {
            "of": rounding.what, "probability": rounding.miss, "delta": cost.delta,
            "epsilon": cost.epsilon if finds else max(cost.epsilon, self.spare.epsilon),
            **({} if rounding.grid is None else {"grid": rounding.grid}), **({} if row.mu is None else {"mu": row.mu}),
        }  # fmt: skip
        details = {**(row.details or {}), "floating_point": rounded}
        achieved = (details.pop("achieved", None) or {}).get("epsilon")
        if achieved is not None:
            # The sum may exceed the given epsilon in its last digit; the given epsilon holds too.
            most = math.inf if self.question.epsilon is None else float(self.question.epsilon)
            details["achieved"] = {"epsilon": min(_raised(achieved, cost), most)}
        return details


def _values(row: Result, cost: Cost) -> dict[str, Any]:
    """Return the epsilon or the delta that a row found, plus the cost of rounding."""
    if row.quantity == Quantity.EPSILON:
        value = _raised(row.value, cost)
        return {"value": value, "epsilon": value}
    if row.quantity == Quantity.DELTA:
        ideal = math.exp(row.log_delta) if row.log_delta is not None else 0.0
        total = min(1.0, up(cost.factor * ideal + cost.delta, 8.0))
        return {"value": total, "delta": total, "log_delta": min(0.0, up(math.log(total), 4.0))}
    return {}


def _raised(epsilon: float, cost: Cost) -> float:
    return up(epsilon + cost.epsilon, 2.0) if cost.epsilon else epsilon


def rounding_note(row: Result) -> Rounded:
    """Return the note on the rounding that a row accounts for."""
    details = (row.details or {})["floating_point"]
    share = details["epsilon"] / row.epsilon if row.epsilon else 0.0
    share += details["delta"] / (_DELTAS * row.delta) if row.delta else 0.0
    kind = DearRounding if share > _LITTLE else Rounded
    return kind(**{name: details.get(name) for name in ("of", "grid", "epsilon", "delta")})


def leaves_room(draft: Draft, columns: int) -> bool:
    """Return whether the budget of a hidden run with given noise has room for rounding; ``columns`` is per score."""
    try:
        rounding = output_rounding(
            plan(described_run(draft), int(draft["records"]), columns * draft.loss.scores), draft.loss
        )
    except NotApplicable:
        return False
    return _pays(rounding, float(draft.question.epsilon or 0.0), _delta(draft.question), _LITTLE)


def _more(cost: Cost, delta: float) -> float:
    """Return the cost in delta."""
    return cost.delta + (cost.factor - 1.0) * delta


def rounding_of(bound: str, planned: Plan, loss: Loss | None, more: int = 0) -> Rounding:
    """Return how a run is rounded if this theorem is its guarantee, with ``more`` further entries of noisy sums.

    Raises:
        NotApplicable: the theorem needs hidden iterates, and the rounding errors have no bound.
    """
    if not lookup(bound).public_sums:
        if loss is None:
            raise NotApplicable(
                "its iterates stay hidden, and the sums of products are released", "take --solver descent"
            )
        return output_rounding(planned, loss)
    return sums_rounding(planned, more)


def _delta(question: Question) -> float:
    """Return the given delta, rounded down; 0 on underflow."""
    assert question.log_delta is not None
    return math.exp(question.safe_log_delta)


def _no_room(question: Question, plain: Cost, rounding: Rounding | None = None) -> NotApplicable:
    epsilon = float(question.epsilon or 0.0)
    if question.epsilon is not None and not plain.epsilon <= _MOST * epsilon:
        return NotApplicable(
            f"rounding in floating point adds {plain.epsilon:.3g} to epsilon, which is {epsilon!r}"
            if math.isfinite(plain.epsilon) else "rounding in floating point hides as much as the noise of a step",
            "take longer or fewer steps, a smaller --radius, or more noise", parameters=("step_size",),
        )  # fmt: skip
    added = plain.delta
    least = None if rounding is None else _with_room(question, rounding)
    larger = f"a delta of {2.0 * added:.1g} or more, " if added < _MOST_HINTED else ""
    return NotApplicable(
        f"rounding in floating point adds {added:.3g} to delta, which is {question.delta!r}",
        f"give {larger}a smaller epsilon, or take fewer steps" if least is None
        else f"give an epsilon of {least} or less: what is guaranteed at it holds at larger ones too",
        parameters=("delta",) if least is None else ("epsilon",),
    )  # fmt: skip


def _with_room(question: Question, rounding: Rounding) -> int | None:
    """Return the largest integer epsilon below the given one with room for rounding, or None.

    The cost in delta grows with e^epsilon.
    """
    first = min(math.ceil(float(question.epsilon or 0.0)) - 1, _LARGEST_HINTED)
    return next((e for e in range(first, 0, -1) if _pays(rounding, float(e), _delta(question), _MOST)), None)


def _pays(rounding: Rounding, epsilon: float, delta: float, most: float) -> bool:
    """Return whether rounding costs at most a share ``most`` of epsilon, and half of delta."""
    costs = rounding.cost(epsilon), rounding.cost_in_epsilon(epsilon)
    return any(c.epsilon <= most * epsilon and _more(c, delta) <= _MOST * delta for c in costs)
