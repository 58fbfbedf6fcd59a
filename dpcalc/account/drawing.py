"""Rate, steps and batches of a run, from its loader, its devices and its epochs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from dpcalc.account import loader
from dpcalc.account.forms import Phase
from dpcalc.account.noise import multiplier
from dpcalc.account.stated import Claim, Missing, Stated
from dpcalc.errors import NotApplicable, SpecError, refuse
from dpcalc.model.quantities import Sampling
from dpcalc.numerics.floats import down, up

_ONE_ROUND = (Sampling.SHUFFLE, Sampling.BALLS_IN_BINS)
Phases = tuple[Phase, ...]


def phases_of(stated: Stated, sampling: Sampling) -> tuple[Phases, Mapping[str, int]]:
    """Return the phases of a run, and records and batch size, where batches have a size.

    Raises:
        Missing: a fact is needed that nothing says.
        NotApplicable: no account holds for such batches.
    """
    refuse((stated.count("uses") > 1 and sampling is not Sampling.BALLS_IN_BINS,
            f"a record is in {stated.count('uses')} steps of an epoch, and the sampling is {sampling}",
            "uses is of balls-in-bins; of other batches say how they were drawn"))  # fmt: skip
    if sampling is Sampling.POISSON:
        return (_checked(stated) if stated.phases else (_poisson(stated),)), _cap(stated)
    if sampling is Sampling.FULL:
        return _timed(stated, 1), {}
    return _of_batches(stated, sampling)


# --- records that toss coins ------------------------------------------------------------------------------------------


def _poisson(stated: Stated) -> Phase:
    """Return the one phase of a run with one rate: of a batch, where several make a step, each by coins of its own."""
    k, length = stated.count("accumulation"), _length(stated)
    batches = k if stated.get("loader_length") is None else 1  # that make one of the length
    rate, one = _rates(stated, length, k, batches)
    steps = _steps(stated, length)
    bands = stated.count("bands") if stated.word("tool") == "jaxprivacy" else 1  # elsewhere bands are of images
    if bands > 1:
        stated.remarks.append(f"a record is in one of {bands} groups, which are drawn from in turn: {steps} steps are "
                              f"{-(-steps // bands)} draws of it")  # fmt: skip
        steps = -(-steps // bands)
    phase = Phase(multiplier(stated), rate, steps)
    if k > 1:
        phase = _by_coins(stated, k, (phase,), "one draw for all of a step", (phase._replace(rate=one),))[0]
    _claim_ratio(stated, rate, steps)
    _claim_part(stated, rate, steps)
    return phase


def _rates(stated: Stated, length: int | None, k: int, batches: int) -> tuple[float, float]:
    """Return the rate of a step, and of each of the k batches that make it, rounded up.

    An epoch has ``length`` times so many ``batches``. What is said may be either rate.
    """
    said = stated.get("sample_rate")
    if length is None:
        if said is None:
            raise _no_length(stated)
        if k > 1:
            raise stated.missing("loader_length", f"is {said:g} the rate of one of {k} accumulated batches, or of "
                                 "their step? The number of batches tells; or, if a step is one draw at this rate, "
                                 "leave out the accumulation")  # fmt: skip
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
                    "leave out the rate, or what the number of batches follows from")  # fmt: skip


def _claim_part(stated: Stated, rate: float, steps: int) -> None:
    """Say what the records of one device, or those in memory at once, would give in the place of a batch."""
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
    """Return one over the batches of an epoch; batch over records, where that is larger and the loader not Opacus'."""
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
    stated.remarks.append(f"the larger of 1/{length} and {size}/{records} is taken as the rate; Opacus' loader draws "
                          f"at the first, and --loader-length {length} says that yours does")  # fmt: skip
    return max(1.0 / length, ratio)


def _no_length(stated: Stated) -> Missing:
    batch, records = _batch(stated), stated.get("records")
    if batch is None:
        return stated.missing(
            "loader_length", "nothing says at which rate records were drawn, or how many batches there were"
        )
    if records is None:
        return stated.missing("records", "how many batches an epoch has depends on the number of records")
    return stated.missing("drop_last", f"{records} records and batches of {batch}: is a short last batch left out?")


def _checked(stated: Stated) -> Phases:
    """Return the phases of a history or an event, each at the largest rate that anything says."""
    length, own = stated.get("loader_length"), stated.get("sample_rate")
    least = max(0.0 if length is None else 1.0 / length, own or 0.0)
    if any((phase.rate or 1.0) < least * (1.0 - 1e-12) for phase in stated.phases):
        stated.remarks.append(f"the history has a smaller rate than the loader, {least:.6g}: the larger one is taken")
    phases = tuple(phase._replace(rate=max(phase.rate or 1.0, least)) for phase in stated.phases)
    phases = _accumulated(stated, phases, length)
    steps, rate = sum(phase.steps for phase in phases), max(phase.rate or 1.0 for phase in phases)
    divisor, records = stated.get("divisor"), stated.get("records")
    expected = int((records or 0) * rate) / stated.count("devices")  # as Opacus computes it
    if stated.of_opacus and records and _is_number(divisor) and abs(float(divisor) - expected) >= 1.0:
        stated.remarks.append(
            f"the divisor is {divisor}, and records x rate / devices is {expected:.6g}: are they of one loader?"
        )
    if length and steps % length:
        stated.remarks.append(
            f"{steps} steps are no whole number of epochs of {length}: the run was stopped or resumed"
        )
    _claim_ratio(stated, rate, steps)
    return phases


def _accumulated(stated: Stated, phases: Phases, length: int | None) -> Phases:
    """Return phases at the rate of one batch, where several make a step, each drawn by coins of its own.

    Opacus' history has their rates added up, but with ghost clipping the rate of one. A record that is in several of
    them counts as often: it is as so many records, each with a coin of its own.
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
    """Return phases at the rate of one of k batches that make a step; ``reading`` is what takes ``whole`` instead."""
    truth = f"{k} batches make a step, and a record is in each of them by itself, at the rate of one batch"
    stated.claims.append(Claim(reading, truth, {"phases": whole}))
    stated.remarks.append(
        f"one record has {k} independent coins in every step, one for each accumulated batch, and is accounted for as "
        f"{k} records with one coin each: groups of {k}, or any {k} records, are one record here"
    )
    stated.coins = k
    return shares or tuple(phase._replace(rate=min(1.0, up((phase.rate or 1.0) / k))) for phase in whole)


def _claim_ratio(stated: Stated, rate: float, steps: int) -> None:
    """Say what batch size over records would give as the rate, where the run drew at another."""
    try:
        records, size, epochs = stated.get("records"), _batch(stated), stated.get("epochs")
    except Missing:  # nothing of the account depends on it
        return
    if not records or not size or size > records or _near(rate, size / records):
        return
    passes = epochs or steps / max(1, round(1.0 / rate))
    claimed = Phase(multiplier(stated), size / records, max(1, math.ceil(passes * -(-records // size))))
    reading = f"batch/records = {size}/{records} = {size / records:.6g} as the rate, for {claimed.steps} steps,"
    stated.claims.append(Claim.poisson(reading, (claimed,), f"the rate was {rate:.6g}, {steps} times"))


# --- batches of a size ------------------------------------------------------------------------------------------------


def _of_batches(stated: Stated, sampling: Sampling) -> tuple[Phases, Mapping[str, int]]:
    """Return the phases, and what the engine is told of the batches."""
    records = int(stated.need("records", f"with sampling {sampling} the account needs the number of records"))
    length, size = _length(stated), _batch(stated)
    phases = _timed(stated, length)
    if sampling not in _ONE_ROUND:
        if size is None:
            raise stated.missing("batch_size", f"with sampling {sampling} the account needs the batch size")
        return phases, {"records": records, "batch_size": size}
    if length is None:
        raise _no_length(stated)
    if stated.word("optimizer").startswith("distributed"):
        stated.need("devices", "several workers share the records of an epoch: how many were there?")
    if stated.count("devices") > 1 and not stated.get("drop_last") and records % (size or stated.count("devices")):
        raise NotApplicable(
            f"workers share {records} records, no whole batches: samplers use some twice in an epoch to fill up",
            "drop the last batch (drop_last), or train on a number of records that makes whole batches",
        )
    _refuse_carried_over(stated, records)
    batches = stated.count("accumulation") if stated.get("loader_length") is not None else 1
    rate = min(1.0, stated.count("uses") * batches / length)
    claimed = tuple(phase._replace(rate=rate) for phase in phases)
    reading = f"Poisson sampling at rate {rate:.6g}, which accountants assume,"
    stated.claims.append(Claim.poisson(reading, claimed, f"batches were drawn by sampling {sampling}"))
    used = records * stated.count("uses")
    if size is None or sampling is not Sampling.SHUFFLE or -(-used // size) < length // batches:
        size = -(-used // -(-length // batches))  # no more steps of an epoch than there were
    known = stated.count("accumulation") == 1 and (stated.count("devices") == 1 or stated.get("loader_length"))
    if sampling is Sampling.BALLS_IN_BINS or not (known and stated.run.ordered):  # no one knows the epoch of a step
        phases = (Phase(min(phase.noise_multiplier for phase in phases), None, sum(phase.steps for phase in phases)),)
    draws, whole = _draws_of_epoch(stated, length), -(-used // size)
    ends = itertools.accumulate(phase.steps for phase in phases[:-1])
    why = "the noise changed inside an epoch: was the run resumed there, or had the steps a schedule?"
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
        share = one * stated.count("devices") * stated.count("nodes")
        batches = loader.loader_length(
            records * stated.count("uses"), int(share), drop_last=bool(stated.get("drop_last"))
        )
    if batches is not None and batches % k:
        raise NotApplicable(
            f"an epoch has {batches} batches, and {k} make a step: those left over may join the first step of the next "
            "epoch, which may then use a record twice",
            "let the accumulated batches divide those of an epoch",
        )


def _timed(stated: Stated, length: int | None) -> Phases:
    if stated.phases:
        return tuple(phase._replace(rate=None) for phase in stated.phases)
    return (Phase(multiplier(stated), None, _steps(stated, length)),)


def _draws_of_epoch(stated: Stated, length: int) -> int:
    """Return the least number of noisy steps of an epoch: programs differ in what becomes of batches left over."""
    k = stated.count("accumulation")
    if stated.get("loader_length") is not None:
        return max(1, length // k)
    if k == 1 and stated.count("devices") == 1:
        return length
    return max(1, int(stated.get("records")) * stated.count("uses") // (_batch(stated) or 1))


def _in_epochs(phases: Phases, length: int, whole: int) -> Phases:
    """Return phases with so many steps that all epochs are counted which a phase touches: a record may be used in each.

    The engine counts ``whole`` steps an epoch, and an epoch that was begun as one. Of an epoch whose noise changes the
    least counts.

    >>> _in_epochs((Phase(2.0, None, 3), Phase(1.0, None, 1), Phase(3.0, None, 4)), 4, 4)
    (Phase(noise_multiplier=1.0, rate=None, steps=4), Phase(noise_multiplier=3.0, rate=None, steps=4))
    """
    epochs: dict[float, list[int]] = {}  # of each noise: how many have it as their least, and their steps
    taken, least = 0, math.inf  # of the epoch that was begun
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
    """Return phases with all epochs that each may touch, wherever its own began: a new loader starts an epoch anew."""
    touched = [(phase, -(-(phase.steps - 1) // length) + 1) for phase in phases]
    return tuple(p._replace(steps=min(max(p.steps, (count - 1) * whole + 1), count * whole)) for p, count in touched)


def _count(epochs: dict[float, list[int]], least: float, count: int, steps: int) -> None:
    row = epochs.setdefault(least, [0, 0])
    row[0], row[1] = row[0] + count, row[1] + steps


# --- batch, length and steps ------------------------------------------------------------------------------------------


def _batch(stated: Stated) -> int | None:
    """Return the records of one noisy step, where the facts give them.

    Raises:
        Missing: it is not clear whether a batch size is of one device or of all.
    """
    own, one = stated.get("batch_size"), stated.get("per_device_batch_size")
    k = stated.count("accumulation")
    if one is None:
        devices = stated.count("devices") * stated.count("nodes") if own else 1
        if devices * k > 1 and own and not stated.facts["batch_size"].origin.startswith("--"):
            raise stated.missing(
                "per_device_batch_size",
                f"is a batch of {own} that of one of {devices} devices x {k} accumulated, or (--batch-size) of all?",
            )
        return own if own is None else int(own)
    devices = int(stated.need("devices", f"a device has batches of {one}: how many were there?")) * stated.count(
        "nodes"
    )
    whole = int(one) * k * devices
    if own is not None and stated.get("auto_find_batch_size"):
        return int(own)
    if own is not None and own not in (whole, one):
        raise Missing("batch_size", f"batch_size is {own}, and {one} x {k} accumulated x {devices} devices is {whole}")
    if devices * k > 1:
        stated.remarks.append(f"a noisy step takes {one} records x {k} accumulated x {devices} devices = {whole}")
    return whole


def _length(stated: Stated) -> int | None:
    """Return the batches of an epoch that the loader has, else its noisy steps, where the facts give them."""
    if (length := stated.get("loader_length")) is not None:
        return int(length)
    records, size, dropped = stated.get("records"), _batch(stated), stated.get("drop_last")
    used = records and records * stated.count("uses")
    if not used or size is None or (used % size and dropped is None):
        return None
    return loader.loader_length(int(used), size, drop_last=bool(dropped))


def _steps(stated: Stated, length: int | None) -> int:
    """Return the number of noisy steps."""
    steps, epochs, rate = stated.get("steps"), stated.get("epochs"), stated.get("sample_rate")
    if epochs is None or stated.is_final("steps"):
        return int(stated.need("steps", "nothing says how many steps were taken, or (--epochs) epochs"))
    if length is None and rate is None:
        raise _unknown_length(stated, float(epochs))
    of_epoch = int(length or math.ceil(down(1.0 / rate, 4.0)))
    of_epoch = loader.epoch_steps(of_epoch) if stated.of_opacus else of_epoch
    if length is not None and (k := stated.count("accumulation")) > 1:
        of_epoch = -(-_batches_of_epoch(stated, of_epoch) // k)  # of batches left over, some programs make a step
    taken = max(1, math.ceil(float(epochs) * of_epoch))
    if steps is not None and steps != taken:
        origin = stated.facts["steps"].origin
        raise Missing("steps", f"{origin} is {steps}, and {epochs:g} epochs are {taken} steps: how many were taken?")
    return taken


def _batches_of_epoch(stated: Stated, steps: int) -> int:
    """Return the batches of an epoch of so many steps, or of so many batches of a loader, each by itself."""
    size, k = _batch(stated), stated.count("accumulation")
    if stated.get("loader_length") is not None or size is None or size % k:
        return steps if stated.get("loader_length") is not None else steps * k
    used = int(stated.get("records")) * stated.count("uses")
    return max(steps * k, loader.loader_length(used, size // k, drop_last=bool(stated.get("drop_last"))))


def _unknown_length(stated: Stated, epochs: float) -> Missing:
    """Return the question for what an epoch's number of steps follows from: the first that is not known."""
    if _batch(stated) is None:
        return stated.missing("steps", f"{epochs:g} epochs, and nothing says how many steps one has")
    if stated.get("records") is None:
        return stated.missing("records", f"{epochs:g} epochs, and nothing says of how many records")
    return stated.missing("drop_last", "batches do not divide the records: is the short last one left out?")


def _cap(stated: Stated) -> Mapping[str, int]:
    """Return what the engine is told of Poisson batches that are cut to a largest size."""
    most = stated.get("max_batch_size")
    if most is None:
        return {}
    records = int(stated.need("records", "what a cut batch keeps depends on n"))
    groups = stated.count("bands")
    if groups > 1:  # all of one size: JAX-Privacy discards those left over
        stated.remarks.append(f"batches are cut in groups of {records // groups} records, {records}/{groups}")
    return {"records": records // groups, "max_batch_size": int(most)}


def _is_number(text: str | None) -> bool:
    return bool(text) and str(text).replace(".", "", 1).isdecimal()


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-9 * max(one, other)
