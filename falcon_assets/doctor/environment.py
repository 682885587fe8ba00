"""Checks of definitions, environment variables, and secrets that the definitions name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from falcon_assets.catalog.additions import why_unwritable
from falcon_assets.catalog.references import value_of
from falcon_assets.catalog.secret_files import others_who_read, secret_file
from falcon_assets.catalog.store import EntityStore
from falcon_assets.doctor.diagnosis import CheckContext, Diagnosis, ok, problem, warning
from falcon_assets.errors import FalconError, InvalidDefinitionsError, MissingDefinitionsError, SecretError, count_of
from falcon_assets.instances.rules.queues import admission
from falcon_assets.model.entity import Entity, counted
from falcon_assets.model.process import Process
from falcon_assets.model.reference import EncryptedValue, EnvironmentValue, FileValue, references_in
from falcon_assets.planning.transfers import ExportWorkload, ImportWorkload
from falcon_assets.settings import VARIABLES

_ALIKE = 0.8


def check_definitions(context: CheckContext) -> Iterator[Diagnosis]:
    try:
        found = context.entities()
    except MissingDefinitionsError as error:
        yield warning(str(error), "write some, or set FALCON_ENTITY_DEFS")
    except InvalidDefinitionsError as error:
        yield problem(str(error).splitlines()[-1], "falcon validate lists them")
    except FalconError as error:
        yield problem(str(error), "fix FALCON_COLO or the definitions")
    else:
        yield ok(counted({kind: len(those) for kind, those in found.by_kind.items()}))
        why = why_unwritable(context.settings.entity_defs)
        if why and not context.settings.read_only:
            yield warning(why, "fix that, or set FALCON_ENTITY_DEFS_READONLY where something else deploys them")


def check_secrets(context: CheckContext) -> Iterator[Diagnosis]:
    """Whether variables and files are there that definitions and receivers name, and all values can be decrypted."""
    yield from judge_secrets(_named_here(context), context.environ)
    if store := context.entities_if_sound():
        found = [one for entity in _entities(store) for _, one in references_in(entity)]
        yield from judge_encrypted([one for one in found if isinstance(one, EncryptedValue)], context.environ)
        yield from judge_files({one.file: one for one in found if isinstance(one, FileValue)}, context.environ)


def check_queues(context: CheckContext) -> Iterator[Diagnosis]:
    """Whether the queues are there that processes, imports and exports name, and are for their owners."""
    store = context.entities_if_sound()
    working: list[Process | ImportWorkload | ExportWorkload] = []
    if store:
        working = [*store.processes.values(), *store.imports, *store.exports]
    named = [(one, one.queue) for one in working if one.queue]
    refused = 0
    for one, queue in named:
        acl = one.acl if isinstance(one, Process) else one.entity.acl
        if why := admission(queue, context.settings.queues.get(queue), acl, 1).denied:
            refused += 1
            yield problem(f"{one.kind} {one.name!r} {why}", "fix FALCON_QUEUES here and wherever Dagster runs")
    if not refused:
        processes = [one for one, _ in named if isinstance(one, Process)]
        counts = [count_of(len(processes), "process", "processes")]
        if transfers := len(named) - len(processes):
            counts.append(count_of(transfers, "transfer"))
        yield ok(f"{' and '.join(counts)} {'is' if len(named) == 1 else 'are'} in queues")


def check_variables(context: CheckContext) -> Iterator[Diagnosis]:
    """Whether variables are set that are not used."""
    yield from judge_variables(context.environ, _named_here(context))


def _named_here(context: CheckContext) -> dict[str, list[str]]:
    store, default = context.entities_if_sound(), context.settings.notification
    named = named_variables(store) if store else {}
    for receiver in default.to if default else ():
        named.setdefault(receiver.url.label, []).append("FALCON_NOTIFICATION_TO")
    return named


def named_variables(store: EntityStore) -> dict[str, list[str]]:
    """Returns variable -> places that name it by ``{env: NAME}``: ``cluster 'lake': storage_options.key``."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for entity in _entities(store):
        for path, value in references_in(entity):
            if isinstance(value, EnvironmentValue):
                found[value.env].append(f"{entity.kind} {entity.name!r}: {'.'.join(path)}")
    return dict(found)


def _entities(store: EntityStore) -> list[Entity]:
    reading = {one.reads_on for one in store.workloads}
    clusters = {**{name: store.everywhere[name] for name in sorted(reading)}, **store.clusters}
    return [one for those in {**store.by_kind, "cluster": clusters}.values() for one in those.values()]


def judge_secrets(named: Mapping[str, list[str]], environ: Mapping[str, str]) -> Iterator[Diagnosis]:
    unset = 0
    for name, places in named.items():
        if not environ.get(name):
            unset += 1
            more = f" and {count_of(len(places) - 1, 'more place')}" if len(places) > 1 else ""
            how = "is empty" if name in environ else "is not set"
            yield problem(
                f"the environment variable {name} {how}, and {places[0]}{more} needs it",
                f"set {name} here and wherever Dagster runs",
            )
    if not unset:
        yield ok(f"{count_of(len(named), 'variable is', 'variables are')} named in definitions, and set")


def judge_encrypted(values: Sequence[EncryptedValue], environ: Mapping[str, str]) -> Iterator[Diagnosis]:
    broken = 0
    for one in values:
        try:
            value_of(one, environ)
        except SecretError as error:
            broken += 1
            yield problem(str(error), "falcon secrets check lists all encrypted values")
    if values and not broken:
        yield ok(f"{count_of(len(values), 'encrypted value')} can be decrypted")


def judge_files(named: Mapping[str, FileValue], environ: Mapping[str, str]) -> Iterator[Diagnosis]:
    broken = 0
    for one in named.values():
        path = secret_file(one, environ)
        try:
            value_of(one, environ)
        except SecretError as error:
            broken += 1
            yield problem(str(error), "write the secret there, here and wherever Dagster runs")
        else:
            if others_who_read(path):
                broken += 1
                yield warning(f"{path} holds a secret, and other users can read it", f"chmod 600 {path}")
    if named and not broken:
        yield ok(f"{count_of(len(named), 'file')} with secrets can be read by their owner only")


def judge_variables(environ: Mapping[str, str], named: Mapping[str, object]) -> Iterator[Diagnosis]:
    """Judges unused variables whose names resemble settings."""
    strange = 0
    for name in sorted(environ.keys() - VARIABLES - named.keys()):
        close = get_close_matches(name.upper(), sorted(VARIABLES), n=1, cutoff=_ALIKE)
        if close and (name.upper().startswith("FALC") or close[0] not in environ):
            strange += 1
            yield problem(f"the environment variable {name} is not read", f"write {close[0]}, or unset {name}")
        elif name.upper().startswith("FALCON_"):
            strange += 1
            yield warning(f"the environment variable {name} is not read", f"unset {name}")
    if not strange:
        yield ok("no variable is misspelt or superfluous")
