"""Settings from the environment; the only place where the environment is read."""

from __future__ import annotations

import hashlib
import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from falcon_assets.errors import ExpressionError, SettingsError
from falcon_assets.model.base import EntityName
from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.notification import USUAL, Notification, Receiver, UrlVariable
from falcon_assets.model.queue import Queue
from falcon_assets.planning.clock import Clock
from falcon_assets.shared_clock import home_clock, shared_start

MASTER_KEY, MASTER_KEY_FILE = "FALCON_MASTER_KEY", "FALCON_MASTER_KEY_FILE"
WEBSERVER = "http://127.0.0.1:3000"
VARIABLES = frozenset(
    {
        *("FALCON_HOME", "FALCON_ENTITY_DEFS", "FALCON_ENTITY_DEFS_READONLY", "FALCON_WEBSERVER_URL", "FALCON_COLO"),
        "FALCON_FRONT_URL",
        *("FALCON_DATABASE_URL", "FALCON_SUPERUSERS", "FALCON_PROXY_USERS", "FALCON_JOBS", "FALCON_CLOCK"),
        *("FALCON_LINEAGE_RETENTION", "FALCON_OPENLINEAGE_NAMESPACE"),
        *("FALCON_OPENLINEAGE_URL", "FALCON_OPENLINEAGE_API_KEY"),
        *("FALCON_NOTIFICATION_TO", "FALCON_NOTIFICATION_ON", MASTER_KEY, MASTER_KEY_FILE),
        *("FALCON_PACKS", "FALCON_QUEUES", "FALCON_TLS_CERTIFICATE", "FALCON_TLS_KEY", "FALCON_TOKEN"),
        *("FALCON_LOGINS", "FALCON_COLOS"),
    }
)
_OF_LIBPQ = "PG"
_OTHER_SERVERS = ("PGHOSTADDR", "PGSERVICE")


JobPower: TypeAlias = Literal["entities", "instances", "principals"]
"""To change entities, or instances; to act for the principal that the config names."""
_NOTHING = "nothing"
_QUEUES = TypeAdapter(dict[EntityName, Queue])


@dataclass(frozen=True)
class MasterKeySources:
    """FALCON_MASTER_KEY and FALCON_MASTER_KEY_FILE: master keys, and files with others."""

    texts: tuple[str, ...] = field(repr=False)
    files: tuple[Path, ...]


@dataclass(frozen=True)
class TlsFiles:
    """What the front shows its clients: PEM files of a certificate with its chain, and of its key."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class Settings:
    """The settings of this installation.

    Attributes:
        home: FALCON_HOME: data of clusters with bare paths, the embedded database, logs. Absolute.
        entity_defs: FALCON_ENTITY_DEFS: the folder of the entity definitions. Absolute.
        colo: FALCON_COLO: only clusters of this colo; None: all.
        database_url: FALCON_DATABASE_URL: a PostgreSQL instead of the embedded server; None: embedded.
        packs: FALCON_PACKS: the folder of packs of templates. Absolute.
        queues: FALCON_QUEUES: the queues of this location, by name, from a YAML file.
        logins: FALCON_LOGINS: the file that says who may log in, and how. Absolute; None: nobody logs in.
        colos: FALCON_COLOS: the file of the colos that this installation is the one face of. Absolute; None: of none.
        read_only: FALCON_ENTITY_DEFS_READONLY: whether commands may not change the definitions, as they are deployed
            otherwise.
        webserver: FALCON_WEBSERVER_URL: Dagster's webserver, which reloads changed definitions; None: there is none.
        front: FALCON_FRONT_URL: the front, as people reach it, for links to its pages; None: there is none.
        clock: FALCON_CLOCK: the falcon clock; the real time unless simulated. A running clock was started once, for all
            processes with the same ``home``. If FALCON_CLOCK is not set, the clock of the database.
        user: The user of the operating system, not of the environment: gives commands, and is the value of
            ``user()`` where an entity declares no owner.
        superusers: FALCON_SUPERUSERS: users who may change and read every entity, regardless of its ``acl``.
        proxy_users: FALCON_PROXY_USERS: users of the operating system whose processes may act for others.
        jobs: FALCON_JOBS: what jobs launched in Dagster may do; None: not set.
        notification: FALCON_NOTIFICATION_TO and FALCON_NOTIFICATION_ON: receivers and events of entities that declare
            no notification; None: none.
        lineage_retention: FALCON_LINEAGE_RETENTION: how long a version is known after its data was deleted; None: for
            ever.
        master_keys: FALCON_MASTER_KEY and FALCON_MASTER_KEY_FILE: what encrypted values are decrypted with.
        openlineage_url: FALCON_OPENLINEAGE_URL: the service that receives lineage; None: there is none.
        openlineage_key: FALCON_OPENLINEAGE_API_KEY: sent with each request; None: no key.
        openlineage_namespace: FALCON_OPENLINEAGE_NAMESPACE: OpenLineage's namespace of the jobs of this installation.
        tls: FALCON_TLS_CERTIFICATE and FALCON_TLS_KEY: of the front; None: it is served without TLS.
        environ: The environment itself, for values that definitions name (``{env: NAME}``); never printed.
    """

    home: Path
    entity_defs: Path
    colo: str | None
    database_url: str | None = field(repr=False)
    packs: Path
    queues: Mapping[str, Queue]
    logins: Path | None
    colos: Path | None
    read_only: bool
    webserver: str | None
    front: str | None
    clock: Clock
    user: str
    superusers: frozenset[str]
    proxy_users: frozenset[str]
    jobs: frozenset[JobPower] | None
    notification: Notification | None
    lineage_retention: Frequency | None
    master_keys: MasterKeySources
    openlineage_url: str | None
    openlineage_key: str | None = field(repr=False)
    openlineage_namespace: str
    tls: TlsFiles | None
    environ: Mapping[str, str] = field(repr=False)

    def now(self) -> datetime:
        """Returns the present on the configured clock, aware and in UTC."""
        return self.clock.at(datetime.now(UTC))


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Reads the settings, from the process's environment unless another is given.

    Raises:
        SettingsError: a variable is malformed, or the start of a running clock cannot be kept in FALCON_HOME; the text
            names the variable.
    """
    env = os.environ if environ is None else environ
    home = home_folder(env)
    return Settings(
        home=home,
        entity_defs=definitions_folder(env),
        colo=env.get("FALCON_COLO") or None,
        database_url=_database_url(env.get("FALCON_DATABASE_URL")),
        packs=_absolute(env.get("FALCON_PACKS") or "packs"),
        queues=_queues(env.get("FALCON_QUEUES")),
        logins=_file(env.get("FALCON_LOGINS")),
        colos=_file(env.get("FALCON_COLOS")),
        read_only=_switch("FALCON_ENTITY_DEFS_READONLY", env.get("FALCON_ENTITY_DEFS_READONLY")),
        webserver=_webserver(env.get("FALCON_WEBSERVER_URL")),
        front=_front(env.get("FALCON_FRONT_URL")),
        clock=_clock(env.get("FALCON_CLOCK"), home, database_name(env.get("FALCON_DATABASE_URL"))),
        user=os_user(),
        superusers=frozenset(_listed(env.get("FALCON_SUPERUSERS"))),
        proxy_users=frozenset(_listed(env.get("FALCON_PROXY_USERS"))),
        jobs=_jobs(env.get("FALCON_JOBS")),
        notification=_notification(env.get("FALCON_NOTIFICATION_TO"), env.get("FALCON_NOTIFICATION_ON")),
        lineage_retention=_lineage_retention(env.get("FALCON_LINEAGE_RETENTION")),
        master_keys=master_key_sources(env),
        openlineage_url=_openlineage_url(env.get("FALCON_OPENLINEAGE_URL")),
        openlineage_key=(env.get("FALCON_OPENLINEAGE_API_KEY") or "").strip() or None,
        openlineage_namespace=(env.get("FALCON_OPENLINEAGE_NAMESPACE") or "").strip() or "falcon",
        tls=_tls(env.get("FALCON_TLS_CERTIFICATE"), env.get("FALCON_TLS_KEY")),
        environ=env,
    )


def home_folder(environ: Mapping[str, str]) -> Path:
    """Returns FALCON_HOME."""
    return _home(environ.get("FALCON_HOME") or ".falcon")


def definitions_folder(environ: Mapping[str, str]) -> Path:
    """Returns the folder of the entity definitions."""
    return _absolute(environ.get("FALCON_ENTITY_DEFS") or "entity_defs")


def master_key_sources(environ: Mapping[str, str]) -> MasterKeySources:
    """Returns the master keys that are given, and the files with others, none of which is read."""
    files = map(_absolute, _listed(environ.get(MASTER_KEY_FILE)))
    return MasterKeySources(tuple(_listed(environ.get(MASTER_KEY))), tuple(files))


def database_name(url: str | None) -> str:
    """Returns a name for the database of a URL, or for the embedded one; it contains no secret."""
    if not url:
        return "embedded"
    place = url.partition("://")[2].rpartition("@")[2].partition("?")[0]  # without the driver and who connects
    return hashlib.blake2b(place.encode(errors="replace"), digest_size=8).hexdigest()


def libpq_options() -> str:
    """Returns PGOPTIONS, for sessions at a PostgreSQL whose URL has no options."""
    return os.environ.get("PGOPTIONS", "")


def forget_other_servers() -> None:
    """Removes PGHOSTADDR and PGSERVICE from the environment: libpq would follow them, despite the URL."""
    for name in _OTHER_SERVERS:
        os.environ.pop(name, None)


CODE_SERVER_THREADS = ("DAGSTER_GRPC_MAX_WORKERS", "DAGSTER_CODE_SERVER_MAX_WORKERS")
"""Of a code server, and of the one before it, which starts another one when definitions are reloaded."""


def code_server_threads() -> list[int | None]:
    """How many threads Dagster gives both code servers; None: as many as it likes."""
    said = (os.environ.get(name, "") for name in CODE_SERVER_THREADS)
    return [int(one) if one.isdecimal() else None for one in said]


def give_code_servers(threads: int) -> None:
    """Sets the threads of code servers that this process starts, unless the user did."""
    for name in CODE_SERVER_THREADS:
        os.environ.setdefault(name, str(threads))


def write_events_together(number: int) -> None:
    """Sets how many events Dagster writes together, unless the user did."""
    os.environ.setdefault("DAGSTER_EVENT_BATCH_SIZE", str(number))


def environ_of_server() -> dict[str, str]:
    """Returns the environment of a PostgreSQL server: without variables for clients, such as PGPORT."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_OF_LIBPQ)}


def given_token() -> str:
    """Returns FALCON_TOKEN; empty: it is not set."""
    return (os.environ.get("FALCON_TOKEN") or "").strip()


def tokens_file() -> Path:
    """Returns the file of the tokens that ``falcon login`` keeps."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "falcon" / "tokens.json"


def os_user() -> str:
    """Returns the user's name; ``unknown``: the system has none, as for an arbitrary user id in a container."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return "unknown"


def _queues(text: str | None) -> dict[str, Queue]:
    if not (text or "").strip():
        return {}
    import yaml  # noqa: PLC0415 - few installations have queues

    path = _absolute(str(text).strip())
    try:
        return _QUEUES.validate_python(yaml.safe_load(path.read_bytes()))
    except OSError as error:
        raise SettingsError(f"FALCON_QUEUES: {path} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f":{mark.line + 1}" if mark else ""
        raise SettingsError(f"FALCON_QUEUES: {path}{where} is not YAML") from error
    except ValidationError as error:
        (first, *_) = error.errors()
        where = ".".join(map(str, first["loc"])) or "it"
        raise SettingsError(f"FALCON_QUEUES: {path}: {where}: {first['msg']}") from error


def _jobs(text: str | None) -> frozenset[JobPower] | None:
    words = _listed(text)
    known = {word: word for word in get_args(JobPower)}
    if words == [_NOTHING]:
        return frozenset()
    if wrong := [word for word in words if word not in known]:
        raise SettingsError(f"FALCON_JOBS: {wrong[0]!r} is none of {', '.join(known)}; or write {_NOTHING}")
    return frozenset(known[word] for word in words) if words else None


def _tls(certificate: str | None, key: str | None) -> TlsFiles | None:
    if not certificate and not key:
        return None
    if not certificate or not key:
        raise SettingsError("FALCON_TLS_CERTIFICATE and FALCON_TLS_KEY belong together: set both, or neither")
    return TlsFiles(_absolute(certificate), _absolute(key))


def _listed(text: str | None) -> list[str]:
    return [name for part in (text or "").split(",") if (name := part.strip())]


def _notification(receivers: str | None, events: str | None) -> Notification | None:
    names, words = _listed(receivers), _listed(events)
    for word in words:
        if word not in EventKind.__members__:
            raise SettingsError(
                f"FALCON_NOTIFICATION_ON: there is no event {word!r}; there is: {', '.join(EventKind.__members__)}"
            )
    for name in names:
        if not (name.isidentifier() and name.isascii()):
            message = "name environment variables that hold the URLs of receivers, with commas between them"
            raise SettingsError(f"FALCON_NOTIFICATION_TO: {message}")
    if not names:
        return None
    to = tuple(Receiver(url=UrlVariable(env=name)) for name in names)
    return Notification(on=tuple(map(EventKind, words)) or USUAL, to=to)


def _clock(text: str | None, home: Path, database: str) -> Clock:
    stripped = (text or "").strip()
    if not stripped:
        return home_clock(home, database) or Clock()
    try:
        clock = Clock.parse(stripped, datetime.now(UTC))
    except ExpressionError as error:
        raise SettingsError(f"FALCON_CLOCK: {error}") from error
    return replace(clock, started=shared_start(home, stripped, database)) if clock.runs else clock


def _home(folder: str) -> Path:
    """The path is written to files of PostgreSQL, Spark and this package, one per line and as UTF-8."""
    home = _absolute(folder)
    if not str(home).isprintable():
        raise SettingsError(f"FALCON_HOME {str(home)!r} has characters that cannot be printed: choose another path")
    return home


def _absolute(folder: str) -> Path:
    return Path(folder).expanduser().absolute()


def _file(name: str | None) -> Path | None:
    given = (name or "").strip()
    return _absolute(given) if given else None


def _switch(name: str, text: str | None) -> bool:
    word = (text or "").strip().lower()
    if word not in ("", "0", "false", "no", "1", "true", "yes"):
        raise SettingsError(f"{name} is {text!r}: write true or false")
    return word in ("1", "true", "yes")


def _lineage_retention(text: str | None) -> Frequency | None:
    try:
        return Frequency.parse(text) if text else None
    except ExpressionError as error:
        raise SettingsError(f"FALCON_LINEAGE_RETENTION: {error}") from error


def _webserver(url: str | None) -> str | None:
    """Unset: that of ``dagster dev``; empty: there is none."""
    address = WEBSERVER if url is None else url.strip().rstrip("/")
    if address and not address.startswith(("http://", "https://")):
        raise SettingsError(f"FALCON_WEBSERVER_URL must be an http URL, such as {WEBSERVER}")
    return address or None


def _front(url: str | None) -> str | None:
    address = (url or "").strip().rstrip("/")
    if address and not address.startswith(("http://", "https://")):
        raise SettingsError("FALCON_FRONT_URL must be an http URL, such as https://falcon.example.org")
    return address or None


def _openlineage_url(url: str | None) -> str | None:
    """Without the path of the resource, which the client adds."""
    address = (url or "").strip().rstrip("/").removesuffix("/api/v1/lineage")
    if not address:
        return None
    try:
        split = urlsplit(address)
        is_whole = split.scheme in ("http", "https") and bool(split.hostname) and split.port != 0
    except ValueError:
        is_whole = False
    if not is_whole or split.username or split.password or split.query or split.fragment:
        raise SettingsError(
            "FALCON_OPENLINEAGE_URL must be an http URL without credentials, such as http://marquez:5000: "
            "a key is in FALCON_OPENLINEAGE_API_KEY"
        )
    return address


def _database_url(url: str | None) -> str | None:
    """Names the driver: SQLAlchemy 2.1 uses psycopg 3 for a bare ``postgresql://``."""
    if not url:
        return None
    for scheme in ("postgresql://", "postgres://"):
        if url.startswith(scheme):
            return "postgresql+psycopg2://" + url[len(scheme) :]
    if not url.startswith("postgresql+psycopg2://"):
        raise SettingsError(
            "FALCON_DATABASE_URL must be a PostgreSQL URL: postgresql://user:password@host:port/database"
        )
    return url
