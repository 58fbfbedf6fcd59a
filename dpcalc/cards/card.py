"""Making a card: every case with a guarantee is recomputed, so that readers can reproduce the card."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from dpcalc.cards.asked import LEDGER, answer, asked_of, hash_of_file, query_of_card, seal_of, with_risks
from dpcalc.cards.document import CARRIED_OUT, PROMISED, SCHEMA, case_of
from dpcalc.cards.fields import Asked, Card
from dpcalc.cards.fields import Case as CaseFields
from dpcalc.cards.fields import Model as CardModel
from dpcalc.engine.commands import COMMANDS
from dpcalc.errors import SpecError
from dpcalc.files import Fields
from dpcalc.files.output import write
from dpcalc.files.reading import DOCUMENT_BYTES
from dpcalc.inert import json_text
from dpcalc.model.draft import NOISE_SCALES
from dpcalc.model.quantities import LossName, Model, Quantity
from dpcalc.model.question import Query
from dpcalc.notes import ModelFile
from dpcalc.render.numbers import Side, number, symbol_of
from dpcalc.report import Case, Report
from dpcalc.theorems.record import all_bounds
from dpcalc.training.rule.sums_of_products import describes
from dpcalc.training.run.rounding import FUNCTIONS
from dpcalc.version import __version__

_ROUNDINGS = 2  # the number of assumptions about rounding of a model, besides one of `FUNCTIONS`; they come last
_SHARE = 2.0**-13  # share of delta, twice what training reserves for rounding at first
_MOST = 0.54  # share of delta, if rounding costs epsilon
_ROOM = 1.2  # the reserve divided by the cost of rounding
_ULPS = 1e-12
_COMPARE = "compare"


class Difference(NamedTuple):
    """A field in which a card and a model differ, with both values as JSON."""

    name: str
    card: Any
    model: Any


def refuse_untrained(card: Card) -> None:
    """Refuse a card that claims that dpcalc carried the run out, unless its query is one of training.

    Raises:
        SpecError: it has a model or such an assumption, but does not describe training.
    """
    claimed = card["model"] is not None or any(
        assumption["by"] == CARRIED_OUT for case in card["cases"] for assumption in case["assumptions"]
    )
    if not claimed:
        return
    first, *runs = card["cases"]
    if not (_trains(first["asked"]) and not runs) and not _tunes(first, runs):
        raise SpecError("the card says that dpcalc carried the run out, but dpcalc train has no such run")


def _tunes(total: CaseFields, runs: Sequence[CaseFields]) -> bool:
    """Return whether a total is for the best of several such runs, each as private as the total assumes."""
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
    """Return whether training can ask this question; `compare` also takes runs that training never makes."""
    given, train = asked["given"], COMMANDS["train"]
    return (
        asked["command"] == _COMPARE
        and given.get("algorithm") in train.algorithms
        and (describes(given) or (given.get("loss") is not None and set(given) <= {*train.parameters, "model"}))
        and given.get("model") in (None, Model.ANY, *([Model.CAPPED] if given.get("loss") == LossName.SOFTMAX else []))
        and (asked["epsilon"] is not None or asked["delta"] is not None)
        and not asked.get("targets")
    )


def refuse_another(path: str, card: Card) -> None:
    """Refuse a model that does not belong to a card.

    Raises:
        SpecError: the file is not a model, or belongs to another run or to a run that is not private.
    """
    different = next(differences(path, card), None)
    if different is not None:
        raise SpecError(
            f"the model does not belong to the report: {different.name} is {different.model!r} in its file, but "
            f"{different.card!r} in the report",
            "give the file that this run wrote, without --seed and --replicas",
        )


def differences(path: str, card: Card) -> Iterator[Difference]:
    """Yield the differences between a model and its card.

    Args:
        path: the path of the model.
        card: the card; its first case is the model, the others are the runs from which the model was chosen.

    Raises:
        SpecError: the file is not a model.
    """
    return _ModelFile(path).differences(card)


class _ModelFile:
    """The privacy statement in a model's file, to compare with a card."""

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

    def _other_numbers(self, number: Fields) -> Iterator[str]:
        """Yield the names of the numbers that differ from the card by more than the cost of rounding."""
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

    def _other_assumptions(self, cases: Sequence[CaseFields]) -> Iterator[Difference]:
        """Yield the differences in assumptions, except those about rounding."""
        texts = [one["text"] for case in cases for one in case["assumptions"] if one["by"] == PROMISED]
        written = self._stated.get("assumes")
        written = list(written) if isinstance(written, (list, tuple)) else [written]
        own = [text for text in written[:-_ROUNDINGS] if text not in FUNCTIONS] if self._rounding else written
        bounds = [all_bounds().get(case["theorems"][0]["bound"]) for case in cases]
        promises = {promise.text for bound in bounds if bound for promise in bound.promises}
        if any(text not in texts for text in own) or any(text not in own and text not in promises for text in texts):
            yield Difference("assumes", texts, own)

    def _other_statement(self, case: CaseFields) -> Iterator[Difference]:
        """Yield the parameters in which the model's paragraph differs from the card."""
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
        """Yield the differences between the candidates of a tuned model and those of its card."""
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
    """Return the tuning fields of a model's file that a card also has; empty if malformed."""
    try:
        candidates = [next([name, one[name]] for name in NOISE_SCALES if name in one) for one in tuning["candidates"]]
        score = tuning["score"]["epsilon"]
        return {**{name: tuning[name] for name in ("distribution", "mean")}, "candidates": candidates, "score": score}
    except (KeyError, TypeError, StopIteration):
        return {}


def too_strong(card: Card) -> Iterator[Difference]:
    """Yield the numbers of a card's model that are below the guarantee of the run in exact arithmetic."""
    if card["model"] is None:
        return
    ours, theirs = card["cases"][0]["guarantee"]["numbers"][0], dict(card["model"])
    for name in STATED:
        if not _number(theirs[name]) >= _number(ours[name]):
            yield Difference(name, ours[name], theirs[name])


def _number(value: Any) -> float:
    """Return a number of a file; 0 for None, and NaN, which equals nothing, for any other value."""
    if value is None:
        return 0.0
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan


MOST_CASES = 100
"""A reader computes all of them again."""

_CLOSE = 1e-6
_HINT = "make a card of the run: dpcalc compare"


def card_of(
    report: Report,
    *,
    model: CardModel | None = None,
    fields_of: Callable[[Iterable[Case]], list[CaseFields]] | None = None,
) -> Card:
    """Return the card of a report, with one entry of ``cases`` for each case with a guarantee.

    Args:
        report: the report of a query, of trained models, or of checked recipes.
        model: the result of `model_of` for the model's file.
        fields_of: maps the cases to their fields on the card; None: `case_fields` of each.

    Raises:
        SpecError: no case has a guarantee of privacy, there are too many, one failed, or a model is not private.
    """
    answered = [case for case in report.cases if case.best is not None]
    cases = [case for case in answered if case.training is None or case.training["private"]]
    if answered and not cases:
        if any(case.forgetting for case in answered):
            raise SpecError(
                "unlearning does not make a model private", "`dpcalc unlearn` gives a card of its guarantee"
            )
        raise SpecError("the trained model is not private", "train once, without --seed and --replicas")
    if failed := next((case for case in cases if case.failed), None):
        which = f"case {failed.check.name}" if failed.check else "a case"
        raise SpecError(f"{which} failed, so no card is written", "make a card of the cases that pass")
    if any(case.query is None for case in cases):
        raise SpecError(f"dpcalc {report.command} gives no guarantee that a card could state", _HINT)
    if not cases:
        raise SpecError("no case has a guarantee to put on a card", "`-v` says why")
    count = sum(1 + len(case.runs) for case in cases)
    if count > MOST_CASES:
        raise SpecError(f"a card has at most {MOST_CASES} cases; there are {count}", "ask about fewer")
    if fields_of is None:
        trained = model is not None
        fields = [one for case in cases for one in (case_fields(case, trained=trained), *_of_runs(case, trained))]
    else:
        fields = fields_of(cases)
    card: Card = {"schema": SCHEMA, "dpcalc": __version__, "cases": fields, "model": model, "sha256": ""}
    card["sha256"] = seal_of(card)
    if len(card_text(card).encode()) > DOCUMENT_BYTES:
        raise SpecError(f"the card would have more than {DOCUMENT_BYTES} bytes", "ask about fewer cases")
    as_read: Card = json.loads(card_text(card))
    return as_read


def model_of(path: str, case: Case) -> CardModel:
    """Return the fields of a card about a model's file.

    Args:
        path: the path of the model.
        case: the case of its training.

    Raises:
        SpecError: the file cannot be read.
    """
    assert case.training is not None
    assert case.best is not None
    epsilon, delta = (getattr(case.best, name) for name in STATED)
    stated = {name: case.training[name] for name in OF_CLASSES if name in case.training}
    source = str(case.training["noise_source"])
    model: Any = {**hash_of_file(path), "noise_source": source, "epsilon": epsilon, "delta": delta, **stated}
    return cast("CardModel", model)


STATED = ("epsilon", "delta")
"""The fields about privacy that a model's file and its card both have."""


OF_CLASSES = ("class_shares", "class_weights")
"""What a model's file states of its classes, and a card with it."""


def trained_model(report: Report) -> CardModel | None:
    """Return the fields of a card about a saved model; None if no model was saved.

    Raises:
        SpecError: its file cannot be read.
    """
    training = report.cases[0].training if len(report.cases) == 1 else None
    if not training or not training.get("released"):
        return None
    return model_of(str(training["released"]), report.cases[0])


def write_beside(report: Report, model: str) -> None:
    """Write the card of a saved model beside the model, atomically.

    No card is written if the model is not private, or if it is the best of runs that a card cannot describe.

    Raises:
        SpecError: it cannot be written.
    """
    from dpcalc.training.rule.setup import card_path

    training = report.cases[0].training
    if not training or not training["private"] or report.cases[0].query is None:
        return
    card = card_of(report, model=model_of(model, report.cases[0]))
    write(card_text(card), card_path(model), "-o")


def without_card(case: Case) -> Case:
    """Return a case without the note that names its card."""
    notes = (ModelFile(path=note.path) if isinstance(note, ModelFile) else note for note in case.note_data)
    return case._replace(note_data=tuple(notes))


def card_text(card: Card) -> str:
    """Return a card as the text of a file."""
    return json_text(card, 2) + "\n"


def _asked_again(query: Query) -> tuple[Asked, Case]:
    """Return the question in the form of a card, and the answer to it, as a reader computes it."""
    asked = asked_of(query)
    return asked, answer(query_of_card(asked, query.given.get("schedule")))


def _of_runs(case: Case, trained: bool) -> Iterator[CaseFields]:
    """Yield the fields of the candidates of a tuned model: one run of each."""
    for count, query in enumerate(case.runs, start=1):
        asked, again = _asked_again(with_risks(query))
        yield case_of(asked, again, name=f"one run of candidate {count}", trained=trained)


def case_fields(case: Case, *, trained: bool = False) -> CaseFields:
    """Return the fields of a case on a card.

    Raises:
        SpecError: the question in the form of a card has another answer.
    """
    best = case.best
    assert best is not None
    query: Query = with_risks(case.query)
    asked, again = _asked_again(query)
    if trained and again.best is not None and again.best.bound != best.bound:
        # Rounding may rule out the theorem that is best in exact arithmetic; the card then uses the other one.
        asked, again = _asked_again(query._replace(bound=best.bound))
    stated = again.best
    assert stated is not None
    rounding = (best.details or {}).get("floating_point") or {}
    room = 2.0 * rounding.get(best.quantity, 0.0)  # the model's number includes the cost of rounding
    if best.quantity != stated.quantity or abs(best.value - stated.value) > _CLOSE * abs(best.value) + room:
        raise SpecError(f"{best.quantity} {best.value!r} recomputed is {stated.value!r}", "this is a bug in dpcalc")
    name = case.check.name if case.check else None
    return case_of(asked, again, name=name, trained=trained)
