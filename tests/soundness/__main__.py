"""``python -m tests.soundness --cases 1000000 [--seed 0] [--jobs 2] [--only ID_OR_FAMILY ...] [--case NUMBER]``."""

import argparse
import contextlib
import sys

from dpcalc.cli.cluster import there_of
from tests.soundness.campaign import campaign, one, report


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign and print its tally; 1 if a value is below the truth, or beyond its stated slack."""
    parser = argparse.ArgumentParser(prog="python -m tests.soundness", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--only", action="append", default=[], metavar="ID", help="a bound, a conversion or a family")
    parser.add_argument("--cluster", metavar="ADDRESS", help="as of dpcalc check; workers need these tests too")
    parser.add_argument("--insecure", action="store_true")
    parser.add_argument("--case", type=int, metavar="NUMBER", help="this case alone, in full")
    options = parser.parse_args(arguments)
    if options.case is not None:
        print(one(options.seed, options.case, tuple(options.only)))
        return 0
    machines = there_of(options.cluster, options.insecure, options.jobs)
    with machines.runs() if machines is not None else contextlib.nullcontext(None) as there:
        how = {"first": options.first, "progress": sys.stderr, "there": there}
        tally = campaign(options.cases, options.seed, options.jobs, tuple(options.only), **how)
    print(report(tally))
    return 1 if tally.failures or tally.loose else 0


if __name__ == "__main__":
    sys.exit(main())
