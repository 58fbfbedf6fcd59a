"""Opening and unpacking files that need not be trusted."""

from collections.abc import Mapping
from typing import Any

STANDARD_STREAM = "-"
"""The path that stands for standard input or standard output."""

Fields = Mapping[str, Any]
"""An object of JSON: what its fields are, its schema says, or the function that makes it."""
