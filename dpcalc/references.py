"""The shipped bibliography."""

from __future__ import annotations

from pathlib import Path

SHORT = {
    "feldman2018": "Feldman, Mironov, Talwar and Thakurta 2018",
    "bok2024": "Bok, Su and Altschuler 2024",
}
"""How a source is named in a sentence, by its BibTeX key."""

DATA = Path(__file__).parent / "data"


def entries() -> dict[str, str]:
    """Return the BibTeX entries by key."""
    text = (DATA / "references.bib").read_text(encoding="utf-8")
    blocks = [block.strip() for block in text.split("\n@") if block.strip()]
    found = ("@" + block.removeprefix("@") for block in blocks)
    return {entry[entry.index("{") + 1 : entry.index(",")]: entry for entry in found}
