"""The chart of where the shifts of a single ``shifted`` case are spent."""

from __future__ import annotations

from dpcalc.errors import SpecError
from dpcalc.render.chart import Axis, Chart, Panel, Series, is_wide
from dpcalc.render.chart.sweep import given_inputs
from dpcalc.render.words.allocation import allocation_lines
from dpcalc.report import Report


def allocation_chart(report: Report) -> Chart:
    """Return the chart of the allocation of a report's only case.

    Raises:
        SpecError: it has no finite one.
    """
    [case] = report.cases
    allocation = ((case.best.details if case.best else None) or {}).get("allocation", {})
    sampled = allocation.get("sampled")
    spent, left = (sampled or allocation).get("a"), (sampled or allocation).get("z")
    if not spent:
        raise SpecError("there is no finite allocation to draw", "every step that a shift enters needs noise after it")
    steps = tuple(sampled["steps"]) if sampled else tuple(range(1, len(spent) + 1))
    axis = Axis("step t")
    panels = (
        Panel("", axis, Axis("shift spent in step t, a_t", is_wide(spent)), (Series("a_t", steps, tuple(spent)),)),
        Panel("", axis, Axis("distance left after step t, z_t"), (Series("z_t", steps, tuple(left)),)),
    )
    notes = allocation_lines(allocation)
    if sampled:
        notes.append(f"{len(steps)} of the steps are drawn")
    return Chart("shifted: where the shifts are spent", given_inputs(case), panels, tuple(notes))
