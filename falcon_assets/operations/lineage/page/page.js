
"use strict";
(() => {
  const { nodes, edges, plans, chosen, column, hidden } = JSON.parse(document.getElementById("data").textContent);
  const [WIDTH, HEIGHT, COLUMN, ROW] = [270, 64, 370, 82];
  const byId = (id) => document.getElementById(id);
  const svg = byId("graph"), details = byId("details"), filter = byId("filter"), status = byId("status");

  // Everything that is shown goes through textContent and setAttribute: names are text, whatever they hold.
  const add = (parent, name, attributes = {}, text = "") => {
    const drawn = parent.namespaceURI === "http://www.w3.org/2000/svg";
    const element = document.createElementNS(drawn ? parent.namespaceURI : "http://www.w3.org/1999/xhtml", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text) element.textContent = text;
    return parent.appendChild(element);
  };
  const tail = (text, length) => (text.length > length ? "\u2026" + text.slice(1 - length) : text);
  const cut = (text, length) => (text.length > length ? text.slice(0, length - 1) + "\u2026" : text);
  // Beside versions there are entities and what describes them, which have a kind; their edges have a name only.
  const label = (node) => node.kind ? node.name : node.feed + " " + node.instance;
  const stateOf = (node) => node.kind || node.status;
  const isRelation = (edge) => edge[3] === undefined;

  // The graph.
  const marker = add(add(svg, "defs"), "marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto", fill: "context-stroke" });
  add(marker, "path", { d: "M0,0 L8,4 L0,8 z" });
  const scene = add(svg, "g"), lines = add(scene, "g"), boxes = add(scene, "g");
  const [reads, makes] = [nodes.map(() => []), nodes.map(() => [])];
  const place = ({ place: [column, row] }) => [column * COLUMN, row * ROW];
  edges.forEach((edge, number) => {
    const [from, to, , , , declared] = edge;
    const [[x, y], [end, low]] = [place(nodes[from]), place(nodes[to])];
    const [left, right, bend] = [x + WIDTH, end, Math.max(40, Math.abs(end - x - WIDTH) / 2)];
    const d = "M" + [left, y] + " C" + [left + bend, y, right - bend, low, right, low];
    edge.line = add(lines, "path", { d, class: isRelation(edge) ? "edge relation" : declared ? "edge" : "edge undeclared", "marker-end": "url(#arrow)" });
    reads[to].push(number);
    makes[from].push(number);
  });
  nodes.forEach((node, number) => {
    const [x, y] = place(node);
    const name = "node " + (node.kind ? "described" : node.status + (node.exists ? "" : " gone"));
    const box = add(boxes, "g", { class: name, transform: "translate(" + x + "," + (y - HEIGHT / 2) + ")", tabindex: 0, role: "button", "aria-label": node.id + " " + stateOf(node), "data-id": node.id });
    add(box, "title", {}, node.id);
    add(box, "rect", { width: WIDTH, height: HEIGHT, rx: 6 });
    // Names have 39 letters at most; of a path its end says most.
    add(box, "text", { x: 9, y: 20 }, node.kind ? tail(node.name, 40) : node.feed);
    add(box, "text", { x: 9, y: 38 }, node.kind ? "" : node.instance + "  " + node.status);
    node.more = add(box, "text", { x: 9, y: 55, class: "more" });
    node.usual = node.kind || node.cluster + " @" + node.version.slice(0, 12);
    node.made = plans[node.plan] || null;
    box.addEventListener("click", () => { if (!moved) choose(number); });
    box.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(number); } else step(event, number); });
    box.addEventListener("focus", () => { if (!start) reveal(node); });
    node.box = box;
    const names = node.made ? node.made.columns.map((one) => one.name) : [];
    node.text = [...names, ...Object.values(node).map((value) => (value && typeof value === "object" && !value.nodeType ? JSON.stringify(value) : value))].join("\n").toLowerCase();
  });

  // What is wider than its box is drawn narrower: all are measured before the first is changed, or each would be laid out anew.
  const wide = [...boxes.querySelectorAll("text:not(.more)")].filter((text) => text.textContent.length > 25 && text.getComputedTextLength() > WIDTH - 18);
  for (const text of wide) { text.setAttribute("textLength", WIDTH - 18); text.setAttribute("lengthAdjust", "spacingAndGlyphs"); }

  // Pan and zoom.
  let [view, start, moved] = [{ x: 0, y: 0, scale: 1 }, null, false];
  const show = () => scene.setAttribute("transform", "translate(" + view.x + "," + view.y + ") scale(" + view.scale + ")");
  const zoom = (factor, x = svg.clientWidth / 2, y = svg.clientHeight / 2) => {
    const scale = Math.min(4, Math.max(0.005, view.scale * factor));
    view = { x: x - ((x - view.x) * scale) / view.scale, y: y - ((y - view.y) * scale) / view.scale, scale };
    show();
  };
  const centre = (node, scale = Math.max(view.scale, 0.8)) => {
    const [x, y] = place(node);
    view = { x: svg.clientWidth / 2 - (x + WIDTH / 2) * scale, y: svg.clientHeight / 2 - y * scale, scale };
    show();
  };
  // What has the focus is shown: it may lie outside of what is seen, or be too small to be read.
  const reveal = (node) => {
    const [box, all] = [node.box.getBoundingClientRect(), svg.getBoundingClientRect()];
    const isSeen = box.left >= all.left && box.right <= all.right && box.top >= all.top && box.bottom <= all.bottom;
    if (!isSeen || view.scale < 0.5) centre(node);
  };
  // Arrows go to what a version came from, to what was made from it, and to those above and below it.
  const step = (event, number) => {
    const beside = (by) => {
      const [column, row] = nodes[number].place;
      const those = nodes.filter((one) => one.place[0] === column && Math.sign(one.place[1] - row) === by);
      return those.sort((a, b) => by * (a.place[1] - b.place[1]))[0];
    };
    const to = {
      ArrowLeft: () => nodes[(edges[reads[number][0]] || [])[0]],
      ArrowRight: () => nodes[(edges[makes[number][0]] || [])[1]],
      ArrowUp: () => beside(-1),
      ArrowDown: () => beside(1),
    }[event.key];
    if (!to) return;
    event.preventDefault();
    const next = to();
    if (next) next.box.focus({ preventScroll: true });
  };
  const fit = () => {
    const [low, high] = [[Infinity, Infinity], [-Infinity, -Infinity]];
    for (const node of nodes) place(node).forEach((at, axis) => { low[axis] = Math.min(low[axis], at); high[axis] = Math.max(high[axis], at); });
    const [width, height] = [high[0] - low[0] + WIDTH + 40, high[1] - low[1] + HEIGHT + 40];
    const scale = Math.max(0.005, Math.min(1, svg.clientWidth / width, svg.clientHeight / height));
    view = { x: svg.clientWidth / 2 - ((low[0] + high[0] + WIDTH) / 2) * scale, y: svg.clientHeight / 2 - ((low[1] + high[1]) / 2) * scale, scale };
    show();
  };
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    const { left, top } = svg.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / (event.deltaMode ? 20 : 500)), event.clientX - left, event.clientY - top);
  }, { passive: false });
  // Two fingers zoom.
  const fingers = new Map();
  const spread = () => {
    const [a, b] = [...fingers.values()];
    return { apart: Math.hypot(a[0] - b[0], a[1] - b[1]), middle: [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2] };
  };
  svg.addEventListener("pointerdown", (event) => { fingers.set(event.pointerId, [event.clientX, event.clientY]); start = { x: event.clientX - view.x, y: event.clientY - view.y, at: [event.clientX, event.clientY] }; moved = false; });
  window.addEventListener("pointermove", (event) => {
    if (!start) return;
    if (fingers.size === 2 && fingers.has(event.pointerId)) {
      const { left, top } = svg.getBoundingClientRect(), before = spread().apart;
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
      const { apart, middle: [x, y] } = spread();
      moved = true;
      if (before > 0) zoom(apart / before, x - left, y - top);
      start = { x: event.clientX - view.x, y: event.clientY - view.y, at: [event.clientX, event.clientY] };
      return;
    }
    moved = moved || Math.hypot(event.clientX - start.at[0], event.clientY - start.at[1]) > 4;
    if (moved) { view = { ...view, x: event.clientX - start.x, y: event.clientY - start.y }; show(); }
  });
  for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, (event) => { fingers.delete(event.pointerId); start = null; });
  svg.addEventListener("click", (event) => { if (!moved && !event.target.closest(".node")) choose(null); });
  byId("fit").addEventListener("click", fit);
  byId("larger").addEventListener("click", () => zoom(1.4));
  byId("smaller").addEventListener("click", () => zoom(1 / 1.4));

  // Choosing a version: what it came from and what was made from it, and all about it.
  const reach = (first, following, end) => {
    const [seen, found, waiting] = [new Set([first]), new Set(), [first]];
    while (waiting.length) for (const number of following[waiting.pop()]) {
      found.add(number);
      const next = edges[number][end];
      if (!seen.has(next)) { seen.add(next); waiting.push(next); }
    }
    return [seen, found];
  };
  const related = (title, numbers, end) => {
    add(details, "h2", {}, title + ": " + (numbers.length || "nothing"));
    for (const number of numbers) {
      const [, , process, run, definition, declared] = edges[number], other = nodes[edges[number][end]];
      const go = (text) => add(details, "button", { title: other.id }, text).addEventListener("click", () => { choose(edges[number][end]); centre(other); });
      if (isRelation(edges[number])) { go(process + ": " + other.id); continue; }
      const by = process + (run ? ", run " + run.slice(0, 8) : "") + (definition ? ", definition " + definition : "") + (declared ? "" : ", undeclared");
      const where = other.kind ? "" : " on " + other.cluster + " @" + other.version.slice(0, 12) + " (" + other.status + ")";
      go(label(other) + where + " by " + by);
    }
  };
  // Columns: the ones that a column was made from, those that were made from it, and the rows that it decides on.
  const ROWS = "its rows", UNKNOWN = "perhaps more", perhaps = (name) => "perhaps " + name;
  const isCopy = (a, b) => a.feed === b.feed && a.instance === b.instance;
  const below = (words, version, made) => {
    if (isCopy(version, made)) return words;
    if (!made.made) return new Set([UNKNOWN]);
    const feed = version.feed, found = new Set();
    const sure = (from) => from.some((one) => one.feed === feed && (words.has(ROWS) || words.has(one.column)));
    const unsure = (from) => from.some((one) => one.feed === feed && (words.has(UNKNOWN) || words.has(perhaps(one.column))));
    for (const { name, from, opaque } of made.made.columns) {
      if (!opaque && sure(from)) found.add(name);
      else if (opaque || unsure(from)) found.add(perhaps(name));
    }
    const rows = made.made.rows_from;
    if (rows && sure(rows)) found.add(ROWS);
    const isRead = [...(rows || []), ...made.made.columns.flatMap(({ from }) => from)].some((one) => one.feed === feed);
    if (!rows || (unsure(rows) && !sure(rows)) || made.made.rows_opaque || !isRead) found.add(UNKNOWN);
    return found;
  };
  const above = (words, made, version) => {
    if (isCopy(version, made)) return words;
    const found = new Set();
    for (const { name, from } of made.made ? made.made.columns : [])
      if (words.has(name)) for (const one of from) if (one.feed === version.feed) found.add(one.column);
    return found;
  };
  const trace = (first, name, following, end, step) => {
    const [found, waiting] = [new Map([[first, new Set([name])]]), [first]];
    while (waiting.length) {
      const number = waiting.pop();
      for (const edge of following[number].filter((one) => !isRelation(edges[one]))) {
        const next = edges[edge][end], before = found.get(next) || new Set();
        const after = new Set([...before, ...step(found.get(number), nodes[number], nodes[next])]);
        if (after.size > before.size) { found.set(next, after); waiting.push(next); }
      }
    }
    return found;
  };
  const words = (found) => [...found].filter((one) => !found.has(one.replace(/^perhaps /, "")) || !one.startsWith("perhaps ")).sort().join(", ");
  const follow = (number, name) => {
    const found = new Map([...trace(number, name, reads, 0, above), ...trace(number, name, makes, 1, below)]);
    mark(number, new Set(found.keys()), new Set([...edges.keys()].filter((one) => found.has(edges[one][0]) && found.has(edges[one][1]))));
    for (const [at, columns] of found) nodes[at].more.textContent = cut(words(columns), 34);
    for (const button of details.querySelectorAll(".column")) button.classList.toggle("followed", button.dataset.name === name);
  };
  const columns = (number) => {
    const { made } = nodes[number];
    const read = new Set(makes[number].flatMap((one) => nodes[edges[one][1]].made || []).flatMap((one) => [...one.columns.flatMap(({ from }) => from), ...(one.rows_from || [])]).filter((one) => one.feed === nodes[number].feed).map((one) => one.column));
    const known = made ? made.columns : [...read].sort().map((name) => ({ name, type: "", from: [] }));
    if (!known.length) return;
    add(details, "h2", {}, made ? "Columns" : "Columns that were read");
    for (const { name, type, from, opaque } of known) {
      const sources = from.map((one) => one.feed + "." + one.column).join(", ");
      const button = add(details, "button", { class: "column", "data-name": name, title: "What it was made from, and what was made from it" }, name + " " + type + (sources ? " from " + sources : "") + (opaque ? " (not sure)" : ""));
      button.addEventListener("click", () => follow(number, name));
    }
    if (made && made.rows_from) add(details, "p", {}, "Rows are decided by: " + (made.rows_from.map((one) => one.feed + "." + one.column).join(", ") || "nothing") + (made.rows_opaque ? ", and perhaps more" : ""));
  };
  const mark = (number, kept, lit) => {
    document.querySelectorAll(".chosen, .related, .unrelated").forEach((element) => element.classList.remove("chosen", "related", "unrelated"));
    for (const node of nodes) node.more.textContent = cut(node.usual, 38);
    if (number === null) return;
    nodes.forEach((node, one) => { if (!kept.has(one)) node.box.classList.add("unrelated"); });
    edges.forEach((edge, one) => edge.line.classList.add(lit.has(one) ? "related" : "unrelated"));
    nodes[number].box.classList.add("chosen");
  };
  const choose = (number) => {
    details.replaceChildren();
    if (number === null) {
      mark(null);
      add(details, "p", {}, "Click a version to see all about it. Drag to move, turn the wheel to zoom; in the filter, Enter goes to the first match.");
      if (hidden) add(details, "p", {}, hidden + " versions of feeds that you may not read are left out.");
      return;
    }
    const [sources, ups] = reach(number, reads, 0), [results, downs] = reach(number, makes, 1);
    mark(number, new Set([...sources, ...results]), new Set([...ups, ...downs]));
    add(details, "h2", {}, label(nodes[number]));
    const list = add(details, "dl");
    for (const [key, value] of Object.entries(nodes[number])) {
      if (["id", "feed", "instance", "place", "box", "text", "plan", "made", "more", "usual"].includes(key) || value === null || value === false || (Array.isArray(value) && !value.length)) continue;
      add(list, "dt", {}, key.replaceAll("_", " "));
      add(list, "dd", {}, typeof value === "object" ? JSON.stringify(value, null, 1) : String(value));
    }
    columns(number);
    const [versions, relations] = [(one) => !isRelation(edges[one]), (one) => isRelation(edges[one])];
    if (!nodes[number].kind) {
      related("Made from", reads[number].filter(versions), 0);
      related("Made into", makes[number].filter(versions), 1);
    }
    if (nodes.some((node) => node.kind)) {
      related("Relations", makes[number].filter(relations), 1);
      related("Referred to by", reads[number].filter(relations), 0);
    }
  };

  // The filter: all of its words, anywhere in what is known of a version.
  let matching = nodes;
  const sift = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    matching = nodes.filter((node) => (!status.value || stateOf(node) === status.value) && words.every((word) => node.text.includes(word)));
    const kept = new Set(matching);
    nodes.forEach((node) => node.box.classList.toggle("filtered", !kept.has(node)));
    edges.forEach(({ 0: from, 1: to, line }) => line.classList.toggle("filtered", !kept.has(nodes[from]) || !kept.has(nodes[to])));
    byId("count").textContent = (matching.length === nodes.length ? "" : matching.length + " of ") + nodes.length + (nodes.some((node) => node.kind) ? " nodes" : nodes.length === 1 ? " version" : " versions");
  };
  for (const one of [...new Set(nodes.map(stateOf))].sort()) add(status, "option", { value: one }, one);
  filter.addEventListener("input", sift);
  status.addEventListener("change", sift);
  filter.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !matching.length) return;
    choose(nodes.indexOf(matching[0]));
    centre(matching[0]);
  });
  window.addEventListener("keydown", (event) => { if (event.key === "Escape") choose(null); });

  sift();
  fit();
  if (view.scale < 0.3) centre(nodes[chosen]);
  choose(chosen);
  if (column !== null) follow(chosen, column);
})();
