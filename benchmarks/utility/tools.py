"""Who is asked: by name, what each can do and how it predicts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from benchmarks.utility import gradients, objectives, packages
from benchmarks.utility.budgets import DELTA, gaussian_mu
from benchmarks.utility.contest import BINARY, CLASSES, NUMBERS
from benchmarks.utility.problem import CONSTANT, Array, Problem

Fit = Callable[[Problem, float, int], Any]


class Tool(NamedTuple):
    """How a tool predicts the test rows from a problem, epsilon and a seed, and for which kinds of problem."""

    fit: Fit
    kinds: tuple[str, ...]


def descent(problem: Problem, epsilon: float, seed: int) -> Array:
    """Return predictions of clipped gradient descent at fixed parameters."""
    run = gradients.REGRESS if problem.kind == NUMBERS else gradients.CLASSIFY
    sigma = gradients.noise_of(run, len(problem.x), gaussian_mu(epsilon, DELTA))
    targets = problem.unit_targets() if problem.kind == NUMBERS else problem.y
    rows = problem.rows(problem.x, CONSTANT)
    weights = gradients.descend(rows, targets, problem.kind, problem.classes, run, sigma, seed)
    return packages.decided(problem, problem.rows(problem.test, CONSTANT) @ weights)


def perturbed(problem: Problem, epsilon: float, seed: int) -> Array:
    """Return predictions of objective perturbation, at (epsilon, 0)."""
    weights = objectives.perturbed_logistic(problem.rows(problem.x, CONSTANT), problem.y, epsilon, seed)
    return packages.decided(problem, (problem.rows(problem.test, CONSTANT) @ weights)[:, None])


def adassp(problem: Problem, epsilon: float, seed: int) -> Array:
    """Return predictions of AdaSSP."""
    rows, targets = problem.rows(problem.x, CONSTANT), problem.unit_targets()
    weights = objectives.adassp(rows, targets, gaussian_mu(epsilon, DELTA), DELTA, seed)
    return packages.decided(problem, (problem.rows(problem.test, CONSTANT) @ weights)[:, None])


ALL = (BINARY, CLASSES, NUMBERS)

TOOLS: dict[str, Tool] = {
    "dpcalc": Tool(packages.dpcalc, ALL),
    "descent": Tool(descent, ALL),
    "objective": Tool(perturbed, (BINARY,)),
    "adassp": Tool(adassp, (NUMBERS,)),
    "diffprivlib": Tool(packages.diffprivlib, ALL),
    "opacus": Tool(partial(packages.opacus, run=packages.SMALL), ALL),
    "opacus-large": Tool(partial(packages.opacus, run=packages.LARGE), ALL),
    "constant": Tool(lambda problem, epsilon, seed: packages.constant(problem), ALL),
    "not-private": Tool(lambda problem, epsilon, seed: packages.not_private(problem), ALL),
}
