"""The flags of the command that started a training job, such as a line of a shell script, as a table."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator

from dpcalc.account.facts import meaning
from dpcalc.errors import SpecError
from dpcalc.files.documents import Field, Node, Scalar, Table
from dpcalc.files.place import clipped

_FLAG = re.compile("--?[A-Za-z]")  # a negative number is a value
_COMMENT = re.compile(r"(^|\s)#.*$", re.MULTILINE)
_NUMBER = re.compile(r"[+-]?[\d.]+([eE][+-]?\d+)?")
_OF_SEVERAL = re.compile(r"\(\)\s*\{|^#SBATCH\b.*\s(--array|-a)\b|^#PBS\s+-[Jt]\s+\d|^#\$\s+-t\s", re.MULTILINE)
"""A function of the shell, and an array of jobs."""
_OF_ELSEWHERE = re.compile(r"\$([@*]|\{?\w*(ARG|OPT|FLAG|EXTRA|PARAM)\w*(\[[@*]\])?\}?)", re.IGNORECASE)
"""Variables that hold more flags."""
_LAUNCHERS = ("mpirun", "mpiexec", "srun", "horovodrun", "jsrun", "accelerate", "deepspeed")
"""Commands that start as many workers as their other flags, or the cluster, say."""
_REPEATS = ("for", "while", "until", "xargs", "parallel", "watch")


def of_command_line(text: Scalar) -> Node:
    """Return the flags of a command, ``--name value`` or ``--name=value``, as a table; other text unchanged.

    If there are several commands, the one whose flags describe a run is read.

    >>> from dpcalc.files.place import Place
    >>> table = of_command_line(Scalar(Place("run.sh"), "cd code; train.py --epochs=3 --dp -b 64 | tee -a log"))
    >>> [(name, field.node.text) for name, field in table.fields.items()]
    [('epochs', '3'), ('dp', 'true'), ('-b', '64')]

    Raises:
        SpecError: a flag is given twice, several commands describe a run, or one runs in a loop.
    """
    try:
        commands = list(_commands(text.text))
    except ValueError:  # an unclosed quotation
        return text
    tables = [table for words in commands if (table := _flags(text, words)).fields]
    if not tables:
        return text
    described = [table for table in tables if any(map(meaning, table.fields))]
    if len(described) > 1:
        raise SpecError(f"{text.place}: {len(described)} commands describe a run", "give the command of one run")
    if described and (_OF_SEVERAL.search(text.text) or any(words[0] in _REPEATS for words in commands)):
        raise SpecError(
            f"{text.place}: the command runs in a loop, a function or an array of jobs",
            "give the command of one run; a ledger adds runs up",
        )
    return (described or tables)[0]


def _commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of a shell script; raise ValueError if a quotation is not closed."""
    for line in _COMMENT.sub("", re.sub(r"\\\r?\n", " ", text)).splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()")
        lexer.whitespace_split, lexer.commenters = True, ""
        for separates, words in itertools.groupby(lexer, lambda word: set(word) <= set(";&|()")):
            if not separates:
                yield list(words)


def _flags(text: Scalar, words: list[str]) -> Table:
    fields: dict[str, Field] = {}
    for place, word in enumerate(words, 1):
        if _FLAG.match(word):
            name, sign, value = word.removeprefix("--").partition("=")
            first, second = [*words[place : place + 2], "-x", "-x"][:2]
            first = "true" if _FLAG.match(first) else f"{first} {second}" if _NUMBER.fullmatch(second) else first
            value = value if sign else first  # two numbers are two runs
            if name in fields:
                raise SpecError(f"{text.place}: {clipped(word)} is given twice", "leave out one of them")
            fields[name] = Field(text.place, Scalar(text.place, value))
    facts = set(filter(None, map(meaning, fields)))
    if facts and (hidden := next(filter(_OF_ELSEWHERE.fullmatch, words), None)):
        raise SpecError(f"{text.place}: the command has more flags in {clipped(hidden)}", "write them out")
    if facts and "devices" not in facts and (launchers := set(_LAUNCHERS) & set(words)):
        fields["devices"] = Field(text.place, Scalar(text.place, " and ".join(sorted(launchers))))
    return Table(text.place, fields)
