// Places for nodes of which none is known: forces that push nodes apart and pull links together, from d3-force. They start from
// the same spiral every time and act a fixed number of times, so that the same network looks the same, and a few at a time, so
// that the page stays responsive. What came out is kept in the browser.

import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY, type Simulation, type SimulationNodeDatum } from "d3-force";
import type { Model } from "./map_model";

const rounds = 300;
const slice = 12; // ms of a frame
const storage = "hopscope-map:";
const mostKept = 6; // networks
const mostNodes = 5000; // of a network that is kept

export class Layout {
  private readonly simulation: Simulation<SimulationNodeDatum, undefined>;
  private readonly nodes: SimulationNodeDatum[];
  private left: number;
  private frame = 0;

  // moved is called when nodes have other places, at the end with true.
  constructor(private readonly model: Model, private readonly moved: (done: boolean) => void) {
    const kept = read(model);
    let known = 0;
    this.nodes = model.answer.nodes.map((n) => {
      const at = kept[n.id];
      if (!at) return {};
      known++;
      return { x: at[0], y: at[1] };
    });
    this.left = known === model.size ? 0 : known > model.size / 2 ? rounds / 3 : rounds;
    const links = model.answer.links.map((_, l) => ({ source: model.a[l]!, target: model.b[l]! }));
    this.simulation = forceSimulation(this.nodes).stop()
      .force("link", forceLink(links).distance(44).iterations(2))
      .force("charge", forceManyBody().strength(-160).distanceMax(900))
      .force("collide", forceCollide(14))
      .force("x", forceX(0).strength(0.035))
      .force("y", forceY(0).strength(0.06)) // pages are wider than high
      .alpha(this.left < rounds ? 0.4 : 1)
      .alphaDecay(1 - 0.001 ** (1 / rounds));
    this.take();
    if (this.left > 0) this.frame = requestAnimationFrame(() => this.step());
  }

  get running(): boolean {
    return this.left > 0;
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
  }

  private step(): void {
    const end = performance.now() + slice;
    do {
      this.simulation.tick();
      this.left--;
    } while (this.left > 0 && performance.now() < end);
    this.take();
    if (this.left > 0) this.frame = requestAnimationFrame(() => this.step());
    else keep(this.model);
    this.moved(this.left <= 0);
  }

  private take(): void {
    this.nodes.forEach((n, i) => {
      this.model.x[i] = round(n.x ?? 0);
      this.model.y[i] = round(n.y ?? 0);
    });
  }
}

const round = (v: number): number => Math.round(v * 10) / 10;

// What is learned from flows grows: it is one network, whatever its version.
const key = (m: Model): string => storage + (m.answer.source === "flows" ? "flows" : m.answer.version);

function read(m: Model): Record<string, [number, number]> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(key(m)) ?? "{}");
    const out: Record<string, [number, number]> = {};
    if (typeof kept !== "object" || kept === null) return out;
    for (const [id, at] of Object.entries(kept)) {
      if (Array.isArray(at) && at.length === 2 && at.every((v) => typeof v === "number" && Math.abs(v) < 1e6)) out[id] = [at[0] as number, at[1] as number];
    }
    return out;
  } catch {
    return {}; // the browser keeps nothing, or another page wrote there
  }
}

function keep(m: Model): void {
  if (m.size > mostNodes) return;
  try {
    const others = Object.keys(localStorage).filter((k) => k.startsWith(storage) && k !== key(m));
    for (const k of others.slice(0, Math.max(0, others.length - mostKept + 1))) localStorage.removeItem(k);
    localStorage.setItem(key(m), JSON.stringify(Object.fromEntries(m.answer.nodes.map((n, i) => [n.id, [round(m.x[i]!), round(m.y[i]!)]]))));
  } catch {
    // full, or switched off
  }
}
