"""The documentation: pages made from the code are fresh, links lead somewhere, commands and examples work."""

import functools
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
import yaml

import dpcalc
from dpcalc import __version__
from dpcalc.cli.main import cli
from dpcalc.theorems.record import all_bounds

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
REFRESH = "stale: run `python docs/build.py`"

pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="the documentation is not part of this distribution")


def loaded_module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def build() -> ModuleType:
    return loaded_module("build")


@pytest.fixture(scope="module")
def pages(build: ModuleType) -> dict[str, str]:
    made: dict[str, str] = build.pages()
    return made


def test_pages_are_fresh(pages: dict[str, str]) -> None:
    assert {"errata.md", "commands.md", "bounds/README.md", "bounds/iteration.md"} <= set(pages)
    on_disk = {f"bounds/{path.name}" for path in (DOCS / "bounds").glob("*.md")}
    assert on_disk == {name for name in pages if name.startswith("bounds/")}, REFRESH
    for name, text in pages.items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"{name} is {REFRESH}"


def test_the_types_of_the_api_are_fresh(build: ModuleType) -> None:
    assert build.STUB.read_text(encoding="utf-8") == build.stub(), f"dpcalc/__init__.pyi is {REFRESH}"


@pytest.mark.campaign
def test_the_tutorial_prints_what_it_shows(build: ModuleType, tmp_path: Path) -> None:
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    shown = build.transcript(text, tmp_path)
    assert rounded(shown) == rounded(text), f"tutorial.md is {REFRESH}"
    assert text.count("\n$ dpcalc ") >= 7
    assert text.count("[exit code 1]") == 1
    assert re.search(r"^pass +released-model .*\n(.*\n)*^FAIL +released-model ", text, re.MULTILINE)


@pytest.mark.parametrize("guide", sorted((DOCS / "guides").glob("*.md")), ids=lambda path: path.stem)
def test_the_commands_of_guides_parse(guide: Path) -> None:
    lines = re.findall(r"^\$ (dpcalc [^|\n]*)", guide.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) >= 3
    for line in lines:
        the_command_parses(line)


@pytest.mark.campaign
@pytest.mark.parametrize("guide", sorted((DOCS / "guides").glob("*.md")), ids=lambda path: path.stem)
def test_guides_print_what_they_show(build: ModuleType, guide: Path, tmp_path: Path) -> None:
    text = guide.read_text(encoding="utf-8")
    assert rounded(build.transcript(text, tmp_path)) == rounded(text), f"{guide.name} is {REFRESH}"


EXAMPLES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted((DOCS / "guides").glob("*.md"))]


def test_examples_of_a_loader_have_the_rate_that_it_draws_with() -> None:
    """Opacus draws at 1/len(loader): batch_size/n is another rate, and a rate that depends on n is no add-remove."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in EXAMPLES if page.exists()).replace("\\\n", " ")
    lines = [line for line in re.findall(r"dpcalc (dp-sgd [^|\n]*)", text) if "--sampling poisson" in line]
    assert len(lines) >= 8
    for line in lines:
        assert "--release last" in line or ("--sample-rate" in line and "--batch-size" not in line), line
        assert "--adjacency add-remove" not in line, line


def test_a_loader_that_drops_its_last_batch_has_a_larger_rate() -> None:
    guide = (DOCS / "guides" / "opacus.md").read_text(encoding="utf-8")
    loader = 570 // 200  # batches of a loader with drop_last
    said = {"records": 570, "noise_multiplier": 2, "sampling": "poisson", "delta": 1e-4}
    ran = dpcalc.dp_sgd(sample_rate=1 / loader, steps=30 * loader, adjacency="zero-out", **said).cases[0].best
    wrong = dpcalc.dp_sgd(batch_size=200, epochs=30, adjacency="add-remove", **said).cases[0].best
    assert ran is not None
    assert wrong is not None
    assert ran.value == pytest.approx(9.26835, rel=1e-6)  # the PLD accountant of dp-accounting 0.6.0
    assert f"epsilon <= {ran.value:.6g} " in guide
    assert f": {wrong.value:.6g}, which is too small" in guide


def test_python_examples_pass_a_strict_type_checker(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    programs = []
    for page in EXAMPLES:
        blocks = re.findall(r"^ *```python\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        for number, block in enumerate(blocks):
            programs.append(tmp_path / f"{page.stem.replace('-', '_')}_{number}.py")
            programs[-1].write_text(textwrap.dedent(block), encoding="utf-8")
    assert len(programs) >= 7
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import dpcalc\n\nx: str = dpcalc.rdp(records=1, lipschitz='one').epsilon\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    run = functools.partial(
        subprocess.run, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    done = run([*command, *map(str, programs)])
    assert done.returncode == 0, done.stdout + done.stderr
    assert run([*command, str(wrong)]).stdout.count("error: ") == 2


def test_every_page_is_in_the_site(tmp_path: Path) -> None:
    site = loaded_module("build_site")
    site.stage(tmp_path)
    [*sections] = site.configuration(tmp_path, tmp_path / "site")["nav"]
    named = [page for section in sections for pages in section.values() for page in pages]
    assert len(named) == len(set(named))
    assert set(named) == {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.md")}


@pytest.mark.campaign
def test_the_site_is_built_and_its_links_hold(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    loaded_module("build_site").build(tmp_path)
    assert "Search" in (tmp_path / "docs" / "method.html").read_text(encoding="utf-8")


def rounded(text: str) -> str:
    """Return the text with the digits dropped that depend on the C library."""
    return re.sub(r"\d+\.\d{9,}", lambda match: f"{float(match[0]):.9g}", text)


def test_transcripts_are_what_commands_print(build: ModuleType, tmp_path: Path) -> None:
    page = "```yaml\n# a/b.yaml\nx: 1\n```\n\n```console\n$ cat a/b.yaml; exit 1\nold\n$ echo two\n```\n"
    expected = page.replace("old\n", "# a/b.yaml\nx: 1\n[exit code 1]\n").replace("two\n", "two\ntwo\n")
    assert build.transcript(page, tmp_path) == expected
    with pytest.raises(RuntimeError, match="Which algorithm"):
        build.transcript("```console\n$ dpcalc compare -n 5\n```\n", tmp_path)


def test_every_bound_is_told_in_full(pages: dict[str, str]) -> None:
    for bound in all_bounds().values():
        page = pages[f"bounds/{bound.family}.md"]
        section = page.split(f"\n## {bound.id}\n")[1].split("\n## ")[0]
        for word in (bound.title, f"    {bound.formula}\n", f"| kind | {bound.kind},", "../method.md#", "neighbours"):
            assert word in section, bound.id
        assert all(f"`{name}`" in section for name in bound.parameters)
        assert section.count("\n* ") == len(bound.assumes) + len(bound.conditions) + len(bound.promises)
        assert f"`{bound.id}`" in pages["bounds/README.md"]
        if bound.erratum:
            assert f"[`{bound.id}`]" in pages["errata.md"], bound.id


def test_every_erratum_of_the_method_is_collected(pages: dict[str, str]) -> None:
    method = (DOCS / "method.md").read_text(encoding="utf-8")
    told = re.findall(r"^\*+Errat.*", method, re.MULTILINE)
    assert len(told) >= 5
    assert all(line in pages["errata.md"] for line in told)
    rows = re.findall(r"^\| .*\| (?:unsafe|safe|claim|gap|loose|omission) \|$", method, re.MULTILINE)
    assert len(rows) >= 14
    assert all(row in pages["errata.md"] for row in rows)


def test_every_option_is_in_the_reference(pages: dict[str, str]) -> None:
    context = click.Context(cli)
    text = pages["commands.md"]
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        section = text.split(f"\n## {name}\n")[1].split("\n## ")[0] + text.split("\n## Options of every question\n")[1]
        for option in command.params:
            if isinstance(option, click.Option):
                assert all(re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", section) for flag in option.opts), option


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page: of its headings as GitHub makes them, and those written out."""
    text = path.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    named = re.findall(r'<a id="([\w-]+)"></a>', text)
    return {*named, *(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain)}


def written() -> list[Path]:
    found = [*DOCS.rglob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]
    return sorted(path for path in found if path.exists())


@pytest.mark.parametrize("page", written(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"(?<!\\)\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith(("https://", "http://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there), target


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_shards_are_merged_by_commands_there_are() -> None:
    """Of the workflow, the number of shards is that of the matrix; of the script, that of the array."""
    text = (DOCS / "examples" / "github-shards.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    numbers = jobs["shard"]["strategy"]["matrix"]["shard"]
    assert numbers == [*range(1, len(numbers) + 1)]
    assert f"}}}}/{len(numbers)} " in text
    assert jobs["verdict"]["needs"] == "shard"
    lines = [step["run"] for job in jobs.values() for step in job["steps"] if step.get("run", "").startswith("dpcalc ")]
    script = (DOCS / "examples" / "shards.slurm").read_text(encoding="utf-8").replace("\\\n", " ")
    lines += re.findall(r"^dpcalc .*|dpcalc merge [^']*", script, re.MULTILINE)
    assert len(lines) == 4
    for line in lines:
        the_command_parses(re.sub(r"\$\{\{.*?\}\}|\$SLURM\w+", "1", line).replace("|| true", ""))


def test_the_comment_is_of_what_the_workflow_writes() -> None:
    """The workflow with the right to write runs nothing of the pull request: it has no checkout and no dpcalc."""
    checks = loaded(DOCS / "examples" / "github-actions.yml")
    comment = loaded(DOCS / "examples" / "github-comment.yml")
    assert comment[True] == {"workflow_run": {"workflows": [checks["name"]], "types": ["completed"]}}
    [download, post] = comment["jobs"]["comment"]["steps"]
    [upload] = [step for step in checks["jobs"]["budget"]["steps"] if "upload-artifact" in step.get("uses", "")]
    assert re.fullmatch(r"actions/download-artifact@[0-9a-f]{40}", download["uses"])
    assert download["with"]["name"] == upload["with"]["name"]
    [gates] = [step for step in checks["jobs"]["budget"]["steps"] if "dpcalc@" in step.get("uses", "")]
    assert upload["with"]["path"] == f"${{{{ steps.{gates['id']}.outputs.reports }}}}"
    assert "markdown=gates.md" in (ROOT / "action.yml").read_text(encoding="utf-8")
    assert "--body-file gates.md" in post["run"]
    assert "${{" not in post["run"]  # what others wrote reaches the shell as variables alone


def the_command_parses(line: str) -> None:
    """Parse a command line without running it."""
    _, name, *arguments = shlex.split(line)
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    command.make_context(name, arguments)


def test_the_hook_passes_no_names_of_files() -> None:
    [hook] = loaded(ROOT / ".pre-commit-hooks.yaml")
    assert {"id", "name", "entry", "language", "args"} <= set(hook)
    assert hook["language"] == "python"
    assert (hook["pass_filenames"], hook["always_run"]) == (False, True)
    the_command_parses(" ".join([hook["entry"], *hook["args"]]))
    [repository] = loaded(DOCS / "examples" / "pre-commit-config.yaml")["repos"]
    [used] = repository["hooks"]
    assert used["id"] == hook["id"]
    assert "pass_filenames" not in used
    for arguments in (hook["args"], used["args"]):
        assert arguments[-2:] == ["--", "budget.yaml"]
    the_command_parses(" ".join([hook["entry"], *used["args"]]))


def checked_by_the_action(root: Path, **inputs: str) -> tuple[int, list[str], Path]:
    """Run the action's last step with a dpcalc that notes its words; return the code, the words and where it ran."""
    action = loaded(ROOT / "action.yml")
    step = action["runs"]["steps"][-1]
    given = {name: str(each["default"]) for name, each in action["inputs"].items()} | inputs
    assert step["env"] == {name.upper(): f"${{{{ inputs.{name} }}}}" for name in given}
    assert "${{" not in step["run"], "text of the workflow must not become a part of the script"
    program = root / "temp" / "dpcalc" / "bin" / "dpcalc"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\npwd > "$RUNNER_TEMP/where"\nprintf "%s\\n" "$@" > "$RUNNER_TEMP/words"\n')
    program.chmod(0o755)
    (root / "workspace" / "pull").mkdir(parents=True)
    runner = {"RUNNER_TEMP": str(root / "temp"), "GITHUB_WORKSPACE": str(root / "workspace")}
    environment = {"PATH": os.environ["PATH"], "GITHUB_OUTPUT": str(root / "temp" / "output"), **runner}
    environment |= {name.upper(): value for name, value in given.items()}
    done = subprocess.run(
        ["bash", "-c", step["run"]],
        env=environment,
        cwd=root / "workspace",
        capture_output=True,
        check=False,
        timeout=60,
    )
    words = root / "temp" / "words"
    if not words.exists():
        return done.returncode, [], root
    where = Path((root / "temp" / "where").read_text(encoding="utf-8").strip())
    return done.returncode, words.read_text(encoding="utf-8").splitlines(), where


def test_the_action_calls_dpcalc_with_fixed_options(tmp_path: Path) -> None:
    names = "budget.yaml\n--run=^ok$|.yaml\n\n$(touch hacked) `touch hacked`;.yaml\n* -j9.yaml"
    code, words, where = checked_by_the_action(
        tmp_path, folder="pull", recipes=names, policy="base/policy.yaml", baseline="base/last.json"
    )
    assert code == 0
    assert where == (tmp_path / "workspace" / "pull").resolve()
    end = words.index("--")
    assert words[end + 1 :] == [line for line in names.splitlines() if line]
    assert words[0] == "check"
    reports, others = words[1:6], words[6:end]
    assert {word.split("=")[1] for word in reports} == {"json", "junit", "sarif", "html", "markdown"}
    assert all(f"={tmp_path / 'temp'}/dpcalc-reports." in word for word in reports)
    base = tmp_path / "workspace" / "base"
    assert others == ["--strict", f"--policy={base}/policy.yaml", f"--baseline={base}/last.json"]
    assert not list(tmp_path.rglob("hacked"))


@pytest.mark.parametrize(("strict", "code"), [("true", 0), ("false", 0), ("yes", 2), ("", 2)])
def test_the_action_is_strict_or_says_so(strict: str, code: int, tmp_path: Path) -> None:
    found, words, _ = checked_by_the_action(tmp_path, strict=strict)
    assert found == code
    assert ("--strict" in words) == (strict == "true")


def test_the_workflow_takes_what_judges_from_the_base_commit() -> None:
    workflow = loaded(DOCS / "examples" / "github-actions.yml")
    assert workflow[True] == ["pull_request"]
    assert workflow["permissions"] == {"contents": "read"}
    steps = workflow["jobs"]["budget"]["steps"]
    base, pull = [step["with"] for step in steps if step["uses"].startswith("actions/checkout@")]
    assert base["ref"] == "${{ github.event.pull_request.base.sha }}"
    assert "ref" not in pull
    [gates] = [step["with"] for step in steps if "dpcalc@" in step["uses"]]
    assert set(gates) <= set(loaded(ROOT / "action.yml")["inputs"])
    assert gates["folder"] == pull["path"]
    assert all(gates[name].startswith(base["path"] + "/") for name in ("policy", "baseline"))


def test_the_citation_is_of_this_version() -> None:
    citation = loaded(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors", "version"} <= set(citation)
    assert citation["version"] == __version__
