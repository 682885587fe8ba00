"""``falcon admin token|user|session``: who may come in over the network."""

from __future__ import annotations

import click
from rich.table import Table

from falcon_assets.errors import count_of
from falcon_assets.features.logins.operations import (
    AddUser,
    CreateToken,
    ListSessions,
    ListTokens,
    ListUsers,
    NewToken,
    RemoveUser,
    RevokeSessions,
    RevokeToken,
    SetPassword,
)
from falcon_assets.features.logins.store import ApiToken, LocalUser, Session
from falcon_assets.operations.installation import open_installation
from falcon_assets.operations.paging import Page
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.declared import command, command_of, perform
from falcon_assets.surface.cli.entity.words import moment
from falcon_assets.surface.cli.help import FullHelpGroup
from falcon_assets.surface.cli.listing import say_rest
from falcon_assets.surface.cli.secrets import given_secret


@click.group(cls=FullHelpGroup)
def token() -> None:
    """Create, list and revoke tokens of programs."""


@click.group(cls=FullHelpGroup)
def user() -> None:
    """Add, list and remove users who log in with a password of this installation."""


@click.group(cls=FullHelpGroup)
def session() -> None:
    """List and end sessions of people who are logged in."""


def _show_new(made: NewToken) -> None:
    """The token alone is on standard output."""
    if made.token:
        click.echo(
            f"token {shown(made.name)}, {made.role}, until {moment(made.expires)}; it is shown only now:", err=True
        )
        click.echo(made.token)
    else:
        click.echo(f"token {shown(made.name)}, {made.role}, would be valid until {moment(made.expires)}")


def _show_tokens(found: Page[ApiToken]) -> None:
    table = Table("name", "role", "groups", "created by", "expires", "used", "state")
    for one in found.items:
        state = "revoked" if one.revoked else "" if one.is_valid else "expired"
        names = (shown(one.name), one.role, shown(", ".join(one.groups)), shown(one.created_by))
        table.add_row(*names, moment(one.expires), moment(one.used) if one.used else "never", state)
    print_table(table, nothing="there is no such token")
    say_rest(found)


def _show_users(found: Page[LocalUser]) -> None:
    table = Table("name", "groups", "password set")
    for one in found.items:
        table.add_row(shown(one.name), shown(", ".join(one.groups)), moment(one.changed))
    print_table(table, nothing="there is no such user")
    say_rest(found)


def _show_sessions(found: Page[Session]) -> None:
    table = Table("id", "user", "way", "from", "since", "used", "expires")
    for one in found.items:
        who = (str(one.id), shown(one.principal), one.way, shown(one.address))
        table.add_row(*who, moment(one.created), moment(one.used), moment(one.expires))
    print_table(table, nothing="nobody is logged in")
    say_rest(found)


def _show_ended(found: list[Session]) -> None:
    click.echo(f"{count_of(len(found), 'session')} ended")


def _show_changed(changed: bool) -> None:
    click.echo("done" if changed else "unchanged")


token.add_command(command(CreateToken, _show_new))
token.add_command(command(ListTokens, _show_tokens))
token.add_command(command(RevokeToken, _show_changed, ""))
user.add_command(command(ListUsers, _show_users))
user.add_command(command(RemoveUser, _show_changed, ""))
session.add_command(command(ListSessions, _show_sessions))
session.add_command(command(RevokeSessions, _show_ended))


def _with_password(asked: AddUser | SetPassword, as_json: bool) -> None:
    with open_installation() as installation:
        changed = asked.model_copy(update={"password": given_secret("Password")}).run(installation)
    perform(changed, _show_changed, as_json=as_json)


@user.add_command
@command_of(AddUser, "")
def add(asked: AddUser, as_json: bool) -> None:
    _with_password(asked, as_json)


@user.add_command
@command_of(SetPassword, "")
def password(asked: SetPassword, as_json: bool) -> None:
    _with_password(asked, as_json)
