// Menus and hints of the theme need Bootstrap's script. It is loaded when somebody first points at
// one of them, reaches it with the keyboard, or touches it. The button to the top works without.
(() => {
  "use strict";
  const NEEDS = "[data-bs-toggle]";
  let loading;
  const load = () => (loading ??= window.book.load("_static/scripts/bootstrap.js"));

  const wanted = (event) => event.target.closest?.(NEEDS);

  for (const kind of ["pointerover", "focusin"]) {
    document.addEventListener(kind, async (event) => {
      const element = wanted(event);
      if (!element || window.bootstrap) return;
      await load();
      const hint = bootstrap.Tooltip.getInstance(element);
      if (hint && element.matches(":hover, :focus-visible")) hint.show();
    });
  }

  document.addEventListener("click", async (event) => {
    const toggle = event.target.closest?.('[data-bs-toggle="dropdown"]');
    if (!toggle || window.bootstrap) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    await load();
    bootstrap.Dropdown.getOrCreateInstance(toggle).toggle();
  }, true);

  // The theme scrolls the sidebar to where it was on the page before. Where the page that is shown
  // isn't in view there, the sidebar goes on to it.
  const follow = () => {
    const sidebar = document.querySelector(".bd-sidebar-primary");
    const link = [...document.querySelectorAll(".bd-docs-nav .active > a")].at(-1);
    if (!sidebar || matchMedia("(width < 960px)").matches) return;
    if (!link) return sidebar.scrollTo(0, 0);
    const [inside, around] = [link, sidebar].map((each) => each.getBoundingClientRect());
    sidebar.scrollLeft = 0;
    if (inside.top < around.top || inside.bottom > Math.min(around.bottom, innerHeight)) {
      sidebar.scrollTop += inside.top - around.top - around.height / 3;
    }
  };
  document.addEventListener("DOMContentLoaded", () => requestAnimationFrame(follow));

  // The book's menu of a phone opens at the page that is shown. The theme opens it, and lets nobody
  // else hear of the click.
  const showPage = () => {
    const chosen = document.querySelectorAll("dialog[open] .bd-docs-nav .active > a");
    [...chosen].at(-1)?.scrollIntoView({ block: "center", behavior: "instant" });
  };
  document.addEventListener("click", (event) => {
    if (event.target.closest?.(".primary-toggle")) requestAnimationFrame(showPage);
  }, true);

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("pst-back-to-top");
    if (!button) return;
    let former = window.scrollY;
    button.addEventListener("click", () => window.scrollTo(0, 0));
    window.addEventListener("scroll", () => {
      const below = document.querySelector(".bd-header").getBoundingClientRect().bottom;
      const shown = former > window.scrollY && window.scrollY > below;
      button.style.display = shown ? "block" : "none";
      former = window.scrollY;
    }, { passive: true });
  });
})();
