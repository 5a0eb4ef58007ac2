package events

// What is remembered of a flow: its latency as of a hop, its path, how long it stays, and what its hops usually add.

func (c *coder) busy(b *busy) {
	c.series(&b.series)
	number(c, &b.way)
	number(c, &b.changes)
	number(c, &b.astray)
	number(c, &b.blank)
	number(c, &b.stays)
	number(c, &b.learnt)
	c.Check("count of windows", b.blank <= blankFor && b.stays <= stayMost && b.learnt <= usualWindows)
	list(c, &b.usual, func(s *share) {
		c.float(&s.p50)
		c.float(&s.p99)
		c.Check("latency", s.p50 >= 0 && s.p99 >= 0)
	})
	c.Check("hops of a flow", len(b.usual) <= mostHops)
}
