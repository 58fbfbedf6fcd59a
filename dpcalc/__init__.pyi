# Made by `python docs/build.py`; do not edit.
"""Types of the public names; `dpcalc.api` has the functions. A parameter may have one value or several."""

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, TypeAlias

from dpcalc.cards.verify import Verification
from dpcalc.errors import DpcalcError as DpcalcError
from dpcalc.errors import GateFailed as GateFailed
from dpcalc.errors import Infeasible as Infeasible
from dpcalc.errors import NotApplicable as NotApplicable
from dpcalc.errors import NotConverged as NotConverged
from dpcalc.errors import PrivacyWarning as PrivacyWarning
from dpcalc.errors import SpecError as SpecError
from dpcalc.errors import WorkerLost as WorkerLost
from dpcalc.recipes.ledgers.accountant import Accountant as Accountant
from dpcalc.recipes.ledgers.accountant import Ledger as Ledger
from dpcalc.report import Case as Case
from dpcalc.report import Report as Report
from dpcalc.report import Result as Result

Real: TypeAlias = float | Iterable[float] | None
Whole: TypeAlias = int | Iterable[int] | None
Word: TypeAlias = str | Iterable[str] | None

__version__: str

def epsilon(
    *,
    noise_multiplier: float,
    delta: float | str,
    sampling: str,
    adjacency: str,
    sample_rate: float | None = ...,
    records: int | None = ...,
    batch_size: int | None = ...,
    steps: int | None = ...,
    epochs: int | None = ...,
) -> float:
    """Return epsilon of a run of DP-SGD of which every iterate may be seen: one float, rounded up.

    What privacy depends on has no default. `dp_sgd` answers the same with bounds, assumptions and what would better it.

    Args:
        noise_multiplier: standard deviation of the noise on the sum of a batch, over the clipping norm.
        delta: in (0, 1).
        sampling: how batches are really drawn: ``poisson``, ``shuffle``, ``fixed``, ``balls-in-bins``, ... (`dp_sgd`).
        adjacency: ``add-remove``, ``zero-out`` or ``replace-one``.
        sample_rate: probability of a record to be in a batch; of Opacus' loader, 1/len(loader).
        records, batch_size: in place of the rate.
        steps: number of batches, of all epochs.
        epochs: in place of the steps.

    Raises:
        SpecError, NotApplicable: as in `rdp`.

    >>> round(epsilon(noise_multiplier=1.1, delta=1e-5, sampling="poisson", adjacency="add-remove",
    ...               sample_rate=0.01, steps=2000), 5)
    2.15973
    """

def noise_multiplier(
    *,
    epsilon: float,
    delta: float | str,
    sampling: str,
    adjacency: str,
    sample_rate: float | None = ...,
    records: int | None = ...,
    batch_size: int | None = ...,
    steps: int | None = ...,
    epochs: int | None = ...,
) -> float:
    """Return the noise multiplier that keeps a run of DP-SGD within a budget: one float, rounded up.

    Args:
        epsilon, delta: the budget.
        sampling, adjacency, sample_rate, records, batch_size, steps, epochs: as in `epsilon`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> round(noise_multiplier(epsilon=2.16, delta=1e-5, sampling="poisson", adjacency="add-remove",
    ...                        sample_rate=0.01, steps=2000), 4)
    1.0999
    """

def compare(
    *,
    algorithm: Word = ...,
    records: Whole = ...,
    index: Whole = ...,
    batch_size: Whole = ...,
    last_batch: Word = ...,
    lipschitz: Real = ...,
    smoothness: Real = ...,
    strong_convexity: Real = ...,
    step_size: Real = ...,
    noise_std: Real = ...,
    noise_multiplier: Real = ...,
    diameter: Real = ...,
    adjacency: Word = ...,
    group_size: Whole = ...,
    loss: Word = ...,
    feature_bound: Real = ...,
    label_bound: Real = ...,
    power: Real = ...,
    classes: Whole = ...,
    huber_threshold: Real = ...,
    tube: Real = ...,
    radius: Real = ...,
    regularisation: Real = ...,
    clip: Real = ...,
    model: Word = ...,
    loss_class: Word = ...,
    displacement: Real = ...,
    laplace_scale: Real = ...,
    noise: Word = ...,
    dimension: Whole = ...,
    permutation: Word = ...,
    c1: Real = ...,
    c2: Real = ...,
    release: Word = ...,
    epochs: Whole = ...,
    steps: Whole = ...,
    langevin_std: Real = ...,
    epoch_epsilon: Real = ...,
    epoch_delta: Real = ...,
    window: Whole = ...,
    decay_exponent: Real = ...,
    schedule_factor: Real = ...,
    sample_rate: Real = ...,
    sampling: Word = ...,
    max_batch_size: Whole = ...,
    uses: Whole = ...,
    holder_exponent: Real = ...,
    holder_constant: Real = ...,
    gradient_at_zero: Real = ...,
    loss_at_zero: Real = ...,
    mechanism: Word = ...,
    bands: Whole = ...,
    participations: Whole = ...,
    separation: Whole = ...,
    scaling: Word = ...,
    momentum: Real = ...,
    decay: Real = ...,
    cool_down: Real = ...,
    schedule: str | os.PathLike[str] | None = ...,
    epsilon: Real = ...,
    delta: float | str | Iterable[float | str] | None = ...,
    order: float | Iterable[float] = ...,
    solve: str | None = ...,
    gates: str | Sequence[str] = ...,
    certify: bool = ...,
    risk: bool = ...,
    fpr: float | Iterable[float] = ...,
    prior: float | Iterable[float] = ...,
    baseline: float | Iterable[float] = ...,
    advantage: Real = ...,
    tpr: Real = ...,
    success: Real = ...,
    reconstruction: Real = ...,
) -> Report:
    """Return every bound that applies to the described run, best first, and why the others do not.

    ``algorithm`` says what is run and must be given; ``"all"`` stands for every one.

    Args:
        algorithm: what is run and released; one of pnsgd, skip, stop, local, shuffled, rotation, shuffled-stop, cyclic, shuffle-once, rotation-epochs, shuffled-epochs, noisy-sgd, noisy-gd, repeated, online, dp-sgd, dp-sgd-gradient, dp-sgd-output, correlated.
        records: number of records; one pass uses each once; a whole number from 1 to 1e+15 (records).
        index: 1-based position of the differing record (default: the worst one); a whole number from 1 to 1e+15.
        batch_size: records per step; their mean gradient is used; a whole number from 1 to 1e+15 (records).
        last_batch: how left-over records are handled: a short last batch divided by its own size (own) or by the batch size (nominal), no batch (drop), batches that differ by at most one record (balanced), or a short first batch (front); one of own, nominal, drop, balanced, front.
        lipschitz: Lipschitz constant of the loss in the parameter; a number > 0 (gradient units).
        smoothness: Lipschitz constant of the gradient of the loss; a number >= 0 (gradient units per parameter unit).
        strong_convexity: strong convexity of the loss: no curvature is below it; 0 when merely convex, negative when weakly convex; a number (gradient units per parameter unit).
        step_size: step size; a step is w - eta (gradient + Z); a number > 0 (parameter units per gradient unit).
        noise_std: standard deviation per coordinate of the Gaussian Z; a number > 0 (gradient units).
        noise_multiplier: standard deviation of the noise on the sum of a batch's gradients, divided by the clipping norm (or the Lipschitz constant): noise_std = z x norm / batch_size, for full batches z x norm / records; a number > 0.
        diameter: diameter of the constraint set; a number > 0 (parameter units).
        adjacency: how neighbouring data sets differ: one record replaced by another, or by a null record (zero gradient; also called zero-out); with dp-sgd also a record added or removed, or either (add-remove); one of replace-one, null-record, add-remove, add, remove.
        group_size: this many records differ, such as those of one person (default: 1); a whole number from 1 to 1e+15 (records).
        loss: a loss of a linear model, from which its constants follow; one of hinge, absolute, insensitive, logistic, huber, squares, softmax.
        feature_bound: largest norm of a feature vector; a number > 0 (feature units).
        label_bound: largest size of a label (hinge and logistic: labels are +1 and -1); a number >= 0 (label units).
        power: power of the hinge, absolute and insensitive losses; a number >= 1 and <= 2.
        classes: number of classes of the softmax loss, each with a score of its own; a whole number from 2 to 1e+15.
        huber_threshold: size of a residual past which the huber loss is linear; a number > 0 (label units).
        tube: size of a residual up to which the insensitive loss is 0; a number >= 0 (label units).
        radius: radius of a ball around 0 that contains the constraint set; 0 lies in the set; a number > 0 (parameter units).
        regularisation: weight of the regulariser (lambda/2) |w|^2; a number >= 0 (gradient units per parameter unit).
        clip: norm to which every record's gradient is clipped; a number > 0 (gradient units).
        model: what clipping is applied to: a linear model, where the loss of a record is a convex function of one number, <w, x> (an intercept is a feature), so that clipped gradients are those of a convex loss; capped, for a softmax whose slopes are capped and not shortened; or any; one of linear, capped, any.
        loss_class: what is known of every loss; lipschitz (a bounded gradient only) covers clipping. Default: convex-smooth if a smoothness is given, else lipschitz; one of convex-smooth, convex, smooth, lipschitz.
        displacement: how far apart a gradient step leaves two points, over the diameter; for Laplace noise in the 1-norm (default: derived from the loss class); a number >= 0.
        laplace_scale: scale of the Laplace Z (one dimension); a number > 0 (gradient units).
        noise: kind of noise, where its scale is derived or solved for; one of gaussian, laplace.
        dimension: dimension of the parameter, for Laplace noise and for risks (default 1); a whole number from 1 to 1e+15 (coordinates).
        permutation: whether the random order and its seed stay secret for ever; one of public, secret.
        c1: constant of the noise schedule; a number > 0.
        c2: constant of the noise schedule; a number.
        release: what is released: the last iterate alone, or the iterate after every epoch (dp-sgd: every iterate, unless this says last); one of last, epoch.
        epochs: number of passes over the records; a whole number from 1 to 1e+15 (passes).
        steps: number of steps; a whole number from 1 to 1e+15 (steps).
        langevin_std: sigma of w - eta gradient + sqrt(2 eta) sigma N(0, 1), in place of noise_std; a number > 0.
        epoch_epsilon: epsilon of one pass, of an algorithm known by its (epsilon, delta) alone; a number >= 0.
        epoch_delta: delta of one pass, 0 for pure privacy; a number >= 0 and < 1.
        window: cover every record that at least this many others follow; a whole number from 0 to 1e+15 (records).
        decay_exponent: exponent of the noise schedule of a stream; a number > 0 and <= 64.
        schedule_factor: factor on every noise scale of the schedule; a number > 0.
        sample_rate: probability with which a record is in the batch of a step; a number > 0 and <= 1.
        sampling: how a batch is drawn: every record by itself with the same probability (poisson); batch_size records, uniformly, afresh in every step (fixed); batch_size draws of single records, which may come several times (with-replacement); every epoch each record in one step chosen at random (balls-in-bins); every epoch the records shuffled and cut into batches (shuffle); all records (full); one of poisson, fixed, with-replacement, balls-in-bins, shuffle, full.
        max_batch_size: largest size of a Poisson batch: a larger one is cut to this many records, uniformly; a whole number from 1 to 1e+15 (records).
        uses: steps of an epoch that each record is in, with balls-in-bins; an epoch then has uses x records/batch_size steps (default: 1); a whole number from 1 to 1e+15 (steps).
        holder_exponent: exponent of |grad l(w) - grad l(v)| <= L |w - v|^alpha, for all w, v: 1 where smooth, 0 where Lipschitz; a number >= 0 and <= 1.
        holder_constant: constant of |grad l(w) - grad l(v)| <= L |w - v|^alpha, for all w and v; a number > 0 (gradient units per parameter unit^alpha).
        gradient_at_zero: bound on the gradient of every record's loss at w = 0; a number >= 0 (gradient units).
        loss_at_zero: bound on every record's loss at w = 0; losses are >= 0; a number >= 0 (loss units).
        mechanism: which matrix C correlates the noise of the steps: none (identity), a binary tree, the square root of the matrix of prefix sums (sqrt), its first bands, the inverse of the bands of its inverse (bisr), or a sum of geometric sequences close to it (blt), or that of --matrix FILE (file); best takes the one with the least noise in the iterates; one of identity, tree, sqrt, banded-sqrt, bisr, blt, file, best.
        bands: bands of the matrix C, or of its inverse (bisr); a whole number from 1 to 1e+15 (bands).
        participations: in how many steps a record is used at most (default: epochs); a whole number from 1 to 1e+15 (steps).
        separation: steps from one use of a record to its next one, at least (default: those of an epoch); a whole number from 1 to 1e+15 (steps).
        scaling: what the noise multiplier is over: the clipping norm alone, with noise added to C times the gradients (matrix); times the largest norm of a column of C (columns); or times what one record moves C times the gradients by (sensitivity); one of matrix, columns, sensitivity.
        momentum: share of the last update that the next one keeps; for the noise in the iterates alone; a number >= 0 and < 1.
        decay: share of the iterate that a step takes away: learning rate times weight decay; for the noise in iterates alone; a number >= 0 and < 1.
        cool_down: share of the steps, the last ones, over which the learning rate falls to 0; for the noise in the iterates alone; a number >= 0 and <= 1.
        schedule: path of per-step values (CSV, NPY, NPZ, YAML).
        epsilon: the budget.
        delta: the budget; a string such as "1e-5000" where no float can hold it.
        order: order or orders of Renyi divergence; without a budget the divergence itself is reported.
        solve: name of a parameter to solve for instead, given both epsilon and delta.
        gates: assertions on the best guarantee such as "epsilon<=1"; report.failed counts the cases that fail one.
        certify: prove every guarantee in ball arithmetic: details["certified"] has what, details["not_certified"] why not.
        risk: what an attacker can do, beside the answer: case.risk.
        fpr: false-positive rates at which risk gives true-positive rates.
        prior: prior probabilities that the record is there, for how often a guess is right.
        baseline: probabilities to guess a secret of the record right without the release.
        advantage: solve for what keeps true-positive less false-positive rate of any attack at most this.
        tpr: solve for what keeps the true-positive rate at fpr at most this.
        success: solve for what keeps how often a guess is right, at prior, at most this.
        reconstruction: solve for what keeps how often a secret is guessed, baseline without, at most this.

    Returns:
        A report; beside its results each case has ``tightness`` (how far the best is from what nothing can beat, where
        that is known) and ``notes`` on what knowing or promising more would give, which ``note_data`` has as data.
        Where several algorithms are asked, one that cannot be so described has no results and says why in
        ``obstacles``.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> report = compare(algorithm=["pnsgd", "shuffled"], records=10**5, lipschitz=1, smoothness=1, step_size=0.1,
    ...                  noise_std=2, delta=1e-6)
    >>> [round(case.best.value, 4) for case in report.cases]
    [4.8866, 1.3153]
    """

def rdp(
    *,
    algorithm: Word = ...,
    records: Whole = ...,
    index: Whole = ...,
    batch_size: Whole = ...,
    last_batch: Word = ...,
    lipschitz: Real = ...,
    smoothness: Real = ...,
    strong_convexity: Real = ...,
    step_size: Real = ...,
    noise_std: Real = ...,
    noise_multiplier: Real = ...,
    diameter: Real = ...,
    adjacency: Word = ...,
    group_size: Whole = ...,
    loss: Word = ...,
    feature_bound: Real = ...,
    label_bound: Real = ...,
    power: Real = ...,
    classes: Whole = ...,
    huber_threshold: Real = ...,
    tube: Real = ...,
    radius: Real = ...,
    regularisation: Real = ...,
    clip: Real = ...,
    model: Word = ...,
    schedule: str | os.PathLike[str] | None = ...,
    epsilon: Real = ...,
    delta: float | str | Iterable[float | str] | None = ...,
    order: float | Iterable[float] = ...,
    solve: str | None = ...,
    gates: str | Sequence[str] = ...,
    certify: bool = ...,
    risk: bool = ...,
    fpr: float | Iterable[float] = ...,
    prior: float | Iterable[float] = ...,
    baseline: float | Iterable[float] = ...,
    advantage: Real = ...,
    tpr: Real = ...,
    success: Real = ...,
    reconstruction: Real = ...,
) -> Report:
    """Return what is true of one fixed-order pass of noisy SGD whose iterates stay hidden.

    Of ``epsilon``, ``delta`` and ``noise_std``, what is left out is solved for. A parameter may be a list: there is one
    case for each value, and for every combination of several lists.

    The words of other programs that mean exactly the same are taken here and everywhere: ``lr`` for ``step_size``,
    ``sigma`` for ``noise_std``, ``target_delta`` for ``delta``.

    Args:
        algorithm: what is run and released; one of pnsgd, skip, stop, local.
        records: number of records; one pass uses each once; a whole number from 1 to 1e+15 (records).
        index: 1-based position of the differing record (default: the worst one); a whole number from 1 to 1e+15.
        batch_size: records per step; their mean gradient is used; a whole number from 1 to 1e+15 (records).
        last_batch: how left-over records are handled: a short last batch divided by its own size (own) or by the batch size (nominal), no batch (drop), batches that differ by at most one record (balanced), or a short first batch (front); one of own, nominal, drop, balanced, front.
        lipschitz: Lipschitz constant of the loss in the parameter; a number > 0 (gradient units).
        smoothness: Lipschitz constant of the gradient of the loss; a number >= 0 (gradient units per parameter unit).
        strong_convexity: strong convexity of the loss: no curvature is below it; 0 when merely convex, negative when weakly convex; a number (gradient units per parameter unit).
        step_size: step size; a step is w - eta (gradient + Z); a number > 0 (parameter units per gradient unit).
        noise_std: standard deviation per coordinate of the Gaussian Z; a number > 0 (gradient units).
        noise_multiplier: standard deviation of the noise on the sum of a batch's gradients, divided by the clipping norm (or the Lipschitz constant): noise_std = z x norm / batch_size, for full batches z x norm / records; a number > 0.
        diameter: diameter of the constraint set; a number > 0 (parameter units).
        adjacency: how neighbouring data sets differ: one record replaced by another, or by a null record (zero gradient; also called zero-out); with dp-sgd also a record added or removed, or either (add-remove); one of replace-one, null-record, add-remove, add, remove.
        group_size: this many records differ, such as those of one person (default: 1); a whole number from 1 to 1e+15 (records).
        loss: a loss of a linear model, from which its constants follow; one of hinge, absolute, insensitive, logistic, huber, squares, softmax.
        feature_bound: largest norm of a feature vector; a number > 0 (feature units).
        label_bound: largest size of a label (hinge and logistic: labels are +1 and -1); a number >= 0 (label units).
        power: power of the hinge, absolute and insensitive losses; a number >= 1 and <= 2.
        classes: number of classes of the softmax loss, each with a score of its own; a whole number from 2 to 1e+15.
        huber_threshold: size of a residual past which the huber loss is linear; a number > 0 (label units).
        tube: size of a residual up to which the insensitive loss is 0; a number >= 0 (label units).
        radius: radius of a ball around 0 that contains the constraint set; 0 lies in the set; a number > 0 (parameter units).
        regularisation: weight of the regulariser (lambda/2) |w|^2; a number >= 0 (gradient units per parameter unit).
        clip: norm to which every record's gradient is clipped; a number > 0 (gradient units).
        model: what clipping is applied to: a linear model, where the loss of a record is a convex function of one number, <w, x> (an intercept is a feature), so that clipped gradients are those of a convex loss; capped, for a softmax whose slopes are capped and not shortened; or any; one of linear, capped, any.
        schedule: path of per-step values (CSV, NPY, NPZ, YAML).
        epsilon: the budget.
        delta: the budget; a string such as "1e-5000" where no float can hold it.
        order: order or orders of Renyi divergence; without a budget the divergence itself is reported.
        solve: name of a parameter to solve for instead, given both epsilon and delta.
        gates: assertions on the best guarantee such as "epsilon<=1"; report.failed counts the cases that fail one.
        certify: prove every guarantee in ball arithmetic: details["certified"] has what, details["not_certified"] why not.
        risk: what an attacker can do, beside the answer: case.risk.
        fpr: false-positive rates at which risk gives true-positive rates.
        prior: prior probabilities that the record is there, for how often a guess is right.
        baseline: probabilities to guess a secret of the record right without the release.
        advantage: solve for what keeps true-positive less false-positive rate of any attack at most this.
        tpr: solve for what keeps the true-positive rate at fpr at most this.
        success: solve for what keeps how often a guess is right, at prior, at most this.
        reconstruction: solve for what keeps how often a secret is guessed, baseline without, at most this.

    Returns:
        A report; ``report.epsilon``, ``report.noise_std`` and so on are the numbers to quote, ``print(report)`` shows
        the answer, ``report.rows()`` is a flat table of all bounds. Of a list, iterate over the cases.

    Raises:
        SpecError: malformed or incomplete parameters; ``certify`` without python-flint.
        NotApplicable: no theorem covers the run; of several cases one such has no results and says why.
        Infeasible: no value of the unknown meets the budget.
        Disproved: with ``certify``, a guarantee is below the truth; its ``report`` has all that is known of it.

    >>> round(rdp(records=100, index=1, lipschitz=1, smoothness=1, step_size=0.5, noise_std=1,
    ...           delta=1e-5).value, 12)
    0.725521750858
    """

def shifted(
    *,
    steps: Whole = ...,
    index: Whole = ...,
    shift: Real = ...,
    contraction: Real = ...,
    step_size: Real = ...,
    noise_std: Real = ...,
    laplace_scale: Real = ...,
    start_distance: Real = ...,
    diameter: Real = ...,
    schedule: str | os.PathLike[str] | None = ...,
    epsilon: Real = ...,
    delta: float | str | Iterable[float | str] | None = ...,
    order: float | Iterable[float] = ...,
    solve: str | None = ...,
    gates: str | Sequence[str] = ...,
    certify: bool = ...,
    risk: bool = ...,
    fpr: float | Iterable[float] = ...,
    prior: float | Iterable[float] = ...,
    baseline: float | Iterable[float] = ...,
    advantage: Real = ...,
    tpr: Real = ...,
    success: Real = ...,
    reconstruction: Real = ...,
) -> Report:
    """Return what the general shifted-divergence theorem proves of a chain of noisy Lipschitz steps.

    What a ``schedule`` lacks is taken from the other arguments; the parameter-space noise of a step has scale
    ``step_size`` times ``noise_std`` or ``laplace_scale``.

    Args:
        steps: number of steps; a whole number from 1 to 1e+15 (steps).
        index: 1-based position of the differing record (default: the worst one); a whole number from 1 to 1e+15.
        shift: distance the two runs' maps can be apart in a step; a number >= 0 (parameter units).
        contraction: Lipschitz factor of a step's map; a number >= 0.
        step_size: step size; a step is w - eta (gradient + Z); a number > 0 (parameter units per gradient unit).
        noise_std: standard deviation per coordinate of the Gaussian Z; a number > 0 (gradient units).
        laplace_scale: scale of the Laplace Z (one dimension); a number > 0 (gradient units).
        start_distance: distance of the two starting points; a number >= 0 (parameter units).
        diameter: diameter of the constraint set; a number > 0 (parameter units).
        schedule: path of per-step values (CSV, NPY, NPZ, YAML).
        epsilon: the budget.
        delta: the budget; a string such as "1e-5000" where no float can hold it.
        order: order or orders of Renyi divergence; without a budget the divergence itself is reported.
        solve: name of a parameter to solve for instead, given both epsilon and delta.
        gates: assertions on the best guarantee such as "epsilon<=1"; report.failed counts the cases that fail one.
        certify: prove every guarantee in ball arithmetic: details["certified"] has what, details["not_certified"] why not.
        risk: what an attacker can do, beside the answer: case.risk.
        fpr: false-positive rates at which risk gives true-positive rates.
        prior: prior probabilities that the record is there, for how often a guess is right.
        baseline: probabilities to guess a secret of the record right without the release.
        advantage: solve for what keeps true-positive less false-positive rate of any attack at most this.
        tpr: solve for what keeps the true-positive rate at fpr at most this.
        success: solve for what keeps how often a guess is right, at prior, at most this.
        reconstruction: solve for what keeps how often a secret is guessed, baseline without, at most this.

    Returns:
        A report as in `rdp`; the best result's ``details["allocation"]`` is where the shifts are spent.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.
    """

def unlearn(
    *,
    start: Word = ...,
    start_distance: Real = ...,
    gradient_norm: Real = ...,
    requests: Whole = ...,
    clean_steps: Whole = ...,
    contraction: Real = ...,
    smoothness: Real = ...,
    strong_convexity: Real = ...,
    step_size: Real = ...,
    noise_std: Real = ...,
    records: Whole = ...,
    batch_size: Whole = ...,
    epochs: Whole = ...,
    lipschitz: Real = ...,
    diameter: Real = ...,
    adjacency: Word = ...,
    group_size: Whole = ...,
    schedule: str | os.PathLike[str] | None = ...,
    epsilon: Real = ...,
    delta: float | str | Iterable[float | str] | None = ...,
    order: float | Iterable[float] = ...,
    solve: str | None = ...,
    gates: str | Sequence[str] = ...,
    certify: bool = ...,
    risk: bool = ...,
    fpr: float | Iterable[float] = ...,
    prior: float | Iterable[float] = ...,
    baseline: float | Iterable[float] = ...,
    advantage: Real = ...,
    tpr: Real = ...,
    success: Real = ...,
    reconstruction: Real = ...,
) -> Report:
    """Return how well noisy steps on the records kept make a model forget the others.

    ``start`` says what is known of the model: a ``start_distance`` to one that never saw the records, that it is a
    ``"minimiser"``, or the last iterate of a noisy ``"run"``. ``solve="clean_steps"`` gives the least number of steps.

    Args:
        start: how the model that is to forget was trained: nothing is known of it but the start distance (distance), it minimises a strongly convex mean loss (minimiser), or it is the last iterate of noisy SGD (run); one of distance, minimiser, run.
        start_distance: distance of the two starting points; a number >= 0 (parameter units).
        gradient_norm: gradient of the mean loss at a minimiser, at most, with the records and without: 0 for an exact one (default); on a convex set its distance from an outward normal, with the sign changed; a number >= 0 (gradient units).
        requests: requests to forget so far, this one included, each answered by so many steps; a whole number from 1 to 1e+15 (requests).
        clean_steps: noisy steps on the records kept alone, after all that used the others; a whole number from 1 to 1e+15 (steps).
        contraction: Lipschitz factor of a step's map; a number >= 0.
        smoothness: Lipschitz constant of the gradient of the loss; a number >= 0 (gradient units per parameter unit).
        strong_convexity: strong convexity of the loss: no curvature is below it; 0 when merely convex, negative when weakly convex; a number (gradient units per parameter unit).
        step_size: step size; a step is w - eta (gradient + Z); a number > 0 (parameter units per gradient unit).
        noise_std: standard deviation per coordinate of the Gaussian Z; a number > 0 (gradient units).
        records: number of records; one pass uses each once; a whole number from 1 to 1e+15 (records).
        batch_size: records per step; their mean gradient is used; a whole number from 1 to 1e+15 (records).
        epochs: number of passes over the records; a whole number from 1 to 1e+15 (passes).
        lipschitz: Lipschitz constant of the loss in the parameter; a number > 0 (gradient units).
        diameter: diameter of the constraint set; a number > 0 (parameter units).
        adjacency: how neighbouring data sets differ: one record replaced by another, or by a null record (zero gradient; also called zero-out); with dp-sgd also a record added or removed, or either (add-remove); one of replace-one, null-record, add-remove, add, remove.
        group_size: this many records differ, such as those of one person (default: 1); a whole number from 1 to 1e+15 (records).
        schedule: path of per-step values (CSV, NPY, NPZ, YAML).
        epsilon: the budget.
        delta: the budget; a string such as "1e-5000" where no float can hold it.
        order: order or orders of Renyi divergence; without a budget the divergence itself is reported.
        solve: name of a parameter to solve for instead, given both epsilon and delta.
        gates: assertions on the best guarantee such as "epsilon<=1"; report.failed counts the cases that fail one.
        certify: prove every guarantee in ball arithmetic: details["certified"] has what, details["not_certified"] why not.
        risk: what an attacker can do, beside the answer: case.risk.
        fpr: false-positive rates at which risk gives true-positive rates.
        prior: prior probabilities that the record is there, for how often a guess is right.
        baseline: probabilities to guess a secret of the record right without the release.
        advantage: solve for what keeps true-positive less false-positive rate of any attack at most this.
        tpr: solve for what keeps the true-positive rate at fpr at most this.
        success: solve for what keeps how often a guess is right, at prior, at most this.
        reconstruction: solve for what keeps how often a secret is guessed, baseline without, at most this.

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> unlearn(start_distance=0.02, contraction=0.99, step_size=0.1, noise_std=0.5, epsilon=0.1, delta=1e-5,
    ...         solve="clean_steps").value
    70
    """

def hockey_stick(
    *,
    algorithm: Word = ...,
    records: Whole = ...,
    index: Whole = ...,
    batch_size: Whole = ...,
    last_batch: Word = ...,
    lipschitz: Real = ...,
    loss_class: Word = ...,
    smoothness: Real = ...,
    strong_convexity: Real = ...,
    displacement: Real = ...,
    diameter: Real = ...,
    loss: Word = ...,
    feature_bound: Real = ...,
    label_bound: Real = ...,
    power: Real = ...,
    classes: Whole = ...,
    huber_threshold: Real = ...,
    tube: Real = ...,
    radius: Real = ...,
    regularisation: Real = ...,
    clip: Real = ...,
    model: Word = ...,
    step_size: Real = ...,
    noise_std: Real = ...,
    noise_multiplier: Real = ...,
    laplace_scale: Real = ...,
    noise: Word = ...,
    dimension: Whole = ...,
    adjacency: Word = ...,
    group_size: Whole = ...,
    schedule: str | os.PathLike[str] | None = ...,
    epsilon: Real = ...,
    delta: float | str | Iterable[float | str] | None = ...,
    order: float | Iterable[float] = ...,
    solve: str | None = ...,
    gates: str | Sequence[str] = ...,
    certify: bool = ...,
    risk: bool = ...,
    fpr: float | Iterable[float] = ...,
    prior: float | Iterable[float] = ...,
    baseline: float | Iterable[float] = ...,
    advantage: Real = ...,
    tpr: Real = ...,
    success: Real = ...,
    reconstruction: Real = ...,
) -> Report:
    """Return one record's delta(epsilon) along a fixed-order pass, by contraction, shift and mixture bounds.

    Args:
        algorithm: what is run and released; one of pnsgd, stop.
        records: number of records; one pass uses each once; a whole number from 1 to 1e+15 (records).
        index: 1-based position of the differing record (default: the worst one); a whole number from 1 to 1e+15.
        batch_size: records per step; their mean gradient is used; a whole number from 1 to 1e+15 (records).
        last_batch: how left-over records are handled: a short last batch divided by its own size (own) or by the batch size (nominal), no batch (drop), batches that differ by at most one record (balanced), or a short first batch (front); one of own, nominal, drop, balanced, front.
        lipschitz: Lipschitz constant of the loss in the parameter; a number > 0 (gradient units).
        loss_class: what is known of every loss; lipschitz (a bounded gradient only) covers clipping. Default: convex-smooth if a smoothness is given, else lipschitz; one of convex-smooth, convex, smooth, lipschitz.
        smoothness: Lipschitz constant of the gradient of the loss; a number >= 0 (gradient units per parameter unit).
        strong_convexity: strong convexity of the loss: no curvature is below it; 0 when merely convex, negative when weakly convex; a number (gradient units per parameter unit).
        displacement: how far apart a gradient step leaves two points, over the diameter; for Laplace noise in the 1-norm (default: derived from the loss class); a number >= 0.
        diameter: diameter of the constraint set; a number > 0 (parameter units).
        loss: a loss of a linear model, from which its constants follow; one of hinge, absolute, insensitive, logistic, huber, squares, softmax.
        feature_bound: largest norm of a feature vector; a number > 0 (feature units).
        label_bound: largest size of a label (hinge and logistic: labels are +1 and -1); a number >= 0 (label units).
        power: power of the hinge, absolute and insensitive losses; a number >= 1 and <= 2.
        classes: number of classes of the softmax loss, each with a score of its own; a whole number from 2 to 1e+15.
        huber_threshold: size of a residual past which the huber loss is linear; a number > 0 (label units).
        tube: size of a residual up to which the insensitive loss is 0; a number >= 0 (label units).
        radius: radius of a ball around 0 that contains the constraint set; 0 lies in the set; a number > 0 (parameter units).
        regularisation: weight of the regulariser (lambda/2) |w|^2; a number >= 0 (gradient units per parameter unit).
        clip: norm to which every record's gradient is clipped; a number > 0 (gradient units).
        model: what clipping is applied to: a linear model, where the loss of a record is a convex function of one number, <w, x> (an intercept is a feature), so that clipped gradients are those of a convex loss; capped, for a softmax whose slopes are capped and not shortened; or any; one of linear, capped, any.
        step_size: step size; a step is w - eta (gradient + Z); a number > 0 (parameter units per gradient unit).
        noise_std: standard deviation per coordinate of the Gaussian Z; a number > 0 (gradient units).
        noise_multiplier: standard deviation of the noise on the sum of a batch's gradients, divided by the clipping norm (or the Lipschitz constant): noise_std = z x norm / batch_size, for full batches z x norm / records; a number > 0.
        laplace_scale: scale of the Laplace Z (one dimension); a number > 0 (gradient units).
        noise: kind of noise, where its scale is derived or solved for; one of gaussian, laplace.
        dimension: dimension of the parameter, for Laplace noise and for risks (default 1); a whole number from 1 to 1e+15 (coordinates).
        adjacency: how neighbouring data sets differ: one record replaced by another, or by a null record (zero gradient; also called zero-out); with dp-sgd also a record added or removed, or either (add-remove); one of replace-one, null-record, add-remove, add, remove.
        group_size: this many records differ, such as those of one person (default: 1); a whole number from 1 to 1e+15 (records).
        schedule: path of per-step values (CSV, NPY, NPZ, YAML).
        epsilon: the budget.
        delta: the budget; a string such as "1e-5000" where no float can hold it.
        order: order or orders of Renyi divergence; without a budget the divergence itself is reported.
        solve: name of a parameter to solve for instead, given both epsilon and delta.
        gates: assertions on the best guarantee such as "epsilon<=1"; report.failed counts the cases that fail one.
        certify: prove every guarantee in ball arithmetic: details["certified"] has what, details["not_certified"] why not.
        risk: what an attacker can do, beside the answer: case.risk.
        fpr: false-positive rates at which risk gives true-positive rates.
        prior: prior probabilities that the record is there, for how often a guess is right.
        baseline: probabilities to guess a secret of the record right without the release.
        advantage: solve for what keeps true-positive less false-positive rate of any attack at most this.
        tpr: solve for what keeps the true-positive rate at fpr at most this.
        success: solve for what keeps how often a guess is right, at prior, at most this.
        reconstruction: solve for what keeps how often a secret is guessed, baseline without, at most this.

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> round(hockey_stick(records=100, index=50, lipschitz=1, smoothness=1, step_size=0.1, noise_std=2,
    ...                    epsilon=1).cases[0].best.log_delta, 9)
    -31.874272984
    """

def shuffle(
    *,
    algorithm: Word = ...,
    records: Whole = ...,
    batch_size: Whole = ...,
    last_batch: Word = ...,
    permutation: Word = ...,
    lipschitz: Real = ...,
    loss_class: Word = ...,
    smoothness: Real = ...,
    strong_convexity: Real = ...,
    displacement: Real = ...,
    diameter: Real = ...,
    loss: Word = ...,
    feature_bound: Real = ...,
    label_bound: Real = ...,
    power: Real = ...,
    classes: Whole = ...,
    huber_threshold: Real = ...,
    tube: Real = ...,
    radius: Real = ...,
    regularisation: Real = ...,
    clip: Real = ...,
    model: Word = ...,
    step_size: Real = ...,
    noise_std: Real = ...,
    noise_multiplier: Real = ...,
    laplace_scale: Real = ...,
    noise: Word = ...,
    dimension: Whole = ...,
    c1: Real = ...,
    c2: Real = ...,
    adjacency: Word = ...,
    group_size: Whole = ...,
    schedule: str | os.PathLike[str] | None = ...,
    epsilon: Real = ...,
    delta: float | str | Iterable[float | str] | None = ...,
    order: float | Iterable[float] = ...,
    solve: str | None = ...,
    gates: str | Sequence[str] = ...,
    certify: bool = ...,
    risk: bool = ...,
    fpr: float | Iterable[float] = ...,
    prior: float | Iterable[float] = ...,
    baseline: float | Iterable[float] = ...,
    advantage: Real = ...,
    tpr: Real = ...,
    success: Real = ...,
    reconstruction: Real = ...,
) -> Report:
    """Return what is true of one pass in a random order.

    The column ``probability`` of a ``schedule`` is the law of the record's position.

    Args:
        algorithm: what is run and released; one of shuffled, rotation, shuffled-stop.
        records: number of records; one pass uses each once; a whole number from 1 to 1e+15 (records).
        batch_size: records per step; their mean gradient is used; a whole number from 1 to 1e+15 (records).
        last_batch: how left-over records are handled: a short last batch divided by its own size (own) or by the batch size (nominal), no batch (drop), batches that differ by at most one record (balanced), or a short first batch (front); one of own, nominal, drop, balanced, front.
        permutation: whether the random order and its seed stay secret for ever; one of public, secret.
        lipschitz: Lipschitz constant of the loss in the parameter; a number > 0 (gradient units).
        loss_class: what is known of every loss; lipschitz (a bounded gradient only) covers clipping. Default: convex-smooth if a smoothness is given, else lipschitz; one of convex-smooth, convex, smooth, lipschitz.
        smoothness: Lipschitz constant of the gradient of the loss; a number >= 0 (gradient units per parameter unit).
        strong_convexity: strong convexity of the loss: no curvature is below it; 0 when merely convex, negative when weakly convex; a number (gradient units per parameter unit).
        displacement: how far apart a gradient step leaves two points, over the diameter; for Laplace noise in the 1-norm (default: derived from the loss class); a number >= 0.
        diameter: diameter of the constraint set; a number > 0 (parameter units).
        loss: a loss of a linear model, from which its constants follow; one of hinge, absolute, insensitive, logistic, huber, squares, softmax.
        feature_bound: largest norm of a feature vector; a number > 0 (feature units).
        label_bound: largest size of a label (hinge and logistic: labels are +1 and -1); a number >= 0 (label units).
        power: power of the hinge, absolute and insensitive losses; a number >= 1 and <= 2.
        classes: number of classes of the softmax loss, each with a score of its own; a whole number from 2 to 1e+15.
        huber_threshold: size of a residual past which the huber loss is linear; a number > 0 (label units).
        tube: size of a residual up to which the insensitive loss is 0; a number >= 0 (label units).
        radius: radius of a ball around 0 that contains the constraint set; 0 lies in the set; a number > 0 (parameter units).
        regularisation: weight of the regulariser (lambda/2) |w|^2; a number >= 0 (gradient units per parameter unit).
        clip: norm to which every record's gradient is clipped; a number > 0 (gradient units).
        model: what clipping is applied to: a linear model, where the loss of a record is a convex function of one number, <w, x> (an intercept is a feature), so that clipped gradients are those of a convex loss; capped, for a softmax whose slopes are capped and not shortened; or any; one of linear, capped, any.
        step_size: step size; a step is w - eta (gradient + Z); a number > 0 (parameter units per gradient unit).
        noise_std: standard deviation per coordinate of the Gaussian Z; a number > 0 (gradient units).
        noise_multiplier: standard deviation of the noise on the sum of a batch's gradients, divided by the clipping norm (or the Lipschitz constant): noise_std = z x norm / batch_size, for full batches z x norm / records; a number > 0.
        laplace_scale: scale of the Laplace Z (one dimension); a number > 0 (gradient units).
        noise: kind of noise, where its scale is derived or solved for; one of gaussian, laplace.
        dimension: dimension of the parameter, for Laplace noise and for risks (default 1); a whole number from 1 to 1e+15 (coordinates).
        c1: constant of the noise schedule; a number > 0.
        c2: constant of the noise schedule; a number.
        adjacency: how neighbouring data sets differ: one record replaced by another, or by a null record (zero gradient; also called zero-out); with dp-sgd also a record added or removed, or either (add-remove); one of replace-one, null-record, add-remove, add, remove.
        group_size: this many records differ, such as those of one person (default: 1); a whole number from 1 to 1e+15 (records).
        schedule: path of per-step values (CSV, NPY, NPZ, YAML).
        epsilon: the budget.
        delta: the budget; a string such as "1e-5000" where no float can hold it.
        order: order or orders of Renyi divergence; without a budget the divergence itself is reported.
        solve: name of a parameter to solve for instead, given both epsilon and delta.
        gates: assertions on the best guarantee such as "epsilon<=1"; report.failed counts the cases that fail one.
        certify: prove every guarantee in ball arithmetic: details["certified"] has what, details["not_certified"] why not.
        risk: what an attacker can do, beside the answer: case.risk.
        fpr: false-positive rates at which risk gives true-positive rates.
        prior: prior probabilities that the record is there, for how often a guess is right.
        baseline: probabilities to guess a secret of the record right without the release.
        advantage: solve for what keeps true-positive less false-positive rate of any attack at most this.
        tpr: solve for what keeps the true-positive rate at fpr at most this.
        success: solve for what keeps how often a guess is right, at prior, at most this.
        reconstruction: solve for what keeps how often a secret is guessed, baseline without, at most this.

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> round(shuffle(records=10**5, lipschitz=1, smoothness=1, step_size=0.1, noise_std=2, delta=1e-6
    ...               ).value, 7)
    1.3153396
    """

def online(
    *,
    records: Whole = ...,
    index: Whole = ...,
    window: Whole = ...,
    lipschitz: Real = ...,
    loss_class: Word = ...,
    smoothness: Real = ...,
    strong_convexity: Real = ...,
    displacement: Real = ...,
    diameter: Real = ...,
    loss: Word = ...,
    feature_bound: Real = ...,
    label_bound: Real = ...,
    power: Real = ...,
    classes: Whole = ...,
    huber_threshold: Real = ...,
    tube: Real = ...,
    radius: Real = ...,
    regularisation: Real = ...,
    clip: Real = ...,
    model: Word = ...,
    step_size: Real = ...,
    noise: Word = ...,
    dimension: Whole = ...,
    c1: Real = ...,
    c2: Real = ...,
    decay_exponent: Real = ...,
    schedule_factor: Real = ...,
    adjacency: Word = ...,
    group_size: Whole = ...,
    epsilon: Real = ...,
    delta: float | str | Iterable[float | str] | None = ...,
    order: float | Iterable[float] = ...,
    solve: str | None = ...,
    gates: str | Sequence[str] = ...,
    certify: bool = ...,
    risk: bool = ...,
    fpr: float | Iterable[float] = ...,
    prior: float | Iterable[float] = ...,
    baseline: float | Iterable[float] = ...,
    advantage: Real = ...,
    tpr: Real = ...,
    success: Real = ...,
    reconstruction: Real = ...,
) -> Report:
    """Return what is true of a growing stream whose noise decays from record to record.

    Args:
        records: number of records; one pass uses each once; a whole number from 1 to 1e+15 (records).
        index: 1-based position of the differing record (default: the worst one); a whole number from 1 to 1e+15.
        window: cover every record that at least this many others follow; a whole number from 0 to 1e+15 (records).
        lipschitz: Lipschitz constant of the loss in the parameter; a number > 0 (gradient units).
        loss_class: what is known of every loss; lipschitz (a bounded gradient only) covers clipping. Default: convex-smooth if a smoothness is given, else lipschitz; one of convex-smooth, convex, smooth, lipschitz.
        smoothness: Lipschitz constant of the gradient of the loss; a number >= 0 (gradient units per parameter unit).
        strong_convexity: strong convexity of the loss: no curvature is below it; 0 when merely convex, negative when weakly convex; a number (gradient units per parameter unit).
        displacement: how far apart a gradient step leaves two points, over the diameter; for Laplace noise in the 1-norm (default: derived from the loss class); a number >= 0.
        diameter: diameter of the constraint set; a number > 0 (parameter units).
        loss: a loss of a linear model, from which its constants follow; one of hinge, absolute, insensitive, logistic, huber, squares, softmax.
        feature_bound: largest norm of a feature vector; a number > 0 (feature units).
        label_bound: largest size of a label (hinge and logistic: labels are +1 and -1); a number >= 0 (label units).
        power: power of the hinge, absolute and insensitive losses; a number >= 1 and <= 2.
        classes: number of classes of the softmax loss, each with a score of its own; a whole number from 2 to 1e+15.
        huber_threshold: size of a residual past which the huber loss is linear; a number > 0 (label units).
        tube: size of a residual up to which the insensitive loss is 0; a number >= 0 (label units).
        radius: radius of a ball around 0 that contains the constraint set; 0 lies in the set; a number > 0 (parameter units).
        regularisation: weight of the regulariser (lambda/2) |w|^2; a number >= 0 (gradient units per parameter unit).
        clip: norm to which every record's gradient is clipped; a number > 0 (gradient units).
        model: what clipping is applied to: a linear model, where the loss of a record is a convex function of one number, <w, x> (an intercept is a feature), so that clipped gradients are those of a convex loss; capped, for a softmax whose slopes are capped and not shortened; or any; one of linear, capped, any.
        step_size: step size; a step is w - eta (gradient + Z); a number > 0 (parameter units per gradient unit).
        noise: kind of noise, where its scale is derived or solved for; one of gaussian, laplace.
        dimension: dimension of the parameter, for Laplace noise and for risks (default 1); a whole number from 1 to 1e+15 (coordinates).
        c1: constant of the noise schedule; a number > 0.
        c2: constant of the noise schedule; a number.
        decay_exponent: exponent of the noise schedule of a stream; a number > 0 and <= 64.
        schedule_factor: factor on every noise scale of the schedule; a number > 0.
        adjacency: how neighbouring data sets differ: one record replaced by another, or by a null record (zero gradient; also called zero-out); with dp-sgd also a record added or removed, or either (add-remove); one of replace-one, null-record, add-remove, add, remove.
        group_size: this many records differ, such as those of one person (default: 1); a whole number from 1 to 1e+15 (records).
        epsilon: the budget.
        delta: the budget; a string such as "1e-5000" where no float can hold it.
        order: order or orders of Renyi divergence; without a budget the divergence itself is reported.
        solve: name of a parameter to solve for instead, given both epsilon and delta.
        gates: assertions on the best guarantee such as "epsilon<=1"; report.failed counts the cases that fail one.
        certify: prove every guarantee in ball arithmetic: details["certified"] has what, details["not_certified"] why not.
        risk: what an attacker can do, beside the answer: case.risk.
        fpr: false-positive rates at which risk gives true-positive rates.
        prior: prior probabilities that the record is there, for how often a guess is right.
        baseline: probabilities to guess a secret of the record right without the release.
        advantage: solve for what keeps true-positive less false-positive rate of any attack at most this.
        tpr: solve for what keeps the true-positive rate at fpr at most this.
        success: solve for what keeps how often a guess is right, at prior, at most this.
        reconstruction: solve for what keeps how often a secret is guessed, baseline without, at most this.

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> round(online(records=100, lipschitz=10, smoothness=1, step_size=0.01, diameter=1, c1=100, c2=100,
    ...              decay_exponent=1.5, epsilon=1).value, 8)
    0.04950353
    """

def multi_epoch(
    *,
    algorithm: Word = ...,
    release: Word = ...,
    records: Whole = ...,
    epochs: Whole = ...,
    steps: Whole = ...,
    index: Whole = ...,
    batch_size: Whole = ...,
    last_batch: Word = ...,
    permutation: Word = ...,
    lipschitz: Real = ...,
    loss_class: Word = ...,
    smoothness: Real = ...,
    strong_convexity: Real = ...,
    displacement: Real = ...,
    diameter: Real = ...,
    loss: Word = ...,
    feature_bound: Real = ...,
    label_bound: Real = ...,
    power: Real = ...,
    classes: Whole = ...,
    huber_threshold: Real = ...,
    tube: Real = ...,
    radius: Real = ...,
    regularisation: Real = ...,
    clip: Real = ...,
    model: Word = ...,
    step_size: Real = ...,
    noise_std: Real = ...,
    noise_multiplier: Real = ...,
    laplace_scale: Real = ...,
    noise: Word = ...,
    dimension: Whole = ...,
    langevin_std: Real = ...,
    epoch_epsilon: Real = ...,
    epoch_delta: Real = ...,
    adjacency: Word = ...,
    group_size: Whole = ...,
    epsilon: Real = ...,
    delta: float | str | Iterable[float | str] | None = ...,
    order: float | Iterable[float] = ...,
    solve: str | None = ...,
    gates: str | Sequence[str] = ...,
    certify: bool = ...,
    risk: bool = ...,
    fpr: float | Iterable[float] = ...,
    prior: float | Iterable[float] = ...,
    baseline: float | Iterable[float] = ...,
    advantage: Real = ...,
    tpr: Real = ...,
    success: Real = ...,
    reconstruction: Real = ...,
) -> Report:
    """Return what is true of many passes over the records.

    Args:
        algorithm: what is run and released; one of cyclic, shuffle-once, rotation-epochs, shuffled-epochs, noisy-sgd, noisy-gd, repeated.
        release: what is released: the last iterate alone, or the iterate after every epoch (dp-sgd: every iterate, unless this says last); one of last, epoch.
        records: number of records; one pass uses each once; a whole number from 1 to 1e+15 (records).
        epochs: number of passes over the records; a whole number from 1 to 1e+15 (passes).
        steps: number of steps; a whole number from 1 to 1e+15 (steps).
        index: 1-based position of the differing record (default: the worst one); a whole number from 1 to 1e+15.
        batch_size: records per step; their mean gradient is used; a whole number from 1 to 1e+15 (records).
        last_batch: how left-over records are handled: a short last batch divided by its own size (own) or by the batch size (nominal), no batch (drop), batches that differ by at most one record (balanced), or a short first batch (front); one of own, nominal, drop, balanced, front.
        permutation: whether the random order and its seed stay secret for ever; one of public, secret.
        lipschitz: Lipschitz constant of the loss in the parameter; a number > 0 (gradient units).
        loss_class: what is known of every loss; lipschitz (a bounded gradient only) covers clipping. Default: convex-smooth if a smoothness is given, else lipschitz; one of convex-smooth, convex, smooth, lipschitz.
        smoothness: Lipschitz constant of the gradient of the loss; a number >= 0 (gradient units per parameter unit).
        strong_convexity: strong convexity of the loss: no curvature is below it; 0 when merely convex, negative when weakly convex; a number (gradient units per parameter unit).
        displacement: how far apart a gradient step leaves two points, over the diameter; for Laplace noise in the 1-norm (default: derived from the loss class); a number >= 0.
        diameter: diameter of the constraint set; a number > 0 (parameter units).
        loss: a loss of a linear model, from which its constants follow; one of hinge, absolute, insensitive, logistic, huber, squares, softmax.
        feature_bound: largest norm of a feature vector; a number > 0 (feature units).
        label_bound: largest size of a label (hinge and logistic: labels are +1 and -1); a number >= 0 (label units).
        power: power of the hinge, absolute and insensitive losses; a number >= 1 and <= 2.
        classes: number of classes of the softmax loss, each with a score of its own; a whole number from 2 to 1e+15.
        huber_threshold: size of a residual past which the huber loss is linear; a number > 0 (label units).
        tube: size of a residual up to which the insensitive loss is 0; a number >= 0 (label units).
        radius: radius of a ball around 0 that contains the constraint set; 0 lies in the set; a number > 0 (parameter units).
        regularisation: weight of the regulariser (lambda/2) |w|^2; a number >= 0 (gradient units per parameter unit).
        clip: norm to which every record's gradient is clipped; a number > 0 (gradient units).
        model: what clipping is applied to: a linear model, where the loss of a record is a convex function of one number, <w, x> (an intercept is a feature), so that clipped gradients are those of a convex loss; capped, for a softmax whose slopes are capped and not shortened; or any; one of linear, capped, any.
        step_size: step size; a step is w - eta (gradient + Z); a number > 0 (parameter units per gradient unit).
        noise_std: standard deviation per coordinate of the Gaussian Z; a number > 0 (gradient units).
        noise_multiplier: standard deviation of the noise on the sum of a batch's gradients, divided by the clipping norm (or the Lipschitz constant): noise_std = z x norm / batch_size, for full batches z x norm / records; a number > 0.
        laplace_scale: scale of the Laplace Z (one dimension); a number > 0 (gradient units).
        noise: kind of noise, where its scale is derived or solved for; one of gaussian, laplace.
        dimension: dimension of the parameter, for Laplace noise and for risks (default 1); a whole number from 1 to 1e+15 (coordinates).
        langevin_std: sigma of w - eta gradient + sqrt(2 eta) sigma N(0, 1), in place of noise_std; a number > 0.
        epoch_epsilon: epsilon of one pass, of an algorithm known by its (epsilon, delta) alone; a number >= 0.
        epoch_delta: delta of one pass, 0 for pure privacy; a number >= 0 and < 1.
        adjacency: how neighbouring data sets differ: one record replaced by another, or by a null record (zero gradient; also called zero-out); with dp-sgd also a record added or removed, or either (add-remove); one of replace-one, null-record, add-remove, add, remove.
        group_size: this many records differ, such as those of one person (default: 1); a whole number from 1 to 1e+15 (records).
        epsilon: the budget.
        delta: the budget; a string such as "1e-5000" where no float can hold it.
        order: order or orders of Renyi divergence; without a budget the divergence itself is reported.
        solve: name of a parameter to solve for instead, given both epsilon and delta.
        gates: assertions on the best guarantee such as "epsilon<=1"; report.failed counts the cases that fail one.
        certify: prove every guarantee in ball arithmetic: details["certified"] has what, details["not_certified"] why not.
        risk: what an attacker can do, beside the answer: case.risk.
        fpr: false-positive rates at which risk gives true-positive rates.
        prior: prior probabilities that the record is there, for how often a guess is right.
        baseline: probabilities to guess a secret of the record right without the release.
        advantage: solve for what keeps true-positive less false-positive rate of any attack at most this.
        tpr: solve for what keeps the true-positive rate at fpr at most this.
        success: solve for what keeps how often a guess is right, at prior, at most this.
        reconstruction: solve for what keeps how often a secret is guessed, baseline without, at most this.

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> round(multi_epoch(records=60000, epochs=20, batch_size=250, lipschitz=1, smoothness=1, step_size=0.1,
    ...                   noise_std=0.05, delta=1e-6).value, 9)
    0.68377813
    """

def dp_sgd(
    *,
    algorithm: Word = ...,
    release: Word = ...,
    records: Whole = ...,
    epochs: Whole = ...,
    steps: Whole = ...,
    batch_size: Whole = ...,
    sample_rate: Real = ...,
    sampling: Word = ...,
    max_batch_size: Whole = ...,
    uses: Whole = ...,
    schedule_factor: Real = ...,
    clip: Real = ...,
    noise_multiplier: Real = ...,
    noise_std: Real = ...,
    model: Word = ...,
    smoothness: Real = ...,
    step_size: Real = ...,
    diameter: Real = ...,
    loss: Word = ...,
    feature_bound: Real = ...,
    label_bound: Real = ...,
    power: Real = ...,
    classes: Whole = ...,
    huber_threshold: Real = ...,
    tube: Real = ...,
    radius: Real = ...,
    regularisation: Real = ...,
    adjacency: Word = ...,
    group_size: Whole = ...,
    lipschitz: Real = ...,
    holder_exponent: Real = ...,
    holder_constant: Real = ...,
    gradient_at_zero: Real = ...,
    loss_at_zero: Real = ...,
    strong_convexity: Real = ...,
    schedule: str | os.PathLike[str] | None = ...,
    epsilon: Real = ...,
    delta: float | str | Iterable[float | str] | None = ...,
    order: float | Iterable[float] = ...,
    solve: str | None = ...,
    gates: str | Sequence[str] = ...,
    certify: bool = ...,
    risk: bool = ...,
    fpr: float | Iterable[float] = ...,
    prior: float | Iterable[float] = ...,
    baseline: float | Iterable[float] = ...,
    advantage: Real = ...,
    tpr: Real = ...,
    success: Real = ...,
    reconstruction: Real = ...,
) -> Report:
    """Return what is true of DP-SGD, as Opacus and others run it: clipped gradients, noise on the sum of a batch.

    ``sampling`` says how batches are drawn, and must be given: the answer depends on it. ``adjacency`` is replace-one
    unless it is given; accountants of other libraries assume ``add-remove``. `epsilon` and `noise_multiplier` answer by
    one float. Two more algorithms need no clipping and release the average iterate: ``dp-sgd-gradient`` with noise in
    every step, ``dp-sgd-output`` with noise on the average alone.

    Args:
        algorithm: what is run and released; one of dp-sgd, dp-sgd-gradient, dp-sgd-output.
        release: what is released: the last iterate alone, or the iterate after every epoch (dp-sgd: every iterate, unless this says last); one of last, epoch.
        records: number of records; one pass uses each once; a whole number from 1 to 1e+15 (records).
        epochs: number of passes over the records; a whole number from 1 to 1e+15 (passes).
        steps: number of steps; a whole number from 1 to 1e+15 (steps).
        batch_size: records per step; their mean gradient is used; a whole number from 1 to 1e+15 (records).
        sample_rate: probability with which a record is in the batch of a step; a number > 0 and <= 1.
        sampling: how a batch is drawn: every record by itself with the same probability (poisson); batch_size records, uniformly, afresh in every step (fixed); batch_size draws of single records, which may come several times (with-replacement); every epoch each record in one step chosen at random (balls-in-bins); every epoch the records shuffled and cut into batches (shuffle); all records (full); one of poisson, fixed, with-replacement, balls-in-bins, shuffle, full.
        max_batch_size: largest size of a Poisson batch: a larger one is cut to this many records, uniformly; a whole number from 1 to 1e+15 (records).
        uses: steps of an epoch that each record is in, with balls-in-bins; an epoch then has uses x records/batch_size steps (default: 1); a whole number from 1 to 1e+15 (steps).
        schedule_factor: factor on every noise scale of the schedule; a number > 0.
        clip: norm to which every record's gradient is clipped; a number > 0 (gradient units).
        noise_multiplier: standard deviation of the noise on the sum of a batch's gradients, divided by the clipping norm (or the Lipschitz constant): noise_std = z x norm / batch_size, for full batches z x norm / records; a number > 0.
        noise_std: standard deviation per coordinate of the Gaussian Z; a number > 0 (gradient units).
        model: what clipping is applied to: a linear model, where the loss of a record is a convex function of one number, <w, x> (an intercept is a feature), so that clipped gradients are those of a convex loss; capped, for a softmax whose slopes are capped and not shortened; or any; one of linear, capped, any.
        smoothness: Lipschitz constant of the gradient of the loss; a number >= 0 (gradient units per parameter unit).
        step_size: step size; a step is w - eta (gradient + Z); a number > 0 (parameter units per gradient unit).
        diameter: diameter of the constraint set; a number > 0 (parameter units).
        loss: a loss of a linear model, from which its constants follow; one of hinge, absolute, insensitive, logistic, huber, squares, softmax.
        feature_bound: largest norm of a feature vector; a number > 0 (feature units).
        label_bound: largest size of a label (hinge and logistic: labels are +1 and -1); a number >= 0 (label units).
        power: power of the hinge, absolute and insensitive losses; a number >= 1 and <= 2.
        classes: number of classes of the softmax loss, each with a score of its own; a whole number from 2 to 1e+15.
        huber_threshold: size of a residual past which the huber loss is linear; a number > 0 (label units).
        tube: size of a residual up to which the insensitive loss is 0; a number >= 0 (label units).
        radius: radius of a ball around 0 that contains the constraint set; 0 lies in the set; a number > 0 (parameter units).
        regularisation: weight of the regulariser (lambda/2) |w|^2; a number >= 0 (gradient units per parameter unit).
        adjacency: how neighbouring data sets differ: one record replaced by another, or by a null record (zero gradient; also called zero-out); with dp-sgd also a record added or removed, or either (add-remove); one of replace-one, null-record, add-remove, add, remove.
        group_size: this many records differ, such as those of one person (default: 1); a whole number from 1 to 1e+15 (records).
        lipschitz: Lipschitz constant of the loss in the parameter; a number > 0 (gradient units).
        holder_exponent: exponent of |grad l(w) - grad l(v)| <= L |w - v|^alpha, for all w, v: 1 where smooth, 0 where Lipschitz; a number >= 0 and <= 1.
        holder_constant: constant of |grad l(w) - grad l(v)| <= L |w - v|^alpha, for all w and v; a number > 0 (gradient units per parameter unit^alpha).
        gradient_at_zero: bound on the gradient of every record's loss at w = 0; a number >= 0 (gradient units).
        loss_at_zero: bound on every record's loss at w = 0; losses are >= 0; a number >= 0 (loss units).
        strong_convexity: strong convexity of the loss: no curvature is below it; 0 when merely convex, negative when weakly convex; a number (gradient units per parameter unit).
        schedule: path of per-step values (CSV, NPY, NPZ, YAML).
        epsilon: the budget.
        delta: the budget; a string such as "1e-5000" where no float can hold it.
        order: order or orders of Renyi divergence; without a budget the divergence itself is reported.
        solve: name of a parameter to solve for instead, given both epsilon and delta.
        gates: assertions on the best guarantee such as "epsilon<=1"; report.failed counts the cases that fail one.
        certify: prove every guarantee in ball arithmetic: details["certified"] has what, details["not_certified"] why not.
        risk: what an attacker can do, beside the answer: case.risk.
        fpr: false-positive rates at which risk gives true-positive rates.
        prior: prior probabilities that the record is there, for how often a guess is right.
        baseline: probabilities to guess a secret of the record right without the release.
        advantage: solve for what keeps true-positive less false-positive rate of any attack at most this.
        tpr: solve for what keeps the true-positive rate at fpr at most this.
        success: solve for what keeps how often a guess is right, at prior, at most this.
        reconstruction: solve for what keeps how often a secret is guessed, baseline without, at most this.

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> report = dp_sgd(records=50000, batch_size=500, epochs=20, noise_multiplier=1.1, sampling="shuffle",
    ...                 adjacency="zero-out", delta=1e-5)
    >>> round(report.epsilon, 4)
    24.9225
    """

def dp_ftrl(
    *,
    records: Whole = ...,
    epochs: Whole = ...,
    steps: Whole = ...,
    batch_size: Whole = ...,
    sample_rate: Real = ...,
    sampling: Word = ...,
    mechanism: Word = ...,
    bands: Whole = ...,
    participations: Whole = ...,
    separation: Whole = ...,
    clip: Real = ...,
    noise_multiplier: Real = ...,
    scaling: Word = ...,
    momentum: Real = ...,
    decay: Real = ...,
    cool_down: Real = ...,
    adjacency: Word = ...,
    group_size: Whole = ...,
    schedule: str | os.PathLike[str] | None = ...,
    epsilon: Real = ...,
    delta: float | str | Iterable[float | str] | None = ...,
    order: float | Iterable[float] = ...,
    solve: str | None = ...,
    gates: str | Sequence[str] = ...,
    certify: bool = ...,
    risk: bool = ...,
    fpr: float | Iterable[float] = ...,
    prior: float | Iterable[float] = ...,
    baseline: float | Iterable[float] = ...,
    advantage: Real = ...,
    tpr: Real = ...,
    success: Real = ...,
    reconstruction: Real = ...,
) -> Report:
    """Return what is true of SGD on clipped gradients whose noise a matrix correlates.

    Args:
        records: number of records; one pass uses each once; a whole number from 1 to 1e+15 (records).
        epochs: number of passes over the records; a whole number from 1 to 1e+15 (passes).
        steps: number of steps; a whole number from 1 to 1e+15 (steps).
        batch_size: records per step; their mean gradient is used; a whole number from 1 to 1e+15 (records).
        sample_rate: probability with which a record is in the batch of a step; a number > 0 and <= 1.
        sampling: how a batch is drawn: every record by itself with the same probability (poisson); batch_size records, uniformly, afresh in every step (fixed); batch_size draws of single records, which may come several times (with-replacement); every epoch each record in one step chosen at random (balls-in-bins); every epoch the records shuffled and cut into batches (shuffle); all records (full); one of poisson, fixed, with-replacement, balls-in-bins, shuffle, full.
        mechanism: which matrix C correlates the noise of the steps: none (identity), a binary tree, the square root of the matrix of prefix sums (sqrt), its first bands, the inverse of the bands of its inverse (bisr), or a sum of geometric sequences close to it (blt), or that of --matrix FILE (file); best takes the one with the least noise in the iterates; one of identity, tree, sqrt, banded-sqrt, bisr, blt, file, best.
        bands: bands of the matrix C, or of its inverse (bisr); a whole number from 1 to 1e+15 (bands).
        participations: in how many steps a record is used at most (default: epochs); a whole number from 1 to 1e+15 (steps).
        separation: steps from one use of a record to its next one, at least (default: those of an epoch); a whole number from 1 to 1e+15 (steps).
        clip: norm to which every record's gradient is clipped; a number > 0 (gradient units).
        noise_multiplier: standard deviation of the noise on the sum of a batch's gradients, divided by the clipping norm (or the Lipschitz constant): noise_std = z x norm / batch_size, for full batches z x norm / records; a number > 0.
        scaling: what the noise multiplier is over: the clipping norm alone, with noise added to C times the gradients (matrix); times the largest norm of a column of C (columns); or times what one record moves C times the gradients by (sensitivity); one of matrix, columns, sensitivity.
        momentum: share of the last update that the next one keeps; for the noise in the iterates alone; a number >= 0 and < 1.
        decay: share of the iterate that a step takes away: learning rate times weight decay; for the noise in iterates alone; a number >= 0 and < 1.
        cool_down: share of the steps, the last ones, over which the learning rate falls to 0; for the noise in the iterates alone; a number >= 0 and <= 1.
        adjacency: how neighbouring data sets differ: one record replaced by another, or by a null record (zero gradient; also called zero-out); with dp-sgd also a record added or removed, or either (add-remove); one of replace-one, null-record, add-remove, add, remove.
        group_size: this many records differ, such as those of one person (default: 1); a whole number from 1 to 1e+15 (records).
        schedule: path of per-step values (CSV, NPY, NPZ, YAML).
        epsilon: the budget.
        delta: the budget; a string such as "1e-5000" where no float can hold it.
        order: order or orders of Renyi divergence; without a budget the divergence itself is reported.
        solve: name of a parameter to solve for instead, given both epsilon and delta.
        gates: assertions on the best guarantee such as "epsilon<=1"; report.failed counts the cases that fail one.
        certify: prove every guarantee in ball arithmetic: details["certified"] has what, details["not_certified"] why not.
        risk: what an attacker can do, beside the answer: case.risk.
        fpr: false-positive rates at which risk gives true-positive rates.
        prior: prior probabilities that the record is there, for how often a guess is right.
        baseline: probabilities to guess a secret of the record right without the release.
        advantage: solve for what keeps true-positive less false-positive rate of any attack at most this.
        tpr: solve for what keeps the true-positive rate at fpr at most this.
        success: solve for what keeps how often a guess is right, at prior, at most this.
        reconstruction: solve for what keeps how often a secret is guessed, baseline without, at most this.

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> report = dp_ftrl(mechanism="sqrt", steps=1000, epochs=5, noise_multiplier=5, adjacency="zero-out", delta=1e-6)
    >>> round(report.cases[0].best.value, 9)
    5.096496116
    """

def utility(
    *,
    algorithm: Word = ...,
    records: Whole = ...,
    dimension: Whole = ...,
    index: Whole = ...,
    public_records: Whole = ...,
    tasks: Whole = ...,
    steps: Whole = ...,
    lipschitz: Real = ...,
    smoothness: Real = ...,
    strong_convexity: Real = ...,
    holder_exponent: Real = ...,
    holder_constant: Real = ...,
    gradient_at_zero: Real = ...,
    loss_at_zero: Real = ...,
    loss: Word = ...,
    feature_bound: Real = ...,
    label_bound: Real = ...,
    power: Real = ...,
    classes: Whole = ...,
    huber_threshold: Real = ...,
    tube: Real = ...,
    radius: Real = ...,
    regularisation: Real = ...,
    step_size: Real = ...,
    noise_std: Real = ...,
    failure_probability: Real = ...,
    epsilon: Real = ...,
    delta: float | str | Iterable[float | str] | None = ...,
    order: float | Iterable[float] = ...,
    solve: str | None = ...,
    gates: str | Sequence[str] = ...,
    certify: bool = ...,
    risk: bool = ...,
    fpr: float | Iterable[float] = ...,
    prior: float | Iterable[float] = ...,
    baseline: float | Iterable[float] = ...,
    advantage: Real = ...,
    tpr: Real = ...,
    success: Real = ...,
    reconstruction: Real = ...,
) -> Report:
    """Return what a budget costs: every bound on the excess risk that applies, with the run that has it.

    The domain lies in a ball of the given ``radius`` about 0. A loss is given by name with what its constants depend
    on, or by its constants.

    Args:
        algorithm: what is run and released; one of stop, skip, local, noisy-gd, dp-sgd-gradient, dp-sgd-output.
        records: number of records; one pass uses each once; a whole number from 1 to 1e+15 (records).
        dimension: dimension of the parameter, for Laplace noise and for risks (default 1); a whole number from 1 to 1e+15 (coordinates).
        index: 1-based position of the differing record (default: the worst one); a whole number from 1 to 1e+15.
        public_records: how many of the records need no privacy; they come last; a whole number from 0 to 1e+15 (records).
        tasks: number of losses trained on the same records; a whole number from 1 to 1e+15 (losses).
        steps: number of steps; a whole number from 1 to 1e+15 (steps).
        lipschitz: Lipschitz constant of the loss in the parameter; a number > 0 (gradient units).
        smoothness: Lipschitz constant of the gradient of the loss; a number >= 0 (gradient units per parameter unit).
        strong_convexity: strong convexity of the loss: no curvature is below it; 0 when merely convex, negative when weakly convex; a number (gradient units per parameter unit).
        holder_exponent: exponent of |grad l(w) - grad l(v)| <= L |w - v|^alpha, for all w, v: 1 where smooth, 0 where Lipschitz; a number >= 0 and <= 1.
        holder_constant: constant of |grad l(w) - grad l(v)| <= L |w - v|^alpha, for all w and v; a number > 0 (gradient units per parameter unit^alpha).
        gradient_at_zero: bound on the gradient of every record's loss at w = 0; a number >= 0 (gradient units).
        loss_at_zero: bound on every record's loss at w = 0; losses are >= 0; a number >= 0 (loss units).
        loss: a loss of a linear model, from which its constants follow; one of hinge, absolute, insensitive, logistic, huber, squares, softmax.
        feature_bound: largest norm of a feature vector; a number > 0 (feature units).
        label_bound: largest size of a label (hinge and logistic: labels are +1 and -1); a number >= 0 (label units).
        power: power of the hinge, absolute and insensitive losses; a number >= 1 and <= 2.
        classes: number of classes of the softmax loss, each with a score of its own; a whole number from 2 to 1e+15.
        huber_threshold: size of a residual past which the huber loss is linear; a number > 0 (label units).
        tube: size of a residual up to which the insensitive loss is 0; a number >= 0 (label units).
        radius: radius of a ball around 0 that contains the constraint set; 0 lies in the set; a number > 0 (parameter units).
        regularisation: weight of the regulariser (lambda/2) |w|^2; a number >= 0 (gradient units per parameter unit).
        step_size: step size; a step is w - eta (gradient + Z); a number > 0 (parameter units per gradient unit).
        noise_std: standard deviation per coordinate of the Gaussian Z; a number > 0 (gradient units).
        failure_probability: probability with which a bound on the risk may fail; a number > 0 and < 1.
        epsilon: the budget.
        delta: the budget; a string such as "1e-5000" where no float can hold it.
        order: order or orders of Renyi divergence; without a budget the divergence itself is reported.
        solve: name of a parameter to solve for instead, given both epsilon and delta.
        gates: assertions on the best guarantee such as "epsilon<=1"; report.failed counts the cases that fail one.
        certify: prove every guarantee in ball arithmetic: details["certified"] has what, details["not_certified"] why not.
        risk: what an attacker can do, beside the answer: case.risk.
        fpr: false-positive rates at which risk gives true-positive rates.
        prior: prior probabilities that the record is there, for how often a guess is right.
        baseline: probabilities to guess a secret of the record right without the release.
        advantage: solve for what keeps true-positive less false-positive rate of any attack at most this.
        tpr: solve for what keeps the true-positive rate at fpr at most this.
        success: solve for what keeps how often a guess is right, at prior, at most this.
        reconstruction: solve for what keeps how often a secret is guessed, baseline without, at most this.

    Returns:
        A report as in `rdp`. Each result's ``value`` is an excess risk, and its ``details`` have ``algorithms``,
        ``noise_std``, ``step_size``, ``steps`` and ``vacuous`` where the value says nothing.

    Raises:
        SpecError, NotApplicable: as in `rdp`.

    >>> case = utility(loss="logistic", feature_bound=1.0, records=10**5, dimension=20, radius=1.0, algorithm="stop",
    ...                epsilon=1.0, delta=1e-6).cases[0]
    >>> case.best.bound, round(case.best.value, 5)
    ('utility.stop_from_centre', 0.08739)
    """

def statement(
    *,
    algorithm: Word = ...,
    records: Whole = ...,
    index: Whole = ...,
    batch_size: Whole = ...,
    last_batch: Word = ...,
    lipschitz: Real = ...,
    smoothness: Real = ...,
    strong_convexity: Real = ...,
    step_size: Real = ...,
    noise_std: Real = ...,
    noise_multiplier: Real = ...,
    diameter: Real = ...,
    adjacency: Word = ...,
    group_size: Whole = ...,
    loss: Word = ...,
    feature_bound: Real = ...,
    label_bound: Real = ...,
    power: Real = ...,
    classes: Whole = ...,
    huber_threshold: Real = ...,
    tube: Real = ...,
    radius: Real = ...,
    regularisation: Real = ...,
    clip: Real = ...,
    model: Word = ...,
    loss_class: Word = ...,
    displacement: Real = ...,
    laplace_scale: Real = ...,
    noise: Word = ...,
    dimension: Whole = ...,
    permutation: Word = ...,
    c1: Real = ...,
    c2: Real = ...,
    release: Word = ...,
    epochs: Whole = ...,
    steps: Whole = ...,
    langevin_std: Real = ...,
    epoch_epsilon: Real = ...,
    epoch_delta: Real = ...,
    window: Whole = ...,
    decay_exponent: Real = ...,
    schedule_factor: Real = ...,
    sample_rate: Real = ...,
    sampling: Word = ...,
    max_batch_size: Whole = ...,
    uses: Whole = ...,
    holder_exponent: Real = ...,
    holder_constant: Real = ...,
    gradient_at_zero: Real = ...,
    loss_at_zero: Real = ...,
    mechanism: Word = ...,
    bands: Whole = ...,
    participations: Whole = ...,
    separation: Whole = ...,
    scaling: Word = ...,
    momentum: Real = ...,
    decay: Real = ...,
    cool_down: Real = ...,
    schedule: str | os.PathLike[str] | None = ...,
    epsilon: Real = ...,
    delta: float | str | Iterable[float | str] | None = ...,
    order: float | Iterable[float] = ...,
    solve: str | None = ...,
    gates: str | Sequence[str] = ...,
    certify: bool = ...,
    risk: bool = ...,
    fpr: float | Iterable[float] = ...,
    prior: float | Iterable[float] = ...,
    baseline: float | Iterable[float] = ...,
    advantage: Real = ...,
    tpr: Real = ...,
    success: Real = ...,
    reconstruction: Real = ...,
) -> str:
    """Return the paragraph for a paper's appendix or a model card about the described run, one for each case.

    Args:
        algorithm: what is run and released; one of pnsgd, skip, stop, local, shuffled, rotation, shuffled-stop, cyclic, shuffle-once, rotation-epochs, shuffled-epochs, noisy-sgd, noisy-gd, repeated, online, dp-sgd, dp-sgd-gradient, dp-sgd-output, correlated.
        records: number of records; one pass uses each once; a whole number from 1 to 1e+15 (records).
        index: 1-based position of the differing record (default: the worst one); a whole number from 1 to 1e+15.
        batch_size: records per step; their mean gradient is used; a whole number from 1 to 1e+15 (records).
        last_batch: how left-over records are handled: a short last batch divided by its own size (own) or by the batch size (nominal), no batch (drop), batches that differ by at most one record (balanced), or a short first batch (front); one of own, nominal, drop, balanced, front.
        lipschitz: Lipschitz constant of the loss in the parameter; a number > 0 (gradient units).
        smoothness: Lipschitz constant of the gradient of the loss; a number >= 0 (gradient units per parameter unit).
        strong_convexity: strong convexity of the loss: no curvature is below it; 0 when merely convex, negative when weakly convex; a number (gradient units per parameter unit).
        step_size: step size; a step is w - eta (gradient + Z); a number > 0 (parameter units per gradient unit).
        noise_std: standard deviation per coordinate of the Gaussian Z; a number > 0 (gradient units).
        noise_multiplier: standard deviation of the noise on the sum of a batch's gradients, divided by the clipping norm (or the Lipschitz constant): noise_std = z x norm / batch_size, for full batches z x norm / records; a number > 0.
        diameter: diameter of the constraint set; a number > 0 (parameter units).
        adjacency: how neighbouring data sets differ: one record replaced by another, or by a null record (zero gradient; also called zero-out); with dp-sgd also a record added or removed, or either (add-remove); one of replace-one, null-record, add-remove, add, remove.
        group_size: this many records differ, such as those of one person (default: 1); a whole number from 1 to 1e+15 (records).
        loss: a loss of a linear model, from which its constants follow; one of hinge, absolute, insensitive, logistic, huber, squares, softmax.
        feature_bound: largest norm of a feature vector; a number > 0 (feature units).
        label_bound: largest size of a label (hinge and logistic: labels are +1 and -1); a number >= 0 (label units).
        power: power of the hinge, absolute and insensitive losses; a number >= 1 and <= 2.
        classes: number of classes of the softmax loss, each with a score of its own; a whole number from 2 to 1e+15.
        huber_threshold: size of a residual past which the huber loss is linear; a number > 0 (label units).
        tube: size of a residual up to which the insensitive loss is 0; a number >= 0 (label units).
        radius: radius of a ball around 0 that contains the constraint set; 0 lies in the set; a number > 0 (parameter units).
        regularisation: weight of the regulariser (lambda/2) |w|^2; a number >= 0 (gradient units per parameter unit).
        clip: norm to which every record's gradient is clipped; a number > 0 (gradient units).
        model: what clipping is applied to: a linear model, where the loss of a record is a convex function of one number, <w, x> (an intercept is a feature), so that clipped gradients are those of a convex loss; capped, for a softmax whose slopes are capped and not shortened; or any; one of linear, capped, any.
        loss_class: what is known of every loss; lipschitz (a bounded gradient only) covers clipping. Default: convex-smooth if a smoothness is given, else lipschitz; one of convex-smooth, convex, smooth, lipschitz.
        displacement: how far apart a gradient step leaves two points, over the diameter; for Laplace noise in the 1-norm (default: derived from the loss class); a number >= 0.
        laplace_scale: scale of the Laplace Z (one dimension); a number > 0 (gradient units).
        noise: kind of noise, where its scale is derived or solved for; one of gaussian, laplace.
        dimension: dimension of the parameter, for Laplace noise and for risks (default 1); a whole number from 1 to 1e+15 (coordinates).
        permutation: whether the random order and its seed stay secret for ever; one of public, secret.
        c1: constant of the noise schedule; a number > 0.
        c2: constant of the noise schedule; a number.
        release: what is released: the last iterate alone, or the iterate after every epoch (dp-sgd: every iterate, unless this says last); one of last, epoch.
        epochs: number of passes over the records; a whole number from 1 to 1e+15 (passes).
        steps: number of steps; a whole number from 1 to 1e+15 (steps).
        langevin_std: sigma of w - eta gradient + sqrt(2 eta) sigma N(0, 1), in place of noise_std; a number > 0.
        epoch_epsilon: epsilon of one pass, of an algorithm known by its (epsilon, delta) alone; a number >= 0.
        epoch_delta: delta of one pass, 0 for pure privacy; a number >= 0 and < 1.
        window: cover every record that at least this many others follow; a whole number from 0 to 1e+15 (records).
        decay_exponent: exponent of the noise schedule of a stream; a number > 0 and <= 64.
        schedule_factor: factor on every noise scale of the schedule; a number > 0.
        sample_rate: probability with which a record is in the batch of a step; a number > 0 and <= 1.
        sampling: how a batch is drawn: every record by itself with the same probability (poisson); batch_size records, uniformly, afresh in every step (fixed); batch_size draws of single records, which may come several times (with-replacement); every epoch each record in one step chosen at random (balls-in-bins); every epoch the records shuffled and cut into batches (shuffle); all records (full); one of poisson, fixed, with-replacement, balls-in-bins, shuffle, full.
        max_batch_size: largest size of a Poisson batch: a larger one is cut to this many records, uniformly; a whole number from 1 to 1e+15 (records).
        uses: steps of an epoch that each record is in, with balls-in-bins; an epoch then has uses x records/batch_size steps (default: 1); a whole number from 1 to 1e+15 (steps).
        holder_exponent: exponent of |grad l(w) - grad l(v)| <= L |w - v|^alpha, for all w, v: 1 where smooth, 0 where Lipschitz; a number >= 0 and <= 1.
        holder_constant: constant of |grad l(w) - grad l(v)| <= L |w - v|^alpha, for all w and v; a number > 0 (gradient units per parameter unit^alpha).
        gradient_at_zero: bound on the gradient of every record's loss at w = 0; a number >= 0 (gradient units).
        loss_at_zero: bound on every record's loss at w = 0; losses are >= 0; a number >= 0 (loss units).
        mechanism: which matrix C correlates the noise of the steps: none (identity), a binary tree, the square root of the matrix of prefix sums (sqrt), its first bands, the inverse of the bands of its inverse (bisr), or a sum of geometric sequences close to it (blt), or that of --matrix FILE (file); best takes the one with the least noise in the iterates; one of identity, tree, sqrt, banded-sqrt, bisr, blt, file, best.
        bands: bands of the matrix C, or of its inverse (bisr); a whole number from 1 to 1e+15 (bands).
        participations: in how many steps a record is used at most (default: epochs); a whole number from 1 to 1e+15 (steps).
        separation: steps from one use of a record to its next one, at least (default: those of an epoch); a whole number from 1 to 1e+15 (steps).
        scaling: what the noise multiplier is over: the clipping norm alone, with noise added to C times the gradients (matrix); times the largest norm of a column of C (columns); or times what one record moves C times the gradients by (sensitivity); one of matrix, columns, sensitivity.
        momentum: share of the last update that the next one keeps; for the noise in the iterates alone; a number >= 0 and < 1.
        decay: share of the iterate that a step takes away: learning rate times weight decay; for the noise in iterates alone; a number >= 0 and < 1.
        cool_down: share of the steps, the last ones, over which the learning rate falls to 0; for the noise in the iterates alone; a number >= 0 and <= 1.
        schedule: path of per-step values (CSV, NPY, NPZ, YAML).
        epsilon: the budget.
        delta: the budget; a string such as "1e-5000" where no float can hold it.
        order: order or orders of Renyi divergence; without a budget the divergence itself is reported.
        solve: name of a parameter to solve for instead, given both epsilon and delta.
        gates: assertions on the best guarantee such as "epsilon<=1"; report.failed counts the cases that fail one.
        certify: prove every guarantee in ball arithmetic: details["certified"] has what, details["not_certified"] why not.
        risk: what an attacker can do, beside the answer: case.risk.
        fpr: false-positive rates at which risk gives true-positive rates.
        prior: prior probabilities that the record is there, for how often a guess is right.
        baseline: probabilities to guess a secret of the record right without the release.
        advantage: solve for what keeps true-positive less false-positive rate of any attack at most this.
        tpr: solve for what keeps the true-positive rate at fpr at most this.
        success: solve for what keeps how often a guess is right, at prior, at most this.
        reconstruction: solve for what keeps how often a secret is guessed, baseline without, at most this.

    Returns:
        Plain text: what is run, what holds of it, and every assumption.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.
    """

def explain(
    *ids: str,
    algorithm: Word = ...,
    records: Whole = ...,
    index: Whole = ...,
    batch_size: Whole = ...,
    last_batch: Word = ...,
    lipschitz: Real = ...,
    smoothness: Real = ...,
    strong_convexity: Real = ...,
    step_size: Real = ...,
    noise_std: Real = ...,
    noise_multiplier: Real = ...,
    diameter: Real = ...,
    adjacency: Word = ...,
    group_size: Whole = ...,
    loss: Word = ...,
    feature_bound: Real = ...,
    label_bound: Real = ...,
    power: Real = ...,
    classes: Whole = ...,
    huber_threshold: Real = ...,
    tube: Real = ...,
    radius: Real = ...,
    regularisation: Real = ...,
    clip: Real = ...,
    model: Word = ...,
    loss_class: Word = ...,
    displacement: Real = ...,
    laplace_scale: Real = ...,
    noise: Word = ...,
    dimension: Whole = ...,
    permutation: Word = ...,
    c1: Real = ...,
    c2: Real = ...,
    release: Word = ...,
    epochs: Whole = ...,
    steps: Whole = ...,
    langevin_std: Real = ...,
    epoch_epsilon: Real = ...,
    epoch_delta: Real = ...,
    window: Whole = ...,
    decay_exponent: Real = ...,
    schedule_factor: Real = ...,
    sample_rate: Real = ...,
    sampling: Word = ...,
    max_batch_size: Whole = ...,
    uses: Whole = ...,
    holder_exponent: Real = ...,
    holder_constant: Real = ...,
    gradient_at_zero: Real = ...,
    loss_at_zero: Real = ...,
    mechanism: Word = ...,
    bands: Whole = ...,
    participations: Whole = ...,
    separation: Whole = ...,
    scaling: Word = ...,
    momentum: Real = ...,
    decay: Real = ...,
    cool_down: Real = ...,
    schedule: str | os.PathLike[str] | None = ...,
    epsilon: Real = ...,
    delta: float | str | Iterable[float | str] | None = ...,
    order: float | Iterable[float] = ...,
    solve: str | None = ...,
    gates: str | Sequence[str] = ...,
    certify: bool = ...,
    risk: bool = ...,
    fpr: float | Iterable[float] = ...,
    prior: float | Iterable[float] = ...,
    baseline: float | Iterable[float] = ...,
    advantage: Real = ...,
    tpr: Real = ...,
    success: Real = ...,
    reconstruction: Real = ...,
) -> str:
    """Return what the bounds ``ids`` say, of the run if one is described; without ids, what the best one for it says.

    Args:
        algorithm: what is run and released; one of pnsgd, skip, stop, local, shuffled, rotation, shuffled-stop, cyclic, shuffle-once, rotation-epochs, shuffled-epochs, noisy-sgd, noisy-gd, repeated, online, dp-sgd, dp-sgd-gradient, dp-sgd-output, correlated.
        records: number of records; one pass uses each once; a whole number from 1 to 1e+15 (records).
        index: 1-based position of the differing record (default: the worst one); a whole number from 1 to 1e+15.
        batch_size: records per step; their mean gradient is used; a whole number from 1 to 1e+15 (records).
        last_batch: how left-over records are handled: a short last batch divided by its own size (own) or by the batch size (nominal), no batch (drop), batches that differ by at most one record (balanced), or a short first batch (front); one of own, nominal, drop, balanced, front.
        lipschitz: Lipschitz constant of the loss in the parameter; a number > 0 (gradient units).
        smoothness: Lipschitz constant of the gradient of the loss; a number >= 0 (gradient units per parameter unit).
        strong_convexity: strong convexity of the loss: no curvature is below it; 0 when merely convex, negative when weakly convex; a number (gradient units per parameter unit).
        step_size: step size; a step is w - eta (gradient + Z); a number > 0 (parameter units per gradient unit).
        noise_std: standard deviation per coordinate of the Gaussian Z; a number > 0 (gradient units).
        noise_multiplier: standard deviation of the noise on the sum of a batch's gradients, divided by the clipping norm (or the Lipschitz constant): noise_std = z x norm / batch_size, for full batches z x norm / records; a number > 0.
        diameter: diameter of the constraint set; a number > 0 (parameter units).
        adjacency: how neighbouring data sets differ: one record replaced by another, or by a null record (zero gradient; also called zero-out); with dp-sgd also a record added or removed, or either (add-remove); one of replace-one, null-record, add-remove, add, remove.
        group_size: this many records differ, such as those of one person (default: 1); a whole number from 1 to 1e+15 (records).
        loss: a loss of a linear model, from which its constants follow; one of hinge, absolute, insensitive, logistic, huber, squares, softmax.
        feature_bound: largest norm of a feature vector; a number > 0 (feature units).
        label_bound: largest size of a label (hinge and logistic: labels are +1 and -1); a number >= 0 (label units).
        power: power of the hinge, absolute and insensitive losses; a number >= 1 and <= 2.
        classes: number of classes of the softmax loss, each with a score of its own; a whole number from 2 to 1e+15.
        huber_threshold: size of a residual past which the huber loss is linear; a number > 0 (label units).
        tube: size of a residual up to which the insensitive loss is 0; a number >= 0 (label units).
        radius: radius of a ball around 0 that contains the constraint set; 0 lies in the set; a number > 0 (parameter units).
        regularisation: weight of the regulariser (lambda/2) |w|^2; a number >= 0 (gradient units per parameter unit).
        clip: norm to which every record's gradient is clipped; a number > 0 (gradient units).
        model: what clipping is applied to: a linear model, where the loss of a record is a convex function of one number, <w, x> (an intercept is a feature), so that clipped gradients are those of a convex loss; capped, for a softmax whose slopes are capped and not shortened; or any; one of linear, capped, any.
        loss_class: what is known of every loss; lipschitz (a bounded gradient only) covers clipping. Default: convex-smooth if a smoothness is given, else lipschitz; one of convex-smooth, convex, smooth, lipschitz.
        displacement: how far apart a gradient step leaves two points, over the diameter; for Laplace noise in the 1-norm (default: derived from the loss class); a number >= 0.
        laplace_scale: scale of the Laplace Z (one dimension); a number > 0 (gradient units).
        noise: kind of noise, where its scale is derived or solved for; one of gaussian, laplace.
        dimension: dimension of the parameter, for Laplace noise and for risks (default 1); a whole number from 1 to 1e+15 (coordinates).
        permutation: whether the random order and its seed stay secret for ever; one of public, secret.
        c1: constant of the noise schedule; a number > 0.
        c2: constant of the noise schedule; a number.
        release: what is released: the last iterate alone, or the iterate after every epoch (dp-sgd: every iterate, unless this says last); one of last, epoch.
        epochs: number of passes over the records; a whole number from 1 to 1e+15 (passes).
        steps: number of steps; a whole number from 1 to 1e+15 (steps).
        langevin_std: sigma of w - eta gradient + sqrt(2 eta) sigma N(0, 1), in place of noise_std; a number > 0.
        epoch_epsilon: epsilon of one pass, of an algorithm known by its (epsilon, delta) alone; a number >= 0.
        epoch_delta: delta of one pass, 0 for pure privacy; a number >= 0 and < 1.
        window: cover every record that at least this many others follow; a whole number from 0 to 1e+15 (records).
        decay_exponent: exponent of the noise schedule of a stream; a number > 0 and <= 64.
        schedule_factor: factor on every noise scale of the schedule; a number > 0.
        sample_rate: probability with which a record is in the batch of a step; a number > 0 and <= 1.
        sampling: how a batch is drawn: every record by itself with the same probability (poisson); batch_size records, uniformly, afresh in every step (fixed); batch_size draws of single records, which may come several times (with-replacement); every epoch each record in one step chosen at random (balls-in-bins); every epoch the records shuffled and cut into batches (shuffle); all records (full); one of poisson, fixed, with-replacement, balls-in-bins, shuffle, full.
        max_batch_size: largest size of a Poisson batch: a larger one is cut to this many records, uniformly; a whole number from 1 to 1e+15 (records).
        uses: steps of an epoch that each record is in, with balls-in-bins; an epoch then has uses x records/batch_size steps (default: 1); a whole number from 1 to 1e+15 (steps).
        holder_exponent: exponent of |grad l(w) - grad l(v)| <= L |w - v|^alpha, for all w, v: 1 where smooth, 0 where Lipschitz; a number >= 0 and <= 1.
        holder_constant: constant of |grad l(w) - grad l(v)| <= L |w - v|^alpha, for all w and v; a number > 0 (gradient units per parameter unit^alpha).
        gradient_at_zero: bound on the gradient of every record's loss at w = 0; a number >= 0 (gradient units).
        loss_at_zero: bound on every record's loss at w = 0; losses are >= 0; a number >= 0 (loss units).
        mechanism: which matrix C correlates the noise of the steps: none (identity), a binary tree, the square root of the matrix of prefix sums (sqrt), its first bands, the inverse of the bands of its inverse (bisr), or a sum of geometric sequences close to it (blt), or that of --matrix FILE (file); best takes the one with the least noise in the iterates; one of identity, tree, sqrt, banded-sqrt, bisr, blt, file, best.
        bands: bands of the matrix C, or of its inverse (bisr); a whole number from 1 to 1e+15 (bands).
        participations: in how many steps a record is used at most (default: epochs); a whole number from 1 to 1e+15 (steps).
        separation: steps from one use of a record to its next one, at least (default: those of an epoch); a whole number from 1 to 1e+15 (steps).
        scaling: what the noise multiplier is over: the clipping norm alone, with noise added to C times the gradients (matrix); times the largest norm of a column of C (columns); or times what one record moves C times the gradients by (sensitivity); one of matrix, columns, sensitivity.
        momentum: share of the last update that the next one keeps; for the noise in the iterates alone; a number >= 0 and < 1.
        decay: share of the iterate that a step takes away: learning rate times weight decay; for the noise in iterates alone; a number >= 0 and < 1.
        cool_down: share of the steps, the last ones, over which the learning rate falls to 0; for the noise in the iterates alone; a number >= 0 and <= 1.
        schedule: path of per-step values (CSV, NPY, NPZ, YAML).
        epsilon: the budget.
        delta: the budget; a string such as "1e-5000" where no float can hold it.
        order: order or orders of Renyi divergence; without a budget the divergence itself is reported.
        solve: name of a parameter to solve for instead, given both epsilon and delta.
        gates: assertions on the best guarantee such as "epsilon<=1"; report.failed counts the cases that fail one.
        certify: prove every guarantee in ball arithmetic: details["certified"] has what, details["not_certified"] why not.
        risk: what an attacker can do, beside the answer: case.risk.
        fpr: false-positive rates at which risk gives true-positive rates.
        prior: prior probabilities that the record is there, for how often a guess is right.
        baseline: probabilities to guess a secret of the record right without the release.
        advantage: solve for what keeps true-positive less false-positive rate of any attack at most this.
        tpr: solve for what keeps the true-positive rate at fpr at most this.
        success: solve for what keeps how often a guess is right, at prior, at most this.
        reconstruction: solve for what keeps how often a secret is guessed, baseline without, at most this.

    Returns:
        Plain text: statement, assumptions, formula, source and errata; with a run its numbers as well.

    Raises:
        SpecError: an id is unknown, or neither a bound nor a run is given.
        NotApplicable, Infeasible: as in `rdp`.

    >>> print(explain("iteration.pnsgd").partition(":")[0])
    iteration.pnsgd
    """

def cite(
    *ids: str,
    algorithm: Word = ...,
    records: Whole = ...,
    index: Whole = ...,
    batch_size: Whole = ...,
    last_batch: Word = ...,
    lipschitz: Real = ...,
    smoothness: Real = ...,
    strong_convexity: Real = ...,
    step_size: Real = ...,
    noise_std: Real = ...,
    noise_multiplier: Real = ...,
    diameter: Real = ...,
    adjacency: Word = ...,
    group_size: Whole = ...,
    loss: Word = ...,
    feature_bound: Real = ...,
    label_bound: Real = ...,
    power: Real = ...,
    classes: Whole = ...,
    huber_threshold: Real = ...,
    tube: Real = ...,
    radius: Real = ...,
    regularisation: Real = ...,
    clip: Real = ...,
    model: Word = ...,
    loss_class: Word = ...,
    displacement: Real = ...,
    laplace_scale: Real = ...,
    noise: Word = ...,
    dimension: Whole = ...,
    permutation: Word = ...,
    c1: Real = ...,
    c2: Real = ...,
    release: Word = ...,
    epochs: Whole = ...,
    steps: Whole = ...,
    langevin_std: Real = ...,
    epoch_epsilon: Real = ...,
    epoch_delta: Real = ...,
    window: Whole = ...,
    decay_exponent: Real = ...,
    schedule_factor: Real = ...,
    sample_rate: Real = ...,
    sampling: Word = ...,
    max_batch_size: Whole = ...,
    uses: Whole = ...,
    holder_exponent: Real = ...,
    holder_constant: Real = ...,
    gradient_at_zero: Real = ...,
    loss_at_zero: Real = ...,
    mechanism: Word = ...,
    bands: Whole = ...,
    participations: Whole = ...,
    separation: Whole = ...,
    scaling: Word = ...,
    momentum: Real = ...,
    decay: Real = ...,
    cool_down: Real = ...,
    schedule: str | os.PathLike[str] | None = ...,
    epsilon: Real = ...,
    delta: float | str | Iterable[float | str] | None = ...,
    order: float | Iterable[float] = ...,
    solve: str | None = ...,
    gates: str | Sequence[str] = ...,
    certify: bool = ...,
    risk: bool = ...,
    fpr: float | Iterable[float] = ...,
    prior: float | Iterable[float] = ...,
    baseline: float | Iterable[float] = ...,
    advantage: Real = ...,
    tpr: Real = ...,
    success: Real = ...,
    reconstruction: Real = ...,
) -> str:
    """Return the BibTeX of what the bounds ``ids`` rest on; without ids of the best for the described run, or of all.

    Args:
        algorithm: what is run and released; one of pnsgd, skip, stop, local, shuffled, rotation, shuffled-stop, cyclic, shuffle-once, rotation-epochs, shuffled-epochs, noisy-sgd, noisy-gd, repeated, online, dp-sgd, dp-sgd-gradient, dp-sgd-output, correlated.
        records: number of records; one pass uses each once; a whole number from 1 to 1e+15 (records).
        index: 1-based position of the differing record (default: the worst one); a whole number from 1 to 1e+15.
        batch_size: records per step; their mean gradient is used; a whole number from 1 to 1e+15 (records).
        last_batch: how left-over records are handled: a short last batch divided by its own size (own) or by the batch size (nominal), no batch (drop), batches that differ by at most one record (balanced), or a short first batch (front); one of own, nominal, drop, balanced, front.
        lipschitz: Lipschitz constant of the loss in the parameter; a number > 0 (gradient units).
        smoothness: Lipschitz constant of the gradient of the loss; a number >= 0 (gradient units per parameter unit).
        strong_convexity: strong convexity of the loss: no curvature is below it; 0 when merely convex, negative when weakly convex; a number (gradient units per parameter unit).
        step_size: step size; a step is w - eta (gradient + Z); a number > 0 (parameter units per gradient unit).
        noise_std: standard deviation per coordinate of the Gaussian Z; a number > 0 (gradient units).
        noise_multiplier: standard deviation of the noise on the sum of a batch's gradients, divided by the clipping norm (or the Lipschitz constant): noise_std = z x norm / batch_size, for full batches z x norm / records; a number > 0.
        diameter: diameter of the constraint set; a number > 0 (parameter units).
        adjacency: how neighbouring data sets differ: one record replaced by another, or by a null record (zero gradient; also called zero-out); with dp-sgd also a record added or removed, or either (add-remove); one of replace-one, null-record, add-remove, add, remove.
        group_size: this many records differ, such as those of one person (default: 1); a whole number from 1 to 1e+15 (records).
        loss: a loss of a linear model, from which its constants follow; one of hinge, absolute, insensitive, logistic, huber, squares, softmax.
        feature_bound: largest norm of a feature vector; a number > 0 (feature units).
        label_bound: largest size of a label (hinge and logistic: labels are +1 and -1); a number >= 0 (label units).
        power: power of the hinge, absolute and insensitive losses; a number >= 1 and <= 2.
        classes: number of classes of the softmax loss, each with a score of its own; a whole number from 2 to 1e+15.
        huber_threshold: size of a residual past which the huber loss is linear; a number > 0 (label units).
        tube: size of a residual up to which the insensitive loss is 0; a number >= 0 (label units).
        radius: radius of a ball around 0 that contains the constraint set; 0 lies in the set; a number > 0 (parameter units).
        regularisation: weight of the regulariser (lambda/2) |w|^2; a number >= 0 (gradient units per parameter unit).
        clip: norm to which every record's gradient is clipped; a number > 0 (gradient units).
        model: what clipping is applied to: a linear model, where the loss of a record is a convex function of one number, <w, x> (an intercept is a feature), so that clipped gradients are those of a convex loss; capped, for a softmax whose slopes are capped and not shortened; or any; one of linear, capped, any.
        loss_class: what is known of every loss; lipschitz (a bounded gradient only) covers clipping. Default: convex-smooth if a smoothness is given, else lipschitz; one of convex-smooth, convex, smooth, lipschitz.
        displacement: how far apart a gradient step leaves two points, over the diameter; for Laplace noise in the 1-norm (default: derived from the loss class); a number >= 0.
        laplace_scale: scale of the Laplace Z (one dimension); a number > 0 (gradient units).
        noise: kind of noise, where its scale is derived or solved for; one of gaussian, laplace.
        dimension: dimension of the parameter, for Laplace noise and for risks (default 1); a whole number from 1 to 1e+15 (coordinates).
        permutation: whether the random order and its seed stay secret for ever; one of public, secret.
        c1: constant of the noise schedule; a number > 0.
        c2: constant of the noise schedule; a number.
        release: what is released: the last iterate alone, or the iterate after every epoch (dp-sgd: every iterate, unless this says last); one of last, epoch.
        epochs: number of passes over the records; a whole number from 1 to 1e+15 (passes).
        steps: number of steps; a whole number from 1 to 1e+15 (steps).
        langevin_std: sigma of w - eta gradient + sqrt(2 eta) sigma N(0, 1), in place of noise_std; a number > 0.
        epoch_epsilon: epsilon of one pass, of an algorithm known by its (epsilon, delta) alone; a number >= 0.
        epoch_delta: delta of one pass, 0 for pure privacy; a number >= 0 and < 1.
        window: cover every record that at least this many others follow; a whole number from 0 to 1e+15 (records).
        decay_exponent: exponent of the noise schedule of a stream; a number > 0 and <= 64.
        schedule_factor: factor on every noise scale of the schedule; a number > 0.
        sample_rate: probability with which a record is in the batch of a step; a number > 0 and <= 1.
        sampling: how a batch is drawn: every record by itself with the same probability (poisson); batch_size records, uniformly, afresh in every step (fixed); batch_size draws of single records, which may come several times (with-replacement); every epoch each record in one step chosen at random (balls-in-bins); every epoch the records shuffled and cut into batches (shuffle); all records (full); one of poisson, fixed, with-replacement, balls-in-bins, shuffle, full.
        max_batch_size: largest size of a Poisson batch: a larger one is cut to this many records, uniformly; a whole number from 1 to 1e+15 (records).
        uses: steps of an epoch that each record is in, with balls-in-bins; an epoch then has uses x records/batch_size steps (default: 1); a whole number from 1 to 1e+15 (steps).
        holder_exponent: exponent of |grad l(w) - grad l(v)| <= L |w - v|^alpha, for all w, v: 1 where smooth, 0 where Lipschitz; a number >= 0 and <= 1.
        holder_constant: constant of |grad l(w) - grad l(v)| <= L |w - v|^alpha, for all w and v; a number > 0 (gradient units per parameter unit^alpha).
        gradient_at_zero: bound on the gradient of every record's loss at w = 0; a number >= 0 (gradient units).
        loss_at_zero: bound on every record's loss at w = 0; losses are >= 0; a number >= 0 (loss units).
        mechanism: which matrix C correlates the noise of the steps: none (identity), a binary tree, the square root of the matrix of prefix sums (sqrt), its first bands, the inverse of the bands of its inverse (bisr), or a sum of geometric sequences close to it (blt), or that of --matrix FILE (file); best takes the one with the least noise in the iterates; one of identity, tree, sqrt, banded-sqrt, bisr, blt, file, best.
        bands: bands of the matrix C, or of its inverse (bisr); a whole number from 1 to 1e+15 (bands).
        participations: in how many steps a record is used at most (default: epochs); a whole number from 1 to 1e+15 (steps).
        separation: steps from one use of a record to its next one, at least (default: those of an epoch); a whole number from 1 to 1e+15 (steps).
        scaling: what the noise multiplier is over: the clipping norm alone, with noise added to C times the gradients (matrix); times the largest norm of a column of C (columns); or times what one record moves C times the gradients by (sensitivity); one of matrix, columns, sensitivity.
        momentum: share of the last update that the next one keeps; for the noise in the iterates alone; a number >= 0 and < 1.
        decay: share of the iterate that a step takes away: learning rate times weight decay; for the noise in iterates alone; a number >= 0 and < 1.
        cool_down: share of the steps, the last ones, over which the learning rate falls to 0; for the noise in the iterates alone; a number >= 0 and <= 1.
        schedule: path of per-step values (CSV, NPY, NPZ, YAML).
        epsilon: the budget.
        delta: the budget; a string such as "1e-5000" where no float can hold it.
        order: order or orders of Renyi divergence; without a budget the divergence itself is reported.
        solve: name of a parameter to solve for instead, given both epsilon and delta.
        gates: assertions on the best guarantee such as "epsilon<=1"; report.failed counts the cases that fail one.
        certify: prove every guarantee in ball arithmetic: details["certified"] has what, details["not_certified"] why not.
        risk: what an attacker can do, beside the answer: case.risk.
        fpr: false-positive rates at which risk gives true-positive rates.
        prior: prior probabilities that the record is there, for how often a guess is right.
        baseline: probabilities to guess a secret of the record right without the release.
        advantage: solve for what keeps true-positive less false-positive rate of any attack at most this.
        tpr: solve for what keeps the true-positive rate at fpr at most this.
        success: solve for what keeps how often a guess is right, at prior, at most this.
        reconstruction: solve for what keeps how often a secret is guessed, baseline without, at most this.

    Returns:
        BibTeX entries, each once.

    Raises:
        SpecError: an id is unknown.
        NotApplicable, Infeasible: as in `rdp`.
    """

def list_bounds(
    algorithm: str | None = ...,
    **given: Any,
) -> list[dict[str, Any]]:
    """Return what is known of each bound, one dict a bound: the command ``bounds`` (a package has that name here).

    Args:
        algorithm: those that speak of it alone.
        given: a run of it, as in `compare` (without a budget): the dicts then also have ``applies`` (``yes``, ``no``,
            ``if promised``) and ``because``.

    Raises:
        SpecError: the run is malformed, or its algorithm is not given.

    >>> [bound["id"] for bound in list_bounds("local", lipschitz=1, noise_std=1) if bound["applies"] == "yes"][:2]
    ['iteration.local', 'iteration.local_rdp']
    """

def schema(
    name: str = ...,
) -> dict[str, Any]:
    """Return a JSON schema, of JSON types.

    Args:
        name: ``report``, ``recipe``, ``policy`` or ``card``.

    Raises:
        SpecError: there is none of this name.
    """

def format_report(
    report: Report,
    format: str = ...,
    precision: int = ...,
) -> str:
    """Return the report as text, as ``--format`` prints it.

    Args:
        report: what a function of this module returned.
        format: ``table``, ``plain``, ``json``, ``jsonl``, ``csv``, ``markdown``, ``statement``, ...
        precision: significant digits in human-readable formats; guarantees are rounded up.

    Raises:
        SpecError: there is no such format.
    """

def check(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    run: str | None = ...,
    jobs: int = ...,
    fail_fast: bool = ...,
    certify: bool = ...,
    timeout: float | None = ...,
    memory_limit: float | None = ...,
    strict: bool = ...,
    policy: str | os.PathLike[str] | None = ...,
    shard: str | None = ...,
    max_cases: int | None = ...,
    checkpoint: str | os.PathLike[str] | None = ...,
    executor: Executor | None = ...,
) -> Report:
    """Return the verdict on every case of some recipe files.

    Args:
        paths: one file or several.
        run: a regular expression; only cases whose names match it somewhere are checked.
        jobs: how many processes share the work.
        fail_fast: whether to stop after the first case that fails or has no answer.
        certify: whether to prove the guarantees in ball arithmetic; a gated case fails of which one could be
            and was not; where no definition exists, that is among the case's ``warnings``.
        timeout: how many seconds a case may take at most, whatever its recipe says; None: as many as the recipe says.
        memory_limit: how many GiB the process of a case may hold; None: as many as there are.
        strict: whether to demand that nothing is skipped, left out or accepted, and all is gated and certified.
        policy: path of a policy: limits on the answers themselves, whatever the recipes assert. What it does not allow
            fails. Keep it where whoever writes the recipes cannot change it.
        shard: such as ``"1/4"``: the cases of the first of four shards alone. `merge` makes one report of them.
        max_cases: how many cases a recipe may have; None: 10^4. The cases of a larger check are on the disk, and each
            is read whenever ``report.cases`` comes to it.
        checkpoint: path of a file that each verdict is written to as it comes, and from which a check that was
            interrupted is taken up.
        executor: what computes in place of this process: any `concurrent.futures.Executor`, of threads, of processes or
            of other machines that have this version of dpcalc. It is sent text and the name of a function, and every
            answer is checked; cases that read files or compare with others are computed here. Limits of time and memory
            end no computation of an executor's: where nobody answers for longer, it counts as lost. The cases then make
            no `card`, as those of a checkpoint.

    A case that exceeds a limit is an error of that case alone. Cases with a limit are evaluated in processes of their
    own, as with ``jobs`` > 1; so this works in every thread.

    Returns:
        A report whose cases have ``check``: name, file, line and column, ``status`` (passed, failed, skipped or error),
        and why. ``report.failed`` counts the cases of which a gate failed; a case without an answer is an error.

    Raises:
        SpecError: a recipe is malformed, no case is left to check, a limit is none, or the checkpoint is damaged, in
            use or of another check.
        WorkerLost: a worker of the executor died, did not answer in time, or answered something else.
    """

def merge(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> Report:
    """Return the verdict on a recipe from the reports of its shards, as one check of all cases has it.

    Args:
        paths: of the JSON reports of every shard: `check` with ``shard``, or ``dpcalc check --shard``.

    Raises:
        SpecError: a file is no report of a shard by this version, or a shard is missing, doubled, or of another recipe
            or other options.
    """

def sweep(
    runs: Iterable[Mapping[str, Any]],
    *,
    command: str = ...,
    executor: Executor | None = ...,
    in_flight: int = ...,
    patience: float = ...,
) -> Report:
    """Return the answers to many queries of a command, a case for each; one that nothing covers says why.

    Args:
        runs: the keywords of each query, as `compare` and the others take them, each with one value.
        command: such as ``compare`` or ``multi-epoch``.
        executor: what computes in place of this process: any `concurrent.futures.Executor`, of threads, of processes or
            of other machines that have this version of dpcalc. It is sent JSON and the name of a function, and every
            answer is checked. The cases then have no ``curves``, and make no `card`.
        in_flight: chunks of queries that the executor has at once.
        patience: seconds without any answer after which the executor counts as lost.

    Returns:
        A report as in `rdp`, its cases in the order of the runs.

    Raises:
        SpecError: a run is malformed, names a file, or has several values of a keyword.
        WorkerLost: a worker of the executor died, did not answer in time, or answered something else.

    >>> run = {"records": 100, "lipschitz": 1, "smoothness": 1, "step_size": 0.5, "delta": 1e-5, "index": 1}
    >>> found = sweep([{**run, "noise_std": noise} for noise in (1, 2)], command="rdp")
    >>> [round(case.best.value, 6) for case in found.cases]
    [0.725522, 0.340669]
    """

def train(
    *,
    data: Any = ...,
    synthetic: str | None = ...,
    target: str | None = ...,
    positive: str | None = ...,
    ignore: Sequence[str] = ...,
    ranges: str | None = ...,
    intercept: bool | None = ...,
    test_fraction: float = ...,
    seed: int | None = ...,
    noise_source: str = ...,
    replicas: int = ...,
    workers: int | None = ...,
    output: str | None = ...,
    labels: Sequence[str] | str | None = ...,
    card: bool = ...,
    target_range: tuple[float, float] | str | None = ...,
    average: str | None = ...,
    reference: bool = ...,
    show_unprotected_metrics: bool = ...,
    evaluate_share: float | str | None = ...,
    tune: Mapping[str, Sequence[float]] | Sequence[str] = ...,
    tune_runs: float | None = ...,
    tune_law: str | None = ...,
    tune_score: float | str | None = ...,
    solver: str | None = ...,
    centre: bool | None = ...,
    executor: Executor | None = ...,
    unlearn: str | None = ...,
    ledger: Any = ...,
    class_shares: Sequence[float] | str | None = ...,
    class_weight: Sequence[float] | str | None = ...,
    algorithm: Word = ...,
    release: Word = ...,
    loss: Word = ...,
    feature_bound: Real = ...,
    label_bound: Real = ...,
    power: Real = ...,
    classes: Whole = ...,
    huber_threshold: Real = ...,
    tube: Real = ...,
    radius: Real = ...,
    regularisation: Real = ...,
    records: Whole = ...,
    dimension: Whole = ...,
    epochs: Whole = ...,
    steps: Whole = ...,
    batch_size: Whole = ...,
    last_batch: Word = ...,
    permutation: Word = ...,
    step_size: Real = ...,
    clip: Real = ...,
    model: Word = ...,
    noise_std: Real = ...,
    noise_multiplier: Real = ...,
    laplace_scale: Real = ...,
    noise: Word = ...,
    c1: Real = ...,
    c2: Real = ...,
    decay_exponent: Real = ...,
    schedule_factor: Real = ...,
    mechanism: Word = ...,
    bands: Whole = ...,
    sampling: Word = ...,
    start_distance: Real = ...,
    clean_steps: Whole = ...,
    epsilon: Real = ...,
    delta: float | str | Iterable[float | str] | None = ...,
    gates: str | Sequence[str] = ...,
) -> Report:
    """Train a linear model by an algorithm whose privacy is accounted first; nothing is trained where a gate fails.

    A run of which nothing is said but data, task and budget follows the default rule (docs/training.md).

    Args:
        data: a path (CSV, NPY, NPZ, Parquet), ``"example:breast-cancer"``, or arrays (features, target).
        synthetic: ``logistic`` or ``linear`` in place of data, with ``records`` and ``dimension``.
        target, ignore: the target's column, columns to leave out.
        labels: two labels of the target, such as ``("no", "yes")``: the second counts as +1, everything else as -1. By
            default finite numbers above 0 count as +1. More than two are classes of a softmax, and everything else
            counts as the first of them.
        positive: the label that counts as +1, alone.
        ranges: path of a CSV ``column,low,high``: each range is mapped to [-1, 1]; or of a schema in YAML or JSON,
            which declares levels and missing cells too (docs/training.md). Never take it from the records.
        intercept: whether to add a constant feature; it counts in the feature bound. By default as the rule has it.
        target_range: the interval of the target, ``(low, high)``: a number is predicted.
        average: ``tail`` releases the mean of the second half of the iterates, ``none`` the last one.
        test_fraction: share of the records set aside for testing.
        seed: of noise, order and split; the result is then not private.
        noise_source: ``os`` (default) or ``secure``.
        replicas, workers: so many independent runs on so many processors: quantiles of the metrics, and no model.
        output: path of the model, .json or .npz; `dpcalc.training.release.model.load` reads it.
        card: whether a privacy card is written beside the model, as ``model.card.json``; none of one that is not
            private. What prevents it is a warning, as the model is there.
        reference: whether to compare with the non-private minimiser, which takes most of the time of a run.
        show_unprotected_metrics: whether the model is measured on the training records without noise.
        evaluate_share: the share of epsilon by which the model is measured with noise, such as 0.05 or ``"5%"``.
        tune: settings to choose from, such as ``{"clip": [0.05, 0.1], "travel": [10, 30]}``: the best of a random
            number of runs is released, and what the choice costs is part of the guarantee.
        tune_runs: the mean of that number, 10 by default.
        tune_law: ``geometric`` (default), ``logarithmic`` or ``poisson``.
        tune_score: the share of the training records that runs are scored on, 0.2 by default, or the path of a public
            file.
        unlearn: path of a model that is trained on until it has forgotten the records that are not in ``data``, a path;
            with ``start_distance`` (docs/after-training.md).
        ledger: what is charged before anything is trained: the path of a ledger, a `dpcalc.Ledger` or a
            `dpcalc.Accountant` that all fits to these records share. Without one, a second fit in a process warns.
        solver: ``descent``, or ``sums`` for least squares from noisy sums of products. By default as the rule has it.
        centre: whether rows are centred on a noisy mean, which is part of what is accounted. By default as the rule has
            it.
        class_shares: public shares of the classes in the order of their labels, such as ``(0.98, 0.02)``, or whole
            numbers of records: a warning says where the rarest is too rare for the budget. Never count them.
        class_weight: ``balanced`` or ``sqrt``, by the shares, or public numbers in the order of the labels: gradients
            of a class are multiplied by its weight over the largest. Predictions follow the weights, probabilities do
            not.
        executor: what computes the replicas in place of this machine: any `concurrent.futures.Executor`. It is sent the
            records as text.
        algorithm: what is run and released; one of noisy-gd, noisy-sgd, cyclic, shuffle-once, rotation-epochs, shuffled-epochs, pnsgd, skip, stop, shuffled, rotation, shuffled-stop, online, dp-sgd-gradient, dp-sgd-output, correlated.
        release: what is released: the last iterate alone, or the iterate after every epoch (dp-sgd: every iterate, unless this says last); one of last, epoch.
        loss: a loss of a linear model, from which its constants follow; one of hinge, absolute, insensitive, logistic, huber, squares, softmax.
        feature_bound: largest norm of a feature vector; a number > 0 (feature units).
        label_bound: largest size of a label (hinge and logistic: labels are +1 and -1); a number >= 0 (label units).
        power: power of the hinge, absolute and insensitive losses; a number >= 1 and <= 2.
        classes: number of classes of the softmax loss, each with a score of its own; a whole number from 2 to 1e+15.
        huber_threshold: size of a residual past which the huber loss is linear; a number > 0 (label units).
        tube: size of a residual up to which the insensitive loss is 0; a number >= 0 (label units).
        radius: radius of a ball around 0 that contains the constraint set; 0 lies in the set; a number > 0 (parameter units).
        regularisation: weight of the regulariser (lambda/2) |w|^2; a number >= 0 (gradient units per parameter unit).
        records: number of records; one pass uses each once; a whole number from 1 to 1e+15 (records).
        dimension: dimension of the parameter, for Laplace noise and for risks (default 1); a whole number from 1 to 1e+15 (coordinates).
        epochs: number of passes over the records; a whole number from 1 to 1e+15 (passes).
        steps: number of steps; a whole number from 1 to 1e+15 (steps).
        batch_size: records per step; their mean gradient is used; a whole number from 1 to 1e+15 (records).
        last_batch: how left-over records are handled: a short last batch divided by its own size (own) or by the batch size (nominal), no batch (drop), batches that differ by at most one record (balanced), or a short first batch (front); one of own, nominal, drop, balanced, front.
        permutation: whether the random order and its seed stay secret for ever; one of public, secret.
        step_size: step size; a step is w - eta (gradient + Z); a number > 0 (parameter units per gradient unit).
        clip: norm to which every record's gradient is clipped; a number > 0 (gradient units).
        model: what clipping is applied to: a linear model, where the loss of a record is a convex function of one number, <w, x> (an intercept is a feature), so that clipped gradients are those of a convex loss; capped, for a softmax whose slopes are capped and not shortened; or any; one of linear, capped, any.
        noise_std: standard deviation per coordinate of the Gaussian Z; a number > 0 (gradient units).
        noise_multiplier: standard deviation of the noise on the sum of a batch's gradients, divided by the clipping norm (or the Lipschitz constant): noise_std = z x norm / batch_size, for full batches z x norm / records; a number > 0.
        laplace_scale: scale of the Laplace Z (one dimension); a number > 0 (gradient units).
        noise: kind of noise, where its scale is derived or solved for; one of gaussian, laplace.
        c1: constant of the noise schedule; a number > 0.
        c2: constant of the noise schedule; a number.
        decay_exponent: exponent of the noise schedule of a stream; a number > 0 and <= 64.
        schedule_factor: factor on every noise scale of the schedule; a number > 0.
        mechanism: which matrix C correlates the noise of the steps: none (identity), a binary tree, the square root of the matrix of prefix sums (sqrt), its first bands, the inverse of the bands of its inverse (bisr), or a sum of geometric sequences close to it (blt), or that of --matrix FILE (file); best takes the one with the least noise in the iterates; one of identity, tree, sqrt, banded-sqrt, bisr, blt, file, best.
        bands: bands of the matrix C, or of its inverse (bisr); a whole number from 1 to 1e+15 (bands).
        sampling: how a batch is drawn: every record by itself with the same probability (poisson); batch_size records, uniformly, afresh in every step (fixed); batch_size draws of single records, which may come several times (with-replacement); every epoch each record in one step chosen at random (balls-in-bins); every epoch the records shuffled and cut into batches (shuffle); all records (full); one of poisson, fixed, with-replacement, balls-in-bins, shuffle, full.
        start_distance: distance of the two starting points; a number >= 0 (parameter units).
        clean_steps: noisy steps on the records kept alone, after all that used the others; a whole number from 1 to 1e+15 (steps).
        epsilon: the budget.
        delta: the budget; a string such as "1e-5000" where no float can hold it.
        gates: assertions on the best guarantee such as "epsilon<=1"; report.failed counts the cases that fail one.

    Returns:
        A report; ``training`` of a case says what was trained, and whether the result is ``private``. What is computed
        of the records without noise is in its ``uncovered`` alone, where it was asked for (``test_fraction``,
        ``show_unprotected_metrics``, ``reference``, ``replicas``, ``synthetic``): no guarantee covers it.

    Raises:
        SpecError: malformed parameters or data.
        GateFailed: the budget of the ledger has no room; nothing is trained.
        NotApplicable, Infeasible: as in `rdp`.

    >>> found = train(data="example:breast-cancer", epsilon=1, delta=1e-5).cases[0]
    >>> found.training["steps"], round(found.best.value, 4), found.training["private"]
    (100, 0.0141, True)
    """

def audit(
    *,
    attack: str = ...,
    scores: str | os.PathLike[str] | None = ...,
    one_run: bool = ...,
    threshold: float | None = ...,
    guesses: int | None = ...,
    data: str | os.PathLike[str] | None = ...,
    neighbour: str | os.PathLike[str] | None = ...,
    replicas: float = ...,
    confidence: float = ...,
    as_released: bool = ...,
    seed: int = ...,
    workers: int | None = ...,
    executor: Executor | None = ...,
    algorithm: Word = ...,
    records: Whole = ...,
    index: Whole = ...,
    batch_size: Whole = ...,
    last_batch: Word = ...,
    lipschitz: Real = ...,
    smoothness: Real = ...,
    strong_convexity: Real = ...,
    step_size: Real = ...,
    noise_std: Real = ...,
    noise_multiplier: Real = ...,
    diameter: Real = ...,
    adjacency: Word = ...,
    group_size: Whole = ...,
    loss: Word = ...,
    feature_bound: Real = ...,
    label_bound: Real = ...,
    power: Real = ...,
    classes: Whole = ...,
    huber_threshold: Real = ...,
    tube: Real = ...,
    radius: Real = ...,
    regularisation: Real = ...,
    clip: Real = ...,
    model: Word = ...,
    loss_class: Word = ...,
    displacement: Real = ...,
    laplace_scale: Real = ...,
    noise: Word = ...,
    dimension: Whole = ...,
    permutation: Word = ...,
    c1: Real = ...,
    c2: Real = ...,
    release: Word = ...,
    epochs: Whole = ...,
    steps: Whole = ...,
    langevin_std: Real = ...,
    epoch_epsilon: Real = ...,
    epoch_delta: Real = ...,
    window: Whole = ...,
    decay_exponent: Real = ...,
    schedule_factor: Real = ...,
    sample_rate: Real = ...,
    sampling: Word = ...,
    max_batch_size: Whole = ...,
    uses: Whole = ...,
    holder_exponent: Real = ...,
    holder_constant: Real = ...,
    gradient_at_zero: Real = ...,
    loss_at_zero: Real = ...,
    mechanism: Word = ...,
    bands: Whole = ...,
    participations: Whole = ...,
    separation: Whole = ...,
    scaling: Word = ...,
    momentum: Real = ...,
    decay: Real = ...,
    cool_down: Real = ...,
    schedule: str | os.PathLike[str] | None = ...,
    epsilon: Real = ...,
    delta: float | str | Iterable[float | str] | None = ...,
    order: float | Iterable[float] = ...,
    solve: str | None = ...,
    gates: str | Sequence[str] = ...,
    certify: bool = ...,
    risk: bool = ...,
    fpr: float | Iterable[float] = ...,
    prior: float | Iterable[float] = ...,
    baseline: float | Iterable[float] = ...,
    advantage: Real = ...,
    tpr: Real = ...,
    success: Real = ...,
    reconstruction: Real = ...,
) -> Report:
    """Attack a described run: an epsilon that it has at least, with a confidence, beside what is guaranteed.

    The run is carried out many times, on two data sets that differ in one record (docs/audit.md). One seed gives one
    report, whatever ``workers`` and ``executor`` are.

    Args:
        attack: ``best``, ``linear``, ``wall``, ``reset``, ``low-bits`` or ``custom``.
        scores: the path of scores of canaries, in place of an attack: CSV with columns in, score or in, out.
        one_run: whether they are of one run, each canary in by its own fair coin.
        threshold: of scores, fixed before they were looked at.
        guesses: of one run, how many coins to guess, fixed beforehand.
        data, neighbour: of a custom attack, the paths of two tables that differ in one record, the target last.
        replicas: runs on each of the two data sets.
        confidence: with which all bounds on a case hold together.
        as_released: whether the runs are those of the engine that trains one model, with its rounding; slow.
        seed: of all randomness.
        workers: processors; by default all.
        executor: what computes the runs in place of this machine: any `concurrent.futures.Executor`.
        algorithm: what is run and released; one of pnsgd, skip, stop, local, shuffled, rotation, shuffled-stop, cyclic, shuffle-once, rotation-epochs, shuffled-epochs, noisy-sgd, noisy-gd, repeated, online, dp-sgd, dp-sgd-gradient, dp-sgd-output, correlated.
        records: number of records; one pass uses each once; a whole number from 1 to 1e+15 (records).
        index: 1-based position of the differing record (default: the worst one); a whole number from 1 to 1e+15.
        batch_size: records per step; their mean gradient is used; a whole number from 1 to 1e+15 (records).
        last_batch: how left-over records are handled: a short last batch divided by its own size (own) or by the batch size (nominal), no batch (drop), batches that differ by at most one record (balanced), or a short first batch (front); one of own, nominal, drop, balanced, front.
        lipschitz: Lipschitz constant of the loss in the parameter; a number > 0 (gradient units).
        smoothness: Lipschitz constant of the gradient of the loss; a number >= 0 (gradient units per parameter unit).
        strong_convexity: strong convexity of the loss: no curvature is below it; 0 when merely convex, negative when weakly convex; a number (gradient units per parameter unit).
        step_size: step size; a step is w - eta (gradient + Z); a number > 0 (parameter units per gradient unit).
        noise_std: standard deviation per coordinate of the Gaussian Z; a number > 0 (gradient units).
        noise_multiplier: standard deviation of the noise on the sum of a batch's gradients, divided by the clipping norm (or the Lipschitz constant): noise_std = z x norm / batch_size, for full batches z x norm / records; a number > 0.
        diameter: diameter of the constraint set; a number > 0 (parameter units).
        adjacency: how neighbouring data sets differ: one record replaced by another, or by a null record (zero gradient; also called zero-out); with dp-sgd also a record added or removed, or either (add-remove); one of replace-one, null-record, add-remove, add, remove.
        group_size: this many records differ, such as those of one person (default: 1); a whole number from 1 to 1e+15 (records).
        loss: a loss of a linear model, from which its constants follow; one of hinge, absolute, insensitive, logistic, huber, squares, softmax.
        feature_bound: largest norm of a feature vector; a number > 0 (feature units).
        label_bound: largest size of a label (hinge and logistic: labels are +1 and -1); a number >= 0 (label units).
        power: power of the hinge, absolute and insensitive losses; a number >= 1 and <= 2.
        classes: number of classes of the softmax loss, each with a score of its own; a whole number from 2 to 1e+15.
        huber_threshold: size of a residual past which the huber loss is linear; a number > 0 (label units).
        tube: size of a residual up to which the insensitive loss is 0; a number >= 0 (label units).
        radius: radius of a ball around 0 that contains the constraint set; 0 lies in the set; a number > 0 (parameter units).
        regularisation: weight of the regulariser (lambda/2) |w|^2; a number >= 0 (gradient units per parameter unit).
        clip: norm to which every record's gradient is clipped; a number > 0 (gradient units).
        model: what clipping is applied to: a linear model, where the loss of a record is a convex function of one number, <w, x> (an intercept is a feature), so that clipped gradients are those of a convex loss; capped, for a softmax whose slopes are capped and not shortened; or any; one of linear, capped, any.
        loss_class: what is known of every loss; lipschitz (a bounded gradient only) covers clipping. Default: convex-smooth if a smoothness is given, else lipschitz; one of convex-smooth, convex, smooth, lipschitz.
        displacement: how far apart a gradient step leaves two points, over the diameter; for Laplace noise in the 1-norm (default: derived from the loss class); a number >= 0.
        laplace_scale: scale of the Laplace Z (one dimension); a number > 0 (gradient units).
        noise: kind of noise, where its scale is derived or solved for; one of gaussian, laplace.
        dimension: dimension of the parameter, for Laplace noise and for risks (default 1); a whole number from 1 to 1e+15 (coordinates).
        permutation: whether the random order and its seed stay secret for ever; one of public, secret.
        c1: constant of the noise schedule; a number > 0.
        c2: constant of the noise schedule; a number.
        release: what is released: the last iterate alone, or the iterate after every epoch (dp-sgd: every iterate, unless this says last); one of last, epoch.
        epochs: number of passes over the records; a whole number from 1 to 1e+15 (passes).
        steps: number of steps; a whole number from 1 to 1e+15 (steps).
        langevin_std: sigma of w - eta gradient + sqrt(2 eta) sigma N(0, 1), in place of noise_std; a number > 0.
        epoch_epsilon: epsilon of one pass, of an algorithm known by its (epsilon, delta) alone; a number >= 0.
        epoch_delta: delta of one pass, 0 for pure privacy; a number >= 0 and < 1.
        window: cover every record that at least this many others follow; a whole number from 0 to 1e+15 (records).
        decay_exponent: exponent of the noise schedule of a stream; a number > 0 and <= 64.
        schedule_factor: factor on every noise scale of the schedule; a number > 0.
        sample_rate: probability with which a record is in the batch of a step; a number > 0 and <= 1.
        sampling: how a batch is drawn: every record by itself with the same probability (poisson); batch_size records, uniformly, afresh in every step (fixed); batch_size draws of single records, which may come several times (with-replacement); every epoch each record in one step chosen at random (balls-in-bins); every epoch the records shuffled and cut into batches (shuffle); all records (full); one of poisson, fixed, with-replacement, balls-in-bins, shuffle, full.
        max_batch_size: largest size of a Poisson batch: a larger one is cut to this many records, uniformly; a whole number from 1 to 1e+15 (records).
        uses: steps of an epoch that each record is in, with balls-in-bins; an epoch then has uses x records/batch_size steps (default: 1); a whole number from 1 to 1e+15 (steps).
        holder_exponent: exponent of |grad l(w) - grad l(v)| <= L |w - v|^alpha, for all w, v: 1 where smooth, 0 where Lipschitz; a number >= 0 and <= 1.
        holder_constant: constant of |grad l(w) - grad l(v)| <= L |w - v|^alpha, for all w and v; a number > 0 (gradient units per parameter unit^alpha).
        gradient_at_zero: bound on the gradient of every record's loss at w = 0; a number >= 0 (gradient units).
        loss_at_zero: bound on every record's loss at w = 0; losses are >= 0; a number >= 0 (loss units).
        mechanism: which matrix C correlates the noise of the steps: none (identity), a binary tree, the square root of the matrix of prefix sums (sqrt), its first bands, the inverse of the bands of its inverse (bisr), or a sum of geometric sequences close to it (blt), or that of --matrix FILE (file); best takes the one with the least noise in the iterates; one of identity, tree, sqrt, banded-sqrt, bisr, blt, file, best.
        bands: bands of the matrix C, or of its inverse (bisr); a whole number from 1 to 1e+15 (bands).
        participations: in how many steps a record is used at most (default: epochs); a whole number from 1 to 1e+15 (steps).
        separation: steps from one use of a record to its next one, at least (default: those of an epoch); a whole number from 1 to 1e+15 (steps).
        scaling: what the noise multiplier is over: the clipping norm alone, with noise added to C times the gradients (matrix); times the largest norm of a column of C (columns); or times what one record moves C times the gradients by (sensitivity); one of matrix, columns, sensitivity.
        momentum: share of the last update that the next one keeps; for the noise in the iterates alone; a number >= 0 and < 1.
        decay: share of the iterate that a step takes away: learning rate times weight decay; for the noise in iterates alone; a number >= 0 and < 1.
        cool_down: share of the steps, the last ones, over which the learning rate falls to 0; for the noise in the iterates alone; a number >= 0 and <= 1.
        schedule: path of per-step values (CSV, NPY, NPZ, YAML).
        epsilon: the budget.
        delta: the budget; a string such as "1e-5000" where no float can hold it.
        order: order or orders of Renyi divergence; without a budget the divergence itself is reported.
        solve: name of a parameter to solve for instead, given both epsilon and delta.
        gates: assertions on the best guarantee such as "epsilon<=1"; report.failed counts the cases that fail one.
        certify: prove every guarantee in ball arithmetic: details["certified"] has what, details["not_certified"] why not.
        risk: what an attacker can do, beside the answer: case.risk.
        fpr: false-positive rates at which risk gives true-positive rates.
        prior: prior probabilities that the record is there, for how often a guess is right.
        baseline: probabilities to guess a secret of the record right without the release.
        advantage: solve for what keeps true-positive less false-positive rate of any attack at most this.
        tpr: solve for what keeps the true-positive rate at fpr at most this.
        success: solve for what keeps how often a guess is right, at prior, at most this.
        reconstruction: solve for what keeps how often a secret is guessed, baseline without, at most this.

    Returns:
        A report; ``audit`` of a case has ``epsilon_lower``, ``mu_lower``, the counts and every attack that was tried. A
        gate of the case fails, and `Report.failed` counts it, where a lower bound is above the guarantee.

    Raises:
        SpecError: malformed parameters or data.
        NotApplicable, Infeasible: nothing is guaranteed, or there is no such attack on the run.

    >>> found = audit(algorithm="noisy-gd", records=20, steps=50, lipschitz=1, smoothness=1, step_size=0.5, noise_std=2,
    ...               delta=0.01, replicas=10_000).cases[0]
    >>> 0.0 < found.audit["epsilon_lower"] < found.best.value, found.failed
    (True, False)
    """

def predict(
    model: str | os.PathLike[str],
    data: Any,
    *,
    output: str | os.PathLike[str] | None = ...,
    threshold: float | None = ...,
) -> dict[str, Any]:
    """Return what a model says of rows: arrays by name, in the order of the rows.

    Args:
        model: path of a file that `train` wrote.
        data: a path (CSV, NPY, NPZ, Parquet) with the model's columns among others, ``"example:breast-cancer"``, or an
            array of rows in the order of the model's columns.
        output: path of a CSV that is written as well.
        threshold: of a logistic model, the probability above which a row counts as +1; by default 1/2.

    Returns:
        ``prediction``, the names of classes or targets in their own units; and ``probability`` of the class that counts
        as +1 (logistic), or of the class that is predicted (softmax), or ``score`` (hinge).

    Raises:
        SpecError: a file cannot be read, or a column is missing.
    """

def evaluate(
    model: str | os.PathLike[str],
    data: Any,
    *,
    private: bool = ...,
    epsilon: float | None = ...,
    error_bound: float | None = ...,
    ledger: str | os.PathLike[str] | None = ...,
    threshold: float | None = ...,
) -> dict[str, Any]:
    """Return how good a model is on test rows, as the JSON of `dpcalc evaluate`.

    Args:
        model: path of a file that `train` wrote.
        data: as in `predict`, with the target; or a pair of arrays (rows, target).
        private: whether the metrics are a release with noise, and have a guarantee for the test rows (delta is 0).
        epsilon: of that release.
        error_bound: errors of a regression are cut to it; by default the width of the target's range.
        ledger: path of the ledger that the release is charged to.
        threshold: of a logistic model, the probability above which a row counts as +1, fixed beforehand.

    Returns:
        ``metrics`` by name, and ``private``: without noise they are private only if the test rows are public. Without
        noise and of classes also the ``confusion`` matrix, ``classes`` with precision and recall, ``calibration`` and
        ``roc``, pairs of false- and true-positive rates.

    Raises:
        SpecError: a file cannot be read, a column is missing, or epsilon is given without ``private`` or not with it.
    """

def coefficients(
    model: str | os.PathLike[str],
) -> dict[str, Any]:
    """Return the coefficients of a model in the units of its columns, as the JSON of `dpcalc model`.

    Args:
        model: path of a file that `train` wrote.

    Returns:
        ``coefficients``, each with ``value``, ``noise`` (about the standard deviation of the privacy noise, or None)
        and ``over_range``; and ``middle``, the scores in the middle of all ranges.

    Raises:
        SpecError: the file is no model.
    """

def to_sklearn(
    model: str | os.PathLike[str],
) -> Any:
    """Return a model as a fitted `sklearn.pipeline.Pipeline`, which takes rows in the order of the model's columns.

    Its last step has ``coef_`` and ``intercept_`` in the units of the mapped and shortened rows, which the first step
    makes. In a column of words stand the places of its levels, from 0 on.

    Args:
        model: path of a file that `train` wrote.

    Raises:
        SpecError: the file is no model, or one whose predictions follow weights of classes while its probabilities do
            not; or scikit-learn is not installed.
    """

def ledger(
    entries: Mapping[str, Any] | Sequence[Any] = ...,
    *,
    file: str | os.PathLike[str] | None = ...,
    epsilon: Any = ...,
    delta: Any = ...,
    adjacency: Any = ...,
    group_size: Any = ...,
    partition: str | None = ...,
    solve: str | None = ...,
    gates: Sequence[str] = ...,
) -> Report:
    """Return what several runs, releases and queries about the same records cost together.

    Args:
        entries: name -> entry, or a list of entries. An entry is a dict: a run (``algorithm`` and what describes it),
            ``mu``, ``noise_multiplier``, ``noise_std`` or ``laplace_scale`` with ``sensitivity``, or ``epsilon`` and
            ``delta``; with ``times``, ``part``, ``tuning`` and ``adjacency``, as docs/ledger.md says. A text such as
            ``"epsilon=0.1 times=100"`` is one as well.
        file: path of a ledger; the entries are added to those in it.
        epsilon: budget of all entries together; without delta, delta at it is sought. A list is a sweep.
        delta: of all entries together.
        adjacency: what neighbouring data sets differ in; by default what the file says, else what all entries say, else
            replace-one.
        group_size: so many records of one person differ.
        partition: ``"kept"``: a record that is replaced stays in its part.
        solve: noise_std, noise_multiplier or laplace_scale of the last entry is solved for; needs the budget.
        gates: assertions on the total such as "epsilon<=3".

    Returns:
        A report as in `rdp`; ``ledger`` of a case has the ``entries``, and what is ``remaining`` of the budget.

    Raises:
        SpecError: an entry or the budget is malformed, or adjacencies are mixed in a way that nothing covers.
        NotApplicable: nothing is known of an entry.
        Infeasible: no noise of the last entry meets the budget.

    >>> round(ledger([{"epsilon": 0.1, "times": 100}], delta=1e-6).value, 4)
    4.7746
    >>> round(ledger({"census": {"mu": 0.2}, "model": {"mu": 1}}, delta=1e-5).mu, 6)
    1.019804
    """

def convert(
    *,
    mu: Any = ...,
    rho: Any = ...,
    pure: Any = ...,
    rdp: Any = ...,
    epsilon: Any = ...,
    delta: Any = ...,
    order: Any = ...,
    to: Any = ...,
    gates: Sequence[str] = ...,
) -> Report:
    """Return a guarantee in the words of another notion of privacy, rounded up.

    One of ``mu``, ``rho``, ``pure`` and ``rdp`` is known; without them, ``epsilon`` and ``delta`` are. What does not
    follow is refused: (epsilon, delta) implies no mu. With ``to="mu"`` it is answered by the most mu that implies it,
    ``sufficient_mu``, rounded down.

    Args:
        mu: of Gaussian privacy; a list is a sweep, as everywhere.
        rho: of zero-concentrated privacy.
        pure: epsilon of pure privacy.
        rdp: bounds on the Renyi divergence, order -> epsilon; or a text such as ``"order=8 epsilon=1"``.
        epsilon: delta at it is sought; or known.
        delta: epsilon at it is sought; or known.
        order: order or orders at which the Renyi divergence is sought.
        to: what is sought: epsilon, delta, mu, rho, rdp or pure; by default what epsilon, delta or order ask for.
        gates: assertions such as "epsilon<=1".

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError: what is known or asked is malformed.
        NotApplicable: what is sought does not follow.
        Infeasible: nothing is enough for the budget.

    >>> round(convert(mu=1, delta=1e-5).value, 6)
    4.377178
    >>> best = convert(epsilon=1, delta=1e-5, to="mu").cases[0].best
    >>> best.quantity, round(best.value, 6)
    ('sufficient_mu', 0.268051)
    """

def risk(
    *,
    mu: Any = ...,
    rho: Any = ...,
    pure: Any = ...,
    rdp: Any = ...,
    epsilon: Any = ...,
    delta: Any = ...,
    fpr: Any = ...,
    prior: Any = ...,
    baseline: Any = ...,
    gates: Sequence[str] = ...,
) -> Report:
    """Return what an attacker can do against a guarantee, rounded up; of a run, ask any query with ``risk=True``.

    Args:
        mu: of Gaussian privacy; a list is a sweep, as everywhere.
        rho: of zero-concentrated privacy.
        pure: epsilon of pure privacy.
        rdp: bounds on the Renyi divergence, order -> epsilon; or a text such as ``"order=8 epsilon=1"``.
        epsilon: with delta, one point that is known; without, pure privacy.
        delta: with epsilon, one point that is known.
        fpr: rates of false positives, in (0, 1), at which the rates of true ones are told.
        prior: prior probabilities, in (0, 1), for how often a guess whether the record was there is right.
        baseline: probabilities, in (0, 1), to guess a secret of the record right without the release.
        gates: assertions such as "advantage<=0.1" or "tpr@1%<=0.05".

    Returns:
        A report; each case has ``risk``, a mapping of ``advantage``, ``tpr``, ``success``, ``reconstruction``, ``mu``.

    Raises:
        SpecError: what is known or asked is malformed.

    >>> told = risk(mu=1, fpr=0.01).cases[0].risk
    >>> round(told["advantage"]["value"], 6), round(told["tpr"][0]["value"], 6)
    (0.382925, 0.092362)
    """

def card(
    report: Report,
    *,
    model: str | os.PathLike[str] | None = ...,
) -> dict[str, Any]:
    """Return the privacy card of a report: what is guaranteed, of what, and all that it follows from.

    Args:
        report: what a function of this module returned; every case with a guarantee is on the card.
        model: path of the model that `train` saved, whose hash is on the card; it must be that of the report.

    Returns:
        A document of JSON types, which conforms to ``schema("card")``; `verify` recomputes it.

    Raises:
        SpecError: no case has a guarantee of privacy, or the model is not private, or that of another run.

    >>> import dpcalc
    >>> card(dpcalc.rdp(records=100, lipschitz=1, smoothness=1, step_size=0.5, noise_std=1, delta=1e-5))["schema"]
    'dpcalc.card/1'
    """

def verify(
    card: Mapping[str, Any] | str | os.PathLike[str],
    *,
    model: str | os.PathLike[str] | None = ...,
    schedule: str | os.PathLike[str] | None = ...,
    certify: bool | None = ...,
) -> Verification:
    """Return whether every field of a privacy card is what this version of dpcalc computes, and what differs.

    Args:
        card: the path of a card, or the document.
        model: path of the model that the card is beside, whose hash and privacy are compared; without it neither is.
        schedule: path of the schedule that the run was described by, whose hash is compared.
        certify: whether to prove the guarantees in ball arithmetic as well; None: if python-flint is at hand.

    Returns:
        A record: ``passed``, ``mismatches`` (each with ``place``, ``given`` and ``recomputed``), what was ``checked``,
        ``unchecked`` and ``remarks``. The computation has no limit of time or memory here; that of the command has.

    Raises:
        SpecError: it is no card, or it needs a file that is not given.
        NotApplicable, Infeasible: there is no such guarantee.

    >>> import dpcalc
    >>> stated = card(dpcalc.convert(mu=1, delta=1e-5))
    >>> verify(stated).passed
    True
    >>> stated["cases"][0]["guarantee"]["numbers"][0]["value"] -= 0.1
    >>> verify(stated).mismatches[0].place
    '/cases/0/guarantee/numbers/0/value'
    """
