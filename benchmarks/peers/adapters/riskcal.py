"""Questions in the words of riskcal, whose accountant is dp-accounting's PLD: Poisson, add or remove one record."""

from riskcal.accountants import CTDAccountant
from riskcal.calibration.blackbox import find_noise_multiplier_for_epsilon_delta


def _spent(given):
    accountant = CTDAccountant()
    accountant.history = [(given["sigma"], given.get("rate", 1.0), given["count"])]
    return accountant.get_epsilon(delta=given["delta"])


def _noise(given):
    return find_noise_multiplier_for_epsilon_delta(
        CTDAccountant, given.get("rate", 1.0), given["count"], given["epsilon"], given["delta"]
    )


METHODS = {
    "gaussian": {"PLD": _spent},
    "gaussian noise": {"PLD": _noise},
    "poisson": {"PLD": _spent},
    "poisson noise": {"PLD": _noise},
}
