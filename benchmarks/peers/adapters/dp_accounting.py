"""Questions in the words of dp-accounting. Adjacency is add or remove one, but replace one for fixed-size batches."""

import math

import dp_accounting
from dp_accounting.pld import PLDAccountant, accountant, common, privacy_loss_distribution
from dp_accounting.rdp import RdpAccountant

BRACKET = dp_accounting.LowerEndpointAndGuess(0.5, 1.0)  # its own begins at noise 0, where accountants fail
REPLACE = dp_accounting.NeighboringRelation.REPLACE_ONE


def _spent(fresh, event, given):
    return fresh().compose(dp_accounting.SelfComposedDpEvent(event, given["count"])).get_epsilon(given["delta"])


def _noise(fresh, event, given):
    return dp_accounting.calibrate_dp_mechanism(
        fresh, lambda sigma: dp_accounting.SelfComposedDpEvent(event(sigma, given), given["count"]),
        given["epsilon"], given["delta"], BRACKET,
    )  # fmt: skip


def _gaussian(sigma, given):
    return dp_accounting.GaussianDpEvent(sigma)


def _poisson(sigma, given):
    return dp_accounting.PoissonSampledDpEvent(given["rate"], dp_accounting.GaussianDpEvent(sigma))


def _batch(sigma, given):
    gaussian = dp_accounting.GaussianDpEvent(sigma)
    return dp_accounting.SampledWithoutReplacementDpEvent(given["records"], given["batch"], gaussian)


def _replace_one():
    return RdpAccountant(neighboring_relation=REPLACE)


def _closed(given):
    return dp_accounting.get_epsilon_gaussian(given["sigma"] / math.sqrt(given["count"]), given["delta"])


def _closed_noise(given):
    return dp_accounting.get_sigma_gaussian(given["epsilon"], given["delta"]) * math.sqrt(given["count"])


def _laplace(given):
    law = privacy_loss_distribution.from_laplace_mechanism(given["scale"])
    return law.self_compose(given["count"]).get_epsilon_for_delta(given["delta"])


def _one(given):
    return common.DifferentialPrivacyParameters(given["epsilon0"], given["delta0"])


def _repeated(given):
    law = privacy_loss_distribution.from_privacy_parameters(_one(given))
    return law.self_compose(given["count"]).get_epsilon_for_delta(given["delta"])


def _advanced(given):
    found = accountant.advanced_composition(_one(given), given["count"], given["delta"])
    return math.inf if found is None else found


def _multiplier(given):
    """The noise of the mean gradient over how far replacing a record moves it."""
    return given["noise_std"] * given["batch"] / (2.0 * given["lipschitz"])


def _passes(given):
    """A fixed order: the record is in one batch of every pass, and every iterate is released."""
    return dp_accounting.get_epsilon_gaussian(_multiplier(given) / math.sqrt(given["epochs"]), given["delta"])


def _passes_noise(given):
    multiplier = dp_accounting.get_sigma_gaussian(given["epsilon"], given["delta"]) * math.sqrt(given["epochs"])
    return multiplier * 2.0 * given["lipschitz"] / given["batch"]


def _tree(given):
    event = dp_accounting.SingleEpochTreeAggregationDpEvent(given["sigma"], given["steps"])
    fresh = RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
    return fresh.compose(event).get_epsilon(given["delta"])


def _banded(given):
    """As JAX-Privacy's amplified_bandmf_event: rounds of one group, at so many times the rate."""
    bands = given["bands"]
    rounds = {"rate": given["rate"] * bands, "count": -(-given["steps"] // bands), "delta": given["delta"]}
    return _spent(PLDAccountant, _poisson(given["sigma"], rounds), rounds)


METHODS = {
    "tree": {"RDP": _tree},
    "banded": {"PLD": _banded},
    "gaussian": {
        "closed form": _closed,
        "PLD": lambda given: _spent(PLDAccountant, _gaussian(given["sigma"], given), given),
        "RDP": lambda given: _spent(RdpAccountant, _gaussian(given["sigma"], given), given),
    },
    "gaussian noise": {
        "closed form": _closed_noise,
        "PLD": lambda given: _noise(PLDAccountant, _gaussian, given),
        "RDP": lambda given: _noise(RdpAccountant, _gaussian, given),
    },
    "poisson": {
        "PLD": lambda given: _spent(PLDAccountant, _poisson(given["sigma"], given), given),
        "RDP": lambda given: _spent(RdpAccountant, _poisson(given["sigma"], given), given),
    },
    "poisson noise": {
        "PLD": lambda given: _noise(PLDAccountant, _poisson, given),
        "RDP": lambda given: _noise(RdpAccountant, _poisson, given),
    },
    "batches": {"RDP": lambda given: _spent(_replace_one, _batch(given["sigma"], given), given)},
    "batches noise": {"RDP": lambda given: _noise(_replace_one, _batch, given)},
    "laplace": {"PLD": _laplace},
    "repeated": {"PLD": _repeated, "advanced composition": _advanced},
    "run: fixed order": {"every iterate, closed form": _passes},
    "run: fixed order, noise": {"every iterate, closed form": _passes_noise},
    "run: new order": {"every iterate, closed form": _passes},
}
