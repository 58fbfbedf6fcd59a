#!/bin/sh
# Write the completion scripts and the manual page anew, after a command or an option has changed.
set -e
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
PYTHONPATH=. "$python" -m dpcalc completions bash -o completions/dpcalc.bash
PYTHONPATH=. "$python" -m dpcalc completions zsh -o completions/_dpcalc
PYTHONPATH=. "$python" -m dpcalc completions fish -o completions/dpcalc.fish
PYTHONPATH=. "$python" -m dpcalc completions man -o docs/dpcalc.1
