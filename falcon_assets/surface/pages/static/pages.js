"use strict";
// A run of cells in the grid is one link: this finds the cell in it that was clicked.
(() => {
  const pad = (date) => date.toISOString().slice(0, 16) + "Z";
  document.addEventListener("click", (event) => {
    const cells = event.target.closest("td.cells");
    const run = event.target.closest("td.cells > a, td.cells > i");
    if (!cells || !run || event.button || event.ctrlKey || event.metaKey || event.shiftKey || !event.detail) return;
    const { start, step, steps } = cells.closest("table").dataset;
    const first = cells.firstElementChild.getBoundingClientRect();
    const last = cells.lastElementChild.getBoundingClientRect();
    const at = Math.floor(((event.clientX - first.left) / (last.right - first.left)) * Number(steps));
    const begin = Date.parse(start) + at * Number(step) * 1000;
    event.preventDefault();
    const times = `&from=${pad(new Date(begin))}&to=${pad(new Date(begin + Number(step) * 1000))}`;
    window.location.assign(cells.dataset.link + times);
  });
})();
