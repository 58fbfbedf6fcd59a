"""The options of a command as --help shows them: in groups, the most used first, every word with what it stands for.

What to say of an option or a command that does not exist: what was meant, or why there is none.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import click

from dpcalc.engine.commands import COMMANDS
from dpcalc.model.algorithm import ALGORITHMS
from dpcalc.model.glosses import GLOSSED, gloss_of
from dpcalc.model.parameter import Parameter

_GROUPS = {
    "Run": (
        "algorithm", "release", "records", "epochs", "steps", "index", "window", "batch_size", "last_batch", "sampling",
        "sample_rate", "permutation", "step_size", "public_records", "tasks", "schedule", "shift", "contraction",
        "start", "start_distance", "clean_steps", "requests",
        "adjacency", "group_size",
    ),
    "Noise": (
        "noise_std", "noise_multiplier", "noise", "laplace_scale", "langevin_std", "c1", "c2", "decay_exponent",
        "schedule_factor",
    ),
    "Loss": (
        "loss", "feature_bound", "label_bound", "radius", "regularisation", "power", "huber_threshold", "tube",
        "lipschitz", "smoothness", "strong_convexity", "loss_class", "clip", "model", "diameter", "dimension",
        "displacement", "holder_exponent", "holder_constant", "gradient_at_zero", "loss_at_zero",
    ),
    "Budget and question": (
        "mu", "rho", "pure", "rdp", "to", "epsilon", "delta", "order", "solve", "failure_probability", "gates",
        "certify", "epoch_epsilon", "epoch_delta", "risk", "advantage", "tpr", "success", "reconstruction", "fpr",
        "prior", "baseline",
    ),
    "Output": ("format", "as_json", "output", "precision", "reports", "plot", "plot_bounds", "color", "verbose"),
}  # fmt: skip
"""The options of each group, by their names, in the order in which they are shown."""

_USED = (
    "algorithm", "records", "epochs", "batch_size", "lipschitz", "smoothness", "step_size", "noise_std", "epsilon",
    "delta",
)  # fmt: skip
_MOST_USED = {
    "dp-sgd": (
        "records", "batch_size", "epochs", "sampling", "noise_multiplier", "clip", "adjacency", "epsilon", "delta",
        "solve",
    ),
    "online": (
        "records", "index", "lipschitz", "smoothness", "step_size", "c1", "c2", "decay_exponent", "epsilon", "delta",
    ),
    "convert": ("mu", "rho", "pure", "rdp", "epsilon", "delta", "order", "to"),
    "risk": ("mu", "rho", "pure", "rdp", "epsilon", "delta", "fpr", "prior", "baseline", "gates"),
    "unlearn": (
        "start", "start_distance", "contraction", "strong_convexity", "step_size", "noise_std", "clean_steps",
        "epsilon", "delta", "solve",
    ),
    "shifted": ("steps", "shift", "contraction", "step_size", "noise_std", "schedule", "epsilon", "delta", "solve"),
    "train": (
        "data", "target", "labels", "loss", "radius", "algorithm", "epsilon", "delta", "noise_std", "output",
    ),
    "utility": (
        "loss", "feature_bound", "records", "dimension", "radius", "lipschitz", "smoothness", "algorithm", "epsilon",
        "delta",
    ),
}  # fmt: skip
"""The options that come first, where a command has others than most."""

FEW = 24
"""A command with so few options at most has no groups."""
_COLUMN = 24
"""Where the words about an option start."""
_WIDTH = 80
_DEFAULTS = {"noise": "gaussian", "release": "last", "power": "1", "tube": "0"}
"""Defaults of parameters that no algorithm has of its own."""


def most_used(command: str, names: Sequence[str]) -> list[str]:
    """Return the options to show first: at most ten of those that the command has."""
    return [name for name in _MOST_USED.get(command, _USED) if name in names]


def grouped(command: str, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the titles of the groups -> the options of each, in the order in which they are shown.

    Args:
        command: the command's name.
        names: the names of its options.
    """
    if len(names) <= FEW:
        return {"Options": list(names)}
    first = most_used(command, names)
    groups = {"Most used": first}
    for title, members in _GROUPS.items():
        groups[title] = [name for name in members if name in names and name not in first]
    shown = {name for members in groups.values() for name in members}
    groups["Data" if "data" in names else "Everything else"] = [name for name in names if name not in shown]
    return {title: members for title, members in groups.items() if members}


def write_options(command: click.Command, context: click.Context, formatter: click.HelpFormatter) -> None:
    """Write every option, in groups."""
    options = {str(p.name): p for p in command.get_params(context) if isinstance(p, click.Option) and not p.hidden}
    for title, names in grouped(str(command.name), list(options)).items():
        with formatter.section(title):
            for name in names:
                lines = _entry(str(command.name), options[name], context, formatter.width)
                formatter.write("\n".join(lines) + "\n")


def _entry(command: str, option: click.Option, context: click.Context, width: int) -> list[str]:
    """Return the lines about an option: its names, what it means, and what each of its words stands for."""
    parameter = _parameter(option)
    words = _words(parameter)
    names = ", ".join([*sorted(option.opts, key=lambda flag: flag.startswith("--")), *option.secondary_opts])
    takes = "" if option.is_flag or option.count else " " + ("WORD" if words else option.make_metavar(context))
    default = default_of(command, option)
    said = GLOSSED[parameter.name].lead if parameter and words else option.help or ""
    text = said + (f" [default: {default}]" if default and not words else "")
    return _described(f"{names}{takes}", text, words, default, width)


def about(parameter: Parameter) -> list[str]:
    """Return the lines about a parameter: what it means, its domain, and what each of its words stands for.

    >>> from dpcalc.model.parameter import PARAMETERS
    >>> print(*about(PARAMETERS["sample_rate"]), sep="\\n")
      --sample-rate NUM     probability with which a record is in the batch of a
                            step; a number > 0 and <= 1
    """
    words = _words(parameter)
    said = GLOSSED[parameter.name].lead if words else f"{parameter.help}; {parameter.domain}"
    names = ", ".join((*parameter.aliases, parameter.flag))
    takes = "WORD" if words else "INT" if parameter.integer else "NUM"
    return _described(f"{names} {takes}", said, words, "", _WIDTH)


def _described(head: str, text: str, words: dict[str, str], default: str, width: int) -> list[str]:
    about = textwrap.wrap(text, width - _COLUMN) or [""]
    head = f"  {head}"
    lines = [head] if len(head) > _COLUMN - 2 else [f"{head:<{_COLUMN}}{about.pop(0)}"]
    lines += [" " * _COLUMN + line for line in about]
    return lines + _glossary(words, default, width)


def _glossary(words: dict[str, str], default: str, width: int) -> list[str]:
    longest = max(map(len, words), default=0)
    lines = []
    for word, gloss in words.items():
        text = gloss + (" (default)" if word == default else "")
        indent = " " * (6 + longest + 2)
        lines += textwrap.wrap(text, width, initial_indent=f"      {word:<{longest}}  ", subsequent_indent=indent)
    return lines


def _words(parameter: Parameter | None) -> dict[str, str]:
    """Return the words that a parameter may be and what each stands for; empty where it is no word."""
    if parameter is None or parameter.name not in GLOSSED:
        return {}
    if parameter.name == "algorithm":
        return {word: gloss_of(word) for word in parameter.choices}
    return {word: GLOSSED[parameter.name].words.get(word, "") for word in parameter.choices}


def _parameter(option: click.Option) -> Parameter | None:
    """Return the parameter that an option gives a value to, with the words that the command takes; None for others."""
    parameter: Any = getattr(option.type, "parameter", None)
    return parameter if isinstance(parameter, Parameter) else None


def default_of(command: str, option: click.Option) -> str:
    """Return what an option is where it is not given, where that does not depend on more; else the empty string."""
    name = str(option.name)
    if _parameter(option) is None:
        return str(option.default) if option.show_default and option.default is not None else ""
    record = COMMANDS.get(command, COMMANDS["compare"])
    if name == "algorithm":
        return "" if record.compares or record.prices else record.default
    if name == "release" and "dp-sgd" in record.algorithms:  # which has another one
        return ""
    taking = [ALGORITHMS[a] for a in record.algorithms if name in ALGORITHMS[a].parameters]
    defaults: set[Any] = {algorithm.defaults.get(name, _DEFAULTS.get(name)) for algorithm in taking}
    [default] = defaults if len(defaults) == 1 else [None]
    return "" if default is None else f"{default:g}" if isinstance(default, float) else str(default)


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
    if not close and (answer := _value(plain.lower(), command) or _symbol(plain, taken) or _elsewhere(bare)):
        return answer
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

    flags: dict[str, str] = {}
    for option in command.params:
        if isinstance(option, click.Option):
            listed = next((name for name in option.opts if name.startswith("--")), option.opts[0])
            flags |= {name.lstrip("-"): name for name in option.opts if name.startswith("--")}
            known = KNOWN.get(option.name or "")
            words = known.synonyms if known else spellings(option.name or "")
            flags |= {name.lstrip("-").replace("_", "-"): listed for name in words}
    return flags


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
        matches = [parameter for parameter in parameters if spelt(parameter.symbol) == spelt(word)]
        if len(matches) == 1:
            return f"did you mean {matches[0].flag}?"
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
