package probe

import (
	"fmt"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/p4/emu/program"
)

// TestProgram leads probes of both dialects over switches that run p4/srint.p4. They leave by the ports of the route,
// come out as probes, and have the measurements of every switch. A switch without room sets the bit M.
func TestProgram(t *testing.T) {
	for _, d := range []Dialect{INT21, FANT} {
		for _, detailed := range []bool{false, true} {
			p := onePlan(d, detailed, 3, 200, 1, 7)
			frame := template(t, p, 5).AppendFrame(nil, 42)
			for k, port := range p.Probes[0].Route {
				frame = cross(t, frame, k, port, 1500)
			}
			ps, r := NewParser(testEnds.Mark), decode.Report{}
			var a Arrival
			if why := ps.Parse(&a, frame); why != OK || a.Hops != 4 || a.Flags != 0 || len(a.Packet) != PacketLen+p.stackBytes(&p.Probes[0]) {
				t.Fatalf("%s, detailed %v: %v, %+v\n%x", d, detailed, why, a, frame)
			}
			place := intmd.Place{At: 28, IPEnd: len(a.Packet), End: len(a.Packet), ByPort: true}
			intmd.New(intmd.Options{Versions: intmd.V21, Domains: []intmd.Domain{intmd.FANT}}).Decode(&r, a.Packet, &place)
			for k, h := range r.Hops {
				if h.NodeID != uint32(10+k) || h.Latency != uint32(1000*(50+k)) || h.Set(decode.HopEgressTime) != detailed && d == INT21 {
					t.Errorf("%s, detailed %v: hop %d is %+v", d, detailed, k, h)
				}
			}
		}
	}
	p := onePlan(INT21, true, 3, 2)
	frame := template(t, p, 5).AppendFrame(nil, 42)
	frame = cross(t, cross(t, frame, 0, 3, 1500), 1, 2, 150) // the second one has an MTU below what it would send
	var a Arrival
	if why := NewParser(testEnds.Mark).Parse(&a, frame); why != OK || a.Hops != 1 || a.Flags != decode.MTU {
		t.Errorf("%v, %+v", why, a)
	}
}

// cross leads a frame over the k-th switch of a way, and holds that it leaves by a port. Latencies are 50 µs and k.
func cross(t *testing.T, frame []byte, k, port, mtu int) []byte {
	t.Helper()
	s, err := program.New("srint")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{fmt.Sprintf("table_set_default egress.device set_device %d 0", 10+k), fmt.Sprintf("table_set_default egress.port_mtu set_mtu %d", mtu)} {
		if err := s.Command(line); err != nil {
			t.Fatal(err)
		}
	}
	out, _, err := s.Process(program.Frame{Port: 9, Bytes: frame}, []program.Pass{{
		IngressPort: 9, EgressPort: uint16(port), PacketLength: uint32(len(frame)), IngressTime: 1000, EgressTime: uint64(1050 + k), EnqueueTime: 1010, QueueDelay: 20,
	}})
	if err != nil || len(out) != 1 || int(out[0].Port) != port {
		t.Fatalf("switch %d: %v, %d frames\n%x", k, err, len(out), frame)
	}
	return out[0].Bytes
}
