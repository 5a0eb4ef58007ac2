package digest

import (
	"maps"
	"math"
	"slices"
	"unsafe"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/pathtrace"
	"github.com/hopscope/hopscope/inference/window"
)

const (
	mostForeign        = 1024 // flows with such digests in a window,
	mostForeignDigests = 64   // and digests of each of them
)

// WindowMemory is the most bytes that a reader takes for the digests of a window, beside those of [Stats]. A list that
// grew by appending has room for 22 sixteenths of its items.
const WindowMemory = mostForeign * (int64(unsafe.Sizeof(foreign{})) + 64 + mostForeignDigests*int64(unsafe.Sizeof(foreignDigest{}))*22/16)

// foreign holds the strange digests of a flow in a window. No walk over the links of the map explains them between the
// ends of its known path. They stay strange however many paths the flow uses at once. But a flow that has begun to
// enter or leave elsewhere has such digests, too. So has one at whose place the map is wrong. So a flow is published
// only if other digests, since the first of them, confirm all hops of the known path. The rest are judged like digests
// that are not known to be foreign.
type foreign struct {
	flow   decode.FlowKey
	agreed uint64 // hops
	list   []foreignDigest

	// Parts of digests by the hop that wrote last over earlier content, since the first foreign digest. The node of the
	// hop cannot have written those in wrong, and can have written those in right.
	wrong, right [pint.MaxHops]uint32
}

func (f *foreign) observe(hop int, agrees bool) {
	if agrees {
		f.right[hop-1]++
	} else {
		f.wrong[hop-1]++
	}
}

// The place at which digests are spoilt is published under two conditions. If it were another one, digests of the next
// hop would all agree with a probability of at most elsewhere. At least leastWrong digests of the hop itself are
// spoilt.
const (
	elsewhere  = .01
	leastWrong = 2
)

// place returns the hop that spoils digests, 1 for the first, or 0 if that is not known. Hops that overwrite the
// content restore it. So digests that they wrote agree behind the place, and before it they are spoilt as often as
// others.
func (f *foreign) place(hops int) int {
	last, wrong, all := 0, 0., 0.
	for h := 1; h <= hops; h++ {
		if f.wrong[h-1] > 0 {
			last = h
		}
	}
	for h := range last {
		wrong += float64(f.wrong[h])
		all += float64(f.wrong[h]) + float64(f.right[h])
	}
	if last == 0 || f.wrong[last-1] < leastWrong || last < hops && math.Pow(1-wrong/all, float64(f.right[last])) > elsewhere {
		return 0
	}
	return last
}

type foreignDigest struct {
	writers     uint64 // all ones if it is not known any more that it is foreign
	at          int64
	unexplained bool // it counts as unexplained in any case
}

// noteForeign notes the evidence of a digest about the foreign ones, and reports whether it is one itself that is kept.
func (d *Reader) noteForeign(x *flow, slot uint32, t *pathtrace.Tracer, r *decode.Report, value uint64, e pathtrace.Event) bool {
	i, hops := d.slots[slot], int(r.Digest.Hops)
	switch e {
	case pathtrace.Verified, pathtrace.Confirmed:
		if len(d.foreign) > 0 {
			if f := d.foreign[i]; f != nil {
				f.agreed |= t.Writers(r.Digest.ID, hops)
				t.Kept(&x.trace, r.Digest.ID, hops, value, f.observe)
			}
		}
		return false
	case pathtrace.Inconsistent, pathtrace.Pending, pathtrace.Contradiction, pathtrace.Untraceable, pathtrace.Ignored:
	case pathtrace.Decoded, pathtrace.Changed, pathtrace.Parallel, pathtrace.Returned, pathtrace.Revised:
		if f := d.foreign[i]; f != nil { // by another path they may not be foreign
			f.agreed, f.wrong, f.right = 0, [pint.MaxHops]uint32{}, [pint.MaxHops]uint32{}
			for k := range f.list {
				f.list[k].writers = ^uint64(0)
			}
		}
		return false
	default:
		return false
	}
	f := d.foreign[i]
	if f == nil && len(d.foreign) >= mostForeign || f != nil && len(f.list) >= mostForeignDigests || !t.Foreign(&x.trace, r.Digest.ID, hops, value) {
		return false
	}
	if f == nil {
		f = &foreign{flow: r.Flow}
		if d.foreign == nil {
			d.foreign = map[uint32]*foreign{}
		}
		d.foreign[i] = f
	}
	t.Kept(&x.trace, r.Digest.ID, hops, value, f.observe)
	f.list = append(f.list, foreignDigest{t.Writers(r.Digest.ID, hops), r.Time, e != pathtrace.Inconsistent && e != pathtrace.Pending})
	return true
}

// settleForeign adds the foreign digests of a window to its faults.
func (d *Reader) settleForeign(to *window.Partial) {
	for _, i := range slices.Sorted(maps.Keys(d.foreign)) {
		d.addForeign(to, i, d.foreign[i])
	}
	clear(d.foreign)
}

// addForeign adds those of one flow.
func (d *Reader) addForeign(p *window.Partial, i uint32, f *foreign) {
	fault := inference.DigestFault{Flow: f.flow, Fault: inference.Inconsistent, Count: 1}
	x := &d.flows[i]
	if x.trace.Known() {
		st, _ := x.tracer.Path(&x.trace, 0, d.nodes[:0])
		d.nodes = st.Nodes
		if place := f.place(len(st.Nodes)); place > 0 {
			fault.Node = d.base | st.Nodes[place-1]
		}
	}
	for _, g := range f.list {
		switch {
		case g.writers != ^uint64(0) && g.writers&^f.agreed == 0:
		case !g.unexplained:
			continue
		case x.spray != 0:
			d.sprays.flows[x.spray].addUnexplained(g.at)
			continue
		}
		fault.First, fault.Last = g.at, g.at
		p.AddFault(&fault)
		d.stats.Unexplained++
	}
}
