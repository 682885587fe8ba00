"""``python -m benchmarks [NAME ...]``: all of them without an argument."""

from __future__ import annotations

import click

from benchmarks import (
    catch_up,
    colos,
    commands,
    compaction,
    completeness,
    coordinator,
    daemons,
    egress,
    eviction,
    flows,
    frames,
    front,
    ingest,
    instance_lists,
    instances,
    landing,
    lineage,
    load,
    metrics,
    object_catch_up,
    pages,
    quality,
    quiet_location,
    quiet_ticks,
    replication,
    rest,
    sla,
    tables,
    validate,
)
from benchmarks.measure import show

BENCHMARKS = {
    "validate": validate.measure,
    "load": load.measure,
    "colos": colos.measure,
    "commands": commands.measure,
    "completeness": completeness.measure,
    "catch-up": catch_up.measure,
    "object-catch-up": object_catch_up.measure,
    "coordinator": coordinator.measure,
    "instances": instances.measure,
    "instance-lists": instance_lists.measure,
    "metrics": metrics.measure,
    "pages": pages.measure,
    "quality": quality.measure,
    "quiet-location": quiet_location.measure,
    "quiet-ticks": quiet_ticks.measure,
    "rest": rest.measure,
    "sla": sla.measure,
    "lineage": lineage.measure,
    "landing": landing.measure,
    "eviction": eviction.measure,
    "flows": flows.measure,
    "frames": frames.measure,
    "front": front.measure,
    "daemons": daemons.measure,
    "ingest": ingest.measure,
    "replication": replication.measure,
    "tables": tables.measure,
    "compaction": compaction.measure,
    "egress": egress.measure,
}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(BENCHMARKS)))
def main(names: tuple[str, ...]) -> None:
    """Run the benchmarks of those names, all by default, and print what was measured; all take an hour and a half."""
    lines = []
    for name in names or BENCHMARKS:
        click.echo(f"running {name} ...")
        lines += BENCHMARKS[name]()
    show(lines)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
