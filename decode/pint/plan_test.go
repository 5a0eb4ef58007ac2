package pint

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

func code(t testing.TB, bits int) *Levels {
	t.Helper()
	l, err := NewCode(CodeConfig{Bits: bits, Max: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// mixed is a plan of the paper's kind: path, latency, utilisation and loops in 16 bits.
func mixed(t testing.TB) *Plan {
	t.Helper()
	path := Published(8)
	path.Seed = 1
	latency := Baseline(8)
	latency.Seed = 2
	return &Plan{
		Epoch: 3, Seed: 4, Bits: 16,
		Queries: []Query{
			{Name: "path", Value: NodeValue, Aggregation: Static, Bits: 8, Scheme: scheme(t, path)},
			{Name: "latency", Value: LatencyValue, Aggregation: Dynamic, Bits: 8, Scheme: scheme(t, latency), Code: code(t, 8)},
			{Name: "utilization", Value: UtilizationValue, Aggregation: PerPacket, Bits: 8, Code: hpcc(t, 1.05)},
			{Name: "loop", Value: NodeValue, Aggregation: Loop, Bits: 8, Loops: &Loops{Seed: 5, Bits: 7, T: 1}},
		},
		Sets: []Set{
			{Share: .5, Slots: []Slot{{Query: 0, Shift: 8}, {Query: 1}}},
			{Share: .3, Slots: []Slot{{Query: 2, Shift: 8}, {Query: 0}}},
			{Share: .2, Slots: []Slot{{Query: 3}}},
		},
	}
}

// The plan does to each part of the digest what its query says, and nothing to the rest.
func TestPlanWrites(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	p := mixed(t)
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	counts := make([]int, len(p.Sets))
	for range 5000 {
		id := rng.Uint32()
		set := p.Set(id)
		counts[set]++
		k := 1 + rng.IntN(20)
		path, latencies, digest, highest := make([]uint32, k), make([]uint64, k), uint64(0), uint64(0)
		loop := uint64(0)
		for i := range path {
			v := Values{Node: rng.Uint32N(100), Latency: rng.Uint64N(1 << 20), Utilization: rng.Uint64N(2 * UtilizationUnit)}
			path[i], latencies[i], highest = v.Node, v.Latency, max(highest, v.Utilization)
			digest = p.Write(digest, id, i+1, v, rng.Uint32())
			loop, _ = p.Queries[3].Loops.Step(loop, id, i+1, v.Node)
		}
		used := uint64(0)
		for _, slot := range p.Sets[set].Slots {
			q := &p.Queries[slot.Query]
			used |= mask64(q.Bits) << slot.Shift
			got := p.Part(digest, slot)
			switch q.Name {
			case "path":
				if want := q.Scheme.Digest(id, path); got != want {
					t.Fatalf("seed %d: packet %d: path digest %#x, want %#x", seed, id, got, want)
				}
			case "latency":
				pkt := q.Scheme.Packet(id, 0)
				hop := 0
				for w := q.Scheme.Writers(&pkt, k); w > 1; w >>= 1 {
					hop++
				}
				v := latencies[hop]
				if c := uint32(got); c != q.Code.Encode(v, 0) && c != q.Code.Encode(v, 1<<32-1) {
					t.Fatalf("seed %d: packet %d: code %d for latency %d", seed, id, c, v)
				}
			case "utilization":
				if want := q.Code.Encode(highest, p.Hash.global(p.Hash.salt(p.Seed, ofRounding+2), id)); uint32(got) != want {
					t.Fatalf("seed %d: packet %d: code %d for utilisation %d, want %d", seed, id, got, highest, want)
				}
			case "loop":
				if got != loop {
					t.Fatalf("seed %d: packet %d: loop digest %#x, want %#x", seed, id, got, loop)
				}
			}
		}
		if digest&^used != 0 {
			t.Fatalf("seed %d: packet %d: digest %#x outside of %#x", seed, id, digest, used)
		}
	}
	tooUnequal(t, "sets", counts, func(i int) float64 { return p.Sets[i].Share })
}

func TestPlanProblems(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(p *Plan)
		want  string
	}{
		{"shares", func(p *Plan) { p.Sets[0].Share = .4 }, "sum to 0.9"},
		{"no share", func(p *Plan) { p.Sets[0].Share, p.Sets[1].Share = 0, .8 }, "share 0: want above 0"},
		{"NaN", func(p *Plan) { p.Sets[0].Share = math.NaN() }, "share NaN"},
		{"no sets", func(p *Plan) { p.Sets = nil }, "shares of 0 sets"},
		{"overlap", func(p *Plan) { p.Sets[0].Slots[0].Shift = 7 }, "overlaps"},
		{"beyond", func(p *Plan) { p.Sets[0].Slots[0].Shift = 9 }, "the digest has 16"},
		{"below", func(p *Plan) { p.Sets[0].Slots[0].Shift = -1 }, "at bit -1"},
		{"twice", func(p *Plan) { p.Sets[0].Slots[0].Query = 1 }, "twice"},
		{"no query", func(p *Plan) { p.Sets[0].Slots[0].Query = 4 }, "query 4 of 4"},
		{"unused", func(p *Plan) { p.Sets[2].Slots = nil }, "(loop) is in no set"},
		{"wide", func(p *Plan) { p.Bits = 65 }, "65 bits"},
		{"hash", func(p *Plan) { p.Hash = 9 }, "hash 9"},
		{"value", func(p *Plan) { p.Queries[0].Value = "colour" }, `value "colour"`},
		{"scheme", func(p *Plan) { p.Queries[0].Scheme = nil }, "no coding scheme"},
		{"bits", func(p *Plan) { p.Queries[0].Bits = 7 }, "its coding scheme has 8"},
		{"changing values in XOR", func(p *Plan) { p.Queries[1].Scheme = p.Queries[0].Scheme }, "Baseline"},
		{"dialect", func(p *Plan) { p.Queries[1].Scheme, p.Queries[1].Bits = Mininet(), 13 }, "Baseline"},
		{"code", func(p *Plan) { p.Queries[1].Code = nil }, "code of 8 bits"},
		{"wide code", func(p *Plan) { p.Queries[2].Code = code(t, 9) }, "code of 8 bits"},
		{"loops", func(p *Plan) { p.Queries[3].Loops = nil }, "Loops of 8 bits"},
		{"loop T", func(p *Plan) { p.Queries[3].Loops = &Loops{Bits: 4, T: 16} }, "Loops of 8 bits"},
		{"aggregation", func(p *Plan) { p.Queries[3].Aggregation = 9 }, "aggregation(9)"},
		{"no bits", func(p *Plan) { p.Queries[3].Bits = 0 }, "0 bits"},
	} {
		p := mixed(t)
		c.spoil(p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", c.name, err, c.want)
		}
	}
}

// Every id has a set, also where shares sum to a little less than 1.
func TestPlanSetOfRoundedShares(t *testing.T) {
	p := &Plan{Sets: []Set{{Share: 1. / 3}, {Share: 1. / 3}, {Share: 1 - 2./3 - 1e-11}}}
	for id := range uint32(1000) {
		if s := p.Set(id); s < 0 || s > 2 {
			t.Fatalf("set %d", s)
		}
	}
}

// Switches that round alike keep the largest value unbiased.
func TestLargestValueIsUnbiased(t *testing.T) {
	p := &Plan{Bits: 8, Queries: []Query{{Name: "u", Value: UtilizationValue, Aggregation: PerPacket, Bits: 8, Code: hpcc(t, 1.2)}},
		Sets: []Set{{Share: 1, Slots: []Slot{{}}}}}
	p.Queries[0].Bits = p.Queries[0].Code.Bits()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	p.Seed = rng.Uint32()
	const packets, u = 100_000, UtilizationUnit * 600 / 1000
	sum, squares := 0.0, 0.0
	for id := range uint32(packets) {
		digest := uint64(0)
		for hop := 1; hop <= 10; hop++ {
			digest = p.Write(digest, id, hop, Values{Utilization: u}, rng.Uint32())
		}
		v := p.Queries[0].Code.Decode(uint32(digest))
		sum += v
		squares += v * v
	}
	mean := sum / packets
	const rounded = 308 * UtilizationUnit / hpccUnits // the program rounds up to 1/512
	if e := (mean - rounded) * (mean - rounded) / (squares/packets - mean*mean) * packets; e > 36 {
		t.Errorf("seed %d: mean %v, want %v", p.Seed, mean, rounded)
	}
}

// The smallest value and the sum along the path are unbiased, and a sum is as far from the truth as approximate
// counting says.
func TestFunctionsAreUnbiased(t *testing.T) {
	rng := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	code, err := NewCode(CodeConfig{Bits: 8, Unit: 1000, Max: 1e8})
	if err != nil {
		t.Fatal(err)
	}
	const packets, hops = 20_000, 10
	for _, f := range []Function{Min, Sum} {
		p := &Plan{Bits: 8, Seed: rng.Uint32(), Queries: []Query{{Name: "l", Value: LatencyValue, Aggregation: PerPacket, Function: f, Bits: 8, Code: code}},
			Sets: []Set{{Share: 1, Slots: []Slot{{}}}}}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		var want uint64
		var values [hops]uint64
		for h := range values {
			values[h] = 20_000 + rng.Uint64N(80_000)
			want += values[h]
		}
		if f == Min {
			want = slices.Min(values[:])
		}
		sum, squares := 0.0, 0.0
		for id := range uint32(packets) {
			digest := uint64(0)
			for h, v := range values {
				digest = p.Write(digest, id, h+1, Values{Latency: v}, rng.Uint32())
			}
			e := code.Decode(uint32(digest)) - float64(want)
			sum += e
			squares += e * e
		}
		mean, deviation := sum/packets, math.Sqrt(squares/packets)
		if math.Abs(mean) > 6*deviation/math.Sqrt(packets) {
			t.Errorf("%v: %v off on average, want 0 within %v", f, mean, 6*deviation/math.Sqrt(packets))
		}
		// Neighbouring levels are a part of 4.7 % apart: ε is 2.4 %.
		if most := .024 * math.Sqrt(hops) * float64(want); deviation > most {
			t.Errorf("%v: standard deviation %v, want %v at most", f, deviation, most)
		}
	}
	if err := (&Query{Value: LatencyValue, Aggregation: PerPacket, Function: Sum, Bits: 8, Code: hpcc(t, 1.2)}).check(); err == nil {
		t.Error("a sum with a code that cannot be added to passes")
	}
	if err := (&Query{Value: NodeValue, Aggregation: Loop, Function: Sum, Bits: 8}).check(); err == nil {
		t.Error("a sum of a loop passes")
	}
}

func BenchmarkPlanWrite(b *testing.B) {
	p := mixed(b)
	digest := uint64(0)
	id := uint32(0)
	for b.Loop() {
		digest = p.Write(digest, id, 5, Values{Node: 7, Latency: 12345, Utilization: 20000}, id)
		id++
	}
	sink += digest
}
