// Two lanes: what Python and the device do in a loop that waits after each call or at the end, drawn
// from the rows of the page's table. Without scripts the table is there.
(() => {
  "use strict";
  const { element } = window.book;
  // Colours on light and on dark pages, of each lane.
  const INKS = { Python: "--light:#0d6e78;--dark:#5fd0dc", device: "--light:#7a44a8;--dark:#c9a0f0" };
  const KINDS = { call: "Python", wait: "Python", operations: "device" };
  const LANES = Object.keys(INKS);

  // Round moments of an axis up to the last, in microseconds, with their texts.
  const moments = (last) => {
    const power = 10 ** Math.floor(Math.log10(last / 6));
    const step = [1, 2, 5, 10].map((digit) => digit * power).find((each) => 6 * each >= last);
    const [unit, word] = last < 1000 ? [1, "µs"] : [1000, "ms"];
    return [...Array(Math.floor(last / step) + 1).keys()]
      .map((n) => [step * n, n ? `${+((step * n) / unit).toPrecision(3)} ${word}` : "0"]);
  };

  const tick = ([moment, text], last) => {
    const x = `${(100 * moment) / last}%`;
    return `<rect class="grid" x="${x}" y="24"/><text class="x-tick" x="${x}" y="40">${text}</text>`;
  };

  const lane = (name, number, blocks) =>
    `<g class="row" style="--n:${number};${INKS[name]}"><text class="label" y="14">${name}</text><g class="marks">${blocks.join("")}</g></g>`;

  const legend = `<text class="heading legend" y="12"><tspan style="${INKS.Python}">■ call □ wait</tspan> <tspan style="${INKS.device}">■ matmul</tspan></text>`;

  const twoLanes = (cell, number) => {
    const rows = [...cell.querySelectorAll("tr[data-plain]")].map((row) => ({
      row,
      words: [...row.cells].map(({ textContent }) => textContent),
      events: JSON.parse(row.dataset.plain),
    }));
    const [sizes, ways] = [0, 1].map((column) => [...new Set(rows.map(({ words }) => words[column]))]);
    const lastOf = ({ events }) => Math.max(...Object.values(events).flat(2));

    // As many blocks of a kind as a row has at most, so that each moves when another row is chosen.
    const most = (kind) => Math.max(...rows.map(({ events }) => events[kind].length));
    const blocks = (kind) => Array(most(kind)).fill(`<rect class="bar ${kind}" y="1" height="18"/>`);
    const inside = (name) => Object.keys(KINDS).filter((kind) => KINDS[kind] === name).flatMap(blocks);
    const picture = element("figure", { className: "picture" });
    picture.innerHTML = `<svg class="drawing rows axis lanes" aria-hidden="true" style="--left:54px;--right:12px;--rows:${LANES.length}">${legend}<g class="ticks"></g>${LANES.map((name, n) => lane(name, n, inside(name))).join("")}</svg>`;

    const size = element("input", { type: "range", min: 0, max: sizes.length - 1, value: 1 });
    const sizeText = element("b");
    const waits = ways.map((way, n) => element("input", { type: "radio", name: `waits-${number}`, value: way, checked: !n }));
    const output = element("output");
    const show = () => {
      const n = sizes[size.value];
      sizeText.textContent = `${n} × ${n}`;
      size.setAttribute("aria-valuetext", sizeText.textContent);
      const both = rows.filter(({ words }) => words[0] === n);
      const chosen = both.find(({ words }) => words[1] === waits.find(({ checked }) => checked).value);
      const last = Math.max(...both.map(lastOf));
      picture.querySelector(".ticks").innerHTML = moments(last).map((each) => tick(each, last)).join("");
      for (const kind of Object.keys(KINDS)) {
        picture.querySelectorAll(`.bar.${kind}`).forEach((bar, place) => {
          const [start, end] = chosen.events[kind][place] ?? [last, last];
          bar.style.x = `${(100 * start) / last}%`;
          bar.style.width = `${(100 * (end - start)) / last}%`;
        });
      }
      for (const each of rows) each.row.classList.toggle("now", each === chosen);
      const [, , all, called, busy] = chosen.words;
      output.textContent = `${all} in all. The last call returns after ${called}, and the device computes for ${busy} of the time.`;
    };

    const form = element(
      "form",
      { className: "two-lanes" },
      element("fieldset", {}, element("legend", {}, "Python waits"), ...waits.map((wait) => element("label", {}, wait, ` ${wait.value}`))),
      element("label", {}, "matrices ", size, " ", sizeText),
    );
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", show);
    const numbers = cell.querySelector("details");
    numbers.open = false;
    numbers.before(form, picture, output);
    show();
  };

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".tag_two-lanes .text_html").forEach(twoLanes);
  });
})();
