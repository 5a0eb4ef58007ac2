// The slowest hops, and one hop over time.

import { NotFound, ask, type Finding, type HopList, type HopRow, type HopSeries, type Maybe, type Range } from "./api";
import { changeColumns, changeFields, comparedWords, setChanges, type Change } from "./compare";
import { Chart, type Line } from "./chart";
import { aligned } from "./dashboard";
import { Filter, Keyed, Pager, byId, el, setAttribute, setHidden, setText } from "./dom";
import { bytes, hopName, hopWords, moment, nanoseconds, percent, plural, short, span } from "./format";
import { Marks } from "./marks";
import { every, iso, rangeQuery, saveButtons, tableOf, type Fields, type Table } from "./save";
import { Sort, type Column } from "./sort";
import { drawSpark } from "./spark";

const columns: Column[] = [
  { name: "node", text: "Hop", title: "Node and egress interface", ascends: true },
  { name: "latency_p50", text: "p50", cls: "num", title: "Latency, median" },
  { name: "latency_p90", text: "p90", cls: "num", title: "Latency, 90th percentile" },
  { name: "latency_p99", text: "p99", cls: "num", title: "Latency, 99th percentile" },
  { name: "latency_max", text: "Max", cls: "num", title: "Latency, largest" },
  { name: "queue_p99", text: "Queue p99", cls: "num", title: "Queue occupancy, 99th percentile" },
  { name: "tx_utilization_max", text: "Link", cls: "num", title: "Use of the egress link, largest" },
  { text: "Trend", cls: "trend", title: "Of the value that the list is sorted by" },
];

const changes: Change[] = [
  { of: "latency_p50", text: "p50 change", title: "Latency, median", worse: true, unit: "ns", write: nanoseconds },
  { of: "latency_p99", text: "p99 change", title: "Latency, 99th percentile", worse: true, unit: "ns", write: nanoseconds },
  { of: "queue_p99", text: "Queue change", title: "Queue occupancy, 99th percentile", worse: true, unit: "bytes", write: bytes },
  { of: "tx_utilization_max", text: "Link change", title: "Use of the egress link, largest", worse: false, unit: "ratio", write: percent },
];

// What the list is as a file.
const fields = (sort: string): Fields<HopRow> => ({
  Node: (h) => h.node, "Egress interface": (h) => h.egress_if, Name: (h) => hopName(h.node, h.egress_if), "Last seen": (h) => iso(h.last_ms), "Hop records": (h) => h.count,
  "Latency p50 (ns)": (h) => h.latency_ns.p50, "Latency p90 (ns)": (h) => h.latency_ns.p90, "Latency p99 (ns)": (h) => h.latency_ns.p99, "Latency max (ns)": (h) => h.latency_ns.max,
  "Queue p50 (bytes)": (h) => h.queue_bytes.p50, "Queue p99 (bytes)": (h) => h.queue_bytes.p99, "Queue max (bytes)": (h) => h.queue_bytes.max, "Link use max (ratio)": (h) => h.tx_utilization,
  [`Worst ${sort}`]: (h) => h.worst, Learning: (h) => h.learning ?? false, [`Trend of ${sort} by window`]: (h) => h.trend.map((v) => v ?? "").join(" "),
});

// What is usual in an hour takes an hour to see.
const learningWords = "hopscope does not know yet what is usual at this hop: findings about it may be what it does now and then";

export class HopsView {
  private readonly sort = new Sort("hops", [...columns, ...changeColumns(changes)], () => this.filter.apply(), "latency_p99");
  private readonly pager: Pager;
  readonly filter: Filter;
  private readonly none = el("p", { class: "placeholder", hidden: true });
  private readonly rows: Keyed<HopRow, HTMLTableRowElement>;
  private chosen = "";
  private marks = new Marks([]);
  private range: Range | undefined;

  constructor(private readonly open: (node: string, egressIf: string) => void, changed: () => void) {
    this.pager = new Pager(byId("hops-pager"), 8, "hops", changed);
    this.filter = new Filter("hops", this.pager, changed);
    const body = el("tbody");
    byId("hops-controls").append(saveButtons(() => "Slowest hops", { csv: () => this.table() }));
    byId("hops-table").append(
      el("table", { class: "data hops-data" },
        el("caption", { class: "hidden" }, "Hops with latency, queue and link use in the last window"),
        el("thead", {}, this.sort.row()),
        body), this.none);
    this.rows = new Keyed(body, (h) => String(h.id), (h) => this.make(h), (e, h) => this.update(e, h));
  }

  get query(): Record<string, string | number> {
    return { ...this.sort.query, ...this.filter.query };
  }

  private async table(): Promise<Table> {
    const { range } = this, before = this.sort.query;
    const rows = await every(async (q) => {
      const a = await ask<HopList>("hops", { ...this.query, ...before, ...rangeQuery(range), ...q });
      return { total: a.total, rows: a.hops };
    });
    return tableOf({ ...fields(before.sort ?? "latency_p99"), ...changeFields<HopRow>(range, changes) }, rows);
  }

  set(list: HopList, windowMS: number): void {
    this.range = list.range;
    this.rows.set(list.hops);
    this.pager.set(list.total);
    setHidden(this.none, list.total > 0 || !this.filter.text);
    setText(this.none, `No hop matches “${this.filter.text}”.`);
    const over = list.range ? span(list.range.resolution_ms) : `of the last ${span(list.recent_windows * windowMS)}`;
    const chosen = this.sort.note(""), own = /^node$|_change$/.test(this.sort.chosen?.column.name ?? "");
    const order = chosen === "" ? `worst ${over} first` : own ? chosen : `${chosen}, by the worst ${over}`;
    setText(byId("hops-note"), list.total ? `${list.range ? "values of the whole range, " : ""}${order}${comparedWords(list.range, "hop")}` : "");
  }

  mark(findings: Iterable<Finding>): void {
    this.marks = new Marks(findings);
  }

  choose(node: string, egressIf: string): void {
    this.chosen = `${node}/${egressIf}`;
    for (const r of document.querySelectorAll<HTMLElement>(".hops-data tbody tr")) setAttribute(r, "aria-selected", String(r.dataset.hop === this.chosen));
  }

  private make(h: HopRow): HTMLTableRowElement {
    const row = el("tr", { "data-hop": `${h.node}/${h.egress_if}`, click: () => this.open(h.node, h.egress_if) },
      el("th", { scope: "row" }, el("span", { class: "mark", "aria-hidden": "true" }), el("button", { type: "button", class: "link", title: hopWords(h.node, h.egress_if) }, hopName(h.node, h.egress_if)),
      el("span", { class: "learning", title: learningWords, hidden: true }, "learning")));
    for (let i = 0; i < 6; i++) row.append(el("td", { class: "num" }));
    row.append(el("td", { class: "trend" }, el("canvas", { class: "spark", "aria-hidden": "true" })), ...changes.map(() => el("td", { class: "num change" })));
    return row;
  }

  private update(e: HTMLTableRowElement, h: HopRow): void {
    const values = [nanoseconds(h.latency_ns.p50), nanoseconds(h.latency_ns.p90), nanoseconds(h.latency_ns.p99), nanoseconds(h.latency_ns.max), bytes(h.queue_bytes.p99), percent(h.tx_utilization)];
    values.forEach((v, i) => {
      const cell = e.cells[i + 1];
      if (cell) setText(cell, v);
    });
    setChanges(e, changes, h);
    setAttribute(e, "aria-selected", String(e.dataset.hop === this.chosen));
    const level = ["", "info", "warning", "critical"][this.marks.level(h.node, h.egress_if)] ?? "";
    setAttribute(e, "data-level", level || null);
    const learning = e.querySelector<HTMLElement>(".learning");
    if (learning) setHidden(learning, !h.learning);
    const canvas = e.querySelector("canvas");
    if (canvas) drawSpark(canvas, h.trend.slice(-90), Math.min(90, Math.max(30, h.trend.length)));
  }
}

// HopView is the panel of one hop.
export class HopView {
  node = "";
  egressIf = "";
  private readonly latency = new Chart("Latency", "ns", "hop", 178);
  private readonly queue = new Chart("Queue occupancy", "B", "hop", 158);
  private readonly none = el("p", { class: "placeholder" }, "Choose a hop in the picture or in the list.");
  private readonly charts = el("div", { class: "charts" }, this.latency.element, this.queue.element);
  private readonly body = byId("hop-body");

  // zoom is called with a time over which the pointer was dragged.
  constructor(private readonly zoom: (from: number, to: number) => void, add: (node: string, egressIf: string) => void) {
    byId("hop-add").addEventListener("click", () => add(this.node, this.egressIf));
    this.body.append(this.none, this.charts);
    setHidden(this.charts, true);
    this.latency.zoom = this.queue.zoom = (from, to) => this.zoom(from, to);
  }

  choose(node: string, egressIf: string): void {
    this.node = node;
    this.egressIf = egressIf;
    setHidden(byId("hop-add"), node === "" || node === "other");
  }

  restyle(): void {
    if (this.charts.hidden) return;
    this.latency.restyle();
    this.queue.restyle();
  }

  // load shows the hop in a range of the history, or in the present without a query. before is the query of what it is compared with, if anything.
  async load(findings: Iterable<Finding>, now: number, query: Record<string, number> = {}, before: Record<string, number> | null = null): Promise<void> {
    if (this.node === "") return;
    const { node, egressIf } = this;
    let s: HopSeries, earlier: HopSeries | null = null;
    try {
      s = await ask<HopSeries>("hop", { node, egress_if: egressIf, ...query });
    } catch (e) {
      if (!(e instanceof NotFound)) throw e;
      if (node !== this.node || egressIf !== this.egressIf) return;
      setText(byId("hop-title"), `Hop ${hopName(node, egressIf)}`);
      setText(byId("hop-note"), "from" in query ? "not seen in this range" : "not seen in the kept windows");
      setHidden(this.charts, true);
      return;
    }
    if (before) {
      try {
        earlier = await ask<HopSeries>("hop", { node, egress_if: egressIf, ...before });
      } catch (e) {
        if (!(e instanceof NotFound)) throw e;
      }
    }
    if (node !== this.node || egressIf !== this.egressIf) return; // another was chosen meanwhile
    setHidden(this.none, true);
    setHidden(this.charts, false);
    setText(byId("hop-title"), `Hop ${hopName(node, egressIf)}`);
    this.latency.of = this.queue.of = `hop ${hopName(node, egressIf)}`;
    const use = s.hop.tx_utilization === null ? "" : ` · link ${percent(s.hop.tx_utilization)}`;
    const past = s.range !== undefined;
    const compared = !before ? "" : earlier ? " · dashed grey: the day before" : " · nothing is known of the day before";
    if (past) setText(byId("hop-note"), `${short(s.hop.count)} hop records${use} · p50 ${nanoseconds(s.hop.latency_ns.p50)}, p99 ${nanoseconds(s.hop.latency_ns.p99)} of the whole range${compared}`);
    else setText(byId("hop-note"), `${short(s.hop.count)} hop records${use} · last seen ${moment(s.hop.last_ms, now)}${s.hop.learning ? " · still being learnt" : ""}`);
    const found = new Marks(findings).of(node, egressIf);
    const line = (key: string): Maybe[] => s.series[key] ?? [];
    // The day before lies under the same columns.
    const yesterday = (key: string): Line[] => (earlier ? [{ label: "p99 the day before", color: "--text-3", dash: [4, 4], values: aligned(s, earlier, key) }] : []);
    this.latency.set({
      windows: s.windows, past, findings: found.filter((f) => !/queue|utilization/.test(f.kind)),
      lines: [
        ...yesterday("latency_p99"),
        { label: "p50", color: "--line-1", values: line("latency_p50") },
        { label: "p90", color: "--line-2", dash: [5, 3], values: line("latency_p90") },
        { label: "p99", color: "--line-3", width: 2, values: line("latency_p99") },
      ],
    });
    this.queue.set({
      windows: s.windows, past, findings: found.filter((f) => !/latency|utilization/.test(f.kind)),
      lines: [
        ...yesterday("queue_p99"),
        { label: "p50", color: "--line-1", values: line("queue_p50") },
        { label: "p99", color: "--line-3", width: 2, values: line("queue_p99") },
        { label: "max", color: "--line-4", dash: [2, 3], values: line("queue_max") },
      ],
    });
    setAttribute(byId("hop"), "data-windows", plural(s.windows.length, "window"));
  }
}
