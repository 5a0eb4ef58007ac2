package solve

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/planner/opt"
	"github.com/hopscope/hopscope/planner/querymix"
)

// Options of Plan.
type Options struct {
	Seed    uint64      // of the models
	Partial bool        // leave out queries that fit in no packet, and lower impossible frequencies
	Stop    func() bool // ends the search; nil for never

	// Previous is the present plan of the network. At most Churn queries are new, removed or coded in another way, or
	// any number if Churn is negative. If more changes are forced, as few as possible are made.
	Previous *querymix.Plan
	Churn    int
}

// Plan finds the best plan for a problem, which it does not change. When it is stopped early, the plan has the bounds
// proven so far.
func Plan(p *querymix.Problem, o Options) (*querymix.Plan, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	o.Stop = opt.Never(o.Stop)
	plan := &querymix.Plan{Algorithm: "exact", Epoch: p.Epoch, Bits: p.Bits, Hash: p.Hash, Seed: p.Seed, Sets: []querymix.Set{}}
	if plan.Hash == "" {
		plan.Hash = "mix"
	}
	s := &search{bits: p.Bits, stop: o.Stop}
	var errs []error
	before := map[string]*querymix.PlannedQuery{}
	if o.Previous != nil {
		for i := range o.Previous.Queries {
			before[o.Previous.Queries[i].Name] = &o.Previous.Queries[i]
		}
	}
	for i := range p.Queries {
		q := &p.Queries[i]
		d, usable, kept, err := describe(q, p.Bits, o.Seed, before[q.Name])
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("query %q: %w", q.Name, err))
		case len(usable) > 0:
			s.add(&d, usable, kept)
			plan.Queries = append(plan.Queries, d)
		case o.Partial:
			plan.LeftOut = append(plan.LeftOut, querymix.LeftOut{Name: q.Name, Reason: reasons(&d)})
		default:
			errs = append(errs, fmt.Errorf("query %q: %s", q.Name, reasons(&d)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(plan.Queries) == 0 {
		return nil, fmt.Errorf("no query fits into %d bits: %s", p.Bits, plan.LeftOut[0].Reason)
	}
	if err := s.hold(plan, o.Partial); err != nil {
		return nil, err
	}
	if err := s.fill(plan, o.Partial); err != nil {
		return nil, err
	}
	plan.Partial = len(plan.LeftOut) > 0 || plan.Held > 0
	must := 0 // new, gone, or without the width that they had
	for q, k := range s.kept {
		if delete(before, plan.Queries[q].Name); k == none {
			must++
		}
	}
	must += len(before)
	limit := -1
	if o.Previous != nil && o.Churn >= 0 {
		limit = max(o.Churn-must, 0)
	}
	forced, err := s.run(limit)
	if err != nil {
		return nil, err
	}
	s.finish(plan)
	for i := range p.Queries {
		if q := &p.Queries[i]; slices.ContainsFunc(plan.LeftOut, func(l querymix.LeftOut) bool { return l.Name == q.Name }) {
			plan.Stats.LeftOut += q.LeftOutWeight()
		}
	}
	plan.Stats.LeftOutBound = plan.Stats.LeftOut // no plan that holds as much of the frequencies carries any of these
	if o.Previous != nil {
		if err := noteChanges(plan, o.Previous, o.Churn, must+forced); err != nil {
			return nil, err
		}
	}
	return plan, nil
}

// describe fills in what is known of a query before its share is, and which widths can be used. Kept is the width in which
// it stays as it was in an earlier plan, if it can.
func describe(q *querymix.Query, bits int, seed uint64, previous *querymix.PlannedQuery) (d querymix.PlannedQuery, usable []int, kept int, err error) {
	d = querymix.PlannedQuery{
		Name: q.Name, Value: q.Value, Aggregation: q.Aggregation, Answer: q.Answer, Function: q.Function, Flow: q.Flow, SpaceBytes: q.SpaceBytes,
		MinValue: q.MinValue, MaxValue: q.MaxValue, Matches: q.Matches, Frequency: float64(q.Frequency),
	}
	if d.Flow == "" {
		d.Flow = "5-tuple"
	}
	switch q.Aggregation {
	case querymix.Static:
		if d.Tau, d.XOR = q.Tau, q.XOR; d.Tau == 0 && d.XOR == nil {
			d.Tau, d.XOR = Hybrid(q.Hops)
		}
	case querymix.Dynamic:
		d.Tau = 1
	}
	for _, w := range q.Widths {
		pw := querymix.PlannedWidth{Bits: w.Bits, Instances: w.Instances, Fragments: w.Fragments, Packets: w.Packets}
		if w.Total() > bits {
			pw.Reason = fmt.Sprintf("%d bits are more than the %d of a packet", w.Total(), bits)
		} else if pw.Packets, pw.Reason, err = estimate(q, w, seed); err != nil {
			return d, nil, none, err
		}
		d.Widths = append(d.Widths, pw)
	}
	kept = keep(&d, previous)
	usable, d.Alone = compare(d.Widths)
	if kept != none && !slices.Contains(usable, kept) { // another one is better, but would be a change
		d.Widths[kept].Reason = ""
		usable = append(usable, kept)
		slices.Sort(usable)
	}
	switch d.Goal = d.Alone; {
	case q.Within > 0:
		d.Goal, d.Demand = q.Within, querymix.WantWithin
	case q.Frequency > 0:
		d.Demand = querymix.WantFrequency
	default:
		d.Demand = querymix.WantAlone
	}
	return d, usable, kept, nil
}

// compare finds the widths that can be optimal. For each of the others it names a width that takes no more bits and no
// more packets. The result alone is the fewest packets.
func compare(widths []querymix.PlannedWidth) (usable []int, alone float64) {
	alone = math.Inf(1)
	var can []int
	for k, w := range widths {
		if w.Reason == "" {
			can = append(can, k)
			alone = min(alone, w.Packets)
		}
	}
	for _, k := range can {
		best := k
		for _, j := range can {
			v, b := &widths[j], &widths[best]
			if bits := v.Width().Total(); bits <= widths[k].Width().Total() &&
				cmp.Or(cmp.Compare(v.Packets, b.Packets), cmp.Compare(bits, b.Width().Total()), cmp.Compare(j, best)) < 0 {
				best = j
			}
		}
		if v := widths[best]; best == k {
			usable = append(usable, k)
		} else {
			widths[k].Reason = fmt.Sprintf("%s takes %.4g packets instead of %.4g, and no more bits", v.Width(), v.Packets, widths[k].Packets)
		}
	}
	return usable, alone
}

// reasons returns why no width of a query can be used.
func reasons(d *querymix.PlannedQuery) string {
	var list []string
	for k := range d.Widths {
		list = append(list, fmt.Sprintf("width %s: %s", d.Widths[k].Width(), d.Widths[k].Reason))
	}
	return strings.Join(list, "; ")
}
