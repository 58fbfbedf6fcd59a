"""The names that the questions use. They are written down here, because a referee does not ask the player."""

ALGORITHMS = (
    "pnsgd", "skip", "stop", "local", "shuffled", "rotation", "shuffled-stop", "cyclic", "shuffle-once",
    "shuffled-epochs", "noisy-sgd", "noisy-gd", "repeated", "online", "dp-sgd", "dp-sgd-gradient", "dp-sgd-output",
)  # fmt: skip
COMMANDS: dict[str, tuple[str, ...]] = {
    "rdp": ("pnsgd", "skip", "stop", "local"),
    "hockey-stick": ("pnsgd", "stop"),
    "shuffle": ("shuffled", "rotation", "shuffled-stop"),
    "multi-epoch": ("cyclic", "shuffle-once", "shuffled-epochs", "noisy-sgd", "noisy-gd", "repeated"),
    "online": ("online",),
    "dp-sgd": ("dp-sgd", "dp-sgd-gradient", "dp-sgd-output"),
    "shifted": ("chain",),
    "unlearn": ("unlearning",),
    "compare": ALGORITHMS,
}
"""Which algorithms a command answers for."""
ALL_COMMANDS = (
    *COMMANDS, "ledger", "convert", "risk", "utility", "train", "audit", "predict", "evaluate", "model", "check",
    "merge", "explain", "bounds", "cite", "statement", "help", "init", "schema", "verify", "completions",
    "account", "find", "dp-ftrl",
)  # fmt: skip
PRICED = ("stop", "skip", "local", "noisy-gd", "dp-sgd-gradient", "dp-sgd-output")
TRAINED = (
    "noisy-gd", "noisy-sgd", "cyclic", "shuffle-once", "shuffled-epochs", "pnsgd", "skip", "stop", "shuffled",
    "rotation", "shuffled-stop", "online", "dp-sgd-gradient", "dp-sgd-output",
)  # fmt: skip
LOSSES = ("hinge", "absolute", "insensitive", "logistic", "huber", "squares")
LOSS_CLASSES = ("convex-smooth", "convex", "smooth", "lipschitz")
LAST_BATCHES = ("own", "nominal", "drop", "balanced", "front")
FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown", "statement", "explain", "bibtex")
TARGETS = (
    "noise_std", "laplace_scale", "lipschitz", "diameter", "strong_convexity", "step_size", "records", "index",
    "epochs", "steps", "batch_size", "window", "schedule_factor", "clean_steps",
    "start_distance", "epsilon", "delta", "smoothness", "dimension",
)  # fmt: skip
"""What --solve is asked for; the last two cannot be solved for."""
FLAGS = (
    "--algorithm", "--records", "--index", "--batch-size", "--lipschitz", "--smoothness", "--strong-convexity",
    "--step-size", "--noise-std", "--diameter", "--adjacency", "--loss", "--feature-bound", "--label-bound", "--power",
    "--huber-threshold", "--tube", "--radius", "--regularisation", "--loss-class", "--displacement", "--laplace-scale",
    "--noise", "--dimension", "--last-batch", "--permutation", "--c1", "--c2", "--release", "--epochs", "--steps",
    "--noise-multiplier", "--clip", "--sampling", "--sample-rate",
    "--langevin-std", "--epoch-epsilon", "--epoch-delta", "--window", "--decay-exponent", "--schedule-factor",
    "--holder-exponent", "--holder-constant", "--gradient-at-zero", "--loss-at-zero", "--epsilon", "--delta", "--order",
    "--format", "--precision", "--color", "--schedule", "--solve", "--assert", "--shift", "--contraction",
    "--start-distance", "--start", "--clean-steps", "--requests",
    "--public-records", "--tasks", "--failure-probability", "--replicas", "--seed",
)  # fmt: skip
BOUNDS = (
    "iteration.pnsgd", "iteration.pnsgd_rdp", "iteration.pnsgd_contraction", "iteration.pnsgd_domain",
    "iteration.linear_model", "shuffle.linear_model", "multi_epoch.linear_model",
    "shuffled_epochs.once_linear_model",
    "iteration.skip", "iteration.skip_rdp", "iteration.stop", "iteration.stop_rdp", "iteration.stop_harmonic",
    "iteration.stop_linear", "iteration.stop_published", "iteration.local", "iteration.local_rdp",
    "iteration.local_classic", "scheduled.pnsgd", "shifted.gaussian", "shifted.gaussian_domain",
    "unlearning.distance", "unlearning.schedule", "unlearning.minimiser", "unlearning.run",
    "unlearning.whole_run", "shifted.given_spend", "shifted.laplace", "shifted.laplace_domain", "multi_epoch.cyclic",
    "multi_epoch.cyclic_rdp", "multi_epoch.cyclic_contraction", "multi_epoch.cyclic_domain",
    "multi_epoch.composition", "multi_epoch.quadratic", "multi_epoch.contraction_published",
    "multi_epoch.domain_published", "multi_epoch.dynamics_published", "contraction.product",
    "contraction.paper_product", "contraction.nonlinear", "contraction.shift", "contraction.laplace_shift",
    "contraction.laplace_mixture", "contraction.hybrid", "contraction.stop_product", "contraction.stop_nonlinear",
    "contraction.stop_hybrid", "contraction.stop_published", "shuffle.product", "shuffle.nonlinear",
    "shuffle.mixture", "shuffle.laplace_mixture", "shuffle.hybrid", "shuffle.stop_product", "shuffle.stop_hybrid",
    "shuffle.limit", "shuffle.nonlinear_limit", "hidden_position.shuffled", "online.product", "online.shift",
    "online.laplace_shift", "online.hybrid", "online.limit", "online.limit_above", "online.limit_below",
    "online.limit_printed", "stepwise.product", "stepwise.hybrid", "stepwise.stop", "stepwise.shuffled_product",
    "stepwise.shuffled_hybrid", "noisy_gd.contraction", "noisy_gd.domain", "noisy_gd.composition",
    "noisy_gd.langevin", "noisy_gd.langevin_refined", "noisy_gd.quadratic", "noisy_gd.langevin_lower",
    "noisy_gd.langevin_published", "noisy_gd.dynamics_published", "noisy_gd.domain_published",
    "noisy_sgd.composition", "noisy_sgd.hidden", "released.own_noise", "released.cyclic", "released.cyclic_curve",
    "released.shuffle_once", "released.optimal", "released.pure", "released.advanced", "released.shuffled_epochs",
    "released.shuffled_epochs_point", "released.shuffled_epochs_rdp", "released.shuffled_epochs_secret",
    "released.shuffle_once_secret", "released.shuffled_epochs_secret_curve",
    "shuffled_epochs.once", "shuffled_epochs.worst_position", "shuffled_epochs.fresh", "shuffled_epochs.once_secret",
    "shuffled_epochs.fresh_secret", "expanding.composition", "expanding.domain", "expanding.cyclic", "expanding.once",
    "expanding.fresh", "expanding.sampled", "expanding.laplace", "multi_epoch.laplace",
    "shuffled_epochs.once_laplace", "noisy_gd.laplace",
    "linear.pass", "linear.passes", "linear.descent", "linear.local",
    "linear.shuffled", "linear.once", "linear.epochs", "linear.sampled",
    "linear.sampled_curved", "linear.curved", "linear.curved_passes",
    "linear.curved_released", "linear.stop", "linear.skip", "linear.shuffled_stop", "linear.shuffled_curved",
    "linear.once_curved", "linear.shuffled_curved_secret", "linear.once_curved_secret",
    "linear.forgetting", "linear.forgetting_passes", "linear.forgetting_released", "linear.stop_forgetting",
    "linear.skip_forgetting", "linear.once_curved_released", "linear.shuffled_stop_curved",
    "linear.epochs_curved", "linear.epochs_curved_released",
    "correlated.gaussian", "correlated.matrix", "correlated.banded_poisson", "correlated.banded_balls",
    "sampled.poisson", "sampled.fixed", "sampled.with_replacement", "sampled.full", "sampled.balls_in_bins",
    "sampled.shuffle", "sampled.truncated", "sampled.scheduled", "sampled.known_places", "sampled.total_lower",
    "sampled.shuffle_lower", "sampled.hidden_lower", "sampled.hidden", "sampled.hidden_shuffle", "sampled.hidden_full",
    "sampled.last_iterate_heuristic",
    "dp_sgd.output", "dp_sgd.output_split", "dp_sgd.output_published", "dp_sgd.gradient", "dp_sgd.gradient_renyi",
    "dp_sgd.gradient_lemma", "dp_sgd.gradient_published", "utility.average", "utility.average_published",
    "utility.stop", "utility.stop_from_centre", "utility.stop_classic", "utility.skip",
    "utility.skip_from_centre", "utility.skip_classic", "utility.person", "utility.public",
    "utility.public_classic", "utility.public_published", "tasks.stop", "tasks.harmonic", "tasks.published",
    "smoothing.kernel", "smoothing.skip", "smoothing.skip_classic", "smoothing.skip_published",
    "langevin.explicit", "langevin.iterated", "langevin.shifted", "langevin.boundary", "langevin.least_order",
    "descent.last", "descent.least_noise", "holder_cost.gradient_expected", "holder_cost.output_expected",
    "holder_cost.gradient_published", "holder_cost.gradient_uniform", "holder_cost.gradient_likely",
    "holder_cost.output_published", "holder_cost.output_uniform", "holder_cost.output_likely",
)  # fmt: skip
