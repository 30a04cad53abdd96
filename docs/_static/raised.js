// Which line of the sources of JAX and of the libraries around it says a message, with the values
// of the message, and which line of the reader's program led there. The patterns are in messages/.
(() => {
  "use strict";

  const { element, at, load, plainly, escaped } = window.book;
  const code = (text) => element("code", {}, text);
  const TITLES = { jax: "JAX", orbax_checkpoint: "Orbax", numpyro: "NumPyro", blackjax: "BlackJAX" };
  const titleOf = (name) => TITLES[name] ?? name[0].toUpperCase() + name.slice(1);
  // Where the documentation of a function is: its own page, or what a search there finds.
  const SEARCHES = {
    flax: "https://flax.readthedocs.io/en/latest/search.html?q=",
    optax: "https://optax.readthedocs.io/en/latest/search.html?q=",
    orbax: "https://orbax.readthedocs.io/en/latest/search.html?q=",
    chex: "https://chex.readthedocs.io/en/latest/search.html?q=",
    grain: "https://google-grain.readthedocs.io/en/latest/search.html?q=",
    numpyro: "https://num.pyro.ai/en/stable/search.html?q=",
    keras: "https://keras.io/search.html?query=",
  };
  const SITES = { equinox: "https://docs.kidger.site/equinox/", diffrax: "https://docs.kidger.site/diffrax/" };
  const PAGED = /^jax(?:\.(?:numpy|lax|nn|random|scipy|tree|tree_util|debug|distributed|sharding|export|profiler)(?:\.(?!experimental)\w+)*)?\.\w+$/;
  const documentation = (name) => {
    const [first] = name.split(".");
    if (PAGED.test(name)) return `https://docs.jax.dev/en/latest/_autosummary/${name}.html`;
    return SEARCHES[first] ? SEARCHES[first] + name.split(".").at(-1) : SITES[first];
  };

  const letters = (text) => text.replace(/\W/g, "").length;
  const FEWEST = 12;
  const PART = 0.6;
  const LONG = 24;
  const SURE = 36;
  const SHARE = 0.4;

  // A pattern as the sources have it, `…` for each value: what a message is that it says.
  const patternOf = (text) => {
    const pieces = plainly(text).replace(/[\s.:;,]+$/, "").split("…").map((piece) => piece.trim());
    const value = "\\s*(.{0,400}?)\\s*";
    const regex = new RegExp(`^\\W{0,3}${pieces.slice(0, -1).map((piece) => escaped(piece) + value).join("")}${pieces.at(-1) ? escaped(pieces.at(-1)) : "(.{0,80})"}`, "is");
    const all = letters(pieces.join(""));
    // Few words around values may stand in another message by chance.
    const tells = (line) => all >= SURE || all >= SHARE * letters(line);
    return { pieces, regex, tells };
  };

  // How many letters of a pattern a message has from its start on: all, or what a cut left of it.
  const agreed = (pieces, regex, message) => {
    const found = regex.exec(message);
    const all = letters(pieces.join(""));
    if (found) return { size: all, whole: true, values: found.slice(1) };
    const size = Math.max(0, ...pieces.slice(0, -1).map((_, number) => {
      const some = pieces.slice(0, number + 1);
      const said = letters(some.join(""));
      return said >= Math.max(LONG, PART * all) && patternOf(`${some.join("…")}…`).regex.test(message) ? said : 0;
    }));
    const cut = message.length >= LONG && pieces[0].toLowerCase().startsWith(message.toLowerCase().replace(/[\s.…]+$/, ""));
    return { size: cut ? letters(message) : size, whole: false, values: [] };
  };

  // Names of one type in several versions.
  const ALIKE = { XlaRuntimeError: "JaxRuntimeError" };
  const typed = (type) => ALIKE[type] ?? type;

  const rowsOf = ([functions, packages]) =>
    Object.entries(packages).flatMap(([package_, kinds]) =>
      Object.entries(kinds).flatMap(([type, rows]) =>
        rows.map(([pattern, number, since, until]) => ({ package: package_, type: typed(type), pattern, since, until, called: functions[number] ?? [] })),
      ),
    );

  // The line of the sources that says most of a message: {package, pattern, …}, or null.
  const find = ({ type, message }, files, packages) => {
    const text = plainly(message);
    if (letters(text) < FEWEST) return null;
    const fits = (row) => !type || row.type === typed(type) || (!row.type && /^(?:INFO|WARNING)$/.test(type));
    const found = [];
    const line = plainly(message.trim().split("\n")[0]);
    for (const row of files.flatMap(rowsOf).filter(fits)) {
      const longest = row.pattern.split("…").reduce((one, two) => (two.length > one.length ? two : one));
      const start = plainly(longest).slice(0, 12).toLowerCase();
      if (!text.toLowerCase().includes(start)) continue;
      const { pieces, regex, tells } = patternOf(row.pattern);
      if (!tells(line)) continue;
      const { size, whole, values } = agreed(pieces, regex, text);
      if (size < FEWEST) continue;
      const near = packages.includes(row.package.split("_")[0]) ? 1 : row.package === "jax" ? 0.5 : 0;
      found.push({ ...row, whole, values, rank: size + (whole ? 1000 : 0) + near, says: (other) => regex.test(plainly(other)) });
    }
    const [best] = found.sort((one, other) => other.rank - one.rank);
    if (!best) return null;
    // Versions that word it a little differently say it as well.
    const alike = found.filter((row) => row.whole === best.whole && row.package === best.package);
    const { jax } = window.book.messageFiles.versions;
    const at = (key, choose) => jax[choose(...alike.map((row) => jax.indexOf(row[key] ?? jax[0])))];
    const called = best.called.length ? best.called : (alike.find((row) => row.called.length)?.called ?? []);
    return { ...best, called, since: at("since", Math.min), until: at("until", Math.max) };
  };

  // The frames of a traceback: files, lines, functions and the code of each.
  const FRAME = /File "([^"\n]+)", line (\d+)(?:,? in ([^\n]+))?(?:\n[ \t]+(?![ \t]|File )([^\n]*\w[^\n]*))?/g;
  const CELL = /(?:Cell )?(In ?\[\d+\]), line (\d+)|<ipython-input-(\d+)-\w+>/g;
  const INSTALLED = /(?:site|dist)-packages|[\\/]lib[\\/]python3|<frozen|\b(?:jax[\\/]_src|flax[\\/](?:nnx|linen|core)|equinox[\\/]_\w+)\b|[\\/]importlib[\\/]/;
  const yours = (text) => {
    const frames = [...text.matchAll(FRAME)].map(([, file, line, name, said], number) => ({ file, line, name, said, number }));
    const own = frames.filter(({ file }) => !INSTALLED.test(file)).at(-1);
    const cell = [...text.matchAll(CELL)].at(-1);
    const arrow = /^-+> ?(\d+) (.*)$/m.exec(text);
    const after = own && frames[own.number + 1];
    if (own) return { place: `${own.file.split(/[\\/]/).at(-1)}:${own.line}`, said: own.said, after };
    return cell ? { place: `${cell[1] ?? `In [${cell[3]}]`}, line ${arrow?.[1] ?? cell[2] ?? ""}`, said: arrow?.[2] } : null;
  };

  // The message with its values as code, and the function with its page and its documentation.
  const marked = ({ pattern, values }, message) => {
    const line = plainly(message.trim().split("\n")[0]);
    const shown = element("q", {});
    let rest = line;
    for (const value of values.filter(Boolean)) {
      // What a hole takes up to the end of a message is its first sentence.
      const [first] = value.length > 60 ? value.split(/\. |\s\(/) : [value];
      const said = first.trim().replace(/[.,;:]$/, "");
      const start = said ? rest.indexOf(said) : -1;
      if (start < 0) continue;
      shown.append(rest.slice(0, start), code(said));
      rest = rest.slice(start + said.length);
    }
    shown.append(rest.slice(0, 200));
    return shown;
  };

  const told = (row, message, text, versions, { known, after }) => {
    let [names = "", page, title] = row.called;
    const choices = names.split(", ").filter(Boolean);
    // A message of many functions may name its own.
    const own = row.values.map((value) => /^(lax|jnp|jax(?:\.\w+)?)\.(\w+)$/.exec(value?.trim())).find(Boolean);
    const named = own ? `${{ lax: "jax.lax", jnp: "jax.numpy" }[own[1]] ?? own[1]}.${own[2]}` : /^lax\.…/.test(row.pattern) ? `jax.lax.${row.values[0]}` : undefined;
    const chosen = choices.find((each) => each.split(".").at(-1) === after?.name) ?? (choices.length ? undefined : named ?? known);
    const shown = chosen ? [chosen] : choices;
    // What the text does not name is one way among others to the line that says it.
    const met = shown.some((each) => text.includes(each.split(".").at(-1)));
    const who = shown.flatMap((each, number) => [number ? (number === shown.length - 1 ? " or " : ", ") : "", code(each)]);
    const says = row.whole ? " says: " : " says a message that begins the same: ";
    const sentence = [...(met ? [...who, ` (${titleOf(row.package)})`] : [titleOf(row.package)]), says, marked(row, message), ...(met || !who.length ? [] : [" It may come from ", ...who, "."])];
    const all = versions[row.package];
    const whole = row.package !== "jax" ? all.at(-1) : row.since === row.until ? row.since : `${row.since} to ${row.until}`;
    const every = row.since === all[0] && row.until === all.at(-1) && all.length > 1 ? `All ${all.length} versions of JAX that were read, ${whole}, have` : `${titleOf(row.package)} ${whole} ${/ to /.test(whole) ? "have" : "has"}`;
    sentence.push(` ${every} this text.`);
    const places = [];
    if (page && !(chosen && chosen !== choices[0])) places.push("See ", element("a", { href: at(page) }, title), " in this book");
    const address = met && shown.length === 1 && documentation(shown[0]);
    if (address) places.push(places.length ? ", and " : "See ", element("a", { href: address }, "the documentation of ", code(shown[0])));
    return places.length ? [...sentence, " ", ...places, "."] : sentence;
  };

  const PUBLIC = [[/jax\/_src\/numpy\//, "jax.numpy"], [/jax\/_src\/lax\//, "jax.lax"], [/jax\/_src\/nn\//, "jax.nn"], [/jax\/_src\/random/, "jax.random"], [/jax\/_src\/(?:api|pjit|array)\.py/, "jax"]];
  const fetched = (path) => load(`_static/${path}.js`);

  // The public function that the reader's line called, of the frame below it.
  const calledBy = (after, again) => {
    const [, module] = PUBLIC.find(([path]) => path.test(after?.file ?? "")) ?? [];
    if (!module) return undefined;
    if (!window.book.jaxAlways) {
      fetched("jax_always").then(again, () => {});
      return undefined;
    }
    return window.book.jaxAlways.names[module].split(" ").includes(after.name) ? `${module}.${after.name}` : undefined;
  };

  const fileOf = ({ message }) => {
    const start = plainly(message).replace(/[^A-Za-z]/g, "").slice(0, 2).toLowerCase();
    return start && window.book.messageFiles.files.findLast((name) => name <= start);
  };

  // What the sources say of an error: sentences, and which texts say the same. Of a name that is
  // missing, which is `named`, they say nothing. `again` is called once their file is there.
  window.book.raised = (text, error, packages, named, again) => {
    const own = yours(text);
    const sentences = own ? [["Your line: ", code(own.place), ...(own.said ? [" ", code(own.said.trim())] : [])]] : [];
    if (named) return { sentences };
    if (!window.book.messages?.[""]) {
      fetched("messages/values").then(again, () => {});
      return { sentences };
    }
    const name = fileOf(error);
    if (name && !window.book.messages[name]) {
      fetched(`messages/${name}`).then(again, () => {});
      return { sentences };
    }
    const files = [window.book.messages[""], ...(name ? [window.book.messages[name]] : [])];
    const row = find(error, files, packages);
    const known = calledBy(own?.after, again);
    if (row) return { row, sentences: [...sentences, told(row, error.message, text, window.book.messageFiles.versions, { known, after: own?.after })] };
    if (known) sentences.push([code(known), " got arguments that it cannot take. See ", element("a", { href: documentation(known) }, "its documentation"), "."]);
    return { sentences };
  };
})();
