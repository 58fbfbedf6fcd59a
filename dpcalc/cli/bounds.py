"""``dpcalc bounds``."""

from __future__ import annotations

import json

import click

from dpcalc.output import write
from dpcalc.registry import Bound, all_bounds
from dpcalc.render.plain import aligned


@click.command("bounds")
@click.option("--algorithm", metavar="NAME", help="Only those that speak of this algorithm.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(algorithm: str | None, as_json: bool) -> None:
    """List the bounds: id, kind, what it gives, for which algorithms, and its title."""
    found = [b for b in all_bounds().values() if algorithm is None or algorithm in b.algorithms]
    if not found:
        from dpcalc.errors import SpecError

        known = sorted({name for b in all_bounds().values() for name in b.algorithms})
        raise SpecError(f"no bound speaks of {algorithm!r}", f"one of {', '.join(known)}")
    if as_json:
        write(json.dumps([_record(bound) for bound in found], indent=2) + "\n", None)
        return
    table = [("id", "kind", "gives", "algorithm", "title")]
    table += [(b.id, b.kind, b.gives, ", ".join(b.algorithms), b.title) for b in found]
    write("\n".join(line.rstrip() for line in aligned(table)) + "\n", None)


def _record(bound: Bound) -> dict[str, object]:
    return {
        "id": bound.id,
        "title": bound.title,
        "kind": bound.kind,
        "gives": bound.gives,
        "algorithms": list(bound.algorithms),
        "parameters": list(bound.parameters),
        "assumes": list(bound.assumes),
        "requires": [requirement.text for requirement in bound.requires],
        "formula": bound.formula,
        "reference": bound.reference,
        "locator": bound.locator,
        "erratum": bound.erratum,
    }
