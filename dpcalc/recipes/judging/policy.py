"""The rules by which the cases of a check are judged, whoever wrote them.

Without a policy a case is judged by its own gates alone. ``--strict``, or ``strict: true`` in a recipe, is a built-in
policy with one rule. A policy file (`dpcalc.recipes.judging.policy_file`) has a rule for each pattern of names, with
limits of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from dpcalc.engine.advice.missing import ON_MEAN
from dpcalc.engine.gate import Gate
from dpcalc.files.place import Place


class Rule(NamedTuple):
    """What is demanded of a case.

    Attributes:
        place: where the rule stands in a policy file; None for a rule that is none of a file.
        strict: whether no skip and no unlisted exception is allowed, and every case must be selected.
        certified: whether a number must be proved where a definition exists.
        required: whether a case that the rule speaks of must be checked.
        limits: at most so much of each quantity, whatever the case itself asserts.
        adjacency, commands, kinds: what the answer may be for, come from and be; None: anything.
        records: at most so many may be claimed; None: any number.
        group_size: at least so many records of one person.
        accept: the exceptions that a case may accept; None: any.
        expired: the exceptions that it might have accepted.
        places: where each of these stands.
    """

    place: Place | None = None
    strict: bool = False
    certified: bool = False
    required: bool = False
    limits: tuple[Gate, ...] = ()
    adjacency: tuple[str, ...] | None = None
    commands: tuple[str, ...] | None = None
    kinds: tuple[str, ...] | None = None
    records: int | None = None
    group_size: int = 1
    accept: tuple[str, ...] | None = None
    expired: tuple[str, ...] = ()
    places: Mapping[str, Place] = {}

    def at(self, key: str) -> Place | None:
        """Return where a demand stands."""
        return self.places.get(key, self.place)


class Policy(NamedTuple):
    """The rules of a check.

    Attributes:
        place: where the rules of a file stand; None where there is no file.
        rules: pattern of names -> rule; the first that fits counts, and a case that none fits fails.
        strict: whether every rule is strict.
        source: text from which another process reads the same rules (`dpcalc.recipes.judging.policy_file.again`).
    """

    place: Place | None = None
    rules: Mapping[str, Rule] = {}
    strict: bool = False
    source: str = "false"

    def pattern_of(self, group: str) -> str | None:
        """Return the first pattern that fits a name under ``cases:``."""
        return next((pattern for pattern in self.rules if fnmatchcase(group, pattern)), None)

    def rule_of(self, group: str) -> Rule:
        """Return the rule for a name under ``cases:``."""
        pattern = self.pattern_of(group)
        rule = Rule(self.place, strict=self.place is not None) if pattern is None else self.rules[pattern]
        if not self.strict:
            return rule
        accept = (ON_MEAN,) if rule.accept is None else rule.accept  # to say which noise is meant is no exception
        return rule._replace(strict=True, certified=True, accept=accept)


LENIENT = Policy()
