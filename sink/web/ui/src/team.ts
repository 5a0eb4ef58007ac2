// For admins: the tokens and the sessions. For operators too: the log of changes.

import { may, reason, whenKnown } from "./access";
import { ask, change, order, type Change, type ChangeList, type MadeToken, type Session, type SessionList, type Token, type TokenList, type Whoami } from "./api";
import { confirmed } from "./confirm";
import { Keyed, byId, el, setAttribute, setHidden, setText } from "./dom";
import { moment, plural, stamp, whole } from "./format";
import { iso, saveButtons, tableOf, type Fields } from "./save";

// What the lists are as files. The secret of a token is in none.
const tokenFields: Fields<Token> = { Id: (t) => t.id, Name: (t) => t.name, Role: (t) => t.role, Made: (t) => iso(t.created_ms), By: (t) => t.created_by, Expires: (t) => iso(t.expires_ms), "Last used": (t) => iso(t.last_used_ms), "Last used from": (t) => t.last_used_from };
const sessionFields: Fields<Session> = { User: (s) => s.user, Role: (s) => s.role, Login: (s) => s.login, From: (s) => s.from, Began: (s) => iso(s.began_ms), "Last used": (s) => iso(s.last_used_ms), Ends: (s) => iso(s.ends_ms) };
const changeLogFields: Fields<Change> = {
  Number: (c) => c.number, When: (c) => iso(c.at_ms), User: (c) => c.user, Role: (c) => c.role, Login: (c) => c.login, From: (c) => c.from, What: (c) => c.action, Of: (c) => c.target, Text: (c) => c.text, "Not done": (c) => c.failed,
};

const day = 86_400;
const expiries: [string, number][] = [["never", 0], ["in a day", day], ["in 30 days", 30 * day], ["in 90 days", 90 * day], ["in a year", 365 * day]];
const logins: Record<string, string> = { open: "no login", token: "token file", "api-token": "token", proxy: "proxy", oidc: "OpenID Connect" };

const heads = (names: string[]): HTMLElement => el("thead", {}, el("tr", {}, ...names.map((n) => (n ? el("th", { scope: "col" }, n) : el("td", {})))));
const when = (ms: number | undefined): string => (ms ? moment(ms, Date.now()) : "never");

// Table is what both lists share: rows by key, an empty state, and a line for what was done or failed.
class Table<T> {
  readonly result = el("p", { class: "result", role: "status" });
  private readonly none: HTMLElement;
  private readonly rows: Keyed<T, HTMLTableRowElement>;
  private readonly table: HTMLTableElement;

  constructor(parent: HTMLElement, caption: string, columns: string[], empty: string, key: (x: T) => string, make: (x: T) => HTMLTableRowElement, update: (e: HTMLTableRowElement, x: T) => void) {
    const body = el("tbody");
    this.none = el("p", { class: "placeholder", hidden: true }, empty);
    this.table = el("table", { class: "data wide" }, el("caption", { class: "hidden" }, caption), heads(columns), body);
    this.rows = new Keyed(body, key, make, update);
    parent.append(this.table, this.none);
    parent.after(this.result);
  }

  list: T[] = [];

  set(list: T[]): void {
    this.list = list;
    this.rows.set(list);
    setHidden(this.none, list.length > 0);
    setHidden(this.table, list.length === 0);
  }

  say(text: string, bad: boolean): void {
    this.result.classList.toggle("bad", bad);
    setText(this.result, text);
  }
}

// cells writes texts into the cells of a row.
function cells(row: HTMLTableRowElement, texts: string[]): void {
  texts.forEach((text, i) => {
    const cell = row.cells[i];
    if (cell) setText(cell.querySelector(".text") ?? cell, text);
  });
}

const blank = (n: number): HTMLElement[] => Array.from({ length: n }, () => el("td"));

export class TeamView {
  private readonly tokens: Table<Token>;
  private readonly sessions: Table<Session>;
  private readonly made = el("div", { class: "secret", role: "group", "aria-label": "The new token", hidden: true });
  private readonly form: HTMLFormElement;
  private readonly error = el("p", { class: "result bad", role: "alert" });
  private me: Whoami | null = null;
  private most = 0;
  private before: number[] = []; // of the log of changes: where each page that was opened begins
  private newest = 0;
  private changes: Change[] = [];
  private logged = "";

  constructor() {
    const name = el("input", { id: "token-name", type: "text", required: true, maxlength: 100, autocomplete: "off", spellcheck: "false" });
    const role = el("select", {}, ...["viewer", "operator", "admin"].map((r) => el("option", {}, r)));
    const expires = el("select", {}, ...expiries.map(([text, s]) => el("option", { value: s }, text)));
    this.form = el("form", { class: "form", "aria-label": "Make a token" }, el("label", {}, "Name, such as what it is for", name), el("label", {}, "Role", role), el("label", {}, "Expires", expires),
      el("button", { class: "button primary", type: "submit" }, "Make a token"), this.error);
    this.form.addEventListener("submit", (e) => {
      e.preventDefault();
      setText(this.error, "");
      order<MadeToken>("tokens/create", { name: name.value.trim(), role: role.value, expires_seconds: Number(expires.value) }).then((m) => {
        name.value = "";
        this.secret(m);
        return this.load();
      }).catch((x: unknown) => setText(this.error, `No token was made: ${reason(x)}`));
    });
    byId("tokens-body").before(this.form, this.made);
    this.tokens = new Table<Token>(byId("tokens-body"), "Tokens by role", ["Name", "Role", "Made", "Expires", "Last used", ""], "There is no token by role yet. One for each program and person can be revoked alone.", (t) => t.id,
      (t) => el("tr", {}, el("th", { scope: "row", class: "wrap" }), ...blank(4), el("td", {}, el("button", { type: "button", class: "button small", "aria-label": `Revoke ${t.name}`, click: () => this.revoke(t) }, "Revoke"))),
      (row, t) => {
        const over = t.expires_ms !== undefined && t.expires_ms <= Date.now();
        cells(row, [t.name, t.role, `${when(t.created_ms)}${t.created_by ? ` by ${t.created_by}` : ""}`, over ? `expired ${when(t.expires_ms)}` : when(t.expires_ms), `${when(t.last_used_ms)}${t.last_used_from ? ` from ${t.last_used_from}` : ""}`]);
        this.bar(row);
      });
    this.sessions = new Table<Session>(byId("sessions-body"), "Open sessions of browsers", ["User", "Role", "Login", "From", "Began", "Last used", "Ends", ""], "No browser is logged in. A login begins a session, and a bearer token needs none.", (s) => s.id,
      (s) => el("tr", {}, el("th", { scope: "row", class: "wrap" }, el("span", { class: "text" }), el("span", { class: "own", hidden: true }, "this browser")), ...blank(6),
        el("td", {}, el("button", { type: "button", class: "button small", "aria-label": `End the session of ${s.user}, ${s.from}`, click: () => this.end(s) }, "End"))),
      (row, s) => {
        cells(row, [s.user || "–", s.role, logins[s.login] ?? s.login, s.from, when(s.began_ms), when(s.last_used_ms), when(s.ends_ms)]);
        const own = row.querySelector<HTMLElement>(".own");
        if (own) setHidden(own, s.id !== this.me?.session);
        this.bar(row);
      });
    byId("tokens-controls").append(saveButtons(() => "Tokens", { csv: () => tableOf(tokenFields, this.tokens.list) }));
    byId("sessions-controls").append(saveButtons(() => "Sessions", { csv: () => tableOf(sessionFields, this.sessions.list) }));
    byId("changes-controls").append(saveButtons(() => "Changes", { csv: () => tableOf(changeLogFields, this.changes) }));
    byId("changes-newest").addEventListener("click", () => this.page([]));
    byId("changes-older").addEventListener("click", () => this.page([...this.before, this.newest]));
    byId("changes-action").addEventListener("change", () => this.page([]));
    whenKnown((me) => {
      this.me = me;
      return this.load();
    });
  }

  // bar disables the button of a row where nothing can be changed.
  private bar(row: HTMLTableRowElement): void {
    const b = row.querySelector("button");
    if (!b) return;
    b.disabled = this.me?.unchangeable !== undefined;
    setAttribute(b, "title", this.me?.unchangeable ?? null);
  }

  private async load(): Promise<void> {
    const admin = may("admin") && this.me !== null && this.me.logins, log = may("operator") && this.me?.unchangeable === undefined;
    for (const id of ["tokens", "sessions"]) setHidden(byId(id), !admin);
    setHidden(byId("nav-tokens"), !admin);
    setHidden(byId("changes"), !log);
    setHidden(byId("nav-changes"), !log);
    await Promise.all([admin ? this.loadTokens() : this.forget(), log ? this.loadChanges() : null]);
  }

  // forget leaves nothing of the lists for a role that may not see them.
  private forget(): void {
    this.tokens.set([]);
    this.sessions.set([]);
    this.hideSecret();
  }

  private async loadTokens(): Promise<void> {
    setHidden(this.form, this.me?.unchangeable !== undefined);
    setText(byId("tokens-note"), this.me?.unchangeable ?? "");
    try {
      const [t, s] = await Promise.all([ask<TokenList>("tokens"), ask<SessionList>("sessions")]);
      this.most = t.most;
      if (this.me?.unchangeable === undefined) setText(byId("tokens-note"), `${t.tokens.length} of at most ${whole(this.most)}; secrets are kept as sums alone`);
      setText(byId("sessions-note"), `${plural(s.sessions.length, "session")} of at most ${whole(s.most)}; they are in memory, and a restart ends all`);
      this.tokens.set(t.tokens);
      this.sessions.set(s.sessions);
    } catch (e) {
      setText(byId("tokens-note"), reason(e));
      setText(byId("sessions-note"), reason(e));
    }
  }

  // secret shows the secret of a new token, which nothing has beside this.
  private secret(m: MadeToken): void {
    const text = el("code", { tabindex: 0, "aria-label": "Secret" }, m.secret);
    const said = el("span", { role: "status" });
    const copy = el("button", { type: "button", class: "button small", click: () => {
      copied(text, m.secret).then((done) => setText(said, done ? "Copied." : "The browser does not let this page copy. The secret is marked: press Ctrl+C."));
    } }, "Copy");
    this.made.replaceChildren(el("p", {}, `The secret of ${m.token.name} (${m.token.role}) is shown this once. Store it where programs read it.`), text, copy,
      el("button", { type: "button", class: "button small", click: () => {
        this.hideSecret();
        this.form.querySelector("input")?.focus();
      } }, "I have stored it"), said);
    setHidden(this.made, false);
    copy.focus();
  }

  private hideSecret(): void {
    this.made.replaceChildren();
    setHidden(this.made, true);
  }

  private async revoke(t: Token): Promise<void> {
    if (!(await confirmed(`Revoke ${t.name}?`, "Programs with this token are refused at once, and sessions that began with it end. It cannot be brought back.", "Revoke"))) return;
    await this.make(this.tokens, "tokens/revoke", t.id);
  }

  private async end(s: Session): Promise<void> {
    const own = s.id === this.me?.session;
    if (!(await confirmed(`End the session of ${s.user || "this user"}?`, own ? "It is that of this browser: you have to log in again." : "Its browser has to log in again.", "End the session"))) return;
    await this.make(this.sessions, "sessions/end", s.id);
    if (own) window.location.assign("login");
  }

  private async make<T>(table: Table<T>, path: string, id: string): Promise<void> {
    try {
      table.say((await change(path, { id })).replace(/^./, (c) => c.toUpperCase()), false);
    } catch (e) {
      table.say(reason(e), true);
    }
    await this.load();
  }

  private page(before: number[]): void {
    this.before = before;
    void this.loadChanges();
  }

  private async loadChanges(): Promise<void> {
    const body = byId("changes-body"), older = byId<HTMLButtonElement>("changes-older"), action = byId<HTMLSelectElement>("changes-action").value, before = this.before.at(-1);
    let list: ChangeList;
    try {
      list = await ask<ChangeList>("changes", { limit: 20, ...(action ? { action } : {}), ...(before ? { before } : {}) });
    } catch (e) {
      this.logged = "";
      body.replaceChildren(el("p", { class: "placeholder bad" }, reason(e)));
      return;
    }
    this.changes = list.changes;
    this.newest = list.changes.at(-1)?.number ?? 0;
    older.disabled = !list.more;
    byId<HTMLButtonElement>("changes-newest").disabled = this.before.length === 0;
    setText(byId("changes-note"), `over this page and its API${list.more || this.before.length ? `; the newest ${whole(list.kept)} can be asked for` : ""}`);
    const text = JSON.stringify(list.changes);
    if (text === this.logged) return;
    this.logged = text;
    if (list.changes.length === 0) {
      body.replaceChildren(el("p", { class: "placeholder" }, action ? "Nothing of this kind was changed." : "Nothing was changed over this page yet. Acknowledgements, mutes, comments, commands, tokens and sessions are listed here."));
      return;
    }
    const rows = list.changes.map((c) => el("tr", {}, el("td", {}, stamp(c.at_ms)), el("td", {}, c.user || "–"), el("td", {}, c.role), el("td", {}, c.from ?? ""), el("td", {}, c.action),
      el("td", { class: "wrap" }, c.target ?? ""), el("td", { class: "wrap" }, [c.text, c.failed ? `not done: ${c.failed}` : ""].filter(Boolean).join(" "))));
    body.replaceChildren(el("table", { class: "data wide" }, el("caption", { class: "hidden" }, "Changes, the newest first"), heads(["When", "User", "Role", "From", "What", "Of", "Text"]), el("tbody", {}, ...rows)));
  }
}

// copied copies a text, or marks it where the browser allows no page to copy.
async function copied(e: HTMLElement, text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text); // absent without TLS beyond loopback
    return true;
  } catch {
    window.getSelection()?.selectAllChildren(e);
    e.focus();
    return false;
  }
}
