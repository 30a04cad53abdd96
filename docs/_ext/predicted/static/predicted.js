// Predict, then look: who picks an answer is told whether it is right, and sees the output.
// Without scripts the answers are a list, and the output is opened by hand.
document.addEventListener("DOMContentLoaded", () => {
  "use strict";
  for (const question of document.querySelectorAll(".predict fieldset")) {
    const answers = [...question.querySelectorAll("button")];
    const output = question.closest(".cell").querySelector("details.predict-output");
    const right = answers[question.dataset.right];
    if (!right) continue;

    const pick = (picked) => {
      if (question.classList.contains("is-answered")) return;
      question.classList.add("is-answered");
      for (const answer of answers) {
        answer.classList.toggle("is-right", answer === right);
        answer.classList.toggle("is-picked", answer === picked);
        answer.setAttribute("aria-disabled", "true");
      }
      const text = right.textContent.trim();
      question.querySelector(".predict-verdict").textContent =
        picked === right ? "Right, as the output shows." : `Not quite. It is: ${text}`;
      output.querySelector(".predict-answer").hidden = true;
      output.querySelector("summary").hidden = true;
      output.open = true;
    };

    question.disabled = false;
    for (const answer of answers) answer.addEventListener("click", () => pick(answer));
  }
});
// On paper nobody opens anything.
(() => {
  "use strict";
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.predict-output:not([open])")];
    for (const output of opened) output.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const output of opened) output.open = false;
  });
})();
