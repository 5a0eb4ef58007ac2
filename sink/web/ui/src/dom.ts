// Small helpers around the DOM. Text from the network only ever becomes text nodes and attributes, never markup.

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | EventListener | undefined>;

// shown makes a text fit to be shown: control characters and marks that turn the direction of what follows become a sign.
export const shown = (text: string): string => text.replace(/(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, "\ufffd");

export function el<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") e.addEventListener(name, value);
    else e.setAttribute(name, value === true ? "" : shown(String(value)));
  }
  for (const c of children) if (c || c === "") e.append(typeof c === "string" ? shown(c) : c);
  return e;
}

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const e = document.getElementById(id);
  if (!e) throw new Error(`no element ${id}`);
  return e as T;
}

// setText changes a text only when it is another, so that selections and screen readers are left in peace.
export function setText(e: Element, text: string): void {
  text = shown(text);
  if (e.textContent !== text) e.textContent = text;
}

export function setAttribute(e: Element, name: string, value: string | null): void {
  if (value === null) {
    if (e.hasAttribute(name)) e.removeAttribute(name);
  } else if (e.getAttribute(name) !== shown(value)) e.setAttribute(name, shown(value));
}

export function setHidden(e: HTMLElement, hidden: boolean): void {
  if (e.hidden !== hidden) e.hidden = hidden;
}

// Keyed keeps the children of a parent in step with a list: children are made once per key, updated in place, and
// moved only when the order changes. The focused element stays focused.
export class Keyed<T, E extends HTMLElement> {
  private readonly items = new Map<string, E>();

  constructor(
    private readonly parent: HTMLElement,
    private readonly key: (item: T) => string,
    private readonly make: (item: T) => E,
    private readonly update: (element: E, item: T) => void,
    private readonly behind: ChildNode | null = null, // a first child that is not one of the list
  ) {}

  get elements(): Iterable<[string, E]> {
    return this.items;
  }

  set(list: T[]): void {
    const focused = document.activeElement;
    const gone = new Set(this.items.keys());
    let at: ChildNode | null = this.behind ? this.behind.nextSibling : this.parent.firstChild;
    for (const item of list) {
      const k = this.key(item);
      let e = this.items.get(k);
      if (!e) {
        e = this.make(item);
        this.items.set(k, e);
      }
      gone.delete(k);
      if (at === e) at = e.nextSibling;
      else this.parent.insertBefore(e, at);
      this.update(e, item); // in its place, because what is drawn needs a size
    }
    for (const k of gone) {
      this.items.get(k)?.remove();
      this.items.delete(k);
    }
    if (focused instanceof HTMLElement && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  }
}

// Segmented is a row of buttons of which one is on.
export function segmented(label: string, options: { value: string; text: string; title?: string }[], chosen: string, choose: (value: string) => void): HTMLElement {
  const group = el("div", { class: "segmented", role: "group", "aria-label": label });
  for (const o of options) {
    group.append(
      el("button", {
        type: "button", "data-value": o.value, "aria-pressed": String(o.value === chosen), title: o.title,
        click: () => choose(o.value),
      }, o.text),
    );
  }
  return group;
}

export function press(group: HTMLElement, chosen: string): void {
  for (const b of group.querySelectorAll("button")) setAttribute(b, "aria-pressed", String(b.dataset.value === chosen));
}

// Filter is the field of a table that keeps the rows that a text finds. The text is in the page's address.
export class Filter {
  private readonly input: HTMLInputElement;
  private wait = 0;

  constructor(private readonly table: string, private readonly pager: Pager, private readonly changed: () => void) {
    this.input = byId<HTMLInputElement>(`${table}-filter`);
    this.input.addEventListener("input", () => {
      clearTimeout(this.wait);
      this.wait = window.setTimeout(() => {
        history.replaceState(null, "", `#${this.table}${this.text ? `=${encodeURIComponent(this.text)}` : ""}`);
        this.apply();
      }, 200);
    });
  }

  get text(): string {
    return this.input.value.trim();
  }

  get query(): Record<string, string | number> {
    return { limit: this.pager.limit, offset: this.pager.offset, ...(this.text ? { q: this.text } : {}) };
  }

  // set takes a text from elsewhere.
  set(text: string): void {
    if (text === this.text) return;
    this.input.value = text;
    this.apply();
  }

  focus(): void {
    this.input.focus();
  }

  // apply begins at the first row again.
  apply(): void {
    this.pager.first();
    this.changed();
  }
}

// Pager steps through a long list.
export class Pager {
  offset = 0;
  private readonly text = el("span", { class: "pager-text" });
  private readonly back: HTMLButtonElement;
  private readonly next: HTMLButtonElement;
  private total = 0;

  constructor(parent: HTMLElement, readonly limit: number, what: string, private readonly changed: () => void) {
    this.back = el("button", { type: "button", class: "button small", "aria-label": `‹ Back, in ${what}`, click: () => this.go(-1) }, "‹ Back");
    this.next = el("button", { type: "button", class: "button small", "aria-label": `More ›, of ${what}`, click: () => this.go(1) }, "More ›");
    setHidden(this.back, true);
    setHidden(this.next, true);
    parent.append(this.text, this.back, this.next);
  }

  set(total: number): void {
    this.total = total;
    if (this.offset > 0 && this.offset >= total) {
      this.first();
      this.changed();
    }
    setText(this.text, total === 0 ? "" : `${this.offset + 1}–${Math.min(total, this.offset + this.limit)} of ${total.toLocaleString("en")}`);
    this.back.disabled = this.offset === 0;
    this.next.disabled = this.offset + this.limit >= total;
    const one = total <= this.limit;
    setHidden(this.back, one);
    setHidden(this.next, one);
  }

  first(): void {
    this.offset = 0;
  }

  private go(step: number): void {
    this.offset = Math.max(0, Math.min(this.offset + step * this.limit, Math.max(0, this.total - 1)));
    this.changed();
  }
}

// Icons of severities differ in shape, not only in colour.
const shapes: Record<string, string> = {
  critical: "M8 1 15 8 8 15 1 8Z M7.200 4.500v4.200h1.600V4.500Z M7.200 10v1.600h1.600V10Z",
  warning: "M8 1.500 15.200 14.500H.8Z M7.200 6v4.200h1.600V6Z M7.200 11.300v1.600h1.600v-1.600Z",
  info: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Z M7.200 7v4.500h1.600V7Z M7.200 4.300v1.600h1.600V4.300Z",
  idle: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Z M4.500 7.200v1.600h7V7.200Z",
  ok: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Z M6.900 11.300 3.700 8.100l1.200-1.200 2 2 4.200-4.200 1.200 1.200Z",
};

export function icon(name: string): SVGSVGElement {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", `icon icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(ns, "path");
  path.setAttribute("d", shapes[name] ?? shapes.info ?? "");
  path.setAttribute("fill-rule", "evenodd");
  svg.append(path);
  return svg;
}
