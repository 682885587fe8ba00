from __future__ import annotations

import pytest

from falcon_assets.entities.status import Command, Status, transition
from falcon_assets.errors import EntityStatusError

LEGAL = {
    (Status.SUBMITTED, Command.SCHEDULE): Status.RUNNING,
    (Status.RUNNING, Command.SCHEDULE): Status.RUNNING,
    (Status.RUNNING, Command.SUSPEND): Status.SUSPENDED,
    (Status.SUSPENDED, Command.SUSPEND): Status.SUSPENDED,
    (Status.SUSPENDED, Command.RESUME): Status.RUNNING,
    (Status.RUNNING, Command.RESUME): Status.RUNNING,
}
ALL = [(status, command) for status in Status for command in Command]


@pytest.mark.parametrize(("status", "command"), ALL, ids=[f"{one.value} {two.value}" for one, two in ALL])
def test_transitions_are_those_of_falcon(status: Status, command: Command) -> None:
    if (status, command) in LEGAL:
        assert transition(status, command) is LEGAL[status, command]
    else:
        with pytest.raises(EntityStatusError, match=f"^what is {status.value} cannot be "):
            transition(status, command)
