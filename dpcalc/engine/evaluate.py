"""One bound and one question: the bound's result for epsilon, delta, mu or the Renyi divergence.

Group privacy: which guarantees extend to groups. Every record of a group must be covered, in every data set between.

The rule for a delta that is too large for a gate, shared by the command line, recipes and Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dpcalc.checked import Assertion
from dpcalc.errors import DeltaMissing, NotApplicable
from dpcalc.model.quantities import Adjacency, Kind, Quantity, Sampling
from dpcalc.model.question import Question
from dpcalc.model.run import Run
from dpcalc.notions.guarantee import Gdp, Guarantee, worst
from dpcalc.notions.notion import Answer
from dpcalc.numerics.floats import UNIT, exp_down, exp_up, is_short
from dpcalc.references import SHORT
from dpcalc.report import Case, Result
from dpcalc.theorems.batch_layout import worst_cases
from dpcalc.theorems.record import Theorem

if TYPE_CHECKING:
    pass


# How near to the solution a search ends, in representable numbers:
WIDE = 1 << 22  # 1e-9: comparison rows that cost a search per evaluation
COARSE = 1 << 30  # 2e-7: bounds that cost tens of milliseconds
FINE = 1 << 16  # 1e-11: their epsilon, so that a solution meets its budget when asked again
ROUGH = 1 << 44  # 4e-3: bounds with a missing promise


def guarantee_of(bound: Theorem, run: Run, orders: tuple[float, ...] = ()) -> Guarantee:
    """Return the theorem's guarantee for the run.

    If several records may be the worst one, it is the worst of their guarantees.

    Raises:
        NotApplicable: a condition does not hold.
    """
    guarantees, ulps = [], FINE if bound.slow else 2
    for case in worst_cases(run) if "index" in bound.reads else (run,):
        proved = bound.prove(case)
        guarantees.append(proved.rounded_down(ulps) if bound.rounds_down else proved.asked(orders, ulps))
    proved = guarantees[0] if len(guarantees) == 1 else worst(guarantees)
    return proved if (run.group_size or 1) == 1 else for_groups(bound, run, proved)


class Application:
    """A theorem, a run and a question: every row of a report comes from one.

    Attributes:
        bound, run, question: these.
        unmet: the promises that the theorem needs but the run does not make.
    """

    def __init__(self, bound: Theorem, run: Run, question: Question) -> None:
        self.bound, self.run, self.question = bound, run, question
        self.unmet = bound.unpromised(run)

    @property
    def guarantee(self) -> Guarantee:
        """The theorem's guarantee."""
        return guarantee_of(self.bound, self.run, self.question.orders)

    @property
    def budget(self) -> tuple[float, float]:
        """Epsilon and ln delta, moved slightly to the side on which the bound's answer stays true; nan if not given.

        They are slightly smaller for upper bounds and slightly larger for lower bounds and heuristics, to cover the
        rounding of a typed decimal.
        """
        question = self.question
        if not self.bound.rounds_down:
            epsilon = math.nan if question.epsilon is None else question.safe_epsilon
            return epsilon, math.nan if question.log_delta is None else question.safe_log_delta
        epsilon = math.nan if question.epsilon is None else math.nextafter(question.epsilon, math.inf)
        log_delta = math.nan if question.log_delta is None else question.log_delta
        return epsilon, log_delta + 2.0 * UNIT * (1.0 + abs(log_delta))

    @property
    def kind(self) -> Kind:
        """The kind of the result: a value that is exact for one record is an upper bound for groups."""
        if self.unmet:
            return Kind.CONDITIONAL
        return Kind.UPPER if self.bound.kind is Kind.EXACT and (self.run.group_size or 1) > 1 else self.bound.kind

    def row(self, quantity: str, value: float, **fields: Any) -> Result:
        """Return a row of the report; ``fields`` are further fields of a `Result`.

        Raises:
            NotApplicable: the value is no number.
        """
        bound = self.bound
        if math.isnan(value):
            raise NotApplicable(f"{bound.id} evaluated to nan")
        if self.unmet or bound.slack:
            demands = {"demands": list(self.unmet)} if self.unmet else {}
            slack = {"slack": bound.slack} if bound.slack else {}
            fields["details"] = {**(fields.get("details") or {}), **demands, **slack}
        return Result(
            bound.id, bound.title, quantity, value, self.kind, assumes=bound.assumes,
            adjacency=self.run.adjacency or "by-shift",
            reference=f"{SHORT[bound.reference]}, {bound.locator}", **fields,
        )  # fmt: skip


def conversion_fields(guarantee: Guarantee, answer: Answer, epsilon: float) -> dict[str, Any]:
    """Return the fields of a result on how the answer follows from the guarantee.

    Args:
        guarantee, answer: the guarantee and its answer.
        epsilon: the epsilon of the answer.
    """
    details: dict[str, Any] = {"order_at_edge": True} if answer.at_edge else {}
    on_a_lattice = answer.conversion == "pld"
    if on_a_lattice:
        errors = {"rounding": answer.rounding, "lattice": answer.lattice}
        details = {name: error for name, error in errors.items() if error < math.inf}
    certificate = guarantee.certificate_at(epsilon=epsilon, order=answer.order)
    if certificate is not None:
        details["certificate"] = certificate.as_json()
    order = answer.order if answer.order is not None and math.isfinite(answer.order) else None
    fields = {"conversion": answer.conversion, "order": order, "mu": guarantee.mu}
    return {**fields, "details": details} if details or on_a_lattice else fields


def _epsilon(asked: Application) -> list[Result]:
    """Return the epsilon at the delta asked."""
    guarantee = asked.guarantee
    if asked.bound.slow and asked.unmet:
        guarantee = guarantee.asked((), ROUGH)
    answer = guarantee.epsilon(asked.budget[1], rough=asked.question.rough)
    if math.isinf(answer.value):
        raise NotApplicable(*guarantee.no_epsilon)
    budget = {**asked.question.budget, "epsilon": answer.value}
    return [asked.row("epsilon", answer.value, **budget, **conversion_fields(guarantee, answer, answer.value))]


def _delta(asked: Application) -> list[Result]:
    """Return the delta at the epsilon asked."""
    guarantee = asked.guarantee.rough() if asked.unmet else asked.guarantee
    if guarantee.mu == math.inf:
        raise NotApplicable("gives no finite mu here", "more noise")
    epsilon, _ = asked.budget
    answer = guarantee.log_delta(epsilon)
    delta = exp_down(answer.value) if asked.bound.rounds_down else exp_up(answer.value)
    budget = {"epsilon": asked.question.epsilon, "delta": delta, "log_delta": answer.value}
    return [asked.row("delta", delta, **budget, **conversion_fields(guarantee, answer, epsilon))]


def _mu(asked: Application) -> list[Result]:
    """Return mu of Gaussian differential privacy."""
    mu = guarantee_of(asked.bound, asked.run).mu
    if mu is None:
        raise DeltaMissing(
            "what is proved of this run has no mu: a delta is needed",
            "give --delta, --epsilon or --order; for example --delta 1e-6",
        )
    if math.isinf(mu):
        raise NotApplicable("gives no finite mu here", "more noise")
    return [asked.row("mu", mu, mu=mu)]


def _rdp(asked: Application) -> list[Result]:
    """Return the Renyi divergence at every order asked."""
    guarantee, rows = guarantee_of(asked.bound, asked.run), []
    for order in asked.question.orders:
        # A typed order such as 1.000000001 is off by a unit in order - 1; the divergence increases with the order.
        side = 1.0 if asked.bound.rounds_down else math.inf
        safe = order if is_short(order) else math.nextafter(order, side)
        value = guarantee.rdp(safe)
        if math.isinf(value):
            raise NotApplicable(f"gives no finite RDP at order {order:g}", "a lower order, or more noise")
        certificate = guarantee.certificate_at(order=safe)
        details = None if certificate is None else {"certificate": certificate.as_json()}
        rows.append(asked.row("rdp", value, order=order, mu=guarantee.mu, details=details))
    return rows


ROWS: dict[str, Callable[[Application], list[Result]]] = {
    "epsilon": _epsilon, "delta": _delta, "mu": _mu, "rdp": _rdp,
}  # fmt: skip
"""The quantities that are answered without a search over the run."""


_ONE_WAY = (Adjacency.ADD, Adjacency.REMOVE)


def for_groups(bound: Theorem, run: Run, proved: Guarantee) -> Guarantee:
    """Return the guarantee for groups of the run's ``group_size``, from that for one record.

    Raises:
        NotApplicable: nothing follows for groups.
    """
    size = run.group_size or 1
    if size == 1 or "group_size" in bound.reads:  # the theorem is of groups itself
        return proved
    if bound.kind in (Kind.PUBLISHED, Kind.HEURISTIC):
        raise NotApplicable(
            f"is {'published' if bound.kind is Kind.PUBLISHED else 'a heuristic'} for one record",
            "leave out --group-size to see it",
            parameters=("group_size",),
        )
    if run.adjacency in _ONE_WAY and not isinstance(proved, Gdp):  # a chain goes both ways: what is one way is not more
        run = run.changed(adjacency=Adjacency.ADD_REMOVE)
        proved = bound.prove(run)
    refuse_groups(run, gaussian=isinstance(proved, Gdp))
    return proved.grouped(size)


def refuse_groups(run: Run, *, gaussian: bool = False) -> None:
    """Raise NotApplicable if a guarantee for one record need not hold for every record of a group.

    ``gaussian``: whether the guarantee is Gaussian privacy, the same in both orders.
    """
    if run.sampling == Sampling.FIXED and run.adjacency in (Adjacency.ADD_REMOVE, *_ONE_WAY):
        raise NotApplicable(
            "with batches of fixed size the rate grows when records leave, and no guarantee here covers that",
            "use --adjacency replace-one or zero-out, or --sampling poisson",
            parameters=("group_size",),
        )
    if run.typed("index") or run.typed("window"):
        raise NotApplicable(
            "--index is about one record, and a group has several", "leave out --index and --window",
            parameters=("group_size",),
        )  # fmt: skip
    if run.adjacency in _ONE_WAY and not gaussian:
        raise NotApplicable(
            f"what groups cost needs both directions, and the adjacency is {run.adjacency}",
            "use --adjacency add-remove",
            parameters=("group_size",),
        )  # fmt: skip


def contenders(bounds: Sequence[Theorem], run: Run) -> list[Theorem]:
    """Return the bounds of which one will be the best guarantee; all if none is a guarantee."""
    guarantees = [bound for bound in bounds if bound.guarantee and not bound.unpromised(run)]
    ids = {bound.id for bound in guarantees}
    return [bound for bound in guarantees if bound.implied_by not in ids] or list(bounds)


def implied_gate(question: Question, case: Case) -> tuple[Assertion, ...]:
    """Return the check that is implied by giving epsilon and delta with all that gives epsilon at this delta."""
    if question.epsilon is None:
        return ()
    best = case.best
    if best is None or best.quantity != Quantity.EPSILON:
        return ()
    slack = question.epsilon - best.value
    return (Assertion(f"epsilon<={question.epsilon!r}", best.value <= question.epsilon, best.value, slack),)
