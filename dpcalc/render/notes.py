"""The notes of an answer in words. This is the only module that turns `dpcalc.notes` into sentences."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dpcalc import notes
from dpcalc.model.algorithm import ALGORITHMS
from dpcalc.model.quantities import BANDED, Adjacency, Given, Quantity
from dpcalc.notes import (
    DP_SGD,
    AccountantPrints,
    Alternative,
    Charged,
    Improvement,
    ModelFile,
    NotCertified,
    Note,
    OtherAdjacencies,
    OtherIndex,
    OtherOrder,
    OtherRelease,
    PrefixNoise,
    PromiseNotMade,
    Referenced,
    ShortLastBatch,
)
from dpcalc.render.layout import counted, listed
from dpcalc.render.numbers import MAXIMISED, SIX, Digits, Side, number
from dpcalc.render.words.positions import ALSO_CALLED, allocation_lines, worst_positions
from dpcalc.report import Case, Report, Result
from dpcalc.theorems.record import lookup

_COMPARE = "compare"
_FOUR = Digits(4)
"""The number of digits of an answer in a note."""


def report(command: str, cases: Sequence[Case]) -> Report:
    """Return the report of a command's cases, with their notes in words."""
    return Report(command, tuple(in_words(command, case) for case in cases))


def in_words(command: str, case: Case) -> Case:
    """Return the case with its notes and the summary of an allocation in words."""
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
    """Yield the sentences; consecutive notes of one kind may share one."""
    about: tuple[Any, ...] = case.note_data
    for kind, group in itertools.groupby(about, type):
        if kind is OtherIndex:
            several = list(group)
            which = "record that is worst off" if worst_positions(case) else "last record, which no noise follows"
            earlier = f"earlier ones are better hidden: {_values_by_index(several)} (use --index)"
            yield f"{several[0].quantity} above is for the {which}; {earlier}"
        elif kind is PromiseNotMade and command == _COMPARE:
            # A value that is not a guarantee is rounded as in the table above it.
            yield from (_promised(note, Side.NEAREST) for note in group)
        else:
            said = _SENTENCES[kind]
            yield from filter(None, (said.format(note=note) if isinstance(said, str) else said(note) for note in group))


def improvement_sentences(command: str, case: Case) -> Iterator[str]:
    """Yield the sentences on improvements of the answer."""
    yield from sentences_about(command, case, _BETTER)


def sentences_about(command: str, case: Case, kinds: tuple[type[Note], ...]) -> Iterator[str]:
    """Yield the sentences on the notes of some kinds."""
    selected = tuple(note for note in case.note_data if isinstance(note, kinds))
    yield from _sentences(command, case._replace(note_data=selected))


def without_places(command: str, case: Case) -> list[str]:
    """Return the notes, except where inputs were read, which the recipe says."""
    read = set(sentences_about(command, case, (Referenced,)))
    return [note for note in case.notes if note not in read]


_TINY = -100.0
"""A delta with a smaller logarithm needs no advice."""


def advice(case: Case) -> tuple[str, str]:
    """Return the most useful change with its gain, or else the answers of other runs, with a label."""
    best = case.best
    if best is None or (best.log_delta is not None and best.quantity == Quantity.DELTA and best.log_delta < _TINY):
        return "", ""
    if (better := best_improvement([case])) is not None:
        return "better", better[1]
    if earlier := [note for note in case.note_data if isinstance(note, OtherIndex)]:
        return "also", f"earlier records have less, {_values_by_index(earlier)} (--index)"
    for note in case.note_data:
        if not isinstance(note, AccountantPrints) or note.covers_run:
            continue
        if best.quantity == note.quantity and note.value < best.value:
            what = f"{note.quantity} is about {_sided(note, Side.NEAREST)}"
            return "better", f"{what} for Poisson batches and add-remove (Opacus assumes both)"
    for note in case.note_data:
        if isinstance(note, PrefixNoise):
            return "noise", _prefix_noise(note).removeprefix("noise ")
    others = (note for note in case.note_data if isinstance(note, OtherAdjacencies))
    return next((("also", _other_adjacencies(note)) for note in others), ("", ""))


def best_improvement(cases: Sequence[Case]) -> tuple[Case, str] | None:
    """Return the case that one change improves most, and that change; None if there is none."""
    bettered = [(note, case) for case in cases for note in case.note_data if isinstance(note, _BETTER)]
    if not bettered:
        return None
    note, case = max(bettered, key=lambda pair: pair[0].gain or 1.0)
    return case, _improved(note)


# --- what the sentences share -----------------------------------------------------------------------------------------


def _answered(quantity: str | None, value: float | None, log_delta: float | None, side: Side) -> str:
    """Return the value of an answer, rounded to a side."""
    if quantity == Quantity.DELTA:
        return _FOUR.delta(value, log_delta, side)
    assert value is not None
    return _FOUR.number(value, side)


def _sided(note: Any, side: Side | None = None) -> str:
    """Return the value of an answer, rounded to a side, by default that of a guarantee."""
    if getattr(note, "any", None):
        return "any"
    safe = Side.DOWN if note.quantity in MAXIMISED else Side.UP
    return _answered(note.quantity, note.value, note.log_delta, side or safe)


def _values_by_index(several: Sequence[Alternative]) -> str:
    return ", ".join(f"{_sided(note, Side.UP)} for record {(note.changes or {})['index']}" for note in several)


_HUNDRED, _MILLION = 100.0, 1e6
"""The range of gains shown with all whole digits."""


def _improved(note: Alternative, side: Side | None = None) -> str:
    """Return what to type, its answer, and the gain if it is notable."""
    gives = f"{note.options} gives {note.quantity} {_sided(note, side)}"
    if note.gain is None or note.gain < 1.1 or note.any:
        return gives
    times = str(int(note.gain)) if _HUNDRED <= note.gain < _MILLION else number(note.gain, 2, Side.DOWN)
    return f"{gives}, {times} times {'more' if note.quantity in MAXIMISED else 'less'}"


def _promised(note: Alternative, side: Side | None = None, about: str = "") -> str:
    """Return another run's answer, the run, and its promise, without the option that the note names."""
    promises = "; ".join(promise.replace(" (--permutation secret)", "") for promise in note.promise or ())
    return f"{_improved(note, side)}{about}{f', if {promises}' if promises else ''} ({note.bound})"


_IF_KNOWN = {
    "smoothness": "if the losses are known to be convex and this smooth, or smoother",
    "strong_convexity": "an example of what it is worth to know the losses to be strongly convex",
    "diameter": "an example of what it is worth to project every iterate onto a bounded set",
}
"""The condition of an improvement, by the parameter that it changes."""

_STEP_SIZE = {None: "the step size 2/smoothness", True: "any step size up to 2/smoothness does"}
"""The condition for a step size: for it alone, or for all below it."""


def _tuned_rate(note: notes.TunedNoise) -> str:
    """Return how the bound of the tuned schedule approaches its limit."""
    kappa = f"kappa = Delta eta/(c D) = {note.kappa:.4g}"
    if note.exponent is None:
        below = f", but may start far below it ({kappa} < 1)" if note.kappa < 1.0 else ""
        return f"from above in the end, as slowly as 1/ln n{below}"
    if note.kappa >= 1.0:
        return f"as 1/n ({kappa} >= 1)"
    return f"from below, as n^-{note.exponent:.4g}, not as 1/n as printed ({kappa} < 1)"


def _other_adjacencies(note: OtherAdjacencies) -> str:
    listed = ", ".join(
        f"{_answered(note.quantity, answer['value'], answer.get('log_delta'), Side.UP)} with "
        f"{ALSO_CALLED.get(answer['adjacency'], answer['adjacency'])}"
        for answer in note.answers
    )
    return f"other adjacencies{_at(note.at)}: {note.quantity} {listed}"


def with_matrix(case: Case, answered: str) -> str:
    """Return an answer with the matrix that correlates the noise, and the noise that is left relative to DP-SGD."""
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
    """Return which iterates have the noise."""
    made_by = " and ".join(f"{name.replace('_', '-')} {value:g}" for name, value in note.workload.items())
    return f"iterates with {made_by}" if made_by else "prefix sums"


def _prefix_noise(note: PrefixNoise) -> str:
    """Return the noise in the iterates, the least known one, and that of independent noise with sampling."""
    text = f"noise in {iterates(note)}: {note.rms:.3g} clips (rms), at most {note.largest:.3g}"
    less = [other for other in note.others[:1] if other["rms"] < 0.995 * note.rms]
    shown = [*less, *(other for other in note.others[len(less) :] if other.get("algorithm") == DP_SGD)]
    return "; ".join([text, *(f"{_matrix(other)} {other['rms']:.3g}" for other in shown)])


def _matrix(other: Given) -> str:
    if other.get("algorithm") == DP_SGD:
        return "Poisson DP-SGD"
    bands = f" with {other['bands']} bands" if other["bands"] > 1 else ""
    return f"{other['mechanism']}{bands}{' and Poisson batches' if other.get('sampling') else ''}"


def _of_classes(note: notes.OfClasses) -> str:
    """Return what was stated about the classes, and what follows."""
    shares, weights = (
        None if given is None else ", ".join(f"{value:.4g}" for value in given)
        for given in (note.class_shares, note.class_weights)
    )
    assumed = None if shares is None else f"the shares of the classes, {shares}, are assumed to be public"
    if weights is None:
        return str(assumed)
    used = f"slopes of the classes were multiplied by {weights}; predictions follow these weights, probabilities do not"
    return used if assumed is None else f"{assumed}; {used}"


def _at(at: Given | None) -> str:
    """Return the run of a note, if a parameter was solved for."""
    sides = {name: Side.DOWN if name in MAXIMISED else Side.UP for name in at or {}}
    return "".join(f" at {name} {_FOUR.number(value, sides[name])}" for name, value in (at or {}).items())


_DRAWN_OTHERWISE = {
    "fixed": "batches here are of one size, so that a record that leaves one makes room for another",
    "with-replacement": "batches here are drawn with replacement, so that a record may come several times",
    "balls-in-bins": "batches here are balls-in-bins",
    "shuffle": "batches here are shuffled, and neither the number of Poisson sampling nor that of balls-in-bins may be "
    "quoted for them",
}
"""Why results for Poisson sampling do not hold for the run."""


def _standing(note: AccountantPrints) -> str:
    """Return whether the number is a guarantee of the run, and why."""
    if note.covers_run:
        return "this run is what it assumes, if batches are really drawn so"
    why = [_DRAWN_OTHERWISE[note.sampling]] if note.sampling in _DRAWN_OTHERWISE else []
    if note.adjacency == Adjacency.REPLACE_ONE:
        why.append("the adjacency here is replace-one")
    why = why or ["batches here are cut to a largest size"]
    return f"that is no guarantee for this run, as {'; and '.join(why)}"


_MOST_KEYS = 20
"""The number of unused keys that are listed."""


def _run_read(note: notes.RunRead) -> str:
    keys = {name: origin.rpartition(": ")[2].rpartition(".")[2] for name, origin in note.taken.items()}
    taken = ", ".join(name if key == name else f"{name} ({key})" for name, key in keys.items())
    return f"read as {note.what}: {taken}{f'; not used: {listed(note.unused, _MOST_KEYS)}' if note.unused else ''}"


def _rounded(note: notes.Rounded) -> str:
    grid = "a grid of 1/16 to 1/8 of its noise" if note.grid is None else f"multiples of {note.grid:g}"
    epsilon = f"{_up(note.epsilon)} of epsilon and " if note.epsilon else ""
    return f"{note.of} is rounded to {grid}; {epsilon}{_up(note.delta)} of delta are included for that"


def _cost_of_tries(note: notes.CostOfTries) -> str:
    fixed = ""
    if note.fixed_number is not None:
        fixed = f", and a fixed number of {note.runs}, by composition, {_up(note.fixed_number)}"
    return (
        f"the best of a random, secret number of such runs (geometric, mean {note.runs}), each scored privately, would "
        f"have cost epsilon {_up(note.value)} instead of {_up(note.epsilon)}{fixed}"
        f"{': --tune chooses within the budget' if note.tunable else ''}"
    )


_COUNTS = "; the last {} accounted steps are noisy counts of right and wrong answers for that"
_WITH_BIASES = (
    "; the last {} accounted steps are noisy sums for that: {} are counts of right and wrong answers, and {} sum "
    "labels and probabilities for a bias of each class"
)
"""The numbers of sums for log-odds."""


def _calibrated(note: notes.Calibrated) -> str:
    counted = _COUNTS.format(note.sums) if note.sums else ""
    if note.class_sums:
        counted = _WITH_BIASES.format(note.sums + note.class_sums, note.sums, note.class_sums)
    divided = f"clipping pushes scores apart: they were divided by {_about(note.temperature)} to be log-odds"
    return f"{divided}{counted} (see `dpcalc help method`)"


def _up(value: float) -> str:
    return number(value, 3, Side.UP)


def _about(value: float) -> str:
    return number(value, 3, Side.NEAREST)


def words_of(note: Charged) -> str:
    """Describe a charge: what is spent, what is left, and what was charged but not released."""
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
    """Yield the file of a trained model, and what to do next, each with a label; nothing without a model."""
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
"""The notes on improvements."""

_SENTENCES: dict[type[Note], str | Callable[[Any], str]] = {
    OtherOrder: lambda note: _promised(
        note, about=f": {ALGORITHMS[note.changes['algorithm']].gloss.partition(';')[0]}"
    ),
    OtherRelease: lambda note: f"{_improved(note)}: only the last iterate is released then ({note.bound})",
    PromiseNotMade: _promised,
    Improvement: lambda note: (
        f"{_improved(note)}: {_IF_KNOWN.get(next(iter(note.changes))) or _STEP_SIZE[note.or_less]} ({note.bound})"
    ),
    ShortLastBatch: lambda note: (
        f"{_improved(note)}: the short last batch of {note.size} records weighs each of them more"
    ),
    notes.NewestRecord: lambda note: (
        "this is for the newest record, which only the noise of its own step hides: there is no amplification, "
        "and as the noise decays its delta tends to 1; older records are better off (use --window or --index)"
        if note.covered == note.newest
        else f"every record up to {note.covered} is covered; newer ones are worse off, and the newest has no "
        f"amplification{'' if note.quantity is None else f': {note.quantity} {_sided(note, Side.UP)}'}"
    ),
    notes.HidingPays: "hiding the iterates does not help yet: {note.bound} beats composition from about "
    "{note.value:.2g} {note.parameter} on",
    notes.BetterThanPublished: lambda note: lookup(note.bound).better_because,
    notes.TunedNoise: lambda note: (
        f"{note.parameter} at this n is {note.value:.12g}; its product bound nears the limit delta* {_tuned_rate(note)}"
    ),
    notes.Vacuous: lambda note: (
        "every bound here is vacuous: it exceeds the largest excess risk that any point of the domain can have; "
        "more records, a larger budget, or fewer dimensions are needed for a number that says something"
        if note.all
        else f"{', '.join(note.bounds)}: vacuous, above the largest excess risk that any point of the domain can have"
    ),
    notes.OwnChoice: lambda note: (
        f"{note.bound} chooses {', '.join(note.parameters)} itself, so it is not about the run described"
    ),
    NotCertified: lambda note: (
        f"{note.bound} is not certified: {note.because}"
        + ("" if note.instead is None else f"; the best that is: {note.instead}, {note.quantity} {_sided(note)}")
    ),
    OtherAdjacencies: _other_adjacencies,
    PrefixNoise: _prefix_noise,
    AccountantPrints: lambda note: (
        "an accountant that assumes Poisson sampling and add-remove, the usual one of Opacus, TF Privacy and "
        f"JAX-Privacy, prints {note.quantity} of about {_sided(note, Side.NEAREST)}{_at(note.at)}: {_standing(note)}"
    ),
    notes.LeftOut: "{note.algorithm} has no {note.parameter}: it was left out",
    notes.LossDomain: lambda note: (
        f"every iterate is projected onto the ball |w| <= {note.radius:g}"
        if note.projected
        else f"the constants of the loss hold where |w| <= {note.radius:g}: project every iterate there"
    ),
    notes.LinearClip: lambda note: (
        (
            "each record's softmax is capped, which is not to shorten its gradient: see `dpcalc help method`"
            if note.capped
            else "each record's gradient is clipped separately, with the intercept as one more feature"
        )
        + ("; the regulariser's gradient is added after clipping" if note.regularised else "")
    ),
    notes.Referenced: "{note.parameter} is that of {note.origin}",
    notes.OnePass: "no --epochs is given: this is for one pass of {note.algorithm}",
    notes.RunRead: _run_read,
    notes.RunRemark: "{note.says}",
    notes.OtherReading: "{note.reading} would give epsilon {note.value:.6g}; {note.truth}",
    notes.NotTrained: "a gate failed: nothing was trained",
    notes.DefaultRule: lambda note: (
        f"the default rule chose {note.picked}, for a signal to noise of kappa = {_about(note.signal_to_noise)} "
        "(see `dpcalc help train`)"
    ),
    notes.SumsOfProducts: "least squares are solved by noisy sums of the products of columns and target: these are "
    "the gradient of the one step (see `dpcalc help method`)",
    notes.Forgets: "{note.model} was trained on for {note.steps} steps on these records alone; epsilon and delta "
    "bound how well the outcome can be told from that of a model which never saw the records left out and takes the "
    "same steps (Sekhari et al. 2021); whoever holds the old model knows what its own training revealed",
    notes.Centred: lambda note: (
        f"rows are centred: the first {note.mean_sums + note.distance_sums} of the {note.accounted_steps} accounted "
        f"steps are noisy sums, {note.mean_sums} of rows and {note.distance_sums} of distances from their noisy mean "
        "(see `dpcalc help method`)"
    ),
    notes.Calibrated: _calibrated,
    notes.OfClasses: _of_classes,
    notes.LabelReading: "labels: {note.reading}",
    notes.ColumnReading: "columns: {note.reading}",
    notes.UnreadableCells: "a cell that is not a finite number counts as 0; so do all cells of a line of another "
    "length",
    notes.NotPrivate: "NOT PRIVATE: {note.because}",
    notes.Rounded: _rounded,
    notes.DearRounding: lambda note: (
        f"{_rounded(note)}; longer steps, a smaller --radius or fewer passes would cost less"
    ),
    notes.Tuned: lambda note: (
        f"the best of a random number of runs ({note.law}, mean {number(note.mean, 6)}) is released, each with one of "
        f"{note.candidates} candidates drawn at random"
        + ("" if note.score_epsilon is None else f"; a score has noise for epsilon = {_up(note.score_epsilon)}")
        + "; the number of runs and the other scores stay secret, and so must the time that they took"
    ),
    notes.NothingDrawn: "the number of runs that was drawn is 0: nothing is released",
    notes.CostOfTries: _cost_of_tries,
    notes.NotCovered: "the metrics of this run and the remarks on its records are {note.because}",
    notes.NotMeasured: "how good the model is was not measured, as that would tell of the records: "
    "--evaluate-share 5% does within the budget, --test-fraction 0.2 and --show-unprotected-metrics outside it",
    ModelFile: lambda note: (
        f"the model is written to {note.path}{f', its privacy card to {note.card}' if note.card else ''}"
        if note.path
        else "the model is not kept: give -o MODEL.json or MODEL.npz"
    ),
    Charged: lambda note: f"charged before training to {words_of(note)}",
    notes.SeveralModels: "several models were trained on the same records: the guarantee covers one of them, not all",
}
"""The sentence of each note: a template of its fields, or a function; empty for none."""
