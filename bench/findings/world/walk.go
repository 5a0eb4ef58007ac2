package world

import (
	"math"
	"net/netip"
)

// Reasons of drops, as fabric-tna numbers them.
const (
	ttlExpired = 26
	noRoute    = 29
	queueFull  = 71
	denied     = 80
)

// occasion is the reason why a switch reports.
type occasion uint8

const (
	arrival occasion = iota // of a packet at its last switch, or at any with postcards
	entry                   // at its first one
	event                   // a drop
)

// walk moves one sampled packet through the network.
func (x *world) walk(f *flow, t float64) {
	n := x.net
	head := f.head
	head.ttl = 64
	first := n.ports[f.from].node
	if x.s.report.sources {
		x.packet = head.bare(x.packet[:0])
		x.send(first, t, entry, func(b []byte, seq uint32) []byte {
			return inner20(group20(b, 2, n.nodes[first].id, seq), tracked20|transit20, x.packet)
		})
	}
	if len(f.path) == 0 {
		x.drop(first, t, &head, record{node: n.nodes[first].id, in: n.ports[f.from].number}, noRoute)
		return
	}
	x.stack = x.stack[:0]
	cut, in := false, n.ports[f.from].number
	for k := 0; k < len(f.path); k++ {
		p := f.path[k]
		var ok bool
		if t, ok = x.hop(f, &head, p, t, in); !ok {
			return
		}
		if n.ports[p].peer < 0 {
			break
		}
		in = n.ports[n.ports[p].back].number
		// A loop returns the packet over the port for a few rounds, until it expires or gets out.
		for _, e := range x.atPort[p] {
			if e.verb != "loop" || !e.active(t) || e.port != p || n.ports[e.other].node != n.ports[f.to].node || float64(mix(f.hash^7)%1000) >= 1000*e.opt["share"] {
				continue
			}
			back := n.ports[p].back
			for round := 0.0; round < max(e.opt["rounds"], 1); round++ {
				if t, ok = x.hop(f, &head, back, t, in); !ok {
					return
				}
				if t, ok = x.hop(f, &head, p, t, n.ports[p].number); !ok {
					return
				}
			}
		}
	}
	if len(x.stack) > maxStack {
		x.stack, cut = x.stack[:maxStack], true
	}
	x.arrive(f, &head, t, cut)
}

// hop moves a packet through a node and its egress port. It returns false if the packet ends there.
func (x *world) hop(f *flow, head *header, p int, t float64, in uint32) (float64, bool) {
	n := x.net
	q := &n.ports[p]
	at := &n.nodes[q.node]
	hopRecord := record{node: at.id, in: in, out: q.number}
	if f.high {
		hopRecord.class = 1
	}
	latency := at.base + 60e-9*x.r.Float64()
	for _, e := range x.atNode[q.node] {
		if !e.active(t) {
			continue
		}
		switch e.verb {
		case "slow":
			latency += e.opt["by"] * (.9 + .2*x.r.Float64())
		case "swallow":
			if e.flow == f.name && x.r.Float64() < option(e, "rate", 1) {
				return t, false
			}
		case "deny":
			if float64(mix(f.hash^3)%1000) < 1000*e.opt["share"] {
				x.drop(q.node, t, head, hopRecord, denied)
				return t, false
			}
		}
	}
	if head.ttl--; head.ttl == 0 {
		x.drop(q.node, t, head, hopRecord, ttlExpired)
		return t, false
	}
	load, rate, high, delay, burst := q.own*q.swayed+q.flows, q.rate, x.s.traffic.high*q.flows, q.length, 0.0
	lose := 0.0
	for _, e := range x.atPort[p] {
		if !e.active(t) {
			continue
		}
		switch e.verb {
		case "down":
			x.drop(q.node, t, head, hopRecord, queueFull)
			return t, false
		case "load":
			load += e.opt["add"]
			high += e.opt["high"] * e.opt["add"]
		case "cut", "pfc":
			rate *= option(e, "to", .1)
		case "delay":
			delay += e.opt["by"]
		case "incast":
			burst += e.opt["bytes"]
		case "loss":
			lose = e.opt["rate"]
		}
	}
	for _, e := range x.atPort[p] { // errors that come with load
		if e.verb == "loss" && e.active(t) && e.opt["above"] > 0 && load < e.opt["above"] {
			lose = 0
		}
	}
	load += x.pressed(p, t)
	load, high = max(load, .001)*q.rate/rate, high*q.rate/rate
	full := x.s.shape.buffer * 8 / rate
	background := arrivals{load: load, mean: 650 * 8 / rate, batch: x.s.shape.burst}
	q.queue.advance(t, &background, full, x.r)
	if burst > 0 { // a burst came at the beginning of the interval, if it did not drain yet
		since := math.Mod(t-x.burstAt(p, t), 1e9)
		q.queue.work = max(q.queue.work, min(burst*8/rate, full)-since*(1-min(load, 1)))
	}
	size := 100 + 1400*x.r.Float64()
	service := size * 8 / rate
	waiting := q.queue.work
	if x.s.traffic.high > 0 || high > 0 { // two classes: the first one sees its own work, the other one all of it, and what overtakes it
		if f.high {
			background.load = min(high, load)
			q.high.advance(t, &background, full, x.r)
			waiting = q.high.work
		} else {
			waiting /= max(1-min(high, .98), .02)
		}
	}
	if waiting+service > full {
		x.drop(q.node, t, head, hopRecord, queueFull)
		return t, false
	}
	if lose > 0 && q.peer < 0 && x.r.Float64() < lose { // towards a host: before the last switch speaks of it
		return t, false
	}
	latency += waiting + service
	hopRecord.latency = uint32(min(latency*1e9, 4e9))
	hopRecord.queue = uint32(waiting * rate / 8)
	hopRecord.load = uint32(1e4 * min(max(load*(1+.02*x.r.NormFloat64()), 0), 1))
	hopRecord.ingress, hopRecord.egress = x.clock(q.node, t), x.clock(q.node, t+latency)
	x.spoil(p, &hopRecord, t)
	if x.s.report.format == "xd20" || x.s.report.format == "local05" {
		x.packet = head.bare(x.packet[:0])
		x.send(q.node, t+latency, arrival, func(b []byte, seq uint32) []byte {
			if x.s.report.format == "local05" {
				return local05(b, &hopRecord, seq, x.packet)
			}
			return report20(group20(b, 1, hopRecord.node, seq), tracked20, &hopRecord, -1, x.packet)
		})
	} else if len(x.stack) < 2*maxStack {
		x.stack = append(x.stack, hopRecord)
	}
	if lose > 0 && x.r.Float64() < lose {
		return t, false
	}
	return t + latency + delay, true
}

func option(f *fault, name string, otherwise float64) float64 {
	if v, ok := f.opt[name]; ok {
		return v
	}
	return otherwise
}

// burstAt is when the last burst of an incast began.
func (x *world) burstAt(p int, t float64) float64 {
	for _, e := range x.atPort[p] {
		if e.verb == "incast" && e.active(t) {
			if every := e.opt["every"]; every > 0 {
				return e.from + math.Floor((t-e.from)/every)*every
			}
			return t
		}
	}
	return t
}

// pressed is the load that pauses of a receiver behind the next node bring to a port.
func (x *world) pressed(p int, t float64) float64 {
	peer := x.net.ports[p].peer
	if peer < 0 {
		return 0
	}
	for _, list := range [][]int{x.net.nodes[peer].hosts, x.net.nodes[peer].ports} {
		for _, q := range list {
			for _, e := range x.atPort[q] {
				if e.verb == "pfc" && e.active(t) {
					x.changed[p] = true
					return e.opt["back"]
				}
			}
		}
	}
	return 0
}

// spoil changes the values that a node reports falsely.
func (x *world) spoil(p int, hopRecord *record, t float64) {
	for _, e := range x.atNode[x.net.ports[p].node] {
		if !e.active(t) {
			continue
		}
		switch e.verb {
		case "stuck":
			old, ok := x.stuckAt[p]
			if !ok {
				x.stuckAt[p], old = *hopRecord, *hopRecord
			}
			hopRecord.latency, hopRecord.queue, hopRecord.load = old.latency, old.queue, old.load
		case "lie":
			hopRecord.latency = uint32(min(float64(hopRecord.latency)*option(e, "times", 1000), 4e9))
		}
	}
}

// clock is the time of a node's clock, in ns.
func (x *world) clock(node int, t float64) uint64 {
	c := x.net.nodes[node].clock
	shown := t + c.offset + c.drift*(t+float64(x.s.quiet)*x.s.Window)
	for _, e := range x.atNode[node] {
		if e.verb == "clock" && t >= e.from && t < e.until {
			shown += e.opt["step"] + e.opt["drift"]*(t-e.from)
		}
	}
	return uint64(int64(start) + int64(shown*1e9))
}

// arrive makes the report of the last switch.
func (x *world) arrive(f *flow, head *header, t float64, cut bool) {
	n := x.net
	last := n.ports[f.to].node
	for _, e := range x.atNode[last] {
		if !e.active(t) {
			continue
		}
		switch e.verb {
		case "nat":
			head.src = netip.AddrFrom4([4]byte{192, 168, byte(f.hash), byte(f.hash >> 8)})
			head.srcPort = 1024 + uint16(f.hash>>16)%60000
			moved := *f
			moved.head = *head
			x.moved[moved.key()] = true
		case "ids":
			head.id = uint16(x.r.Uint32())
		case "sample":
			if e.opt["flows"] != 0 && float64(mix(f.hash^n.nodes[last].salt)%1e6)*e.opt["in"] >= 1e6 {
				return
			}
		}
	}
	switch x.s.report.format {
	case "int21":
		x.packet = head.stack21(x.packet[:0], x.stack, cut)
		x.send(last, t, arrival, func(b []byte, seq uint32) []byte {
			b = inner20(group20(b, 1, n.nodes[last].id, seq), tracked20, x.packet)
			return b
		})
	case "int10":
		own := x.stack[len(x.stack)-1]
		x.packet = head.stack10(x.packet[:0], x.stack[:len(x.stack)-1], cut)
		x.send(last, t, arrival, func(b []byte, seq uint32) []byte { return report10(b, &own, seq, x.packet) })
	}
}

// drop ends a packet whose loss the switch detects.
func (x *world) drop(node int, t float64, head *header, hopRecord record, reason int) {
	x.dropped[node] = true
	if !x.s.report.drops {
		return
	}
	hopRecord.ingress = x.clock(node, t)
	x.packet = head.bare(x.packet[:0])
	x.send(node, t, event, func(b []byte, seq uint32) []byte {
		switch x.s.report.format {
		case "int10":
			return drop10(b, &hopRecord, seq, reason, x.packet)
		case "local05":
			return drop05(b, &hopRecord, seq, reason, x.packet)
		}
		return report20(group20(b, 1, hopRecord.node, seq), dropped20, &hopRecord, reason, x.packet)
	})
}

// send passes a report to the exporter of a node, with all that can happen to it there and on its way. Samplers and
// policers hold reports of packets that arrived back, and let those of drops and of the first switch through.
func (x *world) send(node int, t float64, of occasion, write func(b []byte, seq uint32) []byte) {
	at := t + 200e-6 + 300e-6*x.r.Float64()
	lost, twice := false, false
	for _, e := range x.atNode[node] {
		if !e.active(t) {
			continue
		}
		switch e.verb {
		case "mute":
			return
		case "sample":
			if of == arrival && e.opt["flows"] == 0 && x.r.Float64()*e.opt["in"] >= 1 {
				return
			}
		case "police":
			k := &x.tokens[node]
			rate := e.opt["rate"]
			k.left, k.at = min(k.left+(t-k.at)*rate, max(rate, 1)), t
			if of == arrival {
				if k.left < 1 {
					if e.opt["numbered"] == 0 {
						return
					}
					lost = true
				} else {
					k.left--
				}
			}
		case "lose":
			lost = lost || x.r.Float64() < e.opt["rate"]
		case "duplicate":
			twice = x.r.Float64() < e.opt["rate"]
		case "reorder":
			if x.r.Float64() < e.opt["rate"] {
				at += e.opt["by"]
			}
		case "batch":
			if by := e.opt["by"]; by > 0 && of == arrival {
				at = math.Ceil(at/by) * by
			}
		}
	}
	for _, e := range x.atNode[node] {
		if e.verb == "restart" && e.active(t) && x.restarted[node] != e {
			x.restarted[node], x.seq[node] = e, [2]uint32{}
		}
	}
	kind := 0
	if of == entry {
		kind = 1 // its hardware id is another one
	}
	x.seq[node][kind]++
	if lost {
		return
	}
	d := datagram{at: at, from: x.net.nodes[node].addr, payload: write(nil, x.seq[node][kind]), order: x.sent}
	x.sent++
	x.pending = append(x.pending, d)
	if twice {
		d.at += 1e-4
		d.order = x.sent
		x.sent++
		x.pending = append(x.pending, d)
	}
}
