// Pan and zoom.
let [view, start, moved] = [{ x: 0, y: 0, scale: 1 }, null, false];
const show = () => {
  scene.setAttribute("transform", "translate(" + view.x + "," + view.y + ") scale(" + view.scale + ")");
  svg.classList.toggle("far", view.scale < 0.45); // names only, and large
};
const zoom = (factor, x = svg.clientWidth / 2, y = svg.clientHeight / 2) => {
  const scale = Math.min(4, Math.max(0.005, view.scale * factor));
  view = { x: x - ((x - view.x) * scale) / view.scale, y: y - ((y - view.y) * scale) / view.scale, scale };
  show();
};
const placeOf = ({ place: [column, row] }) => [column * COLUMN, row * ROW];
const centre = (unit, scale = Math.max(view.scale, 0.8)) => {
  const [x, y] = placeOf(unit);
  view = { x: svg.clientWidth / 2 - (x + WIDTH / 2) * scale, y: svg.clientHeight / 2 - y * scale, scale };
  show();
};
const isSeen = (unit) => {
  const [box, all] = [unit.box.getBoundingClientRect(), svg.getBoundingClientRect()];
  return box.left >= all.left && box.right <= all.right && box.top >= all.top && box.bottom <= all.bottom;
};
// What has the focus is shown: it may lie outside of what is seen, or be too small to be read.
const reveal = (unit) => { if (!isSeen(unit) || view.scale < 0.5) centre(unit); };
const fit = () => {
  const [low, high] = [[Infinity, Infinity], [-Infinity, -Infinity]];
  for (const unit of units) placeOf(unit).forEach((at, axis) => { low[axis] = Math.min(low[axis], at); high[axis] = Math.max(high[axis], at); });
  const [width, height] = [high[0] - low[0] + WIDTH + 60, high[1] - low[1] + HEIGHT + 60];
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
