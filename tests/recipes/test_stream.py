"""Checks of any number of cases: made, computed, written and forgotten, by whoever computes them."""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

import dpcalc
from dpcalc.cli.main import main
from dpcalc.cluster import calls
from dpcalc.errors import SpecError, WorkerLost
from dpcalc.recipes.reading.read import read
from dpcalc.recipes.reading.recipe import Cases, Recipe
from dpcalc.recipes.running import checking
from dpcalc.recipes.running.checking import Checking, Chunk, run_chunk
from dpcalc.recipes.running.journal import Journal
from dpcalc.recipes.running.selection import Selection, read_all
from dpcalc.render import Asked
from dpcalc.render.check import KINDS
from dpcalc.report import Report
from tests.recipes.conftest import HEAD, Write, lines_of
from tests.schema import conforms

ROOT = Path(__file__).parents[2]
CASES = """\
sweep:
  command: rdp
  algorithm: pnsgd
  matrix: {noise_std: [1, 2, 3, 4, 5], index: "1:8:1", include: {noise_std: 9, index: 3}}
  accept: one-index
  assert: epsilon <= 0.5
tight: {algorithm: pnsgd, noise_std: 2, assert: epsilon <= 0.1}
late: {algorithm: pnsgd, noise_std: 2, skip: later, assert: epsilon <= 5}
none: {algorithm: dp-sgd, assert: epsilon <= 5}
stale: {algorithm: pnsgd, noise_std: 2, accept: one-index, assert: epsilon <= 5}
mean: {algorithm: pnsgd, noise_std: 3, assert: epsilon <= cases.tight.epsilon}
""".replace(", include: {noise_std: 9, index: 3}}", "}\n  include: [{noise_std: 9, index: 3}]")
"""Cases that pass, fail, are skipped, have no answer, accept in vain, and compare with others."""

HOW = Asked(6)


@pytest.fixture
def recipe(write: Write) -> str:
    return write(CASES)


class InTurn(Executor):
    """Computes when it is asked, in this process; what is sent and answered can be changed on the way."""

    def __init__(self, change: Callable[[str], Any] = lambda text: text) -> None:
        self.change, self.sent, self.open, self.most = change, list[str](), 0, 0

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> Future[Any]:
        (document,) = arguments
        assert isinstance(document, str)
        self.sent.append(document)
        future: Future[Any] = Future()
        try:
            future.set_result(self.change(function(document)))
        except Exception as error:
            future.set_exception(error)
        return future


def _written(report: Report) -> dict[str, str]:
    kinds = ("json", "jsonl", "csv", "junit", "sarif", "github", "markdown")
    return {name: KINDS[name].write(report, HOW) for name in kinds}


# --- whoever computes -------------------------------------------------------------------------------------------------


def test_an_executor_gives_what_this_process_gives(recipe: str) -> None:
    """Every kind of report has the same bytes."""
    whole = _written(dpcalc.check(recipe))
    executor = InTurn()
    assert _written(dpcalc.check(recipe, executor=executor)) == whole
    assert executor.sent
    with ThreadPoolExecutor(3) as threads:
        assert _written(dpcalc.check(recipe, executor=threads)) == whole


def test_what_travels_names_no_file_and_no_other_case(recipe: str) -> None:
    """The comparison is computed here, and the recipe is not read by whoever computes the rest."""
    executor = InTurn()
    dpcalc.check(recipe, executor=executor)
    sent = [json.loads(document) for document in executor.sent]
    assert 45 not in {place for document in sent for place in document["places"]}  # the last one, which compares
    text = executor.sent[0]
    Path(recipe).unlink()
    checking._OF_THREAD.__dict__.clear()
    assert run_chunk(text).count("\n") >= 1


@pytest.mark.parametrize("jobs", [1, 2, 7])
def test_the_number_of_processes_changes_no_byte(recipe: str, jobs: int, tmp_path: Path) -> None:
    whole = KINDS["jsonl"].write(dpcalc.check(recipe), HOW).splitlines()[:-1]
    assert lines_of([recipe], jobs=jobs) == whole


def _spoiled(text: str) -> str:
    """Return an answer in which a failed gate holds."""
    return text.replace('"passed": false', '"passed": true').replace('"status": "failed"', '"status": "passed"')


def _emptied(text: str) -> str:
    """Return an answer with a head that fits, of cases without gates."""
    head, *lines = text.split("\n")
    cases = [json.loads(line) for line in lines]
    changed = [json.dumps({**case, "assertions": []}) for case in cases]
    return _with_head(head, changed)


def _other(text: str) -> str:
    """Return an answer with a head that fits, about cases in another order."""
    head, *lines = text.split("\n")
    return _with_head(head, lines[::-1])


def _last_is(text: str) -> Callable[[str], str]:
    """Return what puts a text in place of the last case."""

    def changed(answer: str) -> str:
        head, *lines = answer.split("\n")
        return _with_head(head, [*lines[:-1], text])

    return changed


def _with_head(head: str, lines: list[str]) -> str:
    import hashlib

    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return "\n".join([json.dumps({**json.loads(head), "sha256": digest}), *lines])


@pytest.mark.parametrize(
    "answer",
    [
        lambda text: "", lambda text: None, lambda text: 7, lambda text: "{}", lambda text: text[:-1],
        lambda text: text.split("\n")[0], lambda text: text + "\n" + text.split("\n")[-1], _spoiled, _emptied, _other,
        lambda text: text.replace('"cases": 1', '"cases": 2', 1) + "\n{}",
        _last_is("{}"), _last_is("[1"), _last_is("null"),
    ],
)  # fmt: skip
def test_garbage_never_passes_a_gate(write: Write, answer: Callable[[str], Any]) -> None:
    path = write("a: {algorithm: pnsgd, noise_std: 2, assert: epsilon <= 0.1}\n"
                 "b: {algorithm: pnsgd, noise_std: 9, assert: epsilon <= 5}")  # fmt: skip
    executor = InTurn(answer if answer is not _other else lambda text: _other(text) if text.count("\n") > 1 else text)
    piece = Chunk(Selection(read_all([path])), (0, 1))
    assert piece.read(run_chunk(piece.document))
    with pytest.raises(WorkerLost) as caught:
        list(calls.spread(iter([piece]), calls.through(executor, run_chunk), ahead=3, attempts=2))
    assert caught.value.exit_code == 4
    assert len(executor.sent) == 2


class Lost(InTurn):
    """Breaks, or never answers."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__()
        self.error = error

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self.error is not None:
            future.set_exception(self.error)
        return future


@pytest.mark.parametrize("error", [BrokenProcessPool("died"), RuntimeError(), MemoryError(), OSError("away"), None])
def test_a_worker_that_is_lost_is_an_error(
    recipe: str, error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "_GRACE", 0.01)
    with pytest.raises(WorkerLost) as caught:
        dpcalc.check(recipe, executor=Lost(error), timeout=0.01)
    assert caught.value.exit_code == 4


def test_an_executor_that_takes_nothing_is_an_error(recipe: str) -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(WorkerLost):
        dpcalc.check(recipe, executor=executor)


def test_what_is_lost_once_is_sent_again(recipe: str) -> None:
    """The verdicts are those of a check without a loss."""
    seen = set[str]()
    executor = InTurn(lambda text: text if text in seen else seen.add(text))
    assert _written(dpcalc.check(recipe, executor=executor)) == _written(dpcalc.check(recipe))


class Counted(calls.Piece):
    def __init__(self, number: int) -> None:
        self.document = str(number)

    def read(self, text: str) -> Any:
        return int(text)


def test_few_pieces_are_on_their_way_at_once() -> None:
    flying: list[Future[str]] = []
    made = 0

    def pieces() -> Iterator[calls.Piece]:
        nonlocal made
        for made in range(1, 1001):
            yield Counted(made)

    def submit(piece: calls.Piece) -> Future[str]:
        future: Future[str] = Future()
        flying.append(future)
        assert len(flying) <= 5
        if len(flying) == 5 or piece.document == "1000":
            for each, text in [(flying.pop(), piece.document)]:
                each.set_result(text)
        return future

    found = []
    for _, answer in calls.spread(pieces(), submit, ahead=5):
        found.append(answer)
        assert made - len(found) <= 5
        while len(flying) > 3 or (made == 1000 and flying):
            flying.pop(0).set_result("0")
    assert len(found) == 1000


# --- many cases -------------------------------------------------------------------------------------------------------

MANY = 'sweep: {command: rdp, algorithm: pnsgd, matrix: {index: "1:%d:1", noise_std: "1:100:1"}, assert: epsilon <= 1}'


def test_a_recipe_of_many_cases_is_not_in_memory(write: Write) -> None:
    path = write(MANY % 10_000)
    tracemalloc.start()
    found = read(path, 10**6)
    every = Selection([found])
    assert len(every.places) == len(every) == len(found.entries) == 10**6
    assert every.at(10**6 - 1)[1].name == "sweep[index=10000,noise_std=100]"
    assert every.at(99)[1].name == "sweep[index=1,noise_std=100]"
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


def _both(write: Write, monkeypatch: pytest.MonkeyPatch, text: str) -> tuple[Recipe, Recipe]:
    """Return a recipe with its cases in memory, and one that makes them when asked."""
    from dpcalc.recipes.reading import read as reading

    few = read(write(text))
    monkeypatch.setattr(reading, "MAX_CASES", 3)
    return few, read("r.yaml", 10_000)


def test_cases_that_are_made_when_asked_for_are_the_same(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"""{CASES}cut:
  algorithm: pnsgd
  matrix: {{noise_std: [1, 2], index: [1, 2, 3]}}
  exclude: [{{noise_std: 1, index: 2}}, {{index: 3}}]
  accept: one-index
  assert: epsilon <= 9
"""
    few, many = _both(write, monkeypatch, text)
    assert isinstance(many.entries, Cases)
    assert isinstance(few.entries, dict)
    assert list(few.entries.items()) == list(many.entries.items())
    assert {name: list(group) for name, group in many.made.items()} == few.made
    every = Selection([many])
    assert list(every.entries()) == list(few.entries.values())
    for wrong in (-1, len(every)):
        with pytest.raises(IndexError):
            every.at(wrong)
    for name in ("cut[noise_std=1,index=2]", "sweep[noise_std=1]", "nothing"):
        assert name not in many.entries


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('a: {algorithm: pnsgd, matrix: {index: ["1:3:1", "3:5:1"]}}', "twice"),
        ('a:\n  algorithm: pnsgd\n  matrix: {index: "1:9:1"}\n  include: [{index: 4}]', "is given twice"),
        ('a: {algorithm: pnsgd, matrix: {index: "1:9:1"}, assert: "epsilon <= cases.a[index=2].epsilon"}',
         "with itself"),
        ('a: {algorithm: pnsgd, matrix: {index: "1:9:1"}, assert: "epsilon <= cases.b.epsilon"}\n'
         'b: {algorithm: pnsgd, assert: "epsilon <= cases.a[index=3].epsilon"}', "in a circle"),
        ('a: {algorithm: pnsgd, matrix: {noise_std: "1:9:1"}, assert: "epsilon <= cases.b.epsilon"}\n'
         "b: {algorithm: pnsgd, noise_std: 7}", "asks the same"),
    ],
)  # fmt: skip
def test_many_cases_are_refused_as_few_are(
    write: Write, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    said = []
    with pytest.raises(SpecError) as caught:
        read(write(text))
    said.append((caught.value.message, caught.value.hint))
    from dpcalc.recipes.reading import read as reading

    monkeypatch.setattr(reading, "MAX_CASES", 3)
    with pytest.raises(SpecError) as caught:
        read("r.yaml", 10_000)
    said.append((caught.value.message, caught.value.hint))
    assert said[0] == said[1]
    assert message in said[0][0]


# --- checkpoints ------------------------------------------------------------------------------------------------------

SMALL = "sweep: {command: rdp, algorithm: pnsgd, matrix: {noise_std: [1, 2]}, assert: epsilon <= 0.5}"


def _any(place: int, line: str) -> bool:
    return True


def test_a_checkpoint_that_is_cut_anywhere_is_taken_up(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte: what was whole is taken over, and the rest is as if it had never been written.

    A file that has no more than the beginning of a header is not taken for a checkpoint.
    """
    monkeypatch.setattr(os, "fsync", lambda _: None)
    write(SMALL)
    header, whole = {"schema": "x"}, ['{"a": 1}', '{"b": "\\u2264"}']
    with contextlib.closing(Journal.kept(range(2), "c", header, _any)) as first:
        for place, line in enumerate(whole):
            first.write(place, line)
    kept = Path("c").read_bytes()
    ends = [place for place, byte in enumerate(kept, start=1) if byte == 10]
    for size in range(len(kept) + 1):
        Path("c").write_bytes(kept[:size])
        if 0 < size <= kept.index(b"}"):  # so little may be the beginning of anything
            with pytest.raises(SpecError, match="no checkpoint"):
                Journal.kept(range(2), "c", header, _any)
            continue
        journal = Journal.kept(range(2), "c", header, _any)
        complete = max(0, sum(end <= size for end in ends) - 1)
        assert list(journal.missing()) == [0, 1][complete:]
        for place in journal.missing():
            journal.write(place, whole[place])
        assert [journal.line(number) for number in range(2)] == whole
        journal.close()
        assert Path("c").read_bytes() == kept


@pytest.mark.parametrize("share", [0.0, 0.1, 0.4, 0.6, 0.999, 1.0])
def test_a_check_with_a_checkpoint_computes_what_is_missing(write: Write, share: float) -> None:
    path = write(SMALL)
    whole = lines_of([path], executor=InTurn(), checkpoint="c")
    kept = Path("c").read_bytes()
    Path("c").write_bytes(kept[: int(share * len(kept))])
    executor = InTurn()
    assert lines_of([path], executor=executor, checkpoint="c") == whole
    assert Path("c").read_bytes() == kept
    assert len(executor.sent) == {0.0: 2, 0.1: 2, 0.4: 2, 0.6: 1, 0.999: 1, 1.0: 0}[share]


def test_a_checkpoint_that_was_changed_is_refused(write: Write) -> None:
    path = write(SMALL)
    lines_of([path], executor=InTurn(), checkpoint="c")
    kept = Path("c").read_bytes()
    header, first, second = kept.splitlines(keepends=True)
    other = second.replace(b'"passed": false', b'"passed": true')
    import hashlib

    body = other.partition(b'"case": ')[2][:-2]
    forged = b'{"place": 1, "sha256": "%s", "case": %s}\n' % (
        hashlib.sha256(b"1 " + body).hexdigest().encode(), body
    )  # fmt: skip
    wrong = [header + first[:-20] + b"\n" + second, header + first.replace(b"0.", b"1.", 1) + second, header + b"\n",
             header + first.replace(b'"place": 0', b'"place": 7'), header + forged,
             header + first.replace(b'"place": 0', b'"place": 1')]  # fmt: skip
    for number, data in enumerate(wrong):
        if data == header + forged and other == second:
            continue
        Path("c").write_bytes(data)
        with pytest.raises(SpecError, match=r"line [23] is damaged"):
            lines_of([path], executor=InTurn(), checkpoint="c")
        assert Path("c").read_bytes() == data, number


def test_a_checkpoint_of_something_else_is_refused(write: Write) -> None:
    path = write(SMALL)
    lines_of([path], executor=InTurn(), checkpoint="c")
    kept = Path("c").read_bytes()
    version = kept.replace(b'"dpcalc": "', b'"dpcalc": "9', 1)
    for data, message in [(version, "another version"), (b"keep me\n", "no checkpoint"), (b"keep", "no checkpoint"),
                          (b"[1]\n", "no checkpoint")]:  # fmt: skip
        Path("c").write_bytes(data)
        with pytest.raises(SpecError, match=message):
            lines_of([path], executor=InTurn(), checkpoint="c")
        assert Path("c").read_bytes() == data
    Path("c").write_bytes(kept)
    write(SMALL.replace("0.5", "0.6"))
    with pytest.raises(SpecError, match="other cases") as caught:
        lines_of([path], executor=InTurn(), checkpoint="c")
    assert "remove this one" in str(caught.value.hint)
    write(SMALL)
    with pytest.raises(SpecError, match="other options"):
        dpcalc.check(path, checkpoint="c", executor=InTurn(), certify=True)


@pytest.mark.parametrize("how", [{"run": "^new$"}, {"shard": "1/2"}, {"shard": "2/2"}])
def test_a_checkpoint_is_of_the_cases_that_are_compared_with(write: Write, how: dict[str, Any]) -> None:
    text = (
        "  old: {algorithm: shuffled, noise_std: 2}\n"
        "  new: {algorithm: shuffled, noise_std: 4, assert: epsilon <= cases.old.epsilon}\n"
    )
    path = write(text)
    report = dpcalc.check(path, checkpoint="c", **how)
    assert report.exit_code == 0
    write(text.replace("noise_std: 2", "noise_std: 8"))
    if any(case.check and case.check.name == "new" for case in report.cases):
        with pytest.raises(SpecError, match="other cases"):
            dpcalc.check(path, checkpoint="c", **how)


def test_two_checks_do_not_share_a_checkpoint(write: Write) -> None:
    path = write(SMALL)
    selection = Selection(read_all([path]))
    with Checking(selection, checkpoint="c"), pytest.raises(SpecError, match="in use"):
        Checking(selection, checkpoint="c")


def test_a_check_that_is_killed_is_taken_up(write: Write, tmp_path: Path) -> None:
    """A real process, killed several times at some moment: the bytes are those of one that was not."""
    path = write(HEAD and SMALL.replace("[1, 2]", '"1:60:1"'))
    command = [sys.executable, "-m", "dpcalc", "check", path, "--format", "jsonl", "--checkpoint", "c"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    seen = 0
    for _ in range(3):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=tmp_path)
        assert process.stdout is not None
        for _ in range(seen + 5):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        lines = Path("c").read_bytes().count(b"\n") - 1
        assert lines >= seen + 5 or lines == 60
        seen = min(lines, 50)
    last = subprocess.run(command, capture_output=True, env=environment, cwd=tmp_path, check=False)
    assert last.returncode == 1
    assert last.stdout.decode() == KINDS["jsonl"].write(dpcalc.check(path), HOW)


# --- shards -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", [1, 3])
def test_shards_of_lines_merge_to_the_whole(recipe: str, of: int) -> None:
    """A shard that an executor computes is the one of this process, and JSON and lines of JSON are the same report."""
    names = []
    for number in range(1, of + 1):
        share = dpcalc.check(recipe, shard=f"{number}/{of}", executor=InTurn())
        assert share == dpcalc.check(recipe, shard=f"{number}/{of}")._replace(cases=share.cases)
        assert share.to_dict() == dpcalc.check(recipe, shard=f"{number}/{of}").to_dict()
        kind = "jsonl" if number % 2 else "json"
        names.append(f"{number}.{kind}")
        Path(names[-1]).write_text(KINDS[kind].write(share, HOW), encoding="utf-8")
    assert _written(dpcalc.merge(names)) == _written(dpcalc.check(recipe))


def test_lines_that_are_not_whole_are_no_shard(recipe: str) -> None:
    """Without the last line, without another, twice, or with a verdict that was changed."""
    text = KINDS["jsonl"].write(dpcalc.check(recipe, shard="1/1"), HOW)
    lines = text.splitlines(keepends=True)
    wrong = ["".join(lines[:-1]), "".join(lines[1:]), text[:-1], text + lines[-1], "".join([lines[0], *lines]), "",
             text.replace('"exit_code": 2, "verdict"', '"exit_code": 0, "verdict"'), lines[-1],
             text.replace('"verdict": "failed"', '"verdict": "passed"')]  # fmt: skip
    for data in wrong:
        assert data != text
        Path("s.jsonl").write_text(data, encoding="utf-8")
        with pytest.raises(SpecError):
            dpcalc.merge("s.jsonl")
    Path("s.jsonl").write_text(text, encoding="utf-8")
    assert _written(dpcalc.merge("s.jsonl")) == _written(dpcalc.check(recipe))


# --- many queries -----------------------------------------------------------------------------------------------------

RUN = {"records": 100, "lipschitz": 1, "smoothness": 1, "step_size": 0.5, "delta": 1e-5}
RUNS = [{**RUN, "algorithm": algorithm, "noise_std": noise, "gates": ["epsilon<=1"]}
        for algorithm in ("pnsgd", "local") for noise in (1, 2.0)]  # fmt: skip


def test_queries_on_an_executor_are_those_of_this_process() -> None:
    with ThreadPoolExecutor(2) as threads:
        there = dpcalc.sweep(RUNS, executor=threads)
    here = dpcalc.sweep(iter(RUNS))
    assert there.to_dict() == here.to_dict()
    for run, case in zip(RUNS, here.cases, strict=True):
        alone = dpcalc.compare(**run).cases[0]
        assert (case.best, case.assertions) == (alone.best, alone.assertions)
    assert [type(case.best) for case in there.cases] == [type(case.best) for case in here.cases]


@pytest.mark.parametrize("change", [lambda text: "", lambda text: 1, lambda text: text[:-1],
                                    lambda text: text.replace('"passed": false', '"passed": true')])  # fmt: skip
def test_garbage_answers_no_query(change: Callable[[str], Any]) -> None:
    with pytest.raises(WorkerLost):
        dpcalc.sweep([{**RUNS[0], "gates": "epsilon<=0.001"}], executor=InTurn(change))


def test_a_run_of_a_sweep_is_one_run() -> None:
    for wrong in ({**RUN, "noise_std": [1, 2], "algorithm": "pnsgd"}, {**RUN, "schedule": "x.csv"}, {"nonsense": 1},
                  {**RUN, "gates": "nothing"}):  # fmt: skip
        for executor in (None, InTurn()):
            with pytest.raises(SpecError):
                dpcalc.sweep([wrong], executor=executor)
    with pytest.raises(SpecError):
        dpcalc.sweep([RUN], command="train")


SWEEP = "-n 1000 -L 1 --smoothness 1 --eta 0.1 -d 1e-6"


def _run(line: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    return int(stop.value.code or 0)


def test_shards_of_a_comparison_merge_to_the_whole(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write(SMALL)
    asked = f"compare {SWEEP} --algorithm pnsgd,local --sigma 1,2 --assert epsilon<=20"
    code = _run(f"{asked} --report json=all.json --report csv=all.csv")
    for number in (1, 2, 3):
        _run(f"{asked} --shard {number}/3 --report json={number}.json")
        conforms(json.loads(Path(f"{number}.json").read_text(encoding="utf-8")))
    assert _run("merge 3.json 1.json 2.json --report json=m.json --report csv=m.csv") == code
    for kind in ("json", "csv"):
        assert Path(f"m.{kind}").read_text(encoding="utf-8") == Path(f"all.{kind}").read_text(encoding="utf-8")
    _run(f"{asked.replace('=20', '=21')} --shard 3/3 --report json=o.json")
    _run("check r.yaml --shard 3/3 --report json=c.json")
    text = Path("3.json").read_text(encoding="utf-8")
    Path("f.json").write_text(text.replace('"value": ', '"value": 1', 1), encoding="utf-8")
    for wrong in ("1.json 2.json", "1.json 2.json 2.json 3.json", "1.json 2.json o.json", "1.json 2.json c.json",
                  "1.json 2.json f.json", "1.json 2.json 3.json --report junit=x.xml"):  # fmt: skip
        assert _run(f"merge {wrong}") == 2
    capsys.readouterr()


def test_a_long_check_shows_what_did_not_pass(
    write: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reports are those of a check whose cases are in memory; the text is short."""
    from dpcalc.cli.output import streaming
    from dpcalc.recipes.reading import read as reading

    path = write(CASES)
    kinds = ("json", "jsonl", "csv", "junit", "sarif")
    code = _run(f"check {path} " + " ".join(f"--report {kind}=few.{kind}" for kind in kinds))
    few = capsys.readouterr()
    for module in (reading, streaming, checking):
        monkeypatch.setattr(module, "MAX_CASES", 10)
    assert _run(f"check {path} --max-cases 99 " + " ".join(f"--report {kind}=many.{kind}" for kind in kinds)) == code
    many = capsys.readouterr()
    for kind in kinds:
        assert Path(f"many.{kind}").read_bytes() == Path(f"few.{kind}").read_bytes()
    assert many.err == few.err
    assert many.out.splitlines()[-1] == few.out.splitlines()[-1]
    passed = Path("few.jsonl").read_text(encoding="utf-8").count('"status": "passed"')
    assert f"not shown: {passed} cases that passed" in many.out
    assert [line.split()[1] for line in many.out.splitlines() if line.startswith("FAIL")] == ["tight", "tight"]
    assert "sweep" not in many.out
    assert _run(f"check {path} --max-cases 99 --format jsonl") == code
    assert capsys.readouterr().out == Path("few.jsonl").read_text(encoding="utf-8")
    for refused in ("--report html=x.html", "--report badge=x.svg", "--baseline few.json"):
        assert _run(f"check {path} --max-cases 99 {refused}") == 2
    assert _run(f"check {path} --max-cases 5") == 2
    capsys.readouterr()
