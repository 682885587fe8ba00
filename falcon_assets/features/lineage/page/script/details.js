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
const MOST_LISTED = 100, INTERNAL = new Set(["id", "feed", "instance", "text", "plan", "made"]);
const go = (number) => { choose(number); const unit = unitOf(number); centre(unit); unit.box.focus({ preventScroll: true }); };
const listed = (numbers, one) => {
  numbers.slice(0, MOST_LISTED).forEach(one);
  if (numbers.length > MOST_LISTED) add(details, "p", {}, "and " + (numbers.length - MOST_LISTED).toLocaleString("en") + " more: the filter finds them");
};
const related = (title, numbers, end) => {
  add(details, "h2", {}, title + ": " + (numbers.length || "nothing"));
  listed(numbers, (number) => {
    const [, , process, run, definition, declared] = edges[number], to = edges[number][end], other = nodes[to];
    const button = (text) => add(details, "button", { title: other.id }, text).addEventListener("click", () => go(to));
    if (isRelation(edges[number])) { button(process + ": " + other.id); return; }
    const by = process + (run ? ", run " + run.slice(0, 8) : "") + (definition ? ", definition " + definition : "") + (declared ? "" : ", undeclared");
    const where = other.kind ? "" : " on " + other.cluster + " @" + other.version.slice(0, 12) + " (" + other.status + ")";
    button(label(other) + where + " by " + by);
  });
};
const closing = (number) => {
  for (const group of groups.groupsOf(number).filter((one) => one.isOpen && one.members.length > 1))
    add(details, "button", { class: "close" }, "Close " + group.name + " (" + sizeOf(group, group.members) + ")").addEventListener("click", () => close(group));
};
const aboutGroup = (group) => {
  details.replaceChildren();
  add(details, "h2", {}, group.name);
  const list = add(details, "dl");
  const told = [[isKinds(group) ? "nodes" : "versions", group.members.length], ...(isKinds(group) ? [] : tally(group.members)), ["instances", spanOf(group.members)]];
  for (const [key, value] of told) if (value) { add(list, "dt", {}, key); add(list, "dd", {}, value.toLocaleString("en")); }
  const button = add(details, "button", { class: "close" }, (group.isOpen ? "Close " : "Open ") + group.name);
  button.addEventListener("click", () => (group.isOpen ? close(group) : open(group)));
  add(details, "h2", {}, "In it");
  listed(group.members, (number) => add(details, "button", { title: nodes[number].id }, label(nodes[number]) + (nodes[number].kind ? "" : " (" + nodes[number].status + ")")).addEventListener("click", () => go(number)));
};
const overview = () => {
  details.replaceChildren();
  add(details, "p", {}, "Click a version to see all about it, a feed to open it; minus closes the feed of a version. Drag to move, turn the wheel to zoom; in the filter, Enter goes to the first match.");
  if (hidden) add(details, "p", {}, hidden + " versions of feeds that you may not read are left out.");
  add(details, "h2", {}, "Feeds");
  for (const group of [...groups.roots].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const button = add(details, "button", { "aria-expanded": String(group.isOpen) }, group.name + ": " + sizeOf(group, group.members));
    button.addEventListener("click", () => (group.isOpen ? (reveal(unitOf(group.members[0])), aboutGroup(group)) : open(group)));
  }
};
const choose = (number) => {
  details.replaceChildren();
  if (number === null) {
    mark(null);
    overview();
    return;
  }
  const [sources, ups] = reach(number, reads, 0), [results, downs] = reach(number, makes, 1);
  mark(number, new Set([...sources, ...results]), new Set([...ups, ...downs]));
  add(details, "h2", {}, label(nodes[number]));
  const list = add(details, "dl");
  for (const [key, value] of Object.entries(nodes[number])) {
    if (INTERNAL.has(key) || value === null || value === false || (Array.isArray(value) && !value.length)) continue;
    add(list, "dt", {}, key.replaceAll("_", " "));
    add(list, "dd", {}, typeof value === "object" ? JSON.stringify(value, null, 1) : String(value));
  }
  columns(number);
  const [versions, relations] = [(one) => !isRelation(edges[one]), (one) => isRelation(edges[one])];
  if (reads[number].some(versions) || makes[number].some(versions) || !nodes[number].kind) {
    related("Made from", reads[number].filter(versions), 0);
    related("Made into", makes[number].filter(versions), 1);
  }
  if (edges.some(isRelation)) {
    related("Relations", makes[number].filter(relations), 1);
    related("Referred to by", reads[number].filter(relations), 0);
  }
  closing(number);
};

// The filter: all of its words, anywhere in what is known of a version.
const applySift = () => {
  const kept = new Set(matching);
  for (const unit of units) {
    const some = unit.members.filter((one) => kept.has(nodes[one])).length;
    unit.box.classList.toggle("filtered", !some);
    if (unit.group && isSifted) unit.more.textContent = count(some, "match").replace("matchs", "matches");
  }
  for (const { numbers, line, label } of between) for (const one of label ? [line, label] : [line])
    one.classList.toggle("filtered", !numbers.some((number) => kept.has(nodes[edges[number][0]]) && kept.has(nodes[edges[number][1]])));
};
const sift = () => {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  isSifted = words.length > 0 || status.value !== "";
  matching = nodes.filter((node) => (!status.value || stateOf(node) === status.value) && words.every((word) => node.text.includes(word)));
  applyMarks();
  applySift();
  byId("count").textContent = (matching.length === nodes.length ? "" : matching.length + " of ") + nodes.length + (nodes.some((node) => node.kind) ? " nodes" : nodes.length === 1 ? " version" : " versions");
};
const matches = () => {
  if (!isSifted) { choose(marked.number); return; }
  const numbers = [...nodes.keys()].filter((one) => matching.includes(nodes[one]));
  details.replaceChildren();
  add(details, "h2", {}, count(numbers.length, "match").replace("matchs", "matches"));
  listed(numbers, (number) => add(details, "button", { title: nodes[number].id }, label(nodes[number]) + (nodes[number].kind ? " (" + nodes[number].kind + ")" : " @" + nodes[number].version.slice(0, 12) + " (" + nodes[number].status + ")")).addEventListener("click", () => go(number)));
};
