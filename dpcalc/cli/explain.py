"""``dpcalc explain``."""

from __future__ import annotations

from typing import Any

import click

from dpcalc.cli.options import is_described, parameter_options, run_cases, run_query
from dpcalc.errors import NotApplicable, SpecError
from dpcalc.output import write
from dpcalc.registry import lookup
from dpcalc.report import Case


@click.command("explain")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@parameter_options("compare")
def command(ids: tuple[str, ...], **flags: Any) -> None:
    """Statement, assumptions, formula, reference and errata of bounds; with the numbers of a run, if one is described.

    \b
    What does this bound say?
      dpcalc explain iteration.pnsgd
    ... and of my run?
      dpcalc explain iteration.pnsgd -n 60000 -i 30000 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6
    Why is the best answer for my run true?
      dpcalc explain --algorithm shuffled -n 60000 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6
    """
    from dpcalc.render.explain import describe, explain_result

    bounds = [lookup(id) for id in ids]
    if not is_described(flags):
        if not bounds:
            raise SpecError(
                "nothing to explain: neither a bound nor a run is given", "`dpcalc bounds` lists the bounds"
            )
        write("\n\n".join(describe(bound) for bound in bounds) + "\n", flags["output"])
        return
    if not bounds:
        run_query("compare", {**flags, "format": flags["format"] or "explain"})
        return
    if not flags["algorithm"]:
        flags["algorithm"] = ([bounds[0].algorithms[0].removesuffix("-released")],)
    cases, output = run_cases("compare", flags)
    texts = [
        explain_result(result, case, output["precision"])
        for id in ids
        for case in cases
        for result in _results(case, id)
    ]
    write("\n\n".join(texts) + "\n", output["output"])


def _results(case: Case, id: str) -> list[Any]:
    """Return the case's results by this bound.

    Raises:
        NotApplicable: it does not apply to the run.
    """
    found = [result for result in case.results if result.bound == id]
    if not found:
        why = next((o for o in case.obstacles if o.bound == id), None)
        because = why.because if why else f"it does not speak of {case.algorithm}"
        raise NotApplicable(f"{id} does not apply to this run: {because}", why.hint if why else "see `dpcalc bounds`")
    return found
