"""Cases of Python: the best answer is computed at once, the rest when somebody looks at it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from dpcalc.report import Case, Result


class PendingCase(Case):
    """A case whose best answer is known; the rest is computed when it is first asked for."""

    _pending: Callable[[], Case]

    @classmethod
    def of(cls, answered: Case, pending: Callable[[], Case]) -> PendingCase:
        """Return the case.

        Args:
            answered: the case with its best answer, without what is looser, and without notes.
            pending: computes the whole case.
        """
        case = tuple.__new__(cls, answered)
        case._pending = functools.cache(pending)
        return case

    def __getattribute__(self, name: str) -> Any:
        if name in _PENDING:
            return getattr(self._pending(), name)
        return super().__getattribute__(name)

    @property
    def answers(self) -> tuple[Result, ...]:
        """The results to quote."""
        results: tuple[Result, ...] = super().__getattribute__("results")
        return tuple(result for result in results if result.best)

    @property
    def best(self) -> Result | None:
        """The first of them."""
        return self.answers[0]

    @property
    def _brief(self) -> Case:
        return Case(self.algorithm, self.inputs, self.answers)

    def _replace(self, **changes: Any) -> Case:  # type: ignore[override]
        return self._pending()._replace(**changes)

    def __iter__(self) -> Iterator[Any]:
        return iter(tuple(self._pending()))

    def __getitem__(self, place: Any) -> Any:
        return self._pending()[place]

    def __eq__(self, other: object) -> bool:
        return self._pending() == (other._pending() if isinstance(other, PendingCase) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._pending())

    def __reduce__(self) -> tuple[Any, ...]:
        return Case, tuple(self._pending())


_PENDING = frozenset(Case._fields) - {"algorithm", "inputs", "assertions", "query", "check"}
"""The fields that say more than the best answer."""
