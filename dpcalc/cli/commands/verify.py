"""``dpcalc verify``."""

from __future__ import annotations

import click

from dpcalc.cards.verify import Verification
from dpcalc.cli.query import Command
from dpcalc.cli.types import FILE, number_of
from dpcalc.files.output import write
from dpcalc.inert import json_text, printable

_SHOWN = 20
_LONG = 200


@click.command("verify", cls=Command)
@click.argument("card", metavar="CARD")
@click.option("--model", type=FILE, help="The model of the card; its hash and guarantee are compared.")
@click.option("--schedule", type=FILE, help="The schedule of the run; its hash is compared.")
@click.option(
    "--export", type=FILE,
    help="Write the verified card as an entry for the registry of deployments (.yaml), or as answers to the questions "
    "of NIST SP 800-226 (.md).",
)  # fmt: skip
@click.option("--no-certify", is_flag=True, help="Do not also prove the guarantees in ball arithmetic.")
@click.option("--timeout", metavar="SECONDS", default="600", show_default=True, help="Time limit; 0: none.")
@click.option("--memory-limit", metavar="GIB", default="4", show_default=True, help="Memory limit; 0: none.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
def command(
    card: str,
    model: str | None,
    schedule: str | None,
    export: str | None,
    no_certify: bool,
    timeout: str,
    memory_limit: str,
    as_json: bool,
) -> None:
    """Recompute a privacy card, and compare every field.

    \b
    Write a card of a run to publish; its readers verify it:
      dpcalc dp-sgd -n 50000 --sample-rate 0.01 --steps 2000 \\
        --noise-multiplier 1 --sampling poisson -d 1e-5 --report card=release.json
      dpcalc verify release.json
    A model, and the card that train writes beside it:
      dpcalc train --data example:breast-cancer -R 5 -e 1 -d 1e-5 -o model.json
      dpcalc verify model.card.json --model model.json

    A card contains its question, and everything else follows from that: numbers, texts, assumptions and hashes. A card
    fails if a digit or a letter differs. A card of another version of dpcalc may state weaker numbers than this version
    proves, but no stronger ones. Its publisher promises that the run was carried out as the card says.

    Exits with 0 if every field agrees; 1 if one does not; 2 if the file is not a card; 3 if there is no such guarantee,
    or the time runs out; 4 if a guarantee is below the truth.
    """
    from dpcalc.cards.document import read_card
    from dpcalc.cards.verify import verify_within
    from dpcalc.recipes.running.evaluate import limits_of

    limits = limits_of(number_of("--timeout", timeout) or None, number_of("--memory-limit", memory_limit) or None)
    read = read_card(card)
    verification = verify_within(read, limits, model=model, schedule=schedule, certify=False if no_certify else None)
    write(_json(verification) if as_json else _text(card, verification), None)
    if not verification.passed:
        raise click.exceptions.Exit(1)
    if export is not None:
        from dpcalc.cards.registry import exported

        write(exported(read, export), export)


def _json(found: Verification) -> str:
    fields = {
        "passed": found.passed,
        "mismatches": [mismatch._asdict() for mismatch in found.mismatches],
        "checked": list(found.checked) if found.passed else [],
        "unchecked": list(found.unchecked),
        "remarks": list(found.remarks),
    }
    return json_text(fields, 2) + "\n"


def _text(path: str, found: Verification) -> str:
    from dpcalc.cards.document import released_line

    if found.passed:
        but = "".join(f"; NOT CHECKED: {line} (give --model FILE)" for line in found.unchecked)
        lines = [f"verified{' in part' if but else ''}: {path}{but}"]
        lines += [f"  {released_line(found.card['model'])}"] if found.card["model"] else []
        lines += [f"  {headline}" for case in found.card["cases"] for headline in case["guarantee"]["headline"]]
        lines += [f"checked: {line}" for line in found.checked]
    else:
        count = len(found.mismatches)
        lines = [f"NOT VERIFIED: {path}: {count} field{'' if count == 1 else 's'} not as computed"]
        for mismatch in found.mismatches[:_SHOWN]:
            lines += [f"  {mismatch.place}", f"    on the card: {_short(mismatch.given)}"]
            lines += [f"    computed:    {_short(mismatch.recomputed)}"]
        lines += [f"  and {count - _SHOWN} more (--json has all)"] if count > _SHOWN else []
    lines += [f"note: {line}" for line in found.remarks]
    return "".join(f"{printable(line)}\n" for line in lines)


def _short(text: str) -> str:
    return text if len(text) <= _LONG else text[: _LONG - 3] + "..."
