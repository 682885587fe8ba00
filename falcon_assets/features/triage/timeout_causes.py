"""Causes of timeouts, for their events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import islice

from falcon_assets.catalog.store import EntityStore
from falcon_assets.features.triage.answers import TriageAnswers
from falcon_assets.features.triage.known import Work
from falcon_assets.features.triage.tree import causes_of
from falcon_assets.features.triage.walk import Search
from falcon_assets.features.triage.words import as_markdown
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.planning.workloads import Workload
from falcon_assets.settings import Settings

TOLD = 10
"""Instances of a workload whose causes are searched when several time out together: mostly they are equal."""


def timeout_causes(
    ledger: Ledger, store: EntityStore, settings: Settings, workload: Workload, nominals: Iterable[datetime]
) -> Mapping[datetime, str]:
    """Instance -> its causes as Markdown, for the first :data:`TOLD`; no store is queried."""
    works = [Work(workload.name, workload.cluster, nominal) for nominal in islice(nominals, TOLD)]
    if not works:
        return {}
    now = settings.now()
    with ledger.engine.begin() as connection:
        search = Search(store, TriageAnswers(connection, store, settings, now, stores=0), now)
        search.run(works, [])
    return {work.nominal: as_markdown(causes_of(search, work)) for work in works}
