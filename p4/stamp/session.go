package stamp

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/hopscope/hopscope/decode"
)

// Plan holds the settings of the sender of a session.
type Plan struct {
	SSID     uint16
	Size     int           // of packets, in bytes of UDP payload
	Interval time.Duration // between two requests
	Timeout  time.Duration // after which an answer is lost, or late
	PTP      bool          // write times of PTP, and not of NTP
	CoS      bool          // ask for answers with DSCP, and for the DSCP that came
	DSCP     uint8
	Keys     *Keys // of authenticated packets; nil for packets without digests
	// Stateful reflectors number their answers themselves, by which losses have a direction.
	Stateful bool
}

// mostSlots are the requests that a session remembers.
const mostSlots = 1 << 16

// Check finds what is wrong with p.
func (p *Plan) Check() error {
	if p.Interval <= 0 || p.Timeout <= 0 || p.Timeout/p.Interval > mostSlots/4 {
		return fmt.Errorf("interval: %d requests would wait for their answers, more than %d; raise it, or lower timeout", p.Timeout/max(p.Interval, 1), mostSlots/4)
	}
	if least := p.least(); p.Size != least && p.Size < least+tlvLen || p.Size > MostLen {
		return fmt.Errorf("size: %d bytes; packets like these have %d, or %d to %d", p.Size, least, least+tlvLen, MostLen)
	}
	return nil
}

// least is the size of packets without padding.
func (p *Plan) least() int {
	n := Mode(p.Keys != nil).Len()
	if p.CoS {
		n += tlvLen + cosLen
	}
	if p.Keys != nil && p.CoS { // padding needs no digest
		n += tlvLen + macLen
	}
	return n
}

// SetSize makes the packets as short as they can be, where no size is given.
func (p *Plan) SetSize() {
	if p.Size == 0 {
		p.Size = p.least()
	}
}

// Counts are what became of the requests of a session. One whose answer is awaited is sent, and nothing else.
type Counts struct {
	Sent      uint64
	Received  uint64 // answers, each counted once, with those that were late
	Lost      uint64 // requests without an answer within the timeout; one that comes late is taken off again
	Late      uint64 // answers after the timeout
	Twice     uint64 // answers that came again, and answers to requests that came again
	Reordered uint64 // answers behind those of later requests
	Corrupt   uint64 // answers that were refused, and those whose padding was changed
	Restarts  uint64 // of the reflector's numbers

	// Forward and Back are the lost requests and the lost answers, as far as the numbers of a stateful reflector show
	// it.
	Forward, Back uint64
	Remarked      uint64 // requests that came to the reflector with another DSCP than they were sent with

	Missed uint64 // requests that were lost at some time, with those whose answers came late

	// Refused answers by reason.
	Refused [NumReasons]uint64

	Ways
}

// Ways are the delays of answers, since the last [Session.DrainWays].
type Ways struct {
	// Trip is the round trip without the time in the reflector, which rests on one clock.
	Trip, TripVariation Delays
	// Out and Home are one-way delays of answers for which both clocks follow another one by their own account.
	Out, Home Delays
	// Unlikely are one-way delays below 0: the clocks are off by more.
	Unlikely uint64
	// OutVariation and HomeVariation are differences between packets that follow each other, in which a constant difference of the clocks is none.
	OutVariation, HomeVariation Delays
	// ClockError is the greatest sum of both clocks' own estimates, by which one-way delays may be off; 0 without any.
	ClockError time.Duration
}

// State of a slot.
const (
	free = iota
	awaited
	lost
	received
	spoiled
)

// slot is a request that was sent.
type slot struct {
	state  uint8
	timed  bool // no clock was set since
	seq    uint32
	number uint32 // of the answer that came
	sent   Timestamp
	wall   int64 // ns since 1970
	due    int64 // when it is lost, ns by a clock that is never set
}

// Session is the sender of a session. It has one user at a time.
type Session struct {
	Plan
	Counts
	mode    Mode
	slots   []slot
	next    uint32 // number of the next request
	oldest  uint32 // of the requests that may be awaited
	begun   bool   // an answer came
	highest uint32 // number of the latest request that has an answer
	last    trip   // of that
	silence uint64 // requests in a row that were lost
	padding []byte
	given   Counts // that Since has returned
	trips   Delays // since then
	hops    int    // routers on the way out, by the latest answer with that number
	looked  bool
	offset  int64 // of the clock that can be set from the one that cannot, in ns

	numbers numbers
}

// trip is the way of an answer, from its fields.
type trip struct {
	seq             uint32
	out, home, both int64
}

// mostSeen is the number of the greatest numbers of a reflector whose arrival a session remembers.
const mostSeen = 1024

// numbers follows the numbers of a stateful reflector.
type numbers struct {
	known        bool
	seq, request uint32 // the greatest number of an answer, and the latest request that has an answer
	base, low    uint32 // of the first answer
	twice        uint32 // requests that came to the reflector again
	behind       int    // later requests with no greater number, in a row
	proof        int    // of these, the ones whose numbers no reordering explains
	seen         [mostSeen / 64]uint64
	past         uint64 // requests that were lost on their way before the numbers began anew
	unknown      uint32 // losses whose direction no number shows
	next         uint32 // the first request behind those before
}

// NewSession begins a session at request 0.
func NewSession(p Plan) (*Session, error) {
	p.SetSize()
	if err := p.Check(); err != nil {
		return nil, err
	}
	n := max(int(4*p.Timeout/p.Interval), 64)
	s := &Session{Plan: p, mode: Mode(p.Keys != nil), slots: make([]slot, 1<<bits.Len(uint(n-1)))}
	if k := p.Size - p.least() - tlvLen; k >= 0 {
		s.padding = make([]byte, k)
		for x, i := uint32(p.SSID)+1, 0; i < k; i++ { // pseudo-random, and the same in every packet
			x = x*1664525 + 1013904223
			s.padding[i] = byte(x >> 24)
		}
	}
	return s, nil
}

// at is the slot of a number.
func (s *Session) at(seq uint32) *slot { return &s.slots[int(seq)&(len(s.slots)-1)] }

// Append appends the next request, sent at a time in ns since 1970 and at one by a clock that is never set. Clock is the estimate of the clock.
func (s *Session) Append(dst []byte, now, mono int64, clock ErrorEstimate) []byte {
	if s.PTP {
		clock |= isPTP
	} else {
		clock &^= isPTP
	}
	s.Look(now, mono)
	s.Turn(mono)
	q := Request{Seq: s.next, Time: newTimestamp(now, s.PTP), Error: clock, SSID: s.SSID}
	*s.at(s.next) = slot{state: awaited, timed: true, seq: s.next, sent: q.Time, wall: now, due: mono + int64(s.Timeout)}
	s.next++
	s.Sent++
	from := len(dst)
	dst = q.Append(dst, s.mode)
	if s.CoS {
		dst = appendCoS(dst, s.DSCP)
	}
	if s.CoS && s.Keys != nil {
		at := len(dst) - from - signedLen
		dst = appendTLV(dst, HMAC, make([]byte, macLen))
		s.Keys.protect(dst[from:], at, 0)
	}
	if s.padding != nil { // behind the digest: how much it covers of padding before it is read in two ways
		dst = appendTLV(dst, extraPadding, s.padding)
	}
	if s.Keys != nil {
		s.Keys.Sign(dst[from:], 0)
	}
	return dst
}

// Unsent takes back the last request, which no socket took. Its time may be over already, where the socket let the sender wait.
func (s *Session) Unsent() {
	s.next--
	s.Sent--
	x := s.at(s.next)
	if x.state == lost {
		s.Lost--
		s.Missed--
		s.silence -= min(s.silence, 1) // an answer may have ended it
	}
	x.state = free
	if s.oldest == s.next+1 {
		s.oldest = s.next
	}
}

// mostMove is the largest drift of the settable clock against the monotonic one, in ns, that does not mean that the
// first was set. Slewing affects both.
const mostMove = int64(time.Millisecond)

// Look takes the times of both clocks, as Append does. Where the first one was set since the last call, what is on its way has no delay. A session
// whose clock may be set calls it before Take.
func (s *Session) Look(now, mono int64) {
	off := now - mono
	if s.looked && abs(off-s.offset) > mostMove {
		s.stepped()
	}
	s.looked, s.offset = true, off
}

// stepped notes that the clock was set: requests under way have no delay.
func (s *Session) stepped() {
	for k := range s.slots {
		s.slots[k].timed = false
	}
	s.last = trip{}
}

// mostTTL is the TTL with which requests are sent.
const mostTTL = 255

// Routers are those that requests pass, by their TTL at the reflector where they are sent with 255; 0 while that is not known.
func (s *Session) Routers() int { return s.hops }

// Silence is the number of consecutive lost requests, up to the last one whose time is over, since the latest one with
// an answer.
func (s *Session) Silence() uint64 { return s.silence }

// DrainWays returns the delays since the last call.
func (s *Session) DrainWays() Ways {
	w := s.Ways
	s.Ways = Ways{}
	return w
}

// Since returns the outcomes of requests since the last call, without path and epoch.
func (s *Session) Since() (p decode.ProbeCounts) {
	now, was := &s.Counts, &s.given
	for _, x := range [...]struct {
		to       *uint32
		now, was uint64
	}{
		{&p.Sent, now.Sent, was.Sent}, {&p.Received, now.Received, was.Received}, {&p.Missed, now.Missed, was.Missed}, {&p.Late, now.Late, was.Late},
		{&p.Twice, now.Twice, was.Twice}, {&p.Corrupt, now.Corrupt, was.Corrupt}, {&p.Reordered, now.Reordered, was.Reordered},
	} {
		*x.to = uint32(min(x.now-min(x.was, x.now), math.MaxUint32))
	}
	p.Forward, p.Back = int32(now.Forward-was.Forward), int32(now.Back-was.Back)
	p.Delays = s.trips.codes(nil)
	s.trips = Delays{}
	was.Sent, was.Received, was.Missed, was.Late, was.Twice = now.Sent, now.Received, now.Missed, now.Late, now.Twice
	was.Corrupt, was.Reordered, was.Forward, was.Back = now.Corrupt, now.Reordered, now.Forward, now.Back
	return p
}

// Turn counts what is lost by a time of the clock that is never set.
func (s *Session) Turn(mono int64) {
	for ; s.oldest != s.next; s.oldest++ {
		x := s.at(s.oldest)
		if x.seq != s.oldest || x.state == free {
			continue
		}
		if x.due > mono {
			break
		}
		if x.state == awaited {
			x.state = lost
			s.Lost++
			s.Missed++
			if !s.begun || int32(s.oldest-s.highest) > 0 { // an answer to a later one ended it
				s.silence++
			}
		}
	}
	s.direct()
}

// Receive counts a packet that came from the reflector at a time in ns since 1970. A refused packet returns an [Error],
// and is counted.
func (s *Session) Receive(b []byte, at int64) error {
	err := s.receive(b, at)
	s.direct()
	if e, ok := errors.AsType[*Error](err); ok {
		s.Refused[e.Reason]++
		s.Corrupt++
	}
	return err
}

func (s *Session) receive(b []byte, at int64) error {
	place, err := s.Keys.open(b)
	if err != nil {
		return err
	}
	var a Answer
	if err := a.Decode(b, s.mode); err != nil {
		return err
	}
	f := layouts[s.mode]
	x := s.at(a.SenderSeq)
	switch {
	case x.state == free || x.seq != a.SenderSeq:
		return refuse("session_sender_sequence_number", f.senderSeq, BadEcho)
	case x.sent != a.SenderTime:
		return refuse("session_sender_timestamp", f.senderTime, BadEcho)
	case a.SSID != s.SSID && a.SSID != 0: // TWAMP Light has none
		return refuse("ssid", f.ssid, BadEcho)
	}
	if x.state == received || x.state == spoiled {
		s.Twice++
		if a.Seq != x.number { // the reflector has counted the request once more
			s.numbers.twice++
			s.number(&a)
		}
		return nil
	}
	s.silence = 0
	if err := s.tail(b, place); err != nil {
		if x.state == lost {
			s.Lost--
		}
		x.state, x.number = spoiled, a.Seq
		s.number(&a)
		return err
	}
	s.Received++
	if x.state == lost {
		s.Late++
		s.Lost--
	}
	x.state, x.number = received, a.Seq
	ahead := !s.begun || int32(a.SenderSeq-s.highest) > 0
	if !ahead {
		s.Reordered++
	}
	s.number(&a)
	if a.TTL > 0 {
		s.hops = mostTTL - int(a.TTL)
	}
	if x.timed {
		s.measure(&a, x, at, ahead)
	}
	if ahead {
		s.begun, s.highest = true, a.SenderSeq
	}
	return nil
}

// tail checks the extensions of an answer.
func (s *Session) tail(b []byte, place int) error {
	n := s.mode.Len()
	if len(b) <= n {
		return nil // also of a reflector without extensions
	}
	if s.Keys != nil && !s.Keys.protected(b, place).whole {
		return refuse("hmac_tlv", n, BadMAC)
	}
	for t := range tlvs(b[n:]) {
		if t.flags&unrecognised != 0 {
			continue // the reflector left it as it was
		}
		if t.cut || t.flags&(malformed|integrity) != 0 {
			return refuse("tlv", n+t.At, BadTLV)
		}
		switch t.Type {
		case extraPadding:
			if !bytes.Equal(t.Value, s.padding) {
				return refuse("extra_padding", n+t.At, BadTLV)
			}
		case classOfService:
			var c cos
			if !c.Decode(t.Value) {
				return refuse("class_of_service", n+t.At, BadTLV)
			}
			if c.arrived != s.DSCP {
				s.Remarked++
			}
		}
	}
	return nil
}

// measure adds the delays of an answer.
func (s *Session) measure(a *Answer, x *slot, at int64, ahead bool) {
	ptp := a.Error.PTP()
	t2, _ := a.Received.nanos(ptp) // Decode has looked
	t3, _ := a.Time.nanos(ptp)
	y := trip{seq: a.SenderSeq, out: t2 - x.wall, home: at - t3}
	y.both = at - x.wall - (t3 - t2)
	if y.both < 0 || t3 < t2 {
		return // one of the clocks was set meanwhile
	}
	s.Trip.Add(time.Duration(y.both))
	s.trips.Add(time.Duration(y.both))
	own, _ := a.senderError.bound()
	other, ok := a.Error.bound()
	if a.senderError.synced() && a.Error.synced() && ok {
		s.ClockError = max(s.ClockError, own+min(other, math.MaxInt64-own))
		if y.out < 0 || y.home < 0 {
			s.Unlikely++
		} else {
			s.Out.Add(time.Duration(y.out))
			s.Home.Add(time.Duration(y.home))
		}
	}
	if s.begun && ahead && s.last.seq == a.SenderSeq-1 && s.last.both > 0 {
		s.TripVariation.Add(time.Duration(abs(y.both - s.last.both)))
		out, home := abs(y.out-s.last.out), abs(y.home-s.last.home)
		if max(out, home) <= max(y.both, s.last.both) { // no way is longer than the round trip, unless the reflector's clock was set
			s.OutVariation.Add(time.Duration(out))
			s.HomeVariation.Add(time.Duration(home))
		}
	}
	if ahead {
		s.last = y
	}
}

func abs(x int64) int64 { return max(x, -x) }

// restart is how many later requests in a row have numbers that came before, or are far below, until the numbers have begun anew.
const restart = 4

// number follows the numbers of the reflector by an answer whose request is known.
func (s *Session) number(a *Answer) {
	n := &s.numbers
	if !s.Stateful {
		return
	}
	if !n.known {
		between := uint32(max(int32(a.SenderSeq-n.next), 0))
		*n = numbers{known: true, seq: a.Seq, request: a.SenderSeq, base: a.Seq, low: a.SenderSeq, past: n.past, unknown: n.unknown + between}
		n.see(a.Seq)
		return
	}
	later, greater := int32(a.SenderSeq-n.request) > 0, int32(a.Seq-n.seq) > 0
	switch {
	case later && !greater:
		n.behind++
		if n.see(a.Seq) {
			n.proof++
		}
		if n.proof < restart {
			return
		}
	case later && int32(a.Seq-n.base-(a.SenderSeq-n.low)-n.twice) > restart: // more than the requests
	default:
		if later {
			n.request, n.behind, n.proof = a.SenderSeq, 0, 0
		}
		if greater {
			for k := range min(a.Seq-n.seq, mostSeen) {
				n.seen[(a.Seq-k)/64%(mostSeen/64)] &^= 1 << ((a.Seq - k) % 64)
			}
			n.seq = a.Seq
		}
		n.see(a.Seq)
		return
	}
	s.Restarts++
	n.past += uint64(n.forward())
	n.next = n.request + 1 + uint32(max(n.behind-1, 0))
	n.known = false
	s.number(a)
}

// see notes a number, and reports whether that came before, or is so far below the greatest one that no reordering brings it.
func (n *numbers) see(seq uint32) (old bool) {
	if n.seq-seq >= mostSeen {
		return true
	}
	word, bit := &n.seen[seq/64%(mostSeen/64)], uint64(1)<<(seq%64)
	old = *word&bit != 0
	*word |= bit
	return old
}

// forward is how many requests were lost since the numbers began: the reflector counts those that come to it. All of them go round.
func (n *numbers) forward() uint32 {
	asked, counted := n.request-n.low, n.seq-n.base-n.twice
	return uint32(max(int32(asked-counted), 0))
}

// direct decides which of the losses were of requests, and which of answers. For those before the first answer and
// behind the latest, it is unknown.
func (s *Session) direct() {
	n := &s.numbers
	if !n.known {
		return
	}
	unknown := uint64(n.unknown) + uint64(max(int32(s.oldest-n.request-1), 0))
	directed := s.Lost - min(unknown, s.Lost)
	s.Forward = min(n.past+uint64(n.forward()), directed)
	s.Back = directed - s.Forward
}
