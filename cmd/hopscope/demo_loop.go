package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/steer"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// demoSteering is the control of the demonstration.
type demoSteering struct{ *steer.Emulated }

// steerDemo makes one with a journal among the files of the demonstration.
func steerDemo(cfg emu.Config, seed uint64, data string, everything bool, log *slog.Logger) (*demoSteering, error) {
	j, err := loop.OpenJournal(filepath.Join(data, "control.jsonl"), 8<<20, 1)
	if err != nil {
		return nil, err
	}
	var s *steer.Emulated
	if everything {
		s, err = steer.NewEmulatedInto(cfg, seed, j, log, data)
	} else {
		s, err = steer.NewEmulated(cfg, seed, j, log, nil)
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return &demoSteering{s}, nil
}

// drawn adds the switches that carry out assignments to a map.
func (s *demoSteering) drawn(m *atlas.Map) *atlas.Map {
	if s.Into != nil {
		more := mapOf(s.Into.Graph(), s.Into.NodeIDs())
		m.Nodes, m.Links = append(m.Nodes, more.Nodes...), append(m.Links, more.Links...)
	}
	return m
}

// Close closes the journal. The loop must have ended.
func (s *demoSteering) Close() error { return s.Journal.Close() }

// view is the page's view.
func (s *demoSteering) view() *atlas.LoopView { return loopView(s.Loop, s.Links) }

// serve answers "hopscope control". Where address is taken, and was not asked for, it listens at a free port.
func (s *demoSteering) serve(address string, asked bool) (*controlPage, error) {
	p, err := serveControl(address, s.Journal, notYet)
	if err != nil && !asked {
		p, err = serveControl("127.0.0.1:0", s.Journal, notYet)
	}
	if err == nil {
		p.steered(s.Loop)
	}
	return p, err
}

// suspectWriter hands the windows of a collector to the suspects of a control.
type suspectWriter struct{ to *steer.Suspects }

// Name implements [sink.WindowWriter].
func (suspectWriter) Name() string { return "control" }

// WriteWindow implements [sink.WindowWriter].
func (s suspectWriter) WriteWindow(_ context.Context, w *sink.Window) error {
	var first *inference.Window // a revision has been observed already
	if w.Revision == 0 {
		first = w.Window
	}
	s.to.Observe(first, w.Findings)
	return nil
}
