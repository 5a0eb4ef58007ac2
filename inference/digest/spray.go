package digest

import (
	"unsafe"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/pathmix"
	"github.com/hopscope/hopscope/inference/pathtrace"
	"github.com/hopscope/hopscope/inference/window"
)

const (
	sprayCalm        = 64   // so many digests of one path in a row, and what was strange before is forgotten
	sprayYoung       = 16   // a path that lasted for fewer was none
	sprayUnrest      = 3    // so many changes and contradictions begin a spray,
	sprayFirst       = 64   // whose paths are looked for after so many digests for the first time,
	sprayDigests     = 2048 // and of which so many digests are kept
	sprayPatient     = 3    // windows in which it may stay open whether a flow is sprayed before its strange digests are published
	sprayUnexplained = 20   // one in so many digests may fit no path of a mixture

	// A fit takes some 20 µs a digest. Those of one window of a shard have so many.
	sprayFits = 2 * sprayDigests
	// However long a mixture holds, it is fitted again after so many digests.
	sprayLongest = 1 << 16
)

// spray is the state of a flow whose digests do not come from one path: the last ones of them, and what follows from
// them.
type spray struct {
	digests     []pathmix.Digest // a ring once it is full
	next        int
	total       uint64 // digests that came
	due         uint64 // of them, when a fit is made
	result      *pathmix.Result
	unexplained uint64 // digests that fit no path, since they were last published or explained,
	first       int64  // the time of the first,
	last        int64  // and of the last of them
	agreed      uint64 // digests of the window that fit the mixture
	windows     int    // that it has been open whether there is one
	changed     bool   // the tracer has reported a change, which is none if the flow is sprayed
	at          int64  // when that was
	flow        decode.FlowKey
	slot        uint32
	x           uint32 // index into flows; 0 if the place is free
}

// sprays are the flows of a shard whose digests are kept.
type sprays struct {
	flows  []spray // 0 belongs to no flow
	free   []uint32
	bytes  int64
	most   int64  // bytes
	unkept uint64 // digests that were not kept, or gave way early, because there was no memory
	hand   int    // where the fits of a window begin
	models map[*pathtrace.Tracer]*pathmix.Model
}

const (
	sprayStruct = int64(unsafe.Sizeof(spray{}))
	sprayDigest = int64(unsafe.Sizeof(pathmix.Digest{}))
)

// unrest notes that digests of a flow came from no single path, and keeps those to come if that goes on. It reports
// whether they are kept.
func (d *Reader) unrest(slot uint32, x *flow, r *decode.Report, e pathtrace.Event) bool {
	young := false
	if e == pathtrace.Changed {
		former, ok := x.tracer.Path(&x.trace, 1, d.nodes[:0])
		d.nodes, young = former.Nodes, ok && former.Digests < sprayYoung
	}
	x.calm = 0
	if x.unrest < sprayUnrest {
		x.unrest++
	}
	if young || e == pathtrace.Untraceable {
		x.unrest = sprayUnrest
	}
	if x.spray == 0 && x.unrest >= sprayUnrest && !x.tracer.Model().Parts { // mixtures are looked for in hashes alone
		x.spray = d.sprays.begin(d.slots[slot], slot, r)
	}
	return x.spray != 0
}

// calmed notes that a digest fits the path of a flow whose digests came from no single path before.
func (x *flow) calmed() {
	if x.calm++; x.calm < sprayCalm {
		return
	}
	x.calm = sprayCalm
	if x.spray == 0 {
		x.unrest = 0
	}
}

// holdChange notes that a flow has changed its path, unless it is sprayed.
func (d *Reader) holdChange(x *flow, r *decode.Report) {
	p := &d.sprays.flows[x.spray]
	p.changed, p.at = true, r.Time
	x.aside, x.away = true, 0
}

// begin allocates a place for a flow, if there is memory.
func (p *sprays) begin(x, slot uint32, r *decode.Report) uint32 {
	if p.bytes+sprayStruct+sprayFirst*sprayDigest > p.most {
		if p.most > 0 { // else none are to be kept
			p.unkept++
		}
		return 0
	}
	i := uint32(len(p.flows))
	if n := len(p.free); n > 0 {
		i = p.free[n-1]
		p.free = p.free[:n-1]
	} else {
		p.flows = append(p.flows, spray{})
	}
	p.flows[i] = spray{x: x, slot: slot, flow: r.Flow, due: sprayFirst}
	p.bytes += sprayStruct
	return i
}

// end releases a place.
func (p *sprays) end(i uint32) {
	p.bytes -= sprayStruct + int64(cap(p.flows[i].digests))*sprayDigest
	p.flows[i] = spray{}
	p.free = append(p.free, i)
}

// observe adds a digest to the ring.
func (p *sprays) observe(i uint32, g pathmix.Digest) {
	f := &p.flows[i]
	f.total++
	if len(f.digests) == cap(f.digests) && cap(f.digests) < sprayDigests {
		n := max(2*cap(f.digests), sprayFirst)
		if more := int64(n-cap(f.digests)) * sprayDigest; p.bytes+more <= p.most {
			grown := make([]pathmix.Digest, 0, n)
			grown = append(append(grown, f.digests[f.next:]...), f.digests[:f.next]...)
			f.digests, f.next = grown, 0
			p.bytes += more
		}
	}
	if len(f.digests) == cap(f.digests) && cap(f.digests) < sprayDigests {
		p.unkept++
	}
	switch {
	case len(f.digests) < cap(f.digests):
		f.digests = append(f.digests, g)
	case len(f.digests) > 0:
		f.digests[f.next] = g
		f.next = (f.next + 1) % len(f.digests)
	}
}

// sprayed takes a digest of a flow whose digests are kept. It reports whether that is all there is to do: what a
// mixture of paths explains is no matter for a tracer.
func (d *Reader) sprayed(x *flow, r *decode.Report, value uint64) bool {
	p := &d.sprays.flows[x.spray]
	g := pathmix.Digest{Value: value, ID: r.Digest.ID, Hops: r.Digest.Hops}
	d.sprays.observe(x.spray, g)
	if p.result == nil {
		return false
	}
	x.stray = true // of which path its values are is not known
	m := d.sprays.models[x.tracer]
	for i := range p.result.Paths {
		if m.Agrees(p.result.Paths[i].Nodes, g) {
			p.agreed++
			return true
		}
	}
	for i := range p.result.Inseparable {
		for _, path := range p.result.Inseparable[i].Paths {
			if m.Agrees(path, g) {
				p.agreed++
				return true
			}
		}
	}
	p.addUnexplained(r.Time)
	return true
}

// addUnexplained counts a digest that fits no path.
func (p *spray) addUnexplained(at int64) {
	if p.unexplained++; p.unexplained == 1 {
		p.first, p.last = at, at
	}
	p.first, p.last = min(p.first, at), max(p.last, at)
}

// settleSprays finds the paths of sprayed flows at the end of a window, in a bounded time. It publishes the held-back
// changes of the others.
func (d *Reader) settleSprays(to *window.Partial, found func(slot uint32, at int64, nodes []decode.Hop)) {
	p, left := &d.sprays, sprayFits
	n := len(p.flows)
	first := p.hand
	for k := range n {
		i := (first + k) % n
		f := &p.flows[i]
		if f.x == 0 {
			continue
		}
		x := &d.flows[f.x]
		if f.result != nil && f.unexplained*sprayUnexplained > f.agreed+f.unexplained && f.unexplained >= sprayFirst/2 {
			f.due = min(f.due, f.total) // the paths are others now
		}
		fitted := false
		if f.total >= f.due && len(f.digests) > 0 && left > 0 {
			left -= max(len(f.digests), sprayFirst)
			d.fit(f, x)
			fitted = true
			p.hand = (i + 1) % n
		}
		d.settleSpray(uint32(i), f, x, fitted, to, found)
	}
}

// settleSpray decides what becomes of the strange digests of a flow in a window.
func (d *Reader) settleSpray(i uint32, f *spray, x *flow, fitted bool, to *window.Partial, found func(slot uint32, at int64, nodes []decode.Hop)) {
	switch explained := f.result != nil; {
	case explained && (fitted || f.unexplained*sprayUnexplained <= f.agreed+f.unexplained):
		f.windows, f.changed = 0, false
		if f.result.Unexplained*sprayUnexplained > 1 {
			d.addUnexplained(f, to)
		}
	case f.windows < sprayPatient && !fitted:
		f.windows++
		return // it is not known yet
	default:
		d.addUnexplained(f, to)
		if f.changed && f.result == nil {
			found(f.slot, f.at, d.showPath(x))
		}
		f.changed = false
		if f.result == nil && x.calm >= sprayCalm { // it has one path after all
			x.spray, x.unrest = 0, 0
			d.sprays.end(i)
			return
		}
	}
	f.unexplained, f.agreed = 0, 0
}

// addUnexplained counts digests that fit no path as a fault of their flow.
func (d *Reader) addUnexplained(f *spray, to *window.Partial) {
	if f.unexplained > 0 {
		d.stats.Unexplained += f.unexplained
		to.AddFault(&inference.DigestFault{Flow: f.flow, Fault: inference.Inconsistent, Count: f.unexplained, First: f.first, Last: f.last})
	}
}

// fit finds the paths of a flow. A result that explains little is none, nor is one with a single path, which the tracer
// publishes.
func (d *Reader) fit(f *spray, x *flow) {
	m := d.sprays.model(x.tracer)
	f.due = f.total + min(max(f.total, sprayFirst), sprayLongest)
	f.result = nil
	if m == nil {
		return
	}
	d.stats.Fits++
	r := m.Fit(f.digests, x.trace.Ingress, x.trace.Egress)
	paths := len(r.Paths)
	for i := range r.Inseparable {
		paths += len(r.Inseparable[i].Paths)
	}
	if paths > 1 && r.Unexplained < .5 {
		f.result = &r
		x.tracer.Release(&x.trace) // digests that the mixture does not explain are none of its either
		x.aside, x.away = false, 0
		if x.watched != 0 { // nor are they evidence of an error of the map
			d.survey.End(x.watched)
			x.watched = 0
		}
		x.deviant, x.unwatched = false, unwatched
	}
}

// model is the model of mixtures for the flows of a tracer. It is made when a flow needs it.
func (p *sprays) model(t *pathtrace.Tracer) *pathmix.Model {
	m, ok := p.models[t]
	if !ok {
		c := t.Model().Config
		m, _ = pathmix.NewModel(pathmix.Config{Scheme: c.Scheme, Nodes: c.Nodes, Links: c.Links, Ends: c.Ends, Loops: c.Loops, Digests: sprayDigests})
		if p.models == nil {
			p.models = map[*pathtrace.Tracer]*pathmix.Model{}
		}
		p.models[t] = m
	}
	return m
}

// describe adds the paths that a flow uses at once to what is known of it. It reports whether there are any.
func (f *spray) describe(out *inference.FlowStats, base uint32) bool {
	if f.result == nil {
		return false
	}
	r := f.result
	out.Digests, out.Unexplained = uint64(r.Digests), r.Unexplained
	for _, s := range r.Inseparable {
		set := inference.FlowPaths{Paths: s.Paths, Share: s.Share}
		if base != 0 {
			set.Paths = make([][]uint32, len(s.Paths))
			for i := range s.Paths {
				set.Paths[i] = based(base, s.Paths[i])
			}
		}
		out.Inseparable = append(out.Inseparable, set)
	}
	out.Hops, out.Partial = nil, len(r.Paths) == 0
	for i, p := range r.Paths {
		if i > 0 {
			out.Others = append(out.Others, inference.FlowPath{Nodes: based(base, p.Nodes), Share: p.Share, Confidence: p.Confidence})
			continue
		}
		out.Share, out.Confidence = p.Share, p.Confidence
		for _, n := range p.Nodes {
			out.Hops = append(out.Hops, inference.FlowHop{HopKey: inference.HopKey{Node: base | n}, Confidence: p.Confidence})
		}
	}
	return true
}
