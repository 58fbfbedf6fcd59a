"""A case with an audit beside its guarantee: a run is described, accounted, and attacked.

A user may give the two data sets of the attack, which differ in one record.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.checked import Assertion
from dpcalc.engine.ask import ask, without_guarantee
from dpcalc.engine.attack.stated import risk_of_guarantee
from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.evaluate import guarantee_of
from dpcalc.engine.gate import Gate
from dpcalc.engine.question import run_of
from dpcalc.errors import Infeasible, MissingParameter, NotApplicable, NotConverged, SpecError
from dpcalc.model.algorithm import ALGORITHMS, Order, Source
from dpcalc.model.draft import NOISE_SCALES, Description
from dpcalc.model.loss import Loss
from dpcalc.model.quantities import Adjacency, Quantity
from dpcalc.model.question import Question
from dpcalc.model.run import Run
from dpcalc.notions.guarantee import Guarantee
from dpcalc.numerics.floats import exp_up, up
from dpcalc.report import Case, Result
from dpcalc.theorems.record import lookup
from dpcalc.training.audit.attacks import Attack, Pair, pairs, refuse_unfit
from dpcalc.training.audit.estimate import Audit, Progress, Setup, audit, check_setup, to_json
from dpcalc.training.audit.scores import Proved, Scores, refuse_one_way
from dpcalc.training.data.tables import Table, read
from dpcalc.training.rule.draft import Draft
from dpcalc.training.run.domain import Ball
from dpcalc.training.run.plan import Batch, Plan, plan, refuse_unexecutable
from dpcalc.training.run.problem import Problem, verify
from dpcalc.training.run.remote import There
from dpcalc.version import __version__

Array = NDArray[np.float64]


def pair_of_files(run: Run, loss: Loss, first: str, second: str) -> Pair:
    """Return the pair of two files.

    Args:
        run: as accounted.
        loss: the loss.
        first, second: paths of tables, the target in the last column.

    Raises:
        SpecError: a file cannot be read, their columns differ, they are not neighbours of this run that differ in one
            record, or a record is outside the bounds of the loss.
    """
    read_tables = [read(path) for path in (first, second)]
    if read_tables[0].names != read_tables[1].names:
        raise SpecError(
            "the columns of the data sets have other names, or another order", "let both files have the same header"
        )
    tables = [_cells(table) for table in read_tables]
    shape = tables[0].shape
    if tables[1].shape != shape:
        raise SpecError(f"the data sets have shapes {shape} and {tables[1].shape}", "they must differ in one record")
    row = _differing(tables[0], tables[1])
    planned = plan(run, shape[0], shape[1] - 1)
    if planned.order is Order.FIXED and run.typed("index") and run.index != row + 1:
        raise SpecError(
            f"the data sets differ in record {row + 1}, and the guarantee is of the one at position {run.index}",
            f"give --index {row + 1}, or leave it out",
        )
    one, other = (
        Problem(np.ascontiguousarray(cells[:, :-1]), np.ascontiguousarray(cells[:, -1]), loss) for cells in tables
    )
    for problem in (one, other):
        verify(problem, norm=planned.norm)
    if run.adjacency == Adjacency.NULL_RECORD and all(problem.features[row].any() for problem in (one, other)):
        raise SpecError(
            f"neighbours differ in a null record, and record {row + 1} is none in either data set",
            "let its features be 0 in one of them",
        )
    return Pair(Attack.CUSTOM, f"those of the files, record {row + 1} replaced", planned, one, other, None)


def _cells(table: Table) -> Array:
    assert isinstance(table.cells, np.ndarray)
    return table.cells


def _differing(first: Array, second: Array) -> int:
    """Return the row in which two tables differ.

    Raises:
        SpecError: they are the same, or differ in more rows.
    """
    rows = np.flatnonzero((first != second).any(axis=1))
    if len(rows) != 1:
        raise SpecError(f"the data sets differ in {len(rows)} records", "they must differ in exactly one")
    return int(rows[0])


COMMAND = "compare"
"""The command whose parameters describe the run."""


class Inquiry(NamedTuple):
    """A question about a run that is to be attacked.

    Attributes:
        given: parameter name -> value, None where not given; ``schedule`` may hold a path.
        question: epsilon and delta; the noise is solved for if it is not given.
        attack: an `Attack`.
        setup: the number of runs, and the confidence.
        custom: the paths of two data sets, for the custom attack.
        as_released: whether each run is executed and rounded like a released model; the attack on low-order bits always
            does that.
        sources, gates, brief: as in `dpcalc.engine.ask.ask`.
        progress: called with (steps of runs done, in all).
        there: other machines that compute the runs.
        scores: scores of canaries, in place of an attack.
    """

    given: Mapping[str, Any]
    question: Question
    attack: str
    setup: Setup
    custom: tuple[str, str] | None = None
    as_released: bool = False
    sources: Mapping[str, Source] | None = None
    gates: Sequence[Gate] = ()
    progress: Progress | None = None
    brief: bool = False
    there: There | None = None
    scores: Scores | None = None

    def case(self) -> Case:
        """Return the case of a run with the audit; a gate fails if the audit contradicts the guarantee.

        Raises:
            SpecError: the description, the numbers or the data sets are malformed.
            NotApplicable, Infeasible: there is no guarantee, or the attack does not apply to the run.
        """
        check_setup(self.setup)
        if self.scores is not None and not any(value is not None for value in self.given.values()):
            return self._claimed(self.scores)
        algorithm = ALGORITHMS.get(str(self.given.get("algorithm")))
        if algorithm is not None and self.scores is None:
            refuse_unexecutable(algorithm)
        case = ask(
            COMMAND, self.given, self.question, sources=self.sources, gates=self.gates, notes=False, brief=self.brief
        )
        best = case.best
        assert best is not None
        epsilon, delta = _point(best)
        mu = self._least_mu(case, best)
        if self.scores is not None:
            return self._compared(case, best, self.scores, (epsilon, delta, mu))
        attacks = self._attacks(best)
        outcome = audit(attacks, delta, self.setup, self.progress, self.there)
        gate = _gate(outcome, epsilon, mu)
        return case._replace(audit=to_json(outcome, epsilon, mu), assertions=(*case.assertions, gate))

    def _compared(
        self, case: Case, best: Result, scores: Scores, point: tuple[float | None, float | None, float | None]
    ) -> Case:
        """Return the case with the bounds from the scores beside the guarantee."""
        epsilon = point[0]
        _, run, _ = run_of(COMMANDS[COMMAND], Description(self._with_noise(best)))
        refuse_one_way(run.adjacency)
        if run.adjacency == Adjacency.REPLACE_ONE:
            scores = scores._replace(name=f"{scores.name} (out: another record in the place of the canary)")
        return _beside(case, scores, point, _cuts(guarantee_of(lookup(best.bound), run), epsilon))

    def _claimed(self, scores: Scores) -> Case:
        """Return the case of a claimed (epsilon, delta) without a described run, with the bounds from the scores."""
        epsilon, log_delta = self.question.epsilon, self.question.log_delta
        if epsilon is None or log_delta is None:
            raise SpecError(
                "scores stand beside what a run promises, and nothing is said of it",
                "describe the run by --algorithm and its words, or give what is claimed of it: -e 2 -d 1e-5",
            )
        case = risk_of_guarantee("risk", {}, self.question, sources=self.sources, gates=self.gates)
        return _beside(case, scores, (epsilon, self.question.delta, None), [(epsilon, exp_up(log_delta))])

    def case_among_others(self) -> Case:
        """As `case`, for one of several cases: one that cannot be audited states the reason.

        Raises:
            SpecError: the description is malformed.
        """
        try:
            return self.case()
        except (NotApplicable, Infeasible, NotConverged) as error:
            return without_guarantee(COMMAND, self.given, self.question, error, self.gates, self.sources)

    def _attacks(self, best: Result) -> list[Pair]:
        _, run, _ = run_of(COMMANDS[COMMAND], Description(self._with_noise(best)))
        refuse_unfit(run)
        if self.custom is None:
            attacks = pairs(run, plan_of(run), self.attack)
        elif self.given.get("loss") is None:
            raise SpecError("a custom attack needs the loss that is trained", "give --loss and --feature-bound")
        else:
            attacks = [pair_of_files(run, Draft(Description(self.given)).loss, *self.custom)]
        if self.as_released or self.attack == Attack.LOW_BITS:
            return [_rounded(pair, best.bound) for pair in attacks if pair.steps is None]
        return attacks

    def _with_noise(self, best: Result) -> dict[str, Any]:
        """Return the parameters of the run, with its noise if that was solved for."""
        return {**self.given, **({best.quantity: best.value} if best.quantity in NOISE_SCALES else {})}

    def _least_mu(self, case: Case, best: Result) -> float | None:
        """Return the least guaranteed mu of the run as accounted; None where there is none.

        If the noise was solved for, each bound found its own, and its mu belongs to that one. So all bounds are asked
        again with the noise of the run.
        """
        if best.quantity in NOISE_SCALES:
            known = self.question._replace(epsilon=None, targets=(), risks=None, curves=False)
            try:
                case = ask(COMMAND, self._with_noise(best), known, notes=False, brief=True)
            except (NotApplicable, Infeasible, NotConverged, MissingParameter):
                return None
        mus = [result.mu for result in case.results if result.guarantee and result.mu is not None]
        return min(mus, default=None)


def paths_of_custom(attack: str, data: str | None, neighbour: str | None) -> tuple[str, str] | None:
    """Return the paths of the two data sets of a custom attack; None for another attack.

    Raises:
        SpecError: they are given with another attack, or one of them is missing.
    """
    if attack != Attack.CUSTOM:
        if data is not None or neighbour is not None:
            raise SpecError("--data and --neighbour are of a custom attack", "give --attack custom, or leave them out")
        return None
    if data is None or neighbour is None:
        raise SpecError("a custom attack needs two data sets", "give --data FILE and --neighbour FILE")
    return data, neighbour


def bug_report(case: Case) -> str:
    """Return the bug report for a contradicted guarantee."""
    audit, best = case.audit, case.best
    assert audit is not None
    assert best is not None
    inputs = ", ".join(f"{name}={value!r}" for name, (value, _) in case.inputs.items())
    events = (f"{e['says']}: {e['true_positives']} true, {e['false_positives']} false" for e in audit["events"])
    return "\n".join(
        (
            f"dpcalc {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"algorithm: {case.algorithm}",
            f"inputs: {inputs}",
            f"bound: {best.bound}, epsilon = {audit['epsilon']!r} at delta = {audit['delta']!r}, mu = {audit['mu']!r}",
            f"audit: epsilon >= {audit['epsilon_lower']!r}, mu >= {audit['mu_lower']!r}, with confidence "
            f"{audit['confidence']!r}",
            f"attack: {audit['attack']} ({audit['others']}), {audit['replicas']} runs, seed {audit['seed']}; "
            + "; ".join(events),
        )
    )


def plan_of(run: Run) -> Plan:
    """Return the plan of the run."""
    if run.records is None:
        raise MissingParameter("runs are carried out, and the number of records is not known", "give --records")
    planned = plan(run, run.records, run.dimension or 1)
    return _own_message(run, planned) if run.algorithm.local else planned


def _rounded(pair: Pair, bound: str) -> Pair:
    """Return the pair with runs as for a released model.

    Raises:
        NotApplicable: rounding errors have no bound, so such a model is never released.
    """
    from dpcalc.training.rule.guarantee import rounding_of

    return pair._replace(rounding=rounding_of(bound, pair.plan, pair.first.loss), one_by_one=True)


def _own_message(run: Run, planned: Plan) -> Plan:
    """Return the plan of the one step that uses the record: only its message depends on the record."""
    place = run.index or planned.records
    for batch in planned.batches:
        if place <= batch.steps * batch.size:
            return planned._replace(
                records=batch.size, batches=(Batch(1, batch.size, batch.divisor),), passes=1, domain=Ball()
            )
        place -= batch.steps * batch.size
    raise SpecError(f"the record at position {run.index} is dropped", "choose another --index")


def _point(best: Result) -> tuple[float | None, float | None]:
    """Return the guaranteed epsilon and delta, or (None, None) if the guarantee is a mu.

    Raises:
        SpecError: the guarantee is a Renyi divergence.
    """
    if best.quantity == Quantity.RDP:
        raise SpecError("an audit is of epsilon at a delta, or of mu", "give --delta in place of --order")
    epsilon = best.value if best.quantity == Quantity.EPSILON else best.epsilon
    if epsilon is None or best.delta is None:
        return None, None
    return epsilon, best.delta


_SHARES = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0)
"""Shares of the guaranteed epsilon at which its curve is compared with scores; each point costs a composition."""


def _cuts(guarantee: Guarantee, epsilon: float | None) -> list[tuple[float, float]]:
    """Return points (epsilon, delta) of the privacy profile, with delta rounded up."""
    try:
        at = [share * (epsilon or 1.0) for share in _SHARES]
        return [(e, exp_up(guarantee.log_delta(e).value)) for e in at]
    except NotApplicable:
        return []


def _beside(
    case: Case, scores: Scores, point: tuple[float | None, float | None, float | None], cuts: list[tuple[float, float]]
) -> Case:
    """Return the case with the bounds from scores, and a gate that fails if they contradict its guarantee."""
    epsilon, delta, mu = point
    proved = scores.prove(None if delta is None else up(delta), cuts)  # a typed decimal may be above its double
    gate = _gate(proved, epsilon, mu)
    if proved.refuted and gate.passed:
        gate = Assertion("audited curve<=guaranteed", False, proved.epsilon or proved.mu, 0.0)
    return case._replace(audit=proved.to_json(scores, delta, epsilon, mu), assertions=(*case.assertions, gate))


def _gate(found: Audit | Proved, epsilon: float | None, mu: float | None) -> Assertion:
    """Return the gate that fails if the runs contradict the guarantee."""
    if epsilon is not None and found.epsilon is not None:
        text, value, slack = "audited epsilon<=guaranteed", found.epsilon, epsilon - found.epsilon
    else:
        text, value, slack = "audited mu<=guaranteed", found.mu, (mu if mu is not None else found.mu) - found.mu
    if mu is not None and found.mu > mu:
        text, value, slack = "audited mu<=guaranteed", found.mu, mu - found.mu
    return Assertion(text, slack >= 0.0, value, slack)
