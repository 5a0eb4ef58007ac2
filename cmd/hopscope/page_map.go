package main

import (
	"fmt"
	"strconv"

	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// pageMap reads the network that the settings want to be drawn. It is nil where they name none.
func pageMap(cfg *config) (*atlas.Map, error) {
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
	ids, _ := g.IDs()
	if site, ok := cfg.Exporters.SiteNames().Named(cfg.PINT.Site); ok {
		for i := range ids {
			ids[i] |= uint32(site.ID) << names.NodeBits
		}
	}
	return mapOf(g, ids), nil
}

// namesOf returns what a map calls its nodes. A name that is the node's number is none.
func namesOf(m *atlas.Map) (list []names.Node) {
	if m == nil {
		return nil
	}
	for _, n := range m.Nodes {
		if n.Name != strconv.FormatUint(uint64(n.ID), 10) {
			list = append(list, names.Node{ID: n.ID, Name: n.Name})
		}
	}
	return list
}

// mapOnPage returns a map that stays the same, for the page.
func mapOnPage(m *atlas.Map) func() *atlas.Map { return func() *atlas.Map { return m } }

// mapOf returns the switches of a graph, whose nodes have these ids, and the links between them.
func mapOf(g *topo.Graph, ids []uint32) *atlas.Map {
	m := &atlas.Map{Name: g.Name()}
	pods, planes := g.Pods(), g.Planes()
	for i := range g.NumNodes() {
		if g.Host(i) {
			continue
		}
		n := atlas.Node{ID: ids[i], Name: g.NodeName(i), Pod: pods[i], Plane: planes[i]}
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
		end := func(i int) atlas.LinkEnd { return atlas.LinkEnd{Node: ids[g.Node(i)], Port: uint32(g.Port(i))} }
		m.Links = append(m.Links, atlas.Link{Name: g.LinkName(l), A: end(a), B: end(b), Speed: g.Attr(a).Bandwidth})
	}
	return m
}
