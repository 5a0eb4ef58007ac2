package events

import (
	"net/netip"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// TestProbeMissing: a probe that an agent misses, or could not send, is no packet that a node dropped, and the text
// names the case.
func TestProbeMissing(t *testing.T) {
	probe := decode.FlowKey{Src: decode.AddrFrom(netip.MustParseAddr("10.0.0.1")), Dst: decode.AddrFrom(netip.MustParseAddr("10.0.0.2")), Proto: 17, IPVersion: 4, SrcPort: 49152, DstPort: 17769}
	other, session := probe, probe
	other.DstPort, session.DstPort = 80, 862
	for _, c := range []struct {
		flow   decode.FlowKey
		reason uint8
		want   string
	}{
		{probe, inference.ProbeMissing, "3 probes did not come to the agent with node id 7, the last of 10.0.0.1:49152 > 10.0.0.2:17769 udp"},
		{session, inference.ProbeMissing, "3 probes did not come to the agent with node id 7, the last of 10.0.0.1:49152 > 10.0.0.2:862 udp"},
		{other, inference.ProbeMissing, "node 7 dropped 3 packets for reason 250, the last of 10.0.0.1:49152 > 10.0.0.2:80 udp"},
		{probe, inference.ProbeUnsent, "the port of the agent with node id 7 did not take 3 probes, the last of 10.0.0.1:49152 > 10.0.0.2:17769 udp"},
		{other, inference.ProbeUnsent, "node 7 dropped 3 packets for reason 249, the last of 10.0.0.1:49152 > 10.0.0.2:80 udp"},
		{probe, 80, "node 7 dropped 3 packets for reason 80, the last of 10.0.0.1:49152 > 10.0.0.2:17769 udp"},
	} {
		s := inference.DropStats{Node: 7, Reason: c.reason, Count: 3, Flow: c.flow}
		if text := dropText(&s, 3); text != c.want {
			t.Errorf("%q, want %q", text, c.want)
		}
	}
}
