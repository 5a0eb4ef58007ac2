// What digests say of the paths of flows, how sure that is, and where the inventory is wrong.

import type { Finding, PathList, PathRow } from "./api";
import { Keyed, byId, el, setAttribute, setHidden, setText } from "./dom";
import { saveButtons, tableOf, type Fields } from "./save";
import { bytes, nanoseconds, nodeName, percent, plural, short } from "./format";

// What the list is as a file.
const fields: Fields<PathRow> = {
  Flow: (f) => f.key, Path: (f) => pathWords(f.hops), "Follows from the topology alone": (f) => f.hops.filter((h) => h.marked).map((h) => nodeName(h.node ?? "?")).join(" "), Known: (f) => f.complete, "Several at once": (f) => f.sprayed ?? false, Contradicted: (f) => f.unsettled ?? false,
  "Confidence (ratio)": (f) => f.confidence, "Share of this path (ratio)": (f) => f.share, "Other paths": (f) => (f.other_paths ?? []).map((o) => `${pathWords(o.nodes.map((node) => ({ node })))}${o.share ? ` (${o.share})` : ""}`).join("; "),
  "Not distinguished": (f) => (f.inseparable_paths ?? []).map((s) => `${s.paths.map((p) => pathWords(p.map((node) => ({ node })))).join(" or ")} (${s.share})`).join("; "), "Share without a path (ratio)": (f) => f.unexplained_share,
  Digests: (f) => f.digests, "Still needed": (f) => f.needed || null,
  "Value of whole paths": (f) => f.path_value?.of, "Value p50 (raw)": (f) => f.path_value?.p50, "Value p99 (raw)": (f) => f.path_value?.p99,
};

const pathWords = (hops: { node?: string }[]): string => hops.map((h) => (h.node ? nodeName(h.node) : "?")).join(" > ");

export class PathsView {
  private list: PathRow[] = [];
  private readonly rows: Keyed<PathRow, HTMLTableRowElement>;
  private readonly errors = byId("paths-errors");
  private readonly named: Keyed<Finding, HTMLLIElement>;

  constructor() {
    const body = el("tbody");
    byId("paths-controls").append(saveButtons(() => "Paths from digests", { csv: () => tableOf(fields, this.list) }));
    byId("paths-table").append(el("table", { class: "data paths-data" },
      el("caption", { class: "hidden" }, "Flows whose paths follow from digests, first those that are not certain"),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Flow"),
        el("th", { scope: "col", title: "Hops in brackets follow from the topology: no digest of their own has confirmed them" }, "Path"),
        el("th", { scope: "col", class: "num", title: "Probability that the whole path is right" }, "Confidence"),
        el("th", { scope: "col", class: "num", title: "That the path was inferred from, or that were seen so far" }, "Digests"),
        el("th", { scope: "col", class: "num", title: "Digests until the path is known, about; fewer where links are known" }, "Still needed"))),
      body));
    this.rows = new Keyed(body, (f) => f.key, () => this.make(), (e, f) => this.update(e, f));
    this.named = new Keyed(this.errors, (f) => f.id, () => el("li"), (e, f) => setText(e, f.text));
  }

  set(list: PathList): void {
    const any = list.known + list.undecided + list.sprayed > 0;
    setHidden(byId("paths"), !any);
    setHidden(byId("nav-paths"), !any);
    setText(byId("paths-note"), `${plural(list.known, "path")} known${list.marked ? `, ${short(list.marked)} with marked hops` : ""} · ${short(list.undecided)} undecided${list.sprayed ? ` · ${short(list.sprayed)} over several paths at once` : ""}`);
    this.list = list.flows;
    this.rows.set(list.flows);
  }

  // mark shows the errors of the inventory that are open findings.
  mark(open: Finding[]): void {
    const errors = open.filter((f) => f.kind === "inventory-error");
    this.named.set(errors);
    setHidden(this.errors, errors.length === 0);
  }

  private make(): HTMLTableRowElement {
    return el("tr", {}, el("th", { scope: "row" }), el("td", {}, el("ul", { class: "ways" })), el("td", { class: "num" }), el("td", { class: "num" }), el("td", { class: "num" }));
  }

  private update(row: HTMLTableRowElement, f: PathRow): void {
    const [key, , confidence, digests, needed] = row.cells;
    const list = row.querySelector("ul");
    if (!key || !confidence || !digests || !needed || !list) return;
    setText(key, f.key);
    setWays(list, f);
    const known = f.complete || f.sprayed;
    setText(confidence, f.unsettled ? "contradicted" : f.complete ? probability(f.confidence) : f.sprayed ? "several" : "undecided");
    setAttribute(confidence, "title", f.unsettled ? "Digests contradict the path. Whether there are several is being looked for." : null);
    setText(digests, short(f.digests));
    setText(needed, known ? "" : f.needed ? `about ${short(f.needed)}` : "–");
    setAttribute(row, "data-level", known ? null : "idle");
  }
}

// whole writes what packets bring of their whole path.
function whole(v: NonNullable<PathRow["path_value"]>): string {
  const text = (x: number): string => v.of.endsWith("latency") ? nanoseconds(x) : v.of.endsWith("utilization") ? percent(x / 65536) : bytes(x);
  return `${v.of}: p50 ${text(v.p50)}, p99 ${text(v.p99)} over ${plural(v.digests, "digest")}`;
}

interface Way { label: string; title?: string; hops: PathRow["hops"]; frequent?: PathRow["frequent"]; choice?: boolean }

// ways are all paths of a flow, each with what it is: a share of the packets, another path that was seen, one of several that
// cannot be distinguished.
function ways(f: PathRow): Way[] {
  const plain = (nodes: string[]): PathRow["hops"] => nodes.map((node) => ({ node }));
  const list: Way[] = [];
  if (f.hops.length > 0) list.push({ label: f.sprayed ? share(f.share) : f.unsettled ? "contradicted" : "", hops: f.hops, frequent: f.frequent });
  for (const o of f.other_paths ?? []) list.push(o.share ? { label: share(o.share), hops: plain(o.nodes) } : { label: "also seen", hops: plain(o.nodes) });
  for (const set of f.inseparable_paths ?? []) {
    set.paths.forEach((nodes, i) => list.push({
      label: set.paths.length > 1 ? (i === 0 ? `${share(set.share)} over some of` : "or") : `${share(set.share)} perhaps`, hops: plain(nodes), choice: true,
      title: "The digests do not distinguish these paths",
    }));
  }
  if (f.path_value) list.push({ label: whole(f.path_value), hops: [] });
  if (f.unexplained_share && f.unexplained_share >= 0.001) list.push({ label: `${share(f.unexplained_share)} over no path of the topology, or with wrong digests`, hops: [] });
  return list;
}

const waysShown = 4; // the others are unfolded

// setWays writes the paths of a flow, those that are too many below a summary. It changes nothing where nothing changed, so that what
// a reader unfolded stays so.
function setWays(list: HTMLElement, f: PathRow): void {
  const all = ways(f), text = JSON.stringify(all);
  if (list.dataset.ways === text) return;
  list.dataset.ways = text;
  const open = list.querySelector("details")?.open ?? false;
  const items = all.map((w) => el("li", { title: w.title }, w.label ? el("span", { class: "way-label" }, w.label) : "", w.hops.length ? el("ol", { class: "inferred-path" }, ...w.hops.map((h) => hop(h, w.frequent))) : ""));
  const rest = items.length > waysShown + 1 ? items.splice(waysShown) : [];
  list.replaceChildren(...items);
  if (rest.length) list.append(el("li", {}, el("details", open ? { open: true } : {}, el("summary", {}, `and ${rest.length} more`), el("ul", { class: "ways" }, ...rest))));
}

function hop(h: PathRow["hops"][number], of: PathRow["frequent"]): HTMLElement {
  const sure = h.confidence ? `, right with ${probability(h.confidence)}` : "";
  return el("li", {
    class: !h.node ? "unknown" : h.marked ? "marked" : undefined,
    title: !h.node ? "not known yet" : h.marked ? `follows from the topology; no digest of its own confirms it${sure}` : `confirmed by digests${sure}`,
  }, !h.node ? "?" : h.marked ? `(${nodeName(h.node)})` : nodeName(h.node), " ", often(h, of));
}

// often writes the most frequent value of a hop, and all that are known in its title.
function often(h: PathRow["hops"][number], of: PathRow["frequent"]): HTMLElement | string {
  const [first] = h.frequent ?? [];
  if (!first || !of) return "";
  const text = (v: typeof first): string => `${of === "latency" ? nanoseconds(v.value) : bytes(v.value)} in ${share(v.most_share)}`;
  return el("small", { class: "often", title: `${of === "latency" ? "Latencies" : "Queue lengths"} that come most often, with the share of digests: ${(h.frequent ?? []).map(text).join(", ")}` }, text(first));
}

// severalWords says in a few words that the one path that is shown of a flow is not all there is.
export function severalWords(f: PathRow): string {
  if (f.unsettled) return "digests contradict this path";
  const { path_value: _, ...paths } = f;
  const n = ways({ ...paths, unexplained_share: 0 }).length;
  return f.share ? `${plural(n, "path")} at once; this one: ${share(f.share)}` : `${plural(n, "path")} at once`;
}

// share writes a part of the packets. It rests on some hundreds of digests, which say no more than two digits.
const share = (v: number | undefined): string => percent(v ? Number(v.toPrecision(2)) : 0);

// probability writes one so that "nearly certain" and "certain" do not look the same.
function probability(p: number): string {
  if (p >= 1) return "certain";
  if (p > 0.9999) return `> 99.99\u202f%`;
  return `${(100 * p).toFixed(p > 0.99 ? 2 : 1)}\u202f%`;
}
