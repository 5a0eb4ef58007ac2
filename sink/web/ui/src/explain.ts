// What a finding means and what to do about it: the section of the documentation about its kind, the settings in force, what was not judged, and where to look next.

import { NotFound, ask, type Explanation } from "./api";
import { el } from "./dom";

// inline writes a line of Markdown: code, and links to other sections of the same page as links.
function inline(text: string): (HTMLElement | string)[] {
  const parts: (HTMLElement | string)[] = [];
  let done = 0;
  for (const m of text.matchAll(/`([^`]+)`|\[([^\]]+)\]\(([^)]+)\)/g)) {
    parts.push(text.slice(done, m.index));
    done = m.index + m[0].length;
    const label = (m[2] ?? "").replaceAll("`", "");
    if (m[1] !== undefined) parts.push(el("code", {}, m[1]));
    else parts.push(m[3]?.startsWith("#") ? el("a", { href: `docs/findings${m[3]}` }, label) : label);
  }
  parts.push(text.slice(done));
  return parts;
}

function contents(x: Explanation): HTMLElement[] {
  const out: HTMLElement[] = x.about.map((p) => el("p", {}, p.title ? el("strong", {}, `${p.title}: `) : "", ...inline(p.text)));
  const list = (title: string, items: HTMLElement[]): void => {
    if (items.length > 0) out.push(el("p", {}, el("strong", {}, title)), el("ul", {}, ...items));
  };
  list("Settings in force", x.thresholds.map((t) => el("li", { title: t.doc }, el("code", {}, t.key), t.value ? ` ${t.value}` : " as the consumers have it")));
  list("Not judged", x.unjudged.map((s) => el("li", {}, s)));
  list("Where to look next", [
    ...x.next.filter((l) => l.page).map((l) => el("li", {}, el("a", { href: l.page }, l.text))),
    el("li", {}, el("a", { href: x.runbook.replace(/^\//, "") }, "All about this kind of finding")),
  ]);
  return out;
}

// explainer is a fold that asks for the explanation of a finding each time that it is opened.
export function explainer(id: string): HTMLDetailsElement {
  const body = el("div", {});
  const fold = el("details", { class: "finding-explain" }, el("summary", {}, "What it means, and what to do"), body);
  fold.addEventListener("toggle", () => {
    if (!fold.open) return;
    if (!body.hasChildNodes()) body.append(el("p", {}, "Loading…"));
    ask<Explanation>("explain", { id })
      .then((x) => body.replaceChildren(...contents(x)))
      .catch((e: unknown) => body.replaceChildren(el("p", {}, e instanceof NotFound ? "The collector does not keep this finding any more." : "The collector did not answer. Open this again to retry.")));
  });
  return fold;
}
