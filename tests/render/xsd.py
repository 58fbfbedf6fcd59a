"""A validator for the part of XML Schema that junit-10.xsd uses; whatever else a schema holds is refused."""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

XS = "{http://www.w3.org/2001/XMLSchema}"


class Schema:
    """The global elements and named types of a schema file."""

    def __init__(self, path: Path) -> None:
        root = ElementTree.parse(path).getroot()
        self.elements = {e.attrib["name"]: e for e in root if e.tag == XS + "element"}
        self.types = {e.attrib["name"]: e for e in root if e.tag in (XS + "complexType", XS + "simpleType")}
        assert len(self.elements) + len(self.types) == len(root)

    def errors(self, text: str) -> list[str]:
        """Return what is wrong with a document; nothing if it is valid."""
        root = ElementTree.fromstring(text)
        return list(self._element(root, self.elements[root.tag])) if root.tag in self.elements else [root.tag]

    def _element(self, found: Element, declared: Element) -> Iterator[str]:
        named = declared.get("type", "")
        kind = self.types.get(named) if named != "xs:string" else None
        kind = declared.find(XS + "complexType") if kind is None else kind
        if kind is None:
            assert named == "xs:string"
            yield from (f"{found.tag}: {what}" for what in (*found, *found.attrib))
            return
        yield from self._attributes(found, kind)
        yield from self._children(found, kind)

    def _attributes(self, found: Element, kind: Element) -> Iterator[str]:
        declared = {a.attrib["name"]: a for a in kind.iter(XS + "attribute")}
        yield from (f"{found.tag}: attribute {name}" for name in set(found.attrib) - set(declared))
        for name, attribute in declared.items():
            if name not in found.attrib:
                if attribute.get("use") == "required":
                    yield f"{found.tag}: no {name}"
            elif (named := attribute.attrib["type"]) != "xs:string":
                pattern = self.types[named].find(f"{XS}restriction/{XS}pattern")
                assert pattern is not None
                if not re.fullmatch(pattern.attrib["value"], found.attrib[name]):
                    yield f"{found.tag}: {name}={found.attrib[name]!r}"

    def _children(self, found: Element, kind: Element) -> Iterator[str]:
        particles = [child for child in kind if child.tag != XS + "attribute"]
        model = "".join(_expression(particle) for particle in particles)
        if not re.fullmatch(model, "".join(f"<{child.tag}>" for child in found)):
            yield f"{found.tag}: children {[child.tag for child in found]}"
        texts = [found.text, *(child.tail for child in found)]
        if kind.get("mixed") != "true" and any(text and text.strip() for text in texts):
            yield f"{found.tag}: text"
        local = {e.attrib["name"]: e for e in kind.iter(XS + "element") if "name" in e.attrib}
        for child in found:
            declared = local.get(child.tag, self.elements.get(child.tag))
            yield from [child.tag] if declared is None else self._element(child, declared)


def _expression(particle: Element) -> str:
    """Return a content model as a regular expression over ``<tag>`` after ``<tag>``."""
    inner = {
        XS + "element": lambda: f"<{particle.get('ref') or particle.get('name')}>",
        XS + "sequence": lambda: "".join(map(_expression, particle)),
        XS + "choice": lambda: "|".join(map(_expression, particle)),
    }[particle.tag]()
    low, high = particle.get("minOccurs", "1"), particle.get("maxOccurs", "1")
    return f"(?:{inner}){{{low},{'' if high == 'unbounded' else high}}}"
