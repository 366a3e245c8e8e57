// The reader's choice of colours: as the system has it, light, or dark. This
// is a plain script in the head, so that no page flashes in the wrong colours.
// It sends "themechange" to the window, for what is drawn on canvases. Paper is
// white and narrow: while a page is printed, the root has the class printing,
// and everything is drawn for that.
(() => {
  const next = { system: "light", light: "dark", dark: "system" };
  const media = { system: "(prefers-color-scheme: dark)", light: "not all", dark: "all" };
  const words = { system: "Colours: as the system has them", light: "Colours: light", dark: "Colours: dark" };
  const sheet = document.getElementById("dark-sheet");
  let choice = remembered();
  let printing = false;

  function remembered() {
    try {
      const kept = localStorage.getItem("tandem-theme");
      return kept in next ? kept : "system";
    } catch {
      return "system"; // a browser that keeps nothing
    }
  }

  function remember() {
    try {
      localStorage.setItem("tandem-theme", choice);
    } catch {
      // Then the choice lasts as long as the page.
    }
  }

  function apply() {
    sheet.media = printing ? "not all" : media[choice];
    document.documentElement.dataset.theme = choice;
    document.documentElement.classList.toggle("printing", printing);
    const button = document.getElementById("theme");
    if (button) button.title = words[choice];
    button?.setAttribute("aria-label", words[choice]);
    dispatchEvent(new Event("themechange"));
  }

  function print(begins) {
    printing = begins;
    apply();
  }

  apply();
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
  addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme").addEventListener("click", () => {
      choice = next[choice];
      remember();
      apply();
    });
  });
})();
