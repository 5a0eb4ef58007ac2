package planner

import "errors"

// Replacement describes how a plan differs from the older one that it replaces. All of it is empty in a plan that replaces none.
type Replacement struct {
	Churn      *Churn      `json:"churn,omitempty"`      // how much changes
	Transition *Transition `json:"transition,omitempty"` // the way there
	Deadlock   string      `json:"deadlock,omitempty"`   // why there are no steps: there is no order of them, or none was found
}

// Churn counts the elements of a transition that are added, removed or changed, as far as the family calls that a
// change.
type Churn struct {
	Limit   int  `json:"limit"`            // how many were to change at most; -1 for any number
	Changed int  `json:"changed"`          // how many do
	Forced  int  `json:"forced"`           // how many had to; where these are more than the limit, only they do
	Proven  bool `json:"proven,omitempty"` // no plan with so few changes is better
}

// Replace fills in the transition between the elements of two plans. Where there is no order of steps, the transition
// has none, and Deadlock has the reason.
func (r *Replacement) Replace(before, after []Element, capacity map[string]float64) (err error) {
	r.Transition, err = NewTransition(before, after, capacity)
	if d, ok := errors.AsType[*Deadlock](err); ok {
		r.Deadlock, err = d.Error(), nil
	}
	return err
}

// Count fills in the churn, with all that the transition changes.
func (r *Replacement) Count(limit, forced int) {
	r.Churn = &Churn{Limit: max(limit, -1), Changed: r.Transition.Churn(), Forced: forced}
}

// CheckReplacement returns in what the transition does not lead from the one plan to the other, step by step.
func (r *Replacement) CheckReplacement(before, after []Element, capacity map[string]float64) error {
	switch {
	case r.Transition == nil:
		return errors.New("the plan replaces another one and does not say how")
	case r.Deadlock != "":
		return r.Transition.CheckLists(before, after)
	}
	return r.Transition.Check(before, after, capacity)
}

// CheckClaims adds to bad what is impossible in a plan by itself. The check against the older plan is
// [Replacement.CheckReplacement], which has that plan.
func (r *Replacement) CheckClaims(bad *Errors, elements string) {
	if r.Transition == nil && r.Deadlock != "" {
		bad.Add("the plan has a deadlock, and no transition")
	}
	r.Churn.Check(bad, elements)
}

// Check adds to bad what cannot be true.
func (c *Churn) Check(bad *Errors, elements string) {
	if c != nil && (c.Forced > c.Changed || c.Limit >= 0 && c.Changed > max(c.Limit, c.Forced)) {
		bad.Add("%d %s change, where %d may and %d have to", c.Changed, elements, c.Limit, c.Forced)
	}
}
