"""Certificates at another epsilon, by the cuts that were chosen at the first."""

from types import SimpleNamespace
from typing import Any, cast

from dpcalc.theorems.hidden.position_certificates import Cell, Mixture
from dpcalc.theorems.hidden.positions import Places


class Falling:
    """Distances that fall with the position."""

    def own(self, position: Any, size: Any) -> Any:
        return size / position


def test_a_cut_whose_level_is_out_of_reach_is_no_choice() -> None:
    """Other cuts that were tried have levels; the best one has none, and the known position stands in for it."""
    out_of_reach = SimpleNamespace(best=0, levels={1: 2.0}, least=0.0)
    chosen = cast(Any, (SimpleNamespace(at=lambda epsilon, follow: (out_of_reach, iter(()))),))
    places = Places(classes=((1, 4, 4, 1.0),))
    total, here = Mixture(places, [Cell(0.0, cast(Any, Falling()))])._by_same_cuts(chosen, 1.0, True)
    assert here == (None,)
    assert total < 0.0
