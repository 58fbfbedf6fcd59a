"""Making a card: every case with a guarantee is asked again, so that the card states what its readers recompute."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

from dpcalc.cards.answer import answer, with_risks
from dpcalc.cards.asked import asked_of, hash_of_file, query_of_card, seal_of
from dpcalc.cards.document import SCHEMA, case_of
from dpcalc.cards.fields import Asked, Card, Model
from dpcalc.cards.fields import Case as CaseFields
from dpcalc.errors import SpecError
from dpcalc.files.output import write
from dpcalc.files.reading import DOCUMENT_BYTES
from dpcalc.inert import json_text
from dpcalc.model.question import Query
from dpcalc.notes import ModelFile
from dpcalc.report import Case, Report
from dpcalc.version import __version__

MOST_CASES = 100
"""A reader computes all of them again."""

_CLOSE = 1e-6
_HINT = "make a card of the run: dpcalc compare"


def card_of(
    report: Report,
    *,
    model: Model | None = None,
    fields_of: Callable[[Iterable[Case]], list[CaseFields]] | None = None,
) -> Card:
    """Return the card of a report, one entry of ``cases`` for each of its cases with a guarantee.

    A model that is not private has none.

    Args:
        report: of a query, of trained models, or of checked recipes.
        model: what `model_of` says of the file that the card is beside.
        fields_of: from the cases to what the card says of them; None: `case_fields` of each.

    Raises:
        SpecError: no case has a guarantee of privacy, there are too many, one failed, or a model is not private.
    """
    answered = [case for case in report.cases if case.best is not None]
    cases = [case for case in answered if case.training is None or case.training["private"]]
    if answered and not cases:
        if any(case.forgetting for case in answered):
            raise SpecError("a model that forgets is not private", "`dpcalc unlearn` has a card of the certificate")
        raise SpecError("what was trained is not private", "train once, without --seed and --replicas")
    if failed := next((case for case in cases if case.failed), None):
        which = f"case {failed.check.name}" if failed.check else "a case"
        raise SpecError(f"{which} failed: a card is of cases that passed", "make it of what passes; no card is written")
    if any(case.query is None for case in cases):
        raise SpecError(f"dpcalc {report.command} gives no guarantee that a card could state", _HINT)
    if not cases:
        raise SpecError("no case has a guarantee: there is nothing to put on a card", "`-v` says why")
    count = sum(1 + len(case.runs) for case in cases)
    if count > MOST_CASES:
        raise SpecError(f"a card of {count} cases; at most {MOST_CASES} go on one", "ask about fewer")
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


def model_of(path: str, case: Case) -> Model:
    """Return what a card says of a model's file.

    Args:
        path: of the model.
        case: of its training.

    Raises:
        SpecError: it cannot be read.
    """
    assert case.training is not None
    assert case.best is not None
    epsilon, delta = (getattr(case.best, name) for name in STATED)
    source = str(case.training["noise_source"])
    return {**hash_of_file(path), "noise_source": source, "epsilon": epsilon, "delta": delta}


STATED = ("epsilon", "delta")
"""What a model's file states of its privacy, and a card with it."""


def trained_model(report: Report) -> Model | None:
    """Return what a card says of the model that was trained and saved; None where there is none.

    Raises:
        SpecError: its file cannot be read.
    """
    training = report.cases[0].training if len(report.cases) == 1 else None
    if not training or not training.get("released"):
        return None
    return model_of(str(training["released"]), report.cases[0])


def write_beside(report: Report, model: str) -> None:
    """Write the card of a model that was saved beside it, atomically.

    There is none of a model that is not private, nor of the best of runs that no card can state.

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
    """Return a case that does not say of a card where one was to be written."""
    notes = (ModelFile(path=note.path) if isinstance(note, ModelFile) else note for note in case.note_data)
    return case._replace(note_data=tuple(notes))


def card_text(card: Card) -> str:
    """Return a card as the text of a file."""
    return json_text(card, 2) + "\n"


def _asked_again(query: Query) -> tuple[Asked, Case]:
    """Return what a card says was asked, and the answer to that: to what a reader will have, and no more."""
    asked = asked_of(query)
    return asked, answer(query_of_card(asked, query.given.get("schedule")))


def _of_runs(case: Case, trained: bool) -> Iterator[CaseFields]:
    """Yield what a card says of the runs of which the best was chosen: one run of every candidate."""
    for number, query in enumerate(case.runs, start=1):
        asked, again = _asked_again(with_risks(query))
        yield case_of(asked, again, name=f"one run of candidate {number}", trained=trained)


def case_fields(case: Case, *, trained: bool = False) -> CaseFields:
    """Return what a card says of a case.

    Raises:
        SpecError: what the card can hold of the query has another answer.
    """
    best = case.best
    assert best is not None
    query: Query = with_risks(case.query)
    asked, again = _asked_again(query)
    if trained and again.best is not None and again.best.bound != best.bound:
        # Rounding may rule out the theorem that is best on real numbers: the card is of the one that is left.
        asked, again = _asked_again(query._replace(bound=best.bound))
    stated = again.best
    assert stated is not None
    rounding = (best.details or {}).get("floating_point") or {}
    room = 2.0 * rounding.get(best.quantity, 0.0)  # the number of a model has what rounding costs
    if best.quantity != stated.quantity or abs(best.value - stated.value) > _CLOSE * abs(best.value) + room:
        raise SpecError(
            f"asked again, {best.quantity} {best.value!r} is {stated.value!r}", "this is a mistake of dpcalc"
        )
    name = case.check.name if case.check else None
    return case_of(asked, again, name=name, trained=trained)
