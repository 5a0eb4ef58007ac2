package stamp_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/stamp"
)

// fabric is an emulated network of routers that hash by salts of their own, and answer packets that expire.
type fabric struct {
	*emu.Network
	v6    bool
	sent  map[[3]int]int // packets by host, port and TTL
	quiet float64        // share of packets that a router does not answer
	rng   *rand.Rand
}

func newFabric(t testing.TB, topology string, v6 bool, seed uint64) *fabric {
	t.Helper()
	cfg := emu.DefaultConfig()
	cfg.Topology, cfg.HostsPerEdge, cfg.Flows = topology, 1, 0
	n, err := emu.New(cfg, seed)
	if err != nil {
		t.Fatal(err)
	}
	return &fabric{Network: n, v6: v6, sent: map[[3]int]int{}, rng: rand.New(rand.NewPCG(seed, 1))}
}

// address of an interface, or of a host, which comes behind all interfaces.
func (f *fabric) address(n int) netip.Addr {
	if f.v6 {
		return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)})
	}
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
}

func (f *fabric) host(k int) netip.Addr { return f.address(f.Graph().NumInterfaces() + k) }

// trace is what an agent does for one port.
func (f *fabric) trace(from, to int, port uint16) []netip.Addr {
	flow := emu.Flow{From: from, To: to, Proto: 17, SrcPort: port, DstPort: 862, IPv6: f.v6}
	t := stamp.NewTrace(uint32(port), 0)
	for ttls := t.Round(); len(ttls) > 0; ttls = t.Round() {
		for _, ttl := range ttls {
			f.sent[[3]int{from*f.NumHosts() + to, int(port), ttl}]++
			if iface, ok := f.Expire(&flow, ttl); ok && f.rng.Float64() >= f.quiet {
				t.Observe(t.AppendPayload(nil, ttl), f.address(iface))
			}
		}
	}
	return t.Hops()
}

// survey traces so many ports between every two hosts.
func (f *fabric) survey(ports int) (ways []stamp.Way) {
	for from := range f.NumHosts() {
		for to := range f.NumHosts() {
			for port := range uint16(ports) {
				if from != to {
					ways = append(ways, stamp.Way{From: f.host(from), To: f.host(to), Port: 49152 + port, Hops: f.trace(from, to, 49152+port)})
				}
			}
		}
	}
	return ways
}

// TestSweep finds ways over fabrics that hash with salts. It chooses ports whose ways have all links of the fabric, in
// both directions, with few more than the bound. No port and hop has more than 64 packets.
func TestWays(t *testing.T) {
	for _, c := range []struct {
		topology    string
		ports       int
		links, most int // between switches, in both directions; ways
	}{{"leaf-spine:8,16", 4, 256, 132}, {"fat-tree:8", 4, 512, 141}} {
		for _, v6 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, IPv6 %v", c.topology, v6), func(t *testing.T) {
				f := newFabric(t, c.topology, v6, 1)
				f.quiet = .02
				ways := f.survey(c.ports)
				links, of, unknown := stamp.Links(ways, stamp.ByInterface)
				p := stamp.Choose(ways, stamp.ByInterface, false, 100, 1)
				seen := make([]bool, len(links))
				for _, i := range p.Chosen {
					for _, l := range of[i] {
						seen[l] = true
					}
				}
				for l, ok := range seen {
					if !ok {
						t.Fatalf("link %v is on no chosen way", links[l])
					}
				}
				if fabric := len(links) - 2*f.NumHosts(); fabric != c.links || p.Links != len(links) {
					t.Errorf("%d links between switches, want %d", fabric, c.links)
				}
				most := 0
				for _, n := range f.sent {
					most = max(most, n)
				}
				t.Logf("%d of %d ways, at least %d are needed; %d unknown links; at most %d packets a port and hop", len(p.Chosen), len(ways), p.Bound, unknown, most)
				if len(p.Chosen) > c.most || p.Bound < c.links/(2+2*(c.links/512)) || most > 64 {
					t.Errorf("%d ways are chosen, bound %d, and a port and hop had %d packets", len(p.Chosen), p.Bound, most)
				}
			})
		}
	}
}

// TestResalt changes the hash of one switch: the ports whose ways are others are noticed in the second cycle, and no other one is.
func TestResalt(t *testing.T) {
	f := newFabric(t, "fat-tree:8", false, 3)
	ways := f.survey(1)
	watches := make([]stamp.Watch, len(ways))
	cycle := func() (changed []int) {
		f.quiet = .02
		for i := range watches {
			from, to := i/(f.NumHosts()-1), i%(f.NumHosts()-1)
			if to >= from {
				to++
			}
			if watches[i].Step(f.trace(from, to, ways[i].Port)) {
				changed = append(changed, i)
			}
		}
		return changed
	}
	for n := range 3 {
		if changed := cycle(); len(changed) > 0 {
			t.Fatalf("cycle %d: %d ways changed, and nothing else did", n, len(changed))
		}
	}
	if err := f.Resalt("agg-0-0", 7); err != nil {
		t.Fatal(err)
	}
	f.quiet = 0
	var want []int
	for i, w := range f.survey(1) {
		if !slices.Equal(w.Hops, ways[i].Hops) && !slices.Contains(ways[i].Hops, netip.Addr{}) {
			want = append(want, i)
		}
	}
	first, second := cycle(), cycle()
	if len(first) > 0 || len(want) < 10 {
		t.Errorf("the first cycle shows %d ways, want none; %d are others", len(first), len(want))
	}
	missed := 0
	for _, i := range want {
		if !slices.Contains(second, i) {
			missed++
		}
	}
	if missed > len(want)/10 { // a router that does not answer in one of the two cycles is seen later
		t.Errorf("%d of %d ways that changed are not noticed in two cycles", missed, len(want))
	}
	for _, i := range second {
		if watches[i].Epoch != 2 {
			t.Errorf("way %d is of epoch %d", i, watches[i].Epoch)
		}
	}
}

// TestTrace holds the effect on a trace of answers to foreign packets, of silent routers, and of a known length.
func TestTrace(t *testing.T) {
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	x := stamp.NewTrace(7, 3)
	if got := x.Round(); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("a way of three routers begins with the TTLs %v", got)
	}
	other := stamp.NewTrace(8, 3)
	for _, wrong := range [][]byte{nil, other.AppendPayload(nil, 1), x.AppendPayload(nil, 4), x.AppendPayload(nil, 0), x.AppendPayload(nil, 1)[:5]} {
		if x.Observe(wrong, a) {
			t.Errorf("%x is taken", wrong)
		}
	}
	if !x.Observe(x.AppendPayload(nil, 2), b) || x.Observe(x.AppendPayload(nil, 2), a) {
		t.Error("a router is taken once")
	}
	if got := x.Round(); !slices.Equal(got, []int{1, 3}) {
		t.Errorf("silent routers are asked again: %v", got)
	}
	x.Round()
	if got := x.Round(); got != nil {
		t.Errorf("there are more than %d rounds: %v", stamp.TraceTries, got)
	}
	if got := x.Hops(); len(got) != 3 || got[1] != b || got[0].IsValid() {
		t.Errorf("hops %v", got)
	}
	var w stamp.Watch
	for _, c := range []struct {
		hops    []netip.Addr
		changed bool
	}{{nil, false}, {[]netip.Addr{a, {}}, false}, {[]netip.Addr{a, b}, false}, {[]netip.Addr{b, b}, false}, {[]netip.Addr{a, b}, false}, {[]netip.Addr{b, b}, false}, {[]netip.Addr{b, {}}, true}, {[]netip.Addr{b}, false}, {[]netip.Addr{b}, true}} {
		if w.Step(c.hops) != c.changed {
			t.Errorf("%v: changed is %v", c.hops, !c.changed)
		}
	}
	if w.Epoch != 3 {
		t.Errorf("epoch %d", w.Epoch)
	}
}

// TestLoop has a way that passes a router twice. A link is on a way once, and the choice still has all links and
// distinguishes them.
func TestLoop(t *testing.T) {
	at := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, n}) }
	way := func(hops ...byte) (w stamp.Way) {
		w.From, w.To = at(1), at(2)
		for _, n := range hops {
			w.Hops = append(w.Hops, at(n))
		}
		return w
	}
	for _, answers := range []stamp.AnswersBy{stamp.ByInterface, stamp.ByRouter} {
		ways := []stamp.Way{way(10, 11, 10, 11, 10, 11), way(10, 12), way(13, 11), way(13, 12)}
		links, of, _ := stamp.Links(ways, answers)
		for i := range of {
			for k, l := range of[i] {
				if slices.Contains(of[i][:k], l) {
					t.Errorf("way %d has link %v twice", i, links[l])
				}
			}
		}
		p := stamp.Choose(ways, answers, true, 10, 1)
		for a := range links {
			for b := range a {
				apart := func(list []int32) bool {
					return slices.ContainsFunc(list, func(i int32) bool { return slices.Contains(of[i], int32(a)) != slices.Contains(of[i], int32(b)) })
				}
				if apart([]int32{0, 1, 2, 3}) && !apart(p.Chosen) {
					t.Errorf("links %v and %v are not distinguished by %v", links[a], links[b], p.Chosen)
				}
			}
		}
	}
}
