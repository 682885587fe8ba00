"""A Hive Metastore to try tables with."""
