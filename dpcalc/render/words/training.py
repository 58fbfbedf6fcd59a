"""The lines on a run that was trained: its metrics beside those of the non-private fit, and what they do not cover."""

from __future__ import annotations

from dpcalc.model.draft import NOISE_SCALES
from dpcalc.render.numbers import Digits, Side, number
from dpcalc.report import PARTS, Case, Report

_NAMES = {
    "accuracy": "accuracy",
    "mae": "mean absolute error",
    "rmse": "RMSE",
    "r2": "R2",
    "loss": "mean loss",
    "excess_risk": "excess risk",
}
_RISKS = {
    "excess_risk": "expected excess risk under the law of the records, if they are independent draws from one,",
    "empirical_excess_risk": "expected excess risk on the records",
}
"""What bounds on the risk speak of: the first is another quantity than the excess risk measured."""


def warning(case: Case) -> str:
    """Return why the result is not private, where it is not; else nothing."""
    trained = case.training or {}
    if trained.get("private", True) is True and not trained.get("why_not_private"):
        return ""
    return f"NOT PRIVATE: {trained.get('why_not_private') or 'the report does not say why'}"


def caution(case: Case) -> str:
    """Return what the numbers of a model that is not private are of, as the start of a sentence."""
    return "" if case.forgetting else _REAL_NOISE


_REAL_NOISE = "What follows holds of the algorithm with noise that nobody can draw again. "


def kept_bounds(case: Case) -> str:
    """Return how the trained records are kept within their bounds, as the end of a statement."""
    if not case.training:
        return ""
    bound = case.inputs.get("feature_bound", (case.training.get("feature_bound"), ""))[0]
    if bound is None:
        return ""
    norm = "1-norm" if case.training["norm"] == 1 else "Euclidean norm"
    return (
        f" Rows of the training data are shortened to {norm} at most {number(bound, side=Side.AS_GIVEN)} by a rule "
        "that does not depend on the data." + (_SUMS if case.training.get("solver") else "") + _first_steps(case)
    )


def _first_steps(case: Case) -> str:
    """Return what the first steps of a run on centred rows are, as the end of a statement."""
    training = case.training or {}
    centre = training.get("centre")
    if not centre:
        return ""
    mean, distance = centre["mean"], centre["distance"]
    first = mean + distance
    return (
        f" The first {first} of the {first + training['steps']} accounted steps are noisy sums too, of the same "
        f"sensitivity: {mean} of the rows, {distance} of their distances from the noisy mean row; the others descend "
        "on rows about that row, shortened in the same way."
    )


_SUMS = (
    " The gradient of the one step is that of linear losses: its entries are the sums of products of columns and "
    "target from which least squares are solved."
)


def metric_rows(case: Case, digits: Digits) -> list[tuple[str, ...]]:
    """Return the table of metrics: the private model (of replicas the median and the range) and the non-private fit."""
    training = case.training
    if not training or not training["metrics"]:
        return []
    parts = [part for part in PARTS if part in training["metrics"]]
    own, body = "private" if training["private"] else "this model", []
    for name, label in _NAMES.items():
        for model, text in ((_METRICS, own), ("non_private", "non-private")):
            cells = [_cell(case, model, part, name, digits) for part in parts]
            if any(cells):
                body.append((label, text, *cells))
    return [("", "", *(f"{part} ({training[_COUNTS[part]]} records)" for part in parts)), *body]


_METRICS = "metrics"
"""The field of what was measured of the private model."""

_COUNTS = {"train": "records", "test": "test_records"}


def _cell(case: Case, model: str, part: str, name: str, digits: Digits) -> str:
    training = case.training or {}
    spread = training.get("quantiles", {}).get(part, {}).get(name) if model == _METRICS else None
    if spread and None not in spread:
        low, *_, high = spread
        middle = spread[len(spread) // 2]
        return f"{digits.number(middle)} [{digits.number(low)}, {digits.number(high)}]"
    value = (training[model] or {}).get(part, {}).get(name)
    return "" if value is None else digits.number(value)


def chosen(case: Case) -> str:
    """Return in a sentence what was chosen by a tuned run, and how; empty where nothing was."""
    tuning = (case.training or {}).get("tuning")
    if not tuning:
        return ""
    settings = tuning["candidates"][tuning["chosen"]]
    best = ", ".join(
        f"{name} = {number(value, side=Side.AS_GIVEN)}"
        for name, value in settings.items()
        if name not in (*NOISE_SCALES, "mu", "bound")
    )
    score = tuning["score"]
    scored = ", ".join(
        f"{_NAMES[name]} {number(score[name], 4)}" for name in ("accuracy", "mae") if score.get(name) is not None
    )
    noisy = " with noise" if score["epsilon"] is not None else ""
    return (
        f"{best} was chosen of {len(tuning['candidates'])} candidates, as the best of a random number of runs "
        f"({tuning['distribution']}, mean {number(tuning['mean'], 6)}), by its score{noisy} on {score['records']} "
        f"{score['on']}: {scored}, which is optimistic, since the best was chosen by it"
    )


def _counted(case: Case) -> str:
    """Return what was counted in the records."""
    training = case.training or {}
    score = training.get("tuning", {}).get("score", {})
    held_out = score["records"] if score.get("epsilon") is not None else 0  # to score runs on
    total = training["records"] + training["test_records"] + held_out
    counts = f"{training['rows_clipped']} of {total} rows shortened"
    if training["labels_clipped"]:
        counts += f", {training['labels_clipped']} targets cut"
    return counts + (f", {training['unreadable']} cells no finite number" if training["unreadable"] else "")


def training_lines(case: Case, digits: Digits) -> list[str]:
    """Return what stands above and below the table of metrics."""
    training = case.training
    if not training:
        return []
    replicas, quantiles = training.get("replicas"), training.get("quantiles")
    runs = f"{replicas} runs" if replicas else "trained"
    features = f"{training['dimension']} columns" + (", one of them constant" if training["intercept"] else "")
    steps = f"{training['steps']} steps on {training['records']} records of {features}"
    lines = [f"{runs}: {steps}; noise: {training['noise_source']}", *filter(None, [chosen(case), _centred(case)])]
    if quantiles:
        probabilities = quantiles["probabilities"]
        lines.append(f"median [{probabilities[0]:.0%}, {probabilities[-1]:.0%} quantiles] over the runs")
    bound = training["excess_risk_bound"]
    if bound:
        value = digits.number(bound["value"], Side.UP)
        empty = ", before rounding" if case.best and (case.best.details or {}).get("floating_point") is not None else ""
        empty += ", vacuous" if bound["vacuous"] else ""
        lines.append(f"{_RISKS[bound['quantity']]} <= {value} ({bound['bound']}{empty})")
    elif training["non_private"]:
        lines.append(f"excess risk: {training['excess_risk_bound_because']}")
    if training.get("metrics_are") is None:  # a report that holds nothing that was measured
        return lines
    lines.append(f"{training['metrics_are']}:")
    return [*lines, *(f"  {line}" for line in (_counted(case), *training["remarks"]))]


def _centred(case: Case) -> str:
    """Return in a sentence how rows are centred; empty where they are not."""
    centre = (case.training or {}).get("centre")
    if not centre:
        return ""
    return (
        f"rows are centred on a noisy mean row, in units of {number(centre['scale'], 3)} of their largest length, "
        "which follow from a noisy mean distance"
    )


def summary_names(report: Report) -> tuple[str, ...]:
    """Return the metrics that a summary of several cases shows: (part, metric) joined by a blank."""
    names: dict[str, None] = {}
    for case in report.cases:
        metrics = (case.training or {}).get("metrics", {})
        part = PARTS[1] if PARTS[1] in metrics else PARTS[0]
        columns = ((part, "accuracy"), (part, "rmse"), (PARTS[0], "excess_risk"))
        names.update({f"{part} {name}": None for part, name in columns if name in metrics.get(part, {})})
    return tuple(names)


def summary_cells(case: Case, names: tuple[str, ...], digits: Digits) -> tuple[str, ...]:
    """Return a case's cells under `summary_names`."""
    if not case.training:
        return ("",) * len(names)
    pairs = [name.partition(" ") for name in names]
    return tuple(_cell(case, _METRICS, part, metric, digits.at_most(4)) for part, _, metric in pairs)
