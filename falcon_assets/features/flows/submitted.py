"""The validity of flows that are submitted without one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from falcon_assets.catalog.stored_tree import Stored
from falcon_assets.catalog.yaml_files.definition_files import text_of
from falcon_assets.catalog.yaml_files.documents import Document, Files, read_file
from falcon_assets.catalog.yaml_files.file_text import UnwritableError, rewritten
from falcon_assets.catalog.yaml_files.yaml_text import as_document, as_documents
from falcon_assets.model.flow import Flow
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.flows.feeds import submitted_start

_KEY = "validity"
_FOR_EVER = "9999-12-31T23:59Z"


def with_validity(stored: Stored, given: Stored, now: datetime) -> Stored:
    """Returns given definitions in which flows without validity have that of the stored flow, or one from now on."""
    if given.files.problems:
        return given
    files = Files()
    for path, raw in given.files.contents.items():
        own = [one for one in given.files.documents if one.path == path]
        begun = {given.number(one): _begun(stored, given, one, now) for one in own if _lacks_validity(one)}
        read_file(path, _rewritten(raw, own, begun) if begun else raw, files)
    return Stored(given.root, files)


def _lacks_validity(document: Document) -> bool:
    return isinstance(document.data, dict) and document.data.get("kind") == "flow" and _KEY not in document.data


def _begun(stored: Stored, given: Stored, document: Document, now: datetime) -> tuple[dict[str, Any], str]:
    """The values, and the text."""
    before = stored.by_key.get(("flow", str(document.data.get("name"))))
    validity = before.data.get(_KEY) if before else None
    if validity is None:
        try:
            start = submitted_start(Flow.model_validate(document.data), now)
        except ValidationError:
            return document.data, given.text(document)  # its problems are said when it is checked
        validity = {"start": format_instant(start), "end": _FOR_EVER}
    return {**document.data, _KEY: validity}, f"{given.text(document).rstrip()}\n{as_document({_KEY: validity})}"


def _rewritten(raw: bytes, documents: list[Document], begun: Mapping[int, tuple[dict[str, Any], str]]) -> bytes:
    try:
        text = rewritten(text_of(raw).replace("\r\n", "\n"), {number: text for number, (_, text) in begun.items()})
    except UnwritableError:  # as one on a single line
        values = (begun[number][0] if number in begun else one.data for number, one in enumerate(documents))
        text = as_documents(values)
    return text.encode()
