"""What to say of an option or a command that does not exist: what was meant, or why there is none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import click

_NO_OPTION = {
    "accountant": "there is none to choose: every bound that applies is asked, and the tightest is the answer. `dpcalc "
    "compare` shows all of them, --order asks for Renyi privacy",
    "optimizer": "leave it out with dp-sgd, where every iterate may be public: SGD, momentum and Adam cost the same "
    "privacy. Bounds on hidden iterates speak of plain steps alone",
    "secure_mode": "leave it out: bounds speak of exact Gaussian noise. `dpcalc train --noise-source secure` draws it "
    "from a secure generator",
    "architecture": "leave it out: where each record's gradient is clipped by itself, privacy does not depend on the "
    "network",
}
"""Words of other programs that are no option here, and what to do."""
_NO_OPTION["optim"] = _NO_OPTION["optimiser"] = _NO_OPTION["optimizer"]
_NO_OPTION["secure_rng"] = _NO_OPTION["secure_mode"]

_MEANT = {
    "poisson_sampling": ("sampling", "did you mean --sampling poisson?"),
    "without_replacement": ("sampling", "did you mean --sampling fixed?"),
    "last_iterate": ("release", "did you mean --release last?"),
    "hidden": ("release", "did you mean --release last?"),
    "neighboring": ("adjacency", "did you mean --adjacency?"),
    "neighbouring": ("adjacency", "did you mean --adjacency?"),
    "neighbors": ("adjacency", "did you mean --adjacency?"),
    "neighbours": ("adjacency", "did you mean --adjacency?"),
    "position": ("index", "did you mean --index?"),
    "mu": ("strong_convexity", "did you mean --strong-convexity?"),
    "variance": ("noise_std", "give --noise-std, the square root of the variance of one coordinate"),
    "proof": ("epsilon", "add --format explain, which names the theorem and where its proof is"),
    "theorem": ("epsilon", "add --format explain, which names the theorem and where its proof is"),
}
"""Words that people type -> the parameter without which a command has nothing to say of them, and what to say."""

_COMMANDS_MEANT = {
    "dp-sgd": (
        "opacus", "dpsgd", "tf-privacy", "tensorflow-privacy", "compute-dp-sgd-privacy", "compute-epsilon",
        "get-noise-multiplier", "accountant", "rdp-accountant", "prv-accountant", "subsampled-gaussian",
    ),
    "ledger": ("compose", "composition", "budget"),
    "risk": ("attack", "membership-inference", "mia"),
    "audit": ("auditing", "canary", "empirical-epsilon"),
    "convert": ("gdp", "zcdp", "mu"),
    "train": ("fit",),
    "help": ("epsilon", "delta", "noise", "start", "privacy", "man"),
    "cite": ("bibtex", "citation"),
    "explain": ("theorem", "proof", "why"),
    "check": ("gate", "lint"),
    "verify": ("validate", "reproduce", "card"),
}  # fmt: skip
"""Commands -> words that people type for them."""


def about_option(word: str, command: click.Command) -> str:
    """Return what to say of an option that a command does not have; empty where nothing is near."""
    from dpcalc.model.parameter import PARAMETERS, conversion, meant_by, not_covered

    plain = word.lstrip("-").replace("_", "-")
    flags = _flags(command)
    if same := flags.get(plain.lower()):
        return f"did you mean {same}?"
    bare = plain.lower().replace("-", "_")
    if isinstance(command, click.Group) and not nearest(plain.lower(), flags):
        return "name a command first, as in `dpcalc dp-sgd --epsilon 1`; `dpcalc help` says what to type first"
    taken = [name for option in command.params if (name := option.name)]
    if said := not_covered(word) or _NO_OPTION.get(bare) or _said(bare, taken):
        return said
    if meant := meant_by(word, taken):
        return f"did you mean {PARAMETERS[meant].flag}?{conversion(meant)}"
    near = nearest(plain.lower(), flags)
    close = bool(near) and len(plain) > 3 and distance(plain.lower(), near[0]) == 1
    if not close and (found := _value(plain.lower(), command) or _symbol(plain, taken) or _elsewhere(bare)):
        return found
    return f"did you mean {' or '.join(dict.fromkeys(flags[name] for name in near))}?" if near else ""


def _said(word: str, taken: Collection[str]) -> str:
    """Return what `_MEANT` has to say to a command that takes these parameters."""
    parameter, text = _MEANT.get(word, ("", ""))
    return text if parameter in taken else ""


def about_command(word: str, names: Iterable[str]) -> str:
    """Return what to say of a command that does not exist; empty where nothing is near."""
    from dpcalc.engine.commands import COMMANDS
    from dpcalc.model.algorithm import NAMED

    plain = word.lower().replace("_", "-")
    for name, words in _COMMANDS_MEANT.items():
        if plain in words:
            return f"did you mean `dpcalc {name}`?"
    if plain in NAMED and plain not in COMMANDS:
        taking = (name for name, record in COMMANDS.items() if plain in record.algorithms and not record.compares)
        return f"did you mean `dpcalc {next(taking, 'compare')} --algorithm {plain}`?"
    near = nearest(plain, names)
    return f"did you mean {' or '.join(f'`dpcalc {name}`' for name in near)}?" if near else ""


def nearest(word: str, words: Iterable[str]) -> list[str]:
    """Return the words at the least distance, at most two: those that a third of the letters or the rest are wrong of.

    >>> nearest("nose-std", ["loss", "noise-std", "noise"]), nearest("noise-mult", ["noise-std", "noise-multiplier"])
    (['noise-std'], ['noise-multiplier'])
    """
    limit = max(1, len(word) // 3)
    begun = len(word) >= 3
    far = {name: distance(word, name) for name in words if len(word) > 1}
    begins = [name for name in far if begun and name.startswith(word)]
    admitted = begins or [name for name, apart in far.items() if apart <= limit]
    least = min((far[name] for name in admitted), default=0)
    return [name for name in admitted if far[name] == least][:2]


def distance(one: str, other: str) -> int:
    """Return how many letters are left out, put in, changed or exchanged with the next between two words.

    >>> distance("epsilson", "epsilon"), distance("sgima", "sigma"), distance("", "ab")
    (1, 1, 2)
    """
    older: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        row = [i]
        for j, wanted in enumerate(other, start=1):
            least = min(last[j] + 1, row[-1] + 1, last[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                least = min(least, older[j - 2] + 1)
            row.append(least)
        older, last = last, row
    return last[-1]


def _flags(command: click.Command) -> Mapping[str, str]:
    """Return every long flag that a command takes, without hyphens before it -> as the help lists it."""
    from dpcalc.model.parameter import KNOWN, spellings

    found: dict[str, str] = {}
    for option in command.params:
        if isinstance(option, click.Option):
            listed = next((name for name in option.opts if name.startswith("--")), option.opts[0])
            found |= {name.lstrip("-"): name for name in option.opts if name.startswith("--")}
            known = KNOWN.get(option.name or "")
            words = known.synonyms if known else spellings(option.name or "")
            found |= {name.lstrip("-").replace("_", "-"): listed for name in words}
    return found


def _value(word: str, command: click.Command) -> str:
    """Return the option one of whose values is the word: `--poisson` is `--sampling poisson`."""
    for option in command.params:
        parameter: Any = getattr(option.type, "parameter", None)
        if word in getattr(parameter, "choices", ()):
            return f"did you mean {parameter.flag} {word}?"
    return ""


def _symbol(word: str, taken: Iterable[str]) -> str:
    """Return the one parameter that the papers write with this letter."""
    from dpcalc.model.parameter import PARAMETERS

    parameters = [PARAMETERS[name] for name in taken if name in PARAMETERS]
    for spelt in (str, str.lower):
        found = [parameter for parameter in parameters if spelt(parameter.symbol) == spelt(word)]
        if len(found) == 1:
            return f"did you mean {found[0].flag}?"
    return ""


def _elsewhere(word: str) -> str:
    """Return which commands take a parameter."""
    from dpcalc.engine.commands import COMMANDS
    from dpcalc.model.parameter import PARAMETERS, name_of

    name = name_of(word)
    single = {command: record for command, record in COMMANDS.items() if not record.compares}
    if name == "schedule":
        return f"{', '.join(command for command, record in single.items() if record.columns)} take a --schedule"
    takers = [command for command, record in single.items() if name in record.parameters]
    return f"{PARAMETERS[name].flag} is a parameter of {', '.join(takers)}" if takers else ""
