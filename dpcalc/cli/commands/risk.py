"""``dpcalc risk``."""

from __future__ import annotations

from typing import Any

import click

from dpcalc.cli.output.printing import Output, emit, sweep_options
from dpcalc.cli.query import (
    Askers,
    Command,
    Flags,
    gates_of,
    known_options,
    rates_of,
    risk_options,
    risks_asked,
    run_cases,
)
from dpcalc.engine.attack.stated import risk_of_guarantee
from dpcalc.engine.premises import STARTS
from dpcalc.errors import SpecError
from dpcalc.render.notes import report as report_on


@click.command(
    "risk", cls=Command, usual=("mu", "rho", "pure", "rdp", "epsilon", "delta", "fpr", "prior", "baseline", "gates")
)
@click.argument("report", metavar="[REPORT.json]", required=False)
@known_options
@risk_options
@sweep_options
def command(report: str | None, rdp: tuple[str, ...], **flags: Any) -> None:
    """Bound what an attacker can do against a guarantee.

    \b
    Gaussian privacy, one (epsilon, delta), concentrated privacy:
      dpcalc risk --mu 1
      dpcalc risk -e 1 -d 1e-5
      dpcalc risk --rho 0.5 --fpr 1e-4,0.01
    A secret is guessed once in 1000 without the model. How often with it?
      dpcalc risk --mu 1 --baseline 0.001
    Is that below a limit?
      dpcalc risk --mu 0.5 --assert 'tpr@1%<=0.05'
    A plot of true against false positives:
      dpcalc risk --mu 1 --plot -
    For a run (every query takes --risk, and gates on it):
      dpcalc rdp -n 60000 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6 --risk

    One (epsilon, delta) says little: the risk computed from a run's whole privacy curve is often much smaller. Given
    the path of a report that a query wrote with --json, the command answers for each of its cases.
    """
    if report is not None:
        _of_report(report, rdp, flags)
        return
    if rdp:
        flags["rdp"] = [[rdp]]
    flags["risk"] = True
    cases, output = run_cases("risk", flags, Askers(risk_of_guarantee, risk_of_guarantee))
    emit(report_on("risk", cases), output)


def _of_report(path: str, rdp: tuple[str, ...], flags: Flags) -> None:
    from dpcalc.engine.attack.stated import risks_of_report

    known = [name for name in (*STARTS, "epsilon", "delta") if flags.pop(name, None)] + (["rdp"] if rdp else [])
    if known:
        raise SpecError(f"give either a report or {', '.join(known)}", "leave out one of the two")
    output = Output.of(flags)
    asked = risks_asked(True, rates_of(flags))
    assert asked is not None
    emit(report_on("risk", risks_of_report(path, asked, gates_of(flags["gates"]))), output)
