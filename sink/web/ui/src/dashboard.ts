// Links, paths and flows beside each other, as a file names them.

import { NotFound, Refused, ask, order, type Finding, type FlowSeries, type HopSeries, type Maybe } from "./api";
import { Chart, type ChartData, type Line } from "./chart";
import { byId, el, setAttribute, setHidden, setText } from "./dom";
import { bytes, hopName, nanoseconds, nodeName, none, percent, plural, short, span } from "./format";
import { Marks } from "./marks";
import { saveAs } from "./save";

export interface Panel { title?: string; kind: string; of: string[]; show: string; hops?: { node: string; egress_if: string }[]; problem?: string }
export interface Board { name: string; title: string; panels: Panel[]; problem?: string }

export interface DashboardEvents {
  openHop(node: string, egressIf: string): void;
  openFlow(key: string): void;
  announce(text: string): void;
  address(hash: string): void;
  zoom(from: number, to: number): void;
  findings(): Iterable<Finding>;
}

const kept = "hopscope-dashboard"; // of the browser's storage: the dashboard that was put together here
const mostPanels = 32;
const recent = 12; // windows over which the server counts the reports of a flow
const lineColors = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"];

// A quantity that a chart shows: its unit, the series of a hop and of a flow's position.
const quantities: Record<string, { text: string; unit: string; low?: string; high: string; flow?: "latency_p99_ns" | "queue_p99_bytes" }> = {
  latency: { text: "Latency", unit: "ns", low: "latency_p50", high: "latency_p99", flow: "latency_p99_ns" },
  queue: { text: "Queue occupancy", unit: "B", low: "queue_p50", high: "queue_p99", flow: "queue_p99_bytes" },
  use: { text: "Link use", unit: "ratio", high: "tx_utilization_max" },
};

export class DashboardView {
  private boards: Board[] = []; // of the settings
  private own: Board = { name: "", title: "My dashboard", panels: [] };
  private board: Board = this.own;
  private views: PanelView[] = [];
  private wanted: string | null = null; // the dashboard that the address names
  landing = false; // the address names a dashboard, which is to be scrolled to when all above it has its height
  private seen = false;
  private query: Record<string, number> = {};
  private before: Record<string, number> | null = null;
  private running = false;
  private again = false;
  private readonly choice = el("select", { class: "control-select", "aria-label": "Dashboard", change: () => this.choose(this.choice.value) });
  private readonly file = el("input", { type: "file", accept: ".yaml,.yml", class: "hidden", tabindex: -1, "aria-hidden": "true", change: () => this.open().catch((e: unknown) => this.fail(e)) });
  private readonly title = el("input", { type: "text", class: "dashboard-title", "aria-label": "Title of the dashboard", maxlength: 100, spellcheck: "false", change: () => this.rename() });
  private readonly saveButton = el("button", { type: "button", class: "button small", title: "A YAML file that the page opens, and that settings offer to all (web.dashboards)", click: () => this.save() }, "Save as file");
  private readonly clearButton = el("button", { type: "button", class: "button small", click: () => this.clear() }, "Remove all");
  private readonly error = el("p", { class: "dashboard-error bad", role: "alert", hidden: true });
  private readonly empty = el("div", { class: "dashboard-empty" },
    el("p", {}, el("strong", {}, "Put links, paths and flows beside each other.")),
    el("p", {}, "“Add to dashboard” stands at each hop, and at each flow that is open in its table. A dashboard can be saved as a file, and opened again. For all that use the page, name the file in the settings:"),
    el("pre", {}, "web:\n  dashboards: [FILE]"));
  private readonly grid = el("div", { class: "dashboard-grid" });

  constructor(private readonly events: DashboardEvents) {
    byId("dashboard-controls").append(this.choice, el("button", { type: "button", class: "button small", click: () => this.file.click() }, "Open file"), this.saveButton, this.clearButton, this.file);
    byId("dashboard-body").append(this.title, this.error, this.empty, this.grid);
    try {
      const text = localStorage.getItem(kept);
      if (text) this.own = this.board = read(JSON.parse(text));
    } catch { /* storage is off, or holds something else */ }
    new IntersectionObserver((list) => {
      this.seen = list.some((e) => e.isIntersecting);
      if (this.seen) this.fill().catch(console.warn);
    }, { rootMargin: "200px" }).observe(byId("dashboard"));
    this.draw();
  }

  // load shows the board in a range of the history, or in the present without a query.
  async load(query: Record<string, number> = {}, before: Record<string, number> | null = null): Promise<void> {
    this.query = query;
    this.before = before;
    await this.fill();
  }

  // list asks for the boards of the settings.
  async list(): Promise<void> {
    this.boards = (await ask<{ dashboards: Board[] }>("dashboards")).dashboards;
    const now = this.boards.find((b) => b.name === this.board.name && this.board !== this.own);
    if (now) this.show(now);
    else if (this.wanted !== null) {
      const found = this.boards.find((b) => b.name === this.wanted);
      if (found) this.show(found);
      else this.say(`There is no dashboard ${this.wanted} in the settings (web.dashboards).`);
      this.wanted = null;
    } else if (this.board === this.own && this.own.panels.length === 0 && this.boards[0]) this.show(this.boards[0]);
    this.draw();
  }

  // visit shows the board that the address names, as soon as it is there.
  visit(name: string): void {
    this.landing = true;
    const found = this.boards.find((b) => b.name === name);
    if (found) this.show(found);
    else if (name === "") this.show(this.own);
    else this.wanted = name;
  }

  // add puts a panel on the own dashboard, which begins as a copy of what is shown.
  add(p: Panel): void {
    if (this.board.panels.some((x) => x.kind === p.kind && x.of.join() === p.of.join())) return this.events.announce(`${wordsOf(p)} is on the dashboard already`);
    if (this.board !== this.own) this.own = { name: "", title: `${this.board.title}, changed`, panels: [...this.board.panels] };
    if (this.own.panels.length >= mostPanels) {
      this.events.announce(`The dashboard is full: ${mostPanels} panels`);
      this.say(`A dashboard has at most ${mostPanels} panels. Save this one, remove all, and begin another.`);
      return;
    }
    this.own.panels.push(p);
    this.keep();
    this.show(this.own);
    this.events.announce(`${wordsOf(p)} is on the dashboard`);
  }

  private remove(p: Panel): void {
    if (this.board !== this.own) this.own = { name: "", title: `${this.board.title}, changed`, panels: [...this.board.panels] };
    this.own.panels = this.own.panels.filter((x) => x !== p);
    this.keep();
    this.show(this.own);
    this.events.announce(`${wordsOf(p)} is off the dashboard`);
    (this.grid.querySelector<HTMLElement>(".panel-remove") ?? this.choice).focus();
  }

  private clear(): void {
    this.own = { name: "", title: "My dashboard", panels: [] };
    this.keep();
    this.show(this.own);
  }

  private rename(): void {
    const title = this.title.value.trim();
    if (!title || title === this.board.title) return;
    if (this.board !== this.own) this.own = { name: "", title, panels: [...this.board.panels] };
    this.own.title = title;
    this.keep();
    this.show(this.own);
  }

  private keep(): void {
    try {
      localStorage.setItem(kept, JSON.stringify(this.own));
    } catch { /* it lasts as long as the page then */ }
  }

  private choose(name: string): void {
    const board = this.boards.find((b) => `file ${b.name}` === name) ?? this.own;
    this.show(board);
    this.events.address(board === this.own ? "#dashboard" : `#dashboard=${encodeURIComponent(board.name)}`);
  }

  private show(board: Board): void {
    this.board = board;
    this.say(board.problem ?? "");
    this.draw();
    this.fill().catch(console.warn);
  }

  private say(text: string): void {
    setHidden(this.error, text === "");
    setText(this.error, text);
  }

  private fail(e: unknown): void {
    if (e instanceof Refused) this.say(`The file cannot be read. ${e.message}`);
    else throw e;
  }

  // open reads a file of the reader's machine, by the same rules as one of the settings.
  private async open(): Promise<void> {
    const f = this.file.files?.[0];
    if (!f) return;
    const text = f.size > 8192 ? null : await f.text();
    this.file.value = "";
    if (text === null) return this.say(`${f.name} has more than 8192 bytes: divide it into several dashboards.`);
    const board = await order<Board>("dashboards/read", { file: text });
    this.own = { ...board, name: "", title: board.title || f.name.replace(/\.ya?ml$/, "") };
    this.keep();
    this.show(this.own);
    this.events.announce(`${this.own.title}: ${plural(board.panels.length, "panel")}`);
  }

  private save(): void {
    const name = this.board.title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "") || "dashboard";
    saveAs(new Blob([yaml(this.board)], { type: "application/yaml" }), `${name}.yaml`);
  }

  private draw(): void {
    const options: [string, string][] = [...this.boards.map((b): [string, string] => [`file ${b.name}`, b.title]), ["own", this.own.title]];
    const key = JSON.stringify(options);
    if (this.choice.dataset.key !== key) {
      this.choice.dataset.key = key;
      this.choice.replaceChildren(...options.map(([value, text]) => el("option", { value }, text)));
    }
    this.choice.value = this.board === this.own ? "own" : `file ${this.board.name}`;
    setHidden(this.choice, this.boards.length === 0);
    if (document.activeElement !== this.title) this.title.value = this.board.title;
    const none = this.board.panels.length === 0;
    setHidden(this.title, none);
    setHidden(this.empty, !none || this.board.problem !== undefined);
    setHidden(this.grid, none);
    setHidden(this.saveButton, none);
    setHidden(this.clearButton, none || this.board !== this.own);
    setText(byId("dashboard-note"), none ? "" : `${plural(this.board.panels.length, "panel")}${this.board === this.own ? "" : `, of the file ${this.board.name}`}`);
    const had = new Map(this.views.map((v) => [v.key, v]));
    this.views = this.board.panels.map((p) => had.get(keyOf(p)) ?? new PanelView(p, this.events, () => this.remove(p)));
    this.views = this.views.filter((v, i) => this.views.indexOf(v) === i); // the same twice is one
    const elements = this.views.map((v) => v.element);
    if (elements.length !== this.grid.children.length || elements.some((e, i) => e !== this.grid.children[i])) this.grid.replaceChildren(...elements);
  }

  // fill asks for the numbers of all panels, one after the other, while the board is in sight.
  private async fill(): Promise<void> {
    this.again = this.running || !this.seen;
    if (this.again) return;
    this.running = true;
    try {
      const findings = [...this.events.findings()];
      for (const v of this.views) await v.load(this.query, this.before, findings);
    } finally {
      this.running = false;
    }
    if (this.again) await this.fill();
  }

  restyle(): void {
    for (const v of this.views) v.restyle();
  }
}

class PanelView {
  readonly key: string;
  readonly element: HTMLElement;
  private readonly numbers = el("dl", { class: "panel-numbers" });
  private readonly note = el("p", { class: "panel-note", role: "status" }, "Loading");
  private readonly chart: Chart;
  private known = "";

  constructor(private readonly p: Panel, private readonly events: DashboardEvents, remove: () => void) {
    this.key = keyOf(p);
    const q = quantities[p.show] ?? quantities.latency!;
    this.chart = new Chart(p.kind === "link" ? q.text : `${q.text} p99 by hop`, q.unit, "dashboard", 130);
    this.chart.zoom = (from, to) => events.zoom(from, to);
    const name = wordsOf(p);
    this.chart.of = name;
    this.element = el("article", { class: "panel", "aria-label": name },
      el("div", { class: "panel-head" }, el("h3", {}, el("button", { type: "button", class: "link", title: `Open the ${p.kind}`, click: () => this.open() }, name)), el("span", { class: "panel-kind" }, p.kind),
        el("button", { type: "button", class: "panel-remove", "aria-label": `Remove ${name}`, title: "Remove", click: remove }, "×")),
      this.numbers, this.note, this.chart.element);
    setHidden(this.chart.element, true);
  }

  private open(): void {
    const h = this.p.hops?.[0];
    if (this.p.kind === "flow") this.events.openFlow(this.p.of[0] ?? "");
    else if (h) this.events.openHop(h.node, h.egress_if);
  }

  restyle(): void {
    if (!this.chart.element.hidden) this.chart.restyle();
  }

  async load(query: Record<string, number>, before: Record<string, number> | null, findings: Finding[]): Promise<void> {
    const { p } = this;
    if (p.problem) return this.nothing(p.problem);
    try {
      if (p.kind === "flow") {
        if ("from" in query) return this.nothing("The history keeps no flows. “Live” shows this one.");
        return this.setFlow(await ask<FlowSeries>("flow", { key: p.of[0] ?? "" }));
      }
      const list = await Promise.all((p.hops ?? []).map((h) => hop(h, query)));
      const earlier = p.kind === "link" && before && p.hops?.[0] ? await hop(p.hops[0], before) : null;
      this.setHops(list, earlier, before !== null, findings);
    } catch (e) {
      if (!(e instanceof NotFound)) throw e;
      this.nothing(p.kind === "flow" ? "No such flow in the kept windows. Each direction is a flow of its own." : "This range cannot be shown.");
    }
  }

  private nothing(why: string): void {
    this.set([]);
    setText(this.note, why);
    setHidden(this.chart.element, true);
  }

  // set writes the numbers; each keeps its place.
  private set(list: [string, string, string?][]): void {
    const key = list.map(([name]) => name).join();
    if (this.known !== key) {
      this.known = key;
      this.numbers.replaceChildren(...list.map(([name]) => el("div", {}, el("dt", {}, name), el("dd", {}))));
    }
    list.forEach(([, value, title], i) => {
      const e = this.numbers.children[i]?.lastElementChild;
      if (!e) return;
      setText(e, value);
      setAttribute(e, "title", title ?? null);
    });
    setHidden(this.numbers, list.length === 0);
  }

  private setFlow(s: FlowSeries): void {
    const series = quantities[this.p.show]?.flow ?? "latency_p99_ns";
    const step = (s.windows.at(-1) ?? 0) - (s.windows.at(-2) ?? s.windows.at(-1) ?? 0);
    const slowest = s.flow.path.reduce((a, b) => ((b.latency_p99_ns ?? -1) > (a.latency_p99_ns ?? -1) ? b : a), s.flow.path[0] ?? { node: "", latency_p99_ns: null });
    this.set([
      [`Reports in ${span(recent * step)}`, short(s.flow.packets)],
      ["Slowest node, p99", slowest.latency_p99_ns === null ? none : `${nanoseconds(slowest.latency_p99_ns)}`, `node ${nodeName(slowest.node)}`],
      ["Path changes", short(s.flow.changes)],
    ]);
    setText(this.note, s.flow.path.length ? s.flow.path.map((h) => nodeName(h.node)).join(" › ") : "Its path is not known.");
    this.draw({
      windows: s.windows, findings: [], marks: s.changes.map((c) => c.ms),
      lines: s.positions.slice(0, lineColors.length).map((x, i) => line(`${i + 1}. ${nodeName(x.node)}`, i, x[series])),
    });
  }

  private setHops(list: (HopSeries | null)[], earlier: HopSeries | null, compares: boolean, findings: Finding[]): void {
    const { p } = this, there = list.filter((s): s is HopSeries => s !== null), first = there[0];
    if (!first) return this.nothing("Not seen in this time.");
    const q = quantities[p.show] ?? quantities.latency!, past = first.range !== undefined;
    const marks = new Marks(findings), found = (p.hops ?? []).flatMap((h) => marks.of(h.node, h.egress_if));
    const open = found.filter((f) => !f.end_ms).length, trouble = open ? `${plural(open, "open finding")}. ` : "";
    if (p.kind === "link") {
      const h = first.hop;
      this.set([["Latency p50", nanoseconds(h.latency_ns.p50)], ["p99", nanoseconds(h.latency_ns.p99)], ["Queue p99", bytes(h.queue_bytes.p99)], ["Link use", percent(h.tx_utilization)]]);
      setText(this.note, `${trouble}${short(h.count)} hop records ${past ? "in the range" : "in its last window"}${compares ? (earlier ? "; dashed grey: the day before" : "; nothing is known of the day before") : ""}`);
      const lines: Line[] = [];
      if (earlier) lines.push({ label: "the day before", color: "--text-3", dash: [4, 4], values: aligned(first, earlier, q.high) });
      if (q.low) lines.push({ label: "p50", color: "--line-1", values: first.series[q.low] ?? [] });
      lines.push({ label: q.low ? "p99" : "largest", color: "--line-3", width: 2, values: first.series[q.high] ?? [] });
      return this.draw({ windows: first.windows, findings: found, past, lines });
    }
    const p50 = there.map((s) => s.hop.latency_ns.p50), sum = p50.every((v) => v !== null) && there.length === list.length ? p50.reduce<number>((a, v) => a + (v ?? 0), 0) : null;
    const worst = there.reduce((a, b) => ((b.hop.latency_ns.p99 ?? -1) > (a.hop.latency_ns.p99 ?? -1) ? b : a));
    const queue = there.reduce<Maybe>((a, s) => (s.hop.queue_bytes.p99 === null ? a : Math.max(a ?? 0, s.hop.queue_bytes.p99)), null);
    this.set([
      ["Sum of medians", nanoseconds(sum), "Of the latencies of its links. It is not the median of the path."],
      ["Slowest, p99", nanoseconds(worst.hop.latency_ns.p99), hopName(worst.hop.node, worst.hop.egress_if)],
      ["Longest queue, p99", bytes(queue)],
    ]);
    const absent = list.length - there.length;
    setText(this.note, `${trouble}Slowest: ${hopName(worst.hop.node, worst.hop.egress_if)}${absent ? `. ${absent} of ${plural(list.length, "link")} not seen in this time, so that the sum is not known` : ""}`);
    this.draw({
      windows: first.windows, findings: found, past,
      lines: list.flatMap((s, i) => (s && i < lineColors.length ? [line(`${i + 1}. ${hopName(s.hop.node, s.hop.egress_if)}`, i, onto(first.windows, s, q.high))] : [])),
    });
  }

  private draw(data: ChartData): void {
    setHidden(this.chart.element, false);
    this.chart.set(data);
  }
}

const line = (label: string, i: number, values: Maybe[]): Line => ({ label, color: lineColors[i] ?? "--line-1", values, ...(i % 2 ? { dash: [5, 3] } : {}) });

// hop asks for one link; null where it was not seen.
async function hop(h: { node: string; egress_if: string }, query: Record<string, number>): Promise<HopSeries | null> {
  try {
    const s = await ask<HopSeries>("hop", { ...h, ...query });
    return s.windows.length && (s.series.count ?? []).some((v) => v !== null) ? s : null;
  } catch (e) {
    if (e instanceof NotFound) return null;
    throw e;
  }
}

// onto takes a series to the windows of another, which a window that ended meanwhile may have made longer.
function onto(windows: number[], s: HopSeries, key: string): Maybe[] {
  const at = new Map(s.windows.map((end, i) => [end, s.series[key]?.[i] ?? null]));
  return windows.map((end) => at.get(end) ?? null);
}

// aligned takes the values of the day before to the columns of now.
export function aligned(now: HopSeries, before: HopSeries, key: string): Maybe[] {
  const day = 86_400_000, step = before.range?.resolution_ms ?? 0, values = before.series[key] ?? [];
  const at = new Map(before.windows.map((end, i) => [end + day, values[i] ?? null]));
  return now.windows.map((end) => at.get(step > 0 ? Math.ceil(end / step) * step : end) ?? null);
}

const keyOf = (p: Panel): string => JSON.stringify([p.title, p.kind, p.of, p.show, p.hops, p.problem]);

function wordsOf(p: Panel): string {
  if (p.title) return p.title;
  if (p.kind === "flow") return p.of[0] ?? "";
  const hops = p.hops ?? [];
  if (hops.length === 0) return p.of.join(" › ");
  return p.kind === "link" ? hopName(hops[0]!.node, hops[0]!.egress_if) : hops.map((h) => nodeName(h.node)).join(" › ");
}

// yaml writes a dashboard as a file.
function yaml(b: Board): string {
  const q = (s: string): string => JSON.stringify(s); // a text in JSON is one in YAML
  const lines = ["# A dashboard of hopscope: open it on the page, or list it under web.dashboards.", `title: ${q(b.title)}`, "panels:"];
  for (const p of b.panels) {
    lines.push(`  - ${p.kind}: ${p.kind === "path" ? `[${p.of.map(q).join(", ")}]` : q(p.of[0] ?? "")}`);
    if (p.title) lines.push(`    title: ${q(p.title)}`);
    if (p.show !== "latency") lines.push(`    show: ${p.show}`);
  }
  return `${lines.join("\n")}\n`;
}

// read takes what the browser kept, which may be of another version.
function read(v: unknown): Board {
  const b = v as Partial<Board>;
  const panels = (Array.isArray(b.panels) ? b.panels : []).filter((p): p is Panel => ["link", "path", "flow"].includes(p?.kind) && Array.isArray(p.of) && p.show in quantities);
  return { name: "", title: String(b.title ?? "My dashboard"), panels: panels.slice(0, mostPanels) };
}
