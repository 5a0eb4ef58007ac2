// The busiest flows and the way they take through the network.

import { NotFound, ask, type FlowHop, type FlowList, type FlowRow, type FlowSeries } from "./api";
import { Chart } from "./chart";
import type { Panel } from "./dashboard";
import { Filter, Keyed, Pager, byId, el, setAttribute, setHidden, setText } from "./dom";
import { bytes, clock, interfaceName, moment, nanoseconds, nanosecondsWithin, nodeName, nodeShort, hopWords, plural, short, span } from "./format";
import { severalWords } from "./paths";
import { every, iso, saveButtons, tableOf, type Fields } from "./save";
import { Sort, type Column } from "./sort";
import { drawSpark } from "./spark";

const columns: Column[] = [
  { name: "key", text: "Flow", ascends: true },
  { name: "packets", text: "Reports", cls: "num" },
  { text: "Trend", cls: "trend" },
  { name: "latency_p99_ns", text: "Path, with latency p99 in each node", title: "Sorted by the slowest node of the path, latency p99" },
  { name: "changes", text: "Path changes" },
];

// What the list is as a file.
const fields: Fields<FlowRow> = {
  Flow: (f) => f.key, Reports: (f) => f.packets, Bytes: (f) => f.octets, "Last seen": (f) => iso(f.last_ms), "Path changes": (f) => f.changes, "Last change": (f) => iso(f.changed_ms),
  Path: (f) => f.path.map((p) => nodeName(p.node || "?")).join(" > "), "Path before": (f) => (f.before ?? []).map(nodeName).join(" > "),
  "Egress interfaces": (f) => f.path.map((p) => p.egress_if ?? "").join(" "), "Latency p50 by node (ns)": (f) => f.path.map((p) => p.latency_p50_ns ?? "").join(" "),
  "Latency p99 by node (ns)": (f) => f.path.map((p) => p.latency_p99_ns ?? "").join(" "), "Error of latency p99 by node (ratio)": (f) => f.path.map((p) => p.latency_p99_error ?? "").join(" "),
  "Queue p99 by node (bytes)": (f) => f.path.map((p) => p.queue_p99_bytes ?? "").join(" "), "Other paths": (f) => (f.several ? severalWords(f.several) : ""), Seen: (f) => (f.seen ? seenWords(f) : ""),
  "Reports by window": (f) => f.trend.map((v) => v ?? "").join(" "),
};

const lineColors = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"];

export class FlowsView {
  private readonly pager: Pager;
  private readonly rows: Keyed<FlowRow, HTMLTableSectionElement>;
  readonly filter: Filter;
  private readonly sort = new Sort("flows", columns, () => this.filter.apply());
  private readonly none = el("p", { class: "placeholder" });
  private readonly chart = new Chart("Latency p99 by hop", "ns", "flow", 150);
  private readonly changes = el("div", { class: "flow-changes" });
  private readonly detail = el("tr", { class: "flow-detail" }, el("td", { colspan: 5 }, el("div", { class: "flow-detail-body" }, this.chart.element, this.changes)));
  private opened = "";
  private wanted = ""; // the flow to open

  constructor(private readonly openHop: (node: string, egressIf: string) => void, private readonly changed: () => void, private readonly add: (p: Panel) => void) {
    this.pager = new Pager(byId("flows-pager"), 10, "flows", changed);
    this.filter = new Filter("flows", this.pager, changed);
    byId("flows-controls").append(saveButtons(() => "Flows", {
      csv: async () => tableOf(fields, await every(async (q) => {
        const a = await ask<FlowList>("flows", { ...this.query, ...q });
        return { total: a.total, rows: a.flows };
      })),
    }));
    const table = el("table", { class: "data flows-data" },
      el("caption", { class: "hidden" }, "Flows with the nodes of their path"), el("thead", {}, this.sort.row()));
    byId("flows-table").append(table, this.none);
    this.rows = new Keyed(table, (f) => f.key, (f) => this.make(f), (e, f) => this.update(e, f), table.tHead);
  }

  get query(): Record<string, string | number> {
    return { ...this.sort.query, ...this.filter.query };
  }

  set(list: FlowList, windowMS: number): void {
    this.rows.set(list.flows);
    this.pager.set(list.total);
    setText(byId("flows-note"), list.total ? this.sort.note(`busiest of the last ${span(list.recent_windows * windowMS)}`) : "");
    setHidden(this.none, list.flows.length > 0);
    setText(this.none, list.range ? "The history keeps hops, interfaces, exporters and probes, and no flows." : this.filter.text ? `No flow matches “${this.filter.text}”.` : "No flow in the kept windows. Reports without a flow (queue reports, probes) do not show here.");
    if (this.opened && !list.flows.some((f) => f.key === this.opened)) this.close();
    if (this.wanted && list.flows.some((f) => f.key === this.wanted)) {
      const body = [...this.rows.elements].find(([key]) => key === this.wanted)?.[1];
      this.wanted = "";
      if (body && this.opened !== body.dataset.key) this.toggle(body, body.dataset.key ?? "");
    }
  }

  // load fetches what the opened flow shows.
  async load(now: number): Promise<void> {
    const key = this.opened;
    if (!key) return;
    let s: FlowSeries;
    try {
      s = await ask<FlowSeries>("flow", { key });
    } catch (e) {
      if (e instanceof NotFound) this.close();
      else throw e;
      return;
    }
    if (key !== this.opened) return;
    this.chart.of = key;
    this.chart.set({
      windows: s.windows, findings: [], marks: s.changes.map((c) => c.ms),
      lines: s.positions.slice(0, lineColors.length).map((p, i) => ({
        label: `${i + 1}. node ${nodeName(p.node)}`, color: lineColors[i] ?? "--line-1", values: p.latency_p99_ns, ...(i % 2 ? { dash: [5, 3] } : {}),
      })),
    });
    const more = s.positions.length - lineColors.length;
    this.changes.replaceChildren(
      el("h3", {}, s.changes.length ? "Path changes, latest first" : "No path change in the kept time"),
      el("ol", {}, ...s.changes.toReversed().slice(0, 8).map((c) => el("li", {}, el("span", { class: "quiet" }, moment(c.ms, now)), " ",
        c.from?.length ? el("s", {}, c.from.map(nodeName).join(" › ")) : "", c.from?.length ? " → " : "", el("span", {}, (c.to ?? []).map(nodeName).join(" › "))))),
      el("p", { class: "flow-add" }, el("button", { type: "button", class: "button small", click: () => this.add({ kind: "flow", of: [key], show: "latency" }) }, "Add flow to dashboard"),
        pathOf(s.flow) ? el("button", { type: "button", class: "button small", click: () => this.addPath(s.flow) }, "Add its path") : ""),
      more > 0 ? el("p", { class: "quiet" }, `The first ${lineColors.length} of ${s.positions.length} hops are drawn.`) : "",
    );
  }

  private addPath(f: FlowRow): void {
    const p = pathOf(f);
    if (p) this.add(p);
  }

  restyle(): void {
    if (this.opened) this.chart.restyle();
  }

  // show opens a flow as soon as it is in the list.
  show(key: string): void {
    this.wanted = key;
    this.filter.set(key);
    this.changed();
  }

  private close(): void {
    this.detail.parentElement?.querySelector("button")?.setAttribute("aria-expanded", "false");
    this.detail.remove();
    this.opened = "";
  }

  private toggle(body: HTMLElement, key: string): void {
    const same = this.opened === key;
    this.close();
    if (same) return;
    this.opened = key;
    body.append(this.detail);
    body.querySelector("button")?.setAttribute("aria-expanded", "true");
    this.changed();
  }

  private make(f: FlowRow): HTMLTableSectionElement {
    const [ends, proto] = splitKey(f.key);
    const body = el("tbody", { "data-key": f.key });
    body.append(
      el("tr", {},
        el("th", { scope: "row" }, el("button", { type: "button", class: "flow-key", "aria-expanded": "false", title: "Show this flow over time", click: () => this.toggle(body, f.key) },
          el("span", { class: "flow-end" }, ends[0] ?? ""), ends[1] ? el("span", { class: "flow-end" }, el("i", { "aria-label": "to" }, "→"), ends[1]) : "", proto ? el("span", { class: "proto" }, proto) : "")),
        el("td", { class: "num" }),
        el("td", { class: "trend" }, el("canvas", { class: "spark", "aria-hidden": "true" })),
        el("td", {}, el("ol", { class: "path" }), el("p", { class: "several", hidden: true }), el("p", { class: "several seen", hidden: true })),
        el("td", { class: "changes" })));
    return body;
  }

  private update(body: HTMLTableSectionElement, f: FlowRow): void {
    const cells = body.rows[0]?.cells;
    const path = body.querySelector("ol");
    const canvas = body.querySelector<HTMLCanvasElement>("canvas.spark");
    if (!cells?.[1] || !cells[4] || !path) return;
    setText(cells[1], short(f.packets));
    if (canvas) drawSpark(canvas, f.trend.slice(-60), Math.min(60, Math.max(20, f.trend.length)));
    this.updatePath(path, f.path);
    const several = body.querySelector<HTMLElement>(".several");
    if (several) {
      setHidden(several, !f.several);
      setText(several, f.several ? severalWords(f.several) : "");
    }
    const seen = body.querySelector<HTMLElement>(".seen");
    if (seen) {
      setHidden(seen, !f.seen);
      setText(seen, f.seen ? seenWords(f) : "");
    }
    const changes = cells[4];
    setText(changes, f.changes === 0 ? "none" : `${plural(f.changes, "change")}${f.changed_ms ? `, last ${clock(f.changed_ms)}` : ""}`);
    setAttribute(changes, "class", f.changes === 0 ? "changes zero" : "changes changed");
    setAttribute(changes, "title", f.before?.length ? `before: ${f.before.map(nodeName).join(" › ")}` : null);
    setAttribute(body, "class", f.changes > 0 ? "has-changes" : null);
  }

  private updatePath(list: HTMLOListElement, path: FlowHop[]): void {
    while (list.children.length > path.length) list.lastElementChild?.remove();
    while (list.children.length < path.length) {
      const li = el("li", {}, el("button", { type: "button", class: "node", click: () => this.openHop(li.dataset.node ?? "", li.dataset.if ?? "") }), el("span", { class: "node-latency" }));
      list.append(li);
    }
    // One hop stands out when it alone makes most of the way's time.
    const total = path.reduce((sum, p) => sum + (p.latency_p99_ns ?? 0), 0);
    path.forEach((p, i) => {
      const li = list.children[i];
      if (!(li instanceof HTMLLIElement) || !li.children[0] || !li.children[1]) return;
      li.dataset.node = p.node;
      li.dataset.if = p.egress_if ?? "";
      setText(li.children[0], p.node ? nodeShort(p.node) : "?");
      setAttribute(li.children[0], "title", hopWords(p.node, p.egress_if));
      setText(li.children[1], nanosecondsWithin(p.latency_p99_ns, p.latency_p99_error));
      setAttribute(li, "class", path.length > 1 && total > 0 && (p.latency_p99_ns ?? 0) > 0.6 * total ? "slowest" : null);
    });
  }
}

// seenWords says where samples and flow records saw a flow. They say neither in which order nor, of delays, quantiles.
function seenWords(f: FlowRow): string {
  const places = (f.seen ?? []).map((s) => {
    const delay = s.path_delay_mean_ns === null ? "" : `, on their way ${nanoseconds(s.path_delay_mean_ns)} in the mean`
      + (s.path_delay_min_ns === null || s.path_delay_max_ns === null ? "" : ` (${nanoseconds(s.path_delay_min_ns)} to ${nanoseconds(s.path_delay_max_ns)})`);
    const ports = [s.ingress_if ? `in ${interfaceName(s.node, s.ingress_if)}` : "", s.egress_if ? `out ${interfaceName(s.node, s.egress_if)}` : ""].filter(Boolean).join(", ");
    return `node ${nodeName(s.node)}${ports ? ` (${ports})` : ""}${delay}`;
  });
  const unjudged = (f.seen ?? []).some((s) => s.path_delay_mean_ns !== null) ? ". Delays are not judged: quantiles do not follow from mean, least and greatest" : "";
  return `${f.octets ? `${bytes(f.octets)}. ` : ""}Seen in no known order: ${places.join("; ")}${unjudged}`;
}

// pathOf is the path of a flow as a panel, where its links are known.
function pathOf(f: FlowRow): Panel | null {
  const hops = f.path.filter((h) => h.node && h.node !== "other").map((h) => ({ node: h.node, egress_if: h.egress_if ?? "0" }));
  if (hops.length < 2 || hops.length !== f.path.length || hops.length > 16) return null;
  return { kind: "path", of: hops.map((h) => `${h.node}:${h.egress_if}`), hops, show: "latency" };
}

// splitKey takes "10.0.0.1:80 > 10.0.0.2:5001 tcp" apart; another text stays whole.
function splitKey(key: string): [string[], string] {
  const m = /^(\S+) > (\S+) (.+)$/.exec(key);
  return m ? [[m[1] ?? "", m[2] ?? ""], m[3] ?? ""] : [[key], ""];
}
