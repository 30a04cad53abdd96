// The answer whether a time is possible: the formula of snippets/your_machine/roofline.py, for the
// roofs that the build wrote, and for the reader's.
(() => {
  "use strict";
  const { LABEL, record } = window.machine;
  const BYTES = { float64: 8, float32: 4, bfloat16: 2, float16: 2 };
  const UNITS = [["s", 1], ["ms", 1e3], ["µs", 1e6], ["ns", 1e9]];
  const secondsText = (seconds) => {
    const [unit, scale] = UNITS.find(([, each]) => seconds * each >= 0.9995) ?? UNITS.at(-1);
    return `${Number((seconds * scale).toPrecision(3))} ${unit}`;
  };
  const devices = [...document.querySelectorAll(".roofline-data")].flatMap((data) =>
    Object.entries(JSON.parse(data.textContent).devices));
  if (record?.roofs) devices.push([LABEL, [record.roofs.bandwidth, record.roofs.rates]]);

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
    const lacks = "Your file lacks the ceilings, so your machine is not in the list.";
    output.replaceChildren(say("ul", ...devices.map((device) => answerOf(n, device))),
      ...(record && !record.roofs ? [say("p", lacks)] : []));
  };
  group.addEventListener("input", answer);
  group.hidden = false;
  answer();
})();
