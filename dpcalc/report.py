"""What was asked and what was found: Report -> Case -> Result. Renderers read these and nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from dpcalc.spec.quantities import RAN, RISKS
from dpcalc.version import __version__

SCHEMA = "dpcalc.report/1"

_NUMBERS = (
    "case", "algorithm", "bound", "quantity", "value", "kind", "epsilon", "delta", "log_delta", "mu", "order",
)  # fmt: skip


class Result(NamedTuple):
    """One bound's answer.

    ``quantity`` names what ``value`` is: epsilon, log_delta, mu, rdp, or the name of the parameter solved for. A
    number of kind ``upper`` or ``exact`` is a guarantee and has been rounded to the safe side.
    """

    bound: str
    title: str
    quantity: str
    value: float
    kind: str
    epsilon: float | None = None
    delta: float | None = None
    log_delta: float | None = None
    mu: float | None = None
    order: float | None = None
    conversion: str | None = None
    adjacency: str = "replace_one"
    assumes: tuple[str, ...] = ()
    reference: str = ""
    best: bool = False
    details: Mapping[str, Any] | None = None

    @property
    def guarantee(self) -> bool:
        """Whether this number may be promised."""
        return self.kind in ("upper", "exact")


class Obstacle(NamedTuple):
    """Why a bound does not apply, and what would make it."""

    bound: str
    because: str
    hint: str


class Tightness(NamedTuple):
    """How far the best guarantee is from ``value``, which no guarantee can beat for what is known of the run.

    ``ratio`` is best over value (of deltas for a delta), None where that is no number.
    """

    bound: str
    value: float
    ratio: float | None


class Assertion(NamedTuple):
    """A gate: its text, whether it held, the value compared and the room left (negative when failed)."""

    text: str
    passed: bool
    value: float | str
    slack: float | None

    @property
    def by_rounding(self) -> bool:
        """Whether it failed by no more than the rounding of a computation."""
        if self.slack is None or isinstance(self.value, str):
            return False
        return 0.0 < -self.slack <= 1e-9 * abs(self.value)


class Check(NamedTuple):
    """Where a case of a recipe stands, and how it ended.

    ``status`` is passed, failed (a gate did not hold), skipped or error; ``message`` says why where it did not pass,
    ``hint`` what to do, and ``exit_code`` is what the case alone would exit with.
    """

    name: str
    command: str
    file: str
    line: int
    column: int
    status: str
    message: str | None = None
    hint: str | None = None
    exit_code: int = 0


class Case(NamedTuple):
    """One described run and one question about it.

    ``training`` is what was measured where the run was carried out as well, ``check`` what became of a recipe's case.
    """

    algorithm: str
    inputs: Mapping[str, tuple[Any, str]]
    results: tuple[Result, ...]
    obstacles: tuple[Obstacle, ...] = ()
    assertions: tuple[Assertion, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tightness: Tightness | None = None
    training: Mapping[str, Any] | None = None
    check: Check | None = None

    @property
    def best(self) -> Result | None:
        """The result to quote, if any bound gave a guarantee."""
        return next((r for r in self.results if r.best), None)

    @property
    def failed(self) -> bool:
        """Whether a gate failed."""
        return any(not a.passed for a in self.assertions)


class Report(NamedTuple):
    """The answer to one command."""

    command: str
    cases: tuple[Case, ...]

    @property
    def failed(self) -> int:
        """How many cases failed a gate."""
        return sum(case.failed for case in self.cases)

    @property
    def columns(self) -> tuple[str, ...]:
        """The keys of `rows`: result, run that has the cost where costs are reported, inputs, what was measured."""
        names = sorted({name for case in self.cases for name in case.inputs})
        costs = any(result.quantity in RISKS for case in self.cases for result in case.results)
        inputs = (f"input_{name}" for name in names)
        measured = sorted({name for case in self.cases for name in _measured(case)})
        return (*_NUMBERS, *(RAN if costs else ()), "adjacency", "best", "reference", *inputs, *measured)

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat dict a result, all with the same keys: what a data frame or a CSV file takes.

        ``case`` counts from 1; the inputs of a case follow prefixed ``input_``, None where it has no such input.
        """
        columns, found = self.columns, []
        for number, case in enumerate(self.cases, start=1):
            inputs = {f"input_{name}": value for name, (value, _) in case.inputs.items()}
            for result in case.results:
                details = result.details or {}
                own = {"case": number, "algorithm": case.algorithm, **{n: details.get(n) for n in RAN}}
                known = {**own, **result._asdict(), **inputs, **_measured(case)}
                found.append({name: known.get(name) for name in columns})
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the report as the ``dpcalc.report/1`` envelope: JSON types only, no NaN or infinity."""
        return {
            "schema": SCHEMA,
            "dpcalc": __version__,
            "command": self.command,
            "cases": [_case(case) for case in self.cases],
            "summary": {"cases": len(self.cases), "failed": self.failed, **_ended(self.cases)},
        }


def _ended(cases: tuple[Case, ...]) -> dict[str, int]:
    """Return how many of a recipe's cases ended how; nothing where they are of no recipe."""
    found = [case.check.status for case in cases if case.check]
    words = {"passed": "passed", "skipped": "skipped", "errors": "error"}
    return {name: found.count(status) for name, status in words.items()} if found else {}


def _measured(case: Case) -> dict[str, Any]:
    """Return what was measured of a run that was carried out, as columns ``train_loss``, ``private``, ..."""
    if not case.training:
        return {}
    found: dict[str, Any] = {"private": case.training["private"]}
    models = {"": case.training["metrics"], "non_private_": case.training["non_private"]}
    for prefix, parts in models.items():
        for part in ("train", "test"):
            found.update({f"{prefix}{part}_{name}": value for name, value in parts.get(part, {}).items()})
    return found


def _case(case: Case) -> dict[str, Any]:
    return {
        "algorithm": case.algorithm,
        "inputs": {name: {"value": value, "source": source} for name, (value, source) in case.inputs.items()},
        "results": [_result(result) for result in case.results],
        "not_applicable": [o._asdict() for o in case.obstacles],
        "assertions": [_assertion(a) for a in case.assertions],
        "warnings": list(case.warnings),
        "notes": list(case.notes),
        **({"tightness": case.tightness._asdict()} if case.tightness else {}),
        **({"training": dict(case.training)} if case.training else {}),
        **({"check": case.check._asdict()} if case.check else {}),
    }


def _assertion(assertion: Assertion) -> dict[str, Any]:
    fields = assertion._asdict()
    if assertion.slack is not None and math.isinf(assertion.slack):
        fields["slack"] = None  # a delta that is exactly 0, compared by its logarithm
    return fields


_ALWAYS = ("bound", "quantity", "value", "kind", "adjacency", "assumes", "reference", "best")


def _result(result: Result) -> dict[str, Any]:
    fields = result._asdict()
    del fields["title"]
    fields["assumes"] = list(result.assumes)
    details = fields.pop("details") or {}
    kept = {k: v for k, v in fields.items() if v is not None or k in _ALWAYS}
    if kept["value"] in (float("inf"), float("-inf")):
        kept["value"], kept["reason"] = None, "no finite value"
    if kept.get("log_delta") == float("-inf"):
        kept["log_delta"], kept["reason"] = None, "delta is exactly 0"
    return {**kept, **details}


def uncertified(case: Case) -> list[Result]:
    """Return the best results of a case that were to be certified and could not be."""
    return [result for result in case.results if result.best and "not_certified" in (result.details or {})]
