"""Schemas of feeds are Spark's DDL."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.declared import Definitions
from falcon_assets.errors import Problem
from falcon_assets.model.spark_schema import schema_mistake


def check_schemas(definitions: Definitions) -> Iterator[Problem]:
    """Schemas that Spark will not read; for who asks, as Spark may learn more types than are known here."""
    for feed in definitions.feeds.values():
        if feed.entity.schema_ is not None and (mistake := schema_mistake(feed.entity.schema_)):
            yield feed.document.problem(("schema",), f"no schema of Spark: {mistake}")
