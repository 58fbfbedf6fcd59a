"""An evaluation of a model in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dpcalc.inert import printable
from dpcalc.render.numbers import Side, number

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
