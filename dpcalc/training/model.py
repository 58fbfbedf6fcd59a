"""A trained model as a file: its weights, how rows become features, and what is promised of it."""

from __future__ import annotations

import io
import json
import os
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
        arrays = {
            name: np.array(described.pop(name)) for name in ("weights", "low", "high") if described[name] is not None
        }
        np.savez(buffer, description=np.array(json.dumps(described, allow_nan=False)), **arrays)  # type: ignore[arg-type]
        data = buffer.getvalue()
    write_bytes(data, path, "-o")


def _described(model: Model) -> dict[str, Any]:
    fields = model._asdict()
    for name in ("weights", "low", "high"):
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
        if path.lower().endswith(".npz"):
            with np.load(path, allow_pickle=False) as archive:
                fields = json.loads(str(archive["description"]))
                fields.update({name: archive[name] for name in ("weights", "low", "high") if name in archive.files})
        else:
            with open(path, encoding="utf-8") as stream:
                fields = json.load(stream)
        if fields.pop("schema") != SCHEMA:
            raise ValueError
        fields.pop("dpcalc")
        for name in ("weights", "low", "high"):
            value = fields.get(name)
            fields[name] = None if value is None else np.array(value, dtype=np.float64)
        fields["columns"] = tuple(fields["columns"])
        fields["target_range"] = tuple(fields["target_range"]) if fields["target_range"] else None
        return Model(**fields)
    except OSError as error:
        raise SpecError(f"cannot read {path}: {error.strerror or error}", "check the path") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SpecError(f"{path} is not a model file", f"give one that dpcalc train -o wrote ({SCHEMA})") from None
