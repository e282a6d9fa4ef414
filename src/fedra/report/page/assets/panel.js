const DASHES = [null, "7 3", "2 3", "9 3 2 3"];

const panel = document.getElementById("panel");
// Rules that the reader has put out of the comparison stay out from cell to cell.
const silenced = new Set();

function unpacked([ours, std, published, by, runs]) {
  return { ours, std, published, by, runs: runs.map((run) => data.runs[run]) };
}

function columnLabel([attack, alpha]) {
  return alpha === null ? [attack] : [`${attack}, `, el("i", {}, "α", el("sub", {}, "q")), ` ${alpha}`];
}

/** Fill the panel with the entry at table, row and column. */
function fillPanel(tableAt, rowAt, columnAt, onClose) {
  const table = data.tables[tableAt];
  const row = table.rows[rowAt];
  const entry = unpacked(row.entries[columnAt]);
  const done = entry.runs.filter((run) => run.status === "done");
  panel.replaceChildren(
    el("div", { class: "panel-head" },
      el("div", {},
        el("h2", { id: "panel-title" }, row.label, " ", el("span", {}, columnLabel(table.columns[columnAt]))),
        el("p", { class: "caption" }, [table.title, row.family, entry.by ? `here ${entry.by}` : ""].filter(Boolean).join(" · "))),
      el("button", { type: "button", class: "quiet close", "aria-label": "Close", onclick: onClose }, "×")),
    el("div", { class: "panel-body" },
      headline(entry, table.compared),
      troubles(entry),
      curves(table, rowAt, columnAt, entry),
      filtering(entry, done),
      treatment(done),
      scores(entry),
      settings(entry)),
  );
}

function headline({ ours, std, published, runs }, compared) {
  const text = figure(ours) + (std === null ? "" : ` ± ${std.toFixed(2)}`);
  if (!compared) {
    const done = runs.filter((run) => run.status === "done").length;
    return tiles([["accuracy", text], ["seeds done", `${done} of ${runs.length}`]]);
  }
  const difference = ours === null || published === null ? null : ours - published;
  return tiles([
    ["ours", text],
    ["published", figure(published)],
    ["difference", difference === null ? "–" : (difference > 0 ? "+" : "") + figure(difference)],
  ]);
}

function troubles(entry) {
  const lines = entry.runs
    .filter((run) => run.status !== "done" || run.error)
    .map((run) => el("li", {}, el("b", {}, run.status), ` ${run.name}`, run.error ? `: ${run.error}` : ""));
  return lines.length ? el("ul", { class: "troubles" }, lines) : null;
}

function seedName(run) {
  return run.seed === undefined || run.seed === null ? run.name : `seed ${run.seed}`;
}

function roundsOf(run) {
  return data.pool[run.rounds];
}

/** Return the mean over runs of a curve, at each round that one of them has measured. */
function averaged(runs, name) {
  const rounds = [...new Set(runs.flatMap(roundsOf))].sort((a, b) => a - b);
  return { rounds, values: rounds.map((round) => mean(runs.map((run) => run[name][roundsOf(run).indexOf(round)]))) };
}

function curves(table, rowAt, columnAt, entry) {
  const rows = table.rows;
  const measured = rows.map((row) => row.entries[columnAt] ? unpacked(row.entries[columnAt]).runs.filter((run) => run.accuracy.length) : []);
  if (!measured.some((runs) => runs.length)) return section("Accuracy over rounds", el("p", { class: "caption" }, "Nothing was measured."));
  const lines = () => rows.flatMap((row, at) => {
    if (!measured[at].length || (at !== rowAt && silenced.has(row.label)) || (at === rowAt && own.hidden)) return [];
    const colour = row.colour;
    if (at !== rowAt) return [{ name: row.label, colour, own: row.own, faint: row.faint, dash: row.own ? null : DASHES[at % DASHES.length], ...averaged(measured[at], "accuracy") }];
    return measured[at].map((run) => ({
      name: `${row.label}, ${seedName(run)}`, colour, strong: true, rounds: roundsOf(run), values: run.accuracy,
    }));
  });
  const own = { hidden: false };
  const reference = entry.published === null ? null : { value: entry.published, label: `published ${figure(entry.published)}` };
  const picture = lineChart({ label: "Accuracy over rounds; arrow keys read the values", height: 280, series: lines, reference });
  const keys = rows.map((row, at) => !measured[at].length ? null : key(row.label, row.colour, at === rowAt || row.own ? null : DASHES[at % DASHES.length], {
    on: at === rowAt || !silenced.has(row.label),
    strong: at === rowAt,
    toggle(on) {
      if (at === rowAt) own.hidden = !on;
      else if (on) silenced.delete(row.label);
      else silenced.add(row.label);
      picture.redraw();
    },
  }));
  const count = measured[rowAt].length;
  const others = keys.filter((node) => node && !node.classList.contains("strong"));
  const every = (on) => others.forEach((node) => (node.getAttribute("aria-pressed") === "true") !== on && node.click());
  return section("Accuracy over rounds", picture.box,
    el("div", { class: "keys", role: "group", "aria-label": "Lines" }, keys,
      others.length > 1 ? [
        el("button", { type: "button", class: "text-button", onclick: () => every(true) }, "all"),
        el("button", { type: "button", class: "text-button", onclick: () => every(false) }, "this one only"),
      ] : null),
    el("p", { class: "caption" }, `Test accuracy in percent. ${rows[rowAt].label}: ${count === 1 ? "one seed" : `a line for each of ${count} seeds`}; other rules: mean over seeds.`));
}

function key(name, colour, dash, { on, strong, toggle }) {
  const button = el("button", { type: "button", class: strong ? "key strong" : "key", colour, "aria-pressed": String(on) },
    svg("svg", { width: 22, height: 10, "aria-hidden": "true" },
      svg("line", { class: strong ? "line strong" : "line", x1: 1, x2: 21, y1: 5, y2: 5, "stroke-dasharray": dash, colour })),
    name);
  button.addEventListener("click", () => {
    const now = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(now));
    toggle(now);
  });
  return button;
}

function filtering(entry, done) {
  const [precision, recall, error] = [2, 3, 4].map((at) => mean(done.map((run) => run.figures[at])));
  const measured = entry.runs.filter((run) => run.accuracy.length);
  const shares = [["precision", HONEST, null], ["recall", MALICIOUS, "7 3"]]
    .map(([name, colour, dash]) => ({ name, colour, dash, strong: true, ...averaged(measured, name) }))
    .filter((line) => line.values.some((value) => value !== null));
  const errors = { name: "error of the estimated number", colour: HONEST, strong: true, ...averaged(measured, "estimate") };
  const estimated = errors.values.some((value) => value > 0);
  if (precision === null && recall === null && error === null && !shares.length && !estimated) return null;
  return section("Filtering",
    tiles([["precision", figure(precision, 3)], ["recall", figure(recall, 3)], ["error of estimate", figure(error, 2)]]),
    shares.length ? [
      lineChart({ label: "Precision and recall over rounds", height: 190, series: () => shares, limits: [0, 1], digits: 3 }).box,
      legend(shares),
    ] : null,
    estimated ? [
      lineChart({ label: "Error of the estimated number of malicious clients over rounds", height: 170, series: () => [errors], least: 0 }).box,
      legend([errors]),
    ] : null,
    el("p", { class: "caption" }, "Precision: share of rejected clients that were malicious. Recall: share of malicious clients that were rejected. Error: how far the estimated number of malicious clients was off, mean over rounds."));
}

function treatment(done) {
  const names = ["backdoor success", "attackers' weight", "honest dropped", "honest data dropped", "honest silenced"];
  const shown = names.map((name, at) => {
    const value = mean(done.map((run) => run.figures[5 + at]));
    return value === null ? null : [name, `${figure(at ? 100 * value : value, 1)} %`];
  }).filter(Boolean);
  if (!shown.length) return null;
  return section("Clients", tiles(shown),
    el("p", { class: "caption" }, "Attackers' weight: their share of the weight, mean over rounds. Dropped: share of honest clients, and of their data, that was not kept. Silenced: dropped, or with less than a tenth of what FedAvg would give them among the honest ones."));
}

function scores(entry) {
  const scored = entry.runs.filter((run) => run.scores);
  if (!scored.length) return null;
  const summed = (which) => data.bins.map((_, at) => scored.reduce((sum, run) => sum + run.scores[which][at], 0));
  const groups = [{ name: "honest", colour: HONEST, counts: summed(0) }, { name: "malicious", colour: MALICIOUS, counts: summed(1) }]
    .filter((group) => group.counts.some((count) => count));
  if (!groups.length) return null;
  return section("Scores",
    histogram({ label: "Scores of benign and malicious clients", bins: data.bins, groups }).box,
    el("div", { class: "keys" }, groups.map((group) => el("span", { class: "key block", colour: group.colour }, el("i"),
      `${group.name} (${group.counts.reduce((sum, count) => sum + count, 0).toLocaleString("en")})`))),
    el("p", { class: "caption" }, "Share of each group by score, over the last 50 rounds. The farther apart, the better."));
}

function settings(entry) {
  const known = entry.runs.filter((run) => run.config);
  if (!known.length) return null;
  const box = el("div");
  const show = (run) => {
    const code = el("code", { tabindex: 0 }, run.command);
    box.replaceChildren(
      run.command ? el("div", { class: "command" }, code, copyButton(code)) : "",
      el("table", { class: "text" }, el("tbody", {}, data.keys.map((name, at) => {
        const value = data.pool[run.config[at]];
        return value === "null" || value === "{}" ? null : el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, value));
      }))));
  };
  show(known[0]);
  const choice = known.length < 2 ? null : el("label", { class: "choice" }, "for ",
    el("select", { onchange: (event) => show(known[event.target.value]) }, known.map((run, at) => el("option", { value: at }, seedName(run)))));
  return section("Repeat it", choice, box);
}
