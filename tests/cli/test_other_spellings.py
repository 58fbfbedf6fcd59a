"""One run in the spellings of several libraries: each line ends in an answer, or in the sentence that leads to one."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import dpcalc
from dpcalc.cli.main import cli, main
from dpcalc.errors import SpecError
from dpcalc.model.run import describe

RUN = "dp-sgd -n 5000 --batch-size 500 --epochs 2"
LINES = [
    f"{RUN} --noise-multiplier 1.1 --delta 1e-5 --sampling poisson",
    f"{RUN} --noise-multiplier 1.1 --max-grad-norm 1 --delta 1e-5 --sampling poisson --adjacency add-remove",
    f"{RUN} --noise-multiplier 1.1 --max-grad-norm 1.0 --target-delta 1e-5 --sampling poisson",
    f"{RUN} --noise-multiplier 1.1 --l2-norm-clip 1 --delta 1e-5 --sampling fixed",
    f"{RUN} --noise-multiplier 1.1 --clipping-norm 1 --delta 1e-5 --sampling shuffle",
    f"{RUN} --noise-multiplier 1.1 --clip 1 --delta 1e-5",
    f"{RUN} --target-epsilon 3 --target-delta 1e-5 --sampling shuffle",
    f"{RUN} --target-epsilon 3 --target-delta 1e-5",
    f"{RUN} --noise-multiplier 1.1 --target-epsilon 3 --sampling full",
    "dp-sgd -n 5000 --lot-size 500 --epochs 2 --noise-multiplier 1.1 --delta 1e-5 --sampling shuffle",
    "dp-sgd -n 5000 --lot-size 500 --epochs 2 --noise-multiplier 1.1 --target-delta 1e-5",
    "dp-sgd --dataset-size 5000 --batch-size 500 --epochs 2 --noise-multiplier 1.1 -d 1e-5 --sampling shuffle",
    "dp-sgd --sample-rate 0.1 --epochs 2 --noise-multiplier 1.1 -d 1e-5 --sampling poisson",
    "dp-sgd -n 5000 --sample-rate 0.1 --epochs 2 --noise-multiplier 1.1 -d 1e-5",
    "dp-sgd --sample-rate 0.1 --epochs 2 --noise-multiplier 1.1 -d 1e-5",
    "dp-sgd --sample-rate 0.1 --iterations 20 --noise-multiplier 1.1 -d 1e-5 --sampling poisson",
    "dp-sgd --sampling-probability 0.1 --num-steps 20 --noise-multiplier 1.1 -d 1e-5 --sampling poisson",
    f"{RUN} --sample-rate 0.1 --noise-multiplier 1.1 -d 1e-5 --sampling poisson",
    "dp-sgd -n 5000 --sample-rate 0.1 --epochs 2 --noise-multiplier 1.1 -d 1e-5 --sampling shuffle",
    f"{RUN} --noise-std 0.0022 --clip 1 -d 1e-5 --sampling shuffle",
    f"{RUN} --noise-std 0.0022 -d 1e-5 --sampling shuffle",
    "dp-sgd --batch-size 500 --epochs 2 --noise-multiplier 1.1 -d 1e-5",
]
MOST_CURES = 4


def ended(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    printed = capsys.readouterr()
    return int(stop.value.code or 0), printed.out, printed.err


def cured(line: str, error: str) -> str:
    """Return the line with what the hint of the error says, to the letter."""
    hint = error.partition("hint: ")[2]
    if meant := re.match(r"did you mean (--[\w-]+)\?", hint):
        wrong = re.search(r"No such option '(--[\w-]+)'", error)
        assert wrong
        return line.replace(wrong[1], meant[1])
    if "How are batches drawn?" in error:
        example = re.search(r"; for example (--sampling (?:poisson|shuffle))$", hint.strip())
        assert example
        said = r" (epsilon|noise_multiplier) |[a-z, -]* also need --records"
        assert re.search(rf"\b{example[1].split()[1]}\b({said})", hint), "the example has no answer, and lacks nothing"
        return f"{line} {example[1]}"
    if "needs records" in error:
        example = re.match(r"give --records; for example (--records \d+)$", hint.strip())
        assert example, error
        return f"{line} {example[1]}"
    if "is a probability of Poisson sampling" in error:
        assert hint.startswith("give --batch-size and --records, or --sampling poisson")
        return line.replace("--sample-rate 0.1", "--batch-size 500")
    if "a full batch is all records" in error:
        assert hint.startswith("leave out --batch-size")
        return line.replace(" --batch-size 500", "")
    if "also follows from batch_size and records" in error:
        return line.replace(" --sample-rate 0.1", "")
    assert hint.startswith("give --clip; for example --clip 1; or, if "), error
    return line.replace("-d 1e-5", "-d 1e-5 --clip 1")


@pytest.mark.few(4)
@pytest.mark.parametrize("line", LINES)
def test_a_line_ends_in_an_answer_after_the_cures_that_are_printed(
    capsys: pytest.CaptureFixture[str], line: str
) -> None:
    for _ in range(MOST_CURES):
        code, out, err = ended(capsys, line)
        if code == 0:
            assert re.search(r"^(epsilon|delta) <= |^noise_multiplier >= ", out, re.MULTILINE)
            return
        assert code == 2, err
        line = cured(line, err)
    pytest.fail(line)


PAIRS = [
    (
        "dp-sgd -n 5000 --batch-size 500 --epochs 2 --noise-multiplier 1.1 --clip 1 --sampling shuffle -d 1e-5",
        "dp-sgd --dataset-size 5000 --lot-size 500 --num-epochs 2 --noise-multiplier 1.1 --l2-norm-clip 1 "
        "--sampling shuffle --target-delta 1e-5",
    ),
    (
        "rdp -n 1000 -L 1 --smoothness 1 --step-size 0.1 --noise-std 2 --epsilon 1",
        "rdp --num-examples=1000 -L 1 --gradient-lipschitz 1 --lr 0.1 --noise-std 2 --target-epsilon=1",
    ),
    (
        "multi-epoch --algorithm noisy-gd -n 100 --steps 5 --loss logistic --feature-bound 1 --regularisation 0.1 "
        "--eta 0.5 --noise-std 1 -d 1e-5",
        "multi-epoch --algorithm noisy-gd -n 100 --iterations 5 --loss logistic --feature-norm 1 --weight-decay 0.1 "
        "--learning-rate 0.5 --noise-std 1 -d 1e-5",
    ),
]


@pytest.mark.parametrize(("line", "theirs"), PAIRS)
def test_flags_that_mean_the_same_are_taken(capsys: pytest.CaptureFixture[str], line: str, theirs: str) -> None:
    ours = ended(capsys, line)
    assert ours[0] == 0
    assert ended(capsys, theirs) == ours


@pytest.mark.parametrize("word", ["eta", "sigma", "lr", "noise-std", "n", "l"])
def test_what_is_solved_for_may_be_named_in_other_words(capsys: pytest.CaptureFixture[str], word: str) -> None:
    meant = {"eta": "step_size", "lr": "step_size", "n": "records"}.get(word, "noise_std")
    given = {"step_size": "--eta 0.1", "noise_std": "--sigma 9", "records": "-n 50k"}
    flags = " ".join(text for name, text in given.items() if name != meant)
    line = f"rdp -L 1 --smoothness 1 -e 1 -d 1e-5 {flags} --solve {word}"
    if word == "l":
        assert "cannot solve for 'l'" in ended(capsys, line)[2]
    else:
        assert ended(capsys, line) == ended(capsys, line.replace(f"--solve {word}", f"--solve {meant}"))
        assert "cannot solve" not in ended(capsys, line)[2]


@pytest.mark.parametrize(("rate", "steps"), [(0.01, 100), (0.001, 1000), (1 / 3, 3), (0.3, 4), (1.0, 1), (1e-5, 10**5)])
def test_a_rate_has_the_steps_of_the_decimal_that_was_typed(rate: float, steps: int) -> None:
    assert describe("dp-sgd", {"sample_rate": rate, "epochs": 2}).steps == 2 * steps


@pytest.mark.parametrize("command", ["shifted", "online", "utility"])
def test_where_no_batch_is_known_a_multiplier_is_answered_by_the_formula(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    err = " ".join(ended(capsys, f"{command} --noise-multiplier 1")[2].split())
    assert "noise_std = noise multiplier x Lipschitz constant / batch size" in err
    assert "mean --noise-std" not in err.replace("'", "")
    with pytest.raises(SpecError, match="does not take noise_multiplier") as stop:
        getattr(dpcalc, command)(noise_multiplier=1.0)
    assert "noise multiplier x Lipschitz constant" in (stop.value.hint or "")


def test_python_takes_the_words_of_other_programs() -> None:
    ours = dpcalc.rdp(records=100, index=1, lipschitz=1, smoothness=1, step_size=0.5, noise_std=1, delta=1e-5)
    words: dict[str, Any] = {"dataset_size": 100, "lr": 0.5, "sigma": 1, "target_delta": 1e-5}
    theirs = dpcalc.rdp(index=1, lipschitz=1, smoothness=1, **words)
    assert theirs == ours
    with pytest.raises(SpecError, match="step_size is given twice"):
        dpcalc.rdp(records=100, lipschitz=1, step_size=0.5, **{"lr": 0.5})
    with pytest.raises(SpecError, match="does not take noise_scale") as refused:
        dpcalc.rdp(records=100, lipschitz=1, **{"noise_scale": 0.5})
    assert refused.value.hint == "did you mean noise_std?"


def test_a_solution_is_asked_for_in_other_words() -> None:
    run: dict[str, Any] = {"records": 100, "index": 1, "lipschitz": 1, "smoothness": 1, "step_size": 0.5}
    ours = dpcalc.rdp(**run, epsilon=1, delta=1e-5, solve="noise_std").cases[0].best
    theirs = dpcalc.rdp(**run, epsilon=1, delta=1e-5, solve="sigma").cases[0].best
    assert ours is not None
    assert ours == theirs


RECIPE = """
dpcalc: recipe/1
defaults: {command: rdp, lipschitz: 1, smoothness: 1, lr: 0.5, target_delta: 1e-5}
cases:
  a: {dataset_size: 100, sigma: 1, assert: epsilon <= 50}
  b: {records: 100, noise_std: 1, step_size: 0.25, assert: epsilon <= 50}
  c: {records: 100, matrix: {sigma: [1, 2]}, assert: epsilon <= 50}
"""


def test_recipes_take_the_words_of_other_programs(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(RECIPE, encoding="utf-8")
    cases = dpcalc.check(path).cases
    assert [str(case.check.status) for case in cases if case.check] == ["passed"] * 4
    assert [case.inputs["step_size"][0] for case in cases] == [0.5, 0.25, 0.5, 0.5]
    assert [case.check.name for case in cases if case.check][2] == "c[noise_std=1]"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: {records: 100, lr: 0.1, step_size: 0.1}", "step_size is set twice, as lr and as step_size"),
        ("a: {records: 100, matrix: {lr: [0.1], eta: [0.2]}}", "step_size is set twice, as lr and as eta"),
        ("a: {records: 100, lr: 0.1, matrix: {step_size: [0.2]}}", "set in the case and in its matrix"),
        ("a: {records: 100, noise_scale: 1}", "unknown key"),
    ],
)
def test_a_recipe_says_a_thing_once(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(f"dpcalc: recipe/1\ndefaults: {{command: rdp, lipschitz: 1}}\ncases:\n  {text}\n", encoding="utf-8")
    with pytest.raises(SpecError, match=words):
        dpcalc.check(path)


def test_a_ledger_takes_the_words_of_other_programs() -> None:
    ours = "ledger --add 'noise_std=3 sensitivity=1' -d 1e-5 --json"
    theirs = "ledger --add 'sigma=3 sensitivity=1' -d 1e-5 --json"
    answers = [CliRunner().invoke(cli, shlex.split(line)) for line in (ours, theirs)]
    assert answers[0].exit_code == 0
    assert answers[0].output == answers[1].output


def test_what_is_tuned_is_an_entry_of_a_ledger() -> None:
    with pytest.raises(SpecError) as refused:
        dpcalc.dp_sgd(records=100, **{"num_trials": 10})
    assert "dpcalc ledger --add" in str(refused.value.hint)
