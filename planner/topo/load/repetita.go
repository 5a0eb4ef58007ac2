package load

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/hopscope/hopscope/planner/topo"
)

// readRepetita reads the .graph format of REPETITA (Gay, Schaus, Vissicchio, arXiv 1710.08665). It has "NODES n", a
// heading, and n lines "label x y". "EDGES m" follows, with a heading and m lines "label src dst weight bandwidth
// delay". Nodes are numbered from 0, bandwidth is in kbit/s and delay in microseconds. A line of the second part is one
// direction; both must be there. The second half of a pair is the first line that leads back and belongs to no earlier
// line.
func readRepetita(l *loader, r io.Reader) error {
	t := table{l: l}
	err := lines(l.file, r, func(line int, s string) error {
		f := strings.Fields(s)
		if t.section == "" || t.done() {
			return t.begin(line, f, map[string]string{"": "NODES", "NODES": "EDGES", "EDGES": ""}[t.section])
		}
		if row, err := t.row(line, f); !row {
			return err
		}
		if t.section == "NODES" {
			if len(f) != 3 {
				return l.errorf(line, "%d fields, want label, x, y of a node", len(f))
			}
			n, err := l.node(line, f[0], "", topo.NoTier)
			if err != nil {
				return err
			}
			return l.placeXY(line, n, f[1], f[2])
		}
		if len(f) != 6 {
			return l.errorf(line, "%d fields, want label, src, dst, weight, bandwidth, delay of an edge", len(f))
		}
		src, err := t.node(line, f[1])
		if err != nil {
			return err
		}
		dst, err := t.node(line, f[2])
		if err != nil {
			return err
		}
		var a topo.Attr
		if a.Weight, err = parseWeight("weight", f[3]); err != nil {
			return l.errorf(line, "edge %s: %w", f[0], err)
		}
		if a.Bandwidth, err = parseBandwidth(f[4], 1000); err != nil {
			return l.errorf(line, "edge %s: %w", f[0], err)
		}
		if a.Delay, err = parseDelay(f[5], time.Microsecond); err != nil {
			return l.errorf(line, "edge %s: %w", f[0], err)
		}
		return l.arc(line, src, dst, a)
	})
	if err != nil {
		return err
	}
	if err := t.end("EDGES"); err != nil {
		return err
	}
	if k, ok := l.alone(); ok {
		return l.errorf(k.line, "edge from %s to %s has no counterpart back", l.nodes[k.a.node].id, l.nodes[k.b.node].id)
	}
	return nil
}

// placeXY takes the x and y of a node for its longitude and latitude, as in the networks of the Topology Zoo.
// Coordinates of another kind are no place. Nor is 0 0, which these files have for unknown places.
func (l *loader) placeXY(line, n int, x, y string) error {
	var p topo.Place
	for _, c := range [...]struct {
		s  string
		to *float64
	}{{x, &p.Longitude}, {y, &p.Latitude}} {
		v, err := strconv.ParseFloat(c.s, 64)
		if err != nil || v != v {
			return l.errorf(line, "node %s: coordinate %q is no number", l.nodes[n].id, c.s)
		}
		*c.to = v
	}
	if p != (topo.Place{}) && p.Known() {
		l.nodes[n].place, l.nodes[n].placed = p, true
	}
	return nil
}

// Demand is the traffic from one node to another.
type Demand struct {
	Src, Dst int
	Rate     float64 // bit/s
}

// Demands reads a .demands file of REPETITA, also packed with gzip: "DEMANDS k", a heading, and k lines "label src
// dst kbit/s" with nodes numbered as in g. Every error is an [Error].
func Demands(name string, r io.Reader, g *topo.Graph) ([]Demand, error) {
	in, _, err := open(name, r)
	if err != nil {
		return nil, &Error{Kind: "demands", File: name, Err: err}
	}
	l := newLoader(name)
	t := table{l: l, nodes: g.NumNodes()}
	var out []Demand
	err = lines(name, in, func(line int, s string) error {
		f := strings.Fields(s)
		if t.section == "" || t.done() {
			return t.begin(line, f, map[string]string{"": "DEMANDS"}[t.section])
		}
		if row, err := t.row(line, f); !row {
			return err
		}
		if len(f) != 4 {
			return l.errorf(line, "%d fields, want label, src, dst, rate of a demand", len(f))
		}
		var d Demand
		var err error
		if d.Src, err = t.node(line, f[1]); err != nil {
			return err
		}
		if d.Dst, err = t.node(line, f[2]); err != nil {
			return err
		}
		if d.Rate, err = parseBandwidth(f[3], 1000); err != nil {
			return l.errorf(line, "demand %s: %w", f[0], err)
		}
		out = append(out, d)
		return nil
	})
	if err == nil {
		err = t.end("DEMANDS")
	}
	if err != nil {
		if e, ok := errors.AsType[*Error](err); ok {
			e.Kind = "demands"
		}
		return nil, err
	}
	return out, nil
}

// table follows the sections of a REPETITA file: a line with the name and number of rows, a heading, the rows.
type table struct {
	l         *loader
	section   string
	want, got int
	heading   bool // seen
	line      int  // of the section
	nodes     int  // 0: as many as the NODES section has
}

func (t *table) done() bool { return t.heading && t.got == t.want }

func (t *table) begin(line int, f []string, next string) error {
	switch {
	case len(f) == 0:
		return nil
	case next == "":
		return t.l.errorf(line, "text behind the %d rows of %s", t.want, t.section)
	case f[0] != next || len(f) != 2:
		return t.l.errorf(line, "want %q and a number", next)
	}
	n, err := strconv.ParseUint(f[1], 10, 31)
	if err != nil {
		return t.l.errorf(line, "number of %s: %q is no number from 0 to 2^31-1", next, f[1])
	}
	t.section, t.want, t.got, t.heading, t.line = next, int(n), 0, false, line
	return nil
}

// row reports whether the line is a row of the section.
func (t *table) row(line int, f []string) (bool, error) {
	switch {
	case len(f) == 0:
		return false, nil
	case !t.heading:
		if f[0] != "label" {
			return false, t.l.errorf(line, "want the heading of %s, which begins with \"label\"", t.section)
		}
		t.heading = true
		return false, nil
	}
	t.got++
	return true, nil
}

func (t *table) node(line int, s string) (int, error) {
	n := t.nodes
	if n == 0 {
		n = len(t.l.nodes)
	}
	v, err := strconv.ParseUint(s, 10, 31)
	if err != nil || int(v) >= n {
		return 0, t.l.errorf(line, "node %q is none of 0..%d", s, n-1)
	}
	return int(v), nil
}

func (t *table) end(last string) error {
	switch {
	case t.section == "":
		return &Error{File: t.l.file, Err: errors.New("the file is empty")}
	case !t.done() && !(t.want == 0 && t.section == last):
		return t.l.errorf(t.line, "%s announces %d rows, the file has %d", t.section, t.want, t.got)
	case t.section != last:
		return t.l.errorf(t.line, "no section %s behind %s", last, t.section)
	}
	return nil
}
