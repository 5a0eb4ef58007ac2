// The network that the map draws, and what is known of it at the moment. Nodes and links are numbers here: a direction 2i leaves
// the end a of link i, and 2i+1 the end b, as in what the server answers.

import type { Maybe, Range, Severity } from "./api";
import { nodeTitle } from "./format";

export interface MapAnswer {
  version: string;
  source: string; // "topology", "flows", or "" where there is no map
  name?: string;
  layout?: string;
  problem?: string;
  nodes: { id: number; name?: string; tier?: string; pod?: number; plane?: number; x: number; y: number }[];
  links: { a: number; a_if?: number; b: number; b_if?: number; speed?: number; name?: string }[];
}

export interface Suspect { link: number; weight: number; why?: string; since_ms?: number }

export interface LoopState {
  version: string;
  epoch: number;
  phase: string;
  paused?: boolean;
  dry_run?: boolean;
  awaiting_approval?: boolean;
  probes: number;
  detailed: number;
  suspects: Suspect[];
}

export interface MapState {
  version: string;
  end_ms: number;
  metric: string;
  unit: string;
  values: Maybe[];
  nodes: Maybe[];
  egress?: Record<string, number>;
  findings: { id: string; severity: Severity; links?: number[]; node?: number }[];
  drops: { node: number; count: number }[];
  loop?: LoopState;
  range?: Range; // of an answer out of the history
  before?: Maybe[]; // values of the day before, by direction, where the page compares
}

export interface Probe { id: string; links: number[]; detailed?: boolean }

export interface ProbeList { version: string; map: string; total: number; probes: Probe[] }

// Bundle stands for many links between two groups of nodes, while they are too close to each other to be distinguished.
export interface Bundle {
  links: number[];
  low: [number, number]; // from and to, across, of its ends in the lower row
  high: [number, number];
  lowY: number;
  highY: number;
  name: string;
}

export class Model {
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly a: Int32Array; // nodes of links
  readonly b: Int32Array;
  readonly degree: Int32Array;
  readonly index = new Map<string, number>();
  readonly bundles: Bundle[];
  readonly tiers: boolean;
  private readonly leaving = new Map<number, number[]>(); // directions by node, made when they are asked for

  constructor(readonly answer: MapAnswer) {
    const { nodes, links } = answer;
    this.x = Float64Array.from(nodes, (n) => n.x);
    this.y = Float64Array.from(nodes, (n) => n.y);
    nodes.forEach((n, i) => this.index.set(String(n.id), i));
    this.a = Int32Array.from(links, (l) => this.index.get(String(l.a)) ?? 0);
    this.b = Int32Array.from(links, (l) => this.index.get(String(l.b)) ?? 0);
    this.degree = new Int32Array(nodes.length);
    for (let l = 0; l < links.length; l++) {
      this.degree[this.a[l]!]!++;
      this.degree[this.b[l]!]!++;
    }
    this.tiers = answer.layout === "tiers";
    this.bundles = this.tiers && links.length > 1500 ? this.bundle() : [];
  }

  get size(): number {
    return this.answer.nodes.length;
  }

  get directions(): number {
    return 2 * this.answer.links.length;
  }

  from(d: number): number {
    return (d % 2 === 0 ? this.a : this.b)[d >> 1] ?? 0;
  }

  to(d: number): number {
    return (d % 2 === 0 ? this.b : this.a)[d >> 1] ?? 0;
  }

  id(node: number): string {
    return String(this.answer.nodes[node]?.id ?? "");
  }

  // port is the interface by which reports know a direction.
  port(d: number, state: MapState | null): string {
    const l = this.answer.links[d >> 1];
    return String(state?.egress?.[d] ?? (d % 2 === 0 ? l?.a_if : l?.b_if) ?? 0);
  }

  // label is a node's name alone, for the picture.
  label(node: number): string {
    return nodeTitle(this.id(node), this.answer.nodes[node]?.name).name;
  }

  // title has the number beside the name.
  title(node: number): string {
    return nodeTitle(this.id(node), this.answer.nodes[node]?.name).title;
  }

  of(node: number): number[] {
    if (this.leaving.size === 0) {
      for (let d = 0; d < this.directions; d++) {
        const n = this.from(d), list = this.leaving.get(n);
        if (list) list.push(d);
        else this.leaving.set(n, [d]);
      }
    }
    return this.leaving.get(node) ?? [];
  }

  // between is the direction from one node to another, by its interface where there are several.
  between(from: number, to: number, port = "0", state: MapState | null = null): number {
    const all = this.of(from).filter((d) => this.to(d) === to);
    return all.find((d) => this.port(d, state) === port) ?? all[0] ?? -1;
  }

  // find gives the direction that reports know by a node and an interface.
  find(node: string, port: string, state: MapState | null): number {
    const n = this.index.get(node);
    return n === undefined ? -1 : (this.of(n).find((d) => this.port(d, state) === port) ?? -1);
  }

  // group names what a node of a fabric is drawn with when there is no room for it alone.
  private group(node: number): string {
    const n = this.answer.nodes[node];
    if (n?.pod) return `pod ${n.pod}`;
    if (n?.plane) return `plane ${n.plane}`;
    return `${n?.tier ?? ""} ${Math.floor((this.x[node] ?? 0) / 16) + 1}`;
  }

  private bundle(): Bundle[] {
    const by = new Map<string, Bundle>();
    this.answer.links.forEach((_, l) => {
      let low = this.a[l]!, high = this.b[l]!;
      if (this.y[low]! < this.y[high]!) [low, high] = [high, low];
      const g = this.group(low), h = this.group(high), key = `${g}|${h}|${this.y[low]}|${this.y[high]}`;
      let bundle = by.get(key);
      if (!bundle) {
        bundle = { links: [], low: [Infinity, -Infinity], high: [Infinity, -Infinity], lowY: this.y[low]!, highY: this.y[high]!, name: g === h ? `Within ${g}` : `${g.charAt(0).toUpperCase()}${g.slice(1)} to ${h}` };
        by.set(key, bundle);
      }
      bundle.links.push(l);
      for (const [ends, v] of [[bundle.low, this.x[low]!], [bundle.high, this.x[high]!]] as const) {
        ends[0] = Math.min(ends[0], v);
        ends[1] = Math.max(ends[1], v);
      }
    });
    return [...by.values()];
  }
}
