"""What Dagster loads: the code location, with the assets, jobs, schedules and sensors of all features."""
