package quantile

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// twin is a [Tiny] of plain lists: the same rules, and the same draws, without its places, bits and sorting networks.
type twin struct {
	count    uint64
	min, max uint16
	base     int
	levels   [tinyLevels][]uint16 // each in ascending order; an item of level i weighs 2^(base+i)
	coin     [tinyLevels]int      // which half the last compaction kept
	flip     [tinyLevels]bool     // the next one keeps the other half
}

func (t *twin) used() (n int) {
	for _, l := range t.levels {
		n += len(l)
	}
	return n
}

func (t *twin) saw(codes ...uint16) {
	if t.count == 0 {
		t.min = codes[0]
	}
	t.min, t.max = min(t.min, slices.Min(codes)), max(t.max, slices.Max(codes))
}

func (t *twin) add(codes []uint16, r *Rand) {
	for chunk := range slices.Chunk(codes, tinyChunk) {
		t.saw(chunk...)
		t.count += uint64(len(chunk))
		first := 0
		if t.base > 0 {
			first = int(r.Next() % (1 << t.base))
		}
		if 1<<t.base < len(chunk) { // several are taken, evenly by rank
			chunk = slices.Sorted(slices.Values(chunk))
		}
		if run := every(chunk, first, 1<<t.base); len(run) > 0 {
			t.insert(0, run, r)
		}
	}
}

func (t *twin) addSample(sample []uint16, w int, n uint64, largest uint16, r *Rand) {
	if n == 0 {
		return
	}
	if t.count == 0 && len(sample) == 0 {
		t.min = largest
	} else if len(sample) > 0 {
		t.saw(sample...)
	}
	t.max = max(t.max, largest)
	t.count += n
	for chunk := range slices.Chunk(sample, tinyChunk) {
		t.put(slices.Sorted(slices.Values(chunk)), w, r)
	}
}

func every(list []uint16, first, step int) (out []uint16) {
	for ; first < len(list); first += step {
		out = append(out, list[first])
	}
	return out
}

func (t *twin) put(run []uint16, w int, r *Rand) {
	for w-t.base > tinyLevels-1 {
		t.raise(r)
	}
	if w < t.base {
		step := 1 << (t.base - w)
		run, w = every(run, int(r.Next()%uint64(step)), step), t.base
	}
	if len(run) > 0 {
		t.insert(w-t.base, run, r)
	}
}

func (t *twin) insert(level int, run []uint16, r *Rand) {
	for t.used()+len(run) > tinyItems {
		base := t.base
		t.compress(r)
		if level -= t.base - base; level < 0 {
			level, run = 0, every(run, int(r.Next()%2), 2)
		}
		if len(run) == 0 {
			return
		}
	}
	t.levels[level] = slices.Sorted(slices.Values(slices.Concat(t.levels[level], run)))
}

func (t *twin) compress(r *Rand) {
	top := 0
	for h, l := range t.levels {
		if len(l) > 0 {
			top = h
		}
	}
	h, most := 0, 0
	for k := range top + 1 {
		n, share := len(t.levels[k]), int(tinyShare[top-k])
		if n < 2 {
			continue
		}
		if n >= share { // the lightest that holds its share
			h = k
			break
		}
		if full := n * 64 / share; full > most {
			h, most = k, full
		}
	}
	if h == tinyLevels-1 { // it has no level above before the others have moved down
		t.raise(r)
		h--
	}
	t.compact(h, r)
}

func (t *twin) compact(h int, r *Rand) {
	if t.flip[h] {
		t.coin[h] = 1 - t.coin[h]
	} else {
		t.coin[h] = int(r.Next() >> h & 1)
	}
	t.flip[h] = !t.flip[h]
	l := t.levels[h]
	pairs := len(l) / 2 * 2
	t.levels[h] = slices.Clone(l[pairs:])
	t.levels[h+1] = slices.Sorted(slices.Values(slices.Concat(t.levels[h+1], every(l[:pairs], t.coin[h], 2))))
}

func (t *twin) raise(r *Rand) {
	t.compact(0, r)
	odd := t.levels[0]
	t.levels[0] = nil
	if len(odd) > 0 && r.Next()%2 == 1 {
		t.insert(1, odd, r)
	}
	copy(t.levels[:], t.levels[1:])
	copy(t.coin[:], t.coin[1:])
	copy(t.flip[:], t.flip[1:])
	t.levels[tinyLevels-1], t.coin[tinyLevels-1], t.flip[tinyLevels-1] = nil, 0, false
	t.base++
}

func (t *twin) merge(o *twin, r *Rand) {
	if o.count == 0 {
		return
	}
	if t.count == 0 {
		*t = *o
		return
	}
	t.saw(o.min, o.max)
	t.count += o.count
	base, levels := o.base, o.levels
	for h := tinyLevels - 1; h >= 0; h-- {
		for chunk := range slices.Chunk(levels[h], tinyChunk) {
			t.put(chunk, base+h, r)
		}
	}
}

// weighed are the items, each as often as it weighs in units of level 0, in ascending order.
func (t *twin) weighed() (list []uint16) {
	for h, l := range t.levels {
		for _, c := range l {
			for range 1 << h {
				list = append(list, c)
			}
		}
	}
	slices.Sort(list)
	return list
}

func (t *twin) rank(code uint16) float64 {
	switch list := t.weighed(); {
	case t.count == 0 || code < t.min:
		return 0
	case code >= t.max:
		return 1
	default:
		n := 0
		for _, c := range list {
			if c <= code {
				n++
			}
		}
		return float64(n) / float64(len(list))
	}
}

func (t *twin) quantile(q float64) uint16 {
	list := t.weighed()
	switch {
	case !(q > 0) || len(list) == 0:
		return t.min
	case q >= 1:
		return t.max
	}
	return list[int(math.Ceil(q*float64(len(list))))-1]
}

// sketchPair is a sketch and its twin.
type sketchPair struct {
	s Tiny
	w twin
}

// TestTwin runs sketches and their twins through the same codes, batches, samples and merges with the same draws. Both
// hold the same items on the same levels, have drawn as often, and answer alike.
func TestTwin(t *testing.T) {
	highest := 0
	for seed := range uint64(100) {
		g := rand.New(rand.NewPCG(seed, 8))
		r1, r2 := Rand(seed), Rand(seed)
		span := 1 + g.IntN(1<<16)
		code := func() uint16 { return uint16(g.IntN(span)) }
		many := func(n int) []uint16 {
			list := make([]uint16, g.IntN(n))
			for i := range list {
				list[i] = code()
			}
			return list
		}
		var all [3]sketchPair
		for step := range 60 {
			p := &all[g.IntN(len(all))]
			switch g.IntN(8) {
			case 0:
				c := code()
				p.s.Update(c, &r1)
				p.w.add([]uint16{c}, &r2)
			case 1:
				list := many(5)
				p.s.Add(list, &r1)
				p.w.add(list, &r2)
			case 2, 3:
				list := many(100)
				p.s.Add(list, &r1)
				p.w.add(list, &r2)
			case 4:
				list := many(2000)
				p.s.Add(list, &r1)
				p.w.add(list, &r2)
			case 5:
				list, w, n, largest := many(40), g.IntN(int(p.s.Base())+6), g.Uint64N(3)*1000, code()
				p.s.AddSample(list, uint8(w), n, largest, &r1)
				p.w.addSample(list, w, n, largest, &r2)
			case 6:
				o := &all[g.IntN(len(all))]
				p.s.Merge(&o.s, &r1)
				p.w.merge(&o.w, &r2)
			case 7:
				if g.IntN(4) == 0 {
					p.s.Reset()
					p.w = twin{}
				}
			}
			highest = max(highest, p.w.base)
			if r1 != r2 || p.s.Count() != p.w.count || p.s.Min() != p.w.min || p.s.Max() != p.w.max || int(p.s.Base()) != p.w.base {
				t.Fatalf("seed %d, step %d: %d codes from %d to %d of base %d, drawn alike: %v; want %d from %d to %d of base %d", seed, step,
					p.s.Count(), p.s.Min(), p.s.Max(), p.s.Base(), r1 == r2, p.w.count, p.w.min, p.w.max, p.w.base)
			}
			items := p.s.items[tinyItems-int(p.s.used):]
			for h, want := range p.w.levels {
				n := int(p.s.size[h])
				if n > len(items) || !slices.Equal(items[:n], want) {
					t.Fatalf("seed %d, step %d: level %d of %v holds %v first, want %v", seed, step, h, p.s.size, items, want)
				}
				items = items[n:]
			}
			if len(items) > 0 {
				t.Fatalf("seed %d, step %d: %v are on no level", seed, step, items)
			}
			qs := []float64{math.NaN(), math.Inf(-1), 0, 1e-9, 0.25, 0.5, g.Float64(), 0.99, 1, 1.5}
			slices.Sort(qs)
			got := p.s.Quantiles(nil, qs...)
			for i, q := range qs {
				if want := p.w.quantile(q); got[i] != want || p.s.Quantile(q) != want {
					t.Fatalf("seed %d, step %d: the %g-quantile is %d, alone %d, want %d", seed, step, q, got[i], p.s.Quantile(q), want)
				}
			}
			for _, c := range []uint16{0, code(), p.w.min, p.w.min - 1, p.w.max, p.w.max - 1, code()} {
				if got, want := p.s.Rank(c), p.w.rank(c); got != want {
					t.Fatalf("seed %d, step %d: Rank(%d) = %g, want %g", seed, step, c, got, want)
				}
			}
		}
	}
	if highest < 10 {
		t.Errorf("no sketch left out more than one of 2^%d codes", highest)
	}
}
