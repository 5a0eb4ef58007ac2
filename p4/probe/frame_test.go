package probe

import (
	"bytes"
	"encoding/hex"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/packet"
)

var testEnds = Ends{
	ToMAC: packet.MAC{2, 0, 0, 0, 0, 2}, FromMAC: packet.MAC{2, 0, 0, 0, 0, 1},
	From: netip.MustParseAddr("10.0.0.1"), To: netip.MustParseAddr("10.0.0.2"), Mark: 27,
}

// onePlan is a plan of one probe.
func onePlan(d Dialect, detailed bool, route ...int) *Plan {
	p := &Plan{Epoch: 7, Dialect: d, Probes: []Probe{{ID: "p1", Route: route, Interval: time.Second, Detailed: detailed, Agent: "a", Collector: "a"}}}
	p.Basic, p.Detailed = d.Bitmaps()
	return p
}

func template(t testing.TB, p *Plan, number uint32) *Template {
	t.Helper()
	x, err := NewTemplate(p, &p.Probes[0], number, &testEnds)
	if err != nil {
		t.Fatal(err)
	}
	return &x
}

// TestFrame compares a probe with the bytes that were put together by hand.
func TestFrame(t *testing.T) {
	want := strings.Join([]string{
		"020000000002 020000000001 0700",                       // Ethernet
		"0006 0003 0002 0800",                                  // a route of 6 bytes: ports 3 and 2, then IPv4
		"456c 0044 0000 4000 4011 263b 0a000001 0a000002",      // DSCP 27, 68 bytes, DF, TTL 64, UDP
		"c005 4568 0030 0000",                                  // from 49152 + 5 to 17768, 48 bytes, no checksum
		"1403 4569",                                            // INT-MD, NPT 1, 3 words, original port 17769
		"28000402 f000 0000 0000 0000",                         // version 2, D, 4 words a hop, 2 hops, bitmap
		"48505242 00000005 00000007 00000000 00000000499602d2", // HPRB, number, epoch, round, time
	}, "")
	b, err := hex.DecodeString(strings.ReplaceAll(want, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	x := template(t, onePlan(INT21, false, 3, 2), 5)
	got := x.AppendFrame(nil, 1234567890)
	if !bytes.Equal(got, b) {
		t.Errorf("the frame is\n%x, want\n%x", got, b)
	}
	if len(got) != frameLen(2) || len(got) != x.Len() {
		t.Errorf("%d bytes, and frameLen says %d", len(got), frameLen(2))
	}
	second := x.AppendFrame(nil, 1234567890)
	if bytes.Equal(got, second) || !bytes.Equal(got[:len(got)-12], second[:len(got)-12]) {
		t.Errorf("the second round is\n%x", second)
	}
}

// TestThere sends probes of all kinds over model switches, parses what comes back, and reads the report as a collector does.
func TestThere(t *testing.T) {
	for _, d := range []Dialect{INT21, FANT} {
		for _, detailed := range []bool{false, true} {
			profile := map[Dialect]string{INT21: "auto", FANT: "fant"}[d]
			collector := demux.New(mustProfile(t, profile))
			ps := NewParser(testEnds.Mark)
			for hops := 1; hops <= 11; hops++ {
				route := make([]int, hops)
				for k := range route {
					route[k] = 255 - k
				}
				p := onePlan(d, detailed, route...)
				frame := walk(t, template(t, p, 5).AppendFrame(nil, 42), d, hops)
				var a Arrival
				if why := ps.Parse(&a, frame); why != OK {
					t.Fatalf("%s, detailed %v, %d hops: %v\n%x", d, detailed, hops, why, frame)
				}
				if a.Number != 5 || a.Epoch != 7 || a.Seq != 0 || a.Sent != 42 || a.Hops != hops || a.Source != [4]byte{10, 0, 0, 1} || a.Flags != 0 {
					t.Fatalf("%d hops: %+v", hops, a)
				}
				if got := len(a.Packet); got != PacketLen+p.stackBytes(&p.Probes[0]) {
					t.Fatalf("%d hops: an IP packet of %d bytes, the plan counts %d", hops, got, PacketLen+p.stackBytes(&p.Probes[0]))
				}
				var sent [][]byte
				g := Groups{Node: 9, HWID: 3, Most: 1472, Send: func(b []byte) { sent = append(sent, slices.Clone(b)) }}
				g.Add(&a)
				g.Add(&a)
				g.Flush()
				var batch decode.Batch
				for _, b := range sent {
					collector.Datagram(&batch, decode.AddrFrom(netip.MustParseAddr("10.9.9.9")), b, 0)
				}
				if len(batch.Reports) != 2 {
					t.Fatalf("%s, detailed %v, %d hops: %d reports in %d datagrams", d, detailed, hops, len(batch.Reports), len(sent))
				}
				for _, r := range batch.Reports {
					if err := r.Error(); err != nil {
						t.Fatal(err)
					}
					if r.NodeID != 9 || r.HWID != 3 || len(r.Hops) != hops || r.Flow.SrcPort != FirstPort+5 || r.Flow.DstPort != OriginalPort {
						t.Fatalf("report %+v", r)
					}
					for k, h := range r.Hops {
						if h.NodeID != uint32(100+k) || h.Latency != uint32(1000*(k+1)) {
							t.Fatalf("hop %d of %d is %+v", k, hops, h)
						}
					}
				}
			}
		}
	}
}

func mustProfile(t testing.TB, name string) demux.Profile {
	t.Helper()
	p, ok := demux.Lookup(name)
	if !ok {
		t.Fatalf("no profile %q", name)
	}
	return p
}

// TestTransit: the times in all switches are added up where each reports its own, and none of them is absurd.
func TestTransit(t *testing.T) {
	reported := func(ns uint32) decode.Hop { return decode.Hop{Has: decode.HopLatency, Latency: ns} }
	clocks := func(in, out uint64) decode.Hop {
		return decode.Hop{Has: decode.HopIngressTime | decode.HopEgressTime, TimeBits: 64, IngressTime: in, EgressTime: out}
	}
	const rest = uint32(MostTransit - 13*(1<<32-1))
	for _, c := range []struct {
		hops []decode.Hop
		want uint64
	}{
		{nil, 0}, {[]decode.Hop{reported(5), reported(7)}, 12}, {[]decode.Hop{reported(5), {}}, 0}, {[]decode.Hop{reported(5), clocks(10, 13)}, 8},
		{[]decode.Hop{reported(5), clocks(13, 10)}, 0}, {[]decode.Hop{clocks(0, 10)}, 0}, // a time that was not set
		{[]decode.Hop{clocks(1, 1+MostTransit)}, 0}, // no switch keeps a packet so long
		{append(slices.Repeat([]decode.Hop{reported(1<<32 - 1)}, 13), reported(rest)), MostTransit},
		{append(slices.Repeat([]decode.Hop{reported(1<<32 - 1)}, 13), reported(rest+1)), 0},
		{slices.Repeat([]decode.Hop{reported(1<<32 - 1)}, 14), 0},
	} {
		if ns := transit(c.hops); ns != c.want {
			t.Errorf("%+v: %d ns, want %d", c.hops, ns, c.want)
		}
	}
}

// TestParse cuts a good probe at every byte and changes every byte. No incomplete frame is accepted, and nothing
// panics. Only changes of what a probe states about itself pass.
func TestParse(t *testing.T) {
	good := walk(t, template(t, onePlan(INT21, true, 3, 2, 1), 5).AppendFrame(nil, 42), INT21, 3)
	ps := NewParser(testEnds.Mark)
	var a Arrival
	if why := ps.Parse(&a, good); why != OK {
		t.Fatal(why)
	}
	for n := range good {
		if why := ps.Parse(&a, good[:n]); why == OK {
			t.Errorf("%d of %d bytes are taken for a probe", n, len(good))
		}
	}
	const shim = 14 + 28
	for k := range good {
		bad := bytes.Clone(good)
		bad[k] ^= 0xff
		if why := ps.Parse(&a, bad); why == OK && len(a.Packet) != len(good)-EthernetLen {
			t.Errorf("with byte %d changed it is a probe of %d bytes", k, len(a.Packet))
		}
	}
	for _, c := range []struct {
		name string
		at   int
		to   byte
		want Reason
	}{
		{"mark", 15, 0x04, Corrupt}, {"TCP", 23, 6, Corrupt}, {"fragment", 20, 0x20, Corrupt}, {"port", 37, 0, Foreign}, {"type", 12, 0x48, Corrupt},
		{"shim type", shim, 0x24, BadINT}, {"shim longer", shim + 1, good[shim+1] + 1, BadINT}, {"original port", shim + 3, 0, BadINT},
		{"version", shim + 4, 0x10, BadINT}, {"words a hop", shim + 6, 0, BadINT}, {"magic", len(good) - PayloadLen, 0, BadPayload},
	} {
		bad := bytes.Clone(good)
		bad[c.at] = c.to
		if why := ps.Parse(&a, bad); why != c.want {
			t.Errorf("%s: %v, want %v", c.name, why, c.want)
		}
	}
	if why := ps.Parse(&a, template(t, onePlan(INT21, true, 3), 5).AppendFrame(nil, 42)); why != Unfinished {
		t.Errorf("with a port left on its route: %v", why)
	}
	long := append(bytes.Clone(good), 1, 2, 3) // padding of Ethernet is not the packet's
	if why := ps.Parse(&a, long); why != OK || len(a.Packet) != len(good)-14 {
		t.Errorf("with padding: %v, %d bytes", why, len(a.Packet))
	}
	if n := testing.AllocsPerRun(1000, func() { ps.Parse(&a, good) }); n != 0 {
		t.Errorf("%v allocations a frame, want 0", n)
	}
}

// FuzzParse holds what a probe that was taken promises, whatever came.
func FuzzParse(f *testing.F) {
	for _, d := range []Dialect{INT21, FANT} {
		for _, hops := range []int{0, 1, 5} {
			route := slices.Repeat([]int{1}, max(hops, 1))
			frame := walk(f, template(f, onePlan(d, hops > 1, route...), 5).AppendFrame(nil, 42), d, hops)
			f.Add(frame)
			f.Add(frame[:len(frame)-1])
		}
	}
	ps := NewParser(testEnds.Mark)
	f.Fuzz(func(t *testing.T, b []byte) {
		var a Arrival
		why := ps.Parse(&a, b)
		if why >= NumReasons {
			t.Fatalf("Parse(%x) = %v", b, why)
		}
		if why != OK {
			return
		}
		if len(a.Packet) < PacketLen || len(a.Packet) > len(b)-EthernetLen || a.Hops > 255 || a.Packet[0]>>4 != 4 {
			t.Fatalf("Parse(%x): %+v", b, a)
		}
		sent := 0
		g := Groups{Most: 1400, Send: func(d []byte) {
			if sent += len(d); len(d)%4 != 0 {
				t.Fatalf("a datagram of %d bytes", len(d))
			}
		}}
		g.Add(&a)
		g.Flush()
		if sent < len(a.Packet) {
			t.Fatalf("a report of %d bytes about %d", sent, len(a.Packet))
		}
	})
}

// TestTimetable compares with a table of all starts, computed one by one.
func TestTimetable(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		slots := make([]Slot, 1+r.IntN(8))
		for k := range slots {
			slots[k].Interval = time.Duration(1 + r.IntN(50))
			slots[k].Phase = time.Duration(r.IntN(int(slots[k].Interval)))
		}
		begin := int64(r.IntN(1000))
		tt := NewTimetable(slots, begin)
		for now := begin; now < begin+300; now++ {
			for k, s := range slots {
				if now%int64(s.Interval) != int64(s.Phase) {
					continue
				}
				due, ok := tt.Next()
				if !ok || due != now {
					t.Fatalf("seed %d: at %d next is %d, %v; probe %d is due", seed, now, due, ok, k)
				}
				if probe, at, skipped := tt.Pop(now); probe != k || at != now || skipped != 0 {
					t.Fatalf("seed %d: at %d probe %d (due %d, %d skipped), want %d", seed, now, probe, at, skipped, k)
				}
			}
			if due, _ := tt.Next(); due <= now {
				t.Fatalf("seed %d: at %d something is due at %d that should not be", seed, now, due)
			}
		}
		tt.Restart(begin)
		if due, _ := tt.Next(); due < begin {
			t.Fatalf("seed %d: begun anew at %d, due at %d", seed, begin, due)
		}
	}
	if _, ok := NewTimetable(nil, 0).Next(); ok {
		t.Error("an empty timetable has something to do")
	}
}

// TestTimetableLate stands still for a while: a probe starts once, the starts that are over are counted, and none is twice.
func TestTimetableLate(t *testing.T) {
	tt := NewTimetable([]Slot{{Interval: 10, Phase: 3}}, 0)
	sent, skipped := 0, uint64(0)
	for _, now := range []int64{3, 13, 1000, 1000, 1003, 1013} {
		for {
			due, _ := tt.Next()
			if due > now {
				break
			}
			_, at, n := tt.Pop(now)
			if at%10 != 3 {
				t.Fatalf("due at %d", at)
			}
			sent, skipped = sent+1, skipped+n
		}
	}
	// Every start at 3, 13, 23, ..., 1013 was sent or skipped, and none was sent in an interval that had one already.
	if uint64(sent)+skipped != 102 || sent != 5 {
		t.Errorf("%d sent, %d skipped, want 102 together", sent, skipped)
	}
}

// TestTrack counts against a plain list of what was sent and what came.
func TestTrack(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		tr := NewTrack(1)
		var lost, twice int64
		n := 200 + r.IntN(200)
		var come []uint32
		arrived := map[uint32]bool{}
		for s := range uint32(n) {
			if s == 0 || s == uint32(n-1) || r.IntN(4) > 0 {
				come = append(come, s)
				arrived[s] = true
			}
		}
		distinct := len(come)
		for k := 1; k+1 < len(come); k++ { // neighbours change places, some come again
			if r.IntN(5) == 0 && k+2 < len(come) {
				come[k], come[k+1] = come[k+1], come[k]
			}
		}
		second := int64(0)
		for _, s := range slices.Clone(come[len(come)-20:]) {
			come = append(come, s)
			second++
		}
		for _, s := range come {
			x := tr.See(&Arrival{Number: 1, Epoch: 1, Seq: s})
			lost += x.lost
			if x.Twice {
				twice++
			}
		}
		if lost != int64(n-distinct) || twice != second {
			t.Fatalf("seed %d: %d lost, %d twice, want %d and %d", seed, lost, twice, n-distinct, second)
		}
		if x := tr.See(&Arrival{Number: 2}); !x.Unknown {
			t.Fatal("a second probe is followed where there is room for one")
		}
		if x := tr.See(&Arrival{Number: 1, Epoch: 2, Seq: 9}); x.lost != 0 {
			t.Fatal("a new plan counts what the one before did not send")
		}
		if x := tr.See(&Arrival{Number: 1, Epoch: 1, Seq: 999}); x.lost != 0 || x.Twice {
			t.Fatal("a late packet of the old plan counts in the new one")
		}
	}
}

// TestCheck checks the errors of plans.
func TestCheck(t *testing.T) {
	l := Limits{Name: "a", SendBPS: 1e6, ReceiveBPS: 1e6, Probes: 4, MTU: 1500, ProbesPerSec: 1000}
	for _, c := range []struct {
		name, want string
		change     func(p *Plan)
	}{
		{"good", "", func(*Plan) {}},
		{"no epoch", "the epoch is 0", func(p *Plan) { p.Epoch = 0 }},
		{"dialect", `dialect "x" is neither`, func(p *Plan) { p.Dialect = "x" }},
		{"reserved", "bits that INT 2.1 reserves (0x007e)", func(p *Plan) { p.Detailed = 0xffff }},
		{"no node", "basic bitmap 0x7000 does not ask for the node id", func(p *Plan) { p.Basic = 0x7000 }},
		{"no id", `id "" has not`, func(p *Plan) { p.Probes[0].ID = "" }},
		{"long id", "has not 1 to 253 bytes", func(p *Plan) { p.Probes[0].ID = strings.Repeat("x", 254) }},
		{"long name", "has more than 253 bytes", func(p *Plan) { p.Probes[0].Collector = strings.Repeat("x", 254) }},
		{"twice", `probe "p1" is there twice`, func(p *Plan) { p.Probes = append(p.Probes, p.Probes[0]) }},
		{"no route", `probe "p1": empty path`, func(p *Plan) { p.Probes[0].Route = nil }},
		{"port", "path too long|leaves by port 256", func(p *Plan) { p.Probes[0].Route = []int{256} }},
		{"long route", "17 hops, at most 16", func(p *Plan) { p.Probes[0].Route = make([]int, 17) }},
		{"fast", "interval of 1µs, outside 10µs..24h0m0s", func(p *Plan) { p.Probes[0].Interval = time.Microsecond }},
		{"phase", "phase of 1s: it is from 0 and below the interval 1s", func(p *Plan) { p.Probes[0].Phase = time.Second }},
		{"IPv6", "goes to ::1", func(p *Plan) { p.Probes[0].To = netip.IPv6Loopback() }},
		{"stack", "would gather 1056 bytes over 12 hops", func(p *Plan) {
			p.Dialect, p.Detailed, p.Probes[0].Detailed, p.Probes[0].Route = FANT, 0xffff, true, make([]int, 12)
		}},
		{"send", "agent a would send 1.93", func(p *Plan) { p.Probes[0].Interval = 480 * time.Microsecond; p.Probes[0].Collector = "" }},
		{"receive", "agent a would receive", func(p *Plan) { p.Probes[0].Interval = time.Millisecond; p.Probes[0].Agent = "b" }},
		{"rate", "would send 2000 probes a second", func(p *Plan) { p.Probes[0].Interval = 500 * time.Microsecond }},
		{"other's", "", func(p *Plan) {
			p.Probes[0].Interval = 500 * time.Microsecond
			p.Probes[0].Agent, p.Probes[0].Collector = "b", "c"
		}},
		{"many", "would send 5 probes", func(p *Plan) {
			for _, id := range []string{"2", "3", "4", "5"} {
				x := p.Probes[0]
				x.ID = id
				p.Probes = append(p.Probes, x)
			}
		}},
	} {
		p := onePlan(INT21, false, 1, 2, 3)
		c.change(p)
		_, err := p.Check(&l)
		ok := c.want == "" && err == nil
		for want := range strings.SplitSeq(c.want, "|") {
			ok = ok || want != "" && err != nil && strings.Contains(err.Error(), want)
		}
		if !ok {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	small := l
	small.MTU = 300
	if _, err := onePlan(INT21, true, 1, 2, 3, 4, 5).Check(&small); err == nil || !strings.Contains(err.Error(), "above the MTU of 300") {
		t.Errorf("a probe that grows beyond the MTU: %v", err)
	}
	load, err := onePlan(INT21, true, 1, 2).Check(&l)
	if err != nil || load.Sends != 1 || load.Received != 1 || load.Detailed != 1 || load.longestRoute != 2 ||
		load.SendBPS != 8*(90+24) || load.ReceiveBPS != 8*(82+96+24) {
		t.Errorf("%+v, %v", load, err)
	}
}

// A probe keeps its number from plan to plan, and one that is gone leaves its own unused in the plan that follows.
func TestNumbers(t *testing.T) {
	plan := func(ids ...string) *Plan {
		p := onePlan(INT21, false, 3, 2)
		one := p.Probes[0]
		p.Probes = nil
		for _, id := range ids {
			one.ID = id
			p.Probes = append(p.Probes, one)
		}
		return p
	}
	var numbers map[string]uint32
	for _, step := range []struct {
		ids  []string
		want map[string]uint32
	}{
		{[]string{"a", "b", "c"}, map[string]uint32{"a": 0, "b": 1, "c": 2}},
		{[]string{"d", "c"}, map[string]uint32{"c": 2, "d": 3}},
		{[]string{"d", "c", "e"}, map[string]uint32{"c": 2, "d": 3, "e": 0}},
	} {
		p := plan(step.ids...)
		_, next, err := NewWork(p, "a", &testEnds, numbers)
		if err != nil || !maps.Equal(next, step.want) {
			t.Fatalf("%v have the numbers %v, %v, want %v", step.ids, next, err, step.want)
		}
		numbers = next
	}
}
