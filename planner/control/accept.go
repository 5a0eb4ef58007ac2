package control

import "math"

// Accept decides whether a report of an agent's probe belongs to this cycle, by the epoch in the packet. In one cycle,
// reports of one epoch are accepted from an agent and no others. Where a plan begins with the cycle it is that plan's
// epoch, and reports of the plan before are late. The agent name "" stands for an unknown agent: its reports are
// accepted if every agent that is up has that epoch.
func (c *Controller) Accept(agent string, epoch uint32) Verdict {
	expect, d := uint32(0), (*device)(nil)
	if agent == "" {
		expect = c.common()
	} else if d = c.find(Device{Agent, agent}); d != nil {
		expect = d.expect
		if epoch >= d.inForce && epoch <= d.mayHave {
			d.seen = max(d.seen, epoch)
		}
	}
	switch {
	case epoch == expect && epoch != 0:
		c.counts.Accepted++
		return Fits
	case epoch < expect:
		c.counts.Late++
		return Late
	}
	c.counts.Early++
	return Early
}

// common is the epoch that all agents have that are up, or 0.
func (c *Controller) common() uint32 {
	epoch := uint32(math.MaxUint32)
	for k := range c.devices {
		d := &c.devices[k]
		switch {
		case d.Kind != Agent || !d.up:
		case epoch == math.MaxUint32:
			epoch = d.expect
		case epoch != d.expect:
			return 0
		}
	}
	if epoch == math.MaxUint32 {
		return 0
	}
	return epoch
}

// expectNow decides at the beginning of a cycle which epoch an agent's reports are to have until its end.
func (d *device) expectNow(target *Plan, began bool) {
	seen := d.seen
	d.seen = 0
	switch {
	case target == nil || !d.known || d.inForce == target.Epoch:
		d.expect = d.inForce
	case d.mayHave > d.inForce && seen != 0: // it was sent another one and has not answered, but its packets show it
		d.expect = seen
	case d.mayHave > d.inForce:
		d.expect = d.mayHave
	case began && d.live():
		d.expect = target.Epoch
	default:
		d.expect = d.inForce
	}
}

// Changing returns the links of the last change-over and the time span in which it may distort their figures. During a
// change-over the span ends at now. A change-over that ended more than a cycle ago is not returned.
func (c *Controller) Changing(now int64) (links []string, from, to int64) {
	x := &c.change
	switch {
	case x.from == 0 && x.links == nil:
		return nil, 0, 0
	case x.to == 0:
		return x.links, x.from, max(now, x.from)
	case now > x.to+c.cfg.Cycle:
		return nil, 0, 0
	}
	return x.links, x.from, x.to
}
