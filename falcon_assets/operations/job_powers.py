"""Permissions of jobs, which everybody who reaches Dagster's webserver may launch."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from falcon_assets.history.platform.postgres import SERVER_USER
from falcon_assets.settings import JobPower, Settings

_FIRST_PERSON = 1000
_NOBODY = 65534
_NO_SHELLS = ("", "nologin", "false", "sync")


def other_users() -> list[str]:
    """Users besides root and the present one who can log in here, unless their directory does not list its users."""
    return sorted(
        {
            one.pw_name
            for one in pwd.getpwall()
            if _FIRST_PERSON <= one.pw_uid < _NOBODY
            and one.pw_uid != os.geteuid()
            and one.pw_name != SERVER_USER
            and Path(one.pw_shell).name not in _NO_SHELLS
        }
    )


def why_jobs_may_not(settings: Settings, about: JobPower, principal: str | None = None) -> str | None:
    """Why a job may not do that; None: it may, by default where no other user can log in here, without principals."""
    allowed = settings.jobs
    if allowed is None:
        if others := other_users():
            return (
                f"jobs may not change {about} here: {others[0]!r} and whoever else can log in on this machine reaches "
                "Dagster's webserver, which does not authenticate its users; use the falcon command, or set "
                f"FALCON_JOBS={about} where the webserver lets in only those who may"
            )
        allowed = frozenset({"entities", "instances"})
    if about not in allowed:
        return f"FALCON_JOBS does not let jobs change {about}: use the falcon command, or add {about} to it"
    if principal not in (None, "", settings.user) and "principals" not in allowed:
        return (
            f"a job may not act for {principal!r}: leave the principal out, or add principals to FALCON_JOBS where "
            "only a front end that knows its users reaches Dagster's webserver"
        )
    return None
