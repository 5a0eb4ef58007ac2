package stamp

import (
	"container/list"
	"net/netip"
	"time"
)

// Source of synchronisation and method of time stamps, RFC 8972, section 4.3.
const (
	syncNTP   = 1
	syncLocal = 5
	bySW      = 2
)

// idle is how long a session of a full reflector has been silent before another one takes its place.
const idle = int64(time.Minute)

// Arrival holds the metadata of a request from the socket.
type Arrival struct {
	From, To netip.AddrPort
	At       int64 // T2, ns since 1970
	Steady   int64 // when it was read, in ns by a clock that is never set: the rate and the silence of sessions go by it
	TTL, TOS uint8
}

// Reflector makes answers to requests. An answer is as long as its request, so that nothing is amplified. It has one user at a time.
type Reflector struct {
	// Keys make it authenticated: it answers what they signed. nil for requests without digests.
	Keys *Keys
	// Stateful numbers the answers of each session from 0. Without, answers have the numbers of their requests, and nothing is remembered.
	Stateful bool
	// Sessions are the most that are remembered. A request of another one has no answer, unless one has been silent for a minute.
	Sessions int
	// Rate is the most answers in a second, and in a burst.
	Rate float64
	// Allow are the senders that have answers; empty for all. Ports below 1024, that of the reflector, and answers of other reflectors never have any.
	Allow []netip.Prefix

	known  map[sessionKey]*list.Element // of *reflected
	order  list.List                    // the longest silent last
	tokens float64                      // tokens of the bucket
	filled int64
}

type sessionKey struct {
	from, to netip.AddrPort
	ssid     uint16
}

// reflected is a session by its reflector.
type reflected struct {
	key            sessionKey
	received, sent uint32
	heard          int64
}

// Open is the number of sessions that are remembered.
func (r *Reflector) Open() int { return r.order.Len() }

// Reply appends the answer to a request, as of now in ns since 1970, and returns the type of service to send it with.
// The argument clock is the estimate of the clock; the request's format of time stamps overrides its own. A refused
// request returns an [Error].
func (r *Reflector) Reply(dst, request []byte, a *Arrival, now int64, clock ErrorEstimate) (answer []byte, tos uint8, err error) {
	if !r.allowed(a) {
		return dst, 0, refuse("source", 0, NotServed)
	}
	place, err := r.Keys.open(request)
	if err != nil {
		return dst, 0, err
	}
	m := Mode(r.Keys != nil)
	var q Request
	if err := q.Decode(request, m); err != nil {
		return dst, 0, err
	}
	if answered(request, m) {
		return dst, 0, refuse("receive_timestamp", layouts[m].received, NotServed)
	}
	s, err := r.session(&q, a, a.Steady)
	if err != nil {
		return dst, 0, err
	}
	if !r.pass(a.Steady) {
		return dst, 0, refuse("rate", 0, OverRate)
	}
	clock = clock&^isPTP | q.Error&isPTP
	x := Answer{
		Seq: q.Seq, Time: newTimestamp(now, clock.PTP()), Error: clock, SSID: q.SSID, Received: newTimestamp(a.At, clock.PTP()),
		SenderSeq: q.Seq, SenderTime: q.Time, senderError: q.Error, TTL: a.TTL,
	}
	if s != nil {
		x.Seq = s.sent
		s.sent++
	}
	at := len(dst)
	dst = append(dst, request...)
	b := dst[at:]
	guard := protection{at: -1, whole: true}
	if m == Authenticated {
		guard = r.Keys.protected(b, place)
	}
	x.put(b, m)
	tos = a.TOS
	if len(b) > m.Len() {
		tos = r.extend(b[m.Len():], m, &guard, a, s, clock)
	}
	if m == Authenticated {
		if guard.at >= 0 && guard.whole {
			r.Keys.protect(b, guard.at, place)
		}
		r.Keys.Sign(b, place)
	}
	return dst, tos, nil
}

// allowed reports whether a sender has answers. The ports of services have none, nor has our own: two reflectors would answer each other for ever.
func (r *Reflector) allowed(a *Arrival) bool {
	if a.From.Port() <= 1023 || a.From.Port() == a.To.Port() {
		return false
	}
	from := a.From.Addr().Unmap().WithZone("") // no prefix holds an address with a zone
	for _, p := range r.Allow {
		if p.Contains(from) {
			return true
		}
	}
	return len(r.Allow) == 0
}

// mostHeld is how long a reflector holds a request, by its own times, in ns.
const mostHeld = int64(time.Minute)

// answered reports whether a packet is an answer of a reflector. An answer has a time of receipt up to a minute before
// the time of sending. A request has zeros there, or padding of TWAMP Light.
func answered(b []byte, m Mode) bool {
	var a Answer
	if a.Decode(b, m) != nil || a.Received == 0 {
		return false
	}
	received, _ := a.Received.nanos(a.Error.PTP()) // Decode has looked
	went, _ := a.Time.nanos(a.Error.PTP())
	return went >= received && went-received <= mostHeld
}

// pass takes a token from the bucket of answers, which is full at first.
func (r *Reflector) pass(now int64) bool {
	r.tokens = max(r.tokens-max(float64(now-r.filled)/1e9, 0)*r.Rate, 0)
	r.filled = now
	if r.tokens+1 > r.Rate {
		return false
	}
	r.tokens++
	return true
}

// session finds or begins the session of a request; nil without state.
func (r *Reflector) session(q *Request, a *Arrival, now int64) (*reflected, error) {
	if !r.Stateful {
		return nil, nil
	}
	k := sessionKey{a.From, a.To, q.SSID}
	e := r.known[k]
	if e == nil {
		if last := r.order.Back(); last != nil && r.order.Len() >= r.Sessions {
			if x := last.Value.(*reflected); now-x.heard < idle {
				return nil, refuse("session", 0, NoRoom)
			}
			delete(r.known, r.order.Remove(last).(*reflected).key)
		}
		if r.known == nil {
			r.known = map[sessionKey]*list.Element{}
		}
		e = r.order.PushFront(&reflected{key: k})
		r.known[k] = e
	}
	r.order.MoveToFront(e)
	s := e.Value.(*reflected)
	s.heard = now
	s.received++
	return s, nil
}

// extend writes the reflector's part into the extensions of an answer, and returns its type of service. Extensions with
// a wrong digest come back unchanged, with the flag for that.
func (r *Reflector) extend(tail []byte, m Mode, guard *protection, a *Arrival, s *reflected, clock ErrorEstimate) (tos uint8) {
	tos = a.TOS
	for t := range tlvs(tail) {
		flags := &tail[t.At]
		if !guard.whole {
			*flags |= byte(integrity)
			continue
		}
		*flags &^= byte(unrecognised | malformed | integrity)
		known, right := true, !t.cut
		switch v := t.Value; t.Type {
		case extraPadding:
		case HMAC:
			known = m == Authenticated
		case location:
			right = right && locate(v, a)
		case timestampInfo:
			if right = right && len(v) >= infoLen; right {
				source := byte(syncLocal)
				if clock.synced() {
					source = syncNTP
				}
				copy(v, []byte{source, bySW, source, bySW})
			}
		case classOfService:
			var c cos
			if right = right && c.Decode(v); right {
				tos = c.Asked<<2 | a.TOS&3
				c.arrived, c.ecn, c.rejected = a.TOS>>2, a.TOS&3, 0
				c.put(v)
			}
		case directMeasurement:
			if right = right && len(v) == directLen; right && s != nil {
				be.PutUint32(v[4:], s.received)
				be.PutUint32(v[8:], s.sent)
			}
		default:
			known = false
		}
		if !known {
			*flags |= byte(unrecognised)
		}
		if !right {
			*flags |= byte(malformed)
		}
	}
	return tos
}

// locate answers a location: ports, and the addresses of its parts.
func locate(v []byte, a *Arrival) (right bool) {
	if len(v) < placeLen {
		return false
	}
	parts := v[placeLen:]
	for t := range tlvs(parts) {
		if t.cut || (t.Type == destinationIP || t.Type == sourceIP) && len(t.Value) != addrLen {
			return false
		}
	}
	be.PutUint16(v, a.To.Port())
	be.PutUint16(v[2:], a.From.Port())
	for t := range tlvs(parts) {
		flags := byte(0)
		switch t.Type {
		case destinationIP:
			parts[t.At+1] = byte(address(t.Value, a.To.Addr(), destinationIPv4, destinationIPv6))
		case sourceIP:
			parts[t.At+1] = byte(address(t.Value, a.From.Addr(), sourceIPv4, sourceIPv6))
		default:
			flags = byte(unrecognised)
		}
		parts[t.At] = parts[t.At]&^byte(unrecognised|malformed|integrity) | flags
	}
	return true
}

// address writes an address into the value of a part, and returns the resulting type.
func address(v []byte, x netip.Addr, v4, v6 Type) Type {
	clear(v)
	if x = x.Unmap(); x.Is4() {
		copy(v, x.AsSlice())
		return v4
	}
	copy(v, x.AsSlice())
	return v6
}
