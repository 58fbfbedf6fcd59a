"""The question of a card, as JSON: the command, its parameters, and what is asked.

The card may come from someone else. No value names a file: a schedule is identified by its hash, and the reader gives
its path.

Hashes of documents and files: SHA-256, in hexadecimal digits.

The answer that a card states: the query of a case, asked again with what an attacker can do.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from enum import Enum
from typing import Any

from dpcalc.cards import fields
from dpcalc.engine.ask import ask
from dpcalc.engine.attack.stated import risk_of_guarantee
from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.convert import convert
from dpcalc.engine.ledgers.entries import MECHANISM
from dpcalc.engine.ledgers.total import answer_ledger
from dpcalc.errors import NotApplicable, SpecError, refuse
from dpcalc.files import STANDARD_STREAM
from dpcalc.files.reading import MODEL_BYTES, digest_of
from dpcalc.model.numbers import parse_delta
from dpcalc.model.parameter import EVERY, check, name_of
from dpcalc.model.phases import is_written
from dpcalc.model.quantities import ATTACKS, Adjacency, Quantity
from dpcalc.model.question import Entry, Ledger, Query, Question, RiskQuestion, Target
from dpcalc.notions.tuning import Law
from dpcalc.report import Case


def canonical(document: Any) -> str:
    """Return canonical JSON: sorted keys, no spaces, ASCII only.

    >>> canonical({"b": [1, 2.0], "a": None})
    '{"a":null,"b":[1,2.0]}'
    """
    return json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def hash_of(document: Any) -> str:
    """Return the hash of a document of JSON types."""
    return hashlib.sha256(canonical(document).encode("ascii")).hexdigest()


def seal_of(card: fields.Card) -> str:
    """Return the hash of a card without its field ``sha256``."""
    unsealed: dict[str, object] = {**card}
    unsealed.pop("sha256", None)
    return hash_of(unsealed)


def hash_of_file(path: str) -> fields.File:
    """Return the hash of a file and its size.

    Raises:
        SpecError: it cannot be read, is not a regular file, or has more than `MODEL_BYTES`.
    """
    digest = digest_of(path, MODEL_BYTES)
    return {"sha256": digest.sha256, "bytes": digest.size}


_SMALLEST = -700.0  # below this ln delta, delta is not a normal double
BESIDE = CONVERT, RISK, LEDGER = ("convert", "risk", "ledger")
"""The commands that do not describe a run."""

_SCHEDULE = "schedule"
_FILES = (_SCHEDULE, LEDGER)
"""Parameters with their own field on a card: no value on it names a file."""

_LOG_DELTA = "log_delta"
_WORD = re.compile(r"[a-z][a-z0-9_-]*")
_POWER = re.compile(r"[0-9.]+e-[0-9]+")


def _is_file(name: str, value: Any) -> bool:
    """Return whether a parameter names a file or holds a ledger; a schedule in text form does not."""
    return name in _FILES and not (name == _SCHEDULE and is_written(value))


def asked_of(query: Query) -> fields.Asked:
    """Return a query in the form of a card, which is unique: reading and writing it gives the same text.

    Raises:
        SpecError: the query needs a file, or has a value that JSON does not support.
    """
    given = {name: _value(name, value) for name, value in query.given.items() if not _is_file(name, value)}
    question, risks = query.question, query.question.risks
    asked: fields.Asked = {
        "command": query.command,
        "given": given,
        "epsilon": question.epsilon,
        "delta": _delta(question),
        "orders": list(question.orders),
        "solve": None if question.solve is None else name_of(question.solve.replace("-", "_")),
        "risk": risks and {"fpr": [*risks.fprs], "prior": [*risks.priors], "baseline": [*risks.baselines]},
        "certified": query.certified,
        "schedule": _schedule(query.given.get(_SCHEDULE)),
        "ledger": _ledger(query.given[LEDGER]) if query.command == LEDGER else None,
    }
    if question.targets:
        asked["targets"] = [{"name": one.name, "at": one.at, "limit": one.limit} for one in question.targets]
    if query.bound is not None:
        asked["bound"] = query.bound
    return asked


def query_of_card(asked: fields.Asked, schedule: str | None = None) -> Query:
    """Return the query of a card that conforms to the schema; ``schedule`` is the path given by its reader.

    Raises:
        SpecError: the query is malformed, or its schedule is missing.
    """
    command, given = asked["command"], dict(asked["given"])
    strange = next((name for name, value in given.items() if isinstance(value, list) != (name == Quantity.RDP)), None)
    distrust, beside = "dpcalc writes no such card: do not trust it", command in BESIDE
    refusals = (
        (command not in COMMANDS and not beside, f"the command of the card, {command!r}, is unknown", None),
        (any(_is_file(*pair) for pair in given.items()), "the card names a file among its parameters", distrust),
        (strange is not None, f"the card has an invalid value of {strange!r}", None),
        (
            command == LEDGER and bool(given), f"the card of a ledger also has {next(iter(given), None)!r}",
            "dpcalc writes no such card",
        ),
        (
            command != LEDGER and asked["ledger"] is not None, f"the card is of {command}, but has a ledger",
            distrust,
        ),
        (
            beside and bool(asked["certified"] or asked.get("targets")),
            f"the card is of {command}, which cannot be certified or solved for a risk", None,
        ),
        (
            beside and asked.get("bound") is not None, f"the card is of {command}, which does not ask for one theorem",
            None,
        ),
        (
            command in (LEDGER, RISK) and bool(asked["orders"]),
            f"the card is of {command}, which takes no orders", None,
        ),
    )  # fmt: skip
    refuse(*refusals)
    if Quantity.RDP in given:
        given[Quantity.RDP.value] = _points(given[Quantity.RDP])
    if asked["schedule"] is not None:
        if schedule is None:
            raise SpecError("the card is of a run with a schedule", "give the file: --schedule FILE")
        given[_SCHEDULE] = schedule
    if command == LEDGER:
        given[LEDGER] = _ledger_of(asked["ledger"])
    return Query(command, given, _question(asked), bool(asked["certified"]), asked.get("bound"))


def _points(pairs: list[list[float]]) -> dict[float, float]:
    points = {float(order): float(value) for order, value in pairs}
    if len(points) < len(pairs):
        raise SpecError("rdp: the card has an order twice")
    return points


def _question(asked: fields.Asked) -> Question:
    delta = log_delta = None
    if asked["delta"] is not None:
        typed = asked["delta"]
        delta, log_delta = parse_delta(typed if isinstance(typed, str) else repr(typed))
    risks = asked["risk"]
    return Question(
        asked["epsilon"], delta, log_delta, tuple(map(float, asked["orders"])), asked["solve"],
        risks=None if risks is None else RiskQuestion.of(risks["fpr"], risks["prior"], risks["baseline"]),
        targets=tuple(map(_target, asked.get("targets", ()))),
    )  # fmt: skip


def _target(written: fields.Limit) -> Target:
    """Return the limit on an attacker.

    Raises:
        SpecError: the risk is unknown, or it has a rate that its kind does not take, or lacks one.
    """
    name, at = written["name"], written["at"]
    if name not in ATTACKS or (at is None) == bool(ATTACKS[name]):
        raise SpecError("the card limits an unknown risk")
    return Target(name, None if at is None else float(at), float(written["limit"]))


def _value(name: str, value: Any) -> Any:
    """Return a parameter as a JSON value."""
    if name == Quantity.RDP:
        from dpcalc.engine.premises import points_of

        return [[order, epsilon] for order, epsilon in points_of(value).items()]
    value = value.value if isinstance(value, Enum) else value.item() if hasattr(value, "item") else value
    if isinstance(value, str) and name in EVERY and EVERY[name].choices:
        value = str(check(name, value))
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise SpecError(f"{name} is {value!r}, which a card does not hold", "give a number or a word")
    if isinstance(value, float) and not math.isfinite(value):
        raise SpecError(f"{name} is {value!r}, which a card does not hold", "leave it out")
    return value


def _delta(question: Question) -> float | str | None:
    """Return delta as a number, or as a text such as 1e-5000 if it is below the smallest double."""
    if question.log_delta is None:
        return None
    if question.log_delta < _SMALLEST or question.delta is None:
        return _power(question.log_delta / math.log(10.0))
    return float(question.delta)


def _power(exponent: float) -> str:
    """Return a power of ten in decimal notation, with enough digits to read back the same value.

    >>> _power(-5000.5)
    '3.16227766e-5001'
    """
    whole = math.floor(exponent)
    mantissa = f"{10.0 ** (exponent - whole):.9g}"
    return f"1e{whole + 1}" if mantissa == _TEN else f"{mantissa}e{whole}"


_TEN = "10"  # a value below ten that rounds to it


def _schedule(path: Any) -> fields.File | None:
    if path is None or is_written(path):
        return None
    if str(path) == STANDARD_STREAM:
        raise SpecError("a card identifies a schedule by the hash of its file", "write the schedule to a file")
    return hash_of_file(str(path))


# --- ledgers ----------------------------------------------------------------------------------------------------------


def _ledger(ledger: Ledger) -> fields.Ledger:
    return {
        "adjacency": str(ledger.adjacency),
        "group_size": ledger.group_size,
        "kept": ledger.kept and any(entry.part for entry in ledger.entries),
        "entries": [_entry(entry) for entry in ledger.entries],
    }


def _entry(entry: Entry) -> fields.Entry:
    if _SCHEDULE in entry.given and _is_file(_SCHEDULE, entry.given[_SCHEDULE]):
        raise SpecError(f"entry {entry.name} reads a schedule from a file", "a card holds no such entry: write its mu")
    given = {name: _value(name, value) for name, value in entry.given.items() if name != _LOG_DELTA}
    if _LOG_DELTA in entry.given:
        given["delta"] = _delta(Question(delta=entry.given["delta"], log_delta=entry.given[_LOG_DELTA]))
    tuning: fields.Tuning | None = None
    if entry.tuning is not None:
        law = entry.tuning.law
        tuning = {
            "distribution": str(law), "mean": entry.tuning.mean,
            "shape": entry.tuning.shape if law is Law.NEGATIVE_BINOMIAL else None,
        }  # fmt: skip
    return {
        "name": entry.name,
        "command": entry.command,
        "given": given,
        "times": entry.times,
        "part": entry.part,
        "tuning": tuning,
        "adjacency": None if entry.adjacency is None else str(entry.adjacency),
    }


def _ledger_of(written: fields.Ledger | None) -> Ledger:
    """Return the ledger of a card, read like a ledger given from Python.

    Raises:
        SpecError: it is not a valid ledger.
    """
    from dpcalc.recipes.ledgers.ledger import ledger_of, with_asked

    if written is None:
        raise SpecError("the card is of a ledger, but has none")
    entries = {entry["name"]: _read_entry(entry) for entry in written["entries"]}
    if len(entries) < len(written["entries"]):
        raise SpecError("the ledger of the card has an entry twice")
    ledger, question = ledger_of(entries, partition="kept" if written["kept"] else None)
    group_size = repr(written["group_size"])
    return with_asked(ledger, question, adjacency=written["adjacency"], group_size=group_size)[0]


def _read_entry(entry: fields.Entry) -> dict[str, Any]:
    """Return an entry like one given from Python; no value may lead to a file.

    Raises:
        SpecError: it has a parameter that its kind of entry does not take, or a value that is not a number or a word.
    """
    command, given = entry["command"], dict(entry["given"])
    taken = MECHANISM if not command else COMMANDS[command].parameters if command in COMMANDS else ()
    for name, value in given.items():
        if command and name == _SCHEDULE and isinstance(value, str) and is_written(value):
            continue
        if name not in taken or name == _SCHEDULE:  # such as ``from``, which names a file
            raise SpecError(
                f"entry {entry['name']} has {name!r}, which a {command or 'mechanism'} on a card cannot have"
            )
        if not _is_plain(name, value, of_run=bool(command)):
            raise SpecError(f"entry {entry['name']} has an invalid value of {name!r}")
    if command:
        given["command"] = command
    own = {"times": entry["times"], "part": entry["part"] or None, "adjacency": entry["adjacency"]}
    tuning = entry["tuning"]
    return {**given, **own, "tuning": None if tuning is None else {k: v for k, v in tuning.items() if v is not None}}


def _is_plain(name: str, value: Any, *, of_run: bool) -> bool:
    """Return whether a value of an entry is a number, or a word if words are allowed."""
    if not isinstance(value, str):
        return isinstance(value, (int, float))
    return bool(_WORD.fullmatch(value) if of_run else name == Quantity.DELTA and _POWER.fullmatch(value))


_ONE_WAY = (Adjacency.ADD, Adjacency.REMOVE)
_OTHERS: dict[str, Any] = {CONVERT: convert, RISK: risk_of_guarantee}


def with_risks(query: Query) -> Query:
    """Return the query with the usual question about attacks, unless it has one or none can be answered."""
    question = query.question
    if query.command in (LEDGER, CONVERT):
        return query._replace(question=question._replace(risks=None))
    one_way = query.given.get("adjacency") in _ONE_WAY
    return query if question.risks or one_way else query._replace(question=question._replace(risks=RiskQuestion()))


def answer(query: Query) -> Case:
    """Return the case of a query.

    Raises:
        SpecError, NotApplicable, Infeasible: as `dpcalc.engine.ask.ask`; or there is no privacy guarantee.
        Disproved: certification finds a guarantee below the truth.
    """
    case = _answer(query)
    if case.best is None:
        raise NotApplicable("nothing is guaranteed", "`dpcalc compare` says which bounds apply")
    return case


def _answer(query: Query) -> Case:
    if query.command == LEDGER:
        return answer_ledger(query.given[LEDGER], query.question)
    if query.command in _OTHERS:
        case: Case = _OTHERS[query.command](query.command, query.given, query.question)
        return case
    if COMMANDS[query.command].prices:
        raise SpecError("a cost has no card", "make a card of a run with that cost: dpcalc compare")
    return ask(query.command, query.given, query.question, notes=False, certified=query.certified, only=query.bound)
