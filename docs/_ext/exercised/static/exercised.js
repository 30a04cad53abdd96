// Which exercises a reader has solved: the ticks stay in the browser, and the list of lessons
// says how many there are of each.
document.addEventListener("DOMContentLoaded", () => {
  "use strict";
  const KEY = "book-exercises";
  const root = new URL(document.documentElement.dataset.content_root ?? "./", location.href).href;
  const ticks = [...document.querySelectorAll(".exercise-solved input")];
  const links = [...document.querySelectorAll(".lessons a[href]")];
  let solved = new Set();

  const read = () => {
    try {
      solved = new Set(JSON.parse(localStorage.getItem(KEY)) ?? []);
    } catch {
      // A browser that keeps nothing shows what was ticked on this page.
    }
  };
  const write = () => {
    try {
      localStorage.setItem(KEY, JSON.stringify([...solved].sort()));
    } catch {
      // As above.
    }
  };
  const show = () => {
    for (const tick of ticks) tick.checked = solved.has(tick.value);
    for (const link of links) {
      const page = link.href.slice(root.length).replace(/(\.html)?(#.*)?$/, "");
      const count = [...solved].filter((name) => name.startsWith(`${page}#`)).length;
      const next = link.nextElementSibling;
      if (next?.classList.contains("exercises-solved")) next.remove();
      if (!count) continue;
      const mark = document.createElement("span");
      mark.className = "exercises-solved";
      mark.textContent = `${count} solved`;
      link.after(mark);
    }
  };

  if (!ticks.length && !links.length) return;
  for (const tick of ticks) {
    tick.parentElement.hidden = false;
    tick.addEventListener("change", () => {
      read();
      solved[tick.checked ? "add" : "delete"](tick.value);
      write();
      show();
    });
  }
  window.addEventListener("storage", (event) => {
    if (event.key !== KEY) return;
    read();
    show();
  });
  read();
  show();
});
