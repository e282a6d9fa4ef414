const { lines } = JSON.parse(document.getElementById("data").textContent);

/** A short piece of a line as it is drawn, and its name. */
function key(line) {
  const sign = svg("svg", { width: 30, height: 10, "aria-hidden": "true" },
    svg("line", { class: "line strong", x1: 1, x2: 29, y1: 5, y2: 5, colour: line.colour, "stroke-dasharray": line.dash || null }));
  return el("span", { class: "key" }, sign, line.name);
}

if (lines.some((line) => line.rounds.length > 1)) {
  const { box } = lineChart({
    label: "Cosine of each rule's step with the honest mean, by number of attackers; arrow keys read the values",
    height: 260,
    series: () => lines.map((line) => ({ ...line, own: true, dash: line.dash || null })),
    limits: [-1, 1],
    reference: { value: 0, label: "below: turned" },
    over: "attackers in the round",
    at: (number) => (number === 1 ? "1 attacker" : `${number} attackers`),
  });
  document.getElementById("worst-chart").append(box, el("div", { class: "keys" }, lines.map(key)));
}
document.documentElement.dataset.ready = "";
