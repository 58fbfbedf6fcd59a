"""``dpcalc help``."""

from __future__ import annotations

import shlex
import sys
import textwrap

import click

from dpcalc.cli.commands.find import typed
from dpcalc.cli.help.option import WithHelp, nearest
from dpcalc.cli.help.search import found
from dpcalc.cli.types import Word
from dpcalc.errors import SpecError
from dpcalc.files.output import write
from dpcalc.references import method, method_sections, note, read
from dpcalc.topics import Topic, topic_of

TOPICS = ("adjacency", "noise", "sampling", "order", "loss-class", "release")
"""The topics that have a page in the package's data."""

METHOD = "method"
"""The page with all theorems and their proofs."""

NOTE = "note"
"""The page with the new theorems, written as a paper."""

_SCREENFUL = 100
"""Longer texts are paged on a terminal: the method, its sections and the note."""


@click.command("help", cls=WithHelp)
@click.argument("topic", metavar="[TOPIC]", required=False, type=Word(lambda: (*TOPICS, METHOD)))
def command(topic: str | None) -> None:
    """Say what to type first, or show a page about a topic, a command or a parameter, or the proofs.

    \b
      dpcalc help
      dpcalc help sampling
      dpcalc help rdp
      dpcalc help noise-std
      dpcalc help method
      dpcalc help method#sampled-steps
      dpcalc help note
    """
    text = page(topic or "start")
    if text.count("\n") > _SCREENFUL and sys.stdout.isatty():
        click.echo_via_pager(text)
    else:
        write(text, None)


def page(topic: str) -> str:
    """Return the page about a topic, a command or a parameter, the method or a section of it, or the note.

    Raises:
        SpecError: there is no such page.
    """
    from dpcalc.cli.types import COMMANDS

    word = topic.strip().lstrip("-").lower().replace("_", "-")
    if word in (*TOPICS, "start"):
        return read(f"help/{word}.txt")
    if word in (NOTE, METHOD) or word.startswith(f"{METHOD}#"):
        return note() if word == NOTE else _of_method(word.partition("#")[2])
    if word in COMMANDS:
        return _of_command(word)
    if text := _of_parameter(word):
        return text
    if entry := topic_of(word):
        shown = _page_of(entry)
        whole = shown in TOPICS or shown.startswith(METHOD)
        return page(shown) if whole else "\n".join([*textwrap.wrap(entry.says, 80), *typed(entry.type)]) + "\n"
    close = nearest(word, (*TOPICS, *COMMANDS, METHOD, NOTE))
    if not close and found([topic]):
        raise SpecError(f"there is no page on {topic!r}", f"`dpcalc find {shlex.quote(topic)}` says where it is")
    hint = f"did you mean `dpcalc help {close[0]}`?" if close else f"the topics are {', '.join(TOPICS)}"
    raise SpecError(f"there is no help on {topic!r}", hint)


def _page_of(topic: Topic) -> str:
    """Return the page of a topic; empty if the topic has none."""
    page, of_help, shown = topic.type.partition("dpcalc help ")
    return shown if of_help and not page else ""


def _of_method(section: str) -> str:
    """Return docs/method.md, or the section whose heading starts with these words, joined by hyphens.

    Raises:
        SpecError: there is no such section.
    """
    if not section:
        return method()
    parts = method_sections()
    body = parts.get(section) or next((part for anchor, part in parts.items() if anchor.startswith(section)), "")
    if not body:
        raise SpecError(f"{METHOD} has no section {section!r}", f"the sections are {', '.join(parts)}")
    return body


def _of_command(name: str) -> str:
    from dpcalc.cli.help.layout import short_page
    from dpcalc.cli.main import cli

    parent = click.Context(cli, info_name="dpcalc", help_option_names=["-h", "--help"])
    command = cli.get_command(parent, name)
    assert command is not None
    return short_page(click.Context(command, parent, info_name=name)) + "\n"


def _of_parameter(word: str) -> str:
    """Return a parameter's meaning and the commands that take it; empty if the word is not a parameter."""
    from dpcalc.cli.help.layout import about
    from dpcalc.engine.commands import COMMANDS
    from dpcalc.model.parameter import PARAMETERS, meant_by

    name = word.replace("-", "_")
    name = name if name in PARAMETERS else meant_by(word, PARAMETERS)
    if not name:
        return ""
    takers = [command for command, record in COMMANDS.items() if name in record.parameters] or ["every question"]
    topic = topic_of(name)
    more = [f"More: dpcalc help {_page_of(topic)}"] if topic and _page_of(topic) in TOPICS else []
    return "\n".join([*about(PARAMETERS[name]), f"Taken by {', '.join(takers)}.", *more]) + "\n"
