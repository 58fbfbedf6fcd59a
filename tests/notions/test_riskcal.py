"""What an attacker can do, against riskcal 1.5.1 (Kulynych et al.) and against brute force where that is not exact.

The values were printed by `riskcal.analysis.conversions` and, for sampled steps, by `riskcal.calibration.dpsgd` with a
grid of 1e-4 (on dp_accounting 0.6.0); rates of true positives are 1 - beta.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import dpcalc
from dpcalc.notions import pld
from dpcalc.notions.guarantee import Composition

FPRS = (0.001, 0.01, 0.1)


@pytest.mark.parametrize(
    ("known", "advantage", "tprs"),
    [
        ({"mu": 0.3}, 0.119235384740485, (0.0026335117626841154, 0.02136457428005112, 0.16316040936954068)),
        ({"mu": 1.0}, 0.38292492254802624, (0.01829846840565663, 0.09236224807369409, 0.389143691645361)),
        ({"mu": 2.5}, 0.7887004526662893, (0.27751745799674765, 0.5689305681423249, 0.8884731955196588)),
        (
            {"epsilon": 0.5, "delta": 1e-6}, 0.24491941748504675,
            (0.0016497212707001774, 0.016488212707001293, 0.1648731270700129),
        ),
        (
            {"epsilon": 1, "delta": 1e-5}, 0.4621225360884372,
            (0.002728281828458967, 0.027192818284590414, 0.27183818284590444),
        ),
        (
            {"epsilon": 3, "delta": 1e-3}, 0.9052431053912215,
            (0.02108553692318771, 0.20185536923187675, 0.9552414255372903),
        ),
    ],
)  # fmt: skip
def test_of_a_known_guarantee(known: dict[str, Any], advantage: float, tprs: tuple[float, ...]) -> None:
    """Both are exact to their rounding, which riskcal's is to about 1e-14 of 1."""
    risk = dpcalc.risk(**known, fpr=FPRS).cases[0].risk
    assert risk is not None
    assert -1e-13 <= risk["advantage"]["value"] / advantage - 1.0 <= 1e-12
    for row, tpr in zip(risk["tpr"], tprs, strict=True):
        assert -1e-12 <= row["value"] / tpr - 1.0 <= 1e-11


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("rho", "advantage", "tprs"),
    [
        (0.05, 0.1574548055371514, (0.024796780449692357, 0.18472015422245336)),
        (0.5, 0.47909842248318557, (0.12459521049087674, 0.4837283224611406)),
    ],
)
def test_of_concentrated_privacy(rho: float, advantage: float, tprs: tuple[float, ...]) -> None:
    """riskcal searches a grid of orders, and its rates of true positives lie up to 5e-5 above the least."""
    risk = dpcalc.risk(rho=rho, fpr=FPRS[1:]).cases[0].risk
    assert risk is not None
    assert risk["advantage"]["value"] == pytest.approx(advantage, rel=1e-6)
    for row, tpr in zip(risk["tpr"], tprs, strict=True):
        assert -1e-4 <= row["value"] / tpr - 1.0 <= 1e-6


def best_tprs(noise: float, rate: float, steps: int) -> list[float]:
    """Return the rates of the best tests of sampled steps with a record against those without, by Fourier transforms.

    Each step's loss is rounded to the nearest of a fine grid.
    """
    mu, width = 1.0 / noise, 1e-4
    low = math.floor(math.log1p(-rate) / width)
    ends = (low - 0.5 + np.arange(int(9.0 / width) - low)) * width
    inner = (np.exp(ends) - (1.0 - rate)) / rate
    x = np.where(inner > 0.0, (np.log(np.maximum(inner, 1e-300)) + 0.5 * mu * mu) / mu, -np.inf)
    laws = np.diff((1.0 - rate) * ndtr(x) + rate * ndtr(x - mu)), np.diff(ndtr(x))
    size = 1 << math.ceil(math.log2(len(ends) * steps))
    summed = (np.maximum(np.fft.irfft(np.fft.rfft(law, size) ** steps, size), 0.0) for law in laws)
    true, false = (np.cumsum(law[::-1]) for law in summed)
    return [float(np.interp(fpr, false, true)) for fpr in FPRS]


@pytest.mark.parametrize(
    ("noise", "rate", "printed"),
    [
        (1.0, 0.01, (0.0011729661461877816, 0.010823605275102177, 0.10289142369355175)),
        (0.8, 0.1, (0.004186636716809633, 0.023088546024783385, 0.13874146101079543)),
        (2.0, 0.05, (0.0011897706419307097, 0.011194940184832247, 0.1058619483422879)),
    ],
)
def test_of_one_sampled_step(noise: float, rate: float, printed: tuple[float, ...]) -> None:
    """(1 - q) a + q Q(z(a) - mu), the best test of a mixture: what riskcal prints is a hair below it."""
    pair = pld.removed(mu=1.0 / noise, rate=rate)
    curve = Composition([(pair, 1)], [(pld.exchanged(pair), 1)]).trade_off()
    from mpmath import mp

    with mp.workdps(30):
        for fpr, told in zip(FPRS, printed, strict=True):
            z = mp.sqrt(2) * mp.erfinv(1 - 2 * mp.mpf(repr(fpr)))
            exact = float((1 - mp.mpf(rate)) * mp.mpf(repr(fpr)) + mp.mpf(rate) * mp.ncdf(1 / mp.mpf(noise) - z))
            assert told < exact <= curve.tpr(fpr) <= exact * (1.0 + 1e-11)


def test_of_several_sampled_steps() -> None:
    """The true positives that riskcal prints lie up to 1.6e-4 of themselves below those of the best test."""
    pair = pld.removed(mu=1.25, rate=0.1)
    curve = Composition([(pair, 10)], [(pld.exchanged(pair), 10)]).trade_off()
    assert curve.advantage() == pytest.approx(0.18548273764974182, rel=1e-5)
    printed = (0.010865826186897132, 0.05162272066465312, 0.23810367352683515)
    for fpr, told, best in zip(FPRS, printed, best_tprs(0.8, 0.1, 10), strict=True):
        assert told <= best * (1.0 + 1e-6)
        assert best * (1.0 - 1e-5) <= curve.tpr(fpr) <= best * (1.0 + 1e-4)
