"""Words of the command line that are options and names of files at once.

A shell makes ``*.yaml`` the names of files, and a hook passes those that changed. A file whose name begins with a dash
would be an option there: ``--run=^harmless$|.yaml`` judges another case, ``--help`` judges none.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from dpcalc.errors import SpecError
from dpcalc.inert import printable


def refuse_files(words: Sequence[str]) -> None:
    """Refuse a command line in which an option is the name of a file, or leads into a folder of that name.

    After ``--`` there are no options; ``-`` stands for standard input there as well.

    Raises:
        SpecError: one is.
    """
    end = words.index("--") if "--" in words else len(words)
    for number, word in enumerate(words):
        option = word.startswith("-") and number < end
        if (option or word == "-") and os.path.lexists(word.split(os.sep)[0]):
            meant = "an option" if option and word != "-" else "standard input or output"
            raise SpecError(
                f"{word} is {meant}, and the name of a file here",
                f"write ./{word} for the file, or -- before all files; to mean {meant}, rename the file",
            )


def refuse_selecting(pattern: str | None) -> None:
    """Refuse a selection of cases by their names that is the name of a file.

    Raises:
        SpecError: it is.
    """
    if pattern is not None and os.path.lexists(pattern):
        shown = printable(pattern)
        raise SpecError(
            f"--run {shown} is the name of a file, and chooses cases by theirs",
            f"for a case of that name: --run '^{shown}$'",
        )
