package sequence

import "github.com/hopscope/hopscope/decode"

// Agents of sFlow state in each datagram how long they have run. A restart is detected by that from the first datagram
// on, wherever its numbers are. Otherwise those near its old ones would look like copies, and those far from them would
// need to be confirmed.

// uptimeSlack is how far uptimes and times of receipt may disagree, in ms.
const uptimeSlack = 1000

// beganAnew takes the number of r for the first one of another sequence. It does so if the exporter cannot have run for
// so short a time without a restart since the datagram before. Its uptime must not have wrapped. It reports whether the
// number is counted.
func (t *Tracker) beganAnew(e *entry, r *decode.Report, sum uint32) bool {
	was, uptime, timed := e.uptime, r.HeaderTime, e.timed
	elapsed := max(r.Time-e.upAt, 0) / 1e6
	off, slack := int64(int32(uptime-was-uint32(elapsed))), uptimeSlack+elapsed/64
	if timed && uptime > was && off > slack && r.Time-e.upAt < returnWithin {
		if r.Time-e.began >= settleAfter || e.began == 0 {
			return false // its clock is wrong
		}
		e.late++ // it was sent before the restart
		return true
	}
	e.timed, e.uptime, e.upAt = true, uptime, r.Time
	if uptime >= was || was-uptime <= uptimeSlack || int64(uptime) > elapsed+uptimeSlack || off >= -slack && off <= slack {
		return false
	}
	e.drop()
	if e.resumed { // an earlier run saw that it counts
		e.claim()
	}
	if e.sequenced {
		e.restarts++
	}
	t.decide(e, false)
	e.copies, e.replaced, e.began = 0, false, r.Time
	seq := r.Seq & e.mask()
	e.begin(seq, r.Time, &t.room)
	t.copies.sums[(e.index*remembered+seq%remembered)&uint32(len(t.copies.sums)-1)] = fingerprint{sum, uint32(r.Time >> momentShift)}
	return true
}
