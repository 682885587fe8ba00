"""The code location that Dagster loads, with the assets, jobs, schedules and sensors of all features."""
