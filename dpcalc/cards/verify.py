"""Verifying a card: every number and text is recomputed from the question, and compared.

An untrusted card may need too much time and memory, so it is verified in a separate process, within limits.
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
"""The value shown for a missing field."""


_ROUNDING = 1e-9


class Mismatch(NamedTuple):
    """A field of a card that differs from its recomputed value.

    Attributes:
        place: the path of the field, such as ``/cases/0/guarantee/numbers/0/value``.
        given, recomputed: its two values as JSON, or `ABSENT`.
    """

    place: str
    given: str
    recomputed: str


class Verification(NamedTuple):
    """The result of verifying a card.

    Attributes:
        card: the card.
        mismatches: the fields that differ; empty if the card is verified.
        checked: lines about what was compared.
        remarks: lines for the reader, about what was not compared and about other versions.
        unchecked: lines about claims of the card that could not be checked.
    """

    card: fields.Card
    mismatches: tuple[Mismatch, ...]
    checked: tuple[str, ...]
    remarks: tuple[str, ...]
    unchecked: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every compared field equals its recomputed value; see ``unchecked``."""
        return not self.mismatches


class _Again(NamedTuple):
    """A recomputed case, its fields on the card, and remarks."""

    fields: fields.Case
    proved: int
    remarks: tuple[str, ...]


def verify(
    card: fields.Card, *, model: str | None = None, schedule: str | None = None, certify: bool | None = None
) -> Verification:
    """Return the comparison of a card with what this version of dpcalc computes for its question.

    A card of another version may state weaker numbers than this version proves, but no stronger ones.

    Args:
        card: a card, as returned by the functions of `dpcalc.cards.document`.
        model: the path of the card's model.
        schedule: the path of the schedule of the run.
        certify: whether to also prove the guarantees in ball arithmetic; None: if python-flint is installed.

    Raises:
        SpecError: the question is malformed, or a necessary file is not given or cannot be read.
        NotApplicable, Infeasible: there is no such guarantee.
        Disproved: a guarantee is below the truth.
    """
    if model is not None and card["model"] is None:
        raise SpecError("the card has no model", "leave out --model")
    refuse_untrained(card)
    if schedule is not None and not any(case["asked"]["schedule"] for case in card["cases"]):
        raise SpecError("the card has no run with a schedule", "leave out --schedule")
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
        "every field of the card has the value that follows from its question",
        f"{counted(count, 'case')} recomputed by dpcalc {__version__}",
        "the hashes of the configuration and of the card",
    ]
    checked += [f"{counted(proved, 'number')} proved in ball arithmetic"] if proved else []
    checked += ["the hash of the model's file, and the privacy that it states"] if model is not None else []
    remarks = [*_version_remark(card), *(line for case in again for line in case.remarks)]
    if card["model"] is not None and model is None:
        remarks.append("the model was not compared with its hash: give --model FILE")
    if not prove:
        remarks.append("no guarantee was proved in ball arithmetic, which needs python-flint")
    mismatches = (*_mismatches(card, json.loads(card_text(expected)), ""), *_of_model(model, card))
    if _by_rounding(mismatches):
        remarks.append(
            "the numbers differ only by rounding: the last digits may differ on another platform, or with other "
            "versions of numpy and scipy. Make the card again here, or verify it where it was made"
        )
    unchecked = (_UNCHECKED,) if card["model"] is not None and model is None else ()
    return Verification(card, mismatches, tuple(checked), tuple(remarks), unchecked)


_UNCHECKED = "the model, and that dpcalc carried the run out"


def _of_model(path: str | None, card: fields.Card) -> Iterator[Mismatch]:
    """Yield where the model differs from that of the card, or cannot be as private as the card says."""
    for one in (*too_strong(card), *(differences(path, card) if path is not None else ())):
        texts = (json.dumps(value, sort_keys=True, default=str) for value in (one.card, one.model))
        yield Mismatch(f"/model: {one.name}", *texts)


def _by_rounding(mismatches: Sequence[Mismatch]) -> bool:
    """Return whether only the last digits of some numbers differ."""
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
            f"the card was written by dpcalc {card['dpcalc'][:50]} and verified by {__version__}: its guarantees may "
            "be weaker than those of this version, but not stronger"
        )


def _model_of(path: str) -> fields.Model:
    """Return the fields of a card about a model's file, computed from the file.

    Raises:
        SpecError: the file is not a model.
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
    """Return the query in the form of a card, with the stated means of tuning, as reading rounds these up again."""
    asked = asked_of(with_risks(query))
    if asked["ledger"] is not None and stated["ledger"] is not None:
        for entry, written in zip(asked["ledger"]["entries"], stated["ledger"]["entries"], strict=True):
            if entry["tuning"] and written["tuning"]:
                entry["tuning"]["mean"] = float(written["tuning"]["mean"])
    return asked


def _unproved(case: Case) -> Iterator[str]:
    """Yield the bounds that were not proved in ball arithmetic, and why."""
    for result in uncertified(case):
        yield f"{result.bound} was not proved in ball arithmetic: {(result.details or {})['not_certified']}"


def _without_proofs(case: Case) -> Case:
    """Return the case as if certification had not been asked for."""
    own = ("certified", "not_certified")

    def plain(result: Result) -> Result:
        if not result.details:
            return result
        return result._replace(details={name: value for name, value in result.details.items() if name not in own})

    return case._replace(results=tuple(map(plain, case.results)))


def _with_weaker(case: Case, stated: fields.Case) -> tuple[Case, tuple[str, ...]]:
    """Return the case with the card's weaker numbers instead of its own, and remarks about them."""
    numbers = iter(stated["guarantee"]["numbers"])
    remarks, results = [], []
    for result in case.results:
        number = next(numbers, {}) if result.best else {}
        value: Any = number.get("value")
        if number.get("quantity") == result.quantity and _weaker(result.quantity, value, result.value):
            remarks.append(f"the card states {result.quantity} {value!r}; {result.value!r} also holds")
            result = _restated(result, value)
        results.append(result)
    risk = _weaker_risk(case.risk, stated["risk"]) if case.risk else case.risk
    guess = case.guess
    if guess and risk and guess.advantage < (advantage := risk["advantage"]["value"]):
        guess = guess._replace(probability=up(0.5 + 0.5 * advantage, 2.0), advantage=advantage)
    return case._replace(results=tuple(results), risk=risk, guess=guess), tuple(remarks)


def _weaker(quantity: str, stated: Any, value: float) -> bool:
    """Return whether a stated number is a weaker guarantee than a proved one."""
    if not isinstance(stated, (int, float)) or not math.isfinite(value):
        return False
    if quantity in PARAMETERS and not _in_domain(quantity, stated):
        return False
    return stated < value if quantity in MAXIMISED else stated > value


def _in_domain(name: str, value: float) -> bool:
    """Return whether a value is valid for a solved parameter: no run has 2.5 passes, or none."""
    try:
        check(name, value)
    except SpecError:
        return False
    return True


def _restated(result: Result, value: float) -> Result:
    """Return the result with another value, also in the field that repeats the value."""
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
    """Yield the leaves in which two documents differ; 1 differs from 1.0, and 0 from -0."""
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
    """Call `dpcalc.cards.verify.verify` in a process with limits.

    Args:
        card: a card, as returned by the functions of `dpcalc.cards.document`.
        limits: the timeout, and the memory of the process.
        options: the options of `verify`.

    Raises:
        DpcalcError: as `verify`, or a limit is exceeded.
    """
    with Pool(partial(verify, **options), 1, limits.memory) as pool:
        verification: Verification = pool.submit(card, limits.timeout).result()
    return verification


def card_within(report: Report, limits: Limits) -> Card:
    """Call `dpcalc.cards.card.card_of` for untrusted cases, in processes with limits.

    Args:
        report: the report of a check.
        limits: the timeout of each case, and the memory of the process.

    Raises:
        DpcalcError: as `card_of`, or a limit is exceeded.
    """

    def fields_of(cases: Iterable[Case]) -> list[CaseFields]:
        # Send only the fields that a card needs.
        slim = [case._replace(notes=(), note_data=(), obstacles=(), curves=None, training=None) for case in cases]
        with Pool(case_fields, 1, limits.memory) as pool:
            return [pool.submit(case, limits.timeout).result() for case in slim]

    return card_of(report, fields_of=fields_of)
