// The filter above the translation table. Without scripts there is none, and all rows are shown.
(() => {
  "use strict";

  document.addEventListener("DOMContentLoaded", () => {
    const cells = [...document.querySelectorAll(".tag_translation")];
    if (!cells.length) return;
    const page = cells[0].closest("section").parentElement;
    const introduction = page.querySelector(":scope > p");
    const rows = cells.flatMap((cell) =>
      [...cell.querySelectorAll("tbody")].map((body) => ({
        body,
        group: cell.closest("section"),
        text: body.textContent.toLowerCase(),
      })),
    );

    const form = document.createElement("form");
    form.className = "translation-filter";
    form.setAttribute("role", "search");
    const label = document.createElement("label");
    label.htmlFor = "translation-filter";
    label.textContent = "Filter the rows";
    const input = document.createElement("input");
    input.type = "search";
    input.id = "translation-filter";
    input.placeholder = "cat, gather, einsum, differs";
    input.autocomplete = "off";
    input.spellcheck = false;
    const count = document.createElement("output");
    count.htmlFor = "translation-filter";
    form.append(label, input, count);
    introduction.after(form);

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
      count.textContent = words.length
        ? `${found} of ${rows.length} rows`
        : `${rows.length} rows`;
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

    form.addEventListener("submit", (event) => event.preventDefault());
    input.addEventListener("input", typed);
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        input.value = "";
        filter();
      }
    });
    window.addEventListener("hashchange", show);
    filter();
    show();
  });
})();
