package pathtrace

import (
	"math"
	"math/bits"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
)

// Paths that need not be the map's. Each hop is a node of the model that writes digests, or a place whose node has
// another id. From hop to hop a path follows a link, or with a small probability jumps to any node. The nodes of each
// hop are weighed by digests of one writer, and by those of several of which all but one are settled. Sums forward and
// backward along the path give the probability of each node at each hop. Newly settled hops settle more digests, until
// nothing changes.
const (
	strayed = 1.0 / 256 // prior probability that the node of a hop has another id than in the map,
	jumped  = 1.0 / 128 // and that a path takes a link that the map does not have
	garbled = 6.0       // -log2 of the part of digests that are wrong

	settledAt  = 0.9 // a hop is settled when it has a node with this probability,
	publishAt  = 0.8 // and a path is published when all its hops together are right with this one
	maxLoose   = 1 << 13
	looseTurns = 12
	looseWork  = 16 // times Config.Work may be spent on it for a digest

	firstAttempt = 8 // at so many digests deviations are looked for first; then at a quarter more each time
)

// loose is the scratch space for such a path.
type loose struct {
	k       int
	parts   []part
	like    []float32              // by hop and node: evidence in bits, beyond what base gives all nodes of the hop
	agreed  [pint.MaxHops][]uint16 // nodes with such evidence
	base    [pint.MaxHops]float64
	forward []float64 // by hop and node: the sum of all ways there
	back    []float64 // by node
	next    []float64
	even    []float64 // by node: ones,
	turns   []float64 // and with what probability a path that follows a link goes to any one neighbour

	node           [pint.MaxHops]uint16
	chance, missed [pint.MaxHops]float64 // that the hop has this node, and that its node is not known
	settled, held  uint64                // hops with a node, and those of them whose digests are to be weighed again
	single         [pint.MaxHops]int     // digests of the hop alone
	set            []uint64
}

// part is the evidence of one instance of a digest.
type part struct {
	packet  pint.Packet
	writers uint64
	value   uint32
}

// deviates finds a path that need not be the map's, in the kept digests of a flow whose digests contradict it.
func (t *Tracer) deviates(f *Flow, l *digestLog) (e Event, ok bool) {
	m := t.m
	if m.Parts || len(m.Nodes) > maxLoose || l.digests < l.next {
		return 0, false
	}
	cost := uint64(l.hops * (len(m.Nodes) + len(m.Peers)) / 2) // of a turn
	digests := uint64(0)
	for _, n := range t.stats.Events {
		digests += n
	}
	if t.spent+cost > looseWork*uint64(m.Config.Work)*digests+1024*cost {
		return 0, false
	}
	l.next = l.digests + max(2, l.digests/4)
	x := &t.loose
	x.begin(m, l)
	wrong, turns := t.settleLoose(f, x)
	t.spent += uint64(turns) * cost
	if wrong < 0 {
		return 0, false
	}
	return t.deviated(f, l, x)
}

// begin makes x ready for the digests of a log.
func (x *loose) begin(m *prior.Model, l *digestLog) {
	s, v := m.Config.Scheme, len(m.Nodes)
	x.k = l.hops
	if n := x.k * v; cap(x.like) < n {
		x.like, x.forward = make([]float32, n), make([]float64, n)
		clear(x.agreed[:])
	}
	if x.back == nil {
		x.back, x.next, x.set = make([]float64, v), make([]float64, v), make([]uint64, m.Words)
		x.even, x.turns = turns(m)
	}
	x.forget(v)
	x.like, x.forward = x.like[:x.k*v], x.forward[:x.k*v]
	x.settled, x.held = 0, 0
	x.parts = x.parts[:0]
	for i := range l.ring {
		d := &l.ring[(l.oldest+i)%len(l.ring)]
		for inst := range s.Instances() {
			p := s.Packet(d.id, inst)
			if w := s.Writers(&p, x.k); w != 0 {
				x.parts = append(x.parts, part{p, w, s.Part(d.digest, inst)})
			}
		}
	}
}

// settleLoose finds the path. It returns how many digests contradict it all the same, or -1 if there is no such
// path, and how many turns that took.
func (t *Tracer) settleLoose(f *Flow, x *loose) (wrong, turns int) {
	var before [looseTurns + 1]looseState // each turn
	for ; turns < looseTurns; turns++ {
		before[turns] = x.state()
		t.speak(x)
		t.sum(f, x)
		switch now := x.state(); {
		case now == before[turns]:
			if t.doubtOne(x) {
				continue
			}
		case !recurs(before[:turns+1], now):
			continue
		}
		break // nothing changes any more
	}
	all, right := x.settled, 1.0
	for h := range x.k {
		p := x.chance[h]
		if x.settled>>h&1 == 0 {
			p = x.missed[h]
			if x.single[h] < 2 || t.mixed(x, h) {
				return -1, turns
			}
		}
		right *= p
	}
	if right < publishAt || bits.OnesCount64(hops(x.k)&^all) > max(2, x.k/4) {
		return -1, turns
	}
	if !t.m.Config.Loops && t.repeats(x) {
		return -1, turns
	}
	agree, against := 0, 0
	for i := range x.parts {
		if p := &x.parts[i]; p.writers&^x.settled == 0 {
			if t.remains(x, p, p.writers) == 0 {
				agree++
			} else {
				against++
			}
		}
	}
	if against*16 > agree || float64(agree)*t.m.Bits < 24 {
		return -1, turns
	}
	return against, turns
}

// looseState is all that the next turn depends on.
type looseState struct {
	settled, held uint64
	node          [pint.MaxHops]uint16 // of settled hops
}

func (x *loose) state() looseState {
	s := looseState{settled: x.settled, held: x.held}
	for h := range x.k {
		if x.settled>>h&1 != 0 {
			s.node[h] = x.node[h]
		}
	}
	return s
}

// recurs reports whether the states go round in a circle and the last turn that is allowed would end with this one.
func recurs(before []looseState, now looseState) bool {
	for i := len(before) - 1; i >= 0; i-- {
		if before[i] == now {
			return (looseTurns-len(before))%(len(before)-i) == 0
		}
	}
	return false
}

// repeats reports whether a node that writes digests is at two hops.
func (t *Tracer) repeats(x *loose) bool {
	for h := range x.k {
		for j := range h {
			if x.settled>>h&1 != 0 && x.settled>>j&1 != 0 && x.node[h] == x.node[j] {
				return true
			}
		}
	}
	return false
}

// remains returns the part of a digest that its settled writers, among some, leave.
func (t *Tracer) remains(x *loose, p *part, writers uint64) uint32 {
	rest := p.value
	for w := writers; w != 0; w &= w - 1 {
		h := bits.TrailingZeros64(w)
		rest ^= t.m.Config.Scheme.Value(&p.packet, p.packet.Role(p.writers, h+1), t.m.Nodes[x.node[h]])
	}
	return rest
}

// speak weighs the nodes of each hop by the digests of it alone.
func (t *Tracer) speak(x *loose) {
	x.forget(len(t.m.Nodes))
	sure := x.settled &^ x.held
	for i := range x.parts {
		p := &x.parts[i]
		if open := p.writers &^ sure; open != 0 && open&(open-1) == 0 {
			t.weigh(x, p, bits.TrailingZeros64(open))
		}
		if p.writers&(p.writers-1) == 0 && p.writers&sure != 0 {
			t.weigh(x, p, bits.TrailingZeros64(p.writers))
		}
	}
}

// forget removes the evidence of digests for nodes.
func (x *loose) forget(v int) {
	for h, list := range x.agreed {
		for _, u := range list {
			x.like[h*v+int(u)] = 0
		}
		x.agreed[h] = list[:0]
	}
	clear(x.base[:])
	clear(x.single[:])
}

// weigh adds the evidence of a digest for one of its writers, the others being settled.
func (t *Tracer) weigh(x *loose, p *part, h int) {
	m := t.m
	want := t.remains(x, p, p.writers&^(1<<h))
	for i := range x.set {
		x.set[i] = ^uint64(0)
	}
	if last := len(m.Nodes) & 63; last != 0 {
		x.set[len(x.set)-1] = 1<<last - 1
	}
	m.Config.Scheme.Match(x.set, &p.packet, p.packet.Role(p.writers, h+1), m.Nodes, want)
	like := x.like[h*len(m.Nodes):][:len(m.Nodes)]
	for i, w := range x.set {
		for ; w != 0; w &= w - 1 {
			u := i<<6 + bits.TrailingZeros64(w)
			if like[u] == 0 {
				x.agreed[h] = append(x.agreed[h], uint16(u))
			}
			like[u] += float32(m.Bits + garbled)
		}
	}
	x.base[h] -= garbled
	x.single[h]++
}

// doubtOne finds the settled hop that most contradicting digests are evidence against, and lets its node be weighed by
// them. It reports whether there is one.
func (t *Tracer) doubtOne(x *loose) bool {
	var score [pint.MaxHops]float64
	for i := range x.parts {
		p := &x.parts[i]
		if p.writers&^x.settled != 0 || p.writers&(p.writers-1) == 0 {
			continue
		}
		by := garbled
		if t.remains(x, p, p.writers) == 0 {
			by = -t.m.Bits
		}
		for w := p.writers; w != 0; w &= w - 1 {
			score[bits.TrailingZeros64(w)] += by
		}
	}
	worst, most := -1, 4.0
	for h := range x.k {
		if x.settled&^x.held>>h&1 == 0 || score[h] <= most {
			continue
		}
		worst, most = h, score[h]
	}
	if worst < 0 {
		return false
	}
	x.held |= 1 << worst
	return true
}

// mixed reports whether packets rather take several paths than meet a node that is not known. They do if the digests of
// a hop agree with some node often enough.
func (t *Tracer) mixed(x *loose, h int) bool {
	v := len(t.m.Nodes)
	for _, u := range x.agreed[h] {
		n := int(x.like[h*v+int(u)]/float32(t.m.Bits+garbled) + 0.5)
		if n >= 2 && float64(n)*t.m.Bits-logChoose(x.single[h], n)-t.m.Log2[v] >= 7 {
			return true
		}
	}
	return false
}

func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return (a - b - c) / math.Ln2
}
