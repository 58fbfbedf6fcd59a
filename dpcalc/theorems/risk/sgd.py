"""SGD on Hölder losses: the terms of the excess risk of its average iterate, each rounded up.

The run starts at w_1 = 0, takes T steps on single records drawn with replacement, and projects onto a domain in the
ball of radius R. The average is (w_1 + ... + w_T)/T. On two data sets that differ in one record, the averages differ by
a distance that depends on how often that record is drawn (`holder`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dpcalc.errors import NotApplicable
from dpcalc.numerics import normal
from dpcalc.numerics.floats import down, up
from dpcalc.theorems.holder import holder
from dpcalc.theorems.risk import generalisation

_LN2 = 0.6931471805599453


class Sgd(NamedTuple):
    """The steps, and the constants of the losses.

    A ``log_chance`` is ln of the probability that a bound may fail.

    Attributes:
        records, steps, dimension: n, T and d.
        radius: R of a ball around 0 that holds the domain.
        gradient: G, a bound on the gradient on the domain.
        holder_exponent, holder_constant: alpha and L.
        loss_range: B, with losses in [0, B] on the domain; inf if unknown.
    """

    records: int
    steps: int
    dimension: int
    radius: float
    gradient: float
    holder_exponent: float
    holder_constant: float
    loss_range: float = math.inf

    # --- step sizes ---

    @property
    def largest_step(self) -> float:
        """The largest allowed step size: 2/L, rounded down, if alpha = 1; else inf."""
        return down(2.0 / self.holder_constant, 4.0) if self.holder_exponent == 1.0 else math.inf

    def best_step(self, noise_std: float) -> float:
        """Return R/sqrt(2 T kappa), kappa = (G^2 + d sigma^2)/2 + G^2 (T-1)/n [+ (2/3) G L sqrt(T) at alpha = 0].

        It is the best step size for the expected risk with noise sigma in every step if alpha is 0 or 1, and otherwise
        a starting point for a search. It is at most 2/L if alpha = 1.
        """
        square = self.gradient**2
        kappa = 0.5 * (square + self.dimension * noise_std**2) + square * (self.steps - 1) / self.records
        if self.holder_exponent == 0.0:
            most = min(self.holder_constant, 2.0 * self.gradient)
            kappa += 2.0 / 3.0 * self.gradient * most * math.sqrt(self.steps)
        return min(self.radius / math.sqrt(2.0 * self.steps * kappa), self.largest_step)

    # --- one step ---

    def use(self, step_size: float) -> float:
        """Return b = 2 eta G, the most that a hit moves two runs apart."""
        return up(2.0 * step_size * self.gradient, 2.0)

    def drift(self, step_size: float) -> float:
        """Return a: a step without a hit adds at most a^2 to the squared distance."""
        return holder.drift(
            holder_exponent=self.holder_exponent, holder_constant=self.holder_constant, step_size=step_size
        )

    # --- risk on the data ---

    def regret(self, step_size: float) -> float:
        """Return R^2/(2 eta T) + eta G^2/2: the regret of projected SGD, per step, from 0 to a point within R.

        >>> run = Sgd(1, 100, 1, radius=1.0, gradient=1.0, holder_exponent=1.0, holder_constant=1.0)
        >>> run.regret(0.1) < 0.1 + 1e-15
        True
        """
        start = self.radius * self.radius / (2.0 * step_size * self.steps)
        return up(start + 0.5 * step_size * self.gradient * self.gradient, 16.0)

    def sampling(self, log_chance: float) -> float:
        """Return min(2 B, 4 G R) sqrt(l/(2T)) + B sqrt(l/(2n)), l = ln(1/chance): Azuma over steps, Hoeffding at w*."""
        per_record = min(2.0 * self.loss_range, 4.0 * self.gradient * self.radius)
        over_steps = per_record * math.sqrt(-log_chance / (2.0 * self.steps))
        return up(over_steps + self.loss_range * math.sqrt(-log_chance / (2.0 * self.records)), 16.0)

    # --- from the data to the population ---

    def expected_gap(self, step_size: float) -> float:
        """Return G (eta G (T - 1)/n + (2/3) a sqrt(T)), the expected gap of population and empirical risk."""
        a = min(self.drift(step_size), self.use(step_size))
        hits = step_size * self.gradient * (self.steps - 1) / self.records
        return up(self.gradient * (hits + 2.0 / 3.0 * a * math.sqrt(self.steps)), 16.0)

    def published_gap(self, step_size: float, log_share: float) -> float:
        """Return the gap by Theorem 7's stability with published constants; it takes three shares of the chance."""
        apart = holder.stability_published(
            records=self.records, steps=self.steps, step_size=step_size, holder_exponent=self.holder_exponent,
            holder_constant=self.holder_constant, gradient=self.gradient,
            log_chance=holder.log_each(log_share, self.records),
        )  # fmt: skip
        return generalisation.gap_published(
            stability=up(self.gradient * apart, 2.0), loss_range=self.loss_range, records=self.records,
            log_chance=down(log_share + _LN2, 2.0),
        )  # fmt: skip

    def uniform_gap(self, step_size: float, log_share: float) -> float:
        """Return the gap by the quantile of hits for every record; it takes three shares of the chance."""
        log_share_of_each = holder.log_each(log_share, self.records)
        hits = holder.hits_quantile(records=self.records, steps=self.steps, log_chance=log_share_of_each)
        apart = holder.after_hits(
            hits=hits, steps=self.steps, use=self.use(step_size), drift=self.drift(step_size)
        )  # fmt: skip
        return generalisation.gap_uniform(
            stability=up(self.gradient * apart, 2.0), loss_range=self.loss_range, records=self.records,
            log_share=log_share,
        )  # fmt: skip

    def gap_by_index(self, step_size: float, log_share: float) -> float:
        """Return the gap by each record's own hits; it takes three shares of the chance."""
        return generalisation.gap_by_index(
            gradient=self.gradient, use=self.use(step_size), drift=self.drift(step_size), loss_range=self.loss_range,
            records=self.records, steps=self.steps, log_share=log_share,
        )  # fmt: skip

    def least_gap(self, step_size: float, log_share: float) -> float:
        """Return the lesser of `gap_by_index` and `uniform_gap`.

        Each fails with at most the given chance, and which one is less does not depend on the data.
        """
        return min(self.gap_by_index(step_size, log_share), self.uniform_gap(step_size, log_share))

    # --- noise in every step ---

    def step_noise_expected(self, step_size: float, noise_std: float) -> float:
        """Return eta d sigma^2/2."""
        return up(0.5 * step_size * self.dimension * noise_std * noise_std, 8.0)

    def step_noise_likely(self, step_size: float, noise_std: float, log_chance: float) -> float:
        """Return (eta sigma^2/(2T)) chi^2_(Td) + sigma (2R + eta G) sqrt(2 l/T), l = ln(1/chance)."""
        square = normal.quantile_up(log_chance, freedom=self.steps * self.dimension)
        reach = 2.0 * self.radius + step_size * self.gradient
        along = noise_std * reach * math.sqrt(2.0 * -log_chance / self.steps)
        return up(0.5 * step_size * noise_std * noise_std * (square / self.steps) + along, 24.0)

    # --- noise on the output ---

    def output_noise_expected(self, noise_std: float) -> float:
        """Return L (d sigma^2)^((1 + alpha)/2)/(1 + alpha), which zero-mean noise adds to the expected risk.

        >>> run = Sgd(1, 1, 20, radius=1.0, gradient=1.0, holder_exponent=0.5, holder_constant=1.5)
        >>> round(run.output_noise_expected(0.1), 12)
        0.299069756244
        """
        return self._curved(math.sqrt(self.dimension) * noise_std)

    def output_noise_likely(self, noise_std: float, log_chance: float) -> float:
        """Return G sigma z + L (sigma^2 chi^2_d)^((1 + alpha)/2)/(1 + alpha), each quantile at half the chance.

        The linear term of the noise is one normal variable: it does not grow with d.

        >>> run = Sgd(1, 1, 20, radius=1.0, gradient=1.0, holder_exponent=1.0, holder_constant=0.25)
        >>> round(run.output_noise_likely(0.1, math.log(0.05)), 12)
        0.238708407083
        """
        half = down(log_chance - _LN2, 2.0)
        along = self.gradient * noise_std * normal.normal_quantile_up(half)
        length = noise_std * math.sqrt(normal.quantile_up(half, freedom=self.dimension))
        return up(along + self._curved(up(length, 4.0)), 8.0)

    def output_noise_published(self, noise_std: float, log_chance: float) -> float:
        """Return G x + L x^(1 + alpha), x = sigma sqrt(d) (1 + (8 ln(1/chance)/d)^(1/4)), for comparison (Lemma 22).

        Raises:
            NotApplicable: chance <= e^(-d/8).

        >>> run = Sgd(1, 1, 20, radius=1.0, gradient=1.0, holder_exponent=1.0, holder_constant=0.25)
        >>> round(run.output_noise_published(0.1, math.log(0.1)), 12)
        1.081274156574
        """
        d = self.dimension
        if -log_chance >= d / 8.0:
            raise NotApplicable("Lemma 22 is for chances above e^(-d/8)", "use a larger failure probability")
        x = noise_std * math.sqrt(d) * (1.0 + (8.0 * -log_chance / d) ** 0.25)
        return up(self.gradient * x + (1.0 + self.holder_exponent) * self._curved(up(x, 8.0)), 16.0)

    def _curved(self, length: float) -> float:
        """Return L x^(1 + alpha)/(1 + alpha)."""
        if length <= 0.0:
            return 0.0
        alpha, constant = self.holder_exponent, self.holder_constant
        log_value = (1.0 + alpha) * math.log(length) + math.log(constant) - math.log1p(alpha)
        if log_value > 700.0:
            return math.inf
        return up(math.exp(max(log_value, -745.0)), 32.0 + 16.0 * (abs(math.log(length)) + abs(math.log(constant))))
