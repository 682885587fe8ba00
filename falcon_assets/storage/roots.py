"""The roots of stores: a mark in each distinguishes a root that is away from one that is empty.

Nothing else could: an unmounted disk shows an empty folder, and a bucket that was made anew looks like any other. The
mark is written at first use and remembered; a root without it is another root.
"""

from __future__ import annotations

import shlex
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from falcon_assets.errors import RootAwayError, StorageError, UnreachableError
from falcon_assets.storage.errors import DISK_FULL, REFUSED, driver_explained
from falcon_assets.storage.files.file_access import FileAccess

MARK = ".falcon-root"
LOOK_SECONDS = 60.0
"""Where a look at the mark is a request, there is at most one in this time, unless asked for; else each path looks."""
NEVER_THERE = "make it, or fix the endpoint or location that names it"
_NOT_THERE = "it is not there"
_UNMARKED_SECONDS = 1.0


@dataclass(frozen=True)
class KnownRoot:
    """The remembered state of a root.

    Attributes:
        mark: None: it carries none, because this installation may not write it.
        held: Whether anything was in it; if it is empty since, it is away, also without a mark.
    """

    mark: str | None
    held: bool = True


Look: TypeAlias = Callable[[KnownRoot | None], KnownRoot | None]


class RootBook(Protocol):
    """Remembers roots, for all processes; None stands for one that was never used."""

    def known(self, cluster: str, place: str) -> KnownRoot | None: ...

    def learn(self, cluster: str, place: str, look: Look) -> KnownRoot | None:
        """Lets one process at a time look at a root, and remembers the result."""

    def has_data(self, cluster: str, begins: str) -> bool: ...

    def moved_from(self, cluster: str, place: str) -> Sequence[str]:
        """Returns the paths at which what is at a place, by its mark, was before."""


@dataclass(frozen=True)
class Root:
    """A root of a cluster's store.

    Attributes:
        begins: Prefix of the recorded places of its content.
        named: Whether commands must name it beside the cluster: it is not the cluster's endpoint.
    """

    cluster: str
    place: str
    shown: str
    begins: str
    path: str
    files: FileAccess = field(repr=False)
    may_mark: bool = True
    named: bool = False

    @property
    def mark_path(self) -> str:
        return f"{self.path.rstrip('/')}/{MARK}"

    def mark(self) -> str | None:
        """Reads the mark; None: there is none. Raises OSError, or anything that the driver raises."""
        self.files.refresh()
        try:
            content: bytes = self.files.fs.cat_file(self.mark_path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return content.decode("ascii", "replace").strip() or None

    def away(self, why: str) -> RootAwayError:
        return RootAwayError(f"cluster {self.cluster!r}: its root {self.shown} is away: {why}: {self.advice}")

    @property
    def advice(self) -> str:
        place = f" {shlex.quote(self.shown)}" if self.named else ""
        return (
            "bring it back (is it mounted?), or, if what is there is the root from now on, run "
            f"falcon admin root adopt {self.cluster}{place}"
        )


class _Seen(NamedTuple):
    stamp: object | None
    at: float
    is_marked: bool


class RootGuard:
    def __init__(self, book: RootBook) -> None:
        self._book = book
        self._seen: dict[tuple[str, str], _Seen] = {}

    def require(self, root: Root, *, claims: bool = False, afresh: bool = False) -> None:
        """Checks that a root is there, or was never used, as :meth:`ClusterStore.require_root`.

        Raises RootAwayError, or UnreachableError if the store does not answer or refuses to say.
        """
        key = root.cluster, root.place
        seen = self._seen.get(key)
        if seen is not None and (seen.is_marked or not claims) and self._is_as_seen(root, seen, afresh):
            return
        with _looked(root, f"look for the root {root.shown}"):
            known = self._known(root, claims)
            stamp = root.files.stamp(root.mark_path) if known and known.mark else None
        self._seen[key] = _Seen(stamp, time.monotonic(), known is not None)

    def adopt(self, root: Root) -> bool:
        """Accepts what is at a root now as the root, marks it if possible, and returns whether that changed anything.

        Raises RootAwayError if nothing is there.
        """
        with driver_explained(root.cluster, f"adopt the root {root.shown}"):
            if not root.files.is_mounted(root.path):
                raise RootAwayError(
                    f"cluster {root.cluster!r}: there is nothing at its root {root.shown} to adopt: bring it back, or "
                    "make an empty one there first"
                )
            before = self._book.known(root.cluster, root.place)
            after = self._book.learn(root.cluster, root.place, lambda known: _adopted(root))
        self._seen.pop((root.cluster, root.place), None)
        return before != after

    def _is_as_seen(self, root: Root, seen: _Seen, afresh: bool) -> bool:
        if seen.stamp is None:
            if afresh:
                return False
            is_lasting = root.files.looks_by_request and (seen.is_marked or not root.files.marks_at_sight)
            return time.monotonic() - seen.at < (LOOK_SECONDS if is_lasting else _UNMARKED_SECONDS)
        try:
            return root.files.stamp(root.mark_path) == seen.stamp
        except OSError:
            return False  # what that means is found out by the look that follows

    def _known(self, root: Root, claims: bool) -> KnownRoot | None:
        known = self._book.known(root.cluster, root.place)
        if why := why_away(root, known):
            if known is None:
                raise RootAwayError(f"cluster {root.cluster!r}: there is no {root.shown}: {NEVER_THERE}")
            raise root.away(why)
        if known is not None and (known.mark is not None or not root.may_mark):
            return known
        if known is None and root.files.marks_at_sight and _is_bare(root) and self._has_data(root):
            raise root.away("it is empty, and instances are known to be in it")
        if not root.files.is_mounted(root.path):
            return None  # nothing was ever there: it is made when something is written
        return self._book.learn(root.cluster, root.place, lambda found: _first(root, found, claims=claims))

    def knows(self, root: Root, relative: str) -> bool:
        """Whether the ledger has an available instance at or below a path of a root, whether that is there or not.

        Also where the root has been moved since, and has another path.
        """
        begins = (root.begins, *self._book.moved_from(root.cluster, root.place))
        return any(self._book.has_data(root.cluster, f"{one.rstrip('/')}/{relative.strip('/')}") for one in begins)

    def _has_data(self, root: Root) -> bool:
        return self._book.has_data(root.cluster, root.begins)


def why_away(root: Root, known: KnownRoot | None) -> str | None:
    """Decides from the remembered state why a root is away; None: it is not. Marks and remembers nothing."""
    if known is not None and known.mark is not None:
        mark = root.mark()
        return None if mark == known.mark else _not_that(root, known.mark, mark)
    if known is None and root.files.marks_at_sight:
        return None  # nothing was ever there
    if not root.files.is_mounted(root.path):
        return _NOT_THERE
    return "it is empty, and was not before" if known and known.held and root.files.is_empty(root.path) else None


def _not_that(root: Root, known: str, mark: str | None) -> str:
    if mark is not None:
        return f"what is there is another root: it carries the mark {mark} and not {known}"
    if root.files.is_mounted(root.path):
        return f"what is there does not carry its mark ({MARK}), like an empty mount point or a folder made anew"
    return _NOT_THERE


def _is_bare(root: Root) -> bool:
    return not root.files.is_mounted(root.path) or root.files.is_empty(root.path)


def _first(root: Root, known: KnownRoot | None, *, claims: bool) -> KnownRoot | None:
    with suppress(PermissionError):  # who may read some of a bucket need not be let see whether a mark is in it
        if mark := root.mark():
            return KnownRoot(mark)
    if root.may_mark and (claims or root.files.marks_at_sight):
        try:
            return KnownRoot(root.files.put_new(root.mark_path, uuid.uuid4().hex.encode()).decode())
        except OSError as error:
            if error.errno in DISK_FULL:
                return known  # it is marked when there is room again
            if error.errno not in REFUSED and not isinstance(error, PermissionError):
                raise
    with suppress(PermissionError):
        if root.files.is_empty(root.path):
            return known
    return KnownRoot(None) if claims or root.files.marks_at_sight else known


def _adopted(root: Root) -> KnownRoot | None:
    found = _first(root, None, claims=True)
    if found is None or found.mark is None:
        root.files.is_empty(root.path)  # who is refused even that has seen nothing that could be adopted
    return found


@contextmanager
def _looked(root: Root, doing: str) -> Iterator[None]:
    """Raises UnreachableError for any failed look: nothing is known of the content then."""
    try:
        with driver_explained(root.cluster, doing):
            yield
    except StorageError as error:
        if isinstance(error, UnreachableError):
            raise
        raise UnreachableError(str(error)) from error.__cause__
