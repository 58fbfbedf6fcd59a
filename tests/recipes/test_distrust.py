"""Verdicts that come from elsewhere: from a checkpoint, an executor or a report. They may not contradict the recipe."""

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

import dpcalc
from dpcalc.cli.main import main
from dpcalc.cluster.calls import in_lines
from dpcalc.errors import SpecError, WorkerLost
from dpcalc.recipes.running.journal import Journal
from dpcalc.recipes.running.workers import Pool
from tests.recipes.conftest import HEAD, Write

BAD = "bad: {algorithm: shuffled, noise_std: 0.5, assert: epsilon <= 1}"
Fields = dict[str, Any]


def _passed(case: Fields, **gate: Any) -> None:
    case["check"].update(status="passed", exit_code=0, message=None)
    for one in case["assertions"]:
        one.update(passed=True, slack=0.5, **gate)


def _skipped(case: Fields) -> None:
    case["check"].update(status="skipped", exit_code=0, message="later")
    case["assertions"] = []


def _cheap(case: Fields) -> None:
    _passed(case, value=0.5)


def _true(case: Fields) -> None:
    _passed(case)
    case["assertions"][0]["slack"] = True


def _without_slack(case: Fields) -> None:
    _passed(case)
    case["assertions"][0]["slack"] = None


def _twice(case: Fields) -> None:
    case["assertions"] *= 2


def _lower(case: Fields) -> None:
    next(one for one in case["results"] if one["best"])["kind"] = "lower"


def _other_run(case: Fields) -> None:
    case["inputs"]["noise_std"]["value"] = 50.0


def _huge(case: Fields) -> None:
    case["results"][0]["value"] = 10**400


CHANGES = [
    _skipped, _huge, _passed, _cheap, _true, _without_slack, _twice, _lower, _other_run,
    lambda case: _passed(case, text="epsilon <= 1000000"),
    lambda case: case["check"].update(line=1), lambda case: case["check"].update(column=1),
    lambda case: case["check"].update(strict=True), lambda case: case["check"].update(accepted=["one-index"]),
]  # fmt: skip


class Changing(Executor):
    """Computes in this process; what it answers is changed, with hashes that fit."""

    def __init__(self, change: Callable[[list[str]], list[str]]) -> None:
        self.change = change

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        _, *lines = function(*arguments).split("\n")
        future.set_result(in_lines(arguments[0], self.change(lines)))
        return future


def _changed(line: str, change: Callable[[Fields], None]) -> str:
    case = json.loads(line)
    change(case)
    return json.dumps(case)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes, str]:
    """A recipe, the first line of its checkpoint, and its verdict."""
    folder = tmp_path_factory.mktemp("kept")
    path = folder / "recipe.yaml"
    path.write_text(HEAD + "  " + BAD + "\n")
    assert dpcalc.check(str(path), checkpoint=str(folder / "c")).exit_code == 1
    head, line = (folder / "c").read_bytes().splitlines(keepends=True)
    return str(path), head, json.dumps(json.loads(line)["case"])


@pytest.mark.parametrize("change", CHANGES)
def test_a_line_that_contradicts_its_recipe_is_refused(
    kept: tuple[str, bytes, str], tmp_path: Path, change: Callable[[Fields], None]
) -> None:
    path, head, line = kept
    forged = _changed(line, change).encode()
    digest = hashlib.sha256(b"0 " + forged).hexdigest().encode()
    checkpoint = tmp_path / "c"
    checkpoint.write_bytes(head + b'{"place": 0, "sha256": "%s", "case": %s}\n' % (digest, forged))
    with pytest.raises(SpecError, match="line 2 is damaged"):
        dpcalc.check(path, checkpoint=str(checkpoint))


KINDS = """\
skipped: {algorithm: pnsgd, noise_std: 2, skip: later, assert: epsilon <= 5}
implied: {algorithm: pnsgd, noise_std: 2, epsilon: 0.5}
solved: {algorithm: pnsgd, solve: noise_std, epsilon: 0.5, assert: noise_std <= 30}
risks: {algorithm: pnsgd, noise_std: 2, assert: [epsilon <= 5, "advantage <= 0.5", "tpr@1% <= 0.3"]}
delta: {algorithm: pnsgd, noise_std: 9, delta: null, epsilon: 1, assert: [delta <= 1e-3, mu <= 1]}
tiny: {algorithm: pnsgd, noise_std: 9, delta: 1e-500, assert: epsilon <= 500}
value: {algorithm: pnsgd, noise_std: 2, expect: {epsilon: 1.25}}
refused: {algorithm: dp-sgd, noise_std: 2, expect: {error: not_applicable}}
answered: {algorithm: pnsgd, noise_std: 2, expect: {error: infeasible}}
compared: {algorithm: pnsgd, noise_std: 2, assert: [bound == iteration.pnsgd, "epsilon < cases.risks.epsilon * 2"]}
large: {algorithm: pnsgd, noise_std: 2, delta: 0.5, accept: large-delta, assert: epsilon <= 5}
loss: {algorithm: pnsgd, loss: logistic, lipschitz: null, smoothness: null, feature_bound: 1, noise_std: 3}
sweep: {command: rdp, algorithm: pnsgd, matrix: {noise_std: [1, 2], index: [1, 6]}, accept: one-index, assert: mu <= 2}
known: {command: convert, mu: 1, records: null, lipschitz: null, smoothness: null, step_size: null}
"""


@pytest.mark.parametrize("strict", [False, True])
def test_what_a_check_wrote_is_taken_up(write: Write, strict: bool) -> None:
    """Whatever kind of case it is: nothing is refused, and nothing but errors is computed again."""
    path = write(KINDS)
    first = dpcalc.check(path, checkpoint="c", strict=strict)
    lines = Path("c").read_bytes().splitlines()
    assert dpcalc.check(path, checkpoint="c", strict=strict).to_dict() == first.to_dict()
    again = Path("c").read_bytes().splitlines()
    assert again[: len(lines)] == lines
    assert all(json.loads(line)["case"]["check"]["status"] == "error" for line in again[len(lines) :])


@pytest.mark.parametrize("change", [_skipped, _passed, _cheap, _other_run])
def test_an_answer_that_contradicts_its_recipe_is_refused(
    kept: tuple[str, bytes, str], change: Callable[[Fields], None]
) -> None:
    executor = Changing(lambda lines: [_changed(line, change) for line in lines])
    with pytest.raises(WorkerLost):
        dpcalc.check(kept[0], executor=executor)


def test_answers_to_other_queries_are_refused() -> None:
    known = {"records": 600, "lipschitz": 1, "smoothness": 1, "step_size": 0.1, "index": 3, "delta": 1e-6}
    runs = [{**known, "noise_std": noise} for noise in (1, 2, 200)]
    executor = Changing(lambda lines: lines[::-1])
    with pytest.raises(WorkerLost, match="not what was given"):
        dpcalc.sweep(runs, command="rdp", executor=executor)


@pytest.mark.parametrize("exit", [SystemExit(0), KeyboardInterrupt(), GeneratorExit()])
def test_the_exit_of_a_worker_does_not_end_this_process(kept: tuple[str, bytes, str], exit: BaseException) -> None:
    class Ended(Executor):
        def submit(self, function: Any, /, *arguments: Any, **_: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(exit)
            return future

    with pytest.raises(WorkerLost, match=type(exit).__name__):
        dpcalc.check(kept[0], executor=Ended())


# --- the file ---------------------------------------------------------------------------------------------------------


def test_a_checkpoint_follows_no_link_out_of_the_project(
    write: Write, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = write(BAD)
    outside = tmp_path_factory.mktemp("outside") / "file"
    os.symlink(outside, "c")
    with pytest.raises(SpecError, match="it is a link"):
        dpcalc.check(path, checkpoint="c")
    assert not outside.exists()


def test_a_checkpoint_is_for_its_user_alone(write: Write) -> None:
    write(BAD)
    with contextlib.closing(Journal.kept([0], "c", {"schema": "x"}, lambda *_: True)):
        assert os.stat("c").st_mode & 0o777 == 0o600


def test_a_full_disk_names_the_checkpoint(write: Write) -> None:
    write(BAD)

    class Full:
        def seek(self, _: int) -> None: ...
        def write(self, _: bytes) -> None:
            raise OSError(28, "No space left on device")

    journal = Journal.kept([0], "c", {"schema": "x"}, lambda *_: True)
    file = journal._file
    assert file is not None
    with contextlib.closing(file):
        journal._file = Full()  # type: ignore[assignment]
        with pytest.raises(SpecError, match="cannot write the checkpoint c: No space left"):
            journal.write(0, "{}")


def test_an_error_of_time_is_tried_again(write: Write) -> None:
    slow = "{command: multi-epoch, algorithm: noisy-sgd, batch_size: 1, noise_std: 1.5, epsilon: 1, solve: steps"
    path = write(f"slow: {slow}, timeout: 0.01}}\n{BAD}")
    first = dpcalc.check(path, checkpoint="c")
    assert [case.check.exit_code for case in first.cases if case.check] == [3, 1]
    lines = Path("c").read_bytes().count(b"\n")
    dpcalc.check(path, checkpoint="c")
    assert Path("c").read_bytes().count(b"\n") == lines + 1


def test_nothing_may_stand_before_a_whole_report(
    kept: tuple[str, bytes, str], write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write(BAD)
    whole = json.dumps(dpcalc.check(kept[0]).to_dict())
    Path("r.jsonl").write_text("{what is no JSON\n" + whole + "\n")
    with pytest.raises(SystemExit):
        main(["merge", "r.jsonl"])
    assert "something stands before the report" in capsys.readouterr().err


# --- tasks that are cancelled -----------------------------------------------------------------------------------------


def test_a_task_that_was_cancelled_is_dropped_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    errors: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", errors.append)
    with Pool(eval, 1) as pool:
        first, *others = (pool.submit(text) for text in ("__import__('time').sleep(0.1)", "1", "2", "3"))
        cancelled = [future.cancel() for future in others]
        assert pool.submit("4").result() == 4
        assert first.result() is None
    assert all(cancelled)
    assert not errors
