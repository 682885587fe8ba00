"""Operations on datasources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from falcon_assets.features.datasources.access import access_to
from falcon_assets.features.datasources.datasource_type import Dataset, datasource_types
from falcon_assets.model.access import Role
from falcon_assets.operations.audit import require_readable
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Given, Operation, Result


@dataclass(frozen=True)
class DatasourceContents(Result):
    """What was found in a datasource; ``interfaces`` are those that were reached: ``readonly`` and ``write``."""

    name: str
    type: str
    interfaces: tuple[str, ...]
    tables: tuple[Dataset, ...]

    def as_data(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "interfaces": [*self.interfaces],
            "tables": [
                {"name": table.name, "columns": [column._asdict() for column in table.columns]} for table in self.tables
            ],
        }


class ReachDatasource(Operation):
    """Reach the datasource NAME, and list its tables with their columns and types.

    Logs in by each of its interfaces; nothing is written. Tables are shown with the types of the datasource, and with
    those that an import gives them in a feed.
    """

    command = "datasource test"
    role = Role.EDITOR
    name: Annotated[str, Given("NAME")]
    table: str | None = Field(None, description="Only this table, resource, folder or topic.")

    def run(self, installation: Installation) -> DatasourceContents:
        """Raises DatasourceError where it cannot be reached, refuses the login, or has no such table."""
        datasource, environ = installation.all_entities.datasource(self.name), installation.settings.environ
        require_readable(installation, "test", [datasource])
        known, declared = datasource_types()[datasource.type], datasource.interfaces
        reached = [name for name in ("readonly", "write") if getattr(declared, name) is not None]
        for name in reached:
            known.require_reachable(access_to(datasource, environ, write=name == "write"))
        found = known.datasets(access_to(datasource, environ, write=False), self.table)
        return DatasourceContents(datasource.name, datasource.type, tuple(reached), tuple(found))
