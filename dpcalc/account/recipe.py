"""The recipe that keeps an account: the described run, and a gate at its epsilon."""

from __future__ import annotations

from collections.abc import Iterator

from dpcalc.account.answer import COMMAND, kept_delta, parameters
from dpcalc.account.described import Described
from dpcalc.inert import printable
from dpcalc.render.numbers import SIX, Side

NAME = "what-ran"


def recipe_of(run: Described, epsilon: float) -> str:
    """Return a recipe of one case, which passes as long as the run stays within this epsilon."""
    return "\n".join(_lines(run, epsilon)) + "\n"


def _lines(run: Described, epsilon: float) -> Iterator[str]:
    yield f"# Written by `dpcalc account` from {printable(run.shown)}, read as {run.kind}."
    yield from ("dpcalc: recipe/1", "cases:", f"  {NAME}:")
    group = [f"group_size: {run.group_size}"] if run.group_size > 1 else []
    delta = kept_delta(run)
    if delta < run.delta[0]:
        yield f"    # delta = {run.delta[0]!r} with the steps that workers skip"
    shared = [f"adjacency: {run.adjacency}", *group, f"delta: {delta!r}"]
    if len(run.phases) == 1:
        fields = [f"command: {COMMAND}", *_fields(run, 0), *shared]
    else:
        fields = ["command: ledger", *shared, "entries:"]
        fields += [
            f"  phase-{n + 1}: {{{', '.join((f'command: {COMMAND}', *_fields(run, n)))}}}"
            for n in range(len(run.phases))
        ]
    yield from (f"    {field}" for field in [*fields, f"assert: epsilon <= {SIX.number(epsilon, Side.UP)}"])


def _fields(run: Described, place: int) -> Iterator[str]:
    for name, value in parameters(run, run.phases[place]).items():
        yield f"{name}: {value!r}" if isinstance(value, float) else f"{name}: {value}"
