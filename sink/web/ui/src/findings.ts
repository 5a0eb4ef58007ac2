// What is wrong, as it is found: open findings first, then those that ended. Findings that have one cause are folded below it.

import type { Finding, FindingList } from "./api";
import { actions } from "./access";
import { explainer } from "./explain";
import { Keyed, byId, el, icon, setAttribute, setHidden, setText } from "./dom";
import { clock, hopName, moment, nodeName, plural, short, span } from "./format";
import { kindName, rank, severityName } from "./marks";
import { iso, saveButtons, tableOf, type Fields } from "./save";
import { Sort, type Column } from "./sort";

// What findings are sorted by, with the value of a finding.
const orders: (Column & { of: (f: Finding) => number | string })[] = [
  { name: "severity", text: "Severity", title: "Most severe first, causes before others, then newest", of: (f) => rank[f.severity] },
  { name: "start", text: "Began", title: "Newest first", of: (f) => f.start_ms },
  { name: "place", text: "Place", title: "By node, interface, flow or exporter", ascends: true, of: (f) => placeName(f) },
  { name: "kind", text: "Kind", title: "By the kind of finding", ascends: true, of: (f) => kindName(f.kind) },
];

const compare = new Intl.Collator("en", { numeric: true }).compare;

const shown = 100; // of the ended ones
const kept = 500;
const folded = 50; // pieces of evidence that are listed below a cause

// What the list is as a file.
const fields: Fields<Finding> = {
  Id: (f) => f.id, Kind: (f) => f.kind, Severity: (f) => f.severity, Began: (f) => iso(f.start_ms), Updated: (f) => iso(f.updated_ms), Ended: (f) => iso(f.end_ms), Headline: (f) => f.headline, Place: (f) => placeName(f),
  Node: (f) => f.node, "Egress interface": (f) => f.egress_if, Flow: (f) => f.flow, Exporter: (f) => f.exporter, "Value (raw)": (f) => f.value, "Usual value (raw)": (f) => f.baseline, Statistic: (f) => f.statistic,
  "Explained by": (f) => f.cause, Learning: (f) => f.learning ?? false, Resting: (f) => f.resting ?? false, Text: (f) => f.text,
};

export class FindingsView {
  private readonly all = new Map<string, Finding>();
  private readonly evidence = new Map<string, Finding[]>(); // by the id of the finding that they are listed with
  private readonly list = byId("findings-list");
  private readonly openList = el("ul", { class: "finding-group", "aria-label": "Open findings" });
  private readonly endedList = el("ul", { class: "finding-group ended", "aria-label": "Ended findings" });
  private readonly endedTitle = el("h3", { class: "finding-divider" }, "Ended");
  private readonly sort = new Sort("findings", orders, () => this.draw());
  private readonly quiet = el("div", { class: "quiet-note" }, icon("ok"), el("p", {}, el("strong", {}, "Nothing stands out."), el("br"),
    "A finding appears here when a hop leaves its own usual range, a flow changes its path, packets are dropped, or an exporter goes missing."));
  private readonly loading = el("p", { class: "placeholder" }, "Loading the findings.");
  private loaded = false; // before, it is not known whether something stands out
  private readonly openRows: Keyed<Finding, HTMLLIElement>;
  private readonly endedRows: Keyed<Finding, HTMLLIElement>;

  // announce is for screen readers; show takes the reader to the place; skew is the server's clock minus ours.
  constructor(private readonly announce: (text: string) => void, private readonly show: (f: Finding) => void, private readonly skew: () => number) {
    byId("findings-sort").append(this.sort.bar("Sort findings by"), saveButtons(() => "Findings", { csv: () => tableOf(fields, [...this.all.values()].sort((a, b) => b.start_ms - a.start_ms)) }));
    setHidden(this.quiet, true);
    setHidden(this.endedTitle, true);
    this.list.append(this.loading, this.quiet, this.openList, this.endedTitle, this.endedList);
    const make = (f: Finding): HTMLLIElement => this.make(f.id);
    const update = (e: HTMLLIElement, f: Finding): void => this.update(e, f);
    this.openRows = new Keyed(this.openList, (f) => f.id, make, update);
    this.endedRows = new Keyed(this.endedList, (f) => f.id, make, update);
    setInterval(() => this.draw(), 5000); // durations
  }

  // visit opens the explanation of a finding that the address names, or of the cause that it is listed with.
  visit(id: string): boolean {
    const f = this.all.get(id);
    const card = f && this.list.querySelector<HTMLElement>(`[data-id="${CSS.escape(this.lead(f).id)}"]`);
    const fold = card?.querySelector<HTMLDetailsElement>(".finding-explain");
    if (!card || !fold) return false;
    fold.open = true;
    card.scrollIntoView({ block: "nearest" });
    card.focus({ preventScroll: true });
    return true;
  }

  // open are the open findings without their evidence, in the order of the API: those at rest, whose places are as usual at present, come last,
  // and symptoms follow the findings at a place while a cause is open.
  get open(): Finding[] {
    const open = [...this.all.values()].filter((f) => f.end_ms === 0 && !this.explained(f));
    const cause = open.some((f) => (f.evidence ?? 0) > 0 && !f.resting && f.severity !== "info");
    const last = (f: Finding): number => (f.resting ? 2 : cause && symptom(f) ? 1 : 0), explains = (f: Finding): number => Math.min(f.evidence ?? 0, 1);
    return open.sort((a, b) => last(a) - last(b) || rank[b.severity] - rank[a.severity] || explains(b) - explains(a) || b.start_ms - a.start_ms || compareIDs(b, a));
  }

  get every(): Iterable<Finding> {
    return this.all.values();
  }

  // lead is the finding that f is listed with: the end of the chain of causes that are here, or f. Each of several that explain each other in a circle leads itself.
  private lead(f: Finding): Finding {
    const chain = new Set([f]);
    for (;;) {
      const cause = this.all.get(f.cause ?? "");
      if (!cause) return f;
      if (chain.has(cause)) return cause;
      chain.add(f = cause);
    }
  }

  private explained(f: Finding): boolean {
    return this.lead(f) !== f;
  }

  reload(list: FindingList): void {
    this.all.clear();
    for (const f of [...list.open, ...list.ended]) this.all.set(f.id, f);
    this.loaded = true;
    setHidden(this.loading, true);
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
    if (this.explained(f)) { /* its cause is announced */ }
    else if (f.end_ms !== 0) this.announce(`Ended: ${kindName(f.kind)}${place(f)}.`);
    else if (!before) this.announce(`New finding, ${f.severity}: ${kindName(f.kind)}${place(f)}. ${f.text}`);
    else if (rank[f.severity] > rank[before.severity]) this.announce(`Now ${f.severity}: ${kindName(f.kind)}${place(f)}.`);
    this.draw();
  }

  private ended(): Finding[] {
    return [...this.all.values()].filter((f) => f.end_ms !== 0 && !this.explained(f)).sort((a, b) => b.end_ms - a.end_ms || compareIDs(b, a));
  }

  // arrange puts findings into the order that was chosen; those that are equal in it keep theirs.
  private arrange(list: Finding[]): Finding[] {
    const chosen = this.sort.chosen, of = orders.find((o) => o === chosen?.column)?.of;
    if (!chosen || !of) return list;
    const sign = chosen.direction === "asc" ? 1 : -1;
    return list.map((f) => ({ f, key: of(f) })).sort((a, b) => sign * (typeof a.key === "number" && typeof b.key === "number" ? a.key - b.key : compare(String(a.key), String(b.key)))).map((x) => x.f);
  }

  private draw(): void {
    if (!this.loaded) return;
    this.evidence.clear();
    for (const f of this.all.values()) {
      const lead = this.lead(f);
      if (lead === f) continue;
      const list = this.evidence.get(lead.id);
      if (list) list.push(f);
      else this.evidence.set(lead.id, [f]);
    }
    const open = this.open, ended = this.ended();
    this.openRows.set(this.arrange(open));
    this.endedRows.set(this.arrange(ended).slice(0, shown));
    setHidden(this.quiet, open.length > 0);
    setHidden(this.endedTitle, ended.length === 0);
    const chosen = this.sort.note(""), order = chosen ? ` · ${chosen}` : "";
    setText(byId("findings-note"), open.length || ended.length ? `${plural(open.length, "open", "open")} · ${plural(ended.length, "ended", "ended")}${ended.length > shown ? `, +${short(ended.length - shown)} not shown` : ""}${order}` : "");
  }

  private make(id: string): HTMLLIElement {
    return el("li", { class: "finding", "data-id": id, tabindex: -1 },
      el("span", { class: "finding-icon" }),
      el("div", { class: "finding-body" },
        el("p", { class: "finding-headline" }),
        el("p", { class: "finding-head" }, el("span", { class: "finding-severity" }), el("span", { class: "finding-kind" }), el("span", { class: "finding-time" })),
        el("div", { class: "finding-where" },
          el("button", { type: "button", class: "finding-place", click: () => {
            const f = this.all.get(id);
            if (f) this.show(f);
          } }),
          el("span", { class: "finding-since" })),
        el("p", { class: "finding-text" }),
        el("details", { class: "finding-evidence" }, el("summary", {}), el("ul", {})),
        actions(id),
        explainer(id),
      ));
  }

  // link is the place of a finding as a button that opens it.
  private link(f: Finding): HTMLButtonElement {
    return el("button", { type: "button", class: "finding-place", click: () => {
      const now = this.all.get(f.id);
      if (now) this.show(now);
    } }, placeName(f));
  }

  // fold writes the evidence of a cause below it, the most severe first.
  private fold(e: HTMLElement, f: Finding): void {
    const list = (this.evidence.get(f.id) ?? []).sort((a, b) => rank[b.severity] - rank[a.severity] || a.start_ms - b.start_ms || compareIDs(a, b));
    const count = Math.max(list.length, f.evidence ?? 0);
    setHidden(e, count === 0);
    const summary = e.querySelector("summary"), items = e.querySelector("ul");
    if (count === 0 || !summary || !items) return;
    setText(summary, `Evidence: ${plural(count, "finding")}`);
    const rows: (string | HTMLElement)[][] = list.slice(0, folded).map((x) => [`${severityName(x.severity)} · ${kindName(x.kind)}${placeName(x) ? ", " : ""}`,
      this.link(x), `${x.end_ms ? " · ended" : x.resting ? " · at rest" : ""}: ${x.headline ?? x.text}`]);
    if (count > rows.length) rows.push([`and ${count - rows.length} more`]);
    const text = (r: (string | HTMLElement)[]): string => r.map((x) => (typeof x === "string" ? x : x.textContent)).join("");
    const now = [...items.children].map((x) => x.textContent);
    if (rows.length !== now.length || rows.some((r, i) => text(r) !== now[i])) items.replaceChildren(...rows.map((r) => el("li", {}, ...r)));
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
    const rests = f.resting === true && f.end_ms === 0;
    if (e.dataset.rests !== String(rests)) e.dataset.rests = String(rests);
    setText(part("headline"), f.headline ?? "");
    setText(part("severity"), rests ? `At rest, ${f.severity} before` : severityName(f.severity));
    setText(part("kind"), kindName(f.kind));
    const lasted = now - f.start_ms;
    setText(part("time"), f.end_ms ? `lasted ${span(f.end_ms - f.start_ms)}` : lasted < 2000 ? "just now" : `for ${span(lasted)}`);
    setText(part("since"), moment(f.start_ms, now));
    setAttribute(part("since"), "title", `from ${moment(f.start_ms, 0)}${f.end_ms ? ` to ${clock(f.end_ms)}` : ""}`);
    const where = part("place") as HTMLButtonElement;
    setText(where, placeName(f));
    setHidden(where, placeName(f) === "");
    setText(part("text"), f.learning && !f.text.includes("being learnt") ? `${f.text} (What is normal here is still being learnt.)` : f.text);
    this.fold(part("evidence") as HTMLElement, f);
  }
}

// symptom is whether a finding is of what probes or packets of a flow met on their whole way, so that it names no place.
function symptom(f: Finding): boolean {
  if (f.evidence) return false;
  if (f.kind === "drops") return f.statistic === "missing probes";
  return ["probe-loss", "probe-corruption", "probe-delay"].includes(f.kind) || (f.element?.kind === "flow" && ["high-latency", "low-latency"].includes(f.kind));
}

// compareIDs orders findings by their identifiers, which all have the same number of digits.
const compareIDs = (a: Finding, b: Finding): number => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);

function placeName(f: Finding): string {
  const kind = f.element?.kind;
  if (f.element?.node !== undefined && f.element.peer !== undefined) {
    const { node, egress_if, peer, peer_if } = f.element;
    if (kind === "link") return `Link ${hopName(String(node), String(egress_if ?? 0))} – ${hopName(String(peer), String(peer_if ?? 0))}`;
    if (kind === "route") return `Route ${nodeName(String(node))} to ${nodeName(String(peer))}`;
  }
  if (f.element?.node !== undefined && f.evidence && kind === "node") return `Node ${nodeName(String(f.element.node))}`;
  if (f.element && (kind === "link" || kind === "route" || (f.evidence && kind === "node"))) return f.element.text.charAt(0).toUpperCase() + f.element.text.slice(1);
  if (f.flow && !f.egress_if) return f.node ? `Node ${nodeName(f.node)} · ${f.flow}` : f.flow;
  if (f.exporter) return `Exporter ${f.exporter}${f.node ? `, node ${nodeName(f.node)}` : ""}`;
  if (f.egress_if) return `Hop ${hopName(f.node ?? "", f.egress_if)}`;
  return f.node ? `Node ${nodeName(f.node)}` : "";
}

const place = (f: Finding): string => {
  const p = placeName(f);
  return p ? `, ${p}` : "";
};
