"""From what a person says of a run to the run, for one command."""

from __future__ import annotations

import math
from collections.abc import Collection

from dpcalc.engine.commands import Command, columns_of, taken_by
from dpcalc.errors import SpecError
from dpcalc.model.algorithm import ALGORITHMS, CATALOGUE, Source, algorithm_meant_by, released
from dpcalc.model.draft import Description
from dpcalc.model.loss_class import convex_if_clipped
from dpcalc.model.parameter import check
from dpcalc.model.quantities import Given, LossClass, Model, Releases
from dpcalc.model.run import Run, describe
from dpcalc.notes import LeftOut, LinearClip, LossDomain, Note

_IMMATERIAL = frozenset({"index", "last_batch", "permutation"})
"""Parameters that say nothing of an algorithm which does not take them: a random order has no position to choose."""


_ANY_LOSS = "give --loss, for example --loss logistic --feature-bound 1"


def run_of(command: Command, description: Description) -> tuple[Command, Run, tuple[Note, ...]]:
    """Return the command as it speaks of the algorithm, the run described, and notes on the two.

    Raises:
        SpecError: the description is malformed, or is of something that the algorithm does not do.
    """
    algorithm = algorithm_of(command, description)
    notes: tuple[Note, ...] = ()
    taken: Collection[str] = command.parameters
    if command.compares:
        notes = _fit_to(algorithm, description)
        command, taken = command._replace(columns=columns_of(algorithm)), taken_by(algorithm)
    elif strange := [name for name in description if name in taken and name not in taken_by(algorithm)]:
        raise _stranger(algorithm, strange, command)
    add_loss_constants(description, {name for name in taken if name in taken_by(algorithm)})
    if description.has("loss", "radius"):
        notes += (LossDomain(radius=description["radius"]),)
    loss, model, classes = (description.get(name) for name in ("loss", "model", "classes"))
    if description.has("clip") and convex_if_clipped(loss, model, classes):
        notes += (LinearClip(regularised=bool(description.get("regularisation")), capped=model == Model.CAPPED),)
    if not ALGORITHMS[algorithm].clipped and description.take("release", Releases.LAST) == Releases.EPOCH:
        algorithm = released(algorithm)
    if description.has("schedule", "noise_multiplier") and not ALGORITHMS[algorithm].clipped:
        raise SpecError("a schedule has noise of its own, and noise_multiplier is given", "use a column noise_std")
    if description.has("schedule") and description.get("regularisation"):
        raise SpecError("a schedule is not combined with a regularised loss", "describe the steps' maps in the file")
    record = ALGORITHMS[algorithm]
    if description.has("index") and not record.indexed:  # no position of a record is another than the others
        check("index", description.take("index"))
        notes += (LeftOut(algorithm=record.base, parameter="index"),)
    if (record.chained and not record.continues) or description.has("schedule"):
        _read_schedule(command, algorithm, description)
    return command, describe(algorithm, description.values, description.sources), notes


def algorithm_of(command: Command, description: Description) -> str:
    """Return the algorithm, taken out of the description.

    Raises:
        SpecError: it is not of this command, or is not named and must be.
    """
    names = ", ".join(command.algorithms)
    if not description.has("algorithm") and command.compares:
        raise SpecError(
            "Which algorithm? Give --algorithm.",
            f"one of {names}; or several of them, or all; for example --algorithm {command.default}",
        )
    algorithm = str(description.take("algorithm", command.default))
    if algorithm not in command.algorithms:
        meant = algorithm_meant_by(algorithm)
        hint = f"did you mean {meant}?" if meant in command.algorithms else None
        raise SpecError(f"algorithm is {algorithm!r}; it must be one of {names}", hint)
    return algorithm


def add_loss_constants(description: Description, taken: Collection[str], *, risk: bool = False) -> None:
    """Add those constants of the loss named, if one is, that are taken.

    Raises:
        SpecError: they are also given, or a parameter of a loss is and no loss.
    """
    of_the_loss = [name for name in CATALOGUE if name != "loss" and name in description]
    if not description.has("loss"):
        alone = [name for name in of_the_loss if name != "radius"]
        if alone:
            raise SpecError(f"{', '.join(alone)} describes a loss, and none is named", _ANY_LOSS)
        return
    checked = {name: float(check(name, description[name])) for name in of_the_loss}
    from dpcalc.model import loss as losses

    clip = float(check("clip", description["clip"])) if description.has("clip") and "clip" in taken else math.inf
    named = str(check("loss", description["loss"]))
    constants = losses.constants(named, checked, risk=risk, clip=clip)
    _refuse_smoother(named, constants, description, taken)
    for name, value in constants.items():
        if name in description and name in taken and name != "loss_class":
            raise SpecError(f"{name} is given and also follows from the loss", "keep one of the two")
        if name not in description and name in taken:
            description.put(name, value, Source.LOSS)


_SMOOTH = (LossClass.CONVEX_SMOOTH, LossClass.SMOOTH)


def _refuse_smoother(named: str, constants: Given, description: Description, taken: Collection[str]) -> None:
    """Raise SpecError where a loss that has corners is said to be smooth."""
    if constants["loss_class"] in _SMOOTH:
        return
    if description.has("smoothness") and "smoothness" in taken:
        raise SpecError(f"the {named} loss is not smooth, and smoothness is given", "leave out --smoothness")
    if description.get("loss_class") in _SMOOTH:
        raise SpecError(
            f"the {named} loss is not smooth, and the loss class is {description['loss_class']}",
            "leave out --loss-class",
        )


def _stranger(algorithm: str, strange: list[str], command: Command | None = None) -> SpecError:
    """Return the error for parameters that the algorithm does not take; it names others of the command that do."""
    flags = ", ".join("--" + name.replace("_", "-") for name in strange)
    others = [name for name in command.algorithms if set(strange) <= taken_by(name)] if command else []
    other = f"choose --algorithm {' or '.join(others)}" if others else "choose another algorithm"
    return SpecError(
        f"{algorithm} takes no {', '.join(strange)}", f"leave out {flags}, or {other}", parameters=tuple(strange)
    )


def _fit_to(algorithm: str, description: Description) -> tuple[Note, ...]:
    """Leave out of the description what is immaterial to the algorithm; return notes on what was.

    Raises:
        SpecError: it says something that the algorithm does not do.
    """
    own = taken_by(algorithm)
    taken = own | {"schedule"}
    if description.get("epochs") == 1:
        taken |= {"epochs"}  # one pass is what the algorithms without epochs do
    strange = [name for name in description if name not in taken and name not in _IMMATERIAL]
    if strange:
        raise _stranger(algorithm, strange)
    left_out = [name for name in description if name not in taken]
    for name in left_out:
        description.take(name)
    if "epochs" not in own:
        description.take("epochs")
    elif not (description.has("epochs") or description.has("steps")):
        description.put("epochs", 1, Source.DEFAULT)
    return tuple(LeftOut(algorithm=algorithm, parameter=name) for name in left_out)


def _read_schedule(command: Command, algorithm: str, description: Description) -> None:
    """Read the schedule, and fill in the worst index where it is known.

    Raises:
        SpecError: the command or the algorithm takes no such schedule, or the index is needed.
    """
    from dpcalc.model import clipping, phases
    from dpcalc.model.chain import resolve

    record = ALGORITHMS[algorithm]
    if record.correlated:
        from dpcalc.model.matrix_file import read_matrix

        description.put("schedule", read_matrix(str(description.take("schedule"))), Source.FILE)
        return
    if record.clipped:
        phases.fill_in(description)
        return
    clipping.fill_in(description)
    if not command.columns or command.columns == phases.COLUMNS:
        follows = "the noise follows from --c1, --c2 and --decay-exponent"
        raise SpecError(f"{command.name} takes no --schedule", follows if record.grows else "all steps are alike")
    resolve(description, command.columns, clean=record.continues)
    if record.fixed_order and description["schedule"].probability is not None:
        raise SpecError(
            "the schedule has a column probability, and in a fixed order every record has its own step",
            "use --algorithm stop, or `dpcalc shuffle`",
        )
    if description.has("index"):
        return
    if command.compares and record.fixed_order:
        raise SpecError("which record is worst off depends on the bound, with a schedule", "give --index")
    if command.chooses_index:
        from dpcalc.theorems.one_pass.iteration import worst_index

        description.put("index", worst_index(description["schedule"]), Source.WORST_CASE)
