// Step through what tracing notes, and choose two calls: does the second compile again? Without
// scripts the table of all steps and the list of all pairs are there.
(() => {
  "use strict";
  const { element } = window.book;

  const watchTrace = (cell) => {
    const table = cell.querySelector("table");
    const rows = [...table.querySelectorAll("tbody tr")];
    const said = cell.querySelector("p");
    const counts = said.textContent;
    const next = element("button", { className: "sd-btn sd-btn-primary" });
    const over = element("button", { className: "sd-btn sd-btn-outline-primary" }, "Start over");
    let step = 0;

    // After the last line comes the second call, in which Python runs none of them.
    const show = () => {
      const traced = step === rows.length;
      const again = step > rows.length;
      rows.forEach((row, number) => {
        // Its room is kept, and who hears the table learns that something is to come.
        row.cells[1].firstChild.style.visibility = number < step ? "visible" : "hidden";
        row.cells[1].ariaLabel = number < step ? null : "not run yet";
        row.classList.toggle("now", !again && number === step - 1);
      });
      next.textContent = traced || again ? "Call it again" : "Run the next line";
      next.disabled = again;
      said.textContent = again
        ? `The program ran, and none of these lines (${counts}).`
        : traced ? "The function has returned, and its equations are the program." : "";
    };
    next.addEventListener("click", () => { step += 1; show(); });
    over.addEventListener("click", () => { step = 0; show(); });
    said.setAttribute("role", "status");
    table.after(element("div", { className: "steps" }, next, over));
    show();
  };

  const choosePairs = (cell) => {
    const pairs = [...cell.querySelectorAll("tbody tr")].map(({ cells }) => [...cells]
      .map(({ textContent }) => textContent));
    const calls = [...new Set(pairs.map(([first]) => first))];
    const output = element("output");
    const choice = (words, chosen) => {
      const select = element("select", {}, ...calls.map((call) => new Option(call)));
      select.selectedIndex = chosen;
      select.addEventListener("change", () => show());
      return [element("label", {}, words, select), select];
    };
    const [before, first] = choice("First ", 0);
    const [after, second] = choice("then ", 2);
    const show = () => {
      const [, , verdict] = pairs.find(([a, b]) => a === first.value && b === second.value);
      const [what, why] = verdict.split(/; (.*)/s);
      output.replaceChildren(element("b", {}, what), why ? `: ${why}` : "");
    };
    const form = element("form", { className: "pairs" }, before, after, output);
    form.addEventListener("submit", (event) => event.preventDefault());
    cell.querySelector("details").before(form);
    show();
  };

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".tag_watched-trace .text_html").forEach(watchTrace);
    document.querySelectorAll(".tag_compiled-pairs .text_html").forEach(choosePairs);
  });
})();
