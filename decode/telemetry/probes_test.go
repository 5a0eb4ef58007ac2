package telemetry

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/decode"
)

// readOne reads the report of a datagram with one report 2.0.
func readOne(data []byte) *decode.Report {
	var rd Reader
	var r decode.Report
	var in Inner
	rd.Start(&Options{Versions: AllVersions}, data, 0, len(data))
	rd.Next(&r, &in)
	return &r
}

// TestProbes holds that counts of probes come back as they were sent, and that what is not written like them stays
// data of a domain.
func TestProbes(t *testing.T) {
	good := append(Append20(AppendGroup(nil, 0, 300, 3), &Header{Inner: InnerIPv4, Probes: &probesSent}, 28), make([]byte, 28)...)
	r := readOne(good)
	if r.Kind != decode.KindProbes || !reflect.DeepEqual(*r.AddProbes(), probesSent) || r.Unknown != nil || r.Remarks != 0 || r.NodeID != 3 {
		t.Errorf("%+v, %+v", r, r.AddProbes())
	}
	h := Header{Inner: InnerIPv4, Probes: &probesSent, Metadata: 1 << 14}
	h.Hop.IngressIf, h.Hop.EgressIf = 3, 4
	b := append(Append20(AppendGroup(nil, 0, 300, 3), &h, 28), make([]byte, 28)...)
	if r := readOne(b); r.Kind == decode.KindProbes || len(r.Hops) != 1 || r.Unknown == nil {
		t.Errorf("with values of a hop: %+v", r)
	}
	for n := range good {
		readOne(good[:n:n])
	}
	for what, change := range map[string]func(b []byte){
		"another bit":              func(b []byte) { b[17] = 1 },
		"another domain":           func(b []byte) { b[15]++ },
		"codes that do not rise":   func(b []byte) { b[68], b[69] = 0, 16 },
		"a code that there is not": func(b []byte) { b[68] = 3 },
	} {
		b := append([]byte(nil), good...)
		change(b)
		if r := readOne(b); r.Kind == decode.KindProbes || r.Unknown == nil {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

// TestWay holds that the way of probes comes back as it was sent, without the counts of a report before. What is not
// written like it stays data of a domain.
func TestWay(t *testing.T) {
	good := append(Append20(AppendGroup(nil, 0, 300, 3), &Header{Inner: InnerIPv4, Probes: &waySent}, 28), make([]byte, 28)...)
	r := readOne(good)
	if p := *r.AddProbes(); r.Kind != decode.KindProbes || !reflect.DeepEqual(p, waySent) || r.Unknown != nil || r.Remarks != 0 || r.NodeID != 3 {
		t.Errorf("%+v, %+v", r, p)
	}
	for n := range good {
		readOne(good[:n:n])
	}
	long := waySent
	for long.Way = nil; len(long.Way) <= decode.MostWay; {
		long.Way = append(long.Way, waySent.Way[0])
	}
	for what, b := range map[string][]byte{
		"no answer":        append(append([]byte(nil), good[:28]...), make([]byte, len(good)-28)...),
		"too many routers": append(Append20(AppendGroup(nil, 0, 300, 3), &Header{Inner: InnerIPv4, Probes: &long}, 28), make([]byte, 28)...),
	} {
		if r := readOne(b); r.Kind == decode.KindProbes || r.Unknown == nil {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

// TestRounds holds that rounds of probes come back as they were sent, without the counts of a report before. Totals that no
// count can have stay data of a domain.
func TestRounds(t *testing.T) {
	good := append(Append20(AppendGroup(nil, 0, 300, 3), &Header{Inner: InnerIPv4, Probes: &roundsSent}, 28), make([]byte, 28)...)
	r := readOne(good)
	if p := *r.AddProbes(); r.Kind != decode.KindProbes || !reflect.DeepEqual(p, roundsSent) || r.Unknown != nil || r.Remarks != 0 || r.NodeID != 3 {
		t.Errorf("%+v, %+v", r, p)
	}
	for n := range good {
		readOne(good[:n:n])
	}
	for what, change := range map[string]func(b []byte){
		"no end":                     func(b []byte) { b[31] = 0 },
		"an end that there is not":   func(b []byte) { b[30] = 1 },
		"a sender of received ones":  func(b []byte) { b[31] = 1 },
		"more received than numbers": func(b []byte) { b[50] = 1 },
		"a bit of other versions":    func(b []byte) { b[16] = 0x10 },
	} {
		b := append([]byte(nil), good...)
		change(b)
		if r := readOne(b); r.Kind == decode.KindProbes || r.Unknown == nil {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

// TestUnknownProbes holds that a reader takes a report about probes that it does not know for data of a domain, as earlier versions do
// with rounds, and reads the counts behind it in the same datagram.
func TestUnknownProbes(t *testing.T) {
	b := Append20(AppendGroup(nil, 0, 300, 3), &Header{Inner: InnerIPv4, Probes: &roundsSent}, 28)
	b[16] = 0x10 // a bit that no version has
	b = append(Append20(append(b, make([]byte, 28)...), &Header{Inner: InnerIPv4, Probes: &probesSent}, 28), make([]byte, 28)...)
	var rd Reader
	var r decode.Report
	var in Inner
	rd.Start(&Options{Versions: AllVersions}, b, 0, len(b))
	for k, want := range []decode.Kind{decode.KindPostcard, decode.KindProbes} {
		r.Reset()
		if rd.Next(&r, &in); r.Error() != nil || r.Kind != want || (len(r.Unknown) > 0) != (k == 0) {
			t.Errorf("report %d: %+v", k, r)
		}
	}
}

// FuzzProbes holds that what is read of probes is what was sent: written again it has the same bytes.
func FuzzProbes(f *testing.F) {
	for _, p := range []*decode.ProbeCounts{&probesSent, &waySent, &roundsSent} {
		f.Add(bitsOf(p), appendProbes(nil, p))
	}
	f.Fuzz(func(t *testing.T, bits uint16, data []byte) {
		if len(data)%4 != 0 || len(data) > 4*200 {
			return
		}
		var r decode.Report
		if !probes(&r, bits, data) {
			return
		}
		p := r.AddProbes()
		if got := appendProbes(nil, p); bitsOf(p) != bits || !bytes.Equal(got, data) {
			t.Fatalf("%#x %x is read as %+v and written as %#x %x", bits, data, p, bitsOf(p), got)
		}
	})
}

// TestDelayCodes holds that each delay has the code of which it is at most the longest, and within a part in 16 of it.
func TestDelayCodes(t *testing.T) {
	for ns := uint64(0); ns < 200e9; ns += 1 + ns/37 {
		code := decode.DelayCode(ns)
		long := decode.LongestDelay(code)
		if code >= decode.DelayCodes || code < decode.DelayCodes-1 && (ns > long || long-ns > ns/16) || code > 0 && decode.LongestDelay(code-1) >= ns && ns > 0 {
			t.Fatalf("%d ns has the code %d, whose longest is %d", ns, code, long)
		}
	}
}
