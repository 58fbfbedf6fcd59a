"""What is asked: every question as data, in sections of the report.

Noise is relative to a sensitivity of 1: how far the sum changes when one record is added or removed (`poisson`, as the
packages for it define their neighbours), left out (`balls`) or replaced (`batches`: fixed-size samples without
replacement), so that the same number means the same pair of laws to everybody. For `gaussian` and `laplace` the pair is
the same either way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Given = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """One question to everybody who has a method for its kind."""

    section: str
    kind: str
    given: Given

    @property
    def title(self) -> str:
        """The question in a line."""
        return ", ".join(f"{name} {value:g}" for name, value in self.given.items())


def _gaussian(section: str, sigma: float, count: int, delta: float) -> Question:
    return Question(section, "gaussian", {"sigma": sigma, "count": count, "delta": delta})


def _poisson(section: str, sigma: float, rate: float, count: int, delta: float) -> Question:
    return Question(section, "poisson", {"sigma": sigma, "rate": rate, "count": count, "delta": delta})


def _batches(section: str, sigma: float, batch: int, count: int, delta: float) -> Question:
    given = {"sigma": sigma, "records": 60000, "batch": batch, "count": count, "delta": delta}
    return Question(section, "batches", given)


def _balls(section: str, sigma: float, bins: int, epochs: int, delta: float) -> Question:
    return Question(section, "balls", {"sigma": sigma, "bins": bins, "epochs": epochs, "delta": delta})


def _ordered(kind: str, sigma: float, steps: int, epochs: int) -> Question:
    return Question("correlated", kind, {"sigma": sigma, "steps": steps, "epochs": epochs, "delta": 1e-6})


def _banded(sigma: float, rate: float, bands: int, steps: int) -> Question:
    given = {"sigma": sigma, "rate": rate, "bands": bands, "steps": steps, "delta": 1e-6}
    return Question("correlated", "banded", given)


def _laplace(section: str, scale: float, count: int, delta: float) -> Question:
    return Question(section, "laplace", {"scale": scale, "count": count, "delta": delta})


def _repeated(section: str, epsilon0: float, delta0: float, count: int, delta: float) -> Question:
    given = {"epsilon0": epsilon0, "delta0": delta0, "count": count, "delta": delta}
    return Question(section, "repeated", given)


def _run(kind: str, **given: Any) -> Question:
    fixed = {"records": 60000, "batch": 250, "lipschitz": 1.0, "smoothness": 1.0, "step_size": 0.1}
    return Question("hidden", kind, {**fixed, **given, "delta": 1e-6})


SECTIONS = {
    "everyday": "Epsilon at delta",
    "inverse": "The least noise for a budget",
    "composition": "Composition of (epsilon0, delta0)",
    "extremes": "Extremes",
    "correlated": "Correlated noise",
    "hidden": "What only dpcalc answers: hidden iterates",
}

INTRODUCTIONS = {
    "correlated": (
        "The sensitivity is that of jax-privacy, and epsilon of it dp-accounting's, as in the guides of both; banded "
        "noise is composed as JAX-Privacy's `amplified_bandmf_event`. Neither rounds outwards."
    ),
    "inverse": "An answer below the truth is too little noise.",
    "hidden": (
        "Only the last iterate is released, and the loss is convex and smooth. A peer has no theorem for that and "
        "accounts for every iterate: the answers differ by what hiding is worth. *lower bound* is what "
        "`dpcalc compare` proves necessary. One record is replaced; peers are given noise_std batch/(2 lipschitz)."
    ),
}

QUESTIONS = (
    _gaussian("everyday", 20.0, 1000, 1e-6),
    _poisson("everyday", 1.0, 0.01, 1000, 1e-6),
    _batches("everyday", 1.0, 600, 1000, 1e-6),
    _balls("everyday", 1.0, 100, 1, 1e-6),
    _balls("everyday", 1.0, 100, 10, 1e-6),
    _laplace("everyday", 32.0, 1000, 1e-6),
    Question("inverse", "gaussian noise", {"count": 1000, "epsilon": 8.0, "delta": 1e-5}),
    Question("inverse", "poisson noise", {"rate": 0.01, "count": 1000, "epsilon": 2.0, "delta": 1e-6}),
    Question(
        "inverse", "batches noise", {"records": 60000, "batch": 600, "count": 1000, "epsilon": 2.0, "delta": 1e-6}
    ),
    _repeated("composition", 0.1, 1e-8, 100, 1e-4),
    _repeated("composition", 0.1, 0.0, 100, 1e-6),
    _repeated("composition", 0.1, 1e-8, 1000000, 1e-2),
    _repeated("composition", 0.1, 1e-8, 1000000, 1e-4),
    _gaussian("extremes", 20.0, 1000, 1e-20),
    _gaussian("extremes", 20.0, 1000, 1e-300),
    _gaussian("extremes", 2000.0, 1000000, 1e-6),
    _gaussian("extremes", 0.01, 1, 1e-6),
    _poisson("extremes", 1.0, 0.01, 1000, 1e-20),
    _poisson("extremes", 1.0, 0.01, 1000, 1e-100),
    _poisson("extremes", 1.0, 0.001, 1000000, 1e-6),
    _balls("extremes", 1.0, 1000, 1, 1e-20),
    _ordered("square root", 5.0, 1000, 5),
    _ordered("square root", 20.0, 10000, 20),
    _ordered("tree", 8.0, 1000, 1),
    _banded(1.2, 0.005, 10, 1000),
    _run("run: fixed order", epochs=20, noise_std=0.05),
    _run("run: fixed order, noise", epochs=20, epsilon=1.0),
    _run("run: new order", epochs=20, noise_std=0.05),
)

KINDS = {
    "gaussian": "Gaussian mechanism, count times",
    "gaussian noise": "Gaussian mechanism, count times: the least sigma",
    "poisson": "Gaussian mechanism on Poisson samples, one record added or removed",
    "poisson noise": "Gaussian mechanism on Poisson samples, one record added or removed: the least sigma",
    "batches": "Gaussian mechanism on samples of fixed size without replacement, one record replaced",
    "batches noise": "Gaussian mechanism on samples of fixed size, one record replaced: the least sigma",
    "balls": "Gaussian mechanism on balls in bins, one of so many bins in every epoch, one record left out",
    "laplace": "Laplace mechanism, count times",
    "repeated": "(epsilon0, delta0)-private mechanisms, count times",
    "square root": "noise by the square root of prefix sums, batches in a fixed order, one record left out",
    "tree": "noise by a binary tree, one pass, one record left out",
    "banded": "banded noise, columns of norm 1, with Poisson batches from groups, one record added or removed",
    "run: fixed order": "training in a fixed order",
    "run: fixed order, noise": "training in a fixed order: the least noise",
    "run: new order": "training in a new random order every epoch",
}


def quick() -> tuple[Question, ...]:
    """Return the first question of every section."""
    first: dict[str, Question] = {}
    for question in QUESTIONS:
        first.setdefault(question.section, question)
    return tuple(first.values())
