/**
 * A table of many rows: sorted by a click on a head, filtered by words and by a choice, a page at a time.
 * `columns` are { title, value(row), cell(row), numeric, narrow, descending }: `value` to sort by, `cell` to show (the value if there is none),
 * `narrow` whether it is shown on a phone. `choices` are [name, test(row)], `words(row)` what a search looks through.
 */
function listing({ host, title, text, label, columns, rows, words, choices = [], sorted = 0, size = 50, level = "h2", drawn = () => {} }) {
  const state = { sort: sorted, down: Boolean(columns[sorted].descending), query: "", choice: 0, page: 0 };
  const search = el("input", { type: "search", placeholder: "filter", "aria-label": `Filter ${label}`, autocomplete: "off", maxlength: 200 });
  const choose = el("select", { "aria-label": `Which ${label}` }, choices.map(([name], at) => el("option", { value: at }, name)));
  const count = el("span", { class: "count", role: "status" });
  const head = el("tr", { role: "row" });
  const body = el("tbody", { role: "rowgroup" });
  const pager = el("nav", { class: "pager", "aria-label": `Pages of ${label}` });
  const scroll = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Table of ${label}` },
    el("table", { class: "text rows", role: "table", "aria-label": title }, el("thead", { role: "rowgroup" }, head), body));
  let found = [];

  function select() {
    const wanted = state.query.trim().toLowerCase();
    const test = choices[state.choice]?.[1] ?? (() => true);
    const { value } = columns[state.sort];
    const pairs = rows().filter((row) => test(row) && (!wanted || words(row).toLowerCase().includes(wanted))).map((row) => [value(row), row]);
    const way = state.down ? -1 : 1;
    // What is not known comes last either way.
    pairs.sort(([a], [b]) => known(b) - known(a) || way * (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b) || 0);
    found = pairs.map(([, row]) => row);
    state.page = Math.min(state.page, Math.max(0, Math.ceil(found.length / size) - 1));
    show();
  }

  function known(value) {
    return value === null || value === undefined || Number.isNaN(value) ? 0 : 1;
  }

  function show() {
    head.replaceChildren(...columns.map((column, at) => el(
      "th", { scope: "col", role: "columnheader", class: classes(column), "aria-sort": at === state.sort ? (state.down ? "descending" : "ascending") : null },
      column.value ? el("button", { type: "button", class: "sort", onclick: () => sort(at) }, column.title, el("span", { class: "way", "aria-hidden": "true" }, at === state.sort ? (state.down ? " ▾" : " ▴") : "")) : column.title,
      column.under?.() ?? null,
    )));
    const from = state.page * size;
    body.replaceChildren(...found.slice(from, from + size).map((row) => el("tr", { role: "row" }, columns.map((column, at) => el(
      at ? "td" : "th", { scope: at ? null : "row", role: at ? "cell" : "rowheader", class: classes(column), "data-title": column.title }, column.cell ? column.cell(row) : short(column.value(row)),
    )))));
    const pages = Math.max(1, Math.ceil(found.length / size));
    const all = rows().length;
    count.textContent = found.length === all ? `${all.toLocaleString("en")} ${label}` : `${found.length.toLocaleString("en")} of ${all.toLocaleString("en")} ${label}`;
    pager.hidden = pages === 1;
    const turn = (name, page, sign) => el("button", { type: "button", class: "quiet small", "aria-label": name, disabled: page < 0 || page >= pages || page === state.page, onclick: () => turned(page, name) }, sign);
    pager.replaceChildren(
      turn("First page", 0, "«"), turn("Previous page", state.page - 1, "‹"),
      el("span", {}, `${state.page + 1} of ${pages.toLocaleString("en")}`),
      turn("Next page", state.page + 1, "›"), turn("Last page", pages - 1, "»"),
    );
    drawn();
  }

  function turned(page, name) {
    state.page = page;
    show();
    const again = pager.querySelector(`[aria-label="${name}"]`);
    (again.disabled ? scroll : again).focus({ preventScroll: true });
  }

  function sort(at) {
    state.down = at === state.sort ? !state.down : Boolean(columns[at].descending);
    state.sort = at;
    state.page = 0;
    select();
    head.children[at].querySelector("button").focus({ preventScroll: true });
  }

  function classes(column) {
    return [column.numeric && "n", column.narrow === false && "wide", column.class].filter(Boolean).join(" ") || null;
  }

  let waiting = null;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      state.query = search.value;
      state.page = 0;
      select();
    }, 120);
  });
  choose.addEventListener("change", () => {
    state.choice = Number(choose.value);
    state.page = 0;
    select();
  });
  host.replaceChildren(
    el(level, {}, title), ...(text ? [text] : []),
    el("div", { class: "controls" }, search, choices.length ? choose : null, count),
    scroll, pager,
  );
  select();
  return {
    select,
    show,
    /** Go to the page with this row, if the filter lets it through. */
    go(row) {
      const at = found.indexOf(row);
      if (at < 0) return;
      state.page = Math.floor(at / size);
      show();
      const line = body.children[at % size];
      line.classList.add("found");
      line.scrollIntoView({ block: "center" });
    },
  };
}
