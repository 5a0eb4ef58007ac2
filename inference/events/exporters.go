package events

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
)

const (
	// silenceError is the probability of a pause by the exporter's own history below which it is silence.
	silenceError = 1e-6
	// habitWithin is the time, in ns, within which a silence with a finding has to recur to be one of the exporter's
	// pauses. The silence of an exporter that sleeps at night recurs within a day and a half.
	habitWithin = 36 * 3600e9
	// The history of exporters that their tracker has forgotten is kept for absentWindows, of maxAbsent at most.
	absentWindows = 60480
	maxAbsent     = 4096
)

// exporters finds exporters that lose reports, and those that fall silent.
type exporters struct {
	*subject.Table[inference.ExporterKey, exporter]
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

func codeExporterState(c *subject.Coder, e *exporter) {
	codeLossHistory(c, &e.lossHistory)

	codePauses(c, &e.pauses)
	subject.Number(c, &e.quiet)
	subject.Number(c, &e.limit)
	subject.Number(c, &e.usual)
	c.Finding(&e.silence)
	c.Flag(&e.published)
	subject.Number(c, &e.last)
	subject.Number(c, &e.lastAt)
	c.Flag(&e.habit)
}

func newExporters(j *subject.Journal) exporters {
	return exporters{
		subject.NewTable(j, inference.ExporterKey.Compare, (*subject.Coder).Exporter, codeExporterState), map[inference.ExporterKey]bool{},
		newOutages(j),
	}
}

func (x exporters) Step(w *inference.Window) {
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
				x.judgeSilence(&x.Observe(s.ExporterKey, math.MaxInt).silenceHistory, s)
			}
			continue
		}
		e := x.Observe(s.ExporterKey, math.MaxInt) // a window has as many as the tracker of exporters has room for
		x.judgeLoss(&e.lossHistory, s, w.Start)
		x.judgeSilence(&e.silenceHistory, s)
	}
	// An exporter that sleeps longer than the tracker remembers is recognised when it comes back.
	absent := 0
	x.ForEachAbsent(func(k inference.ExporterKey, e *exporter, windows int) bool {
		if x.unheard[k] {
			return false
		}
		text := k.String() + " is forgotten"
		x.End(&e.loss, text)
		x.End(&e.silence, text)
		e.lossHistory = lossHistory{}
		if e.windows < float64(x.Cfg.SilenceHistory) || windows > absentWindows || absent == maxAbsent {
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
	judgeRatio(x.Journal, e, &ratioTest{
		limit: x.Cfg.LossRatio, severe: x.Cfg.LossSevere, start: start,
		finding: exporterFinding(inference.ExporterLoss, s.ExporterKey),
		subject: &s.ExporterKey, verb: "lost", of: "reports", all: "may lose everything by the settings", idle: "it sent nothing",
	}, s.Lost, s.Reports, among)
}

func (x exporters) judgeSilence(e *silenceHistory, s *inference.ExporterStats) {
	if s.Reports+s.Malformed > 0 {
		if e.silence != nil {
			e.silence.Value = float64(e.quiet)
			x.End(&e.silence, fmt.Sprintf("%s reports again after %s", s.ExporterKey, subject.Plural(uint64(e.quiet), "silent window")))
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
		if e.quiet < x.Cfg.SilenceAfter || e.windows < float64(x.Cfg.SilenceHistory) {
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
	if e.quiet >= x.Cfg.SilentSevere {
		f.Severity = inference.Critical
	}
	f.Value, f.Baseline = float64(e.quiet), float64(e.usual)
	f.Text = fmt.Sprintf("%s sent nothing in %d windows, its longest pause lately was %d; a pause as long is less likely than one in a million by its history of %.0f windows",
		s.ExporterKey, e.quiet, e.usual, e.windows)
	x.Publish(&e.silence, f)
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
		recurs := e.last > 0 && length/2 <= e.last && x.Now-e.lastAt <= habitWithin
		if recurs && !e.habit {
			e.add(e.last)
		}
		e.last, e.lastAt, e.habit = length, x.Now, recurs
		if !recurs {
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
