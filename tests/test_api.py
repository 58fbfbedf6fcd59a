"""The Python API: its names and signatures are frozen, and it says what the command line says."""

import ast
import csv
import inspect
import io
import json
import os
import pickle
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

import dpcalc
from dpcalc.api.asked import QUESTION
from dpcalc.certify import table
from dpcalc.cli.main import main
from dpcalc.engine.commands import COMMANDS
from dpcalc.report import Case
from dpcalc.training.rule.setup import Setup

ROOT = Path(__file__).resolve().parents[1]
FROZEN = Path(__file__).parent / "data" / "api.txt"
QUERIES = [name for name in COMMANDS if hasattr(dpcalc, name.replace("-", "_"))]
RUN = {"records": 60, "lipschitz": 1, "smoothness": 1, "step_size": 0.1, "noise_std": 2}
FLAGS = "-n 60 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6"


def surface() -> str:
    """Return the public names, one a line, functions with their signatures, records with their fields."""
    lines = []
    for name in sorted(dpcalc.__all__):
        found = getattr(dpcalc, name)
        if inspect.isfunction(found):
            shown = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in _parameters(found)]
            lines.append(name + str(inspect.Signature(shown)))
        elif hasattr(found, "_fields"):
            lines.append(f"{name}: {', '.join(found._fields)}")
        else:
            lines.append(name)
    return "\n".join(lines) + "\n"


def _parameters(function: Any) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


def test_names_and_signatures_are_frozen() -> None:
    """Names and parameters are only ever added.

    After adding one: python -c 'import tests.test_api as t; t.FROZEN.write_text(t.surface())'
    """
    assert surface() == FROZEN.read_text(encoding="utf-8")


def test_the_public_names_are_listed() -> None:
    assert [name for name in dir(dpcalc) if name in dpcalc.__all__] == sorted(dpcalc.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dpcalc.nothing
    tree = ast.parse((ROOT / "dpcalc" / "__init__.pyi").read_text(encoding="utf-8"))
    typed = {alias.asname for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    typed |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert {*dpcalc.__all__} - {"__version__"} <= typed


@pytest.mark.parametrize("name", sorted(set(dpcalc.__all__) - {"__version__"}))
def test_public_names_are_documented(name: str) -> None:
    found = getattr(dpcalc, name)
    doc = inspect.getdoc(found) or ""
    assert len(doc) > 20
    if inspect.isfunction(found):
        assert "Raises:" in doc
        assert not [word for word in inspect.signature(found).parameters if word not in doc]


@pytest.mark.parametrize("command", QUERIES)
def test_every_command_is_mirrored(command: str) -> None:
    """Each function takes what its command takes, as editors, type checkers and ``help`` see it."""
    record = COMMANDS[command]
    expected = {*record.parameters, *QUESTION, *(("schedule",) if record.columns else ())}
    told = {*Setup._fields} - {"account", "evaluate_epsilon"} | {"ledger", "tune_runs", "tune_law", "tune_score"}
    own = told if command == "train" else set()
    expected -= set(QUESTION) - {"epsilon", "delta", "gates"} if command == "train" else set()
    assert set(inspect.signature(getattr(dpcalc, command.replace("-", "_"))).parameters) == expected | own


def test_there_is_a_function_for_every_question() -> None:
    assert len(QUERIES) >= 9
    assert {name for name in COMMANDS if hasattr(dpcalc, name.replace("-", "_"))} == set(COMMANDS)


def through_the_shell(capsys: pytest.CaptureFixture[str], line: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    assert not stop.value.code
    return capsys.readouterr().out


def alike(report: dict[str, Any]) -> dict[str, Any]:
    """Return the envelope without where its inputs came from: a flag or an argument."""
    text = json.dumps(report).replace('"source": "flag"', '"source": "argument"')
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.parametrize(
    ("line", "function", "given"),
    [
        (f"rdp {FLAGS}", "rdp", {**RUN, "delta": "1e-6"}),
        ("rdp --loss logistic --feature-bound 1 -n 600 --eta 0.1 --sigma 2 -d 1e-6", "rdp",
         {"loss": "logistic", "feature_bound": 1, "records": 600, "step_size": 0.1, "noise_std": 2, "delta": "1e-6"}),
        (f"rdp --algorithm stop,skip {FLAGS} -i 3", "rdp",
         {**RUN, "algorithm": ("stop", "skip"), "index": 3, "delta": ["1e-6"]}),
        ("shuffle -n 100:200:100 -L 1 --smoothness 1 --eta 0.1 --sigma 1:3:1 -e 1", "shuffle",
         {**RUN, "records": (100, 200), "noise_std": numpy.linspace(1, 3, 3), "epsilon": 1}),
        ("rdp -n 60 -L 1 --smoothness 1 --eta 0.1 --sigma 2 --order 2,4", "rdp", {**RUN, "order": [2, 4]}),
        ("rdp -n 60000 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -e 1 -d 1e-5000 --solve index", "rdp",
         {**RUN, "records": 60000, "epsilon": 1, "delta": "1e-5000", "solve": "index"}),
        (f"compare --algorithm pnsgd,cyclic {FLAGS}", "compare",
         {**RUN, "algorithm": ["pnsgd", "cyclic"], "delta": "1e-6"}),
        pytest.param(
            f"compare --algorithm all {FLAGS}", "compare", {**RUN, "algorithm": "all", "delta": "1e-6"},
            marks=pytest.mark.campaign,
        ),
        (f"rdp {FLAGS} -i 1,2 --certify", "rdp", {**RUN, "index": (1, 2), "delta": "1e-6", "certify": True}),
    ],
)  # fmt: skip
def test_the_same_report_as_the_command_line(
    capsys: pytest.CaptureFixture[str], line: str, function: str, given: dict[str, Any]
) -> None:
    printed = json.loads(through_the_shell(capsys, line + " --json"))
    assert alike(getattr(dpcalc, function)(**given).to_dict()) == alike(printed)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (f"statement --algorithm shuffled {FLAGS}",
         lambda: dpcalc.statement(algorithm="shuffled", delta="1e-6", **RUN)),
        ("explain iteration.pnsgd shuffle.product", lambda: dpcalc.explain("iteration.pnsgd", "shuffle.product")),
        (f"explain --algorithm shuffled {FLAGS}", lambda: dpcalc.explain(algorithm="shuffled", delta="1e-6", **RUN)),
        (f"explain iteration.pnsgd_rdp {FLAGS}", lambda: dpcalc.explain("iteration.pnsgd_rdp", delta="1e-6", **RUN)),
        ("cite", dpcalc.cite),
        ("cite shuffle.product", lambda: dpcalc.cite("shuffle.product")),
        (f"cite --algorithm stop {FLAGS}", lambda: dpcalc.cite(algorithm="stop", delta="1e-6", **RUN)),
        ("bounds --algorithm stop --json", lambda: json.dumps(dpcalc.list_bounds("stop"), indent=2) + "\n"),
        (f"compare --algorithm stop {FLAGS} --format markdown",
         lambda: dpcalc.format_report(dpcalc.compare(algorithm="stop", delta="1e-6", **RUN), "markdown")),
    ],
)  # fmt: skip
def test_the_same_text_as_the_command_line(capsys: pytest.CaptureFixture[str], line: str, text: Any) -> None:
    assert text() == through_the_shell(capsys, line)


def test_bounds_of_a_described_run() -> None:
    rows = {row["id"]: row for row in dpcalc.list_bounds("pnsgd", **RUN)}
    assert rows["iteration.pnsgd"]["applies"] == "yes"
    assert rows["iteration.pnsgd_domain"]["applies"] == "no"
    assert "diameter" in rows["iteration.pnsgd_domain"]["because"]
    assert "applies" not in dpcalc.list_bounds()[0]


def test_schemas_are_parsed(capsys: pytest.CaptureFixture[str]) -> None:
    assert dpcalc.schema() == json.loads(through_the_shell(capsys, "schema"))
    assert dpcalc.schema("recipe") == json.loads(through_the_shell(capsys, "schema recipe"))
    with pytest.raises(dpcalc.SpecError, match="no schema"):
        dpcalc.schema("../references")


def test_rows_are_flat_and_alike_and_what_csv_has() -> None:
    report = dpcalc.rdp(algorithm=["stop", "pnsgd"], records=100, lipschitz=1, smoothness=1, step_size=0.1,
                        noise_std=[1, 2], delta=1e-6)  # fmt: skip
    rows = report.rows()
    assert {tuple(row) for row in rows} == {report.columns}
    assert [row["case"] for row in rows if row["best"]] == [1, 2, 3, 4]
    assert [(row["algorithm"], row["input_noise_std"]) for row in rows if row["best"]] == [
        ("stop", 1.0), ("stop", 2.0), ("pnsgd", 1.0), ("pnsgd", 2.0),
    ]  # fmt: skip
    assert all(value is None or isinstance(value, (int, float, str)) for row in rows for value in row.values())
    printed = list(csv.DictReader(io.StringIO(dpcalc.format_report(report, "csv"))))
    assert len(printed) == len(rows) == sum(len(case.results) for case in report.cases)
    for row, cells in zip(rows, printed, strict=True):
        assert list(row) == list(cells)
        assert {name: "" if v is None else str(v).lower() if v in (True, False) and isinstance(v, bool) else str(v)
                for name, v in row.items()} == cells  # fmt: skip


def test_rows_of_costs_have_the_run_that_has_them() -> None:
    report = dpcalc.utility(algorithm="stop", loss="logistic", feature_bound=1, records=10**5, dimension=20, radius=1,
                            epsilon=1, delta=1e-6)  # fmt: skip
    best = next(row for row in report.rows() if row["best"])
    assert best["noise_std"] > 0.0
    assert best["value"] == report.cases[0].best.value


def test_what_a_sweep_cannot_cover_says_why() -> None:
    report = dpcalc.hockey_stick(records=1000, index=[1, 900], lipschitz=1, smoothness=1, step_size=0.1, epsilon=1,
                                 delta=1e-6, noise_std=2, gates="epsilon<=0.3")  # fmt: skip
    assert [case.failed for case in report.cases] == [False, True]
    assert report.failed == 1
    with pytest.raises(dpcalc.SpecError, match="noise"):
        dpcalc.rdp(records=[10, 20], lipschitz=1, smoothness=1, step_size=0.1)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"colour": 1}, "does not take colour"),
        ({"records": []}, "records has no value"),
        ({"records": "many"}, "records is 'many'"),
        ({"records": {"from": 1}}, "a value or a list of values"),
        ({"records": True}, "records is True"),
        ({"epsilon": -1}, "epsilon is -1"),
        ({"epsilon": float("nan")}, "epsilon is nan"),
        ({"delta": 0}, "delta is 0"),
        ({"delta": "1.5"}, "delta is 1.5"),
        ({"delta": float("nan")}, "delta is nan"),
        ({"gates": "nonsense"}, "not an assertion"),
        ({"certify": "yes"}, "certify is 'yes'"),
        ({"gates": 1}, "1 is not an assertion"),
        ({"gates": [b"epsilon<=1"]}, "is not an assertion"),
        ({"gate": None}, "does not take gate"),
        ({"records": 10**400}, "records has more than 300 digits"),
        ({"epsilon": 10**400}, "epsilon has more than 300 digits"),
        ({"order": "x"}, "order is 'x'"),
        ({"order": True}, "order is True"),
        ({"order": 10**400}, "order has more than 300 digits"),
    ],
)
def test_refusals(given: dict[str, Any], text: str) -> None:
    with pytest.raises(dpcalc.SpecError, match=text):
        dpcalc.rdp(**{**RUN, **({} if "epsilon" in given else {"delta": 1e-6}), **given})


@pytest.mark.parametrize(
    ("name", "meant"), [("gate", "gates"), ("noise_scale", "noise_std"), ("noisestd", "noise_std")]
)
def test_an_unknown_keyword_names_what_may_be_meant(name: str, meant: str) -> None:
    with pytest.raises(dpcalc.SpecError, match=f"does not take {name}") as caught:
        dpcalc.rdp(delta=1e-6, **{**RUN, name: 1})
    assert caught.value.hint == f"did you mean {meant}?"


def test_a_recipe_may_be_given_by_a_path_object(tmp_path: Path) -> None:
    path = tmp_path / "local.yaml"
    path.write_text("dpcalc: recipe/1\ncases:\n  a: {algorithm: local, lipschitz: 1, noise_std: 2, delta: 1e-6}\n")
    found = dpcalc.check(path)
    assert found == dpcalc.check([path])
    assert {case.check.file for case in found.cases if case.check} == {str(path)}


def test_formats_are_checked() -> None:
    with pytest.raises(dpcalc.SpecError, match="format is 'pdf'"):
        dpcalc.format_report(dpcalc.rdp(delta=1e-6, **RUN), "pdf")


def test_no_command_line_is_imported() -> None:
    program = (
        "import sys, dpcalc\n"
        "run = dict(records=60000, lipschitz=1, smoothness=1, step_size=0.1, noise_std=2, delta=1e-6)\n"
        "report = dpcalc.compare(algorithm=['pnsgd', 'shuffled'], **run)\n"
        "report.rows(), report.to_dict(), dpcalc.format_report(report, 'csv'), dpcalc.explain('iteration.pnsgd')\n"
        "dpcalc.cite(), dpcalc.list_bounds(), dpcalc.schema(), dpcalc.statement(algorithm='stop', **run)\n"
        "risk = dict(loss='logistic', feature_bound=1, dimension=2, radius=1)\n"
        "dpcalc.utility(algorithm='stop', records=1000, epsilon=1, delta=1e-6, **risk)\n"
        "print(sorted(name for name in sys.modules if name.partition('.')[0] == 'click' or name == 'dpcalc.cli'))\n"
    )
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "[]\n"


def test_what_is_certified_is_in_the_details(monkeypatch: pytest.MonkeyPatch) -> None:
    best = dpcalc.rdp(delta=1e-6, certify=True, **RUN).cases[0].best
    assert best.details["certified"]["quantity"] == "epsilon"
    assert "certified" not in (dpcalc.rdp(delta=1e-6, certify=False, **RUN).cases[0].best.details or {})
    left = {id: one for id, one in table.definitions().items() if id != "noisy_sgd.composition"}
    monkeypatch.setattr(table, "definitions", lambda: left)
    open_ = dpcalc.multi_epoch(
        algorithm="noisy-sgd", records=50, batch_size=5, steps=3, lipschitz=1, noise_std=2, delta=1e-5, certify=True
    ).cases[0]
    assert "no definition" in open_.best.details["not_certified"]
    with pytest.raises(dpcalc.SpecError, match="train does not take certify"):
        dpcalc.train(data="example:breast-cancer", radius=5, epsilon=1, delta=1e-5, certify=True)


def test_the_budget_comes_from_where_the_other_parameters_come_from(capsys: pytest.CaptureFixture[str]) -> None:
    given = {"records": 60, "lipschitz": 1.0, "smoothness": 1.0, "step_size": 0.1, "noise_std": 2.0, "delta": 1e-6}
    inputs = dpcalc.rdp(**given).cases[0].inputs  # type: ignore[arg-type]
    assert {inputs[name][1] for name in given} == {"argument"}
    line = "rdp -n 60 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6 --json"
    [case] = json.loads(through_the_shell(capsys, line))["cases"]
    assert {case["inputs"][name]["source"] for name in given} == {"flag"}


def test_a_keyword_of_another_program_whose_unit_may_differ_is_answered_with_ours() -> None:
    with pytest.raises(dpcalc.SpecError) as refused:
        dpcalc.rdp(noise_scale=1.0)  # type: ignore[call-arg]
    assert refused.value.hint == "did you mean noise_std?"


PENDING: list[tuple[Any, dict[str, Any]]] = [
    (dpcalc.rdp, {"records": 100, "lipschitz": 1, "smoothness": 1, "step_size": 0.1, "noise_std": 2, "delta": 1e-6}),
    (dpcalc.rdp, {"records": 100, "lipschitz": 1, "smoothness": 1, "step_size": 0.1, "noise_std": 2, "order": [2, 8]}),
    (dpcalc.rdp, {"records": 9, "lipschitz": 1, "smoothness": 1, "step_size": 0.1, "epsilon": 1, "delta": 1e-6}),
    (dpcalc.shuffle, {"records": 50, "lipschitz": 1, "smoothness": 1, "step_size": 0.1, "noise_std": 2, "epsilon": 1}),
    (dpcalc.compare, {"algorithm": "cyclic", "records": 90, "epochs": 3, "batch_size": 30, "lipschitz": 1,
                      "smoothness": 1, "step_size": 0.1, "noise_std": 0.2, "delta": 1e-6}),
]  # fmt: skip


@pytest.mark.parametrize(("function", "given"), PENDING)
def test_the_best_answer_is_there_before_the_rest_and_is_the_same(function: Any, given: dict[str, Any]) -> None:
    first, whole = function(**given).cases[0], function(**given).cases[0]._replace()
    assert first.best == whole.best
    assert (first.algorithm, first.inputs, first.query) == (whole.algorithm, whole.inputs, whole.query)
    assert type(whole) is Case
    assert first == whole
    assert whole == first
    assert (repr(first), list(first), first[2]) == (repr(whole), list(whole), whole[2])
    assert pickle.loads(pickle.dumps(first)) == whole
    assert first.best == next(result for result in first.results if result.best)


def test_a_file_is_read_when_the_question_is_asked(tmp_path: Path) -> None:
    """What is computed later of a case never depends on what has become of its file."""
    path = tmp_path / "steps.csv"
    path.write_text("shift,contraction,step_size,noise_std\n0.1,0.9,0.1,2\n0.1,0.9,0.1,2\n")
    report = dpcalc.shifted(schedule=path, delta=1e-6)
    path.unlink()
    assert report.cases[0].best is not None
    assert report.cases[0].results


DP_SGD: dict[str, Any] = {"sampling": "poisson", "adjacency": "zero-out", "sample_rate": 0.01, "steps": 200}


def test_a_report_of_one_case_has_its_numbers() -> None:
    """They are those of the JSON report, and none of them is None."""
    report = dpcalc.rdp(**RUN, delta=1e-6)
    [case] = report.to_dict()["cases"]
    [best] = [result for result in case["results"] if result["best"]]
    assert (report.epsilon, report.delta, report.mu) == (best["epsilon"], best["delta"], best["mu"])
    assert float(report) == report.value == report[0].epsilon == report.answer.epsilon
    assert (report.noise_std, report.noise_multiplier) == (2.0, 2.0)
    solved = dpcalc.rdp(**{**RUN, "noise_std": None}, epsilon=report.epsilon, delta=1e-6)
    assert solved.noise_std == solved.value == pytest.approx(2.0)
    assert solved.epsilon == report.epsilon


def test_a_delta_below_all_floats_is_rounded_up() -> None:
    report = dpcalc.rdp(**RUN, delta="1e-5000")
    assert report.delta > 0.0
    assert dpcalc.rdp(**RUN, epsilon=1e5).delta > 0.0


def test_a_number_that_there_is_not_is_refused_with_a_hint() -> None:
    several, curves = dpcalc.rdp(**{**RUN, "noise_std": [1, 2]}, delta=1e-6), dpcalc.rdp(**RUN, order=[2, 3])
    sampled = dpcalc.dp_sgd(**DP_SGD, noise_multiplier=1, delta=1e-5)
    nothing = dpcalc.compare(**RUN, algorithm=["pnsgd", "online"], delta=1e-6)[1]
    assert nothing.best is None
    refused = [lambda: several.epsilon, lambda: float(several), lambda: float(curves), lambda: curves.epsilon]
    for ask in (*refused, lambda: sampled.mu, lambda: sampled.noise_std, lambda: nothing.epsilon):
        with pytest.raises(dpcalc.DpcalcError, match=r"\(hint: "):
            ask()


@pytest.mark.parametrize("more", [{"seed": 1}, {"replicas": 2}])
def test_a_run_that_is_not_covered_has_no_number(more: dict[str, Any]) -> None:
    report = dpcalc.train(data="example:breast-cancer", epsilon=1, delta=1e-5, **more)
    assert "Not of this model" in repr(report)
    for name in ("epsilon", "delta", "mu", "noise_std", "noise_multiplier", "value", "answer"):
        with pytest.raises(dpcalc.NotApplicable, match="the run has no guarantee"):
            getattr(report, name)
    with pytest.raises(dpcalc.NotApplicable):
        float(report)


def test_a_report_is_its_cases_and_is_shown_as_the_command_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    report = dpcalc.rdp(**{**RUN, "noise_std": [1, 2]}, delta=1e-6)
    assert len(report) == 2
    assert [*report] == [*report.cases] == [report[0], report[-1]]
    one = dpcalc.rdp(**RUN, delta="1e-6")
    for shown in (report, one, *report, one.answer):
        assert len(repr(shown)) < 120
        assert "\n" not in repr(shown)
    assert f"{one.epsilon:.4g}"[:-1] in repr(one)
    print(one)
    assert capsys.readouterr().out == through_the_shell(capsys, f"rdp {FLAGS}")


def test_one_float_for_a_run_of_dp_sgd() -> None:
    epsilon = dpcalc.epsilon(noise_multiplier=1.1, delta=1e-5, **DP_SGD)
    assert epsilon == dpcalc.dp_sgd(noise_multiplier=1.1, delta=1e-5, **DP_SGD).epsilon
    noise = dpcalc.noise_multiplier(epsilon=epsilon, delta=1e-5, **DP_SGD)
    assert noise == pytest.approx(1.1, rel=1e-3)
    assert dpcalc.epsilon(noise_multiplier=noise, delta=1e-5, **DP_SGD) <= epsilon


@pytest.mark.parametrize("left_out", ["sampling", "adjacency", "sample_rate", "delta"])
def test_nothing_that_privacy_depends_on_has_a_default(left_out: str) -> None:
    given = {"noise_multiplier": 1.1, "delta": 1e-5, **DP_SGD}
    with pytest.raises(dpcalc.DpcalcError):
        dpcalc.epsilon(**{**given, left_out: None})
    if left_out != "sample_rate":  # records and batch_size may stand in its place
        with pytest.raises(TypeError, match=left_out):
            dpcalc.epsilon(**{name: value for name, value in given.items() if name != left_out})


def test_errors_name_keywords() -> None:
    with pytest.raises(dpcalc.DpcalcError) as refused:
        dpcalc.dp_sgd(records=1000, batch_size=10, steps=9, sampling="shuffle", adjacency="add-remove", delta=1e-5,
                      noise_multiplier=1)  # fmt: skip
    assert 'adjacency="zero-out"' in str(refused.value)
    assert "--" not in str(refused.value)


def test_another_reading_of_the_noise_is_a_warning() -> None:
    with pytest.warns(dpcalc.PrivacyWarning, match="say noise_multiplier=1.1") as said:
        dpcalc.rdp(records=60000, batch_size=600, lipschitz=1, smoothness=1, step_size=0.1, noise_std=1.1, delta=1e-5)
    assert said[0].filename == __file__
