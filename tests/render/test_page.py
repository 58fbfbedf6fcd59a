"""The page of a report: what it says, that nothing breaks out of it, and that everybody can read it."""

import base64
import hashlib
import itertools
import math
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

import dpcalc
from dpcalc.checked import Change
from dpcalc.engine.ask import ask
from dpcalc.model.question import Question
from dpcalc.render import Asked
from dpcalc.render.page import render_html
from dpcalc.report import Report
from tests.render.test_check_reports import (
    ALL,
    BROKEN,
    EPSILON,
    ERROR,
    FAILED,
    HELD,
    HOSTILE,
    PASSED,
    SKIPPED,
    case,
)

RUN = {"records": 60000, "lipschitz": 1.0, "smoothness": 1.0, "step_size": 0.1, "noise_std": 2.0}
QUESTION = Question(None, 1e-6, math.log(1e-6), curves=True)
CSS = (Path(dpcalc.__file__).parent / "render" / "page" / "page.css").read_text(encoding="utf-8")
VOID = {"meta", "img"}


class Tree(HTMLParser):
    """Elements, attributes and texts of a page; it refuses elements that are not closed in their order."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names)
        self.elements.append((tag, dict(attrs)))
        self.texts += [("img", words) for name, words in attrs if name == "alt" and words]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(words for tag, words in self.texts if tag != "style").split())


def page(report: Report, **asked: object) -> str:
    return render_html(report, Asked(**asked))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def answer() -> str:
    return page(Report("rdp", (ask("rdp", RUN, QUESTION),)), typed=("rdp", "-n", "6 0"))


ELEMENTS = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "section", "footer", "div", "p", "h1", "h2",
    "h3", "h4", "h5", "span", "small", "a", "ul", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td",
    "details", "summary", "figure", "figcaption", "pre", "code", "meter", "img",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "class", "scope", "href", "id", "open", "aria-hidden", "value",
    "data-label", "tabindex", "role", "aria-label", "src", "alt",
}  # fmt: skip


DRAWN = {
    "svg", "metadata", "RDF", "Work", "type", "format", "creator", "Agent", "title", "defs", "style", "clipPath", "g",
    "path", "rect", "text", "tspan", "use",
}  # fmt: skip


def drawing(image: dict[str, str | None]) -> Iterator[str]:
    """Yield the elements of an image, which is in the page and refers to nothing but itself."""
    kind, _, data = (image["src"] or "").partition(",")
    assert kind == "data:image/svg+xml;base64"
    for element in ElementTree.fromstring(base64.b64decode(data)).iter():
        yield element.tag.rpartition("}")[2]
        links = [value for name, value in element.attrib.items() if name.endswith("href")]
        links += re.findall(r"url\((.*?)\)", element.get("clip-path", "") + element.get("style", ""))
        assert all(link.startswith("#") for link in links)
        assert not any(name.startswith("on") for name in element.attrib)


def inert(text: str) -> Tree:
    """Return the elements of a page of which none runs, loads or leads anywhere else."""
    tree = Tree(text)
    assert {tag for tag, _ in tree.elements} <= ELEMENTS
    assert {name for _, attributes in tree.elements for name in attributes} <= ATTRIBUTES
    assert all(re.fullmatch(r"#(case|grounds)-\d+", link["href"] or "") for link in tree.all("a"))
    assert all(set(drawing(image)) <= DRAWN for image in tree.all("img"))
    ids = [attributes["id"] for _, attributes in tree.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    assert {(link["href"] or "")[1:] for link in tree.all("a")} <= set(ids)
    return tree


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_breaks_out(text: str) -> None:
    hostile = case(
        EPSILON._replace(bound=text, reference=text, assumes=(text,), title=text), name=text, file=text,
        gates=[BROKEN._replace(text=text), HELD], message=text, hint=text, warnings=[text], status="failed",
    )._replace(notes=(text,), algorithm=text, inputs={text: (text, text)})  # type: ignore[dict-item] # fmt: skip
    changes = (Change(text, text, text, text, text, text, True),)
    found = inert(page(Report("check", (hostile, PASSED), ((text, text),), changes), typed=("check", text)))
    shown = found.text
    assert all(character.isprintable() for character in shown)
    assert "\u202e" not in shown
    assert len(shown) < 60_000
    assert len(found.all("details")) == 2


@pytest.mark.parametrize("report", [ALL, Report("check", ()), Report("rdp", (PASSED._replace(check=None),))])
def test_every_report_has_a_page(report: Report) -> None:
    inert(page(report))


def test_the_policy_lets_nothing_in_but_the_style(answer: str) -> None:
    tree = Tree(answer)
    [policy] = [meta["content"] for meta in tree.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    [style] = [words for tag, words in tree.texts if tag == "style"]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    rules = dict(rule.strip().split(" ", 1) for rule in (policy or "").split(";"))
    assert rules == {
        "default-src": "'none'", "style-src": f"'sha256-{digest}'", "img-src": "data:", "base-uri": "'none'",
        "form-action": "'none'",
    }  # fmt: skip
    assert "http:" not in answer
    assert "https:" not in answer
    assert "url(" not in CSS
    assert "@import" not in CSS


def test_the_verdict_comes_first() -> None:
    verdicts = [
        ((PASSED,), ("Passed", "The gate held.")),
        ((PASSED, PASSED), ("Passed", "All 2 gates held, in 2 cases.")),
        ((PASSED, FAILED), ("Not passed", "1 of 2 cases did not pass; 2 of 3 gates held.")),
        ((ERROR,), ("Not passed", "no guarantee applies")),
        ((case(EPSILON),), ("No gate", "No gate was set: this is an answer, and no verdict.")),
        ((SKIPPED,), ("No gate", "No gate was set: this is an answer, and no verdict.")),
        ((PASSED, SKIPPED), ("Passed, with reservations", "The gate held.")),
    ]
    for cases, (word, said) in verdicts:
        text = Tree(page(Report("check", cases))).text
        assert re.search(rf"dpcalc check ([\u2713\u2717] )?{word} {re.escape(said)}", text), cases


def test_a_page_is_green_only_where_every_gate_held_and_there_is_one() -> None:
    for cases in itertools.product((PASSED, FAILED, ERROR, SKIPPED, case(EPSILON)), repeat=2):
        [header] = Tree(page(Report("check", cases))).all("header")
        fails = FAILED in cases or ERROR in cases
        assert header["class"] == (
            "bad" if fails else "plain" if PASSED not in cases else "ok" if cases == (PASSED, PASSED) else "part"
        )


def test_what_a_verdict_does_not_cover_is_said() -> None:
    text = Tree(page(Report("check", (PASSED, SKIPPED, case(EPSILON)), (("a.yaml", "b"),)))).text
    for words in ("1 case is skipped: later", "1 case has no gate", "1 case was not selected: b"):
        assert words in text


def test_failures_come_first_and_are_unfolded() -> None:
    tree = Tree(page(Report("check", (PASSED, PASSED, FAILED))))
    rows = [row["class"] for row in tree.all("tr") if "class" in row]
    assert rows == ["bad", "ok", "ok", "ok"]
    assert ["open" in each for each in tree.all("details")] == [True, False, False]


def test_of_very_many_cases_those_that_failed_are_shown() -> None:
    tree = inert(page(Report("check", (*(PASSED,) * 300, FAILED))))
    assert len(tree.all("details")) == 100
    assert [each["id"] for each in tree.all("details") if each["class"] == "case bad"] == ["case-301"]
    assert tree.all("tr")[1]["class"] == "bad"
    assert "201 more cases are not shown here." in tree.text


def test_changes_against_a_baseline() -> None:
    changes = (Change("a.yaml", "budget", "epsilon", "1", "2", "up x2, worse"),)
    text = Tree(page(Report("check", (PASSED,), changes=changes))).text
    assert "Since the baseline" in text
    assert "up x2, worse" in text
    assert "Nothing has changed." in Tree(page(Report("check", (PASSED,), changes=()))).text
    assert "Since the baseline" not in Tree(page(Report("check", (PASSED,)))).text


def test_the_evidence(answer: str) -> None:
    text = inert(answer).text
    for words in (
        "epsilon \u2264 4.88656 at delta = 1e-06",
        "is right at most 69.2% of the time",
        "Promised by the author one pass in a fixed order, each record used once",
        "Checked by dpcalc 1 <= index <= records",
        "epsilon is at most 4.88656, and no guarantee that uses only how far two gradients are apart is below 1.93934.",
        "at 1% false-positive rate a true-positive rate of at most 9.24%",
        "true-positive rate at 1% false-positive rate 0.09237 iteration.pnsgd",
        "lipschitz L 1 given",
        "Feldman, Mironov, Talwar and Thakurta 2018. Privacy Amplification by Iteration.",
        "dpcalc help method#one-pass-in-a-fixed-order",
        "dpcalc rdp -n '6 0'",
    ):
        assert words in text


def test_without_matplotlib_a_page_says_how_to_get_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    tree = inert(page(Report("rdp", (ask("rdp", RUN, QUESTION),))))
    assert not tree.all("img")
    assert "Figures need matplotlib: pip install 'dpcalc[plot]'" in tree.text
    assert "epsilon is at most 4.88656, and no guarantee" in tree.text


def test_a_delta_below_all_doubles_is_drawn() -> None:
    tree = inert(page(Report("rdp", (ask("rdp", {**RUN, "noise_std": 20.0}, Question(60.0, curves=True)),))))
    first, *_ = (image["alt"] or "" for image in tree.all("img"))
    assert re.search(r"The answer is the point epsilon 60, delta \d\.\d+e-\d{4,}\.", first)


def test_what_was_certified_is_shown() -> None:
    proved = ask("rdp", RUN, QUESTION, certified=True)
    text = Tree(page(Report("rdp", (proved,)))).text
    assert "1 of 1 answers certified" in text.replace("answers certified 1 of 1", "1 of 1 answers certified")
    assert re.search(r"What was proved certified: iteration.pnsgd: epsilon lies in \[4\.88\d+, 4\.88\d+\]", text)


def test_fifty_cases_are_small() -> None:
    cases = [
        ask("rdp", {**RUN, "noise_std": 2.0 + 0.1 * place}, QUESTION, notes=False, best_only=True)
        for place in range(50)
    ]
    checked = [
        each._replace(
            check=case(name=f"sweep[noise_std={place}]").check,
            assertions=(HELD._replace(value=each.best.value if each.best else 0.0),),
        )
        for place, each in enumerate(cases)
    ]
    text = page(Report("check", tuple(checked)))
    tree = inert(text)
    pictures = [len(image["src"] or "") for image in tree.all("img")]
    assert max(pictures) < 40_000
    assert len(text) - sum(pictures) < 200_000
    assert len(tree.all("details")) == 50
    assert len(tree.all("img")) == 2 * 12
    assert "The same in all cases" in tree.text
    assert tree.text.count("one pass in a fixed order, each record used once") == 1


@pytest.mark.parametrize("report", [ALL, None], ids=["check", "query"])
def test_pictures_have_words_and_headings_are_in_order(report: Report | None, answer: str) -> None:
    tree = Tree(answer if report is None else page(report))
    assert all(image["alt"] for image in tree.all("img"))
    levels = [int(tag[1]) for tag, _ in tree.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert all("scope" in cell or cell == {} for cell in tree.all("th"))


# --- colours: WCAG 2.2, 1.4.3 and 1.4.11 ------------------------------------------------------------------------------


def luminance(color: str) -> float:
    digits = color.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    shares = [int(digits[place : place + 2], 16) / 255.0 for place in (0, 2, 4)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(weight * each for weight, each in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_formula_of_contrast() -> None:
    assert contrast("#000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.005)


THEMES = [dict(re.findall(r"--([\w-]+): (#\w+);", block)) for block in re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)]
TEXTS = [
    *itertools.product(("text", "quiet", "accent", "ok", "bad", "plain"), ("page", "card")),
    *itertools.product(("text", "quiet"), ("ok-back", "bad-back", "part-back", "plain-back")),
    ("ok", "ok-back"), ("bad", "bad-back"), ("part", "part-back"), ("plain", "plain-back"), ("accent", "bad-back"),
    ("text", "band"),
]  # fmt: skip
SHAPES = [("accent", "card"), ("accent", "band"), ("quiet", "card"), ("limit", "card"), ("ok", "grid"), ("bad", "grid")]


def test_there_are_three_themes() -> None:
    assert len(THEMES) == 3  # light, dark and print
    assert len({frozenset(theme) for theme in THEMES}) == 1


@pytest.mark.parametrize("theme", THEMES, ids=["light", "dark", "print"])
def test_colours_can_be_told_apart(theme: dict[str, str]) -> None:
    weak = [(pair, contrast(*(theme[name] for name in pair))) for pair in TEXTS]
    assert [found for found in weak if found[1] < 4.5] == []
    faint = [(pair, contrast(*(theme[name] for name in pair))) for pair in SHAPES]
    assert [found for found in faint if found[1] < 3.0] == []
