"""Theorems that compose by the law of the privacy loss: monotone over many decades, up to the errors they declare."""

from collections.abc import Callable
from typing import Any

import pytest

from dpcalc.notions.guarantee import Composition
from dpcalc.notions.notion import Answer
from dpcalc.theorems.record import Theorem, all_bounds
from tests.formulas import run_of
from tests.oracles import draws, log_uniform
from tests.theorems.test_registry import moves, parameters

COMPOSITIONS = [bound for bound in all_bounds().values() if bound.gives is Composition]
RISING = ("steps", "epochs", "lipschitz", "sensitivity", "diameter", "displacement")
FALLING = ("noise_std", "scale", "records")
SLOWEST = ("sampled.with_replacement", "sampled.balls_in_bins")
WITH_ATOMS = ("expanding.laplace", "multi_epoch.laplace", "shuffled_epochs.once_laplace", "sampled.with_replacement")
"""Compositions of Laplace laws, whose atoms are split, and of a curve with kinks: far out no bound on what the lattice
adds is known."""


Asked = Callable[..., Answer]
"""values and log_delta or epsilon -> the answer; what was asked before is remembered."""


def asking(bound: Theorem) -> Asked:
    known: dict[str, Answer] = {}

    def answer(values: dict[str, Any], **asked: float) -> Answer:
        key = repr((values, asked))
        if key not in known:
            found = bound.prove(run_of(values))
            assert isinstance(found, Composition)
            known[key] = found.epsilon(**asked) if "log_delta" in asked else found.log_delta(**asked)
        return known[key]

    return answer


def check(bound: Theorem, answer: Asked, values: dict[str, Any], more: dict[str, Any], log_delta: float) -> None:
    """What loses more privacy has a larger delta at every epsilon, up to what the answers say of themselves."""
    epsilon = answer(values, log_delta=log_delta).value
    if not 0.0 < epsilon < 1e3:
        return
    less, greater = (answer(v, epsilon=epsilon) for v in (values, more))
    note = f"{bound.id}: {values} -> {more} at {epsilon!r}: {less}, {greater}"
    assert greater.value >= less.value - less.rounding - less.lattice - 1e-12 * abs(less.value), note
    assert greater.value >= less.value - 2e-3, note
    if bound.id not in WITH_ATOMS:
        assert less.rounding + less.lattice < 0.5, note


def sweep(bound: Theorem, cases: int, names: tuple[str, ...]) -> None:
    for r in draws(f"decades {bound.id}", cases, cost=20000):
        values = parameters(bound, r)
        values.update(records=round(log_uniform(r, 10, 1e9)), index=1, batch_size=1, last_batch="own")
        values.update(steps=round(log_uniform(r, 1, 1e6)), epochs=round(log_uniform(r, 1, 1e6)))
        values.update(noise_std=values["lipschitz"] * log_uniform(r, 0.1, 100.0))
        log_delta, answer = -log_uniform(r, 3.0, 300.0), asking(bound)
        for name in names:
            if name not in bound.parameters or not moves(bound, name, values):
                continue
            if name == "records" and "index" in bound.parameters:
                continue
            times = r.choice((2, 10, 1000)) if isinstance(values[name], int) else r.choice((1.001, 1.1, 10.0))
            more = {**values, name: values[name] * times}
            check(bound, answer, *((values, more) if name in RISING else (more, values)), log_delta)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "bound",
    [
        pytest.param(bound, id=bound.id, marks=pytest.mark.campaign if bound.id in SLOWEST else ())
        for bound in COMPOSITIONS
    ],
)
def test_monotone_over_decades(bound: Theorem) -> None:
    sweep(bound, 1, ("steps", "epochs", "noise_std"))


@pytest.mark.campaign
@pytest.mark.parametrize("bound", COMPOSITIONS, ids=lambda bound: bound.id)
def test_monotone_over_decades_in_every_parameter(bound: Theorem) -> None:
    sweep(bound, 1 if bound.slow else 2, RISING + FALLING)
