"""What the log of a program says about why it failed, in a few lines; the log itself has hundreds."""

from __future__ import annotations

import re

from falcon_assets.spark.failures import python_failure

_LINES = 5
_WIDTH = 500
_TRACEBACK = "Traceback (most recent call last):"
_MAIN = re.compile(r'^Exception in thread "[^"]*" (.*)')
_CAUSE = re.compile(r"^Caused by: (.*)")
_THROWN = re.compile(r"^(?:[a-z_$][\w$]*\.)+[A-Z][\w$]*(?:: |$)")
_NOISE = re.compile(
    r"\s*$|\d\d/\d\d/\d\d \d\d:\d\d:\d\d |\s+at |\s+\.\.\. \d+ more|\s*[~^]+\s*$|SQLSTATE: "
    r"|WARNING: |NOTE: Picked up|Picked up |Using Spark's |Setting (?:Spark|default) log level|To adjust logging level"
)
"""What Java and Spark say of themselves, and stacks."""


def cause_in(log: str) -> list[str]:
    """The lines of the log of a failed program that say why, five at most; none where it says nothing.

    They are the last exception of Python with the program's own line, or the exception that ended a JVM's program and
    its innermost cause; and without either the last lines that are the program's own words.
    """
    lines = log.splitlines()
    said: list[str] = []
    last = max((at for at, line in enumerate(lines) if line == _TRACEBACK), default=None)
    if last is not None:
        end = next((at for at in range(last + 1, len(lines)) if lines[at] and not lines[at][0].isspace()), None)
        if end is not None:
            said.append(python_failure("\n".join(lines[last : end + 1])))
            lines = lines[end + 1 :]
    elif (main := max((at for at, line in enumerate(lines) if _MAIN.match(line)), default=None)) is not None:
        said += [match[1] for match in [_MAIN.match(lines[main]), *_causes(lines[main:])] if match]
        return [line[:_WIDTH] for line in said]
    own = [line for line in lines if not _NOISE.match(line) and not (said and _is_thrown(line))]
    return [line[:_WIDTH] for line in [*said, *own[-1 if said else -_LINES :]]]


def _causes(lines: list[str]) -> list[re.Match[str]]:
    return [match for match in map(_CAUSE.match, lines) if match][-1:]


def _is_thrown(line: str) -> bool:
    """Whether it belongs to a stack: an exception of Java, a frame or an exception of Python in it."""
    return bool(
        line[0].isspace() or _CAUSE.match(line) or _THROWN.match(line) or re.match(r"\w+(Error|Exception)\b", line)
    )
