package pathtrace

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
)

func TestConfig(t *testing.T) {
	scheme := benchScheme(t, 8, 1, false)
	good := func() prior.Config {
		nodes, links := grid(2, 3)
		return prior.Config{Scheme: scheme, Nodes: nodes, Links: links}
	}
	for _, c := range []struct {
		name, want string
		change     func(*prior.Config)
	}{
		{"no scheme", "no coding scheme", func(c *prior.Config) { c.Scheme = nil }},
		{"no nodes", "0 nodes", func(c *prior.Config) { c.Nodes, c.Links = nil, nil }},
		{"same node twice", "node 1000: listed twice", func(c *prior.Config) { c.Nodes[3] = 1000 }},
		{"link to nowhere", "link 1 from node index 0 to 6", func(c *prior.Config) { c.Links[1] = [2]int32{0, 6} }},
		{"end that is no node", "ends 0: node index -1", func(c *prior.Config) { c.Ends = [][]int32{{-1}} }},
		{"routing without links", "routing ecmp without links", func(c *prior.Config) { c.Links, c.Routing = nil, prior.ECMP }},
		{"routing with loops", "shortest paths have none", func(c *prior.Config) { c.Loops, c.Routing = true, prior.Distance }},
		{"unknown routing", "routing(9): unknown", func(c *prior.Config) { c.Routing = 9 }},
		{"confidence", "confidence 1", func(c *prior.Config) { c.Confidence = 1 }},
		{"unmodelled", "unmodelled -1", func(c *prior.Config) { c.Unmodelled = -1 }},
		{"hops", "max hops 65", func(c *prior.Config) { c.MaxHops = 65 }},
		{"window", "window 3", func(c *prior.Config) { c.Window = 3 }},
		{"memory", "memory 1 bytes", func(c *prior.Config) { c.MemoryBytes = 1 }},
		{"work", "work 1", func(c *prior.Config) { c.Work = 1 }},
	} {
		config := good()
		c.change(&config)
		if _, err := prior.NewModel(config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := prior.NewModel(good()); err != nil {
		t.Error(err)
	}
}

// An impossible digest is rejected, counted, and leaves the flow as it was.
func TestRejected(t *testing.T) {
	l := newLab(t, 1, 8, 2, prior.None)
	path := shortestPath(l.r, l.m, -1, 0, 6)
	l.until(Decoded, 400, always(path))
	before, _ := l.tracer.Path(&l.flow, 0, nil)
	for _, c := range []struct {
		hops   int
		digest uint64
		want   Event
	}{
		{0, 0, RejectedHops}, {-1, 0, RejectedHops}, {pint.MaxHops + 1, 0, RejectedHops}, {1 << 40, 0, RejectedHops},
		{6, 1 << 16, RejectedDigest}, {6, 1 << 63, RejectedDigest},
	} {
		if e := l.tracer.Add(&l.flow, 1, c.hops, c.digest); e != c.want {
			t.Errorf("%d hops, digest %#x: %v, want %v", c.hops, c.digest, e, c.want)
		}
	}
	after, _ := l.tracer.Path(&l.flow, 0, nil)
	if !slices.Equal(before.Nodes, after.Nodes) || before.Digests != after.Digests || l.tracer.Stats().Events[RejectedHops] != 4 {
		t.Errorf("rejected digests changed %+v to %+v", before, after)
	}

	m, err := prior.NewModel(prior.Config{Scheme: pint.Tofino(false), Nodes: []uint32{1, 2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	var f Flow
	if e := New(m).Add(&f, 1000, 3, 0); e != RejectedPacket {
		t.Errorf("packet beyond the tables of hashes: %v", e)
	}
}

// A packet id that repeats with its digest is no evidence.
func TestDuplicate(t *testing.T) {
	l := newLab(t, 2, 8, 1, prior.None)
	path := shortestPath(l.r, l.m, -1, 0, 6)
	id := uint32(77)
	digest := l.scheme.Digest(id, path)
	if e := l.tracer.Add(&l.flow, id, 6, digest); e != Pending {
		t.Fatal(e)
	}
	for range 10000 {
		if e := l.tracer.Add(&l.flow, id, 6, digest); e != Duplicate {
			t.Fatal(e)
		}
	}
	l.until(Decoded, 400, always(path))
	l.wantPath(0, path)
}

// A node outside the model is on the path. The published path names the hop, and is marked there.
func TestUnknownNode(t *testing.T) {
	named := 0
	eachLab(t, 30, func(l *lab, round int) {
		path := shortestPath(l.r, l.m, -1, 0, 9)
		path[4] = 1
		for n := range 3000 {
			l.send(path)
			if got, _ := l.tracer.Path(&l.flow, 0, nil); got.Complete && got.Marked == 0 {
				t.Fatalf("seed %d: digest %d: %d is reported without a mark, want %d", l.seed, n, got.Nodes, path)
			}
		}
		d, ok := l.tracer.Deviation(&l.flow, nil)
		if path[4] = 0; ok && d.Wrong == 1<<4 && d.Kind == unknownNode && !d.Named {
			if d.Path[4] = 0; slices.Equal(d.Path, path) {
				named++
			}
		}
	})
	if named < 27 {
		t.Errorf("the hop was named in %d of 30 flows", named)
	}
}

// Memory is bounded, and flows that have some already keep working.
func TestMemory(t *testing.T) {
	l := newLab(t, 3, 8, 2, prior.None)
	c := l.m.Config
	c.MemoryBytes = 1 << 20
	m, err := prior.NewModel(c)
	if err != nil {
		t.Fatal(err)
	}
	l.tracer = New(m)
	path := shortestPath(l.r, l.m, -1, 0, 9)
	flows := make([]Flow, 2000)
	events := map[Event]int{}
	for range 12 {
		for i := range flows {
			id := l.r.Uint32()
			events[l.tracer.Add(&flows[i], id, 9, l.scheme.Digest(id, path))]++
			if b := l.tracer.Stats().Bytes; b > 1<<20 {
				t.Fatalf("%d bytes in use", b)
			}
		}
	}
	if events[RejectedMemory] == 0 || events[Decoded] == 0 {
		t.Fatalf("%v", events)
	}
	for i := range flows {
		l.tracer.Release(&flows[i])
	}
	if s := l.tracer.Stats(); s.Undecided != 0 {
		t.Fatalf("%+v after all flows are released", s)
	}
}

// A million flows with known paths of 59 hops fit into 2 GiB.
func TestKnownFlowSize(t *testing.T) {
	var s slab
	const flows = 10000
	for range flows {
		s.put(59, 1<<30)
	}
	if perFlow := s.bytes/flows + int(unsafe.Sizeof(Flow{})); perFlow > 360 {
		t.Errorf("%d bytes for a flow", perFlow)
	}
}

// With a flow whose path is known no digest allocates; nor do new flows, once others were there.
func TestAllocs(t *testing.T) {
	l := newLab(t, 4, 8, 2, prior.None)
	path := shortestPath(l.r, l.m, -1, 0, 9)
	run := func() {
		var f Flow
		for n := 0; !f.Known() || n < 40; n++ {
			id := l.r.Uint32()
			l.tracer.Add(&f, id, len(path), l.scheme.Digest(id, path))
		}
		l.tracer.Release(&f)
	}
	for range 200 {
		run()
	}
	if n := testing.AllocsPerRun(200, run); n >= 1 {
		t.Errorf("%v allocations per flow", n)
	}
}

// Whatever comes, nothing breaks, and what is known explains the digests that it was verified with.
func FuzzAdd(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 6 {
		b := make([]byte, 8*n+2)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
	nodes, links := grid(3, 4)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 2 {
			return
		}
		c := prior.Config{Scheme: testScheme(t, rand.New(rand.NewPCG(1, 2)), int(b[0])%numTestSchemes), Nodes: nodes, Window: 8, Work: 50, Ends: [][]int32{{0, 1}}}
		switch b[1] % 5 {
		case 0:
			c.Loops = true
		case 2:
			c.Links = links
		case 3:
			c.Links, c.Routing = links, prior.Distance
		case 4:
			c.Links, c.Routing = links, prior.ECMP
		}
		m, err := prior.NewModel(c)
		if err != nil {
			t.Fatal(err)
		}
		tr := New(m)
		flow := Flow{Ingress: uint16(b[1] >> 6), Egress: uint16(b[1] >> 5 & 1)}
		width := c.Scheme.Width() * c.Scheme.Instances()
		for b = b[2:]; len(b) >= 8; b = b[8:] {
			id, hops := uint32(binary.BigEndian.Uint16(b)), int(b[2]%8)
			e := tr.Add(&flow, id, hops, binary.BigEndian.Uint64(b)&(1<<width-1))
			tr.Deviation(&flow, nil)
			s, ok := tr.Path(&flow, 0, nil)
			if s.Complete != flow.Known() || flow.Known() && !ok {
				t.Fatalf("%v: known %v, status %+v", e, flow.Known(), s)
			}
			if e == Verified && (!s.Complete || len(s.Nodes) != hops) {
				t.Fatalf("verified a path of %d hops: %+v", hops, s)
			}
			if b[3] == 7 {
				tr.Candidates(&flow)
			}
		}
		tr.Release(&flow)
		if s := tr.Stats(); s.Undecided != 0 {
			t.Fatalf("%+v", s)
		}
	})
}
