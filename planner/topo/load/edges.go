package load

import (
	"io"
	"strings"

	"github.com/hopscope/hopscope/planner/topo"
)

// readEdgeList reads a link a line: two node names and perhaps a weight, separated by blanks. Nodes are numbered as they
// appear. What follows a # is a comment.
func readEdgeList(l *loader, r io.Reader) error {
	node := func(line int, name string) (int, error) {
		if n, ok := l.byID[name]; ok {
			return n, nil
		}
		return l.node(line, name, "", topo.NoTier)
	}
	return lines(l.file, r, func(line int, s string) error {
		s, _, _ = strings.Cut(s, "#")
		f := strings.Fields(s)
		if len(f) == 0 {
			return nil
		}
		if len(f) != 2 && len(f) != 3 {
			return l.errorf(line, "%d words, want two nodes and perhaps a weight", len(f))
		}
		attr := topo.DefaultAttr
		if len(f) == 3 {
			w, err := parseWeight(f[2])
			if err != nil {
				return l.errorf(line, "%w", err)
			}
			attr.Weight = w
		}
		a, err := node(line, f[0])
		if err != nil {
			return err
		}
		b, err := node(line, f[1])
		if err != nil {
			return err
		}
		return l.link(line, endSpec{node: a, attr: attr}, endSpec{node: b, attr: attr})
	})
}
