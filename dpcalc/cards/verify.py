"""Verifying a card: every number and every text is worked out again from what was asked, and compared.

Cards that may ask for more than there is time and memory for: each in a process of its own, within limits.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple, cast

from dpcalc.cards import fields
from dpcalc.cards.asked import BESIDE, answer, asked_of, canonical, hash_of_file, query_of_card, seal_of, with_risks
from dpcalc.cards.card import (
    OF_CLASSES,
    STATED,
    card_of,
    card_text,
    case_fields,
    differences,
    refuse_untrained,
    too_strong,
)
from dpcalc.cards.document import SCHEMA, case_of
from dpcalc.cards.fields import Card
from dpcalc.cards.fields import Case as CaseFields
from dpcalc.errors import SpecError
from dpcalc.files import Fields
from dpcalc.model.parameter import PARAMETERS, check
from dpcalc.model.quantities import ATTACKS, Quantity
from dpcalc.model.question import Query
from dpcalc.numerics.floats import up
from dpcalc.recipes.running.evaluate import Limits
from dpcalc.recipes.running.workers import Pool
from dpcalc.render.layout import counted
from dpcalc.render.numbers import MAXIMISED
from dpcalc.report import Case, Report, Result, uncertified
from dpcalc.version import __version__

ABSENT = "nothing"
"""What stands for a field that is not there."""


_ROUNDING = 1e-9


class Mismatch(NamedTuple):
    """A field of a card that is not what it is worked out to be.

    Attributes:
        place: of the field, such as ``/cases/0/guarantee/numbers/0/value``.
        given, recomputed: its two values as JSON, or `ABSENT`.
    """

    place: str
    given: str
    recomputed: str


class Verification(NamedTuple):
    """What became of a card.

    Attributes:
        card: the card.
        mismatches: the fields that differ; none where the card is verified.
        checked: what was compared, a line each.
        remarks: what the reader should know, a line each: what was not compared, and another version.
        unchecked: what the card claims that was not compared with anything, a line each.
    """

    card: fields.Card
    mismatches: tuple[Mismatch, ...]
    checked: tuple[str, ...]
    remarks: tuple[str, ...]
    unchecked: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every field that was compared is what it is worked out to be; see ``unchecked``."""
        return not self.mismatches


class _Again(NamedTuple):
    """A case worked out again, the fields of the card that it leads to, and what is said of it."""

    fields: fields.Case
    proved: int
    remarks: tuple[str, ...]


def verify(
    card: fields.Card, *, model: str | None = None, schedule: str | None = None, certify: bool | None = None
) -> Verification:
    """Return what a card states and what this version of dpcalc works out from what it was asked.

    A card of another version may state weaker numbers than this version proves, and no stronger ones.

    Args:
        card: as a function of `dpcalc.cards.document` returns it.
        model: path of the model that the card is beside.
        schedule: path of the schedule that the run was described by.
        certify: whether to prove the guarantees in ball arithmetic as well; None: if python-flint is at hand.

    Raises:
        SpecError: what was asked is malformed, or a file that it needs is not given or cannot be read.
        NotApplicable, Infeasible: there is no such guarantee.
        Disproved: a guarantee is below the truth.
    """
    if model is not None and card["model"] is None:
        raise SpecError("the card is of no model", "leave out --model")
    refuse_untrained(card)
    if schedule is not None and not any(case["asked"]["schedule"] for case in card["cases"]):
        raise SpecError("the card is of no run with a schedule", "leave out --schedule")
    prove = find_spec("flint") is not None if certify is None else certify
    again = [_again(case, card, schedule, prove=prove) for case in card["cases"]]
    expected: fields.Card = {
        "schema": SCHEMA,
        "dpcalc": card["dpcalc"],
        "cases": [case.fields for case in again],
        "model": card["model"] if model is None else _model_of(model),
        "sha256": seal_of(card),
    }
    proved, count = sum(case.proved for case in again), len(again)
    checked = [
        "every field of the card has the value that follows from what was asked",
        f"{counted(count, 'case')} computed anew by dpcalc {__version__}",
        "the hashes of the configuration and of the card",
    ]
    checked += [f"{counted(proved, 'number')} proved in ball arithmetic"] if proved else []
    checked += ["the hash of the model's file, and what it says of its privacy"] if model is not None else []
    remarks = [*_version_remark(card), *(line for case in again for line in case.remarks)]
    if card["model"] is not None and model is None:
        remarks.append("the model was not compared with its hash: give --model FILE")
    if not prove:
        remarks.append("no guarantee was proved in ball arithmetic as well: that needs python-flint")
    mismatches = (*_mismatches(card, json.loads(card_text(expected)), ""), *_of_model(model, card))
    if _by_rounding(mismatches):
        remarks.append(
            "the numbers differ by rounding alone: on another platform, or with other versions of numpy and scipy, the "
            "last digits may be others. Make the card anew here, or verify it where it was made"
        )
    unchecked = (_UNCHECKED,) if card["model"] is not None and model is None else ()
    return Verification(card, mismatches, tuple(checked), tuple(remarks), unchecked)


_UNCHECKED = "the model, and that dpcalc carried the run out"


def _of_model(path: str | None, card: fields.Card) -> Iterator[Mismatch]:
    """Yield in what the model is another one than the card speaks of, or cannot be as private as that says."""
    for one in (*too_strong(card), *(differences(path, card) if path is not None else ())):
        texts = (json.dumps(value, sort_keys=True, default=str) for value in (one.card, one.model))
        yield Mismatch(f"/model: {one.name}", *texts)


def _by_rounding(mismatches: Sequence[Mismatch]) -> bool:
    """Return whether nothing differs but the last digits of some numbers."""
    pairs = [(_read(one.given), _read(one.recomputed)) for one in mismatches]
    return bool(pairs) and all(
        isinstance(one, float) and isinstance(other, float) and math.isclose(one, other, rel_tol=_ROUNDING)
        for one, other in pairs
    )


def _read(text: str) -> Any:
    return None if text == ABSENT else json.loads(text)


def _version_remark(card: fields.Card) -> Iterator[str]:
    if card["dpcalc"] != __version__:
        yield (
            f"the card was written by dpcalc {card['dpcalc'][:50]} and verified by {__version__}: a guarantee on it "
            "may be weaker than that of today, and none may be stronger"
        )


def _model_of(path: str) -> fields.Model:
    """Return what a card says of a model's file, as the file states it.

    Raises:
        SpecError: the file is no model.
    """
    from dpcalc.training.release.model import load

    saved = load(path)
    of_classes = {name: list(values) for name in OF_CLASSES if (values := getattr(saved, name)) is not None}
    of_privacy = {name: saved.privacy.get(name) for name in ("noise_source", *STATED)}
    model: Any = {**hash_of_file(path), **of_privacy, **of_classes}
    return cast("fields.Model", model)


# --- one case ---------------------------------------------------------------------------------------------------------


def _again(
    stated: fields.Case,
    card: fields.Card,
    schedule: str | None,
    *,
    prove: bool,
) -> _Again:
    query = query_of_card(stated["asked"], schedule if stated["asked"]["schedule"] is not None else None)
    asked = _as_written(query, stated["asked"])
    provable = query.command not in BESIDE and not query.question.targets
    case = answer(query._replace(certified=query.certified or (prove and provable)))
    proved = sum(bool((result.details or {}).get("certified")) for result in case.answers)
    unproved = tuple(_unproved(case))
    if not query.certified:
        case = _without_proofs(case)
    remarks: tuple[str, ...] = ()
    if card["dpcalc"] != __version__:
        case, remarks = _with_weaker(case, stated)
    again = case_of(asked, case, name=stated["name"], trained=card["model"] is not None)
    return _Again(again, proved, (*remarks, *unproved))


def _as_written(query: Query, stated: fields.Asked) -> fields.Asked:
    """Return the query as a card has it, but for the means of tuning, which are rounded up whenever they are read."""
    asked = asked_of(with_risks(query))
    if asked["ledger"] is not None and stated["ledger"] is not None:
        for entry, written in zip(asked["ledger"]["entries"], stated["ledger"]["entries"], strict=True):
            if entry["tuning"] and written["tuning"]:
                entry["tuning"]["mean"] = float(written["tuning"]["mean"])
    return asked


def _unproved(case: Case) -> Iterator[str]:
    """Yield which numbers were not proved in ball arithmetic, and why."""
    for result in uncertified(case):
        yield f"{result.bound} was not proved in ball arithmetic: {(result.details or {})['not_certified']}"


def _without_proofs(case: Case) -> Case:
    """Return the case as it is where nothing was certified."""
    own = ("certified", "not_certified")

    def plain(result: Result) -> Result:
        if not result.details:
            return result
        return result._replace(details={name: value for name, value in result.details.items() if name not in own})

    return case._replace(results=tuple(map(plain, case.results)))


def _with_weaker(case: Case, stated: fields.Case) -> tuple[Case, tuple[str, ...]]:
    """Return the case with the numbers of a card in place of stronger ones, and what is said of that."""
    numbers = iter(stated["guarantee"]["numbers"])
    remarks, results = [], []
    for result in case.results:
        number = next(numbers, {}) if result.best else {}
        value: Any = number.get("value")
        if number.get("quantity") == result.quantity and _weaker(result.quantity, value, result.value):
            remarks.append(f"the card states {result.quantity} {value!r}; {result.value!r} holds as well")
            result = _restated(result, value)
        results.append(result)
    risk = _weaker_risk(case.risk, stated["risk"]) if case.risk else case.risk
    guess = case.guess
    if guess and risk and guess.advantage < (advantage := risk["advantage"]["value"]):
        guess = guess._replace(probability=up(0.5 + 0.5 * advantage, 2.0), advantage=advantage)
    return case._replace(results=tuple(results), risk=risk, guess=guess), tuple(remarks)


def _weaker(quantity: str, stated: Any, value: float) -> bool:
    """Return whether a number that is stated says less than one that holds."""
    if not isinstance(stated, (int, float)) or not math.isfinite(value):
        return False
    if quantity in PARAMETERS and not _in_domain(quantity, stated):
        return False
    return stated < value if quantity in MAXIMISED else stated > value


def _in_domain(name: str, value: float) -> bool:
    """Return whether a parameter that was solved for can have a value: no run has 2.5 passes, or none."""
    try:
        check(name, value)
    except SpecError:
        return False
    return True


def _restated(result: Result, value: float) -> Result:
    """Return the result with another value, also in the field that repeats it."""
    result = result._replace(value=value)
    if result.quantity == Quantity.EPSILON:
        return result._replace(epsilon=value)
    if result.quantity == Quantity.MU:
        return result._replace(mu=value)
    return result._replace(delta=value, log_delta=math.log(value)) if result.quantity == Quantity.DELTA else result


def _weaker_risk(risk: Fields, stated: object) -> dict[str, Any]:
    """Return the risk with the values of a card in place of smaller ones."""
    weaker = dict(risk)
    if not isinstance(stated, Mapping):
        return weaker
    for name in ATTACKS:
        one = not isinstance(weaker[name], list)
        rows = [weaker[name]] if one else weaker[name]
        others = [stated.get(name)] if one else stated.get(name)
        if not isinstance(others, list) or len(others) != len(rows):
            continue
        rows = [_weaker_row(row, other) for row, other in zip(rows, others, strict=True)]
        weaker[name] = rows[0] if one else rows
    return weaker


def _weaker_row(row: Fields, stated: object) -> Fields:
    value = stated.get("value") if isinstance(stated, Mapping) else None
    return {**row, "value": value} if isinstance(value, float) and value > row["value"] else row


# --- field by field ---------------------------------------------------------------------------------------------------


def _mismatches(given: Any, recomputed: Any, place: str) -> Iterator[Mismatch]:
    """Yield the leaves in which two documents differ; a whole number is no fraction, and 0 is not -0."""
    if isinstance(given, dict) and isinstance(recomputed, dict):
        for name in dict.fromkeys((*given, *recomputed)):
            yield from _mismatches(given.get(name, _NONE), recomputed.get(name, _NONE), f"{place}/{name}")
    elif isinstance(given, list) and isinstance(recomputed, list):
        for number, pair in enumerate(itertools.zip_longest(given, recomputed, fillvalue=_NONE)):
            yield from _mismatches(*pair, f"{place}/{number}")
    elif (texts := [ABSENT if side is _NONE else canonical(side) for side in (given, recomputed)])[0] != texts[1]:
        yield Mismatch(place, *texts)


_NONE = object()


def verify_within(card: Card, limits: Limits, **options: Any) -> Verification:
    """Return what `dpcalc.cards.verify.verify` does.

    Args:
        card: as a function of `dpcalc.cards.document` returns it.
        limits: its timeout, and the memory of the process.
        options: those of `verify`.

    Raises:
        DpcalcError: what `verify` raises, or a limit is exceeded.
    """
    with Pool(partial(verify, **options), 1, limits.memory) as pool:
        verification: Verification = pool.submit(card, limits.timeout).result()
    return verification


def card_within(report: Report, limits: Limits) -> Card:
    """Return what `dpcalc.cards.card.card_of` does, of cases that others described.

    Args:
        report: of a check.
        limits: the timeout of each case, and the memory of the process.

    Raises:
        DpcalcError: what `card_of` raises, or a limit is exceeded.
    """

    def fields_of(cases: Iterable[Case]) -> list[CaseFields]:
        # What a card does not need stays here.
        slim = [case._replace(notes=(), note_data=(), obstacles=(), curves=None, training=None) for case in cases]
        with Pool(case_fields, 1, limits.memory) as pool:
            return [pool.submit(case, limits.timeout).result() for case in slim]

    return card_of(report, fields_of=fields_of)
