"""What a notebook shows of a report."""

import subprocess
import sys

import pytest

import dpcalc
from dpcalc.render.notebook import render_notebook
from dpcalc.report import Report
from tests.render.test_check_reports import ALL, EPSILON, HELD, HOSTILE, case
from tests.render.test_page import Tree

RUN = {"records": 60, "lipschitz": 1, "smoothness": 1, "step_size": 0.1, "delta": 1e-6}


def shown(report: Report) -> Tree:
    text = report._repr_html_()
    assert text is not None
    return Tree(text)


def test_an_answer() -> None:
    text = shown(dpcalc.rdp(**RUN, noise_std=2)).text  # type: ignore[arg-type]
    assert "epsilon \u2264 4.88656 at delta = 1e-06" in text
    assert "is right at most 69.2% of the time" in text
    assert "one pass in a fixed order, each record used once" in text
    assert "records n = 60" in text


def test_a_sweep_has_a_row_a_case() -> None:
    found = shown(dpcalc.rdp(**RUN, noise_std=[2, 3, 4]))  # type: ignore[arg-type]
    assert len(found.all("tr")) == 4
    assert "4.88656" in found.text


def test_another_reading_of_the_noise_is_shown() -> None:
    run = {"records": 60000, "batch_size": 500, "steps": 1000, "sampling": "poisson", "clip": 1, "delta": 1e-6}
    for noise in (1.1, [1.1, 1.2]):
        with pytest.warns(dpcalc.PrivacyWarning, match="say noise_multiplier=1[.][12]"):
            text = shown(dpcalc.dp_sgd(**run, noise_std=noise)).text  # type: ignore[arg-type]
        assert "if 1.1 is the noise multiplier of a library" in text


def test_gates_have_a_verdict() -> None:
    text = shown(dpcalc.rdp(**RUN, noise_std=2, gates=["epsilon<=1"])).text  # type: ignore[arg-type]
    assert "FAIL: epsilon\u22641 (value 4.88655" in text


@pytest.mark.parametrize("report", [ALL, Report("check", ()), Report("rdp", ())])
def test_every_report_is_shown(report: Report) -> None:
    shown(report)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_breaks_out(text: str) -> None:
    hostile = case(EPSILON._replace(reference=text, assumes=(text,), bound=text), name=text, gates=[HELD])
    for cases in ((hostile,), (hostile, hostile)):
        tags = {tag for tag, _ in Tree(render_notebook(Report("rdp", cases))).elements}
        assert tags <= {"div", "p", "strong", "ul", "li", "small", "table", "thead", "tbody", "tr", "th", "td"}


def test_no_package_is_needed() -> None:
    program = (
        "import sys; sys.modules['jinja2'] = None; import dpcalc; "
        f"print(dpcalc.rdp(**{RUN!r}, noise_std=2)._repr_html_())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("<div>")
