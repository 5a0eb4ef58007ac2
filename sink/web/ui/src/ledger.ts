// Where every report is: received = stored + in flight + dropped.

import type { Balance } from "./api";
import { byId, el, setAttribute, setText } from "./dom";
import { percent, whole } from "./format";
import { saveButtons } from "./save";

const sum = (o: Record<string, number>): number => Object.values(o).reduce((a, b) => a + b, 0);

export const droppedOf = (b: Balance): number => sum(b.dropped);

const flying: Record<string, string> = {
  ring: "Received, not yet decoded",
  "shard-queue": "Decoded, waiting for a worker",
  window: "In the open window",
  "sink-queue": "In memory, waiting for the store",
  spool: "On disk, waiting for the store",
};

// Stages that only a fleet has, and those that most ledgers have nothing in.
const flyingToo: Record<string, string> = {
  kafka: "In Kafka, not merged yet",
  reports: "Read one by one, not in a window yet",
  consumer: "Merged, waiting for the store",
};

const droppingToo: Record<string, string> = {
  down: "While a collector was down, or when it was killed",
  late: "Too late for correction",
  conflict: "Under the number of another record",
  broken: "In records that cannot be read",
  "no-store": "Merged by a consumer without this store",
};

const dropping: Record<string, string> = {
  kernel: "Socket buffer full (kernel)",
  ring: "Packet ring full",
  cut: "Cut off: captured shorter than they were",
  malformed: "Malformed",
  foreign: "No telemetry",
  duplicate: "Copies",
  "shard-queue": "Worker's queue full",
  "sink-queue": "Store's queue full",
  spool: "Disk queue full, or the disk refused",
  "not-encodable": "No form in the store",
  rejected: "Points refused by the store",
};

// worstBalance is the one to show when there is room for one: of the sink that lost most.
export function worstBalance(list: Balance[]): Balance | undefined {
  return list.toSorted((a, b) => Math.abs(b.unsettled) - Math.abs(a.unsettled) || droppedOf(b) - droppedOf(a))[0];
}

// topDrop names the stage at which most was dropped.
export function topDrop(b: Balance): string {
  const top = Object.entries(b.dropped).sort((x, y) => y[1] - x[1])[0];
  return top && top[1] > 0 ? (dropping[top[0]] ?? droppingToo[top[0]] ?? top[0]) : "";
}

export class LedgerView {
  private readonly line = byId("ledger-line");
  private readonly table = byId("ledger-table");
  private readonly details = byId<HTMLDetailsElement>("ledger");
  private readonly problems = byId("ledger-problems");
  private readonly leftOut = byId("ledger-left-out");
  private list: Balance[] = [];

  constructor() {
    this.details.append(el("div", { class: "ledger-save" }, saveButtons(() => "Loss ledger", { csv: () => ({ heads: ["Stage", ...this.list.map((b) => b.sink || "reports")], rows: this.stages().map(([, name, of]) => [name, ...this.list.map(of)]) }) })));
    this.details.addEventListener("toggle", () => this.fill());
  }

  set(list: Balance[], problems: string[], leftOut: string[]): void {
    this.list = list;
    setText(this.problems, problems.join(" · "));
    this.problems.hidden = problems.length === 0;
    setText(this.leftOut, `Left out by limits: ${leftOut.join(" · ")}`);
    this.leftOut.hidden = leftOut.length === 0;
    const b = worstBalance(list);
    if (!b) return;
    const dropped = droppedOf(b);
    const parts: [string, string][] = [
      [whole(b.received), "received ="],
      [whole(b.stored), "stored +"],
      [whole(sum(b.in_flight)), "in flight +"],
      [whole(dropped), dropped > 0 ? `dropped (${percent(dropped / Math.max(1, b.received))})` : "dropped"],
    ];
    const was = this.line.textContent;
    const text = parts.map(([n, w]) => `${n} ${w}`).join(" ") + (list.length > 1 && b.sink ? ` · ${b.sink}` : "");
    if (text !== was) {
      this.line.replaceChildren();
      for (const [n, w] of parts) this.line.append(el("b", {}, n), ` ${w} `);
      if (b.unsettled !== 0) this.line.append(el("span", { class: "bad" }, `${whole(b.unsettled)} unaccounted for `));
      if (list.length > 1 && b.sink) this.line.append(el("span", { class: "quiet" }, `· ${b.sink}`));
    }
    if (this.details.open) this.fill();
  }

  // stages are the rows: a class, a name, and the number of a store.
  private stages(): [string, string, (b: Balance) => number][] {
    const rows: [string, string, (b: Balance) => number][] = [["total", "Received", (b) => b.received]];
    if (this.list.some((b) => b.carried > 0)) rows.push(["part", "of these from the disk queue of an earlier run", (b) => b.carried]);
    rows.push(["total", "Stored", (b) => b.stored], ["total", "In flight", (b) => sum(b.in_flight)]);
    for (const [k, name] of Object.entries(flying)) rows.push(["part", name, (b) => b.in_flight[k] ?? 0]);
    for (const [k, name] of Object.entries(flyingToo)) if (this.list.some((b) => k in b.in_flight)) rows.push(["part", name, (b) => b.in_flight[k] ?? 0]);
    rows.push(["total", "Dropped", droppedOf]);
    for (const [k, name] of Object.entries(dropping)) rows.push(["part", name, (b) => b.dropped[k] ?? 0]);
    for (const [k, name] of Object.entries(droppingToo)) if (this.list.some((b) => b.dropped[k])) rows.push(["part", name, (b) => b.dropped[k] ?? 0]);
    rows.push(["total", "Unaccounted for", (b) => b.unsettled]);
    if (this.list.some((b) => b.points)) {
      rows.push(["total", "Points made", (b) => b.points?.made ?? 0], ["part", "Points stored", (b) => b.points?.stored ?? 0],
        ["part", "Points in flight", (b) => sum(b.points?.in_flight ?? {})], ["part", "Points dropped", (b) => sum(b.points?.dropped ?? {})],
        ["part", "Points refused", (b) => b.points?.refused ?? 0], ["part", "Points unaccounted for", (b) => b.points?.unsettled ?? 0]);
    }
    return rows;
  }

  // fill writes the whole table: stages down, sinks across.
  private fill(): void {
    if (!this.details.open || this.list.length === 0) return;
    const rows = this.stages();
    const shape = `${this.list.map((b) => b.sink).join()}|${rows.length}`;
    if (this.table.dataset.shape !== shape) {
      this.table.dataset.shape = shape;
      this.table.replaceChildren(
        el("table", { class: "data ledger-data" },
          el("caption", { class: "hidden" }, "Loss ledger, by stage and store"),
          el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Stage"), ...this.list.map((b) => el("th", { scope: "col", class: "num" }, b.sink || "reports")))),
          el("tbody", {}, ...rows.map(([kind, name]) => el("tr", { class: kind }, el("th", { scope: "row" }, name), ...this.list.map(() => el("td", { class: "num" }))))),
        ),
      );
    }
    const cells = this.table.querySelectorAll("tbody td");
    rows.forEach(([kind, name, value], r) => {
      this.list.forEach((b, i) => {
        const cell = cells[r * this.list.length + i];
        if (!cell) return;
        const v = value(b);
        setText(cell, whole(v));
        const bad = v !== 0 && (badPoints.has(name) || name === "Dropped" || name === "Unaccounted for" || (kind === "part" && name in invertedDrops));
        setAttribute(cell, "class", `num${bad ? " bad" : v === 0 ? " zero" : ""}`);
      });
    });
  }
}

const badPoints = new Set(["Points dropped", "Points refused", "Points unaccounted for"]);
const invertedDrops: Record<string, true> = Object.fromEntries([...Object.values(dropping), ...Object.values(droppingToo)].map((v) => [v, true as const]));
