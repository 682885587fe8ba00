"""Text of a definition file, document by document: everything between the markers, comments included."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import yaml

from falcon_assets.catalog.yaml_files.merging import said

_MARKER = re.compile(r"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)", re.MULTILINE)


class UnwritableError(Exception):
    """The file would not have the intended value: it uses YAML that this module does not support."""


@dataclass(frozen=True)
class Section:
    """A part of a file with one document in it: from its marker, if there is one, to the next."""

    start: int
    text: str
    end: int


def sections(text: str) -> Iterator[Section]:
    marks = [(0, 0), *((match.start(), match.end()) for match in _MARKER.finditer(text)), (len(text), len(text))]
    for (start, begins), (end, _) in pairwise(marks):
        section = Section(start, text[begins:end], end)
        if end > begins and _holds_document(section.text):
            yield section


def _holds_document(text: str) -> bool:
    return any(line.strip() and not line.lstrip().startswith(("#", "%")) for line in text.splitlines())


def normalised(text: str) -> str:
    """Returns a document without marker and trailing blanks; raises UnwritableError if it depends on text in front."""
    try:
        wanted = said(text)
        own = text.replace("\r\n", "\n").split("\n")
        for lines in ([line.rstrip() for line in own], own):
            tidy = "\n".join(lines).strip("\n") + "\n"
            if said(tidy) == wanted:
                return tidy
    except yaml.YAMLError as error:
        raise UnwritableError from error
    raise UnwritableError


def rewritten(text: str, changes: Mapping[int, str | None]) -> str:
    """Returns the file with other documents; empty where none is left.

    ``changes``: index of a document -> its new text; None: it is deleted.

    Raises:
        UnwritableError: the result would not have the intended values.
    """
    found = list(sections(text))
    try:
        before = said(text)
        wanted = [one for number, one in enumerate(before) for one in _after(one, changes, number)]
        result = _joined(text, found, changes) if wanted else ""
        if len(found) == len(before) and said(result) == wanted:
            return result
    except yaml.YAMLError as error:
        raise UnwritableError from error
    raise UnwritableError


def _after(before: str, changes: Mapping[int, str | None], number: int) -> list[str]:
    change = changes.get(number, "")
    return [] if change is None else said(change) if change else [before]


def _joined(text: str, found: Sequence[Section], changes: Mapping[int, str | None]) -> str:
    parts, at = [], 0
    for number, section in enumerate(found):
        if number not in changes:
            continue
        change = changes[number]
        if change is None:
            parts.append(text[at : section.start])
        else:
            head = text[section.start : section.end - len(section.text)]
            parts += [text[at : section.start], head, "\n" if head else "", change]
        at = section.end
    parts.append(text[at:])
    joined = "".join(parts)
    first = next(iter(_MARKER.finditer(joined)), None)
    if first and 0 in changes and changes[0] is None and not joined[: first.start()].strip():
        return joined[first.end() :].lstrip("\n") if joined[first.start()] == "-" else joined
    return joined
