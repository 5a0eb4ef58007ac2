package telemetry

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
)

var bad = []struct {
	name    string
	opts    Options
	in      string
	changes []string
	report  int // which of the datagram's reports fails
	of      int // how many there are
	field   string
	off     int
	reason  decode.Reason
}{
	{"empty payload", all, "", nil, 0, 1, "version", 0, decode.Short},
	{"version 3", all, "30000000 00000000 00000000 00000000", nil, 0, 1, "version", 0, decode.BadVersion},
	{"version 15", all, "ff", nil, 0, 1, "version", 0, decode.BadVersion},
	{"neither 0.5 nor 1.0", all, "13000000 00000000 00000000 00000000", nil, 0, 1, "version", 0, decode.BadVersion},
	{"neither, with host INT", Options{Versions: AllVersions, HostINT: true}, "13000000 00000000 00000000 00000000", nil, 0, 1, "version", 0, decode.BadVersion},
	{"0.5 not accepted", Options{Versions: V10 | V20}, "tr05-drop", nil, 0, 1, "version", 0, decode.BadVersion},
	{"0.5 under version 1 not accepted", Options{Versions: V10 | V20}, "tr05-ver1", nil, 0, 1, "version", 0, decode.BadVersion},
	{"1.0 not accepted", Options{Versions: V05 | V20}, "tr10", nil, 0, 1, "version", 0, decode.BadVersion},
	{"2.0 not accepted", Options{Versions: V05 | V10}, "tr20-group", nil, 0, 1, "version", 0, decode.BadVersion},

	{"0.5: NProto 3", all, "tr05-drop", []string{"0:03"}, 0, 1, "nproto", 0, decode.BadType},
	{"0.5: NProto 4", all, "tr05-drop", []string{"0:04"}, 0, 1, "nproto", 0, decode.BadType},
	{"0.5: NProto 15", all, "tr05-drop", []string{"0:0f"}, 0, 1, "nproto", 0, decode.BadType},
	{"0.5: NProto 5 with host INT", Options{Versions: V05, HostINT: true}, "tr05-drop", []string{"0:05"}, 0, 1, "nproto", 0, decode.BadType},
	{"0.5: 11 bytes", all, "00200003 00000029 075bcd", nil, 0, 1, "version", 0, decode.Short},
	{"0.5: drop header short", all, "01a00003 00000029 075bcd15 000000a1 00070000 005000", nil, 0, 1, "nproto", 12, decode.Short},
	{"0.5: local header short", all, "02600003 0000002a 3b9aca00 000000a1 00070009 050004b0 3b9ad3", nil, 0, 1, "nproto", 12, decode.Short},
	{"host INT: sink id short", Options{Versions: V05, HostINT: true}, "04200000 00000001 6b00272a 000000", nil, 0, 1, "nproto", 12, decode.Short},

	{"1.0: 15 bytes", all, "14000040 00000005 00000007 000000", nil, 0, 1, "version", 0, decode.Short},
	{"1.0: NProt 3", all, "tr10", []string{"1:76"}, 0, 1, "nprot", 1, decode.BadType},
	{"1.0: NProt 7", all, "tr10", []string{"1:f6"}, 0, 1, "nprot", 1, decode.BadType},
	{"1.0: length above the bitmap", all, "tr10 00000000", []string{"0:18"}, 0, 1, "length", 0, decode.BadLength},
	{"1.0: length below the bitmap", all, "tr10", []string{"0:16"}, 0, 1, "length", 0, decode.BadLength},
	{"1.0: length 15", all, "tr10", []string{"0:1f"}, 0, 1, "length", 0, decode.BadLength},
	{"1.0: length beyond the payload", all, "173600c9 000000b2 00000064 fffffff0 00030004 0200004d 000002", nil, 0, 1, "length", 0, decode.BadLength},
	{"postcard: short", Options{Versions: V10, Postcard: true}, "14001001 00000001 00000000 0000004d 00001f46 00000002", nil, 0, 1, "length", 0, decode.Short},

	{"2.0: group header short", all, "2140012c 000000", nil, 0, 1, "version", 0, decode.Short},
	{"2.0: no report", all, "2140012c 000000c3", nil, 0, 1, "report_length", 8, decode.Short},
	{"2.0: first word short", all, "2140012c 000000c3 140d04", nil, 0, 1, "report_length", 8, decode.Short},
	{"2.0: length beyond the payload", all, "tr20-group", []string{"9:20"}, 0, 1, "report_length", 9, decode.BadLength},
	{"2.0: length below its own metadata", all, "tr20-group", []string{"9:05"}, 0, 1, "report_length", 9, decode.BadLength},
	{"2.0: length 0", all, "tr20-group", []string{"9:00"}, 0, 1, "report_length", 9, decode.BadLength},
	{"2.0: to the end, but short", all, "tr20-group", []string{"9:ff"}, 0, 1, "report_length", 9, decode.BadLength},
	{"2.0: length 0 to the end without room for metadata", Options{Versions: V20, ZeroToEnd: true}, "20400000 00000003 13000020 00000000000000", nil,
		0, 1, "report_length", 9, decode.BadLength},
	{"2.0: MD Length below the bitmap", all, "tr20-group", []string{"10:03"}, 0, 2, "md_length", 10, decode.BadWidth},
	{"2.0: MD Length above the bitmap", all, "tr20-group", []string{"10:05"}, 0, 2, "md_length", 10, decode.BadWidth},
	{"2.0: MD Length above the bitmap, DS bits without a domain", all, "tr20-group", []string{"10:05", "16:80"}, 0, 2, "md_length", 10, decode.BadWidth},
	{"2.0: MD Length above the bitmap, domain without DS bits", all, "tr20-group", []string{"10:05", "15:09"}, 0, 2, "md_length", 10, decode.BadWidth},
	{"2.0: reserved bit 0", all, "tr20-group", []string{"12:d8"}, 0, 2, "rep_md_bits", 12, decode.Unsupported},
	{"2.0: RepType 2", all, "tr20-group", []string{"8:24"}, 0, 2, "rep_type", 8, decode.Unsupported},
	{"2.0: RepType 3", all, "tr20-group", []string{"8:34"}, 0, 2, "rep_type", 8, decode.BadType},
	{"2.0: RepType 15", all, "tr20-group", []string{"8:f4"}, 0, 2, "rep_type", 8, decode.BadType},
	{"2.0: InType 0 with an inner packet", all, "tr20-group", []string{"8:10"}, 0, 2, "in_type", 8, decode.BadLength},
	{"2.0: second report beyond the payload", all, "2140012c 000000c3 00000000 00040000 00000000", nil, 1, 2, "report_length", 13, decode.BadLength},
	{"2.0: one stray byte", all, "tr20-group 00", nil, 2, 3, "report_length", 84, decode.Short},
	{"2.0: three stray bytes", all, "tr20-group 000000", nil, 2, 3, "report_length", 84, decode.Short},
}

// What a report's header says stays out of a rejected report, except for the group header of 2.0, which was accepted.
func TestReject(t *testing.T) {
	var rd Reader
	for _, c := range bad {
		t.Run(c.name, func(t *testing.T) {
			data := bytesOf(t, c.in, c.changes...)
			got := read(&rd, &c.opts, data, len(data))
			if len(got) != c.of {
				t.Fatalf("%d reports from %x, want %d", len(got), data, c.of)
			}
			for i, o := range got {
				if i != c.report {
					if o.r.Err.Reason != 0 {
						t.Errorf("report %d: %v", i, &o.r.Err)
					}
					continue
				}
				want := one{r: decode.Report{Err: decode.Error{Format: decode.TelemetryReport, Field: c.field, Offset: c.off, Reason: c.reason}}}
				if len(data) >= 8 && data[0]>>4 == 2 && c.opts.Versions&V20 != 0 {
					want.r.Version, want.r.Has = decode.V20, decode.HasHWID|decode.HasNodeID|decode.HasSeq
					want.r.NodeID, want.r.HWID, want.r.Seq = o.r.NodeID, o.r.HWID, o.r.Seq
					want.r.SeqBits, want.r.FirstOfGroup = 22, i == 0
				}
				if c.field == "nproto" && c.off == 12 { // behind the fixed header of 0.5, which was accepted
					be := binary.BigEndian
					want.r.Version, want.r.Has = decode.V05, decode.HasHWID|decode.HasSeq|decode.HasHeaderTime
					want.r.HWID, want.r.Seq, want.r.HeaderTime = data[3]&0x3f, be.Uint32(data[4:]), be.Uint32(data[8:])
					want.r.SeqBits, want.r.FirstOfGroup = 32, true
					want.r.Flags, want.r.Kind = o.r.Flags, KindOf(o.r.Flags)
					if o.r.Flags == 0 {
						t.Errorf("report %d has no flags", i)
					}
				}
				if c.field == "rep_type" {
					want.r.Unknown = data[12:64]
				}
				if !equal(o, want) {
					t.Errorf("report %d of %x =\n%+v, want\n%+v", i, data, o, want)
				}
			}
		})
	}
}

// These lie behind the header of one report, which stays.
func TestRejectInside(t *testing.T) {
	const group = "20000001 00000007 "
	for _, c := range []struct {
		name, in string
		field    string
		off      int
		reason   decode.Reason
	}{
		{"reserved InType", "17040020 2000000000000000 000005dc 00000000", "in_type", 8, decode.BadType},
		{"TLV too long", "11040120 2000000000000000 000005dc 20010000", "tlv_length", 25, decode.BadLength},
		{"second TLV too long", "11060120 2000000000000000 000005dc 20010000 45000000 00010000", "tlv_length", 33, decode.BadLength},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := bytesOf(t, group+c.in)
			data[10] = 1
			data = append(data, 0, 0, 0, 0) // an empty report follows
			got := read(new(Reader), &all, data, len(data))
			if len(got) != 2 || got[1].r.Err.Reason != 0 {
				t.Fatalf("%+v, want two reports, the second good", got)
			}
			r := got[0].r
			want := decode.Error{Format: decode.TelemetryReport, Field: c.field, Offset: c.off, Reason: c.reason}
			if r.Err != want || got[0].in.Type != InnerNone || r.Kind != decode.KindPostcard || len(r.Hops) != 1 || r.Hops[0].Latency != 1500 {
				t.Errorf("%+v, want the metadata and %v", got[0], &want)
			}
		})
	}
	// A stray byte behind the last TLV can only be there when the report runs to the end of the datagram.
	opts := Options{Versions: V20, ShortToEnd: true}
	data := bytesOf(t, group+"01ff0000 00000000 00")
	if got := read(new(Reader), &opts, data, len(data)); len(got) != 1 || got[0].r.Err.Field != "tlv_length" || got[0].r.Err.Reason != decode.Short {
		t.Errorf("%+v, want a short TLV", got)
	}
}

// A payload that the capture cut is no error: what precedes the cut is there, a header that was cut adds nothing.
func TestCut(t *testing.T) {
	var rd Reader
	for _, c := range good {
		t.Run(c.name, func(t *testing.T) {
			data := bytesOf(t, c.in, c.changes...)
			for n := range data {
				got := read(&rd, &c.opts, data[:n:n], len(data))
				for i, o := range got {
					switch {
					case o.r.Err.Reason != 0:
						t.Errorf("cut at %d: %v", n, &o.r.Err)
					case o.r.Kind != 0 && o.in.At > n && o.in.Type != InnerNone:
						t.Errorf("cut at %d: inner packet at %d", n, o.in.At)
					case o.r.Version == decode.V05 && o.r.Kind != 0 && o.r.Flags&decode.Truncated != 0: // in the header behind the fixed one
						want := one{r: decode.Report{
							Version: decode.V05, Kind: c.want[i].r.Kind, Flags: c.want[i].r.Flags | decode.Truncated,
							Has: decode.HasHWID | decode.HasSeq | decode.HasHeaderTime, HWID: c.want[i].r.HWID, Seq: c.want[i].r.Seq,
							SeqBits: 32, FirstOfGroup: true, HeaderTime: c.want[i].r.HeaderTime,
						}}
						if !equal(o, want) {
							t.Errorf("cut at %d: %+v, want %+v", n, o, want)
						}
					case o.r.Kind == 0 && (o.r.Flags != decode.Truncated || len(o.r.Hops) != 0):
						t.Errorf("cut at %d in a header: %+v", n, o.r)
					case o.r.Kind != 0 && !strings.Contains(c.name, "TLV") && !strings.Contains(c.name, "extension"):
						if !equal(o, c.want[i]) {
							t.Errorf("cut at %d: report %d %+v, whole %+v", n, i, o, c.want[i])
						}
					}
				}
			}
		})
	}
}

// A capture that ends before the last report of a group differs from a datagram that had no more. One report stands
// for all that are missing.
func TestCutGroup(t *testing.T) {
	rest := func(r *decode.Report, count int) bool {
		return r.Kind == 0 && r.Flags == decode.Truncated && len(r.Hops) == 0 && r.Err.Reason == 0 && r.Version == decode.V20 &&
			r.NodeID == 195 && r.HWID == 5 && r.Seq == 300 && r.Has == decode.HasNodeID|decode.HasHWID|decode.HasSeq && r.FirstOfGroup == (count == 0)
	}
	data := bytesOf(t, "tr20-group 03000000") // behind its two reports one without a packet
	for n := 8; n <= len(data); n++ {
		whole := 0
		for _, end := range []int{36, 84, 88} { // of the reports' headers
			if n >= end {
				whole++
			}
		}
		got := read(new(Reader), &all, data[:n:n], len(data))
		want := min(whole+1, 3)
		if len(got) != want {
			t.Errorf("cut at %d: %d objects, want %d", n, len(got), want)
			continue
		}
		for i, o := range got {
			if i < whole && (o.r.Kind == 0 || o.r.Flags&decode.Truncated != 0) || i >= whole && !rest(&o.r, i) {
				t.Errorf("cut at %d: object %d %+v", n, i, o.r)
			}
		}
		if n < len(data) { // a datagram that ends there by its length has no more to come
			for i, o := range read(new(Reader), &all, data[:n:n], n) {
				if o.r.Flags&decode.Truncated != 0 {
					t.Errorf("%d bytes: object %d is truncated", n, i)
				}
			}
		}
	}
}

// What there is of a header that was cut can be enough to reject it. The rest of the group follows as far as it can
// be found.
func TestCutReject(t *testing.T) {
	const group = "20000001 00000007 "
	for _, c := range []struct {
		name, in string
		n        int // bytes that are enough, behind the group header
		field    string
		off      int
		reason   decode.Reason
		more     bool
	}{
		{"Report Length beyond the payload", "04200000", 2, "report_length", 9, decode.BadLength, false},
		{"Report Length below the metadata", "14030200 4000000000000000 00000000", 3, "report_length", 9, decode.BadLength, false},
		{"RepType 2", "24010000 00000000", 2, "rep_type", 8, decode.Unsupported, true},
		{"RepType 3", "34010000 00000000", 2, "rep_type", 8, decode.BadType, true},
		{"no inner packet, but words", "00010000 00000000", 2, "in_type", 8, decode.BadLength, true},
		{"reserved bit 0", "14040100 c000000000000000 00000000 00000000", 6, "rep_md_bits", 12, decode.Unsupported, true},
		{"MD Length below the bitmap", "14040000 4000000000000000 00000000 00000000", 6, "md_length", 10, decode.BadWidth, true},
		{"MD Length above the bitmap, no domain", "14040200 4000000000000000 00000000 00000000", 8, "md_length", 10, decode.BadWidth, true},
		{"MD Length above the bitmap, no DS bits", "14040200 4000000100000000 00000000 00000000", 10, "md_length", 10, decode.BadWidth, true},
		{"metadata, no inner packet, but words", "10040100 4000000000000000 00000000 00000000", 6, "in_type", 8, decode.BadLength, true},
	} {
		data := bytesOf(t, group+c.in+" 00000000") // another report follows
		if !c.more {
			data = data[:len(data)-4]
		}
		for n := 8; n < 8+16 && n < len(data)-4; n++ {
			got := read(new(Reader), &all, data[:n:n], len(data))
			r := got[0].r
			if n-8 < c.n {
				if len(got) != 1 || r.Err.Reason != 0 || r.Flags != decode.Truncated || r.Kind != 0 {
					t.Errorf("%s, %d bytes: %d objects, the first %+v", c.name, n-8, len(got), r)
				}
				continue
			}
			if want := (decode.Error{Format: decode.TelemetryReport, Field: c.field, Offset: c.off, Reason: c.reason}); r.Err != want || r.Flags != 0 || r.Kind != 0 || len(r.Hops) != 0 {
				t.Errorf("%s, %d bytes: %+v, want %v", c.name, n-8, r, &want)
			}
			if more := len(got) == 2; more != c.more || more && (got[1].r.Flags != decode.Truncated || got[1].r.Err.Reason != 0) {
				t.Errorf("%s, %d bytes: %d objects", c.name, n-8, len(got))
			}
		}
	}
}

// The sequence number of a header that was cut behind it counts, although the header adds nothing else.
func TestCutSequence(t *testing.T) {
	for _, c := range []struct {
		name, in string
		opts     Options
		at       int // where the sequence number ends
		hwID     uint8
		node     uint32
		seq      uint32
		bits     uint8
	}{
		{"0.5", "tr05-local", all, 8, 3, 0, 42, 32},
		{"1.0", "tr10", all, 12, 9, 0xb2, 100, 32},
		{"1.0 without a count", "tr10", Options{Versions: V10, NoSequence: true}, 12, 9, 0xb2, 100, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := bytesOf(t, c.in)
			header := 28
			if c.name == "0.5" {
				header = 12
			}
			for n := range header {
				r := read(new(Reader), &c.opts, data[:n:n], len(data))[0].r
				if r.Kind != 0 || r.Flags != decode.Truncated || r.HeaderCut != (n >= c.at) {
					t.Errorf("cut at %d: %+v", n, r)
				}
				if n >= c.at && (r.HWID != c.hwID || r.NodeID != c.node || r.Seq != c.seq || r.SeqBits != c.bits || r.FirstOfGroup != (c.bits > 0)) {
					t.Errorf("cut at %d: %+v, want number %d of node %d", n, r, c.seq, c.node)
				}
			}
		})
	}
}

// Report Length 0 of RepType 0 is legal and means no packet, also where that of RepType 1 means to the end.
func TestZeroToEnd(t *testing.T) {
	opts := Options{Versions: V20, ZeroToEnd: true}
	got := read(new(Reader), &opts, bytesOf(t, "20000001 00000007 03000000 13000020 0000000000000000 45000000"), 28)
	if len(got) != 2 || got[0].in.At != got[0].in.End || got[0].r.Err.Reason != 0 {
		t.Fatalf("%+v, want an empty report and one to the end", got)
	}
	if in := got[1].in; in.Type != InnerEthernet || in.At != 24 || in.End != 28 || got[1].r.Err.Reason != 0 {
		t.Errorf("%+v, want a packet to the end", got[1])
	}
}

// A payload that ends early, and says so, is an error as long as a fixed header is missing.
func TestShort(t *testing.T) {
	var rd Reader
	for _, c := range good {
		data := bytesOf(t, c.in, c.changes...)
		for n := range data {
			for _, o := range read(&rd, &c.opts, data[:n:n], n) {
				if o.r.Err.Reason == 0 && o.r.Kind == 0 {
					t.Errorf("%s, %d bytes: neither error nor kind: %+v", c.name, n, o.r)
				}
				if o.r.Flags&decode.Truncated != 0 {
					t.Errorf("%s, %d bytes: truncated, though the capture is whole", c.name, n)
				}
			}
		}
	}
}

// More reports in a datagram than any device sends are not read.
func TestMaxReports(t *testing.T) {
	data := bytesOf(t, "20000001 00000007 "+strings.Repeat("00000000", 2*MaxReports))
	got := read(new(Reader), &all, data, len(data))
	if n := len(got); n != MaxReports+1 {
		t.Fatalf("%d reports, want %d", n, MaxReports+1)
	}
	if e := got[MaxReports].r.Err; e.Field != "report_length" || e.Reason != decode.BadCount || e.Offset != 8+4*MaxReports {
		t.Errorf("last error %v", &e)
	}
}

func FuzzReader(f *testing.F) {
	for _, c := range good {
		f.Add(bytesOf(f, c.in, c.changes...), 0)
	}
	for _, c := range bad {
		f.Add(bytesOf(f, c.in, c.changes...), 0)
	}
	opts := []Options{
		all, {Versions: AllVersions, FlagsFirst: true, HostINT: true, ZeroToEnd: true, ShortToEnd: true},
		{Versions: AllVersions, Postcard: true, HostINT: true, NoSinkID: true},
	}
	f.Fuzz(func(t *testing.T, data []byte, more int) {
		if len(data) > 1<<16 {
			return
		}
		length := max(0, len(data)+more%300)
		for i := range opts {
			got := read(new(Reader), &opts[i], data, length)
			if len(got) == 0 || len(got) > MaxReports+1 {
				t.Fatalf("%d reports from %x", len(got), data)
			}
			for _, o := range got {
				if e := o.r.Err; e.Reason != 0 && (e.Field == "" || e.Offset < 0 || e.Offset > length) {
					t.Fatalf("error %+v from %x", e, data)
				}
				if len(o.r.Hops) > 2 || o.in.Type != InnerNone && (o.in.At > o.in.End || o.in.End > length || o.in.At > len(data)) {
					t.Fatalf("%+v from %x", o, data)
				}
			}
		}
	})
}
