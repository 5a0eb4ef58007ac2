// What the server answers. Times are milliseconds since 1970, latencies nanoseconds, queues bytes; null is "not reported".

export type Maybe = number | null;

// An exporter whose datagrams no profile reads.
export interface UnreadRow { address: string; count: number; at_least?: boolean; text: string; sample?: string }

export interface UnreadList { total: number; exporters: UnreadRow[] }

export interface Source { kind: string; address: string; detail?: string; problem?: string; frames: number }

export interface Status {
  version: string;
  now_ms: number;
  start_ms: number;
  window_ms: number;
  reports_per_second: number;
  sources: Source[];
  settings: { name: string; value: string }[];
  windows: number;
  history_windows: number;
  kept: { hops: number; flows: number; exporters: number; interfaces: number; probed: number };
  refused: number;
  judged?: Judged; // unknown where the detectors are elsewhere, or before the first window
  fleet?: FleetSummary; // of the page of a fleet
  history: History;
}

// History is the account of the history on disk.
export interface History {
  kept: boolean;
  why?: string; // why there is none, and what to set
  oldest_ms: number; // 0 where nothing is kept yet
  newest_ms: number;
  bytes: number;
  lost_minutes: number;
  damaged: number;
  problem?: string;
}

// Range says of what time an answer out of the history is, and what it lacks.
export interface Range {
  from_ms: number;
  to_ms: number;
  resolution_ms: number;
  merged: number; // windows
  columns: number[]; // windows of each; 0 is a gap
  lacks: string[];
  compared?: Earlier;
}

// Earlier is the time that a range is compared with.
export interface Earlier { from_ms: number; to_ms: number; merged: number; gone: number; lacks: string[] }

// Judged is how much of the last window was judged.
export interface Judged {
  hops: number;
  judged: number;
  too_young: number;
  too_few: number;
  no_latency?: number; // of the judged
  paths?: number; // of probes
  paths_unjudged?: number; // of these, those whose delay was not judged
  min_records: number;
  enough_ms?: number;
  text: string;
}

// System is a planning system, with sentences that have no full stop.
export interface System { system: string; title: string; state: string; why?: string; decided: string[]; installed: string[]; brought: string[]; switch_on?: string; docs: string }

export interface SystemList { systems: System[] }

export interface FleetSummary {
  name: string;
  slices: number;
  problem?: string;
  missing_topics?: string[];
  behind: number;
  ahead: number;
  collectors: number;
  consumers: number;
  states: Record<string, number>;
}

export interface Member {
  role: string;
  name: string;
  state: string;
  version: string;
  page?: string;
  problems?: string[];
  start_ms: number;
  updated_ms: number;
  window_ms: number;
  reports_per_second: number;
  received: number;
  stored: number;
  in_flight: number;
  dropped: number;
  spool_bytes: number;
  partitions: number;
  lag: number;
  late: number;
  duplicates: number;
  conflicts: number;
  rebalances: number;
}

export interface FleetList extends FleetSummary { total: number; members: Member[]; windows: { end_ms: number; missing: string[] }[] }

// What nodes and their interfaces are called.
export interface NameList { nodes: { id: number; name?: string; interfaces?: { id: number; name?: string }[] }[]; sites?: { id: number; name: string }[] }

export interface Found { name: string; detail?: string; address: string }
export interface FoundList { query: string; groups: { kind: string; total: number; hits: Found[]; more?: string }[]; failed?: boolean }

export interface Matrix {
  metric: string;
  unit: string;
  windows: number[];
  reports: number[];
  hops: { id: number; node: string; egress_if: string; values: Maybe[] }[];
  missing?: Record<string, string[]>; // of a fleet: collectors that windows are without, by the window's end
  replaced?: number; // windows before the newest that came again
  range?: Range;
}

export interface HopRow {
  id: number;
  node: string;
  egress_if: string;
  last_ms: number;
  count: Maybe;
  latency_ns: { p50: Maybe; p90: Maybe; p99: Maybe; max: Maybe };
  queue_bytes: { p50: Maybe; p99: Maybe; max: Maybe };
  tx_utilization: Maybe;
  learning?: boolean; // younger than its statistics need
  worst: Maybe;
  trend: Maybe[];
  changes?: Record<string, Maybe>;
}

export interface HopList { sort: string; total: number; recent_windows: number; hops: HopRow[]; range?: Range }

export interface HopSeries { hop: HopRow; windows: number[]; series: Record<string, Maybe[]>; range?: Range }

export interface FlowHop {
  node: string;
  egress_if?: string;
  latency_p50_ns: Maybe;
  latency_p99_ns: Maybe;
  queue_p99_bytes: Maybe;
  latency_p50_error: Maybe;
  latency_p99_error: Maybe;
}

export interface FlowRow {
  key: string;
  packets: number;
  last_ms: number;
  changes: number;
  changed_ms: number;
  before?: string[];
  path: FlowHop[];
  octets?: number; // that the node saw that saw the most
  seen?: FlowSight[]; // by samples and flow records, in no known order
  trend: Maybe[];
  several?: PathRow; // what digests say, where the path is not all there is
}

export interface FlowSight {
  node: string;
  ingress_if?: string;
  egress_if?: string;
  packets: number;
  octets?: number;
  path_delay_mean_ns: Maybe;
  path_delay_min_ns: Maybe;
  path_delay_max_ns: Maybe;
  path_delay_packets?: number;
}

export interface FlowList { range?: Range; total: number; recent_windows: number; flows: FlowRow[] }

export interface FlowSeries {
  flow: FlowRow;
  windows: number[];
  packets: Maybe[];
  positions: { node: string; latency_p50_ns: Maybe[]; latency_p99_ns: Maybe[]; queue_p99_bytes: Maybe[] }[];
  changes: { ms: number; from: string[] | null; to: string[] | null; packets: number }[];
}

export interface PathRow {
  key: string;
  complete: boolean;
  confidence: number;
  digests: number;
  needed: number;
  others: number;
  hops: { node?: string; marked?: boolean; confidence?: number; frequent?: { value: number; least_share: number; most_share: number }[] }[];
  path_value?: { of: string; digests: number; p50: number; p99: number }; // in ns, bytes, or parts of 65536 of a link, by what it is of
  frequent?: "latency" | "queue"; // the quantity of frequent values, in ns or bytes
  sprayed?: boolean; // it uses several paths at once
  share?: number;
  other_paths?: { nodes: string[]; share?: number; confidence: number }[];
  inseparable_paths?: { paths: string[][]; share: number }[];
  unexplained_share?: number;
  unsettled?: boolean; // digests contradict the path
}

export interface PathList { known: number; marked: number; undecided: number; sprayed: number; flows: PathRow[] }

export type Severity = "info" | "warning" | "critical";

export interface Finding {
  id: string; // 16 hexadecimal digits
  kind: string;
  severity: Severity;
  start_ms: number;
  updated_ms: number;
  end_ms: number;
  node?: string;
  egress_if?: string;
  flow?: string;
  exporter?: string;
  hw_id?: string;
  value: number;
  baseline: number;
  text: string;
  headline?: string; // place and figures in one short line; absent from earlier versions
  element?: { kind: string; text: string; node?: number; egress_if?: number; peer?: number; peer_if?: number }; // what has to be looked at
  cause?: string; // id of the finding that explains this one
  evidence?: number; // findings that this one explains
  learning?: boolean;
  resting?: boolean; // its place is as usual at present
  statistic?: string;
}

// Explanation is what helps to judge a finding.
export interface Explanation {
  finding: Finding;
  runbook: string; // path of the page about its kind
  about: { title?: string; text: string }[]; // lines of Markdown
  thresholds: { key: string; value?: string; doc?: string }[];
  unjudged: string[];
  next: { text: string; command?: string; page?: string }[];
}

export interface FindingList { open: Finding[]; ended: Finding[]; range?: Range }

export interface ExporterRow {
  address: string;
  node: string;
  hw_id: string;
  reports: number;
  lost: number;
  duplicated: number;
  reordered: number;
  late: number;
  down: number;
  provisional: number;
  restarts: number;
  malformed: number;
  recent_reports: number;
  recent_lost: number;
  last_ms: number;
  silent: boolean; // says an open finding
  idle: boolean;
  trend: Maybe[];
  changes?: Record<string, Maybe>;
}

export interface NamelessRow {
  exporter: string; // empty for packets of the network
  position: string;
  count: number;
  latency_p50: Maybe;
  latency_p99: Maybe;
  queue_p50: Maybe;
  queue_p99: Maybe;
}

export interface ExporterList {
  range?: Range;
  total: number; recent_windows: number; idle_windows: number; exporters: ExporterRow[];
  hops_without_node_id?: NamelessRow[]; // in the newest window that had some
}

export interface InterfaceRow {
  node: string;
  interface: string;
  speed_bps: number; // 0 where unknown
  tx_utilization: Maybe;
  rx_utilization: Maybe;
  in_packets: Maybe;
  out_packets: Maybe;
  in_errors: Maybe;
  out_errors: Maybe;
  in_discards: Maybe;
  out_discards: Maybe;
  in_octets: Maybe;
  out_octets: Maybe;
  queue_p99_bytes: Maybe;
  last_ms: number;
  changes?: Record<string, Maybe>;
}

export interface InterfaceList { range?: Range; total: number; recent_windows: number; interfaces: InterfaceRow[] }

export interface ProbedRow {
  from: string;
  to: string;
  path: number;
  epoch: number;
  sent: number;
  received: number;
  lost: number; // less than 0 where earlier losses are taken back
  lost_forward: number;
  lost_back: number;
  late: number;
  duplicated: number;
  corrupt: number;
  reordered: number;
  delay_p50_ns: Maybe;
  delay_p99_ns: Maybe;
  judgement?: string;
  last_ms: number;
  changes?: Record<string, Maybe>;
}

export interface ProbedList { range?: Range; total: number; recent_windows: number; paths: ProbedRow[] }

export interface Balance {
  sink: string;
  received: number;
  carried: number;
  stored: number;
  in_flight: Record<string, number>;
  dropped: Record<string, number>;
  unsettled: number;
  points?: PointBalance; // of a store of series
}

export interface PointBalance {
  made: number;
  carried: number;
  stored: number;
  in_flight: Record<string, number>;
  dropped: Record<string, number>;
  refused: number;
  unsettled: number;
}

export interface Ledger { now_ms: number; reports_per_second: number; balances: Balance[]; problems?: string[]; left_out?: string[]; range?: Range }

// Whoami is the user of the page.
export interface Whoami { user: string; role: string; login: string; csrf: string; ends_ms?: number; logins: boolean; session?: string; unchangeable?: string }

export interface Note { by?: string; text?: string; at_ms?: number }

export interface Attention { id: string; alert: string; acknowledged?: Note; muted?: Note; muted_until?: string; mute_element?: string; mute_kind?: string; comments?: Note[] }

export interface AttentionList { alerts: boolean; control: boolean; attention: Attention[]; problem?: string }

export interface Change { number: number; at_ms: number; user: string; role: string; login: string; from?: string; action: string; target?: string; text?: string; failed?: string }

export interface ChangeList { changes: Change[]; more: boolean; kept: number }

export interface Token { id: string; name: string; role: string; created_ms: number; created_by?: string; expires_ms?: number; last_used_ms?: number; last_used_from?: string }

export interface TokenList { most: number; tokens: Token[] }

export interface MadeToken { token: Token; secret: string }

export interface Session { id: string; user: string; role: string; login: string; from: string; began_ms: number; last_used_ms: number; ends_ms: number }

export interface SessionList { most: number; sessions: Session[] }

export interface ControlCommand { command: string; barred?: string; confirm?: string }

export interface ControlState {
  phase: string; why?: string; epoch: number; in_force: number; back: number; paused: boolean; dry_run: boolean; waiting?: number; waiting_why?: string; loads?: string[]; failed?: string[];
  stands_by?: string; not_answering?: string; commands: ControlCommand[];
}

// Refused is thrown for a change that was not made, with the reason.
export class Refused extends Error {}

// NotSignedIn is thrown when the token is missing or was changed.
export class NotSignedIn extends Error {}

// NotFound is thrown for what the server no longer keeps, and for a name in the page's address that is none.
export class NotFound extends Error {}

export async function ask<T>(path: string, query: Record<string, string | number> = {}): Promise<T> {
  const q = new URLSearchParams(Object.entries(query).map(([k, v]) => [k, String(v)])).toString();
  const answer = await fetch(`api/${path}${q ? `?${q}` : ""}`, { headers: { Accept: "application/json" }, credentials: "same-origin" });
  if (answer.status === 401) throw new NotSignedIn();
  if (answer.status === 404 || answer.status === 400) throw new NotFound();
  if (!answer.ok) throw new Error(`${path}: the collector answered ${answer.status}`);
  return (await answer.json()) as T;
}

// change asks for a change, and answers what was done.
export async function change(path: string, body: object): Promise<string> {
  return (await order<{ done?: string }>(path, body)).done ?? "";
}

// order asks for a change, and returns the answer. It asks for the text that a browser has to send with it each time, so that one of an earlier session is never sent.
export async function order<T>(path: string, body: object): Promise<T> {
  const me = await ask<Whoami>("whoami");
  const answer = await fetch(`api/${path}`, { method: "POST", credentials: "same-origin", body: JSON.stringify(body), headers: { "Content-Type": "application/json", "X-CSRF-Token": me.csrf } });
  if (answer.status === 401) throw new NotSignedIn();
  const said = (await answer.json()) as T & { error?: string };
  if (!answer.ok) throw new Refused(said.error ?? `the page answered ${answer.status}`);
  return said;
}
