package window

import (
	"unsafe"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sketches/quantile"
)

// probePart is the probes of one path in a partial.
type probePart struct {
	inference.ProbeStats                    // without the delay
	delay                quantile.Histogram // dense codes of nanoseconds
}

// maxProbes bounds the paths of probes that a shard keeps: hostile packets can make them up.
const maxProbes = 1024

var probeKind = kindOf[inference.ProbeKey, probePart]{
	one: "path of probes", many: "paths of probes", least: 2*len(decode.Addr{}) + flowBytes + 13,
	in:      func(p *Partial) *table[inference.ProbeKey, probePart] { return &p.probes },
	limit:   func(l *Limits) int { return l.Hops },
	slice:   func(s *Slicer, x *probePart) int { return s.Exporter(inference.ExporterKey{Addr: x.From}) },
	key:     func(x *probePart) inference.ProbeKey { return x.ProbeKey },
	compare: func(a, b *probePart) int { return a.ProbeKey.Compare(b.ProbeKey) },
	sum: func(_ *memory, to, from *probePart) {
		to.ProbeKey = from.ProbeKey
		to.merge(from)
	},
	empty: func(x *probePart) {
		x.ProbeStats = inference.ProbeStats{}
		x.delay.Reset()
	},
	leave: func(p *Partial, x *probePart) { // into the one of no place, which has room beside the limit
		p.otherProbes().merge(x)
	},
	code: func(c *coder, _ *memory, x *probePart) {
		c.raw("address that probes are from", x.From[:])
		c.raw("address that probes go to", x.To[:])
		c.id("path", &x.Path)
		c.id("epoch", &x.Epoch)
		c.id("agent", &x.Node)
		c.flow("flow of probes", &x.Flow)
		c.uints("probes", &x.Sent, &x.Received, &x.Missed, &x.Late, &x.Twice, &x.Corrupt, &x.Reordered)
		c.int("lost probes", &x.Forward)
		c.int("lost answers", &x.Back)
		c.histogram("delay", &x.delay)
	},
	view: func(p *Partial, w *inference.Window, _ *Limits) {
		for _, i := range sorted(&p.order, p.probes.items, func(a, b *probePart) int { return a.ProbeKey.Compare(b.ProbeKey) }) {
			x := &p.probes.items[i]
			s := x.ProbeStats
			s.Delay = summary(&x.delay)
			w.Probes = append(w.Probes, s)
		}
	},
}

func (x *probePart) merge(o *probePart) {
	x.Node = max(x.Node, o.Node)
	if o.Flow.Compare(&x.Flow) > 0 {
		x.Flow = o.Flow
	}
	x.Sent += o.Sent
	x.Received += o.Received
	x.Missed += o.Missed
	x.Late += o.Late
	x.Twice += o.Twice
	x.Corrupt += o.Corrupt
	x.Reordered += o.Reordered
	x.Forward += o.Forward
	x.Back += o.Back
	x.delay.Merge(&o.delay)
}

// delayOctaves are those of a histogram that the codes of delays have.
const delayOctaves = 34

// ProbeMemory is the most that the paths of probes of a partial take that one shard adds to, in bytes.
const ProbeMemory = (maxProbes + 1) * (2*(int64(unsafe.Sizeof(probePart{}))+64) + 2*delayOctaves*quantile.OctaveCodes*4)

// AddProbes adds what an agent with a node id reports of probes, whose flow has the addresses of the agents.
func (p *Partial) AddProbes(node uint32, flow *decode.FlowKey, n *decode.ProbeCounts) {
	k, most := inference.ProbeKey{From: flow.Src, To: flow.Dst, Path: n.Path, Epoch: n.Epoch}, maxProbes
	if p.most != nil {
		most = min(most, p.most.Hops)
	}
	if len(p.probes.items) >= most && p.probes.find(k) == nil {
		k = inference.ProbeKey{}
	}
	x, _ := p.probes.at(k)
	x.ProbeKey = k
	x.Node = max(x.Node, node)
	if flow.Compare(&x.Flow) > 0 {
		x.Flow = *flow
	}
	x.Sent += uint64(n.Sent)
	x.Received += uint64(n.Received)
	x.Missed += uint64(n.Missed)
	x.Late += uint64(n.Late)
	x.Twice += uint64(n.Twice)
	x.Corrupt += uint64(n.Corrupt)
	x.Reordered += uint64(n.Reordered)
	x.Forward += int64(n.Forward)
	x.Back += int64(n.Back)
	for _, d := range n.Delays {
		x.delay.AddN(quantile.EncodeDense(decode.LongestDelay(d.Code)), uint64(d.Count))
	}
}

// otherProbes returns the path that stands for all that had no place.
func (p *Partial) otherProbes() *probePart {
	x, _ := p.probes.at(inference.ProbeKey{})
	x.ProbeKey = inference.ProbeKey{} // memory may hold another key
	return x
}

// foldProbes merges the i-th path into the one of no place, and puts the last one there.
func (p *Partial) foldProbes(i int) {
	to := p.otherProbes() // which may move all items
	items := p.probes.items
	x, last := &items[i], len(items)-1
	k := x.ProbeKey
	to.merge(x)
	probeKind.empty(x)
	delete(p.probes.index, k)
	if i != last {
		items[i], items[last] = items[last], items[i]
		p.probes.index[items[i].ProbeKey] = int32(i)
	}
	p.probes.items = items[:last]
}
