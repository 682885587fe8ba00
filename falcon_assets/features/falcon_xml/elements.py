"""XML elements with lines and comments; hostile XML is refused before it costs time or memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from defusedxml import DTDForbidden
from defusedxml.ElementTree import DefusedXMLParser, ParseError

MAX_DEPTH = 32
"""Falcon's own definitions are eight deep."""
MAX_ELEMENTS = 20_000
_LONGEST_TAG = 200
"""Lines of one tag that are searched for an attribute."""
_NAMESPACE = re.compile(r"\{(.*)\}")
_TAG_END = re.compile(r"""[^"'>]*(("[^"]*"|'[^']*')[^"'>]*)*>""")


class UnfitXmlError(Exception):
    """XML that is refused; the text is a sentence, ``line`` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass
class Attribute:
    """An attribute; ``taken``: its value is in the YAML, or was named in a warning."""

    name: str
    value: str
    line: int
    taken: bool = False


@dataclass
class Element:
    """An element.

    Attributes:
        name: Prefixed with the namespace in braces where that differs from the root's.
        namespace: "" = none.
        line: The first line of its tag.
        comments: Above it.
        last_comments: Below its last child.
        taken: Its presence is in the YAML, or was named in a warning.
        text_taken: The same of its text.
    """

    name: str
    namespace: str
    line: int
    attributes: list[Attribute] = field(default_factory=list)
    children: list[Element] = field(default_factory=list)
    text: str = ""
    comments: list[str] = field(default_factory=list)
    last_comments: list[str] = field(default_factory=list)
    taken: bool = False
    text_taken: bool = False

    def attribute(self, name: str) -> Attribute | None:
        return next((one for one in self.attributes if one.name == name), None)

    def named(self, name: str) -> list[Element]:
        return [one for one in self.children if one.name == name]

    def all(self) -> Iterator[Element]:
        """Yields this element and its descendants, in the order of the text."""
        yield self
        for child in self.children:
            yield from child.all()

    def claim_comments(self) -> list[str]:
        """Returns its comments and removes them, so that each is written once."""
        found, self.comments, self.last_comments = [*self.comments, *self.last_comments], [], []
        return found


@dataclass
class Parsed:
    root: Element
    instructions: list[tuple[int, str]]


def parse_xml(raw: bytes) -> Parsed:
    """Parses a file.

    Raises:
        UnfitXmlError: it is not well-formed, too deep or too large, or declares a DOCTYPE, and with it perhaps entities
            that grow without end or read other files.
    """
    builder = _Builder(raw)
    parser = DefusedXMLParser(target=builder, forbid_dtd=True)
    builder.parser = parser.parser
    try:
        parser.feed(raw)
        parser.close()
    except DTDForbidden:
        rule = "a DOCTYPE is not read, as it may hide entities that grow without end or read other files: remove it"
        raise UnfitXmlError(builder.line(), rule) from None
    except ParseError as error:
        line, column = error.position
        why = str(error).partition(": line ")[0]
        raise UnfitXmlError(line, f"the XML is not well-formed: {why} at column {column + 1}") from None
    except (ValueError, LookupError) as error:
        raise UnfitXmlError(1, f"the text cannot be decoded: {error}") from None
    if builder.root is None:
        raise UnfitXmlError(1, "the file holds no element")
    return Parsed(builder.root, builder.instructions)


class _Builder:
    """The target of the parser, see ``xml.etree.ElementTree.XMLParser``."""

    def __init__(self, raw: bytes) -> None:
        self.parser: _Expat | None = None
        self.root: Element | None = None
        self.instructions: list[tuple[int, str]] = []
        self._lines = raw.decode("utf-8", errors="replace").split("\n")
        self._open: list[Element] = []
        self._comments: list[str] = []
        self._count = 0

    def line(self) -> int:
        return int(self.parser.CurrentLineNumber) if self.parser else 1

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if len(self._open) == MAX_DEPTH:
            raise UnfitXmlError(self.line(), f"elements are more than {MAX_DEPTH} deep in each other")
        if self._count > MAX_ELEMENTS:
            raise UnfitXmlError(self.line(), f"the file has more than {MAX_ELEMENTS:,} elements: split it")
        found = _NAMESPACE.match(tag)
        namespace = found[1] if found else ""
        is_own = self.root is None or namespace == self.root.namespace
        element = Element(tag[found.end() :] if found and is_own else tag, namespace, self.line())
        lines = self._tag_lines()
        element.attributes = [
            Attribute(name, value, element.line + _offset(lines, name)) for name, value in attributes.items()
        ]
        element.comments, self._comments = self._comments, []
        if self.root is None:
            self.root = element
        else:
            self._open[-1].children.append(element)
        self._open.append(element)

    def end(self, tag: str) -> None:
        element = self._open.pop()
        element.last_comments, self._comments = self._comments, []

    def data(self, text: str) -> None:
        if self._open:
            self._open[-1].text += text

    def comment(self, text: str) -> None:
        self._comments.append(text)

    def pi(self, target: str, text: str = "") -> None:
        self.instructions.append((self.line(), f"{target} {text}".strip()))

    def close(self) -> None:
        if self.root is not None:
            self.root.last_comments += self._comments

    def _tag_lines(self) -> list[str]:
        """Returns the lines of the present tag, at most :data:`_LONGEST_TAG`."""
        first = self.line() - 1
        column = int(self.parser.CurrentColumnNumber) if self.parser else 0
        lines = self._lines[first : first + _LONGEST_TAG]
        text = "\n".join([line[column:] if at == 0 else line for at, line in enumerate(lines)])
        end = _TAG_END.match(text)
        return (text[: end.end()] if end else text).split("\n")


class _Expat:
    """The used part of pyexpat's parser."""

    CurrentLineNumber: int
    CurrentColumnNumber: int


def _offset(lines: list[str], attribute: str) -> int:
    """Returns the line of an attribute within its tag; 0 where it is not found."""
    if len(lines) == 1:
        return 0
    name = re.compile(rf"(^|\s|:){re.escape(attribute.rpartition('}')[2])}\s*=")
    return next((at for at, line in enumerate(lines) if name.search(line)), 0)
