// What axe says of the page as it is shown now, and the theme that is shown.
// Of the words of a kind in code, which look the same wherever they are, three remain; the others
// lose their element, because it is their number that takes time.
window.violations = async () => {
  for (const animation of document.getAnimations()) animation.finish();
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
