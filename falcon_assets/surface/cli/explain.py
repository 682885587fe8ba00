"""``falcon explain``: inputs, outputs and parameters of one process instance."""

from __future__ import annotations

from rich.table import Table

from falcon_assets.instances.operations.one_instance import ExplainInstance
from falcon_assets.instances.views.explain import Explanation
from falcon_assets.model.instant import format_instant
from falcon_assets.surface.cli.console import console, shown
from falcon_assets.surface.cli.declared import command


def _show(found: Explanation) -> None:
    out = console()
    out.print(f"[bold]{found.process}[/] on {found.cluster} at {format_instant(found.instance)}")
    inputs = _table("Reads", "input", "feed", "instance", "available", "path")
    for one in found.inputs:
        waited = "[yellow]no, optional[/]" if one.optional else "[red]no[/]"
        for read in one.instances:
            there = "[green]yes[/]" if read.available else ": ".join(filter(None, (waited, shown(read.why))))
            if read.instance in one.closed:
                there = f"[yellow]yes[/]: {shown(str(one.closed[read.instance]))}"
            inputs.add_row(one.name, one.feed, format_instant(read.instance), there, shown(read.path))
        if one.short:
            inputs.add_row(one.name, one.feed, one.short, f"{waited}: not enough instances are available", "")
        elif not one.instances:
            inputs.add_row(one.name, one.feed, "none exists", "", "")
    outputs = _table("Writes", "output", "feed", "instance", "path")
    for written in found.outputs:
        outputs.add_row(written.name, written.feed, format_instant(written.instance), shown(written.path))
    parameters = _table("Parameters", "name", "value")
    for name, value in sorted(found.properties.items()):
        parameters.add_row(shown(name), shown(value))
    out.print(inputs)
    for one in found.inputs:
        if one.last_used:
            out.print(f"{one.name} uses each version once, last {one.last_used}.", soft_wrap=True)
    out.print(outputs if found.outputs else "Writes no feed: it is run for its effect.")
    out.print(parameters)
    if found.alone is not None:
        alone = (
            f"are computed one by one: {shown(found.alone)}" if found.alone else "of a run are computed by one query"
        )
        out.print(f"Instances {alone}.", soft_wrap=True)
    if found.definition is not None:
        present = "" if found.definition == found.latest else f"; this is what the latest, {found.latest}, says"
        out.print(f"It has version {found.definition} of the definition{present}.")


def _table(title: str, *columns: str) -> Table:
    """A table whose last column is folded, never cut: what is copied from it must be whole."""
    table = Table(*columns[:-1], title=title, title_justify="left")

    table.add_column(columns[-1], overflow="fold")
    return table


explain = command(ExplainInstance, _show, "Print JSON instead of tables.")
