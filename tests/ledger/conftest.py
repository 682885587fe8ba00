"""The ledger of an empty database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from falcon_assets.history.database import upgrade
from tests.ledger.histories import empty, ledger_engine


@pytest.fixture(scope="module")
def ledger(database: str) -> Iterator[Engine]:
    """The engine of the module's database, with the tables of the ledger."""
    engine = ledger_engine(database)
    upgrade(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def engine(ledger: Engine) -> Engine:
    """The same; its tables are empty."""
    empty(ledger)
    return ledger
