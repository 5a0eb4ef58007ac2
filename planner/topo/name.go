package topo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// LinkName is the name of link l: its two ends with their ports, in the order in which the link was built, as in
// "leaf-1:3--spine-2:1".
func (g *Graph) LinkName(l int) string {
	a, b := g.Ends(l)
	return g.names[g.node[a]] + ":" + strconv.Itoa(int(g.port[a])) + "--" + g.names[g.node[b]] + ":" + strconv.Itoa(int(g.port[b]))
}

// LookupLinks finds the links of a name. It is the LinkName of one link, in either order of its ends, or two nodes
// ("leaf-1--spine-2") for all links between them. A port ("leaf-1:3--spine-2") selects the links of that port. Names of
// nodes may hold "--" and ":" themselves. A name with two readings that lead to different links is an error that names
// both.
func (g *Graph) LookupLinks(name string) ([]int, error) {
	var links []int
	var found, apart [2]int // the ends of the found links, and of a pair that is not joined
	nodes := false
	for at := 0; ; at++ {
		k := strings.Index(name[at:], "--")
		if k < 0 {
			break
		}
		at += k
		for _, a := range g.lookupEnd(name[:at]) {
			for _, b := range g.lookupEnd(name[at+2:]) {
				more := g.between(a, b)
				switch {
				case len(more) == 0:
					nodes, apart = true, [2]int{a.node, b.node}
				case links == nil:
					links, found = more, [2]int{a.node, b.node}
				case !slices.Equal(links, more):
					return nil, fmt.Errorf("%q fits link %s between %q and %q as well as %s between %q and %q; name the one that is meant with the ports of both ends, or from its other end",
						name, g.LinkName(links[0]), g.names[found[0]], g.names[found[1]], g.LinkName(more[0]), g.names[a.node], g.names[b.node])
				}
			}
		}
	}
	switch {
	case links != nil:
		return links, nil
	case nodes:
		return nil, fmt.Errorf("no link %q: %q and %q are not joined like that", name, g.names[apart[0]], g.names[apart[1]])
	}
	return nil, fmt.Errorf("no link %q; links are named as NODE--NODE or NODE:PORT--NODE:PORT", name)
}

// between returns the links from one end to another, ascending by the ports of the first.
func (g *Graph) between(a, b nodeEnd) (links []int) {
	for i := g.first[a.node]; i < g.first[a.node+1]; i++ {
		p := g.peer[i]
		if p < 0 || int(g.node[p]) != b.node || a.port > 0 && int(g.port[i]) != a.port || b.port > 0 && int(g.port[p]) != b.port {
			continue
		}
		if l := int(g.link[i]); !slices.Contains(links, l) {
			links = append(links, l)
		}
	}
	slices.Sort(links)
	return links
}

// nodeEnd is a node, and one of its ports or 0 for any.
type nodeEnd struct{ node, port int }

// lookupEnd reads NODE or NODE:PORT, which may both be there.
func (g *Graph) lookupEnd(s string) (ends []nodeEnd) {
	if n, ok := g.Lookup(s); ok {
		ends = append(ends, nodeEnd{n, 0})
	}
	k := strings.LastIndexByte(s, ':')
	if k < 0 {
		return ends
	}
	p, err := strconv.ParseUint(s[k+1:], 10, 31)
	if n, ok := g.Lookup(s[:k]); ok && err == nil && p > 0 {
		ends = append(ends, nodeEnd{n, int(p)})
	}
	return ends
}
