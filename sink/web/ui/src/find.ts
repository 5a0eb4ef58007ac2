// Search over all that the page shows, from one field in its head.

import { ask, type Found, type FoundList } from "./api";
import { byId, el, setAttribute, setHidden, setText } from "./dom";

const titles: Record<string, string> = {
  node: "Nodes", interface: "Interfaces", host: "Hosts", exporter: "Exporters", probe: "Paths of probes", flow: "Flows", finding: "Findings",
};

export class FindView {
  private readonly input = byId<HTMLInputElement>("find");
  private readonly list = byId("find-list");
  private options: HTMLElement[] = [];
  private active = -1;
  private wait = 0;
  private asked = 0; // number of the last question

  // go opens a part of the page by its address.
  constructor(private readonly go: (address: string) => void) {
    this.input.addEventListener("input", () => {
      clearTimeout(this.wait);
      this.wait = window.setTimeout(() => this.load(), 120);
    });
    this.input.addEventListener("keydown", (e) => this.key(e));
    this.input.addEventListener("focus", () => {
      if (this.input.value.trim()) this.load();
    });
    this.input.addEventListener("blur", () => this.close());
    this.list.addEventListener("mousedown", (e) => e.preventDefault()); // the field keeps the focus
  }

  focus(): void {
    this.input.focus();
    this.input.select();
  }

  private load(): void {
    const q = this.input.value.trim(), number = ++this.asked;
    if (!q) {
      this.close();
      return;
    }
    ask<FoundList>("find", { q, limit: 5 }).then((list) => {
      if (number === this.asked && document.activeElement === this.input) this.show(list);
    }).catch(() => this.show({ query: q, groups: [], failed: true }));
  }

  private show(list: FoundList): void {
    this.options = [];
    this.list.replaceChildren(...list.groups.flatMap((g) => [
      el("p", { class: "find-kind", role: "presentation" }, titles[g.kind] ?? g.kind),
      ...g.hits.map((h) => this.option(h)),
      ...(g.more ? [this.option({ name: `All ${g.total.toLocaleString("en")} in the table`, address: g.more }, "find-more")]
        : g.total > g.hits.length ? [el("p", { class: "find-note", role: "presentation" }, `+${(g.total - g.hits.length).toLocaleString("en")} not shown`)] : []),
    ]));
    if (list.groups.length === 0) this.list.append(el("p", { class: "find-note", role: "presentation" }, list.failed ? "The collector did not answer." : `Nothing has “${list.query}” in its name, number or address.`));
    setHidden(this.list, false);
    setAttribute(this.input, "aria-expanded", "true");
    setText(byId("announce"), `${list.groups.reduce((n, g) => n + g.total, 0)} found`);
    this.choose(this.options.length > 0 ? 0 : -1);
  }

  private option(h: Found, kind = "find-hit"): HTMLElement {
    const e = el("a", { class: kind, role: "option", id: `find-${this.options.length}`, href: h.address, tabindex: -1, "aria-selected": "false", click: (ev) => {
      ev.preventDefault();
      this.take(h.address);
    } }, el("span", {}, h.name), h.detail ? el("span", { class: "find-detail" }, h.detail) : "");
    this.options.push(e);
    return e;
  }

  private choose(i: number): void {
    this.active = i;
    this.options.forEach((o, k) => setAttribute(o, "aria-selected", String(k === i)));
    setAttribute(this.input, "aria-activedescendant", this.options[i]?.id ?? null);
    this.options[i]?.scrollIntoView({ block: "nearest" });
  }

  private key(e: KeyboardEvent): void {
    const n = this.options.length;
    if (e.key === "Escape") {
      e.preventDefault();
      e.stopPropagation();
      if (this.list.hidden) this.input.blur();
      else this.close();
    } else if (e.key === "Enter") {
      const address = this.list.hidden ? null : this.options[this.active]?.getAttribute("href");
      if (address) {
        e.preventDefault();
        this.take(address);
      }
    } else if ((e.key === "ArrowDown" || e.key === "ArrowUp") && n > 0 && !this.list.hidden) {
      e.preventDefault();
      this.choose((this.active + (e.key === "ArrowDown" ? 1 : n - 1)) % n);
    }
  }

  private take(address: string): void {
    this.close();
    this.input.blur();
    this.go(address);
  }

  private close(): void {
    this.asked++;
    clearTimeout(this.wait);
    setHidden(this.list, true);
    setAttribute(this.input, "aria-expanded", "false");
    setAttribute(this.input, "aria-activedescendant", null);
  }
}
