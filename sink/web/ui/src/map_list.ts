// The map as a list, for those who use no pointer and see no picture: every direction of a link with what is known of it.

import { rawUnits } from "./chart";
import { Keyed, Pager, el, setAttribute, setText } from "./dom";
import { changeWords, ratios } from "./map_change";
import { inUnit, plural } from "./format";
import type { MapState, Model, Probe } from "./map_model";
import { rank } from "./marks";
import { saveButtons, type Table, type Value } from "./save";

interface Row { d: number; name: string; value: string; state: string; level: string }

export class MapListView {
  private m: Model | null = null;
  private state: MapState | null = null;
  private probes: Probe[] = [];
  private readonly filter = el("input", { type: "search", placeholder: "Filter: node", autocomplete: "off", spellcheck: "false", "aria-label": "Filter links by node" });
  private readonly pager: Pager;
  private readonly rows: Keyed<Row, HTMLTableRowElement>;

  constructor(private readonly root: HTMLDetailsElement, private readonly choose: (d: number) => void) {
    const body = el("tbody"), foot = el("div", { class: "pager" });
    this.pager = new Pager(foot, 10, "links", () => this.draw());
    root.append(el("div", { class: "map-list-head" }, this.filter, saveButtons(() => "Links", { csv: () => this.table() })),
      el("div", { class: "scroll-x" }, el("table", { class: "data map-data" }, el("caption", { class: "hidden" }, "Directions of links, those with findings first, then by value"),
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Link"), el("th", { scope: "col", class: "num" }, "Value"), el("th", { scope: "col" }, "State"))), body)), foot);
    this.rows = new Keyed(body, (r) => String(r.d), (r) => el("tr", { "data-link": r.d }, el("th", { scope: "row" }, el("button", { type: "button", class: "link", click: () => this.choose(r.d) })), el("td", { class: "num" }), el("td", {})), (e, r) => {
      const [name, value, state] = e.cells, button = name?.querySelector("button");
      if (button) setText(button, r.name);
      if (value) setText(value, r.value);
      if (state) setText(state, r.state);
      setAttribute(e, "data-level", r.level || null);
    });
    root.addEventListener("toggle", () => this.draw());
    this.filter.addEventListener("input", () => {
      this.pager.first();
      this.draw();
    });
  }

  set(m: Model, state: MapState | null, probes: Probe[]): void {
    this.m = m;
    this.state = state;
    this.probes = probes;
    this.draw();
  }

  private draw(): void {
    if (!this.root.open || !this.m) return;
    const rows = this.rowsOf(this.m);
    this.pager.set(rows.length);
    this.rows.set(rows.slice(this.pager.offset, this.pager.offset + this.pager.limit));
  }

  // table has all links that the filter leaves.
  table(): Table {
    const { m, state } = this, unit = rawUnits[state?.unit ?? ""] ?? state?.unit ?? "";
    if (!m) return { heads: [], rows: [] };
    const node = (i: number): Value[] => [m.answer.nodes[i]?.id, m.label(i)];
    return {
      heads: ["From node", "From name", "To node", "To name", `${state?.metric ?? "Value"} (${unit})`, ...(state?.before ? [`${state.metric}, the day before (${unit})`] : []), "State"],
      rows: this.rowsOf(m).map((r) => [...node(m.from(r.d)), ...node(m.to(r.d)), state?.values[r.d], ...(state?.before ? [state.before[r.d]] : []), r.state]),
    };
  }

  // rowsOf are those that the filter leaves, in the order of the list.
  private rowsOf(m: Model): Row[] {
    const { state } = this;
    const level = new Map<number, number>(), said = new Map<number, string[]>();
    const say = (d: number, text: string): void => {
      said.set(d, [...(said.get(d) ?? []), text]);
    };
    for (const f of state?.findings ?? []) {
      for (const d of f.links ?? []) {
        level.set(d, Math.max(level.get(d) ?? 0, rank[f.severity]));
        say(d, `finding: ${f.severity}`);
      }
    }
    for (const s of state?.loop?.suspects ?? []) say(s.link, "suspected");
    const crossed = new Map<number, number>(), detailed = new Set<number>();
    for (const p of this.probes) {
      for (const d of p.links) {
        crossed.set(d, (crossed.get(d) ?? 0) + 1);
        if (p.detailed) detailed.add(d);
      }
    }
    const text = this.filter.value.trim().toLowerCase(), labels = m.answer.nodes.map((_, i) => m.title(i)), values = state?.values ?? [];
    const found = labels.map((l) => text === "" || l.toLowerCase().includes(text));
    const list: number[] = [];
    for (let d = 0; d < m.directions; d++) if (found[m.from(d)] || found[m.to(d)]) list.push(d);
    const changes = state?.before ? ratios(state) : null; // the list is sorted by them, where the page compares
    list.sort((a, b) => (level.get(b) ?? 0) - (level.get(a) ?? 0) || (changes ? (changes[b] ?? -Infinity) - (changes[a] ?? -Infinity) || 0 : (values[b] ?? -1) - (values[a] ?? -1)) || a - b);
    return list.map((d) => {
      const v = values[d] ?? null, parts = [...(said.get(d) ?? [])];
      if (state?.loop) parts.push(crossed.get(d) ? `${plural(crossed.get(d)!, "probe")}${detailed.has(d) ? ", in detail" : ""}` : "no probe");
      return { d, name: `${labels[m.from(d)]} → ${labels[m.to(d)]}`, value: `${v === null ? "no report" : inUnit(state?.unit ?? "", v)}${state?.before ? `; ${changeWords(state, d)}` : ""}`, state: parts.join(" · ") || "–", level: ["", "info", "warning", "critical"][level.get(d) ?? 0] ?? "" };
    });
  }
}
