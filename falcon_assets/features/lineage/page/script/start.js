// What people can do, and what they see first.
svg.addEventListener("click", (event) => { if (!moved && !event.target.closest(".node")) choose(null); });
byId("fit").addEventListener("click", fit);
byId("larger").addEventListener("click", () => zoom(1.4));
byId("smaller").addEventListener("click", () => zoom(1 / 1.4));
// The whole, unless nobody could read it: then what is chosen.
const survey = () => { fit(); if (view.scale < 0.3 && marked.number !== null) centre(unitOf(marked.number)); };
const openAll = (isOpen) => { groups.all(isOpen); draw(); survey(); if (marked.number === null) overview(); };
byId("open").addEventListener("click", () => openAll(true));
byId("close").addEventListener("click", () => openAll(false));
for (const one of [...new Set(nodes.map(stateOf))].sort()) add(status, "option", { value: one }, one);
for (const [element, event] of [[filter, "input"], [status, "change"]]) element.addEventListener(event, () => { sift(); matches(); });
filter.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !matching.length) return;
  const number = nodes.indexOf(matching[0]);
  choose(number);
  centre(unitOf(number));
});
window.addEventListener("keydown", (event) => { if (event.key === "Escape") choose(null); });

choose(chosen);
sift();
survey();
if (column !== null) follow(chosen, column);
