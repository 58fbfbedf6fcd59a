"""A run in one reading: the record's batch, its signal over the noise, how far a step can take two points apart."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from flint import arb, fmpq

from dpcalc.certify.numerics.balls import Inputs, OutOfReach, least, square
from dpcalc.model.quantities import LastBatch, LossClass

KNOWN, HIDDEN, WORST = "known position", "hidden position", "worst position"
COMPOSED, SPLIT = "composed", "split noise"
"""Theorems, by their names in certificates."""

NO_CERTIFICATE = "the answer has no certificate"
OF_ANOTHER_RUN = "the certificate is of another run"
CHANGED = "the certificate was changed after it was made"


class RunInputs(Inputs):
    """The parameters of a run, and what follows from them."""

    def sizes(self) -> list[tuple[int, int, int]]:
        """Return (number of batches, records in each, divisor of their sums) of a pass, in the order of time."""
        n, b, last = self.records, self.batch_size, self.last_batch
        if b >= n:
            return [(1, n, b if last == LastBatch.NOMINAL else n)]
        full, left = divmod(n, b)
        if left == 0 or last == LastBatch.DROP:
            return [(full, b, b)]
        if last == LastBatch.BALANCED:
            count = full + 1
            small, large = count - n % count, n % count
            whole = n // count
            return [(small, whole, whole)] + [(large, whole + 1, whole + 1)] * (large > 0)
        short = (1, left, b if last == LastBatch.NOMINAL else left)
        return [short, (full, b, b)] if last == LastBatch.FRONT else [(full, b, b), short]

    def period(self) -> int:
        """Return the number of steps of a pass."""
        return sum(count for count, _, _ in self.sizes())

    def batch(self) -> tuple[int, int]:
        """Return (what the sum of the record's batch is divided by, steps from it to the last, itself included).

        Raises:
            OutOfReach: the record is dropped.
        """
        before, steps = 0, 0
        for count, size, divisor in self.sizes():
            place = (self.index - 1 - before) // size
            if place < count:
                return divisor, self.period() - steps - place
            before, steps = before + count * size, steps + count
        raise OutOfReach("a record that every pass drops")

    def batch_behind(self) -> tuple[int, int]:
        """Return (what the sum of the record's batch is divided by, steps behind it)."""
        divisor, tail = self.batch()
        return divisor, tail - 1

    def ratio(self) -> tuple[arb, int]:
        """Return (Delta/(b sigma), steps to the end)."""
        size, steps = self.batch()
        return self.quotient(["sensitivity"], [size, "noise_std"]), steps

    def contraction_factor(self) -> arb:
        """Return c = max(|1 - eta m|, |1 - eta beta|), above 1 for losses that are weakly convex.

        Raises:
            OutOfReach: it is above 1 for convex losses, if by rounding alone: 0.2 as a double is more than the decimal,
                and 10 * 0.2 above 2.
        """
        eta = self.exact("step_size")
        c = max(abs(1 - eta * self.exact("strong_convexity")), abs(1 - eta * self.exact("smoothness")))
        if c > 1 and self.exact("strong_convexity") >= 0:
            raise OutOfReach("the step size is above 2/smoothness, in this reading of the two")
        return arb(c)

    def certified(self) -> Mapping[str, Any]:
        """Return the certificate of the answer.

        Raises:
            OutOfReach: it has none, or the digest is of another one.
        """
        certificate: Mapping[str, Any] | None = self.certificate
        if certificate is None:
            raise OutOfReach(NO_CERTIFICATE)
        fields = {name: value for name, value in certificate.items() if name != "digest"}
        if certificate.get("digest") != f"{zlib.crc32(repr(fields).encode()):08x}":
            raise OutOfReach(CHANGED)
        return fields

    def displacement_bound(self) -> arb | None:
        """Return the least bound on how far a step takes two points of the domain apart, over the diameter.

        None where no bound applies, or where the domain is unbounded.
        """
        if self.diameter is None:
            return None
        factors: list[arb] = []
        kind = self.loss_class or LossClass.CONVEX_SMOOTH
        lipschitz = self._gradient_bound()
        if lipschitz is not None:
            factors.append(1 + 2 * self.step_size * lipschitz / self.diameter)
            if (bent := self.bent(lipschitz)) is not None:
                factors.append((bent[0] + square(bent[1] / self.diameter)).sqrt())
        if self.smoothness is not None and kind in (LossClass.SMOOTH, LossClass.CONVEX_SMOOTH):
            factors.append(arb(self.lipschitz_factor()))
        return least(*factors) if factors else None

    def lipschitz_factor(self) -> fmpq:
        """Return the Lipschitz factor of a step's map: max(|1 - eta m|, |1 - eta beta|), m the least curvature."""
        eta, beta = self.exact("step_size"), self.exact("smoothness")
        return max(abs(1 - eta * self.lowest_curvature()), abs(1 - eta * beta))

    def lowest_curvature(self) -> fmpq:
        """Return the least curvature of losses that are smooth: that of convex ones, or -beta or a number above it."""
        convexity = self.exact("strong_convexity")
        if self.loss_class != LossClass.SMOOTH:
            return convexity
        beta = self.exact("smoothness")
        return max(convexity, -beta) if convexity < 0 else -beta

    def bent(self, lipschitz: arb) -> tuple[arb, arb] | None:
        """Return (q, w): a step leaves points z apart at most sqrt(q z^2 + w^2) apart. None where no such are known."""
        eta, smooth = self.exact("step_size"), self.smoothness is not None and not self.exact("regularisation")
        if self.loss_class in (None, LossClass.SMOOTH, LossClass.CONVEX_SMOOTH) and smooth:
            weak, beta = max(-self.lowest_curvature(), fmpq(0)), self.exact("smoothness")
            if eta * (beta - weak) <= 2:
                return None
            width = 4 * square(lipschitz) * eta * (eta - 2 / (beta - weak))
            return arb(1 + 2 * eta * weak * beta / (beta - weak)), width.sqrt()
        weak = -self.exact("strong_convexity")
        if self.loss_class in (LossClass.SMOOTH, LossClass.LIPSCHITZ) and weak <= 0:
            return None
        return arb(1 + 2 * eta * max(weak, fmpq(0))), 2 * eta * lipschitz

    def is_nonexpansive(self) -> bool:
        """Return whether the maps are 1-Lipschitz: convex and smooth losses with eta beta <= 2.

        Raises:
            OutOfReach: eta beta is above 2 by rounding alone: 0.2 as a double is more than the decimal.
        """
        if self.smoothness is None or self.loss_class != LossClass.CONVEX_SMOOTH:
            return False
        product = self.exact("step_size") * self.exact("smoothness")
        if 2 < product <= 2 + fmpq(1, 1 << 49):
            raise OutOfReach("the step size is a little above 2/smoothness, in this reading of the two")
        return bool(product <= 2)

    def _gradient_bound(self) -> arb | None:
        """Return the Lipschitz constant L that bounds a step's displacement; None where there is none.

        It is that of the loss alone where eta lambda <= 1. A longer step on the regulariser reverses directions: the
        bound is then L + lambda R on the whole gradient, in a ball of radius R.
        """
        if self.lipschitz is None or self.exact("step_size") * self.exact("regularisation") <= 1:
            return self.lipschitz
        return None if self.radius is None else self.lipschitz + self.regularisation * self.radius
