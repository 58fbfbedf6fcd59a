"""Recipes, configurations, schedules and data from strangers: what is opened, what is shown, what it costs."""

import json
import os
import pickle
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.cli.main import main
from dpcalc.errors import SpecError
from dpcalc.files import place, reading
from dpcalc.files.documents import Rules, parse_yaml
from dpcalc.files.place import ProjectFile, open_regular, project_of
from dpcalc.model.schedule_file import read_schedule
from dpcalc.recipes.reading import reference
from dpcalc.recipes.reading.read import read
from dpcalc.recipes.reading.recipe import Malformed
from dpcalc.render.check import KINDS
from dpcalc.training.data import ranges as ranges_of
from dpcalc.training.data import tables

SECRET = "hunter2"
TRAIN = "command: train, records: null, step_size: null, lipschitz: null, smoothness: null"
STEPS = "step_size,noise_std,repeat\n0.1,2,50\n"
SCHEDULED = "{command: rdp, records: null, step_size: null, assert: epsilon <= 9, schedule: %s}"


def verdicts(path: str) -> dict[str, tuple[str, int]]:
    return {
        case.check.name: (case.check.status, case.check.exit_code)
        for case in dpcalc.check(path).cases
        if case.check is not None
    }


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Return a folder beside the project that has one of each kind of file."""
    folder = tmp_path.parent / f"{tmp_path.name}-outside"
    (folder / "inner").mkdir(parents=True)
    (folder / "c.json").write_text('{"k": 3}', encoding="utf-8")
    (folder / "steps.csv").write_text(STEPS, encoding="utf-8")
    (folder / "t.csv").write_text("a,y\n1,0\n2,1\n", encoding="utf-8")
    return folder


# --- what is opened ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "a: {noise_std: {from: 'link/../c.json#/k'}}",
        "a: {schedule: link/../steps.csv}",
        f"a: {{{TRAIN}, data: link/../t.csv}}",
        f"a: {{{TRAIN}, data: t.csv, ranges: link/../t.csv}}",
        "a: {matrix: {schedule: [link/../steps.csv]}}",
    ],
)
def test_a_link_followed_upwards_leaves_the_project(write: Any, outside: Path, text: str) -> None:
    os.symlink(outside / "inner", "link")
    for name in ("c.json", "steps.csv", "t.csv"):  # what the path would be without its detour
        Path(name).write_text("", encoding="utf-8")
    with pytest.raises(Malformed, match="leads out of the project"):
        read(write(text))


def test_a_link_followed_upwards_inside_the_project_opens_what_it_leads_to(good: Any) -> None:
    Path("deep/inner").mkdir(parents=True)
    os.symlink("deep/inner", "link")
    Path("c.json").write_text('{"k": 3}', encoding="utf-8")
    Path("deep/c.json").write_text('{"k": 5}', encoding="utf-8")
    assert good("a: {noise_std: {from: 'link/../c.json#/k'}}").entries["a"].parameters["noise_std"] == 5.0


@pytest.mark.parametrize("by_folder", [True, False])
@pytest.mark.parametrize("parts", [("sub", "steps.csv"), ("steps.csv",)])
def test_what_was_checked_is_what_is_opened(
    good: Any, outside: Path, monkeypatch: pytest.MonkeyPatch, by_folder: bool, parts: tuple[str, ...]
) -> None:
    """Whoever swaps a file, or a folder on the way, for a link after the check has it refused."""
    if not by_folder:
        monkeypatch.setattr(os, "supports_dir_fd", set())
    path = Path(*parts)
    path.parent.mkdir(exist_ok=True)
    path.write_text(STEPS, encoding="utf-8")
    checked = good(f"a: {SCHEDULED % path}").entries["a"].parameters["schedule"]
    assert list(read_schedule(checked, columns=("step_size", "noise_std"))["noise_std"]) == [2.0] * 50
    swapped = path.parent if len(parts) > 1 else path
    swapped.rename("before")
    os.symlink(outside if len(parts) > 1 else outside / "steps.csv", swapped)
    with pytest.raises(SpecError, match=r"cannot read .*(a link took its place|Not a directory)"):
        read_schedule(checked, columns=("step_size", "noise_std"))


def test_a_link_that_comes_while_a_file_is_opened_is_found_out(
    good: Any, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where folders cannot be opened, the file is compared with what its path leads to afterwards."""
    Path("steps.csv").write_text(STEPS, encoding="utf-8")
    checked = good(f"a: {SCHEDULED % 'steps.csv'}").entries["a"].parameters["schedule"]
    monkeypatch.setattr(os, "supports_dir_fd", set())
    opened = os.open

    def swapping(path: str, flags: int) -> int:
        os.rename("steps.csv", "aside")
        os.symlink(outside / "steps.csv", "steps.csv")
        handle = opened(path, flags)
        os.remove("steps.csv")
        os.rename("aside", "steps.csv")
        return handle

    monkeypatch.setattr(place.os, "open", swapping)
    with pytest.raises(OSError, match="a link took its place"):
        open_regular(checked)


def test_the_training_data_and_its_ranges_are_opened_as_checked(good: Any, outside: Path) -> None:
    Path("t.csv").write_text("a,y\n1,0\n2,1\n", encoding="utf-8")
    Path("r.csv").write_text("column,low,high\na,0,3\n", encoding="utf-8")
    given = good(f"a: {{{TRAIN}, data: t.csv, ranges: r.csv}}").entries["a"].parameters
    table = tables.read(given["data"])
    assert ranges_of.read_ranges(given["ranges"], table).high.tolist() == [3.0]
    for name in ("t.csv", "r.csv"):
        os.remove(name)
        os.symlink(outside / "t.csv", name)
    with pytest.raises(SpecError, match="a link took its place"):
        tables.read(given["data"])
    with pytest.raises(SpecError, match="a link took its place"):
        ranges_of.read_ranges(given["ranges"], table)


def test_a_checked_path_stays_checked_in_another_process(good: Any, outside: Path) -> None:
    Path("steps.csv").write_text(STEPS, encoding="utf-8")
    entry = pickle.loads(pickle.dumps(good(f"a: {SCHEDULED % 'steps.csv'}").entries["a"]))
    assert isinstance(entry.parameters["schedule"], ProjectFile)
    os.remove("steps.csv")
    os.symlink(outside / "steps.csv", "steps.csv")
    with pytest.raises(OSError, match="a link took its place"):
        open_regular(entry.parameters["schedule"])


def test_a_recipe_that_is_a_link_out_of_its_project_is_not_read(write: Any, outside: Path) -> None:
    (outside / "r.yaml").write_text(f"password: {SECRET}\n", encoding="utf-8")
    os.symlink(outside / "r.yaml", "r.yaml")
    with pytest.raises(Malformed, match="the recipe leads out of the project") as caught:
        read("r.yaml")
    assert SECRET not in str(caught.value)


def test_a_recipe_reached_through_a_link_inside_its_project(write: Any) -> None:
    Path(".git").mkdir()
    Path("sub").mkdir()
    Path("c.json").write_text('{"k": 3}', encoding="utf-8")
    write("a: {noise_std: {from: '../c.json#/k'}}", "sub/r.yaml")
    os.symlink("r.yaml", "sub/link.yaml")
    os.symlink("sub", "folder")
    for path in ("sub/link.yaml", "folder/r.yaml"):
        assert read(path).entries["a"].parameters["noise_std"] == 3.0


@pytest.mark.parametrize("name", ["'-'", "./-", "sub/../-"])
@pytest.mark.parametrize("key", ["schedule", "data", "ranges"])
def test_standard_input_is_no_file_of_a_recipe(bad: Any, name: str, key: str) -> None:
    Path("sub").mkdir()
    command = "command: rdp" if key == "schedule" else TRAIN
    assert "does not read standard input" in bad(f"a: {{{command}, {key}: {name}}}")


def test_only_data_may_be_a_shipped_example(good: Any, bad: Any) -> None:
    """As a folder of that name would lead anywhere: example:x/../../.."""
    Path("example:x").mkdir()
    for key in ("schedule", "ranges"):
        command = "command: rdp" if key == "schedule" else TRAIN
        assert "leads out of the project" in bad(f"a: {{{command}, {key}: 'example:x/../../s.csv'}}")
    assert good(f"a: {{{TRAIN}, data: 'example:breast-cancer'}}").entries["a"].parameters["data"].startswith("example:")


# --- what a project is ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("marker", [".git", "pyproject.toml"])
@pytest.mark.parametrize("linked", [True, False])
def test_dotfiles_make_a_home_no_project(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marker: str, linked: bool
) -> None:
    Path("home/work/recipes").mkdir(parents=True)
    Path("home", marker).mkdir()
    Path("home/secrets.yaml").write_text("a: 3", encoding="utf-8")
    home = tmp_path / "home"
    if linked:
        home = tmp_path / "linked"
        os.symlink("home", home)
    path = write("a: {noise_std: {from: '../../secrets.yaml#/a'}}", "home/work/recipes/r.yaml")
    assert read(path).entries["a"].parameters["noise_std"] == 3.0
    monkeypatch.setenv("HOME", str(home))
    with pytest.raises(Malformed, match="leads out of the project"):
        read(path)
    Path("home/work", ".git").write_text("gitdir: elsewhere", encoding="utf-8")  # as in a worktree or a submodule
    assert project_of("home/work/recipes") == str(tmp_path / "home" / "work")


def test_the_home_of_the_account_is_no_project_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pwd = pytest.importorskip("pwd")
    (tmp_path / "account" / "work").mkdir(parents=True)
    (tmp_path / "account" / ".git").mkdir()
    monkeypatch.delenv("HOME")
    record = pwd.getpwuid(os.getuid())
    fields = [*record[:5], str(tmp_path / "account"), record[6]]
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: pwd.struct_passwd(fields))
    assert project_of(str(tmp_path / "account" / "work")) == str(tmp_path / "account" / "work")


def test_a_folder_that_everybody_writes_to_is_no_project(tmp_path: Path) -> None:
    (tmp_path / "shared" / "work").mkdir(parents=True)
    (tmp_path / "shared" / ".git").mkdir()
    assert project_of(str(tmp_path / "shared" / "work")) == str(tmp_path / "shared")
    (tmp_path / "shared").chmod(0o1777)
    assert project_of(str(tmp_path / "shared" / "work")) == str(tmp_path / "shared" / "work")


def test_a_marker_that_another_user_planted_makes_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shared" / "work").mkdir(parents=True)
    (tmp_path / "shared" / "pyproject.toml").touch()
    status, owner = os.lstat, os.getuid() + 1

    def planted(path: Any, **how: Any) -> os.stat_result:
        found = status(path, **how)
        return os.stat_result([*found[:4], owner, *found[5:]]) if str(path).endswith(".toml") else found

    assert project_of(str(tmp_path / "shared" / "work")) == str(tmp_path / "shared")
    monkeypatch.setattr(os, "lstat", planted)
    assert project_of(str(tmp_path / "shared" / "work")) == str(tmp_path / "shared" / "work")


# --- what is shown ----------------------------------------------------------------------------------------------------

LEAKS = {
    "a number": ("s.yaml", f"k: {SECRET}", "{noise_std: {from: 's.yaml#/k'}}"),
    "a word": ("s.yaml", f"k: {SECRET}", "{algorithm: {from: 's.yaml#/k'}}"),
    "true or false": ("s.yaml", f"k: {SECRET}", "{command: train, intercept: {from: 's.yaml#/k'}}"),
    "a list": ("s.yaml", f"k: [1, {SECRET}]", "{noise_std: 2, matrix: {epochs: {from: 's.yaml#/k'}}}"),
    "a range": ("s.yaml", f"k: 1:{SECRET}:3", "{matrix: {noise_std: {from: 's.yaml#/k'}}}"),
    "orders": ("s.yaml", f"k: [{SECRET}]", "{noise_std: 2, order: {from: 's.yaml#/k'}}"),
    "delta": ("s.yaml", f"k: {SECRET}", "{noise_std: 2, delta: {from: 's.yaml#/k'}}"),
    "a label": ("s.yaml", f"k: {SECRET}", "{command: train, data: t.csv, positive: {from: 's.yaml#/k'}}"),
    "a column": ("s.yaml", f"k: {SECRET}", "{command: train, data: t.csv, target: {from: 's.yaml#/k'}}"),
    "columns": ("s.yaml", f"k: [{SECRET}]", "{command: train, data: t.csv, ignore: {from: 's.yaml#/k'}}"),
    "a choice": ("s.yaml", f"k: {SECRET}", "{command: train, synthetic: {from: 's.yaml#/k'}}"),
    "a path": ("s.yaml", f"k: {SECRET}.csv", "{schedule: {from: 's.yaml#/k'}}"),
    "paths": ("s.yaml", f"k: [{SECRET}.csv, other.csv]", "{matrix: {schedule: {from: 's.yaml#/k'}}}"),
    "a path of another kind": ("s.yaml", f"k: {SECRET}", "{command: train, data: {from: 's.yaml#/k'}}"),
    "an example": ("s.yaml", f"k: example:{SECRET}", "{command: train, data: {from: 's.yaml#/k'}}"),
    "a path outside": ("s.yaml", f"k: ../{SECRET}", "{schedule: {from: 's.yaml#/k'}}"),
    "keys that are near": ("s.yaml", f"{SECRET}: 1", "{noise_std: {from: 's.yaml#/hunter'}}"),
    "keys of a mapping": ("s.yaml", f"k: {{{SECRET}: 1}}", "{from: 's.yaml#/k'}"),
    "a mapping's value": ("s.yaml", f"k: {{noise_std: {SECRET}}}", "{from: 's.yaml#/k'}"),
    "a key that is given twice": ("s.yaml", f"{SECRET}: 1\n{SECRET}: 2", "{noise_std: {from: 's.yaml#/k'}}"),
    "an alias": ("s.yaml", f"a: *{SECRET}", "{noise_std: {from: 's.yaml#/k'}}"),
    "a tag": ("s.yaml", f"k: !{SECRET} 3", "{noise_std: {from: 's.yaml#/k'}}"),
    "YAML that is none": ("s.yaml", f"%{SECRET} 1\n\x01", "{noise_std: {from: 's.yaml#/k'}}"),
    "JSON with a key twice": ("s.json", f'{{"{SECRET}": 1, "{SECRET}": 2}}', "{noise_std: {from: 's.json#/k'}}"),
    "JSON that is none": ("s.json", SECRET, "{noise_std: {from: 's.json#/k'}}"),
    "TOML with a key twice": ("s.toml", f"[{SECRET}]\n[{SECRET}]", "{noise_std: {from: 's.toml#/k'}}"),
    "a header": ("s.csv", f"{SECRET},b\n1,2\n", SCHEDULED % "s.csv"),
    "a cell": ("s.csv", f"step_size,noise_std\n1,{SECRET}\n", SCHEDULED % "s.csv"),
    "a count": ("s.csv", f"step_size,repeat\n1,{SECRET}\n", SCHEDULED % "s.csv"),
    "a name in YAML": ("s.yml", f"{SECRET}: 1\n", SCHEDULED % "s.yml"),
    "a name twice in YAML": ("s.yml", f"{SECRET}: 1\n{SECRET}: 1\n", SCHEDULED % "s.yml"),
    "a number in YAML": ("s.yml", f"step_size: ['1,{SECRET}']\n", SCHEDULED % "s.yml"),
    "a table's header": ("s.csv", f"{SECRET},y\nx,2\n", "{command: train, data: s.csv, target: z}"),
    "a table's cell": ("s.csv", f"a,y\n1,0\n{SECRET},1\n", "{command: train, data: s.csv, positive: '1'}"),
    "a table's label": ("s.csv", f"a,y\n1,a\n2,b\n3,{SECRET}\n", "{command: train, data: s.csv, positive: a}"),
    "ranges": ("s.csv", f"column,low,high\n{SECRET},1,2\n", "{command: train, data: t.csv, ranges: s.csv}"),
    "a range's end": ("s.csv", f"column,low,high\na,1,{SECRET}\n", "{command: train, data: t.csv, ranges: s.csv}"),
}


CELLS = ("a table's cell", "a table's label")
"""What stands in a record is no reason to refuse it, and must not be shown either."""


@pytest.mark.few(18)
@pytest.mark.parametrize("leak", LEAKS)
def test_no_error_quotes_a_file_that_is_referred_to(write: Any, capsys: pytest.CaptureFixture[str], leak: str) -> None:
    name, text, case = LEAKS[leak]
    Path("t.csv").write_text("a,y\n1,0\n2,1\n", encoding="utf-8")
    Path(name).write_text(text, encoding="utf-8")
    asked = f"{TRAIN}, epsilon: 1, radius: 1, loss: logistic, feature_bound: 1"
    case = case.replace("command: train", asked)
    path = write(f"a: {case}\nb: {{command: rdp, noise_std: 2, assert: epsilon <= 9}}")
    reports = " ".join(f"--report {kind}={kind}.json" for kind in KINDS)
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(f"check {path} --json {reports}"))
    captured = capsys.readouterr()
    told = {kind: Path(f"{kind}.json").read_text(encoding="utf-8") for kind in KINDS}
    assert stop.value.code == (0 if leak in CELLS else 2)
    for where, said in {"stdout": captured.out, "stderr": captured.err, **told}.items():
        assert SECRET not in said, where
    if captured.out:  # else the recipe itself is refused, as its path leads out
        cases = json.loads(captured.out)["cases"]
        assert [one["check"]["status"] for one in cases[-2:]] == ["passed" if leak in CELLS else "error", "passed"]


def test_a_path_by_reference_is_shown_as_its_reference(good: Any) -> None:
    Path("steps.csv").write_text(STEPS, encoding="utf-8")
    Path("c.json").write_text('{"k": ["steps.csv", "steps.csv"]}', encoding="utf-8")
    recipe = good("a: {command: rdp, matrix: {schedule: {from: 'c.json#/k'}}}")
    for index, entry in enumerate(recipe.entries.values()):
        assert entry.parameters["schedule"] == f"c.json#/k/{index}"
        assert len(read_schedule(entry.parameters["schedule"], columns=("step_size", "noise_std"))["step_size"]) == 50


# --- what is the fault of one case ------------------------------------------------------------------------------------


def test_a_bad_file_costs_the_cases_that_refer_to_it_alone(write: Any) -> None:
    Path("steps.csv").write_text("step_size\nx\n", encoding="utf-8")
    path = write(
        f"""\
        good: {{command: rdp, noise_std: 2, assert: epsilon <= 9}}
        gone: {{command: rdp, noise_std: {{from: 'gone.json#/k'}}, assert: epsilon <= 9}}
        skipped: {{command: rdp, noise_std: {{from: 'gone.json#/k'}}, skip: "until the file is there"}}
        many: {{command: rdp, matrix: {{noise_std: {{from: 'gone.json#/k'}}, epochs: [1, 2]}}}}
        steps: {SCHEDULED % 'steps.csv'}
        beside: {{command: rdp, noise_std: 2, assert: 'epsilon <= cases.many[epochs=1].epsilon'}}
        expects: {{command: rdp, noise_std: {{from: 'gone.json#/k'}}, expect: {{error: infeasible}}}}
        """
    )  # fmt: skip
    found = verdicts(path)
    assert found.pop("good") == ("passed", 0)
    assert set(found) == {"gone", "skipped", "many", "steps", "beside", "expects"}
    assert set(found.values()) == {("error", 2)}


def test_a_bad_default_costs_the_cases_that_take_it(write: Any) -> None:
    head = "dpcalc: recipe/1\ndefaults: {command: rdp, lipschitz: 1, smoothness: 1, step_size: 0.1, delta: 1e-6, "
    cases = "records: 100, noise_std: {from: 'gone.json#/k'}}\ncases:\n  own: {noise_std: 2}\n  takes: {epochs: null}\n"
    found = verdicts(write("", head=head + cases))
    assert found == {"own": ("passed", 0), "takes": ("error", 2)}
    whole = head + "from: 'gone.json#/k'}\ncases:\n  a: {noise_std: 2}\n"
    assert verdicts(write("", head=whole)) == {"a": ("error", 2)}


def test_a_bad_reference_is_told_by_several_processes(write: Any) -> None:
    path = write("a: {command: rdp, matrix: {noise_std: [2, 3, 4]}}\nb: {noise_std: {from: 'gone.json#/k'}}")
    entry = pickle.loads(pickle.dumps(read(path).entries["b"]))
    assert entry.unread.message.startswith("r.yaml:5:")
    assert entry.unread.hint == "give the path of a configuration"


# --- merges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["'<<'", '"<<"'])
def test_a_quoted_key_merges_nothing(good: Any, unread: Any, key: str) -> None:
    Path("c.yaml").write_text(f"run: {{{key}: {{k: 3}}}}", encoding="utf-8")
    assert "there is no 'k'" in unread("a: {noise_std: {from: 'c.yaml#/run/k'}}")
    assert good("a: {noise_std: {from: 'c.yaml#/run/<</k'}}").entries["a"].parameters["noise_std"] == 3.0


@pytest.mark.parametrize(("name", "text"), [("c.json", '{"<<": {"k": 3}}'), ("c.toml", '["<<"]\nk = 3')])
def test_json_and_toml_have_no_merges(unread: Any, name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8")
    assert "there is no 'k'" in unread(f"a: {{noise_std: {{from: '{name}#/k'}}}}")


def test_the_first_of_several_merged_mappings_counts(good: Any) -> None:
    text = "a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: &c {x: 4, z: 5}\nrun: {<<: [*b, *c]}\n"
    Path("c.yaml").write_text(text, encoding="utf-8")
    for key, value in {"x": 1.0, "y": 2.0, "z": 5.0}.items():
        assert good(f"a: {{noise_std: {{from: 'c.yaml#/run/{key}'}}}}").entries["a"].parameters["noise_std"] == value


def test_a_chain_of_merges_is_followed_without_recursion(
    good: Any, unread: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = "a0: &a0 {k: 3}\n" + "".join(f"a{n}: &a{n} {{<<: *a{n - 1}}}\n" for n in range(1, 25_000))
    Path("c.yaml").write_text(chain, encoding="utf-8")
    assert good("a: {noise_std: {from: 'c.yaml#/a24999/k'}}").entries["a"].parameters["noise_std"] == 3.0
    monkeypatch.setattr(reading, "CONFIGURATION_LOOKUPS", 20_000)
    assert "more than 20000 mappings" in unread("a: {noise_std: {from: 'c.yaml#/a24999/k'}}")


# --- bounded work -----------------------------------------------------------------------------------------------------


def test_a_recipe_refers_to_so_many_bytes(good: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CONFIGURATION_BYTES", 10)
    for name in "xyz":
        Path(f"{name}.json").write_text('{"k": 3}', encoding="utf-8")
    recipe = good("".join(f"{name}: {{noise_std: {{from: '{name}.json#/k'}}}}\n" for name in "xyz"))
    assert [entry.unread is None for entry in recipe.entries.values()] == [True, True, False]
    assert "at most 10 bytes" in str(recipe.entries["z"].unread)


def test_a_file_is_read_once_also_if_it_is_bad(good: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("c.json").write_text("{", encoding="utf-8")
    reads = []
    monkeypatch.setattr(reference, "read_document", lambda path, what: reads.append(path) or Path(path).read_bytes())
    good("".join(f"c{n}: {{noise_std: {{from: 'c.json#/k'}}}}\n" for n in range(50)))
    assert reads == ["r.yaml", "c.json"]


@pytest.mark.parametrize(
    "text",
    [
        "a: {noise_std: " + "0" * 100_000 + "1}",
        "a: {noise_std: " + "9" * 100_000 + "}",
        "a: {noise_std: 1e999999}",
        "a: {noise_std: 3e-99999/7e-99999}",
        "a: {noise_std: 7^-100000}",
        "a: {algorithm: " + "x" * 100_000 + "}",
        "a: {command: " + "x" * 100_000 + "}",
        "a: {" + "x" * 100_000 + ": 1}",
        "a: {command: train, data: t.csv, target: " + "x" * 100_000 + "}",
        "a: {command: train, matrix: {target: [" + "x" * 100_000 + ", y]}}",
        "a: {skip: " + "x" * 100_000 + "}",
        "a: {assert: epsilon <= " + "1" * 100_000 + "}",
        "a: {assert: 'epsilon <= cases." + "x" * 900 + ".epsilon'}",
    ],
    ids=lambda text: text[:40],
)
def test_long_values_are_refused_shortly(bad: Any, text: str) -> None:
    assert len(bad(text)) < 5000


def test_a_missing_column_is_not_compared_with_every_other(tmp_path: Path) -> None:
    """Comparing long names takes the square of their length, and of all of them an hour."""
    path = tmp_path / "t.csv"
    path.write_text(",".join(f"{'x' * 40}{n:06}" for n in range(20_000)) + "\n", encoding="utf-8")
    with pytest.raises(SpecError, match="has no column") as caught:
        tables.read(str(path), target="x" * 100_000)
    assert len(str(caught.value)) < 1000
    path.write_text("x" * 200_000 + ",y\n1,2\n", encoding="utf-8")
    with pytest.raises(SpecError, match="has no column"):
        tables.read(str(path), target="x" * 100_000)


def test_an_open_quote_in_a_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('"' + "x" * 2000 + "\n1\n", encoding="utf-8")
    with pytest.raises(SpecError):
        tables.read(str(path))


def _npy(shape: str, descr: str = "'<f8'", values: bytes = b"", version: int = 1, claimed: int | None = None) -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}\n".encode()
    length = (len(header) if claimed is None else claimed).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + values


FORGED = {
    "more values than bytes": _npy("(1000000000, 8)", values=b"\0" * 64),
    "no bytes for each value": _npy("(1000000000000000000,)", descr="'V0'"),
    "no bytes for each text": _npy("(10000000000000000,)", descr="'<U0'"),
    "a negative length": _npy("(-1, -8)", values=b"\0" * 64),
    "columns without rows": _npy("(0, 1000000000)"),
    "objects": _npy("(1,)", descr="'|O'", values=b"\0" * 8),
    "a header without end": _npy("(1,)", version=2, claimed=2**32 - 1),
    "brackets": _npy("(" * 2000),
    "no array": b"\x93NUMPY",
}


@pytest.mark.parametrize("ending", ["npy", "npz"])
@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_forged_arrays_are_refused(tmp_path: Path, forged: bytes, ending: str) -> None:
    import zipfile

    path = tmp_path / f"t.{ending}"
    for reader, members in ((tables.read, ("X.npy", "y.npy")), (_scheduled, ("step_size.npy",))):
        if ending == "npy":
            path.write_bytes(forged)
        else:
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                for member in members:
                    archive.writestr(member, forged)
        with pytest.raises(SpecError):
            reader(str(path))


def _scheduled(path: str) -> Any:
    return read_schedule(path, columns=("step_size",), required=("step_size",))


@pytest.mark.parametrize("reader", [tables.read, _scheduled])
def test_a_member_that_claims_more_than_it_can_hold_is_refused(tmp_path: Path, reader: Any) -> None:
    path = tmp_path / "t.npz"
    np.savez(path, step_size=np.ones(4))
    raw = path.read_bytes()
    place = raw.rindex(b"PK\x01\x02")  # the directory's record, which has the two lengths from its byte 20 on
    path.write_bytes(raw[: place + 24] + (2**31).to_bytes(4, "little") + raw[place + 28 :])
    with pytest.raises(SpecError, match="claims more than it can hold"):
        reader(str(path))


def test_data_that_unpack_too_far_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.npz"
    np.savez_compressed(path, X=np.zeros((100_000, 2)), y=np.zeros(100_000))
    assert tables.read(str(path)).cells.shape == (100_000, 3)
    monkeypatch.setattr(reading, "UNPACKED_BYTES", 1_000_000)
    with pytest.raises(SpecError, match="would unpack to 1600128 bytes"):
        tables.read(str(path))


def test_a_plain_key_that_merges_is_marked_in_foreign_yaml_alone() -> None:
    for foreign in (True, False):
        node: Any = parse_yaml("c.yaml", b"<<: {a: 1}\nb: 2", Rules(foreign=foreign))
        assert [field.merges for field in node.fields.values()] == [foreign, False]
