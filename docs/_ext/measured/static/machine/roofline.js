// The answer whether a time is possible, for the roofs that the build wrote, and for the reader's.
// What an operation costs stands in the form: COEFFICIENT POWER of n, of operations and of numbers.
(() => {
  "use strict";
  const { LABEL, record } = window.machine;
  const UNITS = [["s", 1], ["ms", 1e3], ["µs", 1e6], ["ns", 1e9]];
  const secondsText = (seconds) => {
    const [unit, scale] = UNITS.find(([, each]) => seconds * each >= 0.9995) ?? UNITS.at(-1);
    return `${Number((seconds * scale).toPrecision(3))} ${unit}`;
  };
  const devices = [...document.querySelectorAll(".roofline-data")].flatMap((data) =>
    Object.entries(JSON.parse(data.textContent).devices));
  if (record?.roofs) devices.push([LABEL, [record.roofs.bandwidth, record.roofs.rates]]);

  const costOf = (text, n) => {
    const [coefficient, power] = text.split(" ").map(Number);
    return coefficient * n ** power;
  };

  const group = document.querySelector(".possible-time");
  const { element } = window.book;
  const [operation, size, dtype] = group.querySelectorAll("select, input");
  const output = group.querySelector('[role="status"]');
  const chosen = ({ selectedOptions: [option] }) => option.dataset;
  const say = (tag, ...content) => element(tag, {}, ...content);
  const answerOf = (n, [label, [bandwidth, rates]]) => {
    const rate = rates[dtype.value];
    if (!rate) return say("li", `${label}: no matmul of ${dtype.value} was measured.`);
    const [{ operations, numbers }, { bytes }] = [operation, dtype].map(chosen);
    const times = [costOf(numbers, n) * bytes / bandwidth, costOf(operations, n) / rate];
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
