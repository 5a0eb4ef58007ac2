// Numbers as people read them: three digits that matter, a unit, and an en dash for what was not reported.

import type { Maybe, NameList } from "./api";

export const none = "–";

function digits(v: number): string {
  if (v >= 999.5) return String(Number(v.toPrecision(3)));
  if (v >= 99.95 || Number.isInteger(v)) return String(Math.round(v));
  if (v >= 9.995) return v.toFixed(1);
  return v.toFixed(2);
}

// scaled writes v with the largest of the units that keeps it at 1 or more.
function scaled(v: number, base: number, units: string[]): string {
  let i = 0;
  while (i < units.length - 1 && v >= base * 0.9995) {
    v /= base;
    i++;
  }
  return `${digits(v)}\u202f${units[i]}`;
}

export function nanoseconds(v: Maybe): string {
  return v === null ? none : scaled(v, 1000, ["ns", "µs", "ms", "s"]);
}

// nanosecondsWithin writes a time with its relative error, and no more digits than hold.
export function nanosecondsWithin(v: Maybe, share: Maybe): string {
  if (v === null || !share) return nanoseconds(v);
  if (share >= 1) return `about ${nanoseconds(Number(v.toPrecision(1)))}`;
  return `${nanoseconds(share >= 0.05 ? Number(v.toPrecision(2)) : v)} ±\u202f${Number((100 * share).toPrecision(share >= 0.05 ? 2 : 1))}\u202f%`;
}

export function bytes(v: Maybe): string {
  return v === null ? none : scaled(v, 1000, ["B", "kB", "MB", "GB"]);
}

export function bitRate(v: Maybe): string {
  return v === null || v === 0 ? none : scaled(v, 1000, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);
}

export function percent(ratio: Maybe): string {
  if (ratio === null) return none;
  const p = ratio * 100;
  if (p === 0) return "0\u202f%";
  if (p < 0.01) return "<0.01\u202f%";
  return `${p >= 99.95 ? Math.round(p) : p >= 9.995 ? p.toFixed(1) : p.toFixed(2)}\u202f%`;
}

// inUnit writes a value of a metric in the unit that the server names.
export function inUnit(unit: string, v: Maybe): string {
  switch (unit) {
    case "ns": return nanoseconds(v);
    case "B": return bytes(v);
    case "ratio": return percent(v);
  }
  return whole(v);
}

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function whole(v: Maybe): string {
  return v === null ? none : grouped.format(v);
}

// short is for figures that must not grow wide: 1,234 · 12.3 k · 4.56 M.
export function short(v: Maybe): string {
  if (v === null) return none;
  if (Math.abs(v) < 10_000) return grouped.format(v);
  const sign = v < 0 ? "-" : "";
  return sign + scaled(Math.abs(v), 1000, ["", "k", "M", "G", "T"]);
}

const two = (n: number): string => String(n).padStart(2, "0");

export function clock(ms: number): string {
  const d = new Date(ms);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

// moment is the clock, with the day when that is not today's.
export function moment(ms: number, now: number): string {
  const d = new Date(ms);
  if (d.toDateString() === new Date(now).toDateString()) return clock(ms);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(ms)}`;
}

// stamp is a time with its day, without seconds.
export function stamp(ms: number): string {
  const d = new Date(ms);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(ms).slice(0, 5)}`;
}

// during is the time that a list is of: the recent windows, or a range of the history.
export function during(list: { recent_windows: number; range?: { from_ms: number; to_ms: number } }, windowMS: number): string {
  return list.range ? `from ${stamp(list.range.from_ms)} to ${stamp(list.range.to_ms)}` : `in the last ${span(list.recent_windows * windowMS)}`;
}

// tick labels an axis of time whose labels are that far apart.
export function tick(ms: number, apart: number): string {
  const d = new Date(ms);
  if (apart < 60_000) return clock(ms);
  if (apart < 12 * 3_600_000 && (d.getHours() !== 0 || d.getMinutes() !== 0)) return clock(ms).slice(0, 5);
  return `${two(d.getMonth() + 1)}-${two(d.getDate())}`;
}

// span is a length of time in at most two units.
export function span(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000));
  if (ms > 0 && ms < 1000) return `${Math.round(ms)}\u202fms`;
  if (s < 60) return `${s}\u202fs`;
  const m = Math.floor(s / 60);
  if (m < 60) return s % 60 && m < 10 ? `${m}\u202fmin ${s % 60}\u202fs` : `${m}\u202fmin`;
  const h = Math.floor(m / 60);
  if (h < 24) return m % 60 ? `${h}\u202fh ${m % 60}\u202fmin` : `${h}\u202fh`;
  const d = Math.floor(h / 24);
  return h % 24 ? `${d}\u202fd ${h % 24}\u202fh` : `${d}\u202fd`;
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${grouped.format(n)} ${n === 1 ? one : many}`;
}

// Names by node, and by node and interface. Without names there are numbers; with one, the number stands beside it.
let called = new Map<string, string>();
let sites = new Map<number, string>(); // by the upper eight bits of the numbers of their nodes

export function setNames(list: NameList): void {
  called = new Map();
  sites = new Map((list.sites ?? []).map((s) => [s.id, s.name]));
  for (const n of list.nodes) {
    if (n.name) called.set(`${n.id}`, n.name);
    for (const i of n.interfaces ?? []) if (i.name) called.set(`${n.id}/${i.id}`, i.name);
  }
}

function beside(name: string | undefined, number: string): string {
  return name ? `${name} (${number})` : number;
}

// ownNumber is the number by which a device knows itself, behind its site if it has one.
function ownNumber(node: string): string {
  const id = Number(node);
  const site = sites.get(Math.floor(id / 2 ** 24));
  return site === undefined ? node : `${site}/${id % 2 ** 24}`;
}

export function nodeName(node: string): string {
  return beside(called.get(node), ownNumber(node));
}

// nodeShort is nodeName for narrow places: a name alone instead of its number.
export function nodeShort(node: string): string {
  return called.get(node) ?? ownNumber(node);
}

// nodeTitle is what the map calls a node: as the inventory does, or else as its own topology.
export function nodeTitle(node: string, own: string | undefined): { name: string; title: string } {
  const number = ownNumber(node), name = called.get(node) ?? own;
  return { name: name ?? number, title: beside(name === number ? undefined : name, number) };
}

export function interfaceName(node: string, egressIf: string): string {
  return beside(called.get(`${node}/${egressIf}`), egressIf);
}

// hopName names a hop; interface 0 means that the device did not say.
export function hopName(node: string, egressIf: string | undefined): string {
  if (node === "other") return "other hops";
  return egressIf && egressIf !== "0" ? `${nodeName(node)} → ${interfaceName(node, egressIf)}` : nodeName(node);
}

// hopShort is hopName for narrow places: a name alone instead of its number.
export function hopShort(node: string, egressIf: string): string {
  if (node === "other") return hopName(node, egressIf);
  return egressIf && egressIf !== "0" ? `${nodeShort(node)} → ${egressIf}` : nodeShort(node);
}

export function hopWords(node: string, egressIf: string | undefined): string {
  if (node === "other") return "All hops that had no place in the table";
  return egressIf && egressIf !== "0" ? `Node ${nodeName(node)}, egress interface ${interfaceName(node, egressIf)}` : `Node ${nodeName(node)}`;
}
