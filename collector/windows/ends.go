// Package windows ends windows: by the clock or by the time stamps of frames, through detectors, corrections and the state file, to
// all writers.
package windows

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/collector/pipeline"
	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/collector/summary"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/sink"
)

// Config holds the parts and settings for ending windows.
type Config struct {
	Instance, Boot, Version string
	Length                  time.Duration // of a window
	Limits                  window.Limits
	Admission               window.AdmissionLimits
	Fleet                   bool // windows go to a fleet
	Pipeline                *pipeline.Pipeline
	Ledger                  *ledger.Ledger
	Tally                   *summary.Tally
	Detectors               *Detectors
	Stores                  *stores.Set
	Alerts                  *stores.AlertKeeper               // nil without receivers
	Rules                   *stores.RulesFile                 // nil without a file of what operators accepted
	State                   *State                            // nil without a state file
	Names                   func() *names.Names               // the operator's names
	NameRows                func(end int64) []names.Row       // names that series are to have
	Now                     func() (time.Time, time.Duration) // both clocks
	Corrections             Corrections
	Log                     *slog.Logger
}

// Ends ends windows. One goroutine uses it, except where a method allows others.
type Ends struct {
	Config
	// Writers get every window. They are set before the first one ends.
	Writers []sink.WindowWriter

	admission   *window.Admission
	corrections *corrections
	start       int64      // of the open window
	run         time.Time  // when the run began, by the clock as it was then
	clock       *wallClock // nil for windows that end by the time stamps of frames

	mu    sync.Mutex // guards state, which any goroutine may read
	state clockState
}

// New makes what ends windows.
func New(cfg Config) *Ends {
	return &Ends{Config: cfg, admission: window.NewAdmission(cfg.Admission), corrections: newCorrections(&cfg.Corrections)}
}

// end ends the open window and hands it to the detectors and to all writers. It lasted took, or what its labels say if
// that is 0. Before the writers get it, change may add older counts to the window. It must not keep the partial
// window.
func (e *Ends) end(end pipeline.End, took time.Duration, change func(*sink.Window, *window.Partial)) {
	label := e.fleetLabel(end.Label)
	end.Start, e.start = e.start, end.Label
	partial, diverted := e.Pipeline.Cut(end, label)
	before := e.leftOut()
	e.admission.Fold(partial, partial.End)
	w := partial.Window(e.Limits)
	e.Detectors.accept(e.Rules.Rules())
	found := e.Detectors.step(&w)
	e.admission.Mark(&w, found)
	left := e.leftOut()
	left.Window(&w)
	refused := e.Pipeline.Exporters.Refused()
	if took == 0 {
		took = time.Duration(w.End - w.Start)
	}
	e.Tally.Add(partial, &w, refused, found, func(f *summary.Figures) {
		f.Folded.Hops, f.Folded.Flows, f.Folded.Rest = e.admission.Folded()
		f.Left.AddSince(&left, &before)
		f.Learning = e.Detectors.learning()
		if c := e.Detectors.coverage(); c.Seen+c.Paths > 0 {
			f.Coverage = c
		}
		if took > 0 {
			f.Rate = float64(w.Reports+diverted) / took.Seconds()
		}
		f.Diverted += diverted
	})

	stores.LogFindings(e.Log, found, e.Names())
	closed := sink.NewWindow(e.Instance, &w, found)
	closed.Label = label
	closed.Names = e.NameRows(w.End)
	e.account(&w) // before others are added to it
	alone := w
	if change != nil {
		change(closed, partial)
	}
	e.Ledger.Close(w.Reports)
	// What was counted under the label before was handed over before.
	part := &sink.Window{Window: &alone, Findings: found, Instance: e.Instance, Run: closed.Run, Label: label, Partial: partial}
	for _, out := range e.Writers {
		err := error(nil)
		if q, ok := out.(*stores.Queue); ok && q.Encoder != nil {
			err = q.WritePartial(context.Background(), part)
		} else if p, ok := out.(sink.PartialWriter); ok {
			err = p.AddPartial(context.Background(), part)
		} else {
			err = out.WriteWindow(context.Background(), closed)
		}
		if err != nil {
			e.Log.Error("window not accepted", "sink", out.Name(), "error", err.Error())
		}
	}
	e.Pipeline.HandedOver(label)
	if e.Alerts != nil {
		e.Stores.Alert(context.Background(), e.Alerts.Step(w.End, found, e.Names()))
		e.Alerts.Keep(time.Duration(e.read().mono), false)
	}
	e.Tally.Change(func(f *summary.Figures) {
		if f.FirstLabel == 0 || label < f.FirstLabel {
			f.FirstLabel = label
		}
		f.LastLabel = label
	})
}

// leftOut returns what the admission and the detectors ever left out; the state file keeps their counts.
func (e *Ends) leftOut() summary.LeftOut { return summary.LeftOutEver(e.admission, e.Detectors.events) }

// account writes the state file before the window goes to the stores. What exporters missed while no collector ran enters
// the ledger.
func (e *Ends) account(w *inference.Window) {
	var down uint64
	for i := range w.Exporters {
		down += w.Exporters[i].Down
	}
	e.Ledger.Receive(ledger.DroppedDown, down)
	if e.State != nil {
		e.State.windowEnds(w)
	}
}

// fleetLabel returns the label under which a fleet keeps a window. That is the multiple of the window's length at
// which it ends, or would end if the run went on.
func (e *Ends) fleetLabel(label int64) int64 {
	length := int64(e.Length)
	at := MultipleBefore(label, length)
	if at < label && at <= math.MaxInt64-length {
		return at + length
	}
	return label
}
