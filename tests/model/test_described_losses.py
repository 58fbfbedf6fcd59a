"""A loss of the catalogue and what is said of it beside."""

from typing import Any

import pytest

from dpcalc import SpecError, compare

RUN: dict[str, Any] = {
    "algorithm": "pnsgd", "records": 1000, "batch_size": 10, "index": 1, "noise_std": 0.05, "step_size": 0.5,
    "delta": 1e-5, "feature_bound": 1.0,
}  # fmt: skip


@pytest.mark.parametrize("name", ["hinge", "absolute"])
@pytest.mark.parametrize("clip", [{}, {"clip": 1.0}])
@pytest.mark.parametrize(
    "said", [{"smoothness": 1.0}, {"loss_class": "convex-smooth"}, {"loss_class": "smooth", "smoothness": 1.0}]
)
def test_a_loss_with_corners_is_not_taken_as_smooth(name: str, clip: dict[str, Any], said: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="is not smooth"):
        compare(**RUN, loss=name, **clip, **said)


def test_less_than_what_a_loss_is_may_be_said() -> None:
    alone, said = compare(**RUN, loss="hinge"), compare(**RUN, loss="hinge", loss_class="lipschitz")
    assert said.cases[0].best.value >= alone.cases[0].best.value
