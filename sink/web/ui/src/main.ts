// The page of a hopscope collector. It asks the API of the server it came from, and listens to its events.

import { loadAccess } from "./access";
import { NotFound, NotSignedIn, ask, type ExporterList, type Finding, type FindingList, type FleetList, type FlowList, type HopList, type InterfaceList, type Ledger, type NameList, type PathList, type ProbedList, type Status, type SystemList, type UnreadList } from "./api";
import { byId, el, setAttribute, setHidden, setText, type Filter } from "./dom";
import { ControlView } from "./control";
import { DashboardView, type Panel } from "./dashboard";
import { EmptyView } from "./empty";
import { ExportersView } from "./exporters";
import { NamelessView } from "./nameless";
import { UnreadView } from "./unread";
import { FindView } from "./find";
import { FindingsView } from "./findings";
import { FleetView } from "./fleet";
import { FlowsView } from "./flows";
import { clock, plural, setNames, span } from "./format";
import { bindKeys } from "./help";
import { HopView, HopsView } from "./hops";
import { InterfacesView } from "./interfaces";
import { ProbedView } from "./probed";
import { LedgerView } from "./ledger";
import { Live } from "./live";
import { MapView } from "./map";
import { foldNavigation } from "./nav";
import { Network } from "./network";
import { darkMode } from "./palette";
import { PathsView } from "./paths";
import { RangeView } from "./range";
import { SystemsView } from "./systems";
import { TeamView } from "./team";
import { Verdict } from "./verdict";

let status: Status | null = null;
let ledger: Ledger | null = null;
let skew = 0; // the server's clock minus ours, ms
let lastData = 0; // our clock

const announcer = byId("announce");
const announce = (text: string): void => setText(announcer, text);
const now = (): number => Date.now() + skew;

const verdict = new Verdict();
const ledgerView = new LedgerView();
const empty = new EmptyView();
const addPanel = (p: Panel): void => dashboard.add(p);
const hop = new HopView((from, to) => range.zoom({ from, to }), (node, egress_if) => addPanel({ kind: "link", of: [`${node}:${egress_if}`], hops: [{ node, egress_if }], show: "latency" }));
const range = new RangeView(changeRange, now);
const findings = new FindingsView(announce, showFinding, () => skew);
const network = new Network((row) => openHop(row.node, row.egressIf, true), (text) => setText(byId("announce-cell"), text), refresh);
const hops = new HopsView((node, egressIf) => openHop(node, egressIf, false), refresh);
const flows = new FlowsView((node, egressIf) => openHop(node, egressIf, true), refresh, addPanel);
const exporters = new ExportersView(refresh);
const probed = new ProbedView(refresh);
const interfaces = new InterfacesView((node, egressIf) => openHop(node, egressIf, true), refresh);
const unread = new UnreadView();
new ControlView();
new TeamView();
const systems = new SystemsView();
const nameless = new NamelessView();
const fleet = new FleetView();
const paths = new PathsView();
const dashboard = new DashboardView({
  openHop: (node, egressIf) => openHop(node, egressIf, true), announce, address: (hash) => history.replaceState(null, "", hash), zoom: (from, to) => range.zoom({ from, to }), findings: () => findings.every,
  openFlow: (key) => {
    flows.show(key);
    jumpTo("flows");
  },
});
const map = new MapView({ openHop, openFinding: showFinding, findings: () => findings.every, address: (hash) => history.replaceState(null, "", hash) });

// refresh loads what the page shows. Calls while it is under way become one more afterwards, and a page out of
// sight waits until it is seen.
let running = false, again = false, full = true;
let named = 0; // when names were asked for, by our clock

function refresh(): void {
  if (running || document.hidden) {
    again = true;
    return;
  }
  running = true;
  again = false;
  load().catch(failed).finally(() => {
    running = false;
    if (again) refresh();
  });
}

// changeRange shows another time.
function changeRange(): void {
  full = true;
  network.reset();
  refresh();
}

let visited = false; // the finding that the address named at first

function failed(e: unknown): void {
  if (e instanceof NotSignedIn) window.location.assign("login");
  else if (!(e instanceof TypeError)) console.warn(e); // a TypeError is the network's; the stream says so itself
}

async function load(): Promise<void> {
  const everything = full;
  full = false;
  try {
    if (everything || Date.now() - named > 30_000) {
      setNames(await ask<NameList>("names"));
      named = Date.now();
      await dashboard.list();
    }
    if (!range.live) return await loadPast();
    if (everything || !status || !ledger) {
      const [s, l, f] = await Promise.all([ask<Status>("status"), ask<Ledger>("ledger"), ask<FindingList>("findings")]);
      setStatus(s);
      network.reset();
      findings.reload(f);
      if (!visited) visited = visitFinding();
      setLedger(l);
      foot(s);
    } else setStatus(await ask<Status>("status"));
    if (status?.fleet) fleet.set(await ask<FleetList>("fleet", { limit: 200 }), now());
    const [, h, f, x, p, u, i, b, y] = await Promise.all([network.load(), ask<HopList>("hops", hops.query), ask<FlowList>("flows", flows.query), ask<ExporterList>("exporters", exporters.query), ask<PathList>("paths"), ask<UnreadList>("unread"), ask<InterfaceList>("interfaces", interfaces.query), ask<ProbedList>("probed", probed.query), ask<SystemList>("systems")]);
    lastData = Date.now();
    const window = status?.window_ms ?? 0;
    mark();
    hops.set(h, window);
    flows.set(f, window);
    exporters.set(x, window, now());
    paths.set(p);
    unread.set(u);
    nameless.set(x.hops_without_node_id ?? []);
    interfaces.set(i, window, now(), status?.fleet !== undefined);
    probed.set(b, window, now());
    systems.set(y);
    if (hop.node === "") chooseFirst();
    select();
    draw();
    map.past = {};
    await Promise.all([hop.load(findings.every, now()), flows.load(now()), map.load(), dashboard.load(), loadAccess()]);
    land();
  } catch (e) {
    full = full || everything;
    throw e;
  }
}

// land scrolls to a dashboard that the address names.
function land(): void {
  if (dashboard.landing) jumpTo("dashboard");
  dashboard.landing = false;
}

// loadPast loads a range of the history, and beside it what the page shows of the present alone.
async function loadPast(): Promise<void> {
  const s = await ask<Status>("status");
  status = s;
  skew = s.now_ms - Date.now();
  range.set(s.history);
  foot(s);
  if (!s.history.kept) return range.refused(s.history.why ?? "no history");
  const query = range.query, tables = range.tables, before = range.compares ? range.before : null;
  let about: Awaited<ReturnType<typeof network.loadPast>>, f: FindingList, l: Ledger, h: HopList, w: FlowList, x: ExporterList, i: InterfaceList, b: ProbedList, y: SystemList;
  try {
    [about, f, l, h, w, x, i, b, y] = await Promise.all([network.loadPast(query), ask<FindingList>("findings", query), ask<Ledger>("ledger", query), ask<HopList>("hops", { ...hops.query, ...tables }), ask<FlowList>("flows", { ...flows.query, ...query }),
      ask<ExporterList>("exporters", { ...exporters.query, ...tables }), ask<InterfaceList>("interfaces", { ...interfaces.query, ...tables }), ask<ProbedList>("probed", { ...probed.query, ...tables }), ask<SystemList>("systems")]);
  } catch (e) {
    if (e instanceof NotFound) return range.refused("This range cannot be shown: it is empty, or too long.");
    throw e;
  }
  if (range.live) return; // it was left meanwhile
  lastData = Date.now();
  if (about) range.about({ ...about, ...(h.range?.compared ? { compared: h.range.compared } : {}), lacks: [...new Set([...about.lacks, ...(f.range?.lacks ?? [])])] });
  findings.reload(f);
  ledger = l;
  ledgerView.set(l.balances, [], []);
  hops.set(h, s.window_ms);
  flows.set(w, s.window_ms);
  exporters.set(x, s.window_ms, now());
  interfaces.set(i, s.window_ms, now(), s.fleet !== undefined);
  probed.set(b, s.window_ms, now());
  systems.set(y);
  mark();
  if (hop.node === "") chooseFirst();
  select();
  draw();
  map.past = tables;
  await Promise.all([hop.load(findings.every, now(), query, before), map.load(), dashboard.load(query, before)]);
  land();
}

function setStatus(s: Status): void {
  status = s;
  range.set(s.history);
  skew = s.now_ms - Date.now();
  network.configure(s.history_windows, s.window_ms);
  fleet.show(s.fleet);
}

function setLedger(l: Ledger): void {
  ledger = l;
  ledgerView.set(l.balances, l.problems ?? [], l.left_out ?? []);
  draw();
}

function draw(): void {
  if (!status || !ledger || !byId("banner").hidden) return;
  if (!range.live) {
    const all = [...findings.every].length;
    verdict.past("The past", all ? `${plural(all, "finding")} lasted in this range.` : "No finding lasted in this range.");
    empty.set(status, ledger, false);
    return;
  }
  const nothing = !nameless.shown && network.rows.length === 0 && status.kept.hops === 0 && status.kept.exporters === 0 && status.kept.interfaces === 0 && status.kept.probed === 0;
  paths.mark(findings.open);
  verdict.set(status, ledger, findings.open, network.trend, !nothing, now());
  empty.set(status, ledger, nothing);
}

function mark(): void {
  network.mark(findings.every);
  hops.mark(findings.every);
}

// chooseFirst opens what the address names, or else the hop at the top of the picture.
function chooseFirst(): void {
  if (visitHop(false)) return;
  const top = network.top();
  if (top) hop.choose(top.node, top.egressIf);
}

// visitHop opens the hop that the address names.
function visitHop(jump: boolean): boolean {
  const named = /^#hop=([^/]*)\/(.*)$/.exec(window.location.hash);
  if (!named) return false;
  try {
    openHop(decodeURIComponent(named[1] ?? ""), decodeURIComponent(named[2] ?? ""), jump);
    return true;
  } catch {
    return false; // not an address of ours
  }
}

function select(): void {
  network.select(network.find(hop.node, hop.egressIf));
  hops.choose(hop.node, hop.egressIf);
  map.select(hop.node, hop.egressIf);
}

function openHop(node: string, egressIf: string, jump: boolean): void {
  if (node === "") return;
  // A flow may know only the node; then its first interface will do.
  const row = network.find(node, egressIf) ?? network.rows.find((r) => r.node === node);
  hop.choose(row?.node ?? node, row?.egressIf ?? egressIf);
  history.replaceState(null, "", `#hop=${encodeURIComponent(hop.node)}/${encodeURIComponent(hop.egressIf)}`);
  select();
  hop.load(findings.every, now(), range.query, range.compares && !range.live ? range.before : null).catch(failed);
  if (jump) jumpTo("hop");
}

function showFinding(f: Finding): void {
  if (f.exporter) jumpTo("exporters");
  else if (f.node) openHop(f.node, f.egress_if ?? "", true);
  else if (f.flow) {
    flows.show(f.flow);
    jumpTo("flows");
  }
}

const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

function jumpTo(id: string): void {
  const e = byId(id);
  e.scrollIntoView({ behavior: calm.matches ? "auto" : "smooth", block: id === "hop" || id === "network" ? "nearest" : "start" });
  e.focus({ preventScroll: true });
}

function foot(s: Status): void {
  const parts = [`hopscope ${s.version}`, `up since ${clock(s.start_ms)}`, `windows of ${span(s.window_ms)}`, ...s.sources.map((x) => `${x.kind} ${x.address}`)];
  byId("foot").replaceChildren(
    ...parts.map((p) => el("span", {}, p)),
    ...s.sources.filter((x) => x.problem).map((x) => el("span", { class: "bad" }, `${x.kind} ${x.address}: ${x.problem}`)),
    el("a", { href: "LICENSES.txt" }, "Licences"),
  );
}

const banner = byId("banner");
let lostAt = 0;
let lostWhy = "";

const live = new Live({
  reload: () => {
    full = true;
    refresh();
  },
  window: () => {
    if (range.live) refresh();
    else if (range.moves && Date.now() - lastData > 60_000) refresh(); // a minute of the history has ended
  },
  loop: () => map.load().catch(failed),
  ledger: (l) => {
    if (range.live) setLedger(l);
  },
  finding: (f) => {
    if (!range.live) return;
    findings.put(f);
    mark();
    draw();
    map.load().catch(failed);
  },
  connected: () => {
    lostAt = 0;
    setHidden(banner, true);
    setAttribute(document.body, "data-connection", "live");
    setText(byId("live-text"), "Live");
    draw();
  },
  lost: (reason, retryAt) => {
    lostAt ||= Date.now();
    const server = status?.fleet ? "console" : "collector";
    lostWhy = reason === "stopped" ? `The ${server} was stopped` : `The connection to the ${server} was lost`;
    setAttribute(document.body, "data-connection", "lost");
    setText(byId("live-text"), "Not connected");
    setText(byId("banner-text"), `${lostWhy} at ${clock(lostAt)}. What you see is from ${lastData ? clock(lastData) : "before"}; trying again ${retryAt - Date.now() > 1500 ? `in ${span(retryAt - Date.now())}` : "now"}.`);
    // A short break mends itself before anybody has read about it.
    setTimeout(() => {
      setHidden(banner, lostAt === 0);
      if (lostAt) verdict.lost(lostAt);
    }, 1500);
    // A stream says nothing of the reason. When it is the token, the page must be signed in again.
    ask<Status>("status").catch((e: unknown) => {
      if (e instanceof NotSignedIn) failed(e);
    });
  },
});

byId("banner-retry").addEventListener("click", () => live.connect());
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && again) refresh();
});
// visitFinding opens the finding that the address names.
function visitFinding(): boolean {
  const named = /^#finding=([0-9a-f]{16})$/.exec(window.location.hash);
  return named !== null && findings.visit(named[1] ?? "");
}

// tables are the lists that an address can filter, as in #flows=core-3.
const tables: Record<string, { filter: Filter }> = { hops, flows, exporters, interfaces, probed };

// part decodes what stands behind a name in the page's address; null where it is not there, or not an address of ours.
function part(name: string): string | null {
  const hash = window.location.hash;
  if (!hash.startsWith(`#${name}=`)) return null;
  try {
    return decodeURIComponent(hash.slice(name.length + 2));
  } catch {
    return null;
  }
}

// visitTable filters the table, or opens the flow, that the address names.
function visitTable(): boolean {
  const board = part("dashboard");
  if (board !== null) {
    dashboard.visit(board);
    jumpTo("dashboard");
    return true;
  }
  const flow = part("flow");
  if (flow !== null) {
    flows.show(flow);
    jumpTo("flows");
    return true;
  }
  for (const [name, table] of Object.entries(tables)) {
    const text = part(name);
    if (text === null) continue;
    table.filter.set(text);
    setHidden(byId(name), false);
    jumpTo(name);
    return true;
  }
  return false;
}

// visit shows what the address names.
function visit(): void {
  if (visitFinding() || visitTable()) return;
  if (map.visit(window.location.hash)) jumpTo("map");
  else visitHop(true);
}

const find = new FindView((address) => {
  if (window.location.hash === address) visit();
  else window.location.hash = address;
});

window.addEventListener("hashchange", visit);
darkMode.addEventListener("change", () => {
  network.restyle();
  hop.restyle();
  map.restyle();
  flows.restyle();
  dashboard.restyle();
  refresh();
});
window.addEventListener("resize", draw);
setInterval(draw, 5000); // what was lost a minute ago is no news any more

bindKeys([
  { keys: ["1"], text: "Network status", run: () => {
    jumpTo("network");
    byId("bitmap").querySelector<HTMLElement>("[tabindex]")?.focus({ preventScroll: true });
  } },
  { keys: ["2"], text: "Findings", run: () => jumpTo("findings") },
  { keys: ["3"], text: "Slowest hops", run: () => jumpTo("hops") },
  { keys: ["4"], text: "Flows", run: () => jumpTo("flows") },
  { keys: ["5"], text: "Exporters", run: () => jumpTo("exporters") },
  { keys: ["6"], text: "Fleet, where there is one", run: () => {
    if (status?.fleet) jumpTo("fleet");
  } },
  { keys: ["b"], text: "Dashboard", run: () => jumpTo("dashboard") },
  { keys: ["m"], text: "Map", run: () => {
    jumpTo("map");
    byId("map-box").querySelector<HTMLElement>("[tabindex]")?.focus({ preventScroll: true });
  } },
  { keys: ["l"], text: "Colour by latency", run: () => network.choose("latency") },
  { keys: ["q"], text: "Colour by queue", run: () => network.choose("queue") },
  { keys: ["u"], text: "Colour by link use", run: () => network.choose("link") },
  { keys: ["p"], text: "Next statistic: p50, p90, p99, max", run: () => network.nextStatistic() },
  { keys: ["s"], text: "Rows: worst first, or by node", run: () => network.toggleOrder() },
  { keys: ["d"], text: "Dense rows", run: () => network.toggleDense() },
  { keys: ["/"], text: "Find", run: () => find.focus() },
  { keys: ["f"], text: "Filter flows", run: () => {
    jumpTo("flows");
    flows.filter.focus();
  } },
]);

foldNavigation();
if (map.visit(window.location.hash)) byId("map").scrollIntoView();
else visitTable();
live.connect();
