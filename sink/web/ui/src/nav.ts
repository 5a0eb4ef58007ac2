// The links to the sections. Those that have no room in the bar are in a menu behind it, so that none is cut off.

import { byId, setHidden, setText } from "./dom";

export function foldNavigation(): void {
  const row = byId("nav"), more = byId<HTMLDetailsElement>("nav-more"), menu = byId("nav-menu"), name = byId("nav-more-name");
  const links = [...row.querySelectorAll("a")];
  // show leaves so many links in the bar.
  const show = (list: HTMLAnchorElement[], n: number): void => {
    row.append(...list.slice(0, n));
    menu.append(...list.slice(n));
    setHidden(more, n >= list.length);
    setText(name, n === 0 ? "Sections" : "More");
  };
  const fold = (): void => {
    const focused = document.activeElement, list = links.filter((a) => !a.hidden);
    let n = list.length;
    show(list, n);
    while (n > 0 && row.scrollWidth > row.clientWidth) show(list, --n);
    if (n < 3 && n < list.length) show(list, 0); // a link or two beside the menu would read as all there are
    if (more.hidden) more.open = false;
    if (focused instanceof HTMLElement && focused !== document.activeElement) focused.focus({ preventScroll: true });
  };
  new ResizeObserver(fold).observe(byId("sections"));
  const watch = new MutationObserver(fold);
  for (const a of links) watch.observe(a, { attributes: true, attributeFilter: ["hidden"] });

  const close = (): void => {
    more.open = false;
  };
  menu.addEventListener("click", close);
  more.addEventListener("keydown", (e) => {
    if (e.key !== "Escape" || !more.open) return;
    e.stopPropagation();
    close();
    more.querySelector("summary")?.focus();
  });
  more.addEventListener("focusout", (e) => {
    if (e.relatedTarget instanceof Node && !more.contains(e.relatedTarget)) close();
  });
  document.addEventListener("pointerdown", (e) => {
    if (e.target instanceof Node && !more.contains(e.target)) close();
  });
}
