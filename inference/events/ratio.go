package events

import (
	"fmt"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
	"github.com/hopscope/hopscope/inference/loss"
)

// lossHistory is the state of a subject that can lose a share of its items. An exporter loses reports, and an interface
// packets.
type lossHistory struct {
	scales [lossScales]numbers
	before [lossLast]uint64 // reports in the windows before, the last one first
	loss   *inference.Finding

	// While a finding is open:
	bound  float64 // of its ratio
	all    numbers // since its condition began
	bursts bursts
	after  numbers // in which the loss may be over
	calm   int     // windows of after
	silent int     // windows in a row without reports
}

func codeLossHistory(c *subject.Coder, e *lossHistory) {
	for i := range e.scales {
		codeNumbers(c, &e.scales[i])
	}
	for i := range e.before {
		subject.Number(c, &e.before[i])
	}
	c.Finding(&e.loss)
	c.Float(&e.bound)
	codeNumbers(c, &e.all)
	codeBursts(c, &e.bursts)
	codeNumbers(c, &e.after)
	subject.Number(c, &e.calm)
	subject.Number(c, &e.silent)
}

// ratioTest holds the limits by which a share is judged, and the words for it.
type ratioTest struct {
	limit, severe float64
	start         int64             // of the window
	finding       inference.Finding // without value and text
	unknown       bool              // the number of items that were not lost is unknown, so that there is no share

	// Parts of the texts: "<subject> <verb> 3 of 9 <of>", "<subject> <all>", "and then <idle> in 30 windows".
	subject             fmt.Stringer
	note                string // at the end of the first
	verb, of, all, idle string
}

// text returns a text about how many were lost, since when, and which share that is.
func (t *ratioTest) text(n *numbers) string {
	if t.unknown {
		return fmt.Sprintf("%s %s %d %s since %s", t.subject, t.verb, n.lost, t.of, clock(n.since))
	}
	return fmt.Sprintf("%s %s %d of %d %s since %s, %s", t.subject, t.verb, n.lost, n.total(), t.of, clock(n.since), inference.Percent(n.ratio(), 3))
}

// judgeRatio weighs what was lost in this window beside reports that were not, and among more of them where they can be
// of earlier windows.
func judgeRatio(j *subject.Journal, e *lossHistory, t *ratioTest, lost int64, reports, among uint64) {
	theta := max(t.limit, 1e-9)
	if theta >= 1 {
		j.End(&e.loss, t.subject.String()+" "+t.all)
		return
	}
	if e.loss != nil {
		e.all.lost += lost
		e.all.reports += reports
	}
	var worst *numbers
	bound := 0.0
	for k := range e.scales {
		n := &e.scales[k]
		if lost == 0 && n.score == 0 { // stays so
			continue
		}
		n.add(t.start, j.Now, lost, among, alternative(k, theta), theta)
		if lost > 0 && n.score >= lossLimit {
			if b := loss.AtLeast(n.lost, n.total(), lossLimit); b > bound {
				worst, bound = n, b
			}
		}
	}
	if worst != nil {
		f := t.finding
		if bound >= t.severe && !t.unknown {
			f.Severity = inference.Critical
		}
		f.Value, f.Baseline, f.Text = worst.ratio(), t.limit, t.text(worst)
		if !t.unknown {
			f.Text += ", at least " + inference.PercentAtLeast(bound, 2)
		}
		f.Text += t.note
		if e.loss == nil {
			e.all = *worst
			e.after, e.bursts, e.calm, e.silent, e.bound = numbers{since: j.Now}, bursts{}, 0, 0, 0
		}
		e.bound = max(e.bound, bound)
		j.Publish(&e.loss, f)
	}
	if e.loss != nil {
		judgeEnd(j, e, t, lost, reports, among)
	}
}

// judgeEnd ends the finding of a loss when the loss is shown to be low enough. It is well below the found one, or below
// the limit if that is more.
func judgeEnd(j *subject.Journal, e *lossHistory, t *ratioTest, lost int64, reports, among uint64) {
	theta := max(t.limit, 1e-9)
	if e.silent++; reports > 0 || lost != 0 {
		e.silent = 0
	}
	if e.silent >= idleEnd {
		endLoss(j, e, t, fmt.Sprintf("and then %s in %d windows", t.idle, e.silent))
		return
	}
	q := max(theta, e.bound/fallen)
	e.calm++
	if e.after.add(t.start, j.Now, lost, among, q/10, q); e.after.total() == 0 && e.after.lost == 0 && among > 0 {
		e.calm = 0
	}
	e.bursts.add(lost, among)
	limit := fallenScore
	if e.calm < calmEnd {
		limit *= e.bursts.size()
	}
	if e.after.score < limit || e.calm < j.Cfg.EndAfter {
		return
	}
	if less := loss.AtLeast(e.after.lost, e.after.total(), lossLimit); less > theta {
		e.bound = less // it fell, and is still too much; its value before does not count
		e.scales = [lossScales]numbers{}
		e.after, e.calm = numbers{since: j.Now}, 0
		return
	}
	endLoss(j, e, t, fmt.Sprintf("and then %d of %d", e.after.lost, e.after.total()))
}

func endLoss(j *subject.Journal, e *lossHistory, t *ratioTest, then string) {
	e.loss.Value = e.all.ratio()
	j.End(&e.loss, t.text(&e.all)+", "+then)
	before := e.before
	*e = lossHistory{before: before}
}
