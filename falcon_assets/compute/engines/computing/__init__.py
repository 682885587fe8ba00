"""Computation of an instance on Spark, for the engines."""
