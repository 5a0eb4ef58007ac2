package pint

import (
	"math"
	"math/bits"
	"testing"
)

// Any configuration is refused or works, and any digest can be asked about.
func FuzzScheme(f *testing.F) {
	f.Add(uint8(0), uint32(1), 8, 2, .5, .1, 0, false, uint32(7), 5, uint64(0x1234))
	f.Add(uint8(1), uint32(1), 1, 1, 1., 0., 0, true, uint32(7), 59, uint64(1))
	f.Add(uint8(0), uint32(1), 7, 3, 0., 1., 32, true, uint32(1<<31), 64, uint64(1<<21-1))
	f.Add(uint8(1), uint32(1), 32, 2, math.SmallestNonzeroFloat64, math.SmallestNonzeroFloat64, 1, false, uint32(7), -1, ^uint64(0))
	f.Add(uint8(2), uint32(0), 0, 9, math.NaN(), math.Inf(1), -1, false, uint32(0), math.MinInt, uint64(0))
	f.Fuzz(func(t *testing.T, hash uint8, seed uint32, width, instances int, tau, p float64, valueBits int, vectors bool, id uint32, hops int, digest uint64) {
		list := []*Scheme{Mininet(), Tofino(hash&1 != 0)}
		if s, err := New(Config{Hash: Hash(hash), Seed: seed, Bits: width, Instances: instances, Tau: tau, P: []float64{p, p / 2},
			ValueBits: valueBits, Vectors: vectors}); err == nil {
			list = append(list, s)
		}
		for _, s := range list {
			s.Check(id, hops, digest)
			for n := range s.Instances() {
				pkt := s.Packet(id, n)
				w := s.Writers(&pkt, hops)
				if hops >= 0 && hops < MaxHops && w>>hops != 0 || pkt.Baseline && bits.OnesCount64(w) > 1 {
					t.Fatalf("%+v: packet %d after %d hops: writers %b", s.Config(), id, hops, w)
				}
				for i := range MaxHops + 2 {
					if i >= 1 && s.Writes(&pkt, i) != (s.Writers(&pkt, i)>>(i-1)&1 != 0) {
						t.Fatalf("%+v: packet %d: hop %d writes: %v", s.Config(), id, i, s.Writes(&pkt, i))
					}
				}
				if pkt.Fragment() < 0 || pkt.Fragment() >= s.Fragments() {
					t.Fatalf("%+v: packet %d: fragment %d of %d", s.Config(), id, pkt.Fragment(), s.Fragments())
				}
				if v := s.Value(&pkt, FoldedLast, seed); uint64(v)>>s.Width() != 0 {
					t.Fatalf("%+v: packet %d: value %#x", s.Config(), id, v)
				}
			}
			if d := s.Write(digest, id, hops, seed); (d^digest)>>(s.Width()*s.Instances()) != 0 {
				t.Fatalf("%+v: packet %d: digest %#x became %#x", s.Config(), id, digest, d)
			}
			path := []uint32{seed, id, uint32(digest)}
			want := uint64(0)
			for i, v := range path {
				want = s.Write(want, id, i+1, v)
			}
			if got := s.Digest(id, path); got != want {
				t.Fatalf("%+v: packet %d over %d: digest %#x, want %#x", s.Config(), id, path, got, want)
			}
		}
	})
}

// FuzzLoops asks that a switch knows its own hash again, and that nothing leaves the digest.
func FuzzLoops(f *testing.F) {
	f.Add(uint8(0), uint32(1), 7, 1, uint32(5), 3, uint32(9), uint64(0))
	f.Add(uint8(1), uint32(1), 32, 15, uint32(5), 255, uint32(9), ^uint64(0))
	f.Fuzz(func(t *testing.T, hash uint8, seed uint32, width, limit int, id uint32, hop int, node uint32, digest uint64) {
		l := &Loops{Hash: Hash(hash), Seed: seed, Bits: width, T: limit}
		if l.Validate() != nil {
			return
		}
		digest &= mask64(l.Width())
		if next, _ := l.Step(digest, id, hop, node); next>>l.Width() != 0 {
			t.Fatalf("%+v: digest %#x became %#x", l, digest, next)
		}
		if p := l.FalseAlarm(hop & 255); !(p >= 0 && p <= 1+1e-9) {
			t.Fatalf("%+v: false alarms %v", l, p)
		}
		if p := l.Detection(1, 1+hop&7, hop&255); !(p >= 0 && p <= 1+1e-9) {
			t.Fatalf("%+v: detection %v", l, p)
		}
		// A loop of one switch, entered at once: there is always a match.
		stored, reported := l.Step(digest, id, 1, node)
		if reported || stored>>l.Bits != 0 {
			t.Fatalf("%+v: packet %d at its first hop: %#x, %v", l, id, stored, reported)
		}
		if stored, reported = l.Step(stored, id, 2, node); reported != (limit == 0) {
			t.Fatalf("%+v: packet %d at its second hop: %#x, %v", l, id, stored, reported)
		}
	})
}

// FuzzPlan asks of any plan that Validate finds nothing wrong with that switches stay within their slots.
func FuzzPlan(f *testing.F) {
	f.Add(16, .5, .5, 0, 8, 8, 0, uint8(0), uint32(1), 1, uint64(0), uint64(5), uint32(7))
	f.Add(64, 1., 0., 32, 0, 0, 0, uint8(1), uint32(1), 64, ^uint64(0), ^uint64(0), uint32(0))
	f.Add(8, math.NaN(), .5, -1, math.MaxInt, 3, 3, uint8(9), uint32(1), -1, uint64(0), uint64(5), uint32(7))
	path, err := New(Published(8))
	if err != nil {
		f.Fatal(err)
	}
	latency, err := New(Config{Hash: HashCRC, Bits: 4, Instances: 2, Tau: 1})
	if err != nil {
		f.Fatal(err)
	}
	queries := []Query{
		{Name: "path", Value: NodeValue, Aggregation: Static, Bits: 8, Scheme: path},
		{Name: "latency", Value: LatencyValue, Aggregation: Dynamic, Bits: 8, Scheme: latency, Code: code(f, 4)},
		{Name: "utilization", Value: UtilizationValue, Aggregation: PerPacket, Bits: 8, Code: hpcc(f, 1.05)},
		{Name: "loop", Value: NodeValue, Aggregation: Loop, Bits: 8, Loops: &Loops{Bits: 7, T: 1}},
	}
	f.Fuzz(func(t *testing.T, width int, a, b float64, s0, s1, s2, s3 int, hash uint8, id uint32, hop int, digest, value uint64, rnd uint32) {
		p := &Plan{Hash: Hash(hash), Bits: width, Queries: queries, Sets: []Set{
			{Share: a, Slots: []Slot{{0, s0}, {1, s1}}},
			{Share: b, Slots: []Slot{{2, s2}, {3, s3}}},
		}}
		if p.Validate() != nil {
			return
		}
		used := uint64(0)
		for _, slot := range p.Sets[p.Set(id)].Slots {
			used |= mask64(p.Queries[slot.Query].Bits) << slot.Shift
		}
		v := Values{Node: rnd, Latency: value, Queue: value, Utilization: value}
		if next := p.Write(digest, id, hop, v, rnd); (next^digest)&^used != 0 {
			t.Fatalf("%+v: packet %d at hop %d: %#x became %#x", p, id, hop, digest, next)
		}
	})
}
