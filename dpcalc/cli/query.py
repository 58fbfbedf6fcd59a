"""The one path from the flags of a command to its cases.

Its options are built from the records of the commands and of the parameters.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from dpcalc.cli.help.option import WithHelp
from dpcalc.cli.output.printing import Output, emit, output_options, sweep_options
from dpcalc.cli.types import FILE, Choice, Delta, DeltaSweep, Sweep, Word, delta_of
from dpcalc.engine.ask import FEW, ask, best_of, side_by_side
from dpcalc.engine.commands import COMMANDS, MATRIX
from dpcalc.engine.question import aimed
from dpcalc.errors import SpecError
from dpcalc.model.algorithm import Source
from dpcalc.model.numbers import parse_number, parse_sweep
from dpcalc.model.parameter import KNOWN, PARAMETERS, RATES, TARGETS, Parameter, spellings
from dpcalc.model.question import Question
from dpcalc.render import MOST_CURVES
from dpcalc.render.notes import report
from dpcalc.report import Case

if TYPE_CHECKING:
    from dpcalc.engine.gate import Gate
    from dpcalc.model.question import RiskQuestion


MAX_CASES = 10_000
_MANY = 20

Flags = dict[str, Any]
"""The options as click parsed them, by the names of their parameters."""


class Askers(NamedTuple):
    """The functions that answer a single case, and one of several."""

    alone: Callable[..., Case]
    among_others: Callable[..., Case]


def run_query(command: str, flags: Flags) -> None:
    """Evaluate every case that the flags describe and print the report.

    Raises:
        SpecError: the flags are malformed.
        click.exceptions.Exit: with 1 when a gate failed.
    """
    if (shard := flags.pop("shard", None)) is None:
        cases, output = run_cases(command, flags)
        emit(report(command, cases), output)
        return
    from dpcalc.recipes.running.shards import cost, dealt_out, hash_of, of_sweep, parse_share

    share, asked, places = parse_share(shard), list[str](), list[int]()
    certify, solved = bool(flags.get("certify")), flags.get("solve") is not None
    common = [f"{name}={flags[name]!r}" for name in _COMMON if flags.get(name)]
    if flags.get("schedule") is not None:
        common.append(hash_of(flags["schedule"]) or flags["schedule"])

    def chosen(combinations: list[Flags]) -> list[Flags]:
        asked.extend(repr(sorted(values.items())) for values in combinations)
        costs = (cost(command, str(values.get("algorithm")), solved=solved) for values in combinations)
        places.extend(dealt_out(zip(costs, asked, strict=True), share))
        return [combinations[place] for place in places]

    cases, output = run_cases(command, flags, chosen=chosen)
    asked.append(f"{command} {' '.join(common)}")
    emit(of_sweep(report(command, cases), asked, places, share, certify=certify), output)


_COMMON = ("gates", "order", "solve", "certify", "risk", *RATES)
"""The parts of the question that all cases of a sweep share."""


def run_cases(
    command: str,
    flags: Flags,
    askers: Askers | None = None,
    *,
    chosen: Callable[[list[Flags]], list[Flags]] | None = None,
) -> tuple[list[Case], Output]:
    """Return every case that the flags describe, and the options of output.

    Args:
        command: a key of `COMMANDS`.
        flags: as click parsed them.
        askers: answer the cases; None: `ask` and `side_by_side`.
        chosen: selects the cases to answer; None: all.

    Raises:
        SpecError: the flags are malformed.
    """
    output = Output.of(flags)
    gates = gates_of(flags.pop("gates"))
    orders = tuple(itertools.chain(*flags.pop("order", ())))
    solve, schedule, certified = flags.pop("solve", None), flags.pop("schedule", None), flags.pop("certify", False)
    listed = rates_of(flags)
    risks = risks_asked(flags.pop("risk", False), listed)
    if solve is not None and not solve:
        raise SpecError("--solve: an empty name", "for example --solve index")
    if solve is not None:
        from dpcalc.engine.solving.search import DIRECTIONS
        from dpcalc.model.parameter import named_by

        solve = named_by(solve, (*DIRECTIONS, "epsilon", "delta"))
    combinations = _combinations({name: list(itertools.chain(*parts)) for name, parts in flags.items() if parts})
    single = len(combinations) == 1
    if risks is not None and single and output.plot is not None:
        risks = risks._replace(curve=True)
    curves = output.curves and len(combinations) <= MOST_CURVES
    askers = askers or Askers(ask, side_by_side)
    options = {"notes": len(combinations) <= FEW, "brief": not single, **({"certified": True} if certified else {})}

    only_best = output.best_only and not (options["notes"] or certified or gates or COMMANDS[command].compares)

    def evaluate(values: Flags, asker: Callable[..., Case]) -> Case:
        given, question = _question(values, orders, solve)
        question = aimed(question._replace(risks=risks, curves=curves), given, listed)
        if schedule is not None:
            given["schedule"] = schedule
        sources = dict.fromkeys(given, Source.FLAG)
        if only_best and asker is side_by_side and (case := best_of(command, given, question, sources)):
            return case
        return asker(command, given, question, sources=sources, gates=gates, **options)

    here = combinations if chosen is None else chosen(combinations)
    with _progress(here) as shown:
        cases = [evaluate(values, askers.alone if single else askers.among_others) for values in shown]
    if chosen is None and cases and not any(case.best for case in cases):
        evaluate(combinations[0], askers.alone)  # no bound applies to any case: say why, as for a single case
    return cases, output


def gates_of(texts: tuple[str, ...]) -> list[Gate]:
    """Return the assertions."""
    if not texts:
        return []
    from dpcalc.engine.gate import parse

    return [parse(text) for text in texts]


def rates_of(flags: Flags) -> dict[str, list[float]]:
    """Take the rates and probabilities of attacks out of the flags, and return them."""
    listed = {}
    for name in RATES:
        if text := flags.pop(name, None):
            listed[name] = parse_sweep(text, parse_number)
    return listed


def risks_asked(asked: bool, listed: dict[str, list[float]]) -> RiskQuestion | None:
    """Return the question about attacks, or None."""
    if not asked and not listed:
        return None
    from dpcalc.model.question import RiskQuestion

    return RiskQuestion.of(**listed)


def _question(values: Flags, orders: tuple[float, ...], solve: str | None) -> tuple[Flags, Question]:
    """Return the parameters of the run, and the question."""
    given = dict(values)
    typed: Delta | None = given.pop("delta", None)
    delta = delta_of(typed, given.get("records")) if typed else None
    value, log = (delta.value, delta.log) if delta else (None, None)
    return given, Question(given.pop("epsilon", None), value, log, orders, solve, Source.FLAG)


def _progress(combinations: list[Flags]) -> Any:
    """Return a context whose value iterates over the cases, with a progress bar for many on a terminal."""
    if len(combinations) < _MANY or sys.stderr is None or not sys.stderr.isatty():
        return contextlib.nullcontext(combinations)
    return click.progressbar(combinations, label="cases", file=sys.stderr)


def is_described(flags: Flags) -> bool:
    """Return whether any flag describes a run or a question."""
    return any(flags[name] for name in (*COMMANDS["compare"].parameters, "epsilon", "delta", "schedule", "order"))


def _combinations(sweeps: dict[str, list[Any]]) -> list[Flags]:
    """Return every combination of the values of several sweeps."""
    count = 1
    for values in sweeps.values():
        count *= len(values)
    if count > MAX_CASES:
        raise SpecError(f"the sweep has {count} cases; at most {MAX_CASES} are run at once", "use fewer values")
    return [dict(zip(sweeps, chosen, strict=True)) for chosen in itertools.product(*sweeps.values())]


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Command(WithHelp):
    """A command that finds its short flags quickly, and accepts the equivalent flags of other programs.

    A click parser first looks a short flag up among the long ones, compares it with each of them for a hint that
    is never shown, and only then looks among the short ones.
    """

    def make_parser(self, ctx: click.Context) -> Any:
        """Return the parser, with the short flags and other programs' words among the long ones."""
        parser: Any = super().make_parser(ctx)
        if hasattr(parser, "_long_opt") and hasattr(parser, "_short_opt"):  # without it: slower, fewer words
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

    A command has ``--schedule`` if it takes columns of one, or ``--matrix`` if that is a matrix.
    """
    columns = COMMANDS[command].columns
    scheduled = (_MATRIX if columns == MATRIX else _SCHEDULE,) if columns else ()

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for target in reversed(TARGETS.values()):
            function = _option(target)(function)
        for option in reversed((*_ATTACKS, *scheduled, *_QUESTION)):
            function = option(function)
        return _with_parameters(output_options(function), command, ("epsilon", "delta", "order"))

    return decorate


def training_options(command: str) -> Decorator:
    """Return the decorator that adds a command's parameters, the budget, gates and output options; -o is the model."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        function = output_options(function, written="Write the model to FILE.json or FILE.npz, atomically.")
        return _with_parameters(_GATES(function), command, ("epsilon", "delta"))

    return decorate


def audit_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a run, a budget, gates and output."""
    return _with_parameters(output_options(_GATES(_SCHEDULE(function))), "compare", ("epsilon", "delta"))


def known_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a known guarantee, and gates."""
    function = _GATES(function)
    for name in ("delta", "epsilon"):
        function = _option(PARAMETERS[name])(function)
    function = click.option(
        "--rdp", metavar="TEXT", multiple=True,
        help="Known bounds on the Renyi divergence: 'order=8 epsilon=1' or 'order=2,8 epsilon=0.1,1'. Repeatable.",
    )(function)  # fmt: skip
    for name in reversed([name for name in KNOWN if name != "to"]):
        function = _option(KNOWN[name])(function)
    return function


def conversion_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a conversion: the known guarantee, the question, gates and output."""
    function = _option(PARAMETERS["order"])(sweep_options(function))
    return known_options(_option(KNOWN["to"])(function))


def risk_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of questions about attacks."""
    for option in reversed(_RISKS):
        function = option(function)
    return function


def _with_parameters(function: Callable[..., Any], command: str, question: tuple[str, ...]) -> Callable[..., Any]:
    record = COMMANDS[command]
    for name in reversed((*record.parameters, *question)):
        parameter = PARAMETERS[name]
        if name == "algorithm":  # one of the command's own algorithms
            parameter = parameter._replace(choices=record.algorithms + (("all",) if record.compares else ()))
        function = _option(parameter)(function)
    return function


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
        help="False-positive rates for the true-positive rates of --risk. [0.001,0.01,0.1]",
    ),
    click.option(
        "--prior",
        metavar="LIST",
        help="Prior probabilities that the record is present, for the success rate of a guess. [0.5]",
    ),
    click.option(
        "--baseline", metavar="LIST", help="Probabilities of guessing a secret of the record without the release."
    ),
)

_SCHEDULE = click.option(
    "--schedule", type=FILE, help="Values per step (dp-sgd: per phase): CSV with a header, NPY, NPZ, YAML."
)

_MATRIX = click.option(
    "--matrix", "schedule", type=FILE, help="The matrix C: NPY, or CSV without a header, one row per step."
)

_ATTACKS = (click.option("--risk", is_flag=True, help="Also show what an attacker can do."), *_RISKS)

_QUESTION = (
    click.option(
        "--solve", metavar="NAME", type=Word(_solvable),
        help="Solve for this parameter; needs --epsilon and --delta, or --advantage, --tpr or the like.",
    ),
    _GATES,
    click.option(
        "--certify", is_flag=True,
        help="Prove every guarantee in ball arithmetic; exit 3 if the best one cannot be proved.",
    ),
)  # fmt: skip
