package otlp

import "github.com/hopscope/hopscope/decode"

// counters are an interface's counts of packets, errors and discards, each in metrics of their own. Errors and
// discards only have a meaning beside the packets of their direction, so that they wait for these.
type counters struct {
	waiting decode.Counters // errors and discards since packets came last
	ways    [2]way          // in and out
	fell    uint64          // request in which a counter fell
}

// way is one direction of an interface. Times are of the receiver, and 0 where none came.
type way struct {
	packets int64  // when a number of packets came last
	risen   uint64 // request that said last by how much it rose
	total   int64  // when discards of all reasons came last
}

// recent reports whether points that arrived last at some time are still expected.
func (d *Decoder) recent(at int64) bool { return at != 0 && d.time-at < int64(idle) }

// counted makes a report of an interface's increments since the previous point. Errors and discards of an interface
// whose packets no metric counts are drops.
func (d *Decoder) counted(rule *Rule, g *growth, at *place) {
	which := rule.Statistic - InPackets // as in Counters.All
	packets, discards := rule.Statistic <= OutPackets, rule.Statistic >= InDiscards
	if at.port == nil {
		d.drops(rule, g, at)
		return
	}
	port := at.port
	w := &port.ways[which&1]
	part := discards && rule.Part && d.recent(w.total)
	switch {
	case packets:
		w.packets = d.time
	case discards && !rule.Part:
		w.total = d.time
	}
	if !packets && !part && !d.recent(w.packets) {
		d.drops(rule, g, at)
		return
	}
	r := d.report(decode.KindCounters, at)
	rise, ok := d.rise(rule, g, port)
	if !ok || part {
		return
	}
	c := decode.Counters{Has: 1 << which, Interface: port.Index}
	*c.All()[which] = rise
	requests := d.requests
	switch {
	case packets:
		w.risen = requests
		port.release(&c, which)
	case w.risen != requests:
		port.waiting.Add(&c)
		return
	}
	r.AddRare().Counters = c
}

// release adds to the packets of a direction the errors and discards that waited for them.
func (x *counters) release(c *decode.Counters, which Statistic) {
	to := c.All()
	for i, n := range x.waiting.All() {
		if has := decode.CounterField(1) << i; x.waiting.Has&has != 0 && Statistic(i)&1 == which {
			c.Has |= has
			*to[i], *n = *n, 0
			x.waiting.Has &^= has
		}
	}
}

// rise is the increment of an interface's counter since its previous point, if that is known. It is unknown if a
// counter of the interface fell in the same request, that is, was set to zero. So it is if the rise exceeds the
// capacity of the line, or the exact range of float64.
func (d *Decoder) rise(rule *Rule, g *growth, port *port) (n uint64, ok bool) {
	least := 84.0 // least bytes of a packet on a line, with preamble and gap
	if rule.Statistic == InOctets || rule.Statistic == Octets {
		least = 1
	}
	const (
		exact   = 1 << 53 // values of points are float64
		slowest = 1e6     // bit/s; less is in Mbit/s, by a metric that names the wrong unit
	)
	if g.fell {
		port.fell, port.waiting = d.requests, decode.Counters{}
	}
	if !g.known || port.fell == d.requests {
		return 0, false
	}
	most := float64(exact)
	if port.Speed >= slowest && g.since != 0 { // for twice as long and a second: speeds and times are rounded
		length := float64(d.p.time-min(g.since, d.p.time)) / 1e9
		most = min(most, port.Speed/8/least*(2*length+1)+1)
	}
	rise := rule.scale(g.n)
	return whole64(rise), rise <= most
}

// received makes a report of the octets that an interface received since the previous point, with its utilisation if
// its speed is known.
func (d *Decoder) received(rule *Rule, g *growth, at *place) {
	r := d.report(decode.KindCounters, at)
	if at.port == nil {
		return
	}
	n, ok := d.rise(rule, g, at.port)
	if !ok {
		return
	}
	c := &r.AddRare().Counters
	*c = decode.Counters{Has: decode.CountInOctets, Interface: at.port.Index, InOctets: n}
	if used, ok := d.used(rule, float64(n), g.since, at.port); ok {
		c.Has |= decode.CountRxUtilization
		c.RxUtilization = uint16(used)
	}
}
