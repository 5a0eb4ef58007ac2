package solve

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/hopscope/hopscope/planner/querymix"
)

// Options of Plan.
type Options struct {
	Seed    uint64      // of the models
	Partial bool        // leave out what fits in no packet, and lower frequencies that cannot be held
	Stop    func() bool // ends the search; nil for never
}

// Plan finds the best plan for a problem, which it does not change. When it is stopped early, the plan says what is
// proven of it.
func Plan(p *querymix.Problem, o Options) (*querymix.Plan, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if o.Stop == nil {
		o.Stop = func() bool { return false }
	}
	plan := &querymix.Plan{Algorithm: "exact", Epoch: p.Epoch, Bits: p.Bits, Hash: p.Hash, Seed: p.Seed, Sets: []querymix.Set{}}
	if plan.Hash == "" {
		plan.Hash = "mix"
	}
	s := &search{bits: p.Bits, stop: o.Stop}
	var errs []error
	for i := range p.Queries {
		q := &p.Queries[i]
		d, usable, err := describe(q, p.Bits, o.Seed)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("query %q: %w", q.Name, err))
		case len(usable) > 0:
			s.add(&d, usable)
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
	if err := s.crowd(plan, o.Partial); err != nil {
		return nil, err
	}
	plan.Partial = len(plan.LeftOut) > 0 || plan.Held > 0
	if err := s.run(); err != nil {
		return nil, err
	}
	s.finish(plan)
	return plan, nil
}

// describe fills in what is known of a query before its share is, and which widths can be used.
func describe(q *querymix.Query, bits int, seed uint64) (d querymix.PlannedQuery, usable []int, err error) {
	d = querymix.PlannedQuery{
		Name: q.Name, Value: q.Value, Aggregation: q.Aggregation, Flow: q.Flow, SpaceBytes: q.SpaceBytes,
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
		pw := querymix.PlannedWidth{Bits: w.Bits, Instances: w.Instances, Packets: w.Packets}
		if w.Total() > bits {
			pw.Reason = fmt.Sprintf("%d bits are more than the %d of a packet", w.Total(), bits)
		} else if pw.Packets, pw.Reason, err = estimate(q, w, seed); err != nil {
			return d, nil, err
		}
		d.Widths = append(d.Widths, pw)
	}
	usable, d.Alone = compare(d.Widths)
	switch d.Goal = d.Alone; {
	case q.Within > 0:
		d.Goal, d.Demand = q.Within, querymix.WantWithin
	case q.Frequency > 0:
		d.Demand = querymix.WantFrequency
	default:
		d.Demand = querymix.WantAlone
	}
	return d, usable, nil
}

// compare finds the widths that can be the best ones, and says of the others which takes no more bits and no more packets.
// alone is the fewest packets.
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

// reasons says why no width of a query can be used.
func reasons(d *querymix.PlannedQuery) string {
	var list []string
	for k := range d.Widths {
		list = append(list, fmt.Sprintf("width %s: %s", d.Widths[k].Width(), d.Widths[k].Reason))
	}
	return strings.Join(list, "; ")
}
