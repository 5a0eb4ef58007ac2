package load

import (
	"io"
	"strings"

	"github.com/hopscope/hopscope/planner/topo"
)

// readWords reads an edge list from a file without a suffix for one. A single link is refused: two words of any text
// would be a network.
func readWords(l *loader, r io.Reader) error {
	if err := readEdgeList(l, r); err != nil || len(l.links) != 1 {
		return err
	}
	return l.errorf(l.links[0].line, "two words make a network of one link in a file named .edges alone")
}

// readEdgeList reads a link a line, separated by blanks. A line has two node names, an optional weight, and optional
// properties such as "delay=10us", "bandwidth_gbps=100" and "cost=3". Nodes are numbered as they appear. A # begins a
// comment. A line with the nodes of an earlier one in reverse order is the other direction of that link, unless that
// has one already. Routing protocols export links so. The same line twice is two links.
func readEdgeList(l *loader, r io.Reader) error {
	node := func(line int, name string) (int, error) {
		if n, ok := l.byID[name]; ok {
			return n, nil
		}
		return l.node(line, name, "", topo.NoTier)
	}
	type edge struct {
		line   int
		a, b   int
		to, at topo.Attr
	}
	var edges []edge
	open := map[[2]int][]int{} // edges without their other direction, by their nodes
	err := lines(l.file, r, func(line int, s string) error {
		s, _, _ = strings.Cut(s, "#")
		f := strings.Fields(s)
		if len(f) == 0 {
			return nil
		}
		attr := topo.DefaultAttr
		words := f[min(2, len(f)):]
		if len(words) > 0 && !strings.Contains(words[0], "=") {
			w, err := parseWeight("weight", words[0])
			if err != nil {
				return l.errorf(line, "%w", err)
			}
			attr.Weight = w
			words = words[1:]
		}
		if len(f) < 2 || len(words) > 0 && !strings.Contains(words[0], "=") {
			return l.errorf(line, "%d words, want two nodes and perhaps a weight", len(f))
		}
		for _, word := range words {
			key, value, _ := strings.Cut(word, "=")
			if known, err := setWord(&attr, key, value); err != nil {
				return l.errorf(line, "%w", err)
			} else if !known {
				return l.errorf(line, "%q is none of weight=, cost=, delay= and bandwidth_gbps=", word)
			}
		}
		a, err := node(line, f[0])
		if err != nil {
			return err
		}
		b, err := node(line, f[1])
		if err != nil {
			return err
		}
		if back := open[[2]int{b, a}]; a != b && len(back) > 0 {
			edges[back[0]].at = attr
			open[[2]int{b, a}] = back[1:]
			return nil
		}
		open[[2]int{a, b}] = append(open[[2]int{a, b}], len(edges))
		edges = append(edges, edge{line: line, a: a, b: b, to: attr, at: attr})
		return nil
	})
	for _, e := range edges {
		if err == nil {
			err = l.link(e.line, endSpec{node: e.a, attr: e.to}, endSpec{node: e.b, attr: e.at})
		}
	}
	return err
}
