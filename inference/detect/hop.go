package detect

import "math"

// Window is what a hop showed in one window: how many values, and their quantiles by nearest rank.
type Window struct {
	Count         uint64
	P50, P90, P99 float64
}

// Hop is what is remembered of one hop. The zero value is a hop that has shown nothing yet.
type Hop struct {
	stats    []series // made with the first window that has values
	seasons  [seasons]season
	spread   float32 // of the values in a window: mean of ln(p90/p50) by its normal quantile
	logCount float32 // mean of the logarithm of the count
	inverse  float32 // mean of 1/count over some nine windows
	windows  uint32  // that had enough values

	floor          float64 // added to that of the configuration
	emptyShare     float32 // of windows without values, but for the present run of them
	emptyRun       uint32
	longest        float32  // run of windows without values that ended by itself
	uninformative  uint8    // windows in a row, while a finding is open, with too few values
	doubt          uint8    // grows with changes that few values show, and fades
	pendingWindows []Window // windows not learnt yet, whose finding has to come again
	silenceUsual   bool     // silence has become the usual state
	repeatShare    float32  // of windows that repeat the values of the one before
	repeatRun      uint32
	last           [statistics]float64

	open     Finding // Cause 0: none
	age      uint32  // windows since it began
	calm     uint32  // calm windows in a row
	back     uint32  // windows in a row at the level before it
	passed   float32 // findings of about a day that passed by themselves
	bursts   bool    // one passed by itself while the hop was young
	noisy    bool    // there were some, or they raised a limit
	strength float32 // of the contrast that began the finding, at its most
}

// Cause says what happened to a hop.
type Cause uint8

// The causes of findings.
const (
	none   Cause = iota
	Rise         // values above what is usual
	Fall         // values below what is usual
	Silent       // no values
	Stuck        // the same values again and again
)

func (c Cause) String() string {
	return [...]string{"none", "rise", "fall", "silent", "stuck"}[min(c, Stuck)]
}

// statistic is what a finding was found in.
type statistic uint8

// The statistics.
const (
	P50 statistic = iota
	P99
	statistics = 2
)

func (s statistic) String() string { return [...]string{"p50", "p99"}[min(s, P99)] }

// Finding is a change that began and has not ended.
type Finding struct {
	Cause     Cause
	Statistic statistic // of Rise and Fall
	Factor    float64   // of Rise and Fall: the value that was farthest from what had been usual, divided by that
	base      float32   // logarithm of what had been usual
	floor     float64   // that the hop had besides
	contrast  uint8     // that began it
}

// Usual is the value that was usual before a Rise or a Fall.
func (f *Finding) Usual(cfg *Config) float64 {
	return max(0, math.Exp(float64(f.base))-cfg.Floor-f.floor)
}

// Worst is the value of a Rise or a Fall that was farthest from what had been usual.
func (f *Finding) Worst(cfg *Config) float64 {
	return max(0, f.Factor*math.Exp(float64(f.base))-cfg.Floor-f.floor)
}

// Grave reports whether a finding is one that somebody should look at soon: values that are a multiple of what is usual, or
// as small a part of it, or none at all.
func (f *Finding) Grave(cfg *Config) bool {
	return f.Cause == Silent || f.Cause == Rise && f.Factor >= cfg.Grave || f.Cause == Fall && f.Factor <= 1/cfg.Grave
}

// Open gives the finding that is open, if there is one.
func (h *Hop) Open() (Finding, bool) { return h.open, h.open.Cause != none }

// Warming reports whether the hop is too young to be judged.
func (h *Hop) Warming(cfg *Config) bool { return h.windows < cfg.warmup() }

// Learning reports whether findings may be what the hop does now and then. What is usual in an hour takes an hour to see. A
// hop that was told of and came back by itself within its first six hours bursts, and needs all of them: nearly all false
// findings of bursts and jobs are told then, and nearly all of them on hops that were told of before.
func (h *Hop) Learning() bool {
	return h.windows < learnSteady || h.windows < learnBursts && h.bursts
}

// windows that a hop learns.
const (
	learnSteady = 360
	learnBursts = 2160

	uninformativeMost = 12 // of few values or none, that end a finding
)

// Event says what a window did.
type Event uint8

// The events.
const (
	nothing Event = iota
	Begun
	Ended
)

// Add takes the window of a moment. Windows come in their order; one without values is given as well, since silence is a
// finding.
func (h *Hop) Add(cfg *Config, at Moment, w Window) Event {
	if h.stats == nil && w.Count >= cfg.MinCount {
		h.stats = make([]series, statistics)
		if cfg.Single {
			h.stats = make([]series, 1)
		}
	}
	h.fade(at.fade)
	h.turn(&at)
	if w.Count == 0 {
		return h.silence(cfg)
	}
	h.endSilence()
	if w.Count < cfg.MinCount {
		return h.thin()
	}
	h.windows++
	h.uninformative = 0
	stuck := h.repeat(cfg, &w)
	var v verdict
	if h.open.Cause == none && w.Count < loneCount && !cfg.Single && !stuck {
		v = h.try(cfg, &w)
	} else {
		v = h.learnWindow(cfg, &w)
	}
	return h.settle(cfg, stuck, &v)
}

// learnWindow compares a window with the past, and learns it.
func (h *Hop) learnWindow(cfg *Config, w *Window) verdict {
	var x measured
	h.measure(cfg, w, &x)
	for k := range h.seasons {
		h.seasons[k].count++
	}
	v := verdict{few: w.Count < fewValues && !cfg.Single, lone: w.Count < loneCount, p90: x.p90}
	for i := range h.stats {
		h.stats[i].step(h, cfg, statistic(i), &x, &v)
	}
	return v
}

// fade lets what earlier findings raised go within a day.
func (h *Hop) fade(part float32) {
	if !h.noisy {
		return
	}
	h.passed -= h.passed * part
	h.longest -= h.longest * part
	h.noisy = h.passed > 1e-3 || h.longest > .5
	for i := range h.stats {
		for sign := range h.stats[i].raised {
			for g := range h.stats[i].raised[sign] {
				r := &h.stats[i].raised[sign][g]
				*r = max(0, *r-.25*part)
				h.noisy = h.noisy || *r > 0
			}
		}
	}
}

// limits of the logarithm of a probability, below which a run is no chance any more.
const (
	silentLimit = -15.8
	stuckLimit  = -16.1
)

// silence counts a window without values. A finding that is open ends when the hop falls silent, which is one of its own. A
// hop of few values has to be known for longer, and one that was silent for a while before has to be so for longer than then.
func (h *Hop) silence(cfg *Config) Event {
	h.emptyRun++
	known := h.windows >= learnBursts || h.windows >= cfg.warmup() && float64(h.logCount) >= math.Log(fewValues)
	silent := known && float64(h.emptyRun)*math.Log(max(float64(h.emptyShare), .005)) < silentLimit && float32(h.emptyRun) > 1.5*h.longest
	switch h.open.Cause {
	case none:
		if silent && !h.silenceUsual {
			h.begin(Finding{Cause: Silent})
			return Begun
		}
		return nothing
	case Silent:
		silent = h.age >= uint32(cfg.Adopt)
		h.silenceUsual, h.uninformative = silent, 0
	}
	return h.addUninformative(silent)
}

// endSilence ends a run of windows without values. A run with a finding does not prevent that of the next one.
func (h *Hop) endSilence() {
	rate := max(.001, 1/float32(h.windows+1))
	if h.emptyRun > 0 {
		h.emptyShare = 1 - (1-h.emptyShare)*float32(math.Pow(float64(1-rate), float64(h.emptyRun)))
		if h.open.Cause != Silent {
			h.longest = max(h.longest, float32(min(h.emptyRun, 12)))
			h.noisy = true
		}
	}
	h.emptyShare -= h.emptyShare * rate
	h.emptyRun, h.silenceUsual = 0, false
}

// thin handles a window of too few values: it shows only that the hop is not silent.
func (h *Hop) thin() Event {
	switch h.open.Cause {
	case none:
		return nothing
	case Silent:
		h.open = Finding{}
		return Ended
	}
	return h.addUninformative(false)
}

// addUninformative counts a window with too few values for the open finding, and ends the finding after a while, or when the hop is silent.
func (h *Hop) addUninformative(silent bool) Event {
	h.age++
	h.calm, h.back = 0, 0
	if h.uninformative++; silent || h.uninformative >= uninformativeMost {
		h.open = Finding{}
		return Ended
	}
	return nothing
}

// repeat counts windows whose values are those of the window before, and reports whether they are too many for chance.
func (h *Hop) repeat(cfg *Config, w *Window) bool {
	idle := cfg.Idle && (w.P50 == 0 || cfg.Single && w.P50 <= cfg.Floor) && (w.P99 <= cfg.Floor || cfg.Single) // one packet is as long as another
	same := h.windows > 1 && w.P50 == h.last[P50] && (w.P99 == h.last[P99] || cfg.Single) && !idle && !cfg.Steady
	h.last = [statistics]float64{w.P50, w.P99}
	if h.repeatRun++; !same {
		h.repeatRun = 0
	}
	stuck := h.repeatRun > 0 && h.windows >= cfg.warmup() && float64(h.repeatRun)*math.Log(max(float64(h.repeatShare), .01)) < stuckLimit
	if h.open.Cause == none && !idle { // an idle one says nothing of how often others repeat themselves
		r := float32(0)
		if same {
			r = 1
		}
		rate := float32(.002)
		if h.windows <= cfg.warmup() {
			rate = 1 / float32(h.windows)
		}
		h.repeatShare += (r - h.repeatShare) * rate
	}
	return stuck
}

func (h *Hop) begin(f Finding) {
	h.doubt, h.pendingWindows = 0, nil
	f.floor = h.floor
	h.open, h.age, h.calm, h.back = f, 0, 0, 0
	for i := range h.stats {
		h.stats[i].backSum = 0
	}
}

// settle begins or ends a finding by what was found in a window.
func (h *Hop) settle(cfg *Config, stuck bool, found *verdict) Event {
	switch {
	case h.open.Cause == none && stuck:
		h.begin(Finding{Cause: Stuck})
		return Begun
	case h.open.Cause == none && found.ratio > 1:
		h.begin(found.Finding)
		h.strength = found.ratio
		h.updateWorst()
		return Begun
	case h.open.Cause == none && found.doubt:
		h.doubt = min(h.doubt+doubtStep, doubtMost)
		return nothing
	case h.open.Cause == none:
		if h.doubt = max(h.doubt, 1) - 1; h.doubt == 0 && len(h.pendingWindows) > 0 {
			h.release(cfg, len(h.pendingWindows))
		}
		return nothing
	}
	h.age++
	h.updateWorst()
	if h.calm++; found.loud || stuck {
		h.calm = 0
	}
	if h.back++; found.away || stuck {
		h.back = 0
	}
	switch {
	case h.calm >= uint32(cfg.EndAfter), h.returned(cfg):
		h.raise()
		h.open = Finding{}
		return Ended
	case h.age == uint32(cfg.Adopt): // the new level is the usual one
		for i := range h.stats {
			m := &h.stats[i].mean
			for k := usual + 1; k < means; k++ {
				m[k] = m[usual]
			}
		}
	}
	return nothing
}

// updateWorst updates the worst value of the open finding.
func (h *Hop) updateWorst() {
	f := &h.open
	if f.Cause > Fall {
		return
	}
	s := &h.stats[f.Statistic]
	far := s.now
	if fast := bank[f.contrast].fast; fast > 0 { // the contrast that began it compares a mean, beside which a single window may be anything
		if m := s.mean[fast]; f.Cause == Rise && m > far || f.Cause == Fall && m < far {
			far = m
		}
	}
	factor := math.Exp(float64(far - f.base))
	if f.Cause == Rise && factor > f.Factor || f.Cause == Fall && (f.Factor == 0 || factor < f.Factor) {
		f.Factor = factor
	}
}

// raise lets a finding that passed by itself raise the limits of its kind, so that a noisy hop is quiet: the second one
// of a day and all further ones.
func (h *Hop) raise() {
	if h.open.Cause > Fall {
		return
	}
	h.bursts = h.bursts || h.windows < learnBursts
	if h.age >= 120 {
		return
	}
	h.passed++
	h.noisy = true
	if h.passed <= 1.2 || h.strength <= 1 {
		return
	}
	s := &h.stats[h.open.Statistic]
	r := &s.raised[h.open.Cause-Rise][group(h.open.contrast)]
	*r = min(*r+float32(min(math.Ln2*float64(h.passed), math.Log(2*float64(h.strength)))), 20)
}

// group puts contrasts into fast and slow ones.
func group(contrast uint8) int {
	if contrast < fastContrasts {
		return 0
	}
	return 1
}
