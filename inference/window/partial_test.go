package window

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var wide = Limits{Hops: 1e6, Flows: 1e6, Paths: 1e6, Drops: 1e6, Faults: 1e6, Exporters: 1e6, Numbers: 1e6, Arrivals: 1e6, Deviations: 1e6, Losses: 1e6}

func flowKey(n uint32) decode.FlowKey {
	return decode.FlowKey{
		Src: decode.AddrFrom4(binary.BigEndian.AppendUint32(nil, 10<<24|n)), Dst: decode.AddrFrom4([]byte{10, 255, 0, 1}),
		SrcPort: uint16(n), DstPort: 80, Proto: 6, IPVersion: 4,
	}
}

// fill makes a partial of anything of every kind: its keys are from a few, so that several partials have them in common.
func fill(p *Partial, rng *rand.Rand) {
	fillGolden(p, rng)
	fillLosses(p, rng)
	fillSpreads(p, rng)
	fillLinks(p, rng)
	fillStrays(p, rng)
	fillBuckets(p, rng)
	fillInterfaces(p, rng)
	fillSights(p, rng)
	fillNameless(p, rng)
	fillOctets(p, rng)
	fillNode0(p, rng)
	fillGaps(p, rng)
	fillCounts(p, rng)
	fillProbes(p, rng)
}

// fillGolden makes a partial of the kinds that there were when the golden files were written.
func fillGolden(p *Partial, rng *rand.Rand) {
	key := func() inference.HopKey {
		return inference.HopKey{Node: uint32(rng.IntN(9)) * rng.Uint32N(1<<29), EgressIf: uint32(rng.IntN(4)), Other: rng.IntN(30) == 0}
	}
	path := func() (out []inference.HopKey) {
		for range rng.IntN(6) {
			out = append(out, key())
		}
		return out
	}
	sketch := func(s *HopSketch) {
		for range rng.IntN(200) {
			s.Latency.AddValue(rng.Uint64() >> rng.IntN(64))
			s.Queue.AddValue(rng.Uint64N(3000))
		}
	}
	at := func() int64 { return 1e18 + rng.Int64N(20) }
	p.Reset()
	p.Span(1e18-rng.Int64N(3), 1e18+1e10)
	p.Reports, p.FlowCount, p.FlowBound = rng.Uint64N(1e6), rng.Uint64N(1000), uint64(rng.IntN(10))
	p.OtherHops, p.OtherPaths, p.OtherDrops, p.OtherFlows = rng.Uint64N(3), rng.Uint64N(3), rng.Uint64N(3), rng.Uint64N(3)
	for range rng.IntN(20) {
		k := key()
		if k.Other {
			k = inference.HopKey{Other: true}
		}
		h := p.Hop(k)
		sketch(&h.HopSketch)
		if h.NoLatency += rng.Uint64N(3); rng.IntN(2) == 0 {
			h.Utilization, h.HasUtilization = max(h.Utilization, rng.Float64()), true
		}
	}
	for range rng.IntN(10) {
		f := FlowPart{Key: flowKey(rng.Uint32N(8)), Packets: 1 + rng.Uint64N(100), PathID: rng.Uint64N(3), Changes: rng.Uint32N(3),
			Partial: rng.IntN(2) == 0, Last: at(), Path: path()}
		for _, k := range f.Path {
			sketch(f.Hop(k))
		}
		p.AddFlow(&f)
	}
	for range rng.IntN(10) {
		p.AddPath(&inference.PathChange{Time: at(), Flow: flowKey(rng.Uint32N(3)), From: path(), To: path(), PathID: rng.Uint64(), Changes: rng.Uint32N(2), Packets: rng.Uint64N(9)})
	}
	for range rng.IntN(10) {
		first := at()
		p.AddDrops(&inference.DropStats{Node: rng.Uint32N(3), Reason: uint8(rng.IntN(3)), Count: 1, Last: at(), Flow: flowKey(rng.Uint32N(9))})
		p.AddFault(&inference.DigestFault{Flow: flowKey(rng.Uint32N(4)), Fault: inference.Fault(rng.IntN(2)), Node: rng.Uint32N(5), Count: 2, First: first, Last: max(first, at())})
		p.AddExporters([]inference.ExporterStats{{ExporterKey: inference.ExporterKey{Node: rng.Uint32N(4), HWID: uint8(rng.IntN(2))}, Reports: rng.Uint64N(9), Events: 1,
			Lost: rng.Int64N(9) - 4, Duplicated: 1, Reordered: 2, Restarts: 3, Malformed: 4, Provisional: 5, Late: 6, Down: 7, Last: at(), Sequenced: rng.IntN(2) == 0}})
	}
	for range rng.IntN(6) {
		n := Numbers{ExporterKey: inference.ExporterKey{Node: rng.Uint32N(4)}, To: rng.Uint64N(2), Width: 22, Part: rng.Uint32N(2), Anew: rng.IntN(2) == 0,
			Unknown: rng.IntN(5) == 0, First: rng.Uint32N(1 << 22)}
		for at := uint64(0); !n.Unknown && (at == 0 || rng.IntN(4) > 0); {
			r := Run{First: at, Last: at + rng.Uint64N(1000)}
			if r.Count = r.Last - r.First + 1; r.Count > 2 && rng.IntN(3) == 0 {
				r.Count = 2 + rng.Uint64N(r.Count-2)
			}
			n.Runs = append(n.Runs, r)
			at = r.Last + 2 + rng.Uint64N(9)
		}
		p.AddNumbers(&n)
		p.AddArrival(&Arrival{Time: at(), Flow: flowKey(rng.Uint32N(3)), PathID: rng.Uint64N(3), Changes: rng.Uint32N(2), Path: path()})
		p.OtherArrivals += rng.Uint64N(3)
	}
	for range rng.IntN(6) {
		d := inference.Deviation{Flow: flowKey(rng.Uint32N(9)), Ingress: rng.Uint32(), Digests: rng.Uint64N(99), Last: at()}
		for node := range rng.Uint32N(4) {
			d.Errors = append(d.Errors, inference.MapError{Kind: inference.MapErrorKind(rng.IntN(int(inference.NumMapErrors))), Node: node, A: rng.Uint32N(5), B: rng.Uint32()})
		}
		slices.SortFunc(d.Errors, inference.MapError.Compare)
		p.AddDeviation(&d)
	}
}

func encode(t testing.TB, p *Partial) []byte {
	t.Helper()
	b, err := p.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func read(t testing.TB, b []byte) *Partial {
	t.Helper()
	p := &Partial{}
	if err := p.ReadBinary(b, wide); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestMergeOrder merges the same partials in random trees, some of them by their bytes: bytes and window are always the
// same.
func TestMergeOrder(t *testing.T) {
	keep := Limits{Flows: 5, Paths: 7, Drops: 4, Faults: 3, Deviations: 4}
	for seed := range uint64(testkit.Rounds(30, 30)) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var parts [][]byte
		var all Partial
		for range 1 + rng.IntN(8) {
			var p Partial
			fill(&p, rng)
			parts = append(parts, encode(t, &p))
			all.Merge(&p)
		}
		want, window := encode(t, &all), all.Window(keep)
		for range 3 {
			var tree []*Partial
			for _, b := range parts {
				tree = append(tree, read(t, b))
			}
			for len(tree) > 1 {
				rng.Shuffle(len(tree), func(i, j int) { tree[i], tree[j] = tree[j], tree[i] })
				n := len(tree) - 1
				if tree[0].Merge(tree[n]); rng.IntN(3) == 0 {
					tree[0] = read(t, encode(t, tree[0]))
				}
				tree = tree[:n]
			}
			if got := encode(t, tree[0]); !bytes.Equal(got, want) {
				t.Fatalf("seed %d: %d partials in another order have other bytes", seed, len(parts))
			}
			if got := tree[0].Window(keep); !reflect.DeepEqual(got, window) {
				t.Fatalf("seed %d: window\n%+v\nwant\n%+v", seed, got, window)
			}
		}
		if len(window.Paths) > 7 || len(window.Flows) > 5 || len(window.Drops) > 4 || len(window.Digests) > 3 {
			t.Fatalf("seed %d: window is not within its limits: %+v", seed, window)
		}
	}
}

// TestPartialReset: what is left of one window is not in the next.
func TestPartialReset(t *testing.T) {
	var used Partial
	for seed := range uint64(50) {
		var fresh Partial
		fill(&fresh, rand.New(rand.NewPCG(seed, 8)))
		fill(&used, rand.New(rand.NewPCG(seed, 8))) // after a Reset
		if !bytes.Equal(encode(t, &used), encode(t, &fresh)) {
			t.Fatalf("seed %d: a partial that was used before differs", seed)
		}
	}
}

// TestWindowIsACopy holds that a window stays what it was when the partial it was made of is used again.
func TestWindowIsACopy(t *testing.T) {
	var p, same Partial
	fill(&p, rand.New(rand.NewPCG(1, 9)))
	fill(&same, rand.New(rand.NewPCG(1, 9)))
	got, want := p.Window(wide), same.Window(wide)
	for seed := range uint64(20) {
		fill(&p, rand.New(rand.NewPCG(seed+2, 9)))
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the window changed with the partial:\n%+v\nwant\n%+v", got, want)
	}
}

// TestWindowLists: lists that overflow keep what came first, and count the rest.
func TestWindowLists(t *testing.T) {
	var p Partial
	for i := range 10 {
		at := int64(100 - i)
		p.AddDrops(&inference.DropStats{Node: uint32(i), Count: 2, Last: at, Flow: flowKey(1)})
		p.AddFault(&inference.DigestFault{Flow: flowKey(uint32(i)), Count: 3, First: at, Last: at})
		p.AddPath(&inference.PathChange{Time: at, Flow: flowKey(uint32(i))})
		p.AddFlow(&FlowPart{Key: flowKey(uint32(i)), Packets: uint64(i/3 + 1)})
	}
	w := p.Window(Limits{Flows: 2, Paths: 3, Drops: 1, Faults: 4})
	if len(w.Drops) != 1 || w.Drops[0].Node != 0 || w.OtherDrops != 18 {
		t.Errorf("drops %+v and %d", w.Drops, w.OtherDrops)
	}
	if len(w.Digests) != 4 || w.Digests[0].Flow != flowKey(6) || w.OtherFlows != 18 {
		t.Errorf("faults %+v and %d", w.Digests, w.OtherFlows)
	}
	if len(w.Paths) != 3 || w.Paths[0].Time != 91 || w.Paths[2].Time != 93 || w.OtherPaths != 7 {
		t.Errorf("path changes %+v and %d", w.Paths, w.OtherPaths)
	}
	if len(w.Flows) != 2 || w.Flows[0].Key != flowKey(9) || w.Flows[1].Key != flowKey(6) || w.FlowBound != 3 {
		t.Errorf("flows %+v, others with up to %d reports", w.Flows, w.FlowBound)
	}
}

// TestGolden reads what each version wrote, and writes the same as the last one again.
func TestGolden(t *testing.T) {
	const file = "testdata/partial-v3.bin"
	var p Partial
	fillGolden(&p, rand.New(rand.NewPCG(2026, 1)))
	h := p.Hop(inference.HopKey{Node: 7, EgressIf: 1})
	h.Latency.AddN(100, math.MaxUint32+5) // a counter that stopped
	goldenDeviations(t, &p)
	p.deviations.items = p.deviations.items[:0]
	want := encode(t, &p)
	if len(p.numbers.items) < 2 || len(p.arrivals.items) < 2 {
		t.Fatalf("%d numbers and %d arrivals, want some", len(p.numbers.items), len(p.arrivals.items))
	}
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes are written other than version 3 wrote them (%d bytes)", len(want), len(got))
	}
	q := read(t, got)
	if !reflect.DeepEqual(q.Window(wide), p.Window(wide)) || !slices.EqualFunc(q.numbers.items, sortedNumbers(&p), func(a, b Numbers) bool { return a.Compare(&b) == 0 }) {
		t.Errorf("version 3 reads as %+v and %+v", q.Window(wide), q.numbers.items)
	}

	old, err := os.ReadFile("testdata/partial-v2.bin")
	if err != nil {
		t.Fatal(err)
	}
	p.DropAcross() // of which version 2 knew nothing
	if q := read(t, old); !reflect.DeepEqual(q.Window(wide), p.Window(wide)) || !bytes.Equal(encode(t, q), encode(t, &p)) {
		t.Errorf("version 2 reads as %+v", q.Window(wide))
	}
}

func sortedNumbers(p *Partial) (out []Numbers) {
	for _, i := range sorted(&p.order, p.numbers.items, (*Numbers).Compare) {
		out = append(out, p.numbers.items[i])
	}
	return out
}

// TestNumbers: what is listed of an exporter's numbers has limits when it is read, and no bytes that are not as they
// are written.
func TestNumbers(t *testing.T) {
	run := func(first, last, count uint64) Run { return Run{first, last, count} }
	for name, tt := range map[string]struct {
		n  Numbers
		ok bool
	}{
		"one run":               {Numbers{Width: 22, First: 1<<22 - 1, Runs: []Run{run(0, 9, 10)}}, true},
		"one number":            {Numbers{Width: 32, First: 1<<32 - 1, Runs: []Run{run(0, 0, 1)}}, true},
		"runs and some":         {Numbers{Width: 22, Runs: []Run{run(0, 9, 10), run(11, 20, 2), run(30, 1<<22-1, 1<<21)}}, true},
		"unknown":               {Numbers{Width: 22, Unknown: true, First: 7}, true},
		"no runs":               {Numbers{Width: 22}, false},
		"width 0":               {Numbers{Width: 0, Runs: []Run{run(0, 0, 1)}}, false},
		"width 33":              {Numbers{Width: 33, Runs: []Run{run(0, 0, 1)}}, false},
		"first beyond width":    {Numbers{Width: 22, First: 1 << 22, Runs: []Run{run(0, 9, 10)}}, false},
		"longer than the range": {Numbers{Width: 22, Runs: []Run{run(0, 1<<22, 1<<22+1)}}, false},
		"first run not at 0":    {Numbers{Width: 22, Runs: []Run{run(1, 2, 2)}}, false},
		"an end did not come":   {Numbers{Width: 22, Runs: []Run{run(0, 9, 1)}}, false},
	} {
		var p, q Partial
		p.AddNumbers(&tt.n)
		b := encode(t, &p)
		err := q.ReadBinary(b, wide)
		if ok := err == nil; ok != tt.ok {
			t.Errorf("%s: %v", name, err)
		} else if ok && !bytes.Equal(encode(t, &q), b) {
			t.Errorf("%s: read as %+v", name, q.numbers.items)
		}
		if tt.ok && !errors.Is(q.ReadBinary(b, Limits{}), ErrLimit) {
			t.Errorf("%s: the limit is not held", name)
		}
	}
	var p, q Partial
	p.AddArrival(&Arrival{Time: 5, Path: []inference.HopKey{{Node: 1}}})
	p.OtherArrivals = 3
	if b := encode(t, &p); !errors.Is(q.ReadBinary(b, Limits{}), ErrLimit) || q.ReadBinary(b, wide) != nil || !reflect.DeepEqual(q.arrivals.items, p.arrivals.items) || q.OtherArrivals != 3 {
		t.Errorf("arrivals read as %+v", q.arrivals.items)
	}
	const bare = 29 // bytes of a header
	p.DropAcross()
	if b := encode(t, &p); len(b) != bare {
		t.Errorf("a partial without numbers and arrivals has %d bytes, want %d", len(b), bare)
	}
}

// TestWithinAcross: numbers and arrivals beyond the limits are left out, in an order that does not depend on how they
// came.
func TestWithinAcross(t *testing.T) {
	var q, p Partial
	for i := range 10 {
		q.AddArrival(&Arrival{Time: int64(10 - i), Flow: flowKey(1)})
		q.AddNumbers(&Numbers{ExporterKey: inference.ExporterKey{Node: uint32(10 - i)}, Width: 32, Runs: []Run{{0, 0, 1}}})
	}
	p.MergeWithin(&q, Limits{Numbers: 4, Arrivals: 3})
	if len(p.arrivals.items) != 3 || p.arrivals.items[2].Time != 3 || p.OtherArrivals != 7 || len(p.numbers.items) != 4 || p.numbers.items[3].Node != 4 {
		t.Errorf("%+v, %d others, %+v", p.arrivals.items, p.OtherArrivals, p.numbers.items)
	}
}

// TestReadBinary refuses bytes that are cut short or changed, with the offset.
func TestReadBinary(t *testing.T) {
	testkit.Long(t)
	var p, q Partial
	fill(&p, rand.New(rand.NewPCG(3, 1)))
	good := encode(t, &p)
	sections := 0
	for n := range good {
		err := q.ReadBinary(good[:n], wide)
		var at *PartialError
		if err == nil {
			sections++ // cut between two sections: the later ones are empty then
			continue
		}
		if !errors.As(err, &at) || !errors.Is(err, ErrTruncated) || at.Offset > n {
			t.Fatalf("%d of %d bytes: %v", n, len(good), err)
		}
		if !bytes.Equal(encode(t, &q), encode(t, &Partial{})) {
			t.Fatalf("%d of %d bytes: the partial is not empty after %v", n, len(good), err)
		}
	}
	if sections != len(partialKinds)-1 {
		t.Errorf("%d prefixes can be read, want one in front of each section", sections)
	}
	header := func(change func(b []byte)) []byte {
		b := encode(t, &Partial{})
		change(b)
		return b
	}
	section := func(tag byte, body ...byte) []byte {
		b := append(encode(t, &Partial{}), tag)
		return append(binary.LittleEndian.AppendUint32(b, uint32(len(body))), body...)
	}
	const start = 29 // of the first section
	tests := []struct {
		name string
		in   []byte
		want error
		at   int
	}{
		{"another magic", header(func(b []byte) { b[0] = 'X' }), ErrVersion, 0},
		{"a later version", header(func(b []byte) { b[3] = 4 }), ErrVersion, 0},
		{"an older version", header(func(b []byte) { b[3] = 1 }), ErrVersion, 0},
		{"other codes", header(func(b []byte) { b[4] = 2 }), ErrVersion, 4},
		{"a later section", section(99, 1, 2, 3), nil, 0},
		{"a number with a byte too many", section(1, 0x85, 0), ErrCorrupt, start + 5},
		{"a section without items", section(1, 0), ErrCorrupt, start + 6},
		{"a section twice", append(section(99), section(99)[start:]...), ErrCorrupt, start + 5},
		{"section 0", section(0), ErrCorrupt, start},
		{"more than the section has", section(4, 200, 1), ErrTruncated, start + 5},
		{"less than the section has", section(1, 0, 0), ErrCorrupt, start + 6},
		{"hop flags", section(1, 1, 4, 1, 1, 0, 0, 0), ErrCorrupt, start + 6},
		{"hops out of order", section(1, 2, 0, 5, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0), ErrCorrupt, start + 12},
		{"a node beyond 32 bits", section(1, 1, 0, 255, 255, 255, 255, 16, 1, 0, 0, 0), ErrCorrupt, start + 7},
		{"a varint without end", section(1, 1, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0), ErrCorrupt, start + 7},
		{"a code beyond the last", section(1, 1, 0, 1, 1, 1, 255, 127, 0), ErrCorrupt, start + 9},
		{"a counter of 0", section(1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0), ErrCorrupt, start + 11},
		{"runs without a gap", section(1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 0, 0), ErrCorrupt, start + 12},
		{"utilization not a number", section(1, 1, 2, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0xf8, 0x7f), ErrCorrupt, start + 12},
	}
	for _, tt := range tests {
		err := q.ReadBinary(tt.in, wide)
		var e *PartialError
		if !errors.Is(err, tt.want) || tt.want != nil && (!errors.As(err, &e) || e.Offset != tt.at) {
			t.Errorf("%s: %v, want %v at byte %d", tt.name, err, tt.want, tt.at)
		}
	}
	for seed := range uint64(5) { // until there are two of each
		fill(&q, rand.New(rand.NewPCG(seed, 1)))
		p.Merge(&q)
	}
	good = encode(t, &p)
	for i, change := range []func(*Limits){
		func(l *Limits) { l.Hops = 1 }, func(l *Limits) { l.Flows = 1 }, func(l *Limits) { l.Paths = 1 },
		func(l *Limits) { l.Drops = 1 }, func(l *Limits) { l.Faults = 1 }, func(l *Limits) { l.Exporters = 1 },
	} {
		l := wide
		if change(&l); !errors.Is(q.ReadBinary(good, l), ErrLimit) {
			t.Errorf("limit %d is not held", i)
		}
	}
}

// TestReadBinaryMemory holds that memory is in proportion to the bytes that are read, whatever they promise.
func TestReadBinaryMemory(t *testing.T) {
	header := encode(t, &Partial{})
	section := func(tag byte, body []byte) []byte {
		b := append(bytes.Clone(header), tag)
		return append(binary.LittleEndian.AppendUint32(b, uint32(len(body))), body...)
	}
	const n = 1000
	var hops []byte // as small as they can be, with a value each
	for range n {
		hops = append(hops, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0)
	}
	octaves := []byte{1, 0, 1} // a code in every octave
	for range 59 {
		octaves = append(octaves, 1, 31, 1)
	}
	for name, b := range map[string][]byte{
		"small hops":     section(1, append(binary.AppendUvarint(nil, n), hops...)),
		"many octaves":   section(1, append(append([]byte{1, 0, 1, 1}, octaves...), 0, 0, 0)),
		"promised hops":  section(1, append(binary.AppendUvarint(nil, 1e6), make([]byte, 10000)...)),
		"promised flows": section(2, append(binary.AppendUvarint(nil, 1e6), make([]byte, 10000)...)),
		"promised paths": section(3, append(binary.AppendUvarint(nil, 1e6), make([]byte, 10000)...)),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := new(Partial).ReadBinary(b, wide)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > uint64(64<<10+1000*len(b)) {
			t.Errorf("%s: %d bytes took %d bytes of memory, %v", name, len(b), took, err)
		}
	}
}

// checkMergeBinary adds bytes to a partial and compares with reading them and adding what was read.
func checkMergeBinary(t *testing.T, to *Partial, b []byte, limits Limits) error {
	t.Helper()
	var got, want, rest, one Partial
	got.Merge(to)
	want.Merge(to)
	fill(&rest, rand.New(rand.NewPCG(1, 1))) // which is to be forgotten
	err, wantErr := got.MergeBinary(b, limits, &rest), one.ReadBinary(b, limits)
	if !reflect.DeepEqual(err, wantErr) {
		t.Fatalf("%x: %v, want %v", b, err, wantErr)
	}
	if err != nil {
		if got.Reset(); !bytes.Equal(encode(t, &got), encode(t, &Partial{})) {
			t.Fatalf("%x: the partial has something after it was reset", b)
		}
	} else if want.Merge(&one); !bytes.Equal(encode(t, &got), encode(t, &want)) {
		t.Fatalf("%x was added as another partial than it is read as", b)
	}
	one.hops, one.flows = table[inference.HopKey, HopPart]{}, table[decode.FlowKey, FlowPart]{}
	if !bytes.Equal(encode(t, &rest), encode(t, &one)) {
		t.Fatalf("%x: the rest is another than what is read beside hops and flows", b)
	}
	return err
}

// TestMergeBinary adds partials by their bytes, of which some are damaged: the sum or the error is that of reading them
// first.
func TestMergeBinary(t *testing.T) {
	refused := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 8))
		var to, p Partial
		for range rng.IntN(3) {
			fill(&p, rng)
			to.Merge(&p)
		}
		fill(&p, rng)
		b := encode(t, &p)
		switch rng.IntN(4) {
		case 0:
			b = b[:rng.IntN(len(b))]
		case 1:
			for range 1 + rng.IntN(2) {
				b[rng.IntN(len(b))] = []byte{0, 1, 0x7f, 0x80, 0xff}[rng.IntN(5)]
			}
		}
		limits := wide
		if rng.IntN(5) == 0 {
			limits.Hops, limits.Flows = 5, 5
		}
		if checkMergeBinary(t, &to, b, limits) != nil {
			refused++
		}
	}
	if refused < 30 {
		t.Errorf("%d partials were refused, want many", refused)
	}
}

// FuzzReadBinary reads anything. An accepted partial is written and read again as the same, makes a window, and merges.
func FuzzReadBinary(f *testing.F) {
	for seed := range uint64(4) {
		var p Partial
		fill(&p, rand.New(rand.NewPCG(seed, 2)))
		f.Add(encode(f, &p))
	}
	f.Add(encode(f, &Partial{}))
	for _, file := range []string{"testdata/partial-v2.bin", "testdata/partial-v3.bin", "testdata/partial-v3-deviations.bin", "testdata/partial-v3-spreads.bin", "testdata/partial-v3-links.bin", "testdata/partial-v3-strays.bin"} {
		golden, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(golden)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p := &Partial{}
		var e *PartialError
		var some Partial
		fill(&some, rand.New(rand.NewPCG(uint64(len(b)), 3)))
		checkMergeBinary(t, &some, b, wide)
		if err := p.ReadBinary(b, wide); err != nil {
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(b) {
				t.Fatalf("%v in %d bytes", err, len(b))
			}
			return
		}
		first := encode(t, p)
		q := read(t, first)
		if second := encode(t, q); !bytes.Equal(second, first) {
			t.Fatalf("%x was read and written as %x, and then as %x", b, first, second)
		}
		w := p.Window(wide)
		if !reflect.DeepEqual(q.Window(wide), w) {
			t.Fatal("the window is another after a round trip")
		}
		p.Merge(q)
		p.Window(Limits{})
	})
}

// busy is a window of a process in a fleet: 640 hops, and candidates for the busiest flows.
func busy(reports int, seed uint64) *Partial {
	rng := rand.New(rand.NewPCG(seed, 5))
	p := &Partial{}
	p.Span(1e18, 1e18+1e10)
	p.Reports = uint64(reports)
	value := func(mean float64) uint64 { return uint64(mean * rng.ExpFloat64()) }
	for n := range 640 {
		h := p.Hop(inference.HopKey{Node: uint32(n/8) + 1, EgressIf: uint32(n%8) + 1})
		for range reports * 5 / 640 {
			h.Latency.AddValue(500 + value(1000))
			h.Queue.AddValue(80 * value(20))
		}
	}
	for n := range uint32(100) {
		f := FlowPart{Key: flowKey(n + 100*uint32(seed)), Packets: 300, PathID: rng.Uint64(), Last: 1e18 + rng.Int64N(1e10)}
		for i := range 5 {
			k := inference.HopKey{Node: rng.Uint32N(80) + 1, EgressIf: uint32(i) + 1}
			f.Path = append(f.Path, k)
			h := f.Hop(k)
			for range 300 {
				h.Latency.AddValue(500 + value(1000))
				h.Queue.AddValue(80 * value(20))
			}
		}
		p.AddFlow(&f)
	}
	return p
}

func BenchmarkPartial(b *testing.B) {
	var parts []*Partial
	var encoded [][]byte
	for i := range 16 {
		parts = append(parts, busy(2_000_000, uint64(i)))
		encoded = append(encoded, encode(b, parts[i]))
	}
	b.Run("AppendBinary", func(b *testing.B) {
		b.ReportAllocs()
		buf := encoded[0]
		for b.Loop() {
			buf, _ = parts[0].AppendBinary(buf[:0])
		}
		b.ReportMetric(float64(len(buf)), "B")
	})
	b.Run("ReadBinary", func(b *testing.B) {
		b.ReportAllocs()
		var p Partial
		for b.Loop() {
			if err := p.ReadBinary(encoded[1], wide); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Merge16", func(b *testing.B) {
		b.ReportAllocs()
		var all Partial
		for b.Loop() {
			all.Reset()
			for _, p := range parts {
				all.Merge(p)
			}
		}
	})
	b.Run("ReadMergeWindow16", func(b *testing.B) {
		b.ReportAllocs()
		var p, all Partial
		for b.Loop() {
			all.Reset()
			for _, e := range encoded {
				if err := p.ReadBinary(e, wide); err != nil {
					b.Fatal(err)
				}
				all.Merge(&p)
			}
			all.Window(Limits{Flows: 100, Paths: 1000, Drops: 1000, Faults: 1000})
		}
	})
}
