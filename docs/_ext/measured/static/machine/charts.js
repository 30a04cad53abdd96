// Draw the reader's own measurements as docs/_ext/measured/charts.py and docs/_ext/drawing draw
// the book's, from what the build wrote before each chart and table, and put them into its tabs.
(async () => {
  "use strict";
  const { DEVICE, LABEL, record, about, distributionOf, stored } = window.machine;
  const { CLOCKS, rangeOf, valueOf, sizeOf, fieldText, rateText } = window.machine;
  const [TOP, HEIGHT, ROW, LINE] = [40, 250, 38, 15];
  const TOLD = "book-your-machine-told";

  const filled = (made, given, children) => {
    for (const [key, value] of Object.entries(given)) {
      if (value !== undefined) made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  };
  const html = (tag, given, ...children) => filled(document.createElement(tag), given, children);
  const svg = (tag, given, ...children) =>
    filled(document.createElementNS("http://www.w3.org/2000/svg", tag), given, children);
  const line = (x1, x2, y1, y2, given) => svg("line", { ...given, x1, x2, y1, y2 });
  const label = (kind, x, y, words) => svg("text", { class: kind, x, y }, words);
  const percent = (part) => `${Number((100 * part).toFixed(2))}%`;
  const plain = (value) =>
    Number(value.toPrecision(12)).toLocaleString("en-US", { maximumFractionDigits: 20 });

  const around = (low, high, steps) => {
    const first = Math.floor(Math.log10(low)) - 1;
    const exponents = Array.from({ length: Math.ceil(Math.log10(high)) + 2 - first }, (_, n) => n);
    const all = exponents.flatMap((n) => steps.map((step) => Number(`${step}e${first + n}`)));
    const start = all.findLastIndex((value) => value <= low);
    return all.slice(start, all.findIndex((value, n) => value >= high && n > start) + 1);
  };
  // Numbers around two, of the form step · 10ⁿ, or powers of ten where these are more than nine.
  const roundNumbers = (low, high, steps = [1, 2, 5]) => {
    const found = around(low, high, steps);
    return found.length <= 9 ? found : around(low, high, [1]);
  };
  const placing = (low, high) => (value) =>
    high > low ? (Math.log(value) - Math.log(low)) / (Math.log(high) - Math.log(low)) : 0.5;

  const point = (said, style, ...children) =>
    svg("g", { class: "point", style, tabindex: 0, role: "img" }, svg("title", {}, said),
      ...children, svg("text", { class: "said", y: 12 }, said));

  // What is drawn: {label, ink, value, text, said, spread}, and over sizes also {size}.
  const rows = (drawn, { logarithmic }) => {
    const values = drawn.flatMap(({ value, spread }) => [value, ...spread]);
    const most = Math.max(...values);
    const ticks = logarithmic ? roundNumbers(Math.min(...values), most, [1]) : [];
    const place = logarithmic ? placing(ticks[0], ticks.at(-1)) : (value) => value / most;
    const bottom = 24 + ROW * drawn.length;
    const grid = ticks.flatMap((tick, n) => {
      const at = percent(place(tick));
      const edge = { 0: " first", [ticks.length - 1]: " last" }[n] ?? "";
      return [line(at, at, 24, bottom, { class: "grid" }),
        label(`x-tick${edge}`, at, bottom + 14, plain(tick))];
    });
    const long = (end) => Math.max(0.003, end);
    const band = (top) => ({ height: 10, y: top + 20 });
    const bars = drawn.map(({ value, spread, said, ink, text, label: name }, n) => {
      const top = 24 + ROW * n;
      const end = place(value);
      const at = spread.map(place).map(percent);
      const bar = logarithmic
        ? svg("circle", { class: "bar", cx: percent(end), cy: top + 25, r: 6 })
        : svg("rect", { class: "bar", x: "0%", width: percent(long(end)), ...band(top) });
      const ends = at.map((x) => line(x, x, top + 21, top + 29, { class: "spread" }));
      return point(said, ink,
        svg("rect", { class: "reach", width: "100%", height: ROW - 2, y: top }),
        svg("text", { y: top + 13 }, name, svg("tspan", { class: "value", dx: 8 }, text)),
        svg("rect", { class: "track", width: "100%", ...band(top) }), bar,
        ...(at.length ? [line(...at, top + 25, top + 25, { class: "spread" })] : []), ...ends);
    });
    return { parts: [...grid, ...bars], height: bottom + (ticks.length ? 18 : 0), kind: "rows " };
  };

  const wrapped = (words) =>
    words.split(" ").reduce((lines, word) => {
      const joined = lines.length ? `${lines.at(-1)} ${word}` : word;
      const fits = lines.length && joined.length <= 15;
      return fits ? [...lines.slice(0, -1), joined] : [...lines, word];
    }, []);
  // So that no name lies on another, and none below the axis.
  const setApart = (names, bottom) => {
    const order = [...names].sort((one, other) => one.top - other.top);
    let end = -Infinity;
    for (const each of order) {
      each.top = Math.max(each.top, end);
      end = each.top + each.height;
    }
    for (const each of order.reverse()) {
      each.top = Math.min(each.top, bottom - each.height);
      bottom = each.top;
    }
  };

  // `across` are lines of one value. Beneath `roofs`, each [name, points], points stand alone.
  const lines = (drawn, { across = [], roofs = [], axis = "size" }) => {
    const values = drawn.flatMap(({ value, spread }) => [value, ...spread]);
    const more = [...across, ...roofs.flatMap(([, points]) => points)];
    values.push(...more.map((each) => each.at(-1)));
    const ticks = roundNumbers(Math.min(...values), Math.max(...values));
    const own = [...new Set(drawn.map(({ size }) => size))].sort((one, other) => one - other);
    const last = own.at(-1);
    const sizes = roofs.length ? roundNumbers(own[0], last, [1]) : own;
    const [part, level] = [placing(sizes[0], sizes.at(-1)), placing(ticks[0], ticks.at(-1))];
    const x = (size) => percent(part(size));
    const y = (value) => Number((TOP + HEIGHT * (1 - level(value))).toFixed(2));
    const joined = (points) => points.slice(1).map(([size, value], n) =>
      line(x(points[n][0]), x(size), y(points[n][1]), y(value)));
    const crowded = sizes.length > 6 || sizes.map(plain).join("").length > 26;
    const bottom = TOP + HEIGHT;
    const parts = ticks.flatMap((tick) => [
      line(undefined, "100%", y(tick), y(tick), { class: "grid" }),
      svg("text", { class: "y-tick", dx: -8, y: y(tick) + 4 }, plain(tick)),
    ]);
    parts.push(...sizes.map((size, n) =>
      label(n % 2 && crowded ? "x-tick seldom" : "x-tick", x(size), bottom + 18, plain(size))));
    parts.push(label("x-label", "50%", bottom + 38, axis));
    parts.push(...across.map(([name, value]) => svg("g", { class: "ceiling" },
      line(undefined, "100%", y(value), y(value)), svg("text", { x: 4, y: y(value) - 5 }, name))));
    parts.push(...roofs.map(([name, points]) => {
      const [size, value] = points.at(-1);
      const said = svg("text", { x: x(size), y: y(value) - 5, "text-anchor": "end" }, name);
      return svg("g", { class: "ceiling" }, ...joined(points), said);
    }));
    const series = [...Map.groupBy(drawn, (each) => each.label)].map(([name, points]) => {
      points.sort((one, other) => one.size - other.size || one.value - other.value);
      const [words, end] = [wrapped(name), points.at(-1)];
      const height = LINE * words.length;
      const outside = end.size === last;
      const top = y(end.value) - (outside ? height / 2 : height + 5);
      return { points, words, end, outside, height, top };
    });
    const outside = series.filter((each) => each.outside);
    setApart(outside, bottom + 6);
    for (const { points, words, end, outside: out, top } of series) {
      const strokes = roofs.length ? [] : joined(points.map(({ size, value }) => [size, value]));
      const marks = points.map(({ size, value, spread, said }) => point(said, undefined,
        svg("circle", { class: "reach", cx: x(size), cy: y(value), r: 11 }),
        ...(spread.length ? [line(x(size), x(size), ...spread.map(y), { class: "spread" })] : []),
        svg("circle", { class: "bar", cx: x(size), cy: y(value), r: 4 })));
      const spans = words.map((word, n) =>
        svg("tspan", { x: x(end.size), dx: 10, dy: n ? LINE : undefined }, word));
      parts.push(svg("g", { class: "series", style: end.ink }, ...strokes, ...marks,
        svg("text", { class: out ? "name" : "name inside", y: top + 11 }, ...spans)));
    }
    const left = Math.ceil(Math.max(...ticks.map((tick) => plain(tick).length)) * 6.8 + 10);
    const longest = Math.max(...outside.flatMap(({ words }) => words.map(({ length }) => length)));
    const style = `--left:${left}px;--right:${Math.ceil(longest * 8.2 + 12)}px`;
    return { parts, height: bottom + 46, kind: "", style };
  };

  const spreadOf = (each, { y, scale }) => {
    const clock = y !== "rate" ? y : valueOf(each, "throughput") ? "throughput" : "latency";
    const { low, high } = rangeOf(each, clock);
    const ends = y === "rate" ? [each.work / high, each.work / low] : [low, high];
    return low === high ? [] : ends.map((end) => end * scale);
  };
  const drawnOf = (found, { chart, frameworks }) => {
    const { x, y, scale } = chart;
    const can = ([name, each]) =>
      name in chart.looks && valueOf(each, y) && (x === "name" || sizeOf(each));
    return found.filter(can).map(([name, each]) => {
      const [words, ink] = chart.looks[name];
      const size = sizeOf(each);
      const who = x === "name" ? frameworks[each.framework] : `${words}, ${plain(size)}`;
      const said = `${who}: ${fieldText(y, each)}`;
      const numbers = { value: valueOf(each, y) * scale, spread: spreadOf(each, chart) };
      const text = fieldText(y, each, false);
      return { label: words, ink, size, text, said, ...numbers };
    });
  };

  // A drawing, with the words of the one beside it, and its caption.
  const figure = ({ parts, height, kind, style }, beside) => {
    const words = (which) => beside.querySelector(`svg > ${which}`).textContent;
    const given = { class: `drawing ${kind}chart`, role: "group", height, style };
    const heading = svg("text", { class: "heading", y: 12 }, words(".heading"));
    return [svg("svg", given, svg("title", {}, words("title")), heading, ...parts),
      beside.querySelector(".chart-caption").cloneNode(true)];
  };

  const cellText = (column, each, { frameworks }, withRange) => {
    if (column === "shape") {
      return each.shape.map((lengths) => lengths.join("×") || "scalar").join(", ") || "–";
    }
    if (column === "framework") return frameworks[each.framework];
    return column === "processes" ? String(each.processes.length) : fieldText(column, each, withRange);
  };
  const table = (head, body) => {
    const row = (cells) => html("tr", {}, ...cells);
    const cell = (tag, given) => (words) => html(tag, given, html("p", {}, words));
    const heads = head.map(cell("th", { class: "head", scope: "col" }));
    const rest = body.map((cells) => row(cells.map(cell("td", {}))));
    const made = html("table", { class: "measurements table" },
      html("thead", {}, row(heads)), html("tbody", {}, ...rest));
    return html("div", { class: "table-scroll" },
      html("div", { class: "pst-scrollable-table-container" }, made));
  };
  const tableOf = (found, data) => {
    const has = ([column]) =>
      column !== "throughput" || found.some(([, each]) => valueOf(each, column) !== null);
    const columns = data.columns.filter(has);
    // Of columns of one process a note below says so.
    const several = ([column]) =>
      !CLOCKS.includes(column) || found.some(([, each]) => rangeOf(each, column)?.count > 1);
    const ranges = columns.map(several);
    const head = columns.map(([, words]) => words);
    const alone = head.filter((words, n) => !ranges[n]);
    const cells = ([, each]) =>
      columns.map(([column], n) => cellText(column, each, data, ranges[n]));
    const made = table(head, found.map(cells));
    if (alone.length) {
      made.append(html("p", { class: "table-note" }, `One process: ${alone.join(", ")}.`));
    }
    return made;
  };
  // All switches of all measurements; where there are several values, of how many each is.
  const switches = (found, { frameworks }) => {
    const labels = new Map(Object.entries(frameworks));
    const seen = new Map();
    for (const each of found) {
      const version = each.versions[distributionOf(each)];
      const own = { version, "float32 matmuls": each.precision, ...each.settings };
      own.machine = each.processor;
      for (const [name, value] of Object.entries(own).filter(([, value]) => value)) {
        const key = `${each.framework}\0${name}`;
        const values = seen.get(key) ?? new Map();
        seen.set(key, values.set(value, (values.get(value) ?? 0) + 1));
      }
    }
    const body = [...seen.keys()].sort().map((key) => {
      const [framework, name] = key.split("\0");
      const values = [...seen.get(key)].sort(([, one], [, other]) => other - one);
      const said = values.map(([value, count]) => values.length > 1 ? `${value} (${count})` : value);
      return [labels.get(framework) ?? framework, name, said.join(", ")];
    });
    return table(["framework", "switch", "measured with"], body);
  };
  const folded = (words, content) => html("details", {}, html("summary", {}, words), content);

  let count = 0;
  const addTab = (place, { home }, ...content) => {
    const note = html("p", { class: "device-note" }, `${LABEL}: ${about(record)}`);
    const tab = (set, device, words, panel, checked) => {
      const id = `machine-${(count += 1)}`;
      const input = html("input", { id, name: set, type: "radio" });
      input.checked = checked;
      const name = html("label", { class: "sd-tab-label", for: id }, words);
      Object.assign(name.dataset, { syncGroup: "device", syncId: device });
      return [input, name, html("div", { class: "sd-tab-content device-tab docutils" }, panel)];
    };
    let tabs = place;
    if (!place.classList.contains("sd-tab-set")) {
      tabs = html("div", { class: "sd-tab-set device-tabs docutils" });
      place.replaceWith(tabs);
      tabs.append(...tab(`machine-set-${count}`, ...home, place, true));
    }
    const panel = html("div", { class: "chart-figure" }, ...content);
    panel.lastChild.before(note);
    tabs.append(...tab(tabs.querySelector("input").name, DEVICE, LABEL, panel, false));
  };
  // Shown where "Your machine" is the device that was chosen.
  const notice = (words) =>
    html("p", { class: "device-notice", "data-device": DEVICE, hidden: "" }, words);

  Object.assign(window.machine, { lines, figure, table, folded, addTab, notice, html });

  const places = [...document.querySelectorAll(".measurement-data")];
  for (const place of places) {
    const data = JSON.parse(place.textContent);
    if (!data.references) {
      addTab(place.nextElementSibling, data, switches([...record.measurements.values()], data));
      continue;
    }
    const of = (names) =>
      names.map((name) => [name, record.measurements.get(name)]).filter(([, each]) => each);
    const found = of(data.references);
    if (!found.length) {
      place.before(notice("Nothing of this is in your file."));
      continue;
    }
    const beside = place.nextElementSibling;
    const numbers = tableOf(found, data);
    const drawn = data.chart ? drawnOf(found, data) : [];
    if (!drawn.length) {
      addTab(beside, data, numbers);
      continue;
    }
    const { chart } = data;
    const limits = of(chart.ceilings).map(([, each]) => valueOf(each, chart.y)).filter(Boolean);
    const limit = Math.max(...limits);
    const across = limits.length ? [[`ceiling ${rateText(limit)}`, limit * chart.scale]] : [];
    const made = chart.x === "name" ? rows(drawn, chart) : lines(drawn, { across });
    addTab(beside, data, ...figure(made, beside), folded("The numbers as a table", numbers));
  }
  let said = null;
  if (count || document.querySelector(".yours")) {
    const words = "Charts and tables show it; a number has yours beside it, if your file has it for " +
      "the same kind of device. All else is as this book recorded it.";
    // Open the first time; then it is folded, for each page says the same.
    const open = stored((storage) => storage.getItem(TOLD)) ? {} : { open: "" };
    said = html("details", { class: "device-notice", "data-device": DEVICE, hidden: "", ...open },
      html("summary", {}, LABEL), `${about(record)}. ${words}`);
    document.querySelector("article h1")?.after(said);
  }
  document.dispatchEvent(new CustomEvent("devices"));
  if (said && !said.hidden) stored((storage) => storage.setItem(TOLD, "yes"));
})();
