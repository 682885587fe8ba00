"""Records requested operations with their results, for commands, the API and jobs alike."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from falcon_assets.errors import DeniedError, FalconError, InvalidDefinitionsError, SettingsError
from falcon_assets.model.access import Principal
from falcon_assets.model.entity import Key
from falcon_assets.operations.acting import Owned, acting, require_read
from falcon_assets.operations.audit import AuditEntry, Outcome, write_audit
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Change
from falcon_assets.operations.request_origin import present_origin, present_refusal

_LONGEST = 500
_LOG = logging.getLogger(__name__)


class AuditedRequest(Protocol):
    @property
    def actor(self) -> str | None: ...

    @property
    def reason(self) -> str: ...

    @property
    def dry_run(self) -> bool:
        """Dry runs are recorded only where they are denied."""


@dataclass
class Audit:
    """An operation in progress; ``instances`` are nominal times, oldest first, None: it is about entities."""

    installation: Installation
    operation: str
    request: AuditedRequest
    principal: Principal
    entities: Sequence[Key] = ()
    instances: Sequence[datetime] | None = None

    def about(self, entities: Iterable[Key], instances: Iterable[datetime] | None = None) -> None:
        self.entities = list(dict.fromkeys(entities))
        self.instances = None if instances is None else sorted(instances)

    def result(self, changed: bool, connection: Connection | None = None) -> None:
        """Records success in the transaction of ``connection``; None: the change is not in the database."""
        self._write("done" if changed else "unchanged", "", connection)

    def refused(self, result: Outcome, message: str) -> None:
        self._write(result, message, None)

    def _write(self, result: Outcome, message: str, connection: Connection | None) -> None:
        if self.request.dry_run and result != "denied":
            return
        settings, instances = self.installation.settings, self.instances
        entry = AuditEntry(
            at=settings.now(),
            recorded=datetime.now(UTC),
            principal=self.principal.name,
            os_user=settings.user,
            way=present_origin(),
            operation=self.operation,
            entities=self.entities,
            instances=None if instances is None else len(instances),
            first=instances[0] if instances else None,
            last=instances[-1] if instances else None,
            reason=self.request.reason,
            result=result,
            message=message[:_LONGEST],
        )
        if connection is not None:
            write_audit(connection, entry)
            return
        try:
            with self.installation.database.begin() as own:
                write_audit(own, entry)
        except (SettingsError, OperationalError):
            _LOG.warning("The database cannot be reached: this %s is not audited.", self.operation)


class PlainRequest(Change):
    """A request of the user of the operating system, without a reason."""


@contextmanager
def audited(installation: Installation, operation: str, request: AuditedRequest) -> Iterator[Audit]:
    """Records errors on exit, results by :meth:`Audit.result`, which the body must call; raises DeniedError."""
    settings = installation.settings
    audit = Audit(installation, operation, request, Principal(settings.user))
    try:
        if (refusal := present_refusal()) is not None:
            raise DeniedError(refusal)
        audit.principal = acting(settings, request.actor)
        yield audit
    except DeniedError as error:
        audit.refused("denied", str(error))
        raise
    except BaseException as error:
        audit.refused("failed", _message(error))
        raise


def require_readable(installation: Installation, operation: str, entities: Iterable[Owned]) -> None:
    """Raises DeniedError, which is recorded, naming entities that only others may read."""
    found = list(entities)
    with audited(installation, operation, PlainRequest()) as audit:
        audit.about((one.kind, one.name) for one in found)
        require_read(audit.principal, found)


def _message(error: BaseException) -> str:
    """Leaves out lines of definitions."""
    if isinstance(error, InvalidDefinitionsError):
        return "; ".join(map(str, error.problems))
    return str(error) if isinstance(error, FalconError) else type(error).__name__
