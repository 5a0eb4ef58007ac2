package findings

import (
	"math"
	"math/rand/v2"

	"github.com/hopscope/hopscope/inference/detect"
)

// Time in windows of ten seconds.
const (
	hour = 360
	day  = 24 * hour
)

// Background is a way in which a hop is quiet.
type Background struct {
	Name  string
	group string  // of the table: its rows are means over groups
	scale float64 // of a value of 1: 10 µs for latencies, a byte for queues
	law   law
	Count int

	// begin returns a function that moves the level (a logarithm) and the number of values from window to window, or
	// nil.
	begin func(r *rand.Rand) func(t int) (level float64, count int)
}

const (
	latencyScale = 1e4
	queueScale   = 1
)

// The groups of backgrounds.
const (
	groupSampled = "A" // nothing varies but the sample
	groupWanders = "B" // the level wanders
	groupRhythms = "C" // known to an operator: days, jobs, counts that swing
	groupQueue   = "Q" // queues in bytes
	groupUnseen  = "U" // none of the constants were chosen on them
)

func constant(name, group string, l law, count int) Background {
	return Background{Name: name, group: group, scale: latencyScale, law: l, Count: count}
}

func wandering(name string, phi, innovation float64) Background {
	b := constant(name, groupWanders, logNormal(.3), 200)
	b.begin = func(r *rand.Rand) func(int) (float64, int) {
		level := r.NormFloat64() * innovation / math.Sqrt(1-phi*phi)
		return func(int) (float64, int) {
			level = phi*level + innovation*r.NormFloat64()
			return level, 0
		}
	}
	return b
}

// daily is the logarithm of the mean time in a queue whose load follows the time of day. The time is five times as
// long at noon as at night.
func daily(t int) float64 {
	return -math.Log(1-.57+.28*math.Cos(2*math.Pi*float64(t)/day)) - .6
}

// bursting is on for a minute in every ten, at random.
func bursting(r *rand.Rand, factor float64) func(int) (float64, int) {
	on := false
	return func(int) (float64, int) {
		if on {
			on = r.Float64() > 1./6
		} else {
			on = r.Float64() < 1./60
		}
		if on {
			return math.Log(factor), 0
		}
		return 0, 0
	}
}

// Backgrounds are all ways in which hops are quiet.
var Backgrounds = backgrounds()

func backgrounds() []Background {
	var all []Background
	for _, sigma := range []struct {
		name  string
		sigma float64
	}{{"0.3", .3}, {"0.5", .5}, {"1", 1}} {
		for _, n := range []struct {
			name  string
			count int
		}{{"20", 20}, {"200", 200}, {"5000", 5000}} {
			all = append(all, constant("lognormal "+sigma.name+", "+n.name+" values", groupSampled, logNormal(sigma.sigma), n.count))
		}
	}
	all = append(all, wandering("AR(1) .9, 10 %", .9, .1), wandering("AR(1) .98, 3 %", .98, .03), wandering("AR(1) .98, 10 %", .98, .1))

	queueing := constant("M/M/1 over the day", groupRhythms, exponential, 200)
	queueing.begin = func(r *rand.Rand) func(int) (float64, int) {
		at := r.IntN(day)
		return func(t int) (float64, int) { return daily(t + at), 0 }
	}
	job := constant("hourly job", groupRhythms, logNormal(.3), 200)
	job.begin = func(r *rand.Rand) func(int) (float64, int) {
		at := r.IntN(hour)
		return func(t int) (float64, int) {
			if (t+at)%hour < 18 {
				return math.Log(8), 0
			}
			return 0, 0
		}
	}
	swing := constant("swinging count", groupRhythms, logNormal(.5), 200)
	swing.begin = func(r *rand.Rand) func(int) (float64, int) {
		at := r.IntN(day)
		return func(t int) (float64, int) {
			n := math.Exp(math.Log(316) + .95*math.Log(15.8)*math.Cos(2*math.Pi*float64(t+at)/day) + .4*r.NormFloat64())
			return 0, int(min(max(n, 20), 6000))
		}
	}
	bursts := constant("bursts × 8", groupRhythms, logNormal(.3), 200)
	bursts.begin = func(r *rand.Rand) func(int) (float64, int) { return bursting(r, 8) }
	all = append(all, queueing, job, swing, bursts)

	queue := func(name string, l law) Background {
		return Background{Name: name, group: groupQueue, scale: queueScale, law: l, Count: 200}
	}
	dayQueue := queue("queue, 1500 B, busy by day", packets(.5, 3, 1500))
	dayQueue.begin = queueing.begin
	burstQueue := queue("queue, 1500 B, bursts × 8", packets(.3, 2, 1500))
	burstQueue.begin = bursts.begin
	all = append(all,
		queue("queue, 1500 B, 30 % busy", packets(.3, 2, 1500)), queue("queue, 1500 B, 3 % busy", packets(.03, 2, 1500)),
		queue("queue, 1500 B, 0.01 % busy", packets(.0001, 2, 1500)), queue("queue, 80 B cells, 30 % busy", packets(.3, 4, 80)),
		queue("queue, empty", func(float64) float64 { return 0 }), dayQueue, burstQueue)

	all = append(all, constant("Pareto 2", groupUnseen, pareto, 200), constant("bimodal", groupUnseen, bimodal, 200),
		constant("constant", groupUnseen, func(float64) float64 { return 1 }, 200))
	return all
}

// Fault is a fault of a hop, from a window on.
type Fault struct {
	Name   string
	within int // windows in which a finding counts
	// change replaces the quantiles of a quiet window, k windows after the onset. The law of returns the quantile
	// that was usual when the fault began, by its probability. It returns the number of values.
	change func(k int, v *[len(ranks)]float64, of law, count int) int
}

func scaled(name string, within int, factor func(k int) float64) Fault {
	return Fault{name, within, func(k int, v *[len(ranks)]float64, _ law, count int) int {
		f := factor(k)
		for i := range v {
			v[i] *= f
		}
		return count
	}}
}

func step(f float64) func(int) float64 { return func(int) float64 { return f } }

func ramp(f float64, windows int) func(int) float64 {
	return func(k int) float64 { return math.Pow(f, min(1, float64(k+1)/float64(windows))) }
}

const faultLasts = 3 * hour

// faults are all that happens to hops.
var faults = []Fault{
	scaled("× 1.5", faultLasts, step(1.5)),
	scaled("× 2", faultLasts, step(2)),
	scaled("× 4", faultLasts, step(4)),
	{"tail of 5 % × 4", faultLasts, func(_ int, v *[len(ranks)]float64, of law, count int) int {
		tail := of(.95)
		for i := range v {
			if v[i] > tail {
				v[i] *= 4
			}
		}
		return count
	}},
	{"median × 1.5", faultLasts, func(_ int, v *[len(ranks)]float64, of law, count int) int {
		median := of(.5)
		for i := range v {
			v[i] = max(v[i], 1.5*median)
		}
		return count
	}},
	scaled("ramp × 10 in 30 min", faultLasts, ramp(10, 180)),
	scaled("ramp × 10 in 3 h", faultLasts, ramp(10, 1080)),
	scaled("× 20 every 2nd window", faultLasts, func(k int) float64 { return []float64{20, 1}[k%2] }),
	scaled("× 4 for 3 of 9 windows", faultLasts, func(k int) float64 {
		if k%9 < 3 {
			return 4
		}
		return 1
	}),
	scaled("microburst × 4", 3, func(k int) float64 {
		if k == 0 {
			return 4
		}
		return 1
	}),
	scaled("stuck at 0", faultLasts, step(0)),
	{"stuck", faultLasts, func(_ int, v *[len(ranks)]float64, of law, count int) int {
		for i, q := range ranks {
			v[i] = 1.02 * of(q)
		}
		return count
	}},
	{"silence", faultLasts, func(int, *[len(ranks)]float64, law, int) int { return 0 }},
	scaled("drop to half", faultLasts, step(.5)),
}

// series is one hop over time. The same background and seed make the same windows.
type series struct {
	background *Background
	r          *rand.Rand
	move       func(t int) (float64, int)
	t, k       int
	onset      float64 // scale of the window in which a fault began
}

// newSeries begins a hop.
func newSeries(b *Background, seed, hop uint64) *series {
	s := &series{background: b, r: rand.New(rand.NewPCG(seed, hop))}
	if b.begin != nil {
		s.move = b.begin(s.r)
	}
	return s
}

// Next returns the next window, of a hop with a fault unless it is nil.
func (s *series) Next(f *Fault) detect.Window {
	b := s.background
	level, count := 0.0, 0
	if s.move != nil {
		level, count = s.move(s.t)
	}
	s.t++
	if count == 0 {
		count = b.Count
	}
	scale := b.scale * math.Exp(level)
	u := orderStatistics(s.r, count)
	var v [len(ranks)]float64
	for i := range v {
		v[i] = scale * b.law(u[i])
	}
	if f != nil {
		if s.k == 0 {
			s.onset = scale
		}
		count = f.change(s.k, &v, func(u float64) float64 { return s.onset * b.law(u) }, count)
		s.k++
	}
	for i := range v {
		v[i] = math.Round(v[i])
	}
	return windowOf(count, v)
}

// windowOf is a window of some quantiles.
func windowOf(count int, v [len(ranks)]float64) detect.Window {
	return detect.Window{Count: uint64(count), Low: v[0], HasLow: true, P50: v[1], P90: v[2], P99: v[3]}
}
