"""Sources of random numbers, and the laws of what is drawn."""

import sys
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpcalc.errors import DpcalcError, SpecError
from dpcalc.training.run import kernel

LEAST = 1e-6


def drawn(kind: str, count: int, source: kernel.Source | None = None) -> np.ndarray:
    out = np.empty((count // 10, 10))
    kernel.fill((source or kernel.seeded(12)).generator, kind, out)
    return out


def test_noise_has_the_law_of_scale_one() -> None:
    assert stats.kstest(drawn("gaussian", 200_000).ravel(), stats.norm.cdf).pvalue > LEAST
    values = drawn("laplace", 200_000).ravel()
    assert stats.kstest(values, stats.laplace.cdf).pvalue > LEAST
    # Signs are fair, and say nothing of the sizes or of their neighbours.
    above = values > 0.0
    assert stats.binomtest(int(above.sum()), len(values)).pvalue > LEAST
    assert stats.ks_2samp(values[above], -values[~above]).pvalue > LEAST
    changes = int((above[1:] != above[:-1]).sum())
    assert stats.binomtest(changes, len(values) - 1).pvalue > LEAST


@pytest.mark.parametrize("size", [1, 7, 8, 9, 1001])
def test_laplace_noise_of_any_size(size: int) -> None:
    out = np.zeros(size)
    kernel.fill(kernel.seeded(1).generator, "laplace", out)
    assert np.all(out != 0.0)
    assert np.all(np.isfinite(out))


def test_a_seeded_source_repeats_itself_and_is_not_private() -> None:
    first, again, other = (drawn("gaussian", 50, kernel.seeded(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.all(first != other)
    source = kernel.seeded(1)
    assert not source.private
    assert "not private" in source.label


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(SpecError, match="seed is -1"):
        kernel.seeded(-1)


def test_the_default_never_repeats_itself_and_is_private() -> None:
    one, two = kernel.from_os(), kernel.from_os()
    assert one.private
    assert np.all(drawn("gaussian", 50, one) != drawn("gaussian", 50, two))


def test_the_secure_source_is_keyed_by_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    randomgen = pytest.importorskip("randomgen")
    asked: list[int] = []
    keys: list[Any] = []
    real, counter = kernel.os.urandom, randomgen.AESCounter
    monkeypatch.setattr(kernel.os, "urandom", lambda count: asked.append(count) or real(count))
    monkeypatch.setattr(randomgen, "AESCounter", lambda **given: keys.append(given["key"]) or counter(**given))
    one, two = kernel.secure(), kernel.secure()
    assert asked == [16, 16]
    assert len(set(keys)) == 2
    assert all(0 <= key < 2**128 for key in keys)
    assert one.private
    assert np.all(drawn("gaussian", 50, one) != drawn("gaussian", 50, two))
    assert stats.kstest(drawn("gaussian", 100_000, one).ravel(), stats.norm.cdf).pvalue > LEAST


def test_without_randomgen_the_secure_source_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "randomgen", None)
    with pytest.raises(DpcalcError, match="randomgen") as caught:
        kernel.secure()
    assert caught.value.hint == "pip install randomgen"
