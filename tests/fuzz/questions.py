"""Descriptions of runs, drawn from what commands say that they take: any command, algorithm, release and format."""

import json
import math
import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema

from dpcalc.engine.commands import COMMANDS, Command, taken_by
from dpcalc.engine.gate import QUANTITIES
from dpcalc.model import loss as losses
from dpcalc.model.algorithm import ALGORITHMS
from dpcalc.model.loss import LOSSES
from dpcalc.model.parameter import PARAMETERS, Parameter
from dpcalc.references import read
from dpcalc.render import FORMATS
from tests.fuzz.lines import described, options, smallest, tried
from tests.fuzz.mutate import NUMBERS

USUAL = {
    "records", "lipschitz", "smoothness", "step_size", "epochs", "steps", "diameter", "shift", "dimension", "radius",
    "feature_bound", "regularisation",
}  # fmt: skip
OF_NO_LOSS = (
    "lipschitz", "smoothness", "strong_convexity", "loss_class", "displacement", "diameter", "holder_exponent",
    "holder_constant", "gradient_at_zero", "loss_at_zero",
)  # fmt: skip
NEEDED = {
    "online": ("noise", "c1", "c2", "decay_exponent"),
    "dp-sgd-output": ("holder_exponent", "holder_constant", "radius"),
    "repeated": ("epochs", "epoch_epsilon", "epoch_delta"),
    "dp-sgd": ("sampling", "records", "batch_size", "epochs"),
    "correlated": ("mechanism", "steps", "epochs"),
    "unlearning": ("start_distance", "contraction", "clean_steps", "step_size"),
    "chain": ("shift", "step_size", "steps", "contraction"),
}
BARE = ("repeated", "dp-sgd", "correlated", "unlearning")
"""The algorithms of which, but for hostile runs, nothing else is said."""
NOISE = (
    "noise_std",
    "noise_multiplier",
    "laplace_scale",
    "noise",
    "c1",
    "c2",
    "schedule_factor",
    "decay_exponent",
    "langevin_std",
)
DESCRIBED = ("compare", "statement", "explain", "cite")
"""The commands that take the parameters of compare."""


def parameter(r: random.Random, symbol: Parameter, *, hostile: bool) -> str:
    """One value, of the domain and of a usual size unless it is to be hostile."""
    if symbol.choices:
        return str(r.choice(symbol.choices))
    if hostile and r.random() < 0.15:
        return r.choice((*NUMBERS, f"{symbol.low:g}", f"{symbol.high:g}", "0", "-1"))
    if symbol.integer:
        return str(r.randint(1, 10 ** r.choice((1, 2, 2, 3, 5, 15 if hostile else 4))))
    if symbol.name in ("delta", "epoch_delta"):
        return f"1e-{r.choice((1, 2, 3, 5, 6, 10, 40, 400))}"
    if symbol.name == "step_size":
        return f"{r.choice((1.0, 0.5, 0.1, 0.01, r.random())):.3g}"
    wide = r.choice((1.0, 10.0, 100.0, 300.0)) if hostile else 1.0
    value = max(symbol.low, 0.0) + 10.0 ** r.uniform(-wide, wide)
    if math.isfinite(symbol.high):
        value = symbol.low + (symbol.high - symbol.low) * r.random()
    return f"{value:.{r.choice((1, 1, 3, 17))}g}"


def described_run(r: random.Random, command: str, odd: float) -> dict[str, str]:
    """Parameters that fit together, but for this share of the runs."""
    record, hostile = COMMANDS[command], r.random() < odd
    found = {"algorithm": r.choice(record.algorithms)} if "algorithm" in record.parameters else {}
    algorithm = found.get("algorithm", record.algorithms[0])
    own = _taken(algorithm, record) | {"records", "dimension", "loss", *losses.PARAMETERS} if command == "train" else ()
    taken = [name for name in record.parameters if name in (own or _taken(algorithm, record))]
    chosen = {name for name in taken if r.random() < (0.9 if name in USUAL else 0.08)}
    chosen |= {name for name in NEEDED.get(algorithm, ()) if name in taken}
    if not hostile:
        if "steps" in chosen and command != "shifted":
            counted = "epochs" if ALGORITHMS[algorithm].length == "epochs" else r.choice(("steps", "epochs"))
            chosen.discard({"epochs": "steps", "steps": "epochs"}[counted] if "epochs" in taken else "")
        chosen -= _unfit(r, algorithm, command == "train" or ("loss" in taken and r.random() < 0.3), chosen, found)
        if algorithm in BARE:
            chosen = set(NEEDED[algorithm])
    noisy = r.random() < 0.75 and algorithm not in ("online", "repeated") and command != "utility"
    if noisy:
        scale = r.choice([name for name in ("noise_std", "noise_std", "laplace_scale") if name in taken] or taken)
        chosen.add("noise_multiplier" if algorithm in ("dp-sgd", "correlated") else scale)
    for name in taken:
        if name in chosen and name not in found:
            found[name] = parameter(r, PARAMETERS[name], hostile=hostile)
    if "index" in found and not hostile:
        found["index"] = "1"
    if "adjacency" in found and algorithm != "dp-sgd" and not hostile:
        found["adjacency"] = r.choice(("replace-one", "null-record"))
    if algorithm == "dp-sgd" and not hostile:  # a batch is no larger than the records, and a full one is all of them
        found["batch_size"] = "1"
        if found.get("sampling") == "full":
            del found["batch_size"]
    if algorithm == "correlated" and not hostile:  # as many steps in every pass
        found["steps"] = str(int(found["epochs"]) * r.randint(1, 9))
    fixed = noisy or algorithm in ("online", "repeated")
    asked = ["epsilon", "delta"] if not fixed or r.random() < 0.1 else [r.choice(("epsilon", "delta", "delta"))]
    return {**found, **{name: parameter(r, PARAMETERS[name], hostile=hostile) for name in asked}}


def _taken(algorithm: str, record: Command) -> set[str]:
    return taken_by(algorithm) if "algorithm" in record.parameters else set(record.parameters)


def _unfit(r: random.Random, algorithm: str, catalogue: bool, chosen: set[str], found: dict[str, str]) -> set[str]:
    """Return what does not go with the others; a loss of the catalogue is named, with what it needs."""
    wrong = set(NOISE) - set(NEEDED.get(algorithm, ()))
    parameters = {"loss", *losses.PARAMETERS}
    if not catalogue:
        return wrong | (parameters - {"radius"})
    loss = found["loss"] = r.choice(LOSSES)
    own = {"feature_bound", "regularisation", "radius"} | (set() if loss in losses.SIGNED else {"label_bound"})
    own |= {"power"} if loss in losses.POWERED else set()
    own |= {"huber": {"huber_threshold"}, "insensitive": {"tube"}}.get(loss, set())
    chosen |= own - ({"regularisation"} if r.random() < 0.5 else set())
    return wrong | (parameters - own) | set(OF_NO_LOSS)


def gate(r: random.Random) -> str:
    """An assertion, mostly one that can be judged."""
    name = r.choice(("epsilon", "epsilon", "delta", "delta", r.choice(QUANTITIES)))
    limit = "iteration.pnsgd" if name == "bound" else r.choice(("1", "0.1", "1e-5", "1000"))
    return f"{name}{r.choice(('<=',) * 9 + ('<', '>=', '=='))}{limit if r.random() < 0.95 else r.choice(NUMBERS)}"


def composed(r: random.Random) -> list[str]:
    """One command line."""
    command = r.choice((*COMMANDS, *COMMANDS, "statement", "explain", "cite"))
    run = described_run(r, "compare" if command in DESCRIBED else command, 0.25)
    if not {"noise_std", "noise_multiplier", "laplace_scale"} & set(run):
        run.pop("group_size", None)  # what noise groups need takes a minute to find
    if command == "compare" and r.random() < 0.2:
        run["algorithm"] = "all"
    words = [command]
    if command == "train":
        words += _source(r, run)
    for name, value in run.items():
        if r.random() < 0.03 and not PARAMETERS[name].choices:
            value = r.choice((f"{value},{value}", f"{value},1", "1:3:1", "1:100:log3"))
        words += [PARAMETERS[name].flag, value]
    known = {option.name for option in options()[command]}
    extra = (
        (0.07, "solve", lambda: ["--solve", r.choice((*PARAMETERS, *["noise_std"] * 40, *["step_size"] * 9))]),
        (0.15, "order", lambda: ["--order", r.choice(("2", "1.5", "2,4,8", "64", "1", "1e9"))]),
        (0.2, "gates", lambda: ["--assert", gate(r)]),
        (0.1, "certify", lambda: ["--certify"]),
        (0.2, "precision", lambda: ["--precision", r.choice(("2", "6", "17"))]),
        (0.9, "format", lambda: ["--format", r.choice((*FORMATS, "json", "json", "json"))]),
        (0.02, "schedule", lambda: ["--schedule", r.choice(("steps.csv", "steps.yaml"))]),
        (0.01, "plot", lambda: ["--plot", r.choice(("out.svg", "-", "out.png"))]),
        (0.03, "output", lambda: ["-o", r.choice(("out.json", "out.npz", "no/such/folder"))]),
    )
    for likely, name, more in extra:
        if name in known and r.random() < likely:
            words += more()
    return words


def _source(r: random.Random, run: dict[str, str]) -> list[str]:
    """Return what is trained on; runs are kept short."""
    for name, most in (("steps", 200), ("epochs", 3), ("records", 200), ("dimension", 10)):
        if name in run and len(run[name]) > 2:
            run[name] = str(r.randint(1, most))
    if run["algorithm"] == "noisy-gd":
        run.pop("batch_size", None)
    words = ["--replicas", "3", "--workers", "1"] if r.random() < 0.1 else []
    words += ["--seed", "1"] if r.random() < 0.3 else []
    words += ["--test-fraction", r.choice(("0.2", "0.9", "0"))] if r.random() < 0.2 else []
    words += ["--intercept"] if r.random() < 0.3 else []
    if r.random() < 0.5:
        run.setdefault("records", "30")
        run.setdefault("dimension", "2")
        return [*words, "--synthetic", r.choice(("logistic", "linear"))]
    run.pop("records", None)
    run.pop("dimension", None)
    words += ["--labels", r.choice(("0,1", "no,yes", "yes,no", "a,b,c"))] if r.random() < 0.3 else []
    words += ["--ranges", "ranges.csv"] if r.random() < 0.1 else []
    return [*words, "--data", r.choice(("table.csv", "example:breast-cancer"))]


def questions(r: random.Random, folder: Path) -> None:
    """A described run is answered or refused, and what is printed is what its format promises."""
    words = composed(r)
    described(folder, r)
    smallest(words, lambda some: judged(some, folder))


def judged(words: Sequence[str], folder: Path) -> None:
    """Raise AssertionError where a command line gives anything but an answer or a refusal."""
    code, out, _ = tried(words, folder)
    if not out or code not in (0, 1):
        return
    form = words[words.index("--format") + 1] if "--format" in words[:-1] else "plain"
    if "--plot" in words and words[words.index("--plot") + 1 :][:1] == ["-"]:
        return
    check = CHECKS.get(form)
    if check and "-o" not in words:
        check(out)


@cache
def _validator() -> Any:
    return jsonschema.Draft202012Validator(json.loads(read("report-1.schema.json")))


def strict(text: str) -> Any:
    """Return a JSON document, strictly read."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


def report(text: str) -> None:
    """Check a report in JSON."""
    found = strict(text)
    errors = [f"{error.json_path}: {error.message[:200]}" for error in _validator().iter_errors(found)]
    assert not errors, errors[:3]
    assert found["summary"]["cases"] == len(found["cases"])


def _lines(text: str) -> None:
    for line in text.splitlines():
        strict(line)


def _table(text: str) -> None:
    import csv
    import io

    assert len({len(row) for row in csv.reader(io.StringIO(text))}) == 1, text[:300]


def xml(text: str) -> None:
    """Check XML that dpcalc wrote."""
    assert not re.search(r"<!(DOCTYPE|ENTITY)", text)
    ElementTree.fromstring(text)


CHECKS: dict[str, Callable[[str], None]] = {"json": report, "jsonl": _lines, "csv": _table}
"""What a format promises of its text."""
