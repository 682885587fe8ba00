"""The code location: load the entities, check them, build Dagster's definitions."""

from falcon_assets.garbage_collection import quick_imports

with quick_imports():
    from falcon_assets.catalog.store import load_entities
    from falcon_assets.orchestration.code_location import build_definitions
    from falcon_assets.settings import load_settings

    settings = load_settings()
    defs = build_definitions(load_entities(settings.entity_defs).in_colo(settings.colo), settings)
