// What is wrong, as it is found: open findings first, then those that ended.

import type { Finding, FindingList } from "./api";
import { Keyed, byId, el, icon, setAttribute, setHidden, setText } from "./dom";
import { clock, hopName, moment, plural, span } from "./format";
import { kindName, rank, severityName } from "./marks";

const shown = 100; // of the ended ones
const kept = 500;

export class FindingsView {
  private readonly all = new Map<string, Finding>();
  private readonly list = byId("findings-list");
  private readonly openList = el("ul", { class: "finding-group", "aria-label": "Open findings" });
  private readonly endedList = el("ul", { class: "finding-group ended", "aria-label": "Ended findings" });
  private readonly endedTitle = el("h3", { class: "finding-divider" }, "Ended");
  private readonly quiet = el("div", { class: "quiet-note" }, icon("ok"), el("p", {}, el("strong", {}, "Nothing stands out."), el("br"),
    "A finding appears here when a hop leaves its own usual range, a flow changes its path, packets are dropped, or an exporter goes missing."));
  private readonly openRows: Keyed<Finding, HTMLLIElement>;
  private readonly endedRows: Keyed<Finding, HTMLLIElement>;

  // announce is for screen readers; show takes the reader to the place; skew is the server's clock minus ours.
  constructor(private readonly announce: (text: string) => void, private readonly show: (f: Finding) => void, private readonly skew: () => number) {
    this.list.append(this.quiet, this.openList, this.endedTitle, this.endedList);
    const make = (f: Finding): HTMLLIElement => this.make(f.id);
    const update = (e: HTMLLIElement, f: Finding): void => this.update(e, f);
    this.openRows = new Keyed(this.openList, (f) => f.id, make, update);
    this.endedRows = new Keyed(this.endedList, (f) => f.id, make, update);
    setInterval(() => this.draw(), 5000); // durations
  }

  get open(): Finding[] {
    return [...this.all.values()].filter((f) => f.end_ms === 0)
      .sort((a, b) => rank[b.severity] - rank[a.severity] || b.start_ms - a.start_ms || compareIDs(b, a));
  }

  get every(): Iterable<Finding> {
    return this.all.values();
  }

  reload(list: FindingList): void {
    this.all.clear();
    for (const f of [...list.open, ...list.ended]) this.all.set(f.id, f);
    this.draw();
  }

  // put takes a finding from the stream.
  put(f: Finding): void {
    const before = this.all.get(f.id);
    this.all.set(f.id, f);
    if (this.all.size > kept) {
      const oldest = this.ended().at(-1);
      if (oldest) this.all.delete(oldest.id);
    }
    if (f.end_ms !== 0) this.announce(`Ended: ${kindName(f.kind)}${place(f)}.`);
    else if (!before) this.announce(`New finding, ${f.severity}: ${kindName(f.kind)}${place(f)}. ${f.text}`);
    else if (rank[f.severity] > rank[before.severity]) this.announce(`Now ${f.severity}: ${kindName(f.kind)}${place(f)}.`);
    this.draw();
  }

  private ended(): Finding[] {
    return [...this.all.values()].filter((f) => f.end_ms !== 0).sort((a, b) => b.end_ms - a.end_ms || compareIDs(b, a));
  }

  private draw(): void {
    const open = this.open, ended = this.ended();
    this.openRows.set(open);
    this.endedRows.set(ended.slice(0, shown));
    setHidden(this.quiet, open.length > 0);
    setHidden(this.endedTitle, ended.length === 0);
    setText(byId("findings-note"), open.length || ended.length ? `${plural(open.length, "open", "open")} · ${plural(ended.length, "ended", "ended")}` : "");
  }

  private make(id: string): HTMLLIElement {
    return el("li", { class: "finding" },
      el("span", { class: "finding-icon" }),
      el("div", { class: "finding-body" },
        el("p", { class: "finding-head" }, el("span", { class: "finding-severity" }), el("span", { class: "finding-kind" }), el("span", { class: "finding-time" })),
        el("div", { class: "finding-where" },
          el("button", { type: "button", class: "finding-place", click: () => {
            const f = this.all.get(id);
            if (f) this.show(f);
          } }),
          el("span", { class: "finding-since" })),
        el("p", { class: "finding-text" }),
      ));
  }

  private update(e: HTMLLIElement, f: Finding): void {
    const now = Date.now() + this.skew();
    const part = (name: string): Element => {
      const p = e.querySelector(`.finding-${name}`);
      if (!p) throw new Error(name);
      return p;
    };
    if (e.dataset.severity !== f.severity) {
      e.dataset.severity = f.severity;
      part("icon").replaceChildren(icon(f.severity));
    }
    setText(part("severity"), severityName(f.severity));
    setText(part("kind"), kindName(f.kind));
    const lasted = now - f.start_ms;
    setText(part("time"), f.end_ms ? `lasted ${span(f.end_ms - f.start_ms)}` : lasted < 2000 ? "just now" : `for ${span(lasted)}`);
    setText(part("since"), moment(f.start_ms, now));
    setAttribute(part("since"), "title", `from ${moment(f.start_ms, 0)}${f.end_ms ? ` to ${clock(f.end_ms)}` : ""}`);
    const where = part("place") as HTMLButtonElement;
    setText(where, placeName(f));
    setHidden(where, placeName(f) === "");
    setText(part("text"), f.text);
  }
}

// compareIDs orders findings by their identifiers, which all have the same number of digits.
const compareIDs = (a: Finding, b: Finding): number => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);

function placeName(f: Finding): string {
  if (f.flow && !f.egress_if) return f.node ? `Node ${f.node} · ${f.flow}` : f.flow;
  if (f.exporter) return `Exporter ${f.exporter}${f.node ? `, node ${f.node}` : ""}`;
  if (f.egress_if) return `Hop ${hopName(f.node ?? "", f.egress_if)}`;
  return f.node ? `Node ${f.node}` : "";
}

const place = (f: Finding): string => {
  const p = placeName(f);
  return p ? `, ${p}` : "";
};
