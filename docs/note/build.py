"""Write the numbers and the figure of the note anew, and the note as PDF: `python docs/note/build.py`.

The runs are those of recipes/note.yaml. A table stands behind its comment in note.md, up to the next empty line; the
figure is drawn by the command that the note shows (this needs matplotlib). The PDF needs pandoc, a TeX engine and
rsvg-convert; what is missing is said. It is not part of the project.
"""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import cache
from pathlib import Path
from typing import Any

import yaml  # noqa: TID253

import dpcalc

HERE = Path(__file__).resolve().parent
NOTE = HERE / "note.md"
RECIPE = HERE.parents[1] / "recipes" / "note.yaml"

_ENGINES = ("tectonic", "xelatex", "lualatex")
_OF_RECIPES = ("command", "description", "matrix", "accept", "assert")
_TABLE = re.compile(r"<!-- table: ([a-z-]+) -->\n(?:\n?\|.*)*")
_FIGURE = re.compile(r"```sh\n\$? ?dpcalc (.*)\n```")
Values = dict[str, float]


@cache
def runs(name: str) -> tuple[tuple[dict[str, Any], Values, Values], ...]:
    """Return the runs of a case of the recipe: what varies, and the guarantees and lower values by bound."""
    recipe = yaml.safe_load(RECIPE.read_text(encoding="utf-8"))
    described = {**recipe["defaults"], **recipe["cases"][name]}
    fixed = {key: value for key, value in described.items() if key not in _OF_RECIPES}
    varied = described["matrix"]
    return tuple(
        (setting, *_answers({**fixed, **setting}))
        for setting in (dict(zip(varied, values, strict=True)) for values in itertools.product(*varied.values()))
    )


def _answers(run: dict[str, Any]) -> tuple[Values, Values]:
    budget: dict[str, Any] = {key: float(value) for key, value in run.items() if key in ("delta", "epsilon")}
    results = dpcalc.compare(**{**run, **budget}).cases[0].results
    found = [(str(r.kind), r.bound, r.value) for r in results if r.value is not None]
    return (
        {bound: value for kind, bound, value in found if kind in ("upper", "conditional")},
        {bound: value for kind, bound, value in found if kind == "lower"},
    )


def shown(value: float, rounding: str = ROUND_CEILING) -> str:
    """Return three digits of a guarantee, rounded up; of a lower value down.

    >>> shown(0.0012301), shown(4.0501e-14), shown(0.0259, ROUND_FLOOR), shown(1.0)
    ('0.00124', '4.06e-14', '0.0259', '1.00')
    """
    digits = Context(prec=3, rounding=rounding).create_decimal(Decimal(value))
    digits = digits.quantize(Decimal(1).scaleb(digits.adjusted() - 2))
    return f"{digits:.2e}" if digits < Decimal("0.001") else f"{digits:f}"


def _lower(values: Values) -> str:
    return shown(max(values.values()), ROUND_FLOOR) if values else ""


def _one_pass() -> Iterator[tuple[str, ...]]:
    yield "n", "sigma", "published order", "secret order", "no guarantee can be below"
    for run, upper, lower in runs("one-pass"):
        secret = shown(upper["hidden_position.shuffled"])
        yield str(run["records"]), str(run["noise_std"]), shown(upper["shuffle.mixture"]), secret, _lower(lower)


def _epochs() -> Iterator[tuple[str, ...]]:
    yield "epochs", "one order, published", "one order, secret", "not below", "fresh orders, published", "fresh, secret"
    for (run, once, lower), (_, fresh, _) in zip(runs("once"), runs("fresh"), strict=True):
        yield (
            str(run["epochs"]), shown(once["shuffled_epochs.once"]), shown(once["shuffled_epochs.once_secret"]),
            _lower(lower), shown(fresh["shuffled_epochs.fresh"]), shown(fresh["shuffled_epochs.fresh_secret"]),
        )  # fmt: skip


def _short_batch() -> Iterator[tuple[str, ...]]:
    yield "the last batch is", "published order", "secret order"
    words = {"own": "divided by its size", "nominal": "divided by 256", "drop": "left out"}
    for run, upper, _ in runs("short-batch"):
        published, secret = upper["shuffle.mixture"], upper["hidden_position.shuffled"]
        yield words[run["last_batch"]], shown(published), shown(secret)


def _full_batch() -> Iterator[tuple[str, ...]]:
    yield "steps", "composition", "strong convexity", "the exact run with it", "domain"
    for (run, contracting, lower), (_, confined, _) in zip(runs("contracting"), runs("confined"), strict=True):
        yield (
            str(run["steps"]), shown(contracting["noisy_gd.composition"]), shown(contracting["noisy_gd.contraction"]),
            shown(lower["noisy_gd.quadratic"], ROUND_FLOOR), shown(confined["noisy_gd.domain"]),
        )  # fmt: skip


def _weakly_convex() -> Iterator[tuple[str, ...]]:
    yield "m", "Theorem S", "no guarantee can be below"
    for run, upper, lower in runs("weakly-convex"):
        yield f"{-run['strong_convexity']:g}", shown(upper["expanding.cyclic"]), _lower(lower)


def _random_batches() -> Iterator[tuple[str, ...]]:
    yield "steps", "composition", "Theorem N, the past averaged"
    for run, upper, _ in runs("random-batches"):
        yield str(run["steps"]), shown(upper["noisy_sgd.composition"]), shown(upper["noisy_sgd.hidden"])


def _contraction() -> Iterator[tuple[str, ...]]:
    yield "sigma", "product", "Theorem C", "least of Theorems C and S, step by step"
    for run, upper, _ in runs("contraction"):
        bounds = ("shuffle.product", "shuffle.nonlinear", "shuffle.hybrid")
        yield str(run["noise_std"]), *(shown(upper[bound]) for bound in bounds)


TABLES: dict[str, Callable[[], Iterator[tuple[str, ...]]]] = {
    "one-pass": _one_pass, "epochs": _epochs, "short-batch": _short_batch, "full-batch": _full_batch,
    "weakly-convex": _weakly_convex, "random-batches": _random_batches, "contraction": _contraction,
}  # fmt: skip


def table(name: str) -> str:
    """Return a table of the note in Markdown, with its comment."""
    head, *rows = (" | ".join(row) for row in TABLES[name]())
    rule = "|".join(["---"] * (head.count(" | ") + 1))
    return "\n".join([f"<!-- table: {name} -->", "", f"| {head} |", f"|{rule}|", *(f"| {row} |" for row in rows)])


def tables(text: str) -> dict[str, str]:
    """Return the tables that a note has, by name."""
    return {found[1]: found[0] for found in _TABLE.finditer(text)}


def refreshed(text: str) -> str:
    """Return the note with its tables computed anew."""
    return _TABLE.sub(lambda found: table(found[1]), text)


def figure(text: str) -> str:
    """Return the arguments of the command that draws the figure."""
    found = _FIGURE.search(text)
    if found is None:
        sys.exit("note.md shows no command that draws its figure")
    return found[1]


def missing() -> list[str]:
    """Return the programs that a PDF needs and that are not here."""
    found = [name for name in ("pandoc", "rsvg-convert") if shutil.which(name) is None]
    return found if any(map(shutil.which, _ENGINES)) else [*found, f"one of {', '.join(_ENGINES)}"]


def main() -> None:
    """Write the tables and the figure, and the PDF where it can be made."""
    NOTE.write_text(refreshed(NOTE.read_text(encoding="utf-8")), encoding="utf-8")
    drawn = shlex.split(figure(NOTE.read_text(encoding="utf-8")))
    subprocess.run([sys.executable, "-m", "dpcalc", *drawn], cwd=HERE, check=True, stdout=subprocess.DEVNULL)
    if lacking := missing():
        print(f"note.md is fresh; no note.pdf, which needs {', '.join(lacking)}")
        return
    engine = next(name for name in _ENGINES if shutil.which(name))
    command = ["pandoc", "-f", "gfm+tex_math_dollars", "--shift-heading-level-by=-1", "-V", "geometry:margin=25mm"]
    subprocess.run([*command, f"--pdf-engine={engine}", NOTE.name, "-o", "note.pdf"], cwd=HERE, check=True)
    print("note.md and note.pdf are fresh")


if __name__ == "__main__":
    main()
