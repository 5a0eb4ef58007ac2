package plain_test

import (
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	layers "github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/reportjson"
	"github.com/hopscope/hopscope/decode/telemetry"
	"github.com/hopscope/hopscope/internal/plain"
	"github.com/hopscope/hopscope/internal/testkit"
)

var (
	mutations   = flag.Int("mutations", 200000, "mutated frames that TestDifferential gives to both decoders")
	mutationFor = flag.Duration("mutation-time", 0, "how long TestDifferential goes on instead, with a seed of its own")
	seedFlag    = flag.Uint64("mutation-seed", 1, "seed of the mutations")
)

// pair is a profile in both decoders.
type pair struct {
	name  string
	fast  *demux.Decoder
	plain plain.Profile
}

func newPair(t testing.TB, profile string, ports []uint16) *pair {
	t.Helper()
	p, ok := demux.Lookup(profile)
	if !ok {
		t.Fatalf("no profile %s", profile)
	}
	p.Report.PINTDomain = 0 // hopscope's own digests in reports stand on no page that the plain decoder was written from
	p.SFlow = false         // has a plain decoder of its own, which TestSFlow compares
	p.IPFIX = false         // as well, which TestIPFIX compares
	slow := plain.Profiles[profile]
	name := profile
	if ports != nil {
		p.ReportPorts, slow.ReportPorts = ports, ports
		name += fmt.Sprintf(" --report-port %d", ports[0])
	}
	return &pair{name, demux.New(p), slow}
}

// objects returns the results of both decoders for a frame.
func (p *pair) objects(t testing.TB, f plain.Frame) (fast, slow []map[string]any) {
	defer func() {
		if v := recover(); v != nil {
			t.Fatalf("%v\n%s", v, describe(p, f))
		}
	}()
	var b decode.Batch
	p.fast.Frame(&b, f.Link, f.Data, f.Length, f.Time)
	for _, r := range b.Reports {
		o := parse(t, reportjson.Append(nil, f.Number, r))
		delete(o, "inner_flow") // the plain decoder does not print the packet in a tunnel,
		delete(o, "unknown")    // and leaves out what it does not know
		fast = append(fast, o)
	}
	for _, o := range plain.Decode(p.plain, f) {
		slow = append(slow, parse(t, text(t, o)))
	}
	// It does not look for IOAM and IFA behind the headers of tunnels.
	var outer layers.Packet
	outer.Frame(f.Link, f.Data, f.Length)
	if len(slow) == 0 && outer.Inside(f.Data) && !slices.ContainsFunc(fast, func(o map[string]any) bool { return o["format"] != "ioam" && o["format"] != "ifa" }) {
		fast = nil
	}
	return fast, slow
}

// class names what two readings of a frame differ in; it is empty if they are equal.
func class(fast, slow []map[string]any) string {
	for i := range max(len(fast), len(slow)) {
		switch {
		case i >= len(fast):
			return "an object more: " + outline(slow[i])
		case i >= len(slow):
			return "an object less: " + outline(fast[i])
		}
		a, b := fast[i], slow[i]
		if reflect.DeepEqual(a, b) {
			continue
		}
		var keys []string
		for k := range a {
			if !reflect.DeepEqual(a[k], b[k]) {
				keys = append(keys, k)
			}
		}
		for k := range b {
			if _, there := a[k]; !there {
				keys = append(keys, k)
			}
		}
		sort.Strings(keys)
		return strings.Join(keys, " ") + ": " + outline(b) + " plain, " + outline(a) + " fast"
	}
	return ""
}

// outline returns the kind of object o.
func outline(o map[string]any) string {
	s := fmt.Sprint(o["format"], " ", o["version"], " ", o["kind"])
	if flags, ok := o["flags"].([]any); ok && slices.Contains(flags, any("truncated")) {
		s += " truncated"
	}
	if e, ok := o["error"].(map[string]any); ok {
		s += fmt.Sprint(" ", e["field"], " ", e["reason"])
	}
	return s
}

func describe(p *pair, f plain.Frame) string {
	return fmt.Sprintf("profile %s, link %d, %d bytes on the wire, %d captured:\n%s", p.name, f.Link, f.Length, len(f.Data), hex.EncodeToString(f.Data))
}

// shrink makes a frame smaller and emptier as long as the decoders differ in the same way.
func shrink(t testing.TB, p *pair, f plain.Frame, want string) plain.Frame {
	same := func(g plain.Frame) bool { return class(p.objects(t, g)) == want }
	for n := len(f.Data) / 2; n > 0; n /= 2 {
		for len(f.Data) >= n {
			g := f
			g.Data = f.Data[:len(f.Data)-n]
			if g.Length == len(f.Data) {
				g.Length -= n
			}
			if !same(g) {
				break
			}
			f = g
		}
	}
	for i := range f.Data {
		if f.Data[i] == 0 {
			continue
		}
		g := f
		g.Data = slices.Clone(f.Data)
		if g.Data[i] = 0; same(g) {
			f = g
		}
	}
	return f
}

// difference is one way in which the decoders differ.
type difference struct {
	count int
	index int
	pair  *pair
	frame plain.Frame
	how   []string
}

// seeds are the frames that are mutated: those of all captures, and worked examples of formats without a capture.
func seeds(t testing.TB) (list []struct {
	profile string
	ports   []uint16
	frames  []plain.Frame
}) {
	type seed = struct {
		profile string
		ports   []uint16
		frames  []plain.Frame
	}
	for _, c := range recordings(t) {
		list = append(list, seed{c.profile, c.ports, frames(t, c.file)})
	}
	example := func(names ...string) (b []byte) {
		for _, name := range names {
			more, err := testkit.Vector(name)
			if err != nil {
				t.Fatal(err)
			}
			b = append(b, more...)
		}
		return b
	}
	datagram := func(port int, tos byte, payload []byte) plain.Frame {
		b := make([]byte, 42, 42+len(payload))
		copy(b, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, tos})
		setU16(b, 16, 28+len(payload))
		b[22], b[23] = 64, 17
		copy(b[26:], []byte{10, 0, 1, 1, 10, 0, 2, 2, 0x10, 0x92})
		setU16(b, 36, port)
		setU16(b, 38, 8+len(payload))
		b = append(b, payload...)
		return plain.Frame{Number: 1, Link: 1, Data: b, Length: len(b)}
	}
	inner := func(port int, tos byte, payload []byte) []byte { return datagram(port, tos, payload).Data }
	group := []byte{0x21, 0x40, 1, 0x2c, 0, 0, 0, 0xc3}
	marked := byte(0x17 << 2)
	md := inner(5001, marked, example("int21-cc-2")[8:])
	full := append([]byte{0x13, byte((len(md)+3)/4 + 2 + 1), 1, 0x60, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x30, 0x39}, append(md, make([]byte, (4-len(md)%4)%4)...)...)
	stamped := inner(862, 0, nil)[14:]
	counts := telemetry.Append20(nil, &telemetry.Header{Inner: telemetry.InnerIPv4, Probes: &decode.ProbeCounts{
		Path: 7, Epoch: 2, Sent: 100, Received: 96, Missed: 5, Late: 1, Forward: -2, Back: 6, Delays: []decode.DelayCount{{Code: 16, Count: 9}, {Code: 85, Count: 1}, {Code: 543, Count: 1}},
	}}, len(stamped))
	counts = append(counts, stamped...)
	counts = append(telemetry.Append20(counts, &telemetry.Header{Inner: telemetry.InnerIPv4, Probes: &decode.ProbeCounts{
		Path: 7, Epoch: 2, Way: []decode.Addr{decode.AddrFrom4([]byte{10, 0, 0, 1}), {}, {0: 0x20, 15: 1}},
	}}, len(stamped)), stamped...)
	for _, n := range []decode.ProbeRounds{{End: decode.Sender, Count: 1 << 31, Turn: 4, Next: 100}, {End: decode.Receiver, Count: 5, Turn: 2, First: 1<<32 - 3, Next: 90, Received: 93}} {
		counts = append(telemetry.Append20(counts, &telemetry.Header{Inner: telemetry.InnerIPv4, Probes: &decode.ProbeCounts{Path: 7, Epoch: 2, Rounds: n}}, len(stamped)), stamped...)
	}
	reports := seed{"auto", nil, []plain.Frame{
		datagram(32766, 0, example("tr05-drop")),
		datagram(32766, 0, append(example("tr05-local"), inner(5001, marked, example("int05-udp"))...)),
		datagram(32766, 0, append(example("tr05-ver1"), inner(5001, marked, example("int10-all"))...)),
		datagram(32766, 0, append(example("tr10"), inner(5001, marked, example("int10-all"))[14:]...)),
		datagram(32766, 0, example("tr20-group")),
		datagram(32766, 0, slices.Concat(group, example("tr20-tlv"))),
		datagram(32766, 0, slices.Concat(group, example("tr20-tlv"), full, full)),
		datagram(32766, 0, slices.Concat(group, full, example("tr20-group")[8:])),
		datagram(32766, 0, slices.Concat(group, counts, full)),
	}}
	network := seed{"auto", nil, []plain.Frame{
		datagram(5001, marked, append(example("int05-udp"), 1, 2, 3, 4)),
		datagram(5001, marked, append(example("int10-all"), 1, 2, 3, 4)),
		datagram(5001, marked, example("int21-cc-2")[8:]),
		datagram(17768, 0, append(example("int21-mx"), 1, 2, 3, 4)),
		datagram(17768, 0, append(example("int21-srconly"), example("int10-tcp")[34:]...)),
		{Number: 1, Link: 1, Data: example("int21-udp"), Length: len(example("int21-udp"))},
		{Number: 1, Link: 1, Data: example("int10-tcp"), Length: len(example("int10-tcp"))},
	}}
	fant := seed{"fant", nil, []plain.Frame{
		datagram(5001, marked, append(example("fant-basic"), 1, 2, 3, 4)),
		datagram(5001, marked, append(example("fant-detailed"), 1, 2, 3, 4)),
	}}
	return append(list, reports, network, fant)
}

// unread are the built-in profiles without a plain decoder: no page defines what is printed for them.
var unread = []string{"auto-unflagged", "p4-int-mandaryoshi", "pint-tofino", "pint-hpcc", "sflow", "ipfix"}

// A profile that is added to one decoder is added to the other.
func TestProfiles(t *testing.T) {
	for _, name := range demux.Profiles() {
		if _, ok := plain.Profiles[name]; ok == slices.Contains(unread, name) {
			t.Errorf("profile %s: known to the plain decoder is %v", name, ok)
		}
	}
	for name := range plain.Profiles {
		if !slices.Contains(demux.Profiles(), name) {
			t.Errorf("the plain decoder has a profile %s, which does not exist", name)
		}
	}
}

// Both decoders read the same from all captures and worked examples, and from mutations of them.
func TestDifferential(t *testing.T) {
	all := seeds(t)
	pairs := map[string]*pair{}
	pairOf := func(profile string, ports []uint16) *pair {
		key := fmt.Sprint(profile, ports)
		if pairs[key] == nil {
			pairs[key] = newPair(t, profile, ports)
		}
		return pairs[key]
	}
	names := slices.Sorted(maps.Keys(plain.Profiles))
	found := map[string]*difference{}
	check := func(index int, p *pair, f plain.Frame, how []string) {
		c := class(p.objects(t, f))
		if c == "" {
			return
		}
		c = p.name + ": " + c
		d := found[c]
		if d == nil || len(f.Data) < len(d.frame.Data) {
			n := 0
			if d != nil {
				n = d.count
			}
			d = &difference{n, index, p, f, how}
			found[c] = d
		}
		d.count++
	}
	for _, s := range all {
		for _, f := range s.frames {
			check(-1, pairOf(s.profile, s.ports), f, nil)
		}
	}

	seed, limit := *seedFlag, testkit.Rounds(*mutations, *mutations)
	start := time.Now()
	if *mutationFor > 0 {
		seed = uint64(start.UnixNano())
	}
	i := 0
	for ; *mutationFor > 0 && (i%1024 != 0 || time.Since(start) < *mutationFor) || *mutationFor == 0 && i < limit; i++ {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		s := all[r.IntN(len(all))]
		profile, ports := s.profile, s.ports
		f := s.frames[r.IntN(len(s.frames))]
		if r.IntN(3) == 0 {
			profile, ports = names[r.IntN(len(names))], nil
			p := plain.Profiles[profile]
			f = compose(r, &p)
		}
		f, how := mutate(r, f)
		if r.IntN(5) == 0 {
			profile = names[r.IntN(len(names))]
			if ports = nil; r.IntN(2) == 0 && plain.Profiles[profile].Reports != nil {
				ports = plain.Profiles[s.profile].ReportPorts
			}
		}
		check(i, pairOf(profile, ports), f, how)
	}
	t.Logf("%d mutations of seed %d", i, seed)

	classes := slices.SortedFunc(maps.Keys(found), func(a, b string) int { return found[b].count - found[a].count })
	total := 0
	for i, c := range classes {
		d := found[c]
		total += d.count
		if i >= 40 {
			continue
		}
		_, want, _ := strings.Cut(c, ": ")
		f := shrink(t, d.pair, d.frame, want)
		fast, slow := d.pair.objects(t, f)
		n := 0 // the first object that differs
		for n < min(len(fast), len(slow)) && reflect.DeepEqual(fast[n], slow[n]) {
			n++
		}
		t.Errorf("%d times (mutation %d, %v): %s\n%s\nobject %d, plain: %s\nfast: %s", d.count, d.index, d.how, c, describe(d.pair, f),
			n+1, text(t, slow[min(n, len(slow)):min(n+1, len(slow))]), text(t, fast[min(n, len(fast)):min(n+1, len(fast))]))
	}
	if total > 0 {
		t.Errorf("%d frames that the decoders read differently, in %d classes", total, len(classes))
	}
}
