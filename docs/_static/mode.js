// The theme leaves mode and theme empty until a reader chooses, complains of that in the console,
// and has no colours until its script runs at the end of the page. This says before: as the system.
(() => {
  "use strict";
  const chosen = document.documentElement.dataset;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  chosen.mode ||= "auto";
  chosen.theme ||= dark ? "dark" : "light";
})();
