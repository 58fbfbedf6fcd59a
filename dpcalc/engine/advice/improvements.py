"""What would better an answer the most: a parameter that was not told, the last batch, a promise, an order, a release.

Every number is that of the run with the options that the note names; an epsilon may be some 1e-5 of itself above it, as
it comes from a coarser lattice. Few runs are asked: of each it is first seen, by one evaluation a bound, whether it is
worth a note, and bounds whose searches are long are asked only where the answer is theirs already.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dpcalc.engine.answer import answer
from dpcalc.engine.commands import Command
from dpcalc.engine.evaluate import guarantee_of
from dpcalc.engine.question import run_of
from dpcalc.engine.solving.search import DIRECTIONS
from dpcalc.errors import DpcalcError
from dpcalc.model.algorithm import ALGORITHMS, ORDERS, Length, Order, Release, Source
from dpcalc.model.draft import Description
from dpcalc.model.loss_class import exceeds_two
from dpcalc.model.numbers import plain
from dpcalc.model.quantities import Kind, LastBatch, LossClass, Noise, Permutation, Quantity, Releases
from dpcalc.model.question import Question
from dpcalc.model.run import Run
from dpcalc.notes import Alternative, Improvement, OtherOrder, OtherRelease, PromiseNotMade, ShortLastBatch
from dpcalc.notions.guarantee import Composition, Gdp, Guarantee, Profile, Rdp
from dpcalc.report import Case, Result
from dpcalc.theorems.record import Theorem, for_algorithm, lookup

_MOST = 2
"""How many improvements are told at most."""

_WORTH = -math.log(0.95)
"""The logarithm of the gain from which on an alternative is worth a note: it is a twentieth better."""

_NEAR = 1.02
"""Gains within a factor of this or so count as the same, and the cheaper change comes first."""

_LARGEST = 700.0
"""The largest logarithm of a gain."""

_SHARES = (0.1, 0.01, 1e-3)
"""The strong convexities that are tried, as shares of the smoothness."""

_LENGTHS = (1, 2, 3, 4, 5)
"""The diameters that are tried, as powers of ten of the length of a step: in a smaller set nothing can be learned."""

_IN_PUBLIC = tuple(name for name in ORDERS if "permutation" not in ALGORITHMS[name].defaults)
"""The orders of which nothing depends on whether they stay secret."""

_TINY = 1e-6

_SOLVED = (
    "noise_std", "noise_multiplier", "laplace_scale", "lipschitz", "diameter", "step_size", "strong_convexity",
    "epochs", "steps",
)  # fmt: skip
"""Parameters that may have been solved for."""

Changes = Mapping[str, Any]


def _rank(note: Alternative) -> tuple[float, int]:
    """Return what notes are sorted by: the gain, and where that is about the same what the change costs."""
    kinds = (Improvement, ShortLastBatch, PromiseNotMade, OtherOrder, OtherRelease)
    return -round(math.log(note.gain or 1.0) / math.log(_NEAR)), kinds.index(type(note))


def _is_free(note: Alternative) -> bool:
    return isinstance(note, ShortLastBatch) or (note.changes or {}).get("step_size") is not None


def _typed(value: Any) -> str:
    return plain(value) if isinstance(value, float) else str(value)


def _log_gain(result: Result, best: Result) -> float:
    """Return the logarithm of how many times better a value is than the best answer."""
    return (best.log_value - result.log_value) * (1.0 if _smaller_is_better(best.quantity) else -1.0)


def _smaller_is_better(quantity: str) -> bool:
    return quantity not in DIRECTIONS or DIRECTIONS[quantity].more_is_private


def _bettered(best: Result, gain: float) -> float:
    """Return the value of a parameter that was solved for, better by the gain."""
    value = best.value * math.exp(-gain if _smaller_is_better(best.quantity) else gain)
    return max(math.floor(value), int(best.value) + 1) if DIRECTIONS[best.quantity].integer else value


def _knowable(run: Run) -> Iterator[Sequence[Changes]]:
    """Yield what may be known of the run, or arranged: for each such thing its forms, the strongest first."""
    smoothness, step_size = run.smoothness, run.step_size
    if step_size and smoothness is None and not run.typed("loss_class") and run.loss is None:
        yield [{"smoothness": _down(2.0 / step_size)}]
    convex_smooth = smoothness and run.loss_class is LossClass.CONVEX_SMOOTH
    if smoothness and convex_smooth and (step_size is None or exceeds_two(step_size, smoothness)):
        yield [{"step_size": _down(2.0 / smoothness)}]
    if smoothness and convex_smooth and not run.strong_convexity and run.loss is None:
        yield [{"strong_convexity": _down(smoothness * share)} for share in _SHARES]
    if run.diameter is None and step_size and run.lipschitz is not None:
        yield _diameters(step_size * run.lipschitz)


def _down(value: float) -> float:
    """Return the value to six digits, rounded down: what is typed from a note is what was asked about."""
    rounded = (float(f"{value * (1.0 - k * _TINY):.6g}") for k in itertools.count())
    return next(shown for shown in rounded if shown <= value)


def _diameters(step: float) -> list[Changes]:
    """Return diameters in powers of ten, the least of some ten steps; none for lengths out of range."""
    if not 1e-200 < step < 1e200:
        return []
    decade = round(math.log10(step))
    return [{"diameter": float(f"1e{decade + power}")} for power in _LENGTHS]


class Asked(NamedTuple):
    """A question that was answered: the command, the values given to it, the run, the question and the best answer.

    ``brief`` is whether it is one of several, of which less is asked.
    """

    command: Command
    given: Mapping[str, Any]
    sources: Mapping[str, Source]
    run: Run
    question: Question
    case: Case
    best: Result
    brief: bool = False

    @property
    def solved(self) -> bool:
        """Whether a parameter of the run was sought."""
        return self.best.quantity in DIRECTIONS

    @property
    def solution(self) -> Run:
        """The run, with what was sought of it."""
        if not self.solved:
            return self.run
        name, value = self.best.quantity, self.best.value
        return self.run.replacing(**{name: int(value) if DIRECTIONS[name].integer else value})

    def changed(self, changes: Changes) -> Run:
        """Return the run that is described with these values given as well, as a person would type them.

        Raises:
            DpcalcError: the command does not take them, or there is no such run.
        """
        return run_of(self.command, Description({**self.given, **changes}, self.sources))[1]

    def best_for(self, run: Run, *, rough: bool, **changes: Any) -> Result | None:
        """Return the best answer to the question about a run with these changes; None where there is none."""
        try:
            return answer(run.replacing(**changes), self.question._replace(rough=rough)).best
        except DpcalcError:
            return None

    def takes(self, changes: Changes) -> bool:
        """Return whether the command takes these parameters, and none of them is what is sought."""
        return all(name in self.command.parameters and name != self.best.quantity for name in changes)

    def improvements(self, most: int = _MOST) -> tuple[Alternative, ...]:
        """Return at most ``most`` notes on what would better the answer, the largest gain first.

        Where two are told and one that costs nothing is among those worth telling, it is one of the two: a step size
        that was not told, or the split of the batches.
        """
        run, best = self.run, self.best
        known = best.quantity in (Quantity.EPSILON, Quantity.DELTA, Quantity.MU, *_SOLVED)
        if not known or best.value == 0.0 or (best.details or {}).get("any") or run.schedule is not None:
            return ()
        notes = sorted(self._all(), key=_rank)
        chosen = notes[:most]
        free = next((note for note in notes[most:] if _is_free(note)), None)
        if free is not None and most > 1 and not any(map(_is_free, chosen)):
            chosen[-1] = free
        return tuple(chosen)

    def _all(self) -> Iterator[Alternative]:
        yield from self._not_told()
        yield from self._short_batch()
        yield from self._promises()
        yield from self._other_orders()
        yield from self.other_release()

    def _note(self, kind: type[Alternative], result: Result, changes: Changes, **more: Any) -> Alternative:
        """Return the note on what was answered with the changes."""
        options = " ".join(f"--{name.replace('_', '-')} {_typed(value)}" for name, value in changes.items())
        gain = math.exp(min(_LARGEST, _log_gain(result, self.best)))
        return kind(**result.alternative_fields, changes=dict(changes), options=options, gain=gain, **more)

    def _bounds(self, run: Run) -> list[Theorem]:
        """Return the guarantees of the command for a run; not the Renyi forms of what has a sharper one."""
        bounds = for_algorithm(run.algorithm.name, self.command.families or run.algorithm.families)
        bounds = [bound for bound in bounds if bound.guarantee and bound.gives is not Rdp and not bound.unpromised(run)]
        ids = {bound.id for bound in bounds}
        return [bound for bound in bounds if bound.looser_than not in ids and bound.implied_by not in ids]

    def _quick(self, run: Run) -> list[Theorem]:
        """Return the guarantees that cost little; where a parameter is sought, those in closed form."""
        kinds = (Gdp,) if self.solved else (Gdp, Profile)
        return [bound for bound in self._bounds(run) if bound.gives in kinds and not bound.slow]

    def _improved(self, changes: Changes, bounds: Sequence[Theorem], run: Run, gain: float) -> Result | None:
        """Return the best answer with the changes if the logarithm of its gain is above ``gain``; else None."""
        enough = [bound for bound in bounds if self._reaches(bound, run, gain)]
        if not enough or not self.takes(changes):
            return None
        try:
            best = answer(run, self.question._replace(rough=True), enough).best
        except DpcalcError:
            return None
        return best if best is not None and _log_gain(best, self.best) > gain else None

    def _reaches(self, bound: Theorem, run: Run, gain: float) -> bool:
        """Return whether one evaluation of the bound shows a value that is better by ``gain``, as a logarithm.

        The composition of a whole run answers a second question almost for nothing: it is not asked beforehand.
        """
        try:
            run = self._at(run, gain)
            if bound.obstacle(run) is not None:
                return False
            return bound.gives is Composition or self._meets(guarantee_of(bound, run, self.question.orders), gain)
        except DpcalcError:
            return False

    def _is_blind_to(self, bound: Theorem, parameter: str) -> bool:
        """Return whether the bound has answered already, and the same whatever the value of this parameter."""
        return parameter not in bound.parameters and any(result.bound == bound.id for result in self.case.results)

    def _at(self, run: Run, gain: float) -> Run:
        """Return the run with the parameter that was solved for, better by the gain; the same where none was."""
        best = self.best
        return run.replacing(**{best.quantity: _bettered(best, gain)}) if self.solved else run

    def _meets(self, guarantee: Guarantee, gain: float) -> bool:
        """Return whether what is proved meets the budget, where epsilon, delta or mu is better by the gain."""
        question, best = self.question, self.best
        value = best.value * math.exp(-gain)
        if best.quantity == Quantity.MU:
            return guarantee.mu is not None and guarantee.mu <= value
        if best.quantity == Quantity.DELTA:
            return bool(guarantee.log_delta(question.safe_epsilon).value <= best.log_value - gain)
        epsilon = value if best.quantity == Quantity.EPSILON else question.safe_epsilon
        if guarantee.hints.floor is not None and guarantee.hints.floor(epsilon) > question.safe_log_delta:
            return False
        return guarantee.log_delta(epsilon).value <= question.safe_log_delta

    def _not_told(self) -> Iterator[Alternative]:
        """Yield, for each thing that may be known of the run, the weakest form of it that is worth telling."""
        run = self.run
        if run.algorithm.own_noise or run.algorithm.local or run.algorithm.noisy_output or run.c1 is not None:
            return
        if self.brief and run.noise is Noise.LAPLACE:
            return
        long = any(bound.slow and bound.id == self.best.bound for bound in self._bounds(run))
        for several in _knowable(run):
            if long and any(name in changes for changes in several for name in ("strong_convexity", "diameter")):
                continue  # the same bound would give less still, after a long search
            weakest: tuple[Changes, Run, list[Theorem]] | None = None
            for changes in several:
                try:
                    other = self.changed(changes)
                except DpcalcError:
                    break
                bounds = [bound for bound in self._quick(other) if self._reaches(bound, other, _WORTH)]
                if not bounds:
                    break
                weakest = changes, other, bounds
            if weakest is None:
                continue
            changes, other, bounds = weakest
            if self.solved and not self.brief:  # what is seen by closed forms may be less by another bound
                bounds += [bound for bound in self._bounds(other) if bound.gives is Profile and not bound.slow]
            if (result := self._improved(changes, bounds, other, _WORTH)) is None:
                continue
            less = True if changes.get("step_size") is not None and run.diameter is None else None
            yield self._note(Improvement, result, changes, or_less=less)

    def _short_batch(self) -> Iterator[Alternative]:
        """Yield what a short last batch costs, where it is divided by its own size and so weighs its records more."""
        run = self.run
        own = run.last_batch is LastBatch.OWN or (run.last_batch is None and run.algorithm.fixed_order)
        short = (run.records or 0) % (run.batch_size or 1)
        if not short or not own or run.typed("index") or run.algorithm.single:
            return
        for split in (LastBatch.BALANCED, LastBatch.DROP):  # the first of them uses every record
            changes = {"last_batch": split}
            try:
                other = self.changed(changes)
            except DpcalcError:
                return
            bounds = [bound for bound in self._bounds(other) if not bound.slow or bound.id == self.best.bound]
            if not any(bound.obstacle(self._at(other, _WORTH)) is None for bound in bounds):
                continue
            if (result := self._improved(changes, bounds, other, _WORTH)) is not None:
                yield self._note(ShortLastBatch, result, changes, size=short)
            return

    def _promises(self) -> Iterator[Alternative]:
        """Yield what a promise that was not made would give: that the order stays secret."""
        rows = [row for row in self.case.results if row.kind == Kind.CONDITIONAL and row.details]
        best = max(rows, key=lambda row: _log_gain(row, self.best), default=None)
        if best is not None and _log_gain(best, self.best) > _WORTH:
            demands = tuple((best.details or {})["demands"])
            yield self._note(PromiseNotMade, best, {"permutation": Permutation.SECRET}, promise=demands)

    def _other_orders(self) -> Iterator[Alternative]:
        """Yield the best of the other orders of the same passes, if it is better.

        Where a parameter is sought each order is a search of its own: nothing is said there. A comparison in a fixed
        order takes a fraction of what most orders would: one is asked, the same passes shuffled in secret.
        """
        run, taken = self.run, self.command.algorithms
        if self.brief or self.solved or run.typed("steps") or run.typed("index"):
            return
        if self.command.compares and run.algorithm.order is Order.FIXED:
            yield from self._secret_shuffle()
            return
        if run.algorithm.base not in ORDERS:
            return
        best_order: tuple[Result, Changes] | None = None
        gain = _WORTH
        for name in _IN_PUBLIC if run.permutation is Permutation.SECRET else ORDERS:
            if name == run.algorithm.base or name not in taken:
                continue
            changes = {"algorithm": name}
            try:
                other = self.changed(changes)
            except DpcalcError:
                continue
            if (result := self._improved(changes, self._bounds(other), other, gain)) is not None:
                best_order, gain = (result, changes), _log_gain(result, self.best)
        if best_order is not None:
            yield self._note(OtherOrder, *best_order)

    def _secret_shuffle(self) -> Iterator[Alternative]:
        """Yield what the passes give in a random order that stays secret; in a public one, if that is as good."""
        name = ALGORITHMS[self.run.algorithm.base].shuffled_as
        if not name:
            return
        changes: dict[str, Any] = {"algorithm": name, "permutation": Permutation.SECRET}
        try:
            other = self.changed(changes)
        except DpcalcError:
            return
        bounds = self._bounds(other)
        if (result := self._improved(changes, bounds, other, _WORTH)) is None:
            return
        demands = tuple(promise.text for promise in lookup(result.bound).promises)
        if not demands:
            del changes["permutation"]
        yield self._note(OtherOrder, result, changes, promise=demands or None)

    def other_release(self) -> Iterator[Alternative]:
        """Yield what holds where only the last iterate is released, if more is."""
        run = self.run
        if run.algorithm.release not in (Release.PASS, Release.STEP) or not run.algorithm.asks_what_is_released:
            return
        if run.algorithm.clipped and (run.release is Releases.LAST or self.solved or self.brief):
            return  # it is so already, or would be another long search
        if run.algorithm.length is Length.PASSES and run.algorithm.own_noise:
            return
        changes = {"release": Releases.LAST}
        try:
            other = self.changed(changes)
        except DpcalcError:
            return
        if other.permutation is Permutation.SECRET:
            return  # its search is long
        bounds = self._bounds(other) if run.algorithm.clipped else self._quick(other)
        if run.algorithm.clipped:
            bounds = [bound for bound in bounds if not self._is_blind_to(bound, "release")]
        if (result := self._improved(changes, bounds, other, _WORTH)) is not None:
            yield self._note(OtherRelease, result, changes)
