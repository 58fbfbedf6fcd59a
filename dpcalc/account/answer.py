"""The account of a described run: the engine's answer and its notes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpcalc.account.described import Described
from dpcalc.account.forms import Phase
from dpcalc.engine.ask import ask
from dpcalc.engine.gate import judged
from dpcalc.engine.ledgers.total import answer_ledger
from dpcalc.errors import DpcalcError, Infeasible, NotApplicable
from dpcalc.model.algorithm import Source
from dpcalc.model.phases import MOST, Phases
from dpcalc.model.quantities import Adjacency, Sampling
from dpcalc.model.question import Entry, Ledger, Question
from dpcalc.notes import Note, OtherReading, RunRead, RunRemark
from dpcalc.numerics.floats import up
from dpcalc.render.numbers import SIX, Side
from dpcalc.report import Case

if TYPE_CHECKING:
    from dpcalc.engine.gate import Gate

COMMAND = "dp-sgd"


def account(run: Described, gates: Sequence[Gate] = (), *, curves: bool = False) -> Case:
    """Return the case of a run: epsilon at its delta, with notes on the facts read and on other readings.

    Raises:
        NotApplicable: no theorem covers the run, or empty batches are too likely.
        SpecError: the description contradicts itself.
    """
    delta, log_delta = run.delta
    case = _asked(run, Question(None, delta, log_delta, source=_SOURCE, curves=curves))
    notes = (*_reading(run), *_other_readings(run, case))
    case = case._replace(note_data=(*notes, *case.note_data))
    return case._replace(assertions=judged(gates, case))


_SOURCE = Source.ARGUMENT


def _asked(run: Described, question: Question) -> Case:
    """Return the engine's answer to one run, or to a ledger of its phases and its skipped steps.

    Other runs are not compared: this one is over, and other adjacencies may not be covered.

    Raises:
        NotApplicable: no theorem covers the run, or steps are skipped too often for this delta.
    """
    parts = asked_parts(run)
    if len(parts) == 1 and run.skipped is None:
        given = {**parts[0], "adjacency": run.adjacency}
        if run.group_size > 1:
            given["group_size"] = run.group_size
        return ask(COMMAND, given, question, sources=dict.fromkeys(given, _SOURCE), notes=False)
    entries = [Entry(f"phase-{number}", COMMAND, given) for number, given in enumerate(parts, 1)]
    if (log_skips := log_skipped(run)) is not None:
        distance = {"delta": up(math.exp(log_skips), 2.0), "log_delta": log_skips}
        entries.append(Entry(SKIPPED, "", {"mu": LEAST_MU, **distance}))
    try:
        return answer_ledger(Ledger(tuple(entries), run.adjacency, run.group_size), question)
    except (Infeasible, NotApplicable):
        if log_skips is None or not log_skips + 2.0 > run.delta[1]:
            raise
        raise NotApplicable(
            f"a worker skips a step with probability up to {math.exp(log_skips):.3g}, too often for this delta",
            "use fewer workers, larger batches, or a larger delta",
        ) from None


SKIPPED = "skipped-steps"
"""The ledger entry for steps that a worker skips: its delta is the probability that any step is skipped."""

LEAST_MU = 1e-9
"""The mu of that entry, which releases nothing by itself."""


def log_skipped(run: Described) -> float | None:
    """Return ln of the probability that any step is skipped, rounded up; None if no step can be.

    It bounds the total variation distance between the run and one that skips no step, with a record and without it.
    """
    return None if run.skipped is None else max(_LEAST_LOG, run.skipped.log_probability(run.phases))


_LEAST_LOG = -690.0  # 1e-300: smaller probabilities are raised to this, so that the double is not 0


def asked_parts(run: Described) -> list[dict[str, Any]]:
    """Return the parameters of one dp-sgd run, or of one per phase, without adjacency and group size."""
    phases, shared = composed(run), {"sampling": run.sampling, **run.shape}
    if _has_schedule(run) and len(phases) > 1:
        return [{**shared, "schedule": "; ".join(" ".join(f"{n}={v!r}" for n, v in _said(p).items()) for p in phases)}]
    return [{**shared, **_said(phase)} for phase in phases]


def _has_schedule(run: Described) -> bool:
    """Return whether the phases form a schedule; else each is an entry of a ledger."""
    return run.sampling is Sampling.POISSON or (run.sampling is Sampling.FIXED and run.group_size == 1)


def _said(phase: Phase) -> dict[str, Any]:
    rate = {"sample_rate": phase.rate} if phase.rate is not None else {}
    return {**rate, "steps": phase.steps, "noise_multiplier": phase.noise_multiplier}


_MOST_WRITTEN = 1000  # the most phases in a recipe; merging to this many costs about 0.1% of the noise


def composed(run: Described) -> Sequence[Phase]:
    """Return the phases; too many are merged in cells of noise and rate, each with its least noise and largest rate.

    Where batches are cut to a largest size a larger rate may hide more, and all are kept.
    """
    phases, most = run.phases, _MOST_WRITTEN if _has_schedule(run) else MOST
    if len(phases) <= most or "max_batch_size" in run.shape:
        return phases
    from dpcalc.numerics.floats import np

    rates, noises, steps = np.array([(p.rate or 1.0, p.noise_multiplier, float(p.steps)) for p in phases]).T
    known, kinds = phases[0].rate is not None, Phases(rates, noises, steps, "").kinds(most)
    return [Phase(noise, rate if known else None, count) for rate, noise, count in kinds]


def _reading(run: Described) -> list[Note]:
    remarks, count = list(run.remarks), len(composed(run))
    if count < len(run.phases):
        remarks.append(
            f"{len(run.phases)} phases are composed as {count}, with the least noise and largest rate of each"
        )
    taken = {name: said.origin for name, said in run.facts.items() if name not in ("tool",)}
    return [RunRead(what=run.kind, taken=taken, unused=tuple(run.unused)), *(RunRemark(says=s) for s in remarks)]


def _other_readings(run: Described, case: Case) -> list[Note]:
    """Return notes on the epsilons of other readings, under the same adjacency."""
    notes: list[Note] = []
    spent = None if case.best is None else case.best.epsilon
    if spent is None:
        return notes
    for claim in run.claims:
        other = run._replace(**{"skipped": None, "adjacency": _usual(run.adjacency), **claim.changes})
        try:
            best = _asked(other, Question(None, *run.delta)).best
        except DpcalcError:
            continue
        if best is not None and best.epsilon is not None:
            truth = f"{claim.truth}: epsilon {SIX.number(spent, Side.UP)}"
            notes.append(OtherReading(reading=claim.reading, value=best.epsilon, truth=truth))
    return notes


def _usual(adjacency: Adjacency) -> Adjacency:
    return adjacency if adjacency is Adjacency.REPLACE_ONE else Adjacency.NULL_RECORD
