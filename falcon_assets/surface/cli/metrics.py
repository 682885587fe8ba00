"""``falcon metrics``: for Prometheus."""

from __future__ import annotations

from pathlib import Path

import click

from falcon_assets.features.metrics.exposition import ShowMetrics, write_textfile
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.declared import command_of


@command_of(ShowMetrics, "")
@click.option(
    "--textfile",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to FILE instead, atomically, for the textfile collector of Prometheus's node exporter.",
)
def metrics(asked: ShowMetrics, textfile: Path | None, as_json: bool) -> None:
    with open_installation() as installation:
        content = asked.run(installation)
    if textfile is None:
        click.echo(content, nl=False)
    else:
        write_textfile(textfile, content)
