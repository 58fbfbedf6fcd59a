"""A sample of the questions is answered as recorded; what two recordings differ in is found, and told apart."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import recording
from tests.corpus.__main__ import main, unlike
from tests.corpus.asking import Worker
from tests.corpus.compare import differences, report
from tests.corpus.names import ALGORITHMS, ALL_COMMANDS, BOUNDS, FORMATS, LOSSES, TARGETS
from tests.corpus.normal import digest, normalised
from tests.corpus.question import Question
from tests.corpus.questions import questions
from tests.oracles import cases

RECORD = "record before and after, compare, then python -m tests.corpus digests AFTER"


def test_a_sample_is_answered_as_recorded() -> None:
    quick = [one for one in questions() if one.quick]
    count = cases(150)
    asked = quick[:: len(quick) // count] if count < len(quick) else questions()
    changed = list(unlike(asked))
    assert not changed, "\n".join([*changed, f"where this is meant: {RECORD}"])


def test_every_question_is_recorded_once() -> None:
    ids = {one.id for one in questions()}
    assert len(ids) == len(questions()) > 3500
    assert ids == set(recording.read_digests()), RECORD


def test_the_questions_speak_of_everything() -> None:
    words = {word for one in questions() for word in one.argv}
    assert words >= {*ALGORITHMS, *ALL_COMMANDS, *BOUNDS, *FORMATS, *LOSSES, *TARGETS}
    worker = Worker(None)
    try:
        listed = json.loads(worker.ask(Question(("bounds", "--json")))["stdout"])
        told = worker.ask(Question(("--help",)))["stdout"]
    finally:
        worker.close()
    assert set(BOUNDS) == set(re.findall(r'"id": "([^"]+)"', json.dumps(listed)))
    rarer = re.search(r"^Rarer: (.*)\.$", told, re.MULTILINE)
    assert rarer is not None
    assert set(ALL_COMMANDS) == {*re.findall(r"^  ([a-z][a-z-]*)  ", told, re.MULTILINE), *rarer[1].split(", ")}


# --- workers --------------------------------------------------------------------------------------------------------

MAIN = """
import os, sys, warnings
def main(argv):
    if argv == ["hang"]:
        while True: pass
    if argv == ["die"]:
        os._exit(3)
    os.write(1, b"past sys.stdout\\n")
    print("version 1.2.3", os.getcwd(), os.environ.get("WORD"), sys.stdin.read())
    print(open("given.txt").read(), file=sys.stderr)
    open("new.bin", "wb").write(b"\\xff")
    sys.exit(7)
"""


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    """A worker of another program that is called dpcalc."""
    (tmp_path / "dpcalc" / "cli").mkdir(parents=True)
    for name, text in (("__init__.py", ""), ("cli/__init__.py", ""), ("cli/main.py", MAIN)):
        (tmp_path / "dpcalc" / name).write_text(text)
    found = Worker(None, patience=1, root=tmp_path)
    yield found
    found.close()


def test_a_worker_outlives_what_hangs_and_what_dies(worker: Worker, tmp_path: Path) -> None:
    assert worker.package == str(tmp_path / "dpcalc")
    assert worker.ask(Question(("hang",)))["code"] == "hung"
    assert worker.ask(Question(("die",)))["code"] == "died"
    answer = worker.ask(Question(("say",), {"given.txt": b"a file"}, {"WORD": "set"}))
    assert answer["code"] == 7
    assert answer["stdout"] == "version VERSION FOLDER set \n"
    assert answer["stderr"] == "a file\n"
    assert list(answer["written"]) == ["new.bin"]


# --- comparing ------------------------------------------------------------------------------------------------------


def _entry(stdout: Any, **more: Any) -> dict[str, Any]:
    text = stdout if isinstance(stdout, str) else json.dumps(stdout)
    empty = {"id": "0", "command": "rdp", "line": "dpcalc rdp", "code": 0, "stderr": "", "written": {}}
    return {**empty, "stdout": text, **more}


def _kinds(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one.kind, one.place) for one in differences({"0": before}, {"0": after})]


RESULTS = [{"bound": "a", "value": 0.1}, {"bound": "b", "value": 2.0}]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (_entry({"x": 0.1}), _entry({"x": 0.1}), []),
        (_entry({"x": 0.1}), _entry({"x": 0.10000000000000002}), [("json", "rdp.x")]),
        (_entry({"x": 1}), _entry({"x": 1.0}), [("json", "rdp.x")]),
        (_entry({"x": 1}), _entry({"x": "1"}), [("json", "rdp.x")]),
        (_entry({"x": 1}), _entry({"x": True}), [("json", "rdp.x")]),
        (_entry({"x": 0.0}), _entry({"x": -0.0}), [("json", "rdp.x")]),
        (_entry({"x": 1}), _entry({"x": 1, "y": 2}), [("added", "rdp.y")]),
        (_entry({"x": 1, "y": 2}), _entry({"x": 1}), [("json", "rdp.y")]),
        (_entry({"x": 1, "y": 2}), _entry({"y": 2, "x": 1}), [("text", "rdp (the same JSON, written otherwise)")]),
        (_entry({"r": RESULTS}), _entry({"r": RESULTS[1:]}), [("json", "rdp.r[a]")]),
        (_entry({"r": RESULTS}), _entry({"r": RESULTS[::-1]}), [("json", "rdp.r[] (order)")]),
        (_entry({"r": [1, 2]}), _entry({"r": [1, 3]}), [("json", "rdp.r[]")]),
        (_entry('{"x": 1}\n{"x": 2}\n'), _entry('{"x": 1}\n{"x": 3}\n'), [("json", "rdp[].x")]),
        (_entry("a\nb\n"), _entry("a\nc\n"), [("text", "rdp")]),
        (_entry("a"), _entry("a", code=3), [("code", "0 -> 3")]),
        (_entry("a"), _entry("a", stderr="error: 1.5"), [("stderr", "rdp: (no line) -> error: N")]),
        (_entry("a"), _entry("a", written={"m.json": "{}"}), [("file", "m.json")]),
        (_entry("", written={"m": '{"x": 1}'}), _entry("", written={"m": '{"x": 2}'}), [("json", "rdp m.x")]),
    ],
)
def test_a_difference_is_told_by_its_kind_and_place(before: Any, after: Any, expected: list[tuple[str, str]]) -> None:
    assert _kinds(before, after) == expected


def test_a_question_asked_once_only_is_a_difference() -> None:
    assert [one.kind for one in differences({"0": _entry("a")}, {})] == ["question"]
    assert [one.kind for one in differences({}, {"0": _entry("a")})] == ["question"]


def test_expected_differences_are_allowed() -> None:
    found = list(differences({"0": _entry({"x": 1})}, {"0": _entry({"x": 2, "y": 3}, code=1)}))
    assert report(found)[1] == 3
    assert report(found, added_ok=True)[1] == 2
    assert report(found, [r"^json \| rdp\.x \| .* \| 1 -> 2$", "^code"], added_ok=True)[1] == 0
    assert report(found, ["^json .* 1 -> 3$"])[1] == 3


def test_recordings_are_compared_from_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after, expected = (str(tmp_path / name) for name in ("a.gz", "b.gz", "expected.txt"))
    recording.write(before, [_entry({"x": 1})])
    recording.write(after, [_entry({"x": 2})])
    Path(expected).write_text("# the value is meant to change\n\njson .* 1 -> 2\n")
    assert main(["compare", before, before]) == 0
    assert main(["compare", before, after]) == 1
    assert "json rdp.x: 1" in capsys.readouterr().out
    assert main(["compare", before, after, "--allow", expected]) == 0


def test_digests_are_written_only_from_all_answers(tmp_path: Path) -> None:
    path = str(tmp_path / "part.gz")
    recording.write(path, [_entry("a")])
    before = recording.DIGESTS.read_bytes()
    with pytest.raises(SystemExit, match="record them all"):
        main(["digests", path])
    assert recording.DIGESTS.read_bytes() == before


# --- digests --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "same"),
    [
        (_entry({"x": 0.30000000000000004, "note": "at most 0.30000000000000004"}), True),
        (_entry({"x": 0.3, "note": "at most 0.3000001"}), False),
        (_entry({"x": 0.3000001, "note": "at most 0.3"}), False),
        (_entry({"y": 0.3, "note": "at most 0.3"}), False),
        (_entry({"x": 0.3, "note": "at most 0.3"}, code=1), False),
        (_entry({"x": 0.3, "note": "at most 0.3"}, stderr="warning: x"), False),
        (_entry({"x": 0.3, "note": "at most 0.3"}, written={"a": ""}), False),
    ],
)
def test_a_digest_forgives_the_last_digits_alone(after: dict[str, Any], same: bool) -> None:
    assert (digest(_entry({"x": 0.3, "note": "at most 0.3"})) == digest(after)) == same


@pytest.mark.parametrize("lines", [1, 2])
def test_a_digest_leaves_out_what_reports_did_not_have(lines: int) -> None:
    case: dict[str, Any] = {"x": 0.3, "notes": ["at most 0.3"]}
    before, after, other = (
        _entry("".join(json.dumps(one) + "\n" for _ in range(lines)))
        for one in (case, {**case, "note_data": [{"value": 0.3}]}, {**case, "data": [{"value": 0.3}]})
    )
    assert digest(before) == digest(after) != digest(other)


def test_timings_and_versions_are_masked() -> None:
    before, after = (
        normalised(_entry({"dpcalc": version, "seconds": seconds, "value": 0.1}))
        for version, seconds in (("0.1.0", 0.25), ("0.2.0.dev1", 1e-05))
    )
    assert before == after
    assert '"value": 0.1' in before["stdout"]
