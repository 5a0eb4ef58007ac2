// The picture of the map: links in batches of one colour, then what layers add, then nodes and their names.

import { shown } from "./dom";
import { css, type Scale } from "./palette";
import type { Bundle, Model, MapState } from "./map_model";
import type { Frame } from "./map_view";

// Look is what is drawn beside places and values.
export interface Look {
  state: MapState | null;
  scale: Scale | null;
  level: Uint8Array; // rank of the worst open finding, by direction
  nodeLevel: Uint8Array;
  suspects: Map<number, number>; // weights by direction; empty where the layer is off
  cover: Uint16Array | null; // how many probes cross a direction
  detailed: Uint8Array | null;
  path: { nodes: { node: number; marked: boolean }[]; links: number[] } | null; // -1 where it is not known
  drops: Map<number, number>;
  palette: string[];
}

export const severityColors = ["", "--info", "--warning", "--critical"];

const buckets = 32;
const tau = 2 * Math.PI;

export class Painter {
  readonly sx: Float32Array; // places on the screen
  readonly sy: Float32Array;
  private order: Int32Array | null = null; // directions with a value by colour, dark ones first
  private ends = new Int32Array(buckets + 1);
  private silent: number[] = [];
  bundled = false;
  radius = 4;
  private wide = 0; // of the canvas, px
  private high = 0;

  constructor(readonly model: Model) {
    this.sx = new Float32Array(model.size);
    this.sy = new Float32Array(model.size);
  }

  // sort puts directions into batches of a colour. It is called when values change, not when the view does.
  sort(look: Look): void {
    const n = this.model.directions, values = look.state?.values ?? [];
    const bucket = new Uint8Array(n), count = new Int32Array(buckets + 1);
    this.silent = [];
    for (let d = 0; d < n; d++) {
      const v = values[d] ?? null;
      if (v === null || !look.scale) {
        bucket[d] = buckets;
        if (d % 2 === 0 && (values[d + 1] ?? null) === null) this.silent.push(d >> 1);
      } else bucket[d] = Math.min(buckets - 1, Math.floor(look.scale.place(v) * buckets));
      count[bucket[d]!]!++;
    }
    this.ends = new Int32Array(buckets + 1);
    for (let b = 0, at = 0; b <= buckets; b++) {
      this.ends[b] = at;
      at += count[b]!;
    }
    const next = this.ends.slice();
    this.order = new Int32Array(n);
    for (let d = 0; d < n; d++) this.order[next[bucket[d]!]!++] = d;
  }

  draw(c: CanvasRenderingContext2D, view: Frame, look: Look): void {
    this.project(view);
    c.clearRect(0, 0, this.wide, this.high);
    c.lineCap = "butt";
    const spacing = view.spacing;
    this.radius = Math.min(9, Math.max(1.3, spacing * (this.model.tiers ? 0.3 : 0.16)));
    if (!this.model.tiers) this.radius = Math.max(this.model.size > 400 ? 2.2 : 3.2, this.radius);
    this.bundled = this.model.bundles.length > 0 && spacing < 6;
    this.underlay(c, look);
    if (this.bundled) this.drawBundles(c, view, look);
    else this.drawLinks(c, look);
    this.highlight(c, look);
    this.overlay(c, look);
    this.drawNodes(c, look);
    this.names(c, view);
    this.badges(c, look);
  }

  // project puts nodes where a view has them.
  project(view: Frame): void {
    const { x, y } = this.model;
    for (let i = 0; i < x.length; i++) {
      this.sx[i] = x[i]! * view.kx + view.tx;
      this.sy[i] = y[i]! * view.ky + view.ty;
    }
    this.wide = view.width;
    this.high = view.height;
  }

  private out(a: number, b: number): boolean {
    const { sx, sy } = this, edge = 12;
    return (sx[a]! < -edge && sx[b]! < -edge) || (sy[a]! < -edge && sy[b]! < -edge) || (sx[a]! > this.wide + edge && sx[b]! > this.wide + edge) || (sy[a]! > this.high + edge && sy[b]! > this.high + edge);
  }

  private inSight(node: number): boolean {
    return this.sx[node]! > -4 && this.sx[node]! < this.wide + 4 && this.sy[node]! > -4 && this.sy[node]! < this.high + 4;
  }

  // offset is how far a direction is drawn to the right of the middle. Where there is no room for it, a direction is the half of
  // the line that is at the node that it leaves.
  private get offset(): number {
    return this.radius < 3 ? 0 : Math.min(3.2, this.radius * 0.42);
  }

  // segment gives the ends of a direction on the screen.
  segment(d: number, out: number[]): void {
    const a = this.model.from(d), b = this.model.to(d);
    const ax = this.sx[a]!, ay = this.sy[a]!, bx = this.sx[b]!, by = this.sy[b]!;
    const dx = bx - ax, dy = by - ay, length = Math.hypot(dx, dy) || 1, o = this.offset / length;
    if (o === 0) {
      out[0] = ax;
      out[1] = ay;
      out[2] = ax + dx / 2;
      out[3] = ay + dy / 2;
      return;
    }
    // Parallel links lie side by side.
    const lane = this.lane(d), side = o * (1 + 2.2 * lane);
    out[0] = ax - dy * side;
    out[1] = ay + dx * side;
    out[2] = bx - dy * side;
    out[3] = by + dx * side;
  }

  private lanes: Uint8Array | null = null;

  // lane counts the links between the same nodes before this one.
  private lane(d: number): number {
    if (!this.lanes) {
      const { a, b } = this.model, seen = new Map<string, number>();
      this.lanes = new Uint8Array(a.length);
      for (let l = 0; l < a.length; l++) {
        const key = a[l]! < b[l]! ? `${a[l]} ${b[l]}` : `${b[l]} ${a[l]}`, n = seen.get(key) ?? 0;
        this.lanes[l] = Math.min(n, 8);
        seen.set(key, n + 1);
      }
    }
    return this.lanes[d >> 1] ?? 0;
  }

  private strokeAll(c: CanvasRenderingContext2D, list: Iterable<number>, width: number, style: string): void {
    const s = [0, 0, 0, 0];
    c.beginPath();
    for (const d of list) {
      if (d < 0 || this.out(this.model.from(d), this.model.to(d))) continue;
      this.segment(d, s);
      c.moveTo(s[0]!, s[1]!);
      c.lineTo(s[2]!, s[3]!);
    }
    c.lineWidth = width;
    c.strokeStyle = style;
    c.stroke();
  }

  private get stroke(): number {
    const full = this.radius < 2 ? 0.8 : this.radius < 3 ? 1.1 : Math.min(3.2, 0.9 + this.radius * 0.22);
    return this.model.tiers && this.model.directions > 250 ? Math.max(0.8, full * 0.55) : full;
  }

  private drawLinks(c: CanvasRenderingContext2D, look: Look): void {
    const { model, order } = this;
    if (!order) return;
    // No value in either direction: one dashed line in grey.
    c.beginPath();
    for (const l of this.silent) {
      const a = model.a[l]!, b = model.b[l]!;
      if (this.out(a, b)) continue;
      c.moveTo(this.sx[a]!, this.sy[a]!);
      c.lineTo(this.sx[b]!, this.sy[b]!);
    }
    c.lineWidth = this.radius < 3 ? 0.7 : 1.2;
    c.strokeStyle = css("--border-2");
    if (this.silent.length < 4000 && this.radius >= 2.2) c.setLineDash([4, 4]);
    c.stroke();
    c.setLineDash([]);
    const table = look.palette, width = this.stroke, crowded = model.bundles.length > 0;
    const paint = (part: (list: Int32Array) => Iterable<number>, w: number): void => {
      for (let b = 0; b < buckets; b++) {
        const from = this.ends[b]!, to = this.ends[b + 1]!;
        if (from < to) this.strokeAll(c, part(order.subarray(from, to)), w, table[Math.round(((b + 0.5) / buckets) * (table.length - 1))] ?? "");
      }
    };
    if (crowded) { // links that lead out of sight are faint: there are many, and their other ends are not to be seen
      c.globalAlpha = 0.3;
      paint((list) => list.filter((d) => this.inSight(model.from(d)) !== this.inSight(model.to(d))), 0.8);
      c.globalAlpha = 1;
    }
    paint(crowded ? (list) => list.filter((d) => this.inSight(model.from(d)) && this.inSight(model.to(d))) : (list) => list, width);
    // One direction without a value beside one that has some.
    const half: number[] = [];
    for (let i = this.ends[buckets]!; i < order.length; i++) if ((look.state?.values[order[i]! ^ 1] ?? null) !== null) half.push(order[i]!);
    if (half.length) {
      c.setLineDash([3, 4]);
      this.strokeAll(c, half, 1, css("--border-2"));
      c.setLineDash([]);
    }
    if (this.radius >= 4.5 && !(model.tiers && model.directions > 250)) this.arrows(c, look);
  }

  // arrows show which way packets go, near the end of a direction.
  private arrows(c: CanvasRenderingContext2D, look: Look): void {
    const table = look.palette, s = [0, 0, 0, 0], size = Math.min(6, 1.8 + this.radius * 0.45);
    for (let d = 0; d < this.model.directions; d++) {
      const v = look.state?.values[d] ?? null;
      if (v === null || !look.scale || this.out(this.model.from(d), this.model.to(d))) continue;
      this.segment(d, s);
      const dx = s[2]! - s[0]!, dy = s[3]! - s[1]!, length = Math.hypot(dx, dy);
      if (length < 60) continue;
      const ux = dx / length, uy = dy / length, at = 0.62;
      const x = s[0]! + dx * at, y = s[1]! + dy * at;
      c.fillStyle = table[look.scale.index(v)] ?? "";
      c.beginPath();
      c.moveTo(x + ux * size, y + uy * size);
      c.lineTo(x - ux * size - uy * size * 0.9, y - uy * size + ux * size * 0.9);
      c.lineTo(x - ux * size + uy * size * 0.25, y - uy * size - ux * size * 0.25);
      c.fill();
    }
  }

  // quad is the outline of a bundle on the screen.
  quad(b: Bundle, view: Frame): [number, number][] {
    const y0 = b.lowY * view.ky + view.ty, y1 = b.highY * view.ky + view.ty;
    const x = (v: number): number => v * view.kx + view.tx;
    return [[x(b.low[0]) - 0.5, y0], [x(b.low[1]) + 0.5, y0], [x(b.high[1]) + 0.5, y1], [x(b.high[0]) - 0.5, y1]];
  }

  private drawBundles(c: CanvasRenderingContext2D, view: Frame, look: Look): void {
    const table = look.palette, values = look.state?.values ?? [], loud: number[] = [];
    for (const b of this.model.bundles) {
      c.globalAlpha = b.name.startsWith("Within") ? 0.55 : 0.22;
      let sum = 0, n = 0;
      for (const l of b.links) {
        for (const d of [2 * l, 2 * l + 1]) {
          const v = values[d] ?? null;
          if (v === null || !look.scale) continue;
          const p = look.scale.place(v);
          sum += p;
          n++;
          if (p > 0.8) loud.push(d);
        }
      }
      const q = this.quad(b, view);
      c.beginPath();
      q.forEach(([x, y], i) => (i ? c.lineTo(x, y) : c.moveTo(x, y)));
      c.closePath();
      c.fillStyle = n ? (table[Math.round((sum / n) * (table.length - 1))] ?? "") : css("--surface-3");
      c.fill();
    }
    c.globalAlpha = 1;
    // What stands out is drawn by itself.
    loud.sort((a, b) => (values[a] ?? 0) - (values[b] ?? 0));
    for (const d of loud.slice(-1500)) this.strokeAll(c, [d], 1.2, table[look.scale?.index(values[d] ?? 0) ?? 0] ?? "");
  }

  // underlay has what lies below links: the plan.
  private underlay(c: CanvasRenderingContext2D, look: Look): void {
    const wide = this.stroke;
    if (look.cover) {
      const by: number[][] = [[], [], []];
      look.cover.forEach((n, d) => {
        if (n > 0) by[n > 7 ? 2 : n > 2 ? 1 : 0]!.push(d);
      });
      c.globalAlpha = 0.32;
      by.forEach((list, i) => this.strokeAll(c, list, wide + (this.radius < 3 ? 1.2 : 3.5) + 2 * i, css("--line-6")));
      c.globalAlpha = 1;
    }
  }

  // highlight draws around some links what concerns them alone, and then these again, so that no other link lies on them.
  private highlight(c: CanvasRenderingContext2D, look: Look): void {
    const wide = this.stroke, again: number[] = [], table = look.palette;
    const around = (list: number[], width: number, alpha: number, style: string): void => {
      c.globalAlpha = alpha;
      this.strokeAll(c, list, wide + width, style);
      c.globalAlpha = 1;
      again.push(...list);
    };
    const where = (of: Uint8Array, value: number): number[] => {
      const list: number[] = [];
      of.forEach((n, d) => {
        if (n === value) list.push(d);
      });
      return list;
    };
    if (look.detailed) around(where(look.detailed, 1), this.radius < 3 ? 2 : 6, 0.85, css("--line-5"));
    for (let level = 1; level <= 3; level++) around(where(look.level, level), this.radius < 3 ? 3 : 8, 0.8, css(severityColors[level]!));
    for (const d of new Set(again)) {
      const v = look.state?.values[d] ?? null;
      if (v !== null && look.scale) this.strokeAll(c, [d], wide, table[look.scale.index(v)] ?? "");
    }
  }

  // overlay has what lies upon links.
  private overlay(c: CanvasRenderingContext2D, look: Look): void {
    if (look.suspects.size) {
      c.setLineDash([0.1, 9]);
      c.lineCap = "round";
      this.strokeAll(c, look.suspects.keys(), this.stroke + 2.8, css("--line-4"));
      c.lineCap = "butt";
      c.setLineDash([]);
    }
    if (look.path) this.drawPath(c, look.path);
  }

  private drawPath(c: CanvasRenderingContext2D, path: NonNullable<Look["path"]>): void {
    const known = path.nodes;
    for (let i = 1; i < known.length; i++) {
      const a = known[i - 1]!.node, b = known[i]!.node;
      if (a < 0 || b < 0) continue;
      const d = path.links[i - 1] ?? -1, s = [this.sx[a]!, this.sy[a]!, this.sx[b]!, this.sy[b]!];
      if (d >= 0 && this.offset > 0) this.segment(d, s);
      for (const [width, style] of [[6, css("--surface")], [3, css("--accent")]] as const) {
        c.beginPath();
        c.moveTo(s[0]!, s[1]!);
        c.lineTo(s[2]!, s[3]!);
        if (d < 0) c.setLineDash([3, 4]); // no link of the map
        c.lineWidth = width;
        c.strokeStyle = style;
        c.stroke();
        c.setLineDash([]);
      }
      const dx = s[2]! - s[0]!, dy = s[3]! - s[1]!, length = Math.hypot(dx, dy) || 1, ux = dx / length, uy = dy / length;
      if (length < 24) continue;
      const x = s[0]! + dx * 0.55, y = s[1]! + dy * 0.55;
      c.fillStyle = css("--accent");
      c.beginPath();
      c.moveTo(x + ux * 8, y + uy * 8);
      c.lineTo(x - ux * 5 - uy * 6, y - uy * 5 + ux * 6);
      c.lineTo(x - ux * 5 + uy * 6, y - uy * 5 - ux * 6);
      c.fill();
    }
  }

  private outline(c: CanvasRenderingContext2D, i: number, r: number): void {
    const x = this.sx[i]!, y = this.sy[i]!, tier = this.model.answer.nodes[i]?.tier;
    if (!this.model.tiers || tier === "core") {
      c.moveTo(x + r, y);
      c.arc(x, y, r, 0, tau);
    } else if (r < 4) c.rect(x - r, y - r, 2 * r, 2 * r);
    else c.roundRect(x - r, y - r, 2 * r, 2 * r, tier === "edge" ? 2 : r * 0.6);
  }

  private hidden(i: number): boolean {
    return this.sx[i]! < -20 || this.sy[i]! < -20 || this.sx[i]! > this.wide + 20 || this.sy[i]! > this.high + 20;
  }

  private drawNodes(c: CanvasRenderingContext2D, look: Look): void {
    const r = this.radius, n = this.model.size, values = look.state?.nodes ?? [], table = look.palette;
    for (let level = 1; level <= 3; level++) {
      c.beginPath();
      for (let i = 0; i < n; i++) if (look.nodeLevel[i] === level && !this.hidden(i)) this.outline(c, i, r + 4.5);
      c.fillStyle = css(severityColors[level]!);
      c.fill();
    }
    if (look.path) {
      for (const { node, marked } of look.path.nodes) {
        if (node < 0) continue;
        c.beginPath();
        this.outline(c, node, r + 5);
        c.fillStyle = css("--surface");
        c.fill();
        if (marked) c.setLineDash([3, 3]);
        c.lineWidth = 2.5;
        c.strokeStyle = css("--accent");
        c.stroke();
        c.setLineDash([]);
      }
    }
    c.beginPath();
    for (let i = 0; i < n; i++) if (!this.hidden(i)) this.outline(c, i, r);
    c.fillStyle = r < 2.5 ? css("--text-2") : css("--surface-3");
    c.fill();
    if (r < 2.5) return;
    c.lineWidth = Math.min(1.6, r * 0.22);
    c.strokeStyle = css("--text-2");
    c.stroke();
    if (r < 4) return;
    // What a node's own hops say, such as those to hosts.
    for (let i = 0; i < n; i++) {
      const v = values[i] ?? null;
      if (v === null || !look.scale || this.hidden(i)) continue;
      c.beginPath();
      this.outline(c, i, r * 0.52);
      c.fillStyle = table[look.scale.index(v)] ?? "";
      c.fill();
    }
  }

  // names are written where there is room, first those of nodes with many links.
  private names(c: CanvasRenderingContext2D, view: Frame): void {
    const { model, radius } = this;
    c.font = `540 11px ${css("--font")}`;
    c.lineJoin = "round";
    c.textBaseline = "middle";
    c.lineWidth = 3;
    c.strokeStyle = css("--surface");
    c.fillStyle = css("--text");
    if (model.tiers) this.groupNames(c, view);
    if (view.spacing < (model.tiers ? 24 : 16)) return;
    const taken: number[][] = [];
    for (let i = 0; i < model.size && taken.length < 400; i++) if (!this.hidden(i)) taken.push([this.sx[i]! - radius, this.sy[i]! - radius, this.sx[i]! + radius, this.sy[i]! + radius]);
    const order = Array.from({ length: model.size }, (_, i) => i).filter((i) => !this.hidden(i)).sort((i, j) => model.degree[j]! - model.degree[i]! || i - j);
    c.fillStyle = css("--text");
    let written = 0;
    for (const i of order) {
      if (written >= 260) break;
      const text = clip(c, shown(model.label(i)), model.tiers ? Math.max(46, view.spacing * 1.4) : 120), w = c.measureText(text).width;
      const x = this.sx[i]!, y = this.sy[i]!, tier = model.answer.nodes[i]?.tier, gap = radius + 9;
      const spots = model.tiers ? [[x, tier === "edge" ? y + gap + 1 : y - gap - 1]] : [[x + radius + 5 + w / 2, y], [x, y - gap], [x, y + gap], [x - radius - 5 - w / 2, y]];
      const spot = spots.find(([sx, sy]) => !taken.some((b) => sx! - w / 2 < b[2]! && sx! + w / 2 > b[0]! && sy! - 7 < b[3]! && sy! + 7 > b[1]!));
      if (!spot) continue;
      c.textAlign = "center";
      c.strokeText(text, spot[0]!, spot[1]!);
      c.fillText(text, spot[0]!, spot[1]!);
      taken.push([spot[0]! - w / 2 - 2, spot[1]! - 7, spot[0]! + w / 2 + 2, spot[1]! + 7]);
      written++;
    }
  }

  // groupNames writes pods and planes beside their rows.
  private groupNames(c: CanvasRenderingContext2D, view: Frame): void {
    const groups = new Map<string, [number, number, number]>(); // from, to, y
    const planes = new Set(this.model.answer.nodes.map((n) => n.plane ?? 0)).size; // those that are in none count, too
    this.model.answer.nodes.forEach((n, i) => {
      const name = shown(n.tier === "edge" && n.pod ? `Pod ${n.pod}` : n.tier === "core" && n.plane && planes > 2 ? `Plane ${n.plane}` : "");
      if (!name) return;
      const g = groups.get(name) ?? [Infinity, -Infinity, this.sy[i]!];
      g[0] = Math.min(g[0], this.sx[i]!);
      g[1] = Math.max(g[1], this.sx[i]!);
      groups.set(name, g);
    });
    c.fillStyle = css("--text-3");
    c.textAlign = "center";
    const beyond = view.spacing < 24 ? this.radius + 12 : this.radius + 26;
    for (const [name, [from, to, y]] of groups) {
      const x = (from + to) / 2, text = c.measureText(name).width < to - from + view.spacing ? name : name.replace(/^\D+/, "");
      if (x < 0 || x > this.wide || c.measureText(text).width > to - from + view.spacing) continue;
      c.fillText(text, x, name.startsWith("Pod") ? y + beyond : y - beyond);
    }
  }

  // badges distinguish findings by shape, and show suspects and drops.
  private badges(c: CanvasRenderingContext2D, look: Look): void {
    const s = [0, 0, 0, 0], size = this.radius < 3 ? 5 : 7;
    let drawn = 0;
    for (let d = 0; d < look.level.length && drawn < 300; d++) {
      const level = look.level[d]!;
      if (!level || this.out(this.model.from(d), this.model.to(d))) continue;
      this.segment(d, s);
      const at = this.offset ? 0.36 : 0.7;
      severityBadge(c, s[0]! + (s[2]! - s[0]!) * at, s[1]! + (s[3]! - s[1]!) * at, size, level);
      drawn++;
    }
    for (const d of look.suspects.keys()) {
      if (drawn++ > 600 || this.out(this.model.from(d), this.model.to(d))) continue;
      this.segment(d, s);
      const x = s[0]! + (s[2]! - s[0]!) * 0.52, y = s[1]! + (s[3]! - s[1]!) * 0.52;
      disc(c, x, y, size, css("--line-4"));
      mark(c, "?", x, y);
    }
    for (let i = 0; i < look.nodeLevel.length; i++) {
      const level = look.nodeLevel[i]!;
      if (level && !this.hidden(i)) severityBadge(c, this.sx[i]! + this.radius + 3, this.sy[i]! - this.radius - 3, size, level);
    }
    c.fillStyle = css("--warning");
    for (const i of look.drops.keys()) {
      if (this.hidden(i)) continue;
      const x = this.sx[i]! - this.radius - 4, y = this.sy[i]! + this.radius + 3;
      c.beginPath();
      c.moveTo(x - 4.5, y - 4);
      c.lineTo(x + 4.5, y - 4);
      c.lineTo(x, y + 4);
      c.fill();
    }
  }
}

function clip(c: CanvasRenderingContext2D, text: string, width: number): string {
  if (c.measureText(text).width <= width) return text;
  let n = Math.min(text.length, 64);
  while (n > 1 && c.measureText(`${text.slice(0, n)}…`).width > width) n--;
  return `${text.slice(0, n)}…`;
}

function disc(c: CanvasRenderingContext2D, x: number, y: number, r: number, fill: string): void {
  c.beginPath();
  c.arc(x, y, r, 0, tau);
  c.fillStyle = fill;
  c.fill();
  c.lineWidth = 1.5;
  c.strokeStyle = css("--surface");
  c.stroke();
}

function mark(c: CanvasRenderingContext2D, text: string, x: number, y: number): void {
  c.font = `750 9px ${css("--font")}`;
  c.textAlign = "center";
  c.textBaseline = "middle";
  c.fillStyle = css("--surface");
  c.fillText(text, x, y + 0.5);
}

// severityBadge has the shapes that the page uses elsewhere: a diamond, a triangle, a disc.
function severityBadge(c: CanvasRenderingContext2D, x: number, y: number, r: number, level: number): void {
  c.beginPath();
  if (level === 3) {
    c.moveTo(x, y - r - 1);
    c.lineTo(x + r + 1, y);
    c.lineTo(x, y + r + 1);
    c.lineTo(x - r - 1, y);
  } else if (level === 2) {
    c.moveTo(x, y - r);
    c.lineTo(x + r + 1, y + r - 1);
    c.lineTo(x - r - 1, y + r - 1);
  } else c.arc(x, y, r - 1, 0, tau);
  c.closePath();
  c.fillStyle = css(severityColors[level]!);
  c.fill();
  c.lineWidth = 1.5;
  c.strokeStyle = css("--surface");
  c.stroke();
  if (r > 5) mark(c, level === 1 ? "i" : "!", x, level === 2 ? y + 1.5 : y);
}
