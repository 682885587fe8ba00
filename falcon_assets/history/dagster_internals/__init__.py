"""Dagster's private API, as far as it cannot be avoided: to be checked before an upgrade.

Each private import has its reason beside or above it; tests/orchestration/dagster_internals names what a new Dagster
has changed. No other module of the package uses private API: a test checks this.
"""
