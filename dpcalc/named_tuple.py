"""`typing.NamedTuple`, made in a tenth of the time: for the modules that every query imports.

The one of ``typing`` compiles source text for every class; here all classes share their methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple"]

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from operator import itemgetter

    class _Maker(type):
        def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
            fields = tuple(namespace.get("__annotations__", ()))
            defaults = {field: namespace.pop(field) for field in fields if field in namespace}
            getters = {field: property(itemgetter(i)) for i, field in enumerate(fields)}
            own = {"_fields": fields, "_field_defaults": defaults, "__match_args__": fields, "__slots__": ()}
            return super().__new__(cls, name, bases, {**namespace, **getters, **own})

    class NamedTuple(tuple, metaclass=_Maker):
        """Base of the classes in the source: tuples whose items have names, and defaults where they are given."""

        def __new__(cls, *values: Any, **named: Any) -> Any:
            """Return the tuple of a class; the items follow the order of its fields or have their names."""
            if named or len(values) != len(cls._fields):
                values = cls._values(values, named)
            return tuple.__new__(cls, values)

        @classmethod
        def _values(cls, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
            """Return the value of every field.

            Raises:
                TypeError: a field without default is missing, or a value is given twice or to no field.
            """
            rest = cls._fields[len(values) :]
            missing = [field for field in rest if field not in named and field not in cls._field_defaults]
            unknown = [name for name in named if name not in rest]
            if missing or unknown or len(values) > len(cls._fields):
                wrong = f"lacks {', '.join(missing)}" if missing else f"does not take {', '.join(unknown) or 'so many'}"
                raise TypeError(f"{cls.__name__}({', '.join(cls._fields)}) {wrong}")
            return (*values, *(named[field] if field in named else cls._field_defaults[field] for field in rest))

        @classmethod
        def _make(cls, values: Any) -> Any:
            return cls(*values)

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def _replace(self, **changes: Any) -> Any:
            return type(self)(**{**self._asdict(), **changes})

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"
