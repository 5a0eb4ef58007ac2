package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/hopscope/hopscope/sink/web/access"
	"github.com/hopscope/hopscope/sink/web/ask"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// network returns the map of the topology or else of what flows showed, with what places hops on it.
func (s *Server) network() *atlas.Placing {
	seen, grew := s.history.neighbours()
	var m *atlas.Map
	if s.deps.Map != nil {
		m = s.deps.Map()
	}
	return s.atlases.Place(m, seen, grew)
}

// serveMap answers the map, which browsers keep for as long as it is the same.
func (s *Server) serveMap(w http.ResponseWriter, r *http.Request) {
	a := s.network()
	tag := `"map-` + cmp.Or(a.Version(), "none") + `"`
	w.Header().Set("ETag", tag)
	if access.Knows(r, tag) {
		w.Header().Set("Cache-Control", "no-cache")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.sendPacked(w, r, a.Body(), "no-cache")
}

// latestWindows is how many windows back a value may be to be drawn: a window can come in parts, and late.
const latestWindows = 3

// serveMapState answers with the values of metric= of every direction, and with the places of findings, suspects and
// probes.
func (s *Server) serveMapState(w http.ResponseWriter, r *http.Request) {
	m, err := metricParam(r.URL.Query(), "metric", latencyP99)
	if refuse(w, err) {
		return
	}
	a := s.network()
	out := ask.MapState{Version: a.Version(), Metric: metricNames[m], Unit: m.unit(), Findings: []atlas.FindingDoc{}, Drops: []ask.MapDrops{}}
	if s.servePast(w, r, func(ctx context.Context, t ask.Span) (any, error) {
		past, err := s.deps.Past.Places(ctx, t, metricNames[m], s.findings.isOpen)
		if err == nil {
			out.Show(a, past)
		}
		return &out, err
	}) {
		return
	}
	s.history.mapValues(a, m, &out)
	open, _ := s.findings.list()
	for i := range open {
		if f, ok := a.Finding(&open[i]); ok && !open[i].Resting { // of one that rests, the place is as usual
			out.Findings = append(out.Findings, f)
		}
	}
	if view := s.loop(); view != nil {
		out.Loop = a.Loop(view, readable)
	}
	s.answerPacked(w, r, &out)
}

// mapValues puts hops on their directions. Of several on one, as of queues of one interface, the worst counts.
func (h *history) mapValues(a *atlas.Placing, m metric, out *ask.MapState) {
	out.Clear(a)
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.newest == 0 {
		return
	}
	out.EndMS = h.ms(h.newest)
	from := max(h.oldest(), h.newest-min(h.newest, latestWindows-1))
	for _, s := range h.sortedHops() {
		v := absent
		for n := h.newest; n >= from && v != v; n-- {
			v = h.value(s, n, m)
		}
		out.Put(a, s.HopKey, ask.Value(v))
	}
	for id, d := range h.drops.all {
		if node, ok := a.Node(id); ok && d.window >= from && d.count > 0 {
			out.Drops = append(out.Drops, ask.MapDrops{Node: node, Count: d.count})
		}
	}
	slices.SortFunc(out.Drops, func(x, y ask.MapDrops) int { return cmp.Compare(x.Node, y.Node) })
}

// loop is the view of the control at this moment, nil where there is none.
func (s *Server) loop() *atlas.LoopView {
	if s.deps.Loop == nil {
		return nil
	}
	return s.deps.Loop()
}

// Bounds of a page of probes.
const (
	mapProbes    = 2000
	maxMapProbes = 10000
)

// mapProbeList holds some of the probes of the plan in force.
type mapProbeList struct {
	Version string           `json:"version"` // of the probes
	Map     string           `json:"map"`     // version of the map that numbers are of
	Total   int              `json:"total"`
	Probes  []atlas.ProbeDoc `json:"probes"`
}

// serveMapProbes answers the probes of the plan in force.
func (s *Server) serveMapProbes(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit, err := ask.IntParam(q, "limit", mapProbes, 1, maxMapProbes)
	offset, oerr := ask.IntParam(q, "offset", 0, 0, 1<<31)
	if refuse(w, cmp.Or(err, oerr)) {
		return
	}
	view := s.loop()
	if view == nil {
		problem(w, http.StatusNotFound, "no control of probes runs here")
		return
	}
	a := s.network()
	out := mapProbeList{view.Version(), a.Version(), len(view.Probes), a.Probes(view, int(offset), int(limit))}
	s.answerPacked(w, r, &out)
}

// loopEvent announces news of the control, for pages with the map.
type loopEvent struct {
	Epoch    uint32 `json:"epoch"`
	Phase    string `json:"phase"`
	Version  string `json:"version"`
	Suspects int    `json:"suspects"`
}

func (s *Server) loopEvent() *loopEvent {
	v := s.loop()
	if v == nil {
		return nil
	}
	return &loopEvent{v.Epoch, readable(v.Phase), v.Version(), len(v.Suspects)}
}
