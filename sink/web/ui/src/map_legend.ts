// What the strokes of the map mean, as far as they are on it.

import { el } from "./dom";

export type LayerName = "findings" | "suspicion" | "plan" | "attention";

export interface Shown { layers: Set<LayerName>; loop: boolean; path: boolean; drops: boolean }

export function drawKeys(root: HTMLElement, shown: Shown): void {
  const on = (name: LayerName): boolean => shown.layers.has(name);
  const keys: [string, string][] = [["none", "no report"]];
  if (on("findings")) keys.push(["critical", "critical"], ["warning", "warning"], ["info", "info"]);
  if (on("findings") && shown.drops) keys.push(["drops", "drops"]);
  if (shown.loop && on("suspicion")) keys.push(["suspicion", "suspected"]);
  if (shown.loop && on("plan")) keys.push(["plan", "crossed by probes; the wider, the more"]);
  if (shown.loop && on("attention")) keys.push(["attention", "measured in detail"]);
  if (shown.path) keys.push(["path", "path of the flow"], ["marked", "hop that no digest confirms"]);
  const text = JSON.stringify(keys);
  if (root.dataset.keys === text) return;
  root.dataset.keys = text;
  root.replaceChildren(...keys.map(([key, words]) => el("span", { class: "legend-key" }, el("i", { class: `map-key key-${key}` }), words)));
}
