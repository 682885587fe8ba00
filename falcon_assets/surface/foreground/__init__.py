"""``falcon run``: collectors and coordinators in the foreground, without Dagster's daemon."""
