package intmd

import (
	"testing"

	"github.com/hopscope/hopscope/decode"
)

var bad = []struct {
	name    string
	opts    Options
	in      string
	changes []string
	place   Place
	field   string
	off     int // from the shim
	reason  decode.Reason
}{
	// 1.0, from the vector over TCP (its shim is byte 54)
	{"1.0: stack no multiple", all, "int10-tcp@54", []string{"56:06"}, Place{}, "length", 2, decode.BadStack},
	{"1.0: length beyond IP", all, "int10-tcp@54", []string{"56:0a"}, Place{}, "length", 2, decode.BadLength},
	{"1.0: length beyond UDP", all, "int10-tcp@54", nil, Place{End: 27, IPEnd: 33}, "length", 2, decode.BadLength},
	{"1.0: length too small", all, "int10-tcp@54", []string{"56:02"}, Place{}, "length", 2, decode.BadLength},
	{"1.0: length 0", all, "int10-tcp@54", []string{"56:00"}, Place{}, "length", 2, decode.BadLength},
	{"1.0: Hop ML too large", all, "int10-tcp@54", []string{"60:03"}, Place{}, "hop_ml", 6, decode.BadWidth},
	{"1.0: Hop ML 0 with a stack", all, "int10-tcp@54", []string{"60:00", "62:00"}, Place{}, "hop_ml", 6, decode.BadWidth},
	{"1.0: Hop ML 31", all, "int10-tcp@54", []string{"60:1f"}, Place{}, "hop_ml", 6, decode.BadWidth},
	{"1.0: version 2", all, "int10-tcp@54", []string{"58:20"}, Place{}, "version", 4, decode.BadVersion},
	{"1.0: version 15", all, "int10-tcp@54", []string{"58:f0"}, Place{}, "version", 4, decode.BadVersion},
	{"1.0: version 0 is 0.5, whose Ins Cnt does not fit", all, "int10-tcp@54", []string{"58:00"}, Place{}, "ins_cnt", 5, decode.BadWidth},
	{"1.0: not accepted", Options{Versions: V05 | V21}, "int10-tcp@54", nil, Place{}, "version", 4, decode.BadVersion},
	{"type 0", all, "int10-tcp@54", []string{"54:00"}, Place{}, "type", 0, decode.BadType},
	{"type 3 of host INT", all, "int10-tcp@54", []string{"54:03"}, Place{}, "type", 0, decode.BadType},
	{"type 15", all, "int10-tcp@54", []string{"54:0f"}, Place{}, "type", 0, decode.BadType},
	{"1.0 in a tunnel", all, "int10-tcp@54", nil, Place{Carrier: GRE}, "type", 0, decode.BadType},
	{"0.5 and 1.0: not accepted", Options{Versions: V21}, "int10-tcp@54", nil, Place{}, "type", 0, decode.BadType},
	{"1.0: destination header beyond IP", all, "02 00 04 00 0102030405060708", nil, Place{}, "length", 2, decode.BadLength},
	{"1.0: destination header without length", all, "02 00 00 00 0102030405060708", nil, Place{}, "length", 2, decode.BadLength},
	{"1.0: only the shim in the packet", all, "01 00 03 00", nil, Place{}, "length", 2, decode.BadLength},
	{"wide times: bitmap that the program writes wrong", Options{Versions: V10, WideTimes: true},
		"01 00 05 00 10 00 02 01 30 00 00 00 0000000700000008", nil, Place{}, "instructions", 8, decode.BadWidth},
	{"wide times: widths of the specification", Options{Versions: V10, WideTimes: true}, "int10-all", nil, Place{}, "hop_ml", 6, decode.BadWidth},
	{"version 0 under the 1.0 layout, an 0.5 header", Options{Versions: V10, Version0: true}, "int05-udp", nil, Place{}, "hop_ml", 6, decode.BadWidth},

	// 0.5
	{"0.5: length too large", all, "int05-udp", []string{"2:0a"}, Place{End: 64, IPEnd: 64}, "length", 2, decode.BadLength},
	{"0.5: length too small for its hops", all, "int05-udp", []string{"2:07"}, Place{}, "length", 2, decode.BadLength},
	{"0.5: length without room for the tail", all, "int05-udp", []string{"2:03"}, Place{}, "length", 2, decode.BadLength},
	{"0.5: length beyond IP", all, "int05-udp", nil, Place{End: 64, IPEnd: 31}, "length", 2, decode.BadLength},
	{"0.5: more hops than allowed", all, "int05-udp", []string{"7:11"}, Place{}, "total_hop_cnt", 7, decode.BadCount},
	{"0.5: Ins Cnt too large", all, "int05-udp", []string{"5:03"}, Place{}, "ins_cnt", 5, decode.BadWidth},
	{"0.5: Ins Cnt 0", all, "int05-udp", []string{"5:00", "8:00"}, Place{}, "ins_cnt", 5, decode.BadWidth},
	{"0.5: not accepted", Options{Versions: V10}, "int05-udp", nil, Place{}, "version", 4, decode.BadVersion},
	{"host INT: version 1", Options{Versions: V05 | V10, HostINT: true}, "03 00 07 00 10 01 02 02 80 00 00 00 00000016 0000000b 00000011 06000000",
		nil, Place{}, "version", 4, decode.BadVersion},
	{"host INT: no room for the sequence number", Options{Versions: V05, HostINT: true}, "03 00 04 00 00 01 02 00 80 00 00 00 06000000",
		nil, Place{}, "length", 2, decode.BadLength},

	// 2.x, from the vector over UDP (its shim is byte 42)
	{"2.1: length too small", all, "int21-udp@42", []string{"43:02"}, Place{ByPort: true}, "length", 1, decode.BadLength},
	{"2.1: stack no multiple", all, "int21-udp@42", []string{"43:12"}, Place{ByPort: true}, "length", 1, decode.BadStack},
	{"2.1: length beyond UDP", all, "int21-udp@42", []string{"43:18"}, Place{ByPort: true}, "length", 1, decode.BadLength},
	{"2.1: length 255", all, "int21-udp@42", []string{"43:ff"}, Place{ByPort: true}, "length", 1, decode.BadLength},
	{"2.1: version 1", all, "int21-udp@42", []string{"46:10"}, Place{ByPort: true}, "version", 4, decode.BadVersion},
	{"2.1: Hop ML below the bitmap", all, "int21-udp@42", []string{"48:05"}, Place{ByPort: true}, "hop_ml", 2 + 4, decode.BadWidth},
	{"2.1: Hop ML above the bitmap", all, "int21-udp@42", []string{"48:0e"}, Place{ByPort: true}, "hop_ml", 2 + 4, decode.BadWidth},
	{"2.1: Hop ML 0 with a stack", all, "int21-udp@42", []string{"48:00"}, Place{ByPort: true}, "hop_ml", 2 + 4, decode.BadWidth},
	{"2.1: Hop ML 0 and bitmap 0 with a stack", all, "int21-udp@42", []string{"48:00", "50:00"}, Place{ByPort: true}, "hop_ml", 2 + 4, decode.BadWidth},
	{"2.1: NPT 3", all, "int21-udp@42", []string{"42:1c"}, Place{ByPort: true}, "npt", 0, decode.BadType},
	{"2.1: NPT 1 without the port", all, "int21-udp@42", nil, Place{}, "npt", 0, decode.BadType},
	{"2.1: type 4", all, "int21-udp@42", []string{"42:44"}, Place{ByPort: true}, "type", 0, decode.BadType},
	{"2.1: type 15", all, "int21-udp@42", []string{"42:f0"}, Place{ByPort: true}, "type", 0, decode.BadType},
	{"2.1: not accepted", Options{Versions: V05 | V10}, "int21-udp@42", nil, Place{ByPort: true}, "type", 0, decode.BadType},
	{"2.1: unknown domain", all, "int21-srconly", nil, Place{ByPort: true}, "domain_id", 10, decode.UnknownDomain},
	{"2.1: another domain is known", Options{Versions: V21, Domains: []Domain{{ID: 0x4143}}}, "int21-srconly", nil, Place{ByPort: true},
		"domain_id", 10, decode.UnknownDomain},
	{"2.1: domain without words but a wider Hop ML", all, "10 07 00 00 20 00 02 05 80 00 00 09 00 00 00 00 00000002 aaaaaaaa 00000001 bbbbbbbb",
		nil, Place{}, "hop_ml", 6, decode.BadWidth},
	{"2.1: known domain, Hop ML below the bitmap", Options{Versions: V21, Domains: []Domain{{ID: 0x4142}}}, "int21-srconly", []string{"8:c0"},
		Place{ByPort: true}, "hop_ml", 6, decode.BadWidth},
	{"2.1: known domain, source words longer than the stack", Options{Versions: V21, Domains: []Domain{{ID: 0x4142, SourceWords: [16]uint8{255}}}},
		"int21-srconly", nil, Place{ByPort: true}, "length", 1, decode.BadStack},
	{"2.1: known domain, stack of source words alone", Options{Versions: V21, Domains: []Domain{{ID: 0x4142, SourceWords: [16]uint8{5}}}},
		"int21-srconly", nil, Place{ByPort: true}, "length", 1, decode.BadStack},
	{"2.1: known domain, no multiple", Options{Versions: V21, Domains: []Domain{{ID: 0x4142, SourceWords: [16]uint8{2}}}},
		"int21-srconly", []string{"6:02"}, Place{ByPort: true}, "length", 1, decode.BadStack},
	{"FANT without its domain", all, "fant-detailed", nil, Place{}, "hop_ml", 6, decode.BadWidth},
	{"FANT's widths in another domain", fantOptions, "fant-detailed", []string{"11:18"}, Place{}, "hop_ml", 6, decode.BadWidth},
	{"FANT, widths of 2.1", fantOptions, "fant-detailed", []string{"6:13"}, Place{}, "hop_ml", 6, decode.BadWidth},
	{"FANT, stack no multiple", fantOptions, "fant-detailed", []string{"1:2e"}, Place{}, "length", 1, decode.BadStack},
	{"bitmap from the left, read from the right", Options{Versions: V21, LeastFirst: true}, "int21-udp@42", nil, Place{ByPort: true},
		"hop_ml", 6, decode.BadWidth},
	{"2.1: destination header beyond UDP", all, "20 03 00 00 0102030405060708", nil, Place{}, "length", 1, decode.BadLength},
	{"INT-MX: length too small", all, "int21-mx", []string{"1:02"}, Place{ByPort: true}, "length", 1, decode.BadLength},
	{"INT-MX: length beyond UDP", all, "int21-mx", []string{"1:06"}, Place{ByPort: true}, "length", 1, decode.BadLength},
	{"INT-MX: version", all, "int21-mx", []string{"4:18"}, Place{ByPort: true}, "version", 4, decode.BadVersion},
	{"GRE: type", all, "int21-gre@4", []string{"4:48"}, Place{Carrier: GRE}, "type", 0, decode.BadType},
	{"VXLAN-GPE: 8-bit type", all, "int21-gpe@8", []string{"8:11"}, Place{Carrier: VXLANGPE}, "type", 0, decode.BadType},
	{"VXLAN-GPE: length", all, "int21-gpe@8", []string{"9:06"}, Place{Carrier: VXLANGPE}, "length", 1, decode.BadLength},
	{"Geneve: type 0", all, "int21-geneve@8", []string{"10:00"}, Place{Carrier: Geneve}, "type", 0, decode.BadType},
	{"Geneve: type 17", all, "int21-geneve@8", []string{"10:11"}, Place{Carrier: Geneve}, "type", 0, decode.BadType},
	{"Geneve: length beyond the options", all, "int21-geneve@8", []string{"11:06"}, Place{Carrier: Geneve}, "length", 3, decode.BadLength},
	{"Geneve: destination, length beyond the options", all, "int21-geneve@8", []string{"10:02", "11:06"}, Place{Carrier: Geneve}, "length", 3, decode.BadLength},
}

// A rejected stack adds nothing to the report but the error.
func TestReject(t *testing.T) {
	for _, c := range bad {
		t.Run(c.name, func(t *testing.T) {
			data := bytesOf(t, c.in, c.changes...)
			r := decode.Report{Flags: decode.Tracked, Hops: []decode.Hop{node(99)}}
			want := decode.Report{Flags: decode.Tracked, Hops: []decode.Hop{node(99)}}
			want.Err = decode.Error{Format: decode.INTMD, Field: c.field, Offset: c.off, Reason: c.reason}
			v, _ := run(New(c.opts), &r, data, c.place)
			if c.reason == decode.UnknownDomain { // whose words are kept
				if len(r.Unknown) == 0 {
					t.Error("no bytes of the unknown domain")
				}
				r.Unknown = nil
			}
			if v != 0 || !equal(r, want) {
				t.Errorf("Decode(%x) = %v\n%+v, want\n%+v", data, v, r, want)
			}
		})
	}
}

// A stack that the capture cut is no error while the lengths are right. It has its whole blocks, and the whole items
// of the cut block. The remaining hops are the same as in the whole stack.
func TestCut(t *testing.T) {
	for _, c := range good {
		t.Run(c.name, func(t *testing.T) {
			data := bytesOf(t, c.in, c.changes...)
			var whole decode.Report
			place := c.place
			if place.End == 0 {
				place.End, place.IPEnd = len(data), len(data)
			}
			d := New(c.opts)
			run(d, &whole, data, place)
			for n := range data {
				var r decode.Report
				v, _ := run(d, &r, data[:n:n], place)
				if r.Err.Reason != 0 {
					t.Errorf("cut at %d: %v", n, &r.Err)
				}
				if got := r.Flags&decode.Truncated != 0; got != (n < c.next) {
					t.Errorf("cut at %d: truncated %v", n, got)
				}
				if v == 0 && (len(r.Hops) != 0 || r.Has != 0) {
					t.Errorf("cut at %d, in the header: %+v", n, r)
				}
				for i := range r.Hops {
					got, full := r.Hops[len(r.Hops)-1-i], whole.Hops[len(whole.Hops)-1-i]
					if i < len(r.Hops)-1 && got != full || got.Has&^full.Has != 0 {
						t.Errorf("cut at %d: hop %d from the end %+v, whole %+v", n, i, got, full)
					}
				}
			}
		})
	}
	// The lengths of the packet agree: then it is an error.
	data := bytesOf(t, "int10-tcp@54")
	for n := 4; n < 28; n++ {
		var r decode.Report
		if run(New(all), &r, data[:n:n], Place{}); r.Err.Reason != decode.BadLength {
			t.Errorf("packet of %d bytes: %v", n, &r.Err)
		}
	}
}

// The reporting node's own hop stays behind those of the stack.
func TestOwnHop(t *testing.T) {
	data := bytesOf(t, "int21-gre@4")
	r := decode.Report{Hops: []decode.Hop{node(99)}}
	run(New(all), &r, data, Place{Carrier: GRE})
	want := []decode.Hop{node(0x11), node(0x21), node(99)}
	if len(r.Hops) != 3 || r.Hops[0] != want[0] || r.Hops[1] != want[1] || r.Hops[2] != want[2] {
		t.Errorf("Hops = %+v, want %+v", r.Hops, want)
	}
}

// Every byte of every good packet set to its extremes.
func TestExtremes(t *testing.T) {
	for _, c := range good {
		data := bytesOf(t, c.in, c.changes...)
		d := New(c.opts)
		for i := range data {
			for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
				was := data[i]
				data[i] = v
				var r decode.Report
				run(d, &r, data, c.place)
				sane(t, &r, data)
				data[i] = was
			}
		}
	}
}

// sane checks what holds for any input.
func sane(t *testing.T, r *decode.Report, data []byte) {
	t.Helper()
	if e := r.Err; e.Reason != 0 && (e.Field == "" || e.Offset < 0 || e.Offset > len(data)) {
		t.Fatalf("error %+v for %d bytes %x", e, len(data), data)
	}
	if len(r.Hops) > 252 { // 255 words, less the header, of one word each
		t.Fatalf("%d hops from %x", len(r.Hops), data)
	}
	if r.Err.Reason != 0 && len(r.Hops) != 0 {
		t.Fatalf("hops beside %v from %x", &r.Err, data)
	}
}

func FuzzDecode(f *testing.F) {
	for _, c := range good {
		f.Add(bytesOf(f, c.in, c.changes...), 0, 0, uint8(c.place.Carrier), c.place.ByPort)
	}
	for _, c := range bad {
		f.Add(bytesOf(f, c.in, c.changes...), 0, 0, uint8(c.place.Carrier), c.place.ByPort)
	}
	decoders := []*Decoder{
		New(all), New(Options{Versions: AllVersions, HostINT: true, Domains: []Domain{{ID: 0x4142, SourceWords: [16]uint8{0: 2, 9: 200}}}}),
		New(Options{Versions: V10, WideTimes: true}), New(Options{Versions: V10, Version0: true}), New(Options{Versions: V21, LeastFirst: true}),
	}
	f.Fuzz(func(t *testing.T, data []byte, end, ipEnd int, carrier uint8, byPort bool) {
		for i, d := range decoders {
			var r decode.Report
			p := Place{Carrier: Carrier(carrier % 4), ByPort: byPort, SinkReport: i == 1 && end&1 != 0}
			p.End, p.IPEnd = max(4, len(data)+end%300), max(4, len(data)+ipEnd%300)
			v, _ := run(d, &r, data, p)
			sane(t, &r, data)
			if v != 0 && r.Err.Reason != 0 {
				t.Fatalf("version %v beside %v", v, &r.Err)
			}
		}
	})
}
