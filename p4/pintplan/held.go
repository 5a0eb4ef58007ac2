package pintplan

import (
	"slices"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/p4"
)

// HeldPlan is an execution plan that switches hold, from the configuration or from their tables.
type HeldPlan struct {
	epoch   uint8
	Bits    int
	program *Program      // from the tables
	plan    *pint.Plan    // if there is no program
	loops   [][]pint.Slot // of plan, by set of queries: those that detect loops
}

// HeldPlans are the plans that a switch holds, and the one that it stamps on packets that enter the network at it.
type HeldPlans struct {
	Held  [Plans]*HeldPlan
	Stamp *uint8 // epoch; nil for none
}

// Plan returns the plan of an epoch, or nil if the switch does not hold it.
func (x *HeldPlans) Plan(epoch uint8) *HeldPlan {
	for _, h := range x.Held {
		if h != nil && h.epoch == epoch {
			return h
		}
	}
	return nil
}

// NewHeldPlan is a plan as it was configured.
func NewHeldPlan(p *pint.Plan) *HeldPlan {
	x := &HeldPlan{epoch: p.Epoch, Bits: p.Bits, plan: p, loops: make([][]pint.Slot, len(p.Sets))}
	for i := range p.Sets {
		for _, slot := range p.Sets[i].Slots {
			if p.Queries[slot.Query].Aggregation == pint.Loop {
				x.loops[i] = append(x.loops[i], slot)
			}
		}
	}
	return x
}

// Write is the change of a digest by the switch at a hop. If looped is not 0, it reports a loop.
func (x *HeldPlan) Write(digest uint64, id uint32, hop int, v *pint.Values, rnd uint32) (next uint64, looped uint8) {
	if x.program != nil {
		return x.program.Write(digest, id, hop, *v, rnd)
	}
	for _, slot := range x.loops[x.plan.Set(id)] {
		l := x.plan.Queries[slot.Query].Loops
		if _, overwritten := l.Step(x.plan.Part(digest, slot), id, hop, v.Node); overwritten {
			looped = uint8(l.T + 1)
		}
	}
	return x.plan.Write(digest, id, hop, *v, rnd), looped
}

// Hold adopts the plan, or none, that the tables have of an epoch. Plans outside tables, with which a network was
// built, give way if there is no other place.
func (x *HeldPlans) Hold(epoch uint8, p *Program, whole bool) {
	at := slices.IndexFunc(x.Held[:], func(h *HeldPlan) bool { return h != nil && h.epoch == epoch })
	if !whole {
		if at >= 0 {
			x.Held[at] = nil
		}
		return
	}
	if at < 0 {
		at = slices.Index(x.Held[:], nil)
	}
	if at < 0 { // there are no more plans in the tables than places, so that one of these is not in them
		stamped := func(h *HeldPlan) bool { return x.Stamp != nil && *x.Stamp == h.epoch }
		at = slices.IndexFunc(x.Held[:], func(h *HeldPlan) bool { return h.untabled() && !stamped(h) })
		if at < 0 {
			at = slices.IndexFunc(x.Held[:], (*HeldPlan).untabled)
		}
	}
	x.Held[at] = &HeldPlan{epoch: epoch, Bits: p.Bits, program: p}
}

// untabled reports whether the plan has no entries in the tables.
func (h *HeldPlan) untabled() bool {
	if h.program != nil {
		return false
	}
	_, err := Entries(h.plan)
	return err != nil
}

// Entries are the entries of the plans that a switch was built with, as far as tables hold such plans, and of the
// stamped one.
func (x *HeldPlans) Entries() (all []p4.Entry) {
	for _, h := range x.Held {
		if h == nil || h.plan == nil {
			continue
		}
		if entries, err := Entries(h.plan); err == nil {
			all = append(all, entries...)
		}
	}
	if x.Stamp != nil {
		all = append(all, Stamp(*x.Stamp))
	}
	return all
}
