// What the page shows as files: tables and charts as CSV (RFC 4180, UTF-8), and what is drawn as PNG.

import type { Range } from "./api";
import { byId, el, setText, shown } from "./dom";
import { css } from "./palette";

export type Value = string | number | boolean | null | undefined;

// Fields are the columns of a CSV file: heads with units, and the raw value of a row.
export type Fields<T> = Record<string, (row: T) => Value>;

export interface Table { heads: string[]; rows: Value[][]; total?: number } // total is how many rows there are, if more than these

const number = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

// cell writes a value. A text that a spreadsheet would take for a formula gets a quote in front.
function cell(v: Value): string {
  if (v === null || v === undefined || (typeof v === "number" && !Number.isFinite(v))) return "";
  let text = shown(String(v));
  if (/^\s*[=+\-@＝＋－＠]|^[\t\n]/.test(text) && !number.test(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csv = (t: Table): string => [t.heads, ...t.rows].map((r) => `${r.map(cell).join(",")}\r\n`).join("");

// Rows are those of a table, and how many there are if not all.
export type Rows<T> = T[] & { total?: number };

export function tableOf<T>(fields: Fields<T>, rows: Rows<T>): Table {
  return { heads: Object.keys(fields), rows: rows.map((r) => Object.values(fields).map((f) => f(r))), ...(rows.total ? { total: rows.total } : {}) };
}

// iso is a time of the API as text; empty for 0, which is never.
export const iso = (ms: number | null | undefined): string => (ms ? new Date(ms).toISOString() : "");

// Drawn is a part of a picture: a canvas, and where its left upper corner is, in px of the page.
export interface Drawn { canvas: HTMLCanvasElement; x: number; y: number; width: number; height: number }

// Picture is what a PNG shows: a title, the keys of lines with their colours, and what is drawn.
export interface Picture { title: string; keys?: [text: string, color: string][]; parts: Drawn[] }

// part is a canvas of the page, below others in the same picture.
export function part(canvas: HTMLCanvasElement, x = 0, y = 0): Drawn {
  return { canvas, x, y, width: canvas.clientWidth, height: canvas.clientHeight };
}

// png composes a picture on the ground of the page, which its canvases do not have.
async function png(p: Picture): Promise<Blob> {
  const ratio = window.devicePixelRatio || 1, margin = 12, line = 20;
  const width = Math.max(240, ...p.parts.map((d) => d.x + d.width)), font = css("--font");
  const out = el("canvas"), c = out.getContext("2d");
  if (!c) throw new Error("the browser draws nothing");
  // Keys go on as many lines as they need.
  c.font = `500 12px ${font}`;
  const keys: { text: string; color: string; x: number; row: number }[] = [];
  let x = 0, row = 0;
  for (const [text, color] of p.keys ?? []) {
    const wide = 22 + c.measureText(shown(text)).width + 16;
    if (x > 0 && x + wide > width) [x, row] = [0, row + 1];
    keys.push({ text: shown(text), color, x, row });
    x += wide;
  }
  const top = margin + line + (keys.length ? (row + 1) * line : 0) + 4;
  const height = top + Math.max(0, ...p.parts.map((d) => d.y + d.height));
  out.width = Math.round((width + 2 * margin) * ratio);
  out.height = Math.round((height + margin) * ratio);
  c.scale(ratio, ratio);
  c.fillStyle = css("--surface");
  c.fillRect(0, 0, width + 2 * margin, height + margin);
  c.textBaseline = "middle";
  c.fillStyle = css("--text");
  c.font = `600 13px ${font}`;
  c.fillText(shown(p.title), margin, margin + line / 2, width);
  c.font = `500 12px ${font}`;
  for (const k of keys) {
    const y = margin + line * (k.row + 1.5);
    c.fillStyle = k.color;
    c.fillRect(margin + k.x, y - 1, 16, 3);
    c.fillStyle = css("--text-2");
    c.fillText(k.text, margin + k.x + 22, y);
  }
  for (const d of p.parts) if (d.width > 0 && d.height > 0) c.drawImage(d.canvas, margin + d.x, top + d.y, d.width, d.height);
  return new Promise((done, failed) => out.toBlob((b) => (b ? done(b) : failed(new Error("the browser writes no PNG"))), "image/png"));
}

export interface Savers { csv?: () => Table | Promise<Table>; png?: () => Picture }

// saveButtons are the buttons that save something. name says what it is, and becomes that of the file.
export function saveButtons(name: () => string, savers: Savers): HTMLElement {
  const box = el("span", { class: "save" });
  const add = (kind: string, make: () => Promise<{ blob: Blob; part?: string }>): void => {
    const b = el("button", { type: "button", class: "button small", title: `Save as ${kind}`, "aria-label": `Save as ${kind}: ${name()}`, click: () => {
      b.disabled = true;
      make().then(({ blob, part }) => {
        const what = part ? `${name()}, ${part}` : name();
        saveAs(blob, `${fileName(what)}.${kind.toLowerCase()}`);
        setText(byId("announce"), `Saved as ${kind}: ${what}`);
      }).catch((e: unknown) => {
        setText(byId("announce"), "It could not be saved: the collector did not answer.");
        console.warn(e);
      }).finally(() => {
        b.disabled = false;
      });
    } }, kind);
    box.append(b);
  };
  const { csv: table, png: picture } = savers;
  if (table) {
    add("CSV", async () => {
      const t = await table(), blob = new Blob([csv(t)], { type: "text/csv;charset=utf-8" });
      return t.total ? { blob, part: `first ${t.rows.length} of ${t.total}` } : { blob };
    });
  }
  if (picture) add("PNG", async () => ({ blob: await png(picture()) }));
  return box;
}

export const fileName = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "") || "hopscope";

// saveAs hands a file to the browser.
export function saveAs(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// rangeQuery asks for the time that a list is of; nothing for the present.
export function rangeQuery(r: Range | undefined): Record<string, number> {
  return r ? { from: r.from_ms, to: r.to_ms, ...(r.compared ? { compare: r.from_ms - r.compared.from_ms } : {}) } : {};
}

const page = 200; // rows that the API answers at most at once
const most = 20_000; // rows of a file

// every asks for the rows that a filter leaves, in the order of the table, up to most.
export async function every<T>(ask: (query: { limit: number; offset: number }) => Promise<{ total: number; rows: T[] }>): Promise<Rows<T>> {
  const rows: T[] = [];
  for (;;) {
    const a = await ask({ limit: page, offset: rows.length });
    rows.push(...a.rows);
    if (a.rows.length === 0 || rows.length >= Math.min(a.total, most)) return rows.length < a.total ? Object.assign(rows, { total: a.total }) : rows;
  }
}
