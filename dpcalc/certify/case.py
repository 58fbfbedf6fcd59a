"""Certify an answer: recompute each guarantee in ball arithmetic and record the enclosure that was proved.

What is proved is that the double reported is not below what the bound's formula says of the run, both for the doubles
given and for the decimals they print as. That the formula is a theorem is another matter (docs/method.md).
"""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.errors import Disproved, SpecError
from dpcalc.report import Case, Result, uncertified
from dpcalc.version import __version__

if TYPE_CHECKING:
    from flint import arb

    from dpcalc.certify.balls import Inputs
    from dpcalc.certify.enclose import Enclosure
    from dpcalc.certify.table import Definition
    from dpcalc.query import Question
    from dpcalc.spec.run import Run

_FINEST, _COARSEST = 50, 0  # bits of the distance below a value at which it is tried whether less would do


class Open(Exception):
    """A result cannot be certified; the text says why."""


class Proof(NamedTuple):
    """What was proved: an enclosure (as decimals) of ``quantity``, the bits it took, and where the value lies.

    ``alone`` is why the other reading of the inputs is not one that the theorem speaks of; empty if both are.
    """

    quantity: str
    lower: str
    upper: str
    bits: int
    place: str
    alone: str = ""


def certify(case: Case, run: Run | None, question: Question) -> Case:
    """Return the case with ``details["certified"]`` or ``details["not_certified"]`` of every guarantee filled in.

    Args:
        case: the answer.
        run: the run that was described; None where the answer is not about one (costs).
        question: what was asked.

    Raises:
        SpecError: python-flint is not installed.
        Disproved: a guarantee is below the truth.
    """
    try:
        import flint  # noqa: F401
    except ImportError:
        raise SpecError("--certify needs python-flint", "pip install 'dpcalc[certify]'") from None
    told = tuple(_certified(result, case, run, question) if result.guarantee else result for result in case.results)
    case = case._replace(results=told)
    notes = tuple(_note(result, case) for result in uncertified(case))
    return case._replace(notes=(*case.notes, *notes))


def _note(result: Result, case: Case) -> str:
    reason = (result.details or {})["not_certified"]
    rest = [r for r in case.results if "certified" in (r.details or {}) and r.order == result.order]
    instead = f"; the best that is: {rest[0].bound}, {rest[0].quantity} {rest[0].value:.6g}" if rest else ""
    return f"{result.bound} is not certified: {reason}{instead}"


def _certified(result: Result, case: Case, run: Run | None, question: Question) -> Result:
    try:
        proof = _cost_proof(result, case, question) if run is None else proof_of(result, run, question)
    except Open as reason:
        return result._replace(details={**(result.details or {}), "not_certified": str(reason)})
    told = {"quantity": proof.quantity, "lower": proof.lower, "upper": proof.upper, "bits": proof.bits}
    if proof.alone:
        told["alone"] = proof.alone
    if proof.place == "below":
        raise Disproved(f"{result.bound} is below the truth", _bug(result, case, told))
    return result._replace(details={**(result.details or {}), "certified": told})


def _bug(result: Result, case: Case, told: Mapping[str, Any]) -> str:
    """Return what a report of the failure should contain."""
    inputs = ", ".join(f"{name}={value!r}" for name, (value, _) in case.inputs.items())
    return "\n".join(
        (
            f"dpcalc {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"algorithm: {case.algorithm}",
            f"inputs: {inputs}",
            f"bound: {result.bound}, {result.quantity} = {result.value!r}, epsilon = {result.epsilon!r}, "
            f"log_delta = {result.log_delta!r}, order = {result.order!r}, conversion = {result.conversion!r}",
            f"proved: {told['quantity']} in [{told['lower']}, {told['upper']}] ({told['bits']} bits)",
        )
    )


# --- one result ------------------------------------------------------------------------------------------------------


def proof_of(result: Result, run: Run, question: Question) -> Proof:
    """Return what is proved of a result, by the worse of the two readings of its inputs.

    Raises:
        Open: nothing is, and why.
    """
    from dpcalc.certify.balls import OutOfReach, Undecided
    from dpcalc.certify.table import definitions, why_not

    definition = definitions().get(result.bound)
    if definition is None:
        raise Open(why_not(result.bound))
    if definition.floor:
        raise Open(why_not(result.bound))
    proofs: list[Proof] = []
    reasons: list[str] = []
    for reading in _readings(result, run, question):
        try:
            proofs.append(reading.proof(definition))
        except OutOfReach as reason:
            reasons.append(f"the {'decimals' if reading.typed else 'doubles'}: {reason}")
        except Undecided:
            raise Open("open at the most digits that are tried") from None
    if not proofs:
        raise Open(reasons[0].partition(": ")[2])
    return _worse(proofs)._replace(alone="; ".join(reasons))


def _worse(proofs: list[Proof]) -> Proof:
    """Return the proof that says the least.

    Raises:
        Open: it says nothing.
    """
    from dpcalc.certify.enclose import UNDECIDED

    rank = {"proved": 0, UNDECIDED: 1, "below": 2}
    proof = max(proofs, key=lambda p: rank[p.place])
    if proof.place == UNDECIDED:
        raise Open(f"open at {proof.bits} bits")
    return proof


def _cost_proof(result: Result, case: Case, question: Question) -> Proof:
    """Return what is proved of an excess risk, at the run that was found for it: and that this run keeps the budget.

    Raises:
        Open: nothing is, and why.
    """
    from dpcalc.certify.balls import Inputs, OutOfReach, Undecided
    from dpcalc.certify.costs import PRICES, UNCHECKED_NOISE
    from dpcalc.certify.enclose import PROVED, enclosed

    price, details = PRICES.get(result.bound), result.details or {}
    if price is None:
        raise Open("no definition of it has been written")
    if result.bound in UNCHECKED_NOISE:
        raise Open("the noise that keeps the budget is not certified")
    values: dict[str, Any] = {name: value for name, (value, _) in case.inputs.items()}
    values.update(log_delta=question.log_delta, sigma=details.get("noise_std"), eta=details.get("step_size"))
    values["count"] = details.get("steps")
    proofs = []
    try:
        for typed in (False, True):
            v = Inputs(values, typed, exactly=("log_delta",))
            found = enclosed(lambda v=v: price.risk(v), result.value)  # type: ignore[misc]
            if price.private is not None and result.epsilon is not None:
                reading = Reading(result, question, lambda v=v, **_: v, typed)
                sign, bits = _sign(lambda v=v, r=reading: price.private(v) - r._target())  # type: ignore[misc]
                place = "undecided" if sign is None else PROVED if sign <= 0 else "below"
                if place != PROVED:
                    found = found._replace(place=place)
                found = found._replace(bits=max(bits, found.bits))
            proofs.append(_proof(result.quantity, found))
    except Undecided:
        raise Open("open at the most digits that are tried") from None
    except OutOfReach as reason:
        raise Open(str(reason)) from None
    return _worse(proofs)


class Reading(NamedTuple):
    """The run and the question, read in one of the two ways."""

    result: Result
    question: Question
    inputs: Callable[..., Inputs]
    typed: bool

    def proof(self, definition: Definition) -> Proof:
        """Return what is proved of the result in this reading.

        Raises:
            Open, OutOfReach, Undecided: nothing is.
        """
        result = self.result
        if result.quantity == "mu":
            return self._direct("mu", result.value, lambda: definition.formula(self.inputs()))
        if result.quantity == "rdp":
            return self._direct("rdp", result.value, self._rdp(definition))
        if result.quantity == "delta":
            return self._delta(definition)
        return self._at_delta(definition) if result.quantity == "epsilon" else self._budget(definition)

    def _delta(self, definition: Definition) -> Proof:
        """Return what is proved of a delta."""
        assert self.result.log_delta is not None
        proof = self._direct("log_delta", self.result.log_delta, self._log_delta(definition))
        return proof if _is_exp(self.result.value, self.result.log_delta) else proof._replace(place="below")

    def _at_delta(self, definition: Definition) -> Proof:
        """Return what is proved of an epsilon."""
        if definition.gives in ("mu", "log_delta"):
            return self._inverse(definition)
        if definition.gives == "rdp" and self.result.conversion == "exact":
            return self._exact(definition)
        return self._direct("epsilon", self.result.value, self._epsilon(definition))

    # what is reported is the formula's value, rounded up

    def _direct(self, quantity: str, value: float, formula: Callable[[], arb]) -> Proof:
        from dpcalc.certify.enclose import enclosed
        from dpcalc.certify.gaussian import capped

        def at_most() -> arb:
            found = formula()
            return capped(found) if quantity == "log_delta" else found

        return _proof(quantity, enclosed(at_most, value))

    def _rdp(self, definition: Definition) -> Callable[[], arb]:
        """Return the Renyi divergence at the order asked."""
        order = self.result.order
        assert order is not None
        if definition.gives == "rdp":
            return lambda: definition.formula(self.inputs(order=order))

        def of_mu() -> arb:
            mu = definition.formula(self.inputs())
            return _ball(order) * mu * mu / 2

        return of_mu

    def _log_delta(self, definition: Definition) -> Callable[[], arb]:
        """Return ln delta at the epsilon asked."""
        from dpcalc.certify import gaussian

        epsilon = self._asked_epsilon
        if definition.gives == "mu":
            return lambda: gaussian.log_delta(epsilon(), definition.formula(self.inputs()))
        if definition.gives == "log_delta":
            return lambda: definition.formula(self.inputs(epsilon=self.question.epsilon))
        if definition.gives == "rdp":
            order = self.result.order
            if order is None:
                raise Open("no order gives a delta below 1")
            return lambda: gaussian.canonne_log_delta(
                _ball(order), definition.formula(self.inputs(order=order)), epsilon()
            )
        raise Open("a rule that gives epsilon at a delta only")

    def _epsilon(self, definition: Definition) -> Callable[[], arb]:
        """Return epsilon at the delta asked, by the order and conversion reported."""
        from flint import arb

        from dpcalc.certify import gaussian

        if definition.gives == "epsilon":
            return lambda: definition.formula(self.inputs(log_delta=self._target()))
        order, name = self.result.order, str(self.result.conversion)
        if order is None or name not in gaussian.EDGES:
            raise Open(f"the conversion {name} is not written down")
        edge = gaussian.EDGES[name]
        return lambda: edge(_ball(order), definition.formula(self.inputs(order=order)), self._target()).max(arb(0))

    # what is reported is an argument at which a formula meets the budget

    def _inverse(self, definition: Definition) -> Proof:
        """Return the proof that delta at the reported epsilon is at most that asked, and how much less would not do."""

        from dpcalc.certify import gaussian

        if definition.gives == "mu":

            def told(epsilon: arb) -> arb:
                return gaussian.log_delta(epsilon, definition.formula(self.inputs()))
        else:

            def told(epsilon: arb) -> arb:
                return definition.formula(self.inputs(epsilon=epsilon))

        return self._least("epsilon", self.result.value, lambda x: gaussian.capped(told(x)) - self._target())

    def _exact(self, definition: Definition) -> Proof:
        """Return the proof for the exact conversion of one order."""
        from flint import arb

        from dpcalc.certify import gaussian

        order = self.result.order
        assert order is not None

        def excess(epsilon: arb) -> arb:
            rdp = definition.formula(self.inputs(order=order))
            good = gaussian.exact_suffices(_ball(order), rdp, self._target(), epsilon)
            return arb(-1) if good else arb(1)

        return self._least("epsilon", self.result.value, excess)

    def _least(self, quantity: str, value: float, excess: Callable[[arb], arb]) -> Proof:
        """Return where the value lies relative to the least argument at which the excess is <= 0."""
        from flint import arb

        from dpcalc.certify.balls import CAP, double, precision
        from dpcalc.certify.enclose import BELOW, PROVED, UNDECIDED

        sign, bits = _sign(lambda: excess(double(value)))
        if sign is None:
            return Proof(quantity, "", "", bits, UNDECIDED)
        x, zero = double(value), arb(0)
        if sign <= 0:
            if value == 0.0:
                return _between(quantity, zero, zero, bits, PROVED)
            for k in range(_FINEST, _COARSEST, -2):
                with precision(CAP):
                    nearer = x * (1 - arb(2) ** -k)
                less, spent = _sign(lambda at=nearer: excess(at))  # type: ignore[misc]
                bits = max(bits, spent)
                if less is not None and less > 0:
                    return _between(quantity, nearer, x, bits, PROVED)
            return _between(quantity, zero, x, bits, PROVED)
        for k in range(_FINEST, 0, -2):
            with precision(CAP):
                further = x * (1 + arb(2) ** -k) + arb(2) ** -1000
            more, spent = _sign(lambda at=further: excess(at))  # type: ignore[misc]
            bits = max(bits, spent)
            if more is not None and more <= 0:
                return _between(quantity, x, further, bits, BELOW)
        return Proof(quantity, repr(value), "inf", bits, BELOW)

    def _budget(self, definition: Definition) -> Proof:
        """Return the proof that the parameter solved for meets the budget: ln delta, or epsilon by a conversion."""
        from flint import arb

        from dpcalc.certify import gaussian
        from dpcalc.certify.enclose import PROVED, enclosed

        if definition.gives in ("mu", "log_delta"):
            quantity, formula, limit = "log_delta", self._log_delta(definition), self._target
        elif self.result.conversion == "exact":
            order = self.result.order
            assert order is not None

            def excess() -> arb:
                rdp = definition.formula(self.inputs(order=order))
                good = gaussian.exact_suffices(_ball(order), rdp, self._target(), self._asked_epsilon())
                return arb(-1) if good else arb(1)

            sign, bits = _sign(excess)
            place = "undecided" if sign is None else PROVED if sign <= 0 else "below"
            asked = self._asked_epsilon()
            low, high = (asked, arb.pos_inf()) if place == "below" else (arb(0), asked)
            return _between("epsilon", low, high, bits, place)
        else:
            quantity, formula, limit = "epsilon", self._epsilon(definition), self._asked_epsilon
        sign, bits = _sign(lambda: formula() - limit())
        found = enclosed(formula)
        place = "undecided" if sign is None else PROVED if sign <= 0 else "below"
        return _proof(quantity, found._replace(bits=max(bits, found.bits), place=place))

    # the question, at the working precision

    def _asked_epsilon(self) -> arb:
        from flint import arb

        from dpcalc.certify.balls import rational

        assert self.question.epsilon is not None
        return arb(rational(float(self.question.epsilon), self.typed))

    def _target(self) -> arb:
        """Return ln delta as asked; where no double holds delta, as it was understood."""
        from flint import arb

        from dpcalc.certify.balls import double, rational

        question = self.question
        assert question.log_delta is not None
        if question.delta is None or not question.delta > 1e-300:
            return double(question.log_delta)
        return arb(rational(question.delta, self.typed)).log()


def _is_exp(delta: float, log_delta: float) -> bool:
    """Return whether delta is at least what its logarithm says."""
    from dpcalc.certify.balls import double

    if log_delta == -math.inf or delta >= 1.0:
        return True
    sign, _ = _sign(lambda: double(log_delta).exp() - double(delta))
    return sign is not None and sign <= 0


def _ball(order: float) -> arb:
    from dpcalc.certify.balls import double

    return double(order)


def _sign(excess: Callable[[], arb]) -> tuple[int | None, int]:
    """Return -1, 0 or 1 as the excess is <= 0, or > 0; None where it is open at the cap; and the bits it took."""
    from dpcalc.certify.balls import CAP, START, Undecided, precision

    bits = START
    while bits <= CAP:
        with precision(bits):
            try:
                found = excess()
                if found <= 0:
                    return -1, bits
                if found > 0:
                    return 1, bits
            except Undecided:
                pass
        bits *= 2
    return None, CAP


def _between(quantity: str, low: arb, high: arb, bits: int, place: str) -> Proof:
    """Return the proof that a quantity lies between two; the union of their balls would be wider."""
    from dpcalc.certify.enclose import Enclosure

    ends = (Enclosure(end, bits, place).ends(20) for end in (low, high))
    return Proof(quantity, next(ends)[0], next(ends)[1], bits, place)


def _proof(quantity: str, enclosure: Enclosure) -> Proof:
    low, high = enclosure.ends(20)
    return Proof(quantity, low, high, enclosure.bits, enclosure.place)


# --- the run, in two readings ----------------------------------------------------------------------------------------


def _readings(result: Result, run: Run, question: Question) -> Iterator[Reading]:
    """Yield the doubles as they are, then the decimals that they print as; with formulas of what follows from them."""
    from dpcalc.certify.balls import Inputs

    solved = result.quantity not in ("mu", "rdp", "delta", "epsilon")
    if solved:
        name = result.quantity
        whole = not isinstance(run.values.get(name, 0.0), float) and name in _WHOLE
        run = run.replacing(**{name: int(result.value) if whole else result.value})
    values = dict(run.values)
    derived = _derived(run)
    for typed in (False, True):
        own = {**values, **_doubled(run, typed)} if typed else values

        def inputs(own: Mapping[str, Any] = own, typed: bool = typed, **asked: Any) -> Inputs:
            return Inputs({**own, **asked}, typed, derived, ("log_delta", "order"))

        yield Reading(result, question, inputs, typed)


_WHOLE = ("records", "index", "batch_size", "steps", "epochs", "window", "dimension")


def _doubled(run: Run, typed: bool) -> dict[str, Any]:
    """Return the decimals that are twice another: the sensitivity, and the diameter of a ball."""
    from dpcalc.certify.balls import rational

    found: dict[str, Any] = {}
    if run.values.get("sensitivity") is not None and run.sources.get("sensitivity") == "derived":
        twice = 2 if run.values.get("adjacency") == "replace-one" else 1
        found["sensitivity"] = twice * rational(float(run.values["lipschitz"]), typed)
    if run.sources.get("diameter") == "derived":
        found["diameter"] = 2 * rational(float(run.values["radius"]), typed)
    return found


def _derived(run: Run) -> dict[str, Callable[[Inputs], Any]]:
    """Return the formulas of what follows from other parameters by more than a factor of two."""
    from flint import arb

    from dpcalc.certify import contraction
    from dpcalc.certify.streams import schedule_reach

    found: dict[str, Callable[[Inputs], Any]] = {}
    sources, values = run.sources, run.values
    if sources.get("displacement") == "derived":
        spread = arb(values.get("dimension", 1)).sqrt() if values.get("noise") == "laplace" else arb(1)
        found["displacement"] = lambda v: spread * (contraction.displacement(v) or arb.pos_inf())
    if sources.get("noise_std") == "derived":
        found["noise_std"] = lambda v: v.langevin_std * (2 / v.step_size).sqrt()
        found["scale"] = found["noise_std"]
    elif sources.get("scale") == "derived" and "c1" in values:
        found["scale"] = lambda v: (
            v.displacement * v.diameter / v.step_size / schedule_reach(v.noise, arb(v.records), v.c1, v.c2)
        )
    return found
