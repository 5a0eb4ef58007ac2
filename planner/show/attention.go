package show

import (
	"fmt"
	"io"

	"github.com/hopscope/hopscope/planner/attention"
)

// AttentionTable writes a plan as a table of text.
func AttentionTable(w io.Writer, plan *attention.Plan) error {
	return write(w, func(x *text) {
		x.row("PROBE\tCOST\tSUSPICIOUS LINKS")
		for _, d := range plan.Probes {
			x.row("%s\t%g\t%s", d.ID, d.Cost, shortenList(d.Suspicious))
		}
		s := plan.Stats
		share := 0.0
		if s.AllCost > 0 {
			share = 100 * s.Cost / s.AllCost
		}
		x.line("\n%d of %d probes measure in detail: %g of %g hops (%.1f %%), for %d suspicious link%s",
			s.Detailed, s.Probes, s.Cost, s.AllCost, share, s.Suspicious, plural(s.Suspicious))
		if plan.Transition == nil && (len(plan.TurnedOff) > 0 || s.Changes < s.Detailed) {
			x.line("changes: %d on (%s), %d off (%s)", len(plan.TurnedOn), shortenList(plan.TurnedOn), len(plan.TurnedOff), shortenList(plan.TurnedOff))
		}
		x.attentionSteps(plan)
		if i := plan.Instructions; i != nil {
			x.line("instructions: %s on these (%d bytes a hop), %s on all others (%d)", i.Detailed, i.DetailedBytes, i.Basic, i.BasicBytes)
		}
		how := howGood(&s.Stats, fmt.Sprintf("the best there is costs at least %g", s.LowerBound))
		x.line("%s, objective %g: %s; %.3f ms", plan.Algorithm, s.Objective, how, s.Seconds*1e3)
		for _, l := range plan.OnNoProbe {
			x.line("on no probe: %s", l)
		}
		if plan.Partial {
			x.line("This plan is partial: it does not look at suspicious links of weight %g, and no plan does.", s.LeftOut)
		}
	})
}

// attentionSteps writes what changes after an earlier plan.
func (x *text) attentionSteps(plan *attention.Plan) {
	t, c := plan.Transition, plan.Churn
	if t == nil {
		return
	}
	x.line("steps: %d (turn on %s, then off %s), %d stay", len(t.Steps), shortenList(t.Add), shortenList(t.Remove), len(t.Keep))
	x.forced(c)
}
