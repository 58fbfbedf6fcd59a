"""What stands in a card, by name: its schema checks all of it before anything is read (`dpcalc.cards.document`)."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

Given = dict[str, Any]
"""Parameters of a run or a mechanism, and their values."""


class File(TypedDict):
    """A file, known by its hash."""

    sha256: str
    bytes: int


class Model(File):
    """The model's file that a card is beside, and what it states of its privacy."""

    noise_source: str
    epsilon: float
    delta: float
    class_shares: NotRequired[list[float]]
    class_weights: NotRequired[list[float]]


class Tuning(TypedDict):
    """The law of the number of runs of which an entry is the best."""

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
    """What an attacker may do at most, where a parameter was solved for that."""

    name: str
    at: float | None
    limit: float


class Asked(TypedDict):
    """What was asked: the command, what was given, and the question."""

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
