// Search. Nothing of it is loaded before somebody searches. Over http Pagefind answers, section by
// section, in the dialog and on the search page. Where a browser may not fetch, as in file://, and
// where the site has no index of Pagefind, Sphinx's own search answers on the search page.
(() => {
  "use strict";
  const { element, load: script } = window.book;
  const root = document.documentElement.dataset.content_root;
  const SHOWN = { dialog: 6, page: 30 };
  // With fewer results than that it is asked again without words that mean little: each must occur.
  const FEW = 3;
  const LITTLE = new Set(("a an and are as at be by can do does for from how i in into is it my of on "
    + "or should that the this to versus vs what when where which why will with you your").split(" "));
  let engine;

  const pagefind = async () => {
    if (!location.protocol.startsWith("http")) return null;
    try {
      const found = await import(new URL(`${root}pagefind/pagefind.js`, location.href));
      await found.options({ baseUrl: new URL(root, location.href).pathname });
      await found.init();
      return found;
    } catch {
      return null;
    }
  };

  const load = () => (engine ??= pagefind());

  // What Pagefind does not know: words of headings, and names in rows of tables.
  let known;
  const lists = () => (known ??= fetch(new URL(`${root}pagefind/words.json`, location.href))
    .then((answer) => answer.json())
    .catch(() => ({ words: [], rows: {} })));

  // How many letters must be typed otherwise: one more, one less, another one, or two exchanged.
  const distance = (one, other) => {
    let [before, last] = [[], Array.from({ length: other.length + 1 }, (_, i) => i)];
    for (let i = 1; i <= one.length; i++) {
      const row = [i];
      for (let j = 1; j <= other.length; j++) {
        const same = one[i - 1] === other[j - 1];
        row[j] = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + Number(!same));
        const exchanged = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
        if (exchanged) row[j] = Math.min(row[j], before[j - 2] + 1);
      }
      [before, last] = [last, row];
    }
    return last[other.length];
  };

  // The word of a heading that is meant by one that occurs nowhere, or that word. Each is asked once.
  const meanings = new Map();
  const meant = (index, word) => meanings.get(word) ?? meanings.set(word, corrected(index, word)).get(word);
  const corrected = async (index, word) => {
    if (word.length < 4 || !/^[a-z_]+$/i.test(word)) return word;
    // In quotes it is asked for as it stands, without what only begins like it.
    if ((await index.search(`"${word}"`)).results.length) return word;
    const typed = word.toLowerCase();
    const near = (await lists()).words
      .map((each) => ({ each, steps: distance(typed, each) }))
      .filter(({ steps }) => steps <= (typed.length < 7 ? 1 : 2))
      .sort((a, b) => a.steps - b.steps || Number(b.each[0] === typed[0]) - Number(a.each[0] === typed[0]));
    return near[0]?.each ?? word;
  };

  // The row of a table for a name as people write it in their code, such as `torch.gather`.
  const rowOf = async (asked, few) => {
    const [, before, name] = /^((?:\w+\.)*)(\w+)(?:\(.*)?$/.exec(asked.trim()) ?? [];
    const { rows } = await lists();
    if (!Object.hasOwn(rows, name ?? "")) return [];
    const [url, title, own] = rows[name];
    const theirs = /^(torch|tf|f|nn|tensorflow|x|tensor)\./i.test(before);
    return own || theirs || few ? [{ url: new URL(`${root}${url}`, location.href).href, title: `${name}: ${title}` }] : [];
  };

  const ownSearch = async (asked) => {
    // A title with all that is asked for comes first, the shortest of them before the others.
    const parts = asked.trim().toLowerCase().split(/\s+/);
    const fits = (title) => parts.every((part) => title.toLowerCase().includes(part));
    window.Scorer = {
      ...{ title: 15, partialTitle: 7, term: 5, partialTerm: 2 },
      ...{ objNameMatch: 11, objPartialMatch: 6, objPrio: {}, objPrioDefault: 0 },
      score: ([, title, , , score]) => fits(title) ? 1e4 - title.length : score,
    };
    await script("_static/language_data.js");
    await script("_static/searchtools.js");
    await script("searchindex.js");
  };

  const entry = (title, href, ...below) =>
    element("li", {}, element("a", { href, textContent: title }), ...below);

  // Pagefind escapes the text of an excerpt; the marks in it are its own.
  const quote = (excerpt) => element("p", { innerHTML: excerpt });

  // How much of what is searched for is in a section.
  const matched = ({ weighted_locations: places = [] }) =>
    places.reduce((sum, place) => sum + place.balanced_score, 0);

  const show = (place, found, words, rows) => {
    const items = found.map(({ meta, url, excerpt, sub_results: sections }) => {
      const parts = sections.filter(({ title }) => title !== meta.title)
        .sort((one, other) => matched(other) - matched(one)).slice(0, 3);
      const inner = parts.map((part) => entry(part.title, part.url, quote(part.excerpt)));
      const about = meta.description
        ? element("p", { textContent: meta.description }) : quote(excerpt);
      return entry(meta.title, url, inner.length ? element("ul", {}, ...inner) : about);
    });
    items.unshift(...rows.map(({ title, url }) => entry(title, url)));
    const textContent = items.length ? "" : `Nothing found for “${words}”.`;
    say(place, textContent, element("ul", { className: "search-found" }, ...items));
  };

  const say = (place, textContent, ...below) => {
    const said = element("p", { className: "search-said", textContent });
    said.setAttribute("role", "status");
    place.replaceChildren(said, ...below);
  };

  // From the field into what is found, and on from there.
  const walk = (dialog) => (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const stops = [...dialog.querySelectorAll("input[name=q], .search-found a")];
    const next = step && stops[stops.indexOf(document.activeElement) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  };

  const results = async (index, words) => {
    const ask = async (query) => (await index.search(query)).results;
    const all = (await ask(words)).slice(0, SHOWN.page);
    const told = telling(words);
    const add = (more) => {
      const had = new Set(all.map(({ id }) => id));
      all.push(...more.filter(({ id }) => !had.has(id)));
    };
    // Far down among many may be the page that has just these words, or all of them that mean much.
    add((await ask(`"${words}"`)).slice(0, FEW));
    if (told.length) add((await ask(told.join(" "))).slice(0, all.length < FEW ? SHOWN.page : FEW));
    if (all.length < FEW && told.length > 1) add((await ofAny(index, told)).slice(0, SHOWN.page));
    return all;
  };
  // Pages with some of the words: rare words count for more.
  const ofAny = async (index, words) => {
    const found = new Map();
    for (const word of words) {
      const { results: pages } = await index.search(word);
      for (const page of pages) {
        const before = found.get(page.id) ?? { page, score: 0 };
        found.set(page.id, { page, score: before.score + 1 / Math.log2(2 + pages.length) });
      }
    }
    return [...found.values()].sort((a, b) => b.score - a.score).map(({ page }) => page);
  };
  const telling = (words) => words.trim().split(/\s+/).filter((word) => !LITTLE.has(word.toLowerCase()));

  // How well the title of a page, or one of the words at its head, says what is searched for.
  const fitting = ({ meta: { title, words = "" } }, asked) => {
    const phrases = [title, ...words.split(", ")].map((phrase) => phrase.toLowerCase());
    const parts = telling(asked.toLowerCase());
    if (!parts.length) return 0;
    const text = phrases.join(" ");
    const has = (phrase) => parts.every((part) => phrase.includes(part));
    if (phrases.includes(asked.trim().toLowerCase())) return 3;
    return phrases.some(has) ? 2 : parts.filter((part) => text.includes(part)).length / parts.length;
  };

  document.addEventListener("DOMContentLoaded", () => {
    const page = document.querySelector(".search-page");
    const forms = document.querySelectorAll("form.bd-search");
    const asked = new URLSearchParams(location.search).get("q") ?? "";

    for (const form of forms) {
      const input = form.querySelector("input[name=q]");
      const inDialog = form.closest("#pst-search-dialog");
      const place = inDialog
        ? inDialog.appendChild(element("div", { className: "search-results" }))
        : document.querySelector("#search-results");
      inDialog?.addEventListener("keydown", walk(inDialog));
      const answer = async (words) => {
        if (words && !place.childElementCount) say(place, "Searching…");
        const found = await load();
        if (!found) {
          place.replaceChildren();
          return false;
        }
        if (!words.trim()) {
          place.replaceChildren();
          return true;
        }
        const asked = (await Promise.all(words.split(/\s+/).map((word) => meant(found, word)))).join(" ");
        const all = await results(found, asked);
        const data = await Promise.all(all.map((result) => result.data()));
        data.sort((one, other) => fitting(other, asked) - fitting(one, asked));
        const rows = await rowOf(words, all.length < FEW);
        if (input.value === words) show(place, inDialog ? data.slice(0, SHOWN.dialog) : data, words, rows);
        return true;
      };
      let waiting;
      if (inDialog) input.addEventListener("focus", load, { once: true });
      input.addEventListener("input", () => {
        clearTimeout(waiting);
        waiting = setTimeout(() => answer(input.value), 120);
      });
      if (page && !inDialog) {
        input.value = asked;
        input.focus();
        input.select();
        if (asked) answer(asked).then((done) => done || ownSearch(asked));
      }
    }
  });
})();
