// The planning systems: what each decided, what devices hold of it, and what it brought.

import type { System, SystemList } from "./api";
import { Keyed, byId, el, setAttribute, setHidden, setText } from "./dom";
import { plural } from "./format";
import { saveButtons, tableOf, type Fields } from "./save";

const states: Record<string, string> = {
  "in-force": "In force", changing: "Being installed", waiting: "Waits for approval", planned: "Planned, not carried out", failed: "Failed", unknown: "Not known", off: "Off",
};
const levels: Record<string, string> = { failed: "warning", unknown: "warning", off: "idle", planned: "idle" };

// What the list is as a file.
const fields: Fields<System> = {
  System: (s) => s.title, State: (s) => states[s.state] ?? s.state, Why: (s) => s.why, Decided: (s) => s.decided.join("; "), Installed: (s) => s.installed.join("; "), Brought: (s) => s.brought.join("; "), "To switch it on": (s) => s.switch_on,
};

export class SystemsView {
  private readonly rows: Keyed<System, HTMLTableRowElement>;

  private list: System[] = [];

  constructor() {
    const body = el("tbody");
    byId("systems-controls").append(saveButtons(() => "Plans", { csv: () => tableOf(fields, this.list) }));
    byId("systems-table").append(el("table", { class: "data wide systems-data" },
      el("caption", { class: "hidden" }, "Planning systems, with what each decided, what is installed, and what it brought"),
      el("thead", {}, el("tr", {}, ...["System", "State", "Decided", "Installed", "Brought"].map((text) => el("th", { scope: "col" }, text)))),
      body));
    this.rows = new Keyed(body, (s) => s.system, (s) => this.make(s), (e, s) => this.update(e, s));
  }

  set(list: SystemList): void {
    const on = list.systems.filter((s) => s.state !== "off").length;
    setText(byId("systems-note"), on === 0 ? "none is switched on" : `${plural(on, "system")} of ${list.systems.length} switched on`);
    this.list = list.systems;
    this.rows.set(list.systems);
  }

  private make(s: System): HTMLTableRowElement {
    return el("tr", { "data-system": s.system }, el("th", { scope: "row" }, el("a", { href: `docs/${s.docs}` }, s.title)),
      el("td", { class: "wrap" }, el("span", { class: "system-state" }), el("p", { class: "system-why" }), el("p", { class: "system-on" })),
      ...[0, 1, 2].map(() => el("td", { class: "wrap" }, el("ul", { class: "system-facts" }))));
  }

  private update(row: HTMLTableRowElement, s: System): void {
    const why = row.querySelector<HTMLElement>(".system-why"), on = row.querySelector<HTMLElement>(".system-on"), state = row.querySelector(".system-state");
    if (!why || !on || !state) return;
    setAttribute(row, "data-state", s.state);
    setAttribute(row, "data-level", levels[s.state] ?? null);
    setText(state, states[s.state] ?? s.state);
    setText(why, s.why ?? "");
    setText(on, s.switch_on ? `To switch it on: ${s.switch_on}.` : "");
    setHidden(why, !s.why);
    setHidden(on, !s.switch_on);
    [s.decided, s.installed, s.brought].forEach((facts, i) => {
      const list = row.cells[i + 2]?.querySelector("ul");
      if (list && [...list.children].map((c) => c.textContent).join("\n") !== facts.join("\n")) list.replaceChildren(...facts.map((f) => el("li", {}, f)));
    });
  }
}
