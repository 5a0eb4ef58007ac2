package detect

import "math"

// series is the state of one statistic: means, and how far each contrast strays to each side.
type series struct {
	now   float32 // logarithm of the present value
	begun bool    // there was one
	mean  [means]float32
	scale [contrasts][2]scale // upward and downward

	onset  [means]float32 // means before the finding that is open
	former float32        // usual level before the present one became it; of use while Hop.hasFormer

	seasonal *seasonal // nil where seasons are not learnt
}

// The sides of a contrast.
const (
	upward   = 0
	downward = 1
)

// Contrasts stray by their fast part: the window itself, or a mean.
const (
	ofWindow = 0
	ofMeans  = 1
)

// measured is a window, ready to be compared.
type measured struct {
	value   [statistics]float32 // logarithms
	has     [statistics]bool
	p90     float32
	inverse float32 // of the count
	usual   float32 // inverse of the usual count

	rate  [means]float32     // at which means move
	start [contrasts]float32 // factor of limits, squared
}

// measure takes logarithms. The 99th percentile of few values lies lower than that of many, and is corrected for it.
func (h *Hop) measure(cfg *Config, w *Window, x *measured) {
	n := 1 / float32(h.windows)
	x.inverse = 1 / float32(w.Count)
	h.logCount += max(n, .0003) * (logarithm(float64(w.Count)) - h.logCount)
	h.inverse += (x.inverse - h.inverse) * max(1./9, n)
	x.usual = float32(math.Exp(-float64(h.logCount)))
	floor := cfg.Floor + h.floor
	x.value[P50] = logarithm(w.P50 + floor)
	x.has[P50] = true
	if !cfg.Single {
		x.value[P99] = logarithm(w.P99 + floor)
		x.has[P99] = true
		x.p90 = logarithm(w.P90 + floor)
		t := &ofRank[min(w.Count, manyValues)]
		if h.open.Cause == none {
			h.spread += max(n, .01) * ((x.p90-x.value[P50])*t.inverse90 - h.spread)
		}
		x.value[P99] += t.lack99 * h.spread
		if x.has[Low] = w.HasLow && w.Count >= loneCount; x.has[Low] {
			x.value[Low] = logarithm(w.Low + floor)
		}
		if x.has[Tail] = w.Count >= tailCount; x.has[Tail] {
			x.value[Tail] = x.value[P99] - x.p90
		}
	}
	for k := range x.rate {
		x.rate[k] = max(inverse[k], n)
	}
	for j := range x.start {
		x.start[j] = 1 + 2*constants[bank[j].slow]*n
	}
}

// sampling is the variance of the logarithm of a quantile of n values, in squares of their spread.
func (s statistic) sampling(inverse float32) float32 {
	switch s {
	case P50, Low:
		return 1.57 * inverse // π/2
	}
	return min(13.9*inverse, .3)
}

// verdict is the combined result of all contrasts of a window.
type verdict struct {
	Finding
	ratio float32 // of the contrast that is farthest beyond its limit
	loud  bool    // some contrast is beyond half of its limit
	doubt bool    // some contrast is beyond its limit by a single value
	away  bool    // some value is not back at the level before the finding that is open

	// Of the window:
	few        bool                // it has few values
	lone       bool                // its 99th percentile is a single one
	p90        float32             // logarithm
	most       [statistics]float32 // square of the limit of the value itself, of each statistic
	medianFell bool                // its median is lower than usual
}

// step compares a window with the past of a statistic and learns from it. Faults are not learnt: while a finding is
// active, its windows move no level, and limits only as far as admit allows.
func (s *series) step(h *Hop, cfg *Config, which statistic, x *measured, v *verdict) {
	y := x.value[which]
	judged := h.windows >= cfg.warmup()
	if which == P50 {
		v.medianFell = y < s.mean[usual]-clearly
	}
	if h.windows == 1 || !s.begun {
		s.begun = true
		for k := range s.mean {
			s.mean[k] = y
		}
	}
	s.now = y
	if s.seasonal != nil {
		y = s.seasonal.excuse(s, y, judged)
	}

	// A window of few values is drawn to the usual level, and its contrasts may stray more.
	now, often := which.sampling(x.inverse), which.sampling(x.usual)
	if now > often {
		y = s.mean[usual] + sqrt(often/now)*(y-s.mean[usual])
	}
	stray := [2]float32{ofWindow: 1, ofMeans: 1}
	if lately := which.sampling(h.inverse); judged && (now < often || lately < often) {
		square := (s.scale[windowUsual][upward].square + s.scale[windowUsual][downward].square) / 2
		part := min(1, h.spread*h.spread*often/(square+1e-12)) // of the straying that is sampling
		stray[ofWindow] = max(sqrt(1+part*(min(1, now/often)-1)), .1)
		stray[ofMeans] = max(sqrt(1+part*(min(1, lately/often)-1)), .1)
	}
	active := h.active()
	if !active {
		s.onset = s.mean
	}
	square, unstray := [2]float32{stray[0] * stray[0], stray[1] * stray[1]}, [2]float32{1 / stray[0], 1 / stray[1]}
	for j := range bank {
		b := &bank[j]
		fast, g := y, ofWindow
		if b.fast > 0 {
			fast = s.mean[b.fast] + (y-s.mean[b.fast])*x.rate[b.fast]
		}
		if j >= firstOfMeans {
			g = ofMeans
		}
		slow := s.onset[b.slow]
		if b.slow == previous {
			slow = s.mean[previous]
		}
		c := fast - slow
		sign := upward
		if c <= 0 {
			sign = downward
		}
		sc := &s.scale[j][sign]
		outside, slowly := false, b.fast > 1 && h.windows > learnSteady // a slow mean that creeps away widens its limits that little before it is found
		if judged && (j == windowUsual || sc.near(abs(c)*unstray[g])) {
			limit := sc.limit(cfg, b, square[g]*x.start[j])
			outside = c*c > limit
			if j == windowUsual {
				v.most[which] = limit
			}
			c := h.accepted.change(which, fast, slow)
			if 4*c*c > limit && (j != windowPrevious || (y-s.onset[usual])*c > b.floor*abs(c)) { // coming back from one window is no news
				v.beyond(h, cfg, s, which, uint8(j), sign, sqrt(c*c/limit))
			}
		}
		c *= unstray[g]
		if !active {
			sc.learn(c*c, b, judged, slowly)
		}
		if judged {
			if before := *sc; !outside && !active {
				sc.stray(abs(c), b, slowly)
			} else if h.learnsOutside(which) {
				sc.stray(abs(c), b, slowly)
				if sc.limit(cfg, b, 1) > max(before.limit(cfg, b, 1), cfg.grave()) {
					sc.tail, sc.excess, sc.beyond = before.tail, before.excess, before.beyond
				}
			}
			s.scale[j][1-sign].stray(0, b, slowly)
		}
	}
	if active && which == h.open.Statistic {
		v.away = h.open.Cause > Fall || s.isAway(y, v.most[which], &h.open)
	}
	for k := range s.mean {
		d := y - s.mean[k]
		if k >= usual && judged && !active {
			d = s.clip(y) - s.mean[k]
		}
		s.mean[k] += x.rate[k] * d
	}
}

// clip brings a value so near to the usual level that a fault moves that little before it is found.
func (s *series) clip(y float32) float32 {
	const most = 3 // root mean squares
	up := most * max(sqrt(s.scale[windowUsual][upward].square), .02)
	down := most * max(sqrt(s.scale[windowUsual][downward].square), .02)
	return min(max(y, s.mean[usual]-down), s.mean[usual]+up)
}

// beyond takes a contrast that is beyond half of its limit into the verdict.
func (v *verdict) beyond(h *Hop, cfg *Config, s *series, which statistic, j uint8, sign int, ratio float32) {
	if sign == downward && (cfg.Rising || which >= Low) { // a lower floor or a shorter tail is no finding
		return
	}
	v.loud = true
	cause := Rise + Cause(sign)
	if ratio > 1 && !v.shown(h, s, which, sign) {
		return
	}
	if ratio > 1 && ratio > v.ratio {
		v.Finding, v.ratio = Finding{Cause: cause, Statistic: which, base: s.mean[max(bank[j].slow, usual)], contrast: j}, ratio
	}
}

const (
	fewValues = 20  // fewer are those of a few flows, which come and go
	loneCount = 100 // values of which the 99th percentile is the highest one
	tailCount = 400 // values of which the 99th percentile is beside the 90th what several of them are
	clearly   = .1  // difference of logarithms that is not chance

	// A change that a single value shows has to be seen twice within five windows, one that few values show three times.
	doubtStep, doubtMost = 5, 10
	doubtLone, doubtFew  = 1, 6
)

// shown reports whether more than a few values show a change. A missing tail shows none: where values fall, the median
// does. A single high value among few shows none, unless others are high as well or more of them follow.
func (v *verdict) shown(h *Hop, s *series, which statistic, sign int) bool {
	need := uint8(doubtLone)
	switch {
	case which >= Low:
		return true
	case which == P99 && sign == downward:
		return !v.few && v.medianFell
	case v.few:
		need = doubtFew
	case which == P50 || !v.lone || v.p90 >= s.mean[usual]:
		return true
	}
	d := s.now - s.mean[usual]
	if sign == downward {
		d = -d
	}
	if d < clearly { // it was so in a window before
		return false
	}
	v.doubt = true
	return h.doubt >= need
}
