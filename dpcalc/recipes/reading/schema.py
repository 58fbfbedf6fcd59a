"""The JSON schema of recipes: the shipped frame, with every command's parameters filled in from their records.

A draft recipe from a training configuration, with references to the values that describe the run.
"""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from dpcalc.engine.commands import COMMANDS, taken_by
from dpcalc.engine.gate import QUANTITIES
from dpcalc.errors import SpecError
from dpcalc.files.documents import Items, Node, Scalar, Table
from dpcalc.files.place import LeavesProject, Place, clipped, inside, near
from dpcalc.inert import json_text, printable
from dpcalc.model.algorithm import NAMED
from dpcalc.model.parameter import EVERY, PARAMETERS, means_exactly, meant_by, name_of, not_covered, synonyms
from dpcalc.recipes.judging.objections import EXCEPTIONS
from dpcalc.recipes.reading.reference import Files
from dpcalc.recipes.reading.settings import (
    BESIDE,
    COUNTS,
    FRACTIONS,
    MANY,
    SWITCHES,
    may_be_referred,
    parameters_of,
    single,
)
from dpcalc.references import read
from dpcalc.render.layout import listed


def recipe_schema() -> dict[str, Any]:
    """Return the schema of ``recipe/1`` (JSON Schema 2020-12)."""
    schema: dict[str, Any] = json.loads(read("recipe-1.schema.json"))
    names = dict.fromkeys(name for command in (*COMMANDS, *BESIDE) for name in parameters_of(command))
    words = [*names, *(word for word in synonyms() if name_of(word) in names)]
    helps = {name: command.help for name, command in COMMANDS.items()}
    helps |= {name: command.help for name, command in BESIDE.items()}
    schema["$defs"]["command"] = {
        "enum": [*helps],
        "description": "; ".join(f"{name}: {help}" for name, help in helps.items()),
    }
    exception = {"enum": list(EXCEPTIONS)}
    several = {"type": "array", "minItems": 1, "uniqueItems": True, "items": exception}
    meanings = "; ".join(f"{name}: {meaning}" for name, meaning in EXCEPTIONS.items())
    schema["$defs"]["accept"] = {
        "description": f"what the gates hold in spite of. {meanings}",
        "anyOf": [exception, several],
    }
    schema["$defs"]["expect"]["propertyNames"] = {"enum": ["tolerance", "error", *QUANTITIES]}
    schema["$defs"]["settings"] = {"properties": {word: _setting(name_of(word)) for word in words}}
    schema["$defs"]["varied"] = {
        "properties": {word: _axis(name_of(word)) for word in words}, "additionalProperties": False,
    }  # fmt: skip
    return schema


def _setting(name: str) -> dict[str, Any]:
    several = [{"type": "array", "items": _value(name)}] if name in MANY else []
    return {"description": _help(name), "anyOf": [_value(name), *_referred(name), {"type": "null"}, *several]}


def _axis(name: str) -> dict[str, Any]:
    kinds = [_value(name), *_referred(name), {"type": "array", "minItems": 1, "items": _value(name)}]
    return {"description": _help(name), "anyOf": kinds}


def _referred(name: str) -> list[dict[str, Any]]:
    return [{"$ref": "#/$defs/referred"}] if may_be_referred(name) else []


def _value(name: str) -> dict[str, Any]:
    if name == "algorithm":
        return {"enum": list(dict.fromkeys(word for command in COMMANDS.values() for word in command.algorithms))}
    if name in SWITCHES:
        return {"type": "boolean"}
    if name in (*COUNTS, *FRACTIONS):
        return {"$ref": "#/$defs/number"}
    if name not in EVERY:
        return {"type": "string"}
    return {"enum": list(EVERY[name].choices)} if EVERY[name].choices else {"$ref": "#/$defs/number"}


def _help(name: str) -> str:
    if name in EVERY:
        return EVERY[name].help
    return {"schedule": "file of per-step values", "solve": "parameter to solve for"}.get(name, name)


_MOST_VALUES = 10_000
"""The number of values of a configuration that are examined."""
_MOST_DEPTH = 16
_MOST_KEYS, _LONGEST_KEY = 50, 100
"""The number of unknown keys that are listed, and the length of each."""
_OF_DP_SGD = ("noise_multiplier", "clip", "sampling", "sample_rate")
_NOISE = ("noise_multiplier", "noise_std", "laplace_scale", "langevin_std")
_EITHER = (("epochs", "steps"), ("batch_size", "sample_rate"), ("noise_multiplier", "noise_std"))
"""Alternative parameters: the first is taken if a configuration has both."""


_BUDGET = ("epsilon", "delta")
_OWN_WORDS = ("model", "noise", "release", "order")
"""Names of parameters with another meaning in most configurations, such as a network's architecture."""
_NOTHING = ("0", "0.0", "0.", "false", "no", "off", "none", "null", "~", "")
"""Values that switch something off in a configuration."""
_YES = {"poisson_sampling": ("sampling", "poisson"), "use_poisson_sampling": ("sampling", "poisson")}
"""Boolean keys -> the parameter that they set if true, and its value."""


_ANSWERS = {"true": True, "yes": True, "on": True, "false": False}


class Found(NamedTuple):
    """A value of a configuration: the parameter it means, its key, its reference, and the value as read.

    Attributes:
        copied: whether the recipe contains the value, since the configuration expresses it in another way.
    """

    name: str
    key: str
    reference: str
    node: Scalar
    value: Any
    copied: bool = False


class Draft(NamedTuple):
    """A draft recipe and its question.

    Attributes:
        text: the recipe.
        command: of its case.
        given: parameter -> value, without the budget.
        budget: epsilon and delta, if known.
    """

    text: str
    command: str
    given: Mapping[str, Any]
    budget: Mapping[str, Any]


def draft(config: str, recipe: str | None, command: str | None, algorithm: str | None) -> Draft:
    """Return a recipe that reads its parameters from a configuration.

    Args:
        config: path of a YAML, JSON or TOML file.
        recipe: where the recipe will stand; None: in the current folder.
        command: of the case; None: dp-sgd if the configuration has clipped gradients, else compare.
        algorithm: of the case, or None.

    Raises:
        SpecError: the configuration cannot be read or lies outside the project, it has nothing of a run, or what is run
            is not known.
    """
    if command is not None and command not in COMMANDS:
        raise SpecError(f"unknown command {clipped(command)}", near(command, COMMANDS))
    if algorithm is not None and algorithm not in NAMED:
        raise SpecError(f"unknown algorithm {clipped(algorithm)}", near(algorithm, NAMED))
    files = Files(recipe or "budget.yaml")
    if not config:
        raise _no_path(config)
    name = os.path.relpath(config, files.folder or ".").replace(os.sep, "/")
    if "#" in name:
        raise SpecError(f"{clipped(config)} has a # in its path", "give the file another name")
    _refuse_outside(files, config, recipe)
    remarks: list[str] = []
    taken = _one_each(_found(files.document(name, Place(clipped(config))), name, files, remarks), remarks)
    if not taken:
        raise SpecError(f"{clipped(config)} has no value that describes a run", "see dpcalc help")
    command = command or ("dp-sgd" if any(key in taken for key in _OF_DP_SGD) else "compare")
    if algorithm is None and taken.get("algorithm") is None and COMMANDS[command].compares:
        names = ", ".join(COMMANDS[command].algorithms)
        raise SpecError(f"Which algorithm? It is not in {clipped(config)}", f"give --algorithm, one of {names}")
    return _written(name, command, algorithm, taken, remarks)


def _refuse_outside(files: Files, config: str, recipe: str | None) -> None:
    """Refuse a configuration that the recipe may not read.

    Raises:
        SpecError: it lies outside the recipe's project.
    """
    try:
        inside(files.root, config, config)
    except LeavesProject:
        beside = os.path.join(os.path.dirname(config), os.path.basename(recipe or "budget.yaml"))
        raise SpecError(
            f"the recipe may not read {clipped(config)}: it reads files below {clipped(files.root)} alone",
            f"write the recipe beside the configuration: -o {beside}",
        ) from None
    except ValueError:
        raise _no_path(config) from None


def _no_path(config: str) -> SpecError:
    return SpecError(f"{clipped(config)} is not a path", "name a YAML, JSON or TOML file")


def _found(node: Node, name: str, files: Files, remarks: list[str]) -> Iterator[Found]:
    """Yield the values whose keys are names of parameters; similar keys get a remark."""
    waiting: list[tuple[Node, tuple[str, ...]]] = [(node, ())]
    looked_at = 0
    passed_over: list[str] = []
    while waiting:
        node, path = waiting.pop()
        looked_at += 1
        if looked_at > _MOST_VALUES:
            remarks.append(f"only the first {_MOST_VALUES} values were looked at")
            break
        if isinstance(node, Scalar):
            said = len(remarks)
            if value := _meaning(node, path, name, files, remarks):
                yield value
            elif len(remarks) == said and not _is_off(node, path):
                passed_over.append(".".join(path)[:_LONGEST_KEY])
        elif len(path) < _MOST_DEPTH:
            waiting += reversed([(child, (*path, key)) for key, child in _children(node)])
        else:
            passed_over.append(".".join(path)[:_LONGEST_KEY])
    if passed_over:  # only by their keys: a value may be a secret
        remark = f"not understood, and left out: {listed(passed_over, _MOST_KEYS)}"
        remarks += textwrap.wrap(printable(remark), 110, subsequent_indent="  ", break_on_hyphens=False)


def _children(node: Table | Items) -> Iterator[tuple[str, Node]]:
    if isinstance(node, Items):
        yield from ((str(place), item) for place, item in enumerate(node.items))
    else:
        yield from ((key, field.node) for key, field in node.fields.items() if not field.merges)


def _is_off(node: Scalar, path: tuple[str, ...]) -> bool:
    """Return whether a key switches off something that no bound covers."""
    return node.text.strip().lower() in _NOTHING and bool(path and not_covered(path[-1]))


def _meaning(  # noqa: PLR0911 (one return a reason)
    node: Scalar, path: tuple[str, ...], name: str, files: Files, remarks: list[str]
) -> Found | None:
    key = path[-1] if path else ""
    word = key.strip().lower().replace("-", "_")
    pointer = "/".join(part.replace("~", "~0").replace("/", "~1") for part in path)
    if word in _YES:
        return _answered(word, key, f"{name}#/{pointer}", node, remarks)
    meant = word if word in PARAMETERS else meant_by(word, [n for n in PARAMETERS if n != "lipschitz"])
    if len(word) < 2 or not meant or meant == "order":  # a single letter is ambiguous
        if (why := not_covered(word)) and not _is_off(node, path):
            remarks.append(f"{key}: {why}")
        return None
    if word not in PARAMETERS and not means_exactly(word, meant):
        remarks.append(f"{key}: means {meant} in some programs and not in others; write {meant} yourself")
        return None
    if not may_be_referred(meant):
        remarks.append(f"{key}: {meant} is written in the recipe itself; write {meant} there")
        return None
    try:
        value = single(meant, node, files)
    except SpecError:
        if word in _OWN_WORDS:
            return None
        remarks.append(f"{key}: no value of {meant}, which is {PARAMETERS[meant].domain}")
        return None
    return Found(meant, key, f"{name}#/{pointer}", node, value)


def _answered(word: str, key: str, reference: str, node: Scalar, remarks: list[str]) -> Found | None:
    """Return the value that a boolean key sets."""
    name, value = _YES[word]
    said = node.text.strip().lower()
    if _ANSWERS.get(said):
        return Found(name, key, reference, node, value, copied=True)
    if _ANSWERS.get(said) is False:
        remarks.append(f"{key}: false says what {name} is not; write what it is, such as {name}: shuffle")
    return None


def _one_each(values: Iterator[Found], remarks: list[str]) -> dict[str, Found]:
    """Return one value for every parameter; none for a parameter with several."""
    by_name: dict[str, list[Found]] = {}
    for one in values:
        by_name.setdefault(one.name, []).append(one)
    for name, several in by_name.items():
        if len(several) > 1:
            remarks.append(f"{name}: {' and '.join(one.reference for one in several)} both mean it; choose one")
    taken = {name: several[0] for name, several in by_name.items() if len(several) == 1}
    for first, second in _EITHER:
        if first in taken and second in taken:
            remarks.append(f"{taken.pop(second).key}: left out, as {first} says it too")
    return taken


def _written(name: str, command: str, algorithm: str | None, taken: dict[str, Found], remarks: list[str]) -> Draft:
    own = taken_by(algorithm) if algorithm else set(COMMANDS[command].parameters)
    used = {key: one for key, one in taken.items() if key in own or key in _BUDGET}
    for key, one in taken.items():
        why = not_covered(key)
        if key not in used and not (why and _is_off(one.node, (one.key,))):
            remarks.append(f"{one.key}: {why or f'{algorithm or command} takes no {key}'}")
    gate = used.pop("epsilon", None) if any(key in used for key in _NOISE) else None
    lines = [
        f"# Written by `dpcalc init` from {printable(name)}: read it before you rely on it.",
        "dpcalc: recipe/1",
        "cases:",
        "  released-model:",
        f"    command: {command}",
        *([f"    algorithm: {algorithm}"] if algorithm else []),
    ]
    for key, one in used.items():
        shown = printable(f"{one.key}: {one.node.text[:40]}")
        if one.copied:
            lines.append(f"    {key}: {one.value}  # {shown}, which is copied and not read: change both")
            continue
        lines.append(f"    {key}: {{from: {json_text(one.reference, None).strip()}}}  # {shown}")
    if gate:
        lines.append(f"    assert: epsilon <= {gate.value!r}  # {printable(gate.key)}, where it is a budget")
    else:
        lines.append("    # assert: epsilon <= 1  # the gate: write your budget, and uncomment this line")
    lines += [f"# {printable(remark[:300])}" for remark in remarks]
    given = {key: one.value for key, one in used.items() if key not in _BUDGET}
    budget: dict[str, Any] = {key: used[key].value for key in _BUDGET if key in used}
    return Draft("\n".join(lines) + "\n", command, {**given, **({"algorithm": algorithm} if algorithm else {})}, budget)
