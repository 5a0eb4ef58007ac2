// The canvas of the map: it draws when something changed, and says what the pointer is at.

import { el, setAttribute, setHidden } from "./dom";
import { Painter, type Look } from "./map_draw";
import { Layout } from "./map_layout";
import type { Bundle, Model } from "./map_model";
import { View, type Frame } from "./map_view";
import { css } from "./palette";
import { part, type Drawn } from "./save";

// Spot is something on the map.
export type Spot = { kind: "node"; node: number } | { kind: "link"; link: number } | { kind: "bundle"; bundle: Bundle };

const largeMap = 4000; // directions
const restAfter = 140; // ms

interface Events {
  choose(s: Spot | null): void;
  describe(s: Spot): Node[]; // for the tooltip
  label(): string; // of the canvas, for those who do not see it
}

export class MapCanvas {
  readonly view = new View();
  model: Model | null = null;
  look: Look = { state: null, scale: null, level: new Uint8Array(), nodeLevel: new Uint8Array(), suspects: new Map(), cover: null, detailed: null, path: null, drops: new Map(), palette: [] };
  chosen: Spot[] = [];
  private painter: Painter | null = null;
  private layout: Layout | null = null;
  private hover: Spot | null = null;
  private frame = 0;
  private stale = false; // the lower canvas
  private unsorted = false;
  private readonly base = el("canvas", { class: "map-canvas" });
  private readonly top = el("canvas", { class: "map-canvas map-top", tabindex: "0", role: "img", "aria-label": "Map of the network" });
  private readonly pointers = new Map<number, [number, number]>();
  private moved = 0;
  private draws = 0;
  private drawn: Frame | null = null; // what the lower canvas shows
  private byHand = false; // the map is being moved
  private rest = 0;

  constructor(private readonly root: HTMLElement, private readonly tooltip: HTMLElement, private readonly events: Events) {
    root.append(this.base, this.top);
    new ResizeObserver(() => this.redraw()).observe(root);
    this.top.addEventListener("pointerdown", (e) => this.down(e));
    this.top.addEventListener("pointermove", (e) => this.move(e));
    this.top.addEventListener("pointerup", (e) => this.up(e));
    this.top.addEventListener("pointercancel", (e) => this.pointers.delete(e.pointerId));
    this.top.addEventListener("pointerleave", () => this.point(null));
    this.top.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    this.top.addEventListener("dblclick", (e) => {
      this.view.scale(2, e.offsetX, e.offsetY);
      this.redraw();
    });
    this.top.addEventListener("keydown", (e) => this.key(e));
  }

  // drawn is what is in sight.
  parts(): Drawn[] {
    return [part(this.base), part(this.top)];
  }

  set(model: Model): void {
    this.layout?.stop();
    this.model = model;
    this.painter = new Painter(model);
    this.drawn = null;
    this.hover = null;
    this.layout = model.answer.layout === "force" ? new Layout(model, (done) => this.laid(done)) : null;
    this.view.measure(model);
    this.sorted();
  }

  private laid(done: boolean): void {
    if (!this.model) return;
    this.view.measure(this.model);
    setAttribute(this.root, "data-laid", done ? "yes" : "no");
    this.redraw();
  }

  // sorted is for values that changed, redraw for everything else.
  sorted(): void {
    this.unsorted = true;
    this.redraw();
  }

  redraw(): void {
    this.stale = true;
    this.later();
  }

  private later(): void {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    this.frame = 0;
    const { painter, model } = this, width = this.root.clientWidth, height = this.root.clientHeight;
    if (!painter || !model || width === 0 || height === 0) return;
    this.view.resize(width, height);
    if (this.unsorted) painter.sort(this.look);
    if (this.stale) this.drawBase(painter, model);
    this.stale = this.unsorted = false;
    painter.project(this.view);
    this.drawTop(context(this.top, width, height), painter);
    // What is drawn where, for tests and for those who write them.
    const { view } = this, at = (v: number): string => v.toFixed(3);
    setAttribute(this.root, "data-laid", this.layout?.running ? "no" : "yes");
    setAttribute(this.root, "data-drawn", `${model.size} nodes, ${model.answer.links.length} links${painter.bundled ? `, ${model.bundles.length} bundles` : ""}`);
    setAttribute(this.root, "data-view", `${at(view.kx)} ${at(view.ky)} ${at(view.tx)} ${at(view.ty)}`);
    setAttribute(this.top, "aria-label", this.events.label());
  }

  // drawBase draws nodes and links. While a large map is being moved, what was drawn before is moved as a whole, and drawn again
  // when the hand rests or the rim around it has come into sight.
  private drawBase(painter: Painter, model: Model): void {
    const { view, drawn } = this, large = model.directions > largeMap, rim = large ? 200 : 0;
    if (drawn && large && !this.unsorted && this.byHand) {
      const sx = view.kx / drawn.kx, sy = view.ky / drawn.ky, x = view.tx - drawn.tx * sx, y = view.ty - drawn.ty * sy;
      if (x <= 0 && x + drawn.width * sx >= view.width && sx > 0.5 && sx < 2.5) {
        this.base.style.transform = `matrix(${sx}, 0, 0, ${sy}, ${x}, ${y})`;
        return;
      }
    }
    const frame = view.frame(rim), start = performance.now();
    painter.draw(context(this.base, frame.width, frame.height), frame, this.look);
    this.base.style.width = `${frame.width}px`;
    this.base.style.height = `${frame.height}px`;
    this.base.style.transform = `translate(${-rim}px, ${-rim}px)`;
    this.drawn = frame;
    this.base.dataset.ms = (performance.now() - start).toFixed(1);
    setAttribute(this.root, "data-draws", String(++this.draws));
  }

  // glides is for what moves the map by hand.
  private glides(): void {
    this.byHand = true;
    clearTimeout(this.rest);
    this.rest = window.setTimeout(() => {
      this.byHand = false;
      this.redraw();
    }, restAfter);
    this.redraw();
  }

  private drawTop(c: CanvasRenderingContext2D, p: Painter): void {
    c.clearRect(0, 0, this.view.width, this.view.height);
    for (const s of this.chosen) this.outline(c, p, s, css("--cursor"), 2);
    if (this.hover) this.outline(c, p, this.hover, css("--accent"), 2.5);
  }

  private outline(c: CanvasRenderingContext2D, p: Painter, spot: Spot, style: string, width: number): void {
    c.strokeStyle = style;
    c.lineWidth = width;
    c.lineCap = "round";
    c.beginPath();
    if (spot.kind === "node") {
      c.globalAlpha = 0.6; // its links, out of all others
      for (const d of p.model.of(spot.node)) {
        c.moveTo(p.sx[spot.node]!, p.sy[spot.node]!);
        c.lineTo(p.sx[p.model.to(d)]!, p.sy[p.model.to(d)]!);
      }
      c.lineWidth = 1;
      c.stroke();
      c.globalAlpha = 1;
      c.lineWidth = width;
      c.beginPath();
      c.arc(p.sx[spot.node]!, p.sy[spot.node]!, p.radius + 6, 0, 2 * Math.PI);
    }
    else if (spot.kind === "link") {
      const s = [0, 0, 0, 0];
      p.segment(spot.link, s);
      const dx = s[2]! - s[0]!, dy = s[3]! - s[1]!, length = Math.hypot(dx, dy) || 1, o = 4;
      for (const side of [-o, o]) {
        c.moveTo(s[0]! - (dy / length) * side, s[1]! + (dx / length) * side);
        c.lineTo(s[2]! - (dy / length) * side, s[3]! + (dx / length) * side);
      }
    } else {
      p.quad(spot.bundle, this.view).forEach(([x, y], i) => (i ? c.lineTo(x, y) : c.moveTo(x, y)));
      c.closePath();
    }
    c.stroke();
  }

  // at finds what is drawn at a place: nodes before links.
  private at(x: number, y: number): Spot | null {
    const { painter: p, model: m } = this;
    if (!p || !m) return null;
    let best = -1, least = Math.max(7, p.radius + 3) ** 2;
    for (let i = 0; i < m.size; i++) {
      const d = (p.sx[i]! - x) ** 2 + (p.sy[i]! - y) ** 2;
      if (d < least) [best, least] = [i, d];
    }
    if (best >= 0) return { kind: "node", node: best };
    if (p.bundled) {
      const hit = m.bundles.filter((b) => inside(p.quad(b, this.view), x, y)).sort((a, b) => a.links.length - b.links.length)[0];
      return hit ? { kind: "bundle", bundle: hit } : null;
    }
    least = 36;
    const s = [0, 0, 0, 0];
    for (let d = 0; d < m.directions; d++) {
      p.segment(d, s);
      const q = distance(s, x, y);
      if (q < least) [best, least] = [d, q];
    }
    return best >= 0 ? { kind: "link", link: best } : null;
  }

  private point(s: Spot | null, x = 0, y = 0): void {
    if (JSON.stringify(key(s)) !== JSON.stringify(key(this.hover))) {
      this.hover = s;
      this.later();
      if (s) this.tooltip.replaceChildren(...this.events.describe(s));
      setHidden(this.tooltip, !s);
      this.top.classList.toggle("pointing", s !== null);
    }
    if (!s) return;
    const { offsetWidth: w, offsetHeight: h } = this.tooltip;
    const left = x + 18 + w > window.innerWidth ? x - w - 14 : x + 18, top = Math.min(y + 14, window.innerHeight - h - 8);
    this.tooltip.style.transform = `translate(${Math.max(8, left)}px, ${Math.max(8, top)}px)`;
  }

  private down(e: PointerEvent): void {
    if (e.button !== 0) return;
    this.pointers.set(e.pointerId, [e.offsetX, e.offsetY]);
    this.moved = 0;
    this.top.setPointerCapture(e.pointerId);
  }

  private move(e: PointerEvent): void {
    const before = this.pointers.get(e.pointerId);
    if (!before) {
      if (e.pointerType !== "touch") this.point(this.at(e.offsetX, e.offsetY), e.clientX, e.clientY);
      return;
    }
    const dx = e.offsetX - before[0], dy = e.offsetY - before[1];
    const other = [...this.pointers].find(([id]) => id !== e.pointerId)?.[1];
    this.pointers.set(e.pointerId, [e.offsetX, e.offsetY]);
    this.moved += Math.abs(dx) + Math.abs(dy);
    if (this.moved < 4) return;
    this.point(null);
    if (other) { // two fingers
      const apart = (p: [number, number]): number => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
      this.view.scale(apart([e.offsetX, e.offsetY]) / apart(before), (e.offsetX + other[0]) / 2, (e.offsetY + other[1]) / 2);
      this.view.pan(dx / 2, dy / 2);
    } else this.view.pan(dx, dy);
    this.glides();
  }

  private up(e: PointerEvent): void {
    if (!this.pointers.delete(e.pointerId) || this.moved >= 4) return;
    const s = this.at(e.offsetX, e.offsetY);
    if (s?.kind === "bundle") {
      this.view.scale(3, e.offsetX, e.offsetY);
      this.redraw();
    } else this.events.choose(s);
  }

  // wheel zooms only a map that has the focus, so that the page can be scrolled across it.
  private wheel(e: WheelEvent): void {
    if (document.activeElement !== this.top && !e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    this.view.scale(Math.exp(-Math.max(-60, Math.min(60, e.deltaY)) * 0.004), e.offsetX, e.offsetY);
    this.point(null);
    this.glides();
  }

  private key(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const step = 60;
    switch (e.key) {
      case "ArrowLeft": this.view.pan(step, 0); break;
      case "ArrowRight": this.view.pan(-step, 0); break;
      case "ArrowUp": this.view.pan(0, step); break;
      case "ArrowDown": this.view.pan(0, -step); break;
      case "+": case "=": this.zoom(1.5); break;
      case "-": this.zoom(1 / 1.5); break;
      case "0": this.view.fit(); break;
      case "Escape": this.events.choose(null); break;
      default: return;
    }
    e.preventDefault();
    this.glides();
  }

  zoom(factor: number): void {
    this.view.scale(factor, this.view.width / 2, this.view.height / 2);
    this.redraw();
  }

  fit(): void {
    this.view.fit();
    this.redraw();
  }

  // show brings a node or link into sight.
  show(s: Spot): void {
    const m = this.model;
    if (!m || s.kind === "bundle") return;
    const [a, b] = s.kind === "node" ? [s.node, s.node] : [m.from(s.link), m.to(s.link)];
    this.view.resize(this.root.clientWidth, this.root.clientHeight);
    this.view.show((m.x[a]! + m.x[b]!) / 2, (m.y[a]! + m.y[b]!) / 2, true);
    this.redraw();
  }
}

const key = (s: Spot | null): unknown => (s?.kind === "bundle" ? ["bundle", s.bundle.name, s.bundle.lowY] : s);

// context gives the canvas the size of the window's pixels.
function context(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = window.devicePixelRatio || 1, w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const c = canvas.getContext("2d");
  if (!c) throw new Error("the browser draws nothing");
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  return c;
}

// distance from a segment, squared.
function distance(s: number[], x: number, y: number): number {
  const dx = s[2]! - s[0]!, dy = s[3]! - s[1]!;
  const t = Math.min(1, Math.max(0, ((x - s[0]!) * dx + (y - s[1]!) * dy) / (dx * dx + dy * dy || 1)));
  return (s[0]! + t * dx - x) ** 2 + (s[1]! + t * dy - y) ** 2;
}

function inside(q: [number, number][], x: number, y: number): boolean {
  let odd = false;
  for (let i = 0, j = q.length - 1; i < q.length; j = i++) {
    const [xi, yi] = q[i]!, [xj, yj] = q[j]!;
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) odd = !odd;
  }
  return odd;
}
