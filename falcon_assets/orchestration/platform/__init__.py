"""Names that ``dagster.yaml`` had before."""
