"""From a command, given values and a question to a case: the entry point of the command line, recipes and Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.checked import Assertion
from dpcalc.engine.advice.improvements import Asked
from dpcalc.engine.answer import answer
from dpcalc.engine.commands import COMMANDS, Command, inputs_of
from dpcalc.engine.evaluate import ROWS, contenders, implied_gate
from dpcalc.engine.question import (
    Incomplete,
    Sought,
    add_loss_constants,
    algorithm_of,
    check_question,
    refuse_unknown,
    run_of,
)
from dpcalc.errors import (
    BoundFailed,
    DpcalcError,
    GateRefused,
    Infeasible,
    MissingParameter,
    NotApplicable,
    NotConverged,
    SpecError,
    isolate_failure,
)
from dpcalc.model.algorithm import Order, Source
from dpcalc.model.draft import Description
from dpcalc.model.quantities import Given
from dpcalc.model.question import Question, query_of
from dpcalc.model.run import Run
from dpcalc.notions.guarantee import Gdp, Rdp
from dpcalc.report import Case, Obstacle, Result
from dpcalc.theorems.record import Theorem, for_algorithm, lookup, without_definition

if TYPE_CHECKING:
    from dpcalc.engine.gate import Gate

Sources = Mapping[str, Source]


FEW = 12
"""The most cases for which each gets advice on improvements."""


def ask(
    command: str,
    given: Given,
    question: Question,
    *,
    sources: Sources | None = None,
    gates: Sequence[Gate] | None = None,
    notes: bool = True,
    brief: bool = False,
    best_only: bool = False,
    certified: bool = False,
    only: str | None = None,
) -> Case:
    """Return the case for one set of parameters.

    Args:
        command: a key of `COMMANDS`.
        given: parameter name -> value, None where not given; ``schedule`` may hold a path.
        question: what is sought.
        sources: parameter name -> where it came from.
        gates: parsed assertions; None if the case is judged elsewhere, as those of recipes are.
        notes: whether to add advice and remarks.
        brief: whether the case is one of several, so that only cheap notes are computed.
        best_only: whether to leave out the bounds that cannot be the best: lower values, limits and implied bounds.
        certified: whether to recompute every guarantee in ball arithmetic.
        only: the one bound to evaluate; None for all that cover the run.

    Raises:
        SpecError, NotApplicable, Infeasible: see `dpcalc.engine.answer.answer`.
        Disproved: a guarantee is below the truth: of those to be certified, or beside a lower bound that takes long.
    """
    record = COMMANDS[command]
    refuse_unknown(command, given, record.parameters, ("schedule",))
    check_question(question)
    if record.prices:
        return CostInquiry(record, Description(given, sources or {}), question, gates).case(certified=certified)
    inquiry = Inquiry(command, given, question, sources or {}, gates, notes=notes, brief=brief, best_only=best_only)
    if only is not None:
        inquiry.bounds = [bound for bound in inquiry.bounds if bound.id == only]
        if not inquiry.bounds:
            raise NotApplicable(f"{only} says nothing of this run", "ask without naming a bound")
    if question.targets and certified:
        raise SpecError(
            "--certify cannot prove a solution for a risk",
            "leave out --certify; or certify epsilon of the run with the solution",
        )
    return inquiry.case(certified=certified)


def best_of(command: str, given: Given, question: Question, sources: Sources | None = None) -> Case | None:
    """Return the case with only its best answer; None if there is none, or the question asks for more: use `ask`
    then."""
    if COMMANDS[command].prices or question.risks or question.targets or question.curves:
        return None
    try:
        return ask(command, given, question, sources=sources, gates=(), notes=False, brief=True, best_only=True)
    except DpcalcError:
        return None


def closed_form_of(command: str, given: Given, question: Question) -> Case | None:
    """Return the best answer if closed forms give it, with negligible time and memory; else None."""
    record = COMMANDS.get(command)
    searches = question.solve or question.risks or question.targets or question.curves
    if record is None or record.trains or record.prices or searches or given.get("schedule") is not None:
        return None
    try:
        refuse_unknown(command, given, record.parameters)
        check_question(question)
        inquiry = Inquiry(command, given, question, {}, notes=False, best_only=True)
        return inquiry.case() if inquiry.is_closed else None
    except DpcalcError:
        return None  # `ask` reports the reason


class _AnyInquiry:
    """A question, the gates on its answer, and its run, if there is one."""

    run: Run | None = None

    def __init__(self, command: Command, question: Question, gates: Sequence[Gate] | None) -> None:
        self.command, self.question, self.gates = command, question, gates

    def _certified(self, case: Case) -> Case:
        """Return the case with the proofs of its guarantees."""
        from dpcalc.certify.case import certify

        taken = {result.bound: lookup(result.bound).parameters for result in case.results}
        return certify(case, self.run, self.question, without_definition(), taken)

    def _judged(self, case: Case) -> tuple[Assertion, ...]:
        """Return the verdict on every gate, those that the question implies first."""
        if not (self.gates or case.assertions):
            return ()
        from dpcalc.engine.gate import judged

        return judged(self.gates, case)


class CostInquiry(_AnyInquiry):
    """One question about the cost of a budget."""

    def __init__(
        self, command: Command, description: Description, question: Question, gates: Sequence[Gate] | None
    ) -> None:
        super().__init__(command, question, gates)
        self.description = description

    def case(self, *, certified: bool = False) -> Case:
        """Return the case: every cost that the description allows."""
        if self.question.risks is not None:
            raise SpecError(
                "a cost is of a run that is chosen for the budget, and what an attacker can do is asked of one run",
                "ask `dpcalc compare --risk` about the run, or `dpcalc risk` about the budget",
            )
        from dpcalc.engine.price import priced

        algorithm = algorithm_of(self.command, self.description) if self.description.has("algorithm") else None
        add_loss_constants(self.description, (*self.command.parameters, "loss_range"), risk=True)
        case = priced(self.description, self.question, algorithm)
        case = case._replace(assertions=self._judged(case))
        return self._certified(case) if certified else case


class Inquiry(_AnyInquiry):
    """One question about one described run, the bounds to evaluate, and the amount of advice."""

    run: Run

    def __init__(
        self, command: str, given: Given, question: Question, sources: Sources, gates: Sequence[Gate] | None = None, *,
        notes: bool, best_only: bool, brief: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(COMMANDS[command], question, gates)
        self.given, self.sources = given, sources
        self.notes, self.brief = notes, brief
        self._in_full = notes and not brief  # errors and notes then say all that they can, with examples
        _, self.run, self._run_notes = run_of(self.command, Description(given, sources))
        self.bounds = bounds_of(self.command, self.run, question, best_only=best_only, alone=self._in_full)

    @property
    def is_closed(self) -> bool:
        """Whether every applicable bound is a closed form, with negligible time and memory."""
        if Sought(self.run, self.question).unknown not in ROWS:
            return False
        return all(_is_closed(bound, self.question) or bound.obstacle(self.run) for bound in self.bounds)

    def case(self, *, certified: bool = False) -> Case:
        """Return the answer with its notes, proofs and verdicts."""
        run, question = self.run, self.question
        case = self._answer()
        if (best := case.best) is not None and not question.targets:
            asked = Asked(self.command, self.given, self.sources, run, question, case, best, self.brief)
            case = self._warned_of_noise(self._with_notes(asked))
        if self._run_notes:
            case = case._replace(note_data=(*case.note_data, *self._run_notes))
        if run.algorithm.chained:
            case = case._replace(results=tuple(_with_allocation(run, result) for result in case.results))
        if certified:
            case = self._certified(case)
        from dpcalc.engine.attack.guess import guess_of

        query = query_of(self.command.name, self.given, question, certified=certified)
        case = self._with_risk(case._replace(guess=guess_of(case, run, question.orders), query=query))
        if question.curves:
            from dpcalc.engine.attack.curves import with_curves

            case = with_curves(case, run, question)
        case = case._replace(assertions=implied_gate(question, case))
        return case._replace(assertions=self._judged(case))

    def _answer(self) -> Case:
        """Return the case; if no bound covers the run, the error names the nearest covered one."""
        run, question, bounds = self.run, self.question, self.bounds
        try:
            return answer(run, question, bounds)
        except Incomplete as error:
            if not self._in_full:
                raise
            from dpcalc.engine.advice.missing import of_question

            raise of_question(error, run, question, bounds) from None
        except NotApplicable as error:
            if run.algorithm.order is Order.SAMPLE and run.algorithm.clipped and run.sampling is None:
                from dpcalc.engine.advice.notes import with_choices

                raise with_choices(error, run, question) from None
            if self._in_full and isinstance(error, MissingParameter):
                from dpcalc.engine.advice.missing import with_examples

                error = with_examples(error, run, question, bounds)
            from dpcalc.engine.advice.missing import with_nearest

            raise with_nearest(error, run, question, self.command) from None

    def _with_notes(self, asked: Asked) -> Asked:
        """Return the case with its notes; if they fail, the rows are kept."""
        case = asked.case
        notes = self.notes and (self.run.group_size or 1) == 1  # for groups advice takes too long
        try:
            with isolate_failure():
                if self.command.compares:
                    from dpcalc.engine.advice.notes import compared

                    case = compared(asked, self.bounds, hints=notes)
                elif notes:
                    from dpcalc.engine.advice.notes import notes_on

                    case = case._replace(note_data=(*case.note_data, *notes_on(asked, self.bounds)))
        except (BoundFailed, NotConverged) as error:
            case = case._replace(warnings=(*case.warnings, f"the notes {error.message} ({error.hint})"))
        return asked._replace(case=case)

    def _warned_of_noise(self, asked: Asked) -> Case:
        """Return the case with a warning if its noise has another likely reading."""
        run, case = self.run, asked.case
        if not run.typed("noise_std") or (run.noise_multiplier or 0.0) <= (run.noise_std or 0.0):
            return case
        from dpcalc.engine.advice.missing import misread_noise

        both = bool(self.gates) or not self.brief
        return case._replace(warnings=(*case.warnings, *misread_noise(asked, both=both)))

    def _with_risk(self, case: Case) -> Case:
        """Return the case with the risks in the question or in a gate."""
        if self.question.risks is None and not self.gates:
            return case
        from dpcalc.engine.gate import risks_of

        risks = risks_of(self.gates or (), self.question.risks)
        if risks is None:
            return case
        from dpcalc.engine.attack.risk import with_risk

        return with_risk(case, self.run, self.question.orders, risks)


def _is_closed(bound: Theorem, question: Question) -> bool:
    return not bound.slow and (bound.gives is Gdp or (bound.gives is Rdp and bool(question.orders)))


def bounds_of(record: Command, run: Run, question: Question, *, best_only: bool, alone: bool) -> list[Theorem]:
    """Return the bounds to evaluate."""
    bounds = for_algorithm(run.algorithm.name, record.families or run.algorithm.families)
    if best_only:
        if question.orders:  # the two forms of one bound are rounded in two ways
            return [bound for bound in bounds if bound.guarantee and not bound.unpromised(run)] or bounds
        return contenders(bounds, run)
    if record.compares and not alone:  # in a sweep, bounds with a missing promise are not worth their time
        return [bound for bound in bounds if not (bound.slow and bound.unpromised(run))]
    return bounds


def _with_allocation(run: Run, result: Result) -> Result:
    """Return the best result with its allocation of shifts."""
    if not result.best or run.schedule is None or run.algorithm.clipped:
        return result
    from dpcalc.theorems.one_pass.allocation import describe_allocation

    bound = lookup(result.bound)
    diameter = run.diameter if "diameter" in bound.reads else None
    allocation = describe_allocation(run.schedule, run.start_distance or 0.0, diameter, own=bound.given_allocation)
    return result._replace(details={**(result.details or {}), "allocation": allocation})


class Applicability(NamedTuple):
    """Whether a bound applies to a run: ``yes``, ``no`` or ``if promised``; and why not, with what would help."""

    algorithm: str
    bound: Theorem
    applies: str
    because: str


def applying(algorithm: str, given: Given) -> list[Applicability]:
    """Return whether each bound for the algorithm applies to the described run.

    Args:
        algorithm: one of those of `compare`.
        given: parameter name -> value.

    Raises:
        SpecError: the description is malformed.
    """
    _, run, _ = run_of(COMMANDS["compare"], Description({**given, "algorithm": algorithm}))
    return [_applicability(bound, run) for bound in for_algorithm(run.algorithm.name, run.algorithm.families)]


def _applicability(bound: Theorem, run: Run) -> Applicability:
    obstacle = bound.obstacle(run)
    if obstacle:
        return Applicability(run.algorithm.name, bound, "no", f"{obstacle.because} ({obstacle.cure})")
    unmet = "; ".join(bound.unpromised(run))
    return Applicability(run.algorithm.name, bound, "if promised" if unmet else "yes", unmet)


def side_by_side(
    command: str, given: Given, question: Question, *, gates: Sequence[Gate] = (), sources: Sources | None = None,
    **options: Any,
) -> Case:  # fmt: skip
    """Return the case as `ask` does; a case without a guarantee has no results but the reasons.

    Raises:
        SpecError: the description is malformed; comparing algorithms, one that cannot be so described says why instead.
    """
    try:
        return ask(command, given, question, gates=gates, sources=sources, **options)
    except GateRefused:
        raise
    except (SpecError, MissingParameter) as error:
        if not COMMANDS[command].compares:
            raise
        return without_guarantee(command, given, question, error, gates, sources)
    except (NotApplicable, Infeasible, NotConverged) as error:
        return without_guarantee(command, given, question, error, gates, sources)


def without_guarantee(
    command: str,
    given: Given,
    question: Question,
    error: DpcalcError,
    gates: Sequence[Gate],
    sources: Sources | None = None,
) -> Case:
    """Return the case of a run for which there is no guarantee; no gate holds."""
    description = Description(given, sources or {})
    algorithm = str(description.take("algorithm", COMMANDS[command].default))
    inputs = inputs_of(description, description.sources, question)
    failed = tuple(Assertion(gate.text, False, "no guarantee", None) for gate in gates)
    obstacle = Obstacle(algorithm, error.message, error.hint or "", error.parameters)
    return Case(algorithm, inputs, (), (obstacle,), failed)
