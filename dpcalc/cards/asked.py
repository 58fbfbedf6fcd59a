"""What a card answers, as JSON: the command, what was given, and the question.

It is read from a card that others wrote. No value of it names a file: a schedule is known by its hash, and the reader
says where it is.

Hashes of documents and files: SHA-256, in hexadecimal digits.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.ledgers.entries import MECHANISM
from dpcalc.errors import SpecError
from dpcalc.files import STANDARD_STREAM
from dpcalc.files.reading import MODEL_BYTES, digest_of
from dpcalc.model.numbers import parse_delta
from dpcalc.model.parameter import EVERY, check, name_of
from dpcalc.model.quantities import ATTACKS
from dpcalc.model.question import Entry, Ledger, Query, Question, RiskQuestion, Target
from dpcalc.notions.tuning import Law


def canonical(document: Any) -> str:
    """Return JSON of which there is one text: keys sorted, no blanks, ASCII alone.

    >>> canonical({"b": [1, 2.0], "a": None})
    '{"a":null,"b":[1,2.0]}'
    """
    return json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def hash_of(document: Any) -> str:
    """Return the hash of a document of JSON types."""
    return hashlib.sha256(canonical(document).encode("ascii")).hexdigest()


def seal_of(card: dict[str, Any]) -> str:
    """Return the hash of a card without its field ``sha256``."""
    return hash_of({name: value for name, value in card.items() if name != "sha256"})


def hash_of_file(path: str) -> dict[str, Any]:
    """Return the hash of a file and its size.

    Raises:
        SpecError: it cannot be read, is no regular file, or has more than `MODEL_BYTES`.
    """
    found = digest_of(path, MODEL_BYTES)
    return {"sha256": found.sha256, "bytes": found.size}


_SMALLEST = -700.0  # below this ln delta, no double holds delta
BESIDE = ("convert", "risk", "ledger")
"""The commands that describe no run."""

_WORD = re.compile(r"[a-z][a-z0-9_-]*")
_POWER = re.compile(r"[0-9.]+e-[0-9]+")


def asked_of(query: Query) -> dict[str, Any]:
    """Return a query as a card has it, of which there is one spelling: what is read from it is written as it is.

    Raises:
        SpecError: the query cannot be told without a file, or has a value that JSON has not.
    """
    given = {name: _value(name, value) for name, value in query.given.items() if name not in ("schedule", "ledger")}
    question = query.question
    return {
        "command": query.command,
        "given": given,
        "epsilon": question.epsilon,
        "delta": _delta(question),
        "orders": list(question.orders),
        "solve": None if question.solve is None else name_of(question.solve.replace("-", "_")),
        **({"targets": [target._asdict() for target in question.targets]} if question.targets else {}),
        "risk": _risks(question.risks),
        **({"bound": query.bound} if query.bound is not None else {}),
        "certified": query.certified,
        "schedule": _schedule(query.given.get("schedule")),
        "ledger": _ledger(query.given["ledger"]) if query.command == "ledger" else None,
    }


def query_of_card(asked: Mapping[str, Any], schedule: str | None = None) -> Query:
    """Return the query of a card, which conforms to the schema; ``schedule`` is the path that its reader named.

    Raises:
        SpecError: the query is malformed, or its schedule is not at hand.
    """
    command, given = asked["command"], dict(asked["given"])
    if command not in COMMANDS and command not in BESIDE:
        raise SpecError(f"the card is of a command {command!r}, which is not known")
    if "schedule" in given or "ledger" in given:
        raise SpecError("the card names a file among its parameters", "no card does that: do not trust it")
    strange = next((name for name, value in given.items() if isinstance(value, list) != (name == "rdp")), None)
    if strange is not None:
        raise SpecError(f"the card has a value of {strange!r} that is none")
    if command == "ledger" and given:
        raise SpecError(f"the card of a ledger has {next(iter(given))!r} beside it", "no card does that")
    if command != "ledger" and asked["ledger"] is not None:
        raise SpecError(f"the card is of {command}, and has a ledger", "no card does that: do not trust it")
    if command in BESIDE and (asked["certified"] or asked.get("targets")):
        raise SpecError(f"the card is of {command}, of which nothing is certified or solved for a risk")
    if command in BESIDE and asked.get("bound") is not None:
        raise SpecError(f"the card is of {command}, which is not asked of one theorem")
    if command in ("ledger", "risk") and asked["orders"]:
        raise SpecError(f"the card is of {command}, which is not asked at orders")
    if "rdp" in given:
        given["rdp"] = _points(given["rdp"])
    if asked["schedule"] is not None:
        if schedule is None:
            raise SpecError("the card is of a run with a schedule", "give the file: --schedule FILE")
        given["schedule"] = schedule
    if command == "ledger":
        given["ledger"] = _ledger_of(asked["ledger"])
    return Query(command, given, _question(asked), bool(asked["certified"]), asked.get("bound"))


def _points(pairs: list[list[float]]) -> dict[float, float]:
    points = {float(order): float(value) for order, value in pairs}
    if len(points) < len(pairs):
        raise SpecError("rdp: the card has an order twice")
    return points


def _question(asked: Mapping[str, Any]) -> Question:
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


def _target(written: Mapping[str, Any]) -> Target:
    """Return what an attacker may do at most.

    Raises:
        SpecError: it is nothing that can be limited, or a rate is there or missing against the kind of attack.
    """
    name, at = written["name"], written["at"]
    if name not in ATTACKS or (at is None) == bool(ATTACKS[name]):
        raise SpecError("the card limits what is no risk")
    return Target(name, None if at is None else float(at), float(written["limit"]))


def _value(name: str, value: Any) -> Any:
    """Return a parameter as JSON has it."""
    if name == "rdp":
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
    """Return delta as it is read back: a number, or a text such as 1e-5000 where no double can hold it."""
    if question.log_delta is None:
        return None
    if question.log_delta < _SMALLEST or question.delta is None:
        return _power(question.log_delta / math.log(10.0))
    return float(question.delta)


def _power(exponent: float) -> str:
    """Return a power of ten in decimal notation, with as many digits as are read back the same.

    >>> _power(-5000.5)
    '3.16227766e-5001'
    """
    whole = math.floor(exponent)
    mantissa = f"{10.0 ** (exponent - whole):.9g}"
    return f"1e{whole + 1}" if mantissa == "10" else f"{mantissa}e{whole}"


def _risks(risks: RiskQuestion | None) -> dict[str, Any] | None:
    return (
        None
        if risks is None
        else {"fpr": list(risks.fprs), "prior": list(risks.priors), "baseline": list(risks.baselines)}
    )


def _schedule(path: Any) -> dict[str, Any] | None:
    if path is None:
        return None
    if str(path) == STANDARD_STREAM:
        raise SpecError("a card knows a schedule by the hash of its file", "write the schedule to a file")
    return hash_of_file(str(path))


# --- ledgers ----------------------------------------------------------------------------------------------------------


def _ledger(ledger: Ledger) -> dict[str, Any]:
    return {
        "adjacency": str(ledger.adjacency),
        "group_size": ledger.group_size,
        "kept": ledger.kept and any(entry.part for entry in ledger.entries),
        "entries": [_entry(entry) for entry in ledger.entries],
    }


def _entry(entry: Entry) -> dict[str, Any]:
    if "schedule" in entry.given:
        raise SpecError(f"entry {entry.name} reads a schedule from a file", "a card holds no such entry: write its mu")
    given = {name: _value(name, value) for name, value in entry.given.items() if name != "log_delta"}
    if "log_delta" in entry.given:
        given["delta"] = _delta(Question(delta=entry.given["delta"], log_delta=entry.given["log_delta"]))
    tuning = None
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


def _ledger_of(written: Mapping[str, Any] | None) -> Ledger:
    """Return the ledger of a card, read as one that Python has.

    Raises:
        SpecError: it is no ledger.
    """
    from dpcalc.recipes.ledgers.ledger import ledger_of, with_asked

    if written is None:
        raise SpecError("the card is of a ledger, and has none")
    entries = {entry["name"]: _read_entry(entry) for entry in written["entries"]}
    if len(entries) < len(written["entries"]):
        raise SpecError("the ledger of the card has an entry twice")
    ledger, question = ledger_of(entries, partition="kept" if written["kept"] else None)
    group_size = repr(written["group_size"])
    return with_asked(ledger, question, adjacency=written["adjacency"], group_size=group_size)[0]


def _read_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry as one that Python has, of which no value leads to a file.

    Raises:
        SpecError: it has a parameter that its kind of entry does not take, or a value that is no number and no word.
    """
    command, given = entry["command"], dict(entry["given"])
    known = MECHANISM if not command else COMMANDS[command].parameters if command in COMMANDS else ()
    for name, value in given.items():
        if name not in known or name == "schedule":  # such as ``from``, which names a file
            raise SpecError(f"entry {entry['name']} has {name!r}, which no {command or 'mechanism'} on a card has")
        if not _plain(name, value, of_run=bool(command)):
            raise SpecError(f"entry {entry['name']} has a value of {name!r} that is none")
    if command:
        given["command"] = command
    own = {"times": entry["times"], "part": entry["part"] or None, "adjacency": entry["adjacency"]}
    tuning = entry["tuning"]
    return {**given, **own, "tuning": None if tuning is None else {k: v for k, v in tuning.items() if v is not None}}


def _plain(name: str, value: Any, *, of_run: bool) -> bool:
    """Return whether a value of an entry is a number, or a word where one can be."""
    if not isinstance(value, str):
        return isinstance(value, (int, float))
    return bool(_WORD.fullmatch(value) if of_run else name == "delta" and _POWER.fullmatch(value))
