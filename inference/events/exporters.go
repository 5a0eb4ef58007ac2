package events

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hopscope/hopscope/inference"
)

// ExporterConfig are the settings of the detector of exporters that lose reports or fall silent.
type ExporterConfig struct {
	LossRatio      float64 `yaml:"loss_ratio" doc:"Share of an exporter's reports that may be lost. A finding needs evidence that more are, such as chance gives once in a million windows." range:"0..1"`
	LossSevere     float64 `yaml:"loss_severe" doc:"Share of an exporter's reports whose loss is critical, by the same evidence." range:"0..1"`
	SilenceAfter   int     `yaml:"silence_after" doc:"Windows without a report that are silence at the earliest. A finding needs a pause that is less likely than one in a million by the exporter's own history." range:"1..100000"`
	SilenceHistory int     `yaml:"silence_history" doc:"Windows with reports that are such a history at the earliest." range:"1..100000"`
	SilentSevere   int     `yaml:"silence_severe" doc:"Windows of silence that are critical." range:"1..1000000"`
}

var defaultExporterConfig = ExporterConfig{LossRatio: 0.0001, LossSevere: 0.05, SilenceAfter: 3, SilenceHistory: 30, SilentSevere: 30}

func (c *ExporterConfig) problems() (errs []error) {
	if c.LossSevere < c.LossRatio {
		errs = append(errs, fmt.Errorf("loss_severe: %g is less than the loss_ratio of %g", c.LossSevere, c.LossRatio))
	}
	if c.SilentSevere < c.SilenceAfter {
		errs = append(errs, fmt.Errorf("silence_severe: %d is less than the silence_after of %d", c.SilentSevere, c.SilenceAfter))
	}
	return errs
}

const (
	// silenceError is the probability of a pause by the exporter's own history below which it is silence.
	silenceError = 1e-6
	// habitWithin is the time in which a silence that was told has to come back, in ns, to be one of the exporter's pauses:
	// that of an exporter which sleeps at night comes back within a day and a half.
	habitWithin = 36 * 3600e9
	// The history of exporters that their tracker has forgotten is kept for absentWindows, of maxAbsent at most.
	absentWindows = 60480
	maxAbsent     = 4096
)

// exporters finds exporters that lose reports, and those that fall silent.
type exporters struct {
	*lifecycle[inference.ExporterKey, exporter]
	unheard map[inference.ExporterKey]bool // in the present window
	outages outages
}

// exporter is what is remembered of one exporter.
type exporter struct {
	lossHistory
	silenceHistory
}

type lossHistory struct {
	scales [lossScales]numbers
	before [lossLast]uint64 // reports in the windows before, the last one first
	loss   *inference.Finding

	// While a finding is open:
	bound  float64 // of its ratio
	all    numbers // since what it tells of began
	bursts bursts
	after  numbers // in which the loss may be over
	calm   int     // windows of after
	silent int     // windows in a row without reports
}

type silenceHistory struct {
	pauses
	quiet   int // windows in a row without reports
	limit   int // of the present pause; 0 until it is computed
	usual   int // longest pause that it made, fading
	silence *inference.Finding

	published bool  // a finding about the present pause was published
	last      int   // length of the last pause that had a finding
	lastAt    int64 // its end
	habit     bool  // that pause counts as usual
}

func (c *coder) exporterState(e *exporter) {
	for i := range e.scales {
		c.numbers(&e.scales[i])
	}
	for i := range e.before {
		number(c, &e.before[i])
	}
	c.finding(&e.loss)
	c.float(&e.bound)
	c.numbers(&e.all)
	c.bursts(&e.bursts)
	c.numbers(&e.after)
	number(c, &e.calm)
	number(c, &e.silent)

	c.pauses(&e.pauses)
	number(c, &e.quiet)
	number(c, &e.limit)
	number(c, &e.usual)
	c.finding(&e.silence)
	c.flag(&e.published)
	number(c, &e.last)
	number(c, &e.lastAt)
	c.flag(&e.habit)
}

func newExporters(j *journal) exporters {
	return exporters{
		newLifecycle(j, inference.ExporterKey.Compare, (*coder).exporter, (*coder).exporterState), map[inference.ExporterKey]bool{},
		newOutages(j),
	}
}

func (x exporters) step(w *inference.Window) {
	clear(x.unheard)
	for _, k := range w.Unheard {
		x.unheard[k] = true
	}
	x.outage(w)
	for i := range w.Exporters {
		s := &w.Exporters[i]
		if x.unheard[s.ExporterKey] {
			// The exporter is alive. How much was lost, and whether it paused, is unknown.
			if s.Reports+s.Malformed > 0 {
				x.judgeSilence(&x.observe(s.ExporterKey, math.MaxInt).silenceHistory, s)
			}
			continue
		}
		e := x.observe(s.ExporterKey, math.MaxInt) // a window has as many as the tracker of exporters has room for
		x.judgeLoss(&e.lossHistory, s, w.Start)
		x.judgeSilence(&e.silenceHistory, s)
	}
	// Who sleeps longer than the tracker remembers is known again when it comes back.
	absent := 0
	x.forEachAbsent(func(k inference.ExporterKey, e *exporter, windows int) bool {
		if x.unheard[k] {
			return false
		}
		text := k.String() + " is forgotten"
		x.end(&e.loss, text)
		x.end(&e.silence, text)
		e.lossHistory = lossHistory{}
		if e.windows < float64(x.cfg.SilenceHistory) || windows > absentWindows || absent == maxAbsent {
			return true
		}
		absent++
		e.quiet++
		return false
	})
}

// judgeLoss weighs what is told as lost in this window.
func (x exporters) judgeLoss(e *lossHistory, s *inference.ExporterStats, start int64) {
	theta := max(x.cfg.LossRatio, 1e-9)
	if theta >= 1 {
		x.end(&e.loss, s.ExporterKey.String()+" may lose everything by the settings")
		return
	}
	lost, reports := s.Lost, s.Reports
	if lost != 0 { // among reports of windows before, too
		reports = max(reports, slices.Max(e.before[:]))
	}
	copy(e.before[1:], e.before[:])
	e.before[0] = s.Reports
	if e.loss != nil {
		e.all.lost += lost
		e.all.reports += s.Reports
	}
	var worst *numbers
	bound := 0.0
	for k := range e.scales {
		n := &e.scales[k]
		if lost == 0 && n.score == 0 { // stays so
			continue
		}
		n.add(start, x.now, lost, reports, alternative(k, theta), theta)
		if lost > 0 && n.score >= lossLimit {
			if b := atLeast(n.lost, n.total(), lossLimit); b > bound {
				worst, bound = n, b
			}
		}
	}
	if worst != nil {
		f := exporterFinding(inference.ExporterLoss, s.ExporterKey)
		if bound >= x.cfg.LossSevere {
			f.Severity = inference.Critical
		}
		f.Value, f.Baseline = worst.ratio(), x.cfg.LossRatio
		f.Text = fmt.Sprintf("%s lost %d of %d reports since %s, %s, at least %s",
			s.ExporterKey, worst.lost, worst.total(), clock(worst.since), inference.Percent(f.Value, 3), inference.PercentAtLeast(bound, 2))
		if e.loss == nil {
			e.all = *worst
			e.after, e.bursts, e.calm, e.silent, e.bound = numbers{since: x.now}, bursts{}, 0, 0, 0
		}
		e.bound = max(e.bound, bound)
		x.publish(&e.loss, f)
	}
	if e.loss == nil {
		return
	}
	if e.silent++; s.Reports > 0 || lost != 0 {
		e.silent = 0
	}
	if e.silent >= idleEnd {
		x.endLoss(e, s, fmt.Sprintf("and then it sent nothing in %d windows", e.silent))
		return
	}
	// The loss is over when it is shown to be well below what was found, or below the settings' ratio if that is more.
	q := max(theta, e.bound/fallen)
	e.calm++
	if e.after.add(start, x.now, lost, reports, q/10, q); e.after.total() == 0 && e.after.lost == 0 && reports > 0 {
		e.calm = 0
	}
	e.bursts.add(lost, reports)
	limit := fallenScore
	if e.calm < calmEnd {
		limit *= e.bursts.size()
	}
	if e.after.score < limit || e.calm < x.cfg.EndAfter {
		return
	}
	if less := atLeast(e.after.lost, e.after.total(), lossLimit); less > theta {
		e.bound = less // it fell, and is still too much; what it was before says no more
		e.scales = [lossScales]numbers{}
		e.after, e.calm = numbers{since: x.now}, 0
		return
	}
	x.endLoss(e, s, fmt.Sprintf("and then %d of %d", e.after.lost, e.after.total()))
}

func (x exporters) endLoss(e *lossHistory, s *inference.ExporterStats, then string) {
	e.loss.Value = e.all.ratio()
	x.end(&e.loss, fmt.Sprintf("%s lost %d of %d reports since %s, %s, %s",
		s.ExporterKey, e.all.lost, e.all.total(), clock(e.all.since), inference.Percent(e.loss.Value, 3), then))
	before := e.before
	*e = lossHistory{before: before}
}

func (x exporters) judgeSilence(e *silenceHistory, s *inference.ExporterStats) {
	if s.Reports+s.Malformed > 0 {
		if e.silence != nil {
			e.silence.Value = float64(e.quiet)
			x.end(&e.silence, fmt.Sprintf("%s reports again after %s", s.ExporterKey, plural(uint64(e.quiet), "silent window")))
		}
		x.learn(e)
		if s.Reports+s.Malformed > s.Events { // reports about events alone promise no others
			e.addReporting()
		}
		return
	}
	e.quiet++
	if e.silence == nil {
		if x.outages.covers(e.quiet) {
			e.published = true
			return
		}
		if e.quiet < x.cfg.SilenceAfter || e.windows < float64(x.cfg.SilenceHistory) {
			return
		}
		if e.limit == 0 {
			e.limit = e.pauses.limit(silenceError)
		}
		if e.quiet < e.limit {
			return
		}
	}
	e.published = true
	f := exporterFinding(inference.ExporterSilence, s.ExporterKey)
	if e.quiet >= x.cfg.SilentSevere {
		f.Severity = inference.Critical
	}
	f.Value, f.Baseline = float64(e.quiet), float64(e.usual)
	f.Text = fmt.Sprintf("%s sent nothing in %d windows, its longest pause lately was %d; a pause as long is less likely than one in a million by its history of %.0f windows",
		s.ExporterKey, e.quiet, e.usual, e.windows)
	x.publish(&e.silence, f)
}

// learn adds the pause that ends now to the history. One with a finding is no usual pause of the exporter,
// unless such silences come back.
func (x exporters) learn(e *silenceHistory) {
	length, published := e.quiet, e.published
	e.quiet, e.limit, e.published = 0, 0, false
	if length == 0 {
		return
	}
	if published {
		again := e.last > 0 && length/2 <= e.last && x.now-e.lastAt <= habitWithin
		if again && !e.habit {
			e.add(e.last)
		}
		e.last, e.lastAt, e.habit = length, x.now, again
		if !again {
			return
		}
	}
	e.add(length)
	e.usual = max(length, e.usual*7/8)
}

// clock writes a time as people read it.
func clock(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05") }

// exporterFinding is a warning about an exporter, without value and text.
func exporterFinding(kind inference.Kind, k inference.ExporterKey) inference.Finding {
	return inference.Finding{Kind: kind, Severity: inference.Warning, Exporter: k.Addr, Node: k.Node, HWID: k.HWID}
}
