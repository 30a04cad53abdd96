// Choose among the rows of the tables that say which framework is fastest: by the section that they
// stand in, the size of their arrays, the device, and who is fastest. Without scripts all are there.
(() => {
  "use strict";
  const { element } = window.book;
  const NAMES = {
    small: "small, up to 10⁴ elements",
    medium: "medium, up to 10⁶ elements",
    large: "large, more elements",
  };

  const tablesOf = (data) => {
    const { sizes, frameworks } = JSON.parse(data.textContent);
    const table = data.nextElementSibling.querySelector("table");
    const section = table.closest("section");
    const title = section.querySelector("h1, h2, h3").firstChild.textContent.trim();
    const rows = [...table.tBodies[0].rows].map((row, n) => ({ row, size: sizes[n] }));
    return { section, title, rows, frameworks, heads: [...table.tHead.rows[0].cells].slice(1) };
  };

  const deviceOf = (head) => (head.querySelector(".device-name") ?? head).textContent;

  document.addEventListener("DOMContentLoaded", () => {
    const bar = document.querySelector(".fastest-filter");
    const tables = [...document.querySelectorAll(".fastest-data")].map(tablesOf);
    if (!bar || !tables.length) return;
    const said = element("p", { className: "fastest-said" });
    said.setAttribute("role", "status");

    const select = (name, label, choices) => {
      const options = [["", "all"], ...choices].map(([value, text]) => new Option(text, value));
      const made = element("select", { id: `fastest-${name}` }, ...options);
      bar.append(element("p", {}, element("label", { htmlFor: made.id, textContent: label }), made));
      made.addEventListener("change", () => show());
      return made;
    };
    const leading = (cell) => (cell.querySelector("[data-leading]")?.dataset.leading ?? "").split(" ");
    const cells = tables.flatMap(({ rows }) => rows.flatMap(({ row }) => [...row.cells]));
    const leaders = new Set(cells.flatMap(leading));
    const labels = Object.entries(tables[0].frameworks).filter(([name]) => leaders.has(name));
    const kinds = tables.map(({ title }) => [title, title]);
    const named = tables.flatMap(({ heads }) => heads.map(deviceOf));
    const devices = [...new Set(named)].map((name) => [name, name]);
    const kind = select("kind", "Kind of work", kinds);
    const size = select("size", "Size", Object.entries(NAMES));
    const device = select("device", "Column", devices);
    const framework = select("framework", "Fastest", labels);

    const show = () => {
      let [shown, all] = [0, 0];
      for (const { section, title, rows, heads } of tables) {
        const out = heads.map((head) => device.value && deviceOf(head) !== device.value);
        heads.forEach((head, n) => { head.hidden = out[n]; });
        let left = 0;
        for (const each of rows) {
          const of = [...each.row.cells].slice(1);
          of.forEach((cell, n) => { cell.hidden = out[n] ?? false; });
          const told = of.filter((cell) => !cell.hidden && cell.querySelector("[data-leading]"));
          const led = told.some((cell) => leading(cell).includes(framework.value));
          const there = (!device.value || told.length) && (!framework.value || led);
          const fits = there && (!size.value || each.size === size.value);
          each.row.hidden = !fits;
          left += !each.row.hidden;
        }
        section.hidden = Boolean(kind.value && title !== kind.value) || !left;
        shown += section.hidden ? 0 : left;
        all += rows.length;
      }
      said.textContent = `${shown} of ${all} rows`;
    };
    bar.append(said);
    bar.hidden = false;
    show();
  });
})();
