"""The commands as data: what completion scripts and the manual page are generated from."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import NamedTuple

import click


class Taken(NamedTuple):
    """What an option or an argument takes: one of ``words``, a file (``recipe``: a YAML one), or something to type.

    Where ``several``, it takes one or more of the words, separated by commas.
    """

    words: tuple[str, ...] = ()
    file: bool = False
    recipe: bool = False
    several: bool = False


class Described(NamedTuple):
    """An option: its names, long one first, and the value it takes, None where it is a flag."""

    names: tuple[str, ...]
    help: str
    metavar: str
    takes: Taken | None


class Entry(NamedTuple):
    """A command: one line about it, all of its help, its options and its arguments (their metavars, what they take)."""

    name: str
    line: str
    help: str
    options: tuple[Described, ...]
    arguments: tuple[tuple[str, Taken], ...]


def described() -> list[Entry]:
    """Return every registered command, in the order in which the help lists them."""
    from dpcalc.cli.main import COMMANDS, cli

    context = click.Context(cli, info_name="dpcalc")
    return [_entry(name, line, cli.get_command(context, name)) for name, line in COMMANDS.items()]


def _entry(name: str, line: str, command: click.Command | None) -> Entry:
    assert command is not None
    context = click.Context(command, info_name=name, help_option_names=["--help", "-h"])
    params = command.get_params(context)
    options = tuple(_option(p, context) for p in params if isinstance(p, click.Option) and not p.hidden)
    arguments = tuple((p.make_metavar(context), _taken(p)) for p in params if isinstance(p, click.Argument))
    return Entry(name, line, inspect.cleandoc(command.help or ""), options, arguments)


def _option(option: click.Option, context: click.Context) -> Described:
    names = tuple(sorted(option.opts, key=lambda text: (not text.startswith("--"), option.opts.index(text))))
    takes = None if option.is_flag or option.count else _taken(option)
    metavar = "" if takes is None else option.make_metavar(context)
    return Described((*names, *option.secondary_opts), option.help or "", metavar, takes)


def _taken(param: click.Parameter) -> Taken:
    metavar = param.metavar or ""
    swept = getattr(param.type, "parameter", None)
    choices = getattr(swept or param.type, "choices", ())
    if choices:
        return Taken(tuple(map(str, choices)), several=swept is not None)
    if "ID" in metavar:
        from dpcalc.theorems.record import all_bounds

        return Taken(tuple(all_bounds()), several=isinstance(param, click.Option))
    if param.name == "topic":
        from dpcalc.cli.help import METHOD, TOPICS
        from dpcalc.cli.main import COMMANDS

        return Taken((*TOPICS, METHOD, *COMMANDS))
    if param.name == "solve":
        from dpcalc.engine.search import DIRECTIONS

        return Taken(tuple(name.replace("_", "-") for name in DIRECTIONS))
    if kinds := getattr(param.type, "kinds", ()):
        return Taken(tuple(f"{kind}=" for kind in kinds))
    return Taken(
        file="FILE" in metavar or metavar == "MODEL", recipe=isinstance(param, click.Argument) and "FILE" in metavar
    )


def by_option(entries: Sequence[Entry]) -> dict[Described, list[str]]:
    """Return the options, each once, with the commands that take it in this form."""
    commands: dict[Described, list[str]] = {}
    for entry in entries:
        for option in entry.options:
            commands.setdefault(option, []).append(entry.name)
    return commands
