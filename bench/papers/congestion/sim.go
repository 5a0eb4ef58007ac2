package congestion

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/planner/opt"
)

// Times of the simulation of senders are picoseconds: a byte takes 20 of them on a line of 400 Gb/s.
const (
	nanosecond  = 1000
	microsecond = 1000 * nanosecond
	millisecond = 1000 * microsecond
	second      = 1000 * millisecond
)

// maxStamps is the number of switches on the longest path of a [fabric].
const maxStamps = 5

// simulation is a network of hosts with windows, packet by packet, as a discrete-event simulation. Its queues serve
// first come first served. Packets and acknowledgements cross the same queues, and each ends one event a hop.
//
// Package p4/emu carries real packets, whose senders have no windows, and its clock has nanoseconds, where a packet of
// 1,000 bytes takes 21 of them on the lines of the paper. Here a packet is a size, a path and what switches wrote. The
// result depends on the setting alone: events at the same time happen in the order in which they were made.
type simulation struct {
	Setting
	now     int64
	events  wheel
	ports   []port
	hosts   []simHost
	flows   []*simFlow
	packets []simPacket
	unused  int32 // first of the packets that are free to use, -1 for none
	code    *pint.Levels

	sent, delivered, dropped int64 // packets and acknowledgements
	pending                  int   // measured flows that have not ended
	done                     []Completion
}

// Setting is what a simulation depends on.
type Setting struct {
	fabric
	workload  string  // of [flowSizes]
	load      float64 // share of the hosts' lines, of payload and basic headers if counted, else of payload
	counted   bool
	sender    Sender
	share     float64 // of packets that carry the digest
	overhead  int     // bytes of telemetry in a packet
	onACK     bool    // the acknowledgement carries them back
	payload   int     // bytes in a full packet
	header    int     // bytes of other headers in a packet
	ackSize   int     // bytes of an acknowledgement without telemetry
	leastACK  int     // bytes that an acknowledgement has at least
	limit     int32   // packets that a queue of a switch holds; 0 for any number
	rtt       int64   // base round-trip time T, ps
	eta       float64 // target utilisation η
	increase  float64 // W_AI, bytes
	timeout   int64   // least retransmission timeout, ps
	measured  int     // flows whose completion is measured
	seed      uint64
	recording bool // keep every completion, with those before the measurement
}

// Completion is a flow that has ended.
type Completion struct {
	Size     int64  // bytes of payload
	Duration int64  // ps, until its last acknowledgement arrives
	Alone    int64  // ps, the least in an empty network without telemetry
	ID       uint64 // the same in simulations of the same seed and workload
}

// Slowdown is the duration over that of the flow alone.
func (c Completion) Slowdown() float64 { return float64(c.Duration) / float64(c.Alone) }

// stamp is what HPCC's switches write, as a packet leaves the queue.
type stamp struct {
	at    int64 // ps
	sent  int64 // bytes that the port has sent before
	queue int64 // bytes that wait
}

// simPacket is a packet, or the acknowledgement that it becomes.
type simPacket struct {
	next   int32 // in its queue, or of the unused
	flow   int32
	number int32 // within the flow; of an acknowledgement, the first packet that is missing
	size   int32 // bytes
	path   [maxStamps]int16
	links  int8 // ports of path
	hop    int8 // ports passed
	ack    bool
	chosen bool // carries the digest
	digest uint16
	rnd    uint32
	began  int64 // when the sender sent it
	stamps [maxStamps]stamp
}

// queue is a list of packets.
type queue struct{ first, last int32 }

// port is a line out of a switch, and its queue.
type port struct {
	queue
	waiting bool  // an event ends the packet on the line, because another waits
	free    int64 // when the packet on the line has left
	perByte int64 // ps
	delay   int64 // ps
	bytes   int64 // that wait
	packets int32 // that wait
	sent    int64 // bytes
	most    int64 // bytes that have waited
	line    *pint.Line
	meter   pint.Meter
}

// simHost is a server with one line. Acknowledgements leave first, then flows in turn.
type simHost struct {
	acks    queue
	free    int64
	wake    int64 // when a flow may send next, if it was waiting for that
	active  []*simFlow
	turn    int
	perByte int64
	rand    *rand.Rand
	started uint64 // flows
}

// simFlow is a flow, at both ends.
type simFlow struct {
	number   int32
	from, to int32
	id       uint64 // the same in simulations of the same seed and workload
	size     int64
	packets  int32
	began    int64
	measured bool
	ended    bool

	// Of the sender.
	law      law
	next     int32   // packet to send
	unacked  int32   // first packet without acknowledgement
	window   float64 // bytes
	pace     float64 // ps between the bytes of packets
	lastSent int64
	lastSize int32
	resend   bool // the first packet without acknowledgement, before all others
	path     [maxStamps]int16
	back     [maxStamps]int16
	links    int8

	// Of the receiver.
	missing int32          // first packet that has not arrived
	early   map[int32]bool // packets behind it
	timer   int64          // when the retransmission timer ends; 0 if it does not run
	armed   bool           // an event is there for it
}

// law is the congestion control of a flow.
type law interface {
	// acknowledged is called with an acknowledgement by which so many more packets have arrived.
	acknowledged(s *simulation, f *simFlow, p *simPacket, fresh int32)
	// expired is called when the retransmission timer has ended.
	expired(s *simulation, f *simFlow)
}

// Kinds of events, in the upper bits of what they are about.
const (
	eventArrival = iota << 28 // of a packet at the next port of its path, or at its end
	eventPort                 // the packet on a line has left, and another one waits
	eventHost                 // a host can send
	eventFlow                 // a host begins a flow
	eventTimer                // a flow's retransmission timer may have ended
	eventNumber  = 1<<28 - 1
)

// newSimulation makes a network without flows.
func newSimulation(c Setting) (*simulation, error) {
	s := &simulation{Setting: c, unused: -1}
	if err := s.connect(); err != nil {
		return nil, err
	}
	// About one event an interval: the ticks of the wheel follow the lines.
	s.events.begin(c.hostRate)
	if c.sender == PINT {
		var err error
		s.code, err = pint.NewCode(pint.CodeConfig{Kind: pint.Multiplicative, Bits: 8, Epsilon: 0.025, Unit: pint.UtilizationUnit / 512})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// simulate runs flows of a workload until those that are measured have ended. Flows that begin at first come to a
// network that fills, and are not measured: for half of the measured time, and for four of the longest flows at least.
// Flows begin until the end.
func simulate(ctx context.Context, c Setting) (*simulation, error) {
	s, err := newSimulation(c)
	if err != nil {
		return nil, err
	}
	sizes, err := flowSizesOf(c.workload)
	if err != nil {
		return nil, err
	}
	mean := sizes.mean()
	if c.counted {
		mean *= float64(c.payload+c.header) / float64(c.payload)
	}
	gap := mean / (c.load * c.hostRate / 8) * second // ps between flows of a host
	span := int64(gap / float64(len(s.hosts)) * float64(c.measured))
	longest := int64(sizes.at(100) * 8 * second / c.hostRate)
	from := max(span/2, 4*longest)
	to := from + span
	for h := range s.hosts {
		s.hosts[h].rand = rand.New(rand.NewPCG(c.seed, uint64(h)))
		s.events.push(int64(s.hosts[h].rand.ExpFloat64()*gap), eventFlow|uint32(h))
	}
	begin := func(h int32) {
		host := &s.hosts[h]
		other := int32(host.rand.IntN(len(s.hosts) - 1))
		if other >= h {
			other++
		}
		size := sizes.draw(host.rand)
		s.start(h, other, size, s.now >= from && s.now < to)
		s.events.push(s.now+int64(host.rand.ExpFloat64()*gap), eventFlow|uint32(h))
	}
	const stop = 100 // times what is measured: an end for a network that does not carry its load
	for n := 0; s.now < to || s.pending > 0; n++ {
		if s.now > to+stop*(span+longest) {
			return nil, fmt.Errorf("%d of %d flows have not ended after %d ms of virtual time", s.pending, len(s.flows), s.now/millisecond)
		}
		if n&0xfffff == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		s.step(begin)
	}
	return s, nil
}

// step handles the next event.
func (s *simulation) step(begin func(host int32)) bool {
	at, what, ok := s.events.pop()
	if !ok {
		return false
	}
	s.now = at
	s.handle(what, begin)
	return true
}

func (s *simulation) handle(what uint32, begin func(host int32)) {
	switch number := int32(what & eventNumber); what &^ eventNumber {
	case eventArrival:
		s.arrive(number)
	case eventPort:
		p := &s.ports[number]
		p.waiting = false
		s.transmit(number, s.pop(p))
		if p.first >= 0 {
			p.waiting = true
			s.events.push(p.free, eventPort|uint32(number))
		}
	case eventHost:
		s.send(number)
	case eventFlow:
		begin(number)
	case eventTimer:
		s.expire(s.flows[number])
	}
}

// start begins a flow.
func (s *simulation) start(from, to int32, size int64, measured bool) *simFlow {
	h := &s.hosts[from]
	f := &simFlow{number: int32(len(s.flows)), from: from, to: to, id: uint64(from)<<32 | h.started, size: size, began: s.now, measured: measured}
	h.started++
	f.packets = int32((size + int64(s.payload) - 1) / int64(s.payload))
	f.path, f.links = s.route(from, to, f.id)
	f.back, _ = s.route(to, from, f.id)
	f.law = s.newLaw(f)
	s.flows = append(s.flows, f)
	if measured {
		s.pending++
	}
	h.active = append(h.active, f)
	s.send(from)
	return f
}

// bytesOf is the payload of a packet of a flow.
func (s *simulation) bytesOf(f *simFlow, number int32) int32 {
	return int32(min(f.size-int64(number)*int64(s.payload), int64(s.payload)))
}

// alone is the least time of a flow in an empty network, without telemetry: all of its packets leave one after the
// other, and the last one and its acknowledgement meet no queue. What it may wait for a longer packet before it, up to
// a packet's time, is not in it.
func (s *simulation) alone(f *simFlow) int64 {
	last := int64(s.bytesOf(f, f.packets-1)) + int64(s.header)
	all := f.size + int64(f.packets)*int64(s.header)
	return all*s.hosts[f.from].perByte + s.crossing(f.path, f.links, last) + int64(s.leastACK)*s.hosts[f.to].perByte + s.crossing(f.back, f.links, int64(s.leastACK))
}

// crossing is the time of a packet from the end of its sending until it has arrived.
func (s *simulation) crossing(path [maxStamps]int16, links int8, size int64) int64 {
	t := s.delay
	for _, p := range path[:links] {
		t += size*s.ports[p].perByte + s.ports[p].delay
	}
	return t
}

// eligible is when a flow may send: never, now or at a time to come.
func (s *simulation) eligible(f *simFlow) int64 {
	if f.resend {
		return s.now
	}
	if f.next >= f.packets || float64(int64(f.next-f.unacked)*int64(s.payload)) >= f.window {
		return math.MaxInt64
	}
	if f.pace == 0 || f.next == 0 {
		return s.now
	}
	return f.lastSent + int64(float64(f.lastSize)*f.pace)
}

// send sends the next packet of a host, if its line is free and one may be sent.
func (s *simulation) send(host int32) {
	h := &s.hosts[host]
	if s.now < h.free {
		return // an event is there for its end
	}
	p := int32(-1)
	if h.acks.first >= 0 {
		p = s.dequeue(&h.acks)
	} else {
		soonest := int64(math.MaxInt64)
		n := len(h.active)
		for k := range n {
			i := h.turn + k
			if i >= n {
				i -= n
			}
			f := h.active[i]
			at := s.eligible(f)
			if at <= s.now {
				p = s.emit(f)
				if h.turn = i + 1; h.turn >= n {
					h.turn = 0
				}
				break
			}
			soonest = min(soonest, at)
		}
		if p < 0 {
			if soonest < math.MaxInt64 && (h.wake <= s.now || soonest < h.wake) {
				h.wake = soonest
				s.events.push(soonest, eventHost|uint32(host))
			}
			return
		}
	}
	s.sent++
	h.free = s.now + int64(s.packets[p].size)*h.perByte
	s.events.push(h.free, eventHost|uint32(host))
	s.events.push(h.free+s.delay, eventArrival|uint32(p))
}

// emit makes the next packet of a flow.
func (s *simulation) emit(f *simFlow) int32 {
	number := f.next
	if f.resend {
		number, f.resend = f.unacked, false
	} else {
		f.next++
	}
	i := s.unused
	if i >= 0 {
		s.unused = s.packets[i].next
	} else {
		i = int32(len(s.packets))
		s.packets = append(s.packets, simPacket{})
	}
	p := &s.packets[i]
	p.next, p.flow, p.number, p.size = -1, f.number, number, s.bytesOf(f, number)+int32(s.header+s.overhead)
	p.path, p.links, p.hop, p.ack, p.digest, p.began = f.path, f.links, 0, false, 0, s.now
	if s.sender == PINT {
		x := mixed64(f.id<<20 ^ uint64(number) ^ s.seed<<44)
		p.chosen = float64(x>>32) < s.share*(1<<32)
		p.rnd = uint32(x)
	}
	f.lastSent, f.lastSize = s.now, p.size
	if s.timeout > 0 && f.timer == 0 {
		s.arm(f)
	}
	return i
}

// mixed64 is the finaliser of SplitMix64 (G. Steele and others, OOPSLA 2014): the hash that all switches share.
func mixed64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// arrive takes a packet to the next port of its path, or to its host.
func (s *simulation) arrive(i int32) {
	p := &s.packets[i]
	if p.hop == p.links {
		s.delivered++
		if p.ack {
			s.acknowledge(i)
		} else {
			s.receive(i)
		}
		return
	}
	number := int32(p.path[p.hop])
	o := &s.ports[number]
	if s.now >= o.free && o.first < 0 {
		s.transmit(number, i)
		return
	}
	if s.limit > 0 && o.packets >= s.limit {
		s.dropped++
		s.release(i)
		return
	}
	s.append(&o.queue, i)
	o.bytes += int64(p.size)
	o.packets++
	o.most = max(o.most, o.bytes)
	if !o.waiting {
		o.waiting = true
		s.events.push(o.free, eventPort|uint32(number))
	}
}

// transmit puts a packet on the line of a port, which is free. The switch writes what the packet takes along.
func (s *simulation) transmit(number, i int32) {
	o, p := &s.ports[number], &s.packets[i]
	switch s.sender {
	case INT:
		if !p.ack {
			p.stamps[p.hop] = stamp{at: s.now, sent: o.sent, queue: o.bytes}
		}
	case PINT:
		u := o.line.Step(&o.meter, s.now/nanosecond, uint32(p.size), uint32(o.bytes))
		if p.chosen && !p.ack {
			p.digest = max(p.digest, uint16(s.code.Encode(u, p.rnd)))
		}
	}
	p.hop++
	o.sent += int64(p.size)
	o.free = s.now + int64(p.size)*o.perByte
	s.events.push(o.free+o.delay, eventArrival|uint32(i))
}

// receive makes an acknowledgement of a packet, which takes back what the packet has.
func (s *simulation) receive(i int32) {
	p := &s.packets[i]
	f := s.flows[p.flow]
	switch {
	case p.number == f.missing:
		f.missing++
		for len(f.early) > 0 && f.early[f.missing] {
			delete(f.early, f.missing)
			f.missing++
		}
	case p.number > f.missing:
		if f.early == nil {
			f.early = map[int32]bool{}
		}
		f.early[p.number] = true
	}
	p.ack, p.number, p.path, p.hop = true, f.missing, f.back, 0
	p.size = int32(s.ackSize)
	if s.onACK {
		p.size += int32(s.overhead)
	}
	p.size = max(p.size, int32(s.leastACK))
	s.append(&s.hosts[f.to].acks, i)
	s.send(f.to)
}

// acknowledge takes an acknowledgement at the sender.
func (s *simulation) acknowledge(i int32) {
	p := &s.packets[i]
	f := s.flows[p.flow]
	if f.ended {
		s.release(i)
		return
	}
	fresh := max(p.number-f.unacked, 0)
	f.unacked += fresh
	f.next = max(f.next, f.unacked)
	if f.unacked == f.packets {
		s.end(f)
	} else {
		f.law.acknowledged(s, f, p, fresh)
	}
	s.release(i)
	s.send(f.from)
}

func (s *simulation) end(f *simFlow) {
	f.ended, f.early = true, nil
	h := &s.hosts[f.from]
	k := slices.Index(h.active, f)
	h.active = slices.Delete(h.active, k, k+1)
	if h.turn > k {
		h.turn--
	}
	if h.turn >= len(h.active) {
		h.turn = 0
	}
	if f.measured {
		s.pending--
	}
	if f.measured || s.recording {
		s.done = append(s.done, Completion{Size: f.size, Duration: s.now - f.began, Alone: s.alone(f), ID: f.id})
	}
	s.flows[f.number] = &simFlow{ended: true, from: f.from, to: f.to, back: f.back, missing: f.missing}
}

// arm starts the retransmission timer of a flow anew.
func (s *simulation) arm(f *simFlow) {
	f.timer = s.now + f.law.(*reno).rto
	if !f.armed {
		f.armed = true
		s.events.push(f.timer, eventTimer|uint32(f.number))
	}
}

// expire ends the timer of a flow if it was not started anew since.
func (s *simulation) expire(f *simFlow) {
	f.armed = false
	switch {
	case f.ended || f.timer == 0:
	case f.timer > s.now:
		f.armed = true
		s.events.push(f.timer, eventTimer|uint32(f.number))
	default:
		f.timer = 0
		f.law.expired(s, f)
		s.send(f.from)
	}
}

func (s *simulation) release(i int32) {
	s.packets[i].next, s.unused = s.unused, i
}

func (s *simulation) append(q *queue, i int32) {
	s.packets[i].next = -1
	if q.first < 0 {
		q.first = i
	} else {
		s.packets[q.last].next = i
	}
	q.last = i
}

func (s *simulation) dequeue(q *queue) int32 {
	i := q.first
	q.first = s.packets[i].next
	return i
}

func (s *simulation) pop(o *port) int32 {
	i := s.dequeue(&o.queue)
	o.bytes -= int64(s.packets[i].size)
	o.packets--
	return i
}

// mostQueue is the largest queue of a switch's port, in bytes.
func (s *simulation) mostQueue() (most int64) {
	for i := range s.ports {
		most = max(most, s.ports[i].most)
	}
	return most
}

// wheel has the events to come by time, and those of the same time in the order in which they came. Nearly all are
// about a packet's way over a line ahead: an event goes into the list of its tick of a wheel. What is further away
// than the wheel reaches is in a heap.
type wheel struct {
	shift uint // 2^shift ps are a tick
	ticks []int32
	tick  int64 // the next one to look at
	nodes []event
	free  int32
	count int // in the wheel
	far   opt.Heap[farEvent]
	made  uint64
}

type event struct {
	at   int64
	next int32
	what uint32
}

const wheelTicks = 1 << 15

// begin makes the wheel for hosts of a rate, in bit/s: a tick is 128 ps at 100 Gb/s, and in proportion.
func (w *wheel) begin(rate float64) {
	w.shift = 7
	for r := rate; r < 60e9 && w.shift < 20; r *= 2 {
		w.shift++
	}
	w.ticks = make([]int32, wheelTicks)
	for i := range w.ticks {
		w.ticks[i] = -1
	}
	w.free = -1
	w.far.Less = func(a, b *farEvent) bool { return a.at < b.at || a.at == b.at && a.made < b.made }
}

func (w *wheel) push(at int64, what uint32) {
	t := at >> w.shift
	if t >= w.tick+wheelTicks {
		w.made++
		w.far.Push(farEvent{at, w.made, what})
		return
	}
	t = max(t, w.tick)
	i := w.free
	if i >= 0 {
		w.free = w.nodes[i].next
	} else {
		i = int32(len(w.nodes))
		w.nodes = append(w.nodes, event{})
	}
	w.count++
	link := &w.ticks[t&(wheelTicks-1)]
	for *link >= 0 && w.nodes[*link].at <= at {
		link = &w.nodes[*link].next
	}
	w.nodes[i] = event{at, *link, what}
	*link = i
}

// pop takes the next event.
func (w *wheel) pop() (at int64, what uint32, ok bool) {
	if w.count == 0 {
		if len(w.far.Items) == 0 {
			return 0, 0, false
		}
		e := w.far.Pop()
		w.tick = max(w.tick, e.at>>w.shift)
		return e.at, e.what, true
	}
	for w.ticks[w.tick&(wheelTicks-1)] < 0 {
		w.tick++
	}
	link := &w.ticks[w.tick&(wheelTicks-1)]
	i := *link
	e := w.nodes[i]
	if len(w.far.Items) > 0 && w.far.Items[0].at <= e.at { // it was made before all that the wheel reaches
		f := w.far.Pop()
		w.tick = f.at >> w.shift
		return f.at, f.what, true
	}
	*link = e.next
	w.nodes[i].next, w.free = w.free, i
	w.count--
	return e.at, e.what, true
}

type farEvent struct {
	at   int64
	made uint64
	what uint32
}
