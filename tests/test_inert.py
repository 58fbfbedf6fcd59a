"""Text that others wrote, made harmless: for terminals, and for CI servers that look for commands in it."""

import json
import math
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcalc.checked import Status
from dpcalc.inert import inert, json_text, printable, xml_text

COMMANDS = (
    "##vso[task.complete result=Succeeded;]x", "##[error]x", "###[group]x", "##teamcity[testFailed name='x']",
    "a ##VSO[task.setvariable variable=x]y", "::error::x", "  ::set-output name=a::b", "\t::stop-commands::x",
    "a\n::error::x", "a\n \t::add-mask::x", "a\r::error::x", "a\u2028::error::x", "a\x0b::error::x", "\xa0::error::x",
)  # fmt: skip
STEERING = (
    "\x1b[8m",
    "\x9b2J",
    "\x7f",
    "\x08",
    "\u202e",
    "\u2066",
    "\u200b",
    "\u200d",
    "\ufeff",
    "\u3164",
    "\ufe0f",
    "\ud800",
)


def runs(text: str) -> list[str]:
    """What a server would run: as GitHub, Azure Pipelines and TeamCity find commands in the lines of a log."""
    lines = [line.lstrip() for line in text.splitlines()]
    found = [line for line in lines if line.startswith("::")]
    return found + [line for line in lines if re.search(r"##(vso|teamcity)?\[", line, re.IGNORECASE)]


@pytest.mark.parametrize("text", COMMANDS)
def test_no_command_is_left(text: str) -> None:
    assert runs(text), "this is no command to begin with"
    assert runs(inert(text)) == []
    assert runs(inert(f"\x1b[31m{text}", coloured=True)) == []
    assert runs(f"name: {printable(text)}") == []
    assert runs(json_text({text: [text]}, 2)) == []
    lines = "\n".join(map(printable, text.split("\n")))
    assert runs(xml_text(f"<a>\n{lines}</a>")) == []


@pytest.mark.parametrize("text", STEERING)
def test_what_steers_a_terminal_or_is_not_seen_is_spelled_out(text: str) -> None:
    for found in (printable(f"a{text}b"), inert(f"a{text}b")):
        assert found == f"a{ascii(text)[1:-1]}b"


def test_colours_are_kept_where_they_are_ours() -> None:
    assert inert("\x1b[1;31mFAIL\x1b[0m\x1b[2J", coloured=True) == "\x1b[1;31mFAIL\x1b[0m\\x1b[2J"


@pytest.mark.parametrize(
    "text", ["a: b", "## head\n### [x](y)", "x::y", "größe ε ≤ 1", "#1 [x]", "a\n\tb\n", "C++ a[1]"]
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert inert(text) == text
    assert inert(text, coloured=True) == text


@given(st.text(st.sampled_from('#[]:\\"& \nvso\x7f\x1b<>') | st.characters()))
def test_documents_mean_the_same(text: str) -> None:
    document = json_text({"a": text})
    assert json.loads(document) == {"a": text}
    assert runs(document) == []
    assert inert(document) == document, "what is written is made inert once more"
    legible = "".join(c for c in text if c.isprintable() or c in "\n\t")
    element = ElementTree.Element("a", {"b": legible})
    element.text = legible
    document = xml_text(ElementTree.tostring(element, "us-ascii").decode())
    assert runs(document) == []
    parsed = ElementTree.fromstring(document)
    assert (parsed.attrib["b"], parsed.text or "") == (legible, legible)
    assert inert(document) == document


@given(st.text(st.sampled_from("#[]: \nvso\x1bm0") | st.characters()))
def test_it_is_inert_after_once(text: str) -> None:
    assert runs(inert(text)) == []
    assert inert(inert(text)) == inert(text)
    assert printable(printable(text)) == printable(text)
    assert printable(text).isprintable()


TREES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_characters="#\x7f"))
    | st.sampled_from(Status),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text('ab\n\xe9"'), inner),
    max_leaves=20,
)


@given(TREES)
def test_json_is_indented_as_the_standard_library_does_it(tree: Any) -> None:
    assert json_text(tree, 2) == json.dumps(tree, indent=2)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_json_has_no_infinite_numbers(value: float) -> None:
    for indent in (None, 2):
        with pytest.raises(ValueError, match="JSON"):
            json_text({"a": [value]}, indent)
