"""The noise multiplier of a step, from any of the facts that determine it."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpcalc.account import loader
from dpcalc.account.forms import Phase
from dpcalc.account.stated import Claim, Missing, Stated
from dpcalc.errors import NotApplicable, SpecError
from dpcalc.numerics.floats import down


def multiplier(stated: Stated) -> float:
    """Return the multiplier of the noise on the sum of a step, rounded down; for a history, of its last steps.

    Raises:
        Missing: no fact determines it.
        SpecError: several facts determine it and differ.
    """
    if stated.phases:
        return stated.phases[-1].noise_multiplier
    if _layered(stated) and not stated.of_opacus:  # in Opacus the multiplier is relative to the norm of all clips
        stated.need(
            "layer_noise_multipliers",
            "layers are clipped separately: what is the noise of each, divided by its clipping norm?",
        )
        return _of_layers(stated)
    if not (said := [name for name in _READ if name in stated.facts]):
        why = [remark for remark in stated.run.remarks if "noise" in remark]
        raise stated.missing("noise_multiplier", "; ".join(["the amount of noise is unknown", *why]))
    first, *others = said
    z = _READ[first](stated)
    for name in others:
        try:
            other = _READ[name](stated)
        except Missing:  # its divisor is unknown, and nothing depends on it
            continue
        if not math.isclose(z, other, rel_tol=1e-4):  # the file may be rounded
            one, two = stated.facts[first].origin, stated.facts[name].origin
            raise SpecError(f"{one} gives z = {z:.6g}, but {two} gives {other:.6g}", "leave out one of them")
    return z


def _layered(stated: Stated) -> bool:
    """Return whether the gradient of each layer is clipped: a file says so, or lists the clipping norms."""
    said = filter(None, map(stated.facts.get, ("clip", "layer_noise_multipliers")))
    return "layer" in stated.word("clipping") or any(
        one.value is None and one.text and "$" not in one.text for one in said
    )


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
        f"{own:g} x sqrt({devices} workers) = {z:.6g}, if noises are independent and only the sum is released"
    )
    return z


def _on_sum(stated: Stated) -> float:
    clip = stated.need("clip", "the noise multiplier is the noise on the sum divided by the clipping norm")
    return down(stated.get("noise_std_sum") / clip, 2.0)


def _on_mean(stated: Stated) -> float:
    on_mean, clip = (
        stated.get("noise_std"),
        stated.need("clip", "the noise multiplier is relative to the clipping norm"),
    )
    size = float(stated.need("divisor", "the noise is on the mean: what was the sum divided by?"))
    z = down(on_mean * size / clip, 4.0)
    stated.remarks.append(f"noise after averaging: std x divisor/clip = {on_mean:g} x {size:g}/{clip:g} = {z:.6g}")
    return z


_READ: dict[str, Callable[[Stated], float]] = {
    "noise_multiplier": _own, "layer_noise_multipliers": _of_layers, "worker_noise_multiplier": _of_workers,
    "noise_std_sum": _on_sum, "noise_std": _on_mean,
}  # fmt: skip
"""The facts that determine the noise, and how each is read."""


def effective(stated: Stated, phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
    """Return phases with the joint multiplier of all releases of a step, one step per drawn batch."""
    if (s := stated.get("count_noise_std")) is not None:
        why = "a count of unclipped records was released: with centred bits or raw bits?"
        centred = stated.need("count", why) == "centred"
        counted = _with(phases, lambda z: loader.with_count(z, s, centred=centred))
        term = f"(z^-2 + {'(2 s)' if centred else 's'}^-2)^(-1/2) = {counted[-1].noise_multiplier:.6g}"
        truth = f"adaptive clipping releases a count too: {term}"
        stated.claims.append(Claim("the gradients' noise alone", truth, {"phases": phases}))
        phases = counted
    if stated.word("tool") == "tfprivacy" and (k := stated.count("accumulation")) > 1:
        added = _with(phases, lambda z: down(z * math.sqrt(k), 2.0))
        truth = f"each of the {k} accumulated batches has its own noise: z sqrt({k}) = {added[-1].noise_multiplier:.6g}"
        stated.claims.append(Claim("the noise of one of the accumulated batches", truth, {"phases": phases}))
        phases = added
    if (k := stated.count("releases_per_batch")) > 1:
        batches = tuple(phase._replace(steps=-(-phase.steps // k)) for phase in phases)
        truth = f"each of {_total(batches)} batches was released {k} times, jointly with multiplier z/sqrt({k})"
        stated.claims.append(Claim(f"{_total(phases)} steps, each with its own draw,", truth, {"phases": phases}))
        phases = _with(batches, lambda z: loader.jointly([(z, k)]))
    return phases


def _with(phases: tuple[Phase, ...], worth: Callable[[float], float]) -> tuple[Phase, ...]:
    return tuple(phase._replace(noise_multiplier=worth(phase.noise_multiplier)) for phase in phases)


def _total(phases: tuple[Phase, ...]) -> int:
    return sum(phase.steps for phase in phases)


def _both_epsilons(stated: Stated, claimed: float, true: float) -> str:
    """Return the epsilons of two multipliers in the longest phase of a history; empty if it or delta is unknown."""
    phase = max(stated.phases, key=lambda phase: phase.steps, default=None)
    if phase is None or phase.rate is None or (delta := stated.get("delta")) is None:
        return ""
    one, other = (loader.poisson_epsilon(z, phase.rate, phase.steps, delta[1]) for z in (true, claimed))
    return f", and epsilon {one:.5g} instead of {other:.5g}"


def refuse_adaptive(stated: Stated) -> None:
    """Refuse Opacus' adaptive clipping, and state the multiplier that it would have with a constant batch size.

    Raises:
        NotApplicable: adaptive clipping was used.
    """
    s, of_opacus = stated.get("count_noise_std"), stated.word("tool") == "opacus"
    adaptive = s is not None or "adaptive" in stated.word("clipping") or stated.get("adaptive_clipping")
    if "adaclip" not in stated.word("optimizer") and not (of_opacus and adaptive):
        if adaptive:
            stated.need("count_noise_std", "adaptive clipping releases a count of records: what is the noise on it?")
        return
    would = ""
    if s is not None:
        z = multiplier(stated)
        truly = loader.opacus_adaptive_clipping(z, s)
        would = f"; with a constant batch size, z = {z:g} would be worth (z^-2 + 3/(4 s^2))^(-1/2) = {truly:.6g}"
        would += _both_epsilons(stated, z, truly)
    raise NotApplicable(
        f"{stated.run.shown}: Opacus' adaptive clipping releases a raw count and divides by the size of the drawn "
        f"batch: no account holds{would}",
        "clip at a constant, or release centred counts and divide by a constant",
    )
