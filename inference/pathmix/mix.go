package pathmix

import (
	"cmp"
	"math"
	"slices"

	"github.com/hopscope/hopscope/decode/pint"
)

// Path is one path of a mixture.
type Path struct {
	Nodes      []uint32
	Share      float64 // of all packets
	Confidence float64 // probability that the path is used
}

// Set holds paths of which some are used, but the digests do not distinguish them. If there is only one, it is not
// known whether it is used beside the others: those explain its digests as well.
type Set struct {
	Paths [][]uint32
	Share float64 // of all packets that take one of them
}

// Result is the paths of a flow.
type Result struct {
	Paths       []Path // that are used, the one with the greatest share first
	Inseparable []Set
	Unexplained float64 // share of packets that take no candidate, or whose digests are wrong
	Digests     int     // that the result rests on
	Candidates  int     // paths that were weighed
	Complete    bool    // all paths that the links allow were weighed, but those that hardly any digest confirms
}

// Agrees reports whether a path explains a digest.
func (m *Model) Agrees(path []uint32, d Digest) bool {
	return len(path) == int(d.Hops) && m.config.Scheme.Digest(d.ID, path) == d.Value
}

// Fit finds the paths that packets of a flow take, and the share of each. The order of the digests does not matter, but
// where there are more of one length than Config.Digests only the last ones count. Ingress and egress name sets of ends
// as in Config.Ends, 0 if they are not known.
func (m *Model) Fit(digests []Digest, ingress, egress uint16) Result {
	lengths := map[int]int{}
	total := 0
	for _, d := range digests {
		if d.Hops >= 1 && d.Hops <= pint.MaxHops {
			lengths[int(d.Hops)]++
			total++
		}
	}
	r := Result{Complete: true}
	order := make([]int, 0, len(lengths))
	for k := range lengths {
		order = append(order, k)
	}
	slices.Sort(order)
	for _, k := range order {
		part := float64(lengths[k]) / float64(total)
		one := m.fitLength(digests, k, ingress, egress)
		for _, p := range one.Paths {
			p.Share *= part
			r.Paths = append(r.Paths, p)
		}
		for _, s := range one.Inseparable {
			s.Share *= part
			r.Inseparable = append(r.Inseparable, s)
		}
		r.Unexplained += part * one.Unexplained
		r.Digests += one.Digests
		r.Candidates += one.Candidates
		r.Complete = r.Complete && one.Complete
	}
	slices.SortStableFunc(r.Paths, func(a, b Path) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), slices.Compare(a.Nodes, b.Nodes))
	})
	for len(r.Paths) > m.config.Paths {
		last := len(r.Paths) - 1
		r.Unexplained += r.Paths[last].Share
		r.Paths = r.Paths[:last]
	}
	return r
}

const (
	maxImproves = 6    // how often candidates are looked for that the first enumeration left out
	maxBlurred  = 1024 // columns with hops that differ from the links
	maxRepairs  = 3    // how often a mixture gives way to a better one that was found while it was doubted
)

// solver fits the paths of one length.
type solver struct {
	fitter
	m     *Model
	e     *evidence
	price float64
	ends  [2]int          // where most packets enter and leave; -1 if there is no such node
	known map[string]bool // paths that are columns
	wild  map[*column]bool

	blurred int // columns with hops that can be anything
}

func (m *Model) fitLength(digests []Digest, k int, ingress, egress uint16) Result {
	e := m.read(digests, k)
	all := float64(e.n + e.wrong)
	r := Result{Digests: e.n + e.mute + e.wrong, Complete: true}
	if e.n == 0 {
		r.Unexplained = 1
		return r
	}
	list, complete := m.candidates(e, ingress, egress)
	s := m.solver(e, list)
	x := &mixture{}
	s.fit(x, nil, math.Inf(-1))
	for range maxImproves {
		if complete || !s.improve(x, ingress, egress) {
			break
		}
		s.fit(x, nil, math.Inf(-1))
	}
	s.prune(x)
	for range maxRepairs {
		if !s.doubt(x) {
			break
		}
		s.fit(x, nil, math.Inf(-1))
		s.prune(x)
	}
	margins, rivals := s.judge(x)
	s.writeResult(&r, x, margins, rivals)
	for i := range r.Paths {
		r.Paths[i].Share *= float64(e.n) / all
	}
	for i := range r.Inseparable {
		r.Inseparable[i].Share *= float64(e.n) / all
	}
	r.Unexplained = (r.Unexplained*float64(e.n) + float64(e.wrong)) / all
	r.Candidates, r.Complete = len(s.known), complete
	return r
}

// solver makes columns of candidates, with chance as the first.
func (m *Model) solver(e *evidence, list []candidate) *solver {
	s := &solver{m: m, e: e, known: map[string]bool{}, wild: map[*column]bool{}}
	s.n = e.n
	for i := range s.power {
		s.power[i] = math.Exp2(-m.bits * float64(i))
	}
	s.density, s.inverse = make([]float64, e.n), make([]float64, e.n)
	s.price = math.Log(float64(max(len(list), 16))) + math.Log(float64(e.n))/2
	chance := &column{unknown: ^uint64(0), packets: listed(e.all()), parts: e.parts}
	s.columns = append(s.columns, chance)
	for i, h := range [2]int{0, e.k - 1} {
		s.ends[i] = -1
		for u, n := range m.support(e, h, nil) {
			if 2*n > float64(len(e.single[h])) {
				s.ends[i] = u
			}
		}
	}
	s.add(list)
	return s
}

func (s *solver) add(list []candidate) (added bool) {
	for _, c := range list {
		key := string(bytesOf(c.path))
		if s.known[key] {
			continue
		}
		s.known[key] = true
		x := &column{path: c.path, packets: listed(c.agree), price: s.price}
		for i, u := range [2]uint16{c.path[0], c.path[s.e.k-1]} {
			if s.ends[i] >= 0 && s.ends[i] != int(u) {
				x.price -= math.Log(s.m.config.Unmodelled)
			}
		}
		s.columns = append(s.columns, x)
		added = true
	}
	return added
}

func bytesOf(path []uint16) []byte {
	b := make([]byte, 0, 2*len(path))
	for _, u := range path {
		b = append(b, byte(u>>8), byte(u))
	}
	return b
}

// improve finds candidates that would make a mixture more likely.
func (s *solver) improve(x *mixture, ingress, egress uint16) bool {
	s.weigh(x)
	list := s.m.improve(s.e, ingress, egress, s.inverse, float64(s.n)+2*slack)
	return s.add(list[:min(len(list), 256)])
}

// doubt adds, for each path of a mixture, the same path with hops that differ from the links. It reports whether some
// were new.
func (s *solver) doubt(x *mixture) (added bool) {
	for _, c := range x.members {
		if !c.real() || s.wild[c.column] {
			continue
		}
		s.wild[c.column] = true
		added = true
		longest := 3
		if s.e.k > 8 {
			longest = 2
		}
		for n := 1; n <= longest && n < s.e.k; n++ {
			for h := 0; h+n <= s.e.k && s.blurred < maxBlurred; h++ {
				s.blurred++
				s.columns = append(s.columns, s.blur(c.path, (1<<n-1)<<h))
			}
		}
	}
	return added
}

// blur makes a column of a path of which some hops can be anything.
func (s *solver) blur(path []uint16, unknown uint64) *column {
	e, m := s.e, s.m
	set := e.all()
	touched := make([]uint8, e.n)
	for h, u := range path {
		if unknown>>h&1 != 0 {
			for i := range e.single[h] {
				touched[e.single[h][i].number]++
			}
			continue
		}
		for i, w := range m.at(e, h, u).agree {
			set[i] &= w
		}
	}
	sums := make([]uint32, len(e.multi))
	for h, u := range path {
		c := m.at(e, h, u)
		for i, j := range e.wrote[h] {
			sums[j] ^= c.values[i]
		}
	}
	for j := range e.multi {
		if x := &e.multi[j]; x.writers&unknown != 0 {
			touched[x.number]++
		} else if sums[j] != x.want {
			set[x.number>>6] &^= 1 << (x.number & 63)
		}
	}
	c := &column{path: path, unknown: unknown, packets: listed(set), price: s.price - math.Log(m.config.Unmodelled)}
	c.parts = make([]uint8, len(c.packets))
	for i, p := range c.packets {
		c.parts[i] = touched[p]
	}
	return c
}

// judge finds, for each path of a mixture, the best mixture without it, and by how much that is less likely. Where it
// finds a better mixture than x, that takes the place of x.
func (s *solver) judge(x *mixture) (margins []float64, rivals []*mixture) {
	for try := 0; ; try++ {
		margins, rivals = nil, nil
		better := false
		score := x.score()
		for _, p := range x.members {
			if !p.real() {
				margins, rivals = append(margins, math.Inf(1)), append(rivals, nil)
				continue
			}
			// The likelihood that no other mixture can reach, even one that needs a path less.
			worth := x.log - p.price - s.tau()
			y := x.without(p.column)
			s.fit(y, p.column, worth)
			if y.bound < worth {
				margins, rivals = append(margins, x.log-p.price-y.bound), append(rivals, nil)
				continue
			}
			s.prune(y)
			margin := score - y.score()
			margins, rivals = append(margins, margin), append(rivals, y)
			if margin < -slack*2 && try < maxRepairs {
				*x = *y
				better = true
				break
			}
		}
		if !better {
			return margins, rivals
		}
		s.doubt(x)
	}
}

// tau is the margin from which on a path is published.
func (s *solver) tau() float64 {
	c := s.m.config.Confidence
	return math.Log(c / (1 - c))
}

// writeResult makes the result of a mixture.
func (s *solver) writeResult(r *Result, x *mixture, margins []float64, rivals []*mixture) {
	var sets []*group
	for i, p := range x.members {
		switch {
		case !p.real():
			r.Unexplained += p.share
		case margins[i] >= s.tau():
			r.Paths = append(r.Paths, Path{s.name(p.path), p.share, 1 / (1 + math.Exp(-margins[i]))})
		default:
			g := &group{share: p.share, columns: []*column{p.column}}
			for _, q := range rivals[i].members {
				if !x.has(q.column) {
					g.columns = append(g.columns, q.column)
					g.offMap = g.offMap || !q.real()
				}
			}
			sets = append(sets, g)
		}
	}
	for _, g := range merge(sets) {
		set := Set{Share: g.share}
		for _, c := range g.columns {
			if c.real() {
				set.Paths = append(set.Paths, s.name(c.path))
			}
		}
		if g.offMap && len(set.Paths) == 1 { // the path, or one that the links do not have
			r.Unexplained += g.share
			continue
		}
		slices.SortFunc(set.Paths, slices.Compare)
		r.Inseparable = append(r.Inseparable, set)
	}
}

// group is a set of columns that the digests do not distinguish.
type group struct {
	columns []*column
	share   float64
	offMap  bool // some differ from the links
}

// merge puts groups together that have a column in common.
func merge(groups []*group) (out []*group) {
	for _, g := range groups {
		for i := 0; i < len(out); {
			o := out[i]
			if !slices.ContainsFunc(o.columns, func(c *column) bool { return slices.Contains(g.columns, c) }) {
				i++
				continue
			}
			for _, c := range o.columns {
				if !slices.Contains(g.columns, c) {
					g.columns = append(g.columns, c)
				}
			}
			g.share += o.share
			g.offMap = g.offMap || o.offMap
			out = slices.Delete(out, i, i+1)
		}
		out = append(out, g)
	}
	return out
}

func (s *solver) name(path []uint16) []uint32 {
	ids := make([]uint32, len(path))
	for h, u := range path {
		ids[h] = s.m.nodes[u]
	}
	return ids
}
