"""Packages as their documentation uses them. Each is imported when it is asked."""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks.utility.budgets import DELTA, added_or_removed, gaussian_mu
from benchmarks.utility.contest import BINARY, NUMBERS
from benchmarks.utility.problem import CONSTANT, HALF, Array, Problem


def dpcalc(problem: Problem, epsilon: float, seed: int) -> Any:
    """Return predictions of dpcalc by its default rule: one line."""
    from dpcalc.sklearn import DPClassifier, DPRegressor

    ranges = (problem.low, problem.high)
    if problem.kind == NUMBERS:
        numbers = DPRegressor(epsilon, DELTA, ranges, problem.target, random_state=seed).fit(problem.x, problem.y)
        return numbers.predict(problem.test)
    classes = tuple(range(problem.classes))
    model = DPClassifier(epsilon, DELTA, classes, ranges, random_state=seed).fit(problem.x, problem.y)
    return model.predict(problem.test)


class Sgd(NamedTuple):
    """Parameters of DP-SGD.

    Attributes:
        clip: of each record's gradient.
        batches: the smallest number of batches of a pass.
        batch: the expected batch size, or less where there would be fewer batches.
        epochs: passes.
        step_size: the learning rate of SGD for classes.
        step_numbers: the same for numbers.
        constant: what the constant column holds.
    """

    clip: float
    batches: int
    batch: int
    epochs: int
    step_size: float
    step_numbers: float
    constant: float


SMALL = Sgd(0.1, 1, 128, 30, 20.0, 1.0, HALF)
"""What was measured first."""

LARGE = Sgd(0.1, 4, 1024, 30, 20.0, 1.0, CONSTANT)
"""Batches as large as the set allows, and the constant column of dpcalc: chosen on digits and boston."""


def opacus(problem: Problem, epsilon: float, seed: int, run: Sgd) -> Any:
    """Return predictions of a linear layer that Opacus trained at an add-or-remove budget that implies replace-one."""
    torch = importlib.import_module("torch")
    engines = importlib.import_module("opacus")
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    rows = torch.from_numpy(problem.rows(problem.x, run.constant)).float()
    numbers = problem.kind == NUMBERS
    outputs = 1 if problem.kind in (BINARY, NUMBERS) else problem.classes
    targets = problem.unit_targets() if numbers else problem.y
    answers = torch.from_numpy(targets)
    answers = answers.long() if outputs > 1 else answers.float()
    batch = min(run.batch, len(rows) // run.batches)
    model = torch.nn.Linear(rows.shape[1], outputs, bias=False)
    torch.nn.init.zeros_(model.weight)
    loss = _loss(torch, problem.kind)
    budget = added_or_removed(epsilon, DELTA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = torch.utils.data.DataLoader(
            _together(torch, rows, answers), batch_size=batch, collate_fn=lambda rows: rows
        )
        step_size = run.step_numbers if numbers else run.step_size
        model, optimizer, loader = engines.PrivacyEngine().make_private(
            module=model, optimizer=torch.optim.SGD(model.parameters(), lr=step_size), data_loader=loader,
            noise_multiplier=multiplier(*budget, 1.0 / len(loader), run.epochs * len(loader)),
            max_grad_norm=run.clip, poisson_sampling=True,
        )  # fmt: skip
        for _ in range(run.epochs):
            for some, expected in loader:
                optimizer.zero_grad()
                scores = model(some)
                loss(scores if outputs > 1 else scores[:, 0], expected).backward()
                optimizer.step()
    scores = problem.rows(problem.test, run.constant) @ model._module.weight.detach().numpy().T.astype(float)
    return decided(problem, scores)


def decided(problem: Problem, scores: Array) -> Array:
    """Return predictions from scores of shape (m, 1) or (m, K)."""
    if problem.kind == NUMBERS:
        return problem.in_units(scores[:, 0])
    return np.asarray(scores[:, 0] > 0.0 if scores.shape[1] == 1 else np.argmax(scores, axis=1))


def _loss(torch: Any, kind: str) -> Any:
    if kind == NUMBERS:
        return lambda scores, targets: 0.5 * torch.nn.functional.mse_loss(scores, targets)
    return torch.nn.BCEWithLogitsLoss() if kind == BINARY else torch.nn.CrossEntropyLoss()


def _together(torch: Any, rows: Any, answers: Any) -> Any:
    """Return a data set whose batches are cut at once, which is faster and changes nothing."""

    class Together(torch.utils.data.TensorDataset):  # type: ignore[misc, name-defined]
        def __getitems__(self, places: list[int]) -> Any:
            return rows[places], answers[places]

    return Together(rows, answers)


@lru_cache(maxsize=1000)
def multiplier(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """Return the noise over the clip for which Opacus's own accountant (PRV) allows the budget, to half a percent.

    Its own search starts far away, which takes minutes, and stops within an absolute 0.01 of epsilon, which is much of
    0.05. This one starts where the central limit theorem points and asks to a fiftieth of epsilon.
    """
    create = importlib.import_module("opacus.accountants").create_accountant

    def allowed(noise: float) -> bool:
        accountant = create("prv")
        accountant.history = [(noise, rate, steps)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return bool(accountant.get_epsilon(delta=delta, eps_error=0.02 * epsilon) <= epsilon)

    return least(allowed, clt(gaussian_mu(epsilon, delta), rate, steps))


def clt(mu: float, rate: float, steps: int) -> float:
    """Return the noise at which many sampled steps are about mu-Gaussian: mu = rate sqrt(steps (e^(1/noise^2) - 1))."""
    return math.log1p((mu / rate) ** 2 / steps) ** -0.5


def least(allowed: Callable[[float], bool], guess: float) -> float:
    """Return a noise that is allowed, at most half a percent above the least one; ``allowed`` holds from there on."""
    high = guess
    while not allowed(high):
        high *= 1.05
    low = high / 1.05
    while allowed(low):
        low, high = low / 1.05, low
    while high > 1.005 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if allowed(middle) else (middle, high)
    return high


def diffprivlib(problem: Problem, epsilon: float, seed: int) -> Any:
    """Return predictions of diffprivlib's model at (epsilon, 0), which is all it offers."""
    models = importlib.import_module("diffprivlib.models")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if problem.kind == NUMBERS:
            model = models.LinearRegression(
                epsilon=epsilon, bounds_X=(problem.low, problem.high), bounds_y=problem.target, random_state=seed
            )
            return model.fit(problem.x, problem.y).predict(problem.test)
        model = models.LogisticRegression(epsilon=epsilon, data_norm=1.0, max_iter=1000, random_state=seed)
        rows, test = (problem.rows(x, 0.0)[:, :-1] for x in (problem.x, problem.test))
        return model.fit(rows, problem.y).predict(test)


def constant(problem: Problem) -> Array:
    """Return the most frequent class or the mean of the training rows for every test row."""
    answer = problem.y.mean() if problem.kind == NUMBERS else np.argmax(np.bincount(problem.y.astype(int)))
    return np.full(len(problem.test), float(answer))


def not_private(problem: Problem) -> Any:
    """Return predictions of scikit-learn's own defaults, columns mapped to [-1, 1]."""
    models = importlib.import_module("sklearn.linear_model")

    def mapped(x: Array) -> Array:
        return 2.0 * (x - problem.low) / (problem.high - problem.low) - 1.0

    made = models.LinearRegression() if problem.kind == NUMBERS else models.LogisticRegression(max_iter=5000)
    return made.fit(mapped(problem.x), problem.y).predict(mapped(problem.test))
