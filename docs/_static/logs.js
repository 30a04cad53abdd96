// Read a pasted log of JAX's cache misses with the table of causes on the page. A cell of code in
// the table is a pattern: `…` stands for anything, a capital letter for the same text each time,
// and two letters for two different texts. Without scripts the table is there, and no field.
(() => {
  "use strict";

  const { element } = window.book;
  const MISS = /TRACING CACHE MISS at (.*?)(?: costing ([\d.]+) ms)?(?: because)?:$/;
  const TRACED = /Finished tracing(?: \+ transforming)? (.+) for \w+ in ([\d.e-]+) sec/;
  const LOWERED = /Finished jaxpr to MLIR module conversion (.+) in ([\d.e-]+) sec/;
  const COMPILED = /Finished XLA compilation of (.+) in ([\d.e-]+) sec/;
  const COMPILING = /Compiling (.+) with global shapes and types (.*)\. Argument mapping: (.*)\.$/;
  const CACHED =
    /(PERSISTENT COMPILATION CACHE MISS|Persistent compilation cache hit|Writing \S+ to persistent compilation cache|Not writing persistent cache entry)/;
  // What the explanations say besides a cause.
  const KNOWN = [
    /^(all previously seen cache keys |closest seen |never seen input (type|pytree))/,
    /^(different (input types|input pytree|static_argnums):|dynamic argnums now )/,
    /^(types now: |now: |before: |!= before: |now \d+ args |before \d+ args )/,
    /^(where weak_type=True |weak_type=False means |See https:)/,
    /^(found differences at positions|compare to tuple )/,
    /^(but seen another function |being re-defined repeatedly, preventing caching)/,
    /^never seen passing /,
  ];
  const PREFIX =
    /^(.*?)(?=TRACING CACHE MISS at|Finished (?:tracing|jaxpr|XLA)|Compiling .* with global|P(?:ERSISTENT|ersistent) (?:COMP|comp)|Writing \S+ to|Not writing pers)/;
  const DATE = /\d\d:\d\d:\d\d/;
  const OWN = /(?:^|\/)jax\/(?:_src|experimental|numpy|nn)\//;

  const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

  // A function that says whether a text is as a cell of code says.
  const matcher = (pattern) => {
    const letters = new Set();
    const source = pattern
      .split(/(…|\b[A-Z]\b)/)
      .map((piece) => {
        if (piece === "…") return ".*";
        if (!/^[A-Z]$/.test(piece)) return escaped(piece);
        if (letters.has(piece)) return `\\k<${piece}>`;
        letters.add(piece);
        return `(?<${piece}>[^\\[\\]]*)`;
      })
      .join("");
    const whole = new RegExp(`^${source}$`, "i");
    return (text) => {
      const found = whole.exec(text);
      if (!found) return false;
      const values = Object.values(found.groups ?? {});
      return new Set(values).size === values.length;
    };
  };

  const causesOf = (table) =>
    [...table.querySelectorAll("tbody tr")].map((row) => {
      const [patterns, what, fix] = row.cells;
      return {
        what: what.textContent.trim(),
        fix,
        is: [...patterns.querySelectorAll("code")].map((code) => matcher(code.textContent.trim())),
      };
    });

  // A function's name without the wrappers and the places that some versions put around it.
  const nameOf = (text) => {
    const inner = /<function (\S+) at /.exec(text)?.[1] ?? text.trim();
    const bare = /^p?jit\((.*)\)$/.exec(inner)?.[1] ?? inner.replace(/^jit_/, "");
    return bare.split(".").at(-1);
  };

  // The parts of a list as Python writes it, some of which have commas within brackets.
  const partsOf = (mapping) => {
    const parts = [""];
    let depth = 0;
    for (const letter of mapping.replace(/^[([]|[)\]]$/g, "")) {
      depth += "([{".includes(letter) - ")]}".includes(letter);
      if (letter === "," && !depth) parts.push("");
      else parts[parts.length - 1] += letter;
    }
    return parts.map((part) => part.trim()).filter(Boolean);
  };

  // The lines of a log. Where JAX and the program both write it, each message is there twice in a
  // row, behind two kinds of prefix.
  const once = (text) => {
    const plain = text.replace(/\x1b\[[\d;]*m/g, "");
    const messages = [];
    for (const line of plain.split("\n")) {
      const prefix = PREFIX.exec(line)?.[1];
      if (prefix === undefined && messages.length) messages.at(-1).lines.push(line);
      else {
        const form = (prefix ?? "").replace(/\d+/g, "0");
        messages.push({ form, said: line.slice(prefix?.length ?? 0), lines: [line] });
      }
    }
    const whole = ({ said, lines }) => [said, ...lines.slice(1)].join("\n").trimEnd();
    return messages
      .filter((each, number) => {
        const before = messages[number - 1];
        if (!before || whole(each) !== whole(before)) return true;
        return each.form === before.form && !(DATE.test(each.lines[0]) && each.lines[0] === before.lines[0]);
      })
      .flatMap(({ lines }) => lines);
  };

  // What a log says: the functions, the lines that nothing is known of, JAX's own operations.
  const read = (text, causes) => {
    const functions = new Map();
    const latest = new Map();
    const waiting = new Map();
    const compiling = new Map();
    const unknown = [];
    const own = { count: 0, seconds: 0 };
    let explained = false;
    let block = null;

    const causeOf = (line) => causes.find(({ is }) => is.some((each) => each(line)));
    const event = (entry, found) => {
      const made = { causes: new Map(), again: false, retraced: true, trace: null, rest: 0, ...found };
      entry.events.push(made);
      return made;
    };
    const blame = (made, line) => {
      const cause = causeOf(line);
      if (cause) made.causes.set(cause, line);
      return Boolean(cause);
    };

    const finish = () => {
      if (!block) return;
      const { lines, cost } = block;
      block = null;
      const body = lines.map((line) => line.trim().replace(/^\* /, "").replace(/^key with /, ""));
      const fresh = body[0] === "never seen function:";
      const head = (fresh ? body[1] : body[0]?.replace(/^for /, "")) ?? "";
      const [, called, , place = ""] =
        /^(.*?)(?: id=(\d+))?(?: defined at (.*))?$/.exec(head);
      if (OWN.test(place)) {
        own.count += 1;
        return;
      }
      const name = nameOf(called);
      const key = `${name} ${place}`;
      const seen = functions.has(key);
      if (!seen) functions.set(key, { name, place, events: [] });
      const entry = functions.get(key);
      const made = event(entry, { again: !fresh || seen });
      made.trace = waiting.get(name) ?? cost;
      waiting.delete(name);
      latest.set(name, entry);
      const rest = body.slice(fresh ? 2 : 1);
      if (fresh) blame(made, `never seen function: ${name}${seen ? " (again)" : ""}`);
      rest.forEach((line, number) => {
        if (!line || (!fresh && blame(made, line))) return;
        if (KNOWN.some((known) => known.test(line))) return;
        // What a line with a colon announces.
        const raw = lines[number + (fresh ? 2 : 1)];
        if (/^ {4}/.test(raw) && /:$/.test(rest[number - 1] ?? "")) return;
        if (/^\s*\*/.test(raw)) made.strange ??= line;
        else unknown.push(raw);
      });
      if (!made.causes.size) blame(made, rest.join(" ").replace(/\s+/g, " ").trim());
    };

    const timed = (name, seconds, kind) => {
      const entry = latest.get(name);
      const last = entry?.events.at(-1);
      if (kind === "trace") {
        if (last && last.trace === null) last.trace = seconds;
        else waiting.set(name, seconds);
      } else if (last) last.rest += seconds;
      else {
        own.seconds += seconds;
        if (kind === "compile") own.count += 1;
      }
    };

    const compiles = (name, types, mapping) => {
      const parts = partsOf(mapping);
      const entry = latest.get(name);
      if (!compiling.has(name)) compiling.set(name, { before: [], running: false });
      const state = compiling.get(name);
      const alike = state.before.filter((each) => each.types === types);
      const last = entry?.events.at(-1);
      if (last?.compiled && alike.length) {
        const made = event(entry, { again: true, retraced: false });
        const differences = alike.map(({ parts: old }) =>
          parts.flatMap((part, number) =>
            part === old[number] ? [] : [`mapping now ${part} and before ${old[number]}`],
          ),
        );
        differences.sort((one, other) => one.length - other.length);
        for (const line of differences[0]) blame(made, line);
      }
      state.before.push({ types, parts });
      state.running = true;
    };

    const compiled = (name, seconds) => {
      const entry = latest.get(name);
      const state = compiling.get(name);
      if (entry && state && !state.running) {
        blame(event(entry, { again: true, retraced: false }), "compiled again, not lowered again");
      }
      if (state) state.running = false;
      timed(name, seconds, "compile");
      const last = entry?.events.at(-1);
      if (last) last.compiled = true;
    };

    const actions = [
      [MISS, ([, , cost]) => {
        explained = true;
        block = { lines: [], cost: cost ? Number(cost) / 1000 : null };
      }],
      [TRACED, ([, name, seconds]) => timed(nameOf(name), Number(seconds), "trace")],
      [COMPILING, ([, name, types, mapping]) => compiles(nameOf(name), types, mapping)],
      [LOWERED, ([, name, seconds]) => timed(nameOf(name), Number(seconds), "lower")],
      [COMPILED, ([, name, seconds]) => compiled(nameOf(name), Number(seconds))],
      [CACHED, () => {}],
    ];
    for (const line of once(text)) {
      const said = line.trimEnd();
      const [pattern, act] = actions.find(([each]) => each.test(said)) ?? [];
      if (pattern) {
        finish();
        act(pattern.exec(said));
      } else if (block && /^\s|^$|^where |^weak_|^See |^expl/.test(line)) block.lines.push(line);
      else if (said) unknown.push(line);
    }
    finish();
    return { functions: [...functions.values()], unknown, own, explained };
  };

  const times = (number) => (number === 1 ? "once" : `${number} times`);
  const duration = (seconds) =>
    seconds < 1 ? `${(1000 * seconds).toPrecision(3)} ms` : `${seconds.toPrecision(3)} s`;
  const again = (entry) => entry.events.filter((each) => each.again);
  const cost = (events) => events.reduce((sum, { trace, rest }) => sum + (trace ?? 0) + rest, 0);

  // What is said of a function: how often it was traced, and why.
  const described = (entry) => {
    const traces = entry.events.filter((each) => each.retraced).length;
    const only = entry.events.length - traces;
    const spent = cost(again(entry));
    const said = [
      `traced ${times(traces)}`,
      only && `compiled ${times(only)} without a trace`,
      spent && `all but the first took ${duration(spent)}`,
    ].filter(Boolean);
    const reasons = new Map();
    for (const each of again(entry)) {
      for (const [cause, line] of each.causes.size ? each.causes : [[null, each.strange ?? ""]]) {
        if (!reasons.has(cause)) reasons.set(cause, { number: 0, line });
        reasons.get(cause).number += 1;
      }
    }
    const why = [...reasons].map(([cause, { number, line }]) => {
      const what = element("b", {}, cause?.what ?? "a reason not in the table");
      const item = element("li", {}, `${number} × `, what);
      if (line) item.append(" ", element("code", {}, line));
      if (cause) item.append(" ", element("span", {}, ...cause.fix.cloneNode(true).childNodes));
      return item;
    });
    const place = entry.place ? ` (${entry.place})` : "";
    const title = element("p", {}, element("code", {}, entry.name), `${place}: ${said.join(", ")}`);
    return element("li", {}, title, element("ul", {}, ...why));
  };

  const show = ({ functions, unknown, own, explained }, results) => {
    results.replaceChildren();
    const say = (text) => results.append(element("p", {}, text));
    const worst = functions
      .filter((entry) => again(entry).length)
      .sort(
        (one, other) =>
          cost(again(other)) - cost(again(one)) || again(other).length - again(one).length,
      );
    const all = functions.length === 1 ? "The one function" : `All ${functions.length} functions`;
    if (worst.length) results.append(element("ol", {}, ...worst.map(described)));
    else if (!functions.length) say("There is no cache miss in this text.");
    else say(`${all} in this log: traced once. Nothing was traced again.`);
    if (functions.length && !functions.some((entry) => cost(entry.events))) {
      say("The log has no times. JAX_LOG_COMPILES=1 adds them.");
    }
    if (own.count && !explained) {
      say("The log has no reasons. JAX_EXPLAIN_CACHE_MISSES=1 adds them.");
    } else if (own.count) {
      const spent = own.seconds ? `, ${duration(own.seconds)}` : "";
      const what = own.count === 1 ? "1 operation" : `${own.count} operations`;
      say(`Besides, ${what} of JAX itself outside of your functions${spent}.`);
    }
    if (unknown.length) {
      const what = unknown.length === 1 ? "1 line is" : `${unknown.length} lines are`;
      const summary = element("summary", {}, `${what} unknown to this page`);
      results.append(element("details", {}, summary, element("pre", {}, unknown.join("\n"))));
    }
  };

  document.addEventListener("DOMContentLoaded", () => {
    const table = document.querySelector(".log-causes table");
    const causes = causesOf(table);
    const { form, input, output } = window.book.field("log-reader", "Paste your log", {
      rows: 6,
      placeholder: "TRACING CACHE MISS at train.py:65:18 (main): …",
    });
    const place = table.closest(".log-causes");
    place.before(form);
    // The style sheet has kept its place free.
    place.style.marginTop = "0";

    input.addEventListener("input", () => {
      const text = input.value;
      if (!text.trim()) return output.replaceChildren();
      const found = read(text, causes);
      show(found, output);
      if (!found.functions.length && /\w(?:Error|Exception|Warning)\b[:(]/.test(text)) {
        const href = `${document.documentElement.dataset.content_root ?? "../"}pitfalls/index.html`;
        const list = element("a", { href, textContent: "the list of errors" });
        output.append(element("p", {}, "This looks like an error or a warning. Paste it into ", list, "."));
      }
    });
  });
})();
