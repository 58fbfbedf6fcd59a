"""Fit what is missing, keep every score in results.csv, and write docs/utility.md.

python -m benchmarks.utility [--sets NAMES] [--tools NAMES] [--seeds 10] [--again] [--minutes M] [--render]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.utility import report, results
from benchmarks.utility.contest import EPSILONS, OPEN, SETS, TITLES
from benchmarks.utility.results import Key, Scores

PAGE = Path(__file__).resolve().parents[2] / "docs" / "utility.md"


def main() -> int:
    """Run what is asked; 0."""
    options = _options()
    if not options.render:
        os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
        run(options)
    options.output.write_text(report.render(results.read()), encoding="utf-8")
    print(f"{options.output} written")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.utility", description=__doc__)
    parser.add_argument("--sets", default=",".join(SETS), help="data sets, with commas between them")
    parser.add_argument("--tools", default=",".join(TITLES), help="tools, with commas between them")
    parser.add_argument("--seeds", type=int, default=10, help="splits: numbers 0 to SEEDS - 1")
    parser.add_argument("--again", action="store_true", help="drop what is asked from results.csv first")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long; run again to go on")
    parser.add_argument("--render", action="store_true", help="fit nothing, write the page")
    parser.add_argument("--output", type=Path, default=PAGE)
    options = parser.parse_args()
    for name, known in (("sets", SETS), ("tools", TITLES)):
        asked = [each.strip() for each in getattr(options, name).split(",") if each.strip()]
        if unknown := [each for each in asked if each not in known]:
            parser.error(f"unknown {name} {', '.join(unknown)}; there are {', '.join(known)}")
        setattr(options, name, asked)
    return options


def run(options: argparse.Namespace) -> None:
    """Fit what is missing, all sets and tools for one split before the next, and write after every set and tool."""
    from benchmarks.utility.tools import TOOLS

    if options.again:
        drop(set(options.sets), set(options.tools))
    until = time.monotonic() + 60.0 * options.minutes
    for seed in range(options.seeds):
        for name in options.sets:
            for tool in options.tools:
                if SETS[name].kind not in TOOLS[tool].kinds:
                    continue
                known = results.read()
                missing = [key for key in keys(name, tool, seed) if key not in known]
                if missing and time.monotonic() < until:
                    _keep(dict(fitted(missing)))


def drop(sets: set[str], tools: set[str]) -> None:
    """Leave out every score of these tools on these sets."""
    kept = results.read()
    results.write({key: kept[key] for key in kept if key.set not in sets or key.tool not in tools})


def keys(name: str, tool: str, seed: int) -> list[Key]:
    """Return what is asked of a tool for one split of a set."""
    epsilons = (0.0,) if tool in OPEN else EPSILONS
    return [Key(name, tool, epsilon, seed) for epsilon in epsilons]


def fitted(asked: list[Key]) -> Iterator[tuple[Key, float]]:
    """Yield the score of every fit of one split; a tool that refuses is left out, and asked again the next time."""
    from benchmarks.utility.problem import split
    from benchmarks.utility.sets import load
    from benchmarks.utility.tools import TOOLS

    began = time.monotonic()
    problem = split(load(asked[0].set), SETS[asked[0].set].kind, asked[0].seed)
    for key in asked:
        try:
            yield key, problem.score(TOOLS[key.tool].fit(problem, key.epsilon, key.seed))
        except Exception as error:
            print(f"{key.set}, {key.tool}, epsilon {key.epsilon:g}: {type(error).__name__}: {error}", file=sys.stderr)
            break
    print(f"{asked[0].set}, {asked[0].tool}, split {asked[0].seed}: {time.monotonic() - began:.1f} s", flush=True)


def _keep(found: Scores) -> None:
    """Add scores to the file, which another process may have written meanwhile."""
    if found:
        results.write({**results.read(), **found})


if __name__ == "__main__":
    sys.exit(main())
