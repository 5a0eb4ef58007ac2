package shard

import (
	"cmp"
	"math"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/digest"
	"github.com/hopscope/hopscope/inference/state"
)

// The paths of the flows of a shard, as bytes that only the version that wrote them reads. Integers without a
// width are uvarints:
//
//	paths: version<1b> newest<8b> { flow }, from the one seen last on
//	flow:  key<38b> path<8b> age flags<1b> views<1b> packets on-path changes hops<1b> { hop } digests<1b> { digest }
//	hop:   node egress, and of paths of postcards TTL<1b> strikes<1b>
//	digest: coding<1b> epoch<1b> query<1b> aside<1b> away needed length { known paths, see package pathtrace }
//
// Age is how long before newest the flow was seen, in ns. Views are there where their flag is set. Integers are little
// endian.
const (
	pathsVersion = 1

	keptFlags = postcards | flatTTL | partial | viewed // the others are about the buffer
)

// AppendPaths appends what is known of the paths of the flows, at most so many, those that were seen last. It is read
// by [State.ReadPaths] of the process that goes on with these flows: some 70 bytes for each, and 20 more for PINT
// digests. It reads the whole table. Sketches of a flow's life, the utilisation of its links, and digests that no known
// path explains are left out: they begin anew.
func (s *State) AppendPaths(dst []byte, most int) []byte {
	type candidate struct {
		last int64
		slot uint32
	}
	var newest []candidate
	after := int64(math.MinInt64) // older ones have no place any more
	trim := func() {
		slices.SortFunc(newest, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(b.last, a.last), s.flows.At(a.slot).Key.Compare(&s.flows.At(b.slot).Key))
		})
		if len(newest) > most {
			newest = newest[:most]
			after = newest[most-1].last
		}
	}
	if most > 0 {
		for slot, e := range s.flows.All() {
			f := &e.Value
			if f.packets == 0 || f.last < after || f.pathID == 0 && !s.digests.Has(slot) {
				continue
			}
			if newest = append(newest, candidate{f.last, slot}); len(newest) >= 2*most+64 {
				trim()
			}
		}
		trim()
	}
	base := int64(0)
	if len(newest) > 0 {
		base = newest[0].last
	}
	return state.Append(dst, func(c *state.Coder) {
		var x savedFlow
		x.begin(c, &base)
		for _, at := range newest {
			s.save(&x, at.slot)
			x.code(c, base)
		}
	})
}

// save makes x what is kept of a flow.
func (s *State) save(x *savedFlow, slot uint32) {
	e := s.flows.At(slot)
	*x = savedFlow{key: e.Key, flow: e.Value, hops: x.hops[:0], digests: x.digests[:0]}
	var space [maxBlocks]uint32
	for _, b := range s.slab.chain(&space, &x.flow)[:x.flow.hops] {
		p := s.slab.at(b)
		x.hops = append(x.hops, savedHop{p.node, p.egress, p.ttl, p.strikes})
	}
	x.digests = s.digests.Save(x.digests, slot)
}

// ReadPaths restores flows whose paths AppendPaths wrote. Their next report goes on from there, and another path is a
// path change. It is called after ReadDigests and before the first Update. Flows that are known already are left as
// they are, and so are those for which there is no room. Digests of plans that are not followed any more are passed
// over. Bytes that AppendPaths does not write are refused with a [*state.Error], and then nothing is changed.
func (s *State) ReadPaths(b []byte) error {
	if err := s.readPaths(b, false); err != nil {
		return err
	}
	return s.readPaths(b, true)
}

// savedFlow is one flow in the bytes of AppendPaths.
type savedFlow struct {
	key     decode.FlowKey
	flow    flow // without its blocks
	hops    []savedHop
	digests []digest.Saved
	age     uint64
}

type savedHop struct {
	node, egress uint32
	ttl, strikes uint8
}

func (s *State) readPaths(b []byte, keep bool) error {
	return state.Read("paths of flows", b, func(c *state.Coder) {
		var x savedFlow
		var newest int64
		for x.begin(c, &newest); c.OK() && c.Left() > 0; {
			if x.code(c, newest); c.OK() && keep {
				s.resume(&x)
			}
		}
	})
}

// begin codes what is before the flows.
func (x *savedFlow) begin(c *state.Coder, newest *int64) {
	c.Version(pathsVersion, pathsVersion)
	base := uint64(*newest)
	state.Fixed(c, "newest", &base)
	*newest = int64(base)
}

// code codes a flow that is at least as old as the one before.
func (x *savedFlow) code(c *state.Coder, newest int64) {
	if c.Reading() {
		*x = savedFlow{hops: x.hops[:0], digests: x.digests[:0], age: x.age}
	}
	f, before := &x.flow, x.age
	c.Flow("flow", &x.key)
	state.Fixed(c, "path", &f.pathID)
	if !c.Reading() {
		x.age = uint64(newest - f.last)
	}
	state.Uint(c, "age", &x.age)
	c.Check("order of flows", x.age >= before)
	f.last = newest - int64(x.age)
	f.flags &= keptFlags
	state.FixedTo(c, "flags", keptFlags, &f.flags)
	if f.flags&viewed != 0 {
		state.Fixed(c, "views", &f.views)
		c.Check("views", f.views > 0 && f.views < lasting)
	}
	if inference.IsProbe(&x.key) {
		f.flags |= probe
	}
	state.Uint(c, "packets", &f.packets)
	c.Check("packets", f.packets > 0)
	state.Uint(c, "packets", &f.onPath)
	state.Uint(c, "changes", &f.changes)
	state.List(c, "hops", maxPathLength, 2, &x.hops, func(h *savedHop, c *state.Coder) {
		state.Uint(c, "hop", &h.node, &h.egress)
		if f.flags&postcards != 0 {
			state.Fixed(c, "hop", &h.ttl, &h.strikes)
		}
	})
	c.Check("hops of no path", len(x.hops) == 0 || f.pathID != 0)
	state.List(c, "digests", 2, 10, &x.digests, (*digest.Saved).Code)
}

// resume makes a flow known.
func (s *State) resume(x *savedFlow) {
	kept := x.hops[:min(len(x.hops), s.cfg.MaxPathLength)]
	if s.flows.Len() == s.flows.Cap() || s.slab.room() < len(kept) {
		return
	}
	slot, inserted := s.flows.Find(tableHash(s.key.Flow(&x.key)), &x.key, x.flow.last)
	if !inserted {
		return
	}
	f := &s.flows.At(slot).Value
	*f = x.flow
	f.gen = s.hops.gen - 1 // the next stack looks its hops up
	var chain [maxBlocks]uint32
	for i := range kept {
		h := &kept[i]
		chain[i] = s.slab.allocate(inference.HopKey{Node: h.node, EgressIf: h.egress})
		p := s.slab.at(chain[i])
		p.ttl, p.strikes = h.ttl, h.strikes
	}
	f.hops = uint8(len(kept))
	s.slab.setChain(f, chain[:len(kept)])
	s.digests.Resume(slot, &x.key, x.digests)
}
