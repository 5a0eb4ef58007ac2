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
	// habitWithin is the time, in ns, within which a silence with a finding has to come back to be one of the exporter's pauses: that
	// of an exporter which sleeps at night comes back within a day and a half.
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

// exporter is the state of one exporter.
type exporter struct {
	lossHistory
	silenceHistory
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
	c.lossHistory(&e.lossHistory)

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
	// An exporter that sleeps longer than the tracker remembers is recognised when it comes back.
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

// judgeLoss weighs the numbers counted as lost in this window.
func (x exporters) judgeLoss(e *lossHistory, s *inference.ExporterStats, start int64) {
	among := s.Reports
	if s.Lost != 0 { // among reports of windows before, too
		among = max(among, slices.Max(e.before[:]))
	}
	copy(e.before[1:], e.before[:])
	e.before[0] = s.Reports
	x.judgeRatio(e, &ratioTest{
		limit: x.cfg.LossRatio, severe: x.cfg.LossSevere, start: start,
		finding: exporterFinding(inference.ExporterLoss, s.ExporterKey),
		subject: &s.ExporterKey, verb: "lost", of: "reports", all: "may lose everything by the settings", idle: "it sent nothing",
	}, s.Lost, s.Reports, among)
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
	return inference.Finding{Kind: kind, Severity: inference.Warning, Exporter: k.Addr, Node: k.Node, HWID: k.HWID, Nameless: k.Nameless}
}
