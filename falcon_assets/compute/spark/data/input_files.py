"""Files of inputs as Spark lists them: all data files, and no availability flags."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

from falcon_assets.compute.spark.data.dataset import InputData
from falcon_assets.errors import WorkflowError
from falcon_assets.model.feed import Feed
from falcon_assets.storage.instances.data_files import is_hidden, shown

_GLOB_OPTION = "pathGlobFilter"


def flag_options(feed: Feed, *, of_feed: bool = True) -> dict[str, str]:
    """Returns the reader options with which Spark does not take the feed's availability flag for data.

    Spark skips hidden files (``_SUCCESS``) by itself. Any other flag (``DONE``) is excluded by a glob, because that
    costs no listing and also works where this machine cannot read the files. ``of_feed``: with the feed's own options;
    raises WorkflowError if their ``pathGlobFilter`` matches the flag.
    """
    flag = feed.availability_flag
    if flag is None or is_hidden(flag):
        return {}
    own = next((value for key, value in feed.options.items() if key.lower() == _GLOB_OPTION.lower()), None)
    if own is None or not of_feed:
        return {_GLOB_OPTION: everything_but(flag)}
    if fnmatchcase(flag, own):
        raise WorkflowError(
            f"feed {feed.name!r}: the option {_GLOB_OPTION} {own!r} also matches the availability flag {flag!r}, "
            "which is not data: narrow it"
        )
    return {}


def everything_but(name: str) -> str:
    """Returns a Hadoop glob for every file name except ``name``: its globs can negate characters, but not words."""
    ways = [f"{name}?*"]
    for index, character in enumerate(name):
        start = name[:index]
        ways.append(f"{_literal(start)}[^{_literal(character)}]*")
        if start:
            ways.append(_literal(start))
    ways[0] = f"{_literal(name)}?*"
    return "{" + ",".join(ways) + "}"


def _literal(text: str) -> str:
    return "".join(character if character.isalnum() or character == "_" else f"\\{character}" for character in text)


_PATTERN = re.compile(r"[{}\[\]*?\\]")
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?")


def literal(url: str) -> str:
    """Returns ``url`` without patterns for Spark's readers; raises WorkflowError if Hadoop cannot express it."""
    utf8(url)
    if _PATTERN.search(url) and ":" in path_of(url):
        # Hadoop's Globber makes a relative path of each step, and takes what stands before a colon for a scheme.
        raise WorkflowError(
            f"{url}: Spark cannot read a path that holds a colon and one of {{ }} [ ] * ? \\ as well: rename a folder"
        )
    return _PATTERN.sub(r"\\\g<0>", url)


def utf8(url: str) -> str:
    """Returns ``url``; raises WorkflowError if it is not UTF-8, so that a JVM cannot open it."""
    try:
        url.encode()
    except UnicodeEncodeError:
        raise WorkflowError(f"{shown(url)}: Spark cannot read a path that is not UTF-8: rename the folder") from None
    return url


def path_of(url: str) -> str:
    """Returns the path of a URL as in :class:`.InputData`: unchanged, with nothing escaped."""
    return "/" + "/".join(steps_of(_SCHEME.sub("", url)))


def path_of_file(url: str) -> str:
    """Returns the path of a file as Spark lists it: an escaped URL, whose name Java decoded as UTF-8."""
    return os.fsdecode(unquote(path_of(url), errors="surrogateescape").encode("utf-8", "surrogateescape"))


def steps_of(path: str) -> list[str]:
    return [step for step in path.split("/") if step]


_SHOWN = 5
_UNREADABLE = "[FAILED_READ_FILE"
_FILTERS = ("pathglobfilter", "modifiedbefore", "modifiedafter")


def require_counted(spark: SparkSession, data: InputData, layout: Mapping[str, str], frame: DataFrame) -> None:
    """Compares the files that ``frame``, unfiltered, reads with those that were counted of each instance.

    Files that were added or deleted since then are no difference: the instance is recorded with the counted version,
    and found as late data. Empty files are ignored.

    Raises:
        WorkflowError: they differ; names some files, and the reason if known.
        PySparkException: the folders cannot be listed.
    """
    if not data.counted:
        return
    # A feed's own filters may leave out what they like. Connect keeps the plan of a frame that was asked for its files,
    # so the folders are listed, and a schema inferred, once for this and for all that is computed from it.
    own = any(key.lower() in _FILTERS for key in data.feed.options)
    _require_same(data, listed_by_spark(spark, data, layout) if own else _input_files(spark, frame))


def require_visible(spark: SparkSession, data: InputData) -> None:
    """As :func:`require_counted`, for a program that reads the files itself."""
    if data.counted:
        _require_same(data, listed_by_spark(spark, data, {"recursiveFileLookup": "true"}))


def require_names(data: InputData) -> None:
    """Raises WorkflowError for counted files whose names no JVM can open; needs no Spark."""
    for url, counted in zip(data.urls, data.counted, strict=False):
        wrong = sorted(name for name, size in counted.sizes.items() if size and not _is_utf8(name))
        if wrong:
            raise _refused(data, url, wrong, [], counted.sizes)


def _require_same(data: InputData, urls: Iterable[str]) -> None:
    read = _by_instance(data, urls)
    for url, counted in zip(data.urls, data.counted, strict=True):
        seen = read[path_of(url)]
        if _difference(seen, counted.sizes) and (differ := _difference(seen, now := counted.listed_now())):
            raise _refused(data, url, *differ, now)


def listed_by_spark(spark: SparkSession, data: InputData, layout: Mapping[str, str]) -> list[str]:
    options = {**layout, **flag_options(data.feed, of_feed=False)}
    frame = spark.read.format("binaryFile").options(**options).load([literal(url) for url in data.urls])
    return _input_files(spark, frame)


def input_of_failure(inputs: Iterable[InputData], text: str) -> InputData | None:
    """Returns the input with the file that Spark reports as unreadable; None: the text reports none."""
    if _UNREADABLE not in text:
        return None
    decoded = unquote(text)
    found = [(len(path), data) for data in inputs for path in map(path_of, data.urls) if f"{path}/" in decoded]
    return max(found, key=lambda one: one[0])[1] if found else None


def relative_names(data: InputData, urls: Iterable[str]) -> Iterator[str]:
    for names in _by_instance(data, urls).values():
        yield from names


def _input_files(spark: SparkSession, frame: DataFrame) -> list[str]:
    if _is_connect(frame):
        return frame.inputFiles()
    # As one text, by a library that Spark brings: a call for each of 50,000 names would take seconds.
    jvm: Any = spark.sparkContext._jvm
    mapper = jvm.com.fasterxml.jackson.databind.ObjectMapper()
    files: list[str] = json.loads(mapper.writeValueAsString(frame._jdf.inputFiles()))
    return files


def _is_connect(frame: DataFrame) -> bool:
    return not hasattr(frame, "_jdf")


def _by_instance(data: InputData, urls: Iterable[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {path_of(url): set() for url in data.urls}
    depths = sorted({one.count("/") + 1 for one in found}, reverse=True)  # members of a roll-up may differ
    for url in urls:
        steps = path_of_file(url).split("/")
        depth = next((one for one in depths if "/".join(steps[:one]) in found), depths[-1])
        instance, relative = "/".join(steps[:depth]), "/".join(steps[depth:])
        if not is_hidden(steps[-1]):
            found.setdefault(instance, set()).add(relative)
    return found


def _difference(seen: set[str], sizes: Mapping[str, int]) -> tuple[list[str], list[str]] | None:
    missed = sorted(name for name, size in sizes.items() if size and name not in seen)
    added = sorted(seen - sizes.keys())
    return (missed, added) if missed or added else None


def _refused(data: InputData, url: str, missed: list[str], added: list[str], sizes: Mapping[str, int]) -> WorkflowError:
    said = []
    if missed:
        reasons = dict.fromkeys(_reason(data, name or path_of(url)) for name in missed)
        said.append(
            f"Spark does not read {len(missed)} of the {len(sizes)} files in {shown(url)}: {_few(missed, url)}"
            f"{''.join(f'; {reason}' for reason in reasons if reason)}"
        )
    if added:
        said.append(f"Spark also reads files that are not data files of {shown(url)}: {_few(added, url)}")
    return WorkflowError(f"input {data.name!r} (feed {data.feed.name!r}): {'; '.join(said)}")


def _few(names: list[str], url: str) -> str:
    texts = [shown(name or path_of(url)) for name in names[:_SHOWN]]
    return ", ".join(texts) + (f" ... and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _is_utf8(name: str) -> bool:
    try:
        os.fsencode(name).decode()
    except UnicodeDecodeError:
        return False
    return True


def _reason(data: InputData, name: str) -> str:
    if not _is_utf8(name):
        return "a name that is not UTF-8 cannot be opened by any JVM: rename the file"
    if not name.isascii():
        return "the JVM of Spark does not run in a UTF-8 locale: start it with LC_ALL=C.UTF-8"
    base = name.rpartition("/")[2]
    if base == data.feed.availability_flag:
        return f"Spark leaves out every file that is named like the availability flag {base}: rename the file"
    if is_hidden(base):
        return "Spark treats files with such a name as hidden: rename it"
    own = [key for key in data.feed.options if key.lower() in ("recursivefilelookup", "basepath")]
    return f"the feed's option {own[0]} excludes them: remove it" if own else ""
