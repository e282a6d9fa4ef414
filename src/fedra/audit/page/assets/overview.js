const MOST_POINTS = 3000;
const GREEN = "#2e7d5b", RED = "#c0392b", PURPLE = "#8e24aa", BLUE = "#2c6fbb";

/** Draw over rounds: `value(bin, length)` gives the lines of text, and for lines their heights; `shapes` what is drawn. */
function overRounds(data, { label, height = 200, series, stacked = false, yText = String }) {
  return chart({
    label,
    height,
    draw(width) {
      const rounds = data().rounds;
      const inside = width - MARGIN.left - MARGIN.right;
      const { length, count } = bins(rounds.number.length, inside / (stacked ? 3 : 2));
      const lines = series(length, count);
      const sums = Array.from({ length: count }, (_, bin) => lines.reduce((sum, line) => sum + (line.values[bin] ?? 0), 0));
      const top = Math.max(1e-9, ...(stacked ? sums : lines.flatMap((line) => line.values).filter((value) => value !== null)));
      const yTicks = ticks(0, top, 4);
      const y = scale(0, yTicks.at(-1), height - MARGIN.bottom, MARGIN.top);
      const step = inside / Math.max(1, count);
      const x = (bin) => MARGIN.left + (bin + 0.5) * step;
      const wanted = Math.max(1, Math.min(count - 1, width < 420 ? 3 : 6));
      const xTicks = [...new Set(Array.from({ length: wanted + 1 }, (_, at) => Math.round((at * (count - 1)) / wanted)))];
      const base = new Array(count).fill(0);
      const drawn = lines.map((line) => {
        if (!stacked) return svg("polyline", { class: "line strong", colour: line.colour, "stroke-dasharray": line.dash, points: line.values.map((value, bin) => value === null ? null : `${x(bin).toFixed(1)},${y(value).toFixed(1)}`).filter(Boolean).join(" ") });
        const shape = line.values.map((value, bin) => {
          const low = base[bin];
          base[bin] += value ?? 0;
          return value ? `M${(x(bin) - step / 2).toFixed(1)} ${y(base[bin]).toFixed(1)}h${Math.max(1, step - (step > 4 ? 1 : 0)).toFixed(1)}V${y(low).toFixed(1)}h${(-Math.max(1, step - (step > 4 ? 1 : 0))).toFixed(1)}z` : "";
        }).join("");
        return svg("path", { class: `mark s${line.state}`, d: shape });
      });
      return {
        node: svg("g", {}, frame({ width, height, xTicks, yTicks, x, y, xLabel: "round", xText: (bin) => String(rounds.number[bin * length] ?? ""), yText }), drawn),
        stops: Array.from({ length: count }, (_, bin) => ({
          x: x(bin),
          title: binName(rounds, bin, length),
          marks: stacked ? [] : lines.filter((line) => line.values[bin] !== null).map((line) => ({ y: y(line.values[bin]), colour: line.colour })),
          lines: lines.map((line) => ({ name: line.name, colour: line.colour, value: line.values[bin] === null ? "–" : short(line.values[bin]) })),
          open: () => openRound(bin * length),
        })),
      };
    },
  });
}

/** Kept, dropped and unusable replies of each round; of several rounds, the mean. */
function outcomes(data) {
  return (length, count) => {
    const { columns, rounds } = data();
    const sums = [KEPT, DROPPED, UNUSABLE].map(() => new Array(count).fill(0));
    columns.round.forEach((round, at) => {
      if (columns.state[at] !== SKIPPED) sums[columns.state[at]][Math.floor(round / length)] += 1;
    });
    const size = (bin) => Math.min(length, rounds.number.length - bin * length);
    return [[KEPT, GREEN], [DROPPED, RED], [UNUSABLE, PURPLE]].map(([state, colour]) => ({
      name: STATES[state], state, colour, values: sums[state].map((sum, bin) => sum / size(bin)),
    }));
  };
}

/** The largest and the median weight among kept replies of each round; of several rounds, the largest and the mean. */
function weights(data) {
  return (length, count) => {
    const { columns, rounds, ofRound } = data();
    const largest = new Array(count).fill(null);
    const medians = Array.from({ length: count }, () => []);
    for (let round = 0; round < rounds.number.length; round += 1) {
      const kept = Array.from(ofRound(round)).filter((at) => columns.state[at] === KEPT).map((at) => columns.weight[at]).filter((weight) => weight > 0);
      if (!kept.length) continue;
      kept.sort((a, b) => a - b);
      const bin = Math.floor(round / length);
      largest[bin] = Math.max(largest[bin] ?? 0, kept.at(-1));
      medians[bin].push(kept[Math.floor(kept.length / 2)]);
    }
    return [
      { name: "largest weight of one client", colour: BLUE, values: largest },
      { name: "median weight", colour: GREEN, dash: "5 4", values: medians.map(mean) },
    ];
  };
}

/** Claims against what updates imply, both as medians of a client, on logarithmic axes. */
function claims(data) {
  return chart({
    label: "Median claim of each client against the quantity that its updates imply",
    height: 300,
    draw(width, height) {
      const { clients } = data();
      const points = clients.name.map((_, at) => at).filter((at) => clients.claim[at] > 0 && clients.implied[at] > 0).slice(0, MOST_POINTS);
      const powers = points.flatMap((at) => [clients.claim[at], clients.implied[at]]).map(Math.log10);
      const low = Math.floor(Math.min(0, ...powers));
      const high = Math.max(low + 1, Math.ceil(Math.max(1, ...powers)));
      const all = Array.from({ length: high - low + 1 }, (_, at) => low + at);
      const every = all.filter((_, at) => at % Math.ceil(all.length / 8) === 0);
      const x = scale(low, high, MARGIN.left, width - MARGIN.right);
      const y = scale(low, high, height - MARGIN.bottom, MARGIN.top);
      const place = (at) => [x(Math.log10(clients.claim[at])), y(Math.log10(clients.implied[at]))];
      const often = (at) => clients.dropped[at] > clients.replies[at] / 2;
      const shapes = [
        [points.filter((at) => !often(at)), KEPT, (px, py) => `M${px - 3} ${py}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z`],
        [points.filter(often), DROPPED, (px, py) => `M${px - 4.5} ${py + 4}h9l-4.5 -8.5z`],
      ];
      const power = (tick) => (tick < 0 || tick > 5 ? `1e${tick}` : (10 ** tick).toLocaleString("en"));
      return {
        node: svg(
          "g", {},
          frame({ width, height, xTicks: every, yTicks: every, x, y, xLabel: "median claim", xText: power, yText: power }),
          svg("g", { class: "reference" }, svg("line", { x1: x(low), y1: y(low), x2: x(high), y2: y(high) })),
          shapes.map(([those, state, shape]) => svg("path", { class: `mark point s${state}`, d: those.map((at) => shape(...place(at).map((value) => Number(value.toFixed(1))))).join("") })),
        ),
        stops: points.map((at) => ({
          x: place(at)[0],
          y: place(at)[1],
          title: clients.name[at],
          marks: [],
          lines: [
            { name: "claims", colour: BLUE, value: short(clients.claim[at]) },
            { name: "implied by its updates", colour: GREEN, value: short(clients.implied[at]) },
            { name: "dropped", colour: RED, value: `${clients.dropped[at]} of ${clients.replies[at]}` },
          ],
          open: () => openClient(at),
        })).sort((a, b) => a.x - b.x),
      };
    },
  });
}

function figureOf(title, text, picture, keys = null) {
  return el("figure", {}, el("figcaption", {}, el("b", {}, title), " ", text), picture.box, keys);
}

/** Put the charts into the page; return a function that draws them again. */
function overview(host, data) {
  const lines = (pairs) => el("p", { class: "keys" }, pairs.map(([name, colour, dash]) => el("span", { class: "key" },
    svg("svg", { width: 22, height: 10, "aria-hidden": "true" }, svg("line", { class: "line strong", x1: 1, x2: 21, y1: 5, y2: 5, colour, "stroke-dasharray": dash })), name)));
  const implied = () => data().clients.implied.some((value) => value !== null);
  const charts = [];
  const add = (title, text, picture, keys) => {
    charts.push(picture);
    return figureOf(title, text, picture, keys);
  };
  const draw = () => {
    charts.length = 0;
    host.replaceChildren(...(data().rounds.number.length ? [
      add("Replies.", "Kept, dropped by the rule, and unusable, in each round.", overRounds(data, { label: "Kept, dropped and unusable replies over rounds", series: outcomes(data), stacked: true }), key()),
      add("Weights.", "What one client weighs in a round's result.", overRounds(data, { label: "Largest and median weight over rounds", series: weights(data), yText: (tick) => String(tick) }), lines([["largest weight of one client", BLUE], ["median weight", GREEN, "5 4"]])),
      implied()
        ? add("Claims.", `A client below the line claims more than its updates imply.${data().clients.name.length > MOST_POINTS ? ` The ${MOST_POINTS.toLocaleString("en")} that were dropped most.` : ""}`, claims(data), el("p", { class: "keys" }, el("span", { class: "key" }, "● kept in half of its replies or more"), el("span", { class: "key" }, "▲ dropped in more than half")))
        : el("figure", {}, el("figcaption", {}, el("b", {}, "Claims."), " This rule does not estimate what an update implies.")),
    ] : []));
  };
  draw();
  return draw;
}
