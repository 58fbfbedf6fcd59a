"""The option --help, as click makes it, but in one language: to look for a translation takes a fiftieth of a query."""

from __future__ import annotations

import click


class WithHelp(click.Command):
    """A command whose help option is not translated."""

    _help: click.Option | None = None

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return the help option, always the same one, as the order of callbacks depends on it."""
        if self._help is None:
            names = self.get_help_option_names(ctx)
            self._help = click.Option(
                [*names, "_help"], is_flag=True, expose_value=False, is_eager=True, callback=_show_help,
                help="Show this message and exit.",
            )  # fmt: skip
        return self._help


def _show_help(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        click.echo(context.get_help(), color=context.color)
        context.exit()
