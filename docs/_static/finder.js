// A field with a label and a place for results, and where it stands above the lists of a page.
// Without scripts the lists are there, and no field.
(() => {
  "use strict";

  window.finder = ({ name, label, field }) => {
    const form = document.createElement("form");
    form.className = `finder ${name}`;
    const words = document.createElement("label");
    words.htmlFor = name;
    words.textContent = label;
    const input = Object.assign(document.createElement(field.rows ? "textarea" : "input"), field);
    input.id = name;
    input.spellcheck = false;
    const output = document.createElement("output");
    output.htmlFor = name;
    form.append(words, input, output);
    form.addEventListener("submit", (event) => event.preventDefault());
    return { form, input, output };
  };

  // To find something in the lists, below the page's first paragraph.
  window.finderAbove = (list, given) => {
    const { form, input, output } = window.finder(given);
    form.setAttribute("role", "search");
    input.autocomplete = "off";
    const introduction = list.closest("section").parentElement.querySelector(":scope > p");
    introduction.after(form);
    // Where a style sheet has kept the place free.
    introduction.style.marginBottom = "0";
    return { input, output };
  };
})();
