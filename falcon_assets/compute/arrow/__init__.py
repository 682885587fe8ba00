"""Data as Arrow tables, in the process of a run: read and written without Spark."""
