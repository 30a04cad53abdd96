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

  const { element } = window.book;
  const notebook = document.querySelector(".btn-download-notebook-button");
  for (const help of document.querySelectorAll(".exercise-help")) {
    const judged = help.previousElementSibling;
    const said = judged?.querySelector(":scope > .cell_output");
    if (said) {
      const summary = element("summary", {}, "What the check says before you begin");
      const fold = element("details", { className: "exercise-said" }, summary);
      said.before(fold);
      fold.append(said);
    }
    // The helpers of the judge's cell are the check.
    const helpers = judged?.previousElementSibling?.querySelector(".collapsed");
    if (helpers) helpers.textContent = "Show the check, which may give the solution away";
    if (notebook) {
      const words = "Download the notebook to solve it";
      const link = element("a", { href: notebook.href, download: "" }, words);
      help.prepend(element("p", { className: "exercise-notebook" }, link));
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
