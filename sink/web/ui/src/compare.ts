// What changed against the same time of the day before: columns of tables that are there while the page compares.

import type { Earlier, Maybe, Range } from "./api";
import { setAttribute, setText } from "./dom";
import { none, plural, stamp } from "./format";
import type { Fields } from "./save";
import type { Column } from "./sort";

// A row of a table that may have differences, by column.
export interface Compared { changes?: Record<string, Maybe> }

// Change is a column of differences. write writes an amount; worse is set where more is bad; unit is that of the raw value.
export interface Change { of: string; text: string; title: string; worse: boolean; unit: string; write(v: number): string }

export const comparing = (): boolean => document.body.dataset.compares === "1";

export function changeColumns(changes: Change[]): Column[] {
  return changes.map((c) => ({ name: `${c.of}_change`, text: c.text, cls: "num change", title: `${c.title}, less that of the day before` }));
}

// changeFields are those columns of a file.
export function changeFields<T extends Compared>(range: Range | undefined, changes: Change[]): Fields<T> {
  return range?.compared ? Object.fromEntries(changes.map((c) => [`${c.title}, less that of the day before (${c.unit})`, (row: T) => row.changes?.[c.of]])) : {};
}

// setChanges fills the last cells of a row.
export function setChanges(row: HTMLTableRowElement, changes: Change[], of: Compared): void {
  changes.forEach((c, i) => {
    const cell = row.cells[row.cells.length - changes.length + i];
    if (!cell) return;
    const v = of.changes?.[c.of] ?? null;
    setText(cell, v === null ? none : signed(v, c.write));
    setAttribute(cell, "title", of.changes ? (v === null ? "not reported in both times" : null) : "not there the day before");
    cell.classList.toggle("worse", c.worse && v !== null && v > 0);
    cell.classList.toggle("zero", v === 0);
  });
}

// signed writes a difference with its sign.
export function signed(v: number, write: (v: number) => string): string {
  return v === 0 ? "0" : `${v > 0 ? "+" : "−"}${write(Math.abs(v))}`;
}

// comparedWords says with which time a table is compared, and what is not known of it.
export function comparedWords(r: Range | undefined, what: string): string {
  const e = r?.compared;
  if (!e) return "";
  if (e.merged === 0) return "";
  return e.gone ? ` · ${plural(e.gone, what)} of the day before ${e.gone === 1 ? "is" : "are"} not there` : "";
}

// earlierWords says what the page is compared with.
export function earlierWords(e: Earlier): string {
  const time = `${stamp(e.from_ms)} to ${stamp(e.to_ms)}`;
  if (e.merged === 0) return `Nothing is known of the day before, ${time}${e.lacks.length ? `: ${e.lacks.join("; ")}` : ""}. Differences stay empty.`;
  return `Compared with ${time}, ${plural(e.merged, "window")}${e.lacks.length ? `: ${e.lacks.join("; ")}` : ""}.`;
}
