"""The sentences about one case: the question, the best answer, its tightness, and its proof."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

from dpcalc.model.algorithm import ALGORITHMS, Source
from dpcalc.model.quantities import RISKS, SUFFICIENT, Quantity, Releases
from dpcalc.render.numbers import MAXIMISED, Digits, Side, number, symbol_of
from dpcalc.render.words import risk
from dpcalc.render.words.brief import cost_probability, cost_run, is_cost
from dpcalc.render.words.positions import (
    INDEX,
    SIZES_DIFFER,
    Neighbours,
    allocation_lines,
    group_size,
    record_meant,
    worst_positions,
)
from dpcalc.report import Case, Report, Result

_FORGOTTEN = (
    "The output can hardly be told from that of a model which never saw the records to be forgotten and took the same "
    "steps. For the records kept this is no guarantee, and whoever has seen the old model knows what its training "
    "revealed."
)

_SCOPE = "no matter what the other records are, and even to somebody who knows them all"

_KINDS: dict[str, str] = {Quantity.MU: "Gaussian", Quantity.RDP: "Renyi"}
"""Guarantees other than pairs of epsilon and delta, with the name of their kind of privacy."""

_CHANGES: dict[str, tuple[str, str]] = {
    Neighbours.ADD_REMOVE: ("Adding a record or removing one", "Adding or removing"),
    Neighbours.ADD: ("Adding a record", "Adding"),
    Neighbours.REMOVE: ("Removing a record", "Removing"),
}
"""How neighbours of different sizes differ, for one record and as a verb for several."""

_ONE_WAY: dict[str, str] = {
    Neighbours.ADD: "without {} as with {}",
    Neighbours.REMOVE: "with {} as without {}",
}


def promise(case: Case) -> str:
    """Return the promise of the best guarantee, and to whom; empty if there is none."""
    best = case.best
    if best is None:
        return ""
    if best.forgetting:
        return _FORGOTTEN
    if best.quantity in RISKS:
        return (
            "The mean loss of the released model exceeds that of the best model in the domain by at most this much, on "
            f"new records of the law the given ones were drawn from; {budget_kept(best)}."
        )
    if attacks := _attacks(best):
        about = record_meant(case) or "a record" if group_size(case) == 1 else f"{group_size(case)} records together"
        return (
            f"No attack on {about} goes beyond {attacks}, no matter what the other records are, and even if the "
            "attacker knows them all."
        )
    if best.adjacency in _OTHER_NEIGHBOURS:
        return _OTHER_NEIGHBOURS[best.adjacency](best)
    return _of_size(best, group_size(case)) if best.adjacency in SIZES_DIFFER else _of_replacement(case, best)


def promise_of_others(case: Case) -> str:
    """Return the promise if neighbours differ in no record of the case; else nothing."""
    return promise(case) if case.best and case.best.adjacency in _OTHER_NEIGHBOURS else ""


def _attacks(best: Result) -> str:
    """Return the limit of attacks on a record of a run; empty for other answers."""
    if best.quantity == Quantity.ADVANTAGE and best.adjacency not in _OTHER_NEIGHBOURS:
        return f"advantage {number(best.value, side=Side.UP)}"
    return targets_text(best)


def _of_replacement(case: Case, best: Result) -> str:
    """Return the promise for records that are replaced, by others or by null records."""
    size, replaced = group_size(case), best.adjacency == Neighbours.REPLACE_ONE
    if size == 1:
        who = record_meant(case) or "the differing record"
        against, what = who, "another record" if replaced else "a null record (zero gradient)"
    else:
        who, what = f"any {size} records", "others" if replaced else "null records (zero gradient)"
        against = f"{who} at once"
    if best.quantity in _KINDS:
        private = f"{_KINDS[best.quantity]} differential privacy for {against} against {what}"
        return f"The released output satisfies {private}, {_SCOPE}."
    return (
        f"Replacing {who} by {what} changes the probability of anything seen in the output by a factor of at most "
        f"{_factor(best)}, up to an additive delta, {_SCOPE}."
    )


def _of_size(best: Result, size: int) -> str:
    """Return the promise for one or several records that are added or removed."""
    one, several = _CHANGES[best.adjacency]
    change = one if size == 1 else f"{several} up to {size} records"
    if best.quantity in _KINDS:
        private = f"{_KINDS[best.quantity]} differential privacy: {change.lower()} is hidden"
        return f"The released output satisfies {private}, {_SCOPE}."
    if best.adjacency in _ONE_WAY:
        names = ("the record", "it") if size == 1 else (f"{size} records", "them")
        return (
            f"Anything seen in the output is at most {_factor(best)} times as likely "
            f"{_ONE_WAY[best.adjacency].format(*names)}, up to an additive delta, {_SCOPE}. The other direction is not "
            "covered; add-remove covers both."
        )
    return (
        f"{change} changes the probability of anything seen in the output by a factor of at most {_factor(best)}, "
        f"up to an additive delta, {_SCOPE}."
    )


def _of_conversion(best: Result) -> str:
    """Return the promise of a conversion or of a risk."""
    if best.quantity == Quantity.ADVANTAGE:
        right = number(0.5 + 0.5 * best.value, 4, Side.UP)
        return (
            "Somebody who knows all other records, and what stands in this one's place without it, guesses from the "
            f"output whether the record was there: with even odds the guess is right with probability at most {right}."
        )
    if best.quantity in SUFFICIENT:
        return (
            f"A mechanism that is known to have {SUFFICIENT[best.quantity]} of at most this keeps the budget. The "
            "reverse is not implied: a mechanism that keeps the budget need not have it, at this value or at any other."
        )
    if best.quantity in (Quantity.EPSILON, Quantity.DELTA, Quantity.PURE):
        return (
            "Whatever has the given guarantee changes the probability of anything seen in its output by a factor of at "
            f"most {_factor(best)}{'' if best.quantity == Quantity.PURE else ', up to an additive delta'}, for the "
            "neighbouring data sets that the guarantee is about."
        )
    return "Whatever has the given guarantee has this one, for the same neighbouring data sets."


def _of_shift(best: Result) -> str:
    """Return the promise for data sets that differ by shifts."""
    return (
        "Two data sets whose maps are within the given shifts of each other, step by step, give outputs whose "
        f"probabilities differ by a factor of at most {_factor(best)}, up to an additive delta."
    )


_OTHER_NEIGHBOURS: dict[str, Callable[[Result], str]] = {
    Neighbours.AS_GIVEN: _of_conversion,
    Neighbours.BY_SHIFT: _of_shift,
}
"""The promises for neighbours that differ in no record of the case."""


def _factor(best: Result) -> str:
    """Return e^epsilon, with its value if that is readable."""
    epsilon = best.epsilon or 0.0
    return f"e^epsilon = {number(math.exp(epsilon), 4, Side.UP)}" if epsilon < 30.0 else "e^epsilon"


_KNOWN_GUARANTEES = {
    "risk": "risk: what an attacker can do against a guarantee, whatever has it",
    "convert": "convert: what follows from a guarantee, whatever has it",
}
"""The introduction of answers without a run."""


def released(case: Case) -> str:
    """Return the algorithm and what it releases."""
    if case.ledger:
        return "ledger: runs, releases and queries about the same records, all of whose outputs are seen"
    algorithm = ALGORITHMS.get(case.algorithm)
    if algorithm is None:
        return _KNOWN_GUARANTEES.get(case.algorithm, f"{case.algorithm}: every algorithm whose cost is known")
    gloss = algorithm.gloss
    if algorithm.clipped and case.value("release") == Releases.LAST:
        gloss = f"{gloss.partition(';')[0]}; only the final model is seen"
    return f"{case.algorithm}: {gloss}"


_SOURCES = {
    Source.WORST_CASE: "worst case",
    Source.LOSS: "of the loss",
    Source.DATA: "of the data",
}
"""The remark on an input that follows from others."""

GIVEN, DEFAULT, DERIVED = "given", "default", "derived"
"""The groups of inputs: given, with their default, and derived from others."""


def inputs_by_group(case: Case) -> list[tuple[str, str]]:
    """Return the inputs of each group, with its name; the first group is always there."""
    facts = [(name, *given) for name, given in case.inputs.items() if is_fact(name, given[1])]
    symbols = Counter(symbol for name, _, _ in facts if (symbol := symbol_of(name).partition(" ")[2]))
    groups: dict[str, list[str]] = {GIVEN: [], DEFAULT: [], DERIVED: []}
    for name, _, source in facts:
        mark = f" ({_SOURCES[source]})" if source in _SOURCES else in_other_words(case, name)
        mark += " (chosen)" if source == Source.CHOSEN else ""
        mark += " (default)" if name == _ADJACENCY and source == Source.DEFAULT else ""
        label = symbol_of(name)
        label = name if symbols[label.partition(" ")[2]] > 1 else label  # a symbol has one meaning per screen
        group = DERIVED if source in _SOURCES else DEFAULT if source == Source.DEFAULT else GIVEN
        groups[GIVEN if name in _FACTS else group].append(f"{label} = {_input_text(case, name)}{mark}")
    return [(group, ", ".join(parts)) for group, parts in groups.items() if parts or group == GIVEN]


def _input_text(case: Case, name: str) -> str:
    """Return the value of an input."""
    value, source = case.inputs[name]
    if name == INDEX and (places := worst_positions(case)):
        return " or ".join(map(str, places))
    if name == Quantity.DELTA and isinstance(value, str):
        return value.replace("10^", "1e") if value.rpartition("-")[2].isdigit() else value
    return number(value, side=Side.NEAREST if source == Source.LOSS else Side.AS_GIVEN)


_STEPS, _ADJACENCY = "steps", "adjacency"
_FACTS = (_ADJACENCY, _STEPS)
"""Inputs that are always shown, given or derived."""


def is_fact(name: str, source: Source) -> bool:
    """Return whether an input is shown with the given ones: derived inputs are not, except the steps."""
    return source != Source.DERIVED or name == _STEPS


def inputs_lines(case: Case) -> list[str]:
    """Return the inputs, one line per group."""
    return [f"{group}: {text}" for group, text in inputs_by_group(case)]


_WORDS_OF_NOISE = {
    "noise_std": ("noise_multiplier", "noise multiplier"),
    "noise_multiplier": ("noise_std", "noise_std"),
}
"""Parameter of the noise -> the equivalent parameter, and its name in a sentence."""


def in_other_words(case: Case, name: str) -> str:
    """Return an input in other words, in brackets: noise as in libraries, or as in dpcalc; empty if unknown."""
    if name == _STEPS:
        return _steps_of_epochs(case)
    if name == _LIPSCHITZ and (case.training or {}).get("solver"):
        return " (half the distance of two gradients, replace-one only)"
    other, text = _WORDS_OF_NOISE.get(name, ("", ""))
    value, source = case.inputs.get(other, (None, ""))
    if value is None or source != Source.DERIVED:
        return ""
    records, size = case.value("records"), case.value("batch_size")
    uneven = isinstance(records, int) and isinstance(size, int) and records % size
    return f" (= {text} {number(value, 4)}{f' in a batch of {size}' if uneven else ''})"


_LIPSCHITZ = "lipschitz"


def _steps_of_epochs(case: Case) -> str:
    """Return the passes that determine the steps, in brackets; empty if the steps were given."""
    steps, source = case.inputs[_STEPS]
    records, size, epochs = (case.value(name) for name in ("records", "batch_size", "epochs"))
    if source != Source.DERIVED or epochs is None:
        return ""
    if not (isinstance(records, int) and isinstance(size, int)) or steps != int(epochs) * -(-records // size):
        return f" (= {steps // int(epochs or 1)} * {epochs})"
    per_pass = f"ceil({records}/{size})" if records % size else f"{records}/{size}"
    return f" (= {per_pass} * {epochs})"


def headline(case: Case, digits: Digits) -> list[str]:
    """Return the answer in one line per best result."""
    best = case.answers
    if not is_cost(case):
        uncovered = risk.warning(case) and not case.forgetting  # forgetting has its own sentence
        unmet = UNMET if uncovered else ""
        return [unmet + _headline(result, digits) for result in best]
    return [f"{': '.join(cost_sentences(result, digits))} ({result.bound})" for result in best]


UNMET = "Not of this model, only with noise that nobody can draw again: "
"""Precedes the headline of a run whose noise can be drawn again."""


def cost_sentences(result: Result, digits: Digits) -> tuple[str, str]:
    """Return the upper bound on a cost, and its run."""
    cells = cost_run(result, digits)
    algorithm = "/".join((result.details or {}).get("algorithms", ()))
    run = ", ".join(f"{name} = {value}" for name, value in (cells[1:] if algorithm else cells))
    cost = f"{RISKS[result.quantity]} <= {digits.value(result)} {cost_probability(result)}"
    return cost, f"{algorithm} with {run}" if run else algorithm


_LEVELS: dict[str, str] = {
    Quantity.EPSILON: "epsilon <= {value} at delta = {delta}",
    Quantity.MU: "mu <= {value} (Gaussian DP)",
    Quantity.RHO: "rho <= {value} (zero-concentrated DP)",
    Quantity.PURE: "epsilon <= {value} at delta = 0 (pure DP)",
    Quantity.ADVANTAGE: "advantage <= {value} (true-positive less false-positive rate of any attack)",
    Quantity.DELTA: "delta <= {value} at epsilon = {epsilon}",
    Quantity.RDP: "RDP <= {value} at order {order}",
}


def _headline(result: Result, digits: Digits) -> str:
    return answer_alone(result, digits) + _multiplier(result, digits)


def _multiplier(result: Result, digits: Digits) -> str:
    multiplier = (result.details or {}).get("noise_multiplier")
    return f" (= noise multiplier {digits.number(multiplier, Side.UP)})" if multiplier else ""


def noise_enough(result: Result, digits: Digits) -> str:
    """Return the noise that was solved for."""
    return enough(result, digits) + _multiplier(result, digits)


def answer_alone(result: Result, digits: Digits) -> str:
    """Return a result in a line, without the solved noise in other words."""
    value, delta, epsilon = digits.value(result), digits.delta_of(result), digits.epsilon(result)
    if result.quantity in _LEVELS:
        # Below the range of a double, delta is shown as a power of ten.
        value += " (0 to all digits)" if value.startswith("10^") else ""
        return _LEVELS[result.quantity].format(value=value, delta=delta, epsilon=epsilon, order=digits.order(result))
    target = targets_text(result) or f"epsilon = {epsilon} and delta = {delta}"
    return f"{enough(result, digits)} is enough for {target}"


def budget_met(result: Result, digits: Digits) -> str:
    """Return the guarantee of a run whose noise was solved for; empty for any other result."""
    if result.quantity not in _WORDS_OF_NOISE or result.epsilon is None:
        return ""
    return f"epsilon <= {digits.epsilon(result)} at delta = {digits.delta_of(result)}"


def targets_text(result: Result) -> str:
    """Return the limits on attackers that a parameter was solved for; empty without any."""
    targets = (result.details or {}).get("targets", ())
    return " and ".join(_target(target["name"], target["at"], target["limit"]) for target in targets)


def _target(name: str, at: float | None, limit: float) -> str:
    place = "" if at is None else f"@{number(at, side=Side.AS_GIVEN)}"
    return f"{name}{place} <= {number(limit, side=Side.AS_GIVEN)}"


def enough(result: Result, digits: Digits) -> str:
    """Return the values of a solved parameter that meet the budget."""
    name, value = result.quantity, digits.value(result)
    if name in SUFFICIENT:
        order = f" at order {digits.number(result.order, Side.UP)}" if result.order is not None else ""
        return f"{SUFFICIENT[name]} <= {value}{order}"
    holds, anything = (result.details or {}).get("holds"), bool((result.details or {}).get("any"))
    if holds is None:
        relation = "<=" if name in MAXIMISED else ">="
        return f"any {name} within what is assumed" if anything else f"{name} {relation} {value}"
    if holds["from"] == holds["to"]:
        return f"{name} = {value}"
    end = f"{holds['end']} = {digits.number(holds['to'], Side.DOWN)}"
    return f"any {name} up to {end}" if anything else f"{name} from {value} to {end}"


def budget_kept(best: Result) -> str:
    """Return whose budget the run of a cost keeps, if any."""
    if best.epsilon is None:
        return "no budget was asked for, and none is promised"
    covers = (best.details or {}).get("covers", "one record")
    return f"the noise keeps the budget when {covers} is replaced"


def unbeaten(by_difference: bool) -> str:
    """Return the class of guarantees that cannot beat a lower value."""
    return "no guarantee that uses only how far two gradients are apart" if by_difference else "no guarantee"


def tightness_text(case: Case, digits: Digits) -> str:
    """Return a sentence on how far the best guarantee is from one that nothing can beat; empty if unknown."""
    best, floor = case.best, case.tightness
    if best is None or floor is None:
        return ""
    if best.bound == floor.bound:
        return "exact; no smaller value holds for what is known of the run"
    edge, side = ("above", Side.UP) if best.quantity in MAXIMISED else ("below", Side.DOWN)
    ratio = f"within a factor {factor_text(floor.ratio)}; " if floor.ratio else ""
    past = f"{edge} {best.quantity} {digits.number(floor.value, side)}"
    divisors = best.quantity == _BATCH_SIZE  # other sizes were not considered
    if floor.by_difference:
        verb = "holds for a divisor of the records" if divisors else "is"
        return f"{ratio}{unbeaten(floor.by_difference)} {verb} {past} ({floor.bound})"
    what = "no divisor of the records" if divisors else "nothing"
    return f"{ratio}{what} {past} holds for what is known of the run ({floor.bound})"


_BATCH_SIZE = "batch_size"


def factor_text(ratio: float) -> str:
    """Return the factor between two values, at least 1, from their ratio."""
    apart = max(ratio, 1.0 / ratio)
    return f"{apart:.3f}" if apart < 10.0 else number(apart, 3)


def shift_lines(case: Case) -> list[str]:
    """Return where the best result's allocation spends its shifts, if it has one."""
    details = (case.best.details if case.best else None) or {}
    allocation = details.get("allocation")
    return [f"allocation: {line}" for line in allocation_lines(allocation)] if allocation else []


def certified_lines(case: Case) -> list[str]:
    """Return what was proved about each guarantee in ball arithmetic, or why nothing was."""
    lines = []
    for result in case.results:
        details = result.details or {}
        proof, because = details.get("certified"), details.get("not_certified")
        if proof is not None:
            within = f"{proof['quantity']} lies in [{proof['lower']}, {proof['upper']}]"
            but = f"; not for {proof['alone']}" if proof.get("alone") is not None else ""
            lines.append(f"certified: {result.bound}: {within}, at {proof['bits']} bits{but}")
        elif because is not None:
            lines.append(f"not certified: {result.bound}: {because}")
    return lines


def certified_counts(report: Report) -> tuple[int, int]:
    """Return the number of best values that were proved, and the number of attempted proofs."""
    best = [result.details or {} for case in report.cases for result in case.answers]
    certified = sum(details.get("certified") is not None for details in best)
    return certified, certified + sum(details.get("not_certified") is not None for details in best)
