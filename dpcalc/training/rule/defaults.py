"""Defaults of a run: the loss and its bounds, the number of steps and the step size.

They follow from the constants of the loss, the budget and the size of the domain, and never from the records.
"""

from __future__ import annotations

import math

from dpcalc.errors import MissingParameter, SpecError
from dpcalc.model.algorithm import Order, Source
from dpcalc.model.loss import SIGNED
from dpcalc.model.quantities import LastBatch, LossName, Mechanism
from dpcalc.training.rule.draft import Draft
from dpcalc.training.rule.guarantee import noise_scale
from dpcalc.training.rule.setup import Setup

MAX_STEPS = 1000
"""The most full-batch steps that are chosen by default, to limit the time."""

CLASSIFYING = (*SIGNED, LossName.SOFTMAX)
"""The losses of classifiers."""

_OF_NUMBERS = (".npy", ".npz")
"""Endings of files whose cells are numbers."""

_SYNTHETIC_LOSSES = {"logistic": "logistic", "linear": "squares"}


def fill_loss(draft: Draft, setup: Setup) -> None:
    """Fill in the loss and its bounds.

    Raises:
        MissingParameter: no loss is given, and no option says whether to classify or to fit numbers.
        SpecError: the options contradict each other.
    """
    from dpcalc.training.data.cells import Classes, as_classes

    if draft.get("loss") is None:
        draft.default("loss", _usual_loss(setup))
    _refuse_unnamed_labels(str(draft["loss"]), setup)
    if draft["loss"] in CLASSIFYING and setup.target_range is not None:
        raise SpecError(f"the {draft['loss']} loss has labels, and a target range is given", "leave out --target-range")
    draft.default("feature_bound", 1.0)
    if draft["loss"] not in CLASSIFYING:
        draft.default("label_bound", 1.0)
    if draft["loss"] == LossName.SOFTMAX:
        if setup.synthetic is not None or setup.replicas > 1:
            raise SpecError("a softmax is trained on data, and once", "leave out --synthetic and --replicas")
        draft.default("classes", len(as_classes(setup.label_rule, draft.get("classes")).names), Source.DERIVED)
    elif isinstance(setup.label_rule, Classes):
        raise SpecError(f"the {draft['loss']} loss has two labels, and more are given", "take --loss softmax")


def _refuse_unnamed_labels(loss: str, setup: Setup) -> None:
    """Raise SpecError for two classes from a file whose cells may be words, if the labels are not given.

    All words would count as -1, and the model would be useless. The cells are not looked at: a refusal that depends on
    the records would reveal something about them.
    """
    path = setup.data if isinstance(setup.data, str) and not setup.example else ""
    named = setup.labels is not None or setup.positive is not None
    if loss in SIGNED and path and not named and not path.lower().endswith(_OF_NUMBERS):
        raise SpecError(
            f"the labels of the {loss} loss are not known: in {path} they may be words, which would all count as -1",
            "give --labels NO,YES, or --labels 0,1 where they are numbers",
        )


def _usual_loss(setup: Setup) -> str:
    """Return the loss that suits the description of the target, without looking at the records."""
    from dpcalc.training.data.cells import Classes
    from dpcalc.training.data.tables import EXAMPLES

    if setup.example and not isinstance(setup.label_rule, Classes):
        return EXAMPLES[setup.example][2]
    if setup.synthetic:
        return _SYNTHETIC_LOSSES.get(setup.synthetic, "squares")
    labelled, ranged = setup.labels or setup.positive, setup.target_range is not None
    if labelled and ranged:
        raise SpecError("a target has labels or a range, and both are given", "leave one of them out")
    if not labelled and not ranged:
        raise MissingParameter(
            "whether to classify or to predict a number is not known, and the records do not decide it",
            "to classify give --positive YES or --labels NO,YES; to predict a number give "
            "--target-range LOW,HIGH (or --loss squares)",
        )
    if not labelled:
        return "squares"
    return str(LossName.SOFTMAX) if isinstance(setup.label_rule, Classes) else "logistic"


def fill_split(draft: Draft) -> None:
    """Fill in batches of sizes that differ by at most one, for passes through all records.

    A short last batch would protect its few records least, and dropping them would waste them. If the batch size
    divides the number of records, nothing changes. With correlated noise, all batch sums have one divisor, and the
    default mechanism is the matrix with the least noise in prefix sums.

    Raises:
        MissingParameter: noise is correlated, and the batch size is not given.
    """
    algorithm = draft.algorithm
    if algorithm.correlated:
        if "batch_size" not in draft:
            raise MissingParameter(
                "correlated noise is for batches, and their size is not known", "give --batch-size; for example 100"
            )
        draft.default("mechanism", Mechanism.BEST)
    in_passes = algorithm.order in (Order.FIXED, Order.SHUFFLE, Order.SHUFFLE_ONCE, Order.ROTATION)
    if in_passes and "last_batch" in algorithm.parameters and not algorithm.single and draft.get("batch_size", 1) > 1:
        draft.default("last_batch", LastBatch.BALANCED)


def fill_steps(draft: Draft, dimension: int) -> None:
    """Fill in steps and step size from the bound R^2/(2 eta T) + eta (V + d sigma^2)/2 on the excess risk.

    The bound is for averaged noisy SGD on convex losses, with V the variance of a batch's gradient and sigma the noise
    at T steps; for other algorithms it is a heuristic. With full batches and eta = 1/smoothness the noise is
    sigma = s sqrt(T), and T = R/(eta sqrt(d) s) balances the two terms.

    Raises:
        MissingParameter: the choice needs a parameter that is not given.
    """
    if draft.algorithm.full_batch and draft.steps is None and draft.epochs is None:
        draft.default("steps", _full_batch_steps(draft, dimension))
    if draft.step_size is None:
        if draft.get("c1") is not None or draft.get("decay_exponent") is not None:
            raise MissingParameter(
                "this noise depends on the step size", "give --step-size; for example --step-size 0.1"
            )
        draft.default("step_size", _step_size(draft, dimension))


def _full_batch_steps(draft: Draft, dimension: int) -> int:
    question, radius, smoothness = draft.question, draft.radius, draft.loss.smoothness
    if radius is None or question.epsilon is None:
        budget = {"epsilon": question.epsilon, "delta": question.log_delta}
        missing = [name for name, value in {"radius": radius, **budget}.items() if value is None]
        *others, last = (f"--{name}" for name in missing)
        listed = " and ".join([*([", ".join(others)] if others else []), last])
        example = " ".join(f"--{name} {_EXAMPLES[name]}" for name in missing)
        raise MissingParameter("how many steps suit is not known", f"give --steps; or {listed}; for example {example}")
    single = draft.replacing(steps=1, step_size=1.0 / smoothness if smoothness else radius / _steepest(draft))
    noise = math.sqrt(dimension) * noise_scale(single)
    steps = radius * smoothness / noise if smoothness else (_steepest(draft) / noise) ** 2
    return max(1, min(MAX_STEPS, math.ceil(steps)))


_EXAMPLES = {"radius": "1", "epsilon": "1", "delta": "1e-6"}


def _step_size(draft: Draft, dimension: int) -> float:
    radius, smoothness, full_batch = draft.radius, draft.loss.smoothness, draft.algorithm.full_batch
    longest = 1.0 / smoothness if smoothness else None
    if radius is None:
        if longest is None or not full_batch:
            raise MissingParameter(
                "which step size suits is not known", "give --radius, or --step-size; for example --radius 1"
            )
        return longest
    first = longest or radius / _steepest(draft)
    noise = math.sqrt(dimension) * noise_scale(draft.replacing(step_size=first))
    variance = 0.0 if full_batch and longest else _steepest(draft) ** 2 / draft.get("batch_size", 1)
    advised = radius / math.sqrt(_steps(draft) * (variance + noise * noise))
    step_size = advised if longest is None else min(longest, advised)
    return float(f"{step_size:.3g}") if step_size < first else step_size


def _steps(draft: Draft) -> int:
    """Return the number of steps, as given or from the number of epochs."""
    if draft.steps is not None:
        return int(draft.steps)
    steps_per_epoch = 1 if draft.algorithm.full_batch else -(-draft["records"] // draft.get("batch_size", 1))
    return (1 if draft.epochs is None else int(draft.epochs)) * steps_per_epoch


def _steepest(draft: Draft) -> float:
    """Return the bound on the norm of gradients: the clip, if they are clipped."""
    return draft.loss.lipschitz if draft.clip is None else float(draft.clip)
