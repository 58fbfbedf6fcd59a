"""The commands, in the sections in which the first page shows them."""

from __future__ import annotations

SECTIONS = {
    "Ask": {
        "dp-sgd": "DP-SGD with clipped gradients, as Opacus runs it.",
        "dp-ftrl": "Correlated noise: DP-FTRL, trees, banded matrices.",
        "compare": "Every bound that applies to one described run, best first.",
        "multi-epoch": "Many passes: ordered, shuffled or sampled; hidden iterates.",
        "shuffle": "One pass in a random order; fixed noise or noise tuned to n.",
        "rdp": "One pass in a fixed order, whose iterates stay hidden.",
        "ledger": "Several runs and queries about the same records, composed.",
        "convert": "One notion of privacy in the words of another.",
        "risk": "What an attacker can do against a guarantee.",
        "utility": "What a budget costs: excess risk, noise, steps.",
    },
    "Check": {
        "account": "What a run really spent, from its files; plan against run.",
        "check": "Run recipe files: cases of any command, and their gates.",
        "init": "Write a recipe from a training configuration.",
        "verify": "Recompute a privacy card, and compare every field.",
        "audit": "Attack a run, and prove the least epsilon it can have.",
    },
    "Train": {
        "train": "Run an algorithm on data, privately: budget in, model out.",
        "model": "The coefficients of a trained model, and their noise.",
        "predict": "Predict the target of rows by a model that train wrote.",
        "evaluate": "How good a model is on test rows, plainly or privately.",
    },
    "Look up": {
        "find": "Bounds, authors, theorems, figures, errata, parameters, topics.",
        "explain": "What a bound says, or why the best answer for a run is true.",
        "bounds": "List the bounds, or those that apply to a run, and why.",
        "statement": "A paragraph for a paper or a model card about a run.",
        "help": "What to type first; pages about topics; the proofs.",
    },
    "Rarer": {
        "online": "A growing stream with decaying noise.",
        "unlearn": "Make a model forget records by noisy steps on those kept.",
        "hockey-stick": "One record along a pass, ordered or stopped at random.",
        "shifted": "Any noisy Lipschitz steps, with the best shifts.",
        "merge": "One verdict from the reports of all shards of a check.",
        "cite": "BibTeX of a bound, or of the best answer for a run.",
        "schema": "Print the JSON schema of a report, a recipe or a card.",
        "completions": "Print the completion script of a shell, or the manual page.",
    },
}
"""The commands as the help shows them, those of the last section by their names alone."""

COMMANDS = {name: text for commands in SECTIONS.values() for name, text in commands.items()}

MORE = (
    "account", "online", "risk", "ledger", "convert", "utility", "train", "audit", "predict", "evaluate", "model",
    "init", "check", "merge", "verify", "explain", "find", "bounds", "cite", "help", "schema", "completions",
)  # fmt: skip
"""The commands with code of their own; every other one is a row of `dpcalc.cli.runs.RUNS`."""

BESIDE = {"cite": "explain", "schema": "completions"}
"""Small commands, and the module of another command in which each stands under its own name."""
