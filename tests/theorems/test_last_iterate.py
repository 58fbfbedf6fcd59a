"""The heuristic for the last iterate: what linear losses reveal, by sums over the binomial law, and what others do."""

import json
import math
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.optimize import minimize_scalar
from scipy.stats import binom, norm

from dpcalc.cli.main import cli
from dpcalc.engine.evaluate import guarantee_of
from dpcalc.errors import NotApplicable
from dpcalc.model.run import describe
from dpcalc.theorems.record import lookup
from tests.oracles import draws, log_uniform

ID = "sampled.last_iterate_heuristic"
TOLD = {"sampling": "poisson", "adjacency": "add-remove", "release": "last"}


def delta(epsilon: float, **told: Any) -> float:
    found = guarantee_of(lookup(ID), describe("dp-sgd", {**TOLD, **told}))
    return math.exp(found.log_delta(epsilon).value)


def summed(steps: int, rate: float, noise: float, epsilon: float) -> tuple[float, float]:
    """delta of a record that goes and of one that comes: all above one place is the best event, and all below it."""
    counts = np.arange(steps + 1)
    weights, spread = binom.pmf(counts, steps, rate), noise * math.sqrt(steps)

    def gains(x: Any) -> tuple[Any, Any]:
        u = (np.atleast_1d(x)[:, None] - counts) / spread
        other = np.atleast_1d(x) / spread
        above, below = norm.sf(u) @ weights, norm.cdf(u) @ weights
        return above - math.exp(epsilon) * norm.sf(other), norm.cdf(other) - math.exp(epsilon) * below

    def best(which: int) -> float:
        places = np.linspace(-12.0 * spread, steps + 12.0 * spread, 801)
        near, width = places[int(np.argmax(gains(places)[which]))], places[1] - places[0]
        found = minimize_scalar(lambda x: -gains(x)[which][0], bounds=(near - width, near + width), method="bounded")
        return max(0.0, -float(found.fun))

    return best(0), best(1)


def test_the_heuristic_is_what_linear_losses_reveal() -> None:
    for r in draws("the last iterate of linear losses", 12, cost=30):
        steps, rate, noise = r.choice((1, 2, 7, 60)), r.uniform(0.02, 0.98), log_uniform(r, 0.3, 4.0)
        told = {"steps": steps, "sample_rate": rate, "noise_multiplier": noise}
        for epsilon in (0.0, r.uniform(0.1, 3.0)):
            removed, added = summed(steps, rate, noise, epsilon)
            for adjacency, truth in (("remove", removed), ("add", added), ("zero-out", max(removed, added))):
                found = delta(epsilon, **told, adjacency=adjacency)
                assert found <= truth * (1.0 + 1e-6) + 1e-12, (told, adjacency, epsilon)
                if truth > 1e-8:
                    assert found >= truth * (1.0 - 1e-4), (told, adjacency, epsilon)


def test_with_rate_one_it_is_full_batches() -> None:
    """Then every step has the record, and the sum of T steps is a Gaussian mechanism of mu = sqrt(T)/z."""
    exact = norm.cdf(1.0 - 0.5) - math.e * norm.cdf(-1.0 - 0.5)
    assert delta(1.0, steps=16, sample_rate=1.0, noise_multiplier=2.0) == pytest.approx(exact, rel=1e-9)


def test_it_is_no_guarantee() -> None:
    """The gradients of very many other records may tell, in other coordinates, where the first iterate was.

    Then both sums can be read off the last iterate. Here no more is used than whether the first one exceeds c.
    """
    rate, noise, epsilon = 0.1, 0.5, 1.0
    c = np.array([0.8, 1.25])[:, None]
    y = np.linspace(-5.0, 6.0, 4001)
    p = (1.0 - rate) * norm.pdf(y, scale=noise) + rate * norm.pdf(y, 1.0, noise)
    q = norm.pdf(y, scale=noise)
    truth = np.zeros(len(c))
    for exceeds in (False, True):
        tail = norm.sf if exceeds else norm.cdf
        said_q = tail(c / noise)
        said_p = (1.0 - rate) * said_q + rate * tail((c - 1.0) / noise)
        truth += np.maximum(0.0, said_p * p - math.exp(epsilon) * said_q * q).sum(axis=1) * (y[1] - y[0])
    linear = max(summed(2, rate, noise, epsilon))
    assert delta(epsilon, steps=2, sample_rate=rate, noise_multiplier=noise) <= linear * (1.0 + 1e-9)
    assert truth.max() == pytest.approx(0.0379, abs=1e-4)
    assert truth.max() > 1.8 * linear


def test_it_is_below_composition_and_never_the_answer() -> None:
    for steps, rate, noise in ((1, 0.01, 1.0), (1, 0.5, 0.7), (30, 0.01, 0.7), (30, 0.5, 3.0)):
        arguments = [
            "compare", "--algorithm", "dp-sgd", "--steps", f"{steps}", "--sample-rate", f"{rate}",
            "--sampling", "poisson", "--noise-multiplier", f"{noise}", "--adjacency", "add-remove",
            "--release", "last", "-d", "1e-6",
            "--format", "json",
        ]  # fmt: skip
        [case] = json.loads(CliRunner().invoke(cli, arguments).output)["cases"]
        rows = {row["bound"]: row for row in case["results"]}
        heuristic, proved = rows[ID], rows["sampled.poisson"]
        assert heuristic["kind"] == "heuristic"
        assert not heuristic["best"]
        assert proved["best"]
        assert heuristic["value"] <= proved["value"]
        assert "heuristic" in heuristic["assumes"][0]
        assert not case.get("tightness")


def test_no_gate_passes_by_it() -> None:
    """Composition gives epsilon 2.584 and the heuristic 1.843."""
    told = [
        "dp-sgd",
        "-n",
        "1000",
        "--batch-size",
        "10",
        "--epochs",
        "20",
        "--sampling",
        "poisson",
        "--release",
        "last",
    ]
    told += ["--adjacency", "add-remove", "--noise-multiplier", "1", "-d", "1e-5", "--assert", "epsilon<=2"]
    assert CliRunner().invoke(cli, told).exit_code == 1


@pytest.mark.parametrize(
    ("changes", "because"),
    [
        ({"adjacency": "replace-one"}, "comes or goes"),
        ({"sampling": "shuffle"}, "poisson"),
        ({"release": None}, "last iterate"),
        ({"regularisation": 0.1}, "forgets"),
        ({"diameter": 1.0}, "forgets"),
        ({"group_size": 2}, "heuristic"),
    ],
)
def test_what_it_is_not_about(changes: dict[str, Any], because: str) -> None:
    told = {**TOLD, "records": 100, "batch_size": 10, "steps": 5, "noise_multiplier": 1.0, **changes}
    run = describe("dp-sgd", {name: value for name, value in told.items() if value is not None})
    with pytest.raises(NotApplicable, match=because):
        guarantee_of(lookup(ID), run)


def test_nothing_is_solved_with_it() -> None:
    told = ["dp-sgd", "--sample-rate", "0.1", "--steps", "10", "--sampling", "poisson", "--release", "last"]
    told += ["--adjacency", "add-remove", "-e", "1", "-d", "1e-5", "--format", "json"]
    [case] = json.loads(CliRunner().invoke(cli, told).output)["cases"]
    assert {row["bound"] for row in case["results"]} == {"sampled.poisson"}
    assert any(row["bound"] == ID and "no run is chosen" in row["because"] for row in case["not_applicable"])


def test_it_is_explained_as_what_it_is() -> None:
    told = ["explain", ID, "--algorithm", "dp-sgd", "--sample-rate", "0.1", "--steps", "10", "--sampling", "poisson"]
    told += ["--release", "last", "--adjacency", "add-remove", "--noise-multiplier", "1", "-d", "1e-5"]
    text = CliRunner().invoke(cli, told).output
    for part in ("epsilon about ", "never a guarantee", "note: Exact for linear losses", "steinke2025"):
        assert part in text
    assert "epsilon <=" not in text
