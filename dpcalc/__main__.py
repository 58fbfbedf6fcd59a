"""``python -m dpcalc``."""

from dpcalc.cli.main import main

if __name__ == "__main__":
    main()
