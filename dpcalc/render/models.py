"""Trained models in words: the meaning of their coefficients, and their quality on test rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence

from dpcalc.files import Fields
from dpcalc.inert import json_text, printable, spreadsheet_text
from dpcalc.model.quantities import Quantity
from dpcalc.render.blocks import COLUMNS, GAP, Block, Paragraph, Table, markdown, plain
from dpcalc.render.layout import cut
from dpcalc.render.numbers import SIX, Digits, Side, equation, number
from dpcalc.render.words import risk
from dpcalc.render.words.risk import refuted
from dpcalc.render.words.sentences import enough, in_other_words, is_fact, promise, released, targets_text
from dpcalc.report import Case, Report, Result

CLEAR = 2.0
"""A coefficient is called clear from this many standard deviations of its noise on: noise alone is in 1 of 22 cases."""

_FIRST, _DIGITS, _NAME = 4, 4, 36  # rows, digits and letters of a name on the first screen
_CELLS = ("column", "level", "of_class", "value", "noise", "over_range")


def coefficients_text(report: Fields, format: str, *, everything: bool) -> str:
    """Return a report of `dpcalc.training.release.coefficients` in a format of ``dpcalc model``."""
    if written := _WHOLE.get(format):
        return written(report)
    return plain(_blocks(report, everything=everything), COLUMNS)


def _csv(report: Fields) -> str:
    """Return one line per coefficient, with all digits."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(_CELLS)
    for row in report["coefficients"]:
        cells = (row[name] for name in _CELLS)
        writer.writerow([cell if isinstance(cell, float) else spreadsheet_text(cell or "") for cell in cells])
    return buffer.getvalue()


def _blocks(report: Fields, *, everything: bool) -> Iterator[Block]:
    """Yield the largest coefficients, or all of them with their interpretation."""
    rows = report["coefficients"]
    yield Paragraph(_head(report))
    table: list[Sequence[str]] = [("column", "per unit", "noise", "over its range")]
    for row in rows if everything else rows[:_FIRST]:
        cells = ("" if row[cell] is None else number(row[cell], _DIGITS) for cell in ("value", "noise", "over_range"))
        table.append((row["name"] if everything else cut(row["name"], _NAME), *cells))
    yield Table(table)
    of = [f" [{name}]" for name in report["classes"]] if report["several"] else [""]
    ends = [f"{number(value, _DIGITS)}{name}" for value, name in zip(report["middle"], of, strict=True)]
    yield Paragraph(f"in the middle of all ranges: {', '.join(ends if everything else ends[:_FIRST])}")
    clear = sum(abs(row["value"]) > CLEAR * row["noise"] for row in rows if row["noise"] is not None)
    counts = [] if report["noise_std"] is None else [f"{clear} of {len(rows)} are above {CLEAR:g} times their noise"]
    if everything:
        yield from map(Paragraph, (*counts, *_readings(report)))
        return
    left = len(rows) - _FIRST
    yield Paragraph(
        "; ".join([*counts, f"-v: {left} more, and how to read them" if left > 0 else "-v: how to read them"])
    )


def _readings(report: Fields) -> Iterator[str]:
    """Yield what the numbers mean, and what they do not mean."""
    bound = f"{report['bound']:g}"
    if report["noise_std"] is None:
        yield "noise: not known of this model, whose iterates stay hidden or whose file does not say"
    else:
        yield (
            "noise: about the standard deviation of the privacy noise, the same for all weights, estimated from "
            "released iterates at no cost, to a factor of about 2. That records are a sample is not in it: it makes no "
            "confidence interval"
        )
    yield (
        f"per unit: what one unit of the column adds to {_unit(report)} of a row of mapped length up to {bound}; a row "
        f"of length r > {bound} is shortened, and one unit adds about {bound}/r as much"
    )
    if report["temperature"] is not None:
        yield f"all were divided by {report['temperature']:.4g}, to be log-odds; the noise of that is common to all"
    if report["class_weights"] is not None:
        listed = ", ".join(f"{weight:.4g}" for weight in report["class_weights"])
        yield f"classes count by weights of {listed}, and so do the log-odds here: `dpcalc predict` takes that off"
    if report["centred_bound"] is not None:
        yield f"rows are then centred and shortened to {report['centred_bound']:.4g}: far from the mean units add less"
    yield (
        "not to be read: effects of one cause (columns that move together share theirs), and sizes as of a fit without "
        "clipping (clipped slopes change them; their order and signs less)"
    )


def _unit(report: Fields) -> str:
    """Return the quantity that the coefficients add to."""
    if report["classes"] is None:
        return str(report["target"])
    if report["several"]:
        return "the score of the class"
    return f"{'the log-odds' if report['probable'] else 'the score'} of {report['classes'][1]}"


def _head(report: Fields) -> str:
    """Describe the model."""
    epsilon, delta = (report["privacy"][name] for name in ("epsilon", "delta"))
    cost = "NOT PRIVATE"
    if report["privacy"]["private"] is True and isinstance(epsilon, float) and isinstance(delta, float):
        cost = f"epsilon <= {number(epsilon, side=Side.ECHO)} at delta = {number(delta, side=Side.ECHO)}"
    return printable(f"{report['loss']}, {_unit(report)}; {report['columns']} columns; {cost}")


_WHOLE: dict[str, Callable[[Fields], str]] = {
    "json": lambda report: json_text({**report, "readings": list(_readings(report))}, 2) + "\n",
    "csv": _csv,
    "markdown": lambda report: markdown(_blocks(report, everything=True)),
}
"""The formats with all of a model's coefficients."""

_REGRESSION = "regression"
_TWO = 2
"""The number of classes that fit the first screen."""
_NAMES = {
    "accuracy": "accuracy", "auc": "AUC", "log_loss": "log loss", "rmse": "RMSE", "mae": "mean absolute error",
    "r2": "R2", "calibration_error": "calibration error",
}  # fmt: skip


def evaluation_text(report: Fields, *, everything: bool = False) -> str:
    """Return the lines about a report of `dpcalc.recipes.ledgers.charge.evaluate`."""
    evaluation = _Evaluation(report)
    if report["private"]:
        return "\n".join([*evaluation.private(), evaluation.model()]) + "\n"
    return plain(evaluation.measured(everything=everything), COLUMNS)


class _Evaluation:
    """An evaluation, and its parts in words."""

    def __init__(self, report: Fields) -> None:
        self.report = report
        names = [_NAMES[name] for name in report["metrics"]]
        self.metrics = dict(zip(names, report["metrics"].values(), strict=True))
        errors = report["task"] == _REGRESSION
        self.units = ["RMSE and mean absolute error are in the original units of the target"] if errors else []
        self.classes = report.get("classes", [])

    def measured(self, *, everything: bool) -> Iterator[Block]:
        """Yield the metrics with the rates of two classes, or of all classes with every table."""
        yield Paragraph(f"on {self.report['records']} test rows{self._threshold}; NOT PRIVATE unless these are public")
        yield Table([(f"{name}, uncovered", _share(value)) for name, value in self.metrics.items()])
        yield from map(Paragraph, (*self.units, *self.report["remarks"]))
        if self.classes and (everything or len(self.classes) == _TWO):
            head = ("class, uncovered", "rows", "precision", "recall")
            rows = [
                (row["class"], str(row["rows"]), _share(row["precision"]), _share(row["recall"]))
                for row in self.classes
            ]
            yield Table([head, *rows])
        if everything and self.classes:
            yield from self._tables()
        if everything:
            yield from map(Paragraph, (f"uncovered: {self.report['why_not_private']}", self.model()))

    def _tables(self) -> Iterator[Block]:
        """Yield the confusion matrix and the calibration."""
        names = [row["class"] for row in self.classes]
        counts = [(name, *map(str, row)) for name, row in zip(names, self.report["confusion"], strict=True)]
        yield from (GAP, Paragraph("rows by true class (line) and predicted class (column), uncovered"))
        yield Table([("", *names), *counts])
        if self.report["calibration"] is None:
            return
        of = names[1] if len(names) == _TWO else "the class that is predicted"
        yield from (GAP, Paragraph(f"predicted probability of {of} beside the observed share, uncovered"))
        table = [("probability", "rows", "predicted", "observed")]
        for cell in self.report["calibration"]["cells"]:
            within = f"{cell['from']:.1f} to {cell['to']:.1f}"
            table.append((within, str(cell["rows"]), _share(cell["predicted"]), _share(cell["observed"])))
        yield Table(table)
        yield GAP

    @property
    def _threshold(self) -> str:
        """The probability above which a row counts as the second class, if given."""
        threshold = self.report.get("threshold")
        return "" if threshold is None else f"; {self._second} above probability {threshold:g}"

    @property
    def _second(self) -> str:
        return self.classes[1]["class"] if self.classes else "+1"

    def private(self) -> Iterator[str]:
        report, share = self.report, f"{self.report['confidence']:.0%}"
        yield f"on {report['records']} test rows, with noise{self._threshold}"
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
        yield from [ledger["says"]] if ledger.get("says") else []

    def model(self) -> str:
        """Return what the model file says about its training records."""
        model = self.report["model"]
        numbers = [model["epsilon"], model["delta"]]
        if model["private"] is not True or not all(isinstance(value, (int, float)) for value in numbers):
            return "the model: its file claims no guarantee for the records that it was trained on"
        epsilon, delta = (number(value, side=Side.ECHO) for value in numbers)
        return printable(
            f"the model: epsilon = {epsilon}, delta = {delta} for the records that it was trained on, its file says; a "
            "record that is in both pays for both"
        )


def _share(value: float | None) -> str:
    return "undefined" if value is None else number(value)


def _between(low: float, high: float) -> str:
    return f"between {number(low, side=Side.DOWN)} and {number(high, side=Side.UP)}"


_SAID_APART = ("epsilon", "delta", "algorithm", "adjacency")
"""Inputs that the sentences name separately."""


def render_statement(report: Report, digits: Digits = SIX) -> str:
    """Return one paragraph per case, with the adjacency, the release and every assumption."""
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
    """Return that the guarantee covers the choice of settings, if they were chosen."""
    sentence = risk.chosen(case)
    return f" Of the settings {sentence}; the guarantee covers the choice." if sentence else ""


def _proved(best: Result) -> str:
    """Return that the number was also proved in ball arithmetic, if it was."""
    proof = (best.details or {}).get("certified")
    return f"; in ball arithmetic the formula was proved not to exceed it (at {proof['bits']} bits)" if proof else ""


def claim(best: Result, digits: Digits) -> str:
    """Return the result of the run in a sentence, with the value of a solved parameter."""
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
    """Return the property of the result at some level: private, or unlearned."""
    if best.forgetting:
        return f"meets {level}-unlearning" if level.startswith("(") else f"meets {level} unlearning"
    return f"is {level}-differentially private" if level.startswith("(") else f"is {level} differentially private"
