"""Whether a model is the one that a card speaks of: what its file says of its privacy is what the card says.

What is released is rounded, and what that costs is part of the model's epsilon and delta, which the card states of the
model. Its cases have the guarantee on real numbers, from a budget that is smaller by that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dpcalc.cards.card import STATED
from dpcalc.engine.commands import COMMANDS
from dpcalc.errors import SpecError
from dpcalc.model.draft import NOISE_SCALES
from dpcalc.model.quantities import LossName, Model
from dpcalc.render.numbers import Side, number, symbol_of
from dpcalc.theorems.record import all_bounds
from dpcalc.training.rule.sums_of_products import describes
from dpcalc.training.run.rounding import FUNCTIONS

_ROUNDINGS = 2  # assumptions of a model that are about rounding, beside one of `FUNCTIONS`: they come last
_SHARE = 2.0**-13  # of delta, twice what training sets aside for rounding at first
_MOST = 0.54  # of delta, where rounding costs epsilon
_ROOM = 1.2  # what is set aside over what rounding costs
_ULPS = 1e-12


class Difference(NamedTuple):
    """What a card and a model say of one thing, as JSON values."""

    name: str
    card: Any
    model: Any


def refuse_untrained(card: Mapping[str, Any]) -> None:
    """Refuse a card that says of another query than one of training that its run was carried out.

    Raises:
        SpecError: it has a model, or such an assumption, and no training is described.
    """
    claimed = card["model"] is not None or any(
        each["by"] == "carried out" for case in card["cases"] for each in case["assumptions"]
    )
    if not claimed:
        return
    first, *runs = card["cases"]
    if not (_trains(first["asked"]) and not runs) and not _tunes(first, runs):
        raise SpecError("the card says that dpcalc carried the run out, and describes none that dpcalc train runs")


def _tunes(total: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a total is of the best of several such runs: each is as private as the total takes it to be."""
    ledger = total["asked"]["ledger"]
    if total["asked"]["command"] != "ledger" or not runs or not all(_trains(run["asked"]) for run in runs):
        return False
    tuned, *scores = ledger["entries"]
    held_out = [each for each in scores if set(each["given"]) == {"epsilon"} and not each["command"]]
    largest = max(_mu(run) for run in runs)
    return (
        all(run["unit"] == total["unit"] for run in runs)
        and set(tuned["given"]) == {"mu"}
        and not tuned["command"]
        and all(each["times"] == 1 and each["tuning"] is not None for each in ledger["entries"])
        and len(scores) == len(held_out) <= 1
        and all(each["tuning"] == tuned["tuning"] and each["part"] != tuned["part"] for each in scores)
        and largest <= _number(tuned["given"]["mu"])
    )


def _mu(run: Mapping[str, Any]) -> float:
    """Return the mu that a run is stated to have; infinity where it has none."""
    mu = run["guarantee"]["numbers"][0]["mu"]
    return _number(mu) if mu is not None else math.inf


def _trains(asked: Mapping[str, Any]) -> bool:
    """Return whether training asks this of a run; the rest of what `compare` takes describes runs it never makes."""
    given, train = asked["given"], COMMANDS["train"]
    return (
        asked["command"] == "compare"
        and given.get("algorithm") in train.algorithms
        and (describes(given) or ("loss" in given and set(given) <= {*train.parameters, "model"}))
        and given.get("model") in (None, Model.ANY, *([Model.CAPPED] if given.get("loss") == LossName.SOFTMAX else []))
        and (asked["epsilon"] is not None or asked["delta"] is not None)
        and not asked.get("targets")
    )


def differences(path: str, case: Mapping[str, Any], runs: Sequence[Mapping[str, Any]] = ()) -> Iterator[Difference]:
    """Yield in what a model differs from the case of its card.

    Args:
        path: of the model.
        case: what the card says of it.
        runs: the further cases of the card, where the model is the best of several runs.

    Raises:
        SpecError: the file is no model.
    """
    from dpcalc.training.release.model import load

    model = load(path)
    stated = model.privacy
    found = case["guarantee"]["numbers"][0]
    theorem = case["theorems"][0]
    rounding = stated.get("floating_point")
    rounding = rounding if isinstance(rounding, Mapping) else {}
    plain = {
        "private": (True, stated["private"] if isinstance(stated.get("private"), bool) else None),
        "bound": (theorem["bound"], stated.get("bound")),
        "reference": (theorem["reference"], stated.get("reference")),
        "adjacency": (case["unit"]["neighbours"], stated.get("adjacency")),
    }
    if rounding.get("mu") is not None:
        plain["mu"] = (found["mu"], rounding["mu"])
    for name, value in model.loss.items():
        if name in case["inputs"]:
            plain[name] = (case["inputs"][name]["value"], value)
    for name, (ours, theirs) in plain.items():
        if ours != theirs:
            yield Difference(name, ours, theirs)
    if not _epsilon_fits(found, stated, rounding):
        yield Difference("epsilon", found["epsilon"], stated.get("epsilon"))
    if not _delta_fits(found, stated, rounding):
        yield Difference("delta", found["delta"], stated.get("delta"))
    if not _log_delta_fits(stated):
        yield Difference("log_delta", found["log_delta"], stated.get("log_delta"))
    yield from _of_assumptions((case, *runs), stated, rounding)
    yield from _of_statement(case, stated.get("statement"))


def refuse_another(path: str, card: Mapping[str, Any]) -> None:
    """Refuse a model of which a card does not speak.

    Raises:
        SpecError: the file is no model, or that of another run, or of one that is not private.
    """
    case, *runs = card["cases"]
    different = next(itertools.chain(differences(path, case, runs), candidate_differences(path, card)), None)
    if different is not None:
        raise SpecError(
            f"the model is not that of the report: {different.name} is {different.model!r} in its file, and "
            f"{different.card!r} here",
            "give the file that this run wrote, without --seed and --replicas",
        )


def candidate_differences(path: str, card: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield in what the candidates of a tuned model differ from those of its card.

    Raises:
        SpecError: the file is no model.
    """
    from dpcalc.training.release.model import load

    ledger = card["cases"][0]["asked"]["ledger"]
    tuning = load(path).privacy.get("tuning")
    if ledger is None and tuning is None:
        return
    ours: dict[str, Any] = {}
    if ledger is not None:
        tuned = ledger["entries"][0]
        ours = {
            "distribution": tuned["tuning"]["distribution"], "mean": tuned["tuning"]["mean"],
            "candidates": [_noise(case) for case in card["cases"][1:]],
            "score": next((each["given"]["epsilon"] for each in ledger["entries"][1:]), None),
        }  # fmt: skip
    theirs = _public_of(tuning)
    for name in dict.fromkeys((*ours, *theirs)):
        if ours.get(name) != theirs.get(name):
            yield Difference(f"tuning: {name}", ours.get(name), theirs.get(name))


def _noise(case: Mapping[str, Any]) -> list[Any]:
    found = case["guarantee"]["numbers"][0]
    return [found["quantity"], found["value"]]


def _public_of(tuning: Any) -> dict[str, Any]:
    """Return what a model's file says of its tuning, as far as a card does; nothing where it is malformed."""
    try:
        candidates = [
            next([name, each[name]] for name in NOISE_SCALES if name in each) for each in tuning["candidates"]
        ]
        score = tuning["score"]["epsilon"]
        return {**{name: tuning[name] for name in ("distribution", "mean")}, "candidates": candidates, "score": score}
    except (KeyError, TypeError, StopIteration):
        return {}


def _number(value: Any) -> float:
    """Return a number of a file, 0 for none; NaN, which fits nothing, for what is no number."""
    if value is None:
        return 0.0
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan


def _epsilon_fits(found: Mapping[str, Any], stated: Mapping[str, Any], rounding: Mapping[str, Any]) -> bool:
    ours, theirs = _number(found["epsilon"]), _number(stated.get("epsilon"))
    return 0.0 <= theirs - ours <= _ROOM * _number(rounding.get("epsilon")) + _ULPS * ours


def _delta_fits(found: Mapping[str, Any], stated: Mapping[str, Any], rounding: Mapping[str, Any]) -> bool:
    ours, theirs = _number(found["delta"]), _number(stated.get("delta"))
    share = _MOST if _number(rounding.get("epsilon")) > 0.0 else _SHARE
    return 0.0 <= theirs - ours <= share * theirs + _ROOM * _number(rounding.get("delta"))


def too_strong(card: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield what a card states of its model that is less than the guarantee of the run on real numbers."""
    found = card["cases"][0]["guarantee"]["numbers"][0]
    for name in STATED:
        if not _number(card["model"][name]) >= _number(found[name]):
            yield Difference(name, found[name], card["model"][name])


def _log_delta_fits(stated: Mapping[str, Any]) -> bool:
    """Return whether a model states delta and its logarithm alike."""
    delta, log_delta = _number(stated.get("delta")), stated.get("log_delta")
    if not delta > 0.0 or log_delta is None:
        return True
    return math.isclose(math.log(delta), _number(log_delta), rel_tol=1e-9, abs_tol=1e-9)


def _of_assumptions(
    cases: Sequence[Mapping[str, Any]], stated: Mapping[str, Any], rounding: Mapping[str, Any]
) -> Iterator[Difference]:
    """Yield where the two assume different things, but for those about rounding."""
    texts = [each["text"] for case in cases for each in case["assumptions"] if each["by"] == "promised"]
    written = stated.get("assumes")
    written = list(written) if isinstance(written, (list, tuple)) else [written]
    own = [text for text in written[:-_ROUNDINGS] if text not in FUNCTIONS] if rounding else written
    bounds = [all_bounds().get(case["theorems"][0]["bound"]) for case in cases]
    promises = {each.text for bound in bounds if bound for each in bound.promises}
    if any(text not in texts for text in own) or any(text not in own and text not in promises for text in texts):
        yield Difference("assumes", texts, own)


def _of_statement(case: Mapping[str, Any], statement: Any) -> Iterator[Difference]:
    """Yield the parameters that the model's paragraph states otherwise than the card."""
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
