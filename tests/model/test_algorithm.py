"""The records of the algorithms and of the parameters, held against the registry of theorems and against each other."""

import pickle

import pytest

from dpcalc.engine.commands import COMMANDS, taken_by
from dpcalc.errors import SpecError
from dpcalc.model import loss
from dpcalc.model.algorithm import ALGORITHMS, CATALOGUE, NAMED, Release, algorithm_meant_by, released
from dpcalc.model.parameter import PARAMETERS, check, meant_by, name_of, renamed, spellings, synonyms
from dpcalc.model.quantities import Adjacency, LastBatch, LossClass, Noise, Permutation
from dpcalc.model.run import PARAMETER_FIELDS, describe
from dpcalc.theorems.record import FAMILIES, all_bounds

QUESTION = {"epsilon", "delta", "order"}


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_the_families_of_an_algorithm_are_those_of_the_registry(name: str) -> None:
    speaking = {id.split(".")[0] for id, bound in all_bounds().items() if name in bound.algorithms and not bound.price}
    assert ALGORITHMS[name].families == tuple(family for family in FAMILIES if family in speaking)


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_an_algorithm_is_described_by_parameters_of_a_run(name: str) -> None:
    algorithm = ALGORITHMS[name]
    assert len(set(algorithm.parameters)) == len(algorithm.parameters)
    assert set(algorithm.parameters) - {"release"} <= set(PARAMETER_FIELDS)
    assert set(algorithm.defaults) <= set(PARAMETER_FIELDS)
    assert set(algorithm.parameters) <= set(PARAMETERS)


def test_every_parameter_is_taken_by_a_command_or_is_part_of_the_question() -> None:
    taken = {name for command in COMMANDS.values() for name in command.parameters}
    assert taken | QUESTION == set(PARAMETERS)
    assert set(COMMANDS["compare"].parameters) == set().union(*(taken_by(name) for name in NAMED))


def test_the_catalogue_of_losses_has_the_parameters_of_the_losses() -> None:
    assert ("loss", *loss.PARAMETERS) == CATALOGUE


def test_the_worst_index_is_the_one_that_a_run_has() -> None:
    for name in NAMED:
        run = describe(name, {"records": 9})
        assert run.index == (ALGORITHMS[name].worst_index(9) if ALGORITHMS[name].indexed else None)
    assert ALGORITHMS["pnsgd"].worst_index(9) == 9
    assert ALGORITHMS["stop"].worst_index(9) == 1


def test_an_iterate_of_every_epoch_is_released_by_an_algorithm_of_its_own() -> None:
    """Else a bound for hidden iterates would answer for released ones."""
    for name in COMMANDS["multi-epoch"].algorithms:
        assert ALGORITHMS[released(name)].release in (Release.PASS, Release.STEP), f"{name} lacks {name}-released"


def test_a_synonym_of_an_algorithm_is_the_name_of_none_and_the_synonym_of_one() -> None:
    words = [word for algorithm in ALGORITHMS.values() for word in algorithm.synonyms]
    assert len(set(words)) == len(words)
    assert not set(words) & set(ALGORITHMS)
    assert algorithm_meant_by("Opacus") == "dp-sgd"
    assert algorithm_meant_by("no such algorithm") == ""


@pytest.mark.parametrize("command", [name for name, command in COMMANDS.items() if command.parameters])
def test_a_word_means_at_most_one_parameter_of_a_command(command: str) -> None:
    names = {*COMMANDS[command].parameters, *QUESTION}
    # Where clip is taken, its words mean it; elsewhere what follows from it.
    names -= {"lipschitz"} if "clip" in names else set()
    taken = [PARAMETERS[name] for name in names]
    words = [word for parameter in taken for word in parameter.synonyms]
    assert len(set(words)) == len(words)
    accepted = {parameter.name for parameter in taken}
    assert not set(words) & accepted


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("--lr", "step_size"), ("--learning-rate", "step_size"), ("--max-grad-norm", "clip"),
        ("--l2-norm-clip", "clip"), ("sample_size", "records"), ("--stddev", "noise_std"),
        ("--weight-decay", "regularisation"), ("target_delta", "delta"), ("n", "records"), ("--nothing", ""),
    ],
)  # fmt: skip
def test_a_word_of_another_program_means_a_parameter(word: str, name: str) -> None:
    assert meant_by(word, (*COMMANDS["rdp"].parameters, *QUESTION)) == name


def test_a_word_means_only_what_is_taken() -> None:
    assert meant_by("--lr", ["records"]) == ""


@pytest.mark.parametrize(
    ("name", "word", "member"),
    [
        ("noise", "laplace", Noise.LAPLACE), ("adjacency", "null-record", Adjacency.NULL_RECORD),
        ("permutation", "secret", Permutation.SECRET), ("last_batch", "drop", LastBatch.DROP),
        ("loss_class", "convex", LossClass.CONVEX),
    ],
)  # fmt: skip
def test_a_word_of_a_run_is_a_member_that_prints_and_pickles_as_the_word(name: str, word: str, member: object) -> None:
    assert check(name, word) is member
    assert f"{member}" == word
    assert pickle.loads(pickle.dumps(member)) is member


def test_a_word_outside_its_choices_is_refused() -> None:
    with pytest.raises(SpecError, match="noise is 'cauchy'; it must be one of gaussian, laplace"):
        check("noise", "cauchy")


def test_what_is_trained_is_what_can_be_executed_and_releases_a_model() -> None:
    executed = {name for name in NAMED if ALGORITHMS[name].executed and not ALGORITHMS[name].local}
    assert set(COMMANDS["train"].algorithms) == executed


def test_a_word_of_another_program_is_one_parameter() -> None:
    words = [flag.removeprefix("--").replace("-", "_") for name in PARAMETERS for flag in spellings(name)]
    assert len(set(words)) == len(words)
    assert not set(words) & set(PARAMETERS)
    assert {*words, "eta", "sigma"} <= set(synonyms())
    assert {name_of(word) for word in synonyms()} <= set(PARAMETERS)
    assert all(name_of(name) == name for name in PARAMETERS)


@pytest.mark.parametrize("word", ["noise_scale", "std", "beta", "temperature", "max_iter", "n", "L"])
def test_a_word_whose_unit_may_differ_is_no_parameter(word: str) -> None:
    assert name_of(word) == word


def test_two_words_for_one_parameter_are_refused() -> None:
    assert renamed({"lr": 0.1, "sigma": 2.0, "other": None}) == {"step_size": 0.1, "noise_std": 2.0, "other": None}
    with pytest.raises(SpecError, match="step_size is given twice, as lr and as step_size"):
        renamed({"lr": 0.1, "step_size": 0.2})
    with pytest.raises(SpecError, match="as eta and as learning_rate"):
        renamed({"eta": 0.1, "learning_rate": 0.1})


@pytest.mark.parametrize(
    ("name", "word", "ours"),
    [
        ("adjacency", "zero-out", "null-record"),
        ("adjacency", "null_record", "null-record"),
        ("adjacency", "ADD_OR_REMOVE_ONE", "add-remove"),  # dp_accounting.NeighboringRelation
        ("adjacency", "REPLACE_ONE", "replace-one"),
        ("adjacency", "REPLACE_SPECIAL", "null-record"),
        ("sampling", "Poisson", "poisson"),
        ("sampling", "balls_and_bins", "balls-in-bins"),
        ("sampling", "without_replacement", "fixed"),
    ],
)
def test_values_in_other_words(name: str, word: str, ours: str) -> None:
    assert check(name, word) == ours


@pytest.mark.parametrize(
    ("name", "word"), [("adjacency", "substitute"), ("sampling", "replacement"), ("release", "LAST")]
)
def test_values_that_may_mean_something_else_are_refused(name: str, word: str) -> None:
    with pytest.raises(SpecError):
        check(name, word)
