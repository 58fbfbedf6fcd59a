"""From a described run and a question to a case: select the bounds that apply, evaluate each, order them.

The one way through the house. Commands differ only in which algorithms and parameters they accept.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dpcalc.errors import DpcalcError, Infeasible, MissingParameter, NotApplicable, SpecError
from dpcalc.notions.gaussian import exp_up
from dpcalc.notions.guarantee import Answer, Composition, Gdp, Guarantee, Point, Profile, Rdp
from dpcalc.notions.renyi import optimise
from dpcalc.numerics.floats import UNIT, is_short
from dpcalc.references import SHORT
from dpcalc.registry import CONDITIONAL, Bound, for_algorithm
from dpcalc.report import Case, Obstacle, Result
from dpcalc.solve import DIRECTIONS, Direction, extreme, extreme_integer, unbounded
from dpcalc.spec.run import NOISE_SCALES, Run

_WIDE = 1 << 22  # comparison rows that cost a search per evaluation are solved to 1e-9
_COARSE = 1 << 30  # bounds that cost tens of milliseconds are solved to 2e-7,
_FINE = 1 << 16  # and their epsilon found to 1e-11, so that what was solved for is met when asked for
_ROUGH = 1 << 44  # what a promise not made would give, to 4e-3
_TYPED = ("flag", "argument")
_SHARES, _HALVINGS = (0.999, 0.97, 0.9, 0.7, 0.4, 0.1, 0.01), 4  # of the best, where something below it is looked for
_STEEP = 100.0  # how far ln delta is off matters to the search no further


class Question(NamedTuple):
    """What is asked: of epsilon, delta and the run's noise, what is None is sought.

    ``log_delta`` is ln delta as typed (so that 1e-5000 is a number), ``delta`` its double. ``solve`` names another
    parameter to solve for instead. ``orders`` restricts Renyi bounds to a list.
    """

    epsilon: float | None = None
    delta: float | None = None
    log_delta: float | None = None
    orders: tuple[float, ...] = ()
    solve: str | None = None


def answer(run: Run, question: Question, bounds: list[Bound] | None = None) -> Case:
    """Return the case: every applicable bound's answer, best first, and why the others do not apply.

    Raises:
        SpecError: the question is incomplete or over-determined.
        NotApplicable: no bound applies; the message and hint are those of the first.
        Infeasible: bounds apply but none meets the budget.
    """
    unknown = _unknown(run, question)
    results: list[Result] = []
    obstacles, failures = [], []
    # Last comes what is worked out in the light of the best: how far below it nothing can be, and what demands a
    # promise that was not made.
    given = bounds if bounds is not None else for_algorithm(run.algorithm)
    for bound in sorted(given, key=lambda b: b.kind == "lower" or bool(b.unmet(run.values))):
        try:
            if bound.coarse and bound.unmet(run.values):
                _would_better(bound, run, question, unknown, results)
            results.extend(_answer_of(bound, run, question, unknown, results))
        except DpcalcError as error:
            if isinstance(error, SpecError):
                raise
            obstacles.append(Obstacle(bound.id, error.message, error.hint or ""))
            failures.append(error)
    if not any(result.guarantee for result in results):
        raise first_failure(failures, obstacles)
    known = {
        name: value
        for name, value in run.values.items()
        if (run.sources[name] != "file" or name == "schedule") and name != unknown
    }
    inputs = inputs_of(known, run.sources, question)
    return Case(
        run.algorithm, inputs, _ranked(results, unknown), tuple(obstacles), (), _warnings(results, question), ()
    )


def _answer_of(bound: Bound, run: Run, question: Question, unknown: str, known: list[Result]) -> list[Result]:
    best = min((result.value for result in known if result.guarantee), default=None)
    if bound.coarse and bound.kind == "lower" and best and unknown in ("epsilon", *NOISE_SCALES):
        return [_floor(bound, run, question, unknown, best)]
    return _ANSWERS.get(unknown, _solved)(bound, run, question, unknown)


def _floor(bound: Bound, run: Run, question: Question, unknown: str, best: float) -> Result:
    """Return how near below the best guarantee nothing can be, found in few steps: a share of it that is too small.

    Raises:
        NotApplicable: it may be far below.
    """
    target = safe_log_delta(question)

    def too_small(share: float) -> bool:
        if unknown == "epsilon":
            return guarantee_of(bound, run.values).log_delta(share * best).value > target
        changed = run.replacing(**{unknown: share * best})
        return guarantee_of(bound, changed.values).log_delta(_below(question.epsilon)).value > target

    enough = 1.0
    for low in _SHARES:
        if too_small(low):
            break
        enough = low
    else:
        raise NotApplicable("says nothing within a factor 100 of the best guarantee", "leave it")
    for _ in range(_HALVINGS if low < _SHARES[0] else 0):
        middle = math.sqrt(low * enough)
        low, enough = (middle, enough) if too_small(middle) else (low, middle)
    given = {"epsilon": question.epsilon, "delta": question.delta, "log_delta": question.log_delta}
    if unknown == "epsilon":
        given["epsilon"] = low * best
    return _result(bound, run, unknown, low * best, conversion="profile", **given)


def _would_better(bound: Bound, run: Run, question: Question, unknown: str, results: list[Result]) -> None:
    """Raise NotApplicable unless a costly bound would better the best guarantee by 1%, if its demand were met."""
    known = [result.value for result in results if result.guarantee]
    if not known or unknown not in ("epsilon", *NOISE_SCALES):
        return
    values = run.values
    if unknown == "epsilon":
        epsilon = 0.99 * min(known)
    else:
        values, epsilon = run.replacing(**{unknown: 0.99 * min(known)}).values, _below(question.epsilon)
    if _excess(guarantee_of(bound, values, question.orders), epsilon, safe_log_delta(question)) > 0.0:
        raise NotApplicable(
            f"demands what is not promised ({'; '.join(bound.unmet(run.values))}), and would gain less than 1%",
            "leave it",
        )


def inputs_of(values: Mapping[str, Any], sources: Mapping[str, str], question: Question) -> dict[str, tuple[Any, str]]:
    """Return what a case records of its inputs: the run's and the question's, each with its source."""
    inputs = {name: (_plain(value), sources[name]) for name, value in values.items()}
    if question.epsilon is not None:
        inputs["epsilon"] = (question.epsilon, "flag")
    if question.log_delta is not None:
        inputs["delta"] = (_typed_delta(question), "flag")
    return inputs


def _typed_delta(question: Question) -> float | str | None:
    """Return delta for the record of inputs: as a power of ten where no double can hold it."""
    if question.log_delta is not None and question.log_delta < -700.0:
        return f"10^{question.log_delta / math.log(10.0):.12g}"
    return question.delta


def first_failure(failures: list[DpcalcError], obstacles: list[Obstacle]) -> DpcalcError:
    """Return the failure to show where no bound gives a guarantee, naming its bound.

    A budget out of reach says more than a theorem that does not hold, and that more than one that was not asked. Of
    those out of reach, the one that comes nearest is shown.
    """
    if not failures:
        return NotApplicable("no bound speaks of this run")
    rank = {Infeasible: 0, NotApplicable: 1, MissingParameter: 2}

    def telling(place: int) -> tuple[int, float]:
        error = failures[place]
        nearest = getattr(error, "epsilon", None)
        return rank.get(type(error), 1), math.inf if nearest is None else nearest

    place = min(range(len(failures)), key=telling)
    first = failures[place]
    role = "needed by " if isinstance(first, MissingParameter) else ""
    return type(first)(f"{first.message} ({role}{obstacles[place].bound})", first.hint)


def guarantee_of(bound: Bound, values: Mapping[str, Any], orders: tuple[float, ...] = ()) -> Guarantee:
    """Return what the bound proves for these values, as an object that answers questions.

    Raises:
        NotApplicable: a requirement fails.
    """
    function = bound.function_of(values)
    if bound.gives == "mu":
        return Gdp(function())
    if bound.gives == "rdp":
        return Rdp(lambda order: function(order=order), orders)
    if bound.gives == "log_delta":
        return Profile(functools.cache(lambda epsilon: function(epsilon=epsilon)), _FINE if bound.coarse else 2)
    if bound.gives == "parts":
        return Composition(function())
    return Point(lambda log_delta: function(log_delta=log_delta))


def _unknown(run: Run, question: Question) -> str:
    has_epsilon, has_delta = question.epsilon is not None, question.log_delta is not None
    noisy = run.algorithm in ("online", "repeated") or any(
        run.values.get(name) is not None for name in (*NOISE_SCALES, "scale")
    )
    if question.solve:
        return _explicit(run, question)
    if noisy and has_delta:
        return "epsilon"  # where epsilon is given too, the caller checks it against what is found
    if noisy and has_epsilon:
        return "delta"
    if has_epsilon and has_delta:
        return _free_noise(run)
    if noisy:
        return "rdp" if question.orders else "mu"
    raise SpecError(
        "two of epsilon, delta and the noise must be given; the third is solved for",
        "for example --noise-std 2 --delta 1e-6, or --epsilon 1 --delta 1e-6",
    )


def _free_noise(run: Run) -> str:
    """Return the name of the noise parameter that is left to be solved for."""
    return "laplace_scale" if run.values.get("noise") == "laplace" else "noise_std"


def _explicit(run: Run, question: Question) -> str:
    name = str(question.solve).replace("-", "_")
    _refuse_unordered(run, name)
    if name in ("epsilon", "delta"):
        if getattr(question, name) is not None:
            raise SpecError(f"{name} is given and also to be solved for", f"leave out --{name} or --solve")
        return name
    if name not in DIRECTIONS:
        raise SpecError(f"cannot solve for {question.solve!r}", "one of epsilon, delta, " + ", ".join(DIRECTIONS))
    if name in ("index", "records") and run.values.get("schedule") is not None:
        raise SpecError(
            f"cannot solve for {name} with a schedule: privacy need not be monotone in it", "try values with --index"
        )
    if question.epsilon is None or question.log_delta is None:
        raise SpecError(f"solving for {name} needs both epsilon and delta", "give --epsilon and --delta")
    if run.sources.get(name) in ("flag", "argument"):
        raise SpecError(f"{name} is given and also to be solved for", "leave out one of the two")
    return name


def _refuse_unordered(run: Run, name: str) -> None:
    """Raise SpecError where privacy is not monotone in the parameter."""
    scheduled, why = "c1" in run.values, None
    placed = run.sources.get("index") in ("flag", "argument")
    if scheduled and name in ("diameter", "strong_convexity"):
        why = "the schedule's noise moves with it"
    elif scheduled and name == "records" and run.algorithm != "online":
        why = "the noise is tuned to them, and delta is not monotone in them"
    elif name == "records" and run.algorithm.startswith("dp-sgd") and run.sources.get("steps") not in _TYPED:
        why = "the number of steps moves with them (give --steps)"
    elif name == "records" and run.values.get("batch_size", 1) != 1 and not (run.algorithm == "pnsgd" and placed):
        why = "a short last batch breaks the order" + (" (give --index)" if run.algorithm == "pnsgd" else "")
    elif name == "records" and run.algorithm == "online" and not placed:
        why = "the record spoken of moves with them (give --index)"
    elif name == "step_size" and (scheduled or "langevin_std" in run.values):
        why = "the noise moves with it"
    elif name == "step_size" and run.values.get("loss_class", "convex-smooth") != "convex-smooth":
        why = "a longer step adds noise and spreads two points further apart"
    elif name == "index" and run.algorithm == "stop":
        why = "with a random stop the first record is the worst off, and later ones ever better"
    if why:
        raise SpecError(f"cannot solve for {name}: {why}", f"sweep --{name.replace('_', '-')} instead")


def _result(bound: Bound, run: Run, quantity: str, value: float, **more: Any) -> Result:
    if math.isnan(value):
        raise NotApplicable(f"{bound.id} evaluated to nan")
    adjacency = str(run.values.get("adjacency", "by-shift")).replace("-", "_")
    reference = f"{SHORT[bound.reference]}, {bound.locator}"
    unmet = bound.unmet(run.values)
    extra = {**({"demands": list(unmet)} if unmet else {}), **({"slack": bound.slack} if bound.slack else {})}
    if extra:
        more["details"] = {**(more.get("details") or {}), **extra}
    return Result(
        bound.id,
        bound.title,
        quantity,
        value,
        CONDITIONAL if unmet else bound.kind,
        adjacency=adjacency,
        assumes=bound.assumes,
        reference=reference,
        **more,
    )


def _mu(guarantee: Guarantee) -> float | None:
    return guarantee.mu if isinstance(guarantee, Gdp) else None


def _how(guarantee: Guarantee, found: Answer) -> dict[str, Any]:
    how: dict[str, Any] = {"conversion": found.conversion}
    if found.order is not None and math.isfinite(found.order):
        how["order"] = found.order
    if isinstance(guarantee, Gdp):
        how["mu"] = guarantee.mu
    if found.at_edge:
        how["details"] = {"order_at_edge": True}
    if found.conversion == "pld":
        how["details"] = {"rounding": found.rounding, "lattice": found.lattice}
    return how


def _epsilon(bound: Bound, run: Run, question: Question, unknown: str) -> list[Result]:
    guarantee = guarantee_of(bound, run.values, question.orders)
    if isinstance(guarantee, Profile) and bound.coarse and bound.unmet(run.values):
        guarantee = guarantee._replace(ulps=_ROUGH)
    target = safe_log_delta(question)
    found = guarantee.epsilon(target)
    if isinstance(guarantee, Point) and math.isinf(found.value):
        raise NotApplicable("is false at this epsilon (see `explain`)", "use the exact conversion")
    if math.isinf(found.value):
        raise NotApplicable("gives no finite epsilon here", "more noise, or a larger delta")
    how = _how(guarantee, found)
    return [
        _result(
            bound, run, "epsilon", found.value, epsilon=found.value, delta=question.delta,
            log_delta=question.log_delta, **how,
        )
    ]  # fmt: skip


def _delta(bound: Bound, run: Run, question: Question, unknown: str) -> list[Result]:
    guarantee = guarantee_of(bound, run.values, question.orders)
    found = guarantee.log_delta(_below(question.epsilon))
    how = _how(guarantee, found)
    delta = exp_up(found.value)
    return [_result(bound, run, "delta", delta, epsilon=question.epsilon, delta=delta, log_delta=found.value, **how)]


def _mu_only(bound: Bound, run: Run, question: Question, unknown: str) -> list[Result]:
    guarantee = guarantee_of(bound, run.values)
    if not isinstance(guarantee, Gdp):
        raise NotApplicable("has no mu-GDP form", "give --delta, --epsilon or --order")
    if math.isinf(guarantee.mu):
        raise NotApplicable("gives no finite mu here", "more noise")
    return [_result(bound, run, "mu", guarantee.mu, mu=guarantee.mu)]


def _rdp(bound: Bound, run: Run, question: Question, unknown: str) -> list[Result]:
    guarantee = guarantee_of(bound, run.values)
    rows = []
    for order in question.orders:
        # A typed order such as 1.000000001 is off by a unit in order - 1; the divergence increases with the order.
        value = guarantee.rdp(order if is_short(order) else math.nextafter(order, math.inf))
        if math.isinf(value):
            raise NotApplicable(f"gives no finite RDP at order {order:g}", "a lower order, or more noise")
        rows.append(_result(bound, run, "rdp", value, order=order, mu=_mu(guarantee)))
    return rows


def _solved(bound: Bound, run: Run, question: Question, unknown: str) -> list[Result]:
    """Solve for a parameter of the run, bound by bound."""
    target, epsilon = safe_log_delta(question), _below(question.epsilon)
    direction = DIRECTIONS[unknown]

    @functools.cache
    def excess(value: float) -> float:
        changed = run.replacing(**{unknown: int(value) if direction.integer else value})
        return _excess(guarantee_of(bound, changed.values, question.orders), epsilon, target)

    through = {
        "lipschitz": "sensitivity", "noise_std": "scale", "laplace_scale": "scale", "window": "index",
        "epochs": "steps",
    }.get(unknown)  # fmt: skip
    taken = unknown in bound.parameters or through in bound.parameters
    if not taken and (whatever := _indifferent(bound, run, question, unknown, direction)) is not None:
        return [whatever]
    if direction.integer and bound.coarse and bound.unmet(run.values):
        raise NotApplicable("demands what is not promised: " + "; ".join(bound.unmet(run.values)), "promise it")
    if bound.kind == "asymptotic":
        raise NotApplicable("is a limit, which nothing is solved with", "ask for epsilon or delta to see it")
    if unknown in bound.unsolved:
        raise NotApplicable(f"is not known to be monotone in {unknown}", f"try values of --{unknown} in a sweep")
    try:
        value = _search(bound, run, unknown, excess, _likely(bound, run, question, unknown))
    except Infeasible as error:
        raise _unreachable(bound, run, question, unknown, error) from None
    achieved = guarantee_of(bound, run.replacing(**{unknown: value}).values, question.orders)
    more: dict[str, Any] = {"epsilon": question.epsilon, "delta": question.delta, "log_delta": question.log_delta}
    reached = achieved.epsilon(target)
    for nudge in range(0 if direction.integer else 24):
        if reached.value <= epsilon:
            break
        # A sum of many terms is monotone only to its rounding: what is printed must meet the budget when asked again.
        step = 4.0**nudge * UNIT * (_FINE if bound.coarse else 4.0)
        value *= 1.0 + (step if direction.more_is_private else -step)
        achieved = guarantee_of(bound, run.replacing(**{unknown: value}).values, question.orders)
        reached = achieved.epsilon(target)
    more.update(_how(achieved, reached))
    more["details"] = {**(more.get("details") or {}), "achieved": {"epsilon": reached.value}}
    if unbounded(value, direction):
        more["details"]["any"] = True
    return [_result(bound, run, unknown, value, **more)]


def _indifferent(bound: Bound, run: Run, question: Question, unknown: str, direction: Direction) -> Result | None:
    """Return the result of a bound that does not take the unknown: any value will do if the least private one does.

    None where the unknown matters all the same, through something that follows from it.

    Raises:
        NotApplicable: the bound misses the budget whatever the unknown, or is no guarantee.
    """
    if direction.integer or not bound.guarantee or bound.unmet(run.values):
        raise NotApplicable(f"does not depend on {unknown}", f"solve for another parameter than {unknown}")

    def at(value: float) -> tuple[Guarantee, Answer]:
        guarantee = guarantee_of(bound, run.replacing(**{unknown: value}).values, question.orders)
        return guarantee, guarantee.epsilon(safe_log_delta(question))

    value = direction.low if direction.more_is_private else direction.high
    achieved, reached = at(value)
    if reached.value > _below(question.epsilon):
        better = at(_start(run, unknown, direction))[1].value
        if better < reached.value:
            return None
        raise Infeasible(
            f"no {unknown} meets epsilon = {question.epsilon:g} at this delta: epsilon is {reached.value:.6g} for any",
            "allow a larger epsilon or delta, or more noise",
            epsilon=reached.value,
        )
    how = _how(achieved, reached)
    how["details"] = {**(how.get("details") or {}), "achieved": {"epsilon": reached.value}, "any": True}
    given = {"epsilon": question.epsilon, "delta": question.delta, "log_delta": question.log_delta}
    return _result(bound, run, unknown, value, **given, **how)


def _unreachable(bound: Bound, run: Run, question: Question, unknown: str, error: Infeasible) -> Infeasible:
    """Return the refusal with the best epsilon that the parameter can reach."""
    if error.reached is None:
        return error
    best = guarantee_of(bound, run.replacing(**{unknown: error.reached}).values, question.orders)
    reached = best.epsilon(safe_log_delta(question)).value
    return Infeasible(
        f"no {unknown} meets epsilon = {question.epsilon:g} at this delta: at {unknown} = {error.reached:g} epsilon is "
        f"{reached:.6g}",
        "allow a larger epsilon or delta, or more noise",
        epsilon=reached,
    )


def _likely(bound: Bound, run: Run, question: Question, unknown: str) -> float | None:
    """Return about the noise that sampled steps need, whose composition is costly; None where there is no guess."""
    names = ("records", "batch_size", "steps", "lipschitz")
    known = {name: run.values[name] for name in names if run.values.get(name) is not None}
    sampled = run.algorithm in ("noisy-sgd", "noisy-sgd-released", "dp-sgd-gradient") and len(known) == len(names)
    if unknown != "noise_std" or bound.gives != "parts" or not sampled:
        return None
    from dpcalc.bounds.noisy_sgd import likely_noise_std

    found = likely_noise_std(**known, epsilon=_below(question.epsilon), log_delta=safe_log_delta(question))
    return found if 1e-100 < found < 1e100 else None


def _search(
    bound: Bound, run: Run, unknown: str, excess: Callable[[float], float], likely: float | None = None
) -> float:
    direction = DIRECTIONS[unknown]
    if likely is not None:
        return extreme(excess, direction, likely, _COARSE, stride=1.5)
    if direction.integer:
        low, high = int(direction.low), int(direction.high)
        if unknown == "index":
            high = run.values["records"]
        elif unknown == "window":
            high = run.values["records"] - 1
        elif unknown == "batch_size":
            return _batch(run, direction, excess)
        elif run.sources.get("index") in ("flag", "argument"):
            low = run.values["index"]
        return extreme_integer(excess, direction, low, high)
    start = _start(run, unknown, direction)
    if unknown in ("step_size", "strong_convexity"):
        return extreme(excess, direction._replace(high=_longest(run, unknown, direction)), start)
    rough = bound.coarse and bound.unmet(run.values)
    width = _ROUGH if rough else _COARSE if bound.coarse else (4 if bound.gives in ("mu", "log_delta") else _WIDE)
    return extreme(excess, direction, start, width)


def _start(run: Run, unknown: str, direction: Direction) -> float:
    """Return a value to start bracketing from."""
    if unknown in ("step_size", "strong_convexity"):
        return min(1.0, _longest(run, unknown, direction))
    return float(run.values.get("sensitivity") or 1.0)


def _longest(run: Run, unknown: str, direction: Direction) -> float:
    """Return the largest value worth trying: the smoothness, or the step size past which steps contract less."""
    beta = float(run.values.get("smoothness") or 0.0)
    if unknown == "strong_convexity":
        return beta or 1.0
    curvature = beta + float(run.values.get("strong_convexity") or 0.0)
    return 2.0 / curvature * (1.0 - 4.0 * UNIT) if curvature else direction.high


def _batch(run: Run, direction: Direction, excess: Callable[[float], float]) -> int:
    """Return the least batch size that meets the budget among those that leave no short last batch."""
    records = int(run.values["records"])
    low = [b for b in range(1, min(math.isqrt(records), 10**6) + 1) if records % b == 0]
    sizes = sorted({*low, *(records // b for b in low)})
    place = extreme_integer(lambda k: excess(sizes[k]), direction, 0, len(sizes) - 1)
    return sizes[place]


def _excess(guarantee: Guarantee, epsilon: float, log_delta: float) -> float:
    """Return a number that is <= 0 exactly when the guarantee implies (epsilon, delta)."""
    if isinstance(guarantee, (Gdp, Profile, Composition)):
        return min(_STEEP, max(-_STEEP, guarantee.log_delta(epsilon).value - log_delta))
    if isinstance(guarantee, Rdp) and not guarantee.orders:
        found = optimise(guarantee.curve, log_delta, rough=True).epsilon - epsilon
    else:
        found = guarantee.epsilon(log_delta).value - epsilon
    return found if math.isfinite(found) else 1e300


def safe_log_delta(question: Question) -> float:
    """Return ln delta a hair below what was asked, so that the rounding of a typed decimal cannot help."""
    if question.log_delta is None:
        raise SpecError("delta is needed here", "give --delta")
    return question.log_delta - 2.0 * UNIT * (1.0 + abs(question.log_delta))


def _below(epsilon: float | None) -> float:
    if epsilon is None:
        raise SpecError("epsilon is needed here", "give --epsilon")
    return math.nextafter(epsilon, 0.0)


_ANSWERS: dict[str, Callable[[Bound, Run, Question, str], list[Result]]] = {
    "epsilon": _epsilon,
    "delta": _delta,
    "mu": _mu_only,
    "rdp": _rdp,
}


def _ranked(results: list[Result], unknown: str) -> tuple[Result, ...]:
    """Return the results best first; the best guarantee of each order (or overall) is marked."""
    largest = unknown in DIRECTIONS and not DIRECTIONS[unknown].more_is_private
    key = _value_or_log_delta
    ordered = sorted(results, key=key, reverse=largest)
    marked: set[float | None] = set()
    ranked = []
    for result in ordered:
        group = result.order if unknown == "rdp" else None
        best = result.guarantee and group not in marked
        if best:
            marked.add(group)
        ranked.append(result._replace(best=best))
    return tuple(sorted(ranked, key=lambda r: (not r.guarantee, not r.best)))


def _value_or_log_delta(result: Result) -> float:
    return result.log_delta if result.quantity == "delta" and result.log_delta is not None else result.value


def _warnings(results: list[Result], question: Question) -> tuple[str, ...]:
    if not question.orders:  # the free search spans all orders that matter; its ends are limits, not a choice
        return ()
    edges = [r.bound for r in results if r.details and r.details.get("order_at_edge")]
    if not edges:
        return ()
    return (f"the best order lies at the edge of those tried for {', '.join(edges)}: more orders would tighten it",)


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float, str)) else str(value)
