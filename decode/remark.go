package decode

// Remark is a set of statements about a report that decoded without an error. Such a report lacks some of its bytes'
// content, or is partly left out of statistics. Statements are counted by exporter and logged, so that nothing is
// left out in silence.
type Remark uint16

// The remarks.
const (
	// RemarkCopy: the exporter's number and the bytes of its datagram came a moment before.
	RemarkCopy Remark = 1 << iota
	// RemarkUnset: a time is zero, or the time between two cannot be.
	RemarkUnset
	// RemarkUnflagged: the report denies embedded telemetry, and its packet carries INT that decodes without an
	// error.
	RemarkUnflagged
	// RemarkStackInMX: a stack of INT-MD is in the place of the domain's words of INT-MX.
	RemarkStackInMX
	// RemarkDomainData: there are domain specific words without a known meaning.
	RemarkDomainData

	// RemarkNameless: a hop names no node.
	RemarkNameless
	// RemarkMoreData: beside the decoded values there are words of a domain, or TLVs, that no rule reads.
	RemarkMoreData
	// RemarkPathDelay: a delay on the path to the node was not set, or is impossible.
	RemarkPathDelay
	// RemarkAlike: the same bytes arrived a moment before, and it is unknown whether the datagram is a copy.
	RemarkAlike
	// RemarkShort: the capture holds less than its frame. The report may end there, or its flow or its INT may be in
	// the missing part.
	RemarkShort

	// NumRemarks is how many there are.
	NumRemarks = iota
)

// A difference of times counts as latency up to the range of a 32-bit hop latency, and up to the delay of any queue.
const (
	mostUnits = 1<<32 - 1
	mostNS    = 100e9
)

// inside is the time from the ingress to the egress of h, in ns. It is not ok if a time is zero, as an unset field
// is. Nor is it ok if a packet cannot have stayed for so long: half the range of the clock means that the clock went
// backwards.
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

// Devices compute this difference themselves, too. LeastReckoned is the least latency, in units, that is checked for
// it. The latency may differ from the times beside it by nearReckoned, as the device stamps these elsewhere. An
// unrelated latency matches once in 130,000 times.
const (
	LeastReckoned = 1 << 18
	nearReckoned  = 1 << 14
)

// misreckoned reports whether the latency of h is the low 32 bits of an invalid difference of times. A difference is
// invalid if it is impossible, or if one time was not set where the device computed it. With one time, the difference
// is that time itself.
func (u *Units) misreckoned(h *Hop) bool {
	if h.Latency < LeastReckoned || u.LatencyNS == 0 {
		return false
	}
	is := func(d uint64) bool {
		if h.TimeBits < 64 {
			d &= 1<<h.TimeBits - 1
		}
		off := int32(h.Latency - uint32(d*u.TimeNS/u.LatencyNS))
		return -nearReckoned < off && off < nearReckoned
	}
	switch h.Has & (HopIngressTime | HopEgressTime) {
	case HopIngressTime | HopEgressTime:
		if _, ok := u.inside(h); !ok {
			return is(h.EgressTime - h.IngressTime)
		}
		return is(h.EgressTime) && !is(h.EgressTime-h.IngressTime)
	case HopEgressTime:
		return is(h.EgressTime)
	case HopIngressTime:
		return is(-h.IngressTime)
	}
	return false
}

func (u *Units) possible(d uint64, forward bool) (ns uint64, ok bool) {
	if !forward || d > mostUnits || d*u.TimeNS > mostNS {
		return 0, false
	}
	return d * u.TimeNS, true
}

// Unset returns how many of r's hops have no latency although they have times. Either none can be computed from the
// times, or the reported one is an invalid difference of them.
func (r *Report) Unset() (n uint64) {
	const (
		times = HopIngressTime | HopEgressTime
		probe = HopQueueDelay | HopEnqTime | HopIngressTime
	)
	u := r.Units
	if u == nil {
		return 0
	}
	for i := range r.Hops {
		h, ok := &r.Hops[i], true
		switch {
		case h.Has&HopLatency != 0:
			ok = !u.misreckoned(h)
		case !u.LatencyCalc:
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
