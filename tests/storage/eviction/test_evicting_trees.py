"""Random trees of matching and near-matching paths: what goes is what an oracle says that knows no templates."""

from __future__ import annotations

import os
import re
import uuid
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.errors import StorageError
from falcon_assets.planning.eviction import plan_eviction
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.eviction.evicting import evict
from falcon_assets.storage.instances.stored_instances import stored_instances
from falcon_assets.storage.kinds.kind_of import kind_of
from tests.builders import make_cluster, make_feed
from tests.properties import examples

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
START, END = datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 3, 1, tzinfo=UTC)
NOW, LIMIT = datetime(2013, 2, 1, tzinfo=UTC), timedelta(days=5)
STEP = timedelta(hours=6)
VALIDITY = {"start": "2013-01-01T00:00Z", "end": "2013-03-01T00:00Z"}
EXECUTE = {"endpoint": "local"}


class Layout(NamedTuple):
    """A template, and the same in words that have nothing to do with templates."""

    template: str
    pattern: str
    """Its groups, in the order of ``date``, make up the date."""
    date: str
    prefix: int
    """How many folders belong to the fixed prefix."""


LAYOUTS = [
    Layout("/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}", r"raw/(\d{4})/(\d\d)/(\d\d)/(\d\d)", "YmdH", 1),
    Layout("/${YEAR}/${MONTH}${DAY}/${HOUR}/part", r"(\d{4})/(\d\d)(\d\d)/(\d\d)/part", "YmdH", 0),
    Layout("/a/b/h=${HOUR}/${DAY}.${MONTH}.${YEAR}.json", r"a/b/h=(\d\d)/(\d\d)\.(\d\d)\.(\d{4})\.json", "HdmY", 2),
    Layout("/a/y${YEAR}/${YEAR}-${MONTH}/${DAY}_${HOUR}", r"a/y(\d{4})/(?=\1)\d{4}-(\d\d)/(\d\d)_(\d\d)", "YmdH", 1),
]
STATS = Layout("/stats/${YEAR}-${MONTH}/${DAY}-${HOUR}", r"stats/(\d{4})-(\d\d)/(\d\d)-(\d\d)", "YmdH", 1)


def path_of(layout: Layout, moment: datetime) -> str:
    """The path without the help of the package."""
    text = layout.template.lstrip("/")
    for name, letter in {"YEAR": "Y", "MONTH": "m", "DAY": "d", "HOUR": "H"}.items():
        text = text.replace(f"${{{name}}}", moment.strftime(f"%{letter}"))
    return text


def date_of(layout: Layout, path: str) -> datetime | None:
    found = re.fullmatch(layout.pattern, path, re.ASCII)
    if found is None:
        return None
    try:
        return datetime.strptime(" ".join(found.groups()), " ".join(f"%{letter}" for letter in layout.date)).replace(
            tzinfo=UTC
        )
    except ValueError:
        return None


MOMENTS = st.sampled_from([NOW - LIMIT - 3 * STEP, NOW - LIMIT, NOW + STEP, START, START - STEP, END]) | st.integers(
    -10, 60 * 24
).map(lambda hours: START + timedelta(hours=hours))
SPOILERS = st.sampled_from(
    [
        lambda path, at: path,
        lambda path, at: path,
        lambda path, at: path[:at] + "x" + path[at:],
        lambda path, at: path[:at] + "9" + path[at + 1 :],
        lambda path, at: path[:at] + path[at + 1 :],
        lambda path, at: path[:at] + "٣" + path[at + 1 :],
        lambda path, at: path + ".bak",
        lambda path, at: path + " ",
        lambda path, at: path + "/more",
        lambda path, at: path.rpartition("/")[0] or path,
        lambda path, at: path.upper(),
    ]
)


KINDS = ["folder", "folder", "file", "empty", "inside", "outside", "above"]
"""Above: the folder above is a link out."""


@st.composite
def trees(draw: st.DrawFn) -> tuple[Layout, list[tuple[str, str]]]:
    """A layout, and what is put where: a folder with files, a file, or a link inside or out."""
    layout = draw(st.sampled_from(LAYOUTS))
    entries = []
    for _ in range(draw(st.integers(1, 12))):
        base = path_of(draw(st.sampled_from([layout, layout, STATS])), draw(MOMENTS))
        path = draw(SPOILERS)(base, draw(st.integers(0, len(base) - 1)))
        entries.append((path, draw(st.sampled_from(KINDS))))
    return layout, entries


def build(root: Path, outside: Path, entries: list[tuple[str, str]]) -> None:
    """What cannot be put because something else is in the way is left out."""
    for path, what in entries:
        place = Path(f"{root}/{path}")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            if what == "folder":
                (place / "k=1").mkdir(parents=True)
                (place / "k=1" / "part-0").write_text("data")
                (place / "_SUCCESS").touch()
            elif what == "file":
                place.touch(exist_ok=False)
            elif what == "empty":
                place.mkdir()
            elif what == "above":
                moved = outside / uuid.uuid4().hex
                place.parent.rename(moved)
                place.parent.symlink_to(moved)
            else:
                place.symlink_to(root if what == "inside" else outside)
        except OSError:
            continue


def snapshot(root: Path) -> set[str]:
    """Everything below, links as links."""
    return {
        os.path.relpath(Path(parent, name), root)
        for parent, folders, files in os.walk(root)
        for name in [*folders, *files]
        if not Path(parent).is_relative_to(root / ".falcon") and name != ".falcon"
    }


class Leaving(NamedTuple):
    """A location of an instance that has to go."""

    date: datetime
    kind: str
    path: str


def leaving(root: Path, layout: Layout, action: str) -> list[Leaving]:
    """What is there and has to go, by looking at every single path.

    Archives hold no links: those of these trees lead out, or round in circles, and where a location has one it stays,
    with all that comes after it.
    """
    here = snapshot(root)
    found: dict[datetime, list[Leaving]] = {}
    for kind, place in (("data", layout), ("stats", STATS)):
        for path in sorted(here):
            date = date_of(place, path)
            links = [parent for parent in [Path(path), *Path(path).parents] if (root / parent).is_symlink()]
            if date is None or links or not START <= date < END or (date - START) % STEP or not date < NOW - LIMIT:
                continue
            found.setdefault(date, []).append(Leaving(date, kind, path))
    return [
        one
        for all_of_it in found.values()
        for one in takewhile(lambda one: action == "delete" or not has_links(root / one.path), all_of_it)
    ]


def has_links(folder: Path) -> bool:
    return any((folder / name).is_symlink() for name in snapshot(folder))


def expected(root: Path, layout: Layout, gone: list[Leaving]) -> set[str]:
    """All paths that go with those, emptied folders included."""
    here = snapshot(root)
    going: set[str] = set()
    emptied: set[str] = set()
    for one in gone:
        prefix = (layout if one.kind == "data" else STATS).prefix
        going |= {one.path, *(other for other in here if other.startswith(f"{one.path}/"))}
        emptied |= {str(parent) for parent in Path(one.path).parents if len(parent.parts) > prefix}
    for folder in sorted(emptied, key=len, reverse=True):
        if {other for other in here if other.startswith(f"{folder}/")} <= going:
            going.add(folder)
    return going


def archived(root: Path, gone: list[Leaving]) -> dict[str, bytes]:
    """The files that the archive has to hold then."""
    found = {}
    for one in gone:
        place = f"{one.date:%Y-%m-%d-%H}" + (".stats" if one.kind == "stats" else "")
        if (root / one.path).is_file():
            found[place] = (root / one.path).read_bytes()
        found |= {f"{place}/{name}": content for name, content in files(root / one.path).items()}
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def no_markers(found: dict[str, bytes]) -> dict[str, bytes]:
    """Without Hadoop's markers below an instance, which are no part of it: they are moved along, but not copied."""
    return {name: content for name, content in found.items() if not re.fullmatch(r".+/.+/_SUCCESS", name)}


def fixed_prefix(layout: Layout) -> list[str]:
    """The folders of the prefix, from the top."""
    steps = layout.template.split("/")[1 : 1 + layout.prefix]
    return ["/".join(steps[:depth]) for depth in range(1, len(steps) + 1)]


ACTIONS = {"delete": None, "archive here": "primary", "archive elsewhere": "attic"}


@given(tree=trees(), action=st.sampled_from(list(ACTIONS)))
@examples(250)
def test_what_goes_is_what_the_oracle_says(tree: tuple[Layout, list[tuple[str, str]]], action: str) -> None:
    layout, entries = tree
    with TemporaryDirectory(dir=MEMORY) as folder:
        root, outside = Path(folder, "data", "primary"), Path(folder, "outside")
        archive = Path(folder, "data", ACTIONS[action] or "attic", "archive")
        outside.mkdir()
        (outside / "precious").touch()
        root.mkdir(parents=True)
        build(root, outside, entries)
        before, before_outside = snapshot(root), snapshot(outside)
        gone = leaving(root, layout, action)
        goes, comes = expected(root, layout, gone), archived(root, gone) if action != "delete" else {}

        store = ClusterStore(make_cluster(), Path(folder), {})
        attic = make_cluster(name="attic", interfaces={"write": {"endpoint": "data/attic"}, "execute": EXECUTE})
        target = ClusterStore(attic, Path(folder), {}) if action == "archive elsewhere" else None
        retention = {"limit": "days(5)"}
        if action != "delete":
            retention |= {"action": "archive", "archive_to": "/archive/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
        feed = make_feed(
            frequency="hours(6)",
            locations={"data": layout.template, "stats": STATS.template},
            clusters=[{"name": "primary", "validity": VALIDITY, "retention": retention}],
        )
        if any((root / above).is_symlink() for place in (layout, STATS) for above in fixed_prefix(place)):
            with pytest.raises(StorageError, match="leaves the root"):
                stored_instances(store, feed)
            return
        found = stored_instances(store, feed)
        verdicts = plan_eviction(InstancePaths(feed, store.cluster), found, NOW)
        refused = [one.error for one in evict(store, verdicts, "_SUCCESS", target) if one.error]
        assert action != "delete" or refused == []
        kind_of(store).purge(patience=0)
        here = {name for name in snapshot(root) if not f"{name}/".startswith("archive/")}
        assert (before - here, here - before) == (goes, set())
        assert snapshot(outside) == before_outside
        assert no_markers(files(archive)) == no_markers(comes)
        if not refused:
            assert list(evict(store, verdicts, "_SUCCESS", target)) == [
                (verdict.instance.nominal, 0, 0, None) for verdict in verdicts if verdict.action != "keep"
            ]
