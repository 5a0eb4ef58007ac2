// The order of a table: a button in the head of each column, aria-sort, and the page's address (?sort-flows=changes.asc).

import { comparing } from "./compare";
import { byId, el, setAttribute, setText } from "./dom";

// A column without a name cannot be sorted by.
export interface Column { name?: string; text: string; cls?: string; title?: string; ascends?: boolean }

export type Direction = "asc" | "desc";

const words: Record<Direction, string> = { asc: "ascending", desc: "descending" };

export class Sort {
  private name = ""; // "" is the list's own order
  private direction: Direction = "desc";
  private readonly buttons = new Map<string, HTMLButtonElement>();

  // own is the column that the list is sorted by without a choice; "" where its order is that of no column.
  constructor(private readonly table: string, private readonly columns: Column[], private readonly changed: () => void, private readonly own = "") {
    window.addEventListener("popstate", () => {
      const before = `${this.name}.${this.direction}`;
      this.read();
      if (before !== `${this.name}.${this.direction}`) this.changed();
    });
  }

  // row is the head of the table.
  row(): HTMLTableRowElement {
    const row = el("tr", {}, ...this.columns.map((c) => el("th", { scope: "col", class: c.cls, title: c.title }, c.name ? this.button(c) : c.text)));
    this.read();
    return row;
  }

  // bar is a row of buttons, for a list without a head.
  bar(label: string): HTMLElement {
    const bar = el("div", { class: "segmented", role: "group", "aria-label": label }, ...this.columns.map((c) => this.button(c)));
    this.read();
    return bar;
  }

  // query is what the API is asked with.
  get query(): Record<string, string> {
    if (this.name.endsWith("_change") && !comparing()) return this.own ? { sort: this.own } : {}; // nothing is compared
    return this.name ? { sort: this.name, order: this.direction } : this.own ? { sort: this.own } : {};
  }

  // chosen is the column and the direction in force; null for an own order that is of no column.
  get chosen(): { column: Column; direction: Direction } | null {
    const column = this.columns.find((c) => c.name === (this.name || this.own));
    return column ? { column, direction: this.name ? this.direction : usual(column) } : null;
  }

  // note says what the order is; own does so where nothing was chosen.
  note(own: string): string {
    const c = this.name ? this.chosen : null;
    return c ? `sorted by ${title(c.column)}, ${words[c.direction]}` : own;
  }

  private button(c: Column): HTMLButtonElement {
    const b = el("button", { type: "button", class: "sort", title: c.title, click: () => this.choose(c) }, c.text);
    this.buttons.set(c.name ?? "", b);
    return b;
  }

  // choose sorts by a column: in its usual direction at first, then in the other one, then as without a choice.
  private choose(c: Column): void {
    const name = c.name ?? "", now = this.chosen;
    if (now?.column !== c) [this.name, this.direction] = [name, usual(c)];
    else if (now.direction === usual(c)) [this.name, this.direction] = [name, other(usual(c))];
    else this.name = "";
    if (this.name === this.own && this.direction === usual(c)) this.name = "";
    this.write();
    this.show();
    setText(byId("announce"), `${this.table.replace("probed", "probes")} ${this.note("in their own order")}`.replace(/^./, (x) => x.toUpperCase()));
    this.changed();
  }

  private read(): void {
    const [name, direction] = (new URLSearchParams(window.location.search).get(`sort-${this.table}`) ?? "").split(".");
    const column = this.columns.find((c) => c.name && c.name === name);
    this.name = column?.name ?? "";
    if (column) this.direction = direction === "asc" || direction === "desc" ? direction : usual(column);
    this.show();
  }

  private write(): void {
    const q = new URLSearchParams(window.location.search);
    if (this.name) q.set(`sort-${this.table}`, `${this.name}.${this.direction}`);
    else q.delete(`sort-${this.table}`);
    const text = q.toString();
    history.replaceState(null, "", `${window.location.pathname}${text ? `?${text}` : ""}${window.location.hash}`);
  }

  private show(): void {
    const now = this.chosen;
    for (const c of this.columns) {
      const b = this.buttons.get(c.name ?? "");
      if (!b || !c.name) continue;
      const on = now?.column === c;
      setAttribute(b, "data-sort", on ? now.direction : null);
      const head = b.parentElement;
      if (head instanceof HTMLTableCellElement) setAttribute(head, "aria-sort", on ? words[now.direction] : null);
      else {
        setAttribute(b, "aria-pressed", String(on));
        setAttribute(b, "aria-label", on ? `${c.text}, ${words[now.direction]}` : null);
      }
    }
  }
}

const usual = (c: Column): Direction => (c.ascends ? "asc" : "desc");
const other = (d: Direction): Direction => (d === "asc" ? "desc" : "asc");
const title = (c: Column): string => c.text.replace(/,.*/, "");
