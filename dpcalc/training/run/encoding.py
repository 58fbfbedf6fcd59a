"""Plans, problems and what they are made of as JSON, and back: bit for bit, and no classes but those of this package.

A record (a named tuple, a frozen class, a dataclass) travels as its class and its fields, an array as its bytes.
"""

from __future__ import annotations

import base64
import dataclasses
import importlib
import json
from enum import Enum
from typing import Any

import numpy as np

from dpcalc.errors import SpecError
from dpcalc.model.frozen import Frozen

_CLASS, _ARRAY = "class", "array"
_SEVERAL, _FIELDS = "tuple", "fields"
_OURS = "dpcalc."
_KINDS = {"<f8", "<i8", "<i4", "|b1"}


def written(value: Any) -> str:
    """Return a value as JSON.

    Raises:
        SpecError: it holds something that cannot travel, such as an open file.
    """
    return json.dumps(_tree(value), sort_keys=True)


def read(text: str) -> Any:
    """Return the value of a text.

    Raises:
        SpecError, ValueError, TypeError, KeyError: it is none.
    """
    return _value(json.loads(text))


def _tree(value: Any) -> Any:
    if isinstance(value, Enum):
        return {_CLASS: _name(type(value)), _FIELDS: value.value}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.ndarray):
        kept = np.ascontiguousarray(value)
        if kept.dtype.str not in _KINDS:
            raise SpecError(f"an array of {kept.dtype} does not travel to other machines")
        raw = base64.b64encode(kept.tobytes()).decode("ascii")
        return {_ARRAY: raw, "kind": kept.dtype.str, "shape": list(kept.shape)}
    if isinstance(value, dict):
        return {_FIELDS: [[_tree(key), _tree(one)] for key, one in value.items()]}
    if (fields := _fields(value)) is not None:
        return {_CLASS: _name(type(value)), _FIELDS: {name: _tree(one) for name, one in fields.items()}}
    if isinstance(value, (tuple, list)):
        return {_SEVERAL: [_tree(one) for one in value]}
    raise SpecError(f"{type(value).__name__} does not travel to other machines", "run this without --cluster")


def _fields(value: Any) -> dict[str, Any] | None:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True))
    if isinstance(value, Frozen):
        return {name: getattr(value, name) for name in value.fields}
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def _name(kind: type) -> str:
    if not kind.__module__.startswith(_OURS):
        raise SpecError(f"{kind.__name__} does not travel to other machines", "run this without --cluster")
    return f"{kind.__module__}:{kind.__qualname__}"


def _value(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    if _ARRAY in tree:
        if tree["kind"] not in _KINDS:
            raise SpecError("an array of another kind came")
        raw = base64.b64decode(tree[_ARRAY], validate=True)
        return np.frombuffer(raw, dtype=tree["kind"]).reshape(tree["shape"]).copy()
    if _SEVERAL in tree:
        return tuple(_value(one) for one in tree[_SEVERAL])
    fields = tree[_FIELDS]
    if _CLASS not in tree:
        return {_value(key): _value(one) for key, one in fields}
    module, _, name = tree[_CLASS].partition(":")
    if not module.startswith(_OURS):
        raise SpecError("a record of another package came")
    kind = getattr(importlib.import_module(module), name)
    if not isinstance(kind, type):
        raise SpecError("something came that is no record")
    return kind(**{key: _value(one) for key, one in fields.items()}) if isinstance(fields, dict) else kind(fields)
