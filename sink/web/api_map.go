package web

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"

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

// mapState is the changing part of a map. Numbers of directions and nodes are those of the map's version.
type mapState struct {
	Version string      `json:"version"`
	EndMS   int64       `json:"end_ms"` // of the newest window
	Metric  string      `json:"metric"`
	Unit    string      `json:"unit"`
	Values  []ask.Value `json:"values"` // by direction, the last of the latest windows
	Nodes   []ask.Value `json:"nodes"`  // worst of a node's hops on no direction, as those to hosts

	// Interface of a direction in reports, where it is not the map's.
	Egress   map[string]uint32  `json:"egress,omitempty"`
	Findings []atlas.FindingDoc `json:"findings"` // open ones that have a place and do not rest
	Drops    []mapDrops         `json:"drops"`
	Loop     *atlas.LoopDoc     `json:"loop,omitempty"`
}

type mapDrops struct {
	Node  int    `json:"node"`
	Count uint64 `json:"count"` // packets in the last of the latest windows
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
	out := mapState{Version: a.Version(), Metric: metricNames[m], Unit: m.unit(), Findings: []atlas.FindingDoc{}, Drops: []mapDrops{}}
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
func (h *history) mapValues(a *atlas.Placing, m metric, out *mapState) {
	out.Values, out.Nodes = make([]ask.Value, a.Directions()), make([]ask.Value, a.Nodes())
	for _, list := range [2][]ask.Value{out.Values, out.Nodes} {
		for i := range list {
			list[i] = ask.Absent
		}
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.newest == 0 {
		return
	}
	out.EndMS = h.ms(h.newest)
	from := max(h.oldest(), h.newest-min(h.newest, latestWindows-1))
	for _, s := range h.sortedHops() {
		node, ok := a.Node(s.Node)
		if !ok || s.Other {
			continue
		}
		list, at := out.Nodes, node
		if d := a.Direction(s.HopKey); d >= 0 {
			list, at = out.Values, d
			if own := a.End(d); own.Port != s.EgressIf && s.EgressIf != 0 {
				if out.Egress == nil {
					out.Egress = map[string]uint32{}
				}
				out.Egress[strconv.Itoa(d)] = s.EgressIf
			}
		}
		for n := h.newest; n >= from; n-- {
			if v := h.value(s, n, m); v == v {
				if before := float32(list[at]); !(before >= v) {
					list[at] = ask.Value(v)
				}
				break
			}
		}
	}
	for id, d := range h.drops.all {
		if node, ok := a.Node(id); ok && d.window >= from && d.count > 0 {
			out.Drops = append(out.Drops, mapDrops{node, d.count})
		}
	}
	slices.SortFunc(out.Drops, func(x, y mapDrops) int { return cmp.Compare(x.Node, y.Node) })
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
