"""The sentences about one case: what is asked, the best answer, what it promises, and what proves it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from dpcalc.model.algorithm import ALGORITHMS
from dpcalc.model.choices import Releases
from dpcalc.model.quantities import RISKS, SUFFICIENT, Quantity
from dpcalc.model.source import Source
from dpcalc.render.allocation import allocation_lines
from dpcalc.render.comparison import cost_probability, cost_run, is_cost
from dpcalc.render.numbers import MAXIMISED, Side, delta_text, number, symbol_of, value_text
from dpcalc.render.positions import record_meant, worst_positions
from dpcalc.report import Case, Result


def released(case: Case) -> str:
    """Return the algorithm and what it releases."""
    if case.ledger:
        return "ledger: runs, releases and queries about the same records, all of whose outputs are seen"
    if case.algorithm == "risk":
        return "risk: what an attacker can do against a guarantee, whatever has it"
    if case.algorithm == "convert":
        return "convert: what follows from a guarantee, whatever has it"
    algorithm = ALGORITHMS.get(case.algorithm)
    if algorithm is None:
        return f"{case.algorithm}: every algorithm whose cost is known"
    gloss = algorithm.gloss
    if algorithm.clipped and "release" in case.inputs and case.inputs["release"][0] == Releases.LAST:
        gloss = f"{gloss.partition(';')[0]}; the last iterate alone is released"
    return f"{case.algorithm}: {gloss}"


_SOURCES = {
    Source.WORST_CASE: "worst case",
    Source.LOSS: "of the loss",
    Source.DATA: "of the data",
}
"""What is said of an input that follows from others."""


def inputs_lines(case: Case) -> list[str]:
    """Return the inputs: those that were given, those that have their default, and those that follow from others."""
    shown = [(name, *given) for name, given in case.inputs.items() if is_fact(name, given[1])]
    symbols = Counter(symbol for name, _, _ in shown if (symbol := symbol_of(name).partition(" ")[2]))
    groups: dict[str, list[str]] = {"given": [], "default": [], "derived": []}
    for name, value, source in shown:
        side = Side.NEAREST if source == Source.LOSS else Side.AS_GIVEN
        text = " or ".join(map(str, worst_positions(case))) if name == "index" else ""
        mark = f" ({_SOURCES[source]})" if source in _SOURCES else in_other_words(case, name)
        mark += " (default)" if name == "adjacency" and source == Source.DEFAULT else ""
        label = symbol_of(name)
        label = name if symbols[label.partition(" ")[2]] > 1 else label  # on a screen a symbol has one meaning
        if name == Quantity.DELTA and isinstance(value, str):
            text = value.replace("10^", "1e") if value.rpartition("-")[2].isdigit() else value
        group = "derived" if source in _SOURCES else "default" if source == Source.DEFAULT else "given"
        group = "given" if name in _FACTS else group
        groups[group].append(f"{label} = {text or number(value, side=side)}{mark}")
    return [f"{group}: {', '.join(parts)}" for group, parts in groups.items() if parts or group == "given"]


_FACTS = ("adjacency", "steps")
"""What an answer is about, whether it was given or follows from what was."""


def is_fact(name: str, source: Source) -> bool:
    """Return whether an input is shown with those that were given: what follows from them is not, but for the steps."""
    return source != Source.DERIVED or name == "steps"


def inputs_text(case: Case) -> str:
    """Return the inputs on one line."""
    return "; ".join(inputs_lines(case))


_WORDS_OF_NOISE = {
    "noise_std": ("noise_multiplier", "noise multiplier"),
    "noise_multiplier": ("noise_std", "noise_std"),
}
"""What says the same of the noise as another parameter, and its name in a sentence."""


def in_other_words(case: Case, name: str) -> str:
    """Return in brackets what else an input is: noise in the words of libraries, or here; empty if not known."""
    if name == "lipschitz" and (case.training or {}).get("solver"):
        return " (half the distance of two gradients, replace-one only)"
    if name == "steps":
        return _steps_of_epochs(case)
    other, text = _WORDS_OF_NOISE.get(name, ("", ""))
    value, source = case.inputs.get(other, (None, ""))
    if value is None or source != Source.DERIVED:
        return ""
    records, size = (case.inputs.get(name, (None, ""))[0] for name in ("records", "batch_size"))
    uneven = isinstance(records, int) and isinstance(size, int) and records % size
    return f" (= {text} {number(value, 4)}{f' in a batch of {size}' if uneven else ''})"


def _steps_of_epochs(case: Case) -> str:
    """Return in brackets from which passes the steps follow; empty where they were given."""
    if case.inputs["steps"][1] != Source.DERIVED or "epochs" not in case.inputs:
        return ""
    records, size, epochs = (case.inputs.get(name, (None, ""))[0] for name in ("records", "batch_size", "epochs"))
    steps = case.inputs["steps"][0]
    if not (isinstance(records, int) and isinstance(size, int)) or steps != int(epochs or 0) * -(-records // size):
        return f" (= {steps // int(epochs or 1)} * {epochs})"
    each = f"ceil({records}/{size})" if records % size else f"{records}/{size}"
    return f" (= {each} * {epochs})"


def headline(case: Case, precision: int) -> list[str]:
    """Return the answer in one line per best result."""
    line = _cost_headline if is_cost(case) else _headline
    return [line(result, precision) for result in case.results if result.best]


def _cost_headline(result: Result, precision: int) -> str:
    said, run = cost_sentences(result, precision)
    return f"{said}: {run} ({result.bound})"


def cost_sentences(result: Result, precision: int) -> tuple[str, str]:
    """Return what a cost is at most, and the run that has it."""
    run = ", ".join(f"{name} = {value}" for name, value in cost_run(result, precision) if name != "algorithm")
    algorithm = "/".join((result.details or {}).get("algorithms", ()))
    said = f"{RISKS[result.quantity]} <= {value_text(result, precision)} {cost_probability(result)}"
    return said, f"{algorithm} with {run}" if run else algorithm


_LEVELS: dict[str, str] = {
    Quantity.MU: "mu <= {} (Gaussian DP)",
    Quantity.RHO: "rho <= {} (zero-concentrated DP)",
    Quantity.PURE: "epsilon <= {} at delta = 0 (pure DP)",
    Quantity.ADVANTAGE: "advantage <= {} (true positives less false positives of any attack)",
}


def _headline(result: Result, precision: int) -> str:
    value = value_text(result, precision)
    delta = delta_text(result.delta, result.log_delta, precision, Side.ECHO)
    if result.quantity == Quantity.EPSILON:
        return f"epsilon <= {value} at delta = {delta}"
    if result.quantity == Quantity.DELTA:
        nothing = " (0 to all digits)" if value.startswith("10^") else ""
        return f"delta <= {value}{nothing} at epsilon = {number(result.epsilon or 0.0, precision, Side.ECHO)}"
    if result.quantity in _LEVELS:
        return _LEVELS[result.quantity].format(value)
    if result.quantity == Quantity.RDP:
        return f"RDP <= {value} at order {number(result.order or 0.0, precision, Side.DOWN)}"
    target = targets_text(result)
    if not target:
        target = f"epsilon = {number(result.epsilon or 0.0, precision, Side.ECHO)} and delta = {delta}"
    multiplier = (result.details or {}).get("noise_multiplier")
    also = f" (= noise multiplier {number(multiplier, precision, Side.UP)})" if multiplier else ""
    return f"{enough(result, precision)} is enough for {target}{also}"


def targets_text(result: Result) -> str:
    """Return what an attacker may do at most, where a parameter was solved for that; empty where it was not."""
    return " and ".join(map(_target, (result.details or {}).get("targets", ())))


def _target(target: Mapping[str, Any]) -> str:
    at = "" if target["at"] is None else f"@{number(target['at'], side=Side.AS_GIVEN)}"
    return f"{target['name']}{at} <= {number(target['limit'], side=Side.AS_GIVEN)}"


def enough(result: Result, precision: int) -> str:
    """Return which values of a parameter that was solved for meet the budget."""
    name, value = result.quantity, value_text(result, precision)
    if name in SUFFICIENT:
        order = f" at order {number(result.order, precision, Side.UP)}" if result.order is not None else ""
        return f"{SUFFICIENT[name]} <= {value}{order}"
    holds = (result.details or {}).get("holds")
    if holds is None:
        relation = "<=" if name in MAXIMISED else ">="
        return f"any {name} within what is assumed" if value == "any" else f"{name} {relation} {value}"
    if holds["from"] == holds["to"]:
        return f"{name} = {value}"
    end = f"{holds['end']} = {number(holds['to'], precision, Side.DOWN)}"
    return f"any {name} up to {end}" if value == "any" else f"{name} from {value} to {end}"


_FORGOTTEN = (
    "The output can hardly be told from that of a model which never saw the records to be forgotten and took the same "
    "steps. For the records kept this is no guarantee, and who has seen the old model has what its training tells."
)


def promise(case: Case) -> str:
    """Return what the best guarantee promises, to whom, in a sentence for somebody new to the field."""
    best = case.best
    if best is None or best.forgetting:
        return "" if best is None else _FORGOTTEN
    if best.quantity in RISKS or (kept := _attacks_kept(best)):
        return _cost_promise(best) if best.quantity in RISKS else _attack_promise(case, kept)
    if best.adjacency in _OTHER_NEIGHBOURS:
        return _OTHER_NEIGHBOURS[best.adjacency](best)
    who = record_meant(case) or "the differing record"
    scope = "no matter what the other records are, and even to somebody who knows them all"
    size = int(case.inputs.get("group_size", (1, ""))[0] or 1)
    if best.adjacency in _COMINGS or size > 1:
        return (_of_comings if best.adjacency in _COMINGS else _of_groups)(best, scope, size)
    what = "another record" if best.adjacency == "replace_one" else "a null record (zero gradient)"
    if best.quantity in (Quantity.MU, Quantity.RDP):
        kind = "Gaussian" if best.quantity == Quantity.MU else "Renyi"
        return f"The released output satisfies {kind} differential privacy for {who} against {what}, {scope}."
    return (
        f"Replacing {who} by {what} changes the probability of anything seen in the output by a factor of at most "
        f"{_factor(best)}, up to an additive delta, {scope}."
    )


def _attacks_kept(best: Result) -> str:
    """Return what attacks on a record of a run are kept to; empty where the answer is something else."""
    if best.quantity == Quantity.ADVANTAGE and best.adjacency not in _OTHER_NEIGHBOURS:
        return f"advantage {number(best.value, side=Side.UP)}"
    return targets_text(best)


def _attack_promise(case: Case, kept: str) -> str:
    """Return what is promised where a parameter was solved for what an attacker can do."""
    size = int(case.inputs.get("group_size", (1, ""))[0] or 1)
    about = record_meant(case) or "a record" if size == 1 else f"{size} records together"
    return (
        f"No attack on {about} goes beyond {kept}, no matter what the other records are, and even if the attacker "
        "knows them all."
    )


def _conversion_promise(best: Result) -> str:
    """Return what a conversion promises, or what a risk says."""
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


def _shift_promise(best: Result) -> str:
    """Return what holds of data sets that differ by shifts."""
    return (
        "Two data sets whose maps are within the given shifts of each other, step by step, give outputs whose "
        f"probabilities differ by a factor of at most {_factor(best)}, up to an additive delta."
    )


_OTHER_NEIGHBOURS = {"as_given": _conversion_promise, "by_shift": _shift_promise}
"""What is promised where neighbours differ in no record that the case speaks of."""

_COMINGS = {"add_remove": "Adding a record or removing one", "add": "Adding a record", "remove": "Removing a record"}
"""What makes data sets neighbours whose sizes differ."""

_DOING = {"add_remove": "Adding or removing", "add": "Adding", "remove": "Removing"}
"""What is done to several records."""

_ONE_WAY = {"add": "without the record as with it", "remove": "with the record as without it"}


def _of_groups(best: Result, scope: str, size: int) -> str:
    """Return the promise where several records are replaced at once."""
    what = "others" if best.adjacency == "replace_one" else "null records (zero gradient)"
    if best.quantity in (Quantity.MU, Quantity.RDP):
        kind = "Gaussian" if best.quantity == Quantity.MU else "Renyi"
        return (
            f"The released output satisfies {kind} differential privacy for any {size} records at once against {what}, "
            f"{scope}."
        )
    return (
        f"Replacing any {size} records by {what} changes the probability of anything seen in the output by a factor of "
        f"at most {_factor(best)}, up to an additive delta, {scope}."
    )


def _of_comings(best: Result, scope: str, size: int) -> str:
    """Return the promise where a record comes or leaves, or several do."""
    done = _COMINGS[best.adjacency] if size == 1 else f"{_DOING[best.adjacency]} up to {size} records"
    if best.quantity in (Quantity.MU, Quantity.RDP):
        kind = "Gaussian" if best.quantity == Quantity.MU else "Renyi"
        return f"The released output satisfies {kind} differential privacy: {done.lower()} is hidden, {scope}."
    if best.adjacency in _ONE_WAY:
        one_way = _ONE_WAY[best.adjacency]
        if size > 1:
            one_way = one_way.replace("the record", f"{size} records").replace(" it", " them")
        return (
            f"Anything seen in the output is at most {_factor(best)} times as likely {one_way}, up to "
            f"an additive delta, {scope}. The other direction is not covered; add-remove covers both."
        )
    return (
        f"{done} changes the probability of anything seen in the output by a factor of at most {_factor(best)}, up to "
        f"an additive delta, {scope}."
    )


def _cost_promise(best: Result) -> str:
    """Return what an excess risk is, in a sentence."""
    return (
        "The mean loss of the released model exceeds that of the best model in the domain by at most this much, on new "
        f"records of the law the given ones were drawn from; {budget_kept(best)}."
    )


def budget_kept(best: Result) -> str:
    """Return of whom the run that has a cost keeps the budget, if of anybody."""
    if best.epsilon is None:
        return "no budget was asked for, and none is promised"
    covers = (best.details or {}).get("covers", "one record")
    return f"the noise keeps the budget when {covers} is replaced"


def _factor(best: Result) -> str:
    """Return e^epsilon, with its value where that can be read."""
    epsilon = best.epsilon or 0.0
    return f"e^epsilon = {number(math.exp(epsilon), 4, Side.UP)}" if epsilon < 30.0 else "e^epsilon"


def grounds(case: Case) -> list[str]:
    """Return why the best guarantee holds: its theorem and what that assumes."""
    best = case.best
    if best is None:
        return []
    return [f"by {best.reference} ({best.bound}), assuming:", *(f"  - {text}" for text in best.assumes)]


def unbeaten(by_difference: bool) -> str:
    """Return of which guarantees none beats a lower value."""
    return "no guarantee that uses only how far two gradients are apart" if by_difference else "no guarantee"


def tightness_text(case: Case, precision: int) -> str:
    """Return in a sentence how far the best guarantee is from what nothing can beat; empty where that is not known."""
    best, floor = case.best, case.tightness
    if best is None or floor is None:
        return ""
    if best.bound == floor.bound:
        return "tightness: exact; no smaller value holds for what is known of the run"
    edge = "above" if best.quantity in MAXIMISED else "below"
    ratio = f" within a factor {factor_text(floor.ratio)};" if floor.ratio else ""
    side = number(floor.value, precision, Side.UP if edge == "above" else Side.DOWN)
    past = f"{edge} {best.quantity} {side}"
    divisors = best.quantity == "batch_size"  # other sizes were not asked about
    if floor.by_difference:
        verb = "holds for a divisor of the records" if divisors else "is"
        return f"tightness:{ratio} {unbeaten(floor.by_difference)} {verb} {past} ({floor.bound})"
    what = "no divisor of the records" if divisors else "nothing"
    return f"tightness:{ratio} {what} {past} holds for what is known of the run ({floor.bound})"


def factor_text(ratio: float) -> str:
    """Return how far apart two values are, whichever is larger."""
    apart = max(ratio, 1.0 / ratio)
    return f"{apart:.3f}" if apart < 10.0 else number(apart, 3)


def shift_lines(case: Case) -> list[str]:
    """Return where the best result's allocation spends its shifts, if it has one."""
    details = (case.best.details if case.best else None) or {}
    allocation = details.get("allocation")
    return [f"allocation: {line}" for line in allocation_lines(allocation)] if allocation else []


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
