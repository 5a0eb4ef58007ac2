// The matrix behind the bitmap: one row per hop, one column per window, kept in step with the server by columns.

import type { Matrix as Answer, Maybe } from "./api";

export interface Row {
  id: number;
  node: string;
  egressIf: string;
  values: Maybe[];
}

// How many columns count as recent when rows are sorted by the worst.
const recent = 12;

export class Matrix {
  windows: number[] = []; // ends, oldest first
  reports: number[] = [];
  rows: Row[] = []; // by node and egress interface
  unit = "ns";
  missing = new Map<number, string[]>(); // of a fleet: collectors that windows are without, by end
  replaced = 0;
  private byID = new Map<number, Row>();

  constructor(readonly metric: string) {}

  // since is what to ask for: everything behind the last but one window, because the last may have been incomplete.
  get since(): number {
    return this.windows.at(-2) ?? -1;
  }

  merge(a: Answer, capacity: number): void {
    const first = a.windows[0];
    let keep = first === undefined ? this.windows.length : this.windows.findIndex((w) => w >= first);
    if (keep < 0) keep = this.windows.length;
    const cut = Math.max(0, keep + a.windows.length - capacity);
    const join = <T>(old: T[], fresh: T[]): T[] => old.slice(0, keep).concat(fresh).slice(cut);
    const blank: Maybe[] = new Array<Maybe>(keep).fill(null);
    this.rows = a.hops.map((h) => {
      const row = this.byID.get(h.id) ?? { id: h.id, node: h.node, egressIf: h.egress_if, values: blank };
      row.values = join(row.values, h.values);
      return row;
    });
    this.byID = new Map(this.rows.map((r) => [r.id, r]));
    this.windows = join(this.windows, a.windows);
    this.reports = join(this.reports, a.reports);
    this.unit = a.unit;
    for (const end of this.missing.keys()) if (a.windows.includes(end) || end < (this.windows[0] ?? 0)) this.missing.delete(end);
    for (const [end, names] of Object.entries(a.missing ?? {})) this.missing.set(Number(end), names);
    this.replaced = a.replaced ?? 0;
  }

  row(id: number): Row | undefined {
    return this.byID.get(id);
  }

  find(node: string, egressIf: string): Row | undefined {
    return this.rows.find((r) => r.node === node && r.egressIf === egressIf);
  }

  *values(): Iterable<number> {
    for (const r of this.rows) for (const v of r.values) if (v !== null) yield v;
  }
}

// worst is the largest recent value of a row, or that of all its columns, or -1.
export function worst(r: Row, all = false): number {
  let w = -1;
  for (let i = all ? 0 : Math.max(0, r.values.length - recent); i < r.values.length; i++) w = Math.max(w, r.values[i] ?? -1);
  return w;
}
