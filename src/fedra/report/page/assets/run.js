const run = data.run;
const lines = run.series.filter((line) => line.values.some((value) => value !== null));

function place(id, ...children) {
  document.getElementById(id)?.append(...children);
}

if (run.accuracy.rounds.length) {
  place("accuracy-chart", lineChart({
    label: "Accuracy over rounds; arrow keys read the values",
    height: 280,
    series: () => [{ name: "accuracy", colour: MALICIOUS, strong: true, ...run.accuracy }],
    reference: run.published === null ? null : { value: run.published, label: `published ${figure(run.published)}` },
  }).box);
}
if (lines.length) {
  place("rejection-chart",
    lineChart({ label: "Clients in a round, and whom the rule rejected", height: 240, series: () => lines, least: 0 }).box,
    legend(lines));
}
if (run.scores) {
  const groups = [{ name: "honest", colour: HONEST, counts: run.scores[0] }, { name: "malicious", colour: MALICIOUS, counts: run.scores[1] }]
    .filter((group) => group.counts.some((count) => count));
  place("score-chart", el("h3", {}, "Scores"),
    histogram({ label: "Scores of honest and malicious clients", bins: run.bins, groups }).box,
    el("div", { class: "keys" }, groups.map((group) => el("span", { class: "key block", colour: group.colour }, el("i"),
      `${group.name} (${group.counts.reduce((sum, count) => sum + count, 0).toLocaleString("en")})`))),
    el("p", { class: "caption" }, "Share of each group by score, over the last 50 rounds. The farther apart, the better."));
}
const command = document.querySelector(".command");
command.append(copyButton(command.querySelector("code")));
