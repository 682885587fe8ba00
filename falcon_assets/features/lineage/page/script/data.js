// What the page is about, and how its parts are made.
const { nodes, edges, plans, chosen, column, hidden } = JSON.parse(document.getElementById("data").textContent);
const [WIDTH, HEIGHT, COLUMN, ROW] = [270, 64, 420, 86];
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
const count = (number, one) => number.toLocaleString("en") + " " + one + (number === 1 ? "" : "s");
// Beside versions there are entities and what describes them, which have a kind; their edges have a name only.
const label = (node) => node.kind ? node.name : node.feed + " " + node.instance;
const stateOf = (node) => node.kind || node.status;
const isRelation = (edge) => edge[3] === undefined;

const [reads, makes] = [nodes.map(() => []), nodes.map(() => [])];
edges.forEach(([from, to], number) => { reads[to].push(number); makes[from].push(number); });
for (const node of nodes) {
  node.made = plans[node.plan] || null;
  const names = node.made ? node.made.columns.map((one) => one.name) : [];
  const values = Object.entries(node).filter(([key]) => key !== "made").map(([, value]) => value && typeof value === "object" ? JSON.stringify(value) : value);
  node.text = [...names, ...values].join("\n").toLowerCase();
}
