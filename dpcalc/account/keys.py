"""The facts that the keys of a mapping state, at any depth."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpcalc.account.command_line import of_command_line
from dpcalc.account.facts import FACTS, NOT_PRIVATE, UNCLEAR, Kind, Said, bare, doubted, meaning, plain, value_of
from dpcalc.errors import SpecError
from dpcalc.files.documents import Field, Items, Node, Scalar, Table

_MOST_VALUES = 10_000
HISTORY = "history"
_ELSEWHERE = re.compile(
    r"(eval|evaluation|val|valid|validation|test|predict|inference|generation|log|logging|loss|save|hydra)(_\w+)?"
    r"|\w*(scheduler|schedule|warmup|callback|checkpoint|early|augment|dropout|sweep|optuna)\w*"
)
"""Sections of a configuration that do not describe the training steps."""
_ONCE = ("steps", "epochs", "rounds")
"""Facts that add up over several sections."""
_ITSELF = (
    "value", "enabled", "enable", "active", "use", "name", "type", "kind", "mode", "method", "strategy", "style",
    "class_name", "class_path", "_target_",
)  # fmt: skip
"""Keys that say what the key above them means: ``privacy: {enabled: false}`` is ``privacy: false``."""
_COMMANDS = ("command", "cmd", "entrypoint")
_IDLE = re.compile(r"|none|null|false|no|off|train|test|val|validation|-?[01](\.0*)?|0?\.0+", re.IGNORECASE)
"""Values with which a doubtful key changes nothing."""


def facts_of(shown: str, node: Table) -> tuple[dict[str, Said], tuple[str, ...], tuple[str, ...]]:
    """Return the facts of a mapping and its nested mappings, the unused keys, and why they are unused."""
    facts: dict[str, Said] = {}
    unused: list[str] = []
    remarks: list[str] = []
    taken: dict[int, Node] = {}  # YAML's merges repeat values
    for path, field in values(node):
        where, word = ".".join(path), "sweep" if path[0] == "parameters" and path[-1] == "values" else plain(path[-1])
        section = plain(path[-2]) if len(path) > 1 else ""
        ways = [f"{section}_{word}", f"privacy_{word}" if meaning(section) == "private" else ""]
        alone = not section or meaning(word) or doubted(word)
        joined = (
            "" if alone else next((way for way in ways if meaning(way) or doubted(way)), "")
        )  # ``dp: {level: user}``
        sections, word = path[: -2 if joined else -1], joined or word
        off = isinstance(field, Scalar) and bare(field.text) in NOT_PRIVATE  # as in ``method: non_private``
        name = "not_private" if off else meaning(word) or doubted(word)
        null = isinstance(field, Scalar) and field.null and name not in ("clip", "private")  # these are off
        if null or path[-1] == HISTORY or id(field) in taken:
            continue
        if name and not any(_ELSEWHERE.fullmatch(part.lower()) for part in sections):
            taken[id(field)] = field
            said = _said(name, f"{shown}: {where}", field, doubtful=not meaning(word))
            facts[name] = said if name not in facts else _both(name, facts[name], said)
        elif name or word not in UNCLEAR:
            unused.append(where)
        else:
            remarks.append(f"{where} was not used: {UNCLEAR[word]}")
    return {name: said for name, said in facts.items() if said.text}, tuple(unused), tuple(remarks)


def values(node: Table) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Yield every value with its path, in file order, also inside lists of mappings and in commands.

    A mapping is a value too if its key means a fact and nothing in it says what the fact is.
    """
    waiting: list[tuple[tuple[str, ...], Node]] = [((), node)]
    looked_at = 0
    while waiting:
        path, current = waiting.pop()
        looked_at += 1
        if looked_at > _MOST_VALUES:
            raise SpecError(f"{node.place}: more than {_MOST_VALUES} values", "give the part about the training run")
        if isinstance(current, Scalar) and path and path[-1].lower() in _COMMANDS:
            current = of_command_line(current)
        if isinstance(current, Table):
            if path and (meaning(path[-1]) or doubted(path[-1])) and not set(_ITSELF) & set(current.fields):
                yield path, current
            waiting += reversed([(_below(path, key, field), field.node) for key, field in current.fields.items()])
        elif isinstance(current, Items) and any(isinstance(item, Table) for item in current.items):
            waiting += reversed([((*path, str(place)), item) for place, item in enumerate(current.items)])
        else:
            yield path or ("",), current


def _below(path: tuple[str, ...], key: str, field: Field) -> tuple[str, ...]:
    """Return the path of a value; that of the mapping for YAML's merges, and for a key that says what it is."""
    for part in [] if field.merges else key.split("."):
        if not path or (part != "value" and not (part.lower() in _ITSELF and meaning(path[-1]))):
            path = (*path, part)
    return path


def _said(name: str, origin: str, node: Node, *, doubtful: bool) -> Said:
    if isinstance(node, Table) and FACTS[name].kind in (Kind.WORD, Kind.SWITCH):
        node = Scalar(node.place, "true")
    listed = f"a list of {len(node.items)}" if isinstance(node, Items) else "a mapping"
    text = node.text if isinstance(node, Scalar) else listed
    if doubtful or (name in ("steps", "epochs") and text.strip().startswith("-")):  # -1: the other counts
        return Said(None, origin, "" if _IDLE.fullmatch(text.strip()) else text[:40])
    try:
        return Said(value_of(name, node), origin, text[:40])
    except SpecError:
        return Said(None, origin, text[:40] or "empty")


_STRONGER = {"clip": "per_", "records": "train"}
"""Part of the keys that beat other keys for a fact: ``max_grad_norm`` may be that of a batch."""


def _both(name: str, one: Said, other: Said) -> Said:
    """Return the value of two keys for one fact.

    It is None if they differ or describe two stages of a run; words that no flag can settle are kept together.
    """
    together = name not in _ONCE or one.origin.rpartition(".")[0] == other.origin.rpartition(".")[0]
    stated = [said for said in (one, other) if said.text]
    stated = [
        said for said in stated if _STRONGER.get(name, " ") in said.origin.split()[-1].rpartition(".")[2]
    ] or stated
    if len(stated) < 2 or (one.value == other.value and together):
        return [other, *stated][-1]
    text, fact = f"{one.text} and {other.text}", FACTS[name]
    kept = fact.kind is Kind.WORD and not fact.help and name != "tool"
    return Said(text if kept else None, f"{one.origin} and {other.origin}", text)
