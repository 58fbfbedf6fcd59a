"""Option stacks, built from the records of the commands and of the parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from dpcalc.cli.help.option import WithHelp
from dpcalc.cli.output.printing import output_options, sweep_options
from dpcalc.cli.types import FILE, Choice, DeltaSweep, Sweep, Word
from dpcalc.engine.commands import COMMANDS
from dpcalc.model.parameter import KNOWN, PARAMETERS, TARGETS, Parameter, spellings

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Command(WithHelp):
    """A command that finds its short flags at once, and takes the flags of other programs that mean the same.

    A parser of click's looks a short flag up among the long ones first, compares it with each of them for a hint that
    nobody sees, and only then looks among the short ones.
    """

    def make_parser(self, ctx: click.Context) -> Any:
        """Return the parser, with the short flags and other programs' words among the long ones."""
        parser: Any = super().make_parser(ctx)
        if hasattr(parser, "_long_opt") and hasattr(parser, "_short_opt"):  # without, it is slower and has fewer words
            known = parser._long_opt
            known.update(parser._short_opt)
            for option in self.params:
                for word in spellings(option.name or ""):
                    known.setdefault(word, known[option.opts[0]])
        return parser

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in groups, the most used first."""
        from dpcalc.cli.help.layout import write_options

        write_options(self, ctx, formatter)


def parameter_options(command: str) -> Decorator:
    """Return the decorator that adds a command's parameters and the question's as options.

    A command has ``--schedule`` where it takes columns of one.
    """
    scheduled = (_SCHEDULE,) if COMMANDS[command].columns else ()

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for target in reversed(TARGETS.values()):
            function = _option(target)(function)
        for option in reversed((*_ATTACKS, *scheduled, *_QUESTION)):
            function = option(function)
        return _with_parameters(output_options(function), command, ("epsilon", "delta", "order"))

    return decorate


def training_options(command: str) -> Decorator:
    """Return the decorator that adds a command's parameters, the budget, gates and how to print; -o is the model's."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        function = output_options(function, written="Write the model to FILE.json or FILE.npz, atomically.")
        return _with_parameters(_GATES(function), command, ("epsilon", "delta"))

    return decorate


def audit_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what describes a run and a budget, gates and how to print."""
    return _with_parameters(output_options(_GATES(_SCHEDULE(function))), "compare", ("epsilon", "delta"))


def known_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what a guarantee may be known by, and gates."""
    function = _GATES(function)
    for name in ("delta", "epsilon"):
        function = _option(PARAMETERS[name])(function)
    function = click.option(
        "--rdp", metavar="TEXT", multiple=True,
        help="known: bounds on the Renyi divergence, 'order=8 epsilon=1' or 'order=2,8 epsilon=0.1,1'. Repeatable.",
    )(function)  # fmt: skip
    for name in reversed([name for name in KNOWN if name != "to"]):
        function = _option(KNOWN[name])(function)
    return function


def conversion_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what a conversion takes: what is known, what is asked, gates and how to print."""
    function = _option(PARAMETERS["order"])(sweep_options(function))
    return known_options(_option(KNOWN["to"])(function))


def risk_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what is asked about attacks."""
    for option in reversed(_RISKS):
        function = option(function)
    return function


def _with_parameters(function: Callable[..., Any], command: str, question: tuple[str, ...]) -> Callable[..., Any]:
    for name in reversed((*COMMANDS[command].parameters, *question)):
        function = _option(_as_taken(command, PARAMETERS[name]))(function)
    return function


def _as_taken(command: str, parameter: Parameter) -> Parameter:
    """Return the parameter as the command takes it: an algorithm is one of its own."""
    record = COMMANDS[command]
    if parameter is not PARAMETERS["algorithm"]:
        return parameter
    return parameter._replace(choices=(*record.algorithms, *(("all",) if record.compares else ())))


def _option(parameter: Parameter) -> Decorator:
    kind: Sweep | Choice
    if parameter.choices:
        kind = Choice(parameter)
    elif parameter is PARAMETERS["delta"]:
        kind = DeltaSweep(parameter)
    else:
        kind = Sweep(parameter)
    symbol = f"{parameter.symbol}: " if parameter.symbol and parameter.symbol != parameter.name else ""
    help = symbol + parameter.help
    return click.option(parameter.flag, *parameter.aliases, parameter.name, type=kind, multiple=True, help=help)


def _solvable() -> Iterable[str]:
    from dpcalc.engine.solving.search import DIRECTIONS

    return (name.replace("_", "-") for name in DIRECTIONS)


_GATES = click.option(
    "--assert", "gates", metavar="TEXT", multiple=True,
    help="Gate on the best guarantee, e.g. 'epsilon<=1'; exit 1 if it fails.",
)  # fmt: skip

_RISKS = (
    click.option(
        "--fpr",
        metavar="LIST",
        help="Rates of false positives at which --risk gives those of true ones. [0.001,0.01,0.1]",
    ),
    click.option(
        "--prior",
        metavar="LIST",
        help="Prior probabilities that the record is there, for how often a guess is right. [0.5]",
    ),
    click.option(
        "--baseline", metavar="LIST", help="Probabilities to guess a secret of the record right without the release."
    ),
)

_SCHEDULE = click.option("--schedule", type=FILE, help="Per-step values: CSV with a header, NPY, NPZ or YAML.")

_ATTACKS = (click.option("--risk", is_flag=True, help="What an attacker can do, beside the answer."), *_RISKS)

_QUESTION = (
    click.option(
        "--solve", metavar="NAME", type=Word(_solvable),
        help="Solve for this parameter; needs --epsilon and --delta, or --advantage, --tpr or the like.",
    ),
    _GATES,
    click.option(
        "--certify", is_flag=True,
        help="Prove every guarantee in ball arithmetic; exit 3 if the best is not provable so.",
    ),
)  # fmt: skip
