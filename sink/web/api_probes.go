package web

import (
	"math"
	"net/http"
	"slices"
	"sync"

	"github.com/hopscope/hopscope/inference"
)

// What is kept of probes.
const (
	probeWindows  = 8  // the newest ones, with as many probes each as flows are kept
	probePathMost = 16 // hops of a probe, as many as its route can have
	probeLinks    = 1 << 14
)

// probeSpan is a window as the control of probes asks for it. Whole numbers: latencies are nanoseconds, queues bytes.
type probeSpan struct {
	StartMS int64      `json:"start_ms"`
	EndMS   int64      `json:"end_ms"`
	Missing []string   `json:"missing,omitempty"` // collectors of a fleet that the window is without
	LeftOut int        `json:"left_out"`          // probes that found no place here
	Bound   uint64     `json:"flow_bound"`        // reports that a flow can have had which is not in the window; 0 if all are
	Probes  []probeRow `json:"probes"`
	Links   []linkRow  `json:"links,omitempty"`
	NoLinks int        `json:"links_left_out,omitempty"` // directions of links that found no place here
}

// linkRow is how long packets were on a direction of a link, by the clocks at its two ends.
type linkRow struct {
	Node     uint32 `json:"node"`
	EgressIf uint32 `json:"egress_if"`
	Peer     uint32 `json:"peer"`
	PeerIf   uint32 `json:"peer_if"`
	Period   uint64 `json:"period_ns,omitempty"` // after which the clocks begin again; absent for 2⁶⁴
	Packets  uint64 `json:"packets"`
	Least    int64  `json:"least_ns"`
}

// probeRow is the result of a probe in a window, with the hops in the order in which it passed them.
type probeRow struct {
	Flow    string     `json:"flow"`
	Reports uint64     `json:"reports"`
	Hops    []probeHop `json:"hops"`
}

type probeHop struct {
	Node     uint32         `json:"node"`
	EgressIf uint32         `json:"egress_if"`
	Latency  *probeQuantile `json:"latency_ns,omitempty"` // absent where the hop reported none
	Queue    *probeQuantile `json:"queue_bytes,omitempty"`
}

type probeQuantile struct {
	Count uint64 `json:"count"`
	P50   uint64 `json:"p50"`
	P90   uint64 `json:"p90"`
	P99   uint64 `json:"p99"`
}

func newProbeQuantile(s *inference.Summary) *probeQuantile {
	if s.Count == 0 {
		return nil
	}
	return &probeQuantile{s.Count, s.P50, s.P90, s.P99}
}

// probeMemory keeps the newest windows, in the order of their ends.
type probeMemory struct {
	most  int // probes of a window, the busiest first
	mu    sync.RWMutex
	spans []probeSpan
}

// keep keeps the probes of a window. A window that comes again replaces the kept one with the same end.
func (p *probeMemory) keep(w *inference.Window, missing []string) {
	if w.End <= w.Start || len(w.Flows) == 0 && w.Reports == 0 && len(missing) == 0 {
		return // a part with findings alone
	}
	s := probeSpan{StartMS: w.Start / 1e6, EndMS: w.End / 1e6, Bound: w.FlowBound, Probes: []probeRow{}}
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
		s.Probes = append(s.Probes, newProbeRow(f))
	}
	for i := range w.Links {
		if len(s.Links) == probeLinks {
			s.NoLinks = len(w.Links) - i
			break
		}
		l := &w.Links[i]
		s.Links = append(s.Links, linkRow{l.Node, l.EgressIf, l.Peer, l.PeerIf, l.Period, l.Count, l.Least})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at, found := slices.BinarySearchFunc(p.spans, s.EndMS, func(s probeSpan, end int64) int { return int(min(1, max(-1, s.EndMS-end))) })
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

func newProbeRow(f *inference.FlowStats) probeRow {
	r := probeRow{Flow: f.Key.String(), Reports: f.Packets}
	for i := range f.Hops {
		h := &f.Hops[i]
		r.Hops = append(r.Hops, probeHop{h.Node, h.EgressIf, newProbeQuantile(&h.Latency), newProbeQuantile(&h.Queue)})
	}
	return r
}

// after returns the windows that end later than a time, oldest first.
func (p *probeMemory) after(ms int64) []probeSpan {
	p.mu.RLock()
	defer p.mu.RUnlock()
	out := []probeSpan{}
	for _, s := range p.spans {
		if s.EndMS > ms {
			out = append(out, s)
		}
	}
	return out
}

// probeSpans holds windows, oldest first.
type probeSpans struct {
	Windows []probeSpan `json:"windows"`
}

// serveProbes answers with what probes of agents reported in the newest windows, or in those of them that end later than since=MS.
func (s *Server) serveProbes(w http.ResponseWriter, r *http.Request) {
	since, err := intParam(r.URL.Query(), "since", -1, -1, math.MaxInt64)
	if refuse(w, err) {
		return
	}
	s.answerPacked(w, r, probeSpans{s.probes.after(since)})
}
