"""Groups of commands whose help is shown in whole: what each command is for, and an example of its use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from falcon_assets.surface.registry import registry

EXAMPLES: Mapping[str, str] = {
    "schema": "schema feed",
    "explain": "explain hourly-delays 2013-01-03T06:00Z",
    "try": "try hourly-delays 2013-01-03T06:00Z --rows 5",
    "run": "run --process hourly-delays --until 2013-01-08T00:00Z",
    "validate": "validate --strict entity_defs",
    "entity list": "entity list --kind feed --filter tag=owner=etl",
    "entity show": "entity show hourly-delays",
    "entity status": "entity status hourly-delays",
    "entity summary": "entity summary --kind process --filter pipeline=flights -n 3",
    "entity dependency": "entity dependency raw-flights",
    "entity lookup": "entity lookup --path /raw/flights/2013/01/03/06",
    "entity history": "entity history hourly-delays",
    "entity diff": "entity diff hourly-delays 2",
    "entity restore": "entity restore hourly-delays 2 --dry-run",
    "entity submit": "entity submit new/hourly-delays.yaml --dry-run",
    "entity update": "entity update new/hourly-delays.yaml --dry-run",
    "entity apply": "entity apply new/",
    "entity delete": "entity delete hourly-delays --kind process --dry-run",
    "entity touch": "entity touch hourly-delays --reason 'the jar was replaced'",
    "entity submit-and-schedule": "entity submit-and-schedule new/",
    "entity schedule": "entity schedule hourly-delays",
    "entity suspend": "entity suspend raw-flights --kind feed --reason 'the source is down'",
    "entity resume": "entity resume raw-flights --kind feed",
    "instance list": "instance list hourly-delays --filter state=FAILED",
    "instance status": "instance status hourly-delays --start 2013-01-03T00:00Z --end 2013-01-04T00:00Z",
    "instance running": "instance running hourly-delays --cluster primary",
    "instance summary": "instance summary --start 2013-01-03T00:00Z --end 2013-01-04T00:00Z",
    "instance search": "instance search delays --filter state=WAITING",
    "instance params": "instance params hourly-delays 2013-01-03T06:00Z",
    "instance dependency": "instance dependency hourly-delays 2013-01-03T06:00Z",
    "instance logs": "instance logs hourly-delays 2013-01-03T06:00Z",
    "instance collect": "instance collect raw-flights --start 2013-01-03T00:00Z --end 2013-01-04T00:00Z",
    "instance wait": "instance wait hourly-delays 2013-01-03T06:00Z --for SUCCEEDED --timeout 'minutes(30)'",
    "instance triage": "instance triage hourly-delays 2013-01-03T06:00Z",
    "instance versions": "instance versions delays-hourly 2013-01-03T06:00Z",
    "instance restore": "instance restore delays-hourly 2013-01-03T06:00Z --version 3f9a12c0 --dry-run",
    "instance replay": "instance replay hourly-delays 2013-01-03T06:00Z",
    "instance rerun": "instance rerun hourly-delays --start 2013-01-03T00:00Z --end 2013-01-04T00:00Z --status FAILED",
    "instance kill": "instance kill hourly-delays --start 2013-01-03T06:00Z",
    "instance suspend": "instance suspend hourly-delays --start 2013-01-03T00:00Z --end 2013-01-04T00:00Z",
    "instance resume": "instance resume hourly-delays --start 2013-01-03T00:00Z --end 2013-01-04T00:00Z",
    "retention plan": "retention plan --feed raw-flights --as-of 2014-01-01T00:00Z",
    "sla alerts": "sla alerts --filter severity=ERROR",
    "sla pending": "sla pending --filter entity=hourly-delays",
    "quality show": "quality show raw-flights 2013-01-03T06:00Z",
    "quality profile": "quality profile raw-flights 2013-01-03T06:00Z",
    "quality history": "quality history raw-flights --metric records --last 48 --svg records.svg",
    "instance resend": "instance resend raw-flights 2013-01-03T06:00Z --to warehouse --reason 'they never got it'",
    "quality check": "quality check raw-flights 2013-01-03T06:00Z --rerun",
    "quality accept": "quality accept raw-flights 2013-01-03T06:00Z --reason 'a holiday'",
    "notification list": "notification list --filter state=GIVEN_UP",
    "notification test": "notification test hourly-delays",
    "events tail": "events tail --follow --kind LANDED --cluster primary",
    "lineage show": "lineage show delays-hourly 2013-01-03T06:00Z",
    "lineage impact": "lineage impact raw-flights 2013-01-03T06:00Z",
    "lineage path": "lineage path raw-flights/2013-01-03T06:00Z delays-hourly/2013-01-03T06:00Z",
    "lineage diff": "lineage diff delays-hourly 2013-01-03T06:00Z",
    "lineage search": "lineage search --where feed=delays-hourly --where 'instance>=2013-01-03T00:00Z'",
    "lineage status": 'lineage status delays-hourly 2013-01-03T06:00Z critical --reason "in the annual report"',
    "lineage prune-plan": "lineage prune-plan delays-hourly/2013-01-03T06:00Z",
    "lineage expire": "lineage expire --dry-run",
    "lineage export": "lineage export --openlineage --since 2013-01-03T00:00Z hourly-delays",
    "admin audit": "admin audit --filter entity=raw-flights --limit 10",
    "admin root adopt": "admin root adopt primary",
    "template list": "template list --filter pack=falcon",
    "template show": "template show mirror-folder",
    "template new": "template new ops/nightly nightly.yaml",
    "template render": "template render retention -f logs.yaml -p 'limit=days(30)'",
    "template submit": "template submit retention -f logs.yaml --dry-run",
    "template update": "template update ops/nightly --dry-run",
    "secrets keygen": "secrets keygen ~/falcon.key",
    "secrets encrypt": "secrets encrypt cluster lake storage_options.secret",
    "secrets rotate": "secrets rotate --values --dry-run",
    "import xml": "import xml falcon-definitions/ --into entity_defs",
    "metrics": "metrics --textfile /var/lib/node_exporter/falcon.prom",
    "spark start": "spark start --port 15003",
    "completion": "completion bash",
    "doctor": "doctor --only java --only space",
}
"""Command -> an example, without ``falcon``."""


_ANY_LENGTH = 1000


class FullHelpGroup(click.Group):
    """Lists its commands in the order of their declaration, each with its whole first sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Its own commands, in the order in which they were added, and the other operations of this noun."""
        return list(dict.fromkeys([*self.own_commands(ctx), *self.operations(ctx)]))

    def own_commands(self, ctx: click.Context) -> list[str]:
        """Those that print in a way of their own."""
        return list(self.commands)

    def operations(self, ctx: click.Context) -> Iterator[str]:
        """The next word of all declared operations below this group."""
        here = list(_path(ctx))
        for words in map(str.split, registry()):
            if words[: len(here)] == here:
                yield words[len(here)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        words = " ".join([*_path(ctx), cmd_name])
        command = super().get_command(ctx, cmd_name) or self._declared(ctx, words)
        example = EXAMPLES.get(words)
        if command is not None and example is not None:
            command.epilog = f"\b\nExample: falcon {example}"  # click would break it at a hyphen
        return command

    def _declared(self, ctx: click.Context, words: str) -> click.Command | None:
        *_, name = words.split() or [""]
        if name not in self.operations(ctx):
            return None
        if words not in registry():
            return FullHelpGroup(name, help=f"Operations on {name}.")
        from falcon_assets.surface.cli.declared import command, print_data  # noqa: PLC0415 - for few commands

        return command(registry()[words].load(), print_data)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Raises click.UsageError where there is none of that name; says which one looks like it."""
        name = args[0]
        if name.startswith("-") or ctx.resilient_parsing or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        raise click.UsageError(f"No such command {name!r}{self._meant(ctx, name)}.", ctx)

    def _meant(self, ctx: click.Context, name: str) -> str:
        """The command of that name that is further down, or the one here that looks like it."""
        here = " ".join(_path(ctx))
        below = [words for words in EXAMPLES if words.startswith(here) and words.split()[-1] == name]
        if below:
            return f" (did you mean {' or '.join(f'falcon {words}' for words in below)}?)"
        from falcon_assets.model.expression import nearest  # noqa: PLC0415 - only where something is wrong

        return nearest(name, self.list_commands(ctx))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in the help text; click itself cuts sentences off."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.purpose(ctx, name)) for name in self.list_commands(ctx)])

    def purpose(self, ctx: click.Context, cmd_name: str) -> str:
        command = self.get_command(ctx, cmd_name)
        return command.get_short_help_str(_ANY_LENGTH) if command else ""


def _path(context: click.Context) -> Iterator[str]:
    """The names of the groups down to this one, without the program's; a group may be called without the program."""
    if context.parent is not None:
        yield from _path(context.parent)
    if context.command.name != "falcon":
        yield context.command.name or ""
