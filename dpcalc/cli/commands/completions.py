"""``dpcalc completions`` and ``dpcalc schema``: files for shells and editors."""

from __future__ import annotations

import click

from dpcalc.cli.help.option import WithHelp
from dpcalc.cli.types import FILE
from dpcalc.files.output import write
from dpcalc.references import read


@click.command("completions", cls=WithHelp)
@click.argument("shell", metavar="bash|zsh|fish|man", type=click.Choice(["bash", "zsh", "fish", "man"]))
@click.option("--output", "-o", type=FILE, help="Write to FILE, atomically, instead of stdout.")
def command(shell: str, output: str | None) -> None:
    """Print the completion script of a shell, or the manual page.

    \b
      dpcalc completions bash > \\
        ~/.local/share/bash-completion/completions/dpcalc
      dpcalc completions zsh > ~/.zfunc/_dpcalc   # fpath+=~/.zfunc, then compinit
      dpcalc completions fish > ~/.config/fish/completions/dpcalc.fish
      dpcalc completions man > ~/.local/share/man/man1/dpcalc.1

    They are installed with dpcalc. For a virtual environment, tell the shell where they are:

    \b
      bash  source "$VIRTUAL_ENV/share/bash-completion/completions/dpcalc"
      zsh   fpath+=("$VIRTUAL_ENV/share/zsh/site-functions") && compinit
      fish  source $VIRTUAL_ENV/share/fish/vendor_completions.d/dpcalc.fish
    """
    if shell == "man":
        from dpcalc.cli.help.manual import manual

        text = manual()
    else:
        from click.shell_completion import get_completion_class

        from dpcalc.cli.main import COMPLETE, cli

        made = get_completion_class(shell)
        assert made is not None
        # `source` of bash would look for bash and warn of an old one.
        text = made.source_template % made(cli, {}, "dpcalc", COMPLETE).source_vars() + "\n"
    write(text, output)


@click.command("schema", cls=WithHelp)
@click.argument("name", type=click.Choice(["report", "recipe", "policy", "card"]), default="report")
def schema(name: str) -> None:
    """Print the JSON schema of a report (the default), a recipe, a policy or a privacy card.

    \b
    An editor with the YAML language server completes a recipe that starts with
      # yaml-language-server: $schema=recipe-1.schema.json
    if this was run in the same folder:
      dpcalc schema recipe > recipe-1.schema.json
    """
    if name not in _MADE:
        write(read(f"{name}-1.schema.json"), None)
        return
    from dpcalc.api.documents import schema as made
    from dpcalc.inert import json_text

    write(json_text(made(name), 2) + "\n", None)


_MADE = frozenset({"recipe", "policy"})
"""Schemas generated from the records of the parameters."""
