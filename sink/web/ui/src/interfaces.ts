// What interfaces count: errors and discards, beside their speed, use and queue.

import type { InterfaceList, InterfaceRow, Maybe } from "./api";
import { Filter, Keyed, Pager, byId, el, setAttribute, setHidden, setText } from "./dom";
import { bitRate, bytes, hopName, hopWords, moment, none, percent, plural, short, span } from "./format";

const columns: [string, string][] = [
  ["Speed", "By the inventory, or as the device reports it"],
  ["Use in", "Share of the speed that was in use, received, largest"],
  ["Use out", "Share of the speed that was in use, sent, largest"],
  ["Packets in", "Received whole and passed on"],
  ["Packets out", "To be sent"],
  ["Errors in", "Packets received damaged"],
  ["Errors out", "Packets that could not be sent because of errors"],
  ["Discards in", "Packets received whole and discarded"],
  ["Discards out", "Packets to be sent and discarded, as where a queue is full"],
  ["Queue p99", "Queue occupancy, 99th percentile, largest"],
  ["Last seen", "End of the last window in which counters came"],
];

export class InterfacesView {
  private readonly rows: Keyed<InterfaceRow, HTMLTableRowElement>;
  private readonly pager: Pager;
  readonly filter: Filter;
  private readonly none = el("p", { class: "placeholder", hidden: true });
  private now = 0;

  constructor(private readonly open: (node: string, egressIf: string) => void, changed: () => void) {
    const body = el("tbody");
    byId("interfaces-table").append(el("table", { class: "data interfaces-data" },
      el("caption", { class: "hidden" }, "Interfaces with what they count, those first that damage or discard the greatest share of packets"),
      el("thead", {}, el("tr", {}, el("th", { scope: "col", title: "Node and interface" }, "Interface"), ...columns.map(([text, title]) => el("th", { scope: "col", class: "num", title }, text)))),
      body), this.none);
    this.pager = new Pager(byId("interfaces-pager"), 15, "interfaces", changed);
    this.filter = new Filter("interfaces", this.pager, changed);
    this.rows = new Keyed(body, (x) => `${x.node}/${x.interface}`, (x) => this.make(x), (e, x) => this.update(e, x));
  }

  get query(): Record<string, string | number> {
    return this.filter.query;
  }

  set(list: InterfaceList, windowMS: number, now: number, ofFleet: boolean): void {
    this.now = now;
    const absentAll = list.total === 0 && !this.filter.text;
    setHidden(byId("interfaces"), absentAll);
    setHidden(byId("nav-interfaces"), absentAll);
    setHidden(this.none, list.total > 0);
    setText(this.none, `No interface matches “${this.filter.text}”.`);
    const more = list.total - list.interfaces.length;
    const absent = ofFleet && list.interfaces.some((x) => x.speed_bps === 0) ? " · speeds are those of the console's inventory: what devices report stays at their collectors, which compute the use" : "";
    setText(byId("interfaces-note"), `counters of ${plural(list.total, "interface")}, worst share of errors and discards in the last ${span(list.recent_windows * windowMS)} first${more > 0 ? ` · +${short(more)} not shown` : ""}${absent}`);
    this.rows.set(list.interfaces);
    this.pager.set(list.total);
  }

  private make(x: InterfaceRow): HTMLTableRowElement {
    const row = el("tr", {}, el("th", { scope: "row" }, el("button", { type: "button", class: "link", title: hopWords(x.node, x.interface), click: () => this.open(x.node, x.interface) })));
    for (const _ of columns) row.append(el("td", { class: "num" }));
    return row;
  }

  private update(row: HTMLTableRowElement, x: InterfaceRow): void {
    const name = row.querySelector("button");
    if (name) setText(name, hopName(x.node, x.interface));
    const bad = [x.in_errors, x.out_errors, x.in_discards, x.out_discards];
    const count = (v: Maybe): string => (v === null ? none : short(v));
    const texts = [bitRate(x.speed_bps), percent(x.rx_utilization), percent(x.tx_utilization), count(x.in_packets), count(x.out_packets), ...bad.map(count), bytes(x.queue_p99_bytes), moment(x.last_ms, this.now)];
    texts.forEach((text, i) => {
      const cell = row.cells[i + 1];
      if (cell) setText(cell, text);
    });
    const octets = (i: number, v: Maybe, way: string): void => {
      const cell = row.cells[i];
      if (cell) setAttribute(cell, "title", v === null ? null : `${bytes(v)} ${way}`);
    };
    octets(2, x.in_octets, "received");
    octets(3, x.out_octets, "sent");
    setAttribute(row, "data-level", bad.some((v) => (v ?? 0) > 0) ? "warning" : null);
  }
}
