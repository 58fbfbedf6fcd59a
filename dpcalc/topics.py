"""The shipped topics: what people look for by a word that names no bound, parameter or command."""

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

from dpcalc.references import read


class Topic(NamedTuple):
    """A topic.

    Attributes:
        name: what it is about.
        says: the answer, in a sentence or two.
        type: a command that works as printed.
        also: other words for it.
        flags: options of other programs that are none here, for the reason that it gives.
        refuses: keys and words of other programs of which no theorem speaks, for the reason that it gives.
    """

    name: str
    says: str
    type: str
    also: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """All words for it, its name first."""
        return (self.name, *self.refuses, *self.flags, *self.also)


@functools.cache
def _data() -> dict[str, Any]:
    import tomllib

    return tomllib.loads(read("topics.toml"))


@functools.cache
def topics() -> tuple[Topic, ...]:
    """Return every topic, in the order of the file."""
    lists = ("also", "flags", "refuses")
    rows: list[dict[str, Any]] = _data()["topic"]
    return tuple(Topic(**{**row, **{name: tuple(row.get(name, ())) for name in lists}}) for row in rows)


def words_for_commands() -> dict[str, tuple[str, ...]]:
    """Return what people type for a command, by the command."""
    return {name: tuple(words) for name, words in _data()["commands"].items()}


def bare(word: str) -> str:
    """Return a word in small letters and digits alone, so that its spellings are one.

    >>> bare("--Secure_Mode"), bare("drop last")
    ('securemode', 'droplast')
    """
    return re.sub(r"[^\w]|_", "", word.lower())


def topic_of(word: str) -> Topic | None:
    """Return the topic that a word names, whatever its spelling; None where there is none.

    >>> topic_of("AdamW").name, topic_of("nothing like it")
    ('momentum', None)
    """
    return next((topic for topic in topics() if bare(word) in map(bare, topic.words)), None)


def refusing(word: str, *, flag: bool = False) -> Topic | None:
    """Return the topic that says why a word of another program stands for no parameter; None for all other words.

    Args:
        word: a key, a value or an option.
        flag: whether it is an option on the command line, which may stand for none for more reasons.
    """
    wanted = bare(word)
    reasons = (topic for topic in topics() if wanted in map(bare, (*topic.refuses, *(topic.flags if flag else ()))))
    return next(reasons, None)
