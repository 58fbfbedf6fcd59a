"""The Bound record and the registry: what is known about each theorem, as data.

A bound is a pure function with keyword-only parameters named as in `dpcalc.spec.symbols`, registered once with
`bound`. The registry reads which parameters it needs from its signature; the command line, ``explain``, ``bounds``, the
documentation's table and the registry-wide tests all read the record.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from dpcalc.errors import MissingParameter, NotApplicable, SpecError

Function = TypeVar("Function", bound=Callable[..., Any])

FAMILIES = (
    "iteration", "scheduled", "shifted", "multi_epoch", "contraction", "shuffle", "hidden_position", "online",
    "stepwise", "noisy_gd", "noisy_sgd", "released", "shuffled_epochs", "linear", "dp_sgd", "utility", "tasks",
    "smoothing", "langevin", "descent", "holder_cost",
)  # fmt: skip

GIVES = ("mu", "rdp", "log_delta", "epsilon", "parts", "cost")
"""What a bound's function returns: a GDP parameter; the RDP at ``order``; ln delta at ``epsilon``; epsilon at
``log_delta``; what is composed, as [(pair of laws, how often), ...]; what a budget costs, as a `bounds.cost.Cost`."""

KINDS = ("upper", "exact", "lower", "asymptotic", "published")
"""``upper`` and ``exact`` are guarantees. ``published`` is what a paper prints, kept for comparison where it is wrong
or superseded; like ``asymptotic`` and ``lower`` it never gates, never solves and is never best."""

CONDITIONAL = "conditional"
"""The kind of a result whose bound demands something that the described run does not promise; no guarantee."""

QUESTIONS = {"order", "epsilon", "log_delta"}


class Requirement(NamedTuple):
    """A precondition as data: ``failure`` returns None or what was found and what to do about it."""

    text: str
    failure: Callable[[Mapping[str, Any]], tuple[str, str] | None]


class Bound(NamedTuple):
    """A registered theorem."""

    id: str
    title: str
    gives: str
    kind: str
    algorithms: tuple[str, ...]
    function: Callable[..., Any]
    requires: tuple[Requirement, ...]
    assumes: tuple[str, ...]
    reference: str
    locator: str
    formula: str
    erratum: str
    demands: tuple[Requirement, ...]
    slack: str
    coarse: bool
    unsolved: tuple[str, ...]
    implied_by: str

    @property
    def optional(self) -> frozenset[str]:
        """The parameters that sharpen the bound where they are known and are not needed."""
        return frozenset(self.function.__kwdefaults__ or ())

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names the function takes, without the question's own (order, epsilon, log_delta)."""
        code = self.function.__code__
        first = code.co_argcount
        names = code.co_varnames[first : first + code.co_kwonlyargcount]
        return tuple(name for name in names if name not in QUESTIONS)

    @property
    def statement(self) -> str:
        """The first paragraph of the function's docstring."""
        text = (self.function.__doc__ or "").strip().split("\n\n")[0]
        return " ".join(text.split())

    @property
    def guarantee(self) -> bool:
        """Whether the value may be promised, gated and solved with."""
        return self.kind in ("upper", "exact")

    def to_dict(self) -> dict[str, Any]:
        """Return what is known of the bound, as JSON types."""
        return {
            "id": self.id,
            "title": self.title,
            "kind": self.kind,
            "gives": self.gives,
            "algorithms": list(self.algorithms),
            "parameters": list(self.parameters),
            "assumes": list(self.assumes),
            "requires": [requirement.text for requirement in self.requires],
            "demands": [demand.text for demand in self.demands],
            "formula": self.formula,
            "reference": self.reference,
            "locator": self.locator,
            "erratum": self.erratum,
        }

    def obstacle(self, values: Mapping[str, Any]) -> tuple[str, str] | None:
        """Return why the bound does not apply to these values and what would make it, or None."""
        if values.get("schedule") is not None and "schedule" not in self.parameters:
            return "speaks of equal steps, and a schedule is given", "leave out --schedule if all steps are alike"
        given_as = {"sensitivity": "lipschitz", "scale": "noise_std"}
        needed = [name for name in self.parameters if name not in self.optional]
        missing = [given_as.get(name, name) for name in needed if values.get(name) is None]
        if len(missing) > 1:
            missing = [name for name in missing if name != "displacement"]  # it follows from the others
        if missing:
            flags = ", ".join("--" + name.replace("_", "-") for name in missing)
            return f"needs {', '.join(missing)}", f"give {flags}"
        for requirement in self.requires:
            found = requirement.failure(values)
            if found:
                return found
        return None

    def function_of(self, values: Mapping[str, Any]) -> Callable[..., Any]:
        """Return the function with the run's parameters filled in; it still takes the question's own.

        Raises:
            NotApplicable: a requirement fails.
        """
        found = self.obstacle(values)
        if found:
            raise (MissingParameter if found[0].startswith("needs ") else NotApplicable)(*found)
        return functools.partial(self.function, **{n: values[n] for n in self.parameters if values.get(n) is not None})

    def unmet(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what the bound demands that these values do not promise: its number is then no guarantee."""
        return tuple(demand.text for demand in self.demands if demand.failure(values))


_BOUNDS: dict[str, Bound] = {}


def bound(
    id: str,
    *,
    title: str,
    gives: str,
    algorithms: tuple[str, ...],
    reference: str,
    locator: str,
    formula: str,
    kind: str = "upper",
    requires: tuple[Requirement, ...] = (),
    assumes: tuple[str, ...] = (),
    erratum: str = "",
    demands: tuple[Requirement, ...] = (),
    slack: str = "",
    coarse: bool = False,
    unsolved: tuple[str, ...] = (),
    implied_by: str = "",
) -> Callable[[Function], Function]:
    """Register the decorated pure function as the bound ``id`` and return it unchanged.

    ``demands`` are promises of the user without which the number is shown and no guarantee. ``slack`` says how far the
    value may lie above the theorem's, where that is more than rounding. ``coarse`` marks a function that takes tens of
    milliseconds: searches over it end seven digits deep. ``unsolved`` names parameters in which it is not known to be
    monotone. ``implied_by`` names a bound that requires no more and gives no larger epsilon or delta: the two are shown
    side by side, and where only the best is wanted this one need not be evaluated.
    """

    def register(function: Function) -> Function:
        if id in _BOUNDS or gives not in GIVES or kind not in KINDS:
            raise ValueError(f"bad or repeated registration of {id}")
        _BOUNDS[id] = Bound(
            id, title, gives, kind, algorithms, function, requires, assumes, reference, locator, formula, erratum,
            demands, slack, coarse, unsolved, implied_by,
        )  # fmt: skip
        return function

    return register


@functools.cache
def all_bounds(families: tuple[str, ...] = FAMILIES) -> dict[str, Bound]:
    """Return every bound of these families by id, family by family whichever was imported first.

    Each family is a module: a question to a few of them does not wait for the others.
    """
    modules = [importlib.import_module(f"dpcalc.bounds.{family}").__name__ for family in families]
    found = [item for item in _BOUNDS.items() if item[1].function.__module__ in modules]
    return dict(sorted(found, key=lambda item: modules.index(item[1].function.__module__)))


def lookup(id: str) -> Bound:
    """Return the bound of this id.

    Raises:
        SpecError: there is none; the hint names the nearest.
    """
    known = all_bounds()
    if id not in known:
        import difflib

        near = difflib.get_close_matches(id, known, n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(near)}?" if near else "`dpcalc bounds` lists them all"
        raise SpecError(f"no bound is called {id!r}", hint)
    return known[id]


def for_algorithm(algorithm: str, families: tuple[str, ...] = FAMILIES) -> list[Bound]:
    """Return the privacy bounds of these families that speak of this algorithm, in order of registration."""
    return [b for b in all_bounds(families).values() if algorithm in b.algorithms and b.gives != "cost"]


def costs() -> list[Bound]:
    """Return the bounds on excess risk, in order of registration."""
    return [b for b in all_bounds().values() if b.gives == "cost"]


def finite(value: float) -> bool:
    """Return whether a bound's value says anything at all."""
    return not (math.isinf(value) or math.isnan(value))
