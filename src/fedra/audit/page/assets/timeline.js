const STRIP = 22;

/**
 * Draw what became of a client over all rounds. Marks differ in shape: kept is a low bar on the ground, dropped hangs from the
 * top, as far down as the share of the bin's replies that was dropped, unusable is stripes below it, skipped a dash.
 */
function timeline(data, replies, width, label) {
  const count = data.rounds.number.length;
  const { length, count: shown } = bins(count, width / 3);
  const counts = new Uint32Array(shown * 4);
  for (const at of replies) counts[Math.floor(data.columns.round[at] / length) * 4 + data.columns.state[at]] += 1;
  const step = Math.min(14, width / shown);
  const wide = Math.max(1, step - (step > 3 ? 1 : 0));
  const marks = ["", "", "", ""];
  for (let bin = 0; bin < shown; bin += 1) {
    const [kept, dropped, unusable, skipped] = counts.subarray(bin * 4, bin * 4 + 4);
    const replied = kept + dropped + unusable;
    const x = (bin * step).toFixed(1);
    const bar = (top, height) => `M${x} ${top.toFixed(1)}h${wide.toFixed(1)}v${height.toFixed(1)}h${(-wide).toFixed(1)}z`;
    const depth = replied ? (dropped / replied) * STRIP : 0;
    if (kept) marks[KEPT] += bar(STRIP - 5, 5);
    if (dropped) marks[DROPPED] += bar(0, Math.max(2, depth));
    for (let top = depth; unusable && top < depth + (unusable / replied) * STRIP; top += 4) marks[UNUSABLE] += bar(top, 2);
    if (skipped && !replied) marks[SKIPPED] += bar(STRIP / 2 - 1, 1.5);
  }
  const picture = svg(
    "svg", { class: "strip", width, height: STRIP, viewBox: `0 0 ${width} ${STRIP}`, role: "img", "aria-label": label },
    svg("line", { class: "ground", x1: 0, x2: step * shown, y1: STRIP - 0.5, y2: STRIP - 0.5 }),
    marks.map((shape, state) => shape && svg("path", { class: `mark s${state}`, d: shape })),
  );
  return { picture, roundAt: (x) => Math.min(count - 1, Math.max(0, Math.floor(x / step)) * length) };
}

/** Draw the numbers of rounds below or above timelines of this width. */
function roundAxis(data, width) {
  const numbers = data.rounds.number;
  const { length, count: shown } = bins(numbers.length, width / 3);
  const step = Math.min(14, width / shown);
  const wanted = Math.max(1, Math.min(5, Math.floor((step * shown) / 70)));
  const stops = [...new Set(Array.from({ length: wanted + 1 }, (_, at) => Math.round((at * (shown - 1)) / wanted)))];
  return svg(
    "svg", { class: "axis", width, height: 14, "aria-hidden": "true" },
    stops.map((bin, at) => svg("text", {
      x: at === stops.length - 1 && at ? Math.min(width, (bin + 1) * step) : bin * step, y: 11,
      "text-anchor": at === 0 ? "start" : at === stops.length - 1 ? "end" : "middle",
    }, String(numbers[at === stops.length - 1 ? Math.min(numbers.length - 1, bin * length + length - 1) : bin * length]))),
  );
}

/** Return the mark of a state, to stand before its name. */
function mark(state) {
  const shape = ["M0 9h8v5h-8z", "M0 0h8v14h-8z", "M0 0h8v2h-8zM0 4h8v2h-8zM0 8h8v2h-8zM0 12h8v2h-8z", "M0 6h8v2h-8z"][state];
  return svg("svg", { class: "sign", width: 8, height: 14, "aria-hidden": "true" }, svg("path", { class: `mark s${state}`, d: shape }));
}

function key() {
  return el("p", { class: "keys" }, STATES.map((name, state) => el("span", { class: "key" }, mark(state), name)));
}
