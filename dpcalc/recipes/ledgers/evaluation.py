"""The evaluation of a model file: what is reported, and what it is charged to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dpcalc.recipes.ledgers.charge import charge, line_of
from dpcalc.version import __version__

SCHEMA = "dpcalc.evaluation/1"
NAME = "evaluation"
"""Of the entry in a ledger."""

NOT_PRIVATE = "computed from the test rows without noise: private only if the test rows are public"


def _remarks(unreadable: int, records: int) -> Iterator[str]:
    """Yield what the test rows give reason to say: as little private as the metrics."""
    if unreadable:
        yield (
            f"{unreadable} of {records} targets are no finite number, and count as the middle of the target's range "
            "(counted in the test rows without noise)"
        )


def evaluate(
    model: str, data: Any, *, epsilon: float | None = None, error_bound: float | None = None, ledger: str | None = None
) -> dict[str, Any]:
    """Return how good a model is on test rows, JSON types only; ``private`` says whether a guarantee covers it.

    Args:
        model: path of the model.
        data: as of `dpcalc.training.release.model.Model.scored`.
        epsilon: of a private evaluation; None for metrics without noise.
        error_bound: what errors of a regression are cut to.
        ledger: path of the ledger that a private evaluation is charged to.

    Raises:
        SpecError: a file cannot be read, or a number is out of range.
    """
    from dpcalc.training.release import evaluation
    from dpcalc.training.release.model import load
    from dpcalc.training.release.prediction import predictor

    loaded = load(model)
    predicting = predictor(loaded)
    head = {
        "schema": SCHEMA, "dpcalc": __version__, "command": "evaluate",
        "task": "regression" if predicting.classes is None else "classification",
        "model": {name: loaded.privacy.get(name) for name in ("private", "epsilon", "delta", "bound")},
    }  # fmt: skip
    if epsilon is None:
        found = evaluation.measured(predicting, data)
        return {**head, "records": found.records, "private": False, "why_not_private": NOT_PRIVATE,
                "metrics": found.metrics, "unreadable": found.unreadable,
                "remarks": list(_remarks(found.unreadable, found.records))}  # fmt: skip
    charged = [NAME]

    def charging() -> None:
        if ledger is not None:
            charged[0] = charge(ledger, NAME, epsilon)

    released = evaluation.released(predicting, data, epsilon, error_bound=error_bound, charge=charging)
    return {
        **head, "records": released.records, "private": True, "epsilon": epsilon, "delta": 0.0,
        "adjacency": "replace_one", "noise": "discrete Laplace, sampled exactly", "noise_std": released.noise_std,
        "error_bound": released.error_bound, "confidence": evaluation.CONFIDENCE,
        "metrics": {name: interval._asdict() for name, interval in released.metrics.items()},
        "population": None if released.population is None else list(released.population),
        "ledger": {"file": ledger, "entry": line_of(charged[0], epsilon)},
    }  # fmt: skip
