"""Command lines: runs that `compare` answers, changed; and options drawn at random from those there are."""

import contextlib
import io
import json
import random
import shlex
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import click

from dpcalc.cli.main import cli, main
from tests.fuzz.files import CSV, YAML
from tests.fuzz.mutate import NUMBERS
from tests.fuzz.recipes import write
from tests.fuzz.tables import CSV as TABLE
from tests.fuzz.tables import RANGES, models_written

CODES = (0, 1, 2, 3, 130, 141)
"""What a shell may see; 4 is a mistake of dpcalc's."""

SMALL = ("1", "2", "3", "5", "17", "0.5", "0.1", "1e-3", "1e-6", "10", "100", "1000", "60000", "1/60000", "1%",
         "1,2", "1:3:1", "1:1000:log3", "2^-10")  # fmt: skip
ODD = ("all", "none", "x" * 300, "\x1b[31m", "é", "\udcff", "--", "-", "=", "a b", "'", '"', "{}", "%s", "\n", "$(x)")
FILES = ("steps.csv", "steps.yaml", "table.csv", "ranges.csv", "budget.yaml", "model.json", "missing.csv", ".", "",
         "policy.yaml", "spent.yaml", "train.yaml", "report.json", "card.json", "linked.json", ".git/x", "\0",
         "\0.csv", "\0.json", "/dev/null", "/dev/full", "no/such/folder/x", "-")  # fmt: skip
SEEDS = (
    "compare --algorithm pnsgd -n 50 -i 10 -L 1 --smoothness 1 --eta 0.5 --sigma 2 -d 1e-6",
    "compare --algorithm skip -n 50 -i 10 -L 1 --smoothness 1 --eta 0.5 --sigma 2 -e 1",
    "compare --algorithm stop -n 50 -L 1 --smoothness 1 --eta 0.5 --laplace-scale 2 -D 3 -e 1",
    "compare --algorithm shuffled -n 50 -b 4 -L 1 --smoothness 1 --eta 0.5 --sigma 2 -d 1e-5 --permutation secret",
    "compare --algorithm rotation -n 20 -L 1 --smoothness 1 --eta 0.5 --sigma 2 -D 1 -d 1e-5 -e 1",
    "compare --algorithm cyclic -n 20 --epochs 3 -L 1 --smoothness 1 --eta 0.5 --sigma 2 -d 1e-5 --release epoch",
    "compare --algorithm shuffle-once -n 20 --epochs 3 -L 1 --smoothness 1 --eta 0.5 -e 1 -d 1e-5",
    "compare --algorithm shuffled-epochs -n 20 --epochs 2 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -d 1e-5",
    "compare --algorithm noisy-sgd -n 20 -b 2 --steps 20 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -d 1e-5",
    "compare --algorithm noisy-gd -n 20 --steps 20 -L 1 --smoothness 1 --strong-convexity 0.1 --eta 0.5 --sigma 4 -e 1",
    "compare --algorithm local,pnsgd -n 5 -L 1 --sigma 2 -d 1e-5 --smoothness 1 --eta 1",
    "multi-epoch --algorithm repeated --epochs 5 --epoch-epsilon 0.1 --epoch-delta 1e-6 -d 1e-4",
    "online -n 30 -L 1 --smoothness 1 --eta 0.5 -D 2 --noise gaussian --c1 1 --c2 2 --decay-exponent 1.5 -d 1e-3",
    "dp-sgd --algorithm dp-sgd-output -n 30 --steps 30 -L 1 --holder-exponent 0.5 --holder-constant 1 --radius 1 "
    "--eta 0.1 --sigma 1 -d 1e-4",
    "dp-sgd --algorithm dp-sgd-gradient -n 30 --steps 30 -b 2 -L 1 --sigma 2 -d 1e-4",
    "dp-sgd -n 30 --epochs 2 --batch-size 3 --noise-multiplier 1 --sampling fixed --adjacency zero-out -d 1e-4",
    "rdp -n 50 -L 1 --smoothness 1 --eta 0.5 --sigma 2 --order 2,4,8 --solve index -e 1 -d 1e-4",
    "rdp -n 3 -L 1 --smoothness 1 --schedule steps.csv -d 1e-4",
    "shifted --steps 20 --shift 0.1 --contraction 0.9 --eta 0.1 --sigma 1 -d 1e-5",
    "unlearn --start-distance 0.1 --clean-steps 20 --contraction 0.9 --eta 0.1 --sigma 1 -d 1e-5",
    "shifted --schedule steps.yaml -e 1 --assert delta<=0.5",
    "hockey-stick -n 20 -i 5 -L 1 --smoothness 1 --eta 1 --sigma 1 -D 1 -e 0.5 --format markdown",
    "shuffle --algorithm shuffled-stop -n 20 -L 1 --smoothness 1 --eta 1 --sigma 1 -D 1 -e 0.5,1 --format csv",
    "utility -n 1000 -L 1 --smoothness 1 --dimension 10 --radius 1 -e 1 -d 1e-6",
    "compare --algorithm all -n 10 -L 1 --smoothness 1 --eta 1 --sigma 2 -D 1 --epochs 2 -e 1",
    "statement --algorithm pnsgd -n 50 -L 1 --smoothness 1 --eta 0.5 --sigma 2 -d 1e-6",
    "train --data table.csv --loss logistic -R 1 --algorithm pnsgd --sigma 1 -d 1e-2 --target ill",
    "train --data table.csv --ranges ranges.csv --loss squares --label-bound 1 -R 1 --algorithm noisy-gd --steps 5 "
    "--sigma 2 -e 1 --intercept -o model.json",
    "train --synthetic logistic -n 20 --dimension 2 -R 1 --algorithm shuffled,stop --eta 0.1 --sigma 0.5 -d 1e-5 "
    "--replicas 5 --seed 1 --workers 1",
    "check budget.yaml", "check budget.yaml --run half --list", "check budget.yaml budget.yaml --report junit=-",
    "check budget.yaml --report markdown=out.md --baseline base.json --fail-fast",
    "predict model.json --data table.csv", "predict model.json --data table.csv -o predicted.csv",
    "evaluate model.json --data table.csv --json",
    "evaluate model.json --data table.csv --private -e 0.5 --ledger spent.yaml",
    "check budget.yaml --policy policy.yaml", "check budget.yaml --policy policy.yaml --strict --report json=out.json",
    "check budget.yaml --strict --certify", "check budget.yaml --shard 1/2 --report json=one.json", "merge one.json",
    "check budget.yaml --checkpoint point", "check budget.yaml --baseline report.json --json",
    "init train.yaml -o drafted.yaml", "init train.yaml --command dp-sgd", "init --policy budget.yaml -o policy.yaml",
    "ledger spent.yaml -d 1e-6", "ledger spent.yaml -e 3 -d 1e-5 --solve noise_multiplier --add 'sample_rate=0.01 "
    "algorithm=dp-sgd steps=50 sampling=poisson adjacency=add-remove'", "ledger --add 'epsilon=0.1 times=100' -d 1e-6",
    "ledger --add 'mu=0.1' --add 'laplace_scale=200 sensitivity=1 part=a' -d 1e-6 --json --assert epsilon<=3",
    "convert --mu 1 -d 1e-5", "convert --rho 0.5 -e 1 --json", "convert --rdp 2,0.1 --rdp 8,0.6 -d 1e-6",
    "convert -e 1 -d 1e-6 --certify", "risk --mu 1 --fpr 1e-4,0.01 --json", "risk -e 1 -d 1e-5 --baseline 0.001",
    "risk report.json --assert tpr@1%<=0.5", "risk --rho 0.5 --prior 0.1 --plot -", "verify card.json",
    "rdp -n 50 -L 1 --smoothness 1 --eta 0.5 --sigma 2 -d 1e-4 --risk --report html=out.html --report badge=out.svg",
    "rdp -n 50 -L 1 --smoothness 1 --eta 0.5 --sigma 2 -d 1e-4 --certify --report card=card.json --json",
    "rdp -n 50 -L 1 --smoothness 1 --eta 0.5 --advantage 0.1", "completions bash", "help adjacency", "schema policy",
    "statement --algorithm dp-sgd -n 30 --epochs 2 --batch-size 3 --noise-multiplier 1 --sampling poisson -d 1e-4",
    "audit --algorithm noisy-gd -n 20 --steps 5 -L 1 --smoothness 1 --eta 0.5 --sigma 2 -d 0.01 --replicas 50 "
    "--workers 1", "unlearn --start-distance 0.1 --clean-steps 20 --contraction 0.9 --eta 0.1 --sigma 1 -e 1 --solve "
    "clean_steps", "explain iteration.pnsgd", "bounds", "cite iteration.pnsgd", "schema",
)  # fmt: skip


class Hung(BaseException):
    """The watchdog: no case may take so long."""


@cache
def options() -> dict[str, list[click.Option]]:
    """Those of every command."""
    with cli.make_context("dpcalc", ["bounds"], resilient_parsing=True) as context:
        found = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    return {
        name: [p for p in command.params if isinstance(p, click.Option)] for name, command in found.items() if command
    }


def drawn(r: random.Random) -> list[str]:
    """One command line."""
    words = shlex.split(r.choice(SEEDS)) if r.random() < 0.9 else [r.choice(sorted(options()))]
    for _ in range(r.choice((0, 1, 1, 1, 2, 5))):
        kind = r.randrange(6)
        at = r.randrange(len(words)) if words else 0
        if kind < 2:  # another value for what is there
            values = [k + 1 for k, word in enumerate(words[:-1]) if word.startswith("-")]
            if values:
                words[r.choice(values)] = _value(r)
        elif kind < 4:  # another option
            words[len(words) :] = _option(r, words[0] if words else "")
        elif kind == 4 and words:
            del words[at : at + r.choice((1, 2))]
        else:
            words.insert(at, r.choice((_value(r), *words)))
    return words


def _option(r: random.Random, command: str) -> list[str]:
    known = options().get(command) or r.choice(list(options().values()))
    if not known:
        return ["--help"]
    chosen = r.choice(known)
    flag = r.choice(chosen.opts)
    if chosen.is_flag:
        return [flag]
    if chosen.name in ("schedule", "output", "data", "ranges", "baseline", "ledger", "policy", "checkpoint"):
        return [flag, r.choice(FILES)]
    if chosen.name in ("replicas", "workers", "jobs"):  # threads and processes have limits of their own
        return [flag, r.choice(("0", "1", "-1", "2.5", ""))]
    if chosen.name == "plot":  # drawing to a file takes seconds, and has its own tests
        return [flag, r.choice(("-", "x.bmp", ""))]
    words = getattr(getattr(chosen.type, "parameter", None), "choices", ()) or getattr(chosen.type, "choices", ())
    if words and r.random() < 0.8:
        return [flag, r.choice(list(words))]
    return [flag, _value(r)] if r.random() < 0.8 else [f"{flag}={_value(r)}"]


def _value(r: random.Random) -> str:
    kind = r.random()
    if kind < 0.5:
        return r.choice(SMALL)
    if kind < 0.85:
        return r.choice(NUMBERS)
    if kind < 0.95:
        return r.choice(ODD)
    return "".join(r.choices("0123456789.eE+-/^%_,: log", k=r.randint(1, 12)))


def described(folder: Path, r: random.Random) -> None:
    """Write the files that lines name."""
    (folder / "steps.csv").write_bytes(CSV[0])
    (folder / "steps.yaml").write_bytes(YAML[0])
    (folder / "table.csv").write_bytes(TABLE[0])
    (folder / "ranges.csv").write_bytes(RANGES[0])
    (folder / "model.json").write_bytes(models_written()[".json"][0])
    for name, text in _OTHERS.items():
        (folder / name).write_bytes(text)
    (folder / "linked.json").symlink_to("steps.csv")
    (folder / ".git").mkdir(exist_ok=True)
    for name, text in _written().items():
        (folder / name).write_bytes(text)
    write(r, folder)


_OTHERS = {
    "policy.yaml": b"dpcalc: policy/1\ndefaults: {adjacency: [replace-one, by-shift], certified: false}\ncases:\n"
    b"  h*: {required: true, epsilon: 3, delta: 1e-5}\n  '*': {epsilon: 9, delta: 1e-4, accept: {one-index: "
    b"2099-01-01}}\n",
    "spent.yaml": b"dpcalc: ledger/1\nadjacency: add-remove\nbudget: {epsilon: 3, delta: 1e-5}\nentries:\n"
    b"  model: {algorithm: dp-sgd, sample_rate: 0.01, steps: 50, sampling: poisson, noise_multiplier: 2}\n"
    b"  count: {epsilon: 0.1, times: 2, part: a}\n",
    "train.yaml": b"data: {n: 50000, batch_size: 500}\noptim: {lr: 0.1, num_epochs: 2, seed: 60.000}\n"
    b"privacy: {noise_multiplier: 1.1, max_grad_norm: 1.0, target_delta: 1e-5, sampling: poisson}\n",
}


@cache
def _written() -> dict[str, bytes]:
    """Return a report and a card that dpcalc writes."""
    query = "rdp -n 50 -L 1 --smoothness 1 --eta 0.5 --sigma 2 -d 1e-4"
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        ran(shlex.split(f"{query} --report json=report.json --report card=card.json"))
        return {file: Path(file).read_bytes() for file in ("report.json", "card.json")}


def command_lines(r: random.Random, folder: Path) -> None:
    """One command line answers or refuses."""
    described(folder, r)
    words = drawn(r)

    def judge(some: Sequence[str]) -> None:
        code, out, _ = tried(some, folder)
        if code == 0 and out and "--json" in some and "-o" not in some and some[0] in ("compare", "rdp", "shifted"):
            json.loads(out, parse_constant=_refuse)

    smallest(words, judge)


def tried(words: Sequence[str], folder: Path) -> tuple[int, str, str]:
    """Return exit code and output of a command line run in a folder.

    Raises:
        AssertionError: it did neither answer nor refuse as documented.
    """
    with contextlib.chdir(folder):
        code, out, err = ran(words)
    what = f"{shlex.join(words)!r} gave {code}, {err!r}"
    assert code in CODES, what
    assert "Traceback" not in out + err, what
    assert "internal error" not in out + err, f"{what}, {out!r}"
    if code in (2, 130) and words:  # without any, what to type is said
        assert any(line.startswith(("error: ", "Usage: ")) for line in err.splitlines()), what
    if code == 2 and words[:1] != ["check"]:  # whose report says what is wrong
        assert not out, what
    return code, out, err


def smallest(words: Sequence[str], judge: Callable[[Sequence[str]], None]) -> None:
    """Judge a command line; where it is found wrong, raise with the shortest line found that still is.

    Raises:
        AssertionError: it is wrong.
    """
    found = _wrong(words, judge)
    if found is None:
        return
    left, kept = 100, list(words)
    size, at = 2, 1  # an option with its value, then single words
    while left and size:
        shorter = [*kept[:at], *kept[at + size :]]
        problem = _wrong(shorter, judge) if at + size <= len(kept) else None
        left -= 1
        if problem:
            kept, found = shorter, problem
        elif at + size < len(kept):
            at += 1
        else:
            size, at = size - 1, 1
    raise AssertionError(f"dpcalc {shlex.join(kept)}: {found}") from found


def _wrong(words: Sequence[str], judge: Callable[[Sequence[str]], None]) -> Exception | None:
    try:
        judge(words)
    except Exception as error:
        return error
    return None


def _refuse(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


def ran(words: Sequence[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command line in this process."""
    out, err = _stream(), _stream()
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            main(list(words))
        except SystemExit as stop:
            code = stop.code or 0
    texts = [stream.buffer.getvalue().decode("utf-8", "replace") for stream in _flushed(out, err)]
    return code, texts[0], texts[1]


def _stream() -> Any:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")


def _flushed(*streams: Any) -> Iterator[Any]:
    for stream in streams:
        stream.flush()
        yield stream
