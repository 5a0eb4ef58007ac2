package window

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/testkit"
)

// probe is the part of a kind's entry that its tests need, whatever the type of its items is.
type probe interface {
	partialKind
	size(*Partial) int
	only(p *Partial)
	limits(n int) Limits
	counts() bool
	listed(w *inference.Window, to *Partial) (left uint64, lists bool)
}

func (k *kindOf[K, V]) size(p *Partial) int { return len(k.in(p).items) }

// only leaves p nothing but the items of the kind.
func (k *kindOf[K, V]) only(p *Partial) {
	items := slices.Clone(k.in(p).items)
	*p = Partial{}
	for i := range items {
		k.put(p, &items[i])
	}
}

// limits are n for the kind, and none for those that have a limit of their own.
func (k *kindOf[K, V]) limits(n int) Limits {
	for i := range reflect.TypeFor[Limits]().NumField() {
		l := NoLimits()
		reflect.ValueOf(&l).Elem().Field(i).SetInt(int64(n))
		if k.limit(&l) == n {
			return l
		}
	}
	return Limits{}
}

func (k *kindOf[K, V]) counts() bool { return k.leave != nil }

// listed adds what a window lists of the kind to a partial, and returns what the window left out.
func (k *kindOf[K, V]) listed(w *inference.Window, to *Partial) (uint64, bool) {
	if k.rows == nil {
		return 0, false
	}
	list, left := k.rows(w)
	for i := range *list {
		k.put(to, &(*list)[i])
	}
	if left == nil {
		return 0, true
	}
	return *left, true
}

// kindTests hold for each kind how to make items, which values add up, and which counter has the sum of those without
// room.
var kindTests = map[partialKind]struct {
	fill    func(*Partial, *rand.Rand)
	sums    func(*Partial) []uint64 // the first is what is counted of items without room
	counter func(*Partial) *uint64  // of it; nil if there is none
	folds   bool                    // items without room are in one that stands for them
}{
	&hopKind: {fillGolden, func(p *Partial) []uint64 {
		var n, none uint64
		for _, h := range p.hops.items {
			n, none = n+h.records(), none+h.NoLatency
		}
		return []uint64{n, none}
	}, nil, true},
	&flowKind: {fillGolden, func(p *Partial) []uint64 {
		var n, latencies uint64
		for _, f := range p.flows.items {
			n += f.Packets
			for _, h := range f.Hops {
				latencies += h.Latency.Count()
			}
		}
		return []uint64{n, latencies}
	}, nil, false},
	&pathKind: {fillGolden, func(p *Partial) []uint64 { return []uint64{uint64(len(p.paths.items))} }, func(p *Partial) *uint64 { return &p.OtherPaths }, false},
	&dropKind: {fillGolden, func(p *Partial) (sum []uint64) {
		var n uint64
		for _, d := range p.drops.items {
			n += d.Count
		}
		return []uint64{n}
	}, func(p *Partial) *uint64 { return &p.OtherDrops }, false},
	&faultKind: {fillGolden, func(p *Partial) (sum []uint64) {
		var n uint64
		for _, d := range p.faults.items {
			n += d.Count
		}
		return []uint64{n}
	}, func(p *Partial) *uint64 { return &p.OtherFlows }, false},
	&exporterKind: {fillGolden, func(p *Partial) []uint64 {
		var e inference.ExporterStats
		for i := range p.exporters.items {
			e.Add(&p.exporters.items[i])
		}
		return []uint64{e.Reports, e.Events, uint64(e.Lost), e.Provisional, e.Duplicated, e.Reordered, e.Late, e.Down, e.Restarts, e.Malformed}
	}, nil, true},
	&gapKind:       {fillGaps, func(p *Partial) []uint64 { return []uint64{uint64(len(p.gaps.items))} }, nil, false},
	&numbersKind:   {fillGolden, func(p *Partial) []uint64 { return []uint64{uint64(len(p.numbers.items))} }, nil, false},
	&arrivalKind:   {fillGolden, func(p *Partial) []uint64 { return []uint64{uint64(len(p.arrivals.items))} }, func(p *Partial) *uint64 { return &p.OtherArrivals }, false},
	&deviationKind: {fillGolden, func(p *Partial) []uint64 { return []uint64{uint64(len(p.deviations.items))} }, nil, false},
	&lossKind: {fillLosses, func(p *Partial) []uint64 {
		var n, lost uint64
		for _, l := range p.losses.items {
			n, lost = n+l.Packets, lost+l.Lost
		}
		return []uint64{n, lost}
	}, nil, false},
	&spreadKind: {fillSpreads, func(p *Partial) []uint64 { return nil }, nil, false},
	&linkKind: {fillLinks, func(p *Partial) []uint64 {
		var n uint64
		for _, l := range p.links.items {
			n += l.Count
		}
		return []uint64{n}
	}, nil, false},
	&bucketKind: {fillBuckets, func(p *Partial) []uint64 {
		var n, open uint64
		for i := range p.buckets.items {
			b := &p.buckets.items[i]
			n, open = n+b.Latency.Low.Count()+b.Queue.Low.Count(), open+b.Latency.Open+b.Queue.Open
		}
		return []uint64{n, open}
	}, nil, false},
	&interfaceKind: {fillInterfaces, func(p *Partial) []uint64 {
		var sum inference.InterfaceStats
		for i := range p.interfaces.items {
			sum.Add(&p.interfaces.items[i])
		}
		return []uint64{sum.Samples, sum.InPackets, sum.OutErrors, sum.OutDiscards}
	}, nil, false},
	&octetKind: {fillOctets, func(p *Partial) (sum []uint64) {
		var c decode.Counters
		for i := range p.octets.items {
			c.Add(&p.octets.items[i].Counters)
		}
		return []uint64{c.InOctets}
	}, nil, false},
	&sentKind: {fillOctets, func(p *Partial) (sum []uint64) {
		var c decode.Counters
		for i := range p.sent.items {
			c.Add(&p.sent.items[i].Counters)
		}
		return []uint64{c.OutOctets}
	}, nil, false},
	&countsKind: {fillCounts, func(p *Partial) (sum []uint64) {
		sum = make([]uint64, 1)
		for i := range p.counts.items {
			sum[0] += p.counts.items[i].Sights
		}
		return sum
	}, nil, false},
	&sightKind: {fillFewSights, func(p *Partial) []uint64 {
		var sum inference.FlowSight
		for i := range p.sights.items {
			for _, s := range p.sights.items[i].Sight[:p.sights.items[i].Count] {
				sum.Add(&s)
			}
		}
		return []uint64{sum.Records, sum.Packets, sum.Octets, sum.Delayed, sum.DelaySum}
	}, nil, false},
	&namelessKind: {fillNameless, func(p *Partial) []uint64 {
		var latencies, queues, none uint64
		for i := range p.nameless.items {
			x := &p.nameless.items[i]
			latencies, queues, none = latencies+x.latency.Count(), queues+x.queue.Count(), none+x.noLatency
		}
		return []uint64{latencies, queues, none}
	}, nil, true},
	&probeKind: {fillProbes, func(p *Partial) []uint64 {
		var sum inference.ProbeStats
		delays := uint64(0)
		for i := range p.probes.items {
			x := &p.probes.items[i]
			sum.Sent, sum.Received, sum.Missed, sum.Late = sum.Sent+x.Sent, sum.Received+x.Received, sum.Missed+x.Missed, sum.Late+x.Late
			sum.Twice, sum.Corrupt, sum.Reordered = sum.Twice+x.Twice, sum.Corrupt+x.Corrupt, sum.Reordered+x.Reordered
			sum.Forward, sum.Back, delays = sum.Forward+x.Forward, sum.Back+x.Back, delays+x.delay.Count()
		}
		return []uint64{sum.Sent, sum.Received, sum.Missed, sum.Late, sum.Twice, sum.Corrupt, sum.Reordered, uint64(sum.Forward), uint64(sum.Back), delays}
	}, nil, true},
	lateKind[inference.ExporterKey, inference.ExporterStats]{&exporterKind}: {fillNode0, func(p *Partial) (sum []uint64) {
		var e inference.ExporterStats
		for i := range p.exporters.items {
			e.Add(&p.exporters.items[i])
		}
		return []uint64{e.Reports, uint64(e.Lost)}
	}, nil, true},
	lateKind[unkeyed, Numbers]{&numbersKind}: {fillNode0, func(p *Partial) []uint64 { return []uint64{uint64(len(p.numbers.items))} }, nil, false},
	&strayKind: {fillStrays, func(p *Partial) []uint64 {
		var n uint64
		for _, x := range p.strays.items {
			n += x.Flows
		}
		return []uint64{n}
	}, nil, false},
}

func fillLosses(p *Partial, rng *rand.Rand) {
	for range rng.IntN(12) {
		l := inference.FlowLoss{Flow: flowKey(rng.Uint32N(8)), Packets: 1 + rng.Uint64N(99)}
		l.Lost = rng.Uint64N(l.Packets)
		for range rng.IntN(3) {
			l.Path = append(l.Path, inference.HopKey{Node: rng.Uint32N(4), EgressIf: rng.Uint32N(2)})
		}
		p.AddLoss(&l)
	}
}

// fillNode0 adds exporters that name the node with the id 0, and their numbers.
func fillNode0(p *Partial, rng *rand.Rand) {
	for range 1 + rng.IntN(5) {
		k := inference.ExporterKey{Addr: decode.Addr{15: byte(1 + rng.IntN(6))}, HWID: uint8(rng.IntN(2))}
		p.AddExporters([]inference.ExporterStats{{ExporterKey: k, Reports: rng.Uint64N(9), Lost: rng.Int64N(9) - 4, Last: p.Start, Sequenced: true}})
		p.AddNumbers(&Numbers{ExporterKey: k, Width: 22, Runs: []Run{{0, 3, 4}}})
	}
}

// someOf makes a partial of one kind, of which it has at least so many items.
func someOf(t *testing.T, k probe, rng *rand.Rand, least int) *Partial {
	t.Helper()
	for range 1000 {
		p := &Partial{}
		kindTests[k].fill(p, rng)
		if k.only(p); k.size(p) >= least {
			return p
		}
	}
	t.Fatal("no partial has enough items")
	return nil
}

func add(a, b []uint64) (sum []uint64) {
	for i := range a {
		sum = append(sum, a[i]+b[i])
	}
	return sum
}

// TestPartialKinds walks the table of kinds, so that none can be left out of anything. Merging commutes, associates and
// adds up. Slices and bytes give the same again. Limits hold and what they leave out is counted, and nothing is left
// after a reset.
func TestPartialKinds(t *testing.T) {
	if len(kindTests) != len(partialKinds)-1 {
		t.Errorf("%d kinds are tested of %d", len(kindTests), len(partialKinds)-1)
	}
	for number, kind := range partialKinds {
		if number == 0 {
			continue
		}
		k := kind.(probe)
		tt, ok := kindTests[kind]
		if !ok {
			t.Errorf("section %d: the kind has no test", number)
			continue
		}
		if k.counts() != (tt.counter != nil || tt.folds || kind == partialKind(&flowKind)) {
			t.Errorf("section %d: the kind counts what it leaves out: %v", number, k.counts())
		}
		for seed := range uint64(testkit.Rounds(40, 160)) {
			rng := rand.New(rand.NewPCG(seed, uint64(number)))
			a, b, c := someOf(t, k, rng, 2), someOf(t, k, rng, 2), someOf(t, k, rng, 2)
			encoded := encode(t, a)
			if got := encoded[len(encode(t, &Partial{Start: a.Start, End: a.End})):][0]; int(got) != number {
				t.Fatalf("section %d: it is written as section %d", number, got)
			}
			merged := func(all ...*Partial) *Partial {
				sum := &Partial{}
				for _, p := range all {
					sum.Merge(p)
				}
				return sum
			}
			all := merged(a, b, c)
			want := encode(t, all)
			for _, other := range []*Partial{merged(c, b, a), merged(b, c, a), merged(a, merged(b, c)), merged(merged(c, a), b)} {
				if !bytes.Equal(encode(t, other), want) {
					t.Fatalf("section %d, seed %d: the order or grouping of merging matters", number, seed)
				}
			}
			if got, sum := tt.sums(all), add(add(tt.sums(a), tt.sums(b)), tt.sums(c)); !slices.Equal(got, sum) {
				t.Fatalf("section %d, seed %d: sums %d, want %d", number, seed, got, sum)
			}
			if !bytes.Equal(encode(t, read(t, want)), want) {
				t.Fatalf("section %d, seed %d: other bytes after a round trip", number, seed)
			}
			slicer := NewSlicer(seed, 5)
			into := []*Partial{{}, {}, {}, {}, {}}
			all.Split(&slicer, into)
			if !bytes.Equal(encode(t, merged(into...)), want) {
				t.Fatalf("section %d, seed %d: the slices are not the whole", number, seed)
			}
			checkLimits(t, k, number, rng, all)
			if all.Reset(); k.size(all) != 0 || !bytes.Equal(encode(t, all), encode(t, &Partial{})) {
				t.Fatalf("section %d, seed %d: something is left after a reset", number, seed)
			}
		}
	}
}

// checkLimits holds a partial of one kind against limits that it is beyond. It is read, merged, added to a partial with
// a bound, and made a window.
func checkLimits(t *testing.T, k probe, number int, rng *rand.Rand, all *Partial) {
	t.Helper()
	tt, size := kindTests[k], k.size(all)
	n := rng.IntN(size)
	limits := k.limits(n)
	if err := new(Partial).ReadBinary(encode(t, all), limits); !errors.Is(err, ErrLimit) {
		t.Fatalf("section %d: %d of %d are read: %v", number, n, size, err)
	}
	if err := new(Partial).ReadBinary(encode(t, all), k.limits(size)); err != nil {
		t.Fatalf("section %d: %d of %d: %v", number, size, size, err)
	}
	most := n
	if tt.folds {
		most++
	}
	check := func(what string, p *Partial, left int) {
		t.Helper()
		sums := tt.sums(p)
		switch {
		case k.size(p) > most:
			t.Fatalf("section %d, %s: %d items, the limit is %d", number, what, k.size(p), n)
		case tt.counter != nil:
			sums[0] += *tt.counter(p)
		case k == probe(&flowKind):
			for _, f := range all.flows.items {
				if p.flows.find(f.Key) == nil && p.FlowBound < f.Packets {
					t.Fatalf("%s: a flow of %d packets is left out, the bound is %d", what, f.Packets, p.FlowBound)
				}
			}
			return
		case !tt.folds:
			if left >= 0 && left+k.size(p) != size {
				t.Fatalf("section %d, %s: %d are left out and %d are there of %d", number, what, left, k.size(p), size)
			}
			return
		}
		if want := tt.sums(all); left > 0 || !slices.Equal(sums, want) {
			t.Fatalf("section %d, %s: sums %d, want %d", number, what, sums, want)
		}
	}
	var within, whole, bound, merged, window Partial
	if k == probe(&spreadKind) { // of flows that are listed
		for _, x := range all.spreads.items {
			within.AddFlow(&FlowPart{Key: x.Flow, Packets: 1})
			whole.AddFlow(&FlowPart{Key: x.Flow, Packets: 1})
		}
	}
	check("within", &within, within.MergeWithin(all, limits))
	if left := whole.MergeWithin(all, NoLimits()); left != 0 || k.size(&whole) != size {
		t.Fatalf("section %d: %d are left out without limits", number, left)
	}
	bound.Bound(limits)
	bound.Merge(all)
	merged.Merge(&bound)
	if !tt.folds { // the bound is for what a shard lists
		check("bound", &merged, -1)
	}
	w := all.Window(limits)
	left, lists := k.listed(&w, &window)
	if !lists || k == probe(&linkKind) || k == probe(&strayKind) || k == probe(&exporterKind) || k == probe(lateKind[inference.ExporterKey, inference.ExporterStats]{&exporterKind}) || k == probe(&interfaceKind) {
		return // of which a window has all that there are
	}
	if k.size(&window) > n {
		t.Fatalf("section %d: a window lists %d, the limit is %d", number, k.size(&window), n)
	}
	have, want := tt.sums(&window)[0]+left, tt.sums(all)[0]
	if k == probe(&deviationKind) { // each flow once
		flows := map[any]bool{}
		for _, d := range all.deviations.items {
			flows[d.Flow] = true
		}
		want = uint64(len(flows))
	}
	if have != want {
		t.Fatalf("section %d: a window has %d of %d, with what it left out", number, have, want)
	}
}

// TestBound: the kept items of a list with a bound depend neither on their order of arrival nor on their distribution
// over lists.
func TestBound(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 21))
		limits := Limits{Paths: rng.IntN(5), Drops: rng.IntN(5), Faults: rng.IntN(5), Arrivals: rng.IntN(5)}
		one, other, all := Partial{}, []Partial{{}, {}}, Partial{}
		one.Bound(limits)
		for i := range other {
			other[i].Bound(limits)
		}
		var adds []func(*Partial)
		for i := range 60 {
			at, n := rng.Int64N(30), uint32(i)
			d := inference.DropStats{Node: rng.Uint32N(40), Count: 1, Last: at, Flow: flowKey(n)}
			f := inference.DigestFault{Flow: flowKey(rng.Uint32N(40)), Count: 2, First: at, Last: at}
			c := inference.PathChange{Time: at, Flow: flowKey(n), From: []inference.HopKey{{Node: n}}, To: []inference.HopKey{{Node: n + 1}}}
			a := Arrival{Time: at, Flow: flowKey(n), Path: []inference.HopKey{{Node: n}}}
			adds = append(adds, func(p *Partial) { p.AddDrops(&d) }, func(p *Partial) { p.AddFault(&f) }, func(p *Partial) { p.AddPath(&c) }, func(p *Partial) { p.AddArrival(&a) })
		}
		for _, add := range adds {
			add(&one)
			add(&all)
		}
		rng.Shuffle(len(adds), func(i, j int) { adds[i], adds[j] = adds[j], adds[i] })
		for i, add := range adds {
			add(&other[i%2])
		}
		var a, b, plain Partial
		a.Merge(&one)
		for i := range other {
			b.Merge(&other[i])
		}
		plain.Merge(&all)
		got, want := a.Window(limits), plain.Window(limits)
		shared := b.Window(limits)
		for _, w := range []*inference.Window{&got, &shared} {
			if !reflect.DeepEqual(w.Drops, want.Drops) || !reflect.DeepEqual(w.Paths, want.Paths) || w.OtherDrops != want.OtherDrops ||
				w.OtherPaths != want.OtherPaths || w.OtherFlows+faults(w) != want.OtherFlows+faults(&want) {
				t.Fatalf("seed %d: window\n%+v\nwant\n%+v", seed, w, want)
			}
		}
		if n := min(limits.Arrivals, len(all.arrivals.items)); len(a.arrivals.items) != n || a.OtherArrivals != uint64(len(all.arrivals.items)-n) {
			t.Fatalf("seed %d: %d arrivals, %d others", seed, len(a.arrivals.items), a.OtherArrivals)
		}
	}
}

// TestBoundMemory: a list with a bound never holds more than twice the bound, and no item that is behind as many as the
// bound.
func TestBoundMemory(t *testing.T) {
	const n = 5
	var up, down Partial
	up.Bound(Limits{Paths: n})
	down.Bound(Limits{Paths: n})
	for i := range int64(100) {
		up.AddPath(&inference.PathChange{Time: i, From: []inference.HopKey{{Node: uint32(i)}}})
		down.AddPath(&inference.PathChange{Time: -i, From: []inference.HopKey{{Node: uint32(i)}}})
		if len(up.paths.items) > n || len(down.paths.items) > 2*n || len(down.paths.memory.hops) > 2*n {
			t.Fatalf("%d changes: %d and %d are listed, with paths of %d hops", i+1, len(up.paths.items), len(down.paths.items), len(down.paths.memory.hops))
		}
	}
	var all Partial
	all.Merge(&down)
	if up.OtherPaths != 100-n || len(all.paths.items) != n || all.OtherPaths != 100-n {
		t.Errorf("%d are listed and %d are not; going up, %d are not", len(all.paths.items), all.OtherPaths, up.OtherPaths)
	}
	for _, c := range all.paths.items {
		if c.From[0].Node != uint32(-c.Time) || c.Time > -(100-n) {
			t.Errorf("%+v is listed", c)
		}
	}
}

func faults(w *inference.Window) (n uint64) {
	for i := range w.Digests {
		n += w.Digests[i].Count
	}
	return n
}

// TestNoLimits: no list has a limit.
func TestNoLimits(t *testing.T) {
	l := reflect.ValueOf(NoLimits())
	for i := range l.NumField() {
		if l.Field(i).Int() != math.MaxInt {
			t.Errorf("%s is limited to %d", l.Type().Field(i).Name, l.Field(i).Int())
		}
	}
}

// With room for everything MergeWithin is Merge, to the byte.
func TestMergeWithinIsMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 0))
	var p, q, other Partial
	for range 200 {
		fill(&other, rng)
		fill(&q, rng)
		p.Reset()
		p.Merge(&other)
		p.Merge(&q)
		want := mustEncode(t, &p)
		p.Reset()
		p.MergeWithin(&other, wide)
		p.MergeWithin(&q, wide)
		if got := mustEncode(t, &p); !bytes.Equal(got, want) {
			t.Fatalf("MergeWithin gives %d bytes, Merge %d others", len(got), len(want))
		}
	}
}

// A partial that others are added to without end keeps its limits, its items stay, and sums are exact.
func TestMergeWithinLimits(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 0))
	most := Limits{Hops: 5, Flows: 2, Paths: 4, Drops: 2, Faults: 1, Exporters: 3}
	var p, q, whole Partial
	for range 300 {
		fill(&q, rng)
		before := p.Window(wide)
		p.MergeWithin(&q, most)
		whole.Merge(&q)
		if len(p.hops.items) > most.Hops+1 || len(p.flows.items) > most.Flows || len(p.paths.items) > most.Paths ||
			len(p.drops.items) > most.Drops || len(p.faults.items) > most.Faults || len(p.exporters.items) > most.Exporters+1 {
			t.Fatalf("%d hops, %d flows, %d paths, %d drops, %d faults, %d exporters", len(p.hops.items), len(p.flows.items),
				len(p.paths.items), len(p.drops.items), len(p.faults.items), len(p.exporters.items))
		}
		for _, h := range before.Hops {
			if i, known := p.hops.index[h.HopKey]; !known || p.hops.items[i].Stats().Count < h.Count {
				t.Fatalf("hop %+v lost records", h)
			}
		}
		for _, f := range before.Flows {
			if i, known := p.flows.index[f.Key]; !known || p.flows.items[i].Packets < f.Packets {
				t.Fatalf("flow %v lost reports", f.Key)
			}
		}
	}
	got, want := p.Window(wide), whole.Window(wide)
	if a, b := hopRecords(&got), hopRecords(&want); a != b || got.Reports != want.Reports {
		t.Errorf("%d hop records of %d, %d reports of %d", a, b, got.Reports, want.Reports)
	}
	var a, b inference.ExporterStats
	for i := range got.Exporters {
		a.Add(&got.Exporters[i])
	}
	for i := range want.Exporters {
		b.Add(&want.Exporters[i])
	}
	if a != b {
		t.Errorf("exporters add up to %+v, want %+v", a, b)
	}
	if n, m := uint64(len(got.Paths))+got.OtherPaths, uint64(len(want.Paths))+want.OtherPaths; n != m {
		t.Errorf("%d path changes, want %d", n, m)
	}
}

func hopRecords(w *inference.Window) (n uint64) {
	for i := range w.Hops {
		n += w.Hops[i].Count
	}
	return n
}

func mustEncode(t *testing.T, p *Partial) []byte {
	t.Helper()
	b, err := p.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
