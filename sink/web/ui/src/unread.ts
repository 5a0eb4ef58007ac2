// Exporters whose datagrams no profile reads, with a sample of each to download.

import type { UnreadList, UnreadRow } from "./api";
import { Keyed, byId, el, setAttribute, setHidden, setText } from "./dom";
import { plural, short } from "./format";
import { saveButtons, tableOf, type Fields } from "./save";

// What the list is as a file.
const fields: Fields<UnreadRow> = { "Exporter or metric": (u) => u.address, Number: (u) => u.count, "The number is a lower bound": (u) => u.at_least ?? false, "What is known of them": (u) => u.text };

export class UnreadView {
  private readonly rows: Keyed<UnreadRow, HTMLTableRowElement>;

  private list: UnreadRow[] = [];

  constructor() {
    const body = el("tbody");
    byId("unread-controls").append(saveButtons(() => "Not understood", { csv: () => tableOf(fields, this.list) }));
    byId("unread-table").append(el("table", { class: "data unread-data" },
      el("caption", { class: "hidden" }, "Exporters whose datagrams no profile reads, and metrics that are not counted"),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Exporter or metric"), el("th", { scope: "col", class: "num", title: "Datagrams or data points that were not read" }, "Number"),
        el("th", { scope: "col" }, "What is known of them"), el("th", { scope: "col", title: "The beginning of one of them, without what users sent" }, "Sample"))),
      body));
    this.rows = new Keyed(body, (u) => u.address, () => this.make(), (e, u) => this.update(e, u));
  }

  set(list: UnreadList): void {
    setHidden(byId("unread"), list.total === 0);
    const more = list.total - list.exporters.length;
    setText(byId("unread-note"), `${plural(list.total, "entry", "entries")}: exporters whose datagrams no profile reads, and metrics that are not counted${more > 0 ? ` · +${short(more)} not shown` : ""}`);
    this.list = list.exporters;
    this.rows.set(list.exporters);
  }

  private make(): HTMLTableRowElement {
    return el("tr", {}, el("th", { scope: "row" }), el("td", { class: "num" }), el("td"), el("td", {}, el("a", { download: "" }, "Download")));
  }

  private update(row: HTMLTableRowElement, u: UnreadRow): void {
    const [address, count, text] = row.cells;
    const link = row.querySelector("a");
    if (!address || !count || !text || !link) return;
    setText(address, u.address);
    setText(count, u.at_least ? `at least ${short(u.count)}` : short(u.count));
    setText(text, u.text);
    setHidden(link, !u.sample);
    setAttribute(link, "href", `/api/sample?address=${encodeURIComponent(u.address)}`);
    setAttribute(link, "aria-label", `Download a sample of ${u.address}`);
  }
}
