package events

import (
	"math"
	"math/bits"
	"sort"

	"github.com/hopscope/hopscope/inference/events/subject"
)

// pauses is the history of an exporter's pauses. It counts how many of its windows with reports were followed by a
// pause of at least 1, 2, 4, 8 and so on windows. Old ones fade.
//
// The chance of a pause is the product of the steps from each length to twice that. A step is the share of pauses of a
// length that went on so long. Where there are few or none, a step is continued from the one before it in two ways. If
// reports come at random, a pause has no memory, and each step is the square of the one before it. If pauses have no
// typical length, as of senders that people switch on and off, steps are equal. Both are weighed by how well they
// predict the known steps. The counts of a step are combined with its prediction, which counts as much as one pause.
type pauses struct {
	windows float64 // with reports
	longer  [pauseLevels]float64
}

const (
	pauseLevels = 21 // up to a million windows
	// pauseMemory is how many windows with reports it takes until a pause has faded to a third.
	pauseMemory = 1 << 16
	// priorPauses is how many pauses the foretold share of a step counts for.
	priorPauses = 1
)

// addReporting counts a window with reports.
func (p *pauses) addReporting() {
	const fade = 1 - 1.0/pauseMemory
	p.windows = p.windows*fade + 1
	for i := range p.longer {
		if p.longer[i] == 0 {
			break // no longer ones either
		}
		p.longer[i] *= fade
	}
}

// add counts a pause.
func (p *pauses) add(length int) {
	for i := range p.longer {
		if length < 1<<i {
			break
		}
		p.longer[i]++
	}
}

// tail is the extrapolation of a history. It holds the logarithm of the chance of a pause of at least 1, 2, 4 and so on
// windows in both ways. It also holds the weight of each way.
type tail struct {
	log    [2][pauseLevels]float64
	weight [2]float64
}

func (p *pauses) tail() (t tail) {
	var evidence [2]float64
	for way := range t.log {
		step := (p.longer[0] + 1) / (p.windows + 2)
		t.log[way][0] = math.Log(step)
		for i := 1; i < pauseLevels; i++ {
			next := step
			if way == 0 && i > 1 { // the first two steps are both one window
				next *= step
			}
			next = min(max(next, 1e-15), 1-1e-15)
			had, went := p.longer[i-1], p.longer[i]
			step = (went + priorPauses*next) / (had + priorPauses)
			if had > 0 {
				evidence[way] += logBeta(went+priorPauses*next, had-went+priorPauses*(1-next)) - logBeta(priorPauses*next, priorPauses*(1-next))
			}
			t.log[way][i] = t.log[way][i-1] + math.Log(step)
		}
	}
	t.weight[0] = 1 / (1 + math.Exp(evidence[1]-evidence[0]))
	t.weight[1] = 1 - t.weight[0]
	return t
}

// chance is the probability that a window with reports is followed by a pause of at least that length, 1 or more.
func (t *tail) chance(length int) float64 {
	i := min(bits.Len(uint(length))-1, pauseLevels-1)
	part := float64(length-1<<i) / float64(int(1)<<i)
	sum := 0.0
	for way, log := range t.log {
		l := log[i]
		if i+1 < pauseLevels {
			l += part * (log[i+1] - l)
		}
		sum += t.weight[way] * math.Exp(l)
	}
	return sum
}

// limit is the length from which on a pause is less likely than that.
func (p *pauses) limit(unlikely float64) int {
	t := p.tail()
	return 1 + sort.Search(1<<(pauseLevels-1), func(n int) bool { return t.chance(n+1) < unlikely })
}

func logBeta(a, b float64) float64 {
	x, _ := math.Lgamma(a)
	y, _ := math.Lgamma(b)
	z, _ := math.Lgamma(a + b)
	return x + y - z
}

func codePauses(c *subject.Coder, p *pauses) {
	c.Float(&p.windows)
	n := len(p.longer)
	for n > 0 && p.longer[n-1] == 0 {
		n--
	}
	subject.Number(c, &n)
	c.Check("lengths of pauses", n <= len(p.longer))
	if !c.OK() {
		return
	}
	for i := range n {
		c.Float(&p.longer[i])
		c.Check("number of pauses", p.longer[i] >= 0 && (i == 0 || p.longer[i] <= p.longer[i-1]) && (i < n-1 || p.longer[i] > 0))
	}
	c.Check("number of windows", p.windows >= 0)
}
