// What a collector without data needs, in the order in which to try it.

import type { Ledger, Status } from "./api";
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
}
