"""One search over bounds, errata, parameters and their values, commands, topics and examples."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dpcalc.plain_enum import PlainEnum
from dpcalc.topics import bare, topics, words_for_commands


class Kind(PlainEnum):
    """The kinds of entries."""

    BOUND = "bound"
    ERRATUM = "erratum"
    PARAMETER = "parameter"
    WORD = "word"
    COMMAND = "command"
    TOPIC = "topic"
    EXAMPLE = "example"


class Entry(NamedTuple):
    """An entry of the search.

    Attributes:
        kind: its kind.
        name: its name.
        text: the answer in a line or two.
        command: the command that shows more.
        words: its other names.
        place: its place in a paper.
        more: further words to match.
    """

    kind: Kind
    name: str
    text: str
    command: str
    words: tuple[str, ...] = ()
    place: str = ""
    more: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """All its names."""
        return (self.name, *self.words)

    @property
    def said_of(self) -> str:
        """The subject of its text; the same for all bounds of one theorem."""
        return self.text.partition(": ")[0] if self.place else self.name

    def to_dict(self) -> dict[str, str]:
        """Return the fields for JSON."""
        return {"kind": self.kind, "name": self.name, "text": self.text, "command": self.command}


# --- entries ---------------------------------------------------------------------------------------------------------


def entries() -> list[Entry]:
    """Return all entries."""
    return [*_topics(), *_commands(), *_parameters(), *_bounds(), *_examples()]


def _topics() -> Iterator[Entry]:
    for topic in topics():
        yield Entry(Kind.TOPIC, topic.name, topic.says, topic.type, topic.words[1:])


def _commands() -> Iterator[Entry]:
    from dpcalc.cli.types import COMMANDS

    words = words_for_commands()
    for name, help in COMMANDS.items():
        yield Entry(Kind.COMMAND, name, f"{name}: {help}", f"dpcalc {name} --help", words.get(name, ()))


def _parameters() -> Iterator[Entry]:
    from dpcalc.model.glosses import GLOSSED
    from dpcalc.model.parameter import EVERY, name_of, other_words

    for name, parameter in EVERY.items():
        glossed = GLOSSED.get(name)
        command = f"dpcalc help {parameter.flag[2:]}"
        text = f"{parameter.flag}: {glossed.lead if glossed else parameter.help}"
        # A clipping norm may stand for a Lipschitz constant, but is a parameter of its own.
        words = [word for word in parameter.synonyms if name_of(word) in (word, name)]
        yield Entry(Kind.PARAMETER, name, text, command, (*words, *parameter.aliases))
        for word, gloss in (glossed.words if glossed else {}).items():
            shown = f"dpcalc bounds --algorithm {word}" if name == "algorithm" else command
            others = (other for other, meant in other_words(name).items() if meant.partition(",")[0] == word)
            text = f"{parameter.flag} {word}: {gloss}"
            yield Entry(Kind.WORD, f"{parameter.flag} {word}", text, shown, (word, *others))


_OWN = "dpcalc"
"""The reference of theorems that only docs/method.md proves."""


def _bounds() -> Iterator[Entry]:
    from dpcalc.references import SHORT
    from dpcalc.theorems.record import all_bounds

    errata: dict[str, str] = {}
    for bound in all_bounds().values():
        authors, command = SHORT[bound.reference], f"dpcalc explain {bound.id}"
        place, more = f"{authors}, {bound.locator}", f"{bound.title} {' '.join(bound.algorithms)}"
        cited = f"{_few(authors)}, {_first(bound.locator)}"
        text = bound.title if bound.reference == _OWN else f"{cited}: {bound.title}"
        yield Entry(Kind.BOUND, bound.id, text, command, (), place, more)
        if bound.erratum and bound.erratum not in errata:
            errata[bound.erratum] = bound.id
            text = f"{cited}: {bound.erratum}"
            yield Entry(Kind.ERRATUM, f"erratum {bound.id}", text, command, ("errata",), place, bound.title)


def _few(authors: str) -> str:
    """Return authors and year, only the first author if there are more than two.

    >>> _few("Ye and Shokri 2022"), _few("Bok, Su and Altschuler 2024"), _few("dpcalc, docs/method.md")
    ('Ye and Shokri 2022', 'Bok et al. 2024', 'dpcalc, docs/method.md')
    """
    return re.sub(r"^([^,]*), .* and .* (\d+)$", r"\1 et al. \2", authors)


def _first(locator: str) -> str:
    """Return the numbered place at the start of a locator, or its first clause.

    >>> _first("Theorem 26, corrected"), _first("Theorem 35 for any number"), _first("NoisyGD, strongly convex")
    ('Theorem 26', 'Theorem 35', 'NoisyGD')
    """
    found = re.match(r"[A-Z][a-z]*[a-rt-z] \d[\d.]*|[^,]*", locator)
    return found[0] if found else locator


def _examples() -> Iterator[Entry]:
    """Yield every example of the help: a question and the command below it."""
    from dpcalc.cli.runs import RUNS

    for name, run in RUNS.items():
        for question, command in re.findall(r"^ *(\S.*[:?])\n +(dpcalc (?:.*\\\n)*.*)$", run.help, re.MULTILINE):
            yield Entry(Kind.EXAMPLE, name, question, re.sub(r" \\\n +", " ", command))


# --- relevance -------------------------------------------------------------------------------------------------------

_PLACES = {
    "theorem": ("thm", "theorems"), "corollary": ("cor", "corollaries"), "lemma": ("lem", "lemmas"),
    "proposition": ("prop", "propositions"), "figure": ("fig", "figures"), "table": ("tab", "tables"),
    "section": ("sec", "sections"), "equation": ("eq", "eqn", "equations"), "algorithm": ("alg", "algorithms"),
}  # fmt: skip
_PLACE = {word: place for place, words in _PLACES.items() for word in (place, *words)}
"""Spellings of a numbered place of a paper -> its kind."""

_SILENT = frozenset((
    "a", "about", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "give", "given",
    "have", "how", "i", "if", "in", "is", "it", "its", "me", "my", "not", "of", "on", "or", "our", "should", "that",
    "the", "there", "this", "to", "too", "use", "we", "what", "when", "where", "which", "who", "why", "with", "you",
    "your", "et", "al", "dpcalc", "find",
))  # fmt: skip
"""Words that the search ignores."""

_LEAST = 4
"""The smallest length of a common prefix that counts as a match."""


def tokens(text: str) -> list[str]:
    """Return the words of a text in lower case; a theorem or figure keeps its number.

    >>> tokens("Theorems 23 and 24 of Feldman et al."), tokens("thm. 3.3"), tokens("noise_std")
    (['theorem 23', 'theorem 24', 'feldman'], ['theorem 3.3'], ['noise', 'std'])
    """
    plain = unicodedata.normalize("NFKD", text.lower()).encode("ascii", "ignore").decode()
    plain = re.sub(r"(?<=\d) \([a-z]*\)", "", plain)  # Theorems 3 (Laplace) and 4 (Gaussian)
    found, place, numbered = list[str](), "", False
    for word in re.findall(r"[a-z]+|\d+(?:\.\d+)*", plain):
        if word[0].isdigit():
            found.append(f"{place} {word}" if place else word)
            numbered = bool(place)
        elif word in _PLACE or word not in ("and", "to"):
            if place and not numbered:
                found.append(place)
            place, numbered = _PLACE.get(word, ""), False
            if not place and word not in _SILENT:
                found.append(word)
    return [*found, place] if place and not numbered else found


class _Indexed(NamedTuple):
    """An entry with the weight of each of its words."""

    entry: Entry
    weights: dict[str, float]
    names: frozenset[str]


_KINDS = {"topic": 1.3, "command": 1.1, "parameter": 1.1, "bound": 1.0, "erratum": 0.9, "word": 0.9, "example": 0.7}
"""Weights of the kinds: how likely each is meant if the words fit several."""


def _indexed(entry: Entry) -> _Indexed:
    weights: dict[str, float] = {}
    for weight, text in ((1.0, entry.text), (2.0, entry.more), (3.0, entry.place), (4.0, " ".join(entry.names))):
        numbered = tokens(text)
        weights |= dict.fromkeys((word.rpartition(" ")[2] for word in numbered), weight)
        weights |= dict.fromkeys(numbered, weight)
    return _Indexed(entry, weights, frozenset(map(bare, entry.names)))


def found(words: Sequence[str]) -> list[Entry]:
    """Return the matching entries, the most relevant first; an unknown word counts as the most similar known one."""
    index = [_indexed(entry) for entry in entries()]
    counts = Counter(word for one in index for word in one.weights)
    asked = list(dict.fromkeys(tokens(" ".join(words))))
    rarity = {word: math.log(1 + len(index) / (1 + counts[word])) for word in asked}
    respelt = {word: _respelt(word, counts) for word in asked if len(word) > _LEAST and not _begins(word, counts)}
    scored = [(_score(one, asked, rarity, respelt, bare("".join(words))), one.entry) for one in index]
    most = max((score for score, _ in scored), default=0.0)
    # A third of the best: an entry that shares one common word with the question is not about it.
    near = [pair for pair in scored if pair[0] > max(most / 3, 0.0)]
    ordered = [entry for _, entry in sorted(near, key=lambda pair: -pair[0])]
    shown: dict[str, Entry] = {}
    for entry in ordered:  # topics may share a command; another entry with the same command adds nothing
        if entry.kind is Kind.TOPIC or entry.command not in {one.command for one in shown.values()}:
            shown[f"{entry.kind} {entry.name}"] = entry
    return list(shown.values())


def _score(one: _Indexed, asked: Sequence[str], rarity: dict[str, float], respelt: dict[str, str], whole: str) -> float:
    """Return the relevance of an entry: the weights of its words times their rarity and the share that match."""
    weight = {word: _weight(respelt.get(word, word), one.weights) for word in asked}
    total = sum(rarity.values())
    share = sum(rarity[word] for word in asked if weight[word]) / total if total else 0.0
    named = 12.0 if whole in one.names else 0.0  # as much as three rare words in the name
    # Cubed: an entry should match every word that was typed.
    return (named + share**3 * sum(rarity[word] * weight[word] for word in asked)) * _KINDS[one.entry.kind]


def _weight(word: str, weights: dict[str, float]) -> float:
    """Return the weight of a word in an entry; half if only a prefix matches."""
    if word in weights:
        return weights[word]
    if len(word) < _LEAST or " " in word:
        return 0.0
    alike = (weight for other, weight in weights.items() if _akin(word, other))
    return max(alike, default=0.0) / 2


def _akin(word: str, other: str) -> bool:
    """Return whether one of two words is a prefix of the other and of similar length."""
    shorter, longer = sorted((word, other), key=len)
    return len(shorter) >= _LEAST and longer.startswith(shorter) and len(longer) - len(shorter) <= _LEAST


def _begins(word: str, known: Counter[str]) -> bool:
    return word in known or " " in word or any(_akin(word, other) for other in known)


def _respelt(word: str, known: Counter[str]) -> str:
    """Return the known word with the most similar spelling; the word itself if none is similar."""
    from dpcalc.cli.help.option import nearest

    return next(iter(nearest(word, (other for other in known if abs(len(other) - len(word)) <= 2))), word)


def only(words: Sequence[str]) -> Entry | None:
    """Return the one entry that the words name; None if they name none or several."""
    hits = found(words)
    whole = bare("".join(words))
    named = [entry for entry in hits if whole in map(bare, entry.names)]
    others = [entry for entry in named if entry.kind == named[0].kind] or hits
    return others[0] if len({entry.said_of for entry in others}) == 1 else None
