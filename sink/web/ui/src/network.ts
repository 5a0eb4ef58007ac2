// The network status: what the picture shows, and the buttons that choose it.

import { ask, type Finding, type Matrix as Answer, type Range } from "./api";
import { Bitmap, drawLegend, type Order } from "./bitmap";
import { byId, el, press, segmented, setText } from "./dom";
import { plural, span } from "./format";
import { Matrix, type Row } from "./matrix";
import { saveButtons } from "./save";

interface Quantity { text: string; name: string; statistics: [string, string][] }

const quantities: Record<string, Quantity> = {
  latency: { text: "Latency", name: "Latency", statistics: [["latency_p50", "p50"], ["latency_p90", "p90"], ["latency_p99", "p99"], ["latency_max", "max"]] },
  queue: { text: "Queue", name: "Queue occupancy", statistics: [["queue_p50", "p50"], ["queue_p99", "p99"], ["queue_max", "max"]] },
  link: { text: "Link use", name: "Link use", statistics: [["tx_utilization_max", "max"]] },
};

export class Network {
  private quantity = "latency";
  private statistic = "p99";
  private matrix = new Matrix("latency_p99");
  private capacity = 180;
  private epoch = 0; // of requests: an answer for what is no longer shown is dropped
  private scale: Parameters<typeof drawLegend>[1] | null = null;
  private readonly bitmap: Bitmap;
  private readonly controls = byId("network-controls");
  private readonly statistics = el("span", { class: "statistics" });
  private readonly quantityGroup: HTMLElement;
  private readonly orderGroup: HTMLElement;
  private readonly rowsGroup: HTMLElement;

  constructor(open: (row: Row) => void, announce: (text: string) => void, private readonly changed: () => void) {
    this.bitmap = new Bitmap(byId("bitmap"), byId("tooltip"), {
      open, announce, scaled: (s) => {
        this.scale = s;
      },
    });
    this.quantityGroup = segmented("Colour shows", Object.entries(quantities).map(([value, q]) => ({ value, text: q.text })), this.quantity, (v) => this.choose(v));
    this.orderGroup = segmented("Order of the rows", [{ value: "worst", text: "Worst first" }, { value: "node", text: "By node" }], "worst", (v) => this.setOrder(v as Order));
    this.rowsGroup = segmented("Height of the rows", [{ value: "no", text: "Rows", title: "Rows with names" }, { value: "yes", text: "Dense", title: "More rows, fewer names" }], "no", (v) => this.setDense(v === "yes"));
    this.controls.append(this.quantityGroup, this.statistics, saveButtons(() => `Network status, ${this.name()}`, { csv: () => this.bitmap.table(), png: () => ({ title: `Network status, ${this.name()}`, parts: this.bitmap.drawn() }) }));
    byId("network-layout").append(this.orderGroup, this.rowsGroup);
    this.drawStatistics();
  }

  get rows(): Row[] {
    return this.matrix.rows;
  }

  get trend(): number[] {
    return this.matrix.reports;
  }

  find(node: string, egressIf: string): Row | undefined {
    return this.matrix.find(node, egressIf);
  }

  // top is the first row of the picture.
  top(): Row | undefined {
    return this.bitmap.first();
  }

  select(row: Row | undefined): void {
    this.bitmap.select(row);
  }

  mark(findings: Iterable<Finding>): void {
    this.bitmap.mark(findings);
  }

  configure(capacity: number, windowMS: number): void {
    this.capacity = capacity;
    this.bitmap.capacity = capacity;
    this.bitmap.windowMS = windowMS;
  }

  // reset forgets everything: the next load fetches all windows.
  reset(): void {
    this.matrix = new Matrix(this.matrix.metric);
  }

  restyle(): void {
    this.bitmap.draw();
    this.legend();
  }

  // loadPast shows a range of the history, and returns what is said of it.
  async loadPast(query: Record<string, number>): Promise<Range | undefined> {
    const epoch = ++this.epoch;
    const matrix = new Matrix(this.matrix.metric);
    const a = await ask<Answer>("windows", { metric: matrix.metric, ...query });
    if (epoch !== this.epoch) return undefined;
    this.matrix = matrix;
    this.bitmap.capacity = a.windows.length;
    this.bitmap.windowMS = a.range?.resolution_ms ?? 0;
    this.bitmap.past = true;
    matrix.merge(a, a.windows.length);
    this.bitmap.set(matrix, this.name());
    this.legend();
    setText(byId("network-note"), `${plural(matrix.rows.length, "hop")} × ${plural(matrix.windows.length, "column")} of ${span(this.bitmap.windowMS)}`);
    return a.range;
  }

  async load(): Promise<void> {
    const epoch = ++this.epoch;
    const matrix = this.matrix;
    this.bitmap.past = false;
    const a = await ask<Answer>("windows", { metric: matrix.metric, since: matrix.since });
    if (epoch !== this.epoch || matrix !== this.matrix) return;
    if (matrix.windows.length > 0 && (a.replaced ?? 0) !== matrix.replaced) { // older windows are others now
      this.reset();
      return this.load();
    }
    matrix.merge(a, this.capacity);
    this.bitmap.set(matrix, this.name());
    this.legend();
    const covered = matrix.windows.length ? (matrix.windows.at(-1) ?? 0) - (matrix.windows[0] ?? 0) + this.bitmap.windowMS : 0;
    setText(byId("network-note"), `${plural(matrix.rows.length, "hop")} × ${plural(matrix.windows.length, "window")}, ${span(covered)}`);
  }

  private name(): string {
    return `${quantities[this.quantity]?.name ?? ""} ${this.statistic}`;
  }

  private legend(): void {
    if (this.scale) drawLegend(byId("legend"), this.scale, this.matrix.unit, this.name(), this.matrix.missing.size > 0);
  }

  private drawStatistics(): void {
    const q = quantities[this.quantity];
    if (!q) return;
    this.statistics.replaceChildren(segmented("Statistic", q.statistics.map(([, text]) => ({ value: text, text })), this.statistic, (v) => this.chooseStatistic(v)));
  }

  choose(quantity: string): void {
    const q = quantities[quantity];
    if (!q) return;
    this.quantity = quantity;
    if (!q.statistics.some(([, s]) => s === this.statistic)) this.statistic = q.statistics.at(-1)?.[1] ?? "";
    press(this.quantityGroup, quantity);
    this.drawStatistics();
    this.fetchOther();
  }

  private chooseStatistic(s: string): void {
    this.statistic = s;
    const group = this.statistics.firstElementChild;
    if (group instanceof HTMLElement) press(group, s);
    this.fetchOther();
  }

  // nextStatistic goes through p50, p90, p99, max.
  nextStatistic(): void {
    const list = quantities[this.quantity]?.statistics ?? [];
    const i = list.findIndex(([, s]) => s === this.statistic);
    this.chooseStatistic(list[(i + 1) % list.length]?.[1] ?? this.statistic);
  }

  private fetchOther(): void {
    const key = quantities[this.quantity]?.statistics.find(([, s]) => s === this.statistic)?.[0];
    if (!key || key === this.matrix.metric) return;
    this.matrix = new Matrix(key);
    this.changed();
  }

  setOrder(order: Order): void {
    this.bitmap.order = order;
    press(this.orderGroup, order);
    this.bitmap.sort();
    this.bitmap.draw();
  }

  toggleOrder(): void {
    this.setOrder(this.bitmap.order === "worst" ? "node" : "worst");
  }

  setDense(dense: boolean): void {
    this.bitmap.dense = dense;
    press(this.rowsGroup, dense ? "yes" : "no");
    this.bitmap.draw();
  }

  toggleDense(): void {
    this.setDense(!this.bitmap.dense);
  }
}
