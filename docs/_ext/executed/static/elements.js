// What the scripts of pages share: elements, fields with an answer below, and scripts that come
// later. Without scripts the lists of a page are there, and no field.
window.book = (() => {
  "use strict";

  const element = (tag, given = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), given);
    made.append(...children);
    return made;
  };

  // The address of a file of the site.
  const at = (path) => (document.documentElement.dataset.content_root ?? "") + path;

  // Load a script of the site, once, and wait until it has run.
  const loads = new Map();
  const load = (path) => {
    const loading = (resolve, reject) => {
      const src = at(path);
      document.head.append(element("script", { src, onload: resolve, onerror: reject }));
    };
    if (!loads.has(path)) loads.set(path, new Promise(loading));
    return loads.get(path);
  };

  const field = (name, label, given) => {
    const kind = given.rows ? "textarea" : "input";
    const input = element(kind, { id: name, spellcheck: false, ...given });
    const output = element("output", { htmlFor: name });
    const words = element("label", { htmlFor: name, textContent: label });
    const form = element("form", { className: `finder ${name}` }, words, input, output);
    form.addEventListener("submit", (event) => event.preventDefault());
    // What another page hands over, behind the field's name: it is nothing to keep in an address.
    const handed = `#${name}=`;
    if (location.hash.startsWith(handed)) {
      input.value = decodeURIComponent(location.hash.slice(handed.length));
      history.replaceState(null, "", "#");
      queueMicrotask(() => input.dispatchEvent(new Event("input")));
    }
    return { form, input, output };
  };

  // A field below a page's first paragraph, to find something in the lists of its sections.
  const fieldAbove = (list, ...given) => {
    const { form, input, output } = field(...given);
    form.setAttribute("role", "search");
    input.autocomplete = "off";
    const above = list.closest("section").parentElement;
    const introduction = above.querySelector(":scope > p:not(.device-notice)");
    introduction.after(form);
    // Where a style sheet has kept the place free.
    introduction.style.marginBottom = "0";
    return { input, output };
  };

  // Of the numbers of a paragraph, a table or a drawing one is a stop for Tab: the first, or where
  // somebody was. Arrow keys go on from there to the others. Without scripts each is a stop.
  const STOPS = ":is(.noted > [tabindex], .point[tabindex])";
  const group = (stop) => stop.closest("svg, table") ?? stop.closest("p, li, dd, section");
  const rove = () => {
    const seen = new Set();
    for (const stop of document.querySelectorAll(STOPS)) {
      stop.setAttribute("tabindex", seen.has(group(stop)) ? -1 : 0);
      seen.add(group(stop));
    }
  };
  document.addEventListener("DOMContentLoaded", rove);
  document.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey || !event.target.matches?.(STOPS)) return;
    const stops = [...group(event.target).querySelectorAll(STOPS)];
    const next = stops[stops.indexOf(event.target) + step];
    event.preventDefault();
    if (!next) return;
    event.target.setAttribute("tabindex", -1);
    next.setAttribute("tabindex", 0);
    next.focus();
  });

  return { element, at, load, field, fieldAbove };
})();
