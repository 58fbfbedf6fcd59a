"""The record of a theorem, which holds what is known about it as data, and the decorator that makes one.

A theorem is a pure function from a `Setting`, the parameters of a run that its family reads, to a guarantee: `Gdp`,
`Rdp`, `Profile`, `Composition` or `Point`, or for an excess risk `Risk`. The command line, ``explain``, ``bounds``, the
documentation and the registry-wide tests all read the record.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, TypeVar

from dpcalc.errors import MissingParameter, NotApplicable, SpecError, Superseded
from dpcalc.model.quantities import Kind
from dpcalc.model.run import Run
from dpcalc.notions.conversions import Risk
from dpcalc.notions.guarantee import Composition, Gdp, Point, Profile, Rdp
from dpcalc.theorems.setting import Setting

FAMILIES: dict[str, tuple[str, ...]] = {
    "iteration": ("one_pass.iteration", "one_pass.random_stop", "one_pass.linear_models"),
    "scheduled": ("one_pass.iteration",),
    "shifted": ("one_pass.shifted",),
    "multi_epoch": (
        "many_passes.multi_epoch", "lower.quadratic", "many_passes.laplace_passes",
        "one_pass.linear_models",
    ),
    "contraction": ("contraction.contraction",),
    "shuffle": ("contraction.shuffle", "one_pass.linear_models"),
    "hidden_position": ("hidden.hidden_position",),
    "online": ("contraction.online",),
    "stepwise": ("contraction.stepwise",),
    "noisy_gd": ("many_passes.noisy_gd", "lower.quadratic", "many_passes.multi_epoch", "many_passes.laplace_passes"),
    "noisy_sgd": ("sampled.noisy_sgd",),
    "sampled": (
        "sampled.sampled_steps", "sampled.known_places", "sampled.sampled_hidden", "lower.hidden_batches",
        "lower.sampled_totals", "lower.largest_sums", "sampled.last_iterate",
    ),
    "released": ("released.released", "released.released_fresh_orders"),
    "shuffled_epochs": ("many_passes.shuffled_epochs", "many_passes.laplace_passes", "one_pass.linear_models"),
    "expanding": ("expanding.expanding", "expanding.expanding_passes"),
    "unlearning": ("many_passes.unlearning",),
    "linear": (
        "lower.linear_losses",
        "lower.random_linear_losses",
        "lower.common_losses",
        "lower.curved_orders",
        "lower.forgetting",
        "lower.hidden_batches",
    ),
    "correlated": ("correlated.correlated",),
    "dp_sgd": ("holder.dp_sgd",),
    "utility": ("risk.utility",),
    "tasks": ("risk.tasks",),
    "smoothing": ("risk.generalisation",),
    "langevin": ("risk.langevin",),
    "descent": ("risk.langevin",),
    "holder_cost": ("risk.holder_cost",),
}  # fmt: skip
"""The modules (below this package) with the theorems ``family.name``, in the order in which they are listed."""

GIVES: dict[type, str] = {
    Gdp: "mu", Rdp: "rdp", Profile: "log_delta", Point: "epsilon", Composition: "parts", Risk: "cost",
}  # fmt: skip
"""The classes that a theorem may return, and their names in JSON."""

KINDS = frozenset(Kind) - {Kind.CONDITIONAL}
"""The kinds of theorems; whether a result is conditional depends on the run."""

_BUDGET = ("epsilon", "log_delta")

_GIVEN_AS = {
    "sensitivity": "lipschitz", "scale": "noise_std", "log_delta": "delta", "sample_rate": "batch_size",
}  # fmt: skip
"""Parameters that follow from another one, which the user gives instead."""

_USES = ("participations", "separation")


def _given_as(known: Collection[str]) -> dict[str, str]:
    """Return what is asked for in place of parameters that follow from it."""
    if "batch_size" in known and "records" not in known:
        return {**_GIVEN_AS, **dict.fromkeys(("sample_rate", *_USES), "records")}
    return _GIVEN_AS if {"epochs", *_USES} & set(known) else {**_GIVEN_AS, **dict.fromkeys(_USES, "epochs")}


class Missing(NamedTuple):
    """Parameters that a theorem needs and that were not given: their names, what is missing, and what to give."""

    parameters: tuple[str, ...]
    because: str
    cure: str

    @property
    def error(self) -> type[NotApplicable]:
        """The class of the error."""
        return MissingParameter


class Unmet(NamedTuple):
    """A condition that does not hold: what was given, what to do, and the parameters in that advice."""

    because: str
    cure: str
    parameters: tuple[str, ...] = ()

    @property
    def error(self) -> type[NotApplicable]:
        """The class of the error."""
        return NotApplicable


class NotNeeded(NamedTuple):
    """The theorem is for other runs, and sharper ones cover this run: answers do not mention it."""

    because: str
    cure: str
    parameters: tuple[str, ...] = ()

    @property
    def error(self) -> type[NotApplicable]:
        """The class of the error."""
        return Superseded


Obstacle = Missing | Unmet | NotNeeded

_CHANGES: dict[str, Unmet] = {
    name: Unmet(because, cure, (name,))
    for name, because, cure in (
        (
            "schedule", "speaks of equal steps, and a schedule is given",
            "leave out --schedule if all steps are alike",
        ),
        (
            "max_batch_size", "speaks of batches of any size, and these are cut to a largest one",
            "leave out --max-batch-size if no batch is cut",
        ),
        (
            "uses", "does not cover records with a given number of uses in every epoch",
            "use --sampling balls-in-bins, or leave out --uses",
        ),
    )
}  # fmt: skip
"""Parameters that change the run: a theorem that does not read them does not cover runs that have them."""


def refusal(obstacle: Obstacle) -> NotApplicable:
    """Return the error for an obstacle."""
    return obstacle.error(obstacle.because, obstacle.cure, parameters=obstacle.parameters)


NOT_CONVEX = Unmet(
    "is for convex losses, and a negative strong convexity is of losses that are not",
    "give --strong-convexity 0 or more, if they are convex",
    ("strong_convexity",),
)


@functools.cache
def needs(*names: str) -> Missing:
    """Return the obstacle that asks for these parameters."""
    flags = ["--" + name.replace("_", "-") for name in names]
    return Missing(names, f"needs {', '.join(names)}", f"give {', '.join(flags)}")


def lacking(run: Run, *names: str) -> Missing:
    """Return the obstacle that asks for the unknown ones of these parameters."""
    return needs(*(name for name in names if run.value(name) is None))


class Condition(NamedTuple):
    """A precondition as data: its text, and ``check``, which returns an obstacle or None."""

    text: str
    check: Callable[[Run], Obstacle | None]


def requires(text: str, holds: Callable[[Run], object], obstacle: Obstacle | Callable[[Run], Obstacle]) -> Condition:
    """Return the condition that is met if ``holds``; otherwise its check returns ``obstacle``."""

    def check(run: Run) -> Obstacle | None:
        if holds(run):
            return None
        return obstacle(run) if callable(obstacle) else obstacle

    return Condition(text, check)


class Theorem(NamedTuple):
    """A registered theorem.

    Attributes:
        id, title: the identifier ``family.name``, and a short title.
        gives: the class of the result.
        kind: one of `KINDS`.
        algorithms: the names of the algorithms that it covers.
        reads: the parameters of a run that it reads.
        optional: the ones that are not needed but sharpen it.
        setting: the class of the function's argument.
        function: from a setting to the result.
        conditions: the preconditions.
        assumes: further assumptions, as sentences.
        reference, locator: the paper, and the place in it.
        formula: as the code computes it.
        erratum: the error in the paper.
        caution: what a lower value or a heuristic means, and what it does not mean.
        promises: what the user must promise; otherwise the number is shown but is no guarantee.
        slack: how far the value may lie above the theorem's, if that is more than rounding.
        slow: whether an evaluation takes tens of milliseconds: searches over it end seven digits deep.
        not_monotone_in: parameters in which it is not known to be monotone.
        implied_by: a theorem that needs no more and proves no less; if only the best bound is wanted, this one is not
        evaluated.
        uncertified: why `--certify` has no definition of it; empty if `dpcalc.certify` has one.
        by_difference: for a lower value: whether its losses have gradients of any size, so that it only bounds
        guarantees that use nothing but the distance of two gradients.
        public_sums: whether it holds even if every noisy sum of gradients is public, so that runs may round each of
        them.
        steps_to_hide: setting -> about the number of steps from which it is below the composition of samples.
        given_allocation: whether shifts are allocated by the schedule rather than optimally.
        limit_of: for a limit as the number of records grows: the bound that tends to it, and the relative difference
        below which only the slack of that bound is visible.
        better_because: why it is below the bound in the literature.
        weakly_convex: whether it holds for losses that are only weakly convex, whose steps may drive two runs apart: it
        reads their class, or no property of them. Other theorems refuse a negative strong convexity, unless every sum
        is public and no property of the losses is used.
        looser_than: a bound that is never above it; notes then skip this one, because its search is slow.
    """

    id: str
    title: str
    gives: type
    kind: Kind
    algorithms: tuple[str, ...]
    reads: tuple[str, ...]
    optional: frozenset[str]
    setting: type[Any]
    function: Callable[[Any], Any]
    conditions: tuple[Condition, ...]
    assumes: tuple[str, ...]
    reference: str
    locator: str
    formula: str
    erratum: str
    caution: str
    promises: tuple[Condition, ...]
    slack: str
    slow: bool
    not_monotone_in: tuple[str, ...]
    implied_by: str
    uncertified: str
    by_difference: bool
    public_sums: bool
    steps_to_hide: Callable[[Any], float] | None
    looser_than: str
    given_allocation: bool
    limit_of: tuple[str, float] | None
    better_because: str
    weakly_convex: bool

    def differs_alone(self, strong_convexity: float | None) -> bool:
        """Return whether, as a lower value, it only bounds guarantees that use nothing but the distance of two
        gradients.

        Its losses then have gradients of any size, as all losses have that are strongly convex on the whole space.
        """
        return self.by_difference or ("strong_convexity" in self.parameters and bool(strong_convexity))

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters of a run that it reads, without the budget."""
        return tuple(name for name in self.reads if name not in _BUDGET)

    @property
    def family(self) -> str:
        """The first part of the id: a key of `FAMILIES`."""
        return self.id.partition(".")[0]

    @property
    def notion(self) -> str:
        """The name of the result's class in JSON: a value of `GIVES`."""
        return GIVES[self.gives]

    @property
    def budgeted(self) -> bool:
        """Whether it reads the budget (epsilon, delta)."""
        return "log_delta" in self.reads

    @property
    def statement(self) -> str:
        """The first paragraph of the function's docstring."""
        return " ".join((self.function.__doc__ or "").strip().split("\n\n")[0].split())

    @property
    def guarantee(self) -> bool:
        """Whether the value is a guarantee: it may be gated and solved for."""
        return self.kind.guarantee

    @property
    def lower(self) -> bool:
        """Whether it is a lower bound."""
        return self.kind is Kind.LOWER

    @property
    def rounds_down(self) -> bool:
        """Whether its answers round down: like a lower bound, a heuristic is true for certain runs."""
        return self.kind in (Kind.LOWER, Kind.HEURISTIC)

    @property
    def price(self) -> bool:
        """Whether it bounds an excess risk rather than privacy."""
        return self.gives is Risk

    @property
    def certifiable(self) -> bool:
        """Whether `--certify` can prove its values: it is a guarantee with a definition."""
        return self.guarantee and not self.uncertified

    @property
    def certifying(self) -> str:
        """What `--certify` does with a guarantee, in words; empty for other kinds."""
        if not self.guarantee:
            return ""
        return f"proves nothing of it: {self.uncertified}" if self.uncertified else "has a definition of it"

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON types."""
        return {
            "id": self.id,
            "title": self.title,
            "kind": str(self.kind),
            "gives": GIVES[self.gives],
            "algorithms": list(self.algorithms),
            "parameters": list(self.parameters),
            "assumes": list(self.assumes),
            "requires": [condition.text for condition in self.conditions],
            "demands": [promise.text for promise in self.promises],
            "formula": self.formula,
            "reference": self.reference,
            "locator": self.locator,
            "erratum": self.erratum or self.caution,
            "certifiable": self.certifiable,
        }

    def obstacle(self, run: Run) -> Obstacle | None:
        """Return why the theorem does not apply to this run and how to change that, or None."""
        known = run.values
        unread: Obstacle | None = None
        for name, obstacle in _CHANGES.items():
            if name in known and name not in self.reads:
                unread = unread or obstacle
        unmet: Obstacle | None = None
        unneeded: Obstacle | None = None
        for condition in self.conditions:
            if (failed := condition.check(run)) is not None:
                unmet = unmet or failed
                unneeded = unneeded or (failed if isinstance(failed, NotNeeded) else None)
        if unread and run.schedule is not None:
            return unneeded or unread
        if not self.weakly_convex and (run.strong_convexity or 0.0) < 0.0:
            return NOT_CONVEX
        if unneeded or unread:
            return unneeded or unread
        given_as = _given_as(known)
        unknown = (name for name in self.reads if name not in known and name not in self.optional)
        missing = list(dict.fromkeys(given_as.get(name, name) for name in unknown))
        if "steps" in missing and "epochs" in known and len(missing) > 1:
            missing.remove("steps")  # they follow from the epochs and the others
        if "displacement" in missing and len(missing) > 1:
            missing.remove("displacement")  # it follows from the others
        if "index" in missing and "records" in missing and not run.algorithm.grows:
            missing.remove("index")  # the worst one, if it is not given
        return needs(*missing) if missing else unmet

    def prove(self, run: Run) -> Any:
        """Return the theorem's result for the run.

        Raises:
            NotApplicable: a condition does not hold, or a parameter is missing (`MissingParameter`).
        """
        obstacle = self.obstacle(run)
        if obstacle:
            raise refusal(obstacle)
        return self.function(self.setting.of(run, self.reads))

    def unpromised(self, run: Run) -> tuple[str, ...]:
        """Return the promises that it needs but this run does not make; with any, its number is no guarantee."""
        return tuple([promise.text for promise in self.promises if promise.check(run)]) if self.promises else ()


S = TypeVar("S", bound=Setting)
G = TypeVar("G", Gdp, Rdp, Profile, Composition, Point, Risk)

_THEOREMS: dict[str, Theorem] = {}


def theorem(
    id: str,
    *,
    title: str,
    needs: tuple[str, ...],
    algorithms: tuple[str, ...],
    reference: str,
    locator: str,
    formula: str,
    kind: str = "upper",
    conditions: tuple[Condition, ...] = (),
    assumes: tuple[str, ...] = (),
    erratum: str = "",
    caution: str = "",
    promises: tuple[Condition, ...] = (),
    slack: str = "",
    slow: bool = False,
    not_monotone_in: tuple[str, ...] = (),
    implied_by: str = "",
    uncertified: str = "",
    by_difference: bool = False,
    public_sums: bool = False,
    steps_to_hide: Callable[[Any], float] | None = None,
    looser_than: str = "",
    given_allocation: bool = False,
    limit_of: tuple[str, float] | None = None,
    better_because: str = "",
    weakly_convex: bool = False,
) -> Callable[[Callable[[S], G]], Callable[[S], G]]:
    """Register the decorated function as the theorem ``id`` and return it unchanged; see `Theorem` for the arguments.

    ``needs`` names the parameters that it reads; one with a question mark may be unknown. The annotations give the
    classes of the setting and the result.
    """
    reads = tuple([name.removesuffix("?") for name in needs])
    optional = frozenset(reads).difference(needs)

    def register(function: Callable[[S], G]) -> Callable[[S], G]:
        setting, gives = [function.__globals__[name] for name in function.__annotations__.values()]
        if not Setting.fields.issuperset(reads):
            raise ValueError(f"{id} needs what is no parameter")
        if id in _THEOREMS or gives not in GIVES or kind not in KINDS:
            raise ValueError(f"bad or repeated registration of {id}")
        _THEOREMS[id] = Theorem(
            id, title, gives, Kind(kind), algorithms, reads, optional, setting, function, conditions, assumes,
            reference, locator, formula, erratum, caution, promises, slack, slow, not_monotone_in, implied_by,
            uncertified, by_difference, public_sums, steps_to_hide, looser_than,
            given_allocation, limit_of, better_because, weakly_convex or public_sums,
        )  # fmt: skip
        return function

    return register


@functools.cache
def all_bounds(families: tuple[str, ...] = tuple(FAMILIES)) -> dict[str, Theorem]:
    """Return every theorem of these families by id, in the order of `FAMILIES`.

    Only the modules of these families are imported, which saves time.
    """
    ordered: dict[str, Theorem] = {}
    for family in families:
        for name in FAMILIES[family]:
            module = importlib.import_module(f"dpcalc.theorems.{name}").__name__
            for id, bound in _THEOREMS.items():
                if id.startswith(family + ".") and bound.function.__module__ == module:
                    ordered[id] = bound
    return ordered


def lookup(id: str) -> Theorem:
    """Return the bound of this id.

    Raises:
        SpecError: there is none; the hint names the nearest ids.
    """
    if id in _THEOREMS:  # its module is already imported
        return _THEOREMS[id]
    theorems = all_bounds()
    if id not in theorems:
        import difflib

        near = difflib.get_close_matches(id, theorems, n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(near)}?" if near else "`dpcalc bounds` lists them all"
        raise SpecError(f"no bound is called {id!r}", hint)
    return theorems[id]


def for_algorithm(algorithm: str, families: tuple[str, ...] = tuple(FAMILIES)) -> list[Theorem]:
    """Return the privacy bounds of these families for this algorithm, in order of registration."""
    return [b for b in all_bounds(families).values() if algorithm in b.algorithms and b.gives is not Risk]


def costs() -> list[Theorem]:
    """Return the bounds on excess risk, in order of registration."""
    families = tuple(name for name, modules in FAMILIES.items() if modules[0].startswith("risk."))
    return [b for b in all_bounds(families).values() if b.price]


def without_definition() -> dict[str, str]:
    """Return id -> why `--certify` has no definition, for all theorems without one."""
    return {bound.id: bound.uncertified for bound in all_bounds().values() if bound.uncertified}


def finite(value: float) -> bool:
    """Return whether a bound's value is finite."""
    return not (math.isinf(value) or math.isnan(value))
