"""`python -m tests.truth [--write FILE]`: the table of what is true and what is promised."""

import argparse
import sys

from dpcalc.files.output import write
from tests.truth.realistic import SIZES, gap
from tests.truth.table import markdown, rows


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.truth", description=__doc__)
    parser.add_argument("--write", metavar="FILE", help="write the page there instead of printing it")
    chosen = parser.parse_args(arguments)
    write(markdown(rows(), [gap(size) for size in SIZES]), chosen.write)
    if chosen.write:
        print(f"wrote {chosen.write}", file=sys.stderr)


if __name__ == "__main__":
    main()
