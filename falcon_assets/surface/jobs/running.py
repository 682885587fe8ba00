"""An operation in a Dagster run, which records its result or refusal."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

import dagster as dg

from falcon_assets.errors import FalconError
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.operations.job_powers import why_jobs_may_not
from falcon_assets.operations.ways import coming_by
from falcon_assets.settings import JobPower

PLACEHOLDER = ""
"""Shown in the launchpad where users must enter a value; every operation refuses it."""
RESULT = "result"
"""Key of the op's output metadata with the data of ``--json``."""


class Answer(Protocol):
    def as_data(self) -> dict[str, Any]: ...


def in_run(
    context: dg.OpExecutionContext, about: JobPower, principal: str | None, operate: Callable[[Installation], Answer]
) -> dg.Output[None]:
    """Performs the operation in the installation of the environment; logs the result, and adds it to the metadata.

    ``about`` is the required power of the job; ``principal`` the one in its config.

    Raises:
        dagster.Failure: the operation was refused; the text is that of the command.
    """
    try:
        with (
            open_installation(instance=context.instance) as installation,
            coming_by("job", why_jobs_may_not(installation.settings, about, principal)),
        ):
            data = operate(installation).as_data()
    except FalconError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from None
    context.log.info(json.dumps(data, indent=2))
    return dg.Output(None, metadata={RESULT: dg.MetadataValue.json(data)})
