"""A budget that a training loop keeps, for Opacus, Lightning and Transformers; none of the three is imported.

Every hook charges a step to a `dpcalc.Ledger` and stops before the budget is exceeded. The number of steps left is
worked out once, from rate, noise and budget alone: a stop of this kind looks at no data. With early stopping on private
results quote the planned steps, `ledger.epsilon_after(planned - taken, ...)`.
"""

from __future__ import annotations

from typing import Any

from dpcalc import Ledger


class Budget:
    """Steps of one kind that are charged to a ledger until a budget is spent."""

    def __init__(self, ledger: Ledger, epsilon: float, *, noise_multiplier: float, sample_rate: float) -> None:
        self.ledger = ledger
        self.step = {"noise_multiplier": noise_multiplier, "sample_rate": sample_rate}
        self.left = ledger.remaining(epsilon, **self.step)

    def charge(self) -> None:
        """Charge a step that is about to be taken, or was just taken and not yet used."""
        if self.left <= 0:
            raise RuntimeError("the budget is spent: take no further step")
        self.ledger.spend(1, **self.step)
        self.left -= 1


def attach_to_opacus(optimizer: Any, budget: Budget) -> None:
    """Charge each noisy step of an Opacus optimiser, beside the hook that its own accountant has attached."""
    own = optimizer.step_hook

    def hook(stepping: Any) -> None:
        if own is not None:
            own(stepping)
        budget.charge()

    optimizer.attach_step_hook(hook)


class LightningBudget:
    """A callback of Lightning: derive from `lightning.Callback` too."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> int | None:
        """Charge the step before it is taken; -1 skips the rest of the epoch where nothing is left."""
        if self.budget.left <= 0:
            trainer.should_stop = True
            return -1
        self.budget.charge()
        return None


class TransformersBudget:
    """A callback of Transformers: derive from `transformers.TrainerCallback` too."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> Any:
        """Charge the step before it is taken."""
        self.budget.charge()
        return control

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> Any:
        """Ask the trainer to stop where nothing is left."""
        control.should_training_stop = self.budget.left <= 0
        return control
