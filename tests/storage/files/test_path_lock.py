from __future__ import annotations

import os
from pathlib import Path

from falcon_assets.storage.files.path_lock import path_lock
from tests.processes import forked


def test_one_holder_at_a_time_and_no_file_left(tmp_path: Path) -> None:
    file = tmp_path / "x.lock"
    with path_lock(file, 0) as first:
        assert first
        with path_lock(file, 0.1) as second:
            assert not second
        assert file.exists()
    assert not file.exists()
    with path_lock(file, 0) as third:
        assert third


def test_many_processes_never_hold_it_together(tmp_path: Path) -> None:
    counter, rounds, processes = tmp_path / "counter", 500, 4
    counter.write_text("0")

    def count() -> None:
        done = 0
        while done < rounds:
            with path_lock(tmp_path / "x.lock", 0) as held:  # no patience: as many collisions as possible
                if held:
                    counter.write_text(str(int(counter.read_text()) + 1))
                    done += 1

    children = [forked(count) for _ in range(processes)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * processes
    assert counter.read_text() == str(rounds * processes)
    assert list(tmp_path.iterdir()) == [counter]
