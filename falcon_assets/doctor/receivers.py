"""Checks of receivers of notifications, lineage and events: whether they can be used; nothing is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from falcon_assets.catalog.references import known_value
from falcon_assets.doctor.diagnosis import CheckContext, Diagnosis, ok, problem, warning
from falcon_assets.doctor.side_by_side import side_by_side
from falcon_assets.errors import count_of
from falcon_assets.hooks import installed
from falcon_assets.model.cluster import MessagingInterface
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.model.reference import Reference


def check_receivers(context: CheckContext) -> Iterator[Diagnosis]:
    """Whether apprise has a service for the URL of each receiver in definitions and settings."""
    yield from judge_receivers(_named(context), context.environ)


def _named(context: CheckContext) -> dict[Reference, str]:
    """Reference -> the first place that has it."""
    found: dict[Reference, str] = {}
    default, store = context.settings.notification, context.entities_if_sound()
    for receiver in default.to if default else ():
        found.setdefault(receiver.url, "FALCON_NOTIFICATION_TO")
    entities: list[Feed | Process] = [*store.feeds.values(), *store.processes.values()] if store else []
    for entity in entities:
        for receiver in entity.notification.to if entity.notification else ():
            found.setdefault(receiver.url, f"{entity.kind} {entity.name!r}: notification")
    return found


def judge_receivers(named: Mapping[Reference, str], environ: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Judges the URLs that are available (others are another check's matter). URLs are secrets, and never quoted."""
    urls = {one.label: url for one in named if (url := known_value(one, environ).strip())}
    is_there = "notification" in installed()
    declared = {one.label: place for one, place in named.items() if is_there and one.label in urls}
    if not declared:
        yield ok("nobody is notified")
        return
    from falcon_assets.features.notification.delivery import has_service  # noqa: PLC0415 - only where there are any

    unknown = [name for name in declared if not has_service(urls[name])]
    for name in unknown:
        yield problem(
            f"{name} does not hold one URL that apprise knows ({declared[name]} names it): it gets no notifications",
            f"fix {name} here and wherever Dagster runs, such as mailto://user:password@host or json://host/path; "
            "some services need an additional package",
        )
    if len(declared) > len(unknown):
        yield ok(f"apprise knows the URLs of: {', '.join(name for name in declared if name not in unknown)}")


def check_messaging(context: CheckContext) -> Iterator[Diagnosis]:
    """Whether the brokers that clusters publish to answer; nothing is published."""
    store = context.entities_if_sound()
    declared = {one.name: one.interfaces.messaging for one in store.clusters.values()} if store else {}
    asked = {name: partial(_why_away, one, context) for name, one in declared.items() if one is not None}
    if not asked:
        yield ok("no cluster names a broker")
        return
    if "messaging" not in installed():
        clusters = count_of(len(asked), "cluster names", "clusters name")
        said = f"{clusters} a broker ({', '.join(asked)}), and this installation has no folder features/messaging"
        yield warning(f"{said}: no event is published", "put it back, or remove interfaces.messaging of the clusters")
        return
    answers = side_by_side(asked, ANSWER_SECONDS)
    for name in asked:
        why = answers.get(name, f"no answer within {ANSWER_SECONDS:g} s")
        where = f"cluster {name!r}: {asked[name].args[0].endpoint}"
        if why:
            yield warning(f"{where}: {why}: its events wait", "start it, or fix interfaces.messaging of the cluster")
        else:
            yield ok(f"{where} answers")


def _why_away(messaging: MessagingInterface, context: CheckContext) -> str:
    """Empty where it answers."""
    from falcon_assets.features.messaging.broker import (  # noqa: PLC0415 - only where there is one
        NotPublishedError,
        broker_of,
    )

    try:
        broker_of(messaging, context.environ).probe()
    except NotPublishedError as error:
        return str(error)
    return ""


ANSWER_SECONDS = 8.0


def check_openlineage(context: CheckContext) -> Iterator[Diagnosis]:
    """Whether the service answers; nothing is sent, so it is unknown whether it would accept lineage."""
    settings = context.settings
    if settings.openlineage_url is None:
        yield ok("lineage is not sent: FALCON_OPENLINEAGE_URL is not set")
        return
    import requests  # noqa: PLC0415 - only where there is somebody to ask

    where = f"{settings.openlineage_url}/api/v1/lineage"
    key = {"Authorization": f"Bearer {settings.openlineage_key}"} if settings.openlineage_key else {}
    fix = "start it, or fix FALCON_OPENLINEAGE_URL: what cannot be sent within three days is dropped"
    try:
        answer = requests.get(where, headers=key, timeout=ANSWER_SECONDS, allow_redirects=False)
    except (requests.RequestException, UnicodeError) as error:  # their texts quote what was sent
        yield warning(f"{where} does not answer ({type(error).__name__}): lineage waits", fix)
        return
    if answer.status_code in (401, 403):
        yield warning(f"{where} refuses access ({answer.status_code}): lineage waits", "fix FALCON_OPENLINEAGE_API_KEY")
    elif answer.status_code >= 500:
        yield warning(f"{where} answers {answer.status_code}: lineage waits", fix)
    elif answer.is_redirect:
        yield warning(f"{where} redirects elsewhere: lineage waits", fix)
    else:
        yield ok(f"{where} answers")
