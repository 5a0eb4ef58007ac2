package solve

import (
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/querymix"
)

// coding is the coding of a query, with all that its decoder needs.
func coding(d *querymix.PlannedQuery) string {
	return fmt.Sprint(d.Value, " ", d.Aggregation, " ", d.Bits, "x", d.Instances, "/", d.Fragments, " ", d.Tau, d.XOR, " ", d.MinValue, "-", d.MaxValue, " ", d.Matches, " ", d.Function)
}

// keep returns the width in which a query is coded as in an earlier plan, or none if there is no such width any more.
func keep(d, previous *querymix.PlannedQuery) int {
	if previous == nil {
		return none
	}
	k := slices.IndexFunc(d.Widths, func(w querymix.PlannedWidth) bool {
		return w.Width().Coded(previous.Width())
	})
	if k < 0 || d.Widths[k].Reason != "" {
		return none
	}
	now := *d
	now.Bits, now.Instances, now.Fragments = previous.Bits, previous.Instances, previous.Fragments
	if coding(&now) != coding(previous) {
		return none
	}
	return k
}

// changes counts the queries that could be coded as before, and are not.
func (s *search) changes(items []item) (n int) {
	for _, it := range items {
		if k := s.kept[it.query]; k != none && k != it.width {
			n++
		}
	}
	return n
}

// within reports whether items, one a query, keep enough queries as they are.
func (s *search) within(items []item) bool { return s.churn < 0 || s.changes(items) <= s.churn }

// denied counts the queries that the items left no longer allow to be coded as before. It also returns a query that can
// be, but for which main has another width.
func (s *search) denied(left, main []item) (n, query int) {
	can := make([]bool, len(s.floor))
	for _, it := range left {
		if s.kept[it.query] == it.width {
			can[it.query] = true
		}
	}
	query = none
	for q, k := range s.kept {
		switch {
		case k != none && !can[q]:
			n++
		case k != none && query == none && main[q].width != k:
			query = q
		}
	}
	return n, query
}

// changed begins with the fewest changes possible, and returns their number. It then allows as many as the limit.
func (s *search) changed(limit int) (forced int) {
	for s.churn = 0; ; s.churn++ {
		if s.tree(); s.best != nil || s.churn == len(s.floor) || s.stop() {
			break
		}
	}
	forced = s.churn
	if limit < 0 || limit > s.churn {
		s.churn = limit
		s.tree()
	}
	return forced
}

// noteChanges notes in a plan the differences from an earlier one.
func noteChanges(plan, previous *querymix.Plan, limit, forced int) error {
	elements := func(p *querymix.Plan) (list []planner.Element) {
		for i := range p.Queries {
			d := &p.Queries[i]
			list = append(list, planner.Element{ID: d.Name, Covers: []string{d.Name}, Form: coding(d)})
		}
		return list
	}
	if err := plan.Replace(elements(previous), elements(plan), nil); err != nil {
		return err
	}
	plan.Count(limit, min(forced, plan.Transition.Churn()))
	return nil
}
