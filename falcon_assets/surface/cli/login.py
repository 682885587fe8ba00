"""``falcon login``: keeps the token for a server, which ``falcon --server`` sends."""

from __future__ import annotations

import click

from falcon_assets.errors import SettingsError
from falcon_assets.operations.server_tokens import keep_token
from falcon_assets.settings import tokens_file
from falcon_assets.surface.cli.server import legal_server


@click.command()
@click.argument("server", metavar="URL")
def login(server: str) -> None:
    """Keep a token for the server at URL, for `falcon --server URL`.

    The token is asked for, and tried; an admin of the server makes it. It is kept in a file that only you can read,
    `~/.config/falcon/tokens.json`. FALCON_TOKEN takes precedence. An empty token forgets the one that is kept.
    """
    from falcon_assets.doctor.admin import ShowVersions  # noqa: PLC0415 - takes a moment
    from falcon_assets.surface.rest.client import Server  # noqa: PLC0415 - likewise

    url = legal_server(server)
    token = click.prompt("Token", hide_input=True, default="", show_default=False).strip()
    if token:
        if not (token.isascii() and token.isprintable()) or " " in token:
            raise SettingsError("a token has no spaces, and no other characters than those of ASCII")
        Server(url, token).perform(ShowVersions())
    keep_token(url, token)
    click.echo(f"the token for {url} is kept in {tokens_file()}" if token else f"no token for {url} is kept")
