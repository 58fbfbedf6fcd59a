"""Whether a model is the one that a card speaks of: what its file says of its privacy is what the card says.

What is released is rounded, and what that costs is part of the model's epsilon and delta, which the card states of the
model. Its cases have the guarantee on real numbers, from a budget that is smaller by that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dpcalc.cards.asked import LEDGER
from dpcalc.cards.card import STATED
from dpcalc.cards.document import CARRIED_OUT, PROMISED
from dpcalc.cards.fields import Asked, Card, Case
from dpcalc.engine.commands import COMMANDS
from dpcalc.errors import SpecError
from dpcalc.model.draft import NOISE_SCALES
from dpcalc.model.quantities import LossName, Model, Quantity
from dpcalc.render.numbers import Side, number, symbol_of
from dpcalc.theorems.record import all_bounds
from dpcalc.training.rule.sums_of_products import describes
from dpcalc.training.run.rounding import FUNCTIONS

_ROUNDINGS = 2  # assumptions of a model that are about rounding, beside one of `FUNCTIONS`: they come last
_SHARE = 2.0**-13  # of delta, twice what training sets aside for rounding at first
_MOST = 0.54  # of delta, where rounding costs epsilon
_ROOM = 1.2  # what is set aside over what rounding costs
_ULPS = 1e-12
_COMPARE = "compare"


class Difference(NamedTuple):
    """What a card and a model say of one thing, as JSON values."""

    name: str
    card: Any
    model: Any


def refuse_untrained(card: Card) -> None:
    """Refuse a card that says of another query than one of training that its run was carried out.

    Raises:
        SpecError: it has a model, or such an assumption, and no training is described.
    """
    claimed = card["model"] is not None or any(
        assumption["by"] == CARRIED_OUT for case in card["cases"] for assumption in case["assumptions"]
    )
    if not claimed:
        return
    first, *runs = card["cases"]
    if not (_trains(first["asked"]) and not runs) and not _tunes(first, runs):
        raise SpecError("the card says that dpcalc carried the run out, and describes none that dpcalc train runs")


def _tunes(total: Case, runs: Sequence[Case]) -> bool:
    """Return whether a total is of the best of several such runs: each is as private as the total takes it to be."""
    ledger = total["asked"]["ledger"]
    if ledger is None or total["asked"]["command"] != LEDGER or not runs:
        return False
    if not all(_trains(run["asked"]) for run in runs):
        return False
    tuned, *scores = ledger["entries"]
    mus = [run["guarantee"]["numbers"][0]["mu"] for run in runs]
    return (
        all(run["unit"] == total["unit"] for run in runs)
        and set(tuned["given"]) == {Quantity.MU}
        and not tuned["command"]
        and all(entry["times"] == 1 and entry["tuning"] is not None for entry in ledger["entries"])
        and len(scores) <= 1
        and all(set(score["given"]) == {Quantity.EPSILON} and not score["command"] for score in scores)
        and all(score["tuning"] == tuned["tuning"] and score["part"] != tuned["part"] for score in scores)
        and all(mu is not None and _number(mu) <= _number(tuned["given"]["mu"]) for mu in mus)
    )


def _trains(asked: Asked) -> bool:
    """Return whether training asks this of a run; the rest of what `compare` takes describes runs it never makes."""
    given, train = asked["given"], COMMANDS["train"]
    return (
        asked["command"] == _COMPARE
        and given.get("algorithm") in train.algorithms
        and (describes(given) or ("loss" in given and set(given) <= {*train.parameters, "model"}))
        and given.get("model") in (None, Model.ANY, *([Model.CAPPED] if given.get("loss") == LossName.SOFTMAX else []))
        and (asked["epsilon"] is not None or asked["delta"] is not None)
        and not asked.get("targets")
    )


def refuse_another(path: str, card: Card) -> None:
    """Refuse a model of which a card does not speak.

    Raises:
        SpecError: the file is no model, or that of another run, or of one that is not private.
    """
    different = next(differences(path, card), None)
    if different is not None:
        raise SpecError(
            f"the model is not that of the report: {different.name} is {different.model!r} in its file, and "
            f"{different.card!r} here",
            "give the file that this run wrote, without --seed and --replicas",
        )


def differences(path: str, card: Card) -> Iterator[Difference]:
    """Yield in what a model differs from what its card says of it.

    Args:
        path: of the model.
        card: whose first case is of the model, and whose others are of the runs of which it is the best.

    Raises:
        SpecError: the file is no model.
    """
    return _ModelFile(path).differences(card)


class _ModelFile:
    """What a model's file states of its privacy, beside a card."""

    def __init__(self, path: str) -> None:
        from dpcalc.training.release.model import load

        model = load(path)
        self._loss, self._stated = model.loss, model.privacy
        rounding = self._stated.get("floating_point")
        self._rounding = rounding if isinstance(rounding, Mapping) else {}

    def differences(self, card: Card) -> Iterator[Difference]:
        case, stated = card["cases"][0], self._stated
        number, theorem = case["guarantee"]["numbers"][0], case["theorems"][0]
        plain = {
            "private": (True, stated["private"] if isinstance(stated.get("private"), bool) else None),
            "bound": (theorem["bound"], stated.get("bound")),
            "reference": (theorem["reference"], stated.get("reference")),
            "adjacency": (case["unit"]["neighbours"], stated.get("adjacency")),
        }
        if self._rounding.get("mu") is not None:
            plain["mu"] = (number["mu"], self._rounding["mu"])
        inputs = case["inputs"]
        plain |= {name: (inputs[name]["value"], value) for name, value in self._loss.items() if name in inputs}
        yield from (Difference(name, ours, theirs) for name, (ours, theirs) in plain.items() if ours != theirs)
        yield from (Difference(name, number[name], stated.get(name)) for name in self._other_numbers(number))
        yield from self._other_assumptions(card["cases"])
        yield from self._other_statement(case)
        yield from self._other_candidates(card)

    def _other_numbers(self, number: dict[str, Any]) -> Iterator[str]:
        """Yield the names of the numbers that differ from those of the card by more than rounding costs."""
        stated, lost = self._stated, _number(self._rounding.get("epsilon"))
        ours, theirs = _number(number["epsilon"]), _number(stated.get("epsilon"))
        if not 0.0 <= theirs - ours <= _ROOM * lost + _ULPS * ours:
            yield "epsilon"
        ours, theirs = _number(number["delta"]), _number(stated.get("delta"))
        share = _MOST if lost > 0.0 else _SHARE
        if not 0.0 <= theirs - ours <= share * theirs + _ROOM * _number(self._rounding.get("delta")):
            yield "delta"
        log_delta = stated.get("log_delta")
        if not theirs > 0.0 or log_delta is None:
            return
        if not math.isclose(math.log(theirs), _number(log_delta), rel_tol=1e-9, abs_tol=1e-9):
            yield "log_delta"

    def _other_assumptions(self, cases: Sequence[Case]) -> Iterator[Difference]:
        """Yield where the two assume different things, but for those about rounding."""
        texts = [one["text"] for case in cases for one in case["assumptions"] if one["by"] == PROMISED]
        written = self._stated.get("assumes")
        written = list(written) if isinstance(written, (list, tuple)) else [written]
        own = [text for text in written[:-_ROUNDINGS] if text not in FUNCTIONS] if self._rounding else written
        bounds = [all_bounds().get(case["theorems"][0]["bound"]) for case in cases]
        promises = {promise.text for bound in bounds if bound for promise in bound.promises}
        if any(text not in texts for text in own) or any(text not in own and text not in promises for text in texts):
            yield Difference("assumes", texts, own)

    def _other_statement(self, case: Case) -> Iterator[Difference]:
        """Yield the parameters that the model's paragraph states otherwise than the card."""
        statement = self._stated.get("statement")
        if not isinstance(statement, str):
            return
        described, _, said = statement.partition("). ")
        listed = {part.partition(" = ")[0]: part for part in described.partition(" (")[2].split(", ")}
        for name, given in case["inputs"].items():
            part = listed.get(symbol_of(name))
            text = f"{symbol_of(name)} = {number(given['value'], side=Side.AS_GIVEN)}"
            if part is not None and part != text and not part.startswith(f"{text} "):
                yield Difference(name, text, part)
        claimed = case["guarantee"]["headline"][0].partition(" the result ")[0]
        if claimed.startswith("With ") and not said.startswith(f"{claimed} "):
            yield Difference(claimed[5:].partition(" = ")[0], claimed, said[:100])

    def _other_candidates(self, card: Card) -> Iterator[Difference]:
        """Yield in what the candidates of a tuned model differ from those of its card."""
        ledger, tuning = card["cases"][0]["asked"]["ledger"], self._stated.get("tuning")
        if ledger is None and tuning is None:
            return
        ours: dict[str, Any] = {}
        if ledger is not None:
            tuned, *scores = ledger["entries"]
            law: Mapping[str, object] = tuned["tuning"] or {}
            numbers = [case["guarantee"]["numbers"][0] for case in card["cases"][1:]]
            ours = {
                "distribution": law.get("distribution"), "mean": law.get("mean"),
                "candidates": [[one["quantity"], one["value"]] for one in numbers],
                "score": next((score["given"]["epsilon"] for score in scores), None),
            }  # fmt: skip
        theirs = _public_of(tuning)
        for name in dict.fromkeys((*ours, *theirs)):
            if ours.get(name) != theirs.get(name):
                yield Difference(f"tuning: {name}", ours.get(name), theirs.get(name))


def _public_of(tuning: Any) -> dict[str, Any]:
    """Return what a model's file says of its tuning, as far as a card does; nothing where it is malformed."""
    try:
        candidates = [next([name, one[name]] for name in NOISE_SCALES if name in one) for one in tuning["candidates"]]
        score = tuning["score"]["epsilon"]
        return {**{name: tuning[name] for name in ("distribution", "mean")}, "candidates": candidates, "score": score}
    except (KeyError, TypeError, StopIteration):
        return {}


def too_strong(card: Card) -> Iterator[Difference]:
    """Yield what a card states of its model that is less than the guarantee of the run on real numbers."""
    if card["model"] is None:
        return
    ours, theirs = card["cases"][0]["guarantee"]["numbers"][0], dict(card["model"])
    for name in STATED:
        if not _number(theirs[name]) >= _number(ours[name]):
            yield Difference(name, ours[name], theirs[name])


def _number(value: Any) -> float:
    """Return a number of a file, 0 for none; NaN, which fits nothing, for what is no number."""
    if value is None:
        return 0.0
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
