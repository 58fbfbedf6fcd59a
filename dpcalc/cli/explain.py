"""``dpcalc explain``."""

from __future__ import annotations

import click

from dpcalc.output import write
from dpcalc.registry import Bound, lookup


@click.command("explain")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
def command(ids: tuple[str, ...]) -> None:
    """Statement, assumptions, formula, reference and validity of one or more bounds.

    \b
      dpcalc explain iteration.pnsgd
    """
    write("\n\n".join(describe(lookup(id)) for id in ids) + "\n", None)


def describe(bound: Bound) -> str:
    """Return everything the record says of a bound, as plain text."""
    gives = {"mu": "mu (Gaussian DP)", "rdp": "RDP at an order", "log_delta": "delta at epsilon",
             "epsilon": "epsilon at delta", "parts": "epsilon and delta, composed by the law of the privacy loss",
             "cost": "an excess risk, with the noise and the step size that have it",
             }  # fmt: skip
    needed = [name for name in bound.parameters if name not in bound.optional]
    known = [name for name in bound.parameters if name in bound.optional]
    lines = [
        f"{bound.id}: {bound.title}",
        "",
        _wrap(bound.statement),
        "",
        f"formula    {bound.formula}",
        f"gives      {gives[bound.gives]}",
        f"kind       {bound.kind}" + ("" if bound.guarantee else " (for comparison: never a guarantee)"),
        f"source     {bound.reference}: {bound.locator}   (`dpcalc cite {bound.id}`)",
        f"algorithm  {', '.join(bound.algorithms)}",
        f"needs      {', '.join(needed)}",
        *([f"if known   {', '.join(known)}"] if known else []),
        *([f"slack      {bound.slack}"] if bound.slack else []),
        "",
        "assumes",
        *(f"  - {text}" for text in bound.assumes),
        *(f"  - {requirement.text} (checked)" for requirement in bound.requires),
        *(f"  - {demand.text} (to be promised)" for demand in bound.demands),
    ]
    if bound.erratum:
        lines += ["", _wrap(f"erratum: {bound.erratum}")]
    return "\n".join(lines)


def _wrap(text: str) -> str:
    import textwrap

    return textwrap.fill(text, 100)
