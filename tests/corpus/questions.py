"""All questions, in a fixed order. Each has a seed of its own, so that more of one kind leave the others alone."""

import random
from collections.abc import Callable, Iterator
from functools import cache

from tests.corpus import files, mistakes, recipes, runs
from tests.corpus.mistakes import named
from tests.corpus.names import ALGORITHMS, BOUNDS, COMMANDS, FORMATS, PRICED, TARGETS, TRAINED
from tests.corpus.question import Question
from tests.corpus.runs import Words, budget, described, maybe, number

SLOW = ("shuffled-epochs", "shuffle-once", "noisy-sgd", "rotation", "shuffled-stop", "shuffled", "stop", "online")
"""Algorithms with bounds that take tenths of a second: fewer questions about the noise that they need."""
SLOW_TO_SOLVE = (*SLOW, "dp-sgd", "dp-sgd-gradient", "dp-sgd-output")
FORMAT_SHARE = 0.12
LONG = frozenset((
    "3676b5dacd", "07379c2ea9", "ae1bbab25c", "c9116872e9", "db9a4a0b5a", "2f19e00e58", "ef3e716ee6", "9c2f56f91a",
    "4592dc8c05", "1b26d640f6", "5483c40295", "bed77d8e6e",
))  # fmt: skip
"""Ids of questions that were drawn and are left out, because each takes a processor more than eight seconds."""


@cache
def questions() -> tuple[Question, ...]:
    """Return every question once."""
    found = {one.id: one for one in _all()}
    return tuple(one for id, one in found.items() if id not in LONG)


def _all() -> Iterator[Question]:
    for line in mistakes.BARE:
        yield Question(tuple(line.split()))
    for bound in BOUNDS:
        yield Question(("explain", bound))
        yield Question(("cite", bound))
    yield from recipes.shipped()
    for command, algorithms in COMMANDS.items():
        for algorithm in algorithms:
            yield from _drawn(f"{command} {algorithm}", _share(algorithm, 60), _asked(command, algorithm))
            yield from _drawn(
                f"solve {command} {algorithm}", _share(algorithm, 15, SLOW_TO_SOLVE), _solved(command, algorithm)
            )
            yield from _drawn(f"sweep {command} {algorithm}", _share(algorithm, 6), _swept(command, algorithm))
    for algorithm in ALGORITHMS:
        for command in ("statement", "explain", "bounds", "cite"):
            yield from _drawn(f"{command} {algorithm}", 4, _told(command, algorithm))
    for name, (count, draw) in _KINDS.items():
        yield from _drawn(name, count, draw)


def _share(algorithm: str, count: int, slow: tuple[str, ...] = SLOW) -> int:
    return count // 4 if algorithm in slow else count


def _drawn(seed: str, count: int, draw: Callable[[random.Random], Question]) -> Iterator[Question]:
    for number_of in range(count):
        yield draw(random.Random(f"{seed} {number_of}"))


def _shown(r: random.Random) -> Words:
    """Return how the answer is written: as JSON, mostly."""
    if r.random() > FORMAT_SHARE:
        return ["--json"]
    return ["--format", r.choice(FORMATS), *maybe(r, 0.2, "--precision", r.choice(("2", "17")))]


def _asked(command: str, algorithm: str) -> Callable[[random.Random], Question]:
    def draw(r: random.Random) -> Question:
        words = [command, *named(command, algorithm), *described(algorithm, r), *budget(r), *_shown(r)]
        return Question(tuple(words), quick=algorithm not in SLOW)

    return draw


def _solved(command: str, algorithm: str) -> Callable[[random.Random], Question]:
    def draw(r: random.Random) -> Question:
        noisy = r.random() < 0.4
        words = [command, *named(command, algorithm), *described(algorithm, r, noisy=noisy)]
        words += ["-e", number(r, 0.1, 8), "-d", r.choice(("1e-6", "1e-4", "1e-3"))]
        words += (
            ["--solve", r.choice(TARGETS)] if noisy else maybe(r, 0.2, "--noise", r.choice(("gaussian", "laplace")))
        )
        return Question((*words, *_shown(r)), quick=False)

    return draw


def _swept(command: str, algorithm: str) -> Callable[[random.Random], Question]:
    sweeps = (["-e", "0.5,1,2", "-d", "1e-5"], ["-d", "1e-4:1e-8:log3"], ["-e", "0.5:1.5:0.5"], ["-e", "1", "-e", "2"],
              ["-d", "1e-5", "--order", "2:8:2"], ["-d", "1e-5,1e-6", "-L", "1,2"])  # fmt: skip

    def draw(r: random.Random) -> Question:
        words = [command, *named(command, algorithm), *described(algorithm, r), *r.choice(sweeps)]
        return Question((*words, "--format", r.choice(("json", "jsonl", "csv", "markdown", "plain"))), quick=False)

    return draw


def _told(command: str, algorithm: str) -> Callable[[random.Random], Question]:
    def draw(r: random.Random) -> Question:
        words = [command, "--algorithm", algorithm, *described(algorithm, r)]
        if command == "bounds":
            return Question((*words, *maybe(r, 0.6, "--json")))
        words += r.choice((["-d", "1e-6"], ["-e", "1"], ["-e", "1", "-d", "1e-6"]))
        return Question((*words, *maybe(r, 0.05, "--json")), quick=algorithm not in SLOW)

    return draw


def _several(r: random.Random) -> Question:
    """Several algorithms side by side."""
    names = r.choice(("pnsgd,shuffled", "all", "pnsgd,skip,local", "cyclic,noisy-gd", "noisy-sgd,shuffled-epochs"))
    words = ["-n", "20", "-L", "1", "--smoothness", "1", "--eta", number(r, 0.1, 1), *runs.noise(r, low=1)]
    words += maybe(r, 0.6, "--epochs", "2") + maybe(r, 0.3, "-D", "1") + maybe(r, 0.2, "--steps", "10")
    return Question(("compare", "--algorithm", names, *words, *budget(r), *_shown(r)), quick=False)


_SCHEDULED = (
    ("rdp", "pnsgd", ("step_size", "noise_std")), ("rdp", "pnsgd", ("step_size", "noise_std", "contraction")),
    ("hockey-stick", "pnsgd", ("step_size", "noise_std", "displacement")),
    ("hockey-stick", "stop", ("step_size", "noise_std", "probability")),
    ("hockey-stick", "pnsgd", ("step_size", "laplace_scale")),
    ("shuffle", "shuffled", ("step_size", "noise_std")), ("shuffle", "shuffled", ("noise_std",)),
    ("compare", "pnsgd", ("step_size", "noise_std")), ("compare", "stop", ("step_size", "noise_std", "probability")),
    ("compare", "shuffled", ("step_size", "laplace_scale")), ("rdp", "pnsgd", ("shift", "noise_std")),
    ("shifted", "chain", ("shift", "contraction", "step_size", "noise_std")),
    ("shifted", "chain", ("shift", "contraction", "step_size", "noise_std", "spend")),
    ("shifted", "chain", ("shift", "contraction", "step_size", "laplace_scale")),
    ("multi-epoch", "cyclic", ("step_size", "noise_std")),
    ("unlearn", "unlearning", ("contraction", "step_size", "noise_std")),
)  # fmt: skip


def _scheduled(r: random.Random) -> Question:
    """Per-step values from a file."""
    command, algorithm, columns = r.choice(_SCHEDULED)
    path, content = files.schedule(r, columns)
    words = [command, *named(command, algorithm), "--schedule", path]
    if command == "unlearn":
        words += ["--start-distance", number(r, 0.01, 1)]
    elif command != "shifted":
        words += ["-L", number(r, 0.2, 2), "--smoothness", "1", *maybe(r, 0.6, "-D", number(r, 0.5, 5))]
        words += maybe(r, 0.7, "-i", r.choice(("1", "3"))) + maybe(r, 0.2, "--eta", "0.5")
    words += maybe(r, 0.1, "-n", "3") + maybe(r, 0.1, "--solve", "index")
    return Question((*words, *budget(r), *_shown(r)), {path: content}, quick=False)


def _priced(r: random.Random) -> Question:
    """What a budget costs; of losses that are not smooth only a few, because finding their noise takes seconds."""
    words = ["--dimension", r.choice(("1", "10", "100")), "-n"]
    kind = r.random()
    if kind < 0.08:
        words += ["100", "-L", "1", "-R", "1", "--holder-exponent", "0.5", "--holder-constant", "1"]
    elif kind < 0.16:
        words += ["100", *runs.named_loss(r, step=False)]
    else:
        words += [r.choice(("100", "1000", "1e5", "1e6")), "-L", number(r, 0.2, 3)]
        words += maybe(r, 0.9, "-R", number(r, 0.5, 3))
        words += maybe(r, 0.85, "--smoothness", number(r, 0.2, 2))
    words += maybe(r, 0.5, "--algorithm", r.choice(PRICED)) + maybe(r, 0.1, "--public-records", "50")
    words += maybe(r, 0.1, "--tasks", "3") + maybe(r, 0.1, "--failure-probability", "0.05")
    words += maybe(r, 0.1, "--eta", "0.1") + maybe(r, 0.1, "--steps", "100") + maybe(r, 0.1, "-i", "5")
    words += maybe(r, 0.1, "--sigma", "2") + maybe(r, 0.05, "--strong-convexity", "0.1")
    words += ["-e", number(r, 0.2, 4), "-d", r.choice(("1e-6", "1e-5")), *maybe(r, 0.1, "--assert", "excess_risk<=0.5")]
    return Question(("utility", *words, *_shown(r)), quick=False)


def _trained(r: random.Random) -> Question:
    """A small training, seeded so that it can be repeated."""
    words, given = _data(r)
    algorithm = r.choice(TRAINED)
    words += ["--algorithm", algorithm, "-R", number(r, 0.5, 3), *maybe(r, 0.15, "--regularisation", "0.1")]
    words += maybe(r, 0.5, "--eta", number(r, 0.01, 0.3))
    if algorithm in ("noisy-gd", "noisy-sgd", "dp-sgd-gradient", "dp-sgd-output"):
        words += maybe(r, 0.9, "--steps", r.choice(("3", "20")))
    if algorithm in ("cyclic", "shuffle-once", "shuffled-epochs"):
        words += [
            "--epochs",
            r.choice(("1", "3")),
            *maybe(r, 0.3, "--release", "epoch"),
            *maybe(r, 0.3, "--last-batch", "drop"),
        ]
    if algorithm == "online":
        words += ["--c1", "10", "--c2", "10", "--decay-exponent", "1.5"]
    words += maybe(r, 0.3, "--batch-size", r.choice(("2", "7")))
    known = ["--sigma", number(r, 0.3, 4), "-d", "1e-3"]
    sought = ["-e", number(r, 0.5, 8), "-d", "1e-3"]
    if algorithm in ("dp-sgd-gradient", "noisy-sgd", "shuffled-epochs"):  # solving for their noise takes seconds
        sought = known
    words += r.choice((known, sought, ["--laplace-scale", "2", "-e", "1"], ["--sigma", "1", "-e", "1", "-d", "1e-3"]))
    words += maybe(r, 0.9, "--seed", r.choice(("0", "1", "20"))) or ["--seed", "3"]
    words += maybe(r, 0.25, "--replicas", r.choice(("2", "5")), "--workers", "1") or maybe(r, 0.3, "-o", "model.json")
    words += maybe(r, 0.25, "--test-fraction", "0.2") + maybe(r, 0.1, "--assert", "epsilon<=2") + _shown(r)
    return Question(("train", *words), given, quick=False)


def _data(r: random.Random) -> tuple[Words, dict[str, bytes]]:
    if r.random() < 0.5:
        kind = r.choice(("logistic", "linear"))
        words = ["--synthetic", kind, "-n", r.choice(("10", "40")), "--dimension", r.choice(("1", "3"))]
        losses = ("logistic", "hinge") if kind == "logistic" else ("squares", "huber", "absolute", "insensitive")
        return [*words, *_loss_of_training(r, r.choice(losses))], {}
    label = r.choice((("0", "1"), ("yes", "no"), ("-1", "1"), ("0.5", "1.5")))
    given = {"table.csv": files.table(r, 30, label), "ranges.csv": files.RANGES}
    words = ["--data", "table.csv", *maybe(r, 0.8, "--target", "ill"), *maybe(r, 0.7, "--ranges", "ranges.csv")]
    words += (["--positive", "yes"] if "yes" in label else []) + maybe(r, 0.2, "--intercept")
    words += maybe(r, 0.1, "--ignore", "dose")
    return [*words, *_loss_of_training(r, r.choice(("logistic", "hinge", "squares")))], given


def _loss_of_training(r: random.Random, loss: str) -> Words:
    words = ["--loss", loss, *maybe(r, 0.4, "--feature-bound", "1")]
    words += ["--label-bound", "1"] if loss not in ("logistic", "hinge") else []
    words += ["--huber-threshold", "0.5"] if loss == "huber" else []
    words += ["--tube", "0.1"] if loss == "insensitive" else []
    return words + (maybe(r, 0.7, "--power", r.choice(("1", "1.5", "2"))) if loss in ("hinge", "absolute") else [])


def _certified(r: random.Random) -> Question:
    """Guarantees proved in ball arithmetic."""
    command = r.choice([name for name in COMMANDS if name != "compare"])
    algorithm = r.choice(COMMANDS[command])
    words = [command, *named(command, algorithm), *described(algorithm, r), "-d", "1e-5", *maybe(r, 0.3, "-e", "1")]
    return Question((*words, "--certify", *_shown(r)), quick=False)


def _written(r: random.Random) -> Question:
    """Every format, terminal colours, files, and precision."""
    algorithm = r.choice(("pnsgd", "cyclic", "noisy-gd", "local", "repeated", "dp-sgd-gradient"))
    words = ["compare", "--algorithm", algorithm, *described(algorithm, r), "-d", "1e-5", *maybe(r, 0.2, "-e", "1")]
    words += ["--format", r.choice(FORMATS), *maybe(r, 0.3, "--precision", r.choice(("2", "12", "17")))]
    words += maybe(r, 0.2, "--color", r.choice(("always", "never", "auto"))) + maybe(r, 0.2, "-o", "out.txt")
    environments: tuple[dict[str, str], ...] = (
        {}, {}, {}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}, {"COLUMNS": "50"}, {"COLUMNS": "200"},
    )  # fmt: skip
    return Question(tuple(words), env=r.choice(environments))


def _stream_noise(r: random.Random) -> Question:
    """The noise of a stream, record by record."""
    words = ["online", *described("online", r, noisy=False)]
    count = words.index("-n") + 1
    words[count] = r.choice(("3", "20"))
    return Question((*words, "--print-noise"))


_KINDS: dict[str, tuple[int, Callable[[random.Random], Question]]] = {
    "several": (15, _several),
    "schedules": (220, _scheduled),
    "utility": (100, _priced),
    "training": (130, _trained),
    "recipes": (200, recipes.drawn),
    "mistakes": (700, mistakes.drawn),
    "certified": (24, _certified),
    "formats": (120, _written),
    "noise of streams": (12, _stream_noise),
}
