package inference

import "github.com/hopscope/hopscope/decode"

// Ports of probes: that of INT, and the original one in its shim (docs/agent.md).
const probeINTPort, probePort = 17768, 17769

// ProbeMissing is the drop reason with which an agent reports that a probe did not come to it (docs/agent.md).
const ProbeMissing = 250

// ProbeUnsent is the drop reason with which an agent reports that its own port did not take a probe.
const ProbeUnsent = 249

// The statistics of [PacketDrops] that agents report, of which the value counts probes and not packets that a node dropped.
const (
	MissingProbes = "missing probes"
	UnsentProbes  = "unsent probes"
)

// IsProbe reports whether a flow is of probes of hopscope agent.
func IsProbe(k *decode.FlowKey) bool {
	const udp = 17
	return k.Proto == udp && (k.DstPort == probeINTPort || k.DstPort == probePort)
}

// stampPort is the port by which agents name their sessions of STAMP, whatever that of the reflector is.
const stampPort = 862

// IsSTAMP reports whether a flow is of a session of STAMP of hopscope agent, in its reports of requests without answers.
func IsSTAMP(k *decode.FlowKey) bool {
	const udp = 17
	return k.Proto == udp && k.DstPort == stampPort
}

// ProbesAmong returns how many of the listed flows of a window may be probes with fewer reports than flows left out.
// Probes have few reports, and the control of probes needs their results. Half of the places stay for the busiest
// flows, since any host may send to these ports.
func ProbesAmong(flows int) int { return flows / 2 }

// PreferProbes moves probes before busier flows if not all of them are among the first n. Flows come in the order of
// their reports, and otherwise keep their order. It returns the first n, and the reports of the busiest flow that is
// left out.
func PreferProbes[T any](order []T, n int, key func(T) *decode.FlowKey, packets func(T) uint64) ([]T, uint64) {
	if len(order) <= n {
		return order, 0
	}
	late := 0 // probes that are not among the first n otherwise
	for _, x := range order[n:] {
		if IsProbe(key(x)) {
			late++
		}
	}
	early := 0
	for _, x := range order[:n] {
		if IsProbe(key(x)) {
			early++
		}
	}
	late = max(0, min(late, ProbesAmong(n)-early))
	others := n - late - early // of those that are no probes
	bound := uint64(0)
	kept := order[:0]
	for _, x := range order {
		probe := IsProbe(key(x))
		switch {
		case probe && early+late > 0:
			kept = append(kept, x)
			if early > 0 {
				early--
			} else {
				late--
			}
		case !probe && others > 0:
			kept = append(kept, x)
			others--
		default:
			bound = max(bound, packets(x))
		}
	}
	return kept, bound
}
