"""What travels, and which answers are refused."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from dpcalc.cluster.calls import OtherVersions, answer_of, call, name_of, refuse_other_versions, versions
from dpcalc.errors import SpecError, WorkerLost

NAME = "tests.cluster.test_calls:shout"


def shout(text: str) -> str:
    if text == "cough":
        raise ValueError("no\nvoice")
    return text.upper() + "\nend"


def test_an_answer_comes_back() -> None:
    assert name_of(shout) == NAME
    assert answer_of(NAME, "a", call(NAME, "a")) == "A\nend"


def test_an_error_travels_as_words() -> None:
    with pytest.raises(WorkerLost, match="ValueError: no voice"):
        answer_of(NAME, "cough", call(NAME, "cough"))


@pytest.mark.parametrize("name", ["os:getcwd", "dpcalc:__doc__.upper", "dpcalc.version", "tests.cluster:absent"])
def test_other_functions_are_not_called(name: str) -> None:
    with pytest.raises(WorkerLost, match="there is no"):
        answer_of(name, "", call(name, ""))


def test_a_function_without_a_name_is_not_sent() -> None:
    with pytest.raises(SpecError):
        name_of(lambda text: text)
    with pytest.raises(SpecError):
        name_of(json.dumps)  # type: ignore[arg-type]


def _with(**changes: Any) -> Callable[[str], str]:
    def changed(text: str) -> str:
        head, _, rest = text.partition("\n")
        return json.dumps({**json.loads(head), **changes}) + "\n" + rest

    return changed


@pytest.mark.parametrize(
    "change",
    [
        lambda _: None, lambda _: b"", lambda _: "", lambda text: text[1:], lambda text: text + " ", lambda _: "[]\n",
        lambda text: text.replace("A", "B"), lambda _: call(NAME, "b"), lambda text: "null\n" + text,
        _with(schema="dpcalc.call/2"), _with(asked="0" * 64), _with(sha256="0" * 64), _with(error=7), _with(more=1),
        _with(versions=None), _with(versions={}), lambda _: "[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_not_the_answer_is_refused(change: Callable[[str], Any]) -> None:
    with pytest.raises(WorkerLost) as caught:
        answer_of(NAME, "a", change(call(NAME, "a")))
    assert caught.value.exit_code == 4


def test_other_versions_are_refused_and_named() -> None:
    here = json.loads(versions())
    refuse_other_versions(dict(here))
    assert {"dpcalc", "numpy", "scipy"} <= set(here)
    with pytest.raises(OtherVersions, match=r"numpy 0\.1, here "):
        answer_of(NAME, "a", _with(versions={**here, "numpy": "0.1"})(call(NAME, "a")))
    with pytest.raises(OtherVersions, match="extra 1, here None"):
        refuse_other_versions({**here, "extra": "1"})
