// Hops whose records hold no node id: they are those of no node, and apart by exporter and position.

import type { NamelessRow } from "./api";
import { Keyed, byId, el, setHidden, setText } from "./dom";
import { bytes, nanoseconds, short } from "./format";
import { saveButtons, tableOf, type Fields } from "./save";

// What the list is as a file.
const fields: Fields<NamelessRow> = {
  Exporter: (n) => n.exporter, Position: (n) => n.position, Hops: (n) => n.count, "Latency p50 (ns)": (n) => n.latency_p50, "Latency p99 (ns)": (n) => n.latency_p99,
  "Queue p50 (bytes)": (n) => n.queue_p50, "Queue p99 (bytes)": (n) => n.queue_p99,
};

const columns: [string, string, string][] = [
  ["Exporter", "", "Source address of the datagrams"],
  ["Position", "num", "In the list of hops of a report, from 1"],
  ["Hops", "num", "Records of hops in the newest window that had some"],
  ["Latency p50", "num", ""],
  ["p99", "num", "Latency"],
  ["Queue p50", "num", ""],
  ["p99", "num", "Queue"],
];

export class NamelessView {
  private readonly rows: Keyed<NamelessRow, HTMLTableRowElement>;
  private list: NamelessRow[] = [];
  private readonly place = byId("nameless");

  constructor() {
    const body = el("tbody");
    byId("nameless-controls").append(saveButtons(() => "Hops without a node id", { csv: () => tableOf(fields, this.list) }));
    byId("nameless-table").append(el("table", { class: "data nameless-data" },
      el("caption", { class: "hidden" }, "Hops without a node id"),
      el("thead", {}, el("tr", {}, ...columns.map(([text, cls, title]) => el("th", { scope: "col", class: cls, title }, text)))),
      body));
    this.rows = new Keyed(body, (n) => `${n.exporter}\n${n.position}`,
      () => el("tr", {}, el("th", { scope: "row" }), ...columns.slice(1).map(() => el("td", { class: "num" }))), (row, n) => this.update(row, n));
  }

  get shown(): boolean { return !this.place.hidden; }

  set(list: NamelessRow[]): void {
    setHidden(this.place, list.length === 0);
    this.list = list;
    this.rows.set(list);
  }

  private update(row: HTMLTableRowElement, n: NamelessRow): void {
    const other = n.position === "other";
    const texts = [other ? "other" : n.exporter || "the network's packets", other ? "" : n.position, short(n.count),
      nanoseconds(n.latency_p50), nanoseconds(n.latency_p99), bytes(n.queue_p50), bytes(n.queue_p99)];
    texts.forEach((text, i) => { const cell = row.cells[i]; if (cell) setText(cell, text); });
  }
}
