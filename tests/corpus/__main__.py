"""``python -m tests.corpus record|compare|digests|verify``: see the package."""

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.corpus import recording
from tests.corpus.asking import answers
from tests.corpus.compare import differences, report
from tests.corpus.question import Question, as_data
from tests.corpus.questions import questions


def chosen(only: str | None, limit: int | None) -> list[Question]:
    """Return the questions whose command line matches, evenly spread if there is a limit."""
    found = [one for one in questions() if re.search(only or "", one.line)]
    return found[:: -(-len(found) // limit)] if limit and found else found


def entries(asked: Sequence[Question], python: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield an entry of a recording for every question."""
    for question, answer in answers(asked, python):
        about = {"id": question.id, "command": question.command, "line": question.line}
        yield {**about, **as_data(question), **answer}


def record(options: argparse.Namespace) -> int:
    """Ask, and write the answers."""
    begun = time.monotonic()
    by_code: Counter[tuple[str, str]] = Counter()

    def found() -> Iterator[dict[str, Any]]:
        for entry in entries(chosen(options.only, options.limit), options.python):
            _timed(entry, options.slow)
            by_code[entry["command"], str(entry["code"])] += 1
            yield {name: value for name, value in entry.items() if name != "seconds"}

    recording.write(options.out, found())
    for (command, code), count in sorted(by_code.items()):
        print(f"{command:14} {code:6} {count:5}")
    size = Path(options.out).stat().st_size
    print(f"{by_code.total()} answers, {size} bytes, {time.monotonic() - begun:.0f} s")
    return 0


def _timed(entry: dict[str, Any], slow: float | None) -> None:
    if slow is not None and entry["seconds"] >= slow:
        print(f"{entry['seconds']:8.3f} s {entry['line']}", file=sys.stderr)


def compare(options: argparse.Namespace) -> int:
    """Say how two recordings differ."""
    lines = Path(options.allow).read_text().splitlines() if options.allow else []
    allowed = [line for line in lines if line.strip() and not line.startswith("#")]
    found = differences(recording.read(options.before), recording.read(options.after))
    text, count = report(found, allowed, added_ok=options.added_fields_ok)
    print(text)
    return 1 if count else 0


def digests(options: argparse.Namespace) -> int:
    """Write digests.txt from a recording of all questions."""
    found = recording.read(options.recorded)
    if set(found) != {one.id for one in questions()}:
        raise SystemExit(f"{options.recorded} does not answer exactly the questions of this checkout: record them all")
    recording.write_digests(found.values())
    return 0


def verify(options: argparse.Namespace) -> int:
    """Ask, and list the answers whose digests are not those kept."""
    changed = list(unlike(chosen(options.only, options.limit)))
    print("\n".join([*changed, f"{len(changed)} answers differ from the digests"]))
    return 1 if changed else 0


def unlike(asked: Sequence[Question]) -> Iterator[str]:
    """Yield a line for each question whose answer is not the one kept."""
    known = recording.read_digests()
    for entry in entries(asked):
        was, now = known.get(entry["id"], "never recorded"), recording.digest_line(entry)
        if was != now:
            yield f"{was} -> {now.partition(' ')[2]}: {entry['line']}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add = commands.add_parser("record", help=record.__doc__)
    add.add_argument("out", metavar="OUT.jsonl.gz")
    add.add_argument("--python", metavar="PATH", help="the interpreter whose dpcalc is asked (default: this checkout)")
    add.add_argument("--slow", type=float, metavar="SECONDS", help="list the questions that take so long")
    add.set_defaults(run=record)
    keep = commands.add_parser("digests", help=digests.__doc__)
    keep.add_argument("recorded", metavar="RECORDING")
    keep.set_defaults(run=digests)
    check = commands.add_parser("verify", help=verify.__doc__)
    check.set_defaults(run=verify)
    for one in (add, check):
        one.add_argument("--only", metavar="REGEX", help="questions whose command line matches")
        one.add_argument("--limit", type=int, metavar="N", help="about so many of them, evenly spread")
    two = commands.add_parser("compare", help=compare.__doc__)
    two.add_argument("before")
    two.add_argument("after")
    two.add_argument("--allow", metavar="FILE", help="regular expressions of expected differences, one a line")
    two.add_argument("--added-fields-ok", action="store_true", help="allow JSON fields that are new")
    two.set_defaults(run=compare)
    options = parser.parse_args(arguments)
    return int(options.run(options))


if __name__ == "__main__":
    sys.exit(main())
