"""Where something is wrong in a file, and how an error says so."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import NamedTuple

from dpcalc.errors import SpecError

_COMPARED = 200  # names among which one that is spelt alike is looked for


class Place(NamedTuple):
    """Where something stands; line 0 where only the file is known."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"

    def error(self, what: str, hint: str | None = None, *, discreet: str | None = None) -> FileError:
        """Return the error that says where; see `FileError`."""
        return FileError(self, what, hint, discreet)


class FileError(SpecError):
    """Something wrong at a place in a file.

    Attributes:
        place: where it is.
        what: what is wrong; the message is the place and this.
        discreet: the message without a quotation of what the file holds.
    """

    def __init__(self, place: Place, what: str, hint: str | None = None, discreet: str | None = None) -> None:
        super().__init__(f"{place}: {what}", hint)
        self.place, self.what = place, what
        self.discreet = f"{place}: {what if discreet is None else discreet}"
        self._unquoted = discreet

    def __reduce__(self) -> tuple[type[FileError], tuple[Place, str, str | None, str | None]]:
        """Return how it is made again in another process."""
        return type(self), (self.place, self.what, self.hint, self._unquoted)


def clipped(text: str) -> str:
    """Return a text as messages quote it."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def near(word: str, names: Iterable[str]) -> str:
    """Return ``did you mean ...?``, or the list of names; only the first 200 are compared."""
    import difflib  # a hint is rare

    listed = list(itertools.islice(names, _COMPARED + 1))
    alike = difflib.get_close_matches(word[:60], listed, n=1)
    shown = ", ".join(listed[:_COMPARED]) + (", ..." if len(listed) > _COMPARED else "")
    return f"did you mean {alike[0]}?" if alike else f"known here: {shown}"
