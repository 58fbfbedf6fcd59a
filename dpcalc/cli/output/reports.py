"""``--report KIND=FILE``: the kinds, the destinations, and the writing of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from dpcalc.cli.output.terminal import Lost, attempt
from dpcalc.errors import SpecError
from dpcalc.files.output import write
from dpcalc.inert import printable
from dpcalc.render import Asked, Kind
from dpcalc.report import Report

if TYPE_CHECKING:
    from dpcalc.render.check.inputs import Snapshot


class Destination(NamedTuple):
    """A report to write: its kind and its file."""

    kind: str
    path: str

    @property
    def option(self) -> str:
        """The option that names the file."""
        return f"--report {self.kind}="


def destinations(texts: Sequence[str], kinds: Mapping[str, Kind], *, example: str) -> list[Destination]:
    """Parse the reports to write.

    Args:
        texts: as typed.
        kinds: those that the command writes.
        example: of such an option.

    Raises:
        SpecError: a kind is unknown, its package is missing, or a name has a wrong suffix.
    """
    return [_destination(text, kinds, example) for text in texts]


def _destination(text: str, kinds: Mapping[str, Kind], example: str) -> Destination:
    name, _, path = text.partition("=")
    if name not in kinds or not path:
        raise SpecError(f"--report {text}: not KIND=FILE", f"KIND is one of {', '.join(kinds)}: {example}")
    kind = kinds[name]
    if kind.suffixes and not path.lower().endswith(kind.suffixes):
        raise SpecError(
            f"--report {text}: the kind of file is not known", f"end the name in {' or '.join(kind.suffixes)}"
        )
    if kind.package:
        need(kind.package, f"--report {name}=")
    return Destination(name, path)


def need(package: str, what: str) -> None:
    """Refuse what needs a missing package.

    Raises:
        SpecError: it is not installed.
    """
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise SpecError(f"{what} needs {package}, which is not installed", "pip install 'dpcalc[report]'")


def written_to(file: str | None, reports: Iterable[Destination]) -> list[tuple[str | None, str]]:
    """Return the files that a command writes, each with its option."""
    return [(file, "-o"), *((report.path, report.option) for report in reports)]


def asked(report: Destination, precision: int, baseline: Snapshot | None = None) -> Asked:
    """Return the options of writing a report."""
    return Asked(precision, report.path, baseline, typed())


def typed() -> tuple[str, ...]:
    """Return the words of the command line after the program's name; none if unknown."""
    context = click.get_current_context(silent=True)
    words = context.find_root().obj if context else None
    return words if isinstance(words, tuple) else ()


def write_reports(
    report: Report, reports: Sequence[Destination], kinds: Mapping[str, Kind], precision: int
) -> list[Lost]:
    """Write the reports, each even if others fail, and return what could not be written."""
    lost: list[Lost] = []
    for destination in reports:

        def work(destination: Destination = destination) -> None:
            text = kinds[destination.kind].write(report, asked(destination, precision))
            write(text, destination.path, destination.option)

        lost += attempt(printable(f"{destination.option}{destination.path}"), work)
    return lost
