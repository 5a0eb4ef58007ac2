package sequence

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

const testWindow, testGap = 256, 1 << 16

// testRoom is memory for records of up to testWindow numbers, of which the shortest have 64.
func testRoom(longest int) *room {
	cfg := DefaultConfig()
	cfg.Window = longest
	return &room{longest: uint32(longest), maxGap: testGap, places: NewPlaces(cfg, 1)}
}

// follow makes an empty sequence.
func follow(width uint8, m *room) *sequence {
	return &sequence{width: width, seen: m.record(), trusted: true}
}

// track feeds numbers to a fresh sequence of the given width, a microsecond after each other, and ends it.
func track(width uint8, numbers ...uint32) *sequence {
	m := testRoom(testWindow)
	s := follow(width, m)
	for i, n := range numbers {
		s.observe(n, int64(i)*1000, m)
	}
	s.settle()
	return s
}

// span returns from, from+1, ... until before to.
func span(from, to uint32) (n []uint32) {
	for ; from != to; from++ {
		n = append(n, from)
	}
	return n
}

func TestSequence(t *testing.T) {
	const top = 1<<22 - 1
	tests := []struct {
		name      string
		width     uint8
		in        []uint32
		want      counts
		unclaimed bool // the exporter is not sequenced
	}{
		{name: "in order", width: 32, in: span(5, 50)},
		{name: "one missing", width: 32, in: []uint32{1, 2, 4, 5}, want: counts{lost: 1}},
		{name: "late one fills its gap", width: 32, in: []uint32{1, 2, 4, 5, 3}, want: counts{reordered: 1}},
		{name: "late one came twice", width: 32, in: []uint32{1, 2, 4, 5, 3, 3}, want: counts{reordered: 1, duplicated: 1}},
		{name: "newest came twice", width: 32, in: []uint32{1, 2, 2, 3}, want: counts{duplicated: 1}},
		{name: "first came twice", width: 32, in: []uint32{7, 7, 8}, want: counts{duplicated: 1}},
		{name: "late one before the first", width: 32, in: []uint32{5, 6, 3, 4}, want: counts{reordered: 2}},
		{name: "late one before the first leaves a gap", width: 32, in: []uint32{5, 6, 2}, want: counts{lost: 2, reordered: 1}},
		{name: "wrap of 32 bits", width: 32, in: span(^uint32(0)-9, 10)},
		{name: "wrap of 22 bits", width: 22, in: append(span(top-9, top+1), span(0, 10)...)},
		{name: "loss across the wrap of 22 bits", width: 22, in: []uint32{top - 1, top, 3, 4}, want: counts{lost: 3}},
		{name: "late across the wrap of 22 bits", width: 22, in: []uint32{top - 1, 0, 1, top}, want: counts{reordered: 1}},
		{name: "bits above the width do not count", width: 22, in: []uint32{1, 1<<22 | 2, 3}},
		{name: "constant", width: 32, in: make([]uint32, 1000), unclaimed: true},
		{name: "one report", width: 32, in: []uint32{77}, unclaimed: true},
		{name: "constant, then counts", width: 32, in: append(make([]uint32, 1000), 1, 2, 3)},
		{name: "counts, then constant", width: 32, in: append(span(1, 100), slices.Repeat([]uint32{100}, 200)...), unclaimed: true},
		{name: "noise", width: 32, in: []uint32{1 << 30, 5, 1 << 20, 3 << 30, 77 << 12, 1 << 27}, unclaimed: true},
		{name: "restart at 0", width: 32, in: append(span(100000, 100100), span(0, 50)...), want: counts{restarts: 1}},
		{name: "restart backward by more than half the range", width: 32,
			in: append(span(3000000000, 3000000100), span(0, 50)...), want: counts{restarts: 1}},
		{name: "restart with loss and reordering at its start", width: 32,
			in: append(span(100000, 100100), 0, 3, 2, 5, 6, 7, 8, 9), want: counts{restarts: 1, lost: 2, reordered: 1}},
		{name: "single very late one is no restart", width: 32,
			in: append(span(100000, 101000), append([]uint32{100003}, span(101000, 102000)...)...), want: counts{late: 1}},
		{name: "seven very late ones are no restart", width: 32,
			in: append(span(100000, 101000), append(span(100003, 100010), span(101000, 102000)...)...), want: counts{late: 7}},
		{name: "strays again and again are no restart", width: 32,
			in: slices.Concat(span(100000, 101000), span(3, 9), span(101000, 101001), span(9, 15), span(101001, 101002), span(15, 20)), want: counts{late: 17}},
		{name: "the return of a sequence is no second restart", width: 32,
			in: slices.Concat(span(100000, 101000), span(3, 20), span(101000, 102000), span(20, 40), span(102000, 102020)), want: counts{restarts: 1}},
		{name: "single far one is no loss", width: 32,
			in: append(span(1000, 1100), append([]uint32{30000}, span(1100, 1200)...)...), want: counts{late: 1}},
		{name: "loss larger than the window", width: 32, in: append(span(1000, 1100), span(11100, 11200)...), want: counts{lost: 10000}},
		{name: "gap larger than the window is filled from its end", width: 32,
			in: append(append(span(1000, 1100), span(11100, 11200)...), 11099, 11098), want: counts{lost: 9998, reordered: 2}},
		{name: "jump ahead beyond the largest gap is a restart", width: 32,
			in: append(span(1000, 1100), span(1000+2*testGap, 1100+2*testGap)...), want: counts{restarts: 1}},
		{name: "restart inside the window", width: 32, in: append(span(0, 200), span(0, 200)...), want: counts{restarts: 1}},
		{name: "everything twice is no restart", width: 32,
			in: func() (n []uint32) {
				for i := range uint32(500) {
					n = append(n, i, i)
				}
				return n
			}(), want: counts{duplicated: 500}},
		{name: "a burst of late ones is no restart", width: 32,
			in: append(append(span(0, 100), span(200, 210)...), span(100, 200)...), want: counts{reordered: 100}},
		{name: "repeated before a restart and after it", width: 32,
			in: slices.Concat(span(0, 200), slices.Repeat([]uint32{199}, 40), span(0, 64), slices.Repeat([]uint32{63}, 40), span(64, 80)), want: counts{restarts: 1, duplicated: 80}},
		{name: "a late one between duplicates", width: 32,
			in: slices.Concat(span(0, 100), span(101, 200), span(101, 141), span(100, 101), span(141, 181)), want: counts{reordered: 1, duplicated: 80}},
		{name: "one before the first between duplicates", width: 32,
			in: slices.Concat(span(100, 200), span(110, 150), span(99, 100), span(150, 190)), want: counts{reordered: 1, duplicated: 80}},
		{name: "the first one eight times again", width: 32, in: slices.Concat(slices.Repeat([]uint32{5}, 9), span(6, 9)), want: counts{duplicated: 8}},
		{name: "the first one nine times again", width: 32, in: slices.Concat(slices.Repeat([]uint32{5}, 10), span(6, 9))},
		{name: "the first one again, and one before it", width: 32,
			in: slices.Concat(slices.Repeat([]uint32{5}, 61), span(4, 5), slices.Repeat([]uint32{5}, 10), span(6, 9)), want: counts{reordered: 1, duplicated: 10}},
		{name: "63 times the same", width: 32, in: append(span(1, 5), slices.Repeat([]uint32{4}, 63)...), want: counts{duplicated: 63}},
		{name: "64 times the same", width: 32, in: append(span(1, 5), slices.Repeat([]uint32{4}, 64)...), unclaimed: true},
		{name: "the largest gap", width: 32, in: append(span(1000, 1100), span(1099+testGap, 1199+testGap)...), want: counts{lost: testGap - 1}},
		{name: "one more", width: 32, in: append(span(1000, 1100), span(1100+testGap, 1200+testGap)...), want: counts{restarts: 1}},
		{name: "restart around a quarter of the range", width: 32, in: append(span(100000, 100100), span(1<<30-4, 1<<30+40)...), want: counts{restarts: 1}},
		{name: "return as far as can be", width: 32,
			in: slices.Concat(span(100000, 101000), span(3, 20), span(100999+testWindow, 102000)), want: counts{restarts: 1}},
		{name: "return beyond that", width: 32,
			in: slices.Concat(span(100000, 101000), span(3, 20), span(101000+testWindow, 102000)), want: counts{restarts: 2}},
		{name: "return to the last number", width: 32,
			in: slices.Concat(span(100000, 101000), span(3, 20), span(100999, 101100)), want: counts{restarts: 2}},
		{name: "restart after restart", width: 22,
			in: append(append(span(1<<20, 1<<20+9), span(0, 9)...), span(1<<21, 1<<21+9)...), want: counts{restarts: 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := track(tt.width, tt.in...)
			if s.counts != tt.want || s.sequenced == tt.unclaimed {
				t.Errorf("counts %+v, sequenced %v, want %+v, %v", s.counts, s.sequenced, tt.want, !tt.unclaimed)
			}
		})
	}
}

// TestSequenceTruth sends numbered reports through a network that loses, repeats and delays them, or to a collector
// whose workers reorder them. It compares the counts with the truth, from a map over numbers that never wrap. Numbers
// are delayed by up to the longest record. In the end the count of lost ones is right, and no restart is seen without
// one. At every moment each sent number came, was lost, or is provisional.
func TestSequenceTruth(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		width := []uint8{22, 32}[rng.IntN(2)]
		longest := []int{256, 4096, 1 << 16}[rng.IntN(3)]
		delay := 1 + rng.IntN(startSlack-1)
		if rng.IntN(2) == 0 {
			delay = 1 + rng.IntN(longest/3)
		}
		held := rng.IntN(2) == 0 // by the collector: times are those of sending
		loss, dup, late := rng.Float64()*0.3, rng.Float64()*0.2, rng.Float64()*0.5

		m := testRoom(longest)
		s := follow(width, m)
		var want counts
		start := rng.Uint64N(1 << width)
		at := int64(0)
		for epoch := range 1 + rng.IntN(4) {
			if epoch > 0 { // restarts at a number that cannot be mistaken for loss or for something late
				start = (uint64(s.head) + testGap + 1000 + rng.Uint64N(1<<(width-1))) % (1 << width)
				want.restarts++
			}
			arrivals := network(rng, start, 4*delay+200+rng.IntN(5000), delay, loss, dup, late)
			truth(&want, arrivals)
			seen, most := map[uint64]bool{}, start
			before := s.lost
			for i, n := range arrivals {
				received := at + int64(i)
				if held {
					received = at + int64(n-start)
				}
				s.observe(uint32(n), received, m)
				seen[n] = true
				most = max(most, n)
				if s.farN > 0 || i < confirmations {
					continue
				}
				if i == confirmations {
					before = s.lost + int64(s.provisional) - (int64(most-start+1) - int64(len(seen)))
				}
				if got := s.lost - before + int64(s.provisional) + int64(len(seen)); got != int64(most-start+1) {
					t.Fatalf("seed %d, epoch %d, report %d: %d sent, %d are accounted for: held %v, delay %d, longest %d, loss %v\n%+v", seed, epoch, i, most-start+1, got, held, delay, longest, loss, s)
				}
			}
			at += int64(len(arrivals)) + int64(most-start) + 1
			s.settle()
		}
		got := s.counts
		// A report that repeats a number that has left the record, or that came while it was not waited for, is counted
		// as late.
		got.reordered += got.late
		if got.late > 0 {
			got.reordered += got.duplicated
			want.reordered += want.duplicated
			got.duplicated, want.duplicated = 0, 0
		}
		got.late = 0
		if got != want || !s.sequenced {
			t.Fatalf("seed %d (width %d, longest %d, delay %d, held %v, loss %.2f): %+v, sequenced %v, want %+v", seed, width, longest, delay, held, loss, s.counts, s.sequenced, want)
		}
	}
}

// network returns the numbers start..start+n in the order in which they arrive. They begin and end with a few in order,
// so that a restart is there to be seen, and all delayed ones are delivered.
func network(rng *rand.Rand, start uint64, n, delay int, loss, dup, late float64) []uint64 {
	type packet struct {
		at float64
		n  uint64
	}
	var ps []packet
	burst := 0
	for i := range n {
		at := float64(i)
		if i >= delay+confirmations && i < n-delay-1 {
			if burst == 0 && rng.IntN(1000) == 0 {
				burst = rng.IntN(2 * delay)
			}
			if burst > 0 {
				burst--
				continue
			}
			if rng.Float64() < loss {
				continue
			}
			if rng.Float64() < dup {
				ps = append(ps, packet{at + rng.Float64()*float64(delay), start + uint64(i)})
			}
			if rng.Float64() < late {
				at += rng.Float64() * float64(delay)
			}
		}
		ps = append(ps, packet{at, start + uint64(i)})
	}
	slices.SortStableFunc(ps, func(a, b packet) int { return cmp.Compare(a.at, b.at) })
	out := make([]uint64, len(ps))
	for i, p := range ps {
		out[i] = p.n
	}
	return out
}

// truth adds what happened in one epoch.
func truth(c *counts, arrivals []uint64) {
	seen := map[uint64]bool{}
	lo, hi := arrivals[0], arrivals[0]
	for i, n := range arrivals {
		switch {
		case seen[n]:
			c.duplicated++
		case i > 0 && n < hi:
			c.reordered++
		}
		seen[n] = true
		lo, hi = min(lo, n), max(hi, n)
	}
	c.lost += int64(hi-lo+1) - int64(len(seen))
}

func FuzzSequence(f *testing.F) {
	f.Add(uint8(22), uint8(3), []byte{1, 2, 3, 250, 0, 0, 0, 5})
	f.Add(uint8(32), uint8(9), []byte{0, 0, 0, 128, 128, 1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, width, every uint8, steps []byte) {
		m := testRoom(4096)
		width = width%32 + 1
		if width < 14 { // the narrowest number that the longest record fits in
			width = 22
		}
		s := follow(width, m)
		var n uint32
		sum := counts{}
		for i, b := range steps { // small steps either way, and now and then a large one
			step := uint32(int32(int8(b)))
			if b%7 == 0 {
				step *= 1 << (uint(i) % 24)
			}
			n += step
			s.observe(n, int64(i)*1000+int64(int8(b))*int64(every), m)
			if every > 0 && i%int(every) == 0 {
				s.cut(int64(i)*1e9, m)
			}
			check(t, s, m)
			sum = s.counts
			if sum.duplicated > uint64(len(steps)) || sum.reordered > uint64(len(steps)) || sum.late > uint64(len(steps)) || sum.lost < -int64(len(steps)) {
				t.Fatalf("after %d numbers of width %d: %+v", i+1, s.width, s)
			}
		}
		s.settle()
		if s.provisional != 0 {
			t.Fatalf("provisional after the end: %+v", s)
		}
	})
}

// check compares the counts of a sequence about its record with the record.
func check(t *testing.T, s *sequence, m *room) {
	t.Helper()
	if s.span > s.size() || s.size() > m.longest {
		t.Fatalf("%d numbers in a record of %d, the longest has %d", s.span, s.size(), m.longest)
	}
	if n := zeros(s.seen, s.head-s.span+1, s.span); n != s.open {
		t.Fatalf("%d numbers are missing in the record, %d are reported: %+v", n, s.open, s)
	}
	if n := s.provisionalSpan(); n > s.span || zeros(s.seen, s.head-n+1, n) != s.provisional {
		t.Fatalf("%d of the last %d numbers are missing, %d are provisional: %+v", zeros(s.seen, s.head-n+1, min(n, s.span)), n, s.provisional, s)
	}
	words := int64(0)
	if s.size() > m.least() {
		words = int64(len(s.seen))
	}
	if m.places.allWords > 0 && m.places.allWords-m.places.words.Load() != words {
		t.Fatalf("%d words are taken, the record has %d", m.places.allWords-m.places.words.Load(), words)
	}
}
