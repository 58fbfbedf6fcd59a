"""The paragraph for a paper's appendix or a model card."""

from __future__ import annotations

from dpcalc.model.quantities import Quantity
from dpcalc.render.numbers import SIX, Digits, Side, equation
from dpcalc.render.words import training
from dpcalc.render.words.audit import refuted
from dpcalc.render.words.promise import promise
from dpcalc.render.words.sentences import enough, in_other_words, is_fact, released, targets_text
from dpcalc.report import Case, Report, Result

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
    adjacency = best.adjacency.replace("_", "-")
    assumptions = "; ".join(best.assumes)
    warned = training.warning(case)
    refutation = f"{text}. " if (text := refuted(case)) else ""
    caution = f"{warned}. {training.caution(case)}" if warned else ""
    meant = "as Sekhari et al. 2021 define it" if best.forgetting else f"under {adjacency} adjacency"
    return (
        f"{refutation}{caution}We run {released(case).partition(': ')[2]} ({parameters}). {claim(best, digits)}, "
        f"{meant}. {promise(case)} The {'certificate' if best.forgetting else 'guarantee'} assumes: {assumptions}. "
        f"It follows from {best.reference} (`{best.bound}`), evaluated with dpcalc and rounded to the "
        f"safe side{_proved(best)}.{training.kept_bounds(case)}{_chosen(case)}"
    )


def _chosen(case: Case) -> str:
    """Return that the guarantee covers the choice of settings, where they were chosen."""
    sentence = training.chosen(case)
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
