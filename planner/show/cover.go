package show

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/cover"
)

// CoverTable writes a plan as a table of text: a probe a line, then the figures of the plan.
func CoverTable(w io.Writer, plan *cover.Plan, most int) error {
	return write(w, func(x *text) {
		routes := len(plan.Probes) > 0 && plan.Probes[0].Route != ""
		column := func(s string) string { // the last one, if there are routes
			if routes {
				return "\t" + s
			}
			return ""
		}
		x.row("PROBE\tHOPS\tFROM\tTO\tPATH%s", column("ROUTE"))
		for _, probes := range [][]planner.Probe{plan.Probes, plan.Second} {
			for _, p := range probes {
				x.row("%s\t%d\t%s\t%s\t%s%s", p.ID, len(p.Nodes)-1, endName(p.Agent, p.AgentHost, p.AgentPort), endName(p.Collector, p.CollectorHost, p.CollectorPort), shorten(p.Nodes), column(p.Route))
			}
		}
		s := plan.Stats
		pass := "probes pass"
		if s.Probes == 1 {
			pass = "probe passes"
		}
		x.line("\n%s: %d %s %d links in %d hops (%d more than once), %d to %d each, variance %.3f",
			plan.Topology, s.Probes, pass, s.Links, s.Traversals, s.Duplicated, s.Shortest, s.Longest, s.Variance)
		if plan.Kept+plan.KeptSecond > 0 {
			second := ""
			if plan.KeptSecond > 0 {
				second = fmt.Sprintf(", and %d of the second cover", plan.KeptSecond)
			}
			x.line("kept from the older plan: the first %d%s", plan.Kept, second)
		}
		if len(plan.Second) > 0 {
			x.line("second cover: %d probe%s; a failed link hides at most %d others", len(plan.Second), plural(len(plan.Second)), s.Blind)
		}
		if s.Delay > 0 {
			x.line("the longest delay of a probe is %v", time.Duration(s.Delay))
		}
		if s.Bytes > 0 {
			x.line("a round of all probes puts %d bytes on the links", s.Bytes)
		}
		if a := s.Attention; a.Share > 0 {
			x.line("with %g %% of the links suspicious a round is expected to take %.0f bytes of metrics, %d or %d a switch, by probes of at most %d links", 100*a.Share, a.Bytes, a.Basic, a.Detailed, a.MaxHops)
			if a.Bound > 0 {
				x.line("no plan in which each link counts on one probe takes fewer than %.0f", math.Floor(a.Bound))
			}
		}
		how := howGood(&s.Stats, "the best there is has at least "+amount(plan.Minimise, s.LowerBound))
		x.line("%s, objective %s: %s; %.3f s", plan.Algorithm, amount(plan.Minimise, s.Objective), how, s.Seconds)
		for _, u := range plan.NotProbed {
			from := ""
			if u.From != "" {
				from = " from " + u.From
			}
			x.line("not probed: %s%s: %s", u.Link, from, u.Reason)
		}
		x.transition(plan.Transition, "probes", most)
		if plan.Partial {
			x.line("This plan is partial: it does not pass every link.")
		}
	})
}

// endName is the sender or receiver of a probe: a node, and where it is known the agent and the port that it is behind.
func endName(node, host string, port int) string {
	if port > 0 {
		node = fmt.Sprintf("%s:%d", node, port)
	}
	if host != "" {
		return host + " at " + node
	}
	return node
}

// amount is an objective in its unit.
func amount(m cover.Measure, x float64) string {
	switch m {
	case cover.Delay:
		return time.Duration(x).String()
	case cover.Bytes, cover.Cost:
		return fmt.Sprintf("%.0f (%s)", x, m)
	}
	return fmt.Sprintf("%g", x)
}
