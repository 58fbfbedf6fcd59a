"""The facts of one run, from its file and from flags; a fact is asked for when it is needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dpcalc.account.facts import FACTS, Said, bare, drawn_by
from dpcalc.account.forms import Phase, RunFile
from dpcalc.errors import SpecError
from dpcalc.model.quantities import Sampling

DISTRIBUTED = "distributeduniformwithreplacementsampler"
_OF_OPACUS = ("uniformwithreplacementsampler", DISTRIBUTED)

_RESTATED = (
    "noise_multiplier", "layer_noise_multipliers", "worker_noise_multiplier", "noise_std", "noise_std_sum", "steps",
    "epochs",
)  # fmt: skip
"""Facts that a history or an event contains itself."""
_OPEN = ("epsilon", "delta", "adjacency", "divisor")
"""Facts in which a flag may differ from the file."""


class Missing(SpecError):
    """A necessary fact is unknown; ``fact`` is its name."""

    def __init__(self, fact: str, why: str) -> None:
        flag = f"give {FACTS[fact].flag} ({FACTS[fact].help.rstrip('.')})"
        super().__init__(why, flag if FACTS[fact].help else "write a single value, or leave it out", parameters=(fact,))
        self.fact = fact

    def __reduce__(self) -> tuple[type[Missing], tuple[str, str]]:
        return type(self), (self.fact, self.message)


class Claim(NamedTuple):
    """Another reading of the facts: the run with ``changes``, and the truth instead."""

    reading: str
    truth: str
    changes: Mapping[str, Any]

    @classmethod
    def poisson(cls, reading: str, phases: tuple[Phase, ...], truth: str) -> Claim:
        """Return the claim that these phases ran, drawn as Poisson samples."""
        return cls(reading, truth, {"phases": phases, "sampling": Sampling.POISSON, "shape": {}})

    def of_groups(self, size: int) -> Claim:
        """Return the claim for groups of this size, if it has its own phases."""
        return self._replace(changes={"group_size": size, **self.changes}) if "phases" in self.changes else self


class Stated:
    """The facts, the ones that were used, and remarks about them.

    Args:
        run: the facts of a file.
        flags: the facts given as flags, which must not contradict the file.

    Raises:
        SpecError: a flag contradicts the file.
    """

    def __init__(self, run: RunFile, flags: Mapping[str, Said]) -> None:
        self.run, self.phases = run, run.phases
        self.facts = {**run.facts, **{name: self._kept(name, said) for name, said in flags.items()}}
        own, nodes = self.facts.get("devices", Said(None, "", "?")), self.facts.pop("nodes", None)
        if nodes and nodes.text != "1" and not own.origin.endswith(("--devices", "world_size", "num_processes")):
            count = own.value * nodes.value if own.value and nodes.value else None
            text = f"{own.text} on each of {nodes.text} nodes"
            self.facts["devices"] = Said(count, own.origin or nodes.origin, text)
        self.used: dict[str, Said] = {"nodes": nodes} if nodes else {}
        self.claims: list[Claim] = []
        self.coins = 1
        """The number of independently drawn batches that are accumulated for a step."""
        self.remarks: list[str] = list(run.remarks)

    def _kept(self, name: str, said: Said) -> Said:
        """Return the value of a flag, or that of the file if it agrees and is more detailed."""
        other = self.run.facts.get(name)
        if self.phases and name in _RESTATED:
            raise SpecError(f"{said.origin} is given, but {self.run.kind} contains it", f"leave out {said.origin}")
        if other is None or other.value is None or name in _OPEN:
            return said
        if other.value != said.value and not (name == "sampling" and _may_be(other, said)):
            raise SpecError(
                f"{other.origin} is {other.text}, and {said.origin} says {said.text}",
                f"leave out {said.origin}, or correct the file if it is wrong",
            )
        return other if name == "sampling" and drawn_by(other.text) is Sampling.POISSON else said

    def get(self, name: str) -> Any:
        """Return a fact, or None if it is unknown.

        Raises:
            Missing: its stated value is ambiguous.
        """
        said = self.facts.get(name)
        if said is None or (said.value is None and not said.text):
            return None
        if said.value is None:
            raise Missing(name, f"{said.origin} is {said.text}, which is not a single value of {name}")
        self.used[name] = said
        return said.value

    def is_final(self, name: str) -> bool:
        """Return whether a fact comes from a flag or from a key that overrides others."""
        said = self.facts.get(name)
        if said is None or said.value is None:
            return False
        return said.origin.startswith("--") or said.origin.endswith(("max_steps", "max_train_steps", "global_step"))

    def count(self, name: str) -> int:
        """Return a count; 1 if it is unknown."""
        return int(self.get(name) or 1)

    def need(self, name: str, why: str) -> Any:
        """Return a fact.

        Raises:
            Missing: it is unknown.
        """
        value = self.get(name)
        if value is None:
            raise self.missing(name, why)
        return value

    def missing(self, name: str, why: str) -> Missing:
        """Return the question for a fact."""
        return Missing(name, f"{self.run.shown}: {why}")

    def word(self, name: str) -> str:
        """Return a word in lower case without punctuation; empty if it is unknown."""
        return bare(str(self.get(name) or ""))

    @property
    def of_opacus(self) -> bool:
        """Whether the loader and the sampler are those of Opacus."""
        return self.word("tool") == "opacus" or self.word("sampling") in _OF_OPACUS

    @property
    def sampling(self) -> Sampling:
        """How batches were drawn.

        Raises:
            Missing: it is unknown or ambiguous.
        """
        poisson, typed = self.get("poisson"), self.get("sampling")
        drawn = Sampling.POISSON if typed is None and poisson else None if typed is None else drawn_by(typed)
        if typed is not None and poisson is not None and poisson is not (drawn is Sampling.POISSON):
            raise self.missing("sampling", f"poisson_sampling is {poisson}, but the sampling is {typed}")
        if drawn is not None:
            return drawn
        if typed is not None:
            raise Missing(
                "sampling",
                f"{self.facts['sampling'].origin} is {typed}: not Poisson sampling, which accountants of such runs "
                "assume; shuffle is valid for every order within an epoch",
            )
        if poisson is False:
            raise self.missing("sampling", "poisson_sampling is false, which does not say how batches were drawn")
        raise self.missing(
            "sampling",
            "the sampling is unknown; a shuffled loader writes the same numbers as Poisson sampling",
        )


def _may_be(other: Said, said: Said) -> bool:
    """Return whether a class of samplers is compatible with a flag."""
    drawn, typed = drawn_by(other.text), drawn_by(said.text)
    return typed is drawn or (drawn is None and typed is not Sampling.POISSON)
