"""The entities people declare and the small languages inside them: no I/O, no clock, no Dagster, no Spark."""
