// Put the reader's own number beside each of the text and of the tables that authors write, computed
// and written as docs/_ext/measured/references.py and ranges.py do. The build left in each what
// its author asked for.
(() => {
  "use strict";
  const { YOURS, LABEL, record, about, marksOf, CLOCKS, rangeOf, valueOf, secondsOf, isAccelerated } =
    window.machine;
  const { fieldText, secondsText, ratioText, unbroken } = window.machine;
  const { median, medianRatio, spread, numberOf, fixed, rounded, decimals, between, ranged } =
    window.machine;
  const { element } = window.book;
  const [EQUAL, INDISTINCT] = [0.1, 0.03];
  const UNDECIDED = "cannot tell";
  const OTHERWISE = "not as on this book’s machine";

  const away = ({ low, high }) => Math.max(Math.abs(Math.log(low)), Math.abs(Math.log(high)));
  const holdsOne = ({ low, high }) => low <= 1 && high >= 1;
  const isAlone = ({ count }) => count === 1;
  const isNear = ({ value }) => Math.abs(Math.log(value)) <= Math.log1p(INDISTINCT);
  const isEqual = (ratio) =>
    !isAlone(ratio) && (holdsOne(ratio) || isNear(ratio)) && away(ratio) <= Math.log1p(EQUAL);
  const isTold = (ratio) => !isAlone(ratio) && !isEqual(ratio) && !holdsOne(ratio);
  const notTold = (ratio) => {
    const percent = Math.ceil(100 * Math.expm1(away(ratio)) - 1e-9) || 1;
    if (isEqual(ratio)) return `about equal (within ${percent} %)`;
    return `${UNDECIDED} (${rounded(ratio.low, 1)}–${rounded(ratio.high, 1)}×)`;
  };
  const alone = ({ value }) => `${rounded(value, 1 - Math.floor(Math.log10(value)))}×`;
  const times = (ratio) => {
    if (isAlone(ratio)) return `${alone(ratio)} (one process)`;
    return isTold(ratio) ? ranged(ratio, "×") : notTold(ratio);
  };
  const compared = (ratio) => {
    if (isAlone(ratio)) return `${alone(ratio)} the time (one process)`;
    if (!isTold(ratio)) return notTold(ratio);
    const { value, low, high, count } = ratio;
    const inverse = { value: 1 / value, low: 1 / high, high: 1 / low, count };
    return value > 1 ? ranged(ratio, "× slower") : ranged(inverse, "× faster");
  };
  const callsText = (calls) => {
    const places = Math.min(decimals(calls), 0);
    const { value, low, high } = calls;
    const texts = [value, low, high].map((each) => fixed(Math.ceil(each), places));
    return between(calls, texts, texts[0] === "1" ? " call" : " calls");
  };

  // Of two that took turns, or of their first calls, which have none.
  const ratioOf = ([clock, { processes, ...above }], [other, below]) => {
    const clocks = [clock, other];
    const together = above.turns !== null && above.turns === below.turns;
    const same = above.name === below.name && above.framework === below.framework;
    const first = clocks.every((each) => each === "first_call");
    const pairs = processes.map((one, n) => [one, below.processes[n]]);
    if (processes.length !== below.processes.length || !(together || same || first)) return null;
    if (clocks.every((each) => each === "latency")) {
      const rounds = pairs.map(([one, another]) =>
        one.latency.map((seconds, n) => seconds / another.latency[n]));
      const numbers = rounds.map(medianRatio);
      return { ...spread(numbers), value: medianRatio(numbers) };
    }
    const ratios = pairs.map(([one, another]) => numberOf(one, clock) / numberOf(another, other));
    const known = ratios.filter((ratio) => ratio > 0 && ratio < Infinity);
    return known.length ? { ...spread(known), value: medianRatio(known) } : null;
  };
  const callsUntilPaid = (own, other) => {
    const calls = own.processes.flatMap(({ first_call: first, latency }, n) => {
      const [each, its] = [median(latency), median(other.processes[n].latency)];
      if (!first || first <= its) return first ? [1] : [];
      return [each < its ? Math.ceil((first - each) / (its - each)) : Infinity];
    });
    return calls.length ? spread(calls) : null;
  };

  // What a role asks for, as {low, high, text}, of [field, measurement] for each of its parts.
  const resolved = ([first, second], write) => {
    const parts = second ? [first, second] : [first];
    const [value, other] = parts.map(([field, each]) => valueOf(each, field));
    const timed = parts.every(([field]) => CLOCKS.includes(field));
    if (!second) {
      const range = timed ? rangeOf(first[1], first[0]) : { low: value, high: value };
      return { ...range, text: fieldText(...first) };
    }
    if (!timed) return { low: value / other, high: value / other, text: ratioText(value / other) };
    const ratio = ratioOf(first, second);
    return ratio && { ...ratio, text: write(ratio) };
  };
  const paid = ([first, second]) => {
    const ratio = ratioOf(first, second);
    const calls = ratio && callsUntilPaid(first[1], second[1]);
    if (!calls) return null;
    const faster = (isTold(ratio) || isAlone(ratio)) && ratio.value < 1;
    if (calls.high === 1 || (faster && calls.high < Infinity)) return { text: callsText(calls) };
    return { text: isTold(ratio) || isEqual(ratio) ? "never" : UNDECIDED };
  };
  const verdict = (parts, [least, most, inside, outside]) => {
    const [low, high] = [least ?? -Infinity, most ?? Infinity];
    const found = resolved(parts, times);
    if (!found) return null;
    const out = found.high < low || found.low > high ? outside : UNDECIDED;
    const told = low <= found.low && found.high <= high ? inside : out;
    const said = isAlone(found) ? UNDECIDED : told;
    return { text: found.text.startsWith(said) ? found.text : `${said}: ${found.text}` };
  };
  const ROLES = {
    measured: (parts) => resolved(parts, times),
    compared: (parts) => resolved(parts, compared),
    paid,
    verdict,
  };

  const accelerated = [...record.measurements.values()].some(isAccelerated);
  // A reader's CPU stands beside a CPU of the book, a machine with an accelerator beside such a one.
  const partsOf = (asked, on) => {
    const parts = asked.map(([reference, field]) => [field, record.measurements.get(reference)]);
    const known = parts.every(([field, each]) => each && valueOf(each, field) !== null);
    const fits = on ? accelerated : known && !parts.some(([, each]) => isAccelerated(each));
    return known && fits ? parts : null;
  };

  const show = (number, words) => {
    // A range stays on one line, and so does a number with its unit.
    const parts = `yours ${words}`.split(/([\d.]+ \S+|\S+–\S+)/);
    const yours = element("span", { className: YOURS.beside, title: about(record) },
      ...parts.map((part, n) => (n % 2 ? element("span", {}, part) : part)));
    let last = number.closest(".noted");
    // Below the only number of a cell, at once behind one of several.
    if (number.closest("td")?.querySelectorAll(".noted").length === 1) {
      yours.className = YOURS.below;
      last.parentElement.append(" ", yours);
      return;
    }
    while (last.nextElementSibling?.matches(".earlier, .on-device")) last = last.nextElementSibling;
    last.after(" ", yours);
  };
  for (const [role, read] of Object.entries(ROLES)) {
    for (const number of document.querySelectorAll(`[data-${role}]`)) {
      const { parts: asked, condition } = JSON.parse(number.dataset[role]);
      const parts = partsOf(asked, number.dataset.on);
      const found = parts && read(parts, condition);
      if (found) show(number, [found.text, ...marksOf(parts.map(([, each]) => each))].join(", "));
    }
  }

  // Of some work the best of each framework, and the best of all against the next: as in fastest.py.
  const against = (one, other) => {
    const ratio = ratioOf(["latency", one], ["latency", other]);
    if (ratio) return ratio;
    const [above, below] = [one, other].map((each) => rangeOf(each, "latency"));
    const [low, high] = [above.low / below.high, above.high / below.low];
    return { low, high, value: above.value / below.value, count: Math.min(above.count, below.count) };
  };
  const fastest = (references, frameworks) => {
    const measured = references.map((name) => record.measurements.get(name)).filter(Boolean);
    measured.sort((one, other) => secondsOf(one) - secondsOf(other));
    const found = [...Map.groupBy(measured, (each) => each.framework).values()].map(([each]) => each);
    const marks = marksOf(found).map((mark) => `, ${mark}`).join("");
    const names = found.map(({ framework }) => frameworks[framework]);
    if (found.length < 2 || found.some(({ processes }) => processes.length < 2)) {
      const times = found.map((each, n) => `${names[n]} ${secondsText(secondsOf(each))}`);
      return { text: times.join(", ") + marks, leading: "" };
    }
    const ratio = against(found[0], found[1]);
    const two = found.slice(0, 2).map(({ framework }) => framework);
    if (isTold(ratio)) {
      return { text: `${names[0]}, ${compared(ratio)} than ${names[1]}${marks}`, leading: two[0] };
    }
    const joined = names.slice(0, 2).join(isEqual(ratio) ? " and " : " or ");
    return { text: `${joined}: ${compared(ratio)}${marks}`, leading: two.join(" ") };
  };
  for (const data of document.querySelectorAll(".fastest-data")) {
    const { works, first, frameworks } = JSON.parse(data.textContent);
    const table = data.nextElementSibling.querySelector("table");
    const head = element("th", { className: "head", scope: "col", title: about(record) }, LABEL);
    table.tHead.rows[0].append(head);
    works.forEach((references, n) => {
      const row = table.tBodies[0].rows[n];
      const { text, leading } = fastest(references, frameworks);
      const said = element("span", {}, unbroken(text));
      said.dataset.leading = leading;
      // A CPU is told where the book's CPU, the first device, says something else.
      const others = row.cells[1].querySelector("[data-leading]")?.dataset.leading;
      const [own, its] = [leading, others ?? ""].map((names) => names.split(" ").sort().join());
      const both = first[n].every((name) => record.measurements.has(name));
      const differs = !accelerated && both && own && its && own !== its;
      const marks = differs ? [element("span", { className: "otherwise" }, OTHERWISE)] : [];
      row.append(element("td", {}, element("p", {}, said, ...marks)));
    });
  }
})();
