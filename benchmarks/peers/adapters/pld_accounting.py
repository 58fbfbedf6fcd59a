"""Questions in the words of PLD_accounting: the two ends of what it proves, one record added or removed."""

from PLD_accounting import gaussian_allocation_epsilon_range


def _range(given):
    return gaussian_allocation_epsilon_range(
        delta=given["delta"], sigma=given["sigma"], num_steps=given["bins"], num_epochs=given["epochs"]
    )


METHODS = {"balls": {"upper": lambda given: _range(given)[0], "lower end": lambda given: _range(given)[1]}}
