// Find a pasted error in the lists of errors.
(() => {
  "use strict";

  const { element } = window.book;
  const COMMON = new Set(
    "a an and are as at be but by can did do does for from got has have if in is it its line must not of on or same such than that the then this to use used using was were when which while with you your".split(
      " ",
    ),
  );
  // Types that say little by themselves.
  const PYTHONS =
    /^(Arithmetic|Assertion|Attribute|Buffer|FloatingPoint|Import|Index|InvalidArgument|JaxRuntime|Key|Lookup|ModuleNotFound|Name|NotImplemented|OS|Overflow|Runtime|Syntax|Type|Value|ZeroDivision)Error$|^(Exception|INFO|WARNING|\w*Warning)$/;
  const HEAD = /\s*Traceback \(most recent call last\):?/g;
  // A place in a file, and the code there.
  const FRAME = /^(?: *File "[^"\n]*", line \d+.*|\S+\.py:\d+: in .*)(?:\n[ \t]+.*)*/gm;
  const LONGEST = 1500;
  const MOST = 4;
  const FEWEST = 0.17;
  const MANY = 0.5;
  const SAME_TYPE = 0.3;
  const ENOUGH = 15;
  const OWN_WORDS = 0.3;
  // How much of a row's first sentence must be in the message, and of the message's in the row.
  const OF_ROW = 0.4;
  const OF_MESSAGE = 0.5;
  const LITTLE = 0.2;
  const SENTENCE = 100;
  const CLOSE = 0.9;
  const UNTYPED = 0.9;
  // What older versions raised is the class that today's derives from.
  const PARENTS = [
    ["TypeError", /^(?:ConcretizationType|Tracer\w+Conversion)Error$/],
    ["IndexError", /^NonConcreteBooleanIndexError$/],
    ["RuntimeError", /^JaxRuntimeError$/],
  ];
  // What it counts that a message is worded as an entry's heading or quotation is, but for its `…`,
  // and what each letter of that adds, which tells a special entry from a general one.
  const WORDED = 0.3;
  const LETTER = 0.003;
  const FEWEST_LETTERS = 12;
  const SPECIAL = 1.2;
  const ISSUES = ["https://github.com/", "/issues?q=is%3Aissue+"];
  const HERE = "jax-ml/jax";
  const WORDS = 9;

  // What programs in C++ put before each line of their logs.
  const STAMP =
    /^(?:ERROR:[\w.]+:|(?:\[?\w{1,12}[:\]] |\([^)]*\) )?(?:[IWEF]\d{4} [\d:.]+ +\d+ |(?:\d{4}-\d\d-\d\d[ T][\d:.,]+: )?[IWEF] )?[\w./]+\.(?:cc|h):\d+\] ?(?:.*\babsl::Status: )?)/;

  // The errors that a text names, the last ones: their types, and what follows. Types that do not
  // end like one are known from the lists; a line of a log has none.
  const errorsIn = (text, types = []) => {
    const ends = "\\w+(?:Error|Exception|Interrupt|Warning)";
    const named = new RegExp(`(?<!::)\\b(${[ends, ...types].join("|")})\\b(?:[:(][ \\t]*)?`, "g");
    const plain = text
      .replace(/\x1b\[[\d;]*m/g, "")
      .replace(/\r/g, "")
      .replace(/https?:\/\/\S+|<class '[^']*'>/g, "")
      .replace(/\bXlaRuntimeError\b/g, "JaxRuntimeError")
      .replace(/\b_?Eq(?:x|uinox)RuntimeError\b/g, "EquinoxRuntimeError");
    const all = [...plain.matchAll(named)];
    // The line of a traceback that raises an error is not what the error says, nor is its head.
    const said = all.filter(
      ({ index, 0: { length } }) =>
        !/\braise [\w.]*$/.test(plain.slice(0, index)) &&
        !/^\s+Traceback \(most/.test(plain.slice(index + length)),
    );
    const found = (said.length ? said : all).slice(-MOST).map((each) => {
      const start = each.index + each[0].length;
      return { type: each[1], message: plain.slice(start, start + LONGEST).replace(HEAD, "") };
    });
    const lines = plain.split("\n").filter((line) => STAMP.test(line));
    const logged = [...new Set(lines.map((line) => line.replace(STAMP, "")))].slice(-MOST);
    if (!found.length && !logged.length) {
      const message = plain.replace(FRAME, "").replace(HEAD, "").trim();
      return [{ type: "", message: message.slice(-LONGEST) }];
    }
    return [...logged.map((message) => ({ type: "", message })), ...found];
  };

  // What to look for elsewhere: the last error's first words, without what is somebody's own.
  const searched = ({ type, message }) => {
    const words = opening(message)
      .replace(STAMP, "")
      .replace(/\S*[\/\\]\S*|\w+(?:::\w+)+|0x\w+|\w+\[[^\]]*\]|\S+\.(?:py|cc|h):\d+/g, " ")
      .match(/[A-Za-z_][A-Za-z_.]*[A-Za-z_]/g);
    return [type, ...(words ?? []).slice(0, WORDS)].join(" ").trim();
  };

  const wordsOf = (text) => {
    const found = new Set();
    for (const word of text.toLowerCase().match(/[a-z_]{2,}/g) ?? []) {
      for (const part of [word, ...word.split("_")]) {
        if (part.length > 1 && !COMMON.has(part)) found.add(part.replace(/(?:ing|ed|es|s)$/, ""));
      }
    }
    return found;
  };

  // What a message says first; then come advice, and names of somebody's own program.
  const opening = (text, length = SENTENCE) =>
    text.trim().split(/\n|(?<=\w\w)[.;] /, 1)[0].slice(0, length);

  // A type as it is written, and its words: people also write "tracer array conversion error".
  const apart = (type) => `${type} ${type.replace(/([a-z])(?=[A-Z])/g, "$1 ")}`;

  // How many of these sets have each of their elements.
  const counted = (sets) => {
    const count = new Map();
    for (const each of sets.flatMap((set) => [...set])) count.set(each, (count.get(each) ?? 0) + 1);
    return count;
  };

  const headingOf = (row) => row.querySelector("code").textContent;
  // Also for the scripts that know more.
  const plainly = (text) => text.replace(/[`'"]/g, "").replace(/\s+/g, " ").trim();
  const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  Object.assign(window.book, { plainly, escaped });

  // A function that says what it counts that a message begins as a heading or a quotation does, in
  // which `…` stands for anything; null where it has too few letters for that to mean something.
  const wordedAs = (text) => {
    const words = plainly(opening(text, LONGEST).replace(/\.$/, ""));
    const pieces = words.split("…").map((piece) => piece.trim());
    const letters = pieces.join("").replace(/\W/g, "").length;
    if (letters < FEWEST_LETTERS) return null;
    const end = /\w$/.test(pieces.at(-1)) ? "\\b" : "";
    const begins = new RegExp(`^${pieces.map(escaped).join(".{0,300}?")}${end}`, "is");
    return (message) => (begins.test(plainly(message)) ? WORDED + LETTER * letters : 0);
  };

  // What an entry is known by: its row, and every message that was printed.
  const entriesOf = (rows) => {
    const said = rows.map((row) => [
      headingOf(row),
      ...[...row.querySelectorAll("details pre")].map((pre) => pre.textContent),
    ]);
    const kinds = [...new Set(said.map(([first]) => first.split(":")[0]))];
    const entries = rows.map((row, number) => {
      const told = said[number].map((text) => errorsIn(text, kinds)[0]);
      return {
        row,
        told,
        own: told.map(({ message }) => wordsOf(message)),
        first: told.map(({ message }) => wordsOf(opening(message))),
        types: new Set(told.map(({ type }) => type).filter(Boolean)),
        forms: told
          .filter(({ message }, which) => !which || message.includes("…"))
          .map(({ type, message }) => ({ type, says: wordedAs(message) }))
          .filter(({ says }) => says),
        texts: told.map(({ type, message }) => wordsOf(`${apart(type)} ${message}`)),
      };
    });
    const words = counted(entries.map(({ texts }) => new Set(texts.flatMap((text) => [...text]))));
    return { entries, kinds, words, types: counted(entries.map((entry) => entry.types)) };
  };

  const rank = (text, { entries, kinds, words, types }) => {
    const errors = errorsIn(text, kinds).map(({ type, message }) => {
      // Names of somebody's own program are in no message; a type counts all the same.
      const known = [...wordsOf(message)].filter((word) => words.has(word));
      const asked = new Set([...wordsOf(apart(type)), ...known]);
      const first = wordsOf(opening(message));
      return { type, asked, text: message, message: wordsOf(message), first };
    });
    const loud = errors.some(({ type }) => /(?:Error|Exception)$/.test(type));
    // What few entries have says more.
    const weight = (word) => Math.log(1 + entries.length / (words.get(word) ?? 0.5));
    const sum = (some) => [...some].reduce((total, word) => total + weight(word) ** 2, 0);
    const both = (some, others) => [...some].filter((word) => others.has(word));
    const share = (some, others) => (some.size ? sum(both(some, others)) / sum(some) : 0);
    const alike = (asked, told) => {
      const common = both(asked, told);
      // Few words in common may be chance, however short the message.
      const enough = sum(common) / (sum(common) + ENOUGH);
      return common.length > 1 ? (enough * sum(common)) / Math.sqrt(sum(asked) * sum(told)) : 0;
    };
    // From 1 on, the message and a text of the entry say the same first.
    const agreement = (message, first, entry) =>
      Math.max(
        ...entry.own.map((own, number) =>
          Math.min(share(entry.first[number], message) / OF_ROW, share(first, own) / OF_MESSAGE),
        ),
      );
    const found = entries
      .map((entry) => {
        const scores = errors.map(({ type, asked, text: said, message, first }) => {
          const fits = entry.forms.filter((form) => !type || form.type === type);
          const worded = Math.max(0, ...fits.map((form) => form.says(said)));
          // A type of JAX that no other entry has is enough to be near.
          const named = entry.types.has(type) && !PYTHONS.test(type);
          const alone = named && types.get(type) === 1 ? FEWEST : 0;
          const best = Math.max(alone, ...entry.texts.map((told) => alike(asked, told)));
          // How much of what tells an entry from others is in the text.
          const own = Math.max(...entry.own.map((told) => share(told, asked)));
          // A program may go on with a warning after what is the cause of it.
          const quiet = loud && /^(?:INFO|WARNING)$/.test(type);
          const kind = (entry.types.has(type) ? SAME_TYPE : 0) + worded;
          const score = best + OWN_WORDS * own + (quiet ? 0 : kind);
          const bare = named && !message.size && headingOf(entry.row).startsWith(`${type}:`);
          const sure = worded > 0 || bare || (alone && !message.size);
          // Without the type of the entry it is only offered.
          const older = PARENTS.find(([parent]) => parent === type)?.[1];
          const typed = !type || entry.types.has(type) || [...entry.types].some((each) => older?.test(each));
          const agrees = (sure ? 1 : agreement(message, first, entry));
          return { best, score, named, worded: typed && worded, agrees: typed ? agrees : Math.min(agrees, UNTYPED) };
        });
        const [first] = scores.sort((one, other) => other.score - one.score);
        return { row: entry.row, told: entry.told, ...first };
      })
      .filter(({ best, named, agrees }) => best >= (named || agrees >= LITTLE ? FEWEST : MANY));
    // An entry whose heading goes on where another's ends is the special case of that one.
    for (const one of found.filter(({ worded }) => worded)) {
      const goesOn = ({ row }) => row !== one.row && headingOf(one.row).startsWith(headingOf(row));
      one.score = Math.max(one.score, ...found.filter(goesOn).map(({ score }) => SPECIAL * score));
    }
    found.sort((one, other) => other.score - one.score);
    // What is far behind the first is no help.
    return found.filter(({ score }) => score > found[0].score / 2);
  };

  document.addEventListener("DOMContentLoaded", () => {
    const rows = [...document.querySelectorAll(".error-entry")];
    // Reading all entries takes a third of a second on a phone, so it waits for somebody who pastes.
    let read;
    const known = () => (read ??= entriesOf(rows));
    for (const { id, firstElementChild } of rows) {
      const title = "Link to this heading";
      const href = `#${id}`;
      firstElementChild.append(element("a", { className: "headerlink", href, title }, "#"));
    }

    const label = "Paste your error message, or the whole traceback";
    const { input, output } = window.book.fieldAbove(rows[0].parentElement, "error-finder", label, {
      rows: 4,
      placeholder: "TracerBoolConversionError: Attempted boolean conversion of …",
    });

    const target = (row) => row.querySelector(":scope > p a")?.href ?? row.id;

    // Where the sources have the message, its entry is one that has printed it, or is worded so.
    const bySource = (all, { says }, type, nothing) => {
      const has = ({ told }) => told.some((each) => (!type || each.type === type) && says(each.message));
      const ranked = new Set(all.map(({ row }) => row));
      const others = nothing ? [] : known().entries.filter((each) => !ranked.has(each.row) && has(each));
      const found = [...all, ...others.map(({ row, told }) => ({ row, told, score: 0 }))];
      const having = found.filter(has);
      const same = having.length > 1 ? having : having.map((each) => ({ ...each, agrees: 1 }));
      const rest = found.filter((each) => !has(each)).map((each) => (each.worded ? each : { ...each, agrees: 0 }));
      return [...rest.filter(({ worded }) => worded), ...same, ...rest.filter(({ worded }) => !worded)];
    };

    // The words of a message that an entry has as well, as they are written.
    const matched = ({ row }, { message }) => {
      const { texts } = known().entries.find((each) => each.row === row);
      const has = (word) => [...wordsOf(word)].some((part) => texts.some((text) => text.has(part)));
      return [...new Set(opening(message).match(/[A-Za-z_]{2,}/g))].filter(has).slice(0, WORDS);
    };

    const doubt = ([first, second]) => {
      if (!first) return "This list has nothing like it. ";
      if (first.agrees < 1) return "Not sure: no entry says quite the same. The nearest are below. ";
      const close = second && second.score > CLOSE * first.score;
      return close && target(second.row) !== target(first.row) ? "It may be one of these. " : "";
    };

    // What the site keeps in a script for each entry: code that raises it, code that works, beside
    // each other, with the lines marked that the other lacks, and which versions say it.
    const showAnswer = (item, { id }, isFirst, again) => {
      const { raises, fix, versions } = window.book.answers?.[id] ?? {};
      if (!window.book.answers?.[id]) window.book.load(`_static/answers/${id}.js`).then(again, () => {});
      const sides = Object.entries({ "Raises it": raises, Works: fix }).filter(([, code]) => code);
      const lines = sides.map(([, code]) => new Set(code.split("\n")));
      const marked = (line, others) => element(others && !others.has(line) ? "mark" : "span", {}, `${line}\n`);
      const figures = sides.map(([name, code], side) => {
        const pre = element("pre", {}, ...code.split("\n").map((line) => marked(line, lines[1 - side])));
        return element("figure", {}, element("figcaption", {}, name), pre);
      });
      if (figures.length) item.append(element("div", { className: "sides" }, ...figures));
      if (versions && isFirst) item.append(element("p", { className: "versions" }, versions));
    };

    // Places in files are written alike on all systems.
    const given = () => input.value.replace(/\\(?=[\w.-]+(?:\\|\.py\b))/g, "/");
    const show = () => {
      output.replaceChildren();
      const text = given();
      if (!text.trim()) return;
      const error = errorsIn(text, known().kinds).at(-1);
      const again = () => given() === text && show();
      // What a script of the site knows of a text besides.
      const more = window.book.pasted?.(text, error, again) ?? { sentences: [] };
      for (const sentence of more.sentences) {
        output.append(element("p", { className: "known" }, ...sentence));
      }
      let all = more.nothing ? [] : rank(text, known());
      const lacks = (row) => more.needs && !row.textContent.includes(`'${more.needs}'`);
      const doubtful = ({ row, worded }) =>
        more.doubt === true || (!worded && (more.doubt || lacks(row)));
      all = all.map((each) => (doubtful(each) ? { ...each, agrees: 0 } : each));
      if (more.source?.whole) all = bySource(all, more.source, error.type, more.nothing);
      const first = more.row && rows.find((row) => headingOf(row).startsWith(more.row));
      if (first) {
        const others = all.filter(({ row }) => row !== first);
        all = [{ row: first, agrees: 1, score: Infinity }, ...others];
      }
      const found = all.slice(0, 3);
      const said = more.nothing ? "" : doubt(found);
      for (const sentence of said ? (more.unsure ?? []) : []) {
        output.append(element("p", { className: "known" }, ...sentence));
      }
      if (said) output.append(element("p", {}, said));
      const words = !said && found.length && !more.source && !more.row ? matched(found[0], error) : [];
      if (words.length) output.append(element("p", { className: "known" }, `Matched: ${words.join(" ")}`));
      if (said && (!found.length || found[0].agrees < 1)) {
        const repository = more.repository ?? HERE;
        const href = ISSUES.join(repository) + encodeURIComponent(searched(error));
        const whose = repository === HERE ? "JAX's issues" : `the issues of ${repository}`;
        output.lastChild.append(element("a", { href, textContent: `Search ${whose}.` }));
      }
      const items = found.map(({ row }) => {
        const textContent = headingOf(row);
        const told = [...row.querySelectorAll(":scope > p")].map((each) => each.cloneNode(true));
        return element("li", {}, element("a", { href: `#${row.id}`, textContent }), ...told);
      });
      if (items.length) showAnswer(items[0], found[0].row, more.source?.package !== "jax", again);
      if (items.length) output.append(element("ol", {}, ...items));
    };

    input.addEventListener("focus", known, { once: true });
    input.addEventListener("input", show);
  });
})();
