// Is this time possible? The formula of snippets/your_machine/roofline.py, for the roofs that the
// build wrote and for those of the reader's own record, which also get a drawing.
(() => {
  "use strict";
  const { LABEL, record, valueOf, secondsOf, rateText, secondsText, digits } = window.machine;
  const BYTES = { float64: 8, float32: 4, bfloat16: 2, float16: 2 };
  // Operations, and numbers that are read or written.
  const OPERATIONS = {
    copy: (n) => [0, 2 * n],
    elementwise: (n) => [n, 2 * n],
    sum: (n) => [n, n],
    product: (n) => [2 * n ** 3, 3 * n ** 2],
  };
  const leastTime = (operation, n, dtype, moved, computed) => {
    const [operations, numbers] = OPERATIONS[operation](n);
    return [(numbers * BYTES[dtype]) / moved, operations / computed];
  };

  const place = document.querySelector(".roofline-data");
  const data = JSON.parse(place?.textContent ?? '{"devices": {}}');
  const bytesOf = ({ dtype, shape }, arrays) =>
    arrays * (BYTES[dtype] ?? 0) * shape[0].reduce((some, length) => some * length, 1);

  const roofsOf = (all) => {
    const isPoint = (each) => data.points[`${each.name}@${each.framework}`];
    const fastest = Object.entries(data.computed).flatMap(([dtype, names]) => {
      const computing = all.filter((each) => each.work);
      const found = computing.filter((each) => names.includes(each.name));
      const points = computing.filter((each) => each.dtype === dtype && isPoint(each));
      const [best] = (found.length ? [...found, ...points] : []).sort((one, other) => valueOf(other, "rate") - valueOf(one, "rate"));
      return best ? [[dtype, best]] : [];
    });
    const kinds = fastest.map(([, best]) => best.device_kind);
    const moved = all
      .filter((each) => each.name in data.moved && each.shape.length)
      .filter((each) => kinds.includes(each.device_kind))
      .map((each) => bytesOf(each, data.moved[each.name]) / secondsOf(each));
    const computed = fastest.map(([dtype, best]) => [dtype, valueOf(best, "rate")]);
    return moved.length ? [Math.max(...moved), Object.fromEntries(computed)] : null;
  };

  const draw = (all, [moved, computed]) => {
    const { lines, figure, table, folded, addTab } = window.machine;
    const points = all.flatMap((each) => {
      const cost = data.points[`${each.name}@${each.framework}`];
      if (!cost || !computed[each.dtype] || !each.shape.length) return [];
      const [arrays, given, label, ink] = cost;
      const numbers = bytesOf(each, 1) / BYTES[each.dtype];
      const work = given === null ? each.work : given * numbers;
      const [size, rate] = [work / bytesOf(each, arrays), work / secondsOf(each)];
      const roof = Math.min(computed[each.dtype], moved * size);
      const texts = [`${digits(size, 3)} FLOP/byte`, rateText(rate), `roof ${rateText(roof)}`,
        `${Math.round((100 * rate) / roof)}%`];
      const said = `${each.name}, ${label}: ${texts.join(", ")}`;
      return work ? [{ each, label, ink, size, value: rate / 1e9, spread: [], said, texts }] : [];
    });
    const gigabytes = ["memory", `${digits(moved / 1e9, 3)} GB/s`];
    const rates = Object.entries(computed);
    const highest = rates.map(([dtype, rate]) => [`arithmetic, ${dtype}`, rateText(rate)]);
    const numbers = table(["roof", "highest measured"], [gigabytes, ...highest]);
    const beside = place.nextElementSibling;
    if (!points.length) return addTab(beside, data, numbers);
    const sizes = points.map(({ size }) => size);
    const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
    const roofs = rates.map(([dtype, peak]) => {
      const bend = Math.min(Math.max(peak / moved, least), most);
      const ends = [...new Set([least, bend, most])];
      return [`${dtype}: ${rateText(peak)}`, ends.map((x) => [x, Math.min(peak, x * moved) / 1e9])];
    });
    const made = lines(points, { roofs, axis: "operations for each byte that has to be moved" });
    const head = ["measurement", "framework", "for each byte", "reached", "allowed", "share"];
    const body = points.map(({ each, label, texts }) => [each.name, label, ...texts]);
    const rest = folded("The points as a table", table(head, body));
    return addTab(beside, data, ...figure(made, beside), numbers, rest);
  };

  const devices = Object.entries(data.devices);
  const all = record && place ? [...record.measurements.values()] : [];
  const roofs = all.length ? roofsOf(all) : null;
  if (roofs) {
    devices.push([LABEL, roofs]);
    draw(all, roofs);
    document.dispatchEvent(new CustomEvent("devices"));
  }

  const group = document.querySelector(".possible-time");
  const [operation, size, dtype] = group.querySelectorAll("select, input");
  const output = group.querySelector('[role="status"]');
  const say = (tag, ...content) => {
    const made = document.createElement(tag);
    made.append(...content);
    return made;
  };
  const answer = () => {
    const n = Number(size.value.replace(/[\s,_]/g, "") || NaN);
    if (!(Number.isInteger(n) && n >= 1 && n <= 1e12)) {
      output.replaceChildren(say("p", "Write a whole number from 1 to 1,000,000,000,000."));
      return;
    }
    const lines = devices.map(([label, [moved, computed]]) => {
      const rate = computed[dtype.value];
      if (!rate) return say("li", `${label}: no matmul of ${dtype.value} was measured.`);
      const times = leastTime(operation.value, n, dtype.value, moved, rate);
      const by = times[0] >= times[1] ? "memory" : "arithmetic";
      const [memory, arithmetic] = times.map(secondsText);
      return say("li", `${label}: at least `, say("strong", secondsText(Math.max(...times))),
        ` because of ${by} (${memory} to move the bytes, ${arithmetic} to compute)`);
    });
    const lacks = record && !roofs
      ? [say("p", "Your file lacks the ceilings, so your machine is not in the list.")]
      : [];
    output.replaceChildren(say("ul", ...lines), ...lacks);
  };
  group.addEventListener("input", answer);
  group.hidden = false;
  answer();
  Object.assign(window.machine, { leastTime, roofsOf });
})();
