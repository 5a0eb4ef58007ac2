package suspicion

import "math"

// fantHistory is how many values, and how many changes, FANT's test remembers.
const fantHistory = 5

// Deviation is FANT's test of one metric of one link as one probe sees it (appendix B). The formulas are images that
// are missing in the text. The text has two thresholds, of the deviation from historical values and of that of their
// changes. Its prototype takes values of more than twice the value before (section 6.3). This is one reading, with n =
// 5. The absolute deviation: |v − mean of the last n values| > θ₁ · that mean. The difference deviation: |change − mean
// of the last n changes| > θ₂ · the mean of their absolute values. A value is suspicious by either. Both need n values
// to compare with. Cost and memory are constant. The zero value has seen nothing.
type Deviation struct {
	values, changes ring
}

// ring holds the last numbers, the oldest at next once it is full.
type ring struct {
	v    [fantHistory]float64
	next uint8
	full bool
}

func (r *ring) add(v float64) {
	r.v[r.next] = v
	if r.next++; r.next == fantHistory {
		r.next, r.full = 0, true
	}
}

// means returns the mean, and that of the absolute values, summed from the oldest on.
func (r *ring) means() (mean, size float64) {
	for k := range fantHistory {
		v := r.v[(int(r.next)+k)%fantHistory]
		mean += v / fantHistory
		size += math.Abs(v) / fantHistory
	}
	return mean, size
}

func (r *ring) last() float64 { return r.v[(int(r.next)+fantHistory-1)%fantHistory] }

// Step takes the value of a cycle and reports whether it is suspicious. Values that are no numbers are left out.
func (d *Deviation) Step(v, theta1, theta2 float64) (suspicious bool) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return false
	}
	if d.values.full {
		mean, _ := d.values.means()
		suspicious = math.Abs(v-mean) > theta1*mean
	}
	if d.values.full || d.values.next > 0 {
		change := v - d.values.last()
		if d.changes.full {
			mean, size := d.changes.means()
			suspicious = suspicious || math.Abs(change-mean) > theta2*size
		}
		d.changes.add(change)
	}
	d.values.add(v)
	return suspicious
}

// Fant finds suspicious links as FANT does. It has a [Deviation] for every metric, link and probe, and a link is
// suspicious in a cycle if any of its own is. It has no hysteresis. Nothing is allocated after NewFant.
type Fant struct {
	theta1, theta2 float64
	metrics        int
	probes         [][]int32 // links in the order in which the probe crosses them
	at             []int32   // by probe: place of its first link among the deviations of a metric
	all            []Deviation
	suspicious     []bool // by link, in this cycle
}

// NewFant makes the test for some metrics. A probe lists its links in the order in which it crosses them; one that it
// crosses twice counts twice.
func NewFant(links, metrics int, probes [][]int32, theta1, theta2 float64) *Fant {
	f := &Fant{theta1: theta1, theta2: theta2, metrics: metrics, probes: probes, suspicious: make([]bool, links)}
	n := 0
	for _, p := range probes {
		f.at = append(f.at, int32(n))
		n += len(p)
	}
	f.all = make([]Deviation, n*metrics)
	return f
}

// Add takes the value of a metric that a probe has of its hop-th link in this cycle.
func (f *Fant) Add(metric, probe, hop int, v float64) {
	d := &f.all[(int(f.at[probe])+hop)*f.metrics+metric]
	if d.Step(v, f.theta1, f.theta2) {
		f.suspicious[f.probes[probe][hop]] = true
	}
}

// AppendSuspicious appends the links that are suspicious in this cycle, in their order, and begins the next one.
func (f *Fant) AppendSuspicious(to []int32) []int32 {
	for l, is := range f.suspicious {
		if is {
			to = append(to, int32(l))
		}
	}
	clear(f.suspicious)
	return to
}
