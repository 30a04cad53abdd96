// In a compile view, a line of Python lights up all that it became, and what it became lights up
// the line: under the pointer, or for as long as nothing else has had the focus or a tap.
(() => {
  "use strict";
  const HINT = "Point at a line, or tap it: all that it became lights up.";

  // `0*3 6/20,19`: three of nothing, then line 6, called by line 20, and line 19.
  const expanded = (text) => text.split(" ").flatMap((run) => {
    const [origin, times = 1] = run.split("*");
    return Array(Number(times)).fill(origin);
  });
  const read = ({ dataset: { origin } }) => {
    const chains = origin.split(",").map((chain) => chain.split("/"));
    return { own: chains.map(([line]) => line), all: chains.flat() };
  };

  // Give an element to each line of a text that comes from somewhere. Marked ones have theirs.
  const markLines = (pre, origins) => {
    pre.innerHTML = pre.innerHTML.split("\n").map((line, number) => {
      const text = line.replace(/^<\/span>/, "").replace('<span class="hll">', "");
      const origin = (origins[number] ?? "0") === "0" ? "" : ` data-origin="${origins[number]}"`;
      const marked = line.includes('<span class="hll">') ? ' class="hll"' : "";
      return origin || marked ? `<span${marked}${origin}>${text}\n</span>` : `${text}\n`;
    }).join("").trimEnd();
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
    const all = () => [...view.querySelectorAll("[data-origin]")];
    const lines = new Set(all().flatMap((part) => read(part).all));
    const source = view.querySelector(".compile-source");
    for (const pre of source.querySelectorAll("pre")) {
      const first = pre.closest("details") ? 1 : Number(view.dataset.first);
      const numbers = pre.textContent.split("\n").map((_, number) => String(first + number));
      markLines(pre, numbers.map((number) => (lines.has(number) ? number : "0")));
    }
    const parts = new Map(all().map((part) => [part, read(part)]));
    const together = (part) => [...part.closest("pre, ul, svg").querySelectorAll("[data-origin]")];
    for (const part of parts.keys()) {
      if (!part.closest("svg")) part.tabIndex = together(part)[0] === part ? 0 : -1;
    }
    const said = window.book.element("p", { className: "compile-lit", role: "status" }, HINT);
    source.append(said);

    let pinned = null;
    let before = null;
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
        const items = [...tab.querySelectorAll(".compile-kernels li")];
        const lit = items.filter(({ classList }) => classList.contains("lit"));
        return `${tab.previousElementSibling.textContent.trim()} ${lit.length} of ${items.length}`;
      });
      said.textContent = part && counts.length ? `Kernels: ${counts.join(", ")}.` : HINT;
      reveal();
    };
    const pin = (part) => light(pinned = part);
    const on = (kind, act) => view.addEventListener(kind, (event) =>
      act(event.target.closest?.("[data-origin]"), event), kind === "toggle");

    on("pointerover", (part) => light(part ?? pinned));
    on("pointerdown", () => { before = pinned; });
    on("click", (part) => part && pin(part === before ? null : part));
    on("focusin", (part) => {
      if (!part) return;
      for (const each of together(part)) each.tabIndex = each === part ? 0 : -1;
      pin(part);
    });
    on("keydown", (part, event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") pin(null);
      if (!step || !part) return;
      event.preventDefault();
      together(part)[together(part).indexOf(part) + step]?.focus();
    });
    on("change", reveal);
    on("toggle", reveal);
    view.addEventListener("pointerleave", () => light(pinned));
  }
})();
