"""Sums over the positions that a record may have: of products, of recursions and of shift bounds.

Each function returns ln(e_m + ... + e_(m+l-1)) for l ``terms`` with m steps ``behind``, where every term is followed by
one more step of reach ``extra`` ("none": by no further step; None: by one of unbounded reach).
"""

from __future__ import annotations

from flint import arb

from dpcalc.certify.numerics import sums
from dpcalc.certify.numerics.balls import infinite, least, log, log_sum, mixture
from dpcalc.certify.numerics.gaussian import density, log_delta, log_step, mills, upper_tail
from dpcalc.certify.runs.divergence import Pass, product_sum, shrunk, total_of
from dpcalc.model.quantities import Noise


def product_left(run: Pass, terms: int, behind: int, extra: arb | str | None) -> arb:
    """Return the sum for products."""
    log_sum_ = product_sum(run, terms)
    if infinite(log_sum_):
        return log_sum_
    if behind:
        log_b = log_step(run.noise, run.epsilon, run.following)
        log_sum_ = log_b if infinite(log_b) else log_sum_ + behind * log_b
    if isinstance(extra, str) or infinite(log_sum_):
        return log_sum_
    more = log_step(run.noise, run.epsilon, extra)
    return more if infinite(more) else log_sum_ + more


def walked_left(run: Pass, terms: int, behind: int, extra: arb | str | None) -> arb:
    """Return the sum for the recursions."""
    if isinstance(extra, str):
        return total_of(run, terms, first=behind)
    return total_of(run, terms, weight=lambda log_e: log_step(run.noise, shrunk(run.epsilon, log_e), extra))


def positions_left(run: Pass, terms: int, behind: int, extra: arb | str | None) -> arb:
    """Return the sum for the Gaussian shift bound with 1-Lipschitz maps."""
    first = 1 + behind if isinstance(extra, str) else 2
    return log(sums.hockey_sticks(run.epsilon, run.own, terms + first - 1, first))


def hybrid_left(run: Pass, terms: int, behind: int, extra: arb | str | None) -> arb:
    """Return the least of the sums that apply."""
    walked = walked_left(run, terms, behind, extra)
    if not run.level or infinite(walked):
        return walked
    shifted = positions_left if run.noise == Noise.GAUSSIAN else laplace_left
    return walked.min(shifted(run, terms, behind, extra))


def laplace_left(run: Pass, terms: int, behind: int, extra: arb | str | None) -> arb:
    """Return the sum for the Laplace shift bounds, which make no use of one step behind the last.

    What is left of a record falls with every step. Behind more steps the last terms are therefore no more than their
    share of all that would stand there in their place, and none is more than the first.
    """
    if behind <= 1:
        return _laplace_sum(run, terms)
    share = _laplace_sum(run, terms + behind) + (arb(terms) / (terms + behind)).log()
    return least(share, mixture(run.own, behind, run.epsilon) + arb(terms).log())


def _laplace_sum(run: Pass, terms: int) -> arb:
    """Return the sum of all terms."""
    own = log_step(Noise.LAPLACE, run.epsilon, run.own)
    if terms > 8:
        integral = log_integral(run.epsilon, run.own / arb(2).sqrt(), arb(terms))
        # At extreme ratios the record's own noise alone counts, which hides it in every position.
        return integral if arb("1.000001e-90") < run.own < arb("1e90") else least(integral, own + arb(terms).log())
    return log_sum(*(least(own, mixture(run.own, k, run.epsilon)) for k in range(terms)))


def log_integral(epsilon: arb, ratio: arb, upper: arb) -> arb:
    """Return ln of the integral of delta_G(epsilon, ratio/sqrt g) over 0 < g < upper."""
    mu = ratio / upper.sqrt()
    delta = log_delta(epsilon, mu).exp()
    if epsilon.is_zero():
        b = ratio * ratio / 8
        part = 2 * upper.sqrt() * (-b / upper).exp() - 2 * (arb.pi() * b).sqrt() * (b / upper).sqrt().erfc()
        return (upper * delta + ratio / (2 * (2 * arb.pi()).sqrt()) * part).log()
    x = epsilon / mu - mu / 2
    rest = ratio * ratio / (2 * epsilon) * (upper_tail(-x) - density(x) * mills(x + mu))
    return (upper * delta + rest).log()


def share(value: arb, n: int) -> arb:
    """Return ln of a sum of ``n`` equally likely cases from ln of the sum."""
    return value if infinite(value) else value - arb(n).log()
