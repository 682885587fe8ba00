"""Names, keys, tags and partitions of Dagster for entities and instances of ours."""
