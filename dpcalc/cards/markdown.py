"""A card as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpcalc.cards.document import CARRIED_OUT, CHECKED, PROMISED, released_line
from dpcalc.cards.fields import Card, Case
from dpcalc.files import Fields
from dpcalc.inert import printable
from dpcalc.model.quantities import ATTACKS
from dpcalc.render.numbers import Side, equation, number

_VOUCHERS = {
    CHECKED: "Checked by dpcalc:",
    CARRIED_OUT: "Carried out by dpcalc:",
    PROMISED: "Promised by who publishes this card:",
}
_OF_CLASSES = {
    "class_shares": "Shares of the classes, assumed to be public",
    "class_weights": "Public weights of their gradients",
}
_RISKS = {
    "advantage": "advantage of any attack",
    "tpr": "true-positive rate at {} false-positive rate",
    "success": "right guess, prior {}",
    "reconstruction": "right guess of a secret, {} without the release",
}


def card_markdown(card: Card, source: str | None = None) -> str:
    """Return a card as Markdown.

    Args:
        card: the document.
        source: the name of the JSON file of the card, if there is one to verify.
    """
    lines = ["# Privacy card", "", *([f"**{_escape(released_line(card['model']))}.**", ""] if card["model"] else [])]
    several = len(card["cases"]) > 1
    for place, case in enumerate(card["cases"], start=1):
        heading = case["name"] or (f"Case {place}" if several else "")
        lines += [*([f"## {_escape(heading)}", ""] if heading else []), *_case(case), ""]
    return "\n".join([*lines, *_foot(card, source)]) + "\n"


def _case(case: Case) -> Iterator[str]:
    guarantee = case["guarantee"]
    for line in guarantee["headline"]:
        yield f"**{_escape(line)}**  "
    yield from ("", _escape(" ".join(filter(None, (guarantee["statement"], guarantee["meaning"])))), "")
    yield from _table([("field", "value"), *_fields(case)])
    if case["risk"]:
        yield from ("", *_table([("what an attacker can do", "at most"), *_risk_rows(case["risk"])]))
    yield from ("", "The guarantee rests on these assumptions.")
    for by, words in _VOUCHERS.items():
        texts = [one["text"] for one in case["assumptions"] if one["by"] == by]
        if texts:
            yield from ("", words, "", *(f"- {_escape(text)}" for text in texts))
    yield from ("", "It does not cover:", "")
    yield from (f"- {_escape(text)}" for text in case["not_covered"])


def _fields(case: Case) -> Iterator[tuple[str, str]]:
    """Yield the rows of the table, their texts escaped."""
    mechanism, guarantee = case["mechanism"], case["guarantee"]
    sampling = "; ".join(filter(None, (mechanism["order"], _values(mechanism["sampling"]))))
    rows = {
        "released": case["released"],
        "unit of privacy": case["unit"]["in_words"],
        "definition": guarantee["definition"],
        "trust": f"{case['trust']['model']}: {case['trust']['in_words']}",
        "algorithm": mechanism["algorithm"],
        "sampling": sampling if mechanism["entries"] is None else "",
        **{name: _values(mechanism[name]) for name in ("clipping", "noise", "steps")},
        **{f"entry {entry['name']}": _entry(entry) for entry in mechanism["entries"] or ()},
    }
    yield from ((_escape(name), _escape(text)) for name, text in rows.items() if text)
    for theorem in case["theorems"]:
        yield "proved by", f"{_escape(theorem['reference'])} (`{printable(theorem['bound'])}`)"
        if theorem["certified"]:
            yield "certified", f"in ball arithmetic, at {_escape(str(theorem['certified']['bits']))} bits"
    yield "configuration", f"SHA-256 `{case['configuration_sha256']}`"


def _entry(entry: Fields) -> str:
    named = {name: value for name, value in entry.items() if isinstance(value, (int, float, str))}
    named.pop("name", None)
    return ", ".join(f"{name} = {number(value, side=Side.AS_GIVEN)}" for name, value in named.items())


def _values(values: dict[str, float | str]) -> str:
    return ", ".join(equation(name, value) for name, value in values.items())


def _risk_rows(risk: Fields) -> Iterator[tuple[str, str]]:
    for name, at in ATTACKS.items():
        rows = risk[name] if at else [risk[name]]
        for row in rows:
            share = f"{number(100.0 * row[at], 6)}%" if at else ""
            yield _RISKS[name].format(share), number(row["value"], 4, Side.UP)
    if risk["mu"]:
        delta = risk["mu"]["delta"]
        where = f" where delta is above {number(delta, 3, Side.UP)}" if delta else ""
        yield f"Gaussian privacy{where}", f"mu = {number(risk['mu']['value'], 6, Side.UP)}"


def _foot(card: Card, source: str | None) -> Iterator[str]:
    yield from ("---", "")
    if card["model"]:
        yield f"Model: SHA-256 `{card['model']['sha256']}`, noise from `{_escape(card['model']['noise_source'])}`.  "
        model: Fields = dict(card["model"])
        for name in (name for name in _OF_CLASSES if name in model):
            yield f"{_OF_CLASSES[name]}: {', '.join(f'{value:.4g}' for value in model[name])}.  "
    yield f"Computed by dpcalc {_escape(card['dpcalc'])}; guarantees are rounded up.  "
    yield f"Card: `{card['schema']}`, SHA-256 `{card['sha256']}`.  "
    yield f"Verify: `dpcalc verify {source or 'CARD.json'}` recomputes every number of the card."


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    cells = [rows[0], tuple("---" for _ in rows[0]), *rows[1:]]
    return ["| " + " | ".join(row) + " |" for row in cells]


def _escape(text: str) -> str:
    text = printable(text)
    for mark in ("\\", "|", "*", "<", "_", "[", "]"):
        text = text.replace(mark, {"<": "&lt;"}.get(mark, "\\" + mark))
    return text
