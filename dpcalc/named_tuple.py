"""`typing.NamedTuple`, made in a tenth of the time: for the modules that every query imports.

The one of ``typing`` compiles source text for every class; here all classes share their methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple"]

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from itertools import pairwise
    from operator import itemgetter

    try:
        from _collections import _tuplegetter as _getter  # what `typing.NamedTuple` uses
    except ImportError:  # it is CPython's own

        def _getter(place: int, doc: str | None) -> property:
            return property(itemgetter(place), doc=doc)

    class _Maker(type):
        def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
            own = tuple(namespace.get("__annotations__", ()))
            inherited = tuple(field for base in bases for field in getattr(base, "_fields", ()))
            fields = tuple(dict.fromkeys((*inherited, *own)))
            defaults = {field: value for base in bases for field, value in getattr(base, "_field_defaults", {}).items()}
            defaults.update({field: namespace.pop(field) for field in own if field in namespace})
            _refuse_gaps(name, fields, defaults)
            places = {field: place for place, field in enumerate(fields)}
            getters = {field: _getter(place, None) for field, place in places.items()}
            tail = tuple(defaults[field] for field in fields if field in defaults)
            shared = {
                "_fields": fields, "_field_defaults": defaults, "_places": places, "_tail": tail,
                "__match_args__": fields, "__slots__": (),
            }  # fmt: skip
            return super().__new__(cls, name, bases, {**namespace, **getters, **shared})

    def _refuse_gaps(name: str, fields: tuple[str, ...], defaults: dict[str, Any]) -> None:
        """Raise TypeError where a field without a default follows one that has one."""
        for before, field in pairwise(fields):
            if before in defaults and field not in defaults:
                raise TypeError(f"{name}: {field}, which has no default, follows {before}, which has one")

    class NamedTuple(tuple, metaclass=_Maker):
        """Base of the classes in the source: tuples whose items have names, and defaults where they are given."""

        def __new__(cls, *values: Any, **named: Any) -> Any:
            """Return the tuple of a class; the items follow the order of its fields or have their names."""
            left = len(cls._fields) - len(values)
            if not (left or named):
                return tuple.__new__(cls, values)
            if named or left < 0 or left > len(cls._tail):
                values = cls._values(values, named)
            elif left:
                values += cls._tail[-left:]
            return tuple.__new__(cls, values)

        @classmethod
        def _values(cls, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
            """Return the value of every field.

            Raises:
                TypeError: a field without default is missing, or a value is given twice or to no field.
            """
            rest, defaults = cls._fields[len(values) :], cls._field_defaults
            try:
                all_values = (*values, *[named[name] if name in named else defaults[name] for name in rest])
            except KeyError:
                raise TypeError(cls._mistake(values, named)) from None
            if len(all_values) > len(cls._fields) or not all(map(rest.__contains__, named)):
                raise TypeError(cls._mistake(values, named))
            return all_values

        @classmethod
        def _mistake(cls, values: tuple[Any, ...], named: dict[str, Any]) -> str:
            """Return what is wrong with the values given."""
            rest = cls._fields[len(values) :]
            missing = [field for field in rest if field not in named and field not in cls._field_defaults]
            twice = [name for name in named if name in cls._fields and name not in rest]
            unknown = [name for name in named if name not in cls._fields]
            wrong = [
                *([f"takes {len(cls._fields)} values, not {len(values)}"] if len(values) > len(cls._fields) else ()),
                *([f"is given {', '.join(twice)} twice"] if twice else ()),
                *([f"does not take {', '.join(unknown)}"] if unknown else ()),
                *([f"lacks {', '.join(missing)}"] if missing else ()),
            ]
            return f"{cls.__name__}({', '.join(cls._fields)}) {' and '.join(wrong)}"

        @classmethod
        def _make(cls, values: Any) -> Any:
            """Return the tuple of so many values as there are fields.

            Raises:
                TypeError: there are fewer or more.
            """
            values = tuple(values)
            if len(values) != len(cls._fields):
                raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, and there are {len(values)} values")
            return tuple.__new__(cls, values)

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def _replace(self, **changes: Any) -> Any:
            values, places = list(self), self._places
            for field, value in changes.items():
                if field not in places:
                    raise TypeError(self._mistake((), {field: value, **dict(zip(self._fields, self, strict=True))}))
                values[places[field]] = value
            return tuple.__new__(type(self), values)

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"
