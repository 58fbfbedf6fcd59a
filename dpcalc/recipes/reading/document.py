"""What recipes, ledgers and policies have in common as documents: a version, and keys that are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dpcalc.files.nodes import Field, Node, Table, table, text
from dpcalc.files.place import Place, clipped, near


def body_of(node: Node | None, shown: str, version: str, elsewhere: Mapping[str, str] | None = None) -> Table:
    """Return the mapping that a document of a version is.

    Args:
        node: what was read; None where there is nothing.
        shown: the name of the file.
        version: ``kind/number``.
        elsewhere: beginning of another version -> the hint on what reads it.

    Raises:
        SpecError: it is of another version, or of none.
    """
    kind, start = version.partition("/")[0], f"start with dpcalc: {version}"
    if node is None:
        raise Place(shown).error("is empty", f"a {kind} starts with dpcalc: {version}")
    body = table(node, f"the {kind}")
    field = body.fields.get("dpcalc")
    if field is None:
        raise body.place.error(f"this is not a {kind}: the version is missing", start)
    written = text(field.node, "dpcalc")
    if written != version:
        hint = next((hint for other, hint in (elsewhere or {}).items() if written.startswith(other)), None)
        raise field.node.place.error(f"dpcalc is {clipped(written)}; this release reads {version}", hint)
    return body


def refuse_keys(fields: Mapping[str, Field], names: Iterable[str], hint: str | None = None) -> None:
    """Refuse keys that are none of some names; the hint is the nearest one, unless another is given."""
    names = tuple(names)
    for key, field in fields.items():
        if key not in names:
            raise field.place.error(f"unknown key {clipped(key)}", hint or near(key, names))
