"""Definitions say nothing where they know nothing, and the theorem's conditions are part of them."""

from typing import Any

import numpy as np
import pytest

from dpcalc.certify.numerics.balls import OutOfReach, precision
from dpcalc.certify.risk.costs import PRICES
from dpcalc.certify.runs.run import RunInputs
from dpcalc.certify.table import definitions


def test_an_indeterminate_ball_is_not_taken_for_zero() -> None:
    """At 128 bits 1 - 1e-200 is 1, and its logarithm may have either sign."""
    values: dict[str, Any] = {
        "records": 9, "index": 4, "batch_size": 1, "epochs": 2, "sensitivity": 2.0, "scale": 1.0, "step_size": 1.0,
        "smoothness": 1.0, "strong_convexity": 1e-200, "loss_class": "convex-smooth", "noise": "gaussian",
    }  # fmt: skip
    for bits in (128, 1024):
        with precision(bits):
            mu = definitions()["released.cyclic"].formula(RunInputs(values, False))
        assert not mu < 1


def test_the_condition_of_the_harmonic_bound_is_part_of_it() -> None:
    values = {"records": 1000, "tasks": 1, "lipschitz": 1.0, "epsilon": 1.0, "log_delta": -13.8}
    private = PRICES["tasks.harmonic"].private
    assert private is not None
    assert private(RunInputs({**values, "sigma": 1000.0}, False)).is_finite()
    with pytest.raises(OutOfReach, match="2 sigma"):
        private(RunInputs({**values, "sigma": 10.0}, False))


def test_a_double_of_numpy_reads_as_any_other() -> None:
    for typed in (False, True):
        with precision(128):
            assert RunInputs({"a": np.float64(0.1)}, typed).a.overlaps(RunInputs({"a": 0.1}, typed).a)
