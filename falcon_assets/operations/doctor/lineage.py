"""Check of the system that lineage is sent to."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.operations.doctor.context import CheckContext
from falcon_assets.operations.doctor.judgement import Judgement, ok, warning

ANSWER_SECONDS = 8.0


def check_openlineage(context: CheckContext) -> Iterator[Judgement]:
    """Whether it answers; nothing is sent, so that it cannot say whether it would take it."""
    settings = context.settings
    if settings.openlineage_url is None:
        yield ok("lineage is sent to nobody: FALCON_OPENLINEAGE_URL is not set")
        return
    import requests  # noqa: PLC0415 - only where there is somebody to ask

    where = f"{settings.openlineage_url}/api/v1/lineage"
    key = {"Authorization": f"Bearer {settings.openlineage_key}"} if settings.openlineage_key else {}
    fix = "start it, or mend FALCON_OPENLINEAGE_URL: what is not sent within three days is given up"
    try:
        answer = requests.get(where, headers=key, timeout=ANSWER_SECONDS, allow_redirects=False)
    except (requests.RequestException, UnicodeError) as error:  # their texts quote what was sent
        yield warning(f"{where} does not answer ({type(error).__name__}): lineage waits", fix)
        return
    if answer.status_code in (401, 403):
        yield warning(f"{where} refuses us ({answer.status_code}): lineage waits", "mend FALCON_OPENLINEAGE_API_KEY")
    elif answer.status_code >= 500:
        yield warning(f"{where} answers {answer.status_code}: lineage waits", fix)
    elif answer.is_redirect:
        yield warning(f"{where} leads elsewhere: lineage waits", fix)
    else:
        yield ok(f"{where} answers")
