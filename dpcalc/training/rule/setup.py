"""The setup of a training run, and the task of one call of `dpcalc.training.fit.fit`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.engine.gate import Gate
from dpcalc.errors import SpecError, refuse
from dpcalc.files.output import check_outputs
from dpcalc.files.reading import digest_of
from dpcalc.model.algorithm import Source
from dpcalc.model.numbers import parse_number
from dpcalc.model.question import Question
from dpcalc.notions.tuning import Law
from dpcalc.plain_enum import PlainEnum
from dpcalc.training.data.intervals import is_interval
from dpcalc.training.data.progress import Phases, Warned, silent, unheard
from dpcalc.training.rule.candidates import Tune
from dpcalc.training.rule.shares import shares_of, weights_of

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from dpcalc.training.data.cells import Classes, Labels
    from dpcalc.training.rule.account import Account


class NoiseSource(PlainEnum):
    """The source of the noise."""

    OS = "os"
    SECURE = "secure"


class Average(PlainEnum):
    """How the released iterates become the model."""

    TAIL = "tail"  # the mean of their second half
    NONE = "none"


class Solver(PlainEnum):
    """How the model is computed."""

    DESCENT = "descent"  # by an iterative algorithm, accounted step by step
    SUMS = "sums"  # least squares from noisy sums of products


MODEL_ENDINGS = (".json", ".npz")

OF_UNLEARNING = ("start_distance", "clean_steps")
"""The parameters of an unlearning run alone."""


class Setup(NamedTuple):
    """The data of a run, and how it is executed.

    Attributes:
        data: path of a file, ``example:NAME``, or a pair (features, target) of arrays.
        synthetic: ``logistic`` or ``linear``, in place of data.
        target, ignore, ranges: see `dpcalc.training.data.tables`.
        labels: two labels, or a text "no,yes": the second counts as +1, everything else as -1.
        positive: the label that counts as +1, alone.
        intercept: whether the model has one; None: by the default rule.
        test_fraction: share of the records set aside at random for testing.
        seed: of noise, order and split; the run is then not private. None: the operating system's randomness.
        noise_source: a `NoiseSource`.
        replicas: the number of independent runs; 1 trains a model.
        workers: the number of workers for replicas; None: one for each processor.
        output: where the model is written, or None.
        card: whether a privacy card is written beside the model, if that is private.
        class_shares, class_weight: see `dpcalc.training.rule.shares`, in the order of the labels; None: not given.
        target_range: the interval of the target of a regression, (low, high) or a text "low,high"; mapped to [-Y, Y].
        average: an `Average`; None: by the default rule.
        reference: whether to compare with the non-private minimiser.
        show_unprotected_metrics: whether the model is measured on the training records without noise.
        tune: the settings to choose from, if the choice is accounted for; else None.
        solver: a `Solver`; None: by the default rule.
        centre: whether rows are centred (`dpcalc.training.release.centring`); None: by the default rule.
        executor: computes the replicas; None: this machine does.
        unlearn: path of a model that is to forget the records that are not among the data, or None.
        account: the account to charge before the release, or None.
        evaluate_share: the share of epsilon for measuring the model with noise, or a text "5%"; None: no measurement.
        evaluate_epsilon: the epsilon of that measurement, whose delta is 0, and the total epsilon with the model's;
            `dpcalc.training.fit` sets both.
    """

    data: Any = None
    synthetic: str | None = None
    target: str | None = None
    positive: str | None = None
    ignore: tuple[str, ...] = ()
    ranges: str | None = None
    intercept: bool | None = None
    test_fraction: float = 0.0
    seed: int | None = None
    noise_source: str = NoiseSource.OS
    replicas: int = 1
    workers: int | None = None
    output: str | None = None
    labels: Any = None
    card: bool = True
    class_shares: Any = None
    class_weight: Any = None
    target_range: Any = None
    average: str | None = None
    reference: bool = False
    show_unprotected_metrics: bool = False
    tune: Tune | None = None
    solver: str | None = None
    centre: bool | None = None
    executor: Executor | None = None
    unlearn: str | None = None
    account: Account | None = None
    evaluate_share: Any = None
    evaluate_epsilon: tuple[float, float] | None = None

    @property
    def example(self) -> str | None:
        """The name of the shipped data set, if the data are one."""
        from dpcalc.training.data.tables import example_of

        return example_of(self.data) if isinstance(self.data, str) else None

    @property
    def unprotected(self) -> bool:
        """Whether metrics without noise on the training records were asked for, directly or by another option."""
        asked = self.show_unprotected_metrics or self.reference
        return asked or self.replicas > 1 or self.synthetic is not None

    @property
    def label_rule(self) -> Labels | Classes:
        """The rule by which the target's cells become +1 and -1, or the places of more classes.

        Raises:
            SpecError: the labels are malformed.
        """
        from dpcalc.training.data.cells import declared
        from dpcalc.training.data.tables import EXAMPLES

        if self.example and self.labels is None and self.positive is None:
            return EXAMPLES[self.example][1]
        return declared(self.labels, self.positive)

    def shares(self, count: int) -> tuple[float, ...] | None:
        """Return the public shares of this many classes, if they are given.

        Raises:
            SpecError: they are malformed.
        """
        return None if self.class_shares is None else shares_of(self.class_shares, count)

    def weights(self, count: int) -> tuple[float, ...] | None:
        """Return the weights of this many classes, the largest 1, if they are given.

        Raises:
            SpecError: they are malformed, or follow from shares that are not given.
        """
        return None if self.class_weight is None else weights_of(self.class_weight, self.shares(count), count)

    @property
    def target_interval(self) -> tuple[float, float] | None:
        """The interval of the target, if one is given.

        Raises:
            SpecError: it is none.
        """
        return None if self.target_range is None else interval(self.target_range)


def interval(text: Any) -> tuple[float, float]:
    """Return the interval of a text "low,high" or a pair of numbers.

    Raises:
        SpecError: it is no interval, or a too narrow one.
    """
    try:
        parts = text.split(",") if isinstance(text, str) else list(text)
        low, high = (parse_number(part.strip()) if isinstance(part, str) else float(part) for part in parts)
    except (SpecError, ValueError, TypeError):
        low = high = math.nan
    if not is_interval(low, high):
        message = f"the target range is {str(text)[:60]!r}"
        if low < high:
            raise SpecError(f"{message}, which is too narrow", "use other units")
        raise SpecError(message, "give (low, high), two public numbers; at the prompt --target-range 0,100")
    return low, high


def share_of(typed: Any) -> float:
    """Return the share of a budget, from a number or a text such as "5%".

    Raises:
        SpecError: it is not above 0 and below 1.
    """
    try:
        text = str(typed).strip()
        share = parse_number(text[:-1]) / 100.0 if text.endswith("%") else parse_number(text)
    except SpecError:
        share = math.nan
    if not 0.0 < share < 1.0:
        raise SpecError(f"the share of epsilon is {str(typed)[:60]!r}", "give one above 0 and below 1, for example 5%")
    return share


_OF_FILES = ("target", "labels", "positive", "ignore", "ranges", "target_range")


def check_setup(setup: Setup, cases: int = 1) -> None:
    """Refuse a setup that contradicts itself, before anything is read.

    Args:
        setup: the setup.
        cases: the number of models to train.

    Raises:
        SpecError: there are no data or two sources of them, a number is out of range, options contradict each other, or
            a model is to be written where none is released.
    """
    only_files = ", ".join("--" + name for name in _OF_FILES if getattr(setup, name))
    secure, many = setup.noise_source == NoiseSource.SECURE, setup.replicas > 1
    refuse(
        (
            (setup.data is None) == (setup.synthetic is None), "what to train on is not known",
            "give either --data FILE or --synthetic logistic|linear",
        ),
        (
            not 0.0 <= setup.test_fraction < 1.0,
            f"the test fraction is {setup.test_fraction:g}; it must be a number >= 0 and < 1", "try 0.2",
        ),
        (setup.replicas < 1, f"replicas is {setup.replicas}; it must be a whole number from 1", "1 trains a model"),
        (
            setup.workers is not None and setup.workers < 1,
            f"workers is {setup.workers}; it must be a whole number from 1", "leave it out for all",
        ),
        (
            setup.seed is not None and not 0 <= setup.seed < 1 << 64,
            f"seed is {setup.seed}; it must be a whole number from 0 to 2^64 - 1", "leave it out",
        ),
        (
            secure and setup.seed is not None, "a seed and the secure source contradict each other",
            "leave out --seed",
        ),
        (
            secure and many, "replicas are drawn from a seed, and the secure source has none",
            "leave out --noise-source",
        ),
        (
            setup.synthetic is not None and bool(only_files), f"synthetic data take no {only_files}",
            f"leave out {only_files}",
        ),
    )  # fmt: skip
    if setup.evaluate_share is not None:
        share_of(setup.evaluate_share)
        strange = {
            "--replicas": many, "--tune": setup.tune is not None, "--unlearn": setup.unlearn is not None,
        }  # fmt: skip
        refuse(
            *((given, f"a private measurement is of one model of a budget, and not with {name}",
               f"leave out --evaluate-share, or {name}") for name, given in strange.items())
        )  # fmt: skip
    if setup.account is not None:
        uncharged = {
            "--replicas": many, "--seed": setup.seed is not None, "--synthetic": setup.synthetic is not None,
            "several cases": cases > 1,
        }  # fmt: skip
        refuse(
            *((given, f"a ledger is charged with one release of its records, and not with {name}",
               f"leave out --ledger, or give no {name}") for name, given in uncharged.items())
        )  # fmt: skip
    _ = setup.label_rule  # refused if it is malformed
    if setup.class_weight is not None:
        alike = {"--tune": setup.tune is not None, "--reference": setup.reference}
        refuse(
            *((given, f"{flag} counts all records alike, and not by weights of their classes",
               f"leave out {flag}, or --class-weight") for flag, given in alike.items())
        )  # fmt: skip
    if setup.centre:
        contradictions = {
            "--no-intercept": setup.intercept is False, "--average none": setup.average == Average.NONE,
            "--solver sums": setup.solver == Solver.SUMS, "--tune": setup.tune is not None,
        }  # fmt: skip
        refuse(
            *((given, f"rows are not centred with {flag}", f"leave out {flag}, or --centre")
              for flag, given in contradictions.items())
        )  # fmt: skip
    if setup.tune is not None:
        scored = setup.tune.public
        refuse(
            (many, "replicas are an experiment, and a tuned run is a release", "leave out --replicas, or --tune"),
            (
                setup.reference, "a tuned run has no bound to compare the non-private fit with",
                "leave out --reference",
            ),
            (
                scored is not None and isinstance(setup.data, str) and _same(scored, setup.data),
                "runs would be scored without noise on the records that they are trained on: nothing covers that",
                "give a public file, or a share that is held out, such as --tune-score 0.2",
            ),
            (
                cases > 1, f"{cases} cases would be tuned, each at its own cost",
                "give one budget and one algorithm",
            ),
        )  # fmt: skip
    if setup.target_range is not None:
        interval(setup.target_range)
    if setup.output is not None:
        _check_output(setup, setup.output, cases)


def _same(one: str, other: str) -> bool:
    """Return whether two paths are the same file, or files with the same content."""
    from dpcalc.training.data.tables import path_of

    paths = path_of(one), path_of(other)
    if len(set(map(os.path.realpath, paths))) == 1:
        return True
    if not all(map(os.path.isfile, paths)):
        return False  # the reader refuses it
    return os.path.samefile(*paths) or (
        len(set(map(os.path.getsize, paths))) == 1 and len(set(map(digest_of, paths))) == 1
    )


def check_path(path: str) -> None:
    """Refuse a path to which no model can be written.

    Raises:
        SpecError: its ending is not one of `MODEL_ENDINGS`, or its folder does not exist.
    """
    refuse(
        (
            os.path.splitext(path)[1].lower() not in MODEL_ENDINGS,
            f"-o {path}: a model is written to a .json or .npz file", "the report goes to standard output",
        ),
        ("\0" in path, f"-o {path!r} is not a path", "give the path of a file"),
        (
            not os.path.isdir(os.path.dirname(os.path.realpath(path.replace("\0", "")))),
            f"-o {path}: there is no such folder", "create it first",
        ),
    )  # fmt: skip


def card_path(path: str) -> str:
    """Return where the privacy card of a model is written: beside it.

    >>> card_path("out/model.json")
    'out/model.card.json'
    """
    return os.path.splitext(path)[0] + ".card.json"


def _check_output(setup: Setup, path: str, cases: int) -> None:
    refuse(
        (
            setup.replicas > 1, "replicas are an experiment: no model is released", "leave out -o, or --replicas",
        ),
        (
            cases > 1, f"{cases} models would be trained, and a guarantee is of one alone",
            "leave out -o, or choose one case",
        ),
    )  # fmt: skip
    check_path(path)
    if setup.tune is not None and setup.tune.law is Law.POISSON:
        refuse(  # if nothing is released, an old file would stay and be mistaken for the outcome
            *((os.path.lexists(file), f"{file} is there already, and stays where the number of runs that is drawn is 0",
               "remove it, choose another file for -o, or another --tune-law") for file in (path, card_path(path)))
        )  # fmt: skip
    scored = setup.tune.public if setup.tune is not None else None
    read = [file for file in (setup.data, setup.ranges, scored, setup.unlearn) if isinstance(file, str)]
    check_outputs([(path, "-o"), *([(card_path(path), "-o")] if setup.card else [])], read)


class Task(NamedTuple):
    """A run to account for and train.

    Attributes:
        given: parameter name -> value, None where not given.
        question: epsilon and delta; if noise is given as well, they are checked.
        setup: the data, and how the run is executed.
        sources: parameter name -> source.
        gates: parsed assertions; if one fails, nothing is executed.
        phases: makes the progress callback of each phase of the work.
        warned: called with each warning before records are used; the case holds them too.
        accepting: whether gates are judged even if the model is not private; the caller then says that it is not.
    """

    given: Mapping[str, Any]
    question: Question
    setup: Setup
    sources: Mapping[str, Source] = {}
    gates: Sequence[Gate] = ()
    phases: Phases = silent
    warned: Warned = unheard
    accepting: bool = False
