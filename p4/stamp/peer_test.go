package stamp

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// peer is the program beside us: scapy's STAMP, and an encoder of its own of what scapy has not.
type peer struct {
	in  io.Writer
	out *bufio.Scanner
}

// peerPacket is a packet in its language.
type peerPacket struct {
	Do          string    `json:"do,omitempty"`
	Kind        string    `json:"kind,omitempty"`
	Key         string    `json:"key,omitempty"`
	Packet      string    `json:"packet,omitempty"`
	Seq         uint32    `json:"seq"`
	Time        Timestamp `json:"time"`
	Error       uint16    `json:"error"`
	SSID        uint16    `json:"ssid"`
	Received    Timestamp `json:"received"`
	SenderSeq   uint32    `json:"sender_seq"`
	SenderTime  Timestamp `json:"sender_time"`
	SenderError uint16    `json:"sender_error"`
	TTL         uint8     `json:"ttl"`
	TLVs        []peerTLV `json:"tlvs"`
	Signed      bool      `json:"signed"`
	Guarded     bool      `json:"guarded"`
}

type peerTLV struct {
	Flags uint8  `json:"flags"`
	Type  uint8  `json:"type"`
	Value string `json:"value"`
}

func startPeer(t *testing.T) *peer {
	t.Helper()
	c := exec.Command(testkit.Python(t), "testdata/peer.py")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = t.Output()
	if err := c.Start(); err != nil {
		t.Fatalf("scapy is not installed: run `make python` (%v)", err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := c.Wait(); err != nil {
			t.Errorf("the peer: %v: `make python` installs scapy", err)
		}
	})
	return &peer{in, bufio.NewScanner(out)}
}

func (p *peer) ask(t *testing.T, x *peerPacket) (y peerPacket) {
	t.Helper()
	b, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.in.Write(append(b, '\n')); err != nil {
		t.Fatal(err)
	}
	if !p.out.Scan() {
		t.Fatalf("the peer does not answer: %v", p.out.Err())
	}
	if err := json.Unmarshal(p.out.Bytes(), &y); err != nil {
		t.Fatalf("%v: %s", err, p.out.Bytes())
	}
	return y
}

// build returns the bytes of a packet of the peer.
func (p *peer) build(t *testing.T, x peerPacket) []byte {
	t.Helper()
	x.Do = "build"
	b, err := hex.DecodeString(p.ask(t, &x).Packet)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// read is what the peer reads in bytes.
func (p *peer) read(t *testing.T, kind, key string, b []byte) peerPacket {
	t.Helper()
	return p.ask(t, &peerPacket{Do: "read", Kind: kind, Key: key, Packet: hex.EncodeToString(b)})
}

const peerKey = "000102030405060708090a0b0c0d0e0f10111213"

func keysOf(t testing.TB, secrets ...string) *Keys {
	t.Helper()
	var list [][]byte
	for _, s := range secrets {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, b)
	}
	return NewKeys(list)
}

// Every field of requests and answers, in both modes and both formats of time, is the same bytes here and at the peer.
func TestPeerFields(t *testing.T) {
	p := startPeer(t)
	r := rand.New(rand.NewPCG(1, 2))
	keys := keysOf(t, peerKey)
	ns := func(ptp bool) Timestamp {
		return newTimestamp(1_700_000_000_000_000_000+r.Int64N(1e18), ptp)
	}
	for n := range 200 {
		m, key := Open, ""
		if n%2 == 1 {
			m, key = Authenticated, peerKey
		}
		e, f := uint16(r.Uint32()), uint16(r.Uint32())
		x := peerPacket{Kind: "request", Key: key, Seq: r.Uint32(), Error: e, SSID: uint16(r.Uint32()), Time: ns(e>>14&1 == 1)}
		q := Request{x.Seq, x.Time, ErrorEstimate(e), x.SSID}
		ours := q.Append(nil, m)
		if m == Authenticated {
			keys.Sign(ours, 0)
		}
		if theirs := p.build(t, x); !reflect.DeepEqual(theirs, ours) {
			t.Fatalf("request %+v\nthe peer %x\nhere     %x", x, theirs, ours)
		}
		var back Request
		if err := back.Decode(ours, m); err != nil || back != q {
			t.Fatalf("%+v, %v, want %+v", back, err, q)
		}
		x.Kind, x.Received, x.SenderSeq, x.SenderError, x.TTL = "answer", ns(e>>14&1 == 1), r.Uint32(), f, uint8(r.Uint32())
		x.SenderTime = ns(f>>14&1 == 1)
		a := Answer{x.Seq, x.Time, ErrorEstimate(e), x.SSID, x.Received, x.SenderSeq, x.SenderTime, ErrorEstimate(f), x.TTL}
		ours = a.Append(nil, m)
		if m == Authenticated {
			keys.Sign(ours, 0)
		}
		if theirs := p.build(t, x); !reflect.DeepEqual(theirs, ours) {
			t.Fatalf("answer %+v\nthe peer %x\nhere     %x", x, theirs, ours)
		}
		var backA Answer
		if err := backA.Decode(ours, m); err != nil || backA != a {
			t.Fatalf("%+v, %v, want %+v", backA, err, a)
		}
		y := p.read(t, "answer", key, ours)
		x.Kind, x.Key, x.TLVs, x.Signed = "", "", []peerTLV{}, m == Authenticated
		if !reflect.DeepEqual(x, y) {
			t.Fatalf("the peer reads %+v\nof %+v", y, x)
		}
	}
}

// What the peer sends is answered, extension by extension, as RFC 8972 says, in both modes.
func TestPeerReflected(t *testing.T) {
	p := startPeer(t)
	arrival := Arrival{From: netip.MustParseAddrPort("192.0.2.1:4000"), To: netip.MustParseAddrPort("[2001:db8::2]:862"), At: 1_700_000_000_000_000_100, TTL: 61, TOS: 46<<2 | 1}
	zeros := hex.EncodeToString(make([]byte, 16))
	asked := []peerTLV{
		{0x80, 1, "0102030405"},
		{0x80, 2, "00000000" + "80040010" + zeros + "80070010" + zeros + "80010008" + zeros[:16]},
		{0x80, 3, "00000000"},
		{0x80, 4, "28000000"}, // DSCP 10
		{0x80, 5, "000003e8" + "0000000000000000"},
		{0x80, 99, "aabb"},
		{0x80, 4, "280000"}, // a byte too short
		{0x80, 2, "00000000" + "80070004" + "00000000"},
		{0x80, 7, zeros},
	}
	arrived := []peerTLV{
		{0, 1, "0102030405"},
		{0, 2, "035e0fa0" + "00060010" + "20010db8000000000000000000000002" + "00080010" + "c0000201" + zeros[:24] + "80010008" + zeros[:16]},
		{0, 3, "01020102"},
		{0, 4, "2ae40000"},
		{0, 5, "000003e8" + "00000001" + "00000001"},
		{0x80, 99, "aabb"},
		{0x40, 4, "280000"},
		{0x40, 2, "00000000" + "80070004" + "00000000"},
		{0x80, 7, zeros},
	}
	for _, key := range []string{"", peerKey} {
		x := peerPacket{Kind: "request", Key: key, Seq: 7, Time: newTimestamp(1_700_000_000_000_000_000, false), Error: 0x8001, SSID: 9, TLVs: asked}
		r := Reflector{Stateful: true, Sessions: 4, Rate: 10}
		want := arrived
		if key != "" {
			r.Keys = keysOf(t, "ffffffffffffffffffffffffffffffff", key)
			x.TLVs = append(append([]peerTLV{}, asked...), peerTLV{0x80, 8, ""}, peerTLV{0x80, 1, "77"})
			want = append(append([]peerTLV{}, arrived...), peerTLV{0, 8, "?"}, peerTLV{0, 1, "77"})
		}
		request := p.build(t, x)
		answer, tos, err := r.Reply(nil, request, &arrival, 1_700_000_000_000_000_300, NewErrorEstimate(true, true, 1000))
		if err != nil || tos != 10<<2|1 || len(answer) != len(request) {
			t.Fatalf("%x, type of service %d, %v", answer, tos, err)
		}
		y := p.read(t, "answer", key, answer)
		if key != "" {
			if !y.Signed || !y.Guarded {
				t.Errorf("the peer does not take the digests: %+v", y)
			}
			y.TLVs[len(y.TLVs)-2].Value = "?"
		}
		if !reflect.DeepEqual(y.TLVs, want) {
			t.Errorf("mode %q: the peer reads\n%+v\nwant\n%+v", key, y.TLVs, want)
		}
		if y.Seq != 0 || y.SenderSeq != 7 || y.SSID != 9 || y.TTL != 61 || y.SenderTime != x.Time || y.SenderError != 0x8001 || y.Error>>14 != 2 ||
			y.Received != newTimestamp(arrival.At, false) || y.Time != newTimestamp(1_700_000_000_000_000_300, false) {
			t.Errorf("%+v", y)
		}
		if key == "" {
			continue
		}
		// With a wrong digest over the extensions they come back as they were, and marked.
		request[signedLen+5] ^= 1
		answer, _, err = r.Reply(nil, request, &arrival, 1_700_000_000_000_000_400, 0)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range p.read(t, "answer", key, answer).TLVs {
			if v.Flags != 0xa0 || k > 0 && k < len(asked) && v.Value != asked[k].Value {
				t.Errorf("extension %d came back as %+v", k, v)
			}
		}
	}
}

// The peer reads what a session sends, and the session takes what the peer answers.
func TestPeerSession(t *testing.T) {
	p := startPeer(t)
	for _, c := range []struct {
		key  string
		plan Plan
	}{
		{"", Plan{SSID: 3, Size: 44}}, {"", Plan{SSID: 3, Size: 200, CoS: true, DSCP: 46, PTP: true}},
		{peerKey, Plan{Size: 112}}, {peerKey, Plan{SSID: 5, Size: 300, CoS: true, DSCP: 34}},
	} {
		c.plan.Interval, c.plan.Timeout = 1e9, 1e9
		if c.key != "" {
			c.plan.Keys = keysOf(t, c.key)
		}
		s, err := NewSession(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		request := s.Append(nil, 1_700_000_000_000_000_000, 0, NewErrorEstimate(true, false, 1e6))
		y := p.read(t, "request", c.key, request)
		if len(request) != c.plan.Size || y.SSID != c.plan.SSID || y.Seq != 0 || y.Error>>15 != 1 || y.Error>>14&1 == 1 != c.plan.PTP || y.Signed != (c.key != "") ||
			y.Guarded != (c.key != "" && c.plan.CoS) {
			t.Errorf("%d bytes, %+v", len(request), y)
		}
		x := peerPacket{Kind: "answer", Key: c.key, Seq: 0, SSID: c.plan.SSID, Error: 0x8001, SenderSeq: y.Seq, SenderTime: y.Time, SenderError: y.Error, TTL: 64,
			Time: newTimestamp(1_700_000_000_000_700_000, false), Received: newTimestamp(1_700_000_000_000_500_000, false)}
		for _, v := range y.TLVs {
			v.Flags = 0
			switch Type(v.Type) {
			case classOfService:
				v.Value = hex.EncodeToString([]byte{c.plan.DSCP<<2 | 12>>4, 12 << 4 & 0xff, 0, 0})
			case HMAC:
				v.Value = ""
			}
			x.TLVs = append(x.TLVs, v)
		}
		if err := s.Receive(p.build(t, x), 1_700_000_000_001_000_000); err != nil {
			t.Fatal(err)
		}
		remarked := uint64(0)
		if c.plan.CoS {
			remarked = 1
		}
		if s.Received != 1 || s.Trip.Max != 800_000 || s.Out.Max != 500_000 || s.Home.Max != 300_000 || s.Remarked != remarked {
			t.Errorf("%+v", s.Counts)
		}
	}
}
