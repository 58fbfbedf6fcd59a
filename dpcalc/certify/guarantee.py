"""Definitions by their notion of privacy, with the proofs of epsilon and of a solved parameter.

The classes have the names of those in `dpcalc.notions.guarantee` but share no code with them. Here a formula in balls
gives the value, in one reading of a run and a question.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from flint import arb, ctx, fmpq

from dpcalc.certify.numerics import balls, composition
from dpcalc.certify.numerics.balls import CAP, START, ZERO, OutOfReach, Undecided, double, infinite, log_sum, precision
from dpcalc.certify.numerics.sums import BELOW, PROVED, UNDECIDED, Enclosure, enclosed, place_of
from dpcalc.certify.runs.run import RunInputs
from dpcalc.errors import NotConverged
from dpcalc.model.quantities import Adjacency, Quantity

if TYPE_CHECKING:
    from dpcalc.certify.reading import Reading

LOG_DELTA = "log_delta"
"""The enclosed quantity if a delta is reported."""

_DIGITS = 20


class Open(NotConverged):
    """A result cannot be certified; the text says why."""


class Proof(NamedTuple):
    """An enclosure of the true value of ``quantity``.

    Attributes:
        quantity: the enclosed quantity, by its name in JSON.
        lower, upper: the ends as decimals, rounded outwards.
        bits: the working precision of the proof.
        place: the place of the reported value: `PROVED`, `BELOW` or `UNDECIDED`.
        alone: why the theorem does not cover the other reading of the inputs; empty if it covers both.
    """

    quantity: str
    lower: str
    upper: str
    bits: int
    place: str
    alone: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the proof as the field ``certified`` of a result."""
        fields = {"quantity": self.quantity, "lower": self.lower, "upper": self.upper, "bits": self.bits}
        return {**fields, "alone": self.alone} if self.alone else fields


def proof_by(quantity: str, enclosure: Enclosure) -> Proof:
    """Return the proof of a quantity by an enclosure."""
    lower, upper = enclosure.ends(_DIGITS)
    return Proof(quantity, lower, upper, enclosure.bits, enclosure.place)


def proof_between(quantity: str, low: arb, high: arb, bits: int, place: str) -> Proof:
    """Return the proof that a quantity lies between two balls; their union would be wider."""
    lower = Enclosure(low, bits, place).ends(_DIGITS)[0]
    return Proof(quantity, lower, Enclosure(high, bits, place).ends(_DIGITS)[1], bits, place)


def weakest(proofs: Iterable[Proof]) -> Proof:
    """Return the weakest proof.

    Raises:
        Open: it proves nothing.
    """
    rank = (PROVED, UNDECIDED, BELOW)
    proof = max(proofs, key=lambda one: rank.index(one.place))
    if proof.place == UNDECIDED:
        raise Open(f"open at {proof.bits} bits")
    return proof


_EXPONENTS = range(50, 0, -2)
"""The arguments tried near a value differ from it relatively by 2^-k for these k, the nearest first."""

Excess = Callable[[arb], arb]


def least_argument(quantity: str, value: float, excess: Excess) -> Proof:
    """Return the place of the value relative to the least argument at which the decreasing excess is <= 0."""
    place, bits = place_of(lambda: excess(double(value)))
    if place == UNDECIDED:
        return Proof(quantity, "", "", bits, UNDECIDED)
    if place == PROVED:
        return _from_below(quantity, value, excess, bits)
    return _from_above(quantity, value, excess, bits)


def _from_below(quantity: str, value: float, excess: Excess, bits: int) -> Proof:
    """Return the proof for a value that meets the target: an argument below it does not."""
    x = double(value)
    for k in _EXPONENTS if value else ():
        with precision(CAP):
            smaller = x * (1 - arb(2) ** -k)
        place, spent = place_of(functools.partial(excess, smaller))
        bits = max(bits, spent)
        if place == BELOW:
            return proof_between(quantity, smaller, x, bits, PROVED)
    return proof_between(quantity, arb(0), x, bits, PROVED)


def _from_above(quantity: str, value: float, excess: Excess, bits: int) -> Proof:
    """Return the disproof of a value that misses the target; its upper end is a near argument that meets it, if any."""
    x = double(value)
    for k in _EXPONENTS:
        with precision(CAP):
            larger = x * (1 + arb(2) ** -k) + arb(2) ** -1000
        place, spent = place_of(functools.partial(excess, larger))
        bits = max(bits, spent)
        if place == PROVED:
            return proof_between(quantity, x, larger, bits, BELOW)
    return Proof(quantity, repr(value), "inf", bits, BELOW)


EPSILON = Quantity.EPSILON.value


class Guarantee:
    """A definition's formula in one reading of a run and a question."""

    def __init__(self, formula: Callable[[RunInputs], Any], reading: Reading) -> None:
        self.formula, self.reading = formula, reading

    def mu(self) -> arb:
        """Return mu of Gaussian differential privacy."""
        raise Open("a rule that gives no mu")

    def rdp(self) -> arb:
        """Return the Renyi divergence at the order of the result."""
        raise Open("a rule that gives no Renyi divergence")

    def log_delta(self, epsilon: arb | fmpq) -> arb:
        """Return ln delta at an epsilon."""
        raise Open("a rule that gives epsilon at a delta only")

    def epsilon(self) -> arb:
        """Return epsilon at the delta of the question."""
        raise Open("a rule that gives no epsilon in closed form")

    def proof(self) -> Proof:
        """Return the proof of the reported value; a solved parameter must keep the budget."""
        proofs: dict[str, Callable[[], Proof]] = {
            Quantity.MU: self.mu_proof,
            Quantity.RDP: self.rdp_proof,
            Quantity.DELTA: self.delta_proof,
            Quantity.EPSILON: self.epsilon_proof,
        }
        return proofs.get(self.reading.result.quantity, self.budget_proof)()

    def mu_proof(self) -> Proof:
        """Return the proof of the reported mu."""
        return proof_of_value(Quantity.MU.value, self.reading.result.value, self.mu)

    def epsilon_proof(self) -> Proof:
        """Return the proof of an epsilon given by a formula."""
        return proof_of_value(EPSILON, self.reading.result.value, self.epsilon)

    def rdp_proof(self) -> Proof:
        """Return the proof of the reported Renyi divergence."""
        return proof_of_value("rdp", self.reading.result.value, self.rdp)

    def delta_proof(self) -> Proof:
        """Return the proof of the reported ln delta, which is at most 0."""
        value = self.reading.result.log_delta
        assert value is not None
        epsilon = self.reading.epsilon()
        return proof_of_value(LOG_DELTA, value, lambda: balls.capped(self.log_delta(epsilon)))

    def budget_proof(self) -> Proof:
        """Return the proof that the solved parameter keeps to the epsilon that was asked for."""
        return proof_within(EPSILON, self.epsilon, lambda: arb(self.reading.epsilon()))


class Profile(Guarantee):
    """A privacy profile: epsilon -> ln delta. A reported epsilon must have a small enough delta."""

    def log_delta(self, epsilon: arb | fmpq) -> arb:
        """Return ln delta at an epsilon."""
        return self.formula(self.reading.inputs(epsilon=epsilon))

    def epsilon_proof(self) -> Proof:
        """Return the proof that delta at the reported epsilon is at most that of the question, with the margin."""
        return least_argument(
            EPSILON,
            self.reading.result.value,
            lambda epsilon: balls.capped(self.log_delta(epsilon)) - self.reading.log_delta(),
        )

    def budget_proof(self) -> Proof:
        """Return the proof that the solved parameter keeps to the delta that was asked for."""
        return proof_within(LOG_DELTA, lambda: self.log_delta(self.reading.epsilon()), self.reading.log_delta)


class Searched(Profile):
    """A privacy profile that is the best of a search, evaluated at the result's certificate.

    A certificate that proves less than the reported number does not count. It does not disprove the number.
    """

    def epsilon_proof(self) -> Proof:
        """Return the proof that delta at the reported epsilon is at most that asked for."""
        value = double(self.reading.result.value)
        return proof_by_certificate(lambda: self.log_delta(value), self.reading.log_delta)

    def budget_proof(self) -> Proof:
        """Return the proof that the solved parameter keeps to the delta that was asked for."""
        return proof_by_certificate(lambda: self.log_delta(self.reading.epsilon()), self.reading.log_delta)

    def delta_proof(self) -> Proof:
        """Return the proof that ln delta is at most the reported one."""
        value = self.reading.result.log_delta
        assert value is not None
        return proof_by_certificate(lambda: self.log_delta(self.reading.epsilon()), lambda: double(value))


FINENESS = (0, 2, 5, 12)
"""The fineness of a composition's knots in each attempt; the first attempt uses moments."""


class Composition(Guarantee):
    """A composition of dominating pairs: the formula gives its parts, and the proof uses their characteristic function.

    The formula may add ln of a failure probability. The proof shows that the true delta does not exceed the reported
    one, independently of the lattice behind it.
    """

    def epsilon_proof(self) -> Proof:
        """Return the proof that delta at the reported epsilon is at most that asked for."""
        return self._proof(double(self.reading.result.value), self.reading.log_delta)

    def budget_proof(self) -> Proof:
        """Return the proof that the solved parameter keeps to the delta that was asked for."""
        return self._proof(arb(self.reading.epsilon()), self.reading.log_delta)

    def delta_proof(self) -> Proof:
        """Return the proof that ln delta is at most the reported one."""
        value = self.reading.result.log_delta
        assert value is not None
        return self._proof(arb(self.reading.epsilon()), lambda: double(value))

    def _proof(self, epsilon: arb, limit: Callable[[], arb]) -> Proof:
        """Return the proof that ln delta is at most the limit.

        Raises:
            Open: the finest enclosure does not end below the limit.
        """
        with precision(START):
            about = float(limit().mid())
        if about >= 0.0:
            return proof_by(LOG_DELTA, Enclosure(arb(0), START, PROVED))
        said, failure = self.said(epsilon, about)
        proofs = [
            proof_of_parts(parts, epsilon, about, limit, failure, self._known(order, epsilon, about))
            for order, parts in enumerate(self.orders(said))
        ]
        return max(proofs, key=lambda proof: float(proof.upper))

    def _known(self, order: int, epsilon: arb, about: float) -> dict[int, arb]:
        """Return the known upper bounds on ln delta of one order by fineness."""
        with precision(START):
            middle = float(epsilon.mid())
            numbers = (order, about, middle, bool(epsilon == double(middle)))
        known: dict[int, arb] = self.reading.upper_bounds().setdefault(numbers, {})
        return known

    def orders(self, parts: list[composition.Part]) -> list[list[composition.Part]]:
        """Return the parts in each order that needs a proof."""
        return [parts]

    def said(self, epsilon: arb, about: float) -> tuple[list[composition.Part], arb]:
        """Return the formula's value: the parts and ln of the failure probability.

        It may leave out what is rare beside exp(``about``), as a failure.
        """
        with precision(START):
            value = self.formula(self.reading.inputs(epsilon=epsilon, about=about))
        return value if isinstance(value, tuple) else (value, ZERO)


def proof_of_parts(
    parts: list[composition.Part],
    epsilon: arb,
    about: float,
    limit: Callable[[], arb],
    failure: arb = ZERO,
    known: dict[int, arb] | None = None,
) -> Proof:
    """Return the proof that ln delta of a composition is at most the limit.

    Args:
        parts: the composed parts.
        epsilon: at which delta is bounded.
        about: the limit as a double.
        limit: the limit of ln delta.
        failure: ln of a failure probability that is added to delta.
        known: fineness -> ln delta without the failure probability, as far as known.

    Raises:
        Open: the finest enclosure does not end below the limit.
    """
    known = {} if known is None else known
    with precision(START):
        for fineness in FINENESS:
            if fineness not in known:
                try:
                    known[fineness] = composition.log_delta(parts, epsilon, about, fineness)
                except OutOfReach:
                    if fineness and known[0] < 0:  # moments gave a bound, and no lattice a better one
                        break
                    raise
            ball = log_sum(known[fineness], failure)
            if ball <= limit():
                return proof_by(LOG_DELTA, Enclosure(ball, START, PROVED))
    raise Open(f"proved is ln delta <= {Enclosure(ball, START, PROVED).ends(12)[1]}, which is above it")


class InOrders(Composition):
    """A composition whose formula gives the parts for a removed record; the adjacency decides the orders."""

    def orders(self, parts: list[composition.Part]) -> list[list[composition.Part]]:
        """Return the parts in each order that needs a proof."""
        removed, added = parts, [part.exchanged() for part in parts]
        adjacency = self.reading.parameters["adjacency"]
        if adjacency in (Adjacency.REMOVE, Adjacency.ADD):
            return [removed if adjacency == Adjacency.REMOVE else added]
        return [removed] if all(part.other is None for part in removed) else [removed, added]


class Gdp(Profile):
    """mu-Gaussian differential privacy."""

    def mu(self) -> arb:
        """Return mu."""
        return self.formula(self.reading.inputs())

    def rdp(self) -> arb:
        """Return a mu^2/2 at the order a of the result."""
        mu = self.mu()
        return self.reading.order() * mu * mu / 2

    def log_delta(self, epsilon: arb | fmpq) -> arb:
        """Return ln delta at an epsilon."""
        return balls.log_delta(arb(epsilon), self.mu())


class Rdp(Guarantee):
    """A Renyi curve, at the order of the result and by its conversion."""

    def rdp(self) -> arb:
        """Return the Renyi divergence at the order of the result."""
        return self.formula(self.reading.inputs(order=self.reading.result.order))

    def log_delta(self, epsilon: arb | fmpq) -> arb:
        """Return ln delta at an epsilon, by the conversion of Canonne et al."""
        if self.reading.result.order is None:
            raise Open("no order gives a delta below 1")
        return balls.canonne_log_delta(self.reading.order(), self.rdp(), arb(epsilon))

    def epsilon(self) -> arb:
        """Return epsilon at the delta of the question, by the order and the conversion of the result."""
        result = self.reading.result
        if result.order is None or str(result.conversion) not in balls.EDGES:
            raise Open(f"the conversion {result.conversion} is not written down")
        edge = balls.EDGES[str(result.conversion)]
        return edge(self.reading.order(), self.rdp(), self.reading.log_delta()).max(arb(0))

    def epsilon_proof(self) -> Proof:
        """Return the proof of an epsilon; the exact conversion has no formula but a test."""
        if self._exact:
            return least_argument(EPSILON, self.reading.result.value, self._excess)
        return super().epsilon_proof()

    def budget_proof(self) -> Proof:
        """Return the proof that the solved parameter keeps to the epsilon that was asked for."""
        if not self._exact:
            return super().budget_proof()
        place, bits = place_of(lambda: self._excess(arb(self.reading.epsilon())))
        asked = arb(self.reading.epsilon())
        low, high = (asked, arb.pos_inf()) if place == BELOW else (arb(0), asked)
        return proof_between(EPSILON, low, high, bits, place)

    @property
    def _exact(self) -> bool:
        return self.reading.result.conversion == balls.EXACT

    def _excess(self, epsilon: arb) -> arb:
        """Return -1 if the exact conversion allows an epsilon, otherwise 1."""
        allowed = balls.exact_suffices(self.reading.order(), self.rdp(), self.reading.log_delta(), epsilon)
        return arb(-1 if allowed else 1)


class SearchedRdp(Rdp):
    """A Renyi curve that is the best of a search, evaluated at the certificate; see `Searched`."""

    def proof(self) -> Proof:
        """Return the proof of the reported value.

        Raises:
            Open: the certificate proves less.
        """
        proof = super().proof()
        if proof.place == BELOW:
            raise Open(NOT_PROVED)
        return proof


class EnclosedRdp(SearchedRdp):
    """A Renyi curve whose formula is itself an upper bound, which may exceed a correct number.

    It is slow, so it is evaluated once for every precision.
    """

    def rdp(self) -> arb:
        """Return the Renyi divergence at the order of the result."""
        known, bits = self.reading.upper_bounds(), ctx.prec
        if bits not in known:
            known[bits] = super().rdp()
        value: arb = known[bits]
        return value


class Point(Guarantee):
    """A rule that gives only epsilon at a delta."""

    def epsilon(self) -> arb:
        """Return epsilon at the delta of the question."""
        return self.formula(self.reading.inputs(log_delta=self.reading.log_delta()))


def proof_of_value(quantity: str, value: float, formula: Callable[[], arb]) -> Proof:
    """Return the proof that a value is at or above a formula."""
    return proof_by(quantity, enclosed(formula, value))


def proof_within(quantity: str, formula: Callable[[], arb], limit: Callable[[], arb]) -> Proof:
    """Return the proof that a formula is at most a limit."""
    place, bits = place_of(lambda: formula() - limit())
    enclosure = enclosed(formula)
    return proof_by(quantity, enclosure._replace(bits=max(bits, enclosure.bits), place=place))


NOT_PROVED = "its certificate does not prove it"
_MOST_BITS = 1024


def proof_by_certificate(formula: Callable[[], arb], limit: Callable[[], arb]) -> Proof:
    """Return the proof that the ln delta of a certificate is at most a limit.

    Raises:
        Open: the certificate proves less.
    """
    bits = START
    while bits <= _MOST_BITS:
        with precision(bits):
            try:
                ball, most = formula(), limit()
            except Undecided:
                ball = most = arb.nan()
            if infinite(ball) or ball <= most or (ball <= 0 and most >= 0):
                return proof_by(LOG_DELTA, Enclosure(balls.capped(ball), bits, PROVED))
            if ball > most:
                break
        bits *= 2
    raise Open(NOT_PROVED)
