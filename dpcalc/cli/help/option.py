"""The options --help and --help-all, untranslated: the search for a translation takes 2% of a query's time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click


def nearest(word: str, words: Iterable[str]) -> list[str]:
    """Return the most similar words, at most two, if at most a third of the letters are wrong.

    >>> nearest("nose-std", ["loss", "noise-std", "noise"]), nearest("noise-mult", ["noise-std", "noise-multiplier"])
    (['noise-std'], ['noise-multiplier'])
    """
    limit = max(1, len(word) // 3)
    begun = len(word) >= 3
    far = {name: distance(word, name) for name in words if len(word) > 1}
    begins = [name for name in far if begun and name.startswith(word)]
    admitted = begins or [name for name, apart in far.items() if apart <= limit]
    least = min((far[name] for name in admitted), default=0)
    return [name for name in admitted if far[name] == least][:2]


def distance(one: str, other: str) -> int:
    """Return the edit distance of two words: omissions, insertions, changes and swaps of neighbouring letters.

    >>> distance("epsilson", "epsilon"), distance("sgima", "sigma"), distance("", "ab")
    (1, 1, 2)
    """
    older: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        row = [i]
        for j, wanted in enumerate(other, start=1):
            least = min(last[j] + 1, row[-1] + 1, last[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                least = min(least, older[j - 2] + 1)
            row.append(least)
        older, last = last, row
    return last[-1]


class WithHelp(click.Command):
    """A command with a short and a long help page, untranslated.

    Attributes:
        usual: the names of the options on the short page; empty: those of the query's record, or as many as fit.
    """

    _help: tuple[click.Option, ...] = ()

    def __init__(self, *words: Any, usual: tuple[str, ...] = (), **options: Any) -> None:
        super().__init__(*words, **options)
        self.usual = usual

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return the help option, always the same object, as the order of callbacks depends on it."""
        return self._help_options(ctx)[0]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with the two options that show help."""
        return [*self.params, *self._help_options(ctx)]

    def _help_options(self, ctx: click.Context) -> tuple[click.Option, ...]:
        if not self._help:
            self._help = (
                click.Option(
                    [*self.get_help_option_names(ctx), "_help"], is_flag=True, expose_value=False, is_eager=True,
                    callback=_show_help, help="Show the usual options and exit.",
                ),
                click.Option(
                    ["--help-all", "_help_all"], is_flag=True, expose_value=False, is_eager=True,
                    callback=_show_all, help="Show all options and exit.",
                ),
            )  # fmt: skip
        return self._help


def _show_help(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        click.echo(_short(context), color=context.color)
        context.exit()


def _short(context: click.Context) -> str:
    """Return the short page; for a group, the whole page, without loading its commands."""
    if isinstance(context.command, click.Group):
        return context.get_help()
    from dpcalc.cli.help.layout import short_page

    return short_page(context)


def _show_all(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        click.echo(context.get_help(), color=context.color)
        context.exit()
