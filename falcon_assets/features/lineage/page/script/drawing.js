// The graph as it is drawn: boxes of versions and of groups, and the edges between them.
const marker = add(add(svg, "defs"), "marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 9, markerHeight: 9, orient: "auto", fill: "context-stroke", markerUnits: "userSpaceOnUse" });
add(marker, "path", { d: "M0,0 L8,4 L0,8 z" });
const scene = add(svg, "g"), lines = add(scene, "g"), labels = add(scene, "g"), boxes = add(scene, "g");
const groups = grouping(nodes, edges, reads, makes);
let units = [], between = [], seen = null;
let marked = { number: null, kept: null, lit: null, words: new Map() };
let matching = nodes, isSifted = false;

const tally = (members) => {
  const of = new Map();
  for (const one of members) of.set(stateOf(nodes[one]), (of.get(stateOf(nodes[one])) || 0) + 1);
  return [...of].sort((a, b) => b[1] - a[1]);
};
const spanOf = (members) => {
  const times = members.map((one) => nodes[one].instance).filter(Boolean);
  return times.length ? times[0] + (times[0] === times[times.length - 1] ? "" : " \u2013 " + times[times.length - 1]) : "";
};
const isKinds = (group) => group.key.startsWith("kind:");
const sizeOf = (group, members) => isKinds(group) ? count(members.length, "node") : count(members.length, "version");
const processes = (numbers) => {
  const names = [...new Set(numbers.map((one) => edges[one][2]))].sort();
  return names.length > 2 ? names[0] + " and " + (names.length - 1) + " others" : names.join(", ");
};

const drawEdge = (one) => {
  const [[x, y], [end, low]] = [placeOf(units[one.from]), placeOf(units[one.to])];
  const [left, right, bend] = [x + WIDTH, end, Math.max(40, Math.abs(end - x - WIDTH) / 2)];
  const d = "M" + [left, y] + " C" + [left + bend, y, right - bend, low, right, low];
  const own = one.numbers.map((number) => edges[number]);
  const name = isRelation(own[0]) ? " relation" : own.every((edge) => edge[5] === false) ? " undeclared" : "";
  one.line = add(lines, "path", { d, class: "edge" + name, "marker-end": "url(#arrow)" });
  const isSummary = units[one.from].group || units[one.to].group;
  const said = processes(one.numbers) + (own.length > 1 ? " \u00d7" + own.length.toLocaleString("en") : "");
  add(one.line, "title", {}, units[one.from].id + " \u2192 " + units[one.to].id + ": " + said);
  if (!isSummary) return;
  one.line.style.strokeWidth = 1.3 + Math.min(4, Math.log10(own.length) * 1.5);
  one.label = add(labels, "text", { x: (left + right) / 2, y: (y + low) / 2 - 5, class: "summary" }, cut(said, 24));
};
const drawBox = (unit, at) => {
  const [x, y] = placeOf(unit), { group, members } = unit, node = nodes[unit.number];
  const states = tally(members);
  const name = group ? "node group" + (states.length === 1 && !isKinds(group) ? " " + states[0][0] : isKinds(group) ? " described" : "") : "node " + (node.kind ? "described" : node.status + (node.exists ? "" : " gone"));
  const said = group ? group.name + ", " + sizeOf(group, members) + ", closed" : unit.id + " " + stateOf(node);
  const box = (unit.box = add(boxes, "g", { class: name, transform: "translate(" + x + "," + (y - HEIGHT / 2) + ")", tabindex: 0, role: "button", "aria-label": said, "data-id": unit.id }));
  if (group) box.setAttribute("aria-expanded", "false");
  add(box, "title", {}, group ? said + ": click or Enter opens it" : unit.id);
  for (const shift of group ? [8, 4] : []) add(box, "rect", { x: shift, y: shift, width: WIDTH, height: HEIGHT, rx: 6, class: "behind" });
  add(box, "rect", { width: WIDTH, height: HEIGHT, rx: 6 });
  // Names have 39 letters at most; of a path its end says most.
  add(box, "text", { x: 9, y: 20, class: "name" }, group ? group.name : node.kind ? tail(node.name, 40) : node.feed);
  const line = group ? sizeOf(group, members) + (isKinds(group) ? "" : ": " + states.map(([state, many]) => many.toLocaleString("en") + " " + state).join(", ")) : node.kind ? "" : node.instance + "  " + node.status;
  add(box, "text", { x: 9, y: 38 }, line);
  unit.more = add(box, "text", { x: 9, y: 55, class: "more" });
  unit.usual = group ? spanOf(members) : node.kind || node.cluster + " @" + node.version.slice(0, 12);
  const enter = () => (group ? open(group) : choose(unit.number));
  box.addEventListener("click", () => { if (!moved) enter(); });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); enter(); }
    else if (event.key === "-" && !group && groups.groupsOf(unit.number).length) close(groups.groupsOf(unit.number)[0]);
    else step(event, at);
  });
  box.addEventListener("focus", () => { if (!start) reveal(unit); });
};
// Draws what is to be seen, if that is not drawn yet; `first` stays where it is, so that nobody loses it.
const draw = (first = marked.number) => {
  const next = groups.units(marked.number), key = next.map((unit) => unit.id + unit.members.length).join("\n");
  if (key === seen) return false;
  const holding = (number) => units.find((unit) => number !== null && unit.members.includes(number));
  const before = holding(first), was = before && isSeen(before) ? placeOf(before) : null;
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.id : undefined;
  [units, seen] = [next, key];
  between = summary(edges, units);
  layout(units.map((unit) => unit.id), between.map(({ from, to }) => [from, to])).forEach((place, at) => { units[at].place = place; });
  units = [...units].map((unit, at) => [unit, at]).sort(([a], [b]) => a.place[0] - b.place[0] || a.place[1] - b.place[1]).map(([unit, at]) => ({ ...unit, at }));
  const order = new Map(units.map((unit, at) => [unit.at, at]));
  for (const one of between) [one.from, one.to] = [order.get(one.from), order.get(one.to)];
  for (const one of [lines, labels, boxes]) one.replaceChildren();
  between.forEach(drawEdge);
  units.forEach(drawBox);
  // What is wider than its box is drawn narrower: all are measured before the first is changed, or each would be laid out anew.
  const far = svg.classList.contains("far");
  svg.classList.remove("far");
  const wide = [...boxes.querySelectorAll("text:not(.more)")].filter((text) => text.textContent.length > 25 && text.getComputedTextLength() > WIDTH - 18);
  for (const text of wide) { text.setAttribute("textLength", WIDTH - 18); text.setAttribute("lengthAdjust", "spacingAndGlyphs"); }
  svg.classList.toggle("far", far);
  const after = holding(first);
  if (was && after) {
    const now = placeOf(after);
    view = { ...view, x: view.x + (was[0] - now[0]) * view.scale, y: view.y + (was[1] - now[1]) * view.scale };
    show();
  }
  applyMarks();
  applySift();
  const again = focused !== undefined && units.find((unit) => unit.id === focused);
  if (again) again.box.focus({ preventScroll: true });
  return true;
};
const unitOf = (number) => units.find((unit) => unit.members.includes(number));

// Arrows go to what a version came from, to what was made from it, and to those above and below it.
const step = (event, at) => {
  const beside = (by) => {
    const [column, row] = units[at].place;
    const those = units.filter((one) => one.place[0] === column && Math.sign(one.place[1] - row) === by);
    return those.sort((a, b) => by * (a.place[1] - b.place[1]))[0];
  };
  const to = {
    ArrowLeft: () => units[(between.find((one) => one.to === at && one.from !== at) || {}).from],
    ArrowRight: () => units[(between.find((one) => one.from === at && one.to !== at) || {}).to],
    ArrowUp: () => beside(-1),
    ArrowDown: () => beside(1),
  }[event.key];
  if (!to) return;
  event.preventDefault();
  const next = to();
  if (next) next.box.focus({ preventScroll: true });
};

// What is chosen, and what has to do with it.
const applyMarks = () => {
  const { number, kept, lit, words } = marked;
  for (const unit of units) {
    unit.box.classList.toggle("unrelated", kept !== null && !unit.members.some((one) => kept.has(one)));
    unit.box.classList.toggle("chosen", unit.number !== undefined && unit.number === number);
    const followed = new Set(unit.members.flatMap((one) => [...(words.get(one) || [])]));
    unit.more.textContent = followed.size ? cut(worded(followed), 34) : cut(unit.usual, 42);
  }
  for (const { numbers, line, label } of between) for (const one of label ? [line, label] : [line]) {
    const isLit = lit !== null && numbers.some((number) => lit.has(number));
    one.classList.toggle("related", isLit);
    one.classList.toggle("unrelated", lit !== null && !isLit);
  }
};
const mark = (number, kept = null, lit = null, words = new Map()) => {
  marked = { number, kept, lit, words };
  draw();
  applyMarks();
};
const open = (group) => {
  group.isOpen = true;
  const first = group.members[0];
  draw(first);
  aboutGroup(group);
  const unit = unitOf(first);
  unit.box.focus({ preventScroll: true });
  reveal(unit);
};
const close = (group) => {
  group.isOpen = false;
  for (const part of group.parts || []) part.isOpen = false;
  if (marked.number !== null && group.members.includes(marked.number)) choose(null);
  draw(group.members[0]);
  const unit = unitOf(group.members[0]);
  unit.box.focus({ preventScroll: true });
  reveal(unit);
  aboutGroup(group);
};
