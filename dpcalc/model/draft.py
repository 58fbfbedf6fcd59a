"""What is said of a run before it is checked, and as it is filled in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dpcalc.model.choices import Noise
from dpcalc.model.source import Source

NOISE_SCALES = {"noise_std": Noise.GAUSSIAN, "laplace_scale": Noise.LAPLACE}
"""The kind of noise that each scale parameter speaks of."""


class Description:
    """What is said of a run: the value of each parameter, and where it came from. None says nothing."""

    def __init__(self, values: Mapping[str, Any] = {}, sources: Mapping[str, Source] = {}) -> None:
        self.values = {name: value for name, value in values.items() if value is not None}
        self.sources = {name: sources.get(name, Source.ARGUMENT) for name in self.values}

    def put(self, name: str, value: Any, source: Source) -> None:
        """Set a parameter."""
        self.values[name], self.sources[name] = value, source

    def take(self, name: str, default: Any = None) -> Any:
        """Remove a parameter and return its value."""
        self.sources.pop(name, None)
        return self.values.pop(name, default)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a parameter, or the default."""
        return self.values.get(name, default)

    def has(self, *names: str) -> bool:
        """Return whether all these parameters are described."""
        return all(name in self.values for name in names)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)
