// Sequential colours that stay ordered in every kind of colour blindness and in grey: viridis (matplotlib, CC0) on dark
// ground, where bright means much, and ColorBrewer's YlGnBu on light ground, where dark means much.

const viridis = ["440154", "482475", "414487", "355f8d", "2a788e", "21918c", "22a884", "44bf70", "7ad151", "bddf26", "fde725"];
const ylGnBu = ["edf8d9", "d5efc0", "b5e2bb", "7fcdbb", "56bfc4", "41a6c4", "1d86bb", "225ea8", "253494", "14256f", "081d58"];

const steps = 128;

function table(stops: string[]): string[] {
  const rgb = stops.map((s) => [0, 2, 4].map((i) => parseInt(s.slice(i, i + 2), 16)));
  return Array.from({ length: steps }, (_, i) => {
    const x = (i / (steps - 1)) * (rgb.length - 1);
    const k = Math.min(Math.floor(x), rgb.length - 2);
    const a = rgb[k] ?? [], b = rgb[k + 1] ?? [];
    const mixed = [0, 1, 2].map((c) => Math.round((a[c] ?? 0) + ((b[c] ?? 0) - (a[c] ?? 0)) * (x - k)));
    return `rgb(${mixed.join(",")})`;
  });
}

const onDark = table(viridis);
const onLight = table(ylGnBu);

// A change has two hues around what is neither more nor less (ColorBrewer's PuOr): blue is less, orange is more.
const changeOnDark = table(["80bfff", "4f86c6", "3b5570", "454a52", "7a5a33", "cf7f24", "ffb454"]);
const changeOnLight = table(["1f4e9c", "5b8fd0", "a9c4e4", "cfd3d9", "efbf86", "d6812a", "8f4400"]);

export const darkMode = window.matchMedia("(prefers-color-scheme: dark)");

export function colors(): string[] {
  return darkMode.matches ? onDark : onLight;
}

export function changeColors(): string[] {
  return darkMode.matches ? changeOnDark : changeOnLight;
}

// Scale maps values to places between 0 and 1: by their logarithm, because what matters spans decades, or, from 0, by
// themselves. Zero is at the bottom either way.
export class Scale {
  constructor(readonly low: number, readonly high: number) {}

  place(v: number): number {
    if (v <= this.low) return 0;
    if (v >= this.high) return 1;
    return this.low === 0 ? v / this.high : Math.log(v / this.low) / Math.log(this.high / this.low);
  }

  index(v: number): number {
    return Math.round(this.place(v) * (steps - 1));
  }

  // ticks are round values from low to high, at most about n of them.
  ticks(n: number): number[] {
    if (this.low === 0) {
      const parts = n >= 5 ? 4 : 2;
      return Array.from({ length: parts + 1 }, (_, i) => (this.high * i) / parts);
    }
    for (const digits of [[1, 2, 5], [1, 3], [1]]) {
      const out: number[] = [];
      for (let e = Math.floor(Math.log10(this.low)); e <= Math.ceil(Math.log10(this.high)); e++) {
        for (const d of digits) {
          const v = d * 10 ** e;
          if (v >= this.low * 0.999 && v <= this.high * 1.001) out.push(v);
        }
      }
      if (out.length <= n || digits.length === 1) return out;
    }
    return [];
  }
}

// ChangeScale maps how many times more a value is, as the logarithm to the base 2, from a quarter to four times.
export class ChangeScale extends Scale {
  constructor() {
    super(-2, 2);
  }

  override place(v: number): number {
    return Math.max(0, Math.min(1, (v + 2) / 4));
  }
}

// fit chooses a logarithmic scale on which usual values are in the lower third, so that only what is many times the
// usual stands out. It keeps the scale it had as long as that is not far off, so that colours do not change their
// meaning under the reader's eyes.
export function fit(values: Iterable<number>, had: Scale | null, floor: number): Scale {
  const sorted = Float64Array.from(values).filter((v) => v > 0).sort();
  const at = (q: number): number => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0;
  const usual = Math.max(at(0.5), floor * 4);
  const low = usual / 4, high = Math.max(at(1), usual * 20);
  if (had && at(1) <= had.high && high > had.high / 4 && low >= had.low / 2 && low <= had.low * 4) return had;
  return new Scale(round(low, Math.floor), round(high, Math.ceil));
}

function round(v: number, to: (x: number) => number): number {
  const e = 10 ** Math.floor(Math.log10(v));
  const steps = [1, 2, 5, 10];
  const m = v / e;
  const s = to === Math.floor ? steps.findLast((x) => x <= m * 1.0001) : steps.find((x) => x >= m * 0.9999);
  return (s ?? 1) * e;
}

const known = new Map<string, string>();
darkMode.addEventListener("change", () => known.clear());

// css reads a colour of the style sheet. Asking costs a style computation, and a picture asks thousands of times.
export function css(name: string): string {
  let value = known.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    known.set(name, value);
  }
  return value;
}
