// What is seen of a graph: versions, and groups of them that are closed. A group is a feed on a cluster; where it has many
// versions, its parts are groups of consecutive instances.
const FEW = 60, MOST_PARTS = 40, MOST_NEAR = 8;

const grouping = (nodes, edges, reads, makes) => {
  let isOpen = nodes.length <= FEW; // those that nobody has looked into yet
  const several = new Set(nodes.filter((one) => !one.kind).map((one) => one.cluster)).size > 1;
  const group = (key, name, members) => ({ key, name, members, isOpen, parts: null });
  const partsOf = (one) => {
    if (one.parts || one.members.length <= MOST_PARTS) return one.parts;
    const size = Math.max(MOST_PARTS, Math.ceil(one.members.length / MOST_PARTS)), parts = [];
    for (let at = 0; at < one.members.length; at += size) {
      const members = one.members.slice(at, at + size);
      parts.push(group(one.key + "/" + members[0], one.name, members));
    }
    return (one.parts = parts);
  };
  const byKey = new Map();
  nodes.forEach((node, number) => {
    const key = node.kind ? "kind:" + node.kind : "feed:" + node.cluster + "/" + node.feed;
    const name = node.kind ? node.kind + (node.kind.endsWith("s") ? "" : "s") : node.feed + (several ? " on " + node.cluster : "");
    if (!byKey.has(key)) byKey.set(key, group(key, name, []));
    byKey.get(key).members.push(number);
  });
  const roots = [...byKey.values()];
  const at = (number) => nodes[number].instance || nodes[number].name;
  for (const one of roots) one.members.sort((a, b) => (at(a) < at(b) ? -1 : at(a) > at(b) ? 1 : a - b));
  // Of what describes entities there are few, as a rule: those are shown each.
  for (const one of roots) if (one.key.startsWith("kind:") && one.members.length <= MOST_NEAR) one.isOpen = true;
  const every = function* (groups = roots) { for (const one of groups) { yield one; yield* every(one.parts || []); } };
  const groupsOf = (number) => {
    const found = [];
    for (let from = roots, next; (next = from.find((one) => one.members.includes(number))); from = next.parts || []) found.push(next);
    return found;
  };
  // What is chosen is seen by itself, and so are the nearest that it was made from and that were made from it.
  const near = (number) => {
    const ends = (several, end) => several.filter((one) => edges[one].length > 3).slice(0, MOST_NEAR).map((one) => edges[one][end]);
    return number === null ? new Set() : new Set([number, ...ends(reads[number], 0), ...ends(makes[number], 1)]);
  };
  const units = (chosen) => {
    const [out, found] = [near(chosen), []];
    const single = (number) => found.push({ id: nodes[number].id, number, members: [number] });
    const walk = (one) => {
      if (one.isOpen) {
        if (partsOf(one)) one.parts.forEach(walk); else one.members.forEach(single);
        return;
      }
      const rest = one.members.filter((number) => !out.has(number));
      one.members.filter((number) => out.has(number)).forEach(single);
      if (rest.length === 1) single(rest[0]);
      else if (rest.length) found.push({ id: one.key, group: one, members: rest });
    };
    roots.forEach(walk);
    return found;
  };
  const all = (open) => { isOpen = open; for (const one of every()) one.isOpen = open; };
  return { roots, units, groupsOf, all, isWhole: () => [...every()].every((one) => one.isOpen) };
};

// The edges between what is seen, each with those of the graph that it stands for.
const summary = (edges, units) => {
  const unitOf = new Map(), found = new Map();
  units.forEach((unit, at) => unit.members.forEach((number) => unitOf.set(number, at)));
  edges.forEach((edge, number) => {
    const [from, to] = [unitOf.get(edge[0]), unitOf.get(edge[1])];
    if (from === to && units[from].group) { units[from].within = (units[from].within || 0) + 1; return; }
    const key = from + ">" + to + (isRelation(edge) ? "~" + edge[2] : "");
    if (!found.has(key)) found.set(key, { from, to, numbers: [] });
    found.get(key).numbers.push(number);
  });
  return [...found.values()];
};
