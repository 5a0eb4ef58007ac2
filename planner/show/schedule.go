package show

import (
	"fmt"
	"io"

	"github.com/hopscope/hopscope/planner/schedule"
)

// ScheduleTable writes a plan as a table of text.
func ScheduleTable(w io.Writer, plan *schedule.Plan) error {
	return write(w, func(x *text) {
		x.row("PROBE\tEVERY\tFROM\tBYTES/S\tCLASS\tAGENT\tCOLLECTOR")
		for _, p := range plan.Probes {
			x.row("%s\t%g ms\t%g ms\t%.6g\t%s\t%s\t%s", p.ID, p.Interval, p.Phase, p.BytesPerSecond, p.Class, p.Agent, p.Collector)
		}
		s := plan.Stats
		x.line("\n%d of %d probes are sent, %d starts in %g ms; %d of %d links are seen in time", s.Sent, s.Probes, s.Starts, plan.Hyperperiod, s.Seen, s.Links)
		x.line("busiest link %s; agents send at most %s and receive at most %s", BitRate(s.BusiestLink), BitRate(s.BusiestSend), BitRate(s.BusiestReceive))
		if s.Sent > 0 {
			x.line("an agent starts at most %d in a slot (at least %d), %g ms apart or more; %d start%s nearer than wanted",
				s.Peak, s.PeakBound, s.ShortestWait, s.TooClose, plural(s.TooClose))
		}
		if t := plan.Transition; t != nil {
			x.line("changes: %d added (%s), %d removed (%s), %d changed (%s), %d kept", len(t.Add), shortenList(t.Add),
				len(t.Remove), shortenList(t.Remove), len(t.Change), shortenList(t.Change), len(t.Keep))
			if ch := plan.Churn; ch.Limit >= 0 && ch.Forced > ch.Limit {
				x.line("%d had to change so that links are seen, more than %d; nothing else did.", ch.Forced, ch.Limit)
			}
			if plan.Deadlock != "" {
				x.line("no order of steps: %s", plan.Deadlock)
			}
		}
		how := howGood(&s.Stats, fmt.Sprintf("the best there is takes at least %.6g", s.LowerBound))
		x.line("%s, %.6g bytes/s: %s; %.3f s", plan.Algorithm, s.Objective, how, s.Seconds)
		for _, u := range plan.NotSeen {
			x.line("not seen in time: %s: %s", u.Link, u.Reason)
		}
		if plan.Partial {
			x.line("This plan is partial: it leaves out links of weight %g, and any plan leaves out %g.", s.LeftOut, s.LeftOutBound)
		}
	})
}
