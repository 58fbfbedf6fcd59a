"""Questions in the words of dpcalc: its Python API, which returns the whole report of the command.

Sensitivities are 1: replacing a record moves the mean gradient by 2 lipschitz/batch.
"""

import dpcalc


def _best(report):
    return report.cases[0].best.value


def _gaussian(given):
    return _best(dpcalc.multi_epoch(
        algorithm="noisy-gd", release="epoch", records=1, lipschitz=0.5, steps=given["count"],
        noise_std=given.get("sigma"), epsilon=given.get("epsilon"), delta=given["delta"],
    ))  # fmt: skip


def _batches(given):
    return _best(dpcalc.multi_epoch(
        algorithm="noisy-sgd", release="epoch", records=given["records"], batch_size=given["batch"],
        lipschitz=given["batch"] / 2.0, steps=given["count"], noise_std=given.get("sigma"),
        epsilon=given.get("epsilon"), delta=given["delta"],
    ))  # fmt: skip


def _poisson(given):
    return _best(dpcalc.dp_sgd(
        sampling="poisson", sample_rate=given["rate"], steps=given["count"], noise_multiplier=given.get("sigma"),
        epsilon=given.get("epsilon"), delta=given["delta"], adjacency="add-remove",
    ))  # fmt: skip


def _balls(given):
    return _best(dpcalc.dp_sgd(
        sampling="balls-in-bins", records=1000 * given["bins"], batch_size=1000, epochs=given["epochs"],
        noise_multiplier=given["sigma"], delta=given["delta"], adjacency="zero-out",
    ))  # fmt: skip


def _ordered(mechanism):
    return lambda given: _best(dpcalc.dp_ftrl(
        mechanism=mechanism, steps=given["steps"], epochs=given["epochs"], noise_multiplier=given["sigma"],
        adjacency="zero-out", delta=given["delta"],
    ))  # fmt: skip


def _banded(given):
    return _best(dpcalc.dp_ftrl(
        sampling="poisson", mechanism="banded-sqrt", bands=given["bands"], steps=given["steps"], scaling="columns",
        sample_rate=given["rate"], noise_multiplier=given["sigma"], adjacency="add-remove", delta=given["delta"],
    ))  # fmt: skip


def _laplace(given):
    entry = {"laplace_scale": given["scale"], "sensitivity": 1, "times": given["count"]}
    return _best(dpcalc.ledger([entry], delta=given["delta"]))


def _repeated(given):
    return _best(dpcalc.multi_epoch(
        algorithm="repeated", epochs=given["count"], epoch_epsilon=given["epsilon0"], epoch_delta=given["delta0"],
        delta=given["delta"],
    ))  # fmt: skip


def _described(algorithm, release, given):
    asked = {"records": given["records"], "batch_size": given["batch"], "release": release}
    same = (
        "lipschitz",
        "smoothness",
        "strong_convexity",
        "step_size",
        "noise_std",
        "epochs",
        "steps",
        "epsilon",
        "delta",
    )
    return {"algorithm": algorithm, **asked, **{name: given[name] for name in same if name in given}}


def _run(algorithm, release="last"):
    return lambda given: _best(dpcalc.multi_epoch(**_described(algorithm, release, given)))


def _unbeatable(algorithm):
    """The largest of the lower bounds: no accountant of these assumptions can say less."""

    def answer(given):
        described = _described(algorithm, "last", given)
        results = dpcalc.compare(**described).cases[0].results
        return max(result.value for result in results if result.kind == "lower")

    return answer


METHODS = {
    "gaussian": {"command": _gaussian},
    "gaussian noise": {"command": _gaussian},
    "poisson": {"command": _poisson},
    "poisson noise": {"command": _poisson},
    "batches": {"command": _batches},
    "batches noise": {"command": _batches},
    "balls": {"command": _balls},
    "laplace": {"command": _laplace},
    "repeated": {"command": _repeated},
    "square root": {"command": _ordered("sqrt")},
    "tree": {"command": _ordered("tree")},
    "banded": {"command": _banded},
    "run: fixed order": {
        "last iterate": _run("cyclic"),
        "every iterate": _run("cyclic", "epoch"),
        "lower bound": _unbeatable("cyclic"),
    },
    "run: fixed order, noise": {"last iterate": _run("cyclic"), "every iterate": _run("cyclic", "epoch")},
    "run: new order": {
        "last iterate": _run("shuffled-epochs"),
        "iterate of every epoch": _run("shuffled-epochs", "epoch"),
        "lower bound": _unbeatable("shuffled-epochs"),
    },
}
