// What a reader has measured stands beside the book's numbers. The file stays in the browser; the
// scripts that show it are loaded where there is one, and where a page asks for it.
(() => {
  "use strict";
  const KEY = "book-your-machine";
  const LABEL = "Your machine";
  const version = new URL(document.currentScript.src || location.href).search;

  const stored = (action) => {
    try {
      return action(localStorage);
    } catch {
      return undefined;
    }
  };
  const kept = () => stored((storage) => storage.getItem(KEY)) ?? "";
  const keep = (text) => stored((storage) => storage.setItem(KEY, text) ?? true) ?? false;
  const forget = () => stored((storage) => storage.removeItem(KEY));
  // A link may bring a file.
  const brought = () => (location.hash.startsWith("#jm1.") ? location.hash.slice(1) : "");

  const load = (name) => window.book.load(`_static/machine/${name}.js${version}`);

  // What comes back, or was open beside it, shows what is kept by then.
  const shown = kept();
  const renew = (is) => is && kept() !== shown && location.reload();
  window.addEventListener("pageshow", ({ persisted }) => renew(persisted));
  window.addEventListener("storage", ({ key }) => renew(key === KEY || key === null));

  // Their styles are in the site's sheet because a script that every page loads names them.
  const YOURS = { beside: "yours", below: "yours below", mark: "mine diamond", beyond: "mine diamond beyond" };
  window.machine = { LABEL, YOURS, stored, kept, keep, forget, brought };

  document.addEventListener("DOMContentLoaded", async () => {
    const there = (name) => document.querySelector(name) !== null;
    const asks = there("[data-of], [data-yours], .fastest-data, .measurement-names");
    const given = brought() || kept();
    if (!there(".machine-file, .possible-time") && !(asks && given)) return;
    await load("read");
    // What cannot be read is said where the field is.
    const read = given && window.machine.read(given).catch(() => null);
    window.machine.record = (await read) || null;
    if (window.machine.record) await load("place");
    if (there(".machine-file")) await load("field");
    if (there(".possible-time")) await load("roofline");
  });
})();
