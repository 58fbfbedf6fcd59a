"""``dpcalc explain`` and ``dpcalc cite``: the statement of a bound, and its sources."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from typing import Any

import click

from dpcalc.cli.commands.find import typed
from dpcalc.cli.help.search import Entry, Kind, found, only
from dpcalc.cli.output.terminal import show
from dpcalc.cli.query import Command, is_described, parameter_options, run_cases, run_query
from dpcalc.cli.types import BOUND
from dpcalc.errors import SpecError
from dpcalc.inert import json_text
from dpcalc.render.notes import report
from dpcalc.theorems.record import lookup


def _named(words: Sequence[str]) -> Entry:
    """Return the one entry that the words name.

    Raises:
        SpecError: they name none, or several.
    """
    entry = only(words)
    if entry is None:
        said = " ".join(words)
        names = [hit.name for hit in found(words)]
        if not names:
            raise SpecError(f"no bound or topic is called {said!r}", "`dpcalc bounds` lists them all")
        raise SpecError(
            f"{said!r} names several things: {', '.join(names[:3])}{', ...' if names[3:] else ''}",
            f"`dpcalc find {shlex.join(words)}` shows the command for each",
        )
    return entry


@click.command("explain", cls=Command, usual=("as_json", "output"))
@click.argument("ids", metavar="[ID]...", type=BOUND, nargs=-1)
@parameter_options("compare")
def command(ids: tuple[str, ...], **flags: Any) -> None:
    """Show the statement, assumptions, formula, reference and errata of bounds, with the numbers of a described run.

    \b
    What does this bound say?
      dpcalc explain iteration.pnsgd
    ... and of my run?
      dpcalc explain iteration.pnsgd -n 60000 -i 30000 -L 1 --smoothness 1 \\
        --eta 0.1 --sigma 2 -d 1e-6
    ... or a theorem, an erratum, a topic, by what it is called?
      dpcalc explain feldman theorem 35
      dpcalc explain momentum
    Why is the best answer for my run true?
      dpcalc explain --algorithm shuffled -n 60000 -L 1 --smoothness 1 \\
        --eta 0.1 --sigma 2 -d 1e-6
    """
    from dpcalc.render.numbers import Digits
    from dpcalc.render.several import describe, explain_bounds

    if ids and not all("." in id for id in ids):
        entry = _named(ids)
        if entry.kind not in (Kind.BOUND, Kind.ERRATUM):
            rows = [*textwrap.wrap(entry.text, 80), *typed(entry.command)]
            text = json_text([entry.to_dict()], 2) if flags["as_json"] else "\n".join(rows)
            show(text + "\n", flags["output"])
            return
        ids = (entry.command.split()[-1],)
    bounds = [lookup(id) for id in ids]
    if flags["reports"] and (bounds or not is_described(flags)):
        raise SpecError("--report needs a described run", "describe a run, and name no bound")
    if not is_described(flags):
        if not bounds:
            raise SpecError("nothing to explain: give a bound or describe a run", "`dpcalc bounds` lists the bounds")
        if flags["as_json"]:
            show(json_text([bound.to_dict() for bound in bounds], 2) + "\n", flags["output"])
        else:
            show("\n\n".join(describe(bound) for bound in bounds) + "\n", flags["output"])
        return
    if not bounds:
        run_query("compare", flags if flags["as_json"] else {**flags, "format": flags["format"] or "explain"})
        return
    if flags["as_json"]:
        raise SpecError("--json explains either bounds or a run", "describe a run, and name no bound")
    if not flags["algorithm"]:
        flags["algorithm"] = ([bounds[0].algorithms[0].removesuffix("-released")],)
    cases, output = run_cases("compare", flags)
    show(explain_bounds(report("compare", cases), ids, Digits(output.precision)), output.file)


@click.command("cite", cls=Command, usual=("as_json", "output"))
@click.argument("ids", metavar="[ID]...", type=BOUND, nargs=-1)
@parameter_options("compare")
def cite(ids: tuple[str, ...], **flags: Any) -> None:
    """Print BibTeX for the sources of the given bounds (default: all), or of the best answer for a described run.

    \b
      dpcalc cite iteration.pnsgd
      dpcalc cite feldman2018
      dpcalc cite --algorithm shuffled -n 60000 -L 1 --smoothness 1 --eta 0.1 \\
        --sigma 2 -d 1e-6
    """
    if is_described(flags) and not ids:
        run_query("compare", flags if flags["as_json"] else {**flags, "format": flags["format"] or "bibtex"})
        return
    from dpcalc.render.several import cited

    text = cited(ids)
    show(json_text({"bibtex": text}, 2) + "\n" if flags["as_json"] else text, flags["output"])
