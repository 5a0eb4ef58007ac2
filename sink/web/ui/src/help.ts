// Keys, and what they do.

import { byId, el } from "./dom";

export interface Key { keys: string[]; text: string; run?: () => void }

const inPicture: Key[] = [
  { keys: ["←", "→", "↑", "↓"], text: "Move through windows and hops" },
  { keys: ["Home", "End"], text: "Oldest and newest window; with Shift first and last hop" },
  { keys: ["Page ↑", "Page ↓"], text: "A screenful of hops" },
  { keys: ["Enter"], text: "Open the hop" },
];

const onMap: Key[] = [
  { keys: ["←", "→", "↑", "↓"], text: "Move the map" },
  { keys: ["+", "−", "0"], text: "Closer, farther, all of it" },
];

export function bindKeys(keys: Key[]): void {
  const dialog = byId<HTMLDialogElement>("help");
  const rows = (list: Key[]): HTMLElement => el("dl", { class: "keys" }, ...list.flatMap((k) => [el("dt", {}, ...k.keys.map((x) => el("kbd", {}, x))), el("dd", {}, k.text)]));
  dialog.append(
    el("form", { method: "dialog" },
      el("h2", { id: "help-title" }, "Keys"),
      el("div", { class: "help-columns" },
        el("div", {}, el("h3", {}, "Everywhere"), rows([...keys, { keys: ["?"], text: "This list" }, { keys: ["Esc"], text: "Close" }])),
        el("div", {}, el("h3", {}, "In the picture of the network"), rows(inPicture),
          el("h3", {}, "On the map"), rows(onMap),
          el("h3", {}, "How to read the picture"),
          el("p", {}, "A row is a hop: a node and the interface by which packets leave it. A column is a window. The colour is how much; the legend has the units."),
          el("p", {}, "Hatched cells had no report, which is not zero. A line under cells is a finding, the symbol beside the name an open one."))),
      el("p", { class: "dialog-foot" }, el("a", { href: "docs/" }, "Documentation"), el("button", { class: "button primary", value: "close" }, "Close"))));
  const open = (): void => {
    if (!dialog.open) dialog.showModal();
  };
  byId("help-open").addEventListener("click", open);
  dialog.addEventListener("click", (e) => {
    if (e.target === dialog) dialog.close();
  });
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || document.querySelector("dialog[open]")) return;
    const t = e.target;
    if (t instanceof HTMLInputElement || t instanceof HTMLTextAreaElement || t instanceof HTMLSelectElement) {
      if (e.key === "Escape") t.blur();
      return;
    }
    if (e.key === "?") {
      e.preventDefault();
      open();
      return;
    }
    const k = keys.find((x) => x.keys.includes(e.key));
    if (k?.run) {
      e.preventDefault();
      k.run();
    }
  });
}
