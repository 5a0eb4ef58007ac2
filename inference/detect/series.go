package detect

import "math"

// series is what is remembered of one statistic: means, and how far each contrast strays to each side.
type series struct {
	now    float32 // logarithm of the present value
	mean   [means]float32
	scale  [contrasts][2]scale // upward and downward
	raised [2][2]float32       // logarithm of what earlier findings raised limits by; upward and downward, of fast and slow contrasts

	onset   [means]float32 // means before the finding that is open
	backSum float32        // sum of differences from onset, of windows back at that level

	recurring [seasons]float32 // difference that the last two visits of this time of a period share
	sum       [seasons]float32 // of differences from the reference, in the bin under way
	season    profile
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

// Limits that a step keeps while a finding is open.
const (
	usualLimit = 0 // of windowUsual
	openLimit  = 1 // of the contrast that began the finding, if it is another one
)

// scale says how far a contrast strays to one side when nothing is wrong.
type scale struct {
	square float32 // mean of squares
	tail   float32 // quantile that one window in 200 exceeds
	seen   uint16  // windows that the mean of squares is of, up to more than matters
}

// measured is a window, ready to be compared.
type measured struct {
	value   [statistics]float32 // logarithms
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
	if !cfg.Single {
		x.value[P99] = logarithm(w.P99 + floor)
		x.p90 = logarithm(w.P90 + floor)
		t := &ofRank[min(w.Count, manyValues)]
		if h.open.Cause == none {
			h.spread += max(n, .01) * ((x.p90-x.value[P50])*t.inverse90 - h.spread)
		}
		x.value[P99] += t.lack99 * h.spread
	}
	for k := range x.rate {
		x.rate[k] = max(inverse[k], n)
	}
	young := sqrt(n)
	for j := range x.start {
		f := (1 + root[bank[j].slow]*young) * float32(cfg.Strict)
		x.start[j] = f * f
	}
}

// sampling is the variance of the logarithm of a quantile of n values, in squares of their spread.
func (s statistic) sampling(inverse float32) float32 {
	if s == P50 {
		return 1.57 * inverse // π/2
	}
	return min(13.9*inverse, .3)
}

// verdict is what all contrasts of a window say.
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

// step compares a window with the past of a statistic and learns from it.
func (s *series) step(h *Hop, cfg *Config, which statistic, x *measured, v *verdict) {
	y := x.value[which]
	judged := h.windows >= cfg.warmup()
	if which == P50 {
		v.medianFell = y < s.mean[usual]-clearly
	}
	if h.windows == 1 {
		for k := range s.mean {
			s.mean[k] = y
		}
	}
	s.now = y
	ref := s.mean[reference]
	for k := range s.sum {
		s.sum[k] += y - ref
	}
	if judged && (s.recurring[0] != 0 || s.recurring[1] != 0) {
		y = s.excuse(y, ref)
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
		stray[ofWindow] = sqrt(1 + part*(min(1, now/often)-1))
		stray[ofMeans] = sqrt(1 + part*(min(1, lately/often)-1))
	}
	calm := h.open.Cause == none
	if calm {
		s.onset = s.mean
	}
	squares := calm || !judged
	tails := squares || h.age < 18 || h.age > uint32(cfg.Adopt)
	var limits [2][2]float32 // squares, upward and downward
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
		c := fast - s.mean[b.slow]
		sign := upward
		if c <= 0 {
			sign = downward
		}
		if judged {
			limit := s.limit(j, sign, square[g]*x.start[j])
			if j == windowUsual {
				v.most[which] = limit
			}
			if 4*c*c > limit && (j != windowPrevious || (y-s.mean[usual])*c > b.floor*abs(c)) { // coming back from one window is no news
				v.beyond(h, cfg, s, which, uint8(j), sign, sqrt(c*c/limit))
			}
			if !calm && (j == windowUsual || j == int(h.open.contrast)) {
				k := usualLimit
				if j != windowUsual {
					k = openLimit
				}
				limits[k][sign], limits[k][1-sign] = limit, s.limit(j, 1-sign, square[g]*x.start[j])
			}
		}
		c *= unstray[g]
		if squares {
			s.scale[j][sign].learn(c*c, b, judged)
		}
		if tails && judged {
			s.learn(j, sign, c*c)
		}
	}
	if !calm {
		s.compareBefore(h, y, &limits, v)
	}
	for k := range s.mean {
		s.mean[k] += x.rate[k] * (y - s.mean[k])
	}
}

// limit is the square of that of a contrast to one side.
func (s *series) limit(j, sign int, factor float32) float32 {
	b, sc := &bank[j], &s.scale[j][sign]
	limit := b.limit * b.limit * sc.square
	if tail := tailLimit * tailLimit * sc.tail * sc.tail; tail > limit {
		limit = tail
	}
	limit *= factor
	if r := s.raised[sign][group(uint8(j))]; r > 0 {
		limit *= float32(math.Exp(2 * float64(r)))
	}
	if least := b.floor * b.floor; limit < least {
		return least
	}
	return limit
}

// beyond takes a contrast that is beyond half of its limit into the verdict.
func (v *verdict) beyond(h *Hop, cfg *Config, s *series, which statistic, j uint8, sign int, ratio float32) {
	if cfg.Rising && sign == downward {
		return
	}
	v.loud = true
	cause := Rise + Cause(sign)
	if o := &h.open; o.Cause == cause && o.Statistic == which && o.contrast == j {
		h.strength = max(h.strength, ratio)
	}
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
	clearly   = .1  // difference of logarithms that is not chance

	// A change that a single value shows has to be seen twice within five windows, one that few values show three times.
	doubtStep, doubtMost = 5, 10
	doubtLone, doubtFew  = 1, 6
)

// shown reports whether more than a few values show a change. A tail that is not there is none: where values fall, the median
// does. Of few values one that is high says nothing, unless others are high as well or more of them follow.
func (v *verdict) shown(h *Hop, s *series, which statistic, sign int) bool {
	need := uint8(doubtLone)
	switch {
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

// learn takes the square of a contrast into what is usual. A side on which a hop was never seen to stray does not take the
// first value for what is usual there.
func (sc *scale) learn(square float32, b *contrast, judged bool) {
	rate := b.rate
	if sc.seen < enough {
		sc.seen++
		if r := 1 / float32(sc.seen); r > rate {
			rate = r
		}
	}
	most := 9 * sc.square
	if sc.seen <= 30 {
		if least := b.floor * b.floor / 36; most < least {
			most = least
		}
	}
	if square > most && (judged || sc.seen > 30) {
		square = most
	}
	sc.square += rate * (square - sc.square)
}

const (
	enough    = 8192        // windows that more than fill any mean of squares
	leastTail = 2.58 * 2.58 // of the mean of squares, as a square
)

// learn takes the square of a contrast into the tails of both its sides.
func (s *series) learn(j, sign int, square float32) {
	for o := range s.scale[j] {
		sc := &s.scale[j][o]
		least := leastTail * sc.square
		if least < 1e-6 {
			least = 1e-6
		}
		if sc.tail == 0 { // of the first window that is judged
			sc.tail = sqrt(least)
			continue
		}
		tail := sc.tail * sc.tail
		step := bank[j].down
		if o == sign && square > tail {
			step = bank[j].up
		}
		if tail > least {
			step *= 1 - logRatio(tail, least)*(1./(2*8640))
		}
		sc.tail *= step
	}
}
