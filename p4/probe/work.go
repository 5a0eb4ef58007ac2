package probe

import (
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
)

// errEpoch is a plan that comes too late.
var errEpoch = errors.New("there is a later plan")

// Follows reports whether p may take the place of the plan in force, nil for none. Same is true of the plan in force once more,
// which is no error and changes nothing.
func (p *Plan) Follows(inForce *Plan) (same bool, err error) {
	switch {
	case inForce == nil || p.Epoch > inForce.Epoch:
		return false, nil
	case p.Epoch < inForce.Epoch:
		return false, fmt.Errorf("%w: epoch %d is in force", errEpoch, inForce.Epoch)
	case !reflect.DeepEqual(p, inForce):
		return false, fmt.Errorf("epoch %d is in force with another plan; a changed plan has a higher epoch", p.Epoch)
	}
	return true, nil
}

// Work is the schedule of an agent by a plan: a slot and a template for each of its probes.
type Work struct {
	Slots     []Slot
	Templates []Template

	Plan *Plan
	// These are by template, for other goroutines than the sender. They are the next round to be sent, the sends that
	// the card refused, and the starts skipped because the sender was late.
	Next, Failed, Skipped []atomic.Uint32
}

// NewWork builds the frames of the probes that the agent of a name sends. The argument numbers holds the numbers of its
// probes in the plan before, by id. A probe that stays keeps its number, and so its flow. No other probe gets a number
// of that plan, so that late frames of removed probes are not mistaken. It returns the numbers of this plan.
func NewWork(p *Plan, name string, e *Ends, numbers map[string]uint32) (*Work, map[string]uint32, error) {
	sends := 0
	for k := range p.Probes {
		if p.Probes[k].Agent == name {
			sends++
		}
	}
	w := &Work{Slots: make([]Slot, 0, sends), Templates: make([]Template, 0, sends), Plan: p, Next: make([]atomic.Uint32, sends), Failed: make([]atomic.Uint32, sends), Skipped: make([]atomic.Uint32, sends)}
	taken := make(map[uint32]bool, max(sends, len(numbers)))
	keep := make(map[string]uint32, sends)
	for _, n := range numbers {
		taken[n] = true
	}
	for k := range p.Probes {
		if n, ok := numbers[p.Probes[k].ID]; ok && p.Probes[k].Agent == name {
			keep[p.Probes[k].ID] = n
		}
	}
	next := uint32(0)
	for k := range p.Probes {
		x := &p.Probes[k]
		if x.Agent != name {
			continue
		}
		n, ok := keep[x.ID]
		if !ok {
			for taken[next] {
				next++
			}
			n, taken[next], keep[x.ID] = next, true, next
		}
		ends := *e
		if x.To.IsValid() {
			ends.To = x.To.Unmap()
		}
		t, err := NewTemplate(p, x, n, &ends)
		if err != nil {
			return nil, nil, fmt.Errorf("probe %q: %w", x.ID, err)
		}
		t.Probe, t.Number = k, n
		w.Slots, w.Templates = append(w.Slots, Slot{x.Interval, x.Phase}), append(w.Templates, t)
	}
	return w, keep, nil
}
