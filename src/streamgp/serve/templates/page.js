// Works without it: parts that take a fit are loaded later, a button says that it is busy, and nothing typed is lost.
"use strict";

for (const part of document.querySelectorAll("[data-load]")) {
  fetch(part.dataset.load, { credentials: "same-origin" })
    .then((answer) => (answer.ok ? answer.text() : Promise.reject(answer.status)))
    .then((text) => { part.innerHTML = text; })
    .catch(() => { part.firstElementChild.textContent = "The model could not be asked. Load the page again."; });
}

let isTyped = false;
let isSent = false;
for (const form of document.forms) {
  form.addEventListener("input", () => { isTyped ||= "keep" in form.dataset; });
  form.addEventListener("submit", (event) => {
    if (isSent) return event.preventDefault();
    isSent = !isTyped || "keep" in form.dataset; // otherwise the browser asks whether to leave what was typed
    if (!isSent) return;
    const button = event.submitter ?? form.querySelector("button");
    setTimeout(() => { button.disabled = true; button.textContent = "One moment …"; });
  });
}
addEventListener("beforeunload", (event) => { if (isTyped && !isSent) event.preventDefault(); });
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
document.querySelector("[aria-invalid]")?.focus();
