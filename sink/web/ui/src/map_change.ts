// The map against the same time of the day before.

import { signed } from "./compare";
import { el } from "./dom";
import { inUnit } from "./format";
import type { MapState } from "./map_model";
import { changeColors } from "./palette";

// Differences below this are none: they are within what the clocks of switches resolve, or a packet in a queue.
const floors: Record<string, number> = { ns: 1000, B: 1500, ratio: 0.01 };

// ratios are how many times more each direction has than the day before, as logarithms to the base 2.
export function ratios(s: MapState): (number | null)[] {
  const floor = floors[s.unit] ?? 1;
  return s.values.map((v, d) => {
    const was = s.before?.[d] ?? null;
    return v === null || was === null ? null : Math.log2((v + floor) / (was + floor));
  });
}

// changeWords says how much a direction changed.
export function changeWords(s: MapState, d: number): string {
  const v = s.values[d] ?? null, was = s.before?.[d] ?? null;
  if (was === null) return "the day before: no report";
  return `the day before: ${inUnit(s.unit, was)}${v === null ? "" : `, ${signed(v - was, (x) => inUnit(s.unit, x))}`}`;
}

// drawChangeLegend shows what the colours of changes mean.
export function drawChangeLegend(root: HTMLElement, title: string): void {
  const bar = el("span", { class: "legend-bar" });
  bar.style.backgroundImage = `linear-gradient(to right, ${changeColors().join(",")})`;
  const ticks = ([["a quarter", 0], ["half", 25], ["same", 50], ["twice", 75], ["4 times", 100]] as const).map(([text, at]) => {
    const t = el("span", {}, text);
    t.style.left = `${at}%`;
    return t;
  });
  root.replaceChildren(el("span", { class: "legend-title" }, title), el("span", { class: "legend-scale changes" }, bar, el("span", { class: "legend-ticks" }, ...ticks)));
  delete root.dataset.keys;
}
