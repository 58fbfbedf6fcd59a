"""Descriptions of runs, drawn at random: the flags that one algorithm takes, most of them consistent."""

import random

from tests.corpus.names import LAST_BATCHES, LOSS_CLASSES, LOSSES

Words = list[str]


def maybe(r: random.Random, share: float, *words: str) -> Words:
    """Return the words, in this share of the cases."""
    return list(words) if r.random() < share else []


def number(r: random.Random, low: float, high: float) -> str:
    """Return a number with one to seventeen digits, log-uniform."""
    value = low * (high / low) ** r.random()
    return f"{value:.{r.choice((1, 1, 2, 3, 6, 17))}g}"


def records(r: random.Random, most: int = 60000) -> str:
    """Return a number of records, sometimes in another spelling."""
    value = r.choice([n for n in (2, 5, 20, 50, 128, 1000, 1001, 10000, 60000, 10**6, 10**9) if n <= most])
    return r.choice((str(value), str(value), f"{value:_}", f"{value:e}"))


def smooth_loss(r: random.Random, *, classes: bool = False, domain: bool = True) -> Words:
    """Return the constants of a convex and smooth loss; with ``classes`` sometimes of another."""
    words = ["-L", number(r, 0.1, 10), "--smoothness", r.choice(("1", "0.5", number(r, 0.1, 2)))]
    words += ["--eta", r.choice(("0.1", "0.5", "1", number(r, 0.001, 1)))]
    words += maybe(r, 0.25, "--strong-convexity", r.choice(("0.01", "0.05", "0.1")))
    if domain:
        words += maybe(r, 0.4, "-D", number(r, 0.1, 20))
    if classes and r.random() < 0.3:
        words += ["--loss-class", r.choice(LOSS_CLASSES)]
        words += maybe(r, 0.2, "--displacement", r.choice(("0.5", "1", "1.2")))
    return words


def named_loss(r: random.Random, *, step: bool = True) -> Words:
    """Return a loss of the catalogue and its parameters."""
    loss = r.choice(LOSSES)
    words = ["--loss", loss, "--feature-bound", r.choice(("1", "0.5", "2")), *maybe(r, 0.9, "-R", number(r, 0.5, 5))]
    if loss in ("absolute", "insensitive", "huber", "squares"):
        words += maybe(r, 0.9, "--label-bound", r.choice(("1", "0.5", "3")))
    if loss in ("hinge", "absolute", "insensitive"):
        words += maybe(r, 0.7, "--power", r.choice(("1", "1.5", "2")))
    if loss == "huber":
        words += maybe(r, 0.9, "--huber-threshold", r.choice(("0.5", "1")))
    if loss == "insensitive":
        words += maybe(r, 0.9, "--tube", r.choice(("0", "0.1")))
    words += maybe(r, 0.2, "--regularisation", r.choice(("0.01", "0.1")))
    return words + (["--eta", number(r, 0.01, 0.5)] if step else [])


def loss(r: random.Random, *, classes: bool = False) -> Words:
    """Return a loss: its constants, or its name."""
    return smooth_loss(r, classes=classes) if r.random() < 0.7 else named_loss(r)


def noise(r: random.Random, *, laplace: bool = False, low: float = 0.3, high: float = 20) -> Words:
    """Return a scale of Gaussian noise, or of Laplace noise, which needs a domain."""
    if laplace and r.random() < 0.25:
        return ["--laplace-scale", number(r, low, high), "-D", number(r, 0.1, 5), *maybe(r, 0.2, "--dimension", "2")]
    return ["--sigma", number(r, low, high)]


def sampled_batch(r: random.Random, share: float = 0.5) -> Words:
    """Return a batch size, not always a divisor."""
    return maybe(r, share, "--batch-size", r.choice(("1", "2", "3", "4", "10", "16", "64")))


def shuffling(r: random.Random) -> Words:
    """Return what is said of a random order and its batches."""
    return [
        *sampled_batch(r, 0.4),
        *maybe(r, 0.25, "--last-batch", r.choice(LAST_BATCHES)),
        *maybe(r, 0.3, "--permutation", r.choice(("public", "secret"))),
    ]


def releasing(r: random.Random) -> Words:
    """Return what is released of several passes."""
    return maybe(r, 0.35, "--release", r.choice(("epoch", "epoch", "last")))


def described(algorithm: str, r: random.Random, *, noisy: bool = True) -> Words:
    """Return a run of the algorithm, without its noise if that is to be solved for."""
    words = _DESCRIBED[algorithm](r, noisy)
    return words + (
        maybe(r, 0.15, "--adjacency", "null-record") if algorithm not in ("chain", "unlearning", "repeated") else []
    )


def _fixed_order(r: random.Random, noisy: bool) -> Words:
    words = ["-n", records(r, 10**9), *maybe(r, 0.5, "-i", r.choice(("1", "2", "5", "20")))]
    return [*words, *sampled_batch(r, 0.2), *loss(r), *(noise(r) if noisy else [])]


def _skipping(r: random.Random, noisy: bool) -> Words:
    words = ["-n", records(r), *maybe(r, 0.5, "-i", r.choice(("1", "2", "5", "20")))]
    return [*words, *loss(r), *(noise(r) if noisy else [])]


def _local(r: random.Random, noisy: bool) -> Words:
    return ["-n", records(r), "-L", number(r, 0.1, 10), *(noise(r) if noisy else [])]


def _one_random_order(r: random.Random, noisy: bool) -> Words:
    words = ["-n", records(r, 1001), *shuffling(r), *loss(r, classes=True)]
    if r.random() < 0.1:
        return [*words, "-D", "1", "--c1", number(r, 10, 1000), "--c2", number(r, 1, 100)]
    return [*words, *(noise(r, laplace=True) if noisy else [])]


def _passes(r: random.Random, noisy: bool) -> Words:
    words = ["-n", records(r, 1001), "--epochs", r.choice(("1", "2", "5", "30")), *sampled_batch(r), *releasing(r)]
    words += maybe(r, 0.3, "-i", r.choice(("1", "2")))
    return [*words, *loss(r, classes=True), *(noise(r) if noisy else [])]


def _random_passes(r: random.Random, noisy: bool) -> Words:
    words = ["-n", records(r, 128), "--epochs", r.choice(("1", "2", "4")), *shuffling(r), *releasing(r)]
    return [*words, *loss(r, classes=True), *(noise(r) if noisy else [])]


def _sampled(r: random.Random, noisy: bool) -> Words:
    words = ["-n", records(r, 10000), "--steps", r.choice(("1", "10", "100", "1000")), *sampled_batch(r, 0.8)]
    return [*words, *releasing(r), *loss(r, classes=True), *(noise(r) if noisy else [])]


def _full_batch(r: random.Random, noisy: bool) -> Words:
    words = ["-n", records(r), "--steps", r.choice(("1", "10", "1000", "100000")), *releasing(r)]
    words += loss(r, classes=True)
    if noisy and r.random() < 0.2:
        return [*words, "--langevin-std", number(r, 0.05, 2)]
    return [*words, *(noise(r, low=0.01, high=2) if noisy else [])]


def _repeated(r: random.Random, _: bool) -> Words:
    words = ["--epochs", r.choice(("1", "2", "8", "60")), "--epoch-epsilon", number(r, 0.01, 1)]
    return words + maybe(r, 0.7, "--epoch-delta", r.choice(("0", "1e-8", "1e-6")))


def _online(r: random.Random, noisy: bool) -> Words:
    words = [
        "-n",
        r.choice(("5", "5", "30", "30", "100", "1000")),
        *smooth_loss(r, domain=False),
        "-D",
        number(r, 0.5, 5),
    ]
    words += ["--noise", r.choice(("gaussian", "laplace")), "--c1", number(r, 1, 100), "--c2", number(r, 1, 100)]
    words += ["--decay-exponent", r.choice(("1.5", "2", "1.25"))]
    words += maybe(r, 0.2, "--schedule-factor", r.choice(("0.5", "2"))) if noisy else []
    kind = r.random()
    return words + (["-i", r.choice(("1", "4"))] if kind < 0.5 else ["-w", r.choice(("0", "3"))] if kind < 0.8 else [])


def holder(r: random.Random) -> Words:
    """Return what is known of a loss with Hoelder gradients."""
    if r.random() < 0.4:
        return named_loss(r, step=False)
    words = ["--holder-exponent", r.choice(("0", "0.5", "1")), "--holder-constant", number(r, 0.2, 3)]
    words += maybe(r, 0.5, "--gradient-at-zero", r.choice(("0.5", "1"))) + maybe(r, 0.3, "--loss-at-zero", "0.7")
    return words + maybe(r, 0.4, "-L", number(r, 0.2, 3)) + maybe(r, 0.8, "-R", number(r, 0.5, 3))


def _gradient_noise(r: random.Random, noisy: bool) -> Words:
    words = ["-n", records(r), *maybe(r, 0.8, "--steps", r.choice(("10", "500", "20000"))), *holder(r)]
    words += maybe(r, 0.1, "--epochs", "2") + sampled_batch(r, 0.3)
    return words + (noise(r, low=0.5) if noisy else [])


def _clipped(r: random.Random, noisy: bool) -> Words:
    sampling = r.choice(("poisson", "poisson", "fixed", "with-replacement", "balls-in-bins", "shuffle", "full"))
    words = ["--sampling", sampling, r.choice(("--epochs", "--steps")), r.choice(("1", "3", "20"))]
    words += [] if sampling == "full" else ["-n", r.choice(("60", "5000")), "--batch-size", r.choice(("10", "7"))]
    adjacency = r.choice(("add-remove", "add", "remove", "zero-out", "replace-one"))
    words += maybe(r, 0.8, "--adjacency", adjacency) + maybe(r, 0.3, "--clip", "0.5")
    return words + (["--noise-multiplier", number(r, 0.5, 5)] if noisy else [])


def _output_noise(r: random.Random, noisy: bool) -> Words:
    words = ["-n", records(r), "--steps", r.choice(("10", "500", "20000")), *holder(r), "--eta", number(r, 1e-3, 0.5)]
    return words + (noise(r) if noisy else [])


def _chain(r: random.Random, noisy: bool) -> Words:
    words = ["--steps", r.choice(("1", "10", "100", "1000")), *maybe(r, 0.4, "-i", "1")]
    words += ["--shift", number(r, 0.001, 1), "--contraction", r.choice(("0.5", "0.9", "0.99", "1", "1.01"))]
    words += ["--eta", r.choice(("0.1", "1")), *maybe(r, 0.15, "--start-distance", "0.5")]
    words += maybe(r, 0.3, "-D", number(r, 0.1, 5))
    if noisy and r.random() < 0.25:
        return [*words, "--laplace-scale", number(r, 0.5, 20)]
    return words + (noise(r) if noisy else [])


def _continued(r: random.Random, noisy: bool) -> Words:
    words = ["--clean-steps", r.choice(("1", "10", "100", "1000")), "--eta", r.choice(("0.1", "0.5"))]
    curved = ["--smoothness", "1", "--strong-convexity", r.choice(("0.01", "0.1"))]
    start = r.choice(("distance", "minimiser", "run"))
    if start == "distance":
        words += ["--start-distance", number(r, 0.01, 1), *maybe(r, 0.3, "--requests", "5")]
        words += r.choice((curved, ["--contraction", r.choice(("0", "0.5", "0.99", "1", "1.01"))]))
    else:
        words += ["--start", start, "-n", "1000", "-L", number(r, 0.2, 2), *curved]
    if start == "run":
        words += ["--batch-size", r.choice(("1", "10", "1000")), "--epochs", r.choice(("1", "20"))]
    return [*words, *maybe(r, 0.3, "-D", number(r, 0.1, 5)), *(["--sigma", number(r, 0.5, 20)] if noisy else [])]


_DESCRIBED = {
    "pnsgd": _fixed_order, "skip": _skipping, "stop": _skipping, "local": _local,
    "shuffled": _one_random_order, "rotation": _one_random_order, "shuffled-stop": _one_random_order,
    "cyclic": _passes, "shuffle-once": _random_passes, "shuffled-epochs": _random_passes, "noisy-sgd": _sampled,
    "noisy-gd": _full_batch, "repeated": _repeated, "online": _online, "dp-sgd": _clipped,
    "dp-sgd-gradient": _gradient_noise,
    "dp-sgd-output": _output_noise, "chain": _chain,
    "unlearning": _continued,
}  # fmt: skip


def budget(r: random.Random) -> Words:
    """Return what a run with known noise is asked for."""
    epsilon, delta = number(r, 0.1, 8), r.choice(("1e-6", "1e-5", "1e-3", "1/60000", "2^-20", "1e-50", "0.1%"))
    words = r.choice((["-d", delta], ["-d", delta], ["-e", epsilon], ["-e", epsilon, "-d", delta], ["-e", "0"], []))
    order = maybe(r, 0.15 if words else 0.8, "--order", r.choice(("2", "1.5", "2,4,8", "1", "32")))
    return words + order + maybe(r, 0.12, "--assert", assertion(r))


def assertion(r: random.Random) -> str:
    """Return a gate, which may hold or not."""
    return r.choice(("epsilon<=1", "epsilon<=1", "epsilon<=100", "epsilon<=10", "epsilon < 0.001", "delta<=0.5",
                     "epsilon<=5", "delta<=1e-5", "delta<1e-12", "epsilon<2", "log_delta<=-5",
                     "rdp<=1", "mu<=2", "noise_std<=3", "epsilon>=1", "bound==iteration.pnsgd"))  # fmt: skip
