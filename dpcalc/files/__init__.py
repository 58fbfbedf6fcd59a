"""Opening and unpacking files that need not be trusted."""

from collections.abc import Mapping
from typing import Any

STANDARD_STREAM = "-"
"""The path that stands for standard input or standard output."""

Fields = Mapping[str, Any]
"""A JSON object; its schema, or the function that makes it, defines the fields."""
