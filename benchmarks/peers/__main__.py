"""Install the pinned packages, ask everybody the same questions, write docs/benchmarks.md.

python -m benchmarks.peers [--only dpcalc,autodp] [--quick] [--repeats 7] [--cache FOLDER] [--output FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.peers import report, shell
from benchmarks.peers.environments import PINS, ROOT, Environment, install
from benchmarks.peers.questions import QUESTIONS, Question, quick
from benchmarks.peers.session import HERE, Session

GIB = 1 << 30
BATCH = 0.02  # seconds: what is faster is asked several times at a time


def main() -> int:
    """Run everything; 1 if dpcalc is below the truth anywhere."""
    options = _options()
    started = time.perf_counter()
    environments = {name: _installed(name, options) for name in ["dpcalc", "truth", *options.only]}
    results: dict[str, Any] = {"machine": _machine(), "repeats": options.repeats, "timeout": options.timeout}
    results["memory"] = options.memory
    results["options"] = _told(options)
    results["environments"] = {name: vars(found) for name, found in environments.items()}
    results["cold"] = [_cold(question, environments, options) for question in _cold_questions(options)]
    sessions = _sessions(environments, options)
    truth = Session(environments["truth"], HERE / "truth.py", memory=options.memory * GIB)
    try:
        asked = quick() if options.quick else QUESTIONS
        results["answers"] = [_answers(question, sessions, truth, options) for question in asked]
    finally:
        for session in [*sessions, truth]:
            session.close()
    results["minutes"] = (time.perf_counter() - started) / 60.0
    (options.cache / "results.json").write_text(json.dumps(results, indent=1))
    options.output.write_text(report.render(results), encoding="utf-8")
    print(f"{options.output} written after {results['minutes']:.1f} minutes")
    under = [line for answer in results["answers"] for line in report.below(answer, "dpcalc")]
    for line in under:
        print(f"dpcalc is BELOW THE TRUTH: {line}", file=sys.stderr)
    return 1 if under else 0


def _options() -> argparse.Namespace:
    peers = [name for name in PINS if name not in ("dpcalc", "truth")]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dpcalc-peers"
    parser.add_argument("--cache", type=Path, default=cache, help="where the environments are kept")
    parser.add_argument("--only", default=",".join(peers), help="the peers to ask, with commas between them")
    parser.add_argument("--repeats", type=int, default=7, help="timings of a cheap question")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds for one answer")
    parser.add_argument("--memory", type=int, default=8, help="GiB of address space for a package")
    parser.add_argument("--quick", action="store_true", help="one question of every section, three timings")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks.md")
    options = parser.parse_args()
    options.only = [name.strip() for name in options.only.split(",") if name.strip()]
    if unknown := [name for name in options.only if name not in peers]:
        parser.error(f"unknown peers {', '.join(unknown)}; there are {', '.join(peers)}")
    if options.quick:
        options.repeats = min(options.repeats, 3)
    options.cache = options.cache.resolve()
    options.cache.mkdir(parents=True, exist_ok=True)
    return options


def _told(options: argparse.Namespace) -> str:
    """Return the options that change what is measured, as they were typed."""
    told = [word for word in sys.argv[1:] if word == "--quick"]
    given = ("only", "repeats", "timeout", "memory")
    typed = [f"--{name}" for name in given if any(word.split("=")[0] == f"--{name}" for word in sys.argv[1:])]
    values = vars(options) | {"only": ",".join(options.only)}
    return "".join(f" {word}" for word in [*told, *(f"{flag} {values[flag[2:]]}" for flag in typed)])


def _installed(name: str, options: argparse.Namespace) -> Environment:
    found = install(name, options.cache)
    print(
        f"{name}: " + (f"not installed: {found.failed}" if found.failed else f"{found.mebibytes:.0f} MiB"), flush=True
    )
    if found.failed and name in ("dpcalc", "truth"):
        raise SystemExit(f"cannot go on without {name}")
    return found


def _machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "system": f"{platform.system()} on {platform.machine()}",
        "python": platform.python_version(),
    }


def _cold_questions(options: argparse.Namespace) -> tuple[shell.Cold, ...]:
    return shell.COLD[:1] if options.quick else shell.COLD


def _cold(question: shell.Cold, environments: dict[str, Environment], options: argparse.Namespace) -> dict[str, Any]:
    found = shell.measure(question, environments, options.repeats)
    print(f"cold: {question.title}", flush=True)
    return found


def _sessions(environments: dict[str, Environment], options: argparse.Namespace) -> list[Session]:
    sessions = []
    for name, environment in environments.items():
        if name == "truth" or environment.failed:
            continue
        adapter = HERE / "adapters" / f"{name.replace('-', '_')}.py"
        session = Session(environment, adapter, memory=options.memory * GIB)
        if session.failed:
            environment.failed = f"its adapter does not start: {session.failed}"
            print(f"{name}: {environment.failed}", flush=True)
        sessions.append(session)
    return sessions


def _answers(
    question: Question, sessions: list[Session], truth: Session, options: argparse.Namespace
) -> dict[str, Any]:
    """Ask everybody once for the answer, then in turns for the time."""
    rows = []
    for session in sessions:
        for method in session.methods.get(question.kind, []):
            rows.append({"package": session.name, "method": method} | _first(session, method, question, options))
    turns(rows, {s.name: s for s in sessions}, question, options)
    print(f"{question.kind}: {question.title}", flush=True)
    result: dict[str, Any] = {"section": question.section, "kind": question.kind, "given": question.given}
    if question.kind in truth.methods:
        found = truth.ask(question.kind, "truth", question.given, patience=3 * options.timeout)
        result["truth"], result["no truth"] = found.get("value"), found.get("says", "")
    return result | {"rows": rows}


def _first(session: Session, method: str, question: Question, options: argparse.Namespace) -> dict[str, Any]:
    found = session.ask(question.kind, method, question.given, patience=options.timeout)
    if "failed" in found or found["seconds"] > 1.0:
        return found | {"times": 1, "timings": []}
    again = session.ask(question.kind, method, question.given, patience=options.timeout, times=1)
    warm = again.get("seconds", found["seconds"])
    return found | {"times": max(1, min(200, int(BATCH / warm))), "timings": [], "warm": warm}


def turns(
    rows: list[dict[str, Any]], sessions: dict[str, Any], question: Question, options: argparse.Namespace
) -> None:
    """Time the methods in turns, every other turn backwards: full repeats below half a second, 3 below 3 s, else 1."""
    for turn in range(options.repeats):
        for row in rows if turn % 2 == 0 else rows[::-1]:
            if "failed" in row or turn >= _turns_of(row, options.repeats):
                continue
            asked = (question.kind, row["method"], question.given)
            found = sessions[row["package"]].ask(*asked, patience=10 * options.timeout, times=row["times"])
            if "seconds" in found:
                row["timings"].append(found["seconds"])
    for row in rows:
        if "failed" not in row:
            row["timings"] = row["timings"] or [row["seconds"]]
            row["median"] = statistics.median(row["timings"])


def _turns_of(row: dict[str, Any], repeats: int) -> int:
    usual = row.get("warm", row["seconds"])
    return repeats if usual < 0.5 else min(repeats, 3) if usual < 3.0 else 0


if __name__ == "__main__":
    sys.exit(main())
