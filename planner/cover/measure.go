package cover

import (
	"errors"
	"math"

	"github.com/hopscope/hopscope/planner/topo"
)

// Measure is the unit in which the traversals of a cover between depots are counted.
type Measure string

// The measures. A link that has no cost costs its weight. In an undirected cover, which may pass a link either way, the
// larger of the two directions counts.
const (
	Links Measure = "links"
	Delay Measure = "delay" // nanoseconds
	Bytes Measure = "bytes" // on the wire, of one round of all probes
	Cost  Measure = "cost"
)

// ErrMeasure is an unknown measure, or one for which links state too little.
var ErrMeasure = errors.New("cannot be minimised")

// Size is the size of a probe, in bytes: Header bytes at its first switch, and PerHop more from every switch on. A probe that a host sends has PerHop
// less, since nothing is added before its first link.
type Size struct{ Header, PerHop int }

// Of returns the bytes that a probe puts on all its links together: on the k-th link, k switches have added theirs.
func (s Size) Of(links int) int64 {
	n := int64(links)
	return n*int64(s.Header) + int64(s.PerHop)*(n*(n+1)/2)
}

// At is the size of a probe on its k-th link, from 1.
func (s Size) At(k int) int64 { return int64(s.Header) + int64(k)*int64(s.PerHop) }

// measure is Minimise, with its default.
func (p *Problem) measure() Measure {
	if p.Minimise == "" {
		return Links
	}
	return p.Minimise
}

// delay of leaving by interface i, in nanoseconds.
func (p *Problem) delay(i int) int64 { return int64(p.Graph.Attr(i).Delay) }

// Weigh returns the weight of a traversal that leaves by interface i. Of bytes it counts links: only a whole probe has a size.
func (p *Problem) Weigh(i int) int64 {
	of := func(i int) int64 {
		switch p.measure() {
		case Delay:
			return p.delay(i)
		case Cost:
			a := p.Graph.Attr(i)
			if a.Cost == 0 {
				return int64(a.Weight)
			}
			return int64(a.Cost)
		}
		return 1
	}
	if p.Directed {
		return of(i)
	}
	return max(of(i), of(p.Graph.Peer(i)))
}

// Length returns the weight of a probe in the objective between depots.
func (p *Problem) Length(w Walk) (sum int64) {
	if p.measure() == Bytes {
		return p.Size.Of(len(w))
	}
	for _, i := range w {
		sum += p.Weigh(int(i))
	}
	return sum
}

// Time is the sum of the delays on the way of a probe, in nanoseconds.
func (p *Problem) Time(w Walk) (sum int64) {
	for _, i := range w {
		sum += p.delay(int(i))
	}
	return sum
}

// Within reports whether a probe keeps to the limits of hops and delay.
func (p *Problem) Within(w Walk) bool {
	return (p.MaxHops == 0 || len(w) <= p.MaxHops) && (p.MaxDelay == 0 || p.Time(w) <= p.MaxDelay)
}

// validateMeasure reports what links do not state, and whether sums could exceed 64 bits.
func (p *Problem) validateMeasure(fail func(format string, args ...any)) {
	m := p.measure()
	switch m {
	case Links, Delay, Cost:
	case Bytes:
		if p.Size.Header+p.Size.PerHop < 0 || p.Size.PerHop < 0 || p.Size.Header > math.MaxUint16 || p.Size.PerHop > math.MaxUint16 || p.Size == (Size{}) {
			fail("cover: bytes %w: a probe of %d bytes and %d more a hop", ErrMeasure, p.Size.Header, p.Size.PerHop)
		}
	default:
		fail("cover: %q %w: there are links, delay, bytes and cost", m, ErrMeasure)
	}
	if m != Links && p.Depots == nil {
		fail("cover: %s %w without depots: every link is passed once, and the number of probes is minimised", m, ErrMeasure)
	}
	if p.MaxDelay < 0 {
		fail("cover: a delay of at most %d ns a probe: the limit must not be negative", p.MaxDelay)
	}
	if p.MaxDelay > 0 && p.Redundant {
		fail("cover: two covers are planned without a limit on delay only")
	}
	if m == Delay || p.MaxDelay > 0 {
		if n, first := p.delaysUnknown(); n > 0 {
			fail("cover: delay %w: that of %d links is not known, among them %s", ErrMeasure, n, p.Graph.LinkName(first))
		}
	}
	if most := p.most(m); most*float64(p.Graph.NumLinks()) > 1<<56 {
		fail("cover: %s %w: the sum over all links can exceed 2^56", m, ErrMeasure)
	}
}

func (p *Problem) delaysUnknown() (n, first int) {
	for l := range p.Graph.NumLinks() {
		x, y := p.Graph.Ends(l)
		if (p.Usable(x) || p.Usable(y)) && (p.delay(x) == 0 || p.delay(y) == 0) {
			if n++; n == 1 {
				first = l
			}
		}
	}
	return n, first
}

// most is the most that a traversal can count.
func (p *Problem) most(m Measure) float64 {
	most := 1.0
	for i := range p.Graph.NumInterfaces() {
		switch {
		case p.Graph.Link(i) < 0:
		case m == Delay || p.MaxDelay > 0:
			most = max(most, float64(p.delay(i)), float64(p.Weigh(i)))
		default:
			most = max(most, float64(p.Weigh(i)))
		}
	}
	return most
}

// validateAgents lists invalid agents.
func (p *Problem) validateAgents(fail func(format string, args ...any)) {
	g := p.Graph
	if p.Agents == nil {
		return
	}
	if _, err := g.WithAgents(p.Agents); err != nil {
		fail("cover: %w", err)
		return
	}
	has := make([]bool, g.NumNodes())
	for _, a := range p.Agents {
		has[a.Node] = true
		if a.Port == 0 && !p.host(a.Node) {
			fail("cover: agent %q: no port of %q is named", a.Name, g.NodeName(a.Node))
		}
	}
	if p.Depots == nil {
		fail("cover: there are agents, but any node may send and receive probes")
	}
	for _, d := range p.Depots {
		if d >= 0 && d < len(has) && !has[d] {
			fail("cover: no agent is at depot %q", g.NodeName(d))
		}
	}
}

// host reports whether node n is a host, which no probe passes.
func (p *Problem) host(n int) bool { return p.Hosts != nil && p.Hosts[n] }

// Transit reports whether a probe may come to node n and go on.
func (p *Problem) Transit(n int) bool { return !p.host(n) }

// Room returns how many probes the agents at a node can send and receive in all.
func (p *Problem) Room() (send, receive []int) {
	send, receive = make([]int, p.Graph.NumNodes()), make([]int, p.Graph.NumNodes())
	for _, a := range p.Agents {
		send[a.Node] = min(send[a.Node]+a.Send, topo.Any)
		receive[a.Node] = min(receive[a.Node]+a.Receive, topo.Any)
	}
	return send, receive
}
