// What a collector without data needs, in the order in which to try it.

import type { FleetSummary, Ledger, Status } from "./api";
import { byId, el, setHidden } from "./dom";
import { plural, whole } from "./format";
import { droppedOf, topDrop, worstBalance } from "./ledger";

const code = (text: string): HTMLElement => el("pre", { tabindex: 0 }, el("code", {}, text));

// port is that of the first UDP source, or the usual one.
function port(status: Status): string {
  const udp = status.sources.find((s) => s.kind === "udp");
  return /:(\d+)$/.exec(udp?.address ?? "")?.[1] ?? "32766";
}

// host is where switches should send to, as far as this page can know.
function host(): string {
  const h = window.location.hostname;
  return /^(localhost|127\.|\[?::1)/.test(h) ? "ADDRESS-OF-THIS-MACHINE" : h;
}

export class EmptyView {
  private readonly box = byId("empty");
  private shown = "";

  set(status: Status, ledger: Ledger, empty: boolean): void {
    setHidden(this.box, !empty);
    setHidden(byId("board"), empty);
    if (!empty) return;
    const balance = worstBalance(ledger.balances);
    const received = balance?.received ?? 0;
    const dropped = balance ? droppedOf(balance) : 0;
    if (status.fleet) {
      this.fleet(status.fleet);
      return;
    }
    const key = JSON.stringify([status.sources.map((s) => [s.kind, s.address, s.detail, s.problem]), received > 0, dropped > 0 && topDrop(balance!), status.settings]);
    const count = this.box.querySelector(".empty-count");
    if (count) count.textContent = whole(received);
    if (key === this.shown) return;
    this.shown = key;

    const p = port(status);
    this.box.replaceChildren(
      el("h2", { id: "empty-title" }, received > 0 ? "Datagrams arrive, but nothing can be shown yet" : "No report has arrived yet"),
      received > 0
        ? el("p", { class: "lead" }, el("b", { class: "empty-count" }, whole(received)), " received. ",
          dropped > 0 ? `Most of what was dropped: ${(topDrop(balance!) || "unknown").toLowerCase()}. The loss ledger above has every stage; the decoder's reasons are in /metrics.` : "The first window closes in a moment.")
        : el("p", { class: "lead" }, "The collector is running and listens. This page fills as soon as the first window closes."),
      el("ol", { class: "steps" },
        el("li", {}, el("h3", {}, "It listens here"),
          status.sources.length
            ? el("ul", { class: "sources" }, ...status.sources.map((s) => el("li", {}, el("span", { class: "chip" }, s.kind.toUpperCase()), el("code", {}, s.address),
              s.detail ? el("span", { class: "quiet" }, s.detail) : "", s.problem ? el("span", { class: "bad" }, s.problem) : "")))
            : el("p", { class: "bad" }, "No source is configured. Add one under “sources” in the configuration file and start again."),
          status.sources.some((s) => s.kind === "udp" && /^(127\.|\[::1\]|localhost)/.test(s.address))
            ? el("p", {}, "That is a loopback address: only programs on this machine reach it. Listen on 0.0.0.0 to hear switches.")
            : el("p", { class: "quiet" }, "A firewall on the way must let UDP to that port pass.")),
        el("li", {}, el("h3", {}, "Point a switch at it"),
          el("p", {}, "Set the report destination of your INT sink nodes to this machine. With ONOS:"),
          code(`curl -u USER:PASSWORD -X POST \\\n  -H 'Content-Type: application/json' \\\n  http://ONOS:8181/onos/v1/network/configuration \\\n  -d '{"apps": {"org.onosproject.inbandtelemetry": {\n    "report": {"collectorIp": "${host()}",\n      "collectorPort": ${p},\n      "minFlowHopLatencyChangeNs": 256}}}}'`),
          el("p", { class: "quiet" }, `Other devices call it collector, telemetry or report server. Protocol UDP, port ${p}.`)),
        el("li", {}, el("h3", {}, "Or look at something now"),
          code(`# an emulated network with faults\nhopscope demo\n\n# a capture, through the same pipeline\nhopscope replay FILE.pcap`),
          el("p", { class: "quiet" }, "See whether datagrams reach this machine at all:"),
          code(`tcpdump -ni any -c 5 udp port ${p}`))),
      status.settings.length
        ? el("details", { class: "settings" }, el("summary", {}, `What is configured (${plural(status.settings.length, "setting")})`),
          el("dl", {}, ...status.settings.flatMap((s) => [el("dt", {}, s.name), el("dd", {}, s.value)])))
        : "",
    );
  }

  // fleet says what a fleet without a window needs.
  private fleet(f: FleetSummary): void {
    const key = JSON.stringify([f.problem, f.missing_topics, f.collectors, f.consumers, f.behind > 0]);
    if (key === this.shown) return;
    this.shown = key;
    const topics = (f.missing_topics?.length ?? 0) > 0;
    const [title, lead] = topics ? ["The fleet's topics are not there yet", `Kafka answers, and does not have ${f.missing_topics?.join(", ") ?? ""}.`]
      : f.problem ? ["Kafka cannot be read", f.problem]
      : f.behind > 0 ? ["Reading the last windows", `${plural(f.behind, "record")} are left to read.`]
      : f.collectors === 0 ? ["No collector has joined this fleet yet", "The topics are there, and no collector has written to the roster."]
      : f.consumers === 0 ? ["Collectors send, and no consumer merges", "What they send stays in Kafka until a consumer runs, and is lost when it is older than the topics keep it."]
      : ["No window has been merged yet", "Collectors and consumers are there. The page fills as soon as the first window closes."];
    const done = (yes: boolean, text: string): HTMLElement => el("p", { class: yes ? "quiet" : "" }, text);
    this.box.replaceChildren(
      el("h2", { id: "empty-title" }, title),
      el("p", { class: "lead" }, lead),
      el("ol", { class: "steps" },
        el("li", {}, el("h3", {}, "Topics"),
          done(!topics && !f.problem, topics ? "Create them once:" : f.problem ? "Whether they are there is not known as long as Kafka cannot be read. This checks them:" : "They are there. This checks their settings:"),
          code(topics ? "hopscope kafka topics create --config FILE" : "hopscope kafka topics check --config FILE")),
        el("li", {}, el("h3", {}, "Collectors"),
          done(f.collectors > 0, f.collectors > 0 ? `${plural(f.collectors, "collector")} joined. Each needs this in its settings:` : "Point switches at collectors that have this in their settings:"),
          code("kafka:\n  enabled: true\n  brokers: [BROKER:9092]"),
          code("hopscope collect --config FILE")),
        el("li", {}, el("h3", {}, "Consumers"),
          done(f.consumers > 0, f.consumers > 0 ? `${plural(f.consumers, "consumer")} joined.` : "They merge what collectors send, and write to the stores. One is enough to begin with:"),
          code("hopscope consume --config FILE"))));
  }
}
