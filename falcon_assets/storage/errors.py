"""What the operating system and drivers of stores refuse, said so that a person can mend it, and without secrets."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from falcon_assets.errors import FalconError, StorageError, UnreachableError

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
"""What may not be written, now or later."""
_REASONS = {
    errno.ENOSPC: "the disk is full: free some space and run it again",
    errno.EDQUOT: "the disk quota is used up: free some space and run it again",
    errno.EXDEV: (
        "the staging location is on another file system than the data, so nothing can be moved at once: "
        "set locations.staging of the cluster to a folder on the file system of the data"
    ),
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "the file system is mounted read-only",
    errno.ENOLCK: "the file system offers no locks: mount it with locking",
}
_NOT_PERMITTED = (
    "the store refuses it to these credentials: check them in storage_options (are they known there, has a token "
    "expired, is the clock right?), and what they may do"
)
"""Drivers of object stores say no more than that, by an error without a number."""
_NOT_A_FOLDER = (errno.ENOTDIR, errno.EEXIST)
_ABOUT_PATHS = {
    *(errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENOENT),
    *(errno.ENAMETOOLONG, errno.EEXIST, errno.EINVAL, errno.EILSEQ),
}


@contextmanager
def explained(cluster: str, doing: str) -> Iterator[None]:
    """Turns an ``OSError`` of the block into a sentence.

    Args:
        cluster: Name of the cluster.
        doing: What is being done, after "cannot" (``publish raw/2013/01``).

    Raises:
        StorageError: instead of every ``OSError``.
    """
    try:
        yield
    except OSError as error:
        raise explanation(cluster, doing, error) from error


@contextmanager
def driver_explained(cluster: str, doing: str) -> Iterator[None]:
    """As :func:`explained`, for stores whose drivers raise anything: their other exceptions are named, never quoted.

    Args:
        cluster: Name of the cluster.
        doing: What is being done, after "cannot".

    Raises:
        StorageError: instead of every ``OSError``.
        UnreachableError: instead of every other exception that is not ours.
    """
    try:
        with explained(cluster, doing):
            yield
    except FalconError:
        raise
    except Exception as error:
        raise UnreachableError(
            f"cluster {cluster!r}: cannot {doing} ({type(error).__name__}): "
            "check the endpoints and their storage_options"
        ) from None


def explanation(cluster: str, doing: str, error: OSError) -> StorageError:
    """The sentence that :func:`explained` raises, for a loop that does many thousands of things."""
    reason = _REASONS.get(error.errno or 0) or error.strerror or _unnumbered(error)
    if error.errno in _NOT_A_FOLDER:
        reason = "something that is not a folder is where a folder is needed: move it away"
    where = f" ({error.filename})" if error.filename else ""
    return StorageError(f"cluster {cluster!r}: cannot {doing}: {reason}{where}")


def _unnumbered(error: OSError) -> str:
    return _NOT_PERMITTED if isinstance(error, PermissionError) else type(error).__name__


def is_about_path(error: StorageError) -> bool:
    """Whether a store refused something of one path, so that others on it may well be readable.

    An error without a cause is: it is what we say ourselves of a path. Anything else that a driver raised is not.
    """
    cause = error.__cause__
    if cause is None:
        return not isinstance(error, UnreachableError)
    return isinstance(cause, PermissionError) or (isinstance(cause, OSError) and cause.errno in _ABOUT_PATHS)
