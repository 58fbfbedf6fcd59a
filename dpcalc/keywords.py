"""The keywords of the Python API, command by command, for editors and type checkers.

Each is the flag of the command line with underscores; `dpcalc.model.parameter` says what it means and which values it
takes, `dpcalc.engine.commands` which command takes it. A value may be several, as on the command line: each gives a
case, and several such parameters give every combination.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypedDict

Real: TypeAlias = float | Iterable[float] | None
Whole: TypeAlias = int | Iterable[int] | None
Word: TypeAlias = str | Iterable[str] | None


class Budget(TypedDict, total=False):
    """What privacy there is to be, and assertions on what there is."""

    epsilon: Real
    delta: float | str | Iterable[float | str] | None
    gates: str | Sequence[str]


class Question(Budget, total=False):
    """What is asked: of epsilon, delta and the noise, what is left out is solved for."""

    order: float | Iterable[float]
    solve: str | None
    certify: bool
    risk: bool
    fpr: float | Iterable[float]
    prior: float | Iterable[float]
    baseline: float | Iterable[float]
    advantage: Real
    tpr: Real
    success: Real
    reconstruction: Real


class Schedule(TypedDict, total=False):
    """Steps that differ."""

    schedule: str | os.PathLike[str] | None


class Catalogue(TypedDict, total=False):
    """A loss by name, and what its constants depend on."""

    loss: Word
    feature_bound: Real
    label_bound: Real
    radius: Real
    power: Real
    huber_threshold: Real
    tube: Real
    classes: Whole
    regularisation: Real


class Loss(Catalogue, total=False):
    """A loss by name, or by its constants."""

    lipschitz: Real
    loss_class: Word
    clip: Real
    model: Word
    smoothness: Real
    strong_convexity: Real
    displacement: Real
    diameter: Real


class Holder(TypedDict, total=False):
    """A loss that need not be smooth."""

    holder_exponent: Real
    holder_constant: Real
    gradient_at_zero: Real
    loss_at_zero: Real


class Noise(TypedDict, total=False):
    """The noise of a step."""

    noise_std: Real
    noise_multiplier: Real
    laplace_scale: Real
    noise: Word
    dimension: Whole


class Rdp(Catalogue, Schedule, Question, total=False):
    """The keywords of `dpcalc.rdp`."""

    algorithm: Word
    records: Whole
    index: Whole
    batch_size: Whole
    last_batch: Word
    lipschitz: Real
    smoothness: Real
    strong_convexity: Real
    step_size: Real
    noise_std: Real
    noise_multiplier: Real
    diameter: Real
    clip: Real
    model: Word
    adjacency: Word
    group_size: Whole


class Shifted(Schedule, Question, total=False):
    """The keywords of `dpcalc.shifted`."""

    steps: Whole
    index: Whole
    shift: Real
    contraction: Real
    step_size: Real
    noise_std: Real
    laplace_scale: Real
    start_distance: Real
    diameter: Real


class Unlearn(Schedule, Question, total=False):
    """The keywords of `dpcalc.unlearn`."""

    start: Word
    start_distance: Real
    gradient_norm: Real
    requests: Whole
    clean_steps: Whole
    contraction: Real
    smoothness: Real
    strong_convexity: Real
    step_size: Real
    noise_std: Real
    records: Whole
    batch_size: Whole
    epochs: Whole
    lipschitz: Real
    diameter: Real
    adjacency: Word
    group_size: Whole


class HockeyStick(Loss, Noise, Schedule, Question, total=False):
    """The keywords of `dpcalc.hockey_stick`."""

    algorithm: Word
    records: Whole
    index: Whole
    batch_size: Whole
    last_batch: Word
    step_size: Real
    adjacency: Word
    group_size: Whole


class Shuffle(Loss, Noise, Schedule, Question, total=False):
    """The keywords of `dpcalc.shuffle`."""

    algorithm: Word
    records: Whole
    batch_size: Whole
    last_batch: Word
    permutation: Word
    step_size: Real
    c1: Real
    c2: Real
    adjacency: Word
    group_size: Whole


class MultiEpoch(Loss, Noise, Question, total=False):
    """The keywords of `dpcalc.multi_epoch`."""

    algorithm: Word
    release: Word
    records: Whole
    epochs: Whole
    steps: Whole
    index: Whole
    batch_size: Whole
    last_batch: Word
    permutation: Word
    step_size: Real
    langevin_std: Real
    epoch_epsilon: Real
    epoch_delta: Real
    adjacency: Word
    group_size: Whole


class Online(Loss, Question, total=False):
    """The keywords of `dpcalc.online`."""

    records: Whole
    index: Whole
    window: Whole
    step_size: Real
    noise: Word
    dimension: Whole
    c1: Real
    c2: Real
    decay_exponent: Real
    schedule_factor: Real
    adjacency: Word
    group_size: Whole


class DpSgd(Catalogue, Holder, Question, total=False):
    """The keywords of `dpcalc.dp_sgd`."""

    algorithm: Word
    release: Word
    records: Whole
    epochs: Whole
    steps: Whole
    batch_size: Whole
    sample_rate: Real
    sampling: Word
    clip: Real
    model: Word
    smoothness: Real
    diameter: Real
    noise_multiplier: Real
    lipschitz: Real
    strong_convexity: Real
    step_size: Real
    noise_std: Real
    adjacency: Word
    group_size: Whole


class Utility(Catalogue, Holder, Question, total=False):
    """The keywords of `dpcalc.utility`."""

    algorithm: Word
    records: Whole
    dimension: Whole
    index: Whole
    public_records: Whole
    tasks: Whole
    steps: Whole
    lipschitz: Real
    smoothness: Real
    strong_convexity: Real
    step_size: Real
    noise_std: Real
    failure_probability: Real


class Compare(Rdp, HockeyStick, Shuffle, MultiEpoch, Online, DpSgd, total=False):
    """The keywords of `dpcalc.compare`: what any command for one algorithm takes."""


class Train(Catalogue, Noise, Budget, total=False):
    """The keywords of `dpcalc.train` that describe the run."""

    algorithm: Word
    release: Word
    records: Whole
    epochs: Whole
    steps: Whole
    batch_size: Whole
    last_batch: Word
    permutation: Word
    step_size: Real
    clip: Real
    model: Word
    c1: Real
    c2: Real
    decay_exponent: Real
    schedule_factor: Real
    start_distance: Real
    clean_steps: Whole
