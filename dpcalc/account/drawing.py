"""The sampling rate, steps and batches of a run, from its loader, devices and epochs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from dpcalc.account import loader, long_history
from dpcalc.account.forms import Phase
from dpcalc.account.noise import multiplier
from dpcalc.account.stated import Claim, Missing, Stated
from dpcalc.errors import NotApplicable, SpecError, refuse
from dpcalc.model.quantities import Sampling
from dpcalc.numerics.floats import down, up

_ONE_ROUND = (Sampling.SHUFFLE, Sampling.BALLS_IN_BINS)
Phases = tuple[Phase, ...]


def phases_of(stated: Stated, sampling: Sampling) -> tuple[Phases, Mapping[str, int]]:
    """Return the phases of a run, and records and batch size if batches have a fixed size.

    Raises:
        Missing: a necessary fact is unknown.
        NotApplicable: no account holds for such batches.
    """
    refuse((stated.count("uses") > 1 and sampling is not Sampling.BALLS_IN_BINS,
            f"a record is in {stated.count('uses')} steps of an epoch, and the sampling is {sampling}",
            "uses goes with balls-in-bins; describe other sampling by its own parameters"))  # fmt: skip
    if stated.phases:
        _refuse_another_history(stated)
    if sampling is Sampling.POISSON:
        return (_checked(stated) if stated.phases else (_poisson(stated),)), _cap(stated)
    if sampling is Sampling.FULL:
        return _timed(stated, 1), {}
    return _of_batches(stated, sampling)


def _refuse_another_history(stated: Stated) -> None:
    """Refuse a history of fewer steps, or of more noise, than the rest of the file says."""
    said = {name: fact.value for name, fact in stated.facts.items()}  # no flag may settle those that are ambiguous
    most, batches = sum(phase.steps for phase in stated.phases), loader.epoch_steps(stated.get("loader_length") or 1)
    planned = said.get("steps") or (said.get("epochs") or 0) * batches // stated.count("accumulation")
    z, least = said.get("noise_multiplier"), min(phase.noise_multiplier for phase in stated.phases)
    refuse(
        (planned > most, f"by the file the run has {planned:g} steps, but the history has {most}",
         "add the steps before the run was resumed; leave the others out if it stopped early"),
        ((z or least) < least * (1.0 - 1e-4), f"by the file the noise multiplier is {z}, but by the history {least:g}",
         "leave out the wrong one"),
    )  # fmt: skip


# --- Poisson sampling -------------------------------------------------------------------------------------------------


def _poisson(stated: Stated) -> Phase:
    """Return the single phase of a run with one rate; with accumulation, the rate is that of one independent batch."""
    k, length = stated.count("accumulation"), _length(stated)
    batches = k if stated.get("loader_length") is None else 1  # batches per unit of the length
    rate, one = _rates(stated, length, k, batches)
    steps = _steps(stated, length)
    bands = stated.count("bands") if stated.word("tool") == "jaxprivacy" else 1  # elsewhere bands are image channels
    if bands > 1:
        stated.remarks.append(f"a record is in one of {bands} groups, which take turns: in {steps} steps it can be "
                              f"drawn {-(-steps // bands)} times")  # fmt: skip
        steps = -(-steps // bands)
    phase = Phase(multiplier(stated), rate, steps)
    if k > 1:
        phase = _by_coins(stated, k, (phase,), "one draw for all of a step", (phase._replace(rate=one),))[0]
    _claim_ratio(stated, rate, steps)
    _claim_part(stated, rate, steps)
    return phase


def _rates(stated: Stated, length: int | None, k: int, batches: int) -> tuple[float, float]:
    """Return the rate of a step, and the rate of each of its k batches, rounded up.

    An epoch has ``length`` times ``batches`` batches. The stated rate may be either of the two.
    """
    said = stated.get("sample_rate")
    if length is None:
        if said is None:
            raise _no_length(stated)
        records, size = stated.get("records") or 0, _batch(stated) or 1
        refuse((size <= records and said < (1.0 - 1e-9) / -(-records // size),
                f"{stated.facts['sample_rate'].origin} is {said:g}, less than {size} of {records} records",
                "leave out the rate or the batch size"))  # fmt: skip
        if k > 1:
            raise stated.missing("loader_length", f"is {said:g} the rate of one of {k} accumulated batches, or of "
                                 "the whole step? Give the number of batches; or, if a step is one draw at this "
                                 "rate, leave out the accumulation")  # fmt: skip
        return said, said
    if said is None:
        said = _rate(stated, length)
        return (said, up(said / k)) if batches == k else (min(1.0, k * said), said)
    drawn = (1.0 / length, loader.history_rate(length))
    if any(_near(said, min(1.0, one * k / batches)) for one in drawn):
        return said, up(said / k) if k > 1 else said
    if any(_near(said, one / batches) for one in drawn):
        return min(1.0, up(k * said)), said
    origin, whole = stated.facts["sample_rate"].origin, length * batches
    raise SpecError(f"{whole} batches of an epoch are drawn at rate {1 / whole:.6g} each, and {origin} is {said:g}",
                    "leave out the rate, or the facts that give the number of batches")  # fmt: skip


def _claim_part(stated: Stated, rate: float, steps: int) -> None:
    """Add the claims with the records of one device, or those in memory at once, as the batch."""
    records, z, truth = stated.get("records"), multiplier(stated), f"the rate was {rate:.6g}, {steps} times"
    one, held = stated.get("per_device_batch_size"), stated.get("physical_batch_size")
    if records and one and one < rate * records * 0.99:
        claimed = Phase(z, one / records, steps)
        stated.claims.append(Claim.poisson(f"the {one} records of one device as the batch", (claimed,), truth))
    if records and held and held < rate * records * 0.99:
        claimed = Phase(z, held / records, math.ceil(steps * rate * records / held))
        reading = f"the {held} records in memory at once as the batch, for {claimed.steps} steps,"
        stated.claims.append(Claim.poisson(reading, (claimed,), truth))


def _rate(stated: Stated, length: int | None) -> float:
    """Return 1/(batches of an epoch); batch/records if that is larger and the loader is not that of Opacus."""
    if length is None:
        raise _no_length(stated)
    if stated.of_opacus or stated.get("loader_length") is not None:
        return loader.history_rate(length) if stated.of_opacus else 1.0 / length
    size, records = _batch(stated), stated.get("records")
    assert size
    assert records
    if records % size == 0:
        return 1.0 / length
    ratio = up(size / records)
    _refuse_cut(
        stated, f"the rate is 1/{length} or {size}/{records}", f"give --loader-length {length} if it is the first"
    )
    stated.remarks.append(f"the larger of 1/{length} and {size}/{records} is taken as the rate; Opacus' loader uses "
                          f"the first; if yours does too, give --loader-length {length}")  # fmt: skip
    return max(1.0 / length, ratio)


def _no_length(stated: Stated) -> Missing:
    batch, records = _batch(stated), stated.get("records")
    if batch is None:
        return stated.missing("loader_length", "the sampling rate and the number of batches are unknown")
    if records is None:
        return stated.missing("records", "the number of batches of an epoch depends on the number of records")
    return stated.missing("drop_last", f"{records} records and batches of {batch}: is a short last batch left out?")


def _checked(stated: Stated) -> Phases:
    """Return the phases of a history or an event, each at the largest stated rate."""
    length, own = stated.get("loader_length"), stated.get("sample_rate")
    least = max(0.0 if length is None else 1.0 / length, own or 0.0)
    if any((phase.rate or 1.0) < least * (1.0 - 1e-12) for phase in stated.phases):
        _refuse_cut(stated, f"the history has a smaller rate than {least:.6g}", "leave out what is of another run")
        stated.remarks.append(f"the history has a smaller rate than the loader, {least:.6g}: the larger one is used")
    phases = tuple(phase._replace(rate=max(phase.rate or 1.0, least)) for phase in stated.phases)
    phases = _accumulated(stated, phases, length)
    steps = sum(phase.steps for phase in phases)
    rate = max(phase.rate or 1.0 for phase in phases)
    divisor, records = stated.get("divisor"), stated.get("records")
    expected = int((records or 0) * rate) / stated.count("devices")  # as Opacus computes it
    if stated.of_opacus and records and _is_number(divisor) and abs(float(divisor) - expected) >= 1.0:
        stated.remarks.append(
            f"the divisor is {divisor}, but records x rate / devices is {expected:.6g}: are they from one loader?"
        )
    if length and steps % length:
        stated.remarks.append(
            f"{steps} steps are not a whole number of epochs of {length}: the run was stopped or resumed"
        )
    _claim_ratio(stated, rate, steps)
    return phases


def _accumulated(stated: Stated, phases: Phases, length: int | None) -> Phases:
    """Return phases at the rate of one batch, if a step accumulates several independently drawn batches.

    Opacus' history has the sum of their rates, but with ghost clipping the rate of one. A record can be in several of
    them; it is accounted for as that many records, each with an independent coin.
    """
    k, rate = stated.count("accumulation"), max(phase.rate or 1.0 for phase in phases)
    if "fastgradientclipping" in stated.word("optimizer"):
        return phases if k == 1 else _by_coins(stated, k, phases, "the rate of the history", phases)
    several = round(rate * length) if stated.of_opacus and length else 1
    if (
        not length
        or several < 2
        or not any(_near(rate, several * one) for one in (1.0 / length, loader.history_rate(length)))
    ):
        return phases
    k = int(stated.need("accumulation", f"the history's rate is {several}/{length}, and an epoch has {length} "
                        f"batches: were {several} accumulated for a step (1: none were)"))  # fmt: skip
    return phases if k == 1 else _by_coins(stated, k, phases, f"one coin at rate {rate:.6g} for a step,")


def _by_coins(stated: Stated, k: int, whole: Phases, reading: str, shares: Phases = ()) -> Phases:
    """Return phases at the rate of one of the k batches of a step; ``reading`` names the reading with ``whole``."""
    truth = f"{k} batches make a step, and a record is in each independently, at the rate of one batch"
    stated.claims.append(Claim(reading, truth, {"phases": whole}))
    stated.remarks.append(
        f"a record is drawn independently for each of the {k} accumulated batches of a step, and is accounted for as "
        f"a group of {k} records with one draw each"
    )
    stated.coins = k
    return shares or tuple(phase._replace(rate=min(1.0, up((phase.rate or 1.0) / k))) for phase in whole)


def _claim_ratio(stated: Stated, rate: float, steps: int) -> None:
    """Add the claim with batch size over records as the rate, if the run used another rate."""
    try:
        records, size, epochs = stated.get("records"), _batch(stated), stated.get("epochs")
    except Missing:  # the account does not depend on it
        return
    if not records or not size or size > records or _near(rate, size / records):
        return
    passes = epochs or steps / max(1, round(1.0 / rate))
    claimed = Phase(multiplier(stated), size / records, max(1, math.ceil(passes * -(-records // size))))
    reading = f"batch/records = {size}/{records} = {size / records:.6g} as the rate, for {claimed.steps} steps,"
    stated.claims.append(Claim.poisson(reading, (claimed,), f"the rate was {rate:.6g}, {steps} times"))


# --- batches of fixed size --------------------------------------------------------------------------------------------


def _of_batches(stated: Stated, sampling: Sampling) -> tuple[Phases, Mapping[str, int]]:
    """Return the phases, and the engine's parameters of the batches."""
    records = int(stated.need("records", f"with sampling {sampling} the account needs the number of records"))
    length, size = _length(stated), _batch(stated)
    phases = _timed(stated, length)
    if sampling not in _ONE_ROUND:
        refuse((sampling is Sampling.FIXED and stated.count("accumulation") > 1,
                "a record may be in several of the batches of fixed size that are accumulated for a step: not covered",
                "leave out the accumulation if a step is one draw"))  # fmt: skip
        if size is None:
            raise stated.missing("batch_size", f"with sampling {sampling} the account needs the batch size")
        return phases, {"records": records, "batch_size": size}
    if length is None:
        raise _no_length(stated)
    if "distributed" in stated.word("optimizer"):
        stated.need("devices", "several workers share the records of an epoch: how many were there?")
    workers, one = stated.count("devices"), stated.get("per_device_batch_size") or 1
    padded = records % workers and not -(-records // workers) % one  # a short last batch is left out with its repeats
    if workers > 1 and (padded if stated.get("drop_last") else records % (size or workers)):
        raise NotApplicable(
            f"{workers} workers share {records} records, which do not fill whole batches: samplers repeat some in an "
            "epoch",
            "drop the last batch (drop_last), or train on a number of records that fills whole batches",
        )
    _refuse_carried_over(stated, records)
    batches = stated.count("accumulation") if stated.get("loader_length") is not None else 1
    rate = min(1.0, stated.count("uses") * batches / length)
    claimed = tuple(phase._replace(rate=rate) for phase in phases)
    reading = f"Poisson sampling at rate {rate:.6g}, which accountants assume,"
    stated.claims.append(Claim.poisson(reading, claimed, f"batches were drawn by sampling {sampling}"))
    used = records * stated.count("uses")
    if size is None or sampling is not Sampling.SHUFFLE or -(-used // size) < length // batches:
        size = -(-used // -(-length // batches))  # not more steps per epoch than there were
    known = stated.count("accumulation") == 1 and (workers == 1 or stated.get("loader_length"))
    if sampling is Sampling.BALLS_IN_BINS or not (known and stated.run.ordered):  # the epoch of a step is unknown
        phases = (Phase(min(phase.noise_multiplier for phase in phases), None, sum(phase.steps for phase in phases)),)
    draws, whole = _draws_of_epoch(stated, length), -(-used // size)
    ends = itertools.accumulate(phase.steps for phase in phases[:-1])
    why = "the noise changed inside an epoch: was the run resumed there, or was there a noise schedule?"
    resumed = any(end % draws for end in ends) and stated.need("resumed", why)
    phases = _after_resuming(phases, draws, whole) if resumed else _in_epochs(phases, draws, whole)
    uses = {"uses": used // records} if used > records else {}
    return phases, {"records": records, "batch_size": size, **uses}


def _refuse_carried_over(stated: Stated, records: int) -> None:
    """Refuse accumulated batches that do not fill the last step of an epoch.

    A program that keeps them for the first step of the next epoch may use a record twice in that step.
    """
    k, one = stated.count("accumulation"), stated.get("per_device_batch_size")
    batches = stated.get("loader_length")
    if batches is None and one is not None:
        share = one * stated.count("devices")
        batches = loader.loader_length(
            records * stated.count("uses"), int(share), drop_last=bool(stated.get("drop_last"))
        )
    if batches is not None and batches % k:
        raise NotApplicable(
            f"an epoch has {batches} batches, and {k} make a step: left-over batches may join the first step of the "
            "next epoch, which may then use a record twice",
            "accumulate a number of batches that divides those of an epoch",
        )


def _timed(stated: Stated, length: int | None) -> Phases:
    if stated.phases:
        return tuple(phase._replace(rate=None) for phase in stated.phases)
    return (Phase(multiplier(stated), None, _steps(stated, length)),)


def _draws_of_epoch(stated: Stated, length: int) -> int:
    """Return the least number of noisy steps of an epoch: programs differ in how they treat left-over batches."""
    k = stated.count("accumulation")
    if stated.get("loader_length") is not None:
        return max(1, length // k)
    if k == 1 and stated.count("devices") == 1:
        return length
    return max(1, int(stated.get("records")) * stated.count("uses") // (_batch(stated) or 1))


def _in_epochs(phases: Phases, length: int, whole: int) -> Phases:
    """Return phases with enough steps to cover every epoch that a phase touches: each may use a record.

    The engine counts ``whole`` steps per epoch, and a started epoch as a whole one. If the noise changes within an
    epoch, the least noise counts.

    >>> _in_epochs((Phase(2.0, None, 3), Phase(1.0, None, 1), Phase(3.0, None, 4)), 4, 4)
    (Phase(noise_multiplier=1.0, rate=None, steps=4), Phase(noise_multiplier=3.0, rate=None, steps=4))
    """
    epochs: dict[float, list[int]] = {}  # least noise -> number of epochs with it, and their steps
    taken, least = 0, math.inf  # of the current epoch
    for z, _, steps in phases:
        while steps:
            whole_ones = steps // length if not taken else 0
            part = whole_ones * length or min(steps, length - taken)
            taken, least, steps = taken + part, min(least, z), steps - part
            if taken >= length:
                _count(epochs, least, whole_ones or 1, taken)
                taken, least = 0, math.inf
    if taken:
        _count(epochs, least, 1, taken)
    return tuple(
        Phase(z, None, min(max(steps, (count - 1) * whole + 1), count * whole)) for z, (count, steps) in epochs.items()
    )


def _after_resuming(phases: Phases, length: int, whole: int) -> Phases:
    """Return phases with all epochs that each may touch: after resuming, a new loader starts a new epoch."""
    touched = [(phase, -(-(phase.steps - 1) // length) + 1) for phase in phases]
    return tuple(p._replace(steps=min(max(p.steps, (count - 1) * whole + 1), count * whole)) for p, count in touched)


def _count(epochs: dict[float, list[int]], least: float, count: int, steps: int) -> None:
    row = epochs.setdefault(least, [0, 0])
    row[0], row[1] = row[0] + count, row[1] + steps


# --- batch, length and steps ------------------------------------------------------------------------------------------


def _batch(stated: Stated) -> int | None:
    """Return the number of records of one noisy step; None if unknown.

    Raises:
        Missing: a batch size may be that of one device or of all devices.
    """
    own, one = stated.get("batch_size"), stated.get("per_device_batch_size")
    k = stated.count("accumulation")
    if one is None:
        devices = stated.count("devices") if own else 1
        if devices * k > 1 and own and not stated.facts["batch_size"].origin.startswith("--"):
            raise stated.missing(
                "per_device_batch_size",
                f"is {own} the batch size on one of {devices} devices x {k} accumulated, or (--batch-size) in total?",
            )
        return own if own is None else int(own)
    devices = int(stated.need("devices", f"a device has batches of {one}: how many were there?"))
    whole = int(one) * k * devices
    if own is not None and stated.get("auto_find_batch_size"):
        return int(own)
    if own is not None and own not in (whole, one):
        raise Missing("batch_size", f"batch_size is {own}, and {one} x {k} accumulated x {devices} devices is {whole}")
    if devices * k > 1:
        stated.remarks.append(f"a noisy step takes {one} records x {k} accumulated x {devices} devices = {whole}")
    return whole


def _length(stated: Stated) -> int | None:
    """Return the loader's batches of an epoch, else the noisy steps of an epoch; None if unknown."""
    length, records, size = stated.get("loader_length"), stated.get("records"), _batch(stated)
    dropped, used = stated.get("drop_last"), records and records * stated.count("uses")
    if length is not None:
        most = -(-used // max(1, size // stated.count("accumulation"))) if used and size else length
        refuse((length > most, f"{stated.facts['loader_length'].origin} is {length}, but {used} records fill {most} "
                "batches", "leave out one of them"))  # fmt: skip
        return int(length)
    if not used or size is None or (used % size and dropped is None):
        return None
    return loader.loader_length(int(used), size, drop_last=bool(dropped))


def _steps(stated: Stated, length: int | None) -> int:
    """Return the number of noisy steps."""
    steps, epochs, rate = stated.get("steps"), stated.get("epochs"), stated.get("sample_rate")
    if epochs is None or stated.is_final("steps"):
        return int(stated.need("steps", "the number of steps, or (--epochs) of epochs, is unknown"))
    if length is None and rate is None:
        raise _no_length(stated)
    of_epoch = int(length or math.ceil(down(1.0 / rate, 4.0)))
    of_epoch = loader.epoch_steps(of_epoch) if stated.of_opacus else of_epoch
    if length is not None and (k := stated.count("accumulation")) > 1:
        of_epoch = -(-_batches_of_epoch(stated, of_epoch) // k)  # some programs make a step of the left-over batches
    taken = max(1, math.ceil(float(epochs) * of_epoch))
    if steps is not None and steps != taken:
        origin = stated.facts["steps"].origin
        raise Missing("steps", f"{origin} is {steps}, but {epochs:g} epochs are {taken} steps: how many were taken?")
    return taken


def _batches_of_epoch(stated: Stated, steps: int) -> int:
    """Return the number of batches of an epoch, from its number of steps or of the loader's batches."""
    size, k = _batch(stated), stated.count("accumulation")
    if stated.get("loader_length") is not None or size is None or size % k:
        return steps if stated.get("loader_length") is not None else steps * k
    used = int(stated.get("records")) * stated.count("uses")
    return max(steps * k, loader.loader_length(used, size // k, drop_last=bool(stated.get("drop_last"))))


def _cap(stated: Stated) -> Mapping[str, int]:
    """Return the engine's parameters of Poisson batches that are truncated to a largest size."""
    most = stated.get("max_batch_size")
    if most is None:
        return {}
    if not stated.run.exact:
        _refuse_cut(
            stated, f"similar steps of over {long_history.MOST} different ones count at their largest rate",
            "give parts of the history as files, and add them up in a ledger",
        )  # fmt: skip
    records = int(stated.need("records", "a truncated batch depends on the number of records"))
    groups = stated.count("bands")
    if groups > 1:  # all of one size: JAX-Privacy discards left-over records
        stated.remarks.append(f"batches are truncated in groups of {records // groups} records, {records}/{groups}")
    return {"records": records // groups, "max_batch_size": int(most)}


def _refuse_cut(stated: Stated, rates: str, hint: str) -> None:
    """Refuse truncated batches whose rate is only known to be at most some number: a larger rate may hide more."""
    if stated.get("max_batch_size") is not None:
        raise NotApplicable(f"{rates}, and truncated batches may hide more at the larger one", hint)


def _is_number(text: str | None) -> bool:
    return bool(text) and str(text).replace(".", "", 1).isdecimal()


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-9 * max(one, other)
