"""Problems over HTTP, as RFC 9457 has them: what is refused is a sentence with a status, never a traceback."""

from __future__ import annotations

import json
import logging
import re
import uuid
from http import HTTPStatus
from typing import Any

from sqlalchemy.exc import OperationalError
from starlette.responses import Response

from falcon_assets import errors
from falcon_assets.errors import FalconError, InvalidDefinitionsError, printable
from falcon_assets.features.colos.asking import ColoAwayError, UnansweredError
from falcon_assets.features.colos.changing import RefusedByColosError
from falcon_assets.operations.operation import data_of
from falcon_assets.surface.rest.idempotency import OtherRequestError
from falcon_assets.surface.rest.requests import MediaTypeError, TooLargeError
from falcon_assets.surface.served import BusyError, TimedOutError

MEDIA_TYPE = "application/problem+json"
STATUSES: dict[type[FalconError], int] = {
    errors.DeniedError: 403,
    errors.UnknownEntityError: 404,
    errors.UnknownInstanceError: 404,
    errors.UsageError: 400,
    errors.QueryError: 400,
    errors.ExpressionError: 400,
    errors.InvalidDefinitionsError: 422,
    errors.MissingDefinitionsError: 409,
    errors.DefinitionStoreError: 409,
    errors.UnwritableDefinitionsError: 503,
    errors.EntityInUseError: 409,
    errors.EntityStatusError: 409,
    errors.MissingInputsError: 409,
    errors.OldDefinitionError: 409,
    errors.HeldOutputError: 409,
    errors.LockedError: 409,
    errors.BeingWrittenError: 409,
    errors.WorkflowError: 409,
    errors.NotSetError: 409,
    errors.SecretError: 409,
    errors.SettingsError: 503,
    errors.ReadOnlyError: 503,
    errors.StorageError: 503,
    errors.DatasourceError: 503,
    TooLargeError: 413,
    MediaTypeError: 415,
    OtherRequestError: 422,
    ColoAwayError: 503,
    UnansweredError: 504,
    BusyError: 503,
    TimedOutError: 504,
    FalconError: 409,
}
"""The status of each kind of error; the nearest class counts. 409: it does not fit what there is now."""
_LOG = logging.getLogger(__name__)
_WORDS = re.compile(r"(?<!^)(?=[A-Z])")
_AGAIN = {"Retry-After": "5"}


def status_of(error: FalconError) -> int:
    if isinstance(error, errors.RefusedElsewhereError) and error.status:
        return error.status
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def type_of(error: FalconError) -> str:
    """The kind of a problem as a URI: ``urn:falcon:unknown-entity``."""
    if isinstance(error, errors.RefusedElsewhereError) and error.kind:
        return error.kind
    name = type(error).__name__.removesuffix("Error")
    return f"urn:falcon:{_WORDS.sub('-', name).lower()}"


def problem(error: FalconError) -> Response:
    """The answer to a request that was refused."""
    more: dict[str, Any] = {}
    if isinstance(error, InvalidDefinitionsError):
        more["problems"] = [str(one) for one in error.problems]
    if isinstance(error, RefusedByColosError):
        more["colos"] = [data_of(one) for one in error.answers]
    status = status_of(error)
    headers = _AGAIN if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
    return problem_of(status, str(error), type_of(error), headers, **more)


def problem_of(
    status: int, detail: str, kind: str = "about:blank", headers: dict[str, str] | None = None, **more: Any
) -> Response:
    title = HTTPStatus(status).phrase
    content = {"type": kind, "title": title, "status": status, "detail": detail, **more}
    return Response(json.dumps(content), status, headers=headers, media_type=MEDIA_TYPE)


def unexpected(error: Exception) -> Response:
    """The answer where a database does not answer, or something failed that nobody foresaw: that is in the log only."""
    if isinstance(error, OperationalError):
        return problem_of(503, "The database cannot be reached.", headers=_AGAIN)
    number = uuid.uuid4().hex[:12]
    _LOG.error("request failed (%s): %s", number, printable(repr(error)), exc_info=error)
    return problem_of(500, f"Something unforeseen happened; the log of the server has more, as {number}.")
