"""Tables that differ in one record: all that train says of them, its metrics aside, is the same."""

import contextlib
import io
import json
import random
import shlex
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcalc.cli.main import main
from tests.oracles import cases

HOSTILE = (
    b"", b" ", b"a", b"b", b"nan", b"inf", b"-inf", b"1e400", b"-1e308", b"1e308", b"5e-324", b"0", b"-0", b"2", b"-7",
    b'"', b'""', b'"x', b'"1,2"', b"'", b"1_0", b"0x1p3", b"\0", b"\xff\xfe", "é １ \u202e".encode(), b"\r", b"#1",
    b"True", b"yes", b"no", b"1,2", b",", b";", b"9" * 5000, b"x" * 200_000, b'"' + b"y" * 200_000 + b'"', b"1e",
    b"::error::", b"\x1b[31m", b"=1+1", b"null", b"1" * 400,
)  # fmt: skip
HEADER = b"a,b,y\n"
LINES = (
    "--loss logistic --positive 1 -R 1 -e 1 -d 1e-2",
    "--loss logistic -R 1 -e 1 -d 1e-2 --labels no,yes --intercept",
    "--loss hinge --positive 1 -R 1 --sigma 2 -d 1e-2 --steps 5 --eta 0.1 --test-fraction 0.2",
    "--loss squares --label-bound 2 -R 3 -e 1 -d 1e-2 --ranges ranges.csv",
    "--loss absolute --power 1.5 --label-bound 1e100 -R 1 --sigma 2 -d 1e-2 --steps 5 --eta 0.1",
    "--loss huber --huber-threshold 1 --label-bound 1e150 --algorithm shuffled --sigma 2 -d 1e-2 --eta 0.1",
    "--loss logistic --positive 1 --algorithm pnsgd --noise laplace --laplace-scale 2 -R 1 -d 1e-2 --eta 0.1",
    "--labels no,yes,2 -e 1 -d 1e-2 --ranges ranges.csv",
    "--loss softmax --classes 4 --algorithm cyclic -R 1 --sigma 2 -d 1e-2 --eta 0.1 --intercept",
    "--loss squares -e 1 -d 1e-2 --solver sums --intercept",
    "--loss logistic --algorithm correlated --mechanism tree --batch-size 2 --epochs 3 -e 1 -d 1e-2",
    "--loss squares -R 1 --feature-bound 1e140 --algorithm stop --sigma 1e150 -d 1e-2 --eta 1e-290 --target a",
)


def row(r: random.Random) -> bytes:
    kind = r.random()
    if kind < 0.1:
        return r.choice(HOSTILE)  # with any number of cells
    if kind < 0.4:
        return b",".join(r.choice(HOSTILE) for _ in range(3))
    return b"%g,%g,%d" % (r.gauss(0.0, 1.0), r.gauss(0.0, 30.0), r.choice((0, 1)))


def said(words: str, *formats: str) -> list[tuple[int, str, str]]:
    """Return exit code, standard output and standard error of train in each format."""
    outcomes = []
    for form in formats:
        out, err, code = io.StringIO(), io.StringIO(), 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("always")  # on standard error
            try:
                main([*shlex.split(words), "--format", form])
            except SystemExit as stop:
                code = int(stop.code or 0)
        outcomes.append((code, out.getvalue(), err.getvalue()))
    return outcomes


def covered(output: str) -> Any:
    """Return a report in JSON without what it calls uncovered, of test records, and without what is released."""
    report = json.loads(output, parse_constant=pytest.fail)
    for case in report["cases"]:
        case["training"].pop("uncovered", None)
        case["training"].pop("coefficients", None)
    return report


def model(path: Path) -> dict[str, Any]:
    """Return what stands in a model file beside the weights, which are the release, and what follows from iterates."""
    fields: dict[str, Any] = json.loads(path.read_text())
    assert isinstance(fields.pop("noise_std", 1.0), float)
    several = "classes" in fields
    for name in ("weights", "intercept"):
        numbers = np.array(fields.pop(name))
        assert (numbers.dtype, numbers.ndim) == (np.float64, int(name == "weights") + int(several))
    return fields


def test_what_is_said_of_neighbours_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ranges.csv").write_text("column,low,high\na,-1,1\nb,0,1e-280\ny,0,1\n")
    table, released = tmp_path / "t.csv", tmp_path / "m.json"
    for number in range(cases(16, 3)):
        r = random.Random(f"neighbours {number}")
        rows = [row(r) for _ in range(r.choice((3, 12)))]
        place, more = r.randrange(len(rows)), LINES[number % len(LINES)]
        other = r.choice([r.choice(rows), row(r), row(r), b"0,0,0"])
        seen = []
        for last in (rows[place], other):
            table.write_bytes(HEADER + b"".join(each + b"\n" for each in [*rows[:place], last, *rows[place + 1 :]]))
            line = f"train --data t.csv {more} -o m.json"
            [(code, out, err), (same, text, more_err)] = said(line, "json", "plain")
            [(_, screen, _)], [(_, whole, _)] = said(f"{line} -v", "plain"), said(f"{line} -vv", "plain")
            assert code == same == 0, (number, more, err)
            texts = () if "--test-fraction" in more else (text, screen, whole)
            seen.append((code, err, more_err, covered(out), *texts, model(released)))
            released.unlink()
        assert seen[0] == seen[1], (number, more, rows, place, other)


# --- where rows are centred, answers counted, and models measured -----------------------------------------------------

STRONG = (
    "--labels no,yes --evaluate-share 20%",
    "--labels no,yes,2 --evaluate-share 20% --class-weight 1,2,3",
    "--target-range 0,10 --evaluate-share 20%",
    "--labels no,yes --test-fraction 0.2 --evaluate-share 20% --class-shares 0.9,0.1 --class-weight sqrt",
    "--target-range 0,10 --solver sums --evaluate-share 20%",
)


def strong_row(r: random.Random) -> bytes:
    return b"%g,%g,%s" % (r.uniform(-1.0, 1.0), r.uniform(0.0, 100.0), r.choice((b"no", b"yes", b"2", b"5")))


def ranged(folder: Path) -> Callable[[list[bytes]], None]:
    """Write the ranges of a and b to a folder, and return a function that writes rows beside them."""
    (folder / "ranges.csv").write_text("column,low,high\na,-1,1\nb,0,100\n")

    def write(rows: list[bytes]) -> None:
        (folder / "t.csv").write_bytes(b"a,b,y\n" + b"".join(each + b"\n" for each in rows))

    return write


def without_released(output: str) -> Any:
    """Return a report in JSON without the noisy numbers that are released with the model, whose names are kept."""
    report = covered(output)
    for case in report["cases"]:
        training = case["training"]
        for part, name in (("calibration", "temperature"), ("centre", "scale"), ("evaluation", "metrics")):
            if part in training:
                training[part][name] = sorted(training[part][name]) if name == "metrics" else 1.0
        for note in case["note_data"]:
            if note["kind"] == "calibrated":
                note["temperature"] = 1.0
        case.pop("notes", None)
    return report


@pytest.mark.few(2)
@pytest.mark.parametrize("more", STRONG)
def test_nothing_but_noisy_numbers_tells_neighbours_apart(
    more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows with cells that are infinite, no numbers, huge, or the same again: with one seed."""
    monkeypatch.chdir(tmp_path)
    write = ranged(tmp_path)
    line = f"train --data t.csv {more} --ranges ranges.csv -e 20 -d 1e-3 --seed 3 -o m.json"
    for number in range(cases(4, 1)):
        r = random.Random(f"strong {number}")
        rows = [strong_row(r) for _ in range(120)]
        for other in (b"inf,nan,no", b"1e308,-1e400,yes", b",,", rows[1], row(r)):
            seen = []
            for last in (rows[0], other):
                write([*rows[1:], last])
                [(code, out, err)] = said(line, "json")
                released = model(tmp_path / "m.json")
                kinds = {name: type(released.pop(name, None)) for name in ("centre", "scale", "temperature")}
                seen.append((code, err, without_released(out), released, kinds, list(released)))
            assert seen[0] == seen[1], other
            assert seen[0][0] == 0
        calibrated = "labels" in more
        assert ("calibration" in seen[0][2]["cases"][0]["training"]) == calibrated


@pytest.mark.parametrize("labels", ["a a a c", "a a b c", "a a a a", "c c c c", "1 2 3 4", "nan inf x 0"])
@pytest.mark.parametrize("more", ["--labels a,c", "--positive c"])
def test_no_set_of_labels_is_refused(labels: str, more: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"0.5,{label}\n" for label in labels.split()))
    [(code, out, _)] = said(f"train --data {tmp_path / 't.csv'} --loss logistic -R 1 -e 1 -d 1e-2 -vv {more}", "plain")
    assert code == 0
    assert "note: labels: 'c' counts as +1, everything else as -1" in " ".join(out.split())


@pytest.mark.parametrize(("more", "longest"), [("-e 0.3", "0.98"), ("-e 9", "1"), ("-e 0.3 --no-intercept", "1")])
def test_the_first_screen_says_how_columns_without_ranges_are_read(more: str, longest: str, tmp_path: Path) -> None:
    """In the same words whether there are words or long rows, or none. The length leaves room for the intercept."""
    (tmp_path / "ranges.csv").write_text("column,low,high\nx,0,9\n")
    line, seen = f"train --data {tmp_path / 't.csv'} --labels a,c -d 1e-2 {more}", []
    for cell in ("red", "0.5", "1e9"):
        (tmp_path / "t.csv").write_text("x,y\n" + f"{cell},a\n0.1,c\n" * 20)
        [(code, out, _)] = said(line, "plain")
        assert code == 0
        seen.append(next(text for text in out.splitlines() if text.startswith("columns:")))
    said_of = f"columns: no --ranges: words count as 0, and rows longer than {longest} are shortened"
    assert seen == [said_of] * 3
    [(_, out, _)] = said(f"{line} --ranges {tmp_path / 'ranges.csv'}", "plain")
    assert "columns:" not in out


@pytest.mark.parametrize("labels", ["yes no no", "1 2 3", "1 yes 0"])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_classes_of_a_file_are_named_whatever_stands_in_it(labels: str, loss: str, tmp_path: Path) -> None:
    """Words would all count as -1; a refusal that looked at them would tell of the records."""
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"0.5,{label}\n" for label in labels.split()))
    line = f"train --data {tmp_path / 't.csv'} --loss {loss} -R 1 -e 1 -d 1e-2"
    [(code, out, err)] = said(line, "plain")
    assert (code, out) == (2, "")
    assert "may be words, which would all count as -1" in err
    assert "--labels NO,YES, or --labels 0,1" in err
    [(code, _, _)] = said(f"{line} --labels 0,1", "plain")
    assert code == 0


def test_a_run_that_might_overflow_is_refused_on_every_table(tmp_path: Path) -> None:
    """Without a projection some records drive the weights beyond the doubles, and others do not."""
    line = f"train --data {tmp_path / 't.csv'} --loss logistic --positive 1 --regularisation 2 --sigma 30 -d 1e-2"
    for rows in ("0,0\n0,0\n", "1,1\n1,1\n"):
        (tmp_path / "t.csv").write_text("x,y\n" + rows)
        for more, expected in (("--eta 0.5 --steps 9", 0), ("--eta 3 --steps 5000", 2)):
            [(code, _, err)] = said(f"{line} {more}", "plain")
            assert code == expected, err
            assert ("might overflow" in err) == (code == 2), err
