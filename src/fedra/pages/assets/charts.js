const MARGIN = { left: 46, right: 22, top: 12, bottom: 38 };

/**
 * Put a chart into a box, draw it again when the box changes, and let pointer and arrow keys read it.
 * `draw(width, height)` returns { node, stops }: what to show, and for each stop its x, marks and lines of text. Where a stop
 * has a y, the pointer finds the nearest by both; one with `open` is opened by a click or Enter.
 */
function chart({ label, height, draw }) {
  const tip = el("div", { class: "tip", role: "status", hidden: true });
  const box = el("div", { class: "chart" }, tip);
  let current = null;
  let cursor = null;
  let marks = null;

  function redraw() {
    const width = Math.max(240, box.clientWidth);
    current = draw(width, height);
    cursor = svg("line", { class: "cursor", y1: MARGIN.top, y2: height - MARGIN.bottom, visibility: "hidden" });
    marks = svg("g");
    const picture = svg(
      "svg",
      { width, height, viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "img", "aria-label": label },
      current.node, cursor, marks,
    );
    let at = -1;
    const show = (next) => {
      at = next;
      point(at);
    };
    const follow = (event) => {
      const { left, top } = picture.getBoundingClientRect();
      show(nearest(event.clientX - left, event.clientY - top));
    };
    picture.addEventListener("pointermove", follow);
    picture.addEventListener("pointerdown", follow);
    picture.addEventListener("click", () => current.stops[at]?.open?.());
    picture.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hide());
    picture.addEventListener("blur", hide);
    picture.addEventListener("keydown", (event) => {
      const last = current.stops.length - 1;
      if (event.key === "Enter") current.stops[at]?.open?.();
      const next = { ArrowRight: at + 1, ArrowLeft: at < 0 ? last : at - 1, Home: 0, End: last }[event.key];
      if (next === undefined || last < 0) return;
      event.preventDefault();
      show(Math.min(last, Math.max(0, next)));
    });
    box.querySelector("svg")?.remove();
    box.prepend(picture);
    hide();
  }

  function nearest(x, y) {
    let found = -1;
    let least = Infinity;
    current.stops.forEach((stop, at) => {
      const gap = Math.hypot(stop.x - x, stop.y === undefined ? 0 : stop.y - y);
      if (gap < least) [found, least] = [at, gap];
    });
    return found;
  }

  function point(at) {
    const stop = current.stops[at];
    if (!stop) return;
    cursor.setAttribute("x1", stop.x);
    cursor.setAttribute("x2", stop.x);
    cursor.setAttribute("visibility", "visible");
    marks.replaceChildren(...stop.marks.map((mark) => svg("circle", { cx: stop.x, cy: mark.y, r: 3.5, colour: mark.colour })));
    tip.replaceChildren(
      el("b", {}, stop.title),
      ...stop.lines.map((line) => el("div", { colour: line.colour }, el("i"), el("span", {}, line.name), el("b", {}, line.value))),
    );
    tip.hidden = false;
    const right = stop.x > box.clientWidth / 2;
    tip.style.left = right ? "auto" : `${stop.x + 12}px`;
    tip.style.right = right ? `${box.clientWidth - stop.x + 12}px` : "auto";
  }

  function hide() {
    tip.hidden = true;
    cursor.setAttribute("visibility", "hidden");
    marks.replaceChildren();
  }

  let width = 0;
  new ResizeObserver(() => {
    if (box.clientWidth === width) return;
    width = box.clientWidth;
    redraw();
  }).observe(box);
  return { box, redraw: () => box.clientWidth && redraw() };
}

function frame({ width, height, xTicks, yTicks, x, y, xLabel, xText, yText }) {
  const bottom = height - MARGIN.bottom;
  return svg(
    "g", { class: "frame" },
    yTicks.map((tick) => [
      svg("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: y(tick), y2: y(tick) }),
      svg("text", { x: MARGIN.left - 8, y: y(tick) + 4, "text-anchor": "end" }, yText(tick)),
    ]).flat(),
    xTicks.map((tick) => svg("text", { x: x(tick), y: bottom + 16, "text-anchor": "middle" }, xText(tick))),
    svg("text", { class: "axis", x: (MARGIN.left + width - MARGIN.right) / 2, y: height - 5, "text-anchor": "middle" }, xLabel),
  );
}

function scale(low, high, from, to) {
  return (value) => from + ((value - low) / (high - low || 1)) * (to - from);
}

/**
 * Lines over rounds. `series()` gives { name, colour, strong, dash, rounds, values }, `reference` a line to compare with; over
 * something else where `over` says what, and `at` what one of them is called.
 */
function lineChart({
  label, height = 240, series, reference = null, limits = null, least = null, digits = 2, over = "rounds", at = (round) => `round ${round}`,
}) {
  return chart({
    label,
    height,
    draw(width) {
      const lines = series();
      const rounds = [...new Set(lines.flatMap((line) => line.rounds))].sort((a, b) => a - b);
      const values = lines.flatMap((line) => line.values).filter((value) => value !== null);
      if (reference) values.push(reference.value);
      if (least !== null) values.push(least);
      const [low, high] = limits ?? [Math.min(...values), Math.max(...values)];
      const yTicks = values.length ? ticks(low, high) : [0, 1];
      // From 0, since round 0 is where every run begins; the last tick need not reach the edge.
      const lastRound = rounds.at(-1) ?? 1;
      const x = scale(0, lastRound, MARGIN.left, width - MARGIN.right);
      const y = scale(yTicks[0], yTicks.at(-1), height - MARGIN.bottom, MARGIN.top);
      const xTicks = ticks(0, lastRound, width < 420 ? 4 : 6).filter((tick) => tick <= lastRound && Number.isInteger(tick));
      const node = svg(
        "g", {},
        frame({ width, height, xTicks, yTicks, x, y, xLabel: over, xText: String, yText: String }),
        reference && svg(
          "g", { class: "reference" },
          svg("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: y(reference.value), y2: y(reference.value) }),
          svg("text", { x: MARGIN.left + 4, y: y(reference.value) + (y(reference.value) < MARGIN.top + 16 ? 14 : -5) }, reference.label),
        ),
        [...lines].sort((a, b) => weight(a) - weight(b)).map((line) => path(line, x, y)),
      );
      const stops = rounds.map((round) => {
        const there = lines
          .map((line) => ({ ...line, value: line.values[line.rounds.indexOf(round)] ?? null }))
          .filter((line) => line.value !== null)
          .sort((a, b) => b.value - a.value);
        return {
          x: x(round),
          title: at(round),
          marks: there.map((line) => ({ y: y(line.value), colour: line.colour })),
          lines: there.map((line) => ({ name: line.name, colour: line.colour, value: figure(line.value, digits) })),
        };
      });
      return { node, stops };
    },
  });
}

/** Lines of more weight are drawn later, and so on top. */
function weight(line) {
  return line.strong ? 2 : line.own ? 1 : 0;
}

function path(line, x, y) {
  const known = line.rounds.map((round, at) => [round, line.values[at]]).filter(([, value]) => value !== null);
  const points = known.map(([round, value]) => `${x(round).toFixed(1)},${y(value).toFixed(1)}`);
  const looks = { class: `line${line.strong ? " strong" : line.own ? " own" : line.faint ? " faint" : ""}`, colour: line.colour, "stroke-dasharray": line.dash };
  if (points.length === 1) return svg("circle", { ...looks, cx: points[0].split(",")[0], cy: points[0].split(",")[1], r: 3 });
  return svg("polyline", { ...looks, points: points.join(" ") });
}

/** Shares of two groups by bin of log10(score / median). `groups` are { name, colour, counts }. */
function histogram({ label, height = 200, bins, groups }) {
  return chart({
    label,
    height,
    draw(width) {
      const shares = groups.map((group) => {
        const total = group.counts.reduce((sum, count) => sum + count, 0);
        return group.counts.map((count) => (total ? (100 * count) / total : 0));
      });
      const used = bins.filter((_, at) => groups.some((group) => group.counts[at]));
      const low = Math.floor(Math.min(...used.map((bin) => bin[0])));
      const high = Math.ceil(Math.max(...used.map((bin) => bin[1])));
      const yTicks = ticks(0, Math.max(1, ...shares.flat()), 4);
      const x = scale(low, high, MARGIN.left, width - MARGIN.right);
      const y = scale(0, yTicks.at(-1), height - MARGIN.bottom, MARGIN.top);
      const xTicks = Array.from({ length: high - low + 1 }, (_, at) => low + at);
      const bars = groups.map((group, which) => svg(
        "g", { class: "bars", colour: group.colour },
        bins.map(([left, right], at) => group.counts[at] ? svg("rect", {
          x: x(left), width: Math.max(1, x(right) - x(left) - 0.5), y: y(shares[which][at]), height: y(0) - y(shares[which][at]),
        }) : null),
      ));
      const node = svg("g", {}, frame({
        width, height, xTicks, yTicks, x, y, xLabel: "score / median score of its round",
        xText: (tick) => (tick < 0 ? (10 ** tick).toFixed(-tick) : (10 ** tick).toLocaleString("en")), yText: (tick) => `${tick} %`,
      }), bars);
      const stops = bins.map(([left, right], at) => ({
        at,
        x: x((left + right) / 2),
        title: `${(10 ** left).toPrecision(2)} to ${(10 ** right).toPrecision(2)} × median`,
        marks: [],
        lines: groups.map((group, which) => ({ name: group.name, colour: group.colour, value: `${figure(shares[which][at], 1)} %` })),
      })).filter((stop) => groups.some((group) => group.counts[stop.at]));
      return { node, stops };
    },
  });
}
