package srint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/internal/testkit"
)

func wantReport(t *testing.T, what string, got *decode.Report, want decode.Report) {
	t.Helper()
	g := *got
	if want.Format == decode.INTPath && want.Err.Reason == 0 && want.Flags&decode.Truncated == 0 {
		want.Announced = uint8(len(want.Hops))
	} else {
		want.Announced = g.Announced
	}
	if len(g.Hops) == 0 && len(want.Hops) == 0 {
		g.Hops, want.Hops = nil, nil
	}
	if !reflect.DeepEqual(g, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", what, g, want)
	}
}

func TestAppendSRList(t *testing.T) {
	// The route is one number: sum of (port-1) 16^k. An independent way to write it is math/big.
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		ports := make([]int, 1+rng.IntN(MaxPathHops))
		n := new(big.Int)
		for i := range ports {
			ports[i] = 1 + rng.IntN(MaxPathPort)
			n.Add(n, new(big.Int).Lsh(big.NewInt(int64(ports[i]-1)), uint(4*i)))
		}
		got, err := AppendSRList([]byte("x"), ports)
		if err != nil || string(got[:1]) != "x" || !bytes.Equal(got[1:], n.FillBytes(make([]byte, 64))) {
			t.Fatalf("seed %d: AppendSRList(%v) = %x, %v, want %x", seed, ports, got, err, n)
		}
	}
	got, err := AppendSRList(nil, []int{1, 16, 3})
	if err != nil || !bytes.Equal(got[60:], []byte{0, 0, 2, 0xf0}) || !zero(append(got[:62:62], 0, 0)) {
		t.Errorf("ports 1, 16, 3: %x, %v", got, err)
	}
}

func TestEncoderErrors(t *testing.T) {
	long := slices.Repeat([]int{1}, MaxPathHops+1)
	for _, tt := range []struct {
		name   string
		ports  []int
		action uint64
		err    error
	}{
		{"empty path", nil, 0, ErrNoPath},
		{"port 0", []int{1, 0}, 0, ErrPort},
		{"port 17", []int{17}, 0, ErrPort},
		{"129 hops", long, 0, ErrTooLong},
		{"128 hops", long[1:], 1<<32 - 1, nil},
		{"action id of 33 bits", []int{1}, 1 << 32, ErrActionID},
	} {
		got, err := AppendPath([]byte("x"), tt.ports, tt.action)
		if !errors.Is(err, tt.err) || tt.err != nil && string(got) != "x" || tt.err == nil && len(got) != 1+68 {
			t.Errorf("%s: %x, %v, want %v", tt.name, got, err, tt.err)
		}
	}
	for _, tt := range []struct {
		name  string
		ports []int
		err   error
	}{
		{"empty path", nil, ErrNoPath},
		{"port -1", []int{-1}, ErrPort},
		{"port 256", []int{1, 256}, ErrPort},
		{"17 hops", long[:17], ErrTooLong},
		{"16 hops", long[:16], nil},
	} {
		got, err := AppendProbe([]byte("x"), tt.ports)
		if !errors.Is(err, tt.err) || tt.err != nil && string(got) != "x" || tt.err == nil && len(got) != 1+4+32+4 {
			t.Errorf("INT-Probe, %s: %x, %v, want %v", tt.name, got, err, tt.err)
		}
	}
}

// withLabels is the payload of a probe with n labels and then extra bytes.
func withLabels(n, extra int) []byte {
	return make([]byte, srListLen+n*labelLen+actionIDLen+extra)
}

func TestDecodePathRejects(t *testing.T) {
	size := func(b []byte, n uint16) []byte {
		binary.BigEndian.PutUint16(b[4:], n)
		return b
	}
	tests := []struct {
		name    string
		udp     []byte
		length  int // more than there is, if not 0
		lenient bool
		why     decode.Reason // 0: accepted
		hops    int
	}{
		{"no label", udp(withLabels(0, 0)), 0, false, 0, 0},
		{"128 labels", udp(withLabels(128, 0)), 0, false, 0, 128},
		{"129 labels", udp(withLabels(129, 0)), 0, false, decode.BadCount, 0},
		{"129 labels, lenient", udp(withLabels(129, 0)), 0, true, decode.BadCount, 0},
		{"UDP length 75", udp(withLabels(0, -1)), 0, false, decode.Short, 0},
		{"UDP length 75, lenient", udp(withLabels(0, -1)), 0, true, decode.Short, 0},
		{"UDP length 0: to the end of the packet", size(udp(withLabels(1, 0)), 0), 0, false, 0, 1},
		{"UDP length 0, a byte too many", size(udp(withLabels(1, 1)), 0), 0, false, decode.BadStack, 0},
		{"a byte missing at the end", udp(withLabels(3, -1)), 0, false, decode.BadStack, 0},
		{"a byte missing at the end, lenient", udp(withLabels(3, -1)), 0, true, 0, 2},
		{"action id of 8 bytes", udp(withLabels(3, 4)), 0, false, decode.BadStack, 0},
		{"action id of 8 bytes, lenient", udp(withLabels(3, 4)), 0, true, 0, 3},
		{"UDP beyond IP", size(udp(withLabels(1, 0)), 76+44), 0, false, decode.BadLength, 0},
		{"UDP beyond IP by a byte, lenient", size(udp(withLabels(1, 0)), 76+23), 0, true, decode.BadLength, 0},
		{"IP leaves less than a UDP header", udp(nil)[:5], 5, false, decode.Short, 0},
		{"bytes behind UDP", append(udp(withLabels(1, 0)), 1, 2, 3), 0, false, 0, 1},
	}
	for _, tt := range tests {
		var r decode.Report
		DecodePath(&r, tt.udp, max(tt.length, len(tt.udp)), 34, tt.lenient)
		want := decode.Error{}
		if tt.why != 0 {
			want = decode.Error{Format: decode.INTPath, Field: "udp_length", Offset: 38, Reason: tt.why}
		}
		if r.Err != want || len(r.Hops) != tt.hops || r.Flags != 0 {
			t.Errorf("%s: %+v, %d hops, flags %b, want %+v, %d hops", tt.name, r.Err, len(r.Hops), r.Flags, want, tt.hops)
		}
		if tt.why != 0 && r.Has != 0 {
			t.Errorf("%s: values beside the error: %b", tt.name, r.Has)
		}
	}
	var r decode.Report // the packet ends inside of the UDP length, and a trailer follows
	if DecodePath(&r, udp(withLabels(1, 0)), 5, 34, false); r.Err.Reason != decode.Short || r.Err.Offset != 38 {
		t.Errorf("UDP length behind the end of the packet: %+v", r.Err)
	}
}

// The reference sender writes an action id of 32 significant bits with 4 zero bytes before it. The reference receiver
// reads it after the last whole label. Read leniently the result is the receiver's: 0.
func TestDecodePathLenientReadsAsTheReferenceReceiver(t *testing.T) {
	payload := withLabels(1, 4)
	copy(payload[srListLen+labelLen:], []byte{0, 0, 0, 0, 0x80, 0, 0, 1})
	var r decode.Report
	DecodePath(&r, udp(payload), len(payload)+8, 0, true)
	if r.ActionID != 0 || len(r.Hops) != 1 || r.Has&decode.HasActionID == 0 {
		t.Errorf("%+v", r)
	}
}

// Ports that no INT-path switch could have chosen are printed, not rejected: another pipeline may be in use.
func TestDecodePathAcceptsForeignPorts(t *testing.T) {
	want := label(255, 511, 0, 1<<48-1, 1<<32-1, 1<<19-1, 1<<32-1, 1<<19-1)
	payload := append(make([]byte, srListLen), AppendLabel(nil, &want)...)
	payload[0] = 0x10
	payload = append(payload, 0, 0, 0, 1)
	var r decode.Report
	DecodePath(&r, udp(payload), len(payload)+8, 0, false)
	if r.Err.Reason != 0 || len(r.Hops) != 1 || r.Hops[0] != want || r.Has&decode.HasSRList == 0 || r.SRList[0] != 0x10 {
		t.Errorf("%+v", r)
	}
}

func TestDecodeProbeRejects(t *testing.T) {
	label := make([]byte, probeLabelLen)
	tests := []struct {
		name   string
		kind   uint16
		data   []byte
		field  string // of the error; empty: accepted
		offset int
		why    decode.Reason
		ports  int
		hops   int
		none   bool // no probe
	}{
		{name: "no label", kind: TypeINT, data: []byte{0, 0}},
		{name: "type bit and reserved bits", kind: TypeINT, data: append([]byte{0xff, 1}, label...), hops: 1},
		{name: "padding", kind: TypeINT, data: make([]byte, 46)},
		{name: "one label short of a byte", kind: TypeINT, data: append([]byte{0, 1}, label[1:]...), field: "int_num", offset: 15, why: decode.BadCount},
		{name: "255 labels announced", kind: TypeINT, data: append([]byte{0, 255}, label...), field: "int_num", offset: 15, why: decode.BadCount},
		{name: "no INT header", kind: TypeINT, data: []byte{0}, field: "int_num", offset: 15, why: decode.Short},
		{name: "route of one", kind: TypeRoute, data: []byte{0, 4, 0, 7, 7, 1, 0, 0}, ports: 1},
		{name: "route without entries", kind: TypeRoute, data: []byte{0, 2, 7, 1, 0, 0}},
		{name: "route of 16", kind: TypeRoute, data: append(append([]byte{0, 34}, make([]byte, 32)...), 7, 1, 0, 0), ports: 16},
		{name: "route of 17", kind: TypeRoute, data: append(append([]byte{0, 36}, make([]byte, 34)...), 7, 1, 0, 0), field: "sr_length", offset: 15, why: decode.BadLength},
		{name: "route of 3 bytes", kind: TypeRoute, data: []byte{0, 3, 0, 7, 1, 0, 0}, field: "sr_length", offset: 15, why: decode.BadLength},
		{name: "route of 0 bytes", kind: TypeRoute, data: []byte{0, 0, 7, 1, 0, 0}, field: "sr_length", offset: 15, why: decode.BadLength},
		{name: "route beyond the frame", kind: TypeRoute, data: []byte{0, 6, 0, 7, 7, 1, 0}, field: "sr_length", offset: 15, why: decode.BadLength},
		{name: "frame of 17 bytes", kind: TypeRoute, data: []byte{0, 2, 7}, field: "sr_length", offset: 15, why: decode.Short},
		{name: "route before IPv4", kind: TypeRoute, data: []byte{0, 4, 0, 7, 8, 0, 0x45, 0}, none: true},
		{name: "route before IPv6", kind: TypeRoute, data: []byte{0, 4, 0, 7, 0x86, 0xdd, 0, 0}, field: "type2", offset: 18, why: decode.BadType, ports: 1},
		{name: "route and no INT header", kind: TypeRoute, data: []byte{0, 4, 0, 7, 7, 1, 0}, field: "int_num", offset: 21, why: decode.Short, ports: 1},
		{name: "route and a label missing", kind: TypeRoute, data: []byte{0, 4, 0, 7, 7, 1, 0, 1}, field: "int_num", offset: 21, why: decode.BadCount, ports: 1},
	}
	for _, tt := range tests {
		var r decode.Report
		ok := DecodeProbe(&r, tt.kind, tt.data, len(tt.data), 14)
		want := decode.Error{}
		if tt.field != "" {
			want = decode.Error{Format: decode.INTProbe, Field: tt.field, Offset: tt.offset, Reason: tt.why}
		}
		if ok == tt.none || r.Err != want || len(r.Hops) != tt.hops || len(r.SRPorts) != 2*tt.ports || r.Flags != 0 {
			t.Errorf("%s: %v, %+v, want %+v, %d ports, %d hops", tt.name, ok, r, want, tt.ports, tt.hops)
		}
		if (r.Has&decode.HasSRPorts != 0) != (tt.ports > 0) {
			t.Errorf("%s: HasSRPorts is %v", tt.name, r.Has&decode.HasSRPorts != 0)
		}
	}
}

// A capture that cut the packet gives a flag, the whole labels, and of the cut one the values that are there. Whole
// values of the cut must be those of the uncut packet, and their number must be what the bits allow.
func TestCutCaptures(t *testing.T) {
	cut := func(name string, data []byte, first, size int, ends []end, hops []decode.Hop, read func(r *decode.Report, b []byte)) {
		var r decode.Report
		for n := range len(data) {
			r.Reset()
			read(&r, data[:n])
			stack := max(min(n-first, len(hops)*size), 0)
			whole, rest := stack/size, stack%size
			if r.Err.Reason != 0 || r.Flags != decode.Truncated {
				t.Fatalf("%s cut at %d: %v, flags %b", name, n, r.Error(), r.Flags)
			}
			want := slices.Clone(hops[len(hops)-whole:])
			if rest > 0 {
				h := hops[len(hops)-whole-1]
				h.Has = 0
				for _, e := range ends {
					if e.bit <= rest*8 {
						h.Has |= e.field
					}
				}
				// What is not there must be 0 as well: build the hop anew from what is.
				h = only(h)
				want = append([]decode.Hop{h}, want...)
			}
			if !slices.Equal(r.Hops, want) {
				t.Fatalf("%s cut at %d:\n got %+v\nwant %+v", name, n, r.Hops, want)
			}
		}
	}
	payload := udp(vector(t, "int-path-received"))
	cut("int-path", payload, 8+64, labelLen, pathEnds[:], pathHops, func(r *decode.Report, b []byte) {
		DecodePath(r, b, len(payload), 34, false)
	})
	frame := vector(t, "int-probe-two-hops")[14:]
	cut("int-probe", frame, 2, probeLabelLen, probeEnds[:], probeHops, func(r *decode.Report, b []byte) {
		DecodeProbe(r, TypeINT, b, len(frame), 14)
	})
	frame1 := vector(t, "int-probe-one-hop")[14:]
	cut("int-probe with a route", frame1, 8, probeLabelLen, probeEnds[:], probeHops[:1], func(r *decode.Report, b []byte) {
		DecodeProbe(r, TypeRoute, b, len(frame1), 14)
	})
}

// only clears the values that Has does not name.
func only(h decode.Hop) decode.Hop {
	set := func(f decode.HopField) bool { return h.Has&f != 0 }
	out := decode.Hop{Has: h.Has}
	if set(decode.HopNodeID) {
		out.NodeID = h.NodeID
	}
	if set(decode.HopIngressIf) {
		out.IngressIf = h.IngressIf
	}
	if set(decode.HopEgressIf) {
		out.EgressIf = h.EgressIf
	}
	if set(decode.HopIngressTime) {
		out.IngressTime, out.TimeBits = h.IngressTime, 48
	}
	if set(decode.HopEgressTime) {
		out.EgressTime, out.TimeBits = h.EgressTime, 48
	}
	if set(decode.HopEnqTime) {
		out.EnqTime = h.EnqTime
	}
	if set(decode.HopQueueOccupancy) {
		out.QueueOccupancy = h.QueueOccupancy
	}
	if set(decode.HopQueueDelay) {
		out.QueueDelay = h.QueueDelay
	}
	if set(decode.HopDeqOccupancy) {
		out.DeqOccupancy = h.DeqOccupancy
	}
	return out
}

// Probes with random routes and labels come back as they were written, through every switch.
func TestRoundTrip(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	var r decode.Report // reused, so that nothing of a longer probe may stay
	for range 300 {
		ports := make([]int, 1+rng.IntN(40))
		for i := range ports {
			ports[i] = 1 + rng.IntN(MaxPathPort)
		}
		action := rng.Uint32()
		payload, err := AppendPath(nil, ports, uint64(action))
		if err != nil {
			t.Fatal(err)
		}
		frame, done := ipv4(payload), rng.IntN(len(ports)+1)
		var hops []decode.Hop
		for i := range done {
			port, err := PopPort(frame, 14)
			if err != nil || port != ports[i] {
				t.Fatalf("seed %d: hop %d: port %d, %v, want %d", seed, i, port, err, ports[i])
			}
			h := label(rng.Uint32N(256), uint16(rng.IntN(512)), uint16(port), rng.Uint64N(1<<48), rng.Uint32(), rng.Uint32N(1<<19), rng.Uint32(), rng.Uint32N(1<<19))
			hops = append(hops, h)
			if frame, err = PushLabel(frame, 14, &h); err != nil {
				t.Fatal(err)
			}
		}
		r.Reset()
		DecodePath(&r, frame[34:], len(frame)-34, 34, false)
		rest := make([]byte, srListLen)
		if done < len(ports) {
			if rest, err = AppendSRList(nil, ports[done:]); err != nil {
				t.Fatal(err)
			}
		}
		if r.Error() != nil || r.ActionID != action || !slices.Equal(r.Hops, hops) || zero(rest) == (r.Has&decode.HasSRList != 0) ||
			!zero(rest) && !bytes.Equal(r.SRList, rest) {
			t.Fatalf("seed %d: INT-path came back as %+v", seed, r)
		}

		ports = ports[:min(len(ports), MaxProbeHops)]
		done = rng.IntN(len(ports) + 1)
		if frame, err = AppendProbe(make([]byte, 12), ports); err != nil {
			t.Fatal(err)
		}
		frame = append(frame, make([]byte, rng.IntN(20))...) // padding
		hops = hops[:0]
		for i := range done {
			var port int
			if frame, port, err = PopProbePort(frame, 12); err != nil || port != ports[i] {
				t.Fatalf("seed %d: hop %d: port %d, %v, want %d", seed, i, port, err, ports[i])
			}
			h := probeLabel(rng.Uint32N(256), uint16(rng.IntN(256)), uint16(port), rng.Uint64N(1<<48), rng.Uint64N(1<<48), rng.Uint32(), rng.Uint32N(1<<24), rng.Uint32(), rng.Uint32N(1<<24))
			hops = append(hops, h)
			if frame, err = PushProbeLabel(frame, 12, &h); err != nil {
				t.Fatal(err)
			}
		}
		r.Reset()
		ok := DecodeProbe(&r, binary.BigEndian.Uint16(frame[12:]), frame[14:], len(frame)-14, 14)
		if !ok || r.Error() != nil || !slices.Equal(r.Hops, hops) || len(r.SRPorts) != 2*(len(ports)-done) {
			t.Fatalf("seed %d: INT-Probe came back as %+v", seed, r)
		}
	}
}

// A switch's step on bytes that are no probe is an error, and leaves them as they are.
func TestSwitchStepsRefuseOtherPackets(t *testing.T) {
	payload, err := AppendPath(nil, []int{1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	good := ipv4(payload)
	patch := func(at int, v byte) []byte {
		b := bytes.Clone(good)
		b[at] = v
		return b
	}
	for name, b := range map[string][]byte{
		"cut": good[:len(good)-1], "options": patch(14, 0x46), "TCP": patch(23, 6), "port": patch(37, 0), "fragment": patch(20, 0x20),
		"short UDP": patch(39, 75), "UDP beyond IP": patch(39, 77), "IP beyond the frame": patch(17, 255), "empty": nil,
	} {
		before := bytes.Clone(b)
		if _, err := PopPort(b, 14); !errors.Is(err, ErrPacket) {
			t.Errorf("PopPort, %s: %v", name, err)
		}
		if got, err := PushLabel(b, 14, &decode.Hop{}); !errors.Is(err, ErrPacket) || !bytes.Equal(got, before) {
			t.Errorf("PushLabel, %s: %v", name, err)
		}
	}
	if _, err := PushLabel(ipv4(withLabels(MaxPathHops, 0)), 14, &decode.Hop{}); !errors.Is(err, ErrTooLong) {
		t.Errorf("PushLabel on 128 labels: %v", err)
	}
	if _, err := PopPort(ipv4(withLabels(MaxPathHops, 0)), 14); err != nil {
		t.Errorf("PopPort on 128 labels: %v", err)
	}
	for name, b := range map[string][]byte{
		"empty": nil, "other type": {8, 0, 0, 4, 0, 0, 7, 1, 0, 0}, "no entry": {7, 0, 0, 2, 7, 1, 0, 0}, "odd": {7, 0, 0, 5, 0, 1, 7, 1, 0, 0},
		"cut": {7, 0, 0, 6, 0, 1, 0, 2, 7},
	} {
		before := bytes.Clone(b)
		if got, _, err := PopProbePort(b, 0); !errors.Is(err, ErrPacket) || !bytes.Equal(got, before) {
			t.Errorf("PopProbePort, %s: %v", name, err)
		}
	}
	for name, b := range map[string][]byte{
		"empty": nil, "other type": {8, 0, 0, 4}, "IPv4 behind the route": {7, 0, 0, 2, 8, 0, 0, 0}, "cut": {7, 0, 0, 4, 0, 1, 7, 1},
	} {
		before := bytes.Clone(b)
		if got, err := PushProbeLabel(b, 0, &decode.Hop{}); !errors.Is(err, ErrPacket) || !bytes.Equal(got, before) {
			t.Errorf("PushProbeLabel, %s: %v", name, err)
		}
	}
	if _, err := PushProbeLabel([]byte{7, 1, 0, 255}, 0, &decode.Hop{}); !errors.Is(err, ErrTooLong) {
		t.Errorf("PushProbeLabel on 255 labels: %v", err)
	}
}

// The P4 program subtracts without carry; below 22 the checksum comes out one too large (it should borrow around).
func TestPushLabelChecksumAsTheProgramHasIt(t *testing.T) {
	frame := ipv4(withLabels(0, 0))
	for _, old := range []uint16{22, 21, 0, 0xffff} {
		binary.BigEndian.PutUint16(frame[24:], old)
		out, err := PushLabel(bytes.Clone(frame), 14, &decode.Hop{})
		if got := binary.BigEndian.Uint16(out[24:]); err != nil || got != old-22 {
			t.Errorf("checksum %d became %d, %v, want %d", old, got, err, old-22)
		}
	}
}

func TestDecodeAllocatesNothing(t *testing.T) {
	path, probe := udp(vector(t, "int-path-received")), vector(t, "int-probe-two-hops")[14:]
	r := decode.Report{Hops: make([]decode.Hop, 0, 8)}
	if n := testing.AllocsPerRun(100, func() {
		r.Reset()
		DecodePath(&r, path, len(path), 0, false)
		r.Reset()
		DecodePath(&r, path[:100], len(path), 0, false)
		r.Reset()
		DecodeProbe(&r, TypeINT, probe, len(probe), 0)
		r.Reset()
		DecodeProbe(&r, TypeINT, probe[:40], 40, 0)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// TestDecodePathPayload: what a socket receives reads as what is in the frame.
func TestDecodePathPayload(t *testing.T) {
	udp := append([]byte{0, 1, 8, 0xae, 0, 142, 0, 0}, vector(t, "int-path-received")...)
	var frame, payload decode.Report
	DecodePath(&frame, udp, len(udp), 0, false)
	DecodePathPayload(&payload, udp[8:], len(udp)-8, false)
	if !reflect.DeepEqual(frame, payload) || len(payload.Hops) != 3 || !payload.WholePath() {
		t.Errorf("payload %+v\nframe %+v", payload, frame)
	}
	DecodePathPayload(&payload, udp[8:len(udp)-1], len(udp)-9, false)
	if payload.Err.Reason != decode.BadStack {
		t.Errorf("one byte short: %+v", payload.Err)
	}
	// Of a datagram that was longer than the memory for it the newest labels are there.
	payload.Reset()
	DecodePathPayload(&payload, udp[8:8+srListLen+labelLen], len(udp)-8, false)
	if payload.Err.Reason != 0 || payload.Flags != decode.Truncated || payload.Announced != 3 || len(payload.Hops) != 1 ||
		payload.Hops[0] != frame.Hops[2] || payload.Has&decode.HasActionID != 0 {
		t.Errorf("cut: %+v", payload)
	}
}
