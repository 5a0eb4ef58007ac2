package show

import (
	"fmt"
	"io"
	"strings"

	"github.com/hopscope/hopscope/planner/querymix"
)

// QueriesTable writes a plan as a table of text.
func QueriesTable(w io.Writer, plan *querymix.Plan) error {
	return write(w, func(x *text) {
		x.row("SHARE\tHASHES OF PACKET IDS\tBITS OF THE DIGEST")
		for _, s := range plan.Sets {
			var slots []string
			for _, x := range s.Slots {
				slots = append(slots, fmt.Sprintf("%d-%d %s", x.Shift, x.Shift+x.Bits-1, x.Query))
			}
			x.row("%s\t%08x-%08x\t%s", percent(s.Share), s.First, s.Last, strings.Join(slots, ", "))
		}
		x.line("")
		x.row("QUERY\tBITS\tSHARE\tPACKETS TO ANSWER\tALONE\tWANTED\tRATIO")
		for i := range plan.Queries {
			q := &plan.Queries[i]
			wanted := "as alone"
			switch q.Demand {
			case querymix.WantWithin:
				wanted = fmt.Sprintf("%.4g", q.Goal)
			case querymix.WantFrequency:
				wanted = "on " + percent(q.Frequency)
			}
			x.row("%s\t%s\t%s\t%.4g\t%.4g\t%s\t%.3f", q.Name, queryWidth(q), percent(q.Share), q.Packets, q.Alone, wanted, q.Ratio)
		}
		x.line("")
		for _, s := range explainQueries(plan) {
			x.line("%s", s)
		}
		s := plan.Stats
		how := howGood(&s.Stats, fmt.Sprintf("the best there is has at least %.6g", s.LowerBound))
		x.line("%s, objective %.6g: %s; %.3f ms; epoch %d", plan.Algorithm, s.Objective, how, s.Seconds*1e3, plan.Epoch)
		x.queriesSteps(plan)
		for _, l := range plan.LeftOut {
			x.line("left out: %s (%s)", l.Name, l.Reason)
		}
		if plan.Partial {
			x.line("This plan is partial: it does not do everything that is asked.")
		}
	})
}

func percent(share float64) string { return fmt.Sprintf("%.4g %%", 100*share) }

func queryWidth(q *querymix.PlannedQuery) string { return q.Width().String() }

// inBits is a width with its unit: 8 bits, or 8 bits with whole ids.
func inBits(w querymix.Width) string {
	size, ids, found := strings.Cut(w.String(), " ")
	if size += " bits"; found {
		size += " " + ids
	}
	return size
}

// explainQueries explains a plan in words.
func explainQueries(plan *querymix.Plan) (text []string) {
	add := func(format string, args ...any) { text = append(text, fmt.Sprintf(format, args...)) }
	query := map[string]*querymix.PlannedQuery{}
	for i := range plan.Queries {
		query[plan.Queries[i].Name] = &plan.Queries[i]
	}
	for _, s := range plan.Sets {
		var names []string
		used := 0
		for _, x := range s.Slots {
			names = append(names, fmt.Sprintf("%s (%s)", x.Query, inBits(query[x.Query].Width())))
			used += x.Bits
		}
		what := "nothing"
		if len(names) > 0 {
			what = enumerate(names)
		}
		if free := plan.Bits - used; free > 0 {
			what += fmt.Sprintf("; %d bit%s stay%s free", free, plural(free), map[bool]string{true: "s"}[free == 1])
		}
		add("%s of packets carry %s.", percent(s.Share), what)
	}
	for i := range plan.Queries {
		q := &plan.Queries[i]
		where := "all packets"
		if q.Share < 1-1e-9 {
			where = percent(q.Share) + " of packets"
			if q.Frequency > 0 && q.Share < q.Frequency*(1+1e-6) {
				where += ", which is the frequency that it asks for"
			}
			if len(q.LimitedBy) > 0 {
				where += "; a larger share would leave less for " + enumerate(q.LimitedBy)
			}
		}
		add("%s is on %s. It needs %.4g packets of a flow, %s.", q.Name, where, q.Packets, compare(q))
	}
	for i := range plan.Queries {
		q := &plan.Queries[i]
		for k := range q.Widths {
			w := &q.Widths[k]
			switch {
			case w.Width().Coded(q.Width()):
			case w.Reason != "":
				add("%s does not use %s: %s.", q.Name, inBits(w.Width()), w.Reason)
			case w.Objective > 0:
				add("%s in %s would need %.4g packets alone instead of %.4g, and the worst ratio would be %.4g instead of %.4g.",
					q.Name, inBits(w.Width()), w.Packets, q.Carrying, w.Objective, plan.Stats.Objective)
			}
		}
	}
	if plan.Held > 0 {
		add("Only %s of every frequency can be held.", percent(plan.Held))
	}
	if q := query[plan.Stats.Worst]; q != nil {
		add("The query that is worst off is %s: it needs %.4g packets, %s.", q.Name, q.Packets, compare(q))
	}
	return text
}

// compare sets the packets of a query against what it wants.
func compare(q *querymix.PlannedQuery) string {
	alone := fmt.Sprintf("%.3g times as many as it needs alone", q.Packets/q.Alone)
	if q.Packets < 1.0005*q.Alone {
		alone = "no more than it needs alone"
	}
	if q.Demand != querymix.WantWithin {
		return alone
	}
	return fmt.Sprintf("%.3g times as many as the %.4g that are wanted, and %s", q.Ratio, q.Goal, alone)
}

// queriesSteps writes what is different from an earlier plan.
func (x *text) queriesSteps(plan *querymix.Plan) {
	t, c := plan.Transition, plan.Churn
	if t == nil || c == nil {
		return
	}
	x.line("after the earlier plan: new %s; gone %s; coded in another way %s; as before %s",
		shortenList(t.Add), shortenList(t.Remove), shortenList(t.Change), shortenList(t.Keep))
	x.forced(c)
}
