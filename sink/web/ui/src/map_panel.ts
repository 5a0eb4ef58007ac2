// What is known of the node, the link or the probe that was chosen on the map, with the ways to the rest of the page.

import type { Finding, Maybe } from "./api";
import { el, setHidden } from "./dom";
import { inUnit, moment, plural } from "./format";
import type { MapState, Model, Probe } from "./map_model";
import { kindName, severityName } from "./marks";

interface Events {
  node(i: number): void;
  link(d: number): void;
  probe(id: string): void;
  openHop(node: string, port: string): void;
  openFinding(f: Finding): void;
  close(): void;
}

export type Chosen = { kind: "node" | "link"; index: number } | { kind: "probe"; id: string } | null;

const listed = 12; // links or probes

export class MapPanel {
  private shown = "";

  constructor(private readonly root: HTMLElement, private readonly events: Events) {}

  set(m: Model, state: MapState | null, probes: Probe[], findings: Finding[], chosen: Chosen): void {
    setHidden(this.root, chosen === null);
    if (!chosen) {
      this.shown = "";
      return;
    }
    const parts = chosen.kind === "probe" ? this.probe(m, state, probes, chosen.id) : chosen.kind === "node" ? this.node(m, state, findings, chosen.index) : this.link(m, state, probes, findings, chosen.index);
    const next = el("div", {}, ...parts), text = JSON.stringify(chosen) + next.textContent;
    if (text === this.shown) return; // the focus stays where it is
    this.shown = text;
    const focused = this.root.contains(document.activeElement) ? [...this.root.querySelectorAll("button")].indexOf(document.activeElement as HTMLButtonElement) : -1;
    this.root.replaceChildren(el("button", { type: "button", class: "map-close", "aria-label": "Close", title: "Close", click: () => this.events.close() }, "×"), ...parts);
    this.root.querySelectorAll("button")[focused]?.focus({ preventScroll: true });
  }

  private value(state: MapState | null, v: Maybe | undefined): string {
    return v === null || v === undefined ? "no report" : inUnit(state?.unit ?? "", v);
  }

  private link(m: Model, state: MapState | null, probes: Probe[], findings: Finding[], d: number): Node[] {
    const l = m.answer.links[d >> 1];
    const way = (x: number): HTMLElement => el("li", { class: x === d ? "chosen" : undefined },
      el("button", { type: "button", class: "link map-hop", "data-hop": `${m.id(m.from(x))}/${m.port(x, state)}`, title: "Open this hop", click: () => this.events.openHop(m.id(m.from(x)), m.port(x, state)) }, `${m.label(m.from(x))} → ${m.label(m.to(x))}`),
      el("b", {}, this.value(state, state?.values[x])));
    const suspects = state?.loop?.suspects.filter((s) => s.link >> 1 === d >> 1) ?? [];
    const crossing = probes.filter((p) => p.links.some((x) => x === d));
    return [
      el("h3", {}, "Link"),
      el("p", { class: "map-ends" }, this.nodeButton(m, m.from(d)), " ⇄ ", this.nodeButton(m, m.to(d))),
      el("p", { class: "quiet" }, [`ports ${m.port(d, state)} and ${m.port(d ^ 1, state)}`, l?.speed ? `${speed(l.speed)}` : ""].filter(Boolean).join(" · ")),
      el("ul", { class: "map-ways" }, way(d), way(d ^ 1)),
      ...this.found(state, findings, (f) => f.links?.some((x) => x >> 1 === d >> 1) ?? false),
      ...(suspects.length ? [el("h4", {}, "Suspected"), el("ul", {}, ...suspects.map((s) => el("li", {}, `${m.label(m.from(s.link))} → ${m.label(m.to(s.link))}: ${s.why ?? "no reason given"}`, el("span", { class: "quiet" }, ` weight ${Number(s.weight.toPrecision(3))}${s.since_ms ? `, since ${moment(s.since_ms, Date.now())}` : ""}`))))] : []),
      ...(state?.loop ? [el("h4", {}, `${plural(crossing.length, "probe")} in this direction`), crossing.length ? el("ul", { class: "map-probes" }, ...crossing.slice(0, listed).map((p) => el("li", {}, this.probeButton(p)))) : el("p", { class: "quiet" }, "No probe of the plan crosses it."), more(crossing.length)] : []),
    ];
  }

  private node(m: Model, state: MapState | null, findings: Finding[], i: number): Node[] {
    const n = m.answer.nodes[i], drops = state?.drops.find((x) => x.node === i)?.count;
    const ways = m.of(i).toSorted((a, b) => (state?.values[b] ?? -1) - (state?.values[a] ?? -1));
    const where = [n?.tier, n?.pod ? `pod ${n.pod}` : "", n?.plane ? `plane ${n.plane}` : ""].filter(Boolean).join(" · ");
    return [
      el("h3", {}, m.title(i)),
      el("p", { class: "quiet" }, where || plural(ways.length, "link")),
      ...(state && state.nodes[i] !== null && state.nodes[i] !== undefined ? [el("p", {}, "Worst of its other interfaces: ", el("b", {}, this.value(state, state.nodes[i])))] : []),
      ...(drops ? [el("p", { class: "bad" }, `${plural(drops, "packet")} dropped in the last windows`)] : []),
      ...this.found(state, findings, (f) => f.node === i),
      el("h4", {}, "Links"),
      el("ul", { class: "map-ways" }, ...ways.slice(0, listed).map((d) => el("li", {}, el("button", { type: "button", class: "link", click: () => this.events.link(d) }, `→ ${m.label(m.to(d))}`), el("b", {}, this.value(state, state?.values[d]))))),
      more(ways.length),
    ];
  }

  private probe(m: Model, state: MapState | null, probes: Probe[], id: string): Node[] {
    const p = probes.find((x) => x.id === id);
    if (!p) return [el("h3", {}, `Probe ${id}`), el("p", { class: "quiet" }, "The plan in force has no such probe.")];
    return [
      el("h3", {}, `Probe ${p.id}`),
      el("p", { class: "quiet" }, `${p.detailed ? "measures in detail" : "measures the usual"} · ${plural(p.links.length, "link")}`),
      el("h4", {}, "Way"),
      el("ol", { class: "map-ways" }, ...p.links.map((d) => d < 0 ? el("li", { class: "quiet" }, "a link that the map does not have")
        : el("li", {}, el("button", { type: "button", class: "link", click: () => this.events.link(d) }, `${m.label(m.from(d))} → ${m.label(m.to(d))}`), el("b", {}, this.value(state, state?.values[d]))))),
    ];
  }

  private found(state: MapState | null, findings: Finding[], of: (f: MapState["findings"][number]) => boolean): Node[] {
    const list = (state?.findings ?? []).filter(of).slice(0, listed);
    if (!list.length) return [];
    return [el("h4", {}, "Open findings"), el("ul", { class: "map-findings" }, ...list.map((x) => {
      const f = findings.find((y) => y.id === x.id);
      return el("li", { "data-severity": x.severity }, f ? el("button", { type: "button", class: "link", title: f.text, click: () => this.events.openFinding(f) }, `${severityName(x.severity)}: ${kindName(f.kind)}`) : severityName(x.severity));
    }))];
  }

  private nodeButton(m: Model, i: number): HTMLElement {
    return el("button", { type: "button", class: "link", click: () => this.events.node(i) }, m.title(i));
  }

  private probeButton(p: Probe): HTMLElement {
    return el("button", { type: "button", class: "link", click: () => this.events.probe(p.id) }, `${p.id}${p.detailed ? " (in detail)" : ""}`);
  }
}

const more = (n: number): HTMLElement => el("p", { class: "quiet", hidden: n <= listed }, `and ${n - listed} more`);

function speed(bits: number): string {
  const units: [number, string][] = [[1e12, "Tbit/s"], [1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"]];
  const [by, unit] = units.find(([u]) => bits >= u) ?? [1, "bit/s"];
  return `${Number((bits / by).toPrecision(4))}\u202f${unit}`;
}
