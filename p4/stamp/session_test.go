package stamp

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
)

// pair is a session and its reflector, whose clock is ahead, with a network between them that a test is.
type pair struct {
	t     *testing.T
	s     *Session
	r     Reflector
	now   int64
	ahead int64
	clock ErrorEstimate
}

func pairOf(t *testing.T, p Plan) *pair {
	t.Helper()
	x := &pair{t: t, now: testNow, clock: NewErrorEstimate(true, false, 1000)}
	x.r = Reflector{Stateful: p.Stateful, Sessions: 8, Rate: 1e9}
	if p.Keys != nil {
		x.r.Keys = keysOf(t, peerKey)
	}
	if p.Interval == 0 {
		p.Interval, p.Timeout = 10*time.Millisecond, 100*time.Millisecond
	}
	s, err := NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	x.s = s
	return x
}

// ask sends a request.
func (x *pair) ask() []byte { return x.s.Append(nil, x.now, x.now-testNow, x.clock) }

// answer is what the reflector says to a request that was on its way for so long.
func (x *pair) answer(q []byte, way time.Duration) []byte {
	x.t.Helper()
	a := testArrival
	a.At = x.now + int64(way) + x.ahead
	b, _, err := x.r.Reply(nil, q, &a, a.At+50_000, x.clock)
	if err != nil {
		x.t.Fatal(err)
	}
	return b
}

// receive gives the session an answer that was on its way for so long.
func (x *pair) receive(b []byte, way time.Duration) {
	x.t.Helper()
	if err := x.s.Receive(b, x.now+int64(way)); err != nil {
		x.t.Error(err)
	}
}

// pass lets an interval go by.
func (x *pair) pass() { x.now += int64(x.s.Interval) }

// over lets the time of all answers go by.
func (x *pair) over() {
	x.now += int64(x.s.Timeout)
	x.s.Turn(x.now - testNow)
}

// Each loss is counted in its direction, and so are duplicates, on either way; what is behind the latest answer has no direction yet.
func TestSessionDirections(t *testing.T) {
	for _, keys := range []*Keys{nil, keysOf(t, peerKey)} {
		r := rand.New(rand.NewPCG(7, 8))
		x := pairOf(t, Plan{Stateful: true, Keys: keys, SSID: 4})
		var forward, back, twice uint64
		for n := range 20_000 {
			q := x.ask()
			kind := r.IntN(20)
			if n == 0 || n == 19_999 {
				kind = 19 // the ends are answered
			}
			switch kind {
			case 0, 1:
				forward++
			case 2:
				x.answer(q, 1000)
				back++
			case 3: // the request came again
				a, b := x.answer(q, 1000), x.answer(q, 2000)
				x.receive(a, 200_000)
				x.receive(b, 210_000)
				twice++
			case 4: // the answer came again, as one that is replayed
				a := x.answer(q, 1000)
				x.receive(a, 200_000)
				x.receive(a, 300_000)
				twice++
			default:
				x.receive(x.answer(q, 1000), 200_000)
			}
			x.pass()
		}
		x.over()
		c := &x.s.Counts
		if c.Sent != 20_000 || c.Received != 20_000-forward-back || c.Lost != forward+back || c.Forward != forward || c.Back != back || c.Twice != twice ||
			c.Late+c.Reordered+c.Corrupt+c.Restarts != 0 {
			t.Errorf("%+v\nlost %d and %d, %d twice", c, forward, back, twice)
		}
		for range 10 {
			x.ask()
			x.pass()
		}
		x.over()
		if c.Lost != forward+back+10 || c.Forward != forward || c.Back != back {
			t.Errorf("behind the latest answer: %d lost, %d and %d", c.Lost, c.Forward, c.Back)
		}
		x.receive(x.answer(x.ask(), 1000), 200_000)
		x.pass()
		x.s.Turn(x.now - testNow)
		if c.Forward != forward+10 || c.Back != back {
			t.Errorf("with an answer behind: %d and %d", c.Forward, c.Back)
		}
	}
}

// What became of requests is given once: losses that turn out to be none are taken off again, and what came late is added.
func TestSessionSince(t *testing.T) {
	x := pairOf(t, Plan{Stateful: true, Size: 100})
	var late []byte
	for n := range 7 {
		q := x.ask()
		switch n {
		case 1: // lost
		case 2: // its answer is
			x.answer(q, 1000)
		case 3: // comes again
			a, b := x.answer(q, 1000), x.answer(q, 2000)
			x.receive(a, 200_000)
			x.receive(b, 210_000)
		case 4:
			late = x.answer(q, 1000)
		case 5:
			a := x.answer(q, 1000)
			a[len(a)-1] ^= 1
			wants(t, x.s.Receive(a, x.now+200_000), "extra_padding", requestLen, BadTLV)
		default:
			x.receive(x.answer(q, 1000), 200_000)
		}
		x.pass()
	}
	x.over()
	trip := decode.DelayCode(150_000) // it is 50 µs in the reflector
	for _, want := range []decode.ProbeCounts{
		{Sent: 7, Received: 3, Missed: 3, Twice: 1, Corrupt: 1, Forward: 1, Back: 2, Delays: []decode.DelayCount{{Code: trip, Count: 3}}},
		{Received: 1, Late: 1, Reordered: 1, Back: -1, Delays: []decode.DelayCount{{Code: decode.DelayCode(uint64(3*x.s.Interval+x.s.Timeout) + 150_000), Count: 1}}},
		{},
	} {
		if got := x.s.Since(); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
		if late != nil {
			x.receive(late, 200_000)
			late = nil
		}
	}
}

// The routers on the way are known from the latest answer that has a TTL.
func TestSessionRouters(t *testing.T) {
	x := pairOf(t, Plan{})
	for _, c := range []struct {
		ttl  uint8
		want int
	}{{0, 0}, {250, 5}, {0, 5}, {1, 254}} {
		a := testArrival
		a.At, a.TTL = x.now+1000, c.ttl
		b, _, err := x.r.Reply(nil, x.ask(), &a, a.At, x.clock) // in no time
		if err != nil {
			t.Fatal(err)
		}
		x.receive(b, 200_000)
		if x.s.Routers() != c.want {
			t.Errorf("%d routers by a TTL of %d, want %d", x.s.Routers(), c.ttl, c.want)
		}
		x.pass()
	}
	if x.s.Trip.Count != 4 {
		t.Errorf("%d delays of 4 answers that the reflector sent at once", x.s.Trip.Count)
	}
}

// Before and behind a moment in which the clock was set there is no variation.
func TestSessionStepped(t *testing.T) {
	for _, set := range []bool{false, true} {
		x := pairOf(t, Plan{})
		for n := range 2 {
			if n == 1 && set {
				x.s.stepped()
			}
			x.receive(x.answer(x.ask(), 1000), 200_000)
			x.pass()
		}
		if n := x.s.TripVariation.Count; n == 0 != set {
			t.Errorf("%d variations, with a clock that was set: %v", n, set)
		}
	}
}

// A reflector that begins anew counts on from there: what was said of losses stays.
func TestSessionRestart(t *testing.T) {
	x := pairOf(t, Plan{Stateful: true})
	for n := range 60 {
		if n == 20 || n == 40 {
			x.r = Reflector{Stateful: true, Sessions: 8, Rate: 1e9}
		}
		q := x.ask()
		if n%10 != 5 {
			x.receive(x.answer(q, 1000), 200_000)
		}
		x.pass()
	}
	x.over()
	if c := &x.s.Counts; c.Lost != 6 || c.Forward+c.Back > 6 || c.Forward < 4 || c.Back != 0 || c.Restarts != 2 {
		t.Errorf("%+v", c)
	}
	y := pairOf(t, Plan{Stateful: false})
	y.ask()
	y.pass()
	y.receive(y.answer(y.ask(), 1000), 200_000)
	y.over()
	if c := &y.s.Counts; c.Lost != 1 || c.Forward+c.Back != 0 {
		t.Errorf("without numbers losses have a direction: %+v", c)
	}
}

// Every request of a network that does not answer is lost.
func TestSessionSilence(t *testing.T) {
	x := pairOf(t, Plan{Stateful: true})
	for range 1000 {
		x.ask()
		x.pass()
	}
	x.over()
	if c := &x.s.Counts; c.Sent != 1000 || c.Lost != 1000 || c.Received+c.Forward+c.Back != 0 {
		t.Errorf("%+v", c)
	}
}

// Answers that overtake are in order, those that are overtaken are not; what comes after the timeout was lost, and is late.
func TestSessionOrder(t *testing.T) {
	x := pairOf(t, Plan{Stateful: true})
	var held [][]byte
	for n := range 20 {
		a := x.answer(x.ask(), 1000)
		if n == 5 || n == 6 {
			held = append(held, a)
		} else {
			x.receive(a, 200_000)
		}
		if n == 7 {
			x.receive(held[0], 300_000)
		}
		x.pass()
	}
	if c := &x.s.Counts; c.Reordered != 1 || c.Lost != 1 || c.Back != 1 || c.Received != 19 {
		t.Errorf("%+v", c)
	}
	x.receive(held[1], 0)
	if c := &x.s.Counts; c.Reordered != 2 || c.Lost != 0 || c.Late != 1 || c.Received != 20 || c.Forward+c.Back != 0 {
		t.Errorf("%+v", c)
	}
	x.over()
	if c := &x.s.Counts; c.Lost != 0 || c.Forward+c.Back != 0 {
		t.Errorf("%+v", c)
	}
	x.ask()
	x.s.Unsent()
	x.over()
	if c := &x.s.Counts; c.Sent != 20 || c.Lost != 0 {
		t.Errorf("what was not sent is lost: %+v", c)
	}
}

// What does not repeat the request, has no digest, or was changed on the way is refused by its reason and moves no other count.
func TestSessionForged(t *testing.T) {
	x := pairOf(t, Plan{Stateful: true, SSID: 7, Size: 80})
	good := x.answer(x.ask(), 1000)
	for _, c := range []struct {
		field  string
		at     int
		why    Reason
		change func(b []byte) []byte
	}{
		{"length", 40, Short, func(b []byte) []byte { return b[:40] }},
		{"session_sender_sequence_number", 24, BadEcho, func(b []byte) []byte { b[27]++; return b }},
		{"session_sender_sequence_number", 24, BadEcho, func(b []byte) []byte { b[24] = 0xff; return b }},
		{"session_sender_timestamp", 28, BadEcho, func(b []byte) []byte { b[35] ^= 1; return b }},
		{"ssid", 14, BadEcho, func(b []byte) []byte { b[15]++; return b }},
		{"receive_timestamp", 16, BadTime, func(b []byte) []byte { b[12], b[8], b[20] = 0x40, 0, 0xff; return b }},
	} {
		before := x.s.Counts
		wants(t, x.s.Receive(c.change(append([]byte(nil), good...)), x.now+200_000), c.field, c.at, c.why)
		before.Corrupt++
		before.Refused[c.why]++
		if x.s.Counts != before {
			t.Errorf("%s: %+v", c.field, x.s.Counts)
		}
	}
	bad := append([]byte(nil), good...)
	bad[60] ^= 4 // of the padding
	wants(t, x.s.Receive(bad, x.now+200_000), "extra_padding", 44, BadTLV)
	x.over()
	if c := &x.s.Counts; c.Received != 0 || c.Lost != 0 || c.Corrupt != 7 {
		t.Errorf("%+v", c) // it came, and was not lost
	}
	y := pairOf(t, Plan{Keys: keysOf(t, peerKey), CoS: true, Size: 200})
	good = y.answer(y.ask(), 1000)
	for at := range signedLen {
		bad := append([]byte(nil), good...)
		bad[at] ^= 0x10
		if err := y.s.Receive(bad, y.now); !errors.Is(err, BadMAC) {
			t.Fatalf("byte %d: %v", at, err)
		}
	}
	bad = append([]byte(nil), good...)
	bad[signedLen+4] ^= 0x80 // of the class of service
	wants(t, y.s.Receive(bad, y.now), "hmac_tlv", 112, BadMAC)
	if c := &y.s.Counts; c.Received != 0 || c.Refused[BadMAC] != signedLen+1 {
		t.Errorf("%+v", c)
	}
}

// The round trip is without the time in the reflector and whatever the clocks say; one-way delays need two clocks that follow another.
func TestSessionDelays(t *testing.T) {
	for _, c := range []struct {
		name       string
		ahead      time.Duration
		clock      ErrorEstimate
		oneWay     bool
		unlikely   bool
		ptp, light bool
	}{
		{"synchronised", 0, NewErrorEstimate(true, false, time.Millisecond), true, false, false, false},
		{"with PTP", 0, NewErrorEstimate(true, false, time.Millisecond), true, false, true, false},
		{"synchronised, and wrong", time.Hour, NewErrorEstimate(true, false, time.Millisecond), false, true, false, false},
		{"free", -time.Hour, NewErrorEstimate(false, false, time.Hour), false, false, false, false},
		{"an answer of TWAMP Light", 0, NewErrorEstimate(true, false, time.Millisecond), true, false, false, true},
	} {
		x := pairOf(t, Plan{Stateful: true, PTP: c.ptp, SSID: 3})
		x.ahead, x.clock = int64(c.ahead), c.clock
		for n := range 10 {
			way := time.Duration(100+10*(n%2)) * time.Microsecond
			a := x.answer(x.ask(), way)
			if c.light {
				a = a[:lightLen]
				a[14], a[15] = 0, 0
			}
			x.receive(a, way+50*time.Microsecond+300*time.Microsecond)
			x.pass()
		}
		s := &x.s.Counts
		if s.Received != 10 || s.Trip.Count != 10 || s.Trip.Max != 410*time.Microsecond || s.TripVariation.Max != 10*time.Microsecond || s.TripVariation.Count != 9 ||
			s.OutVariation.Max != 10*time.Microsecond || s.HomeVariation.Max != 0 || s.OutVariation.Count != 9 {
			t.Errorf("%s: %+v", c.name, s)
		}
		if got := s.Out.Count == 10 && s.Out.Max == 110*time.Microsecond && s.Home.Max == 300*time.Microsecond; got != c.oneWay || !got && s.Out.Count+s.Home.Count > 0 {
			t.Errorf("%s: one-way delays: %d, %v, %v", c.name, s.Out.Count, s.Out.Max, s.Home.Max)
		}
		if (s.Unlikely == 10) != c.unlikely || (s.ClockError >= 2*time.Millisecond) != (c.oneWay || c.unlikely) {
			t.Errorf("%s: %d unlikely, %v", c.name, s.Unlikely, s.ClockError)
		}
	}
	// A clock that is set between request and answer gives no delay.
	x := pairOf(t, Plan{})
	a := x.answer(x.ask(), 1000)
	x.s.stepped()
	x.receive(a, time.Hour)
	if c := &x.s.Counts; c.Received != 1 || c.Trip.Count != 0 {
		t.Errorf("%+v", c)
	}
}

// What the session says of silence, of what was lost at some time, and of delays since they were taken.
func TestSessionSays(t *testing.T) {
	x := pairOf(t, Plan{})
	for n := range 5 {
		q := x.ask()
		if n == 2 {
			x.receive(x.answer(q, 1000), 200_000)
		}
		x.pass()
	}
	if x.s.Silence() != 0 {
		t.Errorf("%d are silent before their time", x.s.Silence())
	}
	x.over()
	if x.s.Silence() != 2 || x.s.Missed != 4 { // those before the one that has an answer are lost, and no silence
		t.Errorf("%d in a row, %d missed", x.s.Silence(), x.s.Missed)
	}
	x.receive(x.answer(x.ask(), 1000), 200_000)
	if x.s.Silence() != 0 {
		t.Errorf("%d in a row", x.s.Silence())
	}
	if w := x.s.DrainWays(); w.Trip.Count != 2 || x.s.Trip.Count != 0 || x.s.Received != 2 {
		t.Errorf("%v, then %v", w.Trip, x.s.Trip)
	}
	// A request that no socket took has its number again, and its answer is none.
	y := pairOf(t, Plan{})
	q := y.ask()
	y.s.Unsent()
	wants(t, y.s.Receive(y.answer(q, 1000), y.now), "session_sender_sequence_number", 24, BadEcho)
	second := y.ask()
	if second[3] != 0 || y.s.Sent != 1 {
		t.Errorf("number %d, %d sent", second[3], y.s.Sent)
	}
	// A time that is over is over at its end.
	z := pairOf(t, Plan{})
	z.ask()
	z.s.Turn(int64(z.s.Timeout) - 1)
	if z.s.Lost != 0 {
		t.Error("a request is lost before its time")
	}
	z.s.Turn(int64(z.s.Timeout))
	if z.s.Lost != 1 {
		t.Error("a request is not lost at its time")
	}
}

// One clock that follows another is not enough for one-way delays, and a way of no length is one; variation is that of neighbours.
func TestSessionClocks(t *testing.T) {
	x := pairOf(t, Plan{})
	q := x.ask()
	x.clock = NewErrorEstimate(false, false, 1000)
	x.receive(x.answer(q, 1000), 200_000)
	if x.s.Trip.Count != 1 || x.s.Out.Count != 0 || x.s.ClockError != 0 {
		t.Errorf("%+v", x.s.Counts)
	}
	q = x.ask()
	x.clock = 0xbfff // a reflector that follows another clock, and may be off by 17,000 years
	x.receive(x.answer(q, 1000), 200_000)
	if x.s.Out.Count != 0 || x.s.ClockError != 0 {
		t.Errorf("the sender's clock was free: %+v", x.s.Counts)
	}
	x.receive(x.answer(x.ask(), 1000), 200_000)
	if x.s.ClockError != math.MaxInt64 {
		t.Errorf("clocks are off by %v", x.s.ClockError)
	}
	y := pairOf(t, Plan{})
	y.receive(y.answer(y.ask(), 0), 50_000) // it is back as soon as it was answered
	if y.s.Trip.Count != 1 || y.s.Trip.Max != 0 || y.s.Out.Count != 1 || y.s.Home.Count != 1 || y.s.Unlikely != 0 {
		t.Errorf("%+v", y.s.Counts)
	}
	if err := y.s.Receive(y.answer(y.ask(), 1000), y.now+40_000); err != nil || y.s.Trip.Count != 1 || y.s.Received != 2 { // before it was answered: a clock was set
		t.Errorf("%v, %+v", err, y.s.Counts)
	}
	// The neighbour of a request that was lost, or was overtaken, has no variation.
	z := pairOf(t, Plan{})
	var held []byte
	for n := range 6 {
		a := z.answer(z.ask(), time.Duration(n)*10_000)
		switch n {
		case 2:
		case 4:
			held = a
		default:
			z.receive(a, time.Duration(n)*10_000+90_000)
		}
		z.pass()
	}
	z.receive(held, time.Millisecond)
	if z.s.TripVariation.Count != 1 || z.s.OutVariation.Count != 1 || z.s.HomeVariation.Count != 1 || z.s.OutVariation.Max != 10_000 || z.s.HomeVariation.Max != 0 {
		t.Errorf("%+v", z.s.Counts)
	}
	// Ways home that differ.
	v := pairOf(t, Plan{})
	v.receive(v.answer(v.ask(), 1000), 200_000)
	v.receive(v.answer(v.ask(), 1000), 230_000)
	if v.s.HomeVariation.Max != 30_000 || v.s.OutVariation.Max != 0 || v.s.HomeVariation.Count != 1 {
		t.Errorf("%+v", v.s.Counts)
	}
	// The format of times is that of the plan, whatever the clock's estimate says.
	for _, ptp := range []bool{false, true} {
		w := pairOf(t, Plan{PTP: ptp})
		w.clock |= isPTP
		var q Request
		if err := q.Decode(w.ask(), Open); err != nil || q.Error.PTP() != ptp || q.Time != newTimestamp(w.now, ptp) {
			t.Errorf("%+v, %v", q, err)
		}
	}
}

// A socket that lets the sender wait until the time of its request is over, and does not take it then, has lost none.
func TestSessionUnsentLate(t *testing.T) {
	x := pairOf(t, Plan{})
	x.ask()
	x.over()
	if x.s.Lost != 1 || x.s.oldest != 1 {
		t.Fatalf("%+v", x.s.Counts)
	}
	x.s.Unsent()
	if c := &x.s.Counts; c.Sent != 0 || c.Lost != 0 || c.Missed != 0 || x.s.Silence() != 0 || x.s.oldest != x.s.next {
		t.Errorf("from %d to %d: %+v", x.s.oldest, x.s.next, c)
	}
	x.receive(x.answer(x.ask(), 1000), 200_000)
	if x.s.Received != 1 {
		t.Errorf("%+v", x.s.Counts)
	}
}

// A clock that is set between request and answer gives no delay, however soon the answer comes; one that is slewed does.
func TestSessionClockSet(t *testing.T) {
	for _, c := range []struct {
		set  time.Duration
		want uint64
	}{{0, 2}, {900 * time.Microsecond, 2}, {time.Millisecond, 2}, {time.Millisecond + 1, 1}, {2 * time.Millisecond, 1}, {time.Hour, 1}, {-time.Hour, 1}} {
		x := pairOf(t, Plan{})
		answer := func(set time.Duration) {
			b := x.answer(x.ask(), 1000)
			x.now += int64(set)
			x.s.Look(x.now+200_000, x.now-int64(set)-testNow+200_000)
			x.receive(b, 200_000)
		}
		answer(c.set)
		mono := x.now - int64(c.set) - testNow + int64(x.s.Interval)
		x.now += int64(x.s.Interval)
		b := x.answer(x.s.Append(nil, x.now, mono, x.clock), 1000)
		x.s.Look(x.now+200_000, mono+200_000)
		x.receive(b, 200_000)
		if x.s.Received != 2 || x.s.Trip.Count != c.want || x.s.Trip.Max > 5*time.Millisecond {
			t.Errorf("set by %v: %d delays, at most %v", c.set, x.s.Trip.Count, x.s.Trip.Max)
		}
	}
	// A reflector whose clock is set between two requests gives no variation of either way.
	x := pairOf(t, Plan{})
	for n := range 4 {
		if n == 2 {
			x.ahead = int64(time.Second)
		}
		x.receive(x.answer(x.ask(), 1000), 200_000)
		x.pass()
	}
	if s := x.s; s.OutVariation.Count != 2 || s.HomeVariation.Count != 2 || s.TripVariation.Count != 3 || s.OutVariation.Max+s.HomeVariation.Max != 0 {
		t.Errorf("%d and %d variations, %v and %v", s.OutVariation.Count, s.HomeVariation.Count, s.OutVariation.Max, s.HomeVariation.Max)
	}
}

// Networks lose on both ways, delay by up to six intervals and repeat requests, and their reflectors go away for a
// while and restart. Losses and restarts are counted exactly, and reordering counts as neither. Losses have their
// directions, except where no number shows it.
func TestSessionNetworks(t *testing.T) {
	const ms = int64(time.Millisecond)
	type packet struct {
		at      int64
		b       []byte
		request bool
	}
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 1))
		x := pairOf(t, Plan{Stateful: true})
		jitter, repeats, restarts := []int64{0, 5, 25, 60}[seed%4], seed/4 == 1, seed/4 == 2
		var under []packet // way
		var out, home, gone, begun uint64
		send := func(b []byte, request bool) {
			under = append(under, packet{x.now + ms + r.Int64N(jitter+1)*ms, b, request})
		}
		end, back := x.now+60_000*ms, int64(0)
		for next := x.now; next < end || len(under) > 0; {
			k := -1
			for j := range under {
				if k < 0 || under[j].at < under[k].at {
					k = j
				}
			}
			if next < end && (k < 0 || next <= under[k].at) {
				x.now, next = next, next+int64(x.s.Interval)
				b := x.ask()
				if restarts && x.now > back+1000*ms && r.IntN(1000) == 0 {
					x.r = Reflector{Stateful: true, Sessions: 8, Rate: 1e9}
					begun++
					back = x.now + r.Int64N(1000)*ms
				}
				switch n := r.IntN(100); {
				case n < 5:
					out++
				case n == 5 && repeats:
					send(b, true)
					fallthrough
				default:
					send(b, true)
				}
				continue
			}
			p := under[k]
			under = slices.Delete(under, k, k+1)
			switch x.now = p.at; {
			case !p.request:
				x.receive(p.b, 0)
			case x.now < back:
				gone++
			default:
				if a := x.answer(p.b, 0); r.IntN(100) < 5 {
					home++
				} else {
					send(a, false)
				}
			}
		}
		x.now = end
		x.over()
		c := &x.s.Counts
		near := func(got, want, off uint64) bool { return got <= want+1 && got+off >= want }
		off := uint64(2)
		if repeats || restarts {
			off = out / 10
		}
		if c.Restarts != begun || !repeats && c.Lost != out+home+gone || !near(c.Lost, out+home+gone, off) || !near(c.Forward, out, off) || !near(c.Back, home, off) {
			t.Errorf("seed %d: lost %d out, %d home, %d while the reflector was away, %d restarts: %+v", seed, out, home, gone, begun, c)
		}
	}
}

// Requests and the reflector's numbers go round within a session, and what was lost keeps its direction.
func TestSessionWrap(t *testing.T) {
	x := pairOf(t, Plan{Stateful: true})
	x.receive(x.answer(x.ask(), 1000), 200_000)
	const asked, lost = 1<<32 - 40, 10 // before what follows
	x.s.Lost = lost
	x.s.numbers.low -= asked & (1<<32 - 1)
	x.s.numbers.base -= asked - lost
	for range 60 {
		x.receive(x.answer(x.ask(), 1000), 200_000)
		if c := &x.s.Counts; c.Forward != lost || c.Back != 0 || c.Restarts != 0 {
			t.Fatalf("request %d: %+v", c.Sent, c)
		}
		x.pass()
	}
}

// A reflector whose numbers jump ahead, as one whose sessions are others', begins anew; before the jump nothing changes.
func TestSessionJump(t *testing.T) {
	for _, c := range []struct {
		jump     uint32
		restarts uint64
	}{{1, 0}, {restart, 0}, {restart + 1, 1}, {1000, 1}} {
		x := pairOf(t, Plan{Stateful: true})
		for n := range 40 {
			b := x.answer(x.ask(), 1000)
			if n >= 20 {
				be.PutUint32(b, be.Uint32(b)+c.jump)
			}
			if n != 10 && n != 30 {
				x.receive(b, 200_000)
			}
			x.pass()
		}
		x.over()
		if s := &x.s.Counts; s.Restarts != c.restarts || s.Lost != 2 || s.Back != 2 || s.Forward != 0 {
			t.Errorf("a jump of %d: %+v", c.jump, s)
		}
	}
}

// Plans that cannot be are refused, and the size of packets is that of the plan.
func TestPlan(t *testing.T) {
	for _, c := range []struct {
		p    Plan
		want string
	}{
		{Plan{Size: 44}, ""}, {Plan{}, ""}, {Plan{Size: 48}, ""}, {Plan{Size: 9000}, ""}, {Plan{CoS: true, Size: 52}, ""},
		{Plan{Size: 43}, "size: 43 bytes; packets like these have 44, or 48 to 9000"}, {Plan{Size: 47}, "size: 47"}, {Plan{Size: 9001}, "size: 9001"},
		{Plan{CoS: true, Size: 44}, "have 52, or 56"}, {Plan{Keys: keysOf(t, peerKey), Size: 44}, "have 112, or"},
		{Plan{Keys: keysOf(t, peerKey), CoS: true, Size: 112}, "have 140, or"},
		{Plan{Timeout: time.Minute, Interval: time.Millisecond}, "60000 requests would wait for their answers"},
	} {
		if c.p.Interval == 0 {
			c.p.Interval, c.p.Timeout = time.Second, time.Second
		}
		s, err := NewSession(c.p)
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.p, err, c.want)
		}
		if err == nil && len(s.Append(nil, testNow, 0, 0)) != s.Size {
			t.Errorf("%+v has %d bytes", c.p, len(s.Append(nil, testNow, 0, 0)))
		}
	}
}
