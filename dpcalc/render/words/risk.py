"""What an attacker can do, the results of an audit, and the lines on a trained run, as tables and in words.

For beginners an answer says how often an attacker guesses right. The metrics of a trained run are beside those of the
non-private fit, and are marked as not covered.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpcalc.model.draft import NOISE_SCALES
from dpcalc.model.numbers import parse_number
from dpcalc.model.quantities import ATTACKS
from dpcalc.render.numbers import Digits, Side, number
from dpcalc.render.words.positions import SIZES_DIFFER, Neighbours, group_size, record_meant
from dpcalc.report import PARTS, Case, Report, Result

COLUMNS = ("at most", "by")


def risk_rows(case: Case, digits: Digits) -> list[tuple[str, ...]]:
    """Return a head and one row per number; nothing if no risk was asked for."""
    if not case.risk:
        return []
    risk = case.risk
    rows = [("advantage: true-positive less false-positive rate", risk["advantage"])]
    rows += [(f"true-positive rate at {_percent(row['fpr'])} false-positive rate", row) for row in risk["tpr"]]
    rows += [(f"right guess {_question(case)}, prior {_percent(row['prior'])}", row) for row in risk["success"]]
    rows += [
        (f"right guess of a secret, {_percent(row['baseline'])} without the release", row)
        for row in risk["reconstruction"]
    ]
    few = digits.at_most(4)
    return [(_head(case), *COLUMNS), *((what, few.number(row["value"], Side.UP), row["bound"]) for what, row in rows)]


def risk_names(report: Report) -> list[str]:
    """Return the columns of risks in a table of several cases, named as in assertions."""
    answered = {result.quantity for case in report.cases for result in case.results}
    names = dict.fromkeys(name for case in report.cases for name in _by_name(case))
    return [name for name in names if name not in answered]


def risk_cells(case: Case, names: Sequence[str], digits: Digits) -> list[str]:
    """Return a case's risks of these names, empty if it has none."""
    risks = _by_name(case)
    return [digits.at_most(4).number(risks[name], Side.UP) if name in risks else "" for name in names]


def _by_name(case: Case) -> dict[str, float]:
    named = ((name.partition("@"), value) for name, value in case.attack_numbers.items())
    return {f"{name}@{_percent(float(at))}" if at else name: value for (name, _, at), value in named}


def _head(case: Case) -> str:
    """Return the head, which names the record at risk."""
    size = group_size(case)
    about = record_meant(case) if size == 1 else f"{size} records together"
    return f"what an attacker can do about {about}" if about else "what an attacker can do"


def _question(case: Case) -> str:
    """Return what an attacker guesses about the record."""
    return "whether it was there" if _of_presence(case) else "which of two it is"


def _of_presence(case: Case) -> bool:
    """Return whether neighbours differ in the presence of a record."""
    return case.best is not None and case.best.adjacency in _PRESENT


_PRESENT: tuple[str, ...] = (Neighbours.ADD_REMOVE, Neighbours.NULL_RECORD)


def attack_row(case: Case, asserted: str) -> Mapping[str, Any] | None:
    """Return the number of a case for an assertion such as ``tpr@1%``; None for any other."""
    name, _, at = asserted.partition("@")
    if not case.risk or name not in ATTACKS:
        return None
    rows = case.risk[name] if ATTACKS[name] else [case.risk[name]]
    return next((row for row in rows if not ATTACKS[name] or row[ATTACKS[name]] == parse_number(at)), None)


def _percent(share: float) -> str:
    """Return a share in percent, as typed."""
    return f"{number(100.0 * share, 6)}%"


def risk_lines(case: Case, digits: Digits) -> list[str]:
    """Return the risks in words, and the mu that summarises the whole curve."""
    if not case.risk:
        return []
    risk, lines = case.risk, []
    if risk["tpr"] and _of_presence(case) and _head(case).endswith(" can do"):
        flagged, caught = (number(1000.0 * risk["tpr"][0][name], 3, Side.UP) for name in ("fpr", "value"))
        lines.append(
            f"an attack that flags {flagged} of 1000 people who are not in the data flags on average at most {caught} "
            "of 1000 who are"
        )
    if (least := risk["advantage"].get("at_least")) is not None:
        lines.append(f"an attack with advantage {number(least, 4, Side.DOWN)} exists, on the worst data for the run")
    lines.append(_mu_line(case, digits))
    if risk["from_point"]:
        of_curve = case.guess is not None and not case.guess.from_point
        alone = "and of how often a guess is right" if of_curve else "alone"
        lines.append(f"this follows from one (epsilon, delta) {alone}; the whole curve of a run gives less")
    return lines


def _mu_line(case: Case, digits: Digits) -> str:
    mu = (case.risk or {})["mu"]
    if mu is None:
        return "no finite mu"
    value = digits.number(mu["value"], Side.UP)
    if mu["delta"] == 0.0:
        regret = number(mu["regret"], 2, Side.UP)
        excess = f"; it overstates a right guess by up to {regret}" if mu["regret"] > 0 else ""
        return f"Gaussian privacy with mu = {value} ({mu['bound']}){excess}"
    delta = number(mu["delta"], 3, Side.UP)
    if whole := mu.get("everywhere"):
        return (
            f"Gaussian privacy with mu = {digits.number(whole['value'], Side.UP)} at every epsilon ({whole['bound']}); "
            f"with mu = {value} where delta is above {delta} ({mu['bound']})"
        )
    return f"no mu is known for the whole curve; mu = {value} holds where delta is above {delta} ({mu['bound']})"


def meaning(case: Case) -> str:
    """Return the meaning of the best guarantee for an attacker in a sentence; empty if there is no simple one."""
    best, guess = case.best, case.guess
    if best is None or guess is None:
        return ""
    asked = _asked(case, best, group_size(case))
    tenths = math.ceil(guess.probability * 1000.0)
    if tenths >= 1000:
        return f"This guarantee does not rule out an almost perfect guess of {asked}."
    alone = ", by this point alone" if guess.from_point else ""
    return (
        f"An attacker who knows all other records and guesses {asked} is right at most {tenths / 10:.1f}% of the time"
        f"{alone} (a coin: 50%)."
    )


def _asked(case: Case, best: Result, size: int) -> str:
    """Return the alternatives of the attacker."""
    if best.forgetting:
        return "whether the records to be forgotten were ever used"
    if best.adjacency in SIZES_DIFFER:
        return "whether one more record was used" if size == 1 else f"whether {size} more records were used"
    who, has = (record_meant(case) or "a record", "has") if size == 1 else (f"any {size} records", "have")
    if best.adjacency == Neighbours.REPLACE_ONE:
        return f"which of two values {who} {has}"
    return f"whether {who} {'was' if size == 1 else 'were'} used or left out"


_REFUTED = "THE RUNS CONTRADICT THE GUARANTEE, or chance did, which the confidence allows"

ATTACK = "attack"
"""The label of an audit's attack."""

_BROKEN = (
    "THE IMPLEMENTATION IS BROKEN, or the guarantee does not describe it, or chance did, which the confidence allows"
)

_NAMES = {"audited epsilon": "epsilon_lower", "audited mu": "mu_lower"}


def audit_facts(case: Case, digits: Digits) -> list[tuple[str, str]]:
    """Return the results of an audit, with their labels; nothing without one."""
    if not case.audit:
        return []
    audit, facts = case.audit, []
    confidence = number(audit["confidence"], side=Side.AS_GIVEN)
    beside = {
        name: "" if audit[name] is None else f" (guaranteed: {digits.number(audit[name], Side.UP)})"
        for name in ("epsilon", "mu")
    }
    if audit["epsilon_lower"] is not None:
        lower, delta = digits.number(audit["epsilon_lower"], Side.DOWN), number(audit["delta"], side=Side.AS_GIVEN)
        facts.append(("audited", f"epsilon >= {lower} at delta = {delta}{beside['epsilon']}"))
    mu = digits.number(audit["mu_lower"], Side.DOWN)
    facts.append(("audited", f"mu >= {mu} if Gaussian{beside['mu']}; with confidence {confidence}"))
    if scores := audit.get("scores"):
        said = f"{scores['in']} in, {scores['out']} out, of {audit['others']}; {audit['looks_at']}"
        verdict = [("verdict", _BROKEN)] if audit["exceeded"] else []
        return [*facts, ("scores", said), *verdict]
    facts += [
        (
            ATTACK,
            f"{audit['attack']}: {audit['others']}; looks at {audit['looks_at']}; {audit['replicas']} runs on each of "
            f"two data sets that differ in one record, seed {audit['seed']}; {audit['pilot']} of them chose the events "
            "and do not count",
        ),
    ]
    return [*facts, ("verdict", _REFUTED)] if audit["exceeded"] else facts


def refuted(case: Case) -> str:
    """Return the warning before a guarantee that an audit contradicts; else nothing."""
    if not case.audit or not case.audit["exceeded"]:
        return ""
    return _BROKEN if case.audit.get("scores") else f"{_REFUTED}: what follows may be false"


def audited_together(report: Report) -> Iterator[str]:
    """Yield how the cases of a table were audited; the confidence is for each of them."""
    audits = [case.audit for case in report.cases if case.audit]
    if audits:
        first, attacks = audits[0], ", ".join(dict.fromkeys(audit["attack"] for audit in audits))
        yield (
            f"audited: the bounds on each case hold with confidence {number(first['confidence'], side=Side.AS_GIVEN)}; "
            f"attacks: {attacks}; {first['replicas']} runs on each of two data sets, seed {first['seed']}"
        )


def audit_names(report: Report) -> list[str]:
    """Return the columns of audits in a table of several cases."""
    audits = [case.audit for case in report.cases if case.audit]
    return [name for name, key in _NAMES.items() if any(audit[key] is not None for audit in audits)]


def audit_cells(case: Case, names: Sequence[str], digits: Digits) -> list[str]:
    """Return the results of a case's audit, empty without one."""
    values = [case.audit[_NAMES[name]] if case.audit else None for name in names]
    return ["" if value is None else digits.at_most(4).number(value, Side.DOWN) for value in values]


_METRIC_NAMES = {
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
"""The quantities that bounds on the risk are about: the first is not the measured excess risk."""


def warning(case: Case) -> str:
    """Return why the result is not private; empty if it is."""
    trained = case.training or {}
    if trained.get("private", True) is True and not trained.get("why_not_private"):
        return ""
    return f"NOT PRIVATE: {trained.get('why_not_private') or 'the report does not say why'}"


def caution(case: Case) -> str:
    """Return the meaning of the numbers of a model that is not private, as the start of a sentence."""
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
        "that does not depend on the data." + (_SUMS if case.training.get("solver") else "") + _weighed(case)
        + _other_steps(case)
    )  # fmt: skip


def _weighed(case: Case) -> str:
    """Return the weights of the classes' gradients, as a sentence of a statement; empty without weights."""
    weights = (case.training or {}).get("class_weights")
    if not weights:
        return ""
    listed = ", ".join(number(weight, 4) for weight in weights)
    return f" Gradients of the classes are multiplied by public weights, {listed}, none of which is above 1."


def _other_steps(case: Case) -> str:
    """Return which accounted steps are not descent steps, as the end of a statement."""
    training = case.training or {}
    centre, calibrated = training.get("centre"), training.get("calibration", {})
    by_class = calibrated.get("class_sums", 0)
    counted = calibrated.get("sums", 0) + by_class
    first = centre["mean"] + centre["distance"] if centre else 0
    said = (
        f" The first {first} of the {first + training['steps'] + counted} accounted steps are noisy sums too, of the "
        f"same sensitivity: {centre['mean']} of the rows, {centre['distance']} of their distances from the noisy mean "
        f"row; {training['steps']} steps descend on rows about that row, shortened in the same way."
        if centre
        else ""
    )
    return said + (_COUNTED.format(counted, _BY_CLASS.format(by_class) if by_class else "") if counted else "")


_COUNTED = (
    " The last {} of the accounted steps are noisy sums of no larger sensitivity: counts of right and wrong answers, "
    "by which scores became log-odds{}."
)
_BY_CLASS = ", and {} sums of labels and predicted probabilities, for a bias of each class"


_SUMS = (
    " The gradient of the one step is that of linear losses: its entries are the sums of products of columns and "
    "target from which least squares are solved."
)


def metric_rows(case: Case, digits: Digits) -> list[tuple[str, ...]]:
    """Return the table of metrics: the private model (of replicas the median and the range) and the non-private fit."""
    training, measured, body = case.training, case.not_covered.get(_METRICS), []
    if not training or not measured:
        return []
    parts = [part for part in PARTS if part in measured]
    for name, label in _METRIC_NAMES.items():
        for model, text in ((_METRICS, "this model"), ("non_private", "non-private fit")):
            cells = [_cell(case, model, part, name, digits) for part in parts]
            if any(cells):
                body.append((f"{label}, uncovered", text, *cells))
    return [("", "", *(f"{part} ({training[_COUNTS[part]]} records)" for part in parts)), *body]


_METRICS = "metrics"
"""The field with the metrics of the private model."""

_COUNTS = {"train": "records", "test": "test_records"}


def _cell(case: Case, model: str, part: str, name: str, digits: Digits) -> str:
    spread = case.not_covered.get("quantiles", {}).get(part, {}).get(name) if model == _METRICS else None
    if spread and None not in spread:
        low, *_, high = spread
        middle = spread[len(spread) // 2]
        return f"{digits.number(middle)} [{digits.number(low)}, {digits.number(high)}]"
    value = case.not_covered.get(model, {}).get(part, {}).get(name)
    return "" if value is None else digits.number(value)


def measured(case: Case, digits: Digits) -> str:
    """Return the first metric of every part measured without noise; empty if none was."""
    metrics = case.not_covered.get(_METRICS, {})
    cells = [
        f"{_METRIC_NAMES[name]} {_cell(case, _METRICS, part, name, digits.at_most(4))} ({part})"
        for part in PARTS
        if part in metrics
        for name in [next(name for name in _METRIC_NAMES if name in metrics[part])]
    ]
    units = str(case.not_covered.get("why", "")).partition("; ")[2]  # of errors if the target is mapped
    return "; ".join(cells) + (f", {units}" if cells and units else "")


def measured_privately(case: Case, digits: Digits) -> str:
    """Return the metrics released with noise, with their intervals and part of the budget; empty without any."""
    found = (case.training or {}).get("evaluation")
    if not found:
        return ""
    four = digits.at_most(4)
    values = [
        f"{_METRIC_NAMES[name]} {four.number(value['value'])} "
        f"[{four.number(value['low'], Side.DOWN)}, {four.number(value['high'], Side.UP)}]"
        for name, value in found["metrics"].items()
    ]
    epsilons = [digits.number(found[name], Side.AS_GIVEN) for name in ("epsilon", "epsilon_with_model")]
    return (
        f"{', '.join(values)} on {found['records']} {found['on']} records ({found['confidence']:.0%} over the noise); "
        f"epsilon = {epsilons[0]}, with the model {epsilons[1]}"
    )


def chosen(case: Case) -> str:
    """Return the choice of a tuned run in a sentence; empty without one."""
    tuning = (case.training or {}).get("tuning")
    if not tuning:
        return ""
    best = ", ".join(
        f"{name} = {number(value, side=Side.AS_GIVEN)}"
        for name, value in tuning["candidates"][tuning["chosen"]].items()
        if name not in (*NOISE_SCALES, "mu", "bound")
    )
    score = tuning["score"]
    scored = ", ".join(
        f"{_METRIC_NAMES[name]} {number(score[name], 4)}" for name in ("accuracy", "mae") if score.get(name) is not None
    )
    noisy = " with noise" if score["epsilon"] is not None else ""
    return (
        f"{best} was chosen of {len(tuning['candidates'])} candidates, as the best of a random number of runs "
        f"({tuning['distribution']}, mean {number(tuning['mean'], 6)}), by its score{noisy} on {score['records']} "
        f"{score['on']}: {scored}, which is optimistic, since the best was chosen by it"
    )


def _counted(case: Case) -> str:
    """Return the counts of records."""
    training = case.training or {}
    score = training.get("tuning", {}).get("score", {})
    held_out = score["records"] if score.get("epsilon") is not None else 0  # to score runs on
    total = training["records"] + training["test_records"] + held_out
    counted = case.not_covered
    counts = f"{counted['rows_clipped']} of {total} rows shortened"
    if counted["labels_clipped"]:
        counts += f", {counted['labels_clipped']} targets cut"
    return counts + (f", {counted['unreadable']} cells no finite number" if counted["unreadable"] else "")


def trained(case: Case) -> str:
    """Return the data of a run in a line."""
    training = case.training
    if not training:
        return ""
    replicas = training.get("replicas")
    steps = f"{training['steps']} steps on {training['records']} records of {training['dimension']} columns"
    return f"{f'{replicas} runs: ' if replicas else ''}{steps}; noise: {training['noise_source']}"


def training_lines(case: Case, digits: Digits) -> list[str]:
    """Return the lines above and below the table of metrics."""
    training = case.training
    if not training:
        return []
    quantiles = case.not_covered.get("quantiles")
    constant = "; one column is constant, for the intercept" if training["intercept"] else ""
    lines = [f"trained: {trained(case)}{constant}", *filter(None, [chosen(case), _centred(case)])]
    if quantiles:
        probabilities = quantiles["probabilities"]
        lines.append(f"median [{probabilities[0]:.0%}, {probabilities[-1]:.0%} quantiles] over the runs")
    bound = training["excess_risk_bound"]
    if bound:
        value = digits.number(bound["value"], Side.UP)
        empty = ", before rounding" if case.best and (case.best.details or {}).get("floating_point") is not None else ""
        empty += ", vacuous" if bound["vacuous"] else ""
        lines.append(f"{_RISKS[bound['quantity']]} <= {value} ({bound['bound']}{empty})")
    elif case.not_covered.get("non_private"):
        lines.append(f"excess risk: {training['excess_risk_bound_because']}")
    private = [f"private: {text}"] if (text := measured_privately(case, digits)) else []
    return [*lines, *private, *_uncovered_lines(case)]


def _uncovered_lines(case: Case) -> Iterator[str]:
    """Yield the counts and oddities of the records, each line marked as uncovered."""
    if not case.not_covered:
        return
    yield f"uncovered is what was {case.not_covered['why']}"
    counted = [_counted(case)] if case.not_covered.get("rows_clipped") is not None else []
    yield from (f"uncovered: {line}" for line in (*counted, *case.not_covered["remarks"]))


def _centred(case: Case) -> str:
    """Return how rows are centred in a sentence; empty if they are not."""
    centre = (case.training or {}).get("centre")
    if not centre:
        return ""
    return (
        f"a noisy mean was subtracted from every row, and rows were then divided by {number(centre['scale'], 3)} times "
        "the largest length allowed (a noisy mean distance chose this)"
    )


def summary_names(report: Report) -> tuple[str, ...]:
    """Return the metrics in a summary of several cases: ``uncovered``, part and metric, joined by blanks."""
    names: dict[str, None] = {}
    for case in report.cases:
        metrics = case.not_covered.get(_METRICS, {})
        part = PARTS[1] if PARTS[1] in metrics else PARTS[0]
        columns = ((part, "accuracy"), (part, "rmse"), (PARTS[0], "excess_risk"))
        names.update({f"uncovered {part} {name}": None for part, name in columns if name in metrics.get(part, {})})
    return tuple(names)


def summary_cells(case: Case, names: tuple[str, ...], digits: Digits) -> tuple[str, ...]:
    """Return a case's cells under `summary_names`."""
    places = [name.split()[1:] for name in names]
    return tuple(_cell(case, _METRICS, part, metric, digits.at_most(4)) for part, metric in places)
