package pathtrace

import (
	"math/bits"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
)

// Tracer traces the paths of flows. It holds their memory and scratch space, so it serves one goroutine at a time. Make
// one with [New].
type Tracer struct {
	m        *prior.Model
	traces   []*trace
	idle     []uint32
	slab     slab
	bytes    int // memory of traces,
	reserved int // and how much it may become
	stats    Stats

	logs       []*digestLog
	idleLogs   []uint32
	logBytes   int
	places     []place // evidence of flows about the map; nil before the first
	heard      []uint8 // by node: sources whose flows confirmed it, a bit for each by its hash
	experience experience
	spent      uint64 // steps that went into looking for deviations
	loose      loose

	named          [pint.MaxHops]uint32 // ids of a path, and of writers with their values
	few, fewValues [pint.MaxHops]uint32
	wrote          uint64

	reach   []uint64 // one set of nodes
	ids     []uint32
	values  []uint32
	sums    []uint64
	path    []uint16
	used    []bool
	levels  []level
	lo, hi  [pint.MaxHops]int
	members []uint16
	next    []int32
	packets []pint.Packet
	found   []uint16
	trial   trace
	part    []packet
	ring    []packet
}

const (
	maxFound    = 16  // paths that a search lists; when there are more, some of them show that
	patience    = 256 // after so many digests in a row that known paths explain, unexplained ones are forgotten
	maxCredit   = 64  // how much work can be saved up, in what Config.Work allows for a digest,
	maxSearch   = 16  // and how much of it one search may take
	strayLength = 4   // so many digests in a row with another number of hops make a trace start anew
)

// New makes a Tracer without flows.
func New(m *prior.Model) *Tracer {
	words := 1 << maxSupport / 64
	return &Tracer{
		m: m, reach: make([]uint64, m.Words), sums: make([]uint64, 2*words), path: make([]uint16, pint.MaxHops),
		used: make([]bool, len(m.Nodes)), levels: make([]level, 0, pint.MaxHops),
	}
}

// Model returns the model that t was made with.
func (t *Tracer) Model() *prior.Model { return t.m }

// Add takes in the digest of a packet of flow f, which passed so many switches (hops), and returns its effect. The
// argument id is the packet id that the switches hashed.
func (t *Tracer) Add(f *Flow, id uint32, hops int, digest uint64) Event {
	e := t.add(f, id, hops, digest)
	t.stats.Events[e]++
	return e
}

func (t *Tracer) add(f *Flow, id uint32, hops int, digest uint64) Event {
	s := t.m.Config.Scheme
	switch width := s.Width() * s.Instances(); {
	case hops < 1 || hops > t.m.Config.MaxHops:
		return RejectedHops
	case width < 64 && digest>>width != 0:
		return RejectedDigest
	case !s.Known(id, hops):
		return RejectedPacket
	}
	f.state.digests += min(1, ^f.state.digests)
	for i, ref := range f.paths {
		if ref == 0 {
			break
		}
		r := t.slab.get(ref)
		if r.hops() != hops || !t.follows(r, id, digest) {
			continue
		}
		r.agree(1)
		if seen := r.seen(); t.wrote&^seen != 0 {
			r.see(seen | t.wrote)
		}
		e := Verified
		if i == 0 && r[recState]&(unsettled|0xff) != 0 {
			e = t.steady(f, r, id, digest)
		}
		if f.trace != 0 {
			if e := t.agreed(f, packet{digest, id, true}, hops); e == Changed || e == Parallel {
				return e
			}
		}
		if i > 0 {
			copy(f.paths[1:i+1], f.paths[:i])
			f.paths[0] = ref
			if f.log != 0 {
				t.logs[f.log-1].count(ref)
			}
			return Returned
		}
		return e
	}
	f.state.strays += min(1, ^f.state.strays)
	return t.contrary(f, packet{digest, id, false}, hops)
}

// follows reports whether a known path explains a digest, as far as its nodes are known.
func (t *Tracer) follows(r record, id uint32, digest uint64) bool {
	if r[recAstray]|r[recAstray+1] == 0 {
		return t.agrees(r.path(), id, digest)
	}
	all := true
	t.wrote = 0
	t.parted(r, id, digest, func(_ int, writers uint64, agrees bool) {
		t.wrote |= writers
		all = all && agrees
	})
	return all
}

// agrees reports whether a path explains a digest. It leaves the hops that wrote in t.wrote.
func (t *Tracer) agrees(path []uint32, id uint32, digest uint64) bool {
	s := t.m.Config.Scheme
	t.wrote = 0
	for inst := range s.Instances() {
		p := s.Packet(id, inst)
		writers := s.Writers(&p, len(path))
		t.wrote |= writers
		rest := s.Part(digest, inst)
		if writers != 0 {
			last := bits.Len64(writers) - 1
			rest ^= s.Value(&p, p.Role(writers, last+1), path[last])
			if writers &^= 1 << last; writers != 0 {
				rest ^= t.folded(&p, writers, path)
			}
		}
		if rest != 0 {
			return false
		}
	}
	return true
}

// folded is the XOR of the values of the writers before the last one. They are computed all at once, which takes hardly
// longer than one of them.
func (t *Tracer) folded(p *pint.Packet, writers uint64, path []uint32) (sum uint32) {
	n := 0
	for ; writers != 0; writers &= writers - 1 {
		t.few[n] = path[bits.TrailingZeros64(writers)]
		n++
	}
	full := (n + 7) &^ 7
	t.m.Config.Scheme.Values(t.fewValues[:full], p, pint.Folded, t.few[:full])
	for _, v := range t.fewValues[:n] {
		sum ^= v
	}
	return sum
}

// name returns the ids of the nodes of a path, until the next call.
func (t *Tracer) name(path []uint16) []uint32 {
	for h, u := range path {
		t.named[h] = t.m.Nodes[u]
	}
	return t.named[:len(path)]
}

// agreed takes in a digest that a known path explains, of a flow that has unexplained ones.
func (t *Tracer) agreed(f *Flow, p packet, hops int) Event {
	tr := t.traces[f.trace-1]
	if tr.matches++; tr.matches > patience {
		t.close(f)
		return Verified
	}
	if tr.all && tr.k == hops {
		return t.learn(f, tr, p)
	}
	return Verified
}

// stray takes in a digest that no known path explains.
func (t *Tracer) stray(f *Flow, p packet, hops int) Event {
	if f.state.pause > 0 {
		f.state.pause--
		return Ignored
	}
	fresh := f.trace == 0
	if fresh {
		if !t.begin(f, hops) {
			return RejectedMemory
		}
	}
	tr := t.traces[f.trace-1]
	tr.matches = 0
	if tr.k != hops {
		if tr.length != hops {
			tr.length, tr.lengths = hops, 0
		}
		if tr.lengths++; tr.lengths < strayLength {
			return Ignored
		}
		t.close(f)
		if !t.begin(f, hops) {
			return RejectedMemory
		}
		tr = t.traces[f.trace-1]
	}
	tr.length, tr.lengths = hops, 0
	e := t.learn(f, tr, p)
	if fresh && e == Pending && f.Known() {
		return Inconsistent
	}
	return e
}

// begin allocates a trace for a flow.
func (t *Tracer) begin(f *Flow, k int) bool {
	if len(t.idle) == 0 {
		t.idle = append(t.idle, uint32(len(t.traces)))
		t.traces = append(t.traces, &trace{})
	}
	last := len(t.idle) - 1
	i := t.idle[last]
	size := traceBytes(t.m, k)
	if more := size - t.traces[i].reserved; more > 0 {
		// A quarter of the memory is left to known paths.
		if total := t.m.Config.MemoryBytes; t.reserved+t.logBytes+more > total-total/4 || t.reserved+more+t.slab.bytes+t.logBytes > total {
			return false
		}
		t.reserved += more
		t.traces[i].reserved = size
	}
	t.idle = t.idle[:last]
	f.trace = i + 1
	tr := t.traces[i]
	t.forget(tr)
	tr.all, tr.matches, tr.length, tr.lengths = true, 0, k, 0
	tr.credit = 8 * t.m.Config.Work
	t.open(tr, f, k)
	t.account(tr)
	return true
}

// forget removes all digests from a trace.
func (t *Tracer) forget(tr *trace) {
	tr.recent, tr.oldest, tr.active, tr.strays, tr.explained, tr.samplings = tr.recent[:0], 0, 0, 0, 0, 0
}

// close takes a flow's trace away.
func (t *Tracer) close(f *Flow) {
	t.idle = append(t.idle, f.trace-1)
	f.trace = 0
}

// traceBytes returns the most memory that a trace of k hops takes. It counts its struct, its lists, of which two have a
// place for each digest, and the unused room of appends.
func traceBytes(m *prior.Model, k int) int {
	return traceStruct + k*(8*m.Words+4+2*maxFound) + 60*m.Config.Window
}

const traceStruct = 1024

// account notes how much memory a trace holds.
func (t *Tracer) account(tr *trace) {
	n := traceStruct + 8*cap(tr.domain) + 4*cap(tr.size) + 16*cap(tr.recent) + 32*cap(tr.xors) + 2*cap(tr.witnesses)
	t.bytes += n - tr.bytes
	tr.bytes = n
}

// Release frees the memory of a flow. The flow is then as it was before its first digest.
func (t *Tracer) Release(f *Flow) {
	if f.trace != 0 {
		t.close(f)
	}
	t.discard(f)
	for _, ref := range f.paths {
		if ref != 0 {
			t.slab.drop(ref)
		}
	}
	*f = Flow{Ingress: f.Ingress, Egress: f.Egress, Source: f.Source}
}
