"""Engines of workflows, and Spark, which they compute on."""
