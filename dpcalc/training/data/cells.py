"""The meaning of cells, by rules that are fixed before a record is read.

A record is never refused, since a refusal would reveal something about it. Every cell becomes a finite number or nan,
and how a record is read depends on that record alone.
"""

from __future__ import annotations

import csv
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.files.lines import line_feeds, split_cells
from dpcalc.model.parameter import check

Array = NDArray[np.float64]

NUMERIC = "fiub"  # kinds of numpy's types: floats, signed and unsigned integers, and booleans
_NAN = float("nan")
_SHOWN = 8  # classes that are listed
MAX_CLASSES = 1000
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_MISSING = ["", "?", "-", "NA", "N/A", "NaN", "None", "nan", "null"]  # missing values in columns of numbers
_PLAIN = bytes({*range(0x20, 0x7F), 0x09, 0x0A} - {0x22})  # a quotation mark may change where a cell ends


def number(cell: str) -> float:
    """Return the finite number in a cell, or nan."""
    text = cell.strip()
    value = float(text) if _NUMBER.fullmatch(text) else _NAN
    return value if abs(value) < float("inf") else _NAN


_declared = lru_cache(maxsize=1 << 12)(number)


def _case(*labels: str) -> str:
    """Return the remark that case matters, if a label has letters."""
    return " (case matters)" if any(label.lower() != label.upper() for label in labels) else ""


class Labels(NamedTuple):
    """The rule by which a target's cells become +1 and -1.

    Attributes:
        positive: the label that counts as +1, as a text or as a number; every other cell counts as -1. None: finite
            numbers above 0 count as +1, everything else as -1.
        negative: the name of the other label, if it has one; it does not change the rule.
    """

    positive: str | None = None
    negative: str | None = None

    @property
    def takes_words(self) -> bool:
        """Whether a column of words can be read."""
        return self.positive is not None

    @property
    def said(self) -> str:
        """The rule in words."""
        if self.positive is None:
            return "finite numbers above 0 count as +1, everything else as -1"
        return f"{self.positive!r} counts as +1, everything else as -1{_case(self.positive)}"

    def code(self, cell: str) -> float:
        """Return +1 or -1 for a cell if a label is named, else its number."""
        if self.positive is None:
            return number(cell)
        return 1.0 if cell.strip() == self.positive or number(cell) == _declared(self.positive) else -1.0

    def codes(self, values: NDArray[Any]) -> Array:
        """Return `code` of every entry of a one-dimensional array of numbers, texts or objects."""
        if values.dtype.kind in NUMERIC:
            cells = numbers(values)
            return cells if self.positive is None else np.where(cells == _declared(self.positive), 1.0, -1.0)
        return np.array([self.code(_text(value)) for value in values.tolist()], dtype=np.float64)


class Classes(NamedTuple):
    """The rule by which a target's cells become the places of several classes; other cells count as the first class.

    Attributes:
        names: of the classes, as texts or as numbers, in order; all different.
    """

    names: tuple[str, ...]

    @property
    def takes_words(self) -> bool:
        """Whether a column of words can be read."""
        return True

    @property
    def said(self) -> str:
        """The rule in words."""
        shown = ", ".join(repr(name) for name in self.names[:_SHOWN]) + (", ..." if len(self.names) > _SHOWN else "")
        return f"{shown}; everything else counts as {self.names[0]!r}{_case(*self.names)}"

    def code(self, cell: str) -> float:
        """Return the place of a cell's class, from 0 on."""
        place = Levels(self.names).code(cell)
        return 0.0 if math.isnan(place) else place

    def codes(self, values: NDArray[Any]) -> Array:
        """Return `code` of every entry of a one-dimensional array of numbers, texts or objects."""
        places = Levels(self.names).codes(values)
        places[np.isnan(places)] = 0.0
        return places


class Levels(NamedTuple):
    """The rule by which the words of a column become the places of its levels.

    Attributes:
        levels: as texts or as numbers, in order; every other cell has no place.
        missing: the level of an empty cell, if one is named.
    """

    levels: tuple[str, ...]
    missing: str | None = None

    @property
    def takes_words(self) -> bool:
        """Whether a column of words can be read."""
        return True

    def code(self, cell: str) -> float:
        """Return the place of a cell's level, from 0 on, or nan."""
        word = cell.strip() or self.missing
        if word is None:
            return _NAN
        if word in self.levels:
            return float(self.levels.index(word))
        value = number(word)
        return next((float(k) for k, level in enumerate(self.levels) if value == _declared(level)), _NAN)

    def codes(self, values: NDArray[Any]) -> Array:
        """Return `code` of every entry of a one-dimensional array of numbers, texts or objects."""
        if values.dtype.kind in NUMERIC:
            cells = numbers(values)
            places = np.full(cells.shape, _NAN if self.missing is None else self.code(self.missing))
            places[np.isfinite(cells)] = _NAN
            for place, level in reversed(tuple(enumerate(self.levels))):
                places[cells == _declared(level)] = place
            return places
        return np.array([self.code("" if value is None else _text(value)) for value in values.tolist()], np.float64)


NUMBERS = Labels()
"""The rule of features, and of a target without a named label: a cell is its number."""


def declared(labels: Sequence[str] | str | None, positive: str | None) -> Labels | Classes:
    """Return the user's rule: two labels, the second of which counts as +1; the positive label alone; or more labels.

    Raises:
        SpecError: both arguments are given, or the labels are not at least two that differ.
    """
    if labels is None:
        return Labels(None if positive is None else positive.strip())
    if positive is not None:
        raise SpecError("labels and positive both say what counts as +1", "leave out --positive")
    names = [labels] if isinstance(labels, str) else [str(label) for label in labels]
    if len(names) == 1 and "\n" not in names[0]:
        names = next(csv.reader(names), [])
    names = [name.strip() for name in names]
    # Numbers that are written differently are the same label; nan is no number.
    values = [value for value in map(number, names) if not math.isnan(value)]
    if 2 <= len(names) <= MAX_CLASSES and len(set(names)) == len(names) and len(set(values)) == len(values):
        return Labels(names[1], names[0]) if len(names) == 2 else Classes(tuple(names))
    raise SpecError(
        f"labels are {', '.join(names)[:60]!r}; they must be two or more that differ, at most {MAX_CLASSES}",
        "for example --labels no,yes: yes is +1; or --labels red,green,blue",
    )


def as_classes(rule: Labels | Classes, given: Any) -> Classes:
    """Return the rule of a loss of several classes.

    Args:
        rule: as declared.
        given: K, or None where it is not given. With K and no declared label, the classes are 0 to K - 1.

    Raises:
        SpecError: one label alone is declared; none is, and K is not given; K differs from their number; or K is
            malformed.
    """
    count = _class_count(given)
    if isinstance(rule, Labels) and rule.positive is None and count is not None and 2 <= count <= MAX_CLASSES:
        return Classes(tuple(map(str, range(count))))
    if isinstance(rule, Labels):
        if rule.positive is None or rule.negative is None:
            raise SpecError(
                "what the classes of the target are is not known", "give --labels, for example red,green,blue"
            )
        rule = Classes((rule.negative, rule.positive))
    if count is not None and count != len(rule.names):
        raise SpecError(f"{count} classes are given, and {len(rule.names)} labels", "leave out --classes")
    return rule


def _class_count(given: Any) -> int | None:
    """Return K as an integer; None where it is not given.

    Raises:
        SpecError: it is no integer, for example a list of names.
    """
    try:
        return None if given is None else int(check("classes", given))
    except SpecError as error:
        hint = error.hint if isinstance(given, (int, float)) else "give --labels instead, for example red,green,blue"
        raise SpecError(error.message, hint) from None


def numbers(values: NDArray[Any]) -> Array:
    """Return numbers as float64, with nan for those that are not finite."""
    with np.errstate(all="ignore"):
        cells = values.astype(np.float64)
    finite = np.isfinite(cells)
    if not finite.all():
        cells[~finite] = _NAN
    return cells


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    try:
        return str(int(value) if isinstance(value, (bool, np.bool_)) else value)
    except Exception:  # an integer of thousands of digits, or any object
        return ""


# --- lines of CSV -----------------------------------------------------------------------------------------------------


class Lines:
    """Reads lines as rows of the wanted columns, the target last, with nan for cells without a finite number.

    Args:
        columns: the number of cells of a line; a line with another number has no readable cell.
        order: the places of the wanted columns.
        labels: the rule of the last wanted column, which is the target if that is wanted.
        words: place -> the rule of a column of words; the others hold numbers.
    """

    def __init__(
        self, columns: int, order: Sequence[int], labels: Labels | Classes | Levels, words: Mapping[int, Levels] = {}
    ) -> None:
        self.columns, self.order, self.labels = columns, list(order), labels
        self.begun = False  # small files are read without pyarrow, which is slow to import
        self.codes = [words[place].code if place in words else number for place in self.order[:-1]]
        ignored = set(range(columns)) - set(order)
        self.converters: dict[int | str, Callable[[str], Any]] = dict.fromkeys(ignored, lambda cell: 0.0)
        self.texts = {place: rule.code for place, rule in words.items()}
        if labels.takes_words:
            self.texts[self.order[-1]] = labels.code
        self.converters.update(self.texts.items())

    def rows(self, text: bytes) -> Array:
        """Return lines, separated by line feeds, as an array of shape (lines, wanted columns)."""
        parsers = (self._parse_with_arrow, self._parse_with_numpy) if self.begun else (self._parse_with_numpy,)
        self.begun = True
        if not text.translate(None, _PLAIN):
            for parse in parsers:
                cells = parse(text)
                if cells is not None and len(cells) == line_feeds(text) + 1:
                    return numbers(cells)
        return numbers(np.array([self._parse(line) for line in text.split(b"\n")]))

    def _parse_with_arrow(self, text: bytes) -> Array | None:
        """Return the same as `_parse` if every cell is a number, missing or declared; else None."""
        try:
            from pyarrow import ArrowInvalid, BufferReader, csv, float64, string
        except ImportError:
            return None
        places = list(dict.fromkeys(self.order))
        words = {place: string() for place in self.texts}
        types = {str(place): words.get(place, float64()) for place in places}
        try:
            table = csv.read_csv(
                BufferReader(text),
                csv.ReadOptions(
                    use_threads=False, block_size=len(text) + 1, column_names=[str(k) for k in range(self.columns)]
                ),
                csv.ParseOptions(quote_char=False, ignore_empty_lines=False),
                csv.ConvertOptions(
                    check_utf8=False, column_types=types, null_values=_MISSING, include_columns=list(types)
                ),
            )
        except ArrowInvalid:
            return None
        cells = np.empty((table.num_rows, len(self.order)))
        for k, place in enumerate(self.order):
            column = table.column(str(place)).combine_chunks()
            if place in self.texts:
                column = column.dictionary_encode()
                codes = np.array([self.texts[place](word) for word in column.dictionary.to_pylist()], np.float64)
                cells[:, k] = codes[column.indices.to_numpy()]
            else:
                cells[:, k] = column.to_numpy(zero_copy_only=False)
        return cells

    def _parse_with_numpy(self, text: bytes) -> Array | None:
        """As `_parse_with_arrow`, five times slower."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # numpy warns of blank lines
                cells = np.loadtxt(
                    text.decode("ascii").split("\n"), delimiter=",", ndmin=2, comments=None,
                    converters=self.converters or None, encoding="utf-8",
                )  # fmt: skip
        except ValueError:
            return None
        return cells[:, self.order] if cells.shape[1] == self.columns else None

    def _parse(self, line: bytes) -> list[float]:
        cells = split_cells(line.decode("utf-8", "replace"))
        if len(cells) != self.columns:
            cells = [""] * self.columns
        features = (code(cells[place]) for code, place in zip(self.codes, self.order, strict=False))
        return [*features, self.labels.code(cells[self.order[-1]])]


def as_array(values: Any) -> NDArray[Any]:
    """Return an array; lists become arrays of objects, since a single word would change the type of all entries.

    Raises:
        SpecError: rows are of different lengths.
    """
    try:
        return np.asarray(values, dtype=None if hasattr(values, "__array__") else object)
    except ValueError:
        raise SpecError("rows of the data have different lengths", "give every row one value per column") from None
