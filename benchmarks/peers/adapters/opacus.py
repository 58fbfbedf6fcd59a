"""Questions in the words of opacus: Poisson sampling, add or remove one record. A rate of 1 is the Gaussian alone."""

from opacus.accountants import GaussianAccountant, PRVAccountant, RDPAccountant
from opacus.accountants.utils import get_noise_multiplier


def _spent(kind):
    def answer(given):
        accountant = kind()
        accountant.history = [(given["sigma"], given.get("rate", 1.0), given["count"])]
        return accountant.get_epsilon(delta=given["delta"])

    return answer


def _noise(name):
    def answer(given):
        return get_noise_multiplier(
            target_epsilon=given["epsilon"], target_delta=given["delta"], sample_rate=given.get("rate", 1.0),
            steps=given["count"], accountant=name,
        )  # fmt: skip

    return answer


def _run(given):
    multiplier = given["noise_std"] * given["batch"] / (2.0 * given["lipschitz"])
    return _spent(RDPAccountant)({"sigma": multiplier, "count": given["epochs"], "delta": given["delta"]})


ACCOUNTANTS = {
    "RDP": _spent(RDPAccountant),
    "PRV": _spent(PRVAccountant),
    "GDP (central limit)": _spent(GaussianAccountant),
}
NOISE = {"RDP": _noise("rdp"), "PRV": _noise("prv")}

METHODS = {
    "gaussian": ACCOUNTANTS,
    "gaussian noise": NOISE,
    "poisson": ACCOUNTANTS,
    "poisson noise": NOISE,
    "run: fixed order": {"every iterate, RDP": _run},
}
