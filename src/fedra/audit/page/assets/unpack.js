const KEPT = 0, DROPPED = 1, UNUSABLE = 2, SKIPPED = 3;
const STATES = ["kept", "dropped", "unusable", "round skipped"];
const TYPES = { I: Uint32Array, B: Uint8Array, f: Float32Array, d: Float64Array };

/** Return the page's data: clients, rounds and texts as the server wrote them, replies as columns, and the replies of each. */
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const columns = {};
  let at = aligned(4 + length);
  for (const [name, type, count] of header.columns) {
    columns[name] = new TYPES[type](buffer, at, count);
    at = aligned(at + columns[name].byteLength);
  }
  return {
    ...header,
    columns,
    ofClient: grouped(columns.client, header.clients.name.length),
    ofRound: grouped(columns.round, header.rounds.number.length),
  };
}

function aligned(offset) {
  return Math.ceil(offset / 8) * 8;
}

/** Return a function from a group to the indices of its members, in their order. */
function grouped(keys, groups) {
  const begins = new Uint32Array(groups + 1);
  for (const key of keys) begins[key + 1] += 1;
  for (let group = 0; group < groups; group += 1) begins[group + 1] += begins[group];
  const next = begins.slice();
  const order = new Uint32Array(keys.length);
  keys.forEach((key, at) => { order[next[key]++] = at; });
  return (group) => order.subarray(begins[group], begins[group + 1]);
}

/** Return a quantity or a score to four figures, or a dash. */
function short(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en");
  if (Math.abs(value) >= 1000 && Math.abs(value) < 1e15) return Math.round(value).toLocaleString("en");
  const text = value.toPrecision(4);
  return (text.includes("e") ? text : String(Number(text))).replace("-", "−");
}

/** Put rounds into at most so many bins of equal length; return how many bins, and the length. */
function bins(count, most) {
  const length = Math.max(1, Math.ceil(count / Math.max(1, most)));
  return { length, count: Math.ceil(count / length) };
}

/** Return the name of a bin: its round, or from which to which. */
function binName(rounds, bin, length) {
  const first = rounds.number[bin * length];
  const last = rounds.number[Math.min(rounds.number.length, (bin + 1) * length) - 1];
  return first === last ? `round ${first}` : `rounds ${first} to ${last}`;
}
