"""The code location: the definitions of FALCON_ENTITY_DEFS, and nothing else."""

from falcon_assets.base.garbage_collection import imports_without_gc

with imports_without_gc():
    import dagster as dg

    from falcon_assets import build_definitions
    from falcon_assets.surface.dagster.job_location import definitions_of_this_run

    # What is materialized from Dagster's UI runs in one process, too: all its steps share one Spark session.
    defs = dg.Definitions.merge(
        definitions_of_this_run() or build_definitions(), dg.Definitions(executor=dg.in_process_executor)
    )
