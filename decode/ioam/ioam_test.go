package ioam

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
)

func TestRejects(t *testing.T) {
	trace := vector(t, "ioam-trace")
	const opt = 44 // of the option; its body begins at 48
	with := func(name string, at int, b ...byte) []byte {
		v := slices.Clone(vector(t, name))
		copy(v[at:], b)
		return v
	}
	option := func(b ...byte) []byte { return packetWith(t, b) }
	cut := func(b []byte, n int) []byte { // an option that ends earlier by its own length
		b = slices.Clone(b[:len(b)-n])
		b[1] = byte(len(b) - 2)
		return packetWith(t, b)
	}
	tests := []struct {
		name   string
		packet []byte
		field  string // of the error; empty: accepted
		offset int
		why    decode.Reason
		hops   int
	}{
		{"as it is", trace, "", 0, 0, 2},
		{"13 words free of 12", with("ioam-trace", 50, 0x20, 0x0d), "remaining_len", 51, decode.BadLength, 0},
		{"36 bytes of nodes", with("ioam-trace", 50, 0x20, 0x03), "remaining_len", 51, decode.BadStack, 0},
		{"NodeLen 0", with("ioam-trace", 50, 0), "node_len", 50, decode.BadWidth, 0},
		{"NodeLen 3", with("ioam-trace", 50, 0x18), "node_len", 50, decode.BadWidth, 0},
		{"option beyond its header", with("ioam-trace", 45, 0x3d), "opt_data_len", 45, decode.BadLength, 0},
		{"data area of 50 bytes", with("ioam-trace", 45, 0x3c), "opt_data_len", 45, decode.BadLength, 0},
		{"bit 7", with("ioam-trace", 52, 0xf1), "node_len", 50, decode.BadWidth, 0},
		{"overflow", with("ioam-trace", 50, 0x24), "", 0, 0, 2},
		{"bit 23", with("ioam-trace", 54, 1), "", 0, 0, 2},
		{"undefined flag", with("ioam-trace", 51, 0x84), "", 0, 0, 2},
		{"header beyond the packet", with("ioam-trace", 41, 9), "opt_data_len", 45, decode.BadLength, 0},
		{"type 5", with("ioam-trace", 47, 5), "ioam_type", 47, decode.Unsupported, 0},
		{"type 64", with("ioam-trace", 47, 64), "ioam_type", 47, decode.Unsupported, 0},
		{"no IOAM type", option(0x31, 1, 0), "opt_data_len", opt + 1, decode.Short, 0},
		{"no body", option(0x31, 2, 0, 0), "opt_data_len", opt + 1, decode.Short, 0},
		{"body of 4 bytes", option(0x31, 6, 0, 1, 0, 1, 0, 0), "opt_data_len", opt + 1, decode.Short, 0},
		{"empty trace", option(0x31, 10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0), "", 0, 0, 0},
		{"no bits and a word of data", option(0x31, 14, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4), "node_len", opt + 6, decode.BadWidth, 0},
		{"no bits and a free word", option(0x31, 14, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4), "", 0, 0, 0},
		{"undefined bit 12", option(0x31, 14, 0, 0, 0, 1, 8, 0, 0, 8, 0, 0, 255, 255, 255, 255), "", 0, 0, 1},
		{"snapshots alone", option(0x31, 18, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 0, 255, 255, 255, 0, 0, 0, 1), "", 0, 0, 2},
		{"snapshot beyond the option", option(0x31, 14, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 1, 0, 0, 1), "snapshot_length", opt + 12, decode.BadLength, 0},
		{"no room for a snapshot", option(0x31, 14, 0, 0, 0, 1, 8, 0, 128, 0, 2, 0, 1, 0, 0, 1), "snapshot_length", opt + 16, decode.BadLength, 0},
		{"E2E with both numbers", packetWith(t, with("ioam-e2e", 6, 0xc0)), "e2e_type", opt + 6, decode.BadType, 0},
		{"E2E short of 4 bytes", cut(vector(t, "ioam-e2e"), 4), "opt_data_len", opt + 1, decode.BadLength, 0},
		{"E2E with undefined bits", packetWith(t, with("ioam-e2e", 6, 0x7f, 0xff)), "", 0, 0, 0},
		{"DEX without its number", cut(vector(t, "ioam-dex"), 4), "opt_data_len", opt + 1, decode.BadLength, 0},
		{"DEX with an unknown extension", packetWith(t, with("ioam-dex", 7, 0xe0)), "opt_data_len", opt + 1, decode.BadLength, 0},
		{"DEX with a tail", packetWith(t, with("ioam-dex", 7, 0x80)), "", 0, 0, 0},
		{"POT short of 4 bytes", cut(vector(t, "ioam-pot"), 4), "opt_data_len", opt + 1, decode.Short, 0},
		{"POT of another type", cut(with("ioam-pot", 6, 1), 4), "", 0, 0, 0},
	}
	for _, tt := range tests {
		var b decode.Batch
		if n := read(&b, tt.packet, len(tt.packet)); n != 1 {
			t.Errorf("%s: %d reports", tt.name, n)
			continue
		}
		r := b.Reports[0]
		want := decode.Error{}
		if tt.field != "" {
			want = decode.Error{Format: decode.IOAM, Field: tt.field, Offset: tt.offset, Reason: tt.why}
		}
		if r.Err != want || len(r.Hops) != tt.hops || len(r.AddRare().IOAM.Nodes) != tt.hops || r.Flags&decode.Truncated != 0 {
			t.Errorf("%s: %+v, %d hops, flags %b, want %+v, %d hops", tt.name, r.Err, len(r.Hops), r.Flags, want, tt.hops)
		}
		if tt.field != "" && (r.AddRare().IOAM.Has != 0 || r.Flags != 0) {
			t.Errorf("%s: values beside the error: %+v", tt.name, r.AddRare().IOAM)
		}
	}
}

func TestNotIOAM(t *testing.T) {
	other := packetWith(t, []byte{5, 2, 0, 0})
	fragment := slices.Clone(vector(t, "ioam-trace"))
	fragment[6] = 44 // the hop-by-hop header becomes the fragment header of a later fragment
	for name, b := range map[string][]byte{"router alert": other, "later fragment": fragment, "IPv4": {0x45, 19: 0}} {
		var batch decode.Batch
		if n := read(&batch, b, len(b)); n != 0 || len(batch.Reports) != 0 {
			t.Errorf("%s: %d reports", name, n)
		}
	}
}

// A cut packet has a flag and its captured values, which equal those of the whole packet.
func TestCutCaptures(t *testing.T) {
	whole := map[string][]byte{"ioam-trace": vector(t, "ioam-trace")}
	for _, name := range []string{"ioam-opaque", "ioam-wide", "ioam-dex", "ioam-e2e", "ioam-pot"} {
		whole[name] = packetWith(t, vector(t, name))
	}
	const opt = 44
	for name, b := range whole {
		var all, some decode.Batch
		read(&all, b, len(b))
		want := all.Reports[0]
		end := opt + 2 + int(b[opt+1])
		for n := range len(b) {
			some.Reset()
			switch got := read(&some, b[:n], len(b)); {
			case got != len(some.Reports), n >= 48 && got != 1, n <= opt && got != 0:
				t.Fatalf("%s cut at %d: %d reports", name, n, got)
			case got == 0:
				continue
			}
			r := some.Reports[0]
			if r.Err.Reason != 0 || r.Flags&decode.Truncated != 0 != (n < end) {
				t.Fatalf("%s cut at %d: %v, flags %b", name, n, r.Error(), r.Flags)
			}
			missing := len(want.Hops) - len(r.Hops) // the first ones
			if missing < 0 || len(r.AddRare().IOAM.Nodes) != len(r.Hops) || r.AddRare().IOAM.Has&^want.AddRare().IOAM.Has != 0 {
				t.Fatalf("%s cut at %d: %+v", name, n, r)
			}
			if x := r.AddRare().IOAM; x.Has&decode.IOAMSeq != 0 && x.Seq != want.AddRare().IOAM.Seq || x.Has&decode.IOAMTraceType != 0 && x.TraceType != want.AddRare().IOAM.TraceType ||
				x.Has&decode.IOAMProofPacket != 0 && x.ProofPacket != want.AddRare().IOAM.ProofPacket || r.WholePath() && missing > 0 {
				t.Fatalf("%s cut at %d: %+v", name, n, r)
			}
			for i := range r.Hops {
				h, x, wh, wx := r.Hops[i], r.AddRare().IOAM.Nodes[i], want.Hops[missing+i], want.AddRare().IOAM.Nodes[missing+i]
				if i == 0 { // the one that was cut has some of the values
					wh.Drop(wh.Has &^ h.Has)
					wx = decode.IOAMNode{}
					if x.Has&^want.AddRare().IOAM.Nodes[missing].Has != 0 {
						t.Fatalf("%s cut at %d: %b beside %b", name, n, x.Has, want.AddRare().IOAM.Nodes[missing].Has)
					}
					x = wx
				}
				if h != wh || !reflect.DeepEqual(x, wx) {
					t.Fatalf("%s cut at %d, hop %d:\n%+v %+v, want\n%+v %+v", name, n, i, h, x, wh, wx)
				}
			}
		}
	}
	// Of the first node, its words one after the other.
	b := whole["ioam-trace"]
	for n, want := range map[int]int{88: 0, 91: 0, 92: 1, 96: 2, 100: 3, 103: 3} {
		var got decode.Batch
		read(&got, b[:n], len(b))
		count := 0
		if r := got.Reports[0]; len(r.Hops) == 2 {
			count++
			if r.Hops[0].Has&decode.HopEgressIf != 0 {
				count++
			}
			if r.AddRare().IOAM.Nodes[0].Has&decode.IOAMIngressSeconds != 0 {
				count++
			}
		}
		if count != want {
			t.Errorf("cut at %d: %d words of the first node, want %d", n, count, want)
		}
	}
}

// randomNode draws a node's possible values for a trace type.
func randomNode(rng *rand.Rand, kind uint32) (h decode.Hop, x decode.IOAMNode) {
	is := func(bit uint32) bool { return kind&bit != 0 && rng.IntN(4) > 0 }
	if is(BitNodeID | BitNodeIDWide) {
		x.Has, x.HopLimit = decode.IOAMHopLimit, uint8(rng.IntN(255))
	}
	hop := func(bit uint32, f decode.HopField, set func()) {
		if is(bit) {
			h.Has |= f
			set()
		}
	}
	node := func(bit uint32, f decode.IOAMNodeField, set func()) {
		if is(bit) {
			x.Has |= f
			set()
		}
	}
	v := func() uint32 { return rng.Uint32N(1<<32 - 1) }
	hop(BitNodeID, decode.HopNodeID, func() { h.NodeID = rng.Uint32N(1<<24 - 1) })
	hop(BitInterfaces, decode.HopIngressIf, func() { h.IngressIf = uint16(rng.IntN(0xffff)) })
	hop(BitInterfaces, decode.HopEgressIf, func() { h.EgressIf = uint16(rng.IntN(0xffff)) })
	node(BitSeconds, decode.IOAMIngressSeconds, func() { x.IngressSeconds = v() })
	node(BitFraction, decode.IOAMIngressFraction, func() { x.IngressFraction = v() })
	hop(BitTransitDelay, decode.HopLatency, func() { h.Latency = v() })
	node(BitNamespaceData, decode.IOAMNamespaceData, func() { x.NamespaceData = v() })
	hop(BitQueueDepth, decode.HopQueueOccupancy, func() { h.QueueOccupancy = v() })
	node(BitNodeIDWide, decode.IOAMNodeIDWide, func() { x.NodeIDWide = rng.Uint64N(1<<56 - 1) })
	node(BitInterfacesWide, decode.IOAMIngressIfWide, func() { x.IngressIfWide = v() })
	node(BitInterfacesWide, decode.IOAMEgressIfWide, func() { x.EgressIfWide = v() })
	node(BitNamespaceDataWide, decode.IOAMNamespaceDataWide, func() { x.NamespaceDataWide = rng.Uint64N(1<<64 - 1) })
	hop(BitBufferOccupancy, decode.HopBufferOccupancy, func() { h.BufferOccupancy = v() })
	node(BitSnapshot, decode.IOAMSchemaID, func() { x.SchemaID = rng.Uint32N(1<<24 - 1) })
	node(BitSnapshot, decode.IOAMOpaque, func() { x.Opaque = slices.Repeat([]byte{1, 2, 3, byte(rng.Uint32())}, 1+rng.IntN(5)) })
	return h, x
}

// Traces with random types come back as their nodes wrote them, long and short into the same report.
func TestRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var r decode.Report
	for range 20000 {
		kind := rng.Uint32N(1 << 24)
		if rng.IntN(2) == 0 {
			kind &= rng.Uint32N(1<<24) & 0xfff002
		}
		words := rng.IntN(62)
		option, err := AppendTrace(nil, &Trace{Namespace: uint16(rng.Uint32()), Type: kind, Words: words, Flags: decode.Active})
		if err != nil {
			t.Fatalf("trace type %#x, %d words: %v", kind, words, err)
		}
		ns := binary.BigEndian.Uint16(option[4:])
		var hops []decode.Hop
		var nodes []decode.IOAMNode
		free, overflow := words, false
		for range rng.IntN(8) {
			h, x := randomNode(rng, kind)
			size := NodeLen(kind)
			if kind&BitSnapshot != 0 {
				size += 1 + len(x.Opaque)/4
			}
			if size == 0 {
				break
			}
			if err := AddNode(option, ns, &h, &x); err != nil {
				t.Fatal(err)
			}
			if overflow = overflow || size > free; overflow {
				continue
			}
			free -= size
			hops, nodes = append(hops, h), append(nodes, x)
		}
		r.Reset()
		DecodeOption(&r, option, len(option), 0)
		if r.Err.Reason != 0 || r.Kind != decode.KindTrace || r.Flags&decode.Overflow != 0 != overflow || r.Flags&decode.Active == 0 ||
			int(r.AddRare().IOAM.RemainingLen) != free || r.AddRare().IOAM.TraceType != kind || r.AddRare().IOAM.Namespace != ns {
			t.Fatalf("%x: %+v", option, r)
		}
		if !slices.Equal(r.Hops, hops) || !slices.EqualFunc(r.AddRare().IOAM.Nodes, nodes, func(a, b decode.IOAMNode) bool { return reflect.DeepEqual(a, b) }) {
			t.Fatalf("%x\n got %+v %+v\nwant %+v %+v", option, r.Hops, r.AddRare().IOAM.Nodes, hops, nodes)
		}
	}
}

// A report that held a long trace holds nothing of it behind a short one, whatever the options are.
func TestReuse(t *testing.T) {
	var all [][]byte
	for _, name := range []string{"ioam-wide", "ioam-opaque", "ioam-pot", "ioam-e2e", "ioam-dex"} {
		all = append(all, vector(t, name))
	}
	long, _ := AppendTrace(nil, &Trace{Type: BitNodeID, Words: 61})
	for range 61 {
		AddNode(long, 0, &decode.Hop{}, &decode.IOAMNode{})
	}
	all = append(all, long, []byte{0x31, 2, 0, 9})
	fresh := func(b []byte) decode.Report {
		var r decode.Report
		DecodeOption(&r, b, len(b), 0)
		return r
	}
	same := func(a, b decode.Report) bool {
		if len(a.Hops) == 0 && len(b.Hops) == 0 {
			a.Hops, b.Hops = nil, nil
		}
		x, y := *a.AddRare(), *b.AddRare()
		if len(x.IOAM.Nodes) == 0 && len(y.IOAM.Nodes) == 0 {
			x.IOAM.Nodes, y.IOAM.Nodes = nil, nil
		}
		if len(x.Counts) == 0 && len(x.Histogram.Buckets) == 0 {
			x.Counts, x.Histogram.Buckets = nil, nil
		}
		a.Rare, b.Rare = &x, &y
		return reflect.DeepEqual(a, b)
	}
	var r decode.Report
	for _, first := range all {
		for _, second := range all {
			for _, b := range [][]byte{first, second} {
				r.Reset()
				DecodeOption(&r, b, len(b), 0)
				if want := fresh(b); !same(r, want) {
					t.Fatalf("%x behind others:\n got %+v\nwant %+v", b, r, want)
				}
			}
		}
	}
}

func TestEncoderErrors(t *testing.T) {
	check := func(what string, err, want error, dst []byte) {
		t.Helper()
		if !errors.Is(err, want) || want != nil && string(dst) != "x" {
			t.Errorf("%s: %q, %v, want %v", what, dst, err, want)
		}
	}
	x := []byte("x")
	for _, tt := range []struct {
		what  string
		trace Trace
		want  error
	}{
		{"61 words", Trace{Type: BitNodeID, Words: 61}, nil},
		{"62 words", Trace{Type: BitNodeID, Words: 62}, ErrTooLong},
		{"less than none", Trace{Words: -1}, ErrTooLong},
		{"25 bits", Trace{Type: 1 << 24}, ErrBits},
		{"loopback", Trace{Type: BitNodeID, Flags: decode.Loopback}, nil},
		{"loopback with more", Trace{Type: BitNodeID | BitSeconds, Flags: decode.Loopback}, ErrLoopback},
	} {
		dst, err := AppendTrace(x, &tt.trace)
		check(tt.what, err, tt.want, dst)
	}
	dst, err := AppendEdge(x, EdgeSeq32|EdgeSeq64, &decode.IOAMOption{})
	check("two numbers", err, ErrBits, dst)
	dst, err = AppendEdge(x, 1, &decode.IOAMOption{})
	check("undefined", err, ErrBits, dst)
	dst, err = AppendNode(x, BitSnapshot, &decode.Hop{}, &decode.IOAMNode{Opaque: []byte{1}})
	check("a byte of snapshot", err, ErrOpaque, dst)
	dst, err = AppendExtension(x, 17, slices.Repeat([][]byte{make([]byte, 250)}, 9)...)
	check("2250 bytes of options", err, ErrTooLong, dst)
	for _, b := range [][]byte{nil, vector(t, "ioam-pot"), vector(t, "ioam-wide")[:20]} {
		check("no trace", AddNode(b, 0, &decode.Hop{}, &decode.IOAMNode{}), ErrOption, x)
	}
}

func TestDecodeAllocatesNothing(t *testing.T) {
	trace, dex := vector(t, "ioam-trace"), packetWith(t, vector(t, "ioam-dex"), vector(t, "ioam-opaque"))
	var b decode.Batch
	if n := testing.AllocsPerRun(1000, func() {
		b.Reset()
		if read(&b, trace, len(trace))+read(&b, dex, len(dex)) != 3 {
			t.Error("not three reports")
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkDecode(b *testing.B) {
	trace := vector(b, "ioam-trace")
	var batch decode.Batch
	b.ReportAllocs()
	for b.Loop() {
		batch.Reset()
		read(&batch, trace, len(trace))
	}
}
