"""Notifications of events of instances: which events, and who receives them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from falcon_assets.model.base import Declaration
from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.reference import EncryptedValue, EnvironmentValue, FileValue

USUAL = (
    *(EventKind.FAILED, EventKind.TIMED_OUT, EventKind.SLA),
    *(EventKind.EXECUTOR_OFFLINE, EventKind.EXECUTOR_ONLINE),
)
"""Events of notifications that name none."""


class UrlVariable(EnvironmentValue):
    """A variable that holds a URL, by its name, which is no secret."""

    env: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
    """Name of the environment variable."""


class Receiver(Declaration):
    """A receiver of notifications."""

    url: UrlVariable | FileValue | EncryptedValue
    """``{env: NAME}``, ``{file: PATH}`` or ``{encrypted: ...}``: a URL of apprise (``mailtos://...``, ``slack://...``,
    ``jsons://...``); it is read when something is sent, and shown nowhere."""


class Notification(Declaration):
    """The events of instances and executors that are sent, and their receivers."""

    on: Annotated[tuple[EventKind, ...], Field(min_length=1)] = USUAL
    """``FAILED`` and ``TIMED_OUT`` (for good: no retry follows), ``SLA`` (breached, and met after all), ``LATE`` (run
    again for late data), ``EVICTED``, ``SUCCEEDED``, ``KILLED`` (somebody stopped it), ``RESTORED`` (somebody brought a
    version back), of clusters ``EXECUTOR_OFFLINE`` and ``EXECUTOR_ONLINE``, or any other
    [transition](cloudevents.md#transitions)."""
    to: Annotated[tuple[Receiver, ...], Field(min_length=1)]
    """The receivers, one at least."""
