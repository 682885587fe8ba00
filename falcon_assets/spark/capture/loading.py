"""How the listener comes into programs and servers that Spark's scripts start."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from falcon_assets.spark.capture.listener_jar import CaptureError, ListenerJar, on_class_path

INSTANCE = "spark.sql.falcon.instance"
"""The setting of a session, or of a program, that says for what instance its queries are.

Connect's clients hand on what they were started with only where it is one of ``spark.sql``.
"""
NOBODY = "-"
"""What is set there for what is not captured."""
FILE = "spark.falcon.capture.file"
"""Where a program leaves what was captured, when it ends."""
_EXTENSION = "org.apache.spark.sql.falcon.CaptureExtension"
_EXTENSIONS = "spark.sql.extensions"
_SETTING = re.compile(r"\s*([^\s=:#!][^\s=:]*)\s*[=:\s]\s*(.*?)\s*")


@dataclass(frozen=True)
class Loading:
    """What a program or server of Spark is given besides, so that it has the listener; nothing: it runs without.

    Attributes:
        confs: Settings.
        environ: Variables.
    """

    confs: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)


def loading(home: Path | None, environ: Mapping[str, str], confs: Mapping[str, str]) -> Loading:
    """How to load the listener, which is compiled where that was not done yet.

    Extensions that were to be loaded anyhow still are.

    Args:
        home: ``FALCON_HOME``; None: nothing is captured.
        environ: The environment of what is started.
        confs: What it is told besides.
    """
    if home is None:
        return Loading()
    try:
        jar = ListenerJar(home).made(environ)
    except CaptureError as error:
        logging.getLogger(__name__).warning("what workflows read and write is not captured: %s", error)
        return Loading()
    known = confs.get(_EXTENSIONS) or _default(_EXTENSIONS, environ)
    return Loading({_EXTENSIONS: ",".join(filter(None, (known, _EXTENSION)))}, on_class_path(jar, environ))


def _default(key: str, environ: Mapping[str, str]) -> str:
    """The value of a setting in ``spark-defaults.conf``, which a setting on the command line would replace."""
    home = environ.get("SPARK_HOME") or _find_spark_home()
    folder = environ.get("SPARK_CONF_DIR") or str(Path(home, "conf"))
    try:
        lines = Path(folder, "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    found = [match[2] for line in lines if (match := _SETTING.fullmatch(line)) and match[1] == key]
    return found[-1] if found else ""
