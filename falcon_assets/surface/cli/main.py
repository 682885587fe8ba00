"""The ``falcon`` command: its nouns, loaded only when they are used."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from keyword import iskeyword
from typing import Any

import click
from click.shell_completion import CompletionItem

from falcon_assets.base.garbage_collection import imports_without_gc
from falcon_assets.errors import FalconError, QueryError, UsageError
from falcon_assets.operations.request_origin import requests_from
from falcon_assets.surface.cli import completing
from falcon_assets.surface.cli.help import FullHelpGroup
from falcon_assets.surface.cli.server import performed_at
from falcon_assets.surface.cli.shutdown import end_in_time

COMMANDS = {
    "validate": "Check all entity definitions.",
    "schema": "Print a JSON Schema of the entity definitions, for editors.",
    "explain": "Show inputs, outputs and parameters of a process instance.",
    "try": "Compute a process instance as a trial run; publish nothing.",
    "run": "Run all due instances in this process, until nothing more is ready.",
    "entity": "Manage clusters, datasources, feeds and processes: submit, update, schedule and more.",
    "flow": "Say what is moved from where to where; see how, run it, watch it.",
    "instance": "List, rerun, resend, kill, suspend and resume instances; find out why one is missing.",
    "feed": "Report how complete instances of a feed are; show up to when it is complete.",
    "executor": "List the executors of clusters: whether they answer, and how busy they are.",
    "sla": "List instances that breach their SLA, or are about to.",
    "quality": "Show whether instances are valid, and what their data is like; check or accept them.",
    "notification": "List notifications about instances, and send test messages.",
    "events": "Show the events that clusters publish to their brokers.",
    "lineage": "Trace versions of data: what each was made from, and what was made from it.",
    "retention": "Show what retention would delete or archive, and what it keeps.",
    "ledger": "Show the state of the ledger, or rebuild it.",
    "admin": "Inspect and back up the installation; manage roots, tokens, users, sessions.",
    "serve": "Serve Dagster's UI, daemon and code locations, for one or many users.",
    "spark": "Run a local Spark Connect server that stays warm between runs.",
    "import": "Convert definitions of Apache Falcon to YAML.",
    "metrics": "Print metrics in the text format of Prometheus.",
    "login": "Keep a token for a server, for falcon --server URL.",
    "completion": "Print the completion script for a shell.",
    "datasource": "Reach datasources, and list what is in them.",
    "template": "Make entities from templates; manage templates.",
    "secrets": "Encrypt secrets in definitions; make, rotate and check their keys.",
    "doctor": "Check this installation, and show what is wrong and how to fix it.",
}
"""Command -> its one line in ``falcon --help``."""
_NO_OPERATIONS = ("completion", "login", "serve", "spark")
_FULL = (errno.ENOSPC, errno.EDQUOT)
_PACKAGE = "falcon_assets.surface.cli"


class LazyGroup(FullHelpGroup):
    """A group whose commands are imported one at a time: most of them need Dagster or Spark, and those take seconds."""

    def __init__(
        self,
        *,
        package: str,
        table: Mapping[str, str] | None = None,
        modules: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        """Imports nothing; a module of ``package`` has the name of its command, where ``modules`` does not say another.

        ``table`` has the line in the help text for each command; None: the help text imports all of them.
        """
        super().__init__(**options)
        self.package = package
        self.modules = modules or {name: name.replace("-", "_") + "_" * iskeyword(name) for name in table or ()}
        self.table = table or {}

    def own_commands(self, ctx: click.Context) -> list[str]:
        """Those that are there: the others are of features that are not."""
        there = {*_NO_OPERATIONS, *self.operations(ctx)}
        return [name for name in self.modules if name in there]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands and cmd_name in self.own_commands(ctx):
            with imports_without_gc():
                module = import_module(f"{self.package}.{self.modules[cmd_name]}")
            found = (one for one in vars(module).values() if isinstance(one, click.Command) and one.name == cmd_name)
            self.add_command(next(found))
        return super().get_command(ctx, cmd_name)

    def purpose(self, ctx: click.Context, cmd_name: str) -> str:
        return self.table.get(cmd_name) or super().purpose(ctx, cmd_name)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Its commands, none of which is imported, and its options."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        own = [CompletionItem(name, help=self.table.get(name)) for name in names]
        return [*own, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(
    cls=LazyGroup,
    package=_PACKAGE,
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Use 'falcon COMMAND --help' for details, and 'falcon doctor' if something does not work.",
)
@click.version_option(package_name="falcon-assets", prog_name="falcon")
@click.option(
    "--as",
    "actor",
    metavar="USER",
    help="Act on behalf of USER, which is kept in the audit log. Only for users listed in FALCON_PROXY_USERS.",
)
@click.option(
    "--server",
    metavar="URL",
    help="Have a server perform the command, over REST, with the token in FALCON_TOKEN, or of `falcon login`.",
)
@click.option(
    "--colo",
    "colos",
    metavar="NAME",
    multiple=True,
    help="With --server of several colos: only ask this one, or change only what is there; may be repeated.",
)
@click.pass_context
def falcon(context: click.Context, actor: str | None, server: str | None, colos: tuple[str, ...]) -> None:
    """Declare clusters, datasources, feeds and processes; manage them and their instances."""
    if actor and server:
        raise UsageError("--as is for this machine: a server knows who asks by the token")
    context.with_resource(requests_from("cli", actor=actor))
    if colos and not server:
        raise UsageError("--colo is for a server of several colos: name it with --server")
    context.with_resource(performed_at(server, colos))


def program() -> None:
    """The command ``falcon``: :func:`main`, and the end of the process, which waits for nothing left by workflows."""
    try:
        main()
    except SystemExit as ended:  # click ends every command so
        end_in_time(ended.code if isinstance(ended.code, int) else bool(ended.code))
        raise


def main(command: click.Command = falcon) -> None:
    """Runs the command; what is wrong is said in a line or two, without a traceback.

    The exit code is 2 where the command cannot be understood (source: click), and 1 where it cannot be done.
    """
    completing.register()
    try:
        command()
    except FalconError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2 if isinstance(error, QueryError) else 1)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        click.echo(f"Error: {error.filename or 'what is printed cannot be written'}: {error.strerror}", err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # else Python tries to write the rest at its exit, and complains
        sys.exit(1)
