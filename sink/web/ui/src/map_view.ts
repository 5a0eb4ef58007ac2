// From places in a network to places on the screen. The rows of a fabric keep their distance when it grows wider: it is far
// wider than high, and its tiers are looked at together.

import type { Model } from "./map_model";

const margin = { left: 48, right: 48, top: 46, bottom: 46 };
const most = { tiers: 132, other: 260 }; // px between neighbours

// Frame is a view as it is drawn once, with a rim around what is in sight.
export interface Frame { kx: number; ky: number; tx: number; ty: number; width: number; height: number; spacing: number }

export class View {
  width = 0;
  height = 0;
  zoom = 1;
  kx = 1;
  ky = 1;
  tx = 0;
  ty = 0;
  private low = [0, 0];
  private extent = [1, 1];
  private base = [1, 1];
  private tiers = false;
  private unit = 1; // of the network, between two neighbours
  private touched = false; // a reader moved it, so that it does not fit itself

  // measure takes the extent of a network; the view fits it unless a reader has moved it.
  measure(m: Model): void {
    const range = (v: Float64Array): [number, number] => {
      let lo = Infinity, hi = -Infinity;
      for (const x of v) {
        lo = Math.min(lo, x);
        hi = Math.max(hi, x);
      }
      return lo <= hi ? [lo, hi] : [0, 0];
    };
    const [x0, x1] = range(m.x), [y0, y1] = range(m.y);
    this.tiers = m.tiers;
    this.low = [x0, y0];
    this.extent = [Math.max(x1 - x0, 1e-9), Math.max(y1 - y0, 1e-9)];
    this.unit = m.tiers ? narrowest(m) : median(m);
    this.rebase();
  }

  resize(width: number, height: number): void {
    if (width === this.width && height === this.height) return;
    this.width = width;
    this.height = height;
    this.rebase();
  }

  private rebase(): void {
    const w = Math.max(40, this.width - margin.left - margin.right), h = Math.max(40, this.height - margin.top - margin.bottom);
    let kx = w / this.extent[0]!, ky = h / this.extent[1]!;
    if (this.tiers) {
      kx = Math.min(kx, most.tiers / this.unit);
      ky = Math.min(ky, this.extent[1]! < 1.5 ? 360 : 240);
    } else kx = ky = Math.min(kx, ky, most.other / this.unit);
    this.base = [kx, ky];
    if (!this.touched) this.fit();
    else this.apply(this.zoom);
  }

  fit(): void {
    this.touched = false;
    this.zoom = 1;
    [this.kx, this.ky] = [this.base[0]!, this.base[1]!];
    this.tx = (this.width - this.extent[0]! * this.kx) / 2 - this.low[0]! * this.kx;
    this.ty = margin.top + (this.height - margin.top - margin.bottom - this.extent[1]! * this.ky) / 2 - this.low[1]! * this.ky;
  }

  private apply(zoom: number): void {
    this.zoom = Math.min(Math.max(zoom, 1), Math.max(6, 170 / (this.base[0]! * this.unit)));
    this.kx = this.base[0]! * this.zoom;
    this.ky = this.base[1]! * (this.tiers ? 1 : this.zoom);
  }

  // scale zooms around a place on the screen.
  scale(factor: number, x: number, y: number): void {
    const wx = (x - this.tx) / this.kx, wy = (y - this.ty) / this.ky;
    this.touched = true;
    this.apply(this.zoom * factor);
    this.tx = x - wx * this.kx;
    this.ty = y - wy * this.ky;
    this.bound();
  }

  pan(dx: number, dy: number): void {
    this.touched = true;
    this.tx += dx;
    this.ty += dy;
    this.bound();
  }

  // show brings a place of the network into sight, close enough to be looked at.
  show(x: number, y: number, close: boolean): void {
    if (close && this.spacing < 26) this.scale(30 / this.spacing, this.width / 2, this.height / 2);
    const sx = x * this.kx + this.tx, sy = y * this.ky + this.ty;
    if (sx < 40 || sx > this.width - 40) this.pan(this.width / 2 - sx, 0);
    if (sy < 30 || sy > this.height - 30) this.pan(0, this.height / 2 - sy);
  }

  frame(rim: number): Frame {
    const { kx, ky, tx, ty, width, height, spacing } = this;
    return { kx, ky, tx: tx + rim, ty: ty + rim, width: width + 2 * rim, height: height + 2 * rim, spacing };
  }

  // spacing is how far neighbours are from each other on the screen.
  get spacing(): number {
    return this.unit * this.kx;
  }

  // bound keeps some of the network in sight.
  private bound(): void {
    for (const [axis, size] of [["x", this.width], ["y", this.height]] as const) {
      const i = axis === "x" ? 0 : 1, k = axis === "x" ? this.kx : this.ky;
      const from = this.low[i]! * k, to = (this.low[i]! + this.extent[i]!) * k;
      const t = Math.min(Math.max(axis === "x" ? this.tx : this.ty, size * 0.25 - to), size * 0.75 - from);
      if (axis === "x") this.tx = t;
      else this.ty = t;
    }
  }
}

// narrowest is the distance of neighbours in the fullest row.
function narrowest(m: Model): number {
  const rows = new Map<number, number[]>();
  m.y.forEach((y, i) => {
    const row = rows.get(y);
    if (row) row.push(m.x[i]!);
    else rows.set(y, [m.x[i]!]);
  });
  let least = Infinity;
  for (const row of rows.values()) {
    row.sort((a, b) => a - b);
    for (let i = 1; i < row.length; i++) least = Math.min(least, row[i]! - row[i - 1]!);
  }
  return Number.isFinite(least) && least > 0 ? least : 1;
}

// median is the usual length of a link.
function median(m: Model): number {
  const lengths = Array.from(m.a, (a, l) => Math.hypot(m.x[a]! - m.x[m.b[l]!]!, m.y[a]! - m.y[m.b[l]!]!)).filter((v) => v > 0).sort((a, b) => a - b);
  return lengths[lengths.length >> 1] ?? 1;
}
