"""Mistakes that people make on a command line, each in a run that would be answered without it."""

import random

from tests.corpus.names import ALGORITHMS, ALL_COMMANDS, COMMANDS, FLAGS
from tests.corpus.question import Question
from tests.corpus.runs import Words, budget, described

VALUES = (
    "0", "-1", "-0", "nan", "inf", "-inf", "", "1e309", "1e-400", "1/0", "abc", "1,5", "1,,2", "1:2", "2:1:1",
    "1:1e9:1e-9", "1.5", "50%", "1e16", "10^400", "0x10", "1__0", "none", "all", " 1 ", "1;2", "２", "1:10:log0",
)  # fmt: skip
"""What is no number, is outside a domain, or only looks wrong."""
CONTRADICTIONS = (
    "--sigma 2 --laplace-scale 2", "--loss logistic", "--strong-convexity 3", "--loss-class lipschitz --smoothness 1",
    "--noise laplace", "--permutation secret", "--release epoch", "--epochs 3 --steps 7", "-i 100000000", "--c1 1",
    "--schedule missing.csv", "--langevin-std 1", "--epoch-epsilon 1", "--solve noise_std", "--solve epsilon",
    "--solve nothing -e 1 -d 1e-5", "--assert epsilon=1", "--assert epsilon<=x", "--assert size<=1", "--format yaml",
    "--precision 1", "--precision 99", "--plot x.bmp", "--plot-bounds nothing", "--json --format csv", "--eta 100",
    "-d 2", "-e -1", "--order 0.5", "-o no/such/folder/x.json", "-o .", "--color sometimes", "--batch-size 99999999",
    "extra", "--adjacency add-remove", "--algorithm pnsgd,nothing", "-d 1e-5 -d 1e-6", "--diameter 0",
    "--feature-bound 1", "--huber-threshold 1", "--displacement 2 -D 1", "--dimension 0", "-w 5", "--index 0",
)  # fmt: skip
INFEASIBLE = (
    "-e 0 -d 1e-300", "-e 1e-12 -d 1e-12 --solve records", "-e 1e-9 -d 1e-9 --solve epochs", "-e 0.001 -d 1e-12 "
    "--solve steps", "-e 1e-6 -d 1e-30 --solve index", "-e 1e-9 -d 1e-9 --solve batch_size", "-e 1e6 -d 0.5",
)  # fmt: skip


def drawn(r: random.Random) -> Question:
    """Return a question with one mistake."""
    command = r.choice(list(COMMANDS))
    algorithm = r.choice(COMMANDS[command])
    words = [*named(command, algorithm), *described(algorithm, r), *budget(r)]
    return Question((command, *_MISTAKES[r.randrange(len(_MISTAKES))](r, words), "--json"))


def named(command: str, algorithm: str) -> Words:
    """Return the flag that names the algorithm, for the commands that have it."""
    return [] if command in ("shifted", "unlearn", "online") else ["--algorithm", algorithm]


def _places(words: Words) -> list[int]:
    return [k for k, word in enumerate(words[:-1]) if word.startswith("-") and not words[k + 1].startswith("-")]


def _missing(r: random.Random, words: Words) -> Words:
    places = _places(words)
    if not places:
        return words
    at = r.choice(places)
    return words[:at] + words[at + 2 :]


def _wrong_value(r: random.Random, words: Words) -> Words:
    places = _places(words)
    if not places:
        return ["--records", r.choice(VALUES)]
    at = r.choice(places)
    return [*words[:at], f"{words[at]}={r.choice(VALUES)}" if words[at].startswith("--") else words[at],
            *([] if words[at].startswith("--") else [r.choice(VALUES)]), *words[at + 2 :]]  # fmt: skip


def _misspelt(r: random.Random, words: Words) -> Words:
    at = r.choice([k for k, word in enumerate(words) if len(word) > 3] or [0]) if words else 0
    if not words:
        return ["--sigm"]
    word = words[at]
    cut = r.randrange(2, len(word)) if len(word) > 2 else 1
    spoiled = r.choice(
        (word[:cut] + word[cut + 1 :], word[:cut] + "x" + word[cut:], word.upper(), word.replace("-", "_"))
    )
    return [*words[:at], spoiled, *words[at + 1 :]]


def _foreign_flag(r: random.Random, words: Words) -> Words:
    return [*words, r.choice(FLAGS), r.choice(("1", "0.5", "2", *VALUES))]


def _contradicting(r: random.Random, words: Words) -> Words:
    return [*words, *r.choice(CONTRADICTIONS).split()]


def _infeasible(r: random.Random, words: Words) -> Words:
    kept = [word for word in words if word not in ("-e", "-d")]
    return [*(kept if len(kept) == len(words) else _missing(r, words)), *r.choice(INFEASIBLE).split()]


def _other_algorithm(r: random.Random, words: Words) -> Words:
    return [*words, "--algorithm", r.choice(ALGORITHMS)]


def _unfinished(r: random.Random, words: Words) -> Words:
    return words[: r.randrange(len(words) + 1)]


_MISTAKES = (
    _missing, _missing, _wrong_value, _wrong_value, _wrong_value, _misspelt, _foreign_flag, _foreign_flag,
    _contradicting, _contradicting, _infeasible, _other_algorithm, _unfinished,
)  # fmt: skip
BARE: tuple[str, ...] = (
    "", "--version", "--help", "-h", "--nothing", "nothing", "RDP", "rdpp", "compare compare", "explain",
    "explain nothing",
    "explain iteration.pnsgdd", "cite nothing", "cite", "schema", "schema nothing", "schema report", "schema recipe",
    "schema card", "verify", "verify missing.json",
    "completions", "completions tcsh", "completions bash", "completions zsh", "completions fish", "completions man",
    "completions bash -o out/x.bash", "completions bash -o x.bash", "check", "check missing.yaml", "check .",
    "train", "train --data missing.csv --loss logistic -e 1 -d 1e-5", "bounds", "bounds --json", "bounds --format csv",
    "bounds --format markdown", "bounds --format jsonl", "bounds nothing", "statement", "utility", "utility --orders",
    "utility --orders --json", "cite --json", "cite --format plain", "compare --algorithm all", "rdp", "shifted",
    "bounds --algorithm nothing", "check --list", "check missing.yaml --json",
    *(f"{command} {flag}" for command in ALL_COMMANDS for flag in ("--help", "--nothing")),
)  # fmt: skip
