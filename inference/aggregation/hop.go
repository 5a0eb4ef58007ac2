package aggregation

import (
	"cmp"
	"math"
	"slices"
)

// Hop holds the values of a hop of a flow from its digests. It is valid until the next call of a method of its pool.
type Hop struct {
	Count uint64 // digests

	// Min and Max are the values of the smallest and the largest code.
	Min, Max float64

	pool    *Pool
	entries []entry // ascending codes
	total   uint64  // of their weights
	over    uint64  // how much of a counter may be others'; Frequent
	shared  bool    // some bins hold more than their own code
}

// Hop returns what is known of a flow's hop at the time now. It is not ok if no digest came, or none within the window
// that the panes cover.
func (p *Pool) Hop(f *Flow, hop int, now int64) (h Hop, ok bool) {
	if hop < 1 || hop > MaxHops {
		return h, false
	}
	i := p.find(f, hop)
	if i == 0 {
		return h, false
	}
	h.pool = p
	last := p.blocks[i].pane
	first := max(last, p.paneAt(now)) - int64(p.config.Panes) + 1
	lo, hi := uint16(math.MaxUint16), uint16(0)
	p.entries = p.entries[:0]
	for pane := first; pane <= last; pane++ {
		s := p.sketch(i, pane)
		n := le.Uint32(s)
		if n == 0 {
			continue
		}
		h.Count += uint64(n)
		lo, hi = min(lo, le.Uint16(s[minAt:])), max(hi, le.Uint16(s[maxAt:]))
		p.entries = p.layout.appendEntries(p.entries, s)
		if p.config.Kind == Frequent {
			h.over += p.layout.overcount(s)
		} else {
			h.shared = h.shared || p.layout.shared(s)
		}
	}
	if h.Count == 0 {
		return h, false
	}
	h.Min, h.Max = p.code.Decode(uint32(lo)), p.code.Decode(uint32(hi))
	slices.SortFunc(p.entries, func(a, b entry) int { return cmp.Compare(a.code, b.code) })
	n := 0
	for _, e := range p.entries {
		h.total += e.weight
		if n > 0 && p.entries[n-1].code == e.code {
			p.entries[n-1].weight += e.weight
			continue
		}
		p.entries[n] = e
		n++
	}
	p.entries = p.entries[:n]
	h.entries = p.entries
	return h, true
}

// Quantile returns the value of the smallest code that at least the share q of all codes does not exceed. A q of 0
// gives the smallest, 1 the largest. [Hop.Smooth] is closer where codes are far apart. Where codes share bins, a bin's
// weight is taken as spread evenly around its code, half way to the nearer neighbour.
func (h *Hop) Quantile(q float64) float64 {
	switch {
	case !(q > 0) || h.total == 0:
		return h.Min
	case q >= 1:
		return h.Max
	}
	want := q * float64(h.total)
	var below float64
	for i, e := range h.entries {
		w := float64(e.weight)
		if below+w < want {
			below += w
			continue
		}
		code := float64(e.code)
		// A weight of 1 never met another, and one that sticks out came to its code by itself.
		if h.shared && e.weight > 1 && w*float64(len(h.entries)) < 3*float64(h.total) {
			code += h.half(i) * (2*(want-below)/w - 1)
		}
		v := h.pool.code.Decode(uint32(max(code+0.5, 0)))
		return min(max(v, h.Min), h.Max)
	}
	return h.Max
}

// half returns half of the distance, in codes, from an entry to its nearer neighbour. It is 0 if no code lies between
// them.
func (h *Hop) half(i int) float64 {
	gap := uint16(math.MaxUint16)
	if i > 0 {
		gap = h.entries[i].code - h.entries[i-1].code
	}
	if i+1 < len(h.entries) {
		gap = min(gap, h.entries[i+1].code-h.entries[i].code)
	}
	if gap == 1 || gap == math.MaxUint16 {
		return 0
	}
	return float64(gap) / 2
}

// Value is a frequent value. At most Count digests had its code, and at least Count - Error.
type Value struct {
	Value        float64
	Count, Error uint64
}

// Frequent appends the values that may be those of more than the given share of all digests, the most frequent first.
// In a pool of kind [Frequent], no such value is missing if the share is at least 1 over the number of counters. In one
// of kind [Quantiles], counts are right on average as long as codes have bins of their own, and Error is 0.
func (h *Hop) Frequent(dst []Value, share float64) []Value {
	from := len(dst)
	for _, e := range h.entries {
		upper, lower := e.weight, e.weight-min(e.weight, h.over)
		if h.pool.config.Panes > 1 {
			upper = min(upper+h.over, h.Count) // a code that one pane lists may have lost its counter in another
		}
		if float64(upper) > share*float64(h.Count) {
			dst = append(dst, Value{h.pool.code.Decode(uint32(e.code)), upper, upper - lower})
		}
	}
	slices.SortStableFunc(dst[from:], func(a, b Value) int { return cmp.Compare(b.Count, a.Count) })
	return dst
}
