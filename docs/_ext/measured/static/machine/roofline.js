// The reader's roofline beside the book's, and the answer whether a time is possible: the formula
// of snippets/your_machine/roofline.py, for the roofs that the build wrote and for the reader's.
(() => {
  "use strict";
  const { LABEL, record, valueOf, secondsOf, heldOf, rateText, secondsText, digits } = window.machine;
  const BYTES = { float64: 8, float32: 4, bfloat16: 2, float16: 2 };
  const measurements = [...(record?.measurements ?? [])].map(([name, each]) => ({ ...each, name }));
  const numbersOf = ({ shape: [first] }) => first?.reduce((some, length) => some * length, 1) ?? 0;
  const bytesOf = (each, arrays) => arrays * (BYTES[each.dtype] ?? 0) * numbersOf(each);
  const rateOf = (each) => valueOf(each, "rate");

  // The points of a roofline that are in the file, with the work that the page declares for them.
  const pointsOf = ({ points }) =>
    measurements.filter(({ name }) => name in points).map((each) => {
      const [arrays, operations, label, ink, held] = points[each.name];
      const work = operations === null ? each.work : operations * numbersOf(each);
      return { ...each, work, bytes: bytesOf(each, arrays), label, ink, held };
    });

  // Of each dtype of a ceiling the fastest of all that was measured, whatever page it is of.
  const roofsOf = ({ ceilings, moved }, points) => {
    const highest = new Map();
    const working = measurements.filter(({ work }) => work);
    const dtypes = working.filter(({ name }) => ceilings.includes(name)).map(({ dtype }) => dtype);
    for (const each of [...working, ...points].filter(({ dtype }) => dtypes.includes(dtype))) {
      const best = highest.get(each.dtype);
      if (!best || rateOf(each) > rateOf(best)) highest.set(each.dtype, each);
    }
    const kinds = [...highest.values()].map((each) => each.device_kind);
    const bandwidths = measurements
      .filter((each) => each.name in moved && kinds.includes(each.device_kind))
      .map((each) => bytesOf(each, moved[each.name]) / secondsOf(each));
    const rates = [...highest].map(([dtype, best]) => [dtype, rateOf(best)]);
    return bandwidths.some(Boolean) ? [Math.max(...bandwidths), Object.fromEntries(rates)] : null;
  };

  const draw = (place, data, points, [bandwidth, rates]) => {
    const { lines, figure, table, folded, addTab, hollowNote } = window.machine;
    const drawn = points.filter((each) => each.bytes && each.work && rates[each.dtype]);
    const reached = drawn.map(({ name, label, ink, dtype, work, bytes, held, ...each }) => {
      const [size, rate] = [work / bytes, rateOf({ work, ...each })];
      const roof = Math.min(rates[dtype], bandwidth * size);
      const texts = [`${digits(size, 3)} FLOP/byte`, rateText(rate), `roof ${rateText(roof)}`,
        `${Math.round((100 * rate) / roof)}%`];
      const key = name.split("@")[0];
      const row = [data.names[key], label, ...texts];
      const said = `${key}, ${label}: ${texts.join(", ")}`;
      const [where, [otherSize, its] = []] = heldOf(each, held);
      const other = its && { where, otherSize, other: its / 1e9,
        saidOther: `${where}, ${key}, ${label}: ${rateText(its)}` };
      return { label, ink, size, value: rate / 1e9, spread: [], said, row, ...other };
    });
    const highest = Object.entries(rates).map(([dtype, rate]) =>
      [`arithmetic, ${dtype}`, rateText(rate)]);
    const memory = ["memory", `${digits(bandwidth / 1e9, 3)} GB/s`];
    const numbers = table(["roof", "highest measured"], [memory, ...highest]);
    const beside = place.nextElementSibling;
    if (!reached.length) return addTab(beside, data, numbers);
    const sizes = reached.flatMap(({ size, otherSize = size }) => [size, otherSize]);
    const bends = Object.values(rates).map((rate) => rate / bandwidth);
    const start = Math.min(...sizes, Math.min(...bends) / 2);
    const steepest = Math.max(...bends);
    const most = Math.max(...sizes, 2 * steepest);
    const roofs = Object.entries(rates).map(([dtype, rate]) => {
      const ends = [...(rate / bandwidth === steepest ? [start] : []), rate / bandwidth, most];
      const points = ends.map((size) => [size, Math.min(rate, size * bandwidth) / 1e9]);
      return [`${dtype}: ${rateText(rate)}`, points];
    });
    const made = lines(reached, { roofs, axis: "operations for each byte that has to be moved" });
    const head = ["measurement", "framework", "for each byte", "reached", "allowed", "share"];
    const rest = folded("The points as a table", table(head, reached.map(({ row }) => row)));
    return addTab(beside, data, ...figure(made, beside), hollowNote(reached), numbers, rest);
  };

  const devices = [];
  for (const place of document.querySelectorAll(".roofline-data")) {
    const data = JSON.parse(place.textContent);
    const points = pointsOf(data);
    const roofs = roofsOf(data, points);
    devices.push(...Object.entries(data.devices), ...(roofs ? [[LABEL, roofs]] : []));
    if (roofs) draw(place, data, points, roofs);
  }
  document.dispatchEvent(new CustomEvent("devices"));

  // Operations, and numbers that are read or written.
  const OPERATIONS = {
    copy: (n) => [0, 2 * n],
    elementwise: (n) => [n, 2 * n],
    sum: (n) => [n, n],
    product: (n) => [2 * n ** 3, 3 * n ** 2],
  };
  const leastTime = (operation, n, dtype, bandwidth, rate) => {
    const [operations, numbers] = OPERATIONS[operation](n);
    return [(numbers * BYTES[dtype]) / bandwidth, operations / rate];
  };
  window.machine.leastTime = leastTime;

  const group = document.querySelector(".possible-time");
  if (!group) return;
  const { element } = window.book;
  const [operation, size, dtype] = group.querySelectorAll("select, input");
  const output = group.querySelector('[role="status"]');
  const say = (tag, ...content) => element(tag, {}, ...content);
  const answerOf = (n, [label, [bandwidth, rates]]) => {
    const rate = rates[dtype.value];
    if (!rate) return say("li", `${label}: no matmul of ${dtype.value} was measured.`);
    const times = leastTime(operation.value, n, dtype.value, bandwidth, rate);
    const by = times[0] >= times[1] ? "memory" : "arithmetic";
    const [memory, arithmetic] = times.map(secondsText);
    return say("li", `${label}: at least `, say("strong", secondsText(Math.max(...times))),
      ` because of ${by} (${memory} to move the bytes, ${arithmetic} to compute)`);
  };
  const answer = () => {
    const n = Number(size.value.replace(/[\s,_]/g, "") || NaN);
    if (!(Number.isInteger(n) && n >= 1 && n <= 1e12)) {
      output.replaceChildren(say("p", "Write a whole number from 1 to 1,000,000,000,000."));
      return;
    }
    const isDrawn = !record || devices.some(([label]) => label === LABEL);
    const lacks = "Your file lacks the ceilings, so your machine is not in the list.";
    output.replaceChildren(say("ul", ...devices.map((device) => answerOf(n, device))),
      ...(isDrawn ? [] : [say("p", lacks)]));
  };
  group.addEventListener("input", answer);
  group.hidden = false;
  answer();
})();
