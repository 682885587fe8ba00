"""``falcon explain``: what one process instance reads, writes and is told."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.errors import UnknownEntityError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.model.process import Process
from falcon_assets.planning.instances.process_instance import ProcessInstance, plan_process_instance
from falcon_assets.settings import load_settings
from falcon_assets.spark.confs import is_secret
from falcon_assets.storage.availability import AvailableInstances, is_available
from falcon_assets.storage.feed_store import StoresOf


@click.command()
@click.argument("process")
@click.argument("instance")
@click.option("--cluster", help="Which cluster, where the process runs on several.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def explain(process: str, instance: str, cluster: str | None, as_json: bool) -> None:
    """Show what the INSTANCE (YYYY-MM-DDTHH:MMZ) of PROCESS reads, writes and is told.

    For every input instance it says whether it is available now.
    """
    settings = load_settings()
    store = load_entities(settings.entity_defs).in_colo(settings.colo)
    entity = store.process(process)
    where = _cluster(store, entity, cluster)
    files = StoresOf(where, settings.home, settings.environ)

    plan = plan_process_instance(
        entity,
        where,
        store.feeds,
        parse_instant(instance),
        user=entity.acl.owner if entity.acl else settings.user,
        available=lambda feed: AvailableInstances(files(feed), feed, where),
    )
    explanation = Explanation(plan, files)
    if as_json:
        click.echo(json.dumps(explanation.as_dict(), indent=2))
    else:
        explanation.show(Console(soft_wrap=True))


@dataclass(frozen=True)
class Explanation:
    """A planned instance beside the state of the stores of its feeds."""

    plan: ProcessInstance
    files: StoresOf

    def as_dict(self) -> dict[str, Any]:
        """What ``--json`` prints; ``available`` has one truth value per instance, in the same order."""
        return {
            "process": self.plan.process.name,
            "cluster": self.plan.cluster.name,
            "instance": format_instant(self.plan.nominal),
            "inputs": [
                {
                    "name": one.name,
                    "feed": one.feed.name,
                    "instances": [format_instant(instance) for instance in one.instances],
                    "paths": [self.files(one.feed).shown(path) for path in one.paths],
                    "available": [is_available(self.files(one.feed), one.feed, path) for path in one.paths],
                }
                for one in self.plan.inputs
            ],
            "outputs": [
                {
                    "name": one.name,
                    "feed": one.feed.name,
                    "instance": format_instant(one.instance),
                    "path": self.files(one.feed).shown(one.path),
                }
                for one in self.plan.outputs
            ],
            "properties": {key: "*****" if is_secret(key) else one for key, one in self.plan.properties.items()},
        }

    def show(self, console: Console) -> None:
        """Prints tables for people."""
        facts = self.as_dict()
        console.print(f"[bold]{facts['process']}[/] on {facts['cluster']} at {facts['instance']}")
        inputs = _table("Reads", "input", "feed", "instance", "available", "path")
        for plan, one in zip(self.plan.inputs, facts["inputs"], strict=True):
            waited = "[yellow]no, optional[/]" if plan.optional else "[red]no[/]"
            for at, path, there in zip(one["instances"], one["paths"], one["available"], strict=True):
                inputs.add_row(one["name"], one["feed"], at, "[green]yes[/]" if there else waited, escape(path))
            if not one["instances"]:
                inputs.add_row(one["name"], one["feed"], "none exists", "", "")
        outputs = _table("Writes", "output", "feed", "instance", "path")
        for one in facts["outputs"]:
            outputs.add_row(one["name"], one["feed"], one["instance"], escape(one["path"]))
        told = _table("Is told", "variable", "value")
        for name, value in sorted(facts["properties"].items()):
            told.add_row(escape(name), escape(value))
        console.print(inputs)
        console.print(outputs if facts["outputs"] else "Writes no feed: it is run for its effect.")
        console.print(told)


def _table(title: str, *columns: str) -> Table:
    """A table whose last column is folded, never cut: what is copied from it must be whole."""
    table = Table(*columns[:-1], title=title, title_justify="left")
    table.add_column(columns[-1], overflow="fold")
    return table


def _cluster(store: EntityStore, process: Process, name: str | None) -> Cluster:
    """The cluster asked for, or the only one.

    Raises:
        UnknownEntityError: the process does not run there, or runs on several and none was named.
    """
    clusters = {cluster.name: cluster for cluster, _ in store.process_clusters(process)}
    if name is None and len(clusters) == 1:
        return next(iter(clusters.values()))
    if name is None:
        raise UnknownEntityError(
            f"process {process.name!r} runs on several clusters: say which one with --cluster ({', '.join(clusters)})"
        )
    if name not in clusters:
        raise UnknownEntityError(
            f"process {process.name!r} does not run on cluster {name!r}; it runs on: {', '.join(clusters)}"
        )
    return clusters[name]
