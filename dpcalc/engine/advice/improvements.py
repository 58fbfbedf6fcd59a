"""What would improve an answer most: a missing parameter, the last batch, a promise, an order, a release.

Every number is that of the run with the options that the note names; an epsilon may be some 1e-5 larger (relatively),
since it comes from a coarser lattice. Few runs are evaluated: first one evaluation of each bound decides whether a run
is worth a note, and slow bounds are used only if they gave the answer already.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dpcalc.engine.answer import best_guarantee
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
"""The most improvements in one answer."""

_WORTH = -math.log(0.95)
"""The logarithm of the least gain that is worth a note: 5% better."""

_NEAR = 1.02
"""Gains within about this factor count as equal, and the cheaper change comes first."""

_LARGEST = 700.0
"""The largest logarithm of a gain."""

_SHARES = (0.1, 0.01, 1e-3)
"""The strong convexities to try, as shares of the smoothness."""

_LENGTHS = (1, 2, 3, 4, 5)
"""The diameters to try, as powers of ten of the length of a step: nothing can be learned in a smaller set."""

_IN_PUBLIC = tuple([name for name in ORDERS if "permutation" not in ALGORITHMS[name].defaults])
"""The orders for which secrecy does not matter."""

_TINY = 1e-6

_SOLVED = (
    "noise_std", "noise_multiplier", "laplace_scale", "lipschitz", "diameter", "step_size", "strong_convexity",
    "epochs", "steps",
)  # fmt: skip
"""Parameters that may have been solved for."""

Changes = Mapping[str, Any]


def _rank(note: Alternative) -> tuple[float, int]:
    """Return the sort key of a note: the gain, then the cost of the change."""
    kinds = (Improvement, ShortLastBatch, PromiseNotMade, OtherOrder, OtherRelease)
    return -round(math.log(note.gain or 1.0) / math.log(_NEAR)), kinds.index(type(note))


def _is_free(note: Alternative) -> bool:
    return isinstance(note, ShortLastBatch) or (note.changes or {}).get("step_size") is not None


def _log_gain(result: Result, best: Result) -> float:
    """Return the logarithm of the factor by which a value is better than the best answer."""
    gain = best.log_value - result.log_value
    return gain if _smaller_is_better(best.quantity) else -gain


def _smaller_is_better(quantity: str) -> bool:
    return quantity not in DIRECTIONS or DIRECTIONS[quantity].more_is_private


def _bettered(best: Result, gain: float) -> float:
    """Return the value of the solved parameter, better by the gain."""
    value = best.value * math.exp(-gain if _smaller_is_better(best.quantity) else gain)
    return max(math.floor(value), int(best.value) + 1) if DIRECTIONS[best.quantity].integer else value


def _knowable(run: Run) -> Iterator[Sequence[Changes]]:
    """Yield facts that may be known about the run or arranged: for each its variants, the strongest first."""
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
    """Return the value to six digits, rounded down, so that the note shows exactly the value that was evaluated."""
    shown, count = float(f"{value:.6g}"), 0
    while shown > value:
        count += 1
        shown = float(f"{value * (1.0 - count * _TINY):.6g}")
    return shown


def _diameters(step: float) -> list[Changes]:
    """Return diameters in powers of ten, from some ten steps; none for lengths out of range."""
    if not 1e-200 < step < 1e200:
        return []
    decade = round(math.log10(step))
    return [{"diameter": float(f"1e{decade + power}")} for power in _LENGTHS]


class Asked(NamedTuple):
    """An answered question: the command, its given values, the run, the question and the best answer.

    ``brief``: whether it is one of several, which get shorter advice.
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
        """Whether a parameter of the run was solved for."""
        return self.best.quantity in DIRECTIONS

    @property
    def solution(self) -> Run:
        """The run with the solved parameter."""
        if not self.solved:
            return self.run
        name, value = self.best.quantity, self.best.value
        return self.run.replacing(**{name: int(value) if DIRECTIONS[name].integer else value})

    def changed(self, changes: Changes) -> Run:
        """Return the run with these values given as well, as a user would type them.

        Raises:
            DpcalcError: the command does not take them, or there is no such run.
        """
        return run_of(self.command, Description({**self.given, **changes}, self.sources))[1]

    def best_for(self, run: Run, *, rough: bool, **changes: Any) -> Result | None:
        """Return the best answer for a run with these changes; None if there is none."""
        bounds = for_algorithm(run.algorithm.name, run.algorithm.families)
        bounds.sort(key=lambda bound: bound.id != self.best.bound)  # it may tell that others are hopeless
        return best_guarantee(run, self.question._replace(rough=rough), bounds, **changes)

    def takes(self, changes: Changes) -> bool:
        """Return whether the command takes these parameters and none of them is solved for."""
        return self.best.quantity not in changes and changes.keys() <= set(self.command.parameters)

    def improvements(self, most: int = _MOST) -> tuple[Alternative, ...]:
        """Return at most ``most`` notes on improvements, the largest gain first.

        One of two notes is free of cost if such a change is worth a note: a missing step size, or the split of the
        batches.
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
        """Return the note on the answer with the changes."""
        options = []
        for name, value in changes.items():
            options.append(f"--{name.replace('_', '-')} {plain(value) if isinstance(value, float) else value}")
        gain = math.exp(min(_LARGEST, _log_gain(result, self.best)))
        return kind(**result.alternative_fields, changes=dict(changes), options=" ".join(options), gain=gain, **more)

    def _bounds(self, run: Run) -> list[Theorem]:
        """Return the guarantees of the command for a run, without Renyi forms that have a sharper form."""
        bounds = {}
        for bound in for_algorithm(run.algorithm.name, self.command.families or run.algorithm.families):
            if bound.guarantee and bound.gives is not Rdp and not bound.unpromised(run):
                bounds[bound.id] = bound
        return [b for b in bounds.values() if b.looser_than not in bounds and b.implied_by not in bounds]

    def _quick(self, run: Run) -> list[Theorem]:
        """Return the cheap guarantees; if a parameter is solved for, those in closed form."""
        kinds = (Gdp,) if self.solved else (Gdp, Profile)
        return [bound for bound in self._bounds(run) if bound.gives in kinds and not bound.slow]

    def _improved(self, changes: Changes, bounds: Sequence[Theorem], run: Run, gain: float) -> Result | None:
        """Return the best answer with the changes if the logarithm of its gain is above ``gain``; else None."""
        enough = [bound for bound in bounds if self._reaches(bound, run, gain)]
        if not enough or not self.takes(changes):
            return None
        best = best_guarantee(run, self.question._replace(rough=True), enough)
        return best if best is not None and _log_gain(best, self.best) > gain else None

    def _reaches(self, bound: Theorem, run: Run, gain: float) -> bool:
        """Return whether one evaluation of the bound shows a value better by ``gain``, a logarithm.

        The composition of a whole run answers a second question almost for free, so it skips this test.
        """
        try:
            run = self._at(run, gain)
            if bound.obstacle(run) is not None:
                return False
            return bound.gives is Composition or self._meets(guarantee_of(bound, run, self.question.orders), gain)
        except DpcalcError:
            return False

    def _is_blind_to(self, bound: Theorem, parameter: str) -> bool:
        """Return whether the bound has answered already and does not depend on this parameter."""
        return parameter not in bound.parameters and any(result.bound == bound.id for result in self.case.results)

    def _at(self, run: Run, gain: float) -> Run:
        """Return the run with the solved parameter better by the gain; unchanged if none was solved for."""
        best = self.best
        return run.replacing(**{best.quantity: _bettered(best, gain)}) if self.solved else run

    def _meets(self, guarantee: Guarantee, gain: float) -> bool:
        """Return whether the guarantee meets the budget with epsilon, delta or mu better by the gain."""
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
        """Yield, for each fact that may be known about the run, its weakest variant that is worth a note."""
        run = self.run
        if run.algorithm.own_noise or run.algorithm.local or run.algorithm.noisy_output or run.c1 is not None:
            return
        if self.brief and run.noise is Noise.LAPLACE:
            return
        long = lookup(self.best.bound) in self._bounds(run) and lookup(self.best.bound).slow
        for several in _knowable(run):
            if not several or (long and not {"strong_convexity", "diameter"}.isdisjoint(several[0])):
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
            if self.solved and not self.brief:  # another bound may be better than the closed forms
                bounds += [bound for bound in self._bounds(other) if bound.gives is Profile and not bound.slow]
            if (result := self._improved(changes, bounds, other, _WORTH)) is None:
                continue
            less = True if changes.get("step_size") is not None and run.diameter is None else None
            yield self._note(Improvement, result, changes, or_less=less)

    def _short_batch(self) -> Iterator[Alternative]:
        """Yield the cost of a short last batch that is divided by its own size and so weighs its records more."""
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
        """Yield the gain from promising that the order stays secret."""
        rows = [row for row in self.case.results if row.kind == Kind.CONDITIONAL and row.details]
        best = max(rows, key=lambda row: _log_gain(row, self.best), default=None)
        if best is not None and _log_gain(best, self.best) > _WORTH:
            demands = tuple((best.details or {})["demands"])
            yield self._note(PromiseNotMade, best, {"permutation": Permutation.SECRET}, promise=demands)

    def _other_orders(self) -> Iterator[Alternative]:
        """Yield the best of the other orders of the same passes, if it is better.

        If a parameter is solved for, nothing is said, since each order needs its own search. Comparing a fixed order is
        much cheaper than comparing most orders, so it tries one order: the same passes shuffled in secret.
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
        """Yield the answer for the passes in a secret random order, or in a public one if that is as good."""
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
        """Yield the answer if only the last iterate is released, if the run releases more."""
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
