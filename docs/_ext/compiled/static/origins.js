// In a compile view, a line of Python lights up all that it became, and what it became lights up
// the line: under the pointer, and from a tap or the focus on until the next.
document.addEventListener("DOMContentLoaded", () => {
  "use strict";
  // `0*3 6/20,19`: three of nothing, then line 6, called by line 20, and line 19.
  const expanded = (text) => text.split(" ").flatMap((run) => {
    const [origin, times = 1] = run.split("*");
    return Array(Number(times)).fill(origin);
  });
  const read = ({ dataset: { origin } }) => {
    const chains = origin.split(",").map((chain) => chain.split("/"));
    return { own: chains.map(([line]) => line), all: chains.flat() };
  };
  const partsOf = (place) => [...place.querySelectorAll("[data-origin]")];

  // Give an element to each line of a text that comes from somewhere. Marked ones have theirs.
  const markLines = (pre, origins) => {
    pre.innerHTML = pre.innerHTML.split("\n").map((line, number) => {
      const text = line.replace(/^<\/span>/, "").replace('<span class="hll">', "");
      const origin = (origins[number] ?? "0") === "0" ? "" : ` data-origin="${origins[number]}"`;
      const marked = line.includes('<span class="hll">') ? ' class="hll"' : "";
      return origin || marked ? `<span${marked}${origin}>${text}\n</span>` : `${text}\n`;
    }).join("").replace(/\n$/, "");
  };

  for (const view of document.querySelectorAll("[data-first]:has([data-origins])")) {
    for (const block of view.querySelectorAll("[data-origins]")) {
      const origins = expanded(block.dataset.origins);
      const kernels = block.dataset.kernels?.split(" ") ?? [];
      markLines(block.querySelector("pre"), origins);
      block.querySelectorAll("li").forEach(({ dataset }, number) => {
        const origin = origins[kernels[number] - 1];
        if (origin !== "0") dataset.origin = origin;
      });
    }
    const lines = new Set(partsOf(view).flatMap((part) => read(part).all));
    const source = view.querySelector(".compile-source");
    for (const pre of source.querySelectorAll("pre")) {
      const first = pre.closest("details") ? 1 : Number(view.dataset.first);
      const numbers = pre.textContent.split("\n").map((_, number) => String(first + number));
      markLines(pre, numbers.map((number) => (lines.has(number) ? number : "0")));
    }
    const parts = new Map(partsOf(view).map((part) => [part, read(part)]));
    const together = (part) => partsOf(part.closest("pre, ul, svg"));
    // The arrow keys lead from one to the next.
    const reach = (row, by) => row.forEach((part) => { part.tabIndex = part === by ? 0 : -1; });
    for (const row of view.querySelectorAll("pre, ul")) reach(partsOf(row), partsOf(row)[0]);
    const said = source.querySelector(".compile-lit");
    const HINT = said.textContent;
    said.setAttribute("role", "status");

    let [pinned, before] = [null, null];
    const reveal = () => {
      for (const pre of view.querySelectorAll("pre:not(:hover, :focus-within)")) {
        const first = pre.querySelector(".lit")?.getBoundingClientRect();
        const down = first ? first.top - pre.getBoundingClientRect().top : 0;
        if (down < 0 || down > pre.clientHeight - 20) pre.scrollTop += down - 40;
      }
    };
    const light = (part) => {
      const from = parts.get(part) ?? { own: [], all: [] };
      for (const [each, its] of parts) {
        const by = source.contains(each) ? from.all : from.own;
        each.classList.toggle("lit", its.all.some((line) => by.includes(line)));
      }
      const counts = [...view.querySelectorAll(".device-tab")].map((tab) => {
        const [lit, all] = ["li.lit", "li"].map((kind) => tab.querySelectorAll(kind).length);
        return `${tab.previousElementSibling.textContent.trim()} ${lit} of ${all}`;
      });
      said.textContent = part && counts.length ? `Kernels: ${counts.join(", ")}.` : HINT;
      reveal();
    };
    const on = (kind, act) => view.addEventListener(kind, (event) =>
      act(event.target.closest("[data-origin]"), event), kind === "toggle");
    on("pointerover", (part) => light(part ?? pinned));
    on("pointerdown", () => { before = pinned; });
    on("click", (part) => part && light(pinned = part === before ? null : part));
    on("focusin", (part) => part && (reach(together(part), part), light(pinned = part)));
    on("keydown", (part, event) => {
      if (event.key === "Escape") light(pinned = null);
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!part || !step) return;
      event.preventDefault();
      together(part)[together(part).indexOf(part) + step]?.focus();
    });
    for (const shown of ["change", "toggle"]) on(shown, reveal);
    view.addEventListener("pointerleave", () => light(pinned));
  }
});
