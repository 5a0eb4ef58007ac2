package pathtrace

import (
	"math"
	"slices"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/state"
)

// knownVersion is the first byte of known paths. Before, there was the number of paths, which is less.
const knownVersion = 130

// Known are the known paths of a flow with their confidence, for [Tracer.Resume] of another process.
type Known struct {
	paths []knownPath
	state flowState
}

type knownPath struct {
	wrong, digests, state        uint32
	seen, sure, suspects, astray uint64
	nodes                        []uint32
}

// Saved returns the known paths of a flow. Digests that no known path explains are left out: a tracer that resumes
// waits for as many anew.
func (t *Tracer) Saved(f *Flow) *Known {
	k := &Known{state: f.state}
	for n := 0; n < maxPaths && f.paths[n] != 0; n++ {
		r := t.slab.get(f.paths[n])
		k.paths = append(k.paths, knownPath{
			wrong: r[recHops] >> 8, digests: r[recDigests], state: r[recState],
			seen: r.seen(), sure: r.sure(), suspects: r.suspects(), astray: r.astray(), nodes: slices.Clone(r.path()),
		})
	}
	return k
}

// Code codes known paths; numbers without a width are uvarints:
//
//	known: version<1b> paths<1b> { hops<1b> -log2 of wrong, digests, seen, state, sure, suspects, astray { node } }
//	       digests, strays, pause, against, restarts<1b> hopeless<1b>
//
// Before version 130 there were neither a version nor the numbers from state to astray. Paths of that time are read as
// if no digest had confirmed any of their hops yet.
func (k *Known) Code(c *state.Coder) {
	version, n := uint8(knownVersion), len(k.paths)
	if state.Fixed(c, "version", &version); version == knownVersion {
		state.UintTo(c, "paths", maxPaths, &n)
	} else if n = int(version); n > maxPaths {
		c.Fail("version", state.ErrVersion)
		return
	}
	state.Repeat(c, n, &k.paths, func(p *knownPath, c *state.Coder) { p.code(c, version == knownVersion) })
	s := &k.state
	state.Uint(c, "digests", &s.digests, &s.strays, &s.pause)
	state.Uint(c, "contradictions", &s.against)
	state.Fixed(c, "restarts", &s.restarts)
	state.FixedTo(c, "hopeless", maxHopeless, &s.hopeless)
}

func (p *knownPath) code(c *state.Coder, marks bool) {
	n := len(p.nodes)
	c.Len("hops", pint.MaxHops, 1, &n)
	c.Check("hops", n > 0)
	state.UintTo(c, "confidence", math.MaxUint16, &p.wrong)
	state.Uint(c, "digests", &p.digests)
	state.Uint(c, "hops seen", &p.seen)
	if marks {
		state.UintTo(c, "deviation", uint64(numDeviations)<<kindShift-1, &p.state)
		state.Uint(c, "marks", &p.sure, &p.suspects, &p.astray)
	} else {
		p.state = unsettled
	}
	c.Check("hops seen", (p.seen|p.sure|p.suspects|p.astray)&^hops(n) == 0)
	state.Repeat(c, n, &p.nodes, func(node *uint32, c *state.Coder) { state.Uint(c, "node", node) })
}

// Resume makes paths known that were known before, of a flow without digests so far. Those for which there is no
// memory, or that are longer than the model allows, are left out.
func (t *Tracer) Resume(f *Flow, k *Known) {
	n := 0
	for i := range k.paths {
		p := &k.paths[i]
		if len(p.nodes) > t.m.Config.MaxHops {
			continue
		}
		ref := t.slab.put(len(p.nodes), t.room())
		if ref == 0 {
			break
		}
		r := t.slab.get(ref)
		copy(r.path(), p.nodes)
		r[recHops] |= p.wrong << 8
		r[recDigests] = p.digests
		r.see(p.seen)
		r[recState] = p.state
		r.ensure(p.sure)
		r.suspect(p.suspects)
		r.setPair(recAstray, p.astray)
		f.paths[n] = ref
		n++
	}
	f.state = k.state
}
