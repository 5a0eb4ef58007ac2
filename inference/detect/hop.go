package detect

import "math"

// Window holds the values of a hop in one window: their number, and their quantiles by nearest rank.
type Window struct {
	Count         uint64
	P50, P90, P99 float64
	Low           float64 // the least value or a low quantile, where HasLow
	HasLow        bool
}

// Hop is the state of one hop. The zero value is a hop that has shown nothing yet.
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
	last           [2]float64 // median and 99th percentile of the window before

	open        Finding // Cause 0: none
	age         uint32  // windows since it began, or since it came back
	calm        uint32  // calm windows in a row
	back        uint32  // windows in a row at the level before it
	bursts      bool    // one passed by itself while the hop was young
	p90         float32 // logarithm, of the window
	resting     bool    // the hop is as usual, and the open finding waits for what comes back
	recurrences [statistics]recurrence
	hasFormer   bool      // there is a level that was usual before one that a finding left
	accepted    *accepted // nil where no operator accepted a finding
}

// Cause is the kind of a change of a hop.
type Cause uint8

// The causes of findings.
const (
	none   Cause = iota
	Rise         // values above the usual ones
	Fall         // values below the usual ones
	Silent       // no values
	Stuck        // the same values again and again
)

func (c Cause) String() string {
	return [...]string{"none", "rise", "fall", "silent", "stuck"}[min(c, Stuck)]
}

// statistic is the statistic in which a finding was found.
type statistic uint8

// The statistics.
const (
	P50 statistic = iota
	P99
	Low        // the floor of the values: what all of them take at least
	Tail       // how much farther the 99th percentile is above the floor than the 90th
	statistics = 4

	withSeasons = 2 // statistics of which seasons are learnt
)

func (s statistic) String() string { return [...]string{"p50", "p99", "low", "tail"}[min(s, Tail)] }

// Finding is a change that began and has not ended.
type Finding struct {
	Cause     Cause
	Statistic statistic // of Rise and Fall
	Factor    float64   // of Rise and Fall: the value that was farthest from what had been usual, divided by that
	base      float32   // logarithm of the usual value before
	floor     float64   // that the hop had besides
	beside    float32   // logarithm of the present 90th percentile, of which a Tail is a multiple; 0 of others
	contrast  uint8     // that began it
	Adopted   bool      // it lasted so long that its level is the usual one now
}

// Late returns how many windows before the one of the finding the change may have begun. A mean follows a step late,
// and a contrast of two means is the greatest after this time. It is 0 of a change that the window itself shows.
func (f *Finding) Late() uint64 {
	if f.Cause != Rise && f.Cause != Fall {
		return 0
	}
	b := &bank[f.contrast]
	if b.fast == 0 {
		return 0
	}
	fast, slow := float64(constants[b.fast]), float64(constants[b.slow])
	return uint64(math.Round(math.Log(slow/fast) / (1/fast - 1/slow)))
}

// Usual returns the usual value before a Rise or a Fall. Of a Tail it is the 99th percentile that would be usual beside
// the present 90th.
func (f *Finding) Usual(cfg *Config) float64 {
	return max(0, math.Exp(float64(f.base+f.beside))-cfg.Floor-f.floor)
}

// Worst is the value of a Rise or a Fall that was farthest from what had been usual.
func (f *Finding) Worst(cfg *Config) float64 {
	return max(0, f.Factor*math.Exp(float64(f.base+f.beside))-cfg.Floor-f.floor)
}

// Grave reports whether a finding needs attention soon. Its values are a multiple of the usual ones, or as small a part
// of them, or there are none.
func (f *Finding) Grave(cfg *Config) bool {
	return f.Cause == Silent || f.Cause == Rise && f.Factor >= cfg.Grave || f.Cause == Fall && f.Factor <= 1/cfg.Grave
}

// Grave reports whether the open finding needs attention soon, as [Finding.Grave] does. A 99th percentile of few values
// is a single value, and anything is possible over a long time. It has to be a multiple of the usual in the mean of
// three windows.
func (h *Hop) Grave(cfg *Config, w *Window) bool {
	f := &h.open
	if f.Cause == Rise && f.Statistic == P99 && w.Count < loneCount {
		return math.Exp(float64(h.stats[P99].mean[bank[threeUsual].fast]-f.base)) >= cfg.Grave
	}
	return f.Grave(cfg)
}

// Open returns the finding that is open, if there is one.
func (h *Hop) Open() (Finding, bool) { return h.open, h.open.Cause != none }

// Warming reports whether the hop is too young to be judged.
func (h *Hop) Warming(cfg *Config) bool { return h.windows < cfg.warmup() }

// Learning reports whether findings may be usual for the hop. An hourly event takes an hour to see. A hop that had a
// finding and recovered by itself within its first six hours is bursty, and needs all of them. Nearly all false
// findings of bursts and jobs fall in that time, nearly all on hops that had findings before.
func (h *Hop) Learning() bool {
	return h.windows < learnSteady || h.windows < learnBursts && h.bursts
}

// windows that a hop learns.
const (
	learnSteady = 360
	learnBursts = 2160

	uninformativeMost = 12 // of few values or none, that end a finding
)

// Event is the effect of a window.
type Event uint8

// The events.
const (
	nothing Event = iota
	Begun
	Ended
	Stopped // a rise or a fall ended since its values are constant, as a finding of the next window shows
)

// Add takes the window of a moment. Windows come in their order; one without values is given as well, since silence is a
// finding.
func (h *Hop) Add(cfg *Config, at Moment, w Window) Event {
	if h.stats == nil && w.Count >= cfg.MinCount {
		h.stats = newStats(cfg)
	}
	cfg.prepare()
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
	h.p90 = 0
	if !cfg.Single {
		h.p90 = logarithm(w.P90 + cfg.Floor + h.floor)
	}
	stuck := h.repeat(cfg, &w)
	var v verdict
	if !h.active() && w.Count < loneCount && !cfg.Single && !stuck {
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
		if x.has[i] {
			h.stats[i].step(h, cfg, statistic(i), &x, &v)
		} else if s := &h.stats[i]; !h.active() {
			s.onset = s.mean
		}
	}
	return v
}

// newStats makes what is remembered of the statistics of a hop.
func newStats(cfg *Config) []series {
	n := statistics
	if cfg.Single {
		n = 1
	}
	stats := make([]series, n)
	for i := range min(n, withSeasons) {
		stats[i].seasonal = new(seasonal)
	}
	return stats
}

// fade lets runs of windows without values that passed be forgotten within a day.
func (h *Hop) fade(part float32) { h.longest -= h.longest * part }

// limits of the logarithm of a probability, below which a run is no chance any more.
const (
	silentLimit = -15.8
	stuckLimit  = -16.1
)

// silence counts a window without values. An open finding ends when the hop falls silent, which is a finding of its
// own. A hop of few values has to be known for longer. A hop that was silent before has to be silent for longer than
// then.
func (h *Hop) silence(cfg *Config) Event {
	h.emptyRun++
	known := h.windows >= learnBursts || h.windows >= cfg.warmup() && float64(h.logCount) >= math.Log(fewValues)
	silent := known && float64(h.emptyRun)*math.Log(max(float64(h.emptyShare), .005)) < silentLimit && float32(h.emptyRun) > 1.5*h.longest
	switch h.open.Cause {
	case none:
		if silent && !h.silenceUsual {
			h.begin(Finding{Cause: Silent})
			for i := range h.stats {
				h.stats[i].onset = h.stats[i].mean
			}
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
		return h.end()
	}
	return h.addUninformative(false)
}

// addUninformative counts a window with too few values for the open finding, and ends the finding after a while, or
// when the hop is silent.
func (h *Hop) addUninformative(silent bool) Event {
	h.age++
	h.calm, h.back = 0, 0
	if h.uninformative++; silent || h.uninformative >= uninformativeMost {
		return h.end()
	}
	return nothing
}

// repeat counts windows whose values are those of the window before, and reports whether they are too many for chance.
// A few values are the same by chance wherever most packets take the same time.
func (h *Hop) repeat(cfg *Config, w *Window) bool {
	idle := cfg.Idle && (w.P50 == 0 || cfg.Single && w.P50 <= cfg.Floor) && (w.P99 <= cfg.Floor || cfg.Single) // one packet is as long as another
	same := h.windows > 1 && w.P50 == h.last[P50] && (w.P99 == h.last[P99] || cfg.Single) && !idle && !cfg.Steady
	h.last = [2]float64{w.P50, w.P99}
	if h.repeatRun++; !same {
		h.repeatRun = 0
	}
	stuck := h.repeatRun > 0 && (w.Count >= fewValues || cfg.Single) && h.windows >= cfg.warmup() && float64(h.repeatRun)*math.Log(max(float64(h.repeatShare), .01)) < stuckLimit
	if h.open.Cause == none && !idle { // an idle one is no evidence of how often others repeat themselves
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
	h.open, h.age, h.calm, h.back, h.resting = f, 0, 0, 0, false
	h.recurrence().begin(f.Cause)
}

// end ends the finding that is open.
func (h *Hop) end() Event {
	h.recurrence().end()
	h.open, h.resting = Finding{}, false
	return Ended
}

// active reports whether the hop is not as usual, by the finding that is open.
func (h *Hop) active() bool { return h.open.Cause != none && !h.resting }

// settle begins or ends a finding by what was found in a window.
func (h *Hop) settle(cfg *Config, stuck bool, found *verdict) Event {
	if stuck && cfg.Stopped && (h.open.Cause == Rise || h.open.Cause == Fall) {
		h.end()
		return Stopped
	}
	if !h.active() {
		return h.settleUsual(cfg, stuck, found)
	}
	h.age++
	h.updateWorst()
	if h.calm++; found.loud || stuck {
		h.calm = 0
	}
	if h.back++; found.away || stuck {
		h.back = max(h.back, backLoss+1) - backLoss - 1
	}
	switch {
	case h.calm >= uint32(cfg.EndAfter), h.back >= h.needed() && h.age < uint32(cfg.Adopt):
		return h.pass(cfg)
	case h.age == uint32(cfg.Adopt):
		h.adopt()
	}
	return nothing
}

// settleUsual begins a finding, or lets one come back, on a hop that is as usual so far.
func (h *Hop) settleUsual(cfg *Config, stuck bool, found *verdict) Event {
	resting := h.resting
	switch {
	case stuck && !resting:
		h.begin(Finding{Cause: Stuck})
		return Begun
	case found.ratio > 1 && h.returnToFormer(found):
		return nothing
	case found.ratio > 1 && resting && found.Cause != h.open.Cause:
		return h.end() // what begins with the next window is another finding
	case found.ratio > 1 && resting:
		h.comeBack(&found.Finding)
		return nothing
	case found.ratio > 1:
		h.begin(found.Finding)
		h.updateWorst()
		return Begun
	case found.doubt:
		h.doubt = min(h.doubt+doubtStep, doubtMost)
	default:
		if h.doubt = max(h.doubt, 1) - 1; h.doubt == 0 && len(h.pendingWindows) > 0 {
			h.release(cfg, len(h.pendingWindows))
		}
	}
	for i := range h.recurrences {
		h.recurrences[i].rest()
	}
	if resting && h.recurrence().over() {
		return h.end()
	}
	return nothing
}

// pass lets what is open pass: what was usual before it is so again. A finding that comes back by itself rests.
func (h *Hop) pass(cfg *Config) Event {
	h.bursts = h.bursts || h.windows < learnBursts
	if h.open.Cause <= Fall {
		for i := range h.stats {
			copy(h.stats[i].mean[previous+1:], h.stats[i].onset[previous+1:])
		}
	}
	if h.open.Cause <= Fall && h.age < uint32(cfg.Adopt) && h.recurrence().comesBack() {
		h.resting = true
		h.recurrence().end()
		return nothing
	}
	return h.end()
}

// adopt makes the level of a finding that lasted the usual one, and remembers the one before.
func (h *Hop) adopt() {
	for i := range h.stats {
		s := &h.stats[i]
		s.former = s.onset[usual]
		for k := usual + 1; k < means; k++ {
			s.mean[k] = s.mean[usual]
		}
		s.onset = s.mean
	}
	h.hasFormer = h.open.Cause <= Fall
	h.open.Adopted = true
}

// returnToFormer reports whether a change leads back to the level that was usual before a finding lasted so long that
// its own level became so. That is the late end of the finding and no other one: the former level is the usual one
// again.
func (h *Hop) returnToFormer(found *verdict) bool {
	if !h.hasFormer {
		return false
	}
	for i := range min(len(h.stats), withSeasons) {
		s := &h.stats[i]
		if d := s.now - s.former; 4*d*d > found.most[i] {
			return false
		}
	}
	h.hasFormer = false
	for i := range h.stats {
		s := &h.stats[i]
		for k := previous + 1; k < means; k++ {
			s.mean[k] = s.former
		}
	}
	return true
}

// comeBack lets the finding that is resting be active again.
func (h *Hop) comeBack(found *Finding) {
	h.recurrence().begin(h.open.Cause)
	o := &h.open
	if o.Statistic != found.Statistic {
		*h.recurrenceOf(found.Statistic), o.Factor = *h.recurrence(), 0
	}
	o.Statistic, o.contrast, o.base = found.Statistic, found.contrast, found.base
	h.resting, h.age, h.calm, h.back, h.doubt, h.pendingWindows = false, 0, 0, 0, 0, nil
	h.updateWorst()
}

// updateWorst updates the worst value of the open finding.
func (h *Hop) updateWorst() {
	f := &h.open
	if f.Cause > Fall {
		return
	}
	if f.beside = 0; f.Statistic == Tail {
		f.beside = h.p90
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
