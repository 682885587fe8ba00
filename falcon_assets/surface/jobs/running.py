"""An operation in a run: what comes of it, or why it was refused, stands in the run."""

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
"""What the launchpad shows where somebody has to write something; every operation refuses it."""
RESULT = "result"
"""The metadata of the op's output that holds what ``--json`` prints."""


class Answer(Protocol):
    """What comes of an operation."""

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""


def in_run(
    context: dg.OpExecutionContext, about: JobPower, principal: str | None, operate: Callable[[Installation], Answer]
) -> dg.Output[None]:
    """Does the operation in the installation of the environment; what comes of it is logged and in the metadata.

    Args:
        context: Of the op.
        about: What the job must be allowed to change.
        principal: Who asks, as the config says.
        operate: The operation.

    Raises:
        dagster.Failure: the operation was refused; the text is what the command says.
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
