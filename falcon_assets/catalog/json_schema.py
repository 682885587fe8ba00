"""The definitions' JSON Schema, made from the models: what editors complete and check."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from falcon_assets.model.cluster import Cluster
from falcon_assets.model.entity import KINDS
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def entity_schema(kind: str | None = None) -> dict[str, Any]:
    """Returns the JSON Schema (draft 2020-12) of one document; None: of any kind, discriminated by ``kind``."""
    if kind is not None:
        schema = TypeAdapter(KINDS[kind]).json_schema()
    else:
        any_entity: TypeAdapter[Any] = TypeAdapter(Annotated[Cluster | Feed | Process, Field(discriminator="kind")])
        schema = any_entity.json_schema()
    title = f"Definition of a {kind}" if kind else "Definition of a cluster, a feed or a process"
    described: dict[str, Any] = _markdown({**schema, "title": title})
    return {"$schema": DIALECT, **described}


def _markdown(value: Any) -> Any:
    """Replaces the double backquotes of docstrings in descriptions by Markdown's."""
    if isinstance(value, dict):
        return {
            key: item.replace("``", "`") if key == "description" and isinstance(item, str) else _markdown(item)
            for key, item in value.items()
        }
    return [_markdown(item) for item in value] if isinstance(value, list) else value
