"""Who uses the embedded PostgreSQL is known whatever happens to whom; only the last one out stops it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from falcon_assets.base.file_locks import locked
from falcon_assets.history.platform.server_users import ServerUsers
from tests.orchestration.platform.comers_and_goers import Crowd, keeper, servers_of, shutdowns
from tests.processes import forked, killed_before
from tests.waiting import wait_until

STEPS = ("open", "os.mkdir", "os.remove", "os.chmod", "os.scandir", "fcntl.flock")
SECONDS = float(os.environ.get("SERVER_USERS_SECONDS", "60"))
"""How long they come and go; an hour of it is ``SERVER_USERS_SECONDS=3600``."""
SEED = int(os.environ.get("SIMULATION_SEED", "28"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "postgres.users"


@pytest.fixture
def users(folder: Path) -> Iterator[ServerUsers]:
    """Of this process, which is one of them."""
    found = ServerUsers(folder)
    found.join()
    yield found
    found.leave()


def come_and_go(folder: Path) -> bool:
    """What a process does: whether it was the last."""
    mine = ServerUsers(folder)
    folder.mkdir(exist_ok=True)
    with locked(folder / "lock", 10, "starts"):
        mine.join()
    with locked(folder / "lock", 10, "stops"):
        return mine.leave()


def status_of(work: Callable[[], object]) -> int:
    return os.waitpid(forked(work), 0)[1]


def test_the_last_one_out_knows_it(folder: Path) -> None:
    first, second = ServerUsers(folder), ServerUsers(folder)
    first.join()
    second.join()
    assert not first.leave()
    assert second.leave()
    assert not second.leave(), "nobody stops twice"
    assert list(folder.iterdir()) == []


def test_whoever_is_killed_at_any_step_makes_nobody_unknown_and_is_forgotten(folder: Path, users: ServerUsers) -> None:
    step = 1
    while killed_before(step, STEPS, lambda: come_and_go(folder)):
        assert not come_and_go(folder), (
            f"somebody was killed before step {step}: the next one takes itself for the last"
        )
        step += 1
    assert step > 8
    assert users.leave()
    assert [file.name for file in folder.iterdir()] == ["lock"]


def test_who_is_there_already_is_one(folder: Path, users: ServerUsers) -> None:
    users.join()
    assert len(list(folder.iterdir())) == 1
    assert users.leave()


def test_who_lost_its_file_makes_another(folder: Path, users: ServerUsers) -> None:
    """Whoever starts a server again that was killed with all that lay beside it."""
    shutil.rmtree(folder)
    users.join()
    assert not come_and_go(folder)
    assert users.leave()


def test_a_number_that_is_used_again_is_another_process(folder: Path, users: ServerUsers) -> None:
    left = ServerUsers(folder)
    os.waitpid(forked(lambda: (left.join(), os.kill(os.getpid(), signal.SIGKILL))), 0)
    (file,) = [file for file in folder.iterdir() if not file.name.startswith(f"{os.getpid()}-")]
    file.rename(folder / f"{os.getppid()}-of-a-process-that-lives.user")
    assert users.leave()


def test_a_forked_child_counts_as_long_as_it_lives(folder: Path) -> None:
    parent = ServerUsers(folder)
    parent.join()
    reading, writing = os.pipe()
    child = forked(lambda: os.read(reading, 1))
    assert not parent.leave(), "the child uses it"
    os.write(writing, b"x")
    os.waitpid(child, 0)
    assert come_and_go(folder)


def test_a_child_that_goes_leaves_its_parent_there(folder: Path, users: ServerUsers) -> None:
    assert status_of(lambda: [] if not users.leave() else 1 / 0) == 0
    assert not come_and_go(folder)
    assert users.leave()


def test_nobody_else_can_lock_them(folder: Path, users: ServerUsers) -> None:
    modes = {stat.S_IMODE(found.stat().st_mode) for found in folder.iterdir()}
    assert (stat.S_IMODE(folder.stat().st_mode), modes) == (0o700, {0o600})


def test_what_cannot_be_looked_at_may_be_somebodys(folder: Path, users: ServerUsers) -> None:
    (folder / "odd.user").symlink_to("elsewhere")
    assert not users.leave()


@pytest.mark.soak
def test_it_is_never_stopped_while_one_process_lives_and_never_left(tmp_path: Path) -> None:
    """Twenty at once come, go and are killed at any moment of it, and so is the server, which they start again."""
    tmp_path.chmod(0o755)
    with keeper(tmp_path):
        crowd = Crowd(tmp_path, 20, SECONDS, random.Random(SEED), server_lives=10)
        crowd.play()
        assert (shutdowns(tmp_path), crowd.failures) == (0, [])
        assert crowd.ended["killed servers"] > 0
        assert min(crowd.ended[way] for way in ("goes", "SIGTERM", "SIGKILL")) > 1
    assert shutdowns(tmp_path) == 1
    wait_until(lambda: not servers_of(tmp_path), 30, "the end of the server")
