// Who is in the fleet: collectors and consumers, with what each of them says of itself.

import { ask, type FleetList, type FleetSummary, type Member } from "./api";
import { Keyed, byId, el, icon, setAttribute, setHidden, setText } from "./dom";
import { bytes, moment, percent, plural, short } from "./format";
import { every, iso, saveButtons, tableOf, type Fields } from "./save";

type Column = [name: string, cls: string, title: string, value: (m: Member, now: number) => string];

const time = (ms: number, now: number): string => (ms > 0 ? moment(ms, now) : "never");

const collectorColumns: Column[] = [
  ["Version", "", "Of the program", (m) => m.version],
  ["Reports/s", "num", "In its last window", (m) => short(Math.round(m.reports_per_second))],
  ["Last window", "num", "End of the last window that it sent", (m, now) => time(m.window_ms, now)],
  ["Received", "num", "Reports, over all runs", (m) => short(m.received)],
  ["In Kafka", "num", "Reports that Kafka has confirmed", (m) => short(m.stored)],
  ["In flight", "num", "Reports that Kafka has not confirmed yet", (m) => short(m.in_flight)],
  ["Dropped", "num", "Reports, over all runs", (m) => (m.dropped ? `${short(m.dropped)} (${percent(m.dropped / Math.max(1, m.received))})` : "0")],
  ["Spool", "num", "On disk, waiting for Kafka", (m) => bytes(m.spool_bytes)],
  ["Said so", "num", "When it last reported itself", (m, now) => time(m.updated_ms, now)],
];

const consumerColumns: Column[] = [
  ["Version", "", "Of the program", (m) => m.version],
  ["Partitions", "num", "That it has now", (m) => short(m.partitions)],
  ["Reports/s", "num", "Merged in its last window", (m) => short(Math.round(m.reports_per_second))],
  ["Lag", "num", "Records that it has not read yet", (m) => short(m.lag)],
  ["Last window", "num", "End of the last window that it stored", (m, now) => time(m.window_ms, now)],
  ["Merged", "num", "Reports in its partitions, each once", (m) => short(m.received)],
  ["Late", "num", "Parts that came behind the end of their window", (m) => short(m.late)],
  ["Duplicates", "num", "Records that came again and were left out", (m) => short(m.duplicates)],
  ["Conflicts", "num", "Records with the number of another one", (m) => short(m.conflicts)],
  ["Rebalances", "num", "Times that partitions changed hands", (m) => short(m.rebalances)],
  ["Said so", "num", "When it last reported itself", (m, now) => time(m.updated_ms, now)],
];

const levels: Record<string, [level: string, word: string]> = {
  alive: ["ok", "Alive"], missing: ["warning", "Missing"], dead: ["critical", "Dead"], left: ["idle", "Left"],
};

const troubled = new Set(["Dropped", "Conflicts"]);

// What both tables are as one file.
const fields: Fields<Member> = {
  Role: (m) => m.role, Name: (m) => m.name, State: (m) => m.state, Problems: (m) => m.problems?.join("; "), Version: (m) => m.version, Started: (m) => iso(m.start_ms), "Said so": (m) => iso(m.updated_ms), "Last window": (m) => iso(m.window_ms),
  "Reports (1/s)": (m) => m.reports_per_second, Received: (m) => m.received, Stored: (m) => m.stored, "In flight": (m) => m.in_flight, Dropped: (m) => m.dropped, "Spool (bytes)": (m) => m.spool_bytes,
  Partitions: (m) => m.partitions, Lag: (m) => m.lag, Late: (m) => m.late, Duplicates: (m) => m.duplicates, Conflicts: (m) => m.conflicts, Rebalances: (m) => m.rebalances,
};

class Table {
  private readonly rows: Keyed<Member, HTMLTableRowElement>;
  private readonly none: HTMLElement;
  private now = 0;

  constructor(root: HTMLElement, what: string, none: string, private readonly columns: Column[]) {
    const body = el("tbody");
    this.none = el("p", { class: "placeholder" }, none);
    root.append(
      el("h3", { class: "fleet-title" }, what),
      el("div", { class: "scroll-x" },
        el("table", { class: `data fleet-data ${what.toLowerCase()}-data` },
          el("caption", { class: "hidden" }, `${what} of the fleet`),
          el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "State"), el("th", { scope: "col" }, "Name"), ...columns.map(([name, cls, title]) => el("th", { scope: "col", class: cls, title }, name)))),
          body)),
      this.none);
    this.rows = new Keyed(body, (m) => m.name, () => this.make(), (e, m) => this.update(e, m));
  }

  set(list: Member[], now: number): void {
    this.now = now;
    this.rows.set(list);
    setHidden(this.none, list.length > 0);
  }

  private make(): HTMLTableRowElement {
    return el("tr", {}, el("td", { class: "state" }), el("th", { scope: "row" }, el("span", { class: "member-name" }), el("span", { class: "member-problems" })), ...this.columns.map(([, cls]) => el("td", { class: cls })));
  }

  private update(row: HTMLTableRowElement, m: Member): void {
    let [level, word] = levels[m.state] ?? ["idle", m.state];
    if (level === "ok" && m.problems?.length) level = "warning";
    const state = row.cells[0];
    if (state && (state.textContent !== word || row.dataset.level !== level)) state.replaceChildren(icon(level), word);
    setAttribute(row, "data-level", level);
    const name = row.querySelector(".member-name"), problems = row.querySelector(".member-problems");
    if (name && (name.textContent !== m.name || (name.querySelector("a")?.getAttribute("href") ?? "") !== (m.page ?? ""))) {
      name.replaceChildren(m.page ? el("a", { href: m.page, rel: "noopener noreferrer", target: "_blank", title: "Its own page" }, m.name) : m.name);
    }
    if (problems) setText(problems, m.problems?.join(" · ") ?? "");
    this.columns.forEach(([column, cls, , value], i) => {
      const cell = row.cells[i + 2];
      if (!cell) return;
      const text = value(m, this.now);
      setText(cell, text);
      const zero = text === "0" || text.startsWith("0\u202f");
      setAttribute(cell, "class", `${cls}${zero ? " zero" : troubled.has(column) ? " bad" : ""}`);
    });
  }
}

export class FleetView {
  private readonly section = byId("fleet");
  private collectors: Table | null = null;
  private consumers: Table | null = null;

  constructor() {
    byId("fleet-controls").append(saveButtons(() => "Fleet", {
      csv: async () => tableOf(fields, await every(async (q) => {
        const a = await ask<FleetList>("fleet", q);
        return { total: a.total, rows: a.members };
      })),
    }));
  }

  set(list: FleetList, now: number): void {
    const body = byId("fleet-body");
    this.collectors ??= new Table(body, "Collectors", "No collector has joined this fleet yet.", collectorColumns);
    this.consumers ??= new Table(body, "Consumers", "No consumer runs, so nothing is merged or stored: hopscope consume.", consumerColumns);
    this.collectors.set(list.members.filter((m) => m.role === "collector"), now);
    this.consumers.set(list.members.filter((m) => m.role !== "collector"), now);
    setText(byId("fleet-title"), `Fleet ${list.name}`);
    const more = list.total - list.members.length;
    setText(byId("fleet-note"), [
      plural(list.collectors, "collector"), plural(list.consumers, "consumer"), plural(list.slices, "slice"),
      ...(list.windows.length ? [`${plural(list.windows.length, "window")} without a collector`] : []),
      ...(more > 0 ? [`${plural(more, "member")} not listed here: /api/fleet`] : []),
    ].join(" · "));
  }

  // show puts what belongs to a fleet on the page, or takes it off.
  show(fleet: FleetSummary | undefined): void {
    setHidden(this.section, !fleet);
    setHidden(byId("nav-fleet"), !fleet);
    setHidden(byId("figure-members-box"), !fleet);
    if (!fleet) return;
    const all = fleet.collectors + fleet.consumers - (fleet.states.left ?? 0);
    setText(byId("figure-members"), `${short(fleet.states.alive ?? 0)} of ${short(all)}`);
    setAttribute(byId("figure-members"), "class", (fleet.states.alive ?? 0) < all ? "bad" : null);
  }
}
