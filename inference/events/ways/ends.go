package ways

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
	"github.com/hopscope/hopscope/inference/loss"
)

// The first switch on a way reports a packet that comes from a host, and the last one a packet that goes to a host.
// Places behind them are on no link between switches, and lose packets as well. They are a port with a full queue, a
// host, or the reports themselves. An end is one such place. Which of those it is does not show. A finding of an end
// states that, and is no more than a warning.

// endScope is the extent of an end.
type endScope uint8

const (
	noEnd      endScope = iota
	portEnd             // the port by which packets leave the last switch
	hostEnd             // the receiver
	lastEnd             // all that leaves at a switch
	firstEnd            // all that enters at a switch
	otherEnd            // packets that leave at a switch otherwise than they entered
	sentEnd             // the sender
	noEndScope          // none
)

// end is a place behind the first or the last switch of ways.
type end struct {
	scope endScope
	node  uint32
	port  uint32
	host  decode.Addr
}

func (e end) compare(o end) int {
	return cmp.Or(cmp.Compare(e.scope, o.scope), cmp.Compare(e.node, o.node), cmp.Compare(e.port, o.port), bytes.Compare(e.host[:], o.host[:]))
}

// holds reports whether another end is a part of this one: a port or a host of all that leaves, or enters, at a node.
func (e end) holds(o end) bool {
	return e.node == o.node && (e.scope == lastEnd && (o.scope == portEnd || o.scope == hostEnd) || e.scope == firstEnd && o.scope == sentEnd)
}

func codeEnd(c *subject.Coder, e *end) {
	subject.Number(c, &e.scope)
	c.Check("end of ways", e.scope < noEndScope)
	subject.Number(c, &e.node)
	subject.Number(c, &e.port)
	c.Address(&e.host)
}

// endsOf returns the ends of a way, the narrowest first.
func endsOf(flow decode.FlowKey, path []inference.HopKey) []end {
	if len(path) == 0 {
		return nil
	}
	last := path[len(path)-1]
	ends := make([]end, 0, 5)
	if last.EgressIf != 0 {
		ends = append(ends, end{scope: portEnd, node: last.Node, port: last.EgressIf})
	}
	return append(ends, end{scope: hostEnd, node: last.Node, host: flow.Dst}, end{scope: lastEnd, node: last.Node},
		end{scope: sentEnd, node: path[0].Node, host: flow.Src}, end{scope: firstEnd, node: path[0].Node})
}

// suspects are candidates of a fit by number.
type suspects[K comparable] struct {
	index map[K]int32
	list  []K
	flows [][]int32 // that cross each of them
}

func (s *suspects[K]) reset() {
	if s.index == nil {
		s.index = map[K]int32{}
	}
	clear(s.index)
	s.list, s.flows = s.list[:0], s.flows[:0]
}

func (s *suspects[K]) len() int { return len(s.list) }

// cross notes that a flow crosses a candidate, and returns the candidate's number.
func (s *suspects[K]) cross(k K, flow int32) int32 {
	at, known := s.index[k]
	if !known {
		at = int32(len(s.list))
		s.index[k] = at
		s.list, s.flows = append(s.list, k), append(s.flows, nil)
	}
	s.flows[at] = append(s.flows[at], flow)
	return at
}

// place returns the number of a candidate, if it is one.
func (s *suspects[K]) place(k K) (at int32, ok bool) {
	at, ok = s.index[k]
	return at, ok
}

// keep leaves those that a function accepts by number.
func (s *suspects[K]) keep(accept func(at int) bool) {
	kept := int32(0)
	for at := range s.list {
		if !accept(at) {
			delete(s.index, s.list[at])
			continue
		}
		s.list[kept], s.flows[kept] = s.list[at], s.flows[at]
		s.index[s.list[kept]] = kept
		kept++
	}
	s.list, s.flows = s.list[:kept], s.flows[:kept]
}

// mergeEnds leaves of several ends that the same flows cross the first one, which is the narrowest.
func mergeEnds(s *suspects[end]) {
	byFirst := map[int32][][]int32{}
	s.keep(func(at int) bool {
		flows := s.flows[at]
		if slices.ContainsFunc(byFirst[flows[0]], func(o []int32) bool { return slices.Equal(o, flows) }) {
			return false
		}
		byFirst[flows[0]] = append(byFirst[flows[0]], flows)
		return true
	})
}

// end returns the end that is a candidate of the fit, or none.
func (x *Silent) end(candidate int32) end {
	if candidate < 0 || int(candidate) >= x.ends.len() {
		return end{}
	}
	return x.ends.list[candidate]
}

// link returns the link that is a candidate of the fit, which is no end.
func (x *Silent) link(candidate int32) link { return x.links.list[int(candidate)-x.ends.len()] }

// wholeLink returns the link that is a candidate of the fit, or that it is a member of.
func (x *Silent) wholeLink(candidate int32) link {
	l := x.link(candidate)
	l.from.EgressIf = 0
	return l
}

// beside weighs the rivals of an end that are not ends of the same node.
func (x *Silent) beside(e end, rivals []loss.Rival) (sum float64) {
	for _, r := range rivals {
		if x.end(r.Link).node != e.node || x.end(r.Link).scope == noEnd {
			sum += r.Weight
		}
	}
	return sum
}

// likeliestEnd returns the end among the rivals of a link that explains the losses nearly as well as the link does.
func (x *Silent) likeliestEnd(rivals []loss.Rival) (at int32, ok bool) {
	most := 1 - silentSure
	for _, r := range rivals {
		if scope := x.end(r.Link).scope; scope != noEnd && scope != sentEnd && r.Weight > most {
			at, ok, most = r.Link, true, r.Weight
		}
	}
	return at, ok
}

// crossed sums up what flows that cross a candidate of the fit lost.
func (x *Silent) crossed(candidate int32) (packets, lost uint64) {
	for i := range x.samples {
		if s := &x.samples[i]; slices.Contains(s.Links, candidate) {
			packets += s.Packets
			lost += s.Lost
		}
	}
	return packets, lost
}

// element returns the element of an end.
func (e end) element() inference.Element {
	if e.scope == portEnd {
		return inference.ElementOfHop(inference.HopKey{Node: e.node, EgressIf: e.port})
	}
	return inference.ElementOfNode(e.node)
}

// packets returns a text about the packets that pass an end.
func (e end) packets() string {
	switch e.scope {
	case portEnd:
		return fmt.Sprintf("packets to port %d of node %d", e.port, e.node)
	case hostEnd:
		return fmt.Sprintf("packets to host %s behind node %d", e.address(), e.node)
	case sentEnd:
		return fmt.Sprintf("packets of host %s that entered at node %d", e.address(), e.node)
	case firstEnd:
		return fmt.Sprintf("packets that entered at node %d", e.node)
	}
	return fmt.Sprintf("packets to node %d", e.node)
}

func (e end) address() netip.Addr { return e.host.Netip() }

// places returns a text about where packets of an end can have been lost. It adds that the links can have lost them as
// well.
func (e end) places(links []link) string {
	var out []string
	switch e.scope {
	case firstEnd:
		out = append(out, "the node itself", "its reports")
	case sentEnd:
		out = append(out, "the node itself", "what writes other addresses for the host")
	case lastEnd:
		out = append(out, "its host ports", "the node itself", "its reports")
	case portEnd:
		out = append(out, "its host port", "the host", "its reports")
	case hostEnd:
		out = append(out, "its host port", "the host", "its reports")
	}
	for _, l := range links {
		out = append(out, fmt.Sprintf("the link from node %d to node %d", l.from.Node, l.to.Node))
	}
	where := "behind"
	if e.scope == firstEnd || e.scope == sentEnd {
		where = "at"
	}
	return fmt.Sprintf("lost %s node %d: %s, or %s; cannot be distinguished from here", where, e.node, strings.Join(out[:len(out)-1], ", "), out[len(out)-1])
}

// placesIn returns where the text of a finding has packets of an end lost, behind a colon.
func placesIn(text string) string {
	if at := strings.LastIndex(text, ": lost "); at >= 0 {
		return text[at:]
	}
	return ""
}

// culpritOf returns the culprit of a candidate of the fit.
func (x *Silent) culpritOf(candidate int32) culprit {
	if e := x.end(candidate); e.scope != noEnd {
		return culprit{end: e}
	}
	l := x.link(candidate)
	return culprit{from: l.from.Node, to: l.to.Node}
}

// findingOfEnd makes the finding of an end.
func (x *Silent) findingOfEnd(at int32, c *loss.Culprit, over time.Duration) inference.Finding {
	e := x.end(at)
	if at != c.Link {
		c.Packets, c.Lost = x.crossed(at)
		c.Ratio = float64(c.Lost) / float64(max(c.Packets, 1))
	}
	var links []link
	add := func(candidate int32) {
		if l := x.wholeLink(candidate); !slices.Contains(links, l) {
			links = append(links, l)
		}
	}
	for _, r := range c.Rivals {
		if r.Link >= 0 && x.end(r.Link).scope == noEnd && r.Weight > 1-silentSure {
			add(r.Link)
		}
	}
	if at != c.Link {
		add(c.Link)
	}
	f := inference.Finding{Kind: inference.PacketLoss, Severity: inference.Warning, Element: e.element(), Node: e.node, EgressIf: e.port}
	f.Text = fmt.Sprintf("%d of %d %s are in no report of their last switch within %v (%s): %s", c.Lost, c.Packets, e.packets(), over,
		inference.Percent(c.Ratio, 2), e.places(subject.First(links, 4)))
	return f
}
