"""Parameter types of the command line: numbers, sweeps, words and file names."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from dpcalc.errors import SpecError
from dpcalc.inert import printable
from dpcalc.model.numbers import parse_delta, parse_integer, parse_number, parse_sweep
from dpcalc.model.parameter import Parameter, check

if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType  # takes no type argument before click 8.4


def refuse_files(words: Sequence[str]) -> None:
    """Refuse a command line in which an option is also the name of a file, or starts with the name of a folder.

    After ``--`` there are no options; ``-`` means standard input there too.

    Raises:
        SpecError: an option is also the name of a file.
    """
    end = words.index("--") if "--" in words else len(words)
    for number, word in enumerate(words):
        option = word.startswith("-") and number < end
        if (option or word == "-") and os.path.lexists(word.split(os.sep)[0]):
            meant = "an option" if option and word != "-" else "standard input or output"
            raise SpecError(
                f"{word} is {meant}, and also the name of a file here",
                f"write ./{word} for the file, or -- before all files; for {meant}, rename the file",
            )


def refuse_selecting(pattern: str | None) -> None:
    """Refuse a pattern for --run that is the name of a file.

    Raises:
        SpecError: it is the name of a file.
    """
    if pattern is not None and os.path.lexists(pattern):
        shown = printable(pattern)
        raise SpecError(
            f"--run {shown} is the name of a file, but --run selects cases by name",
            f"for a case of that name: --run '^{shown}$'",
        )


def number_of(flag: str, typed: str) -> float:
    """Return the value of an option as a number.

    Raises:
        SpecError: it is not a number.
    """
    try:
        return parse_number(typed)
    except SpecError as error:
        raise SpecError(f"{flag}: {error.message}", error.hint) from None


class Delta(NamedTuple):
    """A delta as typed: its double (never 0) and its exact logarithm."""

    value: float
    log: float


OF_RECORDS = ("1/n", "1/records")
"""The spelling of delta as one over the number of records."""
ONE_OVER_RECORDS = Delta(math.nan, math.nan)


def delta_of(typed: Delta, records: int | None) -> Delta:
    """Return delta; if it was typed as 1/n, one over the number of records.

    Raises:
        SpecError: delta is 1/n, and the number of records is unknown or 1.
    """
    if typed is not ONE_OVER_RECORDS:
        return typed
    if records is None or records < 2:
        raise SpecError("--delta 1/n needs the number of records", "give --records of at least 2, or a number")
    return Delta(*parse_delta(f"1/{records}"))


class Sweep(_ParamType):
    """One number, a list ``1,2,4``, a range ``1:10:0.5`` or a log range ``1:1000:log7``; converts to a list."""

    def __init__(self, parameter: Parameter) -> None:
        self.parameter = parameter
        self.name = "int" if parameter.integer else "num"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the list of checked values."""
        if isinstance(value, list):
            return value
        parse = parse_integer if self.parameter.integer else parse_number
        try:
            return [check(self.parameter.name, v) for v in parse_sweep(value, parse)]
        except SpecError as error:
            raise SpecError(f"{self.parameter.flag}: {error.message}", error.hint) from None


class DeltaSweep(Sweep):
    """As `Sweep`, for delta: values below the smallest double keep their logarithm, and 1/n is allowed."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the list of `Delta`."""
        if isinstance(value, list):
            return value
        if value.strip().lower() in OF_RECORDS:
            return [ONE_OVER_RECORDS]
        try:
            if "," in value or ":" in value:
                return [Delta(float(check("delta", v)), math.log(v)) for v in parse_sweep(value, parse_number)]
            return [Delta(*parse_delta(value))]
        except SpecError as error:
            raise SpecError(f"--delta: {error.message}", error.hint) from None


class Choice(_ParamType):
    """One or several words, separated by commas, or ``all`` if that is a choice; converts to a list."""

    name = "word"

    def __init__(self, parameter: Parameter) -> None:
        self.parameter = parameter

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the list of words."""
        if isinstance(value, list):
            return value
        if value.strip() == "all" and "all" in self.parameter.choices:
            return [word for word in self.parameter.choices if word != "all"]
        return [check(self.parameter.name, word.strip()) for word in value.split(",")]

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return the words, for --help."""
        return "|".join(self.parameter.choices)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Complete the last word of the list."""
        return completed(self.parameter.choices, incomplete)


def completed(words: Iterable[str], incomplete: str) -> list[Any]:
    """Return the words that complete the last one of a list separated by commas."""
    from click.shell_completion import CompletionItem

    start, comma, typed = incomplete.rpartition(",")
    return [CompletionItem(f"{start}{comma}{word}") for word in words if word.startswith(typed)]


class Word(_ParamType):
    """A text, as typed, with completions for the shell."""

    name = "text"

    def __init__(self, words: Callable[[], Iterable[str]]) -> None:
        self.words = words

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Complete the words."""
        return completed(self.words(), incomplete)


class FileName(_ParamType):
    """The path of a file, as typed."""

    name = "file"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Let the shell complete the names of files."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


FILE = FileName()


def _bounds() -> Iterable[str]:
    from dpcalc.theorems.record import all_bounds

    return all_bounds()


BOUND = Word(_bounds)
"""The id of a bound."""


SECTIONS = {
    "Ask": {
        "dp-sgd": "DP-SGD with clipped gradients, as Opacus runs it.",
        "dp-ftrl": "Correlated noise: DP-FTRL, trees, banded matrices.",
        "compare": "All bounds that apply to a described run, best first.",
        "multi-epoch": "Many passes: ordered, shuffled or sampled; hidden iterates.",
        "shuffle": "One pass in a random order; fixed noise or noise tuned to n.",
        "rdp": "One pass in a fixed order; the iterates stay hidden.",
        "ledger": "Compose several runs and queries about the same records.",
        "convert": "Convert a guarantee to another notion of privacy.",
        "risk": "What an attacker can do against a guarantee.",
        "utility": "What a budget costs: excess risk, noise, steps.",
    },
    "Check": {
        "account": "What a run really spent, from its files; compared with its plan.",
        "check": "Run recipe files: cases of any command, with gates.",
        "init": "Write a recipe from a training configuration.",
        "verify": "Recompute a privacy card, and compare every field.",
        "audit": "Attack a run, for a lower bound on its epsilon.",
    },
    "Train": {
        "train": "Train a private model: budget in, model out.",
        "model": "The coefficients of a trained model, and their noise.",
        "predict": "Predict the target of rows with a trained model.",
        "evaluate": "Evaluate a model on test rows, with or without privacy.",
    },
    "Look up": {
        "find": "Bounds, authors, theorems, figures, errata, parameters, topics.",
        "explain": "What a bound says, or why the best answer for a run is true.",
        "bounds": "List all bounds, or those that apply to a run.",
        "statement": "A paragraph about a run, for a paper or a model card.",
        "help": "What to type first; pages about topics; the proofs.",
    },
    "Rarer": {
        "online": "A growing stream with decaying noise.",
        "unlearn": "Make a model forget records by noisy steps on the others.",
        "hockey-stick": "delta(epsilon) of one record in one pass.",
        "shifted": "Any noisy Lipschitz steps, with the best shifts.",
        "merge": "Merge the reports of all shards of a check.",
        "cite": "BibTeX of a bound, or of the best answer for a run.",
        "schema": "Print the JSON schema of a report, a recipe or a card.",
        "completions": "Print the completion script of a shell, or the manual page.",
    },
}
"""The commands in the sections of the help, which shows only the names of the last section."""

COMMANDS = {name: text for commands in SECTIONS.values() for name, text in commands.items()}

MORE = (
    "account", "online", "risk", "ledger", "convert", "utility", "train", "audit", "predict", "evaluate", "model",
    "init", "check", "merge", "verify", "explain", "find", "bounds", "cite", "help", "schema", "completions",
)  # fmt: skip
"""The commands with their own module; the others are rows of `dpcalc.cli.runs.RUNS`."""

BESIDE = {"cite": "explain", "schema": "completions"}
"""Small commands -> the module of another command that defines them."""
