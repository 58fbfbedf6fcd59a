"""From a recipe's text to its cases: defaults, references and matrices resolved, every name and value checked.

Nothing is evaluated here, so that a recipe with a mistake in it is refused before any of its numbers is computed. How
many cases a matrix makes is counted before any is made.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dpcalc.commands import COMMANDS
from dpcalc.errors import SpecError
from dpcalc.fitting import Setup
from dpcalc.query import Question
from dpcalc.recipes.claims import Claim, Expected, claims, expected
from dpcalc.recipes.load import parse_yaml, read_bytes, shown_path
from dpcalc.recipes.nodes import (
    Field,
    Node,
    Place,
    RecipeError,
    Scalar,
    Table,
    clipped,
    items,
    near,
    repeated,
    table,
    text,
)
from dpcalc.recipes.reference import Files
from dpcalc.recipes.values import MANY, QUESTION, several, single
from dpcalc.spec.symbols import SYMBOLS

VERSION = "recipe/1"
MAX_CASES = 10_000
MAX_EXCLUDES = 1000
MAX_ERRORS = 20
"""How many mistakes are looked for before a recipe is refused."""

TOP = ("dpcalc", "description", "defaults", "cases")
SHARED = ("command", "from", "assert")
OWN = (*SHARED, "description", "expect", "skip", "matrix", "include", "exclude")
"""The keys of a case that are no parameters; `SHARED` may stand under defaults as well."""

SETUP = tuple(name for name in Setup._fields if name != "output")
"""What `train` takes beside the parameters of its run; a recipe writes no model."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
_NO_REASON = ("true", "false", "yes", "no", "on", "off", "y", "n", "t", "f", "null", "none")
_FLAGS = {flag.lstrip("-"): symbol.name for symbol in SYMBOLS.values() for flag in symbol.flags}


class Entry(NamedTuple):
    """A case that can be evaluated: ``given`` describes what is run, ``notes`` say what was taken from where."""

    name: str
    place: Place
    command: str
    given: Mapping[str, Any]
    question: Question
    claims: tuple[Claim, ...] = ()
    expected: Expected | None = None
    skip: str | None = None
    notes: tuple[str, ...] = ()


class Recipe(NamedTuple):
    """A recipe's cases by name, and the names that each case of the text was expanded to."""

    file: str
    entries: Mapping[str, Entry]
    groups: Mapping[str, tuple[str, ...]]

    def named(self, name: str) -> Entry:
        """Return the case that a comparison means: one by its full name, or the only one that a text made."""
        return self.entries[name] if name in self.entries else self.entries[self.groups[name][0]]


class Malformed(SpecError):
    """What is wrong with recipes, all that was found: ``errors``, each with its place."""

    def __init__(self, errors: Iterable[RecipeError]) -> None:
        self.errors = tuple(errors)
        super().__init__(self.errors[0].message, self.errors[0].hint)


class _Setting(NamedTuple):
    """A parameter as written, after references were followed; ``origin`` is the reference."""

    place: Place
    node: Node
    origin: str


class _Shared(NamedTuple):
    """What all cases of a recipe have in common."""

    files: Files
    command: str
    settings: Mapping[str, _Setting]
    claims: tuple[Claim, ...]


def read(path: str) -> Recipe:
    """Return the recipe in a file, ``-`` for standard input.

    Raises:
        Malformed: it is not one; the first `MAX_ERRORS` mistakes are named.
    """
    try:
        return _recipe(shown_path(path), parse_yaml(shown_path(path), read_bytes(path, "recipe")), Files(path))
    except Malformed:
        raise
    except RecipeError as error:
        raise Malformed([error]) from None


def _recipe(shown: str, node: Node | None, files: Files) -> Recipe:
    if node is None:
        raise Place(shown).error("is empty", f"a recipe starts with dpcalc: {VERSION}")
    top = table(node, "the recipe")
    if "dpcalc" not in top.fields:
        raise top.place.error("this is not a recipe: the version is missing", f"start with dpcalc: {VERSION}")
    version = top.fields["dpcalc"].node
    if text(version, "dpcalc") != VERSION:
        raise version.place.error(f"dpcalc is {clipped(text(version, 'dpcalc'))}; this release reads {VERSION}")
    _known(top.fields, TOP)
    if "cases" not in top.fields:
        raise top.place.error("there are no cases", "write them under cases:, each with a name of its own")
    cases = table(top.fields["cases"].node, "cases")
    if not cases.fields:
        raise cases.place.error("there are no cases", "write them under cases:, each with a name of its own")
    shared = _defaults(top.fields.get("defaults"), files)
    entries: dict[str, Entry] = {}
    groups: dict[str, tuple[str, ...]] = {}
    errors = []
    for name, field in cases.fields.items():
        try:
            made = _Case(name, field, shared).entries(MAX_CASES - len(entries))
        except RecipeError as error:
            errors.append(error)
            if len(errors) == MAX_ERRORS:
                break
            continue
        groups[name] = tuple(entry.name for entry in made)
        entries.update((entry.name, entry) for entry in made)
    recipe = Recipe(shown, entries, groups)
    errors += [] if errors else _dangling(recipe)
    if errors:
        raise Malformed(errors)
    return recipe


def _known(fields: Mapping[str, Field], names: Iterable[str]) -> None:
    names = tuple(names)
    for name, field in fields.items():
        if name not in names:
            raise field.place.error(f"unknown key {clipped(name)}", near(name, names))


def _defaults(field: Field | None, files: Files) -> _Shared:
    body = table(field.node, "defaults") if field else Table(Place(""), {})
    for name in OWN:
        if name in body.fields and name not in SHARED:
            raise body.fields[name].place.error(f"{name} cannot be a default", "write it in each case")
    gates = claims(body.fields["assert"]) if "assert" in body.fields else ()
    settings = _settings(body, files)
    for name, setting in settings.items():
        if name not in _anywhere():
            raise setting.place.error(f"unknown parameter {clipped(name)}", _meant(name, (*SHARED, *_anywhere())))
    return _Shared(files, _command(body.fields.get("command"), "compare"), settings, gates)


def _anywhere() -> set[str]:
    """Return the parameters that some command takes."""
    return {name for command in COMMANDS for name in vocabulary(command)}


def vocabulary(command: str) -> tuple[str, ...]:
    """Return the parameters that a case of a command may set."""
    described = COMMANDS[command]
    trained_on = SETUP if command == "train" else ()
    return (*described.parameters, *QUESTION, *(("schedule",) if described.columns else ()), *trained_on)


def _meant(name: str, known: Iterable[str]) -> str:
    return f"did you mean {_FLAGS[name]}?" if name in _FLAGS else near(name.replace("-", "_"), sorted(known))


def _command(field: Field | None, otherwise: str) -> str:
    if field is None:
        return otherwise
    name = text(field.node, "command")
    if name not in COMMANDS:
        raise field.node.place.error(f"unknown command {clipped(name)}", near(name, COMMANDS))
    return name


def _settings(body: Table, files: Files) -> dict[str, _Setting]:
    """Return the parameters of a mapping: those under its own keys, and those of the mapping that ``from`` names."""
    own = {name: _followed(field.place, field.node, files) for name, field in body.fields.items() if name not in OWN}
    if "from" not in body.fields:
        return own
    node = body.fields["from"].node
    place, reference = node.place, text(node, "from")
    found = files.value(reference, place)
    if not isinstance(found, Table):
        raise place.error(f"{clipped(reference)} is no mapping of parameters", "write name: {from: file#/path}")
    for name, field in found.fields.items():
        if name in own:
            raise own[name].place.error(f"{name} is set here and in {clipped(reference)}", "keep one of the two")
        own[name] = _Setting(place, field.node, f"{reference}/{name}")
    return own


def _followed(place: Place, node: Node, files: Files) -> _Setting:
    """Return a value, or what it refers to where it is ``{from: file#/path}``."""
    if not isinstance(node, Table):
        return _Setting(place, node, "")
    if set(node.fields) != {"from"}:
        raise node.place.error("a value is a mapping", "write a value, or {from: config.yaml#/path}")
    reference = node.fields["from"].node
    typed = text(reference, "from")
    return _Setting(place, files.value(typed, reference.place), typed)


class _Case:
    """A case as written, on its way to the cases that it stands for."""

    def __init__(self, name: str, field: Field, shared: _Shared) -> None:
        if not _NAME.fullmatch(name):
            raise field.place.error(
                f"{clipped(name)} is not a name of a case", "use letters, digits, - and _, at most 100 of them"
            )
        self.name, self.place, self.files = name, field.place, shared.files
        self.body = table(field.node, f"case {name}")
        self.command = _command(self.body.fields.get("command"), shared.command)
        self.known = vocabulary(self.command)
        own = _settings(self.body, self.files)
        self.axes = self._axes(own)
        settings = {**shared.settings, **own}
        self.base = {
            key: self._single(key, setting)
            for key, setting in settings.items()
            if self._is_taken(key, setting) and key not in self.axes
        }
        taken = {key: s for key, s in settings.items() if s.origin and key in self.base}
        self.notes = tuple(f"{key} is that of {setting.origin}" for key, setting in taken.items())
        self.own = claims(self.body.fields["assert"]) if "assert" in self.body.fields else ()
        self.claims = shared.claims + self.own
        self.expected = expected(self.body.fields["expect"]) if "expect" in self.body.fields else None
        if self.expected and self.expected.error and "assert" in self.body.fields:
            raise self.expected.place.error("an error is expected, and something asserted", "keep one of the two")
        self.skip = self._skip()

    def _is_taken(self, name: str, setting: _Setting) -> bool:
        """Return whether a parameter is set; ``null`` takes a default away, written in the case and nowhere else."""
        null = isinstance(setting.node, Scalar) and setting.node.null
        if null and setting.origin:  # else the run's own default would answer: one epoch, where none is configured
            raise setting.place.error(
                f"{name} is null in {clipped(setting.origin)}",
                f"give it a value there, or write {name}: null in the case instead of referring to it",
            )
        if name in self.known:
            return not null
        if name not in _anywhere():
            raise setting.place.error(f"unknown key {clipped(name)}", _meant(name, (*self.known, *OWN)))
        if not null:
            raise setting.place.error(
                f"case {self.name}: {self.command} takes no {name}",
                f"write {name}: null in the case, or choose another command",
            )
        return False

    def _words(self, name: str) -> tuple[str, ...] | None:
        return COMMANDS[self.command].algorithms if name == "algorithm" else None

    def _single(self, name: str, setting: _Setting) -> Any:
        return single(name, setting.node, self.files, self._words(name))

    def _axes(self, own: Mapping[str, _Setting]) -> dict[str, list[Any]]:
        field = self.body.fields.get("matrix")
        if field is None:
            return {}
        axes = {}
        for name, entry in table(field.node, "matrix").fields.items():
            if name not in self.known:
                raise entry.place.error(f"{self.command} takes no {clipped(name)}", _meant(name, self.known))
            if name in own:
                raise entry.place.error(f"{name} is set in the case and in its matrix", "keep one of the two")
            followed = _followed(entry.place, entry.node, self.files)
            values = several(name, followed.node, self.files, self._words(name))
            axes[name] = [(value,) if name in MANY else value for value in values]
        if not axes:
            raise field.place.error("matrix is empty", "write name: [values], or leave it out")
        return axes

    def _skip(self) -> str | None:
        field = self.body.fields.get("skip")
        if field is None:
            return None
        reason = text(field.node, "skip")
        if reason.strip().lower() in _NO_REASON or not any(letter.isalpha() for letter in reason):
            raise field.node.place.error("skip needs a reason", "write why, or leave skip out")
        return " ".join(reason.split())

    def entries(self, room: int) -> list[Entry]:
        """Return the cases that this one stands for, at most ``room``."""
        count = math.prod(len(values) for values in self.axes.values()) if self._has_base else 0
        included = self._included()
        if count + len(included) > room:
            raise self.place.error(
                f"case {self.name} makes {_size(count + len(included))} cases; a recipe has at most {MAX_CASES}",
                "vary fewer values, or split the recipe",
            )
        excluded = self._excluded()
        made = [self._entry(chosen) for chosen in self._combinations() if not _is_excluded(chosen, excluded)]
        made += [self._entry(settings, place) for place, settings in included]
        if not made:
            raise self.place.error(f"case {self.name}: exclude leaves no case", "exclude less")
        twice = repeated(entry.name for entry in made)
        if twice is not None:
            raise self.place.error(f"{clipped(twice)} is there twice", "an include adds a case: leave it out")
        if len(made) == 1:
            self._refuse_itself((self.name, made[0].name))
        return made

    def _refuse_itself(self, names: tuple[str, ...]) -> None:
        """Raise RecipeError where the case's own gate compares a quantity with itself, whose verdict is always one."""
        for claim in self.own:
            if any(r.name in names and r.quantity == claim.gate.name for r in claim.references):
                raise claim.place.error(
                    f"{claim.gate.name} of case {self.name} is compared with itself", "name another case, or a number"
                )

    @property
    def _has_base(self) -> bool:
        return bool(self.axes) or "include" not in self.body.fields

    def _combinations(self) -> Iterator[dict[str, Any]]:
        if self._has_base:
            for chosen in itertools.product(*self.axes.values()):
                yield dict(zip(self.axes, chosen, strict=True))

    def _entry(self, chosen: Mapping[str, Any], place: Place | None = None) -> Entry:
        given = {**self.base, **chosen}
        delta = given.pop("delta", None)
        question = Question(
            given.pop("epsilon", None), delta.value if delta else None, delta.log if delta else None,
            given.pop("order", ()), given.pop("solve", None),
        )  # fmt: skip
        told = ",".join(f"{name}={_shown(value)}" for name, value in chosen.items())
        return Entry(
            f"{self.name}[{told}]" if told else self.name, place or self.place, self.command, given, question,
            self.claims, self.expected, self.skip, self.notes,
        )  # fmt: skip

    def _listed(self, key: str) -> Iterator[Table]:
        """Yield the mappings under ``include`` or ``exclude``."""
        field = self.body.fields.get(key)
        if field is None:
            return
        found = items(field.node)
        if len(found) > MAX_EXCLUDES:
            raise field.place.error(f"{len(found)} entries of {key}; at most {MAX_EXCLUDES} are read")
        for node in found:
            body = table(node, f"an entry of {key}")
            if not body.fields:
                raise body.place.error(f"an entry of {key} is empty", "write {name: value}")
            yield body

    def _included(self) -> list[tuple[Place, dict[str, Any]]]:
        found = []
        for body in self._listed("include"):
            for name, field in body.fields.items():
                if name not in self.known:
                    raise field.place.error(f"{self.command} takes no {clipped(name)}", _meant(name, self.known))
            settings = {n: _followed(f.place, f.node, self.files) for n, f in body.fields.items()}
            found.append((body.place, {name: self._single(name, setting) for name, setting in settings.items()}))
        return found

    def _excluded(self) -> dict[tuple[str, ...], set[tuple[Any, ...]]]:
        """Return what is excluded: the names spoken of -> their values."""
        found: dict[tuple[str, ...], set[tuple[Any, ...]]] = {}
        for body in self._listed("exclude"):
            for name, field in body.fields.items():
                if name not in self.axes:
                    raise field.place.error(f"{clipped(name)} is not in the matrix", near(name, self.axes))
                value = self._single(name, _Setting(field.place, field.node, ""))
                if value not in self.axes[name]:
                    raise field.node.place.error(f"no case has {name} = {_shown(value)}", "it excludes nothing")
            names = tuple(body.fields)
            values = (self._single(name, _Setting(body.place, body.fields[name].node, "")) for name in names)
            found.setdefault(names, set()).add(tuple(values))
        return found


def _is_excluded(chosen: Mapping[str, Any], excluded: Mapping[tuple[str, ...], set[tuple[Any, ...]]]) -> bool:
    return any(tuple(chosen[name] for name in names) in values for names, values in excluded.items())


def _size(count: int) -> str:
    return str(count) if count < 10**15 else "far too many"


def _shown(value: Any) -> str:
    """Return a value as the name of a case shows it."""
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, tuple):
        return "/".join(map(_shown, value)) if type(value) is tuple else _shown(str(value))
    return re.sub(r"[^A-Za-z0-9_.+^/-]", "_", str(value))


def _dangling(recipe: Recipe) -> list[RecipeError]:
    """Return what is wrong with the comparisons: cases that are not there, are several, or are skipped."""
    errors = []
    seen: set[int] = set()
    for entry in recipe.entries.values():
        for claim in entry.claims:
            if id(claim) in seen:
                continue
            seen.add(id(claim))
            errors += [error for r in claim.references if (error := _unmet(recipe, claim, r.name)) is not None]
    return errors


def _unmet(recipe: Recipe, claim: Claim, name: str) -> RecipeError | None:
    if name not in recipe.entries and name not in recipe.groups:
        return claim.place.error(f"there is no case {clipped(name)}", near(name, recipe.groups))
    if name not in recipe.entries and len(recipe.groups[name]) > 1:
        return claim.place.error(f"{name} is {len(recipe.groups[name])} cases", f"name one: {recipe.groups[name][0]}")
    if recipe.named(name).skip is not None:
        return claim.place.error(f"case {name} is skipped, so nothing can be compared with it")
    return None
