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
const worded = (found) => [...found].filter((one) => !found.has(one.replace(/^perhaps /, "")) || !one.startsWith("perhaps ")).sort().join(", ");
const follow = (number, name) => {
  const found = new Map([...trace(number, name, reads, 0, above), ...trace(number, name, makes, 1, below)]);
  const lit = [...edges.keys()].filter((one) => found.has(edges[one][0]) && found.has(edges[one][1]));
  mark(number, new Set(found.keys()), new Set(lit), found);
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
