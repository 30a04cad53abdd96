// Show only what changed between two versions that the reader chooses; without scripts, all.
(() => {
  "use strict";

  document.addEventListener("DOMContentLoaded", () => {
    // The second column of each table says "0.6.2 → 0.7.2".
    const rows = [...document.querySelectorAll("article tbody tr")]
      .map((row) => ({ row, pair: (row.cells[1]?.textContent ?? "").trim().split(" → ") }))
      .filter(({ pair }) => pair.length === 2);
    const order = new Intl.Collator("en", { numeric: true }).compare;
    const versions = [...new Set(rows.flatMap(({ pair }) => pair))].sort(order);
    const place = document.querySelector(".upgrade-choice");
    const output = document.createElement("output");
    if (!place || !rows.length) return;

    const show = () => {
      const low = versions.indexOf(from.value);
      const high = versions.indexOf(to.value);
      for (const { row, pair } of rows) {
        const since = versions.indexOf(pair[1]);
        row.hidden = !(low < since && since <= high);
      }
      const shown = rows.filter(({ row }) => !row.hidden).length;
      output.textContent = low < high
        ? `${shown} of ${rows.length} changes` : "choose a later version to go to";
    };
    const choice = (words, chosen) => {
      const label = document.createElement("label");
      const select = document.createElement("select");
      select.append(...versions.map((version) => new Option(version)));
      select.value = chosen;
      select.addEventListener("change", show);
      label.append(words, " ", select);
      place.append(label, " ");
      return select;
    };
    const from = choice("from JAX", versions[0]);
    const to = choice("to", versions.at(-1));
    place.append(output);
    place.hidden = false;
    show();
  });
})();
