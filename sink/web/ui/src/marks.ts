// Which findings concern which hop.

import type { Finding, Severity } from "./api";

export const rank: Record<Severity, number> = { info: 1, warning: 2, critical: 3 };

const kinds: Record<string, string> = {
  "path-change": "Path changed",
  drops: "Packets dropped",
  "exporter-loss": "Reports lost",
  "exporter-silence": "Exporter silent",
  "high-latency": "High latency",
  "high-queue": "Queue building up",
  "strange-digests": "Digests fit no path",
  "inventory-error": "Inventory is wrong",
  "routing-loop": "Packets loop",
  "low-latency": "Low latency",
  "high-utilization": "High link use",
  "low-utilization": "Low link use",
  "stuck-values": "Values stand still",
  "hop-silence": "Hop silent",
  "packet-loss": "Packets lost",
  "black-hole": "Packets of a flow vanish",
  "interface-errors": "Interface counts errors",
  "interface-discards": "Interface discards packets",
  "probe-loss": "Probes lost",
  "probe-delay": "Probes late",
  "probe-corruption": "Probes damaged",
  "off-policy": "Flows are off the way that they may take",
};

export function kindName(kind: string): string {
  return kinds[kind] ?? kind;
}

export function severityName(s: Severity): string {
  return s.charAt(0).toUpperCase() + s.slice(1);
}

// Marks finds the findings of a hop: those that name it, and those that name its node without an interface.
export class Marks {
  private readonly byHop = new Map<string, Finding[]>();
  private readonly byNode = new Map<string, Finding[]>();

  constructor(list: Iterable<Finding>) {
    for (const f of list) {
      if (f.node === undefined || f.exporter !== undefined) continue;
      if (f.element?.kind === "link" && f.evidence) continue; // its evidence names the hops
      const [map, key] = f.egress_if === undefined ? [this.byNode, f.node] : [this.byHop, `${f.node}/${f.egress_if}`];
      const had = map.get(key);
      if (had) had.push(f);
      else map.set(key, [f]);
    }
  }

  of(node: string, egressIf: string): Finding[] {
    const a = this.byHop.get(`${node}/${egressIf}`), b = this.byNode.get(node);
    return a && b ? a.concat(b) : (a ?? b ?? []);
  }

  // level is the rank of the worst open finding of a hop, 0 without one.
  level(node: string, egressIf: string): number {
    let level = 0;
    for (const f of this.of(node, egressIf)) if (f.end_ms === 0) level = Math.max(level, rank[f.severity]);
    return level;
  }
}
