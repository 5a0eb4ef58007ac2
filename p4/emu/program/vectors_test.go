package program

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/p4"
)

// ports is how many ports of the recorded switch have an interface, beside that of the controller.
const ports = 5

// Whatever packet went into BMv2, with whatever tables: the same frames come out here, bit for bit.
func TestVectors(t *testing.T) {
	for _, name := range p4.Programs {
		replay(t, name, name, func(c string) []string { return []string{c} }, func([]byte) bool { return true })
	}
}

// The one program does what each of the others does, if its tables have their entries. Of srint.p4 these are the probes: it
// forwards other packets without a change of addresses and TTL.
func TestOneProgram(t *testing.T) {
	for _, name := range []string{"intmd", "into", "pint", "srint"} {
		replay(t, "hopscope", name, func(c string) []string { return asHopscope(name, c) }, func(b []byte) bool {
			return name != "srint" || len(b) >= ethLen && get(b, 12) == typeRoute ||
				len(b) >= 42 && get(b, 12) == typeIPv4 && get(b, 20)&0x3fff == 0 && b[23] == protoUDP && get(b, 36) == pathPort
		})
	}
}

// asHopscope turns a command for another program into those for hopscope.p4.
func asHopscope(of, c string) []string {
	w := strings.Fields(c)
	arrow := slices.Index(w, "=>")
	if len(w) < 3 || arrow < 0 && w[1] != "egress.device" && w[1] != "ingress.watch" {
		return []string{c}
	}
	action := w[2][strings.LastIndexByte(w[2], '.')+1:]
	if of == "pint" && w[1] == "ingress.watch" {
		w[1] = "ingress.pint_watch"
		if action == "carry" {
			w[2] = "pint_carry"
		}
	}
	switch w[1] + " " + action {
	case "ingress.forwarding forward", "ingress.forwarding drop":
		return nil
	case "egress.port_mtu set_mtu":
		w[1], w[2] = "egress.egress_port", "to_fabric"
	case "ingress.ingress_port host":
		if len(w) == arrow+2 { // of pint.p4
			w = append(w, "0")
			return []string{strings.Join(w, " "), fmt.Sprintf("table_add ingress.probes discard %s&&&511 3&&&3 0&&&0 0&&&0 => 1", w[3])}
		}
	case "egress.device set_device":
		if len(w) == 4 {
			w = append(w, "0")
		}
	case "egress.egress_port to_fabric":
		if len(w) == arrow+5 {
			loops := fmt.Sprintf("table_add egress.loops report_loops %s => %s", w[3], strings.Join(w[arrow+2:], " "))
			return []string{strings.Join(w[:arrow+2], " "), loops}
		}
	}
	return []string{strings.Join(w, " ")}
}

// replay takes what was recorded of one program through another one, or itself.
func replay(t *testing.T, name, of string, command func(string) []string, chosen func([]byte) bool) {
	t.Helper()
	packets := 0
	for _, g := range recordedGroups(t, of) {
		var commands []string
		for _, c := range g.Commands {
			commands = append(commands, command(c)...)
		}
		switch {
		case name == of:
		case of == "pint":
			commands = append(commands, "table_add ingress.probes follow 0&&&0 3&&&3 0&&&0 0&&&0 => 2")
		case of == "srint":
			commands = append(commands, "table_add ingress.probes follow 0&&&0 0&&&0 0&&&0 0&&&0 => 1")
		}
		s := recordedSwitch(t, name, commands)
		full, lost := strings.HasPrefix(g.Name, "counters of a full queue"), 0
		for _, p := range g.Packets {
			if !chosen(p.In.Bytes) {
				continue
			}
			packets++
			var want, got []Frame
			for _, f := range p.Out {
				want = append(want, Frame{uint16(f.Port), f.Bytes})
			}
			passes := passesOf(s, p)
			for _, f := range framesOf(p) {
				// Frames of a burst have different lengths: one that is not of the next pass was dropped by the queue, behind the ingress.
				next := slices.IndexFunc(passes, func(q Pass) bool { return q.Instance == normal })
				if full && len(p.Behind) > 0 && (next < 0 || int(passes[next].PacketLength) != len(f.Bytes)) {
					if _, _, err := s.Process(f, nil); !errors.Is(err, errPass) {
						t.Errorf("%s, %s, %s: %v, want it in a queue", of, g.Name, p.Name, err)
					}
					lost++
					continue
				}
				var out []Frame
				var err error
				if out, passes, err = s.Process(f, passes); err != nil {
					t.Errorf("%s, %s, %s: %v", of, g.Name, p.Name, err)
				}
				got = append(got, out...)
			}
			got = slices.DeleteFunc(got, func(f Frame) bool { return (f.Port < 1 || f.Port > ports) && f.Port != cpuPort })
			slices.SortStableFunc(got, func(a, b Frame) int { return cmp.Compare(a.Port, b.Port) })
			if !slices.EqualFunc(got, want, func(a, b Frame) bool { return a.Port == b.Port && bytes.Equal(a.Bytes, b.Bytes) }) || len(passes) > 0 {
				t.Errorf("%s, %s, %s: %d passes are left\n got %x\nwant %x", of, g.Name, p.Name, len(passes), got, want)
			}
		}
		if full && lost == 0 {
			t.Errorf("%s, %s: no frame was dropped", of, g.Name)
		}
	}
	if packets < 45 {
		t.Errorf("%s: %d packets", of, packets)
	}
}

// A frame of which the headers alone are in memory comes out with the same headers, and as long, as one that is there whole.
func TestHeads(t *testing.T) {
	for _, name := range p4.Programs {
		cut := 0
		for _, g := range recordedGroups(t, name) {
			whole, headed := recordedSwitch(t, name, g.Commands), recordedSwitch(t, name, g.Commands)
			var p, q Packet
			for _, r := range g.Packets {
				pass := Pass{EgressTime: 5_000_000, IngressTime: 4_000_000, PacketLength: uint32(len(r.In.Bytes)), EnqueueDepth: 9}
				in := uint16(r.In.Port)
				more := whole.Ingress(&p, in, r.In.Bytes, len(r.In.Bytes))
				head := r.In.Bytes[:len(r.In.Bytes)-len(p.payload)]
				cut += min(len(p.payload), 1)
				if got := headed.Ingress(&q, in, head, len(r.In.Bytes)); got != more {
					t.Fatalf("%s, %s, %s: %v, want %v", name, g.Name, r.Name, got, more)
				}
				for more {
					a, b := whole.Egress(&p, &pass), headed.Egress(&q, &pass)
					if a != b || p.Port != q.Port || p.Instance != q.Instance || p.Length != q.Length || len(p.Head) != p.Length || !bytes.HasPrefix(p.Head, q.Head) {
						t.Fatalf("%s, %s, %s: %v, %d bytes by port %d\n got %x\nwant %x", name, g.Name, r.Name, b, q.Length, q.Port, q.Head, p.Head)
					}
					if more = whole.Clone(&p); more != headed.Clone(&q) {
						t.Fatalf("%s, %s, %s: a clone of one of them", name, g.Name, r.Name)
					}
				}
			}
		}
		if cut < 20 {
			t.Errorf("%s: %d frames are cut", name, cut)
		}
	}
}

// No program takes memory for a packet, once it has seen its like.
func TestAllocations(t *testing.T) {
	for _, name := range p4.Programs {
		jobs := recordedJobs(t, name)
		var p Packet
		if n := testing.AllocsPerRun(3, func() {
			for i := range jobs {
				jobs[i].run(&p)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations for %d frames, want 0", name, n, len(jobs))
		}
	}
}

// BenchmarkRecorded takes the recorded frames through their switches.
func BenchmarkRecorded(b *testing.B) {
	for _, name := range p4.Programs {
		b.Run(name, func(b *testing.B) {
			jobs := recordedJobs(b, name)
			var p Packet
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				jobs[i%len(jobs)].run(&p)
			}
		})
	}
}

// job is a recorded frame, with its switch and what that measured.
type job struct {
	s  *Switch
	in Frame
	at [egressClone + 1]Pass
}

func (j *job) run(p *Packet) {
	for more := j.s.Ingress(p, j.in.Port, j.in.Bytes, len(j.in.Bytes)); more; more = j.s.Clone(p) {
		j.s.Egress(p, &j.at[p.Instance])
	}
}

func recordedJobs(t testing.TB, name string) (jobs []job) {
	for _, g := range recordedGroups(t, name) {
		s := recordedSwitch(t, name, g.Commands)
		for _, p := range g.Packets {
			if len(p.Behind) > 0 {
				continue
			}
			j := job{s: s, in: framesOf(p)[0]}
			for _, pass := range passesOf(s, p) {
				j.at[pass.Instance] = pass
			}
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// recordedGroups are those of a program.
func recordedGroups(t testing.TB, name string) []*p4.Group {
	t.Helper()
	file, err := p4.Recorded(name)
	if err != nil {
		t.Fatal(err)
	}
	return file.Groups
}

func framesOf(p *p4.Packet) (list []Frame) {
	for _, f := range append([]p4.Frame{p.In}, p.Behind...) {
		list = append(list, Frame{uint16(f.Port), f.Bytes})
	}
	return list
}

func passesOf(s *Switch, p *p4.Packet) (passes []Pass) {
	for _, q := range p.Passes {
		pass := Pass{
			Instance: q.Instance, IngressPort: q.IngressPort, EgressPort: q.EgressPort, PacketLength: q.PacketLength, IngressTime: q.Ingress,
			EgressTime: q.Egress, EnqueueTime: q.Enqueued, EnqueueDepth: q.EnqueueDepth, QueueDelay: q.Queue, DequeueDepth: q.DequeueDepth,
		}
		if q.Instance == ingressClone && len(p.Out) > 0 { // only its report shows when the packet came
			pass.IngressTime = (be.Uint64(p.Out[0].Bytes[66:]) - s.device.Find(nil).Arg(1)) / 1000
		}
		passes = append(passes, pass)
	}
	return passes
}

func recordedSwitch(t testing.TB, name string, commands []string) *Switch {
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
