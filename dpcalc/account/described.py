"""A described run: the question for the engine, and the remarks beside the answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from dpcalc.account import loader
from dpcalc.account.drawing import phases_of
from dpcalc.account.facts import FACTS, FALSE, NOT_PRIVATE, TRUE, Kind, Said, bare
from dpcalc.account.forms import Phase, RunFile
from dpcalc.account.noise import effective, refuse_adaptive
from dpcalc.account.stated import DISTRIBUTED, Claim, Stated
from dpcalc.errors import NotApplicable, SpecError, refuse
from dpcalc.model.quantities import Adjacency, Sampling
from dpcalc.numerics.floats import up

_OF_N = (Adjacency.NULL_RECORD, Adjacency.REPLACE_ONE)
"""Adjacencies under which neighbouring data sets have the same number of records."""
_BY_THEMSELVES = ("dpaccounting", "jaxprivacy")
"""Programs in which rate, steps and divisor are constants."""
_PEOPLE = ("user", "client")


class Skipped(NamedTuple):
    """Parameters of the probability that a worker draws an empty batch and skips the step."""

    records: int
    workers: int
    group: int

    def log_probability(self, phases: tuple[Phase, ...]) -> float:
        """Return ln of the probability that any step is skipped, rounded up."""
        logs = [
            loader.log_empty_batches(self.records, phase.rate or 1.0, phase.steps, self.workers, self.group)
            for phase in phases
        ]
        return min(0.0, up(max(logs) + math.log(len(logs)), 4.0))


class Described(NamedTuple):
    """A run in the engine's terms.

    Attributes:
        shown, kind: the file and its kind.
        phases: the phases; equal ones are merged.
        sampling, adjacency, group_size: as parameters of dp-sgd.
        shape: records and batch size, if batches have a fixed size.
        delta: delta and its logarithm.
        skipped: the skipped steps, if empty batches are skipped.
        claims: other readings of the facts.
        remarks: sentences for the report.
        facts: the facts that were used.
        unused: the keys that were not used.
    """

    shown: str
    kind: str
    phases: tuple[Phase, ...]
    sampling: Sampling
    adjacency: Adjacency
    group_size: int
    shape: Mapping[str, int]
    delta: tuple[float, float]
    skipped: Skipped | None
    claims: tuple[Claim, ...]
    remarks: tuple[str, ...]
    facts: Mapping[str, Said]
    unused: tuple[str, ...]

    @property
    def steps(self) -> int:
        """All noisy steps."""
        return sum(phase.steps for phase in self.phases)


def described(run: RunFile, flags: Mapping[str, Said]) -> Described:
    """Return the run that a file and flags describe.

    Raises:
        Missing: neither states a necessary fact.
        SpecError: they contradict each other.
        NotApplicable: no account holds for such a run.
    """
    stated = Stated(run, flags)
    sampling = stated.sampling
    _rename_clients(stated)
    _refuse_uncovered(stated, sampling)
    phases, shape = phases_of(stated, sampling)
    phases = _of_users(stated, sampling, effective(stated, phases))
    group, adjacency = _group_size(stated), _adjacency(stated, sampling)
    skipped = _skipped(stated, group) if sampling is Sampling.POISSON else None
    if skipped is not None:
        chance = math.exp(skipped.log_probability(phases))
        truth = f"a worker with an empty batch skips the step; some step is skipped with probability <= {chance:.2g}"
        stated.claims.append(Claim("a run without skipped steps", truth, {}))
    stated.get("epsilon")
    delta = stated.need("delta", "at which delta is epsilon asked for?")
    if stated.get("same_seed"):
        raise _shared_seed(stated, phases, delta[1])
    stated.remarks += [text for name, (value, text) in _REMARKS.items() if stated.get(name) == value]
    unused = [said.origin.partition(": ")[2] for name, said in run.facts.items() if name not in stated.used]
    return Described(
        run.shown, run.kind, _merged(phases), sampling, adjacency, group * stated.coins, shape, delta, skipped,
        tuple({claim.reading: claim.of_groups(group) for claim in stated.claims}.values()),
        tuple(dict.fromkeys(stated.remarks)),
        stated.used, (*run.unused, *filter(None, unused)),
    )  # fmt: skip


def _shared_seed(stated: Stated, phases: tuple[Phase, ...], log_delta: float) -> NotApplicable:
    workers = int(stated.need("devices", "all workers draw from one seed: how many were there?"))
    z, rate, steps = max(phases, key=lambda phase: phase.steps)
    least = loader.shared_seed_epsilon(z, rate or 1.0, steps, workers, log_delta)
    alone = loader.poisson_epsilon(z, rate or 1.0, steps, log_delta)
    return NotApplicable(
        "all workers draw from one seed, so the draws of other records reveal those of a record: no account holds. "
        f"epsilon is about {least:.4g} or more; with separate seeds it would be {alone:.4g}",
        "give every worker its own seed",
    )


def _merged(phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
    """Return the phases with equal ones merged: the order of steps does not matter."""
    counts: dict[tuple[float, float | None], int] = {}
    refuse((sum(phase.steps for phase in phases) >= 2**53, "more than 9e15 steps", "check the file"))
    for phase in phases:
        key = (phase.noise_multiplier, phase.rate)
        counts[key] = counts.get(key, 0) + phase.steps
    return tuple(Phase(*key, steps) for key, steps in counts.items())


_REMARKS: dict[str, tuple[object, str]] = {
    "secure": (False, "the generator was not cryptographically secure: the theorems assume ideal noise"),
    "accountant": ("gdp", "the GDP accountant's epsilon is an approximation that can be too small; it is unused here"),
    "load_best_model_at_end": (True, "a checkpoint chosen by a metric of private records is a further release, "
                               "not in this account; by a metric of public records it costs nothing"),
    "packing": (True, "packed sequences hold parts of several records: the account protects sequences; give the number "
                "of sequences of one person as --max-records-per-user"),
}  # fmt: skip
"""Facts -> a value, and the remark for it."""


def _refuse_uncovered(stated: Stated, sampling: Sampling) -> None:
    """Refuse runs that no account covers."""
    refuse_unprotected(stated.run.facts)  # flags do not turn it on again
    refuse_adaptive(stated)
    if sampling is Sampling.POISSON and stated.word("divisor") in ("realised", "realized", "batch"):
        raise NotApplicable("the sum is divided by the size of the drawn batch, which depends on the record",
                            "divide by a constant")  # fmt: skip
    said = stated.facts.get("schedule") if not stated.phases else None
    if said is not None and bare(said.text) not in ("", *_OFF):
        raise NotApplicable("noise or batches change from step to step, and the configuration does not say how",
                            f"give the history of the run, or leave out {said.origin} if it "
                            "means something else")  # fmt: skip
    if (runs := stated.facts.get("runs")) is not None and runs.text and runs.value != 1:
        raise NotApplicable(f"{runs.origin} is {runs.text}: there are several runs on the same records",
                            "leave it out for the account of one run, and add the runs up in a ledger")  # fmt: skip
    if stated.get("group_by_length"):
        raise NotApplicable("records were grouped by length, so batches depend on the data", "group_by_length: false")
    if (size := stated.get("physical_batch_size")) is not None:
        stated.remarks.append(
            f"physical batches of {size} change neither rate nor steps: noise is added once per logical batch"
        )
    if (reported := stated.get("reported_epsilon")) is not None:
        stated.remarks.append(f"the file reports epsilon {reported:g}; this account uses only the other facts")
    if stated.get("seed") is not None and stated.get("secure") is not True:
        stated.remarks.append("the account holds only if the seed of the noise is secret and no other run uses it")
    said = stated.facts.get("resumed_from")
    if said is not None and bare(said.text) not in _OFF:
        stated.remarks.append(
            f"{said.origin} is {said.text}: earlier steps on the same records are not in this account"
        )
    if stated.get("auto_find_batch_size"):
        stated.need("batch_size", "auto_find_batch_size may have changed the batch size: which one was used?")


_NOT_PRIVATE = "the run was not private, and epsilon is infinite"
_NOT_CLIPPED = "the gradient of a record may have any length, and epsilon is infinite"
_ZERO = ("0", "00", "000")  # without the point
_OFF = (*FALSE, *_ZERO, "none", "null", "empty", "disabled")
_UNPROTECTED: dict[str, tuple[tuple[str, ...], str]] = {
    "private": (_OFF, _NOT_PRIVATE),
    "not_private": ((*TRUE, *NOT_PRIVATE, "1"), _NOT_PRIVATE),
    "epsilon": ((*_ZERO, "-1", "inf", "infinity"), _NOT_PRIVATE),
    "noise_law": (_OFF, _NOT_PRIVATE),
    "noise_multiplier": (_ZERO, _NOT_PRIVATE),
    "per_record_clipping": (_OFF, _NOT_CLIPPED),
    "clip": ((*_OFF, "inf", "infinity"), _NOT_CLIPPED),
    "clipping": (
        (*_OFF, "batch", "perbatch", "batchwise", "flatbatch", "value", "byvalue", "elementwise"),
        _NOT_CLIPPED,
    ),
}
"""Facts -> the words that mean no protection, and the consequence."""
_OTHER_LAWS = ("laplac", "exponential", "uniform", "student", "cauchy", "skellam", "binomial", "discrete")
_CORRELATED = ("dpftrl", "bandmf", "banded", "blt", "treeagg", "toeplitz", "correlated", "matrixfactor", "matrixmech")


def refuse_unprotected(facts: Mapping[str, Said]) -> None:
    """Refuse a run whose file says that noise or clipping was turned off, or that the noise was not Gaussian.

    Raises:
        NotApplicable: the run is not protected by Gaussian noise on clipped gradients.
    """
    for name, (words, why) in _UNPROTECTED.items():
        said = facts.get(name)
        if said is not None and "$" in said.text and FACTS[name].kind is Kind.WORD:
            raise SpecError(f"{said.origin} is {said.text}, a variable", "write its value")
        if said is not None and any({part, bare(part)} & set(words) for part in said.text.split(" and ")):
            hint = "leave the key out if it means something else"
            raise NotApplicable(f"{said.origin} is {said.text}: {why}", hint)
    for name in ("noise_law", "accountant", "optimizer"):
        said = facts.get(name)
        if said is not None and any(law in bare(said.text) for law in _OTHER_LAWS):
            raise NotApplicable(f"{said.origin} is {said.text}: only Gaussian noise can be accounted for",
                                "`dpcalc find laplace` lists the commands for other noise")  # fmt: skip
        if said is not None and any(mechanism in bare(said.text) for mechanism in _CORRELATED):
            raise NotApplicable(f"{said.origin} is {said.text}: the noise of steps is correlated",
                                "ask `dpcalc dp-ftrl`, with the matrix or the mechanism")  # fmt: skip


_OF_CLIENTS = {"records": "clients", "batch_size": "clients_per_round", "steps": "rounds"}


def _rename_clients(stated: Stated) -> None:
    """Translate federated learning: a client is a record, and a round is a step, if whole updates are clipped."""
    told = {ours: theirs for ours, theirs in _OF_CLIENTS.items() if stated.get(theirs) is not None}
    own = {
        name
        for name in (*_OF_CLIENTS, "epochs", "accumulation")
        if name in stated.facts and not stated.facts[name].origin.startswith("--")
    }  # of a client's training
    why = "are the updates of whole clients clipped and noisy (user), or the gradients of their records (record)?"
    unclear = told and (own or "batch_size" not in told)
    if not told or (stated.need("clip_per", why) if unclear else stated.get("clip_per")) == "record":
        return
    stated.facts = {name: said for name, said in stated.facts.items() if name not in own}
    refuse(
        *(
            (ours in stated.facts, f"{ours} and {told[ours]} are both given", f"give {told[ours]} alone")
            for ours in told
        )
    )
    stated.facts |= {ours: stated.facts[theirs] for ours, theirs in told.items()}
    stated.facts["max_records_per_user"] = Said(1, "a client is drawn as a whole", "1")
    stated.remarks.append("a record is a client here, and its whole update must be clipped to the clipping norm")


def _clips_users(stated: Stated) -> bool:
    return bool(stated.get("clip_per") == "user")


def _of_users(stated: Stated, sampling: Sampling, phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
    """Return the steps for a user clipped as a whole; the user is drawn if any of its records is."""
    if not _clips_users(stated):
        return phases
    why = "a user is clipped as a whole, and drawn if any of its records is (1: users are drawn as a whole)"
    k = int(stated.need("max_records_per_user", why))
    if k == 1 or sampling is Sampling.FULL:
        return phases
    if sampling is not Sampling.POISSON:
        raise NotApplicable(f"the {k} records of a user are in different batches with sampling {sampling}: not covered",
                            "draw users as a whole, or by Poisson sampling")  # fmt: skip
    if stated.get("max_batch_size") is not None:  # one with fewer records may be hidden less, and others lose records
        raise NotApplicable(f"the {k} records of a user are cut from truncated batches one by one: not covered",
                            "draw users as a whole, and truncate batches of users")  # fmt: skip
    truth = f"a user is drawn if any of its {k} records is"
    stated.claims.append(Claim("the rate of one record", truth, {"phases": phases}))
    return tuple(phase._replace(rate=min(1.0, loader.any_of(phase.rate or 1.0, k))) for phase in phases)


def _group_size(stated: Stated) -> int:
    unit, k = stated.get("unit"), stated.get("max_records_per_user")
    if _clips_users(stated):
        return 1
    if unit in _PEOPLE and k is None:
        raise stated.missing("max_records_per_user", f"a {unit} is protected, and the gradients of records are clipped")
    if k and k > 1:
        truth = (f"the {k} records of a {unit or 'user'} differ together, as a group (if their sum is clipped as a "
                 "whole, give --clip-per user instead)")  # fmt: skip
        stated.claims.append(Claim("one record at a time", truth, {"group_size": 1}))
    return int(k or 1)


def _adjacency(stated: Stated, sampling: Sampling) -> Adjacency:
    adjacency = Adjacency(stated.get("adjacency") or Adjacency.NULL_RECORD)
    if adjacency not in _OF_N and stated.run.in_line:
        raise NotApplicable(
            f"{stated.run.shown} uses records in a fixed order, and {adjacency} shifts all later records",
            "use --adjacency zero-out",
        )
    if adjacency not in _OF_N and (what := _follows_n(stated)):
        raise NotApplicable(
            f"{what} is a function of the number of records, which {adjacency} changes: no account holds",
            "use --adjacency zero-out, which keeps that number, or constants that were fixed beforehand",
        )
    if (size := _microbatch(stated)) == 1:
        if adjacency is Adjacency.REPLACE_ONE:
            truth = "a replaced record changes the sum by up to 2 C, an added or removed one by up to C"
            changes = {"adjacency": Adjacency.NULL_RECORD}
            stated.claims.append(Claim("the same noise for records added or removed", truth, changes))
        return adjacency
    if sampling not in (Sampling.FULL, Sampling.SHUFFLE) or adjacency not in _OF_N:
        raise NotApplicable(
            f"the mean gradient of {size} records is clipped, and the draw decides which records share a mean",
            "clip the gradient of every record; shuffled and full batches are covered under zero-out",
        )
    truth = f"the clipped mean of {size} records changes by up to 2 C with one of them: z is worth z/2"
    stated.claims.append(Claim("the noise multiplier as it stands", truth, {"adjacency": adjacency}))
    return Adjacency.REPLACE_ONE


def _follows_n(stated: Stated) -> str:
    """Return the part of the run that is a function of the number of records; empty if none is known to be."""
    if stated.of_opacus or not (stated.phases or stated.get("sample_rate") is not None):
        return "the rate of the loader"
    if stated.word("tool") in _BY_THEMSELVES:
        return ""
    word = str(stated.need("divisor", "is the sum divided by a constant, or by a function of the number of records?"))
    return "" if word == "constant" else "the divisor"


def _microbatch(stated: Stated) -> int:
    """Return the number of records whose mean gradient is clipped."""
    size, count = stated.get("microbatch_size"), stated.get("microbatches")
    if size is None and count is not None:
        of_step = stated.get("per_device_batch_size") or stated.need(
            "batch_size", f"a batch has {count} microbatches: how many records are in a batch?"
        )
        size = -(-of_step // count)
    return int(size or 1)


def _skipped(stated: Stated, group: int) -> Skipped | None:
    """Return the parameters of skipped steps, if the run is known to skip empty batches or to fill them."""
    word, distributed = stated.get("empty_batches"), stated.word("sampling") == DISTRIBUTED
    filled = word == "random" or bool(stated.get("rand_on_empty"))
    if word == "keep" or not (word or distributed or filled):
        return None
    why = "a worker with an empty batch skips the step: how many workers were there?"
    workers = int(stated.need("devices", why)) if distributed else stated.count("devices")
    if filled and workers > 1:
        raise NotApplicable("several workers fill empty batches with random records: no theorem covers that",
                            "train with empty batches")  # fmt: skip
    records = stated.need("records", "the probability of an empty batch depends on the number of records")
    return Skipped(int(records), workers, group)
