"""The words and numbers that every human-readable format shares. Guarantees are rounded up, never to nearest."""

from __future__ import annotations

import math
from typing import Any

from dpcalc.report import Case, Report, Result
from dpcalc.spec.quantities import RISKS
from dpcalc.spec.run import ALGORITHMS
from dpcalc.spec.symbols import SYMBOLS

MAXIMISED = ("index", "lipschitz", "diameter", "epochs", "steps")
"""Solved parameters of which the largest admissible value is reported: they round down in text."""


def number(value: float | int | str, precision: int = 6, side: str = "nearest") -> str:
    """Return ``value`` with ``precision`` significant digits.

    Args:
        side: ``up`` or ``down`` (never on the other side of the exact double), ``nearest``, ``as given`` (all digits),
            or ``echo`` (a typed budget: as it was typed where that fits, else up).
    """
    if isinstance(value, (str, int)):
        return str(value)
    if side == "as given":
        return repr(value).removesuffix(".0")
    if math.isinf(value) or value == 0.0:
        return f"{value:g}"
    text = f"{value:.{precision}g}"
    if side == "nearest" or (side == "echo" and float(text) == value):
        return text
    return _directed(value, precision, up=side != "down")


def _directed(value: float, precision: int, *, up: bool) -> str:
    """Return ``value`` to ``precision`` digits, not below (above) the exact double: compared in whole numbers."""
    mantissa, _, exponent = f"{value:.{precision - 1}e}".partition("e")
    digits, power = int(mantissa.replace(".", "")), int(exponent) - precision + 1
    numerator, denominator = value.as_integer_ratio()
    excess = digits * denominator * 10 ** max(power, 0) - numerator * 10 ** max(-power, 0)
    if up and excess < 0:
        digits += 1
    if not up and excess > 0:
        # Below a power of ten the digits are a tenth as coarse.
        digits, power = (digits - 1, power) if digits > 10 ** (precision - 1) else (10 * digits - 1, power - 1)
    return _literal(digits, power, precision)


def _literal(mantissa: int, power: int, precision: int) -> str:
    """Return mantissa 10^power as ``%g`` would write it, exactly."""
    sign, digits = "-" if mantissa < 0 else "", str(abs(mantissa))
    exponent = power + len(digits) - 1
    digits = digits.rstrip("0") or "0"
    if -4 <= exponent < precision:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        whole, rest = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
        return sign + whole + (f".{rest}" if rest else "")
    rest = f".{digits[1:]}" if digits[1:] else ""
    return f"{sign}{digits[0]}{rest}e{exponent:+03d}"


def side_of(result: Result) -> str:
    """Return the side to which a result's number is rounded in text."""
    if not result.guarantee:
        return "nearest"
    return "down" if result.quantity in MAXIMISED else "up"


def delta_text(delta: float | None, log_delta: float | None, precision: int, side: str = "nearest") -> str:
    """Return delta as a decimal, as a power of ten where it is below the range of a double."""
    if log_delta == -math.inf:
        return "0"
    if log_delta is not None and log_delta < -690.0:
        ten = log_delta / math.log(10.0) * (1.0 - 2.0**-50 if side == "up" else 1.0)
        return "10^" + number(ten, max(precision, 6), "up" if side == "up" else "nearest")
    return number(delta, precision, side) if delta is not None else ""


def symbol_of(name: str) -> str:
    """Return ``name symbol``, for labels."""
    symbol = SYMBOLS.get(name)
    return f"{name} {symbol.letter}" if symbol and symbol.letter not in ("", name) else name


def value_text(result: Result, precision: int) -> str:
    """Return a result's value as text, on its safe side."""
    if result.quantity == "delta":
        return delta_text(result.delta, result.log_delta, precision, side_of(result))
    if (result.details or {}).get("any"):
        return "any"
    return number(result.value, precision, side_of(result))


def headline(case: Case, precision: int) -> list[str]:
    """Return the answer in one line per best result."""
    line = _cost_headline if is_cost(case) else _headline
    return [line(result, precision) for result in case.results if result.best]


def _cost_headline(result: Result, precision: int) -> str:
    ran = ", ".join(f"{name} = {value}" for name, value in _ran(result, precision)[1:] if value)
    algorithm = "/".join((result.details or {}).get("algorithms", ()))
    return (
        f"{RISKS[result.quantity]} <= {value_text(result, precision)} {_how_surely(result)}: "
        f"{algorithm} with {ran} ({result.bound})"
    )


def _headline(result: Result, precision: int) -> str:
    value = value_text(result, precision)
    delta = delta_text(result.delta, result.log_delta, precision, "echo")
    if result.quantity == "epsilon":
        return f"epsilon <= {value} at delta = {delta}"
    if result.quantity == "delta":
        return f"delta <= {value} at epsilon = {number(result.epsilon or 0.0, precision, 'echo')}"
    if result.quantity == "mu":
        return f"mu <= {value} (Gaussian DP)"
    if result.quantity == "rdp":
        return f"RDP <= {value} at order {number(result.order or 0.0, precision, 'down')}"
    relation = "<=" if result.quantity in MAXIMISED else ">="
    target = f"epsilon = {number(result.epsilon or 0.0, precision, 'echo')} and delta = {delta}"
    if value == "any":
        return f"any {result.quantity} within what is assumed is enough for {target}"
    return f"{result.quantity} {relation} {value} is enough for {target}"


_SOURCES = {"default": "default", "worst case": "worst case", "loss": "of the loss", "data": "of the data"}


def inputs_text(case: Case) -> str:
    """Return the inputs on one line, marking what was not typed."""
    parts = []
    for name, (value, source) in case.inputs.items():
        if source == "derived":
            continue
        mark = f" ({_SOURCES[source]})" if source in _SOURCES else ""
        side = "nearest" if source == "loss" else "as given"
        parts.append(f"{symbol_of(name)} = {number(value, side=side)}{mark}")
    return ", ".join(parts)


_CONVERSIONS = {
    "exact": "exact conversion",
    "profile": "exact profile",
    "pld": "privacy-loss distribution",
    "formula": "closed formula",
    "pure": "pure privacy",
    "mironov": "Mironov's conversion",
    "canonne": "Canonne et al.'s conversion",
    "asoodeh": "Asoodeh et al.'s conversion",
}


def _cost_how(result: Result) -> str:
    """Return of which risk a cost speaks, how surely, and whether it says anything."""
    risk = {"excess_risk": "", "empirical_excess_risk": "empirical, ", "smoothing_error": "added by smoothing, "}
    return risk[result.quantity] + _how_surely(result)


def _how_surely(result: Result) -> str:
    details = result.details or {}
    chance = details.get("failure_probability")
    sure = "in expectation" if chance is None else f"with probability {1.0 - chance:.6g}"
    return sure + (", vacuous" if details.get("vacuous") else "")


def how(result: Result, precision: int) -> str:
    """Return how the number came about: its mu, or the order and conversion."""
    if result.quantity in RISKS or result.quantity == "mu":
        return "Gaussian DP" if result.quantity == "mu" else _cost_how(result)
    if result.mu is not None:
        return f"mu = {number(result.mu, precision, 'up')}, exact conversion"
    if result.order is not None and result.quantity != "rdp":
        return f"RDP at order {number(result.order, precision)}, {_CONVERSIONS[str(result.conversion)]}"
    details = result.details or {}
    if details.get("demands"):
        return "if " + "; ".join(details["demands"])
    if details.get("slack") and result.conversion == "profile":
        return "profile, to its slack"
    return _CONVERSIONS.get(str(result.conversion), "")


COLUMNS = ("", "bound", "value", "kind", "how", "assumes")
COST_COLUMNS = ("", "bound", "excess risk", "kind", "algorithm", "noise_std", "step_size", "steps", "how", "assumes")


def columns(case: Case) -> tuple[str, ...]:
    """Return the heads of the comparison table."""
    return COST_COLUMNS if is_cost(case) else COLUMNS


def is_cost(case: Case) -> bool:
    """Return whether a case is about what a budget costs."""
    return any(result.quantity in RISKS for result in case.results)


def rows(case: Case, precision: int) -> list[tuple[str, ...]]:
    """Return the comparison table's rows, one cell for each of `columns`."""
    letters = legend(case)
    table = []
    for r in case.results:
        value = value_text(r, precision)
        if r.quantity == "rdp":
            value += f" (order {number(r.order or 0.0, precision, 'down')})"
        ran = cost_cells(r, precision) if is_cost(case) else ()
        held = " ".join(letters[text] for text in r.assumes)
        table.append(("*" if r.best else "", r.bound, value, r.kind, *ran, how(r, precision), held))
    return table


def cost_cells(result: Result, precision: int) -> tuple[str, ...]:
    """Return the run that has a cost: algorithm, noise, step size and steps."""
    details = result.details or {}
    names = ("noise_std", "step_size", "steps")
    # The noise is what keeps the budget: it is never shown smaller than it is.
    sides = {"noise_std": "up"}
    numbers = [number(details[n], precision, sides.get(n, "nearest")) if n in details else "" for n in names]
    return "/".join(details.get("algorithms", ())), *numbers


def legend(case: Case) -> dict[str, str]:
    """Return a letter for every assumption of a case's bounds, in order of appearance."""
    texts = dict.fromkeys(text for result in case.results for text in result.assumes)
    return {text: _letters(place) for place, text in enumerate(texts)}


def _letters(place: int) -> str:
    return chr(ord("a") + place) if place < 26 else _letters(place // 26 - 1) + _letters(place % 26)


def legend_lines(case: Case) -> list[str]:
    """Return why the best guarantee holds, and what the letters of the column ``assumes`` stand for."""
    letters, best = legend(case), case.best
    lines = [f"  {letter:2} {text}" for text, letter in letters.items()]
    if best is None:
        return lines
    held = " ".join(letters[text] for text in best.assumes)
    return [f"by {best.reference} ({best.bound}), assuming {held}:", *lines]


def obstacle_rows(case: Case) -> list[tuple[str, ...]]:
    """Return the bounds that do not apply, why, and what would make them; those for other noise or steps last."""
    if not case.obstacles:
        return []
    far = ("schedule", "noise")
    ordered = sorted(case.obstacles, key=lambda o: any(word in o.because for word in far))
    return [("not applicable", "because", "cure"), *((o.bound, o.because, o.hint) for o in ordered)]


def tightness_text(case: Case, precision: int) -> str:
    """Return in a sentence how far the best guarantee is from what nothing can beat; empty where that is not known."""
    best, floor = case.best, case.tightness
    if best is None or floor is None:
        return ""
    if best.bound == floor.bound:
        return "tightness: exact; no smaller value holds for what is known of the run"
    edge = "above" if best.quantity in MAXIMISED else "below"
    ratio = f" within a factor {_factor_text(floor.ratio)};" if floor.ratio else ""
    side = number(floor.value, precision)
    return f"tightness:{ratio} nothing {edge} {best.quantity} {side} holds for what is known of the run ({floor.bound})"


def _factor_text(ratio: float) -> str:
    """Return how far apart two values are, whichever is larger."""
    apart = max(ratio, 1.0 / ratio)
    return f"{apart:.3f}" if apart < 10.0 else number(apart, 3)


def summary(report: Report, precision: int) -> list[tuple[str, ...]]:
    """Return one row per case (and order): what varies between the cases, the best answer and its bound."""
    from dpcalc.render import training

    names = varying(report)
    quantities = dict.fromkeys(r.quantity for case in report.cases for r in case.results if r.best)
    tight = any(case.tightness and case.tightness.ratio for case in report.cases)
    measured = training.summary_names(report)
    head = (*names, *(symbol_of(name) for name in quantities), *measured, *(["within"] if tight else []), "bound", "")
    table = [head]
    for case in report.cases:
        told = tuple(_told(case, name) for name in names)
        chosen = [result for result in case.results if result.best]
        for best in chosen:
            values = (value_text(best, precision) if best.quantity == name else "" for name in quantities)
            last = f"order {number(best.order or 0.0, precision, 'down')}" if best.quantity == "rdp" else ""
            if best.quantity in RISKS:
                last = " ".join((*(f"{n}={v}" for n, v in _ran(best, precision) if v), _cost_how(best)))
            metrics = training.summary_cells(case, measured, precision)
            table.append((*told, *values, *metrics, *([_within(case)] if tight else []), best.bound, last))
        if not chosen:
            because = case.obstacles[0].because if case.obstacles else "no guarantee"
            blank = [""] * (len(head) - len(names) - 2)
            table.append((*told, *["none", *blank][: len(blank)], "", because))
    return table if any(row[-1] for row in table) else [row[:-1] for row in table]


def _ran(result: Result, precision: int) -> list[tuple[str, str]]:
    return list(zip(("algorithm", "noise_std", "step_size", "steps"), cost_cells(result, precision), strict=True))


def _within(case: Case) -> str:
    ratio = case.tightness.ratio if case.tightness else None
    return f"x{_factor_text(ratio)}" if ratio else "?"


def varying(report: Report) -> list[str]:
    """Return the inputs (and ``algorithm``) in which the cases of a report differ."""
    several = ["algorithm"] if len({case.algorithm for case in report.cases}) > 1 else []
    names = dict.fromkeys(name for case in report.cases for name in case.inputs)
    typed = {n for case in report.cases for n, (_, source) in case.inputs.items() if source in ("flag", "argument")}
    for name in names:
        told = {case.inputs.get(name, (None, ""))[0] for case in report.cases if case.inputs}
        if len(told) > 1 and name in typed:
            several.append(name)
    return several


def _told(case: Case, name: str) -> str:
    if name == "algorithm":
        return case.algorithm
    value = case.inputs.get(name, ("", ""))[0]
    return number(value, side="as given")


def common_inputs(report: Report) -> str:
    """Return the inputs in which the cases of a report agree, on one line."""
    differing = set(varying(report))
    described = [case for case in report.cases if case.inputs]
    if not described:
        return ""
    shared = [{name: told for name, told in case.inputs.items() if name not in differing} for case in described]
    kept = {name: told for name, told in shared[0].items() if all(other.get(name) == told for other in shared)}
    return inputs_text(described[0]._replace(inputs=kept))


def summary_tail(report: Report) -> list[str]:
    """Return what stands under a summary: the grounds of each best bound, notes, and gates that failed."""
    lines: dict[str, None] = {}
    for case in report.cases:
        lines.setdefault("\n".join(grounds(case)))
    for case in report.cases:
        for note in case.notes:
            lines.setdefault(f"note: {note}")
    tried = [(r.details or {}).keys() for case in report.cases for r in case.results if r.best]
    tried = [names for names in tried if names & {"certified", "not_certified"}]
    if tried:
        lines[f"certified: {sum('certified' in names for names in tried)} of {len(tried)} best values"] = None
    gates = [a.passed for case in report.cases for a in case.assertions]
    if gates:
        lines[f"gates: {sum(gates)} of {len(gates)} held"] = None
    for place, case in enumerate(report.cases, start=1):
        for a in case.assertions:
            if not a.passed:
                lines.setdefault(f"FAIL: case {place}: {a.text} (value {a.value}, slack {a.slack})")
    return [line for line in lines if line]


def promise(case: Case) -> str:
    """Return what the best guarantee promises, to whom, in a sentence for somebody new to the field."""
    best = case.best
    if best is None:
        return ""
    if best.quantity in RISKS:
        return _cost_promise(best)
    if best.adjacency == "by_shift":
        return (
            "Two data sets whose maps are within the given shifts of each other, step by step, give outputs whose "
            f"probabilities differ by a factor of at most {_factor(best)}, up to an additive delta."
        )
    index = case.inputs.get("index", (None, ""))[0]
    who = f"the record at position {index}" if index is not None else "the differing record"
    window = case.inputs.get("window", (None, ""))[0]
    if best.quantity == "index":
        who = f"any record at positions 1 to {best.value:.0f}"
    elif best.quantity == "window" or window is not None:
        who = f"any record that at least {best.value if best.quantity == 'window' else window:.0f} others follow"
    what = "another record" if best.adjacency == "replace_one" else "a null record (zero gradient)"
    scope = "no matter what the other records are, and even to somebody who knows them all"
    if best.quantity in ("mu", "rdp"):
        kind = "Gaussian" if best.quantity == "mu" else "Renyi"
        return f"The released output satisfies {kind} differential privacy for {who} against {what}, {scope}."
    return (
        f"Replacing {who} by {what} changes the probability of anything seen in the output by a factor of at most "
        f"{_factor(best)}, up to an additive delta, {scope}."
    )


def _cost_promise(best: Result) -> str:
    """Return what an excess risk is, in a sentence."""
    covers = (best.details or {}).get("covers", "one record")
    kept = (
        f"the noise keeps the budget when {covers} is replaced"
        if best.epsilon is not None
        else "no budget was asked for, and none is promised"
    )
    return (
        "The mean loss of the released model exceeds that of the best model in the domain by at most this much, on new "
        f"records of the law the given ones were drawn from; {kept}."
    )


def _factor(best: Result) -> str:
    """Return e^epsilon, with its value where that can be read."""
    epsilon = best.epsilon or 0.0
    return f"e^epsilon = {number(math.exp(epsilon), 4, 'up')}" if epsilon < 30.0 else "e^epsilon"


def released(case: Case) -> str:
    """Return the algorithm and what it releases."""
    return f"{case.algorithm}: {ALGORITHMS.get(case.algorithm, 'every algorithm whose cost is known')}"


def grounds(case: Case) -> list[str]:
    """Return why the best guarantee holds: its theorem and what that assumes."""
    best = case.best
    if best is None:
        return []
    return [f"by {best.reference} ({best.bound}), assuming:", *(f"  - {text}" for text in best.assumes)]


def detail_lines(case: Case, precision: int) -> list[str]:
    """Return where the best result's allocation spends its budget, if it has one."""
    details: dict[str, Any] = dict(case.best.details or {}) if case.best else {}
    allocation = details.get("allocation")
    return [f"allocation: {line}" for line in allocation["summary"]] if allocation else []


def certified_lines(case: Case) -> list[str]:
    """Return what was proved of each guarantee in ball arithmetic, or why nothing was."""
    lines = []
    for result in case.results:
        details = result.details or {}
        if "certified" in details:
            proof = details["certified"]
            within = f"{proof['quantity']} lies in [{proof['lower']}, {proof['upper']}]"
            but = f"; not for {proof['alone']}" if "alone" in proof else ""
            lines.append(f"certified: {result.bound}: {within}, at {proof['bits']} bits{but}")
        elif "not_certified" in details:
            lines.append(f"not certified: {result.bound}: {details['not_certified']}")
    return lines
