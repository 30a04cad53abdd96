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
  const numbersOf = ({ shape: [first] }) => first?.reduce((some, length) => some * length, 1) ?? 0;
  const bytesOf = (each, arrays) => arrays * (BYTES[each.dtype] ?? 0) * numbersOf(each);

  const nameOf = (each) => `${each.name}@${each.framework}`;
  // A measurement with the operations of a call, where the page declares them.
  const withWork = (each) => {
    const declared = data.points[nameOf(each)]?.[1] ?? null;
    return declared === null ? each : { ...each, work: declared * numbersOf(each) };
  };
  const roofsOf = (all) => {
    const isPoint = (each) => nameOf(each) in data.points;
    const computing = all.map(withWork).filter((each) => each.work);
    const ceilings = computing.filter((each) => data.ceilings.includes(nameOf(each)));
    const rateOf = (each) => valueOf(each, "rate");
    const fastest = [...Map.groupBy(ceilings, ({ dtype }) => dtype)].map(([dtype, some]) => {
      const points = computing.filter((each) => each.dtype === dtype && isPoint(each));
      return [dtype, [...some, ...points].sort((one, other) => rateOf(other) - rateOf(one))[0]];
    });
    const kinds = fastest.map(([, best]) => best.device_kind);
    const moved = all
      .filter((each) => nameOf(each) in data.moved && kinds.includes(each.device_kind))
      .map((each) => bytesOf(each, data.moved[nameOf(each)]) / secondsOf(each));
    const rates = fastest.map(([dtype, best]) => [dtype, rateOf(best)]);
    return moved.some(Boolean) ? [Math.max(...moved), Object.fromEntries(rates)] : null;
  };

  const draw = (all, [moved, computed]) => {
    const { lines, figure, table, folded, addTab } = window.machine;
    const points = all.map(withWork).flatMap((each) => {
      const [arrays, , label, ink] = data.points[nameOf(each)] ?? [];
      const [bytes, rate] = [bytesOf(each, arrays ?? 0), valueOf(each, "rate")];
      if (!bytes || !rate || !computed[each.dtype]) return [];
      const size = each.work / bytes;
      const roof = Math.min(computed[each.dtype], moved * size);
      const texts = [`${digits(size, 3)} FLOP/byte`, rateText(rate), `roof ${rateText(roof)}`,
        `${Math.round((100 * rate) / roof)}%`];
      const said = `${each.name}, ${label}: ${texts.join(", ")}`;
      return [{ each, label, ink, size, value: rate / 1e9, spread: [], said, texts }];
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
