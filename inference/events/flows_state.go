package events

import "github.com/hopscope/hopscope/inference/events/subject"

// The state of a flow: its latency as of a hop, its path, how long it stays, and the usual additions of its hops.

func codeBusy(c *subject.Coder, b *busy) {
	codeSeries(c, &b.series)
	subject.Number(c, &b.way)
	subject.Number(c, &b.changes)
	subject.Number(c, &b.astray)
	subject.Number(c, &b.blank)
	subject.Number(c, &b.stays)
	subject.Number(c, &b.learnt)
	c.Check("count of windows", b.blank <= blankFor && b.stays <= stayMost && b.learnt <= usualWindows)
	subject.List(c, &b.usual, func(s *share) {
		c.Float(&s.p50)
		c.Float(&s.p99)
		c.Check("latency", s.p50 >= 0 && s.p99 >= 0)
	})
	c.Check("hops of a flow", len(b.usual) <= subject.MostHops)
}
