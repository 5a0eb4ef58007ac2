package ways

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
)

// groups finds links that several flows left in the same window, or came to: one cause, published as one finding. The
// finding lasts as long as flows move and, if they left, as long as nothing passes the link in the directions that they
// took.
type groups struct {
	*subject.Table[moveKey, move]
	wires *Wires
}

// moveKey is a link, and what flows do there.
type moveKey struct {
	pair
	joined bool // flows came to it, and did not leave it
}

func (k moveKey) compare(o moveKey) int {
	joined := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(joined(k.joined), joined(o.joined)), k.pair.compare(o.pair))
}

func codeMoveKey(c *subject.Coder, k *moveKey) {
	subject.Number(c, &k.a)
	subject.Number(c, &k.b)
	c.Flag(&k.joined)
}

// move is the state of a link that flows left or came to.
type move struct {
	subject.Tally                      // of flows, since the finding started
	hops            []inference.HopKey // by which they passed the link that they left, where devices name interfaces
	parting, single uint32             // the node at which they part from their ways, and how many do
	policy          bool               // that node sends them elsewhere, and the link is fine
	silent          bool               // nothing passes the hops any more
	example         string
}

// mostGroups bounds the links of which a window can begin a finding: each is a pass over all flows that moved.
const mostGroups = 64

// lingers is the number of windows for which a link is remembered after its finding has ended. Flows that are seen to
// move late, such as those whose path follows from digests, belong to that finding.
const lingers = 60

func codeMove(c *subject.Coder, m *move) {
	subject.Number(c, &m.Count)
	c.Finding(&m.Finding)
	subject.List(c, &m.hops, c.Hop)
	subject.Number(c, &m.parting)
	subject.Number(c, &m.single)
	c.Flag(&m.policy)
	c.Flag(&m.silent)
	c.Text(&m.example)
}

func newGroups(j *subject.Journal, l *Wires) groups {
	return groups{subject.NewTable(j, moveKey.compare, codeMoveKey, codeMove), l}
}

// publishGroups publishes the flows that left or joined a common link, and returns the others. Links with a finding
// come first. Then comes the link that most flows left or joined: it explains most.
func (g groups) publishGroups(w *inference.Window, flows []moved) []moved {
	flows = g.joinGroups(w, g.publishRounds(w, flows))
	for found := 0; found < mostGroups && len(flows) > 1 && len(g.List) < g.Cfg.MaxFlows; found++ {
		key, n := mostMoved(flows)
		if n < 2 {
			break
		}
		var here []moved
		here, flows = split(flows, func(m *moved) bool { return m.at(key) })
		s := g.Observe(key, g.Cfg.MaxFlows)
		*s = move{}
		g.add(w, key, s, here)
	}
	return flows
}

// publishRounds publishes the flows that go round at a common link, and returns the others. A flow that loops left its
// way wherever that was.
func (g groups) publishRounds(w *inference.Window, flows []moved) []moved {
	counts := map[pair]int{}
	for i := range flows {
		if p := flows[i].round; p != (pair{}) {
			counts[p]++
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(counts), pair.compare) {
		key := moveKey{p, true}
		if s := g.Index[key]; counts[p] < 2 && (s == nil || s.State.Finding == nil) {
			continue // one flow has a finding of its own
		}
		s := g.Observe(key, g.Cfg.MaxFlows)
		if s == nil {
			continue
		}
		if s.Finding == nil {
			*s = move{}
		}
		var here []moved
		here, flows = split(flows, func(m *moved) bool { return m.round == p })
		g.add(w, key, s, here)
	}
	return flows
}

// joinGroups adds flows to the findings of links that others left or joined a short time ago. Flows that return belong
// to the finding of the link that they left.
func (g groups) joinGroups(w *inference.Window, flows []moved) []moved {
	g.Order()
	for _, ended := range []bool{false, true} {
		for _, s := range g.List {
			if len(flows) == 0 {
				return nil
			}
			if (s.State.Finding == nil) != ended {
				continue
			}
			opposite := moveKey{s.Key.pair, !s.Key.joined}
			var same, back []moved
			same, flows = split(flows, func(m *moved) bool { return m.at(s.Key) })
			back, flows = split(flows, func(m *moved) bool { return m.at(opposite) })
			if len(same)+len(back) == 0 {
				continue
			}
			s.Last = g.Windows
			switch {
			case len(same) == 0:
			case !ended:
				g.add(w, s.Key, &s.State, same)
			case len(same) >= g.Cfg.PathGroup: // that is more than late ones: it happens again, here or beside it
				flows = append(flows, same...)
			}
		}
	}
	return flows
}

// add publishes the finding of flows that left a link or came to it.
func (g groups) add(w *inference.Window, k moveKey, s *move, flows []moved) {
	first := s.Finding == nil
	var to []inference.HopKey
	if first && flows[0].round != k.pair { // a node that sends packets round does not do it alone
		s.parting = mostPart(flows, k.pair)
	}
	for i := range flows {
		m := &flows[i]
		if node, ok := m.parts(); ok && node == s.parting {
			s.single++
		}
		for _, h := range hopsOn(m.from, k.pair) {
			if !k.joined && len(s.hops) < subject.MostHops && !slices.Contains(s.hops, h) {
				s.hops = append(s.hops, h)
			}
		}
		for _, h := range m.changedHops() {
			if len(to) < subject.MostHops && !slices.Contains(to, h) {
				to = append(to, h)
			}
		}
	}
	s.Count += uint64(len(flows))
	if first {
		m := &flows[0]
		s.example = fmt.Sprintf("%s, went %s and now goes %s", m.flow, inference.HopPath(m.from), inference.HopPath(m.to))
		if m.round != (pair{}) {
			s.example += fmt.Sprintf("; packets go round between nodes %d and %d", m.round.a, m.round.b)
		}
		s.policy = k.joined || k.a == k.b || g.passes(w, k.pair, s.parting)
		if h, ok := g.member(k, flows); ok {
			s.hops, s.policy = []inference.HopKey{h}, false
		}
	}
	element := inference.ElementOfLink(k.a, k.b)
	switch {
	case s.byNode():
		element = inference.ElementOfNode(s.parting)
	case s.ofBundle(k):
		if peers := g.wires.Peers(s.hops[0]); len(peers) > 0 {
			element = inference.ElementOfLinkAt(s.hops[0], inference.HopKey{Node: peers[0]})
		} else {
			element = inference.ElementOfHop(s.hops[0])
		}
	}
	severity := inference.Info
	if s.Count >= uint64(g.Cfg.PathGroup) {
		severity = inference.Warning
	}
	f := inference.Finding{Kind: inference.PathChanged, Severity: severity, Element: element, Value: float64(s.Count), Text: s.text(k, g.Cfg.PathGroup)}
	switch {
	case element.Kind == inference.NodeElement:
		f.Node = element.Node
	case len(s.hops) > 0:
		f.Node, f.EgressIf = s.hops[0].Node, s.hops[0].EgressIf
	default:
		f.Node = k.a
	}
	g.Publish(&s.Finding, f)
	g.Moved[s.Finding.ID] = append(g.Moved[s.Finding.ID], to...)
}

// member returns the interface that nearly all flows left which part at a node. It must be one of several to the same
// neighbour, and hardly any flow may stay on it. It is then a member of a bundle, and the node is fine. After a member
// that is back in the same window, flows may appear only later.
func (g groups) member(k moveKey, flows []moved) (h inference.HopKey, ok bool) {
	if k.joined || k.a != k.b {
		return h, false
	}
	left, most := map[inference.HopKey]int{}, 0
	for i := range flows {
		if at := slices.IndexFunc(flows[i].from, func(x inference.HopKey) bool { return x.Node == k.a && x.EgressIf != 0 }); at >= 0 {
			x := flows[i].from[at]
			if left[x]++; left[x] > most {
				h, most = x, left[x]
			}
		}
	}
	back := 0
	for i := range flows {
		if m := &flows[i]; slices.Contains(m.from, h) && slices.Contains(m.now, h) {
			back++
		}
	}
	if 4*most < 3*len(flows) {
		return h, false
	}
	peers := g.wires.Peers(h)
	stay := 0
	for i := range g.wires.flows {
		f := &g.wires.flows[i]
		if slices.ContainsFunc(f.Hops, func(x inference.FlowHop) bool { return x.HopKey == h }) && !slices.ContainsFunc(flows, func(m moved) bool { return m.flow == f.Key }) {
			stay++
		}
	}
	if len(peers) != 1 || 4*stay > most && 2*back < most {
		return h, false
	}
	return h, slices.ContainsFunc(g.wires.Interfaces(k.a), func(x inference.HopKey) bool { return x != h && slices.Equal(g.wires.Peers(x), peers) })
}

// ofBundle reports whether flows left a member of a bundle.
func (s *move) ofBundle(k moveKey) bool { return k.a == k.b && !s.policy && len(s.hops) == 1 }

// byNode reports whether a node sends the flows elsewhere, and the link is fine: nearly all of them part there.
func (s *move) byNode() bool { return s.policy && s.parting != 0 && uint64(s.single)*5 >= s.Count*4 }

// mostPart returns the end of a link at which most flows part from their ways.
func mostPart(flows []moved, p pair) uint32 {
	var parts [2]int
	for i := range flows {
		if node, ok := flows[i].parts(); ok && node == p.a {
			parts[0]++
		} else if ok && node == p.b {
			parts[1]++
		}
	}
	switch {
	case parts[0] == 0 && parts[1] == 0:
		return 0
	case parts[0] >= parts[1]:
		return p.a
	}
	return p.b
}

// place names the link.
func (k moveKey) place() string {
	if k.a == k.b {
		return fmt.Sprintf("a link of node %d", k.a)
	}
	return fmt.Sprintf("the link between nodes %d and %d", k.a, k.b)
}

func (s *move) text(k moveKey, group int) string {
	verb := "left"
	if k.joined {
		verb = "came to"
	}
	text := fmt.Sprintf("%d flows %s %s", s.Count, verb, k.place())
	if s.ofBundle(k) {
		text = fmt.Sprintf("%d flows left interface %s for another one to the same node", s.Count, s.hops[0])
	}
	if s.byNode() {
		text = fmt.Sprintf("node %d sends %d flows another way: they %s %s", s.parting, s.Count, verb, k.place())
	}
	if s.silent {
		text += ", and nothing else passes it the way that they went"
	}
	return text + "; one of them, " + s.example
}

// passes reports whether packets still pass a link towards one of its nodes.
func (g groups) passes(w *inference.Window, p pair, to uint32) bool {
	from := p.a
	if from == to {
		from = p.b
	}
	for _, h := range g.wires.Interfaces(from) {
		if slices.Contains(g.wires.Peers(h), to) && seenHop(w, h) {
			return true
		}
	}
	return false
}

// seenHop reports whether a window has packets of a hop.
func seenHop(w *inference.Window, h inference.HopKey) bool {
	i, ok := slices.BinarySearchFunc(w.Hops, h, func(s inference.HopStats, h inference.HopKey) int { return s.HopKey.Compare(h) })
	return ok && w.Hops[i].Count > 0
}

// end ends what moved no more for some time.
func (g groups) end(w *inference.Window) {
	g.ForEachAbsent(func(k moveKey, s *move, windows int) bool {
		if s.Finding == nil {
			return windows >= lingers
		}
		silent := len(s.hops) > 0 && !slices.ContainsFunc(s.hops, func(h inference.HopKey) bool { return seenHop(w, h) })
		if windows < g.Cfg.PathStable || silent && windows < g.Cfg.ForgetAfter {
			if silent && !s.silent {
				s.silent = true
				s.Finding.Text = s.text(k, g.Cfg.PathGroup)
			}
			return false
		}
		verb := "left"
		if k.joined {
			verb = "comes to"
		}
		text := fmt.Sprintf("no further flow %s %s, after %s", verb, k.place(), subject.Plural(s.Count, "flow"))
		if s.silent && !silent {
			text = fmt.Sprintf("packets pass %s again, which %s had left", k.place(), subject.Plural(s.Count, "flow"))
		}
		g.Table.End(&s.Finding, text)
		return false
	})
}

// at reports whether the flow left a link, or came to it.
func (m *moved) at(k moveKey) bool {
	if k.joined {
		return slices.Contains(m.joined, k.pair)
	}
	return slices.Contains(m.left, k.pair)
}

// mostMoved returns the link that most flows left or came to. A link that they left comes before one that they came to
// unless there are a third fewer. Among those with as many, one before which they parted from their way comes first. Of
// these the first counts. Links without a name come last.
func mostMoved(flows []moved) (best moveKey, n int) {
	type count struct{ flows, parted, named int }
	counts := map[moveKey]count{}
	for i := range flows {
		m := &flows[i]
		node, ok := m.parts()
		for _, p := range m.left {
			c := counts[moveKey{p, false}]
			if c.flows++; ok && p.has(node) {
				c.parted++
			}
			if p.a != p.b {
				c.named = 1
			}
			counts[moveKey{p, false}] = c
		}
		for _, p := range m.joined {
			c := counts[moveKey{p, true}]
			c.flows++
			counts[moveKey{p, true}] = c
		}
	}
	var most count
	weigh := func(k moveKey, c count) int {
		if k.joined {
			return 2 * c.flows
		}
		return 3 * c.flows
	}
	for k, c := range counts {
		d := cmp.Or(cmp.Compare(weigh(k, c), weigh(best, most)), cmp.Compare(c.named, most.named), cmp.Compare(c.parted, most.parted), best.compare(k))
		if d > 0 || most.flows == 0 {
			best, most = k, c
		}
	}
	return best, most.flows
}

// split returns those for which it is true, and the others, both in order.
func split(flows []moved, is func(*moved) bool) (yes, no []moved) {
	for i := range flows {
		if is(&flows[i]) {
			yes = append(yes, flows[i])
		} else {
			no = append(no, flows[i])
		}
	}
	return yes, no
}
