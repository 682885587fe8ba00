// Where boxes stand: inputs left of what was made from them. Each has a column and a row, which no two share; columns are
// centred about row 0. An edge leads to the right, but for one of each circle.
const layout = (ids, pairs) => {
  const inputs = ids.map(() => []), outputs = ids.map(() => []);
  for (const [start, end] of pairs) { inputs[end].push(start); outputs[start].push(end); }
  const columns = columnsOf(inputs, outputs);
  return rowsOf(ids, columns, inputs, outputs);
};

// As far to the right as the longest way to it; what was made from nothing stands beside what is made from it.
const columnsOf = (inputs, outputs) => {
  const columns = inputs.map(() => 0), missing = inputs.map((of) => of.length), done = new Set();
  const ready = [...missing.keys()].filter((at) => !missing[at]);
  const left = [...missing.keys()].sort((a, b) => missing[a] - missing[b]); // where a circle has to be entered
  let [nextReady, nextLeft] = [0, 0];
  while (nextReady < ready.length || nextLeft < left.length) {
    const at = nextReady < ready.length ? ready[nextReady++] : left[nextLeft++];
    if (done.has(at)) continue;
    done.add(at);
    for (const output of outputs[at]) {
      missing[output] -= 1;
      if (done.has(output)) continue;
      columns[output] = Math.max(columns[output], columns[at] + 1);
      if (!missing[output]) ready.push(output);
    }
  }
  inputs.forEach((read, at) => {
    if (!read.length && outputs[at].length) columns[at] = outputs[at].reduce((least, one) => Math.min(least, columns[one]), Infinity) - 1;
  });
  return columns;
};

// Each about the middle of its neighbours, to the left and to the right in turn: few edges cross then.
const rowsOf = (ids, columns, inputs, outputs) => {
  const ofColumn = new Map(), rows = ids.map(() => 0);
  for (const at of [...ids.keys()].sort((a, b) => (ids[a] < ids[b] ? -1 : ids[a] > ids[b] ? 1 : a - b))) {
    if (!ofColumn.has(columns[at])) ofColumn.set(columns[at], []);
    ofColumn.get(columns[at]).push(at);
  }
  const centre = (column) => column.forEach((at, row) => { rows[at] = row - (column.length - 1) / 2; });
  ofColumn.forEach(centre);
  const inOrder = [...ofColumn.keys()].sort((a, b) => a - b);
  for (let sweep = 0; sweep < 4; sweep++) {
    const near = sweep % 2 ? outputs : inputs;
    for (const column of sweep % 2 ? [...inOrder].reverse() : inOrder) {
      const own = ofColumn.get(column);
      const middle = new Map(own.map((at) => [at, near[at].length ? near[at].reduce((sum, one) => sum + rows[one], 0) / near[at].length : rows[at]]));
      own.sort((a, b) => middle.get(a) - middle.get(b));
      centre(own);
    }
  }
  return ids.map((_, at) => [columns[at], rows[at]]);
};
