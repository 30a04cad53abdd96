// Draw the reader's own measurements as docs/_ext/measurements/charts.py and docs/_ext/drawing draw
// the book's, from what the build wrote before each chart and table, and put them into its tabs.
(async () => {
  "use strict";
  const { DEVICE, LABEL, kept, brought, read, about } = window.machine;
  const { rangeOf, valueOf, sizeOf, fieldText, rateText } = window.machine;
  const [TOP, HEIGHT, ROW, LINE] = [40, 250, 38, 15];

  const element = (tag, given = {}, ...children) => {
    const drawn = /^[a-z]+$/.test(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag.slice(1));
    for (const [key, value] of Object.entries(given)) {
      if (value !== undefined) drawn.setAttribute(key, value);
    }
    drawn.append(...children);
    return drawn;
  };
  const html = (tag, given, ...children) => element(`:${tag}`, given, ...children);
  const percent = (part) => `${Number((100 * part).toFixed(2))}%`;
  const plain = (value) =>
    Number(value.toPrecision(12)).toLocaleString("en-US", { maximumFractionDigits: 20 });

  const around = (low, high, steps) => {
    const first = Math.floor(Math.log10(low)) - 1;
    const count = Math.ceil(Math.log10(high)) + 2 - first;
    const all = Array.from({ length: count }, (_, n) => steps.map((step) => Number(`${step}e${first + n}`))).flat();
    const start = all.findLastIndex((value) => value <= low);
    return all.slice(start, all.findIndex((value, n) => value >= high && n > start) + 1);
  };
  const roundNumbers = (low, high, steps = [1, 2, 5]) => {
    const [fine, coarse] = [around(low, high, steps), around(low, high, [1])];
    if (fine.length <= 9 || coarse.length <= 9) return fine.length <= 9 ? fine : coarse;
    const step = Math.ceil(coarse.length / 8);
    const count = Math.ceil((coarse.length - 1) / step) + 1;
    return Array.from({ length: count }, (_, n) => coarse[0] * 10 ** (step * n));
  };
  const placing = (low, high) => (value) =>
    high > low ? (Math.log(value) - Math.log(low)) / (Math.log(high) - Math.log(low)) : 0.5;

  const spreadOf = (each, { y, scale }) => {
    const clock = y !== "rate" ? y : valueOf(each, "throughput") ? "throughput" : "latency";
    const { low, high } = rangeOf(each, clock);
    if (low === high) return [];
    return (y === "rate" ? [each.work / high, each.work / low] : [low, high]).map((end) => end * scale);
  };
  const point = (said, ink, ...children) =>
    element("g", { class: "point", style: ink, tabindex: 0, role: "img" }, element("title", {}, said),
      ...children, element("text", { class: "said", y: 12 }, said));
  const spreadLine = (x1, x2, y1, y2) => element("line", { class: "spread", x1, x2, y1, y2 });

  const rows = (drawn) => {
    const bar = (row, top, place, logarithmic) => {
      const [end, ends] = [place(row.value), row.spread.map(place).map(percent)];
      return point(row.said, row.ink,
        element("rect", { class: "reach", width: "100%", height: ROW - 2, y: top }),
        element("text", { y: top + 13 }, row.label, element("tspan", { class: "value", dx: 8 }, row.text)),
        element("rect", { class: "track", width: "100%", height: 10, y: top + 20 }),
        logarithmic
          ? element("circle", { class: "bar", cx: percent(end), cy: top + 25, r: 6 })
          : element("rect", { class: "bar", x: "0%", width: percent(Math.max(0.003, end)), height: 10, y: top + 20 }),
        ...(ends.length ? [spreadLine(...ends, top + 25, top + 25)] : []),
        ...ends.map((at) => spreadLine(at, at, top + 21, top + 29)));
    };
    return ({ logarithmic }) => {
      const values = drawn.flatMap(({ value, spread }) => [value, ...spread]);
      const ticks = logarithmic ? roundNumbers(Math.min(...values), Math.max(...values), [1]) : [];
      const place = logarithmic ? placing(ticks[0], ticks.at(-1)) : (value) => value / Math.max(...values);
      const bottom = 24 + ROW * drawn.length;
      const grid = ticks.flatMap((tick, n) => {
        const at = percent(place(tick));
        const edge = n === 0 ? " first" : n === ticks.length - 1 ? " last" : "";
        return [element("line", { class: "grid", x1: at, x2: at, y1: 24, y2: bottom }),
          element("text", { class: `x-tick${edge}`, x: at, y: bottom + 14 }, plain(tick))];
      });
      const bars = drawn.map((row, n) => bar(row, 24 + ROW * n, place, logarithmic));
      return { parts: [...grid, ...bars], height: bottom + (ticks.length ? 18 : 0), class: "rows " };
    };
  };

  const wrapped = (label) =>
    label.split(" ").reduce((lines, word) => {
      const joined = lines.length ? `${lines.at(-1)} ${word}` : word;
      return lines.length && joined.length <= 15 ? [...lines.slice(0, -1), joined] : [...lines, word];
    }, []);
  // So that no label lies on another, and none below the axis.
  const apart = (wanted, bottom) => {
    const order = [...wanted].sort((one, other) => one.top - other.top);
    let end = -Infinity;
    for (const each of order) end = (each.top = Math.max(each.top, end)) + each.height;
    for (const each of order.reverse()) bottom = each.top = Math.min(each.top, bottom - each.height);
  };

  const lines = (drawn) => ({ limit, scale }) => {
    const across = limit ? [limit * scale] : [];
    const values = [...drawn.flatMap(({ value, spread }) => [value, ...spread]), ...across];
    const ticks = roundNumbers(Math.min(...values), Math.max(...values));
    const sizes = [...new Set(drawn.map(({ size }) => size))].sort((one, other) => one - other);
    const part = placing(sizes[0], sizes.at(-1));
    const x = (size) => percent(part(size));
    const height = placing(ticks[0], ticks.at(-1));
    const y = (value) => Number((TOP + HEIGHT * (1 - height(value))).toFixed(2));
    const crowded = sizes.length > 6 || sizes.map(plain).join("").length > 26;
    const parts = ticks.flatMap((tick) => [
      element("line", { class: "grid", x2: "100%", y1: y(tick), y2: y(tick) }),
      element("text", { class: "y-tick", dx: -8, y: y(tick) + 4 }, plain(tick))]);
    parts.push(...sizes.map((size, n) => element("text",
      { class: n % 2 && crowded ? "x-tick seldom" : "x-tick", x: x(size), y: TOP + HEIGHT + 18 }, plain(size))));
    parts.push(element("text", { class: "x-label", x: "50%", y: TOP + HEIGHT + 38 }, "size"));
    parts.push(...across.map((value) => element("g", { class: "ceiling" },
      element("line", { x2: "100%", y1: y(value), y2: y(value) }),
      element("text", { x: 4, y: y(value) - 5 }, `ceiling ${rateText(limit)}`))));
    const series = [...Map.groupBy(drawn, ({ label }) => label)].map(([label, points]) => {
      points.sort((one, other) => one.size - other.size);
      const name = wrapped(label);
      const end = points.at(-1);
      const outside = end.size === sizes.at(-1);
      const high = LINE * name.length;
      return { points, name, end, outside, height: high, top: y(end.value) - (outside ? high / 2 : high + 5) };
    });
    apart(series.filter(({ outside }) => outside), TOP + HEIGHT + 6);
    for (const { points, name, end, outside, top } of series) {
      const strokes = points.slice(1).map((to, n) => element("line",
        { x1: x(points[n].size), y1: y(points[n].value), x2: x(to.size), y2: y(to.value) }));
      const marks = points.map(({ size, value, spread, said }) => point(said, undefined,
        element("circle", { class: "reach", cx: x(size), cy: y(value), r: 11 }),
        ...(spread.length ? [spreadLine(x(size), x(size), ...spread.map(y))] : []),
        element("circle", { class: "bar", cx: x(size), cy: y(value), r: 4 })));
      const spans = name.map((words, n) => element("tspan", { x: x(end.size), dx: 10, dy: n ? LINE : undefined }, words));
      parts.push(element("g", { class: "series", style: end.ink }, ...strokes, ...marks,
        element("text", { class: outside ? "name" : "name inside", y: top + 11 }, ...spans)));
    }
    const left = Math.ceil(Math.max(...ticks.map((tick) => plain(tick).length)) * 6.8 + 10);
    const longest = Math.max(...series.filter(({ outside }) => outside).flatMap(({ name }) => name).map(({ length }) => length));
    return { parts, height: TOP + HEIGHT + 46, class: "", style: `--left:${left}px;--right:${Math.ceil(longest * 8.2 + 12)}px` };
  };

  const drawing = (found, data, measurements, beside) => {
    const { chart, frameworks } = data;
    const ceilings = chart.ceilings.map((name) => measurements.get(name)).filter(Boolean);
    const limit = Math.max(0, ...ceilings.map((each) => valueOf(each, chart.y)));
    const drawn = found.filter(([name, each]) => name in chart.looks && valueOf(each, chart.y) && (chart.x === "name" || sizeOf(each))).map(([name, each]) => {
      const [label, ink] = chart.looks[name];
      const who = chart.x === "name" ? frameworks[each.framework] : `${label}, ${plain(sizeOf(each))}`;
      return { label, ink: chart.inks[ink], size: sizeOf(each), value: valueOf(each, chart.y) * chart.scale,
        text: fieldText(chart.y, each, false), said: `${who}: ${fieldText(chart.y, each)}`, spread: spreadOf(each, chart) };
    });
    if (!drawn.length) return [];
    const made = (chart.x === "name" ? rows : lines)(drawn)({ ...chart, limit });
    const [title, heading] = ["svg > title", "svg > .heading"].map((each) => beside.querySelector(each).textContent);
    return [element("svg", { class: `drawing ${made.class}measurement-chart`, role: "group", height: made.height, style: made.style },
      element("title", {}, title), element("text", { class: "heading", y: 12 }, heading), ...made.parts),
    beside.querySelector(".measurement-caption").cloneNode(true)];
  };

  const cellText = (column, each, { frameworks }) => {
    if (column === "shape") return each.shape.map((some) => some.join("×") || "scalar").join(", ") || "–";
    if (column === "framework") return frameworks[each.framework];
    return column === "processes" ? String(each.processes.length) : fieldText(column, each);
  };
  const table = (found, data) => {
    const columns = data.columns.filter(([column]) => column !== "throughput" || found.some(([, each]) => valueOf(each, column) !== null));
    const line = (cells) => html("tr", {}, ...cells);
    const head = columns.map(([, text]) => html("th", { class: "head", scope: "col" }, html("p", {}, text)));
    const body = found.map(([, each]) => line(columns.map(([column]) => html("td", {}, html("p", {}, cellText(column, each, data))))));
    return html("div", { class: "table-scroll" }, html("div", { class: "pst-scrollable-table-container" },
      html("table", { class: "measurements table" }, html("thead", {}, line(head)), html("tbody", {}, ...body))));
  };

  const tab = (set, number, key, label, content, checked) => {
    const id = `${set}-${number}`;
    const input = html("input", { id, name: set, type: "radio" });
    input.checked = checked;
    return [input, html("label", { class: "sd-tab-label", "data-sync-group": "device", "data-sync-id": key, for: id }, label),
      html("div", { class: "sd-tab-content device-tab docutils", id: `${id}-content` }, content)];
  };

  const show = (record) => {
    let any = false;
    for (const [number, script] of document.querySelectorAll(".measurement-data").entries()) {
      const data = JSON.parse(script.textContent);
      const beside = script.nextElementSibling;
      const found = data.of.filter((name) => record.measurements.has(name)).map((name) => [name, record.measurements.get(name)]);
      if (!found.length) {
        script.before(html("p", { class: "device-notice", "data-device": DEVICE, hidden: "" }, "Nothing of this is in your file."));
        continue;
      }
      any = true;
      const picture = data.chart ? drawing(found, data, record.measurements, beside) : [];
      const numbers = table(found, data);
      const about_ = html("p", { class: "device-note" }, `${LABEL}: ${about(record)}`);
      const folded = picture.length ? html("details", {}, html("summary", {}, "The numbers as a table"), numbers) : numbers;
      const panel = html("div", { class: picture.length ? "measurement-figure" : "" }, ...picture, about_, folded);
      const name = `machine-${number}`;
      let tabs = beside;
      if (!beside.classList.contains("sd-tab-set")) {
        tabs = html("div", { class: "sd-tab-set device-tabs docutils" });
        beside.replaceWith(tabs);
        tabs.append(...tab(name, 0, data.home_key, data.home, beside, true));
      }
      const set = tabs.querySelector("input").name;
      tabs.append(...tab(set, name, DEVICE, LABEL, panel, false));
    }
    if (any) {
      document.querySelector("h1")?.after(html("p", { class: "device-notice", "data-device": DEVICE, hidden: "" },
        "Charts and tables show your machine; all else is as this book recorded it."));
    }
    document.dispatchEvent(new Event("devices"));
  };

  const { method } = JSON.parse(document.querySelector(".measurement-data").textContent);
  // What cannot be read is said on the page "Your machine".
  const record = await read(brought() || kept(), method).catch(() => null);
  if (record) show(record);
})();
