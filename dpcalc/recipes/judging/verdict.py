"""The verdict on a case: whether its gates hold, and other objections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpcalc.checked import Assertion, Check, Status
from dpcalc.engine.advice.missing import ON_MEAN, misread_of
from dpcalc.engine.commands import COMMANDS, inputs_of
from dpcalc.engine.evaluate import implied_gate
from dpcalc.engine.gate import Gate, gated_quantity, judge
from dpcalc.errors import DpcalcError, SpecError
from dpcalc.files.place import Place
from dpcalc.model.algorithm import Source
from dpcalc.model.quantities import RISKS
from dpcalc.model.question import query_of
from dpcalc.notes import Note, OnePass
from dpcalc.recipes.judging.objections import exceptions, kept, objection, objections_to, skipped, uncertified_of
from dpcalc.recipes.reading.gates import ERRORS, Expectation, RecipeGate, best_of, judge_expectation, judge_gate
from dpcalc.recipes.reading.matrix import same_computation
from dpcalc.recipes.reading.recipe import Entry, Recipe
from dpcalc.recipes.reading.settings import SETUP, UNGATED, without_flags
from dpcalc.recipes.running.evaluate import Outcome
from dpcalc.report import Case, Obstacle

Outcomes = Callable[[Entry], Outcome]
"""The answers to the cases of a recipe."""

Stale = dict[tuple[int, str, str], bool]
"""Recipe, matrix and exception -> whether the exception applies to no case of the matrix."""


def judged(
    recipe: Recipe, entry: Entry, outcomes: Outcomes, *, certify: bool = False, stale: Stale | None = None
) -> Case:
    """Return a case with its verdict.

    Args:
        recipe: of the case.
        entry: the case.
        outcomes: gives its answer and those that it is compared with.
        certify: whether a guarantee must be proved where it can be.
        stale: the findings of earlier cases of the check; is filled in.
    """
    if entry.skip is not None:
        return _skipped(entry, entry.skip)
    outcome = outcomes(entry)
    if entry.expected is not None and entry.expected.error is not None:
        return _judge_refusal(entry, entry.expected.error, entry.expected.place, outcome)
    if outcome.case is None:
        return error(entry, entry.place, outcome)
    case = _asked(outcome.case, entry)
    if more := (*entry.notes, *_by_default(case)):
        case = case._replace(note_data=(*case.note_data, *more))
    return _with_verdicts(
        entry, case, lambda item: _verdict(item, case, recipe, outcomes),
        lambda name: _is_stale(name, recipe, entry, outcomes, {} if stale is None else stale), certify,
    )  # fmt: skip


def judged_again(entry: Entry, case: Case, *, certify: bool = False) -> Case:
    """Return a case that was read back, with the verdict that follows from its numbers.

    What the case does not determine is kept as read: what other cases of the recipe say (the limit of a gate that
    names them, whether an exception applies to a case of the matrix), and why there is no answer.

    Args:
        entry: the case, as the recipe has it.
        case: as read, with a verdict.
        certify: whether a guarantee must be proved where it can be.

    Raises:
        SpecError: no such case has a verdict.
    """
    check = case.check
    assert check is not None
    if entry.skip is not None:
        return _skipped(entry, entry.skip)
    if check.status == Status.ERROR:
        places = [(place.line, place.column) for place in (entry.place, *(item.place for item in _to_judge(entry)))]
        if (check.line, check.column) not in places:
            raise SpecError("it has another place")
        return case._replace(
            check=check._replace(accepted=entry.accept, strict=entry.rule.strict, policy=_rule_of(entry))
        )
    if entry.expected is not None and (wanted := entry.expected.error) is not None:
        answered = not all(gate.passed for gate in case.assertions)
        outcome = Outcome(case) if answered else Outcome(None, ERRORS[wanted], check.message or "")
        return _judge_refusal(entry, wanted, entry.expected.place, outcome)
    count = len(case.assertions) - len(_to_judge(entry)) - len(entry.rule.limits)
    if count < 0:
        raise SpecError("a gate was not judged")
    own, read = case.assertions[:count], iter(case.assertions[count:])
    if not entry.trains:  # other commands have gates of their own, which their numbers do not determine
        implied = () if entry.command in UNGATED else implied_gate(entry.question, case)
        if len(own) != len(implied):
            raise SpecError("it has other gates")
        own = implied

    def verdict(item: RecipeGate | Expectation) -> Assertion:
        assertion = next(read)
        if isinstance(item, Expectation):
            return judge_expectation(item, case)
        return _of_others(item.gate, case, assertion) if item.terms else judge(item.gate, case)

    return _with_verdicts(entry, case._replace(assertions=own), verdict, lambda _: False, certify)


def _of_others(gate: Gate, case: Case, assertion: Assertion) -> Assertion:
    """Return a gate that names other cases as read, if it can belong to this case.

    Raises:
        SpecError: it cannot.
    """
    if assertion.passed:
        chosen = best_of(case, gate.name) if gate.name in RISKS else list(case.answers)
        values = [gated_quantity(result, gate.name, case) for result in chosen]
        slack = assertion.slack
        kept = slack is not None and (slack > 0.0 or (slack == 0.0 and not gate.sign.strict))
        if assertion.value not in values or not kept:
            raise SpecError(f"{gate.text!r} does not follow from its numbers")
    return assertion._replace(text=gate.text)


def _asked(case: Case, entry: Entry) -> Case:
    """Return a case with its question, which a shared computation does not state."""
    if case.query is not None or entry.command not in COMMANDS or COMMANDS[entry.command].prices:
        return case
    return case._replace(query=query_of(entry.command, entry.parameters, entry.question))


def _skipped(entry: Entry, reason: str) -> Case:
    strict = _failed(entry, entry.place, (skipped(entry.rule, reason),))
    return _unanswered(entry, strict if entry.rule.strict else _check(entry, entry.place, Status.SKIPPED, reason))


def _to_judge(entry: Entry) -> list[RecipeGate | Expectation]:
    return [*entry.gates, *(entry.expected.values if entry.expected else ())]


def _with_verdicts(
    entry: Entry, case: Case, verdict: Callable[[RecipeGate | Expectation], Assertion],
    is_stale: Callable[[str], bool], certify: bool,
) -> Case:  # fmt: skip
    """Return an answered case with the verdict on its gates and all objections.

    Args:
        entry: the case.
        case: with its answer.
        verdict: judges a gate or an expected value.
        is_stale: whether an accepted exception applies to no case of its matrix.
        certify: whether a guarantee must be proved where it can be.
    """
    verdicts = [(entry.place, assertion) for assertion in case.assertions]
    for item in _to_judge(entry):
        try:
            verdicts.append((item.place, verdict(item)))
        except DpcalcError as refusal:
            outcome = Outcome(None, "", refusal.message, refusal.hint, refusal.exit_code)
            return error(entry, item.place, outcome, case)
    limits = [kept(gate, case, trained=entry.trains) for gate in entry.rule.limits]
    case = case._replace(assertions=(*[assertion for _, assertion in verdicts], *limits))
    own = exceptions(entry, case) if entry.accept or case.assertions else ()
    for name in entry.accept:
        if name not in own and is_stale(name):
            hint = f"leave {name} out of accept"
            outcome = Outcome(None, "", f"accept: {name} does not apply to this case", hint, 2)
            return error(entry, entry.place, outcome, case)
    if ON_MEAN in own and ON_MEAN not in entry.accept:
        hint = f"write noise_multiplier in place of noise_std; or, if it is meant so, accept: {ON_MEAN}"
        message = f"a gate needs to know which noise is meant: {without_flags(misread_of(case))}"
        return error(entry, entry.place, Outcome(None, "", message, hint, 2), case._replace(assertions=()))
    objections: tuple[str, ...] = ()
    if case.assertions:
        objections = tuple(objection(name) for name in own if name not in entry.accept)
        if certify or entry.rule.certified:
            objections += tuple(uncertified_of(case))
    objections += tuple(objections_to(entry, case))
    failed = [(place, assertion) for place, assertion in verdicts if not assertion.passed]
    if not failed and not objections:
        return case._replace(check=_check(entry, entry.place, Status.PASSED))
    place = failed[0][0] if failed else entry.place
    failures = tuple(failure(assertion, case) for _, assertion in failed)
    return case._replace(check=_failed(entry, place, objections, failures))


def _is_stale(name: str, recipe: Recipe, entry: Entry, outcomes: Outcomes, stale: Stale) -> bool:
    """Return whether an accepted exception applies to no case of a matrix."""
    key = id(recipe), entry.group, name
    if key not in stale:
        answers = ((other, outcomes(other).case) for other in recipe.made[entry.group] if other.skip is None)
        stale[key] = not any(answer and name in exceptions(other, answer) for other, answer in answers)
    return stale[key]


def _failed(entry: Entry, place: Place, objections: tuple[str, ...], failures: tuple[str, ...] = ()) -> Check:
    check = _check(entry, place, Status.FAILED, "; ".join((*failures, *objections)), None, 1)
    return check._replace(objections=objections)


def _by_default(case: Case) -> tuple[Note, ...]:
    """Return the note that one pass is accounted for if the recipe does not give the number of passes."""
    if case.inputs.get("epochs", (None, ""))[1] != Source.DEFAULT:
        return ()
    return (OnePass(algorithm=case.algorithm),)


def _verdict(item: RecipeGate | Expectation, case: Case, recipe: Recipe, outcomes: Outcomes) -> Assertion:
    if isinstance(item, Expectation):
        return judge_expectation(item, case)

    def lookup(name: str) -> Case:
        other = outcomes(recipe.named(name))
        if other.case is None:
            refusal = DpcalcError(f"case {name}, compared with, has no answer: {other.message}", other.hint)
            refusal.exit_code = other.exit_code
            raise refusal
        if same_computation(case, other.case):
            raise SpecError(
                f"{item.gate.name} is compared with itself: case {name} comes down to the same computation",
                "compare with another run, or with a number",
            )
        return other.case

    return judge_gate(item, case, lookup)


def failure(assertion: Assertion, case: Case) -> str:
    """Describe a failed gate: what it was compared with, by which bound, and by how much it misses."""
    value = assertion.value if isinstance(assertion.value, str) else repr(assertion.value)
    by = f" by {case.best.bound}" if case.best and assertion.slack is not None else ""
    missed = f", over by {-assertion.slack:.3g}" if assertion.slack is not None else ""
    rounding = " (rounding alone)" if assertion.by_rounding else ""
    return f"{assertion.text} does not hold: {value}{by}{missed}{rounding}"


def _judge_refusal(entry: Entry, wanted: str, place: Place, outcome: Outcome) -> Case:
    """Return the verdict on a case that expects a refusal."""
    if outcome.case is not None:
        best = outcome.case.best
        value: float | str = best.value if best else "no guarantee"
        missed = Assertion(f"error=={wanted}", False, value, None)
        message = f"{wanted} was expected, and there is an answer: {value!r}"
        return outcome.case._replace(assertions=(missed,), check=_check(entry, place, Status.FAILED, message, None, 1))
    if outcome.kind != ERRORS[wanted]:
        return error(entry, entry.place, outcome)
    case = _unanswered(entry, _check(entry, entry.place, Status.PASSED, outcome.message))
    case = case._replace(assertions=(Assertion(f"error=={wanted}", True, wanted, None),))
    objections = tuple(objections_to(entry, case))
    return case._replace(check=_failed(entry, place, objections)) if objections else case


def error(entry: Entry, place: Place, outcome: Outcome, case: Case | None = None) -> Case:
    """Return a case that could not be judged, with its answer if there is one."""
    check = _check(entry, place, Status.ERROR, outcome.message, outcome.hint, outcome.exit_code)
    if case is not None:
        return case._replace(check=check)
    case = _unanswered(entry, check)
    return case._replace(obstacles=(Obstacle(case.algorithm, outcome.message, outcome.hint or ""),))


def _unanswered(entry: Entry, check: Check) -> Case:
    """Return a case without results."""
    described = COMMANDS[entry.command].default if entry.command in COMMANDS else entry.command
    algorithm = str(entry.parameters.get("algorithm") or described)
    return Case(algorithm, given_by(entry), (), note_data=entry.notes, check=check)


def given_by(entry: Entry) -> dict[str, tuple[Any, Source]]:
    """Return the inputs that a case gives, each with its source."""
    run = {name: value for name, value in entry.parameters.items() if name not in ("algorithm", "ledger", *SETUP)}
    return inputs_of({name: value for name, value in run.items() if value is not None}, {}, entry.question)


def _check(
    entry: Entry, place: Place, status: Status, message: str | None = None, hint: str | None = None, code: int = 0
) -> Check:
    return Check(
        entry.name, entry.command, entry.place.file, place.line, place.column, status, message, hint, code,
        entry.accept, (), entry.rule.strict, _rule_of(entry),
    )  # fmt: skip


def _rule_of(entry: Entry) -> str | None:
    """Return the place of the policy rule that judges a case."""
    return None if entry.rule.place is None else str(entry.rule.place)
