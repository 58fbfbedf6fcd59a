"""The report of a guarantee that is below the truth: what is needed to find the error."""

from __future__ import annotations

import platform

from dpcalc.certify.proof import Proof
from dpcalc.report import Case, Result
from dpcalc.version import __version__


def bug_report(result: Result, case: Case, proof: Proof) -> str:
    """Return the versions, the run, the result and the enclosure that contradicts it."""
    inputs = ", ".join(f"{name}={value!r}" for name, (value, _) in case.inputs.items())
    return "\n".join(
        (
            f"dpcalc {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"algorithm: {case.algorithm}",
            f"inputs: {inputs}",
            f"bound: {result.bound}, {result.quantity} = {result.value!r}, epsilon = {result.epsilon!r}, "
            f"log_delta = {result.log_delta!r}, order = {result.order!r}, conversion = {result.conversion!r}",
            f"proved: {proof.quantity} in [{proof.lower}, {proof.upper}] ({proof.bits} bits)",
        )
    )
