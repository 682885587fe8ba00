"""Publishers on HDFS are killed sixty times, at any request; a plain client finds no part and no mixture."""

from __future__ import annotations

import json
import os
import signal
import uuid
from collections import Counter
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import requests

from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.output_target import KeptAs, OutputTarget
from tests.builders import make_cluster
from tests.hdfs_server import Hdfs, on_hdfs
from tests.processes import forked
from tests.storage.kinds.samples import FIRST

pytestmark = pytest.mark.soak
KILLS = 60
PATH = "/delays/2013/01/01"


def target(keeps: datetime | None) -> OutputTarget:
    return OutputTarget(PATH, "_SUCCESS", "0750", keeps=KeptAs("delays", keeps) if keeps else None)


def publish(store: ClusterStore, generation: int, keeps: datetime | None) -> None:
    total = 2 + generation % 2
    with kind_of(store).publish(f"generation {generation}", {"out": target(keeps)}) as publication:
        for number in range(total):
            said = json.dumps({"generation": generation, "files": total})
            place = f"{publication.staging('out')}/carrier={number % 2}/part-{number}-{uuid.uuid4()}.json"
            store.fs.pipe_file(place, said.encode())
        publication.commit("out")


def requests_of(store: ClusterStore, generation: int, keeps: datetime | None) -> int:
    """Publishes, and says how many requests it takes."""
    request, numbers = store.fs.session.request, count(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.fs.session, "request", lambda *args, **asked: next(numbers) and request(*args, **asked))
        publish(store, generation, keeps)
    return next(numbers) - 1


def die(store: ClusterStore, generation: int, step: int, keeps: datetime | None) -> None:
    """Publishes in a process that is killed at that request: just before every other one, and just after the rest."""

    def dying() -> None:
        numbers, request = count(1), store.fs.session.request

        def asking(*args: Any, **asked: Any) -> requests.Response:
            is_last = next(numbers) == step
            if is_last and step % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            answer: requests.Response = request(*args, **asked)
            if is_last:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        store.fs.session.request = asking
        publish(store, generation, keeps)

    assert os.waitpid(forked(dying), 0)[1] == signal.SIGKILL


def seen(hdfs: Hdfs, root: str) -> int | None:
    """The generation that a plain client of WebHDFS finds; fails where there is a part or a mixture."""
    top = hdfs.ask("LISTSTATUS", f"/{root}{PATH}")
    if top.status_code == requests.codes.not_found:
        return None
    names = {one["pathSuffix"] for one in top.json()["FileStatuses"]["FileStatus"]}
    assert names == {"carrier=0", "carrier=1", "_SUCCESS"}
    records = []
    for folder in ("carrier=0", "carrier=1"):
        for one in hdfs.ask("LISTSTATUS", f"/{root}{PATH}/{folder}").json()["FileStatuses"]["FileStatus"]:
            records.append(hdfs.ask("OPEN", f"/{root}{PATH}/{folder}/{one['pathSuffix']}").json())
    assert records == [records[0]] * records[0]["files"]
    return int(records[0]["generation"])


@pytest.mark.parametrize("keeps", [None, FIRST], ids=["replaced", "kept"])
def test_sixty_kills_leave_nothing_wrong(hdfs: Hdfs, tmp_path: Path, keeps: datetime | None) -> None:
    root = uuid.uuid4().hex
    store = ClusterStore(make_cluster(**on_hdfs(hdfs, root=root)), tmp_path, {})
    publish(store, 0, keeps)
    publish(store, 1, keeps)  # with which the folder for what is replaced is there
    steps = requests_of(store, 2, keeps)  # of two files: one of three takes more
    found: Counter[str] = Counter()
    present: int | None = 2
    for number in range(KILLS // 2):
        generation = number + 3
        die(store, generation, 1 + number * steps * 2 // KILLS, keeps)
        now = seen(hdfs, root)
        assert now in (None, present, generation)
        found["none" if now is None else "old" if now == present else "new"] += 1
        # Whoever comes next finds the old one again, or the new one, before it writes anything.
        with kind_of(store).publish("next", {"out": target(keeps)}):
            before, present = present, seen(hdfs, root)
        assert present == (before if now is None else now)
    print(steps, "requests", found)  # noqa: T201 - said on failure
    assert found["old"] and found["new"]
    left = [
        one["pathSuffix"]
        for one in hdfs.ask("LISTSTATUS", f"/{root}/.falcon/staging").json()["FileStatuses"]["FileStatus"]
    ]
    assert {*left} <= {"replaced", "versions"}
    if keeps:
        kept = kind_of(store).kept_versions("delays")
        assert kept and all(kind_of(store).version(one.path, "_SUCCESS").version == one.version for one in kept)
