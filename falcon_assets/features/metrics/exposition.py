"""Metrics in the text format of Prometheus: printed, or written for the textfile collector of its node exporter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector
from sqlalchemy.exc import DBAPIError

from falcon_assets.base.new_files import write_file
from falcon_assets.features.metrics.declared import METRICS, MetricType
from falcon_assets.features.metrics.reading import Samples, read_samples
from falcon_assets.history.platform.postgres import database_url, unreachable
from falcon_assets.history.platform.reconnecting import in_the_foreground
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Operation

_FAMILIES = {MetricType.GAUGE: GaugeMetricFamily, MetricType.COUNTER: CounterMetricFamily}
_READABLE = 0o644
"""The node exporter runs as another user."""


class LedgerCollector(Collector):
    def __init__(self, installation: Installation) -> None:
        self._installation = installation

    def collect(self) -> Iterator[Family]:
        """Reads all metrics from the ledger.

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
                return read_samples(connection, store, now, here.settings.queues)
        except DBAPIError as error:
            raise unreachable(database_url(here.settings), error) from error


class ShowMetrics(Operation):
    """Print metrics in the text format of Prometheus.

    The output has the names of all entities and clusters, including those that their acl hides from you, but no values
    of settings. If the database does not answer, the exit code is 1 and the file is left unchanged.
    """

    command = "metrics"

    def run(self, installation: Installation) -> str:
        """Reads the ledger as it is folded; raises as :meth:`LedgerCollector.collect`."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(LedgerCollector(installation))
        return generate_latest(registry).decode()


def write_textfile(path: Path, content: str) -> None:
    """Replaces a file in one step, so that its reader never sees a part of it."""
    write_file(path, content, _READABLE)
