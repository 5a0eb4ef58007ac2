// A trend as small as a word.

import type { Maybe } from "./api";
import { css } from "./palette";

export function fitCanvas(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const ratio = window.devicePixelRatio || 1;
  const w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  const c = canvas.getContext("2d");
  c?.setTransform(ratio, 0, 0, ratio, 0, 0);
  return c;
}

export function drawSpark(canvas: HTMLCanvasElement, values: Maybe[], slots = values.length): void {
  const width = canvas.clientWidth, height = canvas.clientHeight;
  const c = fitCanvas(canvas, width, height);
  if (!c || width === 0) return;
  c.clearRect(0, 0, width, height);
  const top = Math.max(...values.map((v) => v ?? 0));
  if (values.length === 0 || top <= 0) return;
  const step = width / Math.max(1, slots - 1);
  const first = width - step * (values.length - 1);
  const y = (v: number): number => height - 1.5 - (v / top) * (height - 3);
  c.strokeStyle = css("--spark");
  c.fillStyle = css("--spark-fill");
  c.lineWidth = 1.25;
  c.lineJoin = "round";
  let open = -1;
  for (let i = 0; i <= values.length; i++) {
    const v = values[i] ?? null;
    if (v !== null && open < 0) open = i;
    if (v === null && open >= 0) {
      c.beginPath();
      for (let k = open; k < i; k++) c.lineTo(first + k * step, y(values[k] ?? 0));
      if (i === open + 1) c.lineTo(first + open * step + 1, y(values[open] ?? 0));
      c.stroke();
      c.lineTo(first + (i - 1) * step, height);
      c.lineTo(first + open * step, height);
      c.fill();
      open = -1;
    }
  }
}
