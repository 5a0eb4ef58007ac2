// The map as a picture of switches by switches: the cell at a row and a column is the link from the one to the other. Neighbours
// are near each other, so that faults of a rack, a pod or a plane are seen as shapes.

import { ask, type Maybe } from "./api";
import { byId, el, setHidden, setText } from "./dom";
import { plural } from "./format";
import type { Look } from "./map_draw";
import { severityColors } from "./map_draw";
import type { Model } from "./map_model";
import { rawUnits } from "./chart";
import { css } from "./palette";
import { part, saveButtons, type Table } from "./save";
import { fitCanvas } from "./spark";

interface Order { nodes: { id: number }[]; directions: [number, number][]; hops_elsewhere: number }

const largest = 22; // px of a cell
const labelled = 9; // px from which rows have names
const side = 620; // px of a picture of few switches

export interface MatrixEvents {
  choose(d: number): void;
  describe(d: number): Node[];
  name(): string; // of the value
}

export class MapMatrix {
  private m: Model | null = null;
  private look: Look | null = null;
  private order: Order | null = null;
  private version = ""; // of the map that the order is of
  private cells = new Map<number, number>(); // direction by row * n + column, of parallel links the one with the greatest value
  private at = -1; // cell of the keyboard
  private cell = 4; // px
  private gutter = 0; // px for names
  private readonly canvas = el("canvas", { class: "matrix-canvas", "aria-hidden": "true" });
  private readonly scroller = el("div", {
    class: "matrix-scroller", tabindex: 0, role: "application", "aria-roledescription": "matrix of links",
    "aria-label": "Links of switches by switches: the row sends, the column receives. Arrow keys go to the next link, Enter opens it. The list below has the same values as text.",
  }, this.canvas);
  private readonly note = el("p", { class: "matrix-note" });

  constructor(private readonly root: HTMLDetailsElement, private readonly tooltip: HTMLElement, private readonly events: MatrixEvents) {
    root.append(el("div", { class: "matrix-head" }, this.note, saveButtons(() => `Matrix of links, ${this.events.name()}`, { csv: () => this.table(), png: () => ({ title: `${this.events.name()}: rows send, columns receive`, parts: [part(this.canvas)] }) })), this.scroller);
    root.addEventListener("toggle", () => this.load().catch(console.warn));
    this.canvas.addEventListener("pointermove", (e) => this.point(e));
    this.canvas.addEventListener("pointerleave", () => setHidden(this.tooltip, true));
    this.canvas.addEventListener("click", (e) => {
      const d = this.cells.get(this.under(e));
      if (d !== undefined) this.events.choose(d);
    });
    this.scroller.addEventListener("keydown", (e) => this.key(e));
    this.scroller.addEventListener("focus", () => {
      if (this.at < 0) this.at = this.worst();
      this.draw();
      this.say();
    });
    this.scroller.addEventListener("blur", () => {
      setHidden(this.tooltip, true);
      this.draw();
    });
    new ResizeObserver(() => this.draw()).observe(this.scroller);
  }

  set(m: Model, look: Look): void {
    this.m = m;
    this.look = look;
    this.load().catch(console.warn);
  }

  // load asks for the order of rows once for each map.
  private async load(): Promise<void> {
    const { m } = this;
    if (!m || !this.root.open || m.size === 0) return;
    if (this.version !== m.answer.version) {
      const order = await ask<Order>("film", { limit: 1 });
      if (this.m !== m || order.nodes.length !== m.size || order.directions.length !== m.directions) return; // another map meanwhile
      this.order = order;
      this.version = m.answer.version;
      this.at = -1;
    }
    this.draw();
  }

  private worst(): number {
    let best = -1, most = -Infinity;
    for (const [at, d] of this.cells) {
      const v = this.look?.state?.values[d] ?? null;
      if (v !== null && v > most) [best, most] = [at, v];
    }
    return best < 0 ? (this.cells.keys().next().value ?? -1) : best;
  }

  private draw(): void {
    const { m, look, order } = this;
    const width = this.scroller.clientWidth;
    if (!m || !look || !order || !this.root.open || width === 0 || this.version !== m.answer.version) return;
    const n = m.size, values = look.state?.values ?? [];
    const names = order.nodes.map((x) => m.label(m.index.get(String(x.id)) ?? 0));
    this.cell = Math.max(2, Math.min(largest, Math.floor(Math.min(side, width - 110) / n)));
    if (this.cell >= labelled) this.cell = Math.max(labelled, this.cell);
    this.gutter = this.cell >= labelled ? Math.min(104, 14 + 7 * Math.max(...names.map((x) => x.length))) : 0;
    const px = this.gutter + n * this.cell + 1;
    this.canvas.style.width = this.canvas.style.height = `${px}px`;
    const c = fitCanvas(this.canvas, px, px);
    if (!c) return;
    this.cells.clear();
    order.directions.forEach(([row, column], d) => {
      const at = row * n + column, had = this.cells.get(at);
      if (had === undefined || (values[d] ?? -Infinity) > (values[had] ?? -Infinity)) this.cells.set(at, d);
    });
    c.clearRect(0, 0, px, px);
    c.fillStyle = css("--surface");
    c.fillRect(0, 0, px, px);
    const gap = this.cell >= 6 ? 1 : 0, g = this.gutter;
    c.fillStyle = css("--surface-3");
    for (let i = 0; i < n; i++) c.fillRect(g + i * this.cell, g + i * this.cell, this.cell - gap, this.cell - gap);
    let known = 0;
    for (const [at, d] of this.cells) {
      const v: Maybe = values[d] ?? null, x = g + (at % n) * this.cell, y = g + Math.floor(at / n) * this.cell;
      if (v === null || !look.scale) {
        c.fillStyle = css("--border-2");
        const s = Math.max(1, this.cell / 4);
        c.fillRect(x + (this.cell - gap - s) / 2, y + (this.cell - gap - s) / 2, s, s);
        continue;
      }
      known++;
      c.fillStyle = look.palette[look.scale.index(v)] ?? "";
      c.fillRect(x, y, this.cell - gap, this.cell - gap);
    }
    for (const [at, d] of this.cells) {
      const level = look.level[d] ?? 0;
      if (level) this.frame(c, at, n, css(severityColors[level] ?? ""), this.cell >= 6 ? 2 : 1);
    }
    if (this.at >= 0 && document.activeElement === this.scroller) this.frame(c, this.at, n, css("--accent"), 3);
    if (g) {
      c.font = `11px ${css("--font")}`;
      c.fillStyle = css("--text-2");
      c.textBaseline = "middle";
      names.forEach((name, i) => {
        const short = name.length > 15 ? `${name.slice(0, 14)}…` : name, mid = g + (i + 0.5) * this.cell;
        c.textAlign = "right";
        c.fillText(short, g - 6, mid);
        c.save();
        c.translate(mid, g - 6);
        c.rotate(-Math.PI / 2);
        c.textAlign = "left";
        c.fillText(short, 0, 0);
        c.restore();
      });
    }
    setText(this.note, `${this.events.name()}: ${n} × ${plural(n, "switch", "switches")}, ${known} of ${plural(this.cells.size, "link")} with values; the row sends, the column receives. Frames are open findings, dots have no report${order.hops_elsewhere ? `; ${plural(order.hops_elsewhere, "hop")} to hosts have no cell` : ""}.`);
  }

  // table has the cells as rows: every link with its value.
  private table(): Table {
    const { m, order } = this, n = m?.size ?? 0, state = this.look?.state, unit = state?.before ? "binary logarithm of the ratio to the day before" : (rawUnits[state?.unit ?? ""] ?? "");
    const name = (i: number): string => m?.label(m.index.get(String(order?.nodes[i]?.id)) ?? 0) ?? "";
    return {
      heads: ["From node", "From name", "To node", "To name", `${this.events.name()} (${unit})`],
      rows: [...this.cells].sort((a, b) => a[0] - b[0]).map(([at, d]) => {
        const row = Math.floor(at / n), column = at % n;
        return [order?.nodes[row]?.id, name(row), order?.nodes[column]?.id, name(column), state?.values[d]];
      }),
    };
  }

  private frame(c: CanvasRenderingContext2D, at: number, n: number, style: string, width: number): void {
    c.strokeStyle = style;
    c.lineWidth = width;
    c.strokeRect(this.gutter + (at % n) * this.cell - 0.5, this.gutter + Math.floor(at / n) * this.cell - 0.5, this.cell, this.cell);
  }

  private under(e: MouseEvent): number {
    const box = this.canvas.getBoundingClientRect(), n = this.m?.size ?? 0;
    const column = Math.floor((e.clientX - box.left - this.gutter) / this.cell), row = Math.floor((e.clientY - box.top - this.gutter) / this.cell);
    return column < 0 || row < 0 || column >= n || row >= n ? -1 : row * n + column;
  }

  private point(e: PointerEvent): void {
    const d = this.cells.get(this.under(e));
    this.canvas.classList.toggle("pointing", d !== undefined);
    this.tip(d, e.clientX, e.clientY);
  }

  private tip(d: number | undefined, x: number, y: number): void {
    setHidden(this.tooltip, d === undefined);
    if (d === undefined) return;
    this.tooltip.replaceChildren(...this.events.describe(d));
    const box = this.tooltip.getBoundingClientRect();
    this.tooltip.style.left = `${Math.max(4, Math.min(window.innerWidth - box.width - 4, x + 14))}px`;
    this.tooltip.style.top = `${Math.max(4, y + 16 + box.height > window.innerHeight ? y - box.height - 12 : y + 16)}px`;
  }

  private key(e: KeyboardEvent): void {
    const n = this.m?.size ?? 0;
    const steps: Record<string, [number, number]> = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
    if (e.key === "Enter") {
      const d = this.cells.get(this.at);
      if (d !== undefined) this.events.choose(d);
      e.preventDefault();
      return;
    }
    const step = steps[e.key];
    if (!step || n === 0 || this.at < 0) return;
    e.preventDefault();
    this.at = this.next(step, n);
    this.draw();
    this.say();
    const x = this.gutter + (this.at % n) * this.cell, y = this.gutter + Math.floor(this.at / n) * this.cell;
    const s = this.scroller;
    s.scrollLeft = Math.max(Math.min(s.scrollLeft, x - 20), x + this.cell + 20 - s.clientWidth);
    s.scrollTop = Math.max(Math.min(s.scrollTop, y - 20), y + this.cell + 20 - s.clientHeight);
  }

  // next is the nearest link along a row or column, or else the nearest one that lies that way.
  private next([down, right]: [number, number], n: number): number {
    const row = Math.floor(this.at / n), column = this.at % n;
    let best = this.at, least = Infinity;
    for (const at of this.cells.keys()) {
      const dy = Math.floor(at / n) - row, dx = at % n - column;
      const along = dy * down + dx * right, across = Math.abs(dy * right + dx * down);
      if (along <= 0) continue;
      const cost = along + across * n;
      if (cost < least) [best, least] = [at, cost];
    }
    return best;
  }

  private say(): void {
    const d = this.cells.get(this.at);
    if (d !== undefined) setText(byId("announce-cell"), this.events.describe(d).map((x) => x.textContent ?? "").join(", "));
  }
}
