"""What is said before a run of which little can be expected: by public numbers, and before a record is used."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.cli.main import main
from dpcalc.training.release import execution
from tests.training.test_rule import case_of, delta_of, mu_of


def table(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    return rng.uniform(-1.0, 1.0, (rows, columns)), np.where(rng.uniform(size=rows) < 0.5, 1.0, -1.0)


def warned(rows: int, columns: int, **given: Any) -> str:
    case = case_of(**{"data": table(rows, columns), "positive": "1", **given})
    return " ".join(case.warnings)


def test_more_columns_than_records() -> None:
    """400 columns and 200 rows: kappa is 1.3, and 10 would be needed."""
    said = warned(200, 400)
    assert "kappa, the signal to noise of 200 records in 401 columns, is 1.3: " in said
    assert "it is likely that nothing can be learned at this budget" in said
    assert "no better than always answering the commonest class" in said
    assert "--regularisation" in said
    [epsilon] = re.findall(r"epsilon ([0-9.]+)", said)
    needed = 10.0 * 2.0 * math.sqrt(401) / 200.0
    assert delta_of(needed, float(epsilon)) <= 1e-5 <= delta_of(needed, float(epsilon) - 0.1)
    [columns] = re.findall(r"at most (\d+) columns", said)
    mu = mu_of(1.0, 1e-5)
    assert 200 * mu / (2.0 * math.sqrt(int(columns) + 1)) >= 10.0 > 200 * mu / (2.0 * math.sqrt(int(columns) + 2))


def test_little_signal_is_no_verdict() -> None:
    said = warned(57, 8)
    assert "is 2.5: at this budget it is left to the noise how much is learned, and it may be nothing" in said
    assert "right for 0.46 to 0.96 of new records" in said
    assert "likely that nothing" not in said


@pytest.mark.parametrize(
    ("rows", "columns", "expected"), [(20, 8, True), (30, 8, False), (72, 8, None), (500, 60, None)]
)
def test_how_much_is_said(rows: int, columns: int, expected: bool | None) -> None:
    said = warned(rows, columns)
    assert ("kappa" in said) == (expected is not None)
    assert ("likely that nothing can be learned" in said) == bool(expected)


def test_strong_signals_in_many_columns_are_left_alone() -> None:
    assert "kappa" in warned(100, 120, epsilon=8)
    assert "kappa" not in warned(400, 420, epsilon=8)


def test_numbers_and_other_rules() -> None:
    said = warned(30, 8, positive=None, target_range=(-1, 1))
    assert "may be worse than always answering the middle of the range" in said
    assert "commonest" not in said
    assert "kappa" in warned(60, 8, batch_size=10, epochs=2)
    assert "kappa" in warned(30, 8, tune={"clip": [0.1, 0.2]}, tune_runs=1)
    assert not warned(30, 8, radius=5)


def test_the_records_do_not_decide_what_is_said() -> None:
    x, y = table(60, 80)
    assert warned(60, 80) == warned(60, 80, data=(0.0 * x, y)) == warned(60, 80, data=(x, -y))


@pytest.mark.parametrize("form", ["plain", "json"])
def test_it_is_said_before_training(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once, on standard error; the report has it too."""
    x, y = table(30, 40)
    path, seen = tmp_path / "t.csv", []
    rows = "\n".join(",".join(map(str, [*row, label])) for row, label in zip(x, y, strict=True))
    path.write_text(",".join([*(f"x{place}" for place in range(40)), "y"]) + "\n" + rows + "\n")
    outcome = execution.Execution.outcome

    def trained(self: Any) -> Any:
        seen.append(capsys.readouterr().err)
        return outcome(self)

    monkeypatch.setattr(execution.Execution, "outcome", trained)
    given = ["train", "--data", str(path), "--positive", "1", "-e", "1", "-d", "1e-5", "--format", form]
    with pytest.raises(SystemExit) as stop:
        main(given)
    assert not stop.value.code
    printed = capsys.readouterr()
    assert len(seen) == 1
    assert "likely that nothing can be learned" in " ".join(seen[0].split())
    assert "nothing can be learned" not in printed.err
    if form == "json":
        [text] = json.loads(printed.out)["cases"][0]["warnings"]
        assert "nothing can be learned" in text


# --- a rare class -----------------------------------------------------------------------------------------------------


def rare(shares: Any, rows: int = 2000, columns: int = 8, **given: Any) -> str:
    return warned(rows, columns, class_shares=shares, **given)


def test_a_class_that_is_too_rare_is_warned_of_by_public_numbers() -> None:
    said = rare("0.99,0.01")
    kappa = 20 * mu_of(1.0, 1e-5) / math.sqrt(9)
    assert f"kappa of the rarest class, some 20 records, is {kappa:.2g}: below 6, " in said
    assert "--threshold" in said
    [epsilon] = re.findall(r"epsilon ([0-9.]+)", said)
    needed = 6.0 * math.sqrt(9) / 20.0
    assert delta_of(needed, float(epsilon)) <= 1e-5 <= delta_of(needed, float(epsilon) - 0.1)
    times = float(said.partition(" times as many records")[0].rpartition(" ")[2])
    assert 6.0 / kappa <= times <= 6.0 / kappa + 0.1


def test_shares_and_counts_say_the_same_and_common_classes_nothing() -> None:
    assert rare((198, 2)) == rare("0.99,0.01") == rare([0.01, 0.99]) != ""
    assert rare("0.8,0.2") == rare(None) == ""
    assert "some 20 records" in rare("50,49,1", labels="1,-1,2", positive=None)


@pytest.mark.parametrize(
    ("shares", "more"),
    [
        ("1", {}), ("0.5,0.3,0.2", {}), ("a,b", {}), ("1,0", {}), ("1,-1", {}), ("nan,1", {}), ("inf,1", {}),
        ("", {}), (5, {}), ("0.9,0.1", {"radius": 1.0}), ("0.9,0.1", {"loss": "squares", "positive": None}),
    ],
)  # fmt: skip
def test_what_are_no_shares_is_refused_before_training(
    shares: Any, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "parts_of", None)
    with pytest.raises(dpcalc.SpecError, match="shares"):
        rare(shares, **more)


def test_the_warning_of_a_rare_class_does_not_look_at_the_records() -> None:
    """Labels that are all one class are warned of by the same words."""
    rows, labels = table(2000, 8)
    given: dict[str, Any] = {"positive": "1", "class_shares": "0.99,0.01"}
    same = [case_of(data=(rows, kept), **given).warnings for kept in (labels, -(labels**2))]
    assert same[0] == same[1] != ()
