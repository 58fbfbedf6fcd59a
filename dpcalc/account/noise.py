"""The noise multiplier of a step, from whatever says how much noise there was."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpcalc.account import loader
from dpcalc.account.forms import Phase
from dpcalc.account.stated import Claim, Missing, Stated
from dpcalc.errors import NotApplicable, SpecError
from dpcalc.numerics.floats import down


def multiplier(stated: Stated) -> float:
    """Return the multiplier of the noise on the sum of a step, rounded down; of a history, that of its last steps.

    Raises:
        Missing: nothing says it.
        SpecError: several facts do, and they differ.
    """
    if stated.phases:
        return stated.phases[-1].noise_multiplier
    if _layered(stated) and not stated.of_opacus:  # whose multiplier is over the norm of all clips
        stated.need(
            "layer_noise_multipliers", "layers are clipped by themselves: how much noise has each, over its clip?"
        )
        return _of_layers(stated)
    if not (said := [name for name in _READ if name in stated.facts]):
        raise stated.missing("noise_multiplier", "nothing says how much noise there was")
    first, *others = said
    z = _READ[first](stated)
    for name in others:
        try:
            other = _READ[name](stated)
        except Missing:  # of what it is over, and nothing depends on that
            continue
        if not math.isclose(z, other, rel_tol=1e-4):  # digits that a file leaves out
            one, two = stated.facts[first].origin, stated.facts[name].origin
            raise SpecError(f"by {one} z is {z:.6g}, and by {two} it is {other:.6g}", "leave out one of them")
    return z


def _layered(stated: Stated) -> bool:
    """Return whether the gradient of each layer is clipped: a file says so, or lists their clips."""
    clip = stated.facts.get("clip")
    return "layer" in stated.word("clipping") or (clip is not None and clip.value is None and bool(clip.text))


def _own(stated: Stated) -> float:
    return float(stated.get("noise_multiplier"))


def _of_layers(stated: Stated) -> float:
    z = loader.jointly((layer, 1) for layer in stated.get("layer_noise_multipliers"))
    stated.remarks.append(f"per-layer clips: all layers together have (sum of z_l^-2)^(-1/2) = {z:.6g}")
    return z


def _of_workers(stated: Stated) -> float:
    own = stated.get("worker_noise_multiplier")
    devices = stated.need("devices", "the noise of each worker adds up over the workers")
    z = down(own * math.sqrt(devices), 4.0)
    stated.remarks.append(
        f"{own:g} x sqrt({devices} workers) = {z:.6g}, where noises are independent and only the sum is seen"
    )
    return z


def _on_sum(stated: Stated) -> float:
    clip = stated.need("clip", "noise on the sum is over the clipping norm")
    return down(stated.get("noise_std_sum") / clip, 2.0)


def _on_mean(stated: Stated) -> float:
    on_mean, clip = stated.get("noise_std"), stated.need("clip", "noise on the mean is over the clipping norm")
    size = float(stated.need("divisor", "noise on the mean is over what the sum was divided by"))
    z = down(on_mean * size / clip, 4.0)
    stated.remarks.append(f"noise after averaging: std x divisor/clip = {on_mean:g} x {size:g}/{clip:g} = {z:.6g}")
    return z


_READ: dict[str, Callable[[Stated], float]] = {
    "noise_multiplier": _own, "layer_noise_multipliers": _of_layers, "worker_noise_multiplier": _of_workers,
    "noise_std_sum": _on_sum, "noise_std": _on_mean,
}  # fmt: skip
"""What says how much noise there was, and how it is read."""


def effective(stated: Stated, phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
    """Return phases with the multiplier that all releases of a step have together, a step for each batch drawn."""
    if (s := stated.get("count_noise_std")) is not None:
        why = "a count of unclipped records was released: of centred bits, or of raw ones"
        centred = stated.need("count", why) == "centred"
        counted = _with(phases, lambda z: loader.with_count(z, s, centred=centred))
        term = f"(z^-2 + {'(2 s)' if centred else 's'}^-2)^(-1/2) = {counted[-1].noise_multiplier:.6g}"
        truth = f"adaptive clipping releases a count too: {term}"
        stated.claims.append(Claim("the gradients' noise alone", truth, {"phases": phases}))
        phases = counted
    if stated.word("tool") == "tfprivacy" and (k := stated.count("accumulation")) > 1:
        added = _with(phases, lambda z: down(z * math.sqrt(k), 2.0))
        truth = (
            f"each of the {k} accumulated batches has noise of its own: z sqrt({k}) = {added[-1].noise_multiplier:.6g}"
        )
        stated.claims.append(Claim("the noise of one of the accumulated batches", truth, {"phases": phases}))
        phases = added
    if (k := stated.count("releases_per_batch")) > 1:
        batches = tuple(phase._replace(steps=-(-phase.steps // k)) for phase in phases)
        truth = f"each of {_total(batches)} batches was released {k} times, with z/sqrt({k}) together"
        stated.claims.append(Claim(f"{_total(phases)} steps, each with a draw of its own,", truth, {"phases": phases}))
        phases = _with(batches, lambda z: loader.jointly([(z, k)]))
    return phases


def _with(phases: tuple[Phase, ...], worth: Callable[[float], float]) -> tuple[Phase, ...]:
    return tuple(phase._replace(noise_multiplier=worth(phase.noise_multiplier)) for phase in phases)


def _total(phases: tuple[Phase, ...]) -> int:
    return sum(phase.steps for phase in phases)


def _both_epsilons(stated: Stated, claimed: float, true: float) -> str:
    """Return what two multipliers mean for the longest phase of a history; empty where that or delta is not known."""
    phase = max(stated.phases, key=lambda phase: phase.steps, default=None)
    if phase is None or phase.rate is None or (delta := stated.get("delta")) is None:
        return ""
    one, other = (loader.poisson_epsilon(z, phase.rate, phase.steps, delta[1]) for z in (true, claimed))
    return f", and epsilon {one:.5g} in the place of {other:.5g}"


def refuse_adaptive(stated: Stated) -> None:
    """Refuse Opacus' adaptive clipping, with what its noise would be worth if the size of a batch were a constant.

    Raises:
        NotApplicable: it was used.
    """
    s, of_opacus = stated.get("count_noise_std"), stated.word("tool") == "opacus"
    adaptive = s is not None or stated.word("clipping") == "adaptive" or stated.get("adaptive_clipping")
    if "adaclip" not in stated.word("optimizer") and not (of_opacus and adaptive):
        if adaptive:
            stated.need("count_noise_std", "adaptive clipping releases a count of records: with how much noise?")
        return
    would = ""
    if s is not None:
        z = multiplier(stated)
        truly = loader.opacus_adaptive_clipping(z, s)
        would = f"; were that a constant, z = {z:g} would be worth (z^-2 + 3/(4 s^2))^(-1/2) = {truly:.6g}"
        would += _both_epsilons(stated, z, truly)
    raise NotApplicable(
        f"{stated.run.shown}: Opacus' adaptive clipping releases a raw count and divides by the batch that was "
        f"drawn: no account holds{would}",
        "clip at a constant, or release centred counts and divide by a constant",
    )
