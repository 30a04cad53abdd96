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

  const show = (place, found, words) => {
    const items = found.map(({ meta, url, excerpt, sub_results: sections }) => {
      const parts = sections.filter(({ title }) => title !== meta.title).slice(0, 3);
      const inner = parts.map((part) => entry(part.title, part.url, quote(part.excerpt)));
      const about = meta.description
        ? element("p", { textContent: meta.description }) : quote(excerpt);
      return entry(meta.title, url, inner.length ? element("ul", {}, ...inner) : about);
    });
    const textContent = found.length ? "" : `Nothing found for “${words}”.`;
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
    const { results: all } = await index.search(words);
    const told = telling(words).join(" ");
    if (all.length >= FEW || !told || told === words.trim()) return all;
    const known = new Set(all.map(({ id }) => id));
    return [...all, ...(await index.search(told)).results.filter(({ id }) => !known.has(id))];
  };
  const telling = (words) => words.trim().split(/\s+/).filter((word) => !LITTLE.has(word.toLowerCase()));

  // How well the title of a page, or one of the words at its head, says what is searched for.
  const fitting = ({ meta: { title, words = "" } }, asked) => {
    const phrases = [title, ...words.split(", ")].map((phrase) => phrase.toLowerCase());
    const parts = telling(asked.toLowerCase());
    if (!parts.length) return 0;
    const has = (text) => parts.every((part) => text.includes(part));
    if (phrases.includes(asked.trim().toLowerCase())) return 3;
    return phrases.some(has) ? 2 : Number(has(phrases.join(" ")));
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
        const all = (await results(found, words)).slice(0, SHOWN.page);
        const data = await Promise.all(all.map((result) => result.data()));
        data.sort((one, other) => fitting(other, words) - fitting(one, words));
        if (input.value === words) show(place, inDialog ? data.slice(0, SHOWN.dialog) : data, words);
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
