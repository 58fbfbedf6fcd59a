"""Reading a ledger: its text to its entries, every mistake with its place; nothing is evaluated here."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.ledger import MECHANISM, MOST_ENTRIES, MOST_TIMES, Entry, Ledger
from dpcalc.engine.question import Question
from dpcalc.errors import SpecError
from dpcalc.files.documents import Rules, parse_json, parse_yaml
from dpcalc.files.nodes import Field, Scalar, Table, table, text
from dpcalc.files.place import Place, clipped, near
from dpcalc.files.reading import document_place, read_document
from dpcalc.model.choices import Adjacency
from dpcalc.model.numbers import parse_delta, parse_integer, parse_number
from dpcalc.model.parameter import check
from dpcalc.model.source import Source
from dpcalc.notions.tuning import Law, Tuning, tuning_of
from dpcalc.recipes.case import read_command
from dpcalc.recipes.matrix import Vocabulary
from dpcalc.recipes.reference import Files
from dpcalc.recipes.settings import Setting, by_name, follow, read_settings, suggestion
from dpcalc.recipes.values import QUESTION

VERSION = "ledger/1"
KEYS = ("dpcalc", "description", "adjacency", "group_size", "partition", "budget", "entries")
"""The keys of a ledger."""

OWN = ("times", "part", "tuning", "description")
"""The keys of an entry that describe no run."""

_SYNTAX = Rules(items=MOST_ENTRIES, anchor_hint="write the entries out", depth_hint="a ledger needs four levels")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9 ._-]{0,99}")


def read_ledger(path: str | None, added: Sequence[str] = ()) -> tuple[Ledger, Question]:
    """Return the ledger in a file and in lines that are added to it, and the budget that it states.

    Args:
        path: YAML or JSON, ``-`` for standard input; None for the added lines alone.
        added: entries as ``name: value`` pairs, e.g. ``epsilon=0.1 times=100``.

    Raises:
        SpecError: it is no ledger; the message says where.
    """
    files = Files(path or "ledger")
    body = _body(path, files) if path is not None else Table(Place("--add"), {})
    fields = dict(body.fields)
    for name, field in fields.items():
        if name not in KEYS:
            raise field.place.error(f"unknown key {clipped(name)}", near(name, KEYS))
    entries = dict(table(fields["entries"].node, "entries").fields) if "entries" in fields else {}
    stated = _adjacency(fields.get("adjacency"), files)
    read = [_entry(name, field, files, stated) for name, field in entries.items()]
    free = (name for name in map("added-{}".format, itertools.count(1)) if name not in entries)
    read += [_entry(name, _typed(line), files) for name, line in zip(free, added, strict=False)]
    if not read:
        raise body.place.error("there are no entries", "write them under entries:, each with a name of its own")
    ledger = Ledger(
        tuple(read),
        stated or Adjacency.REPLACE_ONE,
        _whole(fields.get("group_size"), "group_size", 10**6, files),
        _kept(fields.get("partition")),
    )
    return ledger, _budget(fields.get("budget"), files)


def _body(path: str, files: Files) -> Table:
    shown = str(document_place(path))
    raw = read_document(files.recipe, "ledger")
    node = parse_json(shown, raw) if path.endswith(".json") else parse_yaml(shown, raw, _SYNTAX)
    if node is None:
        raise Place(shown).error("is empty", f"a ledger starts with dpcalc: {VERSION}")
    body = table(node, "the ledger")
    if "dpcalc" not in body.fields:
        raise body.place.error("this is not a ledger: the version is missing", f"start with dpcalc: {VERSION}")
    version = body.fields["dpcalc"].node
    if text(version, "dpcalc") != VERSION:
        hint = "a recipe is run with `dpcalc check`" if text(version, "dpcalc").startswith("recipe") else None
        raise version.place.error(f"dpcalc is {clipped(text(version, 'dpcalc'))}; this release reads {VERSION}", hint)
    return body


def _typed(line: str) -> Field:
    """Return the entry that a line of ``key=value`` pairs spells; ``tuning.mean=10`` is inside ``tuning``."""
    place = Place("--add")
    fields: dict[str, Field] = {}
    tuning: dict[str, Field] = {}
    for word in line.replace(",", " ").split():
        name, mark, value = word.partition("=")
        if not mark or not name or not value:
            raise SpecError(f"--add: {clipped(word)} is not key=value", "for example --add 'epsilon=0.1 times=100'")
        inside, _, key = name.replace("-", "_").partition(".")
        into, key = (tuning, key) if key and inside == "tuning" else (fields, name.replace("-", "_"))
        if key in into:
            raise SpecError(f"--add: {clipped(name)} is there twice", "keep one")
        into[key] = Field(place, Scalar(place, value))
    if tuning:
        fields["tuning"] = Field(place, Table(place, tuning))
    return Field(place, Table(place, fields))


def _entry(name: str, field: Field, files: Files, stated: Adjacency | None = None) -> Entry:
    """Return an entry; what is known of a mechanism is for the adjacency that its file states."""
    if not _NAME.fullmatch(name):
        raise field.place.error(f"{clipped(name)} is not a name", "use letters, digits, - and _, at most 100 of them")
    body = table(field.node, f"entry {name}")
    own = {key: body.fields[key] for key in OWN if key in body.fields}
    rest = Table(body.place, {key: value for key, value in body.fields.items() if key not in OWN})
    adjacency = _adjacency(rest.fields.get("adjacency"), files)
    times = _whole(own.get("times"), "times", MOST_TIMES, files)
    part = _part(own.get("part"))
    tuning, runs = _tuning(own.get("tuning"), files)
    command, given = _run(name, rest, files) if _is_run(rest) else ("", _mechanism(name, rest, files))
    if times * runs > MOST_TIMES:
        raise field.place.error(f"more than {MOST_TIMES} runs", "use fewer")
    return Entry(name, command, given, times * runs, part, tuning, adjacency or (None if command else stated))


def _is_run(body: Table) -> bool:
    """Return whether an entry describes a run, and no mechanism."""
    return any(key in body.fields for key in ("algorithm", "command", "from"))


def _run(name: str, body: Table, files: Files) -> tuple[str, Mapping[str, Any]]:
    """Return the command and the parameters of a described run."""
    command = read_command(body.fields.get("command"), "compare")
    if COMMANDS[command].trains or COMMANDS[command].prices or "chain" in COMMANDS[command].algorithms:
        raise body.place.error(f"entry {name}: {command} describes no run of records", "use compare, or dp-sgd")
    vocabulary = Vocabulary(command, files)
    settings = read_settings(body, files)
    given: dict[str, Any] = {}
    for key, setting in settings.items():
        if key in QUESTION:
            raise setting.place.error(f"entry {name}: {key} is asked of all entries together", f"leave out {key}")
        if key not in vocabulary.names:
            hint = suggestion(key, (*vocabulary.names, *OWN))
            raise setting.place.error(f"entry {name}: unknown key {clipped(key)}", hint)
        if key != "adjacency" and not setting.null:
            given[key] = vocabulary.value(key, setting)
    return command, given


def _mechanism(name: str, body: Table, files: Files) -> Mapping[str, Any]:
    """Return what describes a mechanism: positive numbers, and delta as its logarithm."""
    given: dict[str, Any] = {}
    for key, field in by_name(body.fields).items():
        if key == "adjacency":
            continue
        if key not in MECHANISM:
            hint = f"a mechanism takes {', '.join(MECHANISM)}; a run has algorithm: or command:"
            raise field.place.error(f"entry {name}: unknown key {clipped(key)}", hint)
        setting = follow(field.place, field.node, files)
        if key == "delta":
            delta, log_delta = _number(setting, key, parse_delta)
            if not log_delta < 0.0:
                raise setting.place.error(f"entry {name}: delta must be > 0 and < 1", "leave out delta where it is 0")
            given |= {"delta": delta, "log_delta": log_delta}
            continue
        value = _number(setting, key, parse_number)
        if not 1e-9 <= value <= 1e9:
            raise setting.place.error(f"entry {name}: {key} must be from 1e-9 to 1e9", "write it in other units")
        given[key] = value
    return given


def _number(setting: Setting, name: str, parse: Any) -> Any:
    """Return a number; of one that stands in another file no error shows the text."""
    if setting.unread is not None:
        raise setting.unread
    try:
        return parse(text(setting.node, name).strip(" "))
    except SpecError as error:
        if setting.origin:
            raise setting.place.error(f"{name} is that of {clipped(setting.origin)}, and no such number") from None
        raise setting.place.error(f"{name}: {error.message}", error.hint) from None


def _whole(field: Field | None, name: str, most: int, files: Files) -> int:
    if field is None:
        return 1
    value = int(_number(follow(field.place, field.node, files), name, parse_integer))
    if not 1 <= value <= most:
        raise field.place.error(f"{name} must be a whole number from 1 to {most}")
    return value


def _adjacency(field: Field | None, files: Files) -> Adjacency | None:
    if field is None:
        return None
    try:
        return Adjacency(str(check("adjacency", text(field.node, "adjacency"))))
    except SpecError as error:
        raise field.place.error(error.message, error.hint) from None


def _kept(field: Field | None) -> bool:
    if field is None:
        return False
    if text(field.node, "partition") != "kept":
        raise field.place.error("partition can only be kept", "a record that replaces another stays in its part")
    return True


def _part(field: Field | None) -> str:
    if field is None:
        return ""
    name = text(field.node, "part").strip()
    if not _WORD.fullmatch(name):
        raise field.place.error("part is not a name", "use letters, digits, blanks, . - and _")
    return name


def _tuning(field: Field | None, files: Files) -> tuple[Tuning | None, int]:
    """Return the law of a secret number of runs, and a number of runs that is fixed."""
    if field is None:
        return None, 1
    body = table(field.node, "tuning")
    words = (*Law, "fixed")
    for key, inner in body.fields.items():
        if key not in ("distribution", "mean", "shape"):
            raise inner.place.error(f"unknown key {clipped(key)}", "distribution, mean and shape")
    if "distribution" not in body.fields or "mean" not in body.fields:
        raise body.place.error("tuning needs distribution and mean", f"distribution is one of {', '.join(words)}")
    word = text(body.fields["distribution"].node, "distribution")
    if word not in words:
        raise body.fields["distribution"].place.error(
            f"distribution is {clipped(word)}; it must be one of {', '.join(words)}", near(word, words)
        )
    mean = body.fields["mean"]
    if word == "fixed":
        if "shape" in body.fields:
            raise body.fields["shape"].place.error("shape is of negative-binomial alone", "leave it out")
        return None, _whole(mean, "mean", MOST_TIMES, files)
    shape = body.fields.get("shape")
    try:
        return tuning_of(
            Law(word), _number(follow(mean.place, mean.node, files), "mean", parse_number),
            None if shape is None else _number(follow(shape.place, shape.node, files), "shape", parse_number),
        ), 1  # fmt: skip
    except SpecError as error:
        if ":" in error.message and error.message.startswith(str(mean.place)):
            raise
        raise body.place.error(error.message, error.hint) from None


def _budget(field: Field | None, files: Files) -> Question:
    """Return the question that the budget asks; delta alone asks for epsilon."""
    if field is None:
        return Question()
    body = table(field.node, "budget")
    body = body._replace(fields=by_name(body.fields))
    for key, inner in body.fields.items():
        if key not in ("epsilon", "delta"):
            raise inner.place.error(f"unknown key {clipped(key)}", "epsilon and delta")
    epsilon = delta = log_delta = None
    if "epsilon" in body.fields:
        epsilon = _number(_followed(body, "epsilon", files), "epsilon", parse_number)
    if "delta" in body.fields:
        delta, log_delta = _number(_followed(body, "delta", files), "delta", parse_delta)
    return Question(epsilon, delta, log_delta)


def _followed(body: Table, key: str, files: Files) -> Setting:
    field = body.fields[key]
    return follow(field.place, field.node, files)


def with_asked(
    ledger: Ledger,
    question: Question,
    *,
    epsilon: str | None = None,
    delta: str | None = None,
    adjacency: str | None = None,
    group_size: str | None = None,
    solve: str | None = None,
) -> tuple[Ledger, Question]:
    """Return a ledger and its question with what is asked instead of what its file says, each as typed.

    Raises:
        SpecError: a value is none.
    """
    place = Place("--adjacency")
    if adjacency is not None:
        word = _adjacency(Field(place, Scalar(place, adjacency)), Files("ledger"))
        ledger = ledger._replace(adjacency=word or ledger.adjacency)
    if group_size is not None:
        ledger = ledger._replace(group_size=parse_integer(group_size))
    if epsilon is not None:
        question = question._replace(epsilon=parse_number(epsilon), source=Source.FLAG)
    if delta is not None:
        value, log_delta = parse_delta(delta)
        question = question._replace(delta=value, log_delta=log_delta, source=Source.FLAG)
    return ledger, question._replace(solve=solve)
