"""Operations as Dagster jobs, for the UI's launchpad and GraphQL."""
