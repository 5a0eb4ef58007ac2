// Who uses the page, with which role, and what operators did about findings: acknowledgements, mutes and comments.

import { ask, change, Refused, type Attention, type AttentionList, type Whoami } from "./api";
import { byId, el, setAttribute, setHidden, setText } from "./dom";
import { moment } from "./format";

const ranks: Record<string, number> = { viewer: 1, operator: 2, admin: 3 };
const mutes: [string, number][] = [["1 hour", 3600], ["8 hours", 28_800], ["1 day", 86_400], ["until unmuted", 0]];

let me: Whoami | null = null;
let attention: AttentionList = { alerts: false, control: false, attention: [] };

export const may = (role: string): boolean => me !== null && (ranks[me.role] ?? 0) >= (ranks[role] ?? 9);
const why = (role: string): string => (may(role) ? "" : `This needs the role ${role}; you have ${me?.role ?? "none"}.`);

export function reason(e: unknown): string {
  return e instanceof Refused ? e.message : "The page did not answer. Try again.";
}

type Known = (me: Whoami, attention: AttentionList) => Promise<void>;
const listeners: Known[] = [];

// whenKnown calls a part of the page each time that the user's rights were asked for.
export function whenKnown(f: Known): void {
  listeners.push(f);
}

// actions is a fold below a finding, with what an operator can do about it.
export function actions(id: string): HTMLElement {
  const note = el("input", { type: "text", maxlength: 500, "aria-label": "Note or comment", placeholder: "Note or comment" });
  const length = el("select", { "aria-label": "How long to mute" }, ...mutes.map(([text, seconds]) => el("option", { value: seconds }, text)));
  const result = el("p", { class: "finding-result", role: "status" });
  const button = (name: string, text: string, run: () => Promise<string>): HTMLButtonElement => {
    const b = el("button", { type: "button", class: "button small", "data-do": name, click: () => {
      b.disabled = true;
      run().then((done) => {
        note.value = "";
        setText(result, done);
        return loadAccess();
      }).catch((e: unknown) => setText(result, reason(e))).finally(() => update());
    } }, text);
    return b;
  };
  const text = (): string => note.value.trim();
  const muted = (): Attention | undefined => attention.attention.find((a) => a.id === id && a.muted);
  return el("div", { class: "finding-attention", "data-of": id },
    el("p", { class: "finding-attended" }), el("ul", { class: "finding-comments" }),
    el("details", { class: "finding-actions" }, el("summary", {}, "Acknowledge, mute, comment"),
      el("div", {}, note,
        button("ack", "Acknowledge", () => change("findings/ack", { id, note: text() })),
        el("span", {}, button("mute", "Mute", () => change("findings/mute", { id, for_seconds: Number(length.value), note: text() })), length),
        button("unmute", "Unmute", () => change("findings/unmute", { element: muted()?.mute_element ?? "", kind: muted()?.mute_kind ?? "" })),
        button("comment", "Comment", () => change("findings/comment", { id, text: text() })),
      ), result));
}

// update writes what is known now below every finding.
function update(): void {
  for (const e of document.querySelectorAll<HTMLElement>(".finding-attention")) {
    const a = attention.attention.find((x) => x.id === e.dataset.of);
    const parts = [
      a?.acknowledged ? `Acknowledged${a.acknowledged.by ? ` by ${a.acknowledged.by}` : ""}${a.acknowledged.text ? `: ${a.acknowledged.text}` : ""}` : "",
      a?.muted ? `Muted${a.muted.by ? ` by ${a.muted.by}` : ""}${a.muted_until ? ` until ${moment(Date.parse(a.muted_until), Date.now())}` : ""}${a.muted.text ? `: ${a.muted.text}` : ""}` : "",
    ].filter((p) => p !== "");
    const line = e.querySelector<HTMLElement>(".finding-attended"), list = e.querySelector<HTMLElement>(".finding-comments"), fold = e.querySelector<HTMLElement>(".finding-actions");
    if (!line || !list || !fold) continue;
    setText(line, parts.join(" · "));
    setHidden(line, parts.length === 0);
    const comments = (a?.comments ?? []).map((c) => `${c.by || "Anonymous"}, ${moment(c.at_ms ?? 0, Date.now())}: ${c.text ?? ""}`);
    if ([...list.children].map((c) => c.textContent).join("\n") !== comments.join("\n")) list.replaceChildren(...comments.map((c) => el("li", {}, c)));
    setHidden(list, comments.length === 0);
    setHidden(fold, me === null || me.unchangeable !== undefined);
    for (const b of fold.querySelectorAll<HTMLButtonElement>("button[data-do]")) {
      const name = b.dataset.do;
      const bar = why("operator") || (name !== "comment" && !attention.alerts ? "This program sends no alerts: its consumers do." : "");
      b.disabled = bar !== "";
      setAttribute(b, "title", bar || null);
      if (name === "unmute") setHidden(b, !a?.muted);
      if (name === "mute") setHidden(b.parentElement ?? b, a?.muted !== undefined);
    }
  }
}

function showMe(): void {
  if (!me) return;
  const how: Record<string, string> = { open: "no login is configured", token: "by the token of the page", "api-token": "by a token", proxy: "as the proxy says", oidc: "by OpenID Connect" };
  setText(byId("who-name"), me.login === "open" ? `${me.role}` : `${me.user} · ${me.role}`);
  setAttribute(byId("who"), "title", `Your role is ${me.role}: ${how[me.login] ?? me.login}${me.ends_ms ? `; the session ends ${moment(me.ends_ms, Date.now())} at the latest` : ""}`);
  setHidden(byId("who"), me.login === "open" && !me.logins);
  setHidden(byId("logout"), me.ends_ms === undefined);
  setHidden(byId("login"), me.login !== "open" || !me.logins);
}

// loadAccess asks who the user is, and what operators did.
export async function loadAccess(): Promise<void> {
  const [user, list] = await Promise.all([ask<Whoami>("whoami"), ask<AttentionList>("attention")]);
  me = user;
  attention = list;
  showMe();
  update();
  await Promise.all(listeners.map((f) => f(user, list)));
}

byId("logout").addEventListener("click", () => {
  change("logout", {}).then(() => window.location.assign("login")).catch((e: unknown) => setText(byId("who-name"), reason(e)));
});
