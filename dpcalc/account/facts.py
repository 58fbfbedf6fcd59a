"""The facts that an account reads, and their names in other programs."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, NamedTuple

from dpcalc.errors import SpecError
from dpcalc.files.documents import Items, Node, Scalar, number_text
from dpcalc.files.place import clipped
from dpcalc.model.numbers import parse_delta, parse_integer, parse_number
from dpcalc.model.parameter import MAX_RECORDS, PARAMETERS, check
from dpcalc.model.quantities import Sampling

TRUE, FALSE = ("true", "yes", "on"), ("false", "no", "off")
"""Spellings of a switch, in lower case."""
NOT_PRIVATE = ("nonprivate", "notprivate", "nodp", "nondp", "nodpsgd", "nondpsgd")
"""Values that mean a run without privacy under any key, as letters alone."""
_MOST_IN_A_LIST = 10_000


class Kind(Enum):
    """The type of a fact's value."""

    COUNT = auto()
    NUMBER = auto()
    RATE = auto()
    DELTA = auto()
    SWITCH = auto()
    WORD = auto()
    NUMBERS = auto()


class Fact(NamedTuple):
    """A fact that an account can read.

    Attributes:
        name: as in `dpcalc.account`; the flag follows from it.
        kind: the type of its value.
        help: the help of the flag; empty if the fact has no flag and only occurs in files.
        words: its names in other programs, in lower case with underscores.
        short: a short flag.
        choices: the allowed words; empty: any.
    """

    name: str
    kind: Kind
    help: str = ""
    words: tuple[str, ...] = ()
    short: str = ""
    choices: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        """The long flag."""
        return "--" + self.name.replace("_", "-")


class Said(NamedTuple):
    """A value of a fact, its origin and its text; the value is None if the text is not a valid value."""

    value: Any
    origin: str
    text: str


_ROWS = (
    Fact("records", Kind.COUNT, "n: number of records.", (
        "n", "num_examples", "dataset_size", "number_of_examples", "num_train_examples", "train_size", "n_train",
        "num_train_samples", "num_records", "train_dataset_size", "dataset_len", "n_records", "n_examples",
        "dataset_length", "train_samples", "num_train", "len_dataset",
    ), "-n"),
    Fact("batch_size", Kind.COUNT, "b: records of one noisy step, over all devices and accumulated batches.", (
        "batch", "lot_size", "minibatch_size", "logical_batch_size", "total_batch_size", "global_batch_size",
        "effective_batch_size", "total_train_batch_size",
    )),
    Fact("per_device_batch_size", Kind.COUNT, "Records of one batch on one device.", (
        "per_device_train_batch_size", "per_gpu_train_batch_size", "micro_batch_size", "train_micro_batch_size_per_gpu",
        "batch_size_per_device", "batch_size_per_gpu", "batch_size_device_train",
    )),
    Fact("accumulation", Kind.COUNT, "k: batches accumulated for one noisy step.", (
        "gradient_accumulation_steps", "accumulate_grad_batches", "accumulation_steps", "grad_accumulation_steps",
        "n_accumulation_steps", "accumulated_iterations", "gradient_accumulation", "grad_accum", "grad_accum_steps",
        "accum_steps", "n_acc_steps", "grad_acc_steps",
    )),
    Fact("devices", Kind.COUNT, "W: workers that train together.", (
        "world_size", "num_devices", "n_gpu", "n_gpus", "num_gpus", "num_processes", "gpus", "num_replicas", "num_gpu",
        "ngpus", "nproc_per_node", "ngpus_per_node", "gpus_per_node", "n_devices", "nprocs", "n_procs", "tpu_cores",
    )),
    Fact("nodes", Kind.COUNT, "", ("num_nodes", "nnodes")),
    Fact("physical_batch_size", Kind.COUNT, "Records held in memory at once; does not affect the account.", (
        "max_physical_batch_size", "physical_batch", "max_physical_batch",
    )),
    Fact("loader_length", Kind.COUNT, "len(loader): batches of one epoch.", (
        "epoch_steps", "len_loader", "steps_per_epoch", "num_batches", "batches_per_epoch", "len_dataloader",
        "train_loader_length", "len(loader)", "loader_len", "train_loader_len", "dataloader_length",
    )),
    Fact("drop_last", Kind.SWITCH, "Whether the loader leaves out a short last batch.", (
        "dataloader_drop_last", "drop_remainder",
    )),
    Fact("sampling", Kind.WORD, "How batches are drawn: poisson, shuffle, fixed, balls-in-bins, full, or a class.", (
        "sampler", "batch_sampler", "sampler_class", "sampling_method", "sampler_type", "batch_sampling",
        "sampler_name", "batch_sampler_class", "data_sampler",
    )),
    Fact("poisson", Kind.SWITCH, "", ("poisson_sampling", "use_poisson_sampling", "poisson_sampling_in_fit")),
    Fact("divisor", Kind.WORD, "Divisor of the noisy sum: constant, records (depends on n), or realised.", (
        "expected_batch_size", "normalize_by",
    )),
    Fact("sample_rate", Kind.RATE, "q: probability with which a record is in the batch of a step.", (
        "sampling_prob", "sampling_probability", "sampling_rate",
    )),
    Fact("steps", Kind.COUNT, "T: noisy steps.", (
        "max_steps", "num_steps", "train_steps", "iterations", "total_steps", "global_step", "num_updates",
        "max_train_steps", "num_train_steps", "training_steps", "num_training_steps", "num_iterations", "n_iterations",
        "max_iterations", "train_iterations", "total_iterations", "num_iters", "n_iters", "max_iters", "train_iters",
        "total_iters", "max_updates", "n_updates",
    )),
    Fact("epochs", Kind.NUMBER, "Passes over the loader.", (
        "num_train_epochs", "max_epochs", "num_epochs", "n_epochs", "nb_epochs", "train_epochs", "total_epochs",
    )),
    Fact("noise_multiplier", Kind.NUMBER, "z: std of the noise on the sum, divided by the clipping norm.", (
        "noise_mult", "noise_multiplier_gradient",
    )),
    Fact("noise_std", Kind.NUMBER, "std of the noise on the mean gradient, after averaging."),
    Fact("noise_std_sum", Kind.NUMBER, "std of the noise on the sum of gradients, before averaging."),
    Fact("clip", Kind.NUMBER, "C: clipping norm.", (
        "max_grad_norm", "l2_norm_clip", "l2_clip_norm", "clip_norm", "clipping_norm", "per_sample_max_grad_norm",
        "per_example_max_grad_norm", "per_example_max_norm", "max_per_sample_grad_norm",
    )),
    Fact("adjacency", Kind.WORD, "How neighbouring data sets differ (default: zero-out).", (
        "neighboring_relation", "neighbouring_relation", "neighboring", "neighbouring", "neighbor_relation",
        "adjacency_relation", "adjacency_type",
    )),
    Fact("delta", Kind.DELTA, "delta of the answer.", ("target_delta",), "-d"),
    Fact("epsilon", Kind.NUMBER, "Budget: exit 1 if the run spent more.", (
        "target_epsilon", "epsilon_budget", "privacy_budget",
    ), "-e"),
    Fact("reported_epsilon", Kind.NUMBER, "", ("epsilon_spent", "spent_epsilon", "final_epsilon")),
    Fact("unit", Kind.WORD, "Unit of privacy: record, user, client or sequence.", (
        "privacy_unit", "dp_level", "privacy_level", "dp_granularity", "privacy_granularity", "protected_unit",
    ), choices=("record", "user", "client", "sequence")),
    Fact("max_records_per_user", Kind.COUNT, "k: most records of one unit; they differ together, as a group.", (
        "records_per_user", "max_examples_per_user", "user_group_size", "group_size", "max_sequences_per_user",
    )),
    Fact("clip_per", Kind.WORD, "Unit of clipping: record or user.", choices=("record", "user")),
    Fact("clients", Kind.COUNT, "All clients in federated learning.", (
        "num_clients", "total_clients", "population_size", "num_total_clients", "total_num_clients", "n_clients")),
    Fact("clients_per_round", Kind.COUNT, "Number of clients in one round.", (
        "num_sampled_clients", "clients_per_aggregation", "expected_clients_per_round", "num_clients_per_round",
        "cohort_size",
    )),
    Fact("rounds", Kind.COUNT, "Rounds of federated learning.", (
        "num_rounds", "num_server_rounds", "total_rounds", "n_rounds", "global_rounds", "server_rounds", "comm_rounds",
        "communication_rounds", "central_num_iterations")),
    Fact("count_noise_std", Kind.NUMBER, "Adaptive clipping: std of the noise on the count, in records.", (
        "unclipped_num_std", "clipped_count_stddev",
    )),
    Fact("count", Kind.WORD, "Adaptive clipping: centred (bits of +-1/2) or raw (bits of 0 and 1).",
         choices=("centred", "raw")),
    Fact("layer_noise_multipliers", Kind.NUMBERS, "Per-layer clipping: noise std over clip, one per layer."),
    Fact("worker_noise_multiplier", Kind.NUMBER, "std of each worker's noise over the clip; only the sum is released."),
    Fact("microbatches", Kind.COUNT, "Groups of a batch whose mean gradients are clipped.", ("num_microbatches",)),
    Fact("microbatch_size", Kind.COUNT, "Number of records whose mean gradient is clipped."),
    Fact("releases_per_batch", Kind.COUNT, "k: noisy releases from each drawn batch."),
    Fact("empty_batches", Kind.WORD, "keep (a step of pure noise), skip, or random (use a random record).",
         choices=("keep", "skip", "random")),
    Fact("rand_on_empty", Kind.SWITCH),
    Fact("max_batch_size", Kind.COUNT, "Poisson batches are truncated to this size.", ("truncated_batch_size",)),
    Fact("uses", Kind.COUNT, "k: steps of an epoch that each record is in, with balls-in-bins.", (
        "num_selected", "uses_per_epoch",
    )),
    Fact("same_seed", Kind.SWITCH, "Whether all workers use the same seed."),
    Fact("resumed", Kind.SWITCH, "Whether the run was resumed inside an epoch, with a new loader."),
    Fact("bands", Kind.COUNT, "Bands of JAX-Privacy's strategy matrix; 1 for plain DP-SGD.", ("num_bands",)),
    Fact("schedule", Kind.WORD, "", (
        "noise_scheduler", "noise_schedule", "noise_multiplier_schedule", "noise_decay", "batch_size_scheduler",
        "batch_size_schedule", "dynamic_batch_size",
        "dp_start_epoch", "dp_start_step", "dp_warmup_epochs", "dp_warmup_steps", "non_private_epochs",
        "nonprivate_epochs", "non_private_warmup_epochs", "nonprivate_warmup_epochs",
    )),
    Fact("runs", Kind.COUNT, "", (
        "n_runs", "num_runs", "n_trials", "num_trials", "trials", "n_seeds", "num_seeds", "seeds", "n_folds",
        "num_folds", "folds", "k_folds", "kfold", "n_splits", "ensemble_size", "n_models", "num_models",
    )),
    Fact("optimizer", Kind.WORD, "", ("optimizer_class",)),
    Fact("accountant", Kind.WORD, "", ("mechanism",)),
    Fact("tool", Kind.WORD, "", ("framework", "library")),
    Fact("clipping", Kind.WORD, "", (
        "clipping_mode", "clipping_type", "clipping_method", "clipping_style", "clipping_strategy", "clip_type",
        "clip_mode", "clip_method", "clip_style", "clip_strategy",
    )),
    Fact("adaptive_clipping", Kind.SWITCH, "", (
        "adaptive_clip", "use_adaptive_clipping", "adaptive_clip_norm", "adaptive_clipping_norm",
    )),
    Fact("secure", Kind.SWITCH, "", ("secure_mode", "secure_rng")),
    Fact("reduction", Kind.WORD, "", ("loss_reduction",)),
    Fact("seed", Kind.WORD, "", ("noise_seed",)),
    Fact("auto_find_batch_size", Kind.SWITCH, "", ("auto_scale_batch_size",)),
    Fact("load_best_model_at_end", Kind.SWITCH),
    Fact("group_by_length", Kind.SWITCH),
    Fact("packing", Kind.SWITCH),
    Fact("private", Kind.WORD, "", (
        "dp", "use_dp", "enable_dp", "with_dp", "is_dp", "dp_enabled", "enabled_dp", "dpsgd", "dp_sgd", "use_dpsgd",
        "use_dp_sgd", "is_private", "make_private", "use_privacy", "enable_privacy", "privacy", "with_privacy",
        "differential_privacy", "differentially_private", "use_opacus", "private_training", "train_private",
        "apply_dp", "dp_training", "dp_mode", "dp_type", "privacy_mode", "privacy_engine", "use_privacy_engine",
        "use_differential_privacy", "enable_differential_privacy", "enable_opacus", "with_opacus", "add_noise",
        "use_noise", "with_noise",
    )),
    Fact("not_private", Kind.WORD, "", (
        "disable_dp", "without_dp", "dp_disabled", "disabled_dp", "non_private", "nonprivate", "nodp",
        "disable_privacy", "without_privacy", "disable_dpsgd", "disable_opacus", "no_noise", "disable_noise", "no_clip",
        "no_clipping", "disable_clipping",
    )),
    Fact("noise_law", Kind.WORD, "", (
        "noise", "noise_type", "noise_distribution", "noise_dist", "dp_noise_type", "dp_mechanism", "noise_mechanism",
        "privacy_mechanism", "central_privacy_mechanism",
    )),
    Fact("per_record_clipping", Kind.WORD, "", (
        "per_sample_clipping", "per_example_clipping", "per_sample_clip", "per_example_clip", "clip_per_sample",
        "clip_per_example",
    )),
    Fact("resumed_from", Kind.WORD, "", (
        "resume", "resume_from_checkpoint", "resume_from", "resume_from_ckpt", "resume_path", "resume_checkpoint",
        "load_checkpoint", "init_checkpoint", "load_ckpt", "restore_from", "restore_checkpoint", "warm_start",
        "start_epoch", "initial_epoch", "start_step", "resume_epoch", "resume_step",
    )),
)  # fmt: skip

FACTS: dict[str, Fact] = {fact.name: fact for fact in _ROWS}
"""Every fact by its name."""

UNCLEAR = {
    "train_batch_size": "some programs mean one device, others all devices; give --batch-size, or "
    "--per-device-batch-size",
    "sigma": "it is a noise multiplier in some programs and a standard deviation in others; give --noise-multiplier",
    "noise_scale": "it is a noise multiplier in some programs and a standard deviation in others; give "
    "--noise-multiplier",
    "noise_std": "it is of a sum in some programs and of a mean in others; give --noise-std or --noise-std-sum",
    "noise_stddev": "it is of a sum in some programs and of a mean in others; give --noise-std or --noise-std-sum",
    "epsilon": "it may be a budget, a result or an optimizer setting; write target_epsilon for a budget",
    "shuffle": "a shuffling loader may be replaced by one that does not shuffle; give --sampling",
}
"""Ambiguous words -> the reason."""

_DOUBTS = {
    "records": r"((train_)?(val|valid|validation|test)|train|dev|data|dataset|subset|holdout)_(split|size|fraction|"
    r"frac|ratio|share|percent\w*|samples|examples|records)|splits?_(train|val|valid|validation|test|ratio)|frac|fraction|"
    r"holdout|sub_?sample|max_(train_)?samples|(n|num)_(val|valid|validation|test|dev)(_\w+)?",
    "batch_size": r"(virtual|mini|real|actual|target)_?batch_?size|batch_(multiplier|split)|bs",
    "accumulation": r"(?!eval)\w*accum\w*(?<!dtype)|(\w+_)?acc_(steps|iters?|grad\w*)|\w*grad_acc\w*",
    "steps": r"((n|num)_?)?(critic|d|dis|disc|discriminator)_(steps|iters?|updates)|(n|num)_?(critic|dis|disc)",
    "sampling": r"(over|up|under)_?sampl\w*|(\w+_)?(weighted|balanced|stratified)_(sampl|batch)\w*",
    "max_records_per_user": r"((n|num)_)?((data|dataset|sample|record|example)_)?(repeats?|copies|duplicates)|"
    r"(repeat|duplication|oversampl\w*)_factor",
    "noise_multiplier": r"noise_cohort_size",
    "releases_per_batch": r"(updates|steps|iters)_per_(batch|step|iter\w*)|((n|num)_)?inner_(steps|epochs|iters)",
    "layer_noise_multipliers": r"clip_per_layer|per_layer(_clip\w*)?|layer_?wise_clip\w*",
    "count_noise_std": r"target_(un)?clip\w*_(quantile|rate|fraction)|(target|clip\w*)_quantile",
    "unit": r"(user|client|author|patient|person|group|document)_level(_(dp|privacy))?",
    "runs": r"sweep|multirun|optuna|param_grid|hyper_?param\w*_(search|tuning|opt\w*)",
    "schedule": r"noise(_multiplier|_scale|_std)?_(decay|schedul|anneal|warm|start|end|final|gamma|growth)\w*|"
    r"(start|end|initial|final|min|max)_noise_multiplier|batch_size_(schedul|growth|warm|increase)\w*",
}
"""Facts -> words of settings that may change them in a way that a file does not say."""


@functools.cache
def _named() -> dict[str, str]:
    named = {word: fact.name for fact in _ROWS for word in (fact.name, *fact.words) if word not in UNCLEAR}
    switches = ("private", *FACTS["private"].words)  # absl's flags are turned off by ``--nodpsgd``
    return {f"{no}{word}": "not_private" for word in switches for no in ("no", "no_")} | named


def meaning(word: str) -> str:
    """Return the name of the fact that a word means; empty for other words.

    >>> meaning("gradient_accumulation_steps"), meaning("--per-device-train-batch-size"), meaning("lr")
    ('accumulation', 'per_device_batch_size', '')
    """
    known = plain(word)
    return _named().get(known, "") or _named().get(known.removeprefix("dp_"), "")


def doubted(word: str) -> str:
    """Return the name of the fact that the setting of an unknown word may change; empty if there is none.

    >>> doubted("validation_split"), doubted("records"), doubted("lr")
    ('records', '', '')
    """
    known = "" if len(word) > 60 or meaning(word) or plain(word) in UNCLEAR else plain(word).removeprefix("dp_")
    return next((name for name, pattern in _DOUBTS.items() if re.fullmatch(pattern, known)), "")


def plain(word: str) -> str:
    """Return the last part of a dotted word in lower case with underscores."""
    return word.strip().lower().lstrip("-").replace("-", "_").rpartition(".")[2]


def value_of(name: str, node: Node) -> Any:
    """Return a value of a fact.

    Raises:
        SpecError: it is not a valid value.
    """
    kind = FACTS[name].kind
    if isinstance(node, Items) and kind is Kind.NUMBERS:
        if not 1 <= len(node.items) <= _MOST_IN_A_LIST:
            raise SpecError(f"{name} has {len(node.items)} values", f"from 1 to {_MOST_IN_A_LIST}")
        return tuple(_positive(_text(name, item)) for item in node.items)
    typed = _text(name, node)
    return _READERS[kind](typed) if kind is not Kind.WORD else _word(name, typed)


def _text(name: str, node: Node) -> str:
    if not isinstance(node, Scalar) or node.tagged or not node.text.strip() or len(node.text) > 200:
        raise SpecError(f"{name} is not a single value", "write a number or a word")
    return number_text(node, name).strip()


_NOT_POISSON = ("batch", "random", "sequential", "distributed", "shuffle", "shuffled", "subsetrandom", "grouped")
_POISSON = ("uniformwithreplacement", "distributeduniformwithreplacement", "poisson", "cyclicpoisson")
_SAMPLERS: dict[str, Sampling | None] = {
    **{f"{name}{end}": Sampling.POISSON for name in _POISSON for end in ("sampler", "sampling")},
    **{f"{name}sampler": None for name in _NOT_POISSON},
    "dpdataloader": Sampling.POISSON,
}
"""Classes of samplers, in lower case -> their sampling; None: unknown, but not Poisson."""


def drawn_by(text: str) -> Sampling | None:
    """Return the sampling of a word or a class of samplers; None if the class does not determine it.

    Raises:
        SpecError: the text is neither.

    >>> str(drawn_by("UniformWithReplacementSampler")), drawn_by("RandomSampler"), str(drawn_by("shuffle"))
    ('poisson', None, 'shuffle')
    """
    return _SAMPLERS[bare(text)] if bare(text) in _SAMPLERS else Sampling(str(check("sampling", text)))


def bare(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return "".join(letter for letter in text.lower() if letter.isalnum())


def _word(name: str, typed: str) -> str:
    if name == "sampling":
        drawn_by(typed)
        return typed
    if name in PARAMETERS and PARAMETERS[name].choices:
        return str(check(name, typed.rpartition(".")[2].lower().replace("_", "-")))
    if FACTS[name].choices and typed.lower() not in FACTS[name].choices:
        raise SpecError(f"{name} is {clipped(typed)}", f"one of {', '.join(FACTS[name].choices)}")
    return typed


def _count(typed: str) -> int:
    value = parse_integer(typed)
    if not 1 <= value <= MAX_RECORDS:
        raise SpecError(f"{clipped(typed)} is not a valid count", f"a whole number from 1 to {MAX_RECORDS:g}")
    return value


def _positive(typed: str) -> float:
    value = parse_number(typed)
    if not 0.0 < value < math.inf:
        raise SpecError(f"{clipped(typed)} is not above 0", "a positive number")
    return value


def _rate(typed: str) -> float:
    value = parse_number(typed)
    if not 0.0 < value <= 1.0:
        raise SpecError(f"{clipped(typed)} is not a probability above 0", "a number > 0 and <= 1")
    return value


def _switch(typed: str) -> bool:
    if typed.lower() not in (*TRUE, *FALSE):
        raise SpecError(f"{clipped(typed)} is neither true nor false", "write true or false")
    return typed.lower() in TRUE


def _numbers(typed: str) -> tuple[float, ...]:
    return tuple(_positive(part.strip()) for part in typed.split(","))


_READERS: dict[Kind, Callable[[str], Any]] = {
    Kind.COUNT: _count,
    Kind.NUMBER: _positive,
    Kind.RATE: _rate,
    Kind.DELTA: parse_delta,
    Kind.SWITCH: _switch,
    Kind.NUMBERS: _numbers,
}
