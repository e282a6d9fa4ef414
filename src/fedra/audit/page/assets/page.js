const SECONDS = 2;

function stripWidth() {
  return Math.round(Math.max(200, Math.min(document.documentElement.clientWidth < 760 ? 1000 : 340, document.documentElement.clientWidth - 64)));
}

function clientList() {
  return listing({
    host: document.getElementById("clients"), title: "Clients", label: "clients", text: key(), sorted: 3,
    rows: () => current.clients.name.map((_, at) => at),
    words: (at) => `${current.clients.name[at]} ${current.clients.why[at]}`,
    choices: [["all clients", () => true], ["dropped at least once", (at) => current.clients.dropped[at] > 0], ["never dropped", (at) => !current.clients.dropped[at]], ["unusable replies", (at) => current.clients.unusable[at] > 0], ["claims twice its implied quantity", (at) => current.clients.claim[at] > 2 * (current.clients.implied[at] ?? Infinity)]],
    columns: [
      { title: "client", value: (at) => current.clients.name[at], cell: (at) => el("button", { type: "button", class: "link", "aria-haspopup": "dialog", onclick: () => openClient(at) }, current.clients.name[at]) },
      { title: "replies", numeric: true, descending: true, value: (at) => current.clients.replies[at] },
      { title: "dropped", numeric: true, descending: true, value: (at) => current.clients.dropped[at] },
      { title: "share", numeric: true, descending: true, value: (at) => current.clients.dropped[at] / (current.clients.replies[at] || 1), cell: (at) => `${Math.round((100 * current.clients.dropped[at]) / (current.clients.replies[at] || 1))} %` },
      { title: "median claim", numeric: true, descending: true, value: (at) => current.clients.claim[at] },
      { title: "implied", numeric: true, descending: true, narrow: false, value: (at) => current.clients.implied[at] },
      { title: "rounds", class: "time", under: () => roundAxis(current, stripWidth()), cell: (at) => {
        const { picture, roundAt } = timeline(current, current.ofClient(at), stripWidth(), words(current, at));
        picture.addEventListener("click", (event) => openClient(at, roundAt(event.clientX - picture.getBoundingClientRect().left)));
        return picture;
      } },
      { title: "why", class: "why", cell: (at) => current.clients.why[at] || "–", value: (at) => current.clients.why[at] },
    ],
  });
}

function roundList() {
  const counts = (round) => {
    const found = [0, 0, 0, 0];
    for (const at of current.ofRound(round)) found[current.columns.state[at]] += 1;
    return found;
  };
  return listing({
    host: document.getElementById("rounds"), title: "Rounds", label: "rounds", sorted: 0,
    rows: () => current.rounds.number.map((_, at) => at),
    words: (at) => [current.rounds.number[at], current.texts[current.rounds.run[at]], current.texts[current.rounds.note[at]], ...current.rounds.warnings[at].map((text) => current.texts[text])].join(" "),
    choices: [["all rounds", () => true], ["skipped", (at) => Boolean(current.texts[current.rounds.note[at]])], ["with warnings", (at) => current.rounds.warnings[at].length > 0], ["after a gap", (at) => at > 0 && current.rounds.number[at] > current.rounds.number[at - 1] + 1]],
    columns: [
      { title: "round", numeric: true, descending: true, value: (at) => at, cell: (at) => roundButton(current, at) },
      { title: "run", narrow: false, value: (at) => current.texts[current.rounds.run[at]], cell: (at) => current.texts[current.rounds.run[at]] },
      { title: "rule", narrow: false, value: (at) => current.texts[current.rounds.rule[at]], cell: (at) => current.texts[current.rounds.rule[at]] },
      { title: "kept", numeric: true, value: (at) => counts(at)[KEPT] },
      { title: "dropped", numeric: true, descending: true, value: (at) => counts(at)[DROPPED] },
      { title: "unusable", numeric: true, descending: true, value: (at) => counts(at)[UNUSABLE] },
      { title: "assumed malicious", numeric: true, narrow: false, value: (at) => current.rounds.malicious[at] },
      { title: "remarks", class: "why", cell: (at) => [...(current.texts[current.rounds.note[at]] ? [`skipped: ${current.texts[current.rounds.note[at]]}`] : []), ...current.rounds.warnings[at].map((text) => current.texts[text])].join("; ") || "–" },
    ],
  });
}

current = await unpacked(document.getElementById("data").textContent);
const drawCharts = overview(document.getElementById("charts"), () => current);
const lists = [clientList(), roundList()];
let drawnWidth = stripWidth();
addEventListener("resize", () => {
  if (stripWidth() === drawnWidth) return;
  drawnWidth = stripWidth();
  lists[0].show();
});
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());

/** Where a server hands the page out, ask it for the latest version, and take what changed without losing the reader's place. */
async function refreshed() {
  const state = document.querySelector("meta[name=fedra-version]");
  try {
    const version = await (await fetch("version", { cache: "no-store" })).text();
    if (version === state.content) return "following";
    const fresh = new DOMParser().parseFromString(await (await fetch("./", { cache: "no-store" })).text(), "text/html");
    current = await unpacked(fresh.getElementById("data").textContent);
    document.getElementById("summary").replaceChildren(...fresh.getElementById("summary").childNodes);
    state.content = fresh.querySelector("meta[name=fedra-version]").content;
    drawCharts();
    lists.forEach((list) => list.select());
    return "following";
  } catch {
    return "the server does not answer: this is what was there last";
  }
}

if (document.querySelector("meta[name=fedra-version]")) {
  const status = el("p", { class: "live", role: "status" }, "following");
  document.querySelector("header").after(status);
  const again = async () => {
    const text = await refreshed();
    if (status.textContent !== text) status.textContent = text;
    setTimeout(again, SECONDS * 1000);
  };
  setTimeout(again, SECONDS * 1000);
}
document.documentElement.dataset.ready = "yes";
