"""What a page shows of a report, as texts: the template has no logic, and this no markup."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from dpcalc.errors import SpecError
from dpcalc.model.quantities import ATTACKS, Kind, Quantity
from dpcalc.model.source import Source
from dpcalc.named_tuple import NamedTuple
from dpcalc.notes import Referenced
from dpcalc.references import SHORT, proof_of
from dpcalc.render import Asked, training
from dpcalc.render.audit import audit_lines
from dpcalc.render.check.baseline import changes
from dpcalc.render.check.verdicts import (
    MERGE,
    Row,
    checked,
    circumstances,
    findings,
    gate_limit,
    gate_name,
    gate_rows,
    place,
    refused,
    rows,
    shard_text,
    share_used,
)
from dpcalc.render.comparison import derivation, is_cost
from dpcalc.render.ledger import entry_rows, ledger_lines
from dpcalc.render.meaning import meaning
from dpcalc.render.notes import sentences_about
from dpcalc.render.numbers import Side, number, symbol_of, value_text
from dpcalc.render.page import charts
from dpcalc.render.page.outcome import case_style, case_word, style_of, warnings, without_gate, word_of
from dpcalc.render.risk import risk_lines, risk_rows
from dpcalc.render.sentences import (
    certified_lines,
    cost_sentences,
    headline,
    noise_in_other_words,
    promise,
    released,
    tightness_text,
)
from dpcalc.render.summary import varying
from dpcalc.report import Assertion, Case, Change, Report, Result, Status, uncertified
from dpcalc.theorems.record import lookup
from dpcalc.version import __version__

MAX_CASES = 100
"""How many cases are shown in full; the table of verdicts has all, up to `MAX_ROWS`."""
MAX_DRAWN = 12
"""Cases with pictures: those that did not pass, and of the others the ones with the least room."""
SHARED_FROM = 9
"""From so many cases on, what has to be true is said once for each theorem."""
MAX_ROWS = 1000
MAX_NAME = 120
MAX_NAMES = 10
FEW = 2
"""So many cases at most are shown unfolded."""

Table = tuple[tuple[str, ...], ...]
"""A head and rows."""


class Verdict(NamedTuple):
    """A row of the table of verdicts: where it leads, how it ended, what was compared and how much is used."""

    number: int
    style: str
    word: str
    case: str
    row: Row
    share: float | None
    used: str
    linked: bool = True


class Given(NamedTuple):
    """An input: its name, its value, and where it comes from."""

    name: str
    value: str
    source: str


class Figure(NamedTuple):
    """A picture, what it is called, and what stands below it."""

    title: str
    drawn: str
    caption: str


class Grounds(NamedTuple):
    """Why an answer holds: what dpcalc checked, what the author of the run promises, the theorem, the sources."""

    tools: tuple[str, ...]
    author: tuple[str, ...]
    theorem: str
    sources: tuple[str, ...]


class Shown(NamedTuple):
    """A case as it is shown; what is empty is left out.

    ``shared`` is the number of its grounds among those of the page, 0 where it has its own.
    """

    number: int
    name: str
    place: str
    style: str
    word: str
    open: bool
    warning: str
    headlines: tuple[str, ...]
    meaning: str
    promise: str
    released: str
    findings: tuple[str, ...]
    about: str
    grounds: Grounds
    shared: int
    bracket: str
    tightness: str
    figures: tuple[Figure, ...]
    risk: Table
    risk_lines: tuple[str, ...]
    entries: Table
    entry_lines: tuple[str, ...]
    metrics: Table
    inputs: tuple[Given, ...]
    proofs: tuple[str, ...]
    bounds: Table
    notes: tuple[str, ...]
    command: str


class Page(NamedTuple):
    """All of a page. ``style`` is ok, part, bad or plain: the colour of the verdict, beside its words."""

    title: str
    kicker: str
    style: str
    word: str
    verdict: str
    said: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    reservations: tuple[str, ...]
    gated: bool
    verdicts: tuple[Verdict, ...]
    left_out: str
    compared: bool
    changes: tuple[Change, ...]
    cases: tuple[Shown, ...]
    cases_left_out: tuple[str, ...]
    grounds: tuple[Grounds, ...]
    inputs: tuple[Given, ...]
    command: str
    version: str


def page_of(report: Report, asked: Asked) -> Page:
    """Return what the page of a report shows."""
    style = style_of(report)
    gated = any(case.assertions for case in report.cases) or report.command == "check"
    judged = gated or style == "bad"
    word = word_of(report) if judged else "Answer" if len(report.cases) == 1 else "Answers"
    found = _changes(report, asked)
    order = _by_importance(report)
    drawn, full = set(order[:MAX_DRAWN]), sorted(order[:MAX_CASES])
    shown = [_shown(report, report.cases[place - 1], place, asked, drawn=place in drawn) for place in full]
    table = sorted(_verdicts(report, set(full), asked.precision), key=lambda row: _RANK[row.style])
    inputs: tuple[Given, ...] = ()
    grounds = tuple(dict.fromkeys(each.grounds for each in shown if each.grounds.theorem))
    if len(report.cases) >= SHARED_FROM:
        places = {each: place for place, each in enumerate(grounds, 1)}
        shown = [each._replace(shared=places.get(each.grounds, 0)) for each in shown]
        described = [set(each.inputs) for each in shown if each.inputs]
        common = set.intersection(*described) if described else set()
        inputs = tuple(dict.fromkeys(one for each in shown for one in each.inputs if one in common))
        shown = [each._replace(inputs=tuple(one for one in each.inputs if one not in common)) for each in shown]
    else:
        grounds = ()
    said = _said(report, asked.precision)
    return Page(
        title=f"dpcalc {report.command}: {word}",
        kicker=f"dpcalc {report.command}",
        style=style,
        word=word,
        verdict=_verdict(report, style, asked.precision),
        said=said,
        facts=tuple(_facts(report)),
        reservations=tuple(_reservations(report)),
        gated=gated,
        verdicts=tuple(table[:MAX_ROWS]) if gated or len(table) > 1 else (),
        left_out=f"{len(table) - MAX_ROWS} more rows are left out." if len(table) > MAX_ROWS else "",
        compared=found is not None,
        changes=tuple((found or ())[:MAX_ROWS]),
        cases=tuple(shown),
        cases_left_out=tuple(_cases_left_out(len(report.cases))),
        grounds=grounds,
        inputs=inputs,
        command=_typed(asked.typed),
        version=__version__,
    )


def _by_importance(report: Report) -> list[int]:
    """Return the numbers of the cases: those that did not pass first, then those with the least room."""

    def rank(place: int) -> tuple[int, float]:
        case = report.cases[place - 1]
        shares = [share for gate in case.assertions if (share := share_used(gate)) is not None]
        return _RANK[case_style(case)], -max(shares, default=0.0)

    return sorted(range(1, len(report.cases) + 1), key=rank)


_RANK = {"bad": 0, "plain": 1, "skip": 2, "ok": 3}


def _cases_left_out(count: int) -> Iterable[str]:
    if count > MAX_DRAWN:
        yield (
            f"Pictures, and all the bounds that answered, are shown of the {MAX_DRAWN} cases that did not pass or have "
            "the least room."
        )
    if count > MAX_CASES:
        yield f"{count - MAX_CASES} more cases are not shown here."


# --- the verdict ------------------------------------------------------------------------------------------------------


def _verdict(report: Report, style: str, precision: int) -> str:
    """Return the verdict in a sentence."""
    count = len(report.cases)
    bad = sum(case_style(case) == "bad" for case in report.cases)
    if public := sum(bool(training.warning(case)) for case in report.cases):
        return _not_private(public, count)
    gates = [gate for case in report.cases for gate in case.assertions]
    held = sum(gate.passed for gate in gates)
    if style == "bad" and count == 1:
        return f"{held} of {len(gates)} gates held." if gates else _why_not(report.cases[0])
    if style == "bad":
        return f"{bad} of {count} cases did not pass; {held} of {len(gates)} gates held."
    if gates and all(map(refused, (case for case in report.cases if case.assertions))):
        return f"{_counted(len(gates), 'refusal', 'refusals')} as expected; no gate guarantees anything."
    if style in ("ok", "part"):
        return "The gate held." if len(gates) == 1 else f"All {len(gates)} gates held{_in_cases(count)}."
    return f"No gate was set: {'this is an answer' if count == 1 else f'these are {count} answers'}, and no verdict."


def _not_private(public: int, count: int) -> str:
    """Return the verdict where models are not private."""
    models = "The model is" if count == public == 1 else f"{_counted(public, 'model is', 'models are')}"
    return f"{models} not private: the guarantee holds of the algorithm with noise that nobody can draw again."


def _in_cases(count: int) -> str:
    return f", in {count} cases" if count > 1 else ""


def _why_not(case: Case) -> str:
    if case.check is not None:
        return case.check.message or "The case did not pass."
    if uncertified(case):
        return "The guarantee is not certified."
    return f"There is no guarantee: {case.obstacles[0].because}." if case.obstacles else "There is no guarantee."


def _said(report: Report, precision: int) -> tuple[str, ...]:
    """Return the answer where there is one alone, and what it means."""
    if len(report.cases) != 1:
        return ()
    case = report.cases[0]
    meant = "" if training.warning(case) else meaning(_told(case))
    return tuple(filter(None, (*headlines(case, precision), meant)))


def _facts(report: Report) -> list[tuple[str, str]]:
    """Return what is counted, each number with its words."""
    gates = [gate for case in report.cases for gate in case.assertions]
    facts = []
    if gates:
        facts.append((f"{sum(gate.passed for gate in gates)} of {len(gates)}", "gates held"))
    if gates and len(report.cases) > 1:
        good = sum(case_style(case) == "ok" for case in report.cases)
        facts.append((f"{good} of {len(report.cases)}", "cases passed"))
    used = [(share, gate) for gate in gates if (share := share_used(gate)) is not None]
    if used:
        share, gate = max(used, key=lambda pair: pair[0])
        facts.append((_percent(share), f"of its limit: the gate with the least room ({gate_name(gate.text)})"))
    details = [(r.details or {}).keys() for case in report.cases for r in case.results if r.best]
    tried = [names for names in details if names & {"certified", "not_certified"}]
    if tried:
        facts.append((f"{sum('certified' in names for names in tried)} of {len(tried)}", "answers certified"))
    return facts


def _percent(share: float) -> str:
    """Return how much of a limit is used, rounded up."""
    return f"{number(100.0 * share * (1.0 + 2.0**-40), 3, Side.UP)}%" if share < 100.0 else "over 100 times"


def _reservations(report: Report) -> list[str]:
    """Return what a verdict does not speak of."""
    lines = warnings(report)
    if report.shard is not None:
        lines.append(f"this is {shard_text(report)}: the other cases were not judged here, and {MERGE}")
    skipped = [case.check.name for case in report.cases if case.check and case.check.status == Status.SKIPPED]
    bare = without_gate(report)
    refusals = sum(map(refused, report.cases))
    if skipped:
        lines.append(f"{_counted(len(skipped), 'case is skipped', 'cases are skipped')}: {_names(skipped)}")
    if bare and any(case.assertions for case in report.cases):
        lines.append(_counted(bare, "case has no gate", "cases have no gate"))
    if refusals:
        lines.append(
            _counted(refusals, "case was refused as expected and has", "cases were refused as expected and have")
            + " no guarantee"
        )
    if report.not_selected:
        count = _counted(len(report.not_selected), "case was not selected", "cases were not selected")
        lines.append(f"{count}: {_names([name for _, name in report.not_selected])}")
    weaker = sum(change.weaker for change in report.changes or ())
    lines += [_counted(weaker, "change asks for less", "changes ask for less") + " than the baseline"] if weaker else []
    accepted = sorted({name for case in report.cases if case.check for name in case.check.accepted})
    lines += [f"accepted by name: {', '.join(accepted)}"] if accepted else []
    return list(dict.fromkeys(lines))


def _names(names: Sequence[str]) -> str:
    """Return names of cases, the first ones where there are many."""
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(map(clipped, names[:MAX_NAMES])) + more


def _counted(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def _verdicts(report: Report, full: set[int], precision: int) -> list[Verdict]:
    """Return a row for every gate, and for every case without one."""
    several = len({check.file for check, _ in checked(report)}) > 1
    return [
        _qualified(row, case)._replace(linked=place in full)
        for place, case in enumerate(report.cases, 1)
        for row in _case_verdicts(place, case, _name(report, case, place, several), precision)
    ]


def _qualified(row: Verdict, case: Case) -> Verdict:
    """Return a row with what is wrong with its case as a whole, or what its gate does not say."""
    if training.warning(case):
        return row._replace(style="bad", word="NOT PRIVATE")
    return row._replace(style="plain", word="refused") if refused(case) else row


def _case_verdicts(place: int, case: Case, name: str, precision: int) -> list[Verdict]:
    gates = case.assertions
    if case.check is not None:
        found = rows(case.check, case, precision)
    elif gates:
        found = gate_rows(case, precision)
    else:
        found = [Row(Status.PASSED, r.quantity, value_text(r, precision)) for r in case.results if r.best]
        found = found or [Row(Status.ERROR, "", "none")]
    own = list(gates) if len(found) == len(gates) else [None] * (len(found) - len(gates)) + list(gates)
    return [_row_verdict(place, name, row, gate) for row, gate in zip(found, own, strict=True)]


def _row_verdict(place: int, name: str, row: Row, gate: Assertion | None) -> Verdict:
    if row.status == Status.SKIPPED:
        style = "skip"
    elif row.status != Status.PASSED:
        style = "bad"
    else:
        style = "ok" if gate is not None else "plain"
    share = share_used(gate) if gate is not None else None
    return Verdict(place, style, _ROW_WORDS[style], name, row, share, _percent(share) if share is not None else "")


_ROW_WORDS = {"ok": "pass", "bad": "FAIL", "plain": "no gate", "skip": "skipped"}


def _changes(report: Report, asked: Asked) -> list[Change] | None:
    """Return what differs from an earlier report; None where there is none to compare with."""
    if any(case.check and case.check.command == "check" for case in report.cases):
        return None  # a recipe that cannot be read has no cases to compare
    if report.changes is not None:
        return list(report.changes)
    return None if asked.baseline is None else changes(asked.baseline, report, asked.precision)


def _name(report: Report, case: Case, place: int, several: bool = False) -> str:
    """Return what a case is called."""
    if case.check is not None:
        name = f"{case.check.file}: {case.check.name}" if several else case.check.name
    else:
        named = [case.algorithm] if case.algorithm else []
        varied = [name for name in varying(report) if name in case.inputs] if len(report.cases) > 1 else []
        values = [f"{name} = {number(case.inputs[name][0], side=Side.AS_GIVEN)}" for name in varied]
        name = ", ".join((*named, *values)) if values or len(report.cases) == 1 else f"{case.algorithm} {place}"
    return clipped(name)


def clipped(name: str) -> str:
    """Return a name, of one that is too long its beginning."""
    return name if len(name) <= MAX_NAME else name[:MAX_NAME] + "..."


# --- a case -----------------------------------------------------------------------------------------------------------


def _shown(report: Report, case: Case, number_of: int, asked: Asked, *, drawn: bool) -> Shown:
    best, precision = case.best, asked.precision
    style, warned = case_style(case), training.warning(case)
    pictured = drawn and not warned  # the pictures say what holds, with no word on the noise
    told = _told(case)
    known = told._replace(tightness=case.tightness or (case.curves.tightness if case.curves else None))
    return Shown(
        number=number_of,
        name=_name(report, case, number_of),
        place=place(case.check) if case.check else "",
        style=style,
        word=case_word(case),
        open=len(report.cases) <= FEW or style == "bad",
        warning=warned,
        headlines=headlines(case, precision),
        meaning=meaning(told) if len(report.cases) > 1 and not warned else "",
        promise=promise(case),
        released=released(case) if best else "",
        findings=reasons(case, precision),
        about=circumstances(case.check, case, precision) if case.check else "",
        grounds=Grounds(*_assumptions(case), _theorem(case), _sources(case)),
        shared=0,
        bracket=_bracket(known, number_of, precision) if pictured else "",
        tightness="" if warned else tightness_text(known, precision).partition(": ")[2],
        figures=tuple(_figures(case, number_of, precision)) if pictured else (),
        risk=tuple(risk_rows(told, precision)),
        risk_lines=tuple(risk_lines(told, precision)),
        entries=tuple(entry_rows(case, precision)),
        entry_lines=tuple(ledger_lines(case, precision)) if case.ledger else (),
        metrics=tuple(training.metric_rows(case, precision)) if case.training else (),
        inputs=tuple(_inputs(case)),
        proofs=tuple(certified_lines(case)),
        bounds=_bounds(case, precision) if drawn else (),
        notes=(*audit_lines(case, precision), *_notes(report, case)),
        command=_command(case),
    )


def _told(case: Case) -> Case:
    """Return the case with what an attacker can do: at the usual rates, and at those that were asked about."""
    usual = case.curves.risk if case.curves else None
    if not usual or not case.risk:
        return case._replace(risk=case.risk or usual)
    merged = {**case.risk, **usual}
    for name, at in ATTACKS.items():
        if at:
            rows = {row[at]: row for row in (*usual[name], *case.risk[name])}
            merged[name] = [rows[key] for key in sorted(rows)]
    return case._replace(risk=merged)


def headlines(case: Case, precision: int) -> tuple[str, ...]:
    """Return the answers of a case, a line each."""
    if is_cost(case):
        lines = [f"{'; '.join(cost_sentences(r, precision))} ({r.bound})" for r in case.results if r.best]
    else:
        lines = headline(case, precision)
    unmet = "Not of this model, only with noise that nobody can draw again: " if training.warning(case) else ""
    return tuple(f"{unmet}{line}".replace("<=", "\u2264").replace(">=", "\u2265") for line in lines)


def reasons(case: Case, precision: int) -> tuple[str, ...]:
    """Return why a case did not pass."""
    if case.check is not None:
        return tuple(findings(case.check, case, precision)) if case.check.status != Status.PASSED else ()
    failed = [row for row in gate_rows(case, precision) if row.status != Status.PASSED]
    lines = [f"{row.quantity} {row.limit} failed: value {row.value}, slack {row.slack}" for row in failed]
    return (*lines, *(() if case.best else (_why_not(case),)))


def _assumptions(case: Case) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what dpcalc checked of the best answers, and what the author of the run has to keep."""
    tools: list[str] = []
    author: list[str] = []
    for result in case.results:
        if not result.best:
            continue
        author += result.assumes
        try:
            bound = lookup(result.bound)
        except SpecError:
            continue
        tools += [each.text for each in bound.conditions]
        if result.kind != Kind.CONDITIONAL:
            author += [f"{each.text} (the run says so)" for each in bound.promises]
    return tuple(dict.fromkeys(tools)), tuple(dict.fromkeys(author))


def _theorem(case: Case) -> str:
    """Return the theorem behind the best answer, and where its proof is."""
    if case.best is None:
        return ""
    proof = proof_of(case.best.bound)
    where = f"; the proof: dpcalc help method#{proof}" if proof else ""
    return f"{case.best.reference} ({case.best.bound}){where}"


def _bracket(case: Case, number_of: int, precision: int) -> str:
    if case.best is None:
        return ""
    limits = [limit for gate in case.assertions if (limit := gate_limit(gate, case.best.quantity)) is not None]
    shown = charts.bracket_of(case.best, case.tightness, limits, precision)
    return charts.bracket(f"bracket-{number_of}", shown) if shown else ""


def _figures(case: Case, number_of: int, precision: int) -> Iterable[Figure]:
    if case.curves is None or case.best is None:
        return
    profile = charts.profile(f"profile-{number_of}", case.curves, case.best, precision)
    if profile:
        floor = " The dashed line is what no guarantee can beat." if case.curves.floor else ""
        yield Figure(
            "Delta at every epsilon", profile, f"The line is guaranteed: the truth lies on it or below.{floor}"
        )
    attacks = charts.trade_off(f"attacks-{number_of}", case.curves)
    if attacks:
        yield Figure(
            "What any attack can find out",
            attacks,
            "No attack lies above the line, whatever it does. The dashed line is guessing blindly.",
        )


_SOURCES = {
    Source.FLAG: "given on the command line",
    Source.ARGUMENT: "given",
    Source.FILE: "read from a file",
    Source.LOSS: "follows from the loss",
    Source.DATA: "follows from the shape of the data",
    Source.DEFAULT: "default",
    Source.WORST_CASE: "worst case",
    Source.DERIVED: "follow from these",
}


def _inputs(case: Case) -> Iterable[Given]:
    """Yield the inputs, what was given first, each with where it comes from."""
    origins = {note.parameter: note.origin for note in case.note_data if isinstance(note, Referenced)}
    order = list(_SOURCES)
    inputs = sorted(case.inputs.items(), key=lambda each: order.index(each[1][1]) if each[1][1] in order else 0)
    derived = [f"{symbol_of(n)} = {number(v, side=Side.NEAREST)}" for n, (v, s) in inputs if s == Source.DERIVED]
    for name, (value, source) in inputs:
        if source == Source.DERIVED:
            continue
        said = _SOURCES.get(source, str(source))
        if name in origins:
            said = f"read from {origins[name]}"
        elif case.check is not None and source == Source.ARGUMENT:
            said = "written in the recipe"
        side = Side.NEAREST if source == Source.LOSS else Side.AS_GIVEN
        yield Given(symbol_of(name), f"{number(value, side=side)}{noise_in_other_words(case, name)}", said)
    if derived:
        yield Given("others", ", ".join(derived), _SOURCES[Source.DERIVED])


def _bounds(case: Case, precision: int) -> Table:
    """Return every bound that answered, where there are several."""
    if len(case.results) < 2 or is_cost(case):
        return ()
    body = [
        ("best" if r.best else "", r.bound, _value(r, precision), str(r.kind), derivation(r, precision))
        for r in case.results
    ]
    return (("", "bound", "value", "kind", "how"), *body)


def _value(result: Result, precision: int) -> str:
    order = f" (order {number(result.order or 0.0, precision, Side.DOWN)})" if result.quantity == Quantity.RDP else ""
    return value_text(result, precision) + order


def _sources(case: Case) -> tuple[str, ...]:
    """Return what the best answers rest on, as a bibliography has it."""
    found = []
    for result in case.results:
        if result.best:
            try:
                if lookup(result.bound).reference == "dpcalc":
                    continue
                found.append(citation(lookup(result.bound).reference))
            except SpecError:  # of a ledger or a conversion: the theorem stands above
                continue
    return tuple(dict.fromkeys(found))


def citation(key: str) -> str:
    """Return a source in a line.

    >>> citation("mironov2017")
    'Mironov 2017. Renyi Differential Privacy. IEEE Computer Security Foundations Symposium (CSF).'
    """
    from dpcalc.references import entries

    entry = entries().get(key, "")
    fields = dict(re.findall(r"^\s*(\w+)\s*=\s*\{(.*?)\},?\s*$", entry, flags=re.MULTILINE))
    where = fields.get("booktitle") or fields.get("journal") or fields.get("howpublished") or ""
    parts = (SHORT.get(key, key), fields.get("title", ""), where)
    return ". ".join(re.sub(r"[{}]|\\[\"'`^]", "", part) for part in parts if part) + "."


def _notes(report: Report, case: Case) -> Iterable[str]:
    """Yield the warnings and the notes, but for where inputs were read, which stands beside them."""
    yield from (f"warning: {text}" for text in case.warnings)
    told = set(sentences_about(report.command, case, (Referenced,)))
    yield from (note for note in case.notes if note not in told)


def _command(case: Case) -> str:
    """Return what asks a recipe's case again."""
    if case.check is None or not case.check.name:
        return ""
    return _typed(("check", case.check.file, "--run", f"^{re.escape(case.check.name)}$"))


def _typed(words: Sequence[str]) -> str:
    return shlex.join(("dpcalc", *words)) if words else ""
