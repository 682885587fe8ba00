"""``falcon metrics``: for Prometheus."""

from __future__ import annotations

from pathlib import Path

import click

from falcon_assets.features.metrics.exposition import metrics_text, write_textfile
from falcon_assets.operations.installation import open_installation


@click.command()
@click.option(
    "--textfile",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Replace this file in one step, for the textfile collector of Prometheus's node exporter; nothing is printed.",
)
def metrics(textfile: Path | None) -> None:
    """Print metrics for Prometheus, in its text format.

    Names of entities and clusters are in it, also of those that you may not read by their acl; values of settings are
    not. Where the database does not answer, the exit code is 1 and the file stays as it is.
    """
    with open_installation() as installation:
        content = metrics_text(installation)
    if textfile is None:
        click.echo(content, nl=False)
    else:
        write_textfile(textfile, content)
