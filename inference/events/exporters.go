package events

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/hopscope/hopscope/inference"
)

// regular is how many windows with reports make an exporter one whose silence means something.
const regular = 5

// exporter is what is remembered of one exporter.
type exporter struct {
	seen uint64 // window in which it was listed last

	grace   inference.ExporterStats // the window before, whose gaps may yet be filled
	lost    int64                   // since the loss started
	lossEnd int                     // windows in a row without loss
	loss    *inference.Finding

	active  int // windows with reports, up to regular
	quiet   int // windows in a row without
	usual   int // longest pause that it made, fading
	silence *inference.Finding
}

func (d *Detector) stepExporters(w *inference.Window) {
	for i := range w.Exporters {
		s := &w.Exporters[i]
		e := d.exporters[s.ExporterKey]
		if e == nil { // as many as the tracker of exporters has room for
			e = &exporter{}
			d.exporters[s.ExporterKey] = e
		}
		e.seen = d.windows
		d.judgeLoss(e, s)
		d.judgeSilence(e, s)
	}
	if len(d.exporters) == len(w.Exporters) {
		return // they are distinct, and all of them are known by now
	}
	for _, key := range ordered(d.exporters, compareExporters) {
		e := d.exporters[key]
		if e.seen == d.windows {
			continue
		}
		if e.loss != nil {
			d.end(e.loss, exporterText(key)+" is forgotten")
		}
		if e.silence != nil {
			d.end(e.silence, exporterText(key)+" is forgotten")
		}
		delete(d.exporters, key)
	}
}

// judgeLoss judges the window before, now that late reports had time to fill its gaps.
func (d *Detector) judgeLoss(e *exporter, s *inference.ExporterStats) {
	before := e.grace
	e.grace = *s
	lost := before.Lost
	if s.Lost < 0 && lost > 0 {
		filled := min(-s.Lost, lost)
		lost -= filled
		e.grace.Lost += filled // filled once
	}
	ratio := 0.0
	if lost > 0 {
		ratio = float64(lost) / (float64(lost) + float64(before.Reports))
	}
	if lost <= 0 || ratio < d.cfg.LossRatio {
		if e.loss == nil {
			return
		}
		if e.lossEnd++; e.lossEnd >= d.cfg.EndAfter {
			e.loss.Value = ratio
			d.end(e.loss, fmt.Sprintf("%s loses nothing more after %d reports", exporterText(s.ExporterKey), e.lost))
			e.loss, e.lost = nil, 0
		}
		return
	}
	e.lossEnd = 0
	e.lost += lost
	severity := inference.Warning
	if ratio >= d.cfg.LossSevere {
		severity = inference.Critical
	}
	text := fmt.Sprintf("%s: %d numbers missing beside %d reports, %.3g %%", exporterText(s.ExporterKey), lost, before.Reports, 100*ratio)
	if e.loss == nil {
		e.loss = d.start(exporterFinding(inference.ExporterLoss, severity, s.ExporterKey, ratio, 0, text))
		return
	}
	d.update(e.loss, severity, ratio, 0, text)
}

func (d *Detector) judgeSilence(e *exporter, s *inference.ExporterStats) {
	if s.Reports+s.Malformed > 0 {
		if e.silence != nil {
			e.silence.Value = float64(e.quiet)
			d.end(e.silence, fmt.Sprintf("%s reports again after %s", exporterText(s.ExporterKey), plural(uint64(e.quiet), "silent window")))
			e.silence = nil
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
	limit := max(d.cfg.SilenceAfter, 2*e.usual)
	if e.active < regular || e.quiet < limit {
		return
	}
	severity := inference.Warning
	if e.quiet >= d.cfg.SilentSevere {
		severity = inference.Critical
	}
	text := fmt.Sprintf("%s sent nothing in %d windows, its longest pause lately was %d", exporterText(s.ExporterKey), e.quiet, e.usual)
	if e.silence == nil {
		e.silence = d.start(exporterFinding(inference.ExporterSilence, severity, s.ExporterKey, float64(e.quiet), float64(e.usual), text))
		return
	}
	d.update(e.silence, severity, float64(e.quiet), float64(e.usual), text)
}

func exporterFinding(kind inference.Kind, s inference.Severity, k inference.ExporterKey, value, baseline float64, text string) inference.Finding {
	return inference.Finding{
		Kind: kind, Severity: s, Exporter: k.Addr, Node: k.Node, HWID: k.HWID, Value: value, Baseline: baseline, Text: text,
	}
}

func exporterText(k inference.ExporterKey) string {
	return fmt.Sprintf("exporter %s node %d hardware %d", k.Addr, k.Node, k.HWID)
}

func compareExporters(a, b inference.ExporterKey) int {
	if c := bytes.Compare(a.Addr[:], b.Addr[:]); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.HWID, b.HWID))
}
