// A question before what cannot be taken back.

import { el } from "./dom";

// confirmed asks, and answers whether the reader agreed. The focus begins on the button that does nothing, and goes back afterwards.
export function confirmed(question: string, detail: string, action: string): Promise<boolean> {
  const before = document.activeElement;
  const dialog = el("dialog", { class: "help ask", "aria-labelledby": "ask-title", "aria-describedby": "ask-text" },
    el("form", { method: "dialog" }, el("h2", { id: "ask-title" }, question), el("p", { id: "ask-text" }, detail),
      el("p", { class: "dialog-foot" }, el("button", { class: "button", value: "", autofocus: true }, "Cancel"), el("button", { class: "button primary", value: "yes" }, action))));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((answer) => dialog.addEventListener("close", () => {
    dialog.remove();
    if (before instanceof HTMLElement && before.isConnected) before.focus();
    answer(dialog.returnValue === "yes");
  }));
}
