package world

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/hopscope/hopscope/decode"
)

// flow is packets between two hosts.
type flow struct {
	name     string
	from, to int // ports towards the hosts
	head     header
	hash     uint64
	weight   float64 // bit/s
	rate     float64 // sampled packets a second
	high     bool
	next     float64 // time of the next packet
	path     []int   // ports; none if there is no way
	base     []int   // path before anything happened
	order    int     // in the heap, for equal times
}

// datagram is a datagram that an exporter sent.
type datagram struct {
	at      float64
	from    netip.Addr
	payload []byte
	order   int
}

// world is a network at work.
type world struct {
	s         *Scenario
	r         *rand.Rand
	net       *network
	flows     []*flow
	now       float64 // s since the quiet ended
	changes   []float64
	seq       [][2]uint32 // by node: of reports, and of those of packets that enter
	restarted map[int]*fault
	crossed   map[*fault]bool
	tokens    []struct{ left, at float64 }
	pending   []datagram
	sent      int
	second    float64

	atPort, atNode map[int][]*fault

	stack   []record
	packet  []byte
	stuckAt map[int]record // by port

	// The truth about touched elements.
	before    []float64 // loads of ports
	changed   []bool    // ports whose load or behaviour changed
	passed    []bool    // ports on the way of flows that something happened to
	dropped   []bool    // nodes that dropped packets and detected it
	troubled  []bool    // nodes at which something happens
	exporters []bool    // nodes whose reports something happens to
	reporting []bool    // of these, and where packets are named anew: nodes whose reports no longer fit those of others
	moved     map[decode.FlowKey]bool
}

// Start is when a scenario begins, in ns since 1970.
const start = 1_790_000_000_000_000_000

func newWorld(s *Scenario, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, mix(uint64(len(s.Name))*7919+uint64(s.Name[0]))))
	x := &world{s: s, r: r, net: s.shape.build(), atPort: map[int][]*fault{}, atNode: map[int][]*fault{}, stuckAt: map[int]record{}, restarted: map[int]*fault{}, crossed: map[*fault]bool{}, moved: map[decode.FlowKey]bool{}}
	x.net.number(&s.shape, r)
	n := len(x.net.nodes)
	x.seq, x.tokens = make([][2]uint32, n), make([]struct{ left, at float64 }, n)
	x.dropped, x.troubled, x.exporters, x.reporting = make([]bool, n), make([]bool, n), make([]bool, n), make([]bool, n)
	x.changed, x.passed = make([]bool, len(x.net.ports)), make([]bool, len(x.net.ports))
	for i := range x.seq {
		x.seq[i] = [2]uint32{r.Uint32() % 1e6, r.Uint32() % 1e6}
	}
	x.now = -float64(s.quiet) * s.Window
	x.second = x.now + 1
	x.place()
	x.addFlows()
	x.route()
	x.scale()
	for i := range x.net.ports {
		x.net.ports[i].queue.at, x.net.ports[i].high.at = x.now, x.now
		for k := range x.net.ports[i].sway {
			x.net.ports[i].sway[k] = r.NormFloat64() * s.shape.sway / math.Sqrt(3)
		}
	}
	x.sway()
	for _, f := range x.flows {
		f.base = f.path
	}
	heap.Init((*schedule)(&x.flows))
	return x
}

// place sorts events by their places, and records when routes change.
func (x *world) place() {
	for i := range x.s.faults {
		f := &x.s.faults[i]
		ports := []int{}
		if f.port >= 0 {
			ports = append(ports, f.port)
			if f.both {
				ports = append(ports, x.net.ports[f.port].back)
			}
		}
		if f.verb == "down" && f.node >= 0 {
			for _, p := range x.net.nodes[f.node].ports {
				ports = append(ports, p, x.net.ports[p].back)
			}
			ports = append(ports, x.net.nodes[f.node].hosts...)
		}
		for _, p := range ports {
			x.atPort[p] = append(x.atPort[p], f)
		}
		switch {
		case f.node >= 0:
			x.atNode[f.node] = append(x.atNode[f.node], f)
		case f.port < 0:
			for n := range x.net.nodes {
				x.atNode[n] = append(x.atNode[n], f)
			}
		}
		if routed(f.verb) {
			every, lasts := f.opt["every"], f.opt["lasts"]
			if every == 0 {
				every, lasts = math.Inf(1), math.Inf(1)
			}
			for at := f.from; at < f.until; at += every {
				x.changes = append(x.changes, at, at+f.converge(), min(at+lasts, f.until), min(at+lasts, f.until)+f.converge())
			}
		}
	}
	slices.Sort(x.changes)
	x.changes = slices.Compact(x.changes)
}

// routed reports whether routes or flows change with it.
func routed(verb string) bool {
	switch verb {
	case "down", "drain", "miscable", "polarise", "renew", "pause":
		return true
	}
	return false
}

func (f *fault) converge() float64 {
	if v, ok := f.opt["converge"]; ok {
		return v
	}
	if f.verb == "down" {
		return .2
	}
	return 0
}

// active reports whether it happens at a time.
func (f *fault) active(t float64) bool {
	if t < f.from || t >= f.until {
		return false
	}
	every := f.opt["every"]
	return every == 0 || math.Mod(t-f.from, every) < f.opt["lasts"]
}

func (x *world) addFlows() {
	var hosts []int
	for i := range x.net.ports {
		if x.net.ports[i].peer < 0 {
			hosts = append(hosts, i)
		}
	}
	for _, f := range x.s.named {
		x.flows = append(x.flows, x.newFlow(f.name, f.from, f.to))
	}
	for i := len(x.s.named); i < x.s.traffic.flows; i++ {
		a, b := hosts[i%len(hosts)], 0
		for b = hosts[x.r.IntN(len(hosts))]; x.net.ports[a].node == x.net.ports[b].node; b = hosts[x.r.IntN(len(hosts))] {
		}
		x.flows = append(x.flows, x.newFlow("", a, b))
	}
}

func (x *world) newFlow(name string, from, to int) *flow {
	f := &flow{name: name, from: from, to: to, weight: .5 + x.r.Float64(), high: x.r.Float64() < x.s.traffic.high, order: len(x.flows)}
	f.head = header{src: x.net.ports[from].host, dst: x.net.ports[to].host, proto: 17, id: uint16(x.r.Uint32())}
	if x.r.Float64() < x.s.traffic.tcp {
		f.head.proto = 6
	}
	f.renew(x.r)
	return f
}

// renew makes it another connection between the same hosts.
func (f *flow) renew(r *rand.Rand) {
	f.head.srcPort, f.head.dstPort = uint16(20000+r.IntN(40000)), uint16(1024+r.IntN(10000))
	f.hash = r.Uint64()
}

func (f *flow) key() decode.FlowKey {
	return decode.FlowKey{
		Src: decode.AddrFrom(f.head.src), Dst: decode.AddrFrom(f.head.dst), Proto: f.head.proto, SrcPort: f.head.srcPort, DstPort: f.head.dstPort, IPVersion: 4,
	}
}

// schedule is flows by their next packets.
type schedule []*flow

func (s schedule) Len() int { return len(s) }
func (s schedule) Less(i, j int) bool {
	return s[i].next < s[j].next || s[i].next == s[j].next && s[i].order < s[j].order
}
func (s schedule) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *schedule) Push(f any)   { *s = append(*s, f.(*flow)) }
func (s *schedule) Pop() any     { f := (*s)[len(*s)-1]; *s = (*s)[:len(*s)-1]; return f }

// scale sets the rates of flows, so that the mean load of links is that of the scenario.
func (x *world) scale() {
	total, links, sum := 0.0, 0.0, 0.0
	for i := range x.net.ports {
		if x.net.ports[i].peer >= 0 {
			links += x.net.ports[i].rate
		}
	}
	for _, f := range x.flows {
		total += f.weight * float64(len(f.path)-1)
		sum += f.weight
	}
	for _, f := range x.flows {
		f.rate = f.weight / sum * x.s.traffic.packets / x.s.Window
		f.weight *= x.s.shape.load / 2 * links / max(total, 1e-9)
		f.next = x.now + x.r.ExpFloat64()/f.rate
	}
	x.loads()
	for i := range x.net.ports { // no real network has a port that is full from the start
		p := &x.net.ports[i]
		if most := min(x.s.shape.load*1.5, .9); p.own+p.flows > most {
			p.own = max(most-p.flows, .02)
		}
	}
	x.before = make([]float64, len(x.net.ports))
	for i := range x.before {
		x.before[i] = x.net.ports[i].own + x.net.ports[i].flows
	}
}

// loads adds up the traffic of flows at ports.
func (x *world) loads() {
	for i := range x.net.ports {
		x.net.ports[i].flows = 0
	}
	for _, f := range x.flows {
		if x.paused(f, x.now+1e-6) {
			continue
		}
		for _, p := range f.path {
			x.net.ports[p].flows += f.weight / x.net.ports[p].rate
		}
	}
}

// route sets the path of every flow at this time.
func (x *world) route() {
	n := x.net
	now := x.now + 1e-6 // what changes at this time has changed
	for i := range x.s.faults {
		if f := &x.s.faults[i]; f.verb == "miscable" && f.active(now) != x.crossed[f] {
			x.crossed[f] = !x.crossed[f]
			x.cross(f.port, f.other)
		}
	}
	down := func(p int) bool {
		for _, f := range x.atPort[p] {
			if f.verb == "down" && f.active(now-f.converge()) {
				return true
			}
		}
		return false
	}
	cost := func(p int) float64 {
		for _, at := range [...]int{p, n.ports[p].back} {
			for _, f := range x.atPort[at] {
				if f.verb == "drain" && f.active(now) {
					return 1000
				}
			}
		}
		for _, at := range [...]int{n.ports[p].node, n.ports[p].peer} {
			for _, f := range x.atNode[at] {
				if f.verb == "drain" && f.active(now) {
					return 1000
				}
			}
		}
		return 1
	}
	tables := map[int][][]int{}
	for _, f := range x.flows {
		to := n.ports[f.to].node
		if tables[to] == nil {
			tables[to] = n.routes(to, down, cost)
		}
		f.path = x.way(f, tables[to])
	}
	x.loads()
}

// cross swaps the far ends of two cables that begin at one node.
func (x *world) cross(a, c int) {
	n := x.net
	b, d := n.ports[a].back, n.ports[c].back
	n.ports[a].back, n.ports[d].back = d, a
	n.ports[c].back, n.ports[b].back = b, c
	for _, p := range [...]int{a, b, c, d} {
		n.ports[p].peer = n.ports[n.ports[p].back].node
	}
}

func (x *world) way(f *flow, table [][]int) (path []int) {
	n := x.net
	at, to := n.ports[f.from].node, n.ports[f.to].node
	for at != to {
		next := table[at]
		if len(next) == 0 || len(path) > len(n.nodes) {
			return nil
		}
		salt := n.nodes[at].salt
		choice := int(mix(f.hash^salt) % uint64(len(next)))
		for _, e := range x.atNode[at] {
			if e.verb == "polarise" && e.active(x.now+1e-6) {
				choice = 0
			}
		}
		path = append(path, next[choice])
		at = n.ports[next[choice]].peer
	}
	return append(path, f.to)
}

// paused reports whether a flow sends nothing at a time.
func (x *world) paused(f *flow, t float64) bool {
	for _, e := range x.atNode[x.net.ports[f.from].node] {
		if e.verb == "pause" && e.active(t) && float64(mix(f.hash)%1000) < 1000*e.opt["share"] {
			return true
		}
	}
	return false
}

// sway lets loads wander on three scales of time, once a second.
func (x *world) sway() {
	for i := range x.net.ports {
		p := &x.net.ports[i]
		sum := 0.0
		for k, memory := range [...]float64{10, 100, 1000} {
			a := math.Exp(-1 / memory)
			p.sway[k] = a*p.sway[k] + math.Sqrt(1-a*a)*x.r.NormFloat64()*x.s.shape.sway/math.Sqrt(3)
			sum += p.sway[k]
		}
		p.swayed = max(1+sum, .2)
	}
}

// run lets the world go on until the end of a window and returns its datagrams in the order of their arrival.
func (x *world) run(until float64, each func(*datagram)) {
	for x.now < until {
		next := until
		if len(x.changes) > 0 {
			next = min(next, max(x.changes[0], x.now))
		}
		if x.second <= x.now {
			x.sway()
			x.second = math.Floor(x.now) + 1
		}
		next = min(next, x.second)
		for len(x.flows) > 0 && x.flows[0].next < next {
			f := x.flows[0]
			t := f.next
			thin := 1.0
			for _, e := range x.atNode[x.net.ports[f.from].node] {
				if e.verb == "thin" && e.active(t) {
					thin = e.opt["in"]
				}
			}
			f.next += x.r.ExpFloat64() * thin / f.rate
			f.head.id += 1 + uint16(x.r.IntN(8))
			if !x.paused(f, t) {
				x.walk(f, t)
			}
			heap.Fix((*schedule)(&x.flows), 0)
		}
		x.now = next
		if len(x.changes) > 0 && x.changes[0] <= x.now {
			x.changes = x.changes[1:]
			x.renewFlows()
			x.route()
		}
		x.mark()
	}
	slices.SortFunc(x.pending, func(a, b datagram) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return a.order - b.order
	})
	k := 0
	for ; k < len(x.pending) && x.pending[k].at < until; k++ {
		each(&x.pending[k])
	}
	x.pending = append(x.pending[:0:0], x.pending[k:]...)
}

func (x *world) renewFlows() {
	for i := range x.s.faults {
		f := &x.s.faults[i]
		if f.verb != "renew" || !f.active(x.now+1e-6) {
			continue
		}
		for _, g := range x.flows {
			if g.name == "" && x.r.Float64() < f.opt["share"] {
				g.renew(x.r)
				g.base = nil
			}
		}
	}
}

// mark records the elements that current events touch.
func (x *world) mark() {
	t := x.now - 1e-6
	for i := range x.s.faults {
		f := &x.s.faults[i]
		if !f.active(t) {
			continue
		}
		switch f.verb {
		case "mute", "lose", "sample", "police", "batch", "nat", "ids":
			for n := range x.net.nodes {
				x.reporting[n] = x.reporting[n] || f.node < 0 || f.node == n
			}
		}
		switch f.verb {
		case "mute", "lose", "duplicate", "reorder", "restart", "sample", "police", "batch":
			for n := range x.net.nodes {
				if f.node < 0 || f.node == n {
					x.exporters[n] = true
				}
			}
		case "nat", "ids", "thin", "renew", "pause", "clock":
		default:
			var ports []int
			if f.port >= 0 {
				ports = append(ports, f.port)
			}
			if f.both {
				ports = append(ports, x.net.ports[f.port].back)
			}
			if f.node >= 0 && f.verb != "swallow" {
				ports = append(append(ports, x.net.nodes[f.node].ports...), x.net.nodes[f.node].hosts...)
				x.troubled[f.node] = true
			}
			if f.verb == "loop" {
				x.troubled[x.net.ports[f.port].node], x.troubled[x.net.ports[f.port].peer] = true, true
			}
			for _, p := range ports {
				x.changed[p] = true
			}
			for _, g := range x.flows {
				if f.flow != "" && g.name == f.flow || f.flow == "" && slices.ContainsFunc(g.path, func(p int) bool { return slices.Contains(ports, p) }) {
					x.moved[g.key()] = true
					for _, p := range g.path {
						x.passed[p] = true
					}
				}
			}
		}
	}
	if t < 0 {
		return
	}
	for i := range x.net.ports {
		p := &x.net.ports[i]
		if load := p.own + p.flows; math.Abs(load-x.before[i]) > max(.15*x.before[i], .03) {
			x.changed[i], x.passed[i] = true, true
		}
	}
	for _, g := range x.flows {
		if !slices.Equal(g.base, g.path) {
			x.moved[g.key()] = true
			for _, p := range append(slices.Clone(g.base), g.path...) {
				x.passed[p] = true
			}
		}
	}
}
