package topo

import (
	"fmt"
	"strconv"
	"strings"
)

// LinkName is the name of link l: its two ends with their ports, in the order in which the link was built, as in
// "leaf-1:3--spine-2:1".
func (g *Graph) LinkName(l int) string {
	a, b := g.Ends(l)
	return g.names[g.node[a]] + ":" + strconv.Itoa(int(g.port[a])) + "--" + g.names[g.node[b]] + ":" + strconv.Itoa(int(g.port[b]))
}

// LookupLinks finds the links that a name stands for: the one that LinkName calls so, in either order of its ends, or
// all links between two nodes ("leaf-1--spine-2"), or those of one port ("leaf-1:3--spine-2").
func (g *Graph) LookupLinks(name string) ([]int, error) {
	for at := 0; ; {
		k := strings.Index(name[at:], "--")
		if k < 0 {
			return nil, fmt.Errorf("no link %q; links are named as NODE--NODE or NODE:PORT--NODE:PORT", name)
		}
		at += k
		a, aPort, okA := g.lookupEnd(name[:at])
		b, bPort, okB := g.lookupEnd(name[at+2:])
		if okA && okB {
			var links []int
			for i := g.first[a]; i < g.first[a+1]; i++ {
				p := g.peer[i]
				if p < 0 || int(g.node[p]) != b || aPort > 0 && int(g.port[i]) != aPort || bPort > 0 && int(g.port[p]) != bPort {
					continue
				}
				if l := int(g.link[i]); a != b || len(links) == 0 || links[len(links)-1] != l {
					links = append(links, l)
				}
			}
			if len(links) > 0 {
				return links, nil
			}
			return nil, fmt.Errorf("no link %q: %q and %q are not joined like that", name, g.names[a], g.names[b])
		}
		at++
	}
}

// lookupEnd reads NODE or NODE:PORT; port 0 stands for any.
func (g *Graph) lookupEnd(s string) (n, port int, ok bool) {
	if n, ok := g.Lookup(s); ok {
		return n, 0, true
	}
	k := strings.LastIndexByte(s, ':')
	if k < 0 {
		return 0, 0, false
	}
	p, err := strconv.ParseUint(s[k+1:], 10, 31)
	if err != nil || p == 0 {
		return 0, 0, false
	}
	n, ok = g.Lookup(s[:k])
	return n, int(p), ok
}
