// Search. Nothing of it is loaded before somebody searches. Over http the weights of words say which
// pages come first, and Pagefind finds their sections, in the dialog and on the search page. Where a browser may not fetch, as in file://, and
// where the site has no index of Pagefind, Sphinx's own search answers on the search page.
(() => {
  "use strict";
  const { element, load: script } = window.book;
  const root = document.documentElement.dataset.content_root;
  const SHOWN = { dialog: 6, page: 30 };
  // Where fewer pages than that have all words, a row of a table may be meant.
  const FEW = 3;
  // Words that mean little.
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

  // What Pagefind does not know: what words say of pages, words of headings, names in rows of tables.
  let known;
  const lists = () => (known ??= fetch(new URL(`${root}pagefind/words.json`, location.href))
    .then((answer) => answer.json())
    .catch(() => ({ pages: [], weights: {}, words: [], rows: {} })));

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
        ? element("p", { textContent: meta.description }) : quote(excerpt ?? "");
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

  // The words that mean much, or all.
  const telling = (words) => {
    const all = words.trim().split(/\s+/);
    const some = all.filter((word) => !LITTLE.has(word.toLowerCase()));
    return some.length ? some : all;
  };

  // The stems of a text, as the weights of words were made.
  const stems = async (text) => {
    await script("_static/language_data.js");
    const stemmer = new window.Stemmer();
    const words = text.toLowerCase().match(/[a-z0-9]+(?:_[a-z0-9]+)*/g) ?? [];
    const parts = words.filter((word) => word.includes("_")).flatMap((word) => word.split("_"));
    return [...new Set([...words, ...parts].map((word) => stemmer.stemWord(word)))];
  };

  // The pages that say most of what is searched for: [address, title, what it is about], best first.
  const best = async (asked) => {
    const { pages, weights } = await lists();
    const sums = pages.map(() => 0);
    for (const stem of await stems(telling(asked).join(" "))) {
      // Who still types has only the beginning of a word.
      const begun = (each) => stem.length > 2 && each.startsWith(stem);
      const meant = Object.hasOwn(weights, stem) ? [stem] : Object.keys(weights).filter(begun);
      const most = pages.map(() => 0);
      for (const each of meant) {
        for (let i = 0; i < weights[each].length; i += 2) {
          most[weights[each][i]] = Math.max(most[weights[each][i]], weights[each][i + 1]);
        }
      }
      most.forEach((weight, page) => { sums[page] += weight; });
    }
    const highest = Math.max(1, ...sums);
    return pages
      .map((page, number) => ({ page, score: sums[number] / highest + fitting(page, asked), found: sums[number] }))
      .filter(({ found }) => found)
      .sort((one, other) => other.score - one.score)
      .map(({ page }) => page);
  };

  // What Pagefind has of pages that have all words, or all that mean much.
  const sectioned = async (index, words) => {
    const found = await Promise.all([words, telling(words).join(" ")].map((query) => index.search(query)));
    const pages = found.flatMap(({ results }) => results.slice(0, SHOWN.page));
    return Promise.all([...new Map(pages.map((page) => [page.id, page])).values()].map((page) => page.data()));
  };

  const results = async (index, words) => {
    const [first, all] = await Promise.all([best(words), sectioned(index, words)]);
    const known = new Map(all.map((page) => [new URL(page.url, location.href).pathname, page]));
    const ranked = first.map(([url, title, description]) => {
      const path = new URL(`${root}${url}`, location.href).pathname;
      const page = known.get(path);
      known.delete(path);
      return page ?? { url: path, meta: { title, description }, sub_results: [] };
    });
    return { pages: [...ranked, ...known.values()].slice(0, SHOWN.page), few: all.length < FEW };
  };

  // How well the title of a page, or one of the words at its head, says what is searched for.
  const fitting = ([, title, , words], asked) => {
    const phrases = [title, ...words.split(", ")].map((phrase) => phrase.toLowerCase());
    const parts = telling(asked.toLowerCase());
    const text = phrases.join(" ");
    // The words at the head of a page begin with what it is most about.
    const among = (fits, least) => {
      const place = phrases.findIndex(fits);
      return place < 0 ? 0 : least + 1 / (1 + place);
    };
    return among((phrase) => phrase === asked.trim().toLowerCase(), 3)
      || among((phrase) => parts.every((part) => phrase.includes(part)), 2)
      || parts.filter((part) => text.includes(part)).length / parts.length;
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
        const { pages, few } = await results(found, asked);
        const rows = await rowOf(words, few);
        if (input.value === words) show(place, inDialog ? pages.slice(0, SHOWN.dialog) : pages, words, rows);
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
