// Filter the rows of tables such as the translation's. Without scripts all are shown.
(() => {
  "use strict";

  document.addEventListener("DOMContentLoaded", () => {
    const cells = [...document.querySelectorAll(".tag_translation")];
    const bodies = cells.flatMap((cell) => [...cell.querySelectorAll("tbody")]);
    const rows = bodies.map((body) => ({ body, text: body.textContent.toLowerCase() }));
    const label = "Filter the rows";
    const examples = bodies[0].closest("table").dataset.examples;
    const { input, output } = window.book.fieldAbove(cells[0], "translation-filter", label, {
      type: "search",
      placeholder: examples ?? "einsum, differs",
    });

    const filter = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const { body, text } of rows) body.hidden = !words.every((word) => text.includes(word));
      const found = rows.filter(({ body }) => !body.hidden).length;
      output.textContent = `${words.length ? `${found} of ` : ""}${rows.length} rows`;
      if (found) return;
      const href = window.book.at(`search.html?q=${encodeURIComponent(input.value)}`);
      output.append(". ", window.book.element("a", { href }, "Search the book"));
    };

    // What is found first comes into view below the field, which stays where it is.
    const typed = () => {
      filter();
      const first = rows.find(({ body }) => !body.hidden);
      if (input.value) first?.body.closest("section").scrollIntoView({ behavior: "instant" });
    };

    const show = () => {
      const row = rows.find(({ body }) => `#${body.id}` === location.hash);
      if (!row) return;
      input.value = "";
      filter();
      row.body.scrollIntoView({ behavior: "instant" });
    };

    input.addEventListener("input", typed);
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      input.value = "";
      filter();
    });
    window.addEventListener("hashchange", show);
    filter();
    show();
  });
})();
