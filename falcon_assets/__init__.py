"""Apache Falcon's clusters, feeds and processes as a Dagster code location."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dagster import Definitions

    from falcon_assets.component import FalconEntities as FalconEntities


__all__ = ["FalconEntities", "build_definitions"]


def build_definitions(path: str | Path | None = None) -> Definitions:
    """Loads and checks a folder of entities, and builds Dagster's definitions of them for a code location of your own.

    Merge them with yours::

        defs = dg.Definitions.merge(
            dg.Definitions(assets=[...], resources={...}),
            falcon_assets.build_definitions(Path(__file__).parent / "entities"),
        )

    They bring assets ``[cluster, feed]``, jobs, schedules and sensors whose names begin with that of a cluster or a
    pipeline, and a resource ``spark__<cluster>`` for each cluster: what has the same key or name on both sides is an
    error of Dagster. Where the folder is that of FALCON_ENTITY_DEFS, on which commands work, the jobs
    ``falcon_entity_operation`` and ``falcon_instance_operation`` come along, which do what commands do. They bring
    neither an executor nor loggers: their jobs execute in one process each, everything else as you say. History must
    be on PostgreSQL, see ``storage`` in ``dagster.yaml``.

    Args:
        path: The folder, with any number of YAML files at any depth; omitted: FALCON_ENTITY_DEFS. The other settings
            come from the environment.

    Raises:
        InvalidDefinitionsError: with all problems of all files, each with file and line.
        MissingDefinitionsError: ``path`` is no folder, or there is no entity in it.
        SettingsError: a setting is malformed.
        UnknownEntityError: no cluster is of FALCON_COLO.
    """
    from dagster import Definitions

    from falcon_assets.catalog.store import load_entities
    from falcon_assets.settings import load_settings
    from falcon_assets.surface.dagster.code_location import definitions_of
    from falcon_assets.surface.jobs.operation_jobs import falcon_entity_operation, falcon_instance_operation

    settings = load_settings()
    root = settings.entity_defs if path is None else Path(path).expanduser().absolute()
    built = definitions_of(load_entities(root, home=settings.home).in_colo(settings.colo), settings)
    if root.resolve() != settings.entity_defs.resolve():
        return built
    return Definitions.merge(built, Definitions(jobs=[falcon_entity_operation, falcon_instance_operation]))


def __getattr__(name: str) -> Any:
    """The component, imported when it is asked for: it needs Dagster."""
    if name == "FalconEntities":
        from falcon_assets.component import FalconEntities

        return FalconEntities
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]  # where `dg` looks for components
