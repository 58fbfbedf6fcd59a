"""``dpcalc utility``."""

from __future__ import annotations

from typing import Any

import click

from dpcalc.cli.query import Command, parameter_options, run_query


@click.command("utility", cls=Command)
@parameter_options("utility")
@click.option("--orders", is_flag=True, help="Print Table 1 of Feldman et al.: orders of growth, no guarantees.")
def command(orders: bool, **flags: Any) -> None:
    """Compute what a budget costs: excess risk, noise, step size and steps by every theorem that applies, best first.

    \b
    Logistic regression on 100000 records, 20 features of norm at most 1:
    what does epsilon = 1 cost?
      dpcalc utility --loss logistic --feature-bound 1 -n 1e5 --dimension 20 \\
        -R 1 -e 1 -d 1e-6
    Risk for several budgets:
      dpcalc utility --loss logistic --feature-bound 1 -n 1e5 --dimension 20 \\
        -R 1 -e 0.25:4:log5 -d 1e-6
    With your own constants:
      dpcalc utility -L 1 --smoothness 1 -n 1e5 --dimension 20 -R 1 -e 1 \\
        -d 1e-6
    """
    if orders:
        _print_orders(**flags)
        return
    run_query("utility", flags)


def _print_orders(**flags: Any) -> None:
    """Print the orders of growth of the excess risk, for one task and for several.

    Raises:
        SpecError: the records, the dimension or epsilon are not given.
    """
    from dpcalc.errors import SpecError
    from dpcalc.files.output import write
    from dpcalc.render.blocks import aligned
    from dpcalc.render.numbers import number
    from dpcalc.theorems.risk.tasks import comparison

    if flags["reports"]:
        raise SpecError("--orders does not go with --report", "leave out --orders or --report")
    given = {name: flags[name][0][0] for name in ("records", "tasks", "dimension", "epsilon") if flags[name]}
    missing = [name for name in ("records", "dimension", "epsilon") if name not in given]
    if missing:
        raise SpecError(f"needs {', '.join(missing)}", "give " + ", ".join("--" + name for name in missing))
    tasks = given.pop("tasks", 1)
    head = ("algorithm", "order for one and for several tasks", "one task", f"{tasks} tasks", "epsilon of a message")
    table: list[tuple[str, ...]] = [head]
    for row in comparison(tasks=tasks, **given):
        numbers = (number(value, 4) for value in (row.one_task, row.many_tasks, row.local_epsilon))
        table.append((row.algorithm, row.formula, *numbers))
    text = "Orders of the excess risk at R = L = 1, without constants and logarithms; none is a guarantee.\n\n"
    write(text + "\n".join(line.rstrip() for line in aligned(table)) + "\n", flags["output"])
