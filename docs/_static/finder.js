// A field above the lists of a page, to find something in them, below the page's first paragraph.
// Without scripts the lists are there, and no field.
(() => {
  "use strict";

  window.finderAbove = (list, { name, label, field }) => {
    const form = document.createElement("form");
    form.className = `finder ${name}`;
    form.setAttribute("role", "search");
    const words = document.createElement("label");
    words.htmlFor = name;
    words.textContent = label;
    const input = Object.assign(document.createElement(field.rows ? "textarea" : "input"), field);
    input.id = name;
    input.autocomplete = "off";
    input.spellcheck = false;
    const output = document.createElement("output");
    output.htmlFor = name;
    form.append(words, input, output);
    form.addEventListener("submit", (event) => event.preventDefault());
    const introduction = list.closest("section").parentElement.querySelector(":scope > p");
    introduction.after(form);
    // Where a style sheet has kept the place free.
    introduction.style.marginBottom = "0";
    return { input, output };
  };
})();
