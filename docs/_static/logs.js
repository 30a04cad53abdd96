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
  const PACKAGED = /(?:site|dist)-packages\//;
  const EXPLAINS = /^\s|^$|^where |^weak_|^See |^expl|^\)/;
  // What JAX says at the level of debugging.
  const CHATTER = /\b(?:DEBUG|INFO)\b.*\bjax\._src\b|\bjax\._src\b.*\b(?:DEBUG|INFO)\b/;
  const ERROR = /^\s*Traceback \(most recent call last\)|^[\w.]*(?:Error|Exception): /m;
  // Operations that trace a function of the caller. Their times go by the name of the operation.
  const BODIES = /^(?:scan|while|while_loop|cond|checkpoint|shard_map|custom_[jv][vj]p_call)$/;
  const CUT = "… cut off";
  // How many lines of a program, or operations, are named; and how long a reason is shown whole.
  const NAMED = 8;
  const LONG = 250;

  const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  // A pattern of texts that differ in their digits only.
  const like = (text) => escaped(text).replace(/\d+/g, "\\d+");
  const tally = (counts, name) => counts.set(name, (counts.get(name) ?? 0) + 1);

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

  // The lines of a log without what a launcher or a container writes before each of them, such as
  // `0: ` or a time: the same as before the message above. Of several processes, those of the first.
  const unlabelled = (lines) => {
    let starts = [];
    const labels = new Map();
    const found = lines.map((line) => {
      const prefix = PREFIX.exec(line)?.[1];
      if (prefix !== undefined) {
        const words = prefix.split(/(?<=\s)/);
        starts = words.map((_, last) => new RegExp(`^${like(words.slice(0, last + 1).join(""))}`));
        return line;
      }
      const label = starts
        .map((start) => start.exec(line)?.[0])
        .findLast((each) => each?.trim() && EXPLAINS.test(line.slice(each.length)));
      if (!label) return line;
      if (!DATE.test(label)) tally(labels, label);
      return line.slice(label.length);
    });
    const [first, ...others] = labels.keys();
    if (!others.length) return { lines: found, processes: 1 };
    const ours = lines.filter((line) => !others.some((each) => line.startsWith(each)));
    return { lines: unlabelled(ours).lines, processes: labels.size };
  };

  // The lines of a log. A line that a message was written into is two.
  const untorn = (lines) => {
    const forms = new Map();
    const formOf = (line) => PREFIX.exec(line)?.[1].replace(/\d+/g, "0");
    for (const line of lines) tally(forms, formOf(line));
    forms.delete(undefined);
    const usual = [...forms.keys()].filter((form) => forms.get(form) > 1);
    return lines.flatMap((line) => {
      const form = formOf(line);
      if (forms.get(form) !== 1) return [line];
      const end = usual.find((each) => form.endsWith(each) && (each || /^\s/.test(form)));
      if (end === undefined) return [line];
      const at = PREFIX.exec(line)[1].search(new RegExp(`${like(end)}$`));
      return [line.slice(0, at) + CUT, line.slice(at)];
    });
  };

  // Where JAX and the program both write a log, each message is there twice in a row, behind two
  // kinds of prefix.
  const once = (lines) => {
    const messages = [];
    for (const line of lines) {
      const prefix = PREFIX.exec(line)?.[1];
      if (prefix === undefined && messages.length) messages.at(-1).lines.push(line);
      else {
        const form = (prefix ?? "").replace(/\d+/g, "0");
        messages.push({ form, said: line.slice(prefix?.length ?? 0), lines: [line] });
      }
    }
    const whole = ({ said, lines: all }) => [said, ...all.slice(1)].join("\n").trimEnd();
    return messages
      .filter((each, number) => {
        const before = messages[number - 1];
        if (!before || whole(each) !== whole(before)) return true;
        return each.form === before.form && !(DATE.test(each.lines[0]) && each.lines[0] === before.lines[0]);
      })
      .flatMap(({ lines: all }) => all);
  };

  // The lines of an explanation. What is in brackets may go over several, and becomes one.
  const joined = (lines) => {
    const whole = [];
    let depth = 0;
    for (const line of lines) {
      if (depth > 0 && !/^\s*\* /.test(line)) whole.push(`${whole.pop()} ${line.trim()}`);
      else {
        depth = 0;
        whole.push(line);
      }
      for (const letter of line) depth += "([{".includes(letter) - ")]}".includes(letter);
    }
    return whole;
  };

  // What a log says: the functions, the lines that nothing is known of, JAX's own operations.
  const read = (text, causes) => {
    const functions = new Map();
    const latest = new Map();
    const waiting = new Map();
    const compiling = new Map();
    const unknown = [];
    // What was compiled, and no line says who traced it: operations of JAX. Where a log has no
    // reasons, all functions.
    const operations = new Map();
    const callers = { traced: new Map(), compiled: new Map(), waiting: new Map() };
    const found = { unknown, callers, torn: 0, timed: false, explained: false };
    let block = null;
    // The function that the last reason was about, as long as its time is still to come.
    let recent = null;

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
      const { cost, caller } = block;
      const lines = joined(block.lines);
      const torn = lines.at(-1)?.endsWith(CUT);
      block = null;
      const body = lines.map((line) => line.trim().replace(/^\* /, "").replace(/^key with /, ""));
      const fresh = body[0] === "never seen function:";
      const head = (fresh ? body[1] : body[0]?.replace(/^for /, "")) ?? "";
      const [, called, , place = ""] =
        /^(.*?)(?: id=(\d+))?(?: defined at (.*))?$/.exec(head);
      const name = nameOf(called);
      if (!called || head.endsWith(CUT)) {
        found.torn += 1;
        return;
      }
      if (OWN.test(place)) {
        tally(callers.traced, caller);
        callers.waiting.set(name, caller);
        latest.delete(name);
        return;
      }
      const key = `${name} ${place}`;
      const seen = functions.has(key);
      // What a package has wrapped is found where the program called it.
      if (!seen) functions.set(key, { name, place: PACKAGED.test(place) ? caller : place, events: [] });
      const entry = functions.get(key);
      const made = event(entry, { again: !fresh || seen });
      made.trace = waiting.get(name) ?? cost;
      waiting.delete(name);
      latest.set(name, entry);
      recent = entry;
      const rest = body.slice(fresh ? 2 : 1);
      if (fresh) blame(made, `never seen function: ${name}${seen ? " (again)" : ""}`);
      rest.forEach((line, number) => {
        if (!line || (!fresh && blame(made, line))) return;
        if (line.endsWith(CUT) || KNOWN.some((known) => known.test(line))) return;
        // What a line with a colon announces.
        const raw = lines[number + (fresh ? 2 : 1)];
        if (/^ {4}/.test(raw) && /:$/.test(rest[number - 1] ?? "")) return;
        if (/^\s*\*/.test(raw)) made.strange ??= line;
        else unknown.push(raw);
      });
      if (!made.causes.size) blame(made, rest.join(" ").replace(/\s+/g, " ").trim());
      if (torn && !made.causes.size) made.strange = CUT;
    };

    const operation = (name) => {
      if (!operations.has(name)) operations.set(name, { name, place: "", events: [] });
      return operations.get(name);
    };

    const timed = (name, seconds, kind) => {
      found.timed = true;
      if (recent && BODIES.test(name)) latest.set(name, recent);
      recent = null;
      const entry = latest.get(name) ?? operations.get(name);
      const last = entry?.events.at(-1);
      if (kind === "trace") {
        if (last && last.trace === null && !operations.has(name)) last.trace = seconds;
        else waiting.set(name, seconds);
      } else if (kind === "lower" && !latest.has(name) && !compiling.get(name)?.running) {
        waiting.set(name, (waiting.get(name) ?? 0) + seconds);
      } else if (last) last.rest += seconds;
    };

    // An operation, or a function of which the log has no reason, is compiled.
    const anew = (name, difference) => {
      const entry = operation(name);
      const again = entry.events.length > 0;
      const made = event(entry, { again, retraced: waiting.has(name), trace: waiting.get(name) ?? null });
      waiting.delete(name);
      if (again) blame(made, `compiled again${difference}`);
      if (callers.waiting.has(name)) tally(callers.compiled, callers.waiting.get(name));
      callers.waiting.delete(name);
    };

    const compiles = (name, types, mapping) => {
      const parts = partsOf(mapping);
      const entry = latest.get(name);
      if (!compiling.has(name)) compiling.set(name, { before: [], running: false });
      const state = compiling.get(name);
      const alike = state.before.filter((each) => each.types === types);
      const last = entry?.events.at(-1);
      if (!entry) anew(name, alike.length ? `, arguments as before: ${types}` : ", other arguments");
      else if (last.compiled && alike.length) {
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
      if (!state?.running && !entry) anew(name, "");
      else if (state && !state.running) {
        blame(event(entry, { again: true, retraced: false }), "compiled again, not lowered again");
      }
      if (state) state.running = false;
      timed(name, seconds, "compile");
      const last = entry?.events.at(-1);
      if (last) last.compiled = true;
    };

    const actions = [
      [MISS, ([, at, spent]) => {
        found.explained = true;
        const caller = /^.*?:\d+/.exec(at)?.[0] ?? at;
        block = { lines: [], caller, cost: spent ? Number(spent) / 1000 : null };
      }],
      [TRACED, ([, name, seconds]) => timed(nameOf(name), Number(seconds), "trace")],
      [COMPILING, ([, name, types, mapping]) => compiles(nameOf(name), types, mapping)],
      [LOWERED, ([, name, seconds]) => timed(nameOf(name), Number(seconds), "lower")],
      [COMPILED, ([, name, seconds]) => compiled(nameOf(name), Number(seconds))],
      [CACHED, () => {}],
    ];
    const plain = text.replace(/\x1b\[[\d;]*m/g, "").split("\n");
    const useful = plain.filter((line) => PREFIX.test(line) || !CHATTER.test(line));
    const { lines, processes } = unlabelled(untorn(useful));
    for (const line of once(lines)) {
      const said = line.trimEnd();
      const [pattern, act] = actions.find(([each]) => each.test(said)) ?? [];
      if (pattern) {
        finish();
        act(pattern.exec(said));
      } else if (block && EXPLAINS.test(line)) block.lines.push(line);
      else if (said) unknown.push(line);
    }
    finish();
    const others = [...operations.values()].filter(({ events }) => events.length);
    const [all, rest] = found.explained ? [[...functions.values()], others] : [others, []];
    return { ...found, functions: all, operations: rest, processes };
  };

  const times = (number) => (number === 1 ? "once" : `${number} times`);
  const duration = (seconds) =>
    seconds < 1 ? `${(1000 * seconds).toPrecision(3)} ms` : `${seconds.toPrecision(3)} s`;
  const again = (entry) => entry.events.filter((each) => each.again);
  const cost = (events) => events.reduce((sum, { trace, rest }) => sum + (trace ?? 0) + rest, 0);

  // A long reason, cut down to where its two sides differ.
  const shortened = (line) => {
    const [, start, now, before] = /^(.*?\bnow )(.*) and before (.*)$/.exec(line) ?? [];
    if (line.length < LONG || !now) return line;
    const from = Math.max(0, [...now].findIndex((letter, place) => letter !== before[place]) - 30);
    const part = (side) => `… ${side.slice(from, from + 60)} …`;
    return `${start}${part(now)} and before ${part(before)}`;
  };

  // What is said of a function: how often it was traced, and why.
  const described = (entry) => {
    const traces = entry.events.filter((each) => each.retraced).length;
    const only = entry.events.length - traces;
    const spent = cost(again(entry));
    const said = [
      traces && `traced ${times(traces)}`,
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
      if (line) item.append(" ", element("code", {}, shortened(line)));
      if (cause) item.append(" ", element("span", {}, ...cause.fix.cloneNode(true).childNodes));
      return item;
    });
    const place = entry.place ? ` (${entry.place})` : "";
    const title = element("p", {}, element("code", {}, entry.name), `${place}: ${said.join(", ")}`);
    return element("li", {}, title, element("ul", {}, ...why));
  };

  // What is said of the operations of JAX outside of functions: how many, and where.
  const outside = ({ operations, callers, timed }, fix) => {
    const compiled = operations.flatMap(({ name, events }) => events.map(() => name));
    const places = timed ? callers.compiled : callers.traced;
    const count = compiled.length || [...places.values()].reduce((sum, each) => sum + each, 0);
    if (!count) return [];
    const spent = operations.reduce((sum, { events }) => sum + cost(events), 0);
    const what = count === 1 ? "1 operation" : `${count} operations`;
    const took = spent ? `, ${duration(spent)}` : "";
    const first = element("p", {}, `Besides, ${what} of JAX itself outside of your functions${took}. `);
    const named = new Map();
    for (const name of compiled) tally(named, name);
    const sorted = [...(places.size ? places : named)].sort(([, one], [, other]) => other - one);
    const items = sorted.slice(0, NAMED).map(([name, number]) => {
      const said = places.size ? ` ran ${number} outside of jit` : ` ${number} ×`;
      return element("li", {}, element("code", {}, name), said);
    });
    if (!places.size) first.append("This log does not name their lines. ");
    first.append(...(fix?.cloneNode(true).childNodes ?? []));
    return [first, element("ul", {}, ...items)];
  };

  const show = (found, results, fix) => {
    const { functions, unknown, explained, timed, torn, processes } = found;
    results.replaceChildren();
    const say = (...said) => results.append(element("p", {}, ...said));
    const worst = functions
      .filter((entry) => again(entry).length)
      .sort(
        (one, other) =>
          cost(again(other)) - cost(again(one)) || again(other).length - again(one).length,
      );
    const all = functions.length === 1 ? "The one function" : `All ${functions.length} functions`;
    const good = explained ? "traced once. Nothing was traced again" : "compiled once";
    if (processes > 1) say(`${processes} processes wrote this. Here is what the first of them did.`);
    if (worst.length) results.append(element("ol", {}, ...worst.map(described)));
    else if (functions.length) say(`${all} in this log: ${good}.`);
    else if (!found.operations.length) say("There is no cache miss in this text.");
    if (functions.length && !explained) {
      say("The log has no reasons. JAX_EXPLAIN_CACHE_MISSES=1 adds them for your functions, but not for JAX's own.");
    }
    if (explained && functions.length && !timed && !functions.some((entry) => cost(entry.events))) {
      say("The log has no times. JAX_LOG_COMPILES=1 adds them.");
    }
    results.append(...outside(found, fix));
    if (torn) say(`${torn === 1 ? "1 entry is" : `${torn} entries are`} cut off by another line, and not counted.`);
    if (found.error) {
      const href = window.book.at("pitfalls/index.html");
      say("There is an error in it. ", element("a", { href }, "What does it mean?"));
    }
    if (unknown.length) {
      const what = unknown.length === 1 ? "1 line is" : `${unknown.length} lines are`;
      const summary = element("summary", {}, `${what} unknown to this page`);
      results.append(element("details", {}, summary, element("pre", {}, unknown.join("\n"))));
    }
  };

  document.addEventListener("DOMContentLoaded", () => {
    const causes = causesOf(document.querySelector(".log-causes table"));
    const outsideOfJit = causes.find(({ is }) => is.some((each) => each("outside of jit")));
    const { form, input, output } = window.book.field("log-reader", "Paste your log", {
      rows: 6,
      placeholder: "TRACING CACHE MISS at train.py:65:18 (main): …",
    });
    const place = document.querySelector(".log-field");
    place.append(form);
    // The style sheet has kept its place free.
    place.style.paddingBottom = "0";

    input.addEventListener("input", () => {
      const text = input.value;
      if (!text.trim()) output.replaceChildren();
      else show({ ...read(text, causes), error: ERROR.test(text) }, output, outsideOfJit?.fix);
    });
  });
})();
