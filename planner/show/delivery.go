package show

import (
	"fmt"
	"io"
	"slices"

	"github.com/hopscope/hopscope/planner/delivery"
)

// DeliveryTable writes a plan as a table of text: where points send, what is added and why, and the configuration of switches.
func DeliveryTable(w io.Writer, p *delivery.Problem, plan *delivery.Plan) error {
	return write(w, func(x *text) {
		x.row("PATH\tSERVER\tGBIT/S\tNODES")
		for _, d := range plan.Assignment {
			x.row("%s\t%s\t%.3f\t%s", d.ID, d.Server, d.Rate, shorten(d.Path))
		}
		if len(plan.AddedLinks) > 0 {
			x.row("\nADDED LINK\t\tBECAUSE OF\t")
			for _, l := range plan.AddedLinks {
				x.row("%s\t%s\t%s\t%s", l.A, l.B, l.Constraint, l.Detail)
			}
		}
		if len(plan.Unserved) > 0 {
			x.row("\nNOT SERVED\tBECAUSE OF\t")
			for _, u := range plan.Unserved {
				x.row("%s\t%s\t%s", u.Point, u.Constraint, u.Detail)
			}
		}
		x.row("\nSWITCH\tPATH\tSHARE\tPORT\tNEXT HOP\tGBIT/S")
		for _, c := range plan.Switches {
			for _, r := range c.Rules {
				share := ""
				if r.Share > 0 {
					share = fmt.Sprintf("%.1f %%", 100*r.Share)
				}
				x.row("%s\t%s\t%s\t%d\t%s\t%.3f", c.Switch, r.Path, share, r.OutPort, r.NextHop, r.Rate)
			}
		}
		if t := plan.Transition; t != nil {
			x.line("\n%d point%s added, %d removed, %d changed, %d kept; %d had to change", len(t.Add), plural(len(t.Add)), len(t.Remove), len(t.Change), len(t.Keep), plan.Churn.Forced)
			x.steps(t, plan.Deadlock)
		}
		s := plan.Stats
		x.line("\n%d of %d points served (%d without links) by %d of %d servers, with %d added link%s", s.Served, s.Points, s.ServedAtFirst,
			s.Servers, countServers(p), s.Links, plural(s.Links))
		how := howGood(&s.Stats, fmt.Sprintf("the best there is needs at least %d links, and %g servers then", s.LinkBound, s.LowerBound))
		x.line("%s, objective %g: %s; %.3f ms", plan.Algorithm, s.Objective, how, s.Seconds*1e3)
		if s.Capped > 0 {
			x.line("%d point%s more usable paths than are looked at: those of least latency were", s.Capped, map[bool]string{true: " has", false: "s have"}[s.Capped == 1])
		}
		if plan.Partial {
			x.line("This plan is partial: it does not serve every point.")
		}
	})
}

func countServers(p *delivery.Problem) int {
	return len(slices.DeleteFunc(slices.Clone(p.Nodes), func(n delivery.Node) bool { return n.Kind != delivery.ServerNode }))
}
