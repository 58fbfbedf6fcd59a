"""The account of a described run: the engine's answer to it, and the sentences beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpcalc.account.described import Described
from dpcalc.account.forms import Phase
from dpcalc.account.loader import empty_batches_delta
from dpcalc.engine.ask import ask
from dpcalc.engine.attack.guess import guess_of_answer
from dpcalc.engine.gate import judged
from dpcalc.engine.ledgers.total import answer_ledger
from dpcalc.errors import DpcalcError, NotApplicable
from dpcalc.model.algorithm import Source
from dpcalc.model.phases import MOST, Phases
from dpcalc.model.quantities import Adjacency, Sampling
from dpcalc.model.question import Entry, Ledger, Question
from dpcalc.notes import Note, OtherReading, RunRead, RunRemark
from dpcalc.numerics.floats import exp_down, log_add_exp, log_less, up
from dpcalc.report import Case, Result

if TYPE_CHECKING:
    from dpcalc.engine.gate import Gate

COMMAND = "dp-sgd"
_TRIES = 8
_SKIPS = "steps that a worker skips for want of records are accounted for by their probability, which is part of delta"


def account(run: Described, gates: Sequence[Gate] = (), *, curves: bool = False) -> Case:
    """Return the case of a run: epsilon at its delta, with what was read and what other readings would say.

    Raises:
        NotApplicable: no theorem speaks of the run, or empty batches are too likely.
        SpecError: what is described contradicts itself.
    """
    case = _guaranteed(run, curves=curves)
    notes = (*_reading(run), *_other_readings(run, case))
    case = case._replace(note_data=(*notes, *case.note_data))
    return case._replace(assertions=(*case.assertions, *judged(gates, case)))


def _guaranteed(run: Described, *, curves: bool = False) -> Case:
    delta, log_delta = run.delta
    if run.skipped is None:
        return _asked(run, Question(None, delta, log_delta, source=_SOURCE, curves=curves))
    case, _ = _with_skips(run, log_delta)
    best = tuple(_at_delta(row, run.delta) for row in case.results if row.best)
    inputs = {**case.inputs, "delta": (delta, _SOURCE)}
    case = case._replace(results=best, inputs=inputs, query=None, curves=None, risk=None)
    return case._replace(guess=None if case.best is None else guess_of_answer(case.best))


_SOURCE = Source.ARGUMENT


def kept_delta(run: Described) -> float:
    """Return the delta at which the engine's epsilon is the account's: less than asked where steps are skipped."""
    return run.delta[0] if run.skipped is None else exp_down(_with_skips(run, run.delta[1])[1])


def _with_skips(run: Described, log_delta: float) -> tuple[Case, float]:
    """Return the case at a smaller delta, which with (1 + e^epsilon) times the probability of skips is the delta asked.

    Raises:
        NotApplicable: there is no such delta.
    """
    assert run.skipped is not None
    log_skips = run.skipped.log_probability(run.phases)
    log_part = log_skips + 2.0
    for _ in range(_TRIES):
        if not log_part < log_delta - 1e-3:
            break
        log_less_delta = log_less(log_delta, log_part) - 1e-12 * (1.0 + abs(log_delta))
        case = _asked(run, Question(None, exp_down(log_less_delta), log_less_delta, source=_SOURCE))
        assert case.best is not None
        log_added = empty_batches_delta(log_skips, case.best.epsilon or 0.0)
        if log_add_exp(log_added, log_less_delta) < log_delta:
            return case, log_less_delta
        log_part = up(log_added, 4.0) + 1e-3
    raise NotApplicable(
        f"a worker skips a step with probability up to {math.exp(log_skips):.3g}, too often for this delta",
        "have fewer workers, larger batches, or a larger delta",
    )


def _at_delta(row: Result, delta: tuple[float, float]) -> Result:
    """Return a result at the delta that was asked about; mu is of the run without skips."""
    return row._replace(delta=delta[0], log_delta=delta[1], mu=None, assumes=(*row.assumes, _SKIPS), details=None)


def _asked(run: Described, question: Question) -> Case:
    """Return the engine's answer: to a run of its own, or to a ledger where phases have no schedule that is bounded.

    What other runs would cost is not asked: this one is over, and other adjacencies may not be covered.
    """
    parts = asked_parts(run)
    if len(parts) == 1:
        given = {**parts[0], "adjacency": run.adjacency}
        if run.group_size > 1:
            given["group_size"] = run.group_size
        return ask(COMMAND, given, question, sources=dict.fromkeys(given, _SOURCE), notes=False)
    entries = tuple(Entry(f"phase-{number}", COMMAND, given) for number, given in enumerate(parts, 1))
    return answer_ledger(Ledger(entries, run.adjacency, run.group_size), question)


def asked_parts(run: Described) -> list[dict[str, Any]]:
    """Return the run as parameters of one run of dp-sgd, or of one for each phase; but for adjacency and groups."""
    phases = composed(run.phases)
    alone = run.sampling is Sampling.POISSON or (run.sampling is Sampling.FIXED and run.group_size == 1)
    shared = {"sampling": run.sampling, **run.shape}
    if alone and len(phases) > 1:
        return [{**shared, "schedule": "; ".join(" ".join(f"{n}={v!r}" for n, v in _said(p).items()) for p in phases)}]
    return [{**shared, **_said(phase)} for phase in phases]


def _said(phase: Phase) -> dict[str, Any]:
    rate = {"sample_rate": phase.rate} if phase.rate is not None else {}
    return {**rate, "steps": phase.steps, "noise_multiplier": phase.noise_multiplier}


def composed(phases: Sequence[Phase]) -> Sequence[Phase]:
    """Return phases, too many kinds of them by cells of noise and rate, each with its least noise and largest rate.

    >>> len(composed([Phase(1.0 + k / 1000, 0.01, 1) for k in range(300)])) <= 32
    True
    """
    if len(phases) <= MOST:
        return phases
    from dpcalc.numerics.floats import np

    rates, noises, steps = np.array([(p.rate or 1.0, p.noise_multiplier, float(p.steps)) for p in phases]).T
    known = phases[0].rate is not None
    return [
        Phase(noise, rate if known else None, count) for rate, noise, count in Phases(rates, noises, steps, "").kinds()
    ]


def _reading(run: Described) -> list[Note]:
    remarks, count = list(run.remarks), len(composed(run.phases))
    if count < len(run.phases):
        remarks.append(
            f"{len(run.phases)} phases are composed as {count}, with the least noise and largest rate of each"
        )
    taken = {name: said.origin for name, said in run.facts.items() if name not in ("tool",)}
    return [RunRead(what=run.kind, taken=taken, unused=tuple(run.unused)), *(RunRemark(says=s) for s in remarks)]


def _other_readings(run: Described, case: Case) -> list[Note]:
    """Return what other readings would say, under the same adjacency."""
    notes: list[Note] = []
    for claim in run.claims:
        other = run._replace(**{"skipped": None, "adjacency": _usual(run.adjacency), **claim.changes})
        try:
            best = _asked(other, Question(None, *run.delta)).best
        except DpcalcError:
            continue
        if best is not None and best.epsilon is not None and case.best is not None:
            truth = f"{claim.truth}: epsilon {case.best.epsilon:.6g}"
            notes.append(OtherReading(reading=claim.reading, value=best.epsilon, truth=truth))
    return notes


def _usual(adjacency: Adjacency) -> Adjacency:
    return adjacency if adjacency is Adjacency.REPLACE_ONE else Adjacency.NULL_RECORD
