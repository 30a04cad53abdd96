// Which exercises a reader has solved: the ticks stay in the browser, and the list of lessons
// says how many there are of each. What a check says of a task that nobody has tried is folded, and
// the notebook in which a reader can try it is one click away.
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

  const notebook = document.querySelector(".btn-download-notebook-button");
  for (const help of document.querySelectorAll(".exercise-help")) {
    const said = help.previousElementSibling?.querySelector(":scope > .cell_output");
    if (said) {
      const fold = document.createElement("details");
      const summary = document.createElement("summary");
      summary.textContent = "What the check says before you begin";
      fold.className = "exercise-said";
      said.before(fold);
      fold.append(summary, said);
    }
    // The helpers of the judge's cell are the check.
    const helpers = help.previousElementSibling?.previousElementSibling?.querySelector(".collapsed");
    if (helpers) helpers.textContent = "Show the check, which may give the solution away";
    if (notebook) {
      const link = document.createElement("a");
      link.href = notebook.href;
      link.download = "";
      link.textContent = "Download the notebook to solve it";
      const place = document.createElement("p");
      place.className = "exercise-notebook";
      place.append(link);
      help.prepend(place);
    }
  }

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
