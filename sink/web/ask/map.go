package ask

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// MapState is the changing part of a map. Numbers of directions and nodes are those of the map's version.
type MapState struct {
	Version string  `json:"version"`
	EndMS   int64   `json:"end_ms"` // of the newest window
	Metric  string  `json:"metric"`
	Unit    string  `json:"unit"`
	Values  []Value `json:"values"` // by direction, the last of the latest windows
	Nodes   []Value `json:"nodes"`  // worst of a node's hops on no direction, as those to hosts

	// Interface of a direction in reports, where it is not the map's.
	Egress   map[string]uint32  `json:"egress,omitempty"`
	Findings []atlas.FindingDoc `json:"findings"` // open ones that have a place and do not rest
	Drops    []MapDrops         `json:"drops"`
	Loop     *atlas.LoopDoc     `json:"loop,omitempty"`
	Range    *Range             `json:"range,omitempty"` // of an answer out of the history

	Before []Value `json:"before,omitempty"` // values of the time that the range is compared with, by direction
}

type MapDrops struct {
	Node  int    `json:"node"`
	Count uint64 `json:"count"` // packets in the last of the latest windows
}

// Clear makes all values absent.
func (s *MapState) Clear(a *atlas.Placing) {
	s.Values, s.Nodes = slices.Repeat([]Value{Absent}, a.Directions()), slices.Repeat([]Value{Absent}, a.Nodes())
}

// Put puts the value of a hop on its direction or node, if it is worse than what is there.
func (s *MapState) Put(a *atlas.Placing, k inference.HopKey, v Value) {
	node, ok := a.Node(k.Node)
	if !ok || k.Other {
		return
	}
	list, at := s.Nodes, node
	if d := a.Direction(k); d >= 0 {
		list, at = s.Values, d
		if own := a.End(d); own.Port != k.EgressIf && k.EgressIf != 0 {
			if s.Egress == nil {
				s.Egress = map[string]uint32{}
			}
			s.Egress[strconv.Itoa(d)] = k.EgressIf
		}
	}
	list[at] = Greater(list[at], v)
}

// Show puts a range on the map.
func (s *MapState) Show(a *atlas.Placing, p *Places) {
	s.Clear(a)
	s.EndMS, s.Range = p.Range.ToMS, p.Range
	for k, v := range p.Values {
		s.Put(a, k, v)
	}
	if p.Before != nil {
		was := MapState{}
		was.Clear(a)
		for k, v := range p.Before {
			was.Put(a, k, v)
		}
		s.Before = was.Values
	}
	for i := range p.Findings {
		if f, ok := a.Finding(&p.Findings[i]); ok {
			s.Findings = append(s.Findings, f)
		}
	}
	for id, n := range p.Drops {
		if node, ok := a.Node(id); ok && n > 0 {
			s.Drops = append(s.Drops, MapDrops{node, n})
		}
	}
	slices.SortFunc(s.Drops, func(x, y MapDrops) int { return cmp.Compare(x.Node, y.Node) })
}
