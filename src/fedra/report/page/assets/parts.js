const data = JSON.parse(document.getElementById("data").textContent);
const { honest: HONEST, malicious: MALICIOUS } = data.colours;

function tiles(pairs) {
  return el("dl", { class: "figures" }, pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function section(title, ...children) {
  return el("section", {}, el("h3", {}, title), children);
}

function legend(lines) {
  return el("div", { class: "keys" }, lines.map((line) => el("span", { class: "key" },
    svg("svg", { width: 22, height: 10, "aria-hidden": "true" },
      svg("line", { class: "line strong", x1: 1, x2: 21, y1: 5, y2: 5, "stroke-dasharray": line.dash, colour: line.colour })),
    line.name)));
}

function copyButton(code) {
  const button = el("button", { type: "button", class: "quiet small" }, "copy");
  const show = (text) => {
    button.textContent = text;
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  };
  const select = () => {
    getSelection().selectAllChildren(code);
    show("selected");
  };
  button.addEventListener("click", () => {
    // A browser may keep the clipboard from a page that is a file; the text is then selected for the reader to copy.
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(() => show("copied"), select);
    else select();
  });
  return button;
}
