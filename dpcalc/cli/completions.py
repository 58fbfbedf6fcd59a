"""``dpcalc completions``."""

from __future__ import annotations

import click

from dpcalc.cli.described import described
from dpcalc.files.output import write


@click.command("completions")
@click.argument("shell", metavar="bash|zsh|fish|man", type=click.Choice(["bash", "zsh", "fish", "man"]))
@click.option("--output", "-o", metavar="FILE", help="Write to FILE, atomically, instead of stdout.")
def command(shell: str, output: str | None) -> None:
    """Print the completion script of a shell, or the manual page; each is generated from the commands themselves.

    \b
      dpcalc completions bash > \\
        ~/.local/share/bash-completion/completions/dpcalc
      dpcalc completions zsh > ~/.zfunc/_dpcalc   # fpath+=~/.zfunc, then compinit
      dpcalc completions fish > ~/.config/fish/completions/dpcalc.fish
      dpcalc completions man > ~/.local/share/man/man1/dpcalc.1

    They are installed with dpcalc. A shell does not look into a virtual environment; with one of these it does:

    \b
      bash  source "$VIRTUAL_ENV/share/bash-completion/completions/dpcalc"
      zsh   fpath+=("$VIRTUAL_ENV/share/zsh/site-functions") && compinit
      fish  source $VIRTUAL_ENV/share/fish/vendor_completions.d/dpcalc.fish
    """
    if shell == "man":
        from dpcalc.cli.manual import manual as text
    else:
        from dpcalc.cli import shells

        text = {"bash": shells.bash, "zsh": shells.zsh, "fish": shells.fish}[shell]
    write(text(described()), output)
