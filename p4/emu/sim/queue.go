package sim

import (
	"time"

	"github.com/hopscope/hopscope/decode/pint"
)

// Queue is the egress queue of one interface and the line behind it. Packets are served in order at the line's rate.
// When a packet is accepted its times are known, unless the rate changes or the link fails, so a packet costs one event
// a hop. Each access to the queue first removes the packets that have been sent.
//
// A queue fills two lines of a cache. The first holds what every packet asks for.
type Queue struct {
	free    int64 // when the line is idle again
	LastDue int64 // arrival of the last packet at the next pipeline; the line keeps the order
	Bytes   int64

	head, Size  int
	PsPerByte   int64
	WindowEnd   int64 // utilisation is that of the last whole window
	windowBytes int64

	Ring        []Sending // a ring; its length is a power of two
	cross       int32     // packets of cross traffic in it
	probes      int32     // probes in it
	Limit       int32     // bytes, including the packet on the line
	Up          bool      //
	Utilization uint32    // hundredths of a percent
	Meter       *Meter    // with a plan
	Reported    int64     // time of the last queue report
}

// Sending is one packet in a queue. Cross traffic has no packet behind it (pkt is -1). Probes are left out of the utilisation of a
// line, so that no digest measures them; the queue holds them as it holds all packets.
type Sending struct {
	Start, Done int64
	Pkt         int32
	Bytes       uint16
	probe       bool
}

// UtilizationWindow is the time over which switches measure the use of their lines.
const UtilizationWindow = 100e6

// BaseRTT is the time over which the utilisation in digests is averaged, T of HPCC.
const BaseRTT = 20 * time.Millisecond

// fullUtilization is the utilization of a line that is never idle.
const fullUtilization = 10000

// transmission is the time that a packet is on the line, in ns and at least 1.
func (q *Queue) transmission(bytes int64) int64 { return max(1, bytes*q.PsPerByte/1000) }

// At returns the sending of position i of the ring, 0 for the oldest one.
func (q *Queue) At(i int) *Sending { return &q.Ring[(q.head+i)&(len(q.Ring)-1)] }

// Drain takes out what has been sent by now. It returns the number of packets of cross traffic among that. The line is that of all
// queues with a meter: found gets for each packet how full the line was when it left.
func (q *Queue) Drain(now int64, line *pint.Line, found func(pkt int32, load uint32)) (cross int) {
	if q.free <= now && q.free < q.WindowEnd && q.Meter == nil && q.cross|q.probes == 0 && q.Size > 0 { // all, of one window
		q.windowBytes += q.Bytes
		q.Bytes = 0
		q.head = (q.head + q.Size) & (len(q.Ring) - 1)
		q.Size = 0
	}
	if q.Meter != nil {
		q.Measure(now, line, found)
	}
	for q.Size > 0 {
		s := &q.Ring[q.head]
		if s.Done > now {
			break
		}
		q.roll(s.Done)
		q.Bytes -= int64(s.Bytes)
		if s.probe {
			q.probes--
		} else {
			q.windowBytes += int64(s.Bytes)
		}
		q.head = (q.head + 1) & (len(q.Ring) - 1)
		q.Size--
		if s.Pkt < 0 {
			cross++
		}
	}
	q.cross -= int32(cross)
	q.roll(now)
	if q.Meter != nil {
		q.Meter.seen = 0
	}
	return cross
}

// Meter computes how full a line is, as HPCC has it.
type Meter struct {
	pint.Meter
	bytes int64 // in the queue, as far as it has seen packets leave
	seen  int   // packets at the head of the queue that it has seen leave, and that are not taken out yet
}

// Measure sets for each packet that has left by now the load of the line that it met. That excludes the packet itself
// and any that left later. A probe gets what another packet would get, and leaves no trace.
func (q *Queue) Measure(now int64, line *pint.Line, found func(pkt int32, load uint32)) {
	m := q.Meter
	for ; m.seen < q.Size; m.seen++ {
		s := q.At(m.seen)
		if s.Done > now {
			break
		}
		m.bytes -= int64(s.Bytes)
		next := m.Meter
		load := line.Step(&next, s.Done, uint32(s.Bytes), uint32(m.bytes))
		if !s.probe {
			m.Meter = next
		}
		if s.Pkt >= 0 {
			found(s.Pkt, uint32(load)) // that of a register of 32 bits
		}
	}
}

// roll closes the window that ended before now.
func (q *Queue) roll(now int64) {
	if now < q.WindowEnd {
		return
	}
	q.Utilization = 0
	if now < q.WindowEnd+UtilizationWindow {
		q.Utilization = uint32(min(q.windowBytes*q.PsPerByte*10/UtilizationWindow, fullUtilization))
	}
	q.windowBytes = 0
	q.WindowEnd = now - now%UtilizationWindow + UtilizationWindow
}

// Accept puts a packet into the queue, or returns ok = false if there is no room. The queue must have been drained.
func (q *Queue) Accept(now, bytes int64, pkt int32, probe bool) (start, done int64, ok bool) {
	if q.Bytes+bytes > int64(q.Limit) {
		return 0, 0, false
	}
	start = max(now, q.free)
	done = start + q.transmission(bytes)
	q.free = done
	q.Bytes += bytes
	if q.Meter != nil {
		q.Meter.bytes += bytes
	}
	if q.Size == len(q.Ring) {
		q.grow()
	}
	q.Size++
	if pkt < 0 {
		q.cross++
	}
	if probe {
		q.probes++
	}
	*q.At(q.Size - 1) = Sending{start, done, pkt, uint16(bytes), probe}
	return start, done, true
}

// RingStart is room for the packets of a line that is not busy.
const RingStart = 4

func (q *Queue) grow() {
	ring := make([]Sending, max(RingStart, 2*len(q.Ring)))
	for i := range q.Size {
		ring[i] = *q.At(i)
	}
	q.Ring, q.head = ring, 0
}

// Retime serves what waits at a new rate; the packet on the line keeps its own. moved is called for every packet whose times changed.
func (q *Queue) Retime(now, psPerByte int64, moved func(*Sending)) {
	q.PsPerByte = psPerByte
	q.free = now
	for i := range q.Size {
		s := q.At(i)
		if s.Start > now {
			s.Start = q.free
			s.Done = s.Start + q.transmission(int64(s.Bytes))
			moved(s)
		}
		q.free = s.Done
	}
}

// Clear drops the waiting packets and the one on the line.
func (q *Queue) Clear(now int64, lost func(*Sending)) {
	for i := range q.Size {
		lost(q.At(i))
	}
	q.head, q.Size, q.cross, q.probes, q.Bytes, q.free, q.LastDue = 0, 0, 0, 0, 0, now, now
	if q.Meter != nil {
		q.Meter.seen, q.Meter.bytes = 0, 0
	}
}
