"""What small runs really tell: proven lower values of delta for every algorithm, and how near the bounds come to them.

`python -m tests.truth` asks `compare` about every run of `tests.truth.runs`, checks that no guarantee is below the
truth, and prints the table of docs/tightness.md (``--write FILE`` writes it).

A lower value is that of certain losses, which satisfy the assumptions exactly (their constants are binary fractions),
and never rests on an estimate of an error:

* Sums and affine maps: mu^2 is a rational number, delta is evaluated in ball arithmetic, and rounded down.
* Runs on an interval with Gaussian noise: Gauss-Legendre quadrature of functions that are analytic on every panel;
  `tests.truth.lower.quadrature_error` bounds its error, which is subtracted. What is left is the rounding of sums of
  positive numbers, far below the 1e-9 by which `hockey_stick` discounts every mass.
* Runs on an interval with Laplace noise and affine maps: the state is rounded to cells; `rounding_error` bounds what
  that changes in the probability of any event, and it is subtracted.
* Mixtures that are integrated or put on a lattice: any event gives a lower value, and losses are rounded down.

Nothing below this package is imported by it but `dpcalc`'s public functions, to ask; no law uses them.
"""
