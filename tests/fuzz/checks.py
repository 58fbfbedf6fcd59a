"""Recipes made of every key with values that fit and values that do not, judged by ``dpcalc check``."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from dpcalc.engine.commands import COMMANDS
from dpcalc.recipes.judging.objections import EXCEPTIONS
from dpcalc.recipes.reading.read import KEYS
from dpcalc.recipes.reading.settings import CASE_KEYS
from tests.fuzz.lines import ODD, options, tried
from tests.fuzz.mutate import NUMBERS, mutated
from tests.fuzz.questions import CHECKS, described_run, gate, report, strict, xml
from tests.fuzz.recipes import CONFIGURATIONS
from tests.fuzz.recipes import write as write_files

CASES = ("base", "half", "other", "sweep")
HOSTILE: tuple[Any, ...] = (
    None, True, [], {}, [[]], {"": ""}, 0, -1, 10**30, 1e308, 0.1, "", " ", "null", "<<", "x" * 3000, ["a"] * 300,
    {"from": "config.json#/run"}, {"from": "missing.yaml#/a"}, {"from": "../../etc/passwd#/a"}, {"from": 1}, "*a", "&a",
    "cases.base.epsilon", "${HOME}", "::error::x", "##vso[task.complete]", "\u202e", "\x1b[31m", "a\nb", *ODD[:4],
    *NUMBERS,
)  # fmt: skip
REPORTS = ("json=out.json", "junit=out.xml", "sarif=out.sarif", "github=out.txt", "markdown=out.md", "plot=out.svg",
           "json=no/such/x", "junit=", "x=y", "json=-")  # fmt: skip


OTHER_CASES: dict[str, tuple[dict[str, Any], ...]] = {
    "convert": ({"mu": 1, "delta": "1e-6"}, {"rho": 0.1, "epsilon": 1}, {"rdp": ["2,0.1"], "delta": "1e-6"}),
    "risk": ({"mu": 1, "fpr": 0.01}, {"epsilon": 1, "delta": "1e-6", "baseline": 0.001}),
    "ledger": (
        {"entries": {"a": {"mu": 0.1}, "b": {"epsilon": 0.1, "times": 3}}, "delta": "1e-6"},
        {"entries": {"a": {"case": "base"}}, "delta": "1e-6", "adjacency": "add-remove"},
        {"file": "spent.yaml", "delta": "1e-5"},
    ),
}
"""Cases that describe no run."""

POLICIES = (
    b"dpcalc: policy/1\ncases:\n  ba*: {epsilon: 3, delta: 1e-5, adjacency: replace-one, required: true}\n"
    b"  '*': {epsilon: 1%, delta: 1e-4, adjacency: [zero-out, by-shift], certified: false, group_size: 1, "
    b"accept: {one-index: 2099-01-01, seeded: 2020-01-01}, records: 1e6}\n",
    b"dpcalc: policy/1\ndefaults: {adjacency: replace-one, strict: false}\ncases: {'*': {tpr@1%: 0.5, advantage: 0.3}}",
    b"dpcalc: policy/1\ncases: {'?*': {mu: 2, adjacency: as-given, kinds: exact, commands: [convert, rdp]}}\n",
)


def recipe(r: random.Random) -> dict[str, Any]:
    """A recipe that is right for the most part."""
    names = CASES[: r.choice((1, 1, 2, 3, 4))]
    found: dict[str, Any] = {"dpcalc": "recipe/1", "cases": {name: _case(r) for name in names}}
    if r.random() < 0.3:
        found["defaults"] = {
            **({"delta": "1e-5"} if r.random() < 0.1 else {}),
            **({"assert": gate(r)} if r.random() < 0.5 else {}),
        }
    for likely, name, value in ((0.1, "strict", True), (0.1, "timeout", "30"), (0.1, "description", "a budget")):
        if r.random() < (likely if name in KEYS else 0.01):
            found[name] = value
    for _ in range(r.choice((0, 0, 0, 0, 1, 1, 2))):
        _hurt(r, found)
    return found


def _case(r: random.Random) -> dict[str, Any]:
    command = r.choice(("compare", "compare", *COMMANDS, *OTHER_CASES))
    if command in OTHER_CASES:
        return {"command": command, **r.choice(OTHER_CASES[command]), "assert": gate(r)}
    run: dict[str, Any] = dict(described_run(r, command, 0.05))
    if command == "train":
        run |= {"synthetic": "logistic", "records": "20", "dimension": "2", "steps": "5", "radius": "1"}
        if r.random() < 0.5:
            run = {name: value for name, value in run.items() if name not in ("synthetic", "records", "dimension")}
            run |= {
                "data": r.choice(("table.csv", "example:breast-cancer")),
                "labels": r.choice(("no,yes", ["0", "1"])),
            }
    found = {"command": command, **run}
    limit = r.choice(("1", "1e-5", "1000", "cases.base.epsilon * 2 + 0.1", "cases.half.epsilon", "1/60000", "nan"))
    extra = {
        "assert": lambda: r.choice((gate(r), [gate(r), f"epsilon <= {limit}"], f"delta <= {limit}")),
        "expect": lambda: r.choice(
            ({"epsilon": "0.5", "tolerance": "1%"}, {"error": "infeasible"}, {"error": "not_applicable", "delta": 1})
        ),
        "matrix": lambda: {r.choice(("records", "epsilon", "noise_std", "order")): [1, "2", r.choice(NUMBERS)]},
        "include": lambda: {"records": 3},
        "exclude": lambda: [{"records": 1}],
        "from": lambda: r.choice(("config.json#/run", "config.toml#/run/0", "config.yaml#/noise", "config.yaml")),
        "skip": lambda: r.choice(("not yet", "true", "")),
        "accept": lambda: r.choice((*EXCEPTIONS, list(EXCEPTIONS), [], "all")),
        "strict": lambda: r.choice((True, False, "maybe")),
        "timeout": lambda: r.choice(("30", "0", "-1", "1e9", "nan")),
    }
    likely = {"assert": 0.6, "expect": 0.15, "matrix": 0.15, "accept": 0.2}
    for name, more in extra.items():
        if r.random() < (likely.get(name, 0.03) if name in CASE_KEYS else 0.005):
            found[name] = more()
    if found.get("assert") and r.random() < 0.8:
        found.pop("expect", None)
    for name in [name for name in found if name in ("epsilon", "records", "noise_std") and "matrix" in found]:
        if name in found["matrix"]:
            del found[name]
    return found


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every (mapping or list, key) in a tree."""
    pairs = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree)) if isinstance(tree, list) else []
    for key, value in pairs:
        yield tree, key
        yield from _places(value)


def _hurt(r: random.Random, tree: dict[str, Any]) -> None:
    """Make one mistake."""
    where, key = r.choice(list(_places(tree)))
    kind = r.random()
    if kind < 0.5:
        where[key] = r.choice(HOSTILE)
    elif kind < 0.65:
        del where[key]
    elif isinstance(where, dict):
        name = r.choice(("epsilon", "labels", "seed", "schedule", "order", "x", "<<", "delta", "algorithm", *CASES))
        where[name] = r.choice(HOSTILE) if kind < 0.85 else where[key]


def written(r: random.Random, tree: dict[str, Any]) -> bytes:
    """Return a recipe as YAML or as JSON, sometimes with bytes changed."""
    text = (
        yaml.safe_dump(tree, sort_keys=False, allow_unicode=r.random() < 0.5) if r.random() < 0.8 else json.dumps(tree)
    )
    data = text.encode("utf-8", "surrogatepass")
    return mutated(r, [data]) if r.random() < 0.15 else data


def arguments(r: random.Random) -> list[str]:
    """Return the words of a check."""
    words = ["check", "budget.yaml"]
    known = {flag for option in options()["check"] for flag in option.opts}
    if r.random() < 0.2:
        words += ["--policy", r.choice(("policy.yaml",) * 9 + ("budget.yaml",))]
    likely = {
        "--certify": 0.05, "--fail-fast": 0.1, "--strict": 0.15, "--list": 0.03, "--json": 0.2,
    }  # fmt: skip
    words += [flag for flag, chance in likely.items() if flag in known and r.random() < chance]
    if "--json" not in words and r.random() < 0.4:
        words += ["--format", r.choice(("json", "jsonl", "csv", "plain", "markdown", "table"))]
    for kind in r.sample(REPORTS[:5], r.choice((0, 0, 0, 1, 2, 5))):
        words += ["--report", kind]
    if r.random() < 0.05:
        words += ["--report", r.choice(REPORTS)]
    if r.random() < 0.1:
        words += ["--run", r.choice(("base", "half", "[", ".*", ""))]
    if r.random() < (0.2 if "markdown=out.md" in words else 0.01):
        words += ["--baseline", r.choice(("base.json", "config.json"))]
    if "--timeout" in known and r.random() < 0.1:
        words += ["--timeout", r.choice(("20", "0", "x", "1e400"))]
    return words


def checks(r: random.Random, folder: Path) -> None:
    """A check gives verdicts or says what is wrong, and every report it writes is what its kind promises."""
    write_files(r, folder)
    (folder / "table.csv").write_bytes(b"age,dose,ill\n41,0.5,yes\n29,1.5,no\n73,x,1\n")
    (folder / "policy.yaml").write_bytes(mutated(r, POLICIES) if r.random() < 0.3 else r.choice(POLICIES))
    (folder / "spent.yaml").write_bytes(b"dpcalc: ledger/1\nentries: {a: {mu: 0.1}, b: {epsilon: 0.5}}\n")
    for name, seeds in CONFIGURATIONS.items():
        if r.random() < 0.8:
            (folder / name).write_bytes(seeds[0])
    data, words = written(r, recipe(r)), arguments(r)
    try:
        _judge(data, words, folder)
    except Exception as error:
        raise AssertionError(f"{words} of\n{_smallest(data, words, folder)}") from error


def _judge(data: bytes, words: list[str], folder: Path) -> None:
    for left in folder.glob("out.*"):
        left.unlink()
    (folder / "budget.yaml").write_bytes(data)
    _, out, _ = tried(words, folder)
    form = "json" if "--json" in words else words[words.index("--format") + 1] if "--format" in words else "plain"
    if out and form in CHECKS and "--list" not in words and "json=-" not in words and "junit=" not in words:
        CHECKS[form](out)
    for name, check in (("out.json", report), ("out.xml", xml), ("out.sarif", strict), ("out.svg", svg)):
        if (folder / name).exists():
            check((folder / name).read_text(encoding="utf-8"))


def svg(text: str) -> None:
    """A drawing is XML, with no other declaration than the one of SVG that matplotlib writes."""
    xml(re.sub(r'<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN"\s+"[\w:/.]+/svg11.dtd">', "", text, count=1))


def _smallest(data: bytes, words: list[str], folder: Path) -> str:
    """Return the shortest text found, lines left out, with which a check still is wrong."""
    lines, at, left = data.split(b"\n"), 0, 60
    while at < len(lines) and left:
        left -= 1
        shorter = [*lines[:at], *lines[at + 1 :]]
        try:
            _judge(b"\n".join(shorter), words, folder)
        except Exception:
            lines = shorter
        else:
            at += 1
    return b"\n".join(lines).decode("utf-8", "replace")
