"""``--group-size``: several records of one person, on every command that describes a run."""

import json
import math

import pytest

from dpcalc.cli.main import main
from dpcalc.engine.answer import answer
from dpcalc.errors import Disproved
from dpcalc.model.question import Question
from dpcalc.model.run import describe
from dpcalc.notions import gaussian
from dpcalc.theorems.record import all_bounds, lookup, without_definition

_CAMPAIGN = pytest.mark.campaign
RUN = "-n 100 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6"


def asked(line: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    with pytest.raises(SystemExit) as stop:
        main([*line.split(), "--json"])
    printed = capsys.readouterr()
    assert not stop.value.code, printed.err
    case = json.loads(printed.out)["cases"][0]
    return {**next(result for result in case["results"] if result["best"]), "case": case}


def refused(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    assert stop.value.code
    return capsys.readouterr().err


def test_gaussian_privacy_is_multiplied(capsys: pytest.CaptureFixture[str]) -> None:
    one, three = (asked(f"rdp {RUN}{more}", capsys) for more in ("", " --group-size 3"))
    assert three["mu"] == pytest.approx(3.0 * float(str(one["mu"])))
    exact = gaussian.epsilon(mu=3.0, log_delta_target=math.log(1e-6))
    assert exact <= float(str(three["value"])) <= exact * 1.0001
    assert three["kind"] == "upper"


def test_a_group_of_one_is_a_record(capsys: pytest.CaptureFixture[str]) -> None:
    one, same = (asked(f"rdp --algorithm stop {RUN}{more}", capsys) for more in ("", " --group-size 1"))
    assert same["value"] == one["value"]


@pytest.mark.parametrize(
    "run",
    [pytest.param("multi-epoch --algorithm repeated --epoch-epsilon 0.3 --epochs 4 -d 1e-6", marks=_CAMPAIGN),
     "rdp --algorithm skip", "rdp --algorithm stop", "rdp --algorithm local", "multi-epoch --epochs 2",
     "multi-epoch --algorithm noisy-gd"],
)  # fmt: skip
def test_larger_groups_cost_more_and_at_most_what_repetition_would(
    run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = run if "repeated" in run else f"{run} {RUN}" + (" --steps 5" if "noisy-gd" in run else "")
    values = [float(str(asked(f"{line} --group-size {size}", capsys)["value"])) for size in (1, 2, 4)]
    assert values[0] < values[1] < values[2]


def test_noise_for_a_group_keeps_its_budget(capsys: pytest.CaptureFixture[str]) -> None:
    line = "rdp -n 100 -L 1 --smoothness 1 --eta 0.1 -d 1e-6 --group-size 4"
    sigma = asked(f"{line} -e 1", capsys)["value"]
    assert float(str(asked(f"{line} --sigma {sigma}", capsys)["value"])) <= 1.0
    assert float(str(asked(f"{line} --sigma {0.999 * float(str(sigma))}", capsys)["value"])) > 1.0


def test_renyi_of_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    line = RUN.replace(" -d 1e-6", "")
    one, two = (asked(f"rdp {line} --order 4{more}", capsys) for more in ("", " --group-size 2"))
    assert float(str(two["value"])) == pytest.approx(4.0 * float(str(one["value"])))


def test_the_promise_speaks_of_the_group(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(f"statement --algorithm pnsgd {RUN} --group-size 3".split())
    assert "any 3 records" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "line",
    [f"rdp {RUN}", f"rdp {RUN} --order 4", f"rdp --algorithm stop {RUN}", f"rdp --algorithm stop {RUN} --order 3",
     f"rdp --algorithm skip {RUN} --order 3"],
)  # fmt: skip
@pytest.mark.parametrize("size", [2, 3, 5])
def test_gaussian_and_renyi_guarantees_of_a_group_are_certified(
    line: str, size: int, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("flint")
    line = line.replace(" -d 1e-6", "") if "--order" in line else line
    with pytest.raises(SystemExit):
        main([*line.split(), "--group-size", str(size), "--certify", "--json"])
    rows = json.loads(capsys.readouterr().out)["cases"][0]["results"]
    told = [row for row in rows if row["kind"] == "upper" and all_bounds()[row["bound"]].notion in ("mu", "rdp")]
    assert told
    for row in told:
        assert "certified" in row, row["not_certified"]


def test_a_group_that_costs_more_than_is_said_is_noticed() -> None:
    pytest.importorskip("flint")
    from dpcalc.certify.case import certify

    given = {"records": 50, "lipschitz": 1.0, "smoothness": 1.0, "step_size": 0.5, "noise_std": 2.0, "group_size": 3}
    run, question = describe("stop", given), Question(delta=1e-6, log_delta=math.log(1e-6))
    case = answer(run, question, [lookup("iteration.stop_rdp")])
    assert "certified" in (certify(case, run, question, without_definition()).results[0].details or {})
    lower = case._replace(results=(case.results[0]._replace(value=case.results[0].value * (1.0 - 1e-6)),))
    with pytest.raises(Disproved):
        certify(lower, run, question, without_definition())


def test_a_profile_of_a_group_is_not_certified(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("flint")
    passes = "--algorithm repeated --epochs 3 --epoch-epsilon 0.1 --epoch-delta 1e-7"
    line = f"multi-epoch {passes} -d 1e-5 --adjacency replace-one --group-size 2 --certify"
    assert "for Gaussian privacy and Renyi curves alone" in refused(line, capsys)


@pytest.mark.parametrize(
    ("sampling", "adjacency", "told"),
    [("fixed", "replace-one", "as a whole"), ("balls-in-bins", "remove", "record by record")],
)
def test_the_first_screen_says_how_the_group_is_taken(
    sampling: str, adjacency: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(f"dp-sgd -n 100 --batch-size 10 --epochs 1 --noise-multiplier 2 --sampling {sampling} "
             f"--adjacency {adjacency} -d 1e-6 --group-size 2".split())  # fmt: skip
    assert f"groups of 2 ({told})" in capsys.readouterr().out
