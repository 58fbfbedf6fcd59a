"""What is computed of the records without noise: only where it is asked for, and next to the word that says so.

The numbers are planted, so that each is found wherever it is shown, whatever the code that shows it does.
"""

import csv
import importlib.util
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.cli.main import main
from dpcalc.training.release import metrics

PLANTED, WORD = 0.777123, "uncovered"
SEEN = "0.7771"
"""The first digits of it, which every surface shows."""

TRAIN = ["train", "--data", "example:breast-cancer", "-e", "1", "-d", "1e-5"]
ASKED = "--show-unprotected-metrics"


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every metric of every part is the planted number; the parts that were measured."""
    calls: list[str] = []

    def measure(weights: Any, problem: Any, progress: Any = None) -> dict[str, float]:
        calls.append("measured")
        return {"loss": PLANTED, "accuracy": PLANTED}

    monkeypatch.setattr(metrics, "measure", measure)
    return calls


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*TRAIN, *words])
    assert not ended.value.code
    return capsys.readouterr().out


# ---- every surface, cut into pieces: a number and the words that a reader sees beside it -----------------------------


def lines(text: str) -> list[str]:
    return text.splitlines()


def keys(text: str) -> list[str]:
    """Every leaf of a JSON document with the path to it."""

    def leaves(path: str, node: Any) -> Iterator[str]:
        pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else None
        if pairs is None:
            yield f"{path} {node}"
        else:
            for name, inner in pairs:
                yield from leaves(f"{path}.{name}", inner)

    return [
        leaf
        for line in ([text] if text.startswith("{\n") else text.splitlines())
        for leaf in leaves("", json.loads(line))
    ]


def cells(text: str) -> list[str]:
    """Every cell of a CSV with the name of its column."""
    return [f"{name} {value}" for row in csv.DictReader(io.StringIO(text)) for name, value in row.items()]


def rows(text: str) -> list[str]:
    """Every row of every table of a page, and what is between them; attributes and styles are not read."""
    body = re.sub(r"<style.*?</style>|<script.*?</script>|<svg.*?</svg>", "", text, flags=re.S)
    return re.split(r"</tr>|</p>|</li>|</section>|</dd>", body)


Pieces = Callable[[str], list[str]]

FORMATS: dict[str, tuple[list[str], Pieces]] = {
    "first screen": ([], lines),
    "-v": (["-v"], lines),
    "-vv": (["-vv"], lines),
    "json": (["--json"], keys),
    "jsonl": (["--format", "jsonl"], keys),
    "csv": (["--format", "csv"], cells),
    "markdown": (["--format", "markdown"], lines),
    "table": (["--format", "table"], lines),
}
"""Formats that the command prints, each with how it is cut into pieces."""

WITHOUT = ("statement", "explain", "bibtex")
"""Formats that speak of the guarantee alone."""


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("asked", [[ASKED], ["--test-fraction", "0.2"]])
def test_every_number_says_that_it_is_uncovered(
    name: str, asked: list[str], measured: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words, pieces = FORMATS[name]
    found = [piece for piece in pieces(said([*asked, *words], capsys)) if SEEN in piece]
    assert found, "the number is not shown, so that nothing was tested"
    assert all(WORD in piece for piece in found), found


@pytest.mark.parametrize("name", [*FORMATS, *WITHOUT])
def test_by_default_nothing_is_measured_and_no_format_has_it(
    name: str, measured: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words, pieces = FORMATS.get(name, (["--format", name], lines))
    text = said(words, capsys)
    assert measured == []
    assert SEEN not in text
    assert not [piece for piece in pieces(text) if re.search("accuracy|rows_clipped|rows shortened|uncovered", piece)]


@pytest.mark.parametrize("name", WITHOUT)
def test_formats_of_the_guarantee_alone_have_no_metrics(
    name: str, measured: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = said([ASKED, "--format", name], capsys)
    assert measured
    assert SEEN not in text


@pytest.mark.parametrize(("kind", "ending"), [("html", "html"), ("markdown", "md"), ("json", "json"), ("junit", "xml")])
def test_reports_say_so_too(
    kind: str, ending: str, measured: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from dpcalc.cli.output.terminal import REPORTS

    if kind not in REPORTS:
        pytest.skip(f"there is no report of the kind {kind}")
    if (package := REPORTS[kind].package) and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    path = tmp_path / f"report.{ending}"
    said([ASKED, "--report", f"{kind}={path}"], capsys)
    pieces = {"html": rows, "json": keys}.get(kind, lines)
    text = path.read_text()
    found = [piece for piece in pieces(text) if SEEN in piece]
    assert all(WORD in piece or "not covered" in piece for piece in found), found
    assert found or kind == "junit"


def test_model_card_and_statement_hold_none(
    measured: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said([ASKED, "--test-fraction", "0.2", "-o", str(tmp_path / "m.json")], capsys)
    said([ASKED, "-o", str(tmp_path / "n.npz"), "--report", f"card={tmp_path / 'card.md'}"], capsys)
    assert len(measured) == 3
    written = sorted(tmp_path.iterdir())
    assert [path.name for path in written] == ["card.md", "m.card.json", "m.json", "n.card.json", "n.npz"]
    for path in written:
        text = path.read_bytes()
        if path.suffix == ".npz":
            text = b"".join(np.load(path, allow_pickle=False)[name].tobytes() for name in np.load(path).files)
        assert SEEN.encode() not in text
        assert np.float64(PLANTED).tobytes() not in text


def test_python_shows_it_beside_the_word(measured: list[str]) -> None:
    given: dict[str, Any] = {"data": "example:breast-cancer", "epsilon": 1, "delta": 1e-5}
    report = dpcalc.train(**given, show_unprotected_metrics=True)
    case = report.cases[0]
    shown = {
        "str": str(report).splitlines(), "repr": [repr(report), repr(case)], "notebook": rows(report._repr_html_()),
        "rows": [f"{name} {value}" for row in report.rows() for name, value in row.items()],
        "dict": keys(json.dumps(report.to_dict(), indent=1)),
    }  # fmt: skip
    found = {name: [piece for piece in pieces if SEEN in piece] for name, pieces in shown.items()}
    assert all(WORD in piece for pieces in found.values() for piece in pieces), found
    assert {name for name, pieces in found.items() if pieces} >= {"str", "rows", "dict"}
    assert not measured[1:]
    plain = dpcalc.train(**given)
    assert "uncovered" not in plain.cases[0].training  # type: ignore[operator]
    assert not measured[1:]


def test_several_cases_say_so_in_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "--synthetic", "logistic", "-n", "100", "--dimension", "2", "-R", "1", "--algorithm"]
    words += ["shuffled,stop", "--eta", "0.005", "--sigma", "0.5", "-d", "1e-5", "--replicas", "5"]
    for form in ("plain", "markdown", "csv", "json"):
        with pytest.raises(SystemExit):
            main([*words, "--format", form])
        out = capsys.readouterr().out
        pieces = {"json": keys, "csv": cells}.get(form, lines)
        found = [piece for piece in pieces(out) if re.search("accuracy|train_loss|quantiles", piece)]
        assert found
        assert all(WORD in piece for piece in found)


needs_sklearn = pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="scikit-learn is not installed")


@needs_sklearn
def test_estimators_measure_and_warn_on_request_alone(measured: list[str], recwarn: Any) -> None:
    import dpcalc.sklearn

    x = np.linspace(-3.0, 3.0, 80).reshape(40, 2)  # outside the ranges
    given: dict[str, Any] = {"epsilon": 2.0, "classes": (0, 1), "accountant": dpcalc.Accountant()}
    plain = dpcalc.sklearn.DPClassifier(**given).fit(x, np.arange(40) % 2)
    assert (measured, plain.uncovered_, list(recwarn)) == ([], {}, [])
    with pytest.warns(dpcalc.sklearn.OutsideRangesWarning, match="no guarantee covers"):
        asked = dpcalc.sklearn.DPClassifier(**given, show_unprotected_metrics=True).fit(x, np.arange(40) % 2)
    assert asked.uncovered_["metrics"]["train"]["accuracy"] == PLANTED
    assert SEEN not in json.dumps(asked.privacy_.to_dict())
    assert plain.set_params(show_unprotected_metrics=False).fit(x, np.arange(40) % 2).uncovered_ == {}
