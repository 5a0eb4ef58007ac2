// The map: the network as it is built, with what is known of every link, and what the control of probes does about it.

import { NotFound, ask, type Finding, type FlowList, type PathList } from "./api";
import { drawLegend } from "./bitmap";
import { byId, el, press, segmented, setAttribute, setHidden, setText } from "./dom";
import { during, inUnit, plural } from "./format";
import { MapCanvas, type Spot } from "./map_canvas";
import { MapListView } from "./map_list";
import { Model, type MapAnswer, type MapState, type Probe, type ProbeList } from "./map_model";
import { changeWords, drawChangeLegend, ratios } from "./map_change";
import { MapMatrix } from "./map_matrix";
import { MapPanel } from "./map_panel";
import { drawKeys, type LayerName } from "./map_legend";
import { kindName, rank, severityName } from "./marks";
import { ChangeScale, Scale, changeColors, colors, fit } from "./palette";
import { saveButtons } from "./save";

const metrics: Record<string, { text: string; name: string; title: string }> = {
  latency_p99: { text: "Latency", name: "Latency p99", title: "Links are coloured by the hop latency of what leaves over them" },
  queue_p99: { text: "Queue", name: "Queue occupancy p99", title: "Links are coloured by the queue in front of them" },
  tx_utilization_max: { text: "Link use", name: "Link use max", title: "Links are coloured by how full they are" },
};

const layerTexts: [LayerName, string, string][] = [
  ["findings", "Findings", "Open findings, where they are"],
  ["suspicion", "Suspicion", "Links that are suspected, before anything is proven"],
  ["plan", "Plan", "Links that probes of the plan cross"],
  ["attention", "Attention", "Links of probes that measure in detail"],
];

export interface MapEvents {
  openHop(node: string, egressIf: string, jump: boolean): void;
  openFinding(f: Finding): void;
  findings(): Iterable<Finding>;
  address(hash: string): void;
}

interface Flow { key: string; nodes: { node: string; port: string; marked: boolean }[] }

export class MapView {
  private model: Model | null = null;
  private state: MapState | null = null;
  private metric = "latency_p99";
  private readonly layers = new Set<LayerName>(["findings", "suspicion"]);
  private probes: Probe[] = [];
  private probesVersion = "";
  private flows: Flow[] = [];
  private flow = "";
  private chosen: { kind: "node" | "link"; index: number } | { kind: "probe"; id: string } | null = null;
  private scales = new Map<string, Scale>();
  private seen = false; // on the screen
  private missed = false; // something changed while it was not
  private loading = false;
  past: Record<string, number> = {}; // the range that is shown; empty for the present
  private wanted: URLSearchParams | null = null; // what the address asks for and is not there yet
  private readonly canvas: MapCanvas;
  private readonly panel: MapPanel;
  private readonly list: MapListView;
  private readonly matrix: MapMatrix;
  private readonly metricGroup: HTMLElement;
  private readonly layerGroup = el("div", { class: "map-layers", role: "group", "aria-label": "Layers" });
  private readonly flowSelect = el("select", { class: "map-flow", "aria-label": "Path of a flow", hidden: true, change: () => this.chooseFlow(this.flowSelect.value) });

  constructor(private readonly events: MapEvents) {
    this.canvas = new MapCanvas(byId("map-box"), byId("tooltip"), {
      choose: (s) => this.choose(s, true),
      describe: (s) => this.describe(s),
      label: () => this.label(),
    });
    this.panel = new MapPanel(byId("map-panel"), {
      node: (i) => this.choose({ kind: "node", node: i }, false),
      link: (d) => this.choose({ kind: "link", link: d }, false),
      probe: (id) => this.chooseProbe(id),
      openHop: (node, port) => events.openHop(node, port, true),
      openFinding: (f) => events.openFinding(f),
      close: () => this.choose(null, false),
    });
    this.list = new MapListView(byId<HTMLDetailsElement>("map-list"), (d) => {
      this.choose({ kind: "link", link: d }, false);
      this.canvas.show({ kind: "link", link: d });
    });
    this.matrix = new MapMatrix(byId<HTMLDetailsElement>("map-matrix"), byId("tooltip"), {
      choose: (d) => this.choose({ kind: "link", link: d }, false),
      describe: (d) => this.describe({ kind: "link", link: d }),
      name: () => `${metrics[this.metric]?.name ?? ""}${this.state?.before ? ", against the day before" : ""}`,
    });
    this.metricGroup = segmented("Links are coloured by", Object.entries(metrics).map(([value, m]) => ({ value, text: m.text, title: m.title })), this.metric, (v) => this.chooseMetric(v));
    byId("map-controls").append(this.metricGroup);
    byId("map-layers").append(this.layerGroup, this.flowSelect);
    byId("map-zoom").append(
      ...([["+", "Zoom in", () => this.canvas.zoom(1.6)], ["−", "Zoom out", () => this.canvas.zoom(1 / 1.6)], ["Fit", "Fit all in", () => this.canvas.fit()]] as const)
        .map(([text, title, run]) => el("button", { type: "button", class: "button small", title, "aria-label": title, click: run }, text)));
    byId("map-zoom").append(saveButtons(() => `Map, ${metrics[this.metric]?.name ?? ""}`, { csv: () => this.list.table(), png: () => ({ title: `Map, ${metrics[this.metric]?.name ?? ""}`, parts: this.canvas.parts() }) }));
    this.drawLayers();
    new IntersectionObserver((list) => {
      this.seen = list.some((e) => e.isIntersecting);
      if (this.seen && this.missed) this.load().catch(console.warn);
    }, { rootMargin: "200px" }).observe(byId("map"));
  }

  // load asks for what changed. A map out of sight waits.
  async load(): Promise<void> {
    this.missed = !this.seen || this.loading;
    if (this.missed) return;
    this.loading = true;
    try {
      await this.fetch();
    } finally {
      this.loading = false;
    }
    if (this.missed) await this.load();
  }

  private async fetch(): Promise<void> {
    let state = await ask<MapState>("map/state", { metric: this.metric, ...this.past });
    for (let tries = 0; tries < 3 && (this.model === null || state.version !== this.model.answer.version); tries++) {
      this.setModel(await ask<MapAnswer>("map"));
      state = await ask<MapState>("map/state", { metric: this.metric, ...this.past });
    }
    if (state.metric !== this.metric) return; // another was chosen meanwhile
    if (state.version !== this.model?.answer.version || (state.range === undefined) !== (this.past.from === undefined)) return;
    this.state = state;
    if (state.loop && state.loop.version !== this.probesVersion) await this.loadProbes(state.loop.version);
    if (!state.loop) this.probes = [];
    await this.loadFlows();
    this.drawLayers();
    this.restore();
    this.repaint();
  }

  private setModel(answer: MapAnswer): void {
    const kept = this.chosen?.kind === "probe" || !this.chosen || !this.model ? null : this.address();
    this.model = new Model(answer);
    this.probesVersion = "";
    this.scales.clear();
    this.chosen = null;
    this.state = null;
    this.canvas.look = { ...this.canvas.look, state: null };
    this.canvas.set(this.model);
    if (kept) this.wanted ??= kept;
    const empty = this.model.size === 0;
    setHidden(byId("map-empty"), !empty);
    setHidden(byId("map-body"), empty);
    if (empty) this.sayEmpty(answer);
  }

  private sayEmpty(a: MapAnswer): void {
    byId("map-empty").replaceChildren(a.problem ? el("p", {}, a.problem) : el("div", {},
      el("p", {}, el("strong", {}, "No topology is known yet.")),
      el("p", {}, "Links appear here as soon as flows with INT show which switch follows which. To draw the whole network, name it in the settings:"),
      el("pre", {}, "web:\n  topology: FILE        # GraphML, GML, edge list or YAML, or fat-tree:16"),
      el("p", { class: "quiet" }, "Without it, that of pint.topology is taken. Names of nodes that are numbers are node ids; others count from 0 in the order of the file.")));
  }

  private async loadProbes(version: string): Promise<void> {
    const all: Probe[] = [];
    for (let total = 1; all.length < total;) {
      const page = await ask<ProbeList>("map/probes", { offset: all.length, limit: 5000 });
      if (page.map !== this.model?.answer.version || page.probes.length === 0) break;
      all.push(...page.probes);
      total = Math.min(page.total, 50_000);
    }
    this.probes = all;
    this.probesVersion = version;
  }

  // loadFlows asks for the paths that can be shown: those from digests, which have marked hops, and those of busy flows.
  private async loadFlows(): Promise<void> {
    const none = { flows: [] }; // the history keeps none
    const [paths, flows]: [Pick<PathList, "flows">, Pick<FlowList, "flows">] = this.state?.range ? [none, none] : await Promise.all([ask<PathList>("paths"), ask<FlowList>("flows", { limit: 40 })]);
    const list: Flow[] = paths.flows.filter((f) => f.hops.length > 1).map((f) => ({ key: f.key, nodes: f.hops.map((h) => ({ node: h.node ?? "", port: "0", marked: h.marked ?? false })) }));
    const had = new Set(list.map((f) => f.key));
    for (const f of flows.flows) if (!had.has(f.key) && f.path.length > 1) list.push({ key: f.key, nodes: f.path.map((h) => ({ node: h.node, port: h.egress_if ?? "0", marked: false })) });
    const kept = this.flows.find((f) => f.key === this.flow);
    if (kept && !list.some((f) => f.key === this.flow)) list.unshift(kept);
    this.flows = list;
    const options = ["", ...list.map((f) => f.key)];
    if (options.join("\n") !== [...this.flowSelect.options].map((o) => o.value).join("\n")) {
      this.flowSelect.replaceChildren(...options.map((key) => el("option", { value: key }, key || "Path of a flow …")));
    }
    this.flowSelect.value = this.flow;
    setHidden(this.flowSelect, list.length === 0);
  }

  private drawLayers(): void {
    const shown = layerTexts.filter(([name]) => name === "findings" || this.state?.loop);
    const key = shown.map(([name]) => name).join();
    if (this.layerGroup.dataset.shown !== key) {
      this.layerGroup.dataset.shown = key;
      this.layerGroup.replaceChildren(...shown.map(([name, text, title]) => el("button", { type: "button", class: "map-layer", "data-layer": name, title, click: () => this.toggle(name) }, el("i", { class: `map-key key-${name}`, "aria-hidden": "true" }), text)));
    }
    for (const b of this.layerGroup.querySelectorAll<HTMLElement>("button")) setAttribute(b, "aria-pressed", String(this.layers.has(b.dataset.layer as LayerName)));
  }

  toggle(name: LayerName): void {
    if (!this.layers.delete(name)) this.layers.add(name);
    this.drawLayers();
    this.repaint();
    this.announce();
  }

  private chooseMetric(name: string): void {
    if (!Object.hasOwn(metrics, name)) return;
    this.metric = name;
    press(this.metricGroup, name);
    this.announce();
    this.load().catch(console.warn);
  }

  private chooseFlow(key: string): void {
    this.flow = key;
    this.flowSelect.value = key;
    this.repaint();
    this.announce();
  }

  // repaint hands everything to the canvas, the panel and the list.
  repaint(): void {
    const { model: m, state } = this;
    if (!m) return;
    const values = (state?.values ?? []).filter((v): v is number => v !== null), compares = state?.before !== undefined;
    const scale = compares ? new ChangeScale() : state?.unit === "ratio" ? new Scale(0, 1) : state ? fit([...values, ...state.nodes.filter((v): v is number => v !== null)], this.scales.get(state.metric) ?? null, state.unit === "ns" ? 100 : 100) : null;
    if (state && scale && !compares) this.scales.set(state.metric, scale);
    const level = new Uint8Array(m.directions), nodeLevel = new Uint8Array(m.size);
    if (this.layers.has("findings")) {
      for (const f of state?.findings ?? []) {
        for (const d of f.links ?? []) level[d] = Math.max(level[d] ?? 0, rank[f.severity]);
        if (f.node !== undefined) nodeLevel[f.node] = Math.max(nodeLevel[f.node] ?? 0, rank[f.severity]);
      }
    }
    this.canvas.look = {
      state: compares ? { ...state, values: ratios(state), nodes: [] } : state, scale, level, nodeLevel, palette: compares ? changeColors() : colors(),
      suspects: new Map(this.layers.has("suspicion") ? state?.loop?.suspects.map((s) => [s.link, s.weight]) : []),
      cover: this.layers.has("plan") && state?.loop ? this.cover() : null,
      detailed: this.layers.has("attention") && state?.loop ? this.detailed() : null,
      path: this.path(),
      drops: new Map(this.layers.has("findings") ? state?.drops.map((x) => [x.node, x.count]) : []),
    };
    this.canvas.chosen = this.spots();
    this.canvas.sorted();
    this.drawNote(values.length);
    drawKeys(byId("map-keys"), { layers: this.layers, loop: state?.loop !== undefined, path: this.canvas.look.path !== null, drops: (state?.drops.length ?? 0) > 0 });
    if (compares) drawChangeLegend(byId("map-legend"), `${metrics[this.metric]?.name ?? ""}, against the day before`);
    else if (scale && state) drawLegend(byId("map-legend"), scale, state.unit, metrics[this.metric]?.name ?? "", false);
    this.panel.set(m, state, this.probes, [...this.events.findings()], this.chosen);
    this.list.set(m, state, this.probes);
    this.matrix.set(m, this.canvas.look);
  }

  private drawNote(known: number): void {
    const m = this.model, loop = this.state?.loop;
    if (!m) return;
    const parts = [plural(m.size, "switch", "switches"), plural(m.answer.links.length, "link"), `${plural(known, "direction")} with values`];
    if (m.answer.source === "flows") parts.push("learned from the paths of flows");
    else if (m.answer.name) parts.unshift(m.answer.name.replace(/^.*\//, ""));
    if (this.state?.range) parts.push(during({ recent_windows: 0, range: this.state.range }, 0));
    const earlier = this.state?.range?.compared;
    if (earlier) parts.push(earlier.merged ? "coloured by the change from the day before" : "nothing is known of the day before");
    if (loop) {
      const held = loop.paused ? ", paused" : loop.awaiting_approval ? ", waits for approval" : loop.dry_run ? ", dry run" : "";
      parts.push(`epoch ${loop.epoch}: ${loop.phase || "idle"}${held}`, `${loop.detailed} of ${plural(loop.probes, "probe")} in detail`);
    }
    setText(byId("map-note"), m.size ? parts.join(" · ") : "");
  }

  private cover(): Uint16Array {
    const n = new Uint16Array(this.model?.directions ?? 0);
    for (const p of this.probes) for (const d of p.links) if (d >= 0) n[d]!++;
    return n;
  }

  private detailed(): Uint8Array {
    const n = new Uint8Array(this.model?.directions ?? 0);
    for (const p of this.probes) if (p.detailed) for (const d of p.links) if (d >= 0) n[d] = 1;
    return n;
  }

  private path(): { nodes: { node: number; marked: boolean }[]; links: number[] } | null {
    const m = this.model, f = this.flows.find((x) => x.key === this.flow);
    if (!m || !f) return null;
    const nodes = f.nodes.map((h) => ({ node: m.index.get(h.node) ?? -1, marked: h.marked }));
    const links = nodes.slice(1).map((h, i) => (h.node < 0 || nodes[i]!.node < 0 ? -1 : m.between(nodes[i]!.node, h.node, f.nodes[i]!.port, this.state)));
    return { nodes, links };
  }

  private spots(): Spot[] {
    const c = this.chosen;
    if (!c) return [];
    if (c.kind !== "probe") return [c.kind === "node" ? { kind: "node", node: c.index } : { kind: "link", link: c.index }];
    const { id } = c;
    return (this.probes.find((p) => p.id === id)?.links ?? []).filter((d) => d >= 0).map((link) => ({ kind: "link", link }));
  }

  // choose opens what was clicked: a link is a hop of the page, too.
  private choose(s: Spot | null, byPointer: boolean): void {
    const m = this.model;
    if (!m || s?.kind === "bundle") return;
    this.chosen = !s ? null : s.kind === "node" ? { kind: "node", index: s.node } : { kind: "link", index: s.link };
    this.repaint();
    if (s?.kind === "link") this.events.openHop(m.id(m.from(s.link)), m.port(s.link, this.state), false);
    this.announce();
    if (s && !byPointer) this.canvas.show(s);
  }

  private chooseProbe(id: string): void {
    this.chosen = { kind: "probe", id };
    this.repaint();
    this.announce();
  }

  private describe(s: Spot): Node[] {
    const m = this.model, state = this.state;
    if (!m) return [];
    const unit = state?.unit ?? "ns", name = metrics[this.metric]?.name ?? "";
    const value = (v: number | null | undefined): string => (v === null || v === undefined ? "no report" : `${name} ${inUnit(unit, v)}`);
    const found = (d: number, node: number): HTMLElement[] => (state?.findings ?? []).filter((f) => (d >= 0 ? f.links?.includes(d) : f.node === node)).slice(0, 3).map((f) => {
      const full = [...this.events.findings()].find((x) => x.id === f.id);
      return el("span", { class: `tooltip-finding ${f.severity}` }, `${severityName(f.severity)}: ${full ? kindName(full.kind).toLowerCase() : "finding"}`);
    });
    if (s.kind === "bundle") {
      const worst = Math.max(...s.bundle.links.flatMap((l) => [state?.values[2 * l] ?? -1, state?.values[2 * l + 1] ?? -1]));
      return [el("strong", {}, s.bundle.name), el("span", {}, `${plural(s.bundle.links.length, "link")}, worst: ${worst < 0 ? "no report" : inUnit(unit, worst)}`), el("span", { class: "tooltip-when" }, "Click to come closer")];
    }
    if (s.kind === "node") {
      const drops = state?.drops.find((x) => x.node === s.node)?.count;
      return [el("strong", {}, m.title(s.node)), el("span", { class: "tooltip-when" }, plural(m.of(s.node).length, "link")),
        ...(state?.nodes[s.node] !== null && state?.nodes[s.node] !== undefined ? [el("span", {}, `other interfaces: ${value(state.nodes[s.node])}`)] : []),
        ...(drops ? [el("span", { class: "tooltip-finding warning" }, `${plural(drops, "packet")} dropped`)] : []), ...found(-1, s.node)];
    }
    const d = s.link, suspect = state?.loop?.suspects.find((x) => x.link === d);
    const change = state?.before ? [el("span", {}, changeWords(state, d))] : [];
    return [el("strong", {}, `${m.title(m.from(d))} → ${m.title(m.to(d))}`), el("span", {}, value(state?.values[d])), ...change, el("span", { class: "tooltip-when" }, `back: ${value(state?.values[d ^ 1])}`),
      ...(suspect ? [el("span", { class: "tooltip-finding" }, `Suspected: ${suspect.why ?? ""}`)] : []), ...found(d, -1)];
  }

  private label(): string {
    const m = this.model;
    return m ? `Map of ${plural(m.size, "switch", "switches")} and ${plural(m.answer.links.length, "link")}. Arrow keys move it, plus and minus zoom, 0 shows all. The list below has every link.` : "Map";
  }

  restyle(): void {
    this.repaint();
  }

  // show opens a hop of the page on the map.
  select(node: string, egressIf: string): void {
    const d = this.model?.find(node, egressIf, this.state) ?? -1;
    if (d >= 0 && this.chosen?.kind !== "probe" && !(this.chosen?.kind === "link" && this.chosen.index === d)) {
      this.canvas.chosen = [{ kind: "link", link: d }];
      this.canvas.redraw();
    }
  }

  // address is what the page's address says of the map.
  private address(): URLSearchParams {
    const q = new URLSearchParams(), m = this.model, c = this.chosen;
    let what = "";
    if (m && c?.kind === "node") what = `node/${m.id(c.index)}`;
    else if (m && c?.kind === "link") what = `link/${m.id(m.from(c.index))}/${m.port(c.index, this.state)}/${m.id(m.to(c.index))}`;
    else if (c?.kind === "probe") what = `probe/${c.id}`;
    q.set("map", what);
    if (this.metric !== "latency_p99") q.set("by", this.metric);
    const layers = [...this.layers].sort().join(",");
    if (layers !== "findings,suspicion") q.set("layers", layers);
    if (this.flow) q.set("flow", this.flow);
    return q;
  }

  private announce(): void {
    this.events.address(`#${this.address().toString().replaceAll("%2F", "/").replaceAll("%2C", ",")}`);
  }

  // visit takes the page's address. What it names may not be there yet.
  visit(hash: string): boolean {
    const q = new URLSearchParams(hash.replace(/^#/, ""));
    if (!q.has("map")) return false;
    const by = q.get("by") ?? "latency_p99";
    if (Object.hasOwn(metrics, by)) {
      this.metric = by;
      press(this.metricGroup, by);
    }
    const layers = q.get("layers");
    if (layers !== null) {
      this.layers.clear();
      for (const l of layers.split(",")) if (layerTexts.some(([name]) => name === l)) this.layers.add(l as LayerName);
    }
    this.flow = q.get("flow") ?? this.flow;
    this.wanted = q;
    this.drawLayers();
    this.seen = true;
    this.load().catch((e: unknown) => {
      if (!(e instanceof NotFound)) console.warn(e);
    });
    return true;
  }

  // restore chooses what the address named, once it is there.
  private restore(): void {
    const [kind, a, b, c] = (this.wanted?.get("map") ?? "").split("/"), m = this.model;
    this.wanted = null;
    if (!m || !kind || a === undefined) return;
    if (kind === "probe" && this.probes.some((p) => p.id === a)) this.chosen = { kind, id: a };
    const node = m.index.get(a);
    if (node === undefined) return;
    if (kind === "node") this.chosen = { kind, index: node };
    if (kind === "link") {
      const to = m.index.get(c ?? "");
      const d = m.find(a, b ?? "", this.state) >= 0 ? m.find(a, b ?? "", this.state) : to === undefined ? -1 : m.between(node, to);
      if (d >= 0) this.chosen = { kind, index: d };
    }
    const s = this.spots()[0];
    if (s) this.canvas.show(s);
  }
}
