package load

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/hopscope/hopscope/planner/topo"
)

// readBRITE reads what the generator BRITE writes (A. Medina, A. Lakhina, I. Matta, J. Byers, 2001). The sections are
// "Topology: ( n Nodes, m Edges )", its models, "Nodes: ( n )" and "Edges: ( m )". Lines of nodes are "id x y in-degree
// out-degree AS type". Lines of edges are "id from to length delay bandwidth AS AS type U", or D at the end where an
// edge is one direction. Delays are in ms and bandwidths in Mbit/s, as in BRITE's export for ns. Negative numbers stand
// for unknown values. Coordinates are of a plane, and no places.
func readBRITE(l *loader, r io.Reader) error {
	section, since, want := "", 0, 0
	full := func() error {
		if want > 0 {
			return l.errorf(since, "%s announces %d rows more than there are; the file may be cut off", section, want)
		}
		return nil
	}
	err := lines(l.file, r, func(line int, s string) error {
		f := strings.Fields(s)
		if len(f) == 0 {
			return nil
		}
		if f[0] == "Nodes:" || f[0] == "Edges:" {
			if err := full(); err != nil {
				return err
			}
			n, err := strconv.ParseUint(strings.Trim(strings.Join(f[1:], ""), "():"), 10, 31)
			if err != nil {
				return l.errorf(line, "want %s ( number of rows )", f[0])
			}
			section, since, want = f[0], line, int(n)
			return nil
		}
		if section == "" { // the head
			return nil
		}
		if want--; want < 0 {
			return l.errorf(line, "a row more than %s announces in line %d", section, since)
		}
		if section == "Edges:" {
			return l.briteEdge(line, f)
		}
		if len(f) < 3 {
			return l.errorf(line, "%d fields of a node, want id, x, y, in-degree, out-degree, AS, type", len(f))
		}
		_, err := l.node(line, f[0], "", topo.NoTier)
		return err
	})
	switch {
	case err != nil:
		return err
	case section != "Edges:":
		return errors.New("no section \"Edges:\"; the file may be cut off")
	}
	return full()
}

func (l *loader) briteEdge(line int, f []string) error {
	if len(f) < 6 {
		return l.errorf(line, "%d fields of an edge, want id, from, to, length, delay, bandwidth, AS, AS, type, U or D", len(f))
	}
	a, err := l.lookup(line, f[1])
	if err != nil {
		return err
	}
	b, err := l.lookup(line, f[2])
	if err != nil {
		return err
	}
	attr := topo.DefaultAttr
	if !strings.HasPrefix(f[4], "-") {
		if attr.Delay, err = parseDelay(f[4], time.Millisecond); err != nil {
			return l.errorf(line, "edge %s: %w", f[0], err)
		}
	}
	if !strings.HasPrefix(f[5], "-") {
		if attr.Bandwidth, err = parseBandwidth(f[5], 1e6); err != nil {
			return l.errorf(line, "edge %s: %w", f[0], err)
		}
	}
	if f[len(f)-1] == "D" {
		return l.arc(line, a, b, attr)
	}
	return l.link(line, endSpec{node: a, attr: attr}, endSpec{node: b, attr: attr})
}
