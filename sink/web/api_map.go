package web

import (
	"cmp"
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

// atlasCache keeps what was made of the last map.
type atlasCache struct {
	mu    sync.Mutex
	of    *Map   // of which known is
	known *atlas // of the topology
	grew  uint64 // of which flows is
	flows *atlas // of what flows showed
}

// atlas gives the map of the topology or else of what flows showed, with what places hops on it.
func (s *Server) atlas() *placing {
	seen, grew := s.history.neighbours()
	var m *Map
	if s.deps.Map != nil {
		m = s.deps.Map()
	}
	c := &s.atlases
	c.mu.Lock()
	defer c.mu.Unlock()
	if m != nil && len(m.Nodes) > 0 {
		if c.known == nil || c.of != m {
			c.of, c.known = m, newAtlas(m, "topology")
		}
		return c.known.place(seen)
	}
	if c.flows == nil || c.grew != grew {
		c.grew, c.flows = grew, newAtlas(learned(seen), "flows")
	}
	return c.flows.place(seen)
}

// serveMap answers the map, which browsers keep for as long as it is the same.
func (s *Server) serveMap(w http.ResponseWriter, r *http.Request) {
	a := s.atlas()
	tag := `"map-` + cmp.Or(a.doc.Version, "none") + `"`
	w.Header().Set("ETag", tag)
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.Header().Set("Cache-Control", "no-cache")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.sendPacked(w, r, a.body, "no-cache")
}

// mapState is what changes on a map. Numbers of directions and nodes are those of the map's version.
type mapState struct {
	Version string  `json:"version"`
	EndMS   int64   `json:"end_ms"` // of the newest window
	Metric  string  `json:"metric"`
	Unit    string  `json:"unit"`
	Values  []value `json:"values"` // by direction, the last of the latest windows
	Nodes   []value `json:"nodes"`  // by node: the worst of its hops that are on no direction, as those to hosts

	// The interface by which reports know a direction, where that is another than the map's.
	Egress   map[string]uint32 `json:"egress,omitempty"`
	Findings []mapFinding      `json:"findings"` // open ones that have a place
	Drops    []mapDrops        `json:"drops"`
	Loop     *mapLoop          `json:"loop,omitempty"`
}

type mapFinding struct {
	ID       string `json:"id"`
	Severity string `json:"severity"`
	Links    []int  `json:"links,omitempty"` // directions
	Node     *int   `json:"node,omitempty"`
}

type mapDrops struct {
	Node  int    `json:"node"`
	Count uint64 `json:"count"` // packets in the last of the latest windows
}

type mapLoop struct {
	Version  string       `json:"version"` // of the probes
	Epoch    uint32       `json:"epoch"`
	Phase    string       `json:"phase"`
	Paused   bool         `json:"paused,omitempty"`
	DryRun   bool         `json:"dry_run,omitempty"`
	Awaiting bool         `json:"awaiting_approval,omitempty"`
	Probes   int          `json:"probes"`
	Detailed int          `json:"detailed"`
	Suspects []mapSuspect `json:"suspects"`
}

type mapSuspect struct {
	Link    int     `json:"link"` // direction
	Weight  float64 `json:"weight"`
	Why     string  `json:"why,omitempty"`
	SinceMS int64   `json:"since_ms,omitempty"`
}

// latestWindows is how many windows back a value may be to be drawn: a window can come in parts, and late.
const latestWindows = 3

// serveMapState answers the values of metric= of every direction, and what is found, suspected and probed where.
func (s *Server) serveMapState(w http.ResponseWriter, r *http.Request) {
	m, err := metricParam(r.URL.Query(), "metric", latencyP99)
	if err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	a := s.atlas()
	out := mapState{Version: a.doc.Version, Metric: metricNames[m], Unit: m.unit(), Findings: []mapFinding{}, Drops: []mapDrops{}}
	s.history.mapValues(a, m, &out)
	open, _ := s.findings.list()
	for i := range open {
		if f, ok := a.finding(&open[i]); ok {
			out.Findings = append(out.Findings, f)
		}
	}
	if view := s.loop(); view != nil {
		out.Loop = a.loop(view)
	}
	s.answerPacked(w, r, &out)
}

// mapValues puts hops on their directions. Of several on one, as of queues of one interface, the worst counts.
func (h *history) mapValues(a *placing, m metric, out *mapState) {
	out.Values, out.Nodes = make([]value, a.directions()), make([]value, len(a.doc.Nodes))
	for _, list := range [2][]value{out.Values, out.Nodes} {
		for i := range list {
			list[i] = value(absent)
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
		node, ok := a.nodes[s.Node]
		if !ok || s.Other {
			continue
		}
		list, at := out.Nodes, node
		if d := a.of(s.HopKey); d >= 0 {
			list, at = out.Values, d
			if own := a.end(d); own.Port != s.EgressIf && s.EgressIf != 0 {
				if out.Egress == nil {
					out.Egress = map[string]uint32{}
				}
				out.Egress[strconv.Itoa(d)] = s.EgressIf
			}
		}
		for n := h.newest; n >= from; n-- {
			if v := h.value(s, n, m); v == v {
				if before := float32(list[at]); !(before >= v) {
					list[at] = value(v)
				}
				break
			}
		}
	}
	for id, d := range h.drops {
		if node, ok := a.nodes[id]; ok && d.window >= from && d.count > 0 {
			out.Drops = append(out.Drops, mapDrops{node, d.count})
		}
	}
	slices.SortFunc(out.Drops, func(x, y mapDrops) int { return cmp.Compare(x.Node, y.Node) })
}

// end is the end that direction d leaves.
func (a *atlas) end(d int) LinkEnd {
	if l := &a.doc.Links[d/2]; d%2 == 0 {
		return LinkEnd{l.A, l.AIf}
	}
	l := &a.doc.Links[d/2]
	return LinkEnd{l.B, l.BIf}
}

// finding says where on the map a finding is. It is false for one that is nowhere on it.
func (a *placing) finding(f *inference.Finding) (out mapFinding, ok bool) {
	out = mapFinding{ID: f.IDText(), Severity: f.Severity.String()}
	hop := inference.HopKey{Node: f.Node, EgressIf: f.EgressIf}
	e := f.Element
	switch {
	case e.Kind == inference.LinkElement:
		out.Links = a.link(e)
		return out, len(out.Links) > 0
	case e.Kind == inference.RouteElement:
		return out, false
	case e.Kind == inference.NodeElement || e.Kind == inference.InterfaceElement:
		hop = inference.HopKey{Node: e.Node, EgressIf: e.EgressIf}
	case e.Kind == inference.FlowElement && f.Node == 0:
		return out, false
	}
	if hop.EgressIf != 0 {
		if d := a.of(hop); d >= 0 {
			out.Links = []int{d}
			return out, true
		}
	}
	if node, there := a.nodes[hop.Node]; there {
		out.Node = &node
		return out, true
	}
	return out, false
}

// link gives the directions of a link: those between two nodes that have the interfaces, as far as these are known.
func (a *placing) link(e inference.Element) []int {
	all := a.between(e.Node, e.Peer)
	slices.Sort(all)
	for _, h := range [2]inference.HopKey{{Node: e.Node, EgressIf: e.EgressIf}, {Node: e.Peer, EgressIf: e.PeerIf}} {
		if h.EgressIf == 0 {
			continue
		}
		if d := a.of(h); d >= 0 && slices.Contains(all, d) {
			return []int{d &^ 1, d | 1}
		}
	}
	return all
}

// loop is the view of the control at this moment, nil where there is none.
func (s *Server) loop() *LoopView {
	if s.deps.Loop == nil {
		return nil
	}
	return s.deps.Loop()
}

// maxSuspects bounds how many suspected directions are listed, in the order in which they are given.
const maxSuspects = 4096

func (a *atlas) loop(v *LoopView) *mapLoop {
	out := &mapLoop{
		Version: v.version(), Epoch: v.Epoch, Phase: readable(v.Phase), Paused: v.Paused, DryRun: v.DryRun, Awaiting: v.AwaitingApproval,
		Probes: len(v.Probes), Suspects: []mapSuspect{},
	}
	for i := range v.Probes {
		if v.Probes[i].Detailed {
			out.Detailed++
		}
	}
	for _, s := range v.Suspects {
		if d := a.direction(s.LinkEnd); d >= 0 && len(out.Suspects) < maxSuspects {
			out.Suspects = append(out.Suspects, mapSuspect{d, finite(s.Weight), readable(s.Why), s.Since / 1e6})
		}
	}
	return out
}

// version is a digest of the probes.
func (v *LoopView) version() string {
	h := fnv.New64a()
	var b [9]byte
	number := func(n uint32) {
		b[0], b[1], b[2], b[3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
		_, _ = h.Write(b[:4]) // a digest takes everything
	}
	number(v.Epoch)
	for i := range v.Probes {
		p := &v.Probes[i]
		_, _ = h.Write([]byte(p.ID))
		detailed := uint32(0)
		if p.Detailed {
			detailed = 1
		}
		number(detailed)
		number(uint32(len(p.Links)))
		for _, l := range p.Links {
			number(l.Node)
			number(l.Port)
		}
	}
	return strconv.FormatUint(h.Sum64(), 16)
}

type mapProbe struct {
	ID       string `json:"id"`
	Links    []int  `json:"links"` // directions, in the probe's order; -1 for one that the map does not have
	Detailed bool   `json:"detailed,omitempty"`
}

// Bounds of a page of probes.
const (
	mapProbes    = 2000
	maxMapProbes = 10000
)

// serveMapProbes answers the probes of the plan in force.
func (s *Server) serveMapProbes(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit, err := intParam(q, "limit", mapProbes, 1, maxMapProbes)
	offset, oerr := intParam(q, "offset", 0, 0, 1<<31)
	if err = cmp.Or(err, oerr); err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	view := s.loop()
	if view == nil {
		problem(w, http.StatusNotFound, "no control of probes runs here")
		return
	}
	a := s.atlas()
	out := struct {
		Version string     `json:"version"` // of the probes
		Map     string     `json:"map"`     // version of the map that numbers are of
		Total   int        `json:"total"`
		Probes  []mapProbe `json:"probes"`
	}{view.version(), a.doc.Version, len(view.Probes), []mapProbe{}}
	from := min(int(offset), len(view.Probes))
	for _, p := range view.Probes[from:min(from+int(limit), len(view.Probes))] {
		row := mapProbe{ID: names.Clean(p.ID), Links: []int{}, Detailed: p.Detailed}
		for _, l := range p.Links {
			row.Links = append(row.Links, a.direction(l))
		}
		out.Probes = append(out.Probes, row)
	}
	s.answerPacked(w, r, &out)
}

// loopEvent says that the control has something new, for pages that look at the map.
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
	return &loopEvent{v.Epoch, readable(v.Phase), v.version(), len(v.Suspects)}
}
