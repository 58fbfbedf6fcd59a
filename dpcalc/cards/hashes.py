"""Hashes of documents and files: SHA-256, in hexadecimal digits."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from dpcalc.errors import SpecError
from dpcalc.files.limits import MODEL_BYTES
from dpcalc.files.reading import opened, shown_path

_BLOCK = 1 << 20


def canonical(document: Any) -> str:
    """Return JSON of which there is one text: keys sorted, no blanks, ASCII alone.

    >>> canonical({"b": [1, 2.0], "a": None})
    '{"a":null,"b":[1,2.0]}'
    """
    return json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def hash_of(document: Any) -> str:
    """Return the hash of a document of JSON types."""
    return hashlib.sha256(canonical(document).encode("ascii")).hexdigest()


def seal_of(card: dict[str, Any]) -> str:
    """Return the hash of a card without its field ``sha256``."""
    return hash_of({name: value for name, value in card.items() if name != "sha256"})


def hash_of_file(path: str) -> dict[str, Any]:
    """Return the hash of a file and its size.

    Raises:
        SpecError: it cannot be read, is no regular file, or has more than `MODEL_BYTES`.
    """
    digest, size = hashlib.sha256(), 0
    with opened(path) as stream:
        if os.fstat(stream.fileno()).st_size > MODEL_BYTES:
            raise SpecError(f"{shown_path(path)} is larger than {MODEL_BYTES} bytes", "give a smaller file")
        while block := stream.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return {"sha256": digest.hexdigest(), "bytes": size}
