"""``python -m dpcalc``."""

import sys

if __name__ == "__main__":
    # Python puts the current folder first among the folders that modules come from. Nothing there is to be run. The
    # package itself is imported already, wherever it was found.
    if not sys.flags.safe_path:
        del sys.path[0]
    from dpcalc.cli.main import main

    main()
