const dialog = document.getElementById("details");
let current = null;

function opened(title, tiles, ...parts) {
  const close = el("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: () => dialog.close() }, "✕");
  dialog.replaceChildren(
    el("div", { class: "head" }, el("h2", { id: "details-title", tabindex: -1 }, title), close),
    el("div", { class: "tiles" }, tiles.map(([figure, text]) => el("div", { class: "tile" }, el("b", {}, figure), ` ${text}`))),
    ...parts,
  );
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  document.getElementById("details-title").focus();
}

/** Return the columns that replies have in both kinds of details. */
function replyColumns(data) {
  const { columns, texts } = data;
  const number = (title, name, narrow) => ({ title, numeric: true, narrow, descending: true, value: (at) => columns[name][at] });
  return [
    { title: "became", value: (at) => columns.state[at], cell: (at) => [mark(columns.state[at]), ` ${STATES[columns.state[at]]}`], class: "state" },
    number("claim", "claim", true), number("implied", "implied", true), number("score", "score", true),
    number("cut", "cut", false), number("weight", "weight", false),
    { title: "why", value: (at) => texts[columns.reason[at]], cell: (at) => texts[columns.reason[at]] || "–", class: "why" },
  ];
}

/** Show one client's rounds, from a given one if that is known. */
function openClient(client, round = null) {
  const data = current;
  const { clients, columns, rounds, texts } = data;
  const replies = Array.from(data.ofClient(client));
  const host = el("section", {});
  const width = Math.max(200, Math.min(1000, document.documentElement.clientWidth - 90));
  const strip = timeline(data, replies, width, words(data, client));
  strip.picture.addEventListener("click", (event) => {
    const wanted = strip.roundAt(event.clientX - strip.picture.getBoundingClientRect().left);
    list.go(replies.find((at) => columns.round[at] >= wanted));
  });
  opened(
    `Client ${clients.name[client]}`,
    [[clients.replies[client].toLocaleString("en"), "replies"], [clients.dropped[client].toLocaleString("en"), "dropped"], [clients.unusable[client].toLocaleString("en"), "of them unusable"], [short(clients.claim[client]), "median claim"], [short(clients.implied[client]), "implied by its updates"]],
    el("div", { class: "strips" }, strip.picture, roundAxis(data, width)), key(), host,
  );
  const runs = new Set(rounds.run).size > 1;
  const list = listing({
    host, title: "Its rounds", label: "rounds", level: "h3", rows: () => replies,
    columns: [
      { title: "round", numeric: true, value: (at) => columns.round[at], cell: (at) => roundButton(data, columns.round[at]) },
      ...(runs ? [{ title: "run", narrow: false, value: (at) => texts[rounds.run[columns.round[at]]], cell: (at) => texts[rounds.run[columns.round[at]]] }] : []),
      ...replyColumns(data),
    ],
    words: (at) => `${rounds.number[columns.round[at]]} ${texts[columns.reason[at]]}`,
    choices: [["all its rounds", () => true], ["dropped or unusable", (at) => [DROPPED, UNUSABLE].includes(columns.state[at])], ["unusable", (at) => columns.state[at] === UNUSABLE]],
  });
  if (round !== null) list.go(replies.find((at) => columns.round[at] >= round));
}

/** Show one round's clients. */
function openRound(round) {
  const data = current;
  const { clients, columns, rounds, texts } = data;
  const replies = Array.from(data.ofRound(round));
  const host = el("section", {});
  const left = replies.filter((at) => [DROPPED, UNUSABLE].includes(columns.state[at])).length;
  const time = rounds.time[round];
  const remarks = [...(texts[rounds.note[round]] ? [`skipped: ${texts[rounds.note[round]]}`] : []), ...rounds.warnings[round].map((text) => texts[text])];
  opened(
    `Round ${rounds.number[round]}`,
    [[texts[rounds.rule[round]], "rule"], [texts[rounds.run[round]], "run"], [replies.length.toLocaleString("en"), "replies"], [left.toLocaleString("en"), "dropped or unusable"], [short(rounds.malicious[round]), "assumed malicious"], ...(time === null ? [] : [[clock(time), ""]])],
    remarks.length ? el("ul", {}, remarks.map((text) => el("li", {}, text))) : "", key(), host,
  );
  listing({
    host, title: "Its clients", label: "clients", level: "h3", rows: () => replies, sorted: 1,
    columns: [
      { title: "client", value: (at) => clients.name[columns.client[at]], cell: (at) => el("button", { type: "button", class: "link", onclick: () => openClient(columns.client[at], round) }, clients.name[columns.client[at]]) },
      ...replyColumns(data).map((column, at) => (at ? column : { ...column, descending: true })),
    ],
    words: (at) => `${clients.name[columns.client[at]]} ${texts[columns.reason[at]]}`,
    choices: [["all clients", () => true], ["dropped or unusable", (at) => [DROPPED, UNUSABLE].includes(columns.state[at])]],
  });
}

function clock(seconds) {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? "–" : date.toISOString().slice(0, 19).replace("T", " ") + " UTC";
}

function roundButton(data, round) {
  return el("button", { type: "button", class: "link", onclick: () => openRound(round) }, String(data.rounds.number[round]));
}

/** Return a client's timeline in words. */
function words(data, client) {
  const { replies, dropped, unusable } = data.clients;
  return `${replies[client]} replies, ${dropped[client]} dropped, ${unusable[client]} of them unusable`;
}
