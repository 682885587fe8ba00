"""A request of a client of Apache Falcon, and what its parameters mean in all of its paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from starlette.responses import Response

from falcon_assets.errors import UsageError
from falcon_assets.features.entities.results import OperationResult
from falcon_assets.model.access import Principal
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.audit import perform_for
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Operation
from falcon_assets.surface.registry import registry
from falcon_assets.surface.rest.falcon import answers
from falcon_assets.surface.rest.falcon.answers import FalconAnswer
from falcon_assets.surface.rest.requests import made

Answer: TypeAlias = "Callable[[FalconRequest], FalconAnswer | Response]"
MOST = 10_000
SHOWN = 200
KINDS = ("cluster", "datasource", "feed", "process")


@dataclass(frozen=True)
class FalconRequest:
    """A request, whose operations are performed for who asks."""

    installation: Installation
    who: Principal
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes = field(repr=False)

    def perform(self, operation: type[Operation] | str, **given: Any) -> Any:
        """An operation or a command; raises UsageError where its feature is left out in this installation."""
        if isinstance(operation, str):
            if operation not in registry():
                raise UsageError(f"this installation does without what falcon {operation} is for")
            operation = registry()[operation].load()
        own = {name: value for name, value in given.items() if value not in (None, "")}
        return perform_for(self.installation, self.who, "rest", made(operation, own))

    @property
    def kind(self) -> str:
        """Of the path; raises UsageError for what is none."""
        kind = self.path["kind"].lower()
        if kind not in KINDS:
            raise UsageError(f"Invalid entity type: {kind[:SHOWN]}; there is: {', '.join(KINDS)}")
        return kind

    @property
    def name(self) -> str:
        return self.path["name"]

    @property
    def times(self) -> dict[str, str | None]:
        return {"start": self.query.get("start"), "end": self.query.get("end")}

    def definitions(self, kind: str) -> tuple[str, str]:
        """Name and YAML of the entity in the body, which is XML or YAML; raises UsageError."""
        text = self.body.decode(errors="replace")
        if not text.lstrip().startswith("<"):
            return "", text
        # Imported here: the feature may not be there.
        from falcon_assets.features.falcon_xml.conversion import Imported, convert  # noqa: PLC0415 - said above
        from falcon_assets.features.falcon_xml.elements import UnfitXmlError  # noqa: PLC0415 - likewise

        try:
            found = convert(self.body, "definition")
        except UnfitXmlError as error:
            raise UsageError(f"definition:{error.line}: {error}") from error
        if not isinstance(found, Imported):
            raise UsageError("; ".join(f"definition:{one.line}: {one.name}: {one.message}" for one in found))
        if found.kind != kind:
            raise UsageError(f"the body has a {found.kind}, the path says {kind}")
        return found.name, found.text().text


def filters_of(asked: FalconRequest, known: Mapping[str, str]) -> list[tuple[str, str]]:
    found = []
    for one in filter(None, asked.query.get("filterBy", "").split(",")):
        name, _, value = one.partition(":")
        if name.upper() not in known:
            raise UsageError(f"filterBy: there is no {name[:SHOWN]}; there is: {', '.join(known)}")
        found.append((known[name.upper()], value))
    return found


def order_of(asked: FalconRequest, known: Mapping[str, str]) -> str | None:
    order = asked.query.get("orderBy", "").lower()
    if not order:
        return None
    if order not in known:
        raise UsageError(f"orderBy: there is no {order[:SHOWN]}; there is: {', '.join(known)}")
    return ("-" if asked.query.get("sortOrder", "asc").lower() == "desc" else "") + known[order]


def part_of(asked: FalconRequest) -> tuple[int, int]:
    return number_of(asked, "offset", 0), number_of(asked, "numResults", 10)


def number_of(asked: FalconRequest, name: str, usual: int) -> int:
    text = asked.query.get(name) or str(usual)
    if not (text.isascii() and text.isdigit() and int(text[:9]) <= MOST):
        raise UsageError(f"{name} is a number from 0 to {MOST}, not {text[:SHOWN]!r}")
    return int(text)


def instant_of(asked: FalconRequest, name: str) -> datetime:
    """Of a parameter that must be there; raises UsageError, and ExpressionError where it is none."""
    if not (text := asked.query.get(name, "")):
        raise UsageError(f"{name} is missing: give an instance (yyyy-MM-dd'T'HH:mm'Z')")
    return parse_instant(text)


def done(message: str, result: OperationResult | None = None) -> FalconAnswer:
    return FalconAnswer(answers.said(message) if result is None else answers.changed(message, result))


def names(result: Any) -> str:
    return ",".join(one.name for one in result.entities)
