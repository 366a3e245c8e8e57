// Menus: a summary, which is a button that says whether it is open, and what it
// opens. Escape closes it, and so does going elsewhere.

document.addEventListener("pointerdown", (event) => {
  for (const menu of document.querySelectorAll(".menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});

const widest = 250; // pixels, of what a menu opens

/** Makes a menu of a details element of that class; close() also puts the focus back on its summary. */
export function wireMenu(menu) {
  const summary = menu.querySelector("summary");
  const close = () => {
    menu.open = false;
    summary.focus();
  };
  // Keys click, too. Where there is no room to the right, it opens to the left.
  summary.addEventListener("click", () => menu.classList.toggle("leftward", summary.getBoundingClientRect().left + widest > innerWidth));
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.stopPropagation();
    close();
  });
  menu.addEventListener("focusout", (event) => {
    if (event.relatedTarget !== null && !menu.contains(event.relatedTarget)) menu.open = false;
  });
  return { close };
}
