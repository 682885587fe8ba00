"""Our partition mapping, for the input windows that none of Dagster's says exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import Self

from pydantic import TypeAdapter

from falcon_assets.orchestration.dagster_internals.partition_mapping import KeyMapping, known_to_daemon_and_ui
from falcon_assets.orchestration.mapping.partitions import instant_of_key, key_of
from falcon_assets.planning.instances.input_partitions import InputWindow
from falcon_assets.planning.time.timeline import Timeline

_ADAPTER = TypeAdapter(InputWindow)


@known_to_daemon_and_ui
class InputWindowMapping(KeyMapping):
    """An :class:`InputWindow`, resolved instance by instance.

    The daemon and the UI know the class because ``dagster.yaml`` makes them load
    :mod:`falcon_assets.orchestration.platform.instance_storage`.
    """

    @classmethod
    def of(cls, window: InputWindow) -> Self:
        """The mapping of that window, kept as JSON."""
        return cls.of_text(_ADAPTER.dump_json(window).decode())

    @property
    def window(self) -> InputWindow:
        """The window that it maps."""
        return _window(self.text)

    @property
    def description(self) -> str:
        """Shown in the UI."""
        declared = self.window.declared
        return f"Feed instances from {declared.start} to {declared.end}."

    def upstream_keys(self, keys: Iterable[str]) -> Iterable[str]:
        """The partitions of the input's asset that the given partitions read."""
        return _related(self.window.upstream.partitions, keys, self.window.read_by)

    def downstream_keys(self, keys: Iterable[str]) -> Iterable[str]:
        """The partitions that read one of the given partitions of the input's asset."""
        return _related(self.window.downstream.timeline, keys, self.window.readers_of)


@lru_cache(maxsize=1024)
def _window(text: str) -> InputWindow:
    return _ADAPTER.validate_json(text)


def _related(
    timeline: Timeline, keys: Iterable[str], related: Callable[[datetime], Iterable[datetime]]
) -> Iterator[str]:
    """The existing partitions of ``timeline`` that are ``related`` to one of ``keys``."""
    instants = (instant for key in keys if (instant := instant_of_key(key)) is not None)
    found = {other for instant in instants for other in related(instant) if timeline.contains(other)}
    return (key_of(timeline, instant) for instant in sorted(found))
