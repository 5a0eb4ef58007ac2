package inference

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is the subject of a finding. The zero value is no kind.
type Kind uint8

// The kinds of findings. A new one is a line here: what it is called wherever people or stores see it, and what it
// means. Names are kept by stores, so they do not change; new kinds come last.
var (
	PathChanged     = newKind("path-change", "a flow takes another path than before, or many flows left the same hop")
	PacketDrops     = newKind("drops", "a node reports that it drops packets")
	ExporterLoss    = newKind("exporter-loss", "reports of an exporter are lost on their way")
	ExporterSilence = newKind("exporter-silence", "an exporter that reported regularly sends nothing any more")
	HighLatency     = newKind("high-latency", "the latency of a hop or of a busy flow, or the time on a link, rose above its own history")
	HighQueue       = newKind("high-queue", "the queue of a hop rose above its own history")
	StrangeDigests  = newKind("strange-digests", "PINT digests of a flow fit no path that is known")
	RoutingLoop     = newKind("routing-loop", "a switch saw a packet of the flow come again")
	InventoryError  = newKind("inventory-error", "PINT digests of several flows say that nodes or links are not what the topology says")
	LowLatency      = newKind("low-latency", "the latency of a hop, or of a busy flow, fell below its own history")
	HighUtilization = newKind("high-utilization", "the utilisation of a hop rose above its own history")
	LowUtilization  = newKind("low-utilization", "the utilisation of a hop fell below its own history")
	StuckValues     = newKind("stuck-values", "what a hop reports stands still, window after window")
	HopSilence      = newKind("hop-silence", "a hop that packets passed in nearly every window is passed by none")
	PacketLoss      = newKind("packet-loss", "a link loses packets that no switch reports as dropped")
	BlackHole       = newKind("black-hole", "packets of one flow vanish on a way that others pass")
	OffPolicy       = newKind("off-policy", "flows take a way that the policy does not allow")

	InterfaceErrors   = newKind("interface-errors", "the counters of an interface say that packets are damaged")
	InterfaceDiscards = newKind("interface-discards", "the counters of an interface say that it discards packets")

	ProbeLoss       = newKind("probe-loss", "probes of agents are lost on a path between two hosts")
	ProbeDelay      = newKind("probe-delay", "the delay of a path between two hosts rose above its own history, by probes of agents")
	ProbeCorruption = newKind("probe-corruption", "probes of agents come damaged on a path between two hosts")
)

// kinds are the names and meanings of all kinds, by their number.
var kinds = []struct{ name, doc string }{{}}

func newKind(name, doc string) Kind {
	kinds = append(kinds, struct{ name, doc string }{name, doc})
	return Kind(len(kinds) - 1)
}

// Kinds returns all kinds of findings.
func Kinds() []Kind {
	all := make([]Kind, 0, len(kinds)-1)
	for k := range kinds[1:] {
		all = append(all, Kind(k+1))
	}
	return all
}

// String returns the name, such as "path-change".
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k].name
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// Doc returns in half a sentence what a finding of the kind means.
func (k Kind) Doc() string {
	if int(k) < len(kinds) {
		return kinds[k].doc
	}
	return ""
}

// ParseKind reads what [Kind.String] writes.
func ParseKind(s string) (Kind, error) { return parseName(s, "kind of finding", Kinds()) }

// Severity orders findings by urgency.
type Severity uint8

// From a notice to an alarm that wakes an operator.
const (
	Info Severity = iota
	Warning
	Critical
)

// Severities returns all severities, the least first.
func Severities() []Severity { return []Severity{Info, Warning, Critical} }

// String returns the name, such as "warning".
func (s Severity) String() string {
	return [...]string{"info", "warning", "critical"}[min(s, Critical)]
}

// ParseSeverity reads what [Severity.String] writes.
func ParseSeverity(s string) (Severity, error) { return parseName(s, "severity", Severities()) }

// parseName finds the one of all that is called s.
func parseName[T fmt.Stringer](s, what string, all []T) (T, error) {
	for _, v := range all {
		if v.String() == s {
			return v, nil
		}
	}
	var none T
	return none, fmt.Errorf("%q is no %s: there are %s", s, what, NameList(all, "and"))
}

// NameList writes the names of all as a part of a sentence, with the given word before the last of them: "info, warning
// or critical".
func NameList[T fmt.Stringer](all []T, last string) string {
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = v.String()
	}
	n := len(names) - 1
	if n < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:n], ", ") + " " + last + " " + names[n]
}
