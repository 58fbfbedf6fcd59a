"""Cards as files: forged ones are refused at once, those of models go with their model, and the command says it all."""

import json
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import dpcalc
from dpcalc.cards import verify as limited
from dpcalc.cards.asked import hash_of, seal_of
from dpcalc.cards.card import card_of, card_text
from dpcalc.cli.main import main
from dpcalc.errors import DpcalcError, SpecError
from dpcalc.files.reading import DOCUMENT_BYTES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cards.md"
MU = "convert --mu 1 -d 1e-5"
TRAIN: dict[str, Any] = {"loss": "logistic", "radius": 1, "epsilon": 1, "delta": 1e-3}


class Done(NamedTuple):
    """What a command left behind."""

    exit_code: int
    stdout: str
    stderr: str


Run = Callable[[str], Done]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return what runs a command line in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def asked(line: str) -> Done:
        with pytest.raises(SystemExit) as stop:
            main(shlex.split(line))
        return Done(int(stop.value.code or 0), *capsys.readouterr())

    return asked


def stated() -> dict[str, Any]:
    return card_of(dpcalc.convert(mu=1, delta=1e-5))


def sealed(card: dict[str, Any]) -> dict[str, Any]:
    """Return a card with hashes that fit what it says."""
    for case in card["cases"]:
        case["configuration_sha256"] = hash_of(case["asked"])
    return {**card, "sha256": seal_of(card)}


# --- the command ------------------------------------------------------------------------------------------------------


def test_a_query_writes_its_card_and_verify_confirms_it(run: Run) -> None:
    asked = run(f"{MU} --report card=a.json --report card=a.md")
    assert (asked.exit_code, asked.stderr) == (0, "")
    assert json.loads(Path("a.json").read_text())["schema"] == "dpcalc.card/1"
    assert Path("a.md").read_text().startswith("# Privacy card\n")
    found = run("verify a.json")
    assert (found.exit_code, found.stderr) == (0, "")
    assert found.stdout.startswith("verified: a.json\n  epsilon <= 4.37718 at delta = 1e-05\n")


def test_verify_tells_what_differs(run: Run) -> None:
    run(f"{MU} --report card=a.json")
    text = Path("a.json").read_text()
    Path("b.json").write_text(text.replace('"delta": 1e-05', '"delta": 1e-06'))
    found = run("verify b.json --no-certify")
    assert found.exit_code == 1
    assert found.stdout.startswith("NOT VERIFIED: b.json: ")
    assert "/cases/0/guarantee/numbers/0/value\n    on the card: 4.377" in found.stdout
    told = json.loads(run("verify b.json --json").stdout)
    assert told["passed"] is False
    assert {"place", "given", "recomputed"} == set(told["mismatches"][0])


def test_what_takes_too_long_or_proves_nothing_ends_with_3(run: Run) -> None:
    card = card_of(dpcalc.rdp(records=100, lipschitz=1, smoothness=1, step_size=0.5, noise_std=1, delta=1e-5))
    card["cases"][0]["asked"]["given"]["step_size"] = 5
    Path("a.json").write_text(card_text(sealed(card)))
    assert run("verify a.json").exit_code == 3


def test_a_limit_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pool:
        """One that ends every computation."""

        def __init__(self, *_: Any) -> None: ...

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None: ...

        def submit(self, argument: Any, timeout: float | None) -> Any:
            assert timeout == 7.0
            raise DpcalcError("took longer than 7 s")

    monkeypatch.setattr(limited, "Pool", Pool)
    with pytest.raises(DpcalcError, match="longer than 7 s"):
        limited.verify_within(stated(), limited.Limits(7.0))


def test_the_card_of_a_check(run: Run) -> None:
    case = "{algorithm: pnsgd, records: 100, lipschitz: 1, smoothness: 1, step_size: 0.1, noise_std: 2, delta: 1e-6}"
    Path("a.yaml").write_text(f"dpcalc: recipe/1\ncases:\n  release: {case}\n")
    assert run("check a.yaml --report card=a.json").exit_code == 0
    assert json.loads(Path("a.json").read_text())["cases"][0]["name"] == "release"
    assert run("verify a.json --no-certify").exit_code == 0


@pytest.mark.parametrize("gate", ["epsilon <= 0.01", "epsilon <= 9"])
def test_a_case_that_failed_has_no_card(gate: str, run: Run) -> None:
    described = "algorithm: pnsgd, records: 100, lipschitz: 1, smoothness: 1, step_size: 0.1, noise_std: 2, delta: 1e-6"
    Path("a.yaml").write_text(f"dpcalc: recipe/1\ncases:\n  release: {{{described}, assert: {gate}}}\n")
    done = run("check a.yaml --report card=a.json")
    failed = gate.endswith("0.01")
    assert (done.exit_code != 0) == failed
    assert Path("a.json").exists() != failed
    assert ("case release failed, so no card is written" in done.stderr) == failed
    line = "rdp -n 100 -L 1 --smoothness 1 --step-size 0.1 --noise-std 2 -d 1e-6"
    asked = run(f"{line} --assert '{gate}' --report card=b.json")
    assert (asked.exit_code != 0) == failed
    assert Path("b.json").exists() != failed


def test_a_seeded_model_of_a_recipe_is_left_out(run: Run) -> None:
    train = "{command: train, synthetic: logistic, records: 50, dimension: 2, radius: 1, epsilon: 1, delta: 1e-3"
    Path("a.yaml").write_text(f"dpcalc: recipe/1\ncases:\n  one: {train}, seed: 1}}\n  two: {train}}}\n")
    assert run("check a.yaml --report card=a.json").exit_code == 0
    assert [case["name"] for case in json.loads(Path("a.json").read_text())["cases"]] == ["two"]
    Path("b.yaml").write_text(f"dpcalc: recipe/1\ncases:\n  one: {train}, seed: 1}}\n")
    assert run("check b.yaml --report card=b.json").exit_code == 2


def test_a_cost_has_no_card(run: Run) -> None:
    line = "utility --loss logistic --feature-bound 1 -n 1000 --dimension 2 -R 1 --algorithm stop -e 1 -d 1e-6"
    done = run(f"{line} --report card=a.json")
    assert done.exit_code == 2
    assert "no guarantee that a card could state" in done.stderr
    assert not Path("a.json").exists()


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not part of this distribution")
def test_the_page_has_every_field_and_a_program_that_runs() -> None:
    text = PAGE.read_text(encoding="utf-8")
    [program] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(program, "cards.md", "exec"), {})
    fields = {*stated(), *stated()["cases"][0]} - {"schema", "dpcalc", "cases", "name"}
    assert [name for name in fields if f"`{name}`" not in text] == []


def test_the_schema_is_printed(run: Run) -> None:
    assert json.loads(run("schema card").stdout) == dpcalc.schema("card")


# --- forged files -----------------------------------------------------------------------------------------------------


def of_bytes(raw: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(raw) and None


def of_text(change: Callable[[str], str]) -> Callable[[Path], None]:
    return lambda path: path.write_text(change(card_text(stated()))) and None


def large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(50_000_000)


FORGED: dict[str, tuple[Callable[[Path], None], str]] = {
    "large": (large, "more than"),
    "just too large": (of_text(lambda text: text + " " * DOCUMENT_BYTES), "more than"),
    "deep": (of_bytes(b"[" * 500_000), "deep"),
    "deep objects": (of_bytes(b'{"a":' * 150_000), "deep"),
    "deep within a card": (of_text(lambda t: t.replace('"model": null', '"model": ' + "[" * 40 + "]" * 40)), "deep"),
    "many": (of_bytes(b"[" + b"0," * 300_000 + b"0]"), "values"),
    "not UTF-8": (of_bytes(b"\xff\xfe{}"), "not UTF-8"),
    "UTF-16": (of_bytes("{}".encode("utf-16")), "not UTF-8"),
    "empty": (of_bytes(b""), "not JSON"),
    "nothing": (of_bytes(b"{}"), "is missing"),
    "a list": (of_bytes(b"[]"), "is not object"),
    "a folder": (lambda path: path.mkdir(), "is a folder"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "regular file"),
    "a pipe": (os.mkfifo, "regular file"),
    "a loop": (lambda path: path.symlink_to(path), "cannot be read"),
    "absent": (lambda path: None, "cannot be read"),
    "a name twice": (of_text(lambda text: text.replace('"model": null', '"model": null, "model": null')), "twice"),
    "NaN": (of_text(lambda text: text.replace('"order": null', '"order": NaN')), "not a number of JSON"),
    "Infinity": (of_text(lambda text: text.replace('"order": null', '"order": -Infinity')), "not a number of JSON"),
    "1e999": (of_text(lambda text: text.replace('"order": null', '"order": 1e999')), "too large"),
    "a long number": (of_text(lambda text: text.replace('"order": null', '"order": ' + "9" * 5000)), "too large"),
    "a field more": (of_text(lambda text: text.replace('"model": null', '"model": null, "x": 1')), "not known"),
    "Markdown": (of_bytes(b"# Privacy card\n"), "not JSON"),
    "a report": (lambda path: path.write_text(dpcalc.format_report(dpcalc.convert(mu=1, delta=1e-5), "json")) and None,
                 "is missing"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_file_is_refused_before_anything_is_computed(
    name: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, said = FORGED[name]
    make(Path("a.json"))
    monkeypatch.setattr(limited, "verify_within", lambda *_: pytest.fail("it was computed"))
    done = run("verify a.json")
    assert done.exit_code == 2
    assert said in done.stderr
    assert not done.stdout


def test_a_recipe_is_no_card(run: Run) -> None:
    Path("budget.yaml").write_text("dpcalc: recipe/1\n")
    assert "`dpcalc check`" in run("verify budget.yaml").stderr


def test_commands_and_codes_on_a_card_are_inert(run: Run) -> None:
    card = stated()
    card["cases"][0]["guarantee"]["statement"] = "::error::x\x1b[31m ##[group]"
    Path("a.json").write_text(json.dumps(card))
    told = run("verify a.json").stdout
    assert "\x1b" not in told
    assert "\n::" not in told
    assert "##[" not in told.replace("##\\[", "")


@pytest.mark.parametrize(
    ("command", "given"),
    [
        ("convert", {"mu": 1, "schedule": "/etc/passwd"}),
        ("convert", {"mu": [[1, 2]]}),
        ("convert", {"rdp": 3}),
        ("rdp", {"records": [[1, 2]]}),
        ("rdp", {"schedule": "steps.csv"}),
        ("rdp", {"ledger": "a"}),
        ("utility", {}),
        ("train", {"data": "table.csv"}),
        ("nothing", {}),
        ("ledger", {}),
    ],
)
def test_a_card_leads_to_no_file_and_to_no_other_question(command: str, given: dict[str, Any]) -> None:
    card = stated()
    card["cases"][0]["asked"].update(command=command, given=given)
    with pytest.raises(DpcalcError) as refusal:
        dpcalc.verify(sealed(card))
    assert refusal.value.exit_code in (2, 3)
    assert "passwd" not in refusal.value.message


def test_an_entry_of_a_ledger_leads_to_no_file() -> None:
    run_of = {"algorithm": "pnsgd", "records": 10, "lipschitz": 1, "smoothness": 1, "step_size": 0.5, "noise_std": 3}
    card = card_of(dpcalc.ledger({"a": run_of}, delta=1e-5))
    for extra in ({"from": "/etc/passwd"}, {"schedule": "steps.csv"}, {"noise_std": "x.yaml#/noise"}, {"case": "b"}):
        card["cases"][0]["asked"]["ledger"]["entries"][0]["given"] = {**run_of, **extra}
        with pytest.raises(SpecError):
            dpcalc.verify(sealed(card))


def test_what_is_no_json_is_no_card() -> None:
    with pytest.raises(SpecError, match="JSON types"):
        dpcalc.verify({**stated(), "model": object()})
    with pytest.raises(SpecError, match="JSON types"):
        dpcalc.verify({**stated(), "model": float("nan")})


# --- models -----------------------------------------------------------------------------------------------------------


def trained(path: Path, rows: Any, **more: Any) -> dict[str, Any]:
    labels = np.where(rows[:, 0] > 0.0, 1.0, -1.0)
    dpcalc.train(data=(rows, labels), feature_bound=1, output=str(path), **TRAIN, **more)
    card: dict[str, Any] = json.loads((path.parent / "model.card.json").read_text())
    return card


def test_a_model_has_its_card_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    card = trained(path, np.eye(4))
    assert dpcalc.verify(card, model=path, certify=False).passed
    remarks = dpcalc.verify(card, certify=False).remarks
    assert any("give --model" in remark for remark in remarks)
    path.write_text(path.read_text() + " ")
    assert [each.place for each in dpcalc.verify(card, model=path, certify=False).mismatches] == [
        "/model/sha256", "/model/bytes",
    ]  # fmt: skip
    with pytest.raises(SpecError, match="the card has no model"):
        dpcalc.verify(stated(), model=path)


def test_a_card_is_the_same_whatever_the_records_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    one = trained(tmp_path / "model.json", rng.normal(size=(30, 3)))
    two = trained(tmp_path / "model.json", 100.0 * rng.normal(size=(30, 3)), test_fraction=0.0)
    assert one["model"]["sha256"] != two["model"]["sha256"]
    for each_card in (one, two):
        del each_card["model"], each_card["sha256"]
    assert one == two


def test_a_model_that_is_not_private_has_no_card(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    report = dpcalc.train(data=(np.eye(4), np.ones(4)), feature_bound=1, output=str(path), seed=1, **TRAIN)
    assert path.exists()
    assert not (tmp_path / "model.card.json").exists()
    with pytest.raises(SpecError, match="not private"):
        report.card()


def test_the_card_of_a_model_on_the_command_line(run: Run) -> None:
    line = "train --synthetic logistic -n 50 --dimension 2 -R 1 -e 1 -d 1e-3 -o model.npz"
    done = run(f"{line} --report card=report.json")
    assert "dpcalc verify model.card.json" in done.stdout + run(f"{line} -v").stdout
    assert run("verify model.card.json --model model.npz --no-certify").exit_code == 0
    Path("model.card.json").unlink()
    assert run(f"{line} --no-card").exit_code == 0
    assert not Path("model.card.json").exists()
    Path("model.card.json").mkdir()
    refused = run(line)
    assert (refused.exit_code, refused.stdout) == (2, "")


def test_the_card_that_is_asked_for_has_the_hash_of_the_model(run: Run) -> None:
    run("train --synthetic logistic -n 50 --dimension 2 -R 1 -e 1 -d 1e-3 -o model.json --report card=report.json")
    assert Path("report.json").read_text() == Path("model.card.json").read_text()


def test_a_card_of_a_run_and_one_of_its_model_differ_in_who_vouches(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    report = dpcalc.train(data=(np.eye(4), np.ones(4)), feature_bound=1, output=str(path), card=False, **TRAIN)
    assert not (tmp_path / "model.card.json").exists()
    both = [report.card(), dpcalc.card(report, model=path)]
    assert [{each["by"] for each in card["cases"][0]["assumptions"]} for card in both] == [
        {"promised"}, {"carried out", "promised"},
    ]  # fmt: skip
    with pytest.raises(SpecError, match="of no model"):
        dpcalc.card(dpcalc.convert(mu=1, delta=1e-5), model=path)
