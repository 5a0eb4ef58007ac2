package events

import (
	"math"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
)

// Packets wait for each other on every line. On a line with few packets, now and then one packet waits for one other.
// So the sending time of a packet is learnt from windows in which most packets found an empty queue. Some must have
// found one or two packets there. It is added to latencies before they are compared, so a change of less is ignored.

const (
	fullPacket = 1500 // bytes
	fewPackets = 2 * fullPacket
	// A packet that waits takes so many times longer than those that do not differ among each other.
	waitsLonger = 10
	// waitSamples are enough to know it; what is learnt later can only make it less. The first ones can be much too
	// short, as what a packet waits for is nearly sent at times.
	waitSamples, waitFirst = 64, 8
	// waitFloor is the number of packets beside which one more is little. The greatest time, in ns, is waitMost.
	waitFloor, waitMost = 6, 1 << 27
)

// waiting is the knowledge about packets that wait for one other.
type waiting struct {
	idle        float64 // by how much the latencies of packets differ that do not wait, in ns: mean of p90 - p50; 0 while not known
	packet      float64 // that a packet takes to be sent, in ns; 0 while not known
	score       int     // windows that show it less those that do not, within bounds
	seen        int     // windows that showed it, up to waitSamples
	pendingTime float64 // greatest time of windows that are pending; 0 for none
}

func codeWaiting(c *subject.Coder, w *waiting) {
	c.Float(&w.idle)
	c.Float(&w.packet)
	c.Check("time", w.idle >= 0 && w.packet >= 0 && w.pendingTime >= 0)
	subject.Number(c, &w.score)
	subject.Number(c, &w.seen)
	c.Float(&w.pendingTime)
	c.Check("count of windows", w.score <= scoreMost && w.seen <= waitSamples)
}

const scoreMost = 8

// learn takes a window of a hop. If packets took so much longer than known that the window has to be judged first, it
// returns how long, and takes nothing.
func (w *waiting) learn(s *inference.HopStats) (later float64) {
	l, q := &s.Latency, &s.Queue
	if l.Count == 0 || 2*q.Count < l.Count {
		return 0
	}
	if q.P90 == 0 {
		d := float64(l.P90 - min(l.P50, l.P90))
		if w.idle == 0 {
			w.idle = d
		}
		w.idle += (d - w.idle) / 32
		w.idle = max(w.idle, 1)
	}
	if w.idle == 0 || q.P50 > 0 || q.P99 == 0 || q.P99 > fewPackets {
		return 0
	}
	t := float64(l.P99 - min(l.P50, l.P99))
	if t < waitsLonger*w.idle {
		w.score = max(w.score-1, 0)
		return 0
	}
	t /= max(1, float64(q.P99)/fullPacket)
	if t > 3*w.packet && w.seen >= waitFirst && w.seen < waitSamples {
		return t
	}
	w.addTime(t)
	return 0
}

// addTime learns the time that a packet took to be sent.
func (w *waiting) addTime(t float64) {
	w.score = min(w.score+1, scoreMost)
	switch {
	case w.packet == 0:
		w.packet = t
	case t <= w.packet:
		w.packet = max(t, .98*w.packet)
	case w.seen < waitFirst:
		w.packet = t
	case w.seen < waitSamples:
		w.packet = min(t, 1.5*w.packet)
	}
	w.seen = min(w.seen+1, waitSamples)
}

// settle learns the greatest time of the judged windows, unless one is pending: a time that may not come again is not
// the usual one. It reports whether it learnt something.
func (w *waiting) settle(later float64, pending bool) bool {
	w.pendingTime = max(w.pendingTime, later)
	if pending || w.pendingTime == 0 {
		return false
	}
	w.addTime(w.pendingTime)
	w.pendingTime = 0
	return true
}

// floor returns the addition to latencies, a power of two. The present one stays as long as it is nearly right.
func (w *waiting) floor(now float64) float64 {
	if w.score == 0 {
		return 0
	}
	need := min(waitFloor*w.packet, waitMost)
	if now >= need && now <= 4*need {
		return now
	}
	return math.Exp2(math.Ceil(math.Log2(max(need, 1))))
}
