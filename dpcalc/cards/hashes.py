"""Hashes of documents and files: SHA-256, in hexadecimal digits."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from dpcalc.files.digest import digest_of
from dpcalc.files.limits import MODEL_BYTES


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
    found = digest_of(path, MODEL_BYTES)
    return {"sha256": found.sha256, "bytes": found.size}
