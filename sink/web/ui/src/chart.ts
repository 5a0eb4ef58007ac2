// Lines over time, with uPlot.

import uPlot from "uplot";
import type { Finding, Maybe } from "./api";
import { el, setText } from "./dom";
import { clock, inUnit, none, tick } from "./format";
import { css } from "./palette";
import { iso, saveButtons } from "./save";

const shortest = 60; // seconds on the time axis, at least

// rawUnits are those of values as the API has them.
export const rawUnits: Record<string, string> = { ns: "ns", B: "bytes", ratio: "ratio" };

// lonely picks the values without a neighbour: no line shows them.
const lonely: uPlot.Series.Points.Filter = (u, series) => {
  const values = u.data[series] ?? [];
  const out: number[] = [];
  for (let i = 0; i < values.length; i++) if (values[i] != null && values[i - 1] == null && values[i + 1] == null) out.push(i);
  return out;
};

export interface Line { label: string; color: string; dash?: number[]; width?: number; values: Maybe[] }

// ChartData has gaps between its windows only where values are null. past is set for those of the history, whose axis may have days.
export interface ChartData { windows: number[]; lines: Line[]; findings: Finding[]; marks?: number[]; past?: boolean }

// Chart owns one uPlot. It is made anew when its lines are others, and only fed otherwise.
export class Chart {
  readonly element = el("figure", { class: "chart" });
  private readonly caption = el("figcaption");
  private readonly canvas = el("div", { class: "chart-canvas" });
  private plot: uPlot | null = null;
  private shape = "";
  private data: ChartData = { windows: [], lines: [], findings: [] };
  private readonly values: HTMLElement[] = [];
  private readonly save: HTMLElement;
  of = ""; // what the chart is of, in the names of files

  // zoom is called with the time over which the pointer was dragged, in ms.
  zoom: ((from: number, to: number) => void) | null = null;

  constructor(private readonly title: string, private readonly unit: string, private readonly sync: string, private readonly height: number) {
    this.save = saveButtons(() => (this.of ? `${this.title} of ${this.of}` : this.title), {
      csv: () => ({
        heads: ["End of window", ...this.data.lines.map((l) => `${l.label} (${rawUnits[this.unit] ?? this.unit})`)],
        rows: this.data.windows.map((w, i) => [iso(w), ...this.data.lines.map((l) => l.values[i])]),
      }),
      png: () => ({
        title: this.of ? `${this.title}, ${this.of}` : this.title, keys: this.data.lines.map((l): [string, string] => [l.label, css(l.color)]),
        parts: this.plot ? [{ canvas: this.plot.ctx.canvas, x: 0, y: 0, width: this.plot.width, height: this.plot.height }] : [],
      }),
    });
    this.element.append(this.caption, this.canvas);
    new ResizeObserver(() => {
      const width = this.canvas.clientWidth;
      if (this.plot && width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: this.height });
    }).observe(this.canvas);
  }

  // restyle draws anew in the colours of the other scheme.
  restyle(): void {
    this.shape = "";
    this.set(this.data);
  }

  set(data: ChartData): void {
    this.data = data;
    const shape = data.lines.map((l) => `${l.label}|${l.color}`).join();
    const table: uPlot.AlignedData = [data.windows.map((w) => w / 1000), ...data.lines.map((l) => l.values)];
    if (!this.plot || shape !== this.shape) {
      this.plot?.destroy();
      this.shape = shape;
      this.legend();
      this.plot = new uPlot(this.options(), table, this.canvas);
    } else this.plot.setData(table);
    this.show(null);
  }

  private legend(): void {
    this.values.length = 0;
    this.caption.replaceChildren(el("span", { class: "chart-title" }, this.title));
    for (const l of this.data.lines) {
      const sample = el("i", { class: l.dash ? "sample dashed" : "sample" });
      sample.style.borderColor = css(l.color);
      const value = el("b");
      this.values.push(value);
      this.caption.append(el("span", { class: "chart-key" }, sample, `${l.label} `, value));
    }
    this.caption.append(this.save);
  }

  // show writes the values under the pointer, or the latest, beside the names of the lines.
  private show(index: number | null): void {
    this.data.lines.forEach((l, i) => {
      const v = index === null ? (l.values.findLast((x) => x !== null) ?? null) : (l.values[index] ?? null);
      const e = this.values[i];
      if (e) setText(e, v === null ? none : inUnit(this.unit, v));
    });
  }

  private options(): uPlot.Options {
    const text = css("--text-3"), grid = css("--grid");
    const font = `11px ${css("--font")}`;
    const axis = { stroke: text, font, grid: { stroke: grid, width: 1 }, ticks: { show: false } };
    return {
      width: Math.max(200, this.canvas.clientWidth),
      height: this.height,
      padding: [8, 10, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { size: 6 }, sync: { key: this.sync }, drag: { x: this.zoom !== null, y: false, setScale: false } },
      scales: { x: { time: true, range: () => this.range() }, y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.08 : 1] } },
      axes: [
        { ...axis, size: 26, space: 70, values: (_u, ticks, _i, _space, apart) => ticks.map((t) => (this.data.past ? tick(t * 1000, apart * 1000) : clock(t * 1000))) },
        { ...axis, size: 62, space: 28, values: (_u, ticks) => ticks.map((t) => inUnit(this.unit, t)) },
      ],
      series: [
        {},
        ...this.data.lines.map((l): uPlot.Series => ({
          label: l.label, stroke: css(l.color), width: l.width ?? 1.5, points: { show: true, size: 5, fill: css(l.color), filter: lonely }, spanGaps: false,
          ...(l.dash ? { dash: l.dash } : {}),
        })),
      ],
      hooks: {
        drawClear: [(u) => this.shade(u)],
        setCursor: [(u) => this.show(u.cursor.idx ?? null)],
        setSelect: [(u) => this.selected(u)],
      },
    };
  }

  // selected hands over the time over which the pointer was dragged, and forgets it.
  private selected(u: uPlot): void {
    const { left, width } = u.select;
    if (width < 4) return;
    const at = (x: number): number => u.posToVal(x, "x") * 1000;
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.zoom?.(at(left), at(left + width));
  }

  // range is the time that the windows cover, in seconds.
  private range(): [number, number] {
    const first = (this.data.windows[0] ?? 0) / 1000, last = (this.data.windows.at(-1) ?? 0) / 1000;
    return [Math.min(first, last - shortest), last];
  }

  // shade marks the time in which findings lasted, and single moments.
  private shade(u: uPlot): void {
    const { left, top, width, height } = u.bbox;
    const c = u.ctx;
    const x = (ms: number): number => Math.max(left, Math.min(left + width, u.valToPos(ms / 1000, "x", true)));
    c.save();
    for (const f of this.data.findings) {
      const from = x(f.start_ms), to = f.end_ms ? x(f.end_ms) : left + width;
      if (to <= left || from >= left + width) continue;
      c.fillStyle = css(`--${f.severity}`);
      c.globalAlpha = 0.12;
      c.fillRect(from, top, Math.max(2, to - from), height);
      c.globalAlpha = 0.9;
      c.fillRect(from, top, Math.max(2, to - from), 3);
    }
    c.globalAlpha = 0.8;
    c.fillStyle = css("--text-2");
    for (const m of this.data.marks ?? []) {
      const at = x(m);
      if (at > left && at < left + width) c.fillRect(at - 1, top, 2, height);
    }
    c.restore();
  }
}
