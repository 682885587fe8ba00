"""Spark Connect: sessions that live in a server."""

from __future__ import annotations

import os
from typing import Any, cast

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from falcon_assets.spark.jvm_environ import utf8_locale

_RETRIES = 5
"""How often a call of the session itself is tried again when the server is away: for about 17 seconds."""
_MODE = "SPARK_CONNECT_MODE_ENABLED"
CREDENTIAL_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""Where servers and clients look for the token, so that no command line has it (source: Spark's ``Connect.scala``)."""


def is_ready(endpoint: str, seconds: float) -> bool:
    """Whether a server at ``sc://host:port/;token=...;use_ssl=true`` takes a channel, encryption and all, in time."""
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
    """A new session of the server; of ``confs``, what a server does not let a client set stays as the server has it."""
    from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415 - as above

    builder = SparkSession.builder.remote(endpoint)
    for key, value in confs.items():
        builder = builder.config(key, value)
    try:
        session: Any = builder.create()
    except PySparkException:
        _forget_refused()
        raise
    session.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])  # children get Spark's own, ten minutes
    return cast(SparkSession, session)


def _forget_refused() -> None:
    """Closes the session that a server refused: PySpark keeps it as the active one, and would ask it for minutes."""
    from pyspark.sql.connect.session import SparkSession as ConnectSession  # noqa: PLC0415 - as above

    for session in (ConnectSession.getActiveSession(), ConnectSession._get_default_session()):
        if session is not None:
            session.release_session_on_close = False
            session.stop()


def is_served(session: Any) -> bool:
    """Whether the server is there and still knows the session; one that was restarted, or dropped it, does not."""
    if session.is_stopped:
        return False
    try:
        session.conf.get("spark.app.id")
    except PySparkException:
        return False
    return True


def stop_connect(session: Any, endpoint: str, seconds: float) -> None:
    """Gives the session back to the server, and PySpark's functions back to classic sessions."""
    session.release_session_on_close = is_ready(endpoint, seconds)
    session.stop()
    leave_connect()


def token_of(session: Any) -> str | None:
    """The token that the session shows to its server; None where the server wants none."""
    token: str | None = session.client.token
    return token


def child_environ(token: str | None) -> dict[str, str]:
    """This process's environment for another Spark program, which has a mode of its own and may need a token."""
    inherited = {key: value for key, value in os.environ.items() if key != _MODE} | utf8_locale()
    return inherited if token is None else inherited | {CREDENTIAL_VARIABLE: token}


def leave_connect() -> None:
    """Lets PySpark's functions work on a classic session again: it keeps its mode in a variable of the process."""
    os.environ.pop(_MODE, None)
