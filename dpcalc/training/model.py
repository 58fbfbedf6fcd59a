"""A trained model as a file: its weights, how rows become features, and what is promised of it."""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import SpecError
from dpcalc.output import write_bytes
from dpcalc.version import __version__

Array = NDArray[np.float64]

SCHEMA = "dpcalc.model/1"
ENDINGS = (".json", ".npz")
_ARRAYS = ("weights", "low", "high")
_MAX_BYTES = 1 << 30


class Model(NamedTuple):
    """A linear model on raw columns.

    Attributes:
        weights: shape (d,), of the features alone.
        intercept: 0 where there is none.
        columns: names of the d features, in order.
        target: name of the target.
        positive: the label that +1 stands for, if one was named.
        low, high: shape (d,): the interval of each feature that goes to [-1, 1]; None where rows are taken as they are.
        target_range: the interval of the target that goes to [-label_bound, label_bound], if it was mapped.
        bound, norm: rows are shortened to this length in the 1- or 2-norm.
        loss: name and parameters of the loss.
        privacy: what is promised, by which theorem, or why nothing is; JSON types only.
    """

    weights: Array
    intercept: float
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

    def scores(self, rows: Array) -> Array:
        """Return <w, x> + intercept for raw rows, shape (m, d): mapped and shortened as the training rows were.

        Hinge and logistic: the sign says the class. Others: the prediction, on the scale of the labels as trained.
        """
        x = np.array(rows, dtype=np.float64, ndmin=2)
        if self.low is not None and self.high is not None:
            x = (x - (0.5 * self.low + 0.5 * self.high)) / (0.5 * self.high - 0.5 * self.low)
        size = np.abs(x).sum(axis=1) if self.norm == 1 else np.sqrt(np.square(x).sum(axis=1))
        x *= np.minimum(1.0, self.bound / np.where(size > 0.0, size, 1.0))[:, np.newaxis]
        found: Array = x @ self.weights + self.intercept
        return found


def check_path(path: str) -> None:
    """Refuse a name that does not say how to write the model.

    Raises:
        SpecError: it ends otherwise than in `ENDINGS`, or in a folder that is not there.
    """
    if os.path.splitext(path)[1].lower() not in ENDINGS:
        raise SpecError(f"-o {path}: a model is written to a .json or .npz file", "the report goes to standard output")
    if "\0" in path:
        raise SpecError(f"-o {path!r} is not a path", "give the path of a file")
    if not os.path.isdir(os.path.dirname(os.path.realpath(path))):
        raise SpecError(f"-o {path}: there is no such folder", "create it first")


def save(model: Model, path: str) -> None:
    """Write the model to a .json or .npz file, atomically.

    Raises:
        SpecError: it cannot be written.
    """
    check_path(path)
    described = _described(model)
    if path.lower().endswith(".json"):
        data = (json.dumps(described, indent=2, allow_nan=False) + "\n").encode()
    else:
        buffer = io.BytesIO()
        arrays = {name: np.array(described.pop(name)) for name in _ARRAYS if described[name] is not None}
        np.savez(buffer, description=np.array(json.dumps(described, allow_nan=False)), **arrays)  # type: ignore[arg-type]
        data = buffer.getvalue()
    write_bytes(data, path, "-o")


def _described(model: Model) -> dict[str, Any]:
    fields = model._asdict()
    for name in _ARRAYS:
        fields[name] = None if fields[name] is None else [float(value) for value in fields[name]]
    return {"schema": SCHEMA, "dpcalc": __version__, **fields}


def load(path: str) -> Model:
    """Return the model in a file that `save` wrote; nothing in it is evaluated.

    Raises:
        SpecError: it is not such a file.
    """
    try:
        if os.path.getsize(path) > _MAX_BYTES:
            raise SpecError(f"{path} is larger than {_MAX_BYTES} bytes", "give a model file")
        return _model(_read_npz(path) if path.lower().endswith(".npz") else _read_json(path))
    except OSError as error:
        raise SpecError(f"cannot read {path}: {error.strerror or error}", "check the path") from None
    except (MemoryError, SpecError):
        raise
    except Exception:  # readers raise many things on damaged files
        raise SpecError(f"{path} is not a model file", f"give one that dpcalc train -o wrote ({SCHEMA})") from None


def _read_json(path: str) -> dict[str, Any]:
    with open(path, "rb") as stream:
        return _parsed(stream.read().decode())


def _read_npz(path: str) -> dict[str, Any]:
    with zipfile.ZipFile(path) as packed:
        if sum(member.file_size for member in packed.infolist()) > _MAX_BYTES:
            raise SpecError(f"{path} would unpack to more than {_MAX_BYTES} bytes", "give a model file")
    with np.load(path, allow_pickle=False) as archive:
        fields = _parsed(str(archive["description"]))
        return {**fields, **{name: archive[name] for name in _ARRAYS if name in archive.files}}


def _parsed(text: str) -> dict[str, Any]:
    return dict(json.loads(text, parse_float=_finite, parse_constant=_finite))


def _finite(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise ValueError(word)
    return value


def _model(fields: dict[str, Any]) -> Model:
    """Return the model with these fields; of the exceptions, all mean that there is none."""
    if fields.pop("schema") != SCHEMA:
        raise ValueError("schema")
    fields.pop("dpcalc")
    for name in _ARRAYS:
        fields[name] = None if fields.get(name) is None else np.array(fields[name], dtype=np.float64)
    fields["columns"] = tuple(fields["columns"])
    if fields["target_range"] is not None:
        low, high = map(float, fields["target_range"])
        fields["target_range"] = low, high
    for name in ("intercept", "bound"):
        fields[name] = float(fields[name])
    model = Model(**fields)
    if not _consistent(model):
        raise ValueError("fields")
    return model


def _consistent(model: Model) -> bool:
    """Return whether every field is what `Model` says."""
    mapped = () if model.low is None and model.high is None else (model.low, model.high)
    words = (*model.columns, model.target, "" if model.positive is None else model.positive)
    return (
        all(_is_vector(each, len(model.columns)) for each in (model.weights, *mapped))
        and bool(np.isfinite(model.target_range or 0.0).all())
        and (model.low is None or model.high is None or bool((model.low < model.high).all()))
        and all(isinstance(word, str) for word in words)
        and math.isfinite(model.intercept)
        and 0.0 < model.bound < math.inf
        and model.norm in (1, 2)
        and isinstance(model.loss, Mapping)
        and isinstance(model.privacy, Mapping)
    )


def _is_vector(value: Array | None, length: int) -> bool:
    return value is not None and value.shape == (length,) and bool(np.isfinite(value).all())
