// Read the file of a reader's measurements, or its one-line form, and compute and write its numbers
// as docs/_ext/measured does: tests give the same records to both.
(() => {
  "use strict";
  const FORMAT = 1;
  const LONGEST = 4e6;
  const LARGE = "It is too large for a file of the command.";
  const MISSES = 0.05;

  const refuse = (words) => {
    throw new Error(words);
  };

  const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  const TYPES = {
    object: isObject,
    array: Array.isArray,
    integer: Number.isInteger,
    null: (value) => value === null,
  };
  const MOMENT = /^20\d\d-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)$/;
  const { rules } = window.machine;

  // Whether a value is as rules say, in those words of JSON Schema that the timer's have.
  const fits = (value, { $ref, ...rule }) => {
    if ($ref) return fits(value, rules.$defs[$ref.split("/").at(-1)]);
    const types = [rule.type ?? []].flat();
    const isOf = (type) => TYPES[type]?.(value) ?? typeof value === type;
    if (types.length && !types.some(isOf)) return false;
    const size = value?.length ?? Object.keys(value ?? {}).length;
    const [least, most] = ["minLength minItems", "maxLength maxItems maxProperties"].map((words) =>
      words.split(" ").map((word) => rule[word]).find((bound) => bound !== undefined));
    return (
      (!rule.anyOf || rule.anyOf.some((either) => fits(value, either))) &&
      (!("const" in rule) || value === rule.const) &&
      !(value < rule.minimum || value > rule.maximum || size < least || size > most) &&
      (!rule.pattern || new RegExp(rule.pattern, "u").test(value)) &&
      (!rule.format || (MOMENT.test(value) && !Number.isNaN(Date.parse(value)))) &&
      (!rule.items || value.every((item) => fits(item, rule.items))) &&
      (!isObject(value) || faultIn(value, rule) === undefined)
    );
  };
  // The first key of an object that is missing, is not known, or has no such value.
  const faultIn = (value, { properties = {}, required = [], propertyNames, additionalProperties }) =>
    required.find((key) => !Object.hasOwn(value, key)) ??
    Object.keys(value).find((key) =>
      Object.hasOwn(properties, key)
        ? !fits(value[key], properties[key])
        : additionalProperties === false ||
          !fits(key, propertyNames ?? {}) ||
          !fits(value[key], additionalProperties ?? {}));

  const median = (numbers) => {
    const ordered = [...numbers].sort((one, other) => one - other);
    const half = ordered.length >> 1;
    return ordered.length % 2 ? ordered[half] : (ordered[half - 1] + ordered[half]) / 2;
  };

  // So the ratio the other way round is the inverse.
  const medianRatio = (ratios) => {
    const ordered = [...ratios].sort((one, other) => one - other);
    return Math.sqrt(ordered[(ordered.length - 1) >> 1] * ordered[ordered.length >> 1]);
  };

  // Of equal rank from below and above, the closest that have the median between them.
  const ends = (numbers) => {
    const ordered = [...numbers].sort((one, other) => one - other);
    const draws = ordered.length;
    let rank = 0;
    let term = draws;
    let below = 1 + term;
    while (2 * below <= MISSES * 2 ** draws) {
      rank += 1;
      term = (term * (draws - rank)) / (rank + 1);
      below += term;
    }
    return [ordered[rank], ordered[draws - 1 - rank]];
  };

  const spread = (numbers) => {
    const [low, high] = ends(numbers);
    return { value: median(numbers), low, high, count: numbers.length };
  };
  const numberOf = (process, clock) =>
    Array.isArray(process[clock]) ? median(process[clock]) : process[clock];
  const rangeOf = ({ processes }, clock) => {
    const found = processes.map((process) => numberOf(process, clock)).filter(Boolean);
    return found.length ? spread(found) : null;
  };

  const CLOCKS = ["latency", "throughput", "first_call"];
  const valueOf = (measurement, field) => {
    if (CLOCKS.includes(field)) return rangeOf(measurement, field)?.value ?? null;
    // The least time of a reader's own device is not known.
    if (field !== "rate") return measurement[field] ?? null;
    const { work } = measurement;
    return work ? work / secondsOf(measurement) : null;
  };
  // On an accelerator what one more call adds.
  const secondsOf = (measurement) =>
    valueOf(measurement, "throughput") ?? valueOf(measurement, "latency");
  const isAccelerated = ({ device_kind: kind }) => kind !== null && kind !== "cpu";
  // What stands beside a measurement of a reader, of the same kind of device: its name, and values.
  const heldOf = (each, held) => held?.[Number(isAccelerated(each))] ?? [];
  const sizeOf = ({ shape }) => (shape.length && shape[0].length ? shape[0][0] || null : null);

  // Python rounds what lies exactly between two numbers to the even one, toFixed to the larger.
  const fixed = (value, places) => {
    if (places < 0) return String(Number(fixed(value / 10 ** -places, 0)) * 10 ** -places);
    const exact = value.toFixed(100);
    const end = exact.indexOf(".") + 1 + places;
    const lower = exact.slice(0, places ? end : end - 1);
    const tie = /^50*$/.test(exact.slice(end));
    return tie && "02468".includes(lower.at(-1)) ? lower : value.toFixed(places);
  };
  const exponent = (value) => Number(value.toExponential().split("e")[1]);
  const power = (value, digits) =>
    value.toExponential(digits).replace(/e([+-])(\d)$/, "e$10$2");
  const digits = (value, number) => {
    if (value && !(value > 1e-7 && value < 1e7)) {
      return power(value, number - 1).replace(/\.?0*e/, "e");
    }
    const places = value ? number - 1 - exponent(value) : 0;
    const written = fixed(value, places);
    return written.includes(".") ? written.replace(/\.?0+$/, "") : written;
  };
  const rounded = (value, places, isRatio = false) => {
    while (isRatio && value !== 1 && Number(fixed(value, places)) === 1) places += 1;
    const least = value > 0 ? Math.max(places, 1 - exponent(value)) : places;
    return fixed(value, least);
  };
  const UNITS = [["s", 1], ["ms", 1e3], ["µs", 1e6], ["ns", 1e9]];
  const unitOf = (value) => UNITS.find(([, scale]) => value * scale >= 0.9995) ?? UNITS[3];
  const decimals = ({ value, low, high }) => {
    const largest = exponent(value);
    const borne = high - low > 0 ? largest - exponent(high - low) + 1 : 3;
    return Math.min(Math.max(borne, 2), 3) - 1 - largest;
  };
  // A number with its range, from their texts.
  const between = ({ low, high, count }, [value, ...ends], unit) => {
    const range = low < high ? ends.join("–") : "";
    const around = count === 1 ? "one process" : range;
    return `${value}${unit}${around && ` (${around})`}`;
  };
  // What no line ends in: as in executed/nodes.py.
  const unbroken = (text) => text.replace(/(\d–)(?=\d)/g, "$1\u2060");
  const ranged = (found, unit) => {
    const { value, low, high } = found;
    const texts = [value, low, high].map((each) =>
      rounded(each, decimals(found), unit.startsWith("×")));
    return between(found, texts, unit);
  };
  const rateText = (rate) => `${digits(rate / 1e9, 3)} GFLOP/s`;
  const secondsText = (value) => {
    const [unit, scale] = unitOf(value);
    return `${digits(value * scale, 3)} ${unit}`;
  };
  const ratioText = (ratio) => {
    const texts = (ratio >= 100 ? [3] : [2, 3, 4]).map((count) => digits(ratio, count));
    return `${texts.find((text) => Number(text) !== 1) ?? "1"}×`;
  };
  const fieldText = (field, measurement, withRange = true) => {
    const value = valueOf(measurement, field);
    if (value === null) return "";
    if (CLOCKS.includes(field) && withRange) {
      const found = rangeOf(measurement, field);
      const [unit, scale] = unitOf(Number(fixed(value, decimals(found))));
      const [low, high] = [found.low * scale, found.high * scale];
      return ranged({ value: value * scale, low, high, count: found.count }, ` ${unit}`);
    }
    if (CLOCKS.includes(field)) return secondsText(value);
    if (field === "rate") return rateText(value);
    return field === "error" ? power(value, 1) : String(value);
  };

  // In what a measurement that the rules allow disagrees with itself; the command refuses the same.
  const contradiction = ({ work, processes }) => {
    for (const process of processes) {
      const latency = numberOf(process, "latency");
      const each = numberOf(process, "throughput") ?? latency;
      const wrong = [latency, each].find((seconds) => seconds < 1e-9 || seconds > 3600);
      if (wrong) return `a call takes ${secondsText(wrong)}`;
      if (each > 3 * latency) return "a call of many takes longer than one by itself";
      if (process.first_call !== null && process.first_call < latency / 100) {
        return "its first call is shorter than all others";
      }
      if (work / each > 1e17) return "no device does so much work in that time";
    }
    return "";
  };

  const check = (record) => {
    const { method } = rules;
    const named = fits(record.name, rules.$defs.name) ? `The record “${record.name}”` : "A record";
    const damaged = (of) => of && refuse(`${named} is damaged: its “${of}” cannot be.`);
    if (record.version > rules.properties.version.enum[0]) refuse(`${named} was written by a newer book than this one.`);
    if (Number.isInteger(record.method) && record.method !== method) {
      refuse(
        `${named} was measured by method ${record.method} of the timer, this book's numbers by ` +
          `method ${method}: they do not mean the same.`,
      );
    }
    const several = Object.hasOwn(record, "alternatives");
    if (several) damaged(faultIn(record, rules.$defs.comparison));
    const measurements = several ? record.alternatives : [record];
    for (const each of measurements) {
      damaged(faultIn(each, rules.$defs.measurement));
      const isPart = `${each.name}/`.startsWith(`${record.name}/`);
      const apart = isPart ? contradiction(each) : `${each.name} is no part of it`;
      const against = each.method === record.method ? apart : "it has two methods";
      if (against) refuse(`${named} contradicts itself: ${against}.`);
    }
    const lengths = ({ processes }) => processes.map(({ latency }) => latency.length);
    const rounds = measurements.map(lengths);
    if (new Set(rounds.map(String)).size > 1) {
      refuse(`${named} contradicts itself: its contenders took other turns.`);
    }
    return measurements.map((each) => ({ ...each, turns: several ? record : null }));
  };

  const joined = (parts, length) => {
    const all = new Uint8Array(length);
    parts.reduce((start, part) => (all.set(part, start), start + part.length), 0);
    return all;
  };
  const inflated = async (line) => {
    if (!window.DecompressionStream) refuse("This browser cannot read the line. Give it the file.");
    const damaged = "The line is damaged or cut off.";
    if (!/^jm1\.[\w-]+$/.test(line)) refuse(damaged);
    const parts = [];
    let length = 0;
    try {
      const letters = atob(line.slice(4).replaceAll("-", "+").replaceAll("_", "/"));
      const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
      for (const reader = stream.getReader(); length <= LONGEST; ) {
        const { done, value } = await reader.read();
        if (done) return new TextDecoder("utf-8", { fatal: true }).decode(joined(parts, length));
        parts.push(value);
        length += value.length;
      }
    } catch {
      refuse(damaged);
    }
    return refuse(LARGE);
  };

  const parsed = (written) => {
    try {
      return JSON.parse(written);
    } catch {
      return refuse("It is no file of the command: it is not JSON, or it is cut off.");
    }
  };

  const BOOK = typeof DOCUMENTATION_OPTIONS === "object" ? DOCUMENTATION_OPTIONS.VERSION : "";
  const isNewer = (version) =>
    BOOK !== "" && String(version).localeCompare(BOOK, "en", { numeric: true }) > 0;

  // The file, and its measurements by their references; what is no such file is refused in words.
  const read = async (given) => {
    const written = given.trim();
    if (written.length > LONGEST) refuse(LARGE);
    if (!written) refuse("It is empty.");
    const file = parsed(written.startsWith("jm1.") ? await inflated(written) : written);
    if (!isObject(file) || file.format !== "jax-measured") {
      refuse("It is no file of the command jax-measured.");
    }
    const fault = faultIn(file, rules.$defs.file);
    if (file.version > FORMAT || (fault !== "book" && isNewer(file.book))) {
      refuse("It was written by a newer book than this one.");
    }
    if (fault) refuse(`It is damaged: its “${fault}” cannot be.`);
    const measurements = new Map();
    for (const record of file.records) {
      for (const each of check(record)) {
        const reference = `${each.name}@${each.framework}`;
        const twice = measurements.has(reference);
        if (twice) refuse(`It contradicts itself: ${reference} is in it twice.`);
        measurements.set(reference, each);
      }
    }
    return { file, measurements };
  };

  // The line of a file, for a link.
  const line = async (file) => {
    const written = new Blob([JSON.stringify(file)]).stream();
    const stream = written.pipeThrough(new CompressionStream("deflate-raw"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    const letters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
    const base64 = btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    return `jm1.${base64}`;
  };

  // The distribution that a measurement's framework came as, if it is one.
  const distributionOf = ({ framework, versions }) =>
    [framework, ...Object.keys(versions).filter((each) => each.startsWith(`${framework}-`))]
      .find((each) => Object.hasOwn(versions, each));
  // What was switched on in the environment; two variables are those of the book itself.
  const VARIABLE = /^(?!GOMP_SPINCOUNT|OPENBLAS_THREAD_TIMEOUT)[A-Z_\d]{5,}$/;
  const switchesOf = ({ settings }) =>
    Object.entries(settings).filter(([name]) => VARIABLE.test(name)).map((each) => each.join("="));
  const isDisturbed = ({ processes }) => processes.some((process) => process.disturbed);
  const switched = (measurements) => {
    const all = [...new Set(measurements.flatMap(switchesOf))];
    return all.length ? [`with ${all.join(" and ")}`] : [];
  };
  // What is to be said of numbers beside them.
  const marksOf = (measurements) =>
    [...switched(measurements), ...(measurements.some(isDisturbed) ? ["disturbed"] : [])];
  const about = ({ file, measurements }) => {
    const all = [...measurements.values()];
    const versions = new Set();
    for (const each of all) {
      const distribution = distributionOf(each);
      if (distribution) versions.add(`${distribution} ${each.versions[distribution]}`);
    }
    const count = Math.min(...all.map(({ processes }) => processes.length));
    const misses = 2 ** (count - 1);
    // Of six and more a range misses no more than one in twenty.
    const few = count > 1 && count < 6 ? [`a range of ${count} processes misses 1 median in ${misses}`] : [];
    const beside = all.filter(isDisturbed).length;
    const others = beside ? [`other programs ran beside ${beside} of ${all.length} measurements`] : [];
    const said = [...few, ...switched(all), ...others];
    return [file.machine, ...versions, file.date.slice(0, 10), ...said].join(", ");
  };

  Object.assign(window.machine, {
    ...{ CLOCKS, read, line, about, marksOf, distributionOf, rangeOf, valueOf, secondsOf, sizeOf },
    ...{ isAccelerated, heldOf },
    ...{ fieldText, rateText, secondsText, ratioText, digits, unbroken },
    ...{ median, medianRatio, spread, numberOf, fixed, rounded, decimals, between, ranged },
  });
})();
