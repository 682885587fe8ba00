"""The code location of the entities in FALCON_ENTITY_DEFS, as ``falcon_assets.definitions`` builds it."""

from __future__ import annotations

import dagster as dg

from falcon_assets.catalog.store import load_entities
from falcon_assets.orchestration.code_location import build_definitions
from falcon_assets.settings import load_settings


def definitions() -> dg.Definitions:
    """Everything that happens when Dagster imports the code location."""
    settings = load_settings()
    return build_definitions(load_entities(settings.entity_defs).in_colo(settings.colo), settings)
