"""Apache Falcon's clusters, feeds and processes as a Dagster code location."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dagster import Definitions

    from falcon_assets.component import FalconEntities as FalconEntities
    from falcon_assets.instances.assets import OpOptions as OpOptions
    from falcon_assets.surface.dagster.asset_options import AssetSource as AssetSource
    from falcon_assets.surface.dagster.asset_options import Translation


__all__ = ["AssetSource", "FalconEntities", "OpOptions", "build_definitions"]


def build_definitions(
    path: str | Path | None = None,
    *,
    translation: Translation | None = None,
    select: str = "*",
    exclude: str = "",
    op: OpOptions | None = None,
) -> Definitions:
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
        translation: Called with the ``dg.AssetSpec`` of each asset and its ``AssetSource`` (cluster, feed, process);
            returns the spec that Dagster shows. It may change everything but key, dependencies and partitions.
        select: The assets of this code location, in Dagster's syntax of asset selections. They are selected as they
            are shown. What is left out has no asset, and no job, sensor or schedule acts on it.
        exclude: Of these, the assets that are left out.
        op: Concurrency pool and tags of the ops of processes and replications.

    Raises:
        InvalidDefinitionsError: with all problems of all files, each with file and line.
        MissingDefinitionsError: ``path`` is no folder, or there is no entity in it.
        SettingsError: a setting is malformed.
        UnknownEntityError: no cluster is of FALCON_COLO.
        UsageError: ``translation``, ``select`` or ``exclude`` do what they cannot.
    """
    from dagster import Definitions

    from falcon_assets.catalog.store import load_entities
    from falcon_assets.instances.assets import OpOptions
    from falcon_assets.settings import load_settings
    from falcon_assets.surface.dagster.asset_options import AssetOptions
    from falcon_assets.surface.dagster.code_location import definitions_of
    from falcon_assets.surface.jobs.operation_jobs import falcon_entity_operation, falcon_instance_operation

    settings = load_settings()
    root = settings.entity_defs if path is None else Path(path).expanduser().absolute()
    options = AssetOptions(translation, select, exclude, op or OpOptions())
    built = definitions_of(load_entities(root, home=settings.home).in_colo(settings.colo), settings, options=options)
    if root.resolve() != settings.entity_defs.resolve():
        return built
    return Definitions.merge(built, Definitions(jobs=[falcon_entity_operation, falcon_instance_operation]))


def __getattr__(name: str) -> Any:
    """Imports what needs Dagster when it is asked for."""
    if name in __all__:
        from falcon_assets import component

        return getattr(component, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]  # where `dg` looks for components
