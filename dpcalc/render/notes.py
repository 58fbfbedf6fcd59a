"""The notes of an answer in words. This is the only module that turns `dpcalc.notes` into sentences."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dpcalc.model.algorithm import ALGORITHMS
from dpcalc.model.quantities import BANDED, Adjacency, Given, Quantity
from dpcalc.notes import (
    DP_SGD,
    AccountantPrints,
    Alternative,
    BetterThanPublished,
    Calibrated,
    Centred,
    Charged,
    CostOfTries,
    DearRounding,
    DefaultRule,
    Forgets,
    HidingPays,
    Improvement,
    LabelReading,
    LeftOut,
    LinearClip,
    LossDomain,
    ModelFile,
    NewestRecord,
    NotCertified,
    NotCovered,
    Note,
    NothingDrawn,
    NotMeasured,
    NotPrivate,
    NotTrained,
    OnePass,
    OtherAdjacencies,
    OtherIndex,
    OtherOrder,
    OtherReading,
    OtherRelease,
    OwnChoice,
    PrefixNoise,
    PromiseNotMade,
    Referenced,
    Rounded,
    RunRead,
    RunRemark,
    SeveralModels,
    ShortLastBatch,
    SumsOfProducts,
    Tuned,
    TunedNoise,
    UnreadableCells,
    Vacuous,
)
from dpcalc.render.numbers import MAXIMISED, SIX, Digits, Side, number
from dpcalc.render.words.positions import ALSO_CALLED, allocation_lines, worst_positions
from dpcalc.report import Case, Report, Result
from dpcalc.theorems.record import lookup

_COMPARE = "compare"
_FOUR = Digits(4)
"""How many digits a note shows of an answer."""


def report(command: str, cases: Sequence[Case]) -> Report:
    """Return the report of a command's cases, with what is said of them in words."""
    return Report(command, tuple(in_words(command, case) for case in cases))


def in_words(command: str, case: Case) -> Case:
    """Return the case with its notes, and the summary of an allocation, in words."""
    if not (case.note_data or any(result.details for result in case.results)):
        return case
    sentences = tuple(_sentences(command, case)) if case.note_data else ()
    return case._replace(results=tuple(map(_with_summary, case.results)), notes=(*case.notes, *sentences))


def _with_summary(result: Result) -> Result:
    allocation = result.details.get("allocation") if result.details else None
    if allocation is None:
        return result
    summary = {**allocation, "summary": allocation_lines(allocation)}
    return result._replace(details={**(result.details or {}), "allocation": summary})


def _sentences(command: str, case: Case) -> Iterator[str]:
    """Yield the sentences; notes of one kind that follow each other may share one."""
    for kind, group in itertools.groupby(case.note_data, type):
        notes: list[Any] = list(group)
        if kind is OtherIndex:
            yield _other_indices(case, notes)
        elif kind is PromiseNotMade and command == _COMPARE:
            yield from map(_promised_in_comparison, notes)
        else:
            yield from filter(None, map(_sentence, notes))


def _sentence(note: Note) -> str:
    template = _TEMPLATES.get(type(note))
    return _SENTENCES[type(note)](note) if template is None else template.format(note=note)


def improvement_sentences(command: str, case: Case) -> Iterator[str]:
    """Yield the sentences on what would better the answer."""
    yield from sentences_about(command, case, _BETTER)


def sentences_about(command: str, case: Case, kinds: tuple[type[Note], ...]) -> Iterator[str]:
    """Yield the sentences on the notes of some kinds."""
    selected = tuple(note for note in case.note_data if isinstance(note, kinds))
    yield from _sentences(command, case._replace(note_data=selected))


_TINY = -100.0
"""A delta with a lower logarithm needs no advice."""


def advice(case: Case) -> tuple[str, str]:
    """Return the one change that helps most with what it gives, or else what other runs give; with its label."""
    best = case.best
    if best is None or (best.log_delta is not None and best.quantity == Quantity.DELTA and best.log_delta < _TINY):
        return "", ""
    if (better := best_improvement([case])) is not None:
        return "better", better[1]
    notes: list[Any] = [note for note in case.note_data if isinstance(note, OtherIndex)]
    if notes:
        return "also", f"earlier records have less, {_values_by_index(notes)} (--index)"
    for note in case.note_data:
        if isinstance(note, AccountantPrints) and _would_help(note, case):
            value = _answered(note.quantity, note.value, note.log_delta, Side.NEAREST)
            return (
                "better",
                f"{note.quantity} is about {value} for Poisson batches and add-remove (Opacus assumes both)",
            )
    for note in case.note_data:
        if isinstance(note, PrefixNoise):
            return "noise", _prefix_noise(note).removeprefix("noise ")
    others = (note for note in case.note_data if isinstance(note, OtherAdjacencies))
    return next((("also", _other_adjacencies(note)) for note in others), ("", ""))


def _would_help(note: AccountantPrints, case: Case) -> bool:
    best = case.best
    return not note.covers_run and best is not None and best.quantity == note.quantity and note.value < best.value


def best_improvement(cases: Sequence[Case]) -> tuple[Case, str] | None:
    """Return the case that one change betters most, and that change; None where none is bettered."""
    bettered = [(note, case) for case in cases for note in case.note_data if isinstance(note, _BETTER)]
    if not bettered:
        return None
    note, case = max(bettered, key=lambda pair: _gain(pair[0]))
    return case, _improved(note)


def _gain(note: Alternative) -> float:
    return note.gain or 1.0


# --- what would change the answer ------------------------------------------------------------------------------------


def _answered(quantity: str | None, value: float | None, log_delta: float | None, side: Side) -> str:
    """Return the value of an answer, rounded to a side."""
    if quantity == Quantity.DELTA:
        return _FOUR.delta(value, log_delta, side)
    assert value is not None
    return _FOUR.number(value, side)


def _other_indices(case: Case, notes: Sequence[Alternative]) -> str:
    which = "record that is worst off" if worst_positions(case) else "last record, which no noise follows"
    return (
        f"{notes[0].quantity} above is for the {which}; earlier ones are better hidden: {_values_by_index(notes)} "
        "(use --index)"
    )


def _values_by_index(notes: Sequence[Alternative]) -> str:
    return ", ".join(f"{_sided(note, Side.UP)} for record {_changes(note)['index']}" for note in notes)


def _changes(note: Alternative) -> Mapping[str, Any]:
    return note.changes or {}


def _improved(note: Alternative, side: Side | None = None) -> str:
    """Return what is to be typed, and what it gives."""
    value = _sided(note, side or _safe_side(note))
    return f"{note.options} gives {note.quantity} {value}{_gain_text(note)}"


_HUNDRED, _MILLION = 100.0, 1e6


def _gain_text(note: Alternative) -> str:
    """Return by how much the value is better, rounded down; nothing where that is not worth saying."""
    if note.gain is None or note.gain < 1.1 or note.any:
        return ""
    more = "more" if note.quantity in MAXIMISED else "less"
    times = str(int(note.gain)) if _HUNDRED <= note.gain < _MILLION else number(note.gain, 2, Side.DOWN)
    return f", {times} times {more}"


def _promised(note: PromiseNotMade) -> str:
    return f"{_improved(note)}, if {_promises(note)} ({note.bound})"


def _promised_in_comparison(note: PromiseNotMade) -> str:
    # A value that is no guarantee is rounded as in the table above it.
    return f"{_improved(note, Side.NEAREST)}, if {_promises(note)} ({note.bound})"


def _promises(note: PromiseNotMade | OtherOrder) -> str:
    """Return what is to be promised, without the option that the note names."""
    return "; ".join(promise.replace(" (--permutation secret)", "") for promise in note.promise or ())


def _other_order(note: OtherOrder) -> str:
    gloss = ALGORITHMS[_changes(note)["algorithm"]].gloss.partition(";")[0]
    demanded = f", if {_promises(note)}" if note.promise else ""
    return f"{_improved(note)}: {gloss}{demanded} ({note.bound})"


def _other_release(note: OtherRelease) -> str:
    return f"{_improved(note)}: only the last iterate is released then ({note.bound})"


def _sided(note: Alternative | NotCertified, side: Side) -> str:
    """Return the value of an answer, rounded to a side."""
    return "any" if note.any else _answered(note.quantity, note.value, note.log_delta, side)


def _safe_side(note: Alternative | NotCertified) -> Side:
    """Return the side to which a guarantee is rounded."""
    return Side.DOWN if note.quantity in MAXIMISED else Side.UP


_IF_KNOWN = {
    "smoothness": "if the losses are known to be convex and this smooth, or smoother",
    "strong_convexity": "an example of what it is worth to know the losses to be strongly convex",
    "diameter": "an example of what it is worth to project every iterate onto a bounded set",
}
"""What an improvement demands, by the parameter that it changes."""


def _improvement(note: Improvement) -> str:
    changed = next(iter(_changes(note)))
    if changed == "step_size":
        demand = f"{'any step size up to' if note.or_less else 'the step size'} 2/smoothness"
        demand += " does" if note.or_less else ""
    else:
        demand = _IF_KNOWN[changed]
    return f"{_improved(note)}: {demand} ({note.bound})"


def _short_last_batch(note: ShortLastBatch) -> str:
    return f"{_improved(note)}: the short last batch of {note.size} records weighs each of them more"


def _newest_record(note: NewestRecord) -> str:
    if note.covered == note.newest:
        return (
            "this is for the newest record, which only the noise of its own step hides: there is no amplification, "
            "and as the noise decays its delta tends to 1; older records are better off (use --window or --index)"
        )
    value = (
        f": {note.quantity} {_answered(note.quantity, note.value, note.log_delta, Side.UP)}"
        if note.quantity is not None
        else ""
    )
    return (
        f"every record up to {note.covered} is covered; newer ones are worse off, and the newest has no "
        f"amplification{value}"
    )


# --- about the answer ------------------------------------------------------------------------------------------------


def _better_than_published(note: BetterThanPublished) -> str:
    return lookup(note.bound).better_because


def _tuned_noise(note: TunedNoise) -> str:
    return f"{note.parameter} at this n is {note.value:.12g}; its product bound nears the limit delta* {_rate(note)}"


def _rate(note: TunedNoise) -> str:
    kappa = f"kappa = Delta eta/(c D) = {note.kappa:.4g}"
    if note.exponent is None:
        below = f", but may start far below it ({kappa} < 1)" if note.kappa < 1.0 else ""
        return f"from above in the end, as slowly as 1/ln n{below}"
    if note.kappa >= 1.0:
        return f"as 1/n ({kappa} >= 1)"
    return f"from below, as n^-{note.exponent:.4g}, not as 1/n as printed ({kappa} < 1)"


def _vacuous(note: Vacuous) -> str:
    if not note.all:
        return f"{', '.join(note.bounds)}: vacuous, above the largest excess risk that any point of the domain can have"
    return (
        "every bound here is vacuous: it exceeds the largest excess risk that any point of the domain can have; "
        "more records, a larger budget, or fewer dimensions are needed for a number that says something"
    )


def _own_choice(note: OwnChoice) -> str:
    return f"{note.bound} chooses {', '.join(note.parameters)} itself, so it is not about the run described"


def _not_certified(note: NotCertified) -> str:
    if note.instead is None:
        return f"{note.bound} is not certified: {note.because}"
    value = _sided(note, _safe_side(note))
    return f"{note.bound} is not certified: {note.because}; the best that is: {note.instead}, {note.quantity} {value}"


# --- about a run of DP-SGD --------------------------------------------------------------------------------------------


def _other_adjacencies(note: OtherAdjacencies) -> str:
    listed = ", ".join(
        f"{_answered(note.quantity, answer['value'], answer.get('log_delta'), Side.UP)} with "
        f"{ALSO_CALLED.get(answer['adjacency'], answer['adjacency'])}"
        for answer in note.answers
    )
    return f"other adjacencies{_at(note.at)}: {note.quantity} {listed}"


def with_matrix(case: Case, answered: str) -> str:
    """Return an answer with the matrix that correlates the noise, and how much of it is left beside DP-SGD's."""
    mechanism = case.value("mechanism")
    if mechanism is None:
        return answered
    named = "the matrix given" if case.value("schedule") else mechanism
    bands = f" of {case.value('bands')} bands" if mechanism in BANDED and case.value("bands") else ""
    sampled = (
        f": {number(note.rms / note.of_dp_sgd, 2)} times the noise of DP-SGD in {iterates(note)}"
        for note in case.note_data if isinstance(note, PrefixNoise) and note.of_dp_sgd
    )  # fmt: skip
    return f"{answered} with {named}{bands}{next(sampled, '')}"


def iterates(note: PrefixNoise) -> str:
    """Return of what the noise is."""
    told = " and ".join(f"{name.replace('_', '-')} {value:g}" for name, value in note.workload.items())
    return f"iterates with {told}" if told else "prefix sums"


def _prefix_noise(note: PrefixNoise) -> str:
    """Return the noise in the iterates, the least one that is known, and what independent noise has with sampling."""
    text = f"noise in {iterates(note)}: {note.rms:.3g} clips (rms), at most {note.largest:.3g}"
    less = [other for other in note.others[:1] if other["rms"] < 0.995 * note.rms]
    shown = [*less, *(other for other in note.others[len(less) :] if other.get("algorithm") == DP_SGD)]
    return "; ".join([text, *(f"{_matrix(other)} {other['rms']:.3g}" for other in shown)])


def _matrix(other: Given) -> str:
    if other.get("algorithm") == DP_SGD:
        return "Poisson DP-SGD"
    bands = f" with {other['bands']} bands" if other["bands"] > 1 else ""
    return f"{other['mechanism']}{bands}{' and Poisson batches' if other.get('sampling') else ''}"


def _at(at: Given | None) -> str:
    """Return of which run a note is, where a parameter of it was solved for."""
    sides = {name: Side.DOWN if name in MAXIMISED else Side.UP for name in at or {}}
    return "".join(f" at {name} {_FOUR.number(value, sides[name])}" for name, value in (at or {}).items())


def _accountant_prints(note: AccountantPrints) -> str:
    value = _answered(note.quantity, note.value, note.log_delta, Side.NEAREST)
    return (
        "an accountant that assumes Poisson sampling and add-remove, the usual one of Opacus, TF Privacy and "
        f"JAX-Privacy, prints {note.quantity} of about {value}{_at(note.at)}: {_standing(note)}"
    )


_DRAWN_OTHERWISE = {
    "fixed": "batches here are of one size, so that a record that leaves one makes room for another",
    "with-replacement": "batches here are drawn with replacement, so that a record may come several times",
    "balls-in-bins": "batches here are balls-in-bins",
    "shuffle": "batches here are shuffled, and neither the number of Poisson sampling nor that of balls-in-bins may be "
    "quoted for them",
}
"""Why what is true of Poisson sampling is not true of the run."""


def _standing(note: AccountantPrints) -> str:
    """Return whether that is a guarantee of the run, and why."""
    if note.covers_run:
        return "this run is what it assumes, if batches are really drawn so"
    why = [_DRAWN_OTHERWISE[note.sampling]] if note.sampling in _DRAWN_OTHERWISE else []
    if note.adjacency == Adjacency.REPLACE_ONE:
        why.append("the adjacency here is replace-one")
    why = why or ["batches here are cut to a largest size"]
    return f"that is no guarantee for this run, as {'; and '.join(why)}"


# --- about the description -------------------------------------------------------------------------------------------


def _loss_domain(note: LossDomain) -> str:
    if note.projected:
        return f"every iterate is projected onto the ball |w| <= {note.radius:g}"
    return f"the constants of the loss hold where |w| <= {note.radius:g}: project every iterate there"


def _linear_clip(note: LinearClip) -> str:
    after = "; the regulariser's gradient is added after clipping" if note.regularised else ""
    if note.capped:
        return f"each record's softmax is capped, which is not to shorten its gradient: see `dpcalc help method`{after}"
    return f"each record's gradient is clipped separately, with the intercept as one more feature{after}"


# --- about a training run --------------------------------------------------------------------------------------------

_MOST_KEYS = 20
"""How many unused keys are listed."""


def _run_read(note: RunRead) -> str:
    from dpcalc.render.layout import listed

    keys = {name: origin.rpartition(": ")[2].rpartition(".")[2] for name, origin in note.taken.items()}
    taken = ", ".join(name if key == name else f"{name} ({key})" for name, key in keys.items())
    unused = f"; not used: {listed(note.unused, _MOST_KEYS)}" if note.unused else ""
    return f"read as {note.what}: {taken}{unused}"


def _centred(note: Centred) -> str:
    sums = note.mean_sums + note.distance_sums
    return (
        f"rows are centred: the first {sums} of the {note.accounted_steps} accounted steps are noisy sums, "
        f"{note.mean_sums} of rows and {note.distance_sums} of distances from their noisy mean "
        "(see `dpcalc help method`)"
    )


def _calibrated(note: Calibrated) -> str:
    counted = f"; the last {note.sums} accounted steps are noisy counts of right and wrong answers for that"
    divisor = number(note.temperature, 3, Side.NEAREST)
    return (
        f"clipping pushes scores apart: they were divided by {divisor} to be log-odds{counted if note.sums else ''} "
        "(see `dpcalc help method`)"
    )


def _default_rule(note: DefaultRule) -> str:
    kappa = number(note.signal_to_noise, 3, Side.NEAREST)
    return f"the default rule chose {note.picked}, for a signal to noise of kappa = {kappa} (see `dpcalc help train`)"


def _rounded(note: Rounded) -> str:
    grid = "a grid of 1/16 to 1/8 of its noise" if note.grid is None else f"multiples of {note.grid:g}"
    epsilon = f"{number(note.epsilon, 3, Side.UP)} of epsilon and " if note.epsilon else ""
    return f"{note.of} is rounded to {grid}; {epsilon}{number(note.delta, 3, Side.UP)} of delta are included for that"


def _dear_rounding(note: DearRounding) -> str:
    return f"{_rounded(note)}; longer steps, a smaller --radius or fewer passes would cost less"


def _tuned(note: Tuned) -> str:
    noise = (
        ""
        if note.score_epsilon is None
        else f"; a score has noise for epsilon = {number(note.score_epsilon, 3, Side.UP)}"
    )
    return (
        f"the best of a random number of runs ({note.law}, mean {number(note.mean, 6)}) is released, each with one of "
        f"{note.candidates} candidates drawn at random{noise}; the number of runs and the other scores stay secret, "
        "and so must the time that they took"
    )


def _cost_of_tries(note: CostOfTries) -> str:
    one, best = (number(value, 3, Side.UP) for value in (note.epsilon, note.value))
    fixed = ""
    if note.fixed_number is not None:
        fixed = f", and a fixed number of {note.runs}, by composition, {number(note.fixed_number, 3, Side.UP)}"
    within = ": --tune chooses within the budget" if note.tunable else ""
    return (
        f"the best of a random, secret number of such runs (geometric, mean {note.runs}), each scored privately, would "
        f"have cost epsilon {best} instead of {one}{fixed}{within}"
    )


def _model_file(note: ModelFile) -> str:
    card = f", its privacy card to {note.card}" if note.card else ""
    where = f"written to {note.path}{card}" if note.path else "not kept: give -o MODEL.json or MODEL.npz"
    return f"the model is {where}"


def words_of(note: Charged) -> str:
    """Return what a charge came to: what is spent, what is left, and what was charged and not released."""
    from dpcalc.render.layout import counted
    from dpcalc.render.words.brief import remaining_briefly

    of = "" if note.group_size == 1 else f" for any {note.group_size} records together"
    at = "" if not note.delta else f" at delta = {number(note.delta, side=Side.AS_GIVEN)}"
    entries = counted(note.entries, "entry", "entries")
    spent = entries if note.spent is None else f"epsilon <= {number(note.spent, 4, Side.UP)}"
    if note.epsilon is not None:
        spent += f" of {number(note.epsilon, side=Side.AS_GIVEN)}"
    left = "; it has no budget and refuses nothing" if note.epsilon is None else ""
    if note.remaining is not None:
        left = f"; {remaining_briefly(note.remaining, SIX.at_most(4))}"
    begun = f"; charged and not known to be released: {', '.join(note.begun)}" if note.begun else ""
    return f"{note.file}: {spent}{at}{of}{'' if note.spent is None else ' is spent'}{left}{begun}"


def model_facts(case: Case) -> Iterator[tuple[str, str]]:
    """Yield where a trained model is, and what to do next, each with its label; nothing where there is no model."""
    for note in case.note_data:
        if isinstance(note, Charged):
            yield "ledger", words_of(note)
        if isinstance(note, ModelFile) and note.path:
            card = f", with its privacy card (dpcalc verify {note.card})" if note.card else ""
            yield "model", note.path + card
            yield "next", f"dpcalc model {note.path}; dpcalc predict {note.path} --data FILE"
        elif isinstance(note, ModelFile):
            yield "next", "add -o model.json: this model was not kept"


_BETTER = (Improvement, ShortLastBatch, PromiseNotMade, OtherOrder, OtherRelease)
"""The notes on what would better the answer."""

_TEMPLATES: dict[type[Note], str] = {
    HidingPays: "hiding the iterates does not help yet: {note.bound} beats composition from about "
    "{note.value:.2g} {note.parameter} on",
    LeftOut: "{note.algorithm} has no {note.parameter}: it was left out",
    Referenced: "{note.parameter} is that of {note.origin}",
    RunRemark: "{note.says}",
    OtherReading: "{note.reading} would give epsilon {note.value:.6g}; {note.truth}",
    OnePass: "no --epochs is given: this is for one pass of {note.algorithm}",
    NotTrained: "a gate failed: nothing was trained",
    SumsOfProducts: "least squares are solved by noisy sums of the products of columns and target: these are the "
    "gradient of the one step (see `dpcalc help method`)",
    Forgets: "{note.model} was trained on for {note.steps} steps on these records alone; epsilon and delta bound how "
    "well the outcome can be told from that of a model which never saw the records left out and takes the same steps "
    "(Sekhari et al. 2021); whoever holds the old model knows what its own training revealed",
    LabelReading: "labels: {note.reading}",
    UnreadableCells: "a cell that is not a finite number counts as 0; so do all cells of a line of another length",
    NotPrivate: "NOT PRIVATE: {note.because}",
    NotCovered: "the metrics of this run and the remarks on its records are {note.because}",
    NothingDrawn: "the number of runs that was drawn is 0: nothing is released",
    NotMeasured: "how good the model is was not measured, as that would tell of the records: "
    "--evaluate-share 5% does within the budget, --test-fraction 0.2 and --show-unprotected-metrics outside it",
    SeveralModels: "several models were trained on the same records: the guarantee covers one of them, not all",
}
"""What a note says, with its fields as they are."""

_SENTENCES: dict[type[Note], Callable[[Any], str]] = {
    RunRead: _run_read,
    OtherOrder: _other_order,
    OtherRelease: _other_release,
    PromiseNotMade: _promised,
    Improvement: _improvement,
    ShortLastBatch: _short_last_batch,
    NewestRecord: _newest_record,
    BetterThanPublished: _better_than_published,
    TunedNoise: _tuned_noise,
    Vacuous: _vacuous,
    OwnChoice: _own_choice,
    NotCertified: _not_certified,
    OtherAdjacencies: _other_adjacencies,
    PrefixNoise: _prefix_noise,
    AccountantPrints: _accountant_prints,
    LossDomain: _loss_domain,
    LinearClip: _linear_clip,
    DefaultRule: _default_rule,
    Calibrated: _calibrated,
    Centred: _centred,
    Tuned: _tuned,
    CostOfTries: _cost_of_tries,
    Rounded: _rounded,
    DearRounding: _dear_rounding,
    ModelFile: _model_file,
    Charged: lambda note: f"charged before training to {words_of(note)}",
}
"""What any other note says; nothing where that is empty."""
