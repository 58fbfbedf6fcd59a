"""Generate the types of the API and the pages of the bounds, the errata and the commands; refresh the output shown.

    python docs/build.py

The tests compare the pages in the tree with the output of this program.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import click

import dpcalc
from dpcalc.cli.main import cli
from dpcalc.engine.commands import COMMANDS
from dpcalc.model.algorithm import NAMED
from dpcalc.model.glosses import GLOSSED, gloss_of
from dpcalc.model.parameter import PARAMETERS
from dpcalc.references import SHORT, anchor
from dpcalc.render.several import GIVES
from dpcalc.theorems.record import FAMILIES, Theorem, all_bounds

DOCS = Path(__file__).resolve().parent
METHOD = DOCS / "method.md"
TRANSCRIPTS = (DOCS / "tutorial.md", DOCS.parent / "README.md", *sorted((DOCS / "guides").glob("*.md")))
PICTURE = (
    "multi-epoch --algorithm noisy-gd -n 1000 --epochs 1:10000:log25 --loss logistic --feature-bound 1 -R 0.5 --eta 4 "
    "--sigma 0.05 -d 1e-6 --plot-bounds noisy_gd.composition,noisy_gd.domain"
)
"""What the picture of the README shows."""
MADE = "<!-- Made by `python docs/build.py`; do not edit. -->\n"
SETTINGS = ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "FORCE_COLOR")
"""Variables of the environment that change what commands print."""


def pages() -> dict[str, str]:
    """Return every generated page: path below docs/ -> text."""
    sections = _sections()
    by_path = {f"bounds/{family}.md": family_page(family, sections) for family in FAMILIES}
    by_path["bounds/README.md"] = bounds_page()
    by_path["errata.md"] = errata_page()
    by_path["commands.md"] = commands_page()
    return by_path


# The types of the Python API

STUB = DOCS.parent / "dpcalc" / "__init__.pyi"
_STUB_HEAD = '''\
# Made by `python docs/build.py`; do not edit.
"""Types of the public names; `dpcalc.api` has the functions. A parameter may have one value or several."""

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, TypeAlias

from dpcalc.cards.verify import Verification
'''
_STUB_TYPES = """
Real: TypeAlias = float | Iterable[float] | None
Whole: TypeAlias = int | Iterable[int] | None
Word: TypeAlias = str | Iterable[str] | None

__version__: str
"""


def stub() -> str:
    """Return the stub of the package: every public function with the types of its keywords, and its help."""
    classes, functions = [], []
    for name in dpcalc.__all__:
        value = getattr(dpcalc, name)
        if inspect.isclass(value):
            classes.append(f"from {value.__module__} import {name} as {name}")
        elif inspect.isfunction(value):
            functions.append(_stub_of(name, value))
    return "\n".join((*_STUB_HEAD.splitlines(), *sorted(classes))) + "\n" + _STUB_TYPES + "".join(functions)


def _stub_of(name: str, function: Callable[..., object]) -> str:
    signature, lines, kind = inspect.signature(function), [], None
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and kind not in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL):
            lines.append("*")
        kind = parameter.kind
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(kind, "")
        default = "" if star or parameter.default is parameter.empty else " = ..."
        lines.append(f"{star}{parameter.name}: {parameter.annotation}{default}")
    listed = "".join(f"    {line},\n" for line in lines)
    doc = inspect.cleandoc(function.__doc__ or "").replace("\\", "\\\\")
    text = textwrap.indent(f'"""{doc}\n"""', "    ", lambda line: bool(line.strip()))
    return f"\ndef {name}(\n{listed}) -> {signature.return_annotation}:\n{text}\n"


# The bounds


def bounds_page() -> str:
    """Return the table of all bounds."""
    lines = [
        "# Bounds",
        "",
        "Every bound that dpcalc evaluates, with its statement, assumptions, source and proof, and the errors of its",
        "paper. `upper` and `exact` are guarantees. `lower`, `asymptotic`, `published` (the statement of a paper that",
        "is wrong or superseded) and `heuristic` (plausible, and proved of a simpler run alone) are shown for",
        "comparison: they are never the best bound, are never solved with, and never pass a gate. `dpcalc explain ID`",
        "prints the same, with the numbers of a run if one is described.",
        "",
        *_certified(),
    ]
    for family, bounds in _families().items():
        lines += ["", f"## {_title(family)}", ""]
        lines += ["| bound | kind | `--certify` | gives | runs | |", "|---|---|---|---|---|---|"]
        lines += [
            f"| [`{b.id}`]({family}.md#{anchor(b.id)}) | {b.kind} | {'yes' if b.certifiable else ''} | "
            f"{GIVES[b.notion]} | {', '.join(b.algorithms)} | {_cell(b.title)} |"
            for b in bounds
        ]
    return MADE + "\n" + "\n".join(lines) + "\n"


def _certified() -> list[str]:
    """Return lines that count the guarantees `--certify` has a definition of."""
    lines, complete = [], True
    for what, costs in (("on privacy", False), ("on what it costs", True)):
        guarantees = [b for b in all_bounds().values() if b.guarantee and b.price == costs]
        without = sum(not b.certifiable for b in guarantees)
        complete = complete and not without
        lines.append(
            f"`--certify` has a definition of all {len(guarantees)} guarantees {what}."
            if not without
            else f"`--certify` has no definition of {without} of the {len(guarantees)} guarantees {what}."
        )
    return lines if complete else [*lines, "The page of each one without a definition says why."]


def family_page(family: str, sections: dict[str, str]) -> str:
    """Return the page of a family; ``sections`` maps a bound to the section of the method that proves it."""
    parts = [_bound(bound, sections[bound.id]) for bound in _families()[family]]
    return MADE + f"\n# {_title(family)}\n\n[All bounds](README.md)\n\n" + "\n".join(parts)


def _bound(bound: Theorem, section: str) -> str:
    needed = [name for name in bound.parameters if name not in bound.optional]
    known = [name for name in bound.parameters if name in bound.optional]
    facts = [
        ("kind", f"{bound.kind}, {'a guarantee' if bound.guarantee else 'for comparison: never a guarantee'}"),
        ("gives", GIVES[bound.notion]),
        ("runs", ", ".join(bound.algorithms)),
        ("neighbours", _neighbours(bound)),
        ("needs", ", ".join(f"`{name}`" for name in needed)),
        ("if known", ", ".join(f"`{name}`" for name in known)),
        ("slack", bound.slack),
        ("`--certify`", bound.certifying),
        ("source", f"{SHORT[bound.reference]}: {bound.locator}"),
        ("proof or pointer", f"[Method: {section}](../method.md#{anchor(section)})"),
    ]
    lines = [f"## {bound.id}", "", f"**{bound.title}.** {_prose(bound.statement)}", "", f"    {bound.formula}", ""]
    lines += [
        "| | |",
        "|---|---|",
        *(f"| {name} | {_cell(text)} |" for name, text in facts if text),
        "",
        "Assumes:",
        "",
    ]
    lines += [f"* {_prose(text)}" for text in bound.assumes]
    lines += [f"* `{requirement.text}` (checked)" for requirement in bound.conditions]
    lines += [f"* {_prose(demand.text)} (to be promised, else no guarantee)" for demand in bound.promises]
    told = (("Erratum", bound.erratum), ("Note", bound.caution))
    lines += [line for title, text in told if text for line in ("", f"**{title}.** {_prose(text)}")]
    return "\n".join(lines) + "\n"


def _neighbours(bound: Theorem) -> str:
    """Return how the neighbouring data sets of the bound differ."""
    if "chain" in bound.algorithms:
        return "two runs whose maps are `shift` apart"
    if "repeated" in bound.algorithms:
        return "those of the pass that is repeated"
    if bound.price:
        return "one record replaced"
    return "one record replaced by another, or by a null record (zero gradient)"


# The errata


def errata_page() -> str:
    """Return the errata by paper, from the records of bounds, and then at length, from the method document."""
    lines = [
        "# Errata",
        "",
        "Errors and loose statements in the papers that dpcalc rests on. Where a paper is wrong, the bound is the",
        "corrected statement.",
        "",
        "## By paper",
    ]
    with_errata = [bound for bound in all_bounds().values() if bound.erratum]
    for key, name in SHORT.items():
        of_paper = [bound for bound in with_errata if bound.reference == key]
        if not of_paper:
            continue
        lines += ["", f"### {name if key != 'dpcalc' else 'Papers that bounds of dpcalc improve on'}", ""]
        for text in dict.fromkeys(bound.erratum for bound in of_paper):
            where = [_link(bound) for bound in of_paper if bound.erratum == text]
            lines.append(f"* {_prose(text)} ({', '.join(where)})")
    lines += ["", "## At length"]
    for section, blocks in _errata_in_method():
        lines += ["", f"### [{section}](method.md#{anchor(section)})", "", "\n\n".join(blocks)]
    return MADE + "\n" + "\n".join(lines) + "\n"


def _link(bound: Theorem) -> str:
    return f"[`{bound.id}`](bounds/{bound.family}.md#{anchor(bound.id)})"


def _errata_in_method() -> Iterator[tuple[str, list[str]]]:
    """Yield each section of the method document that has errata, with those paragraphs and tables."""
    for part in METHOD.read_text(encoding="utf-8").split("\n## ")[1:]:
        title, _, body = part.partition("\n")
        blocks = [block.strip("\n") for block in re.split(r"\n\s*\n", body) if block.strip()]
        if title.startswith("Errata"):
            yield title, blocks
            continue
        pairs = itertools.pairwise(["", *blocks])
        chosen = [
            block
            for before, block in pairs
            if re.match(r"\*+Errata", block) or (block.startswith("|") and re.match(r"\*+Errata", before))
        ]
        if chosen:
            yield title, chosen


# The commands


def commands_page() -> str:
    """Return the reference of the command line."""
    context = click.Context(cli, info_name="dpcalc", **cli.context_settings)
    commands = {name: command for name in cli.list_commands(context) if (command := cli.get_command(context, name))}
    options = {name: _options(command) for name, command in commands.items()}
    questions = [rows for rows in options.values() if "--assert" in rows]
    shared = {key: row for key, row in questions[0].items() if all(rows.get(key) == row for rows in questions)}
    shared = {key: row for key, row in shared.items() if not _is_parameter(key)}
    lines = [
        "# Commands",
        "",
        "A parameter has one name: `--noise-std` on the command line, `noise_std` in recipes, Python and JSON. Numeric",
        "ones take a value, a list `1,2,4`, a range `1:10:0.5` or a log range `1:1000:log7`; several give every",
        "combination. Numbers may be written `1e-5`, `1/60000`, `2^-20`, `1_000`, `1%`, whole ones also `50k` and",
        "`50,000`.",
        "",
        "Exit codes: 0 ok, 1 a gate failed, 2 usage, 3 no valid bound or infeasible, 4 internal error,",
        "130 interrupted, 143 terminated.",
        "",
        "| command | |",
        "|---|---|",
    ]
    lines += [f"| [`{name}`](#{anchor(name)}) | {_cell(_first(command))} |" for name, command in commands.items()]
    for name, command in commands.items():
        rows = options[name]
        own = {key: row for key, row in rows.items() if shared.get(key) != row and not _is_told(key, row[0])}
        lines += ["", f"## {name}", "", f"    {_usage(context, name, command)}", "", *_help(command)]
        parameters = [key for key in rows if _is_parameter(key) and "--assert" in rows]
        if parameters:
            chosen = COMMANDS.get(name, COMMANDS["compare"]).algorithms
            lines += ["", "* [Parameters](#parameters): " + ", ".join(f"`{key}`" for key in parameters)]
            lines += [f"* Algorithms: {', '.join(f'`{word}`' for word in chosen)}"] if "--algorithm" in rows else []
            lines += ["* [Options of every question](#options-of-every-question)"]
        else:
            own = rows
        if own:
            lines += ["", *_table(own)]
    lines += ["", "## Options of every question", "", *_table(shared), "", "## Parameters", "", *_parameters()]
    lines += ["", "## Words", "", "What each word stands for that a parameter may be.", "", *_words()]
    return MADE + "\n" + "\n".join(lines) + "\n"


def _options(command: click.Command) -> dict[str, tuple[str, str]]:
    """Return the command's options: long flag -> (all flags with their metavar, help)."""
    context, options = click.Context(command), {}
    for option in command.params:
        if isinstance(option, click.Option):
            takes = "" if option.is_flag or option.count else " " + option.make_metavar(context)
            default = f" Default: {option.default}." if option.show_default else ""
            flags = ", ".join((*option.opts, *option.secondary_opts))
            options[option.opts[0]] = (flags + takes, (option.help or "") + default)
    return options


def _is_parameter(flag: str) -> bool:
    return flag.removeprefix("--").replace("-", "_") in PARAMETERS


def _is_told(flag: str, flags: str) -> bool:
    """Return whether the table of parameters has the option, under each of its flags."""
    if not _is_parameter(flag):
        return False
    parameter = PARAMETERS[flag.removeprefix("--").replace("-", "_")]
    return {*re.findall(r"(?<!\S)--?[a-z][\w-]*", flags)} <= {parameter.flag, *parameter.aliases}


def _usage(context: click.Context, name: str, command: click.Command) -> str:
    return f"dpcalc {name} " + " ".join(command.collect_usage_pieces(click.Context(command, context, name)))


def _first(command: click.Command) -> str:
    return " ".join(_paragraphs(command)[0].split())


def _paragraphs(command: click.Command) -> list[str]:
    return inspect.cleandoc(command.help or "").split("\n\n")


def _help(command: click.Command) -> list[str]:
    """Return the help text as Markdown; a verbatim paragraph becomes a block of code."""
    lines: list[str] = []
    for paragraph in _paragraphs(command):
        if paragraph.startswith("\b"):
            lines += ["```text", *paragraph.removeprefix("\b").strip("\n").splitlines(), "```", ""]
        else:
            lines += [_prose(" ".join(paragraph.split())), ""]
    return lines[:-1]


def _table(rows: dict[str, tuple[str, str]]) -> list[str]:
    return ["| option | |", "|---|---|", *(f"| {_code(flags)} | {_cell(text)} |" for flags, text in rows.values())]


def _parameters() -> list[str]:
    takers = {name: [c for c in COMMANDS if c != "compare" and name in COMMANDS[c].parameters] for name in PARAMETERS}
    lines = ["| flag | symbol | meaning | values | commands |", "|---|---|---|---|---|"]
    for name, symbol in PARAMETERS.items():
        commands = ", ".join(takers[name]) or "all"
        lines.append(
            f"| {_code(', '.join((symbol.flag, *symbol.aliases)))} | {symbol.symbol} | {_cell(symbol.help)} | "
            f"{_cell(symbol.domain)} | {commands} |"
        )
    return lines


def _words() -> list[str]:
    lines = ["| flag | word | stands for |", "|---|---|---|"]
    for name, glossed in GLOSSED.items():
        words = (*NAMED, "all") if name == "algorithm" else PARAMETERS[name].choices
        for word in words:
            gloss = gloss_of(word) if name == "algorithm" else glossed.words[word]
            lines.append(f"| {_code(PARAMETERS[name].flag)} | {_code(word)} | {_cell(_prose(gloss))} |")
    return lines


# The tutorial

_OURS = f'python() {{ "{sys.executable}" "$@"; }}; dpcalc() {{ python -m dpcalc "$@"; }}'


def transcript(text: str, folder: Path) -> str:
    """Return the page with the current output of its console commands, run in order in ``folder``.

    A block of another language whose first line is ``# name`` with a suffix is written to the file of that name first.
    """

    def block(match: re.Match[str]) -> str:
        language, body = match[1], match[2]
        named = re.match(r"# ([\w./-]+\.\w+)\n", body)
        if named and language != "console":
            path = folder / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body, encoding="utf-8")
        if language != "console":
            return match[0]
        commands = [line for line in body.splitlines() if line.startswith("$ ")]
        return "```console\n" + "".join(f"{command}\n{_printed(command[2:], folder)}" for command in commands) + "```"

    return re.sub(r"^```(\w*)\n(.*?)^```", block, text, flags=re.DOTALL | re.MULTILINE)


def _printed(command: str, folder: Path) -> str:
    """Return the output of a shell command, followed by its exit code if that is not 0."""
    path = os.pathsep.join(filter(None, (str(DOCS.parent), os.environ.get("PYTHONPATH"))))
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f'{_OURS}\n{command}'],
        cwd=folder, env={**environment, "PYTHONPATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False,
    )  # fmt: skip
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{command}\n{done.stdout}")
    return done.stdout + ("" if done.returncode == 0 else f"[exit code {done.returncode}]\n")


# What the pages share


def _families() -> dict[str, list[Theorem]]:
    bounds: dict[str, list[Theorem]] = {family: [] for family in FAMILIES}
    for bound in all_bounds().values():
        bounds[bound.family].append(bound)
    return bounds


def _title(family: str) -> str:
    """Return the first sentence of the family's first module."""
    module = importlib.import_module(f"dpcalc.theorems.{FAMILIES[family][0]}")
    text = " ".join((module.__doc__ or "").split("\n\n")[0].split())
    return re.split(r"\.(?=\s+[^\d\s]|$)", text)[0]


def _sections() -> dict[str, str]:
    """Return the section of the method document that first names each bound."""
    found: dict[str, str] = {}
    for part in METHOD.read_text(encoding="utf-8").split("\n## ")[1:]:
        title, _, body = part.partition("\n")
        for id in re.findall(r"`([a-z_]+\.[a-z_]+)`", body):
            found.setdefault(id, title)
    return found


def _prose(text: str) -> str:
    """Return text in which nothing is mark-up but what is in backquotes."""
    text = text.replace("``", "`")
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*_<|\\])", r"\\\1", part) for part in parts)


def _cell(text: str) -> str:
    """Return text as one cell of a table; links and code in it are kept."""
    return text.replace("|", "\\|")


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def main() -> None:
    """Write the stub and every page, and refresh what the tutorial, the guides and the README show."""
    for name, text in pages().items():
        path = DOCS / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in set((DOCS / "bounds").glob("*.md")) - {DOCS / name for name in pages()}:
        path.unlink()
    STUB.write_text(stub(), encoding="utf-8")
    for shown in TRANSCRIPTS:
        with tempfile.TemporaryDirectory() as folder:
            shown.write_text(transcript(shown.read_text(encoding="utf-8"), Path(folder)), encoding="utf-8")
    _printed(f"dpcalc {PICTURE} --plot {DOCS / 'hidden.svg'}", DOCS)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print((__doc__ or "").strip())
        sys.exit(0 if sys.argv[1] in ("-h", "--help") else 2)
    main()
