"""An evaluation of a model in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcalc.inert import printable
from dpcalc.render.numbers import Side, number

_NAMES = {
    "accuracy": "accuracy", "auc": "AUC", "log_loss": "log loss", "rmse": "RMSE", "mae": "mean absolute error",
    "r2": "R2",
}  # fmt: skip


def evaluation_text(report: Mapping[str, Any]) -> str:
    """Return the lines about an evaluation as `dpcalc.recipes.ledgers.evaluation.evaluate` reports it."""
    lines = _private(report) if report["private"] else _measured(report)
    return "\n".join([*lines, _model(report["model"])]) + "\n"


def _measured(report: Mapping[str, Any]) -> list[str]:
    metrics = report["metrics"].items()
    width = max(len(_NAMES[name]) for name, _ in metrics)
    lines = [f"on {report['records']} test rows"]
    lines += [f"{_NAMES[name]:<{width}}  {'undefined' if value is None else number(value)}" for name, value in metrics]
    return [*lines, *_units(report), *report["remarks"], f"NOT PRIVATE: {report['why_not_private']}"]


def _units(report: Mapping[str, Any]) -> list[str]:
    """Return what errors are measured in; nothing of a classification."""
    said = "RMSE and mean absolute error are in the original units of the target"
    return [said] if report["task"] == "regression" else []


def _private(report: Mapping[str, Any]) -> list[str]:
    share = f"{report['confidence']:.0%}"
    lines = [f"on {report['records']} test rows, with noise"]
    for name, found in report["metrics"].items():
        low, high = number(found["low"], side=Side.DOWN), number(found["high"], side=Side.UP)
        lines.append(f"{_NAMES[name]}  {number(found['value'])}, between {low} and {high} ({share}, over the noise)")
    if report["population"]:
        low, high = report["population"]
        lines.append(
            f"among those of whom the rows are an independent sample: between {number(low, side=Side.DOWN)} and "
            f"{number(high, side=Side.UP)} ({share})"
        )
    if report["error_bound"] is not None:
        lines.append(f"errors are cut to {number(report['error_bound'])}; both intervals hold at once")
    lines += _units(report)
    ledger = report["ledger"]
    charged = f"charged to {printable(ledger['file'])}" if ledger["file"] else "for the ledger of the test rows"
    epsilon = number(report["epsilon"], side=Side.UP)
    return [
        *lines,
        f"private for the test rows: epsilon = {epsilon}, delta = 0, one row replaced; discrete Laplace noise, exact",
        f"{charged}: {ledger['entry']}",
    ]


def _model(model: Mapping[str, Any]) -> str:
    """Return what the model's file says of the records that it was trained on."""
    numbers = [model["epsilon"], model["delta"]]
    if model["private"] is not True or not all(isinstance(each, (int, float)) for each in numbers):
        return "the model: its file claims no guarantee for the records that it was trained on"
    epsilon, delta = (number(each, side=Side.ECHO) for each in numbers)
    return printable(
        f"the model: epsilon = {epsilon}, delta = {delta} for the records that it was trained on, its file says; a "
        "record that is in both pays for both"
    )
