// Find a pasted error in the lists of errors. Without scripts the lists are there, and no field.
(() => {
  "use strict";

  const TYPE = /\b(\w*(?:Error|Exception|Interrupt|Warning))\b(?=[:(])[:(][ \t]*/g;
  // One class under the names that it has had.
  const RENAMED = { XlaRuntimeError: "JaxRuntimeError" };
  const COMMON = new Set(
    "a an and are as at be but by can did do does for from got has have if in is it its line must not of on or same such than that the then this to use used using was were when which while with you your".split(
      " ",
    ),
  );
  const LONGEST = 1500;
  const MOST = 4;
  const FEWEST = 0.17;
  const SAME_TYPE = 0.3;

  // The errors that a text names, the last ones: their types, and what follows.
  const errorsIn = (text) => {
    const plain = text.replace(/\x1b\[[\d;]*m/g, "").replace(/\r/g, "");
    const found = [...plain.matchAll(TYPE)].slice(-MOST).map((each) => {
      const start = each.index + each[0].length;
      return { type: RENAMED[each[1]] ?? each[1], message: plain.slice(start, start + LONGEST) };
    });
    return found.length ? found : [{ type: "", message: plain.slice(-LONGEST) }];
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

  // What an entry is known by: its row, and every message that was printed.
  const entriesOf = (rows) => {
    const entries = rows.map((row) => {
      const texts = [row.querySelector("code").textContent];
      for (const pre of row.querySelectorAll("details pre")) texts.push(pre.textContent);
      const told = texts.map((text) => errorsIn(text)[0]);
      return {
        row,
        types: new Set(told.map(({ type }) => type)),
        texts: told.map(({ type, message }) => wordsOf(`${type} ${message}`)),
      };
    });
    const count = new Map();
    for (const { texts } of entries) {
      for (const word of new Set(texts.flatMap((text) => [...text]))) {
        count.set(word, (count.get(word) ?? 0) + 1);
      }
    }
    const weight = (word) => Math.log(1 + entries.length / (count.get(word) ?? 0.5));
    const known = (word) => count.has(word);
    return { entries, weight, known };
  };

  const rank = (text, { entries, weight, known }) => {
    const errors = errorsIn(text).map(({ type, message }) => {
      // Names of somebody's own program are in no message.
      return { type, words: [...wordsOf(`${type} ${message}`)].filter(known) };
    });
    const length = (words) => Math.sqrt(words.reduce((sum, word) => sum + weight(word) ** 2, 0));
    const alike = (asked, words) => {
      const both = asked.filter((word) => words.has(word));
      const product = both.reduce((sum, word) => sum + weight(word) ** 2, 0);
      return both.length > 1 ? product / (length(asked) * length([...words])) : 0;
    };
    return entries
      .map(({ row, types, texts }) => {
        const scores = errors.map(({ type, words }) => {
          const best = Math.max(...texts.map((text) => alike(words, text)));
          return { best, score: best + (types.has(type) ? SAME_TYPE : 0) };
        });
        const [first] = scores.sort((one, other) => other.score - one.score);
        return { row, ...first };
      })
      .filter(({ best }) => best >= FEWEST)
      .sort((one, other) => other.score - one.score);
  };

  document.addEventListener("DOMContentLoaded", () => {
    const lists = [...document.querySelectorAll(".error-list")];
    if (!lists.length) return;
    const rows = lists.flatMap((list) => [...list.querySelectorAll("tbody tr[id]")]);
    const known = entriesOf(rows);

    const form = document.createElement("form");
    form.className = "error-finder";
    form.setAttribute("role", "search");
    const label = document.createElement("label");
    label.htmlFor = "error-finder";
    label.textContent = "Paste your error message, or the whole traceback";
    const input = document.createElement("textarea");
    input.id = "error-finder";
    input.rows = 4;
    input.spellcheck = false;
    input.placeholder = "TracerBoolConversionError: Attempted boolean conversion of …";
    const results = document.createElement("output");
    results.htmlFor = "error-finder";
    form.append(label, input, results);
    const page = lists[0].closest("section").parentElement;
    const introduction = page.querySelector(":scope > p");
    introduction.after(form);
    // The style sheet has kept its place free.
    introduction.style.marginBottom = "0";

    const show = () => {
      results.replaceChildren();
      if (!input.value.trim()) return;
      const found = rank(input.value, known).slice(0, 3);
      if (!found.length) {
        results.textContent = "No message of this book resembles it.";
        return;
      }
      const list = document.createElement("ol");
      for (const { row } of found) {
        const item = document.createElement("li");
        const link = document.createElement("a");
        link.href = `#${row.id}`;
        link.textContent = row.querySelector("code").textContent;
        const ways = document.createElement("span");
        ways.append(...[...row.cells].at(-1).cloneNode(true).childNodes);
        item.append(link, ways);
        list.append(item);
      }
      results.append(list);
    };

    form.addEventListener("submit", (event) => event.preventDefault());
    input.addEventListener("input", show);
  });
})();
