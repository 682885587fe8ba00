"""Errors of the operating system and of drivers of stores, as messages that users can act on, without secrets."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from falcon_assets.errors import FalconError, StorageError, UnreachableError

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
_REASONS = {
    errno.ENOSPC: "the disk is full: free some space and run it again",
    errno.EDQUOT: "the disk quota is used up: free some space and run it again",
    errno.EXDEV: (
        "the staging location is on another file system than the data, so nothing can be moved in one step: "
        "set locations.staging of the cluster to a folder on the file system of the data"
    ),
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "the file system is mounted read-only",
    errno.ENOLCK: "the file system offers no locks: mount it with locking",
}
CHECK_CREDENTIALS = (
    "check them in storage_options (does the store know them, has a token expired, is the clock right?), and their "
    "permissions"
)
_NOT_PERMITTED = f"the store refuses access with these credentials: {CHECK_CREDENTIALS}"
"""Drivers of object stores say no more than that, by an error without a number."""
_REFUSALS = (401, 403)
_REFUSING = {"AuthenticationException", "BadAuthenticationType", "ClientAuthenticationError", "RefreshError"}
_NOT_A_FOLDER = (errno.ENOTDIR, errno.EEXIST)
_ABOUT_PATHS = {
    *(errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENOENT),
    *(errno.ENAMETOOLONG, errno.EEXIST, errno.EINVAL, errno.EILSEQ),
}


@contextmanager
def explained(cluster: str, doing: str) -> Iterator[None]:
    """Raises a StorageError instead of every OSError of the block; ``doing`` follows "cannot" in its text."""
    try:
        yield
    except OSError as error:
        raise explanation(cluster, doing, error) from error


@contextmanager
def driver_explained(cluster: str, doing: str) -> Iterator[None]:
    """As :func:`explained`, for drivers that raise anything: named, never quoted.

    Refusals become StorageError, other exceptions UnreachableError.
    """
    try:
        with explained(cluster, doing):
            yield
    except FalconError:
        raise
    except Exception as error:
        if is_refusal(error):
            refused = PermissionError()  # as those of S3 say it
            raise explanation(cluster, doing, refused) from refused
        raise UnreachableError(
            f"cluster {cluster!r}: cannot {doing} ({type(error).__name__}): "
            "check the endpoints and their storage_options"
        ) from None


def explanation(cluster: str, doing: str, error: OSError) -> StorageError:
    reason = _REASONS.get(error.errno or 0) or error.strerror or _unnumbered(error)
    if error.errno in _NOT_A_FOLDER:
        reason = "something that is not a folder is where a folder is needed: move it away"
    where = f" ({error.filename})" if error.filename else ""
    return StorageError(f"cluster {cluster!r}: cannot {doing}: {reason}{where}")


def _unnumbered(error: OSError) -> str:
    return _NOT_PERMITTED if is_refusal(error) else type(error).__name__


def is_refusal(error: BaseException) -> bool:
    """Whether a store has answered, in its driver's words, that these credentials may not do that."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, PermissionError) or type(found).__name__ in _REFUSING:
            return True
        if isinstance(found, OSError) and found.errno is None and str(found).startswith("Forbidden"):  # gcsfs
            return True
        if not _statuses(found).isdisjoint(_REFUSALS):
            return True
        found = found.__cause__
    return False


def refuses_credentials(error: StorageError) -> bool:
    """Whether the store refuses the credentials as a whole, and not one path to the user of this process."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno is None and is_refusal(cause)


def _statuses(error: BaseException) -> set[object]:
    answer = getattr(error, "response", None)
    found = [getattr(one, name, None) for one in (error, answer) for name in ("status_code", "status", "code")]
    return {int(one) if isinstance(one, str) and one.isdigit() else one for one in found if isinstance(one, int | str)}


def is_about_path(error: StorageError) -> bool:
    """Whether other paths may be readable all the same; true for our own errors but UnreachableError."""
    cause = error.__cause__
    if cause is None:
        return not isinstance(error, UnreachableError)
    return is_refusal(cause) or (isinstance(cause, OSError) and cause.errno in _ABOUT_PATHS)
