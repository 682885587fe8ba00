"""Reads inputs and writes outputs with Spark."""
