"""Counts what is passed through: ``python -m benchmarks.frames_loop`` prints files, folders and functions of each act.

With an argument, an act of :data:`benchmarks.frames.BARS`, it prints them all.
"""

from __future__ import annotations

import inspect
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import falcon_assets
from falcon_assets.catalog.store import load_entities
from falcon_assets.features.landing.collector import Collector
from falcon_assets.features.retention.passes import RetentionPass
from falcon_assets.features.retention.sensors import retention_job
from falcon_assets.history.platform.open_instance import open_instance
from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.instances.runs.run_definitions import DefinitionRecording
from falcon_assets.model.frequency import Frequency
from falcon_assets.settings import load_settings
from falcon_assets.surface.cli.main import falcon

QUIET = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}
_ROOT = f"{Path(falcon_assets.__file__).parent}/"
_ONE = ["work", "--start", "2013-01-01T05:00Z"]


class Frames:
    """Functions with a name that were called: no bodies of modules and classes, no comprehensions and lambdas."""

    def __init__(self) -> None:
        self._seen: set[CodeType] = set()

    @contextmanager
    def counting(self) -> Iterator[None]:
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]  # which typeshed does not allow

    def _note(self, frame: FrameType, event: str, _arg: Any) -> None:
        if event == "call":
            self._seen.add(frame.f_code)

    @property
    def functions(self) -> list[str]:
        own = (one for one in self._seen if one.co_filename.startswith(_ROOT) and one.co_flags & inspect.CO_OPTIMIZED)
        named = (one for one in own if not one.co_name.startswith("<"))
        return sorted(f"{one.co_filename.removeprefix(_ROOT)}:{one.co_qualname}" for one in named)

    @property
    def counts(self) -> tuple[int, int, int]:
        files = {one.partition(":")[0] for one in self.functions}
        return len(files), len({Path(one).parent for one in files}), len(self.functions)


def main() -> None:
    settings = load_settings()
    store = load_entities(settings.entity_defs)
    (cluster,) = store.clusters.values()
    frames = {act: Frames() for act in ("instance rerun", "eviction", "landing pass")}
    with open_instance(settings) as instance:
        ledger = open_ledger(settings, instance)
        DefinitionRecording(settings.entity_defs, settings).record(ledger)  # as whatever loads them does
        with frames["landing pass"].counting():
            assert Collector(store, cluster, settings).collect(ledger, budget_seconds=60).recorded
        ledger.catch_up()
    command("instance", "kill", *_ONE)
    with frames["instance rerun"].counting():
        command("instance", "rerun", *_ONE)
    with open_instance(settings) as instance:
        passes = RetentionPass(store, cluster, list(store.feeds.values()), settings, patience=0)
        job = retention_job(passes, Frequency.parse("hours(24)"))
        with frames["eviction"].counting():
            assert job.execute_in_process(instance=instance, run_config=QUIET).success
    assert not (settings.home / "data/unread/2013-01-01-00").exists()
    if sys.argv[1:]:
        print("\n".join(frames[sys.argv[1]].functions))
    print(json.dumps({act: one.counts for act, one in frames.items()}))


def command(*words: str) -> None:
    falcon.main(words, standalone_mode=False)


if __name__ == "__main__":
    main()
