"""What is said of a run that was carried out: its metrics beside those of the non-private fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcalc.render.text import number
from dpcalc.report import Case, Report

_NAMES = {"accuracy": "accuracy", "rmse": "RMSE", "r2": "R2", "loss": "mean loss", "excess_risk": "excess risk"}
_RISKS = {
    "excess_risk": "expected excess risk under the law of the records, if they are independent draws from one,",
    "empirical_excess_risk": "expected excess risk on the records",
}
"""What bounds on the risk speak of: the first is another quantity than the excess risk measured."""


def warning(case: Case) -> str:
    """Return why the result is not private, where it is not; else nothing."""
    reason = (case.training or {}).get("why_not_private")
    return f"NOT PRIVATE: {reason}" if reason else ""


def kept_bounds(case: Case) -> str:
    """Return how the trained records are kept within their bounds, as the end of a statement."""
    bound = case.inputs.get("feature_bound", (None, ""))[0]
    if not case.training or bound is None:
        return ""
    norm = "1-norm" if case.training["norm"] == 1 else "Euclidean norm"
    return (
        f" Rows of the training data are shortened to {norm} at most {number(bound, side='as given')} by a rule that "
        "does not depend on the data."
    )


def rows(case: Case, precision: int) -> list[tuple[str, ...]]:
    """Return the table of metrics: the private model (of replicas the median and the range) and the non-private fit."""
    training = case.training
    if not training:
        return []
    parts = [part for part in ("train", "test") if part in training["metrics"]]
    body = []
    for name, label in _NAMES.items():
        for model, text in (("metrics", "private"), ("non_private", "non-private")):
            cells = [_cell(training, model, part, name, precision) for part in parts]
            if any(cells):
                body.append((label, text, *cells))
    return [("", "", *(f"{part} ({training[_COUNTS[part]]} records)" for part in parts)), *body]


_COUNTS = {"train": "records", "test": "test_records"}


def _cell(training: Mapping[str, Any], model: str, part: str, name: str, precision: int) -> str:
    spread = training.get("quantiles", {}).get(part, {}).get(name) if model == "metrics" else None
    if spread:
        low, *_, high = spread
        middle = spread[len(spread) // 2]
        return f"{number(middle, precision)} [{number(low, precision)}, {number(high, precision)}]"
    value = training[model].get(part, {}).get(name)
    return "" if value is None else number(value, precision)


def lines(case: Case, precision: int) -> list[str]:
    """Return what stands above and below the table of metrics."""
    training = case.training
    if not training:
        return []
    runs = f"{training['replicas']} runs" if "replicas" in training else "trained"
    features = f"{training['dimension']} columns" + (", one of them constant" if training["intercept"] else "")
    told = [f"{runs}: {training['steps']} steps on {training['records']} records of {features}"]
    clipped = training["rows_clipped"]
    total = training["records"] + training["test_records"]
    told[0] += f"; {clipped} of {total} rows shortened; noise: {training['noise_source']}"
    if "quantiles" in training:
        probabilities = training["quantiles"]["probabilities"]
        told.append(f"median [{probabilities[0]:.0%}, {probabilities[-1]:.0%} quantiles] over the runs")
    bound = training["excess_risk_bound"]
    if bound:
        value = number(bound["value"], precision, "up")
        empty = ", vacuous" if bound["vacuous"] else ""
        told.append(f"{_RISKS[bound['quantity']]} <= {value} ({bound['bound']}{empty})")
    else:
        told.append(f"excess risk: {training['excess_risk_bound_because']}")
    return told


def summary_names(report: Report) -> tuple[str, ...]:
    """Return the metrics that a summary of several cases shows: (part, metric) joined by a blank."""
    found: dict[str, None] = {}
    for case in report.cases:
        metrics = (case.training or {}).get("metrics", {})
        part = "test" if "test" in metrics else "train"
        for name in ("accuracy", "rmse"):
            if name in metrics.get(part, {}):
                found[f"{part} {name}"] = None
        if metrics:
            found["train excess_risk"] = None
    return tuple(found)


def summary_cells(case: Case, names: tuple[str, ...], precision: int) -> tuple[str, ...]:
    """Return a case's cells under `summary_names`."""
    if not case.training:
        return tuple("" for _ in names)
    pairs = [name.partition(" ") for name in names]
    return tuple(_cell(case.training, "metrics", part, metric, min(precision, 4)) for part, _, metric in pairs)
