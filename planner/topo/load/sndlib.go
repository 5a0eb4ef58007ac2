package load

import (
	"io"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/planner/topo"
)

// sndlib is a network of the library SNDlib: nodes with coordinates, and links with
// an installed capacity and a routing cost. Modules, demands and paths are of planning problems, and not read.
type sndlib struct {
	l     *loader
	unit  string // of capacities, if the file names one
	pixel bool   // coordinates are those of a picture
	spots []sndlibSpot
	links []sndlibLink
}

type sndlibSpot struct {
	node int
	x, y string
	line int
}

type sndlibLink struct {
	id, source, target, capacity, cost string
	line                               int
}

func (s *sndlib) node(line int, id, x, y string) error {
	n, err := s.l.node(line, id, "", topo.NoTier)
	if err == nil && x != "" && y != "" {
		s.spots = append(s.spots, sndlibSpot{n, x, y, line})
	}
	return err
}

func (s *sndlib) link(k sndlibLink) error {
	if len(s.links) == topo.MaxLinks {
		return s.l.errorf(k.line, "more than %d links", topo.MaxLinks)
	}
	s.links = append(s.links, k)
	return nil
}

// finish settles what needs all nodes and links. Coordinates are places only if all of them can be, since some points
// of a picture would be on the earth too. Routing costs are costs only if all of them can be, since costs of a part
// compare with nothing. Links are directions if each has one that leads back, as in the networks of SNDlib that are
// called directed.
func (s *sndlib) finish() error {
	onEarth := !s.pixel
	for _, p := range s.spots {
		if err := s.l.placeXY(p.line, p.node, p.x, p.y); err != nil {
			return err
		}
		x, _ := strconv.ParseFloat(p.x, 64)
		y, _ := strconv.ParseFloat(p.y, 64)
		onEarth = onEarth && topo.Place{Longitude: x, Latitude: y}.Known()
	}
	for i := range s.l.nodes {
		s.l.nodes[i].placed = s.l.nodes[i].placed && onEarth
	}
	costs, balance := true, map[[2]string]int{}
	for _, k := range s.links {
		_, err := parseWeight("cost", k.cost)
		costs = costs && err == nil
		balance[[2]string{k.source, k.target}]++
		balance[[2]string{k.target, k.source}]--
	}
	directed := true
	for _, n := range balance {
		directed = directed && n == 0
	}
	unit := map[string]float64{"KBITPERSEC": 1e3, "MBITPERSEC": 1e6, "GBITPERSEC": 1e9}[strings.ToUpper(s.unit)]
	for _, k := range s.links {
		a, err := s.l.lookup(k.line, k.source)
		if err != nil {
			return err
		}
		b, err := s.l.lookup(k.line, k.target)
		if err != nil {
			return err
		}
		attr := topo.DefaultAttr
		if k.capacity != "" && unit > 0 {
			if attr.Bandwidth, err = parseBandwidth(k.capacity, unit); err != nil {
				return s.l.errorf(k.line, "link %s: %w", k.id, err)
			}
		}
		if costs {
			attr.Cost, _ = parseWeight("cost", k.cost) // all were read above
		}
		if directed && a != b {
			err = s.l.arc(k.line, a, b, attr)
		} else {
			err = s.l.link(k.line, endSpec{node: a, attr: attr}, endSpec{node: b, attr: attr})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readSNDlib reads the native format, with sections "NAME (" to ")". Lines of NODES are "id ( longitude latitude )".
// Lines of LINKS are "id ( source target ) capacity cost routing-cost setup-cost ( modules )".
func readSNDlib(l *loader, r io.Reader) error {
	s := sndlib{l: l}
	section, since, depth := "", 0, 0
	spaced := strings.NewReplacer("(", " ( ", ")", " ) ")
	err := lines(l.file, r, func(line int, text string) error {
		text = strings.TrimSpace(text)
		if strings.HasPrefix(text, "?") && !strings.Contains(text, "type: network") {
			return l.errorf(line, "SNDlib file %q; of these only \"type: network\" is read", text)
		}
		if text == "" || text[0] == '#' || text[0] == '?' {
			return nil
		}
		f := strings.Fields(spaced.Replace(text))
		if section == "" {
			if len(f) < 2 || f[1] != "(" {
				return l.errorf(line, "%q begins no section; want NODES ( or LINKS (", text)
			}
			section, since, depth, f = f[0], line, 0, f[1:]
		}
		depth += strings.Count(text, "(") - strings.Count(text, ")")
		switch {
		case depth <= 0:
			section = ""
		case f[0] == "(":
		case section == "META" && len(f) == 3 && f[0] == "unit":
			s.unit = f[2]
		case section == "NODES" && len(f) == 1:
			return s.node(line, f[0], "", "")
		case section == "NODES":
			if len(f) != 5 || f[1] != "(" || f[4] != ")" {
				return l.errorf(line, "%q is no node; want id ( longitude latitude )", text)
			}
			return s.node(line, f[0], f[2], f[3])
		case section == "LINKS":
			if len(f) < 9 || f[1] != "(" || f[4] != ")" {
				return l.errorf(line, "%q is no link; want id ( source target ) and four numbers", text)
			}
			return s.link(sndlibLink{id: f[0], source: f[2], target: f[3], capacity: f[5], cost: f[7], line: line})
		}
		return nil
	})
	if err == nil && section != "" {
		err = l.errorf(since, "section %s is not closed; the file may be cut off", section)
	}
	if err != nil {
		return err
	}
	return s.finish()
}
