"""The page of a graph: nothing beside it, names are text, and a person can move, zoom, filter and click it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from html import unescape
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from falcon_assets.errors import UsageError
from falcon_assets.features.lineage.asking import Lineage
from falcon_assets.features.lineage.graph import Edge, Graph
from falcon_assets.features.lineage.lifecycle_operations import VersionLifecycle
from falcon_assets.features.lineage.metadata import MetadataNode, Relation
from falcon_assets.features.lineage.page import LARGEST, page_of
from falcon_assets.features.lineage.places import place_id, places_read
from falcon_assets.history.events.data_version import Version
from falcon_assets.planning.version_columns import OutputColumn, OutputColumns, VersionStatus
from tests.features.lineage.lineage_rows import T

ODD = "</script><script>window.top.owned = 1</script><img src=x onerror=window.top.owned=1> ü \udcff"


PLANS = {
    "sums": OutputColumns((OutputColumn("total", "int", (("feed-0", "amount"),)),), (("feed-0", "day"),)),
    "shares": OutputColumns(
        (
            OutputColumn("share", "double", (("feed-1", "total"),)),
            OutputColumn("guess", "int", (), is_opaque=True),
            OutputColumn(ODD, "int", (("feed-0", "amount"),)),
        ),
        (),
    ),
}


def lineage(count: int, column: str | None = None, **first: Any) -> Lineage:
    """Versions of which each was made from two before it; the first as it is said."""
    versions = {
        number: Version(
            *("primary", f"feed-{number % 7}", T + timedelta(hours=number), f"v{number}"),
            number=number,
            status=VersionStatus.AVAILABLE if number % 3 else VersionStatus.EVICTED,
            process="add-up",
            run_id=f"run-{number}",
            plan={1: "sums", 3: "shares"}.get(number),
        )
        for number in range(count)
    }
    versions[0] = replace(versions[0], **first)
    pairs = {(number, (number - 1) // back) for number in range(1, count) for back in (2, 3)}
    edges = [Edge(output, read, "add-up", "run", 1, declared=output % 5 > 0) for output, read in sorted(pairs)]
    return Lineage(versions[0], None, VersionLifecycle("initial", None), Graph(versions, edges), 0, PLANS, column)


class Elements(HTMLParser):
    """The names of all attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes |= {name for name, _ in attrs}


def test_the_page_is_alone_and_names_are_no_script() -> None:
    page = page_of(lineage(3, version=ODD, path=ODD))
    assert page.isascii()
    assert page.count("<script") == page.count("</script>") == 2
    assert "<img" not in page
    elements = Elements()
    elements.feed(page)
    assert elements.attributes.isdisjoint({"src", "href", "style", "onclick", "onerror"})
    assert not re.search(r"url\((?!#)|@import|fetch|XMLHttp", page)
    data = json.loads(page.split('type="application/json">')[1].split("</script>")[0])
    assert (data["nodes"][0]["path"], len(data["edges"])) == (ODD, 2)
    assert data["nodes"][0]["lifecycle_status"] == "initial"


def test_a_page_about_a_column() -> None:
    page = page_of(lineage(4, column="amount"))
    data = json.loads(page.split('type="application/json">')[1].split("</script>")[0])
    assert (data["column"], data["nodes"][3]["plan"]) == ("amount", "shares")
    assert data["plans"]["sums"] == PLANS["sums"].as_data()


RELATIONS = [
    Relation("primary/feed-3/2013-01-01T03:00Z@v3", MetadataNode("feed", "feed-3"), "instance-of"),
    Relation("feed:feed-3", MetadataNode("owner", ODD), "owned-by"),
]


def test_a_page_with_metadata() -> None:
    page = page_of(replace(lineage(4), metadata=RELATIONS))
    data = json.loads(page.split('type="application/json">')[1].split("</script>")[0])
    assert [one["id"] for one in data["nodes"][4:]] == ["feed:feed-3", f"owner:{ODD}"]
    assert data["edges"][-2:] == [[3, 4, "instance-of"], [4, 5, "owned-by"]]


def test_more_than_anybody_can_look_at() -> None:
    with pytest.raises(UsageError, match=r"5,001 versions are too many for a page, which shows 5,000"):
        page_of(lineage(LARGEST + 1))


DRIVER = """<!DOCTYPE html><meta charset="utf-8"><pre id="seen"></pre>
<iframe src="/page.html" style="width: 1200px; height: 700px" onload="drive(this)"></iframe>
<script>
function drive(frame) {
  const page = frame.contentWindow, find = (query) => page.document.querySelector(query);
  const all = (query) => page.document.querySelectorAll(query).length;
  const view = () => find("#graph > g").getAttribute("transform");
  const pointer = (where, type, x, y) =>
    where.dispatchEvent(new page.PointerEvent(type, { clientX: x, clientY: y, bubbles: true, pointerId: 1 }));
  find("#open").click();
  const seen = { nodes: all(".node"), edges: all(".edge"), count: find("#count").value, title: page.document.title };
  seen.opened = find("#details h2").textContent;
  seen.shown = [find(".node.chosen"), find("#graph")].map((one) => one.getBoundingClientRect().width > 10);

  const views = [view()], svg = find("#graph");
  svg.dispatchEvent(new page.WheelEvent("wheel", { deltaY: -200, clientX: 300, clientY: 300, cancelable: true }));
  views.push(view());
  pointer(svg, "pointerdown", 300, 300);
  pointer(svg, "pointermove", 340, 320);
  pointer(svg, "pointerup", 340, 320);
  views.push(view());
  find("#fit").click();
  views.push(view());
  seen.views = new Set(views).size;

  const those = (query) => [...page.document.querySelectorAll(query)];
  const first = (id) => id.startsWith("primary/feed-0/2013-01-01T00:00Z@");
  const isOf = (id, number) => (number ? id.endsWith("@v" + number) : first(id));
  const named = (number) => those(".node").find((one) => isOf(one.dataset.id, number));
  const filter = find("#filter");
  const sift = (text) => { filter.value = text; filter.dispatchEvent(new page.Event("input")); };
  sift("FEED-3 run-10");
  seen.filtered = [find("#count").value, all(".node:not(.filtered)"), all(".edge:not(.filtered)")];
  filter.dispatchEvent(new page.KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  seen.first = find("#details h2").textContent;
  sift("");
  find("#status").value = "EVICTED";
  find("#status").dispatchEvent(new page.Event("change"));
  seen.evicted = all(".node:not(.filtered)");

  const columns = () => those("#details .column");
  const follow = (name) => {
    columns().find((one) => one.textContent.startsWith(name)).click();
    return [0, 1, 2, 3].map((one) => named(one).querySelector("text.more").textContent);
  };
  const click = (number) => {
    pointer(named(number), "pointerdown", 10, 10);
    pointer(named(number), "pointerup", 10, 10);
    named(number).dispatchEvent(new page.MouseEvent("click", { bubbles: true }));
  };
  click(0);
  seen.columns = columns().map((one) => one.textContent);
  seen.amount = follow("amount");
  seen.day = follow("day");
  click(3);
  seen.share = follow("share");
  seen.followed = those(".followed").map((one) => one.textContent);

  click(1999);
  seen.details = find("#details").textContent;
  seen.chosen = find(".chosen").dataset.id;
  seen.related = all(".node:not(.unrelated)");
  find("#details button").click();
  seen.input = find(".chosen").dataset.id;
  page.dispatchEvent(new page.KeyboardEvent("keydown", { key: "Escape" }));
  seen.closed = all(".chosen");
  const owner = those(".node").find((one) => one.dataset.id.startsWith("owner:"));
  if (owner) owner.dispatchEvent(new page.KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  seen.owner = find("#details").textContent;
  seen.owned = [window.owned, page.owned].some(Boolean);
  document.getElementById("seen").textContent = JSON.stringify(seen);
}
</script>"""


GROUPS = """<!DOCTYPE html><meta charset="utf-8"><pre id="seen"></pre>
<iframe src="/page.html" style="width: 1200px; height: 700px" onload="drive(this)"></iframe>
<script>
function drive(frame) {
  const page = frame.contentWindow, find = (query) => page.document.querySelector(query);
  const those = (query) => [...page.document.querySelectorAll(query)];
  const texts = (query) => those(query).map((one) => one.textContent);
  const scale = () => Number(find("#graph > g").getAttribute("transform").match(/scale\\((.+)\\)/)[1]);
  const group = (feed) => those(".node.group").find((one) => one.querySelector(".name").textContent === feed);
  const pressed = (key) => new page.KeyboardEvent("keydown", { key, bubbles: true });
  const press = (key) => page.document.activeElement.dispatchEvent(pressed(key));
  const isShown = () => {
    const [box, all] = [page.document.activeElement, find("#graph")].map((one) => one.getBoundingClientRect());
    return box.left >= all.left && box.right <= all.right && box.top >= all.top && box.bottom <= all.bottom;
  };
  const seen = { first: those(".node").length, scale: scale(), names: texts(".node.group .name") };
  seen.lines = [...group("clean").querySelectorAll("text")].map((one) => one.textContent);
  seen.edges = texts(".summary");
  frame.focus();
  group("clean").focus();
  press("ArrowRight");
  seen.right = page.document.activeElement.querySelector(".name").textContent;
  press("ArrowLeft");
  press("Enter");
  seen.parts = texts(".node.group .name").filter((one) => one === "clean").length;
  seen.focus = [page.document.activeElement.querySelector(".name").textContent, isShown()];
  press("Enter");
  seen.versions = [those(".node:not(.group)").length, page.document.activeElement.dataset.id, isShown()];
  press("Enter");
  seen.details = texts("#details .close");
  press("-");
  seen.closed = [those(".node").length, page.document.activeElement.querySelector(".name").textContent, isShown()];
  const filter = find("#filter");
  filter.value = "clean v1501";
  filter.dispatchEvent(new page.Event("input"));
  seen.matches = [texts("#details button"), group("raw").querySelector(".more").textContent];
  seen.matching = those(".node:not(.filtered)").length;
  filter.dispatchEvent(new page.KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  seen.found = [find(".chosen").dataset.id, those(".node").length, find("#details h2").textContent];
  filter.value = "";
  filter.dispatchEvent(new page.Event("input"));
  page.dispatchEvent(new page.KeyboardEvent("keydown", { key: "Escape" }));
  seen.overview = texts("#details button");
  find("#open").click();
  seen.all = those(".node").length;
  const places = those(".node").map((one) => one.getAttribute("transform"));
  seen.places = new Set(places).size;
  const numbers = (edge) => edge.getAttribute("d").match(/-?[\\d.]+/g).map(Number);
  seen.to_the_right = those(".edge").filter((one) => numbers(one)[0] < numbers(one).at(-2)).length;
  find("#close").click();
  seen.again = those(".node").length;
  document.getElementById("seen").textContent = JSON.stringify(seen);
}
</script>"""


@contextmanager
def serving(pages: dict[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Their address, and what was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = pages.get(self.path, "").encode()
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def driven(page: str, home: Path, driver: str = DRIVER) -> tuple[dict[str, Any], list[str]]:
    """What a browser saw while it was used, and what it asked for."""
    found = [path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))]
    assert found, "this test needs Chromium: apt-get install chromium"
    told = "document.getElementById('seen').textContent = JSON.stringify({ error: [...arguments].join(' ') })"
    driver = driver.replace("<script>", f"<script>window.onerror = function () {{ {told} }};</script><script>")
    with serving({"/": driver, "/page.html": page}) as (address, asked):
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={home}"]
        command = [found[0], *flags, "--dump-dom", f"{address}/"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    seen = re.search(r'<pre id="seen">(.+?)</pre>', done.stdout, re.DOTALL)
    assert seen, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(unescape(seen[1])), asked


PLACES = """<!DOCTYPE html><meta charset="utf-8"><pre id="seen"></pre>
<iframe src="/page.html" style="width: 1200px; height: 700px" onload="drive(this)"></iframe>
<script>
function drive(frame) {
  const page = frame.contentWindow, find = (query) => page.document.querySelector(query);
  const seen = { opened: find("#details h2").textContent, details: find("#details").textContent };
  const pressed = (key) => new page.KeyboardEvent("keydown", { key, bubbles: true });
  const press = (key) => page.document.activeElement.dispatchEvent(pressed(key));
  const scale = () => Number(find("#graph > g").getAttribute("transform").match(/scale\\((.+)\\)/)[1]);
  frame.focus();
  find(".chosen").focus();
  press("ArrowLeft");
  seen.left = page.document.activeElement.dataset.id;
  press("Enter");
  seen.entered = find("#details h2").textContent;
  press("ArrowRight");
  seen.right = page.document.activeElement.dataset.id;
  const before = scale(), svg = find("#graph");
  const finger = (where, type, pointerId, clientX) =>
    where.dispatchEvent(new page.PointerEvent(type, { pointerId, clientX, clientY: 300, bubbles: true }));
  finger(svg, "pointerdown", 1, 300);
  finger(svg, "pointerdown", 2, 400);
  finger(page, "pointermove", 2, 500);
  seen.pinched = scale() / before;
  finger(page, "pointerup", 1, 300);
  finger(page, "pointerup", 2, 500);
  seen.fits = [...page.document.querySelectorAll(".node")].every((node) => {
    const width = node.querySelector("rect").getBBox().width;
    return [...node.querySelectorAll("text")].every((text) => text.getBBox().width < width);
  });
  document.getElementById("seen").textContent = JSON.stringify(seen);
}
</script>"""


@pytest.mark.soak
def test_undeclared_places_keys_fingers_and_long_names(tmp_path: Path) -> None:
    first = lineage(1, feed="W" * 39, places=("/a/very/long/place/" + "x" * 80,), writes=("/aside",))
    page = page_of(replace(first, places=places_read([first.version])))
    seen, _ = driven(page, tmp_path, PLACES)
    place = place_id(first.version.places[0])
    assert seen["opened"] == f"{'W' * 39} 2013-01-01T00:00Z"
    assert f"{first.version.places[0]} by add-up, run run-0, undeclared" in seen["details"]
    assert "undeclared writes" in seen["details"]
    assert (seen["left"], seen["entered"], seen["right"]) == (place, first.version.places[0], first.version.id)
    assert (seen["pinched"], seen["fits"]) == (pytest.approx(2, rel=0.01), True)


def pipeline(count: int) -> Lineage:
    """Hours of three feeds, each made from the same hour of the one before, and what was made from the last of all."""
    feeds = ("raw", "clean", "sums")
    versions, edges = {}, []
    for hour in range(count):
        for at, feed in enumerate(feeds):
            number = hour * 3 + at
            status = VersionStatus.AVAILABLE if hour else VersionStatus.EVICTED
            one = Version("primary", feed, T + timedelta(hours=hour), f"v{number}", number=number, status=status)
            versions[number] = replace(one, process=f"make-{feed}", run_id="run") if at else one
            edges += [Edge(number, number - 1, f"make-{feed}", "run", 1, declared=True)] if at else []
    last = 3 * count
    versions[last] = replace(versions[0], number=last, feed="report", version=f"v{last}", process="report")
    edges += [Edge(last, 3 * hour + 2, "report", "run", 1, declared=True) for hour in range(count)]
    return Lineage(versions[last], None, VersionLifecycle("initial", None), Graph(versions, edges), 0, {})


@pytest.mark.soak
def test_many_versions_are_groups_that_open_and_close(tmp_path: Path) -> None:
    seen, _ = driven(page_of(pipeline(667)), tmp_path, GROUPS)
    assert seen["names"] == ["raw", "clean", "sums"]
    assert (seen["first"], seen["scale"] > 0.45) == (12, True)
    assert seen["lines"] == [
        "clean",
        "667 versions: 666 AVAILABLE, 1 EVICTED",
        "2013-01-01T00:00Z – 2013-01-28T18:00Z",
    ]
    assert {"make-clean ×667", "make-sums ×659", "report ×659"} <= set(seen["edges"])
    assert (seen["right"], seen["parts"], seen["focus"]) == ("sums", 17, ["clean", True])
    assert seen["versions"] == [49, f"primary/clean/{T:%Y-%m-%dT%H:%MZ}@v1", True]
    assert seen["details"] == ["Close clean (667 versions)", "Close clean (40 versions)"]
    assert seen["closed"][1:] == ["clean", True]
    assert seen["matches"] == [["clean 2013-01-21T20:00Z @v1501 (AVAILABLE)"], "0 matches"]
    assert seen["matching"] == 1
    assert seen["found"][0].endswith("@v1501") and seen["found"][2] == "clean 2013-01-21T20:00Z"
    assert seen["overview"] == ["clean: 667 versions", "raw: 667 versions", "report: 1 version", "sums: 667 versions"]
    assert (seen["all"], seen["places"], seen["to_the_right"]) == (2002, 2002, 3 * 667)
    assert seen["again"] == 4


@pytest.mark.soak
def test_a_browser_shows_two_thousand_versions(tmp_path: Path) -> None:
    drawn = lineage(2000, path=ODD, version=ODD)
    seen, asked = driven(page_of(drawn), tmp_path)
    described, _ = driven(page_of(replace(drawn, metadata=RELATIONS)), tmp_path)
    assert (described["nodes"], described["count"], described["owned"]) == (2002, "2002 nodes", False)
    assert described["share"] == seen["share"]
    assert described["owner"].endswith("owned-by: feed:feed-3")
    assert (seen["nodes"], seen["edges"], seen["count"]) == (2000, len(drawn.graph.edges), "2000 versions")
    assert seen["opened"] == "feed-0 2013-01-01T00:00Z"
    assert seen["shown"] == [True, True]
    assert seen["views"] == 4
    assert seen["filtered"][0] == f"{seen['filtered'][1]} of 2000 versions"
    assert seen["first"].startswith("feed-3 ")
    assert seen["evicted"] == 667
    assert seen["chosen"] == "primary/feed-4/2013-03-25T07:00Z@v1999"
    assert seen["columns"] == ["amount ", "day "]
    assert (seen["amount"][:2], seen["amount"][3][:8]) == (["amount", "total"], ODD[:8])
    assert (seen["day"][:2], seen["day"][3]) == (["day", "its rows"], "perhaps guess, share")
    assert ([*seen["share"][:2], seen["share"][3]], seen["followed"]) == (
        ["amount", "total", "share"],
        ["share double from feed-1.total"],
    )
    for text in ("run-1999", "Made from: 2", "Made into: nothing", "definition 1"):
        assert text in seen["details"]
    assert seen["related"] < 100
    assert seen["input"] in ("primary/feed-5/2013-02-11T15:00Z@v999", "primary/feed-1/2013-01-28T18:00Z@v666")
    assert (seen["closed"], seen["owned"]) == (0, False)
    assert set(asked) <= {"/", "/page.html", "/favicon.ico"}
