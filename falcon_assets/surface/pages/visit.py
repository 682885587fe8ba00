"""One request for a page: who asks, for what, and how the answer is rendered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import cache, cached_property
from http import HTTPStatus
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import HTMLResponse, RedirectResponse, Response

from falcon_assets.base.texts import hidden
from falcon_assets.catalog.additions import why_unwritable
from falcon_assets.errors import DeniedError, ReadOnlyError, SettingsError
from falcon_assets.features.colos.prism import Prism
from falcon_assets.features.entities.listing import Entity
from falcon_assets.instances.views.grid import SHAPES
from falcon_assets.model.access import Principal, Role
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.operations.acting import Owned, require_change
from falcon_assets.operations.audit import perform_for
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Operation
from falcon_assets.operations.page_links import PLACE, page_path, read_back
from falcon_assets.surface.pages.protection import FIELD
from falcon_assets.surface.registry import registry

ZONE_COOKIE = "falcon_zone"
_FOLDER = Path(__file__).parent
_SIGNS = {state.value: sign for state, sign in SHAPES.items()}
_NAVIGATION = {
    "today": ("", "Today"),
    "instances": ("instances", "Instances"),
    "entities": ("entities", "Entities"),
    "flows": ("flows", "Flows"),
    "quality": ("quality", "Quality"),
    "lineage": ("lineage", "Lineage"),
}


@dataclass(frozen=True)
class PageVisit:
    """A request, in the thread that answers it.

    Attributes:
        root: The path before ``/falcon``, where a proxy puts one.
        query: The parameters of the link, in order.
        form: The fields that were sent; they are of a form of ours.
        token: For the forms on the page.
        is_part: Whether htmx asks, which replaces a part of a page.
        prism: Of a front of several colos.
    """

    installation: Installation
    who: Principal
    root: str
    query: Sequence[tuple[str, str]]
    form: Sequence[tuple[str, str]]
    token: str
    zone: tzinfo
    is_part: bool
    path: str
    prism: Prism | None = None

    @cached_property
    def places(self) -> Mapping[str, str]:
        """The colos of clusters, of a front of several."""
        return self.prism.places() if self.prism else {}

    def colos_of(self, one: Entity) -> Sequence[str]:
        """The colos that an entity belongs to, of those of this front."""
        if isinstance(one.declared, Cluster):
            return [one.declared.colo]
        there = {self.places.get(name) for name in one.clusters}
        return [name for name in (self.prism.names if self.prism else ()) if name in there or not one.clusters]

    def home(self, colo: str | None) -> str:
        """Where the pages, and Dagster's, of a colo begin; of this front itself where there are no others."""
        return self.prism.url(colo).removesuffix("/") if self.prism and colo in self.prism.names else self.root

    def there(self, colo: str, page: str, *pairs: tuple[str, Any], **parameters: Any) -> str:
        """The link to a page of that colo's own front."""
        return self.home(colo) + page_path(page, (*pairs, *parameters.items()))

    def value(self, name: str, default: str = "") -> str:
        return next((value for known, value in (*self.form, *self.query) if known == name and value), default)

    def can(self, command: str) -> bool:
        """Whether the operation exists: features may be left out."""
        return command in registry()

    def asked(self, command: str, **more: Any) -> Operation:
        """The operation that the form, else the link, is about; raises QueryError."""
        return read_back(registry()[command].load(), self.form or self.query, **more)

    def perform(self, asked: Operation) -> Any:
        """Raises as the operation, and DeniedError."""
        return perform_for(self.installation, self.who, "page", asked, self._colos(asked))

    def _colos(self, asked: Operation) -> tuple[str, ...]:
        """The colo that is chosen, or that of the cluster that it is about; empty: all that it concerns."""
        if self.prism is None:
            return ()
        cluster = getattr(asked, "cluster", None) or self.value("cluster")
        found = self.value("colo") or self.places.get(cluster)
        return (found,) if found else ()

    def entity(self, kind: str, name: str) -> Entity:
        """Raises UnknownEntityError, QueryError, and as :meth:`perform`."""
        about = [("name", name), ("kind", kind)]
        found: Entity = self.perform(read_back(registry()["entity show"].load(), about))
        return found

    def ask(self, command: str, **fields: Any) -> Any:
        """Performs an operation with these fields."""
        return self.perform(registry()[command].load()(**fields))

    def why_not(self, what: str, entities: Sequence[Owned], role: Role) -> str:
        """Why the user may not do that to the entities; empty: they may."""
        try:
            require_change(self.who, what, entities, role)
        except DeniedError as error:
            return str(error)
        return ""

    def link(self, page: str, *pairs: tuple[str, Any], **parameters: Any) -> str:
        return self.root + page_path(page, (*pairs, *parameters.items()))

    def with_values(self, **changed: Any) -> str:
        """The link of this page with other values of these parameters."""
        kept = [(name, value) for name, value in self.query if name not in changed]
        return self.link(self.path, *kept, *changed.items())

    def instant(self, at: datetime | str | None) -> str:
        """To the minute, as the commands print it, or with the offset of the chosen zone."""
        if not at:
            return ""
        at = parse_instant(at) if isinstance(at, str) else at
        return format_instant(at) if self.zone is UTC else at.astimezone(self.zone).isoformat(timespec="minutes")

    def moment(self, at: datetime | str | None) -> str:
        """To the second; likewise."""
        if not at:
            return ""
        at = datetime.fromisoformat(at) if isinstance(at, str) else at
        said = at.astimezone(self.zone).isoformat(timespec="seconds")
        return said.removesuffix("+00:00") + "Z" if self.zone is UTC else said

    def page(self, template: str, *, http_status: int = 200, **values: Any) -> Response:
        values |= {"visit": self, "link": self.link, "instant": self.instant, "moment": self.moment}
        values |= {
            "read_only": "" if http_status >= HTTPStatus.INTERNAL_SERVER_ERROR else self.why_read_only(),
            "unanswered": self.installation.unanswered,
            "navigation": _NAVIGATION,
            "signs": _SIGNS,
            "token_field": FIELD,
            "static": f"{self.root}{PLACE}/static",
        }
        text = environment().get_template(template).render(**values)
        return HTMLResponse(text.encode(errors="replace"), http_status)

    def why_read_only(self) -> str:
        """Why nothing can be changed now, or no entities; empty: all can, or nobody knows."""
        with suppress(SettingsError, SQLAlchemyError):
            try:
                self.installation.require_writable()
            except ReadOnlyError as error:
                return str(error)
        return (None if self.prism else why_unwritable(self.installation.settings.entity_defs)) or ""

    def redirect(self, url: str) -> Response:
        return RedirectResponse(url, 303)


View = Callable[[PageVisit], Response]


@cache
def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["hidden"] = hidden
    return made


def zone_named(name: str) -> tzinfo:
    """UTC for unknown names."""
    try:
        return UTC if name in ("", "UTC") else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def as_data(result: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = result.as_data()
    return found
