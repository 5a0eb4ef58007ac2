// The answer to "is anything wrong, and where" in one line at the top, with the figures beside it.

import type { Balance, Finding, Ledger, Status } from "./api";
import { byId, icon, setAttribute, setText } from "./dom";
import { clock, hopName, nodeName, percent, plural, short, span } from "./format";
import { droppedOf, topDrop, worstBalance } from "./ledger";
import { kindName, rank } from "./marks";
import { drawSpark } from "./spark";

export class Verdict {
  private readonly box = byId("verdict");
  private readonly symbol = byId("verdict-icon");
  private readonly title = byId("verdict-title");
  private readonly detail = byId("verdict-detail");
  private shown = "";
  private known = "";
  private dropsSeen: { at: number; dropped: number }[] = [];

  // losing reports whether reports were dropped in the last minute.
  private losing(now: number, b: Balance | undefined): number {
    const dropped = b ? droppedOf(b) : 0;
    this.dropsSeen.push({ at: now, dropped });
    while (this.dropsSeen.length > 1 && (this.dropsSeen[0]?.at ?? now) < now - 60_000) this.dropsSeen.shift();
    return Math.max(0, dropped - (this.dropsSeen[0]?.dropped ?? dropped));
  }

  // lost says that nothing is known any more, and what was known last.
  lost(since: number): void {
    if (this.shown !== "lost") {
      this.known = this.title.textContent ?? "";
      this.show("lost", "warning");
    }
    setText(this.title, "Status unknown");
    setText(this.detail, `No connection to the collector since ${clock(since)}. Before that: ${this.known.charAt(0).toLowerCase()}${this.known.slice(1)}.`);
    document.title = "(?) hopscope";
  }

  // past says that the page shows a range of the history, and not the present.
  past(title: string, detail: string): void {
    this.show("info");
    setText(this.title, title);
    setText(this.detail, detail);
    document.title = "hopscope, the past";
  }

  private show(level: string, symbol = level): void {
    if (level === this.shown) return;
    this.shown = level;
    this.symbol.replaceChildren(icon(symbol));
    setAttribute(this.box, "data-level", level);
  }

  set(status: Status, ledger: Ledger, open: Finding[], trend: number[], hasData: boolean, now: number): void {
    const balance = worstBalance(ledger.balances);
    const lost = this.losing(now, balance);
    const active = open.filter((f) => !f.resting);
    const resting = open.length - active.length;
    const [first] = active, worst = active.reduce<Finding | null>((w, f) => (!w || rank[f.severity] > rank[w.severity] ? f : w), null);
    let [level, title, detail] = quiet(status);
    if (!hasData) {
      level = "info";
      title = ledger.balances.some((b) => b.received > 0) ? "Nothing decoded yet" : "Waiting for the first report";
      detail = `Started ${span(now - status.start_ms)} ago.`;
    }
    if (first && worst) {
      level = worst.severity;
      title = `${plural(active.length, "finding")} open, worst: ${worst.severity}`;
      detail = `${kindName(first.kind)}${where(first)} since ${clock(first.start_ms)}${active.length > 1 ? `, and ${active.length - 1} more` : ""}${resting > 0 ? `; ${resting} at rest` : ""}.`;
    } else if (ledger.problems?.length) {
      level = "warning";
      title = status.fleet ? "Part of the fleet is in trouble" : "Not everything is received or stored";
      detail = ledger.problems.join(" · ");
    } else if (lost > 0 && balance) {
      level = "warning";
      title = status.fleet ? "The fleet is losing reports" : "The collector is losing reports";
      detail = `${short(lost)} dropped in the last minute. ${topDrop(balance)}.`;
    } else if (resting > 0) {
      level = "info";
      title = `Nothing stands out now, ${plural(resting, "finding")} at rest`;
      detail = `${kindName(open[0]!.kind)}${where(open[0]!)} is as usual at present, and may come back.`;
    }
    this.show(level);
    setText(this.title, title);
    setText(this.detail, detail);
    const prefix = active.length > 0 ? `(${active.length}${level === "critical" ? "!" : ""}) ` : "";
    if (document.title !== `${prefix}hopscope`) document.title = `${prefix}hopscope`;

    setText(byId("rate"), short(Math.round(ledger.reports_per_second)));
    setText(byId("figure-hops"), short(status.kept.hops));
    setText(byId("figure-flows"), short(status.kept.flows));
    const dropped = balance ? droppedOf(balance) : 0;
    setText(byId("figure-dropped"), dropped === 0 ? "0" : percent(dropped / Math.max(1, balance?.received ?? 1)));
    setAttribute(byId("figure-dropped"), "class", lost > 0 ? "bad" : null);
    drawSpark(byId<HTMLCanvasElement>("rate-trend"), trend.slice(-60), 60);
  }
}

// quiet is the verdict without findings. It speaks of what was judged, and not of what was seen.
function quiet(status: Status): [level: string, title: string, detail: string] {
  const since = clock(status.start_ms);
  const j = status.judged;
  const flows = plural(status.kept.flows, "flow");
  if (j?.paths && j.hops === 0) return [j.paths_unjudged ? "info" : "ok", j.paths_unjudged ? "Quiet where it can be judged" : "All quiet", `Nothing stands out. ${j.text}.`];
  if (!j || j.hops === 0) return ["info", "No findings", `What was judged is not known here. ${plural(status.kept.hops, "hop")} and ${flows} seen since ${since}.`];
  if (j.judged === 0) return ["info", j.too_young > 0 ? "Nothing is judged yet" : "Nothing can be judged", `${j.text}.`];
  if (j.judged < j.hops) return [j.judged >= 0.95 * j.hops ? "ok" : "info", "Quiet where it can be judged", `Nothing stands out there. ${j.text}.`];
  if (j.no_latency) return ["ok", "Quiet where it can be judged", `Nothing stands out there. ${j.text}.`];
  if (j.paths_unjudged) return ["ok", "Quiet where it can be judged", `Nothing stands out there. ${j.text}.`];
  return ["ok", "All quiet", `Nothing stands out. All ${plural(j.hops, "hop")} judged, ${flows} seen since ${since}.`];
}

function where(f: Finding): string {
  if (f.exporter) return ` from exporter ${f.exporter}`;
  const e = f.element;
  if (e?.kind === "link" && e.node !== undefined && e.peer !== undefined) return ` at link ${nodeName(String(e.node))} – ${nodeName(String(e.peer))}`;
  if (f.flow && !f.node) return ` for ${f.flow}`;
  return f.node ? ` at ${f.egress_if ? `hop ${hopName(f.node, f.egress_if)}` : `node ${nodeName(f.node)}`}` : "";
}
