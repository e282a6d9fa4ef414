const page = document.getElementById("page");
const backdrop = document.getElementById("backdrop");
const buttons = [...document.querySelectorAll("button.cell")];
const byLink = new Map(buttons.map((button) => [plain(button.dataset.cell), button]));
const narrow = matchMedia("(max-width: 760px)");
let chosen = null;

/** Undo percent signs; an address that somebody has cut short is taken as it is. */
function plain(text) {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return text;
    throw error;
  }
}

function linked() {
  return location.hash.startsWith("#cell=") ? byLink.get(plain(location.hash.slice(6))) ?? null : null;
}

function open(button) {
  if (button === chosen) return;
  chosen?.removeAttribute("aria-current");
  chosen = button;
  button.setAttribute("aria-current", "true");
  fillPanel(...button.dataset.at.split(",").map(Number), close);
  panel.hidden = false;
  panel.scrollTop = 0;
  document.body.classList.add("opened");
  modal();
  panel.focus({ preventScroll: true });
}

/** Where the panel covers the page, the page is out of reach until it is closed. */
function modal() {
  const covering = chosen !== null && narrow.matches;
  page.inert = covering;
  backdrop.hidden = !covering;
  panel.setAttribute("aria-modal", String(covering));
}

function shut() {
  if (!chosen) return;
  const button = chosen;
  chosen = null;
  button.removeAttribute("aria-current");
  panel.hidden = true;
  document.body.classList.remove("opened");
  modal();
  button.focus({ preventScroll: true });
}

function close() {
  shut();
  history.replaceState(null, "", "#");
}

function follow() {
  const button = linked();
  if (!button) return shut();
  button.scrollIntoView({ block: "center", inline: "nearest" });
  open(button);
}

page.addEventListener("click", (event) => {
  const button = event.target.closest("button.cell");
  if (!button) return;
  if (button === chosen) return close();
  history[chosen ? "replaceState" : "pushState"](null, "", `#cell=${button.dataset.cell}`);
  open(button);
});

page.addEventListener("keydown", (event) => {
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  const button = event.target.closest("button.cell");
  if (!step || !button) return;
  event.preventDefault();
  const [table, row, column] = button.dataset.at.split(",").map(Number);
  document.querySelector(`[data-at="${table},${row + step[0]},${column + step[1]}"]`)?.focus();
});

document.addEventListener("keydown", (event) => event.key === "Escape" && close());
backdrop.addEventListener("click", close);
narrow.addEventListener("change", modal);
addEventListener("popstate", follow);

follow();
