"""A PostgreSQL with a real standby: what can be read is read there, and once it is promoted the work goes on there."""

from __future__ import annotations

import os
import signal

import dagster as dg
import pytest
import yaml

from tests.postgres_server import ending, postgres_server
from tests.processes import environ_with, falcon_here
from tests.two_machines import STORAGE, Machine, two_machines

pytestmark = pytest.mark.soak


def test_it_is_read_and_takes_over_when_it_is_promoted(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("pg")
    with postgres_server(place / "primary") as primary, ending(primary.standby(place / "standby")) as standby:
        hosts = "".join(f"host=127.0.0.1:{one.port}&" for one in (primary, standby))
        both = f"postgresql+psycopg2://postgres@/postgres?{hosts}target_session_attrs=read-write"
        with two_machines(place, both) as pair:
            pair.active()
            folder = place / "reader"
            (folder / "entity_defs").mkdir(parents=True)
            for name in ("workspace.yaml", "dagster.yaml"):
                (folder / name).write_text((place / "one" / name).read_text())
            here = {"FALCON_HOME": str(folder / "home"), "DAGSTER_HOME": str(folder)}
            environ = environ_with(FALCON_DATABASE_URL=standby.url, **here)
            assert falcon_here(environ, "entity", "list").returncode == 0
            refused = falcon_here(environ, "admin", "token", "create", "ci", "--role", "viewer", "--expires", "days(1)")
            assert refused.returncode == 1
            assert "can only be read now, as a standby" in refused.stderr
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("FALCON_DATABASE_URL", standby.url)
                (folder / "dagster.yaml").write_text(yaml.safe_dump({"storage": STORAGE}))
                with dg.DagsterInstance.from_config(str(folder)) as instance:
                    assert instance.run_storage.get_run_storage_id(), "which Dagster's pages are made with"
            alone = Machine(folder, environ)
            pair.machines.append(alone)
            pair.wait(lambda: alone.says(r"daemon \| .* can only be read"))

            primary.kill()
            before = len(alone.lines())
            standby.sql("SELECT pg_promote(true)")
            keys = pair.active() and pair.keys()
            assert keys == list(range(1, len(keys) + 1)), "each number once"
            pair.wait(
                lambda: any("active daemon" in line or "is active now" in line for line in alone.lines()[before:])
            )
            killed = pair.active().daemon
            os.kill(killed, signal.SIGKILL)
            assert pair.active().daemon != killed
            keys = pair.keys()
            assert keys == list(range(1, len(keys) + 1)), "each number once"
