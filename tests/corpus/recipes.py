"""Recipes: those that the repository ships, and drawn ones, some of them malformed."""

import random
from collections.abc import Iterator
from pathlib import Path

from tests.corpus.names import COMMANDS
from tests.corpus.question import Question
from tests.corpus.runs import described, number

ROOT = Path(__file__).resolve().parents[2]
SLOW = "sordello2021-figure-1.yaml"
"""Trains thousands of models: a few cases of it are enough."""
_NAMES = {"-n": "records", "-i": "index", "-L": "lipschitz", "--eta": "step_size", "--sigma": "noise_std",
          "-D": "diameter", "-R": "radius", "-w": "window"}  # fmt: skip
CONFIGURATION = {
    "config.yaml": b"noise: {std: 2}\ndata: {records: 50}\nrun: {lipschitz: 1, smoothness: 1, step_size: 0.5}\n",
    "config.json": b'{"noise": {"std": 3}, "data": {"records": 50}, "run": {"lipschitz": 1}}',
    "config.toml": b"[noise]\nstd = 2.5\n[data]\nrecords = 50\n",
}


def shipped() -> Iterator[Question]:
    """Yield checks of the recipes of this repository."""
    files = {str(path.relative_to(ROOT)): path.read_bytes() for path in sorted((ROOT / "recipes").rglob("*.yaml"))}
    ours = [name for name in files if "/digits/" not in name]
    for name in ours:
        needed = {other: content for other, content in files.items() if other == name or "/digits/" in other}
        if name.endswith(SLOW):
            yield Question(("check", name, "--list", "--json"), needed)
            yield Question(("check", name, "--run", "linear.*200.*shuffled", "--json"), needed, quick=False)
            continue
        for more in (("--json",), ("--list",), ("--format", "table"), ("--format", "markdown"), ("--format", "csv")):
            yield Question(("check", name, *more), needed, quick=more == ("--list",))
        for kind in ("json", "junit", "sarif", "github", "markdown"):
            yield Question(("check", name, "--format", "plain", "--report", f"{kind}=out.{kind}"), needed, quick=False)
    yield Question(("check", *[name for name in ours if not name.endswith(SLOW)], "--json"), files, quick=False)
    yield Question(("check", "recipes/feldman2018.yaml", "recipes/readme.yaml", "-j", "2"), files, quick=False)


def drawn(r: random.Random) -> Question:
    """Return a check of a recipe with a few cases, in one of the ways to run it."""
    cases = "".join(f"  {name}:\n{_case(r)}" for name in ("base", "other", "third")[: r.choice((1, 2, 3))])
    about = r.choice(("", "description: a budget\n"))
    text = f"dpcalc: recipe/1\n{about}{_defaults(r)}cases:\n{cases}"
    if r.random() < 0.25:
        text = _spoiled(r, text)
    ways = (
        ("--json",), ("--json",), ("--json",), ("--json",), (), ("--format", "markdown"), ("--format", "csv"),
        ("--format", "jsonl"), ("--list",), ("--list", "--json"), ("--run", "base"), ("--run", "nothing"),
        ("--fail-fast", "--json"), ("--certify", "--json"), ("--report", "junit=out.xml"),
        ("--report", "sarif=-", "-o", "out.txt"), ("--report", "github=-"), ("-o", "out.json", "--json"),
        ("--report", "json=out.json", "--report", "markdown=out.md"), ("--baseline", "missing.json"),
    )  # fmt: skip
    return Question(("check", "budget.yaml", *r.choice(ways)), {"budget.yaml": text.encode(), **CONFIGURATION})


def _defaults(r: random.Random) -> str:
    return r.choice(("", "defaults: {delta: 1e-6}\n", "defaults: {delta: 1e-5, command: compare}\n"))


def _case(r: random.Random) -> str:
    command = r.choice([name for name in COMMANDS if name not in ("shifted", "unlearn")])
    algorithm = r.choice(COMMANDS[command])
    words = described(algorithm, r)
    values = {"--command": command, **dict(zip(words[::2], words[1::2], strict=True))}
    if command != "online":
        values["--algorithm"] = algorithm
    lines = [f"{_NAMES.get(flag, flag.lstrip('-').replace('-', '_'))}: {value}" for flag, value in values.items()]
    lines += r.choice(([], ["delta: 1e-6"], ["epsilon: 1"], ["delta: 1e-4", "epsilon: 2"]))
    lines += [line for line in r.choice(_MORE) if r.random() < 0.1 or not _again(line, lines)]
    if r.random() < 0.3:
        lines += _asserted(r)
    return "".join(f"    {line}\n" for line in lines)


def _again(line: str, lines: list[str]) -> bool:
    """Return whether the key of the line is there already: a mistake, and a rare one."""
    return any(other.partition(":")[0] == line.partition(":")[0] for other in lines)


_MORE: tuple[list[str], ...] = (
    [], [], [], [], ["matrix: {order: [2, 4]}"], ["skip: not yet"], ["description: a case"], ["from: config.yaml#/run"],
    ["matrix: {epsilon: [0.5, 1]}"], ["matrix: {epsilon: ['1:4:log3']}", "include: {epsilon: 8}"],
    ["matrix: {epsilon: [1, 2]}", "exclude: {epsilon: 2}"], ["noise_std: {from: config.json#/noise/std}"],
    ["records: {from: config.toml#/data/records}"], ["noise_std: {from: config.yaml#/no/such}"],
    ["expect: {error: infeasible}"], ["expect: {error: not_applicable}"],
)  # fmt: skip


def _asserted(r: random.Random) -> list[str]:
    limit = number(r, 0.01, 100)
    return r.choice((
        [f"assert: epsilon <= {limit}"], [f"assert: [epsilon <= {limit}, delta <= 1/1000]"],
        ["assert: epsilon <= cases.base.epsilon * 2 + 0.1"], ["assert: delta <= cases.missing.delta"],
        [f"expect: {{epsilon: {limit}, tolerance: 1%}}"], [f"expect: {{delta: {limit}}}"], ["assert: bound == none"],
        ["assert: epsilon >= 1"], ["assert: epsilon <="], ["assert: []"],
    ))  # fmt: skip


def _spoiled(r: random.Random, text: str) -> str:
    """Return the recipe with a mistake that a person would make."""
    old, new = r.choice((
        ("recipe/1", "recipe/2"), ("dpcalc:", "dp-calc:"), ("cases:", "case:"), ("algorithm:", "algoritm:"),
        ("step_size:", "step-size:"), ("lipschitz: ", "lipschitz: -"), ("records: ", "records: 1."),
        ("    command", "   command"), (": ", ":"), ("command: ", "command: my-"), ("delta: 1e-6", "delta: 2"),
        ("delta", "delta: 1e-6\n    delta"), ("base", "ba se"), ("\n", "\n\t"), ("{", "["), ("cases:", "cases: []"),
    ))  # fmt: skip
    return text.replace(old, new)
