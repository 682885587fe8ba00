"""What is installed here."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version

from sqlalchemy.exc import OperationalError

from falcon_assets.errors import SettingsError
from falcon_assets.ledger.database.upgrade import revision
from falcon_assets.operations.installation import Installation


@dataclass(frozen=True)
class Versions:
    """What is installed here.

    Attributes:
        falcon_assets: This package.
        dagster: Dagster.
        pyspark: PySpark.
        python: Python.
        ledger: The revision of the ledger's tables; None: the database cannot be reached.
    """

    falcon_assets: str
    dagster: str
    pyspark: str
    python: str
    ledger: str | None


def installed_versions(installation: Installation) -> Versions:
    """The versions of everything that matters; the ledger's tables are brought up to date."""
    try:
        with installation.database.connect() as connection:
            ledger = revision(connection)
    except (SettingsError, OperationalError):
        ledger = None
    packages = version("falcon-assets"), version("dagster"), version("pyspark")
    return Versions(*packages, platform.python_version(), ledger)
