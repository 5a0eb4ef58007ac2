package stamp

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// MostHops is the largest number of routers on a traced way. TraceTries is how often a router without an answer is
// asked. Together they bound the packets of each port and hop in a trace.
const (
	MostHops   = 32
	TraceTries = 3
)

// TraceLen is the size of the payload of a packet of a trace.
const TraceLen = 12

// mark begins the payload of a packet of a trace.
const mark = "HPSW"

// Trace finds the routers on the way of one port. It has one user at a time.
type Trace struct {
	number uint32
	hops   []netip.Addr // as far as they answered
	asked  int          // rounds
	ended  bool         // the length of the way is known
}

// NewTrace begins a trace with a number that its packets carry. The number of routers is hops; 0 is unknown.
func NewTrace(number uint32, hops int) *Trace {
	t := &Trace{number: number, hops: make([]netip.Addr, MostHops)}
	if hops > 0 && hops < MostHops {
		t.hops, t.ended = t.hops[:hops], true
	}
	return t
}

// Round returns the TTLs of the next packets, one each, until all routers have answered or were asked often enough. An
// answer to a packet of an earlier round is accepted at any time.
func (t *Trace) Round() (ttls []int) {
	if t.asked++; t.asked > TraceTries {
		return nil
	}
	last := len(t.hops)
	if !t.ended { // routers behind the last one that answers are probed a few at a time
		known := 0
		for i, h := range t.hops {
			if h.IsValid() {
				known = i + 1
			}
		}
		last = min(last, known+8)
	}
	for i := range last {
		if !t.hops[i].IsValid() {
			ttls = append(ttls, i+1)
		}
	}
	return ttls
}

// AppendPayload appends the payload of the packet with a TTL.
func (t *Trace) AppendPayload(dst []byte, ttl int) []byte {
	dst = append(dst, mark...)
	dst = binary.BigEndian.AppendUint32(dst, t.number)
	return append(dst, uint8(ttl), 0, 0, 0)
}

// Observe records that a router answered, by the payload of the packet that it refused. A payload of no packet of this
// trace changes nothing and returns false.
func (t *Trace) Observe(payload []byte, from netip.Addr) bool {
	if len(payload) < TraceLen-3 || string(payload[:4]) != mark || binary.BigEndian.Uint32(payload[4:]) != t.number {
		return false
	}
	ttl := int(payload[8])
	if ttl < 1 || ttl > len(t.hops) || t.hops[ttl-1].IsValid() {
		return false
	}
	t.hops[ttl-1] = from.Unmap().WithZone("")
	return true
}

// Hops are the routers in their order; the zero address is one that did not answer. Where the length of the way was not known, it ends with the last router that
// answered.
func (t *Trace) Hops() []netip.Addr {
	n := len(t.hops)
	for !t.ended && n > 0 && !t.hops[n-1].IsValid() {
		n--
	}
	return slices.Clone(t.hops[:n])
}

// Watch follows the way of one port. Its zero value has seen nothing.
type Watch struct {
	Epoch  uint32       // number of the way, from 1
	Hops   []netip.Addr // the way; zero addresses are of routers that never answered
	before []netip.Addr // that the trace before showed, where it was another one
}

// Step takes the result of a trace, and reports whether the port has another way now. Two traces in a row have to show
// the same other way. A single one may mix packets of both sides of a change, or include a router that answers late. A
// router that does not answer is no other way.
func (w *Watch) Step(hops []netip.Addr) (changed bool) {
	switch {
	case !slices.ContainsFunc(hops, netip.Addr.IsValid):
		return false // nothing answers
	case w.Epoch == 0:
		w.Epoch, w.Hops = 1, slices.Clone(hops)
		return false
	case agree(w.Hops, hops):
		w.before = nil
		for i := range w.Hops {
			if !w.Hops[i].IsValid() {
				w.Hops[i] = hops[i]
			}
		}
		return false
	case w.before == nil || !agree(w.before, hops):
		w.before = slices.Clone(hops)
		return false
	}
	w.Epoch++
	w.Hops, w.before = slices.Clone(hops), nil
	return true
}

// agree reports whether two traces can be of one way.
func agree(a, b []netip.Addr) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && a[i].IsValid() && b[i].IsValid() {
			return false
		}
	}
	return true
}
