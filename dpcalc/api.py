"""The Python API: each function mirrors a command, takes its parameters as keywords and returns its report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dpcalc.commands import ask, report, side_by_side
from dpcalc.errors import SpecError
from dpcalc.gate import parse
from dpcalc.query import Question
from dpcalc.report import Report


def rdp(
    *,
    algorithm: str = "pnsgd",
    records: int | None = None,
    index: int | None = None,
    batch_size: int | None = None,
    lipschitz: float | None = None,
    smoothness: float | None = None,
    strong_convexity: float | None = None,
    step_size: float | None = None,
    noise_std: float | None = None,
    diameter: float | None = None,
    adjacency: str | None = None,
    schedule: str | None = None,
    epsilon: float | None = None,
    delta: float | str | None = None,
    order: float | Sequence[float] = (),
    solve: str | None = None,
    gates: Sequence[str] = (),
) -> Report:
    """Return what is true of one fixed-order pass of noisy SGD whose iterates stay hidden.

    Of ``epsilon``, ``delta`` and ``noise_std``, what is left out is solved for.

    Args:
        algorithm: ``pnsgd``, ``skip``, ``stop`` or ``local``.
        records, index, batch_size: n, the 1-based position of the differing record (None: the worst), records a step.
        lipschitz, smoothness, strong_convexity: constants of every loss.
        step_size, noise_std: of w - step_size (gradient + N(0, noise_std^2)).
        diameter: of the constraint set, if bounded.
        adjacency: ``replace-one`` (default) or ``null-record``.
        schedule: path of per-step values (CSV, NPY, NPZ, YAML) in place of step_size and noise_std.
        epsilon, delta: the budget; delta may be a string such as "1e-5000".
        order: order or orders of Renyi divergence.
        solve: a parameter to solve for instead, given both epsilon and delta.
        gates: assertions such as ``"epsilon<=1"``.

    Returns:
        A report with one case; ``report.cases[0].best`` is the number to quote.

    Raises:
        SpecError: malformed or incomplete parameters.
        NotApplicable: no theorem covers the run.
        Infeasible: no value of the unknown meets the budget.

    >>> round(rdp(records=100, index=1, lipschitz=1, smoothness=1, step_size=0.5, noise_std=1,
    ...           delta=1e-5).cases[0].best.value, 12)
    0.725521750858
    """
    given = {k: v for k, v in locals().items() if k not in ("epsilon", "delta", "order", "solve", "gates")}
    return _one("rdp", given, epsilon, delta, order, solve, gates)


def shifted(
    *,
    schedule: str | None = None,
    steps: int | None = None,
    index: int | None = None,
    shift: float | None = None,
    contraction: float | None = None,
    step_size: float | None = None,
    noise_std: float | None = None,
    laplace_scale: float | None = None,
    start_distance: float | None = None,
    diameter: float | None = None,
    epsilon: float | None = None,
    delta: float | str | None = None,
    order: float | Sequence[float] = (),
    solve: str | None = None,
    gates: Sequence[str] = (),
) -> Report:
    """Return what the general shifted-divergence theorem proves of a chain of noisy Lipschitz steps.

    Args:
        schedule: path of per-step values (CSV, NPY, NPZ, YAML); what it lacks is taken from the other arguments.
        steps: number of steps T, without a schedule.
        index: the only step at which the two runs' maps differ (None: every step).
        shift: how far apart the two maps can be in a step.
        contraction: Lipschitz factor of a step's map; 0 and > 1 are allowed.
        step_size, noise_std, laplace_scale: the parameter-space noise of a step has scale step_size times noise.
        start_distance, diameter: of the two starting points; of the constraint set.
        epsilon, delta, order, solve, gates: as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.
    """
    given = {k: v for k, v in locals().items() if k not in ("epsilon", "delta", "order", "solve", "gates")}
    return _one("shifted", given, epsilon, delta, order, solve, gates)


def hockey_stick(
    *,
    algorithm: str = "pnsgd",
    records: int | None = None,
    index: int | None = None,
    batch_size: int | None = None,
    lipschitz: float | None = None,
    loss_class: str | None = None,
    smoothness: float | None = None,
    strong_convexity: float | None = None,
    displacement: float | None = None,
    diameter: float | None = None,
    step_size: float | None = None,
    noise_std: float | None = None,
    laplace_scale: float | None = None,
    noise: str | None = None,
    dimension: int | None = None,
    adjacency: str | None = None,
    schedule: str | None = None,
    epsilon: float | None = None,
    delta: float | str | None = None,
    solve: str | None = None,
    gates: Sequence[str] = (),
) -> Report:
    """Return one record's delta(epsilon) along a fixed-order pass, by contraction, shift and mixture bounds.

    Args:
        algorithm: ``pnsgd``, or ``stop`` for a pass that stops after a uniformly random number of steps.
        records, index, batch_size: n, the 1-based position of the differing record (None: the worst), records a step.
        lipschitz, smoothness, strong_convexity: constants of every loss.
        loss_class: ``convex-smooth``, ``convex``, ``smooth`` or ``lipschitz`` (None: from what is given).
        displacement: how far a step leaves two points of the domain, over its diameter (None: from the loss class).
        diameter: of the constraint set.
        step_size: of w - step_size (gradient + Z).
        noise_std, laplace_scale: of a Gaussian, or of a Laplace Z; give one, or neither to solve for it.
        noise: ``gaussian`` or ``laplace``, where its scale is solved for.
        dimension: of the parameter, for Laplace noise.
        adjacency: ``replace-one`` (default) or ``null-record``.
        schedule: path of per-step values (CSV, NPY, NPZ, YAML).
        epsilon, delta, solve, gates: as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> round(hockey_stick(records=100, index=50, lipschitz=1, smoothness=1, step_size=0.1, noise_std=2,
    ...                    epsilon=1).cases[0].best.log_delta, 9)
    -31.874272984
    """
    given = {k: v for k, v in locals().items() if k not in ("epsilon", "delta", "solve", "gates")}
    return _one("hockey-stick", given, epsilon, delta, (), solve, gates)


def shuffle(
    *,
    algorithm: str = "shuffled",
    records: int | None = None,
    batch_size: int | None = None,
    last_batch: str | None = None,
    permutation: str | None = None,
    lipschitz: float | None = None,
    loss_class: str | None = None,
    smoothness: float | None = None,
    strong_convexity: float | None = None,
    displacement: float | None = None,
    diameter: float | None = None,
    step_size: float | None = None,
    noise_std: float | None = None,
    laplace_scale: float | None = None,
    noise: str | None = None,
    dimension: int | None = None,
    c1: float | None = None,
    c2: float | None = None,
    adjacency: str | None = None,
    schedule: str | None = None,
    epsilon: float | None = None,
    delta: float | str | None = None,
    solve: str | None = None,
    gates: Sequence[str] = (),
) -> Report:
    """Return what is true of one pass in a random order.

    Args:
        algorithm: ``shuffled``, ``rotation`` (a random cyclic shift), or ``shuffled-stop``.
        records, batch_size: n, and records a step.
        last_batch: a short last batch is divided by its ``own`` size (default), by the ``nominal`` one, or dropped
            (``drop``).
        permutation: ``public`` (default), or ``secret`` if the order and its seed stay so for ever.
        lipschitz, loss_class, smoothness, strong_convexity, displacement, diameter, step_size, noise_std,
            laplace_scale, noise, dimension, adjacency: as in `hockey_stick`.
        c1, c2: constants of the noise schedule that is tuned to the number of records, in place of a scale.
        schedule: path of per-step values; its column ``probability`` is the law of the record's position.
        epsilon, delta, solve, gates: as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> round(shuffle(records=10**5, lipschitz=1, smoothness=1, step_size=0.1, noise_std=2, delta=1e-6
    ...               ).cases[0].best.value, 7)
    1.3153396
    """
    given = {k: v for k, v in locals().items() if k not in ("epsilon", "delta", "solve", "gates")}
    return _one("shuffle", given, epsilon, delta, (), solve, gates)


def online(
    *,
    records: int | None = None,
    index: int | None = None,
    window: int | None = None,
    lipschitz: float | None = None,
    loss_class: str | None = None,
    smoothness: float | None = None,
    strong_convexity: float | None = None,
    displacement: float | None = None,
    diameter: float | None = None,
    step_size: float | None = None,
    noise: str | None = None,
    dimension: int | None = None,
    c1: float | None = None,
    c2: float | None = None,
    decay_exponent: float | None = None,
    noise_multiplier: float | None = None,
    adjacency: str | None = None,
    epsilon: float | None = None,
    delta: float | str | None = None,
    solve: str | None = None,
    gates: Sequence[str] = (),
) -> Report:
    """Return what is true of a growing stream whose noise decays from record to record.

    Args:
        records: n so far.
        index, window: the 1-based position of the differing record, or: every record that so many others follow.
        lipschitz, loss_class, smoothness, strong_convexity, displacement, diameter, step_size, dimension, adjacency: as
            in `hockey_stick`.
        noise: ``gaussian`` (default) or ``laplace``.
        c1, c2, decay_exponent: constants of the noise schedule.
        noise_multiplier: factor on every scale of the schedule.
        epsilon, delta, solve, gates: as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> round(online(records=100, lipschitz=10, smoothness=1, step_size=0.01, diameter=1, c1=100, c2=100,
    ...              decay_exponent=1.5, epsilon=1).cases[0].best.value, 8)
    0.04950353
    """
    given = {k: v for k, v in locals().items() if k not in ("epsilon", "delta", "solve", "gates")}
    return _one("online", given, epsilon, delta, (), solve, gates)


def multi_epoch(
    *,
    algorithm: str = "cyclic",
    release: str | None = None,
    records: int | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    index: int | None = None,
    batch_size: int | None = None,
    last_batch: str | None = None,
    permutation: str | None = None,
    lipschitz: float | None = None,
    loss_class: str | None = None,
    smoothness: float | None = None,
    strong_convexity: float | None = None,
    displacement: float | None = None,
    diameter: float | None = None,
    step_size: float | None = None,
    noise_std: float | None = None,
    laplace_scale: float | None = None,
    langevin_std: float | None = None,
    epoch_epsilon: float | None = None,
    epoch_delta: float | None = None,
    noise: str | None = None,
    dimension: int | None = None,
    adjacency: str | None = None,
    epsilon: float | None = None,
    delta: float | str | None = None,
    order: float | Sequence[float] = (),
    solve: str | None = None,
    gates: Sequence[str] = (),
) -> Report:
    """Return what is true of many passes over the records.

    Args:
        algorithm: ``cyclic``, ``shuffle-once``, ``shuffled-epochs``, ``noisy-sgd``, ``noisy-gd`` or ``repeated``.
        release: ``last`` (default), or ``epoch`` if the iterate is released after every pass.
        records, epochs: n and E.
        steps: of noisy-sgd and noisy-gd, in place of epochs.
        index: 1-based position of the differing record, for ``cyclic`` (None: the worst).
        batch_size, last_batch, permutation: as in `shuffle`.
        lipschitz, loss_class, smoothness, strong_convexity, displacement, diameter, step_size, noise_std,
            laplace_scale, noise, dimension, adjacency: as in `hockey_stick`.
        langevin_std: sigma of w - eta gradient + sqrt(2 eta) sigma N(0, 1), in place of noise_std.
        epoch_epsilon, epoch_delta: all that ``repeated`` knows of one pass.
        epsilon, delta, order, solve, gates: as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> round(multi_epoch(records=60000, epochs=20, batch_size=250, lipschitz=1, smoothness=1, step_size=0.1,
    ...                   noise_std=0.05, delta=1e-6).cases[0].best.value, 9)
    0.68377813
    """
    given = {k: v for k, v in locals().items() if k not in ("epsilon", "delta", "order", "solve", "gates")}
    return _one("multi-epoch", given, epsilon, delta, order, solve, gates)


def compare(
    *,
    algorithm: str | Sequence[str],
    epsilon: float | None = None,
    delta: float | str | None = None,
    order: float | Sequence[float] = (),
    solve: str | None = None,
    gates: Sequence[str] = (),
    **parameters: Any,
) -> Report:
    """Return every bound that applies to the described run, best first, and why the others do not.

    Args:
        algorithm: what is run, a name of any other function here; or several names, one case each.
        epsilon, delta, order, solve, gates: as in `rdp`.
        parameters: of the run, as in the function for its algorithm (records, lipschitz, smoothness, noise_std, ...).

    Returns:
        A report with a case per algorithm; beside its results each has ``tightness`` (how far the best is from what
        nothing can beat, where that is known) and ``notes`` on what knowing or promising more would give. Where several
        algorithms are asked, one that cannot be so described has no results and says why in ``obstacles``.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> report = compare(algorithm=["pnsgd", "shuffled"], records=10**5, lipschitz=1, smoothness=1, step_size=0.1,
    ...                  noise_std=2, delta=1e-6)
    >>> [round(case.best.value, 4) for case in report.cases]
    [4.8866, 1.3153]
    """
    names = [algorithm] if isinstance(algorithm, str) else list(algorithm)
    question, checks = _question(epsilon, delta, order, solve), [parse(text) for text in gates]
    asked = side_by_side if len(names) > 1 else ask
    found = [asked("compare", {**parameters, "algorithm": name}, question, gates=checks) for name in names]
    return report("compare", found)


def utility(
    *,
    epsilon: float | None = None,
    delta: float | str | None = None,
    gates: Sequence[str] = (),
    **parameters: Any,
) -> Report:
    """Return what a budget costs: every bound on the excess risk that applies, with the run that has it.

    Args:
        epsilon, delta, gates: as in `rdp`; ``"excess_risk<=0.1"`` is a gate.
        parameters: ``records``, ``dimension``, ``radius`` (of a ball about 0 that holds the domain), and either
            ``loss`` with ``feature_bound`` (and ``label_bound``, ``power``, ``huber_threshold``, ``tube``,
            ``regularisation`` as the loss has them) or ``lipschitz``, ``smoothness``, ``strong_convexity``,
            ``holder_exponent``, ``holder_constant``, ``gradient_at_zero``, ``loss_at_zero``; where known ``index``,
            ``public_records``, ``tasks``, ``steps``, ``step_size``, ``noise_std``, ``failure_probability``;
            ``algorithm`` for one alone.

    Returns:
        A report with one case. Each result's ``value`` is an excess risk, and its ``details`` have ``algorithms``,
        ``noise_std``, ``step_size``, ``steps`` and ``vacuous`` where the value says nothing.

    Raises:
        SpecError, NotApplicable: as in `rdp`.

    >>> case = utility(loss="logistic", feature_bound=1.0, records=10**5, dimension=20, radius=1.0, algorithm="stop",
    ...                epsilon=1.0, delta=1e-6).cases[0]
    >>> case.best.bound, round(case.best.value, 5)
    ('utility.stop_from_centre', 0.08739)
    """
    return _one("utility", parameters, epsilon, delta, (), None, gates)


def dp_sgd(
    *,
    epsilon: float | None = None,
    delta: float | str | None = None,
    order: float | Sequence[float] = (),
    solve: str | None = None,
    gates: Sequence[str] = (),
    **parameters: Any,
) -> Report:
    """Return what is true of SGD on uniformly sampled records whose losses need not be smooth.

    Args:
        epsilon, delta, order, solve, gates: as in `rdp`.
        parameters: ``algorithm`` (``dp-sgd-gradient``, the default: noise on every gradient; ``dp-sgd-output``: on the
            average alone), ``records``, ``steps`` (default: records) or ``epochs``, ``batch_size``, ``radius``,
            ``step_size``, ``noise_std``, and a loss as in `utility`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> round(dp_sgd(records=1000, lipschitz=1.0, noise_std=2.0, delta=1e-6).cases[0].best.value, 2)
    0.22
    """
    return _one("dp-sgd", parameters, epsilon, delta, order, solve, gates)


def _one(
    command: str,
    given: dict[str, Any],
    epsilon: float | None,
    delta: float | str | None,
    order: float | Sequence[float],
    solve: str | None,
    gates: Sequence[str],
) -> Report:
    question = _question(epsilon, delta, order, solve)
    return report(command, [ask(command, given, question, gates=[parse(text) for text in gates])])


def _question(
    epsilon: float | None, delta: float | str | None, order: float | Sequence[float], solve: str | None
) -> Question:
    orders = (float(order),) if isinstance(order, (int, float)) else tuple(float(a) for a in order)
    value, log_delta = _delta(delta)
    return Question(epsilon, value, log_delta, orders, solve)


def _delta(delta: float | str | None) -> tuple[float | None, float | None]:
    if delta is None:
        return None, None
    if isinstance(delta, str):
        from dpcalc.spec.numbers import parse_log

        log_delta = parse_log(delta)
        return max(math.exp(log_delta), 5e-324), log_delta
    if not 0.0 < delta < 1.0:
        raise SpecError(f"delta is {delta!r}; it must be a number > 0 and < 1", "1e-6 is a usual choice")
    return float(delta), math.log(delta)
