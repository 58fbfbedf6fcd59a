"""The layout of --help: options in groups, the most used first, each value with its meaning."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Sequence
from typing import Any

import click

from dpcalc.engine.commands import COMMANDS
from dpcalc.model.algorithm import ALGORITHMS
from dpcalc.model.glosses import GLOSSED, gloss_of
from dpcalc.model.parameter import Parameter

_GROUPS = {
    "Run": (
        "algorithm", "release", "records", "epochs", "steps", "index", "window", "batch_size", "last_batch", "sampling",
        "sample_rate", "permutation", "step_size", "public_records", "tasks", "schedule", "shift", "contraction",
        "start", "start_distance", "clean_steps", "requests",
        "adjacency", "group_size",
    ),
    "Noise": (
        "noise_std", "noise_multiplier", "noise", "laplace_scale", "langevin_std", "c1", "c2", "decay_exponent",
        "schedule_factor",
    ),
    "Loss": (
        "loss", "feature_bound", "label_bound", "radius", "regularisation", "power", "huber_threshold", "tube",
        "lipschitz", "smoothness", "strong_convexity", "loss_class", "clip", "model", "diameter", "dimension",
        "displacement", "holder_exponent", "holder_constant", "gradient_at_zero", "loss_at_zero",
    ),
    "Budget and question": (
        "mu", "rho", "pure", "rdp", "to", "epsilon", "delta", "order", "solve", "failure_probability", "gates",
        "certify", "epoch_epsilon", "epoch_delta", "risk", "advantage", "tpr", "success", "reconstruction", "fpr",
        "prior", "baseline",
    ),
    "Output": ("format", "as_json", "output", "precision", "reports", "plot", "plot_bounds", "color", "verbose"),
}  # fmt: skip
"""The options of each group, by their names, in the order in which they are shown."""

FEW = 24
"""A command with at most this many options has no groups."""
_COLUMN = 24
"""The column at which the description of an option starts."""
_WIDTH = 80
_DEFAULTS = {"noise": "gaussian", "release": "last", "power": "1", "tube": "0"}
"""Defaults of parameters, unless an algorithm has its own."""


def usual(command: click.Command, names: Sequence[str]) -> list[str]:
    """Return the options that a question usually needs, from the command or its record."""
    record = COMMANDS.get(str(command.name))
    chosen: Sequence[str] = getattr(command, "usual", ()) or (record.usual if record else ())
    return [name for name in chosen if name in names]


def grouped(command: click.Command, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the groups as title -> options, in display order.

    Args:
        command: the command.
        names: the names of its options.
    """
    first = usual(command, names)
    if len(names) <= FEW or not first:
        return {"Options": list(names)}
    groups = {"Most used": first}
    for title, members in _GROUPS.items():
        groups[title] = [name for name in members if name in names and name not in first]
    shown = {name for members in groups.values() for name in members}
    groups["Data" if "data" in names else "Everything else"] = [name for name in names if name not in shown]
    return {title: members for title, members in groups.items() if members}


def write_options(command: click.Command, context: click.Context, formatter: click.HelpFormatter) -> None:
    """Write every option, in groups."""
    options = {str(p.name): p for p in command.get_params(context) if isinstance(p, click.Option) and not p.hidden}
    for title, names in grouped(command, list(options)).items():
        with formatter.section(title):
            for name in names:
                lines = _entry(str(command.name), options[name], context, formatter.width)
                formatter.write("\n".join(lines) + "\n")


_METAVARS = {"INTEGER": "INT", "INTEGER RANGE": "INT", "FLOAT": "NUM", "FLOAT RANGE": "NUM"}
"""Click's names of number types -> the names shown."""

ROWS = 40
"""The largest number of rows of a short page."""
_EXAMPLES = 3


def short_page(context: click.Context) -> str:
    """Return a command's summary, three examples, and the options that a question usually needs.

    If the whole page is short, return that.
    """
    command, whole = context.command, context.get_help()
    if whole.count("\n") < ROWS:
        return whole
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    answers = textwrap.wrap(" ".join(paragraphs[0].split()), _WIDTH - 2)
    shown = [line for example in examples(command.help or "")[:_EXAMPLES] for line in example]
    head = [command.get_usage(context), "", *answers, "", *shown]
    options = {str(p.name): p for p in command.get_params(context) if isinstance(p, click.Option) and not p.hidden}
    names = usual(command, list(options)) or [name for name in options if name not in _GROUPS["Output"]]
    tail = ["", f"--help-all: all {len(options)} options, and more examples"]
    rows = ["", "Usual options:"]
    for name in names:
        entry = _entry(str(command.name), options[name], context, _WIDTH, brief=True)
        if len(head) + len(rows) + len(entry) + len(tail) <= ROWS:
            rows += entry
    return "\n".join(["\n".join([head[0], *(f"  {line}".rstrip() for line in head[1:])]), *rows, *tail])


def examples(help: str) -> list[list[str]]:
    """Return the examples of a help text: for each, the rows of a command and those above it.

    >>> examples("It says.\\n\\n\\b\\nWhy?\\n  dpcalc explain \\\\\\n    a.b\\n  dpcalc bounds")
    [['Why?', '  dpcalc explain \\\\', '    a.b'], ['  dpcalc bounds']]
    """
    found, rows = list[list[str]](), list[str]()
    for paragraph in inspect.cleandoc(help).split("\n\n"):
        if not paragraph.startswith("\b\n"):
            continue
        for line in paragraph[2:].split("\n"):
            rows.append(line)
            typed = any(row.startswith("  dpcalc ") for row in rows)
            if typed and not line.endswith("\\"):
                found.append(rows)
                rows = []
        rows = []
    return found


def _entry(command: str, option: click.Option, context: click.Context, width: int, *, brief: bool = False) -> list[str]:
    """Return the lines about an option: its names, its meaning, and the meaning of each value.

    Args:
        command: the name of the command.
        option: the option.
        context: the context of the command.
        width: the width of the page.
        brief: whether to keep only the first clause of the meaning, and to list the values alone.
    """
    parameter = _parameter(option)
    words = _words(parameter)
    names = ", ".join([*sorted(option.opts, key=lambda flag: flag.startswith("--")), *option.secondary_opts])
    metavar = "WORD" if words else _METAVARS.get(option.make_metavar(context), option.make_metavar(context))
    takes = "" if option.is_flag or option.count else f" {metavar}"
    default = default_of(command, option)
    said = GLOSSED[parameter.name].lead if parameter and words else option.help or ""
    if brief:
        said = f"{said}: {', '.join(words)}" if words else _clause(said)
    text = said + _unit(parameter, said) + (f" [default: {default}]" if default and (brief or not words) else "")
    return _described(f"{names}{takes}", text, {} if brief else words, default, width)


def _clause(text: str) -> str:
    """Return the first clause of a text, without brackets.

    >>> _clause("n: number of records; one pass uses each once"), _clause("index (default: 1)")
    ('n: number of records', 'index')
    """
    return re.split(r"; | \(", text)[0]


def _unit(parameter: Parameter | None, said: str) -> str:
    """Return the unit of a parameter in brackets; empty if the description already has it."""
    unit = parameter.unit if parameter else ""
    return f" [{unit}]" if unit and unit.rstrip("s") not in said else ""


def about(parameter: Parameter) -> list[str]:
    """Return the lines about a parameter: its meaning, its domain, and the meaning of each value.

    >>> from dpcalc.model.parameter import PARAMETERS
    >>> print(*about(PARAMETERS["sample_rate"]), sep="\\n")
      --sample-rate NUM     probability with which a record is in the batch of a
                            step; a number > 0 and <= 1
    """
    words = _words(parameter)
    said = GLOSSED[parameter.name].lead if words else f"{parameter.help}; {parameter.domain}"
    names = ", ".join((*parameter.aliases, parameter.flag))
    takes = "WORD" if words else "INT" if parameter.integer else "NUM"
    return _described(f"{names} {takes}", said, words, "", _WIDTH)


def _described(head: str, text: str, words: dict[str, str], default: str, width: int) -> list[str]:
    about = textwrap.wrap(text, width - _COLUMN, break_on_hyphens=False) or [""]
    head = f"  {head}"
    lines = [head] if len(head) > _COLUMN - 2 else [f"{head:<{_COLUMN}}{about.pop(0)}"]
    lines += [" " * _COLUMN + line for line in about]
    return lines + _glossary(words, default, width)


def _glossary(words: dict[str, str], default: str, width: int) -> list[str]:
    longest = max(map(len, words), default=0)
    lines = []
    for word, gloss in words.items():
        text = gloss + (" (default)" if word == default else "")
        indent = " " * (6 + longest + 2)
        lines += textwrap.wrap(text, width, initial_indent=f"      {word:<{longest}}  ", subsequent_indent=indent)
    return lines


def _words(parameter: Parameter | None) -> dict[str, str]:
    """Return the values of a parameter and their meanings; empty if its values are not words."""
    if parameter is None or parameter.name not in GLOSSED:
        return {}
    if parameter.name == "algorithm":
        return {word: gloss_of(word) for word in parameter.choices}
    return {word: GLOSSED[parameter.name].words.get(word, "") for word in parameter.choices}


def _parameter(option: click.Option) -> Parameter | None:
    """Return the parameter of an option, with the choices of the command; None for other options."""
    parameter: Any = getattr(option.type, "parameter", None)
    return parameter if isinstance(parameter, Parameter) else None


def default_of(command: str, option: click.Option) -> str:
    """Return the default of an option; empty if it has none or if it depends on other options."""
    name = str(option.name)
    if _parameter(option) is None:
        return str(option.default) if option.show_default and option.default is not None else ""
    record = COMMANDS.get(command, COMMANDS["compare"])
    if name == "algorithm":
        return "" if record.compares or record.prices else record.default
    if name == "release" and "dp-sgd" in record.algorithms:  # dp-sgd has another default
        return ""
    taking = [ALGORITHMS[a] for a in record.algorithms if name in ALGORITHMS[a].parameters]
    defaults: set[Any] = {algorithm.defaults.get(name, _DEFAULTS.get(name)) for algorithm in taking}
    [default] = defaults if len(defaults) == 1 else [None]
    return "" if default is None else f"{default:g}" if isinstance(default, float) else str(default)
