// Who sends reports, and what of it got lost on the way.

import { ask, type ExporterList, type ExporterRow, type Range } from "./api";
import { changeColumns, changeFields, comparedWords, setChanges, type Change } from "./compare";
import { Filter, Keyed, Pager, byId, el, icon, setAttribute, setHidden, setText } from "./dom";
import { during, moment, nodeName, percent, plural, short, span } from "./format";
import { every, iso, rangeQuery, saveButtons, tableOf, type Fields, type Table } from "./save";
import { Sort, type Column } from "./sort";
import { drawSpark } from "./spark";

const columns: Column[] = [
  { name: "state", text: "State", title: "Over the recent windows" },
  { name: "address", text: "Exporter", title: "Source address of the datagrams", ascends: true },
  { name: "node", text: "Node", title: "Node ID in the report header, if it holds one", ascends: true },
  { name: "hw_id", text: "HW", cls: "num", title: "Hardware ID: subsystem of the node with its own sequence numbers", ascends: true },
  { name: "reports", text: "Reports", cls: "num", title: "Received since the start" },
  { text: "Trend", cls: "trend", title: "Reports by window" },
  { name: "lost", text: "Lost", cls: "num", title: "Sequence numbers that did not come in time" },
  { name: "loss", text: "Loss", cls: "num", title: "Lost of all that were sent" },
  { name: "duplicated", text: "Duplicated", cls: "num", title: "Reports received twice" },
  { name: "reordered", text: "Reordered", cls: "num", title: "Reports received after later ones" },
  { name: "restarts", text: "Restarts", cls: "num", title: "Times that the exporter began to count anew" },
  { name: "malformed", text: "Malformed", cls: "num", title: "Reports that could not be decoded" },
  { name: "last_ms", text: "Last seen", cls: "num", title: "End of the last window with a report" },
];

const changes: Change[] = [
  { of: "reports", text: "Reports, change", title: "Reports received", worse: false, unit: "number", write: short },
  { of: "lost", text: "Lost, change", title: "Sequence numbers that did not come in time", worse: true, unit: "number", write: short },
  { of: "loss", text: "Loss, change", title: "Lost of all that were sent", worse: true, unit: "ratio", write: percent },
];

const ratio = (lost: number, reports: number): number => (lost <= 0 ? 0 : lost / (lost + reports));

// What the list is as a file.
const fields: Fields<ExporterRow> = {
  Exporter: (x) => x.address, Node: (x) => x.node, "Node name": (x) => (x.node ? nodeName(x.node) : ""), "Hardware ID": (x) => x.hw_id, State: (x) => (x.silent ? "silent" : x.recent_lost > 0 ? "losing" : x.idle ? "idle" : "receiving"),
  Reports: (x) => x.reports, Lost: (x) => x.lost, "Loss (ratio)": (x) => ratio(x.lost, x.reports), Duplicated: (x) => x.duplicated, Reordered: (x) => x.reordered, Late: (x) => x.late,
  "Missed while no collector ran": (x) => x.down, "Missing, may yet come": (x) => x.provisional, Restarts: (x) => x.restarts, Malformed: (x) => x.malformed,
  "Reports, recent windows": (x) => x.recent_reports, "Lost, recent windows": (x) => x.recent_lost, "Last seen": (x) => iso(x.last_ms), "Reports by window": (x) => x.trend.map((v) => v ?? "").join(" "),
};

export class ExportersView {
  private readonly rows: Keyed<ExporterRow, HTMLTableRowElement>;
  private readonly pager: Pager;
  readonly filter: Filter;
  private readonly sort = new Sort("exporters", [...columns, ...changeColumns(changes)], () => this.filter.apply());
  private readonly none = el("p", { class: "placeholder" });
  private now = 0;
  private range: Range | undefined;
  private past = false; // rows are sums over a range

  constructor(changed: () => void) {
    const body = el("tbody");
    byId("exporters-controls").append(saveButtons(() => "Exporters", { csv: () => this.table() }));
    byId("exporters-table").append(
      el("table", { class: "data exporters-data" },
        el("caption", { class: "hidden" }, "Exporters with their losses"),
        el("thead", {}, this.sort.row()),
        body), this.none);
    this.pager = new Pager(byId("exporters-pager"), 15, "exporters", changed);
    this.filter = new Filter("exporters", this.pager, changed);
    this.rows = new Keyed(body, (e) => `${e.address}\n${e.node}\n${e.hw_id}`, () => this.make(), (e, x) => this.update(e, x));
  }

  get query(): Record<string, string | number> {
    return { ...this.sort.query, ...this.filter.query };
  }

  private async table(): Promise<Table> {
    const { range } = this;
    const rows = await every(async (q) => {
      const a = await ask<ExporterList>("exporters", { ...this.query, ...rangeQuery(range), ...q });
      return { total: a.total, rows: a.exporters };
    });
    return tableOf({ ...fields, ...changeFields<ExporterRow>(range, changes) }, rows);
  }

  set(list: ExporterList, windowMS: number, now: number): void {
    this.range = list.range;
    this.now = now;
    this.past = list.range !== undefined;
    this.rows.set(list.exporters);
    this.pager.set(list.total);
    setHidden(this.none, list.total > 0);
    setText(this.none, this.filter.text ? `No exporter matches “${this.filter.text}”.` : list.range ? "The history has no exporter in this range." : "No exporter in the kept windows.");
    setText(byId("exporters-note"), list.total ? list.range ? `sums ${during(list, windowMS)}; ${this.sort.note("greatest loss first")}${comparedWords(list.range, "exporter")}` : `state of the last ${span(list.recent_windows * windowMS)}; idle after ${plural(list.idle_windows, "window")} without a report; ${this.sort.note("silent ones first, then the greatest loss")}` : "");
  }

  private make(): HTMLTableRowElement {
    const row = el("tr");
    columns.forEach(({ text, cls }, i) => {
      row.append(el(i === 1 ? "th" : "td", i === 1 ? { scope: "row" } : { class: i === 0 ? "state" : cls }));
      if (text === "Trend") row.cells[i]?.append(el("canvas", { class: "spark", "aria-hidden": "true" }));
    });
    row.append(...changes.map(() => el("td", { class: "num change" })));
    return row;
  }

  private update(row: HTMLTableRowElement, x: ExporterRow): void {
    const recent = ratio(x.recent_lost, x.recent_reports);
    const [level, word] = x.silent ? ["critical", "Silent"] : recent > 0 ? ["warning", `${this.past ? "Lost" : "Losing"} ${percent(recent)}`] : x.idle ? ["idle", "Idle"] : ["ok", this.past ? "Received" : "Receiving"];
    const state = row.cells[0];
    if (state && state.textContent !== word) state.replaceChildren(icon(level ?? "ok"), word ?? "");
    setAttribute(row, "data-level", level ?? null);
    const texts: Record<number, string> = {
      1: x.address, 2: x.node ? nodeName(x.node) : "–", 3: x.hw_id, 4: short(x.reports), 6: short(x.lost), 7: percent(ratio(x.lost, x.reports)), 8: short(x.duplicated),
      9: short(x.reordered), 10: short(x.restarts), 11: short(x.malformed), 12: x.last_ms ? moment(x.last_ms, this.now) : "never",
    };
    for (const [i, text] of Object.entries(texts)) {
      const cell = row.cells[Number(i)];
      if (!cell) continue;
      setText(cell, text);
      if (Number(i) >= 6 && Number(i) <= 11) cell.classList.toggle("zero", text === "0" || text.startsWith("0\u202f"));
    }
    setAttribute(row.cells[6] ?? row, "title", `${short(x.provisional)} more are missing and may yet come; ${short(x.down)} were missed while no collector ran`);
    setAttribute(row.cells[9] ?? row, "title", `${short(x.late)} more came when they had been counted as lost`);
    setChanges(row, changes, x);
    const canvas = row.querySelector("canvas");
    if (canvas) drawSpark(canvas, x.trend.slice(-60), Math.min(60, Math.max(20, x.trend.length)));
  }
}
