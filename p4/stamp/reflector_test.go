package stamp

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"
)

const testNow = int64(1_700_000_000_000_000_000)

var testArrival = Arrival{From: netip.MustParseAddrPort("192.0.2.1:4000"), To: netip.MustParseAddrPort("192.0.2.2:862"), At: testNow, TTL: 60, TOS: 184}

// requestOf is a request in a mode, with extensions as they are.
func requestOf(m Mode, k *Keys, seq uint32, tail []byte) []byte {
	q := Request{Seq: seq, Time: newTimestamp(testNow-1000, false), Error: 0x8001, SSID: 1}
	b := append(q.Append(nil, m), tail...)
	if m == Authenticated {
		k.Sign(b, 0)
	}
	return b
}

func wants(t *testing.T, err error, field string, at int, why Reason) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Field != field || e.Offset != at || !errors.Is(err, why) {
		t.Errorf("%v, want %s at byte %d: %v", err, field, at, why)
	}
}

// What is no request of the reflector's mode, or is forged or cut, has no answer; no answer is longer than its request.
func TestReflectorRefuses(t *testing.T) {
	keys := keysOf(t, peerKey)
	open := Reflector{Rate: 1e6}
	signed := Reflector{Rate: 1e6, Keys: keysOf(t, peerKey)}
	for n := range lightLen {
		_, _, err := open.Reply(nil, make([]byte, n), &testArrival, testNow, 0)
		wants(t, err, "length", n, Short)
	}
	_, _, err := open.Reply(nil, make([]byte, MostLen+1), &testArrival, testNow, 0)
	wants(t, err, "length", MostLen, Long)
	for n := range signedLen {
		_, _, err := signed.Reply(nil, requestOf(Authenticated, keys, 1, nil)[:n], &testArrival, testNow, 0)
		wants(t, err, "length", n, Short)
	}
	for bit := range signedLen * 8 {
		b := requestOf(Authenticated, keys, 1, nil)
		b[bit/8] ^= 1 << (bit % 8)
		_, _, err := signed.Reply(nil, b, &testArrival, testNow, 0)
		wants(t, err, "hmac", 96, BadMAC)
	}
	_, _, err = signed.Reply(nil, requestOf(Authenticated, keysOf(t, "00112233445566778899aabbccddeeff"), 1, nil), &testArrival, testNow, 0)
	wants(t, err, "hmac", 96, BadMAC)
	b := requestOf(Open, nil, 1, nil)
	b[12], b[8] = 0x40, 0xff // PTP, with too many nanoseconds
	_, _, err = open.Reply(nil, b, &testArrival, testNow, 0)
	wants(t, err, "timestamp", 4, BadTime)
	served := Reflector{Rate: 1e6, Allow: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("192.0.2.2/32")}}
	_, _, err = served.Reply(nil, requestOf(Open, nil, 1, nil), &testArrival, testNow, 0)
	wants(t, err, "source", 0, NotServed)
	served.Allow = append(served.Allow, netip.MustParsePrefix("192.0.2.0/30"))
	a := testArrival
	a.From = netip.MustParseAddrPort("[::ffff:192.0.2.1]:4000") // as a socket of IPv6 has it
	if _, _, err = served.Reply(nil, requestOf(Open, nil, 1, nil), &a, testNow, 0); err != nil {
		t.Error(err)
	}
	for _, port := range []uint16{0, 7, 53, 862, 1023, 1024} { // answers of another reflector are no requests
		a := testArrival
		a.From = netip.AddrPortFrom(a.From.Addr(), port)
		if _, _, err = open.Reply(nil, requestOf(Open, nil, 1, nil), &a, testNow, 0); (err != nil) != (port < 1024) {
			t.Errorf("port %d: %v", port, err)
		}
	}
	a.To = netip.AddrPortFrom(a.To.Addr(), 4000)
	_, _, err = open.Reply(nil, requestOf(Open, nil, 1, nil), &a, testNow, 0)
	wants(t, err, "source", 0, NotServed)
	rated := Reflector{Rate: 3}
	for n := range 5 {
		if _, _, err = rated.Reply(nil, requestOf(Open, nil, 1, nil), &testArrival, testNow, 0); (err != nil) != (n >= 3) {
			t.Errorf("answer %d of 3 in a second: %v", n, err)
		}
	}
	wants(t, err, "rate", 0, OverRate)
	for _, now := range []int64{testNow + int64(time.Hour), testNow - int64(time.Hour)} { // no clock that is set gives answers
		if _, _, err = rated.Reply(nil, requestOf(Open, nil, 1, nil), &testArrival, now, 0); !errors.Is(err, OverRate) {
			t.Error(err)
		}
	}
	later := testArrival
	later.Steady += 400_000_000
	if _, _, err = rated.Reply(nil, requestOf(Open, nil, 1, nil), &later, testNow, 0); err != nil {
		t.Error(err)
	}
}

// A reflector does not answer an answer, in either mode and format of times. Two of them on ports of their own
// therefore never answer each other.
func TestReflectorLoop(t *testing.T) {
	keys := keysOf(t, peerKey)
	for _, m := range []Mode{Open, Authenticated} {
		for _, e := range []ErrorEstimate{0x8001, 0x8001 | isPTP} {
			near, far := Reflector{Rate: 1e6, Stateful: true, Sessions: 2}, Reflector{Rate: 1e6}
			if m == Authenticated {
				near.Keys, far.Keys = keysOf(t, peerKey), keysOf(t, peerKey)
			}
			q := Request{Time: newTimestamp(testNow, e.PTP()), Error: e}
			b := q.Append(nil, m)
			if m == Authenticated {
				keys.Sign(b, 0)
			}
			a := testArrival
			a.From, a.To = netip.MustParseAddrPort("192.0.2.1:8621"), netip.MustParseAddrPort("192.0.2.2:8620")
			b, _, err := near.Reply(nil, b, &a, testNow+1000, 0)
			if err != nil {
				t.Fatal(err)
			}
			a.From, a.To = a.To, a.From
			_, _, err = far.Reply(nil, b, &a, testNow+2000, 0)
			wants(t, err, "receive_timestamp", layouts[m].received, NotServed)
		}
	}
}

// A network holds its addresses whatever the interface that they come by.
func TestReflectorZone(t *testing.T) {
	r := Reflector{Rate: 1e6, Allow: []netip.Prefix{netip.MustParsePrefix("fe80::/10")}}
	a := testArrival
	a.From = netip.MustParseAddrPort("[fe80::1%eth0]:4000")
	if _, _, err := r.Reply(nil, requestOf(Open, nil, 1, nil), &a, testNow, 0); err != nil {
		t.Error(err)
	}
}

// Requests of TWAMP Light, which have 14 bytes and padding, have answers of TWAMP Light.
func TestReflectorLight(t *testing.T) {
	r := Reflector{Rate: 1e6}
	for _, n := range []int{41, 42, 43, 44, 45, 47, 48, 1400} {
		b := requestOf(Open, nil, 77, make([]byte, 1400))[:n]
		copy(b[14:], bytes.Repeat([]byte{0xff}, 27)) // padding of random bytes
		answer, _, err := r.Reply([]byte("x"), b, &testArrival, testNow, 0x8001)
		if err != nil || len(answer) != n+1 || answer[0] != 'x' {
			t.Fatalf("%d bytes: %x, %v", n, answer, err)
		}
		var a Answer
		if err := a.Decode(answer[1:], Open); err != nil || a.Seq != 77 || a.SenderSeq != 77 || a.TTL != 60 {
			t.Errorf("%+v, %v", a, err)
		}
	}
}

// A reflector without state gives the numbers of the requests; one with state counts, for each session, and has room for so many.
func TestReflectorState(t *testing.T) {
	wall := testNow // by a clock that is set all the time
	seq := func(r *Reflector, a *Arrival, now int64, seq uint32) (uint32, error) {
		y := *a
		y.Steady, wall = now-testNow, wall-int64(time.Hour)
		b, _, err := r.Reply(nil, requestOf(Open, nil, seq, appendDirect(nil, 9)), &y, wall, 0)
		if err != nil {
			return 0, err
		}
		var x Answer
		if err := x.Decode(b, Open); err != nil {
			t.Fatal(err)
		}
		var d direct
		for v := range tlvs(b[requestLen:]) {
			if !d.Decode(v.Value) || d.senderSent != 9 || r.Stateful && (d.reflectorSent != x.Seq+1 || d.reflectorReceived != x.Seq+1) {
				t.Errorf("%+v of answer %d", d, x.Seq)
			}
		}
		return x.Seq, nil
	}
	free := Reflector{Rate: 1e6}
	full := Reflector{Rate: 1e6, Stateful: true, Sessions: 3}
	for n := range uint32(5) {
		if x, err := seq(&free, &testArrival, testNow, 100+n); x != 100+n || err != nil {
			t.Errorf("%d, %v", x, err)
		}
		if x, err := seq(&full, &testArrival, testNow, 100+2*n); x != n || err != nil {
			t.Errorf("%d, %v", x, err)
		}
	}
	for k := range 5 {
		a := testArrival
		a.From = netip.AddrPortFrom(a.From.Addr(), uint16(5000+k))
		x, err := seq(&full, &a, testNow+1, 100)
		if k >= 2 {
			wants(t, err, "session", 0, NoRoom)
		} else if x != 0 || err != nil {
			t.Errorf("%d, %v", x, err)
		}
	}
	if x, err := seq(&full, &testArrival, testNow+2, 110); x != 5 || err != nil {
		t.Errorf("the first session has number %d, %v", x, err)
	}
	a := testArrival
	a.From = netip.AddrPortFrom(a.From.Addr(), 9000)
	if x, err := seq(&full, &a, testNow+1+idle, 1); x != 0 || err != nil || full.Open() != 3 {
		t.Errorf("%d, %v, %d sessions", x, err, full.Open())
	}
	if x, err := seq(&full, &testArrival, testNow+3, 110); x != 6 || err != nil { // the silent one went
		t.Errorf("the first session has number %d, %v", x, err)
	}
	if free.Open() != 0 {
		t.Errorf("%d sessions without state", free.Open())
	}
}

// A session that was heard keeps its place until its silence has lasted for the limit. An answered burst is not
// answered again, whatever the age of the clock.
func TestReflectorSteady(t *testing.T) {
	one, rated := Reflector{Rate: 1e6, Stateful: true, Sessions: 1}, Reflector{Rate: 2}
	reply := func(r *Reflector, port uint16, steady int64) error {
		a := testArrival
		a.From, a.Steady = netip.AddrPortFrom(a.From.Addr(), port), steady
		_, _, err := r.Reply(nil, requestOf(Open, nil, 1, nil), &a, testNow, 0)
		return err
	}
	for _, c := range []struct {
		port   uint16
		steady int64
		why    error
	}{{4000, idle, nil}, {4001, idle + 1, NoRoom}, {4000, idle + 2, nil}, {4001, 2*idle + 1, NoRoom}, {4001, 2*idle + 2, nil}, {4000, 2*idle + 3, NoRoom}} {
		if err := reply(&one, c.port, c.steady); !errors.Is(err, c.why) {
			t.Errorf("port %d after %d ns: %v, want %v", c.port, c.steady, err, c.why)
		}
	}
	second := int64(time.Second)
	for _, c := range []struct {
		steady int64
		why    error
	}{{idle, nil}, {idle, nil}, {idle, OverRate}, {idle + second/2 - 1, OverRate}, {idle + second/2, nil}, {idle + second/2, OverRate}, {idle + second, nil}} {
		if err := reply(&rated, 4000, c.steady); !errors.Is(err, c.why) {
			t.Errorf("after %d ns: %v, want %v", c.steady, err, c.why)
		}
	}
}

// The digest of extensions stands behind all but padding, or they come back marked.
func TestReflectorProtection(t *testing.T) {
	keys := keysOf(t, peerKey)
	pad := appendTLV(nil, extraPadding, make([]byte, 5))
	cos := appendCoS(nil, 10)
	mac := appendTLV(nil, HMAC, make([]byte, macLen))
	short := appendTLV(nil, HMAC, make([]byte, macLen-1))
	for _, c := range []struct {
		name string
		tail [][]byte
		at   int // of the digest; -1 for none
		want bool
	}{
		{"padding alone", [][]byte{pad}, -1, true},
		{"a class of service alone", [][]byte{cos}, -1, false},
		{"the digest last", [][]byte{cos, mac}, len(cos), true},
		{"padding behind", [][]byte{cos, mac, pad}, len(cos), true},
		{"the digest first", [][]byte{mac, cos}, 0, false},
		{"two digests", [][]byte{cos, mac, mac}, len(cos), false},
		{"a short digest", [][]byte{cos, short}, -1, false},
		{"a cut digest", [][]byte{cos, mac[:10]}, -1, false},
		{"a cut extension behind", [][]byte{cos, mac, {0x80, 4, 0, 4, 0}}, len(cos), false},
	} {
		tail := bytes.Join(c.tail, nil)
		b := requestOf(Authenticated, keys, 3, tail)
		if c.at >= 0 {
			keys.protect(b, c.at, 0)
		}
		r := Reflector{Keys: keysOf(t, peerKey), Rate: 1e6}
		answer, _, err := r.Reply(nil, b, &testArrival, testNow, 0)
		if err != nil || len(answer) != len(b) || keys.Verify(answer) != 0 {
			t.Fatalf("%s: %v", c.name, err)
		}
		got := Flags(answer[signedLen])&integrity == 0
		if got != c.want || got && !keys.protected(answer, 0).whole {
			t.Errorf("%s: taken: %v", c.name, got)
		}
	}
}

// A session refuses answers whose extensions are marked or cut, whoever marked them, and passes over those that the reflector left as they were.
func TestSessionExtensions(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(tail []byte) []byte
		at     int // of the refused extension; -1 for none
	}{
		{"as they are", func(b []byte) []byte { return b }, -1},
		{"left alone", func(b []byte) []byte { b[0] |= 0x80; b[8] |= 0xc0; return b }, -1},
		{"malformed", func(b []byte) []byte { b[0] |= 0x40; return b }, 44},
		{"without integrity", func(b []byte) []byte { b[8] |= 0x20; return b }, 52},
		{"cut", func(b []byte) []byte { return b[:20] }, 52},
		{"another padding", func(b []byte) []byte { b[19] ^= 1; return b }, 52},
		{"a class of service that is none", func(b []byte) []byte { b[3] = 3; b[7], b[8], b[9], b[10], b[11] = 0, 1, 0, 0, 1; return b[:12] }, 44},
		{"none", func(b []byte) []byte { return b[:0] }, -1},
	} {
		x := pairOf(t, Plan{CoS: true, DSCP: 46, Size: 100})
		b := x.answer(x.ask(), 1000)
		b = append(b[:requestLen:requestLen], c.change(append([]byte(nil), b[requestLen:]...))...)
		err := x.s.Receive(b, x.now+200_000)
		if c.at < 0 {
			if err != nil || x.s.Received != 1 || x.s.Corrupt != 0 {
				t.Errorf("%s: %v, %+v", c.name, err, x.s.Counts)
			}
			continue
		}
		if e, ok := errors.AsType[*Error](err); !ok || e.Offset != c.at || e.Reason != BadTLV || x.s.Corrupt != 1 || x.s.Received != 0 {
			t.Errorf("%s: %v, want byte %d", c.name, err, c.at)
		}
		// The right one behind it is counted as the answer came again, and the request is not lost.
		x.over()
		if x.s.Lost != 0 || x.s.Missed != 0 {
			t.Errorf("%s: %+v", c.name, x.s.Counts)
		}
	}
	// One that comes late was lost until then.
	x := pairOf(t, Plan{Size: 100})
	b := x.answer(x.ask(), 1000)
	x.over()
	b[60] ^= 1
	if err := x.s.Receive(b, x.now); err == nil || x.s.Lost != 0 || x.s.Missed != 1 {
		t.Errorf("%v, %+v", err, x.s.Counts)
	}
}

// The reflector clears what a sender left in places of its own, and gives the type of service that the request had.
func TestReflectorFills(t *testing.T) {
	r := Reflector{Rate: 1e6}
	dirty := appendLocation(nil)
	for k := range dirty[tlvLen+placeLen+tlvLen : tlvLen+placeLen+tlvLen+addrLen] {
		dirty[tlvLen+placeLen+tlvLen+k] = 0xff
	}
	mac := appendTLV(nil, HMAC, make([]byte, macLen))
	short := appendTLV(nil, location, make([]byte, placeLen-1))
	info := appendTLV(nil, timestampInfo, make([]byte, infoLen-1))
	direct := appendTLV(nil, directMeasurement, make([]byte, directLen-1))
	empty := appendTLV(nil, location, make([]byte, placeLen))
	tail := bytes.Join([][]byte{dirty, mac, short, info, direct, empty}, nil)
	b, tos, err := r.Reply(nil, requestOf(Open, nil, 1, tail), &testArrival, testNow, 0)
	if err != nil || tos != testArrival.TOS {
		t.Fatalf("type of service %d, %v", tos, err)
	}
	var flags []Flags
	for v := range tlvs(b[requestLen:]) {
		flags = append(flags, v.flags)
	}
	if !slices.Equal(flags, []Flags{0, unrecognised, malformed, malformed, malformed, 0}) {
		t.Errorf("flags %x", flags)
	}
	at := requestLen + tlvLen + placeLen + tlvLen
	if want := append([]byte{192, 0, 2, 2}, make([]byte, 12)...); !bytes.Equal(b[at:at+addrLen], want) {
		t.Errorf("the address is %x", b[at:at+addrLen])
	}
	if b, tos, err := r.Reply(nil, requestOf(Open, nil, 1, nil), &testArrival, testNow, 0); err != nil || tos != testArrival.TOS || len(b) != requestLen {
		t.Errorf("type of service %d, %v", tos, err)
	}
}

// Any bytes are answered within their length or refused with a place within them, and session and reflector survive them.
func FuzzPackets(f *testing.F) {
	keys := keysOf(f, peerKey)
	tail := appendTLV(appendDirect(appendCoS(appendLocation(appendTLV(nil, timestampInfo, make([]byte, 4))), 46), 3), extraPadding, []byte("padding"))
	f.Add(requestOf(Open, nil, 0, tail))
	f.Add(requestOf(Authenticated, keys, 0, append(appendTLV(nil, HMAC, make([]byte, 16)), tail...)))
	f.Add(requestOf(Open, nil, 0, nil)[:41])
	f.Fuzz(func(t *testing.T, b []byte) {
		was := bytes.Clone(b)
		for _, k := range []*Keys{nil, keys} {
			m := Mode(k != nil)
			if m == Authenticated && len(b) >= signedLen {
				k.Sign(b, 0)
				was = bytes.Clone(b)
			}
			r := Reflector{Keys: k, Rate: 10, Stateful: true, Sessions: 2}
			answer, _, err := r.Reply(nil, b, &testArrival, testNow, NewErrorEstimate(true, true, 1))
			if e, ok := errors.AsType[*Error](err); err != nil && (!ok || e.Offset > len(b) || len(answer) > 0) {
				t.Fatalf("%v, with an answer of %d bytes", err, len(answer))
			}
			if err == nil {
				var a Answer
				if len(answer) != len(b) || a.Decode(answer, m) != nil || k != nil && k.Verify(answer) != 0 {
					t.Fatalf("%x is answered by %x", b, answer)
				}
			}
			s, err := NewSession(Plan{Size: 300, Interval: time.Second, Timeout: time.Second, CoS: true, Keys: k, Stateful: true})
			if err != nil {
				t.Fatal(err)
			}
			s.Append(nil, testNow, 0, 0)
			for _, x := range [][]byte{b, answer} {
				if err := s.Receive(x, testNow+5); err != nil {
					if e, ok := errors.AsType[*Error](err); !ok || e.Offset > len(x) {
						t.Fatal(err)
					}
				}
			}
			s.Turn(int64(time.Hour))
			if s.Received+s.Lost > s.Sent || s.Forward+s.Back > s.Lost {
				t.Fatalf("%+v", s.Counts)
			}
		}
		if !bytes.Equal(b, was) {
			t.Fatal("the request was changed")
		}
	})
}

func BenchmarkReply(b *testing.B) {
	for _, m := range []Mode{Open, Authenticated} {
		b.Run(fmt.Sprint("authenticated=", m == Authenticated), func(b *testing.B) {
			r := Reflector{Rate: 1e12, Stateful: true, Sessions: 2}
			var k *Keys
			if m == Authenticated {
				k = keysOf(b, peerKey)
				r.Keys = k
			}
			q, out := requestOf(m, k, 1, nil), make([]byte, 0, 200)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := r.Reply(out, q, &testArrival, testNow, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
