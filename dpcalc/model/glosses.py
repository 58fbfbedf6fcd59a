"""One line on each word that a parameter can have as its value, for --help and the command reference."""

from __future__ import annotations

from typing import NamedTuple

from dpcalc.model.algorithm import ALGORITHMS


class Glossed(NamedTuple):
    """A parameter whose values are words: a short description of it and of each word."""

    lead: str
    words: dict[str, str]


_ALGORITHMS = {
    "pnsgd": "one pass in a fixed order",
    "skip": "one pass after skipping a random prefix of the records",
    "stop": "one pass in a fixed order, stopped after a random step",
    "local": "a record's own noisy gradient; all else may be public",
    "shuffled": "one pass in a random order",
    "rotation": "one pass in cyclic order, from a random record on",
    "shuffled-stop": "one pass in a random order, stopped after a random step",
    "cyclic": "several passes in one fixed order",
    "shuffle-once": "several passes in one random order",
    "rotation-epochs": "several passes, cyclic from one random record on",
    "shuffled-epochs": "several passes, each in a fresh random order",
    "noisy-sgd": "steps on fresh uniform batches of fixed size",
    "noisy-gd": "steps on the mean gradient of all records",
    "repeated": "passes known by the (epsilon, delta) of one",
    "online": "one pass over a growing stream, with decaying noise",
    "dp-sgd": "clipped gradients, noise on their sum (Opacus)",
    "correlated": "clipped gradients, noise correlated from step to step",
    "dp-sgd-output": "the average iterate, with noise on it alone",
    "dp-sgd-gradient": "the average iterate, with noise in every step",
    "all": "whichever the description fits",
}


def gloss_of(algorithm: str) -> str:
    """Return a few words on what an algorithm runs.

    >>> gloss_of("shuffled")
    'one pass in a random order'
    """
    return _ALGORITHMS.get(algorithm) or ALGORITHMS[algorithm].gloss.partition(";")[0]


GLOSSED: dict[str, Glossed] = {
    "algorithm": Glossed("what is run", _ALGORITHMS),
    "adjacency": Glossed(
        "how neighbouring data sets differ",
        {
            "replace-one": "one record is replaced by another",
            "null-record": "one record's gradient becomes zero (also zero-out)",
            "add-remove": "one record is added or removed (dp-sgd)",
            "add": "one record is added (dp-sgd)",
            "remove": "one record is removed (dp-sgd)",
        },
    ),
    "release": Glossed(
        "what is released; dp-sgd without it: every iterate",
        {"last": "the last iterate alone", "epoch": "the iterate after every epoch"},
    ),
    "last_batch": Glossed(
        "how left-over records are handled",
        {
            "own": "a short last batch, divided by its own size",
            "nominal": "a short last batch, divided by the batch size",
            "drop": "they are not used",
            "balanced": "all batches differ by at most one record",
            "front": "a short first batch, divided by its own size",
        },
    ),
    "permutation": Glossed(
        "who may learn the random order",
        {"public": "anybody", "secret": "nobody, ever: you promise that it and its seed stay secret"},
    ),
    "sampling": Glossed(
        "how a batch is drawn",
        {
            "poisson": "every record by itself, with the same probability",
            "fixed": "batch_size records, afresh in every step",
            "with-replacement": "batch_size draws of single records; one may come several times",
            "balls-in-bins": "every epoch, each record in one step chosen at random",
            "shuffle": "every epoch, the records shuffled and cut into batches",
            "full": "all records",
        },
    ),
    "loss_class": Glossed(
        "what is known of every loss",
        {
            "convex-smooth": "convex, with the given smoothness",
            "convex": "convex; need not be smooth",
            "smooth": "smooth; need not be convex",
            "lipschitz": "a bounded gradient alone, as with clipping",
        },
    ),
    "loss": Glossed(
        "a loss of a linear model, from which its constants follow",
        {
            "hinge": "max(0, 1 - y <w, x>)^q, q = --power",
            "absolute": "|<w, x> - y|^q",
            "insensitive": "max(0, |<w, x> - y| - tau)^q, tau = --tube",
            "logistic": "ln(1 + exp(-y <w, x>))",
            "huber": "squares near 0, linear past --huber-threshold",
            "squares": "(<w, x> - y)^2/2",
            "softmax": "ln(sum of exp(<w_k, x>)) - <w_y, x>, of --classes classes",
        },
    ),
    "model": Glossed(
        "what clipping is applied to",
        {
            "linear": "a linear model: clipped gradients stay convex",
            "capped": "a linear model whose softmax is capped, with --loss softmax",
            "any": "anything else, as a neural network",
        },
    ),
    "mechanism": Glossed(
        "which matrix C correlates the noise of the steps",
        {
            "identity": "none: independent noise",
            "tree": "sums over dyadic ranges of steps",
            "sqrt": "the square root of the matrix of prefix sums",
            "banded-sqrt": "its first bands",
            "bisr": "the inverse of the first bands of its inverse",
            "blt": "a sum of geometric sequences, close to the square root",
            "file": "that of --matrix FILE",
            "best": "of all but that of a file, the one with the least noise in the iterates",
        },
    ),
    "scaling": Glossed(
        "what a noise multiplier of correlated noise is over: the clipping norm times",
        {
            "matrix": "1: the noise is added to C times the gradients",
            "columns": "the largest norm of a column of C",
            "sensitivity": "how far one record moves C times the gradients",
        },
    ),
    "start": Glossed(
        "what is known about the model before unlearning",
        {
            "distance": "how far it is from one that never saw the records",
            "minimiser": "it minimises a strongly convex mean loss",
            "run": "it is the last iterate of noisy SGD in a fixed order",
        },
    ),
    "noise": Glossed("kind of noise", {"gaussian": "normal noise", "laplace": "Laplace noise"}),
}
"""The parameters whose values are words."""
