"""``dpcalc find``."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Sequence

import click

from dpcalc.cli.help.option import WithHelp
from dpcalc.cli.help.search import Entry, Kind, found
from dpcalc.errors import SpecError
from dpcalc.files.output import write
from dpcalc.inert import json_text

ROWS = 8
"""The largest number of rows printed without --all."""
_WIDTH = 80


@click.command("find", cls=WithHelp)
@click.argument("words", metavar="WORDS...", nargs=-1, required=True)
@click.option("--all", "everything", is_flag=True, help="Show all results, not just the first few.")
@click.option("--json", "as_json", is_flag=True, help="Print all results as JSON: kind, name, text and command.")
def command(words: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Find bounds, authors, theorems, figures, errata, parameters, topics and examples, and the command for each.

    \b
      dpcalc find feldman theorem 23
      dpcalc find figure 2 sordello
      dpcalc find momentum
      dpcalc find errata wang
    """
    hits = found(words)
    if not hits:
        raise SpecError(f"nothing matches {' '.join(words)!r}", "use other or fewer words, or see `dpcalc help`")
    if as_json:
        write(json_text([hit.to_dict() for hit in hits], 2) + "\n", None)
        return
    write("\n".join(_all(hits) if everything else _first(hits, words)) + "\n", None)


def _all(hits: Sequence[Entry]) -> list[str]:
    return [row for hit in hits for row in _rows(hit)]


def _first(hits: Sequence[Entry], words: Sequence[str]) -> list[str]:
    """Return the rows of the first hits, at least one, and the number of the other hits."""
    rows = _rows(hits[0])
    for number, hit in enumerate(hits[1:], start=1):
        more = _rows(hit)
        if len(rows) + len(more) > ROWS - (number + 1 < len(hits)):
            return [*rows, f"{len(hits) - number} more: dpcalc find {shlex.join(words)} --all"]
        rows += more
    return rows


def _rows(hit: Entry) -> list[str]:
    """Return the text of a hit, a topic in full and others in one row, and the command."""
    most = None if hit.kind is Kind.TOPIC else 1
    return [*textwrap.wrap(hit.text, _WIDTH, max_lines=most, placeholder=" ..."), *typed(hit.command)]


def typed(command: str) -> list[str]:
    r"""Return a command in rows of at most 80 columns, with continuation backslashes.

    >>> typed("dpcalc ledger --add 'mu=1 times=2' --delta 1e-5")
    ["  dpcalc ledger --add 'mu=1 times=2' --delta 1e-5"]
    """
    rows = [" "]
    for option in re.split(r" (?=-{1,2}[a-zA-Z])", shlex.join(shlex.split(command))):
        if len(rows[-1]) + len(option) + 3 > _WIDTH:
            rows[-1] += " \\"
            rows.append("   ")
        rows[-1] += " " + option
    return rows
