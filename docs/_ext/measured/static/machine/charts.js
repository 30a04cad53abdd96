// Draw the reader's own measurements as docs/_ext/measured/charts.py and docs/_ext/drawing draw
// the book's, from what the build wrote before each chart and table, and put them into its tabs.
(async () => {
  "use strict";
  const { DEVICE, LABEL, record, about, distributionOf, stored } = window.machine;
  const { CLOCKS, rangeOf, valueOf, sizeOf, heldOf, fieldText, unbroken } = window.machine;
  const { rateText, secondsText, ratioText } = window.machine;
  const [TOP, HEIGHT, LINE] = [40, 250, 15];
  // As in rows.py and lines.py.
  const [LETTER, BOLD, FAR] = [6.8, 8.2, 30];
  const MARKS = [["", "●"], ["square", "■"], ["diamond", "◆"], ["flat", "▬"]];
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

  const point = (said, style, kind, ...children) =>
    svg("g", { class: `point${kind}`, style, tabindex: 0, role: "img" }, svg("title", {}, said),
      ...children, svg("text", { class: "said", y: 12 }, said));

  const sideways = (left, right) => `--left:${Math.ceil(left)}px;--right:${Math.ceil(right)}px;`;
  const longest = (texts) => Math.max(0, ...texts.map(({ length }) => length));
  const crowds = (texts) => texts.join("").length > 26;

  // What is drawn: {label, ink, group, value, text, said, spread, other}, and over sizes also {size}.
  // Of another machine it has no `other`, or one of another size, `otherSize`.
  const rows = (drawn, { logarithmic, y }, write) => {
    const values = drawn.flatMap(({ value, spread, other = value }) => [value, ...spread, other]);
    const most = Math.max(...values);
    const dots = logarithmic || most > FAR * Math.min(...values);
    const ticks = dots ? roundNumbers(Math.min(...values), most) : [];
    const place = dots ? placing(ticks[0], ticks.at(-1)) : (value) => value / most;
    const crowded = crowds(ticks.map(write));
    const grid = ticks.flatMap((tick, n) => {
      const at = percent(place(tick));
      const edge = { 0: " first", [ticks.length - 1]: " last" }[n] ?? "";
      const kind = crowded && n % 2 ? "x-tick seldom" : "x-tick";
      return [svg("rect", { class: "grid", x: at, y: 24 }), label(kind + edge, at, 40, write(tick))];
    });
    const circle = (kind, value) => svg("circle", { class: kind, cx: percent(place(value)), cy: 10, r: 5 });
    const lower = (x1, x2, ...at) => line(x1, x2, ...at, { class: "spread" });
    const whole = ({ text, value, other }) => other ? `${text} ○ ${ratioText(other / value)}` : text;
    const row = (each, n) => {
      const at = each.spread.map(place).map(percent);
      const width = percent(Math.max(0.003, place(each.value)));
      const bar = svg("rect", { class: "bar", x: "0%", width, height: 12, y: 4 });
      return point(each.said, `--n:${n};${each.ink}`, " row",
        svg("rect", { class: "reach", width: "100%", height: 20 }),
        label("label", undefined, 14, each.label), label("value", "100%", 14, whole(each)),
        svg("g", { class: "marks" }, svg("rect", { class: "track", width: "100%", height: 1, y: 9.5 }),
          ...(dots ? [] : [bar]), ...(at.length ? [lower(...at, 10, 10)] : []),
          ...at.map((x) => lower(x, x, 6, 14)), ...(each.other ? [circle("other", each.other)] : []),
          ...(dots ? [circle("bar", each.value)] : [])));
    };
    const parts = [];
    const sign = y === "rate" ? -1 : 1;
    for (const [group, of] of Map.groupBy(drawn, (each) => each.group)) {
      const style = `--n:${parts.length}`;
      if (group) parts.push(svg("text", { class: "group", y: 15, style }, group));
      const numbers = of.every(({ label: [first] }) => /\d/.test(first));
      if (!numbers) of.sort((one, other) => sign * (one.value - other.value));
      for (const each of of) parts.push(row(each, parts.length));
    }
    const left = longest(drawn.map((each) => each.label)) * LETTER + 12;
    const style = sideways(left, longest(drawn.map(whole)) * BOLD + 12);
    const kind = `rows ${dots ? "axis " : ""}`;
    return { parts: [...grid, ...parts], kind, style: `${style}--rows:${parts.length}` };
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

  // Where a name beside the end of a line, [side, top], covers least of what is drawn.
  const freest = (ends, [at, middle], words) => {
    const [height, wide] = [LINE * words.length, 10 + longest(words) * BOLD];
    const between = ([x1, y1], [x2, y2]) => Array.from({ length: 8 }, (_, n) =>
      [x1 + ((x2 - x1) * (n + 1)) / 9, y1 + ((y2 - y1) * (n + 1)) / 9, 1]);
    const places = ends.flatMap((line) => line.flatMap((end, n) =>
      [[...end, 9], ...(n ? between(line[n - 1], end) : [])]));
    const covered = ([side, top], width) => {
      const start = at * width - (side === "left" ? wide : -10);
      const inside = places.filter(([across, down]) => start - 4 < across * width &&
        across * width < start + wide && top - 4 < down && down < top + height + 4);
      const over = start < 0 || start + wide > width + 60 ? 20 : 0;
      return inside.reduce((sum, [, , count]) => sum + count, over);
    };
    const choices = ["right", "left"].flatMap((side) =>
      [middle - 5 - height, middle + 5].map((top) => [side, top]));
    const hidden = choices.map((choice) => covered(choice, 230) + covered(choice, 560));
    return choices[hidden.indexOf(Math.min(...hidden))];
  };

  // `across` are lines of one value. Beneath `roofs`, each [name, points], points stand alone.
  const lines = (drawn, { across = [], roofs = [], axis, write = plain }) => {
    const values = drawn.flatMap(({ value, spread, other = value }) => [value, ...spread, other]);
    const limits = roofs.flatMap(([, points]) => points);
    values.push(...[...across, ...limits].map((each) => each.at(-1)));
    const ticks = roundNumbers(Math.min(...values), Math.max(...values));
    const found = [...drawn.flatMap(({ size, otherSize = size }) => [size, otherSize]), ...limits.map(([size]) => size)];
    const own = [...new Set(found)].sort((one, other) => one - other);
    const last = own.at(-1);
    const sizes = roofs.length ? roundNumbers(own[0], last, [1]) : own;
    const [part, level] = [placing(sizes[0], sizes.at(-1)), placing(ticks[0], ticks.at(-1))];
    const x = (size) => percent(part(size));
    const y = (value) => Number((TOP + HEIGHT * (1 - level(value))).toFixed(2));
    const joined = (points, kind) => points.length < 2 ? [] : [svg("g", { class: kind },
      ...points.slice(1).map(([size, value], n) =>
        line(x(points[n][0]), x(size), y(points[n][1]), y(value))))];
    const crowded = sizes.length > 6 || crowds(sizes.map(plain));
    const bottom = TOP + HEIGHT;
    const parts = ticks.flatMap((tick) => [
      line(undefined, "100%", y(tick), y(tick), { class: "grid" }),
      svg("text", { class: "y-tick", dx: -8, y: y(tick) + 4 }, write(tick)),
    ]);
    parts.push(...sizes.map((size, n) =>
      label(n % 2 && crowded ? "x-tick seldom" : "x-tick", x(size), bottom + 18, plain(size))));
    parts.push(label("x-label", "50%", bottom + 38, axis));
    parts.push(...across.map(([name, value]) => svg("g", { class: "ceiling" },
      line(undefined, "100%", y(value), y(value)), svg("text", { x: 4, y: y(value) - 5 }, name))));
    parts.push(...roofs.flatMap(([, points]) => joined(points, "ceiling")));
    const series = [...Map.groupBy(drawn, (each) => each.label)].map(([name, points]) => {
      points.sort((one, other) => one.size - other.size || one.value - other.value);
      const [words, end] = [wrapped(name), points.at(-1)];
      const height = LINE * words.length;
      const places = points.map(({ size, value }) => [part(size), y(value)]);
      const outside = end.size === last;
      return { name, points, words, end, places, outside, height, top: y(end.value) - height / 2 };
    });
    const outside = roofs.length ? [] : series.filter((each) => each.outside);
    setApart(outside, bottom + 6);
    const mark = (kind, said, size, value, spread) => point(said, undefined, "",
      svg("circle", { class: "reach", cx: x(size), cy: y(value), r: 11 }),
      ...(spread.length ? [line(x(size), x(size), ...spread.map(y), { class: "spread" })] : []),
      ["bar", "other"].includes(kind) ? svg("circle", { class: kind, cx: x(size), cy: y(value), r: 4 })
        : svg("rect", { class: kind, x: x(size), y: y(value) }));
    const all = series.map(({ places }) => places);
    const legend = series.map(({ name, points, words, end, places, outside: out, top }, n) => {
      const [side, beside] = out ? ["", top] : freest(all, places.at(-1), words);
      const [kind, sign] = MARKS[roofs.length ? n % 4 : 0];
      const others = points.filter(({ other }) => other);
      const elsewhere = roofs.length ? [] : others.map(({ size, other }) => [size, other]);
      const hollow = others.map(({ saidOther, size, otherSize = size, other }) =>
        mark(`other ${kind}`.trim(), saidOther, otherSize, other, []));
      const strokes = roofs.length ? [] : joined(points.map(({ size, value }) => [size, value]));
      const marks = points.map(({ size, value, spread, said }) =>
        mark(kind ? `bar ${kind}` : "bar", said, size, value, spread));
      const spans = words.map((word, nth) =>
        svg("tspan", { x: x(end.size), dx: side === "left" ? -10 : 10, dy: nth ? LINE : undefined }, word));
      const named = svg("text", { class: out ? "name" : `name inside ${side}`, y: beside + 11 }, ...spans);
      parts.push(svg("g", { class: "series", style: end.ink }, ...joined(elsewhere, "other"), ...hollow,
        ...strokes, ...marks, ...(roofs.length ? [] : [named])));
      return svg("tspan", { style: end.ink }, `${sign} ${name} `);
    });
    if (roofs.length) {
      const named = roofs.map(([name, points]) =>
        ({ name, at: x(points.at(-2)[0]), top: y(points.at(-1)[1]) - LINE, height: LINE }));
      setApart(named, bottom);
      parts.push(...named.map(({ name, at, top }) =>
        svg("text", { class: "roof", x: at, dx: -6, y: top + 12 }, name)),
      svg("text", { class: "legend", y: bottom + 60 }, ...legend));
    }
    const left = longest(ticks.map(write)) * LETTER + 10;
    const style = sideways(left, longest(outside.flatMap(({ words }) => words)) * BOLD + 24);
    return { parts, kind: "", style: `${style}height:${bottom + (roofs.length ? 68 : 46)}px` };
  };

  const spreadOf = (each, { y, scale }) => {
    const clock = y !== "rate" ? y : valueOf(each, "throughput") ? "throughput" : "latency";
    const { low, high } = rangeOf(each, clock);
    const ends = y === "rate" ? [each.work / high, each.work / low] : [low, high];
    return low === high ? [] : ends.map((end) => end * scale);
  };
  // Says below a drawing what its hollow marks are.
  const hollowNote = (drawn, ratio = "") => {
    const devices = [...new Set(drawn.map(({ where }) => where).filter(Boolean))].join(" and ");
    const none = "This book has no number of the same kind of device.";
    return html("p", { class: "table-note" }, devices ? `○ ${devices} of this book${ratio}.` : none);
  };
  const drawnOf = (found, { chart, frameworks }) => {
    const { x, y, scale } = chart;
    const written = (value) => (y === "rate" ? rateText : secondsText)(value);
    const can = ([name, each]) =>
      name in chart.looks && valueOf(each, y) && (x === "name" || sizeOf(each));
    return found.filter(can).map(([name, each]) => {
      const [words, ink, group, held] = chart.looks[name];
      const [where, book] = heldOf(each, held);
      const size = sizeOf(each);
      const who = x === "name" ? frameworks[each.framework] : `${words}, ${plain(size)}`;
      const said = `${who}: ${fieldText(y, each)}`;
      const numbers = { value: valueOf(each, y) * scale, spread: spreadOf(each, chart) };
      const text = fieldText(y, each, false);
      const other = book && { where, other: book * scale, saidOther: `${where}, ${who}: ${written(book)}` };
      return { label: words, ink, group, size, text, said, ...other, ...numbers };
    });
  };

  // A drawing, with the words of the one beside it, and its caption.
  const wordsOf = (beside, which) => beside.querySelector(`svg > ${which}`)?.textContent;
  const figure = ({ parts, kind, style }, beside) => {
    const words = (which) => wordsOf(beside, which);
    const given = { class: `drawing ${kind}chart`, role: "group", style };
    const heading = svg("text", { class: "heading", y: 12 }, words(".heading"));
    return [svg("svg", given, svg("title", {}, words("title")), heading, ...parts),
      beside.querySelector(".chart-caption").cloneNode(true)];
  };

  const cellText = (column, each, { frameworks, names }, withRange) => {
    if (column === "shape") {
      return each.shape.map((lengths) => lengths.join("×") || "scalar").join(", ");
    }
    if (column === "framework") return frameworks[each.framework];
    if (column === "name") return names[each.name.split("@")[0]];
    return column === "processes" ? String(each.processes.length) : fieldText(column, each, withRange);
  };
  const table = (head, body) => {
    const row = (cells) => html("tr", {}, ...cells);
    const cell = (tag, given) => (words) => html(tag, given, html("p", {}, unbroken(words)));
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

  Object.assign(window.machine, { lines, figure, table, folded, addTab, hollowNote, notice, html });

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
    const write = chart.y === "rate" ? plain : secondsText;
    const byName = chart.x === "name";
    const made = byName ? rows(drawn, chart, write)
      : lines(drawn, { across, write, axis: wordsOf(beside, ".x-label") });
    const ratio = byName ? "; behind ○, its number divided by yours" : "";
    addTab(beside, data, ...figure(made, beside), hollowNote(drawn, ratio), folded("The numbers as a table", numbers));
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
