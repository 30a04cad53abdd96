// A field on the first page for an error or a log, which the page that can read it gets.
(() => {
  "use strict";

  const LOG = /TRACING CACHE MISS|Finished (?:tracing|jaxpr|XLA)|Compiling \S+ with global shapes/;

  document.addEventListener("DOMContentLoaded", () => {
    const place = document.querySelector(".paste-here");
    const [errors, logs] = place.querySelectorAll("a");
    const label = "Paste an error message, a traceback, or a log of what was compiled";
    const { form, input } = window.book.field("paste-anything", label, { rows: 3 });
    form.append(window.book.element("button", { className: "sd-btn sd-btn-primary" }, "Look it up"));
    form.addEventListener("submit", () => {
      const text = input.value.trim();
      const [page, field] = LOG.test(text) ? [logs, "log-reader"] : [errors, "error-finder"];
      if (text) location.href = `${page.href}#${field}=${encodeURIComponent(text)}`;
    });
    place.before(form);
    // The style sheet has kept its place free.
    place.style.marginTop = "0";
  });
})();
