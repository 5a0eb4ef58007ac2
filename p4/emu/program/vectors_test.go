package program

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/p4"
)

// ports is how many ports of the recorded switch have an interface.
const ports = 5

// Whatever packet went into BMv2, with whatever tables: the same frames come out here, bit for bit.
func TestVectors(t *testing.T) {
	for _, name := range p4.Programs {
		file, err := p4.Recorded(name)
		if err != nil {
			t.Fatal(err)
		}
		packets := 0
		for _, g := range file.Groups {
			s := recordedSwitch(t, name, g.Commands)
			for _, p := range g.Packets {
				packets++
				var want, got []Frame
				for _, f := range p.Out {
					want = append(want, Frame{uint16(f.Port), f.Bytes})
				}
				var passes []Pass
				for _, q := range p.Passes {
					pass := Pass{
						Instance: q.Instance, IngressPort: q.IngressPort, EgressPort: q.EgressPort, PacketLength: q.PacketLength, IngressTime: q.Ingress,
						EgressTime: q.Egress, EnqueueTime: q.Enqueued, EnqueueDepth: q.EnqueueDepth, QueueDelay: q.Queue, DequeueDepth: q.DequeueDepth,
					}
					if q.Instance == ingressClone && len(want) > 0 { // only its report shows when the packet came
						_, d := s.find("egress.device")
						pass.IngressTime = (be.Uint64(want[0].Bytes[66:]) - d[1].Uint64()) / 1000
					}
					passes = append(passes, pass)
				}
				for _, f := range append([]p4.Frame{p.In}, p.Behind...) {
					var out []Frame
					if out, passes, err = s.Process(Frame{uint16(f.Port), f.Bytes}, passes); err != nil {
						t.Errorf("%s, %s, %s: %v", name, g.Name, p.Name, err)
					}
					got = append(got, out...)
				}
				got = slices.DeleteFunc(got, func(f Frame) bool { return f.Port < 1 || f.Port > ports })
				slices.SortStableFunc(got, func(a, b Frame) int { return cmp.Compare(a.Port, b.Port) })
				if !slices.EqualFunc(got, want, func(a, b Frame) bool { return a.Port == b.Port && bytes.Equal(a.Bytes, b.Bytes) }) || len(passes) > 0 {
					t.Errorf("%s, %s, %s: %d passes are left\n got %x\nwant %x", name, g.Name, p.Name, len(passes), got, want)
				}
			}
		}
		if packets < 50 {
			t.Errorf("%s: %d packets", name, packets)
		}
	}
}

func recordedSwitch(t *testing.T, name string, commands []string) *Switch {
	t.Helper()
	s := newSwitch(t, name)
	for _, c := range commands {
		var err error
		switch list, logarithms := strings.CutPrefix(c, "# logarithms: "); {
		case logarithms:
			err = s.Logarithms(strings.Fields(list)...)
		case strings.HasPrefix(c, "set_queue"): // what it changes is in the passes
		default:
			err = s.Command(c)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}
