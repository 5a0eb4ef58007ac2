package emu

import (
	"time"

	"github.com/hopscope/hopscope/decode/pint"
)

// queue is the egress queue of one interface and the line behind it. Packets are served in order at the line's rate.
// When a packet is accepted its times are known, unless the rate changes or the link fails, so a packet costs one event
// a hop; what has been sent is taken out whenever the queue is looked at.
//
// A queue fills two lines of a cache. The first holds what every packet asks for.
type queue struct {
	free    int64 // when the line is idle again
	lastDue int64 // arrival of the last packet at the next pipeline; the line keeps the order
	bytes   int64

	head, size  int
	psPerByte   int64
	windowEnd   int64 // utilisation is that of the last whole window
	windowBytes int64

	ring        []sending // a ring; its length is a power of two
	cross       int32     // packets of cross traffic in it
	probes      int32     // probes in it
	limit       int32     // bytes, including the packet on the line
	up          bool      //
	utilization uint32    // hundredths of a percent
	meter       *meter    // with a plan
	reported    int64     // time of the last queue report
}

// sending is one packet in a queue. Cross traffic has no packet behind it (pkt is -1). Probes are left out of the utilisation of a
// line, so that no digest measures them; the queue holds them as it holds all packets.
type sending struct {
	start, done int64
	pkt         int32
	bytes       uint16
	probe       bool
}

// utilizationWindow is the time over which switches measure the use of their lines.
const utilizationWindow = 100e6

// baseRTT is the time over which the utilisation in digests is averaged, T of HPCC.
const baseRTT = 20 * time.Millisecond

// fullUtilization is the utilization of a line that is never idle.
const fullUtilization = 10000

// transmission is the time that a packet is on the line, in ns and at least 1.
func (q *queue) transmission(bytes int64) int64 { return max(1, bytes*q.psPerByte/1000) }

func (q *queue) at(i int) *sending { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

// drain takes out of a queue what has been sent by now.
func (n *Network) drain(q *queue) {
	n.stats.CrossDelivered += uint64(q.drain(n.now, n.line, n.packets))
}

// drain takes out what has been sent by now. It returns the number of packets of cross traffic among that. The line is that of all
// queues with a meter: each packet gets how full the line was when it left.
func (q *queue) drain(now int64, line *pint.Line, packets []packet) (cross int) {
	if q.free <= now && q.free < q.windowEnd && q.meter == nil && q.cross|q.probes == 0 && q.size > 0 { // all, of one window
		q.windowBytes += q.bytes
		q.bytes = 0
		q.head = (q.head + q.size) & (len(q.ring) - 1)
		q.size = 0
	}
	if q.meter != nil {
		q.measure(now, line, packets)
	}
	for q.size > 0 {
		s := &q.ring[q.head]
		if s.done > now {
			break
		}
		q.roll(s.done)
		q.bytes -= int64(s.bytes)
		if s.probe {
			q.probes--
		} else {
			q.windowBytes += int64(s.bytes)
		}
		q.head = (q.head + 1) & (len(q.ring) - 1)
		q.size--
		if s.pkt < 0 {
			cross++
		}
	}
	q.cross -= int32(cross)
	q.roll(now)
	if q.meter != nil {
		q.meter.seen = 0
	}
	return cross
}

// meter computes how full a line is, as HPCC has it.
type meter struct {
	pint.Meter
	bytes int64 // in the queue, as far as it has seen packets leave
	seen  int   // packets at the head of the queue that it has seen leave, and that are not taken out yet
}

// measure gives each packet that has left by now how full it found the line: without itself, and without any that left later. A probe
// gets what another packet would get, and leaves no trace.
func (q *queue) measure(now int64, line *pint.Line, packets []packet) {
	m := q.meter
	for ; m.seen < q.size; m.seen++ {
		s := q.at(m.seen)
		if s.done > now {
			break
		}
		m.bytes -= int64(s.bytes)
		next := m.Meter
		load := line.Step(&next, s.done, uint32(s.bytes), uint32(m.bytes))
		if !s.probe {
			m.Meter = next
		}
		if s.pkt >= 0 {
			packets[s.pkt].load = uint32(load) // that of a register of 32 bits
		}
	}
}

// roll closes the window that ended before now.
func (q *queue) roll(now int64) {
	if now < q.windowEnd {
		return
	}
	q.utilization = 0
	if now < q.windowEnd+utilizationWindow {
		q.utilization = uint32(min(q.windowBytes*q.psPerByte*10/utilizationWindow, fullUtilization))
	}
	q.windowBytes = 0
	q.windowEnd = now - now%utilizationWindow + utilizationWindow
}

// accept puts a packet into the queue, or gives ok = false if there is no room. The queue must have been drained.
func (q *queue) accept(now, bytes int64, pkt int32, probe bool) (start, done int64, ok bool) {
	if q.bytes+bytes > int64(q.limit) {
		return 0, 0, false
	}
	start = max(now, q.free)
	done = start + q.transmission(bytes)
	q.free = done
	q.bytes += bytes
	if q.meter != nil {
		q.meter.bytes += bytes
	}
	if q.size == len(q.ring) {
		q.grow()
	}
	q.size++
	if pkt < 0 {
		q.cross++
	}
	if probe {
		q.probes++
	}
	*q.at(q.size - 1) = sending{start, done, pkt, uint16(bytes), probe}
	return start, done, true
}

// ringStart is room for the packets of a line that is not busy.
const ringStart = 4

func (q *queue) grow() {
	ring := make([]sending, max(ringStart, 2*len(q.ring)))
	for i := range q.size {
		ring[i] = *q.at(i)
	}
	q.ring, q.head = ring, 0
}

// retime serves what waits at a new rate; the packet on the line keeps its own. moved is called for every packet whose times changed.
func (q *queue) retime(now, psPerByte int64, moved func(*sending)) {
	q.psPerByte = psPerByte
	q.free = now
	for i := range q.size {
		s := q.at(i)
		if s.start > now {
			s.start = q.free
			s.done = s.start + q.transmission(int64(s.bytes))
			moved(s)
		}
		q.free = s.done
	}
}

// clear throws away what waits and what is on the line.
func (q *queue) clear(now int64, lost func(*sending)) {
	for i := range q.size {
		lost(q.at(i))
	}
	q.head, q.size, q.cross, q.probes, q.bytes, q.free, q.lastDue = 0, 0, 0, 0, 0, now, now
	if q.meter != nil {
		q.meter.seen, q.meter.bytes = 0, 0
	}
}
