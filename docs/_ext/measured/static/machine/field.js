// The page "Your machine": a file, or its line, is pasted, dropped, chosen, or brought by a link.
(async () => {
  "use strict";
  const { BOOK, kept, keep, forget, brought, read, line } = window.machine;
  const { element } = window.book;
  const { pages } = JSON.parse(document.querySelector(".measurement-names").textContent);
  const group = document.querySelector(".machine-file");
  const part = (name) => group.querySelector(name);
  const [text, choice, said, list] = ["textarea", "input", ".machine-said", "ul"].map(part);
  const named = (name) => part(`.machine-${name}`);
  const [keeping, forgetting, link] = ["keep", "forget", "link"].map(named);
  const KEPT = "Kept in this browser:";
  const NOT_KEPT =
    "This browser keeps nothing from page to page, so follow the links below: they hold it.";
  const OTHER = "It was written for another version of the book. If a number is missing, paste what " +
    "“jax-measured show --line FILE” of today’s command prints.";
  let current = null;

  const show = async (record, words, asks = false) => {
    current = record;
    const stays = kept() !== "";
    const held = record && `#${await line(record.file)}`;
    const found = Object.entries(pages).map(([uri, [title, names]]) => [
      uri, title, names.filter((name) => record?.numbers.has(name)).length,
    ]).filter(([, , count]) => count);
    const known = found.reduce((sum, [, , count]) => sum + count, 0);
    said.textContent = words;
    if (record) {
      const { about, numbers } = record;
      said.append(` ${about}. ${known} of its ${numbers.size} measurements are in this book.`);
      if (BOOK && record.file.book !== BOOK) said.append(` ${OTHER}`);
    }
    keeping.hidden = !asks;
    forgetting.hidden = !stays || asks;
    link.hidden = !record;
    if (record) link.href = held;
    list.replaceChildren(...found.map(([uri, title, count]) => {
      const href = stays && !asks ? uri : uri + held;
      return element("li", {}, element("a", { href, textContent: title }), ` (${count})`);
    }));
  };

  const keepIt = async (record) => {
    const did = keep(JSON.stringify(record.file));
    await show(record, did ? KEPT : NOT_KEPT);
  };
  const take = async (given, then = keepIt) => {
    let record;
    try {
      record = await read(given);
    } catch (refused) {
      const rest = kept() ? "What was kept before is still there." : "Nothing is drawn.";
      said.textContent = `${refused.message} ${rest}`;
      return;
    }
    text.value = "";
    await then(record);
  };
  const ask = (record) => {
    const instead = kept() ? ", to be kept in place of yours" : "";
    return show(record, `This link holds measurements${instead}:`, true);
  };

  const takeFile = async (file) => {
    // What is far too large is not worth reading to the end.
    if (file) await take(await file.slice(0, 5e6).text());
    choice.value = "";
  };
  text.addEventListener("input", () => text.value.trim() && take(text.value));
  choice.addEventListener("change", () => takeFile(choice.files[0]));
  group.addEventListener("dragover", (event) => event.preventDefault());
  group.addEventListener("drop", (event) => {
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    takeFile(event.dataTransfer.files[0]);
  });
  keeping.addEventListener("click", async () => {
    await keepIt(current);
    history.replaceState(null, "", location.pathname);
    text.focus();
  });
  forgetting.addEventListener("click", () => {
    forget();
    show(null, "Removed from this browser.");
    text.focus();
  });

  group.hidden = false;
  const start = () => {
    if (brought()) return take(brought(), ask);
    return kept() && take(kept(), (record) => show(record, KEPT));
  };
  window.addEventListener("hashchange", start);
  await start();
})();
