"""An evaluation of a model in words.

The paragraph for a paper's appendix or a model card.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dpcalc.inert import printable
from dpcalc.model.quantities import Quantity
from dpcalc.render.numbers import SIX, Digits, Side, equation, number
from dpcalc.render.words import risk
from dpcalc.render.words.promise import promise
from dpcalc.render.words.risk import refuted
from dpcalc.render.words.sentences import enough, in_other_words, is_fact, released, targets_text
from dpcalc.report import Case, Report, Result

_REGRESSION = "regression"
_NAMES = {
    "accuracy": "accuracy", "auc": "AUC", "log_loss": "log loss", "rmse": "RMSE", "mae": "mean absolute error",
    "r2": "R2",
}  # fmt: skip


def evaluation_text(report: Mapping[str, Any]) -> str:
    """Return the lines about an evaluation as `dpcalc.recipes.evaluation.evaluate` reports it."""
    evaluation = _Evaluation(report)
    lines = evaluation.private() if report["private"] else evaluation.measured()
    return "\n".join([*lines, evaluation.model()]) + "\n"


class _Evaluation:
    """An evaluation, and its parts in words."""

    def __init__(self, report: Mapping[str, Any]) -> None:
        self.report = report
        names = [_NAMES[name] for name in report["metrics"]]
        self.metrics = dict(zip(names, report["metrics"].values(), strict=True))
        errors = report["task"] == _REGRESSION
        self.units = ["RMSE and mean absolute error are in the original units of the target"] if errors else []

    def measured(self) -> Iterator[str]:
        width = max(map(len, self.metrics))
        yield f"on {self.report['records']} test rows"
        for name, value in self.metrics.items():
            yield f"{name:<{width}}  {'undefined' if value is None else number(value)}"
        yield from (*self.units, *self.report["remarks"], f"NOT PRIVATE: {self.report['why_not_private']}")

    def private(self) -> Iterator[str]:
        report, share = self.report, f"{self.report['confidence']:.0%}"
        yield f"on {report['records']} test rows, with noise"
        for name, metric in self.metrics.items():
            between = _between(metric["low"], metric["high"])
            yield f"{name}  {number(metric['value'])}, {between} ({share}, over the noise)"
        if report["population"]:
            between = _between(*report["population"])
            yield f"among those of whom the rows are an independent sample: {between} ({share})"
        if report["error_bound"] is not None:
            yield f"errors are cut to {number(report['error_bound'])}; both intervals hold at once"
        yield from self.units
        epsilon, ledger = number(report["epsilon"], side=Side.UP), report["ledger"]
        guarantee = f"epsilon = {epsilon}, delta = 0, one row replaced"
        yield f"private for the test rows: {guarantee}; discrete Laplace noise, exact"
        charged = f"charged to {printable(ledger['file'])}" if ledger["file"] else "for the ledger of the test rows"
        yield f"{charged}: {ledger['entry']}"

    def model(self) -> str:
        """Return what the model's file says of the records that it was trained on."""
        model = self.report["model"]
        numbers = [model["epsilon"], model["delta"]]
        if model["private"] is not True or not all(isinstance(value, (int, float)) for value in numbers):
            return "the model: its file claims no guarantee for the records that it was trained on"
        epsilon, delta = (number(value, side=Side.ECHO) for value in numbers)
        return printable(
            f"the model: epsilon = {epsilon}, delta = {delta} for the records that it was trained on, its file says; a "
            "record that is in both pays for both"
        )


def _between(low: float, high: float) -> str:
    return f"between {number(low, side=Side.DOWN)} and {number(high, side=Side.UP)}"


_SAID_APART = ("epsilon", "delta", "algorithm", "adjacency")
"""Inputs that the sentences name by themselves."""


def render_statement(report: Report, digits: Digits = SIX) -> str:
    """Return one paragraph per case that names adjacency, what is released and every assumption."""
    return "\n".join(_statement(case, digits) + "\n" for case in report.cases)


def _statement(case: Case, digits: Digits) -> str:
    best = case.best
    if best is None:
        return "No guarantee applies."
    parameters = ", ".join(
        f"{equation(name, value)}{in_other_words(case, name)}"
        for name, (value, source) in case.inputs.items()
        if is_fact(name, source) and name not in _SAID_APART
    )
    adjacency = best.adjacency
    assumptions = "; ".join(best.assumes)
    warned = risk.warning(case)
    refutation = f"{text}. " if (text := refuted(case)) else ""
    caution = f"{warned}. {risk.caution(case)}" if warned else ""
    meant = "as Sekhari et al. 2021 define it" if best.forgetting else f"under {adjacency} adjacency"
    return (
        f"{refutation}{caution}We run {released(case).partition(': ')[2]} ({parameters}). {claim(best, digits)}, "
        f"{meant}. {promise(case)} The {'certificate' if best.forgetting else 'guarantee'} assumes: {assumptions}. "
        f"It follows from {best.reference} (`{best.bound}`), evaluated with dpcalc and rounded to the "
        f"safe side{_proved(best)}.{risk.kept_bounds(case)}{_chosen(case)}"
    )


def _chosen(case: Case) -> str:
    """Return that the guarantee covers the choice of settings, where they were chosen."""
    sentence = risk.chosen(case)
    return f" Of the settings {sentence}; the guarantee covers the choice." if sentence else ""


def _proved(best: Result) -> str:
    """Return that the number was also proved in ball arithmetic, if it was."""
    proof = (best.details or {}).get("certified")
    return f"; in ball arithmetic the formula was proved not to exceed it (at {proof['bits']} bits)" if proof else ""


def claim(best: Result, digits: Digits) -> str:
    """Return in a sentence what the result of the run is; of a parameter that was solved for, with which value."""
    value = digits.value(best)
    delta = digits.delta(best.delta, best.log_delta, Side.ECHO)
    if best.quantity in (Quantity.EPSILON, Quantity.DELTA):
        epsilon = value if best.quantity == Quantity.EPSILON else digits.number(best.epsilon or 0.0, Side.ECHO)
        delta = value if best.quantity == Quantity.DELTA else delta
        return f"The result {_has(best, f'({epsilon}, {delta})')}"
    if best.quantity == Quantity.MU:
        return f"The result {_has(best, f'{value}-Gaussian')}"
    if best.quantity == Quantity.RDP:
        order = digits.number(best.order or 0.0, Side.DOWN)
        kind = "Renyi unlearning" if best.forgetting else "Renyi differential privacy"
        return f"The result satisfies ({order}, {value})-{kind}"
    chosen = enough(best, digits) if (best.details or {}).get("holds") else f"{best.quantity} = {value}"
    if kept := targets_text(best):
        return f"With {chosen} every attack on the result keeps {kept}"
    epsilon = digits.number(best.epsilon or 0.0, Side.ECHO)
    return f"With {chosen} the result {_has(best, f'({epsilon}, {delta})')}"


def _has(best: Result, level: str) -> str:
    """Return what the result is, at some level: private, or rid of the records that were to be forgotten."""
    if best.forgetting:
        return f"meets {level}-unlearning" if level.startswith("(") else f"meets {level} unlearning"
    return f"is {level}-differentially private" if level.startswith("(") else f"is {level} differentially private"
