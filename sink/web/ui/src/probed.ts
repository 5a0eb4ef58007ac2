// What became of the probes of agents, by path.

import { ask, type Maybe, type ProbedList, type ProbedRow, type Range } from "./api";
import { changeColumns, changeFields, comparedWords, setChanges, type Change } from "./compare";
import { Filter, Keyed, Pager, byId, el, setAttribute, setHidden, setText } from "./dom";
import { during, moment, nanoseconds, none, percent, plural, short } from "./format";
import { every, iso, rangeQuery, saveButtons, tableOf, type Fields, type Table } from "./save";
import { Sort, type Column } from "./sort";

const columns: Column[] = [
  { name: "path", text: "Path", cls: "num", title: "Number of the path between the two addresses, and the epoch that it is from", ascends: true },
  { name: "sent", text: "Sent", cls: "num", title: "Probes sent" },
  { name: "received", text: "Received", cls: "num", title: "Probes that came, with those that were late" },
  { name: "lost", text: "Lost", cls: "num", title: "Share of probes that did not come, and on which way as far as it is known" },
  { name: "late", text: "Late", cls: "num", title: "Probes that came when their time had passed" },
  { name: "duplicated", text: "Twice", cls: "num", title: "Probes that came again" },
  { name: "reordered", text: "Reordered", cls: "num", title: "Probes that came behind later ones" },
  { name: "corrupt", text: "Corrupt", cls: "num", title: "Probes that came and were refused, or whose contents were changed" },
  { name: "delay_p50_ns", text: "Delay p50", cls: "num", title: "There and back without the time in the reflector, median, largest of a window" },
  { name: "delay_p99_ns", text: "Delay p99", cls: "num", title: "There and back without the time in the reflector, 99th percentile, largest of a window" },
  { name: "last_ms", text: "Last seen", cls: "num", title: "End of the last window in which the agent reported the path" },
];

const changes: Change[] = [
  { of: "lost", text: "Lost, change", title: "Share of probes that did not come", worse: true, unit: "ratio", write: percent },
  { of: "delay_p50_ns", text: "p50 change", title: "Delay, median", worse: true, unit: "ns", write: nanoseconds },
  { of: "delay_p99_ns", text: "p99 change", title: "Delay, 99th percentile", worse: true, unit: "ns", write: nanoseconds },
];

const judgements: Record<string, string> = {
  "too-young": "Not judged: too few windows to know what is usual",
  "too-few": "Not judged: no probe came",
};

// What the list is as a file.
const fields: Fields<ProbedRow> = {
  From: (x) => x.from, To: (x) => x.to, Path: (x) => pathText(x.path), Epoch: (x) => x.epoch || null, Sent: (x) => x.sent, Received: (x) => x.received,
  Lost: (x) => x.lost, "Lost on the way out": (x) => x.lost_forward, "Lost on the way home": (x) => x.lost_back, Late: (x) => x.late, Duplicated: (x) => x.duplicated, Reordered: (x) => x.reordered, Corrupt: (x) => x.corrupt,
  "Delay p50 (ns)": (x) => x.delay_p50_ns, "Delay p99 (ns)": (x) => x.delay_p99_ns, Judgement: (x) => x.judgement, "Last seen": (x) => iso(x.last_ms),
};

export class ProbedView {
  private readonly rows: Keyed<ProbedRow, HTMLTableRowElement>;
  private readonly pager: Pager;
  readonly filter: Filter;
  private readonly sort = new Sort("probed", [{ name: "from", text: "From and to", title: "Addresses of the two agents", ascends: true }, ...columns, ...changeColumns(changes)], () => this.filter.apply());
  private readonly none = el("p", { class: "placeholder", hidden: true });
  private now = 0;
  private range: Range | undefined;

  constructor(changed: () => void) {
    const body = el("tbody");
    byId("probed-controls").append(saveButtons(() => "Probes", { csv: () => this.table() }));
    byId("probed-table").append(el("table", { class: "data probed-data" },
      el("caption", { class: "hidden" }, "Paths of probes between agents"),
      el("thead", {}, this.sort.row()),
      body), this.none);
    this.pager = new Pager(byId("probed-pager"), 15, "paths of probes", changed);
    this.filter = new Filter("probed", this.pager, changed);
    this.rows = new Keyed(body, (x) => `${x.from}/${x.to}/${x.path}/${x.epoch}`, (x) => this.make(x), (e, x) => this.update(e, x));
  }

  get query(): Record<string, string | number> {
    return { ...this.sort.query, ...this.filter.query };
  }

  private async table(): Promise<Table> {
    const { range } = this;
    const rows = await every(async (q) => {
      const a = await ask<ProbedList>("probed", { ...this.query, ...rangeQuery(range), ...q });
      return { total: a.total, rows: a.paths };
    });
    return tableOf({ ...fields, ...changeFields<ProbedRow>(range, changes) }, rows);
  }

  set(list: ProbedList, windowMS: number, now: number): void {
    this.range = list.range;
    this.now = now;
    const empty = list.total === 0 && !this.filter.text, absent = empty && byId("control").hidden;
    setHidden(byId("probed"), absent);
    setHidden(byId("nav-probed"), absent);
    setHidden(this.none, list.total > 0);
    setText(this.none, this.filter.text ? `No path matches “${this.filter.text}”.` : list.range ? "The history has no probes in this range." : "No agent has reported probes yet.");
    const more = list.total - list.paths.length;
    const unjudged = list.paths.filter((x) => x.judgement !== undefined && x.judgement !== "judged").length;
    setText(byId("probed-note"), empty ? "" : `${plural(list.total, "path")} ${during(list, windowMS)}, ${this.sort.note("worst share of lost and damaged probes first")}${unjudged > 0 ? ` · delays of ${unjudged} not judged` : ""}${more > 0 ? ` · +${short(more)} not shown` : ""}${comparedWords(list.range, "path")}`);
    this.rows.set(list.paths);
    this.pager.set(list.total);
  }

  private make(x: ProbedRow): HTMLTableRowElement {
    const row = el("tr", {}, el("th", { scope: "row" }, `${x.from} → ${x.to}`));
    for (const _ of columns) row.append(el("td", { class: "num" }));
    row.append(...changes.map(() => el("td", { class: "num change" })));
    return row;
  }

  private update(row: HTMLTableRowElement, x: ProbedRow): void {
    const delay = (v: Maybe): string => (v === null ? none : nanoseconds(v));
    const due = Math.max(x.lost, 0) + x.received;
    const lost = x.lost <= 0 ? "0" : percent(x.lost / due);
    const texts = [x.epoch === 0 ? pathText(x.path) : `${pathText(x.path)} of ${x.epoch}`, short(x.sent), short(x.received), lost, short(x.late), short(x.duplicated), short(x.reordered), short(x.corrupt),
      delay(x.delay_p50_ns), delay(x.delay_p99_ns), x.last_ms ? moment(x.last_ms, this.now) : none];
    texts.forEach((text, i) => {
      const cell = row.cells[i + 1];
      if (cell) setText(cell, text);
    });
    setChanges(row, changes, x);
    const title = (i: number, text: string | null): void => {
      const cell = row.cells[i];
      if (cell) setAttribute(cell, "title", text);
    };
    title(4, x.lost > 0 ? `${short(x.lost)} lost: ${short(Math.max(x.lost_forward, 0))} on the way out, ${short(Math.max(x.lost_back, 0))} home` : null);
    const why = judgements[x.judgement ?? ""] ?? null;
    title(9, why);
    title(10, why);
    setAttribute(row, "data-level", x.lost > 0 || x.corrupt > 0 ? "warning" : null);
  }
}

// pathText is a path number for display: the session, and its DSCP where sessions have several (decode.PathText).
function pathText(path: number): string {
  const dscp = Math.floor(path / 65536) - 1;
  return dscp < 0 || dscp > 63 ? String(path) : `${path % 65536} with DSCP ${dscp}`;
}
