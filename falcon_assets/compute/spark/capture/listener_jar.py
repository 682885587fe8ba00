"""The compiled listener: made once per version of PySpark, with the compiler that PySpark contains."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import pyspark
from pyspark.find_spark_home import _find_spark_home

from falcon_assets.base.file_locks import who_locks
from falcon_assets.compute.spark.jvm import require_java, utf8_locale
from falcon_assets.errors import FalconError, SettingsError
from falcon_assets.storage.files.path_lock import path_lock

_COMPILE_SECONDS = 180.0
_SAID = 2000


class CaptureError(FalconError): ...


@dataclass(frozen=True)
class ListenerJar:
    home: Path

    @cached_property
    def path(self) -> Path:
        contents = sha256(b"\0".join(source.read_bytes() for source in _sources())).hexdigest()
        return self.home / "spark" / f"capture-{pyspark.__version__}-{contents[:12]}.jar"

    @property
    def problem(self) -> str:
        """Why there is no jar: the error of the last attempt to make it; empty: it was made, or never tried."""
        if os.pathsep in str(self.path):
            return f"no class path can name {self.path}, which holds {os.pathsep!r}: choose another FALCON_HOME"
        try:
            return self.log.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""

    def made(self, environ: Mapping[str, str]) -> Path:
        """Returns the jar, compiled if missing, while others wait; raises CaptureError, but the next call retries."""
        if os.pathsep in str(self.path):
            raise CaptureError(self.problem)
        if self.path.exists():
            return self.path
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with path_lock(self.path.with_suffix(".lock"), _COMPILE_SECONDS) as held:
                if not held:
                    lock = self.path.with_suffix(".lock")
                    raise CaptureError(f"{who_locks(lock)} compiles {self.path} and does not end: end it")
                if not self.path.exists():
                    self._make(environ)
        except OSError as error:
            raise CaptureError(f"{self.path} cannot be made: {error.strerror or error}") from error
        return self.path

    @property
    def log(self) -> Path:
        return self.path.with_suffix(".log")

    def _make(self, environ: Mapping[str, str]) -> None:
        try:
            with tempfile.TemporaryDirectory(prefix="capture-", dir=self.path.parent) as folder:
                made = Path(folder, self.path.name)
                _compile(made, environ)
                made.replace(self.path)
        except CaptureError as error:
            self.log.write_text(str(error), encoding="utf-8")
            raise
        self.log.unlink(missing_ok=True)


def _sources() -> list[Path]:
    return sorted(Path(__file__).with_name("scala").glob("*.scala"))


def _compile(jar: Path, environ: Mapping[str, str]) -> None:
    try:
        java, _ = require_java(environ)
    except SettingsError as error:
        raise CaptureError(str(error)) from error
    jars = Path(_find_spark_home(), "jars")
    # One compiler thread of the JVM: it does not live long enough for the better one.
    command = [java, "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", "scala.tools.nsc.Main"]
    command += ["-nowarn", "-usejavacp", "-encoding", "UTF-8", "-d", str(jar), *map(str, _sources())]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_COMPILE_SECONDS,
            check=False,
            env={**environ, **utf8_locale()},
        )
    except subprocess.TimeoutExpired:
        raise CaptureError(f"Scala's compiler did not end within {_COMPILE_SECONDS:.0f} seconds") from None
    if done.returncode != 0 or not jar.exists():
        said = (done.stdout + done.stderr).strip()[:_SAID]
        raise CaptureError(f"Scala's compiler in {jars} failed with PySpark {pyspark.__version__}: {said}")


def on_class_path(jar: Path, environ: Mapping[str, str]) -> dict[str, str]:
    known = environ.get("SPARK_DIST_CLASSPATH")
    return {"SPARK_DIST_CLASSPATH": os.pathsep.join(filter(None, (known, str(jar))))}


INSTANCE = "spark.sql.falcon.instance"
"""Key of the instance that queries belong to; Connect's clients pass on initial settings only below ``spark.sql``."""
NOBODY = "-"
FILE = "spark.falcon.capture.file"
_EXTENSION = "org.apache.spark.sql.falcon.CaptureExtension"
_EXTENSIONS = "spark.sql.extensions"
_SETTING = re.compile(r"\s*([^\s=:#!][^\s=:]*)\s*[=:\s]\s*(.*?)\s*")


@dataclass(frozen=True)
class Loading:
    """Settings and variables that load the listener into a program or server of Spark; empty: without it."""

    confs: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)


def loading(home: Path | None, environ: Mapping[str, str], confs: Mapping[str, str]) -> Loading:
    """Returns what loads the listener, compiled if missing, beside other extensions; ``home`` None: nothing."""
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
    home = environ.get("SPARK_HOME") or _find_spark_home()
    folder = environ.get("SPARK_CONF_DIR") or str(Path(home, "conf"))
    try:
        lines = Path(folder, "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    found = [match[2] for line in lines if (match := _SETTING.fullmatch(line)) and match[1] == key]
    return found[-1] if found else ""
