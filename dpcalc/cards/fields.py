"""The fields of a card, checked by its schema before use (`dpcalc.cards.document`)."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

Given = dict[str, Any]
"""Parameters of a run or a mechanism, and their values."""


class File(TypedDict):
    """A file, identified by its hash."""

    sha256: str
    bytes: int


class Model(File):
    """The model's file, and the privacy that it states."""

    noise_source: str
    epsilon: float
    delta: float
    class_shares: NotRequired[list[float]]
    class_weights: NotRequired[list[float]]


class Tuning(TypedDict):
    """The distribution of the number of runs from which an entry was chosen."""

    distribution: str
    mean: float
    shape: float | None


class Entry(TypedDict):
    """An entry of a ledger."""

    name: str
    command: str
    given: Given
    times: int
    part: str
    tuning: Tuning | None
    adjacency: str | None


class Ledger(TypedDict):
    """A ledger."""

    adjacency: str
    group_size: int
    kept: bool
    entries: list[Entry]


class Limit(TypedDict):
    """The limit on an attacker for which a parameter was solved."""

    name: str
    at: float | None
    limit: float


class Asked(TypedDict):
    """The question of a card: the command, its parameters, and what is asked."""

    command: str
    given: Given
    epsilon: float | None
    delta: float | str | None
    orders: list[float]
    solve: str | None
    targets: NotRequired[list[Limit]]
    risk: dict[str, list[float]] | None
    bound: NotRequired[str]
    certified: bool
    schedule: File | None
    ledger: Ledger | None


class Guarantee(TypedDict):
    """The best answers: in words, and a number for each."""

    headline: list[str]
    statement: str
    meaning: str
    definition: str
    numbers: list[dict[str, Any]]


class Case(TypedDict):
    """One question and its answer."""

    name: str | None
    asked: Asked
    inputs: dict[str, dict[str, Any]]
    unit: dict[str, Any]
    trust: dict[str, str]
    released: str
    mechanism: dict[str, Any]
    guarantee: Guarantee
    risk: dict[str, Any] | None
    assumptions: list[dict[str, str]]
    not_covered: list[str]
    theorems: list[dict[str, Any]]
    configuration_sha256: str


class Card(TypedDict):
    """A card."""

    schema: str
    dpcalc: str
    cases: list[Case]
    model: Model | None
    sha256: str
