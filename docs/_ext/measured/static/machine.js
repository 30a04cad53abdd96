// What a reader has measured is a further device, "Your machine". The record stays in the browser;
// the scripts that show it are loaded where there is one, and where a page asks for it.
(() => {
  "use strict";
  const KEY = "book-your-machine";
  const DEVICE = "your-machine";
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
  // A link may bring a record.
  const brought = () => (location.hash.startsWith("#jm1.") ? location.hash.slice(1) : "");

  const load = (name) => window.book.load(`_static/machine/${name}.js${version}`);

  // Say in the switch that the device is there, or is not any more, and choose one.
  const offer = (is, chosen) => {
    const choice = document.querySelector(".device-switch select");
    const option = [...(choice?.options ?? [])].find(({ value }) => value === DEVICE);
    if (option && !is) option.remove();
    if (choice && is && !option) choice.add(new Option(LABEL, DEVICE));
    document.dispatchEvent(new CustomEvent("devices", { detail: chosen }));
  };

  // What comes back, or was open beside it, shows what is kept by then.
  const drawn = kept();
  const renew = (is) => is && kept() !== drawn && location.reload();
  window.addEventListener("pageshow", ({ persisted }) => renew(persisted));
  window.addEventListener("storage", ({ key }) => renew(key === KEY || key === null));

  // Their styles are in the site's sheet because a script that every page loads names them.
  const YOURS = { beside: "yours", below: "yours below" };
  window.machine = { DEVICE, LABEL, YOURS, stored, kept, keep, forget, brought, offer };

  document.addEventListener("DOMContentLoaded", async () => {
    const there = (name) => document.querySelector(name) !== null;
    const shown = [".measurement-data", ".measurement-numbers", ".fastest-data", ".roofline-data"];
    const data = there([...shown, ".measurement-names"].join());
    const given = brought() || kept();
    if (kept()) offer(true);
    if (!there(".machine-file, .possible-time") && !(data && given)) return;
    await load("rules");
    await load("record");
    // What cannot be read is said where the field is.
    const read = given && data && window.machine.read(given).catch(() => null);
    window.machine.record = (await read) || null;
    if (window.machine.record) {
      await load("numbers");
      await load("charts");
    }
    if (there(".machine-file")) await load("field");
    if (there(".possible-time") || (window.machine.record && there(".roofline-data"))) {
      await load("roofline");
    }
  });
})();
