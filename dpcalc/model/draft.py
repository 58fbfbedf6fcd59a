"""The description of a run before it is checked and while it is filled in.

Frozen classes whose fields are their annotations: like frozen dataclasses, but faster to import.

Constructors take keywords only; fields with a default are optional. A subclass's fields follow those of its base, and a
redeclared field moves to the end. A property that is computed once is a `functools.cached_property`, or `once` for
classes with very many objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, Self, TypeVar, dataclass_transform, overload

from dpcalc.model.algorithm import Source
from dpcalc.model.quantities import Given, Noise

NOISE_SCALES = {"noise_std": Noise.GAUSSIAN, "laplace_scale": Noise.LAPLACE}
"""The kind of noise that each scale parameter belongs to."""


class Description(dict[str, Any]):
    """What is said of a run: parameter name -> value, and in ``sources`` where it came from. None says nothing."""

    def __init__(self, values: Mapping[str, Any] = {}, sources: Mapping[str, Source] = {}) -> None:
        super().__init__()
        self.sources: dict[str, Source] = {}
        for name, value in values.items():
            if value is not None:
                self[name], self.sources[name] = value, sources.get(name, Source.ARGUMENT)

    def put(self, name: str, value: Any, source: Source) -> None:
        """Set a parameter."""
        self[name], self.sources[name] = value, source

    def fill(self, name: str, value: Any, source: Source) -> None:
        """Set a parameter that is not described."""
        if name not in self:
            self[name], self.sources[name] = value, source

    def take(self, name: str, default: Any = None) -> Any:
        """Remove a parameter and return its value."""
        self.sources.pop(name, None)
        return self.pop(name, default)

    def has(self, *names: str) -> bool:
        """Return whether all these parameters are described."""
        return self.keys() >= set(names)


T = TypeVar("T")


class once(Generic[T]):  # noqa: N801 (a decorator)
    """A cached property without the lock of Python 3.11's `functools.cached_property`."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...

    def __get__(self, instance: Any, owner: type | None = None) -> T | Self:
        if instance is None:  # accessed on the class
            return self
        value = instance.__dict__[self._name] = self._function(instance)
        return value


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Frozen:
    """Base of the frozen classes.

    Attributes:
        fields: the names of the fields in order of declaration, those of the base first.
        optional: the fields that have a default.
        needed: the fields without a default.
    """

    fields: ClassVar[tuple[str, ...]] = ()
    optional: ClassVar[frozenset[str]] = frozenset()
    needed: ClassVar[tuple[str, ...]] = ()
    _names: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        fields = dict.fromkeys(cls.fields)
        for name, kind in cls.__dict__.get("__annotations__", {}).items():  # noqa: RUF063 (inspect is slow to load)
            if not (name.startswith("_") or str(kind).startswith("ClassVar")):
                fields.pop(name, None)  # a field that is declared again moves to the end
                fields[name] = None
        needed = [name for name in fields if not hasattr(cls, name)]
        cls.fields, cls._names = tuple(fields), frozenset(fields)
        cls.needed, cls.optional = tuple(needed), frozenset(fields).difference(needed)

    def __init__(self, **given: Any) -> None:
        if given.keys() != self._names:
            self._check_names(given)
        self.__dict__.update(given)

    def _check_names(self, given: Given) -> None:
        """Raise TypeError if a field is missing or unknown."""
        for name in self.needed:
            if name not in given:
                raise TypeError(f"{type(self).__name__} needs {name}")
        if strange := given.keys() - self._names:
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(strange))}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((type(self), tuple(getattr(self, name) for name in self.fields)))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.fields if name in self.__dict__)
        return f"{type(self).__name__}({shown})"

    def changed(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        known = {name: self.__dict__[name] for name in self.fields if name in self.__dict__}
        return type(self)(**{**known, **changes})

    def to_dict(self) -> dict[str, Any]:
        """Return name -> value of every field."""
        return {name: getattr(self, name) for name in self.fields}
