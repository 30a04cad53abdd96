// Read the file of a reader's measurements, or its one-line form. Of what it holds pages show texts,
// and marks at numbers, which the command has computed; anybody may have changed them.
(() => {
  "use strict";
  const FORMAT = 1;
  const LONGEST = 4e6;
  const LARGE = "It is too large for a file of the command.";
  const OLD = "It has no numbers for pages: an older command wrote it, or the run was ended. Paste " +
    "what “jax-measured show --line FILE” prints.";

  const refuse = (words) => {
    throw new Error(words);
  };

  const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  const isText = (value) => typeof value === "string" && value.length <= 1000;
  const isNumber = (value) => Number.isFinite(value) && value > 0;
  const list = (...kinds) => (value) =>
    Array.isArray(value) && value.length === kinds.length && kinds.every((is, n) => is(value[n]));
  const each = (is) => (value) =>
    isObject(value) && Object.values(value).every((part) => part !== null && is(part));
  const isClock = list(isNumber, isText, isText);
  const SHOWN = {
    about: isText,
    numbers: each(({ shape, on, ...clocks }) => isText(shape) && isText(on) && each(isClock)(clocks)),
    answers: each(list(isText, isText)),
    fastest: each(list(isText, isText)),
    roofs: (value) => value === null || (isNumber(value.bandwidth) && each(isNumber)(value.rates) &&
      Array.isArray(value.texts) && value.texts.every(list(isText, isText))),
  };
  const isShown = (shown) =>
    isObject(shown) && Object.entries(SHOWN).every(([key, is]) => Object.hasOwn(shown, key) && is(shown[key]));

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

  // The file, and what pages show of it by its names; what is no such file is refused in words.
  const read = async (given) => {
    const written = given.trim();
    if (written.length > LONGEST) refuse(LARGE);
    if (!written) refuse("It is empty.");
    const file = parsed(written.startsWith("jm1.") ? await inflated(written) : written);
    if (!isObject(file) || file.format !== "jax-measured") {
      refuse("It is no file of the command jax-measured.");
    }
    if (file.version > FORMAT || isNewer(file.book)) {
      refuse("It was written by a newer book than this one.");
    }
    if (!Object.hasOwn(file, "shown")) refuse(OLD);
    if (!isShown(file.shown)) refuse("It is damaged: pages cannot show what it holds.");
    const [numbers, answers, fastest] = ["numbers", "answers", "fastest"].map((key) =>
      new Map(Object.entries(file.shown[key])));
    return { ...file.shown, file, numbers, answers, fastest };
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

  Object.assign(window.machine, { BOOK, read, line });
})();
