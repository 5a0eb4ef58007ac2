// What interfaces count: errors and discards, beside their speed, use and queue.

import { ask, type InterfaceList, type InterfaceRow, type Maybe, type Range } from "./api";
import { changeColumns, changeFields, comparedWords, setChanges, type Change } from "./compare";
import { Filter, Keyed, Pager, byId, el, setAttribute, setHidden, setText } from "./dom";
import { bitRate, bytes, during, hopName, hopWords, moment, none, percent, plural, short } from "./format";
import { every, iso, rangeQuery, saveButtons, tableOf, type Fields, type Table } from "./save";
import { Sort, type Column } from "./sort";

const columns: Column[] = [
  { name: "speed_bps", text: "Speed", cls: "num", title: "By the inventory, or as the device reports it" },
  { name: "rx_utilization", text: "Use in", cls: "num", title: "Share of the speed that was in use, received, largest" },
  { name: "tx_utilization", text: "Use out", cls: "num", title: "Share of the speed that was in use, sent, largest" },
  { name: "in_packets", text: "Packets in", cls: "num", title: "Received whole and passed on" },
  { name: "out_packets", text: "Packets out", cls: "num", title: "To be sent" },
  { name: "in_errors", text: "Errors in", cls: "num", title: "Packets received damaged" },
  { name: "out_errors", text: "Errors out", cls: "num", title: "Packets that could not be sent because of errors" },
  { name: "in_discards", text: "Discards in", cls: "num", title: "Packets received whole and discarded" },
  { name: "out_discards", text: "Discards out", cls: "num", title: "Packets to be sent and discarded, as where a queue is full" },
  { name: "queue_p99_bytes", text: "Queue p99", cls: "num", title: "Queue occupancy, 99th percentile, largest" },
  { name: "last_ms", text: "Last seen", cls: "num", title: "End of the last window in which counters came" },
];

const changes: Change[] = [
  { of: "tx_utilization", text: "Use change", title: "Share of the speed that was in use, sent, largest", worse: false, unit: "ratio", write: percent },
  { of: "in_errors", text: "Errors in, change", title: "Packets received damaged", worse: true, unit: "number", write: short },
  { of: "out_errors", text: "Errors out, change", title: "Packets that could not be sent because of errors", worse: true, unit: "number", write: short },
  { of: "in_discards", text: "Discards in, change", title: "Packets received whole and discarded", worse: true, unit: "number", write: short },
  { of: "out_discards", text: "Discards out, change", title: "Packets to be sent and discarded", worse: true, unit: "number", write: short },
];

// What the list is as a file.
const fields: Fields<InterfaceRow> = {
  Node: (x) => x.node, Interface: (x) => x.interface, Name: (x) => hopName(x.node, x.interface), "Speed (bit/s)": (x) => x.speed_bps || null,
  "Use in (ratio)": (x) => x.rx_utilization, "Use out (ratio)": (x) => x.tx_utilization, "Packets in": (x) => x.in_packets, "Packets out": (x) => x.out_packets,
  "Bytes in": (x) => x.in_octets, "Bytes out": (x) => x.out_octets, "Errors in": (x) => x.in_errors, "Errors out": (x) => x.out_errors, "Discards in": (x) => x.in_discards, "Discards out": (x) => x.out_discards,
  "Queue p99 (bytes)": (x) => x.queue_p99_bytes, "Last seen": (x) => iso(x.last_ms),
};

export class InterfacesView {
  private readonly rows: Keyed<InterfaceRow, HTMLTableRowElement>;
  private readonly pager: Pager;
  readonly filter: Filter;
  private readonly sort = new Sort("interfaces", [{ name: "interface", text: "Interface", title: "Node and interface", ascends: true }, ...columns, ...changeColumns(changes)], () => this.filter.apply());
  private readonly none = el("p", { class: "placeholder", hidden: true });
  private now = 0;
  private range: Range | undefined;

  constructor(private readonly open: (node: string, egressIf: string) => void, changed: () => void) {
    const body = el("tbody");
    byId("interfaces-controls").append(saveButtons(() => "Interfaces", { csv: () => this.table() }));
    byId("interfaces-table").append(el("table", { class: "data interfaces-data" },
      el("caption", { class: "hidden" }, "Interfaces with what they count"),
      el("thead", {}, this.sort.row()),
      body), this.none);
    this.pager = new Pager(byId("interfaces-pager"), 15, "interfaces", changed);
    this.filter = new Filter("interfaces", this.pager, changed);
    this.rows = new Keyed(body, (x) => `${x.node}/${x.interface}`, (x) => this.make(x), (e, x) => this.update(e, x));
  }

  get query(): Record<string, string | number> {
    return { ...this.sort.query, ...this.filter.query };
  }

  private async table(): Promise<Table> {
    const { range } = this;
    const rows = await every(async (q) => {
      const a = await ask<InterfaceList>("interfaces", { ...this.query, ...rangeQuery(range), ...q });
      return { total: a.total, rows: a.interfaces };
    });
    return tableOf({ ...fields, ...changeFields<InterfaceRow>(range, changes) }, rows);
  }

  set(list: InterfaceList, windowMS: number, now: number, ofFleet: boolean): void {
    this.range = list.range;
    this.now = now;
    const absentAll = list.total === 0 && !this.filter.text;
    setHidden(byId("interfaces"), absentAll);
    setHidden(byId("nav-interfaces"), absentAll);
    setHidden(this.none, list.total > 0);
    setText(this.none, `No interface matches “${this.filter.text}”.`);
    const more = list.total - list.interfaces.length;
    const absent = ofFleet && list.interfaces.some((x) => x.speed_bps === 0) ? " · speeds are those of the console's inventory: what devices report stays at their collectors, which compute the use" : "";
    setText(byId("interfaces-note"), `counters of ${plural(list.total, "interface")} ${during(list, windowMS)}, ${this.sort.note("worst share of errors and discards first")}${more > 0 ? ` · +${short(more)} not shown` : ""}${comparedWords(list.range, "interface")}${absent}`);
    this.rows.set(list.interfaces);
    this.pager.set(list.total);
  }

  private make(x: InterfaceRow): HTMLTableRowElement {
    const row = el("tr", {}, el("th", { scope: "row" }, el("button", { type: "button", class: "link", title: hopWords(x.node, x.interface), click: () => this.open(x.node, x.interface) })));
    for (const _ of columns) row.append(el("td", { class: "num" }));
    row.append(...changes.map(() => el("td", { class: "num change" })));
    return row;
  }

  private update(row: HTMLTableRowElement, x: InterfaceRow): void {
    const name = row.querySelector("button");
    if (name) setText(name, hopName(x.node, x.interface));
    const bad = [x.in_errors, x.out_errors, x.in_discards, x.out_discards];
    const count = (v: Maybe): string => (v === null ? none : short(v));
    const texts = [bitRate(x.speed_bps), percent(x.rx_utilization), percent(x.tx_utilization), count(x.in_packets), count(x.out_packets), ...bad.map(count), bytes(x.queue_p99_bytes), (x.last_ms ? moment(x.last_ms, this.now) : none)];
    texts.forEach((text, i) => {
      const cell = row.cells[i + 1];
      if (cell) setText(cell, text);
    });
    setChanges(row, changes, x);
    const octets = (i: number, v: Maybe, way: string): void => {
      const cell = row.cells[i];
      if (cell) setAttribute(cell, "title", v === null ? null : `${bytes(v)} ${way}`);
    };
    octets(2, x.in_octets, "received");
    octets(3, x.out_octets, "sent");
    setAttribute(row, "data-level", bad.some((v) => (v ?? 0) > 0) ? "warning" : null);
  }
}
