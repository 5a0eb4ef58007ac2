// The event stream. The browser resumes a stream that broke by itself and sends the id of the last event; when it gives
// up (the collector answered with an error), this does the same by hand. A stream without a sign of life is broken.

import type { Finding, Ledger } from "./api";

export interface Listener {
  reload(): void; // everything may have changed
  window(): void;
  loop(): void; // the control of probes has something new
  ledger(l: Ledger): void;
  finding(f: Finding): void;
  connected(): void;
  lost(reason: "broken" | "stopped", retryAt: number): void;
}

const silence = 25_000; // ms; the server says something every 10 s
const backoff = [1000, 2000, 4000, 8000, 15_000];

export class Live {
  private source: EventSource | null = null;
  private lastID = "";
  private attempts = 0;
  private watchdog = 0;
  private retry = 0;
  private stopped = false;

  constructor(private readonly to: Listener) {}

  connect(): void {
    clearTimeout(this.retry);
    this.source?.close();
    const s = new EventSource(`api/events${this.lastID ? `?last_event_id=${encodeURIComponent(this.lastID)}` : ""}`);
    this.source = s;
    const on = (kind: string, handle: (data: string) => void): void => {
      s.addEventListener(kind, (e) => {
        const m = e as MessageEvent<string>;
        if (m.lastEventId) this.lastID = m.lastEventId;
        this.alive();
        handle(m.data);
      });
    };
    on("hello", () => this.up(true));
    on("reset", () => this.up(true));
    on("resumed", () => this.up(false));
    on("window", () => this.to.window());
    on("loop", () => this.to.loop());
    on("ledger", (d) => this.to.ledger(JSON.parse(d) as Ledger));
    on("finding", (d) => this.to.finding(JSON.parse(d) as Finding));
    on("ping", () => undefined);
    on("bye", () => {
      this.stopped = true;
      this.broken();
    });
    s.onerror = () => this.broken();
    this.alive();
  }

  private up(reload: boolean): void {
    this.attempts = 0;
    this.stopped = false;
    this.to.connected();
    if (reload) this.to.reload();
    else this.to.window();
  }

  private alive(): void {
    clearTimeout(this.watchdog);
    this.watchdog = window.setTimeout(() => this.broken(), silence);
  }

  private broken(): void {
    clearTimeout(this.watchdog);
    this.source?.close();
    this.source = null;
    const wait = backoff[Math.min(this.attempts++, backoff.length - 1)] ?? 1000;
    this.to.lost(this.stopped ? "stopped" : "broken", Date.now() + wait);
    clearTimeout(this.retry);
    this.retry = window.setTimeout(() => this.connect(), wait);
  }
}
