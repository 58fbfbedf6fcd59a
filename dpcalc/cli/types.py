"""Parameter types of the command line: numbers as people write them, and sweeps of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from dpcalc.errors import SpecError
from dpcalc.model.numbers import parse_delta, parse_integer, parse_number, parse_sweep
from dpcalc.model.parameter import Parameter, check

if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType  # takes no type argument before click 8.4


class Delta(NamedTuple):
    """A delta as typed: its double (never 0) and its exact logarithm."""

    value: float
    log: float


OF_RECORDS = ("1/n", "1/records")
"""How delta may be typed as one over the number of records."""
ONE_OVER_RECORDS = Delta(math.nan, math.nan)


def delta_of(typed: Delta, records: int | None) -> Delta:
    """Return delta, where it was typed as 1/n with the number of records for n.

    Raises:
        SpecError: there is no number of records, or it is 1.
    """
    if typed is not ONE_OVER_RECORDS:
        return typed
    if records is None or records < 2:
        raise SpecError("--delta 1/n is over the number of records", "give --records of at least 2, or a number")
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
    """As `Sweep`, for delta: values far below the smallest double keep their logarithm, and 1/n is of the records."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the list of `Delta`."""
        if isinstance(value, list):
            return value
        if value.strip().lower() in OF_RECORDS:
            return [ONE_OVER_RECORDS]
        try:
            if "," in value or ":" in value:
                values = parse_sweep(value, parse_number)
                return [Delta(float(check("delta", v)), math.log(v)) for v in values]
            return [Delta(*parse_delta(value))]
        except SpecError as error:
            raise SpecError(f"--delta: {error.message}", error.hint) from None


class Choice(_ParamType):
    """One of a few words, or several separated by commas, or ``all`` where that is a choice; converts to a list."""

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
    """A text, as typed, for which a shell is offered some words."""

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
