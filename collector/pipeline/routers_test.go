package pipeline

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/telemetry"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/ingest"
)

// TestRouters holds that routers on the ways of probes are learnt under their addresses, each once. One that did not
// answer a trace has none.
func TestRouters(t *testing.T) {
	p, _ := newTest(t, Config{Sources: workers(1)}, exporters.DefaultConfig())
	four, six := decode.AddrFrom4([]byte{10, 0, 0, 1}), decode.Addr{0: 0x20, 1: 1, 2: 0xd, 3: 0xb8, 15: 1}
	inner := append([]byte{0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 1, 0, 2, 0x9c, 0x40, 3, 0x5e, 0, 8, 0, 0}, make([]byte, 4)...)
	report := func(seq uint32, way ...decode.Addr) ingest.Frame {
		b := telemetry.Append20(telemetry.AppendGroup(nil, 0, seq, 9), &telemetry.Header{Inner: telemetry.InnerIPv4, Probes: &decode.ProbeCounts{Path: 1, Epoch: 1, Way: way}}, len(inner))
		b = append(b, inner...)
		return ingest.Frame{Data: b, Length: len(b), Link: ingest.LinkUDP, Src: netip.MustParseAddrPort("192.0.2.1:4000"), DstPort: 32766, Time: int64(seq)}
	}
	w := p.workers[0]
	p.Handle(w, []ingest.Frame{report(1, four, decode.Addr{}, six), report(2, six, four)})
	want := []names.Node{{ID: 10<<24 + 1, Name: "10.0.0.1"}, {ID: six.Node(), Name: "2001:db8::1"}}
	if got := p.Learned(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := p.Learned(); len(got) != 0 {
		t.Errorf("a second time: %+v", got)
	}
}
