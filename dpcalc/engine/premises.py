"""A known guarantee of a mechanism: mu, rho, pure privacy, Renyi divergences or one (epsilon, delta)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from dpcalc.errors import NotApplicable, SpecError
from dpcalc.model.parameter import check
from dpcalc.model.quantities import Given, Quantity
from dpcalc.model.question import Question
from dpcalc.notions import conversions, gaussian
from dpcalc.notions.guarantee import Box, Gdp, Guarantee
from dpcalc.notions.notion import Answer
from dpcalc.numerics.floats import UNIT, is_short, up

MOST_POINTS = 100


class Premise:
    """A known guarantee; a subclass derives what follows from it.

    Attributes:
        form: the parameter that gives it.
        words: what it is, in a message.
        row: id, title, paper and place in it of what is converted from it.
        risk: id, paper and place in it of what an attacker can do against it.
        not_implied: what does not follow from it, and why.
        is_point: whether it is one (epsilon, delta), from which nothing follows but what is enough for it.
        value: mu, rho or epsilon.
    """

    form: ClassVar[str] = "point"
    words: ClassVar[str] = "(epsilon, delta)"
    row: ClassVar[tuple[str, str, str, str]]
    risk: ClassVar[tuple[str, str, str]]
    not_implied: ClassVar[Mapping[str, str]] = {}
    is_point: ClassVar[bool] = False

    def __init__(self, value: float) -> None:
        self.value = value

    @classmethod
    def read(cls, written: Any) -> Self:
        """Return what is known by its parameter.

        Raises:
            SpecError: the value is outside its domain.
        """
        return cls(float(check(cls.form, written)))

    @property
    def typed(self) -> dict[str, Any]:
        """What was typed, as an input of the case."""
        return {self.form: self.value}

    @property
    def mu(self) -> float | None:
        """Mu, where that is what is known."""
        return None

    @property
    def guarantee(self) -> Guarantee:
        """What is known as a notion, rounded up."""
        raise NotImplementedError

    @property
    def attacked(self) -> Guarantee:
        """What is known as a notion with a curve."""
        return self.guarantee

    @property
    def curve(self) -> Guarantee:
        """What is known as a notion with a Renyi divergence."""
        return self.guarantee

    def epsilon(self, question: Question) -> Answer:
        """Return epsilon at the delta asked."""
        return self.guarantee.epsilon(question.safe_log_delta)

    def log_delta(self, question: Question) -> Answer:
        """Return ln delta at the epsilon asked."""
        return self.guarantee.log_delta(question.safe_epsilon)

    def parameter(self, target: str) -> float:
        """Return rho, mu or the epsilon of pure privacy that follows.

        Raises:
            NotApplicable: it does not.
        """
        raise NotApplicable(f"{target} does not follow from {self.words}", "ask for epsilon at a delta")


class Mu(Premise):
    """mu-Gaussian privacy."""

    form = words = "mu"
    row = ("convert.gdp", "mu-Gaussian privacy", "dong2022", "Corollary 2.13")
    risk = ("risk.gdp", "dong2022", "Corollary 2.13")
    not_implied: ClassVar[Mapping[str, str]] = {"pure": "losses of a Gaussian mechanism are not bounded"}

    @property
    def mu(self) -> float:
        return self.value

    @property
    def guarantee(self) -> Guarantee:
        return Gdp(up(self.value))

    @property
    def attacked(self) -> Guarantee:
        return Gdp(self.value) if is_short(self.value) else self.guarantee

    def parameter(self, target: str) -> float:
        """Return rho."""
        return conversions.gaussian_rho(up(self.value))


class Rho(Premise):
    """Zero-concentrated privacy."""

    form = words = "rho"
    row = ("convert.zcdp", "zero-concentrated privacy", "dpcalc", "conversions (Bun and Steinke 2016)")
    risk = ("risk.zcdp", "dpcalc", "risk")
    not_implied: ClassVar[Mapping[str, str]] = {
        "pure": "losses of a concentrated mechanism need not be bounded",
        "mu": "no theorem here bounds mu of a mechanism known by its Renyi divergence",
    }

    @property
    def guarantee(self) -> Guarantee:
        return conversions.concentrated(up(self.value))


class Pure(Premise):
    """Pure privacy."""

    form, words = "pure", "pure privacy"
    row = ("convert.pure", "pure privacy: randomised response is the worst", "kairouz2015", "Theorem 3.3")
    risk = ("risk.pure", "kairouz2015", "Theorem 3.3")

    @property
    def guarantee(self) -> Guarantee:
        return conversions.box(self.value, -math.inf)

    @property
    def attacked(self) -> Guarantee:
        return Box(up(self.value), -math.inf)

    @property
    def curve(self) -> Guarantee:
        return conversions.pure_curve(self.value)

    def epsilon(self, question: Question) -> Answer:
        answer = super().epsilon(question)
        return answer._replace(value=min(answer.value, up(self.value)))

    def log_delta(self, question: Question) -> Answer:
        """Return ln delta, which is 0 from the epsilon of pure privacy on, also as the decimals that were typed."""
        asked = question.epsilon or 0.0
        both_short = is_short(asked) and is_short(self.value)
        covers = asked >= self.value if both_short else question.safe_epsilon >= up(self.value)
        return Answer(-math.inf, None, "pure") if covers else super().log_delta(question)

    def parameter(self, target: str) -> float:
        """Return rho or mu."""
        value = up(self.value)
        return gaussian.pure_mu(epsilon=value) if target == Quantity.MU else conversions.pure_rho(value)


class Points(Premise):
    """Renyi divergences at some orders.

    Attributes:
        points: order -> epsilon.
    """

    form, words = "rdp", "a Renyi divergence"
    row = ("convert.renyi", "Renyi privacy at some orders", "mironov2017", "Definition 4")
    risk = ("risk.renyi", "dpcalc", "risk")
    not_implied: ClassVar[Mapping[str, str]] = {
        "mu": "no theorem here bounds mu of a mechanism known by its Renyi divergence",
        "rho": "bounds at some orders say nothing of larger ones, and rho is for all of them",
    }

    def __init__(self, points: Mapping[float, float]) -> None:
        super().__init__(math.nan)
        self.points = points

    @classmethod
    def read(cls, written: Any) -> Self:
        """Return what is known by points.

        Raises:
            SpecError: they are malformed.
        """
        return cls(points_of(written))

    @property
    def typed(self) -> dict[str, Any]:
        """The points as they are typed."""
        return {self.form: shown_points(self.points)}

    @property
    def guarantee(self) -> Guarantee:
        return conversions.interpolated(self.points)

    def epsilon(self, question: Question) -> Answer:
        return conversions.epsilon_of_points(self.points, question.safe_log_delta)

    def log_delta(self, question: Question) -> Answer:
        return conversions.log_delta_of_points(self.points, question.safe_epsilon)

    def parameter(self, target: str) -> float:
        """Return the epsilon of pure privacy, which a divergence of order infinity is."""
        if math.inf not in self.points:
            raise NotApplicable(
                "pure does not follow from a Renyi divergence of finite order: losses need not be bounded",
                "ask for epsilon at a delta",
            )
        return up(self.points[math.inf])


class OnePoint(Premise):
    """One (epsilon, delta).

    Attributes:
        log_delta_known: ln delta.
    """

    risk = ("risk.point", "kairouz2015", "Theorem 3.3")
    is_point = True

    def __init__(self, epsilon: float, log_delta: float) -> None:
        super().__init__(epsilon)
        self.log_delta_known = log_delta

    @property
    def attacked(self) -> Guarantee:
        return Box(up(self.value), self.log_delta_known + 2.0 * UNIT * abs(self.log_delta_known))


STARTS: dict[str, type[Premise]] = {premise.form: premise for premise in (Mu, Rho, Pure, Points)}
"""What may be known, beside (epsilon, delta), by the parameter that gives it."""

KINDS: tuple[type[Premise], ...] = (*STARTS.values(), OnePoint)


def premise_of(given: Given, question: Question) -> tuple[Premise, Question, dict[str, Any]]:
    """Return what is known, the question that is left, and what was typed of it.

    Raises:
        SpecError: nothing is known, or two things are.
    """
    starts = [name for name in STARTS if name in given]
    if len(starts) > 1:
        raise SpecError(
            f"{' and '.join(starts)} are given: a conversion starts from one guarantee",
            "give one; several guarantees about the same records are composed by `dpcalc ledger`",
        )
    if starts:
        (name,) = starts
        premise = STARTS[name].read(given[name])
        return premise, question, premise.typed
    if question.epsilon is None:
        raise SpecError(
            "no guarantee is known", "give --mu, --rho, --pure, --rdp 'order=8 epsilon=1', or --epsilon and --delta"
        )
    if not 1e-9 <= question.epsilon <= 1e9:
        raise SpecError(
            f"epsilon is {question.epsilon!r}; it must be from 1e-9 to 1e9", "for example 1; 1e-9 stands for 0"
        )
    if question.log_delta is None:
        pure = Pure(question.epsilon)
        return pure, question._replace(epsilon=None), pure.typed
    return OnePoint(question.epsilon, question.log_delta), question, {}


def points_of(written: Any) -> dict[float, float]:
    """Return bounds on the Renyi divergence: order -> epsilon.

    Args:
        written: ``order=8 epsilon=1``, several such texts, a mapping of orders, or pairs.

    Raises:
        SpecError: it is none of these, or an order is given twice.
    """
    if isinstance(written, Mapping):
        pairs = list(written.items())
    else:
        pairs = []
        for item in _lines(written):
            pairs += _pairs(item) if isinstance(item, str) else [tuple(item)]
    if not 1 <= len(pairs) <= MOST_POINTS:
        raise SpecError(f"rdp has {len(pairs)} points", f"from 1 to {MOST_POINTS} are read")
    points: dict[float, float] = {}
    for order, epsilon in pairs:
        if not isinstance(order, (int, float)) or not order > 1.0:
            raise SpecError(f"rdp: order is {order!r}; it must be a number > 1", "inf stands for pure privacy")
        if not isinstance(epsilon, (int, float)) or not 1e-12 <= epsilon <= 1e9:
            raise SpecError(
                f"rdp: epsilon is {epsilon!r}; it must be from 1e-12 to 1e9", "for example order=8 epsilon=1"
            )
        if not (order == math.inf or order <= 2.0**50):
            raise SpecError(f"rdp: order is {order!r}; it must be at most 2^50, or inf")
        if float(order) in points:
            raise SpecError(f"rdp: order {order!r} is given twice", "keep one")
        points[float(order)] = float(epsilon)
    return points


def _lines(written: Any) -> list[Any]:
    return [written] if isinstance(written, str) else list(written)


def _pairs(line: str) -> list[tuple[float, float]]:
    """Return the points that a line such as ``order=2,8 epsilon=0.1,1`` spells."""
    from dpcalc.model.numbers import parse_number, parse_sweep

    words = dict(word.partition("=")[::2] for word in line.split())
    if set(words) != {"order", "epsilon"} or len(line.split()) != 2:
        raise SpecError(f"rdp: {line[:80]!r} is not a point", "write --rdp 'order=8 epsilon=1'")
    orders = parse_sweep(words["order"], lambda text: parse_number(text, allow_inf=True))
    epsilons = parse_sweep(words["epsilon"], parse_number)
    if len(orders) != len(epsilons):
        raise SpecError(f"rdp: {len(orders)} orders and {len(epsilons)} epsilons", "one epsilon for each order")
    return list(zip(orders, epsilons, strict=True))


def shown_points(points: Mapping[float, float]) -> str:
    """Return points as they are typed."""
    orders, epsilons = (",".join(repr(value).removesuffix(".0") for value in row) for row in (points, points.values()))
    return f"order={orders} epsilon={epsilons}"
