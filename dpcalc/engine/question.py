"""From a user's description to the run and the question: which parameter is solved for."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from dpcalc.engine.commands import Command, columns_of, taken_by
from dpcalc.engine.solving.search import DIRECTIONS
from dpcalc.errors import SpecError
from dpcalc.model.algorithm import ALGORITHMS, CATALOGUE, Source, algorithm_meant_by, released
from dpcalc.model.draft import NOISE_SCALES, Description
from dpcalc.model.loss_class import convex_if_clipped
from dpcalc.model.parameter import check, name_of
from dpcalc.model.quantities import ATTACKS, BANDED, Given, LastBatch, LossClass, Model, Noise, Releases
from dpcalc.model.question import NO_RISKS, Question, Target
from dpcalc.model.run import Run, describe
from dpcalc.notes import LeftOut, LinearClip, LossDomain, Note


def aimed(question: Question, given: dict[str, Any], listed: Mapping[str, Sequence[float] | None]) -> Question:
    """Return the question with the limits on attackers, which are removed from the given values.

    Args:
        question: what is sought.
        given: parameter name -> value.
        listed: fpr, prior and baseline -> the rates and probabilities given.

    Raises:
        SpecError: the rate or probability is missing, or is not one number.
    """
    if ATTACKS.keys().isdisjoint(given):
        return question
    targets = tuple(
        Target(name, _at(name, ATTACKS[name], listed.get(ATTACKS[name])), float(given.pop(name)))
        for name in ATTACKS
        if given.get(name) is not None
    )
    risks = (question.risks or NO_RISKS).adding((target.name, target.at) for target in targets)
    return question._replace(risks=risks, targets=targets) if targets else question


def _at(name: str, rate: str, given: Sequence[float] | None) -> float | None:
    if not rate:
        return None
    if not given or len(given) != 1:
        how = "needs" if not given else "takes one"
        raise SpecError(f"--{name} {how} --{rate}", f"for example --{name} 0.05 --{rate} {_EXAMPLES[rate]}")
    return given[0]


_EXAMPLES = {"fpr": "0.01", "prior": "0.1", "baseline": "0.001"}


def refuse_unknown(command: str, given: Iterable[str], taken: Iterable[str], besides: Iterable[str] = ()) -> None:
    """Refuse a parameter that a command does not take; those ``besides`` are taken and not named.

    Raises:
        SpecError: there is one.
    """
    taken = tuple(taken)
    if unknown := sorted({*given} - {*taken, *besides}):
        raise SpecError(f"{command} does not take {', '.join(unknown)}", f"it takes {', '.join(taken)}")


def check_question(question: Question) -> None:
    """Refuse a budget or an order outside its domain.

    Raises:
        SpecError: one is.
    """
    if question.log_delta is not None and not question.log_delta < 0.0:
        raise SpecError(f"delta is {question.delta!r}; it must be a number > 0 and < 1", "1e-6 is a usual choice")
    if question.targets:
        _refuse_hopeless(question.targets)
        if question.epsilon is not None or question.log_delta is not None or question.orders:
            raise SpecError(
                "both a budget and a risk to keep are given", "leave out --epsilon, --delta and --order, or --advantage"
            )
    if question.epsilon is not None and not 0.0 <= question.epsilon < math.inf:
        raise SpecError(f"epsilon is {question.epsilon!r}; it must be a number >= 0", "1 is a usual choice")
    for order in question.orders:
        if not order >= 1.0:
            raise SpecError(f"order is {min(question.orders)!r}; it must be a number >= 1", "2 to 64 are usual")


def _refuse_hopeless(targets: Sequence[Target]) -> None:
    """Raise SpecError for a target that no privacy keeps: guessing without any output does better."""
    for target in targets:
        if target.limit <= target.floor:
            raise SpecError(
                f"{target.text}: without any output an attacker has {target.name} {target.floor:g}",
                f"a limit above {target.floor:g}",
            )


class Incomplete(SpecError):
    """Too few of epsilon, delta and the noise are given."""


_BUDGET = frozenset({"epsilon", "delta"})
_OTHER_NOISE = ("noise_std", "laplace_scale", "langevin_std")
_NEED_EQUAL_STEPS = frozenset({"index", "records"})
_OF_A_CHAIN = ("noise_std", "laplace_scale", "diameter")
"""The parameters that can be solved for if a run is a sequence of steps."""
_OF_STEPS_THAT_FORGET = ("clean_steps", "noise_std", "start_distance", "lipschitz")
"""The parameters that can be solved for in unlearning."""


class Sought(NamedTuple):
    """A run and a question, with the quantity to solve for."""

    run: Run
    question: Question

    @property
    def unknown(self) -> str:
        """``epsilon``, ``delta``, ``mu``, ``rdp`` or the name of a parameter.

        If epsilon, delta and the noise are all given, epsilon is computed and the caller checks it.

        Raises:
            SpecError: the question is incomplete or over-determined.
        """
        run, question = self
        has_epsilon, has_delta = question.epsilon is not None, question.log_delta is not None
        scales = (*NOISE_SCALES, "scale", "noise_multiplier")
        noisy = run.algorithm.own_noise or not run.values.keys().isdisjoint(scales)
        if question.solve:
            return self._parameter()
        if question.targets:
            if noisy:
                raise SpecError(
                    f"the noise is given: what is to be solved for, so that {question.targets[0].text}?",
                    "for example --solve steps; or --assert to check the run as it is",
                )
            has_epsilon = has_delta = True
        if noisy and has_delta:
            return "epsilon"
        if noisy and has_epsilon:
            return "delta"
        if has_epsilon and has_delta:
            if run.algorithm.clipped:
                return "noise_multiplier"
            return "laplace_scale" if run.noise is Noise.LAPLACE else "noise_std"
        if noisy:
            return "rdp" if question.orders else "mu"
        noise = "--noise-multiplier 1" if run.algorithm.clipped else "--noise-std 2"
        raise Incomplete(
            "two of epsilon, delta and the noise must be given; the third is solved for",
            f"for example {noise} --delta 1e-6, or --epsilon 1 --delta 1e-6",
        )

    def _parameter(self) -> str:
        run, question = self
        name = name_of(str(question.solve).replace("-", "_"))
        _refuse_not_monotone(run, name)
        if name in _BUDGET and question.targets:
            raise SpecError(f"{name} does not follow from what an attacker may do", "solve for a parameter of the run")
        if name in _BUDGET:
            if getattr(question, name) is not None:
                raise SpecError(f"{name} is given and also to be solved for", f"leave out --{name} or --solve")
            return name
        if name not in DIRECTIONS:
            raise SpecError(f"cannot solve for {question.solve!r}", "one of epsilon, delta, " + ", ".join(DIRECTIONS))
        if name in _NEED_EQUAL_STEPS and run.schedule is not None:
            raise SpecError(
                f"cannot solve for {name} with a schedule: privacy need not be monotone in it",
                "try values with --index",
            )
        phased = run.algorithm.clipped and not run.algorithm.correlated
        if phased and (run.schedule is None) is (name == "schedule_factor"):
            raise SpecError(
                f"{name} cannot be solved for {'without' if run.schedule is None else 'with'} a schedule of the steps",
                "with one, --solve schedule-factor scales its noise",
            )
        solved = _OF_STEPS_THAT_FORGET if run.algorithm.continues else _OF_A_CHAIN
        if run.algorithm.chained and name not in solved:
            raise SpecError(f"{name} cannot be solved for here", "solve for one of " + ", ".join(solved))
        if name == "start_distance" and not run.algorithm.continues:
            raise SpecError("start_distance cannot be solved for here", "it is solved for by `dpcalc unlearn`")
        if name == "index" and run.records is None:
            example = " ".join(filter(None, ("--records 10000", question.missing_budget)))
            raise SpecError("solving for index needs the number of records", f"give --records; for example {example}")
        if not question.targets and (question.epsilon is None or question.log_delta is None):
            raise SpecError(
                f"solving for {name} needs both epsilon and delta",
                f"give --epsilon and --delta; for example {question.missing_budget}",
            )
        if name == "noise_multiplier" and any(map(run.typed, _OTHER_NOISE)):
            raise SpecError("the noise is given, and noise_multiplier is to be solved for", "leave out one of the two")
        if run.typed(name):
            raise SpecError(f"{name} is given and also to be solved for", "leave out one of the two")
        return name


def _refuse_not_monotone(run: Run, name: str) -> None:
    """Raise SpecError where privacy is not monotone in the parameter."""
    reason = {
        "diameter": _schedule_moves_noise,
        "strong_convexity": _schedule_moves_noise,
        "records": _records_not_monotone,
        "sample_rate": _rate_not_monotone,
        "step_size": _step_size_not_monotone,
        "lipschitz": _noise_of_the_norm,
        "batch_size": _noise_of_the_batch,
        "index": _index_not_monotone,
        "clean_steps": _clean_steps_not_monotone,
        "bands": _bands_are_chosen,
    }.get(name)
    if reason is not None and (why := reason(run)):
        raise SpecError(f"cannot solve for {name}: {why}", f"sweep --{name.replace('_', '-')} instead")


def _schedule_moves_noise(run: Run) -> str:
    return "" if run.c1 is None else "the schedule's noise moves with it"


def _noise_of_the_norm(run: Run) -> str:
    return "the noise is a multiple of it" if run.typed("noise_multiplier") else ""


def _noise_of_the_batch(run: Run) -> str:
    return "the noise on the mean gradient moves with it" if run.typed("noise_multiplier") else ""


def _records_not_monotone(run: Run) -> str:
    if run.algorithm.full_batch and run.typed("noise_multiplier"):
        return _noise_of_the_batch(run)
    placed, algorithm = run.typed("index"), run.algorithm
    if algorithm.stops and placed:
        return "more records make it likelier that the run does not stop before this one"
    if run.c1 is not None and not algorithm.grows:
        return "the noise is tuned to them, and delta is not monotone in them"
    if algorithm.one_pass_by_default and not run.typed("steps"):
        return "the number of steps moves with them (give --steps)"
    if algorithm.grows and not placed:
        return "the record spoken of moves with them (give --index)"
    return _batches_move_with_records(run)


def _rate_not_monotone(run: Run) -> str:
    if run.typed("epochs") and not run.typed("steps"):
        return "epochs at a lower rate have more steps, and may be less private (give --steps)"
    return ""


def _batches_move_with_records(run: Run) -> str:
    if (run.batch_size or 1) == 1:
        return ""
    if run.last_batch not in (None, LastBatch.OWN):
        return "the sizes of the batches move with them"
    if not (run.algorithm.fixed_order and run.algorithm.one_pass):
        return "a short last batch breaks the order"
    return "" if run.typed("index") else "a short last batch breaks the order (give --index)"


def _bands_are_chosen(run: Run) -> str:
    if run.mechanism not in BANDED:
        return "only banded-sqrt and bisr have a number of them"
    return "" if run.noise_multiplier else "without --noise-multiplier the best ones are chosen"


def _step_size_not_monotone(run: Run) -> str:
    if run.c1 is not None or run.langevin_std is not None:
        return "the noise moves with it"
    if run.loss_class not in (None, LossClass.CONVEX_SMOOTH):
        return "a longer step adds noise and spreads two points further apart"
    return ""


def _clean_steps_not_monotone(run: Run) -> str:
    expanding = (run.contraction or 0.0) > 1.0 or (run.strong_convexity or 0.0) < 0.0
    if expanding and (run.value("requests") or 1) > 1:
        return "steps that expand also spread the models of earlier requests further apart"
    return ""


def _index_not_monotone(run: Run) -> str:
    if run.algorithm.first_is_worst:
        return "with a random stop the first record is the worst off, and later ones ever better"
    if run.last_batch in (LastBatch.BALANCED, LastBatch.FRONT) and (run.records or 1) % (run.batch_size or 1):
        return "records of a smaller batch weigh more, and it comes first"
    return ""


_IMMATERIAL = frozenset({"index", "last_batch", "permutation"})
"""Parameters that are immaterial to an algorithm that does not take them: a random order has no position to choose."""


_ANY_LOSS = "give --loss, for example --loss logistic --feature-bound 1"


def run_of(command: Command, description: Description) -> tuple[Command, Run, tuple[Note, ...]]:
    """Return the command for the algorithm, the described run, and notes on both.

    Raises:
        SpecError: the description is malformed, or is of something that the algorithm does not do.
    """
    algorithm = algorithm_of(command, description)
    notes: tuple[Note, ...] = ()
    taken: Collection[str] = command.parameters
    if command.compares:
        notes = _fit_to(algorithm, description)
        command, taken = command._replace(columns=columns_of(algorithm)), taken_by(algorithm)
    own = taken_by(algorithm)
    if not command.compares and (strange := [name for name in description if name in taken and name not in own]):
        raise _stranger(algorithm, strange, command)
    add_loss_constants(description, own.intersection(taken))
    if description.has("loss", "radius"):
        notes += (LossDomain(radius=description["radius"]),)
    get = description.get
    if description.has("clip") and convex_if_clipped(get("loss"), get("model"), get("classes")):
        capped = get("model") == Model.CAPPED
        notes += (LinearClip(regularised=bool(get("regularisation")), capped=capped),)
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
    return command, describe(algorithm, description, description.sources), notes


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
        if "radius" in of_the_loss:
            of_the_loss.remove("radius")
        if of_the_loss:
            raise SpecError(f"{', '.join(of_the_loss)} describes a loss, and none is named", _ANY_LOSS)
        return
    checked = {name: float(check(name, description[name])) for name in of_the_loss}
    from dpcalc.model import loss as losses

    clip = float(check("clip", description["clip"])) if description.has("clip") and "clip" in taken else math.inf
    named = str(check("loss", description["loss"]))
    constants = losses.constants(named, checked, risk=risk, clip=clip)
    _refuse_smoother(named, constants, description, taken)
    twice = [name for name in constants if name in description and name in taken and name != "loss_class"]
    if twice:
        verbs = "is given and also follows" if len(twice) == 1 else "are given and also follow"
        flags = ", ".join("--" + name.replace("_", "-") for name in twice)
        raise SpecError(f"{', '.join(twice)} {verbs} from the loss", f"leave out {flags}, or the loss")
    for name, value in constants.items():
        if name not in description and name in taken:
            description.put(name, value, Source.LOSS)


_SMOOTH = (LossClass.CONVEX_SMOOTH, LossClass.SMOOTH)


def _refuse_smoother(named: str, constants: Given, description: Description, taken: Collection[str]) -> None:
    """Raise SpecError if a loss with corners is described as smooth."""
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
    """Remove immaterial parameters from the description and return notes on them.

    Raises:
        SpecError: a parameter contradicts the algorithm.
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
    elif not (description.has("epochs") or description.has("steps") or _has_phases(algorithm, description)):
        description.put("epochs", 1, Source.DEFAULT)
    return tuple(LeftOut(algorithm=algorithm, parameter=name) for name in left_out)


def _has_phases(algorithm: str, description: Description) -> bool:
    return ALGORITHMS[algorithm].clipped and description.has("schedule")


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
