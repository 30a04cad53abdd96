// What axe says of the page with all that is folded opened and all tabs shown, because it passes
// over what nobody sees; and the theme that is shown.
// Of the words of a kind in code, which look the same wherever they are, three remain; the others
// lose their element, because it is their number that takes time.
const unfold = async () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  for (const content of document.querySelectorAll(".sd-tab-content")) {
    content.style.setProperty("display", "block", "important");
  }
  // The page then makes what scrolls reachable by keyboard, in a moment, or on a busy machine later,
  // once its script listens.
  const scrolls = (e) => e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight;
  const missed = (e) => e.tabIndex < 0 && scrolls(e);
  const all = [...document.querySelectorAll("pre, .pst-scrollable-table-container, .output")];
  for (let wait = 0; wait < 40 && all.some(missed); wait++) {
    // Now and then: it waits for a pause between two of them.
    if (wait % 10 === 0) dispatchEvent(new Event("resize"));
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
};
window.violations = async () => {
  // A sidebar slides in or out where the width has changed.
  for (const animation of document.getAnimations()) animation.finish();
  await unfold();
  const seen = new Map();
  const kinds = new Map([[document.body, ""]]);
  const kind = (element) => {
    if (!kinds.has(element)) {
      const own = `${element.className} ${element.getAttribute("style") ?? ""}`;
      kinds.set(element, `${kind(element.parentElement)}>${own}`);
    }
    return kinds.get(element);
  };
  const enough = (word) => {
    if (!word.checkVisibility()) return true;
    seen.set(kind(word), (seen.get(kind(word)) ?? 0) + 1);
    return seen.get(kind(word)) > 3;
  };
  const words = [...document.querySelectorAll(".highlight pre span:not(:has(*))")];
  for (const word of words.filter(enough)) word.replaceWith(...word.childNodes);
  const { violations: found } = await axe.run({ resultTypes: ["violations"], preload: false });
  return [
    document.documentElement.dataset.theme,
    found.map(({ id, nodes }) => `${id} (${nodes.length}) ${nodes[0].target[0]}`),
  ];
};
