// Filter the rows of the translation table. Without scripts all are shown.
(() => {
  "use strict";

  document.addEventListener("DOMContentLoaded", () => {
    const cells = [...document.querySelectorAll(".tag_translation")];
    if (!cells.length) return;
    const rows = cells.flatMap((cell) =>
      [...cell.querySelectorAll("tbody")].map((body) => ({
        body,
        group: cell.closest("section"),
        text: body.textContent.toLowerCase(),
      })),
    );

    const { input, output } = window.book.fieldAbove(cells[0], "translation-filter", "Filter the rows", {
      type: "search",
      placeholder: "cat, gather, einsum, differs",
    });

    const filter = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      const groups = new Map();
      let found = 0;
      for (const { body, group, text } of rows) {
        const shown = words.every((word) => text.includes(word));
        body.hidden = !shown;
        groups.set(group, groups.get(group) || shown);
        found += shown;
      }
      for (const [group, shown] of groups) group.hidden = !shown;
      output.textContent = `${words.length ? `${found} of ` : ""}${rows.length} rows`;
    };

    // What is found first comes into view below the field, which stays where it is.
    const typed = () => {
      filter();
      const first = rows.find(({ body }) => !body.hidden);
      if (input.value && first) first.group.scrollIntoView({ behavior: "instant" });
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
