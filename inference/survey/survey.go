package survey

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/pathtrace"
)

// The bounds of a Watch.
const (
	MaxFlows    = 256     // that are watched at a time,
	perSource   = 8       // those of one source address among them,
	keptDigests = 256     // digests of each that are kept,
	leastKept   = 48      // and without which nothing is stated
	workSteps   = 1 << 24 // some 30 ms
	quietFor    = 16      // windows without a digest after which a flow is let go
	trials      = 3       // explanations without an error after which it is
)

// Watch keeps the last digests of flows that contradict their map, and finds their explanations. It has one owner.
type Watch struct {
	surveyor *surveyor
	flows    []watched
	free     []uint32
	used     int
	turn     int // whose turn it is when work is short
}

// watched is a flow of a Watch. Its reference is its place and 1 more.
type watched struct {
	m      *Map // nil if the place is free
	flow   decode.FlowKey
	owner  uint32
	hops   int
	ring   []pathtrace.Packet
	oldest int
	fresh  int // digests since it was last explained
	quiet  int // windows without a digest
	clean  int // explanations in a row without an error
	last   int64

	errors  []inference.MapError // that explain it
	ingress uint32
}

// NewWatch makes one that searches node ids below a limit.
func NewWatch(ids uint32) *Watch { return &Watch{surveyor: newSurveyor(ids)} }

// Begin watches a flow. It returns a reference, or 0 if there is no room for one more, or for one more from its source.
// Survey names the flow by its owner.
func (w *Watch) Begin(m *Map, flow *decode.FlowKey, owner uint32) uint32 {
	if m == nil || w.used == MaxFlows {
		return 0
	}
	same := 0
	for i := range w.flows {
		if w.flows[i].m != nil && w.flows[i].flow.Src == flow.Src {
			same++
		}
	}
	if same >= perSource {
		return 0
	}
	if len(w.free) == 0 {
		w.free = append(w.free, uint32(len(w.flows)))
		w.flows = append(w.flows, watched{})
	}
	at := w.free[len(w.free)-1]
	w.free = w.free[:len(w.free)-1]
	w.used++
	f := &w.flows[at]
	*f = watched{m: m, flow: *flow, owner: owner, ring: f.ring[:0], errors: f.errors[:0]}
	return at + 1
}

// End lets a flow go.
func (w *Watch) End(ref uint32) {
	f := &w.flows[ref-1]
	*f = watched{ring: f.ring[:0], errors: f.errors[:0]}
	w.free = append(w.free, ref-1)
	w.used--
}

// Add takes a digest of a flow in. One of a path of another length begins it anew.
func (w *Watch) Add(ref uint32, hops int, p pathtrace.Packet, now int64) {
	f := &w.flows[ref-1]
	if hops < 1 || !f.m.scheme.Known(p.ID, hops) {
		return
	}
	if hops != f.hops {
		f.hops, f.ring, f.oldest, f.fresh, f.errors = hops, f.ring[:0], 0, 0, f.errors[:0]
	}
	for i := range f.ring { // a packet that is seen twice proves no more than once
		if f.ring[i].ID == p.ID {
			return
		}
	}
	f.last, f.quiet = now, 0
	f.fresh++
	if len(f.ring) < keptDigests {
		f.ring = append(f.ring, p)
		return
	}
	f.ring[f.oldest] = p
	f.oldest = (f.oldest + 1) % keptDigests
}

// Flows returns the number of flows that are watched.
func (w *Watch) Flows() int { return w.used }

// SizeBytes is the memory of a Watch, about.
func (w *Watch) SizeBytes() int {
	s := w.surveyor
	n := 4*(cap(s.cost)+cap(s.best)+cap(s.from)+cap(s.values)+cap(s.list)) + 48*cap(s.equations)
	for i := range w.flows {
		n += 128 + 16*cap(w.flows[i].ring) + 16*cap(w.flows[i].errors)
	}
	return n
}

// Survey ends a window. It explains the flows that have news, as far as its work goes. It calls yield with the
// deviation of each flow that errors of its map explain. It releases those that the map explains, or that nothing does,
// and calls done with their owners.
func (w *Watch) Survey(yield func(*inference.Deviation), done func(owner uint32)) {
	w.surveyor.steps = 0
	n := len(w.flows)
	for i := range n {
		f := &w.flows[(w.turn+i)%n]
		if f.m == nil {
			continue
		}
		if w.surveyor.steps > workSteps {
			w.turn = (w.turn + i) % n // it is first in the next window
			break
		}
		if len(f.ring) >= leastKept && f.fresh >= min(len(f.ring)/2, keptDigests/4) {
			w.explain(f)
		}
	}
	for i := range w.flows {
		f := &w.flows[i]
		if f.m == nil {
			continue
		}
		if f.quiet++; f.quiet > quietFor || f.clean >= trials {
			done(f.owner)
			w.End(uint32(i) + 1)
			continue
		}
		if len(f.errors) > 0 {
			yield(&inference.Deviation{Flow: f.flow, Ingress: f.ingress, Digests: uint64(len(f.ring)), Last: f.last, Errors: f.errors})
		}
	}
}

// explain finds the errors that explain a flow.
func (w *Watch) explain(f *watched) {
	f.fresh = 0
	a := w.surveyor.explain(f.m, f.hops, f.ring)
	f.errors = w.surveyor.errors(f.m, &a, f.errors[:0])
	if f.clean++; len(f.errors) > 0 {
		f.clean = 0
	} else if len(f.ring) < keptDigests && !a.plain() {
		f.clean = 0 // more digests may explain it
	}
	f.ingress = inference.NoNode
	if u := a.path[a.shift]; u != offMap {
		f.ingress = f.m.nodes[u]
	} else if a.named>>a.shift&1 != 0 {
		f.ingress = a.ids[a.shift]
	}
}
