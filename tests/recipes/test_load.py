"""Reading YAML that need not be trusted: what is refused, where it says so, and that nothing else can happen."""

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dpcalc.files.documents import Items, Node, Rules, Scalar, Table, parse_json, parse_toml, parse_yaml
from dpcalc.files.place import FileError
from dpcalc.files.reading import DOCUMENT_BYTES
from dpcalc.recipes.reading.read import SYNTAX, read
from dpcalc.recipes.reading.recipe import Malformed

BOMB = "a: &a [x, x]\n" + "".join(f"k{k}: &{chr(98 + k)} [*{chr(97 + k)}, *{chr(97 + k)}]\n" for k in range(20))

REFUSED = [
    (BOMB, ":1:4: anchors and aliases are not read"),
    ("a: *b\n", ":1:4: anchors and aliases are not read"),
    ("a: !!python/object/apply:os.system [echo]\n", ":1:4: the tag 'tag:yaml.org,2002:python/object/apply:os.system'"),
    ("a: !!int 3\n", ":1:4: the tag"),
    ("a: ! 3\nb: 1\nb: 2\n", "b' is given twice"),
    ("a: 1\nb: {c: 1,\n  c: 2}\n", ":3:3: 'c' is given twice, first in line 2"),
    ("[a, b]: 1\n", ":1:1: a key that is not plain text"),
    ("? {a: 1}\n: 2\n", ":1:3: a key that is not plain text"),
    ("a: 1\n---\nb: 2\n", ":2:1: a second document"),
    ("[" * 100_000, "nested more than 32 deep"),
    ("- " * 40 + "x", ":1:65: nested more than 32 deep"),
    ("{a: " * 40, "nested more than 32 deep"),
    ("a:\n\t- b\n", ":2:1: not valid YAML"),
    ("a: [1, 2\n", "not valid YAML"),
    ("a: 'b\n", "not valid YAML"),
    ("a: \x07\n", "not valid YAML"),
    ("a: 1 # b\u2028c: 2\n", ":1:9: the character '\\u2028'"),  # the comment seems to go on
    ("a: 1\r\n# b\rc: 2\n", ":2:4: the character '\\r'"),
    ("a: 1 # \u202e\n", ":1:8: the character '\\u202e'"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[message[-40:] for _, message in REFUSED])
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(FileError) as caught:
        parse_yaml("r.yaml", text.encode(), SYNTAX)
    assert caught.value.message.startswith("r.yaml:")
    assert message in caught.value.message


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(FileError, match=r"^r\.yaml:2:4: not UTF-8"):
        parse_yaml("r.yaml", b"a: 1\nb: \xff\n", SYNTAX)


@pytest.mark.parametrize("word", ["1e-5", "1:30", "no", "on", "0x10", "010", "2026-11-21", ".5", "1_000", "=", "y"])
def test_every_scalar_is_the_text_typed(word: str) -> None:
    node = parse_yaml("r.yaml", f"{word}: {word}\n".encode(), SYNTAX)
    assert isinstance(node, Table)
    value = node.fields[word].node
    assert isinstance(value, Scalar)
    assert (value.text, value.plain) == (word, True)
    assert value.place == ("r.yaml", 1, len(word) + 3)


def test_quotes_make_a_null_a_word() -> None:
    node = parse_yaml("r.yaml", b"a: ~\nb: '~'\nc: null\nd: \"null\"\n", SYNTAX)
    assert isinstance(node, Table)
    assert [f.node.null for f in node.fields.values() if isinstance(f.node, Scalar)] == [True, False, True, False]


def test_a_project_s_own_file_may_have_anchors_and_tags() -> None:
    node = parse_yaml("c.yaml", b"a: &x [1, !t 2]\nb: *x\nc: !!float 3\n", Rules(foreign=True))
    assert isinstance(node, Table)
    assert node.fields["b"].node is node.fields["a"].node
    assert [f.node.tagged for f in node.fields.values() if isinstance(f.node, Scalar)] == [True]
    with pytest.raises(FileError, match=r"^c\.yaml:1:9: an alias names nothing"):
        parse_yaml("c.yaml", b"a: &a [ *a ]", Rules(foreign=True))


def test_a_long_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    with path.open("wb") as stream:
        stream.truncate(100 << 20)
    with pytest.raises(Malformed, match=f"more than {DOCUMENT_BYTES} bytes"):
        read(str(path))


def test_a_long_list_is_refused_before_it_is_read_to_its_end() -> None:
    assert parse_yaml("r.yaml", b"a: [" + b"1," * 9_999 + b"1]", SYNTAX) is not None
    with pytest.raises(FileError, match=r"^r\.yaml:1:4: a list of more than 10000 values"):
        parse_yaml("r.yaml", b"a: [" + b"1," * 10_500 + b"}", SYNTAX)


@pytest.mark.parametrize("rules", [SYNTAX, Rules(foreign=True)], ids=["recipe", "configuration"])
def test_a_file_of_very_many_values_is_refused_before_it_is_read_to_its_end(rules: Rules) -> None:
    text = b"".join(b"a%d: [%s]\n" % (n, b"1," * 9_000) for n in range(30))
    with pytest.raises(FileError, match=r"^r\.yaml:23:\d+: more than 200000 values"):
        parse_yaml("r.yaml", text + b"}", rules)


@pytest.mark.parametrize("parse", [parse_json, parse_toml])
def test_a_configuration_of_very_many_values_is_refused(parse: Any) -> None:
    head = b"a = " if parse is parse_toml else b""
    assert len(parse("c", head + b"[" + b",\n".join([b"1"] * 100_000) + b"]")) == 2
    with pytest.raises(FileError, match="more than 200000 values"):
        parse("c", head + b"[" + b",\n".join([b"1"] * 200_000) + b"]")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing.yaml", "No such file"),
        (".", "is a folder"),
        ("a\0b", "is not a path"),
        ("pipe", "is not a regular"),
    ],
)
def test_what_is_no_file(name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")  # nobody writes to it: reading would wait for ever
    with pytest.raises(Malformed, match=message):
        read(name)


def plain(node: Node | None) -> Any:
    """Return a node as what YAML's base loader makes: text, lists and mappings."""
    if isinstance(node, Table):
        return {name: plain(field.node) for name, field in node.fields.items()}
    return [plain(item) for item in node.items] if isinstance(node, Items) else node.text if node else None


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufeff"), max_size=8)
DOCUMENT = st.dictionaries(TEXT, st.recursive(TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner)))


@given(DOCUMENT)
def test_what_was_written_is_read(document: dict[str, Any]) -> None:
    text = yaml.dump(document, Dumper=_Plain, allow_unicode=True)
    assert plain(parse_yaml("r.yaml", text.encode(), SYNTAX)) == document


class _Plain(yaml.SafeDumper):
    """Without aliases, which are refused."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


@given(st.binary(max_size=200) | st.text("{}[]:,-&*!|>'\"%@`#\n\t ab01?", max_size=60).map(str.encode))
def test_anything_is_read_or_refused(raw: bytes) -> None:
    for foreign in (False, True):
        with contextlib.suppress(FileError):
            parse_yaml("r.yaml", raw, Rules(foreign=foreign))


LINES = """\
dpcalc: recipe/1
defaults: {records: 10}
defaults: {assert: [epsilon <= 1]}
cases:
  a: {command: rdp}
  a:
    noise_std: 1e0
    matrix: {records: [1, 2]}
    matrix: {noise_std: 1:4:log3}
    include: {}
    exclude: [{records: 1}]
    assert: epsilon <= cases.a.epsilon
    expect: {error: infeasible}
    skip: no
    from: x.json#/a
    command: [rdp]
    order: [2, 3]
  'b c': 1
    delta: 010
""".splitlines()


@given(st.lists(st.sampled_from(LINES), max_size=12))
def test_any_lines_are_a_recipe_or_refused(lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "r.yaml")
        path.write_text("\n".join(lines), encoding="utf-8")
        with contextlib.suppress(Malformed):
            assert read(str(path)).entries
