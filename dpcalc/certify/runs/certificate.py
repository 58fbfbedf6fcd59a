"""The certificate of an answer: what its search found, as JSON."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from dpcalc.certify.numerics.balls import Inputs, OutOfReach

KNOWN, HIDDEN, WORST = "known position", "hidden position", "worst position"
COMPOSED, SPLIT = "composed", "split noise"
"""Theorems, by their names in certificates."""

NO_CERTIFICATE = "the answer has no certificate"
OF_ANOTHER_RUN = "the certificate is of another run"
CHANGED = "the certificate was changed after it was made"


def certificate_of(v: Inputs) -> Mapping[str, Any]:
    """Return the certificate of the answer.

    Raises:
        OutOfReach: it has none, or the digest is of another one.
    """
    found: Mapping[str, Any] | None = v.certificate
    if found is None:
        raise OutOfReach(NO_CERTIFICATE)
    fields = {name: value for name, value in found.items() if name != "digest"}
    if found.get("digest") != f"{zlib.crc32(repr(fields).encode()):08x}":
        raise OutOfReach(CHANGED)
    return fields
