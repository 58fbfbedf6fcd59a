"""Enums whose members are plain words to everything that prints them."""

from __future__ import annotations

from enum import StrEnum


class PlainEnum(StrEnum):
    """A `StrEnum` that also shows as its word inside lists and error messages."""

    __repr__ = str.__repr__
