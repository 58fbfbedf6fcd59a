"""What a release rests on: its workflows, its citation, its promises, and archives that are the same twice."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from dpcalc import __version__
from dpcalc.cards.document import SCHEMA as CARD
from dpcalc.recipes.reading.read import VERSION as RECIPE
from dpcalc.report import SCHEMA as REPORT
from dpcalc.training.release.model import SCHEMA as MODEL

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def scripts(workflow: Path) -> list[str]:
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_what_a_workflow_runs_is_there_and_may_do_little_else(workflow: Path) -> None:
    content = yaml.safe_load(workflow.read_text(encoding="utf-8"))
    assert content["permissions"] == {"contents": "read"}
    for script in scripts(workflow):
        for path in re.findall(r"\.ci/\w+", script):
            assert os.access(ROOT / path, os.X_OK), path
        assert "${{" not in script, "what a tag is called must not reach a shell unquoted"


def test_only_the_last_step_may_publish_and_no_token_is_stored() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    assert "secrets." not in text
    assert jobs["publish"]["needs"] == "attest"
    assert set(jobs["attest"]["needs"]) == {"campaign", "build"}
    assert [name for name, job in jobs.items() if job.get("environment") == "pypi"] == ["publish"]


def test_a_job_with_the_identity_token_runs_nothing_of_the_project() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))["jobs"]
    holders = {name: job for name, job in jobs.items() if "id-token" in job.get("permissions", {})}
    assert set(holders) == {"attest", "publish"}
    for job in holders.values():
        assert all(set(step) <= {"uses", "with"} and "checkout" not in step["uses"] for step in job["steps"])


ACTIONS = [*WORKFLOWS, ROOT / "action.yml", *sorted((ROOT / "docs" / "examples").glob("*.yml"))]


@pytest.mark.parametrize("path", ACTIONS, ids=lambda path: path.stem)
def test_actions_are_pinned_to_commits(path: Path) -> None:
    used = re.findall(r"^ *-? *uses: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert used
    for action in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*|OWNER/dpcalc@COMMIT", action), action


def test_what_builds_a_wheel_is_pinned_by_hash() -> None:
    lines = (ROOT / ".ci" / "build-tools.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w-]+==[\w.]+( --hash=sha256:[0-9a-f]{64})+", line) for line in pinned)
    assert {"build", "hatchling"} <= {line.partition("==")[0] for line in pinned}
    for script in (ROOT / ".ci" / "wheel", ROOT / "action.yml"):
        text = script.read_text(encoding="utf-8")
        assert "--require-hashes" in text
        assert "--no-isolation" in text or "--no-build-isolation" in text


def test_the_page_on_stability_names_the_schemas_that_are_written() -> None:
    page = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    for schema in (REPORT, CARD, MODEL, RECIPE):
        assert f"`{schema}`" in page, schema


def test_every_source_that_the_paper_cites_is_in_its_list() -> None:
    paper = (ROOT / "docs" / "paper" / "paper.md").read_text(encoding="utf-8")
    listed = re.findall(
        r"^@\w+\{(\w+)", (ROOT / "docs" / "paper" / "paper.bib").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert set(re.findall(r"@([a-z]+\d{4})", paper)) == set(listed)


@pytest.mark.campaign
@pytest.mark.skipif(not (ROOT / ".git").exists() or shutil.which("git") is None, reason="needs a clone")
def test_the_archives_are_the_same_twice(tmp_path: Path) -> None:
    subprocess.run([str(ROOT / ".ci" / "wheel"), str(tmp_path)], check=True, capture_output=True, timeout=500)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"dpcalc-{__version__}-py3-none-any.whl", f"dpcalc-{__version__}.tar.gz",
    }  # fmt: skip
