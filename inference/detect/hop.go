package detect

import "math"

// Window is what a hop showed in one window: how many values, and their quantiles by nearest rank.
type Window struct {
	Count         uint64
	P50, P90, P99 float64
}

// Hop is what is remembered of one hop. The zero value is a hop that has shown nothing yet.
type Hop struct {
	stats    [statistics]series
	seasons  [seasons]season
	spread   float32 // of the values in a window: mean of ln(p90/p50) by its normal quantile
	logCount float32 // mean of the logarithm of the count
	inverse  float32 // mean of 1/count over some nine windows
	windows  uint32  // that had enough values

	emptyShare  float32 // of windows without enough values
	emptyRun    uint32
	repeatShare float32 // of windows that repeat the values of the one before
	repeatRun   uint32
	last        [statistics]float64

	open     Finding // Cause 0: none
	age      uint32  // windows since it began
	calm     uint32  // calm windows in a row
	passed   float64 // findings of about a day that passed by themselves
	strength float64 // of the contrast that began the finding, at its most

}

// Cause says what happened to a hop.
type Cause uint8

// The causes of findings.
const (
	None   Cause = iota
	Rise         // values above what is usual
	Fall         // values below what is usual
	Silent       // no values
	Stuck        // the same values again and again
)

func (c Cause) String() string {
	return [...]string{"none", "rise", "fall", "silent", "stuck"}[min(c, Stuck)]
}

// Statistic is what a finding was found in.
type Statistic uint8

// The statistics.
const (
	P50 Statistic = iota
	P99
	statistics = 2
)

func (s Statistic) String() string { return [...]string{"p50", "p99"}[min(s, P99)] }

// Finding is a change that began and has not ended.
type Finding struct {
	Cause     Cause
	Statistic Statistic // of Rise and Fall
	Factor    float64   // of Rise and Fall: the value that was farthest from what had been usual, divided by that
	base      float32   // logarithm of what had been usual
	contrast  uint8     // that began it
}

// Grave reports whether a finding is one that somebody should look at soon: values that are four times what is usual, or a
// quarter of it, or none at all.
func (f *Finding) Grave() bool {
	return f.Cause == Silent || f.Cause == Rise && f.Factor >= 4 || f.Cause == Fall && f.Factor <= .25
}

// Open gives the finding that is open, if there is one.
func (h *Hop) Open() (Finding, bool) { return h.open, h.open.Cause != None }

// Learning reports whether the hop is too young to be judged.
func (h *Hop) Learning() bool { return h.windows < warmup }

// Event says what a window did.
type Event uint8

// The events.
const (
	Nothing Event = iota
	Begun
	Ended
)

// Add takes the window that ends at a time, in ns since 1970 or any other start of an hour. Windows come in their order;
// one without values is given as well, since silence is a finding.
func (h *Hop) Add(cfg *Config, end int64, w Window) Event {
	h.fade(cfg)
	h.turn(cfg, end)
	if w.Count < cfg.MinCount {
		return h.silence()
	}
	h.emptyShare -= h.emptyShare * .001
	h.emptyRun = 0
	h.windows++
	stuck := h.repeat(w)
	x := h.measure(cfg, w)
	best := h.judge(cfg, &x)
	return h.settle(stuck, best)
}

// fade lets what earlier findings raised go within a day.
func (h *Hop) fade(cfg *Config) {
	day := cfg.perDay()
	h.passed *= math.Exp(-1 / day)
	for i := range h.stats {
		for sign := range h.stats[i].raised {
			for g := range h.stats[i].raised[sign] {
				r := &h.stats[i].raised[sign][g]
				*r = max(0, *r-float32(.25/day))
			}
		}
	}
}

// limits of the logarithm of a probability, below which a run is no chance any more.
const (
	silentLimit = -15.8
	stuckLimit  = -16.1
)

// silence counts a window without values.
func (h *Hop) silence() (e Event) {
	h.emptyRun++
	chance := float64(h.emptyRun) * math.Log(max(float64(h.emptyShare), .005))
	if h.windows >= warmup && chance < silentLimit && h.open.Cause == None {
		h.begin(Finding{Cause: Silent})
		e = Begun
	}
	h.emptyShare += (1 - h.emptyShare) * .001
	if h.open.Cause != None {
		h.age++
		h.calm = 0
	}
	return e
}

// repeat counts windows whose values are those of the window before, and reports whether they are too many for chance.
func (h *Hop) repeat(w Window) bool {
	same := h.windows > 1 && w.P50 == h.last[P50] && w.P99 == h.last[P99]
	h.last = [statistics]float64{w.P50, w.P99}
	if h.repeatRun++; !same {
		h.repeatRun = 0
	}
	chance := float64(h.repeatRun) * math.Log(max(float64(h.repeatShare), .01))
	if h.open.Cause == None {
		r := float32(0)
		if same {
			r = 1
		}
		h.repeatShare += (r - h.repeatShare) * .002
	}
	return h.windows >= warmup && h.repeatRun > 0 && chance < stuckLimit
}

func (h *Hop) begin(f Finding) {
	h.open, h.age, h.calm = f, 0, 0
}

// settle begins or ends a finding by what was found in a window.
func (h *Hop) settle(stuck bool, found verdict) Event {
	switch {
	case h.open.Cause == None && stuck:
		h.begin(Finding{Cause: Stuck})
		return Begun
	case h.open.Cause == None && found.ratio > 1:
		h.begin(found.Finding)
		h.strength = found.ratio
		h.follow()
		return Begun
	case h.open.Cause == None:
		return Nothing
	}
	h.age++
	h.follow()
	if h.calm++; found.loud || stuck {
		h.calm = 0
	}
	switch {
	case h.calm >= endAfter:
		h.raise()
		h.open = Finding{}
		return Ended
	case h.age == learnAt: // the new level is the usual one
		for i := range h.stats {
			m := &h.stats[i].mean
			for k := usual + 1; k < means; k++ {
				m[k] = m[usual]
			}
		}
	}
	return Nothing
}

// follow keeps the worst value of a finding.
func (h *Hop) follow() {
	f := &h.open
	factor := math.Exp(float64(h.stats[f.Statistic].now - f.base))
	if f.Cause == Rise && factor > f.Factor || f.Cause == Fall && (f.Factor == 0 || factor < f.Factor) {
		f.Factor = factor
	}
}

// raise lets a finding that passed by itself raise the limits of its kind, so that a noisy hop is quiet: the second one
// of a day and all further ones.
func (h *Hop) raise() {
	if h.open.Cause > Fall || h.age >= 120 {
		return
	}
	h.passed++
	if h.passed <= 1.2 || h.strength <= 1 {
		return
	}
	s := &h.stats[h.open.Statistic]
	s.raised[h.open.Cause-Rise][group(h.open.contrast)] += float32(min(math.Ln2*h.passed, math.Log(2*h.strength)))
}

// group puts contrasts into fast and slow ones.
func group(contrast uint8) int {
	if contrast < fastContrasts {
		return 0
	}
	return 1
}
