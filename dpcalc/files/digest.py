"""The hash of a file: SHA-256, in hexadecimal digits."""

from __future__ import annotations

import hashlib
import os
from typing import NamedTuple

from dpcalc.errors import SpecError
from dpcalc.files.reading import opened, shown_path

_BLOCK = 1 << 20


class Digest(NamedTuple):
    """The hash of a file and its size."""

    sha256: str
    size: int


def digest_of(path: str, most: int | None = None) -> Digest:
    """Return the hash of a file, which is read a block at a time.

    Raises:
        SpecError: it cannot be read, is no regular file, or has more than ``most`` bytes.
    """
    digest, size = hashlib.sha256(), 0
    with opened(path) as stream:
        if most is not None and os.fstat(stream.fileno()).st_size > most:
            raise SpecError(f"{shown_path(path)} is larger than {most} bytes", "give a smaller file")
        while block := stream.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return Digest(digest.hexdigest(), size)
