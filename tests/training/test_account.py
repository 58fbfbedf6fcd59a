"""One account of a data set: training is charged to a ledger before it starts, and refused where there is no room."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import dpcalc
from dpcalc.cli.main import main
from dpcalc.recipes.ledgers.charge import LedgerFile
from dpcalc.recipes.ledgers.ledger import read_ledger
from dpcalc.training.rule.account import Release
from dpcalc.training.run import single

HEAD = "dpcalc: ledger/1\nadjacency: replace-one\n"
TRAIN = ["train", "--data", "example:breast-cancer", "-e", "1", "-d", "1e-6", "--ledger"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def budget(epsilon: float | str, delta: float | str | None, name: str = "s.yaml") -> str:
    at = "" if delta is None else f", delta: {delta}"
    Path(name).write_text(f"{HEAD}budget: {{epsilon: {epsilon}{at}}}\n", encoding="utf-8")
    return name


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(words)
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def never(*given: Any, **more: Any) -> None:
    raise AssertionError("something was trained")


def entries(path: str) -> dict[str, Any]:
    return {entry.name: entry for entry in read_ledger(path)[0].entries}


# ---- what it costs ---------------------------------------------------------------------------------------------------


def gdp(epsilon: float, mu: float) -> float:
    return float(norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2))


def near(epsilon: float, mu: float, distance: float) -> float:
    return gdp(epsilon, mu) + (1.0 + math.exp(epsilon)) * distance


@pytest.mark.parametrize(("mus", "distances", "delta"), [
    ((0.24, 0.3), (1e-9, 3e-9), 1e-6), ((0.5,), (1e-7,), 1e-5), ((1.0, 2.0, 0.1), (1e-8, 1e-9, 1e-6), 1e-2),
])  # fmt: skip
def test_what_is_near_a_gaussian_costs_its_distance_too(
    mus: tuple[float, ...], distances: tuple[float, ...], delta: float
) -> None:
    """By scipy's normal law delta(epsilon) + (1 + e^epsilon) T is delta there, with mu^2 and T added up."""
    found = dpcalc.ledger([{"mu": m, "delta": t} for m, t in zip(mus, distances, strict=True)], delta=delta)
    mu, distance = math.sqrt(sum(m * m for m in mus)), sum(distances)
    assert near(found.epsilon, mu, distance) <= delta * (1.0 + 1e-12)  # what scipy's law is good to
    assert near(found.epsilon * (1.0 - 1e-6), mu, distance) > delta


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 3.0, 10.0])
def test_the_worst_that_is_so_near_is_covered(epsilon: float) -> None:
    """Two releases that give the record away with probability T each, and are Gaussian otherwise: known exactly."""
    mu, distance = 0.7, 1e-3
    found = dpcalc.ledger([{"mu": mu, "delta": distance}] * 2, epsilon=epsilon)
    kept = (1.0 - distance) ** 2
    true = kept * gdp(epsilon, math.sqrt(2.0) * mu) + 1.0 - kept
    assert true <= found.delta <= 1.0
    values = [dpcalc.ledger([{"mu": mu, "delta": distance}], epsilon=e).delta for e in (epsilon, epsilon + 1.0)]
    assert values[1] <= values[0] * (1.0 + 1e-12)


def test_distance_goes_with_one_release_alone() -> None:
    with pytest.raises(dpcalc.SpecError, match="not that of a tuned release"):
        dpcalc.ledger([{"mu": 1, "delta": 1e-9, "tuning": {"distribution": "geometric", "mean": 3}}], delta=1e-5)
    in_groups = dpcalc.ledger([{"mu": 0.5, "delta": 1e-9}], delta=1e-5, group_size=3).epsilon
    assert near(in_groups, 1.5, 1e-9) <= 1e-5 * (1.0 + 1e-12)
    assert near(in_groups * 0.999, 1.5, 1e-9) > 1e-5


# ---- charging --------------------------------------------------------------------------------------------------------


def test_fits_are_charged_until_the_budget_has_no_room(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = budget(1.5, 1e-5)
    for name, left in (("train", "0.8725 of 1.5"), ("train-2", "1.278 of 1.5")):
        code, out, _ = run([*TRAIN, path], capsys)
        assert code == 0
        assert f"ledger:  s.yaml: epsilon <= {left} at delta = 1e-05 is spent; left" in out
        assert len(out.splitlines()) <= 10
        assert list(entries(path))[-1] == name
    before = Path(path).read_bytes()
    monkeypatch.setattr(single, "train", never)
    code, out, err = run([*TRAIN, path], capsys)
    assert (code, out) == (1, "")
    assert "with train-3, 3 releases cost epsilon = 1.59" in err
    assert "the budget of s.yaml is epsilon = 1.5" in err
    assert Path(path).read_bytes() == before
    assert not any(entry.begun for entry in entries(path).values())
    code, out, _ = run(["ledger", path], capsys)
    assert "epsilon <= 1.27" in out


def test_evaluations_tuning_and_unlearning_are_charged_to_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    path = budget(4, 1e-4)
    model = [*TRAIN, path, "--regularisation", "0.01", "-R", "5", "--no-centre", "-o", "old.json"]
    assert run(model, capsys)[0] == 0
    tuned = [*TRAIN, path, "--tune", "clip=0.05,0.1", "--tune-law", "geometric", "--tune-runs", "2"]
    assert run(tuned, capsys)[0] == 0
    evaluated = ["evaluate", "old.json", "--data", "example:breast-cancer", "--private", "-e", "0.1", "--ledger", path]
    code, out, _ = run(evaluated, capsys)
    assert code == 0
    assert "of 4 at delta = 0.0001 is spent" in " ".join(out.split())
    forgets = ["train", "--data", "example:breast-cancer", "--unlearn", "old.json", "-R", "5", "--start-distance"]
    forgets += ["0.02", "--regularisation", "0.01", "-d", "1e-6", "--ledger", path]
    code, _, err = run([*forgets, "-e", "1"], capsys)
    kinds = {name: set(entry.given) for name, entry in entries(path).items()}
    assert kinds["train"] == {"epsilon", "delta", "log_delta"}  # hidden iterates, whose rounding costs epsilon
    assert kinds["tune"] == {"epsilon", "delta", "log_delta"}
    assert kinds["evaluation"] == {"epsilon"}
    # What forgets has little noise: of the records kept it guarantees nothing.
    assert (code, "unlearn" in kinds) == (3, False)
    assert "a ledger is of the records kept" in err
    assert run([*forgets, "--noise-std", "0.1"], capsys)[0] == 0
    assert 0.9 < entries(path)["unlearn"].given["epsilon"] < 1.2
    before = Path(path).read_bytes()
    code, _, err = run([*evaluated[:6], "3", *evaluated[7:]], capsys)
    assert (code, Path(path).read_bytes()) == (1, before)
    assert "evaluation-2" in err


def test_a_budget_is_kept_to_its_last_digit(capsys: pytest.CaptureFixture[str]) -> None:
    """0.1 three times is 0.3 in exact arithmetic, and more in doubles; one more ulp is refused."""
    path = budget("0.3", "3e-7")
    account = LedgerFile(path)
    for _ in range(3):
        account.take(Release("part", 0.1, 1e-7))
    with pytest.raises(dpcalc.GateFailed):
        account.take(Release("part", 1e-9))
    assert len(entries(path)) == 3
    whole = LedgerFile(budget("1", "1e-5", "w.yaml"))
    with pytest.raises(dpcalc.GateFailed):
        whole.take(Release("model", math.nextafter(1.0, 2.0), 1e-5))
    assert whole.take(Release("model", 1.0, 1e-5)).remaining == {"epsilon": 0.0}
    assert run([*TRAIN, budget("1", "1e-6", "t.yaml")], capsys)[0] == 0


def test_a_budget_of_epsilon_alone_has_no_delta() -> None:
    path = budget("1", None)
    account = LedgerFile(path)
    account.take(Release("count", 0.5))
    with pytest.raises(dpcalc.GateFailed):
        account.take(Release("model", 0.1, 1e-9))
    with pytest.raises(dpcalc.GateFailed):
        account.take(Release("count", 0.6))
    assert list(entries(path)) == ["count"]


@pytest.mark.parametrize(("adjacency", "entry"), [
    ("add-remove", ""), ("zero-out", ""), ("replace-one", "entries:\n  old: {mu: 1, adjacency: add-remove}\n"),
])  # fmt: skip
def test_another_adjacency_is_refused(
    adjacency: str, entry: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"dpcalc: ledger/1\nadjacency: {adjacency}\nbudget: {{epsilon: 9, delta: 1e-5}}\n{entry}"
    Path("s.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(single, "train", never)
    code, _, err = run([*TRAIN, "s.yaml"], capsys)
    assert code == 2
    assert "nothing composes both" in err
    assert Path("s.yaml").read_text(encoding="utf-8") == text


def test_a_ledger_of_persons_counts_their_records(capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.yaml").write_text(f"{HEAD}group_size: 3\nbudget: {{epsilon: 4, delta: 1e-5}}\n", encoding="utf-8")
    code, out, _ = run([*TRAIN, "s.yaml"], capsys)
    assert code == 0
    assert "for any 3 records together" in " ".join(out.split())
    assert run([*TRAIN, "s.yaml"], capsys)[0] == 1


@pytest.mark.parametrize("more", [["--seed", "1"], ["--replicas", "3"], ["-e", "2"]])
def test_what_is_no_single_release_is_refused(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run([*TRAIN, "s.yaml", *more], capsys)
    assert code == 2
    assert "one release of its records" in err
    assert not Path("s.yaml").exists()


# ---- files that cannot be charged ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("second", "said"), [(os.symlink, "link"), (os.link, "other names")])
def test_a_second_name_is_refused(
    second: Any, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is charged under one name would not be read under the other."""
    monkeypatch.setattr(single, "train", never)
    second(budget(3, 1e-5, "real.yaml"), "s.yaml")
    before = Path("real.yaml").read_bytes()
    code, _, err = run([*TRAIN, "s.yaml"], capsys)
    assert code == 2
    assert said in err
    assert Path("real.yaml").read_bytes() == before


def test_a_full_disk_charges_nothing_and_trains_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = budget(3, 1e-5)
    before = Path(path).read_bytes()
    monkeypatch.setattr(single, "train", never)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    code, _, err = run([*TRAIN, path], capsys)
    assert code == 2
    assert "No space left on device" in err
    assert Path(path).read_bytes() == before


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    path = budget(3, 1e-5)
    monkeypatch.setattr(single, "train", never)
    os.chmod(".", 0o500)
    try:
        assert run([*TRAIN, path], capsys)[0] == 2
    finally:
        os.chmod(".", 0o700)


def test_an_error_of_writing_is_said_before_anything_is_trained(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpcalc.files import output

    path = budget(3, 1e-5)
    monkeypatch.setattr(single, "train", never)

    def read_only(*given: Any, **more: Any) -> None:
        raise dpcalc.SpecError(f"cannot write {path}: Permission denied")

    monkeypatch.setattr("dpcalc.recipes.ledgers.charge.write_bytes", read_only)
    assert output.write_bytes is not read_only
    code, _, err = run([*TRAIN, path], capsys)
    assert (code, "Permission denied" in err) == (2, True)


@pytest.mark.parametrize("text", ["no ledger", f"{HEAD}entries:\n  a: {{mu: 1, state: done}}\n", "{}"])
def test_what_is_no_ledger_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.yaml").write_text(text, encoding="utf-8")
    assert run([*TRAIN, "s.yaml"], capsys)[0] == 2
    assert Path("s.yaml").read_text(encoding="utf-8") == text


def test_the_ledger_is_no_other_file(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("t.npy", np.zeros((4, 3)))
    code, _, err = run(["train", "--data", "t.npy", "-e", "1", "-d", "1e-5", "--ledger", "t.npy"], capsys)
    assert (code, "is read, and would be written over" in err) == (2, True)


# ---- processes -------------------------------------------------------------------------------------------------------

CHARGE = """
import sys
from dpcalc.recipes.ledgers.charge import LedgerFile
from dpcalc.training.rule.account import Release
from dpcalc.errors import GateFailed
try:
    LedgerFile(sys.argv[1]).take(Release("fit", 1.0, 1e-6))
except GateFailed:
    sys.exit(1)
"""


def test_processes_that_race_for_the_last_of_a_budget() -> None:
    path = budget(2.5, 1e-5)
    racing = [subprocess.Popen([sys.executable, "-c", CHARGE, path]) for _ in range(4)]
    assert sorted(process.wait() for process in racing) == [0, 0, 1, 1]
    assert len(entries(path)) == 2


KILLED = """
import os, sys, time
from dpcalc.training.run import single
def hang(*given, **more):
    open("hanging", "w").close()
    time.sleep(600)
single.train = hang
from dpcalc.cli.main import main
main(sys.argv[1:])
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no such signal")
def test_a_run_that_is_killed_stays_charged_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    path = budget(1.3, 1e-5)
    process = subprocess.Popen([sys.executable, "-c", KILLED, *TRAIN, path, "--no-centre"])
    for _ in range(600):
        if os.path.exists("hanging"):
            break
        assert process.poll() is None
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert entries(path)["train"].begun
    code, out, _ = run(["ledger", path], capsys)
    assert "charged, and not known to have been released: train; the charge stays" in " ".join(out.split())
    code, out, _ = run([*TRAIN, path, "-o", "m.json"], capsys)  # the lock died with the process
    assert code == 0
    assert "charged and not known to be released: train" in " ".join(out.split())
    assert [entry.begun for entry in entries(path).values()] == [True, False]
    assert run([*TRAIN, path], capsys)[0] == 1


def test_a_run_that_fails_stays_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    path = budget(3, 1e-5)
    monkeypatch.setattr(single, "train", never)
    with pytest.raises(AssertionError):
        dpcalc.train(data="example:breast-cancer", epsilon=1, delta=1e-6, ledger=path)
    assert entries(path)["train"].begun


# ---- Python ----------------------------------------------------------------------------------------------------------

GIVEN: dict[str, Any] = {"data": "example:breast-cancer", "epsilon": 1, "delta": 1e-6}


def test_fits_share_an_accountant_a_ledger_or_a_path() -> None:
    account = dpcalc.Accountant(epsilon=1.5, delta=1e-5)
    ledger = dpcalc.Ledger("l.json", delta=1e-5, adjacency="replace-one", epsilon=1.5)
    path = budget(1.5, 1e-5)
    for shared in (account, ledger, path):
        notes = [dpcalc.train(**GIVEN, ledger=shared).cases[0].notes for _ in range(2)]
        assert any("epsilon <= 1.278 of 1.5" in note for note in notes[1])
        with pytest.raises(dpcalc.GateFailed, match="3 releases cost"):
            dpcalc.train(**GIVEN, ledger=shared)
    kept = json.loads(Path("l.json").read_text())["entries"]
    assert list(kept) == list(account.entries) == list(entries(path)) == ["train", "train-2"]
    assert ledger.epsilon == account.report().cases[0].best.epsilon  # type: ignore[union-attr]
    with pytest.raises(dpcalc.SpecError, match="give the path of a ledger"):
        dpcalc.train(**GIVEN, ledger=3)
    other = dpcalc.Ledger("o.json", delta=1e-5)
    with pytest.raises(dpcalc.SpecError, match="fits are for replace-one"):
        dpcalc.train(**GIVEN, ledger=other)


def test_steps_of_a_loop_and_fits_are_in_one_file() -> None:
    ledger = dpcalc.Ledger("l.json", delta=1e-5, adjacency="replace-one", epsilon=3.0)
    ledger.spend(100, noise_multiplier=2.0, sample_rate=0.01)
    alone = ledger.epsilon
    dpcalc.train(**GIVEN, ledger=ledger)
    assert ledger.epsilon > max(alone, 0.8)
    ledger.spend(100, noise_multiplier=2.0, sample_rate=0.01)
    assert len(json.loads(Path("l.json").read_text())["entries"]) == 2


def test_several_fits_without_an_account_warn_once(monkeypatch: pytest.MonkeyPatch, recwarn: Any) -> None:
    import warnings

    from dpcalc.training.rule import account

    monkeypatch.setattr(account, "_fitted", set())
    monkeypatch.setattr(account, "_warned", [])
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for _ in range(3):
            dpcalc.train(**GIVEN)
            dpcalc.train(**GIVEN, ledger=dpcalc.Accountant())
            dpcalc.train(**GIVEN, seed=1)
    [said] = [each for each in recwarn if issubclass(each.category, dpcalc.PrivacyWarning)]
    assert "dpcalc.Accountant or dpcalc.Ledger" in str(said.message)
