package web

import (
	"math"
	"net/http"
	"slices"
	"sync"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// What is kept of probes.
const (
	probeWindows  = 8  // the newest ones, with as many probes each as flows are kept
	probePathMost = 16 // hops of a probe, as many as its route can have
	probeLinks    = 1 << 14
)

// probeMemory keeps the newest windows, in the order of their ends.
type probeMemory struct {
	most  int // probes of a window, the busiest first
	mu    sync.RWMutex
	spans []ask.ProbeSpan
}

// keep keeps the probes of a window. A window that comes again replaces the kept one with the same end.
func (p *probeMemory) keep(w *inference.Window, missing []string) {
	if w.End <= w.Start || len(w.Flows) == 0 && w.Reports == 0 && len(missing) == 0 {
		return // a part with findings alone
	}
	s := ask.ProbeSpan{StartMS: w.Start / 1e6, EndMS: w.End / 1e6, Bound: w.FlowBound, Probes: []ask.ProbeRow{}}
	for _, m := range missing[:min(len(missing), maxMissing)] {
		s.Missing = append(s.Missing, readable(m))
	}
	for i := range w.Flows {
		f := &w.Flows[i]
		if !inference.IsProbe(&f.Key) {
			continue
		}
		if len(s.Probes) == p.most || f.Partial || len(f.Hops) == 0 || len(f.Hops) > probePathMost {
			s.LeftOut++
			continue
		}
		s.Probes = append(s.Probes, ask.NewProbeRow(f))
	}
	for i := range w.Links {
		if len(s.Links) == probeLinks {
			s.NoLinks = len(w.Links) - i
			break
		}
		l := &w.Links[i]
		s.Links = append(s.Links, ask.LinkRow{Node: l.Node, EgressIf: l.EgressIf, Peer: l.Peer, PeerIf: l.PeerIf, Period: l.Period, Packets: l.Count, Least: l.Least})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at, found := slices.BinarySearchFunc(p.spans, s.EndMS, func(s ask.ProbeSpan, end int64) int { return int(min(1, max(-1, s.EndMS-end))) })
	switch {
	case found:
		p.spans[at] = s
	case len(p.spans) == probeWindows && at == 0:
		return // older than what is kept
	default:
		if p.spans = slices.Insert(p.spans, at, s); len(p.spans) > probeWindows {
			p.spans = slices.Delete(p.spans, 0, 1)
		}
	}
}

// after returns the windows that end later than a time, oldest first.
func (p *probeMemory) after(ms int64) []ask.ProbeSpan {
	p.mu.RLock()
	defer p.mu.RUnlock()
	out := []ask.ProbeSpan{}
	for _, s := range p.spans {
		if s.EndMS > ms {
			out = append(out, s)
		}
	}
	return out
}

// serveProbes answers with what probes of agents reported in the newest windows, or in those of them that end later than since=MS.
func (s *Server) serveProbes(w http.ResponseWriter, r *http.Request) {
	since, err := ask.IntParam(r.URL.Query(), "since", -1, -1, math.MaxInt64)
	if refuse(w, err) {
		return
	}
	s.answerPacked(w, r, ask.ProbeSpans{Windows: s.probes.after(since)})
}
