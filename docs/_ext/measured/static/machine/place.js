// Put the reader's own numbers beside the book's: texts behind numbers of sentences and below those
// of tables, a mark in each drawing that has the same measurement, and a column in the table of the
// fastest. The command has computed them as docs/_ext/measured does: `shown` of its reader.py.
(() => {
  "use strict";
  const { LABEL, YOURS, record, stored } = window.machine;
  const { element } = window.book;
  const { about, numbers, answers, fastest, roofs } = record;
  const TOLD = "book-your-machine-told";
  const OTHERWISE = "not as on this book’s machine";
  const accelerated = [...numbers.values()].some(({ on }) => on.includes("accelerator"));
  let count = 0;

  // A range stays on one line, and so does a number with its unit.
  const unbroken = (words) => words.split(/([\d.]+ \S+|\S+–\S+)/)
    .map((part, n) => (n % 2 ? element("span", {}, part) : part));
  const yours = (className, words) => {
    count += 1;
    return element("span", { className, title: about }, ...unbroken(words));
  };

  // Whether a place is of one of these kinds of device.
  const isBeside = ({ dataset }, kinds) => kinds.split(" ").includes(dataset.on);

  for (const number of document.querySelectorAll("[data-yours]")) {
    const [text, on] = answers.get(number.dataset.yours) ?? ["", ""];
    if (!isBeside(number, on)) continue;
    let last = number.closest(".noted");
    // Below the only number of a cell, at once behind one of several.
    if (number.closest("td")?.querySelectorAll(".noted").length === 1) {
      last.parentElement.append(" ", yours(YOURS.below, `yours ${text}`));
      continue;
    }
    while (last.nextElementSibling?.matches(".earlier, .on-device")) last = last.nextElementSibling;
    last.after(" ", yours(YOURS.beside, `yours ${text}`));
  }

  const svg = (tag, given, ...children) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  // As in svg.py: an axis starts at 0, or it is logarithmic.
  const placeOf = (value, { axis, factor }) => {
    const [low, high] = axis.split(" ").map(Number);
    const scaled = value * factor;
    return low ? Math.log(scaled / low) / Math.log(high / low) : scaled / high;
  };
  const marked = new Set();
  const mark = (point, [value, text, brief]) => {
    const drawing = point.closest("svg");
    const exact = placeOf(value, drawing.dataset);
    const place = Math.min(1, Math.max(0, exact));
    const row = point.querySelector(".marks");
    const [, , top, height] = drawing.dataset.axis.split(" ").map(Number);
    const at = row ? { x: `${100 * place}%`, y: 10 }
      : { x: point.querySelector(".reach").getAttribute("cx"), y: top + height * (1 - place) };
    (row ?? point).append(svg("rect", { class: place === exact ? YOURS.mark : YOURS.beyond, ...at }));
    if (row) point.querySelector(".value").append(` ◇ ${brief}`);
    for (const said of point.querySelectorAll("title, .said")) said.append(`; yours ${text}`);
    marked.add(drawing);
    count += 1;
  };
  const put = (place, number) => {
    const drawing = place.closest("svg");
    const shown = number[drawing ? drawing.dataset.field : place.dataset.field];
    if (!shown) return;
    if (drawing) mark(place, shown);
    else place.after(yours(YOURS.below, `yours ${shown[1]}`));
  };
  // Beside the same kind of device. A mark is beside the other where the tabs of a chart lack it.
  const chartOf = (place) => place.closest(".sd-tab-set") ?? place.closest(".chart-figure");
  for (const place of document.querySelectorAll("[data-of]")) {
    const number = numbers.get(place.dataset.of);
    if (!number || (place.dataset.shape ?? "") !== number.shape) continue;
    const drawing = place.closest("svg");
    const others = drawing ? [...chartOf(place).querySelectorAll("svg[data-on]")] : [];
    const lacks = drawing && !others.some((other) => isBeside(other, number.on));
    if (lacks || isBeside(drawing ?? place, number.on)) put(place, number);
  }
  const limits = roofs ? `: ${roofs.texts.map((row) => row.join(" ")).join("; ")}` : "";
  for (const drawing of marked) {
    const said = chartOf(drawing).previousElementSibling?.matches(".roofline-data") ? limits : "";
    const beyond = drawing.querySelector(".beyond") ? " A dashed ◇ lies beyond the axis." : "";
    drawing.closest(".chart-figure").querySelector(".chart-caption").after(
      element("p", { className: "table-note", textContent: `◇ ${LABEL}${said}.${beyond}` }));
    const texts = [...drawing.querySelectorAll(".value")].map(({ textContent }) => textContent.length);
    if (texts.length) drawing.style.setProperty("--right", `${Math.ceil(Math.max(...texts) * 8.2) + 12}px`);
  }

  for (const data of document.querySelectorAll(".fastest-data")) {
    const { works, first } = JSON.parse(data.textContent);
    const table = data.nextElementSibling.querySelector("table");
    table.tHead.rows[0].append(
      element("th", { className: "head", scope: "col", title: about }, LABEL));
    works.forEach((work, n) => {
      const row = table.tBodies[0].rows[n];
      const [text, leading] = fastest.get(work) ?? ["", ""];
      const said = element("span", {}, ...unbroken(text));
      said.dataset.leading = leading;
      const others = row.cells[1].querySelector("[data-leading]")?.dataset.leading ?? "";
      const [own, its] = [leading, others].map((names) => names.split(" ").sort().join());
      // A CPU is told where the book's CPU, the first device, says something else.
      const both = !accelerated && first[n].every((name) => numbers.has(name));
      const differs = both && own && its && own !== its;
      const marks = differs ? [element("span", { className: "otherwise" }, OTHERWISE)] : [];
      row.append(element("td", {}, element("p", {}, said, ...marks)));
    });
    count += 1;
  }

  if (count) {
    const words = "Charts have a mark ◇ for it. In sentences and tables, your number stands beside " +
      "the book’s if your file has it for the same kind of device.";
    // Open the first time; then it is folded, for each page says the same.
    const open = stored((storage) => storage.getItem(TOLD)) ? {} : { open: true };
    const said = element("details", { className: "device-notice", ...open },
      element("summary", {}, LABEL), `${about}. ${words}`);
    document.querySelector("article h1")?.after(said);
    stored((storage) => storage.setItem(TOLD, "yes"));
  }
})();
