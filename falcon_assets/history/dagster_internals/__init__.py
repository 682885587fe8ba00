"""What Dagster does not promise and we cannot do without, each with its reason: what to check before an upgrade.

Every private import says beside it, or above, what it is for; tests/orchestration/dagster_internals says by name what a
new Dagster has changed. Other modules of the package touch nothing of it: a test sees to it.
"""
