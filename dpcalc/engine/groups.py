"""Which runs say something of groups of records: every record of a group must be covered, in every data set between."""

from __future__ import annotations

from dpcalc.errors import NotApplicable
from dpcalc.model.choices import Adjacency, Sampling
from dpcalc.model.quantities import Kind
from dpcalc.model.run import Run
from dpcalc.notions.guarantee import Gdp, Guarantee
from dpcalc.theorems.record import Theorem

_ONE_WAY = (Adjacency.ADD, Adjacency.REMOVE)


def for_groups(bound: Theorem, run: Run, proved: Guarantee) -> Guarantee:
    """Return what a theorem says of groups of the run's ``group_size``, of what it proves of one record.

    Raises:
        NotApplicable: it says nothing of them.
    """
    size = run.group_size or 1
    if size == 1 or "group_size" in bound.reads:  # the theorem is of groups itself
        return proved
    if bound.kind in (Kind.PUBLISHED, Kind.HEURISTIC):
        raise NotApplicable(
            f"is {'published' if bound.kind is Kind.PUBLISHED else 'a heuristic'} for one record",
            "leave out --group-size to see it",
            parameters=("group_size",),
        )
    refuse_groups(run, gaussian=isinstance(proved, Gdp))
    return proved.grouped(size)


def refuse_groups(run: Run, *, gaussian: bool = False) -> None:
    """Raise NotApplicable where what holds of a record need not hold of every record of a group.

    ``gaussian`` is whether Gaussian privacy is proved, the same in both orders.
    """
    if run.sampling == Sampling.FIXED and run.adjacency in (Adjacency.ADD_REMOVE, *_ONE_WAY):
        raise NotApplicable(
            "with batches of fixed size the rate grows when records leave, and no guarantee here covers that",
            "use --adjacency replace-one or zero-out, or --sampling poisson",
            parameters=("group_size",),
        )
    if run.typed("index") or run.typed("window"):
        raise NotApplicable(
            "one position is spoken of, and the records of a group have several", "leave out --index and --window",
            parameters=("group_size",),
        )  # fmt: skip
    if run.adjacency in _ONE_WAY and not gaussian:
        raise NotApplicable(
            f"what groups cost needs both orders, and the adjacency is {run.adjacency}", "use --adjacency add-remove",
            parameters=("group_size",),
        )  # fmt: skip
