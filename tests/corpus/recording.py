"""Recordings: a compressed file with a line of JSON for every question, and the digests of one."""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.corpus.normal import digest

DIGESTS = Path(__file__).with_name("digests.txt")


def write(path: str, entries: Iterable[Mapping[str, Any]]) -> None:
    """Write a recording; the same entries give the same bytes."""
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
        for entry in entries:
            packed.write(json.dumps(entry).encode() + b"\n")


def read(path: str) -> dict[str, dict[str, Any]]:
    """Return the entries of a recording by their ids."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return {entry["id"]: entry for entry in map(json.loads, stream)}


def digest_line(entry: Mapping[str, Any]) -> str:
    """Return what is kept of an answer in this repository."""
    return f"{entry['id']} {entry['code']} {digest(entry)}"


def write_digests(entries: Iterable[Mapping[str, Any]]) -> None:
    """Write the digests, sorted, so that a change of one answer changes one line."""
    DIGESTS.write_text("\n".join(sorted(map(digest_line, entries))) + "\n")


def read_digests() -> dict[str, str]:
    """Return the line of every question by its id."""
    return {line.partition(" ")[0]: line for line in _lines()}


def _lines() -> Iterator[str]:
    yield from DIGESTS.read_text().splitlines() if DIGESTS.exists() else ()
