// The network as a picture: a row per hop, a column per window, colour for how much. It draws the rows that are in
// sight and nothing else, so thousands of hops scroll like ten.

import type { Finding } from "./api";
import { el, setHidden, setText, shown } from "./dom";
import { rawUnits } from "./chart";
import { clock, hopName, hopShort, hopWords, inUnit, nodeShort, stamp, tick } from "./format";
import { Marks, kindName, rank, severityName } from "./marks";
import { Matrix, Row, worst } from "./matrix";
import { Scale, colors, css, fit } from "./palette";
import { iso, part, type Drawn, type Table } from "./save";
import { fitCanvas } from "./spark";

export type Order = "worst" | "node";

const gutter = 112; // for the names
const edge = 2; // right of the last column
const axisHeight = 22;
const fewest = 30; // columns are never wider than if there were so many windows
const resortEvery = 20_000; // ms

interface Cursor { id: number; end: number }

export interface BitmapEvents {
  open(row: Row): void;
  announce(text: string): void;
  scaled(scale: Scale): void;
}

export class Bitmap {
  order: Order = "worst";
  dense = false;
  capacity = 180;
  windowMS = 0;
  past = false; // the columns are those of a range of the history

  private matrix = new Matrix("latency_p99");
  private marks = new Marks([]);
  private marked = ""; // the open findings by which the rows were sorted
  private sorted: Row[] = [];
  private sortedAt = 0;
  private scale: Scale | null = null;
  private title = "";
  private cursor: Cursor | null = null;
  private hover: { row: number; column: number } | null = null;
  private selected: number | null = null;
  private frame = 0;

  private readonly scroller = el("div", {
    class: "bitmap-scroller", tabindex: 0, role: "application", "aria-roledescription": "heat map",
    "aria-label": "Network status: a row for every hop, a column for every window. Arrow keys move, Enter opens the hop. The tables below give the same values as text.",
  });
  private readonly spacer = el("div", { class: "bitmap-spacer" });
  private readonly canvas = el("canvas", { class: "bitmap-canvas", "aria-hidden": "true" });
  private readonly none = el("p", { class: "bitmap-none" });
  private readonly axis = el("canvas", { class: "bitmap-axis", "aria-hidden": "true" });

  constructor(root: HTMLElement, private readonly tooltip: HTMLElement, private readonly events: BitmapEvents) {
    this.spacer.append(this.canvas);
    this.scroller.append(this.spacer);
    root.append(this.none, this.scroller, this.axis);
    this.scroller.addEventListener("scroll", () => {
      if (this.hover) this.hide();
      this.draw();
    }, { passive: true });
    this.scroller.addEventListener("pointermove", (e) => this.point(e));
    this.scroller.addEventListener("pointerleave", () => this.hide());
    this.scroller.addEventListener("click", (e) => this.click(e));
    this.scroller.addEventListener("keydown", (e) => this.key(e));
    this.scroller.addEventListener("focus", () => this.focused());
    this.scroller.addEventListener("blur", () => {
      this.hide();
      this.draw();
    });
    window.addEventListener("scroll", () => {
      if (this.hover) this.hide();
      else if (!this.tooltip.hidden) this.follow();
    }, { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.scroller);
  }

  // set shows a matrix. title names the metric.
  set(matrix: Matrix, title: string): void {
    const nothing = matrix.rows.length === 0 ? "No hop has been reported in the kept windows." : isEmpty(matrix.values()) ? `No report carried ${title.toLowerCase()} in the kept windows.` : "";
    setText(this.none, nothing);
    setHidden(this.none, nothing === "");
    const other = matrix.metric !== this.matrix.metric;
    const rows = matrix.rows.length !== this.sorted.length;
    this.matrix = matrix;
    this.title = title;
    if (other) this.scale = null;
    this.scale = matrix.unit === "ratio" ? new Scale(0, 1) : fit(matrix.values(), this.scale, matrix.unit === "ns" ? 25 : 16);
    this.events.scaled(this.scale);
    // Rows stay where they are while they are read.
    const busy = this.hover !== null || document.activeElement === this.scroller;
    if (other || rows || (!busy && Date.now() - this.sortedAt > resortEvery)) this.sort();
    this.draw();
  }

  // table has the rows in their order, also those out of sight.
  table(): Table {
    const unit = rawUnits[this.matrix.unit] ?? this.matrix.unit;
    return {
      heads: ["Node", "Egress interface", "Name", ...this.matrix.windows.map((w) => `${iso(w)} (${unit})`)],
      rows: this.sorted.map((r) => [r.node, r.egressIf, hopName(r.node, r.egressIf), ...this.matrix.windows.map((_, i) => r.values[i])]),
    };
  }

  // drawn is what is in sight.
  drawn(): Drawn[] {
    return [part(this.canvas), part(this.axis, 0, this.canvas.clientHeight)];
  }

  mark(findings: Iterable<Finding>): void {
    const list = [...findings];
    this.marks = new Marks(list);
    const open = list.filter((f) => f.end_ms === 0).map((f) => `${f.id} ${f.severity}`).join();
    if (open === this.marked) return this.draw();
    this.marked = open;
    if (this.hover === null && document.activeElement !== this.scroller) this.sort();
    this.draw();
  }

  select(row: Row | undefined): void {
    this.selected = row?.id ?? null;
    this.draw();
  }

  // first is the row at the top.
  first(): Row | undefined {
    return this.sorted[0];
  }

  sort(): void {
    this.sortedAt = Date.now();
    this.sorted = this.matrix.rows.slice();
    if (this.order === "worst") {
      const key = new Map(this.sorted.map((r) => [r, [this.marks.level(r.node, r.egressIf), worst(r, this.past)] as const]));
      const at = (r: Row): readonly [number, number] => key.get(r) ?? [0, -1];
      this.sorted.sort((a, b) => at(b)[0] - at(a)[0] || at(b)[1] - at(a)[1]);
    }
  }

  draw(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  private rowHeight(): number {
    const height = this.scroller.clientHeight, n = Math.max(1, this.sorted.length);
    const [least, most] = this.dense ? [5, 12] : [18, 26];
    if (n * most <= height) return most;
    // Whole rows fill the height, so that none is cut at the bottom.
    return height / Math.max(1, Math.min(n, Math.floor(height / least)));
  }

  private slots(): number {
    return Math.max(1, Math.min(this.capacity, Math.max(fewest, this.matrix.windows.length)));
  }

  // x is the left edge of a column; the newest column is always at the right.
  private x(column: number): number {
    const slots = this.slots();
    const width = this.scroller.clientWidth - gutter - edge;
    return gutter + Math.round(((column + slots - this.matrix.windows.length) * width) / slots);
  }

  private paint(): void {
    const { clientWidth: width, clientHeight: height, scrollTop } = this.scroller;
    const c = fitCanvas(this.canvas, width, height);
    if (!c || !this.scale || width === 0) return;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const rowHeight = this.rowHeight();
    this.spacer.style.height = `${Math.max(height, this.sorted.length * rowHeight)}px`;
    const first = Math.floor(scrollTop / rowHeight);
    const last = Math.min(this.sorted.length, Math.ceil((scrollTop + height) / rowHeight));
    const n = this.matrix.windows.length;
    const xs = Array.from({ length: n + 1 }, (_, i) => this.x(i));
    const left = xs[0] ?? gutter, right = xs[n] ?? gutter;
    const gap = (right - left) / Math.max(1, n) >= 5 ? 1 : 0;
    const line = rowHeight >= 8 ? 1 : 0;
    const palette = colors();
    const hatch = this.hatch(c);
    const at = this.cursorPlace();

    c.clearRect(0, 0, width, height);
    c.font = `500 11px ${css("--font")}`;
    c.textBaseline = "middle";
    let nodeAbove = "";
    for (let r = first; r < last; r++) {
      const row = this.sorted[r];
      if (!row) continue;
      const y = Math.round(r * rowHeight - scrollTop), h = Math.round((r + 1) * rowHeight - scrollTop) - y - line;
      if (r === this.hover?.row || row.id === this.selected) {
        c.fillStyle = css(row.id === this.selected ? "--select" : "--hover");
        c.fillRect(0, y, gutter - 4, h);
      }
      c.fillStyle = hatch;
      c.fillRect(left, y, right - left, h);
      for (let i = 0; i < n; i++) {
        const v = row.values[i] ?? null;
        if (v === null) continue;
        const x = xs[i] ?? 0;
        c.fillStyle = palette[this.scale.index(v)] ?? "";
        c.fillRect(x, y, (xs[i + 1] ?? x) - x - gap, h);
      }
      this.paintMarks(c, row, xs, y, h);
      if (rowHeight >= 11 || row.node !== nodeAbove) {
        this.paintName(c, row, y, h, rowHeight >= 11);
        nodeAbove = row.node;
      }
    }
    if (this.hover) {
      const x = xs[this.hover.column];
      if (x !== undefined) {
        c.fillStyle = css("--crosshair");
        c.fillRect(x, 0, Math.max(1, (xs[this.hover.column + 1] ?? x) - x - gap), Math.min(height, this.sorted.length * rowHeight));
      }
    }
    if (at && document.activeElement === this.scroller) {
      const x = xs[at.column] ?? 0, w = (xs[at.column + 1] ?? x) - x - gap;
      c.lineWidth = 2;
      c.strokeStyle = css("--cursor-outer");
      const y = Math.round(at.row * rowHeight - scrollTop), h = Math.round((at.row + 1) * rowHeight - scrollTop) - y - line;
      c.strokeRect(x - 2, y - 2, w + 4, h + 4);
      c.strokeStyle = css("--cursor");
      c.strokeRect(x - 1, y - 1, w + 2, h + 2);
    }
    this.paintAxis(xs);
  }

  private paintName(c: CanvasRenderingContext2D, row: Row, y: number, h: number, whole: boolean): void {
    const level = this.marks.level(row.node, row.egressIf);
    c.fillStyle = css(level || row.id === this.selected ? "--text" : "--text-2");
    const room = gutter - 32;
    let text = shown(whole ? hopShort(row.node, row.egressIf) : row.node === "other" ? row.node : nodeShort(row.node)); // the tooltip has the number too
    while (text.length > 1 && c.measureText(text).width > room) text = `${text.replace(/…$/, "").slice(0, -1)}…`;
    if (whole || h >= 5) c.fillText(text, 22, y + h / 2 + 0.5);
  }

  // paintMarks draws a finding's symbol beside the name, and a line under the windows in which it lasted.
  private paintMarks(c: CanvasRenderingContext2D, row: Row, xs: number[], y: number, h: number): void {
    const found = this.marks.of(row.node, row.egressIf);
    if (found.length === 0) return;
    const ends = this.matrix.windows;
    for (const f of found.slice().sort((a, b) => rank[a.severity] - rank[b.severity])) {
      const from = ends.findIndex((e) => e >= f.start_ms);
      if (from < 0) continue;
      let to = f.end_ms === 0 ? ends.length - 1 : ends.findIndex((e) => e >= f.end_ms);
      if (to < 0) to = ends.length - 1;
      const x = xs[from] ?? 0;
      const thick = h >= 10 ? 3 : 1;
      c.fillStyle = css(`--${f.severity}`);
      c.fillRect(x, y + h - thick, Math.max(2, (xs[to + 1] ?? x) - x), thick);
    }
    const level = this.marks.level(row.node, row.egressIf);
    if (level === 0) return;
    const severity = level === 3 ? "critical" : level === 2 ? "warning" : "info";
    const s = Math.min(6, h / 2), cx = 10, cy = y + h / 2;
    c.fillStyle = css(`--${severity}`);
    c.beginPath();
    if (level === 3) {
      c.moveTo(cx, cy - s);
      c.lineTo(cx + s, cy);
      c.lineTo(cx, cy + s);
      c.lineTo(cx - s, cy);
    } else if (level === 2) {
      c.moveTo(cx, cy - s);
      c.lineTo(cx + s, cy + s * 0.8);
      c.lineTo(cx - s, cy + s * 0.8);
    } else c.arc(cx, cy, s * 0.7, 0, 2 * Math.PI);
    c.fill();
  }

  private paintAxis(xs: number[]): void {
    const width = this.scroller.clientWidth;
    const c = fitCanvas(this.axis, width, axisHeight);
    if (!c) return;
    this.axis.style.width = `${width}px`;
    this.axis.style.height = `${axisHeight}px`;
    c.clearRect(0, 0, width, axisHeight);
    const ends = this.matrix.windows;
    const n = ends.length;
    if (n === 0) return;
    c.fillStyle = css("--warning");
    ends.forEach((end, i) => {
      if (this.matrix.missing.has(end)) c.fillRect(xs[i] ?? 0, 0, Math.max(2, (xs[i + 1] ?? 0) - (xs[i] ?? 0)), 3);
    });
    c.font = `11px ${css("--font")}`;
    c.textBaseline = "alphabetic";
    c.fillStyle = css("--text-3");
    const perPixel = ((ends[n - 1] ?? 0) - (ends[0] ?? 0)) / Math.max(1, (xs[n] ?? 0) - (xs[0] ?? 0));
    const every = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200].map((s) => s * 1000).find((s) => s / perPixel > 78) ?? 86_400_000;
    const last = ends[n - 1] ?? 0;
    const nowText = this.past ? stamp(last) : `now ${clock(last)}`;
    const nowWidth = c.measureText(nowText).width;
    c.textAlign = "right";
    c.fillText(nowText, width - edge, 16);
    c.textAlign = "center";
    for (let i = 1; i < n; i++) {
      const a = ends[i - 1] ?? 0, b = ends[i] ?? 0;
      const x = xs[i] ?? 0;
      if (this.windowMS > 0 && b - a > this.windowMS * 1.5) { // nothing was collected in between
        c.fillRect(x - 0.5, 0, 1, 8);
        continue;
      }
      const t = Math.floor(b / every) * every;
      if (a < t && t <= b && x > gutter + 12 && x < width - nowWidth - 34) {
        c.fillRect(x - 0.5, 0, 1, 4);
        c.fillText(this.past ? tick(t, every) : every % 60_000 === 0 ? clock(t).slice(0, 5) : clock(t), x, 16);
      }
    }
  }

  // hatch is the ground on which values lie: what shows through was not reported.
  private hatch(c: CanvasRenderingContext2D): CanvasPattern | string {
    const tile = document.createElement("canvas");
    const ratio = window.devicePixelRatio || 1;
    tile.width = tile.height = Math.round(6 * ratio);
    const t = tile.getContext("2d");
    if (!t) return css("--hatch-ground");
    t.scale(ratio, ratio);
    t.fillStyle = css("--hatch-ground");
    t.fillRect(0, 0, 6, 6);
    t.strokeStyle = css("--hatch");
    t.lineWidth = 1;
    t.beginPath();
    for (const o of [-6, 0, 6]) {
      t.moveTo(o - 1, 7);
      t.lineTo(o + 7, -1);
    }
    t.stroke();
    const p = c.createPattern(tile, "repeat");
    p?.setTransform(new DOMMatrix().scale(1 / ratio));
    return p ?? css("--hatch-ground");
  }

  private place(e: MouseEvent): { row: number; column: number } | null {
    const box = this.canvas.getBoundingClientRect();
    const x = e.clientX - box.left, y = e.clientY - box.top + this.scroller.scrollTop;
    const row = Math.floor(y / this.rowHeight());
    if (row < 0 || row >= this.sorted.length) return null;
    const n = this.matrix.windows.length;
    let column = -1;
    if (x >= this.x(0)) for (column = 0; column < n - 1 && x >= this.x(column + 1); column++);
    return { row, column };
  }

  private point(e: PointerEvent): void {
    const at = this.place(e);
    if (at?.row === this.hover?.row && at?.column === this.hover?.column) {
      if (at) this.moveTooltip(e.clientX, e.clientY);
      return;
    }
    this.hover = at;
    if (at) {
      this.fillTooltip(at.row, at.column);
      this.moveTooltip(e.clientX, e.clientY);
    } else setHidden(this.tooltip, true);
    this.draw();
  }

  private hide(): void {
    if (this.hover) {
      this.hover = null;
      this.draw();
    }
    setHidden(this.tooltip, true);
  }

  private click(e: MouseEvent): void {
    const at = this.place(e);
    const row = at && this.sorted[at.row];
    if (!row) return;
    if (at.column >= 0) this.cursor = { id: row.id, end: this.matrix.windows[at.column] ?? 0 };
    this.events.open(row);
  }

  private describe(row: Row, column: number): { what: string; when: string; value: string; missing: string; found: Finding[] } {
    const end = this.matrix.windows[column] ?? 0;
    const begin = this.windowMS ? end - this.windowMS : (this.matrix.windows[column - 1] ?? end);
    const v = row.values[column] ?? null;
    return {
      what: hopWords(row.node, row.egressIf),
      when: this.past ? `${stamp(begin)} – ${stamp(end)}` : `${clock(begin)} – ${clock(end)}`,
      value: v === null ? "no report in this window" : `${this.title} ${inUnit(this.matrix.unit, v)}`,
      missing: without(this.matrix.missing.get(end) ?? []),
      found: this.marks.of(row.node, row.egressIf).filter((f) => f.start_ms <= end && (f.end_ms === 0 || f.end_ms >= end)),
    };
  }

  private fillTooltip(r: number, column: number): void {
    const row = this.sorted[r];
    if (!row) return;
    this.tooltip.replaceChildren(el("strong", {}, hopWords(row.node, row.egressIf)));
    if (column >= 0) {
      const d = this.describe(row, column);
      this.tooltip.append(el("span", { class: "tooltip-value" }, d.value), el("span", { class: "tooltip-when" }, d.when));
      if (d.missing) this.tooltip.append(el("span", { class: "tooltip-finding warning" }, d.missing));
      for (const f of d.found.slice(0, 3)) {
        this.tooltip.append(el("span", { class: `tooltip-finding ${f.severity}` }, `${severityName(f.severity)}: ${kindName(f.kind).toLowerCase()}`));
      }
    }
    setHidden(this.tooltip, false);
  }

  private moveTooltip(x: number, y: number): void {
    const { offsetWidth: w, offsetHeight: h } = this.tooltip;
    const left = x + 16 + w > window.innerWidth - 8 ? x - w - 12 : x + 16;
    const top = Math.min(y + 14, window.innerHeight - h - 8);
    this.tooltip.style.transform = `translate(${Math.max(8, left)}px, ${Math.max(8, top)}px)`;
  }

  // cursorPlace finds where the cell under the cursor is now; rows get sorted anew and columns move to the left.
  private cursorPlace(): { row: number; column: number } | null {
    if (!this.cursor || this.sorted.length === 0) return null;
    const { id, end } = this.cursor;
    const row = this.sorted.findIndex((r) => r.id === id);
    const column = this.matrix.windows.findIndex((w) => w >= end);
    if (row < 0) return null;
    return { row, column: column < 0 ? this.matrix.windows.length - 1 : column };
  }

  private focused(): void {
    if (!this.cursorPlace()) {
      const row = this.sorted[Math.ceil(this.scroller.scrollTop / this.rowHeight())] ?? this.sorted[0];
      const end = this.matrix.windows.at(-1);
      if (row && end !== undefined) this.cursor = { id: row.id, end };
    }
    // A click sets the focus too; only the keyboard asks for the place to be read out.
    if (this.scroller.matches(":focus-visible")) this.showCursor();
    else this.draw();
  }

  // follow puts the tooltip beside the cursor's cell.
  private follow(): void {
    const at = this.cursorPlace();
    if (!at) return;
    const box = this.scroller.getBoundingClientRect();
    this.moveTooltip(box.left + this.x(at.column), box.top + (at.row + 1) * this.rowHeight() - this.scroller.scrollTop);
  }

  private key(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const at = this.cursorPlace();
    if (!at) return;
    const lastRow = this.sorted.length - 1, lastColumn = this.matrix.windows.length - 1;
    const pageful = Math.max(1, Math.floor(this.scroller.clientHeight / this.rowHeight()) - 1);
    switch (e.key) {
      case "ArrowUp": at.row--; break;
      case "ArrowDown": at.row++; break;
      case "ArrowLeft": at.column--; break;
      case "ArrowRight": at.column++; break;
      case "PageUp": at.row -= pageful; break;
      case "PageDown": at.row += pageful; break;
      case "Home": if (e.shiftKey) at.row = 0; else at.column = 0; break;
      case "End": if (e.shiftKey) at.row = lastRow; else at.column = lastColumn; break;
      case "Enter": {
        const row = this.sorted[at.row];
        if (row) this.events.open(row);
        e.preventDefault();
        return;
      }
      case "Escape": setHidden(this.tooltip, true); return;
      default: return;
    }
    e.preventDefault();
    const row = this.sorted[Math.max(0, Math.min(at.row, lastRow))];
    const end = this.matrix.windows[Math.max(0, Math.min(at.column, lastColumn))];
    if (row && end !== undefined) this.cursor = { id: row.id, end };
    this.showCursor();
  }

  // showCursor brings the cursor's cell into sight and says what is there.
  private showCursor(): void {
    const at = this.cursorPlace();
    const row = at && this.sorted[at.row];
    if (!row) return;
    const h = this.rowHeight(), top = at.row * h;
    const s = this.scroller;
    if (top < s.scrollTop) s.scrollTop = top;
    else if (top + h > s.scrollTop + s.clientHeight) s.scrollTop = top + h - s.clientHeight;
    this.fillTooltip(at.row, at.column);
    this.follow();
    const d = this.describe(row, at.column);
    this.events.announce([d.what, d.value, d.when, ...(d.missing ? [d.missing] : []), ...d.found.map((f) => `${f.severity}: ${kindName(f.kind)}`)].join(", "));
    this.draw();
  }
}

// without names the collectors of a fleet that a window does without.
function without(names: string[]): string {
  if (names.length === 0) return "";
  return `without collector${names.length > 1 ? "s" : ""} ${names.slice(0, 3).join(", ")}${names.length > 3 ? ` and ${names.length - 3} more` : ""}`;
}

const isEmpty = (values: Iterable<number>): boolean => values[Symbol.iterator]().next().done === true;

// drawLegend shows what the colours mean.
export function drawLegend(root: HTMLElement, scale: Scale, unit: string, title: string, missing: boolean): void {
  const palette = colors();
  let bar = root.querySelector<HTMLElement>(".legend-bar");
  if (!bar || root.querySelector(".changes")) {
    root.replaceChildren(
      el("span", { class: "legend-title" }),
      el("span", { class: "legend-scale" }, el("span", { class: "legend-bar" }), el("span", { class: "legend-ticks" })),
      el("span", { class: "legend-key" }, el("i", { class: "swatch hatch" }), "no report"),
      el("span", { class: "legend-key" }, el("i", { class: "swatch marked" }), "finding"),
      el("span", { class: "legend-key legend-missing" }, el("i", { class: "swatch missing" }), "a collector is missing"),
    );
    bar = root.querySelector<HTMLElement>(".legend-bar");
  }
  const titleElement = root.querySelector(".legend-title"), ticks = root.querySelector(".legend-ticks");
  if (!bar || !titleElement || !ticks) return;
  setText(titleElement, title);
  const key = root.querySelector<HTMLElement>(".legend-missing");
  if (key) setHidden(key, !missing);
  bar.style.backgroundImage = `linear-gradient(to right, ${palette.join(",")})`;
  ticks.replaceChildren(
    ...scale.ticks(Math.max(2, Math.floor(bar.clientWidth / 50))).map((v) => {
      const t = el("span", {}, inUnit(unit, v));
      t.style.left = `${scale.place(v) * 100}%`;
      return t;
    }),
  );
}
