"""Names that ``dagster.yaml`` had for what :mod:`falcon_assets.dagster_instance` has: existing files go on."""
