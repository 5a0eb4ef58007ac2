package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
	"github.com/hopscope/hopscope/sink/web"
)

// pageMap reads the network that the settings want to be drawn. It is nil where they name none.
func pageMap(cfg *config) (*web.Map, error) {
	name := cfg.Web.Topology
	if name == "" {
		name = cfg.PINT.Topology
	}
	if name == "" || cfg.Web.Listen == "" {
		return nil, nil
	}
	g, err := load.Topology(name)
	if err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	ids, _ := graphIDs(g)
	if site, ok := cfg.Exporters.SiteNames().Named(cfg.PINT.Site); ok {
		for i := range ids {
			ids[i] |= uint32(site.ID) << names.NodeBits
		}
	}
	return mapOf(g, ids), nil
}

// mapOnPage gives the page a map that stays the same.
func mapOnPage(m *web.Map) func() *web.Map { return func() *web.Map { return m } }

// graphIDs are the ids by which reports know the nodes of a graph: their names, where all of these are numbers, and otherwise
// their numbers from 0 in the order of the file.
func graphIDs(g *topo.Graph) (ids []uint32, numbers bool) {
	named, counted := make([]uint32, g.NumNodes()), make([]uint32, g.NumNodes())
	all := true
	for i := range named {
		id, err := strconv.ParseUint(g.NodeName(i), 10, 32)
		named[i], counted[i] = uint32(id), uint32(i)
		all = all && err == nil
	}
	if all {
		return named, true
	}
	return counted, false
}

// mapOf gives the switches of a graph, whose nodes have these ids, and the links between them.
func mapOf(g *topo.Graph, ids []uint32) *web.Map {
	m := &web.Map{Name: g.Name()}
	pods, planes := podsOf(g), planesOf(g)
	for i := range g.NumNodes() {
		if g.Host(i) {
			continue
		}
		n := web.MapNode{ID: ids[i], Name: g.NodeName(i), Pod: pods[i], Plane: planes[i]}
		if t := g.Tier(i); t != topo.NoTier {
			n.Tier = t.String()
		}
		if p, ok := g.Place(i); ok {
			n.Placed, n.Longitude, n.Latitude = true, p.Longitude, p.Latitude
		}
		m.Nodes = append(m.Nodes, n)
	}
	for l := range g.NumLinks() {
		a, b := g.Ends(l)
		if g.Host(g.Node(a)) || g.Host(g.Node(b)) {
			continue
		}
		end := func(i int) web.LinkEnd { return web.LinkEnd{Node: ids[g.Node(i)], Port: uint32(g.Port(i))} }
		m.Links = append(m.Links, web.MapLink{Name: g.LinkName(l), A: end(a), B: end(b), Speed: g.Attr(a).Bandwidth})
	}
	return m
}

// podsOf numbers, from 1, what holds together without the cores and has an aggregation switch, in the order of the lowest
// nodes. Leaves that are linked to cores alone are in no pod.
func podsOf(g *topo.Graph) []int {
	pods := make([]int, g.NumNodes())
	seen := make([]bool, g.NumNodes())
	count := 0
	for v := range pods {
		if seen[v] || !inPod(g, v) {
			continue
		}
		seen[v] = true
		members, fabric := []int{v}, false
		for at := 0; at < len(members); at++ {
			u := members[at]
			fabric = fabric || g.Tier(u) == topo.Aggregation
			lo, hi := g.Interfaces(u)
			for i := lo; i < hi; i++ {
				if w := g.Neighbor(i); w >= 0 && !seen[w] && inPod(g, w) {
					seen[w] = true
					members = append(members, w)
				}
			}
		}
		if !fabric {
			continue
		}
		count++
		for _, u := range members {
			pods[u] = count
		}
	}
	return pods
}

func inPod(g *topo.Graph, v int) bool {
	return !g.Host(v) && (g.Tier(v) == topo.Edge || g.Tier(v) == topo.Aggregation)
}

// planesOf numbers, from 1, the cores that have the same neighbours, in the order of the lowest cores. Where most cores have
// neighbours of their own there are no planes.
func planesOf(g *topo.Graph) []int {
	planes, by, cores := make([]int, g.NumNodes()), map[string]int{}, 0
	for v := range planes {
		if g.Tier(v) != topo.Core {
			continue
		}
		cores++
		var to []int
		lo, hi := g.Interfaces(v)
		for i := lo; i < hi; i++ {
			if w := g.Neighbor(i); w >= 0 {
				to = append(to, w)
			}
		}
		slices.Sort(to)
		key := fmt.Sprint(to)
		if by[key] == 0 {
			by[key] = len(by) + 1
		}
		planes[v] = by[key]
	}
	if 2*len(by) > cores {
		clear(planes)
	}
	return planes
}
