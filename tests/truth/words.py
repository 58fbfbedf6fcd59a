"""What docs/tightness.md says beside its numbers."""

HEAD = """\
# How near the bounds come to the truth

Written by `{command}`; a test compares this file with what the command prints.

For every algorithm name, small runs whose truth is worked out by brute force: all orders, stops and batches are
enumerated, and the laws of the iterates are exact, or have proven errors that are subtracted. Each number under "delta
at least" is a proven lower value of delta, rounded down: certain losses really have it. Which losses, and how much of
the description they meet, is said below. Every guarantee of `dpcalc compare` (for chains, `dpcalc shifted`; for
unlearning, `dpcalc unlearn`) is compared with it, for delta at epsilon = {epsilons}, for epsilon at that delta, and,
where runs are sums or affine maps, for Renyi divergences of the orders 2 and 8; the command fails if any is below.

A **share** is the lower value divided by the delta that the bound promises; the best guarantee is in bold. An empty
cell means that the bound does not apply.

* A share of 1.000 says that the bound is attained, to three decimals: no better one holds for all losses that meet
  as much of the description as the losses tried.
* A share below 1 says that the best possible guarantee is somewhere between the lower value and the bound. It does
  not say which of the two is off. Lower values come from a handful of losses, chosen by hand, and from few events.
* The lower value 0 says nothing: none of the losses tried shows a privacy loss above that epsilon.

The losses are of three kinds. On an interval (`--diameter`), records pull with full force to one side or the other,
and the others pull, rest or hold the middle; these satisfy every assumption exactly. Without a domain, linear losses
do too. Losses with a curvature common to all records, also used without a domain, are convex and smooth as described,
and the gradients of two records differ by at most 2 `lipschitz`, but the gradients themselves are not bounded: they
count against bounds that use that difference alone. `tests/truth` has the constructions and the proofs of the errors;
docs/method.md has the bounds.

Shares here are of small runs. They say little of runs with thousands of steps, where `compare` prints the best lower
value that is known beside the guarantee.
"""

GAPS = """\
## Open gaps

What is not known: for every algorithm whose best guarantee is not attained, the run below, without a schedule, in which
the lower value is the smallest share of it, widest gap first. Either side may be the one that gives.
"""

SIZES = """\
### Of realistic runs

For runs of realistic size that `compare` has a lower value for: the epsilon of the best guarantee over the largest
lower value, widest gap first. The command prints both. Where the two are equal, as for `local` and `noisy-gd`, nothing
is open.

| ratio | algorithm | best guarantee | at least | command | what is known of the cause |
|---|---|---|---|---|---|"""

_DOMAIN = (
    "what is cut off at the ends of the interval hides the record as well, and a bound uses a part of that at most"
)
_PLACES = "as pnsgd on an interval, averaged over the record's places"
_PASSES = "as cyclic on an interval, averaged over the record's places"
_RELEASED = "as pnsgd on an interval, averaged over the record's places and composed"
_LAPLACE = "Laplace noise is bounded through Renyi divergences, or step by step as if laws were as far apart as can be"
_COMPOSED = "the bound composes a curve that no single pair of data sets has"
CAUSES = {
    "pnsgd": _DOMAIN,
    "skip": _DOMAIN,
    "stop": _LAPLACE,
    "shuffled": _PLACES,
    "rotation": _LAPLACE,
    "shuffled-stop": _PLACES,
    "online": "the product of coefficients takes the two laws for as far apart as the domain allows, in every step",
    "cyclic": f"{_DOMAIN}; and it remembers earlier passes while it forgets earlier noise, as no losses known do",
    "shuffle-once": _PASSES,
    "rotation-epochs": _PASSES,
    "shuffled-epochs": _PASSES,
    "noisy-sgd": "the bound is composition, which hidden iterates on an interval are far from",
    "noisy-gd": _LAPLACE,
    "cyclic-released": _LAPLACE,
    "shuffle-once-released": _RELEASED,
    "rotation-epochs-released": _RELEASED,
    "shuffled-epochs-released": _RELEASED,
    "noisy-sgd-released": _COMPOSED,
    "noisy-gd-released": _DOMAIN,
    "dp-sgd": "the bound takes all that is seen of fixed batches for the worst, where the sum of the steps is seen",
    "correlated": "the grid of likelihood ratios",
    "dp-sgd-output": "the bound allows for any curvature, and the lower value is of linear losses on single draws",
    "dp-sgd-gradient": _COMPOSED,
    "chain": _LAPLACE,
    "unlearning": "the lower value is of maps that scale; those of a training run have more freedom",
}
"""What is known of the cause of the widest gap of each algorithm."""

NOTES = {
    "pnsgd": """
For the first record of losses that are not known to be strongly convex, linear losses attain the bound, whatever the
batch. For a later record the bound counts the noise from the record's own step on. That is all there is where
`step_size * smoothness` = 1: the step before may forget everything, and the record's own step does not forget (run 3).
With `step_size * smoothness` < 1 no step forgets everything, some noise of earlier steps remains, and the bound does
not use it (runs 2 and 6). On an interval what is cut off at the ends hides the record as well; the recursion of
`contraction.hybrid` uses a part of that. Renyi forms lose in the conversion.
""",
    "skip": """
The bound for each number of records skipped is that of `pnsgd`, and it is loose for late records for the same reason
(run 2).
""",
    "stop": """
As for `pnsgd`, the average over the stopping times is attained for the first record and loose for a late one. The
harmonic and the linear forms are simpler and looser still.
""",
    "local": """
One Gaussian mechanism, and its exact curve. The classic calibration and the Renyi form lose in the conversion.
""",
    "shuffled": """
The average over the record's position, each as in `pnsgd`: attained where `step_size * smoothness` = 1 (run 2), loose
by the noise of earlier steps where it is less. For the secret order of run 6 `hidden_position.shuffled` gains next to
nothing; the lower value there is that of records that all contract alike, and other losses may show more.
""",
    "rotation": """
As `shuffled`: the average over the position.
""",
    "shuffled-stop": """
The average over positions and stopping times; loose as `shuffled` is.
""",
    "online": """
The noise of a stream follows from its schedule, on a domain. The product of coefficients supposes that every later
step finds the two laws as far apart as the domain allows, which none of these losses comes near.
""",
    "cyclic": """
For the first record linear losses attain the bound. For a later one the best affine run must choose between
remembering the earlier passes and forgetting the noise before the record, and the bound grants it both. With strong
convexity a common curvature attains it in run 4. On an interval the shares are small, and both sides may be far off.
""",
    "shuffle-once": """
The average over the position of what `cyclic` has, loose for the same reasons. The bound for a secret order gains
nothing in run 4.
""",
    "rotation-epochs": """
As `shuffle-once`: the average over the position.
""",
    "shuffled-epochs": """
The average over all positions in all passes; loose by the noise of earlier steps, and on an interval.
""",
    "noisy-sgd": """
In these short runs the bound for hidden iterates gives no more than composition. The lower values are those of one
event of a mixture of normal laws (runs 1 and 2) or of an interval.
""",
    "noisy-gd": """
Without a domain linear losses attain composition, and with strong convexity a common curvature attains the bound. On an
interval what is cut off at the ends hides the record as well, which no bound counts.
""",
    "cyclic-released": """
Attained for the first record. For the last, the noise of the steps before its own is not used.
""",
    "shuffle-once-released": """
The average over the position of what `cyclic-released` has.
""",
    "rotation-epochs-released": """
As `shuffle-once-released`: the average over the position.
""",
    "shuffled-epochs-released": """
The passes are composed by the law of the privacy loss; each position is loose as in `shuffled`.
""",
    "noisy-sgd-released": """
The lower values of runs 1 and 2 compose the step that linear losses make. No pair of data sets attains the composed
bound at every epsilon; the fewest steps come nearest (run 3).
""",
    "noisy-gd-released": """
Composition, attained by linear losses; on an interval the ends hide a little more.
""",
    "repeated": """
Optimal composition of what one pass promises is exact, by the definition of the question.
""",
    "dp-sgd": """
Poisson sampling and full batches are exact. A replacement in batches of fixed size composes a curve that no single run
attains, and so does one with replacement (runs 9 and 10), where records that are removed or added are exact up to the
lattice. For balls in bins a replacement is bounded by way of the run without the record; for shuffled batches the bound
takes every record's step as known. Where all phases are alike, `sampled.scheduled` is `sampled.poisson`.
Where only the last iterate is seen (runs 13 to 16), the sum of all steps tells less
than the steps do.
""",
    "correlated": """
Linear losses attain the bounds of public orders and, up to the lattice, those of banded matrices with Poisson batches.
""",
    "dp-sgd-output": """
The bounds hold for losses of any curvature that is allowed; the lower values are those of linear losses on a domain
that is never left, and far below where the record is drawn at random.
""",
    "dp-sgd-gradient": """
As `noisy-sgd-released`. The Renyi forms lose in the bound on the sampled mechanism and in the conversion.
""",
    "chain": """
A shift is attained by maps that are constant before it and scale after it (runs 1 and 2). Several shifts would need
maps that forget the noise of a step but not its shift (run 6). On an interval and with Laplace noise the lower values
are those of maps that move everything alike; Laplace noise is bounded through Renyi divergences, and loses in the
conversion.
""",
    "unlearning": """
Maps that scale attain what a start distance costs, with any factors and after any number of requests (runs 1 to 5).
Of a run the lower value counts the noise of the training, as `unlearning.whole_run` does (run 6).
""",
}
"""What is known of the reasons why each algorithm's bounds are tight or loose."""
