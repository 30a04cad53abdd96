// The switch in the header: one choice of device for the whole site. sphinx-design switches the
// tabs of a page together and remembers the choice; this lets the switch and the notices take
// part. Without scripts the style sheet shows the outputs of all devices, one under another.
(() => {
  "use strict";
  const KEY = "sphinx-design-tab-id-device";
  document.documentElement.classList.add("with-scripts");

  // Where nothing may be kept, the choice still holds for this page.
  const kept = (action) => {
    try {
      return action(localStorage);
    } catch {
      return null;
    }
  };
  const remember = (device) => kept((storage) => storage.setItem(KEY, device));

  const tabs = () =>
    [...document.querySelectorAll('.sd-tab-label[data-sync-group="device"]')].map((label) => ({
      label,
      input: document.getElementById(label.htmlFor),
      device: label.dataset.syncId,
    }));

  document.addEventListener("DOMContentLoaded", () => {
    const chooser = document.querySelector(".device-switch select");

    const show = (device) => {
      for (const notice of document.querySelectorAll("[data-device]")) {
        notice.hidden = notice.dataset.device !== device;
      }
      for (const tab of tabs()) {
        if (tab.device === device) tab.input.checked = true;
      }
      if (chooser && [...chooser.options].some((option) => option.value === device)) {
        chooser.value = device;
        // The device of the build comes first. Its numbers need no name for who reads about it.
        const elsewhere = device !== chooser.options[0].value;
        document.documentElement.classList.toggle("elsewhere", elsewhere);
      }
    };

    // Tabs above may grow or shrink: what was just used stays where it is on the screen.
    const choose = (device, used) => {
      const top = used.getBoundingClientRect().top;
      remember(device);
      show(device);
      window.scrollBy({ top: used.getBoundingClientRect().top - top, behavior: "instant" });
    };

    if (chooser) {
      chooser.closest(".device-switch").hidden = false;
      chooser.addEventListener("change", () => choose(chooser.value, chooser));
    }
    // Before sphinx-design has switched the other tabs, and the page has moved.
    const use = ({ target }) => {
      const used = tabs().find(({ input }) => input === target);
      if (used) choose(used.device, used.label);
    };
    document.addEventListener("change", use, { capture: true });
    const device = kept((storage) => storage.getItem(KEY));
    // What was chosen once may not be there any more.
    const known = [...(chooser?.options ?? [])].some(({ value }) => value === device);
    if (device && (known || !chooser)) show(device);
    window.addEventListener("storage", (event) => {
      if (event.key === KEY && event.newValue) show(event.newValue);
    });
  });
})();
