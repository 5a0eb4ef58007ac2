package events

import (
	"fmt"
	"math"

	"github.com/hopscope/hopscope/inference"
)

// ExporterConfig are the settings of the detector of exporters that lose reports or fall silent.
type ExporterConfig struct {
	LossRatio    float64 `yaml:"loss_ratio" doc:"Share of an exporter's reports whose loss is worth a finding." range:"0..1"`
	LossSevere   float64 `yaml:"loss_severe" doc:"Share of an exporter's reports whose loss is critical." range:"0..1"`
	SilenceAfter int     `yaml:"silence_after" doc:"Windows without a report, of an exporter that reports regularly, that are silence." range:"1..100000"`
	SilentSevere int     `yaml:"silence_severe" doc:"Windows of silence that are critical." range:"1..1000000"`
}

var defaultExporterConfig = ExporterConfig{LossRatio: 0.0001, LossSevere: 0.05, SilenceAfter: 3, SilentSevere: 30}

func (c *ExporterConfig) problems() (errs []error) {
	if c.LossSevere < c.LossRatio {
		errs = append(errs, fmt.Errorf("loss_severe: %g is less than the loss_ratio of %g", c.LossSevere, c.LossRatio))
	}
	if c.SilentSevere < c.SilenceAfter {
		errs = append(errs, fmt.Errorf("silence_severe: %d is less than the silence_after of %d", c.SilentSevere, c.SilenceAfter))
	}
	return errs
}

// regular is how many windows with reports make an exporter one whose silence means something.
const regular = 5

// exporters finds exporters that lose reports, and those that fall silent.
type exporters struct {
	*lifecycle[inference.ExporterKey, exporter]
}

// exporter is what is remembered of one exporter.
type exporter struct {
	lossHistory
	silenceHistory
}

type lossHistory struct {
	missing  int64  // in the window before, some of which may yet come
	reports  uint64 // in the window before
	lost     int64  // since the loss started
	lossless int    // windows in a row without loss
	loss     *inference.Finding
}

type silenceHistory struct {
	active  int // windows with reports, up to regular
	quiet   int // windows in a row without
	usual   int // longest pause that it made, fading
	silence *inference.Finding
}

func (c *coder) exporterState(e *exporter) {
	number(c, &e.missing)
	number(c, &e.reports)
	number(c, &e.lost)
	number(c, &e.lossless)
	c.finding(&e.loss)
	number(c, &e.active)
	number(c, &e.quiet)
	number(c, &e.usual)
	c.finding(&e.silence)
}

func newExporters(j *journal) exporters {
	return exporters{follow(j, inference.ExporterKey.Compare, (*coder).exporter, (*coder).exporterState)}
}

func (x exporters) step(w *inference.Window) {
	for i := range w.Exporters {
		s := &w.Exporters[i]
		e := x.see(s.ExporterKey, math.MaxInt) // a window has as many as the tracker of exporters has room for
		x.judgeLoss(&e.lossHistory, s)
		x.judgeSilence(&e.silenceHistory, s)
	}
	x.absent(func(k inference.ExporterKey, e *exporter, _ int) bool {
		text := k.String() + " is forgotten"
		x.end(&e.loss, text)
		x.end(&e.silence, text)
		return true
	})
}

// finish judges the loss in the last window, whose gaps no late report fills any more.
func (x exporters) finish() {
	x.order()
	for _, s := range x.list {
		if s.state.missing <= 0 { // that nothing more is lost is for the next window to say
			continue
		}
		x.judgeLoss(&s.state.lossHistory, &inference.ExporterStats{ExporterKey: s.key})
	}
}

// judgeLoss judges the window before, now that late reports had time to fill its gaps.
func (x exporters) judgeLoss(e *lossHistory, s *inference.ExporterStats) {
	lost, reports := e.missing, e.reports
	e.missing, e.reports = s.Lost, s.Reports
	if s.Lost < 0 && lost > 0 {
		filled := min(-s.Lost, lost)
		lost -= filled
		e.missing += filled // filled once
	}
	ratio := 0.0
	if lost > 0 {
		ratio = float64(lost) / (float64(lost) + float64(reports))
	}
	if lost <= 0 || ratio < x.cfg.LossRatio {
		if e.loss == nil {
			return
		}
		if e.lossless++; e.lossless >= x.cfg.EndAfter {
			e.loss.Value = ratio
			x.end(&e.loss, fmt.Sprintf("%s loses nothing more after %d reports", s.ExporterKey, e.lost))
			e.lost = 0
		}
		return
	}
	e.lossless = 0
	e.lost += lost
	f := exporterFinding(inference.ExporterLoss, s.ExporterKey)
	if ratio >= x.cfg.LossSevere {
		f.Severity = inference.Critical
	}
	f.Value = ratio
	f.Text = fmt.Sprintf("%s: %d numbers missing beside %d reports, %.3g %%", s.ExporterKey, lost, reports, 100*ratio)
	x.tell(&e.loss, f)
}

func (x exporters) judgeSilence(e *silenceHistory, s *inference.ExporterStats) {
	if s.Reports+s.Malformed > 0 {
		if e.silence != nil {
			e.silence.Value = float64(e.quiet)
			x.end(&e.silence, fmt.Sprintf("%s reports again after %s", s.ExporterKey, plural(uint64(e.quiet), "silent window")))
		}
		if e.quiet > 0 {
			e.usual = max(e.quiet, e.usual*7/8)
		}
		e.quiet = 0
		if s.Reports+s.Malformed > s.Events { // reports about events alone promise no others
			e.active = min(e.active+1, regular)
		}
		return
	}
	e.quiet++
	if limit := max(x.cfg.SilenceAfter, 2*e.usual); e.active < regular || e.quiet < limit {
		return
	}
	f := exporterFinding(inference.ExporterSilence, s.ExporterKey)
	if e.quiet >= x.cfg.SilentSevere {
		f.Severity = inference.Critical
	}
	f.Value, f.Baseline = float64(e.quiet), float64(e.usual)
	f.Text = fmt.Sprintf("%s sent nothing in %d windows, its longest pause lately was %d", s.ExporterKey, e.quiet, e.usual)
	x.tell(&e.silence, f)
}

// exporterFinding is a warning about an exporter, without value and text.
func exporterFinding(kind inference.Kind, k inference.ExporterKey) inference.Finding {
	return inference.Finding{Kind: kind, Severity: inference.Warning, Exporter: k.Addr, Node: k.Node, HWID: k.HWID}
}
