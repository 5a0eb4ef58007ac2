package control

import (
	"fmt"
	"math"
	"slices"
)

// networkChanged adopts another network. The next cycle plans for it.
func (c *Controller) networkChanged(e NetworkChanged) {
	if err := e.Network.validate(); err != nil {
		c.planFailed(nil, err.Error())
		return
	}
	c.net, c.broken = e.Network, e.Broken
	c.adopt(e.Network)
	c.record(Record{What: NetChanged, Count: len(e.Network.Probes), Why: e.Network.Name})
}

// up takes a device as reachable and unknown.
func (c *Controller) up(x Device) {
	d := c.find(x)
	if d == nil {
		return
	}
	d.lose()
	d.up, d.heard, d.silent, d.failed, d.surplus, d.attempts, d.refusals, d.fruitless = true, true, false, "", false, 0, 0, 0
	d.program, d.approved, d.announced, d.loads = "", false, false, 0
	c.record(Record{What: WentUp, Device: d.String()})
}

func (c *Controller) down(e Down) {
	d := c.find(e.Device)
	if d == nil || d.heard && !d.up {
		return
	}
	d.lose()
	d.up, d.heard = false, true
	c.record(Record{What: WentDown, Device: d.String(), Why: e.Why})
}

// lose forgets the pending request and the state of the device.
func (d *device) lose() {
	d.waits, d.batch, d.sent, d.known, d.retry = nothing, nil, nil, false, false
	d.have, d.journaled, d.checked, d.clean, d.made = nil, false, 0, false, false
}

// answered finds the device that answers, and forgets that it was waited for.
func (c *Controller) answered(x Device, r Request, record Record) *device {
	d := c.find(x)
	if d == nil || d.waits == nothing || d.request != r || c.deposedBy != "" {
		c.counts.Stale++
		return nil
	}
	record.What, record.Device, record.Request = Answered, d.String(), r
	if record.Found == nil {
		c.recordEntries(record)
	}
	d.attempts, d.silent, d.checked = 0, false, 0
	if d.Kind == Switch {
		c.only = c.at(x)
	}
	return d
}

func (c *Controller) acked(e Acked) {
	d := c.answered(e.Device, e.Request, Record{})
	if d == nil {
		return
	}
	switch d.waits {
	case sending:
		d.inForce, d.foreign = d.sent.Epoch, false
		d.failed, d.retry, d.refusals = "", false, 0
		c.graceUntil = c.now + c.cfg.Grace
		c.only = c.at(e.Device)
	case installing:
		d.have = with(d.have, d.batch)
		c.counts.Installed += uint64(len(d.batch))
	case removing:
		d.have = without(d.have, d.batch)
		c.counts.Removed += uint64(len(d.batch))
	case reading: // an answer to another request
		d.known = false
	}
	d.waits, d.batch, d.sent = nothing, nil, nil
}

func (c *Controller) refused(e Refused) {
	d := c.answered(e.Device, e.Request, Record{Why: "refused: " + e.Why, Entries: e.Did})
	if d == nil {
		return
	}
	did, batch, sent := d.waits, d.batch, d.sent
	d.waits, d.batch, d.sent = nothing, nil, nil
	why := fmt.Sprintf("%s refused: %s", d.Device, e.Why)
	if did == sending {
		d.mayHave = min(d.mayHave, sent.Epoch-1) // it is not in force there, whatever became of earlier ones
		if sent == c.target && !sent.rollback && c.inForce != nil && c.inForce != sent && d.failed == "" {
			c.giveUp(why, d.Device)
			return
		}
	}
	if did == loading {
		d.program = why
		return
	}
	if d.Kind == Switch {
		d.known = false // some of it may have been done
		c.did(d, e.Did)
		if did == installing && c.inForce == nil && !c.tableFull {
			c.tableFull = true // entries of an earlier life may be in the way
			return
		}
		if did == installing && (d.failed == "" || d.surplus) && c.mayRevert(rested(batch, e.Did)) {
			c.giveUp(why, d.Device)
			return
		}
		if did == installing && !c.wants(d, batch, e.Did) {
			return // they were of a plan that was given up meanwhile
		}
	}
	c.fail(d, why)
	d.surplus = did == removing
}

// wants reports whether a plan that counts still has an entry of a batch that a switch refused.
func (c *Controller) wants(d *device, batch []Entry, did []Change) bool {
	k := c.keeping()
	wanted := func(e Entry) bool {
		return slices.ContainsFunc(k.plans, func(p *Plan) bool {
			_, ok := slices.BinarySearchFunc(p.entriesOf(d.Name), e, Entry.compare)
			return ok
		})
	}
	if did == nil {
		return slices.ContainsFunc(batch, wanted)
	}
	return slices.ContainsFunc(did, func(x Change) bool { return x.Why != "" && !x.Skipped && wanted(x.Entry) })
}

// rested returns the entries of a batch that can be a reason to give up the plan as a whole. These are the refused
// entries that belong to this plan alone, or the whole batch if single outcomes are unknown.
func rested(batch []Entry, did []Change) (list []Entry) {
	if did == nil {
		return batch
	}
	for _, x := range did {
		if x.Why != "" && !x.Skipped && x.Epoch != 0 {
			list = append(list, x.Entry)
		}
	}
	return list
}

// did takes over what became of single entries of a switch.
func (c *Controller) did(d *device, list []Change) {
	for _, x := range list {
		switch one := []Entry{x.Entry}; {
		case x.Why != "":
		case x.Op == Delete:
			d.have = without(d.have, one)
			c.counts.Removed++
		default:
			d.have = with(d.have, one)
			if x.Op != Hold { // it was there
				c.counts.Installed++
			}
		}
	}
}

// fail goes on without a device, and tries it again later and later.
func (c *Controller) fail(d *device, why string) {
	d.failed, d.surplus, d.retry, d.retryAt = why, false, false, c.later(d.refusals)
	d.refusals++
}

// later is the cycle in which something is tried again that was refused several times before.
func (c *Controller) later(times int) uint64 {
	return c.counts.Cycles + uint64(c.cfg.RetryAfter)<<min(times, 6)
}

// program notes that a switch does not run the expected program, or that it does.
func (c *Controller) program(e Program) {
	d := c.find(e.Device)
	if d == nil || d.program == e.Why && d.mayLoad == e.Load {
		return
	}
	if d.program = e.Why; d.waits == loading && e.Why != "" {
		return
	}
	d.mayLoad = e.Load
}

// mayRevert reports whether the target can be given up because a switch refuses entries of it. This needs that no agent
// was sent the target, and that there is a plan in force to return to.
func (c *Controller) mayRevert(batch []Entry) bool {
	if c.target == nil || c.target == c.inForce || !slices.ContainsFunc(batch, func(e Entry) bool { return e.Epoch == c.target.Epoch || e.Epoch == 0 }) {
		return false
	}
	for k := range c.devices {
		d := &c.devices[k]
		if d.Kind != Agent {
			continue
		}
		if d.mayHave >= c.target.Epoch || c.inForce == nil && d.live() && d.inForce == 0 {
			return false
		}
	}
	return true
}

// ahead reports whether an agent may have a later plan than one of an epoch, or another one of that epoch, so that it would not take that.
func (c *Controller) ahead(epoch uint32) bool {
	return slices.ContainsFunc(c.devices, func(d device) bool {
		return d.known && (max(d.inForce, d.mayHave) > epoch || d.foreign && d.inForce == epoch)
	})
}

// giveUp goes back to what is in force. Where agents may have the target already, that needs a new epoch. Where it is
// such an epoch that is refused, agents keep what each of them has, and a later cycle tries again.
func (c *Controller) giveUp(why string, at Device) {
	bad := c.target
	c.planFailed(bad, why)
	c.refusal.at = at
	moved := false
	for k := range c.devices {
		moved = moved || c.devices[k].Kind == Agent && c.devices[k].mayHave >= bad.Epoch
	}
	if moved && !bad.rollback {
		p := c.renumber(c.inForce, fmt.Sprintf("back to the plan of epoch %d: %s", c.inForce.Epoch, why))
		p.rollback = true
		c.begin(p)
		return
	}
	c.target, c.trial = c.inForce, Device{}
	for k := range c.devices {
		if d := &c.devices[k]; d.Kind == Agent && d.expect == bad.Epoch {
			d.expect = d.inForce // nothing of the other epoch was ever sent
		}
	}
}

// planFailed remembers a plan that was refused.
func (c *Controller) planFailed(p *Plan, why string) {
	c.counts.Refused++
	times := 0
	if old := c.refusal.plan; old != nil && p != nil && same(old, p) {
		times = c.refusal.times + 1
	}
	c.refusal = refusal{plan: p, why: why, until: c.later(times), times: times}
	r := Record{What: PlanFailed, Why: why}
	if p != nil {
		r.Epoch = p.Epoch
	}
	c.record(r)
}

func (c *Controller) readBack(e ReadBack) {
	found := len(e.Entries)
	d := c.answered(e.Device, e.Request, Record{Found: &found})
	if d == nil {
		return
	}
	was := d.waits
	d.waits, d.batch, d.sent = nothing, nil, nil
	record := Record{What: Answered, Device: d.String(), Request: e.Request}
	if was != reading || d.Kind == Agent {
		record.Epoch = e.Epoch
		c.record(record)
	}
	if was != reading {
		d.known = false
		return
	}
	wasKnown := d.known
	d.known = true
	if d.Kind == Switch {
		have := slices.Clone(e.Entries)
		slices.SortFunc(have, Entry.compare)
		have = slices.CompactFunc(have, func(a, b Entry) bool { return a.compare(b) == 0 })
		if wasKnown && !slices.Equal(have, d.have) {
			c.counts.Repaired++
		}
		record.Count, record.Found = len(have), &found
		if !slices.Equal(have, d.have) || !d.journaled {
			for _, x := range have {
				record.Entries = append(record.Entries, Change{Op: Hold, Entry: x})
			}
		}
		c.recordEntries(record)
		d.have, d.journaled = have, true
		for _, x := range have {
			if c.credible(x.Epoch) {
				c.last, c.highestHeld = max(c.last, x.Epoch), max(c.highestHeld, x.Epoch)
			}
		}
		return
	}
	if !c.credible(e.Epoch) { // it would refuse every plan to come, and must not drag the others along
		d.known = false
		c.fail(d, fmt.Sprintf("%s says that epoch %d is in force, which no controller has come to: take its plan away and start it again", d.Device, e.Epoch))
		return
	}
	if d.met && e.Epoch > max(d.mayHave, d.inForce) {
		c.depose(fmt.Sprintf("%s has the plan of epoch %d, which this controller never sent", d.Device, e.Epoch))
		return
	}
	d.foreign = e.Epoch != 0 && (e.Epoch < c.first || e.Epoch > d.mayHave)
	d.met, d.inForce = true, e.Epoch
	c.last, c.highestHeld = max(c.last, e.Epoch), max(c.highestHeld, e.Epoch)
	if d.expect == 0 && c.counts.Cycles == 0 {
		d.expect = e.Epoch // nothing was accepted before the first cycle
	}
	if c.target != nil && (d.inForce > c.target.Epoch || d.foreign && d.inForce == c.target.Epoch) {
		c.begin(c.renumber(c.target, fmt.Sprintf("%s has another plan, of epoch %d", d.Device, d.inForce)))
	}
}

// mostEpoch is more than a controller comes to that begins a plan a second for 68 years.
const mostEpoch = math.MaxInt32

// credible reports whether a controller can have come to an epoch. After one of which that is not so numbers would soon run out,
// and begin again at the one that stands for no plan.
func (c *Controller) credible(epoch uint32) bool { return epoch <= mostEpoch }

// bound limits the last epoch of a journal by the highest epoch that a device holds. An earlier life was at most an
// hour of cycles ahead of all devices.
func (c *Controller) bound() {
	const hour = 3600 * 1_000_000_000
	c.last = uint32(min(uint64(c.last), uint64(c.highestHeld)+uint64(hour/c.cfg.Cycle)))
}

// depose leaves everything as it is.
func (c *Controller) depose(why string) {
	if c.deposedBy != "" {
		return
	}
	c.deposedBy = why
	c.record(Record{What: Deposition, Why: why})
	for k := range c.devices {
		d := &c.devices[k]
		d.waits, d.batch, d.sent = nothing, nil, nil
	}
}

// hold reverts requests that have not left: the devices hold what they held before.
func (c *Controller) hold(e Held) {
	c.held = e.Why
	for k := range c.devices {
		d := &c.devices[k]
		if d.waits == nothing || !slices.Contains(e.Unsent, d.request) {
			continue
		}
		if d.waits == sending {
			d.mayHave = d.had
			if d.expect > d.mayHave {
				d.expect = d.inForce
			}
		}
		d.waits, d.batch, d.sent, d.checked = nothing, nil, nil, 0
	}
}

func (c *Controller) command(e Command) {
	why := string(e.Verb)
	if e.Author != "" {
		why += " by " + e.Author
	}
	if err := c.obey(e); err != nil {
		why += ": " + err.Error()
	}
	c.record(Record{What: Commanded, Epoch: e.Epoch, Why: why})
}

// obey carries out a command, or returns why not.
func (c *Controller) obey(e Command) error {
	switch e.Verb {
	case Pause:
		c.paused = true
	case Resume:
		c.paused = false
		for k := range c.devices {
			c.devices[k].loads = 0
		}
		if c.deposedBy != "" {
			c.reset()
		}
	case DryRun:
		c.dry = true
	case WetRun:
		c.dry, c.would = false, nil
	case Reject:
		if c.pending == nil {
			return fmt.Errorf("no plan waits")
		}
		c.planFailed(c.pending, "rejected")
		c.pending = nil
	case Approve:
		return c.approve(e.Epoch)
	case Rollback:
		return c.rollback()
	default:
		return fmt.Errorf("there is no such command")
	}
	return nil
}

func (c *Controller) approve(epoch uint32) error {
	p := c.pending
	loads := 0
	if epoch == 0 && c.deposedBy == "" && !c.dry {
		for k := range c.devices {
			if d := &c.devices[k]; d.awaits() && !d.approved {
				d.approved = true
				loads++
			}
		}
	}
	switch {
	case p == nil && loads > 0:
		return nil
	case p == nil:
		return fmt.Errorf("no plan waits")
	case epoch != 0 && epoch != p.Epoch:
		return fmt.Errorf("the plan that waits is of epoch %d", p.Epoch)
	case c.deposedBy != "":
		return fmt.Errorf("another controller is in charge")
	case c.dry:
		return fmt.Errorf("this is a dry run")
	case !c.settled:
		return fmt.Errorf("a change-over is under way")
	case p.Network != c.net:
		return fmt.Errorf("the network has changed since it was made")
	}
	c.pending = nil
	if p.Epoch < c.last {
		p = c.renumber(p, p.Why)
	}
	c.begin(p)
	return nil
}

func (c *Controller) rollback() error {
	p := c.before
	if c.target != c.inForce {
		p = c.inForce // the one under way is unwanted
	}
	switch {
	case c.deposedBy != "":
		return fmt.Errorf("another controller is in charge")
	case c.dry:
		return fmt.Errorf("this is a dry run")
	case p == nil:
		return fmt.Errorf("there is no plan before this one")
	case p.Network != c.net:
		return fmt.Errorf("the plan before is of another network")
	}
	p = c.renumber(p, fmt.Sprintf("rollback to the plan of epoch %d", p.Epoch))
	p.rollback = true
	c.paused, c.pending = true, nil
	c.begin(p)
	return nil
}

// reset forgets everything but the network, which devices are up, and what was ordered.
func (c *Controller) reset() {
	for k := range c.devices {
		d := &c.devices[k]
		c.devices[k] = device{Device: d.Device, up: d.up, heard: d.heard, leaving: d.leaving}
	}
	c.deposedBy, c.target, c.inForce, c.before, c.pending, c.known = "", nil, nil, nil, nil, nil
	c.tableFull, c.trial = false, Device{}
	c.first, c.settled, c.refusal, c.change = 0, false, refusal{}, change{}
}
