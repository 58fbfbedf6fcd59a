"""``dpcalc bounds``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import click

from dpcalc.cli.help.search import found
from dpcalc.cli.output.terminal import show
from dpcalc.cli.query import Command, parameter_options
from dpcalc.engine.ask import applying
from dpcalc.engine.commands import COMMANDS
from dpcalc.errors import SpecError
from dpcalc.inert import json_text
from dpcalc.model.quantities import Kind
from dpcalc.render.blocks import COLUMNS, Paragraph, plain
from dpcalc.theorems.record import Theorem, all_bounds


@click.command("bounds", cls=Command, usual=("algorithm", "as_json", "output"))
@click.argument("words", metavar="[WORDS]...", nargs=-1)
@parameter_options("compare")
def command(words: tuple[str, ...], **flags: Any) -> None:
    """List all bounds, or those that match some words, or those that apply to a run and why the others do not.

    \b
      dpcalc bounds feldman laplace
      dpcalc bounds --algorithm shuffled
      dpcalc bounds --algorithm shuffled -n 60000 -L 1 --smoothness 1 --eta 0.1 \\
        --sigma 2
    """
    chosen = [name for part in flags["algorithm"] for name in part]
    bounds = [b for b in all_bounds().values() if not chosen or set(chosen) & set(b.algorithms)]
    if words:
        bounds = _about(words, bounds)
    if flags["as_json"]:
        show(json_text([bound.to_dict() for bound in bounds], 2) + "\n", flags["output"])
        return
    given = {name: flags[name][0][0] for name in COMMANDS["compare"].parameters if flags[name] and name != "algorithm"}
    if words and given:
        raise SpecError("give either words or a described run, not both", "leave out the words")
    show(plain(_applying(chosen, **given) if given else map(_described, bounds), COLUMNS), flags["output"])


def _about(words: Sequence[str], bounds: Sequence[Theorem]) -> list[Theorem]:
    """Return the bounds that match the words, the most relevant first.

    Raises:
        SpecError: no bound matches.
    """
    by_id = {bound.id: bound for bound in bounds}
    chosen = [by_id[id] for hit in found(words) if (id := hit.name.removeprefix("erratum ")) in by_id]
    if not chosen:
        raise SpecError(
            f"no bound matches {' '.join(words)!r}", f"`dpcalc find {shlex.join(words)}` searches everything else"
        )
    return chosen


def _described(bound: Theorem) -> Paragraph:
    """Return the id and the title of a bound, and its kind unless it is an upper bound."""
    return Paragraph(f"  {bound.id}  {bound.title}{'' if bound.kind is Kind.UPPER else f' ({bound.kind})'}".strip())


def _applying(chosen: list[str], /, **given: Any) -> Iterator[Paragraph]:
    """Yield the bounds of each algorithm: whether each applies, and if not, why and what to change."""
    if not chosen:
        raise SpecError("Which algorithm? Give --algorithm.", "`dpcalc help order` explains them")
    for algorithm in chosen:
        yield Paragraph(f"{algorithm}:")
        for row in applying(algorithm, given):
            yield Paragraph(f"  {row.applies}  {row.bound.id}" + (f": {row.because}" if row.because else ""))
