package events

import (
	"math"

	"github.com/hopscope/hopscope/inference/events/subject"
)

// A test decides whether an exporter loses too much. The hypothesis is that each of its numbers is lost with a
// probability of at most θ, the settings' loss_ratio. The lossScales alternatives are ratios spread evenly on a
// logarithmic scale between θ and nearly all. Each has a score, the logarithm of how much more likely the numbers are
// under it. The score begins anew wherever it would fall below 0 (a CUSUM). Under the hypothesis e^score is a
// supermartingale between these beginnings. So the mean time until one of the scores reaches ln(lossScales/lossError)
// is at least 1/lossError windows (Shin, Ramdas, Rinaldo, "E-detectors", 2024). This holds for any number of reports in
// each window, however it changes. A score that has reached that limit gives a lower bound above θ for the ratio of
// losses since the score began.
const (
	lossScales = 8
	// lossError bounds the false findings a window, where loss_ratio of an exporter's numbers are lost.
	lossError = 1e-6
	// lossLast is the number of windows whose reports may accompany the losses of the present one. A number is counted
	// as lost seconds after the reports around it came.
	lossLast = 3
	// fallen is the factor by which the ratio is below the finding's lower bound when the loss is over. The score that
	// shows it is fallenScore. Otherwise one in a hundred would reach it by chance.
	fallen      = 3
	fallenScore = 4.6
	// calmEnd is how many windows of that are enough where losses come in bursts, of which it takes many to see that
	// there are fewer.
	calmEnd = 60
	// idleEnd is the number of windows without a report after which the loss is unknown.
	idleEnd = 30
)

var lossLimit = math.Log(lossScales / lossError)

// numbers are consecutive windows of one exporter.
type numbers struct {
	score   float64
	lost    int64
	reports uint64
	since   int64 // start of the first, in ns since 1970
}

func (n *numbers) total() uint64 { return n.reports + uint64(max(n.lost, 0)) }

func (n *numbers) ratio() float64 {
	if n.lost <= 0 {
		return 0
	}
	return float64(n.lost) / float64(n.total())
}

// add takes one more window and judges it by how much more likely it is with the ratio r than with q.
func (n *numbers) add(start, end, lost int64, reports uint64, r, q float64) {
	if n.total() == 0 && n.lost == 0 {
		n.since = start
	}
	n.score += float64(lost)*math.Log(r/q) + float64(reports)*(math.Log1p(-r)-math.Log1p(-q))
	n.lost += lost
	n.reports += reports
	if !(n.score > 0) {
		*n = numbers{since: end}
	}
}

// bursts is how the losses of a finding are spread over its windows.
type bursts struct {
	windows int
	squares float64 // of the lost ones, over all of their window
	lost    int64
	all     uint64
}

func (b *bursts) add(lost int64, reports uint64) {
	n := reports + uint64(max(lost, 0))
	if n == 0 {
		return
	}
	b.windows++
	b.lost += lost
	b.all += n
	b.squares += float64(lost) * float64(lost) / float64(n)
}

// size returns the variance of the windows' losses over the variance of reports lost one by one. It is about the size
// of the bursts of losses.
func (b *bursts) size() float64 {
	if b.windows < 2 || b.lost <= 0 {
		return 1
	}
	return max(1, (b.squares*float64(b.all)/float64(b.lost)-float64(b.lost))/float64(b.windows-1))
}

func codeBursts(c *subject.Coder, b *bursts) {
	subject.Number(c, &b.windows)
	c.Float(&b.squares)
	subject.Number(c, &b.lost)
	subject.Number(c, &b.all)
}

// alternative returns the ratio of an alternative to theta, which is less than 1.
func alternative(k int, theta float64) float64 {
	top := max(0.9, (1+theta)/2)
	return theta * math.Pow(top/theta, float64(k+1)/lossScales)
}

func codeNumbers(c *subject.Coder, n *numbers) {
	c.Float(&n.score)
	subject.Number(c, &n.lost)
	subject.Number(c, &n.reports)
	subject.Number(c, &n.since)
}
