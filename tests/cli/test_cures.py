"""Every cure that is printed works: typed to the letter it leads to an answer in at most two steps."""

import ast
import re
import shlex
from pathlib import Path

import click
import pytest

from dpcalc.cli.main import cli, main
from dpcalc.errors import DpcalcError
from dpcalc.model.parameter import PARAMETERS, spellings
from tests.cli.sessions import FOLDER, read


def ended(capsys: pytest.CaptureFixture[str], words: list[str]) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stop:
        main(words)
    return int(stop.value.code or 0), capsys.readouterr().err


_NAMES = {
    name: (parameter.flag, *parameter.aliases, *spellings(parameter.name))
    for parameter in PARAMETERS.values()
    for name in (parameter.flag, *parameter.aliases)
}
"""Every flag of a parameter -> all of its spellings."""


def without(words: list[str], flag: str) -> list[str]:
    """Return a command line without a parameter and its value."""
    kept, skipped = [], False
    for word in words:
        bare = re.sub(r"=.*", "", word)
        if bare in _NAMES.get(flag, (flag,)):
            skipped = "=" not in word
        elif skipped:
            skipped = False
        else:
            kept.append(word)
    return kept


def followed(words: list[str], error: str) -> list[str] | None:
    """Return the command line with what a hint says, to the letter; None where it says nothing to type."""
    said, _, hint = error.partition("hint: ")
    hint = hint.split("; the nearest")[0].strip()
    if meant := re.search(r"Type: `dpcalc ([^`]*)`", hint) or re.match(r"`dpcalc (find [^`]*)`", hint):
        return shlex.split(meant[1])
    if meant := re.match(r"did you mean `dpcalc ([^`]*)`", hint):
        return [*shlex.split(meant[1]), *words[1:]]
    if meant := re.match(r"did you mean (--[\w-]+)(?: ([\w.-]+))?( or |\?)", hint):
        wrong = re.search(r"No such option '(--?[\w-]+)'", said)
        flag = wrong[1] if wrong else "--noise"
        kept = words if wrong else without(words, flag)
        new = [meant[1], *([meant[2]] if meant[2] else [])]
        return [part for word in kept for part in (new if word == flag else [word])] if wrong else [*kept, *new]
    if (meant := re.match(r"write ([\w.]+);", hint)) and (wrong := re.search(r": '([^']+)' may be", said)):
        return [meant[1] if word == wrong[1] else word for word in words]
    if (meant := re.match(r"write .* or (\S+:log7) for", hint)) and (wrong := re.search(r": '([^']+)' is not", said)):
        return [meant[1] if word == wrong[1] else word for word in words]
    if meant := re.match(r"write (tuning\.\S+ tuning\.\S+);", hint):
        return [re.sub(r"tuning\S*", meant[1], word, count=1) for word in words]
    if meant := re.search(r"for example (--\S[^;]*)", hint):
        typed = shlex.split(meant[1])
        for flag in typed[::2]:
            words = without(words, flag)
        return [*words, *typed]
    if meant := re.match(r"use (--[\w-]+) (?:<= |between \d+ and )?([\w.e+-]+)", hint):
        return [*without(words, meant[1]), meant[1], meant[2]]
    if meant := re.match(r"leave out (--[\w-]+)", hint):
        return without(words, meant[1])
    if meant := re.match(r"see `dpcalc (help [^`]*)`|`dpcalc (bounds)` lists", hint):
        return shlex.split(meant[1] or meant[2])
    if meant := re.match(r"see dpcalc (.*)--help$", hint):
        return [*shlex.split(meant[1]), "--help"]
    return None


RUN = "-n 50000 --batch-size 500 --epochs 20"
PASS = "rdp -L 1 --smoothness 1 --eta 0.1 -d 1e-5"
TYPED = [
    "ledger --add 'mu=0.5 tuning=geometric' -d 1e-5", "ledger --add 'mu=0.5 tuning.mean=10' -d 1e-5",
    f"dp-sgd {RUN} --tuning 10 -d 1e-5", f"dp-sgd {RUN} --momentum 0.9 -d 1e-5", f"dp-sgd {RUN} --optimizer adam",
    f"dp-sgd {RUN} --accountant prv -d 1e-5", f"dp-sgd {RUN} --secure-mode -d 1e-5", f"{PASS} --proof",
    f"dp-sgd {RUN} --mu 0.5", f"{PASS} -n 100 --mu 0.5", "compare --mu 1 -d 1e-5", "train --mu 1",
    f"dp-sgd {RUN} --sampling poisson -d 1e-5 --noise 1.1", f"{PASS} -n 100 --noise 1.1",
    "compare --algorithm dp-sgd -n 1000 --batch-size 10 --epochs 2 --sampling poisson -d 1e-5 --noise 1.1",
    f"{PASS} -n 1:50 --sigma 1", f"{PASS} -n 100 --sigma 1:50", f"{PASS} -n 100 --sigma 10.000,5",
    f"{PASS} -n 10.000,5 --sigma 1", f"{PASS} -n 10.500,5 --sigma 1", f"{PASS} -n 1,000.5 --sigma 1",
    f"{PASS} -n 50.000 --sigma 1", f"{PASS} -n 1.000.000 --sigma 1", "dp-sgd", f"dp-sgd {RUN} -d 1e-5",
    "dp-sgd -n 50000 --sigma 1.1 --batch-size 500 --sampling poisson --epochs 2 -d 1e-5",
    "dp-sgd -n 50000 --sigma 1.1 --sampling full --epochs 2 -d 1e-5", f"dp-sgd {RUN} --noise-mult 1 -d 1e-5",
    f"dp-sgd {RUN} --poisson --noise-multiplier 1 -d 1e-5", f"opacus {RUN} --noise-multiplier 1 -d 1e-5",
    f"dpsgd {RUN} --sampling poisson --noise-multiplier 1 -d 1e-5", "tuning", "explain feldman",
    "explain clippin", "help hyperparamter",
]  # fmt: skip
"""What strangers typed, whose cures once failed."""


@pytest.mark.few(6)
@pytest.mark.parametrize("line", TYPED)
def test_what_strangers_typed_leads_to_an_answer(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(line)
    code = 2
    for _ in range(3):
        code, error = ended(capsys, words)
        if code == 0:
            break
        cured = followed(words, error) or [*words, *examples(error)[0]]
        assert cured != words, error
        words = cured
    assert code == 0, (words, error)


# Every command that is named anywhere

ROOT = Path(__file__).resolve().parents[2]
NAMED = sorted(
    path for pattern in ("dpcalc/**/*.py", "dpcalc/data/**/*.t*", "docs/**/*.md", "recipes/*.md", "*.md")
    for path in ROOT.glob(pattern)
)  # fmt: skip
_NOT_TYPED = re.compile(r"[A-Z]{2,}|\.\.\.|[{<$|]|^dpcalc ([A-Z-]|[a-z-]+ [a-z]+ [a-z]+ [a-z]+ )")
"""Placeholders, and sentences that begin with the name of the program."""


def named(path: Path) -> set[str]:
    """Return the commands that a file names: in backquotes, behind a prompt, or as a row of code."""
    text = path.read_text(encoding="utf-8")
    texts = [text]
    if path.suffix == ".py":
        tree = ast.parse(text)
        inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
        constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in inside)
        texts = [node.value for node in constants if isinstance(node.value, str)]
    joined = [re.sub(r" \\+\n\s*", " ", text) for text in texts]
    row = r"\$ " if path.suffix == ".md" else r" {2,}"
    found = (re.findall(rf"`(dpcalc [^`]+)`|^(?:{row})(dpcalc [a-z].*)$", text, re.MULTILINE) for text in joined)
    lines = (" ".join((quoted or typed).split()) for pairs in found for quoted, typed in pairs)
    return {line for line in lines if not _NOT_TYPED.search(re.sub(r" -[LDR] ", " ", line))}


def test_every_command_that_is_named_exists_with_its_options() -> None:
    parent = click.Context(cli, info_name="dpcalc", help_option_names=["-h", "--help"])
    for file, line in [(path, line) for path in NAMED for line in named(path)]:
        words = shlex.split(re.split(r" > | #", line)[0])[1:]
        if not words or words[0].startswith("-"):
            continue
        command = cli.get_command(parent, words[0])
        assert command is not None, (file, line)
        try:
            command.make_context(words[0], words[1:], parent)
        except (click.exceptions.Exit, click.MissingParameter, click.BadOptionUsage):
            pass  # help is shown, or what is named has no value beside it
        except (click.ClickException, DpcalcError) as error:
            pytest.fail(f"{file}: {line}: {error}")


REFUSED = [entry.line for entry in read(FOLDER / "refusals.txt") if entry.code is not None]


def test_what_a_refusal_says_to_type_is_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    typed = 0
    for line in REFUSED:
        words = shlex.split(line)
        code, error = ended(capsys, words)
        cured = followed(words, error)
        if cured is None:
            continue
        typed += 1
        code, again = ended(capsys, cured)
        if code and (further := followed(cured, again)):
            code, again = ended(capsys, further)
        assert code == 0, (line, error, cured, again)
    assert typed >= 50


UNFINISHED = [
    "rdp", "rdp -n 100", "rdp -e 1", "rdp -e 1 -d 1e-6", "rdp --algorithm skip", "rdp --algorithm local -n 50 -d 1e-5",
    "rdp -n 100 -L 1 --eta 7 --sigma 2 -d 1e-6", "rdp -n 100 -L 1 --smoothness 30 --sigma 2 -d 1e-6",
    "rdp --loss huber -n 10 -e 1 -d 1e-6", "rdp --noise-multiplier 1 -d 1e-6", "rdp -e 1 --solve index",
    "hockey-stick", "hockey-stick --sigma 2 -e 1", "hockey-stick --laplace-scale 2 -d 1e-5", "shuffle",
    "shuffle -n 100 -d 1e-6", "shuffle --c1 3 -e 1", "multi-epoch", "multi-epoch -n 1000 --sigma 1",
    "multi-epoch --batch-size 70000 -d 1e-5 --sigma 1 --smoothness 30", "multi-epoch --algorithm noisy-gd",
    "multi-epoch --algorithm noisy-sgd -n 100 -e 1 -d 1e-5", "multi-epoch --algorithm repeated -d 1e-5", "online",
    "multi-epoch -e 1 -d 1e-5 --solve epochs", "online -e 1", "dp-sgd", "dp-sgd -n 1000",
    "dp-sgd --algorithm dp-sgd-output -d 1e-5", "compare",
    "compare --algorithm cyclic", "shifted", "shifted -d 1e-5 --sigma 1", "shifted --steps 4 --sigma 2 -d 1e-4",
    "utility", "utility -e 1 -d 1e-5", "utility -e 1 -d 1e-5 --loss logistic", "utility -n 1000 -L 1",
    "train --synthetic logistic --dimension 2",
    "train --synthetic linear -n 20 --dimension 2 --algorithm noisy-gd -e 5 -d 1e-5",
]  # fmt: skip
"""What people type first."""


def examples(error: str) -> list[list[str]]:
    """Return the ways to go on that an error shows: what to add, or to add in place of the noise."""
    found = re.search(r"for example ([^;\n]*)(?:; or, in place of the noise, ([^;\n]*))?", error)
    assert found, error
    first = shlex.split(found[1])
    if not found[2]:
        return [first]
    rest = re.sub(r"--noise-(std|multiplier) \S+|--delta \S+", "", found[1])
    return [first, shlex.split(f"{rest} {found[2]}")]


@pytest.mark.few(10)
@pytest.mark.parametrize("line", UNFINISHED)
def test_examples_lead_to_an_answer(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = line.split()
    code, error = ended(capsys, words)
    assert code == 2, error
    for more in examples(error):
        code, again = ended(capsys, [*words, *more])
        if code:
            [further, *_] = examples(again)
            code, again = ended(capsys, [*words, *more, *further])
        assert code == 0, (more, again)
