"""The JSON of a report is what `json` writes of `Report.to_dict`, byte by byte, although cases share their parts."""

import json
import math
from typing import Any

import pytest

import dpcalc
from dpcalc.checked import Assertion, Check, Status
from dpcalc.inert import json_text
from dpcalc.model.algorithm import Source
from dpcalc.render.machine import json_pieces
from dpcalc.report import Case, Obstacle, Report

RUN: dict[str, Any] = {
    "records": 100, "lipschitz": 1, "smoothness": 1, "step_size": 0.1, "noise_std": 2, "delta": 1e-6,
}  # fmt: skip


def plain(report: Report) -> str:
    return json.dumps(report.to_dict(), indent=2, allow_nan=False) + "\n"


def written(report: Report) -> str:
    return "".join(json_pieces(report))


def report(*values: Any) -> Report:
    """Return cases that differ in one input and in one number of the result."""
    result = dpcalc.rdp(index=3, **RUN).cases[0].results[0]
    why = (Obstacle("a.bound", 'needs "x"', "give --x"), Obstacle("other", "needs y", ""))
    return Report(
        "rdp",
        tuple(
            Case("pnsgd", {"index": (value, Source.ARGUMENT), "records": (1, Source.DEFAULT)}, (result, number), why)
            for value, number in ((value, result._replace(value=value, assumes=())) for value in values)
        ),
    )


def test_several_answers_share_their_parts() -> None:
    answers = tuple(dpcalc.rdp(index=index, **RUN).cases[0] for index in (1, 2, 3, 3))
    whole = Report("rdp", answers)
    assert written(whole) == plain(whole)


@pytest.mark.parametrize("values", [(0, 0.0, -0.0, False), (1, True, 1.0), (math.inf, -math.inf, math.nan, 2.5, None)])
def test_values_that_are_equal_or_not_finite_are_told_apart(values: tuple[Any, ...]) -> None:
    assert written(report(*values)) == plain(report(*values))


def test_what_a_template_is_made_of_may_be_part_of_a_text() -> None:
    """Names, messages, warnings and gates with percent signs, quotes and control characters, one after the other."""
    [result] = report(1).cases[0].results[:1]
    texts = ("100%", "%s", "%%s", "\0", '"name": "x"', "##[x]", "{0}")
    cases = [
        Case(
            "pnsgd", {text: (text, Source.ARGUMENT)}, (result._replace(reference=text), result._replace(value=0.1)),
            (Obstacle(text, "b", "c"),), (Assertion(text, passed, text, None), Assertion("x", passed, 1.5, slack)),
            (text,) if passed else (), (text,),
            check=Check(text, "rdp", "a.yaml", line, 1, Status.FAILED, text, None, 1, (text,)),
        )
        for line, text in enumerate(texts) for passed, slack in ((True, 1.0), (False, math.inf), (True, None))
    ]  # fmt: skip
    found = written(Report("check", tuple(cases)))
    assert json.loads(found) == json.loads(plain(Report("check", tuple(cases))))
    assert found == plain(Report("check", tuple(cases))).replace("##[x]", r"\u0023#[x]")


def test_no_case_and_empty_parts() -> None:
    assert written(Report("check", ())) == plain(Report("check", ()))
    assert json_text({"a": [], "b": {}, "c": ()}, 2) == json.dumps({"a": [], "b": {}, "c": ()}, indent=2)


def test_a_number_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text({"a": math.inf}, 2)


def test_commands_in_shared_parts_are_escaped() -> None:
    why = (Obstacle("a.bound", "##vso[x] \x7f", "::error"),)
    both = Report("rdp", tuple(Case("pnsgd", {}, (), why) for _ in range(2)))
    text = written(both)
    assert "##" not in text
    assert "\x7f" not in text
    assert json.loads(text) == both.to_dict()
