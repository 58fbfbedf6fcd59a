"""When hiding the iterates helps, and when it does not, on six common runs, beside who assumes what.

    python -m benchmarks.landscape                            # print the page
    python -m benchmarks.landscape --write docs/landscape.md

Every number is an answer of dpcalc, rounded as it rounds: a guarantee up. It takes about a minute.
"""

# ruff: noqa: E501 (prose)
from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import dpcalc
from dpcalc.notes import HidingPays

DELTA = 1e-6
ONE_PASS = {"records": 60000, "lipschitz": 1, "smoothness": 1, "step_size": 0.1, "noise_std": 2, "delta": DELTA}
SMALL = {"records": 32000, "batch_size": 32, "lipschitz": 1, "smoothness": 1, "step_size": 0.1, "delta": 1e-5}
PASSES = (10, 30, 100)
BUDGETS = (1, 8)
CURVED = {
    "records": 10000,
    "batch_size": 100,
    "lipschitz": 1,
    "smoothness": 1,
    "step_size": 0.1,
    "noise_std": 0.1,
    "delta": DELTA,
}
EPOCHS = (1, 10, 100, 1000, 10000)
FULL = {
    "records": 10000,
    "lipschitz": 1,
    "smoothness": 1,
    "step_size": 1,
    "noise_std": 0.003,
    "strong_convexity": 0.001,
    "delta": DELTA,
}
STEPS = (10, 100, 1000, 10000, 100000)
NET = {"records": 50000, "batch_size": 500, "epochs": 20, "noise_multiplier": 1.1, "delta": 1e-5}
DOMAIN = {
    "records": 50000,
    "steps": 10000,
    "lipschitz": 1,
    "step_size": 0.1,
    "noise_std": 0.01,
    "diameter": 2,
    "delta": 1e-5,
}

HEAD = """\
<!-- Made by `python -m benchmarks.landscape --write docs/landscape.md`; do not edit. -->

# The landscape: who assumes what, and when hiding the iterates helps

A test compares this page with what its command prints. Numbers are guarantees of epsilon, rounded up, or the least noise
for a budget.

Noisy gradient descent adds noise in every step. If every iterate is public, the privacy of a run is the composition of its
steps, and more steps cost more. If only the last iterate is seen, the noise of later steps hides what earlier ones
did. How much that is worth depends on the run.

## In short

* **It helps** one pass over convex losses (all but the newest records), strongly convex runs (whose cost stays bounded), and small batches in secret
  shuffled orders (less noise than sampled batches at equal work).
* **It does not help** full-batch training at the number of steps that people run, nor networks: without convexity the number of
  steps from which hiding counts is astronomical.
* **A secret order is not a hidden iterate.** It needs nobody to learn the order, ever; where that can be promised, it is
  worth more than anything else on this page.
"""

TAIL = """\
## Who assumes what

| result | assumes | says | in dpcalc |
|---|---|---|---|
| composition (Dong, Roth and Su 2022; Abadi et al. 2016) | nothing of the loss but bounded gradients; all iterates public | cost grows with the number of steps | `noisy_gd.composition`, `noisy_sgd.composition`, `sampled.*` |
| Feldman, Mironov, Talwar and Thakurta 2018 | convex, smooth, one pass, fixed order | a record is hidden by the noise of the steps after it | `iteration.*`, `shifted.*`, with its errors corrected |
| Chourasia, Ye and Shokri 2021 | strongly convex and smooth, full batches | the cost converges | `noisy_gd.langevin*`, corrected |
| Sordello, Bu and Dong 2021 | convex or bounded domain, Gaussian or Laplace noise, random order | contraction of the divergence in every step | `contraction.*`, `shuffle.*`, `online.*` |
| Ye and Shokri 2022 | strongly convex and smooth, minibatches in one order | the cost converges for batches too | kind `published`: `multi_epoch.dynamics_published` as their code computes it, `noisy_gd.dynamics_published` as Bok et al. plot it |
| Altschuler and Talwar 2022 | convex, smooth, bounded domain | the cost stops growing after about `D n/(L eta)` steps, up to a constant | the same with best constants: `noisy_gd.domain`, `multi_epoch.cyclic_domain`; sampled batches: `noisy_sgd.hidden` |
| Bok, Su and Altschuler 2024 | as the last two | the same as Gaussian privacy, with the best constants for what they treat | `noisy_gd.contraction`, `noisy_gd.domain`, `multi_epoch.cyclic_contraction` |
| Chua et al. 2024, 2025 | nothing of the loss; shuffled batches, or balls in bins; iterates public | shuffling is not Poisson sampling | `sampled.shuffle_lower`, over all epochs: kind `lower`, and `sampled.balls_in_bins` |
| Steinke et al. 2025 | no gradient depends on the iterate, as of linear losses; Poisson batches | what the last iterate of a network plausibly reveals | `sampled.last_iterate_heuristic`: kind `heuristic`, exact for linear losses, proved of no others |
| this project ([method](method.md)) | convex and smooth, or clipped linear models; a secret order | the position in a secret order is hidden as well | `hidden_position.*`, `shuffled_epochs.*`, `sampled.hidden` |

A number that is no guarantee gates nothing here, whoever wrote it. What is left out, and why:

| result | assumes | why it is no row |
|---|---|---|
| Altschuler and Talwar 2022, as printed | convex, smooth, bounded domain | its text was not at hand; its abstract speaks of a constant factor, and a number needs the constant, which the rows above have |
| Asoodeh and Diaz 2023 | bounded domain, no convexity; contraction of the hockey-stick divergence | its text was not at hand; `contraction.nonlinear` iterates the step of Balle, Barthe, Gaboardi and Geumlek 2019 over one pass |
| Chien and Li 2024 (arXiv 2410.01068) | bounded domain, Hoelder gradients, no convexity | its text was not at hand; `expanding.*` has the same setting for smooth and for Lipschitz losses, proved here |
| Kong and Ribero 2024 (arXiv 2407.05237) | non-convex composite losses, cyclic batches, small steps, clipping | its text was not at hand; `expanding.cyclic` has smooth weakly convex losses, without clipping |
| Annamalai 2024 (arXiv 2407.06496) | none: a loss is constructed | no bound: for that loss the last iterate tells all; nothing that helps holds for all networks |
| Cebere, Bellet and Papernot 2024 (arXiv 2405.14457) | none: gradients are crafted | audits: with a crafted gradient in every step hiding iterates gains nothing |
| Chua et al. 2024, one order for all epochs | shuffled once | `dp-sgd` shuffles every epoch |
| Steinke et al. 2025, for other draws | linear losses | the theorem is about Poisson batches; a record used once in every epoch would be a Gaussian of `mu = sqrt(E/t)/z` |
"""


class Table(NamedTuple):
    """A run, what it shows, and the rows."""

    title: str
    told: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    reading: str

    def lines(self) -> Iterator[str]:
        """Yield the section."""
        yield from ("", f"## {self.title}", "", self.told, "", f"| {' | '.join(self.header)} |")
        yield "|---" * len(self.header) + "|"
        for row in self.rows:
            yield f"| {' | '.join(row)} |"
        yield from ("", self.reading)


def main() -> None:
    """Print the page, or write it."""
    text = page()
    if sys.argv[1:2] == ["--write"] and len(sys.argv) == 3:
        Path(sys.argv[2]).write_text(text, encoding="utf-8")
    elif len(sys.argv) == 1:
        print(text, end="")
    else:
        sys.exit("python -m benchmarks.landscape [--write FILE]")


def page() -> str:
    """Return the page."""
    tables = (one_pass(), random_pass(), small_batches(), curved(), full_batches(), network())
    return HEAD + "\n".join(line for table in tables for line in table.lines()) + "\n\n" + TAIL


def one_pass() -> Table:
    """One pass in a fixed order."""
    rows = [(f"{index}", epsilon(dpcalc.rdp(index=index, **ONE_PASS))) for index in (1, 30000, 59000, 60000)]
    return Table(
        "One pass in a fixed order: it helps, but for the newest records",
        "60000 records, convex 1-smooth losses, L = 1, step size 0.1, noise 2 in every step, delta = 1e-6; released: the last iterate.",
        ("record at position", "epsilon"), rows,
        "The last record has nothing but its own noise, as by composition. A guarantee for everybody is the last row.",
    )  # fmt: skip


def random_pass() -> Table:
    """One pass in a random order."""
    rows = [
        ("every iterate public, order known", epsilon(dpcalc.rdp(index=60000, **ONE_PASS))),
        ("hidden iterates, order published", epsilon(dpcalc.shuffle(**ONE_PASS))),
        ("hidden iterates, order secret for ever", epsilon(dpcalc.shuffle(permutation="secret", **ONE_PASS))),
    ]
    return Table(
        "One pass in a random order: a secret order is worth most", "The same run in a uniformly random order, for every record.",
        ("who knows what", "epsilon"), rows, "A published order protects on average over positions, and the newest position costs the most.",
    )  # fmt: skip


def small_batches() -> Table:
    """Small batches: noise at equal work."""
    rows = []
    for budget in BUDGETS:
        for passes in PASSES:
            run = {**SMALL, "epochs": passes, "epsilon": budget}
            sampled = noise(dpcalc.multi_epoch(algorithm="noisy-sgd", release="epoch", **run))
            hidden = noise(dpcalc.multi_epoch(algorithm="shuffled-epochs", permutation="secret", **run))
            rows.append((f"{budget}", f"{passes}", f"{sampled:.4g}", f"{hidden:.4g}", f"{sampled / hidden:.2f}"))
    return Table(
        "Small batches, many passes: it helps the noise",
        "32000 records, batches of 32, L = 1, beta = 1, step size 0.1, delta = 1e-5. Least noise of fresh random batches with public "
        "iterates, and of fresh secret orders with hidden ones.",
        ("epsilon", "passes", "sampled batches, public iterates", "secret orders, last iterate", "ratio"), rows,
        "Sampled batches can release the mean of the iterates, and may take any step size: less noise is not always a better model "
        "([training](training.md)).",
    )  # fmt: skip


def curved() -> Table:
    """Strong convexity."""
    rows = []
    for passes in EPOCHS:
        run = {**CURVED, "algorithm": "cyclic", "epochs": passes}
        public, hidden = dpcalc.multi_epoch(release="epoch", **run), dpcalc.multi_epoch(**run)
        strong = dpcalc.multi_epoch(strong_convexity=0.01, **run)
        rows.append((f"{passes}", epsilon(public), epsilon(hidden), epsilon(strong)))
    return Table(
        "Strongly convex losses: the cost stays bounded",
        "10000 records in batches of 100 in one order, L = 1, beta = 1, step size 0.1, noise 0.1, delta = 1e-6.",
        ("passes", "an iterate after every pass", "last iterate, convex", "last iterate, 0.01-strongly convex"), rows,
        "With strong convexity the past is forgotten at a constant rate, and the last column stops growing.",
    )  # fmt: skip


def full_batches() -> Table:
    """Full batches."""
    rows = []
    for steps in STEPS:
        run = {**FULL, "algorithm": "noisy-gd", "steps": steps}
        best = dpcalc.compare(**run)
        rows.append((f"{steps}", of_bound(best, "noisy_gd.composition"), epsilon(best), best.cases[0].best.bound))
    return Table(
        "Full batches of a linear model: it does not help before the run has converged",
        "10000 records, L = 1, beta = 1, a ridge of 0.001, step size 1, noise 0.003, delta = 1e-6.",
        ("steps", "every iterate public", "last iterate", "by"), rows,
        "Hiding pays once `eta m T` is large: here from some thousand steps on. A run that is stopped after `1/(eta m)` steps with "
        "public iterates is as accurate as the converged hidden one, so that nothing is gained in the end; `dpcalc train` takes "
        "full batches with public iterates.",
    )  # fmt: skip


def network() -> Table:
    """Networks: no convexity."""
    rows = [
        (
            f"released iterates, {sampling} batches ({adjacency})",
            epsilon(dpcalc.dp_sgd(sampling=sampling, adjacency=adjacency, **NET)),
        )
        for sampling, adjacency in (("poisson", "add-remove"), ("balls-in-bins", "zero-out"), ("shuffle", "zero-out"))
    ]
    shuffled = dpcalc.compare(algorithm="dp-sgd", sampling="shuffle", adjacency="zero-out", **NET)
    rows.append(
        (
            "the shuffled batches of the line above: no guarantee is below",
            of_bound(shuffled, "sampled.shuffle_lower", -1),
        )
    )
    linear = dpcalc.compare(algorithm="dp-sgd", sampling="poisson", adjacency="add-remove", release="last", **NET)
    plausible = of_bound(linear, "sampled.last_iterate_heuristic")
    rows.append(
        ("last iterate, poisson batches (add-remove), as if losses were linear: a heuristic, no guarantee", plausible)
    )
    for name, more in (("smooth", {"smoothness": 1}), ("lipschitz", {})):
        found = dpcalc.compare(algorithm="noisy-gd", loss_class=name, **DOMAIN, **more)
        [needed] = [note.value for note in found.cases[0].note_data if isinstance(note, HidingPays)]
        rows.append((f"hidden iterates, {name} losses on a ball: hiding counts from", f"{needed:.2g} steps"))
    return Table(
        "Networks: it does not help, and the sampling decides",
        "50000 records, batches of 500, 20 epochs, noise multiplier 1.1, delta = 1e-5; below, full-batch steps on a domain of diameter 2.",
        ("run", "epsilon"), rows,
        "Clipped gradients of a network are those of no convex function. Theorems on hidden iterates without convexity exist, and "
        "start to count after far more steps than anybody runs. What linear losses reveal is less than composition says, and no "
        "theorem says that a network reveals no more.",
    )  # fmt: skip


def epsilon(report: dpcalc.Report) -> str:
    """Return the epsilon of the best guarantee."""
    return shown(best(report).epsilon)


def of_bound(report: dpcalc.Report, name: str, side: int = 1) -> str:
    """Return the epsilon of one bound, rounded up, or down (side -1)."""
    [found] = [result.epsilon for result in report.cases[0].results if result.bound == name]
    return shown(found, side)


def noise(report: dpcalc.Report) -> float:
    """Return the least noise of the best guarantee."""
    found = best(report)
    assert found.quantity == "noise_std"
    return float(found.value)


def best(report: dpcalc.Report) -> Any:
    """Return the best result of a report."""
    found = report.cases[0].best
    assert found is not None
    return found


def shown(value: float | None, side: int = 1) -> str:
    """Return an epsilon with three digits, rounded up, or down (side -1)."""
    assert value is not None
    text = f"{value:.3g}"
    while side * float(text) < side * value:
        step = 10.0 ** (int(f"{value:e}".partition("e")[2]) - 2)
        text = f"{float(text) + side * step:.3g}"
    return text


if __name__ == "__main__":
    main()
