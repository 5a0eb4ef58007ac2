package control

import (
	"cmp"
	"fmt"
	"slices"
)

func (a Entry) compare(b Entry) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Key, b.Key))
}

// begin makes a plan the target.
func (c *Controller) begin(p *Plan) {
	if c.first == 0 {
		c.first = p.Epoch
	}
	from := c.target
	c.target, c.settled, c.trial = p, false, Device{}
	if c.refusal.plan != nil && same(c.refusal.plan, p) {
		c.trial = c.refusal.at
	}
	c.last = max(c.last, p.Epoch)
	c.known = append(c.known, p)
	c.counts.Plans++
	for k := range c.devices {
		if d := &c.devices[k]; d.failed != "" {
			d.retry, d.checked = true, 0
		}
	}
	on, off, links := c.difference(from, p)
	c.record(Record{What: Planned, Epoch: p.Epoch, Count: len(p.Probes), On: on, Off: off, Left: p.Stats.LeftOut, Why: p.Why})
	if c.change.to == 0 && c.change.from != 0 {
		links = union(c.change.links, links)
	} else {
		c.change.from = c.now
	}
	c.change.links, c.change.to = links, 0
}

// settle notes that every device that is waited for has exactly the target. A plan is in force once an agent has
// confirmed it.
func (c *Controller) settle() {
	if !c.steady() {
		c.settled = false
		return
	}
	defer c.forget()
	if !c.settled {
		c.settled = true
		if c.change.from != 0 && c.change.to == 0 {
			c.change.to = c.lastTick + c.cfg.Cycle
		}
	}
	if c.target != nil && c.inForce != c.target && c.confirmed() {
		if c.inForce != nil && c.inForce != c.target && !same(c.inForce, c.target) {
			c.before = c.inForce
		}
		c.inForce = c.target
		if c.refusal.plan != nil && same(c.refusal.plan, c.target) {
			c.refusal = refusal{}
		}
		c.record(Record{What: Settled, Epoch: c.target.Epoch})
	}
}

// confirmed reports whether an agent has confirmed the target.
func (c *Controller) confirmed() bool {
	return slices.ContainsFunc(c.devices, func(d device) bool {
		return d.known && !d.foreign && d.inForce == c.target.Epoch
	})
}

// forget drops plans that no device has, and devices that are gone and hold nothing of this controller.
func (c *Controller) forget() {
	c.known = slices.DeleteFunc(c.known, func(p *Plan) bool {
		return p != c.target && p != c.inForce && !slices.ContainsFunc(c.devices, func(d device) bool {
			return d.Kind == Agent && p.Epoch >= d.inForce && p.Epoch <= d.mayHave
		})
	})
	if c.target != nil && (c.target.Network != c.net || !c.whole(c.target)) {
		return // a plan that is on its way to another one may still have probes of a device that leaves
	}
	gone := func(d device) bool {
		return d.leaving && (!d.up || d.Kind == Agent || d.known && d.waits == nothing && len(d.have) == 0)
	}
	if slices.ContainsFunc(c.devices, gone) {
		c.devices = slices.DeleteFunc(slices.Clone(c.devices), gone)
	}
}

// steady reports whether nothing is left to do at any device that is waited for.
func (c *Controller) steady() bool { return c.none(&c.unsteadyAt, (*Controller).unsteady) }

// none reports whether what is asked is so of no device. The one of which it was so last is asked first, since it mostly
// still is.
func (c *Controller) none(last *int, is func(*Controller, *device) bool) bool {
	if *last < len(c.devices) && is(c, &c.devices[*last]) {
		return false
	}
	for k := range c.devices {
		if is(c, &c.devices[k]) {
			*last = k
			return false
		}
	}
	return true
}

func (c *Controller) unsteady(d *device) bool {
	switch {
	case !d.heard && c.patient():
		return true
	case !d.live():
		return false
	case !d.known:
		return true
	case d.Kind == Agent:
		return d.waits != nothing || c.target != nil && d.inForce != c.target.Epoch && d.mayHave <= c.target.Epoch
	}
	return !d.clean && !(d.surplus && d.made) || d.checked != c.version || d.waits > reading
}

// drive asks devices for what is missing. It compares the present state with the wanted one, and ignores history. Where
// only the state of one device has changed, it looks at no other, except that agents wait for the last switch.
func (c *Controller) drive() {
	if c.deposedBy != "" || c.held != "" {
		c.waitsGrace = false
		return
	}
	k := c.keeping()
	if !k.equal(&c.kept) {
		c.kept, c.only = k, -1
		c.version++
	}
	c.driveAll(&k)
	if c.trial.Name != "" && c.tried() {
		c.trial, c.only = Device{}, -1
		c.driveAll(&k)
	}
	if c.made() {
		agents := c.devices
		if c.only >= 0 && agents[c.only].Kind == Agent {
			agents = agents[c.only : c.only+1]
		}
		for i := range agents {
			d := &agents[i]
			if d.Kind == Switch {
				break // agents come first
			}
			if d.ready() && d.waits == nothing && d.inForce < c.target.Epoch && (c.trial.Name == "" || c.trial == d.Device) {
				c.send(d)
			}
		}
	}
	c.settle()
}

// driveAll drives the device of which alone something has changed, or all of them.
func (c *Controller) driveAll(k *keep) {
	if c.only >= 0 {
		c.driveDevice(&c.devices[c.only], k)
		return
	}
	c.waitsGrace = false
	for i := range c.devices {
		c.driveDevice(&c.devices[i], k)
	}
}

// tried reports whether the device that refused a plan like the target has taken it now, or is not waited for.
func (c *Controller) tried() bool {
	d := c.find(c.trial)
	switch {
	case d == nil || !d.live():
		return true
	case d.Kind == Agent:
		return d.known && d.inForce == c.target.Epoch
	}
	return d.known && d.made && d.checked == c.version
}

func (c *Controller) driveDevice(d *device, k *keep) {
	switch {
	case d.awaits():
		c.load(d)
	case !d.up || !d.live() && !d.retry || d.waits != nothing:
	case !d.known:
		c.ask(d)
	case d.Kind == Switch:
		c.driveSwitch(d, k)
	}
}

// mostLoads is how often a program is loaded into a switch that does not run it afterwards.
const mostLoads = 2

// awaits reports whether a switch waits to be loaded with its program.
func (d *device) awaits() bool {
	return d.Kind == Switch && !d.up && !d.leaving && d.program != "" && d.mayLoad && d.loads < mostLoads
}

// load loads a switch with its program, unless that has to wait.
func (c *Controller) load(d *device) {
	switch {
	case d.waits != nothing || c.dry || c.paused:
		return
	case c.cfg.Approve && !d.approved:
		if !d.announced {
			d.announced = true
			c.record(Record{What: Waiting, Device: d.String(), Why: "its program is to be loaded, which empties its tables: " + d.program})
		}
		return
	}
	c.request++
	d.loads++
	c.wait(d, loading, nil)
	c.record(Record{What: Pushed, Device: d.String(), Request: d.request, Why: "its program, which empties its tables: " + d.program})
	c.out = append(c.out, Load{d.request, d.Device})
}

// keep holds what no switch may lose.
type keep struct {
	plans   []*Plan  // of which agents may send probes, and the target
	foreign []uint32 // epochs that agents have from an earlier life: their entries are unknown
	all     bool     // an agent may have anything
}

// keeping collects from the states of agents what no switch may lose.
func (c *Controller) keeping() (k keep) {
	if c.target != nil {
		k.plans = append(k.plans, c.target)
	}
	// Entries of an earlier life stay until a plan of this one is in force, because an unknown agent may use them. But
	// they are removed where a table is full.
	k.all = c.inForce == nil && !c.tableFull
	var like *device // the agent before, of those that are known
	for i := range c.devices {
		d := &c.devices[i]
		if d.Kind == Switch {
			break // agents come first
		}
		switch {
		case !d.heard:
			k.all = k.all || c.patient() // it may be on its way here
			continue
		case !d.up:
			continue
		case !d.known:
			k.all = k.all || d.live()
			continue
		case c.target != nil && !d.foreign && d.inForce == c.target.Epoch && d.mayHave <= c.target.Epoch:
			continue // it has the target and nothing else
		case like != nil && like.inForce == d.inForce && like.mayHave == d.mayHave && like.foreign == d.foreign:
			continue // its entries are there already
		}
		like = d
		ours := d.inForce == 0
		for _, p := range c.known {
			if d.foreign && p.Epoch == d.inForce || p.Epoch < d.inForce || p.Epoch > max(d.mayHave, d.inForce) {
				continue
			}
			ours = ours || p.Epoch == d.inForce
			if !slices.Contains(k.plans, p) {
				k.plans = append(k.plans, p)
			}
		}
		if !ours && !slices.Contains(k.foreign, d.inForce) {
			k.foreign = append(k.foreign, d.inForce)
		}
	}
	return k
}

func (k *keep) equal(o *keep) bool {
	return k.all == o.all && slices.Equal(k.plans, o.plans) && slices.Equal(k.foreign, o.foreign)
}

// needs reports whether an entry that no plan of this controller wants has to stay.
func (k *keep) needs(e Entry) bool {
	return k.all || slices.Contains(k.foreign, e.Epoch) || len(k.foreign) > 0 && e.Epoch == 0
}

// driveSwitch removes unneeded entries from a switch, and then adds missing ones. Removals make room.
func (c *Controller) driveSwitch(d *device, k *keep) {
	if d.checked == c.version && d.clean {
		return
	}
	var missing, extra []Entry
	var want []Entry
	for n, p := range k.plans {
		w := p.entriesOf(d.Name)
		if n == 0 {
			want = w
		} else {
			want = with(w, want) // the target comes last, and its values count
		}
	}
	i := 0
	for _, w := range want {
		for i < len(d.have) && d.have[i].compare(w) < 0 {
			if !k.needs(d.have[i]) {
				extra = append(extra, d.have[i])
			}
			i++
		}
		if i < len(d.have) && d.have[i].compare(w) == 0 {
			if d.have[i].Value != w.Value {
				missing = append(missing, w)
			}
			i++
			continue
		}
		missing = append(missing, w)
	}
	for _, h := range d.have[i:] {
		if !k.needs(h) {
			extra = append(extra, h)
		}
	}
	d.checked, d.clean, d.made = c.version, len(missing)+len(extra) == 0, len(missing) == 0
	if d.clean {
		d.fruitless = 0
	}
	switch {
	case d.fruitless >= c.cfg.Attempts: // it answers reads, but neither carries out nor refuses changes
		c.fail(d, fmt.Sprintf("%s did not answer %d changes in a row, and holds %d entries too few and %d too many", d.Device, d.fruitless, len(missing), len(extra)))
		d.fruitless = 0
	case len(extra) > 0 && c.now >= c.graceUntil && (!d.surplus || d.retry):
		c.request++
		c.wait(d, removing, extra)
		c.recordEntries(Record{What: Pushed, Device: d.String(), Request: d.request, Count: len(extra), Why: "out of it", Entries: changes(Delete, extra)})
		c.out = append(c.out, Remove{d.request, d.Device, extra})
	case len(missing) > 0 && c.trial.Name != "" && c.trial.Kind == Switch && c.trial != d.Device:
		// nothing changes before the one that refused it has taken it
	case len(missing) > 0:
		c.request++
		c.wait(d, installing, missing)
		c.recordEntries(Record{What: Pushed, Device: d.String(), Request: d.request, Epoch: missing[len(missing)-1].Epoch, Count: len(missing), Why: "into it", Entries: d.writes(missing)})
		c.out = append(c.out, Install{d.request, d.Device, missing})
	case len(extra) > 0 && !d.surplus:
		c.waitsGrace = true
	case len(extra) == 0 && d.failed != "":
		d.failed, d.surplus, d.retry, d.refusals = "", false, false, 0
	}
}

// changes are those that do one thing to entries.
func changes(op Op, list []Entry) []Change {
	out := make([]Change, len(list))
	for k, e := range list {
		out[k] = Change{Op: op, Entry: e}
	}
	return out
}

// writes are the changes that entries are to a switch that holds what it does: of one key it holds one.
func (d *device) writes(list []Entry) []Change {
	there := make(map[string]bool, len(d.have))
	for _, e := range d.have {
		there[e.Key] = true
	}
	out := changes(Insert, list)
	for k := range out {
		if there[out[k].Key] {
			out[k].Op = Modify
		}
	}
	return out
}

// patient reports whether the controller still waits for devices that have not reported since its start. In a running
// network they connect one by one.
func (c *Controller) patient() bool { return c.counts.Cycles < uint64(c.cfg.Attempts) }

// made reports whether every switch that is waited for has what the target needs.
func (c *Controller) made() bool {
	return c.target != nil && c.none(&c.unmadeAt, (*Controller).unmade)
}

func (c *Controller) unmade(d *device) bool {
	return d.Kind == Switch && (d.live() && !(d.known && d.made && d.checked == c.version) || !d.heard && c.patient())
}

// ask reads a device.
func (c *Controller) ask(d *device) {
	c.request++
	c.wait(d, reading, nil)
	c.record(Record{What: Asked, Device: d.String(), Request: d.request})
	c.out = append(c.out, Read{d.request, d.Device})
}

// send sends the target to an agent.
func (c *Controller) send(d *device) {
	c.request++
	c.wait(d, sending, nil)
	d.had = d.mayHave
	d.sent, d.mayHave = c.target, max(d.mayHave, c.target.Epoch)
	c.push(d, c.target.Epoch, len(c.target.Probes), "")
	c.out = append(c.out, SendPlan{d.request, d.Device, c.target})
}

func (c *Controller) wait(d *device, o operation, batch []Entry) {
	d.waits, d.request, d.deadline, d.batch = o, c.request, c.now+c.cfg.Timeout, batch
}

func (c *Controller) push(d *device, epoch uint32, count int, why string) {
	c.record(Record{What: Pushed, Device: d.String(), Request: d.request, Epoch: epoch, Count: count, Why: why})
}

// entriesOf returns the entries that a switch has to hold for a plan, sorted.
func (p *Plan) entriesOf(sw string) []Entry {
	if p.Network.Entries == nil || !p.members[sw] {
		return nil
	}
	list, ok := p.entries[sw]
	if !ok {
		list = slices.Clone(p.Network.Entries(p, sw))
		slices.SortStableFunc(list, Entry.compare)
		list = slices.CompactFunc(list, func(a, b Entry) bool { return a.compare(b) == 0 })
		p.entries[sw] = list
	}
	return list
}

// with merges sorted entries. Those of more count where both have one.
func with(list, more []Entry) []Entry {
	out := make([]Entry, 0, len(list)+len(more))
	for _, e := range list {
		for len(more) > 0 && more[0].compare(e) < 0 {
			out, more = append(out, more[0]), more[1:]
		}
		if len(more) > 0 && more[0].compare(e) == 0 {
			e, more = more[0], more[1:]
		}
		out = append(out, e)
	}
	return append(out, more...)
}

// without takes sorted entries out of others.
func without(list, less []Entry) []Entry {
	out := make([]Entry, 0, len(list))
	for _, e := range list {
		for len(less) > 0 && less[0].compare(e) < 0 {
			less = less[1:]
		}
		if len(less) == 0 || less[0].compare(e) != 0 {
			out = append(out, e)
		}
	}
	return out
}
