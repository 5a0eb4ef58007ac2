package events

import (
	"math"
	"slices"
)

const (
	madToSigma = 1.4826 // standard deviation of a normal distribution over its MAD
	q90ToSigma = 1.2816 // its 90th percentile, in standard deviations
)

// scale says how the values of a kind are compared.
type scale struct {
	floor float64 // smallest distance of the limit from the median
	log   bool    // compare log(v + floor)
}

// history is a ring of past values, on their scale.
type history struct {
	values []float64
	next   int
}

func (h *history) add(v float64, size int) {
	if len(h.values) > size { // the settings changed: the oldest go
		h.values = append(slices.Clone(h.values[h.next:]), h.values[:h.next]...)[len(h.values)-size:]
		h.next = 0
	}
	if len(h.values) < size {
		h.values = append(h.values, v)
		return
	}
	h.values[h.next] = v
	h.next = (h.next + 1) % size
}

// band is what is normal for a hop: a median and the value above which it is not normal any more.
type band struct{ median, limit float64 }

// calm is the level below which a value counts as quiet again: half of the way to the limit.
func (b band) calm() float64 { return b.median + (b.limit-b.median)/2 }

func (c *coder) history(h *history) {
	c.floats(&h.values)
	number(c, &h.next)
	c.check(h.next >= 0 && h.next < max(len(h.values), 1), "a history goes on outside of its values")
}

// band computes the median and the limit from the history. scratch is memory that is used again.
func (h *history) band(cfg *Config, sc scale, scratch *[]float64) band {
	s := append((*scratch)[:0], h.values...)
	*scratch = s
	slices.Sort(s)
	m := median(s)
	spread := (quantile(s, 0.9) - m) / q90ToSigma
	for i, v := range s {
		s[i] = math.Abs(v - m)
	}
	slices.Sort(s)
	spread = max(spread, madToSigma*median(s))
	b := band{m, m + cfg.Threshold*spread}
	if sc.log {
		b.median, b.limit = math.Exp(b.median)-sc.floor, math.Exp(b.limit)-sc.floor
	}
	b.limit = max(b.limit, b.median+max(sc.floor, cfg.RelativeFloor*b.median))
	return b
}

func (sc scale) of(v float64) float64 {
	if sc.log {
		return math.Log(v + sc.floor)
	}
	return v
}

// median of sorted values.
func median(s []float64) float64 {
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// quantile of sorted values, the next larger one.
func quantile(s []float64, q float64) float64 {
	return s[min(int(q*float64(len(s))), len(s)-1)]
}
