// What can be scrolled must be reached by the keyboard, and a dialog must have a name.
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");

function reachable() {
  for (const node of document.querySelectorAll(".md-typeset__scrollwrap, .formula, .md-typeset pre > code")) {
    if (node.scrollWidth > node.clientWidth) node.setAttribute("tabindex", "0");
    else node.removeAttribute("tabindex");
  }
}

addEventListener("load", reachable);
addEventListener("resize", reachable);
