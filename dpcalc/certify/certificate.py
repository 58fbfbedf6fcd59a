"""The certificate of an answer: what its search found, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcalc.certify.balls import Inputs, OutOfReach
from dpcalc.notions.certificate import digest

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
    if found.get("digest") != digest(fields):
        raise OutOfReach(CHANGED)
    return fields
