"""The shipped bibliography."""

from __future__ import annotations

import os
import re

SHORT = {
    "feldman2018": "Feldman, Mironov, Talwar and Thakurta 2018",
    "chourasia2021": "Chourasia, Ye and Shokri 2021",
    "ye2022": "Ye and Shokri 2022",
    "bok2024": "Bok, Su and Altschuler 2024",
    "dong2022": "Dong, Roth and Su 2022",
    "mironov2017": "Mironov 2017",
    "asoodeh2020": "Asoodeh, Diaz and Calmon 2020",
    "sordello2021": "Sordello, Bu and Dong 2021",
    "dwork2010": "Dwork, Rothblum and Vadhan 2010",
    "kairouz2015": "Kairouz, Oh and Viswanath 2015",
    "wang2022": "Wang, Lei, Ying and Zhang 2022",
    "wang2019": "Wang, Balle and Kasiviswanathan 2019",
    "wang2023": "Wang, Jayaraman, Evans and Gu 2023",
    "zhu2022": "Zhu, Dong and Wang 2022",
    "balle2019": "Balle, Barthe, Gaboardi and Geumlek 2019",
    "ballesub2018": "Balle, Barthe and Gaboardi 2018",
    "chua2024": "Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha and Zhang 2024",
    "chua2025": "Chua, Ghazi, Harrison, Leeman, Kamath, Kumar, Manurangsi, Sinha and Zhang 2025",
    "steinke2025": "Steinke, Nasr, Ganesh, Balle, Choquette-Choo, Jagielski, Hayes, Thakurta, Smith and Terzis 2025",
    "bousquet2020": "Bousquet, Klochkov and Zhivotovskiy 2020",
    "denisov2022": "Denisov, McMahan, Rush, Smith and Thakurta 2022",
    "choquette2023": "Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta and Xu 2023",
    "choquette2025": "Choquette-Choo, Ganesh, Haque, Steinke and Thakurta 2025",
    "dpcalc": "dpcalc, docs/method.md",
    "dpcalc-note": "dpcalc, docs/note/note.md",
}
"""How a source is named in a sentence, by its BibTeX key."""

_DATA = os.path.join(os.path.dirname(__file__), "data")


def read(name: str) -> str:
    """Return the text of a file shipped in the package's data folder."""
    with open(os.path.join(_DATA, name), encoding="utf-8") as stream:
        return stream.read()


def method() -> str:
    """Return the theorems and their proofs, docs/method.md.

    Raises:
        OSError: it is not there.
    """
    return _document("method.md")


def note() -> str:
    """Return the note, docs/note/note.md: what is new here, as a paper has it.

    Raises:
        OSError: it is not there.
    """
    return _document("note.md", "note")


def _document(name: str, *folders: str) -> str:
    """Return a file of docs/: as shipped in a wheel, or from these folders of the checkout."""
    try:
        return read(name)
    except FileNotFoundError:
        return read(os.path.join("..", "..", "docs", *folders, name))


def method_sections() -> dict[str, str]:
    """Return the sections of the method: heading, as links write it -> text."""
    parts = re.split(r"^(?=## )", method(), flags=re.MULTILINE)[1:]
    return {anchor(part.partition("\n")[0].removeprefix("## ")): part for part in parts}


def anchor(heading: str) -> str:
    """Return a heading as links write it.

    >>> anchor("Sampled steps, every iterate public")
    'sampled-steps-every-iterate-public'
    """
    return re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-"))


def proof_of(bound: str) -> str:
    """Return the section of the method that first names a bound, as links write it; empty where none does."""
    return next((section for section, text in method_sections().items() if f"`{bound}`" in text), "")


def entries() -> dict[str, str]:
    """Return the BibTeX entries by key."""
    blocks = [block.strip() for block in read("references.bib").split("\n@") if block.strip()]
    texts = ("@" + block.removeprefix("@") for block in blocks)
    return {entry[entry.index("{") + 1 : entry.index(",")]: entry for entry in texts}
