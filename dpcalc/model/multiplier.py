"""Runs of DP-SGD on clipped gradients: the rate, the number of steps and the noise multiplier."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpcalc.errors import SpecError
from dpcalc.model.algorithm import Algorithm, Source
from dpcalc.model.clipping import check_model
from dpcalc.model.parameter import to_give
from dpcalc.model.quantities import BANDED, Mechanism, Sampling
from dpcalc.numerics.floats import UNIT, down, up

if TYPE_CHECKING:
    from dpcalc.model.draft import Description
    from dpcalc.model.matrix_file import Matrix


def fill_in(algorithm: Algorithm, draft: Description) -> None:
    """Fill in what follows from the batches and the noise.

    Raises:
        SpecError: the given parameters contradict each other.
    """
    check_model(draft)
    if draft.has("schedule_factor") and not draft.has("schedule"):
        raise SpecError("schedule_factor is on the noise of a schedule, and there is none", "give --schedule")
    if algorithm.correlated:
        if draft.has("schedule"):
            _describe_matrix(draft)
        _fill_uses(draft)
        mechanism = draft.get("mechanism")
        left_open = mechanism is None or (mechanism in BANDED and not draft.has("bands"))
        if mechanism is Mechanism.BEST or (left_open and not draft.has("noise_multiplier")):
            _choose_matrix(draft)
    if draft.get("sampling") is Sampling.FULL:
        _fill_full(draft)
    else:
        _fill_rate(draft)
    _fill_steps(draft)
    _fill_noise(draft)
    if draft.has("radius") and not draft.has("diameter"):
        draft.put("diameter", 2.0 * draft["radius"], Source.DERIVED)


def _fill_uses(draft: Description) -> None:
    """Fill in how often a record is used, and how many steps lie between its uses, from the passes over the records.

    In a fixed order, each pass uses a record once, a whole pass after its last use. If every pass is shuffled again,
    the last step of one and the first step of the next may use the same record.

    Raises:
        SpecError: passes have different numbers of steps, or a parameter that follows from the passes is given too.
    """
    if draft.has("epochs") and (draft.has("participations") or draft.has("separation")):
        raise SpecError(
            "participations and separation follow from the epochs, and one of them is given too",
            "leave out --epochs, or --participations and --separation",
        )
    if draft.get("mechanism") is Mechanism.TREE and (draft.has("participations") or draft.has("separation")):
        raise SpecError(
            "what a tree is sensitive to is known where every pass has the same order, and separation or "
            "participations is given",
            "give --epochs and --steps, or --epochs, --records and --batch-size, or use another --mechanism",
        )
    epochs, steps = draft.get("epochs"), draft.get("steps")
    length = -(-draft["records"] // draft["batch_size"]) if draft.has("records", "batch_size") else None
    if length is None and epochs and steps:
        if steps % epochs:
            raise SpecError(f"{steps} steps are no whole number in each of {epochs} epochs", "change one of the two")
        length = steps // epochs
    elif epochs and steps and steps != epochs * (length or 0):
        raise SpecError("both steps and epochs are given", "give one of the two")
    if length is None:
        return
    if steps is None and epochs:
        draft.put("steps", epochs * length, Source.DERIVED)
    if draft.has("steps"):
        draft.fill("participations", -(-draft["steps"] // length), Source.DERIVED)
    if draft.get("sampling") is Sampling.POISSON and not draft.has("batch_size"):
        draft.fill("sample_rate", up(1.0 / length), Source.DERIVED)
    draft.fill("separation", 1 if draft.get("sampling") is Sampling.SHUFFLE else length, Source.DERIVED)


def _describe_matrix(draft: Description) -> None:
    """Fill in the parameters that follow from a matrix in a file.

    Raises:
        SpecError: one of them is also given.
    """
    matrix: Matrix = draft["schedule"]
    of_matrix = {"mechanism": Mechanism.FILE, "steps": len(matrix), "bands": matrix.bands}
    for name, value in of_matrix.items():
        if draft.get(name, value) != value or (name in draft and name == "bands"):
            raise SpecError(f"{name} is that of the matrix in {matrix.path}, {value}, and also given", "leave it out")
        draft.fill(name, value, Source.DERIVED)


def _choose_matrix(draft: Description) -> None:
    """Fill in the matrix with the least noise in the iterates.

    Raises:
        SpecError: the best matrix is asked for but cannot be determined.
    """
    wanted = draft.get("mechanism", Mechanism.BEST)
    if not draft.has("steps", "participations", "separation") or draft.get("sampling") not in (None, Sampling.SHUFFLE):
        if draft.has("mechanism") and wanted is Mechanism.BEST:
            raise SpecError(
                "the best mechanism is chosen for batches in a public order, whose passes are known",
                "give --steps and --epochs without --sampling; or name it, as --mechanism banded-sqrt --bands 4",
            )
        return
    from dpcalc.model.strategy import at_most, best, strategies
    from dpcalc.model.workload import Workload

    steps, separation = draft["steps"], draft["separation"]
    repeats = draft.sources["separation"] is Source.DERIVED and separation > 1
    workload = Workload.of(draft.get)
    uses = at_most(draft["participations"], steps, separation)
    chosen = best(strategies(steps, uses, separation, wanted, repeats=repeats, workload=workload), separation, workload)
    if wanted is Mechanism.BEST:
        draft.put("mechanism", chosen.mechanism, Source.CHOSEN)
    if chosen.mechanism in BANDED:
        draft.put("bands", chosen.bands, Source.CHOSEN)


def _fill_full(draft: Description) -> None:
    given = [name for name in ("batch_size", "sample_rate") if name in draft]
    if draft.has("batch_size") and draft["batch_size"] == draft.get("records"):
        given.remove("batch_size")
    if given:
        flags = " and ".join("--" + name.replace("_", "-") for name in given)
        raise SpecError("a full batch is all records", f"leave out {flags}, or choose another --sampling")


def _fill_rate(draft: Description) -> None:
    """Fill in the rate from the batch size."""
    records, size = draft.get("records"), draft.get("batch_size")
    if records is not None and size is not None and size > records:
        raise SpecError(f"batch size {size} exceeds the {records} records", "use a smaller one")
    if draft.has("sample_rate"):
        if size is not None and records is not None:
            raise SpecError("sample_rate is given and also follows from batch_size and records", "give one of the two")
        if draft.get("sampling", Sampling.POISSON) is not Sampling.POISSON:
            raise SpecError(
                f"sample_rate is a probability of Poisson sampling, and the sampling is {draft['sampling']}",
                "give --batch-size and --records, or --sampling poisson",
            )
    elif records is not None and size is not None:
        draft.put("sample_rate", min(1.0, up(size / records)), Source.DERIVED)


def _fill_steps(draft: Description) -> None:
    """Fill in the number of steps from the number of epochs; a short batch counts as one step."""
    if not draft.has("epochs") or draft.has("separation"):
        return
    if draft.has("steps"):
        raise SpecError("both steps and epochs are given", "give one of the two")
    if draft.get("sampling") is Sampling.FULL:
        steps_of_pass = 1
    elif draft.has("batch_size", "records"):
        steps_of_pass = -(-draft.get("uses", 1) * draft["records"] // draft["batch_size"])
    elif draft.has("sample_rate"):
        steps_of_pass = _steps_of_epoch(draft["sample_rate"])
    else:
        return
    draft.put("steps", draft["epochs"] * steps_of_pass, Source.DERIVED)


def _steps_of_epoch(rate: float) -> int:
    """Return 1/rate, rounded up; for a decimal such as 0.01 it is exactly 100."""
    steps = 1.0 / rate
    whole = round(steps)
    return whole if abs(steps - whole) <= 2.0 * UNIT * steps else math.ceil(up(steps))


def _fill_noise(draft: Description) -> None:
    """Fill in the noise multiplier from noise on the mean gradient, or the reverse."""
    batch = "records" if draft.get("sampling") is Sampling.FULL else "batch_size"
    size = draft.get(batch)
    if not draft.has("noise_std"):
        if draft.has("noise_multiplier", "clip") and size is not None:
            draft.put("noise_std", draft["noise_multiplier"] * draft["clip"] / size, Source.DERIVED)
        return
    if draft.has("noise_multiplier"):
        raise SpecError("both noise_std and noise_multiplier are given", "give one of the two")
    if not draft.has("clip") or size is None:
        lacking = [name for name, value in (("clip", draft.get("clip")), (batch, size)) if value is None]
        raise SpecError(
            "noise_std is that on the mean gradient: the noise multiplier is noise_std x batch_size / clip",
            f"{to_give(lacking)}; or, if {draft['noise_std']:g} is the noise multiplier, give it by --noise-multiplier",
        )
    draft.put("noise_multiplier", down(draft["noise_std"] * size / draft["clip"], 4.0), Source.DERIVED)
