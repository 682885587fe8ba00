"""Spark Connect: sessions that live in a server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from falcon_assets.compute.spark.endpoints.confs import without_secrets
from falcon_assets.compute.spark.endpoints.server_watch import ServerWatch
from falcon_assets.compute.spark.jvm import spark_environ
from falcon_assets.settings import MASTER_KEY, MASTER_KEY_FILE

_RETRIES = 5
"""Number of retries of a call, which take about 17 seconds."""
OF_CLIENTS = ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_API_MODE")
"""With these variables, of a shell or set by PySpark itself, PySpark connects to another Spark than configured."""
NOT_FOR_PROGRAMS = ("FALCON_DATABASE_URL", "PGPASSWORD", "PGPASSFILE", MASTER_KEY, MASTER_KEY_FILE)
"""Variables that no program of a user inherits."""
CREDENTIAL_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""The token's variable of servers and clients, so that no command line has it (source: Spark's ``Connect.scala``)."""


def is_ready(endpoint: str, seconds: float) -> bool:
    """Whether a server at ``sc://host:port/;token=...;use_ssl=true`` accepts a channel, and its encryption, in time."""
    import grpc  # noqa: PLC0415 - only clusters with a Connect server need these two, and they load pandas
    from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415

    channel = DefaultChannelBuilder(endpoint).toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout=seconds)
    except grpc.FutureTimeoutError:
        return False
    finally:
        channel.close()
    return True


def start_connect(endpoint: str, confs: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder.remote(endpoint)
    for key, value in confs.items():
        builder = builder.config(key, value)
    try:
        session: Any = builder.create()
    except PySparkException:
        _forget_refused()
        raise
    _limit_retries(session)
    session.falcon_watch = ServerWatch(
        partial(is_ready, endpoint), f"the Spark Connect server at {without_secrets(endpoint)}", _close_channel
    )
    session.falcon_watch.add(session)
    return cast(SparkSession, session)


@contextmanager
def connect_child(session: Any) -> Iterator[Any]:
    child = session.cloneSession()
    _limit_retries(child)  # it has Spark's own, ten minutes
    try:
        with session.falcon_watch.watching(child):
            yield child
    finally:
        child.stop()


def interrupt_connect(session: Any) -> None:
    session.falcon_watch.interrupt()


def _close_channel(session: Any) -> None:
    session.client._channel.close()


def _limit_retries(session: Any) -> None:
    from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415 - as above

    session.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])


def _shown(endpoint: str) -> str:
    return endpoint.partition("/;")[0]


def _forget_refused() -> None:
    """Closes a session that a server refused: PySpark keeps it as the active one, and would retry it for minutes."""
    from pyspark.sql.connect.session import SparkSession as ConnectSession  # noqa: PLC0415 - as above

    for session in (ConnectSession.getActiveSession(), ConnectSession._get_default_session()):
        if session is not None:
            session.release_session_on_close = False
            session.stop()


def is_served(session: Any) -> bool:
    """Whether the server answers and knows the session; after a restart, or if it dropped it, it does not."""
    if session.is_stopped or session.falcon_watch.is_gone:
        return False
    try:
        session.conf.get("spark.app.id")
    except Exception:  # of Spark, or of its channel when that was closed
        return False
    return True


def stop_connect(session: Any, endpoint: str, seconds: float) -> None:
    """Releases the session in the server, and resets PySpark's functions to classic sessions."""
    session.falcon_watch.stop()
    session.release_session_on_close = is_ready(endpoint, seconds)
    session.stop()
    leave_connect()


def token_of(session: Any) -> str | None:
    """Returns the session's token for its server; None: the server requires none."""
    token: str | None = session.client.token
    return token


def child_environ(token: str | None) -> dict[str, str]:
    """Returns this process's environment for another Spark program: without Spark's mode and what is secret."""
    kept = {key: value for key, value in os.environ.items() if key not in (*OF_CLIENTS, *NOT_FOR_PROGRAMS)}
    inherited = kept | spark_environ()
    return inherited if token is None else inherited | {CREDENTIAL_VARIABLE: token}


def leave_connect() -> None:
    """Resets PySpark's mode, which it keeps in variables, so that its functions work on a classic session."""
    for name in OF_CLIENTS:
        os.environ.pop(name, None)
