"""Help: every option once, every word glossed, pages that fit a screen, and examples that run."""

import itertools
import json
import re
import shlex
import textwrap
from pathlib import Path
from typing import Any

import click
import pytest

from dpcalc.cli.commands.help import TOPICS, page
from dpcalc.cli.help.layout import ROWS, default_of, grouped
from dpcalc.cli.help.layout import examples as examples_of
from dpcalc.cli.main import COMMANDS, cli, main
from dpcalc.model.algorithm import NAMED
from dpcalc.model.glosses import GLOSSED, gloss_of
from dpcalc.model.parameter import PARAMETERS
from dpcalc.render.several import describe
from dpcalc.theorems.record import all_bounds

PARENT = click.Context(cli, info_name="dpcalc", help_option_names=["-h", "--help"])
PAGES = {name: page(name) for name in (*COMMANDS, *TOPICS, "start")}


def command(name: str) -> click.Command:
    found = cli.get_command(PARENT, name)
    assert found is not None
    return found


def options(name: str) -> dict[str, click.Option]:
    return {str(p.name): p for p in command(name).params if isinstance(p, click.Option)}


def ended(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    printed = capsys.readouterr()
    return int(stop.value.code or 0), printed.out, printed.err


def whole(name: str) -> str:
    return command(name).get_help(click.Context(command(name), PARENT, info_name=name))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_whole_help_has_every_option_once(name: str) -> None:
    text = whole(name)
    assert max(map(len, text.splitlines())) <= 80
    listed = re.split(r"^(?:Options|Most used):$", text, flags=re.MULTILINE)[1]
    heads = re.findall(r"^  (-.*?)(?:  |$)", listed, re.MULTILINE)
    found = [flag for head in heads for flag in re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", head)]
    flags = [flag for option in options(name).values() for flag in (*option.opts, *option.secondary_opts)]
    assert sorted(found) == sorted(["-h", "--help", "--help-all", *flags])


@pytest.mark.parametrize("name", [*COMMANDS, ""])
def test_help_is_one_screen_of_forty_rows(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ended(capsys, f"{name} --help")
    assert code == 0
    assert len(out.splitlines()) <= ROWS
    assert max(map(len, out.splitlines())) <= 80
    if name:
        assert len(re.findall(r"^    dpcalc ", out, re.MULTILINE)) >= min(3, len(examples_of(command(name).help or "")))
        assert ended(capsys, f"{name} --help-all")[1] == whole(name) + "\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_usual_comes_first(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    groups = grouped(command(name), list(options(name)))
    assert sorted(itertools.chain(*groups.values())) == sorted(options(name))
    first = groups.get("Most used", [])
    out = ended(capsys, f"{name} --help")[1]
    for flag in (options(name)[parameter].opts[0] for parameter in first[:6]):
        assert re.search(rf"^  (-\w, |--\S+, )?{flag}\b", out, re.MULTILINE), flag
    assert name in ("explain", "cite", "bounds", "audit") or not first or {"epsilon", "delta"} <= set(first)


def test_every_command_is_on_the_first_page(capsys: pytest.CaptureFixture[str]) -> None:
    out = ended(capsys, "--help")[1]
    assert all(re.search(rf"(^  |[:,] ){name}\b", out, re.MULTILINE) for name in COMMANDS)


def test_every_word_is_glossed_in_a_line() -> None:
    assert set(GLOSSED) == {name for name, parameter in PARAMETERS.items() if parameter.choices}
    for name, glossed in GLOSSED.items():
        if name == "algorithm":
            assert set(glossed.words) <= {*NAMED, "all"}
            assert all(len(f"      {'dp-sgd-gradient'}  {gloss_of(word)}") <= 80 for word in NAMED)
        else:
            assert list(glossed.words) == list(PARAMETERS[name].choices)


@pytest.mark.parametrize("topic", [*TOPICS, "start"])
def test_a_page_fits_the_screen(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ended(capsys, "help" if topic == "start" else f"help {topic}")
    assert code == 0
    assert len(out.splitlines()) <= 24
    assert max(map(len, out.splitlines())) <= 80
    flags = {flag for name in COMMANDS for option in options(name).values() for flag in option.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", out)) <= {*flags, "--help"}


def test_what_a_topic_lists_is_what_there_is() -> None:
    for topic, name in (("adjacency", "adjacency"), ("sampling", "sampling"), ("loss-class", "loss_class")):
        assert all(re.search(rf"\b{word}\b", PAGES[topic]) for word in PARAMETERS[name].choices)


def test_alone_it_says_what_to_type_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(capsys, "") == (2, "", PAGES["start"])


def test_help_of_a_command_is_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(capsys, "help rdp")[1] == ended(capsys, "rdp --help")[1]


def test_help_finds_what_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(capsys, "help Poisson")[1] == PAGES["sampling"]
    assert "--eta, --step-size NUM" in ended(capsys, "help lr")[1]
    assert "More: dpcalc help noise" in ended(capsys, "help noise_multiplier")[1]
    assert ended(capsys, "help gdp")[1].startswith("## Notions\n")
    assert "did you mean `dpcalc help sampling`?" in ended(capsys, "help smapling")[2]


@pytest.mark.quick  # these run against the wheel too, which has no docs/ beside it
def test_the_method_and_its_sections_are_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    whole = (Path(__file__).resolve().parents[2] / "docs" / "method.md").read_text(encoding="utf-8")
    assert ended(capsys, "help method") == (0, whole, "")
    section = ended(capsys, "help method#sampled-steps")[1]
    assert section.startswith("## Sampled steps, every iterate public\n")
    assert section in whole
    assert "\n## " not in section
    assert "the sections are setting, notions," in ended(capsys, "help method#nothing")[2]


@pytest.mark.quick
def test_the_note_is_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    whole = (Path(__file__).resolve().parents[2] / "docs" / "note" / "note.md").read_text(encoding="utf-8")
    assert ended(capsys, "help note") == (0, whole, "")


def test_every_bound_names_the_section_with_its_proof() -> None:
    for bound in all_bounds().values():
        [proof] = re.findall(r"^proof +`dpcalc help (.*)`$", describe(bound), re.MULTILINE)
        assert f"`{bound.id}`" in page(proof)


# Examples


def lines_of(rows: list[str]) -> str:
    """Return the command of an example as one line."""
    text = "\n".join(rows)
    return re.sub(r" \\\n +", " ", text[re.search(r"^ +dpcalc [a-z-]+( |$)", text, re.MULTILINE).start() :]).strip()  # type: ignore[union-attr]


def examples(name: str) -> list[str]:
    """Return the command lines of a page, in order."""
    if name in COMMANDS:
        return [lines_of(rows) for rows in examples_of(command(name).help or "")]
    joined = re.sub(r" \\\n +", " ", PAGES[name])
    return [line.strip() for line in joined.splitlines() if re.match(r" +dpcalc [a-z-]+( |$)", line)]


def files(text: str) -> dict[str, str]:
    """Return the files that a page shows."""
    found = re.findall(
        r"^ +\w[^\n]* (\w+\.(?:yaml|csv|json|txt)):\n((?: {4,}(?! *dpcalc [a-z]).*\n)+)", text, re.MULTILINE
    )
    return {name: textwrap.dedent(body) for name, body in found}


SLOW = (
    "1:1000:log7",
    "--replicas",
    "0.25:4:log5",
    "--tune",
    "--reference",
    "--release epoch",
    "pnsgd,shuffled",
    "dp-sgd-gradient",
    "spent.yaml --solve",
    "--solve window",
    "--noise laplace -e",
    "dpcalc verify",
)
"""What the examples have in common that take several seconds."""


def sequences() -> list[Any]:
    """Return the pages whose examples are typed in their order, those that take long as a campaign."""
    pages = [name for name in PAGES if examples(name)]
    quick = [pytest.param(name, False) for name in pages]
    return [*quick, *(pytest.param(name, True, marks=pytest.mark.campaign) for name in pages)]


def test_pages_have_examples() -> None:
    assert sum(len(examples(name)) for name in PAGES) > 60
    assert all(examples(name) or name in ("find", "start") for name in PAGES)


WARNING = ("init", "train", "merge", "check", "evaluate", "predict", "account", "convert")
"""Commands with examples that warn."""


@pytest.mark.few(8)
@pytest.mark.parametrize(("name", "every"), sequences())
def test_examples_work_as_printed(
    name: str, every: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file, text in files(whole(name) if name in COMMANDS else PAGES[name]).items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    for line in examples(name):
        if every or not any(part in line for part in SLOW):
            typed = re.split(r" > |   #", line.removeprefix("dpcalc "))[0]
            code, out, err = ended(capsys, typed)
            assert code == 0, (line, err)
            assert not err or name in WARNING, (line, err)
            assert out.strip() or " -o " in line, line


# Defaults

FIRST = {
    "rdp": "-n 100 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6",
    "shifted": "--steps 10 --shift 0.1 --contraction 0.9 --eta 0.1 --sigma 2 -d 1e-6",
    "unlearn": "--start-distance 0.1 --clean-steps 10 --contraction 0.9 --eta 0.1 --sigma 2 -d 1e-6",
    "hockey-stick": "-n 100 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -D 1 -e 1",
    "shuffle": "-n 100 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -D 1 -d 1e-6",
    "multi-epoch": "-n 100 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6 --epochs 2",
    "online": "-n 100 -i 1 -L 1 --smoothness 1 --eta 0.1 -D 1 --c1 2 --c2 2 --decay-exponent 1.5 -e 1",
    "dp-sgd": "-n 100 --batch-size 10 --epochs 1 --noise-multiplier 2 --sampling poisson -d 1e-6",
}


@pytest.mark.parametrize("name", FIRST)
def test_defaults_that_help_shows_are_those_there_are(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Typing a default changes no answer."""
    plain = json.loads(ended(capsys, f"{name} {FIRST[name]} --json")[1])["cases"][0]["results"]
    same = []
    for parameter, option in options(name).items():
        default = default_of(name, option)
        if default and parameter in PARAMETERS:
            code, out, err = ended(capsys, f"{name} {FIRST[name]} --json {PARAMETERS[parameter].flag} {default}")
            if code:
                assert "takes no" in err or parameter in ("power", "tube"), err  # of losses by name alone
                continue
            assert json.loads(out)["cases"][0]["results"] == plain, parameter
            same.append(parameter)
    assert len(same) >= (1 if name == "shifted" else 2)
