"""How two recordings differ: by exit code, JSON value, new JSON field, text, stderr or file."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

EXAMPLES = 3
"""How many of a group are shown."""
WIDTH = 100
Entry = Mapping[str, Any]


class Difference(NamedTuple):
    """One place in which two answers differ. ``kind``: question, code, json, added, text, stderr or file."""

    kind: str
    place: str
    line: str
    change: str

    def __str__(self) -> str:
        return " | ".join(self)


class _Number(str):
    """A number as it is written: two are the same to the last bit if their texts are."""

    __slots__ = ()


def differences(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> Iterator[Difference]:
    """Yield every difference between two recordings."""
    for id in {**before, **after}:
        if id not in after or id not in before:
            entry, change = (before[id], "no longer asked") if id in before else (after[id], "not asked before")
            yield Difference("question", entry["command"], entry["line"], change)
            continue
        yield from _of_answers(before[id], after[id])


def _of_answers(before: Entry, after: Entry) -> Iterator[Difference]:
    line, command = before["line"], before["command"]
    if before["code"] != after["code"]:
        yield Difference("code", f"{before['code']} -> {after['code']}", line, _codes_told(before, after))
    if before["stdout"] != after["stdout"]:
        yield from _of_texts("text", command, line, before["stdout"], after["stdout"])
    if before["stderr"] != after["stderr"]:
        change = _first_change(before["stderr"], after["stderr"])
        yield Difference("stderr", f"{command}: {re.sub(r'[0-9.]+', 'N', change)[:WIDTH]}", line, change)
    for name in sorted({*before["written"], *after["written"]}):
        old, new = before["written"].get(name), after["written"].get(name)
        if old is None or new is None:
            yield Difference("file", name, line, "no longer written" if new is None else "newly written")
        elif old != new:
            yield from _of_texts("file", f"{command} {name}", line, old, new)


def _codes_told(before: Entry, after: Entry) -> str:
    old, new = (entry["stderr"].partition("\n")[0] or "no message" for entry in (before, after))
    return f"{old} -> {new}"


def _of_texts(kind: str, place: str, line: str, before: str, after: str) -> Iterator[Difference]:
    old, new = _parsed(before), _parsed(after)
    if old is None or new is None:
        yield Difference(kind, place, line, _first_change(before, after))
        return
    found = list(_of_values(old, new, place))
    for kind_of_value, path, change in found:
        yield Difference(kind_of_value, path, line, change)
    if not found:
        yield Difference(kind, f"{place} (the same JSON, written otherwise)", line, _first_change(before, after))


def _parsed(text: str) -> Any:
    """Return the JSON that the text is, or the list of what its lines are; None if they are none."""
    for candidate in (text, "[" + ",".join(text.splitlines()) + "]"):
        try:
            return json.loads(candidate, parse_float=_Number, parse_int=_Number)
        except ValueError:
            pass
    return None


def _of_values(old: Any, new: Any, path: str) -> Iterator[tuple[str, str, str]]:
    if type(old) is not type(new) or not isinstance(old, (dict, list)):
        if type(old) is not type(new) or old != new:
            yield "json", path, f"{_short(old)} -> {_short(new)}"
    elif isinstance(old, dict):
        yield from _of_objects(old, new, path)
    elif _named(old) and _named(new):
        yield from _of_named(old, new, path)
    else:
        if len(old) != len(new):
            yield "json", f"{path}[]", f"{len(old)} items -> {len(new)} items: {_short(old)} -> {_short(new)}"
        for one, other in zip(old, new, strict=False):
            yield from _of_values(one, other, f"{path}[]")


def _of_objects(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    for key in {**old, **new}:
        if key not in old:
            yield "added", f"{path}.{key}", _short(new[key])
        elif key not in new:
            yield "json", f"{path}.{key}", f"{_short(old[key])} -> left out"
        else:
            yield from _of_values(old[key], new[key], f"{path}.{key}")


def _named(items: Sequence[Any]) -> bool:
    """Return whether the items are results or refusals, one a bound."""
    names = [item.get("bound") if isinstance(item, dict) else None for item in items]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _of_named(old: list[Any], new: list[Any], path: str) -> Iterator[tuple[str, str, str]]:
    """Compare lists of results by their bounds, so that one that is left out does not move all others."""
    olds, news = ({item["bound"]: item for item in items} for items in (old, new))
    for name in {**olds, **news}:
        if name not in olds or name not in news:
            yield "json", f"{path}[{name}]", "left out" if name in olds else "new"
        else:
            yield from _of_values(olds[name], news[name], f"{path}[]")
    both = [[name for name in names if name in olds and name in news] for names in (olds, news)]
    if both[0] != both[1]:
        yield "json", f"{path}[] (order)", f"{_short(both[0])} -> {_short(both[1])}"


def _short(value: Any) -> str:
    text = value if isinstance(value, _Number) else json.dumps(value)
    return text if len(text) <= WIDTH else text[:WIDTH] + "..."


def _first_change(before: str, after: str) -> str:
    for old, new in zip_longest(before.splitlines(), after.splitlines(), fillvalue="(no line)"):
        if old != new:
            return f"{old[:WIDTH]} -> {new[:WIDTH]}"
    return "line ends"


def report(found: Iterable[Difference], allowed: Sequence[str] = (), *, added_ok: bool = False) -> tuple[str, int]:
    """Return the differences in groups, and how many are not allowed."""
    patterns = [re.compile(text) for text in allowed]
    expected = 0
    groups: dict[tuple[str, str], list[Difference]] = defaultdict(list)
    for one in found:
        if (added_ok and one.kind == "added") or any(pattern.search(str(one)) for pattern in patterns):
            expected += 1
        else:
            groups[one.kind, one.place].append(one)
    lines = []
    for (kind, place), ones in sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]))):
        lines.append(f"{kind} {place}: {len(ones)}")
        for one in ones[:EXAMPLES]:
            lines += [f"    {one.line[: 2 * WIDTH]}", f"        {one.change}"]
    count = sum(map(len, groups.values()))
    lines.append(f"{count} differences, and {expected} that are allowed")
    return "\n".join(lines), count
