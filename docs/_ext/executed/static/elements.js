// What the scripts of pages share: elements, fields with an answer below, and scripts that come
// later. Without scripts the lists of a page are there, and no field.
window.book = (() => {
  "use strict";

  const element = (tag, given = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), given);
    made.append(...children);
    return made;
  };

  // Load a script of the site, and wait until it has run.
  const load = (path) =>
    new Promise((resolve, reject) => {
      const src = document.documentElement.dataset.content_root + path;
      document.head.append(element("script", { src, onload: resolve, onerror: reject }));
    });

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
    const introduction = list.closest("section").parentElement.querySelector(":scope > p");
    introduction.after(form);
    // Where a style sheet has kept the place free.
    introduction.style.marginBottom = "0";
    return { input, output };
  };

  return { element, load, field, fieldAbove };
})();
