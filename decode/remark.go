package decode

// Remark is a set of statements about a report that was read without an error and is not all that its bytes hold, or not all in
// statistics. Statements are counted by exporter and said in words, so that nothing is left out in silence.
type Remark uint8

// The remarks.
const (
	// RemarkCopy: the exporter has sent its number before.
	RemarkCopy Remark = 1 << iota
	// RemarkUnset: a time is zero, or the time between two cannot be.
	RemarkUnset
	// RemarkUnflagged: the report says that nothing is embedded, and its packet carries INT that decodes without an error.
	RemarkUnflagged
	// RemarkStackInMX: what stands where INT-MX has words of its domain is a stack of INT-MD.
	RemarkStackInMX
	// RemarkDomainData: there are words whose meaning only their domain knows.
	RemarkDomainData

	// RemarkNameless: a hop names no node.
	RemarkNameless

	// NumRemarks is how many there are.
	NumRemarks = iota
)

// A difference of times is no latency beyond what the 32 bits of a hop latency can say, and beyond what any queue holds.
const (
	mostUnits = 1<<32 - 1
	mostNS    = 100e9
)

// inside is the time from the ingress to the egress of h, in ns. It is not ok if a time is zero, which is what a field holds that
// nobody set, or if a packet cannot have stayed for so long: half the range of the clock is one that went backwards.
func (u *Units) inside(h *Hop) (ns uint64, ok bool) {
	if h.IngressTime == 0 || h.EgressTime == 0 {
		return 0, false
	}
	d := h.EgressTime - h.IngressTime
	if h.TimeBits < 64 {
		d &= 1<<h.TimeBits - 1
	}
	return u.possible(d, d>>(max(h.TimeBits, 1)-1) == 0)
}

// queued is the time from the ingress to the end of the queue of a probe, in ns, whose times have 32 bits in common.
func (u *Units) queued(h *Hop) (ns uint64, ok bool) {
	d := uint64(h.EnqTime - uint32(h.IngressTime))
	return u.possible(d+uint64(h.QueueDelay), h.EnqTime != 0 && h.IngressTime != 0 && d < 1<<31)
}

func (u *Units) possible(d uint64, forward bool) (ns uint64, ok bool) {
	if !forward || d > mostUnits || d*u.TimeNS > mostNS {
		return 0, false
	}
	return d * u.TimeNS, true
}

// Unset gives how many of r's hops have times of which no latency can be made, though they report no other.
func (r *Report) Unset() (n uint64) {
	const (
		times = HopIngressTime | HopEgressTime
		probe = HopQueueDelay | HopEnqTime | HopIngressTime
	)
	u := r.Units
	if u == nil || !u.LatencyCalc {
		return 0
	}
	for i := range r.Hops {
		h, ok := &r.Hops[i], true
		switch {
		case h.Has&HopLatency != 0:
		case h.Has&times == times:
			_, ok = u.inside(h)
		case h.Has&probe == probe:
			_, ok = u.queued(h)
		}
		if !ok {
			n++
		}
	}
	return n
}
