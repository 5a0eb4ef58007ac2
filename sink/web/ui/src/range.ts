// The range of time that the page shows: the present, or a part of the history on disk. It is in the page's address.

import { earlierWords } from "./compare";
import type { History, Range } from "./api";
import { byId, press, segmented, setHidden, setText } from "./dom";
import { plural, span, stamp } from "./format";

const minute = 60_000, hour = 60 * minute, day = 24 * hour;

const lasts: { value: string; text: string; ms: number }[] = [
  { value: "15m", text: "15 min", ms: 15 * minute }, { value: "1h", text: "1 h", ms: hour }, { value: "6h", text: "6 h", ms: 6 * hour },
  { value: "1d", text: "Day", ms: day }, { value: "7d", text: "7 d", ms: 7 * day }, { value: "30d", text: "30 d", ms: 30 * day },
];

export interface Span { from: number; to: number }

export class RangeView {
  private last = ""; // one of lasts, or "" for the present or for a fixed span
  private fixed: Span | null = null;
  compares = false; // charts have the same time of the day before as well
  private readonly group: HTMLElement;
  private readonly from = byId<HTMLInputElement>("range-from");
  private readonly to = byId<HTMLInputElement>("range-to");
  private readonly compare = byId<HTMLInputElement>("range-compare");
  private readonly note = byId("range-note");
  private readonly lacks = byId("range-lacks");
  private kept = true;

  // changed is called when another range was chosen; now is the server's clock.
  constructor(private readonly changed: () => void, private readonly now: () => number) {
    this.group = segmented("Time that is shown", [{ value: "", text: "Live", title: "The last windows, as they come" }, ...lasts.map(({ value, text }) => ({ value, text, title: `The last ${text}, from the history` }))], "", (v) => this.choose(v));
    byId("range-choice").append(this.group);
    byId<HTMLFormElement>("range-form").addEventListener("submit", (e) => {
      e.preventDefault();
      const from = Date.parse(this.from.value), to = Date.parse(this.to.value);
      if (from < to) this.zoom({ from, to });
      else setText(this.note, "The first time has to be before the second.");
    });
    this.compare.addEventListener("change", () => {
      this.compares = this.compare.checked;
      this.write(true);
      this.changed();
    });
    window.addEventListener("popstate", () => {
      const before = this.key;
      this.read();
      if (this.key !== before) this.changed();
    });
    this.read();
  }

  private get key(): string {
    return `${this.last}|${this.fixed?.from}|${this.fixed?.to}|${this.compares}`;
  }

  get live(): boolean {
    return this.last === "" && this.fixed === null;
  }

  // moves reports whether the range ends now, and so moves on.
  get moves(): boolean {
    return this.last !== "";
  }

  // span is the range at this moment; null while the page is live.
  get span(): Span | null {
    if (this.fixed) return this.fixed;
    const ms = lasts.find((l) => l.value === this.last)?.ms;
    if (!ms) return null;
    const to = Math.floor(this.now());
    return { from: to - ms, to };
  }

  // query is what the API is asked with.
  get query(): Record<string, number> {
    const s = this.span;
    return s ? { from: s.from, to: s.to } : {};
  }

  // tables is what tables and the map are asked with: with the differences from the day before, where the page compares.
  get tables(): Record<string, number> {
    const q = this.query;
    return this.compares && q.from !== undefined ? { ...q, compare: day } : q;
  }

  // before is the query of the same time of the day before.
  get before(): Record<string, number> {
    const s = this.span;
    return s ? { from: s.from - day, to: s.to - day } : {};
  }

  choose(last: string): void {
    this.last = last;
    this.fixed = null;
    this.write(true);
    this.changed();
  }

  // zoom shows a fixed span, of a minute at least.
  zoom(s: Span): void {
    const middle = (s.from + s.to) / 2, half = Math.max(s.to - s.from, minute) / 2;
    this.last = "";
    this.fixed = { from: Math.round(middle - half), to: Math.round(middle + half) };
    this.write(true);
    this.changed();
  }

  // read takes the range from the page's address.
  private read(): void {
    const q = new URLSearchParams(window.location.search);
    const last = q.get("last") ?? "", from = Number(q.get("from")), to = Number(q.get("to"));
    this.last = lasts.some((l) => l.value === last) ? last : "";
    this.fixed = this.last === "" && Number.isSafeInteger(from) && Number.isSafeInteger(to) && from > 0 && from < to ? { from, to } : null;
    this.compares = q.get("compare") === "1";
    this.write(false);
  }

  // write shows the range in the controls, and in the page's address.
  private write(address: boolean): void {
    press(this.group, this.fixed ? "fixed" : this.last);
    this.compare.checked = this.compares;
    setHidden(byId("range-compare-box"), this.live);
    setHidden(byId("range-present"), this.live);
    const s = this.span;
    if (s) {
      this.from.value = local(s.from);
      this.to.value = local(s.to);
    }
    if (this.live) this.about(undefined);
    document.body.dataset.compares = this.compares && !this.live ? "1" : "0";
    document.body.dataset.range = this.live ? "live" : "past";
    if (!address) return;
    const q = new URLSearchParams(window.location.search); // which has the orders of tables too
    for (const key of ["last", "from", "to", "compare"]) q.delete(key);
    if (this.last) q.set("last", this.last);
    if (this.fixed) {
      q.set("from", String(this.fixed.from));
      q.set("to", String(this.fixed.to));
    }
    if (this.compares && !this.live) q.set("compare", "1");
    const text = q.toString();
    window.history.pushState(null, "", `${window.location.pathname}${text ? `?${text}` : ""}${window.location.hash}`);
  }

  // set shows whether there is a history.
  set(h: History): void {
    this.kept = h.kept;
    for (const e of byId("range").querySelectorAll<HTMLButtonElement | HTMLInputElement>("button, input")) e.disabled = !h.kept && this.live;
    if (!this.live) return;
    if (!h.kept) setText(this.note, `${(h.why ?? "no history").replace(/^n/, "N")}.`);
    else if (h.oldest_ms) setText(this.note, `History since ${stamp(h.oldest_ms)}`);
    else setText(this.note, "The history begins with the first minute that ends.");
    setText(this.lacks, h.problem ?? (h.damaged ? `${plural(h.damaged, "record")} of the history could not be read.` : ""));
  }

  // refused shows why a range has no answer.
  refused(why: string): void {
    setText(this.note, this.kept ? "" : "There is no history.");
    setText(this.lacks, why);
  }

  // about says of what time an answer is, and what it lacks.
  about(r: Range | undefined): void {
    if (!r) {
      setText(this.lacks, "");
      return;
    }
    setText(this.note, `${stamp(r.from_ms)} to ${stamp(r.to_ms)} in steps of ${span(r.resolution_ms)}, ${plural(r.merged, "window")} merged`);
    const lacks = r.lacks.length ? `${r.lacks.join("; ")}.`.replace(/^./, (c) => c.toUpperCase()) : "";
    setText(this.lacks, [lacks, r.compared ? earlierWords(r.compared) : ""].filter(Boolean).join(" "));
  }
}

// local is a time as a field of a form has it.
function local(ms: number): string {
  const d = new Date(ms - new Date(ms).getTimezoneOffset() * minute);
  return d.toISOString().slice(0, 16);
}
