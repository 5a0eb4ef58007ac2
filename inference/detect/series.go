package detect

import "math"

// series is what is remembered of one statistic: means, and how far each contrast strays to each side.
type series struct {
	now    float32 // logarithm of the present value
	mean   [means]float32
	square [2][contrasts]float32 // mean of squares, upward and downward
	tail   [2][contrasts]float32 // quantile that one window in 200 exceeds
	seen   [2][contrasts]uint32
	raised [2][2]float32 // logarithm of what earlier findings raised limits by; upward and downward, of fast and slow contrasts
	season [seasons]profile
}

// measured is a window, ready to be compared.
type measured struct {
	value [statistics]float64 // logarithms
	count float64
	usual float64 // count
}

// measure takes logarithms. The 99th percentile of few values lies lower than that of many, and is corrected for it.
func (h *Hop) measure(cfg *Config, w Window) (x measured) {
	n := float64(h.windows)
	x.count = float64(w.Count)
	h.logCount += float32(max(1/n, .0003) * (math.Log(x.count) - float64(h.logCount)))
	h.inverse += float32((1/x.count - float64(h.inverse)) * max(1./9, 1/n))
	x.usual = math.Exp(float64(h.logCount))
	x.value[P50], x.value[P99] = math.Log(w.P50+cfg.Floor), math.Log(w.P99+cfg.Floor)
	if h.open.Cause == None {
		p90 := math.Log(w.P90 + cfg.Floor)
		z := normalQuantile(rank(.9, x.count))
		h.spread += float32(max(1/n, .01) * ((p90-x.value[P50])/max(z, .5) - float64(h.spread)))
	}
	if x.count < 2000 {
		x.value[P99] += (z99 - normalQuantile(rank(.99, x.count))) * float64(h.spread)
	}
	return x
}

// rank is the probability below which the value of nearest rank lies on average (Blom).
func rank(q, n float64) float64 { return (math.Ceil(q*n-1e-9) - .375) / (n + .25) }

// sampling is the variance of the logarithm of a quantile of n values, in squares of their spread.
func (s Statistic) sampling(inverse float64) float64 {
	if s == P50 {
		return 1.57 * inverse // π/2
	}
	return min(13.9*inverse, .3)
}

// verdict is what all contrasts of a window say.
type verdict struct {
	Finding
	ratio float64 // of the contrast that is farthest beyond its limit
	loud  bool    // some contrast is beyond half of its limit
}

// judge compares a window with the past of both statistics and learns from it.
func (h *Hop) judge(cfg *Config, x *measured) (v verdict) {
	for i := range statistics {
		h.stats[i].step(h, cfg, Statistic(i), x, &v)
	}
	return v
}

func (s *series) step(h *Hop, cfg *Config, which Statistic, x *measured, v *verdict) {
	n := float64(h.windows)
	y := x.value[which]
	if h.windows == 1 {
		for k := range s.mean {
			s.mean[k] = float32(y)
		}
	}
	s.now = float32(y)
	y = h.excuse(s, which, y)

	// A window of few values is drawn to the usual level, and its contrasts may stray more.
	now, often := which.sampling(1/x.count), which.sampling(1/x.usual)
	level := float64(s.mean[usual])
	y = level + min(1, math.Sqrt(often/now))*(y-level)
	stray := [2]float64{1, 1} // of contrasts with the window itself, and with means
	if h.windows >= warmup {
		square := float64(s.square[0][1]+s.square[1][1]) / 2
		part := min(1, float64(h.spread)*float64(h.spread)*often/(square+1e-12)) // of the straying that is sampling
		for k, r := range [...]float64{now, which.sampling(float64(h.inverse))} {
			stray[k] = math.Sqrt(1 + part*(min(1, r/often)-1))
		}
	}
	for j := range bank {
		b := &bank[j]
		fast := y
		if b.fast > 0 {
			m := float64(s.mean[b.fast])
			fast = m + (y-m)*max(1/constants[b.fast], 1/n)
		}
		g := stray[1]
		if j < 2 {
			g = stray[0]
		}
		c := fast - float64(s.mean[b.slow])
		sign := 0
		if c <= 0 {
			sign = 1
		}
		if h.windows >= warmup {
			h.compare(cfg, s, which, uint8(j), sign, c, g, v)
		}
		if h.open.Cause == None || h.windows < warmup || h.age < 18 || h.age > learnAt {
			s.learn(h, j, sign, math.Abs(c)/g)
		}
	}
	for k := range s.mean {
		m := float64(s.mean[k])
		s.mean[k] = float32(m + max(1/constants[k], 1/n)*(y-m))
	}
}

// compare holds a contrast against its limit.
func (h *Hop) compare(cfg *Config, s *series, which Statistic, j uint8, sign int, c, stray float64, v *verdict) {
	b := &bank[j]
	a := math.Abs(c) / stray
	limit := max(b.limit*math.Sqrt(float64(s.square[sign][j])), tailLimit*float64(s.tail[sign][j]))
	limit *= (1 + math.Sqrt(constants[b.slow]/float64(h.windows))) * cfg.Strict
	if r := s.raised[sign][group(j)]; r > 0 {
		limit *= math.Exp(float64(r))
	}
	limit = max(limit, b.floor/stray)
	ratio := a / limit
	cause := Rise + Cause(sign)
	if o := &h.open; o.Cause == cause && o.Statistic == which && o.contrast == j {
		h.strength = max(h.strength, ratio)
	}
	if ratio > 1 && ratio > v.ratio {
		v.Finding, v.ratio = Finding{Cause: cause, Statistic: which, base: s.mean[max(b.slow, usual)], contrast: j}, ratio
	}
	v.loud = v.loud || ratio > .5
}

// learn takes the size of a contrast into what is usual. Within a finding only the tail learns, for its first windows.
func (s *series) learn(h *Hop, j, sign int, a float64) {
	b := &bank[j]
	q := &s.square[sign][j]
	if h.open.Cause == None || h.windows < warmup {
		s.seen[sign][j]++
		seen := float64(s.seen[sign][j])
		most := math.Inf(1)
		if seen > 30 {
			most = 3 * math.Sqrt(float64(*q))
		}
		size := min(a, most)
		*q += float32(max(1/seen, 1/max(500, 6*constants[b.slow])) * (size*size - float64(*q)))
	}
	for o := range s.tail {
		least := max(2.58*math.Sqrt(float64(s.square[o][j])), 1e-3)
		switch tail := float64(s.tail[o][j]); {
		case h.windows == warmup:
			s.tail[o][j] = float32(least)
		case h.windows > warmup:
			step := b.down
			if o == sign && a > tail {
				step = b.up
			}
			if tail > least {
				step *= 1 - math.Log(tail/least)/8640
			}
			s.tail[o][j] = float32(tail * step)
		}
	}
}
