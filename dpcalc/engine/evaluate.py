"""One bound and one question: the result that the bound gives of epsilon, delta, mu or the Renyi divergence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dpcalc.engine.question import Question
from dpcalc.errors import DeltaMissing, NotApplicable
from dpcalc.model.quantities import Kind
from dpcalc.model.run import Run
from dpcalc.notions.guarantee import Guarantee, worst
from dpcalc.notions.notion import Answer
from dpcalc.numerics.floats import UNIT, is_short
from dpcalc.numerics.logspace import exp_down, exp_up
from dpcalc.references import SHORT
from dpcalc.report import Result
from dpcalc.theorems.batch_layout import worst_cases
from dpcalc.theorems.record import Theorem

# How near to the solution a search ends, in representable numbers:
WIDE = 1 << 22  # 1e-9: comparison rows that cost a search per evaluation
COARSE = 1 << 30  # 2e-7: bounds that cost tens of milliseconds
FINE = 1 << 16  # 1e-11: their epsilon, so that what was solved for is met when asked for
ROUGH = 1 << 44  # 4e-3: what a promise that is not made would give


def guarantee_of(bound: Theorem, run: Run, orders: tuple[float, ...] = ()) -> Guarantee:
    """Return what the theorem proves of the run, as an object that answers questions.

    Where it is of the record that is worst off, and that may be one of several, it is their worst.

    Raises:
        NotApplicable: a condition does not hold.
    """
    cases = worst_cases(run) if "index" in bound.reads else (run,)
    each = [guarantee_from(bound, bound.prove(case), orders) for case in cases]
    proved = each[0] if len(each) == 1 else worst(each)
    if (run.group_size or 1) == 1:
        return proved
    from dpcalc.engine.groups import for_groups

    return for_groups(bound, run, proved)


def guarantee_from(bound: Theorem, proved: Guarantee, orders: tuple[float, ...]) -> Guarantee:
    """Return what the theorem proves of one record, as an object that answers questions."""
    ulps = FINE if bound.slow else 2
    if _rounds_down(bound):
        return proved.rounded_down(ulps)
    return proved.asked(orders, ulps)


def is_lower(bound: Theorem) -> bool:
    """Return whether the bound says what nothing can beat."""
    return bound.kind == Kind.LOWER


def _rounds_down(bound: Theorem) -> bool:
    """Return whether the answers of the bound round down: a heuristic is true of certain runs, as a lower bound is."""
    return bound.kind in (Kind.LOWER, Kind.HEURISTIC)


def safe_budget(bound: Theorem, question: Question) -> tuple[float, float]:
    """Return epsilon and ln delta a hair to the side on which the bound's answer stays true; nan where not given.

    Upper bounds are asked a little less, lower bounds and heuristics a little more: the rounding of a typed decimal
    helps neither.
    """
    if not _rounds_down(bound):
        epsilon = math.nan if question.epsilon is None else question.safe_epsilon
        return epsilon, math.nan if question.log_delta is None else question.safe_log_delta
    epsilon = math.nan if question.epsilon is None else math.nextafter(question.epsilon, math.inf)
    log_delta = math.nan if question.log_delta is None else question.log_delta
    return epsilon, log_delta + 2.0 * UNIT * (1.0 + abs(log_delta))


class Described(NamedTuple):
    """What all rows of a bound and a run have in common.

    Attributes:
        bound: the theorem.
        unmet: the promises that it needs and the run does not make.
        kind: what may be said with its numbers.
        adjacency: of the run, as a report has it.
        reference: the paper, and where in it.
    """

    bound: Theorem
    unmet: tuple[str, ...]
    kind: Kind
    adjacency: str
    reference: str

    @classmethod
    def of(cls, bound: Theorem, run: Run) -> Described:
        """Return what the rows of the bound have in common."""
        unmet = bound.unpromised(run)
        kind = Kind.CONDITIONAL if unmet else _kind(bound, run)
        adjacency = (run.adjacency or "by-shift").replace("-", "_")
        return cls(bound, unmet, kind, adjacency, f"{SHORT[bound.reference]}, {bound.locator}")

    def row(
        self,
        quantity: str,
        value: float,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        log_delta: float | None = None,
        mu: float | None = None,
        order: float | None = None,
        conversion: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> Result:
        """Return a row of the report.

        Raises:
            NotApplicable: the value is no number.
        """
        bound = self.bound
        if math.isnan(value):
            raise NotApplicable(f"{bound.id} evaluated to nan")
        if self.unmet or bound.slack:
            demands = {"demands": list(self.unmet)} if self.unmet else {}
            details = {**(details or {}), **demands, **({"slack": bound.slack} if bound.slack else {})}
        return Result(
            bound.id, bound.title, quantity, value, self.kind, epsilon, delta, log_delta, mu, order, conversion,
            self.adjacency, bound.assumes, self.reference, False, details,
        )  # fmt: skip


def result_of(bound: Theorem, run: Run, quantity: str, value: float, **more: Any) -> Result:
    """Return the bound's row of the report; ``more`` are further fields of a `Result`."""
    return Described.of(bound, run).row(quantity, value, **more)


def _kind(bound: Theorem, run: Run) -> Kind:
    """Return what may be said with the number: what is exact for one record is an upper bound for several."""
    return Kind.UPPER if bound.kind is Kind.EXACT and (run.group_size or 1) > 1 else bound.kind


def conversion_fields(guarantee: Guarantee, answer: Answer, epsilon: float) -> dict[str, Any]:
    """Return the fields of a result that say how an answer came from what is proved.

    Args:
        guarantee, answer: what is proved, and what it answered.
        epsilon: the epsilon of the answer.
    """
    fields: dict[str, Any] = {"conversion": answer.conversion}
    if answer.order is not None and math.isfinite(answer.order):
        fields["order"] = answer.order
    if guarantee.mu is not None:
        fields["mu"] = guarantee.mu
    if answer.at_edge:
        fields["details"] = {"order_at_edge": True}
    if answer.conversion == "pld":
        errors = {"rounding": answer.rounding, "lattice": answer.lattice}
        fields["details"] = {name: error for name, error in errors.items() if error < math.inf}
    certificate = guarantee.certificate_at(epsilon=epsilon, order=answer.order)
    if certificate is not None:
        fields["details"] = {**fields.get("details", {}), "certificate": certificate.as_json()}
    return fields


def epsilon_rows(bound: Theorem, run: Run, question: Question) -> list[Result]:
    """Return the bound's epsilon at the delta asked."""
    guarantee, described = guarantee_of(bound, run, question.orders), Described.of(bound, run)
    if bound.slow and described.unmet:
        guarantee = guarantee.asked((), ROUGH)
    return _epsilon(guarantee, described, question)


def _epsilon(guarantee: Guarantee, described: Described, question: Question) -> list[Result]:
    log_delta = safe_budget(described.bound, question)[1]
    answer = guarantee.epsilon(log_delta, rough=question.rough)
    if math.isinf(answer.value):
        raise NotApplicable(*guarantee.no_epsilon)
    given: dict[str, Any] = {**question.budget, "epsilon": answer.value}
    fields = {**given, **conversion_fields(guarantee, answer, answer.value)}
    return [described.row("epsilon", answer.value, **fields)]


def delta_rows(bound: Theorem, run: Run, question: Question) -> list[Result]:
    """Return the bound's delta at the epsilon asked."""
    guarantee, described = guarantee_of(bound, run, question.orders), Described.of(bound, run)
    return _delta(guarantee.rough() if described.unmet else guarantee, described, question)


def _delta(guarantee: Guarantee, described: Described, question: Question) -> list[Result]:
    if guarantee.mu == math.inf:
        raise NotApplicable("gives no finite mu here", "more noise")
    epsilon = safe_budget(described.bound, question)[0]
    answer = guarantee.log_delta(epsilon)
    delta = exp_down(answer.value) if _rounds_down(described.bound) else exp_up(answer.value)
    budget: dict[str, Any] = {"epsilon": question.epsilon, "delta": delta, "log_delta": answer.value}
    return [described.row("delta", delta, **budget, **conversion_fields(guarantee, answer, epsilon))]


def mu_rows(bound: Theorem, run: Run, question: Question) -> list[Result]:
    """Return the bound's mu of Gaussian differential privacy."""
    return _mu(guarantee_of(bound, run), Described.of(bound, run), question)


def _mu(guarantee: Guarantee, described: Described, question: Question) -> list[Result]:
    if (mu := guarantee.mu) is None:
        raise DeltaMissing(
            "what is proved of this run has no mu: a delta is needed",
            "give --delta, --epsilon or --order; for example --delta 1e-6",
        )
    if math.isinf(mu):
        raise NotApplicable("gives no finite mu here", "more noise")
    return [described.row("mu", mu, mu=mu)]


def rdp_rows(bound: Theorem, run: Run, question: Question) -> list[Result]:
    """Return the bound's Renyi divergence at every order asked."""
    return _rdp(guarantee_of(bound, run), Described.of(bound, run), question)


def _rdp(guarantee: Guarantee, described: Described, question: Question) -> list[Result]:
    rows = []
    for order in question.orders:
        # A typed order such as 1.000000001 is off by a unit in order - 1; the divergence increases with the order.
        side = 1.0 if _rounds_down(described.bound) else math.inf
        asked = order if is_short(order) else math.nextafter(order, side)
        value = guarantee.rdp(asked)
        if math.isinf(value):
            raise NotApplicable(f"gives no finite RDP at order {order:g}", "a lower order, or more noise")
        certificate = guarantee.certificate_at(order=asked)
        details = None if certificate is None else {"certificate": certificate.as_json()}
        rows.append(described.row("rdp", value, order=order, mu=guarantee.mu, details=details))
    return rows


ANSWERS: dict[str, Callable[[Guarantee, Described, Question], list[Result]]] = {
    "epsilon": _epsilon, "delta": _delta, "mu": _mu, "rdp": _rdp,
}  # fmt: skip
"""The rows of a bound from what it proves, by what is sought: `dpcalc.engine.moved` asks of many positions."""
