const THEMES = { auto: "◐ auto", light: "☀ light", dark: "☾ dark" };
const themeButton = document.getElementById("theme");
themeButton.hidden = false;

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  themeButton.textContent = THEMES[theme];
  themeButton.setAttribute("aria-label", `Colours: ${theme}; choose the next`);
}

themeButton.addEventListener("click", () => {
  const names = Object.keys(THEMES);
  setTheme(names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length]);
});
setTheme("auto");
