"""Metrics in the text format of Prometheus: printed, or written for the textfile collector of its node exporter."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector
from sqlalchemy.exc import DBAPIError

from falcon_assets.errors import SettingsError
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.metrics.declared import METRICS, MetricType
from falcon_assets.operations.metrics.reading import Samples, read_samples
from falcon_assets.orchestration.platform.postgres import database_url, unreachable
from falcon_assets.orchestration.platform.reconnecting import in_the_foreground

_FAMILIES = {MetricType.GAUGE: GaugeMetricFamily, MetricType.COUNTER: CounterMetricFamily}
_READABLE = 0o644


class LedgerCollector(Collector):
    """Reads all metrics from the ledger, whenever it is asked."""

    def __init__(self, installation: Installation) -> None:
        """Reads nothing."""
        self._installation = installation

    def collect(self) -> Iterator[Family]:
        """The metrics, one after the other.

        Raises:
            FalconError: the definitions have problems, or the database does not answer.
        """
        samples = self._samples()
        for metric in METRICS:
            family = _FAMILIES[metric.type](metric.name, metric.help, labels=metric.labels)
            for labels, value in sorted(samples.values[metric].items()):
                family.add_metric(labels, value)
            yield family

    def _samples(self) -> Samples:
        here = self._installation
        store, now = here.entities, here.settings.now()
        try:
            with in_the_foreground(), here.tables.begin() as connection:
                return read_samples(connection, store, now)
        except DBAPIError as error:
            raise unreachable(database_url(here.settings), error) from error


def metrics_text(installation: Installation) -> str:
    """The metrics as they are now, as far as the ledger is folded; raises as :meth:`LedgerCollector.collect`."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(LedgerCollector(installation))
    return generate_latest(registry).decode()


def write_textfile(path: Path, content: str) -> None:
    """Replaces a file in one step, so that its reader never sees a part; a file that is there stays until then.

    Raises:
        SettingsError: it cannot be written.
    """
    try:
        # Without the suffix .prom, for which the node exporter looks.
        with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False) as made:
            try:
                made.write(content)
                made.flush()
                os.fchmod(made.fileno(), _READABLE)  # the node exporter is another user
                Path(made.name).replace(path)
            except BaseException:
                with suppress(OSError):
                    Path(made.name).unlink()
                raise
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror or error}") from error
