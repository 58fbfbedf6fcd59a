"""Hints for an unknown option or command."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import click

from dpcalc.cli.help.option import distance, nearest

_MEANT = {
    "poisson_sampling": ("sampling", "did you mean --sampling poisson?"),
    "without_replacement": ("sampling", "did you mean --sampling fixed?"),
    "last_iterate": ("release", "did you mean --release last?"),
    "hidden": ("release", "did you mean --release last?"),
    "neighboring": ("adjacency", "did you mean --adjacency?"),
    "neighbouring": ("adjacency", "did you mean --adjacency?"),
    "neighbors": ("adjacency", "did you mean --adjacency?"),
    "neighbours": ("adjacency", "did you mean --adjacency?"),
    "position": ("index", "did you mean --index?"),
    "variance": ("noise_std", "give --noise-std, the square root of the variance of one coordinate"),
}
"""Words that people type -> the parameter that they mean, and the hint for commands that take it."""


def about_option(word: str, command: click.Command) -> str:
    """Return the hint for an option that a command does not have; empty if nothing is similar."""
    from dpcalc.model.parameter import PARAMETERS, conversion, meant_by
    from dpcalc.topics import refusing

    plain = word.lstrip("-").replace("_", "-")
    flags = _flags(command)
    if same := flags.get(plain.lower()):
        return f"did you mean {same}?"
    bare = plain.lower().replace("-", "_")
    if isinstance(command, click.Group) and not nearest(plain.lower(), flags):
        return "name a command first, as in `dpcalc dp-sgd --epsilon 1`; `dpcalc help` says what to type first"
    taken = [name for option in command.params if (name := option.name)]
    topic = refusing(word, flag=True)
    if said := f"{topic.says} Type: `{topic.type}`" if topic else _said(bare, taken):
        return said
    if meant := meant_by(word, taken):
        return f"did you mean {PARAMETERS[meant].flag}?{conversion(meant)}"
    near = nearest(plain.lower(), flags)
    close = bool(near) and len(plain) > 3 and distance(plain.lower(), near[0]) == 1
    if not close and (answer := _value(plain.lower(), command) or _symbol(plain, taken) or _elsewhere(bare)):
        return answer
    return f"did you mean {' or '.join(dict.fromkeys(flags[name] for name in near))}?" if near else ""


def _said(word: str, taken: Collection[str]) -> str:
    """Return the hint of `_MEANT` for a command that takes these parameters."""
    from dpcalc.model.parameter import NOISE_SCALES, PARAMETERS

    if word == "noise" and (scales := [PARAMETERS[name].flag for name in NOISE_SCALES if name in taken]):
        return f"did you mean {' or '.join(scales)}?"
    parameter, text = _MEANT.get(word, ("", ""))
    return text if parameter in taken else ""


def about_command(word: str, names: Iterable[str]) -> str:
    """Return the hint for an unknown command; empty if nothing is similar."""
    from dpcalc.engine.commands import COMMANDS
    from dpcalc.model.algorithm import NAMED
    from dpcalc.topics import words_for_commands

    plain = word.lower().replace("_", "-")
    for name, words in words_for_commands().items():
        if plain in words:
            return f"did you mean `dpcalc {name}`?"
    if plain in NAMED and plain not in COMMANDS:
        taking = (name for name, record in COMMANDS.items() if plain in record.algorithms and not record.compares)
        return f"did you mean `dpcalc {next(taking, 'compare')} --algorithm {plain}`?"
    near = nearest(plain, names)
    if near:
        return f"did you mean {' or '.join(f'`dpcalc {name}`' for name in near)}?"
    from dpcalc.cli.help.search import found

    return f"`dpcalc find {shlex.quote(word)}` says where it is" if found([word]) else ""


def _flags(command: click.Command) -> Mapping[str, str]:
    """Return the long flags of a command: without leading hyphens -> as the help lists them."""
    from dpcalc.model.parameter import KNOWN, spellings

    flags: dict[str, str] = {}
    for option in command.params:
        if isinstance(option, click.Option):
            listed = next((name for name in option.opts if name.startswith("--")), option.opts[0])
            flags |= {name.lstrip("-"): name for name in option.opts if name.startswith("--")}
            known = KNOWN.get(option.name or "")
            words = known.synonyms if known else spellings(option.name or "")
            flags |= {name.lstrip("-").replace("_", "-"): listed for name in words}
    return flags


def _value(word: str, command: click.Command) -> str:
    """Return the hint for a word that is a value of an option: `--poisson` means `--sampling poisson`."""
    for option in command.params:
        parameter: Any = getattr(option.type, "parameter", None)
        if word in getattr(parameter, "choices", ()):
            return f"did you mean {parameter.flag} {word}?"
    return ""


def _symbol(word: str, taken: Iterable[str]) -> str:
    """Return the hint for a letter that stands for one parameter in the papers."""
    from dpcalc.model.parameter import PARAMETERS

    parameters = [PARAMETERS[name] for name in taken if name in PARAMETERS]
    for spelt in (str, str.lower):
        matches = [parameter for parameter in parameters if spelt(parameter.symbol) == spelt(word)]
        if len(matches) == 1:
            return f"did you mean {matches[0].flag}?"
    return ""


def _elsewhere(word: str) -> str:
    """Return the hint that names the commands which take a parameter."""
    from dpcalc.engine.commands import COMMANDS
    from dpcalc.model.parameter import PARAMETERS, name_of

    name = name_of(word)
    single = {command: record for command, record in COMMANDS.items() if not record.compares}
    if name == "schedule":
        return f"{', '.join(command for command, record in single.items() if record.columns)} take a --schedule"
    takers = [command for command, record in single.items() if name in record.parameters]
    return f"{PARAMETERS[name].flag} is a parameter of {', '.join(takers)}" if takers else ""
