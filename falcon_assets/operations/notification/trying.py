"""Tries whether the receivers of an entity can be told."""

from __future__ import annotations

from falcon_assets.errors import SettingsError, UnknownEntityError
from falcon_assets.model.expression import nearest
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.operations.auditing import require_readable
from falcon_assets.operations.installation import Installation
from falcon_assets.orchestration.notification.channel import send
from falcon_assets.planning.notification.words import Message


def try_receivers(installation: Installation, name: str) -> dict[str, str]:
    """Sends a message to each receiver of the feed or process of that name, from this process; nothing is recorded.

    Returns:
        Name of the environment variable with the URL -> why the receiver could not be told, "" where it was.

    Raises:
        UnknownEntityError: there is none of that name.
        SettingsError: nobody is told what becomes of its instances.
        DeniedError: the user of the operating system may not read it.
    """
    entity = _entity(installation, name)
    require_readable(installation, "notification test", [entity])
    settings = installation.settings
    notification = entity.notification or settings.notification
    if notification is None:
        raise SettingsError(
            f"nobody is told what becomes of {entity.kind} {name!r}: declare its notification, or set "
            "FALCON_NOTIFICATION_TO"
        )
    told = ", ".join(one.value for one in notification.on)
    said = f"This is a test. You are told of {entity.kind} {name}: {told}."
    message = Message("test", f"falcon: a test for {entity.kind} {name}", said)
    names = dict.fromkeys(receiver.url.env for receiver in notification.to)
    return {receiver: send(receiver, settings.environ, message) for receiver in names}


def _entity(installation: Installation, name: str) -> Feed | Process:
    entities = installation.entities
    found = entities.processes.get(name) or entities.feeds.get(name)
    if found is None:
        raise UnknownEntityError(
            f"there is no feed or process {name!r}{nearest(name, [*entities.feeds, *entities.processes])}"
        )
    return found
