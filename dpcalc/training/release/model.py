"""A trained model as a file: its weights, the map from rows to features, and the guarantee of its privacy."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.files.arrays import damaged_as, open_archive, read_member
from dpcalc.files.output import write_bytes
from dpcalc.files.place import FileError
from dpcalc.files.reading import MODEL_BYTES, opened
from dpcalc.inert import json_text, strict_json
from dpcalc.training.data.bounds import lengths
from dpcalc.training.data.cells import NUMBERS, Classes, Labels, Levels
from dpcalc.training.data.ranges import Ranges, encode
from dpcalc.training.data.readers import Rule
from dpcalc.training.data.tables import path_of, rows_of, rows_of_array
from dpcalc.training.rule.setup import check_path
from dpcalc.version import __version__

Array = NDArray[np.float64]

SCHEMA = "dpcalc.model/1"
_DIGITS, _REST = 40, 1 << 20  # bytes of a number in JSON, with its indentation, and of everything else in a file
LEAST_SCALE = 0.02  # of centred rows: a smaller one is mostly noise
_CENTRED = ("centre", "scale", "centred_bound")
_OPTIONAL = ("noise_std", "temperature", "class_weights", "class_shares", "classes")
_ARRAYS = ("weights", "low", "high", "released", "centre")


class Model(NamedTuple):
    """A linear model on raw columns.

    Attributes:
        weights: shape (features,), or (features, K) for K classes. A column of numbers is one feature; a column of
            words has one for each of its levels.
        intercept: 0 where there is none; shape (K,) for K classes.
        columns: names of the d raw columns, in order.
        target: name of the target.
        positive: the label of +1, if one was named.
        low, high: shape (d,): the interval of each column that is mapped to [-1, 1]; None where no column is mapped.
        target_range: the interval of the target that was mapped to [-label_bound, label_bound], if one was.
        bound, norm: longer rows are scaled down to this length, in the 1- or 2-norm.
        loss: name and parameters of the loss.
        privacy: what is guaranteed and by which theorem, or why nothing is.
        negative: the label of -1, if it has a name.
        released: weights and intercept of every released iterate, shape (k, features + 1), with K times as many columns
            for K classes; the model is the last of them or a mean. None where the model was released alone.
        levels: column of words -> its levels.
        missing: column -> the number or level that replaces a missing cell; by default the middle of the interval, or
            no level.
        classes: the names of several classes, in the order of their scores; None for a model of one score.
        centre, scale, centred_bound: for centred rows, shape (features,) and two numbers: a row x of length at most
            ``bound`` becomes (x - centre)/scale, scaled down to length ``centred_bound``; None where rows are not
            centred.
        noise_std: the approximate standard deviation of the privacy noise on a weight; None where it is not known.
        temperature: the released weights were divided by it, so that scores are log-odds; None where they were not.
        class_weights: the factors of the gradients of each class, in the order of their labels, the largest 1; None
            where all classes count alike. Scores predict classes with these weights; log-odds leave out ln of their
            ratio.
        class_shares: the shares of the classes, as stated; None where they were not.
    """

    weights: Array
    intercept: Any
    columns: tuple[str, ...]
    target: str
    positive: str | None
    low: Array | None
    high: Array | None
    target_range: tuple[float, float] | None
    bound: float
    norm: int
    loss: Mapping[str, Any]
    privacy: Mapping[str, Any]
    negative: str | None = None
    released: Array | None = None
    levels: Mapping[str, Sequence[str]] = {}
    missing: Mapping[str, Any] = {}
    classes: tuple[str, ...] | None = None
    centre: Array | None = None
    scale: float | None = None
    centred_bound: float | None = None
    noise_std: float | None = None
    temperature: float | None = None
    class_weights: tuple[float, ...] | None = None
    class_shares: tuple[float, ...] | None = None

    @property
    def labels(self) -> Labels | Classes:
        """How cells of the target are read."""
        if self.classes is not None:
            return Classes(self.classes)
        return Labels(self.positive, self.negative)

    @property
    def ranges(self) -> Ranges:
        """How raw rows become features: see `dpcalc.training.data.tables.encode`."""
        words = tuple(
            Levels(tuple(self.levels[name]), self.missing.get(name)) if name in self.levels else None
            for name in self.columns
        )
        numbers = tuple(None if name in self.levels else self.missing.get(name) for name in self.columns)
        return Ranges(self.low, self.high, self.target_range, words, numbers)

    @property
    def words(self) -> dict[str, Levels]:
        """Column of words -> how its cells are read, as `dpcalc.training.data.tables.read` takes it."""
        return {self.columns[place]: rule for place, rule in self.ranges.words.items()}

    def features(self, rows: Array) -> Array:
        """Return the features of raw rows, shape (m, d): mapped, scaled down and centred as in training.

        As in training, a number that is not finite counts as 0, unless `missing` says otherwise; a column of words
        holds the places of its levels.

        Raises:
            SpecError: rows have another number of columns.
        """
        x = np.array(rows, dtype=np.float64, ndmin=2)
        if x.shape[1:] != (len(self.columns),):
            raise SpecError(f"rows have shape {x.shape}", f"the model takes {len(self.columns)} columns")
        x, _ = encode(x, self.ranges)
        _shorten(x, self.norm, self.bound)
        if self.centre is not None and self.scale is not None and self.centred_bound is not None:
            x = (x - self.centre) / self.scale
            _shorten(x, self.norm, self.centred_bound)
        return x

    def scores(self, rows: Array) -> Array:
        """Return <w, x> + intercept for the `features` x of raw rows: shape (m,), or (m, K) for K classes.

        The sign is the class for hinge and logistic, and the largest of K scores for softmax; for other losses the
        score is the prediction, on the scale of the labels as trained.

        Raises:
            SpecError: rows have another number of columns.
        """
        scores: Array = self.features(rows) @ self.weights + self.intercept
        return scores

    def raw_scores(self, rows: Array) -> Array:
        """Return `scores` before the temperature divided them; biases of several classes stay in them."""
        return self.scores(rows) * (self.temperature or 1.0)

    def scored(self, source: Any, *, target: bool = False) -> Iterator[tuple[Array, Array]]:
        """Yield scores, shape (m,) or (m, K), and targets, shape (m,), in blocks of rows.

        Args:
            source: a path or ``example:NAME``; or an array of rows in the order of the model's columns, with a target a
                pair of arrays.
            target: whether the target is read; else it is empty.

        Raises:
            SpecError: the rows cannot be read, or a column is missing.
        """
        names, d = self.columns, len(self.columns)
        rules: list[Rule] = [self.words.get(name, NUMBERS) for name in names]
        if target:
            names, rules = (*names, self.target), [*rules, self.labels]
        if isinstance(source, str):
            blocks = rows_of(path_of(source), names, rules)
        elif not target:
            blocks = rows_of_array(source, rules)
        elif isinstance(source, (tuple, list)) and len(source) == 2:
            blocks = rows_of_array(source[0], rules, source[1])
        else:
            raise SpecError("the data are no pair of arrays", "give (rows, target)")
        for cells in blocks:
            yield self.scores(cells[:, :d]), cells[:, d:].reshape(-1)


def _shorten(x: Array, norm: int, bound: float) -> None:
    """Scale longer rows down to the bound, in place."""
    size = lengths(x, norm)
    x *= np.minimum(1.0, bound / np.where(size > 0.0, size, 1.0))[:, np.newaxis]


def refuse_too_large(path: str, numbers: int) -> None:
    """Refuse, before training, a model with too many numbers for its file to be read back.

    Raises:
        SpecError: the file would be larger than the limit of a reader.
    """
    compact = path.lower().endswith(".npz")
    if numbers * (8 if compact else _DIGITS) + _REST > MODEL_BYTES:
        cure = "release fewer iterates" if compact else "write an .npz file, or release fewer iterates"
        raise SpecError(f"-o {path}: {numbers} numbers are released, more than a model file holds", cure)


def save(model: Model, path: str, *, statement: str | None = None) -> None:
    """Write the model to a .json or .npz file, atomically.

    Args:
        model: what is written.
        path: of the file.
        statement: a paragraph about its privacy to store in the file, if any.

    Raises:
        SpecError: it cannot be written.
    """
    check_path(path)
    if statement is not None:
        model = model._replace(privacy={**model.privacy, "statement": statement})
    described = _described(model)
    if path.lower().endswith(".json"):
        data = (json_text(described, 2) + "\n").encode()
    else:
        buffer = io.BytesIO()
        arrays = {name: np.array(described.pop(name)) for name in _ARRAYS if described.get(name) is not None}
        np.savez(buffer, description=np.array(json.dumps(described, allow_nan=False)), **arrays)  # type: ignore[arg-type]
        data = buffer.getvalue()
    write_bytes(data, path, "-o")


def _described(model: Model) -> dict[str, Any]:
    fields = model._asdict()
    for name in _ARRAYS:
        fields[name] = None if fields[name] is None else fields[name].tolist()
    if fields["centre"] is None:
        for name in _CENTRED:
            del fields[name]
    if fields["classes"] is not None:
        fields["intercept"] = fields["intercept"].tolist()
    for name in _OPTIONAL:
        if fields[name] is None:
            del fields[name]
    fields["privacy"] = strict_json(model.privacy)  # delta may be exactly 0, and its logarithm no number
    return {"schema": SCHEMA, "dpcalc": __version__, **fields}


def load(path: str) -> Model:
    """Return the model in a file that `save` wrote; nothing in it is evaluated.

    Raises:
        SpecError: it is not such a file.
    """
    refusal = SpecError(f"{path} is not a model file", f"give one that dpcalc train -o wrote ({SCHEMA})")
    with opened(path) as stream, damaged_as(refusal):
        if os.fstat(stream.fileno()).st_size > MODEL_BYTES:
            raise SpecError(f"{path} is larger than {MODEL_BYTES} bytes", "give a model file")
        if path.lower().endswith(".npz"):
            return _model(_read_npz(path, stream))
        return _model(_parsed(stream.read().decode()))


def _read_npz(path: str, stream: IO[bytes]) -> dict[str, Any]:
    try:
        archive = open_archive(path, stream)
    except FileError:
        raise ValueError(path) from None  # `load` reports it as no model file
    with archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        if sum(info.file_size for info in members.values()) > MODEL_BYTES:
            raise SpecError(f"{path} would unpack to more than {MODEL_BYTES} bytes", "give a model file")
        fields = _parsed(str(read_member(archive, members["description"])))
        return {**fields, **{name: read_member(archive, members[name]) for name in _ARRAYS if name in members}}


def _parsed(text: str) -> dict[str, Any]:
    return dict(json.loads(text, parse_float=_finite, parse_constant=_finite))


def _finite(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise ValueError(word)
    return value


def _model(fields: dict[str, Any]) -> Model:
    """Return the model with these fields; any exception means that they do not describe a model."""
    if fields.pop("schema") != SCHEMA:
        raise ValueError("schema")
    fields.pop("dpcalc")
    for name in _ARRAYS:
        fields[name] = None if fields.get(name) is None else np.array(fields[name], dtype=np.float64)
    fields["columns"] = tuple(fields["columns"])
    if fields["target_range"] is not None:
        low, high = map(float, fields["target_range"])
        fields["target_range"] = low, high
    fields["bound"] = float(fields["bound"])
    if fields.get("classes") is None:
        fields["intercept"] = float(fields["intercept"])
    else:
        fields["classes"] = tuple(fields["classes"])
        fields["intercept"] = np.array(fields["intercept"], dtype=np.float64)
    for name in ("class_weights", "class_shares"):
        fields[name] = None if fields.get(name) is None else tuple(map(float, fields[name]))
    fields["levels"] = {name: tuple(levels) for name, levels in dict(fields.get("levels", {})).items()}
    fields["missing"] = dict(fields.get("missing", {}))
    model = Model(**fields)
    if not _consistent(model):
        raise ValueError("fields")
    return model


def _consistent(model: Model) -> bool:
    """Return whether every field is what `Model` says."""
    mapped = () if model.low is None and model.high is None else (model.low, model.high)
    words = (*model.columns, model.target, *(label for label in (model.positive, model.negative) if label is not None))
    return (
        _declares(model)
        and _has_weights(model)
        and _is_centred_or_not(model)
        and all(_is_vector(vector, len(model.columns)) for vector in mapped)
        and (model.target_range is None or -math.inf < model.target_range[0] < model.target_range[1] < math.inf)
        and (model.low is None or model.high is None or bool((model.low < model.high).all()))
        and all(isinstance(word, str) for word in words)
        and 0.0 < model.bound < math.inf
        and model.norm in (1, 2)
        and (model.noise_std is None or _is_positive(model.noise_std))
        and (model.temperature is None or _is_positive(model.temperature))
        and all(_are_of_classes(numbers, model) for numbers in (model.class_weights, model.class_shares))
        and isinstance(model.loss, Mapping)
        and isinstance(model.privacy, Mapping)
        and (
            model.released is None
            or (
                model.released.ndim == 2
                and model.released.shape[1] == model.weights.size + np.size(model.intercept)
                and len(model.released) > 0
                and bool(np.isfinite(model.released).all())
            )
        )
    )


def _has_weights(model: Model) -> bool:
    """Return whether weights and intercept are those of one score, or of as many as there are classes."""
    width = model.ranges.width(len(model.columns))
    if model.classes is None:
        return _is_vector(model.weights, width) and math.isfinite(model.intercept)
    count = len(model.classes)
    return (
        count >= 2
        and all(isinstance(name, str) for name in model.classes)
        and model.weights.shape == (width, count)
        and bool(np.isfinite(model.weights).all())
        and _is_vector(model.intercept, count)
        and model.positive is None
        and model.negative is None
    )


def _is_centred_or_not(model: Model) -> bool:
    """Return whether the fields of centring are all absent, or all there and valid."""
    if model.centre is None:
        return model.scale is None and model.centred_bound is None
    return (
        _is_vector(model.centre, model.ranges.width(len(model.columns)))
        and all(isinstance(value, float) and math.isfinite(value) for value in (model.scale, model.centred_bound))
        and LEAST_SCALE <= (model.scale or 0.0) <= 1.0
        and (model.centred_bound or 0.0) > 0.0
        and model.norm == 2
    )


def _declares(model: Model) -> bool:
    """Return whether levels and replacements of missing cells belong to columns of the model."""
    levels, missing = model.levels, model.missing
    return (
        {*levels, *missing} <= set(model.columns)
        and all(words and all(isinstance(word, str) for word in words) for words in levels.values())
        and all(
            value in levels[name] if name in levels else isinstance(value, float) and math.isfinite(value)
            for name, value in missing.items()
        )
    )


def _are_of_classes(numbers: tuple[float, ...] | None, model: Model) -> bool:
    """Return whether the numbers are None, or one for each class, above 0 and at most 1."""
    count = 2 if model.classes is None else len(model.classes)
    return numbers is None or (len(numbers) == count and all(0.0 < number <= 1.0 for number in numbers))


def _is_positive(value: Any) -> bool:
    return isinstance(value, float) and 0.0 < value < math.inf


def _is_vector(value: Array | None, length: int) -> bool:
    return value is not None and value.shape == (length,) and bool(np.isfinite(value).all())
